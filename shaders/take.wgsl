// y[a, j, b] = x[outer(a) + offsets[j] + inner(b)]: reading through index tensors. y is contiguous.
// A skipped offset gives zero, or leaves what is there.
// uses store, dims, each
override X: u32 = I32;
override Y: u32 = I32;
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override KEEP: bool = false;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    indices: u32,
    inner: u32,
    x_offset: u32,
    y_offset: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

fn element(id: u32) -> Acc {
    let b = id % p.inner;
    let j = (id / p.inner) % p.indices;
    let o = offsets[j];
    if (o != SKIPPED) {
        return load_x(p.x_offset + outer_offset(id / (p.inner * p.indices)) + o + inner_offset(b));
    }
    if (!KEEP) { return Acc(0); }
    let e = p.y_offset + id;
    return decode(Y, y_word(word(Y, e)), 0u, e);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

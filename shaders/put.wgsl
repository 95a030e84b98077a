// y[outer(a) + offsets[j] + inner(b)] = v[a, j, b], or += scale * v, for the j of one window of
// offsets. One invocation handles all j with the same offset, in order: the last one wins, and sums
// are always the same. v is contiguous.
// uses store, dims
override Y: u32 = F32;
override V: u32 = F32;
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override ACCUMULATE: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // outer * (end - begin) * inner
    indices: u32,
    inner: u32,
    begin: u32,
    end: u32,
    y_offset: u32,
    v_offset: u32,
    pad: u32,
    scale: vec4<u32>,
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> v: array<u32>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read> links: array<u32>;

fn load_y(i: u32) -> Acc {
    let w = word(Y, i);
    return decode(Y, y_word(w), y_word(w + wide(Y)), i);
}
fn load_v(i: u32) -> Acc {
    let w = word(V, i);
    return decode(V, v[w], v[w + wide(V)], i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    let window = p.end - p.begin;
    let b = id % p.inner;
    var j = p.begin + (id / p.inner) % window;
    let a = id / (p.inner * window);
    let o = offsets[j];
    var link = links[j];
    if (o == SKIPPED || (link & 0x80000000u) != 0u) { return; }
    let at = p.y_offset + outer_offset(a) + o + inner_offset(b);
    let v0 = p.v_offset + a * p.indices * p.inner + b;
    var value = load_v(v0 + j * p.inner);
    for (; (link & 0x7fffffffu) != 0x7fffffffu; link = links[j]) {
        j = link & 0x7fffffffu;
        let next = load_v(v0 + j * p.inner);
        if (ACCUMULATE) { value += next; } else { value = next; }
    }
    if (ACCUMULATE) { value = load_y(at) + from_words(p.scale.x, p.scale.y) * value; }
    store_y(at, value);
}

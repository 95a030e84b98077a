// x[prefix(a) + offsets[j] + suffix(b)] = v[a, j, b], or += scale * v, for the j of one window of
// offsets. One invocation handles all j with the same offset, in order: the last one wins, and sums
// are always the same. v is contiguous.
override X: u32 = F32;
override V: u32 = F32;
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override ACCUMULATE: bool = false;
override WG: u32 = 256u;

struct Params {
    n: u32, // outer * (end - begin) * inner
    indices: u32,
    inner: u32,
    begin: u32,
    end: u32,
    x_offset: u32,
    v_offset: u32,
    pad: u32,
    scale: vec4<u32>,
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> x: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> v: array<u32>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read> links: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, atomicLoad(&x[w]), atomicLoad(&x[w + wide(X)]), i);
}
fn load_v(i: u32) -> Acc {
    let w = word(V, i);
    return decode(V, v[w], v[w + wide(V)], i);
}
fn store_x(i: u32, v: Acc) {
    let bits = encode(X, v);
    let w = word(X, i);
    if (lane_log(X) == 0u) {
        atomicStore(&x[w], bits.x);
        if (wide(X) == 1u) { atomicStore(&x[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(X) << lane_bit(X, i);
        atomicXor(&x[w], (atomicLoad(&x[w]) ^ (bits.x << lane_bit(X, i))) & mask);
    }
}
fn prefix(a: u32) -> u32 {
    var o = 0u;
    var rest = a;
    for (var d = 0u; d < OUTER; d++) {
        let q = rest / p.outer_size[d / 4u][d % 4u];
        o += (rest - q * p.outer_size[d / 4u][d % 4u]) * p.outer_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
}
fn suffix(b: u32) -> u32 {
    var o = 0u;
    var rest = b;
    for (var d = 0u; d < INNER; d++) {
        let q = rest / p.inner_size[d / 4u][d % 4u];
        o += (rest - q * p.inner_size[d / 4u][d % 4u]) * p.inner_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
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
    if (o == 0xffffffffu || (link & 0x80000000u) != 0u) { return; }
    let at = p.x_offset + prefix(a) + o + suffix(b);
    let v0 = p.v_offset + a * p.indices * p.inner + b;
    var value = load_v(v0 + j * p.inner);
    for (; (link & 0x7fffffffu) != 0x7fffffffu; link = links[j]) {
        j = link & 0x7fffffffu;
        let next = load_v(v0 + j * p.inner);
        if (ACCUMULATE) { value += next; } else { value = next; }
    }
    if (ACCUMULATE) { value = load_x(at) + from_words(p.scale.x, p.scale.y) * value; }
    store_x(at, value);
}

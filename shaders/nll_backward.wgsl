// The gradient of nll: d[o, c, i] = -weight[c] * g / divisor where c is the target, else 0.
// g has one element, or one for each position; the divisor is a float32 scalar in memory.
override D: u32 = F32;
override G: u32 = F32;
override T: u32 = I64;
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override HAS_DIVISOR: bool = false;
override WG: u32 = 256u;

struct Params {
    n: u32, // outer * classes * inner
    classes: u32,
    inner: u32,
    ignore: u32,
    d_offset: u32,
    g_offset: u32,
    g_step: u32, // 0 or 1
    t_offset: u32,
    w_offset: u32,
    divisor_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> d: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> g: array<u32>;
@group(0) @binding(3) var<storage, read> classes: array<u32>;
@group(0) @binding(4) var<storage, read> weight: array<u32>;
@group(0) @binding(5) var<storage, read> divisor: array<u32>;

fn store_d(i: u32, v: Acc) {
    let bits = encode(D, v);
    let w = word(D, i);
    if (lane_log(D) == 0u) {
        atomicStore(&d[w], bits.x);
        if (wide(D) == 1u) { atomicStore(&d[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(D) << lane_bit(D, i);
        atomicXor(&d[w], (atomicLoad(&d[w]) ^ (bits.x << lane_bit(D, i))) & mask);
    }
}
fn load_g(i: u32) -> Acc {
    let w = word(G, i);
    return decode(G, g[w], g[w + wide(G)], i);
}
fn load_weight(i: u32) -> Acc {
    let w = word(W, i);
    return decode(W, weight[w], weight[w + wide(W)], i);
}
fn load_classes(i: u32) -> i32 {
    let w = word(T, i);
    return index_value(T, classes[w], classes[w + wide(T)], i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    let plane = p.classes * p.inner;
    let o = id / plane;
    let c = (id - o * plane) / p.inner;
    let position = o * p.inner + id % p.inner;
    let t = load_classes(p.t_offset + position);
    var v = 0.0;
    if (t == bitcast<i32>(c) && t != bitcast<i32>(p.ignore)) {
        v = -load_g(p.g_offset + position * p.g_step);
        if (HAS_WEIGHT) { v *= load_weight(p.w_offset + c); }
        if (HAS_DIVISOR) { v /= bitcast<f32>(divisor[p.divisor_offset]); }
    }
    store_d(p.d_offset + id, v);
}

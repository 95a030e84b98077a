// The gradient of nll: y[o, c, i] = -weight[c] * g / divisor where c is the target, else 0.
// g has one element, or one for each position; the divisor is a float32 scalar in memory.
// uses store, index, each
override Y: u32 = F32;
override G: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override HAS_DIVISOR: bool = false;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // outer * classes * inner
    classes: u32,
    inner: u32,
    ignore: u32,
    y_offset: u32,
    g_offset: u32,
    g_step: u32, // 0 or 1
    i_offset: u32,
    w_offset: u32,
    divisor_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> g: array<u32>;
@group(0) @binding(3) var<storage, read> index: array<u32>;
@group(0) @binding(4) var<storage, read> weight: array<u32>;
@group(0) @binding(5) var<storage, read> divisor: array<u32>;

fn load_g(i: u32) -> Acc {
    let w = word(G, i);
    return decode(G, g[w], g[w + wide(G)], i);
}
fn load_weight(i: u32) -> Acc {
    let w = word(W, i);
    return decode(W, weight[w], weight[w + wide(W)], i);
}

fn element(id: u32) -> Acc {
    let plane = p.classes * p.inner;
    let o = id / plane;
    let c = (id - o * plane) / p.inner;
    let position = o * p.inner + id % p.inner;
    let t = load_index(p.i_offset + position);
    var v = 0.0;
    if (t == bitcast<i32>(c) && t != bitcast<i32>(p.ignore)) {
        v = -load_g(p.g_offset + position * p.g_step);
        if (HAS_WEIGHT) { v *= load_weight(p.w_offset + c); }
        if (HAS_DIVISOR) { v /= bitcast<f32>(divisor[p.divisor_offset]); }
    }
    return v;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

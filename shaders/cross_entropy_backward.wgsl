// The gradient of cross_entropy's scores: k softmax(x) - g (1 - smoothing) w[t] at the target -
// g smoothing / classes w, with k such that it sums to nothing. An ignored position has none. g has
// one element, or one for each position; with a divisor, the sum of weights, the loss was a mean.
// uses store, rows, index
override X: u32 = F32;
override Y: u32 = F32;
override G: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override T: u32 = F32; // of the divisor
override HAS_WEIGHT: bool = false;
override HAS_DIVISOR: bool = false;
override SMOOTH: bool = false;
override PAIRS: bool = false; // two elements share a word, and an invocation has both
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32, // outer * inner
    classes: u32,
    inner: u32,
    ignore: u32,
    smoothing: f32,
    y_offset: u32,
    g_offset: u32,
    g_step: u32, // 0 or 1
    x_offset: u32,
    i_offset: u32,
    lse_offset: u32,
    w_offset: u32,
    divisor_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> g: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;
@group(0) @binding(5) var<storage, read> lse: array<u32>; // float32: the largest score, the logarithm
@group(0) @binding(6) var<storage, read> divisor: array<u32>;
@group(0) @binding(7) var<storage, read> weight: array<u32>;

fn load_weight(c: u32) -> f32 {
    if (!HAS_WEIGHT) { return 1.0; }
    let i = p.w_offset + c;
    return decode(W, weight[word(W, i)], 0u, i);
}

// What the scores of a position have in common.
struct Row {
    ignored: bool,
    target_class: u32,
    k: f32,
    hit: f32,
    spread: f32,
    top: f32,
    log: f32,
}
fn slope(r: Row, c: u32, score: f32) -> f32 {
    if (r.ignored) { return 0.0; }
    var v = r.k * exp((score - r.top) - r.log);
    if (c == r.target_class) { v -= r.hit; }
    if (SMOOTH) { v -= r.spread * load_weight(c); }
    return v;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let end = select(0u, p.classes, row < p.rows);
    let start = (row / p.inner) * p.classes * p.inner + row % p.inner;
    var weights = f32(p.classes);
    if (SMOOTH && HAS_WEIGHT) {
        weights = 0.0;
        for (var c = lane; c < p.classes; c += LANES) { weights += load_weight(c); }
        weights = row_sum(local, lane, weights);
    }
    if (row >= p.rows) { return; }
    let t = load_index(p.i_offset + row);
    let ignored = t == bitcast<i32>(p.ignore);
    // What is out of range was noted by the forward kernel.
    let target_class = select(u32(t), 0u, t < 0 || t >= bitcast<i32>(p.classes));
    var scale = 0.0;
    if (!ignored) {
        let i = p.g_offset + row * p.g_step;
        scale = decode(G, g[word(G, i)], 0u, i);
        if (HAS_DIVISOR) {
            let d = p.divisor_offset;
            scale /= decode(T, divisor[word(T, d)], 0u, d);
        }
    }
    let hit = scale * (1.0 - p.smoothing) * load_weight(target_class);
    let spread = scale * p.smoothing / f32(p.classes);
    let at_row = p.lse_offset + 2u * row;
    let top = bitcast<f32>(lse[at_row]);
    let l = bitcast<f32>(lse[at_row + 1u]);
    let r = Row(ignored, target_class, hit + spread * weights, hit, spread, top, l);
    let both = select(1u, 2u, PAIRS);
    for (var c = lane * both; c < end; c += LANES * both) {
        let at = start + c * p.inner;
        let i = p.x_offset + at;
        let w = x[word(X, i)];
        if (PAIRS) {
            let second = slope(r, c + 1u, decode(X, w, 0u, 1u));
            store_two(p.y_offset + at, slope(r, c, decode(X, w, 0u, 0u)), second);
        } else {
            store_y(p.y_offset + at, slope(r, c, decode(X, w, 0u, i)));
        }
    }
}

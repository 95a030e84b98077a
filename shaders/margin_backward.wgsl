// The gradient of the scores of a margin loss (margin.wgsl). g has one element, or one for each row, at a stride. LANES
// invocations share a row and ROWS rows a workgroup.
// uses store, rows, index
override X: u32 = F32;
override Y: u32 = F32;
override G: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override MANY: bool = false; // as many labels as classes
override SQUARE: bool = false; // with one label
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    classes: u32,
    // Parts of a row that different workgroups take, and the classes of one part.
    parts: u32,
    part: u32,
    x_offset: u32,
    i_offset: u32,
    w_offset: u32,
    y_offset: u32,
    counts_offset: u32,
    g_offset: u32,
    g_step: u32,
    pad: u32,
    margin: vec2<u32>,
    share: vec2<u32>, // 1 / classes
    scale: vec2<u32>, // of g
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> g: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;
@group(0) @binding(5) var<storage, read> counts: array<u32>; // how often a class is a label, if MANY
@group(0) @binding(6) var<storage, read> weight: array<u32>;

fn load_g(i: u32) -> Acc {
    let w = word(G, i);
    return decode(G, g[w], g[w + wide(G)], i);
}
fn load_x(i: u32) -> Acc {
    let w = word(X, p.x_offset + i);
    return decode(X, x[w], x[w + wide(X)], p.x_offset + i);
}
fn load_weight(c: u32) -> Acc {
    let w = word(W, p.w_offset + c);
    return decode(W, weight[w], weight[w + wide(W)], p.w_offset + c);
}
// What is out of range was noted by the forward kernel.
fn load_label(i: u32) -> u32 {
    let t = load_index(p.i_offset + i);
    return select(u32(t), 0u, t < 0 || t >= bitcast<i32>(p.classes));
}

fn distance(d: Acc) -> Acc {
    return d + from_words(p.margin.x, p.margin.y);
}
// The slope of a class whose score is d above that of a label; g is that of the row times its factor.
fn slope(d: Acc, g: Acc) -> Acc {
    let v = distance(d);
    if (!less(Acc(0), v)) { return Acc(0); }
    if (SQUARE) { return Acc(2) * v * g; }
    return g;
}

// Of class c of a row with many labels, which begins at `start`: so many times g, without squares.
fn of_many(start: u32, c: u32, g: Acc) -> Acc {
    let own = load_x(start + c);
    let often = counts[p.counts_offset + start + c];
    var pairs = 0u;
    for (var k = 0u; k < p.classes; k++) {
        var d = own;
        if (often != 0u) {
            if (counts[p.counts_offset + start + k] != 0u) { continue; }
            d = load_x(start + k) - own;
        } else {
            if (load_index(p.i_offset + start + k) == -1) { break; }
            d -= load_x(start + load_label(start + k));
        }
        if (less(Acc(0), distance(d))) { pairs += 1u; }
    }
    if (pairs == 0u) { return Acc(0); }
    let v = Acc(pairs) * g;
    if (often == 0u) { return v; }
    return -v * Acc(often);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let job = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = job < p.rows * p.parts;
    let row = select(0u, job / p.parts, live);
    let begin = (job % p.parts) * p.part;
    let end = select(0u, min(begin + p.part, p.classes), live);
    let start = row * p.classes;
    var factor = from_words(p.share.x, p.share.y);
    var label = 0u;
    if (!MANY) { label = load_label(row); }
    if (HAS_WEIGHT) { factor = divide(load_weight(label), Acc(p.classes)); }
    var own = Acc(0);
    // Nothing counts nothing, infinity too.
    if (is_true(factor)) {
        own = load_g(p.g_offset + row * p.g_step) * from_words(p.scale.x, p.scale.y) * factor;
    }
    var score = Acc(0);
    var sum = Acc(0);
    if (!MANY) {
        score = load_x(start + label);
        for (var c = begin + lane; c < end; c += LANES) {
            if (c != label) { sum += slope(load_x(start + c) - score, own); }
        }
        sum = row_sum(local, lane, sum);
    }
    for (var c = begin + lane; c < end; c += LANES) {
        var v = -sum;
        if (MANY) {
            v = of_many(start, c, own);
        } else if (c != label) {
            v = slope(load_x(start + c) - score, own);
        }
        store_y(p.y_offset + start + c, v);
    }
}

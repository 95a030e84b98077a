// The gradient of a normalisation's input: d = rstd * (w g - (sum(w g) + xhat sum(w g xhat)) / n),
// with xhat = (x - mean) * rstd; and the gradients of bias and weight, sums of g and of g * xhat over
// what a weight belongs to: the group itself, or a channel of every sample, which the workgroups
// behind those of the groups take. Where mean and variance were given, d is rstd w g. LANES invocations share a group, ROWS groups a workgroup; COLUMNS
// channels share a workgroup.
// uses store, rows
override X: u32 = F32;
override G: u32 = F32;
override Y: u32 = F32; // of the result d
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override CENTERED: bool = true;
override OWN: bool = false; // a weight belongs to one group
override GIVEN: bool = false; // `rstd` holds variances, on which x has no part
override COLUMNS: u32 = 1u;
override DENSE: bool = false; // a group's elements lie one behind the other
override EACH: bool = false; // each of them has a weight of its own, the same in all groups
override PAIRS: bool = false; // two elements share a word, and an invocation has both
override HELD: u32 = 0u; // steps of an invocation, whose elements stay in registers; 0: they are read anew
override LANES: u32 = WORKGROUP;
override ROWS: u32 = 1u;
override WG: u32 = WORKGROUP;

// Elements that an invocation has side by side, and those of one step of all.
const BOTH: u32 = select(1u, 2u, PAIRS);
const STEP: u32 = LANES * BOTH;
const ROOM: u32 = max(HELD, 1u);

struct Params {
    groups: u32,
    length: u32,
    // Element e of group r is at r * group_stride + e / inner * outer_stride + e % inner.
    inner: u32,
    group_stride: u32,
    outer_stride: u32,
    // Its weight is the one at (r % w_groups) * w_stride + e / w_inner.
    w_groups: u32,
    w_stride: u32,
    w_inner: u32,
    x_offset: u32,
    y_offset: u32,
    w_offset: u32,
    g_offset: u32,
    mean_offset: u32,
    rstd_offset: u32,
    // Channels, elements of one, parts of them that workgroups take, and elements of a part; the sums
    // are [part, channel].
    channels: u32,
    count: u32,
    parts: u32,
    part: u32,
    eps: f32, // of given variances
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> sum_g: array<u32>;
@group(0) @binding(3) var<storage, read_write> sum_gx: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<u32>;
@group(0) @binding(5) var<storage, read> g: array<u32>;
@group(0) @binding(6) var<storage, read> mean: array<u32>;
@group(0) @binding(7) var<storage, read> rstd: array<u32>;
@group(0) @binding(8) var<storage, read> weight: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn load_g(i: u32) -> Acc {
    let w = word(G, i);
    return decode(G, g[w], g[w + wide(G)], i);
}
fn load_weight(i: u32) -> Acc {
    let w = word(W, i);
    return decode(W, weight[w], weight[w + wide(W)], i);
}
fn place(r: u32, e: u32) -> u32 {
    if (DENSE) { return r * p.group_stride + e; }
    return r * p.group_stride + (e / p.inner) * p.outer_stride + e % p.inner;
}
fn weight_at(r: u32, e: u32) -> u32 {
    if (EACH) { return e; }
    return (r % p.w_groups) * p.w_stride + e / p.w_inner;
}

var<workgroup> second: array<f32, WG>;

// The sums of a part of a channel, from workgroup `id` of those.
fn channel_sums(id: u32, local: u32) {
    let blocks = (p.channels + COLUMNS - 1u) / COLUMNS;
    let part = id / blocks;
    let c = (id % blocks) * COLUMNS + local % COLUMNS;
    let lanes = WG / COLUMNS;
    let live = c < p.channels && part < p.parts;
    let end = select(0u, min(p.count, (part + 1u) * p.part), live);
    // The channel's group in each sample, and its first element there.
    let row = c / p.w_stride;
    let first = (c % p.w_stride) * p.w_inner;
    var sum = 0.0;
    var sum_x = 0.0;
    for (var k = part * p.part + local / COLUMNS; k < end; k += lanes) {
        let r = (k / p.w_inner) * p.w_groups + row;
        let at = place(r, first + k % p.w_inner);
        let gradient = load_g(p.g_offset + at);
        let m = bitcast<f32>(mean[p.mean_offset + r]);
        let scale = bitcast<f32>(rstd[p.rstd_offset + r]);
        sum += gradient;
        sum_x += gradient * ((load_x(p.x_offset + at) - m) * scale);
    }
    partial[local] = sum;
    second[local] = sum_x;
    workgroupBarrier();
    for (var s = lanes / 2u; s > 0u; s /= 2u) {
        if (local < s * COLUMNS) {
            partial[local] += partial[local + s * COLUMNS];
            second[local] += second[local + s * COLUMNS];
        }
        workgroupBarrier();
    }
    if (local < COLUMNS && live) {
        sum_g[part * p.channels + c] = bitcast<u32>(partial[local]);
        sum_gx[part * p.channels + c] = bitcast<u32>(second[local]);
    }
}

// Of element e of group r, and of the one behind it where there are pairs: the gradient, with the weight where
// that comes in front of the sums, and the normalised input.
struct Terms {
    g: vec2<Acc>,
    xhat: vec2<Acc>,
}
fn terms(r: u32, e: u32, m: Acc, scale: Acc) -> Terms {
    let at = place(r, e);
    var t = Terms(vec2(0.0), vec2(0.0));
    if (PAIRS) {
        let u = x[word(X, p.x_offset + at)];
        let v = g[word(G, p.g_offset + at)];
        t.xhat = vec2(decode(X, u, 0u, 0u), decode(X, u, 0u, 1u));
        t.g = vec2(decode(G, v, 0u, 0u), decode(G, v, 0u, 1u));
    } else {
        t.xhat.x = load_x(p.x_offset + at);
        t.g.x = load_g(p.g_offset + at);
    }
    t.xhat = (t.xhat - m) * scale;
    if (HAS_WEIGHT && !OWN) {
        t.g.x *= load_weight(p.w_offset + weight_at(r, e));
        if (PAIRS) { t.g.y *= load_weight(p.w_offset + weight_at(r, e + 1u)); }
    }
    return t;
}
fn both(v: vec2<Acc>) -> Acc {
    if (PAIRS) { return v.x + v.y; }
    return v.x;
}
fn store(r: u32, e: u32, t: Terms, a: Acc, b: Acc, scale: Acc) {
    var d = t.g - a - t.xhat * b;
    if (HAS_WEIGHT && OWN) {
        d.x *= load_weight(p.w_offset + weight_at(r, e));
        if (PAIRS) { d.y *= load_weight(p.w_offset + weight_at(r, e + 1u)); }
    }
    d *= scale;
    let at = p.y_offset + place(r, e);
    if (PAIRS) { store_two(at, d.x, d.y); } else { store_y(at, d.x); }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = group.x + group.y * groups.x;
    let own = (p.groups + ROWS - 1u) / ROWS;
    if (id >= own) {
        channel_sums(id - own, local);
        return;
    }
    let r = id * ROWS + local / LANES;
    let lane = local % LANES;
    let live = r < p.groups;
    let end = select(0u, p.length, live);
    var m = 0.0;
    var scale = 0.0;
    if (live) {
        m = bitcast<f32>(mean[p.mean_offset + r]);
        scale = bitcast<f32>(rstd[p.rstd_offset + r]);
        if (GIVEN) { scale = 1.0 / sqrt(scale + p.eps); }
    }
    let first = lane * BOTH;
    var held: array<Terms, ROOM>;
    var a = 0.0;
    var b = 0.0;
    if (HELD > 0u) {
        let near = select(0u, r, live);
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            held[k] = terms(near, min(first + k * STEP, p.length - BOTH), m, scale);
        }
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let inside = first + k * STEP < end;
            a += select(0.0, both(held[k].g), inside);
            b += select(0.0, both(held[k].g * held[k].xhat), inside);
        }
    } else {
        for (var e = first; e < end; e += STEP) {
            let t = terms(r, e, m, scale);
            a += both(t.g);
            b += both(t.g * t.xhat);
        }
    }
    a = row_sum(local, lane, a);
    b = row_sum(local, lane, b);
    if (OWN && lane == 0u && live) {
        sum_g[r] = bitcast<u32>(a);
        sum_gx[r] = bitcast<u32>(b);
    }
    a /= f32(p.length);
    b /= f32(p.length);
    if (!CENTERED || GIVEN) { a = 0.0; }
    if (GIVEN) { b = 0.0; }
    if (HELD > 0u) {
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let e = first + k * STEP;
            if (e < end) { store(r, e, held[k], a, b, scale); }
        }
    } else {
        for (var e = first; e < end; e += STEP) {
            store(r, e, terms(r, e, m, scale), a, b, scale);
        }
    }
}

// Normalisation of groups of elements: y = (x - mean) / sqrt(var + eps) * w + b, with mean,
// 1 / sqrt(var + eps) and var (over n, biased) of each group, in float32. Batch norm, layer norm,
// group norm and instance norm differ in what a group is; RMS norm takes the mean for 0. LANES
// invocations share a group, ROWS groups a workgroup.
// uses store, rows
override X: u32 = F32;
override Y: u32 = F32;
override W: u32 = F32;
override B: u32 = F32;
override HAS_WEIGHT: bool = false;
override HAS_BIAS: bool = false;
override CENTERED: bool = true;
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
    eps: f32,
    x_offset: u32,
    y_offset: u32,
    w_offset: u32,
    b_offset: u32,
    mean_offset: u32,
    rstd_offset: u32,
    var_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> mean: array<u32>;
@group(0) @binding(3) var<storage, read_write> rstd: array<u32>;
@group(0) @binding(4) var<storage, read_write> variance: array<u32>;
@group(0) @binding(5) var<storage, read> x: array<u32>;
@group(0) @binding(6) var<storage, read> weight: array<u32>;
@group(0) @binding(7) var<storage, read> bias: array<u32>;

// Element i, and both of a word, in whose place a kernel may have what makes them.
fn read_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn read_two_x(i: u32) -> vec2<Acc> {
    let w = x[word(X, i)];
    return vec2(decode(X, w, 0u, 0u), decode(X, w, 0u, 1u));
}
// Element i, and the one behind it where there are pairs.
fn load_x(i: u32) -> vec2<Acc> {
    if (PAIRS) { return read_two_x(i); }
    return vec2(read_x(i), Acc(0));
}
fn load_weight(i: u32) -> Acc {
    let w = word(W, i);
    return decode(W, weight[w], weight[w + wide(W)], i);
}
fn load_bias(i: u32) -> Acc {
    let w = word(B, i);
    return decode(B, bias[w], bias[w + wide(B)], i);
}
fn place(r: u32, e: u32) -> u32 {
    if (DENSE) { return r * p.group_stride + e; }
    return r * p.group_stride + (e / p.inner) * p.outer_stride + e % p.inner;
}
fn weight_at(r: u32, e: u32) -> u32 {
    if (EACH) { return e; }
    return (r % p.w_groups) * p.w_stride + e / p.w_inner;
}

fn both(v: vec2<Acc>) -> Acc {
    if (PAIRS) { return v.x + v.y; }
    return v.x;
}
// What is stored at element e of group r for a normalised value.
fn result(r: u32, e: u32, v: Acc) -> Acc {
    var value = v;
    if (HAS_WEIGHT) { value *= load_weight(p.w_offset + weight_at(r, e)); }
    if (HAS_BIAS) { value += load_bias(p.b_offset + weight_at(r, e)); }
    return value;
}
fn store(r: u32, e: u32, v: vec2<Acc>) {
    let at = p.y_offset + place(r, e);
    if (PAIRS) {
        store_two(at, result(r, e, v.x), result(r, e + 1u, v.y));
    } else {
        store_y(at, result(r, e, v.x));
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let r = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = r < p.groups;
    let end = select(0u, p.length, live);
    let first = lane * BOTH;
    let n = f32(p.length);
    var held: array<vec2<Acc>, ROOM>;
    if (HELD > 0u) {
        let near = select(0u, r, live);
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let e = min(first + k * STEP, p.length - BOTH);
            held[k] = load_x(p.x_offset + place(near, e));
        }
    }
    var sum = 0.0;
    var m = 0.0;
    if (CENTERED) {
        if (HELD > 0u) {
            for (var k = 0u; k < HELD; k++) { // unroll HELD
                sum += select(0.0, both(held[k]), first + k * STEP < end);
            }
        } else {
            for (var e = first; e < end; e += STEP) {
                sum += both(load_x(p.x_offset + place(r, e)));
            }
        }
        m = row_sum(local, lane, sum) / n;
        sum = 0.0;
    }
    if (HELD > 0u) {
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            held[k] -= m;
            sum += select(0.0, both(held[k] * held[k]), first + k * STEP < end);
        }
    } else {
        for (var e = first; e < end; e += STEP) {
            let v = load_x(p.x_offset + place(r, e)) - m;
            sum += both(v * v);
        }
    }
    let v = row_sum(local, lane, sum) / n;
    let scale = 1.0 / sqrt(v + p.eps);
    if (HELD > 0u) {
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let e = first + k * STEP;
            if (e < end) { store(r, e, held[k] * scale); }
        }
    } else {
        for (var e = first; e < end; e += STEP) {
            store(r, e, (load_x(p.x_offset + place(r, e)) - m) * scale);
        }
    }
    if (lane == 0u && r < p.groups) {
        mean[p.mean_offset + r] = bitcast<u32>(m);
        rstd[p.rstd_offset + r] = bitcast<u32>(scale);
        variance[p.var_offset + r] = bitcast<u32>(v);
    }
}

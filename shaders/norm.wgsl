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
override LANES: u32 = WORKGROUP;
override ROWS: u32 = 1u;
override WG: u32 = WORKGROUP;

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

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
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

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let r = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let end = select(0u, p.length, r < p.groups);
    var sum = 0.0;
    var m = 0.0;
    if (CENTERED) {
        for (var e = lane; e < end; e += LANES) { sum += load_x(p.x_offset + place(r, e)); }
        m = row_sum(local, lane, sum) / f32(p.length);
        sum = 0.0;
    }
    for (var e = lane; e < end; e += LANES) {
        let v = load_x(p.x_offset + place(r, e)) - m;
        sum += v * v;
    }
    let v = row_sum(local, lane, sum) / f32(p.length);
    let scale = 1.0 / sqrt(v + p.eps);
    for (var e = lane; e < end; e += LANES) {
        let at = place(r, e);
        var value = (load_x(p.x_offset + at) - m) * scale;
        if (HAS_WEIGHT) { value *= load_weight(p.w_offset + weight_at(r, e)); }
        if (HAS_BIAS) { value += load_bias(p.b_offset + weight_at(r, e)); }
        store_y(p.y_offset + at, value);
    }
    if (lane == 0u && r < p.groups) {
        mean[p.mean_offset + r] = bitcast<u32>(m);
        rstd[p.rstd_offset + r] = bitcast<u32>(scale);
        variance[p.var_offset + r] = bitcast<u32>(v);
    }
}

// The gradient of a normalisation's input: d = rstd * (w g - (sum(w g) + xhat sum(w g xhat)) / n),
// with xhat = (x - mean) * rstd, and the sums of g and of g * xhat of each group (where the weight
// is one per group, they are the gradients of bias and weight).
// uses store, rows
override X: u32 = F32;
override G: u32 = F32;
override Y: u32 = F32; // of the result d
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override WG: u32 = WORKGROUP;
override LANES: u32 = WG;

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
    sum_offset: u32,
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
    return r * p.group_stride + (e / p.inner) * p.outer_stride + e % p.inner;
}
fn weight_at(r: u32, e: u32) -> u32 {
    return (r % p.w_groups) * p.w_stride + e / p.w_inner;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let r = group.x + group.y * groups.x;
    let live = r < p.groups;
    let end = select(0u, p.length, live);
    var m = 0.0;
    var scale = 0.0;
    if (live) {
        m = bitcast<f32>(mean[p.mean_offset + r]);
        scale = bitcast<f32>(rstd[p.rstd_offset + r]);
    }
    var g_sum = 0.0;
    var gx_sum = 0.0;
    var wg_sum = 0.0;
    var wgx_sum = 0.0;
    for (var e = local; e < end; e += WG) {
        let at = place(r, e);
        let gradient = load_g(p.g_offset + at);
        let xhat = (load_x(p.x_offset + at) - m) * scale;
        g_sum += gradient;
        gx_sum += gradient * xhat;
        if (HAS_WEIGHT) {
            let w = load_weight(p.w_offset + weight_at(r, e)) * gradient;
            wg_sum += w;
            wgx_sum += w * xhat;
        }
    }
    g_sum = row_sum(local, local, g_sum);
    gx_sum = row_sum(local, local, gx_sum);
    var a = g_sum;
    var b = gx_sum;
    if (HAS_WEIGHT) {
        a = row_sum(local, local, wg_sum);
        b = row_sum(local, local, wgx_sum);
    }
    a /= f32(p.length);
    b /= f32(p.length);
    for (var e = local; e < end; e += WG) {
        let at = place(r, e);
        var gradient = load_g(p.g_offset + at);
        if (HAS_WEIGHT) { gradient *= load_weight(p.w_offset + weight_at(r, e)); }
        let xhat = (load_x(p.x_offset + at) - m) * scale;
        store_y(p.y_offset + at, scale * (gradient - a - xhat * b));
    }
    if (local == 0u && live) {
        sum_g[p.sum_offset + r] = bitcast<u32>(g_sum);
        sum_gx[p.sum_offset + r] = bitcast<u32>(gx_sum);
    }
}

// Cross entropy of scores x [outer, classes, inner] with the classes of the index [outer, inner], with
// class weights and label smoothing: the largest score and the logarithm of the sum of exponentials of what
// is less than it, the loss and the weight of each position; then,
// in one workgroup, their sums. LANES invocations share a position, ROWS positions a workgroup.
// uses store, rows, index, fault
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override T: u32 = F32; // of the sum of weights
override HAS_WEIGHT: bool = false;
override SMOOTH: bool = false;
override MEAN: bool = false; // divide by the sum of weights
override EACH: bool = false; // only the sum of weights is wanted
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32, // outer * inner
    classes: u32,
    inner: u32,
    ignore: u32,
    smoothing: f32,
    x_offset: u32,
    i_offset: u32,
    w_offset: u32,
    y_offset: u32,
    lse_offset: u32,
    infinity: u32, // the bits of +inf, which WGSL cannot write
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>; // losses, or their sum
@group(0) @binding(2) var<storage, read_write> total: array<u32>; // weights, or their sum
@group(0) @binding(3) var<storage, read_write> lse: array<u32>; // float32, two for each; losses for `sums`
@group(0) @binding(4) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read> x: array<u32>; // weights of positions for `sums`
@group(0) @binding(6) var<storage, read> index: array<u32>;
@group(0) @binding(7) var<storage, read> weight: array<u32>;

fn load_x(i: u32) -> f32 {
    return decode(X, x[word(X, p.x_offset + i)], 0u, p.x_offset + i);
}
fn load_weight(c: u32) -> f32 {
    if (!HAS_WEIGHT) { return 1.0; }
    let i = p.w_offset + c;
    return decode(W, weight[word(W, i)], 0u, i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = row < p.rows;
    let end = select(0u, p.classes, live);
    let start = (row / p.inner) * p.classes * p.inner + row % p.inner;
    var top = bitcast<f32>(p.infinity | 0x80000000u);
    for (var c = lane; c < end; c += LANES) {
        top = larger(top, load_x(start + c * p.inner));
    }
    top = row_max(local, lane, top);
    var sum = 0.0;
    for (var c = lane; c < end; c += LANES) {
        sum += exp(load_x(start + c * p.inner) - top);
    }
    // Not their sum: beside a large score nothing would be left of the logarithm.
    let l = log(row_sum(local, lane, sum));
    var spread = 0.0;
    if (SMOOTH) {
        for (var c = lane; c < end; c += LANES) {
            spread += load_weight(c) * ((top - load_x(start + c * p.inner)) + l);
        }
        spread = row_sum(local, lane, spread);
    }
    if (!live || lane != 0u) { return; }
    var t = load_index(p.i_offset + row);
    var w = 0.0;
    var loss = 0.0;
    if (t != bitcast<i32>(p.ignore)) {
        if (t < 0 || t >= bitcast<i32>(p.classes)) {
            complain(p.i_offset + row, p.classes);
            t = 0;
        }
        w = load_weight(u32(t));
        loss = w * ((top - load_x(start + u32(t) * p.inner)) + l);
        if (SMOOTH) {
            loss = (1.0 - p.smoothing) * loss + p.smoothing / f32(p.classes) * spread;
        }
    }
    lse[p.lse_offset + 2u * row] = bitcast<u32>(top);
    lse[p.lse_offset + 2u * row + 1u] = bitcast<u32>(l);
    total[row] = bitcast<u32>(w);
    store_y(p.y_offset + row, loss);
}

@compute @workgroup_size(WG)
fn sums(@builtin(local_invocation_index) local: u32) {
    var loss = 0.0;
    var w = 0.0;
    for (var r = local; r < p.rows; r += WG) {
        w += bitcast<f32>(x[r]);
        if (!EACH) { loss += bitcast<f32>(lse[r]); }
    }
    w = row_sum(local, local, w);
    loss = row_sum(local, local, loss);
    if (local != 0u) { return; }
    if (MEAN) { loss /= w; }
    if (!EACH) { store_y(p.y_offset, loss); }
    // One element: nobody shares its word.
    total[0] = encode(T, w).x;
}

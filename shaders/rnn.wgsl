// One step of a recurrent layer for n sequences: the product of the states with the recurrent weights
// and, in the same kernel, the cell. A workgroup of 16 x 16 invocations makes 16 units of 16
// sequences. All float32.
override CELL: u32 = TANH;
override GATES: u32 = 1u;
override HAS_BIAS: bool = false;
override KEEP: bool = false; // gates for the gradient
override SIDE: u32 = 16u;
override WG: u32 = SIDE * SIDE;

struct Params {
    n: u32,
    width: u32,
    row: u32, // the step's first one
    before: u32, // that of the step before
    on: u32, // sequences that have one; the others begin with a first state
    blocks: u32, // of units
    h_offset: u32,
    c_offset: u32,
    w_offset: u32,
    b_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // states of all steps
@group(0) @binding(2) var<storage, read_write> gates: array<u32>; // the input's share, then gates
@group(0) @binding(3) var<storage, read_write> own: array<u32>; // cell states, or a GRU's product
@group(0) @binding(4) var<storage, read> h: array<u32>;
@group(0) @binding(5) var<storage, read> c: array<u32>;
@group(0) @binding(6) var<storage, read> weight: array<u32>;
@group(0) @binding(7) var<storage, read> bias: array<u32>;
var<workgroup> tile_h: array<f32, SIDE * (SIDE + 1u)>;
var<workgroup> tile_w: array<f32, GATES * SIDE * (SIDE + 1u)>;

fn state(r: u32, k: u32) -> f32 {
    if (r < p.on) { return bitcast<f32>(y[(p.before + r) * p.width + k]); }
    return bitcast<f32>(h[p.h_offset + r * p.width + k]);
}
fn cell_state(r: u32, k: u32) -> f32 {
    if (r < p.on) { return bitcast<f32>(own[(p.before + r) * p.width + k]); }
    return bitcast<f32>(c[p.c_offset + r * p.width + k]);
}
fn sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(-x));
}
// Beyond 15 it is 1, where `tanh` may overflow.
fn tangent(x: f32) -> f32 {
    return select(tanh(clamp(x, -15.0, 15.0)), x, is_nan(x));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = group.x + group.y * groups.x;
    let r0 = (id / p.blocks) * SIDE;
    let j0 = (id % p.blocks) * SIDE;
    if (r0 >= p.n) { return; }
    let i = local / SIDE;
    let e = local % SIDE;
    var sum: array<f32, GATES>;
    for (var g = 0u; g < GATES; g++) { sum[g] = 0.0; }
    for (var k0 = 0u; k0 < p.width; k0 += SIDE) {
        var x = 0.0;
        if (r0 + i < p.n && k0 + e < p.width) { x = state(r0 + i, k0 + e); }
        tile_h[i * (SIDE + 1u) + e] = x;
        for (var g = 0u; g < GATES; g++) {
            x = 0.0;
            if (j0 + i < p.width && k0 + e < p.width) {
                x = bitcast<f32>(weight[p.w_offset + (g * p.width + j0 + i) * p.width + k0 + e]);
            }
            tile_w[(g * SIDE + i) * (SIDE + 1u) + e] = x;
        }
        workgroupBarrier();
        for (var k = 0u; k < SIDE; k++) {
            let v = tile_h[i * (SIDE + 1u) + k];
            for (var g = 0u; g < GATES; g++) {
                sum[g] = fma(v, tile_w[(g * SIDE + e) * (SIDE + 1u) + k], sum[g]);
            }
        }
        workgroupBarrier();
    }
    let r = r0 + i;
    let j = j0 + e;
    if (r >= p.n || j >= p.width) { return; }
    let row = p.row + r;
    var input: array<f32, GATES>;
    for (var g = 0u; g < GATES; g++) {
        if (HAS_BIAS) { sum[g] += bitcast<f32>(bias[p.b_offset + g * p.width + j]); }
        input[g] = bitcast<f32>(gates[(row * GATES + g) * p.width + j]);
    }
    let at = row * p.width + j;
    var out = 0.0;
    if (CELL == LSTM) {
        let a = sigmoid(input[0] + sum[0]);
        let b = sigmoid(input[1 % GATES] + sum[1 % GATES]);
        let n = tangent(input[2 % GATES] + sum[2 % GATES]);
        let o = sigmoid(input[3 % GATES] + sum[3 % GATES]);
        let new_c = b * cell_state(r, j) + a * n;
        out = o * tangent(new_c);
        own[at] = bitcast<u32>(new_c);
        input[0] = a;
        input[1 % GATES] = b;
        input[2 % GATES] = n;
        input[3 % GATES] = o;
    } else if (CELL == GRU) {
        let a = sigmoid(input[0] + sum[0]);
        let b = sigmoid(input[1 % GATES] + sum[1 % GATES]);
        let n = tangent(input[2 % GATES] + a * sum[2 % GATES]);
        out = (state(r, j) - n) * b + n;
        if (KEEP) { own[at] = bitcast<u32>(sum[2 % GATES]); }
        input[0] = a;
        input[1 % GATES] = b;
        input[2 % GATES] = n;
    } else if (CELL == RELU) {
        out = input[0] + sum[0];
        out = select(out, 0.0, less(out, 0.0));
    } else {
        out = tangent(input[0] + sum[0]);
    }
    if (KEEP) {
        for (var g = 0u; g < GATES; g++) {
            gates[(row * GATES + g) * p.width + j] = bitcast<u32>(input[g]);
        }
    }
    y[at] = bitcast<u32>(out);
}

// The gradient of one step of a recurrent layer: what the step after hands back through the recurrent
// weights, and from it the slopes of this step's gates. A workgroup of 16 x 16 invocations makes 16
// units of 16 sequences. All float32.
override CELL: u32 = TANH;
override GATES: u32 = 1u;
override SIDE: u32 = 16u;
override WG: u32 = SIDE * SIDE;

struct Params {
    n: u32,
    width: u32,
    row: u32, // the step's first one
    before: u32, // that of the step before
    on: u32, // sequences that have one; the others began with a first state
    after: u32, // that of the step after
    going: u32, // sequences that have one
    blocks: u32, // of units
    first_offset: u32,
    w_offset: u32,
    g_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> slopes: array<u32>; // of all steps' gates
// The gradient of the cell state, or a GRU's direct way to the state before: a row for each sequence.
@group(0) @binding(2) var<storage, read_write> carried: array<u32>;
@group(0) @binding(3) var<storage, read> gates: array<u32>;
@group(0) @binding(4) var<storage, read> own: array<u32>; // cell states, or a GRU's product
@group(0) @binding(5) var<storage, read> y: array<u32>; // states of all steps
@group(0) @binding(6) var<storage, read> first: array<u32>; // first states: of cells, for an LSTM
@group(0) @binding(7) var<storage, read> weight: array<u32>;
@group(0) @binding(8) var<storage, read> gy: array<u32>;
var<workgroup> tile_g: array<f32, SIDE * (SIDE + 1u)>;
var<workgroup> tile_w: array<f32, SIDE * (SIDE + 1u)>;

// The slope of the recurrent product: a GRU's candidate takes it times the reset gate.
fn passed(row: u32, k: u32) -> f32 {
    let v = bitcast<f32>(slopes[row * GATES * p.width + k]);
    if (CELL == GRU && k >= 2u * p.width) {
        return v * bitcast<f32>(gates[row * GATES * p.width + k - 2u * p.width]);
    }
    return v;
}
fn gate(row: u32, g: u32, j: u32) -> f32 {
    return bitcast<f32>(gates[(row * GATES + g) * p.width + j]);
}
fn give(row: u32, g: u32, j: u32, v: f32) {
    slopes[(row * GATES + g) * p.width + j] = bitcast<u32>(v);
}
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
    let r = r0 + i;
    let j = j0 + e;
    var sum = 0.0;
    // The same for the whole workgroup: whether any of its sequences goes on.
    if (r0 < p.going) {
        for (var k0 = 0u; k0 < GATES * p.width; k0 += SIDE) {
            var x = 0.0;
            if (r < p.going && k0 + e < GATES * p.width) { x = passed(p.after + r, k0 + e); }
            tile_g[i * (SIDE + 1u) + e] = x;
            x = 0.0;
            if (k0 + i < GATES * p.width && j < p.width) {
                x = bitcast<f32>(weight[p.w_offset + (k0 + i) * p.width + j]);
            }
            tile_w[i * (SIDE + 1u) + e] = x;
            workgroupBarrier();
            for (var k = 0u; k < SIDE; k++) {
                sum = fma(tile_g[i * (SIDE + 1u) + k], tile_w[k * (SIDE + 1u) + e], sum);
            }
            workgroupBarrier();
        }
    }
    if (r >= p.n || j >= p.width) { return; }
    let row = p.row + r;
    let at = row * p.width + j;
    let place = r * p.width + j;
    var g = sum;
    g += bitcast<f32>(gy[p.g_offset + at]);
    var old = 0.0;
    if (CELL == LSTM || CELL == GRU) {
        old = bitcast<f32>(first[p.first_offset + place]);
        let earlier = (p.before + r) * p.width + j;
        if (r < p.on) {
            if (CELL == LSTM) {
                old = bitcast<f32>(own[earlier]);
            } else {
                old = bitcast<f32>(y[earlier]);
            }
        }
    }
    if (CELL == LSTM) {
        let a = gate(row, 0u, j);
        let b = gate(row, 1u, j);
        let n = gate(row, 2u, j);
        let o = gate(row, 3u, j);
        let t = tangent(bitcast<f32>(own[at]));
        let gc = bitcast<f32>(carried[place]) + g * o * (1.0 - t * t);
        give(row, 0u, j, gc * n * a * (1.0 - a));
        give(row, 1u, j, gc * old * b * (1.0 - b));
        give(row, 2u, j, gc * a * (1.0 - n * n));
        give(row, 3u, j, g * t * o * (1.0 - o));
        carried[place] = bitcast<u32>(gc * b);
    } else if (CELL == GRU) {
        if (r < p.going) { g += bitcast<f32>(carried[place]); }
        let a = gate(row, 0u, j);
        let b = gate(row, 1u, j);
        let n = gate(row, 2u, j);
        let gn = g * (1.0 - b) * (1.0 - n * n);
        give(row, 0u, j, gn * bitcast<f32>(own[at]) * a * (1.0 - a));
        give(row, 1u, j, g * (old - n) * b * (1.0 - b));
        give(row, 2u, j, gn);
        carried[place] = bitcast<u32>(g * b);
    } else {
        let v = bitcast<f32>(y[at]);
        if (CELL == RELU) {
            g = select(g, 0.0, at_most(v, 0.0));
        } else {
            g *= 1.0 - v * v;
        }
        give(row, 0u, j, g);
    }
}

// The gradient of softmax, y * (g - sum(g * y)), or of log_softmax, g - exp(y) * sum(g), over the
// middle of a contiguous [outer, length, inner], from the result y.
override X: u32 = F32; // of the result y
override G: u32 = F32;
override D: u32 = F32;
override LOG: bool = false;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    length: u32,
    inner: u32,
    d_offset: u32,
    y_offset: u32,
    g_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> d: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<u32>;
var<workgroup> partial: array<f32, WG>;

fn load_y(i: u32) -> f32 {
    return decode(X, y[word(X, p.y_offset + i)], 0u, p.y_offset + i);
}
fn load_g(i: u32) -> f32 {
    return decode(G, g[word(G, p.g_offset + i)], 0u, p.g_offset + i);
}
fn store_d(j: u32, v: f32) {
    let i = p.d_offset + j;
    let bits = encode(D, v).x;
    if (lane_log(D) == 0u) {
        atomicStore(&d[i], bits);
    } else {
        let mask = lane_mask(D) << lane_bit(D, i);
        let w = word(D, i);
        atomicXor(&d[w], (atomicLoad(&d[w]) ^ (bits << lane_bit(D, i))) & mask);
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let end = select(0u, p.length, row < p.rows);
    let start = (row / p.inner) * p.length * p.inner + row % p.inner;
    var sum = 0.0;
    for (var c = lane; c < end; c += LANES) {
        let i = start + c * p.inner;
        let w = load_g(i);
        if (LOG) { sum += w; } else { sum += w * load_y(i); }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var s = LANES / 2u; s > 0u; s /= 2u) {
        if (lane < s) { partial[local] += partial[local + s]; }
        workgroupBarrier();
    }
    sum = partial[local - lane];
    for (var c = lane; c < end; c += LANES) {
        let i = start + c * p.inner;
        let v = load_y(i);
        let w = load_g(i);
        store_d(i, select(v * (w - sum), w - exp(v) * sum, LOG));
    }
}

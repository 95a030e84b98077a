// softmax and log_softmax over the middle of a contiguous [outer, length, inner].
// LANES invocations share a row and ROWS rows share a workgroup.
// uses store, rows, math
override X: u32 = F32;
override Y: u32 = F32;
override LOG: bool = false;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32, // outer * inner
    length: u32,
    inner: u32,
    x_offset: u32,
    y_offset: u32,
    pad: u32,
    least: vec2<u32>, // the bits of -inf, which WGSL cannot write
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;

fn load_x(i: u32) -> Acc {
    let at = p.x_offset + i;
    let w = word(X, at);
    return decode(X, x[w], x[w + wide(X)], at);
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
    let end = select(0u, p.length, live);
    let start = (row / p.inner) * p.length * p.inner + row % p.inner;
    var top = from_words(p.least[0], p.least[1]);
    for (var c = lane; c < end; c += LANES) {
        top = larger(top, load_x(start + c * p.inner));
    }
    top = row_max(local, lane, top);
    var sum = Acc(0);
    for (var c = lane; c < end; c += LANES) {
        sum += m_decay(load_x(start + c * p.inner) - top);
    }
    sum = row_sum(local, lane, sum);
    let log_sum = m_ln(sum);
    for (var c = lane; c < end; c += LANES) {
        let v = load_x(start + c * p.inner) - top;
        store_y(p.y_offset + start + c * p.inner, select(m_decay(v) / sum, v - log_sum, LOG));
    }
}

// The gradient of softmax, s * (g - sum(g * s)), or of log_softmax, g - m_decay(s) * sum(g), over the
// middle of a contiguous [outer, length, inner], from the result s.
// uses store, rows, math
override S: u32 = F32; // of the result s
override G: u32 = F32;
override Y: u32 = F32;
override LOG: bool = false;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    length: u32,
    inner: u32,
    y_offset: u32,
    s_offset: u32,
    g_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> s: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<u32>;

fn load_s(i: u32) -> Acc {
    let at = p.s_offset + i;
    let w = word(S, at);
    return decode(S, s[w], s[w + wide(S)], at);
}
fn load_g(i: u32) -> Acc {
    let at = p.g_offset + i;
    let w = word(G, at);
    return decode(G, g[w], g[w + wide(G)], at);
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
    var sum = Acc(0);
    for (var c = lane; c < end; c += LANES) {
        let i = start + c * p.inner;
        let w = load_g(i);
        if (LOG) { sum += w; } else { sum += w * load_s(i); }
    }
    sum = row_sum(local, lane, sum);
    for (var c = lane; c < end; c += LANES) {
        let i = start + c * p.inner;
        let v = load_s(i);
        let w = load_g(i);
        store_y(p.y_offset + i, select(v * (w - sum), w - m_decay(v) * sum, LOG));
    }
}

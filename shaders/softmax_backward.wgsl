// The gradient of softmax, s * (g - sum(g * s)), or of log_softmax, g - m_decay(s) * sum(g), over the
// middle of a contiguous [outer, length, inner], from the result s.
// uses store, rows, math
override S: u32 = F32; // of the result s
override G: u32 = F32;
override Y: u32 = F32;
override LOG: bool = false;
override PAIRS: bool = false; // two elements share a word, and an invocation has both
override HELD: u32 = 0u; // steps of an invocation, whose elements stay in registers; 0: they are read anew
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

// Elements that an invocation has side by side, and those of one step of all.
const BOTH: u32 = select(1u, 2u, PAIRS);
const STEP: u32 = LANES * BOTH;
const ROOM: u32 = max(HELD, 1u);

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

// Element i, and the one behind it where there are pairs.
fn load_s(i: u32) -> vec2<Acc> {
    let at = p.s_offset + i;
    let w = word(S, at);
    if (PAIRS) { return vec2(decode(S, s[w], 0u, 0u), decode(S, s[w], 0u, 1u)); }
    return vec2(decode(S, s[w], s[w + wide(S)], at), Acc(0));
}
fn load_g(i: u32) -> vec2<Acc> {
    let at = p.g_offset + i;
    let w = word(G, at);
    if (PAIRS) { return vec2(decode(G, g[w], 0u, 0u), decode(G, g[w], 0u, 1u)); }
    return vec2(decode(G, g[w], g[w + wide(G)], at), Acc(0));
}
fn both(v: vec2<Acc>) -> Acc {
    if (PAIRS) { return v.x + v.y; }
    return v.x;
}
fn term(v: vec2<Acc>, w: vec2<Acc>) -> Acc {
    if (LOG) { return both(w); }
    return both(w * v);
}
fn store(i: u32, v: vec2<Acc>, w: vec2<Acc>, sum: Acc) {
    let at = p.y_offset + i;
    if (PAIRS) {
        store_two(at, slope(v.x, w.x, sum), slope(v.y, w.y, sum));
    } else {
        store_y(at, slope(v.x, w.x, sum));
    }
}
fn slope(v: Acc, w: Acc, sum: Acc) -> Acc {
    if (LOG) { return w - m_decay(v) * sum; }
    return v * (w - sum);
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
    let at = select(0u, row, live);
    let start = (at / p.inner) * p.length * p.inner + at % p.inner;
    let first = lane * BOTH;
    var sum = Acc(0);
    if (HELD > 0u) {
        var v: array<vec2<Acc>, ROOM>;
        var w: array<vec2<Acc>, ROOM>;
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let i = start + min(first + k * STEP, p.length - BOTH) * p.inner;
            v[k] = load_s(i);
            w[k] = load_g(i);
        }
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            sum += select(Acc(0), term(v[k], w[k]), first + k * STEP < end);
        }
        sum = row_sum(local, lane, sum);
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let c = first + k * STEP;
            if (c < end) { store(start + c * p.inner, v[k], w[k], sum); }
        }
        return;
    }
    for (var c = first; c < end; c += STEP) {
        let i = start + c * p.inner;
        sum += term(load_s(i), load_g(i));
    }
    sum = row_sum(local, lane, sum);
    for (var c = first; c < end; c += STEP) {
        let i = start + c * p.inner;
        store(i, load_s(i), load_g(i), sum);
    }
}

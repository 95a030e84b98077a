// softmax and log_softmax over the middle of a contiguous [outer, length, inner].
// LANES invocations share a row and ROWS rows share a workgroup.
// uses store, rows, math
override X: u32 = F32;
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
fn load(i: u32) -> vec2<Acc> {
    let at = p.x_offset + i;
    if (PAIRS) { return read_two_x(at); }
    return vec2(read_x(at), Acc(0));
}
fn store(i: u32, v: vec2<Acc>) {
    if (PAIRS) { store_two(p.y_offset + i, v.x, v.y); } else { store_y(p.y_offset + i, v.x); }
}
fn decay(v: vec2<Acc>) -> vec2<Acc> {
    if (PAIRS) { return vec2(m_decay(v.x), m_decay(v.y)); }
    return vec2(m_decay(v.x), Acc(0));
}
fn both(v: vec2<Acc>) -> Acc {
    if (PAIRS) { return v.x + v.y; }
    return v.x;
}
fn largest(top: Acc, v: vec2<Acc>) -> Acc {
    if (PAIRS) { return larger(top, larger(v.x, v.y)); }
    return larger(top, v.x);
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
    let least = from_words(p.least[0], p.least[1]);
    var top = least;
    var sum = Acc(0);
    if (HELD > 0u) {
        var held: array<vec2<Acc>, ROOM>;
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            held[k] = load(start + min(first + k * STEP, p.length - BOTH) * p.inner);
        }
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            top = select(top, largest(top, held[k]), first + k * STEP < end);
        }
        top = row_max(local, lane, top);
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            held[k] -= top;
            let e = decay(held[k]);
            sum += select(Acc(0), both(e), first + k * STEP < end);
            if (!LOG) { held[k] = e; }
        }
        sum = row_sum(local, lane, sum);
        let log_sum = m_ln(sum);
        for (var k = 0u; k < HELD; k++) { // unroll HELD
            let c = first + k * STEP;
            if (c < end) { store(start + c * p.inner, select(held[k] / sum, held[k] - log_sum, LOG)); }
        }
        return;
    }
    for (var c = first; c < end; c += STEP) { top = largest(top, load(start + c * p.inner)); }
    top = row_max(local, lane, top);
    for (var c = first; c < end; c += STEP) { sum += both(decay(load(start + c * p.inner) - top)); }
    sum = row_sum(local, lane, sum);
    let log_sum = m_ln(sum);
    for (var c = first; c < end; c += STEP) {
        let v = load(start + c * p.inner) - top;
        store(start + c * p.inner, select(decay(v) / sum, v - log_sum, LOG));
    }
}

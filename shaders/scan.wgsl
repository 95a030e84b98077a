// Running results along lines of (outer, length, inner): each element combined with all before it.
// LANES invocations walk a part of a line together, each ITEMS neighbours of a step, and ROWS parts share a
// workgroup. A line of several parts takes three dispatches: the total of each part, running totals
// of those, and the parts again, each from the total before it. Two elements are combined in an
// order that the sizes alone decide.
// uses store
override X: u32 = F32;
override Y: u32 = F32;
override B: u32 = F32;
override I: u32 = I64;
override OP: u32 = SUM;
override STAGE: u32 = WHOLE;
// Whether to tell where the result was found.
override FOUND: bool = false;
// Whether a line begins anew where its key differs from the one before.
override SEGMENTED: bool = false;
// Whether a key is two words.
override LONG_KEYS: bool = false;
override LANES: u32 = 64u;
override ITEMS: u32 = 1u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    lines: u32,
    length: u32,
    inner: u32,
    // Parts of a line and their length.
    splits: u32,
    part: u32,
    reverse: u32,
    x_offset: u32,
    y_offset: u32,
    b_offset: u32,
    i_offset: u32,
    // By how much the place of a key grows with outer, place and inner.
    key_outer: u32,
    key_step: u32,
    key_inner: u32,
    // Whether the largest key differs from itself.
    lone: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;
@group(0) @binding(3) var<storage, read_write> totals: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<u32>;
@group(0) @binding(5) var<storage, read> b: array<u32>;
@group(0) @binding(6) var<storage, read> keys: array<u32>;
@group(0) @binding(7) var<storage, read> high_keys: array<u32>;

struct State {
    v: Acc,
    m: Acc, // what all before is multiplied by, in a recurrence
    at: u32,
    some: u32, // 0: no element; 1: one; 2: one that nothing before reaches
}
var<workgroup> kept: array<State, WG>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn load_b(i: u32) -> Acc {
    let w = word(B, i);
    return decode(B, b[w], b[w + wide(B)], i);
}

// What comes through a step: nothing stays nothing, also where factors overflow.
fn through(m: Acc, s: Acc) -> Acc {
    return select(s, m * s, is_true(s));
}

fn combine(l: State, r: State) -> State {
    if (l.some == 0u || r.some == 2u) { return r; }
    if (r.some == 0u) { return l; }
    var s = r;
    s.some = l.some;
    switch OP {
        case SUM: { s.v = l.v + r.v; }
        case PROD: { s.v = l.v * r.v; }
        case MAX, MIN: {
            let later = select(at_most(r.v, l.v), at_most(l.v, r.v), OP == MAX);
            if (!is_nan(r.v) && (is_nan(l.v) || !later)) {
                s.v = l.v;
                s.at = l.at;
            }
        }
        case BLEND: { s.v = blend(l.v, r.v); }
        case OWN, BEFORE: {
            s.v = r.v + through(r.m, l.v);
            s.m = through(r.m, l.m);
        }
        default: {}
    }
    return s;
}

fn load_total(i: u32) -> State {
    let t = 6u * i;
    return State(from_words(totals[t], totals[t + 1u]), from_words(totals[t + 2u], totals[t + 3u]),
        totals[t + 4u], totals[t + 5u]);
}
fn store_total(i: u32, s: State) {
    let t = 6u * i;
    let v = encode(ACC, s.v);
    let m = encode(ACC, s.m);
    totals[t] = v.x;
    totals[t + 1u] = v.y;
    totals[t + 2u] = m.x;
    totals[t + 3u] = m.y;
    totals[t + 4u] = s.at;
    totals[t + 5u] = s.some;
}

// Where element k of a line lies, in the order of the walk.
fn place(k: u32) -> u32 {
    return select(k, p.length - 1u - k, p.reverse == 1u);
}
fn element(line: u32, k: u32) -> u32 {
    return (line / p.inner * p.length + place(k)) * p.inner + line % p.inner;
}

fn begins(line: u32, k: u32) -> bool {
    if (k == 0u) { return true; }
    let base = line / p.inner * p.key_outer + line % p.inner * p.key_inner;
    let a = base + place(k - 1u) * p.key_step;
    let c = base + place(k) * p.key_step;
    var differs = keys[a] != keys[c];
    var last = keys[c] == 0xffffffffu;
    if (LONG_KEYS) {
        differs = differs || high_keys[a] != high_keys[c];
        last = last && high_keys[c] == 0xffffffffu;
    }
    return differs || (p.lone == 1u && last);
}

fn load(line: u32, k: u32) -> State {
    if (STAGE == TOTALS) { return load_total(line * p.length + k); }
    let e = element(line, k);
    var s = State(load_x(p.x_offset + e), Acc(0), place(k), 1u);
    if (OP == OWN && k > 0u) { s.m = load_b(p.b_offset + e); }
    if (OP == BEFORE && k > 0u) { s.m = load_b(p.b_offset + element(line, k - 1u)); }
    if (SEGMENTED && begins(line, k)) { s.some = 2u; }
    return s;
}

// Stores the running result at element k of a line.
fn put(line: u32, k: u32, s: State) {
    if (STAGE == TOTALS) {
        store_total(line * p.length + k, s);
    } else if (STAGE != PARTS) {
        let e = element(line, k);
        store_y(p.y_offset + e, s.v);
        if (FOUND) {
            let w = word(I, p.i_offset + e);
            found[w] = s.at;
            if (wide(I) == 1u) { found[w + 1u] = 0u; }
        }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let job = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = job < p.lines * p.splits;
    let line = job % p.lines;
    let split = job / p.lines;
    var carry = State(Acc(0), Acc(0), 0u, 0u);
    if (STAGE == APPLY && live && split > 0u) {
        carry = load_total(line * p.splits + split - 1u);
    }
    for (var base = 0u; base < p.part; base += LANES * ITEMS) {
        // Running results of an invocation's own elements, and then of those before them.
        var own: array<State, ITEMS>;
        var s = State(Acc(0), Acc(0), 0u, 0u);
        let first = base + lane * ITEMS;
        let end = select(0u, min(p.part, p.length - min(p.length, split * p.part)), live);
        for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
            if (first + i < end) { s = combine(s, load(line, split * p.part + first + i)); }
            own[i] = s;
        }
        var before = carry;
        if (LANES > 1u) {
            for (var step = 1u; step < LANES; step *= 2u) {
                kept[local] = s;
                workgroupBarrier();
                if (lane >= step) { s = combine(kept[local - step], s); }
                workgroupBarrier();
            }
            kept[local] = s;
            workgroupBarrier();
            if (lane > 0u) { before = combine(carry, kept[local - 1u]); }
            s = kept[local - lane + LANES - 1u];
            workgroupBarrier();
        }
        for (var i = 0u; i < ITEMS; i++) { // unroll ITEMS
            if (first + i < end) { put(line, split * p.part + first + i, combine(before, own[i])); }
        }
        carry = combine(carry, s);
    }
    if (STAGE == PARTS && live && lane == 0u) { store_total(line * p.splits + split, carry); }
}

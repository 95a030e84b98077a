// Connectionist temporal classification. `forward` and `backward`: logarithms of sums over the paths that
// reach each place at each time, from either end, a workgroup for a sequence; `forward` also gives the
// losses. Their gradient by log-probabilities that come from a log-softmax: `spread` for all classes,
// `gather` again for those that a sequence has. -inf stands for what no path reaches. Of long sequences each
// dispatch has some of the times, those from `first` on; places before or behind these are in a row more.
// uses math
override WG: u32 = 64u;

struct Params {
    count: u32, // sequences
    first: u32,
    steps: u32, // times from there on
    classes: u32,
    places: u32, // of the longest sequence, with blanks
    blank: u32,
    most: u32, // classes that a sequence has, at most
    zero: u32, // whether infinite losses have no gradient
    x_offset: u32,
    y_offset: u32,
    g_offset: u32,
    pad: u32,
    least: vec2<u32>, // the bits of -inf, which WGSL cannot write
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> alpha: array<u32>;
@group(0) @binding(2) var<storage, read_write> beta: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<u32>;
// For each sequence: its times, its labels and where they begin, its classes and where they begin; then
// labels, and for each class itself, its places and where they begin; then these places.
@group(0) @binding(5) var<storage, read> table: array<u32>;
@group(0) @binding(6) var<storage, read> losses: array<u32>;
@group(0) @binding(7) var<storage, read> g: array<u32>;

fn never() -> Acc {
    return from_words(p.least.x, p.least.y);
}
fn log_probability(t: u32, b: u32, c: u32) -> Acc {
    let w = word(ACC, p.x_offset + (t * p.count + b) * p.classes + c);
    return from_words(x[w], x[w + wide(ACC)]);
}
fn cell(b: u32, row: u32, s: u32) -> u32 {
    return word(ACC, (b * (p.steps + 1u) + row) * p.places + s);
}
// The first row is of the time before the first, the last one of that behind the last.
fn reached(b: u32, t: u32, s: u32) -> Acc {
    let w = cell(b, t + 1u, s);
    return from_words(alpha[w], alpha[w + wide(ACC)]);
}
fn left(b: u32, t: u32, s: u32) -> Acc {
    let w = cell(b, t, s);
    return from_words(beta[w], beta[w + wide(ACC)]);
}
fn write_y(i: u32, v: Acc) {
    let w = word(ACC, p.y_offset + i);
    let bits = encode(ACC, v);
    y[w] = bits.x;
    if (wide(ACC) == 1u) { y[w + 1u] = bits.y; }
}
// The label at place s of a sequence with blanks between all labels and around them.
fn label(b: u32, s: u32) -> u32 {
    if (s % 2u == 0u) { return p.blank; }
    return table[table[5u * b + 2u] + s / 2u];
}
// Whether a path may go from place s - 2 to s, skipping a blank.
fn skips(b: u32, s: u32) -> bool {
    return s % 2u == 1u && s >= 3u && label(b, s) != label(b, s - 2u);
}
fn log_sum(a: Acc, b: Acc) -> Acc {
    let top = m_max(a, b);
    if (m_is_inf(top) || is_nan(top)) { return top; }
    return top + m_ln(m_exp(a - top) + m_exp(b - top));
}
fn meet() {
    storageBarrier();
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let b = group.x + group.y * groups.x;
    if (b >= p.count) { return; }
    let times = table[5u * b];
    let places = 2u * table[5u * b + 1u] + 1u;
    for (var t = 0u; t < p.steps; t++) {
        let time = p.first + t;
        for (var s = local; s < places && time < times; s += WG) {
            var v = never();
            if (time == 0u) {
                if (s < 2u) { v = log_probability(t, b, label(b, s)); }
            } else {
                let before = t - 1u; // the row in front of the first where t is 0
                v = reached(b, before, s);
                if (s >= 1u) { v = log_sum(v, reached(b, before, s - 1u)); }
                if (skips(b, s)) { v = log_sum(v, reached(b, before, s - 2u)); }
                v += log_probability(t, b, label(b, s));
            }
            let w = cell(b, t + 1u, s);
            let bits = encode(ACC, v);
            alpha[w] = bits.x;
            if (wide(ACC) == 1u) { alpha[w + 1u] = bits.y; }
        }
        meet();
    }
    if (local != 0u) { return; }
    if (times == 0u) {
        write_y(b, select(-never(), Acc(0), places == 1u));
        return;
    }
    // The sequence ends before these times, or behind them.
    if (times <= p.first || times > p.first + p.steps) { return; }
    let last = times - 1u - p.first;
    var sum = reached(b, last, places - 1u);
    if (places > 1u) { sum = log_sum(sum, reached(b, last, places - 2u)); }
    write_y(b, -sum);
}

@compute @workgroup_size(WG)
fn backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let b = group.x + group.y * groups.x;
    if (b >= p.count) { return; }
    let times = table[5u * b];
    let places = 2u * table[5u * b + 1u] + 1u;
    for (var back = 0u; back < p.steps; back++) {
        let t = p.steps - 1u - back;
        let time = p.first + t;
        for (var s = local; s < places && time < times; s += WG) {
            var v = never();
            if (time + 1u == times) {
                if (s + 2u >= places) { v = log_probability(t, b, label(b, s)); }
            } else {
                v = left(b, t + 1u, s);
                if (s + 1u < places) { v = log_sum(v, left(b, t + 1u, s + 1u)); }
                if (s + 2u < places && skips(b, s + 2u)) { v = log_sum(v, left(b, t + 1u, s + 2u)); }
                v += log_probability(t, b, label(b, s));
            }
            let w = cell(b, t, s);
            let bits = encode(ACC, v);
            beta[w] = bits.x;
            if (wide(ACC) == 1u) { beta[w + 1u] = bits.y; }
        }
        meet();
    }
}

// The gradient at a time and class, where paths through it have this sum.
fn slope(t: u32, b: u32, c: u32, sum: Acc) {
    let to = (t * p.count + b) * p.classes + c;
    let w = word(ACC, b);
    let loss = from_words(losses[w], losses[w + wide(ACC)]);
    if (p.first + t >= table[5u * b] || (p.zero == 1u && m_is_inf(loss))) {
        write_y(to, Acc(0));
        return;
    }
    let gw = word(ACC, p.g_offset + b);
    let lp = log_probability(t, b, c);
    var part = Acc(0);
    if (m_is_inf(loss)) {
        part = m_nan();
    } else if (!m_is_inf(sum)) {
        part = m_exp(sum + loss - lp);
    }
    write_y(to, (m_exp(lp) - part) * from_words(g[gw], g[gw + wide(ACC)]));
}
@compute @workgroup_size(WG)
fn spread(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    let row = id / p.classes;
    if (row >= p.steps * p.count) { return; }
    slope(row / p.count, row % p.count, id % p.classes, never());
}
@compute @workgroup_size(WG)
fn gather(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    let row = id / p.most;
    let which = id % p.most;
    let t = row / p.count;
    let b = row % p.count;
    if (t >= p.steps || p.first + t >= table[5u * b] || which >= table[5u * b + 3u]) { return; }
    let entry = table[5u * b + 4u] + 3u * which;
    let first = table[entry + 2u];
    var sum = never();
    for (var k = first; k < first + table[entry + 1u]; k++) {
        sum = log_sum(sum, reached(b, t, table[k]) + left(b, t, table[k]));
    }
    slope(t, b, table[entry], sum);
}

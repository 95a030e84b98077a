// Margin losses of contiguous scores x [rows, classes]: for each label of a row and each class that is none of them,
// max(0, x[class] - x[label] + margin), or its square, times the label's weight over the classes. A row has one label,
// or as many as classes, up to the first -1. LANES invocations share a row and ROWS rows a workgroup; the only workgroup
// adds up all rows.
// uses store, rows, index, fault
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override MANY: bool = false; // as many labels as classes
override SQUARE: bool = false;
override ALONE: bool = false; // the only workgroup
override SHARE: u32 = 64u; // invocations that share a row
override LANES: u32 = 64u; // the same, or the whole workgroup
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    classes: u32,
    // Parts of a row that different workgroups take, and the classes of one part.
    parts: u32,
    part: u32,
    x_offset: u32,
    i_offset: u32,
    w_offset: u32,
    y_offset: u32,
    counts_offset: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
    pad: u32,
    margin: vec2<u32>,
    share: vec2<u32>, // 1 / classes
    scale: vec2<u32>, // of sums
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>; // of parts, or of all
@group(0) @binding(2) var<storage, read_write> counts: array<u32>; // how often a class is a label, if MANY
@group(0) @binding(3) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read> x: array<u32>;
@group(0) @binding(5) var<storage, read> index: array<u32>;
@group(0) @binding(6) var<storage, read> weight: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, p.x_offset + i);
    return decode(X, x[w], x[w + wide(X)], p.x_offset + i);
}
fn load_weight(c: u32) -> Acc {
    let w = word(W, p.w_offset + c);
    return decode(W, weight[w], weight[w + wide(W)], p.w_offset + c);
}

// What a class counts whose score is d above that of this label.
fn above(d: Acc, label: u32) -> Acc {
    var v = d + from_words(p.margin.x, p.margin.y);
    if (!less(Acc(0), v)) { return Acc(0); }
    if (SQUARE) { v *= v; }
    if (!HAS_WEIGHT) { return v * from_words(p.share.x, p.share.y); }
    let factor = divide(load_weight(label), Acc(p.classes));
    // Nothing counts nothing, infinity too.
    if (!is_true(factor)) { return Acc(0); }
    return v * factor;
}

fn of_part(job: u32, lane: u32) -> Acc {
    let row = job / p.parts;
    let begin = (job - row * p.parts) * p.part;
    let end = min(begin + p.part, p.classes);
    let start = row * p.classes;
    let labels = select(1u, p.classes, MANY);
    var sum = Acc(0);
    for (var c = begin + lane; c < end; c += SHARE) {
        let own = load_x(start + c);
        var often = 0u;
        var v = Acc(0);
        for (var k = 0u; k < labels; k++) {
            let at = p.i_offset + row * labels + k;
            var t = load_index(at);
            if (MANY && t == -1) { break; }
            if (t < 0 || t >= bitcast<i32>(p.classes)) {
                complain(at, p.classes);
                t = 0;
            }
            let label = u32(t);
            if (label == c) { often += 1u; } else { v += above(own - load_x(start + label), label); }
        }
        if (MANY) { counts[p.counts_offset + start + c] = often; }
        if (often == 0u) { sum += v; }
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let job = (group.x + group.y * groups.x) * ROWS + local / SHARE;
    let jobs = p.rows * p.parts;
    let last = select(min(job + 1u, jobs), jobs, ALONE);
    var sum = Acc(0);
    for (var j = job; j < last; j += ROWS) { sum += of_part(j, local % SHARE); }
    let lane = local % LANES;
    sum = row_sum(local, lane, sum);
    if (job >= jobs || lane != 0u) { return; }
    store_y(p.y_offset + job, sum * from_words(p.scale.x, p.scale.y));
}

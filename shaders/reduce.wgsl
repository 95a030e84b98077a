// y[row, split] = reduction of x over a part of the reduced dimensions, for sum, prod, max, min,
// any and all. LANES invocations share a row and ROWS rows share a workgroup.
// uses store, dims
override X: u32 = F32;
override Y: u32 = F32;
override OP: u32 = SUM;
override MAP: u32 = KEEP; // what happens to an element first
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override PAIRS: bool = false; // results 2 i and 2 i + 1 share a word
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

// Rows of an invocation that is alone in them.
const OWN: u32 = select(1u, 2u, PAIRS && LANES == 1u);

struct Params {
    rows: u32,
    length: u32,
    // Parts of a row that different workgroups take, and the elements of one part.
    splits: u32,
    part: u32,
    x_offset: u32,
    y_offset: u32,
    // What the result is multiplied with, in float kernels (1 / n for a mean).
    scale: f32,
    pad: u32,
    identity: vec4<u32>,
    // The kept and the reduced dimensions.
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
var<workgroup> partial: array<Acc, WG>;

// Element `i`, in whose place a kernel may have what makes it.
fn read_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn load_x(i: u32) -> Acc {
    let v = read_x(i);
    switch MAP {
        case SQUARE: { return v * v; }
        case MAGNITUDE: { return abs(v); }
        case TRUTH: { return select(Acc(0), Acc(1), is_true(v)); }
        case PRESENT: { return select(v, Acc(0), is_nan(v)); }
        default: { return v; }
    }
}

fn combine(a: Acc, b: Acc) -> Acc {
    switch OP {
        case PROD: { return a * b; }
        case MAX: { return larger(a, b); }
        case MIN: { return smaller(a, b); }
        case ANY: { return select(a, b, is_true(b)); }
        case ALL: { return select(b, a, is_true(b)); }
        default: { return a + b; }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    var job = ((group.x + group.y * groups.x) * ROWS + local / LANES) * OWN;
    let lane = local % LANES;
    let live = job < p.rows * p.splits;
    // Alone in its row, an invocation has those next to it in the rows next to it, whose elements are near.
    if (LANES == 1u) { job = (job % p.rows) * p.splits + job / p.rows; }
    var acc = from_words(p.identity.x, p.identity.y);
    var next = acc;
    if (live) {
        let row = job / p.splits;
        let begin = (job - row * p.splits) * p.part;
        let end = min(begin + p.part, p.length);
        let start = p.x_offset + outer_offset(row);
        var other = start;
        if (OWN == 2u) { other = p.x_offset + outer_offset(min(row + 1u, p.rows - 1u)); }
        for (var r = begin + lane; r < end; r += LANES) {
            let e = inner_offset(r);
            acc = combine(acc, load_x(start + e));
            if (OWN == 2u) { next = combine(next, load_x(other + e)); }
        }
    }
    if (LANES > 1u) {
        partial[local] = acc;
        workgroupBarrier();
        for (var s = LANES / 2u; s > 0u; s /= 2u) {
            if (lane < s) { partial[local] = combine(partial[local], partial[local + s]); }
            workgroupBarrier();
        }
        acc = partial[local];
        if (PAIRS) { next = partial[(local + LANES) % WG]; }
    }
    if (ACC == F32) {
        acc *= Acc(p.scale);
        next *= Acc(p.scale);
    }
    if (!live || lane != 0u) { return; }
    if (!PAIRS) {
        store_y(p.y_offset + job, acc);
    } else if (job % 2u == 0u) {
        let at = p.y_offset + job;
        if (job + 1u < p.rows) { store_two(at, acc, next); } else { store_last(at, acc); }
    }
}

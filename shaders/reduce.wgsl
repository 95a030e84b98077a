// y[row, split] = reduction of x over a part of the reduced dimensions, for sum, prod, max, min,
// any and all. LANES invocations share a row and ROWS rows share a workgroup.
override X: u32 = F32;
override Y: u32 = F32;
override OP: u32 = 0u;
// What happens to an element first: 0 nothing, 1 its square, 2 its magnitude, 3 whether it is true,
// 4 zero where it is NaN.
override MAP: u32 = 0u;
override KEPT: u32 = 1u;
override REDUCED: u32 = 1u;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

const SUM: u32 = 0u;
const PROD: u32 = 1u;
const MAX: u32 = 2u;
const MIN: u32 = 3u;
const ANY: u32 = 4u;
const ALL: u32 = 5u;

struct Params {
    rows: u32,
    length: u32,
    // Parts of a row that different workgroups take, and the elements of one part.
    splits: u32,
    part: u32,
    x_offset: u32,
    y_offset: u32,
    // What the result is multiplied with, in float kernels (1 / n for a mean).
    scale: u32,
    pad: u32,
    identity: vec4<u32>,
    // Innermost first.
    kept_size: array<vec4<u32>, 2>,
    kept_stride: array<vec4<u32>, 2>,
    reduced_size: array<vec4<u32>, 2>,
    reduced_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
var<workgroup> partial: array<Acc, WG>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    let v = decode(X, x[w], x[w + wide(X)], i);
    switch MAP {
        case 1u: { return v * v; }
        case 2u: { return abs(v); }
        case 3u: { return select(Acc(0), Acc(1), is_true(v)); }
        case 4u: { return select(v, Acc(0), is_nan(v)); }
        default: { return v; }
    }
}

fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v);
    let w = word(Y, i);
    if (lane_log(Y) == 0u) {
        atomicStore(&y[w], bits.x);
        if (wide(Y) == 1u) { atomicStore(&y[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(Y) << lane_bit(Y, i);
        atomicXor(&y[w], (atomicLoad(&y[w]) ^ (bits.x << lane_bit(Y, i))) & mask);
    }
}

fn combine(a: Acc, b: Acc) -> Acc {
    switch OP {
        case PROD: { return a * b; }
        case MAX: { return select(select(b, a, a > b), a, is_nan(a)); }
        case MIN: { return select(select(b, a, a < b), a, is_nan(a)); }
        case ANY: { return select(a, b, b != Acc(0)); }
        case ALL: { return select(b, a, b != Acc(0)); }
        default: { return a + b; }
    }
}

fn row_start(row: u32) -> u32 {
    var o = p.x_offset;
    var rest = row;
    for (var d = 0u; d < KEPT; d++) {
        let q = rest / p.kept_size[d / 4u][d % 4u];
        o += (rest - q * p.kept_size[d / 4u][d % 4u]) * p.kept_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
}

fn element(r: u32) -> u32 {
    if (REDUCED == 1u) { return r * p.reduced_stride[0].x; }
    var o = 0u;
    var rest = r;
    for (var d = 0u; d < REDUCED; d++) {
        let q = rest / p.reduced_size[d / 4u][d % 4u];
        o += (rest - q * p.reduced_size[d / 4u][d % 4u]) * p.reduced_stride[d / 4u][d % 4u];
        rest = q;
    }
    return o;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let job = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = job < p.rows * p.splits;
    var acc = from_words(p.identity.x, p.identity.y);
    if (live) {
        let row = job / p.splits;
        let begin = (job - row * p.splits) * p.part;
        let end = min(begin + p.part, p.length);
        let start = row_start(row);
        for (var r = begin + lane; r < end; r += LANES) {
            acc = combine(acc, load_x(start + element(r)));
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
    }
    if (live && lane == 0u) {
        if (ACC == F32) { acc *= Acc(bitcast<f32>(p.scale)); }
        store_y(p.y_offset + job, acc);
    }
}

// The largest or smallest element of each row and its index, the first where several are equal;
// a NaN beats every number. LANES invocations share a row and ROWS rows share a workgroup.
// uses store, dims
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
override LARGEST: bool = true;
// Whether x holds candidates of an earlier pass, whose indices come with them.
override AGAIN: bool = false;
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    length: u32,
    splits: u32,
    part: u32,
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    pad: u32,
    // The kept and the reduced dimensions.
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> index: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> candidates: array<u32>;
var<workgroup> best_value: array<Acc, WG>;
var<workgroup> best_index: array<u32, WG>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn store_index(i: u32, v: u32) {
    let w = word(I, i);
    atomicStore(&index[w], v);
    if (wide(I) == 1u) { atomicStore(&index[w + 1u], 0u); }
}

// Whether (a, i) comes before (b, j). An index of 0xffffffff means no element yet.
fn beats(a: Acc, i: u32, b: Acc, j: u32) -> bool {
    if (i == 0xffffffffu) { return false; }
    if (j == 0xffffffffu) { return true; }
    if (is_nan(a) || is_nan(b)) {
        return select(false, !is_nan(b) || i < j, is_nan(a));
    }
    if (equal(a, b)) { return i < j; }
    return select(less(a, b), less(b, a), LARGEST);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    var job = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = job < p.rows * p.splits;
    // As in reduce.wgsl.
    if (LANES == 1u) { job = (job % p.rows) * p.splits + job / p.rows; }
    var value = Acc(0);
    var found = 0xffffffffu;
    if (live) {
        let row = job / p.splits;
        let begin = (job - row * p.splits) * p.part;
        let end = min(begin + p.part, p.length);
        let start = p.x_offset + outer_offset(row);
        for (var r = begin + lane; r < end; r += LANES) {
            let e = start + inner_offset(r);
            let v = load_x(e);
            var i = r;
            if (AGAIN) { i = candidates[e]; }
            if (beats(v, i, value, found)) {
                value = v;
                found = i;
            }
        }
    }
    best_value[local] = value;
    best_index[local] = found;
    workgroupBarrier();
    for (var s = LANES / 2u; s > 0u; s /= 2u) {
        if (lane < s) {
            let v = best_value[local + s];
            let i = best_index[local + s];
            if (beats(v, i, best_value[local], best_index[local])) {
                best_value[local] = v;
                best_index[local] = i;
            }
        }
        workgroupBarrier();
    }
    if (live && lane == 0u) {
        store_y(p.y_offset + job, best_value[local]);
        store_index(p.i_offset + job, best_index[local]);
    }
}

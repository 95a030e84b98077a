// Of each row of x the mean of the elements that are not NaN, and how many those are. Where several workgroups have
// parts of a row, each gives the sum of its part in the place of a mean, and `join` makes a result of them. LANES
// invocations share a row and ROWS rows share a workgroup.
// uses store, rows, dims
override X: u32 = F32;
override Y: u32 = F32;
override PART: bool = false; // the results are sums
override OUTER: u32 = 1u;
override INNER: u32 = 1u;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    length: u32,
    // Parts of a row that different workgroups take, and the elements of one part.
    splits: u32,
    part: u32,
    x_offset: u32,
    y_offset: u32,
    n_offset: u32,
    pad: u32,
    // The kept and the reduced dimensions.
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> counts: array<u32>; // of the type computed in, as in `parts`
@group(0) @binding(3) var<storage, read> x: array<u32>; // the sums of parts for `join`
@group(0) @binding(4) var<storage, read> parts: array<u32>; // their counts

// Element `i`, in whose place a kernel may have what makes it.
fn read_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn load_count(i: u32) -> Acc {
    let w = word(ACC, i);
    return decode(ACC, parts[w], parts[w + wide(ACC)], i);
}
fn store_count(at: u32, count: Acc) {
    let bits = encode(ACC, count);
    let w = word(ACC, p.n_offset + at);
    counts[w] = bits.x;
    if (wide(ACC) == 1u) { counts[w + 1u] = bits.y; }
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
    let row = job / p.splits;
    let begin = (job - row * p.splits) * p.part;
    let end = select(begin, min(begin + p.part, p.length), live);
    let start = p.x_offset + outer_offset(select(0u, row, live));
    var sum = Acc(0);
    var count = 0u;
    for (var r = begin + lane; r < end; r += LANES) {
        let v = read_x(start + inner_offset(r));
        if (!is_nan(v)) {
            sum += v;
            count += 1u;
        }
    }
    sum = row_sum(local, lane, sum);
    // Of one workgroup it is exact: fewer than 2^24.
    let all = row_sum(local, lane, Acc(count));
    if (!live || lane != 0u) { return; }
    if (PART) {
        store_y(p.y_offset + job, sum);
    } else {
        store_y(p.y_offset + job, divide(sum, all));
    }
    store_count(job, all);
}

@compute @workgroup_size(WG)
fn join(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = row < p.rows;
    let end = select(0u, p.splits, live);
    let start = row * p.splits;
    var sum = Acc(0);
    var count = Acc(0);
    for (var k = lane; k < end; k += LANES) {
        sum += read_x(start + k);
        count += load_count(start + k);
    }
    sum = row_sum(local, lane, sum);
    count = row_sum(local, lane, count);
    if (!live || lane != 0u) { return; }
    store_y(p.y_offset + row, divide(sum, count));
    store_count(row, count);
}

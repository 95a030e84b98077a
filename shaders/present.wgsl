// Of each row of x the mean of the elements that are not NaN, and how many those are. Where several workgroups have
// parts of a row, each gives the sum of its part in the place of a mean, and `join` makes a result of them. LANES
// invocations share a row and ROWS rows share a workgroup.
// uses store, rows, dims, parts
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
    beside_offset: u32,
    pad: u32,
    // The kept and the reduced dimensions.
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> beside: array<u32>; // the counts, in the type of `parts`
@group(0) @binding(3) var<storage, read> x: array<u32>; // the sums of parts for `join`
@group(0) @binding(4) var<storage, read> parts: array<u32>; // their counts

// Element `i`, in whose place a kernel may have what makes it.
fn read_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let s = share_of_part(group, groups, local);
    var sum = Acc(0);
    var count = 0u;
    for (var r = s.begin + s.lane; r < s.end; r += LANES) {
        let v = read_x(s.start + inner_offset(r));
        if (!is_nan(v)) {
            sum += v;
            count += 1u;
        }
    }
    sum = row_sum(local, s.lane, sum);
    // Of one workgroup it is exact: fewer than 2^24.
    let all = row_sum(local, s.lane, Acc(count));
    if (!s.live || s.lane != 0u) { return; }
    if (PART) {
        store_y(p.y_offset + s.job, sum);
    } else {
        store_y(p.y_offset + s.job, divide(sum, all));
    }
    store_beside(s.job, all);
}

@compute @workgroup_size(WG)
fn join(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let s = share_of_row(group, groups, local);
    var sum = Acc(0);
    var count = Acc(0);
    for (var k = s.lane; k < s.end; k += LANES) {
        sum += read_x(s.start + k);
        count += load_beside(s.start + k);
    }
    sum = row_sum(local, s.lane, sum);
    count = row_sum(local, s.lane, count);
    if (!s.live || s.lane != 0u) { return; }
    store_y(p.y_offset + s.job, divide(sum, count));
    store_beside(s.job, count);
}

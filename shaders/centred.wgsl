// Of each row of x the centre of its elements, and the sum of what their distances from it give: the mean and
// squares, for a variance or its root, or the largest and exponentials, for the logarithm of their sum. Where
// several workgroups have parts of a row, each gives both, and `join` makes a result of them. LANES invocations
// share a row and ROWS rows share a workgroup.
// uses store, rows, dims, parts, math
override X: u32 = F32;
override Y: u32 = F32;
override LOG: bool = false; // largest and exponentials
override ROOT: bool = false; // of the variance
override PART: bool = false; // the results are sums: of what distances give, and of themselves
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
    // What squares are divided by, and the centre of nothing.
    free: vec2<u32>,
    nothing: vec2<u32>,
    // The kept and the reduced dimensions.
    outer_size: array<vec4<u32>, 2>,
    outer_stride: array<vec4<u32>, 2>,
    inner_size: array<vec4<u32>, 2>,
    inner_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> beside: array<u32>; // the centres, in the type of `parts`
@group(0) @binding(3) var<storage, read> x: array<u32>; // the sums of parts for `join`
@group(0) @binding(4) var<storage, read> parts: array<u32>; // their centres

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

// One centre of two, and of those of all invocations of a row.
fn nearer(a: Acc, b: Acc) -> Acc {
    if (LOG) { return larger(a, b); }
    return a + b;
}
fn row_centre(local: u32, lane: u32, v: Acc, n: u32) -> Acc {
    if (LOG) { return row_max(local, lane, v); }
    return divide(row_sum(local, lane, v), Acc(n));
}
// What distances are measured from: an infinity would have none from itself.
fn origin(centre: Acc) -> Acc {
    if (LOG && m_is_inf(centre)) { return Acc(0); }
    return centre;
}
fn far(distance: Acc) -> Acc {
    if (LOG) { return m_exp(distance); }
    return distance * distance;
}

fn result(centre: Acc, sum: Acc) -> Acc {
    if (LOG) { return m_ln(sum) + origin(centre); }
    let v = divide(sum, from_words(p.free.x, p.free.y));
    if (ROOT) { return m_sqrt(v); }
    return v;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let s = share_of_part(group, groups, local);
    var centre = from_words(p.nothing.x, p.nothing.y);
    for (var r = s.begin + s.lane; r < s.end; r += LANES) {
        centre = nearer(centre, load_x(s.start + inner_offset(r)));
    }
    centre = row_centre(local, s.lane, centre, s.end - s.begin);
    let base = origin(centre);
    var sum = Acc(0);
    var rest = Acc(0);
    for (var r = s.begin + s.lane; r < s.end; r += LANES) {
        let d = load_x(s.start + inner_offset(r)) - base;
        sum += far(d);
        if (PART && !LOG) { rest += d; }
    }
    sum = row_sum(local, s.lane, sum);
    if (PART && !LOG) { rest = row_sum(local, s.lane, rest); }
    if (!s.live || s.lane != 0u) { return; }
    if (PART) {
        store_y(p.y_offset + 2u * s.job, sum);
        store_y(p.y_offset + 2u * s.job + 1u, rest);
    } else {
        store_y(p.y_offset + s.job, result(centre, sum));
    }
    store_beside(s.job, centre);
}

fn count(k: u32) -> Acc {
    return Acc(min(p.part, p.length - k * p.part));
}

@compute @workgroup_size(WG)
fn join(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let s = share_of_row(group, groups, local);
    var centre = from_words(p.nothing.x, p.nothing.y);
    for (var k = s.lane; k < s.end; k += LANES) {
        let own = load_beside(s.start + k);
        if (LOG) { centre = larger(centre, own); } else { centre += own * count(k); }
    }
    centre = row_centre(local, s.lane, centre, p.length);
    let base = origin(centre);
    var sum = Acc(0);
    for (var k = s.lane; k < s.end; k += LANES) {
        let own = load_x(2u * (s.start + k));
        let d = origin(load_beside(s.start + k)) - base;
        if (!LOG) {
            // A mean is rounded, so that distances from it have a sum.
            sum += own + d * (Acc(2) * load_x(2u * (s.start + k) + 1u) + d * count(k));
        } else if (is_true(own)) {
            // Of a part without numbers above -inf the sum is zero, whatever it was measured from.
            sum += own * m_exp(d);
        }
    }
    sum = row_sum(local, s.lane, sum);
    if (!s.live || s.lane != 0u) { return; }
    store_y(p.y_offset + s.job, result(centre, sum));
    store_beside(s.job, centre);
}

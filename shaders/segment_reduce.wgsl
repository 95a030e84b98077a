// y[outer, segment, inner] = the sum, mean, largest, smallest or product of the elements of a segment
// of a contiguous x[outer, length, inner]. Segment s of a row goes from index[s] to index[s + 1].
// LANES invocations share a segment and ROWS segments share a workgroup. The other entry gives each
// element of y[outer, length, inner] the value of its segment, or its share.
// uses store, index, each
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
override OP: u32 = SUM;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WORDS: bool = false; // whether an invocation of `spread` has all elements of a word
override WG: u32 = 64u;

struct Params {
    // The words of what changes nothing, and of what every segment begins with.
    identity: vec2<u32>,
    initial: vec2<u32>,
    // The words of the mean of no elements.
    empty: vec2<u32>,
    rows: u32, // elements of y
    segments: u32,
    length: u32,
    inner: u32,
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    pad: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> index: array<u32>;
var<workgroup> partial: array<Acc, WG>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

fn combine(a: Acc, b: Acc) -> Acc {
    switch OP {
        case PROD: { return a * b; }
        case MAX: { return larger(a, b); }
        case MIN: { return smaller(a, b); }
        default: { return a + b; }
    }
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
    var acc = from_words(p.identity.x, p.identity.y);
    var count = 0u;
    if (live) {
        let job = row / p.inner;
        let outer = job / p.segments;
        let at = p.i_offset + outer * (p.segments + 1u) + job % p.segments;
        let end = clamp(load_index(at + 1u), 0, i32(p.length));
        let begin = clamp(load_index(at), 0, end);
        let start = p.x_offset + outer * p.length * p.inner + row % p.inner;
        count = u32(end - begin);
        for (var r = u32(begin) + lane; r < u32(end); r += LANES) {
            acc = combine(acc, load_x(start + r * p.inner));
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
        acc = combine(from_words(p.initial.x, p.initial.y), acc);
        if (OP == MEAN) {
            if (count == 0u) { acc = from_words(p.empty.x, p.empty.y); }
            else { acc /= Acc(count); }
        }
        store_y(p.y_offset + row, acc);
    }
}

// That of the element at a place.
fn element(at: u32) -> Acc {
    let job = at / p.inner;
    let outer = job / p.length;
    let place = i32(job % p.length);
    let bounds = p.i_offset + outer * (p.segments + 1u);
    // How many bounds are not behind the place.
    var low = 0u;
    var high = p.segments + 1u;
    while (low < high) {
        let middle = (low + high) / 2u;
        if (load_index(bounds + middle) <= place) { low = middle + 1u; } else { high = middle; }
    }
    var v = Acc(0);
    if (low > 0u && low <= p.segments) {
        v = load_x(p.x_offset + (outer * p.segments + low - 1u) * p.inner + at % p.inner);
        if (OP == MEAN) {
            v /= Acc(load_index(bounds + low) - load_index(bounds + low - 1u));
        }
    }
    return v;
}

@compute @workgroup_size(WG)
fn spread(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.rows);
}

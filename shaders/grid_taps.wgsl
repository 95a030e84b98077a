// The elements that a sample at a point of a grid reads, with their weights and the weights' slopes by
// the point's coordinates: for each of COUNT^n elements an index in the plane of (depth, height,
// width), which with weight zero is any. An invocation has a point.
override HOW: u32 = LINEAR;
override BORDER: u32 = ZEROS;
override CORNERS: bool = false;
override COUNT: u32 = 2u; // along a dimension
override DIMS: u32 = 2u;
// Whether a point that is nowhere makes the sample NaN.
override NOWHERE: bool = false;
// The type that each step towards a coordinate is rounded to, where that is a half type.
override ROUND: u32 = F32;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    points: u32, // of a sample
    grid_offset: u32,
    pad: u32,
    size: vec4<u32>, // width, height, depth
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> weights: array<u32>;
@group(0) @binding(3) var<storage, read_write> slopes: array<u32>;
@group(0) @binding(4) var<storage, read> grid: array<u32>;

struct Tap {
    at: u32,
    weight: Acc,
    slope: Acc,
}
var<private> taps: array<Tap, 12>;

fn number(i: u32) -> Acc {
    let w = word(ACC, i);
    return from_words(grid[w], grid[w + wide(ACC)]);
}
fn rounded(x: Acc) -> Acc {
    if (ROUND != F16 && ROUND != BF16) { return x; }
    return decode(ROUND, encode(ROUND, x).x, 0u, 0u);
}
fn is_finite(x: Acc) -> bool {
    let bits = encode(ACC, x);
    if (wide(ACC) == 1u) { return (bits.y & 0x7ff00000u) != 0x7ff00000u; }
    return (bits.x & 0x7f800000u) != 0x7f800000u;
}

// A coordinate brought inside, and its slope. What is NaN comes to zero.
struct Inside {
    x: Acc,
    slope: Acc,
}
fn inside(given: Acc, size: u32) -> Inside {
    var x = given;
    var slope = Acc(1);
    if (BORDER == ZEROS) { return Inside(x, slope); }
    let last = Acc(size) - Acc(1);
    if (BORDER == REFLECT) {
        let low = select(Acc(-0.5), Acc(0), CORNERS);
        let span = select(Acc(size), last, CORNERS);
        if (span <= Acc(0) || !is_finite(x)) { return Inside(Acc(0), Acc(0)); }
        let far = abs(x - low);
        let turns = floor(far / span);
        let rest = far - turns * span;
        let odd = turns - Acc(2) * floor(turns * Acc(0.5)) != Acc(0);
        let sign = select(Acc(1), Acc(-1), x < low);
        x = select(rest + low, span - rest + low, odd);
        slope = select(sign, -sign, odd);
    }
    if (at_most(last, x)) { return Inside(last, Acc(0)); }
    if (less(Acc(0), x)) { return Inside(x, slope); }
    return Inside(Acc(0), Acc(0));
}

fn put(i: u32, at: Acc, size: u32, weight: Acc, slope: Acc) {
    taps[i] = Tap(0u, Acc(0), Acc(0));
    if (at_most(Acc(0), at) && less(at, Acc(size))) { taps[i] = Tap(u32(at), weight, slope); }
}

// Keys' cubic for a = -0.75 and its slope, within one of its center and from one to two.
fn near(x: Acc) -> Acc {
    return (Acc(1.25) * x - Acc(2.25)) * x * x + Acc(1);
}
fn far(x: Acc) -> Acc {
    return ((Acc(-0.75) * x + Acc(3.75)) * x - Acc(6)) * x + Acc(3);
}
fn near_slope(x: Acc) -> Acc {
    return (Acc(3.75) * x - Acc(4.5)) * x;
}
fn far_slope(x: Acc) -> Acc {
    return (Acc(-2.25) * x + Acc(7.5)) * x - Acc(6);
}

// The taps of dimension d, four places each.
fn find(d: u32, coordinate: Acc) {
    let size = p.size[d];
    let full = Acc(size) * Acc(0.5);
    let scale = select(full, full - Acc(0.5), CORNERS);
    let moved = rounded(rounded(coordinate + Acc(1)) * scale);
    let x = rounded(moved - select(Acc(0.5), Acc(0), CORNERS));
    let first = 4u * d;
    if (HOW == NEAREST) {
        put(first, round(inside(x, size).x), size, Acc(1), Acc(0));
    } else if (HOW == LINEAR) {
        let at = inside(x, size);
        let low = floor(at.x);
        let t = at.x - low;
        put(first, low, size, Acc(1) - t, -scale * at.slope);
        put(first + 1u, low + Acc(1), size, t, scale * at.slope);
    } else {
        let low = floor(x);
        let t = x - low;
        let u = Acc(1) - t;
        for (var k = 0u; k < 4u; k++) {
            let at = round(inside(low + (Acc(k) - Acc(1)), size).x);
            var weight = far(t + Acc(1));
            var slope = far_slope(t + Acc(1));
            if (k == 1u) {
                weight = near(t);
                slope = near_slope(t);
            } else if (k == 2u) {
                weight = near(u);
                slope = -near_slope(u);
            } else if (k == 3u) {
                weight = far(u + Acc(1));
                slope = -far_slope(u + Acc(1));
            }
            put(first + k, at, size, weight, slope * scale);
        }
    }
}

fn store(to: u32, which: u32, v: Acc) {
    let bits = encode(ACC, v);
    let w = word(ACC, to);
    if (which == 0u) {
        weights[w] = bits.x;
        if (wide(ACC) == 1u) { weights[w + 1u] = bits.y; }
    } else {
        slopes[w] = bits.x;
        if (wide(ACC) == 1u) { slopes[w + 1u] = bits.y; }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    var nowhere = Acc(0);
    for (var d = 0u; d < DIMS; d++) {
        let v = number(p.grid_offset + id * DIMS + d);
        find(d, v);
        // NaN of either size.
        if (!is_finite(v)) { nowhere = from_words(0x7fc00000u, 0x7ff80000u); }
    }
    if (DIMS == 2u) { taps[8] = Tap(0u, Acc(1), Acc(0)); }
    let all = select(COUNT * COUNT * COUNT, COUNT * COUNT, DIMS == 2u);
    let sample = id / p.points;
    let point = id % p.points;
    for (var t = 0u; t < all; t++) {
        let u = taps[t % COUNT];
        let v = taps[4u + t / COUNT % COUNT];
        let z = taps[8u + t / (COUNT * COUNT)];
        let to = (sample * all + t) * p.points + point;
        places[to] = (z.at * p.size.y + v.at) * p.size.x + u.at;
        var weight = u.weight * v.weight * z.weight;
        if (NOWHERE) { weight += nowhere; }
        store(to, 0u, weight);
        let step = p.n * all;
        store(to, 1u, u.slope * v.weight * z.weight);
        store(to + step, 1u, u.weight * v.slope * z.weight);
        if (DIMS == 3u) { store(to + 2u * step, 1u, u.weight * v.weight * z.slope); }
    }
}

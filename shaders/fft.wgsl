// One pass of a discrete Fourier transform along lines of (outer, length, inner), after Stockham: element r
// of transform j is r * (n / radix) + j, times a root of unity, and their transform goes to where the next
// pass, or the result, has it. A line that fits is one pass. Transforms of `radix` elements are made in
// workgroup memory, by radices of 2 to 5, from one half of it to the other.
override X: u32 = C64;
override Y: u32 = C64;
override MOST: u32 = 1024u;
override WG: u32 = WORKGROUP;

struct Params {
    transforms: u32, // of `radix` elements, in all lines
    n: u32, // the length of a line's transform
    radix: u32,
    done: u32, // the product of the radices of earlier passes
    each: u32, // transforms that a workgroup makes
    stages: u32,
    // Elements of a line that are read, and written.
    read: u32,
    kept: u32,
    // By how much the place of an element grows with outer, along the line and with inner.
    x_inner: u32,
    x_length: u32,
    x_offset: u32,
    y_inner: u32,
    y_length: u32,
    y_offset: u32,
    // Whether neighbouring invocations take neighbouring transforms, or elements of one.
    x_across: u32,
    y_across: u32,
    // Of half a spectrum: the length whose ends count once, where the rest counts twice; or 0.
    x_half: u32,
    y_half: u32,
    // Where factors of each element begin in `factors`; NONE without.
    x_factor: u32,
    y_factor: u32,
    // Bit 0: conjugates of the roots; 1, 2: of the factors.
    conjugates: u32,
    // Roots for elements between passes: w^t is low[t % 2^bits] high[t / 2^bits].
    low: u32,
    high: u32,
    bits: u32,
    scale: vec2<u32>, // its words
    // The radix of each stage, four bits each, the first one lowest.
    radices: vec2<u32>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
// The roots of `radix` first.
@group(0) @binding(3) var<storage, read> roots: array<u32>;
@group(0) @binding(4) var<storage, read> factors: array<u32>;

const NONE: u32 = 0xffffffffu;

var<workgroup> held: array<Acc, 2u * MOST>;

fn conjugated(v: Acc, bit: u32) -> Acc {
    return select(v, vec2(v.x, -v.y), ((p.conjugates >> bit) & 1u) == 1u);
}
fn root(i: u32) -> Acc {
    let w = word(ACC, i);
    var v = from_words(roots[w], roots[w + 1u]);
    if (ACC == C128) { v = of_parts(v, from_words(roots[w + 2u], roots[w + 3u])); }
    return conjugated(v, 0u);
}
fn factor(i: u32, bit: u32) -> Acc {
    let w = word(ACC, i);
    var v = from_words(factors[w], factors[w + 1u]);
    if (ACC == C128) { v = of_parts(v, from_words(factors[w + 2u], factors[w + 3u])); }
    return conjugated(v, bit);
}
fn counts_twice(half: u32, k: u32) -> bool {
    return half != 0u && k != 0u && 2u * k != half;
}

// Element k of a line, zero where there is none.
fn load(line: u32, k: u32) -> Acc {
    if (k >= p.read) { return Acc(0.0); }
    let e = p.x_offset + (line / p.x_inner * p.x_length + k) * p.x_inner + line % p.x_inner;
    let w = word(X, e);
    var v = decode(X, x[w], x[w + wide(X)], e);
    if (X == C128) { v = of_parts(v, decode(X, x[w + 2u], x[w + 3u], e)); }
    if (counts_twice(p.x_half, k)) { v += v; }
    if (p.x_factor != NONE) { v = times(v, factor(p.x_factor + k, 1u)); }
    return v;
}
fn store(line: u32, k: u32, given: Acc) {
    if (k >= p.kept) { return; }
    var v = given;
    if (p.y_factor != NONE) { v = times(v, factor(p.y_factor + k, 2u)); }
    let scale = from_words(p.scale.x, p.scale.y).x;
    v *= select(scale, scale + scale, counts_twice(p.y_half, k));
    let e = p.y_offset + (line / p.y_inner * p.y_length + k) * p.y_inner + line % p.y_inner;
    let bits = encode(Y, v);
    let w = word(Y, e);
    y[w] = bits.x;
    if (wide(Y) == 1u) { y[w + 1u] = bits.y; }
    if (Y == C128) {
        let more = encode(Y, second_part(v));
        y[w + 2u] = more.x;
        y[w + 3u] = more.y;
    }
}

// i v, or -i v where transforms go forward.
fn quarter(v: Acc) -> Acc {
    return select(vec2(v.y, -v.x), vec2(-v.y, v.x), (p.conjugates & 1u) == 1u);
}

// Element r of butterfly i of a transform in `held`, times its root.
fn taken(at: u32, i: u32, step: u32, turn: u32, r: u32) -> Acc {
    let v = held[at + i + r * step];
    if (turn == 0u || r == 0u) { return v; }
    return times(v, root(r * turn));
}

// One stage of the transform whose elements begin at `source`, by butterfly i of `radix`.
fn butterfly(radix: u32, done: u32, i: u32, source: u32, put_at: u32) {
    let step = p.radix / radix;
    let k = i % done;
    let turn = k * (step / done);
    let put = put_at + (i - k) * radix + k;
    let a = held[source + i];
    let b = taken(source, i, step, turn, 1u);
    if (radix == 2u) {
        held[put] = a + b;
        held[put + done] = a - b;
        return;
    }
    let c = taken(source, i, step, turn, 2u);
    if (radix == 3u) {
        let s = b + c;
        let m = a - 0.5 * s;
        let q = 0.8660254037844386 * quarter(b - c);
        held[put] = a + s;
        held[put + done] = m + q;
        held[put + 2u * done] = m - q;
        return;
    }
    let d = taken(source, i, step, turn, 3u);
    if (radix == 4u) {
        let s = a + c;
        let t = a - c;
        let u = b + d;
        let q = quarter(b - d);
        held[put] = s + u;
        held[put + done] = t + q;
        held[put + 2u * done] = s - u;
        held[put + 3u * done] = t - q;
        return;
    }
    let e = taken(source, i, step, turn, 4u);
    // The cosines and sines of one and two fifths of a turn.
    let s = b + e;
    let t = c + d;
    let u = quarter(b - e);
    let v = quarter(c - d);
    let m = a + 0.30901699437494745 * s - 0.8090169943749475 * t;
    let n = a - 0.8090169943749475 * s + 0.30901699437494745 * t;
    let q = 0.9510565162951535 * u + 0.5877852522924731 * v;
    let w = 0.5877852522924731 * u - 0.9510565162951535 * v;
    held[put] = a + (s + t);
    held[put + done] = m + q;
    held[put + 2u * done] = n + w;
    held[put + 3u * done] = n - w;
    held[put + 4u * done] = m - q;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first = (group.x + group.y * groups.x) * p.each;
    let all = p.each * p.radix;
    // Transforms of a line.
    let across = p.n / p.radix;
    for (var i = local; i < all; i += WG) {
        let q = select(i / p.radix, i % p.each, p.x_across == 1u);
        let r = select(i % p.radix, i / p.each, p.x_across == 1u);
        if (first + q < p.transforms) {
            let line = (first + q) / across;
            let j = (first + q) % across;
            var v = load(line, j + r * across);
            if (p.done > 1u) {
                let t = r * (j % p.done);
                let mask = (1u << p.bits) - 1u;
                v = times(v, times(root(p.low + (t & mask)), root(p.high + (t >> p.bits))));
            }
            held[q * p.radix + r] = v;
        }
    }
    var done = 1u;
    var side = 0u;
    for (var s = 0u; s < p.stages; s++) {
        workgroupBarrier();
        let radix = (p.radices[s / 8u] >> (4u * (s % 8u))) & 15u;
        let count = p.radix / radix;
        for (var i = local; i < p.each * count; i += WG) {
            let at = i / count * p.radix;
            butterfly(radix, done, i % count, side + at, MOST - side + at);
        }
        done *= radix;
        side = MOST - side;
    }
    workgroupBarrier();
    for (var i = local; i < all; i += WG) {
        let q = select(i / p.radix, i % p.each, p.y_across == 1u);
        let r = select(i % p.radix, i / p.each, p.y_across == 1u);
        if (first + q < p.transforms) {
            let line = (first + q) / across;
            let j = (first + q) % across;
            let k = j % p.done;
            store(line, (j - k) * p.radix + k + r * p.done, held[side + q * p.radix + r]);
        }
    }
}

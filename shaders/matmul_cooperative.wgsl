// y[b, m, n] = alpha * sum over k of a[b, m, k] * b[b, k, n] + beta * c[b, m, n], any strides, by
// cooperative matrices of SIDE x SIDE, which the invocations of a subgroup multiply together, with sums
// in float32. A workgroup makes a tile of BM x BN, each of its WM x WN subgroups a block of it. The text
// behind this file declares the types of the operands' memory (Stored, and Four where four elements are
// read at once), of their elements (Element) as load_a(), fours_a() and their like give them, and of the
// matrices (PartA, PartB and Sum) and their factors (Part).
//
// Other types than Part are SCALED: by powers of two that bring the largest magnitude of each row of a
// and of each column of b just below 2^15, so that nothing overflows; and where TERMS is 2, the rest of
// each factor is one more, whose products with the other's first term are added.
// uses store
enable f16;
enable wgpu_cooperative_matrix;
// All branches around what subgroups do together are uniform, but by variables, which count as if not.
diagnostic(off, derivative_uniformity);
override PLUS: u32 = F32;
override Y: u32 = F32;
override HAS_C: bool = false;
override A_ALONG_K: bool = true;
override B_ALONG_K: bool = false;
// Whether a line's elements lie one behind the other, each four of them where one read takes them.
override FOURS_A: bool = false;
override FOURS_B: bool = false;
override SCALED: bool = false;
override TERMS: u32 = 1u;
override SIDE: u32 = 8u;
override BM: u32 = 64u;
override BN: u32 = 64u;
override WM: u32 = 2u;
override WN: u32 = 2u;
override DEPTH: u32 = 32u;
override LANES: u32 = 32u;
const SUBGROUPS: u32 = WM * WN;
const THREADS: u32 = LANES * SUBGROUPS;
const RM: u32 = BM / (WM * SIDE);
const RN: u32 = BN / (WN * SIDE);
const SQUARE: u32 = SIDE * SIDE;
// Lines of a tile run along k or along m (n), in fours; eight elements more keep them apart in the
// banks of memory.
const LINE_A: u32 = select(BM, DEPTH, A_ALONG_K);
const LINE_B: u32 = select(BN, DEPTH, B_ALONG_K);
const PITCH_A: u32 = LINE_A + 8u;
const PITCH_B: u32 = LINE_B + 8u;
const SIZE_A: u32 = (BM * DEPTH / LINE_A) * PITCH_A;
const SIZE_B: u32 = (BN * DEPTH / LINE_B) * PITCH_B;
const LOADS_A: u32 = (BM * DEPTH / 4u + THREADS - 1u) / THREADS;
const LOADS_B: u32 = (BN * DEPTH / 4u + THREADS - 1u) / THREADS;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    batches: u32,
    splits: u32,
    part: u32,
    tiles_m: u32,
    tiles_n: u32,
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    y: vec4<u32>,
    alpha: vec2<u32>,
    beta: vec2<u32>,
    y_split: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> a: array<Stored>;
@group(0) @binding(3) var<storage, read> b: array<Stored>;
@group(0) @binding(4) var<storage, read> c: array<u32>;
// Largest magnitudes, float32: of the rows of a [b, m], and of the columns of b [b, n].
@group(0) @binding(5) var<storage, read> tops_a: array<u32>;
@group(0) @binding(6) var<storage, read> tops_b: array<u32>;
// The operands once more.
@group(0) @binding(7) var<storage, read> fours_of_a: array<Four>;
@group(0) @binding(8) var<storage, read> fours_of_b: array<Four>;
var<workgroup> tile_a: array<Part, TERMS * SIZE_A>;
var<workgroup> tile_b: array<Part, TERMS * SIZE_B>;
var<workgroup> scales_a: array<f32, BM>;
var<workgroup> scales_b: array<f32, BN>;
var<workgroup> sums: array<f32, SUBGROUPS * SQUARE>;

// What a row of this largest magnitude is multiplied by, a power of two with an inverse.
fn scale(top: u32) -> f32 {
    return bitcast<f32>(min(268u - (top >> 23u), 253u) << 23u);
}
fn inverse(scale: f32) -> f32 {
    return bitcast<f32>((254u << 23u) - bitcast<u32>(scale));
}

fn load_c(i: u32) -> Acc {
    let w = word(PLUS, i);
    return decode(PLUS, c[w], c[w], i);
}
// Four elements of a line, zeros outside of the matrix.
fn four_a(start: u32, m: u32, k: u32, k_end: u32) -> vec4<Element> {
    let i = start + m * p.a.z + k * p.a.w;
    let step = select(p.a.z, p.a.w, A_ALONG_K);
    let first = select(m, k, A_ALONG_K);
    let end = select(p.m, k_end, A_ALONG_K);
    var v = vec4<Element>();
    if (select(k < k_end, m < p.m, A_ALONG_K)) {
        if (first + 3u < end) {
            if (FOURS_A) { return fours_a(i / 4u); }
            return vec4(load_a(i), load_a(i + step), load_a(i + 2u * step), load_a(i + 3u * step));
        }
        if (first < end) { v.x = load_a(i); }
        if (first + 1u < end) { v.y = load_a(i + step); }
        if (first + 2u < end) { v.z = load_a(i + 2u * step); }
    }
    return v;
}
fn four_b(start: u32, n: u32, k: u32, k_end: u32) -> vec4<Element> {
    let i = start + k * p.b.z + n * p.b.w;
    let step = select(p.b.w, p.b.z, B_ALONG_K);
    let first = select(n, k, B_ALONG_K);
    let end = select(p.n, k_end, B_ALONG_K);
    var v = vec4<Element>();
    if (select(k < k_end, n < p.n, B_ALONG_K)) {
        if (first + 3u < end) {
            if (FOURS_B) { return fours_b(i / 4u); }
            return vec4(load_b(i), load_b(i + step), load_b(i + 2u * step), load_b(i + 3u * step));
        }
        if (first < end) { v.x = load_b(i); }
        if (first + 1u < end) { v.y = load_b(i + step); }
        if (first + 2u < end) { v.z = load_b(i + 2u * step); }
    }
    return v;
}
// The nearest number of 11 bits. By bits: a conversion there and back may be left out.
fn rounded(v: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(v) + 0x1000u) & 0xffffe000u);
}
fn put_a(at: u32, element: Element, by: f32) {
    if (!SCALED) {
        tile_a[at] = Part(element);
        return;
    }
    let v = f32(element) * by;
    let first = rounded(v);
    tile_a[at] = Part(first);
    if (TERMS == 2u) { tile_a[SIZE_A + at] = Part(v - first); }
}
fn put_b(at: u32, element: Element, by: f32) {
    if (!SCALED) {
        tile_b[at] = Part(element);
        return;
    }
    let v = f32(element) * by;
    let first = rounded(v);
    tile_b[at] = Part(first);
    if (TERMS == 2u) { tile_b[SIZE_B + at] = Part(v - first); }
}
// Where an element of a tile lies.
fn at_a(m: u32, k: u32) -> u32 {
    return select(k * PITCH_A + m, m * PITCH_A + k, A_ALONG_K);
}
fn at_b(n: u32, k: u32) -> u32 {
    return select(k * PITCH_B + n, n * PITCH_B + k, B_ALONG_K);
}

// The product of a row and a column of which one is infinite somewhere.
fn plainly(i: u32, j: u32, k_begin: u32, k_end: u32) -> f32 {
    var v = 0.0;
    for (var k = k_begin; k < k_end; k++) {
        v = fma(f32(load_a(i + k * p.a.w)), f32(load_b(j + k * p.b.z)), v);
    }
    return v;
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
) {
    let id = group.x + group.y * groups.x;
    let tiles = p.tiles_m * p.tiles_n;
    let batch_split = id / tiles;
    let tile = id - batch_split * tiles;
    let split = batch_split / p.batches;
    if (split >= p.splits) { return; }
    let batch = batch_split - split * p.batches;
    let m0 = (tile / p.tiles_n) * BM;
    let n0 = (tile % p.tiles_n) * BN;
    let k_begin = split * p.part;
    let k_end = min(k_begin + p.part, p.k);
    let a0 = p.a.x + batch * p.a.y;
    let b0 = p.b.x + batch * p.b.y;
    if (SCALED) {
        for (var i = local; i < BM; i += THREADS) {
            scales_a[i] = scale(tops_a[batch * p.m + min(m0 + i, p.m - 1u)]);
        }
        for (var i = local; i < BN; i += THREADS) {
            scales_b[i] = scale(tops_b[batch * p.n + min(n0 + i, p.n - 1u)]);
        }
        workgroupBarrier();
    }

    // One turn where subgroups are as large as LANES says; larger ones take the blocks one after the
    // other, and of smaller ones some repeat the last block.
    for (var turn = 0u; turn < SUBGROUPS; turn += subgroups) {
        let block = min(turn + subgroup, SUBGROUPS - 1u);
        let row = (block / WN) * (RM * SIDE);
        let col = (block % WN) * (RN * SIDE);
        var acc: array<Sum, RM * RN>;
        for (var i = 0u; i < RM * RN; i++) { acc[i] = Sum(); }
        var next_a: array<vec4<Element>, LOADS_A>;
        var next_b: array<vec4<Element>, LOADS_B>;
        // Each step stores the tiles that the one before read ahead; the first only reads.
        for (var k0 = k_begin; k0 < k_end + DEPTH; k0 += DEPTH) {
            if (k0 > k_begin) {
                workgroupBarrier();
                for (var l = 0u; l < LOADS_A; l++) {
                    let e = (local + l * THREADS) * 4u;
                    let line = e / LINE_A;
                    let x = e % LINE_A;
                    if (line * LINE_A < BM * DEPTH) {
                        for (var j = 0u; j < 4u; j++) {
                            let by = scales_a[select(x + j, line, A_ALONG_K)];
                            put_a(line * PITCH_A + x + j, next_a[l][j], by);
                        }
                    }
                }
                for (var l = 0u; l < LOADS_B; l++) {
                    let e = (local + l * THREADS) * 4u;
                    let line = e / LINE_B;
                    let x = e % LINE_B;
                    if (line * LINE_B < BN * DEPTH) {
                        for (var j = 0u; j < 4u; j++) {
                            let by = scales_b[select(x + j, line, B_ALONG_K)];
                            put_b(line * PITCH_B + x + j, next_b[l][j], by);
                        }
                    }
                }
                workgroupBarrier();
            }
            if (k0 < k_end) {
                for (var l = 0u; l < LOADS_A; l++) {
                    let e = (local + l * THREADS) * 4u;
                    let line = e / LINE_A;
                    let x = e % LINE_A;
                    let m = m0 + select(x, line, A_ALONG_K);
                    let k = k0 + select(line, x, A_ALONG_K);
                    if (line * LINE_A < BM * DEPTH) { next_a[l] = four_a(a0, m, k, k_end); }
                }
                for (var l = 0u; l < LOADS_B; l++) {
                    let e = (local + l * THREADS) * 4u;
                    let line = e / LINE_B;
                    let x = e % LINE_B;
                    let n = n0 + select(x, line, B_ALONG_K);
                    let k = k0 + select(line, x, B_ALONG_K);
                    if (line * LINE_B < BN * DEPTH) { next_b[l] = four_b(b0, n, k, k_end); }
                }
            }
            if (k0 > k_begin) {
                for (var k = 0u; k < DEPTH; k += SIDE) {
                    var u: array<PartA, TERMS * RM>;
                    for (var i = 0u; i < TERMS * RM; i++) {
                        let at = (i / RM) * SIZE_A + at_a(row + (i % RM) * SIDE, k);
                        if (A_ALONG_K) {
                            u[i] = coopLoadT<PartA>(&tile_a[at], PITCH_A);
                        } else {
                            u[i] = coopLoad<PartA>(&tile_a[at], PITCH_A);
                        }
                    }
                    // The small products first.
                    for (var j = 0u; j < TERMS * RN; j++) {
                        let rest = TERMS - 1u - j / RN;
                        let at = rest * SIZE_B + at_b(col + (j % RN) * SIDE, k);
                        var v: PartB;
                        if (B_ALONG_K) {
                            v = coopLoad<PartB>(&tile_b[at], PITCH_B);
                        } else {
                            v = coopLoadT<PartB>(&tile_b[at], PITCH_B);
                        }
                        for (var i = 0u; i < RM; i++) {
                            let to = i * RN + j % RN;
                            if (TERMS == 2u && rest == 0u) {
                                acc[to] = coopMultiplyAdd(u[RM + i], v, acc[to]);
                            }
                            acc[to] = coopMultiplyAdd(u[i], v, acc[to]);
                        }
                    }
                }
            }
        }

        let alpha = from_words(p.alpha.x, p.alpha.y);
        let beta = from_words(p.beta.x, p.beta.y);
        let y0 = p.y.x + split * p.y_split + batch * p.y.y;
        let c0 = p.c.x + batch * p.c.y;
        let own = (block - min(turn, block)) * SQUARE;
        for (var at = 0u; at < RM * RN; at++) {
            workgroupBarrier();
            coopStoreT(acc[at], &sums[own], SIDE);
            workgroupBarrier();
            for (var e = local; e < min(subgroups, SUBGROUPS - turn) * SQUARE; e += THREADS) {
                let source = turn + e / SQUARE;
                let i = (source / WN) * (RM * SIDE) + (at / RN) * SIDE + (e % SQUARE) / SIDE;
                let j = (source % WN) * (RN * SIDE) + (at % RN) * SIDE + e % SIDE;
                let m = m0 + i;
                let n = n0 + j;
                if (m >= p.m || n >= p.n) { continue; }
                var v = sums[e];
                if (SCALED) {
                    // The smaller first: what is between them is no larger than the result.
                    let u = vec2(inverse(scales_a[i]), inverse(scales_b[j]));
                    v = v * min(u.x, u.y) * max(u.x, u.y);
                    let tops = vec2(tops_a[batch * p.m + m], tops_b[batch * p.n + n]);
                    let top = max(tops.x, tops.y);
                    if (top > 0x7f800000u) {
                        v = bitcast<f32>(top);
                    } else if (top == 0x7f800000u) {
                        v = plainly(a0 + m * p.a.z, b0 + n * p.b.w, k_begin, k_end);
                    }
                }
                v = alpha * v;
                if (HAS_C && split == 0u) { v += beta * load_c(c0 + m * p.c.z + n * p.c.w); }
                store_y(y0 + m * p.y.z + n * p.y.w, v);
            }
        }
    }
}

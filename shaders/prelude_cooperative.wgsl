// Products by cooperative matrices of SIDE x SIDE, which the invocations of a subgroup multiply together, with sums
// in float32. A workgroup makes a tile of BM x BN, each of its WM x WN subgroups a block of it. The text behind the
// file declares the types of the operands' memory (Stored, and Four where four elements are read at once), of their
// elements (Element) as load_a(), fours_a() and their like give them, and of the matrices (PartA, PartB and Sum),
// of their factors (Part), and how a tile holds them (Held, HELD, hold_a(), hold_b()). The file declares:
// - struct Work: m0, n0, m_end, n_end, where the tile begins and the results end; k_begin, k_end; what else it likes;
// - begin(w, local), and ahead(w, k0, local), which may write tables of the file's for a step of k, beside those of
//   the step before;
// - four_a(w, m, k0, k): four elements from row m of the tile and from k0 + k on, along k where A_ALONG_K, else along
//   m; zeros outside. four_b(w, l, n, k0, k) likewise, load l of an invocation;
// - is_whole_a(w, k0), whether all that a step reads is there and lies in fours, which whole_a(w, m, k0, k) then reads;
//   is_whole_b(w, k0) and whole_b(w, l, n, k0, k) likewise;
// - top_a(w, m) and top_b(w, n), no less than the largest magnitude of a row or column, as the bits of a float32;
// - plainly(w, m, n), the sum of products where one of those is not finite;
// - finish(w, m, n, v), which stores an element; where PAIRS, finish_pair(w, m, n, v), which stores it and the next of
//   its row.
//
// Other types than Part are SCALED: by powers of two that bring the largest magnitude of each row of a
// and of each column of b just below 2^15, so that nothing overflows; and where TERMS is 2, the rest of
// each factor is one more, whose products with the other's first term are added.
const SUBGROUPS: u32 = WM * WN;
const THREADS: u32 = LANES * SUBGROUPS;
const RM: u32 = BM / (WM * SIDE);
const RN: u32 = BN / (WN * SIDE);
const SQUARE: u32 = SIDE * SIDE;
const EACH: u32 = select(1u, 2u, PAIRS);
// Lines of a tile run along k or along m (n), in fours; eight elements more keep them apart in the
// banks of memory.
const LINE_A: u32 = select(BM, DEPTH, A_ALONG_K);
const LINE_B: u32 = select(BN, DEPTH, B_ALONG_K);
const PITCH_A: u32 = LINE_A + 8u;
const PITCH_B: u32 = LINE_B + 8u;
const APART_A: u32 = PITCH_A / HELD;
const APART_B: u32 = PITCH_B / HELD;
const SIZE_A: u32 = (BM * DEPTH / LINE_A) * PITCH_A;
const SIZE_B: u32 = (BN * DEPTH / LINE_B) * PITCH_B;
// Fours that an invocation reads, and whether none has less.
const LOADS_A: u32 = (BM * DEPTH / 4u + THREADS - 1u) / THREADS;
const LOADS_B: u32 = (BN * DEPTH / 4u + THREADS - 1u) / THREADS;
const WHOLE_A: bool = LOADS_A * THREADS * 4u == BM * DEPTH;
const WHOLE_B: bool = LOADS_B * THREADS * 4u == BN * DEPTH;
// Where the adapter takes it they are held by fours (HELD), which one store and one load then move.
var<workgroup> tile_a: array<Held, TERMS * SIZE_A / HELD>;
var<workgroup> tile_b: array<Held, TERMS * SIZE_B / HELD>;
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
// Whether this is the scale of what has an infinity or NaN.
fn is_non_finite(scale: f32) -> bool {
    return bitcast<u32>(scale) == 13u << 23u;
}
// The nearest number of 11 bits. By bits: a conversion there and back may be left out.
fn rounded(v: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>((bitcast<vec4<u32>>(v) + 0x1000u) & vec4(0xffffe000u));
}
fn put_a(at: u32, four: vec4<Element>, by: vec4<f32>) {
    if (!SCALED) {
        hold_a(at, vec4<Part>(four));
        return;
    }
    let v = vec4<f32>(four) * by;
    let first = rounded(v);
    hold_a(at, vec4<Part>(first));
    if (TERMS == 2u) { hold_a(SIZE_A + at, vec4<Part>(v - first)); }
}
fn put_b(at: u32, four: vec4<Element>, by: vec4<f32>) {
    if (!SCALED) {
        hold_b(at, vec4<Part>(four));
        return;
    }
    let v = vec4<f32>(four) * by;
    let first = rounded(v);
    hold_b(at, vec4<Part>(first));
    if (TERMS == 2u) { hold_b(SIZE_B + at, vec4<Part>(v - first)); }
}
// What the four elements from x on of a line are multiplied by.
fn four_scales_a(line: u32, x: u32) -> vec4<f32> {
    if (!SCALED) { return vec4(1.0); }
    if (A_ALONG_K) { return vec4(scales_a[line]); }
    return vec4(scales_a[x], scales_a[x + 1u], scales_a[x + 2u], scales_a[x + 3u]);
}
fn four_scales_b(line: u32, x: u32) -> vec4<f32> {
    if (!SCALED) { return vec4(1.0); }
    if (B_ALONG_K) { return vec4(scales_b[line]); }
    return vec4(scales_b[x], scales_b[x + 1u], scales_b[x + 2u], scales_b[x + 3u]);
}
// Where an element of a tile lies.
fn at_a(m: u32, k: u32) -> u32 {
    return select(k * PITCH_A + m, m * PITCH_A + k, A_ALONG_K);
}
fn at_b(n: u32, k: u32) -> u32 {
    return select(k * PITCH_B + n, n * PITCH_B + k, B_ALONG_K);
}

// What an invocation reads of a for a step. The branch stands around the loop: within it each read would wait for the
// one before.
fn read_a(w: Work, k0: u32, local: u32) -> array<vec4<Element>, LOADS_A> {
    var four: array<vec4<Element>, LOADS_A>;
    if (is_whole_a(w, k0)) {
        for (var l = 0u; l < LOADS_A; l++) { // unroll LOADS_A
            let e = (local + l * THREADS) * 4u;
            let m = select(e % LINE_A, e / LINE_A, A_ALONG_K);
            let k = select(e / LINE_A, e % LINE_A, A_ALONG_K);
            if (WHOLE_A || e < BM * DEPTH) { four[l] = whole_a(w, m, k0, k); }
        }
    } else {
        for (var l = 0u; l < LOADS_A; l++) { // unroll LOADS_A
            let e = (local + l * THREADS) * 4u;
            let m = select(e % LINE_A, e / LINE_A, A_ALONG_K);
            let k = select(e / LINE_A, e % LINE_A, A_ALONG_K);
            if (WHOLE_A || e < BM * DEPTH) { four[l] = four_a(w, m, k0, k); }
        }
    }
    return four;
}
// Reads and stores an invocation's share of b.
fn take_b(w: Work, k0: u32, local: u32) {
    if (is_whole_b(w, k0)) {
        for (var l = 0u; l < LOADS_B; l++) { // unroll LOADS_B
            let e = (local + l * THREADS) * 4u;
            let line = e / LINE_B;
            let x = e % LINE_B;
            let n = select(x, line, B_ALONG_K);
            let k = select(line, x, B_ALONG_K);
            if (WHOLE_B || e < BN * DEPTH) {
                put_b(line * PITCH_B + x, whole_b(w, l, n, k0, k), four_scales_b(line, x));
            }
        }
    } else {
        for (var l = 0u; l < LOADS_B; l++) { // unroll LOADS_B
            let e = (local + l * THREADS) * 4u;
            let line = e / LINE_B;
            let x = e % LINE_B;
            let n = select(x, line, B_ALONG_K);
            let k = select(line, x, B_ALONG_K);
            if (WHOLE_B || e < BN * DEPTH) {
                put_b(line * PITCH_B + x, four_b(w, l, n, k0, k), four_scales_b(line, x));
            }
        }
    }
}

// An element of the product of what was scaled.
fn unscaled(w: Work, m: u32, n: u32, sum: f32) -> f32 {
    if (!SCALED) { return sum; }
    if (is_non_finite(scales_a[m]) || is_non_finite(scales_b[n])) { return plainly(w, m, n); }
    // The smaller first: what is between them is no larger than the result.
    let u = vec2(inverse(scales_a[m]), inverse(scales_b[n]));
    return sum * min(u.x, u.y) * max(u.x, u.y);
}

fn work(w: Work, local: u32, subgroup: u32, subgroups: u32) {
    begin(w, local);
    if (SCALED) {
        for (var i = local; i < BM; i += THREADS) {
            scales_a[i] = scale(top_a(w, i));
        }
        for (var i = local; i < BN; i += THREADS) {
            scales_b[i] = scale(top_b(w, i));
        }
    }

    // One turn where subgroups are as large as LANES says, which they always are where ALONE; larger ones take the
    // blocks one after the other, and of smaller ones some repeat the last block.
    for (var turn = 0u; turn < SUBGROUPS; turn += select(subgroups, SUBGROUPS, ALONE)) {
        let block = select(min(turn + subgroup, SUBGROUPS - 1u), subgroup, ALONE);
        let row = (block / WN) * (RM * SIDE);
        let col = (block % WN) * (RN * SIDE);
        var acc: array<Sum, RM * RN>; // apart
        for (var i = 0u; i < RM * RN; i++) { // unroll RM * RN
            acc[i] = Sum();
        }
        ahead(w, w.k_begin, local);
        workgroupBarrier();
        // The next step's part of a is read while this one multiplies. For b's as well no registers are left: it is
        // stored as it comes, and other workgroups multiply meanwhile.
        var next = read_a(w, w.k_begin, local);
        // The last step, which reads nothing ahead, is a loop of its own: with a branch around what is read ahead the
        // others took half as long again on an H200.
        let steps = max((w.k_end - w.k_begin + DEPTH - 1u) / DEPTH, 1u);
        var k0 = w.k_begin;
        for (var last = 0u; last < 2u; last++) { // unroll 2
            for (var step = 0u; step < select(steps - 1u, 1u, last == 1u); step++) {
                workgroupBarrier();
                for (var l = 0u; l < LOADS_A; l++) { // unroll LOADS_A
                    let e = (local + l * THREADS) * 4u;
                    let line = e / LINE_A;
                    let x = e % LINE_A;
                    if (WHOLE_A || line * LINE_A < BM * DEPTH) {
                        put_a(line * PITCH_A + x, next[l], four_scales_a(line, x));
                    }
                }
                take_b(w, k0, local);
                if (last == 0u) { ahead(w, k0 + DEPTH, local); }
                workgroupBarrier();
                if (last == 0u) { next = read_a(w, k0 + DEPTH, local); }
                for (var k = 0u; k < DEPTH; k += SIDE) { // unroll DEPTH / SIDE
                    var u: array<PartA, TERMS * RM>; // apart
                    for (var i = 0u; i < TERMS * RM; i++) { // unroll TERMS * RM
                        let at = (i / RM) * SIZE_A + at_a(row + (i % RM) * SIDE, k);
                        if (A_ALONG_K) {
                            u[i] = coopLoadT<PartA>(&tile_a[at / HELD], APART_A);
                        } else {
                            u[i] = coopLoad<PartA>(&tile_a[at / HELD], APART_A);
                        }
                    }
                    // The small products first.
                    for (var j = 0u; j < TERMS * RN; j++) { // unroll TERMS * RN
                        let rest = TERMS - 1u - j / RN;
                        let at = rest * SIZE_B + at_b(col + (j % RN) * SIDE, k);
                        var v: PartB;
                        if (B_ALONG_K) {
                            v = coopLoad<PartB>(&tile_b[at / HELD], APART_B);
                        } else {
                            v = coopLoadT<PartB>(&tile_b[at / HELD], APART_B);
                        }
                        for (var i = 0u; i < RM; i++) { // unroll RM
                            if (TERMS == 2u && rest == 0u) {
                                acc[i * RN + j % RN] = coopMultiplyAdd(u[RM * (TERMS - 1u) + i], v, acc[i * RN + j % RN]);
                            }
                            acc[i * RN + j % RN] = coopMultiplyAdd(u[i], v, acc[i * RN + j % RN]);
                        }
                    }
                }
                k0 += DEPTH;
            }
        }

        let own = (block - min(turn, block)) * SQUARE;
        for (var at = 0u; at < RM * RN; at++) {
            workgroupBarrier();
            for (var s = 0u; s < RM * RN; s++) { // unroll RM * RN
                if (s == at) { coopStoreT(acc[s], &sums[own], SIDE); }
            }
            workgroupBarrier();
            for (var e = local * EACH; e < min(subgroups, SUBGROUPS - turn) * SQUARE; e += THREADS * EACH) {
                let source = turn + e / SQUARE;
                let m = (source / WN) * (RM * SIDE) + (at / RN) * SIDE + (e % SQUARE) / SIDE;
                let n = (source % WN) * (RN * SIDE) + (at % RN) * SIDE + e % SIDE;
                if (w.m0 + m >= w.m_end || w.n0 + n >= w.n_end) { continue; }
                if (PAIRS) {
                    finish_pair(w, m, n, vec2(unscaled(w, m, n, sums[e]), unscaled(w, m, n + 1u, sums[e + 1u])));
                } else {
                    finish(w, m, n, unscaled(w, m, n, sums[e]));
                }
            }
        }
    }
}

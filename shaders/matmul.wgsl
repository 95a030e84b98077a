// y[b, m, n] = alpha * sum over k of a[b, m, k] * b[b, k, n] + beta * c[b, m, n], any strides.
// A workgroup makes a tile of BM x BN, each invocation RM x RN squares of 4 x 4 of it, which lie
// BM / RM and BN / RN apart. Every element is one chain of fused products along k, whatever the tile.
// uses store
override A: u32 = F32;
override B: u32 = F32;
override C: u32 = F32;
override Y: u32 = F32;
override HAS_C: bool = false;
override PAIRS: bool = false; // two elements of a row of y share a word
override SUMS: bool = false; // also the sums of the rows of a, of one batch
// Whether k (else m or n) is the index along which a tile is read.
override A_ALONG_K: bool = true;
override B_ALONG_K: bool = false;
override BM: u32 = 32u;
override BN: u32 = 32u;
override RM: u32 = 1u;
override RN: u32 = 1u;
override DEPTH: u32 = 8u;
// Two where the memory of a workgroup has room for the next step's tiles.
override BUFFERS: u32 = 1u;
override ROLLED: bool = false; // whether the longest loops stay loops
const EACH: u32 = select(1u, 2u, PAIRS);
const COLS: u32 = BN / (4u * RN);
const THREADS: u32 = BM / (4u * RM) * COLS;
const QM: u32 = BM / 4u;
const QN: u32 = BN / 4u;
// A square more keeps rows of a tile apart in the banks of memory.
const PM: u32 = QM + 1u;
const PN: u32 = QN + 1u;
const LOADS_A: u32 = (DEPTH * QM + THREADS - 1u) / THREADS;
const LOADS_B: u32 = (DEPTH * QN + THREADS - 1u) / THREADS;
const SQUARES: u32 = 4u * RM * RN;
// Left to the driver, loops with converted elements stay loops; with others it does better.
const COPIES: u32 = select(0u, 1u, A != F32 || B != F32);
const ROWS: u32 = (BM + THREADS - 1u) / THREADS;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    batches: u32,
    // Parts of k that different workgroups take, each of `part`; y then is [split, b, m, n], and c is
    // added to the first.
    splits: u32,
    part: u32,
    tiles_m: u32,
    tiles_n: u32,
    // offset, batch stride, row stride, column stride
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
@group(0) @binding(2) var<storage, read_write> sums: array<u32>; // float32: [split, m]
@group(0) @binding(3) var<storage, read> a: array<u32>;
@group(0) @binding(4) var<storage, read> b: array<u32>;
@group(0) @binding(5) var<storage, read> c: array<u32>;
var<workgroup> tile_a: array<vec4<Acc>, BUFFERS * DEPTH * PM>;
var<workgroup> tile_b: array<vec4<Acc>, BUFFERS * DEPTH * PN>;

// Elements, in whose place a kernel may have what makes them.
fn read_a(i: u32) -> Acc {
    let w = word(A, i);
    return decode(A, a[w], a[w + wide(A)], i);
}
fn read_b(i: u32) -> Acc {
    let w = word(B, i);
    return decode(B, b[w], b[w + wide(B)], i);
}
fn load_c(i: u32) -> Acc {
    let w = word(C, i);
    return decode(C, c[w], c[w + wide(C)], i);
}

// Four elements of a column of a and of a row of b, zeros outside.
fn four_a(start: u32, m: u32, k: u32, k_end: u32, inside: bool) -> vec4<Acc> {
    let i = start + m * p.a.z + k * p.a.w;
    if (inside) {
        return vec4(read_a(i), read_a(i + p.a.z), read_a(i + 2u * p.a.z), read_a(i + 3u * p.a.z));
    }
    var v = vec4<Acc>();
    if (k < k_end) {
        if (m < p.m) { v.x = read_a(i); }
        if (m + 1u < p.m) { v.y = read_a(i + p.a.z); }
        if (m + 2u < p.m) { v.z = read_a(i + 2u * p.a.z); }
        if (m + 3u < p.m) { v.w = read_a(i + 3u * p.a.z); }
    }
    return v;
}
fn four_b(start: u32, n: u32, k: u32, k_end: u32, inside: bool) -> vec4<Acc> {
    let i = start + k * p.b.z + n * p.b.w;
    if (inside) {
        return vec4(read_b(i), read_b(i + p.b.w), read_b(i + 2u * p.b.w), read_b(i + 3u * p.b.w));
    }
    var v = vec4<Acc>();
    if (k < k_end) {
        if (n < p.n) { v.x = read_b(i); }
        if (n + 1u < p.n) { v.y = read_b(i + p.b.w); }
        if (n + 2u < p.n) { v.z = read_b(i + 2u * p.b.w); }
        if (n + 3u < p.n) { v.w = read_b(i + 3u * p.b.w); }
    }
    return v;
}
// Where in a tile load e of an invocation goes: the square, and the row.
fn place_a(e: u32) -> vec2<u32> {
    if (A_ALONG_K) { return vec2(e / DEPTH, e % DEPTH); }
    return vec2(e % QM, e / QM);
}
fn place_b(e: u32) -> vec2<u32> {
    if (B_ALONG_K) { return vec2(e / DEPTH, e % DEPTH); }
    return vec2(e % QN, e / QN);
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
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
    let zero = unknown_zero(ROLLED, groups);
    let row = local / COLS;
    let col = local % COLS;
    let full = m0 + BM <= p.m && n0 + BN <= p.n;

    var acc: array<vec4<Acc>, SQUARES>;
    for (var i = 0u; i < SQUARES; i++) { acc[i] = vec4<Acc>(); } // unroll COPIES * SQUARES
    var next_a: array<vec4<Acc>, LOADS_A>;
    var next_b: array<vec4<Acc>, LOADS_B>;
    var sum: array<Acc, ROWS>;
    for (var i = 0u; i < ROWS; i++) { sum[i] = Acc(0); } // unroll COPIES * ROWS
    // Each turn stores the tiles that the one before read ahead; the first only reads.
    var buffer = 0u;
    for (var k0 = k_begin; k0 < k_end + DEPTH; k0 += DEPTH) {
        if (k0 > k_begin) {
            if (BUFFERS == 1u) { workgroupBarrier(); }
            for (var l = 0u; l < LOADS_A; l++) { // unroll COPIES * LOADS_A
                let e = local + l * THREADS;
                let at = place_a(e);
                if (e < DEPTH * QM) { tile_a[(buffer * DEPTH + at.y) * PM + at.x] = next_a[l]; }
            }
            for (var l = 0u; l < LOADS_B; l++) { // unroll COPIES * LOADS_B
                let e = local + l * THREADS;
                let at = place_b(e);
                if (e < DEPTH * QN) { tile_b[(buffer * DEPTH + at.y) * PN + at.x] = next_b[l]; }
            }
            workgroupBarrier();
        }
        if (k0 < k_end) {
            let inside = full && k0 + DEPTH <= k_end;
            for (var l = 0u; l < LOADS_A; l++) { // unroll COPIES * LOADS_A
                let e = local + l * THREADS;
                let at = place_a(e);
                if (e < DEPTH * QM) {
                    next_a[l] = four_a(a0, m0 + 4u * at.x, k0 + at.y, k_end, inside);
                }
            }
            for (var l = 0u; l < LOADS_B; l++) { // unroll COPIES * LOADS_B
                let e = local + l * THREADS;
                let at = place_b(e);
                if (e < DEPTH * QN) {
                    next_b[l] = four_b(b0, n0 + 4u * at.x, k0 + at.y, k_end, inside);
                }
            }
        }
        if (k0 > k_begin) {
            for (var k = 0u; k < DEPTH + zero; k++) {
                let line_a = (buffer * DEPTH + k) * PM + row;
                let line_b = (buffer * DEPTH + k) * PN + col;
                for (var j = 0u; j < RN; j++) { // unroll COPIES * RN
                    let v = tile_b[line_b + j * (QN / RN)];
                    for (var i = 0u; i < RM; i++) { // unroll COPIES * RM
                        let u = tile_a[line_a + i * (QM / RM)];
                        let at = (i * RN + j) * 4u;
                        acc[at] = fused(u.x, v, acc[at]);
                        acc[at + 1u] = fused(u.y, v, acc[at + 1u]);
                        acc[at + 2u] = fused(u.z, v, acc[at + 2u]);
                        acc[at + 3u] = fused(u.w, v, acc[at + 3u]);
                    }
                }
            }
            if (SUMS && n0 == 0u) {
                for (var i = 0u; i < ROWS; i++) { // unroll COPIES * ROWS
                    let r = min(local + i * THREADS, BM - 1u);
                    for (var k = 0u; k < DEPTH; k++) {
                        sum[i] += tile_a[(buffer * DEPTH + k) * PM + r / 4u][r % 4u];
                    }
                }
            }
            if (BUFFERS == 2u) { buffer = 1u - buffer; }
        }
    }

    if (SUMS && n0 == 0u) {
        for (var i = 0u; i < ROWS; i++) { // unroll COPIES * ROWS
            let r = local + i * THREADS;
            if (r < BM && m0 + r < p.m) {
                sums[split * p.m + m0 + r] = encode(F32, sum[i]).x;
            }
        }
    }
    let alpha = from_words(p.alpha.x, p.alpha.y);
    let beta = from_words(p.beta.x, p.beta.y);
    let y0 = p.y.x + split * p.y_split + batch * p.y.y;
    let c0 = p.c.x + batch * p.c.y;
    for (var i = 0u; i < 4u * RM + zero; i++) {
        let m = m0 + (i / 4u) * (BM / RM) + 4u * row + i % 4u;
        if (m >= p.m) { continue; }
        for (var j = 0u; j < 4u * RN + zero; j += EACH) {
            let n = n0 + (j / 4u) * (BN / RN) + 4u * col + j % 4u;
            if (n < p.n) {
                let at = ((i / 4u) * RN + j / 4u) * 4u + i % 4u;
                var four = vec4<Acc>();
                if (COPIES == 0u) {
                    four = acc[at];
                } else {
                    for (var q = 0u; q < SQUARES; q++) { // unroll COPIES * SQUARES
                        if (q == at) { four = acc[q]; }
                    }
                }
                var v = alpha * four[j % 4u];
                if (HAS_C && split == 0u) { v += beta * load_c(c0 + m * p.c.z + n * p.c.w); }
                let i = y0 + m * p.y.z + n * p.y.w;
                if (PAIRS) {
                    var next = alpha * four[(j + 1u) % 4u];
                    if (HAS_C && split == 0u) { next += beta * load_c(c0 + m * p.c.z + (n + 1u) * p.c.w); }
                    store_two(i, v, next);
                } else {
                    store_y(i, v);
                }
            }
        }
    }
}

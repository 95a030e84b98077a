// y[b, m, n] = alpha * sum over k of a[b, m, k] * b[b, k, n] + beta * c[b, m, n], any strides, by
// cooperative matrices.
// uses store, cooperative
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
override EXACT: bool = false; // every tile and every step of k is whole
override DEEP: u32 = 0u; // k, where the text says it and there are no parts of it
override PAIRS: bool = false; // two elements of a row of y share a word
override SCALED: bool = false;
override TERMS: u32 = 1u;
override SIDE: u32 = 8u;
override BM: u32 = 64u;
override BN: u32 = 64u;
override WM: u32 = 2u;
override WN: u32 = 2u;
override DEPTH: u32 = 32u;
override LANES: u32 = 32u;
override ALONE: bool = false;

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

struct Work {
    m0: u32,
    n0: u32,
    m_end: u32,
    n_end: u32,
    k_begin: u32,
    k_end: u32,
    batch: u32,
    split: u32,
    // Where the matrices of the batch begin.
    a0: u32,
    b0: u32,
    // Whether all rows of the tile, and all columns, are there.
    full_a: bool,
    full_b: bool,
}
fn begin(w: Work, local: u32) {}
fn ahead(w: Work, k0: u32, local: u32) {}

fn load_c(i: u32) -> Acc {
    let w = word(PLUS, i);
    return decode(PLUS, c[w], c[w], i);
}
// Four elements of a line, zeros outside of the matrix.
fn is_whole_a(w: Work, k0: u32) -> bool {
    return FOURS_A && (EXACT || (w.full_a && k0 + DEPTH <= w.k_end));
}
fn is_whole_b(w: Work, k0: u32) -> bool {
    return FOURS_B && (EXACT || (w.full_b && k0 + DEPTH <= w.k_end));
}
fn whole_a(w: Work, row: u32, k0: u32, line: u32) -> vec4<Element> {
    let m = w.m0 + row;
    let k = k0 + line;
    return fours_a((w.a0 + select(m + k * p.a.w, m * p.a.z + k, A_ALONG_K)) / 4u);
}
fn whole_b(w: Work, l: u32, column: u32, k0: u32, line: u32) -> vec4<Element> {
    let n = w.n0 + column;
    let k = k0 + line;
    return fours_b((w.b0 + select(n + k * p.b.z, n * p.b.w + k, B_ALONG_K)) / 4u);
}
fn four_a(w: Work, row: u32, k0: u32, line: u32) -> vec4<Element> {
    let m = w.m0 + row;
    let k = k0 + line;
    let i = w.a0 + m * p.a.z + k * p.a.w;
    let apart = select(p.a.z, p.a.w, A_ALONG_K);
    let first = select(m, k, A_ALONG_K);
    let end = select(p.m, w.k_end, A_ALONG_K);
    var v = vec4<Element>();
    if (select(k < w.k_end, m < p.m, A_ALONG_K)) {
        if (first + 3u < end) {
            if (FOURS_A) { return fours_a(i / 4u); }
            return vec4(load_a(i), load_a(i + apart), load_a(i + 2u * apart), load_a(i + 3u * apart));
        }
        if (first < end) { v.x = load_a(i); }
        if (first + 1u < end) { v.y = load_a(i + apart); }
        if (first + 2u < end) { v.z = load_a(i + 2u * apart); }
    }
    return v;
}
fn four_b(w: Work, l: u32, column: u32, k0: u32, line: u32) -> vec4<Element> {
    let n = w.n0 + column;
    let k = k0 + line;
    let i = w.b0 + k * p.b.z + n * p.b.w;
    let apart = select(p.b.w, p.b.z, B_ALONG_K);
    let first = select(n, k, B_ALONG_K);
    let end = select(p.n, w.k_end, B_ALONG_K);
    var v = vec4<Element>();
    if (select(k < w.k_end, n < p.n, B_ALONG_K)) {
        if (first + 3u < end) {
            if (FOURS_B) { return fours_b(i / 4u); }
            return vec4(load_b(i), load_b(i + apart), load_b(i + 2u * apart), load_b(i + 3u * apart));
        }
        if (first < end) { v.x = load_b(i); }
        if (first + 1u < end) { v.y = load_b(i + apart); }
        if (first + 2u < end) { v.z = load_b(i + 2u * apart); }
    }
    return v;
}

fn top_a(w: Work, m: u32) -> u32 {
    return tops_a[w.batch * p.m + min(w.m0 + m, p.m - 1u)];
}
fn top_b(w: Work, n: u32) -> u32 {
    return tops_b[w.batch * p.n + min(w.n0 + n, p.n - 1u)];
}
fn plainly(w: Work, m: u32, n: u32) -> f32 {
    let top = max(top_a(w, m), top_b(w, n));
    if (top > 0x7f800000u) { return bitcast<f32>(top); }
    let i = w.a0 + (w.m0 + m) * p.a.z;
    let j = w.b0 + (w.n0 + n) * p.b.w;
    var v = 0.0;
    for (var k = w.k_begin; k < w.k_end; k++) {
        v = fma(f32(load_a(i + k * p.a.w)), f32(load_b(j + k * p.b.z)), v);
    }
    return v;
}
fn result(w: Work, m: u32, n: u32, sum: f32) -> f32 {
    var v = from_words(p.alpha.x, p.alpha.y) * sum;
    if (HAS_C && w.split == 0u) {
        let i = p.c.x + w.batch * p.c.y + m * p.c.z + n * p.c.w;
        v += from_words(p.beta.x, p.beta.y) * load_c(i);
    }
    return v;
}
fn place(w: Work, m: u32, n: u32) -> u32 {
    return p.y.x + w.split * p.y_split + w.batch * p.y.y + m * p.y.z + n * p.y.w;
}
fn finish(w: Work, row: u32, column: u32, sum: f32) {
    let m = w.m0 + row;
    let n = w.n0 + column;
    store_y(place(w, m, n), result(w, m, n, sum));
}
fn finish_pair(w: Work, row: u32, column: u32, sums: vec2<f32>) {
    let m = w.m0 + row;
    let n = w.n0 + column;
    store_two(place(w, m, n), result(w, m, n, sums.x), result(w, m, n + 1u, sums.y));
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
    var w: Work;
    w.split = batch_split / p.batches;
    if (w.split >= p.splits) { return; }
    w.batch = batch_split - w.split * p.batches;
    w.m0 = (tile / p.tiles_n) * BM;
    w.n0 = (tile % p.tiles_n) * BN;
    w.m_end = p.m;
    w.n_end = p.n;
    w.k_begin = w.split * p.part;
    w.k_end = min(w.k_begin + p.part, p.k);
    if (DEEP > 0u) {
        w.k_begin = 0u;
        w.k_end = DEEP;
    }
    w.a0 = p.a.x + w.batch * p.a.y;
    w.b0 = p.b.x + w.batch * p.b.y;
    w.full_a = w.m0 + BM <= p.m;
    w.full_b = w.n0 + BN <= p.n;
    work(w, local, subgroup, subgroups);
}

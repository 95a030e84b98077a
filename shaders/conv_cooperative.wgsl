// Convolution as in conv.wgsl, by cooperative matrices.
// uses store, conv, cooperative
enable f16;
enable wgpu_cooperative_matrix;
// All branches around what subgroups do together are uniform, but by variables, which count as if not.
diagnostic(off, derivative_uniformity);
override BIAS: u32 = F32;
override Y: u32 = F32;
override TO_WEIGHT: bool = false;
override CLASSES: bool = false;
override HAS_BIAS: bool = false;
override DIMS: u32 = 3u;
// Whether four elements of a row of a that begin at a multiple of four lie one behind the other.
override FOURS_A: bool = false;
override PAIRS: bool = false; // two columns of y share a word
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
// A row of a is read along k. So is a column of b where its rows are places, of which those that follow each other
// lie so in x as well; else its columns are.
const A_ALONG_K: bool = true;
const B_ALONG_K: bool = TO_WEIGHT;
// Columns of b that an invocation reads: one in each load, or the four of its loads, which are those of each where a
// line takes as many loads for all of them.
const SAME: bool = THREADS * 4u % BN == 0u;
const NEAR: u32 = select(select(4u * LOADS_B, 4u, SAME), LOADS_B, TO_WEIGHT);

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> a: array<Stored>;
@group(0) @binding(3) var<storage, read> b: array<Stored>;
@group(0) @binding(4) var<storage, read> c: array<u32>;
// Largest magnitudes, float32: of the rows of a [group, m]; of x over the channels of a group [batch, group, place in
// x], or with TO_WEIGHT of each channel.
@group(0) @binding(5) var<storage, read> tops_a: array<u32>;
@group(0) @binding(6) var<storage, read> tops_b: array<u32>;
// a once more.
@group(0) @binding(7) var<storage, read> fours_of_a: array<Four>;
// What the rows of b in two steps stand for, and the offsets in y of the tile's columns.
var<workgroup> line_at: array<vec4<i32>, 2u * DEPTH>;
var<workgroup> line_a: array<u32, 2u * DEPTH>;
var<workgroup> columns: array<u32, BN>;
var<private> near: array<vec4<i32>, NEAR>;

struct Work {
    m0: u32,
    n0: u32,
    m_end: u32,
    n_end: u32,
    k_begin: u32,
    k_end: u32,
    group: u32,
    part: u32,
    a0: u32,
    b0: u32,
    s: Class,
}
fn begin(w: Work, local: u32) {
    for (var i = local; i < BN; i += THREADS) { columns[i] = column_of(w.s, w.n0 + i).own; }
    for (var i = 0u; i < NEAR; i++) {
        let e = (local + select(i / 4u, i, TO_WEIGHT) * THREADS) * 4u;
        let n = select(e % LINE_B + i % 4u, e / LINE_B, TO_WEIGHT);
        near[i] = column_of(w.s, w.n0 + n).at;
    }
}
// Where the tables of a step begin.
fn table(k0: u32) -> u32 {
    return k0 / DEPTH % 2u * DEPTH;
}
fn ahead(w: Work, k0: u32, local: u32) {
    let t = table(k0);
    for (var i = local; i < DEPTH; i += THREADS) {
        var line = Where(vec4(OUTSIDE), 0u);
        if (k0 + i < w.k_end) { line = row_of(w.s, k0 + i); }
        line_at[t + i] = line.at;
        line_a[t + i] = line.own;
    }
}
fn is_whole_a(w: Work, k0: u32) -> bool { return FOURS_A && w.m0 + BM <= p.m && k0 + DEPTH <= w.k_end; }
fn whole_a(w: Work, m: u32, k0: u32, k: u32) -> vec4<Element> {
    return fours_a((w.a0 + (w.m0 + m) * p.a_row + line_a[table(k0) + k]) / 4u);
}
fn four_a(w: Work, m: u32, k0: u32, k: u32) -> vec4<Element> {
    let row = w.a0 + (w.m0 + m) * p.a_row;
    let t = table(k0) + k;
    let left = w.k_end - min(k0 + k, w.k_end);
    var v = vec4<Element>();
    if (w.m0 + m >= p.m || left == 0u) { return v; }
    if (FOURS_A) { return fours_a((row + line_a[t]) / 4u); }
    v.x = load_a(row + line_a[t]);
    if (left > 1u) { v.y = load_a(row + line_a[t + 1u]); }
    if (left > 2u) { v.z = load_a(row + line_a[t + 2u]); }
    if (left > 3u) { v.w = load_a(row + line_a[t + 3u]); }
    return v;
}
// x at these coordinates, zero outside.
fn gathered(start: u32, at: vec4<i32>) -> Element {
    if (!is_inside(at)) { return Element(); }
    return load_b(start + u32(at.w));
}
// b is gathered.
fn is_whole_b(w: Work, k0: u32) -> bool { return false; }
fn whole_b(w: Work, l: u32, n: u32, k0: u32, k: u32) -> vec4<Element> { return vec4<Element>(); }
fn four_b(w: Work, l: u32, n: u32, k0: u32, k: u32) -> vec4<Element> {
    let t = table(k0) + k;
    let at = line_at[t];
    if (TO_WEIGHT) {
        return vec4(
            gathered(w.b0, at + near[l]),
            gathered(w.b0, line_at[t + 1u] + near[l]),
            gathered(w.b0, line_at[t + 2u] + near[l]),
            gathered(w.b0, line_at[t + 3u] + near[l]),
        );
    }
    let i = 4u * l % NEAR;
    return vec4(
        gathered(w.b0, at + near[i]),
        gathered(w.b0, at + near[i + 1u]),
        gathered(w.b0, at + near[i + 2u]),
        gathered(w.b0, at + near[i + 3u]),
    );
}

fn top_a(w: Work, m: u32) -> u32 {
    return tops_a[w.group * p.m + min(w.m0 + m, p.m - 1u)];
}
fn top_b(w: Work, n: u32) -> u32 {
    let i = min(w.n0 + n, w.n_end - 1u);
    if (TO_WEIGHT) { return tops_b[w.group * p.channels + i / volume(w.s.taps)]; }
    let here = place(w.s, i).at.xyz;
    let start = (i / volume(w.s.places) * p.groups + w.group) * p.source.w;
    var top = 0u;
    for (var d = 0u; d < w.s.taps.x; d++) {
        for (var h = 0u; h < w.s.taps.y; h++) {
            for (var x = 0u; x < w.s.taps.z; x++) {
                let at = here + vec3<i32>(vec3(d, h, x)) * w.s.tap_step;
                if (is_inside(vec4(at, 0))) { top = max(top, tops_b[start + u32(offset_in_x(at))]); }
            }
        }
    }
    return top;
}
fn plainly(w: Work, m: u32, n: u32) -> f32 {
    let row = w.a0 + (w.m0 + m) * p.a_row;
    let column = column_of(w.s, w.n0 + n).at;
    var v = 0.0;
    for (var k = w.k_begin; k < w.k_end; k++) {
        let line = row_of(w.s, k);
        v = fma(f32(load_a(row + line.own)), f32(gathered(w.b0, line.at + column)), v);
        // NaN stays.
        if ((bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u) { break; }
    }
    return v;
}
fn load_c(i: u32) -> Acc {
    let w = word(BIAS, i);
    return decode(BIAS, c[w], c[w], i);
}
fn result(w: Work, m: u32, sum: f32) -> f32 {
    if (HAS_BIAS && w.part == 0u) { return sum + load_c(p.bias + w.group * p.m + w.m0 + m); }
    return sum;
}
fn finish(w: Work, m: u32, n: u32, sum: f32) {
    let i = p.y_offset + w.part * p.y_split + w.group * p.y_group;
    store_y(i + (w.m0 + m) * p.y_row + columns[n], result(w, m, sum));
}
fn finish_pair(w: Work, m: u32, n: u32, sums: vec2<f32>) {
    let i = p.y_offset + w.part * p.y_split + w.group * p.y_group;
    store_two(i + (w.m0 + m) * p.y_row + columns[n], result(w, m, sums.x), result(w, m, sums.y));
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) wgs: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
) {
    let tiles = p.tiles_m * p.tiles_n;
    let id = wg.x + wg.y * wgs.x;
    let tile = id % tiles;
    var w: Work;
    w.group = id / tiles % p.groups;
    w.part = id / (tiles * p.groups * p.classes);
    if (w.part >= p.splits) { return; }
    w.s = class_of(id / (tiles * p.groups) % p.classes);
    w.m0 = (tile / p.tiles_n) * BM;
    w.n0 = (tile % p.tiles_n) * BN;
    w.m_end = p.m;
    w.n_end = p.n;
    w.k_end = p.k;
    if (CLASSES) {
        w.n_end = p.batch * volume(w.s.places);
        w.k_end = p.channels * volume(w.s.taps);
        if (w.n0 >= w.n_end) { return; }
    }
    w.k_begin = w.part * p.part;
    w.k_end = max(w.k_begin, min(w.k_begin + p.part, w.k_end));
    w.a0 = p.a_offset + w.group * p.a_group;
    w.b0 = p.b_offset + w.group * p.b_group;
    work(w, local, subgroup, subgroups);
}

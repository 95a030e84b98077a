// Convolution over up to three dimensions and its gradients: a matrix product whose operand b is gathered
// while it is read. What it reads is x at the sum of a place and a tap, zero outside. Places are numbered by
// (batch, depth, row, column), taps by (channel, depth, row, column). y[m, place] sums over the taps, or, with
// TO_WEIGHT, y[m, tap] over the places. A transposed convolution falls apart into as many CLASSES of places as
// its stride has elements; those of a class are reached by the same taps, and no zero is multiplied.
// Tiles are those of matmul.wgsl; every element is one chain of fused products along k, whatever the tile.
// uses store, conv, each
override A: u32 = F32;
override B: u32 = F32;
override C: u32 = F32; // of the bias
override Y: u32 = F32;
override TO_WEIGHT: bool = false;
override CLASSES: bool = false;
override HAS_BIAS: bool = false;
override DIMS: u32 = 3u;
override BM: u32 = 32u;
override BN: u32 = 32u;
override RM: u32 = 1u;
override RN: u32 = 1u;
override DEPTH: u32 = 8u;
override BUFFERS: u32 = 1u;
override ROLLED: bool = false; // whether the longest loops stay loops
override PAIRS: bool = false; // of tiles: columns 2 i and 2 i + 1 share a word of y
override WORDS: bool = false; // of `direct`: whether an invocation has all elements of a word
// Columns of b that an invocation reads: 4, or with TO_WEIGHT 4 * LOADS_B.
override NEAR: u32 = 4u;
// Of `shared_out`: columns of a workgroup, and its invocations.
override TAPS: u32 = 1u;
override LANES: u32 = 64u;
const COLS: u32 = BN / (4u * RN);
const SQUARES: u32 = 4u * RM * RN;
const BOTH: u32 = select(1u, 2u, PAIRS);
// As in matmul.wgsl.
const COPIES: u32 = select(0u, 1u, A != F32 || B != F32);
const THREADS: u32 = BM / (4u * RM) * COLS;
const QM: u32 = BM / 4u;
const QN: u32 = BN / 4u;
// A square more keeps rows of a tile apart in the banks of memory.
const PM: u32 = QM + 1u;
const PN: u32 = QN + 1u;
const LOADS_A: u32 = (DEPTH * QM + THREADS - 1u) / THREADS;
const LOADS_B: u32 = (DEPTH * QN + THREADS - 1u) / THREADS;
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> a: array<u32>;
@group(0) @binding(3) var<storage, read> b: array<u32>;
@group(0) @binding(4) var<storage, read> c: array<u32>;
var<workgroup> tile_a: array<vec4<Acc>, BUFFERS * DEPTH * PM>;
var<workgroup> tile_b: array<vec4<Acc>, BUFFERS * DEPTH * PN>;
// What the rows of b in a step, and those of the step before, stand for.
var<workgroup> line_at: array<vec4<i32>, 2u * DEPTH>;
var<workgroup> line_a: array<u32, 2u * DEPTH>;
var<workgroup> sums: array<Acc, TAPS * LANES>;

fn load_a(i: u32) -> Acc {
    let w = word(A, i);
    return decode(A, a[w], a[w + wide(A)], i);
}
fn load_b(i: u32) -> Acc {
    let w = word(B, i);
    return decode(B, b[w], b[w + wide(B)], i);
}
fn load_c(i: u32) -> Acc {
    let w = word(C, i);
    return decode(C, c[w], c[w + wide(C)], i);
}

// x at these coordinates, zero outside.
fn gathered(start: u32, at: vec4<i32>) -> Acc {
    if (!is_inside(at)) { return Acc(0); }
    return load_b(start + u32(at.w));
}
// Four elements of a column of a, zeros outside.
fn four_a(start: u32, m: u32, inside: bool) -> vec4<Acc> {
    let i = start + m * p.a_row;
    if (inside) {
        return vec4(load_a(i), load_a(i + p.a_row), load_a(i + 2u * p.a_row), load_a(i + 3u * p.a_row));
    }
    var v = vec4<Acc>();
    if (m < p.m) { v.x = load_a(i); }
    if (m + 1u < p.m) { v.y = load_a(i + p.a_row); }
    if (m + 2u < p.m) { v.z = load_a(i + 2u * p.a_row); }
    if (m + 3u < p.m) { v.w = load_a(i + 3u * p.a_row); }
    return v;
}
// Where in a tile of b load e of an invocation goes: the square, and the row.
fn place_b(e: u32) -> vec2<u32> {
    if (TO_WEIGHT) { return vec2(e / DEPTH, e % DEPTH); }
    return vec2(e % QN, e / QN);
}
// What is stored for a sum of row m.
fn result(group: u32, part: u32, m: u32, sum: Acc) -> Acc {
    if (HAS_BIAS && part == 0u) { return sum + load_c(p.bias + group * p.m + m); }
    return sum;
}
// Where row m of the result begins.
fn row_at(group: u32, part: u32, m: u32) -> u32 {
    return p.y_offset + part * p.y_split + group * p.y_group + m * p.y_row;
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) wgs: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tiles = p.tiles_m * p.tiles_n;
    let id = wg.x + wg.y * wgs.x;
    let tile = id % tiles;
    let group = id / tiles % p.groups;
    let which = id / (tiles * p.groups) % p.classes;
    let part = id / (tiles * p.groups * p.classes);
    if (part >= p.splits) { return; }
    let s = class_of(which);
    let m0 = (tile / p.tiles_n) * BM;
    let n0 = (tile % p.tiles_n) * BN;
    var n_end = p.n;
    var k_end = p.k;
    if (CLASSES) {
        n_end = p.batch * volume(s.places);
        k_end = p.channels * volume(s.taps);
        if (n0 >= n_end) { return; }
    }
    let k_begin = part * p.part;
    k_end = max(k_begin, min(k_begin + p.part, k_end));
    let a0 = p.a_offset + group * p.a_group;
    let b0 = p.b_offset + group * p.b_group;
    let zero = unknown_zero(ROLLED, wgs);
    let row = local / COLS;
    let col = local % COLS;

    // The columns that this invocation reads.
    var near: array<vec4<i32>, NEAR>;
    for (var i = 0u; i < NEAR; i++) { // unroll COPIES * NEAR
        let e = local + (i / 4u) * THREADS;
        near[i] = column_of(s, n0 + 4u * place_b(e).x + i % 4u).at;
    }
    var acc: array<vec4<Acc>, SQUARES>;
    for (var i = 0u; i < SQUARES; i++) { acc[i] = vec4<Acc>(); } // unroll COPIES * SQUARES
    var next_a: array<vec4<Acc>, LOADS_A>;
    var next_b: array<vec4<Acc>, LOADS_B>;
    var buffer = 0u;
    var lines = 0u;
    if (local < DEPTH) {
        let line = row_of(s, k_begin + local);
        line_at[local] = line.at;
        line_a[local] = line.own;
    }
    workgroupBarrier();
    // Each turn stores the tiles that the one before read ahead; the first only reads.
    for (var k0 = k_begin; k0 < k_end + DEPTH; k0 += DEPTH) {
        if (k0 > k_begin) {
            if (BUFFERS == 1u) { workgroupBarrier(); }
            for (var l = 0u; l < LOADS_A; l++) { // unroll COPIES * LOADS_A
                let e = local + l * THREADS;
                if (e < DEPTH * QM) { tile_a[(buffer * DEPTH + e % DEPTH) * PM + e / DEPTH] = next_a[l]; }
            }
            for (var l = 0u; l < LOADS_B; l++) { // unroll COPIES * LOADS_B
                let e = local + l * THREADS;
                let at = place_b(e);
                if (e < DEPTH * QN) { tile_b[(buffer * DEPTH + at.y) * PN + at.x] = next_b[l]; }
            }
            if (local < DEPTH && k0 < k_end) {
                let line = row_of(s, k0 + local);
                line_at[lines + local] = line.at;
                line_a[lines + local] = line.own;
            }
            workgroupBarrier();
        }
        if (k0 < k_end) {
            let inside = m0 + BM <= p.m;
            for (var l = 0u; l < LOADS_A; l++) { // unroll COPIES * LOADS_A
                let e = local + l * THREADS;
                if (e < DEPTH * QM) {
                    next_a[l] = vec4<Acc>();
                    if (k0 + e % DEPTH < k_end) {
                        next_a[l] = four_a(a0 + line_a[lines + e % DEPTH], m0 + 4u * (e / DEPTH), inside);
                    }
                }
            }
            for (var l = 0u; l < LOADS_B; l++) { // unroll COPIES * LOADS_B
                let e = local + l * THREADS;
                if (e < DEPTH * QN) {
                    let at = line_at[lines + place_b(e).y];
                    let i = 4u * l % NEAR;
                    next_b[l] = vec4(
                        gathered(b0, at + near[i]),
                        gathered(b0, at + near[i + 1u]),
                        gathered(b0, at + near[i + 2u]),
                        gathered(b0, at + near[i + 3u]),
                    );
                }
            }
        }
        if (k0 > k_begin) {
            for (var k = 0u; k < DEPTH + zero; k++) {
                let from_a = (buffer * DEPTH + k) * PM + row;
                let from_b = (buffer * DEPTH + k) * PN + col;
                for (var j = 0u; j < RN; j++) { // unroll COPIES * RN
                    let v = tile_b[from_b + j * (QN / RN)];
                    for (var i = 0u; i < RM; i++) { // unroll COPIES * RM
                        let u = tile_a[from_a + i * (QM / RM)];
                        let at = (i * RN + j) * 4u;
                        acc[at] = fused(u.x, v, acc[at]);
                        acc[at + 1u] = fused(u.y, v, acc[at + 1u]);
                        acc[at + 2u] = fused(u.z, v, acc[at + 2u]);
                        acc[at + 3u] = fused(u.w, v, acc[at + 3u]);
                    }
                }
            }
            if (BUFFERS == 2u) { buffer = 1u - buffer; }
        }
        lines = DEPTH - lines;
    }

    for (var j = 0u; j < 4u * RN + zero; j += BOTH) {
        let n = n0 + (j / 4u) * (BN / RN) + 4u * col + j % 4u;
        if (n >= n_end) { continue; }
        let own = column_of(s, n).own;
        for (var i = 0u; i < 4u * RM + zero; i++) {
            let m = m0 + (i / 4u) * (BM / RM) + 4u * row + i % 4u;
            if (m < p.m) {
                let at = ((i / 4u) * RN + j / 4u) * 4u + i % 4u;
                var four = vec4<Acc>();
                if (COPIES == 0u) {
                    four = acc[at];
                } else {
                    for (var q = 0u; q < SQUARES; q++) { // unroll COPIES * SQUARES
                        if (q == at) { four = acc[q]; }
                    }
                }
                let to = row_at(group, part, m) + own;
                let v = result(group, part, m, four[j % 4u]);
                if (PAIRS) {
                    store_two(to, v, result(group, part, m, four[(j + 1u) % 4u]));
                } else {
                    store_y(to, v);
                }
            }
        }
    }
}

// An element of the result, which lies by batch, group, row and place: the same chain without a tile.
fn element(id: u32) -> Acc {
    let e = split_index(id, p.places.xyz);
    let batch = e.w / (p.groups * p.m);
    let row = e.w - batch * p.groups * p.m;
    let group = row / p.m;
    let m = row - group * p.m;
    var which = 0u;
    if (CLASSES) {
        let many = min(p.stride.xyz, p.places.xyz);
        let own = e.xyz % p.stride.xyz;
        which = (own.x * many.y + own.y) * many.z + own.z;
    }
    let s = class_of(which);
    let here = s.start + vec3<i32>((e.xyz - s.first) / s.apart) * s.step;
    let x0 = offset_in_x(here) + i32(batch) * p.source_strides.w;
    let first = s.tap_first * p.kernel_strides.xyz;
    let apart = s.tap_apart * p.kernel_strides.xyz;
    let a0 = p.a_offset + group * p.a_group + m * p.a_row + first.x + first.y + first.z;
    let b0 = p.b_offset + group * p.b_group;
    var sum = vec4<Acc>();
    for (var ch = 0u; ch < p.channels; ch++) {
        for (var d = 0u; d < s.taps.x; d++) {
            for (var h = 0u; h < s.taps.y; h++) {
                let line = a0 + ch * p.kernel_strides.w + d * apart.x + h * apart.y;
                for (var w = 0u; w < s.taps.z; w++) {
                    let by = vec3<i32>(vec3(d, h, w)) * s.tap_step;
                    let at = vec4(here + by, x0 + offset_in_x(by) + i32(ch * p.source.w));
                    sum = fused(load_a(line + w * apart.z), vec4(gathered(b0, at)), sum);
                }
            }
        }
    }
    return result(group, 0u, m, sum.x);
}

// For groups with few rows.
@compute @workgroup_size(WORKGROUP)
fn direct(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) wgs: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let size = p.batch * p.groups * p.m * volume(p.places.xyz);
    store_each((wg.x + wg.y * wgs.x) * WORKGROUP + local, p.y_offset, size);
}

// With TO_WEIGHT, for groups with few rows and channels: a workgroup has one row and TAPS columns. Its
// invocations share out the places, and their sums are added as a tree.
@compute @workgroup_size(LANES)
fn shared_out(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) wgs: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tiles = p.tiles_m * p.tiles_n;
    let id = wg.x + wg.y * wgs.x;
    let group = id / tiles % p.groups;
    let part = id / (tiles * p.groups);
    if (part >= p.splits) { return; }
    let s = class_of(0u);
    let m = id % tiles / p.tiles_n;
    let n0 = id % p.tiles_n * TAPS;
    let k_end = min((part + 1u) * p.part, p.k);
    let a0 = p.a_offset + group * p.a_group + m * p.a_row;
    let b0 = p.b_offset + group * p.b_group;
    var taps: array<vec4<i32>, TAPS>;
    var sum: array<Acc, TAPS>;
    for (var t = 0u; t < TAPS; t++) {
        taps[t] = tap(s, n0 + t).at;
        sum[t] = Acc(0);
    }
    for (var k = part * p.part + local; k < k_end; k += LANES) {
        let here = place(s, k);
        let g = load_a(a0 + here.own);
        for (var t = 0u; t < TAPS; t++) {
            sum[t] = fma(g, gathered(b0, here.at + taps[t]), sum[t]);
        }
    }
    for (var t = 0u; t < TAPS; t++) { sums[t * LANES + local] = sum[t]; }
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        for (var e = local; e < half * TAPS; e += LANES) {
            let at = e / half * LANES + e % half;
            sums[at] += sums[at + half];
        }
        workgroupBarrier();
    }
    if (local < TAPS && n0 + local < p.n) {
        let to = row_at(group, part, m) + tap(s, n0 + local).own;
        store_y(to, result(group, part, m, sums[local * LANES]));
    }
}

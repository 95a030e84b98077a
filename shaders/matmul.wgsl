// y[b, m, n] = alpha * sum over k of a[b, m, k] * b[b, k, n] + beta * c[b, m, n], any strides.
// A workgroup of WG x WG invocations makes a tile of 4 WG x 4 WG, each invocation 4 x 4 of it.
// uses store
override A: u32 = F32;
override B: u32 = F32;
override C: u32 = F32;
override Y: u32 = F32;
override HAS_C: bool = false;
override SUMS: bool = false; // also the sums of the rows of a, of one batch
// Whether k (else m or n) is the index along which a tile is read.
override A_ALONG_K: bool = true;
override B_ALONG_K: bool = false;
override WG: u32 = 8u;
override TILE: u32 = 4u * WG;
override SHARED: u32 = TILE * DEPTH;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    batches: u32,
    // Parts of k that different workgroups take, each of `part`; y then is [split, b, m, n].
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
var<workgroup> tile_a: array<Acc, SHARED>;
var<workgroup> tile_b: array<Acc, SHARED>;

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

@compute @workgroup_size(WG, WG)
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
    let m0 = (tile / p.tiles_n) * TILE;
    let n0 = (tile % p.tiles_n) * TILE;
    let k_begin = split * p.part;
    let k_end = min(k_begin + p.part, p.k);
    let a0 = p.a.x + batch * p.a.y;
    let b0 = p.b.x + batch * p.b.y;
    let row = (local / WG) * 4u;
    let col = (local % WG) * 4u;

    var acc0 = vec4<Acc>();
    var acc1 = vec4<Acc>();
    var acc2 = vec4<Acc>();
    var acc3 = vec4<Acc>();
    let sums_here = SUMS && n0 == 0u && local < TILE;
    var sum = Acc(0);
    for (var k0 = k_begin; k0 < k_end; k0 += DEPTH) {
        for (var e = local; e < SHARED; e += WG * WG) {
            var m = e % TILE;
            var k = e / TILE;
            if (A_ALONG_K) { m = e / DEPTH; k = e % DEPTH; }
            var v = Acc(0);
            if (m0 + m < p.m && k0 + k < k_end) {
                v = load_a(a0 + (m0 + m) * p.a.z + (k0 + k) * p.a.w);
            }
            tile_a[k * TILE + m] = v;
            var n = e % TILE;
            k = e / TILE;
            if (B_ALONG_K) { n = e / DEPTH; k = e % DEPTH; }
            v = Acc(0);
            if (n0 + n < p.n && k0 + k < k_end) {
                v = load_b(b0 + (k0 + k) * p.b.z + (n0 + n) * p.b.w);
            }
            tile_b[k * TILE + n] = v;
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let i = k * TILE + row;
            let j = k * TILE + col;
            let v = vec4<Acc>(tile_b[j], tile_b[j + 1u], tile_b[j + 2u], tile_b[j + 3u]);
            acc0 += tile_a[i] * v;
            acc1 += tile_a[i + 1u] * v;
            acc2 += tile_a[i + 2u] * v;
            acc3 += tile_a[i + 3u] * v;
        }
        if (sums_here) {
            for (var k = 0u; k < DEPTH; k++) { sum += tile_a[k * TILE + local]; }
        }
        workgroupBarrier();
    }

    if (sums_here && m0 + local < p.m) { sums[split * p.m + m0 + local] = encode(F32, sum).x; }
    let alpha = from_words(p.alpha.x, p.alpha.y);
    let beta = from_words(p.beta.x, p.beta.y);
    let y0 = p.y.x + split * p.y_split + batch * p.y.y;
    let c0 = p.c.x + batch * p.c.y;
    for (var i = 0u; i < 4u; i++) {
        let m = m0 + row + i;
        if (m >= p.m) { break; }
        var acc = acc0;
        if (i == 1u) { acc = acc1; }
        if (i == 2u) { acc = acc2; }
        if (i == 3u) { acc = acc3; }
        for (var j = 0u; j < 4u; j++) {
            let n = n0 + col + j;
            if (n >= p.n) { break; }
            var v = alpha * acc[j];
            if (HAS_C) { v += beta * load_c(c0 + m * p.c.z + n * p.c.w); }
            store_y(y0 + m * p.y.z + n * p.y.w, v);
        }
    }
}

// 2-d convolution as a matrix product whose operands are gathered while they are loaded: no
// buffer of patches. MODE is FORWARD, y = w * x; TO_INPUT, the gradient of the input (and
// transposed convolution), where x plays the output's part; or TO_WEIGHT, the gradient of the
// weight. All tensors are contiguous; a is the weight, or for TO_WEIGHT the output's gradient.
// uses store
override A: u32 = F32;
override B: u32 = F32;
override C: u32 = F32; // of the bias
override Y: u32 = F32;
override MODE: u32 = FORWARD;
override HAS_BIAS: bool = false;
override WG: u32 = 8u;
override TILE: u32 = 4u * WG;
override SHARED: u32 = TILE * DEPTH;

struct Params {
    // Of the product, for each group of channels.
    m: u32,
    n: u32,
    k: u32,
    groups: u32,
    splits: u32,
    part: u32,
    tiles_m: u32,
    tiles_n: u32,
    a_offset: u32,
    b_offset: u32,
    c_offset: u32,
    y_offset: u32,
    y_split: u32,
    in_channels: u32, // of one group
    out_channels: u32, // of one group
    pad0: u32,
    in_size: vec2<u32>, // height, width
    out_size: vec2<u32>,
    kernel: vec2<u32>,
    stride: vec2<u32>,
    padding: vec2<u32>,
    dilation: vec2<u32>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> a: array<u32>;
@group(0) @binding(3) var<storage, read> b: array<u32>;
@group(0) @binding(4) var<storage, read> c: array<u32>;
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

// A row-major index split into (outer, row, column).
fn split(i: u32, size: vec2<u32>) -> vec3<u32> {
    let r = i / size.y;
    let o = r / size.x;
    return vec3(o, r - o * size.x, i - r * size.y);
}

// The element of x [batch, channels, size] in the padding or not: batch, channel in the group, row
// and column counted with the padding.
fn input_at(group: u32, batch: u32, channel: u32, at: vec2<u32>) -> Acc {
    if (any(at < p.padding) || any(at >= p.in_size + p.padding)) { return Acc(0); }
    let s = at - p.padding;
    let plane = (batch * p.groups + group) * p.in_channels + channel;
    return load_b(p.b_offset + (plane * p.in_size.x + s.x) * p.in_size.y + s.y);
}

fn operand_a(group: u32, m: u32, k: u32) -> Acc {
    if (MODE == TO_INPUT) {
        // m an input channel, k = (output channel, kernel row, kernel column)
        let taps = p.kernel.x * p.kernel.y;
        let o = k / taps;
        let row = (group * p.out_channels + o) * p.in_channels + m;
        return load_a(p.a_offset + row * taps + k - o * taps);
    }
    if (MODE == TO_WEIGHT) {
        // m an output channel, k = (batch, output row, output column)
        let area = p.out_size.x * p.out_size.y;
        let batch = k / area;
        let plane = (batch * p.groups + group) * p.out_channels + m;
        return load_a(p.a_offset + plane * area + k - batch * area);
    }
    return load_a(p.a_offset + (group * p.out_channels + m) * p.k + k);
}

fn operand_b(group: u32, k: u32, n: u32) -> Acc {
    if (MODE == TO_INPUT) {
        // k = (output channel, kernel row, kernel column), n = (batch, input row, input column)
        let tap = split(k, p.kernel);
        let at = split(n, p.in_size);
        let reach = at.yz + p.padding;
        let back = tap.yz * p.dilation;
        if (any(reach < back)) { return Acc(0); }
        let o = (reach - back) / p.stride;
        if (any(o * p.stride != reach - back) || any(o >= p.out_size)) { return Acc(0); }
        let plane = (at.x * p.groups + group) * p.out_channels + tap.x;
        return load_b(p.b_offset + (plane * p.out_size.x + o.x) * p.out_size.y + o.y);
    }
    if (MODE == TO_WEIGHT) {
        let at = split(k, p.out_size);
        let tap = split(n, p.kernel);
        return input_at(group, at.x, tap.x, at.yz * p.stride + tap.yz * p.dilation);
    }
    let tap = split(k, p.kernel);
    let at = split(n, p.out_size);
    return input_at(group, at.x, tap.x, at.yz * p.stride + tap.yz * p.dilation);
}

fn result_at(group: u32, m: u32, n: u32) -> u32 {
    if (MODE == TO_WEIGHT) { return (group * p.m + m) * p.n + n; }
    var area = p.out_size.x * p.out_size.y;
    if (MODE == TO_INPUT) { area = p.in_size.x * p.in_size.y; }
    let batch = n / area;
    return ((batch * p.groups + group) * p.m + m) * area + n - batch * area;
}

@compute @workgroup_size(WG, WG)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) wgs: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = wg.x + wg.y * wgs.x;
    let tiles = p.tiles_m * p.tiles_n;
    let group_split = id / tiles;
    let tile = id - group_split * tiles;
    let part = group_split / p.groups;
    if (part >= p.splits) { return; }
    let group = group_split - part * p.groups;
    let m0 = (tile / p.tiles_n) * TILE;
    let n0 = (tile % p.tiles_n) * TILE;
    let k_begin = part * p.part;
    let k_end = min(k_begin + p.part, p.k);
    let row = (local / WG) * 4u;
    let col = (local % WG) * 4u;

    var acc0 = vec4<Acc>();
    var acc1 = vec4<Acc>();
    var acc2 = vec4<Acc>();
    var acc3 = vec4<Acc>();
    for (var k0 = k_begin; k0 < k_end; k0 += DEPTH) {
        for (var e = local; e < SHARED; e += WG * WG) {
            var v = Acc(0);
            let m = m0 + e / DEPTH;
            if (m < p.m && k0 + e % DEPTH < k_end) { v = operand_a(group, m, k0 + e % DEPTH); }
            tile_a[(e % DEPTH) * TILE + e / DEPTH] = v;
            v = Acc(0);
            let n = n0 + e % TILE;
            if (n < p.n && k0 + e / TILE < k_end) { v = operand_b(group, k0 + e / TILE, n); }
            tile_b[e] = v;
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
        workgroupBarrier();
    }

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
            var v = acc[j];
            if (HAS_BIAS) { v += load_c(p.c_offset + group * p.m + m); }
            store_y(p.y_offset + part * p.y_split + result_at(group, m, n), v);
        }
    }
}

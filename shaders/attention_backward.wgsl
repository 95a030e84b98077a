// The gradients of attention, from the statistics of its rows: of queries, a workgroup for T of them
// (`queries`); of keys and values, one for T keys, over all heads that share them (`keys`). Every sum
// has one order. Results are float32.
// uses attention
override X: u32 = F32; // of q, k and v
override Y: u32 = F32; // of the result of attention
override G: u32 = F32;
override A: u32 = F32; // of the mask
override MASK: bool = false;
override CAUSAL: bool = false;
override DROPOUT: bool = false;
override D: u32 = 64u; // components, of keys or of values
override T: u32 = 16u;
override WHOLE: bool = false; // whether keys and values have D components
override ROLLED: bool = false; // whether loops over T, M and C stay loops

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dq: array<u32>; // of keys in `keys`
@group(0) @binding(2) var<storage, read_write> dv: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<u32>;
@group(0) @binding(4) var<storage, read> k: array<u32>;
@group(0) @binding(5) var<storage, read> v: array<u32>;
@group(0) @binding(6) var<storage, read> y: array<u32>;
@group(0) @binding(7) var<storage, read> g: array<u32>;
@group(0) @binding(8) var<storage, read> stats: array<u32>;
@group(0) @binding(9) var<storage, read> mask: array<u32>;
var<workgroup> tile_q: array<f32, T * PITCH>;
var<workgroup> tile_g: array<f32, T * PITCH>;
var<workgroup> tile_k: array<f32, T * PITCH>;
var<workgroup> tile_v: array<f32, T * PITCH>;
var<workgroup> weights: array<f32, T * SPAN>;
var<workgroup> slopes: array<f32, T * SPAN>;
// Of each query: the largest score, the inverse of the sum, and the sum of g y.
var<workgroup> known: array<vec3<f32>, T>;

fn load_g(batch: u32, head: u32, row: u32, c: u32) -> f32 {
    let i = place(5u, batch, head, row, c);
    return decode(G, g[word(G, i)], 0u, i);
}

fn take_queries(batch: u32, head: u32, i0: u32, local: u32) {
    for (var e = local; e < T * width(); e += 64u) {
        let i = e / width();
        let c = e % width();
        var x = 0.0;
        if (i0 + i < p.queries) { x = load_q(batch, head, i0 + i, c); }
        tile_q[i * PITCH + c] = x;
    }
    for (var e = local; e < T * value_width(); e += 64u) {
        let i = e / value_width();
        let c = e % value_width();
        var x = 0.0;
        if (i0 + i < p.queries) { x = load_g(batch, head, i0 + i, c); }
        tile_g[i * PITCH + c] = x;
    }
    if (local < T) {
        var all = vec3<f32>();
        let i = i0 + local;
        if (i < p.queries) {
            let at = ((batch * p.heads + head) * p.queries + i) * 2u;
            all.x = bitcast<f32>(stats[at]);
            all.y = bitcast<f32>(stats[at + 1u]);
            for (var c = 0u; c < value_width(); c++) {
                let n = place(4u, batch, head, i, c);
                all.z += load_g(batch, head, i, c) * decode(Y, y[word(Y, n)], 0u, n);
            }
        }
        known[local] = all;
    }
}

fn take_keys(batch: u32, own: u32, j0: u32, local: u32) {
    for (var e = local; e < T * width(); e += 64u) {
        let j = e / width();
        let c = e % width();
        var x = 0.0;
        if (j0 + j < p.keys) { x = load_k(batch, own, j0 + j, c); }
        tile_k[j * PITCH + c] = x;
    }
    for (var e = local; e < T * value_width(); e += 64u) {
        let j = e / value_width();
        let c = e % value_width();
        var x = 0.0;
        if (j0 + j < p.keys) { x = load_v(batch, own, j0 + j, c); }
        tile_v[j * PITCH + c] = x;
    }
}

// The weights of a tile as dropout left them, and the slopes of the scores.
fn tile_slopes(batch: u32, head: u32, i0: u32, j0: u32, local: u32, zero: u32) {
    let row = local / 8u;
    let col = local % 8u;
    var score: array<f32, M * M>;
    var slope: array<f32, M * M>;
    for (var a = 0u; a < M * M + zero; a++) { // unroll M * M
        score[a] = 0.0;
        slope[a] = 0.0;
    }
    for (var c = 0u; c < width(); c++) {
        var x: array<f32, M>;
        for (var a = 0u; a < M + zero; a++) { x[a] = tile_q[(row + 8u * a) * PITCH + c]; } // unroll M
        for (var b = 0u; b < M + zero; b++) { // unroll M
            let z = tile_k[(col + 8u * b) * PITCH + c];
            for (var a = 0u; a < M + zero; a++) { score[a * M + b] = fma(x[a], z, score[a * M + b]); } // unroll M
        }
    }
    for (var c = 0u; c < value_width(); c++) {
        var x: array<f32, M>;
        for (var a = 0u; a < M + zero; a++) { x[a] = tile_g[(row + 8u * a) * PITCH + c]; } // unroll M
        for (var b = 0u; b < M + zero; b++) { // unroll M
            let z = tile_v[(col + 8u * b) * PITCH + c];
            for (var a = 0u; a < M + zero; a++) { slope[a * M + b] = fma(x[a], z, slope[a * M + b]); } // unroll M
        }
    }
    for (var a = 0u; a < M + zero; a++) { // unroll M
        let i = row + 8u * a;
        let row_of = known[i];
        for (var b = 0u; b < M + zero; b++) { // unroll M
            let j = col + 8u * b;
            var w = 0.0;
            var d = 0.0;
            if (!hidden(batch, head, i0 + i, j0 + j) && is_true(row_of.y)) {
                let s = score[a * M + b] * p.scale + added(batch, head, i0 + i, j0 + j);
                w = exp(s - row_of.x) * row_of.y;
                // A weight of nothing has no slope, whatever the values are.
                if (is_true(w)) {
                    d = slope[a * M + b];
                    var passed = w;
                    if (DROPOUT) {
                        let kept = select(0.0, p.kept, keeps(batch * p.heads + head, i0 + i, j0 + j));
                        d *= kept;
                        passed *= kept;
                    }
                    d = w * (d - row_of.z) * p.scale;
                    w = passed;
                }
            }
            weights[i * SPAN + j] = w;
            slopes[i * SPAN + j] = d;
        }
    }
}

@compute @workgroup_size(64)
fn queries(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let zero = unknown_zero(ROLLED, groups);
    let id = group.x + group.y * groups.x;
    let plane = id / p.tiles;
    if (plane >= p.planes) { return; }
    let batch = plane / p.heads;
    let head = plane % p.heads;
    let i0 = (id % p.tiles) * T;
    let row = local / 8u;
    let col = local % 8u;
    var out: array<f32, M * C>;
    for (var a = 0u; a < M * C + zero; a++) { out[a] = 0.0; } // unroll M * C
    take_queries(batch, head, i0, local);
    var end = p.keys;
    if (CAUSAL) { end = min(end, i0 + T); }
    for (var j0 = 0u; j0 < end; j0 += T) {
        take_keys(batch, head / p.group, j0, local);
        workgroupBarrier();
        tile_slopes(batch, head, i0, j0, local, zero);
        workgroupBarrier();
        for (var j = 0u; j < T + zero; j++) {
            var x: array<f32, C>;
            for (var c = 0u; c < C + zero; c++) { x[c] = tile_k[j * PITCH + min(col + 8u * c, D - 1u)]; } // unroll C
            for (var a = 0u; a < M + zero; a++) { // unroll M
                let d = slopes[(row + 8u * a) * SPAN + j];
                if (is_true(d)) {
                    for (var c = 0u; c < C + zero; c++) { // unroll C
                        out[a * C + c] = fma(d, x[c], out[a * C + c]);
                    }
                }
            }
        }
        workgroupBarrier();
    }
    for (var a = 0u; a < M + zero; a++) { // unroll M
        let i = i0 + row + 8u * a;
        for (var c = 0u; c < C + zero; c++) { // unroll C
            if (i < p.queries && col + 8u * c < width()) {
                dq[place(6u, batch, head, i, col + 8u * c)] = bitcast<u32>(out[a * C + c]);
            }
        }
    }
}

@compute @workgroup_size(64)
fn keys(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let zero = unknown_zero(ROLLED, groups);
    let id = group.x + group.y * groups.x;
    let plane = id / p.tiles;
    if (plane >= p.planes) { return; }
    let owners = p.heads / p.group;
    let batch = plane / owners;
    let own = plane % owners;
    let j0 = (id % p.tiles) * T;
    let row = local / 8u;
    let col = local % 8u;
    var out_k: array<f32, M * C>;
    var out_v: array<f32, M * C>;
    for (var a = 0u; a < M * C + zero; a++) { // unroll M * C
        out_k[a] = 0.0;
        out_v[a] = 0.0;
    }
    take_keys(batch, own, j0, local);
    // Queries before the first key see none of these.
    var start = 0u;
    if (CAUSAL) { start = j0; }
    for (var n = 0u; n < p.group; n++) {
        let head = own * p.group + n;
        for (var i0 = start; i0 < p.queries; i0 += T) {
            take_queries(batch, head, i0, local);
            workgroupBarrier();
            tile_slopes(batch, head, i0, j0, local, zero);
            workgroupBarrier();
            for (var i = 0u; i < T + zero; i++) {
                var g: array<f32, C>;
                var x: array<f32, C>;
                for (var c = 0u; c < C + zero; c++) { // unroll C
                    let at = i * PITCH + min(col + 8u * c, D - 1u);
                    g[c] = tile_g[at];
                    x[c] = tile_q[at];
                }
                for (var a = 0u; a < M + zero; a++) { // unroll M
                    // Here the rows are keys.
                    let w = weights[i * SPAN + row + 8u * a];
                    let d = slopes[i * SPAN + row + 8u * a];
                    if (is_true(w)) {
                        for (var c = 0u; c < C + zero; c++) { // unroll C
                            out_v[a * C + c] = fma(w, g[c], out_v[a * C + c]);
                        }
                    }
                    if (is_true(d)) {
                        for (var c = 0u; c < C + zero; c++) { // unroll C
                            out_k[a * C + c] = fma(d, x[c], out_k[a * C + c]);
                        }
                    }
                }
            }
            workgroupBarrier();
        }
    }
    for (var a = 0u; a < M + zero; a++) { // unroll M
        let j = j0 + row + 8u * a;
        for (var c = 0u; c < C + zero; c++) { // unroll C
            let at = col + 8u * c;
            if (j < p.keys && at < width()) {
                dq[place(7u, batch, own, j, at)] = bitcast<u32>(out_k[a * C + c]);
            }
            if (j < p.keys && at < value_width()) {
                dv[place(8u, batch, own, j, at)] = bitcast<u32>(out_v[a * C + c]);
            }
        }
    }
}

// Attention without its matrix of weights: y = softmax(q k' scale + mask) v, tile by tile, with the
// largest score and the inverse of the sum of exponentials of each row. A row that sees nothing is
// zero, and what is hidden is not read.
// uses store, rows, attention
override X: u32 = F32; // of q, k and v
override Y: u32 = F32;
override A: u32 = F32; // of the mask
override MASK: bool = false;
override CAUSAL: bool = false;
override DROPOUT: bool = false;
override D: u32 = 64u; // components, of keys or of values
override T: u32 = 16u;
override WHOLE: bool = false; // whether keys and values have D components
override ROLLED: bool = false; // whether loops over T, M and C stay loops
override LANES: u32 = 64u;
override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> stats: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<u32>;
@group(0) @binding(4) var<storage, read> k: array<u32>;
@group(0) @binding(5) var<storage, read> v: array<u32>;
@group(0) @binding(6) var<storage, read> mask: array<u32>;
var<workgroup> tile_q: array<f32, T * PITCH>;
var<workgroup> tile_k: array<f32, T * PITCH>;
var<workgroup> weights: array<f32, T * SPAN>;

// Scores at most this are those of hidden keys.
const LOW: f32 = -3.0e38;

@compute @workgroup_size(WG)
fn main(
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
    let own = head / p.group;
    let i0 = (id % p.tiles) * T;
    let row = local / 8u;
    let col = local % 8u;
    for (var e = local; e < T * width(); e += 64u) {
        let i = e / width();
        let c = e % width();
        var x = 0.0;
        if (i0 + i < p.queries) { x = load_q(batch, head, i0 + i, c); }
        tile_q[i * PITCH + c] = x;
    }
    var top: array<f32, M>;
    var sum: array<f32, M>;
    var out: array<f32, M * C>;
    for (var a = 0u; a < M + zero; a++) { // unroll M
        top[a] = LOW;
        sum[a] = 0.0;
        for (var c = 0u; c < C + zero; c++) { out[a * C + c] = 0.0; } // unroll C
    }
    var end = p.keys;
    if (CAUSAL) { end = min(end, i0 + T); }
    for (var j0 = 0u; j0 < end; j0 += T) {
        for (var e = local; e < T * width(); e += 64u) {
            let j = e / width();
            let c = e % width();
            var x = 0.0;
            if (j0 + j < p.keys) { x = load_k(batch, own, j0 + j, c); }
            tile_k[j * PITCH + c] = x;
        }
        workgroupBarrier();
        var score: array<f32, M * M>;
        for (var a = 0u; a < M * M + zero; a++) { score[a] = 0.0; } // unroll M * M
        for (var c = 0u; c < width(); c++) {
            var x: array<f32, M>;
            for (var a = 0u; a < M + zero; a++) { x[a] = tile_q[(row + 8u * a) * PITCH + c]; } // unroll M
            for (var b = 0u; b < M + zero; b++) { // unroll M
                let z = tile_k[(col + 8u * b) * PITCH + c];
                for (var a = 0u; a < M + zero; a++) { score[a * M + b] = fma(x[a], z, score[a * M + b]); } // unroll M
            }
        }
        for (var a = 0u; a < M + zero; a++) { // unroll M
            let i = row + 8u * a;
            for (var b = 0u; b < M + zero; b++) { // unroll M
                let j = col + 8u * b;
                var s = LOW;
                if (!hidden(batch, head, i0 + i, j0 + j)) {
                    s = score[a * M + b] * p.scale + added(batch, head, i0 + i, j0 + j);
                }
                score[a * M + b] = s;
                weights[i * SPAN + j] = s;
            }
        }
        workgroupBarrier();
        for (var a = 0u; a < M + zero; a++) { // unroll M
            let i = row + 8u * a;
            var most = top[a];
            for (var j = 0u; j < T + zero; j++) { most = larger(most, weights[i * SPAN + j]); }
            // Until a key is seen there is nothing to make smaller.
            var shrink = 1.0;
            if (!at_most(top[a], LOW)) { shrink = exp(top[a] - most); }
            top[a] = most;
            sum[a] *= shrink;
            for (var c = 0u; c < C + zero; c++) { out[a * C + c] *= shrink; } // unroll C
        }
        workgroupBarrier();
        for (var a = 0u; a < M + zero; a++) { // unroll M
            let i = row + 8u * a;
            for (var b = 0u; b < M + zero; b++) { // unroll M
                let j = col + 8u * b;
                let s = score[a * M + b];
                var w = 0.0;
                if (!at_most(s, LOW)) { w = exp(s - top[a]); }
                // The sign tells what dropout drops: the sum has all.
                if (DROPOUT && !keeps(plane, i0 + i, j0 + j)) { w = -w; }
                weights[i * SPAN + j] = w;
            }
        }
        for (var e = local; e < T * value_width(); e += 64u) {
            let j = e / value_width();
            let c = e % value_width();
            var x = 0.0;
            if (j0 + j < p.keys) { x = load_v(batch, own, j0 + j, c); }
            tile_k[j * PITCH + c] = x;
        }
        workgroupBarrier();
        for (var j = 0u; j < T + zero; j++) {
            // Behind the values lie those of other keys, which nobody writes out.
            var x: array<f32, C>;
            for (var c = 0u; c < C + zero; c++) { x[c] = tile_k[j * PITCH + min(col + 8u * c, D - 1u)]; } // unroll C
            for (var a = 0u; a < M + zero; a++) { // unroll M
                let w = weights[(row + 8u * a) * SPAN + j];
                sum[a] += abs(w);
                if ((bitcast<i32>(w) > 0) | is_nan(w)) {
                    for (var c = 0u; c < C + zero; c++) { // unroll C
                        out[a * C + c] = fma(w, x[c], out[a * C + c]);
                    }
                }
            }
        }
        workgroupBarrier();
    }
    for (var a = 0u; a < M + zero; a++) { // unroll M
        let i = i0 + row + 8u * a;
        if (i < p.queries) {
            var inverse = 0.0;
            if (!at_most(sum[a], 0.0)) { inverse = 1.0 / sum[a]; }
            for (var c = 0u; c < C + zero; c++) { // unroll C
                if (col + 8u * c < value_width()) {
                    var x = out[a * C + c] * inverse;
                    if (DROPOUT) { x *= p.kept; }
                    store_y(place(4u, batch, head, i, col + 8u * c), x);
                }
            }
            if (col == 0u) {
                let at = (plane * p.queries + i) * 2u;
                stats[at] = bitcast<u32>(top[a]);
                stats[at + 1u] = bitcast<u32>(inverse);
            }
        }
    }
}

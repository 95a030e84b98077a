// Attention without its matrix of weights: y = softmax(q k' scale + mask) v, tile by tile, with the
// largest score and the inverse of the sum of exponentials of each row. A row that sees nothing is
// zero, and what is hidden is not read.
// uses store, attention
override X: u32 = F32; // of q, k and v
override Y: u32 = F32;
override A: u32 = F32; // of the mask
override MASK: bool = false;
override CAUSAL: bool = false;
override DROPOUT: bool = false;
override PAIRS: bool = false; // two components of y share a word
override D: u32 = 64u; // components, of keys or of values
override TX: u32 = 16u; // queries of a tile, of M an invocation
override TZ: u32 = 16u; // keys of a tile, of N an invocation
override ROWS: u32 = 16u;
override COLUMNS: u32 = 4u;
override WHOLE: bool = false; // whether keys and values have D components, a multiple of four
override ROLLED: bool = false; // whether loops over parts of a tile stay loops

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> stats: array<u32>;
@group(0) @binding(3) var<storage, read> q: array<u32>;
@group(0) @binding(4) var<storage, read> k: array<u32>;
@group(0) @binding(5) var<storage, read> v: array<u32>;
@group(0) @binding(6) var<storage, read> mask: array<u32>;
var<workgroup> tile_q: array<vec4<f32>, TX * PITCH>;
// Keys, and when their scores are known the values.
var<workgroup> passing: array<vec4<f32>, TZ * PITCH>;
var<workgroup> weights: array<vec4<f32>, TX * SPAN>;
// What the invocations of a row found.
var<workgroup> found: array<f32, TX * COLUMNS>;

const EACH: u32 = select(1u, 2u, PAIRS);
// Scores at most this are those of hidden keys.
const LOW: f32 = -3.0e38;

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    zero = unknown_zero(ROLLED, groups);
    let id = group.x + group.y * groups.x;
    let plane = id / p.tiles;
    if (plane >= p.planes) { return; }
    let batch = plane / p.heads;
    let head = plane % p.heads;
    let own = head / p.group;
    // The tiles with most to do come first.
    let i0 = (p.tiles - 1u - id % p.tiles) * TX;
    let row = local / COLUMNS;
    let col = local % COLUMNS;
    if (local == 0u) { atomicStore(&non_finite, 0u); }
    for (var l = 0u; l < turns(LOADS_X); l++) { // unroll LOADS_X
        let e = local + l * THREADS;
        if (e < TX * FOURS) { tile_q[e / FOURS * PITCH + e % FOURS] = four_q(batch, head, i0 + e / FOURS, e % FOURS); }
    }
    var top: array<f32, M>;
    var sum: array<f32, M>;
    var out: array<vec4<f32>, M * C>;
    for (var a = 0u; a < turns(M); a++) { // unroll M
        top[a] = LOW;
        sum[a] = 0.0;
        for (var c = 0u; c < turns(C); c++) { out[a * C + c] = vec4<f32>(); } // unroll C
    }
    workgroupBarrier();
    var end = p.keys;
    if (CAUSAL) { end = min(end, seen(i0 + TX)); }
    for (var j0 = 0u; j0 < end; j0 += TZ) {
        for (var l = 0u; l < turns(LOADS_Z); l++) { // unroll LOADS_Z
            let e = local + l * THREADS;
            if (e < TZ * FOURS) {
                passing[slot(e / FOURS) * PITCH + e % FOURS] = four_k(batch, own, j0 + e / FOURS, e % FOURS);
            }
        }
        workgroupBarrier();
        var score: array<f32, M * N>;
        for (var a = 0u; a < M * N + zero; a++) { score[a] = 0.0; } // unroll M * N
        for (var c = 0u; c < fours(); c++) {
            var x: array<vec4<f32>, M>;
            for (var a = 0u; a < turns(M); a++) { x[a] = tile_q[(row + ROWS * a) * PITCH + c]; } // unroll M
            for (var b = 0u; b < N + zero; b++) { // unroll N
                let z = passing[(col + COLUMNS * b) * PITCH + c];
                for (var a = 0u; a < turns(M); a++) { // unroll M
                    score[a * N + b] = add_product(x[a], z, score[a * N + b]);
                }
            }
        }
        let edge = MASK || j0 + TZ > p.keys || (CAUSAL && j0 + TZ > seen(i0 + 1u));
        for (var a = 0u; a < turns(M); a++) { // unroll M
            let i = row + ROWS * a;
            var most = LOW;
            for (var b = 0u; b < N + zero; b++) { // unroll N
                var s = score[a * N + b] * p.scale;
                if (edge) {
                    let j = j0 + row_of(col, b);
                    if (hidden(batch, head, i0 + i, j)) { s = LOW; } else { s += added(batch, head, i0 + i, j); }
                }
                score[a * N + b] = s;
                most = larger(most, s);
            }
            found[i * COLUMNS + col] = most;
        }
        workgroupBarrier();
        for (var a = 0u; a < turns(M); a++) { // unroll M
            let i = row + ROWS * a;
            var most = top[a];
            for (var n = 0u; n < COLUMNS + zero; n++) { most = larger(most, found[i * COLUMNS + n]); } // unroll COLUMNS
            // Until a key is seen there is nothing to make smaller.
            var shrink = 1.0;
            if (!at_most(top[a], LOW)) { shrink = exp(top[a] - most); }
            top[a] = most;
            sum[a] *= shrink;
            for (var c = 0u; c < turns(C); c++) { out[a * C + c] *= shrink; } // unroll C
            for (var b = 0u; b < N / 4u + zero; b++) { // unroll N / 4
                var four = vec4<f32>();
                for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                    let s = score[a * N + 4u * b + n];
                    var w = 0.0;
                    if (!at_most(s, LOW)) { w = exp(s - most); }
                    sum[a] += w;
                    // The sum has what dropout drops, too.
                    if (DROPOUT && !keeps(plane, i0 + i, j0 + row_of(col, 4u * b + n)) && !is_nan(w)) { w = 0.0; }
                    four[n] = w;
                }
                weights[i * SPAN + col + COLUMNS * b] = four;
            }
        }
        for (var l = 0u; l < turns(LOADS_Z); l++) { // unroll LOADS_Z
            let e = local + l * THREADS;
            if (e < TZ * FOURS) {
                let x = four_v(batch, own, j0 + e / FOURS, e % FOURS);
                passing[e / FOURS * PITCH + e % FOURS] = x;
                if (is_non_finite(x)) { atomicStore(&non_finite, 1u); }
            }
        }
        workgroupBarrier();
        // Behind the values lie those of other keys, which nobody writes out.
        let chosen = atomicLoad(&non_finite) == 1u;
        if (ROLLED || chosen) {
            for (var j = 0u; j < TZ; j++) {
                for (var c = 0u; c < turns(C); c++) { // unroll C
                    let x = passing[j * PITCH + min(col + COLUMNS * c, FOURS - 1u)];
                    for (var a = 0u; a < turns(M); a++) { // unroll M
                        let w = weights[(row + ROWS * a) * SPAN + j / 4u][j % 4u];
                        if (!chosen || is_true(w)) { out[a * C + c] = fma(vec4(w), x, out[a * C + c]); }
                    }
                }
            }
        } else {
            for (var j = 0u; j < TZ / 4u; j++) {
                var w: array<vec4<f32>, M>;
                for (var a = 0u; a < turns(M); a++) { w[a] = weights[(row + ROWS * a) * SPAN + j]; } // unroll M
                for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                    for (var c = 0u; c < turns(C); c++) { // unroll C
                        let x = passing[(4u * j + n) * PITCH + min(col + COLUMNS * c, FOURS - 1u)];
                        for (var a = 0u; a < turns(M); a++) { // unroll M
                            out[a * C + c] = fma(vec4(w[a][n]), x, out[a * C + c]);
                        }
                    }
                }
            }
        }
        workgroupBarrier();
    }
    for (var a = 0u; a < turns(M); a++) { found[(row + ROWS * a) * COLUMNS + col] = sum[a]; } // unroll M
    workgroupBarrier();
    for (var a = 0u; a < turns(M); a++) { // unroll M
        let i = i0 + row + ROWS * a;
        if (i < p.queries) {
            var all = 0.0;
            for (var n = 0u; n < COLUMNS + zero; n++) { all += found[(row + ROWS * a) * COLUMNS + n]; } // unroll COLUMNS
            var inverse = 0.0;
            if (!at_most(all, 0.0)) { inverse = 1.0 / all; }
            for (var c = 0u; c < turns(C); c++) { // unroll C
                var x = out[a * C + c] * inverse;
                if (DROPOUT) { x *= p.kept; }
                for (var n = 0u; n < 4u + zero; n += EACH) { // unroll 4 / EACH
                    let at = 4u * (col + COLUMNS * c) + n;
                    if (at < p.value_width) {
                        let to = place(4u, batch, head, i, at);
                        if (PAIRS) { store_two(to, x[n], x[(n + 1u) % 4u]); } else { store_y(to, x[n]); }
                    }
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

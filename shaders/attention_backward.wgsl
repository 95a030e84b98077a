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
override TX: u32 = 16u; // rows of a workgroup's tile, of M an invocation
override TZ: u32 = 16u; // of the tile that passes by, of N an invocation
override ROWS: u32 = 16u;
override COLUMNS: u32 = 4u;
override WHOLE: bool = false; // whether keys and values have D components, a multiple of four
override ROLLED: bool = false; // whether loops over parts of a tile stay loops

@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> dq: array<u32>; // of keys in `keys`
@group(0) @binding(2) var<storage, read_write> dv: array<u32>; // in `queries` the sum of g y of each row
@group(0) @binding(3) var<storage, read> q: array<u32>;
@group(0) @binding(4) var<storage, read> k: array<u32>;
@group(0) @binding(5) var<storage, read> v: array<u32>;
@group(0) @binding(6) var<storage, read> y: array<u32>; // in `keys` the sums that `queries` made
@group(0) @binding(7) var<storage, read> g: array<u32>;
@group(0) @binding(8) var<storage, read> stats: array<u32>;
@group(0) @binding(9) var<storage, read> mask: array<u32>;
// Queries or keys, those of the workgroup and those that pass by, and beside them what the slopes are made of: the
// gradients of results, or the values.
var<workgroup> tile_x: array<vec4<f32>, TX * PITCH>;
var<workgroup> beside_x: array<vec4<f32>, TX * PITCH>;
var<workgroup> tile_z: array<vec4<f32>, TZ * PITCH>;
var<workgroup> beside_z: array<vec4<f32>, TZ * PITCH>;
var<workgroup> slopes: array<vec4<f32>, TX * SPAN>;
var<workgroup> weights: array<vec4<f32>, TX * SPAN>;
// Of each query: the largest score, the inverse of the sum, and the sum of g y.
var<workgroup> known: array<vec3<f32>, max(TX, TZ)>;

fn load_g(batch: u32, head: u32, row: u32, c: u32) -> f32 {
    let i = place(5u, batch, head, row, c);
    return decode(G, g[word(G, i)], 0u, i);
}
fn four_g(batch: u32, head: u32, row: u32, c: u32) -> vec4<f32> {
    var x = vec4<f32>();
    if (row >= p.queries) { return x; }
    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
        if (WHOLE || 4u * c + n < p.value_width) { x[n] = load_g(batch, head, row, 4u * c + n); }
    }
    return x;
}
// The statistics of a query without the third.
fn statistics(at: u32) -> vec3<f32> {
    return vec3(bitcast<f32>(stats[2u * at]), bitcast<f32>(stats[2u * at + 1u]), 0.0);
}

// Products of an invocation's rows with those that pass by, and of what lies beside them.
fn scores_and_slopes(row: u32, col: u32) -> array<vec2<f32>, M * N> {
    var both: array<vec2<f32>, M * N>;
    for (var a = 0u; a < M * N + zero; a++) { both[a] = vec2<f32>(); } // unroll M * N
    for (var c = 0u; c < fours(); c++) {
        var x: array<vec4<f32>, M>;
        for (var a = 0u; a < turns(M); a++) { x[a] = tile_x[(row + ROWS * a) * PITCH + c]; } // unroll M
        for (var b = 0u; b < N + zero; b++) { // unroll N
            let z = tile_z[(col + COLUMNS * b) * PITCH + c];
            for (var a = 0u; a < turns(M); a++) { // unroll M
                both[a * N + b].x = add_product(x[a], z, both[a * N + b].x);
            }
        }
    }
    for (var c = 0u; c < value_fours(); c++) {
        var x: array<vec4<f32>, M>;
        for (var a = 0u; a < turns(M); a++) { x[a] = beside_x[(row + ROWS * a) * PITCH + c]; } // unroll M
        for (var b = 0u; b < N + zero; b++) { // unroll N
            let z = beside_z[(col + COLUMNS * b) * PITCH + c];
            for (var a = 0u; a < turns(M); a++) { // unroll M
                both[a * N + b].y = add_product(x[a], z, both[a * N + b].y);
            }
        }
    }
    return both;
}
// The weight as dropout left it, and the slope of a score: of query i, which the row tells of, for key j.
fn weight_and_slope(both: vec2<f32>, row: vec3<f32>, batch: u32, head: u32, i: u32, j: u32, edge: bool) -> vec2<f32> {
    if ((edge && hidden(batch, head, i, j)) || !is_true(row.y)) { return vec2<f32>(); }
    var s = both.x * p.scale;
    if (MASK) { s += added(batch, head, i, j); }
    let w = exp(s - row.x) * row.y;
    // A weight of nothing has no slope, whatever the values are.
    if (!is_true(w)) { return vec2(w, 0.0); }
    var kept = 1.0;
    if (DROPOUT) { kept = select(0.0, p.kept, keeps(batch * p.heads + head, i, j)); }
    return vec2(w * kept, w * (both.y * kept - row.z) * p.scale);
}

@compute @workgroup_size(THREADS)
fn queries(
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
        if (e < TX * FOURS) {
            let at = e / FOURS * PITCH + e % FOURS;
            tile_x[at] = four_q(batch, head, i0 + e / FOURS, e % FOURS);
            beside_x[at] = four_g(batch, head, i0 + e / FOURS, e % FOURS);
        }
    }
    for (var n = local; n < TX; n += THREADS) {
        var all = vec3<f32>();
        let i = i0 + n;
        if (i < p.queries) {
            let at = plane * p.queries + i;
            all = statistics(at);
            for (var c = 0u; c < p.value_width; c++) {
                let m = place(4u, batch, head, i, c);
                all.z += load_g(batch, head, i, c) * decode(Y, y[word(Y, m)], 0u, m);
            }
            dv[at] = bitcast<u32>(all.z);
        }
        known[n] = all;
    }
    var out: array<vec4<f32>, M * C>;
    for (var a = 0u; a < turns(M * C); a++) { out[a] = vec4<f32>(); } // unroll M * C
    workgroupBarrier();
    var end = p.keys;
    if (CAUSAL) { end = min(end, seen(i0 + TX)); }
    for (var j0 = 0u; j0 < end; j0 += TZ) {
        for (var l = 0u; l < turns(LOADS_Z); l++) { // unroll LOADS_Z
            let e = local + l * THREADS;
            if (e < TZ * FOURS) {
                let at = slot(e / FOURS) * PITCH + e % FOURS;
                let x = four_k(batch, own, j0 + e / FOURS, e % FOURS);
                tile_z[at] = x;
                beside_z[at] = four_v(batch, own, j0 + e / FOURS, e % FOURS);
                if (is_non_finite(x)) { atomicStore(&non_finite, 1u); }
            }
        }
        workgroupBarrier();
        let both = scores_and_slopes(row, col);
        let edge = MASK || j0 + TZ > p.keys || i0 + TX > p.queries || (CAUSAL && j0 + TZ > seen(i0 + 1u));
        for (var a = 0u; a < turns(M); a++) { // unroll M
            let i = row + ROWS * a;
            for (var b = 0u; b < N / 4u + zero; b++) { // unroll N / 4
                var four = vec4<f32>();
                for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                    let at = a * N + 4u * b + n;
                    let j = j0 + row_of(col, 4u * b + n);
                    four[n] = weight_and_slope(both[at], known[i], batch, head, i0 + i, j, edge).y;
                }
                slopes[i * SPAN + col + COLUMNS * b] = four;
            }
        }
        workgroupBarrier();
        let chosen = atomicLoad(&non_finite) == 1u;
        if (ROLLED || chosen) {
            for (var j = 0u; j < TZ; j++) {
                for (var c = 0u; c < turns(C); c++) { // unroll C
                    let x = tile_z[slot(j) * PITCH + min(col + COLUMNS * c, FOURS - 1u)];
                    for (var a = 0u; a < turns(M); a++) { // unroll M
                        let d = slopes[(row + ROWS * a) * SPAN + j / 4u][j % 4u];
                        if (!chosen || is_true(d)) { out[a * C + c] = fma(vec4(d), x, out[a * C + c]); }
                    }
                }
            }
        } else {
            for (var j = 0u; j < TZ / 4u; j++) {
                var d: array<vec4<f32>, M>;
                for (var a = 0u; a < turns(M); a++) { d[a] = slopes[(row + ROWS * a) * SPAN + j]; } // unroll M
                for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                    for (var c = 0u; c < turns(C); c++) { // unroll C
                        let x = tile_z[slot(4u * j + n) * PITCH + min(col + COLUMNS * c, FOURS - 1u)];
                        for (var a = 0u; a < turns(M); a++) { // unroll M
                            out[a * C + c] = fma(vec4(d[a][n]), x, out[a * C + c]);
                        }
                    }
                }
            }
        }
        workgroupBarrier();
    }
    for (var a = 0u; a < turns(M); a++) { // unroll M
        let i = i0 + row + ROWS * a;
        for (var c = 0u; c < turns(C); c++) { // unroll C
            for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                let at = 4u * (col + COLUMNS * c) + n;
                if (i < p.queries && at < p.width) {
                    dq[place(6u, batch, head, i, at)] = bitcast<u32>(out[a * C + c][n]);
                }
            }
        }
    }
}

@compute @workgroup_size(THREADS)
fn keys(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    zero = unknown_zero(ROLLED, groups);
    let id = group.x + group.y * groups.x;
    let plane = id / p.tiles;
    if (plane >= p.planes) { return; }
    let owners = p.heads / p.group;
    let batch = plane / owners;
    let own = plane % owners;
    let j0 = (id % p.tiles) * TX;
    let row = local / COLUMNS;
    let col = local % COLUMNS;
    if (local == 0u) { atomicStore(&non_finite, 0u); }
    for (var l = 0u; l < turns(LOADS_X); l++) { // unroll LOADS_X
        let e = local + l * THREADS;
        if (e < TX * FOURS) {
            let at = e / FOURS * PITCH + e % FOURS;
            tile_x[at] = four_k(batch, own, j0 + e / FOURS, e % FOURS);
            beside_x[at] = four_v(batch, own, j0 + e / FOURS, e % FOURS);
        }
    }
    var out_k: array<vec4<f32>, M * C>;
    var out_v: array<vec4<f32>, M * C>;
    for (var a = 0u; a < turns(M * C); a++) { // unroll M * C
        out_k[a] = vec4<f32>();
        out_v[a] = vec4<f32>();
    }
    workgroupBarrier();
    // Queries before the first key see none of these.
    var start = 0u;
    if (CAUSAL) { start = seeing(j0) / TZ * TZ; }
    for (var m = 0u; m < p.group; m++) {
        let head = own * p.group + m;
        for (var i0 = start; i0 < p.queries; i0 += TZ) {
            for (var l = 0u; l < turns(LOADS_Z); l++) { // unroll LOADS_Z
                let e = local + l * THREADS;
                if (e < TZ * FOURS) {
                    let at = slot(e / FOURS) * PITCH + e % FOURS;
                    let x = four_q(batch, head, i0 + e / FOURS, e % FOURS);
                    let g = four_g(batch, head, i0 + e / FOURS, e % FOURS);
                    tile_z[at] = x;
                    beside_z[at] = g;
                    if (is_non_finite(x) || is_non_finite(g)) { atomicStore(&non_finite, 1u); }
                }
            }
            for (var n = local; n < TZ; n += THREADS) {
                var all = vec3<f32>();
                if (i0 + n < p.queries) {
                    let at = (batch * p.heads + head) * p.queries + i0 + n;
                    all = statistics(at);
                    all.z = bitcast<f32>(y[at]);
                }
                known[n] = all;
            }
            workgroupBarrier();
            let both = scores_and_slopes(row, col);
            let edge = MASK || i0 + TZ > p.queries || j0 + TX > p.keys || (CAUSAL && j0 + TX > seen(i0 + 1u));
            for (var a = 0u; a < turns(M); a++) { // unroll M
                let j = row + ROWS * a;
                for (var b = 0u; b < N / 4u + zero; b++) { // unroll N / 4
                    var four_w = vec4<f32>();
                    var four_d = vec4<f32>();
                    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                        let at = a * N + 4u * b + n;
                        let i = row_of(col, 4u * b + n);
                        let two = weight_and_slope(both[at], known[i], batch, head, i0 + i, j0 + j, edge);
                        four_w[n] = two.x;
                        four_d[n] = two.y;
                    }
                    weights[j * SPAN + col + COLUMNS * b] = four_w;
                    slopes[j * SPAN + col + COLUMNS * b] = four_d;
                }
            }
            workgroupBarrier();
            let chosen = atomicLoad(&non_finite) == 1u;
            if (ROLLED || chosen) {
                for (var i = 0u; i < TZ; i++) {
                    for (var c = 0u; c < turns(C); c++) { // unroll C
                        let at = slot(i) * PITCH + min(col + COLUMNS * c, FOURS - 1u);
                        for (var a = 0u; a < turns(M); a++) { // unroll M
                            let w = weights[(row + ROWS * a) * SPAN + i / 4u][i % 4u];
                            let d = slopes[(row + ROWS * a) * SPAN + i / 4u][i % 4u];
                            if (!chosen || is_true(d)) { out_k[a * C + c] = fma(vec4(d), tile_z[at], out_k[a * C + c]); }
                            if (!chosen || is_true(w)) { out_v[a * C + c] = fma(vec4(w), beside_z[at], out_v[a * C + c]); }
                        }
                    }
                }
            } else {
                for (var i = 0u; i < TZ / 4u; i++) {
                    var w: array<vec4<f32>, M>;
                    var d: array<vec4<f32>, M>;
                    for (var a = 0u; a < turns(M); a++) { // unroll M
                        w[a] = weights[(row + ROWS * a) * SPAN + i];
                        d[a] = slopes[(row + ROWS * a) * SPAN + i];
                    }
                    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                        for (var c = 0u; c < turns(C); c++) { // unroll C
                            let at = slot(4u * i + n) * PITCH + min(col + COLUMNS * c, FOURS - 1u);
                            let x = tile_z[at];
                            let g = beside_z[at];
                            for (var a = 0u; a < turns(M); a++) { // unroll M
                                out_k[a * C + c] = fma(vec4(d[a][n]), x, out_k[a * C + c]);
                                out_v[a * C + c] = fma(vec4(w[a][n]), g, out_v[a * C + c]);
                            }
                        }
                    }
                }
            }
            workgroupBarrier();
        }
    }
    for (var a = 0u; a < turns(M); a++) { // unroll M
        let j = j0 + row + ROWS * a;
        for (var c = 0u; c < turns(C); c++) { // unroll C
            for (var n = 0u; n < 4u + zero; n++) { // unroll 4
                let at = 4u * (col + COLUMNS * c) + n;
                if (j < p.keys && at < p.width) {
                    dq[place(7u, batch, own, j, at)] = bitcast<u32>(out_k[a * C + c][n]);
                }
                if (j < p.keys && at < p.value_width) {
                    dv[place(8u, batch, own, j, at)] = bitcast<u32>(out_v[a * C + c][n]);
                }
            }
        }
    }
}

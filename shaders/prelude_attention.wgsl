// Attention by tiles of TX rows, which a workgroup owns, and of TZ rows of the other kind, which pass by: a workgroup
// of ROWS x COLUMNS invocations, of which (row, col) has rows row + ROWS a, of those that pass the fours of rows
// col + COLUMNS b, and the fours of components col + COLUMNS c.
struct Params {
    queries: u32,
    keys: u32,
    heads: u32,
    group: u32, // heads of queries that share one of keys
    width: u32,
    value_width: u32,
    planes: u32, // batch times heads (of keys, where a workgroup has keys)
    tiles: u32, // of one plane
    scale: f32,
    kept: f32, // what weights that dropout keeps are multiplied by
    bound: u32, // those are kept whose word is less
    all: u32, // or all of them
    random: vec4<u32>, // key and stream
    // Strides along batch, heads, rows and components, and offsets, of q, k, v, mask, y, g, dq, dk, dv; behind these
    // by how many rows queries are ahead of keys.
    step: array<vec4<u32>, 9>,
    offset: array<vec4<u32>, 3>,
}
// Lines of four components; an odd number of them keeps rows apart in the banks of memory.
const THREADS: u32 = ROWS * COLUMNS;
const FOURS: u32 = (D + 3u) / 4u;
const PITCH: u32 = FOURS / 2u * 2u + 1u;
const SPAN: u32 = TZ / 4u + 1u;
const M: u32 = TX / ROWS;
const N: u32 = TZ / COLUMNS;
const C: u32 = (FOURS + COLUMNS - 1u) / COLUMNS;
// Fours that an invocation reads of a tile.
const LOADS_X: u32 = (TX * FOURS + THREADS - 1u) / THREADS;
const LOADS_Z: u32 = (TZ * FOURS + THREADS - 1u) / THREADS;
// Whether a tile has a non-finite number: values of zero weight are then selected away, not multiplied by zero.
var<workgroup> non_finite: atomic<u32>;
// An opaque zero, added to the bounds of loops that no compiler is to unroll.
var<private> zero: u32;
// The end of a loop of so many turns; one of a single turn never stays a loop.
fn turns(n: u32) -> u32 {
    return select(n + zero, n, n == 1u);
}

// Fours of components of queries and keys.
fn fours() -> u32 {
    if (WHOLE) { return FOURS; }
    return (p.width + 3u) / 4u;
}
fn value_fours() -> u32 {
    if (WHOLE) { return FOURS; }
    return (p.value_width + 3u) / 4u;
}
// Where row j of a tile lies: the N rows of an invocation, which follow each other by fours, lie COLUMNS apart.
fn slot(j: u32) -> u32 {
    return j / 4u % COLUMNS + COLUMNS * (4u * (j / (4u * COLUMNS)) + j % 4u);
}
// Which row of a tile is number b of invocation col.
fn row_of(col: u32, b: u32) -> u32 {
    return 4u * (col + COLUMNS * (b / 4u)) + b % 4u;
}
// Sums over components of products of four.
fn add_product(x: vec4<f32>, z: vec4<f32>, sum: f32) -> f32 {
    return fma(x.w, z.w, fma(x.z, z.z, fma(x.y, z.y, fma(x.x, z.x, sum))));
}
fn is_non_finite(v: vec4<f32>) -> bool {
    let e = bitcast<vec4<u32>>(v) & vec4(0x7f800000u);
    return max(max(e.x, e.y), max(e.z, e.w)) == 0x7f800000u;
}

fn place(x: u32, batch: u32, head: u32, row: u32, c: u32) -> u32 {
    let s = p.step[x];
    return p.offset[x / 4u][x % 4u] + batch * s.x + head * s.y + row * s.z + c * s.w;
}
// Four components of a row from 4 c on, zeros behind the last; those of a row that is not there are zeros too.
fn four_q(batch: u32, head: u32, row: u32, c: u32) -> vec4<f32> {
    var x = vec4<f32>();
    if (row >= p.queries) { return x; }
    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
        if (WHOLE || 4u * c + n < p.width) {
            let i = place(0u, batch, head, row, 4u * c + n);
            x[n] = decode(X, q[word(X, i)], 0u, i);
        }
    }
    return x;
}
fn four_k(batch: u32, head: u32, row: u32, c: u32) -> vec4<f32> {
    var x = vec4<f32>();
    if (row >= p.keys) { return x; }
    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
        if (WHOLE || 4u * c + n < p.width) {
            let i = place(1u, batch, head, row, 4u * c + n);
            x[n] = decode(X, k[word(X, i)], 0u, i);
        }
    }
    return x;
}
fn four_v(batch: u32, head: u32, row: u32, c: u32) -> vec4<f32> {
    var x = vec4<f32>();
    if (row >= p.keys) { return x; }
    for (var n = 0u; n < 4u + zero; n++) { // unroll 4
        if (WHOLE || 4u * c + n < p.value_width) {
            let i = place(2u, batch, head, row, 4u * c + n);
            x[n] = decode(X, v[word(X, i)], 0u, i);
        }
    }
    return x;
}

// How many of these keys a causal mask has before row i of these queries.
fn seen(i: u32) -> u32 {
    return u32(max(i32(i) + bitcast<i32>(p.offset[2].y), 0));
}
// Which of these queries is at the diagonal with key j, or the first.
fn seeing(j: u32) -> u32 {
    return u32(max(i32(j) - bitcast<i32>(p.offset[2].y), 0));
}
// Whether query i does not see key j; what a mask of numbers adds to the score comes later.
fn hidden(batch: u32, head: u32, i: u32, j: u32) -> bool {
    if (i >= p.queries || j >= p.keys || (CAUSAL && j >= seen(i + 1u))) { return true; }
    if (MASK && A == BOOL) {
        let at = place(3u, batch, head, i, j);
        return lane_signed(A, mask[word(A, at)], at) == 0;
    }
    return false;
}
fn added(batch: u32, head: u32, i: u32, j: u32) -> f32 {
    if (!MASK || A == BOOL) { return 0.0; }
    let at = place(3u, batch, head, i, j);
    return decode(A, mask[word(A, at)], 0u, at);
}

fn wide_product(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let low = al * bl;
    let mid = ah * bl + (low >> 16u);
    let cross = al * bh + (mid & 0xffffu);
    return vec2(ah * bh + (mid >> 16u) + (cross >> 16u), a * b);
}

// Whether dropout keeps the weight of query i for key j: a word of Philox4x32-10 by its place.
fn keeps(plane: u32, i: u32, j: u32) -> bool {
    if (!DROPOUT || p.all == 1u) { return true; }
    var c = vec4(j >> 2u, i, p.random.z + plane, p.random.w);
    var key = p.random.xy;
    for (var n = 0; n < 10; n++) {
        let a = wide_product(0xd2511f53u, c.x);
        let b = wide_product(0xcd9e8d57u, c.z);
        c = vec4(b.x ^ c.y ^ key.x, b.y, a.x ^ c.w ^ key.y, a.y);
        key += vec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return c[j & 3u] < p.bound;
}

// Attention by tiles of T queries and T keys: a workgroup of 8 x 8 invocations, of which (row, col)
// has queries row + 8 a, keys col + 8 b and components col + 8 c.
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
    // Strides along batch, heads, rows and components, and offsets, of q, k, v, mask, y, g, dq, dk, dv.
    step: array<vec4<u32>, 9>,
    offset: array<vec4<u32>, 3>,
}
// An element more keeps rows of a tile apart in the banks of memory.
const PITCH: u32 = D + 1u;
const SPAN: u32 = T + 1u;
const M: u32 = T / 8u;
const C: u32 = (D + 7u) / 8u;

// Components of queries and keys, and of values.
fn width() -> u32 {
    if (WHOLE) { return D; }
    return p.width;
}
fn value_width() -> u32 {
    if (WHOLE) { return D; }
    return p.value_width;
}

fn place(x: u32, batch: u32, head: u32, row: u32, c: u32) -> u32 {
    let s = p.step[x];
    return p.offset[x / 4u][x % 4u] + batch * s.x + head * s.y + row * s.z + c * s.w;
}
fn load_q(batch: u32, head: u32, row: u32, c: u32) -> f32 {
    let i = place(0u, batch, head, row, c);
    return decode(X, q[word(X, i)], 0u, i);
}
fn load_k(batch: u32, head: u32, row: u32, c: u32) -> f32 {
    let i = place(1u, batch, head, row, c);
    return decode(X, k[word(X, i)], 0u, i);
}
fn load_v(batch: u32, head: u32, row: u32, c: u32) -> f32 {
    let i = place(2u, batch, head, row, c);
    return decode(X, v[word(X, i)], 0u, i);
}

// Whether query i does not see key j; what a mask of numbers adds to the score comes later.
fn hidden(batch: u32, head: u32, i: u32, j: u32) -> bool {
    if (i >= p.queries || j >= p.keys || (CAUSAL && j > i)) { return true; }
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

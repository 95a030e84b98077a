// A product of matrices, whose elements that are not finite are computed again without the terms that a mask hides:
// zero times NaN is NaN.
// uses store, each
override X: u32 = F32;
override Y: u32 = F32;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    rows: u32,
    columns: u32,
    terms: u32,
    // Strides along matrices, rows and columns, and offsets, of both factors and of the mask.
    a_step: vec4<u32>,
    b_step: vec4<u32>,
    m_step: vec4<u32>,
    x_offset: u32,
    y_offset: u32,
    pad: vec2<u32>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> a: array<u32>;
@group(0) @binding(4) var<storage, read> b: array<u32>;
@group(0) @binding(5) var<storage, read> m: array<u32>;

// Terms of one loop: software Vulkan ends a longer one.
const MOST: u32 = 32768u;

fn is_finite(x: Acc) -> bool {
    let bits = encode(ACC, x);
    if (wide(ACC) == 1u) { return (bits.y & 0x7ff00000u) != 0x7ff00000u; }
    return (bits.x & 0x7f800000u) != 0x7f800000u;
}
fn at(step: vec4<u32>, plane: u32, row: u32, column: u32) -> u32 {
    return step.w + plane * step.x + row * step.y + column * step.z;
}

fn element(id: u32) -> Acc {
    let i = p.x_offset + id;
    let w = word(X, i);
    let product = decode(X, x[w], x[w + wide(X)], i);
    if (is_finite(product)) { return product; }
    let plane = id / p.columns / p.rows;
    let row = id / p.columns % p.rows;
    let column = id % p.columns;
    var sum = Acc(0);
    for (var first = 0u; first < p.terms; first += MOST) {
        for (var j = first; j < min(first + MOST, p.terms); j++) {
            let k = at(p.m_step, plane, row, j);
            if (lane_signed(BOOL, m[word(BOOL, k)], k) != 0) { continue; }
            let k_a = at(p.a_step, plane, row, j);
            let k_b = at(p.b_step, plane, j, column);
            let w_a = word(X, k_a);
            let w_b = word(X, k_b);
            sum += decode(X, a[w_a], a[w_a + wide(X)], k_a) * decode(X, b[w_b], b[w_b + wide(X)], k_b);
        }
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

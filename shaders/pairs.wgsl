// Of rows of a, b and c, read at strides, three sums of products: of a and b, a and a, b and b, which give the cosine
// and both lengths, or of the squares of a - b + eps, a - c + eps and b - c + eps, whose roots are distances. LANES
// invocations share a row and ROWS rows share a workgroup. For the cosine a row of large elements is divided by its
// largest, for their squares may be infinite.
// uses store, rows, strided, math
override A: u32 = F32;
override B: u32 = F32;
override C: u32 = F32;
override Y: u32 = F32;
override COSINE: bool = false;
override THIRD: bool = false; // the distance of b and c too
override DIMS: u32 = 1u;
override LANES: u32 = 64u;
override ROWS: u32 = 1u;
override WG: u32 = 64u;

struct Params {
    rows: u32,
    length: u32,
    y_offset: u32,
    pad: u32,
    // What lengths are at least and what is added to their squares, or what is added to differences.
    least: vec2<u32>,
    added: vec2<u32>,
    offset: vec4<u32>, // of a, b and c
    step: vec4<u32>, // along a row
    dim_size: array<vec4<u32>, 2>,
    strides: array<vec4<u32>, 8>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
// Of the type computed in: the cosine and both lengths, or the distances.
@group(0) @binding(2) var<storage, read_write> first: array<u32>;
@group(0) @binding(3) var<storage, read_write> second: array<u32>;
@group(0) @binding(4) var<storage, read_write> third: array<u32>;
@group(0) @binding(5) var<storage, read> a: array<u32>;
@group(0) @binding(6) var<storage, read> b: array<u32>;
@group(0) @binding(7) var<storage, read> c: array<u32>;

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

// What a row with such a largest element is multiplied by.
fn scale(top: Acc) -> Acc {
    return select(Acc(1), divide(Acc(1), top), less(Acc(1e15), top));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    let lane = local % LANES;
    let live = row < p.rows;
    let start = p.offset + strided(select(0u, row, live));
    let end = select(0u, p.length, live);
    let added = from_words(p.added.x, p.added.y);
    var s = Acc(0);
    var t = Acc(0);
    var u = Acc(0);
    var by_a = Acc(1);
    var by_b = Acc(1);
    if (COSINE) {
        for (var r = lane; r < end; r += LANES) {
            let at = start + r * p.step;
            t = larger(t, m_abs(load_a(at.x)));
            u = larger(u, m_abs(load_b(at.y)));
        }
        by_a = scale(row_max(local, lane, t));
        by_b = scale(row_max(local, lane, u));
        t = Acc(0);
        u = Acc(0);
    }
    for (var r = lane; r < end; r += LANES) {
        let at = start + r * p.step;
        let va = load_a(at.x) * by_a;
        let vb = load_b(at.y) * by_b;
        if (COSINE) {
            s += va * vb;
            t += va * va;
            u += vb * vb;
        } else {
            let vc = load_c(at.z);
            let near = va - vb + added;
            let far = va - vc + added;
            s += near * near;
            t += far * far;
            if (THIRD) {
                let between = vb - vc + added;
                u += between * between;
            }
        }
    }
    s = row_sum(local, lane, s);
    t = row_sum(local, lane, t);
    if (COSINE || THIRD) { u = row_sum(local, lane, u); }
    if (!live || lane != 0u) { return; }
    if (COSINE) {
        let least = from_words(p.least.x, p.least.y);
        t = m_sqrt(t + added * by_a * by_a);
        u = m_sqrt(u + added * by_b * by_b);
        s = divide(divide(s, larger(t, least * by_a)), larger(u, least * by_b));
        t = divide(t, by_a);
        u = divide(u, by_b);
    } else {
        s = m_sqrt(s);
        t = m_sqrt(t);
        u = m_sqrt(u);
    }
    store_y(p.y_offset + row, s);
    let w = word(ACC, row);
    let of_s = encode(ACC, s);
    let of_t = encode(ACC, t);
    let of_u = encode(ACC, u);
    first[w] = of_s.x;
    second[w] = of_t.x;
    third[w] = of_u.x;
    if (wide(ACC) == 1u) {
        first[w + 1u] = of_s.y;
        second[w + 1u] = of_t.y;
        third[w + 1u] = of_u.y;
    }
}

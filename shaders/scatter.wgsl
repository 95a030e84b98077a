// For each element of x with position d along one dimension: combines the source elements
// whose index is d, in order. Deterministic without atomics. `begin` and `end` bound the positions
// of the source that one dispatch looks at.
override X: u32 = F32;
override V: u32 = F32;
override I: u32 = I64;
// 0 the last one wins, 1 sum, 2 product, 3 largest, 4 smallest.
override OP: u32 = 0u;
override DIMS: u32 = 1u;
override WG: u32 = 256u;

struct Params {
    n: u32, // positions along the dimension * positions of the other ones
    size: u32,
    begin: u32,
    end: u32,
    x_offset: u32,
    v_offset: u32,
    i_offset: u32,
    x_stride: u32,
    v_stride: u32,
    i_stride: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
    // The other dimensions.
    dim_size: array<vec4<u32>, 2>,
    x_strides: array<vec4<u32>, 2>,
    v_strides: array<vec4<u32>, 2>,
    i_strides: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> x: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> v: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, atomicLoad(&x[w]), atomicLoad(&x[w + wide(X)]), i);
}
fn load_v(i: u32) -> Acc {
    let w = word(V, i);
    return decode(V, v[w], v[w + wide(V)], i);
}
fn store_x(i: u32, v: Acc) {
    let bits = encode(X, v);
    let w = word(X, i);
    if (lane_log(X) == 0u) {
        atomicStore(&x[w], bits.x);
        if (wide(X) == 1u) { atomicStore(&x[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(X) << lane_bit(X, i);
        atomicXor(&x[w], (atomicLoad(&x[w]) ^ (bits.x << lane_bit(X, i))) & mask);
    }
}
fn load_index(i: u32) -> i32 {
    let w = word(I, i);
    return index_value(I, index[w], index[w + wide(I)], i);
}
// An index out of range cannot raise here: it is noted for the next read.
fn complain(i: i32, size: u32) {
    if (atomicExchange(&fault[0], 1u) == 0u) {
        atomicStore(&fault[1], bitcast<u32>(i));
        atomicStore(&fault[2], size);
        atomicStore(&fault[3], p.who);
        atomicStore(&fault[4], p.dispatch);
    }
}

fn combine(a: Acc, b: Acc) -> Acc {
    switch OP {
        case 1u: { return a + b; }
        case 2u: { return a * b; }
        case 3u: { return select(select(b, a, a > b), a, is_nan(a)); }
        case 4u: { return select(select(b, a, a < b), a, is_nan(a)); }
        default: { return b; }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    let d = id % p.size;
    var x_at = p.x_offset + d * p.x_stride;
    var v_at = p.v_offset;
    var i_at = p.i_offset;
    var rest = id / p.size;
    for (var k = 0u; k < DIMS; k++) {
        let q = rest / p.dim_size[k / 4u][k % 4u];
        let r = rest - q * p.dim_size[k / 4u][k % 4u];
        x_at += r * p.x_strides[k / 4u][k % 4u];
        v_at += r * p.v_strides[k / 4u][k % 4u];
        i_at += r * p.i_strides[k / 4u][k % 4u];
        rest = q;
    }
    var value = load_x(x_at);
    var found = false;
    for (var j = p.begin; j < p.end; j++) {
        let i = load_index(i_at + j * p.i_stride);
        if (d == 0u && (i < 0 || i >= bitcast<i32>(p.size))) { complain(i, p.size); }
        if (i == bitcast<i32>(d)) {
            value = combine(value, load_v(v_at + j * p.v_stride));
            found = true;
        }
    }
    if (found) { store_x(x_at, value); }
}

// y[e] = x[e with position index[e] along one dimension], over strides.
override X: u32 = I32;
override Y: u32 = I32;
override I: u32 = I64;
override DIMS: u32 = 1u;
override WG: u32 = 256u;

struct Params {
    n: u32,
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    // Size and stride of x along the gathered dimension.
    size: u32,
    stride: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
    dim_size: array<vec4<u32>, 2>,
    x_stride: array<vec4<u32>, 2>,
    i_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn store_y(i: u32, v: Acc) {
    let bits = encode(Y, v);
    let w = word(Y, i);
    if (lane_log(Y) == 0u) {
        atomicStore(&y[w], bits.x);
        if (wide(Y) == 1u) { atomicStore(&y[w + 1u], bits.y); }
    } else {
        let mask = lane_mask(Y) << lane_bit(Y, i);
        atomicXor(&y[w], (atomicLoad(&y[w]) ^ (bits.x << lane_bit(Y, i))) & mask);
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

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    var x_at = p.x_offset;
    var i_at = p.i_offset;
    var rest = id;
    for (var d = 0u; d < DIMS; d++) {
        let q = rest / p.dim_size[d / 4u][d % 4u];
        let r = rest - q * p.dim_size[d / 4u][d % 4u];
        x_at += r * p.x_stride[d / 4u][d % 4u];
        i_at += r * p.i_stride[d / 4u][d % 4u];
        rest = q;
    }
    var i = load_index(i_at);
    if (i < 0 || i >= bitcast<i32>(p.size)) {
        complain(i, p.size);
        i = 0;
    }
    store_y(p.y_offset + id, load_x(x_at + u32(i) * p.stride));
}

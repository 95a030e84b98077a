// The mean of each window, or of each adaptive window. Contiguous planes.
override X: u32 = F32;
override Y: u32 = F32;
override ADAPTIVE: bool = false;
override WG: u32 = 256u;

struct Params {
    n: u32, // elements of the result
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    in_size: vec2<u32>, // height, width
    out_size: vec2<u32>,
    kernel: vec2<u32>,
    stride: vec2<u32>,
    padding: vec2<u32>,
    dilation: vec2<u32>,
    // avg_pool2d: what a window's sum is divided by, 0 its size.
    divisor: u32,
    count_padding: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;

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
// First and last row (or column) of window o, counted with the padding, and how many of them its
// mean is over.
fn window(o: u32, axis: u32) -> vec3<u32> {
    let size = p.in_size[axis];
    if (ADAPTIVE) {
        let first = o * size / p.out_size[axis];
        let last = ((o + 1u) * size + p.out_size[axis] - 1u) / p.out_size[axis];
        return vec3(first, last, last - first);
    }
    let pad = p.padding[axis];
    let first = o * p.stride[axis];
    let padded = min(first + p.kernel[axis], size + 2u * pad);
    let inner = vec2(max(first, pad), min(padded, size + pad));
    return vec3(inner, select(inner.y - inner.x, padded - first, p.count_padding == 1u));
}
fn divisor(rows: u32, columns: u32) -> Acc {
    return Acc(select(p.divisor, rows * columns, p.divisor == 0u));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    let row = id / p.out_size.y;
    let plane = row / p.out_size.x;
    let rows = window(row - plane * p.out_size.x, 0u);
    let columns = window(id - row * p.out_size.y, 1u);
    let x0 = p.x_offset + plane * p.in_size.x * p.in_size.y;
    let pad = select(p.padding, vec2(0u), ADAPTIVE);
    var sum = Acc(0);
    for (var h = rows.x; h < rows.y; h++) {
        for (var w = columns.x; w < columns.y; w++) {
            sum += load_x(x0 + (h - pad.x) * p.in_size.y + w - pad.y);
        }
    }
    store_y(p.y_offset + id, sum / divisor(rows.z, columns.z));
}

// The mean of each window, or of each adaptive window, of x. With BACKWARD: the gradient y of the input,
// gathered from the windows that hold each element, for gradients x. Contiguous planes.
// uses store, each
override X: u32 = F32;
override Y: u32 = F32;
override ADAPTIVE: bool = false;
override BACKWARD: bool = false;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // elements of the result
    x_offset: u32,
    y_offset: u32,
    divisor: u32, // what a window's sum is divided by, 0 its size
    in_size: vec2<u32>, // height, width
    out_size: vec2<u32>,
    kernel: vec2<u32>,
    stride: vec2<u32>,
    padding: vec2<u32>,
    count_padding: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
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

fn mean(id: u32) -> Acc {
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
    return sum / divisor(rows.z, columns.z);
}

// The windows that may hold position s (counted with the padding).
fn windows(s: u32, axis: u32) -> vec2<u32> {
    let count = p.out_size[axis];
    if (ADAPTIVE) {
        let size = p.in_size[axis];
        return vec2(s * count / size, min(((s + 1u) * count + size - 1u) / size, count));
    }
    let kernel = p.kernel[axis];
    let stride = p.stride[axis];
    let first = select((s + 1u - kernel + stride - 1u) / stride, 0u, s + 1u < kernel);
    return vec2(first, min(s / stride + 1u, count));
}

fn slope(id: u32) -> Acc {
    let row = id / p.in_size.y;
    let plane = row / p.in_size.x;
    let pad = select(p.padding, vec2(0u), ADAPTIVE);
    let s = vec2(row - plane * p.in_size.x, id - row * p.in_size.y) + pad;
    let rows = windows(s.x, 0u);
    let columns = windows(s.y, 1u);
    let o0 = p.x_offset + plane * p.out_size.x * p.out_size.y;
    var sum = Acc(0);
    for (var h = rows.x; h < rows.y; h++) {
        for (var w = columns.x; w < columns.y; w++) {
            let a = window(h, 0u);
            let b = window(w, 1u);
            if (s.x >= a.x && s.x < a.y && s.y >= b.x && s.y < b.y) {
                sum += load_x(o0 + h * p.out_size.y + w) / divisor(a.z, b.z);
            }
        }
    }
    return sum;
}

fn element(id: u32) -> Acc {
    if (BACKWARD) { return slope(id); }
    return mean(id);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

// The gradient of max_pool2d, gathered: each input element looks at the windows that hold it, so
// that sums are always in the same order.
// uses store, each
override X: u32 = F32; // of the output's gradient
override Y: u32 = F32; // of the input's gradient
override I: u32 = I64;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

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
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> index: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

fn element(id: u32) -> Acc {
    let row = id / p.in_size.y;
    let plane = row / p.in_size.x;
    let s = vec2(row - plane * p.in_size.x, id - row * p.in_size.y);
    let mine = s.x * p.in_size.y + s.y;
    let o0 = plane * p.out_size.x * p.out_size.y;
    var sum = Acc(0);
    for (var kh = 0u; kh < p.kernel.x; kh++) {
        for (var kw = 0u; kw < p.kernel.y; kw++) {
            let reach = s + p.padding;
            let back = vec2(kh, kw) * p.dilation;
            if (any(reach < back)) { continue; }
            let o = (reach - back) / p.stride;
            if (any(o * p.stride != reach - back) || any(o >= p.out_size)) { continue; }
            let at = o0 + o.x * p.out_size.y + o.y;
            if (index[word(I, p.i_offset + at)] == mine) { sum += load_x(p.x_offset + at); }
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

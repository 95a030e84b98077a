// The largest element of each window and its index in the plane. A NaN wins; padding alone has the
// least value and the index -1. Contiguous planes.
// uses store, each
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
// The words of what a window of padding alone gives.
override LEAST0: u32 = 0xff800000u;
override LEAST1: u32 = 0u;
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
@group(0) @binding(2) var<storage, read_write> index: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}

fn element(id: u32) -> Acc {
    let row = id / p.out_size.y;
    let plane = row / p.out_size.x;
    let o = vec2(row - plane * p.out_size.x, id - row * p.out_size.y) * p.stride;
    let x0 = p.x_offset + plane * p.in_size.x * p.in_size.y;
    var best = from_words(LEAST0, LEAST1);
    var found = 0xffffffffu;
    for (var kh = 0u; kh < p.kernel.x; kh++) {
        for (var kw = 0u; kw < p.kernel.y; kw++) {
            let at = o + vec2(kh, kw) * p.dilation;
            if (all(at >= p.padding) && all(at < p.in_size + p.padding)) {
                let s = at - p.padding;
                let i = s.x * p.in_size.y + s.y;
                let v = load_x(x0 + i);
                if (found == 0xffffffffu || less(best, v) || is_nan(v)) {
                    best = v;
                    found = i;
                }
            }
        }
    }
    let w = word(I, p.i_offset + id);
    index[w] = found;
    if (wide(I) == 1u) { index[w + 1u] = select(0u, found, found == 0xffffffffu); }
    return best;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

// The largest element of each window and its index in the plane, for windows of any place and length
// in up to three dimensions. The last NaN wins; a window without elements has the least value and the
// index -1. The table holds start, end and step of each window, dimension after dimension.
// uses store, each
override X: u32 = F32;
override Y: u32 = F32;
override I: u32 = I64;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    in_size: vec4<u32>, // depth, height, width
    out_size: vec4<u32>,
    // The words of what a window without elements gives.
    least: vec4<u32>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> index: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> table: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn span(i: u32) -> vec3<u32> {
    return vec3(table[3u * i], table[3u * i + 1u], table[3u * i + 2u]);
}

fn element(id: u32) -> Acc {
    let row = id / p.out_size.z;
    let sheet = row / p.out_size.y;
    let plane = sheet / p.out_size.x;
    let zs = span(sheet % p.out_size.x);
    let ys = span(p.out_size.x + row % p.out_size.y);
    let xs = span(p.out_size.x + p.out_size.y + id % p.out_size.z);
    let start = p.x_offset + plane * p.in_size.x * p.in_size.y * p.in_size.z;
    var best = from_words(p.least.x, p.least.y);
    var found = 0xffffffffu;
    for (var a = zs.x; a < zs.y; a += zs.z) {
        for (var b = ys.x; b < ys.y; b += ys.z) {
            for (var c = xs.x; c < xs.y; c += xs.z) {
                let at = (a * p.in_size.y + b) * p.in_size.z + c;
                let v = load_x(start + at);
                if (found == 0xffffffffu || less(best, v) || is_nan(v)) {
                    best = v;
                    found = at;
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

// y[e] = x[e with position index[e] along one dimension], over strides.
// uses store, index, fault, strided, each
override X: u32 = I32;
override Y: u32 = I32;
override I: u32 = I64;
override DIMS: u32 = 1u;
override WORDS: bool = false; // whether an invocation has all elements of a word
override WG: u32 = WORKGROUP;

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
    strides: array<vec4<u32>, 8>, // of x and of the index
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

fn element(id: u32) -> Acc {
    let at = strided(id);
    var i = load_index(p.i_offset + at.y);
    if (i < 0 || i >= bitcast<i32>(p.size)) {
        complain(p.i_offset + at.y, p.size);
        i = 0;
    }
    return load_x(p.x_offset + at.x + u32(i) * p.stride);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    store_each((group.x + group.y * groups.x) * WG + local, p.y_offset, p.n);
}

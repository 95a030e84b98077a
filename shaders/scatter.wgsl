// For each element of y with position d along one dimension: combines the source elements
// whose index is d, in order. Deterministic without atomics. `begin` and `end` bound the positions
// of the source that one dispatch looks at.
// uses store, index, fault, strided
override Y: u32 = F32;
override V: u32 = F32;
override I: u32 = I64;
override OP: u32 = SET; // what happens to the elements that meet: by SET the last one wins
override DIMS: u32 = 1u;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // positions along the dimension * positions of the other ones
    size: u32,
    begin: u32,
    end: u32,
    y_offset: u32,
    v_offset: u32,
    i_offset: u32,
    y_stride: u32,
    v_stride: u32,
    i_stride: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
    // The other dimensions.
    dim_size: array<vec4<u32>, 2>,
    strides: array<vec4<u32>, 8>, // of y, v and the index
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> v: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;

fn load_y(i: u32) -> Acc {
    let w = word(Y, i);
    return decode(Y, y_word(w), y_word(w + wide(Y)), i);
}
fn load_v(i: u32) -> Acc {
    let w = word(V, i);
    return decode(V, v[w], v[w + wide(V)], i);
}

fn combine(a: Acc, b: Acc) -> Acc {
    switch OP {
        case ADD: { return a + b; }
        case MULTIPLY: { return a * b; }
        case MAX: { return larger(a, b); }
        case MIN: { return smaller(a, b); }
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
    let at = strided(id / p.size);
    let y_at = p.y_offset + d * p.y_stride + at.x;
    let v_at = p.v_offset + at.y;
    let i_at = p.i_offset + at.z;
    var value = load_y(y_at);
    var found = false;
    for (var j = p.begin; j < p.end; j++) {
        let i = load_index(i_at + j * p.i_stride);
        if (d == 0u && (i < 0 || i >= bitcast<i32>(p.size))) {
            complain(i_at + j * p.i_stride, p.size);
        }
        if (i == bitcast<i32>(d)) {
            value = combine(value, load_v(v_at + j * p.v_stride));
            found = true;
        }
    }
    if (found) { store_y(y_at, value); }
}

// Writes what each run of equal keys gives, to the place that the key names: the last element of a
// run of v, of shape (outer, length, inner), holds what the run comes to. A line's keys are sorted;
// those of `size` and above name no place.
// uses store, strided
override Y: u32 = F32;
override V: u32 = F32;
override OP: u32 = SET; // how that meets what is there
override DIMS: u32 = 1u;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    length: u32,
    inner: u32,
    size: u32,
    y_offset: u32,
    v_offset: u32,
    // By how much the place in y grows with a key, and that of a key with the line.
    y_stride: u32,
    key_line: u32,
    scale: vec4<u32>,
    // The lines.
    dim_size: array<vec4<u32>, 2>,
    strides: array<vec4<u32>, 8>, // of y
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> v: array<u32>;
@group(0) @binding(3) var<storage, read> keys: array<u32>;

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
        case ADD: { return a + b * from_words(p.scale.x, p.scale.y); }
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
    let k = id / p.inner % p.length;
    let line = id / p.inner / p.length * p.inner + id % p.inner;
    let at = line * p.key_line + k;
    let key = keys[at];
    if (key >= p.size) { return; }
    if (k + 1u < p.length) {
        if (keys[at + 1u] == key) { return; }
    }
    let to = p.y_offset + strided(line).x + key * p.y_stride;
    var r = load_v(p.v_offset + id);
    if (OP != SET) { r = combine(load_y(to), r); }
    store_y(to, r);
}

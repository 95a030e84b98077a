// Where values belong among sorted edges: how many of them lie before each value, by halving. A NaN among
// the edges lies before everything, and everything before a NaN.
override S: u32 = F32; // of the edges
override V: u32 = F32;
override Y: u32 = I32;
// Whether edges that equal a value lie before it.
override RIGHT: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // values
    length: u32, // of a line of edges
    width: u32, // values of a line
    line_step: u32, // from a line of edges to the next, 0 where there is one
    s_offset: u32,
    v_offset: u32,
    y_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> s: array<u32>;
@group(0) @binding(3) var<storage, read> v: array<u32>;

fn edge(i: u32) -> Acc {
    let at = p.s_offset + i;
    let w = word(S, at);
    return decode(S, s[w], s[w + wide(S)], at);
}
fn value(i: u32) -> Acc {
    let at = p.v_offset + i;
    let w = word(V, at);
    return decode(V, v[w], v[w + wide(V)], at);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    let start = id / p.width * p.line_step;
    let own = value(id);
    let nowhere = is_nan(own);
    var low = 0u;
    var high = p.length;
    while (low < high) {
        let middle = low + (high - low) / 2u;
        let e = edge(start + middle);
        let before = select(less(e, own), at_most(e, own), RIGHT);
        if (nowhere || is_nan(e) || before) { low = middle + 1u; } else { high = middle; }
    }
    let w = word(Y, p.y_offset + id);
    y[w] = low;
    if (wide(Y) == 1u) { y[w + 1u] = 0u; }
}

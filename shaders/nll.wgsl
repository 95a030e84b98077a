// Negative log likelihood of contiguous log-probabilities x [outer, classes, inner] at the class
// of the index [outer, inner]: loss and weight of each position. An ignored target gives 0 and 0.
// uses index, fault
override X: u32 = F32;
override I: u32 = I64;
override W: u32 = F32;
override HAS_WEIGHT: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // outer * inner
    classes: u32,
    inner: u32,
    ignore: u32,
    x_offset: u32,
    i_offset: u32,
    w_offset: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> loss: array<u32>;
@group(0) @binding(2) var<storage, read_write> total: array<u32>;
@group(0) @binding(3) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read> x: array<u32>;
@group(0) @binding(5) var<storage, read> index: array<u32>;
@group(0) @binding(6) var<storage, read> weight: array<u32>;

fn load_x(i: u32) -> Acc {
    let w = word(X, i);
    return decode(X, x[w], x[w + wide(X)], i);
}
fn load_weight(i: u32) -> Acc {
    let w = word(W, i);
    return decode(W, weight[w], weight[w + wide(W)], i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    var t = load_index(p.i_offset + id);
    var w = 0.0;
    var l = 0.0;
    if (t != bitcast<i32>(p.ignore)) {
        if (t < 0 || t >= bitcast<i32>(p.classes)) {
            complain(p.i_offset + id, p.classes);
            t = 0;
        }
        w = 1.0;
        if (HAS_WEIGHT) { w = load_weight(p.w_offset + u32(t)); }
        let o = id / p.inner;
        l = -w * load_x(p.x_offset + (o * p.classes + u32(t)) * p.inner + id - o * p.inner);
    }
    loss[id] = bitcast<u32>(l);
    total[id] = bitcast<u32>(w);
}

// y[i] = op(x0[i], ..., x5[i]) over broadcast strides. The tail gives `fn value(i: u32) -> Acc`,
// which loads the inputs that the op has and calls it.
override Y: u32 = F32;
override X0: u32 = F32;
override X1: u32 = F32;
override X2: u32 = F32;
override X3: u32 = F32;
override X4: u32 = F32;
override X5: u32 = F32;
// 0: element i of tensor t is at offset + i * step. Else the number of dimensions, innermost first.
override DIMS: u32 = 0u;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    first: u32, // the logical index of the first element
    zero: u32, // see `apart`
    pad2: u32,
    offset: array<vec4<u32>, 2>,
    step: array<vec4<u32>, 2>,
    scalar: array<vec4<u32>, 4>,
    size: array<vec4<u32>, 2>,
    // Two for each tensor: y, x0, ..., x5.
    stride: array<vec4<u32>, 14>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> y_lanes: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> x0: array<u32>;
@group(0) @binding(3) var<storage, read> x1: array<u32>;
@group(0) @binding(4) var<storage, read> x2: array<u32>;
@group(0) @binding(5) var<storage, read> x3: array<u32>;
@group(0) @binding(6) var<storage, read> x4: array<u32>;
@group(0) @binding(7) var<storage, read> x5: array<u32>;

// The logical index of the element at hand, for ops such as arange.
var<private> position: u32;

// Where element i of tensor t is: 0 is y, 1 is x0.
fn at(t: u32, i: u32) -> u32 {
    var o = p.offset[t / 4u][t % 4u];
    if (DIMS == 0u) { return o + i * p.step[t / 4u][t % 4u]; }
    var rest = i;
    for (var d = 0u; d + 1u < DIMS; d++) {
        let q = rest / p.size[d / 4u][d % 4u];
        o += (rest - q * p.size[d / 4u][d % 4u]) * p.stride[t * 2u + d / 4u][d % 4u];
        rest = q;
    }
    let last = DIMS - 1u;
    return o + rest * p.stride[t * 2u + last / 4u][last % 4u];
}

fn load0(i: u32) -> Acc {
    let e = at(1u, i);
    let w = word(X0, e);
    let v = decode(X0, x0[w], x0[w + wide(X0)], e);
    if (X0 != C128) { return v; }
    return of_parts(v, decode(X0, x0[w + 2u], x0[w + 3u], e));
}
fn load1(i: u32) -> Acc {
    let e = at(2u, i);
    let w = word(X1, e);
    let v = decode(X1, x1[w], x1[w + wide(X1)], e);
    if (X1 != C128) { return v; }
    return of_parts(v, decode(X1, x1[w + 2u], x1[w + 3u], e));
}
fn load2(i: u32) -> Acc {
    let e = at(3u, i);
    let w = word(X2, e);
    let v = decode(X2, x2[w], x2[w + wide(X2)], e);
    if (X2 != C128) { return v; }
    return of_parts(v, decode(X2, x2[w + 2u], x2[w + 3u], e));
}
fn load3(i: u32) -> Acc {
    let e = at(4u, i);
    let w = word(X3, e);
    let v = decode(X3, x3[w], x3[w + wide(X3)], e);
    if (X3 != C128) { return v; }
    return of_parts(v, decode(X3, x3[w + 2u], x3[w + 3u], e));
}
fn load4(i: u32) -> Acc {
    let e = at(5u, i);
    let w = word(X4, e);
    let v = decode(X4, x4[w], x4[w + wide(X4)], e);
    if (X4 != C128) { return v; }
    return of_parts(v, decode(X4, x4[w + 2u], x4[w + 3u], e));
}
fn load5(i: u32) -> Acc {
    let e = at(6u, i);
    let w = word(X5, e);
    let v = decode(X5, x5[w], x5[w + wide(X5)], e);
    if (X5 != C128) { return v; }
    return of_parts(v, decode(X5, x5[w + 2u], x5[w + 3u], e));
}

// The k-th number among the op's parameters.
fn scalar(k: u32) -> Acc {
    let j = 2u * k;
    return from_words(p.scalar[j / 4u][j % 4u], p.scalar[j / 4u][j % 4u + 1u]);
}

fn scalar_word(j: u32) -> u32 {
    return p.scalar[j / 4u][j % 4u];
}

fn zero_word() -> u32 {
    return p.zero;
}

// One output word for each invocation: y is contiguous, or its elements are whole words.
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    let log = lane_log(Y);
    if (log == 0u) {
        if (id >= p.n) { return; }
        position = p.first + id;
        let e = at(0u, id);
        let v = value(id);
        let bits = encode(Y, v);
        let w = word(Y, e);
        y[w] = bits.x;
        if (wide(Y) == 1u) { y[w + 1u] = bits.y; }
        if (Y == C128) {
            let more = encode(Y, second_part(v));
            y[w + 2u] = more.x;
            y[w + 3u] = more.y;
        }
        return;
    }
    let lanes = 1u << log;
    let first = p.offset[0].x;
    let w = (first >> log) + id;
    if (w * lanes >= first + p.n) { return; }
    var bits = 0u;
    var covered = 0u;
    for (var k = 0u; k < lanes; k++) {
        let e = w * lanes + k;
        if (e >= first && e < first + p.n) {
            let mask = lane_mask(Y) << lane_bit(Y, k);
            position = p.first + e - first;
            bits |= (encode(Y, value(e - first)).x << lane_bit(Y, k)) & mask;
            covered |= mask;
        }
    }
    if (covered != 0xffffffffu) { bits |= y[w] & ~covered; }
    y[w] = bits;
}

// A word for each invocation, where rows of y are whole words.
@compute @workgroup_size(WG)
fn rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let lanes = 1u << lane_log(Y);
    let i = ((group.x + group.y * groups.x) * WG + local) * lanes;
    if (i >= p.n) { return; }
    var bits = 0u;
    for (var k = 0u; k < lanes; k++) {
        position = p.first + i + k;
        bits |= (encode(Y, value(i + k)).x & lane_mask(Y)) << lane_bit(Y, k);
    }
    y[word(Y, at(0u, i))] = bits;
}

// One element for each invocation, where several share an output word. Each invocation owns its
// lane, so one exclusive-or from the old lane to the new one is enough.
@compute @workgroup_size(WG)
fn scattered(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    position = p.first + id;
    let e = at(0u, id);
    let bits = encode(Y, value(id)).x << lane_bit(Y, e);
    let old = atomicLoad(&y_lanes[word(Y, e)]);
    atomicXor(&y_lanes[word(Y, e)], (old ^ bits) & (lane_mask(Y) << lane_bit(Y, e)));
}

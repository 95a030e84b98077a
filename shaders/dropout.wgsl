// y = x * mask * scale, and the mask: whether word i of a random stream lies below a bound. Contiguous
// tensors; an invocation has four elements, the block of the stream that they take, and their word of
// the mask. philox.wgsl stands behind.
override X: u32 = F32;
override Y: u32 = F32; // as X, from the beginning of its memory, so that no word has another owner
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    x_offset: u32,
    bound: u32,
    all: u32, // whether every element is kept
    scale: vec2<u32>,
    dropped: vec2<u32>, // zero, which no compiler knows: it might choose in the place of a product
    stream: vec4<u32>, // the key's words and the stream's
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> mask: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<u32>;

var<private> position: u32;
fn scalar_word(j: u32) -> u32 {
    return p.stream[j];
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (4u * id >= p.n) { return; }
    let drawn = philox_block(id);
    let scale = from_words(p.scale.x, p.scale.y);
    let dropped = from_words(p.dropped.x, p.dropped.y);
    var kept = 0u;
    var word_y = 0u;
    for (var k = 0u; k < 4u; k++) {
        let i = 4u * id + k;
        if (i >= p.n) { break; }
        let at = p.x_offset + i;
        let w = word(X, at);
        let keep = p.all == 1u || drawn[k] < p.bound;
        if (keep) { kept |= 1u << (8u * k); }
        // What is dropped is a product with zero: NaN stays.
        let v = decode(X, x[w], x[w + wide(X)], at) * select(dropped, scale, keep);
        let bits = encode(Y, v);
        let to = word(Y, i);
        if (lane_log(Y) == 0u) {
            y[to] = bits.x;
            if (wide(Y) == 1u) { y[to + 1u] = bits.y; }
        } else {
            word_y |= (bits.x & lane_mask(Y)) << lane_bit(Y, i);
            if (k % 2u == 1u || i + 1u == p.n) {
                y[to] = word_y;
                word_y = 0u;
            }
        }
    }
    mask[id] = kept;
}

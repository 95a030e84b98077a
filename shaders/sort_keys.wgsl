// Elements as unsigned integers of the same order, at most BITS of them in one word or 64 in two, by
// lines: key t is that of element t % length of line t / length. NaN is the largest, -0 is 0.
override X: u32 = F32;
override BITS: u32 = 32u;
override DESCENDING: bool = false;
// Whether the elements are such integers already; those above `most` count as it.
override PLAIN: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    length: u32,
    inner: u32,
    x_offset: u32,
    most: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> high_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<u32>;

// The bits of a float of one word or less in an integer's order.
fn ordered(bits: u32, infinity: u32) -> u32 {
    let sign = 1u << (BITS - 1u);
    let all = sign | (sign - 1u);
    if ((bits & (sign - 1u)) > infinity) { return all; }
    if ((bits & sign) == 0u || bits == sign) { return bits | sign; }
    return ~bits & all;
}

fn key(i: u32) -> vec2<u32> {
    let w = word(X, i);
    let lo = x[w];
    let sign = 1u << (BITS - 1u);
    switch X {
        case F32: { return vec2(ordered(lo, 0x7f800000u), 0u); }
        case F16: { return vec2(ordered((lo >> lane_bit(X, i)) & 0xffffu, 0x7c00u), 0u); }
        case BF16: { return vec2(ordered((lo >> lane_bit(X, i)) & 0xffffu, 0x7f80u), 0u); }
        case I64: { return vec2(lo, x[w + 1u] ^ 0x80000000u); }
        case F64: {
            let hi = x[w + 1u];
            let size = hi & 0x7fffffffu;
            if (size > 0x7ff00000u || (size == 0x7ff00000u && lo != 0u)) {
                return vec2(0xffffffffu, 0xffffffffu);
            }
            if ((hi >> 31u) == 0u || (size == 0u && lo == 0u)) { return vec2(lo, size | 0x80000000u); }
            return vec2(~lo, ~hi);
        }
        case BOOL, U8: { return vec2(bitcast<u32>(lane_signed(X, lo, i)), 0u); }
        default: {
            return vec2((bitcast<u32>(lane_signed(X, lo, i)) ^ sign) & (sign | (sign - 1u)), 0u);
        }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let t = (group.x + group.y * groups.x) * WG + local;
    if (t >= p.n) { return; }
    let line = t / p.length;
    let place = t % p.length;
    let e = p.x_offset + (line / p.inner * p.length + place) * p.inner + line % p.inner;
    if (PLAIN) {
        keys[t] = min(x[e], p.most);
    } else {
        let sign = 1u << (BITS - 1u);
        var k = key(e);
        if (DESCENDING) {
            k = select(vec2(~k.x & (sign | (sign - 1u)), 0u), ~k, wide(X) == 1u);
        }
        keys[t] = k.x;
        if (wide(X) == 1u) { high_keys[t] = k.y; }
    }
    positions[t] = place;
}

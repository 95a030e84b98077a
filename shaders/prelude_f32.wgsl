// Kernels that compute in float32: every format but the 64-bit ones loses nothing but rounding.
alias Acc = f32;
const ACC: u32 = F32;

// The nearest float32 to a 64-bit integer. Its highest 32 bits round as all of them would once the
// last one also stands for those below.
fn int64_value(lo: u32, hi: u32) -> f32 {
    let negative = (hi >> 31u) == 1u;
    let low = select(lo, 0u - lo, negative);
    let high = select(hi, ~hi + select(0u, 1u, lo == 0u), negative);
    var r = f32(low);
    if (high != 0u) {
        let k = firstLeadingBit(high);
        let top = (high << (31u - k)) | ((low >> k) >> 1u);
        let below = (low << (31u - k)) != 0u;
        r = f32(top | select(0u, 1u, below)) * bitcast<f32>((k + 128u) << 23u);
    }
    return select(r, -r, negative);
}

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F16, BF16, F32: { return float_value(f, lo, i); }
        case I64: { return int64_value(lo, hi); }
        default: { return f32(lane_signed(f, lo, i)); }
    }
}

// The words of an element, unshifted. Integers are truncated toward zero and then wrap; what a
// 32-bit (for int64, a 64-bit) integer cannot hold, NaN too, counts as its smallest, as on x86.
fn encode(f: u32, v: Acc) -> vec2<u32> {
    // Its order is that of the magnitudes, NaN last: 0x4f000000 is 2^31, 0x5f000000 is 2^63.
    let magnitude = bitcast<u32>(v) & 0x7fffffffu;
    switch f {
        case F16, BF16, F32: { return vec2(float_bits(f, v), 0u); }
        case BOOL: { return vec2(select(0u, 1u, is_true(v)), 0u); }
        case I64: {
            if (magnitude < 0x4f000000u) {
                let n = i32(v);
                return vec2(bitcast<u32>(n), bitcast<u32>(n >> 31u));
            }
            if (magnitude >= 0x5f000000u) { return vec2(0u, 0x80000000u); }
            // The two words hold every float32 exactly.
            let t = trunc(v);
            let hi = floor(t * 2.3283064365386963e-10);
            return vec2(u32(t - hi * 4294967296.0), bitcast<u32>(i32(hi)));
        }
        default: {
            if (magnitude >= 0x4f000000u) { return vec2(0x80000000u, 0u); }
            return vec2(bitcast<u32>(i32(v)), 0u);
        }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return bitcast<f32>(lo);
}

fn is_nan(x: Acc) -> bool {
    return nan_bits(x);
}

// By bits: an adapter may compare denormals as zeros.
fn is_true(x: Acc) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) != 0u;
}

// One rounding, in every kernel alike.
fn fused(a: Acc, b: vec4<Acc>, c: vec4<Acc>) -> vec4<Acc> {
    return fma(vec4<Acc>(a), b, c);
}

fn less(a: Acc, b: Acc) -> bool {
    return below(a, b);
}
fn at_most(a: Acc, b: Acc) -> bool {
    return not_above(a, b);
}
fn equal(a: Acc, b: Acc) -> bool {
    return same(a, b);
}
// NaN where either is NaN.
fn larger(a: Acc, b: Acc) -> Acc {
    return select(b, a, is_nan(a) | less(b, a));
}
fn smaller(a: Acc, b: Acc) -> Acc {
    return select(b, a, is_nan(a) | less(a, b));
}

fn divide(a: Acc, b: Acc) -> Acc {
    return quotient(a, b);
}

// x, by way of a zero that no compiler knows: nothing joins it with what comes next, as a product with a sum,
// which then would be rounded once where others round twice.
fn apart(x: Acc, zero: u32) -> Acc {
    return bitcast<f32>(bitcast<u32>(x) ^ zero);
}

// Only complex numbers of float64 are made of two such.
fn of_parts(a: Acc, b: Acc) -> Acc {
    return a;
}
fn second_part(v: Acc) -> Acc {
    return v;
}

alias Real = f32;

// Kernels that compute with complex numbers of two float32. A real number has no imaginary part.
alias Acc = vec2<f32>;
const ACC: u32 = C64;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case C64: { return from_words(lo, hi); }
        case F16, BF16, F32: { return vec2(float_value(f, lo, i), 0.0); }
        default: { return vec2(f32(lane_signed(f, lo, i)), 0.0); }
    }
}

// Real results, moduli among them, are the real part; no kernel in this type gives integers.
fn encode(f: u32, v: Acc) -> vec2<u32> {
    switch f {
        case C64: { return bitcast<vec2<u32>>(v); }
        case BOOL: { return vec2(select(0u, 1u, is_true(v)), 0u); }
        default: { return vec2(float_bits(f, v.x), 0u); }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return vec2(bitcast<f32>(lo), bitcast<f32>(hi));
}

fn is_nan(x: Acc) -> bool {
    return nan_bits(x.x) || nan_bits(x.y);
}

// By bits: an adapter may compare denormals as zeros.
fn is_true(x: Acc) -> bool {
    let bits = bitcast<vec2<u32>>(x);
    return ((bits.x | bits.y) & 0x7fffffffu) != 0u;
}

// Only complex numbers of float64 are made of two such.
fn of_parts(a: Acc, b: Acc) -> Acc {
    return a;
}
fn second_part(v: Acc) -> Acc {
    return v;
}

alias Real = f32;
// NaN where either is NaN.
fn larger(a: Real, b: Real) -> Real {
    return select(b, a, nan_bits(a) | below(b, a));
}
fn less(a: Real, b: Real) -> bool {
    return below(a, b);
}

// Kernels that compute with complex numbers of two float64, where the adapter has these. A real number has no
// imaginary part. An element is loaded and stored as two, each a float64: its parts.
alias Acc = vec2<f64>;
const ACC: u32 = C128;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case C128, F64: { return from_words(lo, hi); }
        case C64: { return vec2(f64(bitcast<f32>(lo)), f64(bitcast<f32>(hi))); }
        case F16, BF16, F32: { return vec2(f64(float_value(f, lo, i)), f64(0.0)); }
        // As in float64.
        case I64: { return vec2(f64(i64(u64(lo) | (u64(hi) << 32u))), f64(0.0)); }
        default: { return vec2(f64(lane_signed(f, lo, i)), f64(0.0)); }
    }
}

// Real results, moduli among them, are the real part; no kernel in this type gives integers.
fn encode(f: u32, v: Acc) -> vec2<u32> {
    switch f {
        case C128, F64: { return long_bits(v.x); }
        case C64: { return vec2(bitcast<u32>(f32(v.x)), bitcast<u32>(f32(v.y))); }
        case BOOL: { return vec2(select(0u, 1u, is_true(v)), 0u); }
        default: { return vec2(float_bits(f, f32(v.x)), 0u); }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return vec2(long_value(lo, hi), f64(0.0));
}

fn is_nan(x: Acc) -> bool {
    return long_nan(x.x) || long_nan(x.y);
}

fn is_true(x: Acc) -> bool {
    return long_true(x.x) || long_true(x.y);
}

// The number of these parts, and one whose real part is the imaginary one.
fn of_parts(a: Acc, b: Acc) -> Acc {
    return vec2(a.x, b.x);
}
fn second_part(v: Acc) -> Acc {
    return vec2(v.y, f64(0.0));
}

alias Real = f64;

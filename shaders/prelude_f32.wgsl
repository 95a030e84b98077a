// Kernels that compute in float32: every format but the 64-bit ones loses nothing but rounding.
alias Acc = f32;
const ACC: u32 = F32;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F16, BF16, F32: { return float_value(f, lo, i); }
        case I64: { return f32(bitcast<i32>(hi)) * 4294967296.0 + f32(lo); }
        default: { return f32(lane_signed(f, lo, i)); }
    }
}

// The words of an element, unshifted. Integers are truncated toward zero and then wrap.
fn encode(f: u32, v: Acc) -> vec2<u32> {
    switch f {
        case F16, BF16, F32: { return vec2(float_bits(f, v), 0u); }
        case BOOL: { return vec2(select(0u, 1u, (bitcast<u32>(v) & 0x7fffffffu) != 0u), 0u); }
        case I64: {
            // Beyond int32 the two words hold every float32 exactly.
            if (abs(v) < 2147483648.0) {
                let n = i32(v);
                return vec2(bitcast<u32>(n), bitcast<u32>(n >> 31u));
            }
            let t = trunc(v);
            let hi = floor(t * 2.3283064365386963e-10);
            return vec2(u32(t - hi * 4294967296.0), bitcast<u32>(i32(hi)));
        }
        default: { return vec2(bitcast<u32>(i32(v)), 0u); }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return bitcast<f32>(lo);
}

fn is_nan(x: Acc) -> bool {
    return nan_bits(x);
}

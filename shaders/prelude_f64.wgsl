// Kernels that compute in float64, where the adapter has it (and 64-bit integers).
alias Acc = f64;
const ACC: u32 = F64;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F64: { return long_value(lo, hi); }
        case F16, BF16, F32: { return f64(float_value(f, lo, i)); }
        // Through u64: naga's SPIR-V turns `i64(u32)` into OpSConvert, which extends the sign of lo.
        case I64: { return f64(i64(u64(lo) | (u64(hi) << 32u))); }
        default: { return f64(lane_signed(f, lo, i)); }
    }
}

// What a 32-bit (for int64, a 64-bit) integer cannot hold, NaN too, counts as its smallest, as on
// x86; narrower types take the lowest bits.
fn encode(f: u32, v: Acc) -> vec2<u32> {
    let u = bitcast<u64>(v);
    // 0x41e is the exponent of 2^31 and 0x43e that of 2^63.
    let exponent = u32(u >> 52u) & 0x7ffu;
    switch f {
        case F64: { return long_bits(v); }
        case F16, BF16, F32: { return vec2(float_bits(f, f32(v)), 0u); }
        case BOOL: { return vec2(select(0u, 1u, is_true(v)), 0u); }
        case I64: {
            if (exponent >= 0x43eu) { return vec2(0u, 0x80000000u); }
            let t = i64(v);
            return vec2(u32(t & 0xffffffffli), u32((t >> 32u) & 0xffffffffli));
        }
        default: {
            if (exponent >= 0x41eu) { return vec2(0x80000000u, 0u); }
            return vec2(u32(i64(v) & 0xffffffffli), 0u);
        }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return long_value(lo, hi);
}

fn is_nan(x: Acc) -> bool {
    return long_nan(x);
}

fn is_true(x: Acc) -> bool {
    return long_true(x);
}

fn fused(a: Acc, b: vec4<Acc>, c: vec4<Acc>) -> vec4<Acc> {
    return a * b + c;
}

fn divide(a: Acc, b: Acc) -> Acc {
    return a / b;
}

// As in float32.
fn apart(x: Acc, zero: u32) -> Acc {
    return bitcast<f64>(bitcast<u64>(x) ^ u64(zero));
}

// Only complex numbers of float64 are made of two such.
fn of_parts(a: Acc, b: Acc) -> Acc {
    return a;
}
fn second_part(v: Acc) -> Acc {
    return v;
}

alias Real = f64;

// Kernels that compute in float64, where the adapter has it (and 64-bit integers).
alias Acc = f64;
const ACC: u32 = F64;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F64: { return from_words(lo, hi); }
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
        case F64: { return vec2(u32(u & 0xfffffffflu), u32(u >> 32u)); }
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
    return bitcast<f64>(u64(lo) | (u64(hi) << 32u));
}

fn is_nan(x: Acc) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

fn is_true(x: Acc) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) != 0lu;
}

fn fused(a: Acc, b: vec4<Acc>, c: vec4<Acc>) -> vec4<Acc> {
    return a * b + c;
}

// As `order` in float32.
fn long_order(x: f64) -> i64 {
    let size = i64(bitcast<u64>(x) & 0x7ffffffffffffffflu);
    return select(size, -size, (bitcast<u64>(x) >> 63u) != 0lu);
}
fn less(a: Acc, b: Acc) -> bool {
    let x = long_order(a);
    let y = long_order(b);
    return (x < y) & (x >= -0x7ff0000000000000li) & (y <= 0x7ff0000000000000li);
}
fn at_most(a: Acc, b: Acc) -> bool {
    let x = long_order(a);
    let y = long_order(b);
    return (x <= y) & (x >= -0x7ff0000000000000li) & (y <= 0x7ff0000000000000li);
}
fn equal(a: Acc, b: Acc) -> bool {
    return (long_order(a) == long_order(b)) & !is_nan(a);
}
// NaN where either is NaN.
fn larger(a: Acc, b: Acc) -> Acc {
    return select(b, a, is_nan(a) | less(b, a));
}
fn smaller(a: Acc, b: Acc) -> Acc {
    return select(b, a, is_nan(a) | less(a, b));
}

fn divide(a: Acc, b: Acc) -> Acc {
    return a / b;
}

// As in float32.
fn apart(x: Acc, zero: u32) -> Acc {
    return bitcast<f64>(bitcast<u64>(x) ^ u64(zero));
}

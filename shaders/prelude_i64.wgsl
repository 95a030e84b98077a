// Kernels that compute in int64, where the adapter has it.
alias Acc = i64;
const ACC: u32 = I64;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F16, BF16, F32: { return i64(float_value(f, lo, i)); }
        case I64: { return from_words(lo, hi); }
        default: { return i64(lane_signed(f, lo, i)); }
    }
}

fn encode(f: u32, v: Acc) -> vec2<u32> {
    switch f {
        case F16, BF16, F32: { return vec2(float_bits(f, f32(v)), 0u); }
        case BOOL: { return vec2(select(0u, 1u, v != 0li), 0u); }
        case I64: { return vec2(u32(v & 0xffffffffli), u32((v >> 32u) & 0xffffffffli)); }
        default: { return vec2(u32(v & 0xffffffffli), 0u); }
    }
}

// Through u64: naga's SPIR-V turns `i64(u32)` into OpSConvert, which extends the sign of lo.
fn from_words(lo: u32, hi: u32) -> Acc {
    return i64(u64(lo) | (u64(hi) << 32u));
}

fn is_nan(x: Acc) -> bool {
    return false;
}

fn is_true(x: Acc) -> bool {
    return x != 0li;
}

fn fused(a: Acc, b: vec4<Acc>, c: vec4<Acc>) -> vec4<Acc> {
    return a * b + c;
}

fn less(a: Acc, b: Acc) -> bool {
    return a < b;
}
fn at_most(a: Acc, b: Acc) -> bool {
    return a <= b;
}
fn equal(a: Acc, b: Acc) -> bool {
    return a == b;
}
fn larger(a: Acc, b: Acc) -> Acc {
    return select(b, a, less(b, a));
}
fn smaller(a: Acc, b: Acc) -> Acc {
    return select(b, a, less(a, b));
}

// Only complex numbers of float64 are made of two such.
fn of_parts(a: Acc, b: Acc) -> Acc {
    return a;
}
fn second_part(v: Acc) -> Acc {
    return v;
}

// Kernels that compute in int32: bool and the integer formats of at most 32 bits.
alias Acc = i32;
const ACC: u32 = I32;

fn decode(f: u32, lo: u32, hi: u32, i: u32) -> Acc {
    switch f {
        case F16, BF16, F32: { return i32(float_value(f, lo, i)); }
        default: { return lane_signed(f, lo, i); }
    }
}

fn encode(f: u32, v: Acc) -> vec2<u32> {
    switch f {
        case F16, BF16, F32: { return vec2(float_bits(f, f32(v)), 0u); }
        case BOOL: { return vec2(select(0u, 1u, v != 0), 0u); }
        case I64: { return vec2(bitcast<u32>(v), bitcast<u32>(v >> 31u)); }
        default: { return vec2(bitcast<u32>(v), 0u); }
    }
}

fn from_words(lo: u32, hi: u32) -> Acc {
    return bitcast<i32>(lo);
}

fn is_nan(x: Acc) -> bool {
    return false;
}

fn is_true(x: Acc) -> bool {
    return x != 0;
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

// Storage formats. A buffer holds exactly the bytes of a CPU tensor, seen as 32-bit words. In front
// stand the numbers of the formats, BOOL to C64: those of the core crate's DType.

// Zero, which no compiler knows where `rolled`: a loop whose end has it added stays a loop in the place of
// as many copies, which software Vulkan takes long to compile.
fn unknown_zero(rolled: bool, groups: vec3<u32>) -> u32 {
    return select(0u, groups.x >> 31u, rolled);
}

// 1 where an element takes two words.
fn wide(f: u32) -> u32 {
    return select(0u, 1u, f == I64 || f == F64 || f == C64);
}

// log2 of the elements in one word.
fn lane_log(f: u32) -> u32 {
    if (f <= I8) { return 2u; }
    return select(0u, 1u, f == I16 || f == F16 || f == BF16);
}

// The (first) word of element i.
fn word(f: u32, i: u32) -> u32 {
    return (i << wide(f)) >> lane_log(f);
}

// The lowest bit of element i in its word.
fn lane_bit(f: u32, i: u32) -> u32 {
    let log = lane_log(f);
    return (i & ((1u << log) - 1u)) << (5u - log);
}

// The bits of one element at the bottom of a word.
fn lane_mask(f: u32) -> u32 {
    switch lane_log(f) {
        case 2u: { return 0xffu; }
        case 1u: { return 0xffffu; }
        default: { return 0xffffffffu; }
    }
}

// The lane of element i, with its sign extended where the format has one.
fn lane_signed(f: u32, w: u32, i: u32) -> i32 {
    let v = w >> lane_bit(f, i);
    switch f {
        // Not a choice: a driver may make one of the product with it, in which NaN times zero is zero.
        case BOOL: { return i32(min(v & 0xffu, 1u)); }
        case U8: { return i32(v & 0xffu); }
        case I8: { return bitcast<i32>(v << 24u) >> 24u; }
        case I16: { return bitcast<i32>(v << 16u) >> 16u; }
        default: { return bitcast<i32>(w); }
    }
}

// WGSL lets an implementation assume that floats are finite: test bits instead.
fn nan_bits(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// float16 to float32, exact. `unpack2x16float` may flush subnormals.
fn f16_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let a = h & 0x7fffu;
    var bits = (a << 13u) + 0x38000000u;
    if (a >= 0x7c00u) { bits = bits + 0x38000000u; }
    if (a < 0x0400u) { bits = bitcast<u32>(f32(a) * 5.9604644775390625e-8); }
    return bitcast<f32>(sign | bits);
}

// float32 to float16, nearest even. `pack2x16float` may round toward zero.
fn f16_bits(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 16u) & 0x8000u;
    let a = u & 0x7fffffffu;
    if (a > 0x7f800000u) { return sign | 0x7e00u; }
    if (a >= 0x477ff000u) { return sign | 0x7c00u; }
    if (a < 0x38800000u) { return sign | u32(round(bitcast<f32>(a) * 16777216.0)); }
    return sign | ((a - 0x38000000u + 0x0fffu + ((a >> 13u) & 1u)) >> 13u);
}

// float32 to bfloat16, nearest even.
fn bf16_bits(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
}

fn float_value(f: u32, w: u32, i: u32) -> f32 {
    if (f == F32) { return bitcast<f32>(w); }
    let h = (w >> lane_bit(f, i)) & 0xffffu;
    if (f == BF16) { return bitcast<f32>(h << 16u); }
    return f16_value(h);
}

fn float_bits(f: u32, x: f32) -> u32 {
    switch f {
        case F16: { return f16_bits(x); }
        case BF16: { return bf16_bits(x); }
        default: { return bitcast<u32>(x); }
    }
}

// An index tensor's element as i32: exact wherever it is a valid index.
fn index_value(f: u32, lo: u32, hi: u32, i: u32) -> i32 {
    if (f == I64) {
        // Out of the range of i32: any value that no dimension contains.
        let fits = hi == bitcast<u32>(bitcast<i32>(lo) >> 31u);
        return select(bitcast<i32>(0x80000000u), bitcast<i32>(lo), fits);
    }
    return lane_signed(f, lo, i);
}

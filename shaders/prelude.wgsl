// Storage formats. A buffer holds exactly the bytes of a CPU tensor, seen as 32-bit words. In front
// stand the numbers of the formats, BOOL to C64: those of the core crate's DType.

// Zero, which no compiler knows where `rolled`: a loop whose end has it added stays a loop in the place of
// as many copies, which software Vulkan takes long to compile.
fn unknown_zero(rolled: bool, groups: vec3<u32>) -> u32 {
    return select(0u, groups.x >> 31u, rolled);
}

// 1 where an element, or each of two parts of it, takes two words.
fn wide(f: u32) -> u32 {
    return select(0u, 1u, f == I64 || f == F64 || f == C64 || f == C128);
}

// log2 of the elements in one word.
fn lane_log(f: u32) -> u32 {
    if (f <= I8) { return 2u; }
    return select(0u, 1u, f == I16 || f == F16 || f == BF16);
}

// The (first) word of element i.
fn word(f: u32, i: u32) -> u32 {
    return (i << (wide(f) + select(0u, 1u, f == C128))) >> lane_log(f);
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

// Drivers make `min` and `max`, which drop NaN and the sign of zero, of a choice by a comparison, turn
// comparisons round, and compare denormals as zeros. What depends on that is decided by integers: in this
// order zeros are equal, and NaN is beyond the infinities.
fn order(x: f32) -> i32 {
    let bits = bitcast<i32>(x);
    let sign = bits >> 31u;
    return ((bits & 0x7fffffff) ^ sign) - sign;
}

// a < b, a <= b and a == b: false where either is NaN.
fn below(a: f32, b: f32) -> bool {
    let x = order(a);
    let y = order(b);
    return (x < y) & (x >= -0x7f800000) & (y <= 0x7f800000);
}
fn not_above(a: f32, b: f32) -> bool {
    let x = order(a);
    let y = order(b);
    return (x <= y) & (x >= -0x7f800000) & (y <= 0x7f800000);
}
fn same(a: f32, b: f32) -> bool {
    let x = order(a);
    return (x == order(b)) & (abs(x) <= 0x7f800000);
}

// a / b, rounded once. A driver's quotient may be off by some units in the last place, zero where the
// reciprocal of b is a denormal, and NaN at denormals: here it is an estimate of the mantissas' quotient,
// which what the product of integers leaves corrects.
fn quotient(a: f32, b: f32) -> f32 {
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    var u = bitcast<u32>(a) & 0x7fffffffu;
    var v = bitcast<u32>(b) & 0x7fffffffu;
    if ((u - 1u >= 0x7f7fffffu) | (v - 1u >= 0x7f7fffffu)) {
        let most = max(u, v);
        if ((most > 0x7f800000u) | (u == v)) { return bitcast<f32>(max(most, 0x7fc00000u)); }
        if ((v == 0u) | (u == 0x7f800000u)) { return bitcast<f32>(sign | 0x7f800000u); }
        return bitcast<f32>(sign);
    }
    var e = i32(u >> 23u) - i32(v >> 23u);
    if (u < 0x00800000u) {
        let up = countLeadingZeros(u) - 8u;
        u <<= up;
        e += 1 - i32(up);
    }
    if (v < 0x00800000u) {
        let up = countLeadingZeros(v) - 8u;
        v <<= up;
        e -= 1 - i32(up);
    }
    let x = (u & 0x7fffffu) | 0x800000u;
    let y = (v & 0x7fffffu) | 0x800000u;
    let estimate = bitcast<f32>(x ^ 0x3f000000u) / bitcast<f32>(y ^ 0x3f000000u);
    var q = clamp(bitcast<u32>(estimate), 0x3f000000u, 0x3fffffffu);
    var m = 0u;
    var rest = 0;
    for (var k = 0; k < 6; k++) {
        m = (q & 0x7fffffu) | 0x800000u;
        // In units of the last place of q, times y. It is small, whatever the words lose.
        rest = bitcast<i32>((x << select(24u, 23u, q >= 0x3f800000u)) - m * y);
        // The next number below a power of two is half as far. None is half way.
        let low = i32(y >> select(0u, 1u, m == 0x800000u));
        if (2 * rest > i32(y)) {
            q += 1u;
        } else if (-2 * rest > low) {
            q -= 1u;
        } else {
            break;
        }
    }
    let exponent = i32(q >> 23u) + e;
    if (exponent > 254) { return bitcast<f32>(sign | 0x7f800000u); }
    if (exponent > 0) { return bitcast<f32>(sign | (u32(exponent) << 23u) | (q & 0x7fffffu)); }
    // A denormal: to the nearest from all that is known, ties to even.
    let shift = u32(min(1 - exponent, 25));
    let kept = m >> shift;
    let lost = m & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let tie = (rest > 0) | ((rest == 0) & ((kept & 1u) == 1u));
    let up = (lost > half) | ((lost == half) & tie);
    return bitcast<f32>(sign | (kept + select(0u, 1u, up)));
}

// float16 to float32, exact. `unpack2x16float` may flush subnormals.
fn f16_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let a = h & 0x7fffu;
    let up = a << 13u;
    let bits = up + select(0x38000000u, 0x70000000u, a >= 0x7c00u);
    // Of a subnormal: a fraction of 2^-14, beside one.
    let low = bitcast<u32>(bitcast<f32>(up + 0x38800000u) - 6.103515625e-5);
    return bitcast<f32>(sign | select(bits, low, a < 0x0400u));
}

// float32 to float16, nearest even. `pack2x16float` may round toward zero.
fn f16_bits(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 16u) & 0x8000u;
    let a = u & 0x7fffffffu;
    let normal = (a - 0x38000000u + 0x0fffu + ((a >> 13u) & 1u)) >> 13u;
    // The last place of numbers from a half on is that of subnormals.
    let low = bitcast<u32>(bitcast<f32>(a) + 0.5) - 0x3f000000u;
    let finite = select(normal, low, a < 0x38800000u);
    let beyond = select(0x7c00u, 0x7e00u, a > 0x7f800000u);
    return sign | select(finite, beyond, a >= 0x477ff000u);
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

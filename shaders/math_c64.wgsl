// Functions of complex numbers for pointwise bodies, each an `m_` function.

fn m_is_nan(x: Acc) -> bool {
    return is_nan(x);
}

fn m_add(a: Acc, b: Acc) -> Acc {
    return a + b;
}

fn m_sub(a: Acc, b: Acc) -> Acc {
    return a - b;
}

fn m_mul(a: Acc, b: Acc) -> Acc {
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Smith's method: no overflow of the squared modulus.
fn m_div(a: Acc, b: Acc) -> Acc {
    let size = bitcast<vec2<u32>>(b) & vec2(0x7fffffffu);
    if (size.x >= size.y) {
        // Not by a constant zero, which a compiler might fold.
        if (!is_true(b)) { return over(a, bitcast<f32>(size.x)); }
        let q = quotient(b.y, b.x);
        let d = b.x + b.y * q;
        return over(vec2(a.x + a.y * q, a.y - a.x * q), d);
    }
    let q = quotient(b.x, b.y);
    let d = b.x * q + b.y;
    return over(vec2(a.x * q + a.y, a.y * q - a.x), d);
}

fn over(z: Acc, x: f32) -> Acc {
    return vec2(quotient(z.x, x), quotient(z.y, x));
}

// By bits: a difference may not tell, and an adapter may change the sign of zero.
fn m_neg(x: Acc) -> Acc {
    return bitcast<Acc>(bitcast<vec2<u32>>(x) ^ vec2(0x80000000u));
}

fn m_conj(x: Acc) -> Acc {
    return bitcast<Acc>(bitcast<vec2<u32>>(x) ^ vec2(0u, 0x80000000u));
}

fn m_equal(a: Acc, b: Acc) -> bool {
    return same(a.x, b.x) & same(a.y, b.y);
}

// The modulus: the larger part times what lies between 1 and the root of 2.
fn modulus(z: Acc) -> f32 {
    let bits = bitcast<vec2<u32>>(z) & vec2(0x7fffffffu);
    // An infinite part wins over NaN.
    if (bits.x == 0x7f800000u || bits.y == 0x7f800000u) { return bitcast<f32>(0x7f800000u); }
    if (is_nan(z)) { return bitcast<f32>(0x7fc00000u); }
    let high = bitcast<f32>(max(bits.x, bits.y));
    let low = bitcast<f32>(min(bits.x, bits.y));
    if (bits.x == 0u || bits.y == 0u) { return high; }
    let q = quotient(low, high);
    return high * sqrt(1.0 + q * q);
}

fn m_abs(x: Acc) -> Acc {
    return vec2(modulus(x), 0.0);
}

fn m_sign(x: Acc) -> Acc {
    if (!is_true(x)) { return vec2(0.0); }
    return over(x, modulus(x));
}

fn finite_part(x: f32, nan: f32, high: f32, low: f32) -> f32 {
    if (nan_bits(x)) { return nan; }
    let bits = bitcast<u32>(x);
    if (bits == 0x7f800000u) { return high; }
    return select(x, low, bits == 0xff800000u);
}

fn m_finite(x: Acc, nan: Acc, high: Acc, low: Acc) -> Acc {
    return vec2(finite_part(x.x, nan.x, high.x, low.x), finite_part(x.y, nan.x, high.x, low.x));
}

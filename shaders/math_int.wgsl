// Functions for pointwise bodies in int32 and int64. Division by zero is undefined on a GPU: it
// gives 0 here, and the smallest integer divided by -1 wraps.
fn m_is_nan(x: Acc) -> bool {
    return false;
}
// What only floats can be, no integer is.
fn m_never(x: Acc) -> Acc {
    return Acc(0);
}
fn m_always(x: Acc) -> Acc {
    return Acc(1);
}
fn m_finite(x: Acc) -> Acc {
    return x;
}
fn m_negative(x: Acc) -> Acc {
    return select(Acc(0), Acc(1), x < Acc(0));
}
// Euclid's, of at most 92 steps.
fn m_gcd(x: Acc, y: Acc) -> Acc {
    var a = m_abs(x);
    var b = m_abs(y);
    for (var k = 0; k < 100 && b != Acc(0); k++) {
        let rest = m_fmod(a, b);
        a = b;
        b = rest;
    }
    return m_abs(a);
}
fn m_lcm(x: Acc, y: Acc) -> Acc {
    let d = m_gcd(x, y);
    return m_abs(m_trunc_div(x, d) * y);
}
// Shifts by a negative number or by all the bits of the type leave 0, or the sign. By bits: Mesa 22 in software
// takes 1 for no less than 64, where the 1 was 32 bits in memory.
fn is_within(n: Acc, bits: i32) -> bool {
    return (n >> firstTrailingBit(u32(bits))) == Acc(0);
}
fn m_left_shift(x: Acc, n: Acc, bits: i32) -> Acc {
    let inside = is_within(n, bits);
    return select(Acc(0), x << u32(select(Acc(0), n, inside)), inside);
}
fn m_right_shift(x: Acc, n: Acc, bits: i32) -> Acc {
    let inside = is_within(n, bits);
    let sign = select(Acc(0), Acc(-1), x < Acc(0));
    return select(sign, x >> u32(select(Acc(0), n, inside)), inside);
}
fn m_abs(x: Acc) -> Acc {
    return select(x, -x, x < Acc(0));
}
fn m_neg(x: Acc) -> Acc {
    return -x;
}
fn m_max(a: Acc, b: Acc) -> Acc {
    return select(b, a, a > b);
}
fn m_min(a: Acc, b: Acc) -> Acc {
    return select(b, a, a < b);
}
fn m_sign(x: Acc) -> Acc {
    return select(select(Acc(0), Acc(-1), x < Acc(0)), Acc(1), x > Acc(0));
}
fn m_trunc_div(a: Acc, b: Acc) -> Acc {
    if (b == Acc(0)) { return Acc(0); }
    if (b == Acc(-1)) { return Acc(0) - a; }
    return a / b;
}
fn m_fmod(a: Acc, b: Acc) -> Acc {
    return a - m_trunc_div(a, b) * b;
}
fn m_remainder(a: Acc, b: Acc) -> Acc {
    let r = m_fmod(a, b);
    return select(r, r + b, r != Acc(0) && (r < Acc(0)) != (b < Acc(0)));
}
fn m_floor_div(a: Acc, b: Acc) -> Acc {
    let q = m_trunc_div(a, b);
    let r = a - q * b;
    return select(q, q - Acc(1), r != Acc(0) && (r < Acc(0)) != (b < Acc(0)));
}
// Wraps on overflow. A negative exponent gives 1, -1 or 0, as 1 / x truncated.
fn m_pow(x: Acc, e: Acc) -> Acc {
    if (e < Acc(0)) {
        if (x == Acc(1)) { return x; }
        if (x == Acc(-1)) { return select(x, Acc(1), (e & Acc(1)) == Acc(0)); }
        return Acc(0);
    }
    var r = Acc(1);
    var base = x;
    var n = e;
    for (var k = 0; k < 63 && n > Acc(0); k++) {
        if ((n & Acc(1)) == Acc(1)) { r *= base; }
        base *= base;
        n >>= 1u;
    }
    return r;
}

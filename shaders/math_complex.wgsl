// Functions of complex numbers for pointwise bodies, each an `m_` function, by the formulas of the CPU. Those of
// real numbers are named `r_`, and are the ones of math_f32.wgsl or math_f64.wgsl; what the types differ in stands
// in math_c64.wgsl and math_c128.wgsl.

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
    // NaN is larger than any number.
    if (is_larger(b.y, b.x)) {
        let q = ratio(b.x, b.y);
        let d = b.x * q + b.y;
        return over(vec2(a.x * q + a.y, a.y * q - a.x), d);
    }
    // Not by a constant zero, which a compiler might fold.
    if (!is_true(b)) { return over(a, r_abs(b.x)); }
    let q = ratio(b.y, b.x);
    let d = b.x + b.y * q;
    return over(vec2(a.x + a.y * q, a.y - a.x * q), d);
}
fn over(z: Acc, x: Real) -> Acc {
    return vec2(ratio(z.x, x), ratio(z.y, x));
}
// Whether the magnitude of a is larger than that of b.
fn is_larger(a: Real, b: Real) -> bool {
    return r_less(r_abs(b), r_abs(a)) || (r_is_nan(a) && !r_is_nan(b));
}

// A difference may not tell, and an adapter may change the sign of zero.
fn m_neg(x: Acc) -> Acc {
    return vec2(r_neg(x.x), r_neg(x.y));
}
fn m_conj(x: Acc) -> Acc {
    return vec2(x.x, r_neg(x.y));
}

fn m_equal(a: Acc, b: Acc) -> bool {
    return r_equal(a.x, b.x) & r_equal(a.y, b.y);
}
// Formulas that compare complex numbers mean their real parts.
fn m_less(a: Acc, b: Acc) -> bool {
    return r_less(a.x, b.x);
}
fn m_at_most(a: Acc, b: Acc) -> bool {
    return r_at_most(a.x, b.x);
}
fn m_is_infinite(z: Acc) -> bool {
    return r_is_inf(z.x) || r_is_inf(z.y);
}
fn m_is_finite(z: Acc) -> bool {
    return r_is_finite(z.x) && r_is_finite(z.y);
}
fn r_is_finite(x: Real) -> bool {
    return !r_is_nan(x) && !r_is_inf(x);
}

// The modulus: the larger part times what lies between 1 and the root of 2.
fn modulus(z: Acc) -> Real {
    // An infinite part wins over NaN.
    if (m_is_infinite(z)) { return r_inf(); }
    if (is_nan(z)) { return r_nan(); }
    let swaps = is_larger(z.y, z.x);
    let high = r_abs(select(z.x, z.y, swaps));
    let low = r_abs(select(z.y, z.x, swaps));
    if (!r_is_true(low)) { return high; }
    let q = ratio(low, high);
    return high * sqrt(1.0 + q * q);
}
fn m_abs(x: Acc) -> Acc {
    return Acc(modulus(x), 0.0);
}
fn m_sign(x: Acc) -> Acc {
    if (!is_true(x)) { return Acc(0.0); }
    return over(x, modulus(x));
}

fn finite_part(x: Real, nan: Real, high: Real, low: Real) -> Real {
    if (r_is_nan(x)) { return nan; }
    if (!r_is_inf(x)) { return x; }
    return select(high, low, r_differ(x, 1.0));
}
fn m_finite(x: Acc, nan: Acc, high: Acc, low: Acc) -> Acc {
    return vec2(finite_part(x.x, nan.x, high.x, low.x), finite_part(x.y, nan.x, high.x, low.x));
}

// i z and -i z, with the sign of each zero.
fn times_i(z: Acc) -> Acc {
    return vec2(r_neg(z.y), z.x);
}
fn over_i(z: Acc) -> Acc {
    return vec2(z.y, r_neg(z.x));
}
// From here on `z * z + 1` is `z * z`.
fn is_large(z: Acc) -> bool {
    return r_less(1.0e15, r_abs(z.x)) || r_less(1.0e15, r_abs(z.y));
}
// log |2 z| for a large z, whose modulus may overflow.
fn log_twice(z: Acc) -> Real {
    return r_ln(modulus(0.5 * z)) + 1.3862943611198906;
}
// x with the sign that its product with y has.
fn signed_by(x: Real, y: Real) -> Real {
    return select(x, r_neg(x), r_differ(y, 1.0));
}
// x y where a y of zero wins: the axes map to themselves, also at infinities and NaN.
fn unless_zero(x: Real, y: Real) -> Real {
    if (!r_is_true(y)) { return signed_by(y, x); }
    return scaled(x, y);
}
// x y, infinite where x is: an adapter may take a denormal y for the zero whose product is NaN.
fn scaled(x: Real, y: Real) -> Real {
    if (r_is_inf(x) && r_is_true(y) && !r_is_nan(y)) { return signed_by(x, y); }
    return x * y;
}

fn m_sqrt(z: Acc) -> Acc {
    if (!is_true(z)) { return Acc(0.0, z.y); }
    if (r_is_inf(z.y)) { return vec2(r_inf(), z.y); }
    if (r_is_inf(z.x)) {
        var other = Real(0.0);
        if (r_is_nan(z.y)) { other = z.y; }
        if (z.x > 0.0) { return vec2(z.x, r_copysign(other, z.y)); }
        return vec2(other, r_copysign(r_inf(), z.y));
    }
    if (is_nan(z)) { return Acc(r_nan()); }
    // Scaled so that the modulus neither overflows nor loses digits.
    let m = max(r_abs(z.x), r_abs(z.y));
    var w = z;
    var back = Real(1.0);
    if (m > MUCH) {
        w = z * 0.0625;
        back = Real(4.0);
    } else if (m < LITTLE) {
        w = vec2(r_raised(z.x), r_raised(z.y));
        back = Real(2.3283064365386963e-10);
    }
    let s = r_sqrt(0.5 * (r_abs(w.x) + modulus(w)));
    let a = s * back;
    let b = r_abs(w.y) / (2.0 * s) * back;
    if (w.x >= 0.0) { return vec2(a, r_copysign(b, z.y)); }
    return vec2(b, r_copysign(a, z.y));
}
fn m_rsqrt(z: Acc) -> Acc {
    return m_div(Acc(1.0, 0.0), m_sqrt(z));
}

fn m_exp(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_exp(z.x), z.y); }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) {
        if (z.x > 0.0) { return vec2(z.x, r_nan()); }
        return Acc(0.0);
    }
    let t = turned(z.y);
    // e^x overflows before its product with a small sine does.
    let halves = r_less(FAR, z.x) && !r_is_inf(z.x);
    let e = r_exp(select(z.x, 0.5 * z.x, halves));
    let r = vec2(scaled(e, t.x), scaled(e, t.y));
    if (!halves) { return r; }
    return vec2(scaled(r.x, e), scaled(r.y, e));
}
fn m_exp2(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_exp2(z.x), z.y); }
    let y = z.y * 0.6931471805599453;
    if (!r_is_finite(z.x) || !r_is_finite(z.y)) {
        return m_exp(vec2(z.x * 0.6931471805599453, select(z.y, y, r_is_true(y))));
    }
    // What rounding takes from the angle, by products of leading bits.
    let high = r_leading(z.y);
    let lost = (high * LN2_HIGH - y) + (z.y - high) * LN2_HIGH + z.y * LN2_LOW;
    let turn = m_mul(turned(y), turned_little(lost));
    if (z.x > FAR2) {
        let half = r_exp2(0.5 * z.x);
        return half * turn * half;
    }
    return r_exp2(z.x) * turn;
}
fn m_expm1(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_expm1(z.x), z.y); }
    if (!r_at_most(r_abs(z.x), 20.0)) { return m_exp(z) - Acc(1.0, 0.0); }
    let h = r_sin(0.5 * z.y);
    let e = r_exp(z.x);
    return vec2(r_expm1(z.x) - 2.0 * e * h * h, e * r_sin(z.y));
}

fn m_ln(z: Acc) -> Acc {
    let angle = r_atan2(z.y, z.x);
    var w = z;
    var shift = Real(0.0);
    if (!is_nan(z)) {
        let a = r_abs(z.x);
        let b = r_abs(z.y);
        let m = max(a, b);
        let n = min(a, b);
        if (m > 0.5 && m < 2.0) {
            // The modulus is near 1, where the logarithm keeps only what differs from it.
            let d = m - 1.0;
            return vec2(0.5 * r_log1p(2.0 * d + (d * d + n * n)), angle);
        }
        if (m > MUCH) {
            w = 0.5 * z;
            shift = Real(0.6931471805599453);
        } else if (m < LITTLE && is_true(z)) {
            w = vec2(r_raised(z.x), r_raised(z.y));
            shift = Real(-44.3614195558365);
        }
    }
    return vec2(r_ln(modulus(w)) + shift, angle);
}
fn m_log2(z: Acc) -> Acc {
    return m_ln(z) * 1.4426950408889634;
}
fn m_log10(z: Acc) -> Acc {
    return m_ln(z) * 0.4342944819032518;
}
fn m_log1p(z: Acc) -> Acc {
    if (r_less(r_abs(z.x), 0.5) && r_less(r_abs(z.y), 0.5)) {
        let re = 0.5 * r_log1p(z.x * (2.0 + z.x) + z.y * z.y);
        return vec2(re, r_atan2(z.y, 1.0 + z.x));
    }
    return m_ln(vec2(1.0 + z.x, z.y));
}

// e^|x| / 2, which sinh and cosh are from FAR on, times a part of (cos y, sin y), which may be so small
// that there is no overflow in the end.
fn large_times(x: Real, part: Real) -> Real {
    let e = r_exp(0.5 * r_abs(x));
    return scaled(0.5 * scaled(e, part), e);
}
fn is_far(x: Real) -> bool {
    return r_less(FAR, r_abs(x)) && !r_is_inf(x);
}
fn sinh_times(x: Real, part: Real) -> Real {
    if (is_far(x)) { return large_times(x, signed_by(part, x)); }
    return unless_zero(r_sinh(x), part);
}
fn cosh_times(x: Real, part: Real) -> Real {
    if (is_far(x)) { return large_times(x, part); }
    return unless_zero(r_cosh(x), part);
}
fn m_sinh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_sinh(z.x), z.y); }
    let t = turned(z.y);
    if (!r_is_true(z.x)) {
        var re = z.x;
        if (r_is_finite(z.y)) { re = z.x * t.x; }
        return vec2(re, t.y);
    }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) { return vec2(z.x, r_nan()); }
    return vec2(sinh_times(z.x, t.x), cosh_times(z.x, t.y));
}
fn m_cosh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_cosh(z.x), z.y * r_copysign(1.0, z.x)); }
    let t = turned(z.y);
    if (!r_is_true(z.x)) {
        var im = Real(0.0);
        if (r_is_finite(z.y)) { im = z.x * t.y; }
        return vec2(t.x, im);
    }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) { return vec2(r_inf(), r_nan()); }
    return vec2(cosh_times(z.x, t.x), sinh_times(z.x, t.y));
}
fn m_tanh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_tanh(z.x), z.y); }
    let t = turned(z.y);
    if (r_less(FLAT, r_abs(z.x))) {
        if (r_is_finite(z.y)) {
            let e = 4.0 * r_exp(-2.0 * r_abs(z.x));
            return vec2(r_copysign(1.0, z.x), e * t.y * t.x);
        }
        if (r_is_inf(z.x)) { return vec2(r_copysign(1.0, z.x), r_copysign(0.0, z.y)); }
        return Acc(r_nan());
    }
    if (!r_is_true(z.x)) { return vec2(z.x, t.y / t.x); }
    let s = r_sinh(z.x);
    let r = s * s + t.x * t.x;
    return vec2(s * r_cosh(z.x), t.y * t.x) / r;
}
fn m_sin(z: Acc) -> Acc {
    return over_i(m_sinh(times_i(z)));
}
fn m_cos(z: Acc) -> Acc {
    return m_cosh(times_i(z));
}
fn m_tan(z: Acc) -> Acc {
    return over_i(m_tanh(times_i(z)));
}

// The inverse functions after Kahan, "Branch cuts for complex elementary functions", 1987: no square
// is formed, and each root tells the sides of its cut apart by the sign of zero.
fn m_asinh(z: Acc) -> Acc {
    if (is_large(z)) { return vec2(r_copysign(log_twice(z), z.x), r_atan2(z.y, r_abs(z.x))); }
    if (!r_is_true(z.y)) { return vec2(r_asinh(z.x), z.y); }
    let a = m_sqrt(vec2(1.0 + z.y, r_neg(z.x)));
    let b = m_sqrt(vec2(1.0 - z.y, z.x));
    return vec2(r_asinh(a.x * b.y - b.x * a.y), r_atan2(z.y, a.x * b.x - a.y * b.y));
}
fn m_acosh(z: Acc) -> Acc {
    if (is_large(z)) { return vec2(log_twice(z), r_atan2(z.y, z.x)); }
    if (!r_is_true(z.x) && r_is_nan(z.y)) { return vec2(z.y, Real(1.5707963267948966)); }
    let a = m_sqrt(vec2(z.x - 1.0, z.y));
    let b = m_sqrt(vec2(z.x + 1.0, z.y));
    return vec2(r_asinh(a.x * b.x + a.y * b.y), 2.0 * r_atan2(a.y, b.x));
}
fn m_acos(z: Acc) -> Acc {
    if (is_large(z)) { return vec2(r_atan2(r_abs(z.y), z.x), r_copysign(log_twice(z), r_neg(z.y))); }
    let a = m_sqrt(vec2(1.0 - z.x, r_neg(z.y)));
    let b = m_sqrt(vec2(1.0 + z.x, z.y));
    var re = Real(1.5707963267948966);
    if (r_is_true(z.x)) { re = 2.0 * r_atan2(a.x, b.x); }
    return vec2(re, r_asinh(b.x * a.y - b.y * a.x));
}
fn m_asin(z: Acc) -> Acc {
    return over_i(m_asinh(times_i(z)));
}
fn m_atanh(z: Acc) -> Acc {
    let x = r_abs(z.x);
    let y = r_abs(z.y);
    var re = Real(0.0);
    var im = Real(1.5707963267948966);
    if (is_large(z)) {
        let h = modulus(0.5 * z);
        if (!r_is_inf(h)) { re = ratio(ratio(x * 0.25, h), h); }
        if (is_nan(z) && !r_is_inf(y)) { im = r_nan(); }
    } else if (x == 1.0 && r_less(y, 1.0e-15)) {
        // (1 - x)^2 + y^2 underflows.
        im = y;
        if (r_is_true(y)) { im = 0.5 * r_atan2(2.0, -y); }
        re = 0.34657359027997264 - 0.5 * r_ln(y);
    } else {
        if (r_is_true(x)) { re = 0.25 * r_log1p(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)); }
        im = 0.5 * r_atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
    }
    // A point of the cut beyond 1 is above it for +0 and below it for -0.
    return vec2(r_copysign(re, z.x), r_copysign(im, z.y));
}
fn m_atan(z: Acc) -> Acc {
    return over_i(m_atanh(times_i(z)));
}

// By the exponential that does not overflow.
fn m_sigmoid(z: Acc) -> Acc {
    let one = Acc(1.0, 0.0);
    let negative = r_less(z.x, 0.0);
    let e = m_exp(select(m_neg(z), z, negative));
    return m_div(select(one, e, negative), one + e);
}

fn m_pow(z: Acc, e: Acc) -> Acc {
    if (!is_true(e)) { return Acc(1.0, 0.0); }
    if (!is_true(z)) {
        if (e.x > 0.0) { return Acc(0.0); }
        return Acc(r_nan());
    }
    return m_exp(m_mul(e, m_ln(z)));
}

// Elementary functions of complex numbers for pointwise bodies, by the formulas of the CPU with the
// bounds of float32. The functions `r_` of real numbers are those of math_f32.wgsl.

// i z and -i z, with the sign of each zero.
fn times_i(z: Acc) -> Acc {
    return vec2(r_neg(z.y), z.x);
}
fn over_i(z: Acc) -> Acc {
    return vec2(z.y, r_neg(z.x));
}
// From here on `z * z + 1` is `z * z`.
fn is_large(z: Acc) -> bool {
    return below(1.0e15, r_abs(z.x)) || below(1.0e15, r_abs(z.y));
}
// log |2 z| for a large z, whose modulus may overflow.
fn log_twice(z: Acc) -> f32 {
    return r_ln(modulus(0.5 * z)) + 1.38629436;
}
// x y where a y of zero wins: the axes map to themselves, also at infinities and NaN.
fn unless_zero(x: f32, y: f32) -> f32 {
    if (!r_is_true(y)) { return r_copysign(y, bitcast<f32>(bitcast<u32>(x) ^ bitcast<u32>(y))); }
    return scaled(x, y);
}
// x y, infinite where x is: an adapter may take a denormal y for the zero whose product is NaN.
fn scaled(x: f32, y: f32) -> f32 {
    if (r_is_inf(x) && r_is_true(y) && !nan_bits(y)) {
        return r_copysign(x, bitcast<f32>(bitcast<u32>(x) ^ bitcast<u32>(y)));
    }
    return x * y;
}
fn r_is_finite(x: f32) -> bool {
    return !nan_bits(x) && !r_is_inf(x);
}
// Formulas that compare complex numbers mean their real parts.
fn m_less(a: Acc, b: Acc) -> bool {
    return below(a.x, b.x);
}
fn m_at_most(a: Acc, b: Acc) -> bool {
    return not_above(a.x, b.x);
}
fn m_is_infinite(z: Acc) -> bool {
    return r_is_inf(z.x) || r_is_inf(z.y);
}
fn m_is_finite(z: Acc) -> bool {
    return r_is_finite(z.x) && r_is_finite(z.y);
}
// cos y and sin y.
fn turned(y: f32) -> Acc {
    return vec2(r_cos(y), r_sin(y));
}

fn m_sqrt(z: Acc) -> Acc {
    if (!is_true(z)) { return vec2(0.0, z.y); }
    if (r_is_inf(z.y)) { return vec2(r_inf(), z.y); }
    if (r_is_inf(z.x)) {
        var other = 0.0;
        if (nan_bits(z.y)) { other = z.y; }
        if (z.x > 0.0) { return vec2(z.x, r_copysign(other, z.y)); }
        return vec2(other, r_copysign(r_inf(), z.y));
    }
    if (is_nan(z)) { return vec2(r_nan()); }
    // Scaled so that the modulus neither overflows nor loses digits.
    let m = max(r_abs(z.x), r_abs(z.y));
    var w = z;
    var back = 1.0;
    if (m > 1.0e37) {
        w = z * 0.0625;
        back = 4.0;
    } else if (m < 1.0e-30) {
        w = vec2(r_raised(z.x), r_raised(z.y));
        back = 2.3283064365386963e-10;
    }
    let s = r_sqrt(0.5 * (r_abs(w.x) + modulus(w)));
    let a = s * back;
    let b = r_abs(w.y) / (2.0 * s) * back;
    if (w.x >= 0.0) { return vec2(a, r_copysign(b, z.y)); }
    return vec2(b, r_copysign(a, z.y));
}
fn m_rsqrt(z: Acc) -> Acc {
    return m_div(vec2(1.0, 0.0), m_sqrt(z));
}

fn m_exp(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_exp(z.x), z.y); }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) {
        if (z.x > 0.0) { return vec2(z.x, r_nan()); }
        return vec2(0.0);
    }
    if (below(80.0, z.x) && !r_is_inf(z.x)) {
        // e^x overflows before its product with a small sine does.
        let half = r_exp(0.5 * z.x);
        let t = turned(z.y);
        return vec2(scaled(scaled(half, t.x), half), scaled(scaled(half, t.y), half));
    }
    let e = r_exp(z.x);
    let t = turned(z.y);
    return vec2(scaled(e, t.x), scaled(e, t.y));
}
fn m_exp2(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_exp2(z.x), z.y); }
    let y = z.y * 0.693147181;
    if (!r_is_finite(z.x) || !r_is_finite(z.y)) {
        return m_exp(vec2(z.x * 0.693147181, select(z.y, y, r_is_true(y))));
    }
    // What rounding takes from the angle, by products of 12 bits each.
    let high = r_leading(z.y);
    let lost = (high * 0.693115234 - y) + (z.y - high) * 0.693115234 + z.y * 3.1946183e-5;
    let turn = m_mul(turned(y), turned(lost));
    if (z.x > 110.0) {
        let half = r_exp2(0.5 * z.x);
        return half * turn * half;
    }
    return r_exp2(z.x) * turn;
}
fn m_expm1(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_expm1(z.x), z.y); }
    if (!not_above(r_abs(z.x), 20.0)) { return m_exp(z) - vec2(1.0, 0.0); }
    let h = r_sin(0.5 * z.y);
    let e = r_exp(z.x);
    return vec2(r_expm1(z.x) - 2.0 * e * h * h, e * r_sin(z.y));
}

fn m_ln(z: Acc) -> Acc {
    let angle = r_atan2(z.y, z.x);
    if (is_nan(z)) { return vec2(r_ln(modulus(z)), angle); }
    let a = r_abs(z.x);
    let b = r_abs(z.y);
    let m = max(a, b);
    let n = min(a, b);
    if (m > 1.0e37 && !r_is_inf(m)) { return vec2(log_twice(z) - 0.693147181, angle); }
    if (m > 0.5 && m < 2.0) {
        // The modulus is near 1, where the logarithm keeps only what differs from it.
        let d = m - 1.0;
        return vec2(0.5 * r_log1p(2.0 * d + (d * d + n * n)), angle);
    }
    if (m < 1.0e-30 && is_true(z)) {
        return vec2(r_ln(modulus(vec2(r_raised(z.x), r_raised(z.y)))) - 44.3614196, angle);
    }
    return vec2(r_ln(modulus(z)), angle);
}
fn m_log2(z: Acc) -> Acc {
    return m_ln(z) * 1.44269504;
}
fn m_log10(z: Acc) -> Acc {
    return m_ln(z) * 0.434294482;
}
fn m_log1p(z: Acc) -> Acc {
    if (below(r_abs(z.x), 0.5) && below(r_abs(z.y), 0.5)) {
        let re = 0.5 * r_log1p(z.x * (2.0 + z.x) + z.y * z.y);
        return vec2(re, r_atan2(z.y, 1.0 + z.x));
    }
    return m_ln(vec2(1.0 + z.x, z.y));
}

// e^|x| / 2, which sinh and cosh are from 80 on, times a part of (cos y, sin y), which may be so small
// that there is no overflow in the end.
fn large_times(x: f32, part: f32) -> f32 {
    let e = r_exp(0.5 * r_abs(x));
    return scaled(0.5 * scaled(e, part), e);
}
fn is_far(x: f32) -> bool {
    return below(80.0, r_abs(x)) && !r_is_inf(x);
}
fn sinh_times(x: f32, part: f32) -> f32 {
    if (is_far(x)) {
        let turned = bitcast<u32>(part) ^ (bitcast<u32>(x) & 0x80000000u);
        return large_times(x, bitcast<f32>(turned));
    }
    return unless_zero(r_sinh(x), part);
}
fn cosh_times(x: f32, part: f32) -> f32 {
    if (is_far(x)) { return large_times(x, part); }
    return unless_zero(r_cosh(x), part);
}
fn m_sinh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_sinh(z.x), z.y); }
    if (!r_is_true(z.x)) {
        var re = z.x;
        if (r_is_finite(z.y)) { re = z.x * r_cos(z.y); }
        return vec2(re, r_sin(z.y));
    }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) { return vec2(z.x, r_nan()); }
    let t = turned(z.y);
    return vec2(sinh_times(z.x, t.x), cosh_times(z.x, t.y));
}
fn m_cosh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_cosh(z.x), z.y * r_copysign(1.0, z.x)); }
    if (!r_is_true(z.x)) {
        var im = 0.0;
        if (r_is_finite(z.y)) { im = z.x * r_sin(z.y); }
        return vec2(r_cos(z.y), im);
    }
    if (r_is_inf(z.x) && !r_is_finite(z.y)) { return vec2(r_inf(), r_nan()); }
    let t = turned(z.y);
    return vec2(cosh_times(z.x, t.x), sinh_times(z.x, t.y));
}
fn m_tanh(z: Acc) -> Acc {
    if (!r_is_true(z.y)) { return vec2(r_tanh(z.x), z.y); }
    if (below(10.0, r_abs(z.x))) {
        if (r_is_finite(z.y)) {
            let t = turned(z.y);
            let e = 4.0 * r_exp(-2.0 * r_abs(z.x));
            return vec2(r_copysign(1.0, z.x), e * t.y * t.x);
        }
        if (r_is_inf(z.x)) { return vec2(r_copysign(1.0, z.x), r_copysign(0.0, z.y)); }
        return vec2(r_nan());
    }
    let t = turned(z.y);
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
    let a = m_sqrt(vec2(z.x - 1.0, z.y));
    let b = m_sqrt(vec2(z.x + 1.0, z.y));
    return vec2(r_asinh(a.x * b.x + a.y * b.y), 2.0 * r_atan2(a.y, b.x));
}
fn m_acos(z: Acc) -> Acc {
    if (is_large(z)) { return vec2(r_atan2(r_abs(z.y), z.x), r_copysign(log_twice(z), r_neg(z.y))); }
    let a = m_sqrt(vec2(1.0 - z.x, r_neg(z.y)));
    let b = m_sqrt(vec2(1.0 + z.x, z.y));
    var re = 1.57079633;
    if (r_is_true(z.x)) { re = 2.0 * r_atan2(a.x, b.x); }
    return vec2(re, r_asinh(b.x * a.y - b.y * a.x));
}
fn m_asin(z: Acc) -> Acc {
    return over_i(m_asinh(times_i(z)));
}
fn m_atanh(z: Acc) -> Acc {
    let x = r_abs(z.x);
    let y = r_abs(z.y);
    var re = 0.0;
    var im = 1.57079633;
    if (is_large(z)) {
        let h = modulus(0.5 * z);
        if (!r_is_inf(h)) { re = quotient(quotient(x * 0.25, h), h); }
        if (is_nan(z) && !r_is_inf(y)) { im = r_nan(); }
    } else if (x == 1.0 && below(y, 1.0e-15)) {
        // (1 - x)^2 + y^2 underflows.
        im = y;
        if (r_is_true(y)) { im = 0.5 * r_atan2(2.0, -y); }
        re = 0.34657359 - 0.5 * r_ln(y);
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
    let one = vec2(1.0, 0.0);
    if (z.x < 0.0) {
        let e = m_exp(z);
        return m_div(e, one + e);
    }
    return m_div(one, one + m_exp(m_neg(z)));
}

fn m_pow(z: Acc, e: Acc) -> Acc {
    if (!is_true(e)) { return vec2(1.0, 0.0); }
    if (!is_true(z)) {
        if (e.x > 0.0) { return vec2(0.0); }
        return vec2(r_nan());
    }
    return m_exp(m_mul(e, m_ln(z)));
}

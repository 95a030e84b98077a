// Powers, remainders and special functions in float64, by those of math_f64.wgsl.

// erf by its series without alternating terms.
fn m_erf_series(x: f64) -> f64 {
    let z = 2.0lf * x * x;
    var term = x;
    var sum = x;
    for (var k = 1; k < 60; k++) {
        term *= z / (2.0lf * f64(k) + 1.0lf);
        sum += term;
    }
    return 1.1283791670955126lf * m_exp(-x * x) * sum;
}
// erfc of x >= 2 by its continued fraction.
fn m_erfc_tail(x: f64) -> f64 {
    if (x > 27.3lf) { return 0.0lf; }
    var f = x;
    for (var k = 70; k > 0; k--) { f = x + 0.5lf * f64(k) / f; }
    let z = m_leading(x);
    return 0.5641895835477563lf * m_exp(-z * z) * m_exp((z - x) * (z + x)) / f;
}
fn m_erf(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    let a = m_abs(x);
    if (a < 2.0lf) { return m_erf_series(x); }
    return m_copysign(1.0lf - m_erfc_tail(a), x);
}
fn m_erfc(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    if (x < 1.0lf) { return 1.0lf - m_erf(x); }
    if (x < 2.0lf) {
        // The fraction needs more terms near zero.
        var f = x;
        for (var k = 200; k > 0; k--) { f = x + 0.5lf * f64(k) / f; }
        return 0.5641895835477563lf * m_exp(-x * x) / f;
    }
    return m_erfc_tail(x);
}

fn m_pow(x: f64, e: f64) -> f64 {
    if (!m_is_true(e) || equal(x, 1.0lf)) { return 1.0lf; }
    if (m_is_nan(x) || m_is_nan(e)) { return m_nan(); }
    let big = m_abs(e) >= 9007199254740992.0lf;
    let whole = big || e == trunc(e);
    let odd = whole && !big && (i64(e) & 1li) != 0li;
    let a = m_abs(x);
    if (whole && m_abs(e) <= 8.0lf && !m_is_inf(x)) {
        var r = 1.0lf;
        for (var k = 0; k < i32(m_abs(e)); k++) { r *= x; }
        if (e > 0.0lf) { return r; }
        if (m_is_true(r) && !m_is_inf(r)) { return 1.0lf / r; }
    }
    var r = 0.0lf;
    if (m_is_inf(e)) {
        if (a == 1.0lf) { return 1.0lf; }
        return select(0.0lf, m_inf(), (a > 1.0lf) == (e > 0.0lf));
    } else if (!m_is_true(a)) {
        r = select(m_inf(), 0.0lf, e > 0.0lf);
    } else if (m_is_inf(a)) {
        r = select(0.0lf, m_inf(), e > 0.0lf);
    } else {
        // e ln a in parts, of which the large ones are exact.
        let l = m_ln_split(a);
        let f = clamp(e, -1.0e20lf, 1.0e20lf);
        let high = m_leading(f);
        let scale = l.e * 0.693145751953125lf;
        let small = 2.0lf * l.low + l.rest + l.e * 1.4286068203094173e-06lf;
        let p = high * scale;
        let q = high * (2.0lf * l.s);
        let rest = (f - high) * (scale + 2.0lf * l.s) + f * small;
        let sum = p + q + rest;
        if (sum > 709.79lf) {
            r = m_inf();
        } else if (sum > -745.2lf) {
            let n = round(sum * 1.4426950408889634lf);
            let left = ((p - n * 0.693145751953125lf) + q) + (rest - n * 1.4286068203094173e-06lf);
            r = m_exp_parts(n, left);
        }
    }
    if (m_differ(x, 1.0lf)) {
        if (odd) { return -r; }
        if (!whole && m_is_true(a) && !m_is_inf(a)) { return m_nan(); }
    }
    return r;
}

// C's fmod, exact: the mantissas' remainder, eleven bits of the quotient at a time.
fn m_fmod(a: f64, b: f64) -> f64 {
    if (m_is_nan(a) || m_is_nan(b) || m_is_inf(a)) { return m_nan(); }
    let x = bitcast<u64>(a) & 0x7ffffffffffffffflu;
    let y = bitcast<u64>(b) & 0x7ffffffffffffffflu;
    if (y == 0lu) { return m_nan(); }
    if (x < y) { return a; }
    let ex = max(u32(x >> 52u), 1u) - 1u;
    let ey = max(u32(y >> 52u), 1u) - 1u;
    let my = y - (u64(ey) << 52u);
    var r = (x - (u64(ex) << 52u)) % my;
    for (var n = ex - ey; n > 0u; ) {
        let step = min(n, 11u);
        r = (r << step) % my;
        n -= step;
    }
    if (r == 0lu) { return m_copysign(0.0lf, a); }
    let high = u32(r >> 32u);
    let lead = select(firstLeadingBit(u32(r & 0xfffffffflu)), 32u + firstLeadingBit(high), high != 0u);
    let shift = min(52u - lead, ey);
    return m_copysign(bitcast<f64>((r << shift) + (u64(ey - shift) << 52u)), a);
}
fn m_remainder(a: f64, b: f64) -> f64 {
    let r = m_fmod(a, b);
    return select(r, r + b, m_is_true(r) && !m_is_nan(r) && m_differ(r, b));
}
fn m_floor_div(a: f64, b: f64) -> f64 {
    if (!m_is_true(b)) { return a / b; }
    let r = m_fmod(a, b);
    var q = (a - r) / b;
    if (m_is_true(r) && m_differ(r, b)) { q -= 1.0lf; }
    if (!m_is_true(q)) { return m_copysign(0.0lf, bitcast<f64>(bitcast<u64>(a) ^ bitcast<u64>(b))); }
    let f = floor(q);
    return select(f, f + 1.0lf, q - f > 0.5lf);
}

// Stirling's series from 16 on, after at most sixteen steps of the recurrence.
fn m_lgamma_positive(x: f64) -> f64 {
    var z = x;
    var product = 1.0lf;
    for (var k = 0; k < 16 && z < 16.0lf; k++) {
        product *= z;
        z += 1.0lf;
    }
    let w = 1.0lf / z;
    let v = w * w;
    let tail = w * (0.08333333333333333lf + v * (-0.002777777777777778lf + v * (0.0007936507936507937lf + v *
        (-0.0005952380952380953lf + v * (0.0008417508417508417lf + v * (-0.0019175269175269176lf + v *
        (0.00641025641025641lf)))))));
    return (z - 0.5lf) * m_ln(z) - z + 0.9189385332046727lf + tail - m_ln(product);
}
fn m_sin_pi(x: f64) -> f64 {
    return m_sin(3.141592653589793lf * (x - round(x)));
}
fn m_lgamma(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    if (m_is_inf(x)) { return m_inf(); }
    let a = m_abs(x);
    if (a < 1.0e-17lf) { return -m_ln(a); }
    if (x <= 0.0lf && x == floor(x)) { return m_inf(); }
    if (x >= 0.5lf) { return m_lgamma_positive(x); }
    return 1.1447298858494002lf - m_ln(m_abs(m_sin_pi(x))) - m_lgamma_positive(1.0lf - x);
}
fn m_digamma_positive(x: f64) -> f64 {
    var z = x;
    var sum = 0.0lf;
    for (var k = 0; k < 12 && z < 12.0lf; k++) {
        sum -= 1.0lf / z;
        z += 1.0lf;
    }
    let w = 1.0lf / (z * z);
    let tail = w * (0.08333333333333333lf + w * (-0.008333333333333333lf + w * (0.003968253968253968lf + w *
        (-0.004166666666666667lf + w * (0.007575757575757576lf + w * (-0.021092796092796094lf + w *
        (0.08333333333333333lf + w * (-0.4432598039215686lf))))))));
    return sum + m_ln(z) - 0.5lf / z - tail;
}
fn m_digamma(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    if (m_is_inf(x)) { return select(x, m_nan(), x < 0.0lf); }
    if (!m_is_true(x)) { return -m_copysign(m_inf(), x); }
    if (x > 0.0lf) { return m_digamma_positive(x); }
    if (x == floor(x)) { return m_nan(); }
    let r = 3.141592653589793lf * (x - round(x));
    return m_digamma_positive(1.0lf - x) - 3.141592653589793lf * m_cos(r) / m_sin(r);
}
// The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x).
fn m_polygamma(n: u32, x: f64) -> f64 {
    if (n == 1u && x < 0.0lf) {
        // Reflection of the trigamma function.
        if (m_is_inf(x)) { return m_nan(); }
        let q = 3.141592653589793lf / m_sin_pi(x);
        return q * q - m_zeta(2.0lf, 1.0lf - x);
    }
    var factorial = 1.0lf;
    for (var k = 2u; k <= min(n, 171u); k++) { factorial *= f64(k); }
    let y = factorial * m_zeta(f64(n) + 1.0lf, x);
    return select(-y, y, (n & 1u) == 1u);
}
// Winitzki's closed form, then Newton's steps on erf, or on the logarithm of erfc.
fn m_erfinv(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x)) { return x; }
    let a = m_abs(x);
    if (a > 1.0lf) { return m_nan(); }
    if (a == 1.0lf) { return m_copysign(m_inf(), x); }
    if (a > 0.5lf) { return m_copysign(m_erfc_inverse(1.0lf - a), x); }
    var y = a * (0.886226925452758lf + 0.2320136665346545lf * a * a);
    for (var k = 0; k < 4; k++) {
        let u = (m_erf(y) - a) * 0.886226925452758lf * m_exp(y * y);
        y -= u / (1.0lf + y * u);
    }
    return m_copysign(y, x);
}
// The next number toward y.
fn m_next_after(x: f64, y: f64, step: f64) -> f64 {
    if (m_is_nan(x) || m_is_nan(y)) { return m_nan(); }
    if (x == y) { return y; }
    if (!m_is_true(x)) { return m_copysign(bitcast<f64>(1lu), y); }
    let bits = bitcast<u64>(x);
    return bitcast<f64>(select(bits - 1lu, bits + 1lu, (y > x) == (x > 0.0lf)));
}
// The highest bit of a number that is not zero.
fn m_leading_bit(bits: u64) -> u32 {
    let high = u32(bits >> 32u);
    if (high != 0u) { return 32u + firstLeadingBit(high); }
    return firstLeadingBit(u32(bits & 0xfffffffflu));
}
// x as a fraction from 1/2 to 1 before a power of two, by bits, so that denormals count.
fn m_mantissa(x: f64) -> f64 {
    let bits = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    if (bits == 0lu || bits >= 0x7ff0000000000000lu) { return x; }
    let normal = select(bits, bits << (52u - min(m_leading_bit(bits), 52u)), bits < 0x10000000000000lu);
    return m_copysign(bitcast<f64>(0x3fe0000000000000lu | (normal & 0xffffffffffffflu)), x);
}
fn m_exponent(x: f64) -> f64 {
    let bits = bitcast<u64>(x) & 0x7ffffffffffffffflu;
    if (bits == 0lu || bits >= 0x7ff0000000000000lu) { return 0.0lf; }
    if (bits < 0x10000000000000lu) { return f64(i32(m_leading_bit(bits)) - 1073); }
    return f64(i32(u32(bits >> 52u)) - 1022);
}

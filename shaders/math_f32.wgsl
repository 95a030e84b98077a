// Functions for pointwise bodies in float32. WGSL's own leave accuracy, overflow and NaN to the
// implementation; these give the same numbers, within the error that each one states, everywhere.
// Series are Taylor's on a reduced range unless something else is said.

// The compiler refuses to write these as constants.
fn m_inf() -> f32 {
    var u = 0x7f800000u;
    return bitcast<f32>(u);
}
fn m_nan() -> f32 {
    var u = 0x7fc00000u;
    return bitcast<f32>(u);
}
fn m_is_inf(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}
fn m_is_nan(x: f32) -> bool {
    return nan_bits(x);
}
fn m_copysign(x: f32, s: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(s) & 0x80000000u));
}
fn m_abs(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}
fn m_neg(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}
// NaN where either is NaN.
fn m_max(a: f32, b: f32) -> f32 {
    return select(b, a, nan_bits(a) | below(b, a));
}
fn m_min(a: f32, b: f32) -> f32 {
    return select(b, a, nan_bits(a) | below(a, b));
}
// By bits: Mesa makes a product of a sign and a truth value, which is -0 at zero.
fn m_sign(x: f32) -> f32 {
    if (nan_bits(x) || (bitcast<u32>(x) << 1u) == 0u) { return 0.0; }
    return m_copysign(1.0, x);
}
fn m_keep_zero(r: f32, x: f32) -> f32 {
    // Rounding keeps infinities, NaN, values without a fraction, and the sign of zero.
    // The sign last: Mesa 26 on AVX-512 leaves out a step of a choice between a number with a sign and x.
    return m_copysign(select(r, x, (bitcast<u32>(x) & 0x7fffffffu) >= 0x4b000000u), x);
}
fn m_floor(x: f32) -> f32 {
    return m_keep_zero(floor(x), x);
}
fn m_ceil(x: f32) -> f32 {
    return m_keep_zero(ceil(x), x);
}
fn m_trunc(x: f32) -> f32 {
    return m_keep_zero(trunc(x), x);
}
// To the nearest, ties to even.
fn m_round(x: f32) -> f32 {
    return m_keep_zero(round(x), x);
}
fn m_sqrt(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (nan_bits(x) || (bits << 1u) == 0u) { return x; }
    if ((bits >> 31u) == 1u) { return m_nan(); }
    if (bits == 0x7f800000u) { return x; }
    // A denormal: 2^-32 takes back the root of 2^64.
    if (bits < 0x00800000u) { return m_root(m_raised(x)) * 2.3283064365386963e-10; }
    return m_root(x);
}
// One Newton step: the hardware's root may be off by several units in the last place.
fn m_root(x: f32) -> f32 {
    let r = sqrt(x);
    return r - (r * r - x) / (2.0 * r);
}
fn m_rsqrt(x: f32) -> f32 {
    return 1.0 / m_sqrt(x);
}

fn m_scale2(x: f32, n: i32) -> f32 {
    let a = n >> 1u;
    return x * bitcast<f32>((a + 127) << 23u) * bitcast<f32>((n - a + 127) << 23u);
}
// e^(n ln 2 + r) for |r| <= ln(2) / 2.
fn m_exp_parts(n: f32, r: f32) -> f32 {
    let p = 1.0 + r * (1.0 + r * (0.5 + r * (1.6666667e-1 + r * (4.1666668e-2 + r * (8.333334e-3
        + r * (1.3888889e-3 + r * 1.984127e-4))))));
    return m_scale2(p, i32(n));
}
// 2 units in the last place.
fn m_exp(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (x > 88.72284) { return m_inf(); }
    if (x < -103.98) { return 0.0; }
    let n = round(x * 1.44269504);
    return m_exp_parts(n, (x - n * 0.693145752) - n * 1.42860677e-6);
}
// A weight beside others, by the driver's own function.
fn m_decay(x: f32) -> f32 {
    return exp(x);
}
fn m_exp2(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (x >= 128.0) { return m_inf(); }
    if (x < -150.0) { return 0.0; }
    let n = round(x);
    return m_exp_parts(n, (x - n) * 0.69314718);
}
fn m_expm1(x: f32) -> f32 {
    if (x == 0.0) { return x; }
    if (abs(x) < 0.5) {
        return x + x * x * (0.5 + x * (1.6666667e-1 + x * (4.1666668e-2 + x * (8.333334e-3
            + x * (1.3888889e-3 + x * (1.984127e-4 + x * (2.4801587e-5 + x * 2.7557319e-6)))))));
    }
    return m_exp(x) - 1.0;
}
// ln(1 + f) for 1 + f between sqrt(1/2) and sqrt(2).
fn m_ln_near(f: f32) -> f32 {
    let s = f / (2.0 + f);
    let z = s * s;
    // 2 artanh(s), arranged so that f carries the leading part exactly.
    let r = z * (6.6666667e-1 + z * (0.4 + z * (2.8571429e-1 + z * (2.2222222e-1
        + z * 1.8181818e-1))));
    let h = 0.5 * f * f;
    return f - (h - s * (h + r));
}
// x = 2^e m with m between sqrt(1/2) and sqrt(2): (e, ln m). For finite positive x.
fn m_ln_parts(x: f32) -> vec2<f32> {
    var bits = bitcast<u32>(x);
    var e = 0;
    if (bits < 0x00800000u) {
        // A subnormal is its bits times 2^-149.
        bits = bitcast<u32>(f32(bits));
        e = -149;
    }
    e += i32((bits + 0x004afb0du) >> 23u) - 127;
    let back = i32((bits + 0x004afb0du) >> 23u) - 127;
    let m = bitcast<f32>(bits - (bitcast<u32>(back) << 23u));
    return vec2(f32(e), m_ln_near(m - 1.0));
}
// By bits: a denormal may compare as zero.
fn m_ln_special(x: f32) -> bool {
    return bitcast<u32>(x) - 1u >= 0x7f7fffffu;
}
fn m_ln_edge(x: f32) -> f32 {
    if (nan_bits(x) || bitcast<u32>(x) == 0x7f800000u) { return x; }
    if ((bitcast<u32>(x) << 1u) == 0u) { return -m_inf(); }
    return m_nan();
}
fn m_ln(x: f32) -> f32 {
    if (m_ln_special(x)) { return m_ln_edge(x); }
    let p = m_ln_parts(x);
    return p.x * 0.693145752 + (p.x * 1.42860677e-6 + p.y);
}
fn m_log2(x: f32) -> f32 {
    if (m_ln_special(x)) { return m_ln_edge(x); }
    let p = m_ln_parts(x);
    return p.x + p.y * 1.44269504;
}
fn m_log10(x: f32) -> f32 {
    if (m_ln_special(x)) { return m_ln_edge(x); }
    let p = m_ln_parts(x);
    return p.x * 0.301025391 + (p.x * 4.60503906e-6 + p.y * 0.434294482);
}
fn m_log1p(x: f32) -> f32 {
    if (x == 0.0) { return x; }
    // Giving back what rounding takes from 1 + x does not help: compilers cancel (1 + x) - 1.
    if (x > -0.29 && x < 0.41) { return m_ln_near(x); }
    return m_ln(1.0 + x);
}

// The high word of a product of two words.
fn m_mul_high(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let mid = ah * bl + ((al * bl) >> 16u);
    let carry = al * bh + (mid & 0xffffu);
    return ah * bh + (mid >> 16u) + (carry >> 16u);
}
// A finite |x| >= 2 in quarter turns (Payne and Hanek): the nearest whole number of them, modulo
// four, and the angle left, of at most pi / 4. x is a whole number times a power of two, so only
// the bits of 2 / pi below that power's inverse count.
struct Turns {
    whole: u32,
    rest: f32,
}
fn m_turns(x: f32) -> Turns {
    // 2 / pi in binary behind the point, lowest word first.
    var table = array<u32, 6>(
        0x3c439041u, 0xdb629599u, 0xf534ddc0u, 0xfc2757d1u, 0x4e441529u, 0xa2f9836eu);
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    let exponent = (bits >> 23u) - 128u;
    let m = (bits << 8u) | 0x80000000u;
    var product = array<u32, 7>();
    var carry = 0u;
    for (var k = 0u; k < 6u; k++) {
        let low = table[k] * m + carry;
        carry = m_mul_high(table[k], m) + select(0u, 1u, low < carry);
        product[k] = low;
    }
    product[6] = carry;
    let top = 6u - (exponent >> 5u);
    let shift = exponent & 31u;
    // The words behind the point of a quarter of it: two bits of quarter turns, and the fraction.
    let back = 31u - shift;
    let high = (product[top] << shift) | ((product[top - 1u] >> back) >> 1u);
    let mid = (product[top - 1u] << shift) | ((product[top - 2u] >> back) >> 1u);
    let fraction = (high << 2u) | (mid >> 30u);
    let below = mid << 2u;
    var turns = Turns(high >> 30u, 0.0);
    // From half a quarter turn on, the next one is nearer.
    let up = (fraction >> 31u) == 1u;
    turns.whole += select(0u, 1u, up);
    let low = select(below, 0u - below, up);
    let left = select(fraction, ~fraction + select(0u, 1u, below == 0u), up);
    let zeros = min(countLeadingZeros(left), 31u);
    let word = (left << zeros) | ((low >> (31u - zeros)) >> 1u);
    // pi / 2 times 2^-32 for the word, and its zeros.
    let angle = f32(word) * 3.6572952e-10 * bitcast<f32>((127u - zeros) << 23u);
    turns.rest = select(angle, -angle, up);
    if ((bitcast<u32>(x) >> 31u) == 1u) {
        turns.whole = 0u - turns.whole;
        turns.rest = -turns.rest;
    }
    return turns;
}
// sin (quadrant 0) or cos (quadrant 1). The reduction by three terms is exact to |x| = 12,000.
fn m_sin_from(x: f32, quadrant: u32) -> f32 {
    if (nan_bits(x) || m_is_inf(x)) { return m_nan(); }
    // Keeps the sign of zero; the cube is below half a unit in the last place.
    if (abs(x) < 2.4e-4 && quadrant == 0u) { return x; }
    let n = round(x * 0.636619772);
    var r = ((x - n * 1.5703125) - n * 4.83751297e-4) - n * 7.54978995e-8;
    var q = bitcast<u32>(i32(n));
    if (abs(x) > 12000.0) {
        let turns = m_turns(x);
        q = turns.whole;
        r = turns.rest;
    }
    q = (q + quadrant) & 3u;
    let z = r * r;
    let s = r + r * z * (-1.6666667e-1 + z * (8.333334e-3 + z * (-1.984127e-4
        + z * 2.7557319e-6)));
    let c = 1.0 - 0.5 * z + z * z * (4.1666668e-2 + z * (-1.3888889e-3 + z * (2.4801587e-5
        - z * 2.7557319e-7)));
    let v = select(s, c, (q & 1u) == 1u);
    return select(v, -v, q >= 2u);
}
fn m_sin(x: f32) -> f32 {
    return m_sin_from(x, 0u);
}
fn m_cos(x: f32) -> f32 {
    return m_sin_from(x, 1u);
}
fn m_tan(x: f32) -> f32 {
    return m_sin(x) / m_cos(x);
}
fn m_atan(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    let a = abs(x);
    var t = a;
    var base = 0.0;
    if (a > 2.4142137) {
        base = 1.57079633;
        t = -1.0 / a;
    } else if (a > 0.41421357) {
        base = 0.785398163;
        t = (a - 1.0) / (a + 1.0);
    }
    let z = t * t;
    let s = t + t * z * (-3.3333334e-1 + z * (0.2 + z * (-1.4285715e-1 + z * (1.1111111e-1
        + z * (-9.0909091e-2 + z * (7.6923077e-2 + z * (-6.6666667e-2 + z * (5.8823529e-2
        - z * 5.2631579e-2))))))));
    return m_copysign(base + s, x);
}
fn m_atan2(y: f32, x: f32) -> f32 {
    if (nan_bits(x) || nan_bits(y)) { return m_nan(); }
    let back = (bitcast<u32>(x) >> 31u) == 1u;
    var r = 0.0;
    if (m_is_inf(x) && m_is_inf(y)) {
        r = 0.785398163;
    } else if (m_is_true(y) || m_is_true(x)) {
        r = m_atan(quotient(m_abs(y), m_abs(x)));
        if (m_is_inf(y) || !m_is_true(x)) { r = 1.57079633; }
    }
    if (back) { r = 3.14159265 - r; }
    return m_copysign(r, y);
}
fn m_asin(x: f32) -> f32 {
    if (abs(x) > 1.0) { return m_nan(); }
    return m_atan2(x, m_sqrt((1.0 - x) * (1.0 + x)));
}
fn m_acos(x: f32) -> f32 {
    if (abs(x) > 1.0) { return m_nan(); }
    return 2.0 * m_atan2(m_sqrt(1.0 - x), m_sqrt(1.0 + x));
}
fn m_sinh(x: f32) -> f32 {
    if (abs(x) < 1.0) {
        let z = x * x;
        return x + x * z * (1.6666667e-1 + z * (8.333334e-3 + z * (1.984127e-4
            + z * 2.7557319e-6)));
    }
    let e = m_exp(0.5 * abs(x));
    return m_copysign((0.5 * e) * e - 0.5 / (e * e), x);
}
fn m_cosh(x: f32) -> f32 {
    let e = m_exp(0.5 * abs(x));
    return (0.5 * e) * e + 0.5 / (e * e);
}
fn m_tanh(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (abs(x) > 10.0) { return m_copysign(1.0, x); }
    let t = m_expm1(2.0 * abs(x));
    return m_copysign(quotient(t, t + 2.0), x);
}
fn m_asinh(x: f32) -> f32 {
    let a = abs(x);
    if (nan_bits(x) || m_is_inf(x)) { return x; }
    if (a > 1.0e8) { return m_copysign(m_ln(a) + 0.693147181, x); }
    return m_copysign(m_log1p(a + a * a / (1.0 + m_sqrt(1.0 + a * a))), x);
}
fn m_acosh(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (x < 1.0) { return m_nan(); }
    if (x > 1.0e8) { return m_ln(x) + 0.693147181; }
    let t = x - 1.0;
    return m_log1p(t + m_sqrt(t * (t + 2.0)));
}
fn m_atanh(x: f32) -> f32 {
    let a = abs(x);
    if (nan_bits(x)) { return x; }
    if (a > 1.0) { return m_nan(); }
    if (a == 1.0) { return m_copysign(m_inf(), x); }
    return m_copysign(0.5 * m_log1p(2.0 * a / (1.0 - a)), x);
}
fn m_sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + m_exp(-x));
}

// erfc for x >= 0.8: t exp(-x^2 + P(t)), t = 1 / (1 + x / 2); P fitted to 1e-8 on [0.8, 11].
fn m_erfc_tail(x: f32) -> f32 {
    if (x > 10.5) { return 0.0; }
    let t = 1.0 / (1.0 + 0.5 * x);
    let q = -1.2654903 + t * (0.99946773 + t * (0.38025948 + t * (0.056749001 + t * (-0.0184582
        + t * (-0.1876303 + t * (-0.28637908 + t * (0.52297062 - t * 0.20228247)))))));
    // The square of the leading 12 bits is exact.
    let z = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
    return t * m_exp(-z * z) * m_exp((z - x) * (z + x) + q);
}
fn m_erf_series(x: f32) -> f32 {
    let z = x * x;
    return x * (1.12837917 + z * (-3.7612639e-1 + z * (1.1283792e-1 + z * (-2.6866171e-2
        + z * (5.2239776e-3 + z * (-8.5483270e-4 + z * (1.2055333e-4 + z * (-1.4925650e-5
        + z * (1.6462115e-6 - z * 1.6365844e-7)))))))));
}
// 1.3 units in the last place, without a branch: neighbours lie on both sides of where the formula changes. Near zero
// |x| (1 + P(x^2)), from 0.93 on 1 - exp(-Q(|x|)), after Juffa, whose exponential has fewer terms than m_exp for being
// at most 0.2; beyond 4 it is one.
fn m_erf(x: f32) -> f32 {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    let t = bitcast<f32>(min(bits, 0x40800000u));
    let z = t * t;
    let near = t + t * (1.28379166e-1 + z * (-3.76125336e-1 + z * (1.12819925e-1
        + z * (-2.67681349e-2 + z * (4.99119423e-3 - z * 5.96761703e-4)))));
    let q = (2.42546219e-2 - t * 3.88396438e-3) + z * (3.83197126e-4 - t * 1.72853470e-5);
    let r = t * (-1.28717512e-1 + t * (-6.34846687e-1 + t * (-1.06777877e-1 + t * q))) - t;
    let n = round(r * 1.44269504);
    let s = r - n * 0.69314718;
    let p = 1.0 + s * (1.0 + s * (0.5 + s * (1.6666394e-1 + s * (4.166618e-2 + s * (8.376827e-3
        + s * 1.3951006e-3)))));
    let far = 1.0 - p * bitcast<f32>((i32(n) + 127) << 23u);
    let y = m_copysign(select(far, near, bits < 0x3f6d8000u), x);
    return select(y, x, bits > 0x7f800000u);
}
fn m_erfc(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (abs(x) < 0.9) { return 1.0 - m_erf_series(x); }
    let t = m_erfc_tail(abs(x));
    return select(t, 2.0 - t, x < 0.0);
}
// Winitzki's closed form, then two Newton steps on erf, or on erfc near one.
fn m_erfinv(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    let a = abs(x);
    if (a > 1.0) { return m_nan(); }
    if (a == 1.0) { return m_copysign(m_inf(), x); }
    let l = m_log1p(-a) + m_log1p(a);
    let t = 4.3307468 + 0.5 * l;
    var y = m_sqrt(max(m_sqrt(max(t * t - l / 0.147, 0.0)) - t, 0.0));
    if (a < 0.02) { y = a * (0.886226925 + 0.232013666 * a * a); }
    for (var k = 0; k < 2; k++) {
        var miss = m_erf(y) - a;
        if (a > 0.7) { miss = (1.0 - a) - m_erfc(y); }
        y -= miss * 0.886226925 * m_exp(y * y);
    }
    return m_copysign(y, x);
}

// Stirling's series from 8 on, after at most eight steps of the recurrence.
fn m_lgamma_positive(x: f32) -> f32 {
    var z = x;
    var product = 1.0;
    for (var k = 0; k < 8 && z < 8.0; k++) {
        product *= z;
        z += 1.0;
    }
    let w = 1.0 / z;
    let tail = w * (8.333334e-2 - w * w * (2.7777778e-3 - w * w * 7.9365079e-4));
    return (z - 0.5) * m_ln(z) - z + 0.918938533 + tail - m_ln(product);
}
// sin(pi x) up to the sign.
fn m_sin_pi(x: f32) -> f32 {
    return m_sin(3.14159265 * (x - round(x)));
}
fn m_lgamma(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (m_is_inf(x)) { return m_inf(); }
    // Also denormals, which may compare as zero.
    if (abs(x) < 1.0e-7) { return -m_ln(m_abs(x)); }
    if (x <= 0.0 && x == floor(x)) { return m_inf(); }
    if (x >= 0.5) { return m_lgamma_positive(x); }
    return 1.14472989 - m_ln(abs(m_sin_pi(x))) - m_lgamma_positive(1.0 - x);
}
fn m_digamma_positive(x: f32) -> f32 {
    var z = x;
    var sum = 0.0;
    for (var k = 0; k < 8 && z < 8.0; k++) {
        sum -= 1.0 / z;
        z += 1.0;
    }
    let w = 1.0 / (z * z);
    let tail = w * (8.333334e-2 - w * (8.333334e-3 - w * (3.968254e-3 - w * 4.1666668e-3)));
    return sum + m_ln(z) - 0.5 / z - tail;
}
fn m_digamma(x: f32) -> f32 {
    if (nan_bits(x)) { return x; }
    if (m_is_inf(x)) { return select(x, m_nan(), x < 0.0); }
    if (x == 0.0) { return -m_copysign(m_inf(), x); }
    if (x > 0.0) { return m_digamma_positive(x); }
    if (x == floor(x)) { return m_nan(); }
    let r = x - round(x);
    return m_digamma_positive(1.0 - x) - 3.14159265 * m_cos(3.14159265 * r)
        / m_sin(3.14159265 * r);
}
// The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x) by Euler and Maclaurin.
fn m_polygamma(n: u32, x: f32) -> f32 {
    let s = f32(n) + 1.0;
    var sum = 0.0;
    var factorial = 1.0;
    for (var k = 2u; k <= min(n, 34u); k++) { factorial *= f32(k); }
    let sign = select(-1.0, 1.0, (n & 1u) == 1u);
    if (x <= 0.0) {
        if (m_is_inf(x) && n == 1u) { return m_nan(); }
        if (x == floor(x)) { return sign * m_inf(); }
        if (n == 1u) {
            // Reflection of the trigamma function.
            let q = 3.14159265 / m_sin_pi(x);
            return q * q - m_polygamma_positive(1u, s, factorial, 1.0 - x);
        }
        // The sum from x on, told by the distance from the nearest pole; more than 400 below that
        // one, terms add next to nothing.
        var z = x - round(x);
        let below = u32(min(-round(x), 400.0));
        for (var k = 1u; k <= below; k++) { sum += m_pow(z - f32(k), -s); }
        if (z < 0.0) {
            sum += m_pow(z, -s);
            z += 1.0;
        }
        return sign * factorial * sum + m_polygamma_positive(n, s, factorial, z);
    }
    return m_polygamma_positive(n, s, factorial, x);
}
fn m_polygamma_positive(n: u32, s: f32, factorial: f32, x: f32) -> f32 {
    let sign = select(-1.0, 1.0, (n & 1u) == 1u);
    if (m_is_inf(x)) { return sign * 0.0; }
    var z = x;
    var sum = 0.0;
    for (var k = 0; k < 9; k++) {
        sum += m_pow(z, -s);
        z += 1.0;
    }
    let zs = m_pow(z, -s);
    let w = 1.0 / z;
    sum += zs * z / (s - 1.0) + 0.5 * zs + zs * w * s * (8.333334e-2
        - w * w * (s + 1.0) * (s + 2.0) * (1.3888889e-3
        - w * w * (s + 3.0) * (s + 4.0) * 3.3068783e-5));
    return sign * factorial * sum;
}

// C's pow: integer powers up to 64 by squaring, the rest through log2 and exp2.
fn m_pow(x: f32, e: f32) -> f32 {
    if (!m_is_true(e) || bitcast<u32>(x) == 0x3f800000u) { return 1.0; }
    if (nan_bits(x) || nan_bits(e)) { return m_nan(); }
    let whole = e == trunc(e) || abs(e) >= 16777216.0;
    let odd = whole && abs(e) < 16777216.0 && (i32(e) & 1) != 0;
    let a = abs(x);
    if (whole && abs(e) <= 64.0 && !m_is_inf(x)) {
        var n = u32(abs(e));
        var base = x;
        var r = 1.0;
        for (var k = 0; k < 7 && n > 0u; k++) {
            if ((n & 1u) == 1u) { r *= base; }
            base *= base;
            n >>= 1u;
        }
        if (e > 0.0) { return r; }
        if (r != 0.0 && !m_is_inf(r)) { return 1.0 / r; }
    }
    var r = 0.0;
    if (m_is_inf(e)) {
        if (a == 1.0) { return 1.0; }
        return select(0.0, m_inf(), (a > 1.0) == (e > 0.0));
    } else if (!m_is_true(a)) {
        r = select(m_inf(), 0.0, e > 0.0);
    } else if (m_is_inf(a)) {
        r = select(0.0, m_inf(), e > 0.0);
    } else {
        // e * log2(a) in two parts, so that the large one loses nothing in exp2.
        let p = m_ln_parts(a);
        // Past 1e10 every base but one overflows or vanishes.
        let f = clamp(e, -1.0e10, 1.0e10);
        let eh = bitcast<f32>(bitcast<u32>(f) & 0xfffff000u);
        let big = eh * p.x;
        let whole_part = round(big);
        let rest = (big - whole_part) + (f - eh) * p.x + f * (p.y * 1.44269504);
        if (whole_part + rest >= 128.5) {
            r = m_inf();
        } else if (whole_part + rest > -151.0) {
            let n = round(rest);
            r = m_scale2(m_exp2(rest - n), clamp(i32(whole_part + n), -250, 250));
        }
    }
    if ((bitcast<u32>(x) >> 31u) == 1u) {
        if (odd) { return -r; }
        if (!whole && a != 0.0 && !m_is_inf(a)) { return m_nan(); }
    }
    return r;
}

// C's fmod, exact: the mantissas' remainder, eight bits of the quotient at a time. By bits, so that
// denormals count on every adapter.
fn m_fmod(a: f32, b: f32) -> f32 {
    if (nan_bits(a) || nan_bits(b) || m_is_inf(a)) { return m_nan(); }
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    if (y == 0u) { return m_nan(); }
    if (x < y) { return a; }
    // x = mx 2^ex and y = my 2^ey, both in units of the smallest denormal.
    let ex = max(x >> 23u, 1u) - 1u;
    let ey = max(y >> 23u, 1u) - 1u;
    let my = y - (ey << 23u);
    var r = (x - (ex << 23u)) % my;
    for (var n = ex - ey; n > 0u; ) {
        let step = min(n, 8u);
        r = (r << step) % my;
        n -= step;
    }
    if (r == 0u) { return m_copysign(0.0, a); }
    // The leading bit moves up to that of a normal number, or as far as the exponent goes.
    let shift = min(23u - firstLeadingBit(r), ey);
    return m_copysign(bitcast<f32>((r << shift) + ((ey - shift) << 23u)), a);
}
fn m_is_true(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) != 0u;
}
// Whether the signs differ.
fn m_differ(a: f32, b: f32) -> bool {
    return ((bitcast<u32>(a) ^ bitcast<u32>(b)) >> 31u) == 1u;
}
// x times 2^64, denormals by their bits.
fn m_raised(x: f32) -> f32 {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    if (bits >= 0x00800000u) { return x * 18446744073709551616.0; }
    return m_copysign(f32(bits) * 2.5849394142282115e-26, x);
}
fn m_remainder(a: f32, b: f32) -> f32 {
    let r = m_fmod(a, b);
    return select(r, r + b, m_is_true(r) && !nan_bits(r) && m_differ(r, b));
}
// The nearest number of a half type.
fn m_nearest_f16(x: f32) -> f32 {
    return f16_value(f16_bits(x));
}
fn m_nearest_bf16(x: f32) -> f32 {
    return bitcast<f32>(bf16_bits(x) << 16u);
}
fn m_floor_div(a: f32, b: f32) -> f32 {
    if (!m_is_true(b)) { return quotient(a, b); }
    let r = m_fmod(a, b);
    // A denormal divisor is made normal; what overflows then has an infinite quotient anyway.
    let tiny = (bitcast<u32>(b) & 0x7fffffffu) < 0x00800000u;
    var q = quotient(a - r, b);
    if (tiny) { q = quotient(m_raised(a) - m_raised(r), m_raised(b)); }
    if (m_is_true(r) && m_differ(r, b)) { q -= 1.0; }
    if (!m_is_true(q)) { return m_copysign(0.0, bitcast<f32>(bitcast<u32>(a) ^ bitcast<u32>(b))); }
    let f = floor(q);
    return select(f, f + 1.0, q - f > 0.5);
}
// The leading 12 bits, whose products are exact.
fn m_leading(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}
// The next number toward y of a type whose numbers are every `step`-th of float32, or of float16.
fn m_next_after(x: f32, y: f32, step: f32) -> f32 {
    if (nan_bits(x) || nan_bits(y)) { return m_nan(); }
    // By bits, so that denormals differ from zero.
    if (same(x, y)) { return y; }
    let half = step == 8192.0;
    let zero = select(bitcast<f32>(u32(step)), 5.9604644775390625e-8, half);
    if (!m_is_true(x)) { return m_copysign(zero, y); }
    let away = below(x, y) == ((bitcast<u32>(x) >> 31u) == 0u);
    if (half) {
        let h = f16_bits(x);
        return f16_value(select(h - 1u, h + 1u, away));
    }
    let bits = bitcast<u32>(x);
    return bitcast<f32>(select(bits - u32(step), bits + u32(step), away));
}
// x as a fraction from 1/2 to 1 before a power of two, by bits, so that denormals count.
fn m_mantissa(x: f32) -> f32 {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    if (bits == 0u || bits >= 0x7f800000u) { return x; }
    let normal = select(bits, bits << (23u - min(firstLeadingBit(bits), 23u)), bits < 0x800000u);
    return m_copysign(bitcast<f32>(0x3f000000u | (normal & 0x7fffffu)), x);
}
fn m_exponent(x: f32) -> f32 {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    if (bits == 0u || bits >= 0x7f800000u) { return 0.0; }
    if (bits < 0x800000u) { return f32(i32(firstLeadingBit(bits)) - 148); }
    return f32(i32(bits >> 23u) - 126);
}

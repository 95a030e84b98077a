// Special functions for pointwise bodies, in both float types, by what math_f32.wgsl and math_f64.wgsl
// have. Polynomials were fitted for float64 and serve float32.
fn m_i0e(x: Acc) -> Acc {
    let z = m_abs(x);
    if (z <= Acc(8)) { return p_i0_near(z - Acc(4)); }
    if (is_nan(x)) { return x; }
    return p_i0_far(Acc(1) / z - Acc(0.0625)) / m_sqrt(z);
}
fn m_i1e(x: Acc) -> Acc {
    let z = m_abs(x);
    if (z <= Acc(8)) { return x * p_i1_near(z - Acc(4)); }
    if (is_nan(x)) { return x; }
    return m_copysign(p_i1_far(Acc(1) / z - Acc(0.0625)) / m_sqrt(z), x);
}
// y e^|x|, where the exponential alone may overflow.
fn m_grow(y: Acc, x: Acc) -> Acc {
    let half = m_exp(Acc(0.5) * m_abs(x));
    return y * half * half;
}
fn m_i0(x: Acc) -> Acc {
    if (m_is_inf(x)) { return m_nan(); }
    return m_grow(m_i0e(x), x);
}
fn m_i1(x: Acc) -> Acc {
    if (m_is_inf(x)) { return m_nan(); }
    return m_grow(m_i1e(x), x);
}

// The function of the second kind beyond 2, from what it is times sqrt(x) e^x.
fn m_k_far(x: Acc, y: Acc, scaled: bool) -> Acc {
    let far = y / m_sqrt(x);
    if (scaled) { return far; }
    let half = m_exp(Acc(-0.5) * x);
    return far * half * half;
}
fn m_bessel_k0(x: Acc, scaled: bool) -> Acc {
    if (is_nan(x) || x < Acc(0)) { return m_nan(); }
    if (!is_true(x)) { return m_inf(); }
    if (x > Acc(2)) { return m_k_far(x, p_k0_far(Acc(4) / x - Acc(1)), scaled); }
    let q = Acc(0.25) * x * x;
    let y = p_k0_series(q) - m_ln(Acc(0.5) * x) * p_i0_series(q);
    return select(y, y * m_exp(x), scaled);
}
fn m_bessel_k1(x: Acc, scaled: bool) -> Acc {
    if (is_nan(x) || x < Acc(0)) { return m_nan(); }
    if (!is_true(x)) { return m_inf(); }
    if (x > Acc(2)) { return m_k_far(x, p_k1_far(Acc(4) / x - Acc(1)), scaled); }
    let half = Acc(0.5) * x;
    let q = half * half;
    let y = Acc(1) / x + half * (m_ln(half) * p_i1_series(q) - Acc(0.5) * p_k1_series(q));
    return select(y, y * m_exp(x), scaled);
}
fn m_k0(x: Acc) -> Acc {
    return m_bessel_k0(x, false);
}
fn m_k0e(x: Acc) -> Acc {
    return m_bessel_k0(x, true);
}
fn m_k1(x: Acc) -> Acc {
    return m_bessel_k1(x, false);
}
fn m_k1e(x: Acc) -> Acc {
    return m_bessel_k1(x, true);
}

fn m_airy_ai(x: Acc) -> Acc {
    if (is_nan(x)) { return x; }
    if (x > Acc(2)) {
        let root = m_sqrt(x);
        let zeta = Acc(0.6666666666666666) * x * root;
        let half = m_exp(Acc(-0.5) * zeta);
        if (half == Acc(0)) { return Acc(0); }
        return p_ai_far(Acc(3.7712361663282534) / zeta - Acc(1)) / m_sqrt(root) * half * half;
    }
    if (x >= Acc(-8)) {
        let i = min(u32((x + Acc(8)) * Acc(0.5)), 4u);
        let t = x + Acc(7) - Acc(2u * i);
        switch i {
            case 0u: { return p_ai_near0(t); }
            case 1u: { return p_ai_near1(t); }
            case 2u: { return p_ai_near2(t); }
            case 3u: { return p_ai_near3(t); }
            default: { return p_ai_near4(t); }
        }
    }
    if (m_is_inf(x)) { return m_nan(); }
    let zeta = Acc(0.6666666666666666) * -x * m_sqrt(-x);
    var even = Acc(0);
    var odd = Acc(0);
    var u = Acc(1);
    for (var k = 0u; k < 24u; k++) {
        let term = select(-u, u, k % 4u < 2u);
        if (k % 2u == 0u) { even += term; } else { odd += term; }
        let m = Acc(k + 1u);
        let up = (Acc(6) * m - Acc(5)) * (Acc(6) * m - Acc(3)) * (Acc(6) * m - Acc(1));
        u *= up / (Acc(216) * m * (Acc(2) * m - Acc(1)) * zeta);
    }
    let angle = zeta - Acc(0.7853981633974483);
    return (m_cos(angle) * even + m_sin(angle) * odd) / (Acc(1.772453850905516) * m_sqrt(m_sqrt(-x)));
}

// Two zeros of x^2 taken out of a polynomial, each in two parts, where x is at most 8.
fn m_at_zeros(x: Acc, a: Acc, a_low: Acc, b: Acc, b_low: Acc) -> Acc {
    let z = x * x;
    let high = m_leading(x);
    let rest = x - high;
    let low = ((high * high - z) + Acc(2) * high * rest) + rest * rest;
    return ((z - a) + (low - a_low)) * ((z - b) + (low - b_low));
}
fn m_j0_near(x: Acc) -> Acc {
    let zeros = m_at_zeros(x, Acc(5.783185962946784), Acc(4.123247343506204e-16),
        Acc(30.471262343662087), Acc(-2.366534485750659e-16));
    return zeros * p_j0_near(x * x * Acc(0.03125) - Acc(1));
}
fn m_j1_near(x: Acc) -> Acc {
    let zeros = m_at_zeros(x, Acc(14.681970642123893), Acc(-9.858177825793294e-17),
        Acc(49.2184563216946), Acc(5.086354069436341e-16));
    return x * zeros * p_j1_near(x * x * Acc(0.03125) - Acc(1));
}
// Beyond 8: what the cosine and minus the sine are multiplied by, over sqrt(pi x).
fn m_wave(x: Acc, p: Acc, q: Acc, turned: bool) -> Acc {
    let size = Acc(1) / m_sqrt(Acc(3.141592653589793) * x);
    let s = m_sin(x);
    let c = m_cos(x);
    let least = q / x;
    return size * select(p * (s + c) - least * (s - c), p * (s - c) + least * (s + c), turned);
}
fn m_far(x: Acc) -> Acc {
    let w = Acc(1) / x;
    return Acc(128) * w * w - Acc(1);
}
fn m_bessel_j0(x: Acc) -> Acc {
    let z = m_abs(x);
    if (is_nan(x)) { return x; }
    if (m_is_inf(z)) { return Acc(0); }
    if (z > Acc(8)) { return m_wave(z, p_p0(m_far(z)), p_q0(m_far(z)), false); }
    let q = Acc(0.25) * z * z;
    return select(m_j0_near(z), q * (q * Acc(0.25) - Acc(1)) + Acc(1), z < Acc(0.003));
}
fn m_bessel_j1(x: Acc) -> Acc {
    let z = m_abs(x);
    if (is_nan(x)) { return x; }
    if (m_is_inf(z)) { return Acc(0); }
    if (z <= Acc(8)) { return m_j1_near(x); }
    let y = m_wave(z, p_p1(m_far(z)), p_q1(m_far(z)), true);
    return select(y, -y, x < Acc(0));
}
fn m_bessel_y0(x: Acc) -> Acc {
    if (is_nan(x) || x < Acc(0)) { return m_nan(); }
    if (!is_true(x)) { return -m_inf(); }
    if (m_is_inf(x)) { return Acc(0); }
    if (x > Acc(8)) { return m_wave(x, p_p0(m_far(x)), p_q0(m_far(x)), true); }
    let rest = p_y0_near(x * x * Acc(0.03125) - Acc(1));
    return Acc(0.6366197723675814) * m_ln(x) * m_j0_near(x) + rest;
}
fn m_bessel_y1(x: Acc) -> Acc {
    if (is_nan(x) || x < Acc(0)) { return m_nan(); }
    if (!is_true(x)) { return -m_inf(); }
    if (m_is_inf(x)) { return Acc(0); }
    if (x > Acc(8)) { return -m_wave(x, p_p1(m_far(x)), p_q1(m_far(x)), false); }
    let rest = x * p_y1_near(x * x * Acc(0.03125) - Acc(1));
    return Acc(0.6366197723675814) * (m_ln(x) * m_j1_near(x) - Acc(1) / x) + rest;
}

// e^(x^2), the leading part of the square exact.
fn m_exp_square(x: Acc) -> Acc {
    let high = m_round(x * Acc(16)) * Acc(0.0625);
    return m_exp(high * high) * m_exp((x - high) * (x + high));
}
fn m_erfcx_positive(x: Acc) -> Acc {
    if (x < Acc(2)) { return m_exp_square(x) * m_erfc(x); }
    if (m_is_inf(x)) { return Acc(0); }
    var f = x;
    for (var k = 70; k > 0; k--) { f = x + Acc(0.5) * Acc(k) / f; }
    return Acc(0.5641895835477563) / f;
}
fn m_erfcx(x: Acc) -> Acc {
    if (is_nan(x)) { return x; }
    if (x >= Acc(0)) { return m_erfcx_positive(x); }
    if (x < Acc(-30)) { return m_inf(); }
    return Acc(2) * m_exp_square(x) - m_erfcx_positive(-x);
}
// The logarithm of the area under the standard normal density left of x.
fn m_log_ndtr(x: Acc) -> Acc {
    let u = x * Acc(0.7071067811865476);
    if (is_nan(x)) { return x; }
    if (x < Acc(-1)) { return m_ln(Acc(0.5) * m_erfcx(-u)) - Acc(0.5) * x * x; }
    return m_log1p(Acc(-0.5) * m_erfc(u));
}
// The x with erfc(x) = q, for q above 0 and at most 1: Winitzki's formula, and Newton's steps.
fn m_erfc_inverse(q: Acc) -> Acc {
    let l = m_ln(q * (Acc(2) - q));
    let a = Acc(4.330746750799873) + Acc(0.5) * l;
    var y = m_sqrt(m_max(m_sqrt(a * a - l / Acc(0.147)) - a, Acc(0)));
    if (q > Acc(0.5)) {
        for (var k = 0; k < 3; k++) {
            let u = (m_erf(y) - (Acc(1) - q)) * Acc(0.886226925452758) * m_exp(y * y);
            y -= u / (Acc(1) + y * u);
        }
        return y;
    }
    for (var k = 0; k < 4; k++) {
        let e = m_erfc(y);
        if (e == Acc(0)) { break; }
        y += m_ln(e / q) * e * Acc(0.886226925452758) * m_exp_square(y);
    }
    return y;
}
fn m_ndtri(p: Acc) -> Acc {
    if (is_nan(p) || p < Acc(0) || p > Acc(1)) { return m_nan(); }
    if (p == Acc(0)) { return -m_inf(); }
    if (p == Acc(1)) { return m_inf(); }
    let upper = p > Acc(0.5);
    let x = Acc(1.4142135623730951) * m_erfc_inverse(Acc(2) * select(p, Acc(1) - p, upper));
    return select(-x, x, upper);
}

// Hurwitz' zeta for q above zero: Euler and Maclaurin, ten terms, then B(2j) / (2j)! times the odd
// derivatives.
fn m_zeta_positive(s: Acc, q: Acc) -> Acc {
    if (m_is_inf(q)) { return Acc(0); }
    var c = array<Acc, 12>(
        Acc(0.08333333333333333), Acc(-0.001388888888888889), Acc(3.306878306878307e-05),
        Acc(-8.267195767195768e-07), Acc(2.08767569878681e-08), Acc(-5.284190138687493e-10),
        Acc(1.3382536530684679e-11), Acc(-3.389680296322583e-13), Acc(8.586062056277845e-15),
        Acc(-2.174868698558062e-16), Acc(5.509002828360229e-18), Acc(-1.3954464685812523e-19));
    var sum = Acc(0);
    for (var k = 0; k < 10; k++) { sum += m_pow(q + Acc(k), -s); }
    let w = q + Acc(10);
    let top = m_pow(w, -s);
    sum += top * w / (s - Acc(1)) + Acc(0.5) * top;
    var factor = s * top / w;
    for (var j = 0; j < 12; j++) {
        let term = factor * c[j];
        // What underflows or overflows adds nothing that is known.
        if (!less(m_abs(sum) * Acc(1e-17), m_abs(term))) { break; }
        sum += term;
        let next = s + Acc(2 * j + 1);
        factor *= next * (next + Acc(1)) / (w * w);
    }
    return sum;
}
fn m_zeta(s: Acc, q: Acc) -> Acc {
    if (equal(s, Acc(1))) { return m_inf(); }
    if (is_nan(s) || s < Acc(1) || is_nan(q)) { return m_nan(); }
    if (q > Acc(0)) { return m_zeta_positive(s, q); }
    if (q == m_floor(q)) { return m_inf(); }
    if (s != m_floor(s)) { return m_nan(); }
    // The sum over all integers has period one; take off what lies on the other side.
    let part = q - m_floor(q);
    let even = m_fmod(s, Acc(2)) == Acc(0);
    let other = m_zeta_positive(s, Acc(1) - part) - m_zeta_positive(s, Acc(1) - q);
    return m_zeta_positive(s, part) + select(-other, other, even);
}

// x^a e^-x / gamma(a + 1), without forming the large powers.
fn m_gamma_front(a: Acc, x: Acc) -> Acc {
    if (a < Acc(20)) { return m_exp(a * m_ln(x) - x - m_lgamma(a + Acc(1))); }
    let z = Acc(1) / (a * a);
    let rest = (Acc(0.08333333333333333) - z * (Acc(0.002777777777777778)
        - z * (Acc(0.0007936507936507937) - z * Acc(0.0005952380952380953)))) / a;
    let d = (x - a) / a;
    var l = m_log1p(d) - d;
    if (m_abs(d) < Acc(0.5)) { l = -m_half_square(d); }
    return m_exp(a * l - rest) / m_sqrt(Acc(6.283185307179586) * a);
}
// d - ln(1 + d), by its series where the difference would cancel.
fn m_half_square(d: Acc) -> Acc {
    if (m_abs(d) > Acc(0.3)) { return d - m_log1p(d); }
    var power = d * d;
    var sum = Acc(0);
    for (var k = 2; k < 36; k++) {
        sum += power / Acc(k);
        power *= -d;
    }
    return sum;
}
// P or Q for large a: an error function of the distance from the middle and the first term that
// corrects it (Temme 1979, SIAM J. Math. Anal. 10).
fn m_igamma_uniform(a: Acc, x: Acc, upper: bool) -> Acc {
    let d = (x - a) / a;
    let square = m_half_square(d);
    let eta = m_copysign(m_sqrt(Acc(2) * square), d);
    var first = Acc(1) / d - Acc(1) / eta;
    if (m_abs(d) < Acc(0.02)) {
        first = Acc(-0.3333333333333333) + eta * (Acc(0.08333333333333333) + eta * (Acc(-0.014814814814814815)
            + eta * (Acc(0.0011574074074074073) + eta * Acc(0.0003527336860670194))));
    }
    let rest = m_exp(-a * square) / m_sqrt(Acc(6.283185307179586) * a) * first;
    let z = eta * m_sqrt(Acc(0.5) * a);
    let y = select(Acc(0.5) * m_erfc(-z) - rest, Acc(0.5) * m_erfc(z) + rest, upper);
    return m_min(m_max(y, Acc(0)), Acc(1));
}
// P by its power series, for x below a + 1.
fn m_igamma_series(a: Acc, x: Acc, least: Acc) -> Acc {
    var term = Acc(1);
    var sum = Acc(1);
    for (var k = 1; k < 20000; k++) {
        term *= x / (a + Acc(k));
        sum += term;
        if (term <= sum * least) { break; }
    }
    return m_min(sum * m_gamma_front(a, x), Acc(1));
}
// Q by its continued fraction (DLMF 8.9.2), for x above a + 1.
fn m_igamma_fraction(a: Acc, x: Acc, least: Acc) -> Acc {
    let scale = a * m_gamma_front(a, x);
    // Nor would the recurrences bear such numbers.
    if (scale == Acc(0)) { return Acc(0); }
    var b = x + Acc(1) - a;
    var above = array<Acc, 2>(Acc(0), Acc(1));
    var below = array<Acc, 2>(Acc(1), b);
    for (var k = 1; k < 20000; k++) {
        let n = -Acc(k) * (Acc(k) - a);
        b += Acc(2);
        let up = b * above[1] + n * above[0];
        let down = b * below[1] + n * below[0];
        let old = above[1] / below[1];
        let now = up / down;
        // Both get smaller alike.
        let size = select(Acc(1), Acc(1e-15), m_abs(down) > Acc(1e15));
        above = array<Acc, 2>(above[1] * size, up * size);
        below = array<Acc, 2>(below[1] * size, down * size);
        if (m_abs(now - old) <= least * m_abs(now)) { break; }
    }
    return m_min(above[1] / below[1] * scale, Acc(1));
}
// ln gamma(1 + a) for a small a: the series of its derivatives, of which ln(1 + a) takes the slow part.
fn m_lgamma_beside_one(a: Acc) -> Acc {
    var y = Acc(2.05072127758e-5) - a * Acc(9.4394882752e-6);
    y = Acc(9.945751278181e-5) - a * (Acc(4.49262367381e-5) - a * y);
    y = Acc(0.00050966952474304) - a * (Acc(0.00022315475845358) - a * y);
    y = Acc(0.00289051033074152) - a * (Acc(0.00119275391170326) - a * y);
    y = Acc(0.02058080842778454) - a * (Acc(0.00738555102867398) - a * y);
    y = Acc(0.3224670334241132) - a * (Acc(0.0673523010531981) - a * y);
    return a * (Acc(0.42278433509846714) + a * y) - m_log1p(a);
}
// Q for a small a and x below a + 1, where 1 - P would keep few digits.
fn m_igammac_small(a: Acc, x: Acc, least: Acc) -> Acc {
    var power = Acc(1);
    var sum = Acc(0);
    for (var k = 1; k < 100; k++) {
        power *= -x / Acc(k);
        let term = power / (a + Acc(k));
        sum += term;
        if (m_abs(term) <= least * m_abs(sum)) { break; }
    }
    let l = a * m_ln(x) - m_lgamma_beside_one(a);
    return -m_expm1(l) - a * m_exp(l) * sum;
}
fn m_incomplete(a: Acc, x: Acc, upper: bool) -> Acc {
    let bad = a < Acc(0) || x < Acc(0) || is_nan(a) || is_nan(x);
    if (bad || (a == Acc(0) && x == Acc(0)) || (m_is_inf(a) && m_is_inf(x))) { return m_nan(); }
    if (x == Acc(0) || m_is_inf(a)) { return select(Acc(0), Acc(1), upper); }
    if (a == Acc(0) || m_is_inf(x)) { return select(Acc(1), Acc(0), upper); }
    // From where the next term of the expansion does not count.
    if (a > select(Acc(200), Acc(1000000), wide(ACC) == 1u)) { return m_igamma_uniform(a, x, upper); }
    let least = select(Acc(1e-8), Acc(1e-17), wide(ACC) == 1u);
    if (x < a + Acc(1)) {
        // As far as the series of ln gamma has the digits of the type.
        let small = a < select(Acc(0.5), Acc(0.05), wide(ACC) == 1u);
        if (upper && small) { return m_igammac_small(a, x, least); }
        let p = m_igamma_series(a, x, least);
        return select(p, Acc(1) - p, upper);
    }
    let q = m_igamma_fraction(a, x, least);
    return select(Acc(1) - q, q, upper);
}
fn m_igamma(a: Acc, x: Acc) -> Acc {
    return m_incomplete(a, x, false);
}
fn m_igammac(a: Acc, x: Acc) -> Acc {
    return m_incomplete(a, x, true);
}

// Orthogonal polynomials by their three-term recurrences: of degrees k and k - 1, over 2^(96 `scaled`).
const CHEBYSHEV: u32 = 0u;
const HERMITE_H: u32 = 1u;
const HERMITE_HE: u32 = 2u;
const LAGUERRE: u32 = 3u;
const LEGENDRE: u32 = 4u;
struct Degrees {
    at: Acc,
    before: Acc,
    scaled: u32,
}
fn m_next_degree(family: u32, x: Acc, s: Degrees, k: i32, n: i32) -> Degrees {
    if (k >= n) { return s; }
    let m = Acc(k);
    var next = (x + x) * s.at;
    switch family {
        case CHEBYSHEV: { next -= s.before; }
        case HERMITE_H: { next -= Acc(2) * m * s.before; }
        case HERMITE_HE: { next = x * s.at - m * s.before; }
        case LAGUERRE: { next = ((Acc(2) * m + Acc(1) - x) * s.at - m * s.before) / (m + Acc(1)); }
        default: { next = ((Acc(2) * m + Acc(1)) * x * s.at - m * s.before) / (m + Acc(1)); }
    }
    if (m_abs(next) < Acc(1e24)) { return Degrees(next, s.at, s.scaled); }
    let size = Acc(1.262177448353619e-29);
    return Degrees(next * size, s.at * size, s.scaled + 1u);
}
fn m_polynomial(family: u32, x: Acc, degree: Acc, first: Acc) -> Acc {
    if (is_nan(x) || is_nan(degree)) { return m_nan(); }
    // Beyond this every recurrence has overflowed or is noise.
    let n = i32(m_min(m_max(degree, Acc(-1)), Acc(1000000)));
    if (n < 0) { return Acc(0); }
    if (n == 0) { return Acc(1); }
    var s = Degrees(first, Acc(1), 0u);
    // Thirty-two steps at a time: software Vulkan ends an invocation after 65,535 iterations.
    for (var k = 1; k < n; k += 32) {
        s = m_next_degree(family, x, s, k, n);
        s = m_next_degree(family, x, s, k + 1, n);
        s = m_next_degree(family, x, s, k + 2, n);
        s = m_next_degree(family, x, s, k + 3, n);
        s = m_next_degree(family, x, s, k + 4, n);
        s = m_next_degree(family, x, s, k + 5, n);
        s = m_next_degree(family, x, s, k + 6, n);
        s = m_next_degree(family, x, s, k + 7, n);
        s = m_next_degree(family, x, s, k + 8, n);
        s = m_next_degree(family, x, s, k + 9, n);
        s = m_next_degree(family, x, s, k + 10, n);
        s = m_next_degree(family, x, s, k + 11, n);
        s = m_next_degree(family, x, s, k + 12, n);
        s = m_next_degree(family, x, s, k + 13, n);
        s = m_next_degree(family, x, s, k + 14, n);
        s = m_next_degree(family, x, s, k + 15, n);
        s = m_next_degree(family, x, s, k + 16, n);
        s = m_next_degree(family, x, s, k + 17, n);
        s = m_next_degree(family, x, s, k + 18, n);
        s = m_next_degree(family, x, s, k + 19, n);
        s = m_next_degree(family, x, s, k + 20, n);
        s = m_next_degree(family, x, s, k + 21, n);
        s = m_next_degree(family, x, s, k + 22, n);
        s = m_next_degree(family, x, s, k + 23, n);
        s = m_next_degree(family, x, s, k + 24, n);
        s = m_next_degree(family, x, s, k + 25, n);
        s = m_next_degree(family, x, s, k + 26, n);
        s = m_next_degree(family, x, s, k + 27, n);
        s = m_next_degree(family, x, s, k + 28, n);
        s = m_next_degree(family, x, s, k + 29, n);
        s = m_next_degree(family, x, s, k + 30, n);
        s = m_next_degree(family, x, s, k + 31, n);
    }
    var y = s.at;
    for (var k = 0u; k < min(s.scaled, 13u); k++) { y *= Acc(79228162514264337593543950336.0); }
    return y;
}
fn m_chebyshev_t(x: Acc, n: Acc) -> Acc {
    return m_polynomial(CHEBYSHEV, x, n, x);
}
fn m_chebyshev_u(x: Acc, n: Acc) -> Acc {
    return m_polynomial(CHEBYSHEV, x, n, x + x);
}
fn m_chebyshev_v(x: Acc, n: Acc) -> Acc {
    return m_polynomial(CHEBYSHEV, x, n, x + x - Acc(1));
}
fn m_chebyshev_w(x: Acc, n: Acc) -> Acc {
    return m_polynomial(CHEBYSHEV, x, n, x + x + Acc(1));
}
fn m_hermite_h(x: Acc, n: Acc) -> Acc {
    return m_polynomial(HERMITE_H, x, n, x + x);
}
fn m_hermite_he(x: Acc, n: Acc) -> Acc {
    return m_polynomial(HERMITE_HE, x, n, x);
}
fn m_laguerre(x: Acc, n: Acc) -> Acc {
    return m_polynomial(LAGUERRE, x, n, Acc(1) - x);
}
fn m_legendre(x: Acc, n: Acc) -> Acc {
    return m_polynomial(LEGENDRE, x, n, x);
}

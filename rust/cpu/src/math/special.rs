//! Gamma's relatives and inverse error functions in float64.

use std::f64::consts::{PI, SQRT_2};

/// The derivative of ln gamma: minus and plus infinity at +0 and -0, NaN at negative integers.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        let part = x - x.trunc();
        if part == 0.0 || part.is_nan() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * part).tan();
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut x, mut y) = (x, 0.0);
    while x < 10.0 {
        y -= 1.0 / x;
        x += 1.0;
    }
    // The asymptotic series: Bernoulli numbers B(2k) / 2k.
    const C: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let z = 1.0 / (x * x);
    let tail = C.iter().rev().fold(0.0, |t, c| (t + c) * z);
    y + x.ln() - 0.5 / x - tail
}

/// The derivative of digamma.
pub fn trigamma(x: f64) -> f64 {
    if x < 0.0 {
        let part = x - x.trunc();
        if part.is_nan() {
            return f64::NAN;
        }
        let s = (PI * part).sin();
        return PI * PI / (s * s) - zeta(2.0, 1.0 - x);
    }
    zeta(2.0, x)
}

/// The n-th derivative of digamma, n >= 0.
pub fn polygamma(n: i64, x: f64) -> f64 {
    match n {
        0 => digamma(x),
        1 => trigamma(x),
        _ => {
            let s = n as f64 + 1.0;
            let y = libm::tgamma(s) * zeta(s, x);
            if n % 2 == 0 {
                -y
            } else {
                y
            }
        }
    }
}

/// Hurwitz' zeta: the sum of (q + k)^-s over k >= 0.
pub fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s.is_nan() || s < 1.0 || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if s != s.floor() {
            return f64::NAN;
        }
        // The sum over all integers has period one; take off what lies on the other side.
        let part = q - q.floor();
        let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
        return zeta(s, part) + sign * (zeta(s, 1.0 - part) - zeta(s, 1.0 - q));
    }
    if q.is_infinite() {
        return 0.0;
    }
    // Euler and Maclaurin: ten terms, then B(2j) / (2j)! times the odd derivatives.
    const C: [f64; 12] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -5.284_190_138_687_493e-10,
        1.338_253_653_068_467_9e-11,
        -3.389_680_296_322_583e-13,
        8.586_062_056_277_845e-15,
        -2.174_868_698_558_062e-16,
        5.509_002_828_360_229e-18,
        -1.395_446_468_581_252_3e-19,
    ];
    let mut sum = 0.0;
    for k in 0..10 {
        sum += (q + k as f64).powf(-s);
    }
    let w = q + 10.0;
    let top = w.powf(-s);
    sum += top * w / (s - 1.0) + 0.5 * top;
    let mut factor = s * top / w;
    for (j, c) in C.iter().enumerate() {
        let term = factor * c;
        sum += term;
        if term.abs() <= sum.abs() * 1e-17 {
            break;
        }
        let next = s + 2.0 * j as f64 + 1.0;
        factor *= next * (next + 1.0) / (w * w);
    }
    sum
}

/// The x with erfc(x) = q, for 0 < q <= 1.
fn erfc_inverse(q: f64) -> f64 {
    // Winitzki's formula is right to 0.2 %; 1 - (1 - q)^2 = q (2 - q).
    let l = (q * (2.0 - q)).ln();
    let a = 2.0 / (PI * 0.147) + 0.5 * l;
    let mut y = ((a * a - l / 0.147).sqrt() - a).max(0.0).sqrt();
    let slope = |y: f64| std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
    if q > 0.5 {
        // Halley's steps on erf, which is the smaller of the two here.
        for _ in 0..3 {
            let u = (libm::erf(y) - (1.0 - q)) / slope(y);
            y -= u / (1.0 + y * u);
        }
    } else {
        // Newton's steps on the logarithm, which is nearly a parabola.
        for _ in 0..4 {
            let e = libm::erfc(y);
            if e == 0.0 {
                break;
            }
            y += (e / q).ln() * e / slope(y);
        }
    }
    y
}

/// The x left of which the standard normal density has the area p.
pub fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p > 0.5 {
        return -ndtri(1.0 - p);
    }
    -SQRT_2 * erfc_inverse(2.0 * p)
}

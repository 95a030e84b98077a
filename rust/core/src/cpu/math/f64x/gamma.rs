//! Gamma's relatives above zero.

use super::parts::poly;

/// Whether functions here leave x to the scalar ones.
#[inline(always)]
pub fn is_negative(x: f64) -> bool {
    x <= 0.0
}

/// The derivative of digamma to 4 ulp, for x above zero.
#[inline(always)]
pub fn trigamma_near(x: f64) -> f64 {
    // Bernoulli numbers B(2k): the asymptotic series, right to 2^-53 from 8 on.
    const B: [f64; 11] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43867.0 / 798.0,
        -174_611.0 / 330.0,
        854_513.0 / 138.0,
    ];
    let low = x < 8.0;
    let z = if low { x + 8.0 } else { x };
    let w = 1.0 / z;
    let q = w * w;
    let series = w + q * (0.5 + w * poly(q, &B));
    // Two of the terms 1 / (x + k)^2 at a time; the smallest k last, where x is tiny.
    let pair = |a: f64, b: f64| {
        let p = 1.0 / (a * b);
        a.mul_add(a, b * b) * p * p
    };
    let above = pair(x + 6.0, x + 7.0) + pair(x + 4.0, x + 5.0) + pair(x + 2.0, x + 3.0);
    let one = 1.0 / (x + 1.0);
    let zero = 1.0 / x;
    let below = zero.mul_add(zero, one.mul_add(one, above));
    if low {
        series + below
    } else {
        series
    }
}

//! Gamma's relatives: most of them above zero.

use super::super::f64x;
use super::{ln_d, poly_d};
use std::f64::consts::PI;

/// Whether functions of gamma leave x to those of float64.
#[inline(always)]
pub fn is_negative(x: f32) -> bool {
    x <= 0.0
}

/// The derivative of digamma to 0.51 ulp, for x above zero.
#[inline(always)]
pub fn trigamma_near(x: f32) -> f32 {
    f64x::trigamma_near(x as f64) as f32
}

/// digamma(x) for x above zero.
#[inline(always)]
fn digamma_d(x: f64) -> f64 {
    // The asymptotic series, right to 2^-53 from 8 on: B(2k) / 2k.
    const P: [f64; 9] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32_760.0,
        1.0 / 12.0,
        -3617.0 / 8160.0,
        43_867.0 / 14_364.0,
    ];
    // digamma(x) = digamma(x + 8) - 1 / x - ... - 1 / (x + 7) below 8, the terms in four pairs
    // (2 x + 7) / (p + c), of which two make one fraction.
    let low = x < 8.0;
    let p = x * (x + 7.0);
    let (a, b) = (p * (p + 6.0), (p + 10.0) * (p + 12.0));
    let sum = (2.0 * p + 6.0) * b + (2.0 * p + 22.0) * a;
    let terms = (2.0 * x + 7.0) * (sum / (a * b));
    let z = if low { x + 8.0 } else { x };
    let w = 1.0 / z;
    let y = ln_d(z) - w * (0.5 + w * poly_d(w * w, &P));
    let y = y - if low { terms } else { 0.0 };
    if x < f64::INFINITY {
        y
    } else {
        x
    }
}

/// digamma(x) to 1 ulp, for x above zero.
#[inline(always)]
pub fn digamma_near(x: f32) -> f32 {
    digamma_d(x as f64) as f32
}

/// Computed in float64. See the function of this name in `f64x`.
#[inline]
pub fn digamma(x: f32) -> f32 {
    let d = x as f64;
    let part = d - d.trunc();
    if x < 0.0 && part != 0.0 {
        return (digamma_d(1.0 - d) - PI / (PI * part).tan()) as f32;
    }
    f64x::digamma(d) as f32
}

/// What the logarithm of gamma(d), d > 0, is the difference of: Stirling's series, and a number whose
/// logarithm is to be taken off.
#[inline(always)]
pub fn lgamma_parts(d: f64) -> (f64, f64) {
    // What Stirling's series adds, times x, by 1 / x^2.
    const P: [f64; 6] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
    ];
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
    // gamma(d) = gamma(d + 8) / (d (d + 1) ... (d + 7)) below 8.
    let low = d < 8.0;
    let p = d * (d + 7.0);
    let product = p * (p + 6.0) * (p + 10.0) * (p + 12.0);
    let z = if low { d + 8.0 } else { d };
    let w = 1.0 / z;
    let tail = w.mul_add(poly_d(w * w, &P), HALF_LN_TAU) - z;
    let y = (z - 0.5).mul_add(ln_d(z), tail);
    (y, if low { product } else { 1.0 })
}

/// ln |gamma(x)| to 1 ulp, and whether it is left to the function of float64: left of -2, near a
/// zero.
#[inline(always)]
pub fn lgamma_near(x: f32) -> (f32, bool) {
    let d = x as f64;
    let a = d.abs();
    let (y, product) = lgamma_parts(a);
    // gamma(a) gamma(-a) = -pi / (a sin(pi a)).
    let left = d < 0.0;
    let s = f64x::sine_pi(a);
    let y = y - ln_d(if left { product / (a * s) } else { product });
    let y = if left { -y } else { y };
    let far = left & (y.abs() < 1e-3);
    // The zeros are exact.
    let y = if d == 1.0 || d == 2.0 { 0.0 } else { y };
    // Poles, of which infinity is one.
    let pole = (s == 0.0) & (d <= 0.0) | (a == f64::INFINITY);
    ((if pole { f64::INFINITY } else { y }) as f32, far)
}

//! Gamma's relatives: most of them above zero.

use super::ln;
use super::parts::poly;
use std::f64::consts::PI;

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

/// digamma(x) for x above zero: to 4 ulp, near its zero to 4e-16.
#[inline(always)]
pub fn digamma_near(x: f64) -> f64 {
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
    // digamma(x) = digamma(x + 8) - 1 / x - ... - 1 / (x + 7) below 8, the first term by itself, the
    // others in pairs and one.
    let low = x < 8.0;
    let pair = |a: f64, b: f64| (a + b) / (a * b);
    let above = pair(x + 6.0, x + 7.0) + pair(x + 4.0, x + 5.0) + pair(x + 2.0, x + 3.0);
    let terms = 1.0 / x + (1.0 / (x + 1.0) + above);
    let z = if low { x + 8.0 } else { x };
    let w = 1.0 / z;
    let y = ln(z) - w * (0.5 + w * poly(w * w, &P));
    let y = y - if low { terms } else { 0.0 };
    if x < f64::INFINITY {
        y
    } else {
        x
    }
}

/// |sin(pi d)| / pi for d >= 0, to 2 ulp.
#[inline(always)]
pub fn sine_pi(d: f64) -> f64 {
    // sin(t) / t by t^2, right to 2^-52 up to pi / 2.
    const P: [f64; 10] = [
        1.0,
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5040.0,
        1.0 / 362_880.0,
        -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 1_307_674_368_000.0,
        1.0 / 355_687_428_096_000.0,
        -1.0 / 121_645_100_408_832_000.0,
    ];
    let r = (d - d.round_ties_even()).abs();
    let t = PI * r;
    r * poly(t * t, &P)
}

/// ln |gamma(x)| to 6 ulp above zero; below, to 2^-50 of the larger of it and one.
#[inline(always)]
pub fn lgamma(x: f64) -> f64 {
    // ln gamma(2 + t) by t: 1 - gamma, then (-1)^k (zeta(k) - 1) / k.
    const NEAR_TWO: [f64; 27] = [
        0.422_784_335_098_467_13,
        0.322_467_033_424_113_2,
        -0.067_352_301_053_198_1,
        0.020_580_808_427_784_546,
        -0.007_385_551_028_673_986,
        0.002_890_510_330_741_523_4,
        -0.001_192_753_911_703_261,
        0.000_509_669_524_743_042_5,
        -0.000_223_154_758_453_579_39,
        9.945_751_278_180_853e-5,
        -4.492_623_673_813_314e-5,
        2.050_721_277_567_069e-5,
        -9.439_488_275_268_397e-6,
        4.374_866_789_907_488e-6,
        -2.039_215_753_801_366e-6,
        9.551_412_130_407_42e-7,
        -4.492_469_198_764_566e-7,
        2.120_718_480_555_466_5e-7,
        -1.004_322_482_396_809_9e-7,
        4.769_810_169_363_980_4e-8,
        -2.271_109_460_894_316_4e-8,
        1.083_865_921_489_695_5e-8,
        -5.183_475_041_970_047e-9,
        2.483_674_543_802_478_5e-9,
        -1.192_140_140_586_091_2e-9,
        5.731_367_241_678_862e-10,
        -2.759_522_885_124_233_4e-10,
    ];
    // What Stirling's series adds, times x, by 1 / x^2, right to 2^-53 from 8 on.
    const STIRLING: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    /// ln(2 pi) / 2 - 1 / 2.
    const REST: f64 = 0.418_938_533_204_672_7;
    let (a, left) = (x.abs(), x < 0.0);
    let (large, low, tiny) = (a >= 8.0, a < 1.5, a < 0.5);
    // Below 8, gamma(a) is gamma(2 + t), |t| up to 1/2, times the factors between, or over a and
    // a + 1. No difference is rounded.
    let (mut t, mut product) = (a - 2.0, 1.0);
    for k in 1..7 {
        let f = a - k as f64;
        product *= if f >= 1.5 { f } else { 1.0 };
        t = if f >= 1.5 { f - 2.0 } else { t };
    }
    let up = if tiny { a } else { a - 1.0 };
    // Left of zero a tiny factor is taken off that one which the sine has.
    let first = if tiny & left { 1.0 } else { a };
    let over = if tiny { first * (a + 1.0) } else { first };
    let t = if low { up } else { t };
    let l = ln(if large {
        a
    } else if low {
        over
    } else {
        product
    });
    let near = t * poly(t, &NEAR_TWO) + if low { -l } else { l };
    let w = 1.0 / a;
    let far = (a - 0.5).mul_add(l - 1.0, w.mul_add(poly(w * w, &STIRLING), REST));
    let y = if large { far } else { near };
    // gamma(a) gamma(-a) = -pi / (a sin(pi a)).
    let s = sine_pi(a);
    let of_sine = ln(if tiny { s } else { a * s });
    let y = if left { -(of_sine + y) } else { y };
    // Poles, of which infinity is one.
    let pole = (s == 0.0) & (x <= 0.0) | (a == f64::INFINITY);
    if pole {
        f64::INFINITY
    } else {
        y
    }
}

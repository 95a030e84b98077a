//! Logarithms and powers.

use super::exp::exp_scaled;
use super::parts::{clamp, fast_sum, poly, split, two_product, two_sum, LN2_HIGH, LN2_LOW};
use std::f64::consts::{LN_2, LOG10_E, LOG2_E};

/// (2 atanh(s) / s - 2) / s^2 as a polynomial in s^2 up to 0.0294, to 2^-51.
const LOG: [f64; 7] = [
    0.666_666_666_666_667,
    0.399_999_999_998_994_9,
    0.285_714_286_259_825_5,
    0.222_222_111_336_420_84,
    0.181_828_892_092_665_95,
    0.153_317_188_082_800_7,
    0.146_164_841_983_666_03,
];

/// Puts in what a logarithm is at zero, infinity, NaN and below zero.
#[inline(always)]
fn edges(x: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 {
        f64::NAN
    } else {
        y
    }
}

/// ln(1 + f) = f - (h - s * (h + r)): returns h = f^2 / 2 and s * (h + r), for 1 + f from
/// sqrt(1/2) to sqrt(2).
#[inline(always)]
fn ln_parts(f: f64) -> (f64, f64) {
    let s = f / (2.0 + f);
    let z = s * s;
    let h = 0.5 * f * f;
    (h, s * z.mul_add(poly(z, &LOG), h))
}

/// ln((x + low) * 2^extra) to 1 ulp for positive normal x and a `low` below its last digit.
#[inline(always)]
pub fn ln_sum(x: f64, low: f64, extra: f64) -> f64 {
    let (e, m) = split(x);
    let e = e + extra;
    let f = m - 1.0;
    let (h, t) = ln_parts(f);
    let t = t + e.mul_add(LN2_LOW, low / x);
    e.mul_add(LN2_HIGH, f - (h - t))
}

/// The natural logarithm to 1 ulp.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let (e, m) = split(x);
    let f = m - 1.0;
    let (h, t) = ln_parts(f);
    edges(x, e.mul_add(LN2_HIGH, f - (h - e.mul_add(LN2_LOW, t))))
}

/// e + ln(m) * c for a constant in two parts, given the parts of e likewise.
#[inline(always)]
fn to_base(m: f64, e: f64, e_low: f64, c: f64, c_low: f64) -> f64 {
    let f = m - 1.0;
    let (h, t) = ln_parts(f);
    let (high, low) = fast_sum(f, -h);
    let (high, low) = fast_sum(high, low + t);
    let (p, p_low) = two_product(high, c);
    let p_low = low.mul_add(c, high.mul_add(c_low, p_low)) + e_low;
    let (sum, rest) = fast_sum(e, p);
    sum + (rest + p_low)
}

/// The logarithm to base 2, to 1 ulp.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    let (e, m) = split(x);
    edges(x, to_base(m, e, 0.0, LOG2_E, 2.035_527_374_093_103_3e-17))
}

/// The logarithm to base 10, to 1 ulp.
#[inline(always)]
pub fn log10(x: f64) -> f64 {
    let (e, m) = split(x);
    // log10(2) with trailing zeros, so that multiples are exact, and the rest.
    const HIGH: f64 = f64::from_bits(0x3fd3_4413_509f_6000);
    const LOW: f64 = 3.694_239_077_158_931e-13;
    let y = to_base(m, e * HIGH, e * LOW, LOG10_E, 1.098_319_650_216_765e-17);
    edges(x, y)
}

/// ln(1 + x) to 1 ulp.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let (u, low) = two_sum(1.0, x);
    let y = ln_sum(u, low, 0.0);
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == -1.0 { f64::NEG_INFINITY } else { y };
    let y = y.copysign(x);
    if x < -1.0 {
        f64::NAN
    } else {
        y
    }
}

/// ln x in two parts, to 2^-65, for positive finite x.
#[inline(always)]
fn ln_two(x: f64) -> (f64, f64) {
    // What is left of the polynomial in `LOG` behind 2/3, to 2^-58.
    const P: [f64; 8] = [
        0.4,
        0.285_714_285_714_293_64,
        0.222_222_222_216_561_43,
        0.181_818_183_353_343_35,
        0.153_845_949_687_657_47,
        0.133_348_043_540_634_5,
        0.117_062_454_386_940_63,
        0.117_230_834_706_845_5,
    ];
    let (e, m) = split(x);
    let f = m - 1.0;
    let (d, d_low) = fast_sum(2.0, f);
    let s = f / d;
    let s_low = (-s).mul_add(d_low, (-s).mul_add(d, f)) / d;
    let z = s * s;
    let z_low = (s + s).mul_add(s_low, s.mul_add(s, -z));
    // 2/3 in two parts plus the rest.
    let (q, q_low) = fast_sum(2.0 / 3.0, z * poly(z, &P));
    let q_low = q_low + 3.700_743_415_417_188e-17;
    // s^3 * q.
    let (c, c_low) = two_product(z, s);
    let c_low = z.mul_add(s_low, z_low.mul_add(s, c_low));
    let (t, t_low) = two_product(c, q);
    let t_low = c.mul_add(q_low, c_low.mul_add(q, t_low));
    let (high, low) = fast_sum(s + s, t);
    let low = low + (s_low + s_low + t_low);
    let (sum, rest) = fast_sum(e * LN2_HIGH, high);
    fast_sum(sum, rest + e.mul_add(LN2_LOW, low))
}

/// x to the power of y, to 1.2 ulp.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let a = x.abs();
    let inside = (a > 0.0) & (a < f64::INFINITY);
    let (l, l_low) = ln_two(if inside { a } else { 1.0 });
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let l = if a < f64::INFINITY { l } else { a };
    let (t, t_low) = two_product(y, l);
    let small = t.abs() < 800.0;
    let t_low = if small { y.mul_add(l_low, t_low) } else { 0.0 };
    let t = if (a == 1.0) | (y == 0.0) { 0.0 } else { t };
    let p = exp_scaled(clamp(t, -746.0, 800.0), t_low, 0.0);
    signed_power(x, y, p)
}

/// x^y from |x|^y: the sign, and what holds for NaN and one.
#[inline(always)]
fn signed_power(x: f64, y: f64, p: f64) -> f64 {
    let half = y * 0.5;
    let whole = y == y.trunc();
    let odd = whole & (half != half.trunc());
    let below = (x < 0.0) & (x > f64::NEG_INFINITY);
    let p = if below & !whole { f64::NAN } else { p };
    let p = if odd { p.copysign(x) } else { p };
    let p = if x.is_nan() | y.is_nan() { f64::NAN } else { p };
    if (x == 1.0) | (y == 0.0) {
        1.0
    } else {
        p
    }
}

const _: () = assert!(LN_2 > LN2_HIGH);

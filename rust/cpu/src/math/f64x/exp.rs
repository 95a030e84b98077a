//! Exponentials and hyperbolic functions.

use super::log::ln_sum;
use super::parts::{clamp, fast_sum, poly, scale, two_product, two_sum, LN2_HIGH, LN2_LOW, MAGIC};
use std::f64::consts::{LN_2, LOG2_E};

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, to 2^-53.
pub(crate) const EXP: [f64; 10] = [
    0.500_000_000_000_000_1,
    0.166_666_666_666_666_69,
    0.041_666_666_666_624_16,
    0.008_333_333_333_330_063,
    0.001_388_888_891_719_986_3,
    0.000_198_412_698_630_429_63,
    2.480_152_131_748_408_4e-5,
    2.755_726_847_655_369_5e-6,
    2.762_007_820_380_639_4e-7,
    2.510_037_761_960_637_2e-8,
];

/// Beyond these e^x is zero and infinite.
pub(crate) const ENDS: (f64, f64) = (-746.0, 710.0);
/// Below this a weight is zero: 2^-1022 is e^-708.3964.
pub(crate) const LEAST: f64 = -708.396;

/// What ln 2 has beyond its float64.
pub(crate) const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

/// e^r in two parts, for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_near(r: f64) -> (f64, f64) {
    let (one, low) = fast_sum(1.0, r);
    fast_sum(one, (r * r).mul_add(poly(r, &EXP), low))
}

/// e^(x + low) = (y + z) * 2^n for |x| <= 1200 and a small `low`: returns y, z and n + MAGIC.
#[inline(always)]
pub fn exp_parts(x: f64, low: f64) -> (f64, f64, f64) {
    let magic = x.mul_add(LOG2_E, MAGIC);
    let n = magic - MAGIC;
    // The first difference is exact.
    let r = n.mul_add(-LN_2_REST, n.mul_add(-LN_2, x)) + low;
    let (y, z) = exp_near(r);
    (y, z, magic)
}

/// e^(x + low) * 2^extra, for x from -746, where it is zero, to 1200 and a small `low`.
#[inline(always)]
pub fn exp_scaled(x: f64, low: f64, extra: f64) -> f64 {
    let (y, _, magic) = exp_parts(x, low);
    scale(y, magic + extra)
}

/// e^x to 1 ulp.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_scaled(clamp(x, ENDS.0, ENDS.1), 0.0, 0.0)
}

/// e^x to 1 ulp for x up to 709, zero where it would be subnormal: a weight beside others.
#[inline(always)]
pub fn decay(x: f64) -> f64 {
    // From -708.8 down the scale's bits are those of zero.
    exp_normal(if x < LEAST { -709.0 } else { x })
}

/// e^x to 1 ulp for x from -709, where it is zero, to 709.
#[inline(always)]
pub fn exp_normal(x: f64) -> f64 {
    let (y, _, magic) = exp_parts(x, 0.0);
    let n = magic.to_bits().wrapping_sub(MAGIC.to_bits());
    y * f64::from_bits(n.wrapping_add(1023) << 52)
}

/// 2^x to 1 ulp.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1076.0, 1025.0);
    let magic = x + MAGIC;
    let r = (x - (magic - MAGIC)) * LN_2;
    scale(exp_near(r).0, magic)
}

/// (e^x - 1) / 2 and e^x / 2 without its last rounding, for x up to 710.
#[inline(always)]
fn half_expm1(x: f64) -> f64 {
    let magic = x.mul_add(LOG2_E, MAGIC);
    let n = magic - MAGIC;
    let high = n.mul_add(-LN2_HIGH, x);
    let r = n.mul_add(-LN2_LOW, high);
    let low = n.mul_add(-LN2_LOW, high - r);
    let p = r + (r * r).mul_add(poly(r, &EXP), low);
    let n = magic.to_bits().wrapping_sub(MAGIC.to_bits());
    // Half of the scale, since 2^1024 itself is no number.
    let s = f64::from_bits(n.wrapping_add(1022) << 52);
    s.mul_add(p, s - 0.5)
}

/// e^x - 1 to 1.5 ulp.
#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let y = half_expm1(clamp(x, -40.0, 710.0)) * 2.0;
    let y = if x.abs() < 1e-300 { x } else { y };
    y.copysign(x)
}

/// e^x for x from -746, where it is zero, to 0: [`scale`] has only one factor that is not known.
#[inline(always)]
fn exp_below(x: f64) -> f64 {
    let (y, _, magic) = exp_parts(x, 0.0);
    let n = magic.to_bits().wrapping_sub(MAGIC.to_bits());
    y * f64::from_bits(n.wrapping_add(53 + 1023) << 52) * f64::from_bits((1023 - 53) << 52)
}

/// 1 / (1 + e^-x) to 2 ulp, also where it is subnormal.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let z = -x.abs();
    let e = exp_below(if z < -746.0 { -746.0 } else { z });
    let num = if x >= 0.0 { 1.0 } else { e };
    let (den, low) = fast_sum(1.0, e);
    let y = num / den;
    // What the sum lost, over 1 for what is nearly the sum.
    (-y).mul_add(low, y)
}

/// The hyperbolic tangent to 2 ulp.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    // (tanh(sqrt z) / sqrt z - 1) / z up to 0.55^2, to 2^-56.
    const P: [f64; 11] = [
        -0.333_333_333_333_333_3,
        0.133_333_333_333_327_14,
        -0.053_968_253_967_431_74,
        0.021_869_488_493_563_037,
        -0.008_863_234_395_418_095,
        0.003_592_110_347_096_177,
        -0.001_455_661_577_570_236_5,
        0.000_588_934_807_244_702_8,
        -0.000_234_631_045_283_044_06,
        8.510_707_927_354_112e-5,
        -2.059_855_667_327_517e-5,
    ];
    let z = clamp(x.abs(), 0.0, 20.0);
    let q = z * z;
    let small = (z * q).mul_add(poly(q, &P), z);
    let e = exp_scaled(z + z, 0.0, 0.0);
    let large = 1.0 - 2.0 / (e + 1.0);
    (if z < 0.55 { small } else { large }).copysign(x)
}

/// The hyperbolic sine to 2 ulp.
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    // (sinh(sqrt z) / sqrt z - 1) / z up to 1.
    const P: [f64; 8] = [
        0.166_666_666_666_666_66,
        0.008_333_333_333_333_333,
        0.000_198_412_698_412_697_73,
        2.755_731_922_404_034e-6,
        2.505_210_836_405_804e-8,
        1.605_904_839_635_056_2e-10,
        7.646_625_361_656_657e-13,
        2.844_526_416_989_528_5e-15,
    ];
    let z = clamp(x.abs(), 0.0, 712.0);
    let q = if z < 1.0 { z * z } else { 1.0 };
    let small = (z * q).mul_add(poly(q, &P), z);
    let h = exp_scaled(z, 0.0, -1.0);
    let large = h - 0.25 / h;
    (if z < 1.0 { small } else { large }).copysign(x)
}

/// The hyperbolic cosine to 2 ulp.
#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let h = exp_scaled(clamp(x.abs(), 0.0, 712.0), 0.0, -1.0);
    h + 0.25 / h
}

/// The inverse hyperbolic sine to 2 ulp.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    // (asinh(sqrt z) / sqrt z - 1) / z up to 1/4.
    const P: [f64; 13] = [
        -0.166_666_666_666_666_66,
        0.074_999_999_999_999_2,
        -0.044_642_857_142_677_225,
        0.030_381_944_428_513_684,
        -0.022_372_158_355_736_263,
        0.017_352_744_155_690_4,
        -0.013_964_483_323_351_326,
        0.011_547_475_926_257_406,
        -0.009_725_716_144_151_688,
        0.008_182_367_646_377_79,
        -0.006_474_600_846_635_902_5,
        0.004_138_358_131_402_52,
        -0.001_498_835_849_995_747_4,
    ];
    let z = x.abs();
    let (square, square_low) = two_product(z, z);
    let small = (z * square).mul_add(poly(square, &P), z);
    // Beyond 2^30 it is ln(2 z).
    let huge = z > 1_073_741_824.0;
    let (w, w_low) = two_sum(square, 1.0);
    let root = w.sqrt();
    let root_low = ((-root).mul_add(root, w) + (w_low + square_low)) * 0.5 / root;
    let (sum, sum_low) = two_sum(z, root);
    let a = if huge { z } else { sum };
    let low = if huge { 0.0 } else { sum_low + root_low };
    let large = ln_sum(a, low, if huge { 1.0 } else { 0.0 });
    let y = if z < 0.5 { small } else { large };
    (if z < f64::INFINITY { y } else { z }).copysign(x)
}

/// The inverse hyperbolic cosine to 2 ulp; NaN below 1.
#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let huge = x > 1_073_741_824.0;
    let (square, square_low) = two_product(x, x);
    let (w, w_low) = fast_sum(square - 1.0, square_low);
    let w = if huge { 1.0 } else { w };
    let root = w.sqrt();
    let root_low = ((-root).mul_add(root, w) + w_low) * 0.5 / root;
    let root_low = if w > 0.0 { root_low } else { 0.0 };
    let (sum, sum_low) = two_sum(x, root);
    let a = if huge { x } else { sum };
    let low = if huge { 0.0 } else { sum_low + root_low };
    let y = ln_sum(a, low, if huge { 1.0 } else { 0.0 });
    let y = if x < f64::INFINITY { y } else { x };
    if x < 1.0 {
        f64::NAN
    } else {
        y
    }
}

/// The inverse hyperbolic tangent to 2 ulp; infinite at -1 and 1, NaN beyond.
#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    // (atanh(sqrt z) / sqrt z - 1) / z up to 0.029, to 2^-52.
    const P: [f64; 7] = [
        0.333_333_333_333_333_5,
        0.199_999_999_999_497_45,
        0.142_857_143_129_912_75,
        0.111_111_055_668_210_42,
        0.090_914_446_046_332_97,
        0.076_658_594_041_400_35,
        0.073_082_420_991_833_01,
    ];
    let z = x.abs();
    let small = (z * z * z).mul_add(poly(z * z, &P), z);
    let (num, num_low) = fast_sum(1.0, z);
    let (den, den_low) = fast_sum(1.0, -z);
    let q = num / den;
    let q_low = ((-q).mul_add(den, num) + (-q).mul_add(den_low, num_low)) / den;
    let large = 0.5 * ln_sum(q, q_low, 0.0);
    let y = if z < 0.17 { small } else { large };
    let y = if z < 1.0 { y } else { f64::NAN };
    (if z == 1.0 { f64::INFINITY } else { y }).copysign(x)
}

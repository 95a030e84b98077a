//! Functions of a float32. Those that a network spends its time in are float32 throughout;
//! the others compute in float64, which costs half the lanes and leaves half an ulp.
//!
//! Where a function has a `_near`, that one is vector code and holds where `is_far` says no.

mod bessel;
mod error;
mod gamma;
mod incomplete;
mod trig;

pub use bessel::i1e;
pub use error::{erf, erf_exp, erfc, erfinv, erfinv_near};
pub use error::{is_outer, is_tiny, ndtr_half, ndtri_near};
pub use gamma::{digamma, digamma_near, is_negative, lgamma_near, trigamma_near};
pub use incomplete::incomplete;
pub use trig::{cos, cos_near, is_far, sin, sin_near, tan, tan_near};

pub use super::incomplete::{igamma_single as igamma, igammac_single as igammac};

use super::f64x;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG10_2, LOG2_E, PI};

/// Adding and subtracting this rounds to an integer, which the low bits of the sum hold.
pub(crate) const MAGIC: f32 = 12_582_912.0;
const MAGIC_D: f64 = 6_755_399_441_055_744.0;

/// Clamps, and lets NaN through.
#[inline(always)]
fn clamp(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x < lo { lo } else { x };
    if x > hi {
        hi
    } else {
        x
    }
}

/// 2^i for i from -126 to 127, and zero for -127. The bits of i + MAGIC stand for i, and for NaN
/// any number does; the result is NaN whatever this gives.
#[inline(always)]
fn two_to(i: u32) -> f32 {
    f32::from_bits(i.wrapping_add(127) << 23)
}

/// The bits of the largest i, plus [`MAGIC`], that the first of two factors has all of.
pub(crate) const MOST: i32 = MAGIC.to_bits() as i32 + 103;

/// p * 2^i for i from -150 to 128, rounded once, also where the result is subnormal or infinite; and
/// zero for -151, which is not computed: some processors take a hundred cycles for an underflow.
#[inline(always)]
fn scale(p: f32, i: u32) -> f32 {
    // Two factors, the first zero for the least i.
    let n = (i as i32).min(MOST) as u32;
    p * two_to(n.wrapping_add(24)) * two_to(i.wrapping_sub(n).wrapping_sub(24))
}

#[inline(always)]
fn poly<const N: usize>(x: f32, c: &[f32; N]) -> f32 {
    let mut y = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        y = y.mul_add(x, c[i]);
    }
    y
}

/// In two chains, of even and of odd powers: what waits for one another is short, and more elements
/// are under way.
#[inline(always)]
fn poly_d<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let x2 = x * x;
    let mut i = (N - 1) & !1;
    let mut even = c[i];
    while i > 0 {
        i -= 2;
        even = even.mul_add(x2, c[i]);
    }
    let mut i = (N - 2) | 1;
    let mut odd = c[i];
    while i > 1 {
        i -= 2;
        odd = odd.mul_add(x2, c[i]);
    }
    odd.mul_add(x, even)
}

/// How much the float next to ln 2 exceeds it.
pub(crate) const LN_2_LOW: f32 = 1.904_654_2e-9;
/// e^r for |r| <= ln 2 / 2, by powers of r.
pub(crate) const EXP: [f32; 7] = [
    1.0,
    1.0,
    0.499_999_94,
    0.166_665_15,
    0.041_668_456,
    0.008_369_419,
    0.001_381_314_5,
];
/// Below this a weight is zero: 2^-126 is e^-87.3365.
pub(crate) const LEAST: f32 = -87.336;

/// Beyond these e^x is zero and infinite.
pub(crate) const ENDS: (f32, f32) = (-104.7, 89.0);

/// Splits x = i * ln 2 + r with |r| <= ln 2 / 2; returns the bits of i + MAGIC, and r.
#[inline(always)]
fn split_ln2(x: f32) -> (u32, f32) {
    let m = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = m - MAGIC;
    (
        m.to_bits(),
        n.mul_add(LN_2_LOW, n.mul_add(-std::f32::consts::LN_2, x)),
    )
}

/// e^r for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_near(r: f32) -> f32 {
    poly(r, &EXP)
}

/// e^x to 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (i, r) = split_ln2(clamp(x, ENDS.0, ENDS.1));
    scale(exp_near(r), i)
}

/// e^x to 1 ulp for x up to 88, zero where it would be subnormal: a weight beside others.
#[inline(always)]
pub fn decay(x: f32) -> f32 {
    // From -87.7 down the scale's bits are those of zero.
    exp_normal(if x < LEAST { -88.0 } else { x })
}

/// 2^x to 1 ulp.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let m = x + MAGIC;
    const P: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_48,
        0.055_503_294,
        0.009_618_45,
        0.001_340_017,
        0.000_153_523_17,
    ];
    scale(poly(x - (m - MAGIC), &P), m.to_bits())
}

/// e^r - 1 for |r| <= ln 2 / 2.
#[inline(always)]
fn expm1_near(r: f32) -> f32 {
    const P: [f32; 6] = [
        0.5,
        0.166_666_66,
        0.041_666_348,
        0.008_333_391,
        0.001_394_165_2,
        0.000_198_459_57,
    ];
    (r * r).mul_add(poly(r, &P), r)
}

/// e^x - 1 to 1.5 ulp.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (i, r) = split_ln2(clamp(x, -30.0, 89.0));
    let p = expm1_near(r);
    // Half of the scale, since 2^128 itself is no float32.
    let s = two_to(i.wrapping_sub(1));
    let y = s.mul_add(p, s - 0.5) * 2.0;
    (if x.abs() < 1e-10 { x } else { y }).copysign(x)
}

/// Splits x = 2^e * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); x is positive and finite.
#[inline(always)]
fn split_near(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * 8_388_608.0 } else { x }).to_bits() as i32;
    // The bits of sqrt(1/2).
    let top = bits.wrapping_sub(0x3f35_04f3);
    let e = ((top >> 23) - if tiny { 23 } else { 0 }) as f32;
    let m = f32::from_bits((top & 0x7f_ffff).wrapping_add(0x3f35_04f3) as u32);
    (e, m - 1.0)
}

/// (ln(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to sqrt(2), by powers of f.
pub(crate) const LN: [f32; 9] = [
    0.333_333_1,
    -0.250_000_1,
    0.200_022_73,
    -0.166_681_1,
    0.142_162_13,
    -0.124_009_74,
    0.119_099_55,
    -0.117_159_65,
    0.067_464_046,
];

/// ln(1 + f) - f for 1 + f from sqrt(1/2) to sqrt(2), plus a number `low` far smaller than f.
#[inline(always)]
fn ln_tail(f: f32, low: f32) -> f32 {
    let f2 = f * f;
    f2.mul_add(-0.5, (f * f2).mul_add(poly(f, &LN), low))
}

/// The natural logarithm to 1 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let (e, f) = split_near(x);
    let y = f + ln_tail(f, e * -1.904_654_2e-9);
    log_edges(x, e.mul_add(std::f32::consts::LN_2, y))
}

/// The logarithm to base 2, to 1.2 ulp.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (e, f) = split_near(x);
    // The second number is what log2(e) has beyond its float32.
    let low = ln_tail(f, 0.0).mul_add(std::f32::consts::LOG2_E, f * 1.925_963e-8);
    log_edges(x, e + f.mul_add(std::f32::consts::LOG2_E, low))
}

/// ln(1 + x) to 1 ulp.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let v = u - 1.0;
    let low = (1.0 - (u - v)) + (x - v);
    let (e, f) = split_near(u);
    let y = f + (ln_tail(f, e * -1.904_654_2e-9) + low / u);
    let y = e.mul_add(std::f32::consts::LN_2, y).copysign(x);
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    if x < -1.0 {
        f32::NAN
    } else {
        y
    }
}

/// Puts in what a logarithm is at zero, infinity, NaN and below zero.
#[inline(always)]
fn log_edges(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 {
        f32::NAN
    } else {
        y
    }
}

/// The hyperbolic tangent to 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // (1 - t) / (1 + t) for t = e^-2z = s + s p, where 1 - s is exact if s is not small.
    let z = if x.abs() > 10.0 { 10.0 } else { x.abs() };
    let (i, r) = split_ln2(-2.0 * z);
    let (p, s) = (expm1_near(r), two_to(i));
    (s.mul_add(-p, 1.0 - s) / s.mul_add(p, 1.0 + s)).copysign(x)
}

/// e^x for x from -87.3 to 88, and zero for -88.
#[inline(always)]
fn exp_normal(x: f32) -> f32 {
    let (i, r) = split_ln2(x);
    exp_near(r) * two_to(i)
}

/// 1 / (1 + e^-x) to 2.5 ulp, also where it is subnormal.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// The remainder of x / y with the sign of x, exact, and whether it is left to the operator `%`:
/// where the quotient is 2^22 or more, or no number.
#[inline(always)]
pub fn fmod_near(x: f32, y: f32) -> (f32, bool) {
    let (a, b) = (x.abs(), y.abs());
    let q = a / b;
    let r = (-q.trunc()).mul_add(b, a);
    // Rounding may have carried the quotient to an integer, never below one.
    let r = if r < 0.0 { r + b } else { r };
    let near = (q < 4_194_304.0) & (b < f32::INFINITY);
    (r.copysign(x), !near)
}

/// 1 / sqrt(x) to 1.5 ulp.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

// From here on: float64 inside, half an ulp.

#[inline(always)]
fn clamp_d(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x < lo { lo } else { x };
    if x > hi {
        hi
    } else {
        x
    }
}

/// e^x to 2^-45, for |x| <= 200 and NaN; the value at 200 above, and zero from -708.9 down.
#[inline(always)]
fn exp_d(x: f64) -> f64 {
    // The scale has the bits of zero for 2^-1023.
    let x = clamp_d(x, -708.9, 200.0);
    let m = x.mul_add(LOG2_E, MAGIC_D);
    let n = m - MAGIC_D;
    let r = n.mul_add(-LN_2, x);
    const P: [f64; 10] = [
        1.000_000_000_000_013,
        0.999_999_999_999_892_9,
        0.499_999_999_994_482_6,
        0.166_666_666_678_233_63,
        0.041_666_667_037_363_52,
        0.008_333_332_998_941_298,
        0.001_388_880_214_683_145_3,
        0.000_198_416_045_818_934_43,
        2.488_429_715_915_1e-5,
        2.747_831_994_989_141_3e-6,
    ];
    let i = m
        .to_bits()
        .wrapping_sub(MAGIC_D.to_bits())
        .wrapping_add(1023);
    poly_d(r, &P) * f64::from_bits(i << 52)
}

/// Splits a positive, finite, normal x = 2^e * m with m from sqrt(1/2) to sqrt(2).
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits();
    let e = f64::from_bits((bits >> 52) | TWO_52) - (f64::from_bits(TWO_52) + 1023.0);
    let m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let high = m > std::f64::consts::SQRT_2;
    let m = if high { m * 0.5 } else { m };
    (if high { e + 1.0 } else { e }, m)
}

/// Returns e and ln m to 2^-48 for [`split`]'s x = 2^e * m.
#[inline(always)]
fn ln_parts(x: f64) -> (f64, f64) {
    let (e, m) = split(x);
    let s = (m - 1.0) / (m + 1.0);
    const P: [f64; 9] = [
        2.0,
        2.0 / 3.0,
        2.0 / 5.0,
        2.0 / 7.0,
        2.0 / 9.0,
        2.0 / 11.0,
        2.0 / 13.0,
        2.0 / 15.0,
        2.0 / 17.0,
    ];
    (e, s * poly_d(s * s, &P))
}

#[inline(always)]
fn ln_d(x: f64) -> f64 {
    let (e, l) = ln_parts(x);
    e.mul_add(LN_2, l)
}

/// log2(m) / s for m = (1 + s) / (1 - s) from sqrt(1/2) to sqrt(2), by s^2, to 2^-36.
const LOG2_D: [f64; 5] = [
    2.885_390_081_789_988_7,
    0.961_796_673_449_433_2,
    0.577_083_566_436_727_5,
    0.411_673_738_820_003_24,
    0.340_712_574_261_822_3,
];

/// The logarithm to base 2 of a positive, finite, normal x, to 2^-36.
#[inline(always)]
fn log2_d(x: f64) -> f64 {
    let (e, m) = split(x);
    let s = (m - 1.0) / (m + 1.0);
    s.mul_add(poly_d(s * s, &LOG2_D), e)
}

#[inline(always)]
pub fn log10(x: f32) -> f32 {
    let (e, f) = split_near(x);
    let (e, f) = (e as f64, f as f64);
    let s = f / (2.0 + f);
    let l = s.mul_add(poly_d(s * s, &LOG2_D), e);
    log_edges(x, (l * LOG10_2) as f32)
}

#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    // 2^r for |r| <= 1/2, to 2^-34.
    const EXP: [f64; 8] = [
        0.999_999_999_959_561_8,
        0.693_147_180_556_832_4,
        0.240_226_512_134_980_92,
        0.055_504_109_063_258_665,
        0.009_618_025_613_318_034,
        0.001_333_347_847_368_541_6,
        0.000_154_697_292_141_182_96,
        1.530_370_071_136_569_3e-5,
    ];
    let a = x.abs();
    let l = log2_d(a as f64);
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let l = if a < f32::INFINITY { l } else { a as f64 };
    // A power of one or to zero is one, whatever the other is.
    let t = if (a == 1.0) | (y == 0.0) {
        0.0
    } else {
        y as f64 * l
    };
    // The scale has the bits of zero for -1023.
    let t = clamp_d(t, -1023.0, 200.0);
    let magic = t + MAGIC_D;
    let n = magic.to_bits().wrapping_sub(MAGIC_D.to_bits());
    let p = poly_d(t - (magic - MAGIC_D), &EXP) * f64::from_bits(n.wrapping_add(1023) << 52);
    let p = if t == 0.0 { 1.0 } else { p as f32 };

    let half = y * 0.5;
    let whole = y == y.trunc();
    let odd = whole & (half != half.trunc());
    let below = (x < 0.0) & (x > f32::NEG_INFINITY);
    let p = if below & !whole { f32::NAN } else { p };
    let p = if odd { p.copysign(x) } else { p };
    let p = if x.is_nan() | y.is_nan() { f32::NAN } else { p };
    if (x == 1.0) | (y == 0.0) {
        1.0
    } else {
        p
    }
}

#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let z = x.abs() as f64;
    let e = exp_d(z);
    let z2 = z * z;
    const P: [f64; 3] = [1.0, 1.0 / 6.0, 1.0 / 120.0];
    // Below 2^-6 the difference would lose digits.
    let y = if z < 0.015_625 {
        z * poly_d(z2, &P)
    } else {
        0.5 * (e - 1.0 / e)
    };
    (y as f32).copysign(x)
}

#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let e = exp_d(x.abs() as f64);
    (0.5 * (e + 1.0 / e)) as f32
}

#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let z = x.abs() as f64;
    let z2 = z * z;
    const P: [f64; 3] = [1.0, -1.0 / 6.0, 3.0 / 40.0];
    let y = ln_d(z + (z2 + 1.0).sqrt());
    let y = if z < 0.015_625 { z * poly_d(z2, &P) } else { y };
    let y = if z < f64::INFINITY { y } else { z };
    (y as f32).copysign(x)
}

#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let d = x as f64;
    let y = ln_d(d + ((d - 1.0) * (d + 1.0)).sqrt()) as f32;
    let y = if x < f32::INFINITY { y } else { x };
    if x < 1.0 {
        f32::NAN
    } else {
        y
    }
}

#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let z = x.abs() as f64;
    const P: [f64; 3] = [1.0, 1.0 / 3.0, 1.0 / 5.0];
    let y = 0.5 * ln_d((1.0 + z) / (1.0 - z));
    let y = if z < 0.015_625 {
        z * poly_d(z * z, &P)
    } else {
        y
    };
    let y = if z < 1.0 { y } else { f64::NAN };
    let y = if z == 1.0 { f64::INFINITY } else { y };
    (y as f32).copysign(x)
}

/// The angle of the point (x, y), both at least zero, to 2^-37.
#[inline(always)]
fn angle(y: f64, x: f64) -> f64 {
    // Infinities as a number beside which every float32 vanishes, so that two of them have the
    // ratio one, and whose inverse has a square.
    let y = if y > 1e100 { 1e100 } else { y };
    let x = if x > 1e100 { 1e100 } else { x };
    let (low, high) = if y > x { (x, y) } else { (y, x) };
    // What is finite vanishes beside an infinity, without a ratio that only float64 holds.
    let low = if high == 1e100 && low != high {
        0.0
    } else {
        low
    };
    // Above tan(pi / 8) measure from the diagonal.
    let far = low > high * 0.414_213_562_373_095;
    let num = if far { low - high } else { low };
    let den = if far { low + high } else { high };
    let t = num / if den == 0.0 { 1.0 } else { den };
    const P: [f64; 8] = [
        0.999_999_999_999_275_9,
        -0.333_333_332_786_408_8,
        0.199_999_932_130_056_15,
        -0.142_853_921_131_552_2,
        0.111_035_493_025_200_91,
        -0.089_933_412_570_792_75,
        0.069_775_327_869_952_08,
        -0.037_710_526_128_099_48,
    ];
    let a = t * poly_d(t * t, &P);
    let a = if far { FRAC_PI_4 + a } else { a };
    if y > x {
        FRAC_PI_2 - a
    } else {
        a
    }
}

#[inline(always)]
pub fn atan(x: f32) -> f32 {
    let y = (angle(x.abs() as f64, 1.0) as f32).copysign(x);
    if x.is_nan() {
        x
    } else {
        y
    }
}

#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let a = angle(y.abs() as f64, x.abs() as f64);
    let a = if x.is_sign_negative() { PI - a } else { a };
    let r = (a as f32).copysign(y);
    if x.is_nan() || y.is_nan() {
        f32::NAN
    } else {
        r
    }
}

/// asin(z) for z up to 1/2, and half of what is left to pi / 2 beyond.
#[inline(always)]
fn asin_part(z: f64) -> f64 {
    // (asin(sqrt w) / sqrt w - 1) / w up to 1/4.
    const P: [f64; 6] = [
        0.166_666_663_374_309_08,
        0.075_000_945_434_974_24,
        0.044_599_401_528_512_18,
        0.031_100_662_735_494_57,
        0.017_149_238_357_677_253,
        0.033_690_847_202_830_12,
    ];
    let near = z <= 0.5;
    let w = if near { z * z } else { 0.5 * (1.0 - z) };
    let s = if near { z } else { w.sqrt() };
    (s * w).mul_add(poly_d(w, &P), s)
}

#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let z = x.abs() as f64;
    let a = asin_part(z);
    let y = if z <= 0.5 { a } else { FRAC_PI_2 - 2.0 * a };
    (y as f32).copysign(x)
}

#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let z = x.abs() as f64;
    let a = asin_part(z);
    let near = FRAC_PI_2 - if x < 0.0 { -a } else { a };
    let far = if x < 0.0 { PI - 2.0 * a } else { 2.0 * a };
    (if z <= 0.5 { near } else { far }) as f32
}

macro_rules! through_f64 {
    ($($name:ident($($x:ident),*);)*) => {$(
        /// Computed in float64; not vectorised. See the function of this name in `f64x`.
        #[inline]
        pub fn $name($($x: f32),*) -> f32 {
            f64x::$name($($x as f64),*) as f32
        }
    )*};
}
through_f64! {
    lgamma(x); trigamma(x); ndtri(x); log_ndtr(x);
    zeta(s, q);
}

/// The `n`-th derivative of digamma. Computed in float64; not vectorised.
#[inline]
pub fn polygamma(n: i64, x: f32) -> f32 {
    f64x::polygamma(n, x as f64) as f32
}

//! Functions of a float32. Those that a network spends its time in are float32 throughout;
//! the others compute in float64, which costs half the lanes and leaves half an ulp.

use super::f64x;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG10_2, LOG10_E, LOG2_E, PI};

/// Adding and subtracting this rounds to an integer, which the low bits of the sum hold.
const MAGIC: f32 = 12_582_912.0;
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

/// 2^i for i from -126 to 127. NaN inputs bring any `i`; the result is NaN whatever it gives.
#[inline(always)]
fn two_to(i: i32) -> f32 {
    f32::from_bits((i.wrapping_add(127) << 23) as u32)
}

/// p * 2^i rounded once, also where the result is subnormal or infinite.
#[inline(always)]
fn scale(p: f32, i: i32) -> f32 {
    let half = i >> 1;
    p * two_to(half) * two_to(i.wrapping_sub(half))
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

#[inline(always)]
fn poly_d<const N: usize>(x: f64, c: &[f64; N]) -> f64 {
    let mut y = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        y = y.mul_add(x, c[i]);
    }
    y
}

/// Splits x = i * ln 2 + r with |r| <= ln 2 / 2.
#[inline(always)]
fn split_ln2(x: f32) -> (i32, f32) {
    let m = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = m - MAGIC;
    let i = (m.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    // 0.6931472 exceeds ln 2 by 1.9046542e-9.
    (
        i,
        n.mul_add(1.904_654_2e-9, n.mul_add(-std::f32::consts::LN_2, x)),
    )
}

/// e^r for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_near(r: f32) -> f32 {
    const P: [f32; 7] = [
        1.0,
        1.0,
        0.499_999_94,
        0.166_665_15,
        0.041_668_456,
        0.008_369_419,
        0.001_381_314_5,
    ];
    poly(r, &P)
}

/// e^x to 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (i, r) = split_ln2(clamp(x, -104.0, 89.0));
    scale(exp_near(r), i)
}

/// 2^x to 1 ulp.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let m = x + MAGIC;
    let i = (m.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    const P: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_48,
        0.055_503_294,
        0.009_618_45,
        0.001_340_017,
        0.000_153_523_17,
    ];
    scale(poly(x - (m - MAGIC), &P), i)
}

/// e^x - 1 to 1.5 ulp.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (i, r) = split_ln2(clamp(x, -30.0, 89.0));
    const P: [f32; 6] = [
        0.5,
        0.166_666_66,
        0.041_666_348,
        0.008_333_391,
        0.001_394_165_2,
        0.000_198_459_57,
    ];
    let p = (r * r).mul_add(poly(r, &P), r);
    // Half of the scale, since 2^128 itself is no float32.
    let s = two_to(i.wrapping_sub(1));
    let y = s.mul_add(p, s - 0.5) * 2.0;
    (if x.abs() < 1e-10 { x } else { y }).copysign(x)
}

/// The natural logarithm to 1 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * 8_388_608.0 } else { x }).to_bits() as i32;
    // Mantissas run from sqrt(1/2) to sqrt(2), whose bits begin here.
    let top = bits.wrapping_sub(0x3f35_04f3);
    let e = ((top >> 23) - if tiny { 23 } else { 0 }) as f32;
    let f = f32::from_bits((top & 0x7f_ffff).wrapping_add(0x3f35_04f3) as u32) - 1.0;
    const P: [f32; 9] = [
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
    let f2 = f * f;
    let y = (f * f2).mul_add(poly(f, &P), e * -1.904_654_2e-9);
    let y = f2.mul_add(-0.5, y);
    let y = e.mul_add(std::f32::consts::LN_2, f + y);
    log_edges(x, y)
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
    let z = clamp(x.abs(), 0.0, 20.0);
    let z2 = z * z;
    const P: [f32; 6] = [
        -0.333_333_3,
        0.133_332_48,
        -0.053_952_474,
        0.021_734_439,
        -0.008_267_089,
        0.002_231_062_4,
    ];
    let small = (z * z2).mul_add(poly(z2, &P), z);
    let t = exp_to_zero(-2.0 * z);
    let large = (1.0 - t) / (1.0 + t);
    (if z < 0.6 { small } else { large }).copysign(x)
}

/// e^x for x from -60 to 0.
#[inline(always)]
fn exp_to_zero(x: f32) -> f32 {
    let (i, r) = split_ln2(x);
    exp_near(r) * two_to(i)
}

/// 1 / (1 + e^-x) to 2.5 ulp, also where it is subnormal.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// The error function to 1.5 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let z = clamp(x.abs(), 0.0, 4.0);
    const P: [f32; 7] = [
        0.128_379_17,
        -0.376_126_32,
        0.112_836_74,
        -0.026_858_186,
        0.005_197_991_6,
        -0.000_810_808_15,
        8.223_982e-5,
    ];
    let small = z.mul_add(poly(z * z, &P), z);
    // The logarithm of erfc, from 0.9 to 4.
    const Q: [f32; 7] = [
        -0.000_166_448_65,
        -1.127_797_2,
        -0.636_976_06,
        -0.104_113_676,
        0.022_315_21,
        -0.003_065_489_7,
        0.000_198_219_58,
    ];
    let large = 1.0 - exp_to_zero(poly(z, &Q));
    (if z < 0.94 { small } else { large }).copysign(x)
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

/// e^x to 2^-46, for |x| <= 200 and NaN; beyond, the value at the bound.
#[inline(always)]
fn exp_d(x: f64) -> f64 {
    let x = clamp_d(x, -200.0, 200.0);
    let m = x.mul_add(LOG2_E, MAGIC_D);
    let n = m - MAGIC_D;
    let r = n.mul_add(-LN_2, x);
    const P: [f64; 12] = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
        1.0 / 39_916_800.0,
    ];
    let i = m
        .to_bits()
        .wrapping_sub(MAGIC_D.to_bits())
        .wrapping_add(1023);
    poly_d(r, &P) * f64::from_bits(i << 52)
}

/// Splits a positive, finite, normal x = 2^e * m and returns e and ln m to 2^-48,
/// with m from sqrt(1/2) to sqrt(2).
#[inline(always)]
fn ln_parts(x: f64) -> (f64, f64) {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let bits = x.to_bits();
    let e = f64::from_bits((bits >> 52) | TWO_52) - (f64::from_bits(TWO_52) + 1023.0);
    let m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let high = m > std::f64::consts::SQRT_2;
    let m = if high { m * 0.5 } else { m };
    let e = if high { e + 1.0 } else { e };
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

#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (e, l) = ln_parts(x as f64);
    log_edges(x, l.mul_add(LOG2_E, e) as f32)
}

#[inline(always)]
pub fn log10(x: f32) -> f32 {
    let (e, l) = ln_parts(x as f64);
    log_edges(x, e.mul_add(LOG10_2, l * LOG10_E) as f32)
}

#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    // From 2^-28 on, 1 + x is exact in float64; below, x itself is close enough.
    let y = ln_d(1.0 + x as f64) as f32;
    let y = if x.abs() < 3.725_290_3e-9 { x } else { y };
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    if x < -1.0 {
        f32::NAN
    } else {
        y
    }
}

#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let (a, yd) = (x.abs() as f64, y as f64);
    let l = ln_d(a);
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let l = if a < f64::INFINITY { l } else { a };
    let t = if a == 1.0 || y == 0.0 { 0.0 } else { yd * l };
    let p = exp_d(t) as f32;
    let whole = y == y.trunc();
    let odd = whole && y.abs() < 16_777_216.0 && (y * 0.5) != (y * 0.5).trunc();
    let below = x < 0.0 && x > f32::NEG_INFINITY;
    let p = if below && !whole { f32::NAN } else { p };
    let p = if odd { p.copysign(x) } else { p };
    let p = if (x.is_nan() && y != 0.0) || (y.is_nan() && x != 1.0) {
        f32::NAN
    } else {
        p
    };
    if x == 1.0 || y == 0.0 {
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
    // Infinities as a number that no float32 reaches, so that two of them have the ratio one.
    let y = if y > 1e60 { 1e60 } else { y };
    let x = if x > 1e60 { 1e60 } else { x };
    let (low, high) = if y > x { (x, y) } else { (y, x) };
    // Above tan(pi / 8) measure from the diagonal.
    let far = low > high * 0.414_213_562_373_095;
    let num = if far { low - high } else { low };
    let den = if far { low + high } else { high };
    let t = num / if den == 0.0 { 1.0 } else { den };
    const P: [f64; 13] = [
        1.0,
        -1.0 / 3.0,
        1.0 / 5.0,
        -1.0 / 7.0,
        1.0 / 9.0,
        -1.0 / 11.0,
        1.0 / 13.0,
        -1.0 / 15.0,
        1.0 / 17.0,
        -1.0 / 19.0,
        1.0 / 21.0,
        -1.0 / 23.0,
        1.0 / 25.0,
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

#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let z = x.abs() as f64;
    let y = (angle(z, ((1.0 - z) * (1.0 + z)).sqrt()) as f32).copysign(x);
    if z <= 1.0 {
        y
    } else {
        f32::NAN
    }
}

#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let z = x.abs() as f64;
    let a = angle(((1.0 - z) * (1.0 + z)).sqrt(), z);
    let a = if x < 0.0 { PI - a } else { a };
    if z <= 1.0 {
        a as f32
    } else {
        f32::NAN
    }
}

#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let z = clamp_d(x.abs() as f64, 0.0, 10.3);
    // e^(z^2) erfc(z) as a polynomial in (z - 4) / (z + 4), to 2^-39.
    const P: [f64; 15] = [
        0.136_999_457_624_842_8,
        -0.259_068_048_758_893_1,
        0.218_719_678_975_907_55,
        -0.164_257_816_843_405_18,
        0.108_963_174_872_209_42,
        -0.063_107_812_476_518_05,
        0.031_299_099_404_536_58,
        -0.012_843_957_815_283_469,
        0.004_059_917_572_073_514,
        -0.000_799_308_055_806_267_5,
        -2.046_927_564_021_823_8e-5,
        8.057_517_654_609_935e-5,
        -2.400_289_443_975_015_5e-5,
        -5.493_565_264_903_808e-6,
        1.281_383_503_392_352_5e-6,
    ];
    let y = exp_d(-(z * z)) * poly_d((z - 4.0) / (z + 4.0), &P);
    (if x < 0.0 { 2.0 - y } else { y }) as f32
}

/// The bits of 2 / pi behind the point.
const TWO_OVER_PI: [u64; 4] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
];

/// 2^k * 2 / pi modulo 4, for k from 0 to 127, in three parts of 29, 29 and 53 bits.
static QUARTERS: [[f64; 128]; 3] = quarters();

const fn quarters() -> [[f64; 128]; 3] {
    let mut table = [[0.0; 128]; 3];
    let widths = [29, 29, 53];
    let mut k = 0;
    while k < 128 {
        // The first bit that counts is worth 2, the one after it 1.
        let mut at = k as i64 - 2;
        let mut part = 0;
        let mut worth = 4.0;
        while part < 3 {
            let mut i = 0;
            while i < widths[part] {
                worth *= 0.5;
                if at >= 0 && at < 256 {
                    let bit = TWO_OVER_PI[(at >> 6) as usize] >> (63 - (at & 63)) & 1;
                    table[part][k] += bit as f64 * worth;
                }
                at += 1;
                i += 1;
            }
            part += 1;
        }
        k += 1;
    }
    table
}

/// Splits x = (n + 4 k) * pi / 2 + r with |r| <= pi / 4; returns r and n modulo 4.
///
/// Up to 2^30 by a fused remainder with pi / 2 in 106 bits. Beyond, x is a 24-bit integer times
/// a power of two whose quarter turns are tabulated, so that any float32 is reduced exactly.
#[inline(always)]
fn quarter_turns(x: f32) -> (f64, u64) {
    let d = x as f64;
    let m = d.mul_add(std::f64::consts::FRAC_2_PI, MAGIC_D);
    let n = m - MAGIC_D;
    // The second number is what pi / 2 has beyond its float64.
    let near = n.mul_add(-6.123_233_995_736_766e-17, n.mul_add(-FRAC_PI_2, d));

    let bits = x.to_bits();
    let k = ((bits >> 23).wrapping_sub(150) & 127) as usize;
    let whole = (bits & 0x7f_ffff | 0x80_0000) as i32;
    let whole = (if x < 0.0 { -whole } else { whole }) as f64;
    let turns = whole * QUARTERS[0][k];
    let m2 = turns + MAGIC_D;
    let rest = whole.mul_add(QUARTERS[1][k], turns - (m2 - MAGIC_D));
    let m3 = rest + MAGIC_D;
    let rest = whole.mul_add(QUARTERS[2][k], rest - (m3 - MAGIC_D));

    let far = x.abs() > 1_073_741_824.0;
    let n_far = m2.to_bits().wrapping_add(m3.to_bits());
    let n = if far { n_far } else { m.to_bits() };
    // MAGIC's own low bits are zero, so only n is left of them.
    let r = if far { rest * FRAC_PI_2 } else { near };
    (if x.abs() < f32::INFINITY { r } else { f64::NAN }, n & 3)
}

/// Sine and cosine for |r| <= pi / 4, to 2^-45.
#[inline(always)]
fn sin_cos_d(r: f64) -> (f64, f64) {
    const S: [f64; 7] = [
        1.0,
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5040.0,
        1.0 / 362_880.0,
        -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0,
    ];
    const C: [f64; 8] = [
        1.0,
        -1.0 / 2.0,
        1.0 / 24.0,
        -1.0 / 720.0,
        1.0 / 40320.0,
        -1.0 / 3_628_800.0,
        1.0 / 479_001_600.0,
        -1.0 / 87_178_291_200.0,
    ];
    let z = r * r;
    (r * poly_d(z, &S), poly_d(z, &C))
}

#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (r, n) = quarter_turns(x);
    let (s, c) = sin_cos_d(r);
    let y = if n & 1 == 0 { s } else { c };
    let y = (if n & 2 == 0 { y } else { -y }) as f32;
    // Keeps the sign of zero.
    if x == 0.0 {
        x
    } else {
        y
    }
}

#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (r, n) = quarter_turns(x);
    let (s, c) = sin_cos_d(r);
    let y = if n & 1 == 0 { c } else { s };
    (if n.wrapping_add(1) & 2 == 0 { y } else { -y }) as f32
}

#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (r, n) = quarter_turns(x);
    let (s, c) = sin_cos_d(r);
    let y = (if n & 1 == 0 { s / c } else { -c / s }) as f32;
    if x == 0.0 {
        x
    } else {
        y
    }
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
    lgamma(x); digamma(x); trigamma(x); erfinv(x); ndtri(x); sinc(x); ndtr(x); log_ndtr(x);
    i0(x); i0e(x); i1(x); i1e(x); zeta(s, q); igamma(a, x); igammac(a, x);
}

/// The `n`-th derivative of digamma. Computed in float64; not vectorised.
#[inline]
pub fn polygamma(n: i64, x: f32) -> f32 {
    f64x::polygamma(n, x as f64) as f32
}

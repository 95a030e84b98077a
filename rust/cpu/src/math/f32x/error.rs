//! The error function and its relatives.

use super::{clamp, clamp_d, exp, exp_d, exp_normal, log2_d, poly, poly_d, MAGIC};
use std::f64::consts::LN_2;

/// erf(z) / z - 1 by z^2, for z up to 0.94.
const ERF_SMALL: [f32; 7] = [
    0.128_379_17,
    -0.376_126_32,
    0.112_836_74,
    -0.026_858_186,
    0.005_197_991_6,
    -0.000_810_808_15,
    8.223_982e-5,
];

/// The error function to 1.5 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let z = clamp(x.abs(), 0.0, 4.0);
    let small = z.mul_add(poly(z * z, &ERF_SMALL), z);
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
    let large = 1.0 - exp_normal(poly(z, &Q));
    (if z < 0.94 { small } else { large }).copysign(x)
}

/// The error function to 1.5 ulp and e^(-x^2), of which it is made.
#[inline(always)]
pub fn erf_exp(x: f32) -> (f32, f32) {
    let z = clamp(x.abs(), 0.0, 4.0);
    let small = z.mul_add(poly(z * z, &ERF_SMALL), z);
    let e = exp(-x * x);
    // e^(z^2) erfc(z) by z - 1.5, from 0.92 to 4.
    const R: [f32; 8] = [
        0.321_585_2,
        -0.163_624_03,
        0.076_162_2,
        -0.032_894_18,
        0.013_305_89,
        -0.005_324_81,
        0.002_071_09,
        -0.000_470_06,
    ];
    let large = (-e).mul_add(poly(z - 1.5, &R), 1.0);
    ((if z < 0.94 { small } else { large }).copysign(x), e)
}

/// The area under the standard normal density left of x, as exact as float16 and bfloat16 ask for:
/// to 2^-15.8 of it where |x| is at most 12.875; beyond, 0 or 1.
#[inline(always)]
pub fn ndtr_half(x: f32) -> f32 {
    // The binary logarithm of the area left of -z, from 0 to 12.9.
    const LOG: [f32; 10] = [
        -1.000_024,
        -1.151_078_5,
        -0.458_576_23,
        -0.054_139_47,
        0.008_744_715,
        -0.001_039_486_6,
        8.624_009e-5,
        -4.674_950_6e-6,
        1.478_040_7e-7,
        -2.058_072_2e-9,
    ];
    // 2^r for |r| <= 1/2, to 2^-18.5.
    const EXP: [f32; 5] = [
        1.000_000_1,
        0.693_121,
        0.240_218_65,
        0.055_922_028,
        0.009_685_711,
    ];
    let z = x.abs();
    let (z2, c) = (z * z, &LOG);
    let z4 = z2 * z2;
    // In pairs: what waits for one another is short, and more elements are under way.
    let low = z2.mul_add(z.mul_add(c[3], c[2]), z.mul_add(c[1], c[0]));
    let high = z2.mul_add(z.mul_add(c[7], c[6]), z.mul_add(c[5], c[4]));
    let top = z4.mul_add(z.mul_add(c[9], c[8]), high);
    let t = z4.mul_add(top, low);
    let m = t + MAGIC;
    let r = t - (m - MAGIC);
    let (r2, c) = (r * r, &EXP);
    let y = r2.mul_add(
        r2.mul_add(c[4], r.mul_add(c[3], c[2])),
        r.mul_add(c[1], c[0]),
    );
    // The low bits of the sum are what the exponent grows by: it stays normal.
    let y = f32::from_bits(y.to_bits().wrapping_add(m.to_bits() << 23));
    let y = if z <= 12.875 { y } else { 0.0 };
    if x < 0.0 {
        y
    } else {
        1.0 - y
    }
}

// From here on: float64 inside, half an ulp.

#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    // From here on it is below what a float32 holds.
    const END: f64 = 10.1;
    let z = clamp_d(x.abs() as f64, 0.0, END);
    // e^(z^2) erfc(z) as a polynomial in (z - 4) / (z + 4), to 2^-37.
    const P: [f64; 14] = [
        0.136_999_457_624_536_52,
        -0.259_068_048_743_129_66,
        0.218_719_679_025_962_5,
        -0.164_257_818_167_711_18,
        0.108_963_172_972_026_9,
        -0.063_107_782_232_600_68,
        0.031_299_141_074_039_596,
        -0.012_844_234_266_470_059,
        0.004_059_432_798_541_505_5,
        -0.000_798_322_510_174_462_8,
        -1.791_194_901_845_236_3e-5,
        8.041_441_489_666_477e-5,
        -2.861_509_838_754_319e-5,
        -9.852_040_752_234_349e-6,
    ];
    let y = exp_d(-(z * z)) * poly_d((z - 4.0) / (z + 4.0), &P);
    let y = if z >= END { 0.0 } else { y };
    (if x < 0.0 { 2.0 - y } else { y }) as f32
}

/// erfinv(x) / x by w - 2.75 for w = -ln(1 - x^2) up to 5.5, to 2^-33.
const ERFINV_CENTRE: [f64; 13] = [
    1.562_789_611_234_358_9,
    0.244_330_258_507_649_06,
    -0.005_035_975_914_318_458_4,
    -0.001_038_580_010_679_590_3,
    0.000_209_066_876_117_126_46,
    -9.488_147_494_446_713e-6,
    -2.569_478_464_318_028_6e-6,
    4.839_689_391_154_486e-7,
    -7.927_832_644_397_301e-9,
    -8.537_143_911_712_937e-9,
    1.049_853_777_098_533_9e-9,
    6.668_466_023_597_069e-11,
    -1.897_297_916_040_717e-11,
];
/// The same by s - 3.25 for s = sqrt w from 2.34 to 4.2, to 2^-30.
const ERFINV_TAIL: [f64; 12] = [
    3.083_885_609_530_53,
    1.005_258_965_092_602,
    0.005_370_996_815_172_86,
    -0.003_751_176_878_786_245,
    0.002_490_310_119_646_080_7,
    -0.001_688_151_761_448_086_6,
    0.000_958_929_934_023_347_1,
    -0.000_357_014_571_427_449_7,
    1.158_155_796_226_845e-5,
    7.479_660_896_602_242e-5,
    -3.539_420_477_525_149e-5,
    3.959_442_056_641_443e-6,
];

/// erfinv(x) / x for 1 - x^2 = q, which is at least e^-17.
#[inline(always)]
fn erfinv_slope(q: f64) -> f64 {
    let w = log2_d(q) * -LN_2;
    let b = poly_d(w.sqrt() - 3.25, &ERFINV_TAIL);
    if w < 5.5 {
        erfinv_centre(w)
    } else {
        b
    }
}

#[inline(always)]
fn erfinv_centre(w: f64) -> f64 {
    poly_d(w - 2.75, &ERFINV_CENTRE)
}

/// Whether `erfinv` of x is not [`erfinv_near`]: beyond this w might be more than 5.5.
#[inline(always)]
pub fn is_outer(x: f32) -> bool {
    x.abs() > 0.9979
}

/// The inverse of erf, to 0.52 ulp where x is not outer.
#[inline(always)]
pub fn erfinv_near(x: f32) -> f32 {
    let d = x as f64;
    (d * erfinv_centre(log2_d(d.mul_add(-d, 1.0)) * -LN_2)) as f32
}

/// The inverse of erf, to 0.52 ulp; infinite at -1 and 1, NaN beyond.
#[inline(always)]
pub fn erfinv(x: f32) -> f32 {
    let d = x as f64;
    // 1 - x^2 is exact.
    let y = (d * erfinv_slope(d.mul_add(-d, 1.0))) as f32;
    let y = if x.abs() == 1.0 {
        f32::INFINITY.copysign(x)
    } else {
        y
    };
    if x.abs() <= 1.0 {
        y
    } else {
        f32::NAN
    }
}

/// Whether `ndtri` of p is left to the function of float64.
#[inline(always)]
pub fn is_tiny(p: f32) -> bool {
    (p < 1e-7) & (p > 0.0)
}

/// The x left of which the standard normal density has the area p, to 0.52 ulp where p is not
/// tiny.
#[inline(always)]
pub fn ndtri_near(p: f32) -> f32 {
    let d = p as f64;
    let u = d + d - 1.0;
    let y = (u * erfinv_slope(4.0 * d * (1.0 - d)) * std::f64::consts::SQRT_2) as f32;
    let y = if p == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if p == 1.0 { f32::INFINITY } else { y };
    if (0.0..=1.0).contains(&p) {
        y
    } else {
        f32::NAN
    }
}

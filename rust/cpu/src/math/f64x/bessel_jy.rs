//! Bessel functions of orders 0 and 1 of a real argument, to 1e-15 of their size near a crest: up to 8 by
//! polynomials in x^2, beyond by amplitude and phase (DLMF 10.17). Fitted by interpolation at
//! Chebyshev's points in 40 digits.

use super::log::ln;
use super::parts::{poly, two_product};
use super::trig::sin_cos_near;
use std::f64::consts::{FRAC_2_PI, PI};

/// The squares of the first two zeros of J0, each in two parts.
const J0_ZEROS: [(f64, f64); 2] = [
    (5.783_185_962_946_784, 4.123_247_343_506_204e-16),
    (30.471_262_343_662_087, -2.366_534_485_750_659e-16),
];
/// The same of J1, beside 0.
const J1_ZEROS: [(f64, f64); 2] = [
    (14.681_970_642_123_893, -9.858_177_825_793_294e-17),
    (49.218_456_321_694_6, 5.086_354_069_436_341e-16),
];
/// J0 over its zeros in z = x^2, by z / 32 - 1.
const J0_NEAR: [f64; 17] = [
    0.001_143_493_774_376_254_5,
    -0.002_119_794_289_479_692,
    0.001_563_643_164_593_166_1,
    -0.000_641_539_064_640_612_7,
    0.000_169_772_007_139_978_44,
    -3.157_342_540_223_125e-5,
    4.366_932_324_640_495e-6,
    -4.677_128_021_500_441e-7,
    3.998_839_345_546_359_5e-8,
    -2.794_862_919_018_300_6e-9,
    1.627_648_933_419_121e-10,
    -8.023_536_504_698_471e-12,
    3.392_348_520_960_227_4e-13,
    -1.244_036_519_926_806_9e-14,
    3.995_431_878_450_121e-16,
    -1.136_049_159_348_897_9e-17,
    2.865_730_728_890_263e-19,
];
/// J1 / x over its zeros, likewise.
const J1_NEAR: [f64; 16] = [
    0.000_194_989_369_858_956_25,
    -0.000_269_752_274_671_636_8,
    0.000_158_600_167_993_698_74,
    -5.408_003_239_085_507e-5,
    1.224_217_365_301_561e-5,
    -1.989_093_515_914_14e-6,
    2.442_522_260_752_042e-7,
    -2.352_192_254_633_431_4e-8,
    1.826_854_769_532_134e-9,
    -1.169_693_238_592_321_7e-10,
    6.284_733_827_928_662e-12,
    -2.875_548_653_901_550_3e-13,
    1.134_312_541_756_116_7e-14,
    -3.898_565_987_491_105_7e-16,
    1.181_146_443_075_705_3e-17,
    -3.161_838_696_956_966_5e-19,
];
/// Y0 - 2 / pi ln(x) J0, likewise.
const Y0_NEAR: [f64; 18] = [
    -0.382_250_654_459_425,
    -0.828_435_890_360_458_7,
    1.647_096_478_874_546_6,
    0.144_126_323_693_024_42,
    -1.077_547_733_821_599_5,
    0.672_177_078_343_172_3,
    -0.218_957_470_961_716_28,
    0.046_367_047_681_347_105,
    -0.007_025_741_057_270_969_5,
    0.000_806_158_606_055_050_6,
    -7.279_541_882_454_126e-5,
    5.321_318_633_761_208e-6,
    -3.218_507_844_592_323e-7,
    1.639_106_524_016_087_5e-8,
    -7.130_461_466_149_226e-10,
    2.681_823_743_550_234_4e-11,
    -8.840_111_900_737_966e-13,
    2.557_661_621_890_746_6e-14,
];
/// (Y1 - 2 / pi (ln(x) J1 - 1 / x)) / x, likewise.
const Y1_NEAR: [f64; 18] = [
    0.070_759_858_821_180_05,
    -0.243_377_430_791_931_14,
    0.023_367_571_720_993_584,
    0.235_072_092_066_697_55,
    -0.196_398_398_599_304_25,
    0.078_547_869_222_425_45,
    -0.019_628_756_833_099_423,
    0.003_422_490_739_918_045_5,
    -0.000_443_817_343_511_498_76,
    4.467_433_012_914_377_5e-5,
    -3.600_999_874_357_817_7e-6,
    2.380_492_991_372_727_2e-7,
    -1.315_332_255_112_414_8e-8,
    6.169_742_606_118_45e-10,
    -2.488_750_990_528_334e-11,
    8.728_814_257_439_169e-13,
    -2.695_138_910_728_523_2e-14,
    7.338_090_945_282_559e-16,
];
/// What multiplies the cosine in J0, by 128 / x^2 - 1.
const P0: [f64; 14] = [
    0.999_457_275_788_251_9,
    -0.000_536_367_319_213_003_3,
    6.137_416_080_111_143e-6,
    -2.052_744_816_021_978e-7,
    1.280_376_142_138_991_1e-8,
    -1.212_117_891_302_726_2e-9,
    1.550_057_384_945_737_7e-10,
    -2.488_379_234_943_034_3e-11,
    4.786_833_648_457_065e-12,
    -1.061_860_361_827_791e-12,
    2.454_626_647_456_918e-13,
    -6.563_491_590_174_781e-14,
    3.334_599_531_685_773e-14,
    -1.134_692_681_529_166_3e-14,
];
/// What multiplies minus the sine, times x.
const Q0: [f64; 14] = [
    -0.124_440_911_036_108_16,
    0.000_546_651_927_947_513_6,
    -1.181_711_066_073_177_6e-5,
    5.684_971_885_449_538e-7,
    -4.534_973_594_868_882e-8,
    5.146_228_618_919_075e-9,
    -7.575_872_758_461_843e-10,
    1.362_452_803_693_964e-10,
    -2.883_874_658_288_97e-11,
    6.934_511_868_227_323e-12,
    -1.679_806_850_452_411_1e-12,
    4.743_918_565_467_509e-13,
    -2.729_058_891_731_019e-13,
    9.756_113_507_128_432e-14,
];
/// What multiplies the cosine in J1, by 128 / x^2 - 1.
const P1: [f64; 14] = [
    1.000_907_026_278_082_1,
    0.000_898_804_941_670_556_4,
    -7.959_694_698_440_03e-6,
    2.453_676_622_679_369e-7,
    -1.470_851_297_087_180_9e-8,
    1.360_305_472_451_245_4e-9,
    -1.713_108_363_257_052e-10,
    2.720_521_607_145_160_6e-11,
    -5.190_987_549_128_526e-12,
    1.144_300_035_044_197_6e-12,
    -2.635_099_411_586_755e-13,
    7.019_004_954_768_849e-14,
    -3.540_461_352_565_741_6e-14,
    1.201_272_177_544_996_5e-14,
];
/// What multiplies minus the sine, times x.
const Q1: [f64; 14] = [
    0.374_214_992_219_591_8,
    -0.000_769_716_705_764_356_9,
    1.456_961_480_935_691e-5,
    -6.633_568_564_937_367e-7,
    5.136_106_795_396_337_6e-8,
    -5.720_887_751_116_045e-9,
    8.315_594_957_016_384e-10,
    -1.481_767_246_888_408e-10,
    3.114_226_481_045_957e-11,
    -7.446_940_085_047_187e-12,
    1.798_464_167_692_092e-12,
    -5.061_753_256_584_603e-13,
    2.891_071_172_176_185_5e-13,
    -1.030_813_867_196_301_1e-13,
];

/// A polynomial with two zeros of x^2 taken out, where x is at most 8.
#[inline(always)]
fn near<const N: usize>(x: f64, zeros: &[(f64, f64); 2], c: &[f64; N]) -> f64 {
    let (z, low) = two_product(x, x);
    let [a, b] = *zeros;
    ((z - a.0) + (low - a.1)) * ((z - b.0) + (low - b.1)) * poly(z.mul_add(0.031_25, -1.0), c)
}

/// The factors of cosine and sine from 8 on, each over sqrt(pi x), and the sum and the difference of sine and
/// cosine.
#[inline(always)]
fn wave<const N: usize>(x: f64, p: &[f64; N], q: &[f64; N]) -> (f64, f64, f64, f64) {
    let w = 1.0 / x;
    let t = (128.0 * w).mul_add(w, -1.0);
    let size = 1.0 / (PI * x).sqrt();
    let (s, c) = sin_cos_near(x);
    (poly(t, p) * size, poly(t, q) * w * size, s + c, s - c)
}

/// Up to here, on either side, polynomials reach.
pub const CLOSE: f64 = 8.0;

/// `x`, or where that is not above 8 a number for which waves are defined.
#[inline(always)]
fn beyond(x: f64) -> f64 {
    if x > 8.0 {
        x
    } else {
        8.0
    }
}

/// `x`, or where that is above 8, 8.
#[inline(always)]
fn within(x: f64) -> f64 {
    if x > 8.0 {
        8.0
    } else {
        x
    }
}

/// A wave ends in 0.
#[inline(always)]
fn choose(x: f64, near: f64, far: f64) -> f64 {
    let far = if x < f64::INFINITY { far } else { 0.0 };
    if x > 8.0 {
        far
    } else {
        near
    }
}

/// The function of the first kind of order 0, where x is not far.
#[inline(always)]
pub fn j0_near(x: f64) -> f64 {
    let x = x.abs();
    let (p, q, sum, difference) = wave(beyond(x), &P0, &Q0);
    let far = p.mul_add(sum, -(q * difference));
    choose(x, j0_close(x), far)
}

/// [`j0_near`] of what is at most [`CLOSE`].
#[inline(always)]
pub fn j0_close(x: f64) -> f64 {
    let x = x.abs();
    // Its series, so that it is 1 at 0.
    let q = 0.25 * x * x;
    let top = q.mul_add(q.mul_add(0.25, -1.0), 1.0);
    let close = near(within(x), &J0_ZEROS, &J0_NEAR);
    if x < 0.003 {
        top
    } else {
        close
    }
}

/// The function of the first kind of order 1, where x is not far.
#[inline(always)]
pub fn j1_near(x: f64) -> f64 {
    let z = x.abs();
    let (p, q, sum, difference) = wave(beyond(z), &P1, &Q1);
    let far = p.mul_add(difference, q * sum);
    let y = choose(z, z * near(within(z), &J1_ZEROS, &J1_NEAR), far);
    if x < 0.0 {
        -y
    } else {
        y
    }
}

/// [`j1_near`] of what is at most [`CLOSE`].
#[inline(always)]
pub fn j1_close(x: f64) -> f64 {
    let z = x.abs();
    let y = z * near(within(z), &J1_ZEROS, &J1_NEAR);
    if x < 0.0 {
        -y
    } else {
        y
    }
}

/// What functions of the second kind are at and below 0.
#[inline(always)]
fn second(x: f64, y: f64) -> f64 {
    let y = if x > 0.0 { y } else { f64::NAN };
    if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        y
    }
}

/// The function of the second kind of order 0, where x is not far.
#[inline(always)]
pub fn y0_near(x: f64) -> f64 {
    let (p, q, sum, difference) = wave(beyond(x), &P0, &Q0);
    let far = p.mul_add(difference, q * sum);
    second(x, choose(x, y0_part(x), far))
}

/// [`y0_near`] of what is at most [`CLOSE`].
#[inline(always)]
pub fn y0_close(x: f64) -> f64 {
    second(x, y0_part(x))
}

#[inline(always)]
fn y0_part(x: f64) -> f64 {
    let z = within(x);
    let rest = poly((z * z).mul_add(0.031_25, -1.0), &Y0_NEAR);
    (FRAC_2_PI * ln(z)).mul_add(near(z, &J0_ZEROS, &J0_NEAR), rest)
}

/// The function of the second kind of order 1, where x is not far.
#[inline(always)]
pub fn y1_near(x: f64) -> f64 {
    let (p, q, sum, difference) = wave(beyond(x), &P1, &Q1);
    let far = q.mul_add(difference, -(p * sum));
    second(x, choose(x, y1_part(x), far))
}

/// [`y1_near`] of what is at most [`CLOSE`].
#[inline(always)]
pub fn y1_close(x: f64) -> f64 {
    second(x, y1_part(x))
}

#[inline(always)]
fn y1_part(x: f64) -> f64 {
    let z = within(x);
    let rest = z * poly((z * z).mul_add(0.031_25, -1.0), &Y1_NEAR);
    let j = z * near(z, &J1_ZEROS, &J1_NEAR);
    FRAC_2_PI.mul_add(ln(z).mul_add(j, -1.0 / z), rest)
}

//! The error function and its relatives.

use super::exp::{exp, exp_normal, exp_parts, exp_scaled};
use super::log::{ln, log1p};
use super::parts::{clamp, poly, scale, two_product, two_sum};

/// erf(z) - z = z * (P0 + z^2 * ...), up to 0.85.
#[inline(always)]
fn erf_small(z: f64) -> f64 {
    const P: [f64; 12] = [
        -0.376_126_389_031_837_54,
        0.112_837_916_709_551_25,
        -0.026_866_170_645_130_943,
        0.005_223_977_625_434_15,
        -0.000_854_832_702_237_173_4,
        0.000_120_553_328_962_255_15,
        -1.492_564_605_168_137_7e-5,
        1.646_197_138_156_010_1e-6,
        -1.636_266_775_249_754_6e-7,
        1.476_030_757_607_944e-8,
        -1.184_684_364_008_863_5e-9,
        6.943_564_170_204_282e-11,
    ];
    const LEAD: f64 = 0.128_379_167_095_512_6;
    let q = z * z;
    z.mul_add(q.mul_add(poly(q, &P), LEAD), z)
}

/// e^(z^2) erfc(z) for z >= 0.45: a polynomial in (z - 4) / (z + 4), over z + 4; in two
/// parts.
#[inline(always)]
fn erfcx_large(z: f64) -> (f64, f64) {
    const P: [f64; 24] = [
        1.095_995_661_000_491,
        -0.976_548_729_080_882,
        0.773_208_702_265_237_1,
        -0.540_853_831_313_236_2,
        0.330_851_587_878_007_6,
        -0.174_010_937_239_886_25,
        0.076_381_514_909_499_92,
        -0.026_370_053_341_277_778,
        0.006_112_055_652_256_071,
        -0.000_280_958_855_490_358_34,
        -0.000_455_052_651_224_002_5,
        0.000_176_812_756_776_518_5,
        -3.635_357_978_463_865_3e-6,
        -1.886_065_123_391_995_2e-5,
        4.695_093_709_461_399e-6,
        1.423_628_556_138_821_3e-6,
        -8.478_119_776_786_113e-7,
        -7.469_959_966_515_958e-8,
        1.265_774_913_128_156e-7,
        2.061_201_246_357_256_8e-10,
        -1.755_364_221_315_327_5e-8,
        3.084_343_614_436_144_5e-10,
        1.774_967_484_817_533_5e-9,
        5.788_204_559_195_5e-11,
    ];
    // The slope of the polynomial, for what rounding takes off its argument.
    const D: [f64; 5] = [-0.9793, 1.4852, -1.5571, 1.7059, -1.0966];
    // What the first coefficients have beyond their float64.
    const LOW: [f64; 4] = [5.8e-17, -1.63e-17, 3.7e-17, 1.9e-17];
    let (d, d_low) = two_sum(4.0, z);
    let w = 1.0 / d;
    let e = (-w).mul_add(d_low, (-w).mul_add(d, 1.0));
    let t = (-8.0f64).mul_add(w, 1.0);
    let t_low = (-8.0f64).mul_add(w * e, (-8.0f64).mul_add(w, 1.0 - t));
    let p = poly(t, &P);
    let p_low = t_low.mul_add(poly(t, &D), e.mul_add(p, poly(t, &LOW)));
    let (v, v_low) = two_product(w, p);
    (v, w.mul_add(p_low, v_low))
}

/// erfc(z) for z >= 0.45.
#[inline(always)]
fn erfc_large(z: f64) -> f64 {
    // At the bound the exponential is zero.
    let z = clamp(z, 0.0, 27.306);
    let q = z * z;
    falling(q, z.mul_add(z, -q), erfcx_large(z))
}

/// A number in two parts times e^-(q + low), for q up to 745.7.
#[inline(always)]
fn falling(q: f64, low: f64, (v, v_low): (f64, f64)) -> f64 {
    let (y, y_low, magic) = exp_parts(-q, -low);
    scale(y.mul_add(v, y.mul_add(v_low, y_low * v)), magic)
}

/// The error function to 2 ulp.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    // (z + 2.5) e^(z^2) erfc(z) by (z - 2.5) / (z + 2.5), from 0.84 to 6, to 2^-62 of erf(z).
    const P: [f64; 14] = [
        1.054_031_820_305_718,
        -0.804_651_849_439_154_4,
        0.453_914_116_647_764_9,
        -0.171_251_145_249_302_27,
        0.028_361_550_160_862_03,
        0.008_393_045_011_257_464,
        -0.004_818_781_219_558_913,
        -0.000_439_208_931_458_572_94,
        0.000_702_545_902_111_478_5,
        5.738_899_047_085_954_5e-5,
        -0.000_115_530_911_913_698_1,
        -2.494_428_080_155_601_2e-5,
        1.286_019_570_333_823_2e-5,
        5.324_946_632_962_343e-6,
    ];
    let z = x.abs();
    // At the bound erf is 1.
    let w = if z > 6.0 { 6.0 } else { z };
    let q = 1.0 / (w + 2.5);
    let e = exp_normal(-w * w) * q;
    let large = (-e).mul_add(poly((-5.0f64).mul_add(q, 1.0), &P), 1.0);
    (if z < 0.85 { erf_small(z) } else { large }).copysign(x)
}

/// 1 - erf(x) to 2.5 ulp.
#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let z = x.abs();
    let y = erfc_large(z);
    let far = if x < 0.0 { 2.0 - y } else { y };
    if z < 0.47 {
        1.0 - erf_small(x)
    } else {
        far
    }
}

/// The error function and e^(-x^2).
#[inline(always)]
pub fn erf_exp(x: f64) -> (f64, f64) {
    (erf(x), exp(-x * x))
}

/// e^(z^2) erfc(z) for z >= 20: the asymptotic series (DLMF 7.12.1).
#[inline(always)]
fn erfcx_far(z: f64) -> f64 {
    const P: [f64; 8] = [
        1.0,
        -0.5,
        0.75,
        -1.875,
        6.562_5,
        -29.531_25,
        162.421_875,
        -1_055.742_187_5,
    ];
    const ROOT: f64 = 0.564_189_583_547_756_3;
    let w = 1.0 / z;
    ROOT * w * poly(w * w, &P)
}

/// e^(x^2) erfc(x) to 3 ulp.
#[inline(always)]
pub fn erfcx(x: f64) -> f64 {
    let z = x.abs();
    let (v, v_low) = erfcx_large(clamp(z, 0.0, 20.0));
    let v = if z < 20.0 { v + v_low } else { erfcx_far(z) };
    // Twice e^(x^2) less that of -x; at the bound it is infinite.
    let w = if x < 0.45 { clamp(z, 0.0, 28.0) } else { 0.0 };
    let q = w * w;
    let e = exp_scaled(q, w.mul_add(w, -q), 0.0);
    let y = if x < 0.0 { (e + e) - v } else { v };
    if z < 0.45 {
        e * (1.0 - erf_small(x))
    } else {
        y
    }
}

/// ln of the area under the standard normal density left of x, to 4 ulp.
#[inline(always)]
pub fn log_ndtr(x: f64) -> f64 {
    let u = x * std::f64::consts::FRAC_1_SQRT_2;
    let z = u.abs();
    let v = erfcx_large(clamp(z, 0.0, 27.306));
    // The tail, whose logarithm is that of erfcx less the square.
    let near = if z < 20.0 { v.0 + v.1 } else { erfcx_far(z) };
    let tail = (-0.5 * x).mul_add(x, ln(0.5 * near));
    // Half the square of x itself, since rounding `u` would be magnified; at the bound all is zero.
    let x = clamp(x, 0.0, 38.61);
    let (q, low) = two_product(0.5 * x, x);
    let far = falling(q, low, v);
    let right = if z < 0.47 { 1.0 - erf_small(u) } else { far };
    let rest = log1p(-0.5 * right);
    if u < -0.46 {
        tail
    } else {
        rest
    }
}

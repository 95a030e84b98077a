//! Trigonometry.

use super::parts::{fast_sum, poly, two_product, two_sum, MAGIC};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI};

/// What pi / 2 has beyond its float64, and beyond that.
const HALF_PI_2: f64 = 6.123_233_995_736_766e-17;
const HALF_PI_3: f64 = -1.497_384_904_859_169_8e-33;

/// Up to here the vector code reduces angles; beyond, the system's library.
const FAR: f64 = 1_073_741_824.0;

/// Whether the sine, cosine and tangent of x are left to the system's library.
#[inline(always)]
pub fn is_far(x: f64) -> bool {
    (x.abs() > FAR) & (x.abs() < f64::INFINITY)
}

/// Splits x = n * pi / 2 + r + low with |r| <= pi / 4; returns r, low and bits that end in n.
#[inline(always)]
fn quarter_turns(x: f64) -> (f64, f64, u64) {
    let m = x.mul_add(FRAC_2_PI, MAGIC);
    let n = m - MAGIC;
    // The first difference is exact.
    let high = n.mul_add(-FRAC_PI_2, x);
    let (w, w_low) = two_product(n, -HALF_PI_2);
    let (r, low) = two_sum(high, w);
    (r, n.mul_add(-HALF_PI_3, low + w_low), m.to_bits())
}

/// Sine and cosine of r + low for |r| <= pi / 4, each in two parts.
#[inline(always)]
fn sin_cos(r: f64, low: f64) -> ((f64, f64), (f64, f64)) {
    const S: [f64; 6] = [
        -0.166_666_666_666_666_66,
        0.008_333_333_333_330_946,
        -0.000_198_412_698_367_542,
        2.755_731_610_028_369_5e-6,
        -2.505_113_137_222_863e-8,
        1.591_809_523_669_627_2e-10,
    ];
    const C: [f64; 6] = [
        0.041_666_666_666_666_664,
        -0.001_388_888_888_888_738_9,
        2.480_158_729_876_295e-5,
        -2.755_731_727_031_051e-7,
        2.087_614_597_263_508e-9,
        -1.138_261_111_902_563_1e-11,
    ];
    let z = r * r;
    let half = 0.5 * z;
    let s = fast_sum(r, (r * z).mul_add(poly(z, &S), low.mul_add(-half, low)));
    let w = 1.0 - half;
    let c = (1.0 - w) - half + (z * z).mul_add(poly(z, &C), -(r * low));
    (s, fast_sum(w, c))
}

#[inline(always)]
pub fn sin_near(x: f64) -> f64 {
    let (r, low, n) = quarter_turns(x);
    let ((s, _), (c, _)) = sin_cos(r, low);
    let y = if n & 1 == 0 { s } else { c };
    let y = f64::from_bits(y.to_bits() ^ (n & 2) << 62);
    // Keeps the sign of zero.
    if x == 0.0 {
        x
    } else {
        y
    }
}

#[inline(always)]
pub fn cos_near(x: f64) -> f64 {
    let (r, low, n) = quarter_turns(x);
    let ((s, _), (c, _)) = sin_cos(r, low);
    let y = if n & 1 == 0 { c } else { s };
    f64::from_bits(y.to_bits() ^ (n.wrapping_add(1) & 2) << 62)
}

/// Sine and cosine at once.
#[inline(always)]
pub fn sin_cos_near(x: f64) -> (f64, f64) {
    let (r, low, n) = quarter_turns(x);
    let ((s, _), (c, _)) = sin_cos(r, low);
    let (sin, cos) = if n & 1 == 0 { (s, c) } else { (c, s) };
    (
        f64::from_bits(sin.to_bits() ^ (n & 2) << 62),
        f64::from_bits(cos.to_bits() ^ (n.wrapping_add(1) & 2) << 62),
    )
}

#[inline(always)]
pub fn tan_near(x: f64) -> f64 {
    let (r, low, n) = quarter_turns(x);
    let ((s, s_low), (c, c_low)) = sin_cos(r, low);
    let even = n & 1 == 0;
    let (num, num_low) = if even { (s, s_low) } else { (-c, -c_low) };
    let (den, den_low) = if even { (c, c_low) } else { (s, s_low) };
    let y = num / den;
    let rest = (-y).mul_add(den, num) + (-y).mul_add(den_low, num_low);
    let y = if y.abs() < 1e200 { y + rest / den } else { y };
    if x == 0.0 {
        x
    } else {
        y
    }
}

macro_rules! total {
    ($($(#[$doc:meta])* $name:ident = $near:ident, $far:path;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(x: f64) -> f64 {
            if is_far(x) {
                $far(x)
            } else {
                $near(x)
            }
        }
    )*};
}
total! {
    /// The sine to 1 ulp.
    sin = sin_near, f64::sin;
    /// The cosine to 1 ulp.
    cos = cos_near, f64::cos;
    /// The tangent to 2 ulp.
    tan = tan_near, f64::tan;
}

/// asin(z) = s + s * p for z up to 1/2, and pi / 2 - 2 (s + s * p) beyond: returns s and s * p.
#[inline(always)]
fn asin_parts(z: f64) -> (f64, f64) {
    // (asin(sqrt w) / sqrt w - 1) / w up to 1/4.
    const P: [f64; 13] = [
        0.166_666_666_666_666_69,
        0.074_999_999_999_984_33,
        0.044_642_857_146_355_43,
        0.030_381_944_138_531_247,
        0.022_372_172_942_149_89,
        0.017_352_392_720_869_973,
        0.013_971_212_973_552_933,
        0.011_479_177_415_184_906,
        0.010_322_814_350_185_78,
        0.005_457_506_718_640_358,
        0.017_400_879_442_694_02,
        -0.014_851_887_071_247_204,
        0.028_757_851_367_421_566,
    ];
    let near = z <= 0.5;
    let w = if near { z * z } else { 0.5 * (1.0 - z) };
    let s = if near { z } else { w.sqrt() };
    (s, s * (w * poly(w, &P)))
}

/// The arc sine to 2 ulp; NaN beyond -1 and 1.
#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let z = x.abs();
    let (s, t) = asin_parts(z);
    let far = FRAC_PI_2 - (2.0 * s - (HALF_PI_2 - 2.0 * t));
    (if z <= 0.5 { s + t } else { far }).copysign(x)
}

/// The arc cosine to 2 ulp; NaN beyond -1 and 1.
#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let (s, t) = asin_parts(x.abs());
    let sign = |v: f64| f64::from_bits(v.to_bits() ^ (x.to_bits() & 1 << 63));
    let near = FRAC_PI_2 - (sign(s) - (HALF_PI_2 - sign(t)));
    let far = 2.0 * (s + t);
    let far = if x < 0.0 {
        PI - (2.0 * s - (2.0 * HALF_PI_2 - 2.0 * t))
    } else {
        far
    };
    if x.abs() <= 0.5 {
        near
    } else {
        far
    }
}

/// The angle of the point (x, y), both at least zero and not both infinite.
#[inline(always)]
fn angle(y: f64, x: f64) -> (f64, f64) {
    // (atan(sqrt z) / sqrt z - 1) / z up to 0.66^2.
    const P: [f64; 16] = [
        -0.333_333_333_333_333_3,
        0.199_999_999_999_998_5,
        -0.142_857_142_856_849_36,
        0.111_111_111_088_309_86,
        -0.090_909_089_975_557_52,
        0.076_923_053_716_555_14,
        -0.066_666_286_128_004_35,
        0.058_819_190_988_489_08,
        -0.052_595_982_448_305_39,
        0.047_404_043_105_718_816,
        -0.042_508_673_911_706_756,
        0.036_709_647_257_429_534,
        -0.028_603_026_351_275_818,
        0.018_104_469_071_508_804,
        -0.007_925_187_276_386_322,
        0.001_737_310_518_522_033_8,
    ];
    // From pi / 4 and pi / 2 where y / x is beyond 0.66 and 1 / 0.66.
    let middle = y > 0.66 * x;
    let steep = 0.66 * y > x;
    let num = if middle { y - x } else { y };
    let num = if steep { -x } else { num };
    let den = if middle { y + x } else { x };
    let den = if steep { y } else { den };
    let t = num / if den == 0.0 { 1.0 } else { den };
    let z = t * t;
    let base = if middle { FRAC_PI_4 } else { 0.0 };
    let base = if steep { FRAC_PI_2 } else { base };
    let low = if middle { 0.5 * HALF_PI_2 } else { 0.0 };
    let low = if steep { HALF_PI_2 } else { low };
    let rest = (t * z).mul_add(poly(z, &P), low);
    let (a, b) = (base + t, t - ((base + t) - base));
    (a, b + rest)
}

/// The arc tangent to 2 ulp.
#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let (a, low) = angle(x.abs(), 1.0);
    (a + low).copysign(x)
}

/// The angle of the point (x, y) to 2 ulp.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (v, u) = (y.abs(), x.abs());
    // Two infinities have the ratio one. Large numbers are halved, since they are added.
    let both = (v == f64::INFINITY) & (u == f64::INFINITY);
    let large = (v > 1e300) | (u > 1e300);
    let scale = if large { 0.25 } else { 1.0 };
    let (v, u) = if both {
        (1.0, 1.0)
    } else {
        (v * scale, u * scale)
    };
    let (a, low) = angle(v, u);
    let back = PI - (a - (2.0 * HALF_PI_2 - low));
    let r = if x.is_sign_negative() { back } else { a + low };
    let r = r.copysign(y);
    if x.is_nan() | y.is_nan() {
        f64::NAN
    } else {
        r
    }
}

//! Sine, cosine and tangent.

use super::{poly, poly_d, MAGIC, MAGIC_D};
use std::f64::consts::FRAC_PI_2;

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

/// Up to here the vector code reduces angles, with an error of 2^-40 at most.
const FAR: f32 = 131_072.0;

/// Whether the sine, cosine and tangent of x go through the table of quarter turns.
#[inline(always)]
pub fn is_far(x: f32) -> bool {
    (x.abs() > FAR) & (x.abs() < f32::INFINITY)
}

/// Splits x = (n + 4 k) * pi / 2 + r with |r| <= pi / 4; returns r and bits that end in n. Up to
/// 2^30 by a fused remainder with pi / 2 in 106 bits.
#[inline(always)]
fn turns_d(x: f32) -> (f64, u64) {
    let d = x as f64;
    let m = d.mul_add(std::f64::consts::FRAC_2_PI, MAGIC_D);
    let n = m - MAGIC_D;
    // The second number is what pi / 2 has beyond its float64.
    let r = n.mul_add(-6.123_233_995_736_766e-17, n.mul_add(-FRAC_PI_2, d));
    (r, m.to_bits())
}

/// As [`turns_d`] for any finite number: beyond 2^30, x is a 24-bit integer times a power of two
/// whose quarter turns are tabulated, so that it is reduced exactly.
fn quarter_turns(x: f32) -> (f64, u64) {
    if x.abs() <= 1_073_741_824.0 {
        return turns_d(x);
    }
    let bits = x.to_bits();
    let k = ((bits >> 23).wrapping_sub(150) & 127) as usize;
    let whole = (bits & 0x7f_ffff | 0x80_0000) as i32;
    let whole = (if x < 0.0 { -whole } else { whole }) as f64;
    let turns = whole * QUARTERS[0][k];
    let m2 = turns + MAGIC_D;
    let rest = whole.mul_add(QUARTERS[1][k], turns - (m2 - MAGIC_D));
    let m3 = rest + MAGIC_D;
    let rest = whole.mul_add(QUARTERS[2][k], rest - (m3 - MAGIC_D));
    (rest * FRAC_PI_2, m2.to_bits().wrapping_add(m3.to_bits()))
}

/// As [`quarter_turns`] for |x| up to [`FAR`], r in two parts and more bits that end in n.
#[inline(always)]
fn near_turns(x: f32) -> (f32, f32, u32) {
    let m = x.mul_add(std::f32::consts::FRAC_2_PI, MAGIC);
    let n = m - MAGIC;
    // The first difference is exact; the other numbers are what pi / 2 has beyond its float32.
    let high = n.mul_add(-std::f32::consts::FRAC_PI_2, x);
    let w = n * 4.371_139e-8;
    let w_low = n.mul_add(4.371_139e-8, -w);
    let r = high + w;
    let t = r - high;
    let low = (high - (r - t)) + (w - t);
    (r, n.mul_add(1.715_124_9e-15, low + w_low), m.to_bits())
}

/// Sine and cosine of r + low for |r| <= pi / 4.
#[inline(always)]
fn sin_cos_near(r: f32, low: f32) -> (f32, f32) {
    const S: [f32; 4] = [
        -0.166_666_67,
        0.008_333_332,
        -0.000_198_400_36,
        2.724_341e-6,
    ];
    const C: [f32; 4] = [
        0.041_666_668,
        -0.001_388_888_8,
        2.480_055_8e-5,
        -2.729_552e-7,
    ];
    let z = r * r;
    let half = 0.5 * z;
    let s = r + (r * z).mul_add(poly(z, &S), low);
    let w = 1.0 - half;
    let c = w + ((1.0 - w) - half + (z * z).mul_add(poly(z, &C), -(r * low)));
    (s, c)
}

/// The sine to 1 ulp, for |x| up to [`is_far`].
#[inline(always)]
pub fn sin_near(x: f32) -> f32 {
    let (r, low, n) = near_turns(x);
    let (s, c) = sin_cos_near(r, low);
    let y = if n & 1 == 0 { s } else { c };
    let y = f32::from_bits(y.to_bits() ^ (n & 2) << 30);
    // Keeps the sign of zero.
    if x == 0.0 {
        x
    } else {
        y
    }
}

/// The cosine to 1 ulp, for |x| up to [`is_far`].
#[inline(always)]
pub fn cos_near(x: f32) -> f32 {
    let (r, low, n) = near_turns(x);
    let (s, c) = sin_cos_near(r, low);
    let y = if n & 1 == 0 { c } else { s };
    f32::from_bits(y.to_bits() ^ (n.wrapping_add(1) & 2) << 30)
}

/// The tangent to 0.51 ulp, for |x| up to [`is_far`].
#[inline(always)]
pub fn tan_near(x: f32) -> f32 {
    let (r, n) = turns_d(x);
    let y = tan_d(r, n);
    if x == 0.0 {
        x
    } else {
        y
    }
}

/// Sine and cosine for |r| <= pi / 4, to 2^-38.
#[inline(always)]
fn sin_cos_d(r: f64) -> (f64, f64) {
    const S: [f64; 5] = [
        1.0,
        -0.166_666_666_636_083_04,
        0.008_333_331_779_682_58,
        -0.000_198_400_359_430_665_43,
        2.724_340_926_404_085e-6,
    ];
    const C: [f64; 6] = [
        1.0,
        -0.5,
        0.041_666_666_664_114_09,
        -0.001_388_888_759_270_822,
        2.480_055_798_486_560_8e-5,
        -2.729_552_027_213_818_2e-7,
    ];
    let z = r * r;
    (r * poly_d(z, &S), poly_d(z, &C))
}

#[inline(always)]
fn tan_d(r: f64, n: u64) -> f32 {
    let (s, c) = sin_cos_d(r);
    (if n & 1 == 0 { s / c } else { -c / s }) as f32
}

/// The sine to 1 ulp.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    if !is_far(x) {
        return sin_near(x);
    }
    let (r, n) = quarter_turns(x);
    let (s, c) = sin_cos_d(r);
    let y = if n & 1 == 0 { s } else { c };
    (if n & 2 == 0 { y } else { -y }) as f32
}

/// The cosine to 1 ulp.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    if !is_far(x) {
        return cos_near(x);
    }
    let (r, n) = quarter_turns(x);
    let (s, c) = sin_cos_d(r);
    let y = if n & 1 == 0 { c } else { s };
    (if n.wrapping_add(1) & 2 == 0 { y } else { -y }) as f32
}

/// The tangent to 0.51 ulp.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    if !is_far(x) {
        return tan_near(x);
    }
    let (r, n) = quarter_turns(x);
    tan_d(r, n)
}

//! Functions of a float64, within 2.5 ulp. Those of `exp`, `log`, `trig`, `error`, `inverse`,
//! `bessel` and `gamma` are written
//! without branches, as in [`super::f32x`]; the others are scalar.

mod bessel;
mod bessel_jy;
mod error;
mod exp;
mod gamma;
mod inverse;
mod log;
mod parts;
mod trig;

pub use bessel::{i0, i0e, i1, i1e};
pub use bessel_jy::{
    j0_close, j0_near, j1_close, j1_near, y0_close, y0_near, y1_close, y1_near, CLOSE,
};
pub use error::{erf, erf_exp, erfc, erfcx, log_ndtr};
pub use exp::{
    acosh, asinh, atanh, cosh, decay, exp, exp2, exp_normal, expm1, sigmoid, sinh, tanh,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use exp::{ENDS, EXP, LEAST, LN_2_REST};
pub use gamma::{digamma_near, is_negative, lgamma, sine_pi, trigamma_near};
pub use inverse::{erfinv, erfinv_near, is_outer, is_tiny, ndtri_near};
pub use log::{ln, log10, log1p, log2, pow};
#[cfg(target_arch = "x86_64")]
pub(crate) use parts::{MAGIC, MOST};
pub use trig::{acos, asin, atan, atan2, cos, cos_near, is_far, sin, sin_near, tan, tan_near};

pub use super::bessel::{airy_ai, bessel_k0, bessel_k1};
pub use super::incomplete::{igamma, igammac};
pub use super::special::{digamma, ndtri, polygamma, trigamma, zeta};

/// 1 / sqrt(x).
#[inline(always)]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// The remainder of x / y with the sign of x, exact, and whether it is left to the operator `%`:
/// where the quotient is 2^51 or more, or no number.
#[inline(always)]
pub fn fmod_near(x: f64, y: f64) -> (f64, bool) {
    let (a, b) = (x.abs(), y.abs());
    let q = a / b;
    let r = (-q.trunc()).mul_add(b, a);
    // Rounding may have carried the quotient to an integer, never below one.
    let r = if r < 0.0 { r + b } else { r };
    let near = (q < 2_251_799_813_685_248.0) & (b < f64::INFINITY);
    (r.copysign(x), !near)
}

//! Functions of a float64: the system's library, `libm`, and `special`.

pub use super::bessel::{airy_ai, bessel_k, erfcx};
pub use super::incomplete::{igamma, igammac};
pub use super::special::{
    digamma, erfinv, i0, i0e, i1, i1e, log_ndtr, ndtri, polygamma, trigamma, zeta,
};

macro_rules! forward {
    ($($name:ident = $f:path;)*) => {$(
        #[inline(always)]
        pub fn $name(x: f64) -> f64 {
            $f(x)
        }
    )*};
}
forward! {
    exp = f64::exp; exp2 = f64::exp2; expm1 = f64::exp_m1;
    ln = f64::ln; log2 = f64::log2; log10 = f64::log10; log1p = f64::ln_1p;
    sin = f64::sin; cos = f64::cos; tan = f64::tan;
    asin = f64::asin; acos = f64::acos; atan = f64::atan;
    sinh = f64::sinh; cosh = f64::cosh; tanh = f64::tanh;
    asinh = libm::asinh; acosh = libm::acosh; atanh = libm::atanh;
    erf = libm::erf; erfc = libm::erfc;
}

/// ln |gamma(x)|; infinite at the poles.
#[inline]
pub fn lgamma(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::INFINITY;
    }
    libm::lgamma(x)
}

#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    y.atan2(x)
}

#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    x.powf(y)
}

/// 1 / (1 + e^-x), without overflow.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// 1 / sqrt(x).
#[inline(always)]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// sin(pi x) / (pi x), one at zero.
#[inline]
pub fn sinc(x: f64) -> f64 {
    let t = std::f64::consts::PI * x;
    if x == 0.0 {
        1.0
    } else {
        t.sin() / t
    }
}

/// The area under the standard normal density left of x.
#[inline]
pub fn ndtr(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

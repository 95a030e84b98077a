//! The public functions of one tensor: rounding, roots, exponentials, trigonometry, special
//! functions.

use super::special::*;
use super::unary::*;
use super::{apply, Polynomial, Special};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, Dest, Value};
use crate::tensor::Tensor;

fn round(a: &Args) -> Result<Value> {
    match a.int(1)? {
        0 => a.apply(Round, [a.tensor(0)?]),
        decimals => a.apply(RoundDecimals { decimals }, [a.tensor(0)?]),
    }
}

/// The largest finite number of a type.
fn largest(t: DType) -> f64 {
    match t {
        DType::F16 => 65504.0,
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F64 | DType::C128 => f64::MAX,
        _ => f32::MAX as f64,
    }
}

fn nan_to_num(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    let max = largest(x.dtype());
    let op = NanToNum {
        nan: a.opt_float(1).unwrap_or(0.0),
        high: a.opt_float(2).unwrap_or(max),
        low: a.opt_float(3).unwrap_or(-max),
    };
    a.apply(op, [x])
}

fn polygamma(a: &Args, n: i64, x: &Tensor) -> Result<Value> {
    ensure!(
        n >= 0,
        Runtime,
        "polygamma(n, x) does not support negative n."
    );
    match u32::try_from(n) {
        Ok(0) => a.apply(Digamma, [x]),
        Ok(1) => a.apply(Trigamma, [x]),
        Ok(n) if n < 1 << 20 => a.apply(Polygamma { n }, [x]),
        _ => crate::bail!(Runtime, "polygamma(n, x): n must be below 2^20, got {n}"),
    }
}

/// The logarithm of the multivariate gamma function: a sum of `lgamma` at half steps.
fn mvlgamma(a: &Args) -> Result<Value> {
    let (x, p) = (a.tensor(0)?, a.int(1)?);
    ensure!(p >= 1, Runtime, "p has to be greater than or equal to 1");
    ensure!(
        p < 1 << 16,
        Runtime,
        "mvlgamma: p must be below 65536, got {p}"
    );
    ensure!(
        x.dtype() != DType::Bool,
        Runtime,
        "The input tensor may not be a boolean tensor."
    );
    let x = x.to_dtype(x.dtype().to_float())?;
    let constant = 0.25 * (p * (p - 1)) as f64 * std::f64::consts::PI.ln();
    let mut sum = apply(Lgamma, [&x])?;
    for i in 1..p {
        sum = sum.add(&apply(Lgamma, [&x.add_scalar(-0.5 * i as f64)?])?)?;
    }
    Ok(sum.add_scalar(constant)?.into())
}

fn logit(a: &Args) -> Result<Value> {
    // An eps that is NaN bounds nothing.
    let eps = a.opt_float(1).unwrap_or(f64::NAN);
    let (low, high) = match eps.is_nan() {
        true => (f64::NEG_INFINITY, f64::INFINITY),
        false => (eps, 1.0 - eps),
    };
    a.apply(Logit { low, high }, [a.tensor(0)?])
}

fn positive(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    ensure!(
        x.dtype() != DType::Bool,
        Runtime,
        "The `+` operator, on a bool tensor is not supported."
    );
    Ok(x.clone().into())
}

fn orthogonal(a: &Args, family: Polynomial) -> Result<Value> {
    a.apply(Orthogonal { family }, [a.tensor(0)?, a.tensor(1)?])
}

fn orthogonal_of_number(a: &Args, family: Polynomial) -> Result<Value> {
    let x = Tensor::number(a.scalar(0)?)?;
    Ok(apply(Orthogonal { family }, [&x, a.tensor(1)?])?.into())
}

fn shifted(a: &Args, family: Polynomial) -> Result<Value> {
    a.apply(Shifted { family }, [a.tensor(0)?, a.tensor(1)?])
}

fn shifted_of_number(a: &Args, family: Polynomial) -> Result<Value> {
    let x = Tensor::number(a.scalar(0)?)?;
    Ok(apply(Shifted { family }, [&x, a.tensor(1)?])?.into())
}

fn sign(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    ensure!(
        !x.dtype().is_complex(),
        NotImplemented,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn \
         instead."
    );
    a.apply(Sign, [x])
}

fn abs(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    ensure!(
        !x.dtype().is_complex() || !matches!(a.dest, Dest::InPlace),
        Runtime,
        "In-place abs is not supported for complex tensors."
    );
    match a.dest {
        Dest::Out(out) if x.dtype().is_complex() && out[0].dtype().is_complex() => {
            a.apply(Conj, [&apply(Abs, [x])?])
        }
        _ => a.apply(Abs, [x]),
    }
}

fn angle(a: &Args) -> Result<Value> {
    match a.tensor(0)? {
        z if z.dtype().is_complex() => Ok(super::complex::angle(z)?.into()),
        x => Ok(apply(Angle, [x])?.into()),
    }
}

/// The real or imaginary parts, which share memory with a complex tensor.
fn part(a: &Args, which: i64) -> Result<Value> {
    let x = a.tensor(0)?;
    if !x.dtype().is_complex() {
        ensure!(
            which == 0,
            Runtime,
            "imag is not implemented for tensors with non-complex dtypes. Got {}",
            x.dtype()
        );
        return Ok(x.clone().into());
    }
    Ok(x.real_part(which)?.into())
}

fn frexp(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "torch.frexp() only supports floating-point dtypes, but got {}",
        x.dtype().scalar_name()
    );
    let exponent = apply(Exponent, [&x.detach()])?.to_dtype(DType::I32)?;
    Ok(Value::Tuple(vec![apply(Mantissa, [x])?, exponent]))
}

fn bessel(a: &Args, f: Special) -> Result<Value> {
    a.apply(Bessel { f }, [a.tensor(0)?])
}

crate::entries! {
    /// -x.
    "neg(Tensor self) -> Tensor", PW,
    |a| a.apply(Neg, [a.tensor(0)?]);
    /// -x.
    "negative(Tensor self) -> Tensor", PW,
    |a| a.apply(Neg, [a.tensor(0)?]);
    /// |x|.
    "abs(Tensor self) -> Tensor", PW, abs;
    /// |x|.
    "absolute(Tensor self) -> Tensor", PW, abs;
    /// -1 below zero, 0 at zero, 1 above.
    "sign(Tensor self) -> Tensor", PW, sign;
    /// -1 below zero, 0 at zero, 1 above; a complex number divided by its size.
    "sgn(Tensor self) -> Tensor", PW,
    |a| {
        let x = a.tensor(0)?;
        match x.dtype().is_complex() {
            true => a.apply(Sgn, [x]),
            false => a.apply(Sign, [x]),
        }
    };
    /// The largest integer not above x.
    "floor(Tensor self) -> Tensor", PW,
    |a| a.apply(Floor, [a.tensor(0)?]);
    /// The smallest integer not below x.
    "ceil(Tensor self) -> Tensor", PW,
    |a| a.apply(Ceil, [a.tensor(0)?]);
    /// The integer part of x.
    "trunc(Tensor self) -> Tensor", PW,
    |a| a.apply(Trunc, [a.tensor(0)?]);
    /// The integer part of x.
    "fix(Tensor self) -> Tensor", PW,
    |a| a.apply(Trunc, [a.tensor(0)?]);
    /// To the nearest integer, ties to even; with decimals, to that many digits.
    "round(Tensor self, *, int decimals=0) -> Tensor", PW,
    round;
    /// To the nearest integer, ties to even; with decimals, to that many digits.
    "round(Tensor self, *, int decimals=0) -> Tensor", SPECIAL,
    round;
    /// x minus its integer part.
    "frac(Tensor self) -> Tensor", PW,
    |a| a.apply(Frac, [a.tensor(0)?]);
    /// 1 / x.
    "reciprocal(Tensor self) -> Tensor", PW,
    |a| a.apply(Reciprocal, [a.tensor(0)?]);
    /// The square root; NaN below 0.
    "sqrt(Tensor self) -> Tensor", PW,
    |a| a.apply(Sqrt, [a.tensor(0)?]);
    /// 1 / sqrt(x).
    "rsqrt(Tensor self) -> Tensor", PW,
    |a| a.apply(Rsqrt, [a.tensor(0)?]);
    /// e to the power of x.
    "exp(Tensor self) -> Tensor", PW,
    |a| a.apply(Exp, [a.tensor(0)?]);
    /// 2 to the power of x.
    "exp2(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Exp2, [a.tensor(0)?]);
    /// e^x - 1, accurate near 0.
    "expm1(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Expm1, [a.tensor(0)?]);
    /// The natural logarithm.
    "log(Tensor self) -> Tensor", PW,
    |a| a.apply(Log, [a.tensor(0)?]);
    /// The logarithm to base 2.
    "log2(Tensor self) -> Tensor", PW,
    |a| a.apply(Log2, [a.tensor(0)?]);
    /// The logarithm to base 10.
    "log10(Tensor self) -> Tensor", PW,
    |a| a.apply(Log10, [a.tensor(0)?]);
    /// log(1 + x), accurate near 0.
    "log1p(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Log1p, [a.tensor(0)?]);
    /// The sine of x in radians.
    "sin(Tensor self) -> Tensor", PW,
    |a| a.apply(Sin, [a.tensor(0)?]);
    /// The cosine of x in radians.
    "cos(Tensor self) -> Tensor", PW,
    |a| a.apply(Cos, [a.tensor(0)?]);
    /// The tangent of x in radians.
    "tan(Tensor self) -> Tensor", PW,
    |a| a.apply(Tan, [a.tensor(0)?]);
    /// The arc sine in radians.
    "asin(Tensor self) -> Tensor", PW,
    |a| a.apply(Asin, [a.tensor(0)?]);
    /// The arc sine in radians.
    "arcsin(Tensor self) -> Tensor", PW,
    |a| a.apply(Asin, [a.tensor(0)?]);
    /// The arc cosine in radians.
    "acos(Tensor self) -> Tensor", PW,
    |a| a.apply(Acos, [a.tensor(0)?]);
    /// The arc cosine in radians.
    "arccos(Tensor self) -> Tensor", PW,
    |a| a.apply(Acos, [a.tensor(0)?]);
    /// The arc tangent in radians.
    "atan(Tensor self) -> Tensor", PW,
    |a| a.apply(Atan, [a.tensor(0)?]);
    /// The arc tangent in radians.
    "arctan(Tensor self) -> Tensor", PW,
    |a| a.apply(Atan, [a.tensor(0)?]);
    /// The hyperbolic sine.
    "sinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Sinh, [a.tensor(0)?]);
    /// The hyperbolic cosine.
    "cosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Cosh, [a.tensor(0)?]);
    /// The hyperbolic tangent.
    "tanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Tanh, [a.tensor(0)?]);
    /// The inverse hyperbolic sine.
    "asinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Asinh, [a.tensor(0)?]);
    /// The inverse hyperbolic sine.
    "arcsinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Asinh, [a.tensor(0)?]);
    /// The inverse hyperbolic cosine.
    "acosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Acosh, [a.tensor(0)?]);
    /// The inverse hyperbolic cosine.
    "arccosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Acosh, [a.tensor(0)?]);
    /// The inverse hyperbolic tangent.
    "atanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Atanh, [a.tensor(0)?]);
    /// The inverse hyperbolic tangent.
    "arctanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Atanh, [a.tensor(0)?]);
    /// 1 / (1 + e^-x).
    "sigmoid(Tensor self) -> Tensor", PW,
    |a| a.apply(Sigmoid, [a.tensor(0)?]);
    /// Degrees to radians.
    "deg2rad(Tensor self) -> Tensor", PW,
    |a| a.apply(Deg2rad, [a.tensor(0)?]);
    /// Radians to degrees.
    "rad2deg(Tensor self) -> Tensor", PW,
    |a| a.apply(Rad2deg, [a.tensor(0)?]);
    /// 1 / (1 + e^-x).
    "expit(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Sigmoid, [a.tensor(0)?]);
    /// sin(pi x) / (pi x); 1 at 0.
    "sinc(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Sinc, [a.tensor(0)?]);
    /// The error function.
    "erf(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erf, [a.tensor(0)?]);
    /// 1 - erf(x), accurate for large x.
    "erfc(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erfc, [a.tensor(0)?]);
    /// The inverse of erf.
    "erfinv(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erfinv, [a.tensor(0)?]);
    /// log |gamma(x)|.
    "lgamma(Tensor self) -> Tensor", PW,
    |a| a.apply(Lgamma, [a.tensor(0)?]);
    /// log |gamma(x)|.
    "gammaln(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Lgamma, [a.tensor(0)?]);
    /// The logarithmic derivative of gamma.
    "digamma(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Digamma, [a.tensor(0)?]);
    /// The logarithmic derivative of gamma.
    "psi(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Digamma, [a.tensor(0)?]);
    /// The n-th derivative of digamma.
    "polygamma(int n, Tensor self) -> Tensor", FN | SPECIAL | OUT | DIRECT,
    |a| polygamma(a, a.int(0)?, a.tensor(1)?);
    /// The n-th derivative of digamma.
    "polygamma(Tensor self, int n) -> Tensor", METHOD | INPLACE | DIRECT,
    |a| polygamma(a, a.int(1)?, a.tensor(0)?);
    /// The logarithm of the multivariate gamma function of dimension p.
    "mvlgamma(Tensor self, int p) -> Tensor", ALL | CASTS,
    mvlgamma;
    /// The logarithm of the multivariate gamma function of dimension p.
    "multigammaln(Tensor self, int p) -> Tensor", SPECIAL | CASTS,
    mvlgamma;
    /// log(x / (1 - x)), of x within [eps, 1 - eps].
    "logit(Tensor self, float? eps=None) -> Tensor", PW | SPECIAL,
    logit;
    /// Numbers for NaN and the infinities.
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", PW,
    nan_to_num;
    /// The argument of the number: 0, or pi below zero.
    "angle(Tensor self) -> Tensor", FN | METHOD | CASTS | WHOLE, angle;
    /// x itself.
    "positive(Tensor self) -> Tensor", FN | METHOD,
    positive;
    /// The real part; x itself where the type is real.
    "real(Tensor self) -> Tensor", FN, |a| part(a, 0);
    /// The complex conjugate; x itself where the type is real.
    "conj(Tensor self) -> Tensor", FN | METHOD, |a| Ok(a.tensor(0)?.conj()?.into());
    /// x itself: conjugates are computed at once.
    "resolve_conj(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.clone().into());
    /// x itself: negatives are computed at once.
    "resolve_neg(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.clone().into());
    /// The complex conjugate; x itself where the type is real.
    "conj_physical(Tensor self) -> Tensor", FN | METHOD | INPLACE | OUT | WHOLE,
    |a| Ok(a.tensor(0)?.conj()?.into());
    /// The imaginary part; real types raise.
    "imag(Tensor self) -> Tensor", FN, |a| part(a, 1);
    /// The modified Bessel function of the first kind of order 0.
    "i0(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(I0, [a.tensor(0)?]);
    /// e^-|x| i0(x).
    "i0e(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I0e, [a.tensor(0)?]);
    /// The modified Bessel function of the first kind of order 1.
    "i1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I1, [a.tensor(0)?]);
    /// e^-|x| i1(x).
    "i1e(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I1e, [a.tensor(0)?]);
    /// The area under the standard normal density left of x.
    "ndtr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Ndtr, [a.tensor(0)?]);
    /// The inverse of ndtr.
    "ndtri(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Ndtri, [a.tensor(0)?]);
    /// The logarithm of ndtr.
    "log_ndtr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(LogNdtr, [a.tensor(0)?]);
    /// e^(x^2) erfc(x).
    "erfcx(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Erfcx, [a.tensor(0)?]);
    /// -x log(x).
    "entr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Entr, [a.tensor(0)?]);
    /// sin(x) / x.
    "spherical_bessel_j0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(SphericalJ0, [a.tensor(0)?]);
    /// The fraction, from 1/2 to 1, and the power of two whose product is x.
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", FN | METHOD | OUT | WHOLE,
    frexp;
    /// The Bessel function of the first kind of order 0.
    "bessel_j0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselJ0, [a.tensor(0)?]);
    /// The Bessel function of the first kind of order 1.
    "bessel_j1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselJ1, [a.tensor(0)?]);
    /// The Bessel function of the second kind of order 0.
    "bessel_y0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselY0, [a.tensor(0)?]);
    /// The Bessel function of the second kind of order 1.
    "bessel_y1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselY1, [a.tensor(0)?]);
    /// The modified Bessel function of the first kind of order 0.
    "modified_bessel_i0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::I0);
    /// The modified Bessel function of the first kind of order 1.
    "modified_bessel_i1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::I1);
    /// The modified Bessel function of the second kind of order 0.
    "modified_bessel_k0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::K0);
    /// The modified Bessel function of the second kind of order 1.
    "modified_bessel_k1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::K1);
    /// e^x times modified_bessel_k0(x), which does not underflow.
    "scaled_modified_bessel_k0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::K0e);
    /// e^x times modified_bessel_k1(x), which does not underflow.
    "scaled_modified_bessel_k1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::K1e);
    /// The Airy function Ai.
    "airy_ai(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| bessel(a, Special::AiryAi);
    /// The Chebyshev polynomial of the first kind of degree n at x.
    "chebyshev_polynomial_t(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::ChebyshevT);
    /// The Chebyshev polynomial of the first kind of degree n at x.
    "chebyshev_polynomial_t(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::ChebyshevT);
    /// The Chebyshev polynomial of the first kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_t(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| shifted(a, Polynomial::ChebyshevT);
    /// The Chebyshev polynomial of the first kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_t(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| shifted_of_number(a, Polynomial::ChebyshevT);
    /// The Chebyshev polynomial of the second kind of degree n at x.
    "chebyshev_polynomial_u(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::ChebyshevU);
    /// The Chebyshev polynomial of the second kind of degree n at x.
    "chebyshev_polynomial_u(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::ChebyshevU);
    /// The Chebyshev polynomial of the second kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_u(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| shifted(a, Polynomial::ChebyshevU);
    /// The Chebyshev polynomial of the second kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_u(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| shifted_of_number(a, Polynomial::ChebyshevU);
    /// The Chebyshev polynomial of the third kind of degree n at x.
    "chebyshev_polynomial_v(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::ChebyshevV);
    /// The Chebyshev polynomial of the third kind of degree n at x.
    "chebyshev_polynomial_v(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::ChebyshevV);
    /// The Chebyshev polynomial of the third kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_v(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| shifted(a, Polynomial::ChebyshevV);
    /// The Chebyshev polynomial of the third kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_v(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| shifted_of_number(a, Polynomial::ChebyshevV);
    /// The Chebyshev polynomial of the fourth kind of degree n at x.
    "chebyshev_polynomial_w(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::ChebyshevW);
    /// The Chebyshev polynomial of the fourth kind of degree n at x.
    "chebyshev_polynomial_w(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::ChebyshevW);
    /// The Chebyshev polynomial of the fourth kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_w(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| shifted(a, Polynomial::ChebyshevW);
    /// The Chebyshev polynomial of the fourth kind of degree n at 2x - 1.
    "shifted_chebyshev_polynomial_w(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| shifted_of_number(a, Polynomial::ChebyshevW);
    /// The physicists' Hermite polynomial of degree n at x.
    "hermite_polynomial_h(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::HermiteH);
    /// The physicists' Hermite polynomial of degree n at x.
    "hermite_polynomial_h(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::HermiteH);
    /// The probabilists' Hermite polynomial of degree n at x.
    "hermite_polynomial_he(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::HermiteHe);
    /// The probabilists' Hermite polynomial of degree n at x.
    "hermite_polynomial_he(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::HermiteHe);
    /// The Laguerre polynomial of degree n at x.
    "laguerre_polynomial_l(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::Laguerre);
    /// The Laguerre polynomial of degree n at x.
    "laguerre_polynomial_l(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::Laguerre);
    /// The Legendre polynomial of degree n at x.
    "legendre_polynomial_p(Tensor x, Tensor|Scalar n) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| orthogonal(a, Polynomial::Legendre);
    /// The Legendre polynomial of degree n at x.
    "legendre_polynomial_p(Scalar x, Tensor n) -> Tensor", SPECIAL | OUT,
    |a| orthogonal_of_number(a, Polynomial::Legendre);
}

//! The public functions of one tensor: rounding, roots, exponentials, trigonometry, special
//! functions.

use super::special::*;
use super::unary::*;
use super::{apply, Polynomial, Special};
use crate::arg;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, Dest, Signature, Value};
use crate::tensor::Tensor;

fn round<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    match a.int(arg!(decimals))? {
        0 => a.apply(Round, [a.tensor(arg!(self))?]),
        decimals => a.apply(RoundDecimals { decimals }, [a.tensor(arg!(self))?]),
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

fn nan_to_num<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let max = largest(x.dtype());
    let op = NanToNum {
        nan: a.opt_float(arg!(nan)).unwrap_or(0.0),
        high: a.opt_float(arg!(posinf)).unwrap_or(max),
        low: a.opt_float(arg!(neginf)).unwrap_or(-max),
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
fn mvlgamma<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, p) = (a.tensor(arg!(self))?, a.int(arg!(p))?);
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

fn logit<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    // An eps that is NaN bounds nothing.
    let eps = a.opt_float(arg!(eps)).unwrap_or(f64::NAN);
    let (low, high) = match eps.is_nan() {
        true => (f64::NEG_INFINITY, f64::INFINITY),
        false => (eps, 1.0 - eps),
    };
    a.apply(Logit { low, high }, [a.tensor(arg!(self))?])
}

fn positive<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        x.dtype() != DType::Bool,
        Runtime,
        "The `+` operator, on a bool tensor is not supported."
    );
    Ok(x.clone().into())
}

fn orthogonal<Sig: Signature>(a: &Args<Sig>, family: Polynomial) -> Result<Value> {
    a.apply(
        Orthogonal { family },
        [a.tensor(arg!(x))?, a.tensor(arg!(n))?],
    )
}

fn orthogonal_of_number<Sig: Signature>(a: &Args<Sig>, family: Polynomial) -> Result<Value> {
    let x = Tensor::number(a.scalar(arg!(x))?)?;
    Ok(apply(Orthogonal { family }, [&x, a.tensor(arg!(n))?])?.into())
}

fn shifted<Sig: Signature>(a: &Args<Sig>, family: Polynomial) -> Result<Value> {
    a.apply(Shifted { family }, [a.tensor(arg!(x))?, a.tensor(arg!(n))?])
}

fn shifted_of_number<Sig: Signature>(a: &Args<Sig>, family: Polynomial) -> Result<Value> {
    let x = Tensor::number(a.scalar(arg!(x))?)?;
    Ok(apply(Shifted { family }, [&x, a.tensor(arg!(n))?])?.into())
}

fn sign<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        !x.dtype().is_complex(),
        NotImplemented,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn \
         instead."
    );
    a.apply(Sign, [x])
}

fn abs<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
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

fn angle<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    match a.tensor(arg!(self))? {
        z if z.dtype().is_complex() => Ok(super::complex::angle(z)?.into()),
        x => Ok(apply(Angle, [x])?.into()),
    }
}

/// The real or imaginary parts, which share memory with a complex tensor.
fn part<Sig: Signature>(a: &Args<Sig>, which: i64) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
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

fn frexp<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "torch.frexp() only supports floating-point dtypes, but got {}",
        x.dtype().scalar_name()
    );
    let exponent = apply(Exponent, [&x.detach()])?.to_dtype(DType::I32)?;
    Ok(Value::Tuple(vec![apply(Mantissa, [x])?, exponent]))
}

fn bessel<Sig: Signature>(a: &Args<Sig>, f: Special) -> Result<Value> {
    a.apply(Bessel { f }, [a.tensor(arg!(self))?])
}

crate::entries! {
    /// -x.
    "neg(Tensor self) -> Tensor", PW,
    |a| a.apply(Neg, [a.tensor(arg!(self))?]);
    /// -x.
    "negative(Tensor self) -> Tensor", PW,
    |a| a.apply(Neg, [a.tensor(arg!(self))?]);
    /// |x|.
    "abs(Tensor self) -> Tensor", PW, abs;
    /// |x|.
    "absolute(Tensor self) -> Tensor", PW, abs;
    /// -1 below zero, 0 at zero, 1 above.
    "sign(Tensor self) -> Tensor", PW, sign;
    /// -1 below zero, 0 at zero, 1 above; a complex number divided by its size.
    "sgn(Tensor self) -> Tensor", PW,
    |a| {
        let x = a.tensor(arg!(self))?;
        match x.dtype().is_complex() {
            true => a.apply(Sgn, [x]),
            false => a.apply(Sign, [x]),
        }
    };
    /// The largest integer not above x.
    "floor(Tensor self) -> Tensor", PW,
    |a| a.apply(Floor, [a.tensor(arg!(self))?]);
    /// The smallest integer not below x.
    "ceil(Tensor self) -> Tensor", PW,
    |a| a.apply(Ceil, [a.tensor(arg!(self))?]);
    /// The integer part of x.
    "trunc(Tensor self) -> Tensor", PW,
    |a| a.apply(Trunc, [a.tensor(arg!(self))?]);
    /// The integer part of x.
    "fix(Tensor self) -> Tensor", PW,
    |a| a.apply(Trunc, [a.tensor(arg!(self))?]);
    /// To the nearest integer, ties to even; with decimals, to that many digits.
    "round(Tensor self, *, int decimals=0) -> Tensor", PW,
    round;
    /// To the nearest integer, ties to even; with decimals, to that many digits.
    "round(Tensor self, *, int decimals=0) -> Tensor", SPECIAL,
    round;
    /// x minus its integer part.
    "frac(Tensor self) -> Tensor", PW,
    |a| a.apply(Frac, [a.tensor(arg!(self))?]);
    /// 1 / x.
    "reciprocal(Tensor self) -> Tensor", PW,
    |a| a.apply(Reciprocal, [a.tensor(arg!(self))?]);
    /// The square root; NaN below 0.
    "sqrt(Tensor self) -> Tensor", PW,
    |a| a.apply(Sqrt, [a.tensor(arg!(self))?]);
    /// 1 / sqrt(x).
    "rsqrt(Tensor self) -> Tensor", PW,
    |a| a.apply(Rsqrt, [a.tensor(arg!(self))?]);
    /// e to the power of x.
    "exp(Tensor self) -> Tensor", PW,
    |a| a.apply(Exp, [a.tensor(arg!(self))?]);
    /// 2 to the power of x.
    "exp2(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Exp2, [a.tensor(arg!(self))?]);
    /// e^x - 1, accurate near 0.
    "expm1(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Expm1, [a.tensor(arg!(self))?]);
    /// The natural logarithm.
    "log(Tensor self) -> Tensor", PW,
    |a| a.apply(Log, [a.tensor(arg!(self))?]);
    /// The logarithm to base 2.
    "log2(Tensor self) -> Tensor", PW,
    |a| a.apply(Log2, [a.tensor(arg!(self))?]);
    /// The logarithm to base 10.
    "log10(Tensor self) -> Tensor", PW,
    |a| a.apply(Log10, [a.tensor(arg!(self))?]);
    /// log(1 + x), accurate near 0.
    "log1p(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Log1p, [a.tensor(arg!(self))?]);
    /// The sine of x in radians.
    "sin(Tensor self) -> Tensor", PW,
    |a| a.apply(Sin, [a.tensor(arg!(self))?]);
    /// The cosine of x in radians.
    "cos(Tensor self) -> Tensor", PW,
    |a| a.apply(Cos, [a.tensor(arg!(self))?]);
    /// The tangent of x in radians.
    "tan(Tensor self) -> Tensor", PW,
    |a| a.apply(Tan, [a.tensor(arg!(self))?]);
    /// The arc sine in radians.
    "asin(Tensor self) -> Tensor", PW,
    |a| a.apply(Asin, [a.tensor(arg!(self))?]);
    /// The arc sine in radians.
    "arcsin(Tensor self) -> Tensor", PW,
    |a| a.apply(Asin, [a.tensor(arg!(self))?]);
    /// The arc cosine in radians.
    "acos(Tensor self) -> Tensor", PW,
    |a| a.apply(Acos, [a.tensor(arg!(self))?]);
    /// The arc cosine in radians.
    "arccos(Tensor self) -> Tensor", PW,
    |a| a.apply(Acos, [a.tensor(arg!(self))?]);
    /// The arc tangent in radians.
    "atan(Tensor self) -> Tensor", PW,
    |a| a.apply(Atan, [a.tensor(arg!(self))?]);
    /// The arc tangent in radians.
    "arctan(Tensor self) -> Tensor", PW,
    |a| a.apply(Atan, [a.tensor(arg!(self))?]);
    /// The hyperbolic sine.
    "sinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Sinh, [a.tensor(arg!(self))?]);
    /// The hyperbolic cosine.
    "cosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Cosh, [a.tensor(arg!(self))?]);
    /// The hyperbolic tangent.
    "tanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Tanh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic sine.
    "asinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Asinh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic sine.
    "arcsinh(Tensor self) -> Tensor", PW,
    |a| a.apply(Asinh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic cosine.
    "acosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Acosh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic cosine.
    "arccosh(Tensor self) -> Tensor", PW,
    |a| a.apply(Acosh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic tangent.
    "atanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Atanh, [a.tensor(arg!(self))?]);
    /// The inverse hyperbolic tangent.
    "arctanh(Tensor self) -> Tensor", PW,
    |a| a.apply(Atanh, [a.tensor(arg!(self))?]);
    /// 1 / (1 + e^-x).
    "sigmoid(Tensor self) -> Tensor", PW,
    |a| a.apply(Sigmoid, [a.tensor(arg!(self))?]);
    /// Degrees to radians.
    "deg2rad(Tensor self) -> Tensor", PW,
    |a| a.apply(Deg2rad, [a.tensor(arg!(self))?]);
    /// Radians to degrees.
    "rad2deg(Tensor self) -> Tensor", PW,
    |a| a.apply(Rad2deg, [a.tensor(arg!(self))?]);
    /// 1 / (1 + e^-x).
    "expit(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Sigmoid, [a.tensor(arg!(self))?]);
    /// sin(pi x) / (pi x); 1 at 0.
    "sinc(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Sinc, [a.tensor(arg!(self))?]);
    /// The error function.
    "erf(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erf, [a.tensor(arg!(self))?]);
    /// 1 - erf(x), accurate for large x.
    "erfc(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erfc, [a.tensor(arg!(self))?]);
    /// The inverse of erf.
    "erfinv(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Erfinv, [a.tensor(arg!(self))?]);
    /// log |gamma(x)|.
    "lgamma(Tensor self) -> Tensor", PW,
    |a| a.apply(Lgamma, [a.tensor(arg!(self))?]);
    /// log |gamma(x)|.
    "gammaln(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Lgamma, [a.tensor(arg!(self))?]);
    /// The logarithmic derivative of gamma.
    "digamma(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(Digamma, [a.tensor(arg!(self))?]);
    /// The logarithmic derivative of gamma.
    "psi(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Digamma, [a.tensor(arg!(self))?]);
    /// The n-th derivative of digamma.
    "polygamma(int n, Tensor self) -> Tensor", FN | SPECIAL | OUT | DIRECT,
    |a| polygamma(a, a.int(arg!(n))?, a.tensor(arg!(self))?);
    /// The n-th derivative of digamma.
    "polygamma(Tensor self, int n) -> Tensor", METHOD | INPLACE | DIRECT,
    |a| polygamma(a, a.int(arg!(n))?, a.tensor(arg!(self))?);
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
    "conj(Tensor self) -> Tensor", FN | METHOD, |a| Ok(a.tensor(arg!(self))?.conj()?.into());
    /// x itself: conjugates are computed at once.
    "resolve_conj(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.clone().into());
    /// x itself: negatives are computed at once.
    "resolve_neg(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.clone().into());
    /// The complex conjugate; x itself where the type is real.
    "conj_physical(Tensor self) -> Tensor", FN | METHOD | INPLACE | OUT | WHOLE,
    |a| Ok(a.tensor(arg!(self))?.conj()?.into());
    /// The imaginary part; real types raise.
    "imag(Tensor self) -> Tensor", FN, |a| part(a, 1);
    /// The modified Bessel function of the first kind of order 0.
    "i0(Tensor self) -> Tensor", PW | SPECIAL,
    |a| a.apply(I0, [a.tensor(arg!(self))?]);
    /// e^-|x| i0(x).
    "i0e(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I0e, [a.tensor(arg!(self))?]);
    /// The modified Bessel function of the first kind of order 1.
    "i1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I1, [a.tensor(arg!(self))?]);
    /// e^-|x| i1(x).
    "i1e(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(I1e, [a.tensor(arg!(self))?]);
    /// The area under the standard normal density left of x.
    "ndtr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Ndtr, [a.tensor(arg!(self))?]);
    /// The inverse of ndtr.
    "ndtri(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Ndtri, [a.tensor(arg!(self))?]);
    /// The logarithm of ndtr.
    "log_ndtr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(LogNdtr, [a.tensor(arg!(self))?]);
    /// e^(x^2) erfc(x).
    "erfcx(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Erfcx, [a.tensor(arg!(self))?]);
    /// -x log(x).
    "entr(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Entr, [a.tensor(arg!(self))?]);
    /// sin(x) / x.
    "spherical_bessel_j0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(SphericalJ0, [a.tensor(arg!(self))?]);
    /// The fraction, from 1/2 to 1, and the power of two whose product is x.
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", FN | METHOD | OUT | WHOLE,
    frexp;
    /// The Bessel function of the first kind of order 0.
    "bessel_j0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselJ0, [a.tensor(arg!(self))?]);
    /// The Bessel function of the first kind of order 1.
    "bessel_j1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselJ1, [a.tensor(arg!(self))?]);
    /// The Bessel function of the second kind of order 0.
    "bessel_y0(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselY0, [a.tensor(arg!(self))?]);
    /// The Bessel function of the second kind of order 1.
    "bessel_y1(Tensor self) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(BesselY1, [a.tensor(arg!(self))?]);
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

//! The public functions of arithmetic.

use super::binary::*;
use super::compare::Eq;
use super::real::HALF_STEP;
use super::ternary::*;
use super::types::{fits, promoted};
use super::unary::*;
use super::{apply, apply_, Half};
use crate::arg;
use crate::bail;
use crate::dispatch;
use crate::dtype::{check_range, DType, Promotion, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, At, Dest, Signature, Value};
use crate::tensor::Tensor;

/// The promoted type of a tensor and numbers.
fn with_numbers(x: &Tensor, numbers: &[Option<Scalar>]) -> Result<DType> {
    let mut p = Promotion::default();
    p.add(x.dtype(), x.ndim(), x.is_wrapped());
    for s in numbers.iter().flatten() {
        p.add(s.dtype(), 0, true);
    }
    let t = p.result()?;
    for &s in numbers.iter().flatten() {
        if let (true, Scalar::UInt(_)) = (t.is_int(), s) {
            check_range(s, t)?;
        }
    }
    Ok(t)
}

/// A term and its factor, of which the integer type of the result holds what it is. One with an imaginary
/// part, which kernels do not take, is multiplied first; with zero a term is not read, where the op says so.
pub fn scaled(a: &Args, term: At, factor: At) -> Result<(Tensor, Scalar)> {
    let t = a.tensor(term)?;
    let Value::Complex(re, im) = *a.value(factor) else {
        return Ok((t.clone(), check_factor(a, factor)?));
    };
    let mut p = Promotion::default();
    for value in a.values() {
        if let Value::Tensor(t) = value {
            p.add(t.dtype(), t.ndim(), t.is_wrapped());
        }
    }
    let dtype = p.result()?;
    ensure!(
        dtype.is_complex(),
        Runtime,
        "{}: For non-complex input tensors, argument {} must not be a complex number. Its value cannot \
         be converted to type {} without overflow",
        a.schema.name,
        a.name(factor),
        dtype.c_name()
    );
    if im == 0.0 {
        return Ok((t.clone(), Scalar::Float(re)));
    }
    let product = t.to_dtype(dtype)?.mul(&Tensor::complex_number(re, im)?)?;
    Ok((product, Scalar::Int(1)))
}

/// Refuses a factor that the integer type of the result does not hold.
fn check_factor(a: &Args, factor: At) -> Result<Scalar> {
    let value = a.scalar(factor)?;
    // What every type holds is not looked at further.
    if (0.0..=127.0).contains(&value.f64()) {
        return Ok(value);
    }
    let mut p = Promotion::default();
    for t in a.before(factor) {
        if let Value::Tensor(t) = t {
            p.add(t.dtype(), t.ndim(), t.is_wrapped());
        }
    }
    let dtype = p.result()?;
    // Of a factor bool holds whether it is zero.
    if dtype == DType::Bool && !value.is_float() {
        return Ok(Scalar::Int(1));
    }
    if dtype.is_integral() {
        check_range(value, dtype)?;
    }
    Ok(value)
}

fn where_entry(m: &Tensor, x: &Tensor, y: &Tensor) -> Result<Value> {
    if x.is_wrapped() || y.is_wrapped() {
        let dtype = promoted(&dispatch::metas(&[x, y]))?;
        for t in [x, y] {
            // What a short type does not hold is infinite there, as in arithmetic.
            if t.is_wrapped() && !dtype.is_half() && !dtype.is_float8() {
                fits(t, dtype)?;
            }
        }
    }
    Ok(where_(m, x, y)?.into())
}

/// The half type to which PyTorch rounds each step of a whole quotient: where several numbers divide. By
/// one it divides in float32.
fn half_steps(x: [&Tensor; 2]) -> Option<Half> {
    match x[1].numel() {
        1 => None,
        _ => Half::of(promoted(&dispatch::metas(&x)).ok()?),
    }
}

fn divide<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = [a.tensor(arg!(self))?, a.tensor(arg!(other))?];
    let mode = a.opt_str(arg!(rounding_mode));
    match (mode, mode.and_then(|_| half_steps(x))) {
        (None, _) => a.apply(Div, x),
        (Some("trunc"), None) => a.apply(DivTrunc, x),
        (Some("floor"), None) => a.apply(DivFloor, x),
        (Some("trunc"), Some(to)) => a.apply(HalfQuotient { down: false, to }, x),
        (Some("floor"), Some(to)) => a.apply(HalfQuotient { down: true, to }, x),
        (Some(other), _) => bail!(
            Runtime,
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
        ),
    }
}

fn floor_divide<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = [a.tensor(arg!(self))?, a.tensor(arg!(other))?];
    match half_steps(x) {
        None => a.apply(FloorDivide, x),
        Some(to) => a.apply(HalfFloorDivide { to }, x),
    }
}

fn add<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    if let Value::Complex(..) = *a.value(arg!(alpha)) {
        let (y, alpha) = scaled(a, arg!(other), arg!(alpha))?;
        return a.apply(Add { alpha }, [a.tensor(arg!(self))?, &y]);
    }
    a.apply(
        Add {
            alpha: check_factor(a, arg!(alpha))?,
        },
        [a.tensor(arg!(self))?, a.tensor(arg!(other))?],
    )
}

fn sub<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    if let Value::Complex(..) = *a.value(arg!(alpha)) {
        let (y, alpha) = scaled(a, arg!(other), arg!(alpha))?;
        return a.apply(Sub { alpha }, [a.tensor(arg!(self))?, &y]);
    }
    a.apply(
        Sub {
            alpha: check_factor(a, arg!(alpha))?,
        },
        [a.tensor(arg!(self))?, a.tensor(arg!(other))?],
    )
}

fn pow<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, e) = (a.tensor(arg!(self))?, a.tensor(arg!(exponent | other))?);
    if !e.is_wrapped() || e.dtype().is_complex() {
        return a.apply(Pow, [x, e]);
    }
    power(a, x, e.item()?)
}

/// A tensor to the power of a number.
fn power(a: &Args, x: &Tensor, e: Scalar) -> Result<Value> {
    let t = with_numbers(x, &[Some(e)])?;
    // Of a bool, too, the first power is the number and the other one.
    if let (DType::Bool, Scalar::Bool(first)) = (t, e) {
        return match first {
            true => a.apply(Mul, [x, x]),
            false => a.apply(Eq, [x, x]),
        };
    }
    ensure!(
        !t.is_integral() || e.f64() >= 0.0,
        Runtime,
        "Integers to negative integer powers are not allowed."
    );
    if t.is_integral() {
        check_range(e, t)?;
    }
    let x = &x.to_dtype(t)?;
    match e.f64() {
        2.0 => a.apply(Square, [x]),
        3.0 => a.apply(Cube, [x]),
        e @ (-2.0 | -1.0 | 0.0 | 1.0 | 4.0) => a.apply(SmallPower { e: e as i64 }, [x]),
        0.5 | -0.5 if !t.is_complex() => a.apply(
            RootPower {
                inverse: e.f64() < 0.0,
            },
            [x],
        ),
        _ => a.apply(
            PowNumber {
                e: if t.is_half() {
                    t.nearest(e.f64())
                } else {
                    e.f64()
                },
                n: e.i64(),
            },
            [x],
        ),
    }
}

fn square<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    a.apply(
        Square,
        [&x.to_dtype(with_numbers(x, &[Some(Scalar::Int(2))])?)?],
    )
}

/// The widest type, complex where one of two is.
fn widest(x: &Tensor, y: &Tensor) -> DType {
    match x.dtype().is_complex() || y.dtype().is_complex() {
        true => DType::C128,
        false => DType::F64,
    }
}

fn float_power<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, e) = (a.tensor(arg!(self))?, a.tensor(arg!(exponent))?);
    let wide = widest(x, e);
    let (told, to) = match a.dest {
        Dest::New => ("", None),
        Dest::InPlace => ("base given to float_power_", Some(x.dtype())),
        Dest::Out(out) => ("output given to float_power", Some(out[0].dtype())),
    };
    if let Some(to) = to.filter(|&to| to != wide) {
        bail!(
            Runtime,
            "the {told} has dtype {} but the operation's result requires dtype {}",
            to.scalar_name(),
            wide.scalar_name()
        );
    }
    let x = x.to_dtype(wide)?;
    if e.is_wrapped() && !e.dtype().is_complex() {
        return power(a, &x, Scalar::Float(e.item()?.f64()));
    }
    a.apply(Pow, [&x, &e.to_dtype(wide)?])
}

/// The bound of a clamp: absent, a number, or a tensor.
fn bound<'a>(a: &'a Args, i: At) -> Result<(Option<Scalar>, Option<&'a Tensor>)> {
    Ok(match a.opt_tensor(i) {
        None => (None, None),
        Some(t) if t.is_wrapped() => (Some(t.item()?), None),
        Some(t) => (None, Some(t)),
    })
}

fn clamp_between<Sig: Signature>(
    a: &Args<Sig>,
    low: Option<At>,
    high: Option<At>,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let at = |i: Option<At>| i.map_or(Ok((None, None)), |i| bound(a, i));
    let ((low, low_t), (high, high_t)) = (at(low)?, at(high)?);
    ensure!(
        low.is_some() || high.is_some() || low_t.is_some() || high_t.is_some(),
        Runtime,
        "torch.clamp: At least one of 'min' or 'max' must not be None"
    );
    if low_t.is_none() && high_t.is_none() {
        let mut t = with_numbers(x, &[low, high])?;
        if let (Dest::InPlace, true) = (a.dest, t.is_float() && x.dtype().is_integral()) {
            bail!(
                Runtime,
                "result type {} can't be cast to the desired output type {}",
                t.scalar_name(),
                x.dtype().c_name()
            );
        }
        if t == DType::Bool {
            t = DType::I64;
        }
        if let Some(nan) = [low, high].into_iter().flatten().find(|s| s.f64().is_nan()) {
            let nan = Tensor::number(nan)?;
            return a.apply(ClampTensor, [x, &nan, &nan]);
        }
        return a.apply(Clamp { low, high }, [&x.to_dtype(t)?]);
    }
    let number = |s: Option<Scalar>| s.map(Tensor::number).transpose();
    let (low_n, high_n) = (number(low)?, number(high)?);
    match (low_t.or(low_n.as_ref()), high_t.or(high_n.as_ref())) {
        (Some(low), Some(high)) => a.apply(ClampTensor, [x, low, high]),
        (Some(low), None) => a.apply(ClampMin, [x, low]),
        (None, Some(high)) => a.apply(ClampMax, [x, high]),
        (None, None) => bail!(Assertion, "clamp: bounds were checked above"),
    }
}

fn nextafter<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    let step = match promoted(&[x.as_ref(), y.as_ref()])? {
        // The bits of a bfloat16 are the upper half of a float32's.
        DType::BF16 => 1 << 16,
        DType::F16 => HALF_STEP,
        _ => 1,
    };
    a.apply(NextAfter { step }, [x, y])
}

fn lerp<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, y, w) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(end))?,
        a.tensor(arg!(weight))?,
    );
    if w.is_wrapped() && !w.dtype().is_complex() {
        let w = w.item()?.f64();
        return a.apply(LerpNumber { w }, [x, y]);
    }
    ensure!(
        x.dtype().is_complex() || !w.dtype().is_complex(),
        Runtime,
        "lerp: the weight is complex, which {} cannot hold: value cannot be converted without \
         overflow",
        x.dtype()
    );
    // A weight without dimensions stands for a number.
    match w.ndim() == 0 && x.dtype().differentiable() {
        true => a.apply(Lerp, [x, y, &w.to_dtype(x.dtype())?]),
        false => a.apply(Lerp, [x, y, w]),
    }
}

fn number_first<Sig: Signature, P: super::Pointwise<2>>(op: P, a: &Args<Sig>) -> Result<Value> {
    let x = a.number(arg!(self))?;
    let y = a.tensor(arg!(other | exponent))?;
    Ok(match a.dest {
        Dest::Out(_) => a.apply(op, [&x, y])?,
        _ => apply(op, [&x, y])?.into(),
    })
}

fn ldexp<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    a.apply(Ldexp, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])
}

crate::entries! {
    /// self + alpha * other.
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", PW | SCALES,
    add;
    /// self - alpha * other.
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", PW | SCALES,
    sub;
    /// self - alpha * other.
    "subtract(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", PW | COMPLEX,
    sub;
    /// other - alpha * self.
    "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", FN | COMPLEX,
    |a| {
        let (x, alpha) = scaled(a, arg!(self), arg!(alpha))?;
        Ok(apply(Sub { alpha }, [a.tensor(arg!(other))?, &x])?.into())
    };
    /// self * other.
    "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Mul, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self * other.
    "multiply(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Mul, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self / other; rounded toward zero with rounding_mode='trunc', down with 'floor'.
    "div(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor", PW,
    divide;
    /// self / other; rounded toward zero with rounding_mode='trunc', down with 'floor'.
    "divide(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor", PW,
    divide;
    /// self / other.
    "true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Div, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self / other rounded down.
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", PW,
    floor_divide;
    /// self / other rounded down.
    "floor_divide(Scalar self, Tensor other) -> Tensor", FN,
    |a| {
        let x = a.number(arg!(self))?;
        match half_steps([&x, a.tensor(arg!(other))?]) {
            None => number_first(FloorDivide, a),
            Some(to) => number_first(HalfFloorDivide { to }, a),
        }
    };
    /// The remainder with the sign of other.
    "remainder(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Remainder, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The remainder with the sign of other.
    "remainder(Scalar self, Tensor other) -> Tensor", FN | OUT | DIRECT,
    |a| number_first(Remainder, a);
    /// The remainder with the sign of self.
    "fmod(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Fmod, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self to the power of exponent.
    "pow(Tensor self, Tensor|Scalar exponent) -> Tensor", PW,
    pow;
    /// self to the power of exponent.
    "pow(Scalar self, Tensor exponent) -> Tensor", FN | OUT | DIRECT | COMPLEX,
    |a| number_first(Pow, a);
    /// self to the power of exponent in float64.
    "float_power(Tensor self, Tensor|Scalar exponent) -> Tensor", PW,
    float_power;
    /// self to the power of exponent in float64.
    "float_power(Scalar self, Tensor exponent) -> Tensor", FN | OUT | COMPLEX,
    |a| {
        let (x, e) = (a.number(arg!(self))?, a.tensor(arg!(exponent))?);
        let wide = widest(&x, e);
        Ok(apply(Pow, [&x.to_dtype(wide)?, &e.to_dtype(wide)?])?.into())
    };
    /// self * self.
    "square(Tensor self) -> Tensor", PW,
    square;
    /// The larger element; NaN if either is.
    "maximum(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Maximum, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The smaller element; NaN if either is.
    "minimum(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Minimum, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The larger element; the number if one is NaN.
    "fmax(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Fmax, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The smaller element; the number if one is NaN.
    "fmin(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Fmin, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The larger element of each pair, as `maximum`.
    "max(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Maximum, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The smaller element of each pair, as `minimum`.
    "min(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Minimum, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// sqrt(self^2 + other^2) without overflow.
    "hypot(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Hypot, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The angle of the points (other, self) in radians.
    "atan2(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Atan2, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The angle of the points (other, self) in radians.
    "arctan2(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Atan2, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The greatest common divisor.
    "gcd(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Gcd, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The least common multiple.
    "lcm(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Lcm, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The size of self with the sign of other.
    "copysign(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Copysign, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The next number after self toward other.
    "nextafter(Tensor self, Tensor other) -> Tensor", PW,
    nextafter;
    /// 0 below zero, 1 above, values at zero.
    "heaviside(Tensor self, Tensor values) -> Tensor", PW,
    |a| a.apply(Heaviside, [a.tensor(arg!(self))?, a.tensor(arg!(values))?]);
    /// self * 2^other.
    "ldexp(Tensor self, Tensor other) -> Tensor", PW,
    ldexp;
    /// log(e^self + e^other).
    "logaddexp(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Logaddexp, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// log2(2^self + 2^other).
    "logaddexp2(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.apply(Logaddexp2, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The regularised lower incomplete gamma function.
    "igamma(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Igamma, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The regularised upper incomplete gamma function.
    "igammac(Tensor self, Tensor other) -> Tensor", PW,
    |a| a.apply(Igammac, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The regularised lower incomplete gamma function.
    "gammainc(Tensor self, Tensor other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Igamma, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The regularised upper incomplete gamma function.
    "gammaincc(Tensor self, Tensor other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Igammac, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self * log(other); 0 where self is 0.
    "xlogy(Tensor self, Tensor|Scalar other) -> Tensor", PW | SPECIAL,
    |a| a.apply(Xlogy, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self * log(other); 0 where self is 0.
    "xlogy(Scalar self, Tensor other) -> Tensor", FN | SPECIAL | OUT | DIRECT,
    |a| number_first(Xlogy, a);
    /// self * log(1 + other); 0 where self is 0.
    "xlog1py(Tensor self, Tensor|Scalar other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Xlog1py, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self * log(1 + other); 0 where self is 0.
    "xlog1py(Scalar self, Tensor other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| number_first(Xlog1py, a);
    /// Hurwitz's zeta function.
    "zeta(Tensor self, Tensor|Scalar other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| a.apply(Zeta, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Hurwitz's zeta function.
    "zeta(Scalar self, Tensor other) -> Tensor", SPECIAL | OUT | DIRECT,
    |a| number_first(Zeta, a);
    /// self within [min, max].
    "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor", PW,
    |a| clamp_between(a, Some(arg!(min)), Some(arg!(max)));
    /// self within [min, max].
    "clip(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor", PW,
    |a| clamp_between(a, Some(arg!(min)), Some(arg!(max)));
    /// The larger of self and min.
    "clamp_min(Tensor self, Tensor|Scalar min) -> Tensor", PW,
    |a| clamp_between(a, Some(arg!(min)), None);
    /// The smaller of self and max.
    "clamp_max(Tensor self, Tensor|Scalar max) -> Tensor", PW,
    |a| clamp_between(a, None, Some(arg!(max)));
    /// self + weight * (end - self).
    "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor", PW,
    lerp;
    /// self + value * tensor1 * tensor2.
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    PW | SCALES,
    |a| {
        let (x, value) = scaled(a, arg!(tensor1), arg!(value))?;
        a.apply(Addcmul { value }, [a.tensor(arg!(self))?, &x, a.tensor(arg!(tensor2))?])
    };
    /// self + value * tensor1 / tensor2.
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    PW | SCALES,
    |a| {
        let (x, value) = scaled(a, arg!(tensor1), arg!(value))?;
        a.apply(Addcdiv { value }, [a.tensor(arg!(self))?, &x, a.tensor(arg!(tensor2))?])
    };
    /// self where the condition holds, other elsewhere.
    "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor", FN | OUT | WHOLE,
    |a| where_entry(a.tensor(arg!(condition))?, a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    /// self where the condition holds, other elsewhere.
    "where(Tensor self, Tensor condition, Tensor|Scalar other) -> Tensor", METHOD,
    |a| where_entry(a.tensor(arg!(condition))?, a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    /// The operator with assignment.
    "__iadd__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| Ok(apply_(Add { alpha: Scalar::Int(1) }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The operator with assignment.
    "__isub__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| Ok(apply_(Sub { alpha: Scalar::Int(1) }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The operator with assignment.
    "__imul__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| Ok(apply_(Mul, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The operator with assignment.
    "__itruediv__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| Ok(apply_(Div, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The operator with assignment.
    "__ifloordiv__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| {
        let x = [a.tensor(arg!(self))?, a.tensor(arg!(other))?];
        Ok(match half_steps(x) {
            None => apply_(FloorDivide, x)?.into(),
            Some(to) => apply_(HalfFloorDivide { to }, x)?.into(),
        })
    };
    /// The operator with assignment.
    "__imod__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| Ok(apply_(Remainder, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The operator with assignment.
    "__ipow__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD,
    |a| {
        let dest = Dest::InPlace;
        pow(&a.to(&dest))
    };
}

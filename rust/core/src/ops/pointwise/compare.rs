//! Comparisons, predicates, logic and bits.

use super::pointwise;
use super::types::{no_bool, refuse_complex};
use super::unary::{Abs, IsNan, LogicalNot};
use super::{apply, apply_, c, Cpu, Integer, Pointwise};
use crate::arg;
use crate::device::Device;
use crate::dtype::{DType, Promotion, Scalar};
use crate::error::Result;
use crate::schema::{Args, Dest, MemoryFormat, Signature, Value};
use crate::tensor::{asked_number, Tensor};
use crate::{bail, ensure};

pointwise! {
    /// x < y.
    op Lt[2] = "LtBackward0", Bool;
    f |_, [x, y]| R::of(x.lt(y));
    int |_, [x, y]| (x < y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { unsigned: true };
    cpu impl;

    /// x <= y.
    op Le[2] = "LeBackward0", Bool;
    f |_, [x, y]| R::of(x.le(y));
    int |_, [x, y]| (x <= y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { unsigned: true };
    cpu impl;

    /// x == y.
    op Eq[2] = "EqBackward0", Bool;
    f |_, [x, y]| R::of(x.equal(y));
    int |_, [x, y]| (x == y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    complex Analytic;
    facts { unsigned: true, float8: true };

    /// Whether both are nonzero.
    op LogicalAnd[2] = "LogicalAndBackward0", Bool;
    f |_, [x, y]| R::of(R::not(R::either(x.equal(c(0.0)), y.equal(c(0.0)))));
    int |_, [x, y]| (x != 0 && y != 0) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    complex Analytic;

    /// Whether either is nonzero.
    op LogicalOr[2] = "LogicalOrBackward0", Bool;
    f |_, [x, y]| R::of(R::not(R::both(x.equal(c(0.0)), y.equal(c(0.0)))));
    int |_, [x, y]| (x != 0 || y != 0) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    complex Analytic;

    /// x != y.
    op Ne[2] = "NeBackward0", Bool;
    f |_, [x, y]| R::of(R::not(x.equal(y)));
    int |_, [x, y]| (x != y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    complex Analytic;
    facts { unsigned: true, float8: true };

    /// x > y.
    op Gt[2] = "GtBackward0", Bool;
    f |_, [x, y]| R::of(x.gt(y));
    int |_, [x, y]| (x > y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { unsigned: true };
    cpu impl;

    /// x >= y.
    op Ge[2] = "GeBackward0", Bool;
    f |_, [x, y]| R::of(x.ge(y));
    int |_, [x, y]| (x >= y) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    facts { unsigned: true };
    cpu impl;

    /// Whether exactly one is nonzero.
    op LogicalXor[2] = "LogicalXorBackward0", Bool;
    f |_, [x, y]| R::of(R::either(
        R::both(x.equal(c(0.0)), R::not(y.equal(c(0.0)))),
        R::both(y.equal(c(0.0)), R::not(x.equal(c(0.0))))));
    int |_, [x, y]| ((x != 0) != (y != 0)) as i64;
    df |_, _, _, _g| c(0.0), c(0.0);
    complex Analytic;

    /// Whether x is infinite.
    op IsInf[1] = "IsinfBackward0", Bool;
    f |_, [x]| R::of(x.is_infinite());
    int |_, _| 0;
    df |_, _, _, _g| c(0.0);
    complex Analytic;
    wgsl |_| "m_never(t0)";
    facts { unsigned: true, float8: true };

    /// Whether x is neither infinite nor NaN.
    op IsFinite[1] = "IsfiniteBackward0", Bool;
    f |_, [x]| R::of(x.is_finite());
    int |_, _| 1;
    df |_, _, _, _g| c(0.0);
    complex Analytic;
    wgsl |_| "m_always(t0)";
    facts { unsigned: true, float8: true };

    /// Whether x is positive infinity.
    op IsPosInf[1] = "IsposinfBackward0", Bool;
    f |_, [x]| R::of(x.equal(c(f64::INFINITY)));
    int |_, _| 0;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| refuse_complex("isposinf", "is not supported", t);
    wgsl |_| "m_never(t0)";

    /// Whether x is negative infinity.
    op IsNegInf[1] = "IsneginfBackward0", Bool;
    f |_, [x]| R::of(x.equal(c(f64::NEG_INFINITY)));
    int |_, _| 0;
    df |_, _, _, _g| c(0.0);
    check |_, t, _| refuse_complex("isneginf", "is not supported", t);
    wgsl |_| "m_never(t0)";

    /// Whether the sign of x is negative; that of -0 is.
    op Signbit[1] = "SignbitBackward0", Bool;
    f |_, [x]| R::of(c::<R>(1.0).copysign(x).lt(c(0.0)));
    int |_, [x]| (x < 0) as i64;
    df |_, _, _, _g| c(0.0);
    wgsl |_| "m_negative(t0)";

    /// The bits set in both.
    op BitwiseAnd[2] = "BitwiseAndBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |_, [x, y]| x & y;
    df |_, _, _, _g| c(0.0), c(0.0);
    wgsl |_| "t0 & t1";
    facts { numbers: true, unsigned: true };

    /// The bits set in either.
    op BitwiseOr[2] = "BitwiseOrBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |_, [x, y]| x | y;
    df |_, _, _, _g| c(0.0), c(0.0);
    wgsl |_| "t0 | t1";
    facts { numbers: true, unsigned: true };

    /// The bits set in exactly one.
    op BitwiseXor[2] = "BitwiseXorBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |_, [x, y]| x ^ y;
    df |_, _, _, _g| c(0.0), c(0.0);
    wgsl |_| "t0 ^ t1";
    facts { numbers: true, unsigned: true };

    /// All bits inverted; the other truth value for bool.
    op BitwiseNot { bool: bool }[1] = "BitwiseNotBackward0", IntOnly;
    f |_, [x]| x;
    int |p, [x]| if p.bool { (x == 0) as i64 } else { !x };
    df |_, _, _, _g| c(0.0);
    wgsl |p| if p.bool { "select(Acc(0), Acc(1), t0 == Acc(0))" } else { "~t0" };

    /// x * 2^y in the bits of the type; 0 where y is negative or not less than its size.
    op LeftShift { bits: i64 }[2] = "BitwiseLeftShiftBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |p, [x, y]| if (0..p.bits).contains(&y) { x << y } else { 0 };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("lshift", t);
    wgsl |p| match p.bits {
        8 => "m_left_shift(t0, t1, 8)",
        16 => "m_left_shift(t0, t1, 16)",
        32 => "m_left_shift(t0, t1, 32)",
        _ => "m_left_shift(t0, t1, 64)",
    };
    cpu impl;

    /// x / 2^y rounded down; the sign remains where y is negative or not less than the size.
    op RightShift { bits: i64 }[2] = "BitwiseRightShiftBackward0", IntOnly;
    f |_, [x, _y]| x;
    int |p, [x, y]| x >> if (0..p.bits).contains(&y) { y } else { 63 };
    df |_, _, _, _g| c(0.0), c(0.0);
    check |_, t, _| no_bool("rshift", t);
    wgsl |p| match p.bits {
        8 => "m_right_shift(t0, t1, 8)",
        16 => "m_right_shift(t0, t1, 16)",
        32 => "m_right_shift(t0, t1, 32)",
        _ => "m_right_shift(t0, t1, 64)",
    };
    cpu impl;
}

impl Cpu<2> for Lt {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::low((x < y) as i32)
    }
}

impl Cpu<2> for Le {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::low((x <= y) as i32)
    }
}

impl Cpu<2> for Gt {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::low((x > y) as i32)
    }
}

impl Cpu<2> for Ge {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::low((x >= y) as i32)
    }
}

impl Cpu<2> for LeftShift {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::left(x, y)
    }
}

impl Cpu<2> for RightShift {
    #[inline(always)]
    fn narrow<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        I::right(x, y)
    }
}

fn promoted(x: &Tensor, y: &Tensor) -> Result<DType> {
    let mut p = Promotion::default();
    for t in [x, y] {
        p.add(t.dtype(), t.ndim(), t.is_wrapped());
    }
    p.result()
}

fn bits<Sig: Signature>(a: &Args<Sig>) -> Result<i64> {
    Ok(8 * promoted(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?.size() as i64)
}

fn near<Sig: Signature>(a: &Args<Sig>) -> Result<Tensor> {
    let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    let (rtol, atol, equal_nan) = (
        a.float(arg!(rtol))?,
        a.float(arg!(atol))?,
        a.bool(arg!(equal_nan))?,
    );
    ensure!(
        x.dtype() == y.dtype(),
        Runtime,
        "{} did not match {}",
        x.dtype().scalar_name(),
        y.dtype().scalar_name()
    );
    ensure!(
        rtol >= 0.0,
        Runtime,
        "rtol must be greater than or equal to zero, but got {rtol}"
    );
    ensure!(
        atol >= 0.0,
        Runtime,
        "atol must be greater than or equal to zero, but got {atol}"
    );
    let (x, y) = (x.detach(), y.detach());
    let mut close = apply(Eq, [&x, &y])?;
    if x.dtype().differentiable() && equal_nan {
        let both = apply(LogicalAnd, [&apply(IsNan, [&x])?, &apply(IsNan, [&y])?])?;
        close = apply(LogicalOr, [&close, &both])?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return Ok(close);
    }
    let (x, y) = match x.dtype() {
        t if t.is_integral() => {
            let float = crate::dtype::default_dtype();
            (x.to_dtype(float)?, y.to_dtype(float)?)
        }
        _ => (x, y),
    };
    let allowed = apply(Abs, [&y.mul_scalar(rtol)?])?.add_scalar(atol)?;
    let off = apply(Abs, [&x.sub(&y)?])?;
    let within = apply(
        LogicalAnd,
        [&apply(IsFinite, [&off])?, &apply(Le, [&off, &allowed])?],
    )?;
    apply(LogicalOr, [&close, &within])
}

/// Whether every element is nonzero.
fn all_true(x: &Tensor) -> Result<bool> {
    if x.answers() && x.stands() {
        return x.all_true();
    }
    let x = x.to_host()?.prepared(DType::Bool)?;
    // SAFETY: contiguous host memory of bytes.
    Ok(unsafe { x.slice::<u8>() }.iter().all(|&v| v != 0))
}

fn bitwise_not<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    a.apply(
        BitwiseNot {
            bool: x.dtype() == DType::Bool,
        },
        [x],
    )
}

/// Comparisons write to any type in place, and to any type with `out=`.
/// Elements that `equal` compares before all others.
const FIRST: usize = 4096;

const CMP: u32 = crate::schema::flag::PW;

/// These write to bools only.
fn into_bool(a: &Args) -> Result<()> {
    let Dest::Out(out) = a.dest else {
        return Ok(());
    };
    ensure!(
        out[0].dtype() == DType::Bool,
        Runtime,
        "{} does not support non-boolean outputs.",
        a.schema.name
    );
    Ok(())
}

/// A truth value for each element, in the order of its dimensions.
fn all(x: &Tensor, truth: bool) -> Result<Value> {
    if x.stands() {
        return Ok(x
            .blank(x.shape(), truth.into(), DType::Bool, x.device())?
            .into());
    }
    let y = x.empty_like(DType::Bool, x.device(), MemoryFormat::Preserve)?;
    y.write_scalar(truth.into())?;
    Ok(y.into())
}

/// What `op` says of each number, which for integers is always the same.
fn class<Sig: Signature>(a: &Args<Sig>, op: impl Pointwise<1>, of_integers: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    match x.dtype().is_integral() {
        true => all(x, of_integers),
        false => a.apply(op, [x]),
    }
}

crate::entries! {
    /// Whether the elements are equal.
    "eq(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Eq, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether the elements differ.
    "ne(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Ne, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether the elements differ.
    "not_equal(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Ne, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self < other.
    "lt(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Lt, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self < other.
    "less(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Lt, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self <= other.
    "le(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Le, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self <= other.
    "less_equal(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Le, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self > other.
    "gt(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Gt, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self > other.
    "greater(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Gt, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self >= other.
    "ge(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Ge, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether self >= other.
    "greater_equal(Tensor self, Tensor|Scalar other) -> Tensor", CMP,
    |a| a.apply(Ge, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether both are nonzero.
    "logical_and(Tensor self, Tensor other) -> Tensor", CMP,
    |a| a.apply(LogicalAnd, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether either is nonzero.
    "logical_or(Tensor self, Tensor other) -> Tensor", CMP,
    |a| a.apply(LogicalOr, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether exactly one is nonzero.
    "logical_xor(Tensor self, Tensor other) -> Tensor", CMP,
    |a| a.apply(LogicalXor, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// Whether x is zero.
    "logical_not(Tensor self) -> Tensor", CMP,
    |a| a.apply(LogicalNot, [a.tensor(arg!(self))?]);
    /// The bits set in both; the logical and of bools.
    "bitwise_and(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(BitwiseAnd, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The bits set in both; the logical and of bools.
    "bitwise_and(Scalar self, Tensor other) -> Tensor", FN,
    |a| Ok(apply(BitwiseAnd, [&Tensor::number(a.scalar(arg!(self))?)?, a.tensor(arg!(other))?])?.into());
    /// The bits set in both; the logical and of bools.
    "__iand__(Tensor self, Tensor|Scalar other) -> Tensor", FN | METHOD,
    |a| Ok(apply_(BitwiseAnd, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The bits set in either; the logical or of bools.
    "bitwise_or(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(BitwiseOr, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The bits set in either; the logical or of bools.
    "bitwise_or(Scalar self, Tensor other) -> Tensor", FN,
    |a| Ok(apply(BitwiseOr, [&Tensor::number(a.scalar(arg!(self))?)?, a.tensor(arg!(other))?])?.into());
    /// The bits set in either; the logical or of bools.
    "__ior__(Tensor self, Tensor|Scalar other) -> Tensor", FN | METHOD,
    |a| Ok(apply_(BitwiseOr, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// The bits set in exactly one.
    "bitwise_xor(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(BitwiseXor, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The bits set in exactly one.
    "bitwise_xor(Scalar self, Tensor other) -> Tensor", FN,
    |a| Ok(apply(BitwiseXor, [&Tensor::number(a.scalar(arg!(self))?)?, a.tensor(arg!(other))?])?.into());
    /// The bits set in exactly one.
    "__ixor__(Tensor self, Tensor|Scalar other) -> Tensor", FN | METHOD,
    |a| Ok(apply_(BitwiseXor, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// self shifted by other bits toward the higher ones.
    "bitwise_left_shift(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(LeftShift { bits: bits(a)? }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self shifted by other bits toward the higher ones.
    "bitwise_left_shift(Scalar self, Tensor other) -> Tensor", FN,
    |a| {
        let (x, y) = (Tensor::number(a.scalar(arg!(self))?)?, a.tensor(arg!(other))?);
        let bits = 8 * promoted(&x, y)?.size() as i64;
        Ok(apply(LeftShift { bits }, [&x, y])?.into())
    };
    /// self shifted by other bits toward the higher ones.
    "__ilshift__(Tensor self, Tensor|Scalar other) -> Tensor", FN | METHOD,
    |a| Ok(apply_(LeftShift { bits: bits(a)? }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// self shifted by other bits toward the lower ones; the sign remains.
    "bitwise_right_shift(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(RightShift { bits: bits(a)? }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// self shifted by other bits toward the lower ones; the sign remains.
    "bitwise_right_shift(Scalar self, Tensor other) -> Tensor", FN,
    |a| {
        let (x, y) = (Tensor::number(a.scalar(arg!(self))?)?, a.tensor(arg!(other))?);
        let bits = 8 * promoted(&x, y)?.size() as i64;
        Ok(apply(RightShift { bits }, [&x, y])?.into())
    };
    /// self shifted by other bits toward the lower ones; the sign remains.
    "__irshift__(Tensor self, Tensor|Scalar other) -> Tensor", FN | METHOD,
    |a| Ok(apply_(RightShift { bits: bits(a)? }, [a.tensor(arg!(self))?, a.tensor(arg!(other))?])?.into());
    /// All bits inverted; the other truth value for bool.
    "bitwise_not(Tensor self) -> Tensor", PW,
    bitwise_not;
    /// Whether x is NaN.
    "isnan(Tensor self) -> Tensor", FN | METHOD,
    |a| class(a, IsNan, false);
    /// Whether x is infinite.
    "isinf(Tensor self) -> Tensor", FN | METHOD,
    |a| class(a, IsInf, false);
    /// Whether x is neither infinite nor NaN.
    "isfinite(Tensor self) -> Tensor", FN | METHOD,
    |a| class(a, IsFinite, true);
    /// Whether x is positive infinity.
    "isposinf(Tensor self) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| into_bool(a).and_then(|()| a.apply(IsPosInf, [a.tensor(arg!(self))?]));
    /// Whether x is negative infinity.
    "isneginf(Tensor self) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| into_bool(a).and_then(|()| a.apply(IsNegInf, [a.tensor(arg!(self))?]));
    /// Whether the sign of x is negative; that of -0 is.
    "signbit(Tensor self) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        into_bool(a)?;
        let x = a.tensor(arg!(self))?;
        match x.dtype().is_wide_unsigned() {
            true => a.apply(Lt, [x, &Tensor::number(Scalar::Int(0))?]),
            false => a.apply(Signbit, [x]),
        }
    };
    /// Whether the imaginary part is zero: true for real types.
    "isreal(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        if x.dtype().is_complex() {
            let imaginary = x.component(1);
            return Ok(apply(LogicalNot, [&imaginary])?.into());
        }
        all(x, true)
    };
    /// Whether |self - other| <= atol + rtol * |other|.
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", FN | METHOD,
    |a| Ok(near(a)?.into());
    /// Whether all elements are close, see `isclose`.
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool", FN | METHOD,
    |a| Ok(Value::Bool(all_true(&near(a)?)?));
    /// Whether shapes and all elements are equal.
    "equal(Tensor self, Tensor other) -> bool", FN | METHOD,
    |a| {
        let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
        if x.device() != y.device() {
            bail!(
                Runtime,
                "equal: expected both tensors on one device, got {} and {}",
                x.device(),
                y.device()
            );
        }
        if let Some(number) = asked_number("equal", &[x, y]) {
            return Ok(Value::Bool(number?.truth()));
        }
        if x.shape() != y.shape() {
            return Ok(Value::Bool(false));
        }
        // A NaN is not equal to itself.
        let numbers = x.dtype() == y.dtype() && x.dtype().is_integral();
        if numbers && x.shares_storage(y) && x.layout().same_places(y.layout()) {
            return Ok(Value::Bool(true));
        }
        let (x, y) = (x.detach(), y.detach());
        let same = |x: &Tensor, y: &Tensor| all_true(&apply(Eq, [x, y])?);
        let split = x.device() == Device::Cpu && x.numel() > 4 * FIRST;
        if split && x.is_contiguous() && y.is_contiguous() {
            // Most that differ do so here already.
            let first = |t: &Tensor| t.reshape(&[-1])?.narrow(0, 0, FIRST as i64);
            if !same(&first(&x)?, &first(&y)?)? {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(same(&x, &y)?))
    };
}

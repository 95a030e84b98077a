//! Tensors as numbers: a formula over [`E`] is a differentiable computation. This is where second
//! and higher derivatives come from.

use super::binary::*;
use super::compare::*;
use super::special::*;
use super::unary::*;
use super::{apply, Pointwise, Real, Special, Special2};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Kind, Result};
use crate::op::{Grads, Mask};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::RefCell;

/// A tensor in this thread's table. Formulas copy their numbers freely; handles may not be.
#[derive(Clone, Copy)]
pub struct E(usize);

#[derive(Default)]
struct Table {
    tensors: Vec<Tensor>,
    error: Option<Error>,
}

thread_local!(static TABLE: RefCell<Table> = RefCell::default());

/// Gradients of a pointwise op as a graph; inputs that no wanted gradient reads may be missing.
pub fn gradients<P: Pointwise<N>, const N: usize>(
    op: &P,
    x: &[Option<Tensor>],
    y: Option<&Tensor>,
    g: &Tensor,
    wanted: Mask,
) -> Result<Grads> {
    let df = |e: &[E], y, g| {
        op.df(std::array::from_fn(|i| e[i]), y, g)
            .into_iter()
            .collect()
    };
    evaluated(&df, x, y, g, wanted)
}

type Results = SmallVec<[E; 4]>;

fn evaluated(
    df: &dyn Fn(&[E], E, E) -> Results,
    x: &[Option<Tensor>],
    y: Option<&Tensor>,
    g: &Tensor,
    wanted: Mask,
) -> Result<Grads> {
    let (base, outer) = TABLE.with_borrow_mut(|t| (t.tensors.len(), t.error.take()));
    // Complex numbers are in every type or in none; a number of Python's has no precision of its own.
    let dtype = x
        .iter()
        .chain([&y.cloned()])
        .flatten()
        .filter(|t| t.dtype().is_complex() && !t.is_wrapped())
        .fold(g.dtype(), |d, t| d.promote(t.dtype()));
    let g = &conj(g)?;
    let out = (|| {
        let missing = put(Tensor::zeros(&[], dtype, g.device())?);
        let at = |t: Option<&Tensor>| match t {
            // Arithmetic of two numbers has the default type's precision: in float64 they are
            // tensors.
            Some(t) if t.is_wrapped() && dtype == DType::F64 => {
                Ok(put(Tensor::full(&[], t.item()?, dtype, t.device())?))
            }
            Some(t) if t.dtype() == dtype => Ok(put(t.clone())),
            Some(t) if t.dtype().is_integral() || t.ndim() > 0 => Ok(put(t.to_dtype(dtype)?)),
            Some(t) => Ok(put(t.clone())),
            None => Ok(missing),
        };
        let e: Results = x.iter().map(|x| at(x.as_ref())).collect::<Result<_>>()?;
        let d = df(&e, at(y)?, at(Some(g))?);
        let found: Grads = TABLE.with_borrow_mut(|t| match t.error.take() {
            Some(e) => Err(e),
            None => Ok(d
                .iter()
                .enumerate()
                .map(|(i, d)| (wanted >> i & 1 == 1).then(|| t.tensors[d.0].clone()))
                .collect()),
        })?;
        found
            .into_iter()
            .map(|d| d.map(|d| conj(&spread(&d, g)?)).transpose())
            .collect()
    })();
    let dropped: SmallVec<[Tensor; 8]> = TABLE.with_borrow_mut(|t| {
        t.error = outer;
        t.tensors.drain(base..).collect()
    });
    drop(dropped);
    out
}

/// A gradient that is a number of the formula, as a tensor.
fn spread(d: &Tensor, g: &Tensor) -> Result<Tensor> {
    if !d.is_wrapped() {
        return Ok(d.clone());
    }
    let d = d.with_wrapped(false).to_dtype(g.dtype())?;
    d.to_device(g.device())?.expand_to(g.shape())
}

/// The conjugate of a complex tensor; others as they are.
/// -1, 0 or 1; z / |z| of complex numbers.
pub fn sgn(t: &Tensor) -> Result<Tensor> {
    match t.dtype().is_complex() {
        true => apply(Sgn, [t]),
        false => apply(Sign, [t]),
    }
}

fn conj(t: &Tensor) -> Result<Tensor> {
    match t.dtype().is_complex() {
        true => apply(Conj, [t]),
        false => Ok(t.clone()),
    }
}

fn put(t: Tensor) -> E {
    TABLE.with_borrow_mut(|table| {
        table.tensors.push(t);
        E(table.tensors.len() - 1)
    })
}

fn get(e: E) -> Tensor {
    TABLE.with_borrow(|t| t.tensors[e.0].clone())
}

/// The first error wins; later steps work on whatever is at hand and are thrown away.
fn keep(r: Result<Tensor>, instead: E) -> E {
    match r {
        Ok(t) => put(t),
        Err(e) => {
            TABLE.with_borrow_mut(|t| {
                t.error.get_or_insert(e);
            });
            instead
        }
    }
}

fn unknown(f: impl std::fmt::Debug) -> Result<Tensor> {
    Err(Error::new(
        Kind::NotImplemented,
        format!("the derivative of {f:?} is not implemented"),
    ))
}

fn one<P: Pointwise<1>>(op: P, a: E) -> E {
    keep(apply(op, [&get(a)]), a)
}

fn two<P: Pointwise<2>>(op: P, a: E, b: E) -> E {
    keep(apply(op, [&get(a), &get(b)]), a)
}

macro_rules! operators {
    ($($tr:ident $m:ident $op:expr;)*) => { $(
        impl std::ops::$tr for E {
            type Output = E;
            fn $m(self, o: E) -> E {
                two($op, self, o)
            }
        }
    )* };
}
operators! {
    Add add Add { alpha: Scalar::Int(1) };
    Sub sub Sub { alpha: Scalar::Int(1) };
    Mul mul Mul;
    Div div Div;
}
impl std::ops::Neg for E {
    type Output = E;
    fn neg(self) -> E {
        one(Neg, self)
    }
}

/// Ops that are one primitive each.
macro_rules! primitives {
    ($($m:ident $op:ident;)*) => { $(
        fn $m(self) -> E {
            one($op, self)
        }
    )* };
}

impl Real for E {
    type Mask = E;

    fn lit(v: f64) -> E {
        match Tensor::number(Scalar::Float(v)) {
            Ok(t) => put(t),
            Err(e) => {
                TABLE.with_borrow_mut(|t| {
                    t.error.get_or_insert(e);
                });
                E(0)
            }
        }
    }
    fn lt(self, o: E) -> E {
        two(Lt, self, o)
    }
    fn le(self, o: E) -> E {
        two(Le, self, o)
    }
    fn equal(self, o: E) -> E {
        two(Eq, self, o)
    }
    fn is_nan(self) -> E {
        one(IsNan, self)
    }
    fn both(a: E, b: E) -> E {
        two(LogicalAnd, a, b)
    }
    fn either(a: E, b: E) -> E {
        two(LogicalOr, a, b)
    }
    fn not(a: E) -> E {
        one(LogicalNot, a)
    }
    fn select(m: E, yes: E, no: E) -> E {
        let (m, yes, no) = (get(m), get(yes), get(no));
        let done = super::ternary::where_(&m, &yes, &no);
        keep(done, E(0))
    }
    primitives! {
        abs Abs; sqrt Sqrt; floor Floor; ceil Ceil; trunc Trunc; round Round;
        exp Exp; exp2 Exp2; expm1 Expm1; ln Log; log2 Log2; log10 Log10; log1p Log1p;
        sin Sin; cos Cos; tan Tan; asin Asin; acos Acos; atan Atan;
        sinh Sinh; cosh Cosh; tanh Tanh; asinh Asinh; acosh Acosh; atanh Atanh;
        sigmoid Sigmoid; erf Erf; erfc Erfc; erfinv Erfinv; lgamma Lgamma; digamma Digamma;
        recip Reciprocal; rsqrt Rsqrt; square Square;
    }
    fn conj(self) -> E {
        keep(conj(&get(self)), self)
    }
    fn sign(self) -> E {
        keep(sgn(&get(self)), self)
    }
    fn polygamma(self, n: u32) -> E {
        one(Polygamma { n }, self)
    }
    fn special(self, f: Special) -> E {
        match f {
            Special::I0 => one(I0, self),
            Special::I0e => one(I0e, self),
            Special::I1 => one(I1, self),
            Special::I1e => one(I1e, self),
            Special::Ndtri => one(Ndtri, self),
            Special::LogNdtr => one(LogNdtr, self),
            Special::Erfcx => one(Erfcx, self),
            Special::Exponent => one(Exponent, self),
            _ => keep(unknown(f), self),
        }
    }
    fn special2(self, o: E, f: Special2) -> E {
        match f {
            Special2::Zeta => two(Zeta, self, o),
            _ => keep(unknown(f), self),
        }
    }
    fn whole_power(self, e: i64) -> E {
        match e {
            2 => one(Square, self),
            3 => one(Cube, self),
            -2 | -1 | 1 | 4 => one(SmallPower { e }, self),
            _ => one(PowNumber { e: e as f64, n: e }, self),
        }
    }
    fn pow(self, e: E) -> E {
        two(Pow, self, e)
    }
    fn atan2(self, x: E) -> E {
        two(Atan2, self, x)
    }
    fn fmod(self, o: E) -> E {
        two(Fmod, self, o)
    }
    fn copysign(self, sign: E) -> E {
        two(Copysign, self, sign)
    }
    fn min(self, o: E) -> E {
        two(Minimum, self, o)
    }
    fn max(self, o: E) -> E {
        two(Maximum, self, o)
    }
}

/// A constant tensor for formulas outside the table.
pub fn scalar(v: f64, dtype: DType, device: Device) -> Result<Tensor> {
    Tensor::full(&[], Scalar::Float(v), dtype, device)
}

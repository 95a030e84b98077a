//! Running results along a dimension.

mod extreme;
mod sums;
mod walk;

use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::elements::{Compute, Element};
use crate::cpu::reduce::filled;
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dispatch::parts::by_parts;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::scan::{Scan, Step};
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::one;
use crate::op::{Cut, Derivative, Grads, Mask, Metas, Op, Rare, Save, TensorMeta, Tensors, Traits};
use crate::ops::pointwise::binary::Logaddexp;
use crate::ops::pointwise::compare::{Eq, Ge, Le, LogicalOr, Ne};
use crate::ops::pointwise::complex::C;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Conj, Exp, Log};
use crate::ops::pointwise::{apply, Real};
use crate::ops::shape::join::cat;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Span};
use crate::tensor::Tensor;
use crate::{bail, transfer, with_compute, with_float};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;
use walk::{walk, Slots};

/// A type whose running results are kept in a wider one.
pub trait Widened: Compute {
    type Wide: Compute + Lane;
    fn wide(self) -> Self::Wide;
    fn narrow(v: Self::Wide) -> Self;
}
macro_rules! widened {
    ($($t:ident in $wide:ident),*) => { $(
        impl Widened for $t {
            type Wide = $wide;
            #[inline(always)]
            fn wide(self) -> $wide {
                self as $wide
            }
            #[inline(always)]
            fn narrow(v: $wide) -> $t {
                v as $t
            }
        }
    )* };
}
widened!(f32 in f64, f64 in f64, i64 in i64);

/// Runs a scan along `dim` of the GPU's tensors.
fn launch(
    gpu: &Gpu,
    (step, blend): (Step, &str),
    (dim, reverse): (usize, bool),
    x: &[&Tensor],
    y: &[Tensor],
) -> Result<bool> {
    let given = x.iter().map(|t| transfer::dense(gpu, t));
    let given: SmallVec<[Tensor; 2]> = given.collect::<Result<_>>()?;
    let scan = Scan {
        step,
        reverse,
        lines: Span::of(y[0].shape(), dim),
        x: transfer::whole(&given[0])?,
        b: given.get(1).map(transfer::whole).transpose()?,
        segments: None,
        blend,
    };
    let index = y.get(1).map(transfer::whole).transpose()?;
    transfer::ran(scan.run(gpu, transfer::whole(&y[0])?, index))
}

/// Both halves of lines that no kernel binds, as where they begin and how long they are; `None` of others.
fn halves(x: &Tensor, (dim, reverse): (usize, bool), widest: DType) -> Option<[(i64, i64); 2]> {
    if transfer::has_short_lines_of(x, dim, widest) {
        return None;
    }
    let n = x.size(dim) as i64;
    let (low, high) = ((0, n / 2), (n / 2, n - n / 2));
    Some(if reverse { [high, low] } else { [low, high] })
}

/// A scan of lines that no binding has, by their halves: what the one in front ends with is joined to all
/// of the other. `None` where a kernel can bind a line.
fn by_halves<O: Op + Clone>(
    op: &O,
    (dim, reverse): (usize, bool),
    x: &Tensor,
    dtype: DType,
    join: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Option<Tensors>> {
    let Some([first, second]) = halves(x, (dim, reverse), x.dtype().compute()) else {
        return Ok(None);
    };
    let part = |t: &Tensor, (from, n)| t.narrow(dim as i64, from, n);
    let y = Tensor::empty(x.shape(), dtype, x.device())?;
    let front = dispatch::call1(op.clone(), &[&part(x, first)?])?;
    let end = if reverse { 0 } else { first.1 - 1 };
    let so_far = part(&front, (end, 1))?;
    part(&y, first)?.write_from(&front)?;
    drop(front);
    let rest = dispatch::call1(op.clone(), &[&part(x, second)?])?;
    part(&y, second)?.write_from(&join(&so_far, &rest)?)?;
    Ok(Some(smallvec![y]))
}

fn same_meta(x: &Meta, dtype: DType) -> Result<Metas> {
    Ok(smallvec![TensorMeta::new(x.shape(), dtype, x.device())])
}

/// Running sums, from the end with `reverse`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumsum {
    pub dim: usize,
    pub reverse: bool,
    pub dtype: DType,
}

impl Derivative for Cumsum {
    fn name(&self) -> &'static str {
        "CumsumBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let op = Cumsum {
            reverse: !self.reverse,
            dtype: g.dtype(),
            ..self.clone()
        };
        one(dispatch::call1(op, &[g])?)
    }
}

impl Op for Cumsum {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Cumsum {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::UNSIGNED,
            linear: &[0],
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], self.dtype)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if self.dtype.is_complex() {
            let dtype = self.dtype.part();
            return by_parts(&Cumsum { dtype, ..*self }, x, &[0], &y[0]);
        }
        with_compute!(self.dtype, T => {
            let x = x[0].to_dtype(self.dtype)?.prepared(T::DTYPE)?;
            let from = Slots(x.ptr::<T>());
            filled::<T>(&y[0], |y| {
                let y = Slots::of(y);
                let init = <T as Widened>::Wide::of_i64(0);
                if sums::is_long(x.shape(), self.dim) {
                    return sums::long(x.shape(), self.dim, self.reverse, from, y);
                }
                walk(x.shape(), self.dim, self.reverse, init, move |e, _, s| {
                    *s = s.plus(from.get(e).wide());
                    y.set(e, s.to_element());
                });
            });
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        by_halves(
            self,
            (self.dim, self.reverse),
            x[0],
            self.dtype,
            Tensor::add,
        )
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = x[0].to_dtype(y[0].dtype())?;
        launch(gpu, (Step::Sum, ""), (self.dim, self.reverse), &[&x], y)
    }
}

/// Running products, from the end with `reverse`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumprod {
    pub dim: usize,
    pub reverse: bool,
    pub dtype: DType,
}

impl Derivative for Cumprod {
    fn name(&self) -> &'static str {
        "CumprodBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    /// With `s[k] = g[k] + x[k+1] s[k+1]`, the gradient is `y[k-1] s[k]`: nothing is divided, so
    /// zeros are no exception.
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let x = conjugate(&cx.input(0)?.to_dtype(self.dtype)?)?;
        if x.size(self.dim) == 1 {
            return one(g.clone());
        }
        let op = Recurrence {
            dim: self.dim,
            reverse: !self.reverse,
            own: false,
        };
        let s = dispatch::call1(op, &[g, &x])?;
        let before = cx
            .output(0)?
            .shifted(self.dim, self.reverse, Scalar::Int(1))?;
        one(s.mul(&conjugate(&before)?)?)
    }
}

fn conjugate(x: &Tensor) -> Result<Tensor> {
    match x.dtype().is_complex() {
        true => apply(Conj, [x]),
        false => Ok(x.clone()),
    }
}

/// Real and imaginary part.
type Pair = [f64; 2];

fn times(a: Pair, b: Pair) -> Pair {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// log(e^a + e^b), and b where both are nothing.
fn logaddexp(a: Pair, b: Pair) -> Pair {
    let (least, most) = if a[0] < b[0] { (a, b) } else { (b, a) };
    let [least, most] = [least, most].map(|z| C(z[0], z[1]));
    let C(re, im) = if least.is_nan() || most.is_nan() {
        C(f64::NAN, f64::NAN)
    } else if least.0 == most.0 && least.0 == f64::NEG_INFINITY {
        least
    } else if least.0 == most.0 && least.0 == f64::INFINITY {
        (least.exp() + most.exp()).log1p()
    } else {
        most + (least - most).exp().log1p()
    };
    [re, im]
}

/// Visits complex numbers as [`walk`] does: `f(elements of x, state)` gives the result.
fn walk_complex<const N: usize, A: Copy + Send + Sync>(
    x: [&Tensor; N],
    y: &Tensor,
    (dim, reverse): (usize, bool),
    init: A,
    f: impl Fn([Pair; N], &mut A) -> Pair + Sync + Copy,
) -> Result<()> {
    let wide = |t: &Tensor| t.to_dtype(DType::C128)?.prepared(DType::C128);
    let x: SmallVec<[Tensor; 2]> = x.into_iter().map(wide).collect::<Result<_>>()?;
    let from: [Slots<Pair>; N] = std::array::from_fn(|i| Slots(x[i].bytes_ptr().cast()));
    let out = Tensor::empty(y.shape(), DType::C128, y.device())?;
    let to = Slots(out.bytes_ptr().cast::<Pair>());
    walk(y.shape(), dim, reverse, init, move |e, _, s| {
        to.set(e, f(from.map(|x| x.get(e)), s));
    });
    y.write_from(&out)
}

impl Op for Cumprod {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Cumprod {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::UNSIGNED,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], self.dtype)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if self.dtype.is_complex() {
            let along = (self.dim, self.reverse);
            return walk_complex([x[0]], &y[0], along, [1.0, 0.0], |[x], s| {
                *s = times(*s, x);
                *s
            });
        }
        with_compute!(self.dtype, T => {
            let x = x[0].to_dtype(self.dtype)?.prepared(T::DTYPE)?;
            let from = Slots(x.ptr::<T>());
            filled::<T>(&y[0], |y| {
                let y = Slots::of(y);
                let init = <T as Widened>::Wide::of_i64(1);
                walk(x.shape(), self.dim, self.reverse, init, move |e, _, s| {
                    *s = s.times(<T as Widened>::Wide::from_element(from.get(e)));
                    y.set(e, s.to_element());
                });
            });
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        by_halves(
            self,
            (self.dim, self.reverse),
            x[0],
            self.dtype,
            Tensor::mul,
        )
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = x[0].to_dtype(self.dtype)?;
        launch(gpu, (Step::Prod, ""), (self.dim, self.reverse), &[&x], y)
    }
}

/// `s[k] = a[k] + b s[k-1]`, where `b` is `b[k]` with `own` and else the previous step's `b[k-1]`;
/// with `reverse` the previous step is `k+1`. Each of the four is the adjoint of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    pub dim: usize,
    pub reverse: bool,
    pub own: bool,
}

impl Derivative for Recurrence {
    fn name(&self) -> &'static str {
        "RecurrenceBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None, None]);
        };
        let adjoint = Recurrence {
            dim: self.dim,
            reverse: !self.reverse,
            own: !self.own,
        };
        let r = dispatch::call1(adjoint, &[g, &conjugate(&cx.input(1)?)?])?;
        let zero = Scalar::Int(0);
        let s = conjugate(&cx.output(0)?)?;
        let b = match self.own {
            true => r.mul(&s.shifted(self.dim, self.reverse, zero)?)?,
            false => r.shifted(self.dim, !self.reverse, zero)?.mul(&s)?,
        };
        Ok(smallvec![Some(r), Some(b)])
    }
}

impl Op for Recurrence {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Recurrence {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], x[0].dtype())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if x[0].dtype().is_complex() {
            let (own, along) = (self.own, (self.dim, self.reverse));
            let f = move |[a, b]: [Pair; 2], last: &mut Option<(Pair, Pair)>| {
                let s = last.map_or(a, |(s, before)| {
                    let add = times(if own { b } else { before }, s);
                    [a[0] + add[0], a[1] + add[1]]
                });
                *last = Some((s, b));
                s
            };
            return walk_complex([x[0], x[1]], &y[0], along, None, f);
        }
        with_float!(x[0].dtype(), "cumprod_backward", T => {
            let dtype = T::DTYPE;
            let (a, b) = (x[0].prepared(dtype)?, x[1].prepared(dtype)?);
            let (from, by) = (Slots(a.ptr::<T>()), Slots(b.ptr::<T>()));
            filled::<T>(&y[0], |y| {
                let y = Slots::of(y);
                let own = self.own;
                // The state: the last result and the last coefficient, and whether there are none yet. The
                // sum of the first is computed too where lines go in vectors, so all are numbers.
                let init = (0.0, 0.0, true);
                walk(a.shape(), self.dim, self.reverse, init, move |e, _, last: &mut (f64, f64, bool)| {
                    let (a, b) = (from.get(e).to_f64(), by.get(e).to_f64());
                    let (s, before, first) = *last;
                    let next = a + if own { b } else { before } * s;
                    let s = if first { a } else { next };
                    *last = (s, b, false);
                    y.set(e, s as T);
                });
            });
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    /// Of a line that no kernel binds the second half by itself, and what the first one adds to it: its last
    /// result times the coefficients from there on.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let Some([first, second]) = halves(x[0], (self.dim, self.reverse), x[0].dtype().compute())
        else {
            return Ok(None);
        };
        let part = |t: &Tensor, (from, n)| t.narrow(self.dim as i64, from, n);
        let run = |of| dispatch::call1(self.clone(), &[&part(x[0], of)?, &part(x[1], of)?]);
        let front = run(first)?;
        let end = if self.reverse { 0 } else { first.1 - 1 };
        let last = part(&front, (end, 1))?;
        // Where they are not a step's own they are those of the step before.
        let by = match (self.own, self.reverse) {
            (true, _) => second,
            (false, false) => (second.0 - 1, second.1),
            (false, true) => (second.0 + 1, second.1),
        };
        let growth = Cumprod {
            dim: self.dim,
            reverse: self.reverse,
            dtype: x[0].dtype(),
        };
        let growth = dispatch::call1(growth, &[&part(x[1], by)?.to_dtype(x[0].dtype())?])?;
        let rest = run(second)?.add(&growth.mul(&last)?)?;
        let y = Tensor::empty(x[0].shape(), x[0].dtype(), x[0].device())?;
        part(&y, first)?.write_from(&front)?;
        part(&y, second)?.write_from(&rest)?;
        Ok(Some(smallvec![y]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let step = if self.own { Step::Own } else { Step::Before };
        launch(gpu, (step, ""), (self.dim, self.reverse), x, y)
    }
}

/// The logarithm of the sum of two exponentials; equal infinities stay what they are.
const LOGADDEXP: &str = "fn blend(l: Acc, r: Acc) -> Acc {
    if (is_nan(l)) { return l; }
    if (is_nan(r)) { return r; }
    let high = max(l, r);
    let low = min(l, r);
    if (low == high && m_is_inf(low)) { return high; }
    return high + m_log1p(m_exp(low - high));
}
";

/// Logarithms of running sums of exponentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Logcumsumexp {
    dim: usize,
}

impl Derivative for Logcumsumexp {
    fn name(&self) -> &'static str {
        "LogcumsumexpBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    /// With `u[k] = g[k] + e^(y[k] - y[k+1]) u[k+1]`, whose factors are at most one, the gradient
    /// is `e^(x[k] - y[k]) u[k]`.
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        if g.ndim() == 0 {
            return one(g.clone());
        }
        if g.dtype().is_complex() {
            // The sum of g[k] e^-y[k] from each element on, by its logarithm.
            let d = self.dim as i64;
            let flip = |t: &Tensor| t.flip(&[d]);
            let terms = apply(Log, [&g.conj()?])?.sub(&cx.output(0)?)?;
            // Of what is nothing no angle.
            let [zero, least] = [0.0, f64::NEG_INFINITY].map(|x| Tensor::constant(x, g.dtype()));
            let terms = where_(&apply(Eq, [g, &zero?])?, &least?, &terms)?;
            let sums = flip(&flip(&terms)?.logcumsumexp(d)?)?;
            return one(apply(Exp, [&sums.add(&cx.input(0)?)?])?.conj()?);
        }
        // Differences of halves would lose what the factors are made of.
        let dtype = g.dtype();
        let wide = if dtype.is_half() { DType::F32 } else { dtype };
        let (x, g) = (cx.input(0)?.to_dtype(wide)?, &g.to_dtype(wide)?);
        let y = match dtype.is_half() {
            true => dispatch::call1(self.clone(), &[&x])?,
            false => cx.output(0)?,
        };
        // Behind the last one nothing follows: its factor and that one's slopes are 0.
        let next = y.shifted(self.dim, true, Scalar::Float(f64::INFINITY))?;
        let b = ratio(&y, &next)?;
        let op = Recurrence {
            dim: self.dim,
            reverse: true,
            own: true,
        };
        let u = dispatch::call1(op, &[g, &b])?;
        one(u.mul(&ratio(&x, &y)?)?.to_dtype(dtype)?)
    }
}

impl Tensor {
    /// `logcumsumexp` along `dim`.
    fn logcumsumexp(&self, dim: i64) -> Result<Tensor> {
        let dim = shape::dim(dim, self.ndim())?;
        dispatch::call1(Logcumsumexp { dim }, &[self])
    }
}

/// `e^(a - b)`, and 1 where both are the same infinity.
fn ratio(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let same = apply(Eq, [a, b])?;
    let zero = Tensor::constant(0.0, a.dtype())?;
    apply(Exp, [&where_(&same, &zero, &a.sub(b)?)?])
}

impl Logcumsumexp {
    /// Of complex numbers: in each step of twice as many elements, those of half as many before joined.
    fn doubled(&self, x: &Tensor) -> Result<Tensor> {
        let (d, n) = (self.dim as i64, Span::of(x.shape(), self.dim).length as i64);
        // What is nothing has no angle.
        let nothing = Tensor::constant(f64::NEG_INFINITY, x.dtype())?;
        let (mut y, mut by) = (apply(Logaddexp, [x, &nothing])?, 1);
        while by < n {
            let [before, after] = [0, by].map(|from| y.narrow(d, from, n - by));
            let joined = apply(Logaddexp, [&before?, &after?])?;
            y = cat(&[y.narrow(d, 0, by)?, joined], d)?;
            by *= 2;
        }
        Ok(y)
    }
}

impl Op for Logcumsumexp {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Logcumsumexp { dim: self.dim + 1 }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], x[0].dtype())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if x[0].dtype().is_complex() {
            let along = (self.dim, false);
            return walk_complex([x[0]], &y[0], along, [f64::NEG_INFINITY, 0.0], |[x], s| {
                *s = logaddexp(x, *s);
                *s
            });
        }
        with_float!(x[0].dtype(), "logcumsumexp_out_cpu", T => {
            let x = x[0].prepared(T::DTYPE)?;
            let from = Slots(x.ptr::<T>());
            filled::<T>(&y[0], |y| {
                let y = Slots::of(y);
                walk(x.shape(), self.dim, false, f64::NEG_INFINITY, move |e, _, s| {
                    let v = from.get(e).to_f64();
                    let (low, high) = if v < *s { (v, *s) } else { (*s, v) };
                    *s = if s.is_nan() || v.is_nan() {
                        f64::NAN
                    } else if low == high && low.is_infinite() {
                        high
                    } else {
                        high + (low - high).exp().ln_1p()
                    };
                    y.set(e, *s as T);
                });
            });
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].dtype().is_complex() {
            return Ok(Some(smallvec![self.doubled(x[0])?]));
        }
        by_halves(self, (self.dim, false), x[0], x[0].dtype(), |a, b| {
            apply(Logaddexp, [a, b])
        })
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if x[0].dtype().is_complex() {
            return Ok(false);
        }
        launch(gpu, (Step::Blend, LOGADDEXP), (self.dim, false), x, y)
    }
}

/// Running maxima or minima and where they are; of equal ones the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CumulativeExtreme {
    dim: usize,
    largest: bool,
}

impl Derivative for CumulativeExtreme {
    fn name(&self) -> &'static str {
        if self.largest {
            "CummaxBackward0"
        } else {
            "CumminBackward0"
        }
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let n = Span::of(&cx.input_meta(0)?.shape, self.dim).length;
        one(g.put_along(self.dim, n, &cx.output(1)?)?)
    }
}

impl Op for CumulativeExtreme {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(CumulativeExtreme {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let values = TensorMeta::of(x[0]);
        let indices = TensorMeta {
            dtype: DType::I64,
            ..values.clone()
        };
        Ok(smallvec![values, indices])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        // SAFETY: a fresh contiguous output of this type.
        let at = unsafe { y[1].slice_mut::<i64>() };
        with_compute!(x[0].dtype(), T => {
            let x = x[0].prepared(T::DTYPE)?;
            let lines = (&x.shape()[..], self.dim);
            // SAFETY: contiguous host memory of this type.
            let from = unsafe { x.slice::<T>() };
            filled::<T>(&y[0], |y| match self.largest {
                true => extreme::running(from, lines, y, at, |v, old| v >= old),
                false => extreme::running(from, lines, y, at, |v, old| v <= old),
            });
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    /// Of a line that no kernel binds each half by itself; what the first one ends with stays until the second
    /// has something as extreme.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let Some([first, second]) = halves(x[0], (self.dim, false), DType::I64) else {
            return Ok(None);
        };
        let d = self.dim as i64;
        let run = |(from, n)| dispatch::call(self.clone(), &[&x[0].narrow(d, from, n)?]);
        let (front, mut rest) = (run(first)?, run(second)?);
        let last = |t: &Tensor| t.narrow(d, first.1 - 1, 1);
        let (held, at) = (last(&front[0])?, last(&front[1])?);
        let beyond = match self.largest {
            true => apply(Ge, [&rest[0], &held])?,
            false => apply(Le, [&rest[0], &held])?,
        };
        // NaN stays from the first one on.
        let nan = apply(Ne, [&rest[0], &rest[0]])?;
        let taken = apply(LogicalOr, [&beyond, &nan])?;
        rest[1] = rest[1].add_scalar(Scalar::Int(first.1))?;
        let y = [(0, held), (1, at)].map(|(i, held)| -> Result<Tensor> {
            let y = Tensor::empty(x[0].shape(), front[i].dtype(), x[0].device())?;
            y.narrow(d, first.0, first.1)?.write_from(&front[i])?;
            let rest = where_(&taken, &rest[i], &held)?;
            y.narrow(d, second.0, second.1)?.write_from(&rest)?;
            Ok(y)
        });
        let [values, indices] = y;
        Ok(Some(smallvec![values?, indices?]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let step = if self.largest { Step::Max } else { Step::Min };
        launch(gpu, (step, ""), (self.dim, false), x, y)
    }
}

impl Tensor {
    /// `cummax`, without the indices.
    pub fn running_max(&self, dim: usize) -> Result<Tensor> {
        let op = CumulativeExtreme { dim, largest: true };
        Ok(dispatch::call(op, &[self])?.swap_remove(0))
    }

    /// `cumsum` in this tensor's own type.
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        let dim = shape::dim(dim, self.ndim())?;
        dispatch::call1(
            Cumsum {
                dim,
                reverse: false,
                dtype: self.dtype(),
            },
            &[self],
        )
    }

    /// One step later along `dim` (with `earlier`, one step earlier); `fill` comes in at the end.
    pub fn shifted(&self, dim: usize, earlier: bool, fill: Scalar) -> Result<Tensor> {
        let out = Tensor::full(self.shape(), fill, self.dtype(), self.device())?;
        let n = self.size(dim) as i64;
        if self.ndim() == 0 || n < 2 {
            return Ok(out);
        }
        let d = dim as i64;
        let (to, from) = if earlier { (0, 1) } else { (1, 0) };
        out.slice_dim(d, Some(to), Some(to + n - 1), 1)?
            .copy_from(&self.slice_dim(d, Some(from), Some(from + n - 1), 1)?)?;
        Ok(out)
    }
}

fn cumulative_extreme<Sig: Signature>(a: &Args<Sig>, largest: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    Ok(Value::Tuple(
        dispatch::call(CumulativeExtreme { dim, largest }, &[x])?.into_vec(),
    ))
}

/// `cumsum` and `cumprod`: the dimension and the result's type.
fn scan_arguments<Sig: Signature>(a: &Args<Sig>) -> Result<(usize, DType)> {
    let x = a.tensor(arg!(self))?;
    let dtype = a.dtype(arg!(dtype)).unwrap_or(x.dtype().to_sum());
    if dtype == DType::Bool || dtype.is_wide_unsigned() {
        bail!(
            NoKernel,
            "\"{}_out_cpu\" not implemented for '{}'",
            a.schema.name,
            dtype.scalar_name()
        );
    }
    Ok((shape::dim(a.int(arg!(dim))?, x.ndim())?, dtype))
}

crate::entries! {
    /// Running sums along `dim`; integers and bool in int64.
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", ALL | TYPED | WHOLE,
    |a| {
        let (dim, dtype) = scan_arguments(a)?;
        Ok(dispatch::call1(Cumsum { dim, reverse: false, dtype }, &[a.tensor(arg!(self))?])?.into())
    };
    /// Running products along `dim`; integers and bool in int64.
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", ALL | TYPED | WHOLE,
    |a| {
        let (dim, dtype) = scan_arguments(a)?;
        Ok(dispatch::call1(Cumprod { dim, reverse: false, dtype }, &[a.tensor(arg!(self))?])?.into())
    };
    /// Running maxima along `dim` and their indices; of equal ones the last.
    "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", FN | METHOD | OUT,
    |a| cumulative_extreme(a, true);
    /// Running minima along `dim` and their indices; of equal ones the last.
    "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", FN | METHOD | OUT,
    |a| cumulative_extreme(a, false);
    /// Logarithms of running sums of exponentials along `dim`.
    "logcumsumexp(Tensor self, int dim) -> Tensor", FN | METHOD | OUT | WHOLE,
    |a| {
        Ok(a.tensor(arg!(self))?.logcumsumexp(a.int(arg!(dim))?)?.into())
    };
}

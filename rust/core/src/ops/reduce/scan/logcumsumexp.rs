//! Logarithms of running sums of exponentials.

use super::{by_halves, launch, running, running_complex, same_meta, Pair, Recurrence};
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::scan::Step;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Mask, Metas, Op, Save, Tensors};
use crate::ops::pointwise::binary::Logaddexp;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::complex::C;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Exp, Log};
use crate::ops::pointwise::{apply, Real};
use crate::ops::shape::join::cat;
use crate::shape::{self, Span};
use crate::tensor::Tensor;
use crate::with_float;
use smallvec::smallvec;
use std::sync::Arc;

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
    pub(super) fn logcumsumexp(&self, dim: i64) -> Result<Tensor> {
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
    along_lines!();

    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], x[0].dtype())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if x[0].dtype().is_complex() {
            let along = (self.dim, false);
            return running_complex([x[0]], &y[0], along, [f64::NEG_INFINITY, 0.0], |[x], s| {
                *s = logaddexp(x, *s);
                *s
            });
        }
        with_float!(x[0].dtype(), "logcumsumexp_out_cpu", T => {
            let along = (self.dim, false);
            running::<T, _, 1>([x[0]], &y[0], along, f64::NEG_INFINITY, |[x], s| {
                let v = Element::to_f64(x);
                let (low, high) = if v < *s { (v, *s) } else { (*s, v) };
                *s = if s.is_nan() || v.is_nan() {
                    f64::NAN
                } else if low == high && low.is_infinite() {
                    high
                } else {
                    high + (low - high).exp().ln_1p()
                };
                *s as T
            })?;
        });
        Ok(())
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

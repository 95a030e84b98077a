//! Running products, and recurrences, which their gradients are.

use super::{
    by_halves, conjugate, halves, launch, running, running_complex, same_meta, times, Pair,
};
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::number::Number;
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::scan::Step;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Mask, Metas, Op, Rare, Save, Tensors, Traits};
use crate::tensor::Tensor;
use crate::{with_compute, with_float};
use smallvec::smallvec;
use std::sync::Arc;

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

impl Op for Cumprod {
    along_lines!();

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
            return running_complex([x[0]], &y[0], along, [1.0, 0.0], |[x], s| {
                *s = times(*s, x);
                *s
            });
        }
        with_compute!(self.dtype, T => {
            let x = x[0].to_dtype(self.dtype)?;
            let init = <T as Number>::Wide::of_i64(1);
            running::<T, _, 1>([&x], &y[0], (self.dim, self.reverse), init, |[x], s| {
                *s = s.times(x.wide());
                T::narrow_from(*s)
            })?;
        });
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let along = (self.dim, self.reverse);
        by_halves(self, along, x[0], self.dtype, Tensor::mul)
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
    along_lines!();

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
            return running_complex([x[0], x[1]], &y[0], along, None, f);
        }
        with_float!(x[0].dtype(), "cumprod_backward", T => {
            // The state: the last result and the last coefficient, and whether there are none yet. The
            // sum of the first is computed too where lines go in vectors, so all are numbers.
            let (own, init) = (self.own, (0.0, 0.0, true));
            let along = (self.dim, self.reverse);
            running::<T, _, 2>([x[0], x[1]], &y[0], along, init, move |ab, last| {
                let ([a, b], (s, before, first)) = (ab.map(Element::to_f64), *last);
                let next = a + if own { b } else { before } * s;
                let s = if first { a } else { next };
                *last = (s, b, false);
                s as T
            })?;
        });
        Ok(())
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

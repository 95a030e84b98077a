//! Running extrema and where they were.

use super::walk::walk;
use super::{halves, launch};
use crate::autograd::Vjp;
use crate::cpu::elements::{Compute, Element};
use crate::cpu::pool::Ptr;
use crate::cpu::reduce::filled;
use crate::cpu::rows::lines;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::scan::Step;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Ge, Le, LogicalOr, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::with_compute;
use smallvec::smallvec;
use std::sync::Arc;

/// Running maxima or minima and where they are; of equal ones the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CumulativeExtreme {
    pub dim: usize,
    pub largest: bool,
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
    along_lines!();

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
                true => running(from, lines, y, at, |v, old| v >= old),
                false => running(from, lines, y, at, |v, old| v <= old),
            });
        });
        Ok(())
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

/// The last element so far that `beats` what was before it, and its position; a NaN is beaten by NaN
/// alone.
fn running<T: Compute>(
    x: &[T],
    (shape, dim): (&[usize], usize),
    values: &mut [T],
    positions: &mut [i64],
    beats: impl Fn(T, T) -> bool + Sync + Copy,
) {
    #[allow(clippy::eq_op)]
    let takes = move |v: T, old: T| (v != v) | beats(v, old);
    let (of, y, at) = (
        Span::of(shape, dim),
        Ptr::new(values.as_mut_ptr()),
        Ptr::new(positions.as_mut_ptr()),
    );
    if of.inner == 1 {
        return lines(of, (1, 1), 1, |l| {
            let part = l.at..l.at + l.n;
            // SAFETY: each line is one thread's alone.
            let (y, at) = unsafe { (y.part(part.clone()), at.part(part.clone())) };
            line(&x[part], y, at, takes);
        });
    }
    let first = (T::default(), 0);
    walk(
        shape,
        (dim, false),
        first,
        move |e, k, s: &mut (T, usize)| {
            let (v, old) = (x[e], *s);
            let wins = (k == 0) | takes(v, old.0);
            *s = if wins { (v, k) } else { old };
            // SAFETY: both results have this shape, and each element is visited once.
            unsafe { (*y.at(e), *at.at(e)) = (s.0, s.1 as i64) };
        },
    );
}

/// One line. Most blocks of a long one hold nothing new, which a few vectors tell.
fn line<T: Compute>(x: &[T], y: &mut [T], at: &mut [i64], takes: impl Fn(T, T) -> bool + Copy) {
    const BLOCK: usize = 16;
    let (mut best, mut position) = (x[0], 0);
    let blocks = x.chunks(BLOCK).zip(y.chunks_mut(BLOCK));
    for (b, ((x, y), at)) in blocks.zip(at.chunks_mut(BLOCK)).enumerate() {
        let any = match <&[T; BLOCK]>::try_from(x) {
            Ok(x) => x.iter().fold(false, |any, &v| any | takes(v, best)),
            Err(_) => true,
        };
        if !any {
            y.fill(best);
            at.fill(position as i64);
            continue;
        }
        for (j, ((&v, y), at)) in x.iter().zip(y).zip(at).enumerate() {
            let wins = takes(v, best);
            best = if wins { v } else { best };
            position = if wins { b * BLOCK + j } else { position };
            *y = best;
            *at = position as i64;
        }
    }
}

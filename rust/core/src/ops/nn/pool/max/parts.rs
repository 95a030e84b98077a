//! Maxima of planes that a GPU's kernel does not bind: parts of the windows, or of one window, read parts of
//! the plane.

use super::super::indices::NOWHERE;
use super::{Indices, MaxPool, Span};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::{Op, Tensors};
use crate::ops::nn::resample::gpu::MAX_VOLUME;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::DivFloor;
use crate::ops::pointwise::compare::{Gt, LogicalOr, Lt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::tensor::Tensor;
use crate::transfer::may_be_large;
use smallvec::smallvec;
use std::sync::Arc;

impl Span {
    /// How many elements it reads.
    fn steps(&self) -> usize {
        self.end.saturating_sub(self.start).div_ceil(self.step)
    }

    /// It in two, each with half of the elements.
    fn halves(&self) -> [Span; 2] {
        let middle = self.start + self.steps() / 2 * self.step;
        let (start, end) = (middle, middle);
        [Span { end, ..*self }, Span { start, ..*self }]
    }
}

impl MaxPool {
    /// The largest elements of these windows along one of the pooled dimensions, of which `first` is the
    /// number of the first if the others follow it; `None` where they read nothing.
    fn some(
        &self,
        x: &Tensor,
        d: usize,
        windows: &[Span],
        first: Option<usize>,
    ) -> Result<Option<[Tensor; 2]>> {
        let read = || windows.iter().filter(|s| s.start < s.end);
        let (low, high) = (read().map(|s| s.start).min(), read().map(|s| s.end).max());
        let (Some(low), Some(high)) = (low, high) else {
            return Ok(None);
        };
        let mut op = self.clone();
        let mut spans = (*self.spans).clone();
        let within = |s: &Span| Span {
            start: s.start.max(low) - low,
            end: s.end.max(low) - low,
            ..*s
        };
        spans[3 - self.n + d] = windows.iter().map(within).collect();
        op.spans = Arc::new(spans);
        op.regular = None;
        op.grid = self.grid.zip(first).map(|(mut grid, first)| {
            let axis = d + 2 - self.n;
            // No window begins in front of the first one.
            grid.padding[axis] = low + grid.padding[axis] - first * grid.stride[axis];
            (grid.input[axis], grid.output[axis]) = (high - low, windows.len());
            grid
        });
        let sizes = &x.shape()[x.ndim() - self.n..];
        let part = x.narrow(
            (x.ndim() - self.n + d) as i64,
            low as i64,
            (high - low) as i64,
        )?;
        let y = dispatch::call(op, &[&part])?;
        let (before, inner): (usize, usize) =
            (sizes[..d].iter().product(), sizes[d + 1..].iter().product());
        let at = moved(&y[1], before > 1, [high - low, sizes[d]], low, inner)?;
        Ok(Some([y[0].clone(), at]))
    }
}

/// Places in parts of planes as those in the planes, which have more elements along one dimension.
fn moved(
    at: &Tensor,
    is_inner: bool,
    [part, whole]: [usize; 2],
    low: usize,
    inner: usize,
) -> Result<Tensor> {
    if !is_inner && low == 0 {
        return Ok(at.clone());
    }
    let mut to = at.add_scalar((low * inner) as i64)?;
    if is_inner {
        let by = Tensor::number(Scalar::Int((part * inner) as i64))?;
        let before = apply(DivFloor, [at, &by])?;
        to = to.add(&before.mul_scalar(((whole - part) * inner) as i64)?)?;
    }
    let none = apply(Lt, [at, &Tensor::number(Scalar::Int(0))?])?;
    where_(&none, at, &to)
}

/// `None` where it is not for their size that a kernel does not take these, or nothing can be cut.
pub fn by_halves(op: &MaxPool, x: &Tensor) -> Result<Option<Tensors>> {
    let spans = &op.spans[3 - op.n..];
    let most = |d: usize| spans[d].iter().map(Span::steps).max().unwrap_or(0);
    let shape = op.infer(&[x.meta()])?.swap_remove(0).shape;
    let (dtype, device, outputs) = (x.dtype(), x.device(), shape.iter().product::<usize>());
    let bytes = (x.numel() * dtype.compute().size()).max(12 * outputs);
    let volume: usize = (0..op.n).map(|d| most(d) + 1).product();
    let is_large = may_be_large(device, bytes) || device.is_gpu() && volume >= MAX_VOLUME;
    if op.indices != Indices::Plane || !is_large {
        return Ok(None);
    }
    if let Some(d) = (0..op.n).find(|&d| spans[d].len() > 1) {
        let n = spans[d].len();
        let dim = (x.ndim() - op.n + d) as i64;
        let least = match dtype.is_float() {
            true => Scalar::Float(f64::NEG_INFINITY),
            false => Scalar::Int(dtype.limits().0),
        };
        let y: Tensors = smallvec![
            Tensor::full(&shape, least, dtype, device)?,
            Tensor::full(&shape, Scalar::Int(NOWHERE), DType::I64, device)?,
        ];
        for part in [0..n / 2, n / 2..n] {
            let place = |t: &Tensor| t.narrow(dim, part.start as i64, part.len() as i64);
            if let Some(some) = op.some(x, d, &spans[d][part.clone()], Some(part.start))? {
                place(&y[0])?.write_from(&some[0])?;
                place(&y[1])?.write_from(&some[1])?;
            }
        }
        return Ok(Some(y));
    }
    let Some(d) = (0..op.n).find(|&d| most(d) > 1) else {
        return Ok(None);
    };
    let [a, b] = spans[d][0]
        .halves()
        .map(|half| op.some(x, d, &[half], None));
    let (Some([a, at]), Some([b, there])) = (a?, b?) else {
        return Ok(None);
    };
    // Of equal ones the first, of NaN the last.
    let later = apply(LogicalOr, [&apply(Gt, [&b, &a])?, &apply(Ne, [&b, &b])?])?;
    let y = smallvec![where_(&later, &b, &a)?, where_(&later, &there, &at)?];
    Ok(Some(y))
}

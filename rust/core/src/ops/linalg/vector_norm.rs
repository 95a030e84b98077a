//! The p-norm of rows.

use crate::alloc;
use crate::autograd::{mode, Vjp};
use crate::cpu::elements::Compute;
use crate::cpu::pool::{parallel_chunks, Ptr};
use crate::cpu::rows::share;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Pow;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::expr::sgn;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Abs;
use crate::ops::pointwise::Float;
use crate::ops::reduce::beside;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::{host, per_isa};
use smallvec::SmallVec;
use std::sync::Arc;

/// The p-norm of the last dimension, which stays with size 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RowNorm {
    p: Bitwise,
}

impl Derivative for RowNorm {
    fn name(&self) -> &'static str {
        "LinalgVectorNormBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        if self.p.0 == 0.0 {
            return Ok(SmallVec::from_elem(None, 1));
        }
        let (x, p) = (cx.input(0)?, self.p.0);
        let last = DimSet::last(1, x.ndim())?;
        let beside = |t: &Tensor| beside(t, x.shape(), last, true);
        let (y, g) = (beside(&cx.output(0)?)?, &beside(g)?);
        let number = |v: f64| Tensor::number(Scalar::Float(v));
        let zero = Tensor::constant(0.0, x.dtype())?;
        let none = apply(Eq, [&y, &number(0.0)?])?;
        let power = |t: &Tensor, e: f64| apply(Pow, [t, &number(e)?]);
        let sign = || sgn(&x);
        let d = if p == 1.0 {
            sign()?.mul(g)?
        } else if p == 2.0 {
            // At the origin the norm has no gradient; 0 is a subgradient.
            // The quotient first: g / y may overflow.
            where_(&none, &zero, &x.div(&y)?.mul(g)?)?
        } else if p.is_infinite() {
            // A NaN is no extreme: nothing has a share in it.
            let hit = apply(Eq, [&apply(Abs, [&x])?, &y])?;
            let count = hit.sum_mask(last, true, Some(x.dtype()))?;
            where_(&hit, &sign()?.mul(&g.div(&count)?)?, &zero)?
        } else {
            let flat = apply(Eq, [&x, &number(0.0)?])?;
            let one = Tensor::constant(1.0, x.dtype())?;
            let a = power(&apply(Abs, [&x])?.div(&where_(&none, &one, &y)?)?, p - 1.0)?;
            where_(&flat, &zero, &sign()?.mul(&a)?.mul(g)?)?
        };
        Ok(SmallVec::from_elem(Some(d), 1))
    }
}

impl Op for RowNorm {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        if let Some(n) = meta.shape.last_mut() {
            *n = 1;
        }
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let width = x[0].shape().last().copied().unwrap_or(1);
        match x[0].dtype() {
            DType::F64 => norms::<f64>(x[0], width, self.p.0, &y[0]),
            _ => norms::<f32>(x[0], width, self.p.0, &y[0]),
        }
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].numel() == 0 || x[0].ndim() == 0 {
            return Ok(None);
        }
        let y = x[0].vector_norm(self.p.0, DimSet::last(1, x[0].ndim())?, true)?;
        Ok(Some(SmallVec::from_elem(y, 1)))
    }
}

/// The sum of `f` over a row, in lanes that are joined as a tree.
#[inline(always)]
fn total<T: Compute>(row: &[T], f: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let whole = row.chunks_exact(LANES);
    let rest = whole.remainder();
    for part in whole {
        for (sum, v) in sums.iter_mut().zip(part) {
            *sum += f(v.to_f64());
        }
    }
    for (sum, v) in sums.iter_mut().zip(rest) {
        *sum += f(v.to_f64());
    }
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            sums[j] += sums[j + half];
        }
        half /= 2;
    }
    sums[0]
}

/// The norm of a row, in float64.
#[inline(always)]
fn norm_of<T: Compute>(row: &[T], p: f64) -> T {
    let furthest = |start: f64, beats: fn(f64, f64) -> bool| {
        let better = |m: f64, v: f64| if v.is_nan() || beats(v, m) { v } else { m };
        row.iter().map(|&v| v.to_f64().abs()).fold(start, better)
    };
    T::of_f64(if p == 2.0 {
        total(row, |v| v * v).sqrt()
    } else if p == 0.0 {
        total(row, |v| (v != 0.0) as u8 as f64)
    } else if p == 1.0 {
        total(row, f64::abs)
    } else if p == f64::INFINITY {
        furthest(0.0, |v, m| v > m)
    } else if p == f64::NEG_INFINITY {
        furthest(f64::INFINITY, |v, m| v < m)
    } else {
        total(row, |v| v.abs().powf(p)).powf(1.0 / p)
    })
}

per_isa! {
    fn norms_of[T: Compute](rows: &[T], width: usize, p: f64, out: &mut [T]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = norm_of(&rows[i * width..(i + 1) * width], p);
        }
    }
}

fn norms<T: Compute>(x: &Tensor, width: usize, p: f64, y: &Tensor) -> Result<()> {
    let x = x.prepared(T::DTYPE)?;
    let mut out = alloc::full(T::default(), y.numel());
    // SAFETY: contiguous host memory of this type.
    let rows = unsafe { x.slice::<T>() };
    parallel_chunks(&mut out, 1, (1 << 14) / width.max(1) + 1, |first, out| {
        norms_of(&rows[first * width..], width, p, out);
    });
    y.write_from(&Tensor::from_slice(&out, y.shape(), T::DTYPE)?)
}

per_isa! {
    fn shortened_rows[T: Float](rows: &[T], width: usize, p: f64, most: T, out: &mut [T]) {
        let least = T::of_f64(1e-7).to_f64();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let norm = norm_of(row, p).to_f64();
            // As PyTorch's, so that nothing is divided by zero; each step rounds to the type.
            let most = most.to_f64();
            let factor = match norm > most {
                true => T::of_f64(most / T::of_f64(norm + least).to_f64()),
                false => T::of_f64(1.0),
            };
            for (&x, out) in row.iter().zip(out) {
                *out = x * factor;
            }
        }
    }
}

fn shortened<T: Float>(x: &Tensor, p: f64, most: f64) -> Result<Tensor> {
    let out = Tensor::empty(x.shape(), T::DTYPE, x.device())?;
    let (x, width) = (x.prepared(T::DTYPE)?, x.numel() / x.size(0));
    // SAFETY: contiguous host memory of this type.
    let rows = unsafe { x.slice::<T>() };
    let to = Ptr::new(out.ptr::<T>());
    host::unlocked(|| {
        share(rows.len() / width, width, |range| {
            let part = range.start * width..range.end * width;
            // SAFETY: the result is as large as the tensor, and each range has its own part of it.
            let out = unsafe { to.part(part.clone()) };
            shortened_rows(&rows[part], width, p, T::of_f64(most), out);
        });
    });
    Ok(out)
}

/// Slices of the first dimension whose norm is larger than `most`, scaled down to it, in one pass; `None` where
/// another way must be taken.
pub fn shorten(x: &Tensor, p: f64, most: f64) -> Option<Result<Tensor>> {
    let plain = x.device() == Device::Cpu && x.is_readable() && x.is_contiguous() && x.numel() > 0;
    if !plain || dispatch::heeded(&[x]) || (mode::grad() && x.requires_grad()) {
        return None;
    }
    match x.dtype() {
        DType::F32 => Some(shortened::<f32>(x, p, most)),
        DType::F64 => Some(shortened::<f64>(x, p, most)),
        _ => None,
    }
}

pub fn norm_last(x: &Tensor, p: f64) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return norm_last(&apply(Abs, [x])?, p);
    }
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        x.dtype().scalar_name()
    );
    dispatch::call1(RowNorm { p: Bitwise(p) }, &[x])
}

//! Rows over their lengths.

use crate::alloc;
use crate::autograd::mode;
use crate::cpu::fold::{Kind, Reducible};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::nn::loss::at_least;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::{host, per_isa};
use std::ops::{Div, RangeInclusive};

trait Divides: Reducible + Div<Output = Self> + PartialOrd {}
impl Divides for f32 {}
impl Divides for f64 {}

/// Lengths of rows that the kernel of a row takes in one call, and is worth one for.
const WIDTHS: RangeInclusive<usize> = 16..=4096;
/// Elements whose rows are read a second time before they leave the first cache.
const BLOCK: usize = 1 << 12;
/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 15;

per_isa! {
    fn over[T: Divides](x: &[T], width: usize, lengths: &[T], out: &mut [T]) {
        let rows = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((x, out), &d) in rows.zip(lengths) {
            for (&x, out) in x.iter().zip(out) {
                *out = x / d;
            }
        }
    }
}

fn rows<T: Divides>(x: &Tensor, width: usize, eps: f64) -> Result<Tensor> {
    let out = Tensor::empty(x.shape(), T::DTYPE, x.device())?;
    let x = x.prepared(T::DTYPE)?;
    // SAFETY: contiguous host memory of this type.
    let x = unsafe { x.slice::<T>() };
    let to = Ptr(out.ptr::<T>());
    let row = T::kernels(Kind::SumSquares, T::DTYPE).row;
    let least = T::of_f64(eps);
    host::unlocked(|| {
        parallel_for(x.len() / width, GRAIN / width, |range| {
            let step = BLOCK / width;
            let mut lengths = alloc::full(T::default(), step);
            for start in range.clone().step_by(step) {
                let n = step.min(range.end - start);
                let part = start * width..(start + n) * width;
                let x = &x[part.clone()];
                for (d, x) in lengths.iter_mut().zip(x.chunks_exact(width)) {
                    // SAFETY: the row has so many elements; the kernel is one of this machine's.
                    let squares = unsafe { row(x.as_ptr().cast(), width, T::default()) };
                    let length = T::of_f64(squares.to_f64().sqrt());
                    *d = match length >= least || length.is_nan() {
                        true => length,
                        false => least,
                    };
                }
                // SAFETY: the result is as large as `x`, and each row is one range's.
                over(x, width, &lengths[..n], unsafe { to.part(part) });
            }
        });
    });
    Ok(out)
}

/// Vectors along the last dimension over their 2-norms, which are taken as at least `eps`.
pub(super) fn unit(x: &Tensor, eps: f64) -> Result<Tensor> {
    let width = x.shape().last().copied().unwrap_or(1);
    let plain = x.device() == Device::Cpu && x.has_data() && x.is_contiguous();
    let recorded = mode::interpreted() || (mode::grad() && x.requires_grad());
    if plain && !recorded && WIDTHS.contains(&width) {
        match x.dtype() {
            DType::F32 => return rows::<f32>(x, width, eps),
            DType::F64 => return rows::<f64>(x, width, eps),
            _ => {}
        }
    }
    let norm = x.vector_norm(2.0, DimSet::last(1, x.ndim())?, true)?;
    x.div(&at_least(&norm, eps)?)
}

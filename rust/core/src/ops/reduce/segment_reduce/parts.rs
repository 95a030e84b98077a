//! Segments of lines that no kernel can bind, or of more bounds than one can: those of halves.

use super::gpu::LONGEST;
use super::{Combine, SegmentReduce, SegmentSpread};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::Tensors;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::{Maximum, Minimum};
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::join::cat;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer::is_short;

fn whole(n: usize) -> Result<Tensor> {
    Tensor::number(Scalar::Int(n as i64))
}

/// Where segments begin in the `n` places from `from` on.
fn within(bounds: &Tensor, from: usize, n: usize) -> Result<Tensor> {
    let behind = apply(Maximum, [&bounds.sub(&whole(from)?)?, &whole(0)?])?;
    apply(Minimum, [&behind, &whole(n)?])
}

/// The elements of each segment, in a type and as many dimensions as values have.
fn counts(bounds: &Tensor, like: &Tensor) -> Result<Tensor> {
    let axis = bounds.ndim() as i64 - 1;
    let n = bounds.size(axis as usize) as i64 - 1;
    let count = (bounds.narrow(axis, 1, n)?).sub(&bounds.narrow(axis, 0, n)?)?;
    let mut shape = Dims::from_slice(count.shape());
    shape.resize(like.ndim(), 1);
    count.to_dtype(like.dtype())?.reshape_to(&shape)
}

/// Whether elements, and whether bounds or what belongs to them, are more than a kernel can bind.
fn sizes(elements: &[usize], bounds: &Tensor, dtype: DType) -> [bool; 2] {
    let (axis, device) = (bounds.ndim() - 1, bounds.device());
    let n: usize = elements.iter().product();
    let each = n / elements[axis].max(1);
    let values = each * (bounds.size(axis) - 1);
    let large = |n, dtype| !is_short(device, n, dtype);
    [
        device.is_gpu() && elements[axis] > LONGEST || large(n, dtype),
        large(bounds.numel(), DType::I64) || large(values, dtype),
    ]
}

pub fn reduce(op: &SegmentReduce, x: &Tensor, bounds: &Tensor) -> Result<Option<Tensors>> {
    let (axis, dtype) = (bounds.ndim() as i64 - 1, x.dtype());
    let (length, segments) = (x.size(axis as usize), bounds.size(axis as usize) - 1);
    let [long, many] = sizes(x.shape(), bounds, dtype.compute());
    let part = |op: SegmentReduce, x: &Tensor, bounds: &Tensor| dispatch::call1(op, &[x, bounds]);
    let first = |t: &Tensor, n: usize| t.narrow(axis, 0, n as i64);
    let rest = |t: &Tensor, n: usize| t.narrow(axis, n as i64, (t.size(axis as usize) - n) as i64);
    let y = if many && segments > 1 {
        let half = segments / 2;
        let (a, b) = (first(bounds, half + 1)?, rest(bounds, half)?);
        cat(&[part(op.clone(), x, &a)?, part(op.clone(), x, &b)?], axis)?
    } else if !long || length < 2 {
        return Ok(None);
    } else if dtype != dtype.compute() {
        // Rounded once.
        part(op.clone(), &x.to_dtype(dtype.compute())?, bounds)?.to_dtype(dtype)?
    } else if op.combine == Combine::Mean {
        let sum = SegmentReduce {
            combine: Combine::Sum,
            ..op.clone()
        };
        let (sum, count) = (part(sum, x, bounds)?, counts(bounds, x)?);
        let none = op.initial.unwrap_or(Scalar::Float(f64::NAN));
        let none = Tensor::full(&[], none, dtype, x.device())?;
        let zero = Tensor::zeros(&[], dtype, x.device())?;
        where_(&apply(Eq, [&count, &zero])?, &none, &sum.div(&count)?)?
    } else {
        let half = length / 2;
        let later = SegmentReduce {
            initial: None,
            ..op.clone()
        };
        let own = |from, n| within(bounds, from, n);
        let a = part(op.clone(), &first(x, half)?, &own(0, half)?)?;
        let b = part(later, &rest(x, half)?, &own(half, length - half)?)?;
        match op.combine {
            Combine::Prod => a.mul(&b)?,
            Combine::Max => apply(Maximum, [&a, &b])?,
            Combine::Min => apply(Minimum, [&a, &b])?,
            Combine::Sum | Combine::Mean => a.add(&b)?,
        }
    };
    Ok(Some(Tensors::from_buf([y])))
}

pub fn spread(op: &SegmentSpread, g: &Tensor, bounds: &Tensor) -> Result<Option<Tensors>> {
    let (axis, segments) = (bounds.ndim() as i64 - 1, bounds.size(bounds.ndim() - 1) - 1);
    let mut shape = Dims::from_slice(g.shape());
    shape[axis as usize] = op.length;
    let [long, many] = sizes(&shape, bounds, g.dtype());
    let several = many && segments > 1;
    if !several && (!long || op.length < 2) {
        return Ok(None);
    }
    let part = |length, g: &Tensor, bounds: &Tensor| {
        let mean = false;
        dispatch::call1(SegmentSpread { length, mean }, &[g, bounds])
    };
    let y = if op.mean {
        let wide = g.to_dtype(g.dtype().compute())?;
        // What has no elements gives to none.
        let count = apply(Maximum, [&counts(bounds, &wide)?, &whole(1)?])?;
        part(op.length, &wide.div(&count)?, bounds)?.to_dtype(g.dtype())?
    } else if several {
        let half = (segments / 2) as i64;
        let rest = segments as i64 - half;
        let own = |from, n| -> Result<Tensor> {
            let bounds = bounds.narrow(axis, from, n + 1)?;
            part(op.length, &g.narrow(axis, from, n)?, &bounds)
        };
        // Each element is in one half at most.
        own(0, half)?.add(&own(half, rest)?)?
    } else {
        let half = op.length / 2;
        let own = |from, n| part(n, g, &within(bounds, from, n)?);
        cat(&[own(0, half)?, own(half, op.length - half)?], axis)?
    };
    Ok(Some(Tensors::from_buf([y])))
}

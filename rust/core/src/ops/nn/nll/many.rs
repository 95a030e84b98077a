//! Losses of many slices at once: of as many more samples, reduced for each slice.

use super::entropy::{CrossEntropy, CrossEntropyGrad};
use super::likelihood::{Nll, NllGrad};
use crate::dispatch;
use crate::error::Result;
use crate::op::{Mapped, Tensors};
use crate::ops::nn::loss::{MEAN, NONE};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Ne;
use crate::ops::shape::many::{merged, parted};
use crate::shape::{of_many, signed, DimSet, Dims};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Slices as more samples; what has no dimension of samples gets that of the slices.
fn samples(t: Tensor, single: bool) -> Result<Tensor> {
    match single {
        true => Ok(t),
        false => merged(&t, 0),
    }
}

/// The reverse.
fn slices(t: &Tensor, single: bool, size: usize) -> Result<Tensor> {
    match single {
        true => Ok(t.clone()),
        false => parted(t, 0, size),
    }
}

/// What each slice has in place of all of its elements, of which it has the sum of losses and their count.
fn reduced(each: Tensor, target: &Tensor, reduction: i64, ignore: i64) -> Result<[Tensor; 2]> {
    let over = DimSet::of(each.ndim(), |d| d > 0)?;
    let kept = apply(Ne, [target, &Tensor::number(ignore.into())?])?;
    let total = kept.sum_mask(over, false, Some(each.dtype()))?;
    if reduction == NONE {
        return Ok([each, total]);
    }
    let sum = each.sum_mask(over, false, Some(each.dtype()))?;
    Ok(match reduction == MEAN {
        true => [sum.div(&total)?, total],
        false => [sum, total],
    })
}

/// The gradients of the losses of all samples from those of what they were reduced to.
fn spread(g: Tensor, total: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    let g = match reduction {
        NONE => return Ok(g),
        MEAN => g.div(total)?,
        _ => g,
    };
    let mut shape = signed(g.shape());
    shape.resize(target.ndim(), 1);
    g.reshape(&shape)?.expand_to(target.shape())
}

impl CrossEntropy {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.x.len() > 2 || x.x[0].dtype().is_half() {
            return Ok(None);
        }
        let single = x.ndim(0) == 1;
        let target = x.with_slices(1)?;
        let scores = samples(x.with_slices(0)?, single)?;
        let all = self.with_reduction(NONE);
        let mut y = dispatch::call(all, &[&scores, &samples(target.clone(), single)?])?;
        let each = slices(&y[0], single, x.size)?;
        let [loss, total] = reduced(each, &target, self.reduction(), self.ignored())?;
        (y[0], y[1]) = (loss, total);
        y[2] = slices(&y[2], single, x.size)?;
        Ok(Some(y))
    }
}

impl CrossEntropyGrad {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.x.len() > 5 || x.x[1].dtype().is_half() {
            return Ok(None);
        }
        let single = x.ndim(1) == 1;
        let (target, total) = (x.with_slices(2)?, x.with_slices(3)?);
        let g = spread(x.with_slices(0)?, &total, &target, self.of.reduction())?;
        let of = |t: Tensor| samples(t, single);
        let one = Tensor::full(&[], 1.into(), total.dtype(), total.device())?;
        let all = [
            of(g)?,
            of(x.with_slices(1)?)?,
            of(target)?,
            one,
            of(x.with_slices(4)?)?,
        ];
        let all: SmallVec<[&Tensor; 5]> = all.iter().collect();
        let op = CrossEntropyGrad {
            of: self.of.with_reduction(NONE),
        };
        let y = dispatch::call1(op, &all)?;
        Ok(Some(Tensors::from_buf([slices(&y, single, x.size)?])))
    }
}

impl Nll {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.x.len() > 2 || x.x[0].dtype().is_half() {
            return Ok(None);
        }
        let single = x.ndim(0) == 1;
        let target = x.with_slices(1)?;
        let scores = samples(x.with_slices(0)?, single)?;
        let all = Nll {
            reduction: NONE,
            ..self.clone()
        };
        let y = dispatch::call(all, &[&scores, &samples(target.clone(), single)?])?;
        let each = slices(&y[0], single, x.size)?;
        let both = reduced(each, &target, self.reduction, self.ignore)?;
        Ok(Some(Tensors::from_iter(both)))
    }
}

impl NllGrad {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.x.len() > 3 || x.x[0].dtype().is_half() {
            return Ok(None);
        }
        let single = self.shape.len() == 1;
        let (target, total) = (x.with_slices(1)?, x.with_slices(2)?);
        let g = spread(x.with_slices(0)?, &total, &target, self.of.reduction)?;
        let mut shape = Dims::from_slice(&self.shape);
        match single {
            true => shape = of_many(x.size, &shape),
            false => shape[0] *= x.size,
        }
        let one = Tensor::full(&[], 1.into(), total.dtype(), total.device())?;
        let op = NllGrad {
            of: Nll {
                reduction: NONE,
                ..self.of.clone()
            },
            shape,
        };
        let all = [samples(g, single)?, samples(target, single)?, one];
        let y = dispatch::call1(op, &[&all[0], &all[1], &all[2]])?;
        Ok(Some(Tensors::from_buf([slices(&y, single, x.size)?])))
    }
}

//! Batches of which no kernel can bind all sequences at one time, and sequences of more classes than one can:
//! those of halves, and of the classes that a sequence has.

use super::{gpu, Batch, Ctc, CtcGrad};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::Tensors;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::IsInf;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Exp;
use crate::ops::shape::join::cat;
use crate::tensor::Tensor;

/// Whether it is not for their size that a kernel does not take these.
fn is_small(batch: &Batch, x: &Tensor) -> bool {
    !x.device().is_gpu() || gpu::part(batch, x) > 0
}

impl Ctc {
    /// The loss of the sequences from `from` on.
    fn some(&self, from: usize, n: usize) -> Ctc {
        let batch = Batch {
            labels: self.batch.labels[from..from + n].to_vec(),
            times: self.batch.times[from..from + n].to_vec(),
            blank: self.batch.blank,
        };
        Ctc {
            batch,
            zero_infinity: self.zero_infinity,
        }
    }

    /// The loss of one sequence by the classes that it has, and which these are; `None` where those are all.
    fn narrow(&self, x: &Tensor) -> Result<Option<(Ctc, Tensor)>> {
        let [labels] = &self.batch.labels[..] else {
            return Ok(None);
        };
        let mut own: Vec<usize> = labels.clone();
        own.push(self.batch.blank);
        own.sort_unstable();
        own.dedup();
        if own.len() == x.size(2) {
            return Ok(None);
        }
        let place = |label: &usize| own.binary_search(label).unwrap_or(0);
        let batch = Batch {
            labels: vec![labels.iter().map(place).collect()],
            times: self.batch.times.clone(),
            blank: place(&self.batch.blank),
        };
        let ids: Vec<i64> = own.iter().map(|&c| c as i64).collect();
        let ids = Tensor::from_slice(&ids, &[ids.len()], DType::I64)?.to_device(x.device())?;
        let zero_infinity = self.zero_infinity;
        Ok(Some((
            Ctc {
                batch,
                zero_infinity,
            },
            ids,
        )))
    }
}

pub fn losses(op: &Ctc, x: &Tensor) -> Result<Option<Tensors>> {
    let n = x.size(1);
    if is_small(&op.batch, x) {
        return Ok(None);
    }
    if n < 2 {
        let Some((op, ids)) = op.narrow(x)? else {
            return Ok(None);
        };
        return Ok(Some(dispatch::compute(&op, &[&x.index_select(2, &ids)?])?));
    }
    let own = |from: usize, n: usize| {
        let x = x.narrow(1, from as i64, n as i64)?;
        dispatch::call1(op.some(from, n), &[&x])
    };
    let y = cat(&[own(0, n / 2)?, own(n / 2, n - n / 2)?], 0)?;
    Ok(Some(Tensors::from_buf([y])))
}

pub fn gradient(op: &CtcGrad, g: &Tensor, x: &Tensor) -> Result<Option<Tensors>> {
    let n = x.size(1);
    if is_small(&op.of.batch, x) {
        return Ok(None);
    }
    let y = if n < 2 {
        let Some((of, ids)) = op.of.narrow(x)? else {
            return Ok(None);
        };
        let own = x.index_select(2, &ids)?;
        let loss = dispatch::call1(of.clone(), &[&own])?;
        let own = dispatch::call1(CtcGrad { of }, &[g, &own])?;
        // Of classes that no path has their own probability.
        let (dtype, device, times) = (x.dtype(), x.device(), op.of.batch.times[0] as i64);
        let lost = match op.of.zero_infinity {
            true => 0.0,
            false => f64::NAN,
        };
        let lost = Tensor::full(&[], Scalar::Float(lost), dtype, device)?;
        let there = apply(Exp, [&x.narrow(0, 0, times)?])?.mul(&g.to_dtype(dtype)?)?;
        let there = where_(&apply(IsInf, [&loss])?, &lost, &there)?;
        let y = Tensor::zeros(x.shape(), dtype, device)?;
        y.narrow(0, 0, times)?.write_from(&there)?;
        let ids = ids.reshape_to(&[1, 1, own.size(2)])?;
        y.scatter(2, &ids.expand_to(own.shape())?, &own)?
    } else {
        let own = |from: usize, n: usize| {
            let of = op.of.some(from, n);
            let (from, n) = (from as i64, n as i64);
            let g = g.narrow(0, from, n)?;
            dispatch::call1(CtcGrad { of }, &[&g, &x.narrow(1, from, n)?])
        };
        cat(&[own(0, n / 2)?, own(n / 2, n - n / 2)?], 1)?
    };
    Ok(Some(Tensors::from_buf([y])))
}

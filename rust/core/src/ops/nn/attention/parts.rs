//! Attention of more keys, or of more queries under a causal mask, than a kernel can bind: by parts of both. What
//! parts of the keys give is joined by the statistics of the rows; gradients of parts are sums.

use super::cpu::flash::{Flash, FlashGrad};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::Tensors;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Maximum;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Exp, Reciprocal};
use crate::ops::shape::join::cat;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer::bindable_bytes;
use smallvec::SmallVec;

/// Rows from one on, and how many.
type Range = (usize, usize);

/// The parts of queries and of keys, of the queries, keys, values and mask `x`; `None` where there is but one of
/// each, or no row is small enough.
fn ranges(of: &Flash, x: &[&Tensor]) -> Option<[Vec<Range>; 2]> {
    let Device::Wgpu(index) = x[0].device() else {
        return None;
    };
    // What dropout keeps is counted from the first query.
    if of.dropped.is_some() || of.factor {
        return None;
    }
    let n = x[0].ndim();
    let [queries, keys] = [x[0], x[1]].map(|t| t.size(n - 2));
    let (room, widest) = (
        bindable_bytes(index),
        x[0].size(n - 1).max(x[2].size(n - 1)),
    );
    // Results of parts are float32.
    let planes = |t: &Tensor| t.shape()[..n - 2].iter().product::<usize>();
    let step = |t: &Tensor, rows: usize| (room / (4 * planes(t) * widest).max(1)).min(rows);
    let [mut i, mut j] = [step(x[0], queries), step(x[1], keys)];
    if let (true, Some(mask)) = (of.mask, x.get(3)) {
        let [rows, columns] =
            [2, 1].map(|d| mask.ndim().checked_sub(d).map_or(1, |d| mask.size(d)));
        let each = mask.numel() / (rows * columns).max(1) * mask.dtype().size();
        while i > 0 && j > 0 && each * i.min(rows) * j.min(columns) > room {
            match i >= j && rows > 1 || columns == 1 {
                true => i /= 2,
                false => j /= 2,
            }
        }
    }
    if i == 0 || j == 0 || (i, j) == (queries, keys) {
        return None;
    }
    let parts = |all: usize, step: usize| {
        let starts = (0..all).step_by(step);
        starts.map(|from| (from, step.min(all - from))).collect()
    };
    Some([parts(queries, i), parts(keys, j)])
}

fn rows(t: &Tensor, (from, n): Range) -> Result<Tensor> {
    t.narrow(t.ndim() as i64 - 2, from as i64, n as i64)
}

impl Flash {
    /// Attention of these queries to these keys.
    fn some(&self, i: Range, j: Range) -> Flash {
        Flash {
            ahead: self.ahead + i.0 as isize - j.0 as isize,
            ..self.clone()
        }
    }

    /// Whether the last of these queries sees none of these keys.
    fn hides(&self, i: Range, j: Range) -> bool {
        let last = (i.0 + i.1) as isize + self.ahead;
        self.causal && last <= j.0 as isize
    }

    /// What it takes of queries, keys, values and mask.
    fn inputs(&self, x: &[&Tensor], i: Range, j: Range) -> Result<SmallVec<[Tensor; 4]>> {
        let mut own: SmallVec<[Tensor; 4]> = SmallVec::new();
        for (t, range) in x.iter().zip([i, j, j]) {
            own.push(rows(t, range)?);
        }
        if let (true, Some(&mask)) = (self.mask, x.get(3)) {
            let mut mask = mask.clone();
            for (back, range) in [(2, i), (1, j)] {
                match mask.ndim().checked_sub(back) {
                    Some(d) if mask.size(d) > 1 => {
                        mask = mask.narrow(d as i64, range.0 as i64, range.1 as i64)?;
                    }
                    _ => {}
                }
            }
            own.push(mask);
        }
        Ok(own)
    }
}

fn empty(shape: &[usize], like: &Tensor) -> Result<Tensor> {
    Tensor::empty(shape, DType::F32, like.device())
}

/// Largest scores and sums of exponentials, [.., rows, 1], of inverse sums.
fn sums(stats: &Tensor) -> Result<[Tensor; 2]> {
    let shape = &stats.shape()[..stats.ndim() - 1];
    let part = |k| -> Result<Tensor> { stats.narrow(-1, k, 1)?.reshape_to(shape) };
    let (top, inverse) = (part(0)?, part(1)?);
    let zero = Tensor::number(Scalar::Float(0.0))?;
    let none = apply(Eq, [&inverse, &zero])?;
    Ok([top, where_(&none, &zero, &apply(Reciprocal, [&inverse])?)?])
}

/// What attention to both parts of the keys gives: results and statistics.
fn joined(a: [Tensor; 2], b: [Tensor; 2]) -> Result<[Tensor; 2]> {
    let ([y, stats], [z, other]) = (a, b);
    let ([ta, sa], [tb, sb]) = (sums(&stats)?, sums(&other)?);
    let top = apply(Maximum, [&ta, &tb])?;
    let share = |t: &Tensor, s: &Tensor| s.mul(&apply(Exp, [&t.sub(&top)?])?);
    let (sa, sb) = (share(&ta, &sa)?, share(&tb, &sb)?);
    let (all, zero) = (sa.add(&sb)?, Tensor::number(Scalar::Float(0.0))?);
    let is_zero = |t: &Tensor| apply(Eq, [t, &zero]);
    // A row that sees nothing is zero.
    let inverse = where_(&is_zero(&all)?, &zero, &apply(Reciprocal, [&all])?)?;
    // What weighs nothing does not count, whatever it is.
    let part = |y: &Tensor, s: &Tensor| where_(&is_zero(s)?, &zero, &y.mul(&s.mul(&inverse)?)?);
    let y = part(&y, &sa)?.add(&part(&z, &sb)?)?;
    let stats = cat(&[top, inverse], -1)?.reshape_to(stats.shape())?;
    Ok([y, stats])
}

pub fn forward(op: &Flash, x: &[&Tensor]) -> Result<Option<Tensors>> {
    let Some([queries, keys]) = ranges(op, x) else {
        return Ok(None);
    };
    let (q, v, n) = (x[0], x[2], x[0].ndim());
    let (mut results, mut statistics) = (Vec::new(), Vec::new());
    for &i in &queries {
        let mut of_rows = Dims::from_slice(&q.shape()[..n - 1]);
        of_rows[n - 2] = i.1;
        let mut shape = of_rows.clone();
        shape.push(v.size(n - 1));
        of_rows.extend([1, 2]);
        let mut all: Option<[Tensor; 2]> = None;
        for &j in &keys {
            if all.is_some() && op.hides(i, j) {
                continue;
            }
            let own = op.inputs(x, i, j)?;
            let made = [empty(&shape, q)?, empty(&of_rows, q)?];
            let own: SmallVec<[&Tensor; 4]> = own.iter().collect();
            dispatch::compute_into(&op.some(i, j), &own, &made)?;
            all = Some(match all {
                Some(before) => joined(before, made)?,
                None => made,
            });
        }
        if let Some([y, stats]) = all {
            results.push(y.to_dtype(q.dtype())?);
            statistics.push(stats);
        }
    }
    let row = n as i64 - 2;
    Ok(Some(Tensors::from_iter([
        cat(&results, row)?,
        cat(&statistics, row)?,
    ])))
}

/// Adds to what is there, or takes its place.
fn added(sum: &mut Option<Tensor>, part: Tensor) -> Result<()> {
    *sum = Some(match sum.take() {
        Some(before) => before.add(&part)?,
        None => part,
    });
    Ok(())
}

pub fn backward(op: &FlashGrad, x: &[&Tensor]) -> Result<Option<Tensors>> {
    let (of, own) = (&op.0, &x[3..]);
    let Some([queries, keys]) = ranges(of, own) else {
        return Ok(None);
    };
    let row = own[0].ndim() as i64 - 2;
    let mut made = [
        vec![None; queries.len()],
        vec![None; keys.len()],
        vec![None; keys.len()],
    ];
    for (a, &i) in queries.iter().enumerate() {
        let [g, y] = [rows(x[0], i)?, rows(x[1], i)?];
        let stats = x[2].narrow(row, i.0 as i64, i.1 as i64)?;
        for (b, &j) in keys.iter().enumerate() {
            let own = of.inputs(own, i, j)?;
            if of.hides(i, j) {
                for (sums, (t, k)) in made.iter_mut().zip(own.iter().zip([a, b, b])) {
                    if sums[k].is_none() {
                        sums[k] = Some(Tensor::zeros(t.shape(), DType::F32, t.device())?);
                    }
                }
                continue;
            }
            let parts = [
                empty(own[0].shape(), &own[0])?,
                empty(own[1].shape(), &own[1])?,
                empty(own[2].shape(), &own[2])?,
            ];
            let mut inputs: SmallVec<[&Tensor; 8]> = SmallVec::from_slice(&[&g, &y, &stats]);
            inputs.extend(&own);
            dispatch::compute_into(&FlashGrad(of.some(i, j)), &inputs, &parts)?;
            for ((sums, part), k) in made.iter_mut().zip(parts).zip([a, b, b]) {
                added(&mut sums[k], part)?;
            }
        }
    }
    let mut results = Tensors::new();
    for (parts, like) in made.into_iter().zip(own) {
        let parts: Vec<Tensor> = parts.into_iter().flatten().collect();
        results.push(cat(&parts, row)?.to_dtype(like.dtype())?);
    }
    Ok(Some(results))
}

//! Rules that follow from what an op says of itself anyway.

use super::Input;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Cut, Mapped, Op, Part, Tensors};
use crate::ops::pointwise::types::promoted;
use crate::ops::shape::many::{merged, parted};
use crate::shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;

type Inputs = SmallVec<[Tensor; 4]>;

/// Every input with slices, those that are the same for all repeated without memory.
pub(super) fn expanded(m: &Mapped) -> Result<Inputs> {
    (0..m.x.len()).map(|i| m.with_slices(i)).collect()
}

/// The results by the same op of one dimension more.
pub(super) fn of_many(op: &dyn Op, m: &Mapped, logical: &[&Meta]) -> Result<Option<Tensors>> {
    let call = |many, x: Inputs| {
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        dispatch::call_kept(many, &x)
    };
    if logical.is_empty() || logical.iter().any(|t| t.ndim() > 0) {
        return match op.of_many(logical, m.size) {
            Some(many) => call(many, expanded(m)?).map(Some),
            None => Ok(None),
        };
    }
    // What has no dimensions is taken to have one of one element.
    let vector = |t: &&Meta| Meta::new(Layout::contiguous(&[1]), t.dtype(), t.device());
    let vectors: SmallVec<[Meta; 4]> = logical.iter().map(vector).collect();
    let vectors: SmallVec<[&Meta; 4]> = vectors.iter().collect();
    let Some(many) = op.of_many(&vectors, m.size) else {
        return Ok(None);
    };
    let x = expanded(m)?;
    let x: Inputs = x.iter().map(|t| t.unsqueeze(1)).collect::<Result<_>>()?;
    let y = call(many, x)?;
    let shapes = dispatch::plan(op, logical)?;
    let reshaped = |(t, one): (&Tensor, &Meta)| {
        t.reshape(&shape::signed(&shape::of_many(m.size, one.shape())))
    };
    y.iter()
        .zip(&shapes)
        .map(reshaped)
        .collect::<Result<_>>()
        .map(Some)
}

/// The same of more inputs than a mask has bits.
pub(super) fn all_mapped(inputs: &[Input], size: usize) -> Result<Vec<Tensor>> {
    let with = |i: &Input| match i.mapped {
        true => Ok(i.t.clone()),
        false => i.t.expand_to(&shape::of_many(size, i.t.shape())),
    };
    inputs.iter().map(with).collect()
}

/// Inputs that broadcast behind their slices, to so many dimensions.
pub(super) fn aligned_to(m: &Mapped, ndim: usize) -> Result<Inputs> {
    (0..m.x.len()).map(|i| m.aligned(i, ndim)).collect()
}

/// The inputs of an op that broadcasts them.
pub(super) fn aligned(op: &dyn Op, m: &Mapped, logical: &[&Meta]) -> Result<Inputs> {
    let ndim = logical.iter().map(|t| t.ndim()).max().unwrap_or(0);
    let mut x = aligned_to(m, ndim)?;
    // A tensor without dimensions takes part in promotion by its category alone; with those of its
    // slices it would take part as a whole.
    let number = |i: usize| m.has(i) && logical[i].ndim() == 0 && logical[i].dtype() != DType::Bool;
    if ndim > 0 && (0..x.len()).any(number) {
        let with: SmallVec<[&Meta; 4]> = logical.iter().copied().collect();
        let alike = |t: &Meta| t.dtype() == logical[0].dtype();
        if !with.iter().all(|t| alike(t)) && op.traits().elementwise {
            let dtype = promoted(&with)?;
            for i in 0..x.len() {
                if number(i) && x[i].dtype() != dtype {
                    x[i] = x[i].to_dtype(dtype)?;
                }
            }
        }
    }
    Ok(x)
}

/// The results along a dimension in which the work can be cut: cuts say that slices of it go their own
/// ways, so that the slices of all inputs may lie side by side in it.
pub(super) fn folded(op: &dyn Op, m: &Mapped, logical: &[&Meta]) -> Result<Option<Tensors>> {
    let y = dispatch::plan(op, logical)?;
    if y.is_empty() {
        return Ok(None);
    }
    let results: SmallVec<[&Meta; 2]> = y.iter().collect();
    let cuts = op.cuts(logical, &results);
    let fits = |cut: &&Cut| {
        let each = cut.x.iter().enumerate();
        cut.x.len() == m.x.len()
            && each.clone().all(|(i, p)| match p {
                Part::Along(d) => *d < m.ndim(i),
                Part::Whole => !m.has(i),
                Part::Sum => false,
            })
            && cut.y.iter().all(|p| matches!(p, Part::Along(_)))
            && cut.y.len() == y.len()
    };
    // Inputs that are the same for all slices stay as they are, if that can be.
    let repeats = |cut: &&Cut| {
        let each = cut.x.iter().enumerate();
        each.filter(|(i, p)| !m.has(*i) && matches!(p, Part::Along(_)))
            .count()
    };
    let Some(cut) = cuts.iter().filter(fits).min_by_key(repeats) else {
        return Ok(None);
    };
    let mut x = Inputs::new();
    for (i, t) in m.x.iter().enumerate() {
        x.push(match cut.x[i] {
            Part::Along(d) => merged(&m.with_slices(i)?, d)?,
            _ => t.clone(),
        });
    }
    let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
    let part = op.large().and_then(|l| l.part(&dispatch::metas(&x)));
    let found = dispatch::call_kept(part.unwrap_or_else(|| op.keep()), &x)?;
    let split = |(t, part): (Tensor, &Part)| match part {
        Part::Along(d) => parted(&t, *d, m.size),
        _ => Ok(t),
    };
    found
        .into_iter()
        .zip(&cut.y)
        .map(split)
        .collect::<Result<_>>()
        .map(Some)
}

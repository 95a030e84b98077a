//! Lines of a GPU that are longer than a kernel binds, in order: sorted halves, of which the elements at
//! the same distance from both ends change places, so that none of the upper half is below one of the lower.

use super::gpu::middle;
use super::Which;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Tensors;
use crate::ops::index::search::count_from;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Ge, Le, LogicalAnd, LogicalOr, Lt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::LogicalNot;
use crate::ops::shape::join::cat;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer::has_short_lines_of;
use smallvec::smallvec;

/// Elements, and where they were.
struct Pairs {
    values: Tensor,
    at: Tensor,
}

/// Along which dimension, and which way.
#[derive(Clone, Copy)]
struct Along {
    dim: i64,
    descending: bool,
}

impl Pairs {
    fn narrow(&self, along: Along, from: i64, n: i64) -> Result<Pairs> {
        Ok(Pairs {
            values: self.values.narrow(along.dim, from, n)?,
            at: self.at.narrow(along.dim, from, n)?,
        })
    }

    fn map(&self, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Pairs> {
        Ok(Pairs {
            values: f(&self.values)?,
            at: f(&self.at)?,
        })
    }

    fn join(&self, other: &Pairs, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Pairs> {
        Ok(Pairs {
            values: f(&self.values, &other.values)?,
            at: f(&self.at, &other.at)?,
        })
    }

    /// In order, equal ones by where they were, of lines that a kernel binds.
    fn short(&self, along: Along) -> Result<Pairs> {
        let (at, from) = self.at.sort(along.dim, false)?;
        let values = self.values.take_along(along.dim as usize, &from)?;
        let (values, from) = values.sort(along.dim, along.descending)?;
        Ok(Pairs {
            values,
            at: at.take_along(along.dim as usize, &from)?,
        })
    }

    fn sorted(&self, along: Along) -> Result<Pairs> {
        if has_short_lines_of(&self.values, along.dim as usize, DType::I64) {
            return self.short(along);
        }
        let n = self.values.size(along.dim as usize) as i64;
        let (p, q) = (n / 2, n - n / 2);
        let half = |from, n| self.narrow(along, from, n)?.sorted(along);
        let (low, high) = (half(0, p)?, half(p, q)?);
        let flipped = high.map(|t| t.flip(&[along.dim]))?;
        let (met, single) = (
            flipped.narrow(along, 0, p)?,
            flipped.narrow(along, p, q - p)?,
        );
        let stays = before(&low, &met, along)?;
        let join = |a: &Tensor, b: &Tensor| cat(&[a.clone(), b.clone()], along.dim);
        let lower = low.join(&met, |a, b| where_(&stays, a, b))?;
        let upper = low.join(&met, |a, b| where_(&stays, b, a))?;
        let lower = lower.join(&single, join)?.sorted(along)?;
        lower.join(&upper.sorted(along)?, join)
    }
}

/// Whether elements of `a` come before those of `b`. NaN counts as largest.
fn before(a: &Pairs, b: &Pairs, along: Along) -> Result<Tensor> {
    let within = |a: &Tensor, b: &Tensor| {
        let (comes, last) = match along.descending {
            true => (apply(Ge, [a, b])?, a),
            false => (apply(Le, [a, b])?, b),
        };
        apply(LogicalOr, [&comes, &apply(Ne, [last, last])?])
    };
    let (here, there) = (within(&a.values, &b.values)?, within(&b.values, &a.values)?);
    // What is not behind the other one, unless they are equal, where places tell.
    let earlier = apply(Lt, [&a.at, &b.at])?;
    let alone = apply(LogicalNot, [&there])?;
    apply(LogicalAnd, [&here, &apply(LogicalOr, [&alone, &earlier])?])
}

/// Values and indices; `None` of lines that a kernel binds.
pub fn sorted(x: &Tensor, dim: usize, descending: bool) -> Result<Option<[Tensor; 2]>> {
    if has_short_lines_of(x, dim, DType::I64) {
        return Ok(None);
    }
    let along = Along {
        dim: dim as i64,
        descending,
    };
    let all = Pairs {
        values: x.clone(),
        at: line_of(x, dim)?.expand_to(x.shape())?,
    };
    let all = all.sorted(along)?;
    Ok(Some([all.values, all.at.to_dtype(DType::I64)?]))
}

/// The last place of each line's longest run of equal elements, the first of several.
fn most_frequent(values: &Tensor, dim: usize) -> Result<Tensor> {
    let (n, d) = (values.size(dim), dim as i64);
    let (before, own) = (
        values.narrow(d, 0, n as i64 - 1)?,
        values.narrow(d, 1, n as i64 - 1)?,
    );
    // Where runs begin, and there the last place that has been one.
    let starts = Tensor::zeros(values.shape(), DType::I32, values.device())?;
    let places = line_of(values, dim)?;
    let here = apply(Ne, [&own, &before])?.to_dtype(DType::I32)?;
    let rest = starts.narrow(d, 1, n as i64 - 1)?;
    rest.write_from(&here.mul(&places.narrow(d, 1, n as i64 - 1)?)?)?;
    let start = starts.running_max(dim)?;
    places.sub(&start)?.place_of_max(dim)
}

/// The places along a dimension, of one element along the others.
fn line_of(x: &Tensor, dim: usize) -> Result<Tensor> {
    let mut line: Dims = x.shape().iter().map(|_| 1).collect();
    line[dim] = x.size(dim);
    count_from(x, 0, x.size(dim))?.reshape_to(&line)
}

/// What is taken of such lines, in the order of the results.
pub fn taken(x: &Tensor, dim: usize, which: Which, keepdim: bool) -> Result<Option<Tensors>> {
    let descending = match which {
        Which::All { descending } => descending,
        Which::TopK { largest, .. } => largest,
        Which::Place { .. } | Which::Median { .. } | Which::Mode => false,
    };
    let Some(all) = sorted(x, dim, descending)? else {
        return Ok(None);
    };
    let d = dim as i64;
    let place = match which {
        Which::Median { ignore_nan, .. } => Some(middle(x, dim, ignore_nan)?),
        Which::Mode => Some(most_frequent(&all[0], dim)?),
        _ => None,
    };
    let part = |t: &Tensor| {
        let one = match (which, &place) {
            (_, Some(place)) => t.take_along(dim, place)?,
            (Which::Place { k }, _) => t.narrow(d, k as i64, 1)?,
            (Which::TopK { k, .. }, _) => return t.narrow(d, 0, k as i64),
            _ => return Ok(t.clone()),
        };
        match keepdim {
            true => Ok(one),
            false => one.squeeze(Some(&[d])),
        }
    };
    let [values, at] = all;
    Ok(Some(smallvec![part(&values)?, part(&at)?]))
}

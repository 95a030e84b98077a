//! Distinct elements and membership on the GPU, by sorting and searching. Only how many there are is read.

use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::index::search::{count_from, running, search};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Minimum;
use crate::ops::pointwise::compare::{Eq, LogicalAnd, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::IsNan;
use crate::ops::shape::join::cat;
use crate::shape::DimSet;
use crate::tensor::Tensor;

/// Runs of equal neighbours: where each begins, for each element the number of its run, and how long runs
/// are; what is not asked for is empty.
struct Runs {
    starts: Tensor,
    back: Tensor,
    counts: Tensor,
}

impl Runs {
    /// Of `n` elements, which came `from` where they are in another order; `differ` tells of all but the
    /// first whether they begin a run.
    fn new(differ: &Tensor, from: Option<&Tensor>, inverse: bool, counts: bool) -> Result<Runs> {
        let (device, n) = (differ.device(), differ.numel() + 1);
        let nothing = || Tensor::empty(&[0], DType::I64, device);
        let first = Tensor::full(&[1], Scalar::Bool(true), DType::Bool, device)?;
        let (sums, count) = running(&cat(&[first, differ.clone()], 0)?)?;
        let starts = search(&sums, &count_from(differ, 1, count)?, false, DType::I64)?;
        let back = match inverse {
            false => nothing()?,
            true => {
                let run = sums.add_scalar(-1.0)?.to_dtype(DType::I64)?;
                match from {
                    None => run,
                    Some(from) => {
                        Tensor::empty(&[n], DType::I64, device)?.scatter(0, from, &run)?
                    }
                }
            }
        };
        let counts = match counts {
            false => nothing()?,
            true => {
                let n = Tensor::full(&[1], (n as i64).into(), DType::I64, device)?;
                let ends = cat(&[starts.narrow(0, 1, count as i64 - 1)?, n], 0)?;
                ends.sub(&starts)?
            }
        };
        Ok(Runs {
            starts,
            back,
            counts,
        })
    }
}

/// All lines along the first dimension but the last, or but the first.
fn neighbours(x: &Tensor) -> Result<[Tensor; 2]> {
    let n = x.size(0) as i64 - 1;
    Ok([x.narrow(0, 0, n)?, x.narrow(0, 1, n)?])
}

/// The first of equal neighbours, for each element the number of its run, and how long runs are, where
/// elements are taken in ascending order if they are to be `sorted`; what is not asked for is empty.
pub fn unique(x: &Tensor, sorted: bool, inverse: bool, counts: bool) -> Result<[Tensor; 3]> {
    let nothing = || Tensor::empty(&[0], DType::I64, x.device());
    let flat = x.detach().reshape(&[-1])?.contiguous()?;
    if flat.numel() == 0 {
        let back = Tensor::empty(x.shape(), DType::I64, x.device())?;
        return Ok([flat, if inverse { back } else { nothing()? }, nothing()?]);
    }
    let (line, from) = match sorted {
        true => {
            let (line, from) = flat.sort(0, false)?;
            (line, Some(from))
        }
        false => (flat, None),
    };
    let [before, after] = neighbours(&line)?;
    let runs = Runs::new(
        &apply(Ne, [&after, &before])?,
        from.as_ref(),
        inverse,
        counts,
    )?;
    let values = line.take_along(0, &runs.starts)?;
    let back = match inverse {
        false => runs.back,
        true => runs.back.reshape_to(x.shape())?,
    };
    Ok([values, back, runs.counts])
}

/// [`unique`] of the rows of a matrix.
pub fn unique_rows(x: &Tensor, sorted: bool, inverse: bool, counts: bool) -> Result<[Tensor; 3]> {
    let rows = x.detach();
    let (rows, from) = match sorted {
        true => {
            let from = order(&rows)?;
            (rows.index_select(0, &from)?, Some(from))
        }
        false => (rows, None),
    };
    let [before, after] = neighbours(&rows)?;
    let differ = apply(Ne, [&after, &before])?;
    let differ = differ.sum_mask(DimSet::last(1, 2)?, false, Some(DType::Bool))?;
    let runs = Runs::new(&differ, from.as_ref(), inverse, counts)?;
    let values = rows.index_select(0, &runs.starts)?;
    Ok([values, runs.back, runs.counts])
}

/// The rows of a matrix in ascending order, by the first elements that differ: neighbouring columns
/// become one by the ranks of their pairs, until there is one column.
fn order(x: &Tensor) -> Result<Tensor> {
    let n = x.size(0) as i64;
    let mut ranks = ranks(x)?;
    while ranks.size(1) > 1 {
        let width = ranks.size(1) as i64;
        let every_other = |first| ranks.slice_dim(1, Some(first), Some(width / 2 * 2), 2);
        let (high, low) = (every_other(0)?, every_other(1)?);
        let of = Tensor::full(&[], n.into(), DType::I64, x.device())?;
        let mut paired = self::ranks(&high.mul(&of)?.add(&low)?)?;
        if width % 2 == 1 {
            paired = cat(&[paired, ranks.narrow(1, width - 1, 1)?], 1)?;
        }
        ranks = paired;
    }
    Ok(ranks.reshape_to(&[n as usize])?.sort(0, false)?.1)
}

/// How many different elements of its column are below each. All NaN are one, and the largest.
fn ranks(x: &Tensor) -> Result<Tensor> {
    let (sorted, from) = x.sort(0, false)?;
    let [before, after] = neighbours(&sorted)?;
    let mut differ = apply(Ne, [&after, &before])?;
    if x.dtype().is_float() {
        differ = apply(LogicalAnd, [&differ, &apply(Eq, [&before, &before])?])?;
    }
    let first = Tensor::zeros(&[1, x.size(1)], DType::Bool, x.device())?;
    let ranks = cat(&[first, differ], 0)?.to_dtype(DType::I64)?.cumsum(0)?;
    Tensor::empty(x.shape(), DType::I64, x.device())?.scatter(0, &from, &ranks)
}

/// A sorted line whose NaN, which are its end, are its largest number again: a search would take them for
/// less than all. A line of NaN is one.
fn without_nan(line: &Tensor) -> Result<Tensor> {
    if !line.dtype().is_float() {
        return Ok(line.clone());
    }
    let nan = apply(IsNan, [line])?;
    let (first, least) = (
        line.narrow(0, 0, 1)?,
        Tensor::constant(f64::NEG_INFINITY, line.dtype())?,
    );
    let largest = where_(&nan, &least, line)?.amax_mask(DimSet::all(1), true)?;
    let fill = where_(&apply(IsNan, [&first])?, &first, &largest)?;
    where_(&nan, &fill, line)
}

/// Whether each element equals one of `tests`; NaN equals none.
pub fn among(x: &Tensor, tests: &Tensor, invert: bool) -> Result<Tensor> {
    let n = tests.numel();
    if n == 0 || x.numel() == 0 {
        return Tensor::full(x.shape(), Scalar::Bool(invert), DType::Bool, x.device());
    }
    let (line, _) = tests.detach().reshape(&[-1])?.sort(0, false)?;
    let line = without_nan(&line)?;
    let last = Tensor::full(&[], (n as i64 - 1).into(), DType::I64, x.device())?;
    let at = apply(Minimum, [&search(&line, x, false, DType::I64)?, &last])?;
    let near = line
        .take_along(0, &at.reshape(&[-1])?)?
        .reshape_to(x.shape())?;
    match invert {
        true => apply(Ne, [&near, x]),
        false => apply(Eq, [&near, x]),
    }
}

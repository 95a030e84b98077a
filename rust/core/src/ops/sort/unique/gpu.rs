//! Distinct elements and membership on the GPU, by sorting and searching. Only how many there are is read.

use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::index::search::{count_from, running, search};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Minimum;
use crate::ops::pointwise::compare::{Eq, Ne};
use crate::ops::shape::join::cat;
use crate::tensor::Tensor;

/// The first of equal neighbours, for each element the number of its run, and how long runs are, where
/// elements are taken in ascending order if they are to be `sorted`; what is not asked for is empty.
pub fn unique(x: &Tensor, sorted: bool, inverse: bool, counts: bool) -> Result<[Tensor; 3]> {
    let nothing = || Tensor::empty(&[0], DType::I64, x.device());
    let flat = x.detach().reshape(&[-1])?.contiguous()?;
    let n = flat.numel();
    if n == 0 {
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
    let first = Tensor::full(&[1], Scalar::Bool(true), DType::Bool, x.device())?;
    let (end, rest) = (n as i64 - 1, line.narrow(0, 1, n as i64 - 1)?);
    let heads = cat(&[first, apply(Ne, [&rest, &line.narrow(0, 0, end)?])?], 0)?;
    let (sums, count) = running(&heads)?;
    let starts = search(&sums, &count_from(x, 1, count)?, false, DType::I64)?;
    let values = line.take_along(0, &starts)?;
    let back = match inverse {
        false => nothing()?,
        true => {
            let run = sums.add_scalar(-1.0)?.to_dtype(DType::I64)?;
            let run = match &from {
                None => run,
                Some(from) => {
                    Tensor::empty(&[n], DType::I64, x.device())?.scatter(0, from, &run)?
                }
            };
            run.reshape_to(x.shape())?
        }
    };
    let counted = match counts {
        false => nothing()?,
        true => {
            let n = Tensor::full(&[1], (n as i64).into(), DType::I64, x.device())?;
            let ends = cat(&[starts.narrow(0, 1, count as i64 - 1)?, n], 0)?;
            ends.sub(&starts)?
        }
    };
    Ok([values, back, counted])
}

/// Whether each element equals one of `tests`; NaN equals none.
pub fn among(x: &Tensor, tests: &Tensor, invert: bool) -> Result<Tensor> {
    let n = tests.numel();
    if n == 0 || x.numel() == 0 {
        return Tensor::full(x.shape(), Scalar::Bool(invert), DType::Bool, x.device());
    }
    let (line, _) = tests.detach().reshape(&[-1])?.sort(0, false)?;
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

//! What follows from order, on the GPU: lines are sorted whole, and places taken of them.

use super::Which;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::copy;
use crate::gpu::order::{at_place, order, By, Sorted, SELECTED};
use crate::gpu::reduce::arg_reduce;
use crate::gpu::scan::{Scan, Segments, Step};
use crate::gpu::{Acc, Gpu, Scratch};
use crate::layout::Layout;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::{DivFloor, Maximum};
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::IsNan;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{dense, owned, whole};

/// Writes to `index`, int64 and contiguous, where the elements taken along `dim` are; it has the
/// shape of `x` but for that dimension, which may be gone where it has one element.
pub fn indices(gpu: &Gpu, which: Which, x: &Tensor, dim: usize, index: &Tensor) -> Result<()> {
    let x = dense(gpu, x)?;
    let lines = Span::of(x.shape(), dim);
    let descending = match which {
        Which::All { descending } => descending,
        Which::TopK { largest, .. } => largest,
        _ => false,
    };
    if let (Which::Place { k }, true) = (which, lines.length <= SELECTED) {
        let places = owned(at_place(gpu, whole(&x)?, lines, k)?);
        return put(
            index,
            lines,
            1,
            places.slice_dim(1, Some(k as i64), Some(k as i64 + 1), 1)?,
        );
    }
    let sorted = order(gpu, whole(&x)?, lines, By::Value { descending })?;
    let places = match which {
        Which::All { .. } | Which::TopK { .. } => None,
        Which::Place { k } => {
            let k = Scalar::Int(k as i64);
            Some(Tensor::full(
                &[lines.lines(), 1],
                k,
                DType::I32,
                gpu.device(),
            )?)
        }
        Which::Median { ignore_nan, .. } => {
            let place = middle(&x, dim, ignore_nan)?;
            Some(place.reshape_to(&[lines.lines(), 1])?)
        }
        Which::Mode => Some(most_frequent(gpu, &x, lines, &sorted)?),
    };
    let taken = index.numel() / lines.lines();
    let chosen = match places {
        None => owned(sorted.positions).slice_dim(1, Some(0), Some(taken as i64), 1)?,
        Some(places) => owned(sorted.positions).take_along(1, &places)?,
    };
    put(index, lines, taken, chosen)
}

/// Writes what was taken of each line to a tensor of [outer, taken, inner].
fn put(index: &Tensor, lines: Span, taken: usize, chosen: Tensor) -> Result<()> {
    let chosen = chosen.reshape_to(&[lines.outer, lines.inner, taken])?;
    let to = index.alias(Layout {
        offset: index.offset(),
        ..Layout::contiguous(&[lines.outer, taken, lines.inner])
    });
    to.write_from(&chosen.transpose(1, 2)?)
}

/// The place of each line's lower median, of one element along `dim`: NaN sorts last, and the first one
/// spoils it unless they are ignored.
pub fn middle(x: &Tensor, dim: usize, ignore: bool) -> Result<Tensor> {
    let n = x.size(dim) as i64;
    let number = |v: i64| Tensor::full(&[], Scalar::Int(v), DType::I32, x.device());
    if !x.dtype().is_float() {
        let mut shape = x.shape().clone();
        shape[dim] = 1;
        return number((n - 1) / 2)?.expand_to(&shape);
    }
    let nan = apply(IsNan, [x])?.sum_mask([dim].into(), true, Some(DType::I32))?;
    let left = number(n)?.sub(&nan)?;
    if ignore {
        let before = apply(Maximum, [&left.sub(&number(1)?)?, &number(0)?])?;
        return apply(DivFloor, [&before, &number(2)?]);
    }
    let all = apply(Eq, [&left, &number(n)?])?;
    where_(&all, &number((n - 1) / 2)?, &left)
}

/// The last place of each line's longest run of equal elements, the first of several.
fn most_frequent(gpu: &Gpu, x: &Tensor, lines: Span, sorted: &Sorted) -> Result<Tensor> {
    let shape = [lines.lines(), lines.length];
    let one = Scratch::new(gpu, &shape, DType::I32)?;
    copy::fill(gpu, one.view(), Acc::I32.int_words(1))?;
    let runs = Scratch::new(gpu, &shape, DType::I32)?;
    let segments = Segments {
        keys: &sorted.keys,
        high: sorted.high.as_ref(),
        steps: [lines.length, 1, 0],
        lone: x.dtype().is_float(),
    };
    Scan {
        step: Step::Sum,
        reverse: false,
        lines: Span {
            outer: lines.lines(),
            length: lines.length,
            inner: 1,
        },
        x: one.view(),
        b: None,
        segments: Some(segments),
        blend: "",
    }
    .run(gpu, runs.view(), None)?;
    let longest = Scratch::new(gpu, &shape[..1], DType::I32)?;
    let place = Scratch::new(gpu, &shape[..1], DType::I32)?;
    arg_reduce(
        gpu,
        true,
        runs.view(),
        [1].into(),
        longest.view(),
        place.view(),
    )?;
    owned(place).reshape_to(&[lines.lines(), 1])
}

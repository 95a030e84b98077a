//! Elements by indices, of many slices at once.

use super::{divide, result_shape, Index, IndexPut};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Mapped, Tensors};
use crate::ops::shape::many::steps;
use crate::shape::{signed, Dims};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// One slice of what is indexed.
fn one(x: &Mapped) -> Layout {
    Layout::contiguous(&x.x[0].shape()[x.has(0) as usize..])
}

/// Indices from input `from` on, with those of the slices in front, for all slices.
fn with_own(x: &Mapped, from: usize) -> Result<SmallVec<[Tensor; 6]>> {
    let first = x.with_slices(from)?;
    let mut shape: SmallVec<[i64; 5]> = SmallVec::from_elem(1, first.ndim());
    shape[0] = x.size as i64;
    let own = steps(x.size, 1, first.device())?.reshape(&shape)?;
    let mut all = SmallVec::from_iter([own.expand_to(first.shape())?]);
    for i in from..x.x.len() {
        all.push(x.with_slices(i)?.to_dtype(DType::I64)?);
    }
    Ok(all)
}

/// The dimensions with that of the slices in front.
fn behind(dims: &[usize], own: bool) -> SmallVec<[usize; 4]> {
    let first = own.then_some(0).into_iter();
    first.chain(dims.iter().map(|d| d + 1)).collect()
}

/// The order of dimensions in which `n` of them from `from` on come to lie from `to` on.
fn moved(ndim: usize, from: usize, to: usize, n: usize) -> SmallVec<[i64; 5]> {
    let mut order: SmallVec<[i64; 5]> = (0..ndim as i64).collect();
    let block: SmallVec<[i64; 5]> = order.drain(from..from + n).collect();
    order.insert_many(to, block);
    order
}

impl Index {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let at = divide(&one(x), &self.dims).at;
        let indexed = (1..x.x.len()).any(|i| x.has(i));
        let index = x.ndim(1);
        let call = |dims: SmallVec<[usize; 4]>, all: &[Tensor]| {
            let op = Index {
                dims,
                ..self.clone()
            };
            let all: SmallVec<[&Tensor; 6]> = all.iter().collect();
            dispatch::call1(op, &all)
        };
        let y = match (x.has(0), indexed) {
            (true, false) => {
                let dims = behind(&self.dims, false);
                let found = divide(x.x[0].layout(), &dims).at;
                let y = call(dims, x.x)?;
                // What is not adjacent comes in front of the slices.
                y.permute(&moved(y.ndim(), found, at + 1, index))?
            }
            (false, _) => {
                let mut all: SmallVec<[Tensor; 6]> = SmallVec::from_iter([x.x[0].clone()]);
                for i in 1..x.x.len() {
                    all.push(x.with_slices(i)?);
                }
                call(self.dims.clone(), &all)?.movedim(&[at as i64], &[0])?
            }
            (true, true) => {
                let mut all: SmallVec<[Tensor; 6]> = SmallVec::from_iter([x.x[0].clone()]);
                all.extend(with_own(x, 1)?);
                let dims = behind(&self.dims, true);
                let found = divide(x.x[0].layout(), &dims).at;
                let y = call(dims, &all)?;
                let y = y.permute(&moved(y.ndim(), found, 0, index + 1))?;
                y.permute(&moved(y.ndim(), 1, at + 1, index))?
            }
        };
        Ok(Tensors::from_buf([y]))
    }
}

impl IndexPut {
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let layout = one(x);
        let at = divide(&layout, &self.dims).at;
        let index = x.ndim(2);
        let idx = Dims::from_slice(&x.x[2].shape()[x.has(2) as usize..]);
        let shape = result_shape(&layout, &self.dims, &idx);
        let to = x.with_slices(0)?;
        let dims = behind(&self.dims, true);
        let found = divide(to.layout(), &dims).at;
        // Values lie as the result of indexing does.
        let values = match x.has(1) {
            true => x.aligned(1, shape.len())?,
            false => x.there(1)?,
        };
        let values = values.expand(&signed(&crate::shape::of_many(x.size, &shape)))?;
        let n = values.ndim();
        let values = values.permute(&moved(n, at + 1, 1, index))?;
        let values = values.permute(&moved(n, 0, found, index + 1))?;
        let mut all: SmallVec<[Tensor; 6]> = SmallVec::from_iter([to, values]);
        all.extend(with_own(x, 2)?);
        let all: SmallVec<[&Tensor; 6]> = all.iter().collect();
        let op = IndexPut {
            dims,
            ..self.clone()
        };
        dispatch::call(op, &all)
    }
}

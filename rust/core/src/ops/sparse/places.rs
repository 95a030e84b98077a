//! Coordinates as places in row-major order, on the host: where gradients do not flow.

use super::coo::with_rows;
use crate::alloc;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Repeats;
use crate::ops::index::{Bounds, IndexPut, Mode};
use crate::ops::sort::unique::sort::unique;
use crate::shape::{numel, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// The numbers of an int64 tensor on the host, in memory of their own: another thread may write to
/// those of the program.
pub fn numbers(x: &Tensor) -> Result<Tensor> {
    let host = x.detach().prepared(DType::I64)?;
    match host.shares_storage(x) {
        true => host.copy_dense(),
        false => Ok(host),
    }
}

fn vector(from: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(from, &[from.len()], DType::I64)
}

/// The place of each coordinate, a column of `indices`, among all of `shape`, which may have more
/// dimensions than have coordinates.
pub fn places(indices: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let (host, shape) = (numbers(indices)?, &shape[..indices.size(0)]);
    let n = indices.size(1);
    ensure!(
        numel(shape)? <= i64::MAX as usize,
        Runtime,
        "a sparse tensor has too many places: coordinates of sizes {}",
        Show(shape)
    );
    // SAFETY: contiguous host memory of this type.
    let from = unsafe { host.slice::<i64>() };
    let mut at = alloc::full(0i64, n);
    for (d, &size) in shape.iter().enumerate() {
        for (at, &i) in at.iter_mut().zip(&from[d * n..(d + 1) * n]) {
            if i < 0 || i as usize >= size {
                bail!(
                    Index,
                    "index {i} of a sparse tensor is out of bounds for dimension {d} with size {size}"
                );
            }
            *at = *at * size as i64 + i;
        }
    }
    vector(&at)
}

/// The reverse of [`places`].
pub fn coordinates(at: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let (host, n) = (numbers(at)?, at.numel());
    let y = Tensor::empty(&[shape.len(), n], DType::I64, crate::device::Device::Cpu)?;
    // SAFETY: contiguous host memory of this type; nobody else has the fresh result.
    let (from, to) = unsafe { (host.slice::<i64>(), y.slice_mut::<i64>()) };
    let mut step = 1;
    for (d, &size) in shape.iter().enumerate().rev() {
        for (to, &i) in to[d * n..(d + 1) * n].iter_mut().zip(from) {
            *to = i / step % size as i64;
        }
        step *= size.max(1) as i64;
    }
    Ok(y)
}

/// The coordinates that occur, in order, and for each entry which of them is its own.
pub fn distinct(indices: &Tensor, shape: &[usize]) -> Result<(Tensor, Tensor)> {
    let shape = &shape[..indices.size(0)];
    let [found, at, _] = unique(&places(indices, shape)?, true, false)?;
    Ok((coordinates(&found, shape)?, at))
}

/// Whether coordinates are in row-major order, each once.
pub fn rise(indices: &Tensor) -> Result<bool> {
    let (host, n, lead) = (numbers(indices)?, indices.size(1), indices.size(0));
    // SAFETY: contiguous host memory of this type.
    let from = unsafe { host.slice::<i64>() };
    let column = |e: usize| (0..lead).map(move |d| from[d * n + e]);
    Ok((1..n).all(|e| column(e - 1).lt(column(e))))
}

/// For each coordinate that occurs, in order, the first entry that has it.
pub fn firsts(indices: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let [found, at, _] = unique(&places(indices, shape)?, true, false)?;
    // SAFETY: contiguous host memory of this type.
    let at = unsafe { at.slice::<i64>() };
    let mut first = alloc::full(0i64, found.numel());
    for (i, &to) in at.iter().enumerate().rev() {
        first[to as usize] = i as i64;
    }
    vector(&first)
}

/// Where numbers are others than this one.
pub fn others(numbers_in: &Tensor, skip: i64) -> Result<Tensor> {
    let host = numbers(numbers_in)?;
    // SAFETY: contiguous host memory of this type.
    let from = unsafe { host.slice::<i64>() };
    let mut kept = alloc::room(from.len());
    kept.extend((0..from.len() as i64).filter(|&i| from[i as usize] != skip));
    vector(&kept)
}

/// The reverse of a permutation.
pub fn inverse(at: &Tensor) -> Result<Tensor> {
    let host = numbers(at)?;
    // SAFETY: contiguous host memory of this type.
    let at = unsafe { host.slice::<i64>() };
    let mut order = alloc::full(0i64, at.len());
    for (i, &to) in at.iter().enumerate() {
        order[to as usize] = i as i64;
    }
    vector(&order)
}

/// Of the coordinates in `wanted` those that `own` has, whose coordinates are in order: for each
/// found the entry of `own`, and its place in `wanted`.
pub fn found(own: &Tensor, wanted: &Tensor, shape: &[usize]) -> Result<(Tensor, Tensor)> {
    let (own, wanted) = (places(own, shape)?, places(wanted, shape)?);
    // SAFETY: contiguous host memory of this type.
    let (own, wanted) = unsafe { (own.slice::<i64>(), wanted.slice::<i64>()) };
    let mut entries = alloc::room(wanted.len());
    let mut at = alloc::room(wanted.len());
    for (i, place) in wanted.iter().enumerate() {
        if let Ok(entry) = own.binary_search(place) {
            entries.push(entry as i64);
            at.push(i as i64);
        }
    }
    Ok((vector(&entries)?, vector(&at)?))
}

/// Zeros with `values` in the rows `at`: each row once, or their sums.
pub fn put_rows(
    rows: usize,
    at: &Tensor,
    values: &Tensor,
    once: bool,
    name: &'static str,
) -> Result<Tensor> {
    let shape = with_rows(rows, &values.shape()[1..]);
    let zeros = Tensor::zeros(&shape, values.dtype(), values.device())?;
    let op = IndexPut {
        dims: SmallVec::from_elem(0, 1),
        mode: if once { Mode::Set } else { Mode::Add },
        bounds: Bounds::Rows,
        repeats: Repeats::Refused,
        name,
    };
    dispatch::call_into(op, &[&zeros, values, at], &zeros, true)
}

//! Slices along a dimension in front, beside what one slice has.

use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Mapped, Op, Tensors};
use crate::shape::{of_many, signed};
use crate::tensor::Tensor;
use smallvec::SmallVec;

impl Mapped<'_> {
    /// Input `i` where the others are: a number may be on the host beside tensors of a GPU, several may not.
    pub fn there(&self, i: usize) -> Result<Tensor> {
        let t = &self.x[i];
        let gpu = self.x.iter().map(|t| t.device()).find(|d| d.is_gpu());
        match gpu.filter(|&d| t.ndim() == 0 && t.device() != d) {
            Some(device) => t.to_device(device),
            None => Ok(t.clone()),
        }
    }

    /// Input `i`, repeated without memory where it is the same for all slices.
    pub fn with_slices(&self, i: usize) -> Result<Tensor> {
        let t = self.there(i)?;
        match self.has(i) {
            true => Ok(t),
            false => t.expand_to(&of_many(self.size, t.shape())),
        }
    }

    /// The results of `op` where every input has slices.
    pub fn call<O: Op>(&self, op: O) -> Result<Tensors> {
        let all: Result<SmallVec<[Tensor; 4]>> =
            (0..self.x.len()).map(|i| self.with_slices(i)).collect();
        let all = all?;
        let all: SmallVec<[&Tensor; 4]> = all.iter().collect();
        dispatch::call(op, &all)
    }

    /// Input `i`, if it has slices, with `ndim` dimensions behind theirs; so it broadcasts.
    pub fn aligned(&self, i: usize, ndim: usize) -> Result<Tensor> {
        let t = &self.x[i];
        if !self.has(i) || t.ndim() > ndim {
            return Ok(t.clone());
        }
        let mut shape = signed(t.shape());
        for _ in t.ndim()..=ndim {
            shape.insert(1, 1);
        }
        t.reshape(&shape)
    }
}

/// Slices side by side in dimension `d` of one of them.
pub fn merged(t: &Tensor, d: usize) -> Result<Tensor> {
    let t = match d {
        0 => t.clone(),
        _ => t.movedim(&[0], &[d as i64])?,
    };
    let mut shape = signed(t.shape());
    let n = shape.remove(d);
    shape[d] *= n;
    t.reshape(&shape)
}

/// The reverse of [`merged`], for `size` slices.
pub fn parted(t: &Tensor, d: usize, size: usize) -> Result<Tensor> {
    let mut shape = signed(t.shape());
    shape[d] /= size.max(1) as i64;
    shape.insert(d, size as i64);
    let t = t.reshape(&shape)?;
    match d {
        0 => Ok(t),
        _ => t.movedim(&[d as i64], &[0]),
    }
}

/// 0, `step`, 2 `step` and so on, `n` of them.
pub fn steps(n: usize, step: usize, device: Device) -> Result<Tensor> {
    let all: Vec<i64> = (0..n).map(|i| (i * step) as i64).collect();
    Tensor::from_slice(&all, &[n], DType::I64)?.to_device(device)
}

//! Elements and slices repeated (`repeat_interleave`), and a one in the place of each class.

use super::{Bounds, Ready};
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Metas, TensorMeta};
use crate::shape;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

pub(super) fn one_hot(x: &Tensor, classes: i64) -> Result<Tensor> {
    let name = "OneHotBackward0";
    let plan = |&classes: &i64| {
        ensure!(
            classes > 0,
            NotImplemented,
            "without num_classes the shape of the result depends on data, and meta tensors have none"
        );
        let mut meta = TensorMeta::of(x);
        meta.shape.push(classes as usize);
        Ok(Metas::from_elem(meta, 1))
    };
    dispatch::function_of(name, classes, &[x], plan, |&classes, x| ones(x[0], classes))
}

fn ones(x: &Tensor, classes: i64) -> Result<Tensor> {
    ensure!(
        x.dtype() == DType::I64,
        Runtime,
        "one_hot is only applicable to index tensor of type LongTensor."
    );
    let p = x.prepared(DType::I64)?;
    let values = Indices::of(&p).own();
    if values.is_empty() {
        ensure!(
            classes > 0,
            Runtime,
            "Can not infer total number of classes from empty tensor."
        );
    }
    ensure!(
        values.iter().all(|&v| v >= 0),
        Runtime,
        "Class values must be non-negative."
    );
    let most = values.iter().copied().max().unwrap_or(-1);
    let classes = match classes {
        -1 => most.saturating_add(1),
        n => {
            ensure!(n > 0, Runtime, "num_classes should be positive");
            ensure!(
                most < n,
                Runtime,
                "Class values must be smaller than num_classes."
            );
            n
        }
    } as usize;
    let mut shape = x.shape().clone();
    shape.push(classes);
    let y = Tensor::zeros(&shape, DType::I64, Device::Cpu)?;
    // SAFETY: a fresh contiguous tensor of this type.
    let out = unsafe { y.slice_mut::<i64>() };
    for (i, &v) in values.iter().enumerate() {
        out[i * classes + v as usize] = 1;
    }
    y.to_device(x.device())
}

/// `repeat_interleave` along a flattened or named dimension.
pub(super) fn interleave(
    x: &Tensor,
    repeats: &Tensor,
    dim: Option<i64>,
    size: Option<i64>,
) -> Result<Tensor> {
    let (x, d) = match dim {
        Some(d) => (x.clone(), shape::dim(d, x.ndim())?),
        None => (x.reshape(&[-1])?, 0),
    };
    let x = if x.ndim() == 0 { x.reshape(&[1])? } else { x };
    ensure!(
        repeats.ndim() <= 1,
        Runtime,
        "repeat_interleave: repeats must be 0-dim or 1-dim tensor, got {} dims",
        repeats.ndim()
    );
    let n = x.size(d);
    let repeats = match repeats.numel() {
        1 => repeats.reshape(&[1])?.expand(&[n as i64])?,
        _ => repeats.clone(),
    };
    ensure!(
        repeats.numel() == n,
        Runtime,
        "repeats must have the same size as input along dim, but got repeats.size(0) = {} and \
         input.size({d}) = {n}",
        repeats.numel()
    );
    let at = repeat_positions(&repeats, size)?.to_device(x.device())?;
    let ready = Ready {
        dims: SmallVec::from_elem(d, 1),
        idx: vec![at],
    };
    x.index_ready(ready, "IndexSelectBackward0", Bounds::Select)
}

/// [`interleave`] with one number for all: a copy of an expanded view, which keeps no positions.
pub(super) fn interleave_each(
    x: &Tensor,
    n: i64,
    dim: Option<i64>,
    size: Option<i64>,
) -> Result<Tensor> {
    ensure!(n >= 0, Runtime, "repeats can not be negative");
    let (x, d) = match dim {
        Some(d) => (x.clone(), shape::dim(d, x.ndim())?),
        None => (x.reshape(&[-1])?, 0),
    };
    let x = if x.ndim() == 0 { x.reshape(&[1])? } else { x };
    let total = (x.size(d) as i64).saturating_mul(n);
    if let Some(size) = size {
        ensure!(
            size == total,
            Runtime,
            "allocated size does not match required size: output_size={size}, sum of repeats={total}"
        );
    }
    let mut shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
    let mut wide = shape.clone();
    wide.insert(d + 1, n);
    shape[d] = total;
    let wide = x.unsqueeze(d as i64 + 1)?.expand(&wide)?;
    wide.copy_dense()?.reshape(&shape)
}

/// Each index as often as `repeats` says.
pub(super) fn repeat_positions(repeats: &Tensor, size: Option<i64>) -> Result<Tensor> {
    let name = "RepeatInterleaveBackward0";
    let plan = |&size: &Option<i64>| {
        let Some(n) = size else {
            bail!(
                NotImplemented,
                "without output_size the shape of the result depends on data, and meta tensors \
                 have none"
            );
        };
        let meta = TensorMeta::new(&shape::sizes(&[n])?, DType::I64, repeats.device());
        Ok(Metas::from_elem(meta, 1))
    };
    dispatch::function_of(name, size, &[repeats], plan, |&size, x| {
        repeated(x[0], size)
    })
}

fn repeated(repeats: &Tensor, size: Option<i64>) -> Result<Tensor> {
    ensure!(
        matches!(repeats.dtype(), DType::I64 | DType::I32),
        NoKernel,
        "\"repeat_interleave_cpu\" not implemented for '{}': repeats has to be Long or Int tensor",
        repeats.dtype().scalar_name()
    );
    ensure!(
        repeats.ndim() == 1,
        Runtime,
        "repeat_interleave only accept 1D vector as repeat"
    );
    let counts = repeats.prepared(DType::I64)?;
    let counts = Indices::of(&counts).own();
    let mut total = 0i64;
    for &c in &counts {
        ensure!(c >= 0, Runtime, "repeats can not be negative");
        total = total.saturating_add(c);
    }
    if let Some(size) = size {
        ensure!(
            size == total,
            Runtime,
            "allocated size does not match required size: output_size={size}, sum of repeats={total}"
        );
    }
    // The allocator says so where there is not enough memory.
    let out = Tensor::empty(&[total as usize], DType::I64, Device::Cpu)?;
    // SAFETY: a fresh contiguous tensor of this type.
    let mut rest = unsafe { out.slice_mut::<i64>() };
    for (i, &c) in counts.iter().enumerate() {
        let (now, later) = rest.split_at_mut(c as usize);
        now.fill(i as i64);
        rest = later;
    }
    out.to_device(repeats.device())
}

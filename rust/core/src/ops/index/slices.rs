//! Slices of a dimension by number, written to: `index_add`, `index_copy`, `index_fill`.

use super::mask;
use super::{put, Bounds, IndexPut, Mode};
use crate::arg;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{check_range, DType, Scalar};
use crate::error::Result;
use crate::op::{Metas, Repeats, TensorMeta};
use crate::ops::pointwise::arithmetic::scaled;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// An index argument of one dimension.
fn vector(name: &str, index: &Tensor) -> Result<Tensor> {
    ensure!(
        index.ndim() <= 1,
        Index,
        "{name}(): Index is supposed to be a vector, but got dim: {}",
        index.ndim()
    );
    ensure!(
        matches!(index.dtype(), DType::I64 | DType::I32),
        Runtime,
        "{name}(): Expected dtype int32/int64 for index but got: {}",
        index.dtype().scalar_name()
    );
    if index.ndim() == 0 {
        index.reshape(&[1])
    } else {
        Ok(index.clone())
    }
}

/// The places of `index` in a dimension of `size` elements, each of them once.
fn distinct(index: &Tensor, size: usize) -> Result<Tensor> {
    let name = "IndexPlacesBackward0";
    // How many there are shows in nothing else.
    let meta = || TensorMeta::new(&[index.numel()], DType::I64, index.device());
    let plan = |_: &_| Ok(Metas::from_elem(meta(), 1));
    let run = |&size: &usize, x: &[&Tensor]| places(x[0], size);
    dispatch::function_of(name, size, &[index], plan, run)
}

fn places(index: &Tensor, size: usize) -> Result<Tensor> {
    let host = index.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type, read only.
    let mut places = unsafe { host.slice::<i64>() }.to_vec();
    // What is out of range stays so, for the error.
    let inside = |i: &i64| (-(size as i64)..0).contains(i);
    places
        .iter_mut()
        .filter(|i| inside(i))
        .for_each(|i| *i += size as i64);
    places.sort_unstable();
    places.dedup();
    Tensor::from_slice(&places, &[places.len()], DType::I64)?.to_device(index.device())
}

/// The values of `index_add` and `index_copy`, with the indexed dimension checked.
fn rows(name: &str, x: &Tensor, d: usize, index: &Tensor, source: &Tensor) -> Result<()> {
    let (to, from) = (x.dtype().scalar_name(), source.dtype().scalar_name());
    if to != from {
        match name {
            "index_copy_" => bail!(
                Runtime,
                "index_copy_(): self and source expected to have the same dtype, but got (self) \
                 {to} and (source) {from}"
            ),
            _ => bail!(
                Runtime,
                "{name}(): self ({to}) and source ({from}) must have the same scalar type"
            ),
        }
    }
    let without = |t: &Tensor| -> Dims {
        (0..t.ndim())
            .filter(|&i| i != d)
            .map(|i| t.size(i))
            .collect()
    };
    if x.ndim() > 0 || source.ndim() > 1 {
        let fits = x.ndim() == source.ndim() && without(x) == without(source);
        if name == "index_copy_" {
            ensure!(
                x.ndim() == source.ndim() || x.ndim() == 0 || source.ndim() == 0,
                Index,
                "index_copy_(): When source and destination are not scalars, their dimensionality \
                 must match. Source dimensionality ({}), destination dimensionality ({})",
                source.ndim(),
                x.ndim()
            );
            let show = |s: Dims| {
                s.iter()
                    .map(|n| n.to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            ensure!(
                fits,
                Runtime,
                "index_copy_(): Source/destination tensor must have same slice shapes. \
                 Destination slice shape: {} at dimension {d} and source slice shape: {} at \
                 dimension {}.",
                show(without(x)),
                show(without(source)),
                if source.ndim() == 0 { 0 } else { d }
            );
        }
        ensure!(
            fits,
            Runtime,
            "source tensor shape must match self tensor shape, excluding the specified dimension. \
             Got self.shape = {} source.shape = {}",
            Show(x.shape()),
            Show(source.shape())
        );
    }
    ensure!(
        index.numel() == source.size(d) || name != "index_copy_",
        Index,
        "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})",
        index.numel(),
        source.size(d)
    );
    ensure!(
        index.numel() == source.size(d),
        Runtime,
        "{name}(): Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {d}",
        index.numel(),
        source.size(d)
    );
    Ok(())
}

/// `source` in the shape that indexing one dimension of `x` gives.
fn as_rows(x: &Tensor, source: &Tensor) -> Result<Tensor> {
    if x.ndim() == 0 || source.ndim() == 0 {
        source.reshape(&[-1])
    } else {
        Ok(source.clone())
    }
}

pub(super) fn index_add<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let index = vector("index_add_", a.tensor(arg!(index))?)?;
    let d = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    rows("index_add_", x, d, &index, a.tensor(arg!(source))?)?;
    let (source, alpha) = scaled(a, arg!(source), arg!(alpha))?;
    check_range(alpha, x.dtype())?;
    // A scale of integers is an integer.
    let alpha = match x.dtype() {
        t if t.is_integral() && alpha.is_float() => Scalar::Int(alpha.i64()),
        _ => alpha,
    };
    let plain = alpha.f64() == 1.0;
    let mut source = as_rows(x, &source)?;
    let mut index = index;
    if x.ndim() > 1 && x.numel() == 0 {
        // Nothing is added, and no index looked at.
        source = source.slice_dim(d as i64, Some(0), Some(0), 1)?;
        index = index.slice_dim(0, Some(0), Some(0), 1)?;
    }
    let source = if plain {
        source
    } else {
        source.mul_scalar(alpha)?.to_dtype(x.dtype())?
    };
    let op = IndexPut {
        dims: SmallVec::from_elem(d, 1),
        mode: Mode::Add,
        bounds: match x.ndim() {
            0 | 1 => Bounds::Add,
            _ => Bounds::AddSlices,
        },
        repeats: Repeats::Refused,
        name: "IndexAddBackward0",
    };
    put(a, op, x, &source, &[index])
}

pub(super) fn index_copy<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, source) = (a.tensor(arg!(self))?, a.tensor(arg!(source))?);
    let index = vector("index_copy_", a.tensor(arg!(index))?)?;
    ensure!(
        index.dtype() == DType::I64,
        Runtime,
        "index_copy_(): Expected a long tensor for index, but got {}",
        index.dtype().scalar_name()
    );
    let d = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    // One element of a vector may come from a scalar.
    let one = match source.ndim() == 0 && x.ndim() == 1 {
        true => Some(source.reshape(&[1])?),
        false => None,
    };
    let source = one.as_ref().unwrap_or(source);
    rows("index_copy_", x, d, &index, source)?;
    let op = IndexPut {
        dims: SmallVec::from_elem(d, 1),
        mode: Mode::Set,
        bounds: Bounds::Copy,
        repeats: Repeats::Refused,
        name: "IndexCopyBackward0",
    };
    put(a, op, x, &as_rows(x, source)?, &[index])
}

pub(super) fn index_fill<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, value) = (a.tensor(arg!(self))?, a.tensor(arg!(value))?);
    let index = a.tensor(arg!(index))?;
    ensure!(
        index.dtype() == DType::I64,
        Index,
        "index_fill_(): Expected dtype int64 for index. Got {}",
        index.dtype().scalar_name()
    );
    ensure!(
        index.ndim() <= 1,
        Runtime,
        "index_fill_(): Index has to be a vector/scalar, got dim: {}",
        index.ndim()
    );
    ensure!(
        x.dtype().is_complex() || !value.dtype().is_complex(),
        Runtime,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported"
    );
    if value.dtype() != x.dtype() && value.device() == Device::Cpu && value.numel() == 1 {
        mask::fitting(x, value)?;
    }
    let index = vector("index_fill_", index)?;
    let d = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    ensure!(
        value.ndim() == 0,
        Runtime,
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} \
         dimension(s).",
        value.ndim()
    );
    let op = IndexPut {
        dims: SmallVec::from_elem(d, 1),
        mode: Mode::Set,
        bounds: Bounds::Wrap,
        repeats: Repeats::Changes,
        name: "IndexFillBackward0",
    };
    // A place that is named twice is still filled once, which the value's gradient has to count.
    let index = match dispatch::recorded(&[value]) {
        true => distinct(&index, x.shape().get(d).copied().unwrap_or(1))?,
        false => index,
    };
    put(a, op, x, value, &[index])
}

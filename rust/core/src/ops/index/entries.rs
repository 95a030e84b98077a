//! The public functions of indexing.

use super::mask::{self, MaskedFill};
use super::{Bounds, Index, IndexPut, Mode, Ready};
use crate::alloc;
use crate::arg;
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::check_range;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::{Metas, Repeats, TensorMeta};
use crate::ops::pointwise::arithmetic::scaled;
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::create::fits;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, host};
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

/// Runs an op that writes to its first input, in place or on a copy.
fn put(a: &Args, op: IndexPut, x: &Tensor, values: &Tensor, idx: &[Tensor]) -> Result<Value> {
    let shared = matches!(a.dest, Dest::InPlace) && values.shares_storage(x);
    let copy = if shared {
        Some(values.copy_dense()?)
    } else {
        None
    };
    let values = copy.as_ref().unwrap_or(values);
    let mut all: SmallVec<[&Tensor; 6]> = SmallVec::new();
    all.push(x);
    all.push(values);
    all.extend(idx);
    a.call(op, &all)
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

fn masked_fill<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, mask, value) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(mask))?,
        a.tensor(arg!(value))?,
    );
    if !value.is_wrapped() {
        ensure!(
            value.ndim() == 0,
            Runtime,
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} \
             dimension(s).",
            value.ndim()
        );
    }
    ensure!(
        x.dtype().is_complex() || !value.dtype().is_complex(),
        Runtime,
        "value cannot be converted to type {} without overflow",
        match x.dtype() {
            DType::I64 => "int64_t",
            DType::I16 => "int16_t",
            DType::I8 => "int8_t",
            DType::U8 => "uint8_t",
            other => other.c_name(),
        }
    );
    if x.dtype().is_complex() {
        ensure!(
            mask.dtype() == DType::Bool,
            Runtime,
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().c_name()
        );
        let y = where_(mask, &value.to_dtype(x.dtype())?, x)?;
        return match a.dest {
            Dest::InPlace => {
                dispatch::destination(x, &TensorMeta::of(&y), true)?;
                x.copy_from(&y)?;
                Ok(x.clone().into())
            }
            _ => Ok(y.into()),
        };
    }
    // A value on the GPU is not waited for.
    if value.dtype() != x.dtype() && value.device() == Device::Cpu {
        check_range(value.item()?, x.dtype())?;
    }
    if let Dest::InPlace = a.dest {
        if let Ok(shape) = mask::masked_shape(x, mask) {
            ensure!(
                shape == *x.shape(),
                Runtime,
                "output with shape {} doesn't match the broadcast shape {}",
                Show(x.shape()),
                Show(&shape)
            );
        }
    }
    a.call(MaskedFill, &[x, mask, &value.apart_from(x)?])
}

fn masked_scatter<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, m, source) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(mask))?,
        a.tensor(arg!(source))?,
    );
    ensure!(
        x.dtype() == source.dtype(),
        Runtime,
        "masked_scatter: expected self and source to have same dtypes but got{} and {}",
        x.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    let shape = mask::masked_shape(x, m)?;
    let inplace = matches!(a.dest, Dest::InPlace);
    ensure!(
        !inplace || shape == *x.shape(),
        Runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        Show(x.shape()),
        Show(&shape)
    );
    let (op, values, columns) = mask::masked_scatter_parts(&shape, m, source)?;
    let x = if inplace {
        x.clone()
    } else {
        x.expand_to(&shape)?
    };
    put(a, op, &x, &values, &columns)
}

fn index_add<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
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

fn index_copy<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
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

fn index_fill<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
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
    if value.is_wrapped() {
        fits(value, x)?;
        if !value.dtype().is_complex() {
            check_range(value.item()?, x.dtype())?;
        }
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

fn take(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    ensure!(
        index.dtype() == DType::I64,
        Runtime,
        "take(): Expected a long tensor for index, but got {}",
        index.dtype().scalar_name()
    );
    ensure!(
        x.numel() > 0 || index.numel() == 0,
        Index,
        "take(): tried to take from an empty tensor"
    );
    let op = Index {
        dims: SmallVec::from_elem(0, 1),
        bounds: Bounds::Take,
        name: "TakeBackward0",
    };
    dispatch::call1(op, &[&x.reshape(&[-1])?, index])
}

fn put_into<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, index, source) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(index))?,
        a.tensor(arg!(source))?,
    );
    if !a.bool(arg!(accumulate))? {
        host::left_open("put_")?;
    }
    ensure!(
        index.dtype() == DType::I64,
        Runtime,
        "put_(): Expected a long tensor for index, but got {}",
        index.dtype().scalar_name()
    );
    ensure!(
        x.dtype() == source.dtype(),
        Runtime,
        "put_(): self and source expected to have the same dtype, but got self.dtype = {} and \
         source.dtype = {}",
        x.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    ensure!(
        index.numel() == source.numel(),
        Index,
        "put_(): Expected source and index to have the same number of elements, but got \
         source.numel() = {}, index.numel() = {}",
        source.numel(),
        index.numel()
    );
    // Positions in row-major order as coordinates, so that any strides can be written to.
    let (name, shape) = ("PutPlacesBackward0", x.shape().clone());
    let meta = || TensorMeta::new(&[index.numel()], DType::I64, index.device());
    let plan = |shape: &Dims| Ok(Metas::from_elem(meta(), shape.len().max(1)));
    let run = |shape: &Dims, x: &[&Tensor]| coordinates(x[0], shape);
    let idx: Vec<Tensor> = dispatch::function_of(name, shape, &[index], plan, run)?;
    let op = IndexPut {
        dims: (0..idx.len()).collect(),
        mode: if a.bool(arg!(accumulate))? {
            Mode::Add
        } else {
            Mode::Set
        },
        bounds: Bounds::Take,
        repeats: Repeats::Refused,
        name: "PutBackward0",
    };
    put(a, op, x, &source.reshape(&[-1])?, &idx)
}

fn coordinates(index: &Tensor, shape: &[usize]) -> Result<Vec<Tensor>> {
    let n = shape::numel(shape)? as i64;
    let flat = index.prepared(DType::I64)?;
    let mut columns = alloc::full(alloc::room(flat.numel()), shape.len().max(1));
    for i in Indices::of(&flat).iter() {
        if i < -n || i >= n {
            return Err(Bounds::Take.error(i, 0, n as usize));
        }
        let mut rest = if i < 0 { i + n } else { i };
        for d in (0..columns.len()).rev() {
            let size = shape.get(d).map_or(1, |&n| n as i64);
            columns[d].push(rest % size);
            rest /= size;
        }
    }
    let column = |c: &Vec<i64>| Tensor::from_slice(c, &[c.len()], DType::I64);
    columns
        .iter()
        .map(|c| column(c)?.to_device(index.device()))
        .collect()
}

fn index_put<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, values, accumulate) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(values))?,
        a.bool(arg!(accumulate))?,
    );
    let target = match a.dest {
        Dest::InPlace => {
            dispatch::check_apart(values, x)?;
            x.clone()
        }
        _ => {
            let others = a.opt_tensors(arg!(indices))?.iter().flatten();
            x.copy_beside(others.chain([values]))?
        }
    };
    target.index_put_(a.opt_tensors(arg!(indices))?, values, accumulate)?;
    Ok(target.into())
}

/// Coordinates of flat positions (`unravel_index`).
fn unravel<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(indices))?;
    ensure!(
        x.dtype().is_int() && !x.dtype().is_wide_unsigned(),
        Type,
        "expected 'indices' to be integer dtype, but got {}",
        x.dtype()
    );
    let size = a.ints(arg!(shape))?;
    if size.iter().any(|&s| s < 0) {
        bail!(
            Value,
            "'shape' cannot have negative values, but got {}",
            format_args!(
                "({})",
                size.iter()
                    .map(|s| s.to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        );
    }
    let size = shape::sizes(size)?;
    let name = "UnravelIndexBackward0";
    let meta = || TensorMeta::new(x.shape(), DType::I64, x.device());
    let plan = |size: &Dims| Ok(Metas::from_elem(meta(), size.len()));
    let run = |size: &Dims, x: &[&Tensor]| unraveled(x[0], size);
    let out = dispatch::function_of(name, size, &[x], plan, run)?;
    Ok(Value::Tuple(out))
}

fn unraveled(x: &Tensor, size: &[usize]) -> Result<Vec<Tensor>> {
    let total = shape::numel(size)? as i64;
    let p = x.prepared(DType::I64)?;
    let values = Indices::of(&p).own();
    ensure!(
        total > 0 || values.is_empty(),
        Runtime,
        "unravel_index: ZeroDivisionError: a shape without elements has no place for an index, \
         got {}",
        Show(size)
    );
    let mut step = total;
    let mut out = Vec::new();
    for &n in size {
        step /= (n as i64).max(1);
        let column: Vec<i64> = values
            .iter()
            .map(|v| v.div_euclid(step.max(1)).rem_euclid((n as i64).max(1)))
            .collect();
        out.push(Tensor::from_slice(&column, x.shape(), DType::I64)?.to_device(x.device())?);
    }
    Ok(out)
}

fn one_hot(x: &Tensor, classes: i64) -> Result<Tensor> {
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
    let y = Tensor::zeros(&shape, DType::I64, crate::device::Device::Cpu)?;
    // SAFETY: a fresh contiguous tensor of this type.
    let out = unsafe { y.slice_mut::<i64>() };
    for (i, &v) in values.iter().enumerate() {
        out[i * classes + v as usize] = 1;
    }
    y.to_device(x.device())
}

/// `repeat_interleave` along a flattened or named dimension.
fn interleave(x: &Tensor, repeats: &Tensor, dim: Option<i64>, size: Option<i64>) -> Result<Tensor> {
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
fn interleave_each(x: &Tensor, n: i64, dim: Option<i64>, size: Option<i64>) -> Result<Tensor> {
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
fn repeat_positions(repeats: &Tensor, size: Option<i64>) -> Result<Tensor> {
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
    let out = Tensor::empty(&[total as usize], DType::I64, crate::device::Device::Cpu)?;
    // SAFETY: a fresh contiguous tensor of this type.
    let mut rest = unsafe { out.slice_mut::<i64>() };
    for (i, &c) in counts.iter().enumerate() {
        let (now, later) = rest.split_at_mut(c as usize);
        now.fill(i as i64);
        rest = later;
    }
    out.to_device(repeats.device())
}

crate::entries! {
    /// The elements that index tensors and masks, one for each dimension, select.
    "index(Tensor self, Tensor?[] indices) -> Tensor", 0,
    |a| Ok(a.tensor(arg!(self))?.index(a.opt_tensors(arg!(indices))?)?.into());
    /// Writes `values` where `indices` say; adds them where `accumulate`.
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    FN | METHOD | INPLACE | DIRECT | APART | LIKE, index_put;
    /// The slices of a dimension that `index` names.
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(a.tensor(arg!(self))?.index_select(a.int(arg!(dim))?, a.tensor(arg!(index))?)?.into());
    /// Adds the slices of `source`, times `alpha`, to those that `index` names.
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | APART | COMPLEX, index_add;
    /// Copies the slices of `source` to those that `index` names.
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    ALL | DIRECT | APART, index_copy;
    /// Fills the slices that `index` names with one value.
    "index_fill(Tensor self, int dim, Tensor index, Tensor|Scalar value) -> Tensor",
    ALL | DIRECT | APART | LIKE, index_fill;
    /// Elements of the flattened tensor.
    "take(Tensor self, Tensor index) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(take(a.tensor(arg!(self))?, a.tensor(arg!(index))?)?.into());
    /// Writes `source` to places of the flattened tensor.
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    FN | METHOD | INPLACE | DIRECT | APART, put_into;
    /// The value where the mask is true, `self` elsewhere.
    "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    FN | METHOD | INPLACE | DIRECT, masked_fill;
    /// The elements where the mask is true, as a vector.
    "masked_select(Tensor self, Tensor mask) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(mask::masked_select(a.tensor(arg!(self))?, a.tensor(arg!(mask))?)?.into());
    /// Elements of `source`, in order, where the mask is true, `self` elsewhere.
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    FN | METHOD | INPLACE | DIRECT, masked_scatter;
    /// The coordinates of elements that are not zero: rows, or with `as_tuple` one tensor for each
    /// dimension.
    "nonzero(Tensor self, *, bool as_tuple=False) -> Tensor", FN | METHOD | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        if !a.bool(arg!(as_tuple))? {
            return Ok(mask::nonzero(x)?.into());
        }
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tuple(mask::nonzero_columns(&x)?))
    };
    /// The first `size` rows of `nonzero`, filled up with `fill_value`.
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", FN | METHOD | OUT,
    |a| {
        let (x, size) = (a.tensor(arg!(self))?, a.int(arg!(size))?);
        ensure!(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer");
        let fill = Scalar::Int(a.int(arg!(fill_value))?);
        let shape = shape::sizes(&[size, x.ndim() as i64])?;
        let y = Tensor::full(&shape, fill, DType::I64, x.device())?;
        if !x.has_data() {
            return Ok(y.into());
        }
        if x.stands() {
            // Rows of each slice, whose number elements tell.
            x.check_open()?;
        }
        let found = mask::nonzero(x)?;
        let n = (size).min(found.size(0) as i64);
        y.narrow(0, 0, n)?.copy_from(&found.narrow(0, 0, n)?)?;
        Ok(y.into())
    };
    /// The same as `nonzero(as_tuple=True)`.
    "nonzero_numpy(Tensor self) -> Tensor[]", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tensors(mask::nonzero_columns(&x)?))
    };
    /// The coordinates of elements that are not zero, one row each.
    "argwhere(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(mask::nonzero(a.tensor(arg!(self))?)?.into());
    /// The coordinates where the condition holds, one tensor for each dimension.
    "where(Tensor condition) -> Tensor[]", FN,
    |a| {
        let x = a.tensor(arg!(condition))?;
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tuple(mask::columns_as("WhereBackward0", &x)?))
    };
    /// Coordinates in a tensor of a shape of positions in its flattened form.
    "unravel_index(Tensor indices, int[1] shape) -> Tensor[]", FN, unravel;
    /// A one in the place of each class value, zeros elsewhere; `num_classes` -1 takes the largest.
    "one_hot(Tensor self, int num_classes=-1) -> Tensor", FN | NN,
    |a| Ok(one_hot(a.tensor(arg!(self))?, a.int(arg!(num_classes))?)?.into());
    /// Each index as often as its entry says.
    "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor", FN,
    |a| Ok(repeat_positions(a.tensor(arg!(repeats))?, a.opt_int(arg!(output_size)))?.into());
    /// Repeats each element or slice.
    "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) \
     -> Tensor", FN | METHOD,
    |a| {
        Ok(interleave_each(a.tensor(arg!(self))?, a.int(arg!(repeats))?, a.opt_int(arg!(dim)), a.opt_int(arg!(output_size)))?.into())
    };
    "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) \
     -> Tensor", FN | METHOD,
    |a| Ok(interleave(a.tensor(arg!(self))?, a.tensor(arg!(repeats))?, a.opt_int(arg!(dim)), a.opt_int(arg!(output_size)))?.into());
}

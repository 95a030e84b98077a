//! Making sparse tensors, what they are made of, and what changes neither: copies, types, the order of
//! dimensions.

use super::arithmetic::give;
use super::coo::{make, values_at, Parts};
use super::places;
use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::{default_dtype, DType};
use crate::ensure;
use crate::error::Result;
use crate::ops::shape::create::Options;
use crate::ops::shape::join::cat;
use crate::schema::{Args, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The size that coordinates and values need where none is given.
fn fitting(indices: &Tensor, values: &Tensor) -> Result<Dims> {
    let (host, n) = (places::numbers(indices)?, indices.size(1));
    // SAFETY: contiguous host memory of this type.
    let from = unsafe { host.slice::<i64>() };
    let size = |d: usize| {
        from[d * n..(d + 1) * n]
            .iter()
            .map(|&i| i.saturating_add(1))
            .max()
    };
    let lead = (0..indices.size(0)).map(|d| size(d).map_or(0, |s| s.max(0) as usize));
    Ok(lead.chain(values.shape()[1..].iter().copied()).collect())
}

/// Refuses coordinates and values that are not those of a tensor of this size.
/// Their numbers are looked at where `all` is checked; each use looks at them again.
fn check(indices: &Tensor, values: &Tensor, size: &[usize], all: bool) -> Result<()> {
    let (lead, n) = (indices.size(0), indices.size(1));
    ensure!(
        size.len() == lead + values.ndim() - 1,
        Runtime,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = \
         {lead}, dense_dim = {}",
        size.len(),
        values.ndim() - 1
    );
    ensure!(
        values.shape()[1..] == size[lead..],
        Runtime,
        "values has incorrect size, expected {}, got {}",
        Show(&super::coo::with_rows(n, &size[lead..])),
        Show(values.shape())
    );
    if !all {
        return Ok(());
    }
    let host = places::numbers(indices)?;
    // SAFETY: contiguous host memory of this type.
    let from = unsafe { host.slice::<i64>() };
    for (d, &size) in size[..lead].iter().enumerate() {
        for &i in &from[d * n..(d + 1) * n] {
            ensure!(i >= 0, Runtime, "found negative index {i} for dim {d}");
            ensure!(
                (i as usize) < size,
                Runtime,
                "size is inconsistent with indices: for dim {d}, size is {size} but found index {i}"
            );
        }
    }
    Ok(())
}

/// Whether coordinates are in order and none occurs twice.
fn in_order(indices: &Tensor, size: &[usize]) -> Result<bool> {
    let at = places::places(indices, size)?;
    // SAFETY: contiguous host memory of this type.
    Ok(unsafe { at.slice::<i64>() }.windows(2).all(|w| w[0] < w[1]))
}

fn of_coordinates(a: &Args) -> Result<Value> {
    let (indices, values) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        indices.ndim() == 2,
        Runtime,
        "indices must be sparse_dim x nnz, but got: {}",
        Show(indices.shape())
    );
    ensure!(
        !indices.dtype().is_float() && !indices.dtype().is_complex() && !indices.is_sparse(),
        Runtime,
        "expected indices to be a dense tensor of integers, got {indices:?}"
    );
    ensure!(
        values.ndim() > 0 && !values.is_sparse(),
        Runtime,
        "expected values to be a dense tensor with a dimension for the entries, got {values:?}"
    );
    ensure!(
        indices.size(1) == values.size(0),
        Runtime,
        "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}",
        indices.size(1),
        values.size(0)
    );
    let indices = indices.to_device(values.device())?.to_dtype(DType::I64)?;
    let size = match a.opt_ints(2) {
        Some(size) => shape::sizes(size)?,
        None => fitting(&indices, values)?,
    };
    let checked = a.bool(4)?;
    check(&indices, values, &size, checked)?;
    let coalesced = !a.is_none(3) && a.bool(3)?;
    if coalesced && checked {
        ensure!(
            in_order(&indices, &size)?,
            Runtime,
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        );
    }
    let values = values.clone();
    let parts = Parts {
        indices,
        values,
        coalesced,
    };
    Ok(make(&size, parts)?.into())
}

/// A sparse tensor without entries.
fn nothing(size: &[usize], lead: usize, dtype: DType, device: Device) -> Result<Tensor> {
    let indices = Tensor::zeros(&[lead, 0], DType::I64, device)?;
    let values = super::coo::with_rows(0, &size[lead..]);
    let values = Tensor::zeros(&values, dtype, device)?;
    let coalesced = true;
    make(
        size,
        Parts {
            indices,
            values,
            coalesced,
        },
    )
}

fn to_sparse(x: &Tensor, lead: usize) -> Result<Tensor> {
    if !x.is_sparse() {
        return x.to_sparse(lead);
    }
    let own = x.sparse_parts()?.lead();
    ensure!(
        own == lead,
        Runtime,
        "to_sparse: expected {own} sparse dimensions, which the sparse tensor has, got {lead}"
    );
    Ok(x.clone())
}

fn to_dense(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    let y = match !a.is_none(2) && !a.bool(2)? {
        true => x.to_dense_unmasked()?,
        false => x.to_dense()?,
    };
    Ok(match a.dtype(1) {
        Some(dtype) => y.to_dtype(dtype)?,
        None => y,
    }
    .into())
}

/// Its values where `mask` has entries.
fn sparse_mask(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    ensure!(
        mask.is_sparse(),
        Runtime,
        "sparse_mask: expected mask to be sparse (layout torch.sparse_coo), got a dense tensor of \
         shape {}; make one with to_sparse()",
        Show(mask.shape())
    );
    ensure!(
        x.shape() == mask.shape(),
        Runtime,
        "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
        Show(x.shape()),
        Show(mask.shape())
    );
    let mask = mask.sparse_parts()?;
    let values = values_at(x, &mask.indices)?;
    let indices = mask.indices.copy_dense()?;
    make(
        x.shape(),
        Parts {
            indices,
            values,
            ..mask
        },
    )
}

fn refused(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        x.is_sparse(),
        Runtime,
        "{name} expected sparse coordinate tensor layout but got Strided, of shape {}; make it \
         sparse with to_sparse()",
        Show(x.shape())
    );
    Ok(())
}

/// Indices or values, which the coalesced tensor alone gives out.
fn given_out(a: &Args, values: bool) -> Result<Value> {
    let (x, name) = (a.tensor(0)?, if values { "values" } else { "indices" });
    refused(name, x)?;
    let parts = x.entries()?;
    ensure!(
        parts.coalesced,
        Runtime,
        "Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
    );
    Ok(if values { parts.values } else { parts.indices }.into())
}

/// The parts of a matrix by rows.
fn of_rows(a: &Args) -> Result<Parts> {
    let x = a.tensor(0)?;
    ensure!(
        x.is_by_rows(),
        Runtime,
        "{} expected sparse row compressed tensor layout but got {}, of shape {}; make it one with \
         to_sparse_csr()",
        a.schema.name,
        if x.is_sparse() { "Sparse" } else { "Strided" },
        Show(x.shape())
    );
    x.sparse_parts()
}

fn crow_indices(a: &Args) -> Result<Value> {
    let (parts, rows) = (of_rows(a)?, a.tensor(0)?.size(0));
    let host = places::numbers(&parts.indices.select(0, 0)?)?;
    // SAFETY: contiguous host memory of this type.
    let row = unsafe { host.slice::<i64>() };
    let mut starts = crate::alloc::room(rows + 1);
    starts.extend((0..=rows as i64).map(|i| row.partition_point(|&at| at < i) as i64));
    let y = Tensor::from_slice(&starts, &[rows + 1], DType::I64)?;
    Ok(y.to_device(a.tensor(0)?.device())?.into())
}

/// Its parts as they are.
fn raw(a: &Args) -> Result<Parts> {
    refused(a.schema.name, a.tensor(0)?)?;
    a.tensor(0)?.sparse_parts()
}

/// Another size, with the entries that it has or without any.
fn resize(a: &Args, clear: bool) -> Result<Value> {
    let x = a.tensor(0)?;
    let own = raw(a)?;
    let (size, lead) = (shape::sizes(a.ints(1)?)?, a.int(2)?);
    ensure!(
        lead >= 0 && a.int(3)? >= 0 && lead + a.int(3)? == size.len() as i64,
        Runtime,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = \
         {lead}, dense_dim = {}",
        size.len(),
        a.int(3)?
    );
    x.check_inplace(mode::grad() && x.requires_grad())?;
    let lead = lead as usize;
    if clear || own.entries() == 0 {
        let y = nothing(&size, lead, x.dtype(), x.device())?;
        return renewed(x, &y);
    }
    let smaller = x.shape().iter().zip(&size).any(|(old, new)| new < old);
    ensure!(
        lead == own.lead() && size.len() == x.ndim() && !smaller,
        Runtime,
        "{}: a sparse tensor with entries keeps its numbers of dimensions and may not become \
         smaller, got shape {} with {} sparse dimensions and size {}; clear it with \
         sparse_resize_and_clear_()",
        a.schema.name,
        Show(x.shape()),
        own.lead(),
        Show(&size)
    );
    let rest = super::coo::with_rows(own.entries(), &size[lead..]);
    let mut values = own.values;
    if values.shape() != &rest {
        let wide = Tensor::zeros(&rest, values.dtype(), values.device())?;
        let mut part = wide.clone();
        for d in 0..rest.len() {
            part = part.narrow(d as i64, 0, values.size(d) as i64)?;
        }
        part.copy_from(&values)?;
        values = wide;
    }
    renewed(x, &make(&size, Parts { values, ..own })?)
}

/// `y` in the place of `x`, which all that share it see where the shape is the same.
fn renewed(x: &Tensor, y: &Tensor) -> Result<Value> {
    let lead = (x.sparse_parts()?.lead(), y.sparse_parts()?.lead());
    Ok(match x.shape() == y.shape() && lead.0 == lead.1 {
        true => x.become_sparse(y)?,
        false => x.replaced(y),
    }
    .into())
}

fn copy_into(a: &Args) -> Result<Value> {
    let (x, source) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        x.is_sparse() && source.is_sparse(),
        Runtime,
        "copy_() between dense and sparse Tensors is not implemented! Found self shape = {} and src \
         shape = {}; use to_dense() or to_sparse()",
        Show(x.shape()),
        Show(source.shape())
    );
    ensure!(
        x.shape() == source.shape(),
        Runtime,
        "copy_: expected tensors of one shape, got {} and {}",
        Show(x.shape()),
        Show(source.shape())
    );
    if x.same(source) {
        return Ok(x.clone().into());
    }
    Ok(x.become_sparse(&source.copy_sparse()?)?.into())
}

/// As another type or on another device.
fn converted(x: &Tensor, dtype: DType, device: Device, copy: bool) -> Result<Value> {
    Ok(x.to(dtype, device, copy, None)?.into())
}

fn cast(a: &Args, dtype: DType) -> Result<Value> {
    let x = a.tensor(0)?;
    converted(x, dtype, x.device(), false)
}

impl Tensor {
    /// The dimensions in another order, those with coordinates among themselves.
    pub fn permute_sparse(&self, dims: &[usize]) -> Result<Tensor> {
        let parts = self.entries()?;
        let lead = parts.lead();
        ensure!(
            dims[..lead].iter().all(|&d| d < lead),
            Runtime,
            "transpose(): can't transpose sparse and dense dimensions: of shape {} the first {lead} have \
             coordinates, got the order {dims:?}",
            Show(self.shape())
        );
        let same = dims[..lead].iter().enumerate().all(|(i, &d)| i == d);
        let mut indices = parts.indices.clone();
        if !same {
            let rows = dims[..lead].iter().map(|&d| indices.narrow(0, d as i64, 1));
            indices = cat(&rows.collect::<Result<Vec<_>>>()?, 0)?;
        }
        let rest = dims[lead..].iter().map(|&d| (d - lead + 1) as i64);
        let order: SmallVec<[i64; 5]> = std::iter::once(0).chain(rest).collect();
        let values = parts.values.permute(&order)?;
        let size: Dims = dims.iter().map(|&d| self.size(d)).collect();
        let coalesced = parts.coalesced && same;
        make(
            &size,
            Parts {
                indices,
                values,
                coalesced,
            },
        )
    }
}

fn transpose(x: &Tensor, a: i64, b: i64) -> Result<Value> {
    let (a, b) = (shape::dim(a, x.ndim())?, shape::dim(b, x.ndim())?);
    let mut dims: SmallVec<[usize; 5]> = (0..x.ndim()).collect();
    dims.swap(a, b);
    Ok(x.permute_sparse(&dims)?.into())
}

pub fn unsqueeze(x: &Tensor, dim: i64) -> Result<Tensor> {
    let parts = x.entries()?;
    let (d, lead) = (shape::dim(dim, x.ndim() + 1)?, parts.lead());
    let mut size = x.shape().clone();
    size.insert(d, 1);
    if d > lead {
        let values = parts.values.unsqueeze((d - lead + 1) as i64)?;
        return make(&size, Parts { values, ..parts });
    }
    let row = Tensor::zeros(&[1, parts.entries()], DType::I64, x.device())?;
    let before = parts.indices.narrow(0, 0, d as i64)?;
    let after = parts.indices.narrow(0, d as i64, (lead - d) as i64)?;
    let indices = cat(&[before, row, after], 0)?;
    make(&size, Parts { indices, ..parts })
}

/// Zeros like the first argument: sparse, unless another layout is asked for.
fn zeros_like(a: &Args) -> Result<Value> {
    let (x, o) = (a.tensor(0)?, Options::read(a, 1)?);
    let (dtype, device) = (o.dtype.unwrap_or(x.dtype()), o.device.unwrap_or(x.device()));
    let dense = !a.is_none(2) && !a.is_sparse(2);
    let y = match (dense, x.is_sparse()) {
        (true, _) => Tensor::zeros(x.shape(), dtype, device)?,
        (_, true) => nothing(x.shape(), x.sparse_parts()?.lead(), dtype, device)?,
        _ => nothing(x.shape(), x.ndim(), dtype, device)?,
    };
    let rows = a.is_by_rows(2) || a.is_none(2) && x.is_by_rows();
    let y = if y.is_sparse() { y.by_rows(rows)? } else { y };
    o.give(a, y)
}

fn zeros(a: &Args) -> Result<Value> {
    let (size, o) = (shape::sizes(a.ints(0)?)?, Options::read(a, 1)?);
    let dtype = o.dtype_or(a, default_dtype)?;
    let y = nothing(&size, size.len(), dtype, o.device_or(a))?;
    let y = y.by_rows(a.is_by_rows(2))?;
    o.give(a, y)
}

crate::entries! {
    /// A sparse tensor of these coordinates and values.
    "_sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, *, bool? is_coalesced=None, bool check_invariants=True) -> Tensor",
    FN | SPARSE, of_coordinates;
    /// The elements that are not zero, as a sparse tensor with coordinates in the first `sparse_dim`
    /// dimensions.
    "to_sparse(Tensor self, int sparse_dim) -> Tensor", METHOD | SPARSE,
    |a| {
        let (x, lead) = (a.tensor(0)?, a.int(1)?);
        ensure!(
            (0..=x.ndim() as i64).contains(&lead) && (lead > 0 || x.ndim() == 0),
            Runtime,
            "to_sparse: sparse_dim argument must be in >0 and <= {}, got {lead}",
            x.ndim()
        );
        Ok(to_sparse(x, lead as usize)?.into())
    };
    /// The elements that are not zero, as a sparse tensor.
    "to_sparse(Tensor self, *, Layout? layout=None, int[]? blocksize=None, int? dense_dim=None) -> Tensor",
    METHOD | SPARSE,
    |a| {
        let x = a.tensor(0)?;
        if !a.is_none(1) && !a.is_sparse(1) {
            return Ok(x.to_dense()?.into());
        }
        ensure!(a.is_none(2), Runtime, "to_sparse: blocksize is of layouts with blocks");
        let rest = a.opt_int(3).unwrap_or(0);
        ensure!(
            rest >= 0 && rest <= x.ndim() as i64,
            Runtime,
            "to_sparse: dense_dim must be between 0 and {}, got {rest}",
            x.ndim()
        );
        let y = match x.is_sparse() && a.is_none(3) {
            true => x.clone(),
            false => to_sparse(x, x.ndim() - rest as usize)?,
        };
        Ok(y.by_rows(a.is_by_rows(1))?.into())
    };
    /// The elements of a matrix that are not zero, by rows (layout `torch.sparse_csr`).
    "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", METHOD | SPARSE,
    |a| {
        let x = a.tensor(0)?;
        ensure!(
            a.opt_int(1).unwrap_or(0) == 0,
            Runtime,
            "to_sparse_csr: expected values without dimensions (dense_dim 0), got {:?}",
            a.values[1]
        );
        ensure!(
            x.ndim() == 2,
            Runtime,
            "to_sparse_csr: expected a matrix, got shape {}",
            Show(x.shape())
        );
        Ok(to_sparse(x, 2)?.by_rows(true)?.into())
    };
    /// Where the entries of each row of a matrix by rows begin and, last, end.
    "crow_indices(Tensor self) -> Tensor", METHOD | SPARSE, crow_indices;
    /// The column of each entry of a matrix by rows.
    "col_indices(Tensor self) -> Tensor", METHOD | SPARSE,
    |a| Ok(of_rows(a)?.indices.select(0, 1)?.into());
    /// The elements in memory, zeros where there is no entry; a dense tensor itself.
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    METHOD | SPARSE, to_dense;
    /// The values at the coordinates that the sparse tensor `mask` has.
    "sparse_mask(Tensor self, Tensor mask) -> Tensor", METHOD | SPARSE,
    |a| Ok(sparse_mask(a.tensor(0)?, a.tensor(1)?)?.into());
    /// Each coordinate once, in row-major order, with the sum of its values.
    "coalesce(Tensor self) -> Tensor", METHOD | SPARSE,
    |a| {
        refused("coalesce", a.tensor(0)?)?;
        Ok(a.tensor(0)?.coalesced()?.into())
    };
    /// Whether coordinates are in order and each is there once.
    "is_coalesced(Tensor self) -> bool", METHOD | SPARSE,
    |a| Ok(Value::Bool(raw(a)?.coalesced));
    /// Says that coordinates are in order and each is there once, or that they may not be.
    "_coalesced_(Tensor self, bool coalesced) -> Tensor", METHOD | SPARSE,
    |a| {
        a.tensor(0)?.set_coalesced(a.bool(1)?)?;
        Ok(a.tensor(0)?.clone().into())
    };
    /// The coordinates of a coalesced sparse tensor, one column for each entry.
    "indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| given_out(a, false);
    /// The values of a coalesced sparse tensor.
    "values(Tensor self) -> Tensor", METHOD | SPARSE, |a| given_out(a, true);
    /// The coordinates of a sparse tensor as they are.
    "_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(raw(a)?.indices.into());
    /// The values of a sparse tensor as they are, without a gradient.
    "_values(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(raw(a)?.values.into());
    /// The number of entries of a sparse tensor.
    "_nnz(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(raw(a)?.entries() as i64));
    /// How many dimensions have coordinates: none of a dense tensor.
    "sparse_dim(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(match a.tensor(0)?.is_sparse() {
        true => raw(a)?.lead() as i64,
        false => 0,
    }));
    /// How many dimensions the values have: all of a dense tensor.
    "dense_dim(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(match a.tensor(0)?.is_sparse() {
        true => raw(a)?.values.ndim() as i64 - 1,
        false => a.tensor(0)?.ndim() as i64,
    }));
    /// Gives a sparse tensor another size; what has entries may only grow.
    "sparse_resize_(Tensor self, int[] size, int sparse_dim, int dense_dim) -> Tensor",
    METHOD | SPARSE, |a| resize(a, false);
    /// Gives a sparse tensor another size, without entries.
    "sparse_resize_and_clear_(Tensor self, int[] size, int sparse_dim, int dense_dim) -> Tensor",
    METHOD | SPARSE, |a| resize(a, true);
    /// Gives a sparse tensor the size of another one, without entries that it had.
    "resize_as_sparse_(Tensor self, Tensor the_template) -> Tensor", FN | METHOD | SPARSE,
    |a| {
        let (x, like) = (a.tensor(0)?, a.tensor(1)?);
        refused("resize_as_sparse_", x)?;
        refused("resize_as_sparse_", like)?;
        x.check_inplace(mode::grad() && x.requires_grad())?;
        let lead = like.sparse_parts()?.lead();
        match x.shape() == like.shape() && x.sparse_parts()?.lead() == lead {
            true => Ok(x.clone().into()),
            false => renewed(x, &nothing(like.shape(), lead, x.dtype(), x.device())?),
        }
    };
    /// A copy of `values()`.
    "values_copy(Tensor self) -> Tensor", FN | OUT | SPARSE,
    |a| match given_out(a, true)? {
        Value::Tensor(v) => Ok(v.copy_dense()?.into()),
        other => Ok(other),
    };
    /// A copy of `indices()`.
    "indices_copy(Tensor self) -> Tensor", FN | OUT | SPARSE,
    |a| match given_out(a, false)? {
        Value::Tensor(v) => Ok(v.copy_dense()?.into()),
        other => Ok(other),
    };
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(0)?.copy_sparse()?.into());
    "detach(Tensor self) -> Tensor", FN | ALSO, |a| Ok(a.tensor(0)?.detach().into());
    "to(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| {
        let x = a.tensor(0)?;
        converted(x, a.dtype(1).unwrap_or(x.dtype()), x.device(), a.bool(3)?)
    };
    "to(Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| {
        let x = a.tensor(0)?;
        let device = a.device(1).unwrap_or(x.device());
        converted(x, a.dtype(2).unwrap_or(x.dtype()), device, a.bool(4)?)
    };
    "to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(0)?, a.tensor(1)?.dtype(), a.tensor(1)?.device(), a.bool(3)?);
    "type_as(Tensor self, Tensor other) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(0)?, a.tensor(1)?.dtype(), a.tensor(1)?.device(), false);
    "cpu(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(0)?, a.tensor(0)?.dtype(), Device::Cpu, false);
    "float(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F32);
    "double(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F64);
    "half(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F16);
    "bfloat16(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::BF16);
    "int(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::I32);
    "long(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::I64);
    "bool(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::Bool);
    "copy_(Tensor self, Tensor|Scalar src, bool non_blocking=False) -> Tensor", METHOD | ALSO,
    copy_into;
    "zero_(Tensor self) -> Tensor", FN | METHOD | ALSO,
    |a| {
        let x = a.tensor(0)?;
        x.check_inplace(mode::grad() && x.requires_grad())?;
        let lead = x.sparse_parts()?.lead();
        Ok(x.become_sparse(&nothing(x.shape(), lead, x.dtype(), x.device())?)?.into())
    };
    "permute(Tensor self, int[] dims) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(0)?.permute(a.ints(1)?)?.into());
    "transpose(Tensor self, int dim0, int dim1) -> Tensor", FN | METHOD | ALSO,
    |a| transpose(a.tensor(0)?, a.int(1)?, a.int(2)?);
    "t(Tensor self) -> Tensor", FN | METHOD | ALSO,
    |a| {
        let x = a.tensor(0)?;
        ensure!(
            x.ndim() <= 2,
            Runtime,
            "t() expects a tensor with <= 2 dimensions, but self is {}D",
            x.ndim()
        );
        match x.ndim() {
            2 => transpose(x, 0, 1),
            _ => Ok(x.clone().into()),
        }
    };
    "select(Tensor self, int dim, int index) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(0)?.select(a.int(1)?, a.int(2)?)?.into());
    "unsqueeze(Tensor self, int dim) -> Tensor", FN | METHOD | ALSO,
    |a| give(a, unsqueeze(a.tensor(0)?, a.int(1)?)?);
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    zeros_like;
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    zeros_like;
    "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | ALSO,
    zeros;
    "empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    zeros;
}

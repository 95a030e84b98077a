//! Making sparse tensors, what they are made of, and what changes neither: copies, types, the order of
//! dimensions.

use super::coo::{make, values_at, Parts};
use super::packed::{self, Packed};
use super::places;
use crate::arg;
use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::meta::Form;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;

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

fn of_coordinates<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let size = a.opt_ints(arg!(size)).map(shape::sizes).transpose()?;
    let coalesced = !a.is_none(arg!(is_coalesced)) && a.bool(arg!(is_coalesced))?;
    Ok(of_parts(
        a.tensor(arg!(indices))?,
        a.tensor(arg!(values))?,
        size,
        coalesced,
        a.bool(arg!(check_invariants))?,
    )?
    .into())
}

fn of_parts(
    indices: &Tensor,
    values: &Tensor,
    size: Option<Dims>,
    coalesced: bool,
    checked: bool,
) -> Result<Tensor> {
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
        !values.is_sparse(),
        Runtime,
        "expected values to be a dense tensor, got {values:?}"
    );
    // A number stands for one entry.
    let values = &match values.ndim() {
        0 => values.unsqueeze(0)?,
        _ => values.clone(),
    };
    ensure!(
        indices.size(1) == values.size(0),
        Runtime,
        "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}",
        indices.size(1),
        values.size(0)
    );
    let indices = indices.to_device(values.device())?.to_dtype(DType::I64)?;
    let size = match size {
        Some(size) => size,
        None => fitting(&indices, values)?,
    };
    check(&indices, values, &size, checked)?;
    if coalesced && checked {
        ensure!(
            places::rise(&indices)?,
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
    make(&size, parts)
}

/// A sparse tensor without entries.
pub fn nothing(size: &[usize], lead: usize, dtype: DType, device: Device) -> Result<Tensor> {
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

fn to_dense<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let y = match !a.is_none(arg!(masked_grad)) && !a.bool(arg!(masked_grad))? {
        true => x.to_dense_unmasked()?,
        false => x.to_dense()?,
    };
    Ok(match a.dtype(arg!(dtype)) {
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
        "sparse_mask: expected mask to be sparse (such as of layout torch.sparse_coo), got a dense \
         tensor of shape {}; make one with to_sparse()",
        Show(mask.shape())
    );
    ensure!(
        x.shape() == mask.shape(),
        Runtime,
        "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
        Show(x.shape()),
        Show(mask.shape())
    );
    if mask.form().is_packed() {
        let (form, own) = (mask.form(), mask.raw_lines()?);
        let values = packed::values_at(x, form, &own.starts, &own.plain, own.values.shape())?;
        let lines = Packed {
            starts: own.starts.copy_dense()?,
            plain: own.plain.copy_dense()?,
            values,
        };
        return packed::make(x.shape(), form, lines);
    }
    ensure!(
        !x.form().is_packed(),
        Runtime,
        "sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got Sparse, \
         of shape {}; convert the tensor with to_sparse_coo()",
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

pub(super) fn refused(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        x.form() == Form::Coo,
        Runtime,
        "{name} expected sparse coordinate tensor layout but got {}, of shape {}; make it one with \
         to_sparse_coo()",
        x.form().title(),
        Show(x.shape())
    );
    Ok(())
}

/// Indices or values, which the coalesced tensor alone gives out.
fn given_out<Sig: Signature>(a: &Args<Sig>, values: bool) -> Result<Value> {
    let (x, name) = (
        a.tensor(arg!(self))?,
        if values { "values" } else { "indices" },
    );
    if values && x.form().is_packed() {
        return Ok(x.lines()?.values.into());
    }
    refused(name, x)?;
    let parts = x.entries()?;
    ensure!(
        parts.coalesced,
        Runtime,
        "Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
    );
    Ok(if values { parts.values } else { parts.indices }.into())
}

/// Its parts as they are.
fn raw<Sig: Signature>(a: &Args<Sig>) -> Result<Parts> {
    refused(a.schema.name, a.tensor(arg!(self))?)?;
    a.tensor(arg!(self))?.sparse_parts()
}

/// Another size, with the entries that it has or without any.
fn resize<Sig: Signature>(a: &Args<Sig>, clear: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    refused(a.schema.name, x)?;
    let (size, lead) = (shape::sizes(a.ints(arg!(size))?)?, a.int(arg!(sparse_dim))?);
    ensure!(
        lead >= 0
            && a.int(arg!(dense_dim))? >= 0
            && lead + a.int(arg!(dense_dim))? == size.len() as i64,
        Runtime,
        "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = \
         {lead}, dense_dim = {}",
        size.len(),
        a.int(arg!(dense_dim))?
    );
    x.check_inplace(mode::grad() && x.requires_grad())?;
    resized(x, &size, lead as usize, clear)
}

fn resized(x: &Tensor, size: &[usize], lead: usize, clear: bool) -> Result<Value> {
    let own = x.sparse_parts()?;
    if clear || own.entries() == 0 {
        let y = nothing(size, lead, x.dtype(), x.device())?;
        return renewed(x, &y);
    }
    for (kind, old, new) in [
        ("sparse", own.lead(), lead),
        ("dense", x.ndim() - own.lead(), size.len() - lead),
    ] {
        ensure!(
            old == new,
            Runtime,
            "changing the number of {kind} dimensions (from {old} to {new}) on a non-empty sparse \
             tensor is not supported. Clear it with sparse_resize_and_clear_()."
        );
    }
    for (kind, range) in [("sparse", 0..lead), ("dense", lead..size.len())] {
        let (old, new) = (&x.shape()[range.clone()], &size[range]);
        ensure!(
            old.iter().zip(new).all(|(old, new)| old <= new),
            Runtime,
            "shrinking the size of {kind} dimensions (from {} to {}) on a non-empty sparse tensor \
             is not supported. Clear it with sparse_resize_and_clear_().",
            Show(old),
            Show(new)
        );
    }
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
    renewed(x, &make(size, Parts { values, ..own })?)
}

/// `y` in the place of `x`, which all that share it see where the shape is the same.
fn renewed(x: &Tensor, y: &Tensor) -> Result<Value> {
    Ok(match x.shape() == y.shape() && x.lead()? == y.lead()? {
        true => x.become_sparse(y)?,
        false => x.replaced(y),
    }
    .into())
}

/// What the type of such tensors was called before layouts had names.
fn kind(x: &Tensor) -> String {
    let place = if x.is_sparse() { "sparse." } else { "" };
    format!("torch.{place}{}Tensor", x.dtype().scalar_name())
}

fn copy_into<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, source) = (a.tensor(arg!(self))?, a.tensor(arg!(src))?);
    if x.same(source) {
        return Ok(x.clone().into());
    }
    ensure!(
        x.form().is_packed() || !source.form().is_packed(),
        Runtime,
        "copy_sparse_compressed_ expected sparse compressed tensor layout but got {}",
        x.form().title()
    );
    if x.form().is_packed() {
        ensure!(
            x.form() == source.form(),
            Runtime,
            "torch.copy_: copy of sparse compressed tensors having different layouts is not \
             supported. self layout is {} and src layout is {}",
            x.form().title(),
            source.form().title()
        );
        let counts = [x, source].map(|t| t.raw_lines().map(|lines| lines.plain.numel()));
        let [own, other] = counts;
        ensure!(
            own? == other?,
            Runtime,
            "torch.copy_: only sparse compressed tensors with the same number of specified \
             elements are supported."
        );
        ensure!(
            x.shape() == source.shape() && x.block()? == source.block()?,
            Runtime,
            "torch.copy_: expected shapes and blocks of self and src to match, got {} and {}",
            Show(x.shape()),
            Show(source.shape())
        );
    }
    ensure!(
        x.is_sparse() && source.is_sparse(),
        Runtime,
        "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and \
         src type = {}; use to_dense() or to_sparse()",
        kind(x),
        kind(source)
    );
    ensure!(
        x.shape() == source.shape(),
        Runtime,
        "copy_: expected tensors of one shape, got {} and {}",
        Show(x.shape()),
        Show(source.shape())
    );
    Ok(x.become_sparse(&source.copy_sparse()?)?.into())
}

/// As another type or on another device.
fn converted(x: &Tensor, dtype: DType, device: Device, copy: bool) -> Result<Value> {
    Ok(x.to(dtype, device, copy, None)?.into())
}

fn cast<Sig: Signature>(a: &Args<Sig>, dtype: DType) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    converted(x, dtype, x.device(), false)
}

crate::entries! {
    /// Raises where coordinates and values are not those of a sparse tensor of this size.
    "_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, bool? is_coalesced=None, bool? check_pinning=None) -> ()",
    FN | SPARSE,
    |a| {
        let (indices, values, size) = (a.tensor(arg!(indices))?, a.tensor(arg!(values))?, shape::sizes(a.ints(arg!(size))?)?);
        let coalesced = !a.is_none(arg!(is_coalesced)) && a.bool(arg!(is_coalesced))?;
        of_parts(indices, values, Some(size), coalesced, true)?;
        Ok(Value::None)
    };
    /// A sparse tensor of these coordinates and values.
    "_sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, *, bool? is_coalesced=None, bool check_invariants=True) -> Tensor",
    FN | SPARSE, of_coordinates;
    /// The elements in memory, zeros where there is no entry; a dense tensor itself.
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    METHOD | SPARSE, to_dense;
    /// The values at the coordinates that the sparse tensor `mask` has.
    "sparse_mask(Tensor self, Tensor mask) -> Tensor", METHOD | SPARSE,
    |a| Ok(sparse_mask(a.tensor(arg!(self))?, a.tensor(arg!(mask))?)?.into());
    /// Each coordinate once, in row-major order, with the sum of its values.
    "coalesce(Tensor self) -> Tensor", METHOD | SPARSE,
    |a| {
        refused("coalesce", a.tensor(arg!(self))?)?;
        Ok(a.tensor(arg!(self))?.coalesced()?.into())
    };
    /// Whether coordinates are in order and each is there once.
    "is_coalesced(Tensor self) -> bool", METHOD | SPARSE,
    |a| Ok(Value::Bool(raw(a)?.coalesced));
    /// Says that coordinates are in order and each is there once, or that they may not be.
    "_coalesced_(Tensor self, bool coalesced) -> Tensor", METHOD | SPARSE,
    |a| {
        a.tensor(arg!(self))?.set_coalesced(a.bool(arg!(coalesced))?)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
    /// The coordinates of a coalesced sparse tensor, one column for each entry.
    "indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| given_out(a, false);
    /// The values of a coalesced sparse tensor.
    "values(Tensor self) -> Tensor", METHOD | SPARSE, |a| given_out(a, true);
    /// The coordinates of a sparse tensor as they are.
    "_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(raw(a)?.indices.into());
    /// The values of a sparse tensor as they are, without a gradient.
    "_values(Tensor self) -> Tensor", METHOD | SPARSE,
    |a| match a.tensor(arg!(self))?.form().is_packed() {
        true => Ok(a.tensor(arg!(self))?.raw_lines()?.values.into()),
        false => Ok(raw(a)?.values.into()),
    };
    /// The number of entries, or blocks, of a sparse tensor, in each of a batch.
    "_nnz(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(match a.tensor(arg!(self))?.form().is_packed() {
        true => {
            let lines = a.tensor(arg!(self))?.raw_lines()?;
            lines.plain.size(lines.plain.ndim() - 1) as i64
        }
        false => raw(a)?.entries() as i64,
    }));
    /// How many dimensions have coordinates: none of a dense tensor.
    "sparse_dim(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(match a.tensor(arg!(self))?.is_sparse() {
        true => match a.tensor(arg!(self))?.form() {
            Form::Coo => raw(a)?.lead() as i64,
            _ => 2,
        },
        false => 0,
    }));
    /// How many dimensions the values have: all of a dense tensor.
    "dense_dim(Tensor self) -> int", METHOD | SPARSE,
    |a| Ok(Value::Int(match a.tensor(arg!(self))?.is_sparse() {
        true => (a.tensor(arg!(self))?.ndim() - a.tensor(arg!(self))?.lead()?) as i64,
        false => a.tensor(arg!(self))?.ndim() as i64,
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
        let (x, like) = (a.tensor(arg!(self))?, a.tensor(arg!(the_template))?);
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
    |a| Ok(a.tensor(arg!(self))?.copy_sparse()?.into());
    "detach(Tensor self) -> Tensor", FN | ALSO, |a| Ok(a.tensor(arg!(self))?.detach().into());
    "resolve_conj(Tensor self) -> Tensor", FN | METHOD | ALSO, |a| Ok(a.tensor(arg!(self))?.clone().into());
    "resolve_neg(Tensor self) -> Tensor", FN | METHOD | ALSO, |a| Ok(a.tensor(arg!(self))?.clone().into());
    "to(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| {
        let x = a.tensor(arg!(self))?;
        converted(x, a.dtype(arg!(dtype)).unwrap_or(x.dtype()), x.device(), a.bool(arg!(copy))?)
    };
    "to(Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| {
        let x = a.tensor(arg!(self))?;
        let device = a.device(arg!(device)).unwrap_or(x.device());
        converted(x, a.dtype(arg!(dtype)).unwrap_or(x.dtype()), device, a.bool(arg!(copy))?)
    };
    "to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(arg!(self))?, a.tensor(arg!(other))?.dtype(), a.tensor(arg!(other))?.device(), a.bool(arg!(copy))?);
    "type_as(Tensor self, Tensor other) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(arg!(self))?, a.tensor(arg!(other))?.dtype(), a.tensor(arg!(other))?.device(), false);
    "cpu(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| converted(a.tensor(arg!(self))?, a.tensor(arg!(self))?.dtype(), Device::Cpu, false);
    "float(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F32);
    "double(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F64);
    "half(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::F16);
    "bfloat16(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::BF16);
    "byte(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::U8);
    "char(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::I8);
    "short(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD | ALSO,
    |a| cast(a, DType::I16);
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
        let x = a.tensor(arg!(self))?;
        x.check_inplace(mode::grad() && x.requires_grad())?;
        let empty = nothing(x.shape(), x.lead()?, x.dtype(), x.device())?;
        Ok(x.become_sparse(&empty)?.into())
    };
}

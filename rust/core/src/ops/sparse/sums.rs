//! Sums over dimensions, softmax, and entries by index.

use super::arithmetic::give;
use super::coo::{make, Parts};
use super::places;
use crate::alloc;
use crate::arg;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Form;
use crate::op::Repeats;
use crate::ops::index::{Bounds, IndexPut, Mode};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::{Exp, Log};
use crate::ops::reduce::{all_dims, reduced_shape};
use crate::ops::shape::join::cat;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// The sum over some dimensions: sparse where dimensions with coordinates are left.
fn sum(x: &Tensor, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let parts = x.entries()?;
    let (lead, n) = (parts.lead(), x.ndim());
    let kept: SmallVec<[usize; 5]> = (0..lead).filter(|&d| !mask.has(d)).collect();
    let rest = DimSet::of(n - lead + 1, |d| d > 0 && mask.has(lead + d - 1))?;
    let shape = reduced_shape(x.shape(), mask, keepdim);
    let all = kept.is_empty() && lead > 0 || lead == 0 && (0..n).all(|d| mask.has(d));
    if all {
        let entries = DimSet::of(n - lead + 1, |d| d == 0 || rest.has(d))?;
        return parts
            .values
            .sum_mask(entries, false, dtype)?
            .reshape_to(&shape);
    }
    let values = match rest.is_empty() {
        false => parts.values.sum_mask(rest, keepdim, dtype)?,
        true => {
            let sums = parts.values.dtype().is_integral() || parts.values.dtype() == DType::Bool;
            let own = if sums {
                DType::I64
            } else {
                parts.values.dtype()
            };
            parts.values.to_dtype(dtype.unwrap_or(own))?
        }
    };
    if kept.len() == lead {
        return make(&shape, Parts { values, ..parts });
    }
    let row = |d: usize| match mask.has(d) {
        true => Tensor::zeros(&[1, parts.entries()], DType::I64, x.device()),
        false => parts.indices.narrow(0, d as i64, 1),
    };
    let dims: SmallVec<[usize; 5]> = (0..lead).filter(|&d| keepdim || !mask.has(d)).collect();
    let rows = dims.iter().map(|&d| row(d)).collect::<Result<Vec<_>>>()?;
    let indices = cat(&rows, 0)?;
    let coalesced = false;
    let y = make(
        &shape,
        Parts {
            indices,
            values,
            coalesced,
        },
    )?;
    y.coalesced()
}

fn put(mode: Mode, rows: &Tensor, values: &Tensor, at: &Tensor) -> Result<Tensor> {
    let op = IndexPut {
        dims: SmallVec::from_elem(0, 1),
        mode,
        bounds: Bounds::Select,
        repeats: Repeats::Refused,
        name: "SparseSoftmaxBackward0",
    };
    dispatch::call_into(op, &[rows, values, at], rows, true)
}

/// Softmax along a dimension, where what has no entry counts as minus infinity.
fn softmax(x: &Tensor, dim: i64, log: bool, dtype: Option<DType>) -> Result<Tensor> {
    let x = match dtype {
        Some(dtype) => x.to_dtype(dtype)?,
        None => x.clone(),
    };
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"softmax\" not implemented for '{}'; convert the tensor with .to(dtype)",
        x.dtype().scalar_name()
    );
    let d = shape::dim(dim, x.ndim())?;
    let x = x.list()?.coalesced()?;
    let lead = x.lead()?;
    if d >= lead {
        let along = DimSet::one(d - lead + 1, x.ndim() - lead + 1)?;
        return x.with_values(|v| {
            if v.numel() == 0 {
                return Ok(v.clone());
            }
            let v = v.sub(&v.detach().amax_mask(along, true)?)?;
            let e = apply(Exp, [&v])?;
            let sum = e.sum_mask(along, true, None)?;
            match log {
                true => v.sub(&apply(Log, [&sum])?),
                false => e.div(&sum),
            }
        });
    }
    // Entries that differ in this dimension alone are one line.
    let parts = x.sparse_parts()?;
    let others: Vec<Tensor> = (0..lead)
        .filter(|&k| k != d)
        .map(|k| parts.indices.narrow(0, k as i64, 1))
        .collect::<Result<_>>()?;
    let shape: Dims = (0..lead).filter(|&k| k != d).map(|k| x.size(k)).collect();
    let lines = match others.is_empty() {
        true => Tensor::zeros(&[0, parts.entries()], DType::I64, x.device())?,
        false => cat(&others, 0)?,
    };
    let (found, at) = places::distinct(&lines, &shape)?;
    let (count, at) = (found.size(1), at.to_device(x.device())?);
    x.with_values(|v| {
        let rows = super::coo::with_rows(count, &v.shape()[1..]);
        let least = Tensor::full(&rows, f64::NEG_INFINITY.into(), v.dtype(), v.device())?;
        let most = put(Mode::Max, &least, &v.detach(), &at)?;
        let v = v.sub(&most.index_select(0, &at)?)?;
        let e = apply(Exp, [&v])?;
        let zeros = Tensor::zeros(&rows, v.dtype(), v.device())?;
        let sums = put(Mode::Add, &zeros, &e, &at)?.index_select(0, &at)?;
        match log {
            true => v.sub(&apply(Log, [&sums])?),
            false => e.div(&sums),
        }
    })
}

/// Slices along one dimension, by number.
fn index_select(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let d = shape::dim(dim, x.ndim())?;
    ensure!(
        index.ndim() <= 1 && matches!(index.dtype(), DType::I64 | DType::I32),
        Index,
        "index_select(): Index is supposed to be a vector of int32 or int64, got {index:?}"
    );
    let parts = x.entries()?;
    let lead = parts.lead();
    let mut shape = x.shape().clone();
    shape[d] = index.numel();
    if d >= lead {
        let values = parts.values.index_select((d - lead + 1) as i64, index)?;
        return make(&shape, Parts { values, ..parts });
    }
    let (host, wanted) = (places::numbers(&parts.indices)?, places::numbers(index)?);
    // SAFETY: contiguous host memory of this type.
    let (host, wanted) = unsafe { (host.slice::<i64>(), wanted.slice::<i64>()) };
    let n = parts.entries();
    let row = host[d * n..(d + 1) * n].iter().enumerate();
    let mut by_number = alloc::gathered(row.map(|(e, &i)| (i, e as i64)));
    by_number.sort_unstable();
    let size = x.size(d) as i64;
    let (mut entries, mut at) = (Vec::new(), Vec::new());
    for (k, &i) in wanted.iter().enumerate() {
        if i < -size || i >= size {
            bail!(
                Index,
                "index_select(): index contains {i} that is out of range for tensor of size {} at \
                 dimension {d}",
                Show(x.shape())
            );
        }
        let i = if i < 0 { i + size } else { i };
        let start = by_number.partition_point(|&(own, _)| own < i);
        let own = by_number[start..].iter().take_while(|&&(own, _)| own == i);
        for &(_, e) in own {
            if entries.len() == entries.capacity() {
                let more = entries.len().max(by_number.len());
                alloc::reserve(&mut entries, more);
                alloc::reserve(&mut at, more);
            }
            entries.push(e);
            at.push(k as i64);
        }
    }
    let m = entries.len();
    let entries = Tensor::from_slice(&entries, &[m], DType::I64)?.to_device(x.device())?;
    let at = Tensor::from_slice(&at, &[1, m], DType::I64)?.to_device(x.device())?;
    let chosen = parts.indices.index_select(1, &entries)?;
    let rows: Vec<Tensor> = (0..lead)
        .map(|k| match k == d {
            true => Ok(at.clone()),
            false => chosen.narrow(0, k as i64, 1),
        })
        .collect::<Result<_>>()?;
    let (values, indices) = (parts.values.index_select(0, &entries)?, cat(&rows, 0)?);
    let coalesced = parts.coalesced && d == 0;
    make(
        &shape,
        Parts {
            indices,
            values,
            coalesced,
        },
    )
}

impl Tensor {
    /// One slice of a sparse tensor: dense where no dimension with coordinates is left.
    pub fn select_sparse(&self, dim: i64, index: i64) -> Result<Tensor> {
        let d = shape::dim(dim, self.ndim())?;
        // The layout checks the index.
        let size = self.layout().select(dim, index)?.shape;
        let i = if index < 0 {
            index + self.size(d) as i64
        } else {
            index
        };
        if self.form().is_packed() {
            return self.select_packed(d, i);
        }
        let parts = self.entries()?;
        let lead = parts.lead();
        if d >= lead {
            let values = parts.values.select((d - lead + 1) as i64, i)?;
            return make(&size, Parts { values, ..parts });
        }
        let host = places::numbers(&parts.indices.select(0, d as i64)?)?;
        // SAFETY: contiguous host memory of this type.
        let row = unsafe { host.slice::<i64>() };
        let mut own = alloc::room(row.len());
        own.extend((0..row.len()).filter(|&e| row[e] == i).map(|e| e as i64));
        let own = Tensor::from_slice(&own, &[own.len()], DType::I64)?.to_device(self.device())?;
        let values = parts.values.index_select(0, &own)?;
        if lead == 1 {
            return values.sum_mask(DimSet::one(0, values.ndim())?, false, Some(self.dtype()));
        }
        let chosen = parts.indices.index_select(1, &own)?;
        let before = chosen.narrow(0, 0, d as i64)?;
        let after = chosen.narrow(0, d as i64 + 1, (lead - d - 1) as i64)?;
        let indices = cat(&[before, after], 0)?;
        make(
            &size,
            Parts {
                indices,
                values,
                ..parts
            },
        )
    }
}

/// Sparse tensors one after the other along a dimension.
fn joined(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let first = &tensors[0];
    let d = shape::dim(dim, first.ndim())?;
    let all = tensors.iter().enumerate().map(|(i, t)| match t.is_sparse() {
        true => t.entries(),
        false => bail!(
            Runtime,
            "Concatenating sparse tensors, but a dense tensor was found at position {i}, of shape {}",
            Show(t.shape())
        ),
    });
    let all = all.collect::<Result<Vec<_>>>()?;
    let lead = all[0].lead();
    let mut size = first.shape().clone();
    size[d] = 0;
    for (i, (t, p)) in tensors.iter().zip(&all).enumerate() {
        let alike = t.ndim() == first.ndim();
        ensure!(
            alike && (0..t.ndim()).all(|k| k == d || t.size(k) == first.size(k)),
            Runtime,
            "All tensors must have the same shape: {} (except in the concatenating dimension), \
             but found shape: {} at position {i}.",
            Show(first.shape()),
            Show(t.shape())
        );
        ensure!(
            p.lead() == lead,
            Runtime,
            "All tensors must have the same sparse_dim and dense_dim: {lead}, {}, but tensor at \
             position {i} has {}, {}.",
            first.ndim() - lead,
            p.lead(),
            t.ndim() - p.lead()
        );
        size[d] += t.size(d);
    }
    let (mut indices, mut values, mut start) = (Vec::new(), Vec::new(), 0);
    for (t, p) in tensors.iter().zip(all) {
        let (mut own, mut v, n) = (p.indices, p.values, t.size(d));
        if d < lead {
            let offset = Tensor::zeros(&[lead, 1], DType::I64, t.device())?;
            offset
                .select(0, d as i64)?
                .write_scalar(Scalar::Int(start as i64))?;
            own = own.add(&offset)?;
        } else {
            let k = d - lead + 1;
            let zeros = |n: usize| {
                let mut shape = v.shape().clone();
                shape[k] = n;
                Tensor::zeros(&shape, v.dtype(), v.device())
            };
            v = cat(
                &[zeros(start)?, v.clone(), zeros(size[d] - start - n)?],
                k as i64,
            )?;
        }
        start += n;
        indices.push(own);
        values.push(v);
    }
    let (indices, values) = (cat(&indices, 1)?, cat(&values, 0)?);
    let coalesced = false;
    make(
        &size,
        Parts {
            indices,
            values,
            coalesced,
        },
    )
}

/// A norm of all elements, which what has no entry does not change.
fn norm<Sig: Signature>(a: &Args<Sig>, p: f64) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let dims = a.opt_ints(arg!(dim)).unwrap_or(&[]).iter();
    let dims = dims
        .map(|&d| shape::dim(d, x.ndim()))
        .collect::<Result<Dims>>()?;
    ensure!(
        !a.bool(arg!(keepdim))?,
        Runtime,
        "norm_sparse currently does not support keepdim=True, got {:?}",
        a.value(arg!(keepdim))
    );
    ensure!(
        dims.is_empty() || (0..x.ndim()).all(|d| dims.contains(&d)),
        Runtime,
        "norm_sparse currently only supports full reductions, so 'dim' must either be empty or \
         contain all dimensions of the input; got {:?}",
        a.value(arg!(dim))
    );
    ensure!(
        a.dtype(arg!(dtype)).is_none(),
        Runtime,
        "norm_sparse currently does not support 'dtype' argument, got {:?}",
        a.value(arg!(dtype))
    );
    let values = x.ordered_entries()?.values;
    give(a, values.vector_norm(p, all_dims(&values), false)?)
}

fn sum_args<Sig: Signature>(a: &Args<Sig>, mask: DimSet, keepdim: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let y = sum(x, mask, keepdim, a.dtype(arg!(dtype)))?;
    // Of a matrix by rows it is one, too, where it still is a matrix.
    let rows = x.form() == Form::Csr && keepdim && y.ndim() == 2;
    give(
        a,
        if rows {
            y.in_form(Form::Csr, None, 0)?
        } else {
            y
        },
    )
}

crate::entries! {
    "any(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| {
        let x = a.tensor(arg!(self))?.detach();
        let dtype = if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
        let any = x.ordered_entries()?.values.any_true()?;
        give(a, Tensor::full(&[], any.into(), dtype, x.device())?)
    };
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", FN | METHOD | ALSO,
    |a| sum_args(a, all_dims(a.tensor(arg!(self))?), false);
    "sum(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | ALSO,
    |a| sum_args(a, a.mask(arg!(dim), a.tensor(arg!(self))?)?, a.bool(arg!(keepdim))?);
    "norm(Tensor self, Scalar? p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | ALSO, |a| norm(a, a.opt_float(arg!(p)).unwrap_or(2.0));
    "norm(Tensor self, str p='fro', int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | ALSO,
    |a| match a.str(arg!(p))? {
        "fro" if a.dtype(arg!(dtype)).is_some() => {
            bail!(Value, "dtype argument is not supported in frobenius norm")
        }
        "fro" => norm(a, 2.0),
        other => bail!(Runtime, "norm: expected p to be 'fro' or a number of sparse tensors, got '{other}'"),
    };
    "cat(Tensor[] tensors, int dim=0) -> Tensor", FN | ALSO,
    |a| give(a, joined(a.tensors(arg!(tensors))?, a.int(arg!(dim))?)?);
    "stack(Tensor[] tensors, int dim=0) -> Tensor", FN | ALSO,
    |a| {
        let each = a.tensors(arg!(tensors))?.iter();
        let all = each.map(|t| match t.is_sparse() {
            true => t.unsqueeze_sparse(a.int(arg!(dim))?),
            false => Ok(t.clone()),
        });
        give(a, joined(&all.collect::<Result<Vec<_>>>()?, a.int(arg!(dim))?)?)
    };
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", FN | METHOD | ALSO,
    |a| give(a, index_select(a.tensor(arg!(self))?, a.int(arg!(dim))?, a.tensor(arg!(index))?)?);
    /// Softmax of a sparse tensor along a dimension, where what has no entry counts as minus infinity.
    "_sparse_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", FN | SPARSE,
    |a| Ok(softmax(a.tensor(arg!(self))?, a.int(arg!(dim))?, false, a.dtype(arg!(dtype)))?.into());
    /// The logarithm of [`_sparse_softmax`].
    "_sparse_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", FN | SPARSE,
    |a| Ok(softmax(a.tensor(arg!(self))?, a.int(arg!(dim))?, true, a.dtype(arg!(dtype)))?.into());
}

//! Places of the flattened tensor: `take`, `put`, `unravel_index`.

use super::{put, Bounds, Index, IndexPut, Mode};
use crate::alloc;
use crate::arg;
use crate::cpu::indices::Indices;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Metas, Repeats, TensorMeta};
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, host};
use smallvec::SmallVec;

pub(super) fn take(x: &Tensor, index: &Tensor) -> Result<Tensor> {
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

pub(super) fn put_into<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
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

/// Coordinates of flat positions (`unravel_index`).
pub(super) fn unravel<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
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

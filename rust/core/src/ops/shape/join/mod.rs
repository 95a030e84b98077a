//! Tensors put together, repeated, flipped and masked by triangles.

pub mod rearrange;

use super::view::parts::Assemble;
use crate::alloc;
use crate::arg;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{packed_strides, Layout, CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::schema::Value;
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// The type that all tensors convert to.
fn common(tensors: &[Tensor]) -> Result<DType> {
    let mut all = tensors.iter().map(|t| t.dtype());
    let first = all.next().unwrap_or(DType::F32);
    all.try_fold(first, DType::common)
}

/// `cat`: joins tensors along a dimension.
pub fn cat(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    ensure!(
        !tensors.is_empty(),
        Value,
        "torch.cat(): expected a non-empty list of Tensors"
    );
    for (i, t) in tensors.iter().enumerate() {
        ensure!(
            t.ndim() > 0,
            Runtime,
            "zero-dimensional tensor (at position {i}) cannot be concatenated"
        );
    }
    // Empty vectors of any kind have always been left out.
    let skipped = |t: &&Tensor| t.ndim() == 1 && t.numel() == 0;
    let first = tensors.iter().find(|t| !skipped(t)).unwrap_or(&tensors[0]);
    let n = first.ndim();
    let d = shape::dim(dim, n)?;
    let mut shape = first.shape().clone();
    let mut spans = Vec::with_capacity(tensors.len());
    let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::new();
    let mut total = 0usize;
    for (i, t) in tensors.iter().enumerate() {
        if skipped(&t) && !skipped(&first) {
            continue;
        }
        ensure!(
            t.ndim() == n,
            Runtime,
            "Tensors must have same number of dimensions: got {n} and {}",
            t.ndim()
        );
        for k in 0..n {
            ensure!(
                k == d || t.size(k) == shape[k],
                Runtime,
                "Sizes of tensors must match except in dimension {d}. Expected size {} but got \
                 size {} for tensor number {i} in the list.",
                shape[k],
                t.size(k)
            );
        }
        spans.push((total, t.size(d)));
        inputs.push(t);
        total = total.saturating_add(t.size(d));
    }
    shape[d] = total;
    shape::numel(&shape)?;
    let whole = Layout::contiguous(&shape);
    let parts = spans
        .into_iter()
        .map(|(start, size)| {
            whole.slice(d as i64, Some(start as i64), Some((start + size) as i64), 1)
        })
        .collect::<Result<_>>()?;
    let op = Assemble {
        name: "CatBackward0",
        shape,
        parts,
        dtype: common(tensors)?,
    };
    dispatch::call1(op, &inputs)
}

/// `stack`: joins tensors of one shape along a new dimension.
pub fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        bail!(Runtime, "stack expects a non-empty TensorList");
    };
    let d = shape::dim(dim, first.ndim() + 1)?;
    for (i, t) in tensors.iter().enumerate() {
        ensure!(
            t.shape() == first.shape(),
            Runtime,
            "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {i}",
            Show(first.shape()),
            Show(t.shape())
        );
    }
    let mut shape = first.shape().clone();
    shape.insert(d, tensors.len());
    shape::numel(&shape)?;
    let whole = Layout::contiguous(&shape);
    let parts = (0..tensors.len())
        .map(|i| whole.select(d as i64, i as i64))
        .collect::<Result<_>>()?;
    let inputs: SmallVec<[&Tensor; 4]> = tensors.iter().collect();
    let op = Assemble {
        name: "StackBackward0",
        shape,
        parts,
        dtype: common(tensors)?,
    };
    dispatch::call1(op, &inputs)
}

/// A stack, in the order of what `cat` would make of the tensors along the same dimension.
fn in_order_of(tensors: &[Tensor], y: Tensor, dim: i64) -> Result<Tensor> {
    let first = &tensors[0];
    let d = shape::dim(dim, y.ndim())?;
    let suggests = |t: &Tensor| t.layout().suggests_channels_last();
    if d == first.ndim() || !tensors.iter().all(suggests) {
        return Ok(y);
    }
    let mut joined = first.shape().clone();
    joined[d] *= tensors.len();
    let order: &[usize] = if first.ndim() == 4 {
        &CHANNELS_LAST
    } else {
        &CHANNELS_LAST_3D
    };
    let mut whole = Layout::contiguous(&joined);
    whole.strides = packed_strides(&joined, order);
    let Some(layout) = whole.reshape(y.shape()) else {
        return Ok(y);
    };
    y.with_strides(layout.strides)
}

/// With at least `n` dimensions, as NumPy adds them.
fn at_least(x: &Tensor, n: usize) -> Result<Tensor> {
    match (x.ndim(), n) {
        (k, n) if k >= n => Ok(x.clone()),
        (0, 1) => x.reshape(&[1]),
        (0, 2) => x.reshape(&[1, 1]),
        (0, _) => x.reshape(&[1, 1, 1]),
        (1, 2) => x.unsqueeze(0),
        (1, _) => x.unsqueeze(0)?.unsqueeze(2),
        _ => x.unsqueeze(2),
    }
}

fn all_at_least(tensors: &[Tensor], n: usize) -> Result<Vec<Tensor>> {
    tensors.iter().map(|t| at_least(t, n)).collect()
}

fn some(name: &str, tensors: &[Tensor]) -> Result<()> {
    ensure!(
        !tensors.is_empty(),
        Runtime,
        "{name} expects a non-empty TensorList"
    );
    Ok(())
}

fn hstack(tensors: &[Tensor]) -> Result<Tensor> {
    some("hstack", tensors)?;
    let all = all_at_least(tensors, 1)?;
    cat(&all, (all[0].ndim() > 1) as i64)
}

fn vstack(tensors: &[Tensor]) -> Result<Tensor> {
    some("vstack", tensors)?;
    cat(&all_at_least(tensors, 2)?, 0)
}

fn dstack(tensors: &[Tensor]) -> Result<Tensor> {
    some("dstack", tensors)?;
    cat(&all_at_least(tensors, 3)?, 2)
}

fn column_stack(tensors: &[Tensor]) -> Result<Tensor> {
    some("column_stack", tensors)?;
    let all = tensors
        .iter()
        .map(|t| {
            if t.ndim() <= 1 {
                t.reshape(&[t.numel() as i64, 1])
            } else {
                Ok(t.clone())
            }
        })
        .collect::<Result<Vec<_>>>()?;
    cat(&all, 1)
}

/// `meshgrid`: coordinates of a grid, one tensor for each axis.
fn meshgrid(tensors: &[Tensor], indexing: &str) -> Result<Vec<Tensor>> {
    ensure!(
        !tensors.is_empty(),
        Runtime,
        "meshgrid expects a non-empty TensorList"
    );
    let swap = match indexing {
        "ij" => false,
        "xy" => tensors.len() >= 2,
        other => bail!(
            Runtime,
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"
        ),
    };
    for t in tensors {
        ensure!(
            t.ndim() <= 1,
            Runtime,
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t:?}"
        );
        ensure!(
            t.dtype() == tensors[0].dtype(),
            Runtime,
            "meshgrid expects all tensors to have the same dtype, got {} and {}",
            tensors[0].dtype(),
            t.dtype()
        );
        ensure!(
            t.device() == tensors[0].device(),
            Runtime,
            "meshgrid expects all tensors to have the same device, got {} and {}",
            tensors[0].device(),
            t.device()
        );
    }
    let mut order: Vec<&Tensor> = tensors.iter().collect();
    if swap {
        order.swap(0, 1);
    }
    let shape: Dims = order.iter().map(|t| t.numel()).collect();
    shape::numel(&shape)?;
    let mut grids = order
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let mut column = Dims::from_elem(1, shape.len());
            column[i] = t.numel();
            t.reshape_to(&column)?.expand_to(&shape)
        })
        .collect::<Result<Vec<_>>>()?;
    if swap {
        grids.swap(0, 1);
    }
    Ok(grids)
}

fn cartesian_prod(tensors: &[Tensor]) -> Result<Tensor> {
    for t in tensors {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "Expect a 1D vector, but got shape {}",
            Show(t.shape())
        );
    }
    if let [only] = tensors {
        return Ok(only.clone());
    }
    let flat = meshgrid(tensors, "ij")?
        .iter()
        .map(|g| g.reshape(&[-1]))
        .collect::<Result<Vec<_>>>()?;
    stack(&flat, 1)
}

fn combinations(x: &Tensor, r: i64, repeated: bool) -> Result<Tensor> {
    ensure!(
        x.ndim() == 1,
        Runtime,
        "Expect a 1D vector, but got shape {}",
        Show(x.shape())
    );
    ensure!(r >= 0, Runtime, "Expect a non-negative number, but got {r}");
    if r == 0 {
        return Tensor::empty(&[0], x.dtype(), x.device());
    }
    let (n, r) = (x.numel() as i64, r as usize);
    if n == 0 || (!repeated && r as i64 > n) {
        let idx = Tensor::empty(&[0], DType::I64, x.device())?;
        return x.index_select(0, &idx)?.reshape(&[0, r as i64]);
    }
    // The binomial coefficient; what does not fit a float fits no memory.
    let more = if repeated { r as f64 - 1.0 } else { 0.0 };
    let pool = n as f64 + more;
    let few = (r as f64).min(pool - r as f64).max(0.0);
    let mut expected = 1.0f64;
    for i in 0..few as usize {
        expected *= (pool - i as f64) / (i as f64 + 1.0);
        if expected > 1e18 {
            break;
        }
    }
    alloc::check((expected * r as f64) as usize, size_of::<i64>())?;
    let mut rows: Vec<i64> = alloc::list((expected.round() as usize).saturating_mul(r))?;
    let mut at: Vec<i64> = match repeated {
        true => vec![0; r],
        false => (0..r as i64).collect(),
    };
    let top = |i: usize| if repeated { n - 1 } else { n - (r - i) as i64 };
    let mut count = 0usize;
    while n > 0 && at.iter().enumerate().all(|(i, &v)| v <= top(i)) {
        rows.extend_from_slice(&at);
        count += 1;
        let Some(i) = (0..r).rev().find(|&i| at[i] < top(i)) else {
            break;
        };
        at[i] += 1;
        for j in i + 1..r {
            at[j] = if repeated { at[i] } else { at[j - 1] + 1 };
        }
    }
    let idx = Tensor::from_slice(&rows, &[rows.len()], DType::I64)?.to_device(x.device())?;
    x.index_select(0, &idx)?.reshape(&[count as i64, r as i64])
}

fn block_diag(tensors: &[Tensor]) -> Result<Tensor> {
    let mut blocks = Vec::with_capacity(tensors.len());
    for (i, t) in tensors.iter().enumerate() {
        ensure!(
            t.ndim() <= 2,
            Runtime,
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {} \
             dimensions",
            t.ndim()
        );
        blocks.push(at_least(t, 2)?);
    }
    if blocks.is_empty() {
        return Tensor::empty(&[1, 0], DType::F32, crate::device::Device::Cpu);
    }
    let total = |d: usize| blocks.iter().map(|b| b.size(d)).sum::<usize>();
    let shape = Dims::from_slice(&[total(0), total(1)]);
    shape::numel(&shape)?;
    let whole = Layout::contiguous(&shape);
    let (mut row, mut col) = (0i64, 0i64);
    let mut parts = SmallVec::new();
    for b in &blocks {
        let (h, w) = (b.size(0) as i64, b.size(1) as i64);
        parts.push(whole.slice(0, Some(row), Some(row + h), 1)?.slice(
            1,
            Some(col),
            Some(col + w),
            1,
        )?);
        (row, col) = (row + h, col + w);
    }
    let inputs: SmallVec<[&Tensor; 4]> = blocks.iter().collect();
    let op = Assemble {
        name: "BlockDiagBackward0",
        shape,
        parts,
        dtype: common(&blocks)?,
    };
    dispatch::call1(op, &inputs)
}

crate::entries! {
    /// Tensors joined along a dimension.
    "cat(Tensor[] tensors, int dim=0) -> Tensor", FN | CASTS | FORMAT | SEPARATE,
    |a| Ok(cat(a.tensors(arg!(tensors))?, a.int(arg!(dim))?)?.into());
    /// Tensors joined along a dimension.
    "concat(Tensor[] tensors, int dim=0) -> Tensor", FN | CASTS | FORMAT | SEPARATE,
    |a| Ok(cat(a.tensors(arg!(tensors))?, a.int(arg!(dim))?)?.into());
    /// Tensors joined along a dimension.
    "concatenate(Tensor[] tensors, int dim=0) -> Tensor", FN | CASTS | FORMAT | SEPARATE,
    |a| Ok(cat(a.tensors(arg!(tensors))?, a.int(arg!(dim))?)?.into());
    /// Tensors of one shape joined along a new dimension.
    "stack(Tensor[] tensors, int dim=0) -> Tensor", FN | CASTS | SEPARATE,
    |a| {
        let (tensors, dim) = (a.tensors(arg!(tensors))?, a.int(arg!(dim))?);
        Ok(in_order_of(tensors, stack(tensors, dim)?, dim)?.into())
    };
    /// Tensors joined along columns.
    "hstack(Tensor[] tensors) -> Tensor", FN | CASTS | FORMAT | SEPARATE, |a| Ok(hstack(a.tensors(arg!(tensors))?)?.into());
    /// Tensors joined along rows.
    "vstack(Tensor[] tensors) -> Tensor", FN | CASTS | FORMAT | SEPARATE, |a| Ok(vstack(a.tensors(arg!(tensors))?)?.into());
    /// Tensors joined along rows.
    "row_stack(Tensor[] tensors) -> Tensor", FN | CASTS | FORMAT | SEPARATE, |a| Ok(vstack(a.tensors(arg!(tensors))?)?.into());
    /// Tensors joined along the third dimension.
    "dstack(Tensor[] tensors) -> Tensor", FN | CASTS | FORMAT | SEPARATE, |a| Ok(dstack(a.tensors(arg!(tensors))?)?.into());
    /// Vectors as columns of a matrix, joined with matrices.
    "column_stack(Tensor[] tensors) -> Tensor", FN | CASTS | SEPARATE,
    |a| Ok(column_stack(a.tensors(arg!(tensors))?)?.into());
    /// Coordinates of the grid that vectors span, one tensor for each.
    "meshgrid(Tensor[] tensors=[], *, str? indexing=None) -> Tensor[]", FN,
    |a| {
        if a.opt_str(arg!(indexing)).is_none() {
            crate::host::warn_once(
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing \
                 argument.",
            );
        }
        Ok(Value::Tensors(meshgrid(a.tensors(arg!(tensors))?, a.opt_str(arg!(indexing)).unwrap_or("ij"))?))
    };
    /// Every combination of one element of each vector.
    "cartesian_prod(Tensor[] tensors=[]) -> Tensor", FN,
    |a| Ok(cartesian_prod(a.tensors(arg!(tensors))?)?.into());
    /// Combinations of `r` elements of a vector.
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", FN,
    |a| Ok(combinations(a.tensor(arg!(self))?, a.int(arg!(r))?, a.bool(arg!(with_replacement))?)?.into());
    /// Matrices along the diagonal of a larger one.
    "block_diag(Tensor[] tensors=[]) -> Tensor", FN,
    |a| Ok(block_diag(a.tensors(arg!(tensors))?)?.into());
    /// With at least one dimension.
    "atleast_1d(Tensor self) -> Tensor", FN, |a| Ok(at_least(a.tensor(arg!(self))?, 1)?.into());
    "atleast_1d(Tensor[] tensors=[]) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(all_at_least(a.tensors(arg!(tensors))?, 1)?));
    /// With at least two dimensions.
    "atleast_2d(Tensor self) -> Tensor", FN, |a| Ok(at_least(a.tensor(arg!(self))?, 2)?.into());
    "atleast_2d(Tensor[] tensors=[]) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(all_at_least(a.tensors(arg!(tensors))?, 2)?));
    /// With at least three dimensions.
    "atleast_3d(Tensor self) -> Tensor", FN, |a| Ok(at_least(a.tensor(arg!(self))?, 3)?.into());
    "atleast_3d(Tensor[] tensors=[]) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(all_at_least(a.tensors(arg!(tensors))?, 3)?));
}

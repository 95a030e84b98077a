//! The order of dimensions, and parts of a sparse tensor along one.

use super::arithmetic::give;
use super::coo::{make, Parts};
use super::places;
use crate::alloc;
use crate::arg;
use crate::autograd::mode;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::ops::shape::join::cat;
use crate::schema::Value;
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use smallvec::SmallVec;

impl Tensor {
    /// The dimensions in another order, those with coordinates among themselves.
    pub fn permute_sparse(&self, dims: &[usize]) -> Result<Tensor> {
        if self.form().is_packed() {
            return self.permute_packed(dims);
        }
        let parts = self.entries()?;
        let lead = parts.lead();
        ensure!(
            dims[..lead].iter().all(|&d| d < lead),
            Runtime,
            "transpose(): can't transpose sparse and dense dimensions: of shape {} the first \
             {lead} have coordinates, got the order {dims:?}",
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

    /// Two dimensions in each other's place.
    pub fn transpose_sparse(&self, a: i64, b: i64) -> Result<Tensor> {
        let (a, b) = (shape::dim(a, self.ndim())?, shape::dim(b, self.ndim())?);
        let mut dims: SmallVec<[usize; 5]> = (0..self.ndim()).collect();
        dims.swap(a, b);
        self.permute_sparse(&dims)
    }

    /// A matrix transposed; vectors and numbers as they are.
    pub fn t_sparse(&self) -> Result<Tensor> {
        ensure!(
            self.ndim() <= 2,
            Runtime,
            "t() expects a tensor with <= 2 dimensions, but self is {}D",
            self.ndim()
        );
        match self.ndim() {
            2 => self.transpose_sparse(0, 1),
            _ => Ok(self.clone()),
        }
    }

    /// With a dimension of size 1 more.
    pub fn unsqueeze_sparse(&self, dim: i64) -> Result<Tensor> {
        let parts = self.entries()?;
        let (d, lead) = (shape::dim(dim, self.ndim() + 1)?, parts.lead());
        let mut size = self.shape().clone();
        size.insert(d, 1);
        if d > lead {
            let values = parts.values.unsqueeze((d - lead + 1) as i64)?;
            return make(&size, Parts { values, ..parts });
        }
        let row = Tensor::zeros(&[1, parts.entries()], DType::I64, self.device())?;
        let before = parts.indices.narrow(0, 0, d as i64)?;
        let after = parts.indices.narrow(0, d as i64, (lead - d) as i64)?;
        let indices = cat(&[before, row, after], 0)?;
        make(&size, Parts { indices, ..parts })
    }
}

/// Another order of dimensions in the tensor's place.
fn in_place(x: &Tensor, y: Tensor) -> Result<Value> {
    x.check_inplace(mode::grad() && x.requires_grad())?;
    Ok(x.replaced(&y).into())
}

/// The entries of `length` slices from `start` on.
fn narrow(x: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    ensure!(
        (0..x.ndim() as i64).contains(&dim),
        Runtime,
        "Dimension {dim} out of range. Expecting 0 <= dim < {}.",
        x.ndim()
    );
    let d = dim as usize;
    let size = x.size(d) as i64;
    ensure!(
        length >= 0,
        Runtime,
        "narrow(): length must be non-negative."
    );
    ensure!(
        start >= 0 && start.checked_add(length).is_some_and(|end| end <= size),
        Runtime,
        "Invalid range to narrow. range(start, start+length) must be a subset of range(0, \
         {size}); got start {start} and length {length}"
    );
    let x = x.list()?;
    let parts = x.entries()?;
    let lead = parts.lead();
    let mut shape = x.shape().clone();
    shape[d] = length as usize;
    if d >= lead {
        let values = parts.values.narrow((d - lead + 1) as i64, start, length)?;
        let values = values.copy_dense()?;
        return make(&shape, Parts { values, ..parts });
    }
    let host = places::numbers(&parts.indices.select(0, dim)?)?;
    // SAFETY: contiguous host memory of this type.
    let row = unsafe { host.slice::<i64>() };
    let mut own = alloc::room(row.len());
    let inside = |&e: &usize| (start..start + length).contains(&row[e]);
    own.extend((0..row.len()).filter(inside).map(|e| e as i64));
    let own = Tensor::from_slice(&own, &[own.len()], DType::I64)?.to_device(x.device())?;
    let chosen = parts.indices.index_select(1, &own)?;
    let mut rows = (0..lead)
        .map(|k| chosen.narrow(0, k as i64, 1))
        .collect::<Result<Vec<_>>>()?;
    rows[d] = rows[d].sub(&Tensor::constant(start, DType::I64)?)?;
    make(
        &shape,
        Parts {
            indices: cat(&rows, 0)?,
            values: parts.values.index_select(0, &own)?,
            ..parts
        },
    )
}

fn unbind(x: &Tensor, dim: i64) -> Result<Value> {
    let d = shape::dim(dim, x.ndim())?;
    let each = (0..x.size(d) as i64).map(|i| x.select(d as i64, i));
    Ok(Value::Tensors(each.collect::<Result<_>>()?))
}

crate::entries! {
    "permute(Tensor self, int[] dims) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.permute(a.ints(arg!(dims))?)?.into());
    "transpose(Tensor self, int dim0, int dim1) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?.into());
    "swapdims(Tensor self, int dim0, int dim1) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?.into());
    "swapaxes(Tensor self, int axis0, int axis1) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(axis0))?, a.int(arg!(axis1))?)?.into());
    "t(Tensor self) -> Tensor", FN | METHOD | ALSO, |a| Ok(a.tensor(arg!(self))?.t_sparse()?.into());
    "transpose_(Tensor self, int dim0, int dim1) -> Tensor", METHOD | ALSO,
    |a| in_place(a.tensor(arg!(self))?, a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?);
    "swapdims_(Tensor self, int dim0, int dim1) -> Tensor", METHOD | ALSO,
    |a| in_place(a.tensor(arg!(self))?, a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?);
    "swapaxes_(Tensor self, int axis0, int axis1) -> Tensor", METHOD | ALSO,
    |a| in_place(a.tensor(arg!(self))?, a.tensor(arg!(self))?.transpose_sparse(a.int(arg!(axis0))?, a.int(arg!(axis1))?)?);
    "t_(Tensor self) -> Tensor", METHOD | ALSO, |a| in_place(a.tensor(arg!(self))?, a.tensor(arg!(self))?.t_sparse()?);
    "select(Tensor self, int dim, int index) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.select(a.int(arg!(dim))?, a.int(arg!(index))?)?.into());
    "select_copy(Tensor self, int dim, int index) -> Tensor", FN | OUT | ALSO,
    |a| give(a, a.tensor(arg!(self))?.select(a.int(arg!(dim))?, a.int(arg!(index))?)?.copy_dense()?);
    "unsqueeze(Tensor self, int dim) -> Tensor", FN | METHOD | ALSO,
    |a| Ok(a.tensor(arg!(self))?.unsqueeze_sparse(a.int(arg!(dim))?)?.into());
    "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| give(a, narrow(a.tensor(arg!(self))?, a.int(arg!(dim))?, a.int(arg!(start))?, a.int(arg!(length))?)?);
    "unbind(Tensor self, int dim=0) -> Tensor[]", FN | METHOD | ALSO,
    |a| unbind(a.tensor(arg!(self))?, a.int(arg!(dim))?);
}

//! Index arguments made ready, and the methods of tensors that take them.

use super::{check_values, mask, Bounds, Index, IndexPut, Mode};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::Repeats;
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Index arguments made ready: the dimensions they index, and tensors of int64 of one shape.
pub struct Ready {
    pub dims: SmallVec<[usize; 4]>,
    pub idx: Vec<Tensor>,
}

/// Turns masks into indices, checks types and broadcasts. Masks on meta may be given a `count` of
/// what they select.
pub fn ready(x: &Tensor, indices: &[Option<Tensor>], count: Option<usize>) -> Result<Ready> {
    let mut dims: SmallVec<[usize; 4]> = SmallVec::new();
    let mut idx: Vec<Tensor> = Vec::new();
    let mut d = 0;
    for index in indices {
        let Some(t) = index else {
            d += 1;
            continue;
        };
        match t.dtype() {
            DType::Bool | DType::U8 => {
                for (i, &n) in t.shape().iter().enumerate() {
                    ensure!(
                        d + i < x.ndim() && x.size(d + i) == n,
                        Index,
                        "The shape of the mask {} at index {i} does not match the shape of the \
                         indexed tensor {} at index {}",
                        Show(t.shape()),
                        Show(x.shape()),
                        d + i
                    );
                }
                let columns = match count {
                    Some(n) if !t.has_data() => mask::unknown_columns(t, n)?,
                    _ => mask::nonzero_columns(t)?,
                };
                for (i, column) in columns.into_iter().enumerate() {
                    dims.push(d + i);
                    idx.push(column);
                }
                d += t.ndim();
            }
            DType::I64 | DType::I32 => {
                dims.push(d);
                idx.push(t.detach());
                d += 1;
            }
            _ => bail!(
                Index,
                "tensors used as indices must be long, int, byte or bool tensors"
            ),
        }
    }
    ensure!(
        d <= x.ndim() || indices.iter().skip(x.ndim()).all(Option::is_none),
        Index,
        "too many indices for tensor of dimension {} (got {d})",
        x.ndim()
    );
    ensure!(
        dims.len() <= 60,
        Index,
        "index: at most 60 index tensors, got {}",
        dims.len()
    );
    let mut shape = Dims::new();
    for t in &idx {
        shape = match shape::broadcast(&shape, t.shape()) {
            Ok(s) => s,
            Err(_) => {
                let shapes: Vec<String> = idx.iter().map(|t| Show(t.shape()).to_string()).collect();
                bail!(
                    Index,
                    "shape mismatch: indexing tensors could not be broadcast together with shapes \
                     {}",
                    shapes.join(", ")
                )
            }
        };
    }
    for (t, &d) in idx.iter_mut().zip(&dims) {
        if *t.shape() != shape {
            *t = t.alias(t.layout().expand_to(&shape));
        }
        if t.device() != x.device() {
            if t.device() == Device::Cpu {
                known(t, d, x.size(d))?;
            }
            *t = t.to_device(x.device())?;
        }
    }
    Ok(Ready { dims, idx })
}

/// An error where an index that the host knows is out of range: a kernel tells at the next read.
fn known(index: &Tensor, d: usize, n: usize) -> Result<()> {
    let index = index.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type, only read here.
    let index = unsafe { index.slice::<i64>() };
    match index.iter().find(|&&i| i < -(n as i64) || i >= n as i64) {
        Some(&i) => Err(Bounds::Wrap.error(i, d, n)),
        None => Ok(()),
    }
}

impl Tensor {
    /// `x[indices]` for index tensors and masks, by dimension.
    pub fn index(&self, indices: &[Option<Tensor>]) -> Result<Tensor> {
        if let [Some(m), rest @ ..] = indices {
            let whole = m.dtype() == DType::Bool && m.ndim() > 0 && m.shape() == self.shape();
            let alone = rest.iter().all(Option::is_none) && m.device() == self.device();
            if whole && alone && mask::is_plain(self) {
                return mask::compressed(self, m);
            }
        }
        let r = ready(self, indices, None)?;
        if r.idx.is_empty() {
            return self.copy_dense();
        }
        self.index_ready(r, "IndexBackward0", Bounds::Wrap)
    }

    pub(crate) fn index_ready(
        &self,
        r: Ready,
        name: &'static str,
        bounds: Bounds,
    ) -> Result<Tensor> {
        let mut all: SmallVec<[&Tensor; 6]> = SmallVec::from_elem(self, 1);
        all.extend(&r.idx);
        dispatch::call1(
            Index {
                dims: r.dims,
                bounds,
                name,
            },
            &all,
        )
    }

    /// `x[indices] = values` in place, or `+=` where `accumulate`.
    pub fn index_put_(
        &self,
        indices: &[Option<Tensor>],
        values: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
        let given: SmallVec<[&Tensor; 4]> = indices.iter().flatten().collect();
        let lead = indices.iter().take_while(|i| i.is_none()).count();
        if let ([m], false, 1) = (&given[..], accumulate, values.numel()) {
            let fits = lead + m.ndim() <= self.ndim()
                && m.shape()[..] == self.shape()[lead..lead + m.ndim()];
            if m.dtype() == DType::Bool && fits && m.ndim() > 0 {
                let mut l = m.layout().clone();
                for _ in lead + m.ndim()..self.ndim() {
                    l.shape.push(1);
                    l.strides.push(0);
                }
                // As there, the one value has any shape, and a type that `self` can hold.
                let value = values.reshape(&[])?;
                let value = match value.dtype() != self.dtype() && value.device() == Device::Cpu {
                    true => mask::fitting(self, &value)?,
                    false => value,
                };
                return mask::masked_fill_(self, &m.alias(l), &value);
            }
        }
        // As many as the values are for, of the dimensions behind those that are indexed.
        let behind = given
            .iter()
            .fold(self.ndim() - lead.min(self.ndim()), |n, t| {
                n.saturating_sub(match t.dtype() {
                    DType::Bool | DType::U8 => t.ndim(),
                    _ => 1,
                })
            });
        let place = values.ndim().checked_sub(behind + 1);
        let count = place.map_or(1, |d| values.size(d));
        let r = ready(self, indices, Some(count))?;
        if r.idx.is_empty() {
            return match accumulate {
                true => self.add_into(values),
                false => self.copy_from(values),
            };
        }
        // PyTorch looks at the shapes before the types.
        check_values(self.layout(), &r.dims, r.idx[0].shape(), values.shape())?;
        ensure!(
            values.dtype() == self.dtype() || values.is_wrapped(),
            Runtime,
            "Index put requires the source and destination dtypes match, got {} for the \
             destination and {} for the source.",
            self.dtype().scalar_name(),
            values.dtype().scalar_name()
        );
        let copy = if values.shares_storage(self) {
            Some(values.copy_dense()?)
        } else {
            None
        };
        let values = copy.as_ref().unwrap_or(values);
        // Sums would have to meet in one place.
        let (mode, repeats) = match accumulate {
            true => (Mode::Add, Repeats::Refused),
            false => (Mode::Set, Repeats::Changes),
        };
        let op = IndexPut {
            dims: r.dims,
            mode,
            bounds: Bounds::Wrap,
            repeats,
            name: "IndexPutBackward0",
        };
        dispatch::call_into(op, &IndexPut::inputs(self, values, &r.idx), self, true)?;
        Ok(())
    }

    /// `index_select`: rows of one dimension.
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let d = shape::dim(dim, self.ndim())?;
        ensure!(
            index.ndim() <= 1,
            Index,
            "index_select(): Index is supposed to be a vector, but got dim: {}",
            index.ndim()
        );
        ensure!(
            matches!(index.dtype(), DType::I64 | DType::I32),
            Runtime,
            "index_select(): Expected dtype int32 or int64 for index but got: {}",
            index.dtype().scalar_name()
        );
        if self.ndim() == 0 {
            ensure!(
                index.numel() == 1,
                Runtime,
                "index_select(): Index to scalar can have only 1 value, got {} value(s)",
                index.numel()
            );
            return self.reshape(&[1])?.index_select(0, index)?.reshape(&[]);
        }
        let index = if index.ndim() == 0 {
            index.reshape(&[1])?
        } else {
            index.clone()
        };
        let op = Index {
            dims: SmallVec::from_elem(d, 1),
            bounds: Bounds::Select,
            name: "IndexSelectBackward0",
        };
        dispatch::call1(op, &[self, &index])
    }
}

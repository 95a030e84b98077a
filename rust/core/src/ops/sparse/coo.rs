//! What stands for the elements of a sparse tensor, and the ways between it and dense tensors.

use super::places;
use crate::autograd::{inplace, mode, Vjp};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{one, Derivative, Grads, Mask, Save};
use crate::ops::index::mask::nonzero;
use crate::ops::sort::unique::sort::unique;
use crate::shape::{numel, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a sparse tensor is made of. It changes under the lock, for all that share it at once.
struct Coordinates {
    parts: Mutex<Parts>,
    /// Whether it is shown as a matrix by rows (`torch.sparse_csr`); then it is coalesced.
    rows: AtomicBool,
}

#[derive(Clone)]
pub struct Parts {
    /// A coordinate for each entry, of shape (sparse dimensions, entries), int64.
    pub indices: Tensor,
    /// The entries, of shape (entries, dense dimensions...).
    pub values: Tensor,
    /// Whether coordinates are in row-major order and none occurs twice.
    pub coalesced: bool,
}

impl Parts {
    /// How many dimensions have coordinates.
    pub fn lead(&self) -> usize {
        self.indices.size(0)
    }

    pub fn entries(&self) -> usize {
        self.indices.size(1)
    }
}

/// The sparse tensor of `parts`. Gradients flow to their values.
pub fn make(shape: &[usize], parts: Parts) -> Result<Tensor> {
    let (indices, values) = (parts.indices.clone(), parts.values.clone());
    let held = Parts {
        indices: indices.detach(),
        values: values.detach(),
        ..parts
    };
    let (dtype, device) = (values.dtype(), values.device());
    let held = Coordinates {
        parts: Mutex::new(held),
        rows: AtomicBool::new(false),
    };
    let y = Tensor::holding(shape, dtype, device, held)?;
    dispatch::record(Make, &[&indices, &values], std::slice::from_ref(&y))?;
    Ok(y)
}

/// Of indices and values a sparse tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Make;

impl Derivative for Make {
    fn name(&self) -> &'static str {
        "SparseCooTensorWithDimsAndTensorsBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let values = values_at(g, &cx.input(0)?)?;
        Ok(Grads::from_iter([None, Some(values)]))
    }
}

/// Of a sparse tensor its values; the second input are its indices. Where a coordinate occurs more
/// than once, what is made of the values must depend on their sum alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Values {
    coalesced: bool,
    rows: bool,
}

impl Derivative for Values {
    fn name(&self) -> &'static str {
        "ValuesBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (shape, indices) = (&cx.input_meta(0)?.shape, cx.input(1)?);
        let (mut indices, mut values) = (indices, g.clone());
        if !self.coalesced {
            // Entries of one coordinate have one gradient: that of their sum.
            let first = places::firsts(&indices, shape)?.to_device(g.device())?;
            indices = indices.index_select(1, &first)?;
            values = values.index_select(0, &first)?;
        }
        let coalesced = true;
        let y = make(
            shape,
            Parts {
                indices,
                values,
                coalesced,
            },
        )?;
        one(y.shown_by_rows(self.rows))
    }
}

/// Of a sparse tensor a dense one, as if it had an entry for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unmasked {
    lead: usize,
}

impl Derivative for Unmasked {
    fn name(&self) -> &'static str {
        "ToDenseBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        match &g[0] {
            Some(g) if !g.is_sparse() => one(g.to_sparse(self.lead)?),
            other => Ok(Grads::from_elem(other.clone(), 1)),
        }
    }
}

/// The values that `g`, sparse or dense, has at coordinates; zeros where it has none.
pub fn values_at(g: &Tensor, indices: &Tensor) -> Result<Tensor> {
    let lead = indices.size(0);
    if !g.is_sparse() {
        let (rows, rest) = rows_of(g.shape(), lead)?;
        let at = places::places(indices, &g.shape()[..lead])?.to_device(g.device())?;
        return g.reshape_to(&with_rows(rows, rest))?.index_select(0, &at);
    }
    let own = g.sparse_parts()?;
    if own.lead() != lead {
        return values_at(&g.to_dense()?, indices);
    }
    let same = own.indices.shares_storage(indices) && own.indices.layout() == indices.layout();
    if same && own.coalesced {
        return Ok(g.entries()?.values);
    }
    let own = g.coalesced()?.entries()?;
    let (found, at) = places::found(&own.indices, indices, &g.shape()[..lead])?;
    let (found, at) = (found.to_device(g.device())?, at.to_device(g.device())?);
    let values = own.values.index_select(0, &found)?;
    places::put_rows(indices.size(1), &at, &values, true, "SparseMaskBackward0")
}

/// A sparse tensor of rows by their numbers, without those of row `skip`.
pub fn of_rows(shape: &[usize], at: &Tensor, rows: &Tensor, skip: Option<i64>) -> Result<Tensor> {
    let n = at.numel();
    let mut indices = at.to_dtype(DType::I64)?.reshape(&[1, -1])?.copy_dense()?;
    let mut values = rows.reshape_to(&with_rows(n, &shape[1..]))?;
    if let Some(skip) = skip {
        let kept = places::others(&indices, skip)?;
        if kept.numel() < n {
            let kept = kept.to_device(rows.device())?;
            indices = indices.index_select(1, &kept)?;
            values = values.index_select(0, &kept)?;
        }
    }
    let coalesced = false;
    make(
        shape,
        Parts {
            indices,
            values,
            coalesced,
        },
    )
}

/// How many coordinates there are, and the dimensions of each value.
pub fn rows_of(shape: &[usize], lead: usize) -> Result<(usize, &[usize])> {
    Ok((numel(&shape[..lead])?, &shape[lead..]))
}

pub fn with_rows(rows: usize, rest: &[usize]) -> Dims {
    std::iter::once(rows).chain(rest.iter().copied()).collect()
}

/// Refuses a tensor that is not sparse.
fn coordinates<'a>(x: &'a Tensor, name: &str) -> Result<&'a Coordinates> {
    match x.held::<Coordinates>() {
        Some(held) => Ok(held),
        None => bail!(
            Runtime,
            "{name} expected a sparse tensor (layout torch.sparse_coo), got a dense one of shape \
             {}; make one with to_sparse()",
            Show(x.shape())
        ),
    }
}

impl Tensor {
    /// What a sparse tensor is made of now, outside of any graph.
    pub fn sparse_parts(&self) -> Result<Parts> {
        Ok(coordinates(self, "a sparse operation")?
            .parts
            .lock()
            .clone())
    }

    /// [`Tensor::sparse_parts`] with values that gradients flow through. Where a coordinate occurs more
    /// than once, what is made of them must depend on their sum alone.
    pub fn entries(&self) -> Result<Parts> {
        let mut parts = self.sparse_parts()?;
        parts.values = parts.values.detach();
        let op = Values {
            coalesced: parts.coalesced,
            rows: self.is_by_rows(),
        };
        let inputs = [self, &parts.indices];
        dispatch::record(op, &inputs, std::slice::from_ref(&parts.values))?;
        Ok(parts)
    }

    /// The same coordinates with what `f` makes of their values.
    pub fn with_values(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let parts = self.entries()?;
        let values = f(&parts.values)?;
        let indices = parts.indices.to_device(values.device())?;
        let y = make(
            self.shape(),
            Parts {
                indices,
                values,
                ..parts
            },
        )?;
        Ok(y.shown_by_rows(self.is_by_rows()))
    }

    /// Whether this is a sparse matrix that is shown by rows (`torch.sparse_csr`).
    pub fn is_by_rows(&self) -> bool {
        self.held::<Coordinates>()
            .is_some_and(|held| held.rows.load(Ordering::Relaxed))
    }

    fn shown_by_rows(self, rows: bool) -> Tensor {
        if let (true, Some(held)) = (rows, self.held::<Coordinates>()) {
            held.rows.store(true, Ordering::Relaxed);
        }
        self
    }

    /// The same sparse matrix by rows, or, without `rows`, as coordinates.
    pub fn by_rows(&self, rows: bool) -> Result<Tensor> {
        if self.is_by_rows() == rows {
            return Ok(self.clone());
        }
        let y = self.coalesced()?;
        ensure!(
            !rows || (y.ndim() == 2 && y.sparse_parts()?.lead() == 2),
            Runtime,
            "a sparse tensor by rows is a matrix with coordinates in both dimensions here, got shape \
             {}",
            Show(self.shape())
        );
        let y = make(self.shape(), y.entries()?)?;
        Ok(y.shown_by_rows(rows))
    }

    /// A copy with its own coordinates and values.
    pub fn copy_sparse(&self) -> Result<Tensor> {
        let parts = self.entries()?;
        let (indices, values) = (parts.indices.copy_dense()?, parts.values.copy_dense()?);
        let y = make(
            self.shape(),
            Parts {
                indices,
                values,
                ..parts
            },
        )?;
        Ok(y.shown_by_rows(self.is_by_rows()))
    }

    /// Each coordinate once, in order, with the sum of its values; itself where it is so.
    pub fn coalesced(&self) -> Result<Tensor> {
        let held = self.sparse_parts()?;
        if held.coalesced {
            return Ok(self.clone());
        }
        let parts = self.entries()?;
        let (indices, at) = places::distinct(&held.indices, self.shape())?;
        let (count, home) = (indices.size(1), self.device());
        let at = at.to_device(home)?;
        let values = match count == held.entries() {
            true => {
                let order = places::inverse(&at)?.to_device(home)?;
                parts.values.index_select(0, &order)?
            }
            false => places::put_rows(count, &at, &parts.values, false, "CoalesceBackward0")?,
        };
        let (indices, coalesced) = (indices.to_device(home)?, true);
        make(
            self.shape(),
            Parts {
                indices,
                values,
                coalesced,
            },
        )
    }

    /// The elements in memory, zeros where there is no entry.
    pub fn to_dense(&self) -> Result<Tensor> {
        if !self.is_sparse() {
            return Ok(self.clone());
        }
        let parts = self.entries()?;
        let (rows, _) = rows_of(self.shape(), parts.lead())?;
        let at = places::places(&parts.indices, &self.shape()[..parts.lead()])?;
        let at = at.to_device(self.device())?;
        let y = places::put_rows(
            rows,
            &at,
            &parts.values,
            parts.coalesced,
            "ToDenseBackward0",
        )?;
        y.reshape_to(self.shape())
    }

    /// As [`Tensor::to_dense`], of which a gradient has coordinates wherever it is not zero.
    pub fn to_dense_unmasked(&self) -> Result<Tensor> {
        if !self.is_sparse() {
            return Ok(self.clone());
        }
        let y = self.detach().to_dense()?;
        let lead = self.sparse_parts()?.lead();
        dispatch::record(Unmasked { lead }, &[self], std::slice::from_ref(&y))?;
        Ok(y)
    }

    /// The elements that are not zero, with coordinates in the first `lead` dimensions.
    pub fn to_sparse(&self, lead: usize) -> Result<Tensor> {
        let (rows, rest) = rows_of(self.shape(), lead)?;
        let flat = self.reshape_to(&with_rows(rows, rest))?;
        let lines = flat.detach().reshape_to(&[rows, numel(rest)?])?;
        let [at, ..] = unique(&nonzero(&lines)?.select(1, 0)?, false, false)?;
        let values = flat.index_select(0, &at)?;
        let indices = places::coordinates(&at, &self.shape()[..lead])?.to_device(self.device())?;
        let coalesced = true;
        make(
            self.shape(),
            Parts {
                indices,
                values,
                coalesced,
            },
        )
    }

    /// Makes this sparse tensor what `new` is, for all that share it; gives another one in its place
    /// where the shape changes.
    pub fn become_sparse(&self, new: &Tensor) -> Result<Tensor> {
        inplace::check(self, mode::grad() && new.requires_grad())?;
        ensure!(
            new.dtype().can_cast(self.dtype()),
            Runtime,
            "result type {} can't be cast to the desired output type {}",
            new.dtype().scalar_name(),
            self.dtype().scalar_name()
        );
        let new = new.to_dtype(self.dtype())?;
        if new.shape() != self.shape() {
            return Ok(self.replaced(&new));
        }
        let parts = new.sparse_parts()?;
        let old = std::mem::replace(&mut *coordinates(self, "copy_")?.parts.lock(), parts);
        drop(old);
        self.bump_version();
        match new.grad_fn()? {
            Some(edge) => self.set_edge(edge),
            // Nothing of what it was is left.
            None if mode::grad() => self.detach_in_place(),
            None => {}
        }
        Ok(self.clone())
    }

    /// Says of a sparse tensor that its coordinates are in order, each once.
    pub fn set_coalesced(&self, coalesced: bool) -> Result<()> {
        coordinates(self, "_coalesced_")?.parts.lock().coalesced = coalesced;
        Ok(())
    }
}

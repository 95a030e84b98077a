//! What stands for the elements of a sparse tensor, and the ways between it and dense tensors.

use super::packed::{self, Packed};
use super::places;
use crate::autograd::{inplace, mode, Vjp};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::Form;
use crate::op::{one, Derivative, Grads, Mask, Save};
use crate::ops::index::mask::nonzero;
use crate::ops::sort::unique::sort::unique;
use crate::shape::{numel, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use parking_lot::Mutex;

/// What a sparse tensor is made of. It changes under the lock, for all that share it at once.
struct Coordinates(Mutex<Held>);

/// A list of coordinates, or, in a compressed layout, lines of a matrix.
#[derive(Clone)]
pub enum Held {
    List(Parts),
    Lines(Packed),
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
    let y = hold(shape, &values, Form::Coo, Held::List(held))?;
    dispatch::record(Make, &[&indices, &values], std::slice::from_ref(&y))?;
    Ok(y)
}

/// The tensor for whose elements `held`, with these values, stands.
pub(super) fn hold(shape: &[usize], values: &Tensor, form: Form, held: Held) -> Result<Tensor> {
    let (dtype, device) = (values.dtype(), values.device());
    Tensor::holding(shape, dtype, device, form, Coordinates(Mutex::new(held)))
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
        one(make(
            shape,
            Parts {
                indices,
                values,
                coalesced,
            },
        )?)
    }
}

/// Of a sparse tensor a dense one, as if it had an entry for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unmasked {
    form: Form,
    block: Option<[usize; 2]>,
    lead: usize,
}

impl Derivative for Unmasked {
    fn name(&self) -> &'static str {
        "ToDenseBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        match &g[0] {
            Some(g) if !g.is_sparse() => {
                one(g.in_form(self.form, self.block, g.ndim() - self.lead)?)
            }
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
    if g.lead()? != lead {
        return values_at(&g.to_dense()?, indices);
    }
    let g = &g.list()?;
    let own = g.sparse_parts()?;
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
            "{name} expected a sparse tensor (such as of layout torch.sparse_coo), got a dense \
             one of shape {}; make one with to_sparse()",
            Show(x.shape())
        ),
    }
}

impl Tensor {
    /// What stands for its elements now, outside of any graph.
    pub(super) fn held_now(&self) -> Result<Held> {
        Ok(coordinates(self, "a sparse operation")?.0.lock().clone())
    }

    /// How many dimensions have coordinates.
    pub fn lead(&self) -> Result<usize> {
        Ok(match self.held_now()? {
            Held::List(parts) => parts.lead(),
            Held::Lines(lines) => lines.starts.ndim() + 1,
        })
    }

    /// The list of a sparse tensor's entries, outside of any graph.
    pub fn sparse_parts(&self) -> Result<Parts> {
        match self.held_now()? {
            Held::List(parts) => Ok(parts),
            Held::Lines(lines) => lines.list(self.form()),
        }
    }

    /// [`Tensor::sparse_parts`] with values that gradients flow through. Where a coordinate occurs more
    /// than once, what is made of them must depend on their sum alone.
    pub fn entries(&self) -> Result<Parts> {
        let mut parts = match self.held_now()? {
            Held::List(parts) => parts,
            Held::Lines(_) => return self.lines()?.list(self.form()),
        };
        parts.values = parts.values.detach();
        let op = Values {
            coalesced: parts.coalesced,
        };
        let inputs = [self, &parts.indices];
        dispatch::record(op, &inputs, std::slice::from_ref(&parts.values))?;
        Ok(parts)
    }

    /// [`Tensor::entries`] in row-major order, each coordinate once.
    pub fn ordered_entries(&self) -> Result<Parts> {
        self.list()?.coalesced()?.entries()
    }

    /// The same sparse tensor as a list of coordinates (`torch.sparse_coo`).
    pub fn list(&self) -> Result<Tensor> {
        match self.form() {
            Form::Coo => Ok(self.clone()),
            _ => make(self.shape(), self.entries()?),
        }
    }

    /// The same coordinates with what `f` makes of their values.
    pub fn with_values(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        if self.form().is_packed() {
            let lines = self.lines()?;
            let values = f(&lines.values)?;
            let device = values.device();
            let (starts, plain) = (
                lines.starts.to_device(device)?,
                lines.plain.to_device(device)?,
            );
            let lines = Packed {
                starts,
                plain,
                values,
            };
            return packed::make(self.shape(), self.form(), lines);
        }
        let parts = self.entries()?;
        let values = f(&parts.values)?;
        let indices = parts.indices.to_device(values.device())?;
        make(
            self.shape(),
            Parts {
                indices,
                values,
                ..parts
            },
        )
    }

    /// A copy with its own coordinates and values.
    pub fn copy_sparse(&self) -> Result<Tensor> {
        if self.form().is_packed() {
            let lines = self.lines()?;
            let lines = Packed {
                starts: lines.starts.copy_dense()?,
                plain: lines.plain.copy_dense()?,
                values: lines.values.copy_dense()?,
            };
            return packed::make(self.shape(), self.form(), lines);
        }
        let parts = self.entries()?;
        let (indices, values) = (parts.indices.copy_dense()?, parts.values.copy_dense()?);
        make(
            self.shape(),
            Parts {
                indices,
                values,
                ..parts
            },
        )
    }

    /// Each coordinate once, in order, with the sum of its values; itself where it is so.
    pub fn coalesced(&self) -> Result<Tensor> {
        let Held::List(held) = self.held_now()? else {
            return Ok(self.clone());
        };
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
        if self.form().is_packed() {
            return self.lines()?.dense(self.form(), self.shape());
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
        let op = Unmasked {
            form: self.form(),
            block: self.block()?,
            lead: self.lead()?,
        };
        dispatch::record(op, &[self], std::slice::from_ref(&y))?;
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
            "Can't convert result type {0} to output {1}: result type {0} can't be cast to the \
             desired output type {1}",
            new.dtype().scalar_name(),
            self.dtype().scalar_name()
        );
        let new = new.to_dtype(self.dtype())?;
        if new.shape() != self.shape() {
            return Ok(self.replaced(&new));
        }
        let new = new.like_form(self)?;
        let held = new.held_now()?;
        let old = std::mem::replace(&mut *coordinates(self, "copy_")?.0.lock(), held);
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
        if let Held::List(parts) = &mut *coordinates(self, "_coalesced_")?.0.lock() {
            parts.coalesced = coalesced;
        }
        Ok(())
    }
}

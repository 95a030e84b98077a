//! Views, and their nodes.

use super::apply::{apply, Kind, Request};
use super::record::attach;
use super::{needs, refuse_sparse};
use crate::autograd::mode;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Tensors};
use crate::tensor::{Creation, Tensor};
use std::slice;

/// A view of `x` under `layout`; `op` says how gradients pass.
pub fn view<D: Derivative>(op: D, x: &Tensor, layout: Layout) -> Result<Tensor> {
    view_with(x, layout, || Ok(op))
}

/// [`view`] for an op that is made only where it is recorded.
pub fn view_with<D: Derivative>(
    x: &Tensor,
    layout: Layout,
    op: impl FnOnce() -> Result<D>,
) -> Result<Tensor> {
    view_under(x, layout, x.dtype(), op)
}

/// [`view_with`] that reads the memory as another type.
pub fn view_under<D: Derivative>(
    x: &Tensor,
    layout: Layout,
    dtype: DType,
    op: impl FnOnce() -> Result<D>,
) -> Result<Tensor> {
    if x.is_sparse() {
        return refuse_sparse(op()?.name(), x).map(|()| x.clone());
    }
    let creation = creation();
    let recorded = dtype.differentiable() && needs(&[x]) != 0;
    if !mode::interpreted() {
        let y = x.view_as(layout, dtype, creation);
        if recorded {
            attach(op()?, 1, &[x], slice::from_ref(&y), 0)?;
        }
        return Ok(y);
    }
    let op = op()?;
    let mut y = ask_views(&op, x, &[layout], dtype, creation)?;
    if recorded {
        attach(op, 1, &[x], &y, 0)?;
    }
    Ok(y.swap_remove(0))
}

/// Several views of `x` from one op, such as `unbind`.
pub fn views<D: Derivative>(op: D, x: &Tensor, layouts: Vec<Layout>) -> Result<Vec<Tensor>> {
    if x.is_sparse() {
        refuse_sparse(op.name(), x)?;
    }
    let creation = match creation() {
        Creation::Default => Creation::Multiple,
        other => other,
    };
    views_of(op, x, &layouts, x.dtype(), creation)
}

/// [`views`] of this type, made in this way.
pub(super) fn views_of<D: Derivative>(
    op: D,
    x: &Tensor,
    layouts: &[Layout],
    dtype: DType,
    creation: Creation,
) -> Result<Vec<Tensor>> {
    let y: Vec<Tensor> = match mode::interpreted() {
        false => layouts
            .iter()
            .map(|l| x.view_as(l.clone(), dtype, creation))
            .collect(),
        true => ask_views(&op, x, layouts, dtype, creation)?,
    };
    if needs(&[x]) != 0 && dtype.differentiable() && !y.is_empty() {
        attach(op, 1, &[x], &y, 0)?;
    }
    Ok(y)
}

#[cold]
fn ask_views(
    op: &dyn Derivative,
    x: &Tensor,
    layouts: &[Layout],
    dtype: DType,
    creation: Creation,
) -> Result<Vec<Tensor>> {
    let kind = Kind::View {
        op,
        layouts,
        dtype,
        creation,
    };
    apply(&Request { x: &[x], kind }).map(Tensors::into_vec)
}

fn creation() -> Creation {
    if mode::inference() {
        Creation::Inference
    } else if mode::grad() {
        Creation::Default
    } else {
        Creation::NoGrad
    }
}

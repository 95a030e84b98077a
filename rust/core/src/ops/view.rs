//! Views: other layouts over the same memory.

use crate::autograd::{Edge, Node, Vjp};
use crate::dispatch;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, TensorMeta};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;

fn grads(g: Tensor) -> Result<Grads> {
    Ok(SmallVec::from_elem(Some(g), 1))
}

/// The same elements in the same order under another shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub name: &'static str,
}

impl Derivative for View {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let shape: SmallVec<[i64; 5]> = cx.input_meta(0)?.shape.iter().map(|&d| d as i64).collect();
        grads(g.reshape(&shape)?)
    }
}

/// Broadcast by stride 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expand;

impl Derivative for Expand {
    fn name(&self) -> &'static str {
        "ExpandBackward0"
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(g.sum_to(&cx.input_meta(0)?.shape)?)
    }
}

/// Dimensions in another order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permute {
    pub dims: SmallVec<[i64; 5]>,
    pub name: &'static str,
}

impl Derivative for Permute {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let n = self.dims.len() as i64;
        let mut inverse: SmallVec<[i64; 5]> = SmallVec::from_elem(0, self.dims.len());
        for (i, &d) in self.dims.iter().enumerate() {
            inverse[d.rem_euclid(n) as usize] = i as i64;
        }
        grads(g.permute(&inverse)?)
    }
}

/// A part of the input: the gradient is zero elsewhere. `part` is relative to a contiguous tensor
/// of the input's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    pub part: Layout,
}

impl Derivative for Part {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let m = cx.input_meta(0)?;
        let zeros = Tensor::zeros(&m.shape, g.dtype(), m.device)?;
        zeros.as_strided_view(self.part.clone())?.copy_from(g)?;
        grads(zeros)
    }
}

/// An arbitrary layout over the input's storage. Layouts are relative to the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsStrided {
    pub base: Layout,
    pub view: Layout,
}

impl Derivative for AsStrided {
    fn name(&self) -> &'static str {
        "AsStridedBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(super::index::strided_adjoint(g, &self.view, &self.base)?)
    }
}

impl Tensor {
    /// `permute`.
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        let layout = self.layout().permute(dims)?;
        dispatch::view(
            Permute {
                dims: dims.into(),
                name: "PermuteBackward0",
            },
            self,
            layout,
        )
    }

    /// `view`: fails where a copy would be needed.
    pub fn view(&self, size: &[i64]) -> Result<Tensor> {
        let layout = self.layout().view(size)?;
        dispatch::view(
            View {
                name: "ViewBackward0",
            },
            self,
            layout,
        )
    }

    /// `reshape`: a view where possible, else a copy.
    pub fn reshape(&self, size: &[i64]) -> Result<Tensor> {
        let shape = crate::shape::infer(size, self.numel())?;
        match self.layout().reshape(&shape) {
            Some(layout) => dispatch::view(
                View {
                    name: "ViewBackward0",
                },
                self,
                layout,
            ),
            None => {
                let copy = self.copy_dense()?;
                let layout = Layout::contiguous(&shape);
                dispatch::view(
                    View {
                        name: "UnsafeViewBackward0",
                    },
                    &copy,
                    layout,
                )
            }
        }
    }

    /// [`Tensor::reshape`] to sizes already known to fit.
    pub fn reshape_to(&self, shape: &[usize]) -> Result<Tensor> {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        self.reshape(&size)
    }

    /// `expand`.
    pub fn expand(&self, size: &[i64]) -> Result<Tensor> {
        let layout = self.layout().expand(size)?;
        dispatch::view(Expand, self, layout)
    }

    /// [`Tensor::expand`] to sizes.
    pub fn expand_to(&self, shape: &[usize]) -> Result<Tensor> {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        self.expand(&size)
    }

    /// A part of this tensor, by a layout made from its own.
    pub fn part(
        &self,
        name: &'static str,
        f: impl Fn(&Layout) -> Result<Layout>,
    ) -> Result<Tensor> {
        let layout = f(self.layout())?;
        let part = f(&Layout::contiguous(self.shape()))?;
        dispatch::view(Part { name, part }, self, layout)
    }

    /// `select`.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        self.part("SelectBackward0", |l| l.select(dim, index))
    }

    /// `slice` along a dimension.
    pub fn slice_dim(
        &self,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        self.part("SliceBackward0", |l| l.slice(dim, start, end, step))
    }

    /// A recorded view under any layout of the same storage.
    pub fn as_strided_view(&self, view: Layout) -> Result<Tensor> {
        let op = AsStrided {
            base: self.layout().clone(),
            view: view.clone(),
        };
        dispatch::view(op, self, view)
    }

    /// The node that makes this view from its base, after the base's history changed.
    pub fn view_node(&self, base: &Tensor, edge: Edge) -> Result<Arc<Node>> {
        let op = AsStrided {
            base: base.layout().clone(),
            view: self.layout().clone(),
        };
        Ok(dispatch::node(op, edge, TensorMeta::of(self)))
    }
}

crate::entries! {
    /// The same elements under another shape, without copying; raises where that is impossible.
    "view(Tensor self, int[] size) -> Tensor", METHOD,
    |a| Ok(a.tensor(0)?.view(a.ints(1)?)?.into());
    /// The same elements under another shape: a view where possible, else a copy.
    "reshape(Tensor self, int[] shape) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.reshape(a.ints(1)?)?.into());
    /// Dimensions in another order.
    "permute(Tensor self, int[] dims) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.permute(a.ints(1)?)?.into());
    /// Broadcasts dimensions of size 1 without copying.
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", METHOD,
    |a| Ok(a.tensor(0)?.expand(a.ints(1)?)?.into());
    /// The slice at one index of a dimension.
    "select(Tensor self, int dim, int index) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.select(a.int(1)?, a.int(2)?)?.into());
}

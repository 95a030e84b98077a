//! Calls of ops that are held by a handle, whatever their types are.

use super::view::views_of;
use super::write::written;
use super::{called, Callee};
use crate::autograd::node::Node;
use crate::autograd::op_node::OpNode;
use crate::autograd::Vjp;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Asked, Derivative, Grads, Mask, Op, Save, Tensors};
use crate::shared::Shared;
use crate::tensor::{Creation, Tensor};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A derivative behind a handle.
#[derive(Clone, Debug)]
struct Held(Arc<dyn Derivative>);

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.0.equals(&*other.0)
    }
}
impl Eq for Held {}
impl Hash for Held {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest(state);
    }
}

impl Derivative for Held {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn save(&self, needs: Mask) -> Save {
        self.0.save(needs)
    }
    fn steps(&self) -> Mask {
        self.0.steps()
    }
    fn overwritten(&self) -> Result<()> {
        self.0.overwritten()
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        self.0.asked(x, y)
    }
    fn view_of_many(&self, x: &Layout, size: usize, step: isize) -> Option<Arc<dyn Derivative>> {
        self.0.view_of_many(x, size, step)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        self.0.vjp(cx, g)
    }
    fn severs(&self) -> bool {
        self.0.severs()
    }
}

impl Callee for Arc<dyn Op> {
    fn op(&self) -> &dyn Op {
        &**self
    }
    fn node(&mut self) -> Shared<Node> {
        OpNode::bare(Held(self.clone()))
    }
}

/// [`super::call`] of an op behind a handle.
pub fn call_kept(mut op: Arc<dyn Op>, x: &[&Tensor]) -> Result<Tensors> {
    called(&mut op, x)
}

/// [`super::call_into`] of an op behind a handle.
pub fn call_kept_into(
    op: &Arc<dyn Op>,
    x: &[&Tensor],
    out: &Tensor,
    inplace: bool,
) -> Result<Tensor> {
    let (target, pending) = written(&**op, x, out, inplace)?;
    if let Some(pending) = pending {
        pending.rebase(Held(op.clone()), &target)?;
    }
    Ok(target)
}

/// Views of `x` under these layouts by an op behind a handle, which is made where it is needed.
pub fn views_kept(
    op: Arc<dyn Derivative>,
    x: &Tensor,
    layouts: &[Layout],
    dtype: DType,
    creation: Creation,
) -> Result<Vec<Tensor>> {
    views_of(Held(op), x, layouts, dtype, creation)
}

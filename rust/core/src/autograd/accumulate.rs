//! Accumulates gradients into leaves.

use super::mode;
use super::node::{Backward, History, Node};
use crate::error::Result;
use crate::host;
use crate::layout::Layout;
use crate::op::Grads;
use crate::shared::{Shared, Weak};
use crate::tensor::{Tensor, WeakTensor};
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::OnceLock;

/// The end of the graph at a leaf.
pub struct AccumulateGrad {
    /// Weak, for the leaf's place in the graph holds this node.
    pub(super) meta: Weak<History>,
    pub(super) leaf: WeakTensor,
    /// The same, once the leaf itself is gone but the graph is not: its hooks still run.
    pub(super) kept: OnceLock<Shared<History>>,
    pub(super) strides: crate::shape::Strides,
}

impl AccumulateGrad {
    /// A copy with the leaf's strides, if these leave no gaps.
    fn copy(&self, g: &Tensor) -> Result<Tensor> {
        let layout = Layout {
            shape: g.shape().clone(),
            strides: self.strides.clone(),
            offset: 0,
        };
        if layout.is_contiguous() || !layout.is_dense() || g.is_sparse() || g.answers() {
            return g.detach().copy_dense();
        }
        let y = Tensor::empty(g.shape(), g.dtype(), g.device())?.alias(layout);
        y.assign(g)?;
        Ok(y)
    }
}

/// Adds to a gradient in place; gives the sum where the gradient has no memory for it. The leaf may
/// have got dimensions of size 1 since that was made.
fn add_grad(old: &Tensor, g: &Tensor) -> Result<Option<Tensor>> {
    if old.is_sparse() {
        let sum = old.add(g)?;
        return Ok(match sum.is_sparse() {
            // The same tensor, as with a dense gradient.
            true => {
                old.become_sparse(&sum)?;
                None
            }
            false => Some(sum),
        });
    }
    if old.shape() != g.shape() && crate::shape::expandable(old.shape(), g.shape()) {
        old.add_into(&g.sum_to(old.shape())?)?;
    } else {
        old.add_into(g)?;
    }
    Ok(None)
}

/// Brings a gradient to its leaf where interpreters see it: these may run the host's code, for which no
/// lock may be held. Another thread's gradient that comes between is added, too.
fn watched(node: &AccumulateGrad, leaf: &Shared<History>, g: Tensor) -> Result<()> {
    let take = || leaf.state.lock().grad.take();
    let mut old = take();
    let mut new = match &old {
        None if g.is_unique() && *g.strides() == node.strides => g,
        None => node.copy(&g)?,
        Some(_) => g,
    };
    loop {
        if let Some(sum) = old {
            match add_grad(&sum, &new) {
                Ok(other) => new = other.unwrap_or(sum),
                Err(e) => {
                    leaf.state.lock().grad.get_or_insert(sum);
                    return Err(e);
                }
            }
        }
        let mut s = leaf.state.lock();
        if s.grad.is_none() {
            s.grad = Some(new);
            return Ok(());
        }
        old = s.grad.take();
    }
}

impl Backward for AccumulateGrad {
    fn name(&self) -> String {
        "AccumulateGrad".into()
    }

    fn backward(&self, _node: &Node, mut g: Grads) -> Result<Grads> {
        let Some(g) = g.get_mut(0).and_then(Option::take) else {
            return Ok(Grads::new());
        };
        // The leaf may want it no longer.
        let wants = |m: &Shared<History>| m.tracked.load(Ordering::Acquire);
        let Some(meta) = self.leaf().filter(wants) else {
            return Ok(Grads::new());
        };
        // A leaf may have been told since that it needs none.
        if !meta.state.lock().requires_grad {
            return Ok(Grads::new());
        }
        if mode::grad() {
            meta.change_grad(|old| match old {
                None => g.copy_dense(),
                Some(old) => old.add(&g),
            })?;
            return Ok(Grads::new());
        }
        if mode::interpreted() {
            return watched(self, &meta, g).map(|()| Grads::new());
        }
        // The lock makes sums from several threads exact; the host's lock stays with us meanwhile.
        host::keep_locked(|| {
            let mut s = meta.state.lock();
            let new = match s.grad.take() {
                None if g.is_unique() && *g.strides() == self.strides => g,
                None => self.copy(&g)?,
                // In place, also where the gradient has a history of its own.
                Some(old) => match add_grad(&old, &g) {
                    Ok(sum) => sum.unwrap_or(old),
                    Err(e) => {
                        s.grad = Some(old);
                        return Err(e);
                    }
                },
            };
            s.grad = Some(new);
            Ok(())
        })?;
        Ok(Grads::new())
    }

    fn leaf(&self) -> Option<Shared<History>> {
        self.kept.get().cloned().or_else(|| self.meta.upgrade())
    }
    fn outlive(&self, leaf: &Shared<History>) {
        let _ = self.kept.set(leaf.clone());
    }
    fn variable(&self) -> Option<Tensor> {
        self.leaf.upgrade()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

//! The autograd metadata of a tensor.

use super::accumulate::AccumulateGrad;
use super::inplace;
use super::node::{Edge, History, Node};
use crate::error::Result;
use crate::op::TensorMeta;
use crate::shared::Shared;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;

impl Tensor {
    /// Whether a gradient is computed for this tensor.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        if self
            .autograd()
            .is_some_and(|m| m.tracked.load(Ordering::Acquire))
        {
            return true;
        }
        self.view_of().is_some_and(|v| v.base.requires_grad())
    }

    pub fn is_leaf(&self) -> Result<bool> {
        Ok(self.grad_fn()?.is_none())
    }

    /// Whether no node made this tensor, as far as is known without asking the base of a view.
    pub fn is_plain_leaf(&self) -> bool {
        self.autograd()
            .is_none_or(|m| m.state.lock().edge.is_none())
    }

    /// The node that made this tensor, brought up to date if its base was modified in place.
    pub fn grad_fn(&self) -> Result<Option<Edge>> {
        inplace::refresh(self)?;
        Ok(self.autograd().and_then(|m| m.state.lock().edge.clone()))
    }

    /// Where this tensor's gradient goes: its node, or the accumulator of a leaf that requires one.
    pub fn edge(&self) -> Result<Option<Edge>> {
        inplace::refresh(self)?;
        // A view that was not recorded requires grad by its base; gradients end there.
        let Some(meta) = self.autograd() else {
            return Ok(None);
        };
        let mut s = meta.state.lock();
        if let Some(edge) = &s.edge {
            return Ok(Some(edge.clone()));
        }
        if !s.requires_grad {
            return Ok(None);
        }
        if let Some(node) = &s.accumulator {
            let node = node.clone();
            return Ok(Some(Edge { node, nr: 0 }));
        }
        let accumulate = AccumulateGrad {
            meta: Shared::downgrade(meta),
            leaf: self.downgrade(),
            kept: OnceLock::new(),
            strides: crate::shape::Strides::from_slice(self.strides()),
        };
        let mut node = Node::bare(accumulate);
        let own = Shared::get_mut(&mut node).expect("nobody else has it");
        own.seq = u64::MAX;
        own.outputs.push(TensorMeta::of(self));
        s.accumulator = Some(node.clone());
        Ok(Some(Edge { node, nr: 0 }))
    }

    /// Makes this tensor output `nr` of `node`.
    pub fn set_edge(&self, edge: Edge) {
        let mut edge = edge;
        if self.autograd().is_none() {
            // The usual case, a new tensor: nobody knows its place yet, so there is nothing to lock.
            match self.set_autograd(Shared::new(History::at(edge))) {
                Ok(()) => return self.note_seen(),
                Err(meta) => match meta.state.lock().edge.take() {
                    Some(e) => edge = e,
                    None => return,
                },
            }
        }
        let meta = self.autograd_mut();
        let old = meta.change(|s| {
            if s.retains_grad {
                // The gradient kept is that of the tensor as it is now.
                s.forget_retaining(meta);
                edge.keep_grad_in(meta);
            }
            s.edge.replace(edge)
        });
        drop(old);
        self.note_seen();
    }

    /// The same memory at the same place in the graph, as a view of nothing.
    pub fn unviewed(&self) -> Tensor {
        let y = self.alias(self.layout().clone());
        if let Some(edge) = self.autograd().and_then(|m| m.state.lock().edge.clone()) {
            y.set_edge(edge);
        }
        y
    }

    /// `detach_`: a leaf from now on that asks for no gradient.
    pub fn detach_in_place(&self) {
        let Some(meta) = self.autograd() else { return };
        let old = meta.change(|s| {
            if std::mem::take(&mut s.retains_grad) {
                s.forget_retaining(meta);
            }
            s.requires_grad = false;
            s.edge.take()
        });
        drop(old);
    }

    /// Hands what is kept of this tensor's gradient to the tensor that takes its place.
    pub fn hand_grad_to(&self, heir: &Tensor) {
        let Some(meta) = self.autograd() else { return };
        let (retains, grad) = meta.change(|s| {
            let retains = std::mem::take(&mut s.retains_grad);
            if retains {
                s.forget_retaining(meta);
            }
            (retains, s.grad.take())
        });
        if !retains && grad.is_none() {
            return;
        }
        let meta = heir.autograd_mut();
        meta.change(|s| {
            s.grad = grad;
            s.retains_grad = retains;
            if let Some(edge) = s.edge.as_ref().filter(|_| retains) {
                edge.keep_grad_in(meta);
            }
        });
    }

    /// A view's node is right for the present version of its memory.
    pub fn note_seen(&self) {
        if let Some(v) = self.view_of() {
            v.seen.store(self.version(), Ordering::Relaxed);
        }
    }

    /// `requires_grad=True` of what makes a tensor.
    pub fn require_grad(&self) -> Result<()> {
        ensure!(
            self.dtype().differentiable(),
            Runtime,
            "Only Tensors of floating point and complex dtype can require gradients, got {}",
            self.dtype()
        );
        self.set_requires_grad(true)
    }

    /// `requires_grad_`: only a leaf of a floating type can change it.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if on && !self.dtype().differentiable() {
            bail!(
                Runtime,
                "only Tensors of floating point and complex dtype can require gradients, got {}",
                self.dtype()
            );
        }
        if on && self.is_inference() && !super::mode::inference() {
            bail!(
                Runtime,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not \
                 allowed."
            );
        }
        if !self.is_plain_leaf() {
            if on {
                return Ok(());
            }
            bail!(
                Runtime,
                "you can only change requires_grad flags of leaf variables. If you want to use a \
                 computed variable in a subgraph that doesn't require differentiation use \
                 var_no_grad = var.detach()."
            );
        }
        if on || self.autograd().is_some() {
            self.autograd_mut().change(|s| s.requires_grad = on);
        }
        Ok(())
    }

    pub fn grad(&self) -> Option<Tensor> {
        self.autograd().and_then(|m| m.state.lock().grad.clone())
    }

    pub fn set_grad(&self, g: Option<Tensor>) {
        if g.is_some() || self.autograd().is_some() {
            let old = std::mem::replace(&mut self.autograd_mut().state.lock().grad, g);
            drop(old);
        }
    }

    /// Keeps the gradient of a tensor that is not a leaf in `.grad`.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            bail!(
                Runtime,
                "can't retain_grad on Tensor that has requires_grad=False"
            );
        }
        if let Some(edge) = self.grad_fn()? {
            let meta = self.autograd_mut();
            let first = !std::mem::replace(&mut meta.state.lock().retains_grad, true);
            if first {
                edge.keep_grad_in(meta);
            }
        }
        Ok(())
    }
}

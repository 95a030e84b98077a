//! The node of an op.

use super::node::{Backward, Node, Saved, SavedHooks, SavedTensors};
use super::vjp::Vjp;
use super::{engine, mode, step};
use crate::bail;
use crate::error::{self, Result};
use crate::op::{Derivative, Grads, Mask};
use crate::shared::Shared;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// The node of an op: the op itself and what its derivative needs. What does not depend on the
/// op's type is compiled once, as methods of [`Kept`].
pub struct OpNode<D: Derivative> {
    pub op: D,
    pub kept: Kept,
}

/// The op of a node's function, and what is kept beside it.
pub fn parts(func: &mut dyn Backward) -> (&dyn Derivative, &mut Kept) {
    let (op, kept) = func.op().expect("the node of an op");
    (op, kept.downcast_mut().expect("what an op keeps"))
}

/// What the node of an op keeps beside it.
#[derive(Default)]
pub struct Kept {
    /// Inputs that need a gradient.
    pub needs: Mask,
    /// How many outputs hooks see.
    pub public: u32,
    /// Whether the op took place in its first input.
    pub written: bool,
    /// See [`Backward::silent`].
    pub silent: Mask,
    saved: Mutex<SavedList>,
}

#[derive(Default)]
struct SavedList {
    inputs: SmallVec<[Option<Saved>; 2]>,
    outputs: SmallVec<[Option<Saved>; 1]>,
    released: bool,
}

impl SavedList {
    fn check(&self) -> Result<()> {
        if self.released {
            bail!(
                Runtime,
                "Trying to backward through the graph a second time (or directly access saved \
                 tensors after they have already been freed). Saved intermediate values of the \
                 graph are freed when you call .backward() or autograd.grad(). Specify \
                 retain_graph=True if you need to backward through the graph a second time or if \
                 you need to access saved tensors after calling backward."
            );
        }
        Ok(())
    }
}

impl Kept {
    /// Inputs that are saved, before the node is anybody else's.
    pub fn saved_inputs(&mut self) -> &mut SmallVec<[Option<Saved>; 2]> {
        &mut self.saved.get_mut().inputs
    }

    fn run(
        &self,
        op: &dyn Derivative,
        node: &Node,
        inputs: &[Option<Saved>],
        outputs: &[Option<Saved>],
        g: Grads,
    ) -> Result<Grads> {
        let needs = engine::wanted(node, self.needs);
        // All that was saved must be as it was, whatever the derivative comes to read.
        for s in inputs.iter().chain(outputs).flatten() {
            s.check()?;
        }
        if self.written {
            op.overwritten()?;
        }
        if needs == 0 {
            return Ok(Grads::new());
        }
        let cx = Vjp {
            node,
            needs,
            inputs,
            outputs,
            sums: RefCell::default(),
        };
        let mut out = error::caught(|| op.vjp(&cx, &g))?;
        for sum in cx.sums.into_inner() {
            out[sum.i] = error::caught(|| sum.settle(node))?;
        }
        let steps = op.steps() & needs;
        if steps != 0 && mode::grad() {
            for (i, (d, edge)) in out.iter_mut().zip(&node.edges).enumerate() {
                if let (1, Some(d), Some(edge)) = (steps >> i & 1, d, edge) {
                    if !d.requires_grad() {
                        *d = step::along(d, edge);
                    }
                }
            }
        }
        Ok(out)
    }

    fn backward(&self, op: &dyn Derivative, node: &Node, g: Grads) -> Result<Grads> {
        let (inputs, outputs) = {
            let s = self.saved.lock();
            s.check()?;
            (s.inputs.clone(), s.outputs.clone())
        };
        self.run(op, node, &inputs, &outputs, g)
    }

    fn last_backward(&self, op: &dyn Derivative, node: &Node, g: Grads) -> Result<Grads> {
        let (inputs, outputs) = {
            let mut s = self.saved.lock();
            s.check()?;
            let taken = (
                std::mem::take(&mut s.inputs),
                std::mem::take(&mut s.outputs),
            );
            s.released = taken.0.iter().any(Option::is_some) || taken.1.iter().any(Option::is_some);
            taken
        };
        let out = self.run(op, node, &inputs, &outputs, g);
        if out.is_err() {
            // A pass that failed leaves the graph as it was.
            let mut s = self.saved.lock();
            (s.inputs, s.outputs, s.released) = (inputs, outputs, false);
        }
        out
    }

    fn save_outputs(&self, outputs: SmallVec<[Option<Saved>; 1]>) {
        self.saved.lock().outputs = outputs;
    }

    fn saved(&self) -> Result<(SavedTensors, SavedTensors)> {
        let s = self.saved.lock();
        s.check()?;
        Ok((s.inputs.to_vec(), s.outputs.to_vec()))
    }

    fn pack_saved(&self, output: bool, i: usize, hooks: Arc<dyn SavedHooks>) -> Result<()> {
        // The hooks run without the lock.
        let mut item = {
            let s = self.saved.lock();
            s.check()?;
            let list = if output {
                &s.outputs[..]
            } else {
                &s.inputs[..]
            };
            list.get(i).cloned().flatten()
        };
        if let Some(saved) = &mut item {
            saved.pack(hooks)?;
        }
        let old = {
            let s = &mut *self.saved.lock();
            let list = if output {
                &mut s.outputs[..]
            } else {
                &mut s.inputs[..]
            };
            list.get_mut(i).map(|slot| std::mem::replace(slot, item))
        };
        drop(old);
        Ok(())
    }

    fn release(&self) {
        let mut s = self.saved.lock();
        if s.inputs.iter().any(Option::is_some) || s.outputs.iter().any(Option::is_some) {
            s.released = true;
        }
        let old = (
            std::mem::take(&mut s.inputs),
            std::mem::take(&mut s.outputs),
        );
        drop(s);
        drop(old);
    }
}

impl<D: Derivative> OpNode<D> {
    /// The node of an op, to be completed where it lies.
    #[inline]
    pub fn bare(op: D) -> Shared<Node> {
        let kept = Kept::default();
        Node::bare(OpNode { op, kept })
    }
}

impl<D: Derivative> Backward for OpNode<D> {
    fn name(&self) -> String {
        self.op.name().into()
    }
    fn public(&self, _node: &Node) -> usize {
        self.kept.public as usize
    }
    fn silent(&self) -> Mask {
        self.kept.silent
    }
    fn backward(&self, node: &Node, g: Grads) -> Result<Grads> {
        self.kept.backward(&self.op, node, g)
    }
    fn last_backward(&self, node: &Node, g: Grads) -> Result<Grads> {
        self.kept.last_backward(&self.op, node, g)
    }
    fn save_outputs(&self, outputs: SmallVec<[Option<Saved>; 1]>) {
        self.kept.save_outputs(outputs)
    }
    fn saved(&self) -> Result<(SavedTensors, SavedTensors)> {
        self.kept.saved()
    }
    fn pack_saved(&self, output: bool, i: usize, hooks: Arc<dyn SavedHooks>) -> Result<()> {
        self.kept.pack_saved(output, i, hooks)
    }
    fn release(&self) {
        self.kept.release()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn op(&mut self) -> Option<(&dyn Derivative, &mut dyn Any)> {
        Some((&self.op, &mut self.kept))
    }
}

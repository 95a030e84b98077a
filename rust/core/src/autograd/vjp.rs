//! The view that a derivative has of its node: saved tensors, outputs, incoming gradients.

use super::engine;
use super::node::{Node, Saved};
use crate::bail;
use crate::dispatch;
use crate::error::Result;
use crate::host;
use crate::op::{Mask, Op, TensorMeta};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;

/// What a derivative sees: what it saved, what is asked of it, and what its inputs looked like.
pub struct Vjp<'a> {
    pub(super) node: &'a Node,
    pub(super) needs: Mask,
    pub(super) inputs: &'a [Option<Saved>],
    pub(super) outputs: &'a [Option<Saved>],
    pub(super) sums: RefCell<Vec<Sum>>,
}

/// A gradient of input `i` that is added to a leaf's while it is computed.
pub(super) struct Sum {
    pub(super) i: usize,
    op: Arc<dyn Op>,
    /// The same with one more input in front that it is added to.
    adding: Arc<dyn Op>,
    x: SmallVec<[Tensor; 2]>,
}

impl Sum {
    /// Adds to the leaf's gradient, or gives the gradient back where another thread changed that.
    pub(super) fn settle(&self, node: &Node) -> Result<Option<Tensor>> {
        let Some(Some(edge)) = node.edges.get(self.i) else {
            return Ok(None);
        };
        if let Some(meta) = edge.node.func.leaf() {
            // As where whole gradients arrive: the lock makes sums from several threads exact.
            let done = host::keep_locked(|| {
                let s = meta.state.lock();
                let Some(grad) = s.plain_grad(&edge.node.outputs[0]) else {
                    return Ok(false);
                };
                let mut x: SmallVec<[&Tensor; 3]> = smallvec::smallvec![grad];
                x.extend(&self.x);
                dispatch::compute_into(&*self.adding, &x, std::slice::from_ref(grad))?;
                grad.bump_version();
                Ok(true)
            })?;
            if done {
                return Ok(None);
            }
        }
        let x: SmallVec<[&Tensor; 2]> = self.x.iter().collect();
        Ok(Some(dispatch::compute(&*self.op, &x)?.swap_remove(0)))
    }
}

impl Vjp<'_> {
    /// Whether input `i` needs a gradient.
    pub fn needs(&self, i: usize) -> bool {
        self.needs >> i & 1 == 1
    }

    /// The inputs that need a gradient.
    pub fn needed(&self) -> Mask {
        self.needs
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.node.edges.len()
    }

    /// Input `i`, named in [`Derivative::save`].
    pub fn input(&self, i: usize) -> Result<Tensor> {
        match self.inputs.get(i) {
            Some(Some(s)) => s.open(),
            _ => bail!(
                Assertion,
                "{}: input {i} was not saved",
                self.node.func.name()
            ),
        }
    }

    /// As [`Vjp::input`], for an input that the call may have done without.
    pub fn optional_input(&self, i: usize) -> Result<Option<Tensor>> {
        match self.inputs.get(i) {
            Some(Some(s)) => s.open().map(Some),
            _ => Ok(None),
        }
    }

    /// Output `i`, named in [`Derivative::save`].
    pub fn output(&self, i: usize) -> Result<Tensor> {
        match self.outputs.get(i) {
            Some(Some(s)) => s.open(),
            _ => bail!(
                Assertion,
                "{}: output {i} was not saved",
                self.node.func.name()
            ),
        }
    }

    /// Shape, type and device of input `i`, which must need a gradient.
    pub fn input_meta(&self, i: usize) -> Result<&TensorMeta> {
        match self.node.edges.get(i) {
            Some(Some(e)) => Ok(&e.node.outputs[e.nr]),
            _ => bail!(
                Assertion,
                "{}: input {i} needs no gradient",
                self.node.func.name()
            ),
        }
    }

    /// The gradient of input `i` that `op` computes from `x`. Where it goes to a leaf that has one,
    /// and `op` [can add](crate::op::Fusion::accumulating) to it, `None` stands for it, and the engine does the rest.
    pub fn grad_from<O: Op>(&self, i: usize, op: O, x: &[&Tensor]) -> Result<Option<Tensor>> {
        if self.adds_to_leaf(i) && op.infer(&dispatch::metas(x))?[0] == *self.input_meta(i)? {
            if let Some(adding) = op.fusion().and_then(|f| f.accumulating()) {
                let x = x.iter().map(|t| (*t).clone()).collect();
                let op = op.keep();
                self.sums.borrow_mut().push(Sum { i, op, adding, x });
                return Ok(None);
            }
        }
        dispatch::call1(op, x).map(Some)
    }

    /// Whether the gradient of input `i` goes to a leaf that has one, and nobody wants to see it
    /// before.
    fn adds_to_leaf(&self, i: usize) -> bool {
        let Some(Some(edge)) = self.node.edges.get(i) else {
            return false;
        };
        engine::goes_to_leaves()
            && self.node.hooks_if_any().is_none()
            && edge.node.hooks_if_any().is_none()
            && edge.node.func.leaf().is_some_and(|m| {
                let s = m.state.lock();
                s.plain_grad(&edge.node.outputs[0]).is_some()
            })
    }

    /// Shape, type and device of output `i`.
    pub fn output_meta(&self, i: usize) -> &TensorMeta {
        &self.node.outputs[i]
    }

    /// The gradient of output `i`, zeros where none arrived.
    pub fn grad_or_zeros(&self, g: &[Option<Tensor>], i: usize) -> Result<Tensor> {
        match g.get(i) {
            Some(Some(g)) => Ok(g.clone()),
            _ => {
                let m = self.output_meta(i);
                Tensor::zeros(&m.shape, m.dtype, m.device)
            }
        }
    }
}

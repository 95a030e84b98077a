//! Nodes of the graph for ops that were computed.

use super::needs;
use crate::autograd::node::{Edges, Node, OpNode};
use crate::autograd::{Edge, Saved};
use crate::error::Result;
use crate::op::{Derivative, Mask, TensorMeta};
use crate::shared::Shared;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Whether a mask names an index; none names one past its bits.
fn has(mask: Mask, i: usize) -> bool {
    i < Mask::BITS as usize && mask >> i & 1 == 1
}

/// A node in the making: what must be read before the op runs has been read.
pub(super) struct Pending<D: Derivative> {
    pub(super) op: D,
    needs: Mask,
    edges: Edges,
    saved: SmallVec<[Option<Saved>; 2]>,
    keep: Mask,
    written: bool,
    silent: Mask,
}

pub(super) struct Finished<D: Derivative> {
    pub(super) node: Shared<Node>,
    keep: Mask,
    _op: std::marker::PhantomData<D>,
}

impl<D: Derivative> Finished<D> {
    fn save_outputs(&self, y: &[Tensor], tracked: impl Fn(usize, &Tensor) -> bool) -> Result<()> {
        if self.keep == 0 {
            return Ok(());
        }
        let mut saved: SmallVec<[Option<Saved>; 1]> = SmallVec::new();
        for (i, t) in y.iter().enumerate() {
            saved.push(match (has(self.keep, i), tracked(i, t)) {
                (false, _) => None,
                (true, true) => Some(Saved::output(t, &self.node, i)?),
                // Indices and masks stand in no graph.
                (true, false) => Some(Saved::input_with(t, &None)?),
            });
        }
        self.func().save_outputs(saved);
        Ok(())
    }

    /// What an op in place wrote to, whose history now ends with `last`.
    pub(super) fn save_written(&self, target: &Tensor, last: &Shared<Node>) -> Result<()> {
        if self.keep & 1 == 1 {
            let saved = Saved::written(target, last)?;
            self.func().save_outputs(SmallVec::from_buf([Some(saved)]));
        }
        Ok(())
    }

    fn func(&self) -> &OpNode<D> {
        let func = self.node.func.as_any().downcast_ref::<OpNode<D>>();
        func.expect("made by Pending::finish")
    }
}

impl<D: Derivative> Pending<D> {
    pub(super) fn new(op: D, needs: Mask, x: &[&Tensor], written: Option<&Tensor>) -> Result<Self> {
        let asked = needs;
        let (mut needs, mut silent) = (needs, 0);
        let mut edges = Edges::new();
        for (i, t) in x.iter().enumerate() {
            let edge = t.edge()?;
            if edge.is_none() && i < 64 && !t.dtype().differentiable() && !t.is_wrapped() {
                silent |= 1 << i;
            }
            if edge.is_none() && x.len() <= 64 {
                // A view taken without recording requires grad by its base, and leads nowhere.
                needs &= !(1 << i);
            }
            edges.push(edge);
        }
        // Of one input that leads nowhere is saved what always is, for its memory to be checked.
        let save = op.save(if x.len() == 1 { asked } else { needs });
        let mut saved = SmallVec::new();
        if save.inputs != 0 {
            for (i, t) in x.iter().enumerate() {
                saved.push(match save.inputs >> i & 1 {
                    1 if written.is_some_and(|w| w.shares_storage(t)) => {
                        // About to be overwritten: keep a copy in the old place in the graph.
                        let copy = t.detach().copy_dense()?;
                        if let Some(e) = t.grad_fn()? {
                            copy.set_edge(e);
                        }
                        Some(Saved::input(&copy)?)
                    }
                    1 => Some(Saved::input_with(t, &edges[i])?),
                    _ => None,
                });
            }
        }
        Ok(Pending {
            op,
            needs,
            edges,
            saved,
            keep: save.outputs,
            silent,
            written: written.is_some_and(|w| x.first().is_some_and(|t| t.same(w))),
        })
    }

    /// The node; of its outputs the first `public` are what hooks see.
    pub(super) fn finish(self, metas: SmallVec<[TensorMeta; 1]>, public: usize) -> Finished<D> {
        let func = OpNode::new(self.op, self.needs, self.saved, public);
        let func = func.with(self.written, self.silent);
        let node = Node::new(self.edges, metas, func);
        Finished {
            node,
            keep: self.keep,
            _op: std::marker::PhantomData,
        }
    }

    pub(super) fn attach(self, y: &[Tensor], detached: Mask) -> Result<()> {
        let tracked = |i: usize, t: &Tensor| t.dtype().differentiable() && !has(detached, i);
        let Some(last) = (0..y.len()).rev().find(|&i| tracked(i, &y[i])) else {
            return Ok(());
        };
        if let [t] = y {
            let done = self.finish(SmallVec::from_buf([TensorMeta::of(t)]), 1);
            done.save_outputs(y, tracked)?;
            let node = done.node;
            t.set_edge(Edge { node, nr: 0 });
            return Ok(());
        }
        let done = self.finish(y.iter().map(|t| TensorMeta::of(t)).collect(), last + 1);
        for (i, t) in y.iter().enumerate() {
            if tracked(i, t) {
                t.set_edge(Edge {
                    node: done.node.clone(),
                    nr: i,
                });
            }
        }
        done.save_outputs(y, tracked)
    }
}

/// Records an op that computed its results in its own way.
pub fn record<D: Derivative>(op: D, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let needs = needs(x);
    if needs != 0 {
        Pending::new(op, needs, x, None)?.attach(y, 0)?;
    }
    Ok(())
}

/// A node on its own, for histories that are rebuilt.
pub fn node<D: Derivative>(op: D, edge: Edge, output: TensorMeta) -> Shared<Node> {
    let edges: Edges = smallvec::smallvec![Some(edge)];
    Node::new(
        edges,
        smallvec::smallvec![output],
        OpNode::new(op, 1, SmallVec::new(), 1),
    )
}

//! Nodes of the graph for ops that were computed.

use super::needs;
use crate::autograd::node::{Edges, Node};
use crate::autograd::op_node::{Kept, OpNode};
use crate::autograd::{inplace, Edge, Saved};
use crate::error::Result;
use crate::op::{Derivative, Mask, TensorMeta};
use crate::shared::Shared;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Whether a mask names an index; none names one past its bits.
fn has(mask: Mask, i: usize) -> bool {
    i < Mask::BITS as usize && mask >> i & 1 == 1
}

/// A node in the making: what must be read before the op runs has been read. Only the node itself is
/// of the op's type; all else is compiled once.
pub(super) struct Pending {
    edges: Edges,
    kept: Kept,
    /// Outputs to save.
    keep: Mask,
}

impl Pending {
    pub(super) fn new(
        op: &dyn Derivative,
        needs: Mask,
        x: &[&Tensor],
        written: Option<&Tensor>,
    ) -> Result<Self> {
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
        let mut kept = Kept::new(saved);
        (kept.needs, kept.silent) = (needs, silent);
        kept.written = written.is_some_and(|w| x.first().is_some_and(|t| t.same(w)));
        Ok(Pending {
            edges,
            kept,
            keep: save.outputs,
        })
    }

    /// The node; of its outputs the first `public` are what hooks see.
    fn node<D: Derivative>(mut self, op: D, metas: OutputMetas, public: usize) -> Shared<Node> {
        self.kept.public = public as u32;
        let kept = self.kept;
        Node::new(self.edges, metas, OpNode { op, kept })
    }

    /// Makes `y` the results of the node.
    pub(super) fn attach<D: Derivative>(self, op: D, y: &[Tensor], detached: Mask) -> Result<()> {
        let Some(last) = last_tracked(y, detached) else {
            return Ok(());
        };
        let keep = self.keep;
        let node = self.node(op, output_metas(y), last + 1);
        give_history(node, y, detached, keep)
    }

    /// The same for an op that wrote to `target`.
    pub(super) fn rebase<D: Derivative>(self, op: D, target: &Tensor) -> Result<()> {
        let keep = self.keep;
        let node = self.node(op, output_metas(std::slice::from_ref(target)), 1);
        rebase_history(node, target, keep)
    }
}

type OutputMetas = SmallVec<[TensorMeta; 1]>;

fn output_metas(y: &[Tensor]) -> OutputMetas {
    match y {
        [t] => SmallVec::from_buf([TensorMeta::of(t)]),
        _ => y.iter().map(|t| TensorMeta::of(t)).collect(),
    }
}

/// Whether a gradient flows through output `i`.
fn is_tracked(i: usize, t: &Tensor, detached: Mask) -> bool {
    t.dtype().differentiable() && !has(detached, i)
}

fn last_tracked(y: &[Tensor], detached: Mask) -> Option<usize> {
    (0..y.len()).rev().find(|&i| is_tracked(i, &y[i], detached))
}

fn give_history(node: Shared<Node>, y: &[Tensor], detached: Mask, keep: Mask) -> Result<()> {
    if keep != 0 {
        let mut saved: SmallVec<[Option<Saved>; 1]> = SmallVec::new();
        for (i, t) in y.iter().enumerate() {
            saved.push(match (has(keep, i), is_tracked(i, t, detached)) {
                (false, _) => None,
                (true, true) => Some(Saved::output(t, &node, i)?),
                // Indices and masks stand in no graph.
                (true, false) => Some(Saved::input_with(t, &None)?),
            });
        }
        node.func.save_outputs(saved);
    }
    if let [t] = y {
        t.set_edge(Edge { node, nr: 0 });
        return Ok(());
    }
    for (i, t) in y.iter().enumerate() {
        if is_tracked(i, t, detached) {
            t.set_edge(Edge {
                node: node.clone(),
                nr: i,
            });
        }
    }
    Ok(())
}

fn rebase_history(node: Shared<Node>, target: &Tensor, keep: Mask) -> Result<()> {
    let last = inplace::rebase(target, node.clone(), 0)?;
    if keep & 1 == 1 {
        // What was written to, whose history now ends with `last`.
        let saved = Saved::written(target, &last)?;
        node.func.save_outputs(SmallVec::from_buf([Some(saved)]));
    }
    Ok(())
}

/// Records an op that computed its results in its own way.
pub fn record<D: Derivative>(op: D, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let needs = needs(x);
    if needs != 0 {
        Pending::new(&op, needs, x, None)?.attach(op, y, 0)?;
    }
    Ok(())
}

/// A node on its own, for histories that are rebuilt.
pub fn node<D: Derivative>(op: D, edge: Edge, output: TensorMeta) -> Shared<Node> {
    let edges: Edges = smallvec::smallvec![Some(edge)];
    let mut kept = Kept::new(SmallVec::new());
    (kept.needs, kept.public) = (1, 1);
    Node::new(edges, smallvec::smallvec![output], OpNode { op, kept })
}

//! Nodes of the graph for ops that were computed.

use super::{apply, needs};
use crate::autograd::node::{Edges, Node};
use crate::autograd::op_node::{parts, Kept, OpNode};
use crate::autograd::{inplace, mode, Edge, Saved};
use crate::error::Result;
use crate::op::{Derivative, Mask, TensorMeta};
use crate::shared::Shared;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Whether a mask names an index; none names one past its bits.
fn has(mask: Mask, i: usize) -> bool {
    i < Mask::BITS as usize && mask >> i & 1 == 1
}

/// Reads what a node keeps, of which only the op is of a type of its own: this is compiled once.
/// Gives the outputs to save.
fn prepare(
    op: &dyn Derivative,
    needs: Mask,
    x: &[&Tensor],
    written: Option<&Tensor>,
    edges: &mut Edges,
    kept: &mut Kept,
) -> Result<Mask> {
    let asked = needs;
    let (mut needs, mut silent) = (needs, 0);
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
    let saved = kept.saved_inputs();
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
    (kept.needs, kept.silent) = (needs, silent);
    kept.written = written.is_some_and(|w| x.first().is_some_and(|t| t.same(w)));
    Ok(save.outputs)
}

/// Makes `y` the results of a node of `op`.
pub(super) fn attach<D: Derivative>(
    op: D,
    needs: Mask,
    x: &[&Tensor],
    y: &[Tensor],
    detached: Mask,
) -> Result<()> {
    attach_node(|| OpNode::bare(op), needs, x, y, detached)
}

/// [`attach`] for the bare node of an op.
#[inline]
pub(super) fn attach_node(
    node: impl FnOnce() -> Shared<Node>,
    needs: Mask,
    x: &[&Tensor],
    y: &[Tensor],
    detached: Mask,
) -> Result<()> {
    match last_tracked(y, detached) {
        Some(last) => complete(node(), needs, x, y, detached, last),
        None => Ok(()),
    }
}

/// The node is completed where it lies: a finished one would be moved several times.
fn complete(
    mut node: Shared<Node>,
    needs: Mask,
    x: &[&Tensor],
    y: &[Tensor],
    detached: Mask,
    last: usize,
) -> Result<()> {
    let own = Shared::get_mut(&mut node).expect("nobody else has it");
    let (op, kept) = parts(&mut *own.func);
    let keep = prepare(op, needs, x, None, &mut own.edges, kept)?;
    // What comes after the last that carries a gradient, hooks do not see.
    kept.public = last as u32 + 1;
    put_metas(&mut own.outputs, y);
    // Last: views that were brought up to date on the way come before it.
    own.number();
    give_history(node, y, detached, keep)
}

/// The node of an op that writes in place: what must be read before it runs has been read.
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
        written: &Tensor,
    ) -> Result<Self> {
        let (mut edges, mut kept) = (Edges::new(), Kept::default());
        let keep = prepare(op, needs, x, Some(written), &mut edges, &mut kept)?;
        kept.public = 1;
        Ok(Pending { edges, kept, keep })
    }

    /// Puts the node behind `target`, which the op wrote to.
    pub(super) fn rebase<D: Derivative>(self, op: D, target: &Tensor) -> Result<()> {
        self.complete(OpNode::bare(op), target)
    }

    fn complete(self, mut node: Shared<Node>, target: &Tensor) -> Result<()> {
        let own = Shared::get_mut(&mut node).expect("nobody else has it");
        *parts(&mut *own.func).1 = self.kept;
        own.edges = self.edges;
        own.outputs.push(TensorMeta::of(target));
        own.number();
        rebase_history(node, target, self.keep)
    }
}

fn put_metas(to: &mut SmallVec<[TensorMeta; 1]>, y: &[Tensor]) {
    to.extend(y.iter().map(|t| TensorMeta::of(t)));
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
pub fn record<D: Derivative + Clone>(op: D, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    if mode::followed() {
        let again = |x: &[&Tensor], y: &[Tensor]| record(op.clone(), x, y);
        apply::recorded(op.name(), &again, x, y)?;
    }
    let needs = needs(x);
    if needs != 0 {
        attach(op, needs, x, y, 0)?;
    }
    Ok(())
}

/// A node on its own, for histories that are rebuilt.
pub fn node<D: Derivative>(op: D, edge: Edge, output: TensorMeta) -> Shared<Node> {
    with_edge(OpNode::bare(op), edge, output)
}

fn with_edge(mut node: Shared<Node>, edge: Edge, output: TensorMeta) -> Shared<Node> {
    let own = Shared::get_mut(&mut node).expect("nobody else has it");
    let kept = parts(&mut *own.func).1;
    (kept.needs, kept.public) = (1, 1);
    own.edges.push(Some(edge));
    own.outputs.push(output);
    own.number();
    node
}

//! Gradients that are steps in what they depend on: of a maximum, of a loss that is linear in what
//! is picked. Under `create_graph` they stand in the graph, with a slope of nothing.

use super::node::Edge;
use super::vjp::Vjp;
use crate::dispatch;
use crate::error::Result;
use crate::op::{Derivative, Grads, Mask, Save, TensorMeta};
use crate::tensor::Tensor;

/// The history of a gradient that is a step in what it reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Step;

impl Derivative for Step {
    fn name(&self) -> &'static str {
        "StepBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::NONE
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let zeros = |i| {
            let m = cx.input_meta(i)?;
            Tensor::zeros(&m.shape, m.dtype, m.device)
        };
        let each = (0..cx.inputs()).map(|i| (g[0].is_some() && cx.needs(i)).then(|| zeros(i)));
        each.map(Option::transpose).collect()
    }
}

/// `d` as a step in the tensors that it was computed from.
pub fn reading(d: &Tensor, read: &[&Tensor]) -> Result<Tensor> {
    let d = d.detach();
    dispatch::record(Step, read, std::slice::from_ref(&d))?;
    Ok(d)
}

/// `d` as a step in the tensor whose gradients go along `edge`.
pub(super) fn along(d: &Tensor, edge: &Edge) -> Tensor {
    let d = d.detach();
    let node = dispatch::node(Step, edge.clone(), TensorMeta::of(&d));
    d.set_edge(Edge { node, nr: 0 });
    d
}

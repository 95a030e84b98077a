//! Tensors kept for backward, guarded by their version.

use super::mode;
use super::node::{Edge, Node};
use crate::bail;
use crate::error::Result;
use crate::tensor::Tensor;
use std::sync::{Arc, Weak};

/// Where a saved tensor stood in the graph. Only leaves are held as themselves: holding another
/// tensor would close a reference cycle as soon as it is modified in place.
#[derive(Clone)]
enum Source {
    Itself,
    Node(Edge),
    Output(Weak<Node>, u32),
}

#[derive(Clone)]
pub struct Saved {
    tensor: Tensor,
    version: u32,
    source: Source,
}

impl Saved {
    pub fn input(t: &Tensor) -> Result<Saved> {
        let version = t.version();
        Ok(match t.grad_fn()? {
            None => Saved {
                tensor: t.clone(),
                version,
                source: Source::Itself,
            },
            Some(e) => Saved {
                tensor: t.detach(),
                version,
                source: Source::Node(e),
            },
        })
    }

    pub fn output(t: &Tensor, node: &Arc<Node>, nr: u32) -> Saved {
        let source = Source::Output(Arc::downgrade(node), nr);
        Saved {
            tensor: t.detach(),
            version: t.version(),
            source,
        }
    }

    /// The tensor, back in its place in the graph.
    pub fn unpack(&self) -> Result<Tensor> {
        let edge = match &self.source {
            Source::Itself => None,
            Source::Node(e) => Some(e.clone()),
            Source::Output(node, nr) => node.upgrade().map(|node| Edge { node, nr: *nr }),
        };
        let now = self.tensor.version();
        if now != self.version {
            let from = match &edge {
                Some(e) => format!(", which is output {} of {},", e.nr, e.node.func.name()),
                None => String::new(),
            };
            bail!(
                Runtime,
                "one of the variables needed for gradient computation has been modified by an \
                 inplace operation: [{} {}]{from} is at version {now}; expected version {} \
                 instead. Hint: enable anomaly detection to find the operation that failed to \
                 compute its gradient, with torch.autograd.set_detect_anomaly(True).",
                type_name(&self.tensor),
                crate::shape::Show(self.tensor.shape()),
                self.version
            );
        }
        match edge {
            // Without a graph to build, the place in the old one does not matter.
            Some(edge) if mode::grad() => {
                let t = self.tensor.detach();
                t.set_edge(edge);
                Ok(t)
            }
            _ => Ok(self.tensor.clone()),
        }
    }

    /// The tensor in its place in the graph, whatever the grad mode.
    pub fn unpack_attached(&self) -> Result<Tensor> {
        mode::with_grad(true, || self.unpack())
    }
}

/// PyTorch's legacy type name, which its messages use: `torch.FloatTensor`.
pub fn type_name(t: &Tensor) -> String {
    let prefix = match t.device() {
        crate::device::Device::Cpu => "torch",
        crate::device::Device::Wgpu => "torch.wgpu",
    };
    format!("{prefix}.{}Tensor", t.dtype().scalar_name())
}

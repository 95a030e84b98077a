//! Modification in place: what is allowed, and how it rewrites history, views included.

use super::mode;
use super::node::{Backward, Edge, Edges, Node};
use crate::bail;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Grads, TensorMeta};
use crate::shared::Shared;
use crate::tensor::{Creation, Tensor};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::atomic::Ordering;

/// Whether a view's base was modified since the view's `grad_fn` was made.
#[inline]
pub fn is_outdated(t: &Tensor) -> bool {
    t.view_of()
        .is_some_and(|v| v.seen.load(Ordering::Relaxed) != t.version() && v.base.requires_grad())
}

/// Brings a view's `grad_fn` up to date after its base (or a sibling) was modified in place.
pub fn refresh(t: &Tensor) -> Result<()> {
    let Some(view) = t.view_of().filter(|_| is_outdated(t)) else {
        return Ok(());
    };
    // Its own node describes it no longer, and not every view can get another.
    check_creation(t, view.creation(), true)?;
    let Some(edge) = view.base.edge()? else {
        return Ok(());
    };
    let node = t.view_node(view.base.layout(), view.base.dtype(), edge)?;
    t.set_edge(Edge { node, nr: 0 });
    Ok(())
}

fn check_creation(t: &Tensor, creation: Creation, modified: bool) -> Result<()> {
    let source = t.autograd().and_then(|m| m.state.lock().edge.clone());
    let what = match &source {
        Some(e) => {
            let name = e.node.func.name();
            // As PyTorch says it: of what was computed.
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let name = name.strip_suffix("Backward").unwrap_or(name);
            format!("Output {} of {name} is a view and", e.nr)
        }
        None => "A view was created in no_grad mode and".to_string(),
    };
    let mode = match source {
        Some(_) => "",
        None => " with grad mode enabled",
    };
    let verb = if modified {
        "its base or another view of its base has been"
    } else {
        "is being"
    };
    match creation {
        Creation::Default => Ok(()),
        Creation::NoGrad => bail!(
            Runtime,
            "A view was created in no_grad mode and {verb} modified inplace with grad mode \
             enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You \
             can clarify your code by moving both the view and the inplace either both inside the \
             no_grad block (if you don't want the inplace to be tracked) or both outside (if you \
             want the inplace to be tracked)."
        ),
        Creation::Inference => bail!(
            Runtime,
            "A view was created in inference mode and {verb} modified inplace in normal mode. \
             Given that this use case is ambiguous and error-prone, it is forbidden. You can \
             clarify your code by moving both the view and the inplace either both inside the \
             inference_mode block or both outside."
        ),
        Creation::Multiple => bail!(
            Runtime,
            "{what} {verb} modified inplace. This view is the output of a function that returns \
             multiple views. Such functions do not allow the output views to be modified inplace. \
             You should replace the inplace operation by an out-of-place one."
        ),
        Creation::Custom => bail!(
            Runtime,
            "{what} {verb} modified inplace{mode}. This view was created inside a custom Function (or \
             because an input was returned as-is) and the autograd logic to handle view+inplace \
             would override the custom backward associated with the custom Function, leading to \
             incorrect gradients. This behavior is forbidden. You can fix this by cloning the \
             output of the custom Function."
        ),
    }
}

/// Refuses what PyTorch refuses: writing to a leaf that requires a gradient, to some views, and to
/// inference tensors outside inference mode. `tracked` says whether the write is recorded.
pub fn check(t: &Tensor, tracked: bool) -> Result<()> {
    if t.is_inference() && !mode::inference() {
        bail!(
            Runtime,
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make \
             a clone to get a normal tensor before doing inplace update."
        );
    }
    if !mode::grad() {
        return Ok(());
    }
    if let Some(view) = t.view_of() {
        let base_needs = t.requires_grad();
        if base_needs || tracked {
            check_creation(t, view.creation(), false)?;
        }
        if base_needs && view.base.is_leaf()? {
            bail!(
                Runtime,
                "a view of a leaf Variable that requires grad is being used in an in-place \
                 operation."
            );
        }
    }
    if t.requires_grad() && t.is_leaf()? {
        bail!(
            Runtime,
            "a leaf Variable that requires grad is being used in an in-place operation."
        );
    }
    Ok(())
}

/// After an in-place op made `node` (whose first edge is the tensor's old history): the tensor,
/// and the base it may be a view of, continue from there. Gives the node where the tensor's own
/// history, or its base's, now ends.
pub fn rebase(t: &Tensor, node: Shared<Node>, nr: usize) -> Result<Shared<Node>> {
    let Some(view) = t.view_of() else {
        t.set_edge(Edge {
            node: node.clone(),
            nr,
        });
        return Ok(node);
    };
    let base = &view.base;
    let mut edges: Edges = SmallVec::new();
    edges.push(base.edge()?);
    edges.extend(node.edges.iter().skip(1).cloned());
    let func = CopySlices {
        base: base.layout().clone(),
        view: t.layout().clone(),
        complex: t.dtype().is_complex(),
        inner: node,
    };
    let node = Node::new(edges, SmallVec::from_elem(TensorMeta::of(base), 1), func);
    base.set_edge(Edge {
        node: node.clone(),
        nr: 0,
    });
    // The view's own node is made anew from the base's when somebody asks for it.
    view.seen
        .store(t.version().wrapping_sub(1), Ordering::Relaxed);
    if t.autograd().is_some_and(|m| m.state.lock().retains_grad) {
        refresh(t)?;
    }
    Ok(node)
}

/// The history of a base after an in-place op on a view of it: the gradient of the view's region
/// passes through the op, the rest passes by.
struct CopySlices {
    base: Layout,
    view: Layout,
    /// Whether the view's elements are complex, which the base's need not be.
    complex: bool,
    inner: Shared<Node>,
}

impl CopySlices {
    /// The view's region of a copy of the base's gradient.
    fn region(&self, whole: &Tensor) -> Result<Tensor> {
        let parts = whole.dtype().is_complex() && !self.complex;
        let mut region = match self.complex && !whole.dtype().is_complex() {
            true => self.view.pairs(),
            false => self.view.clone(),
        };
        let start = self.base.offset << parts as usize;
        region.offset -= start.min(region.offset);
        match parts {
            true => whole.as_real()?.as_strided_view(region),
            false => whole.as_strided_view(region),
        }
    }
}

impl Backward for CopySlices {
    fn name(&self) -> String {
        "CopySlices".into()
    }

    fn backward(&self, _node: &Node, mut g: Grads) -> Result<Grads> {
        let Some(g) = g.get_mut(0).and_then(Option::take) else {
            return Ok(SmallVec::from_elem(None, self.inner.edges.len().max(1)));
        };
        // A copy with the base's strides, so that the view's layout applies to it.
        let whole = g.copy_with_layout(&self.base)?;
        // Where one's elements are complex and the other's real, the region is one of real numbers.
        let pairs = self.complex && !whole.dtype().is_complex();
        let region = self.region(&whole)?;
        let mut slice = region.copy_dense()?;
        if pairs {
            slice = slice.as_complex()?;
        }
        let mut inner: Grads = self
            .inner
            .func
            .backward(&self.inner, SmallVec::from_elem(Some(slice), 1))?;
        let kept = match inner.get_mut(0).and_then(Option::take) {
            Some(kept) => kept.sum_to(&self.view.shape)?,
            None => Tensor::zeros(&[], region.dtype(), g.device())?,
        };
        let kept = match pairs && kept.dtype().is_complex() {
            true => kept.as_real()?,
            false => kept,
        };
        // What is another thing for each slice is not written to what these share.
        let (whole, region) = match kept.stands() {
            true => {
                let whole = whole.copy_beside([&kept])?.copy_with_layout(&self.base)?;
                let region = self.region(&whole)?;
                (whole, region)
            }
            false => (whole, region),
        };
        region.copy_from(&kept)?;
        let mut out: Grads = SmallVec::new();
        out.push(Some(whole));
        out.extend(inner.into_iter().skip(1));
        Ok(out)
    }

    fn release(&self) {
        self.inner.func.release();
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

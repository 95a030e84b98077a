//! Callbacks on gradients: of tensors, which leaves and nodes keep, and around nodes.

use super::node::{History, Hook, Hooks, Node};
use super::saved::type_name;
use crate::error::Result;
use crate::shape::Show;
use crate::shared::{Shared, Weak};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Takes a hook out of a list. It must be dropped outside the list's lock, for with it the host's
/// objects go.
fn take_hook<T>(list: &mut Hooks<T>, id: u64) -> Option<T> {
    let at = list.iter().position(|h| h.0 == id)?;
    Some(list.remove(at).1)
}

static HOOK_ID: AtomicU64 = AtomicU64::new(1);
/// A fresh number for a hook.
pub fn next_hook_id() -> u64 {
    HOOK_ID.fetch_add(1, Ordering::Relaxed)
}

/// Refuses what a hook returns in the place of `old` if it has another shape, type, layout or device.
pub fn check_kind(old: &Tensor, new: &Tensor) -> Result<()> {
    let kind = |t: &Tensor| (t.dtype(), t.is_sparse(), t.device());
    ensure!(
        kind(old) == kind(new),
        Runtime,
        "hook has changed the type of value (was {} got {}): convert what it returns to the type of what \
         it got",
        type_name(old),
        type_name(new)
    );
    ensure!(
        new.shape() == old.shape(),
        Runtime,
        "hook has changed the size of value: it got {} and returned {}",
        Show(old.shape()),
        Show(new.shape())
    );
    Ok(())
}

impl Node {
    /// Removes a hook on the node or on one of its outputs; unknown numbers are ignored.
    pub fn remove_hook(&self, id: u64) {
        let Some(hooks) = self.hooks_if_any() else {
            return;
        };
        let (tensor, around) = {
            let mut h = hooks.lock();
            let tensor = take_hook(&mut h.tensor, id);
            let post = take_hook(&mut h.post, id);
            (tensor, post.or_else(|| take_hook(&mut h.pre, id)))
        };
        drop((tensor, around));
    }
}

/// Where a hook is registered, without keeping that alive.
pub enum Place {
    Leaf(Weak<History>),
    Node(Weak<Node>),
}

impl Place {
    /// Removes a hook from there; unknown numbers are ignored.
    pub fn remove_hook(&self, id: u64) {
        match self {
            Place::Leaf(meta) => {
                let Some(meta) = meta.upgrade() else { return };
                let found = {
                    let mut s = meta.state.lock();
                    take_hook(&mut s.hooks, id).or_else(|| take_hook(&mut s.post_accumulate, id))
                };
                drop(found);
            }
            Place::Node(node) => {
                if let Some(node) = node.upgrade() {
                    node.remove_hook(id);
                }
            }
        }
    }
}

impl Tensor {
    /// Calls `hook` with every gradient of this tensor, before it is used.
    pub fn register_hook(&self, hook: Arc<dyn Hook>) -> Result<(u64, Place)> {
        if !self.requires_grad() {
            bail!(
                Runtime,
                "cannot register a hook on a tensor that doesn't require gradient"
            );
        }
        let id = next_hook_id();
        let place = match self.grad_fn()? {
            Some(edge) => {
                edge.node.hooks().lock().tensor.push((id, (edge.nr, hook)));
                Place::Node(Shared::downgrade(&edge.node))
            }
            None => {
                let meta = self.autograd_mut();
                meta.state.lock().hooks.push((id, hook));
                Place::Leaf(Shared::downgrade(meta))
            }
        };
        Ok((id, place))
    }

    /// Calls `hook` with this leaf each time its gradient was accumulated.
    pub fn register_post_accumulate(&self, hook: Arc<dyn Hook>) -> Result<(u64, Place)> {
        if !self.requires_grad() {
            bail!(
                Runtime,
                "cannot register a hook on a tensor that doesn't require gradient"
            );
        }
        if self.grad_fn()?.is_some() {
            bail!(
                Runtime,
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            );
        }
        let id = next_hook_id();
        let meta = self.autograd_mut();
        meta.state.lock().post_accumulate.push((id, hook));
        Ok((id, Place::Leaf(Shared::downgrade(meta))))
    }
}

//! Tensors kept for backward, guarded by their version.

use super::mode;
use super::node::{Edge, Node, Packed, Saved, SavedHooks, Source, Value};
use crate::error::Result;
use crate::shared::Shared;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    static HOOKS: RefCell<Vec<Arc<dyn SavedHooks>>> = const { RefCell::new(Vec::new()) };
    static DISABLED: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Whether there are hooks, to be asked without the list.
    static HOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Puts hooks in force for what this thread saves from now on.
pub fn push_hooks(hooks: Arc<dyn SavedHooks>) -> Result<()> {
    if let Some(text) = DISABLED.with_borrow(Clone::clone) {
        bail!(Runtime, "{text}");
    }
    HOOKS.with_borrow_mut(|h| h.push(hooks));
    HOOKED.set(true);
    Ok(())
}

/// Whether this thread saves through hooks.
#[inline]
pub fn has_hooks() -> bool {
    HOOKED.get()
}

/// Ends what the latest [`push_hooks`] began.
pub fn pop_hooks() {
    let old = HOOKS.with_borrow_mut(Vec::pop);
    HOOKED.set(HOOKS.with_borrow(|h| !h.is_empty()));
    drop(old);
}

/// Makes [`push_hooks`] raise this text, or allows it again; gives the earlier text.
pub fn disable_hooks(text: Option<String>) -> Result<Option<String>> {
    if text.is_some() && HOOKS.with_borrow(|h| !h.is_empty()) {
        bail!(
            Runtime,
            "saved tensors hooks cannot be disabled while some are in force"
        );
    }
    Ok(DISABLED.replace(text))
}

pub fn disabled_text() -> Option<String> {
    DISABLED.with_borrow(Clone::clone)
}

/// The hooks in force on a thread, to be put in force on another.
pub struct InForce {
    hooks: Vec<Arc<dyn SavedHooks>>,
    disabled: Option<String>,
}

impl InForce {
    pub fn here() -> InForce {
        InForce {
            hooks: HOOKS.with_borrow(Clone::clone),
            disabled: disabled_text(),
        }
    }

    /// Puts them in force on this thread, in the place of what was.
    pub fn put(self) {
        HOOKED.set(!self.hooks.is_empty());
        let old = (HOOKS.replace(self.hooks), DISABLED.replace(self.disabled));
        drop(old);
    }
}

/// Keeps `t`, through the hooks in force unless it is a plain number.
fn keep(t: Tensor, number: bool) -> Result<Value> {
    let hooks = match HOOKED.get() && !number {
        true => HOOKS.with_borrow(|h| h.last().cloned()),
        false => None,
    };
    match hooks {
        None => {
            let version = t.version();
            Ok(Value::Tensor(t, version))
        }
        Some(hooks) => pack(&t, hooks),
    }
}

fn pack(t: &Tensor, hooks: Arc<dyn SavedHooks>) -> Result<Value> {
    let version = t.version();
    let value = mode::with_grad(false, || hooks.pack(t))?;
    ensure!(
        t.version() == version,
        Runtime,
        "A saved tensor pack hook is modifying its input in place: what it gets may be read, or \
         copied, but not written to."
    );
    Ok(Value::Packed(Arc::new(Packed { hooks, value })))
}

impl Saved {
    pub fn input(t: &Tensor) -> Result<Saved> {
        let edge = if HOOKED.get() {
            t.edge()?
        } else {
            t.grad_fn()?
        };
        Saved::input_at(t, edge)
    }

    /// As [`Saved::input`] for a tensor whose edge is known.
    pub fn input_with(t: &Tensor, edge: &Option<Edge>) -> Result<Saved> {
        let leaf = edge.as_ref().is_none_or(|e| e.node.is_accumulator());
        if leaf && !HOOKED.get() {
            return Saved::input_at(t, None);
        }
        Saved::input_at(t, edge.clone())
    }

    fn input_at(t: &Tensor, edge: Option<Edge>) -> Result<Saved> {
        if t.is_inference() && !mode::inference() {
            bail!(
                Runtime,
                "Inference tensors cannot be saved for backward. Please do not use Tensors created \
                 in inference mode in computation tracked by autograd. To work around this, you \
                 can make a clone to get a normal tensor and use it in autograd."
            );
        }
        Ok(match edge {
            None => Saved {
                kept: keep(t.clone(), t.is_wrapped())?,
                source: Source::Itself,
            },
            Some(e) => Saved {
                // Hooks know tensors by their objects: a parameter is the parameter.
                kept: match HOOKED.get() {
                    true => keep(t.clone(), t.is_wrapped())?,
                    false => keep(t.detach(), t.is_wrapped())?,
                },
                source: Source::Node(e),
            },
        })
    }

    pub fn output(t: &Tensor, node: &Shared<Node>, nr: usize) -> Result<Saved> {
        let source = Source::Output(Shared::downgrade(node), nr);
        Ok(Saved {
            kept: keep(t.detach(), false)?,
            source,
        })
    }

    /// A tensor that was written to in place. `node` is where its history, or that of the base
    /// that it is a view of, goes on from.
    pub fn written(t: &Tensor, node: &Shared<Node>) -> Result<Saved> {
        let node = Shared::downgrade(node);
        let source = match t.view_of() {
            Some(view) => {
                let base = (view.base.layout().clone(), view.base.dtype());
                Source::Region(node, Box::new(base))
            }
            None => Source::Output(node, 0),
        };
        Ok(Saved {
            kept: keep(t.detach(), false)?,
            source,
        })
    }

    /// Whether the tensor is kept as it is, not as what a hook made of it.
    pub fn is_plain(&self) -> bool {
        matches!(self.kept, Value::Tensor(..))
    }

    /// Keeps what `hooks` makes of the tensor in its place.
    pub fn pack(&mut self, hooks: Arc<dyn SavedHooks>) -> Result<()> {
        if let Value::Tensor(t, _) = &self.kept {
            self.kept = pack(t, hooks)?;
        }
        Ok(())
    }

    fn edge(&self) -> Option<Edge> {
        match &self.source {
            Source::Itself => None,
            Source::Node(e) => Some(e.clone()),
            Source::Output(node, nr) => node.upgrade().map(|node| Edge { node, nr: *nr }),
            Source::Region(node, ..) => node.upgrade().map(|node| Edge { node, nr: 0 }),
        }
    }

    /// Raises where the tensor was modified since.
    pub fn check(&self) -> Result<()> {
        match &self.kept {
            Value::Tensor(t, version) if t.version() != *version => {
                check_version(t, *version, self.edge().as_ref())
            }
            _ => Ok(()),
        }
    }

    /// The tensor, back in its place in the graph; raises where it was modified since.
    pub fn unpack(&self) -> Result<Tensor> {
        self.check()?;
        self.open()
    }

    /// As [`Saved::unpack`], after a [`Saved::check`].
    pub(super) fn open(&self) -> Result<Tensor> {
        let edge = self.edge();
        let tensor = match &self.kept {
            Value::Packed(p) => {
                mode::with_grad(false, || p.hooks.unpack(p.value.as_ref()))?.detach()
            }
            Value::Tensor(t, _) => t.clone(),
        };
        match edge {
            // Without a graph to build, the place in the old one does not matter.
            Some(edge) if mode::grad() => {
                let t = tensor.detach();
                match &self.source {
                    Source::Region(_, base) => {
                        let node = t.view_node(&base.0, base.1, edge)?;
                        t.set_edge(Edge { node, nr: 0 });
                    }
                    _ => t.set_edge(edge),
                }
                Ok(t)
            }
            _ => Ok(tensor),
        }
    }

    /// The tensor in its place in the graph, whatever the grad mode.
    pub fn unpack_attached(&self) -> Result<Tensor> {
        mode::with_grad(true, || self.unpack())
    }
}

fn check_version(t: &Tensor, saved: u32, edge: Option<&Edge>) -> Result<()> {
    let now = t.version();
    if now == saved {
        return Ok(());
    }
    let from = match edge {
        Some(e) => format!(", which is output {} of {},", e.nr, e.node.func.name()),
        None => String::new(),
    };
    bail!(
        Runtime,
        "one of the variables needed for gradient computation has been modified by an inplace \
         operation: [{} {}]{from} is at version {now}; expected version {saved} instead. Hint: \
         enable anomaly detection to find the operation that failed to compute its gradient, with \
         torch.autograd.set_detect_anomaly(True).",
        type_name(t),
        crate::shape::Show(t.shape())
    )
}

/// PyTorch's legacy type name, which its messages use: `torch.FloatTensor`.
pub fn type_name(t: &Tensor) -> String {
    let prefix = match t.device() {
        crate::device::Device::Cpu => "torch".to_string(),
        other => format!("torch.{}", other.kind()),
    };
    let layout = if t.is_sparse() { ".sparse" } else { "" };
    format!("{prefix}{layout}.{}Tensor", t.dtype().scalar_name())
}

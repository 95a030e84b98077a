//! Nodes, edges and a tensor's place in the graph.

use super::hooks::{Hook, Hooks, NodeHooks};
use super::saved::{Saved, SavedHooks};
use super::{engine, mode, step};
use crate::bail;
use crate::device::Device;
use crate::dispatch;
use crate::error::{self, Result};
use crate::host;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Mask, Op, TensorMeta};
use crate::shared::{Shared, Weak};
use crate::tensor::{Tensor, WeakTensor};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Output `nr` of a node.
#[derive(Clone)]
pub struct Edge {
    pub node: Shared<Node>,
    pub nr: usize,
}

pub type Edges = SmallVec<[Option<Edge>; 2]>;

/// What a node does when the executor reaches it.
pub trait Backward: Send + Sync + 'static {
    fn name(&self) -> String;
    /// Gradients for the node's edges. Gradients are handed over, so that they may be reused.
    fn backward(&self, node: &Node, g: Grads) -> Result<Grads>;
    /// As [`Backward::backward`] for the last time: frees what was saved, and a later pass through
    /// the node raises.
    fn last_backward(&self, node: &Node, g: Grads) -> Result<Grads> {
        let out = self.backward(node, g)?;
        self.release();
        Ok(out)
    }
    /// Frees what was saved; a later pass through the node then raises.
    fn release(&self) {}
    /// Whether it must run although every incoming gradient is `None`.
    fn wants_undefined(&self) -> bool {
        false
    }
    /// How many of the node's outputs hooks see: those after the last that carries a gradient are
    /// the engine's own affair.
    fn public(&self, node: &Node) -> usize {
        node.outputs.len().max(1)
    }
    /// The edges that neither hooks nor graph printers see: of indices, masks and the like, whose
    /// type carries no gradient.
    fn silent(&self) -> Mask {
        0
    }
    /// Outputs are saved once the node exists, for they point back at it.
    fn save_outputs(&self, _outputs: SmallVec<[Option<Saved>; 1]>) {}
    /// What the node keeps of its inputs and of its outputs; raises once that is freed.
    fn saved(&self) -> Result<(SavedTensors, SavedTensors)> {
        Ok(Default::default())
    }
    /// Keeps what `hooks` makes of input or output `i` (`output` says which) in its place.
    fn pack_saved(&self, _output: bool, _i: usize, _hooks: Arc<dyn SavedHooks>) -> Result<()> {
        Ok(())
    }
    /// The place of the leaf that an accumulating node writes to.
    fn leaf(&self) -> Option<Shared<History>> {
        None
    }
    /// The leaf itself, while it is alive.
    fn variable(&self) -> Option<Tensor> {
        None
    }
    fn as_any(&self) -> &dyn Any;
}

/// Saved tensors by the number of the input or output that they are.
pub type SavedTensors = Vec<Option<Saved>>;

static SEQUENCE: AtomicU64 = AtomicU64::new(1);

/// One step of a graph. The function is stored in line, so a node is one allocation.
pub struct Node<F: ?Sized + Backward = dyn Backward> {
    /// Later nodes run first; accumulating nodes run as soon as they can.
    pub seq: u64,
    /// Where the executor that works on this node keeps its state; 0 when none does.
    pub(super) slot: AtomicU64,
    pub edges: Edges,
    pub outputs: SmallVec<[TensorMeta; 1]>,
    hooks: OnceLock<Box<Mutex<NodeHooks>>>,
    /// The host language's object for this node, if one is alive; the host keeps it right.
    pub wrapper: AtomicPtr<c_void>,
    pub func: ManuallyDrop<F>,
}

impl<F: Backward> Node<F> {
    pub fn new(edges: Edges, outputs: SmallVec<[TensorMeta; 1]>, func: F) -> Shared<Node> {
        let seq = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let node = Node::numbered(seq, edges, outputs, func);
        node.remember_traceback();
        node
    }

    fn numbered(
        seq: u64,
        edges: Edges,
        outputs: SmallVec<[TensorMeta; 1]>,
        func: F,
    ) -> Shared<Node> {
        let node = Shared::new(Node {
            seq,
            slot: AtomicU64::new(0),
            edges,
            outputs,
            hooks: OnceLock::new(),
            wrapper: AtomicPtr::default(),
            func: ManuallyDrop::new(func),
        });
        node.coerced::<Node>(|p| p)
    }
}

impl Node {
    /// Keeps where the host's code is, in anomaly mode.
    fn remember_traceback(&self) {
        if super::mode::anomaly().is_some() {
            self.hooks().lock().traceback = host::traceback();
        }
    }
    /// Whether gradients of a leaf arrive here.
    pub fn is_accumulator(&self) -> bool {
        self.seq == u64::MAX
    }
    pub fn hooks(&self) -> &Mutex<NodeHooks> {
        self.hooks.get_or_init(Default::default)
    }
    /// The numbers of the edges that are shown.
    pub fn shown_edges(&self) -> impl Iterator<Item = usize> {
        let silent = self.func.silent();
        (0..self.edges.len()).filter(move |&i| i >= 64 || silent >> i & 1 == 0)
    }
    pub fn hooks_if_any(&self) -> Option<&Mutex<NodeHooks>> {
        self.hooks.get().map(|b| &**b)
    }
}

thread_local!(static DROPPING: RefCell<Option<Vec<Edges>>> = const { RefCell::new(None) });

impl<F: ?Sized + Backward> Drop for Node<F> {
    /// Iterative, so that a chain of a million nodes does not overflow the stack. What the function
    /// saved may hold the nodes below too, so it goes while their edges are still kept.
    fn drop(&mut self) {
        let mut edges = std::mem::take(&mut self.edges);
        let ends = |e: &Option<Edge>| e.as_ref().is_none_or(|e| e.node.is_accumulator());
        // Whoever finds a list in place adds to it; the outermost drop works the list off.
        let outermost = !edges.iter().all(ends)
            && DROPPING
                .try_with(|d| match &mut *d.borrow_mut() {
                    Some(list) => {
                        list.push(std::mem::take(&mut edges));
                        false
                    }
                    list => {
                        *list = Some(Vec::new());
                        true
                    }
                })
                .unwrap_or(false);
        // SAFETY: once, and nobody sees the node any more.
        unsafe { ManuallyDrop::drop(&mut self.func) };
        drop(edges);
        if !outermost {
            return;
        }
        while let Some(next) =
            DROPPING.with(|d| d.borrow_mut().as_mut().and_then(|list| list.pop()))
        {
            drop(next);
        }
        DROPPING.with(|d| *d.borrow_mut() = None);
    }
}

/// A tensor's place in the graph.
#[derive(Default)]
pub struct History {
    pub state: Mutex<State>,
    /// Whether a gradient is asked for or flows through: what `state` says, to be read without its
    /// lock.
    tracked: AtomicBool,
}

#[derive(Default)]
pub struct State {
    /// Asked for on a leaf.
    pub requires_grad: bool,
    /// The node that made this tensor.
    pub edge: Option<Edge>,
    pub grad: Option<Tensor>,
    pub retains_grad: bool,
    /// Where gradients of this leaf arrive; kept, for every use of the leaf needs it.
    accumulator: Option<Shared<Node>>,
    /// Hooks of a leaf; other tensors' hooks are kept by their node.
    pub hooks: Hooks<Arc<dyn Hook>>,
    pub post_accumulate: Hooks<Arc<dyn Hook>>,
}

impl Edge {
    /// Puts the gradient that arrives here into `.grad` of a tensor.
    fn keep_grad_in(&self, meta: &Shared<History>) {
        let entry = (self.nr, Shared::downgrade(meta));
        self.node.hooks().lock().retain.push(entry);
    }
}

impl State {
    /// Ends what [`Edge::keep_grad_in`] began for the tensor of this state.
    fn forget_retaining(&self, meta: &Shared<History>) {
        if let Some(hooks) = self.edge.as_ref().and_then(|e| e.node.hooks_if_any()) {
            hooks.lock().retain.retain(|(_, m)| !m.points_to(meta));
        }
    }

    /// Whether a gradient is computed for the tensor.
    fn is_tracked(&self) -> bool {
        self.requires_grad || self.edge.is_some()
    }

    /// The leaf's gradient where more can be added to it in place, unseen by any hook.
    fn plain_grad(&self, want: &TensorMeta) -> Option<&Tensor> {
        self.grad.as_ref().filter(|g| {
            self.requires_grad
                && self.hooks.is_empty()
                && self.post_accumulate.is_empty()
                && !g.requires_grad()
                && !g.is_inference()
                && g.is_contiguous()
                && g.device() == Device::Cpu
                && TensorMeta::of(g) == *want
        })
    }

    /// Whether a graph holds the node where gradients of this leaf arrive.
    pub fn in_graph(&self) -> bool {
        self.accumulator
            .as_ref()
            .is_some_and(|n| Shared::handles(n) > 1)
    }
}

impl History {
    /// The place of a tensor that a node made.
    fn at(edge: Edge) -> History {
        let state = State {
            edge: Some(edge),
            ..State::default()
        };
        History {
            state: Mutex::new(state),
            tracked: AtomicBool::new(true),
        }
    }

    /// Changes the state and keeps the flag beside it right. What it drops must be given out.
    pub fn change<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut s = self.state.lock();
        let out = f(&mut s);
        self.tracked.store(s.is_tracked(), Ordering::Release);
        out
    }

    /// Puts what `f` makes of the gradient in its place. Without the lock, for recording an op may
    /// run the host's code; and again where another thread came between.
    pub fn change_grad(&self, f: impl Fn(Option<&Tensor>) -> Result<Tensor>) -> Result<()> {
        // Others may put another tensor there or, under the lock, write to this one.
        let seen = |s: &State| s.grad.as_ref().map(|g| (g.clone(), g.version()));
        loop {
            let old = seen(&self.state.lock());
            let new = f(old.as_ref().map(|(g, _)| g))?;
            let mut s = self.state.lock();
            let unchanged = match (seen(&s), &old) {
                (Some((now, v)), Some((old, w))) => now.same(old) && v == *w,
                (now, old) => now.is_none() && old.is_none(),
            };
            if unchanged {
                let gone = s.grad.replace(new);
                drop(s);
                drop(gone);
                return Ok(());
            }
        }
    }

    /// Makes the next use of the leaf describe it anew: its shape or type changed.
    pub fn forget_accumulator(&self) {
        let old = self.state.lock().accumulator.take();
        drop(old);
    }

    /// The tensor is going away: what a graph still needs of it moves to the graph.
    pub fn leave(this: &Shared<Self>) {
        // Others keep it, or there is no accumulator, which has a weak handle.
        if Shared::handles(this) > 1 || Shared::is_alone(this) {
            return;
        }
        let Some(node) = this.state.lock().accumulator.take() else {
            return;
        };
        if Shared::handles(&node) > 1 {
            if let Some(f) = node.func.as_any().downcast_ref::<AccumulateGrad>() {
                let _ = f.kept.set(this.clone());
            }
        }
    }
}

impl Tensor {
    /// Whether a gradient is computed for this tensor.
    pub fn requires_grad(&self) -> bool {
        if self
            .autograd()
            .is_some_and(|m| m.tracked.load(Ordering::Acquire))
        {
            return true;
        }
        self.view_of().is_some_and(|v| v.base.requires_grad())
    }

    pub fn is_leaf(&self) -> Result<bool> {
        Ok(self.grad_fn()?.is_none())
    }

    /// Whether no node made this tensor, as far as is known without asking the base of a view.
    pub fn is_plain_leaf(&self) -> bool {
        self.autograd()
            .is_none_or(|m| m.state.lock().edge.is_none())
    }

    /// The node that made this tensor, brought up to date if its base was modified in place.
    pub fn grad_fn(&self) -> Result<Option<Edge>> {
        super::inplace::refresh(self)?;
        Ok(self.autograd().and_then(|m| m.state.lock().edge.clone()))
    }

    /// Where this tensor's gradient goes: its node, or the accumulator of a leaf that requires one.
    pub fn edge(&self) -> Result<Option<Edge>> {
        super::inplace::refresh(self)?;
        // A view that was not recorded requires grad by its base; gradients end there.
        let Some(meta) = self.autograd() else {
            return Ok(None);
        };
        let mut s = meta.state.lock();
        if let Some(edge) = &s.edge {
            return Ok(Some(edge.clone()));
        }
        if !s.requires_grad {
            return Ok(None);
        }
        if let Some(node) = &s.accumulator {
            let node = node.clone();
            return Ok(Some(Edge { node, nr: 0 }));
        }
        let outputs = smallvec::smallvec![TensorMeta::of(self)];
        let accumulate = AccumulateGrad {
            meta: Shared::downgrade(meta),
            leaf: self.downgrade(),
            kept: OnceLock::new(),
            strides: crate::shape::Strides::from_slice(self.strides()),
        };
        let node = Node::numbered(u64::MAX, Edges::new(), outputs, accumulate);
        s.accumulator = Some(node.clone());
        Ok(Some(Edge { node, nr: 0 }))
    }

    /// Makes this tensor output `nr` of `node`.
    pub fn set_edge(&self, edge: Edge) {
        let mut edge = edge;
        if self.autograd().is_none() {
            // The usual case, a new tensor: nobody knows its place yet, so there is nothing to lock.
            match self.set_autograd(Shared::new(History::at(edge))) {
                Ok(()) => return self.note_seen(),
                Err(meta) => match meta.state.lock().edge.take() {
                    Some(e) => edge = e,
                    None => return,
                },
            }
        }
        let meta = self.autograd_mut();
        let old = meta.change(|s| {
            if s.retains_grad {
                // The gradient kept is that of the tensor as it is now.
                s.forget_retaining(meta);
                edge.keep_grad_in(meta);
            }
            s.edge.replace(edge)
        });
        drop(old);
        self.note_seen();
    }

    /// The same memory at the same place in the graph, as a view of nothing.
    pub fn unviewed(&self) -> Tensor {
        let y = self.alias(self.layout().clone());
        if let Some(edge) = self.autograd().and_then(|m| m.state.lock().edge.clone()) {
            y.set_edge(edge);
        }
        y
    }

    /// `detach_`: a leaf from now on that asks for no gradient.
    pub fn detach_in_place(&self) {
        let Some(meta) = self.autograd() else { return };
        let old = meta.change(|s| {
            if std::mem::take(&mut s.retains_grad) {
                s.forget_retaining(meta);
            }
            s.requires_grad = false;
            s.edge.take()
        });
        drop(old);
    }

    /// Hands what is kept of this tensor's gradient to the tensor that takes its place.
    pub fn hand_grad_to(&self, heir: &Tensor) {
        let Some(meta) = self.autograd() else { return };
        let (retains, grad) = meta.change(|s| {
            let retains = std::mem::take(&mut s.retains_grad);
            if retains {
                s.forget_retaining(meta);
            }
            (retains, s.grad.take())
        });
        if !retains && grad.is_none() {
            return;
        }
        let meta = heir.autograd_mut();
        meta.change(|s| {
            s.grad = grad;
            s.retains_grad = retains;
            if let Some(edge) = s.edge.as_ref().filter(|_| retains) {
                edge.keep_grad_in(meta);
            }
        });
    }

    /// A view's node is right for the present version of its memory.
    pub fn note_seen(&self) {
        if let Some(v) = self.view_of() {
            v.seen.store(self.version(), Ordering::Relaxed);
        }
    }

    /// `requires_grad_`: only a leaf of a floating type can change it.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if on && !self.dtype().differentiable() {
            bail!(
                Runtime,
                "only Tensors of floating point and complex dtype can require gradients, got {}",
                self.dtype()
            );
        }
        if on && self.is_inference() && !super::mode::inference() {
            bail!(
                Runtime,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not \
                 allowed."
            );
        }
        if !self.is_plain_leaf() {
            if on {
                return Ok(());
            }
            bail!(
                Runtime,
                "you can only change requires_grad flags of leaf variables. If you want to use a \
                 computed variable in a subgraph that doesn't require differentiation use \
                 var_no_grad = var.detach()."
            );
        }
        if on || self.autograd().is_some() {
            self.autograd_mut().change(|s| s.requires_grad = on);
        }
        Ok(())
    }

    pub fn grad(&self) -> Option<Tensor> {
        self.autograd().and_then(|m| m.state.lock().grad.clone())
    }

    pub fn set_grad(&self, g: Option<Tensor>) {
        if g.is_some() || self.autograd().is_some() {
            let old = std::mem::replace(&mut self.autograd_mut().state.lock().grad, g);
            drop(old);
        }
    }

    /// Keeps the gradient of a tensor that is not a leaf in `.grad`.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            bail!(
                Runtime,
                "can't retain_grad on Tensor that has requires_grad=False"
            );
        }
        if let Some(edge) = self.grad_fn()? {
            let meta = self.autograd_mut();
            let first = !std::mem::replace(&mut meta.state.lock().retains_grad, true);
            if first {
                edge.keep_grad_in(meta);
            }
        }
        Ok(())
    }
}

/// The end of the graph at a leaf.
pub struct AccumulateGrad {
    /// Weak, for the leaf's place in the graph holds this node.
    meta: Weak<History>,
    leaf: WeakTensor,
    /// The same, once the leaf itself is gone but the graph is not: its hooks still run.
    kept: OnceLock<Shared<History>>,
    strides: crate::shape::Strides,
}

impl AccumulateGrad {
    /// A copy with the leaf's strides, if these leave no gaps.
    fn copy(&self, g: &Tensor) -> Result<Tensor> {
        let layout = Layout {
            shape: g.shape().clone(),
            strides: self.strides.clone(),
            offset: 0,
        };
        if layout.is_contiguous() || !layout.is_dense() {
            return g.detach().copy_dense();
        }
        let y = Tensor::empty(g.shape(), g.dtype(), g.device())?.alias(layout);
        y.assign(g)?;
        Ok(y)
    }
}

/// Adds to a gradient in place. The leaf may have got dimensions of size 1 since that was made.
fn add_grad(old: &Tensor, g: &Tensor) -> Result<()> {
    if old.shape() != g.shape() && crate::shape::expandable(old.shape(), g.shape()) {
        return old.add_into(&g.sum_to(old.shape())?);
    }
    old.add_into(g)
}

impl Backward for AccumulateGrad {
    fn name(&self) -> String {
        "AccumulateGrad".into()
    }

    fn backward(&self, _node: &Node, mut g: Grads) -> Result<Grads> {
        let Some(g) = g.get_mut(0).and_then(Option::take) else {
            return Ok(Grads::new());
        };
        // The leaf may want it no longer.
        let wants = |m: &Shared<History>| m.tracked.load(Ordering::Acquire);
        let Some(meta) = self.leaf().filter(wants) else {
            return Ok(Grads::new());
        };
        // A leaf may have been told since that it needs none.
        if !meta.state.lock().requires_grad {
            return Ok(Grads::new());
        }
        if mode::grad() {
            meta.change_grad(|old| match old {
                None => g.copy_dense(),
                Some(old) => old.add(&g),
            })?;
            return Ok(Grads::new());
        }
        // The lock makes sums from several threads exact; the host's lock stays with us meanwhile.
        host::keep_locked(|| {
            let mut s = meta.state.lock();
            let new = match s.grad.take() {
                None if g.is_unique() && *g.strides() == self.strides => g,
                None => self.copy(&g)?,
                // In place, also where the gradient has a history of its own.
                Some(old) => match add_grad(&old, &g) {
                    Ok(()) => old,
                    Err(e) => {
                        s.grad = Some(old);
                        return Err(e);
                    }
                },
            };
            s.grad = Some(new);
            Ok(())
        })?;
        Ok(Grads::new())
    }

    fn leaf(&self) -> Option<Shared<History>> {
        self.kept.get().cloned().or_else(|| self.meta.upgrade())
    }
    fn variable(&self) -> Option<Tensor> {
        self.leaf.upgrade()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The node of an op: the op itself and what its derivative needs. What does not depend on the
/// op's type is compiled once, as methods of [`Kept`].
pub struct OpNode<D: Derivative> {
    pub op: D,
    pub kept: Kept,
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
    pub fn new(inputs: SmallVec<[Option<Saved>; 2]>) -> Kept {
        let saved = SavedList {
            inputs,
            ..SavedList::default()
        };
        Kept {
            saved: Mutex::new(saved),
            ..Kept::default()
        }
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
        self.kept.saved.lock().outputs = outputs;
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
}

/// What a derivative sees: what it saved, what is asked of it, and what its inputs looked like.
pub struct Vjp<'a> {
    node: &'a Node,
    needs: Mask,
    inputs: &'a [Option<Saved>],
    outputs: &'a [Option<Saved>],
    sums: RefCell<SmallVec<[Sum; 2]>>,
}

/// A gradient of input `i` that is added to a leaf's while it is computed.
struct Sum {
    i: usize,
    op: Arc<dyn Op>,
    /// The same with one more input in front that it is added to.
    adding: Arc<dyn Op>,
    x: SmallVec<[Tensor; 2]>,
}

impl Sum {
    /// Adds to the leaf's gradient, or gives the gradient back where another thread changed that.
    fn settle(&self, node: &Node) -> Result<Option<Tensor>> {
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
    /// and `op` [can add](Op::adding) to it, `None` stands for it, and the engine does the rest.
    pub fn grad_from<O: Op>(&self, i: usize, op: O, x: &[&Tensor]) -> Result<Option<Tensor>> {
        if self.adds_to_leaf(i) && op.infer(&dispatch::metas(x))?[0] == *self.input_meta(i)? {
            if let Some(adding) = op.adding() {
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

//! Nodes, edges and a tensor's place in the graph.

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::host;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Mask, TensorMeta};
use crate::shared::{Shared, Weak};
use crate::tensor::Tensor;
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
    /// The leaf goes away before the graph, which keeps its place from now on.
    fn outlive(&self, _leaf: &Shared<History>) {}
    /// The leaf itself, while it is alive.
    fn variable(&self) -> Option<Tensor> {
        None
    }
    fn as_any(&self) -> &dyn Any;
    /// The op and what is kept beside it, where this is the node of an op.
    fn op(&mut self) -> Option<(&dyn Derivative, &mut dyn Any)> {
        None
    }
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
        let mut node = Node::bare(func);
        let own = Shared::get_mut(&mut node).expect("nobody else has it");
        (own.edges, own.outputs) = (edges, outputs);
        own.number();
        node
    }

    /// A node without edges, outputs and number. It is completed where it lies, and by what need not
    /// know the function's type: there are hundreds of them.
    #[inline]
    pub fn bare(func: F) -> Shared<Node> {
        let node = Shared::made(|| Node {
            seq: 0,
            slot: AtomicU64::new(0),
            edges: Edges::new(),
            outputs: SmallVec::new(),
            hooks: OnceLock::new(),
            wrapper: AtomicPtr::default(),
            func: ManuallyDrop::new(func),
        });
        node.coerced::<Node>(|p| p)
    }
}

impl Node {
    /// Puts the node behind all that were numbered before.
    pub fn number(&mut self) {
        self.seq = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        self.remember_traceback();
    }
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
        let outermost = enlist(&mut edges);
        // SAFETY: once, and nobody sees the node any more.
        unsafe { ManuallyDrop::drop(&mut self.func) };
        drop(edges);
        if outermost {
            work_off();
        }
    }
}

/// Adds the edges of a node that is dropped to the list of the outermost drop, if there is one;
/// whether that is this one.
fn enlist(edges: &mut Edges) -> bool {
    let ends = |e: &Option<Edge>| e.as_ref().is_none_or(|e| e.node.is_accumulator());
    if edges.iter().all(ends) {
        return false;
    }
    let enlist = |d: &RefCell<Option<Vec<Edges>>>| match &mut *d.borrow_mut() {
        Some(list) => {
            list.push(std::mem::take(edges));
            false
        }
        list => {
            *list = Some(Vec::new());
            true
        }
    };
    DROPPING.try_with(enlist).unwrap_or(false)
}

/// Drops what the list has and gets meanwhile.
fn work_off() {
    while let Some(next) = DROPPING.with(|d| d.borrow_mut().as_mut().and_then(|list| list.pop())) {
        drop(next);
    }
    DROPPING.with(|d| *d.borrow_mut() = None);
}

/// What a tensor that carries a tangent is to those below the interpreter that follows it. Its views and
/// aliases share this, each by its own layout over the same memory.
pub struct Dual {
    /// Which interpreter follows it.
    pub level: u64,
    pub primal: Tensor,
    pub tangent: Mutex<Tangent>,
}

/// What is known of a tangent.
#[derive(Clone)]
pub enum Tangent {
    /// Zeros that nobody had to write down, of what may depend on nothing.
    None,
    /// It lies in memory as the primal does.
    Some(Tensor),
    /// What is called so has no derivative.
    Lost(&'static str),
}

/// A tensor's place in the graph.
#[derive(Default)]
pub struct History {
    pub state: Mutex<State>,
    /// What the tensor is made of, where it carries a tangent.
    dual: OnceLock<Box<Mutex<Arc<Dual>>>>,
    /// Whether a gradient is asked for or flows through: what `state` says, to be read without its
    /// lock.
    pub(super) tracked: AtomicBool,
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
    pub(super) accumulator: Option<Shared<Node>>,
    /// Hooks of a leaf; other tensors' hooks are kept by their node.
    pub hooks: Hooks<Arc<dyn Hook>>,
    pub post_accumulate: Hooks<Arc<dyn Hook>>,
}

impl Edge {
    /// Puts the gradient that arrives here into `.grad` of a tensor.
    pub(super) fn keep_grad_in(&self, meta: &Shared<History>) {
        let entry = (self.nr, Shared::downgrade(meta));
        self.node.hooks().lock().retain.push(entry);
    }
}

impl State {
    /// Ends what [`Edge::keep_grad_in`] began for the tensor of this state.
    pub(super) fn forget_retaining(&self, meta: &Shared<History>) {
        if let Some(hooks) = self.edge.as_ref().and_then(|e| e.node.hooks_if_any()) {
            hooks.lock().retain.retain(|(_, m)| !m.points_to(meta));
        }
    }

    /// Whether a gradient is computed for the tensor.
    pub(super) fn is_tracked(&self) -> bool {
        self.requires_grad || self.edge.is_some()
    }

    /// The leaf's gradient where more can be added to it in place, unseen by any hook.
    pub(super) fn plain_grad(&self, want: &TensorMeta) -> Option<&Tensor> {
        self.grad.as_ref().filter(|g| {
            self.requires_grad
                && self.hooks.is_empty()
                && self.post_accumulate.is_empty()
                && !g.requires_grad()
                && !g.is_inference()
                && !g.is_sparse()
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
    pub(super) fn at(edge: Edge) -> History {
        let state = State {
            edge: Some(edge),
            ..State::default()
        };
        History {
            state: Mutex::new(state),
            tracked: AtomicBool::new(true),
            dual: OnceLock::new(),
        }
    }

    /// What the tensor is made of, where it carries a tangent.
    #[inline]
    pub fn dual(&self) -> Option<Arc<Dual>> {
        self.dual.get().map(|d| d.lock().clone())
    }

    /// Makes the tensor one that carries a tangent.
    pub fn set_dual(&self, dual: Arc<Dual>) {
        let slot = self.dual.get_or_init(|| Box::new(Mutex::new(dual.clone())));
        let old = std::mem::replace(&mut *slot.lock(), dual);
        drop(old);
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
            node.func.outlive(this);
        }
    }
}

/// A callback on a gradient: it may return another in its place.
pub trait Hook: Send + Sync {
    fn call(&self, g: &Tensor) -> Result<Option<Tensor>>;
    fn as_any(&self) -> &dyn Any;
}

/// A callback on all gradients of a node: `outputs` is `None` before the node runs.
pub trait NodeHook: Send + Sync {
    fn call(&self, outputs: Option<&Grads>, inputs: &Grads) -> Result<Option<Grads>>;
    fn as_any(&self) -> &dyn Any;
}

/// Hooks in the order of registration, each under a number that removes it.
pub type Hooks<T> = Vec<(u64, T)>;

#[derive(Default)]
pub struct NodeHooks {
    /// On the gradient of one output, before the node runs.
    pub tensor: Hooks<(usize, Arc<dyn Hook>)>,
    pub pre: Hooks<Arc<dyn NodeHook>>,
    pub post: Hooks<Arc<dyn NodeHook>>,
    /// Tensors that asked to keep the gradient of an output (`retain_grad`).
    pub retain: Vec<(usize, Weak<History>)>,
    /// Where the op was called, in anomaly mode.
    pub traceback: Option<String>,
    /// What the host's programs note about the node.
    pub notes: Option<Arc<dyn Any + Send + Sync>>,
}

/// Where a saved tensor stood in the graph. Only leaves are held as themselves: holding another
/// tensor would close a reference cycle as soon as it is modified in place.
#[derive(Clone)]
pub(super) enum Source {
    Itself,
    Node(Edge),
    Output(Weak<Node>, usize),
    /// A view of a base of this layout and type, which was modified in place by the node. Boxed, as
    /// nodes hold room for a few saved tensors.
    Region(Weak<Node>, Box<(Layout, DType)>),
}

/// Replaces what is saved: `pack` gets the tensor, `unpack` gives it back from the result.
pub trait SavedHooks: Send + Sync {
    fn pack(&self, t: &Tensor) -> Result<Box<dyn Any + Send + Sync>>;
    fn unpack(&self, packed: &(dyn Any + Send + Sync)) -> Result<Tensor>;
}

pub(super) struct Packed {
    pub(super) hooks: Arc<dyn SavedHooks>,
    pub(super) value: Box<dyn Any + Send + Sync>,
}

#[derive(Clone)]
pub(super) enum Value {
    /// With the version it must still have.
    Tensor(Tensor, u32),
    Packed(Arc<Packed>),
}

/// What backward needs again.
#[derive(Clone)]
pub struct Saved {
    pub(super) kept: Value,
    pub(super) source: Source,
}

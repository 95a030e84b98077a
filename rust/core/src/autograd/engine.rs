//! The executor. State lies in a vector, found through a number kept in each node, so there is no
//! hash map on the usual path. Nodes run in the order of their sequence numbers, latest first.

use super::mode;
use super::node::{Edge, Node};
use crate::bail;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::host;
use crate::op::{Grads, Mask, TensorMeta};
use crate::shape::{expandable, Show};
use crate::shared::Shared;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// What to compute: gradients of `roots`, given theirs, down to `inputs` or to every leaf.
pub struct Request<'a> {
    pub roots: &'a [(Edge, Tensor)],
    /// Give these gradients back. Empty: accumulate into every leaf.
    pub inputs: &'a [Edge],
    /// Accumulate into `.grad` of the inputs as well (`backward(inputs=...)`).
    pub accumulate: bool,
    pub keep_graph: bool,
    pub create_graph: bool,
}

struct State {
    node: Shared<Node>,
    pending: u32,
    /// Whether the node lies on a way to what was asked for.
    needed: bool,
    grads: Grads,
    /// Outputs whose gradient is asked for, and where it goes.
    captures: SmallVec<[(usize, usize); 1]>,
}

struct Task {
    id: u64,
    states: Vec<State>,
    /// Nodes that another task works on at the same time.
    elsewhere: HashMap<*const Node, u32>,
}

static TASK: AtomicU64 = AtomicU64::new(1);
thread_local!(static CURRENT: Cell<Option<u64>> = const { Cell::new(None) });
thread_local!(static TO_LEAVES: Cell<bool> = const { Cell::new(false) });

/// In a node's slot: the task's number above, then whether the node will run, then its index.
const WILL_RUN: u64 = 1 << 31;
const INDEX: u64 = WILL_RUN - 1;

/// The number of the backward pass that runs on this thread.
pub fn current_task() -> Option<u64> {
    CURRENT.get()
}

/// Whether the backward pass of this thread runs `node`.
pub fn will_run(node: &Node) -> bool {
    let slot = node.slot.load(Ordering::Relaxed);
    current_task() == Some(slot >> 32) && slot & WILL_RUN != 0
}

/// Whether the backward pass of this thread adds gradients to leaves, and neither records nor
/// checks nor gives them back.
pub fn goes_to_leaves() -> bool {
    TO_LEAVES.get()
}

/// Which of the gradients in `needs` the backward pass of this thread has a use for. An edge to a
/// node that another pass works on counts as used.
pub(super) fn wanted(node: &Node, needs: Mask) -> Mask {
    let Some(task) = current_task().filter(|_| !goes_to_leaves()) else {
        return needs;
    };
    let mut wanted = needs;
    // The last bit stands for all edges from there on.
    let own = if node.edges.len() > 64 { 63 } else { 64 };
    for (i, edge) in node.edges.iter().enumerate().take(own) {
        let Some(edge) = edge else { continue };
        let slot = edge.node.slot.load(Ordering::Relaxed);
        if slot >> 32 == task && slot & WILL_RUN == 0 {
            wanted &= !(1 << i);
        }
    }
    wanted
}

fn address(node: &Shared<Node>) -> *const Node {
    Shared::as_ptr(node)
}

impl Task {
    fn find(&self, node: &Shared<Node>) -> Option<usize> {
        let slot = node.slot.load(Ordering::Relaxed);
        if slot >> 32 == self.id {
            return Some((slot & INDEX) as usize);
        }
        if self.elsewhere.is_empty() {
            return None;
        }
        self.elsewhere.get(&address(node)).map(|&i| i as usize)
    }

    /// The node of a state, without a handle of one's own.
    ///
    /// # Safety
    /// The task outlives the reference: it only ever adds states, and they keep their nodes.
    unsafe fn node<'a>(&self, i: usize) -> &'a Node {
        // SAFETY: the state keeps its node as long as the task lives.
        unsafe { &*Shared::as_ptr(&self.states[i].node) }
    }

    /// The index of a node's state, and whether it is new.
    fn enter(&mut self, node: &Shared<Node>) -> (usize, bool) {
        if let Some(i) = self.find(node) {
            return (i, false);
        }
        let i = self.states.len();
        let slot = self.id << 32 | i as u64;
        if node
            .slot
            .compare_exchange(0, slot, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            self.elsewhere.insert(address(node), i as u32);
        }
        self.states.push(State {
            node: node.clone(),
            pending: 0,
            needed: true,
            grads: SmallVec::new(),
            captures: SmallVec::new(),
        });
        (i, true)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        for s in &self.states {
            if s.node.slot.load(Ordering::Relaxed) >> 32 == self.id {
                s.node.slot.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// How many backward passes run within each other on one thread: each takes some of its stack, and
/// of the calls that the host counts.
const DEEPEST: u32 = 60;
thread_local!(static DEPTH: Cell<u32> = const { Cell::new(0) });

/// Runs the graph. Returns one gradient for each of `request.inputs`.
pub fn backward(request: &Request) -> Result<Vec<Option<Tensor>>> {
    match DEPTH.get() < DEEPEST {
        true => backward_here(request),
        false => {
            let (grad, inference) = (mode::grad(), mode::inference());
            let hooks = super::saved::InForce::here();
            let interpreters = dispatch::InForce::here();
            host::elsewhere(move || {
                // What was in force: it is this thread again where there can be no other.
                let before = (super::saved::InForce::here(), dispatch::InForce::here());
                mode::set_grad(grad);
                mode::set_inference(inference);
                hooks.put();
                interpreters.put();
                let done = backward_here(request);
                before.0.put();
                before.1.put();
                done
            })?
        }
    }
}

fn backward_here(request: &Request) -> Result<Vec<Option<Tensor>>> {
    struct Outer(Option<u64>, bool);
    impl Drop for Outer {
        fn drop(&mut self) {
            CURRENT.set(self.0);
            TO_LEAVES.set(self.1);
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    let _outer = Outer(CURRENT.get(), TO_LEAVES.get());
    DEPTH.set(DEPTH.get() + 1);
    let plain = request.inputs.is_empty() && !request.create_graph;
    TO_LEAVES.set(plain && mode::anomaly().is_none());
    mode::with_grad(request.create_graph, || run(request))
}

fn run(request: &Request) -> Result<Vec<Option<Tensor>>> {
    let id = TASK.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
    let mut task = Task {
        id: id.max(1),
        states: Vec::new(),
        elsewhere: HashMap::new(),
    };
    CURRENT.set(Some(task.id));
    // Find every node below the roots and count the edges into each.
    for (root, _) in request.roots {
        task.enter(&root.node);
    }
    let mut next = 0;
    while next < task.states.len() {
        // SAFETY: the task lives to the end of this function; so below.
        let node = unsafe { task.node(next) };
        for edge in node.edges.iter().flatten() {
            let (i, _) = task.enter(&edge.node);
            task.states[i].pending += 1;
        }
        next += 1;
    }
    let mut results: Vec<Option<Tensor>> = vec![None; request.inputs.len()];
    if !request.inputs.is_empty() {
        mark_needed(&mut task, request);
    }
    for s in &task.states {
        let slot = s.node.slot.load(Ordering::Relaxed);
        if (s.needed || !s.captures.is_empty()) && slot >> 32 == task.id {
            // Until the task gives it back, nobody else writes to the slot.
            s.node.slot.store(slot | WILL_RUN, Ordering::Relaxed);
        }
    }
    for (root, g) in request.roots {
        let i = task.find(&root.node).expect("roots were entered first");
        accumulate(&mut task.states[i], root.nr, g.clone())?;
    }
    let mut ready: BinaryHeap<(u64, usize)> = BinaryHeap::new();
    for (i, s) in task.states.iter().enumerate() {
        if s.pending == 0 {
            ready.push((s.node.seq, i));
        }
    }
    let mut nodes = 0_u32;
    while let Some((_, i)) = ready.pop() {
        nodes = nodes.wrapping_add(1);
        if nodes.is_multiple_of(64) {
            if let Some(e) = host::interruption() {
                return Err(e);
            }
        }
        // SAFETY: the task outlives this loop and keeps the nodes of its states.
        let node = unsafe { task.node(i) };
        let mut grads = std::mem::take(&mut task.states[i].grads);
        grads.resize(node.outputs.len().max(1), None);
        before(node, &mut grads)?;
        for &(nr, k) in &task.states[i].captures {
            results[k] = grads[nr].clone();
        }
        let run_it = task.states[i].needed
            && (node.func.wants_undefined() || grads.iter().any(Option::is_some));
        let outputs = if run_it {
            before_node(node, &mut grads)?;
            step(node, grads, request)?
        } else {
            drop(grads);
            Grads::new()
        };
        for (k, g) in outputs.into_iter().enumerate() {
            let (Some(g), Some(Some(edge))) = (g, node.edges.get(k)) else {
                continue;
            };
            let j = task.find(&edge.node).expect("every node was entered");
            if task.states[j].needed || !task.states[j].captures.is_empty() {
                let g = fit(g, &edge.node.outputs[edge.nr], node, k)?;
                accumulate(&mut task.states[j], edge.nr, g)?;
            }
        }
        for edge in node.edges.iter().flatten() {
            let j = task.find(&edge.node).expect("every node was entered");
            task.states[j].pending -= 1;
            if task.states[j].pending == 0 {
                ready.push((task.states[j].node.seq, j));
            }
        }
    }
    Ok(results)
}

/// With inputs named, only nodes above them run.
fn mark_needed(task: &mut Task, request: &Request) {
    for s in &mut task.states {
        s.needed = false;
    }
    for (k, input) in request.inputs.iter().enumerate() {
        if let Some(i) = task.find(&input.node) {
            task.states[i].captures.push((input.nr, k));
            // The node runs too, for its hooks and to free what it saved.
            task.states[i].needed |= request.accumulate;
        }
    }
    // An edge leads to an older node, or to an accumulating one: oldest first, those before all.
    let mut order: Vec<usize> = (0..task.states.len()).collect();
    order.sort_unstable_by_key(|&i| task.states[i].node.seq.wrapping_add(1));
    for i in order {
        // SAFETY: the caller's task outlives this function.
        let node = unsafe { task.node(i) };
        let below = node.edges.iter().flatten().any(|e| {
            task.find(&e.node)
                .is_some_and(|j| task.states[j].needed || !task.states[j].captures.is_empty())
        });
        task.states[i].needed |= below;
    }
}

/// Adds a gradient to what waits for a node, in place where nobody else can see the sum.
fn accumulate(state: &mut State, nr: usize, g: Tensor) -> Result<()> {
    if state.grads.len() <= nr {
        state
            .grads
            .resize(state.node.outputs.len().max(nr + 1), None);
    }
    state.grads[nr] = Some(match state.grads[nr].take() {
        None => g,
        // Of slices one may have them, and the other not.
        Some(old) if mode::grad() || old.stands() || g.stands() => old.add(&g)?,
        Some(old) if old.is_unique() && old.layout().is_dense() => {
            old.add_into(&g)?;
            old
        }
        Some(old) if g.is_unique() && g.layout().is_dense() => {
            g.add_into(&old)?;
            g
        }
        Some(old) => old.add(&g)?,
    });
    Ok(())
}

/// Hooks on the tensors whose gradients these are, whether the node runs or not.
fn before(node: &Node, grads: &mut Grads) -> Result<()> {
    if let Some(meta) = node.func.leaf() {
        let hooks = meta.state.lock().hooks.clone();
        for (_, hook) in hooks {
            replace(&mut grads[0], |g| hook.call(g))?;
        }
        return Ok(());
    }
    let Some(hooks) = node.hooks_if_any() else {
        return Ok(());
    };
    let (tensor, retain) = {
        let h = hooks.lock();
        (h.tensor.clone(), h.retain.clone())
    };
    for (_, (nr, hook)) in tensor {
        replace(&mut grads[nr], |g| hook.call(g))?;
    }
    for (nr, meta) in retain {
        if let (Some(meta), Some(g)) = (meta.upgrade(), &grads[nr]) {
            meta.change_grad(|old| match old {
                Some(old) => old.add(g),
                None => g.copy_dense(), // its own: whoever writes to it changes no other gradient
            })?;
        }
    }
    Ok(())
}

/// Hooks on a node that is about to run.
fn before_node(node: &Node, grads: &mut Grads) -> Result<()> {
    let Some(hooks) = node.hooks_if_any() else {
        return Ok(());
    };
    let pre = hooks.lock().pre.clone();
    if pre.is_empty() {
        return Ok(());
    }
    let all = grads.len();
    grads.truncate(node.func.public(node));
    for (_, hook) in pre {
        if let Some(new) = hook.call(None, grads)? {
            *grads = new;
        }
    }
    grads.resize(all, None);
    Ok(())
}

fn replace(
    slot: &mut Option<Tensor>,
    call: impl FnOnce(&Tensor) -> Result<Option<Tensor>>,
) -> Result<()> {
    let Some(g) = slot else { return Ok(()) };
    if let Some(new) = call(g)? {
        super::hooks::check_kind(g, &new)?;
        *slot = Some(new);
    }
    Ok(())
}

/// Runs one node and the hooks after it.
fn step(node: &Node, grads: Grads, request: &Request) -> Result<Grads> {
    let hooks = node
        .hooks_if_any()
        .map(|h| h.lock().post.clone())
        .unwrap_or_default();
    let seen = (!hooks.is_empty()).then(|| {
        let mut seen = grads.clone();
        seen.truncate(node.func.public(node));
        seen
    });
    // Hooks may still look at what was saved.
    let last = !request.keep_graph && hooks.is_empty();
    let done = match last {
        true => node.func.last_backward(node, grads),
        false => node.func.backward(node, grads),
    };
    let mut outputs = done.map_err(|e| blame(e, node))?;
    if let Some(meta) = node.func.leaf() {
        let (hooks, grad) = {
            let s = meta.state.lock();
            (s.post_accumulate.clone(), s.grad.clone())
        };
        for (_, hook) in hooks {
            if let Some(g) = &grad {
                hook.call(g)?;
            }
        }
    }
    if !hooks.is_empty() {
        // One gradient for each edge, whatever the function left out at the end.
        outputs.resize(node.edges.len(), None);
        // What nobody asked for may have been computed with the rest; hooks do not see it.
        let used = wanted(node, Mask::MAX);
        for (i, g) in outputs.iter_mut().enumerate().take(64) {
            if used >> i & 1 == 0 {
                *g = None;
            }
        }
    }
    for (_, hook) in hooks {
        let inputs = seen.as_ref().expect("kept for the hooks");
        let shown = |i: usize| outputs.get_mut(i).and_then(Option::take);
        let shown: Grads = node.shown_edges().map(shown).collect();
        let new = hook.call(Some(&shown), inputs)?;
        for (i, g) in node.shown_edges().zip(new.unwrap_or(shown)) {
            outputs[i] = g;
        }
    }
    if mode::anomaly() == Some(true) {
        for (i, g) in outputs.iter().enumerate() {
            if let Some(g) = g {
                if g.has_nan()? {
                    let text = format!(
                        "Function '{}' returned nan values in its {i}th output.",
                        node.func.name()
                    );
                    return Err(blame(Error::runtime(text), node));
                }
            }
        }
    }
    if !request.keep_graph && !last {
        node.func.release();
    }
    Ok(outputs)
}

/// In anomaly mode, shows where the failing node's op was called.
fn blame(e: Error, node: &Node) -> Error {
    if mode::anomaly().is_some() {
        let trace = node.hooks_if_any().and_then(|h| h.lock().traceback.clone());
        host::warn(&match trace {
            Some(t) => format!(
                "Error detected in {}. Traceback of forward call that caused the error:\n{t}",
                node.func.name()
            ),
            None => format!(
                "Error detected in {}. No forward pass information available. Enable detect \
                 anomaly during forward pass for more information.",
                node.func.name()
            ),
        });
    }
    e
}

/// Sums a broadcast gradient to the shape that is due, and casts it to the type.
fn fit(g: Tensor, want: &TensorMeta, node: &Node, k: usize) -> Result<Tensor> {
    let mut g = g;
    if g.shape() != &want.shape {
        if !expandable(&want.shape, g.shape()) {
            bail!(
                Runtime,
                "Function {} returned an invalid gradient at index {k} - got {} but expected shape \
                 compatible with {}",
                node.func.name(),
                Show(g.shape()),
                Show(&want.shape)
            );
        }
        g = g.sum_to(&want.shape)?;
    }
    if g.dtype() != want.dtype && want.dtype.differentiable() {
        g = g.to_dtype(want.dtype)?;
    }
    if g.device() != want.device {
        g = g.to_device(want.device)?;
    }
    Ok(g)
}

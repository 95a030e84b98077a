//! The interpreter that notes what a call asks for.

use super::{After, Back, End, Step, Value};
use crate::autograd::{backward, mode, Edge, Node, Request as Pass};
use crate::device::Device;
use crate::dispatch::{self, InForce, Interpreter, Request, RequestKind};
use crate::dtype::DType;
use crate::error::Result;
use crate::host;
use crate::layout::Layout;
use crate::op::{Op, Tensors};
use crate::shared::Shared;
use crate::storage::{Storage, WeakStorage};
use crate::tensor::Tensor;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// Where a recorded call found the memory of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// That of the input of this number.
    Input(usize),
    /// It was there before, or the host made it.
    There,
    Made,
}

/// Memory that a recorded call used.
pub(super) struct Seen {
    pub found: Found,
    /// Memory of steps is not kept: the call goes as it would unrecorded.
    pub kept: Option<Storage>,
    /// Keeps the identity.
    _id: WeakStorage,
    pub bytes: usize,
    pub device: Device,
    pub written: bool,
    /// Whether what was there is not read: all of it was written to first.
    pub fresh: bool,
    /// What was there before it was first written to, if that may have been made anew.
    pub start: Option<Tensor>,
}

/// A gradient before and after the call.
pub(super) struct LeafSeen {
    pub tensor: Tensor,
    /// Not known of leaves that the call before did not use.
    pub before: Option<Option<Tensor>>,
    pub after: After,
}

pub(super) struct OutputSeen {
    pub value: Value,
    /// The tensor itself, where no step made it.
    pub itself: Option<Tensor>,
    pub given: Option<usize>,
    pub spent: Option<String>,
}

/// What one call asked for.
pub struct Trace {
    thread: ThreadId,
    pub(super) inputs: Vec<Tensor>,
    pub(super) slots: Vec<Seen>,
    index: HashMap<usize, usize>,
    pub(super) steps: Vec<Step>,
    pub(super) leaves: Vec<LeafSeen>,
    /// By the address of what is behind their handles.
    known: HashMap<usize, usize>,
    pub(super) outputs: Vec<OutputSeen>,
    /// Keys of random numbers.
    keys: Vec<[u32; 4]>,
    /// Memory that the call before found; `None` of the first call.
    there: Option<HashSet<usize>>,
    refused: Option<String>,
    /// The way back, with the results by their numbers.
    pub(super) back: Option<Back>,
}

/// How a recorded call ended.
pub enum Ending {
    /// It cannot be run again, and why.
    Refused(String),
    Done(Box<Trace>),
}

/// An interpreter that records the requests of a call.
pub struct Recorder(Mutex<Option<Trace>>);

impl Recorder {
    /// For a call with these inputs; `before` is the call that it should equal.
    pub fn new(inputs: &[Tensor], before: Option<&Trace>) -> Recorder {
        let mut trace = Trace {
            thread: thread::current().id(),
            inputs: inputs.to_vec(),
            slots: Vec::new(),
            index: HashMap::new(),
            steps: Vec::new(),
            leaves: Vec::new(),
            known: HashMap::new(),
            outputs: Vec::new(),
            keys: Vec::new(),
            there: before.map(|b| b.kept().map(|s| s.id()).collect()),
            refused: None,
            back: None,
        };
        for (i, t) in inputs.iter().enumerate() {
            trace.slot(t, Found::Input(i));
        }
        for leaf in before.iter().flat_map(|b| &b.leaves) {
            trace.leaf(&leaf.tensor, Some(leaf.tensor.grad()));
        }
        Recorder(Mutex::new(Some(trace)))
    }

    /// Begins to record what this thread asks for.
    pub fn start(this: &Arc<Recorder>) {
        mode::has_looked();
        InForce::here().above(this.clone()).put();
    }

    /// Ends that, where it goes on.
    pub fn stop(this: &Arc<Recorder>) {
        let me: Arc<dyn Interpreter> = this.clone();
        InForce::here().without(&me).put();
    }

    /// Records the way back from those of the results that have a graph which is not used up. It is
    /// walked through for that, and stays.
    pub fn walk_back(&self, outputs: &[Tensor]) -> Result<()> {
        let given: Vec<Tensor> = match &*self.0.lock() {
            Some(trace) => trace.inputs.clone(),
            None => return Ok(()),
        };
        let mut roots = Vec::new();
        for (i, t) in outputs.iter().enumerate() {
            if !t.requires_grad() || given.iter().any(|g| g.same(t)) {
                continue;
            }
            let Some(edge) = t.edge()? else { continue };
            if !edge.node.is_accumulator() && !is_spent(&edge) {
                roots.push((i, edge));
            }
        }
        drop(given);
        let (from, mut ends) = match &mut *self.0.lock() {
            Some(trace) if !roots.is_empty() && trace.refused.is_none() => {
                trace.check_looked();
                trace.ends(&roots)?
            }
            _ => return Ok(()),
        };
        let mut seeds = Vec::new();
        for (i, _) in &roots {
            let t = &outputs[*i];
            seeds.push(Tensor::zeros(t.shape(), t.dtype(), t.device())?);
        }
        let mut values = Vec::new();
        if let Some(trace) = &mut *self.0.lock() {
            for ((i, _), g) in roots.iter().zip(&seeds) {
                let number = trace.inputs.len() + values.len();
                values.push((*i, trace.value(g, Found::Input(number))));
            }
        }
        let edges: Vec<Edge> = ends.iter().map(|(_, e)| e.clone()).collect();
        let roots: Vec<(Edge, Tensor)> = roots.into_iter().map(|(_, e)| e).zip(seeds).collect();
        let pass = Pass {
            roots: &roots,
            inputs: &edges,
            accumulate: false,
            keep_graph: true,
            create_graph: false,
        };
        let grads = backward(&pass)?;
        if let Some(trace) = &mut *self.0.lock() {
            trace.check_looked();
            let mut found = Vec::new();
            for ((end, _), g) in ends.drain(..).zip(&grads) {
                let value = g.as_ref().map(|g| trace.value(g, Found::There));
                found.push((end, value));
            }
            trace.back = Some(Back {
                from,
                roots: values,
                ends: found,
            });
        }
        Ok(())
    }

    /// The record of a call that returned `outputs`.
    pub fn finish(&self, outputs: &[Tensor]) -> Result<Ending> {
        let mut trace = self.0.lock().take().expect("a recorder is finished once");
        trace.check_looked();
        if trace.refused.is_none() {
            trace.end(outputs)?;
        }
        Ok(match trace.refused.take() {
            Some(why) => Ending::Refused(why),
            None => Ending::Done(Box::new(trace)),
        })
    }
}

/// All of a storage, as bytes.
pub(super) fn whole(storage: &Storage) -> Tensor {
    let layout = Layout::contiguous(&[storage.bytes()]);
    Tensor::from_storage(storage.clone(), layout, DType::U8)
}

impl Trace {
    /// The memory that was there.
    fn kept(&self) -> impl Iterator<Item = &Storage> {
        self.slots.iter().filter_map(|s| s.kept.as_ref())
    }

    fn refuse(&mut self, why: impl FnOnce() -> String) {
        if self.refused.is_none() {
            self.refused = Some(why());
        }
    }

    fn check_looked(&mut self) {
        if mode::has_looked() {
            self.refuse(|| {
                let place = host::place().map_or_else(String::new, |p| format!(" (before {p})"));
                format!("elements of a tensor are read by the program{place}")
            });
        }
    }

    fn slot(&mut self, t: &Tensor, found: Found) -> usize {
        let storage = t.storage();
        let slots = &mut self.slots;
        *self.index.entry(storage.id()).or_insert_with(|| {
            slots.push(Seen {
                found,
                kept: (found != Found::Made).then(|| storage.clone()),
                _id: storage.downgrade(),
                bytes: storage.bytes(),
                device: storage.device(),
                written: false,
                fresh: false,
                start: None,
            });
            slots.len() - 1
        })
    }

    fn value(&mut self, t: &Tensor, found: Found) -> Value {
        if t.is_sparse() || t.answers() || !t.has_data() {
            self.refuse(|| "it uses tensors without memory of their own".into());
        }
        let slot = self.slot(t, found);
        let meta = t.meta().clone();
        Value { slot, meta }
    }

    fn leaf(&mut self, t: &Tensor, before: Option<Option<Tensor>>) {
        let (known, leaves) = (&mut self.known, &mut self.leaves);
        known
            .entry(std::ptr::from_ref(t.meta()) as usize)
            .or_insert_with(|| {
                leaves.push(LeafSeen {
                    tensor: t.clone(),
                    before,
                    after: After::Same,
                });
                leaves.len() - 1
            });
    }

    /// What a request reads.
    fn read(&mut self, x: &[&Tensor]) -> Vec<Value> {
        for t in x {
            let given = || self.inputs.iter().any(|i| i.same(t));
            if t.autograd().is_some() && t.requires_grad() && t.is_plain_leaf() && !given() {
                self.leaf(t, None);
            }
        }
        x.iter().map(|t| self.value(t, Found::There)).collect()
    }

    /// What a request that reads `x` writes to; `known` slots are older.
    fn write(
        &mut self,
        op: &dyn Op,
        x: &[Value],
        y: &[Tensor],
        known: usize,
    ) -> Result<Vec<Value>> {
        let values: Vec<Value> = y.iter().map(|t| self.value(t, Found::There)).collect();
        for v in values.iter().filter(|v| v.slot >= known) {
            // Several results may lie in one memory, beside each other.
            let own = || values.iter().filter(|o| o.slot == v.slot).map(|o| &o.meta);
            let bytes: usize = own().map(|m| m.numel() * m.dtype().size()).sum();
            let all = bytes == self.slots[v.slot].bytes;
            let once = own().all(|m| !m.layout().overlaps_itself());
            // Who draws random numbers is given the place, and does not read it.
            let read = !op.traits().draws && x.iter().any(|x| x.slot == v.slot);
            self.slots[v.slot].fresh = all && once && !read;
        }
        for v in &values {
            let seen = &mut self.slots[v.slot];
            let new = |s: &Storage| self.there.as_ref().is_some_and(|t| !t.contains(&s.id()));
            match &seen.kept {
                Some(kept)
                    if !seen.written && !seen.fresh && seen.found == Found::There && new(kept) =>
                {
                    seen.start = Some(whole(kept).copy_dense()?);
                }
                _ => {}
            }
            seen.written = true;
        }
        Ok(values)
    }

    fn end(&mut self, outputs: &[Tensor]) -> Result<()> {
        for (i, t) in outputs.iter().enumerate() {
            let given = self.inputs.iter().position(|i| i.same(t));
            let value = self.value(t, Found::There);
            let made = self.slots[value.slot].found == Found::Made;
            let itself = (!made).then(|| t.clone());
            let mut spent = None;
            if t.requires_grad() && given.is_none() {
                if let Some(edge) = t.edge()?.filter(|e| !e.node.is_accumulator()) {
                    let live = |b: &Back| b.roots.iter().any(|(r, _)| *r == i);
                    if self.back.as_ref().is_none_or(|b| !live(b)) {
                        spent = Some(edge.node.func.name());
                        if !is_spent(&edge) {
                            self.refuse(|| "a result has a graph that is not followed".into());
                        }
                    } else if !made {
                        self.refuse(|| "a result with a graph is a view of what was there".into());
                    }
                    if t.grad().is_some() {
                        self.refuse(|| "a result keeps its gradient".into());
                    }
                }
            }
            self.outputs.push(OutputSeen {
                value,
                itself,
                given,
                spent,
            });
        }
        let mut leaves = std::mem::take(&mut self.leaves);
        for leaf in &mut leaves {
            leaf.after = match leaf.tensor.grad() {
                None if matches!(leaf.before, Some(None)) => After::Same,
                None => After::Gone,
                Some(g) => match self.index.get(&g.storage().id()) {
                    Some(&slot) if self.slots[slot].found == Found::Made => {
                        let value = self.value(&g, Found::Made);
                        After::Made(value)
                    }
                    _ => After::Same,
                },
            };
            let grads = [leaf.tensor.grad(), leaf.before.clone().flatten()];
            if grads.iter().flatten().any(Tensor::requires_grad) {
                self.refuse(|| "a gradient has a graph of its own".into());
            }
            if let (After::Same, Some(before)) = (&leaf.after, &leaf.before) {
                let same = match (before, &leaf.tensor.grad()) {
                    (Some(a), Some(b)) => a.same(b),
                    (a, b) => a.is_none() && b.is_none(),
                };
                if !same {
                    self.refuse(|| "a gradient is put in its place by the program".into());
                }
            }
        }
        let given: Vec<Tensor> = self.inputs.clone();
        let graphs = || given.iter().filter(|t| t.requires_grad());
        if graphs().count() > 0 {
            let used = |t: &Tensor| t.grad().is_some_and(|g| self.find(&g).is_some());
            let mut walked = leaves.iter().any(|l| used(&l.tensor)) || graphs().any(used);
            for t in graphs() {
                walked |= t.edge()?.is_some_and(|e| is_spent(&e));
            }
            if walked {
                self.refuse(|| "backward runs in it, and an argument has a graph".into());
            }
        }
        self.leaves = leaves;
        if self.is_crossed() {
            self.refuse(|| "it writes to memory that two tensors have, each as its own".into());
        }
        Ok(())
    }

    /// Whether memory that is written to lies over other memory: the steps would not be seen to depend
    /// on each other.
    fn is_crossed(&self) -> bool {
        let kept = |s: &Seen| s.kept.clone().map(|m| (m, s.written));
        let kept: Vec<(Storage, bool)> = self.slots.iter().filter_map(kept).collect();
        let mut written = kept.iter().filter(|(_, written)| *written);
        written.any(|(a, _)| kept.iter().any(|(b, _)| a.meets(b)))
    }

    /// Where the graph above these edges begins, and how many steps there are so far.
    #[allow(clippy::type_complexity)]
    fn ends(&mut self, roots: &[(usize, Edge)]) -> Result<(usize, Vec<(End, Edge)>)> {
        let mut ends = Vec::new();
        let mut stop = HashSet::new();
        for (i, t) in self.inputs.iter().enumerate() {
            if let (true, Some(edge)) = (t.requires_grad(), t.edge()?) {
                stop.insert(address(&edge.node));
                ends.push((End::Input(i), edge));
            }
        }
        let mut hooks = false;
        let mut todo: Vec<_> = roots.iter().map(|(_, e)| e.node.clone()).collect();
        while let Some(node) = todo.pop() {
            if !stop.insert(address(&node)) {
                continue;
            }
            if let (true, Some(leaf)) = (node.is_accumulator(), node.func.variable()) {
                let of = node.func.leaf();
                hooks |= of.is_some_and(|m| !m.state.lock().hooks.is_empty());
                hooks |= node.hooks_if_any().is_some();
                if let Some(edge) = leaf.edge()? {
                    ends.push((End::Leaf(leaf), edge));
                }
            }
            todo.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
        }
        if hooks {
            self.refuse(|| "a leaf has hooks on its gradient".into());
        }
        Ok((self.steps.len(), ends))
    }

    /// The slot of memory, if the call used it.
    pub(super) fn find(&self, t: &Tensor) -> Option<usize> {
        self.index.get(&t.storage().id()).copied()
    }
}

fn address(node: &Shared<Node>) -> usize {
    Shared::as_ptr(node) as *const () as usize
}

/// Whether the graph above an edge has been walked through, and what it saved is freed.
fn is_spent(edge: &Edge) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![edge.node.clone()];
    while let Some(node) = todo.pop() {
        if !seen.insert(address(&node)) {
            continue;
        }
        if node.func.saved().is_err() {
            return true;
        }
        todo.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
    }
    false
}

impl Interpreter for Recorder {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let mut step = None;
        if let Some(trace) = &mut *self.0.lock() {
            if trace.thread != thread::current().id() {
                trace.refuse(|| "part of it runs on another thread".into());
            }
            trace.check_looked();
            if trace.refused.is_none() {
                let known = trace.slots.len();
                let x = trace.read(request.x);
                step = match request.kind {
                    RequestKind::Compute { op } => Some((op, x, None)),
                    RequestKind::Into { op, y, metas } => {
                        let y = trace.write(op, &x, y, known)?;
                        Some((op, x, Some((y, metas.iter().cloned().collect()))))
                    }
                    RequestKind::View { .. } => None,
                };
            }
        }
        let out = dispatch::apply(request)?;
        if let (Some((op, x, into)), Some(trace)) = (step, &mut *self.0.lock()) {
            let (y, into) = match into {
                Some((y, metas)) => (y, Some(metas)),
                None => (
                    out.iter().map(|t| trace.value(t, Found::Made)).collect(),
                    None,
                ),
            };
            let keys = &mut trace.keys;
            let key = op.replay().and_then(|r| r.key()).map(|k| {
                match keys.iter().position(|&known| known == k) {
                    Some(i) => i,
                    None => {
                        keys.push(k);
                        keys.len() - 1
                    }
                }
            });
            trace.steps.push(Step {
                op: op.keep(),
                x,
                y,
                into,
                key,
                varies: false,
                number: None,
            });
        }
        Ok(out)
    }
}

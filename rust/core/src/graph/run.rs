//! A program at work: its memory, laid out once, and its tensors, made once.

mod replay;

use super::{After, Output, Program, Source, Step, Value};
use crate::autograd::node::{Backward, Edges};
use crate::autograd::{mode, Edge, Node};
use crate::bail;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Buffer;
use crate::host;
use crate::op::{Grads, Metas, Op, ReplayArgs, TensorMeta};
use crate::storage::{Held, Storage, WeakStorage};
use crate::tensor::Tensor;
use replay::{ReplayPlan, Work};
use smallvec::{smallvec, SmallVec};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A program with its memory.
pub struct Run {
    program: Arc<Program>,
    steps: Vec<Ready>,
    /// The memory of each slot; none where no step uses it.
    memory: Vec<Option<Storage>>,
    /// Where the tensors of a slot stand whose memory is another one in each call.
    places: Vec<Vec<Place>>,
    /// Slots whose memory outlives a call, with the handles that we have on it, and whether the way
    /// back makes it.
    lasting: Vec<(usize, usize, bool)>,
    /// Constants that are written to, and those that are handed out.
    restored: Vec<usize>,
    /// The keys of random numbers that the call has drawn.
    keys: HashMap<usize, [u32; 4]>,
    /// Stands for what is not bound.
    absent: Tensor,
    /// What a GPU is asked for, kept: of the way forth and of the way back.
    plans: [Option<ReplayPlan>; 2],
    /// The slot of each input.
    inputs: Vec<usize>,
}

/// A step whose tensors are there.
pub(super) struct Ready {
    op: Arc<dyn Op>,
    x: Vec<Tensor>,
    y: Vec<Tensor>,
    into: Option<Metas>,
    key: Option<usize>,
    /// Memory on a GPU whose contents nobody reads after it.
    done: Vec<Storage>,
}

#[derive(Clone, Copy)]
struct Place {
    step: usize,
    output: bool,
    at: usize,
}

/// Blocks that slots share whose times do not overlap.
fn blocks(program: &Program) -> Vec<Option<usize>> {
    let first = program.first_writes();
    let last = program.last_uses();
    let from = program.steps_forward();
    let shared = |s: usize| {
        let slot = &program.slots[s];
        matches!(slot.source, Source::Made) && !slot.escapes && first[s].is_some()
    };
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); program.steps.len()];
    let mut starts = ends.clone();
    for s in (0..program.slots.len()).filter(|&s| shared(s)) {
        if let (Some(a), Some(b)) = (first[s], last[s]) {
            starts[a].push(s);
            ends[b].push(s);
        }
    }
    // A block is reused for what is not much smaller, so that small tensors do not hold large ones.
    let mut free: Vec<usize> = Vec::new();
    let mut sizes: Vec<(usize, Device)> = Vec::new();
    let mut of = vec![None; program.slots.len()];
    for step in 0..program.steps.len() {
        for &s in &starts[step] {
            let (bytes, device) = (program.slots[s].bytes, program.slots[s].device);
            let fits = |b: &usize| {
                sizes[*b].1 == device && sizes[*b].0 >= bytes && sizes[*b].0 / 4 <= bytes
            };
            let found = (0..free.len()).filter(|&i| fits(&free[i]));
            let block = match found.min_by_key(|&i| sizes[free[i]].0) {
                Some(i) => free.swap_remove(i),
                None => {
                    sizes.push((bytes, device));
                    sizes.len() - 1
                }
            };
            of[s] = Some(block);
        }
        // What the way back needs stays: it may be gone more than once.
        let stays = |s: &usize| first[*s].is_some_and(|f| f < from) && step >= from;
        free.extend(
            ends[step]
                .iter()
                .filter(|s| !stays(s))
                .filter_map(|&s| of[s]),
        );
    }
    of
}

/// Memory that programs share which never run at the same time.
#[derive(Default)]
pub(super) struct Arena(Vec<WeakStorage>);

impl Arena {
    /// A block that is none of those `taken`, which it then is.
    fn block(&mut self, bytes: usize, device: Device, taken: &mut Vec<usize>) -> Result<Storage> {
        self.0.retain(|b| b.upgrade().is_some());
        let free = self.0.iter().filter_map(WeakStorage::upgrade).filter(|b| {
            let fits = b.bytes() >= bytes && b.bytes() / 4 <= bytes;
            fits && b.device() == device && !taken.contains(&b.id())
        });
        let block = match free.min_by_key(Storage::bytes) {
            Some(block) => block,
            None => {
                let block = Storage::empty(bytes, device)?;
                self.0.push(block.downgrade());
                block
            }
        };
        taken.push(block.id());
        Ok(block)
    }
}

impl Run {
    pub fn new(program: Arc<Program>) -> Result<Run> {
        Run::within(program, &mut Arena::default())
    }

    /// With the memory of others that never run at the same time.
    pub(super) fn within(program: Arc<Program>, arena: &mut Arena) -> Result<Run> {
        let shared = blocks(&program);
        let mut blocks: Vec<Option<Storage>> = Vec::new();
        let mut sizes: Vec<usize> = Vec::new();
        for (s, b) in shared.iter().enumerate() {
            if let Some(b) = *b {
                sizes.resize(sizes.len().max(b + 1), 0);
                sizes[b] = sizes[b].max(program.slots[s].bytes);
            }
        }
        blocks.resize(sizes.len(), None);
        let mut taken = Vec::new();
        let mut run = Run {
            steps: Vec::with_capacity(program.steps.len()),
            memory: vec![None; program.slots.len()],
            places: vec![Vec::new(); program.slots.len()],
            lasting: Vec::new(),
            restored: Vec::new(),
            keys: HashMap::new(),
            absent: Tensor::empty(&[0], DType::U8, Device::Cpu)?,
            plans: [None, None],
            inputs: Vec::new(),
            program,
        };
        let used = run.program.last_uses();
        for (s, slot) in run.program.slots.iter().enumerate() {
            run.memory[s] = match &slot.source {
                &Source::Input(i) => {
                    run.inputs.resize(run.inputs.len().max(i + 1), s);
                    run.inputs[i] = s;
                    None
                }
                Source::State(storage) => Some(storage.clone()),
                Source::Constant(start) if !slot.written && !slot.escapes => {
                    Some(start.storage().clone())
                }
                Source::Constant(_) => {
                    run.restored.push(s);
                    Some(Storage::empty(slot.bytes, slot.device)?)
                }
                Source::Made if used[s].is_none() => None,
                Source::Made => match shared[s] {
                    None => Some(Storage::empty(slot.bytes, slot.device)?),
                    Some(b) => {
                        if blocks[b].is_none() {
                            blocks[b] = Some(arena.block(sizes[b], slot.device, &mut taken)?);
                        }
                        blocks[b].clone()
                    }
                },
            };
        }
        drop(blocks);
        for (i, step) in run.program.steps.iter().enumerate() {
            for (output, values) in [(false, &step.x), (true, &step.y)] {
                for (at, v) in values.iter().enumerate() {
                    let slot = &run.program.slots[v.slot];
                    if slot.escapes || matches!(slot.source, Source::Input(_)) {
                        let step = i;
                        run.places[v.slot].push(Place { step, output, at });
                    }
                }
            }
        }
        // Inputs are bound before the first run; until then nothing stands for them.
        let tensor = |v: &Value| match &run.memory[v.slot] {
            Some(storage) => v.tensor(storage),
            None => run.absent.clone(),
        };
        let ready = |step: &Step| Ready {
            op: step.op.clone(),
            x: step.x.iter().map(tensor).collect(),
            y: step.y.iter().map(tensor).collect(),
            into: step.into.clone(),
            key: step.key,
            done: Vec::new(),
        };
        run.steps = run.program.steps.iter().map(ready).collect();
        let (first, from) = (run.program.first_writes(), run.program.steps_forward());
        for s in 0..run.memory.len() {
            let slot = &run.program.slots[s];
            let stays = first[s].is_some_and(|f| f < from) && used[s].is_some_and(|l| l >= from);
            let made = matches!(slot.source, Source::Made) && !slot.escapes && !stays;
            if let (true, Some(m), Some(last)) = (made, &run.memory[s], used[s]) {
                if slot.device != Device::Cpu {
                    run.steps[last].done.push(m.clone());
                }
            }
        }
        for s in 0..run.memory.len() {
            let slot = &run.program.slots[s];
            if let (true, Some(m)) = (slot.escapes, &run.memory[s]) {
                if !matches!(slot.source, Source::State(_)) {
                    let back = first[s].is_some_and(|f| f >= from);
                    run.label(s, m);
                    run.lasting.push((s, m.handles(), back));
                }
            }
        }
        Ok(run)
    }

    /// The bytes that it holds for what steps make.
    pub fn held(&self) -> usize {
        self.held_beside(&mut HashSet::new())
    }

    /// As [`Run::held`], without memory that was `seen`.
    pub(super) fn held_beside(&self, seen: &mut HashSet<usize>) -> usize {
        let slots = self.program.slots.iter().zip(&self.memory);
        let made = slots.filter(|(slot, _)| matches!(slot.source, Source::Made));
        made.filter_map(|(_, m)| m.as_ref())
            .filter(|m| seen.insert(m.id()))
            .map(Storage::bytes)
            .sum()
    }

    /// Binds what is behind memory that is held to input `i`.
    pub(super) fn bind_memory(&mut self, i: usize, storage: &Storage, held: &Held) {
        let s = self.inputs[i];
        let there = |m: &Storage| storage.put_behind(m, held) || m.is_behind(storage);
        if !self.memory[s].as_ref().is_some_and(there) {
            self.bind(s, storage.behind(held));
        }
    }

    /// Gives step `at` an op with other numbers.
    pub(super) fn set_op(&mut self, at: usize, op: Arc<dyn Op>) {
        let old = std::mem::replace(&mut self.steps[at].op, op);
        let new = &self.steps[at].op;
        if self.plans.iter().all(Option::is_none) || **new == *old {
            return;
        }
        let plain = |op: &dyn Op| op.replay()?.without_args();
        let alike = matches!((plain(&**new), plain(&*old)), (Some(a), Some(b)) if *a == *b);
        for plan in self.plans.iter_mut().flatten() {
            plan.forget(at, alike);
        }
    }

    /// Runs all steps.
    pub(super) fn all_steps(&mut self) -> Result<()> {
        self.steps(0..self.program.steps.len())
    }

    /// Tells a GPU what the memory of a result is for.
    fn label(&self, s: usize, memory: &Storage) {
        if let Some(p) = self.places[s].iter().find(|p| p.output) {
            let meta = &self.program.steps[p.step].y[p.at].meta;
            memory.label(meta.shape(), meta.dtype());
        }
    }

    /// Gives slot `s` other memory.
    fn bind(&mut self, s: usize, storage: Storage) {
        for p in &self.places[s] {
            let (planned, ready) = (&self.program.steps[p.step], &mut self.steps[p.step]);
            match p.output {
                false => ready.x[p.at] = planned.x[p.at].tensor(&storage),
                true => ready.y[p.at] = planned.y[p.at].tensor(&storage),
            }
        }
        self.memory[s] = Some(storage);
    }

    /// Runs the program on these inputs, which [fit](Run::misfit), and gives its results.
    pub fn call(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.bind_inputs(0, inputs);
        let program = self.program.clone();
        for leaf in &self.program.leaves {
            if leaf.after != After::Same && leaf.before.flatten().is_none() {
                leaf.tensor.set_grad(None);
            }
        }
        self.keys.clear();
        self.renew(false)?;
        self.restore()?;
        self.steps(0..program.steps_forward())?;
        for slot in &self.program.slots {
            match (&slot.source, slot.written) {
                (Source::State(storage), true) => storage.bump_version(),
                (Source::Input(i), true) => inputs[*i].bump_version(),
                _ => {}
            }
        }
        for leaf in &self.program.leaves {
            match &leaf.after {
                After::Same => {}
                After::Gone => leaf.tensor.set_grad(None),
                After::Made(v) => leaf.tensor.set_grad(Some(self.made(v)?)),
            }
        }
        let outputs = self.program.outputs.iter().map(|o| match o {
            Output::Kept(t) => Ok(t.clone()),
            Output::Given(i) => Ok(inputs[*i].clone()),
            Output::Made(v, spent) => {
                let t = self.made(v)?;
                if let Some(name) = spent {
                    let (node, nr) = (Spent::node(name, &t), 0);
                    t.set_edge(Edge { node, nr });
                }
                Ok(t)
            }
        });
        outputs.collect()
    }

    pub(super) fn made(&self, v: &Value) -> Result<Tensor> {
        match &self.memory[v.slot] {
            Some(storage) => Ok(v.tensor(storage)),
            None => bail!(Assertion, "a result without memory"),
        }
    }

    /// Gives the slots of inputs from number `first` on their memory.
    pub(super) fn bind_inputs(&mut self, first: usize, inputs: &[Tensor]) {
        for s in 0..self.program.slots.len() {
            let Source::Input(i) = self.program.slots[s].source else {
                continue;
            };
            let Some(new) = i.checked_sub(first).and_then(|i| inputs.get(i)) else {
                continue;
            };
            if !self.memory[s]
                .as_ref()
                .is_some_and(|m| m.same(new.storage()))
            {
                self.bind(s, new.storage().clone());
            }
        }
    }

    /// Gives results other memory where somebody still has that of the call before: those of the way
    /// `back`, or the others.
    pub(super) fn renew(&mut self, back: bool) -> Result<()> {
        for i in 0..self.lasting.len() {
            let (s, own, of) = self.lasting[i];
            let taken = |m: &Storage| m.handles() > own;
            if of == back && self.memory[s].as_ref().is_none_or(taken) {
                let slot = &self.program.slots[s];
                let fresh = Storage::empty(slot.bytes, slot.device)?;
                self.label(s, &fresh);
                self.bind(s, fresh);
            }
        }
        Ok(())
    }

    /// Leaves the memory of gradients to whoever has them.
    pub(super) fn give_away(&mut self) {
        for i in 0..self.lasting.len() {
            let (s, _, true) = self.lasting[i] else {
                continue;
            };
            for p in &self.places[s] {
                let ready = &mut self.steps[p.step];
                match p.output {
                    false => ready.x[p.at] = self.absent.clone(),
                    true => ready.y[p.at] = self.absent.clone(),
                }
            }
            self.memory[s] = None;
        }
    }

    /// What others can write to and the way back reads, with the versions that it has now.
    pub(super) fn versions(&self) -> Vec<(usize, u32)> {
        let from = self.program.steps_forward();
        let mut read: Vec<usize> = Vec::new();
        for step in &self.program.steps[from..] {
            read.extend(step.x.iter().map(|v| v.slot));
        }
        read.sort_unstable();
        read.dedup();
        let first = self.program.inputs.len();
        let open = |s: &usize| {
            let slot = &self.program.slots[*s];
            match slot.source {
                Source::State(_) => true,
                Source::Input(i) => i < first,
                _ => slot.escapes && self.lasting.contains(&(*s, self.own(*s), false)),
            }
        };
        let read = read.into_iter().filter(open);
        read.filter_map(|s| Some((s, self.memory[s].as_ref()?.version())))
            .collect()
    }

    fn own(&self, s: usize) -> usize {
        let found = self.lasting.iter().find(|l| l.0 == s);
        found.map_or(0, |l| l.1)
    }

    /// The memory of a slot.
    pub(super) fn memory(&self, s: usize) -> Option<&Storage> {
        self.memory[s].as_ref()
    }

    fn restore(&self) -> Result<()> {
        for &s in &self.restored {
            if let (Source::Constant(start), Some(m)) =
                (&self.program.slots[s].source, &self.memory[s])
            {
                super::record::whole(m).write_from(start)?;
            }
        }
        Ok(())
    }

    /// Runs these steps.
    pub(super) fn steps(&mut self, which: Range<usize>) -> Result<()> {
        if which.is_empty() {
            return Ok(());
        }
        let on_host = self.program.on_host();
        let mut calls = Calls(&mut self.keys);
        let work = Work {
            steps: &self.steps,
            memory: &self.memory,
        };
        let plan = &mut self.plans[(which.start > 0) as usize];
        if !on_host && !plan.as_ref().is_some_and(|r| r.is_of(&which)) {
            *plan = ReplayPlan::new(&self.program, which.clone());
        }
        // What works for a GPU may ask the host for its place.
        mode::with_grad(false, || match plan {
            Some(plan) => plan.run(&work, &mut calls),
            None if on_host => host::unlocked(|| work.perform(which, &mut calls)),
            None => work.perform(which, &mut calls),
        })
    }

    /// How many dispatches of a GPU are kept, to be recorded again without asking the ops.
    pub fn kept(&self) -> usize {
        self.plans.iter().flatten().map(ReplayPlan::kept).sum()
    }
}

/// What asks the ops of steps, with the keys of random numbers that the call has drawn.
pub(super) struct Calls<'a>(&'a mut HashMap<usize, [u32; 4]>);

impl Calls<'_> {
    fn op(&mut self, step: &Ready) -> Arc<dyn Op> {
        let keyed = step.key.and_then(|k| keyed(&*step.op, self.0, k));
        keyed.unwrap_or_else(|| step.op.clone())
    }

    /// Runs a step.
    pub fn perform(&mut self, step: &Ready) -> Result<()> {
        let x: SmallVec<[&Tensor; 8]> = step.x.iter().collect();
        dispatch::perform(&*self.op(step), &x, &step.y, step.into.as_deref())?;
        step.done
            .iter()
            .filter_map(Storage::buffer)
            .for_each(Buffer::mark_dead);
        Ok(())
    }

    /// The arguments of kernels that are kept.
    pub fn replay_args(&mut self, step: &Ready) -> Result<ReplayArgs> {
        let x: SmallVec<[&Tensor; 8]> = step.x.iter().collect();
        match self.op(step).replay() {
            Some(replay) => replay.args(&x),
            None => Ok(ReplayArgs::new()),
        }
    }
}

/// The op of a step with the key of this call, which its first user draws.
fn keyed(op: &dyn Op, keys: &mut HashMap<usize, [u32; 4]>, k: usize) -> Option<Arc<dyn Op>> {
    let op = op.replay()?.with_key(keys.get(&k).copied())?;
    if let Some(key) = op.replay()?.key() {
        keys.insert(k, key);
    }
    Some(op)
}

/// For each input the first that lies in its memory.
pub(super) fn sharing(inputs: &[Tensor]) -> SmallVec<[usize; 8]> {
    let first = |t: &Tensor| inputs.iter().position(|i| i.shares_storage(t));
    inputs.iter().filter_map(first).collect()
}

/// The node of a result whose graph was walked through while it was recorded.
struct Spent(String);

impl Spent {
    fn node(name: &str, t: &Tensor) -> crate::shared::Shared<Node> {
        let outputs: SmallVec<[TensorMeta; 1]> = smallvec![TensorMeta::of(t)];
        Node::new(Edges::new(), outputs, Spent(name.into()))
    }
}

impl Backward for Spent {
    fn name(&self) -> String {
        self.0.clone()
    }
    fn backward(&self, _node: &Node, _g: Grads) -> Result<Grads> {
        bail!(
            Runtime,
            "Trying to backward through the graph a second time: the function that \
             torch.graph recorded walks through it itself, and what it saved is freed."
        )
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

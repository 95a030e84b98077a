//! A program at work: its memory, laid out once, and its tensors, made once.

use super::{After, Output, Program, Source, Step, Value};
use crate::autograd::node::{Backward, Edges};
use crate::autograd::{mode, Edge, Node};
use crate::bail;
use crate::device::Device;
use crate::dispatch;
use crate::error::Result;
use crate::host;
use crate::op::{Grads, Metas, Op, TensorMeta};
use crate::storage::Storage;
use crate::tensor::Tensor;
use smallvec::{smallvec, SmallVec};
use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

/// A program with its memory.
pub struct Run {
    program: Program,
    steps: Vec<Ready>,
    /// The memory of each slot; none where no step uses it.
    memory: Vec<Option<Storage>>,
    /// Where the tensors of a slot stand whose memory is another one in each call.
    places: Vec<Vec<Place>>,
    /// Memory of slots that outlive a call, with the handles that we have on it.
    lasting: Vec<(usize, usize)>,
    /// Constants that are written to, and those that are handed out.
    restored: Vec<usize>,
    /// The memory that inputs must not be.
    states: HashSet<usize>,
}

/// A step whose tensors are there.
struct Ready {
    op: Arc<dyn Op>,
    x: Vec<Tensor>,
    y: Vec<Tensor>,
    into: Option<Metas>,
    rate: Option<usize>,
}

#[derive(Clone, Copy)]
struct Place {
    step: usize,
    output: bool,
    at: usize,
}

/// Blocks that slots share whose times do not overlap.
fn blocks(program: &Program) -> Vec<Option<usize>> {
    let mut first = vec![None; program.slots.len()];
    for (i, step) in program.steps.iter().enumerate() {
        for v in &step.y {
            first[v.slot].get_or_insert(i);
        }
    }
    let last = program.last_uses();
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
        free.extend(ends[step].iter().filter_map(|&s| of[s]));
    }
    of
}

impl Run {
    pub fn new(mut program: Program) -> Result<Run> {
        program.fuse();
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
        let mut run = Run {
            steps: Vec::with_capacity(program.steps.len()),
            memory: vec![None; program.slots.len()],
            places: vec![Vec::new(); program.slots.len()],
            lasting: Vec::new(),
            restored: Vec::new(),
            states: HashSet::new(),
            program,
        };
        let used = run.program.last_uses();
        for (s, slot) in run.program.slots.iter().enumerate() {
            run.memory[s] = match &slot.source {
                Source::Input(_) => None,
                Source::State(storage) => {
                    run.states.insert(storage.id());
                    Some(storage.clone())
                }
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
                            blocks[b] = Some(Storage::empty(sizes[b], slot.device)?);
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
        let absent = Tensor::empty(&[0], crate::dtype::DType::U8, Device::Cpu)?;
        let tensor = |v: &Value| match &run.memory[v.slot] {
            Some(storage) => v.tensor(storage),
            None => absent.clone(),
        };
        let ready = |step: &Step| Ready {
            op: step.op.clone(),
            x: step.x.iter().map(tensor).collect(),
            y: step.y.iter().map(tensor).collect(),
            into: step.into.clone(),
            rate: step.rate,
        };
        run.steps = run.program.steps.iter().map(ready).collect();
        for s in 0..run.memory.len() {
            let slot = &run.program.slots[s];
            if let (true, Some(m)) = (slot.escapes, &run.memory[s]) {
                if !matches!(slot.source, Source::State(_)) {
                    run.lasting.push((s, m.handles()));
                }
            }
        }
        Ok(run)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The bytes that it holds for what steps make.
    pub fn held(&self) -> usize {
        let mut seen = HashSet::new();
        let slots = self.program.slots.iter().zip(&self.memory);
        let made = slots.filter(|(slot, _)| matches!(slot.source, Source::Made));
        made.filter_map(|(_, m)| m.as_ref())
            .filter(|m| seen.insert(m.id()))
            .map(Storage::bytes)
            .sum()
    }

    /// Why a call with these inputs is not the recorded one; `None` where it is.
    pub fn misfit(&self, inputs: &[Tensor]) -> Option<&'static str> {
        if inputs.len() != self.program.inputs.len() {
            return Some("there are more or fewer tensors among the arguments");
        }
        for (t, m) in inputs.iter().zip(&self.program.inputs) {
            if t.meta() != m {
                return Some("an argument has another shape, layout, type or device");
            }
            if self.states.contains(&t.storage().id()) {
                return Some("an argument lies in memory that the program knows otherwise");
            }
        }
        if sharing(inputs) != self.program.sharing {
            return Some("arguments share memory in another way");
        }
        for leaf in &self.program.leaves {
            let now = leaf.tensor.grad();
            let fits = match (&leaf.before, &now) {
                (None, None) => true,
                (Some(None), Some(_)) => true,
                (Some(Some(s)), Some(g)) => self.memory[*s]
                    .as_ref()
                    .is_some_and(|m| m.same(g.storage())),
                _ => false,
            };
            if !fits {
                return Some("a gradient is there, or is another one, that was not");
            }
        }
        None
    }

    /// Puts learning rates in the place of the recorded ones.
    pub fn set_rates(&mut self, rates: &[f64]) {
        if rates == self.program.rates {
            return;
        }
        for step in &mut self.steps {
            let Some(i) = step.rate else { continue };
            if rates[i].to_bits() != self.program.rates[i].to_bits() {
                if let Some(op) = step.op.rated(rates[i]) {
                    step.op = op;
                }
            }
        }
        self.program.rates = rates.to_vec();
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
        for s in 0..self.program.slots.len() {
            if let Source::Input(i) = self.program.slots[s].source {
                let new = inputs[i].storage();
                if !self.memory[s].as_ref().is_some_and(|m| m.same(new)) {
                    self.bind(s, new.clone());
                }
            }
        }
        for leaf in &self.program.leaves {
            if leaf.after != After::Same && leaf.before.flatten().is_none() {
                leaf.tensor.set_grad(None);
            }
        }
        for i in 0..self.lasting.len() {
            let (s, own) = self.lasting[i];
            if self.memory[s].as_ref().is_some_and(|m| m.handles() > own) {
                let slot = &self.program.slots[s];
                let fresh = Storage::empty(slot.bytes, slot.device)?;
                self.bind(s, fresh);
            }
        }
        mode::with_grad(false, || host::unlocked(|| self.steps()))?;
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

    fn made(&self, v: &Value) -> Result<Tensor> {
        match &self.memory[v.slot] {
            Some(storage) => Ok(v.tensor(storage)),
            None => bail!(Assertion, "a result without memory"),
        }
    }

    fn steps(&self) -> Result<()> {
        for &s in &self.restored {
            if let (Source::Constant(start), Some(m)) =
                (&self.program.slots[s].source, &self.memory[s])
            {
                super::record::whole(m).write_from(start)?;
            }
        }
        for (i, step) in self.steps.iter().enumerate() {
            let x: SmallVec<[&Tensor; 8]> = step.x.iter().collect();
            dispatch::perform(&*step.op, &x, &step.y, step.into.as_deref())?;
            if i % 64 == 63 {
                if let Some(e) = host::interruption() {
                    return Err(e);
                }
            }
        }
        Ok(())
    }
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
             torch.compile recorded walks through it itself, and what it saved is freed."
        )
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

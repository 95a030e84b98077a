//! Whole steps of a program: what a function asks for is recorded ([`Recorder`]) and, once two calls
//! asked for the same, made a [`Program`] that [`Run`]s again without the host language.
//!
//! A tensor of a program is a [`Value`]: a slot, which stands for memory, and how that is read. So
//! views need no steps, and what is written in place needs no names of its own.

mod back;
mod build;
mod chain;
mod fuse;
mod group;
#[cfg(test)]
mod laws;
mod paths;
mod record;

mod run;
mod session;
#[cfg(test)]
mod trace;

use group::Group;

pub use back::Runs;
pub use paths::change_settings;
pub use record::{Ending, Recorder, Trace};
pub use run::Run;
pub use session::{backward, set_tiny, settle, Counts, Matched};

use crate::device::Device;
use crate::meta::Meta;
use crate::op::{Metas, Op};
use crate::storage::Storage;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// A tensor of a program: which memory, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub slot: usize,
    pub meta: Meta,
}

impl Value {
    /// The tensor, where `storage` is the memory of the slot.
    pub fn tensor(&self, storage: &Storage) -> Tensor {
        let m = &self.meta;
        let t = Tensor::from_storage(storage.clone(), m.layout().clone(), m.dtype());
        match m.is_wrapped() {
            true => t.with_wrapped(true),
            false => t,
        }
    }
}

/// Where the memory of a slot comes from.
pub enum Source {
    /// That of the caller's tensor of this number.
    Input(usize),
    /// It lives on between calls: parameters, buffers, what an optimiser keeps.
    State(Storage),
    /// The function makes it anew, with what is in this tensor of bytes each time.
    Constant(Tensor),
    /// A step makes it.
    Made,
}

pub struct Slot {
    pub source: Source,
    pub bytes: usize,
    pub device: Device,
    /// Whether a step writes to memory that was there.
    pub written: bool,
    /// Whether it is a result or a gradient, which may outlive the call.
    pub escapes: bool,
}

/// A kernel with what it reads and writes.
#[derive(Clone)]
pub struct Step {
    pub op: Arc<dyn Op>,
    pub x: Vec<Value>,
    pub y: Vec<Value>,
    /// What the op infers, where it writes to memory that is there; `None` where it makes `y`.
    pub into: Option<Metas>,
    /// The number of its key of random numbers, which each call draws anew.
    pub key: Option<usize>,
    /// Whether each call gives it an op with other numbers.
    pub varies: bool,
    /// Which request it answers, where it is the step of one.
    pub number: Option<usize>,
}

/// What a function returns.
pub enum Output {
    /// This very tensor, which was there before.
    Kept(Tensor),
    /// The input of this number itself.
    Given(usize),
    /// A new tensor. With the name of its node where that has been walked through backward.
    Made(Value, Option<String>),
}

/// What becomes of the gradient of a leaf in the call.
pub struct Leaf {
    pub tensor: Tensor,
    /// Whether there is one when the call begins, and its slot where a step reads or writes it.
    pub before: Option<Option<usize>>,
    pub after: After,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// What it was.
    Same,
    Gone,
    /// A new tensor, with the version that it has got.
    Made(Value),
}

/// A recorded call: kernels in their order, and what is there afterwards.
pub struct Program {
    pub(crate) inputs: Vec<Meta>,
    /// For each input the first that lies in its memory.
    pub(crate) sharing: SmallVec<[usize; 8]>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) leaves: Vec<Leaf>,
    /// The way back from results that have a graph, where there are any.
    pub(crate) back: Option<Back>,
}

/// The second part of a program: from gradients of results to gradients of what went in.
#[derive(Clone)]
pub struct Back {
    /// The first of its steps.
    pub from: usize,
    /// The results that have a graph, and what stands for their gradients.
    pub roots: Vec<(usize, Value)>,
    /// Where gradients go, and which.
    pub ends: Vec<(End, Option<Value>)>,
}

/// Where the graph of a call begins.
#[derive(Clone)]
pub enum End {
    Input(usize),
    Leaf(Tensor),
}

impl Program {
    /// Steps over slots, of which inputs are bound in each call.
    fn of(slots: Vec<Slot>, steps: Vec<Step>) -> Program {
        Program {
            inputs: Vec::new(),
            sharing: SmallVec::new(),
            slots,
            steps,
            outputs: Vec::new(),
            leaves: Vec::new(),
            back: None,
        }
    }

    /// What the caller's tensors must look like.
    pub fn inputs(&self) -> &[Meta] {
        &self.inputs
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Puts other steps in the place of all, such as fewer that do the same. Slots that no step uses
    /// any more get no memory.
    pub fn set_steps(&mut self, steps: Vec<Step>) {
        self.steps = steps;
    }

    /// Steps over elements of one shape become one, with the same results.
    pub fn fuse(&mut self) {
        let (steps, from) = fuse::fused(self, None);
        self.steps = steps;
        if let Some(back) = &mut self.back {
            back.from = from;
        }
    }

    /// Chains that lie before or after a kernel, and those that ran in its tiles the last time.
    pub fn beside(&self) -> [usize; 2] {
        let groups = self.steps.iter().filter_map(|s| {
            let op: &dyn Any = &*s.op;
            op.downcast_ref::<Group>()
        });
        groups
            .map(Group::chains)
            .fold([0; 2], |[n, t], [m, u]| [n + m, t + u])
    }

    /// For each slot the first step that writes to it.
    pub fn first_writes(&self) -> Vec<Option<usize>> {
        let mut first = vec![None; self.slots.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for v in &step.y {
                first[v.slot].get_or_insert(i);
            }
        }
        first
    }

    /// For each slot the last step that uses it.
    pub fn last_uses(&self) -> Vec<Option<usize>> {
        let mut last = vec![None; self.slots.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for v in step.x.iter().chain(&step.y) {
                last[v.slot] = Some(i);
            }
        }
        last
    }

    /// Whether all of it lies in memory of the host.
    fn on_host(&self) -> bool {
        self.slots.iter().all(|s| s.device == Device::Cpu)
    }

    /// How many steps there are before those of the way back.
    pub fn steps_forward(&self) -> usize {
        self.back.as_ref().map_or(self.steps.len(), |b| b.from)
    }

    /// Whether results have a graph.
    pub fn is_differentiable(&self) -> bool {
        self.back.is_some()
    }

    /// Whether steps draw random numbers.
    pub fn draws(&self) -> bool {
        self.steps
            .iter()
            .any(|s| s.op.traits().draws || s.key.is_some())
    }

    /// The memory that lives on between calls.
    fn states(&self) -> impl Iterator<Item = &Storage> {
        self.slots.iter().filter_map(|s| match &s.source {
            Source::State(m) => Some(m),
            _ => None,
        })
    }

    /// Why a call with these inputs is not the recorded one; `None` where it is.
    pub fn misfit(&self, inputs: &[Tensor]) -> Option<&'static str> {
        if inputs.len() != self.inputs.len() {
            return Some("there are more or fewer tensors among the arguments");
        }
        let states: SmallVec<[&Storage; 32]> = self.states().collect();
        let writes = self.slots.iter().any(|s| s.written);
        // One array's memory may be behind two storages.
        let meets = |a: &Storage, b: &Storage| writes && a.meets(b);
        for (t, m) in inputs.iter().zip(&self.inputs) {
            if t.meta() != m {
                return Some("an argument has another shape, layout, type or device");
            }
            let own = t.storage();
            if states.iter().any(|s| s.same(own) || meets(s, own))
                || inputs.iter().any(|other| meets(other.storage(), own))
            {
                return Some("an argument lies in memory that the program knows otherwise");
            }
        }
        if run::sharing(inputs) != self.sharing {
            return Some("arguments share memory in another way");
        }
        for leaf in &self.leaves {
            if leaf.after == After::Same && !matches!(leaf.before, Some(Some(_))) {
                continue;
            }
            let now = leaf.tensor.grad();
            let fits = match (&leaf.before, &now) {
                (None, None) | (Some(None), Some(_)) => true,
                (Some(Some(s)), Some(g)) => match &self.slots[*s].source {
                    Source::State(m) => m.same(g.storage()),
                    _ => false,
                },
                _ => false,
            };
            if !fits {
                return Some("a gradient is there, or is another one, that was not");
            }
        }
        None
    }

    /// The bytes of memory that steps make, each by itself.
    pub fn made(&self) -> usize {
        let made = |s: &&Slot| matches!(s.source, Source::Made);
        self.slots.iter().filter(made).map(|s| s.bytes).sum()
    }
}

//! Whole steps of a program: what a function asks for is recorded ([`Recorder`]) and, once two calls
//! asked for the same, made a [`Program`] that [`Run`]s again without the host language.
//!
//! A tensor of a program is a [`Value`]: a slot, which stands for memory, and how that is read. So
//! views need no steps, and what is written in place needs no names of its own.

mod build;
mod chain;
mod fuse;
#[cfg(test)]
mod laws;
mod record;
mod run;

pub use record::{Ending, Recorder, Trace};
pub use run::Run;

use crate::meta::Meta;
use crate::op::{Metas, Op};
use crate::storage::Storage;
use crate::tensor::Tensor;
use smallvec::SmallVec;
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
    pub device: crate::device::Device,
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
    /// The number of the learning rate that it takes.
    pub rate: Option<usize>,
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

/// What becomes of the gradient of a leaf.
pub struct Leaf {
    pub tensor: Tensor,
    /// Whether there is one when the call begins, and its slot where a step reads or writes it.
    pub before: Option<Option<usize>>,
    pub after: After,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
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
    /// The learning rates that the steps have.
    pub(crate) rates: Vec<f64>,
}

impl Program {
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
        self.steps = fuse::fused(self, None);
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

    /// The bytes of memory that steps make, each by itself.
    pub fn made(&self) -> usize {
        let made = |s: &&Slot| matches!(s.source, Source::Made);
        self.slots.iter().filter(made).map(|s| s.bytes).sum()
    }
}

//! The steps of a run on a GPU, in parts: the dispatches of most are kept ([`CommandList`]) when they are first
//! recorded, and are recorded again without asking any op. What is another thing in each call (a random
//! key, numbers of the host) goes into the parameters of the kept dispatches before that
//! ([`Replay::args`](crate::op::Replay::args)), and so do steps in memory of the host alone. Steps where the host
//! reads or writes memory of the GPU run as they are, between them.

use super::{Calls, Ready};
use crate::device::Device;
use crate::error::Result;
use crate::gpu::{Buffer, CommandList, Gpu};
use crate::graph::{Program, Slot, Source, Value};
use crate::host;
use crate::op::Replay;
use crate::storage::Storage;
use smallvec::SmallVec;
use std::ops::Range;

/// Command lists of a part that may be made in vain.
const TRIES: u8 = 3;

pub(super) struct ReplayPlan {
    gpu: u8,
    steps: Range<usize>,
    /// Of the steps from the first one on, what is known of each.
    kinds: Vec<Kind>,
    /// Whether the arguments of their replays are numbers of the host.
    numbers: Vec<bool>,
    parts: Vec<Part>,
    /// Slots whose memory may be other memory next time.
    open: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It records the same in every call.
    Same,
    /// The same but for the arguments of replays.
    Args,
    /// It works in memory of the host alone.
    Host,
    /// It has to be asked.
    Other,
}

struct Part {
    steps: Range<usize>,
    kept: bool,
    /// The steps that are asked for something although the dispatches are kept.
    asked: Vec<(usize, Kind)>,
    list: Option<CommandList>,
    /// Command lists that were made, less those that were used.
    vain: u8,
}

/// What the steps of a run work on.
pub(super) struct Work<'a> {
    pub steps: &'a [Ready],
    pub memory: &'a [Option<Storage>],
}

impl Work<'_> {
    fn buffer(&self, slot: usize) -> Option<&Buffer> {
        self.memory[slot].as_ref().and_then(Storage::buffer)
    }

    /// Runs steps as they are.
    pub fn perform(&self, steps: Range<usize>, calls: &mut Calls) -> Result<()> {
        for (i, step) in self.steps[steps].iter().enumerate() {
            calls.perform(step)?;
            if i % 64 == 63 {
                interrupted()?;
            }
        }
        Ok(())
    }
}

fn interrupted() -> Result<()> {
    host::interruption().map_or(Ok(()), Err)
}

/// Whether a step on the GPU of this number may find something else next time.
fn varies(slot: &Slot, gpu: u8) -> bool {
    let constant = matches!(slot.source, Source::Constant(_)) && !slot.written && !slot.escapes;
    slot.device != Device::Wgpu(gpu) && !(constant && slot.device == Device::Cpu)
}

impl ReplayPlan {
    /// For these steps of a program; `None` where they are not of one GPU.
    pub fn new(program: &Program, steps: Range<usize>) -> Option<ReplayPlan> {
        let slots = &program.slots;
        let mut gpus = slots.iter().filter_map(|s| match s.device {
            Device::Wgpu(n) => Some(n),
            _ => None,
        });
        let gpu = gpus.next()?;
        if gpus.any(|n| n != gpu) {
            return None;
        }
        let kinds = program.steps[steps.clone()].iter().map(|s| {
            let used = || s.x.iter().chain(&s.y).map(|v: &Value| &slots[v.slot]);
            let drawn = s.key.is_some() || s.op.traits().draws;
            let varied = || used().filter(|slot| varies(slot, gpu));
            let on_host = |slot: &Slot| slot.device == Device::Cpu;
            if used().all(on_host) {
                return Kind::Host;
            }
            // Where nothing is computed nothing is drawn.
            let some = s.y.iter().all(|v| v.meta.numel() > 0);
            // Numbers of the host among its inputs are arguments, and those that are the op's own are not.
            let of_host = |r: &dyn Replay| s.varies && r.args_are_inputs();
            let has_args = s.op.replay().is_some_and(|r| !of_host(r));
            match drawn || varied().next().is_some() {
                true if has_args && some && varied().all(on_host) => Kind::Args,
                false if s.varies && has_args => Kind::Args,
                false if !s.varies => Kind::Same,
                _ => Kind::Other,
            }
        });
        let numbers = program.steps[steps.clone()].iter();
        let numbers = numbers.map(|s| s.op.replay().is_some_and(|r| r.args_are_inputs()));
        let moves = |s: &usize| slots[*s].escapes || matches!(slots[*s].source, Source::Input(_));
        let mut plan = ReplayPlan {
            gpu,
            kinds: kinds.collect(),
            numbers: numbers.collect(),
            steps,
            parts: Vec::new(),
            open: (0..slots.len()).filter(moves).collect(),
        };
        plan.part();
        Some(plan)
    }

    pub fn is_of(&self, steps: &Range<usize>) -> bool {
        self.steps == *steps
    }

    /// Takes the steps apart by their kinds.
    fn part(&mut self) {
        self.parts.clear();
        let mut at = self.steps.start;
        let class = |k: &Kind| match k {
            Kind::Same | Kind::Args | Kind::Host => Kind::Same,
            _ => *k,
        };
        for alike in self.kinds.chunk_by(|a, b| class(a) == class(b)) {
            let kinds = alike.iter().enumerate().map(|(i, k)| (at + i, *k));
            self.parts.push(Part {
                steps: at..at + alike.len(),
                kept: alike[0] != Kind::Other,
                asked: kinds
                    .filter(|(_, k)| matches!(k, Kind::Args | Kind::Host))
                    .collect(),
                list: None,
                vain: 0,
            });
            at += alike.len();
        }
    }

    /// Says that a step has become another one, which differs in arguments of replays alone where it is `alike`.
    pub fn forget(&mut self, step: usize, alike: bool) {
        let kind = step
            .checked_sub(self.steps.start)
            .and_then(|i| self.kinds.get(i));
        if alike && kind == Some(&Kind::Args) {
            return;
        }
        if let Some(part) = self.parts.iter_mut().find(|p| p.steps.contains(&step)) {
            part.list = None;
        }
    }

    /// Runs the steps; `calls` asks those that have to be asked.
    pub fn run(&mut self, work: &Work, calls: &mut Calls) -> Result<()> {
        let gpu = Gpu::at(self.gpu)?;
        let open = self.open.iter().map(|&s| work.buffer(s));
        let open: SmallVec<[Option<&Buffer>; 16]> = open.collect();
        let mut changed = false;
        for part in &mut self.parts {
            interrupted()?;
            if let Some(list) = &mut part.list {
                if !list.fit(gpu, &open) {
                    part.list = None;
                } else if gpu.replays(list) {
                    for &(i, kind) in &part.asked {
                        let step = &work.steps[i];
                        match kind {
                            Kind::Host => calls.perform(step)?,
                            _ => list.tell(i, &calls.replay_args(step)?)?,
                        }
                    }
                    gpu.replay(list)?;
                    part.vain = 0;
                    continue;
                }
            }
            let recorder = match part.kept && part.list.is_none() && part.vain < TRIES {
                true => gpu.record_commands()?,
                false => None,
            };
            let Some(recorder) = recorder else {
                work.perform(part.steps.clone(), calls)?;
                continue;
            };
            let mut same = true;
            for i in part.steps.clone() {
                recorder.begin(i, self.numbers[i - self.steps.start]);
                work.perform(i..i + 1, calls)?;
                if recorder.is_invalid() {
                    self.kinds[i - self.steps.start] = Kind::Other;
                    same = false;
                }
            }
            part.vain += 1;
            if same {
                let known = (0..work.memory.len()).filter_map(|s| work.buffer(s));
                part.list = recorder.finish(known, &open)?;
            }
            changed |= !same;
        }
        if changed {
            self.part();
        }
        Ok(())
    }

    /// How many dispatches and copies are kept.
    pub fn kept(&self) -> usize {
        let lists = self.parts.iter().filter_map(|p| p.list.as_ref());
        lists.map(CommandList::count).sum()
    }
}

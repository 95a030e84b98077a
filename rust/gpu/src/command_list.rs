//! Dispatches kept as they were recorded, to be recorded again without what led to them: the
//! pipelines, bind groups, parameters and grids of a part of a program, and the memory that its
//! kernels had for themselves.

use super::binding::Bound;
use super::buffer::Raw;
use super::buffer::Window;
use super::key::Map;
use super::pipeline::Pipeline;
use super::{clock, Buffer, Gpu};
use crate::bail;
use crate::error::Result;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Words of a parameter block that are others in each call: words of a step, from number `from` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub step: usize,
    /// The first of them in the block.
    pub word: usize,
    pub from: usize,
    pub len: usize,
}

/// Those of a dispatch.
pub(super) type Tolds = SmallVec<[Told; 2]>;

/// Memory that a command uses, by its number among that of the command list, and the bytes that it sees.
pub(super) type Use = (usize, Option<Window>);

// Nearly all are dispatches.
#[allow(clippy::large_enum_variant)]
pub(super) enum Command {
    Dispatch {
        pipeline: Arc<Pipeline>,
        group: wgpu::BindGroup,
        uses: SmallVec<[Use; 6]>,
        params: Range<usize>,
        grid: [u32; 3],
    },
    Copy {
        from: (usize, u64),
        to: (usize, u64),
        bytes: u64,
    },
    Clear {
        of: usize,
        start: u64,
        bytes: Option<u64>,
    },
}

/// What the dispatches of a command list are and use.
#[derive(Default)]
pub(super) struct Recording {
    pub commands: Vec<Command>,
    /// The parameter blocks, one behind the other.
    pub params: Vec<u8>,
    pub memory: Vec<Arc<Raw>>,
    numbers: Map<u64, usize>,
    /// The step whose kernels are asked for, by the caller's number.
    step: usize,
    /// Whether what its op tells are the numbers of the host among its inputs.
    of_numbers: bool,
    /// Words of `params` that each replay writes anew.
    told: Vec<Told>,
    /// The numbers of dispatches that may note an index out of range.
    pub faults: Vec<u32>,
    /// Whether something was done that may be another thing next time.
    pub invalid: bool,
    /// Whether another thread recorded a part of it.
    pub torn: bool,
}

impl Recording {
    fn number(&mut self, raw: &Arc<Raw>) -> usize {
        let memory = &mut self.memory;
        *self.numbers.entry(raw.id).or_insert_with(|| {
            memory.push(raw.clone());
            memory.len() - 1
        })
    }

    fn of(&mut self, b: &Buffer) -> usize {
        self.number(b.raw.as_ref().expect("a live buffer has memory"))
    }

    pub fn dispatch(
        &mut self,
        pipeline: &Arc<Pipeline>,
        group: &wgpu::BindGroup,
        buffers: &[Bound],
        params: &[u8],
        grid: [u32; 3],
        told: &[Told],
    ) {
        let found = buffers.iter().map(Bound::found);
        let uses = found.map(|(raw, window)| (self.number(raw), window));
        let uses = uses.collect();
        let first = self.params.len();
        self.params.extend_from_slice(params);
        let placed = |t: &Told| Told {
            word: first / 4 + t.word,
            ..*t
        };
        self.told.extend(told.iter().map(placed));
        self.commands.push(Command::Dispatch {
            pipeline: pipeline.clone(),
            group: group.clone(),
            uses,
            params: first..self.params.len(),
            grid,
        });
    }

    pub fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), bytes: u64) {
        let (from, to) = ((self.of(from.0), from.1), (self.of(to.0), to.1));
        self.commands.push(Command::Copy { from, to, bytes });
    }

    pub fn clear(&mut self, of: &Buffer, start: u64, bytes: Option<u64>) {
        let of = self.of(of);
        self.commands.push(Command::Clear { of, start, bytes });
    }
}

/// Dispatches that can be recorded again.
pub struct CommandList {
    index: u8,
    life: u32,
    recording: Recording,
    /// What the kernels had for themselves, which nobody else gets meanwhile.
    _own: Vec<Buffer>,
    /// Memory that may be other memory next time, by the caller's numbers.
    open: Vec<Open>,
}

/// A buffer that may be another one next time.
#[derive(Default)]
struct Open {
    /// The numbers of its segments, where they are used.
    at: SmallVec<[Option<usize>; 1]>,
    /// What [`Buffer::step`] says of it.
    step: Option<u64>,
}

impl Open {
    fn is_used(&self) -> bool {
        self.at.iter().any(Option::is_some)
    }
}

/// That what a command list holds may go to other threads, which the compiler takes long to see.
const fn may_go<T: Send + Sync>() {}
const _: () = may_go::<Recording>();
const _: () = may_go::<Buffer>();
// SAFETY: the fields may, as the lines above have the compiler see.
unsafe impl Send for CommandList {}
// SAFETY: the fields may, as the lines above have the compiler see.
unsafe impl Sync for CommandList {}

/// Dispatches of this thread being kept; dropped, they are forgotten.
pub struct CommandRecorder<'a>(&'a Gpu);

impl Drop for CommandRecorder<'_> {
    fn drop(&mut self) {
        self.0.stream.lock().recording = None;
        self.0.recording_thread.store(0, Ordering::Relaxed);
    }
}

/// What tells this thread from others.
fn me() -> usize {
    thread_local! {
        static ME: u8 = const { 0 };
    }
    ME.with(|me| std::ptr::from_ref(me) as usize)
}

impl CommandRecorder<'_> {
    /// Says that what is asked for from now on is of this step, and whether what its op tells are
    /// [numbers](crate::op::Op::tells_numbers).
    pub fn begin(&self, step: usize, numbers: bool) {
        if let Some(recording) = &mut self.0.stream.lock().recording {
            (recording.step, recording.of_numbers) = (step, numbers);
        }
    }

    /// Whether something was done since the last time that cannot be kept.
    pub fn is_invalid(&self) -> bool {
        let mut stream = self.0.stream.lock();
        stream
            .recording
            .as_mut()
            .is_some_and(|f| std::mem::take(&mut f.invalid))
    }

    /// Ends it. `known` is the memory that lives as long as the command list, `open` what may be other memory
    /// next time. `None` where the dispatches use memory that somebody else has.
    pub fn finish<'b>(
        self,
        known: impl Iterator<Item = &'b Buffer>,
        open: &[Option<&'b Buffer>],
    ) -> Result<Option<CommandList>> {
        let gpu = self.0;
        gpu.settle_all()?;
        let recording = gpu.stream.lock().recording.take();
        let Some(mut recording) = recording.filter(|f| !f.invalid && !f.torn) else {
            return Ok(None);
        };
        recording.told.sort_by_key(|t| t.step);
        let known: Vec<u64> = known.flat_map(Buffer::raws).map(|r| r.id).collect();
        let numbers = &recording.numbers;
        let number = |raw: &Arc<Raw>| numbers.get(&raw.id).copied();
        let opened = |b: &Buffer| Open {
            at: b.raws().map(number).collect(),
            step: b.step(),
        };
        let open: Vec<Open> = open
            .iter()
            .map(|b| b.map_or_else(Open::default, opened))
            .collect();
        let noted = gpu.fault_memory();
        let mut own = Vec::new();
        for raw in &recording.memory {
            if known.contains(&raw.id) || noted == Some(raw.id) {
                continue;
            }
            if !gpu.pool.lock().claim(raw) {
                return Ok(None);
            }
            own.push(Buffer::new(gpu, raw.clone(), raw.buffer.size()));
        }
        Ok(Some(CommandList {
            index: gpu.index,
            life: gpu.life,
            recording,
            _own: own,
            open,
        }))
    }
}

impl CommandList {
    /// Puts the caller's memory in the place of what it was, by number; false where it does not fit.
    pub fn fit(&mut self, gpu: &Gpu, buffers: &[Option<&Buffer>]) -> bool {
        let mut new: SmallVec<[(usize, &Arc<Raw>); 8]> = SmallVec::new();
        for (open, buffer) in self.open.iter().zip(buffers) {
            if !open.is_used() {
                continue;
            }
            let Some(buffer) = *buffer else { return false };
            let before = new.len();
            let raws = || open.at.iter().zip(buffer.raws());
            for (at, raw) in raws().filter_map(|(at, raw)| at.map(|at| (at, raw))) {
                if raw.id != self.recording.memory[at].id {
                    new.push((at, raw));
                }
            }
            let alike = buffer.step() == open.step && buffer.raws().count() == open.at.len();
            if !alike || new.len() > before && buffer.window().is_some() {
                return false;
            }
        }
        new.is_empty() || self.rebind(gpu, &new)
    }

    fn rebind(&mut self, gpu: &Gpu, new: &[(usize, &Arc<Raw>)]) -> bool {
        let mut memory = self.recording.memory.clone();
        for &(at, raw) in new {
            // The pool gives buffers of more than one size for the same bytes. No kernel asks for the
            // size, but what is larger than a binding is seen through windows.
            let (size, old) = (raw.buffer.size(), memory[at].buffer.size());
            let fits = size == old || size.max(old) <= gpu.info.max_binding;
            if !fits || raw.life != self.life {
                return false;
            }
            memory[at] = raw.clone();
        }
        // Which memory is one and the same is part of the pipelines.
        let once = |id| memory.iter().filter(|m| m.id == id).count() == 1;
        if !new.iter().all(|&(at, _)| once(memory[at].id)) {
            return false;
        }
        let stream = &mut *gpu.stream.lock();
        for command in &mut self.recording.commands {
            if let Command::Dispatch {
                pipeline,
                group,
                uses,
                ..
            } = command
            {
                if uses.iter().any(|u| new.iter().any(|n| n.0 == u.0)) {
                    let bound = uses.iter().map(|&(i, w)| (&*memory[i], w));
                    *group = stream.group(&pipeline.layout, bound.collect());
                }
            }
        }
        self.recording.memory = memory;
        true
    }

    /// Gives the words of a step for the next replay.
    pub fn tell(&mut self, step: usize, words: &[u32]) -> Result<()> {
        let recording = &mut self.recording;
        let first = recording.told.partition_point(|t| t.step < step);
        let own = recording.told[first..]
            .iter()
            .take_while(|t| t.step == step);
        for t in own {
            let Some(new) = words.get(t.from..t.from + t.len) else {
                bail!(Assertion, "a kernel is told more than its op has to tell");
            };
            let at = 4 * t.word;
            recording.params[at..at + 4 * t.len].copy_from_slice(bytemuck::cast_slice(new));
        }
        Ok(())
    }

    /// How many commands it has.
    pub fn count(&self) -> usize {
        self.recording.commands.len()
    }
}

impl Drop for CommandList {
    fn drop(&mut self) {
        if Gpu::now(self.index).is_err() {
            // A forked child must not call the driver that its parent opened.
            std::mem::forget(std::mem::take(&mut self.recording));
        }
    }
}

impl Gpu {
    /// Begins to keep what this thread records; `None` where that cannot be, as where another thread
    /// does or where dispatches are timed.
    pub fn record_commands(&self) -> Result<Option<CommandRecorder<'_>>> {
        if clock::watched() {
            return Ok(None);
        }
        let free =
            self.recording_thread
                .compare_exchange(0, me(), Ordering::Relaxed, Ordering::Relaxed);
        if free.is_err() {
            return Ok(None);
        }
        let recorder = CommandRecorder(self);
        self.settle_all()?;
        self.stream.lock().recording = Some(Recording::default());
        Ok(Some(recorder))
    }

    /// Whether another thread than the one that keeps what it records is asking.
    pub(super) fn is_outside(&self) -> bool {
        let recording_thread = self.recording_thread.load(Ordering::Relaxed);
        recording_thread != 0 && recording_thread != me()
    }

    /// Whether this thread keeps what it records.
    pub(super) fn is_recording(&self) -> bool {
        self.recording_thread.load(Ordering::Relaxed) == me()
    }

    /// The step whose kernels are asked for, where what this thread records is kept.
    pub(super) fn step(&self) -> Option<usize> {
        match self.is_recording() {
            true => self.stream.lock().recording.as_ref().map(|f| f.step),
            false => None,
        }
    }

    /// The step whose kernels are asked for, where its op tells numbers of the host.
    pub(super) fn step_of_numbers(&self) -> Option<usize> {
        match self.is_recording() {
            true => {
                let stream = self.stream.lock();
                let recording = stream.recording.as_ref().filter(|f| f.of_numbers);
                recording.map(|f| f.step)
            }
            false => None,
        }
    }

    /// Says that what this thread does now cannot be kept.
    pub(super) fn invalidate_recording(&self) {
        if self.is_recording() {
            if let Some(recording) = &mut self.stream.lock().recording {
                recording.invalid = true;
            }
        }
    }

    /// Says that another thread is about to record what waited.
    pub(super) fn tear(&self) {
        if let Some(recording) = &mut self.stream.lock().recording {
            recording.torn = true;
        }
    }

    /// Whether a command list can be recorded again now.
    pub fn replays(&self, list: &CommandList) -> bool {
        list.life == self.life && !clock::watched()
    }

    /// Records a command list again.
    pub fn replay(&self, list: &CommandList) -> Result<()> {
        self.settle_all()?;
        self.expect_faults(&list.recording.faults);
        self.stream.lock().replay(&list.recording);
        match self.fault.lock().is_some() {
            true => self.check(),
            false => Ok(()),
        }
    }
}

//! One in-order stream: dispatches are recorded into an open compute pass and submitted in batches.

use super::binding::Bound;
use super::buffer::Raw;
use super::buffer::Window;
use super::clock::{self, Client, Clock, Stamps, Work};
use super::command_list::{Command, Recording, Told};
use super::key::Map;
use super::pipeline::{Layout, Pipeline};
use super::Buffer;
use smallvec::{smallvec, SmallVec};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Uniform space of one batch, and the window that a shader sees of it. A shader's parameter
/// block must fit the window.
const RING: u64 = 128 * 1024;
pub const PARAM_WINDOW: u64 = 1024;
/// Dispatches per submission: few after a wait, when the GPU idles, then more and more.
const FIRST_BATCH: u32 = 16;
const LAST_BATCH: u32 = 64;
/// The same of what is recorded again, in hardly any time.
const LAST_BATCH_AGAIN: u32 = 256;
/// Submissions in flight before the recording thread waits for the oldest.
const MAX_IN_FLIGHT: usize = 8;
/// Bind groups kept. A training step repeats the same ones, since the pool repeats its buffers.
const MAX_BIND_GROUPS: usize = 8192;

#[derive(PartialEq, Eq, Hash)]
struct GroupKey {
    layout: u32,
    buffers: SmallVec<[u64; 8]>,
}

pub(super) struct Stream {
    device: wgpu::Device,
    queue: wgpu::Queue,
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<Pass>,
    /// What comes behind a dispatch whose pipeline is not made yet, with it.
    deferred: Vec<Deferred>,
    ring: wgpu::Buffer,
    params: Vec<u8>,
    align: usize,
    groups: Map<GroupKey, wgpu::BindGroup>,
    pending: u32,
    batch_limit: u32,
    in_flight: VecDeque<wgpu::SubmissionIndex>,
    /// From when dispatches were first timed.
    clock: Option<Clock>,
    /// Of the copy that was recorded last, whose end has no timestamp yet.
    copying: Option<Stamps>,
    /// Number of the open batch; buffers remember the last one that used them.
    pub batch: u64,
    pub stats: StreamStats,
    /// Where what one thread records is kept.
    pub recording: Option<Recording>,
}

/// An open pass.
struct Pass {
    own: wgpu::ComputePass<'static>,
    /// The number of the pipeline that was set last.
    pipeline: u64,
}

/// What waits for pipelines.
enum Deferred {
    Dispatch {
        pipeline: Arc<Pipeline>,
        group: wgpu::BindGroup,
        offset: u32,
        grid: [u32; 3],
    },
    Transfer(Transfer),
}

/// What a GPU does without a kernel.
pub enum Transfer {
    /// Bytes of a buffer from a place on go to another's.
    Copy {
        from: (wgpu::Buffer, u64),
        to: (wgpu::Buffer, u64),
        bytes: u64,
    },
    /// Bytes of a buffer from a place on become zero, or all that follow.
    Clear {
        of: wgpu::Buffer,
        start: u64,
        bytes: Option<u64>,
    },
}

impl Transfer {
    fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        match self {
            Transfer::Copy { from, to, bytes } => {
                encoder.copy_buffer_to_buffer(&from.0, from.1, &to.0, to.1, *bytes);
            }
            Transfer::Clear { of, start, bytes } => encoder.clear_buffer(of, *start, *bytes),
        }
    }
}

/// A binding's memory, and the bytes of it.
type Entry<'a> = (&'a Raw, Option<Window>);

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStats {
    pub dispatches: u64,
    /// How often the host waited until the GPU had done all that was asked for, or came to a mark.
    pub waits: u64,
    pub submissions: u64,
    pub bind_groups: u64,
    pub pipelines: u64,
    /// Those of them that are kept.
    pub kept_pipelines: u64,
    /// Bytes of the texts that they were made of.
    pub shader_bytes: u64,
}

impl Stream {
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Stream {
        let ring = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("params"),
            size: RING + PARAM_WINDOW,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let align = device.limits().min_uniform_buffer_offset_alignment as usize;
        Stream {
            device: device.clone(),
            queue: queue.clone(),
            encoder: None,
            pass: None,
            deferred: vec![],
            ring,
            params: Vec::with_capacity(RING as usize),
            align,
            groups: Map::default(),
            pending: 0,
            batch_limit: FIRST_BATCH,
            in_flight: VecDeque::new(),
            clock: None,
            copying: None,
            batch: 1,
            stats: StreamStats::default(),
            recording: None,
        }
    }

    /// Records one dispatch; submits when the batch is full. Where it is `kept` it goes into the recording too,
    /// with what it is told anew each time.
    pub fn dispatch(
        &mut self,
        pipeline: &Arc<Pipeline>,
        buffers: &[Bound],
        params: &[u8],
        grid: [u32; 3],
        kept: Option<&[Told]>,
        work: impl FnOnce() -> Work,
    ) {
        let timed = self.timed();
        let offset = self.block(params);
        let found = buffers.iter().map(Bound::found);
        let entries = found.map(|(raw, window)| (&**raw, window));
        let group = self.group(&pipeline.layout, entries.collect());
        let stamps = match &mut self.clock {
            Some(clock) if timed => Some(clock.begin(work())),
            _ => None,
        };
        if timed {
            self.encode(pipeline, &group, offset, grid, stamps);
            self.pass = None;
        } else {
            self.put(pipeline, &group, offset, grid);
        }
        for bound in buffers {
            bound.buffer.mark(self.batch);
        }
        if let (Some(recording), Some(told)) = (&mut self.recording, kept) {
            recording.dispatch(pipeline, &group, buffers, params, grid, told);
        }
        self.count(LAST_BATCH);
    }

    /// Puts a parameter block into the ring, where there is room; tells where it begins.
    fn block(&mut self, params: &[u8]) -> u32 {
        if self.params.len() + params.len() + self.align > RING as usize {
            self.flush();
        }
        let offset = self.params.len();
        self.params.extend_from_slice(params);
        let padded = self.params.len().next_multiple_of(self.align);
        self.params.resize(padded, 0);
        offset as u32
    }

    /// The bind group of this memory, made where there is none.
    pub fn group(&mut self, layout: &Layout, entries: SmallVec<[Entry; 8]>) -> wgpu::BindGroup {
        let key = GroupKey {
            layout: layout.id,
            buffers: identities(&entries),
        };
        if self.groups.len() >= MAX_BIND_GROUPS {
            self.groups.clear();
        }
        let (device, ring, stats) = (&self.device, &self.ring, &mut self.stats);
        let group = self.groups.entry(key).or_insert_with(|| {
            stats.bind_groups += 1;
            bind(device, ring, layout, &entries)
        });
        group.clone()
    }

    /// Encodes a dispatch where its pipeline is made and nothing waits before it.
    fn put(
        &mut self,
        pipeline: &Arc<Pipeline>,
        group: &wgpu::BindGroup,
        offset: u32,
        grid: [u32; 3],
    ) {
        if self.deferred.is_empty() && pipeline.is_made() {
            return self.encode(pipeline, group, offset, grid, None);
        }
        self.deferred.push(Deferred::Dispatch {
            pipeline: pipeline.clone(),
            group: group.clone(),
            offset,
            grid,
        });
    }

    /// Encodes what waits, once its pipelines are made.
    fn catch_up(&mut self) {
        for waiting in std::mem::take(&mut self.deferred) {
            match waiting {
                Deferred::Dispatch {
                    pipeline,
                    group,
                    offset,
                    grid,
                } => self.encode(&pipeline, &group, offset, grid, None),
                Deferred::Transfer(transfer) => transfer.encode(self.outside()),
            }
        }
    }

    /// Whether something waits for pipelines that are not made yet.
    pub fn waits(&self) -> bool {
        self.deferred.iter().any(|waiting| match waiting {
            Deferred::Dispatch { pipeline, .. } => !pipeline.is_made(),
            Deferred::Transfer(_) => false,
        })
    }

    /// Records a transfer of so many bytes. `buffers` are those that it touches.
    pub fn transfer(&mut self, transfer: Transfer, buffers: &[&Buffer], bytes: u64) {
        if self.deferred.is_empty() || clock::watched() {
            return transfer.encode(self.encoder(buffers, bytes));
        }
        self.pending += 1;
        buffers.iter().for_each(|buffer| buffer.mark(self.batch));
        self.deferred.push(Deferred::Transfer(transfer));
    }

    fn encode(
        &mut self,
        pipeline: &Pipeline,
        group: &wgpu::BindGroup,
        offset: u32,
        grid: [u32; 3],
        stamps: Option<Stamps>,
    ) {
        // Without one there is a fault, which is told where someone looks.
        let Some(made) = pipeline.made() else { return };
        let (device, encoder) = (&self.device, &mut self.encoder);
        let Pass { own, pipeline: set } = self.pass.get_or_insert_with(|| Pass {
            own: encoder
                .get_or_insert_with(|| device.create_command_encoder(&Default::default()))
                .begin_compute_pass(
                    &stamps
                        .as_ref()
                        .map_or_else(Default::default, clock::describe),
                )
                .forget_lifetime(),
            pipeline: 0,
        });
        if std::mem::replace(set, pipeline.id) != pipeline.id {
            own.set_pipeline(made);
        }
        own.set_bind_group(0, group, &[offset]);
        own.dispatch_workgroups(grid[0], grid[1], grid[2]);
    }

    /// Counts a dispatch; submits when the batch is full, with so many at most.
    fn count(&mut self, most: u32) {
        self.stats.dispatches += 1;
        self.pending += 1;
        // A GPU that waits for pipelines gains nothing by small batches.
        let looks = self.pending.is_multiple_of(FIRST_BATCH);
        let limit = match self.deferred.is_empty() || looks && !self.waits() {
            true => self.batch_limit.min(most),
            false => LAST_BATCH_AGAIN,
        };
        if self.pending >= limit {
            self.flush();
        }
    }

    /// Records again what a recording has.
    pub fn replay(&mut self, recording: &Recording) {
        self.timed();
        let mut seen = 0;
        let mut see = |batch| {
            if std::mem::replace(&mut seen, batch) != batch {
                let each = recording.memory.iter();
                each.for_each(|raw| raw.last_batch.store(batch, Ordering::Relaxed));
            }
        };
        for command in &recording.commands {
            match command {
                Command::Dispatch {
                    pipeline,
                    group,
                    params,
                    grid,
                    ..
                } => {
                    let offset = self.block(&recording.params[params.clone()]);
                    self.put(pipeline, group, offset, *grid);
                    see(self.batch);
                    self.count(LAST_BATCH_AGAIN);
                }
                Command::Copy { from, to, bytes } => {
                    see(self.batch);
                    let memory = |i: usize| recording.memory[i].buffer.clone();
                    let copy = Transfer::Copy {
                        from: (memory(from.0), from.1),
                        to: (memory(to.0), to.1),
                        bytes: *bytes,
                    };
                    self.transfer(copy, &[], *bytes);
                }
                Command::Clear { of, start, bytes } => {
                    see(self.batch);
                    let of = recording.memory[*of].buffer.clone();
                    let size = bytes.unwrap_or(of.size());
                    let (start, bytes) = (*start, *bytes);
                    self.transfer(Transfer::Clear { of, start, bytes }, &[], size);
                }
            }
        }
    }

    /// The encoder outside any pass, for one copy of so many bytes. `buffers` are those that it
    /// touches.
    pub fn encoder(&mut self, buffers: &[&Buffer], bytes: u64) -> &mut wgpu::CommandEncoder {
        let timed = self.timed();
        self.catch_up();
        self.pending += 1;
        buffers.iter().for_each(|buffer| buffer.mark(self.batch));
        self.outside();
        match (&mut self.clock, &mut self.encoder) {
            (Some(clock), Some(encoder)) if timed && clock.copies() => {
                let stamps = clock.begin(Work::new("", smallvec![Client::here()], 0, bytes));
                stamps.write(encoder, 0);
                self.copying = Some(stamps);
            }
            _ => {}
        }
        self.outside()
    }

    /// The encoder outside any pass.
    fn outside(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        let device = &self.device;
        self.encoder
            .get_or_insert_with(|| device.create_command_encoder(&Default::default()))
    }

    /// Ends the timing of a copy.
    fn copied(&mut self) {
        if let (Some(stamps), Some(encoder)) = (self.copying.take(), &mut self.encoder) {
            stamps.write(encoder, 1);
        }
    }

    /// Submits what is recorded.
    pub fn flush(&mut self) {
        self.catch_up();
        self.pass = None;
        self.copied();
        let Some(mut encoder) = self.encoder.take() else {
            return;
        };
        if let Some(clock) = &mut self.clock {
            clock.resolve(&self.device, &mut encoder);
        }
        if !self.params.is_empty() {
            // Ordered after the batch before and ahead of this one, so one ring is enough.
            self.queue.write_buffer(&self.ring, 0, &self.params);
            self.params.clear();
        }
        let index = self.queue.submit([encoder.finish()]);
        self.in_flight.push_back(index);
        self.pending = 0;
        self.batch += 1;
        self.batch_limit = (self.batch_limit * 2).min(LAST_BATCH_AGAIN);
        self.stats.submissions += 1;
        if self.in_flight.len() > MAX_IN_FLIGHT {
            let oldest = self.in_flight.pop_front();
            // An error here is a lost device, which its callback reports.
            let _ = self.device.poll(wgpu::PollType::Wait {
                submission_index: oldest,
                timeout: None,
            });
        }
    }

    /// Submits and waits until the GPU is idle.
    pub fn wait(&mut self) {
        self.flush();
        self.stats.waits += 1;
        self.in_flight.clear();
        self.batch_limit = FIRST_BATCH;
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Whether what comes next is timed.
    fn timed(&mut self) -> bool {
        if self.copying.is_some() {
            self.copied();
        }
        clock::watched() && self.begin_timed()
    }

    /// Ends the pass before one that is timed; false where the adapter has no timestamps.
    #[cold]
    fn begin_timed(&mut self) -> bool {
        match &self.clock {
            None => {
                self.wait();
                self.clock = Clock::new(&self.device, &self.queue);
            }
            Some(clock) if clock.is_full() => self.flush(),
            Some(_) => {
                self.catch_up();
                self.pass = None;
            }
        }
        self.clock.is_some()
    }

    /// What was timed so far; waits until the GPU is idle.
    pub fn works(&mut self) -> Vec<Work> {
        self.wait();
        let device = &self.device;
        self.clock
            .as_mut()
            .map_or(vec![], |c| c.collect(device).to_vec())
    }

    /// Forgets what was timed.
    pub fn forget_works(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.clear();
        }
    }

    /// Forgets the bind groups of these buffers, whose memory they keep alive.
    pub fn forget(&mut self, buffers: &[Arc<Raw>]) {
        if buffers.is_empty() {
            return;
        }
        let gone: HashSet<u64> = buffers.iter().map(|r| r.id).collect();
        self.groups
            .retain(|key, _| !key.buffers.iter().any(|id| gone.contains(id)));
    }

    /// Forgets bind groups, which keep their buffers' memory alive.
    pub fn drop_bind_groups(&mut self) {
        self.groups.clear();
    }
}

/// What tells bindings apart. A window has a number more, which no buffer's identity reaches.
fn identities(entries: &[Entry]) -> SmallVec<[u64; 8]> {
    let mut out = SmallVec::new();
    for (raw, window) in entries {
        out.push(raw.id);
        if let Some(w) = window {
            out.extend([1 << 63 | w.start, w.size]);
        }
    }
    out
}

fn bind(
    device: &wgpu::Device,
    ring: &wgpu::Buffer,
    layout: &Layout,
    entries: &[Entry],
) -> wgpu::BindGroup {
    let params = wgpu::BindGroupEntry {
        binding: 0,
        resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: ring,
            offset: 0,
            size: wgpu::BufferSize::new(PARAM_WINDOW),
        }),
    };
    let storage = entries
        .iter()
        .enumerate()
        .map(|(i, (raw, window))| wgpu::BindGroupEntry {
            binding: i as u32 + 1,
            resource: match window {
                None => raw.buffer.as_entire_binding(),
                Some(w) => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &raw.buffer,
                    offset: w.start,
                    size: wgpu::BufferSize::new(w.size),
                }),
            },
        });
    let entries: SmallVec<[wgpu::BindGroupEntry; 9]> =
        std::iter::once(params).chain(storage).collect();
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &layout.bind_group,
        entries: &entries,
    })
}

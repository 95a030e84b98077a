//! The GPU through wgpu: memory, one stream, shaders, and the drivers of kernels that any op may
//! launch: pointwise bodies, reductions, scans, sorting, copies. Knows nothing of tensors, and no op by
//! name.
//!
//! [`Gpu::at`] opens an adapter on first use. A [`shader!`] is a static beside its launcher; [`Shader::launch`]
//! records it over [`Buffer`]s into an open pass, which is submitted in batches and before any read.

mod adapter;
#[cfg(any(test, feature = "testing"))]
mod backends;
mod binding;
mod buffer;
pub mod centred;
#[cfg(any(test, feature = "testing"))]
mod checks;
mod choice;
pub mod clock;
mod command_list;
mod compile;
pub mod cooperative;
pub mod copy;
mod devices;
mod dispatch;
mod event;
pub mod fault;
mod fuse;
pub mod geometry;
pub mod key;
pub mod launch;
mod memory;
pub mod order;
pub mod pairs;
mod peak;
mod pipeline;
pub mod pipeline_cache;
mod place;
pub mod pointwise;
pub mod present;
pub mod reduce;
pub mod scan;
pub mod shader;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
pub mod tile;
mod transfer;
mod transpose;
pub mod tune;
mod unroll;
pub mod user_wgsl;
mod view;
mod words;

pub use adapter::Info;
pub use binding::Operand;
pub use buffer::{Buffer, BufferUse, Living, MemoryStats, Together, Window};
pub use command_list::{CommandList, CommandRecorder};
pub use dispatch::was_refused;
pub use event::Event;
pub use peak::Peaks;
pub use pipeline::Tail;
pub use shader::{Acc, Shader};
pub use stream::StreamStats;
pub use view::{Scratch, View};

use pytensorlib_base::{
    alloc, bail, device, dtype, ensure, error, host, layout, machine, os, shape,
};

use crate::device::Device;
use crate::error::Result;
use parking_lot::Mutex;
use pipeline::Pipelines;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;
use stream::Stream;

pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: Info,
    fault: adapter::Fault,
    lost: Arc<AtomicBool>,
    /// Its number among all that were opened: another one after a loss.
    life: u32,
    index: u8,
    pub(self) pool: Mutex<buffer::Pool>,
    stream: Mutex<Stream>,
    pipelines: Mutex<Pipelines>,
    /// A mappable buffer kept for small reads.
    staging: Mutex<Option<wgpu::Buffer>>,
    faults: fault::Faults,
    waiting: Mutex<fuse::Waiting>,
    /// [`Info::wide`], which tests change.
    wide: AtomicUsize,
    /// The thread that keeps what it records, where there is one.
    recording_thread: AtomicUsize,
    tuned: tune::Tuned,
    cooperation: cooperative::Allowed,
}

/// How many devices were opened.
static LIVES: AtomicU32 = AtomicU32::new(0);

impl Gpu {
    #[inline]
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Lets go of what a lost device kept for later.
    fn leave(&self) {
        if let Some(mut waiting) = self.waiting.try_lock() {
            *waiting = fuse::Waiting::default();
        }
        if let Some(mut stream) = self.stream.try_lock() {
            stream.drop_bind_groups();
        }
        if let Some(mut pool) = self.pool.try_lock() {
            drop(pool.drain());
        }
    }

    /// Loses the device, as a driver may.
    pub fn lose(&self) {
        *self.fault.lock() = Some(adapter::loss("destroyed"));
        self.lost.store(true, Ordering::Release);
        self.device.destroy();
    }

    /// An error where memory is that of a device that was lost.
    #[inline]
    fn check_alive(&self, buffer: &Buffer) -> Result<()> {
        match buffer.raw().life == self.life {
            true => Ok(()),
            false => Err(adapter::loss("the tensor was made before that")),
        }
    }

    /// At the end of the process: keeps what later runs can use.
    pub fn save(&self) {
        // The compiler must not go away under threads that use it: ours, and one of software Vulkan's own, which
        // compiles what was submitted.
        pipeline::COMPILERS.wait();
        if self.info.software {
            let _ = self.device.poll(wgpu::PollType::Wait {
                submission_index: None,
                timeout: Some(std::time::Duration::from_secs(60)),
            });
        }
        if let Some(cache) = &self.pipelines.lock().cache {
            let _ = cache.save();
        }
        let _ = self.tuned.save();
    }

    /// Its number among the adapters.
    pub fn number(&self) -> u8 {
        self.index
    }

    /// How many devices were opened: one more where a lost one was opened again.
    pub fn openings() -> u32 {
        LIVES.load(Ordering::Relaxed)
    }

    /// Its number among all that were opened: another one after a loss.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// The device whose tensors live here.
    pub fn device(&self) -> Device {
        Device::Wgpu(self.index)
    }

    fn new(
        index: u8,
        o: adapter::Opened,
        tuned: tune::Tuned,
        cooperation: cooperative::Allowed,
    ) -> Gpu {
        let stream = Mutex::new(Stream::new(&o.device, &o.queue));
        let cache = pipeline_cache::PipelineCache::open(&o.device, &o.info);
        let pipelines = Pipelines::new(cache, &o.info, o.fault.clone());
        Gpu {
            lost: o.lost,
            life: LIVES.fetch_add(1, Ordering::Relaxed),
            device: o.device,
            queue: o.queue,
            wide: AtomicUsize::new(o.info.wide),
            info: o.info,
            fault: o.fault,
            index,
            pool: Mutex::default(),
            stream,
            pipelines: Mutex::new(pipelines),
            staging: Mutex::default(),
            faults: fault::Faults::default(),
            waiting: Mutex::default(),
            recording_thread: AtomicUsize::new(0),
            tuned,
            cooperation,
        }
    }

    /// Whether kernels over so many words make several of them in each invocation.
    pub fn is_wide(&self, words: usize) -> bool {
        words >= self.wide.load(Ordering::Relaxed).max(1)
    }

    /// Says from how many words on; tells what was before.
    pub fn set_wide(&self, words: usize) -> Result<usize> {
        self.settle_all()?;
        Ok(self.wide.swap(words, Ordering::Relaxed))
    }

    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The first error that the driver reported since the last call, which may belong to an
    /// earlier command.
    fn check(&self) -> Result<()> {
        match self.fault.lock().take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }

    /// Whether what was recorded waits for pipelines that are not made yet.
    fn is_compiling(&self) -> bool {
        self.stream.lock().waits()
    }

    /// Counts, of all that was asked for so far.
    pub fn stats(&self) -> StreamStats {
        // What goes wrong there shows when its results are asked for.
        let _ = self.settle_all();
        let pipelines = self.pipelines.lock();
        let (kept_pipelines, [made, shader_bytes]) = (pipelines.len() as u64, pipelines.made());
        drop(pipelines);
        StreamStats {
            pipelines: made,
            kept_pipelines,
            shader_bytes,
            ..self.stream.lock().stats
        }
    }

    /// What ran on this GPU while [`clock::watch`] was in force, in order; waits for it.
    pub fn works(&self) -> Result<Vec<clock::Work>> {
        self.settle_all()?;
        let works = self.stream.lock().works();
        self.check().map(|()| works)
    }

    /// Forgets what [`Gpu::works`] tells.
    pub fn forget_works(&self) {
        self.stream.lock().forget_works();
    }

    /// Submits what is recorded and waits for it; reports what failed since the last time.
    pub fn synchronize(&self) -> Result<()> {
        self.settle_all()?;
        self.stream.lock().wait();
        self.check_index()?;
        self.check()
    }

    /// Submits what is recorded without waiting.
    pub fn flush(&self) -> Result<()> {
        self.settle_all()?;
        self.stream.lock().flush();
        self.check()
    }
}

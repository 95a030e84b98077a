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
mod event;
pub mod fault;
mod fuse;
pub mod geometry;
pub mod key;
pub mod launch;
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
pub use event::Event;
pub use peak::Peaks;
pub use pipeline::Tail;
pub use shader::{Acc, Shader};
pub use stream::StreamStats;
pub use view::{Scratch, View};

use pytensorlib_base::{
    alloc, bail, device, dtype, ensure, error, host, layout, machine, os, shape,
};

use crate::device::{gpu_name, gpu_title, Device};
use crate::error::{function_name, Error, Kind, Result};
use crate::shape::Show;
use binding::Bound;
use clock::Client;
use parking_lot::Mutex;
use pipeline::{Kernel, Pipelines};
use smallvec::smallvec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use stream::{Stream, Transfer};

/// The largest piece of one read, which needs a mapped buffer of its size.
const READ_CHUNK: u64 = 32 << 20;
/// Writes above this are submitted at once, since wgpu keeps a copy until then.
const WRITE_FLUSH: usize = 16 << 20;

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

/// An error that is raised again each time.
type Why = (Kind, String);

fn why(e: &Error) -> Why {
    (e.kind, e.to_string())
}

/// An adapter, and its GPU from when it was first asked for.
struct Slot {
    adapter: wgpu::Adapter,
    /// Never freed, also where it is lost and another takes its place.
    gpu: AtomicPtr<Gpu>,
    /// Why it could not be opened.
    failed: Mutex<Option<Why>>,
}

impl Slot {
    fn now(&self) -> Option<&'static Gpu> {
        // SAFETY: what `open` puts there is never freed.
        unsafe { self.gpu.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn open(&self, index: u8) -> Result<&'static Gpu> {
        let mut failed = self.failed.lock();
        let before = self.now();
        if let Some(gpu) = before.filter(|gpu| !gpu.is_lost()) {
            return Ok(gpu);
        }
        if let Some((kind, text)) = &*failed {
            return Err(Error::new(*kind, text.clone()));
        }
        let open = || {
            let opened = adapter::open(&self.adapter)?;
            let ways = format!("{:?}", cooperative::BLOCKS);
            let tuned = tune::Tuned::open(&opened.info, &ways)?;
            Ok::<_, Error>((opened, tuned, cooperative::Allowed::told()?))
        };
        let (opened, tuned, cooperation) = match open() {
            Ok(both) => both,
            Err(e) => {
                // What was there once may come back.
                *failed = before.is_none().then(|| why(&e));
                return Err(e);
            }
        };
        if let Some(lost) = before {
            lost.leave();
        }
        let gpu = Box::leak(Box::new(Gpu::new(index, opened, tuned, cooperation)));
        self.gpu.store(gpu, Ordering::Release);
        Ok(gpu)
    }
}

/// What there is, best first.
static SLOTS: OnceLock<std::result::Result<Vec<Slot>, Why>> = OnceLock::new();
/// Whether this process was forked from one that had asked for them.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Lets a forked child know that it is one.
fn watch_forks() {
    extern "C" fn in_child() {
        // Nothing but an atomic is safe there.
        FORKED.store(true, Ordering::Relaxed);
    }
    crate::os::at_fork(in_child);
}

fn slots() -> Result<&'static [Slot]> {
    ensure!(
        !FORKED.load(Ordering::Relaxed),
        Runtime,
        "Cannot re-initialize wgpu in forked subprocess. To use wgpu with multiprocessing, you \
         must use the 'spawn' start method"
    );
    let find = || {
        watch_forks();
        let slot = |adapter| Slot {
            adapter,
            gpu: AtomicPtr::default(),
            failed: Mutex::default(),
        };
        let adapters = adapter::found().map_err(|e| why(&e))?;
        Ok(adapters.into_iter().map(slot).collect())
    };
    let found = match SLOTS.get() {
        Some(found) => found,
        None => {
            let found = SLOTS.get_or_init(find);
            choice::tell();
            found
        }
    };
    match found {
        Ok(slots) => Ok(slots),
        Err((kind, text)) => Err(Error::new(*kind, text.clone())),
    }
}

/// How many devices were opened.
static LIVES: AtomicU32 = AtomicU32::new(0);

impl Gpu {
    /// The GPU of this number, opened on first use, and anew after it was lost. Fails where there is no such adapter, and in
    /// a forked child.
    pub fn at(index: u8) -> Result<&'static Gpu> {
        let slots = slots()?;
        let Some(slot) = slots.get(index as usize) else {
            bail!(
                Runtime,
                "{0}: invalid device ordinal: there is no {0}:{index}, the last one is {0}:{1}",
                gpu_name(),
                slots.len() - 1
            );
        };
        match slot.now() {
            Some(gpu) if !gpu.is_lost() => Ok(gpu),
            _ => slot.open(index),
        }
    }

    /// The one of this number that was opened last. Fails in a forked child.
    fn now(index: u8) -> Result<Option<&'static Gpu>> {
        Ok(slots()?.get(index as usize).and_then(Slot::now))
    }

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
    fn check_alive(&self, buffer: &Buffer) -> Result<()> {
        match buffer.raw().life == self.life {
            true => Ok(()),
            false => Err(adapter::loss("the tensor was made before that")),
        }
    }

    /// Those in use by now.
    pub fn opened() -> impl Iterator<Item = &'static Gpu> {
        let ours = !FORKED.load(Ordering::Relaxed);
        let slots = SLOTS.get().filter(|_| ours);
        let slots = slots.and_then(|s| s.as_ref().ok()).into_iter().flatten();
        slots.filter_map(|s| s.now().filter(|gpu| !gpu.is_lost()))
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

    /// How many adapters there are that this process can use.
    pub fn count() -> usize {
        slots().map_or(0, <[_]>::len)
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

    // ---- memory ---------------------------------------------------------------------------------

    /// Memory of at least `bytes` (zero asks for one word), with undefined contents. Where no buffer is so
    /// large it is several.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        let class = self.class(bytes as u64);
        if class > self.info.max_buffer {
            return self.alloc_segments(bytes);
        }
        if let Some(raw) = self.pool.lock().reuse(class, self.info.max_binding) {
            return Ok(Buffer::new(self, raw, bytes as u64));
        }
        let within_cap = |pool: &buffer::Pool| {
            pool.cap
                .is_none_or(|cap| pool.stats.reserved + class <= cap)
        };
        self.trim_stale();
        for last in [false, true] {
            if within_cap(&self.pool.lock()) {
                let buffer = self.create(class);
                match self.check() {
                    Ok(()) => {
                        let raw = self.pool.lock().adopt(buffer, class, self.life);
                        return Ok(Buffer::new(self, raw, bytes as u64));
                    }
                    Err(e) if e.kind != Kind::OutOfMemory => return Err(e),
                    Err(_) => {}
                }
            }
            if !last {
                self.pool.lock().stats.retries += 1;
                self.trim();
            }
        }
        self.pool.lock().stats.refused += 1;
        Err(self.no_memory(bytes, "after freeing every unused buffer"))
    }

    /// Memory that is more than one buffer.
    #[cold]
    fn alloc_segments(&self, bytes: usize) -> Result<Buffer> {
        // Software works in the host's memory, of which a driver promises more than there is.
        if self.info.software && alloc::check(bytes, 1).is_err() {
            self.pool.lock().stats.refused += 1;
            return Err(self.no_memory(bytes, "this machine has less now"));
        }
        let step = self.info.max_buffer / Window::ALIGN * Window::ALIGN;
        let mut segments = Vec::new();
        let mut left = bytes as u64;
        while left > 0 {
            let of = left.min(step);
            match self.alloc(of as usize) {
                Ok(segment) => segments.push(segment),
                Err(e) if e.kind == Kind::OutOfMemory => {
                    drop(segments);
                    let most = step as f64 / (1 << 20) as f64;
                    let why = format!("as buffers of {most:.1} MiB, the adapter's largest");
                    return Err(self.no_memory(bytes, &why));
                }
                Err(e) => return Err(e),
            }
            left -= of;
        }
        Buffer::joined(self, segments, step)
            .ok_or_else(|| Error::runtime("wgpu: a buffer has no segments".to_string()))
    }

    /// The size of a buffer for so many bytes, one that can be made and bound whole where they can.
    fn class(&self, bytes: u64) -> u64 {
        let class = buffer::size_class(bytes);
        let limits = [self.info.max_binding, self.info.max_buffer].map(|n| n / 4 * 4);
        let between = |&n: &u64| bytes <= n && n < class;
        limits.into_iter().find(between).unwrap_or(class)
    }

    fn create(&self, class: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: class,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn no_memory(&self, bytes: usize, why: &str) -> Error {
        let pool = self.pool.lock();
        let mib = |b: u64| b as f64 / (1 << 20) as f64;
        let cap = pool
            .cap
            .map_or("none".to_string(), |c| format!("{:.1} MiB", mib(c)));
        Error::new(
            Kind::OutOfMemory,
            format!(
                "{} out of memory. Tried to allocate {:.1} MiB on {} ({why}). {:.1} MiB are in \
                 {} live buffers, {:.1} MiB taken from the driver, cap {cap}.{}",
                gpu_title(),
                mib(bytes as u64),
                self.info.name,
                mib(pool.stats.allocated),
                pool.stats.live,
                mib(pool.stats.reserved),
                listed(&pool.living(10)),
            ),
        )
    }

    /// What all live buffers are for, `n` of them one by one, the largest first.
    pub fn living(&self, n: usize) -> Living {
        self.pool.lock().living(n)
    }

    /// Gives every unused buffer back to the driver (`empty_cache`).
    pub fn trim(&self) {
        // What goes wrong there shows when its results are asked for.
        let _ = self.settle_all();
        let mut stream = self.stream.lock();
        stream.wait();
        stream.drop_bind_groups();
        drop(self.pool.lock().drain());
        drop(stream);
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Gives buffers back that nothing has used for long.
    fn trim_stale(&self) {
        let mut stream = self.stream.lock();
        let mut pool = self.pool.lock();
        if stream.batch >= pool.look_at {
            let old = pool.stale(stream.batch);
            drop(pool);
            stream.forget(&old);
        }
    }

    pub fn memory(&self) -> MemoryStats {
        self.pool.lock().stats
    }

    /// Lets peaks begin anew, at what is held now.
    pub fn reset_peaks(&self) {
        let stats = &mut self.pool.lock().stats;
        (stats.peak_allocated, stats.peak_reserved) = (stats.allocated, stats.reserved);
        stats.peak_live = stats.live;
    }

    /// Lets the sums that grow begin anew.
    pub fn reset_sums(&self) {
        self.pool.lock().stats.since = Default::default();
    }

    /// Limits what is taken from the driver; `None` lifts the limit.
    pub fn set_memory_cap(&self, bytes: Option<u64>) {
        self.pool.lock().cap = bytes;
    }

    /// The limit of what is taken from the driver.
    pub fn memory_cap(&self) -> Option<u64> {
        self.pool.lock().cap
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

    // ---- transfers ------------------------------------------------------------------------------

    /// Copies host bytes into `dst` at a byte offset.
    pub fn write(&self, dst: &Buffer, offset: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.check_alive(dst)?;
        check_range("write", dst, offset, data.len())?;
        if dst.is_segmented() {
            let pieces = dst.pieces(offset, data.len());
            return (pieces.into_iter())
                .try_for_each(|p| self.write(&p.of, p.start, &data[p.range]));
        }
        self.invalidate_recording();
        self.flush_pending([(dst, true)])?;
        let (head, tail) = (offset % 4, (offset + data.len()) % 4);
        let whole_end = offset + data.len() == dst.bytes() as usize;
        if head != 0 || (tail != 0 && !whole_end) {
            // The words at the ends also hold neighbours: go through a buffer of our own.
            let part = self.alloc(data.len())?;
            self.write(&part, 0, data)?;
            return copy::bytes(self, &part, 0, dst, offset, data.len());
        }
        {
            let mut stream = self.stream.lock();
            if dst.last_batch() == stream.batch {
                stream.flush();
            }
            let body = data.len() - tail;
            if body > 0 {
                let at = dst.start() + offset as u64;
                self.queue.write_buffer(dst.wgpu(), at, &data[..body]);
            }
            if tail > 0 {
                let mut word = [0u8; 4];
                word[..tail].copy_from_slice(&data[body..]);
                let at = dst.start() + (offset + body) as u64;
                self.queue.write_buffer(dst.wgpu(), at, &word);
            }
            if data.len() > WRITE_FLUSH {
                self.queue.submit([]);
            }
        }
        self.check()
    }

    /// Copies `src` from a byte offset to the host: submits what is recorded and waits.
    pub fn read(&self, src: &Buffer, offset: usize, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return self.check();
        }
        self.check_alive(src)?;
        check_range("read", src, offset, data.len())?;
        if src.is_segmented() {
            let pieces = src.pieces(offset, data.len());
            return (pieces.into_iter())
                .try_for_each(|p| self.read(&p.of, p.start, &mut data[p.range]));
        }
        self.flush_pending([(src, false)])?;
        // What kernels noted comes with the first piece, so that there is no second wait for it.
        let (noted, mut note) = (self.noted(), fault::NO_NOTE);
        for (i, piece) in data.chunks_mut(READ_CHUNK as usize).enumerate() {
            let also = noted.filter(|_| i == 0).map(|from| (from, &mut note));
            self.read_piece(src, offset + i * READ_CHUNK as usize, piece, also)?;
        }
        self.trim_stale();
        self.judge(note)?;
        self.check()
    }

    /// Reads a part of a buffer, and a note with it, waiting once.
    fn read_piece(
        &self,
        src: &Buffer,
        offset: usize,
        data: &mut [u8],
        note: Option<(&Buffer, &mut fault::Note)>,
    ) -> Result<()> {
        self.invalidate_recording();
        let first = offset / 4 * 4;
        let span = ((offset + data.len()).next_multiple_of(4) - first) as u64;
        let whole = match note {
            Some(_) => span.next_multiple_of(8) + fault::NO_NOTE.len() as u64,
            None => span,
        };
        let kept = self.staging.lock().take().filter(|b| b.size() >= whole);
        let staging = kept.unwrap_or_else(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("read"),
                size: whole.next_power_of_two().max(4096),
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        self.check()?;
        {
            let mut stream = self.stream.lock();
            let noted = note.as_ref().map(|(from, _)| *from);
            let encoder = stream.encoder(&[src, noted.unwrap_or(src)], span);
            let from = src.start() + first as u64;
            encoder.copy_buffer_to_buffer(src.wgpu(), from, &staging, 0, span);
            if let Some(noted) = noted {
                let (to, size) = (span.next_multiple_of(8), fault::NO_NOTE.len() as u64);
                encoder.copy_buffer_to_buffer(noted.wgpu(), noted.start(), &staging, to, size);
            }
            let slice = staging.slice(0..whole);
            stream.flush();
            slice.map_async(wgpu::MapMode::Read, |_| {});
            stream.wait();
        }
        self.check()?;
        {
            let view = staging
                .get_mapped_range(0..whole)
                .map_err(|e| Error::runtime(format!("wgpu: reading back failed: {e:?}")))?;
            data.copy_from_slice(&view[offset - first..offset - first + data.len()]);
            if let Some((_, note)) = note {
                note.copy_from_slice(&view[span.next_multiple_of(8) as usize..]);
            }
        }
        staging.unmap();
        if staging.size() <= 1 << 20 {
            *self.staging.lock() = Some(staging);
        }
        Ok(())
    }

    /// Copies bytes between buffers (or within one, where the ranges must not overlap).
    pub fn copy(
        &self,
        src: &Buffer,
        src_offset: usize,
        dst: &Buffer,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.check_alive(src)?;
        self.check_alive(dst)?;
        check_range("copy", src, src_offset, bytes)?;
        check_range("copy", dst, dst_offset, bytes)?;
        let aligned =
            src_offset.is_multiple_of(4) && dst_offset.is_multiple_of(4) && bytes.is_multiple_of(4);
        let segmented = src.is_segmented() || dst.is_segmented();
        if !aligned || segmented || src.same(dst) {
            return copy::bytes(self, src, src_offset, dst, dst_offset, bytes);
        }
        self.flush_pending([(src, false), (dst, true)])?;
        let from = (src, src.start() + src_offset as u64);
        let to = (dst, dst.start() + dst_offset as u64);
        let mut stream = self.stream.lock();
        let copy = Transfer::Copy {
            from: (src.wgpu().clone(), from.1),
            to: (dst.wgpu().clone(), to.1),
            bytes: bytes as u64,
        };
        stream.transfer(copy, &[src, dst], bytes as u64);
        if let (Some(recording), true) = (&mut stream.recording, self.is_recording()) {
            recording.copy(from, to, bytes as u64);
        }
        Ok(())
    }

    /// Sets the whole buffer to zero.
    pub fn fill_zero(&self, dst: &Buffer) -> Result<()> {
        if dst.is_segmented() {
            let pieces = dst.pieces(0, dst.bytes() as usize);
            return pieces.iter().try_for_each(|p| self.fill_zero(&p.of));
        }
        self.flush_pending([(dst, true)])?;
        let bytes = dst.window().map(|w| w.size);
        let mut stream = self.stream.lock();
        let clear = Transfer::Clear {
            of: dst.wgpu().clone(),
            start: dst.start(),
            bytes,
        };
        stream.transfer(clear, &[dst], dst.capacity());
        if let (Some(recording), true) = (&mut stream.recording, self.is_recording()) {
            recording.clear(dst, dst.start(), bytes);
        }
        Ok(())
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

    // ---- kernels --------------------------------------------------------------------------------

    /// Records `kernel` over a grid of workgroups. `buffers` are the written ones, then the read
    /// ones; a read buffer may be one of the written ones. `params` is the parameter block.
    fn dispatch(
        &self,
        kernel: &Kernel,
        buffers: &[Bound],
        params: &[u8],
        grid: [u32; 3],
        told: &[command_list::Told],
    ) -> Result<()> {
        let name = &kernel.source.name;
        ensure!(
            params.len() <= stream::PARAM_WINDOW as usize && params.len().is_multiple_of(4),
            Runtime,
            "wgpu: {name}: {} bytes of parameters do not fit the uniform window",
            params.len()
        );
        if grid.contains(&0) {
            return Ok(());
        }
        let most = self.info.max_binding;
        if let Some(big) = buffers.iter().find(|b| b.is_refused(self)) {
            REFUSED.set(true);
            bail!(
                NoKernel,
                "wgpu: {name}: a tensor of {} bytes is larger than one binding of this adapter, \
                 {most} bytes",
                big.buffer.bytes()
            );
        }
        buffers
            .iter()
            .try_for_each(|b| self.check_alive(b.buffer))?;
        let (written, read) = buffers.split_at(kernel.writes);
        let aliased = read
            .iter()
            .any(|r| written.iter().any(|w| w.buffer.same(r.buffer)));
        let pipeline = self.pipelines.lock().get(&self.device, kernel, aliased)?;
        let work = || {
            let groups = grid.iter().map(|&n| n as u64).product();
            let first = |i: usize| {
                !buffers[..i]
                    .iter()
                    .any(|b| b.buffer.same(buffers[i].buffer))
            };
            let bytes = (0..buffers.len())
                .filter(|&i| first(i))
                .map(|i| buffers[i].size().min(buffers[i].buffer.bytes()));
            let clients = smallvec![Client::here()];
            clock::Work::new(&kernel.full_name(), clients, groups, bytes.sum())
        };
        let kept = self.is_recording().then_some(told);
        self.stream
            .lock()
            .dispatch(&pipeline, buffers, params, grid, kept, work);
        if self.fault.lock().is_some() {
            return self.check();
        }
        Ok(())
    }

    /// Folds a number of workgroups into a grid that the adapter takes. Shaders number their
    /// groups `x + y * num_workgroups.x` and test the number against their own bound.
    pub fn grid(&self, groups: usize) -> Result<[u32; 3]> {
        let max = self.info.max_groups as usize;
        if groups <= max {
            return Ok([groups as u32, 1, 1]);
        }
        let rows = groups.div_ceil(max);
        ensure!(
            rows <= max,
            NoKernel,
            "wgpu: a grid of {groups} workgroups is too large"
        );
        Ok([groups.div_ceil(rows) as u32, rows as u32, 1])
    }
}

thread_local! {
    /// Whether a kernel was refused a tensor for its size.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a kernel of this thread was refused a tensor larger than a binding since the last time.
pub fn was_refused() -> bool {
    REFUSED.take()
}

/// Lines that tell what buffers are for.
fn listed(living: &Living) -> String {
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let line = |t: &BufferUse| {
        let op = match t.op {
            "" => String::new(),
            op => format!(" of {}", function_name(op)),
        };
        let modules = match t.modules.as_str() {
            "" => String::new(),
            path => format!(" in {path}"),
        };
        let what = match &t.tensor {
            Some((shape, dtype)) => format!("{} {dtype}", Show(shape)),
            None => "workspace".to_string(),
        };
        format!("\n  {:.1} MiB: {what}{op}{modules}", mib(t.bytes))
    };
    let mut lines: String = living.largest.iter().map(line).collect();
    for (of, what) in [
        (living.others, "others of 1 MiB and more"),
        (living.small, "smaller than 1 MiB"),
    ] {
        if of.count > 0 {
            lines += &format!("\n  {:.1} MiB: {} {what}", mib(of.bytes), of.count);
        }
    }
    match lines.is_empty() {
        true => lines,
        false => format!(" The largest tensors:{lines}"),
    }
}

fn check_range(what: &str, buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
    ensure!(
        offset
            .checked_add(bytes)
            .is_some_and(|end| end as u64 <= buffer.bytes()),
        Runtime,
        "wgpu: {what} of {bytes} bytes at {offset} is outside a buffer of {} bytes",
        buffer.bytes()
    );
    Ok(())
}

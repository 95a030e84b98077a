//! Pooled GPU memory: a dropped buffer goes back to a list of its size class and is used again.
//! One in-order stream makes that safe while commands that touch the buffer are still pending.
//! More bytes than the largest wgpu buffer has are several, the segments. Kernels see windows, each in one.

use super::Gpu;
use crate::device::Device;
use crate::dtype::DType;
use crate::shape::Dims;
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes of a buffer: the first, a multiple of [`Window::ALIGN`], and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: u64,
    pub size: u64,
}

impl Window {
    /// What every adapter takes.
    pub const ALIGN: u64 = 256;
}

/// Whoever has memory: it stays while this does.
pub type Keeper = Arc<dyn Any + Send + Sync>;

/// Memory on the GPU. Holds exactly the bytes that a CPU tensor of the same type holds.
pub struct Buffer {
    /// `None` only while dropping.
    pub(super) raw: Option<Arc<Raw>>,
    /// The segments behind that one, where there are any.
    rest: Option<Arc<Rest>>,
    bytes: u64,
    /// The number of its GPU.
    index: u8,
    /// Whether the memory goes back to the pool with it.
    owned: bool,
    /// The bytes that it is of the memory, and who keeps that; where it is not all of it.
    part: Option<(Window, Keeper)>,
}

/// Segments but the first.
struct Rest {
    raws: Vec<Arc<Raw>>,
    /// Bytes of each segment but the last, a multiple of [`Window::ALIGN`], so that no element is in two.
    step: u64,
}

/// Bytes of one segment.
pub(super) struct Piece {
    /// The segment, which this does not own.
    pub of: Buffer,
    /// Where they begin in it.
    pub start: usize,
    /// Which they are of all that was asked for.
    pub range: Range<usize>,
}

/// A wgpu buffer, its identity for the bind-group cache, and the last batch that used it.
pub(super) struct Raw {
    pub buffer: wgpu::Buffer,
    pub id: u64,
    /// The number of the device, of all that were opened.
    pub life: u32,
    pub last_batch: AtomicU64,
    /// How many buffers have had it and are gone.
    pub past: AtomicU64,
}

/// Counts in bytes, as `memory_stats` shows them.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryStats {
    /// Held by live buffers.
    pub allocated: u64,
    /// Taken from the driver: live and pooled.
    pub reserved: u64,
    pub peak_allocated: u64,
    pub peak_reserved: u64,
    /// Live buffers, and allocations since the start.
    pub live: u64,
    pub peak_live: u64,
    pub allocations: u64,
    /// Allocations that had to free what was kept first, and those for which there was no memory.
    pub retries: u64,
    pub refused: u64,
    /// Bytes and buffers that were handed out, and bytes that were taken from the driver, since a point in time.
    pub since: Since,
}

/// Sums that grow; what was given back is what they are more than there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Since {
    pub allocated: u64,
    pub freed: u64,
    pub buffers: u64,
    pub buffers_freed: u64,
    pub reserved: u64,
    pub reserved_freed: u64,
}

/// What a large buffer is for.
#[derive(Clone, Debug)]
pub struct BufferUse {
    pub bytes: u64,
    /// The shape and type of its first tensor; none of what kernels and programs keep for themselves.
    pub tensor: Option<(Dims, DType)>,
    /// The node that wrote to it first, if one did, or that asked for it.
    pub op: &'static str,
    /// The modules at work then.
    pub modules: String,
}

/// Buffers that are told together: how many, and the bytes that they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    pub count: u64,
    pub bytes: u64,
}

/// All live buffers: the largest ones, the other large ones, and the small ones.
#[derive(Clone, Debug, Default)]
pub struct Living {
    pub largest: Vec<BufferUse>,
    pub others: Together,
    pub small: Together,
}

/// Batches after which an unused buffer goes back to the driver.
const LONG: u64 = 100;

/// An odd number with as many ones as zeros (the fractional part of the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// From so many bytes on it is known what a buffer is for.
pub const LARGE: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Pool {
    /// Of large buffers by identity, each from when it is taken until it is given back.
    uses: BTreeMap<u64, BufferUse>,
    small: Together,
    /// By size and identity.
    free: BTreeMap<u64, BTreeMap<u64, Arc<Raw>>>,
    /// The batch from which on it is worth looking for what nothing uses any more.
    pub look_at: u64,
    pub stats: MemoryStats,
    pub cap: Option<u64>,
    next_id: u64,
}

/// Rounds up to one of four steps in each power of two, so that at most a fifth is wasted.
pub(super) fn size_class(bytes: u64) -> u64 {
    let bytes = bytes.max(256);
    let step = (bytes.next_power_of_two() / 8).max(4);
    bytes.div_ceil(step) * step
}

impl Pool {
    /// A pooled buffer of this class or up to a quarter larger, if there is one, but no larger than a
    /// binding unless the class is: the oldest, so that steps of a program that ask for the same sizes in
    /// the same order get the same buffers, and bind groups again.
    pub fn reuse(&mut self, class: u64, binding: u64) -> Option<Arc<Raw>> {
        let most = match class <= binding {
            true => binding.min(class + class / 4),
            false => class + class / 4,
        };
        let near = self.free.range_mut(class..=most);
        let (&size, raw) = near
            .into_iter()
            .find_map(|(size, of)| Some((size, of.pop_first()?.1)))?;
        self.count_live(raw.id, size);
        Some(raw)
    }

    /// Takes this buffer out of the pool, if it is there.
    pub fn claim(&mut self, raw: &Raw) -> bool {
        let size = raw.buffer.size();
        let found = self.free.get_mut(&size).and_then(|of| of.remove(&raw.id));
        if found.is_some() {
            self.count_live(raw.id, size);
        }
        found.is_some()
    }

    /// Takes out what no batch has used for long, for the driver to free.
    pub fn stale(&mut self, batch: u64) -> Vec<Arc<Raw>> {
        self.look_at = batch + LONG / 4;
        let old = |raw: &Raw| raw.last_batch.load(Ordering::Relaxed) + LONG < batch;
        let mut out = Vec::new();
        for of in self.free.values_mut() {
            let ids: Vec<u64> = of
                .iter()
                .filter(|(_, r)| old(r))
                .map(|(&id, _)| id)
                .collect();
            out.extend(ids.iter().filter_map(|id| of.remove(id)));
        }
        self.free.retain(|_, of| !of.is_empty());
        self.leave(&out);
        out
    }

    /// Counts a buffer that the driver just gave.
    pub fn adopt(&mut self, buffer: wgpu::Buffer, class: u64, life: u32) -> Arc<Raw> {
        self.stats.reserved += class;
        self.stats.since.reserved += class;
        self.stats.peak_reserved = self.stats.peak_reserved.max(self.stats.reserved);
        self.next_id += 1;
        self.count_live(self.next_id, class);
        Arc::new(Raw {
            buffer,
            id: self.next_id,
            life,
            last_batch: AtomicU64::new(0),
            past: AtomicU64::new(0),
        })
    }

    fn count_live(&mut self, id: u64, class: u64) {
        match class < LARGE {
            true => {
                self.small.count += 1;
                self.small.bytes += class;
            }
            false => {
                // Until a tensor says that it lives there.
                let current = BufferUse {
                    bytes: class,
                    tensor: None,
                    op: super::fault::name(),
                    modules: String::new(),
                };
                self.uses.insert(id, current);
            }
        }
        self.stats.allocated += class;
        self.stats.since.allocated += class;
        self.stats.since.buffers += 1;
        self.stats.peak_allocated = self.stats.peak_allocated.max(self.stats.allocated);
        self.stats.live += 1;
        self.stats.peak_live = self.stats.peak_live.max(self.stats.live);
        self.stats.allocations += 1;
    }

    fn give_back(&mut self, raw: Arc<Raw>) {
        let class = raw.buffer.size();
        match class < LARGE {
            true => {
                self.small.count -= 1;
                self.small.bytes -= class;
            }
            false => drop(self.uses.remove(&raw.id)),
        }
        self.stats.allocated -= class;
        self.stats.since.freed += class;
        self.stats.since.buffers_freed += 1;
        self.stats.live -= 1;
        self.free.entry(class).or_default().insert(raw.id, raw);
    }

    /// What all live buffers are for, `n` of them one by one, the largest first.
    pub fn living(&self, n: usize) -> Living {
        let mut all: Vec<&BufferUse> = self.uses.values().collect();
        all.sort_by_key(|t| std::cmp::Reverse(t.bytes));
        let (largest, others) = all.split_at(n.min(all.len()));
        Living {
            largest: largest.iter().map(|&t| t.clone()).collect(),
            others: Together {
                count: others.len() as u64,
                bytes: others.iter().map(|t| t.bytes).sum(),
            },
            small: self.small,
        }
    }

    /// Takes every unused buffer out of the pool, for the driver to free.
    pub fn drain(&mut self) -> Vec<Arc<Raw>> {
        let free = std::mem::take(&mut self.free).into_values();
        let all: Vec<Arc<Raw>> = free.flat_map(BTreeMap::into_values).collect();
        self.leave(&all);
        all
    }

    /// Counts what the driver frees.
    fn leave(&mut self, raws: &[Arc<Raw>]) {
        let bytes = raws.iter().map(|r| r.buffer.size()).sum::<u64>();
        self.stats.reserved -= bytes;
        self.stats.since.reserved_freed += bytes;
    }
}

impl Buffer {
    pub(super) fn new(gpu: &Gpu, raw: Arc<Raw>, bytes: u64) -> Buffer {
        Buffer {
            raw: Some(raw),
            rest: None,
            bytes,
            index: gpu.index,
            owned: true,
            part: None,
        }
    }

    /// Memory that these are, one behind the other, of `step` bytes each but the last.
    pub(super) fn joined(gpu: &Gpu, mut segments: Vec<Buffer>, step: u64) -> Option<Buffer> {
        let bytes = segments.iter().map(|b| b.bytes).sum();
        let mut raws = segments.iter_mut().filter_map(|b| b.raw.take());
        let mut own = Buffer::new(gpu, raws.next()?, bytes);
        let raws: Vec<Arc<Raw>> = raws.collect();
        let mut pool = gpu.pool.lock();
        for raw in &raws {
            pool.uses.remove(&raw.id);
        }
        if let Some(first) = pool.uses.get_mut(&own.raw().id) {
            first.bytes = bytes;
        }
        drop(pool);
        own.rest = (!raws.is_empty()).then(|| Arc::new(Rest { raws, step }));
        Some(own)
    }

    /// Its wgpu buffers.
    pub(super) fn raws(&self) -> impl Iterator<Item = &Arc<Raw>> {
        let rest = self.rest.iter().flat_map(|r| &r.raws);
        self.raw.iter().chain(rest)
    }

    /// Whether it is several wgpu buffers.
    pub(super) fn is_segmented(&self) -> bool {
        self.rest.is_some()
    }

    /// The bytes of each of its wgpu buffers but the last, where it is several.
    pub fn step(&self) -> Option<u64> {
        self.rest.as_ref().map(|r| r.step)
    }

    /// The segment of a byte, and where that segment begins.
    fn segment(&self, byte: u64) -> (&Arc<Raw>, u64) {
        let first = self.raw.as_ref().expect("a live buffer has memory");
        let Some(rest) = &self.rest else {
            return (first, 0);
        };
        let i = (byte / rest.step).min(rest.raws.len() as u64);
        let raw = match i.checked_sub(1) {
            None => first,
            Some(i) => &rest.raws[i as usize],
        };
        (raw, i * rest.step)
    }

    /// Whether a window is in more than one segment.
    pub fn splits(&self, window: Window) -> bool {
        let last = window.start + window.size.max(1) - 1;
        self.segment(window.start).1 != self.segment(last).1
    }

    /// The wgpu buffer that has a window, and the bytes of it that the window is.
    pub(super) fn found(&self, window: Option<Window>) -> (&Arc<Raw>, Option<Window>) {
        let (raw, first) = self.segment(window.map_or(0, |w| w.start));
        let own = window.map(|w| Window {
            start: w.start - first,
            ..w
        });
        (raw, own)
    }

    /// These bytes, by segments.
    pub(super) fn pieces(&self, offset: usize, bytes: usize) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < bytes {
            let (raw, first) = self.segment((offset + at) as u64);
            let step = self.rest.as_ref().map_or(self.bytes, |r| r.step);
            let of = Buffer {
                raw: Some(raw.clone()),
                rest: None,
                bytes: step.min(self.bytes - first),
                index: self.index,
                owned: false,
                part: None,
            };
            let start = offset + at - first as usize;
            let n = (bytes - at).min((of.bytes as usize).saturating_sub(start).max(1));
            let range = at..at + n;
            out.push(Piece { of, start, range });
            at += n;
        }
        out
    }

    /// A handle that keeps the memory, but not from who asks the pool for some.
    pub fn lent(&self) -> Buffer {
        Buffer {
            raw: self.raw.clone(),
            rest: self.rest.clone(),
            bytes: self.bytes,
            index: self.index,
            owned: false,
            part: self.part.clone(),
        }
    }

    /// Whether both are all of the same memory.
    pub fn is_same(&self, other: &Buffer) -> bool {
        self.bytes == other.bytes
            && self.part.is_none()
            && other.part.is_none()
            && self.raws().map(|r| r.id).eq(other.raws().map(|r| r.id))
    }

    /// How many buffers had the memory and are gone: more once this one is.
    pub(super) fn past(&self) -> u64 {
        self.raw().past.load(Ordering::Relaxed)
    }

    /// The same memory, kept by `keeper`, seen through a window: what a kernel binds of a buffer too large
    /// for it. None where more than one segment has it.
    pub fn part(&self, window: Window, keeper: impl FnOnce() -> Keeper) -> Option<Buffer> {
        let whole = self;
        if whole.splits(window) {
            return None;
        }
        let (start, keeper) = match &whole.part {
            None => (0, keeper()),
            Some((outer, keeper)) => (outer.start, keeper.clone()),
        };
        let (raw, _) = whole.found(Some(window));
        let (raw, first) = (raw.clone(), whole.segment(window.start).1);
        let start = start + window.start - first;
        let part = Window { start, ..window };
        let mut own = whole.lent();
        (own.raw, own.rest) = (Some(raw), None);
        own.bytes = window.size;
        own.part = Some((part, keeper));
        Some(own)
    }

    /// The bytes of its wgpu buffer that it is, where it is not all of them.
    pub(super) fn window(&self) -> Option<Window> {
        self.part.as_ref().map(|(window, _)| *window)
    }

    /// Where it begins in its wgpu buffer.
    pub(super) fn start(&self) -> u64 {
        self.window().map_or(0, |w| w.start)
    }

    /// Ends the use of what the memory holds, as dropping the buffer does: nobody will read it.
    pub fn mark_dead(&self) {
        for raw in self.raws() {
            raw.past.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn device(&self) -> Device {
        Device::Wgpu(self.index)
    }

    /// Notes what a large buffer is for: by its first tensor.
    pub fn label(&self, shape: &[usize], dtype: DType) {
        if self.wgpu().size() < LARGE {
            return;
        }
        let Ok(gpu) = Gpu::at(self.index) else { return };
        // Asked before our lock is taken.
        let modules = crate::host::modules();
        let current = BufferUse {
            bytes: self.bytes,
            tensor: Some((Dims::from_slice(shape), dtype)),
            op: super::fault::name(),
            modules,
        };
        gpu.pool.lock().uses.insert(self.raw().id, current);
    }

    /// Notes the node that wrote to a large buffer first.
    pub fn written_by(&self, op: &'static str) {
        if self.wgpu().size() < LARGE {
            return;
        }
        let Ok(gpu) = Gpu::at(self.index) else { return };
        if let Some(t) = gpu.pool.lock().uses.get_mut(&self.raw().id) {
            if t.op.is_empty() {
                t.op = op;
            }
        }
    }

    /// The bytes asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn raw(&self) -> &Raw {
        self.raw.as_ref().expect("a live buffer has memory")
    }

    pub(super) fn wgpu(&self) -> &wgpu::Buffer {
        &self.raw().buffer
    }

    /// Bytes that a kernel binds of it, a multiple of 4.
    pub fn capacity(&self) -> u64 {
        let all = || self.raws().map(|r| r.buffer.size()).sum();
        self.window().map_or_else(all, |w| w.size)
    }

    /// Bits of its wgpu buffers: those that are the [same](Buffer::same) have some in common, others seldom.
    pub(super) fn bits(&self) -> u64 {
        // A shift of a product takes the bits that all others have a part in.
        let bit = |raw: &Arc<Raw>| 1 << ((Arc::as_ptr(raw) as u64).wrapping_mul(SPREAD) >> 58);
        let first = self.raw.as_ref().map_or(0, bit);
        match &self.rest {
            None => first,
            Some(rest) => rest.raws.iter().map(bit).fold(first, |all, bit| all | bit),
        }
    }

    /// Whether both have memory of the same wgpu buffer.
    pub fn same(&self, other: &Buffer) -> bool {
        match (&self.rest, &other.rest) {
            (None, None) => std::ptr::eq(self.raw(), other.raw()),
            _ => self.raws().any(|a| other.raws().any(|b| Arc::ptr_eq(a, b))),
        }
    }

    pub(super) fn mark(&self, batch: u64) {
        for raw in self.raws() {
            raw.last_batch.store(batch, Ordering::Relaxed);
        }
    }

    pub(super) fn last_batch(&self) -> u64 {
        self.raw().last_batch.load(Ordering::Relaxed)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (Some(first), rest) = (self.raw.take(), self.rest.take()) else {
            return;
        };
        if !self.owned {
            return;
        }
        let rest = rest.as_ref().map_or(&[][..], |r| &r.raws);
        for raw in std::iter::once(first).chain(rest.iter().cloned()) {
            raw.past.fetch_add(1, Ordering::Relaxed);
            match Gpu::now(self.index) {
                Ok(Some(gpu)) if gpu.life == raw.life => gpu.pool.lock().give_back(raw),
                // Of a device that was lost.
                Ok(_) => {}
                // A forked child must not call the driver that its parent opened.
                Err(_) => std::mem::forget(raw),
            }
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes, id {})", self.bytes, self.raw().id)
    }
}

#[cfg(test)]
mod tests {
    use super::size_class;

    #[test]
    fn size_class_any_size_wastes_at_most_a_fifth_and_is_aligned() {
        for bytes in (1..100_000).step_by(37) {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(4));
            assert!(
                bytes < 256 || class * 4 <= bytes * 5 + 16,
                "{bytes} -> {class}"
            );
            assert_eq!(size_class(class), class);
        }
    }
}

//! Reference-counted memory that tensors share. No locks: kernels write through raw pointers, and
//! the version counter tells autograd that they did.

use crate::alloc::{self, FileMap};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{self, Result};
use crate::gpu::{Buffer, Gpu, Window};
use crate::shared::{Shared, Weak};
use crate::{bail, ensure};
use parking_lot::Mutex;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering,
};
use std::sync::{Arc, OnceLock};

enum Owner {
    /// The memory is from [`crate::alloc`] and goes back there; what is inside says how, once its
    /// size has changed.
    Cache(OnceLock<Box<Resized>>),
    /// Someone else (NumPy, DLPack, a memory map), kept alive with the memory.
    Lender(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
    /// The memory is a file's.
    Map(Box<FileMap>),
    Gpu(Box<OnGpu>),
    /// There is no memory, only its size.
    Meta,
    /// Somebody else, who keeps it while this handle is used: see [`Storage::behind`].
    Behind,
    /// There is no memory: what is held here stands for the elements.
    Held(Box<(Box<dyn Any + Send + Sync>, Device)>),
}

/// Memory of a GPU's pool.
struct OnGpu {
    /// Filled from the start, unless the memory is [to come](Storage::to_come).
    buffer: OnceLock<Buffer>,
    /// Tells it from all other memory.
    address: usize,
    device: Device,
}

/// Memory whose size has changed.
struct Resized {
    /// Where the memory is.
    ptr: AtomicPtr<u8>,
    blocks: Mutex<Blocks>,
    /// Where the memory has moved to, for good, so that other processes see it.
    map: OnceLock<FileMap>,
}

struct Blocks {
    /// Every block there was with its size, the present one last. Kernels may be at work in any of
    /// them, so all stay until the last handle goes; the pages that nothing needs go back at once.
    all: Vec<(NonNull<u8>, usize)>,
    /// The most bytes there ever were.
    most: usize,
}

// SAFETY: the blocks belong to the storage; the list is only read and changed under its lock.
unsafe impl Send for Blocks {}

pub struct Allocation {
    /// Null for memory of the GPU, where there is none, while there is less memory than there once was (tensors may
    /// no longer fit then), and while work on it waits: see [`Storage::open_ptr`].
    ptr: AtomicPtr<u8>,
    bytes: AtomicUsize,
    version: AtomicU32,
    /// Whether the address was handed out.
    pinned: AtomicBool,
    /// Whether work that reads or writes it was asked for and has not run yet: the pointer is null, and whoever
    /// wants it has that work [done](Storage::settle) first.
    waits: AtomicU8,
    /// Whether it was handed out for good, so that no tensor leaves this memory for a larger one.
    fixed: AtomicBool,
    /// Whether what is written may leave the version as it is.
    uncounted: AtomicBool,
    /// What the call of a compiled function that met it last noted: see [`Storage::mark`].
    mark: AtomicU64,
    /// The version from when a tensor that moved to other memory went on counting with it.
    shared: OnceLock<Arc<AtomicU32>>,
    owner: Owner,
}

// SAFETY: the pointer is owned (or kept alive by its owner); concurrent writes to elements are the
// user's races, as in PyTorch.
unsafe impl Send for Allocation {}
// SAFETY: what threads share are atomics, a lock, and elements that may race.
unsafe impl Sync for Allocation {}

/// The start of a range of addresses for `bytes` on the GPU, above all those of the host.
fn fresh_address(bytes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1 << 60);
    NEXT.fetch_add(bytes.next_multiple_of(256).max(256), Ordering::Relaxed)
}

/// Has all work done that was asked for and has not run yet.
static SETTLE: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Tells how that is done.
pub fn set_settle(settle: fn() -> Result<()>) {
    let _ = SETTLE.set(settle);
}

/// How work on memory waits: not at all, on memory that was there, on memory that is to come.
const NO_WORK: u8 = 0;
const HELD: u8 = 1;
const TO_COME: u8 = 2;
/// The work ended with an error, and there will be no elements.
const FAILED: u8 = 3;

/// A shared block of memory on one device.
#[derive(Clone)]
pub struct Storage(Shared<Allocation>);

/// A handle that does not keep the memory. While there is one, no other storage gets the same id.
pub struct WeakStorage(Weak<Allocation>);

impl WeakStorage {
    /// The memory, while somebody keeps it.
    pub fn upgrade(&self) -> Option<Storage> {
        self.0.upgrade().map(Storage)
    }
}

/// What [`Storage::hold`] took, to be given back.
pub struct Held(*mut u8);

// SAFETY: an address; who holds the storage keeps what it points to.
unsafe impl Send for Held {}

impl Storage {
    /// Uninitialised memory.
    pub fn empty(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::cached(alloc::alloc(bytes)?, bytes)),
            Device::Wgpu(index) => Ok(Storage::on_gpu(Gpu::at(index)?.alloc(bytes)?, bytes)),
            Device::Meta => Ok(Storage::new(std::ptr::null_mut(), bytes, Owner::Meta)),
        }
    }

    /// `bytes` of a buffer.
    pub fn on_gpu(buffer: Buffer, bytes: usize) -> Storage {
        let own = OnGpu {
            device: buffer.device(),
            buffer: buffer.into(),
            address: fresh_address(bytes),
        };
        Storage::new(std::ptr::null_mut(), bytes, Owner::Gpu(Box::new(own)))
    }

    /// Memory whose contents are yet to be computed, and which is [made](Storage::come) before that.
    pub fn to_come(bytes: usize, device: Device) -> Storage {
        let owner = match device {
            Device::Wgpu(_) => Owner::Gpu(Box::new(OnGpu {
                buffer: OnceLock::new(),
                address: fresh_address(bytes),
                device,
            })),
            _ => Owner::Cache(OnceLock::new()),
        };
        let storage = Storage::new(std::ptr::null_mut(), bytes, owner);
        storage.0.waits.store(TO_COME, Ordering::Relaxed);
        storage
    }

    /// Makes memory that was [to come](Storage::to_come), which goes on waiting.
    pub fn come(&self) -> Result<Held> {
        if let (Owner::Gpu(own), Device::Wgpu(index)) = (&self.0.owner, self.device()) {
            if own.buffer.get().is_none() {
                let _ = own.buffer.set(Gpu::at(index)?.alloc(self.bytes())?);
            }
            return Ok(Held(std::ptr::null_mut()));
        }
        Ok(Held(alloc::alloc(self.bytes())?.as_ptr()))
    }

    /// Frees what [`Storage::come`] made, where nothing came of it.
    pub fn fail(&self, held: Option<Held>) {
        self.0.waits.store(FAILED, Ordering::Release);
        let Some(held) = held else { return };
        if let Some(p) = NonNull::new(held.0) {
            // SAFETY: `come` had it from there, with this size, and nobody else has it.
            unsafe { alloc::free(p, self.bytes()) }
        }
    }

    /// Whether work on the memory may be put off: nobody reads or writes it past [`Storage::settle`].
    pub fn may_wait(&self) -> bool {
        let open = !self.0.pinned.load(Ordering::Relaxed) && self.bytes() > 0;
        match &self.0.owner {
            Owner::Cache(resized) => open && resized.get().is_none(),
            Owner::Gpu(_) => open,
            _ => false,
        }
    }

    /// Whether work that reads or writes the memory waits.
    #[inline]
    pub fn waits(&self) -> bool {
        self.0.waits.load(Ordering::Acquire) != NO_WORK
    }

    /// Lets everyone who wants the memory have work done first, until it is [let go](Storage::let_go); `None`
    /// where another thread does so.
    pub fn hold(&self) -> Option<Held> {
        let (free, order) = (NO_WORK, Ordering::AcqRel);
        let waits = &self.0.waits;
        waits
            .compare_exchange(free, HELD, order, Ordering::Relaxed)
            .ok()?;
        let ptr = self.0.ptr.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if ptr.is_null() && self.device() == Device::Cpu {
            waits.store(NO_WORK, Ordering::Release);
            return None;
        }
        Some(Held(ptr))
    }

    /// The memory is everyone's again.
    pub fn let_go(&self, held: Held) {
        let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
        // Another thread may have resized it meanwhile.
        let _ = self
            .0
            .ptr
            .compare_exchange(null, held.0, order, Ordering::Relaxed);
        self.0.waits.store(NO_WORK, Ordering::Release);
    }

    /// Another handle on memory that is held, for the work that is put off. It does not keep the memory.
    pub fn behind(&self, held: &Held) -> Storage {
        if let Owner::Gpu(own) = &self.0.owner {
            let buffer = own.buffer.get().expect("memory that was made");
            return Storage::on_gpu(buffer.lent(), self.bytes());
        }
        Storage::new(held.0, self.bytes(), Owner::Behind)
    }

    /// Makes such a handle one on this memory; false where it is of a GPU.
    pub fn put_behind(&self, handle: &Storage, held: &Held) -> bool {
        let is_it = matches!(handle.0.owner, Owner::Behind) && self.device() == Device::Cpu;
        if is_it {
            handle.0.ptr.store(held.0, Ordering::Relaxed);
            handle.0.bytes.store(self.bytes(), Ordering::Relaxed);
        }
        is_it
    }

    /// Notes that what is written may leave the version as it is.
    pub fn count_no_more(&self) {
        self.0.uncounted.store(true, Ordering::Relaxed);
    }

    /// Whether nobody else has a handle on it, and nobody wrote to it since it was filled.
    pub fn is_as_made(&self) -> bool {
        let open =
            self.0.uncounted.load(Ordering::Relaxed) || self.0.pinned.load(Ordering::Relaxed);
        self.handles() == 1 && self.version() == 0 && !open
    }

    /// The number that was noted last, zero at first.
    #[inline]
    pub fn mark(&self) -> u64 {
        self.0.mark.load(Ordering::Relaxed)
    }

    /// Notes a number.
    #[inline]
    pub fn set_mark(&self, mark: u64) {
        self.0.mark.store(mark, Ordering::Relaxed);
    }

    /// Whether it is such a handle on the same memory of a GPU.
    pub fn is_behind(&self, other: &Storage) -> bool {
        let (Owner::Gpu(a), Owner::Gpu(b)) = (&self.0.owner, &other.0.owner) else {
            return false;
        };
        let same = matches!((a.buffer.get(), b.buffer.get()), (Some(a), Some(b)) if a.is_same(b));
        same && self.bytes() == other.bytes()
    }

    /// Has work on the memory done that waits.
    pub fn flush_pending(&self) -> Result<()> {
        // Another thread may have put off more, meanwhile.
        while self.waits() {
            if self.0.waits.load(Ordering::Acquire) == FAILED {
                bail!(
                    Runtime,
                    "the tensor has no elements: the call that was to compute them ended with an error"
                );
            }
            SETTLE.get().map_or(Ok(()), |settle| settle())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Memory of the host that no tensor used before, or that `clear` writes zeros to.
    pub fn cleared(bytes: usize, clear: impl FnOnce(NonNull<u8>, usize)) -> Result<Storage> {
        let (block, zeroed) = alloc::alloc_known(bytes)?;
        if !zeroed {
            clear(block, bytes);
        }
        Ok(Storage::cached(block, bytes))
    }

    pub fn zeroed(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::cached(alloc::alloc_zeroed(bytes)?, bytes)),
            Device::Wgpu(index) => {
                let (gpu, storage) = (Gpu::at(index)?, Storage::empty(bytes, device)?);
                if let (Some(b), true) = (storage.buffer(), bytes > 0) {
                    gpu.fill_zero(b)?;
                }
                Ok(storage)
            }
            Device::Meta => Storage::empty(bytes, device),
        }
    }

    /// Memory lent by `owner`, which lives as long as the storage.
    ///
    /// # Safety
    /// `ptr` is valid for reads and writes of `bytes` while `owner` lives.
    pub unsafe fn lent(
        ptr: NonNull<u8>,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Storage {
        Storage::new(ptr.as_ptr(), bytes, Owner::Lender(owner))
    }

    /// No memory, and what stands for it on this device.
    pub fn holding(held: Box<dyn Any + Send + Sync>, device: Device) -> Storage {
        Storage::new(
            std::ptr::null_mut(),
            0,
            Owner::Held(Box::new((held, device))),
        )
    }

    /// What stands for the elements where there is no memory for them.
    pub fn held(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.0.owner {
            Owner::Held(own) => Some(&*own.0),
            _ => None,
        }
    }

    /// Memory that is a map of a file.
    pub fn mapped(map: FileMap) -> Storage {
        let (ptr, bytes) = (map.ptr().as_ptr(), map.bytes());
        Storage::new(ptr, bytes, Owner::Map(Box::new(map)))
    }

    /// The file that the memory is a map of.
    pub fn map(&self) -> Option<&FileMap> {
        match &self.0.owner {
            Owner::Map(map) => Some(map),
            Owner::Cache(resized) => resized.get()?.map.get(),
            _ => None,
        }
    }

    /// Whether other processes see what is written.
    pub fn is_shared(&self) -> bool {
        self.map().is_some_and(FileMap::is_shared)
    }

    /// Moves the memory, with what it holds, to a map of as many bytes, where it stays. Kernels at
    /// work in it go on in what they were given.
    pub fn move_to(&self, map: FileMap) -> Result<()> {
        self.flush_pending()?;
        let (Owner::Cache(_), true) = (&self.0.owner, self.is_resizable()) else {
            bail!(
                Runtime,
                "memory that is shared with another library, such as NumPy, or that of a GPU, \
                 cannot become memory that processes share: share a clone() of the tensor"
            );
        };
        let Some(resized) = self.resized() else {
            return Ok(());
        };
        let mut blocks = resized.blocks.lock();
        let now = self.bytes();
        let Some(&(block, room)) = blocks.all.last() else {
            return Ok(());
        };
        if map.bytes() != now {
            bail!(
                Runtime,
                "a storage of {now} bytes cannot move to a map of {}",
                map.bytes()
            );
        }
        let at = map.ptr().as_ptr();
        // SAFETY: both hold `now` bytes, and nobody else has the map.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), at, now) };
        self.pin();
        if resized.map.set(map).is_err() {
            bail!(Runtime, "the storage was moved at the same time");
        }
        let open = match now == blocks.most {
            true => at,
            false => std::ptr::null_mut(),
        };
        blocks.most = blocks.most.max(now);
        resized.ptr.store(at, Ordering::Release);
        self.0.ptr.store(open, Ordering::Release);
        alloc::discard(block, 0, room);
        Ok(())
    }

    /// What is kept of memory whose size or place changes, from now on; none without memory.
    fn resized(&self) -> Option<&Resized> {
        let Owner::Cache(resized) = &self.0.owner else {
            return None;
        };
        let now = self.bytes();
        Some(resized.get_or_init(|| {
            let ptr = self.open_ptr();
            let first = NonNull::new(ptr).map(|p| (p, alloc::room_of(now)));
            Box::new(Resized {
                ptr: AtomicPtr::new(ptr),
                blocks: Mutex::new(Blocks {
                    all: first.into_iter().collect(),
                    most: now,
                }),
                map: OnceLock::new(),
            })
        }))
    }

    #[inline(always)]
    fn cached(ptr: NonNull<u8>, bytes: usize) -> Storage {
        Storage::new(ptr.as_ptr(), bytes, Owner::Cache(OnceLock::new()))
    }

    #[inline(always)]
    fn new(ptr: *mut u8, bytes: usize, owner: Owner) -> Storage {
        Storage(Shared::new(Allocation {
            ptr: AtomicPtr::new(ptr),
            bytes: AtomicUsize::new(bytes),
            version: AtomicU32::new(0),
            pinned: AtomicBool::new(false),
            waits: AtomicU8::new(NO_WORK),
            fixed: AtomicBool::new(false),
            uncounted: AtomicBool::new(false),
            mark: AtomicU64::new(0),
            shared: OnceLock::new(),
            owner,
        }))
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        // Whoever sees a size sees memory of at least that size.
        self.0.bytes.load(Ordering::Acquire)
    }

    #[inline]
    pub fn device(&self) -> Device {
        match &self.0.owner {
            Owner::Gpu(own) => own.device,
            Owner::Meta => Device::Meta,
            Owner::Held(own) => own.1,
            _ => Device::Cpu,
        }
    }

    /// The first byte in host memory; null where there is none.
    pub fn ptr(&self) -> *mut u8 {
        let mut start = self.open_ptr();
        if start.is_null() && self.waits() {
            self.flush_pending().unwrap_or_else(|e| error::unwind(e));
            start = self.open_ptr();
        }
        match &self.0.owner {
            Owner::Cache(resized) if start.is_null() => resized
                .get()
                .map_or(start, |r| r.ptr.load(Ordering::Acquire)),
            _ => start,
        }
    }

    /// As [`Storage::ptr`], but null also where tensors made earlier may no longer fit, and where work waits.
    #[inline(always)]
    pub fn open_ptr(&self) -> *mut u8 {
        self.0.ptr.load(Ordering::Relaxed)
    }

    /// Whether [`Storage::resize`] can change the size.
    pub fn is_resizable(&self) -> bool {
        matches!(self.0.owner, Owner::Cache(_) | Owner::Meta)
            && !self.0.pinned.load(Ordering::Relaxed)
    }

    /// Keeps the memory where it is from now on: another library was given its address.
    pub fn pin(&self) {
        self.0.pinned.store(true, Ordering::Relaxed);
    }

    /// As [`Storage::pin`], and what would make a tensor over the memory larger raises from now on:
    /// whoever has the address is to see all that is written to the tensor.
    pub fn fix(&self) {
        self.pin();
        self.0.fixed.store(true, Ordering::Relaxed);
    }

    /// Raises where no tensor over the memory may grow: another library owns it, or was given it with
    /// [`Storage::fix`].
    pub fn check_growth(&self) -> Result<()> {
        ensure!(
            !self.is_lent() && !self.0.fixed.load(Ordering::Relaxed),
            Runtime,
            "Trying to resize storage that is not resizable: its {} bytes are shared with another \
             library, such as NumPy, or with a file. Use a clone() of the tensor.",
            self.bytes()
        );
        Ok(())
    }

    /// Changes the size, keeping what fits; what is new is not initialised. Pages that are no longer
    /// needed go back to the system. Kernels at work in the memory go on in what they were given.
    pub fn resize(&self, bytes: usize) -> Result<()> {
        if let Owner::Meta = self.0.owner {
            self.0.bytes.store(bytes, Ordering::Release);
            return Ok(());
        }
        self.flush_pending()?;
        let (Some(resized), true) = (self.resized(), self.is_resizable()) else {
            bail!(
                Runtime,
                "Trying to resize storage that is not resizable: {} keeps its {} bytes. Give the \
                 tensor other memory instead, with x.data = ... or x.set_(...).",
                match self.device() {
                    Device::Wgpu(_) => "memory of the GPU",
                    _ => "memory shared with another library or process",
                },
                self.bytes()
            );
        };
        let mut blocks = resized.blocks.lock();
        let Some(&(block, room)) = blocks.all.last() else {
            return Ok(());
        };
        // Another thread may have been here first.
        let now = self.bytes();
        let mut at = block;
        if bytes > room {
            alloc::grow(&mut blocks.all, 1)?;
            at = alloc::alloc(bytes)?;
            // SAFETY: both blocks hold `now` bytes, and nobody else has the new one.
            unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), at.as_ptr(), now) };
            blocks.all.push((at, alloc::room_of(bytes)));
            alloc::discard(block, 0, room);
        } else {
            alloc::discard(block, bytes, now);
        }
        blocks.most = blocks.most.max(bytes);
        let fits = bytes == blocks.most;
        let open = if fits {
            at.as_ptr()
        } else {
            std::ptr::null_mut()
        };
        // The size comes last: see `bytes`.
        resized.ptr.store(at.as_ptr(), Ordering::Release);
        self.0.ptr.store(open, Ordering::Release);
        self.0.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    /// Where the memory begins: an address of the host, 0 without memory, or for memory of the GPU a number that no
    /// live memory shares, not to be read from.
    pub fn address(&self) -> usize {
        match &self.0.owner {
            Owner::Gpu(own) => own.address,
            _ => self.ptr() as usize,
        }
    }

    /// Tells a GPU what the memory is for.
    #[inline]
    pub fn label(&self, shape: &[usize], dtype: DType) {
        let Owner::Gpu(own) = &self.0.owner else {
            return;
        };
        if let Some(buffer) = own.buffer.get() {
            buffer.label(shape, dtype);
        }
    }

    /// The buffer of memory on the GPU.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.0.owner {
            Owner::Gpu(own) => {
                if self.waits() {
                    self.flush_pending().unwrap_or_else(|e| error::unwind(e));
                }
                own.buffer.get()
            }
            _ => None,
        }
    }

    /// Some of the bytes of memory on the GPU, as memory of their own.
    pub fn window(&self, window: Window) -> Option<Storage> {
        let part = self.buffer()?.part(window, || Arc::new(self.clone()))?;
        Some(Storage::on_gpu(part, window.size as usize))
    }

    #[inline]
    fn count(&self) -> &AtomicU32 {
        self.0.shared.get().map_or(&self.0.version, |c| c)
    }

    #[inline]
    pub fn version(&self) -> u32 {
        self.count().load(Ordering::Relaxed)
    }

    #[inline]
    pub fn bump_version(&self) {
        self.count().fetch_add(1, Ordering::Relaxed);
    }

    /// The version counter, for a tensor that keeps it when it leaves this memory.
    pub fn counter(&self) -> Arc<AtomicU32> {
        let shared = self.0.shared.get_or_init(|| {
            let now = self.0.version.load(Ordering::Relaxed);
            Arc::new(AtomicU32::new(now))
        });
        shared.clone()
    }

    /// Whether the memory is somebody else's.
    pub fn is_lent(&self) -> bool {
        matches!(
            self.0.owner,
            Owner::Lender(_) | Owner::Behind | Owner::Map(_)
        )
    }

    pub fn downgrade(&self) -> WeakStorage {
        WeakStorage(Shared::downgrade(&self.0))
    }

    /// The number of handles on the memory.
    pub fn handles(&self) -> usize {
        Shared::handles(&self.0)
    }

    /// A number that only handles on the same memory share.
    pub fn id(&self) -> usize {
        Shared::as_ptr(&self.0) as usize
    }

    pub fn same(&self, other: &Storage) -> bool {
        Shared::same(&self.0, &other.0)
    }

    /// Whether both lie over one another without being one: two handles on memory that is somebody
    /// else's, such as an array of NumPy's.
    pub fn meets(&self, other: &Storage) -> bool {
        let (a, b) = (self.ptr() as usize, other.ptr() as usize);
        let over = a < b + other.bytes() && b < a + self.bytes();
        a != 0 && b != 0 && over && !self.same(other)
    }

    /// Whether nobody else can see this memory.
    pub fn is_unique(&self) -> bool {
        // Who puts work off has a handle, and looks at the memory when nobody else can.
        let held = matches!(self.0.waits.load(Ordering::Acquire), HELD | TO_COME);
        Shared::handles(&self.0) == 1 + held as usize
            && match &self.0.owner {
                Owner::Cache(resized) => resized.get().is_none_or(|r| r.map.get().is_none()),
                Owner::Lender(_) | Owner::Behind | Owner::Map(_) | Owner::Held(_) => false,
                Owner::Gpu(_) | Owner::Meta => true,
            }
    }
}

impl Drop for Allocation {
    #[inline]
    fn drop(&mut self) {
        let Owner::Cache(resized) = &mut self.owner else {
            return;
        };
        let blocks = match resized.get_mut() {
            Some(r) => std::mem::take(&mut r.blocks.get_mut().all),
            None => {
                if let Some(p) = NonNull::new(*self.ptr.get_mut()) {
                    // SAFETY: `p` came from `alloc` with this size and nobody holds it any more.
                    unsafe { alloc::free(p, *self.bytes.get_mut()) }
                }
                return;
            }
        };
        for (p, bytes) in blocks {
            // SAFETY: each block came from `alloc` with a size of the same room, and nobody holds
            // it any more.
            unsafe { alloc::free(p, bytes) }
        }
    }
}

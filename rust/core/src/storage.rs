//! Reference-counted memory that tensors share. No locks: kernels write through raw pointers, and
//! the version counter tells autograd that they did.

use crate::alloc;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu};
use crate::shared::Shared;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

enum Owner {
    /// The memory is from [`crate::alloc`] and goes back there.
    Cache,
    /// Someone else (NumPy, DLPack, a memory map), kept alive with the memory.
    Lender(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
    /// The GPU's pool, with an address that tells the buffer from all others.
    Gpu(Box<(Buffer, usize)>),
}

pub struct Allocation {
    /// Null for memory of the GPU.
    ptr: *mut u8,
    bytes: usize,
    version: AtomicU32,
    /// The version from when a tensor that moved to other memory went on counting with it.
    shared: OnceLock<Arc<AtomicU32>>,
    owner: Owner,
}

// SAFETY: the pointer is owned (or kept alive by its owner); concurrent writes to elements are the
// user's races, as in PyTorch.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

/// The start of a range of addresses for `bytes` on the GPU, above all those of the host.
fn fresh_address(bytes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1 << 60);
    NEXT.fetch_add(bytes.next_multiple_of(256).max(256), Ordering::Relaxed)
}

/// A shared block of memory on one device.
#[derive(Clone)]
pub struct Storage(Shared<Allocation>);

impl Storage {
    /// Uninitialised memory.
    pub fn empty(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::cached(alloc::alloc(bytes)?, bytes)),
            Device::Wgpu => {
                let buffer = Gpu::get()?.alloc(bytes)?;
                let owner = Owner::Gpu(Box::new((buffer, fresh_address(bytes))));
                Ok(Storage::new(std::ptr::null_mut(), bytes, owner))
            }
        }
    }

    pub fn zeroed(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::cached(alloc::alloc_zeroed(bytes)?, bytes)),
            Device::Wgpu => {
                let (gpu, storage) = (Gpu::get()?, Storage::empty(bytes, device)?);
                if let (Some(b), true) = (storage.buffer(), bytes > 0) {
                    gpu.fill_zero(b)?;
                }
                Ok(storage)
            }
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

    #[inline(always)]
    fn cached(ptr: NonNull<u8>, bytes: usize) -> Storage {
        Storage::new(ptr.as_ptr(), bytes, Owner::Cache)
    }

    #[inline(always)]
    fn new(ptr: *mut u8, bytes: usize, owner: Owner) -> Storage {
        Storage(Shared::new(Allocation {
            ptr,
            bytes,
            version: AtomicU32::new(0),
            shared: OnceLock::new(),
            owner,
        }))
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub fn device(&self) -> Device {
        match self.0.owner {
            Owner::Gpu(_) => Device::Wgpu,
            _ => Device::Cpu,
        }
    }

    /// The first byte in host memory; null for memory of the GPU.
    pub fn ptr(&self) -> *mut u8 {
        self.0.ptr
    }

    /// Where the memory begins: an address of the host, or for memory of the GPU a number that no
    /// live memory shares, not to be read from.
    pub fn address(&self) -> usize {
        match &self.0.owner {
            Owner::Gpu(own) => own.1,
            _ => self.0.ptr as usize,
        }
    }

    /// The buffer of memory on the GPU.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.0.owner {
            Owner::Gpu(own) => Some(&own.0),
            _ => None,
        }
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
        matches!(self.0.owner, Owner::Lender(_))
    }

    /// A number that only handles on the same memory share.
    pub fn id(&self) -> usize {
        Shared::as_ptr(&self.0) as usize
    }

    pub fn same(&self, other: &Storage) -> bool {
        Shared::same(&self.0, &other.0)
    }

    /// Whether nobody else can see this memory.
    pub fn is_unique(&self) -> bool {
        Shared::handles(&self.0) == 1 && !matches!(self.0.owner, Owner::Lender(_))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let (Owner::Cache, Some(p)) = (&self.owner, NonNull::new(self.ptr)) {
            // SAFETY: `p` came from `alloc` with this size and nobody holds it any more.
            unsafe { alloc::free(p, self.bytes) }
        }
    }
}

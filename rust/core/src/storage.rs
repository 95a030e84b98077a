//! Reference-counted memory that tensors share. No locks: kernels write through raw pointers, and
//! the version counter tells autograd that they did.

use crate::alloc;
use crate::device::Device;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

enum Memory {
    /// From [`crate::alloc`], returned to it on drop.
    Host(NonNull<u8>),
    /// Lent by someone else (NumPy, DLPack, a memory map), kept alive by the owner.
    Lent(NonNull<u8>, #[allow(dead_code)] Box<dyn Any + Send + Sync>),
    /// On the GPU, in its pool, with an address that tells it from all others.
    Gpu(Buffer, usize),
}

pub struct Allocation {
    memory: Memory,
    bytes: usize,
    version: AtomicU32,
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
pub struct Storage(Arc<Allocation>);

impl Storage {
    /// Uninitialised memory.
    pub fn empty(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::new(Memory::Host(alloc::alloc(bytes)?), bytes)),
            Device::Wgpu => Ok(Storage::new(
                Memory::Gpu(Gpu::get()?.alloc(bytes)?, fresh_address(bytes)),
                bytes,
            )),
        }
    }

    pub fn zeroed(bytes: usize, device: Device) -> Result<Storage> {
        match device {
            Device::Cpu => Ok(Storage::new(
                Memory::Host(alloc::alloc_zeroed(bytes)?),
                bytes,
            )),
            Device::Wgpu => {
                let (gpu, storage) = (Gpu::get()?, Storage::empty(bytes, device)?);
                if let (Memory::Gpu(b, _), true) = (&storage.0.memory, bytes > 0) {
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
        Storage::new(Memory::Lent(ptr, owner), bytes)
    }

    fn new(memory: Memory, bytes: usize) -> Storage {
        Storage(Arc::new(Allocation {
            memory,
            bytes,
            version: AtomicU32::new(0),
        }))
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    pub fn device(&self) -> Device {
        match self.0.memory {
            Memory::Gpu(..) => Device::Wgpu,
            _ => Device::Cpu,
        }
    }

    /// The first byte in host memory; null for memory of the GPU.
    pub fn ptr(&self) -> *mut u8 {
        match &self.0.memory {
            Memory::Host(p) | Memory::Lent(p, _) => p.as_ptr(),
            Memory::Gpu(..) => std::ptr::null_mut(),
        }
    }

    /// Where the memory begins: an address of the host, or for memory of the GPU a number that no
    /// live memory shares, not to be read from.
    pub fn address(&self) -> usize {
        match &self.0.memory {
            Memory::Host(p) | Memory::Lent(p, _) => p.as_ptr() as usize,
            Memory::Gpu(_, address) => *address,
        }
    }

    /// The buffer of memory on the GPU.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.0.memory {
            Memory::Gpu(b, _) => Some(b),
            _ => None,
        }
    }

    pub fn version(&self) -> u32 {
        self.0.version.load(Ordering::Relaxed)
    }

    pub fn bump_version(&self) {
        self.0.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the memory is somebody else's.
    pub fn is_lent(&self) -> bool {
        matches!(self.0.memory, Memory::Lent(..))
    }

    /// A number that only handles on the same memory share.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether nobody else can see this memory.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !matches!(self.0.memory, Memory::Lent(..))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Memory::Host(p) = self.memory {
            // SAFETY: `p` came from `alloc` with this size and nobody holds it any more.
            unsafe { alloc::free(p, self.bytes) }
        }
    }
}

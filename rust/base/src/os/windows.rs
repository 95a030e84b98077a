//! Windows: documented functions of `kernel32` alone, since the crates that declare all of them would be needed for
//! these few.

use super::whole_pages;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr::{null, null_mut, NonNull};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where what may be lost is kept: what a variable names, and a folder in it.
pub const CACHES: [(&str, &str); 1] = [("LOCALAPPDATA", "")];

const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_RELEASE: u32 = 0x8000;
const MEM_RESET: u32 = 0x8_0000;
const PAGE_READWRITE: u32 = 0x04;
const PAGE_WRITECOPY: u32 = 0x08;
const FILE_MAP_COPY: u32 = 0x01;
const FILE_MAP_WRITE: u32 = 0x02;
const FILE_MAP_READ: u32 = 0x04;
/// The pages of all processors that run Windows.
const PAGE: usize = 4096;

#[repr(C)]
struct MemoryStatus {
    length: u32,
    load: u32,
    total_physical: u64,
    available_physical: u64,
    /// What can be committed in all: main memory and the paging files, or what the process may have.
    total_page_file: u64,
    available_page_file: u64,
    total_virtual: u64,
    available_virtual: u64,
    available_extended: u64,
}

#[link(name = "kernel32")]
extern "system" {
    fn VirtualAlloc(at: *mut c_void, size: usize, kind: u32, protect: u32) -> *mut c_void;
    fn VirtualFree(at: *mut c_void, size: usize, kind: u32) -> c_int;
    fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> c_int;
    fn CreateFileMappingW(
        file: RawHandle,
        security: *const c_void,
        protect: u32,
        size_high: u32,
        size_low: u32,
        name: *const u16,
    ) -> RawHandle;
    fn MapViewOfFile(
        section: RawHandle,
        access: u32,
        offset_high: u32,
        offset_low: u32,
        bytes: usize,
    ) -> *mut c_void;
    fn UnmapViewOfFile(at: *const c_void) -> c_int;
}

/// Allocates `size` bytes of zeros; addresses are multiples of 64 KB. Large pages need a right that users lack.
pub fn map(size: usize) -> Option<NonNull<u8>> {
    // SAFETY: new pages at an address that the system chooses.
    let at = unsafe { VirtualAlloc(null_mut(), size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
    NonNull::new(at.cast())
}

pub fn unmap(at: *mut u8, _: usize) {
    // SAFETY: `map` allocated pages from here on, and nobody uses them any more.
    unsafe { VirtualFree(at.cast(), 0, MEM_RELEASE) };
}

pub fn discard(block: NonNull<u8>, from: usize, to: usize) {
    if let Some((first, n)) = whole_pages(block.as_ptr().addr(), from, to, PAGE) {
        let at = block.as_ptr().wrapping_add(first).cast();
        // SAFETY: whole pages of a private block, which the caller wants nothing of any more; they stay committed.
        unsafe { VirtualAlloc(at, n, MEM_RESET, PAGE_READWRITE) };
    }
}

fn memory() -> Option<MemoryStatus> {
    // SAFETY: the structure says how long it is, and is plain numbers.
    unsafe {
        let mut status: MemoryStatus = std::mem::zeroed();
        status.length = size_of::<MemoryStatus>() as u32;
        (GlobalMemoryStatusEx(&mut status) != 0).then_some(status)
    }
}

pub fn total_memory() -> usize {
    memory().map_or(usize::MAX, |m| m.total_page_file as usize)
}

pub fn available_memory() -> usize {
    memory().map_or(usize::MAX, |m| m.available_page_file as usize)
}

/// What a map shows: a section, of a file or of memory alone. Processes share it by its handle; its name tells one
/// from another.
pub struct Backing {
    section: OwnedHandle,
    name: String,
}

impl Backing {
    /// That of a file, which is not empty. Only where it is `shared` does what is written go there.
    pub fn of_file(file: &File, shared: bool) -> io::Result<Backing> {
        let protect = if shared {
            PAGE_READWRITE
        } else {
            PAGE_WRITECOPY
        };
        Backing::new(file.as_raw_handle(), 0, protect)
    }

    /// That of memory: so many zeros.
    pub fn of_memory(bytes: usize) -> io::Result<Backing> {
        // INVALID_HANDLE_VALUE: of no file.
        Backing::new(usize::MAX as RawHandle, bytes as u64, PAGE_READWRITE)
    }

    /// The one that another process had under this name, by a handle of this process, which it takes.
    ///
    /// # Safety
    /// The handle is that of a section, and nobody else closes it.
    pub unsafe fn of_handle(handle: isize, name: String) -> Backing {
        // SAFETY: the handle is that of a section, and nobody else closes it.
        let section = unsafe { OwnedHandle::from_raw_handle(handle as RawHandle) };
        Backing { section, name }
    }

    fn new(file: RawHandle, bytes: u64, protect: u32) -> io::Result<Backing> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Numbers of processes are used again, moments are not.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH);
        let moment = moment.map_or(0, |d| d.as_nanos());
        let count = COUNT.fetch_add(1, Relaxed);
        let name = format!(
            "Local\\pytensorlib-{}-{moment:x}-{count}",
            std::process::id()
        );
        let wide: Vec<u16> = name.encode_utf16().chain([0]).collect();
        // SAFETY: the handle is open, or that of no file; the name ends with zero.
        let section = unsafe {
            let (high, low) = ((bytes >> 32) as u32, bytes as u32);
            CreateFileMappingW(file, null(), protect, high, low, wide.as_ptr())
        };
        if section.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new handle that nobody else has.
        let section = unsafe { OwnedHandle::from_raw_handle(section) };
        Ok(Backing { section, name })
    }

    pub fn map(&self, bytes: usize, shared: bool) -> io::Result<NonNull<u8>> {
        let access = match shared {
            true => FILE_MAP_READ | FILE_MAP_WRITE,
            false => FILE_MAP_COPY,
        };
        // SAFETY: an open section; the address is the system's choice.
        let at = unsafe { MapViewOfFile(self.section.as_raw_handle(), access, 0, 0, bytes) };
        NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)
    }

    pub fn handle(&self) -> isize {
        self.section.as_raw_handle() as isize
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

pub fn unmap_file(at: NonNull<u8>, _: usize) {
    // SAFETY: a view from its beginning, and nobody holds it any more.
    unsafe { UnmapViewOfFile(at.as_ptr().cast()) };
}

/// A file of its own behind a handle of the caller's.
///
/// # Safety
/// The handle is open, and a file's.
pub unsafe fn file_of(handle: isize) -> io::Result<File> {
    // SAFETY: the handle is open, and a file's.
    let handle = unsafe { BorrowedHandle::borrow_raw(handle as RawHandle) };
    Ok(File::from(handle.try_clone_to_owned()?))
}

/// Fills `target` from `offset` on; where the file stands is another place afterwards.
pub fn read_exact_at(file: &File, mut target: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !target.is_empty() {
        match file.seek_read(target, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => (target, offset) = (&mut target[n..], offset + n as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Ctrl-C comes on a thread of the system's; the host knows for whom it is.
pub fn may_be_interrupted() -> bool {
    true
}

/// There is no `fork`.
pub fn at_fork(_: extern "C" fn()) {}

/// No documented way is known.
pub fn permits_amx() -> bool {
    false
}

/// mingw's own `fma` and `fmaf` round twice, so that numbers would differ from those of every other system.
#[cfg(target_env = "gnu")]
mod fused {
    use crate::isa::Level;
    use std::arch::x86_64::*;

    crate::compiled! { avx2:
        unsafe fn one(x: f32, y: f32, z: f32) -> f32 {
            // Not `mul_add`, which calls `fmaf` where nothing is inlined.
            _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(y), _mm_set_ss(z)))
        }

        unsafe fn two(x: f64, y: f64, z: f64) -> f64 {
            _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(x), _mm_set_sd(y), _mm_set_sd(z)))
        }
    }

    #[no_mangle]
    extern "C" fn fmaf(x: f32, y: f32, z: f32) -> f32 {
        match Level::detect() {
            Level::Portable => libm::fmaf(x, y, z),
            // SAFETY: the processor has the instruction.
            _ => unsafe { one(x, y, z) },
        }
    }

    #[no_mangle]
    extern "C" fn fma(x: f64, y: f64, z: f64) -> f64 {
        match Level::detect() {
            Level::Portable => libm::fma(x, y, z),
            // SAFETY: the processor has the instruction.
            _ => unsafe { two(x, y, z) },
        }
    }
}

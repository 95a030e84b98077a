//! Linux, macOS and what is like them.

use super::{whole_pages, HUGE_PAGE};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// Where what may be lost is kept: what a variable names, and a folder in it.
pub const CACHES: [(&str, &str); 2] = [("XDG_CACHE_HOME", ""), ("HOME", ".cache")];

/// Maps `size` bytes of zeros that begin on a huge page.
pub fn map(size: usize) -> Option<NonNull<u8>> {
    let wide = size.checked_add(HUGE_PAGE)?;
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANON,
    );
    // SAFETY: a fresh anonymous map overlaps nothing.
    let raw = unsafe { libc::mmap(std::ptr::null_mut(), wide, prot, flags, -1, 0) };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let raw = raw.cast::<u8>();
    let head = raw.align_offset(HUGE_PAGE);
    // SAFETY: head + size <= wide; the pages cut off at either end were never handed out.
    unsafe {
        let start = raw.add(head);
        if head > 0 {
            libc::munmap(raw.cast(), head);
        }
        libc::munmap(start.add(size).cast(), HUGE_PAGE - head);
        #[cfg(target_os = "linux")]
        libc::madvise(start.cast(), size, libc::MADV_HUGEPAGE);
        NonNull::new(start)
    }
}

pub fn unmap(at: *mut u8, size: usize) {
    // SAFETY: `map` made exactly these pages, and nobody uses them any more.
    unsafe { libc::munmap(at.cast(), size) };
}

pub fn discard(block: NonNull<u8>, from: usize, to: usize) {
    // Only a hint on macOS, where `MADV_FREE` lets pages go when memory is short.
    #[cfg(target_vendor = "apple")]
    const GO: libc::c_int = libc::MADV_FREE;
    #[cfg(not(target_vendor = "apple"))]
    const GO: libc::c_int = libc::MADV_DONTNEED;
    if let Some((first, n)) = whole_pages(block.as_ptr().addr(), from, to, page()) {
        // SAFETY: whole pages of a private block, which the caller wants nothing of any more.
        unsafe { libc::madvise(block.as_ptr().wrapping_add(first).cast(), n, GO) };
    }
}

fn page() -> usize {
    // SAFETY: sysconf only reads.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Main memory.
fn physical_pages() -> usize {
    // SAFETY: sysconf only reads.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    match usize::try_from(pages) {
        Ok(1..) => (pages as usize).saturating_mul(page()),
        _ => usize::MAX,
    }
}

/// Main memory plus swap, or less where a control group allows less.
#[cfg(not(target_vendor = "apple"))]
pub fn total_memory() -> usize {
    let machine = meminfo(&["MemTotal:", "SwapTotal:"]).unwrap_or_else(physical_pages);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .or_else(|_| std::fs::read_to_string("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    let group = group.ok().and_then(|t| t.trim().parse().ok());
    machine.min(group.unwrap_or(usize::MAX))
}

#[cfg(not(target_vendor = "apple"))]
pub fn available_memory() -> usize {
    meminfo(&["MemAvailable:", "SwapFree:"]).unwrap_or(usize::MAX)
}

/// Sums the named rows of Linux's `/proc/meminfo`.
#[cfg(not(target_vendor = "apple"))]
fn meminfo(rows: &[&str]) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let wanted = rows.contains(&words.next()?);
        let kib: usize = words.next()?.parse().ok()?;
        wanted.then_some(kib << 10)
    };
    Some(text.lines().filter_map(row).sum())
}

/// Main memory plus the swap files, which the system makes more of as long as the disk has room: what they have now.
#[cfg(target_vendor = "apple")]
pub fn total_memory() -> usize {
    let swap = swap().map_or(0, |s| s.xsu_total as usize);
    physical_pages().saturating_add(swap)
}

/// What nobody uses or what can be read again, and the room of the swap files.
#[cfg(target_vendor = "apple")]
pub fn available_memory() -> usize {
    // SAFETY: counters of plain numbers, of which the system fills as many as `count` says; the port that is asked
    // by is given back.
    let pages = unsafe {
        let mut told: libc::vm_statistics64 = std::mem::zeroed();
        let mut count = libc::HOST_VM_INFO64_COUNT;
        #[allow(deprecated)] // the crate that has it instead would be needed for this alone
        let port = libc::mach_host_self();
        let at = std::ptr::from_mut(&mut told).cast();
        let done = libc::host_statistics64(port, libc::HOST_VM_INFO64, at, &mut count);
        #[allow(deprecated)]
        mach_port_deallocate(libc::mach_task_self(), port);
        if done != libc::KERN_SUCCESS {
            return usize::MAX;
        }
        // Pages read ahead are among the free ones.
        told.free_count as usize + told.inactive_count as usize + told.purgeable_count as usize
    };
    let swap = swap().map_or(0, |s| s.xsu_avail as usize);
    pages
        .saturating_mul(page())
        .saturating_add(swap)
        .min(total_memory())
}

#[cfg(target_vendor = "apple")]
extern "C" {
    fn mach_port_deallocate(
        task: libc::mach_port_t,
        name: libc::mach_port_t,
    ) -> libc::kern_return_t;
}

#[cfg(target_vendor = "apple")]
fn swap() -> Option<libc::xsw_usage> {
    // SAFETY: the system writes no more than `size` bytes, which the structure has.
    unsafe {
        let mut told: libc::xsw_usage = std::mem::zeroed();
        let mut size = size_of_val(&told);
        let at = std::ptr::from_mut(&mut told).cast();
        let name = c"vm.swapusage".as_ptr();
        let done = libc::sysctlbyname(name, at, &mut size, std::ptr::null_mut(), 0);
        (done == 0).then_some(told)
    }
}

/// What a map shows: a file, which lives as long, also when it has no name. Processes share it by its descriptor.
pub struct Backing(File);

impl Backing {
    pub fn of_file(file: &File, _: bool) -> io::Result<Backing> {
        file.try_clone().map(Backing)
    }

    /// Maps the first `bytes`, which are not none, of a file that has them. Only where the map is `shared` does
    /// what is written go there.
    pub fn map(&self, bytes: usize, shared: bool) -> io::Result<NonNull<u8>> {
        let flags = match shared {
            true => libc::MAP_SHARED,
            false => libc::MAP_PRIVATE,
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new map at an address that the system chooses.
        let at = unsafe {
            let any = std::ptr::null_mut();
            libc::mmap(any, bytes, access, flags, self.0.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(NonNull::new(at.cast()).expect("a map is not at address 0"))
    }

    pub fn handle(&self) -> isize {
        self.0.as_raw_fd() as isize
    }
}

pub fn unmap_file(at: NonNull<u8>, bytes: usize) {
    // SAFETY: a backing's `map` made it with this size, and nobody holds it any more.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// A file of its own behind a descriptor of the caller's.
///
/// # Safety
/// The descriptor is open.
pub unsafe fn file_of(handle: isize) -> io::Result<File> {
    // SAFETY: the descriptor is open.
    let fd = unsafe { BorrowedFd::borrow_raw(handle as RawFd) };
    Ok(File::from(fd.try_clone_to_owned()?))
}

/// Fills `target` from `offset` on, wherever the file stands.
pub fn read_exact_at(file: &File, target: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(target, offset)
}

pub fn cpus() -> usize {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the kernel fills a set of the given size, which is plain bits.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) == 0 {
                return (libc::CPU_COUNT(&set) as usize).max(1);
            }
        }
    }
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Signals are for the first thread.
pub fn may_be_interrupted() -> bool {
    // glibc has had `gettid` since 2.30 only.
    #[cfg(target_os = "linux")]
    // SAFETY: both only return a number.
    return unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    #[cfg(target_vendor = "apple")]
    // SAFETY: it only returns a number.
    return unsafe { libc::pthread_main_np() == 1 };
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    true
}

pub fn at_fork(in_child: extern "C" fn()) {
    let in_child: unsafe extern "C" fn() = in_child;
    // SAFETY: what the caller gives is safe to call.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// ARCH_REQ_XCOMP_PERM for the tiles' data, for all threads of the process.
pub fn permits_amx() -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    // SAFETY: the call takes two numbers.
    return unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1023, 18) == 0 };
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    false
}

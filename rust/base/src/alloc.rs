//! The caching allocator: 64-byte aligned, uninitialised blocks.
//!
//! Three tiers, chosen by size alone, so that `free` needs only the size it was given:
//! thread-local free lists up to 64 KiB, shared bins up to 2 MiB, and above that maps of whole
//! huge pages that are kept for reuse under a cap. Fresh pages cost far more than the arithmetic
//! done on them, so nothing goes back to the system while the caches have room.
//!
//! With `PYTENSORLIB_CACHE_MB=0` nothing is kept, and each block has exactly its size, so that tools
//! which watch the heap see a read past its end. With `PYTENSORLIB_GUARD=1` too, and bytes of a
//! pattern lie before and behind each block: a write to them ends the process where the block is freed.
//!
//! Shared locks are only ever tried, never waited for: a child of `fork` may inherit one locked.

mod map;
mod room;
mod scratch;

use crate::error::{Error, Kind, Result};
use crate::machine;
use crate::os::{self, available_memory, map, total_memory, unmap, HUGE_PAGE};
use parking_lot::Mutex;
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

pub use map::FileMap;
pub use room::{check, filled, full, gathered, grow, list, reserve, resize, room, spare};
pub use scratch::{Scratch, Workspace};

/// Alignment of every block: a cache line, and a full AVX-512 vector.
pub const ALIGN: usize = 64;
const SMALL_MAX: usize = 64 << 10;
const MEDIUM_MAX: usize = 2 << 20;
/// Four classes below 256 bytes, then four to each doubling up to 2 MiB.
const CLASSES: usize = 56;
const SMALL_CLASSES: usize = 36;
/// A thread keeps at most this many bytes of one class.
const LOCAL_BYTES: usize = 256 << 10;
/// The shared bins keep at most this many bytes in all.
const SHARED_BYTES: usize = 128 << 20;
/// Requests this large are compared with the memory that is free right now.
const CHECK_AVAILABLE: usize = 1 << 30;

/// Returns the class of a size from 1 to 2 MiB.
#[inline(always)]
fn class_of(bytes: usize) -> usize {
    if bytes <= 256 {
        return (bytes - 1) >> 6;
    }
    let top = (usize::BITS - 1 - (bytes - 1).leading_zeros()) as usize;
    // The two bits below the leading one pick the quarter within the doubling.
    ((bytes - 1) >> (top - 2)) - 4 + ((top - 8) << 2) + 4
}

/// Returns the number of bytes that a block of the class has.
#[inline(always)]
fn class_bytes(class: usize) -> usize {
    if class < 4 {
        (class + 1) << 6
    } else {
        (5 + (class & 3)) << (6 + (class - 4) / 4)
    }
}

/// Rounds a size above 2 MiB to whole huge pages, eight steps to a doubling from 16 MiB on.
fn large_bytes(bytes: usize) -> usize {
    let top = usize::BITS - 1 - bytes.leading_zeros();
    let step = HUGE_PAGE.max(1 << (top - 3));
    bytes.div_ceil(step) * step
}

/// Bytes ever obtained from the system and not yet given back.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static SYSTEM_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Requests up to this size look into the thread's lists: [`SMALL_MAX`], or nothing before the
/// first block, while new blocks are filled, and where blocks are [`exact`].
static LISTED: AtomicUsize = AtomicUsize::new(0);
/// The byte that new blocks are filled with, where there is one.
static FILL: AtomicU16 = AtomicU16::new(NO_FILL);
const NO_FILL: u16 = 256;

/// Fills each block handed out from now on with `byte`, for tests: no result may depend on what
/// was in memory before. `None` ends that.
pub fn fill_new(byte: Option<u8>) {
    FILL.store(byte.map_or(NO_FILL, u16::from), Relaxed);
    let listed = !exact() && byte.is_none();
    LISTED.store(if listed { SMALL_MAX } else { 0 }, Relaxed);
}

/// Whether each block is the system's own, of exactly its size. Settled before the first block.
fn exact() -> bool {
    static EXACT: OnceLock<bool> = OnceLock::new();
    *EXACT.get_or_init(|| {
        let exact = cache_cap() == 0 || guarded();
        LISTED.store(if exact { 0 } else { SMALL_MAX }, Relaxed);
        exact
    })
}

/// Guard bytes before a block, and as many behind it.
const GUARD: usize = ALIGN;
const PATTERN: u8 = 0xA5;

fn guarded() -> bool {
    static GUARDED: OnceLock<bool> = OnceLock::new();
    *GUARDED.get_or_init(|| machine::guards_memory().unwrap_or(false))
}

/// A free block holds the address of the next one in its first bytes.
#[derive(Clone, Copy)]
struct List {
    head: *mut u8,
    len: usize,
}

// SAFETY: a list owns its blocks, which are plain memory that no thread refers to.
unsafe impl Send for List {}

impl List {
    const EMPTY: List = List {
        head: std::ptr::null_mut(),
        len: 0,
    };

    #[inline(always)]
    fn push(&mut self, block: *mut u8) {
        // SAFETY: the block is free, at least 64 bytes long and aligned for a pointer.
        unsafe { block.cast::<*mut u8>().write(self.head) };
        self.head = block;
        self.len += 1;
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.head)?;
        // SAFETY: `push` wrote the next address here, and the block was free ever since.
        self.head = unsafe { block.cast::<*mut u8>().read() };
        self.len -= 1;
        Some(block)
    }
}

struct Local(UnsafeCell<[List; SMALL_CLASSES]>);

impl Drop for Local {
    fn drop(&mut self) {
        for (class, list) in self.0.get_mut().iter_mut().enumerate() {
            while let Some(block) = list.pop() {
                shared_free(class, block);
            }
        }
    }
}

thread_local! {
    static LOCAL: Local = const { Local(UnsafeCell::new([List::EMPTY; SMALL_CLASSES])) };
}

struct Shared {
    bins: [List; CLASSES],
    bytes: usize,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    bins: [List::EMPTY; CLASSES],
    bytes: 0,
});

/// Free maps, oldest first, as (size, address).
struct Maps {
    free: VecDeque<(usize, usize)>,
    bytes: usize,
}

static MAPS: Mutex<Maps> = Mutex::new(Maps {
    free: VecDeque::new(),
    bytes: 0,
});

/// Tries a lock for a short while; `None` also when a fork left it locked for ever.
fn try_lock<T>(lock: &Mutex<T>) -> Option<parking_lot::MutexGuard<'_, T>> {
    for _ in 0..200 {
        if let Some(guard) = lock.try_lock() {
            return Some(guard);
        }
        std::hint::spin_loop();
    }
    None
}

pub fn out_of_memory(bytes: usize) -> Error {
    let text = format!(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. \
         That is more memory than this machine can give now."
    );
    Error::new(Kind::OutOfMemory, text)
}

/// Returns `bytes` of uninitialised memory, aligned to 64 bytes.
///
/// Zero bytes give an aligned address that must not be read. Fails with `OutOfMemory` where the
/// machine cannot back the request; memory already in use is not touched then.
#[inline]
pub fn alloc(bytes: usize) -> Result<NonNull<u8>> {
    // Zero wraps around to the largest number and takes the cold path.
    if bytes.wrapping_sub(1) < LISTED.load(Relaxed) {
        let class = class_of(bytes);
        // SAFETY: the lists belong to this thread, and no reference to them outlives the closure.
        let found = LOCAL.try_with(|l| unsafe { (*l.0.get())[class].pop() });
        if let Ok(Some(block)) = found {
            return Ok(block);
        }
    }
    alloc_slow(bytes).map(|(block, _)| block)
}

/// Returns `bytes` of zeros, aligned to 64 bytes. See [`alloc`].
pub fn alloc_zeroed(bytes: usize) -> Result<NonNull<u8>> {
    let (block, zeroed) = alloc_known(bytes)?;
    if !zeroed {
        // SAFETY: the block has at least `bytes` bytes and nobody else has its address.
        unsafe { block.as_ptr().write_bytes(0, bytes) };
    }
    Ok(block)
}

/// As [`alloc`], and whether the block is known to hold zeros.
pub fn alloc_known(bytes: usize) -> Result<(NonNull<u8>, bool)> {
    if bytes > MEDIUM_MAX {
        return alloc_slow(bytes);
    }
    Ok((alloc(bytes)?, false))
}

/// Gives a block back.
///
/// # Safety
/// `block` came from [`alloc`] or [`alloc_zeroed`] with as many `bytes`, or others of the same
/// [room](room_of), and is not used again.
#[inline]
pub unsafe fn free(block: NonNull<u8>, bytes: usize) {
    if bytes.wrapping_sub(1) < LISTED.load(Relaxed) {
        let class = class_of(bytes);
        let kept = LOCAL.try_with(|l| {
            // SAFETY: the lists belong to this thread; the reference ends with the closure.
            let list = unsafe { &mut (*l.0.get())[class] };
            list.push(block.as_ptr());
            if list.len * class_bytes(class) > LOCAL_BYTES {
                spill(class, list);
            }
        });
        if kept.is_ok() {
            return;
        }
    }
    free_slow(block, bytes);
}

/// The bytes that a block asked for with `bytes` has; it may be given back with either number.
pub fn room_of(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ if exact() => bytes,
        1..=MEDIUM_MAX => class_bytes(class_of(bytes)),
        _ => large_bytes(bytes),
    }
}

/// Gives the pages that lie wholly within these bytes of a block back to the system; the addresses
/// stay, and what is read there later is anything.
pub fn discard(block: NonNull<u8>, from: usize, to: usize) {
    os::discard(block, from, to);
}

/// Moves half of a thread's list to the shared bin.
#[cold]
fn spill(class: usize, list: &mut List) {
    for _ in 0..list.len.div_ceil(2) {
        if let Some(block) = list.pop() {
            shared_free(class, block);
        }
    }
}

/// Returns the block and whether it is known to hold zeros.
#[cold]
fn alloc_slow(bytes: usize) -> Result<(NonNull<u8>, bool)> {
    let (block, zeroed) = find(bytes)?;
    if let (Ok(byte), 1..) = (u8::try_from(FILL.load(Relaxed)), bytes) {
        // SAFETY: the block has at least `bytes` bytes and nobody else has its address.
        unsafe { block.as_ptr().write_bytes(byte, bytes) };
        return Ok((block, byte == 0));
    }
    Ok((block, zeroed))
}

fn find(bytes: usize) -> Result<(NonNull<u8>, bool)> {
    if bytes == 0 {
        // SAFETY: ALIGN is not zero.
        return Ok((unsafe { NonNull::new_unchecked(ALIGN as *mut u8) }, true));
    }
    if exact() {
        return exact_alloc(bytes);
    }
    if bytes > MEDIUM_MAX {
        return large_alloc(bytes);
    }
    let class = class_of(bytes);
    if let Some(mut shared) = try_lock(&SHARED) {
        if let Some(block) = shared.bins[class].pop() {
            shared.bytes -= class_bytes(class);
            return Ok((block, false));
        }
    }
    let layout = class_layout(class);
    let block = system_alloc(layout).or_else(|| {
        empty_cache();
        system_alloc(layout)
    });
    block
        .map(|b| (b, false))
        .ok_or_else(|| out_of_memory(bytes))
}

#[cold]
fn free_slow(block: NonNull<u8>, bytes: usize) {
    if exact() {
        if let (Ok(layout), 1..) = (exact_layout(bytes), bytes) {
            system_free(
                layout,
                if guarded() {
                    checked(block, bytes)
                } else {
                    block
                },
            );
        }
    } else if bytes > MEDIUM_MAX {
        large_free(block, large_bytes(bytes));
    } else if bytes > 0 {
        shared_free(class_of(bytes), block);
    }
}

fn shared_free(class: usize, block: NonNull<u8>) {
    if let Some(mut shared) = try_lock(&SHARED) {
        if shared.bytes + class_bytes(class) <= SHARED_BYTES {
            shared.bins[class].push(block.as_ptr());
            shared.bytes += class_bytes(class);
            return;
        }
    }
    system_free(class_layout(class), block);
}

/// A block of exactly its size, for tools that watch the heap, or between guard bytes.
fn exact_alloc(bytes: usize) -> Result<(NonNull<u8>, bool)> {
    let fits = bytes <= physical_memory();
    let layout = exact_layout(bytes).ok().filter(|_| fits);
    let mut block = layout.and_then(system_alloc);
    if guarded() {
        block = block.map(|whole| {
            // SAFETY: the memory is new, and has the guards and the block between them.
            unsafe {
                whole.write_bytes(PATTERN, GUARD);
                whole.add(GUARD + bytes).write_bytes(PATTERN, GUARD);
                whole.add(GUARD)
            }
        });
    }
    block
        .map(|b| (b, false))
        .ok_or_else(|| out_of_memory(bytes))
}

fn exact_layout(bytes: usize) -> std::result::Result<Layout, std::alloc::LayoutError> {
    let guards = if guarded() { 2 * GUARD } else { 0 };
    Layout::from_size_align(bytes.saturating_add(guards), ALIGN)
}

/// Where the memory of a block between guards begins. Ends the process where one was written to.
fn checked(block: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    // SAFETY: a block of this size lies between two guards.
    unsafe {
        let whole = block.sub(GUARD);
        for (side, at) in [("before", whole), ("behind", block.add(bytes))] {
            let guard = std::slice::from_raw_parts(at.as_ptr(), GUARD);
            if let Some(place) = guard.iter().position(|&b| b != PATTERN) {
                eprintln!(
                    "memory {side} a block of {bytes} bytes was written to: guard byte {place}"
                );
                std::process::abort();
            }
        }
        whole
    }
}

fn class_layout(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and a class is far smaller than isize::MAX.
    unsafe { Layout::from_size_align_unchecked(class_bytes(class), ALIGN) }
}

fn system_alloc(layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: neither a class nor a request that comes here is empty.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    RESERVED.fetch_add(layout.size(), Relaxed);
    SYSTEM_CALLS.fetch_add(1, Relaxed);
    Some(block)
}

fn system_free(layout: Layout, block: NonNull<u8>) {
    RESERVED.fetch_sub(layout.size(), Relaxed);
    // SAFETY: the block came from `system_alloc` with this layout, which its size alone decides.
    unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
}

fn large_alloc(bytes: usize) -> Result<(NonNull<u8>, bool)> {
    if bytes > physical_memory() {
        return Err(out_of_memory(bytes));
    }
    let size = large_bytes(bytes);
    if let Some(mut maps) = try_lock(&MAPS) {
        // The newest map is the likeliest to be in a cache still.
        if let Some(i) = maps.free.iter().rposition(|&(s, _)| s == size) {
            let found = maps.free.remove(i);
            maps.bytes -= size;
            if let Some(block) = found.and_then(|(_, at)| NonNull::new(at as *mut u8)) {
                return Ok((block, false));
            }
        }
    }
    if bytes >= CHECK_AVAILABLE && bytes > available_memory() {
        empty_cache();
        if bytes > available_memory() {
            return Err(out_of_memory(bytes));
        }
    }
    let block = map(size).or_else(|| {
        empty_cache();
        map(size)
    });
    let block = block.ok_or_else(|| out_of_memory(bytes))?;
    RESERVED.fetch_add(size, Relaxed);
    SYSTEM_CALLS.fetch_add(1, Relaxed);
    Ok((block, true))
}

fn large_free(block: NonNull<u8>, size: usize) {
    let cap = cache_cap();
    if size <= cap {
        if let Some(mut maps) = try_lock(&MAPS) {
            maps.free.push_back((size, block.as_ptr() as usize));
            maps.bytes += size;
            while maps.bytes > cap {
                let Some((old, at)) = maps.free.pop_front() else {
                    break;
                };
                maps.bytes -= old;
                release(at, old);
            }
            return;
        }
    }
    release(block.as_ptr() as usize, size);
}

fn release(at: usize, size: usize) {
    RESERVED.fetch_sub(size, Relaxed);
    unmap(at as *mut u8, size);
}

/// Returns what a process can be given at all.
fn physical_memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| total_memory().min(isize::MAX as usize - 2 * HUGE_PAGE))
}

/// Free maps are kept up to `PYTENSORLIB_CACHE_MB`, by default a quarter of memory.
fn cache_cap() -> usize {
    static CAP: OnceLock<usize> = OnceLock::new();
    *CAP.get_or_init(|| {
        let set = machine::cache_cap().ok().flatten();
        set.unwrap_or_else(|| physical_memory() / 4)
    })
}

/// Gives every cached block of this thread and of the shared tiers back to the system.
pub fn empty_cache() {
    // SAFETY: the lists belong to this thread; the reference ends with the closure.
    let _ = LOCAL.try_with(|l| unsafe {
        for (class, list) in (*l.0.get()).iter_mut().enumerate() {
            while let Some(block) = list.pop() {
                system_free(class_layout(class), block);
            }
        }
    });
    if let Some(mut shared) = try_lock(&SHARED) {
        for class in 0..CLASSES {
            while let Some(block) = shared.bins[class].pop() {
                system_free(class_layout(class), block);
            }
        }
        shared.bytes = 0;
    }
    if let Some(mut maps) = try_lock(&MAPS) {
        while let Some((size, at)) = maps.free.pop_front() {
            release(at, size);
        }
        maps.bytes = 0;
    }
}

/// What the allocator holds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Obtained from the system and not given back: in use or cached.
    pub reserved: usize,
    /// Free in this thread's lists and the shared tiers, ready for reuse.
    pub cached: usize,
    /// How often the system was asked for a block since the process began.
    pub system_calls: usize,
}

/// Returns what the allocator holds now. Blocks free in other threads' lists count as in use.
pub fn stats() -> Stats {
    // SAFETY: the lists belong to this thread and are only read.
    let local = LOCAL.try_with(|l| unsafe {
        (*l.0.get())
            .iter()
            .enumerate()
            .map(|(c, list)| list.len * class_bytes(c))
            .sum::<usize>()
    });
    let shared = try_lock(&SHARED).map_or(0, |s| s.bytes);
    let maps = try_lock(&MAPS).map_or(0, |m| m.bytes);
    Stats {
        reserved: RESERVED.load(Relaxed),
        cached: local.unwrap_or(0) + shared + maps,
        system_calls: SYSTEM_CALLS.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        for bytes in 1..=MEDIUM_MAX {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes}");
            assert_eq!(class < SMALL_CLASSES, bytes <= SMALL_MAX);
        }
        assert_eq!(class_of(MEDIUM_MAX), CLASSES - 1);
        for bytes in [MEDIUM_MAX + 1, 16 << 20, (16 << 20) + 1, 1_000_000_007] {
            let size = large_bytes(bytes);
            assert!(size >= bytes && size.is_multiple_of(HUGE_PAGE) && large_bytes(size) == size);
        }
    }

    #[test]
    fn blocks_are_aligned_apart_and_reused() {
        let sizes = [
            1,
            64,
            65,
            256,
            257,
            4096,
            65536,
            65537,
            2 << 20,
            (2 << 20) + 1,
            9 << 20,
        ];
        let blocks: Vec<_> = sizes.iter().map(|&n| (alloc(n).unwrap(), n)).collect();
        for (i, &(p, n)) in blocks.iter().enumerate() {
            assert_eq!(p.as_ptr() as usize % ALIGN, 0);
            // SAFETY: the block has n bytes.
            unsafe { p.as_ptr().write_bytes(i as u8 + 1, n) };
        }
        for (i, &(p, n)) in blocks.iter().enumerate() {
            // SAFETY: the block has n bytes, all of which were written.
            let bytes = unsafe { std::slice::from_raw_parts(p.as_ptr(), n) };
            assert!(bytes.iter().all(|&b| b == i as u8 + 1));
        }
        for &(p, n) in &blocks {
            // SAFETY: allocated with this size, not used again.
            unsafe { free(p, n) };
        }
        if !exact() {
            let (p, n) = blocks[3];
            assert_eq!(alloc(n).unwrap(), p);
            // SAFETY: allocated just now with this size, not used.
            unsafe { free(p, n) };
        }
        for n in [0, 100, 3 << 20, 3 << 20] {
            let p = alloc_zeroed(n).unwrap();
            // SAFETY: the block has n bytes and is given back once.
            unsafe {
                let all = std::slice::from_raw_parts_mut(p.as_ptr(), n);
                assert!(all.iter().all(|&b| b == 0));
                all.fill(7);
                free(p, n);
            }
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for n in [usize::MAX, isize::MAX as usize, 4_000_000_000_000_000] {
            let e = alloc(n).unwrap_err();
            assert_eq!(e.kind, Kind::OutOfMemory);
            assert!(e.text.contains(&format!("you tried to allocate {n} bytes")));
            assert!(alloc_zeroed(n).is_err());
        }
    }

    #[test]
    fn threads_pass_blocks_on() {
        let made = std::thread::spawn(|| {
            (0..1000)
                .map(|i| alloc(i + 1).unwrap().as_ptr() as usize)
                .collect::<Vec<_>>()
        });
        for (i, at) in made.join().unwrap().into_iter().enumerate() {
            // SAFETY: made by the other thread with this size and not used there any more.
            unsafe { free(NonNull::new(at as *mut u8).unwrap(), i + 1) };
        }
        empty_cache();
        assert!(stats().reserved >= stats().cached);
    }
}

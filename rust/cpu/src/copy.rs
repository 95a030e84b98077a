//! Copies of bytes that lie next to each other: one run, and many between places that no prefetcher
//! foresees.
//!
//! The system's copy of some KB is one string instruction on x86, which takes ten times as long on a
//! Zen 3 where the destination lies less than a vector behind the source, modulo pages.

use super::simd::fetch;
use crate::per_isa;
use std::ops::Range;

/// Copies a run while the lines of the next one, which begins at `next`, come into the cache.
pub type Run = unsafe fn(from: *const u8, to: *mut u8, bytes: usize, next: *const u8);

/// Lengths at which the system's copy may be that instruction.
const STRINGS: Range<usize> = match cfg!(target_arch = "x86_64") {
    true => 2 << 10..4 << 20,
    false => 0..0,
};
/// Runs that are shorter are copied before a line of the next would come; longer ones are foreseen.
const SINGLE: Range<usize> = 512..12 << 10;
/// A line of the cache.
const LINE: usize = 64;

/// The loop for runs of this length on this machine, where it is quicker than [`copy`].
pub fn runs(bytes: usize) -> Option<Run> {
    SINGLE.contains(&bytes).then(fetching)
}

/// Copies a run.
///
/// # Safety
/// Both have as many bytes, which are the same or apart.
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: both have as many bytes, which are the same or apart.
    unsafe {
        match STRINGS.contains(&bytes) {
            true => in_steps(from, to, bytes),
            false => std::ptr::copy(from, to, bytes),
        }
    }
}

type Step = [[u64; 4]; 4];
const STEP: usize = size_of::<Step>();

#[inline(always)]
unsafe fn step(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: both have a step there.
    unsafe {
        let v = from.add(at).cast::<Step>().read_unaligned();
        to.add(at).cast::<Step>().write_unaligned(v);
    }
}

per_isa! {
    unsafe fn in_steps[](from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: both have the bytes, at least a step; the last may repeat what the one before did.
        unsafe {
            // Stores from the second on do not cross lines.
            step(from, to, 0);
            let mut at = to.align_offset(LINE);
            while at + STEP <= bytes {
                step(from, to, at);
                at += STEP;
            }
            if at < bytes {
                step(from, to, bytes - STEP);
            }
        }
    }
}

per_isa! {
    fn fetching[] -> Run = (from: *const u8, to: *mut u8, bytes: usize, next: *const u8) {
        // SAFETY: both have the bytes, at least a step; the last may repeat what the one before did.
        unsafe {
            let mut at = 0;
            while at + STEP <= bytes {
                fetch(next.wrapping_add(at));
                fetch(next.wrapping_add(at + LINE));
                step(from, to, at);
                at += STEP;
            }
            if at < bytes {
                step(from, to, bytes - STEP);
            }
        }
    }
}

per_isa! {
    /// Writes `x` to `n` places.
    ///
    /// # Safety
    /// There is room for `n` elements at `y`.
    pub unsafe fn fill[T: Copy](x: T, y: *mut T, n: usize) {
        for i in 0..n {
            // SAFETY: there is room for `n` elements at `y`.
            unsafe { *y.add(i) = x };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn runs_of_all_lengths_are_copied_and_nothing_beside_them() {
        for bytes in (0..700).chain([2047, 2048, 2049, 4095, 4096, 4097, 12287, 12288, 20000]) {
            let from: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            for (first, next) in [(1, false), (1, true), (40, false)] {
                let mut to = vec![255; bytes + 64];
                // SAFETY: both have the bytes, and are apart.
                unsafe {
                    let to = to.as_mut_ptr().add(first);
                    match runs(bytes).filter(|_| next) {
                        Some(run) => run(from.as_ptr(), to, bytes, std::ptr::null()),
                        None => copy(from.as_ptr(), to, bytes),
                    }
                }
                assert_eq!(to[first..first + bytes], from[..]);
                assert!(to[..first]
                    .iter()
                    .chain(&to[first + bytes..])
                    .all(|&b| b == 255));
            }
        }
    }

    #[test]
    fn copies_take_about_as_long_wherever_the_destination_lies() {
        const BYTES: usize = 1 << 14;
        let (from, mut to) = (vec![1u8; BYTES + 4096], vec![0u8; BYTES + 8192]);
        let page = |p: *const u8| p.align_offset(4096);
        let (from, first) = (&from[page(from.as_ptr())..], page(to.as_ptr()));
        let mut least = |distance: usize| {
            let to = &mut to[first + distance..][..BYTES - 4096];
            (0..50)
                .map(|_| {
                    let start = Instant::now();
                    // SAFETY: both have the bytes, and are apart.
                    unsafe { copy(from.as_ptr(), to.as_mut_ptr(), to.len()) };
                    start.elapsed()
                })
                .fold(Duration::MAX, Duration::min)
        };
        let far = least(1024);
        for distance in [1, 4, 16, 32, 48, 64] {
            assert!(
                least(distance) < 4 * far + Duration::from_micros(2),
                "{distance}"
            );
        }
    }
}

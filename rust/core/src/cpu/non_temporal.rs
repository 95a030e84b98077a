//! Writes that go past the caches: what is larger than the last one will not be found there
//! again, and an ordinary store would read every line before it is overwritten. Not on AMD's
//! machines: there 64 MB took 9 to 20 ms that way on a busy Zen 5 and 1.4 ms by ordinary stores,
//! which were as quick at the best of times too.

use crate::machine::machine;

/// Whether a result of this many bytes is written past the caches.
pub fn is_worth(bytes: usize) -> bool {
    is_large(bytes) && !machine().is_amd
}

/// Whether a result of this many bytes will not be found in the caches.
pub fn is_large(bytes: usize) -> bool {
    bytes > machine().large
}

/// Copies past the caches where that is quick; [`fence`] before anyone else reads.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: `src` and `dst` have `bytes` bytes and do not overlap; lines are aligned in `dst` and
    // end at `bytes`.
    unsafe {
        use std::arch::x86_64::*;
        const LINE: usize = 64;
        let head = dst.align_offset(LINE);
        if head + LINE > bytes || machine().is_amd {
            return crate::cpu::copy::copy(src, dst, bytes);
        }
        std::ptr::copy_nonoverlapping(src, dst, head);
        let mut at = head;
        while at + LINE <= bytes {
            let (s, d) = (src.add(at).cast::<__m128i>(), dst.add(at).cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(s.add(i)));
            for (i, v) in line.into_iter().enumerate() {
                _mm_stream_si128(d.add(i), v);
            }
            at += LINE;
        }
        std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), bytes - at);
    }
}

/// As above, where the machine has no such stores.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: `src` and `dst` have `bytes` bytes and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
}

/// Fills past the caches; [`fence`] before anyone else reads.
///
/// # Safety
/// `dst` is aligned for its type and has room for `n`.
pub unsafe fn fill<T: Copy>(value: T, dst: *mut T, n: usize) {
    // SAFETY: `dst` has room for `n`, where every part ends; all but the first part hold whole
    // elements from a line on.
    unsafe {
        const PART: usize = 256;
        let part = [value; PART];
        // Parts begin on cache lines.
        let mut at = ((dst as usize).wrapping_neg() % 64 / size_of::<T>()).min(n);
        std::ptr::copy_nonoverlapping(part.as_ptr(), dst, at);
        while at < n {
            let count = PART.min(n - at);
            let bytes = count * size_of::<T>();
            copy(part.as_ptr().cast(), dst.add(at).cast(), bytes);
            at += count;
        }
    }
}

/// Makes the non-temporal stores of this thread visible.
#[inline]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of every x86-64 machine.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

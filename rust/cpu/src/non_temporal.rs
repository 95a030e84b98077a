//! Writes that go past the caches: what is larger than the last one will not be found there
//! again, and an ordinary store would read every line before it is overwritten. With AVX-512 a line is
//! one store. Lines in four parts are for Intel's machines: 64 MB took 9 to 20 ms that way on a busy
//! Zen 5 and 1.4 ms by ordinary stores. By whole lines a sum of two 64 MB takes 0.85 of the time there
//! and a copy 0.75, whatever else keeps the memory busy; zeros and ones take longer.

use crate::isa::Level;
use crate::machine::{level, machine};

/// Whether a result of this many bytes, which is computed from others, is written past the caches.
pub fn is_worth(bytes: usize) -> bool {
    is_large(bytes) && is_quick()
}

/// Whether as many bytes are filled past the caches: AMD's machines do not read what is overwritten by
/// nothing but stores.
pub fn is_worth_filling(bytes: usize) -> bool {
    is_large(bytes) && !machine().is_amd
}

/// Whether stores past the caches are quicker than others: whole lines are on any machine.
fn is_quick() -> bool {
    !machine().is_amd || level() == Level::Avx512
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
        if head + LINE > bytes || !is_quick() {
            return crate::copy::copy(src, dst, bytes);
        }
        std::ptr::copy_nonoverlapping(src, dst, head);
        let end = head + (bytes - head) / LINE * LINE;
        match level() {
            Level::Avx512 => whole_lines(src.add(head), dst.add(head), end - head),
            _ => {
                for at in (head..end).step_by(LINE) {
                    let (s, d) = (src.add(at).cast::<__m128i>(), dst.add(at).cast::<__m128i>());
                    let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(s.add(i)));
                    for (i, v) in line.into_iter().enumerate() {
                        _mm_stream_si128(d.add(i), v);
                    }
                }
            }
        }
        std::ptr::copy_nonoverlapping(src.add(end), dst.add(end), bytes - end);
    }
}

/// Copies lines, each by one store.
///
/// # Safety
/// As for [`copy`], of whole lines in `dst`, on a processor with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn whole_lines(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::arch::x86_64::*;
    for at in (0..bytes).step_by(64) {
        // SAFETY: a line of both.
        unsafe { _mm512_stream_si512(dst.add(at).cast(), _mm512_loadu_si512(src.add(at).cast())) };
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

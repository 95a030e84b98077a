//! Masks as words of bits: what they select is counted by chunks, so that several threads know
//! where their part of the result begins.

use super::elements::{Bool, Element};
use super::pool::{parallel_for, Ptr};
use crate::alloc;
use crate::error::Result;
use crate::per_isa;
use crate::strided::Strided;
use crate::with_element;
use smallvec::SmallVec;

/// Words per chunk.
const CHUNK: usize = 256;
/// Chunks below which a second thread costs more than it gains.
const GRAIN: usize = 2;

/// Which elements of a tensor are not zero, in row-major order.
pub struct Bits {
    words: Vec<u64>,
    /// How many are set before each chunk, and in the end how many are.
    starts: Vec<usize>,
}

/// An element that is zero or not; -0 is zero, NaN is not.
trait IsTrue: Element {
    fn is_true(self) -> bool;
}
macro_rules! is_true {
    ($($t:ty: |$x:ident| $e:expr;)*) => { $(
        impl IsTrue for $t {
            #[inline(always)]
            fn is_true(self) -> bool {
                let $x = self;
                $e
            }
        }
    )* };
}
is_true! {
    u8: |x| x != 0;
    i8: |x| x != 0;
    i16: |x| x != 0;
    i32: |x| x != 0;
    i64: |x| x != 0;
    Bool: |x| x.0 != 0;
    f32: |x| x != 0.0;
    f64: |x| x != 0.0;
    half::f16: |x| x.to_bits() & 0x7fff != 0;
    half::bf16: |x| x.to_bits() & 0x7fff != 0;
}

/// The bits of up to 64 bytes that are zero or one.
#[inline(always)]
pub(super) fn packed(bytes: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (i, part) in bytes.as_chunks::<8>().0.iter().enumerate() {
        // Bit 8 k moves to 56 + k; no two terms meet.
        let spread = u64::from_le_bytes(*part).wrapping_mul(0x0102_0408_1020_4080);
        word |= (spread >> 56) << (8 * i);
    }
    word
}

per_isa! {
    /// Writes the words of `n` elements and returns how many are set.
    unsafe fn words_of[T: IsTrue](x: *const T, n: usize, to: *mut u64) -> usize {
        // SAFETY: `x` has `n` elements and `to` a word for each 64 of them, the last perhaps in
        // part.
        unsafe {
            let mut count = 0;
            let mut bytes = [0u8; 64];
            for w in 0..n / 64 {
                for (i, b) in bytes.iter_mut().enumerate() {
                    *b = (*x.add(w * 64 + i)).is_true() as u8;
                }
                let word = packed(&bytes);
                *to.add(w) = word;
                count += word.count_ones() as usize;
            }
            if !n.is_multiple_of(64) {
                bytes = [0; 64];
                for (i, b) in bytes.iter_mut().enumerate().take(n % 64) {
                    *b = (*x.add(n / 64 * 64 + i)).is_true() as u8;
                }
                let word = packed(&bytes);
                *to.add(n / 64) = word;
                count += word.count_ones() as usize;
            }
            count
        }
    }
}

impl Bits {
    /// Reads a contiguous tensor in host memory.
    pub fn of(x: &impl Strided) -> Result<Bits> {
        let n = x.numel();
        let mut words = alloc::full(0u64, n.div_ceil(64));
        let chunks = words.len().div_ceil(CHUNK);
        let mut starts = alloc::full(0usize, chunks + 1);
        let (to, counts) = (Ptr::new(words.as_mut_ptr()), Ptr::new(starts.as_mut_ptr()));
        with_element!(x.dtype(), T => {
            let from = Ptr::new(x.ptr::<T>());
            parallel_for(chunks, GRAIN, |range| {
                for c in range {
                    let first = c * CHUNK * 64;
                    // SAFETY: the chunk's elements, words and count are its own.
                    unsafe {
                        let x = from.at(first).cast_const();
                        let len = (CHUNK * 64).min(n - first);
                        *counts.get().add(c + 1) = words_of(x, len, to.get().add(c * CHUNK));
                    }
                }
            });
        });
        for c in 0..chunks {
            starts[c + 1] += starts[c];
        }
        Ok(Bits { words, starts })
    }

    /// How many are set.
    pub fn count(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Calls `f(first element, words, bits set before)` for each chunk.
    fn each_chunk(&self, f: impl Fn(usize, &[u64], usize) + Sync) {
        parallel_for(self.starts.len() - 1, GRAIN, |range| {
            for c in range {
                let end = ((c + 1) * CHUNK).min(self.words.len());
                if self.starts[c] < self.starts[c + 1] {
                    f(c * CHUNK * 64, &self.words[c * CHUNK..end], self.starts[c]);
                }
            }
        });
    }

    /// Writes the coordinates of set bits in a tensor of this shape: coordinate `d` of number `i`
    /// to `outs[d]`, `i * step` elements on. A 0-d tensor has none.
    ///
    /// # Safety
    /// There is room, and the shape has as many elements as there are bits.
    pub unsafe fn coordinates(&self, shape: &[usize], outs: &[*mut i64], step: usize) {
        // SAFETY: each of `outs` has room at `step` times the number of the bit, and there is one
        // for each dimension.
        unsafe {
            let Some((&last, lead)) = shape.split_last() else {
                return;
            };
            let outs: SmallVec<[Ptr<i64>; 8]> = outs.iter().map(|&o| Ptr::new(o)).collect();
            self.each_chunk(|first, words, before| {
                let outs: SmallVec<[*mut i64; 8]> = outs.iter().map(Ptr::get).collect();
                let mut at: SmallVec<[i64; 8]> = SmallVec::from_elem(0, lead.len());
                // Elements of the row that `at` names; none yet.
                let (mut start, mut end) = (first, first);
                let mut to = before * step;
                for (w, &word) in words.iter().enumerate() {
                    let mut word = word;
                    while word != 0 {
                        let p = first + w * 64 + word.trailing_zeros() as usize;
                        word &= word - 1;
                        if p >= end {
                            let mut row = p / last;
                            (start, end) = (row * last, (row + 1) * last);
                            for (a, &n) in at.iter_mut().zip(lead).rev() {
                                *a = (row % n) as i64;
                                row /= n;
                            }
                        }
                        match at[..] {
                            [] => *outs[0].add(to) = p as i64,
                            [row] => {
                                *outs[0].add(to) = row;
                                *outs[1].add(to) = (p - start) as i64;
                            }
                            _ => {
                                for (o, &a) in outs.iter().zip(&at) {
                                    *o.add(to) = a;
                                }
                                *outs[at.len()].add(to) = (p - start) as i64;
                            }
                        }
                        to += step;
                    }
                }
            });
        }
    }

    /// Moves the elements of `size` bytes whose bits are set to neighbouring places.
    ///
    /// # Safety
    /// `from` has an element for each bit, `to` room for those set, and they do not overlap.
    pub unsafe fn compress(&self, size: usize, from: *const u8, to: *mut u8) {
        // SAFETY: a chunk reads the elements of its own bits and writes from the place that those
        // before it leave.
        unsafe {
            let (from, to) = (Ptr::read(from), Ptr::new(to));
            self.each_chunk(|first, words, before| {
                let (from, to) = (from.at(first * size), to.at(before * size));
                #[cfg(target_arch = "x86_64")]
                if super::level() == super::Level::Avx512 {
                    match size {
                        4 => return avx512::compress32(words, from.cast(), to.cast()),
                        8 => return avx512::compress64(words, from.cast(), to.cast()),
                        _ => {}
                    }
                }
                match size {
                    1 => compress_run::<u8>(words, from.cast(), to.cast()),
                    2 => compress_run::<u16>(words, from.cast(), to.cast()),
                    4 => compress_run::<u32>(words, from.cast(), to.cast()),
                    8 => compress_run::<u64>(words, from.cast(), to.cast()),
                    _ => compress_run::<[u64; 2]>(words, from.cast(), to.cast()),
                }
            });
        }
    }
}

unsafe fn compress_run<T: Copy>(words: &[u64], mut from: *const T, mut to: *mut T) {
    // SAFETY: `from` has an element for each bit of `words`, `to` room for those that are set.
    unsafe {
        for &word in words {
            if word == u64::MAX {
                std::ptr::copy_nonoverlapping(from, to, 64);
                to = to.add(64);
            } else {
                let mut rest = word;
                while rest != 0 {
                    to.write(*from.add(rest.trailing_zeros() as usize));
                    to = to.add(1);
                    rest &= rest - 1;
                }
            }
            from = from.wrapping_add(64);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use crate::compiled;
    use std::arch::x86_64::*;

    compiled! { avx512:
        pub unsafe fn compress32(words: &[u64], mut from: *const i32, mut to: *mut i32) {
            // SAFETY: only elements whose bits are set are read, and as many written; the caller
            // has asked for AVX-512.
            unsafe {
                for &word in words {
                    for part in 0..4 {
                        let m = (word >> (16 * part)) as __mmask16;
                        let n = m.count_ones();
                        let v = _mm512_maskz_compress_epi32(m, _mm512_maskz_loadu_epi32(m, from));
                        // Whole stores would write into another thread's part.
                        _mm512_mask_storeu_epi32(to, ((1u32 << n) - 1) as __mmask16, v);
                        to = to.wrapping_add(n as usize);
                        from = from.wrapping_add(16);
                    }
                }
            }
        }
    }

    compiled! { avx512:
        pub unsafe fn compress64(words: &[u64], mut from: *const i64, mut to: *mut i64) {
            // SAFETY: only elements whose bits are set are read, and as many written; the caller
            // has asked for AVX-512.
            unsafe {
                for &word in words {
                    for part in 0..8 {
                        let m = (word >> (8 * part)) as __mmask8;
                        let n = m.count_ones();
                        let v = _mm512_maskz_compress_epi64(m, _mm512_maskz_loadu_epi64(m, from));
                        _mm512_mask_storeu_epi64(to, ((1u32 << n) - 1) as __mmask8, v);
                        to = to.wrapping_add(n as usize);
                        from = from.wrapping_add(8);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::strided::Owned;

    #[test]
    fn what_a_mask_selects_equals_the_plain_loop() {
        for n in [0usize, 1, 63, 64, 65, 1000, 16384, 70001] {
            let mask: Vec<u8> = (0..n).map(|i| ((i * 7919 % 1000) > 400) as u8).collect();
            let x: Vec<i32> = (0..n as i32).collect();
            let m = Owned::new(&mask, &[n], DType::Bool);
            let bits = Bits::of(&m).expect("bits");
            let want: Vec<i64> = (0..n as i64).filter(|&i| mask[i as usize] != 0).collect();
            assert_eq!(bits.count(), want.len());
            let mut at = vec![0i64; want.len()];
            let mut some = vec![0i32; want.len()];
            // SAFETY: there is room for what is set.
            unsafe {
                bits.coordinates(&[n], &[at.as_mut_ptr()], 1);
                bits.compress(4, x.as_ptr().cast(), some.as_mut_ptr().cast());
            }
            assert_eq!(at, want);
            assert!(some.iter().zip(&want).all(|(&a, &b)| a as i64 == b));
        }
        let x = Owned::new(&[0f32; 15], &[3, 5], DType::F32);
        assert_eq!(Bits::of(&x).expect("bits").count(), 0);
    }
}

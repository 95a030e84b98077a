//! Rows of floats to the integers that they are without their fractions, and of float64 to float16.
//! The machine's conversion gives i32; narrower types keep its low bits.

use crate::dtype::DType;
use crate::per_isa;

/// Converts `n` elements that lie next to each other.
pub type Row = unsafe fn(src: *const u8, dst: *mut u8, n: usize);

/// The loop of this machine that converts elements of `from` to `to` at once, where there is one.
pub fn row(from: DType, to: DType) -> Option<Row> {
    if (from, to) == (DType::BF16, DType::Bool) {
        return Some(bf16_to_bool());
    }
    #[cfg(target_arch = "x86_64")]
    {
        use avx2::*;
        let pick = |of_f32: Row, of_bf16: Row| match from {
            DType::F32 => Some(of_f32),
            DType::BF16 => Some(of_bf16),
            _ => None,
        };
        let row = match to {
            DType::I8 | DType::U8 => pick(f32_to_8, bf16_to_8),
            DType::I16 | DType::U16 => pick(f32_to_16, bf16_to_16),
            DType::I32 => pick(f32_to_32, bf16_to_32),
            DType::F16 if from == DType::F64 => Some(f64_to_f16 as Row),
            _ => None,
        };
        per_isa!(match avx512 => row, avx2 => row, neon => None, portable => None)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

per_isa! {
    fn bf16_to_bool[] -> Row = (src: *const u8, dst: *mut u8, n: usize) {
        // SAFETY: `src` has `n` elements of two bytes, of any alignment, and `dst` room for `n`.
        unsafe {
            for i in 0..n {
                let bits = src.cast::<u16>().add(i).read_unaligned();
                *dst.add(i) = (bits & 0x7fff != 0) as u8;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use crate::compiled;
    use std::arch::x86_64::*;

    compiled! { avx2:
        #[inline]
        unsafe fn of_f32(x: *const u8) -> __m256i {
            // SAFETY: `x` has eight numbers.
            unsafe { _mm256_cvttps_epi32(_mm256_loadu_ps(x.cast())) }
        }

        #[inline]
        unsafe fn of_bf16(x: *const u8) -> __m256i {
            // SAFETY: `x` has eight numbers.
            unsafe {
                let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(x.cast()));
                _mm256_cvttps_epi32(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)))
            }
        }

        /// By way of float32, as PyTorch goes.
        #[inline]
        unsafe fn of_f64(x: *const u8) -> __m256i {
            // SAFETY: `x` has eight numbers.
            unsafe {
                let x = x.cast::<f64>();
                let low = _mm256_cvtpd_ps(_mm256_loadu_pd(x));
                let high = _mm256_cvtpd_ps(_mm256_loadu_pd(x.add(4)));
                _mm256_castps_si256(_mm256_set_m128(high, low))
            }
        }

        /// The float16 next to each float32.
        #[inline]
        unsafe fn to_f16(y: *mut u8, v: [__m256i; 4]) {
            for (i, v) in v.into_iter().enumerate() {
                let half = _mm256_cvtps_ph::<0>(_mm256_castsi256_ps(v));
                // SAFETY: `y` has room for 32 numbers of two bytes.
                unsafe { _mm_storeu_si128(y.cast::<__m128i>().add(i), half) };
            }
        }

        #[inline]
        unsafe fn to_32(y: *mut u8, [a, b, c, d]: [__m256i; 4]) {
            // SAFETY: `y` has room for 32 numbers of four bytes.
            unsafe {
                let y = y.cast::<__m256i>();
                _mm256_storeu_si256(y, a);
                _mm256_storeu_si256(y.add(1), b);
                _mm256_storeu_si256(y.add(2), c);
                _mm256_storeu_si256(y.add(3), d);
            }
        }

        /// The low bits by a mask, which packing keeps; it goes by halves of vectors.
        #[inline]
        fn packed<const BITS: i32>(a: __m256i, b: __m256i) -> __m256i {
            let low = _mm256_set1_epi32((1 << BITS) - 1);
            _mm256_packus_epi32(_mm256_and_si256(a, low), _mm256_and_si256(b, low))
        }

        #[inline]
        unsafe fn to_16(y: *mut u8, [a, b, c, d]: [__m256i; 4]) {
            // SAFETY: `y` has room for 32 numbers of two bytes.
            unsafe {
                let y = y.cast::<__m256i>();
                let (low, high) = (packed::<16>(a, b), packed::<16>(c, d));
                _mm256_storeu_si256(y, _mm256_permute4x64_epi64::<0xd8>(low));
                _mm256_storeu_si256(y.add(1), _mm256_permute4x64_epi64::<0xd8>(high));
            }
        }

        #[inline]
        unsafe fn to_8(y: *mut u8, [a, b, c, d]: [__m256i; 4]) {
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let v = _mm256_packus_epi16(packed::<8>(a, b), packed::<8>(c, d));
            // SAFETY: `y` has room for 32 numbers of a byte.
            unsafe { _mm256_storeu_si256(y.cast(), _mm256_permutevar8x32_epi32(v, order)) };
        }
    }

    macro_rules! rows {
        ($($name:ident: $of:ident $from:literal, $to:ident $bytes:literal;)*) => { $(
            compiled! { avx2:
                pub unsafe fn $name(src: *const u8, dst: *mut u8, n: usize) {
                    // SAFETY: `src` has `n` elements and `dst` room for `n`, of any alignment; what
                    // vectors do not reach passes blocks on the stack.
                    unsafe {
                        let mut i = 0;
                        while i + 32 <= n {
                            let x = src.add(i * $from);
                            let v = [$of(x), $of(x.add(8 * $from)), $of(x.add(16 * $from)), $of(x.add(24 * $from))];
                            $to(dst.add(i * $bytes), v);
                            i += 32;
                        }
                        if i < n {
                            let (mut from, mut to) = ([0u8; 32 * $from], [0u8; 32 * $bytes]);
                            let left = (n - i) * $from;
                            std::ptr::copy_nonoverlapping(src.add(i * $from), from.as_mut_ptr(), left);
                            let x = from.as_ptr();
                            let v = [$of(x), $of(x.add(8 * $from)), $of(x.add(16 * $from)), $of(x.add(24 * $from))];
                            $to(to.as_mut_ptr(), v);
                            let y = dst.add(i * $bytes);
                            std::ptr::copy_nonoverlapping(to.as_ptr(), y, (n - i) * $bytes);
                        }
                    }
                }
            }
        )* };
    }
    rows! {
        f32_to_8: of_f32 4, to_8 1;
        f32_to_16: of_f32 4, to_16 2;
        f32_to_32: of_f32 4, to_32 4;
        bf16_to_8: of_bf16 2, to_8 1;
        bf16_to_16: of_bf16 2, to_16 2;
        bf16_to_32: of_bf16 2, to_32 4;
        f64_to_f16: of_f64 8, to_f16 2;
    }
}

//! Signs, sums and products of float16 and bfloat16 that are widened and narrowed in registers.

use crate::cpu::pointwise::Kernel;
use crate::dtype::DType;
use crate::per_isa;

/// What becomes of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
}

/// The loop over the bits of a type for this machine.
pub fn arithmetic(op: Arithmetic, dtype: DType) -> Option<Kernel<u16>> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        return match (dtype, op) {
            (DType::F16, Arithmetic::Add) => Some(x86::add_f16),
            (DType::F16, Arithmetic::Sub) => Some(x86::sub_f16),
            (DType::F16, Arithmetic::Mul) => Some(x86::mul_f16),
            (DType::BF16, Arithmetic::Add) => Some(x86::add_bf16),
            (DType::BF16, Arithmetic::Sub) => Some(x86::sub_bf16),
            (DType::BF16, Arithmetic::Mul) => Some(x86::mul_bf16),
            _ => None,
        };
    }
    let _ = (op, dtype);
    None
}

per_isa! {
    /// The loop over the bits of either type that gives |x| with the sign of y.
    pub fn copysign[] -> Kernel<u16>
        = (_p: *const (), x: *const *const u16, y: *mut u16, n: usize) {
        const SIGN: u16 = 0x8000;
        // SAFETY: `x` holds two pointers to `n` elements, and `y` has room for `n`.
        unsafe {
            let (a, b) = (*x, *x.add(1));
            for i in 0..n {
                *y.add(i) = *a.add(i) & !SIGN | *b.add(i) & SIGN;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::compiled;
    use std::arch::x86_64::*;

    compiled! { avx512:
        /// To the nearest bfloat16, ties to even, in the upper half.
        #[inline]
        fn to_upper(y: __m512) -> __m512i {
            let bits = _mm512_castps_si512(y);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            // Rounding might carry a NaN to another number.
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(y, y);
            _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x40_0000))
        }
    }

    macro_rules! loops {
        ($($f16:ident $bf16:ident $op:ident;)*) => { $(
            compiled! { avx512:
                pub unsafe fn $f16(_: *const (), x: *const *const u16, y: *mut u16, n: usize) {
                    // SAFETY: `x` holds two pointers to `n` elements, and `y` has room for `n`;
                    // masks end there, and who takes the kernel asked for AVX-512.
                    unsafe {
                        let (a, b) = (*x, *x.add(1));
                        let of = |a, b| {
                            _mm512_cvtps_ph::<0>($op(_mm512_cvtph_ps(a), _mm512_cvtph_ps(b)))
                        };
                        let mut i = 0;
                        while i + 16 <= n {
                            let (a, b) = (a.add(i).cast(), b.add(i).cast());
                            let v = of(_mm256_loadu_si256(a), _mm256_loadu_si256(b));
                            _mm256_storeu_si256(y.add(i).cast(), v);
                            i += 16;
                        }
                        if i < n {
                            let k = ((1u32 << (n - i)) - 1) as __mmask16;
                            let (a, b) = (a.add(i).cast(), b.add(i).cast());
                            let load = |p| _mm256_maskz_loadu_epi16(k, p);
                            let v = of(load(a), load(b));
                            _mm256_mask_storeu_epi16(y.add(i).cast(), k, v);
                        }
                    }
                }

                pub unsafe fn $bf16(_: *const (), x: *const *const u16, y: *mut u16, n: usize) {
                    // SAFETY: `x` holds two pointers to `n` elements, and `y` has room for `n`;
                    // masks end there, and who takes the kernel asked for AVX-512.
                    unsafe {
                        let (a, b) = (*x, *x.add(1));
                        let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
                        // Elements of even and odd places apart: nothing crosses a lane.
                        let of = |a, b| {
                            let low = |v| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(v));
                            let high = |v| _mm512_castsi512_ps(_mm512_and_si512(v, upper));
                            let even = to_upper($op(low(a), low(b)));
                            let odd = to_upper($op(high(a), high(b)));
                            // even | (odd & upper)
                            let even = _mm512_srli_epi32::<16>(even);
                            _mm512_ternarylogic_epi32::<0xf8>(even, odd, upper)
                        };
                        let mut i = 0;
                        while i + 32 <= n {
                            let (a, b) = (a.add(i).cast(), b.add(i).cast());
                            let v = of(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
                            _mm512_storeu_si512(y.add(i).cast(), v);
                            i += 32;
                        }
                        if i < n {
                            let k = ((1u64 << (n - i)) - 1) as __mmask32;
                            let (a, b) = (a.add(i).cast(), b.add(i).cast());
                            let load = |p| _mm512_maskz_loadu_epi16(k, p);
                            let v = of(load(a), load(b));
                            _mm512_mask_storeu_epi16(y.add(i).cast(), k, v);
                        }
                    }
                }
            }
        )* };
    }
    loops! {
        add_f16 add_bf16 _mm512_add_ps;
        sub_f16 sub_bf16 _mm512_sub_ps;
        mul_f16 mul_bf16 _mm512_mul_ps;
    }
}

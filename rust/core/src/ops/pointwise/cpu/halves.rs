//! Formulas over float16 and bfloat16 that are widened and narrowed in registers.

use super::super::Pointwise;
use crate::cpu::pointwise::Kernel;
use crate::dtype::DType;
use crate::per_isa;

/// The loop of an op over the bits of a type for this machine.
pub fn formula<P: Pointwise<N>, const N: usize>(dtype: DType) -> Option<Kernel<u16>> {
    of::<P, N, N, 0>(dtype)
}

/// The same for either input of two that is a number, given as [`crate::cpu::pointwise::spread::Numbered`].
pub fn numbered<P: Pointwise<N>, const N: usize>(dtype: DType) -> Option<[Kernel<u16>; 2]> {
    Some([of::<P, N, 1, 1>(dtype)?, of::<P, N, 1, 0>(dtype)?])
}

/// As [`formula`] where K inputs from A are tensors.
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(clippy::extra_unused_type_parameters)
)]
fn of<P: Pointwise<N>, const N: usize, const K: usize, const A: usize>(
    dtype: DType,
) -> Option<Kernel<u16>> {
    #[cfg(target_arch = "x86_64")]
    return per_isa!(match
        avx512 => match dtype {
            DType::F16 => Some(x86::avx512::<P, x86::F16, N, K, A>),
            DType::BF16 => Some(x86::avx512::<P, x86::BF16, N, K, A>),
            _ => None,
        },
        avx2 => match dtype {
            DType::F16 => Some(x86::avx2::<P, x86::F16, N, K, A>),
            DType::BF16 => Some(x86::avx2::<P, x86::BF16, N, K, A>),
            _ => None,
        },
        neon => None,
        portable => None);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = dtype;
        None
    }
}

/// Arithmetic of whole vectors: in turn, the compiler would compute with some numbers by themselves.
macro_rules! arithmetic {
    ($($name:ident |$x:ident, $y:ident| $f:expr, $of_32:ident $of_16:ident;)*) => { $(
        #[inline(always)]
        pub fn $name<const W: usize>([x, y]: [[f32; W]; 2]) -> [f32; W] {
            #[cfg(target_arch = "x86_64")]
            return x86::$name(x, y);
            #[cfg(not(target_arch = "x86_64"))]
            std::array::from_fn(|j| {
                let ($x, $y) = (x[j], y[j]);
                $f
            })
        }
    )* };
}
/// The instructions of each.
macro_rules! instructions {
    ($with:ident) => {
        $with! {
            sums |x, y| x + y, _mm512_add_ps _mm256_add_ps;
            differences |x, y| x - y, _mm512_sub_ps _mm256_sub_ps;
            products |x, y| x * y, _mm512_mul_ps _mm256_mul_ps;
            quotients |x, y| x / y, _mm512_div_ps _mm256_div_ps;
            maxima |x, y| if x.is_nan() { x + y } else if y < x { x } else { y }, max_512 max_256;
            minima |x, y| if x.is_nan() { x + y } else if x < y { x } else { y }, min_512 min_256;
        }
    };
}
instructions!(arithmetic);

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
    use super::Pointwise;
    use crate::compiled;
    use crate::cpu::pointwise::spread::Numbered;
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// W elements as float32, in an order that is the same for all operands.
    pub trait Format<const W: usize> {
        // SAFETY: `x` has W elements; the machine has the instructions.
        unsafe fn widen(x: *const u16) -> [f32; W];
        // SAFETY: `y` has room for W elements; the machine has the instructions.
        unsafe fn narrow(v: [f32; W], y: *mut u16);
    }

    pub struct F16;
    pub struct BF16;

    // In assembly: the compiler would take a conversion that it knows apart, number by number.
    compiled! { avx2:
        #[inline]
        unsafe fn wide_f16(x: *const u16) -> [__m256; 2] {
            let (a, b): (__m256, __m256);
            // SAFETY: `x` has 16 elements.
            unsafe {
                asm!(
                    "vcvtph2ps {a}, [{x}]", "vcvtph2ps {b}, [{x} + 16]",
                    x = in(reg) x, a = out(ymm_reg) a, b = out(ymm_reg) b,
                    options(pure, readonly, nostack, preserves_flags)
                )
            };
            [a, b]
        }

        /// To the nearest bfloat16, ties to even, in the upper half.
        #[inline]
        fn to_upper(y: __m256) -> __m256i {
            let bits = _mm256_castps_si256(y);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            // Rounding might carry a NaN to another number.
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(y, y));
            let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
            _mm256_blendv_epi8(sum, quiet, nan)
        }
    }
    /// The instruction gives its second operand where either is NaN.
    macro_rules! extrema {
        ($($name_512:ident $of_512:ident $name_256:ident $of_256:ident;)*) => { $(
            compiled! { avx2:
                #[inline]
                fn $name_256(x: __m256, y: __m256) -> __m256 {
                    let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
                    _mm256_blendv_ps($of_256(x, y), _mm256_add_ps(x, y), nan)
                }
            }
            compiled! { avx512:
                #[inline]
                fn $name_512(x: __m512, y: __m512) -> __m512 {
                    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                    _mm512_mask_add_ps($of_512(x, y), nan, x, y)
                }
            }
        )* };
    }
    extrema! {
        max_512 _mm512_max_ps max_256 _mm256_max_ps;
        min_512 _mm512_min_ps min_256 _mm256_min_ps;
    }

    compiled! { avx512:
        #[inline]
        unsafe fn wide_f16_512(x: *const u16) -> [__m512; 2] {
            let (a, b): (__m512, __m512);
            // SAFETY: `x` has 32 elements.
            unsafe {
                asm!(
                    "vcvtph2ps {a}, [{x}]", "vcvtph2ps {b}, [{x} + 32]",
                    x = in(reg) x, a = out(zmm_reg) a, b = out(zmm_reg) b,
                    options(pure, readonly, nostack, preserves_flags)
                )
            };
            [a, b]
        }

        #[inline]
        fn to_upper_512(y: __m512) -> __m512i {
            let bits = _mm512_castps_si512(y);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(y, y);
            _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x40_0000))
        }
    }

    /// Of 32 numbers by AVX-512, of 16 by AVX2.
    macro_rules! vectors {
        ($($name:ident |$x:ident, $y:ident| $f:expr, $of_32:ident $of_16:ident;)*) => { $(
            #[inline(always)]
            pub fn $name<const W: usize>(x: [f32; W], y: [f32; W]) -> [f32; W] {
                let mut r = [0.0; W];
                let (x, y, to) = (x.as_ptr(), y.as_ptr(), r.as_mut_ptr());
                // SAFETY: there are W numbers in each; who takes loops of this width asked for the
                // instructions.
                unsafe {
                    let mut i = 0;
                    while W == 32 && i < W {
                        let v = $of_32(_mm512_loadu_ps(x.add(i)), _mm512_loadu_ps(y.add(i)));
                        _mm512_storeu_ps(to.add(i), v);
                        i += 16;
                    }
                    while W == 16 && i < W {
                        let v = $of_16(_mm256_loadu_ps(x.add(i)), _mm256_loadu_ps(y.add(i)));
                        _mm256_storeu_ps(to.add(i), v);
                        i += 8;
                    }
                }
                debug_assert!(W == 32 || W == 16);
                r
            }
        )* };
    }
    instructions!(vectors);

    const UPPER: i32 = 0xffff_0000_u32 as i32;

    impl Format<16> for F16 {
        #[inline(always)]
        unsafe fn widen(x: *const u16) -> [f32; 16] {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe { std::mem::transmute(wide_f16(x)) }
        }
        #[inline(always)]
        unsafe fn narrow(v: [f32; 16], y: *mut u16) {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let [a, b] = std::mem::transmute::<[f32; 16], [__m256; 2]>(v);
                _mm_storeu_si128(y.cast(), _mm256_cvtps_ph::<0>(a));
                _mm_storeu_si128(y.add(8).cast(), _mm256_cvtps_ph::<0>(b));
            }
        }
    }
    impl Format<32> for F16 {
        #[inline(always)]
        unsafe fn widen(x: *const u16) -> [f32; 32] {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe { std::mem::transmute(wide_f16_512(x)) }
        }
        #[inline(always)]
        unsafe fn narrow(v: [f32; 32], y: *mut u16) {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let [a, b] = std::mem::transmute::<[f32; 32], [__m512; 2]>(v);
                _mm256_storeu_si256(y.cast(), _mm512_cvtps_ph::<0>(a));
                _mm256_storeu_si256(y.add(16).cast(), _mm512_cvtps_ph::<0>(b));
            }
        }
    }
    // Elements of even and odd places apart: nothing crosses a lane.
    impl Format<16> for BF16 {
        #[inline(always)]
        unsafe fn widen(x: *const u16) -> [f32; 16] {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let v = _mm256_loadu_si256(x.cast());
                let upper = _mm256_set1_epi32(UPPER);
                let even = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(v));
                let odd = _mm256_castsi256_ps(_mm256_and_si256(v, upper));
                std::mem::transmute([even, odd])
            }
        }
        #[inline(always)]
        unsafe fn narrow(v: [f32; 16], y: *mut u16) {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let [even, odd] = std::mem::transmute::<[f32; 16], [__m256; 2]>(v);
                let even = _mm256_srli_epi32::<16>(to_upper(even));
                let v = _mm256_blend_epi16::<0xaa>(even, to_upper(odd));
                _mm256_storeu_si256(y.cast(), v);
            }
        }
    }
    impl Format<32> for BF16 {
        #[inline(always)]
        unsafe fn widen(x: *const u16) -> [f32; 32] {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let v = _mm512_loadu_si512(x.cast());
                let upper = _mm512_set1_epi32(UPPER);
                let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(v));
                let odd = _mm512_castsi512_ps(_mm512_and_si512(v, upper));
                std::mem::transmute([even, odd])
            }
        }
        #[inline(always)]
        unsafe fn narrow(v: [f32; 32], y: *mut u16) {
            // SAFETY: W elements lie there; the machine has the instructions; the bits are the same.
            unsafe {
                let [even, odd] = std::mem::transmute::<[f32; 32], [__m512; 2]>(v);
                let even = _mm512_srli_epi32::<16>(to_upper_512(even));
                // even | (odd & upper)
                let upper = _mm512_set1_epi32(UPPER);
                let v = _mm512_ternarylogic_epi32::<0xf8>(even, to_upper_512(odd), upper);
                _mm512_storeu_si512(y.cast(), v);
            }
        }
    }

    /// W elements. No closure: what is called in one is compiled without the instruction set.
    // SAFETY: every `x` has W elements and `y` room for as many; the machine has the instructions.
    #[inline(always)]
    unsafe fn vector<
        P: Pointwise<N>,
        F: Format<W>,
        const N: usize,
        const K: usize,
        const A: usize,
        const W: usize,
    >(
        op: &P,
        number: &[f32; W],
        x: [*const u16; K],
        y: *mut u16,
    ) {
        let mut v = [*number; N];
        let mut k = 0;
        while k < K {
            // SAFETY: every `x` has W elements and `y` room for as many; the machine has the
            // instructions.
            v[A + k] = unsafe { F::widen(x[k]) };
            k += 1;
        }
        // SAFETY: every `x` has W elements and `y` room for as many; the machine has the
        // instructions.
        unsafe { F::narrow(op.halves(v), y) };
    }

    // SAFETY: `params` is a `P`, or a `Numbered` of one where K is less than N; `x` holds K pointers
    // to `n` elements, and `y` has room for `n`.
    #[inline(always)]
    unsafe fn each<
        P: Pointwise<N>,
        F: Format<W>,
        const N: usize,
        const K: usize,
        const A: usize,
        const W: usize,
    >(
        params: *const (),
        x: *const *const u16,
        y: *mut u16,
        n: usize,
    ) {
        // SAFETY: `params` is a `P`, or a `Numbered` of one where K is less than N; `x` holds K
        // pointers to `n` elements, and `y` has room for `n`.
        unsafe {
            let x = *x.cast::<[*const u16; K]>();
            if K == N {
                let op = (*params.cast::<P>()).settled(false);
                return row::<P, F, N, K, A, W>(&op, &[0.0; W], x, y, n);
            }
            let held = &*params.cast::<Numbered<f32>>();
            let op = (*held.params.cast::<P>()).settled(false);
            let mut r = 0;
            while r < held.rows {
                let mut from = x;
                from[0] = x[0].byte_offset(r as isize * held.step[0]);
                let to = y.byte_offset(r as isize * held.step[1]);
                let number = [*held.numbers.add(r); W];
                row::<P, F, N, K, A, W>(&op, &number, from, to, n);
                r += 1;
            }
        }
    }

    // SAFETY: `x` holds K pointers to `n` elements, and `y` has room for `n`.
    #[inline(always)]
    unsafe fn row<
        P: Pointwise<N>,
        F: Format<W>,
        const N: usize,
        const K: usize,
        const A: usize,
        const W: usize,
    >(
        op: &P,
        number: &[f32; W],
        x: [*const u16; K],
        y: *mut u16,
        n: usize,
    ) {
        // SAFETY: `x` holds K pointers to `n` elements, and `y` has room for `n`; the block has W
        // elements.
        unsafe {
            let mut i = 0;
            while i + W <= n {
                let mut from = x;
                let mut k = 0;
                while k < K {
                    from[k] = x[k].add(i);
                    k += 1;
                }
                vector::<P, F, N, K, A, W>(op, number, from, y.add(i));
                i += W;
            }
            if i < n {
                let (mut blocks, mut result) = ([[0; W]; K], [0; W]);
                let mut from = x;
                let mut k = 0;
                while k < K {
                    std::ptr::copy_nonoverlapping(x[k].add(i), blocks[k].as_mut_ptr(), n - i);
                    from[k] = blocks[k].as_ptr();
                    k += 1;
                }
                vector::<P, F, N, K, A, W>(op, number, from, result.as_mut_ptr());
                std::ptr::copy_nonoverlapping(result.as_ptr(), y.add(i), n - i);
            }
        }
    }

    compiled! { avx2:
        pub unsafe fn avx2<P: Pointwise<N>, F: Format<16>, const N: usize, const K: usize, const A: usize>(
            params: *const (),
            x: *const *const u16,
            y: *mut u16,
            n: usize,
        ) {
            // SAFETY: as `each` asks; who takes the kernel asked for AVX2.
            unsafe { each::<P, F, N, K, A, 16>(params, x, y, n) }
        }
    }
    compiled! { avx512:
        pub unsafe fn avx512<P: Pointwise<N>, F: Format<32>, const N: usize, const K: usize, const A: usize>(
            params: *const (),
            x: *const *const u16,
            y: *mut u16,
            n: usize,
        ) {
            // SAFETY: as `each` asks; who takes the kernel asked for AVX-512.
            unsafe { each::<P, F, N, K, A, 32>(params, x, y, n) }
        }
    }
}

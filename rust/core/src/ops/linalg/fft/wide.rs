//! The steps between a real line and a complex one of half its length, eight float32 pairs at once:
//! with the bits of one pair at a time.

use crate::compiled;
use crate::isa::Level;
use crate::machine;
use rustfft::FftNum;
use std::any::TypeId;
use std::arch::x86_64::*;

/// Pairs in a register.
const PAIRS: usize = 8;

/// Whether `m` values of this type have enough pairs, on a machine with AVX-512.
pub(super) fn takes<T: FftNum>(m: usize) -> bool {
    let wide = machine::level() == Level::Avx512 && m.div_ceil(2) > PAIRS;
    wide && TypeId::of::<T>() == TypeId::of::<f32>()
}

/// Signs of the first, or of the second, number of each pair.
const FIRST: i64 = 1 << 31;
const SECOND: i64 = i64::MIN;

compiled! { avx512:
    #[inline]
    unsafe fn flipped(x: __m512, signs: i64) -> __m512 {
        _mm512_xor_ps(x, _mm512_castsi512_ps(_mm512_set1_epi64(signs)))
    }

    /// Numbers of each pair exchanged.
    #[inline]
    unsafe fn swapped(x: __m512) -> __m512 {
        _mm512_permute_ps::<0b_10_11_00_01>(x)
    }

    /// Pairs in the opposite order.
    #[inline]
    unsafe fn reversed(x: __m512) -> __m512 {
        let order = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        _mm512_castpd_ps(_mm512_permutexvar_pd(order, _mm512_castps_pd(x)))
    }

    /// Each of eight numbers twice.
    #[inline]
    unsafe fn twice(x: *const f32) -> __m512 {
        // SAFETY: the caller has eight numbers.
        unsafe {
            let order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            _mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(x)))
        }
    }

    /// Products of complex numbers; no product and sum are one rounding.
    #[inline]
    unsafe fn times(re: __m512, im: __m512, x: __m512) -> __m512 {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let crossed = flipped(_mm512_mul_ps(im, swapped(x)), FIRST);
            _mm512_add_ps(_mm512_mul_ps(re, x), crossed)
        }
    }

    /// The pairs of `tell_apart` from the second on but for the middle.
    pub(super) unsafe fn tell_apart(
        z: *const f32, m: usize, re: *const f32, im: *const f32, h: f32, y: *mut f32
    ) {
        // SAFETY: as for the caller; there are PAIRS pairs or more, and the last of them may be
        // computed twice, as `y` overlaps nothing.
        unsafe {
            let (h, end) = (_mm512_set1_ps(h), m.div_ceil(2));
            let mut k = 1;
            while k < end {
                let at = k.min(end - PAIRS);
                let from = m - at - (PAIRS - 1);
                let a = _mm512_loadu_ps(z.add(2 * at));
                let b = reversed(_mm512_loadu_ps(z.add(2 * from)));
                let e = _mm512_add_ps(a, flipped(b, SECOND));
                let o = _mm512_add_ps(flipped(swapped(a), SECOND), swapped(b));
                let t = times(twice(re.add(at)), twice(im.add(at)), o);
                let low = _mm512_mul_ps(_mm512_add_ps(e, t), h);
                let high = _mm512_add_ps(flipped(e, SECOND), flipped(t, FIRST));
                _mm512_storeu_ps(y.add(2 * at), low);
                _mm512_storeu_ps(y.add(2 * from), reversed(_mm512_mul_ps(high, h)));
                k += PAIRS;
            }
        }
    }

    /// The pairs of `bring_together` from the second on but for the middle.
    pub(super) unsafe fn bring_together(
        x: *const f32, m: usize, re: *const f32, im: *const f32, inner: f32, z: *mut f32
    ) {
        // SAFETY: as for `tell_apart`.
        unsafe {
            let (inner, end) = (_mm512_set1_ps(inner), m.div_ceil(2));
            let mut k = 1;
            while k < end {
                let at = k.min(end - PAIRS);
                let from = m - at - (PAIRS - 1);
                let a = _mm512_mul_ps(_mm512_loadu_ps(x.add(2 * at)), inner);
                let b = _mm512_mul_ps(_mm512_loadu_ps(x.add(2 * from)), inner);
                let b = reversed(b);
                let e = _mm512_add_ps(a, flipped(b, SECOND));
                let d = _mm512_add_ps(a, flipped(b, FIRST));
                let o = swapped(times(twice(re.add(at)), twice(im.add(at)), d));
                let low = _mm512_add_ps(e, flipped(o, FIRST));
                let high = _mm512_add_ps(flipped(e, SECOND), o);
                _mm512_storeu_ps(z.add(2 * at), low);
                _mm512_storeu_ps(z.add(2 * from), reversed(high));
                k += PAIRS;
            }
        }
    }
}

//! The steps between a real line and a complex one of half its length, a register of float32 pairs at
//! once: with the bits of one pair at a time.

use crate::compiled;
use crate::cpu::simd::Simd;
use crate::isa::Level;
use crate::machine;
use rustfft::FftNum;
use std::any::TypeId;
use std::arch::x86_64::*;

/// Whether `m` values of this type have enough pairs, on a machine with such registers.
pub(super) fn takes<T: FftNum>(m: usize) -> bool {
    let pairs = match machine::level() {
        Level::Avx512 => <__m512 as Pairs>::PAIRS,
        Level::Avx2 => <__m256 as Pairs>::PAIRS,
        _ => return false,
    };
    m.div_ceil(2) > pairs && TypeId::of::<T>() == TypeId::of::<f32>()
}

/// Signs of the first, or of the second, number of each pair.
const FIRST: i64 = 1 << 31;
const SECOND: i64 = i64::MIN;

/// A register of pairs.
///
/// # Safety
/// As for [`Simd`].
trait Pairs: Simd<Elem = f32> {
    const PAIRS: usize = Self::LANES / 2;
    unsafe fn flipped(self, signs: i64) -> Self;
    /// Numbers of each pair exchanged.
    unsafe fn swapped(self) -> Self;
    /// Pairs in the opposite order.
    unsafe fn reversed(self) -> Self;
    /// Each of so many numbers twice.
    unsafe fn twice(x: *const f32) -> Self;
    /// Products of complex numbers; no product and sum are one rounding.
    #[inline(always)]
    unsafe fn times(re: Self, im: Self, x: Self) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe { re.mul(x).add(im.mul(x.swapped()).flipped(FIRST)) }
    }
}

macro_rules! pairs {
    ($v:ident: $flipped:expr, $swapped:expr, $reversed:expr, $twice:expr) => {
        impl Pairs for $v {
            #[inline(always)]
            unsafe fn flipped(self, signs: i64) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $flipped(self, signs) }
            }
            #[inline(always)]
            unsafe fn swapped(self) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $swapped(self) }
            }
            #[inline(always)]
            unsafe fn reversed(self) -> Self {
                // SAFETY: the caller has the instructions.
                unsafe { $reversed(self) }
            }
            #[inline(always)]
            unsafe fn twice(x: *const f32) -> Self {
                // SAFETY: the caller has as many numbers.
                unsafe { $twice(x) }
            }
        }
    };
}
pairs!(__m512: flipped_512, swapped_512, reversed_512, twice_512);
pairs!(__m256: flipped_256, swapped_256, reversed_256, twice_256);

compiled! { avx512:
    #[inline]
    unsafe fn flipped_512(x: __m512, signs: i64) -> __m512 {
        _mm512_xor_ps(x, _mm512_castsi512_ps(_mm512_set1_epi64(signs)))
    }
    #[inline]
    unsafe fn swapped_512(x: __m512) -> __m512 {
        _mm512_permute_ps::<0b_10_11_00_01>(x)
    }
    #[inline]
    unsafe fn reversed_512(x: __m512) -> __m512 {
        let order = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        _mm512_castpd_ps(_mm512_permutexvar_pd(order, _mm512_castps_pd(x)))
    }
    #[inline]
    unsafe fn twice_512(x: *const f32) -> __m512 {
        // SAFETY: the caller has eight numbers.
        unsafe {
            let order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            _mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(x)))
        }
    }
    unsafe fn tell_apart_512(
        z: *const f32, m: usize, re: *const f32, im: *const f32, h: f32, y: *mut f32
    ) {
        // SAFETY: the lines have the sizes that the caller gives; the machine has AVX-512.
        unsafe { apart::<__m512>(z, m, re, im, h, y) }
    }
    unsafe fn bring_together_512(
        x: *const f32, m: usize, re: *const f32, im: *const f32, inner: f32, z: *mut f32
    ) {
        // SAFETY: the lines have the sizes that the caller gives; the machine has AVX-512.
        unsafe { together::<__m512>(x, m, re, im, inner, z) }
    }
}
compiled! { avx2:
    #[inline]
    unsafe fn flipped_256(x: __m256, signs: i64) -> __m256 {
        _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_set1_epi64x(signs)))
    }
    #[inline]
    unsafe fn swapped_256(x: __m256) -> __m256 {
        _mm256_permute_ps::<0b_10_11_00_01>(x)
    }
    #[inline]
    unsafe fn reversed_256(x: __m256) -> __m256 {
        _mm256_castpd_ps(_mm256_permute4x64_pd::<0b_00_01_10_11>(_mm256_castps_pd(x)))
    }
    #[inline]
    unsafe fn twice_256(x: *const f32) -> __m256 {
        // SAFETY: the caller has four numbers.
        unsafe {
            let order = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
            _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(x)), order)
        }
    }
    unsafe fn tell_apart_256(
        z: *const f32, m: usize, re: *const f32, im: *const f32, h: f32, y: *mut f32
    ) {
        // SAFETY: the lines have the sizes that the caller gives; the machine has AVX2.
        unsafe { apart::<__m256>(z, m, re, im, h, y) }
    }
    unsafe fn bring_together_256(
        x: *const f32, m: usize, re: *const f32, im: *const f32, inner: f32, z: *mut f32
    ) {
        // SAFETY: the lines have the sizes that the caller gives; the machine has AVX2.
        unsafe { together::<__m256>(x, m, re, im, inner, z) }
    }
}

/// The pairs of `tell_apart` from the second on but for the middle.
///
/// # Safety
/// [`takes`] `m`; `z` has as many values, `y` room for one more, and there are roots up to the middle.
pub(super) unsafe fn tell_apart(
    z: *const f32,
    m: usize,
    re: *const f32,
    im: *const f32,
    h: f32,
    y: *mut f32,
) {
    // SAFETY: [`takes`] `m`; `z` has as many values, `y` room for one more, and there are roots up
    // to the middle; the machine has such registers.
    unsafe {
        match machine::level() {
            Level::Avx512 => tell_apart_512(z, m, re, im, h, y),
            _ => tell_apart_256(z, m, re, im, h, y),
        }
    }
}

/// The pairs of `bring_together` from the second on but for the middle.
///
/// # Safety
/// As for [`tell_apart`]: `x` has `m + 1` values, `z` room for `m`.
pub(super) unsafe fn bring_together(
    x: *const f32,
    m: usize,
    re: *const f32,
    im: *const f32,
    inner: f32,
    z: *mut f32,
) {
    // SAFETY: [`takes`] `m`; `z` has as many values, `y` room for one more, and there are roots up
    // to the middle; the machine has such registers.
    unsafe {
        match machine::level() {
            Level::Avx512 => bring_together_512(x, m, re, im, inner, z),
            _ => bring_together_256(x, m, re, im, inner, z),
        }
    }
}

#[inline(always)]
unsafe fn apart<V: Pairs>(
    z: *const f32,
    m: usize,
    re: *const f32,
    im: *const f32,
    h: f32,
    y: *mut f32,
) {
    // SAFETY: as for the caller; there are PAIRS pairs or more, and the last of them may be computed
    // twice, as `y` overlaps nothing.
    unsafe {
        let (h, end) = (V::splat(h), m.div_ceil(2));
        let mut k = 1;
        while k < end {
            let at = k.min(end - V::PAIRS);
            let from = m - at - (V::PAIRS - 1);
            let (a, b) = (V::load(z.add(2 * at)), V::load(z.add(2 * from)).reversed());
            let e = a.add(b.flipped(SECOND));
            let o = a.swapped().flipped(SECOND).add(b.swapped());
            let t = V::times(V::twice(re.add(at)), V::twice(im.add(at)), o);
            let high = e.flipped(SECOND).add(t.flipped(FIRST));
            e.add(t).mul(h).store(y.add(2 * at));
            high.mul(h).reversed().store(y.add(2 * from));
            k += V::PAIRS;
        }
    }
}

#[inline(always)]
unsafe fn together<V: Pairs>(
    x: *const f32,
    m: usize,
    re: *const f32,
    im: *const f32,
    inner: f32,
    z: *mut f32,
) {
    // SAFETY: as for `apart`.
    unsafe {
        let (inner, end) = (V::splat(inner), m.div_ceil(2));
        let mut k = 1;
        while k < end {
            let at = k.min(end - V::PAIRS);
            let from = m - at - (V::PAIRS - 1);
            let a = V::load(x.add(2 * at)).mul(inner);
            let b = V::load(x.add(2 * from)).mul(inner).reversed();
            let e = a.add(b.flipped(SECOND));
            let d = a.add(b.flipped(FIRST));
            let o = V::times(V::twice(re.add(at)), V::twice(im.add(at)), d).swapped();
            e.add(o.flipped(FIRST)).store(z.add(2 * at));
            e.flipped(SECOND).add(o).reversed().store(z.add(2 * from));
            k += V::PAIRS;
        }
    }
}

//! e^x of whole vectors, several in step: one takes a chain of some sixty cycles, and processors do
//! not look far enough ahead to begin the next ones by themselves.

use super::Simd;
#[cfg(target_arch = "aarch64")]
use super::{F32x8, F64x4};
use crate::math::{f32x, f64x};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Vectors of floats with functions in step.
pub trait Exp: Simd {
    /// [`f32x::exp`] or [`f64x::exp`] of each lane, with the same bits.
    ///
    /// # Safety
    /// The machine has the instructions of the vector.
    unsafe fn exp<const N: usize>(x: [Self; N]) -> [Self; N];

    /// [`f32x::decay`] or [`f64x::decay`] of each lane, with the same bits.
    ///
    /// # Safety
    /// The machine has the instructions of the vector.
    unsafe fn decay<const N: usize>(x: [Self; N]) -> [Self; N];

    /// [`f32x::sigmoid`] or [`f64x::sigmoid`] of each lane, with the same bits.
    ///
    /// # Safety
    /// The machine has the instructions of the vector.
    unsafe fn sigmoid<const N: usize>(x: [Self; N]) -> [Self; N];
}

/// Element by element, of which the compiler makes vectors.
macro_rules! by_lanes {
    (@of $f:ident, $m:ident) => {
        #[inline(always)]
        unsafe fn $f<const N: usize>(mut x: [Self; N]) -> [Self; N] {
            let all = x.as_mut_ptr().cast::<<Self as Simd>::Elem>();
            for i in 0..N * Self::LANES {
                // SAFETY: vectors are as many elements as they have lanes.
                unsafe { *all.add(i) = $m::$f(*all.add(i)) };
            }
            x
        }
    };
    ($($V:ty, $m:ident;)*) => { $(
        impl Exp for $V {
            by_lanes!(@of decay, $m);
            by_lanes!(@of exp, $m);
            by_lanes!(@of sigmoid, $m);
        }
    )* };
}
#[cfg(target_arch = "x86_64")]
by_lanes! {
    __m128, f32x;
    __m128d, f64x;
}
#[cfg(target_arch = "aarch64")]
by_lanes! {
    F32x8, f32x;
    F64x4, f64x;
}
#[cfg(not(target_arch = "x86_64"))]
by_lanes! {
    [f32; 4], f32x;
    [f64; 2], f64x;
}

/// The steps of [`f32x::decay`] before the last: the polynomial of what is left of x without its
/// multiple of ln 2, and that multiple, as a number and in the low bits of another.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn split<V: Simd<Elem = f32>, const N: usize>(x: &[V; N]) -> ([V; N], [V; N], [V; N]) {
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        let (mut bits, mut n, mut r) = (*x, *x, *x);
        for i in 0..N {
            bits[i] = x[i].fma(V::splat(std::f32::consts::LOG2_E), V::splat(f32x::MAGIC));
        }
        for i in 0..N {
            n[i] = bits[i].sub(V::splat(f32x::MAGIC));
        }
        for i in 0..N {
            r[i] = n[i].fma(V::splat(-std::f32::consts::LN_2), x[i]);
        }
        for i in 0..N {
            r[i] = n[i].fma(V::splat(f32x::LN_2_LOW), r[i]);
        }
        let mut p = [V::splat(f32x::EXP[6]); N];
        for d in (0..6).rev() {
            for i in 0..N {
                p[i] = p[i].fma(r[i], V::splat(f32x::EXP[d]));
            }
        }
        (p, n, bits)
    }
}

#[cfg(target_arch = "x86_64")]
impl Exp for __m256 {
    #[inline(always)]
    unsafe fn exp<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            // The second operand is what NaN leaves.
            for i in 0..N {
                let above = _mm256_max_ps(_mm256_set1_ps(f32x::ENDS.0), x[i]);
                x[i] = _mm256_min_ps(_mm256_set1_ps(f32x::ENDS.1), above);
            }
            let (mut p, _, bits) = split(&x);
            let shift = |n: i32| (127 + n) << 23;
            let (first, second) = (shift(24), shift(-24));
            for i in 0..N {
                // Two factors, the first zero for the least power: `f32x::scale`.
                let bits = _mm256_castps_si256(bits[i]);
                let low = _mm256_min_epi32(bits, _mm256_set1_epi32(f32x::MOST));
                let rest = _mm256_slli_epi32::<23>(_mm256_sub_epi32(bits, low));
                let low = _mm256_slli_epi32::<23>(low);
                let low = _mm256_add_epi32(low, _mm256_set1_epi32(first));
                let rest = _mm256_add_epi32(rest, _mm256_set1_epi32(second));
                p[i] = _mm256_mul_ps(p[i], _mm256_castsi256_ps(low));
                p[i] = _mm256_mul_ps(p[i], _mm256_castsi256_ps(rest));
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn decay<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            let mut below = x;
            for i in 0..N {
                below[i] = _mm256_cmp_ps::<_CMP_LT_OQ>(x[i], _mm256_set1_ps(f32x::LEAST));
                x[i] = _mm256_andnot_ps(below[i], x[i]);
            }
            let (mut p, _, bits) = split(&x);
            let one = _mm256_castps_si256(_mm256_set1_ps(1.0));
            for i in 0..N {
                let power = _mm256_slli_epi32::<23>(_mm256_castps_si256(bits[i]));
                let power = _mm256_castsi256_ps(_mm256_add_epi32(power, one));
                p[i] = _mm256_andnot_ps(below[i], _mm256_mul_ps(p[i], power));
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn sigmoid<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            let (zero, one) = (_mm256_setzero_ps(), _mm256_set1_ps(1.0));
            let mut y = x;
            for i in 0..N {
                y[i] = _mm256_or_ps(x[i], _mm256_set1_ps(-0.0));
            }
            y = Self::exp(y);
            for i in 0..N {
                let right = _mm256_cmp_ps::<_CMP_GE_OQ>(x[i], zero);
                let above = _mm256_blendv_ps(y[i], one, right);
                y[i] = _mm256_div_ps(above, _mm256_add_ps(one, y[i]));
            }
            y
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Exp for __m512 {
    #[inline(always)]
    unsafe fn exp<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let (mut near, mut all) = (x, !0);
            for i in 0..N {
                // The second operand is what NaN leaves.
                let above = _mm512_max_ps(_mm512_set1_ps(f32x::ENDS.0), x[i]);
                near[i] = _mm512_min_ps(_mm512_set1_ps(f32x::ENDS.1), above);
                let least = _mm512_set1_ps(f32x::LEAST);
                all &= _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x[i], least);
            }
            let (mut p, n, _) = split(&near);
            if all == !0 {
                for i in 0..N {
                    p[i] = _mm512_scalef_ps(p[i], n[i]);
                }
                return p;
            }
            // Some are subnormal, which costs; what rounds to zero is not computed.
            for i in 0..N {
                let some = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x[i], _mm512_set1_ps(-104.0));
                p[i] = _mm512_maskz_scalef_ps(some, p[i], n[i]);
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn decay<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let mut above = [0; N];
            for i in 0..N {
                above[i] = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x[i], _mm512_set1_ps(f32x::LEAST));
            }
            let (mut p, n, _) = split(&x);
            // Lanes that are left out raise nothing, whatever they hold.
            for i in 0..N {
                p[i] = _mm512_maskz_scalef_ps(above[i], p[i], n[i]);
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn sigmoid<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
            let mut y = x;
            for i in 0..N {
                y[i] = _mm512_or_ps(x[i], _mm512_set1_ps(-0.0));
            }
            y = Self::exp(y);
            for i in 0..N {
                let right = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x[i], zero);
                let above = _mm512_mask_mov_ps(y[i], right, one);
                y[i] = _mm512_div_ps(above, _mm512_add_ps(one, y[i]));
            }
            y
        }
    }
}

/// e^x of `f64x::exp_parts`: the factor of a power of two, and its exponent, as a number and in the low
/// bits of another.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn split_d<V: Simd<Elem = f64>, const N: usize>(x: &[V; N]) -> ([V; N], [V; N], [V; N]) {
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        let (magic, one) = (V::splat(f64x::MAGIC), V::splat(1.0));
        let (mut bits, mut n, mut r, mut low, mut sum) = (*x, *x, *x, *x, *x);
        for i in 0..N {
            bits[i] = x[i].fma(V::splat(std::f64::consts::LOG2_E), magic);
        }
        for i in 0..N {
            n[i] = bits[i].sub(magic);
        }
        for i in 0..N {
            r[i] = n[i].fma(V::splat(-std::f64::consts::LN_2), x[i]);
        }
        for i in 0..N {
            r[i] = n[i].fma(V::splat(-f64x::LN_2_REST), r[i]);
        }
        let mut p = [V::splat(f64x::EXP[9]); N];
        for d in (0..9).rev() {
            for i in 0..N {
                p[i] = p[i].fma(r[i], V::splat(f64x::EXP[d]));
            }
        }
        for i in 0..N {
            sum[i] = one.add(r[i]);
        }
        for i in 0..N {
            low[i] = r[i].sub(sum[i].sub(one));
        }
        for i in 0..N {
            p[i] = sum[i].add(r[i].mul(r[i]).fma(p[i], low[i]));
        }
        (p, n, bits)
    }
}

/// 2^(n + extra) for an n in the low bits of a number.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn power_d(bits: __m256i, extra: i64) -> __m256d {
    // SAFETY: the caller has AVX2.
    unsafe {
        let biased = _mm256_add_epi64(bits, _mm256_set1_epi64x(extra + 1023));
        _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased))
    }
}

#[cfg(target_arch = "x86_64")]
impl Exp for __m256d {
    #[inline(always)]
    unsafe fn exp<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            // The second operand is what NaN leaves.
            for i in 0..N {
                let above = _mm256_max_pd(_mm256_set1_pd(f64x::ENDS.0), x[i]);
                x[i] = _mm256_min_pd(_mm256_set1_pd(f64x::ENDS.1), above);
            }
            let (mut p, _, bits) = split_d(&x);
            for i in 0..N {
                // Two factors, the first zero for the least power: `f64x::scale`.
                let low = _mm256_min_pd(_mm256_set1_pd(f64x::MOST), bits[i]);
                let (bits, low) = (_mm256_castpd_si256(bits[i]), _mm256_castpd_si256(low));
                p[i] = _mm256_mul_pd(p[i], power_d(low, 53));
                p[i] = _mm256_mul_pd(p[i], power_d(_mm256_sub_epi64(bits, low), -53));
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn decay<const N: usize>(mut x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            let mut below = x;
            for i in 0..N {
                below[i] = _mm256_cmp_pd::<_CMP_LT_OQ>(x[i], _mm256_set1_pd(f64x::LEAST));
                x[i] = _mm256_andnot_pd(below[i], x[i]);
            }
            let (mut p, _, bits) = split_d(&x);
            for i in 0..N {
                let power = power_d(_mm256_castpd_si256(bits[i]), 0);
                p[i] = _mm256_andnot_pd(below[i], _mm256_mul_pd(p[i], power));
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn sigmoid<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX2.
        unsafe {
            let (zero, one) = (_mm256_setzero_pd(), _mm256_set1_pd(1.0));
            let mut y = x;
            for i in 0..N {
                let below = _mm256_or_pd(x[i], _mm256_set1_pd(-0.0));
                y[i] = _mm256_max_pd(_mm256_set1_pd(f64x::ENDS.0), below);
            }
            let (mut e, _, bits) = split_d(&y);
            for i in 0..N {
                // `f64x::exp_below`.
                e[i] = _mm256_mul_pd(e[i], power_d(_mm256_castpd_si256(bits[i]), 53));
                e[i] = _mm256_mul_pd(e[i], power_d(_mm256_setzero_si256(), -53));
            }
            for i in 0..N {
                let right = _mm256_cmp_pd::<_CMP_GE_OQ>(x[i], zero);
                let above = _mm256_blendv_pd(e[i], one, right);
                let below = _mm256_add_pd(one, e[i]);
                let low = _mm256_sub_pd(e[i], _mm256_sub_pd(below, one));
                y[i] = _mm256_div_pd(above, below);
                y[i] = _mm256_fnmadd_pd(y[i], low, y[i]);
            }
            y
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Exp for __m512d {
    #[inline(always)]
    unsafe fn exp<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let (mut near, mut all) = (x, !0);
            for i in 0..N {
                // The second operand is what NaN leaves.
                let above = _mm512_max_pd(_mm512_set1_pd(f64x::ENDS.0), x[i]);
                near[i] = _mm512_min_pd(_mm512_set1_pd(f64x::ENDS.1), above);
                let least = _mm512_set1_pd(f64x::LEAST);
                all &= _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x[i], least);
            }
            let (mut p, n, _) = split_d(&near);
            if all == !0 {
                for i in 0..N {
                    p[i] = _mm512_scalef_pd(p[i], n[i]);
                }
                return p;
            }
            // Some are subnormal, which costs; what rounds to zero is not computed.
            for i in 0..N {
                let some = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x[i], _mm512_set1_pd(-745.2));
                p[i] = _mm512_maskz_scalef_pd(some, p[i], n[i]);
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn decay<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let mut above = [0; N];
            for i in 0..N {
                above[i] = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x[i], _mm512_set1_pd(f64x::LEAST));
            }
            let (mut p, n, _) = split_d(&x);
            // Lanes that are left out raise nothing, whatever they hold.
            for i in 0..N {
                p[i] = _mm512_maskz_scalef_pd(above[i], p[i], n[i]);
            }
            p
        }
    }
    #[inline(always)]
    unsafe fn sigmoid<const N: usize>(x: [Self; N]) -> [Self; N] {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let (zero, one) = (_mm512_setzero_pd(), _mm512_set1_pd(1.0));
            let mut y = x;
            for i in 0..N {
                y[i] = _mm512_or_pd(x[i], _mm512_set1_pd(-0.0));
            }
            y = Self::exp(y);
            for i in 0..N {
                let right = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(x[i], zero);
                let above = _mm512_mask_mov_pd(y[i], right, one);
                let below = _mm512_add_pd(one, y[i]);
                let low = _mm512_sub_pd(y[i], _mm512_sub_pd(below, one));
                y[i] = _mm512_div_pd(above, below);
                y[i] = _mm512_fnmadd_pd(y[i], low, y[i]);
            }
            y
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes;
    use super::*;
    use crate::compiled;

    const ODD: [f32; 16] = [
        0.0,
        -0.0,
        1e-40,
        88.0,
        -87.3359,
        -87.3361,
        -88.5,
        -1e30,
        f32::NEG_INFINITY,
        f32::NAN,
        88.7,
        88.73,
        1e30,
        f32::INFINITY,
        -103.9,
        -104.1,
    ];

    #[inline(always)]
    unsafe fn check<V: Exp<Elem = f32>>() {
        let mut x = ODD.to_vec();
        x.extend((0..4000).map(|i| i as f32 * -0.027 + 3.0));
        x.resize(x.len().next_multiple_of(4 * V::LANES), -0.5);
        for block in x.chunks_exact(4 * V::LANES) {
            // SAFETY: a block has four vectors; the caller has their instructions.
            unsafe {
                let at = |i: usize| V::load(block.as_ptr().add(i * V::LANES));
                let all = [at(0), at(1), at(2), at(3)];
                for (y, x) in V::sigmoid(all).into_iter().zip(block.chunks(V::LANES)) {
                    for (&x, y) in x.iter().zip(lanes(y)) {
                        let want = f32x::sigmoid(x);
                        assert!(
                            y == want || x.is_nan() && y.is_nan(),
                            "{x}: {y}, not {want}"
                        );
                    }
                }
                let (four, one) = (V::decay(all), V::decay([at(0)]));
                for (i, &y) in four.iter().chain(&one).enumerate() {
                    let from = &block[i % 4 * V::LANES..][..V::LANES];
                    for (&x, y) in from.iter().zip(lanes(y)) {
                        let want = f32x::decay(x);
                        // It takes nothing larger.
                        let same = y == want || x > 88.0 || x.is_nan() && y.is_nan();
                        assert!(same, "{x}: {y}, not {want}");
                    }
                }
            }
        }
    }

    compiled! { avx2:
        unsafe fn check_avx2() {
            // SAFETY: the caller has AVX2.
            unsafe {
                check::<__m256>();
                check_wide::<__m256d>();
            }
        }
    }
    compiled! { avx512:
        unsafe fn check_avx512() {
            // SAFETY: the caller has AVX-512.
            unsafe {
                check::<__m512>();
                check_wide::<__m512d>();
            }
        }
    }

    #[inline(always)]
    unsafe fn check_wide<V: Exp<Elem = f64>>() {
        let mut x: Vec<f64> = ODD.iter().map(|&x| x as f64).collect();
        let ends = [
            709.7, 709.8, 1e300, -708.39, -708.397, -745.1, -745.15, -745.3, -1e300,
        ];
        x.extend(ends);
        x.extend((0..4000).map(|i| i as f64 * -0.36 + 710.0));
        x.resize(x.len().next_multiple_of(4 * V::LANES), -0.5);
        for block in x.chunks_exact(4 * V::LANES) {
            // SAFETY: a block has four vectors; the caller has their instructions.
            unsafe {
                let at = |i: usize| V::load(block.as_ptr().add(i * V::LANES));
                let x = [at(0), at(1), at(2), at(3)];
                let all = V::exp(x).into_iter().zip(V::decay(x)).zip(V::sigmoid(x));
                for (from, ((exp, decay), sigmoid)) in block.chunks(V::LANES).zip(all) {
                    for (i, &x) in from.iter().enumerate() {
                        let same = |y: V, want: f64| {
                            let y = lanes(y)[i];
                            assert!(
                                y == want || x.is_nan() && y.is_nan(),
                                "{x}: {y}, not {want}"
                            );
                        };
                        same(exp, f64x::exp(x));
                        same(sigmoid, f64x::sigmoid(x));
                        // It takes nothing larger.
                        if x <= 709.0 {
                            same(decay, f64x::decay(x));
                        }
                    }
                }
            }
        }
    }

    compiled! { avx512:
        unsafe fn check_ln() {
            let mut x = ODD.to_vec();
            use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};
            x.extend([1e-45, -1e-45, 1.0, -1.0, f32::MIN_POSITIVE, f32::MAX]);
            x.extend([FRAC_1_SQRT_2, SQRT_2]);
            x.extend((0..4000).map(|i| (i as f32 * 0.044 - 88.0).exp()));
            x.extend((0..4000).map(|i| i as f32 * 5e-4));
            x.resize(x.len().next_multiple_of(64), 1.5);
            for block in x.chunks_exact(64) {
                // SAFETY: a block has four vectors; the caller has their instructions.
                unsafe {
                    let at = |i: usize| __m512::load(block.as_ptr().add(i * 16));
                    let y = crate::simd::ln([at(0), at(1), at(2), at(3)]);
                    for (i, y) in y.into_iter().enumerate() {
                        for (&x, y) in block[i * 16..][..16].iter().zip(lanes(y)) {
                            let want = f32x::ln(x);
                            assert!(y == want || y.is_nan() && want.is_nan(), "{x}: {y}, not {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_have_the_bits_of_numbers() {
        // SAFETY: the portable vectors need nothing; of the others the machine has the set.
        unsafe {
            check::<<f32 as crate::simd::Vectors>::Portable>();
            check_wide::<<f64 as crate::simd::Vectors>::Portable>();
            #[cfg(target_arch = "x86_64")]
            if crate::Level::detect() >= crate::Level::Avx2 {
                check_avx2();
            }
            #[cfg(target_arch = "x86_64")]
            if crate::Level::detect() >= crate::Level::Avx512 {
                check_avx512();
                check_ln();
            }
        }
    }
}

//! The natural logarithm of whole vectors, several in step.

use super::Simd;
use crate::math::f32x;
use std::arch::x86_64::*;

/// [`f32x::ln`] of each lane, with the same bits.
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
pub unsafe fn ln<const N: usize>(x: [__m512; N]) -> [__m512; N] {
    // What numbers of each kind become, four bits each: NaN and what is below zero NaN, zero and
    // infinity the infinities.
    const EDGES: i32 = 0x0353_0422;
    // SAFETY: the caller has AVX-512.
    unsafe {
        let (one, root) = (
            _mm512_set1_ps(1.0),
            _mm512_set1_ps(std::f32::consts::SQRT_2),
        );
        let (mut e, mut f, mut y) = (x, x, x);
        for i in 0..N {
            e[i] = _mm512_getexp_ps(x[i]);
            f[i] = _mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_ZERO>(x[i]);
        }
        for i in 0..N {
            let high = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(f[i], root);
            e[i] = _mm512_mask_add_ps(e[i], high, e[i], one);
            f[i] = _mm512_mask_mul_ps(f[i], high, f[i], _mm512_set1_ps(0.5));
        }
        for i in 0..N {
            f[i] = _mm512_sub_ps(f[i], one);
        }
        let mut p = [_mm512_set1_ps(f32x::LN[8]); N];
        for d in (0..8).rev() {
            for i in 0..N {
                p[i] = p[i].fma(f[i], _mm512_set1_ps(f32x::LN[d]));
            }
        }
        for i in 0..N {
            let f2 = f[i].mul(f[i]);
            let low = e[i].mul(_mm512_set1_ps(-f32x::LN_2_LOW));
            let tail = f2.fma(_mm512_set1_ps(-0.5), f[i].mul(f2).fma(p[i], low));
            y[i] = e[i].fma(_mm512_set1_ps(std::f32::consts::LN_2), f[i].add(tail));
        }
        for i in 0..N {
            y[i] = _mm512_fixupimm_ps::<0>(y[i], x[i], _mm512_set1_epi32(EDGES));
        }
        y
    }
}

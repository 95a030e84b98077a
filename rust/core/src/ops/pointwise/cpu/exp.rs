//! Vector code of exp: many vectors in step, which the compiler does not do by itself for a formula
//! this long. The bits are those of the formula.

use super::super::Own;
use crate::compiled;
use crate::cpu::pointwise::Kernel;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::Exp;
#[cfg(target_arch = "x86_64")]
use crate::per_isa;

/// The loop for this machine.
pub fn own(which: Own) -> Option<Kernel<f32>> {
    #[cfg(target_arch = "x86_64")]
    if which != Own::Gradient {
        return per_isa!(match avx512 => Some(avx512), avx2 => Some(avx2), neon => None,
            portable => None);
    }
    let _ = which;
    None
}

/// As [`own`], of float64.
pub fn own64(which: Own) -> Option<Kernel<f64>> {
    #[cfg(target_arch = "x86_64")]
    if which != Own::Gradient {
        return per_isa!(match avx512 => Some(wide), avx2 => None, neon => None, portable => None);
    }
    let _ = which;
    None
}

/// y = e^x of `n` elements, N vectors at a time; `y` may be `x`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn exps<V: Exp, const N: usize>(x: *const V::Elem, y: *mut V::Elem, n: usize) {
    // SAFETY: `x` has `n` elements and `y` room for as many, which vectors and their first lanes
    // keep to; the caller has the instructions of `V`.
    unsafe {
        let mut i = 0;
        while i + N * V::LANES <= n {
            let mut v = [V::load(x.add(i)); N];
            for j in 1..N {
                v[j] = V::load(x.add(i + j * V::LANES));
            }
            let v = V::exp(v);
            for j in 0..N {
                v[j].store(y.add(i + j * V::LANES));
            }
            i += N * V::LANES;
        }
        while i < n {
            let lanes = V::LANES.min(n - i);
            let [v] = V::exp([V::load_first(x.add(i), lanes)]);
            v.store_first(y.add(i), lanes);
            i += lanes;
        }
    }
}

compiled! { avx2:
    unsafe fn avx2(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX2.
        unsafe { exps::<std::arch::x86_64::__m256, 8>(*x, y, n) }
    }
}
compiled! { avx512:
    unsafe fn avx512(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX-512.
        unsafe { exps::<std::arch::x86_64::__m512, 4>(*x, y, n) }
    }
}
compiled! { avx512:
    unsafe fn wide(_: *const (), x: *const *const f64, y: *mut f64, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX-512.
        unsafe { exps::<std::arch::x86_64::__m512d, 4>(*x, y, n) }
    }
}

//! Vector code of the natural logarithm: AVX-512 has instructions for a number's exponent and digits
//! and for what a function is at zero, infinity and below zero; and vectors go in step, as those of
//! [exp](super::exp) do. The bits are those of the formula.

use super::super::Own;
use crate::compiled;
use crate::cpu::pointwise::Kernel;
#[cfg(target_arch = "x86_64")]
use crate::cpu::simd::ln;
#[cfg(target_arch = "x86_64")]
use crate::per_isa;

/// The loop for this machine.
pub fn own(which: Own) -> Option<Kernel<f32>> {
    #[cfg(target_arch = "x86_64")]
    if which != Own::Gradient {
        return per_isa!(match avx512 => Some(avx512), avx2 => None, neon => None, portable => None);
    }
    let _ = which;
    None
}

compiled! { avx512:
    unsafe fn avx512(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        use crate::cpu::simd::Simd;
        use std::arch::x86_64::__m512;
        const STEP: usize = 4 * __m512::LANES;
        // SAFETY: `x` points to `n` numbers, and `y`, which may be the same, has room for `n`; vectors
        // and their first lanes keep to them. Who takes the kernel asked for AVX-512.
        unsafe {
            let x = *x;
            let mut i = 0;
            while i + STEP <= n {
                let mut v = [__m512::load(x.add(i)); 4];
                for j in 1..4 {
                    v[j] = __m512::load(x.add(i + j * __m512::LANES));
                }
                let v = ln(v);
                for j in 0..4 {
                    v[j].store(y.add(i + j * __m512::LANES));
                }
                i += STEP;
            }
            while i < n {
                let lanes = __m512::LANES.min(n - i);
                let [v] = ln([__m512::load_first(x.add(i), lanes)]);
                v.store_first(y.add(i), lanes);
                i += lanes;
            }
        }
    }
}

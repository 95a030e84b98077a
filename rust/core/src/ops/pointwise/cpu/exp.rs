//! Vector code of exp and of what is made of it: many vectors in step, which the compiler does not do
//! by itself for formulas this long. The bits are those of the formulas.

use super::super::Own;
use crate::compiled;
use crate::cpu::pointwise::Kernel;
use crate::cpu::simd::Exp;
#[cfg(target_arch = "x86_64")]
use crate::per_isa;

/// A function of several vectors in step.
pub trait InStep {
    /// # Safety
    /// The machine has the instructions of the vector.
    unsafe fn of<V: Exp, const N: usize>(x: [V; N]) -> [V; N];
}

macro_rules! in_step {
    ($($(#[doc = $doc:literal])* $name:ident<$V:ident, $N:ident>, |$x:ident| $y:expr;)*) => { $(
        $(#[doc = $doc])*
        pub struct $name;
        impl InStep for $name {
            #[inline(always)]
            unsafe fn of<$V: Exp, const $N: usize>($x: [$V; $N]) -> [$V; $N] {
                // SAFETY: the machine has the instructions of the vector.
                unsafe { $y }
            }
        }
    )* };
}
in_step! {
    /// e^x.
    Exponential<V, N>, |x| V::exp(x);
    /// 1 / (1 + e^-x).
    Sigmoid<V, N>, |x| V::sigmoid(x);
    /// x / (1 + e^-x).
    Silu<V, N>, |x| {
        let mut y = V::sigmoid(x);
        for i in 0..N {
            y[i] = x[i].mul(y[i]);
        }
        y
    };
}

/// The loop of a function for this machine.
pub fn own<F: InStep>(which: Own) -> Option<Kernel<f32>> {
    #[cfg(target_arch = "x86_64")]
    if which != Own::Gradient {
        return per_isa!(match avx512 => Some(avx512::<F>), avx2 => Some(avx2::<F>), neon => None,
            portable => None);
    }
    let _ = which;
    None
}

/// As [`own`], of float64.
pub fn own64<F: InStep>(which: Own) -> Option<Kernel<f64>> {
    #[cfg(target_arch = "x86_64")]
    if which != Own::Gradient {
        return per_isa!(match avx512 => Some(wide512::<F>), avx2 => Some(wide256::<F>), neon => None,
            portable => None);
    }
    let _ = which;
    None
}

/// y = F(x) of `n` elements, N vectors at a time; `y` may be `x`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn all<F: InStep, V: Exp, const N: usize>(x: *const V::Elem, y: *mut V::Elem, n: usize) {
    // SAFETY: `x` has `n` elements and `y` room for as many, which vectors and their first lanes
    // keep to; the caller has the instructions of `V`.
    unsafe {
        let mut i = 0;
        while i + N * V::LANES <= n {
            let mut v = [V::load(x.add(i)); N];
            for j in 1..N {
                v[j] = V::load(x.add(i + j * V::LANES));
            }
            let v = F::of(v);
            for j in 0..N {
                v[j].store(y.add(i + j * V::LANES));
            }
            i += N * V::LANES;
        }
        while i < n {
            let lanes = V::LANES.min(n - i);
            let [v] = F::of([V::load_first(x.add(i), lanes)]);
            v.store_first(y.add(i), lanes);
            i += lanes;
        }
    }
}

compiled! { avx2:
    unsafe fn avx2<F: InStep>(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX2.
        unsafe { all::<F, std::arch::x86_64::__m256, 8>(*x, y, n) }
    }
}
compiled! { avx512:
    unsafe fn avx512<F: InStep>(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX-512.
        unsafe { all::<F, std::arch::x86_64::__m512, 4>(*x, y, n) }
    }
}
compiled! { avx2:
    unsafe fn wide256<F: InStep>(_: *const (), x: *const *const f64, y: *mut f64, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX2.
        unsafe { all::<F, std::arch::x86_64::__m256d, 4>(*x, y, n) }
    }
}
compiled! { avx512:
    unsafe fn wide512<F: InStep>(_: *const (), x: *const *const f64, y: *mut f64, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX-512.
        unsafe { all::<F, std::arch::x86_64::__m512d, 4>(*x, y, n) }
    }
}

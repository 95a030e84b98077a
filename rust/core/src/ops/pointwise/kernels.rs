//! The loops over a formula, one for each instruction set.

use super::{Pointwise, Real};
use crate::cpu::pointwise::Kernel;
use crate::cpu::{level, Level};

/// Element `i` of each operand. Written out: `array::from_fn` may stay a call in the loop.
// SAFETY: every pointer has an element `i`; N is at least one.
#[inline(always)]
unsafe fn at<R: Copy, const N: usize>(x: &[*const R; N], i: usize) -> [R; N] {
    let mut a = [*x[0].add(i); N];
    let mut j = 1;
    while j < N {
        a[j] = *x[j].add(i);
        j += 1;
    }
    a
}

// SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
#[inline(always)]
unsafe fn forward<P: Pointwise<N>, R: Real, const N: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    let op = &*params.cast::<P>();
    let x = *x.cast::<[*const R; N]>();
    for i in 0..n {
        *y.add(i) = op.f(at(&x, i));
    }
}

// SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
pub(super) unsafe fn forward_int<P: Pointwise<N>, const N: usize>(
    params: *const (),
    x: *const *const i64,
    y: *mut i64,
    n: usize,
) {
    let op = &*params.cast::<P>();
    let x = *x.cast::<[*const i64; N]>();
    for i in 0..n {
        *y.add(i) = op.int(at(&x, i));
    }
}

// SAFETY: `params` is a `P`; `x` holds N + 2 pointers to `n` elements, and `d` has room for `n`.
#[inline(always)]
unsafe fn gradient<P: Pointwise<N>, R: Real, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    d: *mut R,
    n: usize,
) {
    if I >= N {
        return;
    }
    let op = &*params.cast::<P>();
    let (g, y) = (*x, *x.add(1));
    let x = *x.add(2).cast::<[*const R; N]>();
    for i in 0..n {
        *d.add(i) = op.df(at(&x, i), *y.add(i), *g.add(i))[I];
    }
}

/// Instantiates a loop for each instruction set and picks one.
macro_rules! levels {
    ($name:ident, $R:ident, [$($g:ident),*], $body:ident) => {
        pub(super) fn $name<P: Pointwise<N>, const N: usize $(, const $g: usize)*>() -> Kernel<$R> {
            // SAFETY: as for `$body`.
            unsafe fn portable<P: Pointwise<N>, const N: usize $(, const $g: usize)*>(
                p: *const (), x: *const *const $R, y: *mut $R, n: usize,
            ) {
                $body::<P, $R, N $(, $g)*>(p, x, y, n)
            }
            // SAFETY: as for `$body`; picked only where the machine has the instructions.
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt")]
            unsafe fn avx2<P: Pointwise<N>, const N: usize $(, const $g: usize)*>(
                p: *const (), x: *const *const $R, y: *mut $R, n: usize,
            ) {
                $body::<P, $R, N $(, $g)*>(p, x, y, n)
            }
            // SAFETY: as for `$body`; picked only where the machine has the instructions.
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2,lzcnt")]
            unsafe fn avx512<P: Pointwise<N>, const N: usize $(, const $g: usize)*>(
                p: *const (), x: *const *const $R, y: *mut $R, n: usize,
            ) {
                $body::<P, $R, N $(, $g)*>(p, x, y, n)
            }
            match level() {
                Level::Portable => portable::<P, N $(, $g)*>,
                #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                Level::Avx2 => avx2::<P, N $(, $g)*>,
                #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                Level::Avx512 => avx512::<P, N $(, $g)*>,
                #[cfg(any(not(target_arch = "x86_64"), debug_assertions))]
                _ => portable::<P, N $(, $g)*>,
            }
        }
    };
}
levels!(kernel32, f32, [], forward);
levels!(kernel64, f64, [], forward);
levels!(gradient32, f32, [I], gradient);
levels!(gradient64, f64, [I], gradient);

/// The gradient kernel of input `i`; ops have at most four.
macro_rules! by_input {
    ($name:ident, $R:ident, $of:ident) => {
        pub(super) fn $name<P: Pointwise<N>, const N: usize>(i: usize) -> Kernel<$R> {
            match i {
                0 => $of::<P, N, 0>(),
                1 => $of::<P, N, 1>(),
                2 => $of::<P, N, 2>(),
                _ => $of::<P, N, 3>(),
            }
        }
    };
}
by_input!(grad32, f32, gradient32);
by_input!(grad64, f64, gradient64);

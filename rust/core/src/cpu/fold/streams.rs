//! Several rows at once. What lies in the last cache arrives sooner in several streams than in one,
//! because each is fetched ahead of its own. And extremes by the instructions for them, which know
//! no NaN: whether there is one is noted apart.

use super::super::elements::{Compute, NativeF16};
use super::super::{level, Level};
use super::{
    columns, row, total, with_group, Fold, Kernels, Max, Min, Rows, Sum, Widen, LANES, MOST_ROWS,
};
use crate::compiled;
use half::{bf16, f16};
use std::arch::x86_64::*;

/// A fold of registers.
///
/// # Safety
/// The machine has AVX-512; an address is that of a register of elements.
pub(super) trait Wide<T>: Fold<T> {
    type V: Copy;
    unsafe fn splat(x: T) -> Self::V;
    unsafe fn fold(acc: Self::V, x: Self::V) -> Self::V;
    /// The total of N registers, which hold LANES elements: with the bits of [`total`] where nothing is
    /// missed.
    unsafe fn across<const N: usize>(acc: [Self::V; N]) -> T;
    /// The same of R rows.
    unsafe fn across_rows<const R: usize, const N: usize>(acc: [[Self::V; N]; R]) -> [T; R];
    /// Not zero where either holds what [`Wide::fold`] does not see.
    unsafe fn missed(x: Self::V, y: Self::V) -> u16;
    /// [`Wide::fold`] that sees all.
    unsafe fn seen(acc: Self::V, x: Self::V) -> Self::V;
}

/// An element of which a register of wider ones is loaded.
///
/// # Safety
/// The machine has AVX-512; an address is that of as many elements as a register has.
pub(super) trait Load<V>: Sized {
    unsafe fn load(x: *const Self) -> V;
}
macro_rules! loads {
    ($($t:ty => $v:ty: |$x:ident| $e:expr;)*) => {$(
        impl Load<$v> for $t {
            #[inline(always)]
            unsafe fn load($x: *const $t) -> $v {
                // SAFETY: the caller's.
                unsafe { $e }
            }
        }
    )*};
}
loads! {
    f32 => __m512: |x| _mm512_loadu_ps(x);
    f64 => __m512d: |x| _mm512_loadu_pd(x);
    i64 => __m512i: |x| _mm512_loadu_si512(x.cast());
    f16 => __m512: |x| _mm512_cvtph_ps(_mm256_loadu_si256(x.cast()));
    NativeF16 => __m512: |x| _mm512_cvtph_ps(_mm256_loadu_si256(x.cast()));
    bf16 => __m512: |x| {
        let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(x.cast()));
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
    };
}

macro_rules! none {
    (seen $v:ident, $acc:expr, $x:expr) => {
        $acc
    };
    ($v:ident, $x:expr, $y:expr) => {{
        let _ = ($x, $y);
        0
    }};
}
macro_rules! nan {
    (seen __m512, $acc:expr, $x:expr) => {{
        let nan = nan!(__m512, $x, $x);
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_mask_mov_ps($acc, nan, $x) }
    }};
    (seen __m512d, $acc:expr, $x:expr) => {{
        let nan = nan!(__m512d, $x, $x) as u8;
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_mask_mov_pd($acc, nan, $x) }
    }};
    (__m512, $x:expr, $y:expr) => {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>($x, $y) }
    };
    (__m512d, $x:expr, $y:expr) => {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_cmp_pd_mask::<_CMP_UNORD_Q>($x, $y) as u16 }
    };
}
/// Folds the upper half of a register into its lower one until one element is left.
macro_rules! sixteen {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<f32>>::fold(x, _mm512_shuffle_f32x4::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<f32>>::fold(x, _mm512_shuffle_f32x4::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<f32>>::fold(x, _mm512_permute_ps::<0b_11_10_11_10>(x));
        let x = <$f as Wide<f32>>::fold(x, _mm512_permute_ps::<0b_01_01_01_01>(x));
        _mm512_cvtss_f32(x)
    }};
}
macro_rules! eight {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<f64>>::fold(x, _mm512_shuffle_f64x2::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<f64>>::fold(x, _mm512_shuffle_f64x2::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<f64>>::fold(x, _mm512_permute_pd::<0b_01_01_01_01>(x));
        _mm512_cvtsd_f64(x)
    }};
}
macro_rules! eight_whole {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<i64>>::fold(x, _mm512_shuffle_i64x2::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<i64>>::fold(x, _mm512_shuffle_i64x2::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<i64>>::fold(x, _mm512_shuffle_epi32::<0b_11_10_11_10>(x));
        _mm_cvtsi128_si64(_mm512_castsi512_si128(x))
    }};
}
/// The same of four registers: those of two are taken together while there is room.
macro_rules! four_sixteens {
    ($f:ty, $x:expr) => {{
        let x: &[__m512] = $x;
        let mut halves = [x[0]; 2];
        for j in 0..2 {
            let (a, b) = (x[2 * j], x[2 * j + 1]);
            let (low, high) = (
                _mm512_shuffle_f32x4::<0b_01_00_01_00>(a, b),
                _mm512_shuffle_f32x4::<0b_11_10_11_10>(a, b),
            );
            halves[j] = <$f as Wide<f32>>::fold(low, high);
        }
        let [a, b] = halves;
        let (low, high) = (
            _mm512_shuffle_f32x4::<0b_10_00_10_00>(a, b),
            _mm512_shuffle_f32x4::<0b_11_01_11_01>(a, b),
        );
        let x = <$f as Wide<f32>>::fold(low, high);
        let x = <$f as Wide<f32>>::fold(x, _mm512_permute_ps::<0b_11_10_11_10>(x));
        let x = <$f as Wide<f32>>::fold(x, _mm512_permute_ps::<0b_01_01_01_01>(x));
        std::mem::transmute::<__m512, [f32; 16]>(x)
    }};
}
macro_rules! two_eights {
    ($f:ty, $x:expr) => {{
        let (a, b) = ($x[0], $x[1]);
        let (low, high) = (
            _mm512_shuffle_f64x2::<0b_01_00_01_00>(a, b),
            _mm512_shuffle_f64x2::<0b_11_10_11_10>(a, b),
        );
        let x = <$f as Wide<f64>>::fold(low, high);
        let x = <$f as Wide<f64>>::fold(x, _mm512_shuffle_f64x2::<0b_11_11_01_01>(x, x));
        let x = <$f as Wide<f64>>::fold(x, _mm512_permute_pd::<0b_01_01_01_01>(x));
        std::mem::transmute::<__m512d, [f64; 8]>(x)
    }};
}
macro_rules! two_eights_whole {
    ($f:ty, $x:expr) => {{
        let (a, b) = ($x[0], $x[1]);
        let (low, high) = (
            _mm512_shuffle_i64x2::<0b_01_00_01_00>(a, b),
            _mm512_shuffle_i64x2::<0b_11_10_11_10>(a, b),
        );
        let x = <$f as Wide<i64>>::fold(low, high);
        let x = <$f as Wide<i64>>::fold(x, _mm512_shuffle_i64x2::<0b_11_11_01_01>(x, x));
        let x = <$f as Wide<i64>>::fold(x, _mm512_shuffle_epi32::<0b_11_10_11_10>(x));
        std::mem::transmute::<__m512i, [i64; 8]>(x)
    }};
}
macro_rules! wide {
    ($($fold:ident<$t:ident> $v:ident $splat:ident $step:ident $join:ident $several:ident of $R:literal
        $missed:ident;)*) => {$(
        impl Wide<$t> for $fold {
            type V = $v;
            #[inline(always)]
            unsafe fn splat(x: $t) -> $v {
                // SAFETY: the caller has AVX-512.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn fold(acc: $v, x: $v) -> $v {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    // Of equal operands, or where one is NaN, an extreme is the second.
                    $step(x, acc)
                }
            }
            #[inline(always)]
            unsafe fn across<const N: usize>(mut acc: [$v; N]) -> $t {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    let mut half = N / 2;
                    while half > 0 {
                        for j in 0..half {
                            acc[j] = <Self as Wide<$t>>::fold(acc[j], acc[j + half]);
                        }
                        half /= 2;
                    }
                    $join!(Self, acc[0])
                }
            }
            #[inline(always)]
            unsafe fn across_rows<const R: usize, const N: usize>(
                mut acc: [[$v; N]; R],
            ) -> [$t; R] {
                // SAFETY: the caller has AVX-512.
                unsafe {
                    let mut out = [<$t>::default(); R];
                    if R != $R {
                        for r in 0..R {
                            out[r] = Self::across(acc[r]);
                        }
                        return out;
                    }
                    let mut each = [acc[0][0]; R];
                    for r in 0..R {
                        let mut half = N / 2;
                        while half > 0 {
                            for j in 0..half {
                                let (a, b) = (acc[r][j], acc[r][j + half]);
                                acc[r][j] = <Self as Wide<$t>>::fold(a, b);
                            }
                            half /= 2;
                        }
                        each[r] = acc[r][0];
                    }
                    let all = $several!(Self, &each);
                    for r in 0..R {
                        out[r] = all[r * all.len() / R];
                    }
                    out
                }
            }
            #[inline(always)]
            unsafe fn missed(x: $v, y: $v) -> u16 {
                $missed!($v, x, y)
            }
            #[inline(always)]
            unsafe fn seen(acc: $v, x: $v) -> $v {
                // SAFETY: the caller has AVX-512.
                let y = unsafe { <Self as Wide<$t>>::fold(acc, x) };
                $missed!(seen $v, y, x)
            }
        }
    )*};
}
wide! {
    Sum<f32> __m512 _mm512_set1_ps _mm512_add_ps sixteen four_sixteens of 4 none;
    Max<f32> __m512 _mm512_set1_ps _mm512_max_ps sixteen four_sixteens of 4 nan;
    Min<f32> __m512 _mm512_set1_ps _mm512_min_ps sixteen four_sixteens of 4 nan;
    Sum<f64> __m512d _mm512_set1_pd _mm512_add_pd eight two_eights of 2 none;
    Max<f64> __m512d _mm512_set1_pd _mm512_max_pd eight two_eights of 2 nan;
    Min<f64> __m512d _mm512_set1_pd _mm512_min_pd eight two_eights of 2 nan;
    Sum<i64> __m512i _mm512_set1_epi64 _mm512_add_epi64 eight_whole two_eights_whole of 2 none;
}

/// Adds the `i`-th LANES elements of a row to N registers.
// SAFETY: the row has as many, and the caller AVX-512.
#[inline(always)]
unsafe fn lanes<S: Load<F::V>, T, F: Wide<T>, const N: usize>(
    x: *const S,
    i: usize,
    acc: &mut [F::V; N],
    missed: &mut u16,
) {
    // SAFETY: the caller's.
    unsafe {
        for j in (0..N).step_by(2) {
            let at = x.add(i + j * (LANES / N));
            let (a, b) = (S::load(at), S::load(at.add(LANES / N)));
            acc[j] = F::fold(acc[j], a);
            acc[j + 1] = F::fold(acc[j + 1], b);
            *missed |= F::missed(a, b);
        }
    }
}

compiled! { avx512:
    /// R rows in R * N registers: in turn if they are APART.
    unsafe fn rows<
        S: Widen<T> + Load<F::V>,
        T: Copy + Default,
        F: Wide<T>,
        const R: usize,
        const N: usize,
        const APART: bool,
    >(
        x: &[*const u8; MOST_ROWS],
        n: usize,
        out: &mut [T; MOST_ROWS],
    ) {
        // SAFETY: R rows have `n` elements, at least LANES, and whole groups of lanes end there;
        // `with_rows` asked for AVX-512.
        unsafe {
            // One by one: a load of two addresses would wait until both, just stored, are in the cache.
            let mut at = [std::ptr::null::<S>(); R];
            for r in 0..R {
                at[r] = (&raw const x[r]).read_volatile().cast();
            }
            let x = at;
            let mut acc = [[F::splat(F::init()); N]; R];
            let mut missed = [0; R];
            let mut i = 0;
            while APART && i + LANES <= n {
                for r in 0..R {
                    lanes::<S, T, F, N>(x[r], i, &mut acc[r], &mut missed[r]);
                }
                i += LANES;
            }
            // Written out: registers cannot be counted through.
            macro_rules! each {
                ($($r:literal)*) => {$(
                    if $r < R {
                        i = 0;
                        while i + LANES <= n {
                            lanes::<S, T, F, N>(x[$r], i, &mut acc[$r], &mut missed[$r]);
                            i += LANES;
                        }
                    }
                )*};
            }
            if !APART {
                each!(0 1 2 3);
            }
            if i == n {
                out[..R].copy_from_slice(&F::across_rows(acc));
            } else {
                // N registers hold LANES elements.
                let mut wide = [[T::default(); LANES]; R];
                for r in 0..R {
                    for j in 0..N {
                        let to = wide[r].as_mut_ptr().add(j * (LANES / N));
                        to.cast::<F::V>().write_unaligned(acc[r][j]);
                    }
                }
                for r in 0..R {
                    out[r] = total::<S, T, F>(wide[r], x[r].add(i), n - i, T::default());
                }
            }
            for r in 0..R {
                if missed[r] != 0 {
                    out[r] = row::<S, T, F>(x[r].cast(), n, T::default());
                }
            }
        }
    }
}

compiled! { avx512:
    /// One row of any length.
    unsafe fn one<
        S: Widen<T> + Load<F::V>,
        T: Copy + Default,
        F: Wide<T>,
        const N: usize,
    >(
        x: *const u8,
        n: usize,
        c: T,
    ) -> T {
        // SAFETY: the row has `n` elements, and `rows` gets LANES or more; `with_rows` asked for
        // AVX-512.
        unsafe {
            if n < LANES {
                return row::<S, T, F>(x, n, c);
            }
            let mut out = [c; MOST_ROWS];
            rows::<S, T, F, 1, N, true>(&[x; MOST_ROWS], n, &mut out);
            out[0]
        }
    }
}

compiled! { avx512:
    /// [`columns`] by whole registers, several rows at once.
    unsafe fn wide_columns<S: Widen<T> + Load<F::V>, T: Copy, F: Wide<T>>(
        acc: *mut T,
        x: *const u8,
        c: *const T,
        n: usize,
        rows: usize,
        step: isize,
    ) {
        // SAFETY: `acc`, a row of `x` (of `S`) and `c` have `n` elements, and `acc` overlaps neither;
        // `with_rows` asked for AVX-512.
        unsafe {
            let lanes = size_of::<F::V>() / size_of::<T>();
            let whole = n - n % lanes;
            let mut r = 0;
            while r < rows {
                let count = (rows - r).min(MOST_ROWS);
                let x = x.offset(r as isize * step);
                let mut i = 0;
                while i < whole {
                    let at = acc.add(i).cast::<F::V>();
                    let mut y = at.read_unaligned();
                    let x = x.cast::<S>().add(i);
                    if count == MOST_ROWS {
                        for k in 0..MOST_ROWS {
                            y = F::seen(y, S::load(x.byte_offset(k as isize * step)));
                        }
                    } else {
                        for k in 0..count {
                            y = F::seen(y, S::load(x.byte_offset(k as isize * step)));
                        }
                    }
                    at.write_unaligned(y);
                    i += lanes;
                }
                r += count;
            }
            let x = x.cast::<S>().add(whole).cast();
            columns::<S, T, F>(acc.add(whole), x, c.add(whole), n - whole, rows, step);
        }
    }
}

/// [`with_group`], and a kernel for several rows: as many as sixteen registers hold.
pub(super) fn with_rows<S: Widen<T> + Load<F::V>, T: Compute, F: Wide<T>>() -> Kernels<T> {
    let mut k = with_group::<S, T, F>();
    if level() == Level::Avx512 {
        k.columns = wide_columns::<S, T, F>;
        if size_of::<T>() == 4 {
            k.row = one::<S, T, F, 4>;
            k.rows = Some(Rows {
                count: 4,
                run: [rows::<S, T, F, 4, 4, false>, rows::<S, T, F, 4, 4, true>],
            });
        } else {
            k.row = one::<S, T, F, 8>;
            k.rows = Some(Rows {
                count: 2,
                run: [rows::<S, T, F, 2, 8, false>, rows::<S, T, F, 2, 8, true>],
            });
        }
    }
    k
}

//! Rows by registers: extremes by the instructions for them, which know no NaN (whether there is one is
//! noted apart), the last elements of a row by masks, and the steps from registers to numbers for several
//! rows at once. In memory several rows are read as streams, each of which is fetched ahead of its own;
//! in caches one after another, since there short streams come slower than one.

use super::super::elements::{Compute, NativeF16};
use super::super::{level, Level};
use super::{
    columns, row, with_lines, Fold, Kernels, Max, Min, Rows, Sum, Widen, HELD, LANES, MOST_ROWS,
};
use crate::compiled;
use half::{bf16, f16};
use std::arch::x86_64::*;

/// A fold of registers.
///
/// # Safety
/// The machine has the instructions of the register; an address is that of a register of elements.
pub(super) trait Wide<T, V: Copy>: Fold<T> {
    unsafe fn splat(x: T) -> V;
    unsafe fn fold(acc: V, x: V) -> V;
    /// [`Wide::fold`] of the first `n` elements of a register.
    unsafe fn fold_first(acc: V, x: V, n: usize) -> V;
    /// The total of a register's elements, with the bits of [`row`] where nothing is missed.
    unsafe fn across(x: V) -> T;
    /// The same of each of R.
    unsafe fn across_each<const R: usize>(x: [V; R]) -> [T; R];
    /// Not zero where either holds what [`Wide::fold`] does not see.
    unsafe fn missed(x: V, y: V) -> u16;
    /// [`Wide::fold`] that sees all.
    unsafe fn seen(acc: V, x: V) -> V;
}

/// An element of which a register of wider ones is loaded.
///
/// # Safety
/// The machine has the instructions of the register; an address is that of as many elements as it has.
pub(super) trait Load<V>: Sized {
    unsafe fn load(x: *const Self) -> V;
    /// The first `n` of them, and zeros.
    unsafe fn load_first(x: *const Self, n: usize) -> V;
}
macro_rules! loads {
    ($($t:ty => $v:ty: $all:ident, $first:ident($mask:ident), |$x:ident| $e:expr;)*) => {$(
        impl Load<$v> for $t {
            #[inline(always)]
            unsafe fn load(x: *const $t) -> $v {
                // SAFETY: the caller's.
                unsafe {
                    let $x = $all(x.cast());
                    $e
                }
            }
            #[inline(always)]
            unsafe fn load_first(x: *const $t, n: usize) -> $v {
                // SAFETY: the caller's; what the mask leaves out is not read.
                unsafe {
                    let $x = $first($mask(n), x.cast());
                    $e
                }
            }
        }
    )*};
}
/// A bit for each of `n` elements, at most those of a register.
#[inline(always)]
fn sixteen_bits(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}
#[inline(always)]
fn eight_bits(n: usize) -> u8 {
    sixteen_bits(n) as u8
}
/// All bits of each of `n` elements of eight.
// SAFETY: the machine has AVX2.
#[inline(always)]
unsafe fn eight_wide(n: usize) -> __m256i {
    // SAFETY: the caller's.
    unsafe {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places)
    }
}
// SAFETY: the machine has AVX2, and there are as many floats at `x` as the mask names.
#[inline(always)]
unsafe fn first_floats(mask: __m256i, x: *const f32) -> __m256 {
    // SAFETY: the caller's.
    unsafe { _mm256_maskload_ps(x, mask) }
}
// SAFETY: there are `n` elements at `x`, at most eight.
#[inline(always)]
unsafe fn first_halves(n: usize, x: *const u16) -> __m128i {
    // SAFETY: the caller's.
    unsafe {
        let mut all = [0u16; 8];
        for i in 0..n {
            all[i] = *x.add(i);
        }
        std::mem::transmute::<[u16; 8], __m128i>(all)
    }
}
#[inline(always)]
fn as_it_is(n: usize) -> usize {
    n
}
loads! {
    f32 => __m512: _mm512_loadu_ps, _mm512_maskz_loadu_ps(sixteen_bits), |x| x;
    f64 => __m512d: _mm512_loadu_pd, _mm512_maskz_loadu_pd(eight_bits), |x| x;
    i64 => __m512i: _mm512_loadu_si512, _mm512_maskz_loadu_epi64(eight_bits), |x| x;
    f16 => __m512: _mm256_loadu_si256, _mm256_maskz_loadu_epi16(sixteen_bits), |x| _mm512_cvtph_ps(x);
    NativeF16 => __m512: _mm256_loadu_si256, _mm256_maskz_loadu_epi16(sixteen_bits),
        |x| _mm512_cvtph_ps(x);
    bf16 => __m512: _mm256_loadu_si256, _mm256_maskz_loadu_epi16(sixteen_bits), |x| {
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x)))
    };
    f32 => __m256: _mm256_loadu_ps, first_floats(eight_wide), |x| x;
    f16 => __m256: _mm_loadu_si128, first_halves(as_it_is), |x| _mm256_cvtph_ps(x);
    NativeF16 => __m256: _mm_loadu_si128, first_halves(as_it_is), |x| _mm256_cvtph_ps(x);
    bf16 => __m256: _mm_loadu_si128, first_halves(as_it_is), |x| {
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x)))
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
    (seen __m256, $acc:expr, $x:expr) => {{
        let x = $x;
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_blendv_ps($acc, x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x)) }
    }};
    (__m256, $x:expr, $y:expr) => {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>($x, $y)) as u16 }
    };
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
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_shuffle_f32x4::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_shuffle_f32x4::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_permute_ps::<0b_11_10_11_10>(x));
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_permute_ps::<0b_01_01_01_01>(x));
        _mm512_cvtss_f32(x)
    }};
}
macro_rules! eight_floats {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<f32, __m256>>::fold(x, _mm256_permute2f128_ps::<0x11>(x, x));
        let x = <$f as Wide<f32, __m256>>::fold(x, _mm256_permute_ps::<0b_11_10_11_10>(x));
        let x = <$f as Wide<f32, __m256>>::fold(x, _mm256_movehdup_ps(x));
        _mm256_cvtss_f32(x)
    }};
}
macro_rules! eight {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<f64, __m512d>>::fold(x, _mm512_shuffle_f64x2::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<f64, __m512d>>::fold(x, _mm512_shuffle_f64x2::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<f64, __m512d>>::fold(x, _mm512_permute_pd::<0b_01_01_01_01>(x));
        _mm512_cvtsd_f64(x)
    }};
}
macro_rules! eight_whole {
    ($f:ty, $x:expr) => {{
        let x = $x;
        let x = <$f as Wide<i64, __m512i>>::fold(x, _mm512_shuffle_i64x2::<0b_11_10_11_10>(x, x));
        let x = <$f as Wide<i64, __m512i>>::fold(x, _mm512_shuffle_i64x2::<0b_01_01_01_01>(x, x));
        let x = <$f as Wide<i64, __m512i>>::fold(x, _mm512_shuffle_epi32::<0b_11_10_11_10>(x));
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
            halves[j] = <$f as Wide<f32, __m512>>::fold(low, high);
        }
        let [a, b] = halves;
        let (low, high) = (
            _mm512_shuffle_f32x4::<0b_10_00_10_00>(a, b),
            _mm512_shuffle_f32x4::<0b_11_01_11_01>(a, b),
        );
        let x = <$f as Wide<f32, __m512>>::fold(low, high);
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_permute_ps::<0b_11_10_11_10>(x));
        let x = <$f as Wide<f32, __m512>>::fold(x, _mm512_permute_ps::<0b_01_01_01_01>(x));
        std::mem::transmute::<__m512, [f32; 16]>(x)
    }};
}
/// The totals are in order, as far apart as there is room.
macro_rules! four_eights {
    ($f:ty, $x:expr) => {{
        let x: &[__m256] = $x;
        let mut pairs = [x[0]; 2];
        for j in 0..2 {
            let (a, b) = (x[j], x[j + 2]);
            let (low, high) = (
                _mm256_permute2f128_ps::<0x20>(a, b),
                _mm256_permute2f128_ps::<0x31>(a, b),
            );
            pairs[j] = <$f as Wide<f32, __m256>>::fold(low, high);
        }
        // Those of the first and third register, and of the second and fourth.
        let [a, b] = pairs;
        let (low, high) = (
            _mm256_shuffle_ps::<0b_01_00_01_00>(a, b),
            _mm256_shuffle_ps::<0b_11_10_11_10>(a, b),
        );
        let x = <$f as Wide<f32, __m256>>::fold(low, high);
        let x = <$f as Wide<f32, __m256>>::fold(x, _mm256_movehdup_ps(x));
        std::mem::transmute::<__m256, [f32; 8]>(x)
    }};
}
macro_rules! two_eights {
    ($f:ty, $x:expr) => {{
        let (a, b) = ($x[0], $x[1]);
        let (low, high) = (
            _mm512_shuffle_f64x2::<0b_01_00_01_00>(a, b),
            _mm512_shuffle_f64x2::<0b_11_10_11_10>(a, b),
        );
        let x = <$f as Wide<f64, __m512d>>::fold(low, high);
        let x = <$f as Wide<f64, __m512d>>::fold(x, _mm512_shuffle_f64x2::<0b_11_11_01_01>(x, x));
        let x = <$f as Wide<f64, __m512d>>::fold(x, _mm512_permute_pd::<0b_01_01_01_01>(x));
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
        let x = <$f as Wide<i64, __m512i>>::fold(low, high);
        let x = <$f as Wide<i64, __m512i>>::fold(x, _mm512_shuffle_i64x2::<0b_11_11_01_01>(x, x));
        let x = <$f as Wide<i64, __m512i>>::fold(x, _mm512_shuffle_epi32::<0b_11_10_11_10>(x));
        std::mem::transmute::<__m512i, [i64; 8]>(x)
    }};
}
macro_rules! wide {
    ($($fold:ident<$t:ident> $v:ident $splat:ident $choose:path, $mask:ident $step:ident $join:ident
        $several:ident of $R:literal $missed:ident;)*) => {$(
        impl Wide<$t, $v> for $fold {
            #[inline(always)]
            unsafe fn splat(x: $t) -> $v {
                // SAFETY: the caller has the instructions.
                unsafe { $splat(x) }
            }
            #[inline(always)]
            unsafe fn fold(acc: $v, x: $v) -> $v {
                // SAFETY: the caller has the instructions.
                unsafe {
                    // Of equal operands, or where one is NaN, an extreme is the second.
                    $step(x, acc)
                }
            }
            #[inline(always)]
            unsafe fn fold_first(acc: $v, x: $v, n: usize) -> $v {
                // SAFETY: the caller has the instructions.
                unsafe { $choose(acc, $mask(n), <Self as Wide<$t, $v>>::fold(acc, x)) }
            }
            #[inline(always)]
            unsafe fn across(x: $v) -> $t {
                // SAFETY: the caller has the instructions.
                unsafe { $join!(Self, x) }
            }
            #[inline(always)]
            unsafe fn across_each<const R: usize>(x: [$v; R]) -> [$t; R] {
                // SAFETY: the caller has the instructions.
                unsafe {
                    let mut out = [<$t>::default(); R];
                    if R == $R {
                        let all = $several!(Self, &x);
                        for r in 0..R {
                            out[r] = all[r * all.len() / R];
                        }
                    } else {
                        for r in 0..R {
                            out[r] = <Self as Wide<$t, $v>>::across(x[r]);
                        }
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
                // SAFETY: the caller has the instructions.
                let y = unsafe { <Self as Wide<$t, $v>>::fold(acc, x) };
                $missed!(seen $v, y, x)
            }
        }
    )*};
}
/// A sum: what the mask leaves out is zero, and no running result is -0.
#[inline(always)]
fn summed<V, M>(_: V, _: M, y: V) -> V {
    y
}
/// The second where the mask says so.
// SAFETY: the machine has AVX2.
#[inline(always)]
unsafe fn chosen(x: __m256, mask: __m256i, y: __m256) -> __m256 {
    // SAFETY: the caller's.
    unsafe { _mm256_blendv_ps(x, y, _mm256_castsi256_ps(mask)) }
}
wide! {
    Sum<f32> __m512 _mm512_set1_ps summed, sixteen_bits _mm512_add_ps sixteen
        four_sixteens of 4 none;
    Max<f32> __m512 _mm512_set1_ps _mm512_mask_mov_ps, sixteen_bits _mm512_max_ps sixteen
        four_sixteens of 4 nan;
    Min<f32> __m512 _mm512_set1_ps _mm512_mask_mov_ps, sixteen_bits _mm512_min_ps sixteen
        four_sixteens of 4 nan;
    Sum<f64> __m512d _mm512_set1_pd summed, eight_bits _mm512_add_pd eight
        two_eights of 2 none;
    Max<f64> __m512d _mm512_set1_pd _mm512_mask_mov_pd, eight_bits _mm512_max_pd eight
        two_eights of 2 nan;
    Min<f64> __m512d _mm512_set1_pd _mm512_mask_mov_pd, eight_bits _mm512_min_pd eight
        two_eights of 2 nan;
    Sum<i64> __m512i _mm512_set1_epi64 summed, eight_bits _mm512_add_epi64 eight_whole
        two_eights_whole of 2 none;
    Sum<f32> __m256 _mm256_set1_ps summed, eight_wide _mm256_add_ps eight_floats
        four_eights of 4 none;
    Max<f32> __m256 _mm256_set1_ps chosen, eight_wide _mm256_max_ps eight_floats
        four_eights of 4 nan;
    Min<f32> __m256 _mm256_set1_ps chosen, eight_wide _mm256_min_ps eight_floats
        four_eights of 4 nan;
}

/// Adds the `i`-th LANES elements of a row to N registers.
// SAFETY: the row has as many, and the caller the instructions.
#[inline(always)]
unsafe fn lanes<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    i: usize,
    acc: &mut [V; N],
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

/// One register of N, and of the last `n` elements, fewer than LANES, which are added first.
// SAFETY: there are as many, and the caller has the instructions.
#[inline(always)]
unsafe fn joined<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    n: usize,
    mut acc: [V; N],
    missed: &mut u16,
) -> V {
    // SAFETY: the caller's.
    unsafe {
        if n > 0 {
            for j in 0..N {
                let some = n.saturating_sub(j * (LANES / N)).min(LANES / N);
                if some == 0 {
                    break;
                }
                let v = S::load_first(x.wrapping_add(j * (LANES / N)), some);
                acc[j] = F::fold_first(acc[j], v, some);
                *missed |= F::missed(v, v);
            }
        }
        let mut half = N / 2;
        while half > 0 {
            for j in 0..half {
                acc[j] = F::fold(acc[j], acc[j + half]);
            }
            half /= 2;
        }
        acc[0]
    }
}

/// One register of a row.
// SAFETY: the row has `n` elements, at least LANES; the caller has the instructions.
#[inline(always)]
unsafe fn register<S: Load<V>, T, V: Copy, F: Wide<T, V>, const N: usize>(
    x: *const S,
    n: usize,
    missed: &mut u16,
) -> V {
    // SAFETY: the caller's; whole groups of lanes end at `n`.
    unsafe {
        let mut acc = [F::splat(F::init()); N];
        let mut i = 0;
        while i + LANES <= n {
            lanes::<S, T, V, F, N>(x, i, &mut acc, missed);
            i += LANES;
        }
        joined::<S, T, V, F, N>(x.add(i), n - i, acc, missed)
    }
}

/// The totals of R rows from one register of each.
// SAFETY: the rows have `n` elements; the caller has the instructions.
#[inline(always)]
unsafe fn totals<S: Widen<T>, T: Copy + Default, V: Copy, F: Wide<T, V>, const R: usize>(
    x: [*const S; R],
    n: usize,
    each: [V; R],
    missed: [u16; R],
) -> [T; R] {
    // SAFETY: the caller's.
    unsafe {
        let mut out = F::across_each(each);
        for r in 0..R {
            if missed[r] != 0 {
                out[r] = row::<S, T, F>(x[r].cast(), n, T::default());
            }
        }
        out
    }
}

compiled! { avx512:
    /// R rows in turn, in R * N registers.
    unsafe fn rows<
        S: Widen<T> + Load<V>,
        T: Copy + Default,
        V: Copy,
        F: Wide<T, V>,
        const R: usize,
        const N: usize,
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
            while i + LANES <= n {
                for r in 0..R {
                    lanes::<S, T, V, F, N>(x[r], i, &mut acc[r], &mut missed[r]);
                }
                i += LANES;
            }
            let mut each = [acc[0][0]; R];
            for r in 0..R {
                each[r] = joined::<S, T, V, F, N>(x[r].add(i), n - i, acc[r], &mut missed[r]);
            }
            let y = totals::<S, T, V, F, R>(x, n, each, missed);
            out[..R].copy_from_slice(&y);
        }
    }
}

macro_rules! by_line {
    ($d:tt $set:ident: $lines:ident $one:ident) => {
        compiled! { $set:
            /// Rows one after another, of which R share the steps from registers to numbers.
            unsafe fn $lines<
                S: Widen<T> + Load<V>,
                T: Copy + Default,
                V: Copy,
                F: Wide<T, V>,
                const R: usize,
                const N: usize,
            >(
                x: *const u8,
                step: isize,
                n: usize,
                count: usize,
                out: *mut T,
            ) {
                // SAFETY: there are `count` rows of `n` elements, at least LANES, and room for as many
                // results; `with_rows` asked for the instructions.
                unsafe {
                    let mut r = 0;
                    while r + R <= count {
                        let mut at = [x.cast::<S>(); R];
                        let mut each = [F::splat(F::init()); R];
                        let mut missed = [0; R];
                        // Written out: registers cannot be counted through.
                        macro_rules! each {
                            ($d($i:literal)*) => {$d(
                                if $i < R {
                                    at[$i] = at[$i].byte_offset((r + $i) as isize * step);
                                    each[$i] =
                                        register::<S, T, V, F, N>(at[$i], n, &mut missed[$i]);
                                }
                            )*};
                        }
                        each!(0 1 2 3);
                        let y = totals::<S, T, V, F, R>(at, n, each, missed);
                        out.add(r).cast::<[T; R]>().write(y);
                        r += R;
                    }
                    while r < count {
                        let x = x.byte_offset(r as isize * step);
                        *out.add(r) = $one::<S, T, V, F, N>(x, n, T::default());
                        r += 1;
                    }
                }
            }
        }
        compiled! { $set:
            /// One row of any length.
            unsafe fn $one<
                S: Widen<T> + Load<V>,
                T: Copy + Default,
                V: Copy,
                F: Wide<T, V>,
                const N: usize,
            >(
                x: *const u8,
                n: usize,
                c: T,
            ) -> T {
                // SAFETY: the row has `n` elements, and `register` gets LANES or more; `with_rows`
                // asked for the instructions.
                unsafe {
                    if n < LANES {
                        return row::<S, T, F>(x, n, c);
                    }
                    let mut missed = 0;
                    let each = register::<S, T, V, F, N>(x.cast(), n, &mut missed);
                    let [y] = totals::<S, T, V, F, 1>([x.cast()], n, [each], [missed]);
                    y
                }
            }
        }
    };
}
by_line!($ avx512: lines_512 one_512);
by_line!($ avx2: lines_256 one_256);

compiled! { avx512:
    /// [`columns`] of HELD bytes, of rows that follow each other.
    unsafe fn held_columns<S: Load<V>, T, V: Copy, F: Wide<T, V>>(
        acc: *mut T,
        x: *const u8,
        rows: usize,
    ) {
        // SAFETY: `acc` and a row of `x` have as many elements as eight registers; `with_rows` asked for
        // AVX-512.
        unsafe {
            const N: usize = HELD / 64;
            let lanes = size_of::<V>() / size_of::<T>();
            let (at, x) = (acc.cast::<V>(), x.cast::<S>());
            let mut y = [at.read_unaligned(); N];
            for j in 0..N {
                y[j] = at.add(j).read_unaligned();
            }
            for r in 0..rows {
                for j in 0..N {
                    y[j] = F::seen(y[j], S::load(x.add((N * r + j) * lanes)));
                }
            }
            for j in 0..N {
                at.add(j).write_unaligned(y[j]);
            }
        }
    }
}

compiled! { avx512:
    /// [`columns`] by whole registers, several rows at once.
    unsafe fn wide_columns<S: Widen<T> + Load<V>, T: Copy, V: Copy, F: Wide<T, V>>(
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
            let lanes = size_of::<V>() / size_of::<T>();
            if n * size_of::<T>() == HELD && step == (n * size_of::<S>()) as isize {
                return held_columns::<S, T, V, F>(acc, x, rows);
            }
            let whole = n - n % lanes;
            let mut r = 0;
            while r < rows {
                let count = (rows - r).min(MOST_ROWS);
                let x = x.offset(r as isize * step);
                let mut i = 0;
                while i < whole {
                    let at = acc.add(i).cast::<V>();
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

/// The register of eight elements.
pub(super) trait Eight {
    type V: Copy;
}
impl Eight for f64 {
    type V = __m512d;
}
impl Eight for i64 {
    type V = __m512i;
}

/// [`with_lines`], by registers with AVX-512; streams are as many as sixteen registers hold.
pub(super) fn with_rows<S: Widen<T> + Load<T::V>, T: Compute + Eight, F: Wide<T, T::V>>(
) -> Kernels<T> {
    let mut k = with_lines::<S, T, F>();
    if level() == Level::Avx512 {
        k.columns = wide_columns::<S, T, T::V, F>;
        k.row = one_512::<S, T, T::V, F, 8>;
        k.lines = Some(lines_512::<S, T, T::V, F, 2, 8>);
        k.rows = Some(Rows {
            count: 2,
            run: rows::<S, T, T::V, F, 2, 8>,
        });
    }
    k
}

/// [`with_rows`] of float32, by registers with AVX2 too.
pub(super) fn with_float_rows<
    S: Widen<T> + Load<__m512> + Load<__m256>,
    T: Compute,
    F: Wide<T, __m512> + Wide<T, __m256>,
>() -> Kernels<T> {
    let mut k = with_lines::<S, T, F>();
    match level() {
        Level::Avx512 => {
            k.columns = wide_columns::<S, T, __m512, F>;
            k.row = one_512::<S, T, __m512, F, 4>;
            k.lines = Some(lines_512::<S, T, __m512, F, 4, 4>);
            k.rows = Some(Rows {
                count: 4,
                run: rows::<S, T, __m512, F, 4, 4>,
            });
        }
        Level::Avx2 => {
            k.row = one_256::<S, T, __m256, F, 8>;
            k.lines = Some(lines_256::<S, T, __m256, F, 4, 8>);
        }
        _ => (),
    }
    k
}

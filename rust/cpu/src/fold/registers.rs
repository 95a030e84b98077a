//! Folds of AVX2's and AVX-512's registers, what loads them, and the steps from registers to numbers.

use super::super::elements::NativeF16;
use super::{Fold, Max, Min, Sum};
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
                // SAFETY: the machine has the instructions; as many elements as the register has
                // lie at `x`.
                unsafe {
                    let $x = $all(x.cast());
                    $e
                }
            }
            #[inline(always)]
            unsafe fn load_first(x: *const $t, n: usize) -> $v {
                // SAFETY: `n` elements lie at `x`; what the mask leaves out is not read.
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
    // SAFETY: the machine has AVX2.
    unsafe {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places)
    }
}
// SAFETY: the machine has AVX2, and there are as many floats at `x` as the mask names.
#[inline(always)]
unsafe fn first_floats(mask: __m256i, x: *const f32) -> __m256 {
    // SAFETY: the machine has AVX2, and there are as many floats at `x` as the mask names.
    unsafe { _mm256_maskload_ps(x, mask) }
}
// SAFETY: there are `n` elements at `x`, at most eight.
#[inline(always)]
unsafe fn first_halves(n: usize, x: *const u16) -> __m128i {
    // SAFETY: there are `n` elements at `x`, at most eight.
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
    // SAFETY: the machine has AVX2.
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

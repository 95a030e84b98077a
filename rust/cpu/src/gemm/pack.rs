//! Panels of operands in the order in which kernels read them.

use super::{GemmElem, Pack};
#[cfg(target_arch = "x86_64")]
use crate::simd::fetch;
use crate::simd::Simd;
#[cfg(target_arch = "aarch64")]
use crate::simd::{F32x8, F64x4};
use half::{bf16, f16};
#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::Range;

/// Loads that bring elements of a matrix into vectors of packed elements.
///
/// # Safety
/// The elements that a method names may be read, and the machine has the instruction set of `V`.
pub(super) trait Source<V: Simd>: Copy {
    /// Elements of depth in a packed one: two for pairs.
    const EACH: usize;
    /// The packed elements of `n` consecutive elements of depth, at most a full vector of them.
    unsafe fn along_depth(p: *const Self, n: usize) -> V;
    /// The packed elements of `n` consecutive lanes, at most a vector; of `each` elements of depth,
    /// `ds` apart.
    unsafe fn along_lanes(p: *const Self, ds: isize, each: usize, n: usize) -> V;
    /// One packed element.
    unsafe fn one(p: *const Self, ds: isize, each: usize) -> V::Elem;
}

macro_rules! plain {
    ($($T:ty),*) => {$(
        impl<V: Simd<Elem = $T>> Source<V> for $T {
            const EACH: usize = 1;
            #[inline(always)]
            unsafe fn along_depth(p: *const Self, n: usize) -> V {
                // SAFETY: `p` has `n` elements, of which no more are read; the caller has the
                // instructions of the vector.
                unsafe {
                    if n >= V::LANES { V::load(p) } else { V::load_first(p, n) }
                }
            }
            #[inline(always)]
            unsafe fn along_lanes(p: *const Self, _: isize, _: usize, n: usize) -> V {
                // SAFETY: `p` has `n` elements; the caller has the instructions of the vector.
                unsafe { Self::along_depth(p, n) }
            }
            #[inline(always)]
            unsafe fn one(p: *const Self, _: isize, _: usize) -> $T {
                // SAFETY: `p` is an element.
                unsafe { *p }
            }
        }
    )*};
}
plain!(f32, f64);

/// The first `n` of eight 16-bit elements; the others are zero.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn halves8(p: *const u16, n: usize) -> uint16x8_t {
    // SAFETY: `p` has `n` elements, of which at most 8 are read; NEON is part of every aarch64.
    unsafe {
        if n >= 8 {
            return vld1q_u16(p);
        }
        let mut x = [0u16; 8];
        std::ptr::copy_nonoverlapping(p, x.as_mut_ptr(), n);
        vld1q_u16(x.as_ptr())
    }
}

/// The first `n` of eight 16-bit elements; the others are zero.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves8(p: *const u16, n: usize) -> __m128i {
    // SAFETY: `p` has `n` elements, of which at most 8 are read; SSE2 is part of every x86-64
    // machine.
    unsafe {
        if n >= 8 {
            return _mm_loadu_si128(p.cast());
        }
        let mut x = [0u16; 8];
        std::ptr::copy_nonoverlapping(p, x.as_mut_ptr(), n);
        _mm_loadu_si128(x.as_ptr().cast())
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves16(p: *const u16, n: usize) -> __m256i {
    // SAFETY: `p` has `n` elements, of which no more than 16 are read; the caller has AVX-512.
    unsafe {
        if n >= 16 {
            return _mm256_loadu_si256(p.cast());
        }
        _mm256_maskz_loadu_epi16(((1u32 << n) - 1) as u16, p.cast())
    }
}

macro_rules! widened {
    ($($T:ty, $V:ty, $load:ident, |$x:ident| $widen:expr);*) => {$(
        impl Source<$V> for $T {
            const EACH: usize = 1;
            #[inline(always)]
            unsafe fn along_depth(p: *const Self, n: usize) -> $V {
                // SAFETY: `p` has `n` elements, of which no more are read; the caller has the
                // instructions of the vector.
                unsafe {
                    let $x = $load(p.cast(), n);
                    $widen
                }
            }
            #[inline(always)]
            unsafe fn along_lanes(p: *const Self, _: isize, _: usize, n: usize) -> $V {
                // SAFETY: `p` has `n` elements; the caller has the instructions of the vector.
                unsafe { Self::along_depth(p, n) }
            }
            #[inline(always)]
            unsafe fn one(p: *const Self, _: isize, _: usize) -> f32 {
                // SAFETY: `p` is an element.
                unsafe { (*p).widen()
    }
            }
        }
    )*};
}
#[cfg(target_arch = "aarch64")]
widened! {
    f16, F32x8, halves8, |x| {
        let x = vreinterpretq_f16_u16(x);
        F32x8::of(vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x))
    };
    bf16, F32x8, halves8, |x| {
        let (low, high) = (vshll_n_u16::<16>(vget_low_u16(x)), vshll_high_n_u16::<16>(x));
        F32x8::of(vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high))
    }
}
#[cfg(target_arch = "x86_64")]
widened! {
    f16, __m512, halves16, |x| _mm512_cvtph_ps(x);
    f16, __m256, halves8, |x| _mm256_cvtph_ps(x);
    bf16, __m512, halves16,
        |x| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x)));
    bf16, __m256, halves8,
        |x| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(x)))
}

/// A bfloat16 that is packed with the next one of its lane.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Paired(#[allow(dead_code)] bf16);

#[cfg(target_arch = "x86_64")]
impl Source<__m512> for Paired {
    const EACH: usize = 2;
    #[inline(always)]
    unsafe fn along_depth(p: *const Self, n: usize) -> __m512 {
        // SAFETY: `p` has `n` elements, of which no more are read; the caller has AVX-512.
        unsafe {
            if n >= 32 {
                return _mm512_castsi512_ps(_mm512_loadu_si512(p.cast()));
            }
            let mask = ((1u64 << n) - 1) as u32;
            _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, p.cast()))
        }
    }
    #[inline(always)]
    unsafe fn along_lanes(p: *const Self, ds: isize, each: usize, n: usize) -> __m512 {
        // SAFETY: `p`, and `p + ds` where `each` is two, have `n` elements; the caller has AVX-512.
        unsafe {
            let low = _mm512_cvtepu16_epi32(halves16(p.cast(), n));
            if each == 1 {
                return _mm512_castsi512_ps(low);
            }
            let high = _mm512_cvtepu16_epi32(halves16(p.offset(ds).cast(), n));
            _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32::<16>(high)))
        }
    }
    #[inline(always)]
    unsafe fn one(p: *const Self, ds: isize, each: usize) -> f32 {
        // SAFETY: `p` is an element, and so is `p + ds` where `each` is two.
        unsafe {
            let low = *p.cast::<u16>() as u32;
            let high = if each == 1 {
                0
            } else {
                *p.offset(ds).cast::<u16>() as u32
            };
            f32::from_bits(low | high << 16)
        }
    }
}

/// The pairs of half a vector, for tiles of eight rows.
#[cfg(target_arch = "x86_64")]
impl Source<__m256> for Paired {
    const EACH: usize = 2;
    #[inline(always)]
    unsafe fn along_depth(p: *const Self, n: usize) -> __m256 {
        // SAFETY: `p` has `n` elements, of which no more are read; the caller has AVX-512.
        unsafe { _mm256_castsi256_ps(halves16(p.cast(), n)) }
    }
    #[inline(always)]
    unsafe fn along_lanes(p: *const Self, ds: isize, each: usize, n: usize) -> __m256 {
        // SAFETY: `p`, and `p + ds` where `each` is two, have `n` elements; the caller has AVX-512.
        unsafe {
            let low = _mm256_cvtepu16_epi32(halves8(p.cast(), n));
            if each == 1 {
                return _mm256_castsi256_ps(low);
            }
            let high = _mm256_cvtepu16_epi32(halves8(p.offset(ds).cast(), n));
            _mm256_castsi256_ps(_mm256_or_si256(low, _mm256_slli_epi32::<16>(high)))
        }
    }
    #[inline(always)]
    unsafe fn one(p: *const Self, ds: isize, each: usize) -> f32 {
        // SAFETY: `p`, and `p + ds` where `each` is two, have an element.
        unsafe { <Self as Source<__m512>>::one(p, ds, each) }
    }
}

/// What a panel is packed from: the address of its first element, its lanes and its depth.
#[derive(Clone, Copy)]
pub(super) struct From<S> {
    pub p: *const S,
    /// Steps to the next lane and depth.
    pub ls: isize,
    pub ds: isize,
    pub lanes: usize,
    pub depth: usize,
}

/// Stores a vector into rows of `width`. What runs over into the next row is written again, by
/// stores that follow; the end of the panel is not crossed.
#[inline(always)]
unsafe fn put<V: Simd>(v: V, at: usize, total: usize, dst: *mut V::Elem) {
    // SAFETY: `dst` has `total` elements, and no more than the rest is stored; the caller has the
    // instructions of `V`.
    unsafe {
        if at + V::LANES <= total {
            v.store(dst.add(at));
        } else {
            v.store_first(dst.add(at), total - at);
        }
    }
}

/// Packs the lanes and depth of `x` in rows of `width`.
#[inline(always)]
unsafe fn fill<V: Simd, S: Source<V>>(x: &From<S>, width: usize, dst: *mut V::Elem) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for all rows of `width`; the
    // caller has the instructions of `V`.
    unsafe {
        let each = S::EACH;
        let (p, ls, ds) = (x.p, x.ls, x.ds);
        let rows = x.depth.div_ceil(each);
        let total = rows * width;
        if ds == 1 && (ls != 1 || x.lanes < V::LANES / 2) && rows > 1 {
            let mut block = [S::along_depth(p, 0); 16];
            for l in (0..width).step_by(V::LANES) {
                // Only one column of blocks may run over into the next row.
                let part = if width > V::LANES {
                    (width - l).min(V::LANES)
                } else {
                    V::LANES
                };
                for q in (0..rows).step_by(V::LANES) {
                    let n = (x.depth - q * each).min(V::LANES * each);
                    for i in 0..V::LANES {
                        let n = if l + i < x.lanes { n } else { 0 };
                        let p = p
                            .wrapping_offset((l + i) as isize * ls)
                            .wrapping_add(q * each);
                        block[i] = S::along_depth(if n == 0 { x.p } else { p }, n);
                    }
                    V::transpose(block.as_mut_ptr());
                    for i in 0..(rows - q).min(V::LANES) {
                        let at = (q + i) * width + l;
                        if part < V::LANES {
                            block[i].store_first(dst.add(at), part);
                        } else {
                            put(block[i], at, total, dst);
                        }
                    }
                }
            }
        } else if ls == 1 {
            for q in 0..rows {
                let p = p.offset((q * each) as isize * ds);
                let e = (x.depth - q * each).min(each);
                for l in (0..width).step_by(V::LANES) {
                    let n = x.lanes.saturating_sub(l).min(V::LANES);
                    let p = if n == 0 { p } else { p.add(l) };
                    put(S::along_lanes(p, ds, e, n), q * width + l, total, dst);
                }
            }
        } else {
            for q in 0..rows {
                let e = (x.depth - q * each).min(each);
                let p = p.offset((q * each) as isize * ds);
                for l in 0..x.lanes {
                    *dst.add(q * width + l) = S::one(p.offset(l as isize * ls), ds, e);
                }
                for l in x.lanes..width {
                    *dst.add(q * width + l) = std::mem::zeroed();
                }
            }
        }
    }
}

/// Rows of a block that are asked for ahead of their use.
#[cfg(target_arch = "x86_64")]
const SOON: usize = 4;

#[cfg(target_arch = "x86_64")]
impl<S> From<S> {
    /// The row `q` of packed elements: its address, the elements of depth in each, and the way to
    /// the row that is asked for meanwhile. What lies behind the block is not asked for.
    #[inline(always)]
    fn row<V: Simd>(&self, q: usize) -> (*const S, usize, isize)
    where
        S: Source<V>,
    {
        let from = q * S::EACH;
        let soon = if from + (SOON + 1) * S::EACH <= self.depth {
            self.ds * (SOON * S::EACH) as isize
        } else {
            0
        };
        let row = self.p.wrapping_offset(from as isize * self.ds);
        (row, (self.depth - from).min(S::EACH), soon)
    }
}

/// Packs contiguous lanes into panels of `width`, the last one of as many vectors as it needs. Whole
/// rows are read, so that the processor sees long runs, and each panel is written in order.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn lay<V: Simd, S: Source<V>>(x: &From<S>, width: usize, dst: *mut V::Elem) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for all of its vectors; the
    // caller has the instructions of `V`.
    unsafe {
        let (whole, k) = (x.lanes / width * width, x.depth.div_ceil(S::EACH));
        let rest = (x.lanes - whole).next_multiple_of(V::LANES);
        for q in 0..k {
            let (row, each, soon) = x.row::<V>(q);
            let mut to = dst.add(q * width);
            for l in (0..whole).step_by(width) {
                for v in (0..width).step_by(V::LANES) {
                    let p = row.add(l + v);
                    for e in 0..each {
                        fetch(p.wrapping_offset(soon + e as isize * x.ds));
                    }
                    S::along_lanes(p, x.ds, each, V::LANES).store(to.add(v));
                }
                to = to.add(width * k);
            }
            let to = dst.add(whole * k + q * rest);
            for v in (0..rest).step_by(V::LANES) {
                let p = row.add(whole + v);
                let n = (x.lanes - whole - v).min(V::LANES);
                S::along_lanes(p, x.ds, each, n).store(to.add(v));
            }
        }
    }
}

/// Packs the first `width` lanes, of which there are `x.lanes` to be read, in rows of `width`. Whole
/// vectors are turned and stored, without masks, so there must be room for one more.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn<V: Simd, S: Source<V>>(x: &From<S>, width: usize, dst: *mut V::Elem) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for all rows of `width` and a
    // vector; the caller has the instructions of `V`.
    unsafe {
        let wide = width.next_multiple_of(V::LANES);
        if x.ds == 1 {
            let x = From { lanes: width, ..*x };
            if wide > V::LANES {
                turned::<V, S, 2>(&x, width, dst);
            } else {
                turned::<V, S, 1>(&x, width, dst);
            }
        } else {
            one_by_one(&From { lanes: width, ..*x }, width, dst);
        }
    }
}

/// Packs contiguous lanes into `count` tiles, `step` elements apart, in rows of `width`; the last
/// tile may have fewer lanes. All tiles of a row are packed together, whose lines are next to each
/// other. Whole vectors are stored: what runs over is written again, so there must be room for one
/// more behind each tile.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn strips<V: Simd, S: Source<V>>(
    x: &From<S>,
    count: usize,
    width: usize,
    step: usize,
    dst: *mut V::Elem,
) {
    // SAFETY: `x.lanes` lanes of all depths may be read, and `dst` has room for rows of `width` in
    // each tile and a vector; the caller has the instructions of `V`.
    unsafe {
        let wide = width.next_multiple_of(V::LANES);
        // Tiles that may be read in whole vectors; the last one may be narrower.
        let whole = if x.lanes < wide {
            0
        } else {
            ((x.lanes - wide) / width + 1).min(count)
        };
        for q in 0..x.depth.div_ceil(S::EACH) {
            let (row, each, soon) = x.row::<V>(q);
            for t in 0..whole {
                let (from, to) = (row.add(t * width), dst.add(t * step + q * width));
                for e in 0..each {
                    fetch(from.wrapping_offset(soon + e as isize * x.ds));
                }
                for l in (0..wide).step_by(V::LANES) {
                    S::along_lanes(from.add(l), x.ds, each, V::LANES).store(to.add(l));
                }
            }
            for t in whole..count {
                let lanes = width.min(x.lanes - t * width);
                let (from, to) = (row.add(t * width), dst.add(t * step + q * lanes));
                for l in (0..lanes).step_by(V::LANES) {
                    let n = (lanes - l).min(V::LANES);
                    S::along_lanes(from.add(l), x.ds, each, n).store(to.add(l));
                }
            }
        }
    }
}

/// Packs lanes of contiguous depth in rows of `width`, a multiple of a vector; lanes that there are
/// not are like the last one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn columns<V: Simd, S: Source<V>>(x: &From<S>, width: usize, dst: *mut V::Elem) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for all rows of `width`; the
    // caller has the instructions of `V`.
    unsafe {
        if x.ds != 1 {
            return one_by_one(x, width, dst);
        }
        for l in (0..width).step_by(V::LANES) {
            let p = x.p.wrapping_offset(l.min(x.lanes - 1) as isize * x.ls);
            let lanes = x.lanes.saturating_sub(l).clamp(1, V::LANES);
            turned::<V, S, 1>(&From { p, lanes, ..*x }, width, dst.add(l));
        }
    }
}

/// Packs lanes of any steps; lanes that there are not are like the last one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn one_by_one<V: Simd, S: Source<V>>(x: &From<S>, width: usize, dst: *mut V::Elem) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for all rows of `width`.
    unsafe {
        for q in 0..x.depth.div_ceil(S::EACH) {
            let (p, each, _) = x.row::<V>(q);
            for l in 0..width {
                let lane = l.min(x.lanes - 1) as isize;
                *dst.add(q * width + l) = S::one(p.offset(lane * x.ls), x.ds, each);
            }
        }
    }
}

/// Packs at most H vectors of lanes of contiguous depth in rows of `step`; what a vector has beyond
/// the lanes is like the last one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turned<V: Simd, S: Source<V>, const H: usize>(
    x: &From<S>,
    step: usize,
    dst: *mut V::Elem,
) {
    // SAFETY: lanes and depths of `x` may be read, and `dst` has room for rows of `step` and what
    // the last vector runs over; the caller has the instructions of `V`.
    unsafe {
        let rows = x.depth.div_ceil(S::EACH);
        for q in (0..rows).step_by(V::LANES) {
            let (n, from) = ((rows - q).min(V::LANES), q * S::EACH);
            let left = (x.depth - from).min(V::LANES * S::EACH);
            let mut block = [[V::splat(V::Elem::default()); 16]; H];
            for h in 0..H {
                for i in 0..V::LANES {
                    let lane = (h * V::LANES + i).min(x.lanes - 1) as isize;
                    block[h][i] = S::along_depth(x.p.offset(lane * x.ls).add(from), left);
                }
                V::transpose(block[h].as_mut_ptr());
            }
            // In order, since a vector may run over into what follows.
            let to = dst.add(q * step);
            if n == V::LANES {
                for i in 0..V::LANES {
                    for h in 0..H {
                        block[h][i].store(to.add(i * step + h * V::LANES));
                    }
                }
            } else {
                for i in 0..n {
                    for h in 0..H {
                        block[h][i].store(to.add(i * step + h * V::LANES));
                    }
                }
            }
        }
    }
}

/// Packs a panel of a matrix, or a block of panels.
pub(super) type Fill<T, E> = unsafe fn(x: &From<T>, width: usize, dst: *mut E);

macro_rules! fills {
    ($fill:ident: $($name:ident, $set:ident, $V:ty, $T:ty, $S:ty;)*) => {$(
        crate::compiled! { $set:
            pub(super) unsafe fn $name(x: &From<$T>, width: usize, dst: *mut <$V as Simd>::Elem) {
                // SAFETY: `x` may be read, `dst` has room for its depth in rows of `width`; who
                // takes the function asked for the set.
                unsafe {
                    let (p, ls, ds) = (x.p.cast::<$S>(), x.ls, x.ds);
                    $fill::<$V, $S>(&From { p, ls, ds, lanes: x.lanes, depth: x.depth }, width, dst)
                }
            }
        }
    )*};
}
fills! { fill:
    f32_512, avx512, __m512, f32, f32;
    f64_512, avx512, __m512d, f64, f64;
    f16_512, avx512, __m512, f16, f16;
    bf16_512, avx512, __m512, bf16, bf16;
    pairs_512, avx512, __m512, bf16, Paired;
    f32_256, avx2, __m256, f32, f32;
    f64_256, avx2, __m256d, f64, f64;
    f16_256, avx2, __m256, f16, f16;
    bf16_256, avx2, __m256, bf16, bf16;
    f32_neon, neon, F32x8, f32, f32;
    f64_neon, neon, F64x4, f64, f64;
    f16_neon, neon, F32x8, f16, f16;
    bf16_neon, neon, F32x8, bf16, bf16;
}

fills! { lay:
    lay_f32_512, avx512, __m512, f32, f32;
    lay_f64_512, avx512, __m512d, f64, f64;
    lay_f16_512, avx512, __m512, f16, f16;
    lay_bf16_512, avx512, __m512, bf16, bf16;
    lay_pairs, avx512, __m512, bf16, Paired;
    lay_f32_256, avx2, __m256, f32, f32;
    lay_f64_256, avx2, __m256d, f64, f64;
    lay_f16_256, avx2, __m256, f16, f16;
    lay_bf16_256, avx2, __m256, bf16, bf16;
}

fills! { turn:
    turn_f32, avx2, __m256, f32, f32;
    turn_f64, avx2, __m256d, f64, f64;
    turn_f16, avx2, __m256, f16, f16;
    turn_bf16, avx2, __m256, bf16, bf16;
    turn_pairs, avx512, __m256, bf16, Paired;
}

/// Packs tiles of contiguous lanes.
pub(super) type Strips<T, E> =
    unsafe fn(x: &From<T>, count: usize, width: usize, step: usize, dst: *mut E);

#[cfg(target_arch = "x86_64")]
macro_rules! strips {
    ($($name:ident, $set:ident, $V:ty, $T:ty, $S:ty;)*) => {$(
        crate::compiled! { $set:
            pub(super) unsafe fn $name(
                x: &From<$T>, count: usize, width: usize, step: usize, dst: *mut <$V as Simd>::Elem,
            ) {
                // SAFETY: `x` may be read, `dst` has room for `count` tiles, `step` apart; who takes
                // the function asked for the set.
                unsafe {
                    let (p, ls, ds) = (x.p.cast::<$S>(), x.ls, x.ds);
                    let x = From { p, ls, ds, lanes: x.lanes, depth: x.depth };
                    strips::<$V, $S>(&x, count, width, step, dst)
                }
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
strips! {
    strips_f32, avx2, __m256, f32, f32;
    strips_f64, avx2, __m256d, f64, f64;
    strips_f16, avx2, __m256, f16, f16;
    strips_bf16, avx2, __m256, bf16, bf16;
    strips_pairs, avx512, __m256, bf16, Paired;
}

fills! { columns:
    columns_f32, avx2, __m256, f32, f32;
    columns_f64, avx2, __m256d, f64, f64;
    columns_f16, avx2, __m256, f16, f16;
    columns_bf16, avx2, __m256, bf16, bf16;
    columns_pairs, avx512, __m256, bf16, Paired;
}

/// A matrix that packs itself.
pub(super) struct Panels<T: GemmElem> {
    pub p: *const T,
    pub ls: isize,
    pub ds: isize,
    /// Elements of depth in all, and in a packed element.
    pub depth: usize,
    pub each: usize,
    pub fill: Fill<T, T::Acc>,
}

// SAFETY: the matrix is only read.
unsafe impl<T: GemmElem> Sync for Panels<T> {}

impl<T: GemmElem> Pack<T::Acc> for Panels<T> {
    unsafe fn pack(
        &self,
        lanes: Range<usize>,
        depth: Range<usize>,
        width: usize,
        dst: *mut T::Acc,
    ) {
        // SAFETY: the ranges lie inside the operand, and `dst` has room for their depth in rows of
        // `width`.
        unsafe {
            let (from, to) = (
                depth.start * self.each,
                (depth.end * self.each).min(self.depth),
            );
            let p = self
                .p
                .offset(lanes.start as isize * self.ls + from as isize * self.ds);
            let (ls, ds) = (self.ls, self.ds);
            let x = From {
                p,
                ls,
                ds,
                lanes: lanes.len(),
                depth: to - from,
            };
            (self.fill)(&x, width, dst)
        }
    }
}

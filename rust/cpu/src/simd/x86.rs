//! The registers of AVX2 and AVX-512, and those of SSE2, which every x86-64 has.

use super::Simd;
use std::arch::x86_64::*;

macro_rules! registers {
    ($v:ident, $t:ident, $n:literal, $splat:ident, $load:ident, $store:ident, $fma:ident,
     [$($two:ident = $of_two:ident),*]
     $(, unsafe fn $own:ident $(<const $M:ident: usize>)? ($($arg:tt)*) $(-> $r:ty)? $body:block)*
    ) => {
        registers!(@impl $v, $t, $n,
            unsafe fn splat(x: $t) -> Self { $splat(x) },
            unsafe fn load(p: *const $t) -> Self { $load(p) },
            unsafe fn store(self, p: *mut $t) { $store(p, self) },
            unsafe fn fma(self, b: Self, c: Self) -> Self { $fma(self, b, c) }
            $(, unsafe fn $two(self, o: Self) -> Self { $of_two(self, o) })*
            $(, unsafe fn $own $(<const $M: usize>)? ($($arg)*) $(-> $r)? $body)*
        );
    };
    (@impl $v:ident, $t:ident, $n:literal
     $(, unsafe fn $f:ident $(<const $M:ident: usize>)? ($($arg:tt)*) $(-> $r:ty)? $body:block)*
    ) => {
        impl Simd for $v {
            type Elem = $t;
            const LANES: usize = $n;
            $(
                #[inline(always)]
                unsafe fn $f $(<const $M: usize>)? ($($arg)*) $(-> $r)? {
                    // SAFETY: the caller has the instructions of this register, and addresses of
                    // as many elements as it loads or stores; masks leave out the others.
                    unsafe { $body }
                }
            )*
        }
    };
}

/// Transposes the 128-bit lanes of four 512-bit vectors.
macro_rules! lanes4 {
    ($shuffle:ident, $x:expr) => {{
        let [x0, x1, x2, x3] = $x;
        let (a, b) = ($shuffle::<0x88>(x0, x1), $shuffle::<0x88>(x2, x3));
        let (c, d) = ($shuffle::<0xdd>(x0, x1), $shuffle::<0xdd>(x2, x3));
        [
            $shuffle::<0x88>(a, b),
            $shuffle::<0x88>(c, d),
            $shuffle::<0xdd>(a, b),
            $shuffle::<0xdd>(c, d),
        ]
    }};
}

/// The mask of the first `n` lanes, of at most 16.
#[inline(always)]
fn mask(n: usize) -> u16 {
    ((1u32 << n) - 1) as u16
}

/// Lanes that AVX2's masked loads and stores touch, counted from the end of the ones.
static ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
unsafe fn mask256(ints: usize) -> __m256i {
    // SAFETY: `ints` is at most 8, so that 8 of the 16 numbers follow; the caller has AVX2.
    unsafe { _mm256_loadu_si256(ONES.as_ptr().add(8 - ints).cast()) }
}

/// For each mask of eight lanes, those that it names: one after another, a byte each.
static ORDERS: [u64; 256] = {
    let mut orders = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut n) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 != 0 {
                orders[mask] |= lane << (8 * n);
                n += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    orders
};

/// The sum of the two halves of vector `i`, where there is one.
#[inline(always)]
unsafe fn half<const M: usize>(x: &[__m256; M], i: usize) -> __m128 {
    // SAFETY: the caller has AVX2.
    unsafe {
        match x.get(i) {
            Some(&x) => _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x)),
            None => _mm_setzero_ps(),
        }
    }
}

/// Stores the first lanes, as many as `first` has ones. A masked store takes AMD twelve cycles.
#[inline(always)]
unsafe fn store_low(x: __m256, mut p: *mut f32, first: u32) {
    // SAFETY: `p` has room for the lanes; the caller has AVX2.
    unsafe {
        if first == 0xff {
            return _mm256_storeu_ps(p, x);
        }
        let mut low = _mm256_castps256_ps128(x);
        if first & 0x8 != 0 {
            _mm_storeu_ps(p, low);
            (low, p) = (_mm256_extractf128_ps::<1>(x), p.add(4));
        }
        // Of four lanes the first ones that are left: two, one, or three.
        let first = if first & 0x8 != 0 { first >> 4 } else { first };
        if first & 0x2 != 0 {
            _mm_storel_pd(p.cast(), _mm_castps_pd(low));
            (low, p) = (_mm_movehl_ps(low, low), p.add(2));
        }
        if first & 0x4 != 0 || first & 0x3 == 1 {
            _mm_store_ss(p, low);
        }
    }
}

registers!(
    __m512,
    f32,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    [
        add = _mm512_add_ps,
        sub = _mm512_sub_ps,
        mul = _mm512_mul_ps,
        max = _mm512_max_ps
    ],
    unsafe fn load_first(p: *const f32, n: usize) -> Self {
        _mm512_maskz_loadu_ps(mask(n), p)
    },
    unsafe fn widen_f16(p: *const u16) -> Self {
        _mm512_cvtph_ps(_mm256_loadu_si256(p.cast()))
    },
    unsafe fn widen_bf16(p: *const u16) -> Self {
        let x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()));
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(x))
    },
    unsafe fn narrow_f16(self, p: *mut u16) {
        _mm256_storeu_si256(p.cast(), _mm512_cvtps_ph::<0>(self))
    },
    unsafe fn narrow_bf16(self, p: *mut u16) {
        let x = _mm512_castps_si512(self);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(1));
        let near = _mm512_add_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(0x7fff)), odd);
        // A NaN stays one.
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self);
        let quiet = _mm512_or_si512(x, _mm512_set1_epi32(0x40_0000));
        let x = _mm512_mask_mov_epi32(near, nan, quiet);
        let x = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(x));
        _mm256_storeu_si256(p.cast(), x)
    },
    unsafe fn with_last(self, o: Self, n: usize) -> Self {
        _mm512_mask_mov_ps(o, mask(16 - n), self)
    },
    unsafe fn store_first(self, p: *mut f32, n: usize) {
        _mm512_mask_storeu_ps(p, mask(n), self)
    },
    unsafe fn transpose(x: *mut Self) {
        let mut u = [[_mm512_setzero_ps(); 4]; 4];
        for g in 0..4 {
            let row = |i: usize| *x.add(4 * g + i);
            let (a, b) = (
                _mm512_unpacklo_ps(row(0), row(1)),
                _mm512_unpackhi_ps(row(0), row(1)),
            );
            let (c, d) = (
                _mm512_unpacklo_ps(row(2), row(3)),
                _mm512_unpackhi_ps(row(2), row(3)),
            );
            let pd = |x: __m512| _mm512_castps_pd(x);
            u[0][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(pd(a), pd(c)));
            u[1][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(pd(a), pd(c)));
            u[2][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(pd(b), pd(d)));
            u[3][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(pd(b), pd(d)));
        }
        for c in 0..4 {
            let y = lanes4!(_mm512_shuffle_f32x4, u[c]);
            for l in 0..4 {
                *x.add(4 * l + c) = y[l];
            }
        }
    },
    unsafe fn abs(self) -> Self {
        _mm512_abs_ps(self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_ps());
        _mm512_mask_add_ps(self, some, self, _mm512_set1_ps(1.0))
    },
    unsafe fn largest(self) -> f32 {
        _mm512_reduce_max_ps(self)
    },
    unsafe fn sum(self) -> f32 {
        _mm512_reduce_add_ps(self)
    },
    unsafe fn store_some(self, p: *mut f32, mask: u32, first: u32) {
        if mask == 0xffff {
            return self.store(p);
        }
        let together = _mm512_maskz_compress_ps(mask as __mmask16, self);
        _mm512_mask_storeu_ps(p, first as __mmask16, together);
    },
    unsafe fn copy_part(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
        let mask = (0xffffu32 >> (16 - hi)) & (0xffff << lo);
        _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(mask as __mmask16, p));
    },
    unsafe fn copy_second(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
        // The last source element that is wanted bounds what may be read.
        let mask = match lo < hi {
            true => ((1u64 << (2 * hi - 1)) - 1) & (!0 << (2 * lo)),
            false => 0,
        };
        let low = _mm512_maskz_loadu_ps(mask as __mmask16, p);
        let high = _mm512_maskz_loadu_ps((mask >> 16) as __mmask16, p.wrapping_add(16));
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let all = _mm512_permutex2var_ps(low, even, high);
        let keep = (0xffffu32 >> (16 - hi)) & (0xffff << lo);
        _mm512_storeu_ps(to, _mm512_maskz_mov_ps(keep as __mmask16, all));
    },
    unsafe fn store_second(self, p: *mut f32, n: usize) {
        let mask = 0x5555_5555 & ((1u64 << (2 * n)) - 1);
        let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
        let two = |at| _mm512_permutexvar_ps(at, self);
        _mm512_mask_storeu_ps(p, mask as __mmask16, two(low));
        _mm512_mask_storeu_ps(p.wrapping_add(16), (mask >> 16) as __mmask16, two(high));
    },
    unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut f32) {
        if M != 8 {
            for (i, x) in x.iter().enumerate() {
                *p.add(i) += _mm512_reduce_add_ps(*x);
            }
            return;
        }
        // Pairs of vectors are added crosswise until each lane belongs to one sum.
        let two = |a: __m512, b: __m512| {
            _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b))
        };
        let four = |a: __m512, b: __m512| {
            let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
            _mm512_add_ps(
                _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)),
            )
        };
        let v = |i: usize| x[i];
        let low = four(two(v(0), v(1)), two(v(2), v(3)));
        let high = four(two(v(4), v(5)), two(v(6), v(7)));
        // Each 128-bit lane has part of the sums 0 to 3, and 4 to 7.
        let sum = _mm512_add_ps(
            _mm512_shuffle_f32x4::<0b01_00_01_00>(low, high),
            _mm512_shuffle_f32x4::<0b11_10_11_10>(low, high),
        );
        let sum = _mm512_add_ps(sum, _mm512_shuffle_f32x4::<0b10_11_00_01>(sum, sum));
        // Lanes 0 and 2 now hold the two halves.
        let sum = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0b10_00_10_00>(sum, sum));
        _mm256_storeu_ps(p, _mm256_add_ps(_mm256_loadu_ps(p), sum));
    }
);

registers!(
    __m512d,
    f64,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    [
        add = _mm512_add_pd,
        sub = _mm512_sub_pd,
        mul = _mm512_mul_pd,
        max = _mm512_max_pd
    ],
    unsafe fn load_first(p: *const f64, n: usize) -> Self {
        _mm512_maskz_loadu_pd(mask(n) as u8, p)
    },
    unsafe fn store_first(self, p: *mut f64, n: usize) {
        _mm512_mask_storeu_pd(p, mask(n) as u8, self)
    },
    unsafe fn transpose(x: *mut Self) {
        let mut u = [[_mm512_setzero_pd(); 4]; 2];
        for g in 0..4 {
            let (a, b) = (*x.add(2 * g), *x.add(2 * g + 1));
            u[0][g] = _mm512_unpacklo_pd(a, b);
            u[1][g] = _mm512_unpackhi_pd(a, b);
        }
        for c in 0..2 {
            let y = lanes4!(_mm512_shuffle_f64x2, u[c]);
            for l in 0..4 {
                *x.add(2 * l + c) = y[l];
            }
        }
    },
    unsafe fn abs(self) -> Self {
        _mm512_abs_pd(self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_pd());
        _mm512_mask_add_pd(self, some, self, _mm512_set1_pd(1.0))
    },
    unsafe fn largest(self) -> f64 {
        _mm512_reduce_max_pd(self)
    },
    unsafe fn sum(self) -> f64 {
        _mm512_reduce_add_pd(self)
    },
    unsafe fn store_some(self, p: *mut f64, mask: u32, first: u32) {
        if mask == 0xff {
            return self.store(p);
        }
        let together = _mm512_maskz_compress_pd(mask as __mmask8, self);
        _mm512_mask_storeu_pd(p, first as __mmask8, together);
    },
    unsafe fn copy_part(p: *const f64, lo: usize, hi: usize, to: *mut f64) {
        let mask = (0xffu32 >> (8 - hi)) & (0xff << lo);
        _mm512_storeu_pd(to, _mm512_maskz_loadu_pd(mask as __mmask8, p));
    }
);

registers!(
    __m256,
    f32,
    8,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    [
        add = _mm256_add_ps,
        sub = _mm256_sub_ps,
        mul = _mm256_mul_ps,
        max = _mm256_max_ps
    ],
    unsafe fn widen_f16(p: *const u16) -> Self {
        _mm256_cvtph_ps(_mm_loadu_si128(p.cast()))
    },
    unsafe fn widen_bf16(p: *const u16) -> Self {
        let x = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(x))
    },
    unsafe fn narrow_f16(self, p: *mut u16) {
        _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<0>(self))
    },
    unsafe fn narrow_bf16(self, p: *mut u16) {
        let x = _mm256_castps_si256(self);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(x), _mm256_set1_epi32(1));
        let near = _mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd);
        // A NaN stays one.
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(self, self));
        let quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x40_0000));
        let x = _mm256_srli_epi32::<16>(_mm256_blendv_epi8(near, quiet, nan));
        let (low, high) = (_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        _mm_storeu_si128(p.cast(), _mm_packus_epi32(low, high))
    },
    unsafe fn with_last(self, o: Self, n: usize) -> Self {
        _mm256_blendv_ps(o, self, _mm256_castsi256_ps(mask256(8 - n)))
    },
    unsafe fn load_first(p: *const f32, n: usize) -> Self {
        _mm256_maskload_ps(p, mask256(n))
    },
    unsafe fn store_first(self, p: *mut f32, n: usize) {
        _mm256_maskstore_ps(p, mask256(n), self)
    },
    unsafe fn transpose(x: *mut Self) {
        let mut u = [[_mm256_setzero_ps(); 2]; 4];
        for g in 0..2 {
            let row = |i: usize| *x.add(4 * g + i);
            let (a, b) = (
                _mm256_unpacklo_ps(row(0), row(1)),
                _mm256_unpackhi_ps(row(0), row(1)),
            );
            let (c, d) = (
                _mm256_unpacklo_ps(row(2), row(3)),
                _mm256_unpackhi_ps(row(2), row(3)),
            );
            u[0][g] = _mm256_shuffle_ps::<0x44>(a, c);
            u[1][g] = _mm256_shuffle_ps::<0xee>(a, c);
            u[2][g] = _mm256_shuffle_ps::<0x44>(b, d);
            u[3][g] = _mm256_shuffle_ps::<0xee>(b, d);
        }
        for c in 0..4 {
            *x.add(c) = _mm256_permute2f128_ps::<0x20>(u[c][0], u[c][1]);
            *x.add(4 + c) = _mm256_permute2f128_ps::<0x31>(u[c][0], u[c][1]);
        }
    },
    unsafe fn abs(self) -> Self {
        _mm256_andnot_ps(_mm256_set1_ps(-0.0), self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, _mm256_setzero_ps());
        _mm256_add_ps(self, _mm256_and_ps(some, _mm256_set1_ps(1.0)))
    },
    unsafe fn store_some(self, p: *mut f32, mask: u32, first: u32) {
        if mask == 0xff {
            return self.store(p);
        }
        let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(ORDERS[mask as usize & 0xff] as i64));
        store_low(_mm256_permutevar8x32_ps(self, order), p, first);
    },
    unsafe fn copy_second(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
        if (lo, hi) == (0, 8) {
            // The last element that is wanted bounds what may be read.
            let low = _mm256_loadu_ps(p);
            let high = _mm256_loadu_ps(p.wrapping_add(7));
            let all = _mm256_blend_ps::<0b1010_1010>(low, high);
            let even = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
            return _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(all, even));
        }
        _mm256_storeu_ps(to, _mm256_setzero_ps());
        for i in lo..hi {
            *to.add(i) = *p.wrapping_add(2 * i);
        }
    },
    unsafe fn store_second(self, p: *mut f32, n: usize) {
        if n < 8 {
            let mut all = [0f32; 8];
            _mm256_storeu_ps(all.as_mut_ptr(), self);
            for (i, &x) in all[..n].iter().enumerate() {
                *p.add(2 * i) = x;
            }
            return;
        }
        // Elements 0 to 7, and 7 to 14: nothing behind the last one. A load after a store to part
        // of it would wait for that.
        let between = [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(7))];
        let low = _mm256_permutevar8x32_ps(self, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
        let high = _mm256_permutevar8x32_ps(self, _mm256_setr_epi32(4, 4, 4, 5, 5, 6, 6, 7));
        _mm256_storeu_ps(p, _mm256_blend_ps::<0b0101_0101>(between[0], low));
        let high = _mm256_blend_ps::<0b1010_1010>(between[1], high);
        _mm256_storeu_ps(p.add(7), high);
    },
    unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut f32) {
        let mut i = 0;
        while i < M {
            // Four at a time: halves, then quarters of pairs, until each lane is one sum.
            let v: [__m128; 4] = [half(x, i), half(x, i + 1), half(x, i + 2), half(x, i + 3)];
            let two = _mm_add_ps(_mm_movelh_ps(v[0], v[1]), _mm_movehl_ps(v[1], v[0]));
            let more = _mm_add_ps(_mm_movelh_ps(v[2], v[3]), _mm_movehl_ps(v[3], v[2]));
            let sum = _mm_add_ps(
                _mm_shuffle_ps::<0x88>(two, more),
                _mm_shuffle_ps::<0xdd>(two, more),
            );
            if i + 4 <= M {
                _mm_storeu_ps(p.add(i), _mm_add_ps(_mm_loadu_ps(p.add(i)), sum));
            } else {
                let mut all = [0f32; 4];
                _mm_storeu_ps(all.as_mut_ptr(), sum);
                for (j, &x) in all[..M - i].iter().enumerate() {
                    *p.add(i + j) += x;
                }
            }
            i += 4;
        }
    }
);

registers!(
    __m256d,
    f64,
    4,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    [
        add = _mm256_add_pd,
        sub = _mm256_sub_pd,
        mul = _mm256_mul_pd,
        max = _mm256_max_pd
    ],
    unsafe fn load_first(p: *const f64, n: usize) -> Self {
        _mm256_maskload_pd(p, mask256(2 * n))
    },
    unsafe fn store_first(self, p: *mut f64, n: usize) {
        _mm256_maskstore_pd(p, mask256(2 * n), self)
    },
    unsafe fn transpose(x: *mut Self) {
        let mut u = [[_mm256_setzero_pd(); 2]; 2];
        for g in 0..2 {
            let (a, b) = (*x.add(2 * g), *x.add(2 * g + 1));
            u[0][g] = _mm256_unpacklo_pd(a, b);
            u[1][g] = _mm256_unpackhi_pd(a, b);
        }
        for c in 0..2 {
            *x.add(c) = _mm256_permute2f128_pd::<0x20>(u[c][0], u[c][1]);
            *x.add(2 + c) = _mm256_permute2f128_pd::<0x31>(u[c][0], u[c][1]);
        }
    },
    unsafe fn abs(self) -> Self {
        _mm256_andnot_pd(_mm256_set1_pd(-0.0), self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, _mm256_setzero_pd());
        _mm256_add_pd(self, _mm256_and_pd(some, _mm256_set1_pd(1.0)))
    },
    unsafe fn store_some(self, p: *mut f64, mask: u32, first: u32) {
        if mask == 0xf {
            return self.store(p);
        }
        // Each number is a pair of lanes.
        let pairs = |m: u32| {
            [0, 0x3, 0xc, 0xf][m as usize & 3] | [0, 0x30, 0xc0, 0xf0][m as usize >> 2 & 3]
        };
        let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(ORDERS[pairs(mask)] as i64));
        let x = _mm256_permutevar8x32_ps(_mm256_castpd_ps(self), order);
        store_low(x, p.cast(), pairs(first) as u32);
    }
);

/// What SSE2 has for a product and a sum: two roundings.
#[inline(always)]
unsafe fn mul_add_ps(a: __m128, b: __m128, c: __m128) -> __m128 {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_add_ps(_mm_mul_ps(a, b), c) }
}

#[inline(always)]
unsafe fn mul_add_pd(a: __m128d, b: __m128d, c: __m128d) -> __m128d {
    // SAFETY: every x86-64 has SSE2.
    unsafe { _mm_add_pd(_mm_mul_pd(a, b), c) }
}

registers!(
    __m128,
    f32,
    4,
    _mm_set1_ps,
    _mm_loadu_ps,
    _mm_storeu_ps,
    mul_add_ps,
    [
        add = _mm_add_ps,
        sub = _mm_sub_ps,
        mul = _mm_mul_ps,
        max = _mm_max_ps
    ],
    unsafe fn load_first(p: *const f32, n: usize) -> Self {
        let mut all = [0f32; 4];
        for (i, x) in all[..n].iter_mut().enumerate() {
            *x = *p.add(i);
        }
        _mm_loadu_ps(all.as_ptr())
    },
    unsafe fn store_first(self, p: *mut f32, n: usize) {
        let mut all = [0f32; 4];
        _mm_storeu_ps(all.as_mut_ptr(), self);
        for (i, &x) in all[..n].iter().enumerate() {
            *p.add(i) = x;
        }
    },
    unsafe fn transpose(x: *mut Self) {
        let (a, b) = (*x, *x.add(1));
        let (c, d) = (*x.add(2), *x.add(3));
        let (low, high) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        let (low2, high2) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
        *x = _mm_movelh_ps(low, low2);
        *x.add(1) = _mm_movehl_ps(low2, low);
        *x.add(2) = _mm_movelh_ps(high, high2);
        *x.add(3) = _mm_movehl_ps(high2, high);
    },
    unsafe fn abs(self) -> Self {
        _mm_andnot_ps(_mm_set1_ps(-0.0), self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm_cmpneq_ps(x, _mm_setzero_ps());
        _mm_add_ps(self, _mm_and_ps(some, _mm_set1_ps(1.0)))
    }
);

registers!(
    __m128d,
    f64,
    2,
    _mm_set1_pd,
    _mm_loadu_pd,
    _mm_storeu_pd,
    mul_add_pd,
    [
        add = _mm_add_pd,
        sub = _mm_sub_pd,
        mul = _mm_mul_pd,
        max = _mm_max_pd
    ],
    unsafe fn load_first(p: *const f64, n: usize) -> Self {
        match n {
            0 => _mm_setzero_pd(),
            1 => _mm_load_sd(p),
            _ => _mm_loadu_pd(p),
        }
    },
    unsafe fn store_first(self, p: *mut f64, n: usize) {
        match n {
            0 => {}
            1 => _mm_store_sd(p, self),
            _ => _mm_storeu_pd(p, self),
        }
    },
    unsafe fn transpose(x: *mut Self) {
        let (a, b) = (*x, *x.add(1));
        *x = _mm_unpacklo_pd(a, b);
        *x.add(1) = _mm_unpackhi_pd(a, b);
    },
    unsafe fn abs(self) -> Self {
        _mm_andnot_pd(_mm_set1_pd(-0.0), self)
    },
    unsafe fn count(self, x: Self) -> Self {
        let some = _mm_cmpneq_pd(x, _mm_setzero_pd());
        _mm_add_pd(self, _mm_and_pd(some, _mm_set1_pd(1.0)))
    }
);

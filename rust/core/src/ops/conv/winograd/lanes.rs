//! Vectors of float32 that can be turned: as many vectors as each has lanes are a square.

use crate::ops::conv::lanes::{Lanes, Plain};

pub trait Wide: Lanes<T = f32> {
    /// As many vectors as a vector has lanes.
    type Block: Copy + AsRef<[Self]> + AsMut<[Self]>;
    fn block(v: Self) -> Self::Block;
    /// Lane `i` of vector `j` changes places with lane `j` of vector `i`.
    fn turn(x: Self::Block) -> Self::Block;
    fn minus(self, o: Self) -> Self;
    fn times(self, o: Self) -> Self;
    fn abs(self) -> Self;
    fn max(self, o: Self) -> Self;
    /// One more in each lane where `x` is not zero.
    fn count(self, x: Self) -> Self;
    /// Asks for the cache line of any address.
    #[inline(always)]
    fn fetch(_p: *const f32) {}
    /// # Safety
    /// `n` elements may be read; the other lanes are zero.
    unsafe fn load_first(p: *const f32, n: usize) -> Self;
    /// # Safety
    /// `n` elements may be written.
    unsafe fn store_first(self, p: *mut f32, n: usize);
}

impl<const N: usize> Wide for Plain<f32, N>
where
    [Self; N]: AsRef<[Self]> + AsMut<[Self]>,
{
    type Block = [Self; N];
    #[inline(always)]
    fn block(v: Self) -> Self::Block {
        [v; N]
    }
    #[inline(always)]
    fn turn(x: Self::Block) -> Self::Block {
        std::array::from_fn(|j| Plain(std::array::from_fn(|i| x[i].0[j])))
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] - o.0[i]))
    }
    #[inline(always)]
    fn times(self, o: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * o.0[i]))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Plain(self.0.map(f32::abs))
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        let larger = |i| {
            if self.0[i] > o.0[i] {
                self.0[i]
            } else {
                o.0[i]
            }
        };
        Plain(std::array::from_fn(larger))
    }
    #[inline(always)]
    fn count(self, x: Self) -> Self {
        let one = |i| self.0[i] + f32::from(u8::from(x.0[i] != 0.0));
        Plain(std::array::from_fn(one))
    }
    // SAFETY: as the trait says.
    #[inline(always)]
    unsafe fn load_first(p: *const f32, n: usize) -> Self {
        if n >= N {
            return Self::load(p);
        }
        Plain(std::array::from_fn(|i| if i < n { *p.add(i) } else { 0.0 }))
    }
    // SAFETY: as the trait says.
    #[inline(always)]
    unsafe fn store_first(self, p: *mut f32, n: usize) {
        if n >= N {
            return self.store(p);
        }
        for i in 0..n {
            *p.add(i) = self.0[i];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Wide;
    use crate::ops::conv::lanes::x86::{F32x16, F32x8};
    use crate::ops::conv::lanes::Lanes;
    use std::arch::x86_64::*;

    macro_rules! two {
        ($name:ident, $v:ident, $f:ident) => {
            #[inline(always)]
            fn $name(self, o: Self) -> Self {
                // SAFETY: the kernels that use this type run where the level allows.
                $v(unsafe { $f(self.0, o.0) })
            }
        };
    }

    impl Wide for F32x16 {
        type Block = [Self; 16];
        #[inline(always)]
        fn fetch(p: *const f32) {
            // SAFETY: any address may be asked for.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
        }
        two!(minus, F32x16, _mm512_sub_ps);
        two!(times, F32x16, _mm512_mul_ps);
        two!(max, F32x16, _mm512_max_ps);
        #[inline(always)]
        fn block(v: Self) -> Self::Block {
            [v; 16]
        }
        #[inline(always)]
        fn turn(x: Self::Block) -> Self::Block {
            // SAFETY: the kernels that use this type run where the level allows.
            unsafe {
                let mut a = [_mm512_setzero_ps(); 16];
                let mut b = a;
                for i in 0..8 {
                    a[2 * i] = _mm512_unpacklo_ps(x[2 * i].0, x[2 * i + 1].0);
                    a[2 * i + 1] = _mm512_unpackhi_ps(x[2 * i].0, x[2 * i + 1].0);
                }
                let pair = |x, y| (_mm512_castps_pd(x), _mm512_castps_pd(y));
                for i in 0..4 {
                    for j in 0..2 {
                        let (x, y) = pair(a[4 * i + j], a[4 * i + j + 2]);
                        b[4 * i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                        b[4 * i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
                    }
                }
                // Each quarter of `b[4 i + j]` holds column `4 quarter + j` of rows `4 i` on.
                for i in 0..2 {
                    for j in 0..4 {
                        let (x, y) = (b[8 * i + j], b[8 * i + j + 4]);
                        a[8 * i + j] = _mm512_shuffle_f32x4::<0b10_00_10_00>(x, y);
                        a[8 * i + j + 4] = _mm512_shuffle_f32x4::<0b11_01_11_01>(x, y);
                    }
                }
                let mut y = x;
                for j in 0..4 {
                    let (e, o) = ((a[j], a[8 + j]), (a[j + 4], a[12 + j]));
                    y[j] = F32x16(_mm512_shuffle_f32x4::<0b10_00_10_00>(e.0, e.1));
                    y[8 + j] = F32x16(_mm512_shuffle_f32x4::<0b11_01_11_01>(e.0, e.1));
                    y[4 + j] = F32x16(_mm512_shuffle_f32x4::<0b10_00_10_00>(o.0, o.1));
                    y[12 + j] = F32x16(_mm512_shuffle_f32x4::<0b11_01_11_01>(o.0, o.1));
                }
                y
            }
        }
        #[inline(always)]
        fn abs(self) -> Self {
            // SAFETY: the kernels that use this type run where the level allows.
            F32x16(unsafe { _mm512_abs_ps(self.0) })
        }
        #[inline(always)]
        fn count(self, x: Self) -> Self {
            // SAFETY: the kernels that use this type run where the level allows.
            F32x16(unsafe {
                let some = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x.0, _mm512_setzero_ps());
                _mm512_mask_add_ps(self.0, some, self.0, _mm512_set1_ps(1.0))
            })
        }
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn load_first(p: *const f32, n: usize) -> Self {
            let mask = ((1u32 << n.min(16)) - 1) as __mmask16;
            F32x16(_mm512_maskz_loadu_ps(mask, p))
        }
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize) {
            let mask = ((1u32 << n.min(16)) - 1) as __mmask16;
            _mm512_mask_storeu_ps(p, mask, self.0);
        }
    }

    /// A mask of the first `n` lanes.
    // SAFETY: the machine has the instructions.
    #[inline(always)]
    unsafe fn first(n: usize) -> __m256i {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), lanes)
    }

    impl Wide for F32x8 {
        type Block = [Self; 8];
        #[inline(always)]
        fn fetch(p: *const f32) {
            // SAFETY: any address may be asked for.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
        }
        two!(minus, F32x8, _mm256_sub_ps);
        two!(times, F32x8, _mm256_mul_ps);
        two!(max, F32x8, _mm256_max_ps);
        #[inline(always)]
        fn block(v: Self) -> Self::Block {
            [v; 8]
        }
        #[inline(always)]
        fn turn(x: Self::Block) -> Self::Block {
            // SAFETY: the kernels that use this type run where the level allows.
            unsafe {
                let mut a = [_mm256_setzero_ps(); 8];
                let mut b = a;
                for i in 0..4 {
                    a[2 * i] = _mm256_unpacklo_ps(x[2 * i].0, x[2 * i + 1].0);
                    a[2 * i + 1] = _mm256_unpackhi_ps(x[2 * i].0, x[2 * i + 1].0);
                }
                for i in 0..2 {
                    for j in 0..2 {
                        let x = _mm256_castps_pd(a[4 * i + j]);
                        let y = _mm256_castps_pd(a[4 * i + j + 2]);
                        b[4 * i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, y));
                        b[4 * i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, y));
                    }
                }
                let mut y = x;
                for j in 0..4 {
                    y[j] = F32x8(_mm256_permute2f128_ps::<0x20>(b[j], b[j + 4]));
                    y[j + 4] = F32x8(_mm256_permute2f128_ps::<0x31>(b[j], b[j + 4]));
                }
                y
            }
        }
        #[inline(always)]
        fn abs(self) -> Self {
            // SAFETY: the kernels that use this type run where the level allows.
            F32x8(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
        }
        #[inline(always)]
        fn count(self, x: Self) -> Self {
            // SAFETY: the kernels that use this type run where the level allows.
            F32x8(unsafe {
                let some = _mm256_cmp_ps::<_CMP_NEQ_UQ>(x.0, _mm256_setzero_ps());
                _mm256_add_ps(self.0, _mm256_and_ps(some, _mm256_set1_ps(1.0)))
            })
        }
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn load_first(p: *const f32, n: usize) -> Self {
            if n >= 8 {
                return Self::load(p);
            }
            F32x8(_mm256_maskload_ps(p, first(n)))
        }
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize) {
            if n >= 8 {
                return self.store(p);
            }
            _mm256_maskstore_ps(p, first(n), self.0);
        }
    }
}

//! Vector registers behind one trait: arrays, which the compiler turns into whatever the machine
//! surely has, and the registers of AVX2 and AVX-512.

/// What lanes hold, with the arithmetic of portable vectors: wrapping for integers.
pub trait Lane: Copy + Default + PartialOrd {
    const UNIT: Self;
    fn plus(self, o: Self) -> Self;
    fn minus(self, o: Self) -> Self;
    fn times(self, o: Self) -> Self;
    fn magnitude(self) -> Self;
    /// self * b + c, rounded once where that costs no more.
    fn fused(self, b: Self, c: Self) -> Self;
}

macro_rules! floats {
    ($($t:ident)*) => { $(
        impl Lane for $t {
            const UNIT: Self = 1.0;
            #[inline(always)]
            fn plus(self, o: Self) -> Self {
                self + o
            }
            #[inline(always)]
            fn minus(self, o: Self) -> Self {
                self - o
            }
            #[inline(always)]
            fn times(self, o: Self) -> Self {
                self * o
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                if cfg!(target_arch = "aarch64") {
                    self.mul_add(b, c)
                } else {
                    self * b + c
                }
            }
        }
    )* };
}
floats!(f32 f64);

impl Lane for i64 {
    const UNIT: Self = 1;
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self.wrapping_add(o)
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        self.wrapping_sub(o)
    }
    #[inline(always)]
    fn times(self, o: Self) -> Self {
        self.wrapping_mul(o)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.wrapping_abs()
    }
    #[inline(always)]
    fn fused(self, b: Self, c: Self) -> Self {
        self.wrapping_mul(b).wrapping_add(c)
    }
}

/// The most lanes of a vector.
pub const MOST: usize = 16;

/// A vector register.
///
/// All methods ask for the instruction set that the type stands for; addresses are those of as many
/// elements as are loaded or stored.
pub trait Simd: Copy {
    type Elem: Lane;
    const LANES: usize;
    // SAFETY: as for [`Simd`], also below.
    unsafe fn splat(x: Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn abs(self) -> Self;
    /// self * b + c.
    // SAFETY: as for [`Simd`], also below.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// The larger of each pair, `o` where one is NaN.
    // SAFETY: as for [`Simd`], also below.
    unsafe fn max(self, o: Self) -> Self;
    /// One more in each lane where `x` is not zero.
    // SAFETY: as for [`Simd`].
    unsafe fn count(self, x: Self) -> Self;
    /// Loads the first `n` lanes, of at most all; the others are zero.
    // SAFETY: as for [`Simd`].
    unsafe fn load_first(p: *const Self::Elem, n: usize) -> Self;
    /// Stores the first `n` lanes, of at most all.
    // SAFETY: as for [`Simd`].
    unsafe fn store_first(self, p: *mut Self::Elem, n: usize);
    /// Exchanges the rows and columns of `LANES` vectors.
    // SAFETY: as for [`Simd`].
    unsafe fn transpose(x: *mut Self);

    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn largest(self) -> Self::Elem {
        let x = lanes(self);
        let larger = |a, &b| if b > a { b } else { a };
        x[..Self::LANES].iter().fold(x[0], larger)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn sum(self) -> Self::Elem {
        let x = lanes(self);
        let zero = Self::Elem::default();
        x[..Self::LANES].iter().fold(zero, |a, &b| a.plus(b))
    }
    /// Adds the sum of each vector's lanes to the numbers at `p`.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut Self::Elem) {
        for (i, &x) in x.iter().enumerate() {
            let mut all = lanes(x);
            let mut n = Self::LANES;
            while n > 1 {
                n /= 2;
                for j in 0..n {
                    all[j] = all[j].plus(all[j + n]);
                }
            }
            *p.add(i) = (*p.add(i)).plus(all[0]);
        }
    }
    /// Writes the lanes that `mask` names one after another; `first` has as many low ones.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_some(self, p: *mut Self::Elem, mask: u32, _first: u32) {
        let mut to = p;
        for (i, &x) in lanes(self)[..Self::LANES].iter().enumerate() {
            if mask >> i & 1 != 0 {
                *to = x;
                to = to.add(1);
            }
        }
    }
    /// Writes the first `n` lanes to every second element.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_second(self, p: *mut Self::Elem, n: usize) {
        for (i, &x) in lanes(self)[..n].iter().enumerate() {
            *p.add(2 * i) = x;
        }
    }
    /// Writes a vector of zeros but for lanes `lo` to `hi`, which come from `p + lo`.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn copy_part(p: *const Self::Elem, lo: usize, hi: usize, to: *mut Self::Elem) {
        if (lo, hi) == (0, Self::LANES) {
            return Self::load(p).store(to);
        }
        Self::splat(Self::Elem::default()).store(to);
        for i in lo..hi {
            *to.add(i) = *p.add(i);
        }
    }
    /// As [`Simd::copy_part`] of every second element; lane `lo` comes from `p + 2 * lo`.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn copy_second(p: *const Self::Elem, lo: usize, hi: usize, to: *mut Self::Elem) {
        Self::splat(Self::Elem::default()).store(to);
        for i in lo..hi {
            *to.add(i) = *p.wrapping_add(2 * i);
        }
    }
}

/// The lanes, and zeros behind them.
// SAFETY: as for [`Simd`].
#[inline(always)]
unsafe fn lanes<V: Simd>(v: V) -> [V::Elem; MOST] {
    let mut all = [V::Elem::default(); MOST];
    v.store(all.as_mut_ptr());
    all
}

/// Asks for the cache line of any address.
#[inline(always)]
pub fn fetch<T>(_p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be asked for.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_p.cast())
    };
}

impl<T: Lane, const N: usize> Simd for [T; N] {
    type Elem = T;
    const LANES: usize = N;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        [x; N]
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        p.cast::<Self>().read_unaligned()
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        p.cast::<Self>().write_unaligned(self);
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].plus(o[i]))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].minus(o[i]))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].times(o[i]))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        self.map(T::magnitude)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        std::array::from_fn(|i| self[i].fused(b[i], c[i]))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        std::array::from_fn(|i| if self[i] > o[i] { self[i] } else { o[i] })
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn count(self, x: Self) -> Self {
        let one = |i: usize| {
            if x[i] != T::default() {
                T::UNIT
            } else {
                T::default()
            }
        };
        std::array::from_fn(|i| self[i].plus(one(i)))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_first(p: *const T, n: usize) -> Self {
        std::array::from_fn(|i| if i < n { *p.add(i) } else { T::default() })
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_first(self, p: *mut T, n: usize) {
        for i in 0..n {
            *p.add(i) = self[i];
        }
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn transpose(x: *mut Self) {
        for i in 0..N {
            for j in 0..i {
                let (a, b) = ((*x.add(i))[j], (*x.add(j))[i]);
                ((*x.add(i))[j], (*x.add(j))[i]) = (b, a);
            }
        }
    }
}

/// The vectors of a type for each instruction set.
pub trait Vectors: Lane {
    type Portable: Simd<Elem = Self>;
    type Avx2: Simd<Elem = Self>;
    type Avx512: Simd<Elem = Self>;
}
impl Vectors for f32 {
    type Portable = [f32; 4];
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx2 = [f32; 4];
    #[cfg(not(target_arch = "x86_64"))]
    type Avx512 = [f32; 4];
}
impl Vectors for f64 {
    type Portable = [f64; 2];
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256d;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512d;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx2 = [f64; 2];
    #[cfg(not(target_arch = "x86_64"))]
    type Avx512 = [f64; 2];
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Simd;
    use std::arch::x86_64::*;

    macro_rules! registers {
        ($v:ident, $t:ident, $n:literal, $splat:ident, $load:ident, $store:ident, $fma:ident,
         [$($two:ident = $of_two:ident),*] $(, $own:item)*) => {
            impl Simd for $v {
                type Elem = $t;
                const LANES: usize = $n;
                // SAFETY: as for [`Simd`].
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    $splat(x)
                }
                // SAFETY: as for [`Simd`].
                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    $load(p)
                }
                // SAFETY: as for [`Simd`].
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    $store(p, self)
                }
                // SAFETY: as for [`Simd`].
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    $fma(self, b, c)
                }
                $(
                    // SAFETY: as for [`Simd`].
                    #[inline(always)]
                    unsafe fn $two(self, o: Self) -> Self {
                        $of_two(self, o)
                    }
                )*
                $($own)*
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

    // SAFETY: as for [`Simd`]; `ints` is at most 8.
    #[inline(always)]
    unsafe fn mask256(ints: usize) -> __m256i {
        _mm256_loadu_si256(ONES.as_ptr().add(8 - ints).cast())
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn load_first(p: *const f32, n: usize) -> Self {
            _mm512_maskz_loadu_ps(mask(n), p)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize) {
            _mm512_mask_storeu_ps(p, mask(n), self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            _mm512_abs_ps(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn count(self, x: Self) -> Self {
            let some = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_ps());
            _mm512_mask_add_ps(self, some, self, _mm512_set1_ps(1.0))
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            _mm512_reduce_max_ps(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            _mm512_reduce_add_ps(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_some(self, p: *mut f32, mask: u32, first: u32) {
            if mask == 0xffff {
                return self.store(p);
            }
            let together = _mm512_maskz_compress_ps(mask as __mmask16, self);
            _mm512_mask_storeu_ps(p, first as __mmask16, together);
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn copy_part(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
            let mask = (0xffffu32 >> (16 - hi)) & (0xffff << lo);
            _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(mask as __mmask16, p));
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn copy_second(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
            // The last source element that is wanted bounds what may be read.
            let mask = ((1u64 << (2 * hi - 1)) - 1) & (!0 << (2 * lo));
            let mask = if lo < hi { mask } else { 0 };
            let low = _mm512_maskz_loadu_ps(mask as __mmask16, p);
            let high = _mm512_maskz_loadu_ps((mask >> 16) as __mmask16, p.wrapping_add(16));
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let all = _mm512_permutex2var_ps(low, even, high);
            let keep = (0xffffu32 >> (16 - hi)) & (0xffff << lo);
            _mm512_storeu_ps(to, _mm512_maskz_mov_ps(keep as __mmask16, all));
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_second(self, p: *mut f32, n: usize) {
            let mask = 0x5555_5555 & ((1u64 << (2 * n)) - 1);
            let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            let two = |at| _mm512_permutexvar_ps(at, self);
            _mm512_mask_storeu_ps(p, mask as __mmask16, two(low));
            _mm512_mask_storeu_ps(p.wrapping_add(16), (mask >> 16) as __mmask16, two(high));
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn load_first(p: *const f64, n: usize) -> Self {
            _mm512_maskz_loadu_pd(mask(n) as u8, p)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f64, n: usize) {
            _mm512_mask_storeu_pd(p, mask(n) as u8, self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            _mm512_abs_pd(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn count(self, x: Self) -> Self {
            let some = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, _mm512_setzero_pd());
            _mm512_mask_add_pd(self, some, self, _mm512_set1_pd(1.0))
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn largest(self) -> f64 {
            _mm512_reduce_max_pd(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn sum(self) -> f64 {
            _mm512_reduce_add_pd(self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_some(self, p: *mut f64, mask: u32, first: u32) {
            if mask == 0xff {
                return self.store(p);
            }
            let together = _mm512_maskz_compress_pd(mask as __mmask8, self);
            _mm512_mask_storeu_pd(p, first as __mmask8, together);
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn load_first(p: *const f32, n: usize) -> Self {
            _mm256_maskload_ps(p, mask256(n))
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, n: usize) {
            _mm256_maskstore_ps(p, mask256(n), self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            _mm256_andnot_ps(_mm256_set1_ps(-0.0), self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn count(self, x: Self) -> Self {
            let some = _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, _mm256_setzero_ps());
            _mm256_add_ps(self, _mm256_and_ps(some, _mm256_set1_ps(1.0)))
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn load_first(p: *const f64, n: usize) -> Self {
            _mm256_maskload_pd(p, mask256(2 * n))
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn store_first(self, p: *mut f64, n: usize) {
            _mm256_maskstore_pd(p, mask256(2 * n), self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
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
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn abs(self) -> Self {
            _mm256_andnot_pd(_mm256_set1_pd(-0.0), self)
        },
        // SAFETY: as for [`Simd`].
        #[inline(always)]
        unsafe fn count(self, x: Self) -> Self {
            let some = _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, _mm256_setzero_pd());
            _mm256_add_pd(self, _mm256_and_pd(some, _mm256_set1_pd(1.0)))
        }
    );
}

//! Products of small matrices that stay in cache, in vector registers.

use crate::cpu::elements::Compute;
use crate::ops::pointwise::Real;

/// Columns of `b` and `c` are padded to a multiple of this, whatever the vectors' width.
pub const PAD: usize = 16;

/// A vector register.
pub trait Vector: Copy {
    type Elem: Real + Compute;
    const LANES: usize;
    /// Vectors that a tile is wide, at most four.
    const WIDTH: usize;
    // SAFETY: for all: the machine has the instructions, memory holds `LANES` elements.
    unsafe fn splat(x: *const Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    /// self * b + c.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// The larger of each pair, `o` where this is NaN.
    unsafe fn max(self, o: Self) -> Self;
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn largest(self) -> Self::Elem {
        let mut x = [Self::Elem::default(); PAD];
        self.store(x.as_mut_ptr());
        x[..Self::LANES]
            .iter()
            .fold(x[0], |a, &b| if b > a { b } else { a })
    }
    // SAFETY: as the trait asks.
    unsafe fn sum(self) -> Self::Elem {
        let mut x = [Self::Elem::default(); PAD];
        self.store(x.as_mut_ptr());
        x[..Self::LANES]
            .iter()
            .fold(Self::Elem::default(), |a, &b| a + b)
    }
    /// Writes the transposed of `rows` x `cols` elements of `x`.
    ///
    /// # Safety
    /// `x` has rows of `ldx` elements, `y` rows of `ldy`.
    unsafe fn transpose(
        rows: usize,
        cols: usize,
        x: *const Self::Elem,
        ldx: usize,
        y: *mut Self::Elem,
        ldy: usize,
    ) {
        turn(0..rows, 0..cols, x, ldx, y, ldy);
    }
}

// SAFETY: as for `Vector::transpose`.
#[inline(always)]
unsafe fn turn<T: Copy>(
    rows: std::ops::Range<usize>,
    cols: std::ops::Range<usize>,
    x: *const T,
    ldx: usize,
    y: *mut T,
    ldy: usize,
) {
    for j in cols {
        for i in rows.clone() {
            *y.add(j * ldy + i) = *x.add(i * ldx + j);
        }
    }
}

/// Any machine's vector.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>([T; N]);

impl<T: Real + Compute, const N: usize> Vector for Plain<T, N> {
    type Elem = T;
    const LANES: usize = N;
    const WIDTH: usize = 2;
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn splat(x: *const T) -> Self {
        Plain([*x; N])
    }
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        Plain(p.cast::<[T; N]>().read_unaligned())
    }
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        p.cast::<[T; N]>().write_unaligned(self.0);
    }
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
    }
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        Plain(std::array::from_fn(|i| {
            if self.0[i] > o.0[i] {
                self.0[i]
            } else {
                o.0[i]
            }
        }))
    }
    // SAFETY: as the trait asks.
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + o.0[i]))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{turn, Vector};
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($v:ident, $t:ident, $lanes:literal, $width:literal, $splat:ident, $load:ident, $store:ident,
         $fma:ident, $max:ident, $add:ident $(, $more:item)*) => {
            impl Vector for $v {
                type Elem = $t;
                const LANES: usize = $lanes;
                const WIDTH: usize = $width;
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn splat(x: *const $t) -> Self {
                    $splat(*x)
                }
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    $load(p)
                }
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    $store(p, self)
                }
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    $fma(self, b, c)
                }
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn max(self, o: Self) -> Self {
                    $max(self, o)
                }
                // SAFETY: as the trait asks.
                #[inline(always)]
                unsafe fn add(self, o: Self) -> Self {
                    $add(self, o)
                }
                $($more)*
            }
        };
    }
    vector!(
        __m512,
        f32,
        16,
        4,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        _mm512_add_ps,
        // SAFETY: as the trait asks.
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            _mm512_reduce_max_ps(self)
        },
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            _mm512_reduce_add_ps(self)
        },
        #[inline(always)]
        unsafe fn transpose(
            rows: usize,
            cols: usize,
            x: *const f32,
            ldx: usize,
            y: *mut f32,
            ldy: usize,
        ) {
            let (r, c) = (rows / 16 * 16, cols / 16 * 16);
            for i in (0..r).step_by(16) {
                for j in (0..c).step_by(16) {
                    turn16(x.add(i * ldx + j), ldx, y.add(j * ldy + i), ldy);
                }
            }
            turn(r..rows, 0..c, x, ldx, y, ldy);
            turn(0..rows, c..cols, x, ldx, y, ldy);
        }
    );
    vector!(
        __m512d,
        f64,
        8,
        4,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_max_pd,
        _mm512_add_pd,
        // SAFETY: as the trait asks.
        #[inline(always)]
        unsafe fn largest(self) -> f64 {
            _mm512_reduce_max_pd(self)
        },
        #[inline(always)]
        unsafe fn sum(self) -> f64 {
            _mm512_reduce_add_pd(self)
        }
    );
    vector!(
        __m256,
        f32,
        8,
        2,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        _mm256_add_ps
    );
    vector!(
        __m256d,
        f64,
        4,
        2,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_max_pd,
        _mm256_add_pd
    );

    /// The transposed of 16 x 16 elements.
    // SAFETY: both blocks lie in memory; the machine has AVX-512.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    unsafe fn turn16(x: *const f32, ldx: usize, y: *mut f32, ldy: usize) {
        let mut r = [_mm512_setzero_ps(); 16];
        for i in 0..16 {
            r[i] = _mm512_loadu_ps(x.add(i * ldx));
        }
        // Pairs, fours, then halves of four and of eight change places.
        let mut t = r;
        for i in 0..8 {
            t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        for i in 0..4 {
            let lo = (_mm512_castps_pd(t[4 * i]), _mm512_castps_pd(t[4 * i + 2]));
            let hi = (
                _mm512_castps_pd(t[4 * i + 1]),
                _mm512_castps_pd(t[4 * i + 3]),
            );
            r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo.0, lo.1));
            r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo.0, lo.1));
            r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi.0, hi.1));
            r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi.0, hi.1));
        }
        for i in 0..4 {
            t[i] = _mm512_shuffle_f32x4::<0x88>(r[i], r[4 + i]);
            t[4 + i] = _mm512_shuffle_f32x4::<0xdd>(r[i], r[4 + i]);
            t[8 + i] = _mm512_shuffle_f32x4::<0x88>(r[8 + i], r[12 + i]);
            t[12 + i] = _mm512_shuffle_f32x4::<0xdd>(r[8 + i], r[12 + i]);
        }
        for i in 0..4 {
            let (even, odd) = ((t[i], t[8 + i]), (t[4 + i], t[12 + i]));
            let y = y.add(i * ldy);
            _mm512_storeu_ps(y, _mm512_shuffle_f32x4::<0x88>(even.0, even.1));
            _mm512_storeu_ps(y.add(4 * ldy), _mm512_shuffle_f32x4::<0x88>(odd.0, odd.1));
            _mm512_storeu_ps(y.add(8 * ldy), _mm512_shuffle_f32x4::<0xdd>(even.0, even.1));
            _mm512_storeu_ps(y.add(12 * ldy), _mm512_shuffle_f32x4::<0xdd>(odd.0, odd.1));
        }
    }
}

/// C = A B, or C += A B: `m` x `k` by `k` x `n`. Rows of B and C are contiguous and `n` is a
/// multiple of [`PAD`].
#[derive(Clone, Copy)]
pub struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    /// Steps of A to the next row and column.
    pub a_steps: (usize, usize),
    pub b: *const T,
    pub ldb: usize,
    pub c: *mut T,
    pub ldc: usize,
    pub add: bool,
}

impl<T: Real + Compute> Product<T> {
    /// # Safety
    /// The matrices lie in memory, C apart from the others; the machine has the instructions.
    #[inline(always)]
    pub unsafe fn run<V: Vector<Elem = T>>(&self) {
        let mut j = 0;
        while j < self.n {
            let width = ((self.n - j) / V::LANES).min(V::WIDTH);
            match width {
                1 => self.strip::<V, 1>(j),
                2 => self.strip::<V, 2>(j),
                3 => self.strip::<V, 3>(j),
                _ => self.strip::<V, 4>(j),
            }
            j += width * V::LANES;
        }
    }

    // SAFETY: as for `run`.
    #[inline(always)]
    unsafe fn strip<V: Vector<Elem = T>, const N: usize>(&self, j: usize) {
        let mut i = 0;
        while i + 6 <= self.m {
            self.tile::<V, 6, N>(i, j);
            i += 6;
        }
        match self.m - i {
            1 => self.tile::<V, 1, N>(i, j),
            2 => self.tile::<V, 2, N>(i, j),
            3 => self.tile::<V, 3, N>(i, j),
            4 => self.tile::<V, 4, N>(i, j),
            5 => self.tile::<V, 5, N>(i, j),
            _ => {}
        }
    }

    // SAFETY: as for `run`; the tile lies inside C.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    unsafe fn tile<V: Vector<Elem = T>, const M: usize, const N: usize>(&self, i: usize, j: usize) {
        let zero = T::default();
        let mut acc = [[V::splat(&zero); N]; M];
        let c = self.c.add(i * self.ldc + j);
        // Plain indices: iterators over registers do not always become registers.
        if self.add {
            for s in 0..M {
                for t in 0..N {
                    acc[s][t] = V::load(c.add(s * self.ldc + t * V::LANES));
                }
            }
        }
        let (rs, cs) = self.a_steps;
        let (mut a, mut b) = (self.a.add(i * rs), self.b.add(j));
        for _ in 0..self.k {
            let mut row = [V::splat(&zero); N];
            for t in 0..N {
                row[t] = V::load(b.add(t * V::LANES));
            }
            for s in 0..M {
                let x = V::splat(a.add(s * rs));
                for t in 0..N {
                    acc[s][t] = x.fma(row[t], acc[s][t]);
                }
            }
            a = a.add(cs);
            b = b.add(self.ldb);
        }
        for s in 0..M {
            for t in 0..N {
                acc[s][t].store(c.add(s * self.ldc + t * V::LANES));
            }
        }
    }
}

/// The vectors of a type at each level.
pub trait Tiled: Real + Compute {
    type Portable: Vector<Elem = Self>;
    type Avx2: Vector<Elem = Self>;
    type Avx512: Vector<Elem = Self>;
}

#[cfg(target_arch = "x86_64")]
impl Tiled for f32 {
    type Portable = Plain<f32, 4>;
    type Avx2 = std::arch::x86_64::__m256;
    type Avx512 = std::arch::x86_64::__m512;
}
#[cfg(target_arch = "x86_64")]
impl Tiled for f64 {
    type Portable = Plain<f64, 2>;
    type Avx2 = std::arch::x86_64::__m256d;
    type Avx512 = std::arch::x86_64::__m512d;
}
#[cfg(not(target_arch = "x86_64"))]
impl Tiled for f32 {
    type Portable = Plain<f32, 4>;
    type Avx2 = Plain<f32, 4>;
    type Avx512 = Plain<f32, 4>;
}
#[cfg(not(target_arch = "x86_64"))]
impl Tiled for f64 {
    type Portable = Plain<f64, 2>;
    type Avx2 = Plain<f64, 2>;
    type Avx512 = Plain<f64, 2>;
}

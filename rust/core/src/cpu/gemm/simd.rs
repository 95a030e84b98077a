//! Vectors of one register, as the kernels of matrix products need them.

use std::arch::x86_64::*;

/// A register of sums.
///
/// All methods ask for the instruction set that the type stands for; addresses are those of as
/// many elements as are loaded or stored.
pub(super) trait Simd: Copy {
    /// A lane: a sum, or a packed element of the same size.
    type Elem: Copy;
    const LANES: usize;
    // SAFETY: as for [`Simd`].
    unsafe fn splat(x: Self::Elem) -> Self;
    // SAFETY: as for [`Simd`].
    unsafe fn load(p: *const Self::Elem) -> Self;
    /// Loads the first `n` lanes; the others are zero.
    // SAFETY: as for [`Simd`].
    unsafe fn load_part(p: *const Self::Elem, n: usize) -> Self;
    // SAFETY: as for [`Simd`].
    unsafe fn store(self, p: *mut Self::Elem);
    /// Stores the first `n` lanes.
    // SAFETY: as for [`Simd`].
    unsafe fn store_part(self, p: *mut Self::Elem, n: usize);
    /// self * b + c.
    // SAFETY: as for [`Simd`].
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// What a kernel does with packed elements: `fma`, or a sum of two products for each lane.
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn step(self, b: Self, c: Self) -> Self {
        self.fma(b, c)
    }
    /// Exchanges the rows and columns of `LANES` vectors.
    // SAFETY: as for [`Simd`].
    unsafe fn transpose(x: *mut Self);
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

impl Simd for __m512 {
    type Elem = f32;
    const LANES: usize = 16;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        _mm512_set1_ps(x)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        _mm512_loadu_ps(p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        _mm512_maskz_loadu_ps(mask(n), p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        _mm512_storeu_ps(p, self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        _mm512_mask_storeu_ps(p, mask(n), self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        _mm512_fmadd_ps(self, b, c)
    }
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
    }
}

impl Simd for __m512d {
    type Elem = f64;
    const LANES: usize = 8;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        _mm512_set1_pd(x)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        _mm512_loadu_pd(p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_part(p: *const f64, n: usize) -> Self {
        _mm512_maskz_loadu_pd(mask(n) as u8, p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        _mm512_storeu_pd(p, self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f64, n: usize) {
        _mm512_mask_storeu_pd(p, mask(n) as u8, self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        _mm512_fmadd_pd(self, b, c)
    }
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
    }
}

/// Pairs of bfloat16 in each lane, summed in float32.
#[derive(Clone, Copy)]
pub(super) struct Pairs(__m512);

impl Simd for Pairs {
    type Elem = f32;
    const LANES: usize = 16;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Pairs(_mm512_set1_ps(x))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Pairs(_mm512_loadu_ps(p))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        Pairs(__m512::load_part(p, n))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        self.0.store(p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        self.0.store_part(p, n)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        Pairs(self.0.fma(b.0, c.0))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn step(self, b: Self, c: Self) -> Self {
        let pairs = |x: __m512| std::mem::transmute::<__m512, __m512bh>(x);
        Pairs(_mm512_dpbf16_ps(c.0, pairs(self.0), pairs(b.0)))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn transpose(x: *mut Self) {
        __m512::transpose(x.cast())
    }
}

/// Lanes that AVX2's masked loads and stores touch, counted from the end of the ones.
static ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

// SAFETY: as for [`Simd`].
#[inline(always)]
unsafe fn mask256(ints: usize) -> __m256i {
    _mm256_loadu_si256(ONES.as_ptr().add(8 - ints).cast())
}

impl Simd for __m256 {
    type Elem = f32;
    const LANES: usize = 8;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        _mm256_set1_ps(x)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        _mm256_loadu_ps(p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        _mm256_maskload_ps(p, mask256(n))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        _mm256_storeu_ps(p, self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        _mm256_maskstore_ps(p, mask256(n), self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        _mm256_fmadd_ps(self, b, c)
    }
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
    }
}

impl Simd for __m256d {
    type Elem = f64;
    const LANES: usize = 4;
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        _mm256_set1_pd(x)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        _mm256_loadu_pd(p)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn load_part(p: *const f64, n: usize) -> Self {
        _mm256_maskload_pd(p, mask256(2 * n))
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        _mm256_storeu_pd(p, self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f64, n: usize) {
        _mm256_maskstore_pd(p, mask256(2 * n), self)
    }
    // SAFETY: as for [`Simd`].
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        _mm256_fmadd_pd(self, b, c)
    }
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
    }
}

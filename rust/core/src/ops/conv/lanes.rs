//! The two inner loops of convolutions for each instruction set: a product of a packed panel with
//! rows read in place, and dot products of rows.

use super::Number;
use crate::per_isa;

/// A vector register of `N` numbers.
pub(super) trait Lanes: Copy {
    type T: Number;
    const N: usize;
    fn splat(x: Self::T) -> Self;
    /// # Safety
    /// `N` elements may be read.
    unsafe fn load(p: *const Self::T) -> Self;
    /// # Safety
    /// `N` elements may be written.
    unsafe fn store(self, p: *mut Self::T);
    fn plus(self, o: Self) -> Self;
    /// self + a * b.
    fn plus_product(self, a: Self, b: Self) -> Self;
    /// Writes the lanes that `mask` names one after another; `first` has as many low ones.
    ///
    /// # Safety
    /// As many elements as `mask` has ones may be written.
    #[inline(always)]
    unsafe fn store_some(self, p: *mut Self::T, mask: u32, _first: u32) {
        let mut all = [Self::T::default(); 64];
        self.store(all.as_mut_ptr());
        let mut to = p;
        for (i, &x) in all[..Self::N].iter().enumerate() {
            if mask >> i & 1 != 0 {
                *to = x;
                to = to.add(1);
            }
        }
    }
    /// Writes a vector of zeros but for lanes `lo` to `hi`, which come from `p + lo`.
    ///
    /// # Safety
    /// Those elements may be read, and `N` written.
    #[inline(always)]
    unsafe fn copy_part(p: *const Self::T, lo: usize, hi: usize, to: *mut Self::T) {
        if (lo, hi) == (0, Self::N) {
            return Self::load(p).store(to);
        }
        Self::splat(Self::T::default()).store(to);
        for i in lo..hi {
            *to.add(i) = *p.add(i);
        }
    }
    /// As [`Lanes::copy_part`] of every second element; lane `lo` comes from `p + 2 * lo`.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn copy_second(p: *const Self::T, lo: usize, hi: usize, to: *mut Self::T) {
        Self::splat(Self::T::default()).store(to);
        for i in lo..hi {
            *to.add(i) = *p.wrapping_add(2 * i);
        }
    }
    /// Writes the first `n` lanes to every second element.
    ///
    /// # Safety
    /// Those elements may be written.
    #[inline(always)]
    unsafe fn store_second(self, p: *mut Self::T, n: usize) {
        let mut all = [Self::T::default(); 64];
        self.store(all.as_mut_ptr());
        for (i, &x) in all[..n].iter().enumerate() {
            *p.add(2 * i) = x;
        }
    }
    /// Adds the sum of each vector's lanes to the numbers at `p`.
    ///
    /// # Safety
    /// As many elements as there are vectors may be read and written.
    #[inline(always)]
    unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut Self::T) {
        for (i, &x) in x.iter().enumerate() {
            let mut all = [Self::T::default(); 64];
            x.store(all.as_mut_ptr());
            let mut n = Self::N;
            while n > 1 {
                n /= 2;
                for j in 0..n {
                    all[j] = all[j].plus(all[j + n]);
                }
            }
            *p.add(i) = (*p.add(i)).plus(all[0]);
        }
    }
}

/// Lanes that the compiler turns into whatever vectors the machine surely has.
#[derive(Clone, Copy)]
pub(super) struct Plain<T, const N: usize>(pub(super) [T; N]);

impl<T: Number, const N: usize> Lanes for Plain<T, N> {
    type T = T;
    const N: usize = N;
    #[inline(always)]
    fn splat(x: T) -> Self {
        Plain([x; N])
    }
    // SAFETY: as the trait says.
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        Plain(p.cast::<[T; N]>().read_unaligned())
    }
    // SAFETY: as the trait says.
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        p.cast::<[T; N]>().write_unaligned(self.0);
    }
    #[inline(always)]
    fn plus(mut self, o: Self) -> Self {
        for i in 0..N {
            self.0[i] = self.0[i].plus(o.0[i]);
        }
        self
    }
    #[inline(always)]
    fn plus_product(mut self, a: Self, b: Self) -> Self {
        for i in 0..N {
            self.0[i] = self.0[i].plus_product(a.0[i], b.0[i]);
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    macro_rules! lanes {
        ($name:ident, $t:ty, $v:ty, $n:literal, $splat:ident, $load:ident, $store:ident,
         $add:ident, $fma:ident $(, $rest:item)*) => {
            #[derive(Clone, Copy)]
            pub struct $name(pub(in super::super) $v);
            // The wrappers are inlined into functions that have the instructions.
            impl Lanes for $name {
                type T = $t;
                const N: usize = $n;
                #[inline(always)]
                fn splat(x: $t) -> Self {
                    // SAFETY: the kernels that use this type run where the level allows.
                    $name(unsafe { $splat(x) })
                }
                // SAFETY: as the trait says.
                #[inline(always)]
                unsafe fn load(p: *const $t) -> Self {
                    $name($load(p))
                }
                // SAFETY: as the trait says.
                #[inline(always)]
                unsafe fn store(self, p: *mut $t) {
                    $store(p, self.0);
                }
                #[inline(always)]
                fn plus(self, o: Self) -> Self {
                    // SAFETY: the kernels that use this type run where the level allows.
                    $name(unsafe { $add(self.0, o.0) })
                }
                #[inline(always)]
                fn plus_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: the kernels that use this type run where the level allows.
                    $name(unsafe { $fma(a.0, b.0, self.0) })
                }
                $($rest)*
            }
        };
    }

    lanes!(
        F32x16,
        f32,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_fmadd_ps,
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn store_some(self, p: *mut f32, mask: u32, first: u32) {
            if mask == 0xffff {
                return self.store(p);
            }
            let together = _mm512_maskz_compress_ps(mask as __mmask16, self.0);
            _mm512_mask_storeu_ps(p, first as __mmask16, together);
        },
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn copy_part(p: *const f32, lo: usize, hi: usize, to: *mut f32) {
            let mask = (0xffffu32 >> (16 - hi)) & (0xffff << lo);
            _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(mask as __mmask16, p));
        },
        // SAFETY: as the trait says.
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
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn store_second(self, p: *mut f32, n: usize) {
            let mask = 0x5555_5555 & ((1u64 << (2 * n)) - 1);
            let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            let two = |at| _mm512_permutexvar_ps(at, self.0);
            _mm512_mask_storeu_ps(p, mask as __mmask16, two(low));
            _mm512_mask_storeu_ps(p.wrapping_add(16), (mask >> 16) as __mmask16, two(high));
        },
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut f32) {
            if M != 8 {
                for (i, x) in x.iter().enumerate() {
                    *p.add(i) += _mm512_reduce_add_ps(x.0);
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
            let v = |i: usize| x[i].0;
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
    lanes!(
        F64x8,
        f64,
        __m512d,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_add_pd,
        _mm512_fmadd_pd,
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn store_some(self, p: *mut f64, mask: u32, first: u32) {
            if mask == 0xff {
                return self.store(p);
            }
            let together = _mm512_maskz_compress_pd(mask as __mmask8, self.0);
            _mm512_mask_storeu_pd(p, first as __mmask8, together);
        },
        // SAFETY: as the trait says.
        #[inline(always)]
        unsafe fn copy_part(p: *const f64, lo: usize, hi: usize, to: *mut f64) {
            let mask = (0xffu32 >> (8 - hi)) & (0xff << lo);
            _mm512_storeu_pd(to, _mm512_maskz_loadu_pd(mask as __mmask8, p));
        }
    );
    lanes!(
        F32x8,
        f32,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_fmadd_ps
    );
    lanes!(
        F64x4,
        f64,
        __m256d,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_add_pd,
        _mm256_fmadd_pd
    );
}

/// Which lanes of a vector of results are wanted, and where they go, one after another.
#[derive(Clone, Copy)]
pub struct Cell {
    pub mask: u32,
    /// The first lanes, as many as are wanted.
    pub first: u32,
    pub at: u32,
}

/// Products that are added one after another: at least, where one per channel leaves few, and at
/// most. The longest chain of additions sets the rounding error. The sums of so many chains are
/// added in order, and then those sums.
pub(super) const CHAIN: (usize, usize) = (24, 40);
const CHAINS: usize = 8;

/// The length of the chains that divide evenly the products of `taps` kernel elements each.
pub(super) fn chain(depth: usize, taps: usize) -> usize {
    let most = match taps {
        1 => (depth / CHAINS).clamp(CHAIN.0, CHAIN.1),
        _ => CHAIN.1,
    };
    depth.div_ceil(depth.div_ceil(most).max(1))
}

/// `y[r][j] = bias[r] + sum over k of a[k][r] * b[offsets[k] + j]`.
pub struct Product<T> {
    /// How many times the columns that the kernel makes at once; one where `cells` is null.
    pub tiles: usize,
    pub depth: usize,
    /// As [`chain`] says of the depth.
    pub chain: usize,
    /// Room for twice what the kernel makes at once.
    pub sums: *mut T,
    /// A panel: as many numbers for each `k` as the kernel has rows.
    pub a: *const T,
    pub b: *const T,
    pub offsets: *const usize,
    /// Null for zeros.
    pub bias: *const T,
    pub y: *mut T,
    /// From one row of `y` to the next.
    pub pitch: usize,
    /// One for each vector of a row; null where all lanes are wanted.
    pub cells: *const Cell,
}

/// `sums[n][r] += sum over runs and j of a[r][j] * b[offsets[n] + j]`.
pub struct Dot<T> {
    /// How many times the offsets that the kernel takes at once.
    pub tiles: usize,
    /// Outer and inner runs, how long each is and the steps between their starts.
    pub runs: [usize; 2],
    pub length: usize,
    pub a: *const T,
    pub a_row: usize,
    pub a_step: [usize; 2],
    pub b: *const T,
    pub b_step: [usize; 2],
    pub offsets: *const usize,
    pub sums: *mut T,
}

/// Rows of `columns` elements, of which `lo..hi` are copied and the others zero. A row is written
/// in whole vectors: the elements behind it are zero until they are written themselves.
pub struct Rows<T> {
    pub rows: usize,
    pub columns: usize,
    pub lo: usize,
    pub hi: usize,
    /// Where column 0 would lie in the first row, the step between columns and that between rows.
    pub from: *const T,
    pub step: usize,
    pub from_pitch: usize,
    pub to: *mut T,
    pub pitch: usize,
}

/// Columns of results, next to each other in `from`, go to every `step`-th element of `to`.
pub struct Spread<T> {
    pub rows: usize,
    pub columns: usize,
    pub from: *const T,
    pub from_pitch: usize,
    pub to: *mut T,
    pub to_pitch: usize,
    pub step: usize,
}

// SAFETY: the elements that the fields name may be read, with a vector behind, and written.
#[inline(always)]
unsafe fn spread<V: Lanes>(p: &Spread<V::T>) {
    for r in 0..p.rows {
        let (from, to) = (p.from.add(r * p.from_pitch), p.to.add(r * p.to_pitch));
        match p.step {
            1 => std::ptr::copy_nonoverlapping(from, to, p.columns),
            2 => {
                for j in (0..p.columns).step_by(V::N) {
                    V::load(from.add(j)).store_second(to.add(2 * j), V::N.min(p.columns - j));
                }
            }
            step => {
                for j in 0..p.columns {
                    *to.add(j * step) = *from.add(j);
                }
            }
        }
    }
}

// SAFETY: the elements that the fields name may be read, and written, with a vector behind.
#[inline(always)]
unsafe fn copy_rows<V: Lanes>(p: &Rows<V::T>) {
    let (mut from, mut to) = (p.from, p.to);
    if p.step == 1 && p.hi >= p.lo + V::N {
        // The last vector of a row overlaps the one before.
        let last = p.hi - V::N;
        let zeros = V::splat(V::T::default());
        for _ in 0..p.rows {
            let mut j = 0;
            while j < p.lo {
                zeros.store(to.add(j));
                j += V::N;
            }
            j = p.lo;
            while j < last {
                V::load(from.wrapping_add(j)).store(to.add(j));
                j += V::N;
            }
            V::load(from.wrapping_add(last)).store(to.add(last));
            j = p.hi;
            while j < p.columns {
                zeros.store(to.add(j));
                j += V::N;
            }
            from = from.wrapping_add(p.from_pitch);
            to = to.add(p.pitch);
        }
        return;
    }
    for _ in 0..p.rows {
        let mut j = 0;
        while j < p.columns {
            let (lo, hi) = (
                p.lo.saturating_sub(j).min(V::N),
                p.hi.saturating_sub(j).min(V::N),
            );
            let (lo, hi) = (lo.min(hi), hi);
            match p.step {
                1 => V::copy_part(from.wrapping_add(j), lo, hi, to.add(j)),
                2 => V::copy_second(from.wrapping_add(2 * j), lo, hi, to.add(j)),
                step => {
                    V::splat(V::T::default()).store(to.add(j));
                    for i in lo..hi {
                        *to.add(j + i) = *from.wrapping_add((j + i) * step);
                    }
                }
            }
            j += V::N;
        }
        from = from.wrapping_add(p.from_pitch);
        to = to.add(p.pitch);
    }
}

// SAFETY: every element that the fields name may be read, or written in `y`.
#[inline(always)]
unsafe fn product<V: Lanes, const M: usize, const N: usize>(p: &Product<V::T>) {
    for tile in 0..p.tiles {
        let mut acc = [[V::splat(V::T::default()); N]; M];
        if !p.bias.is_null() {
            for r in 0..M {
                acc[r] = [V::splat(*p.bias.add(r)); N];
            }
        }
        let (mut a, from) = (p.a, p.b.add(tile * N * V::N));
        let mut left = p.depth;
        let mut chains = 0;
        let mut offsets = p.offsets;
        loop {
            let n = left.min(p.chain);
            for k in 0..n {
                let b = from.add(*offsets.add(k));
                let mut x = [V::splat(V::T::default()); N];
                for n in 0..N {
                    x[n] = V::load(b.add(n * V::N));
                }
                for r in 0..M {
                    let w = V::splat(*a.add(r));
                    for n in 0..N {
                        acc[r][n] = acc[r][n].plus_product(w, x[n]);
                    }
                }
                a = a.add(M);
            }
            left -= n;
            offsets = offsets.add(n);
            let place =
                |level: usize, r: usize, n: usize| p.sums.add((level * M * N + r * N + n) * V::N);
            let mut level = 0;
            if chains % CHAINS > 0 {
                for r in 0..M {
                    for n in 0..N {
                        acc[r][n] = V::load(place(0, r, n)).plus(acc[r][n]);
                    }
                }
            }
            if chains % CHAINS == CHAINS - 1 || left == 0 {
                level = 1;
                if chains >= CHAINS {
                    for r in 0..M {
                        for n in 0..N {
                            acc[r][n] = V::load(place(1, r, n)).plus(acc[r][n]);
                        }
                    }
                }
            }
            if left == 0 {
                break;
            }
            for r in 0..M {
                for n in 0..N {
                    acc[r][n].store(place(level, r, n));
                }
                acc[r] = [V::splat(V::T::default()); N];
            }
            chains += 1;
        }
        if p.cells.is_null() {
            for r in 0..M {
                for n in 0..N {
                    acc[r][n].store(p.y.add(r * p.pitch + n * V::N));
                }
            }
            return;
        }
        for n in 0..N {
            let Cell { mask, first, at } = *p.cells.add(tile * N + n);
            for r in 0..M {
                acc[r][n].store_some(p.y.add(r * p.pitch + at as usize), mask, first);
            }
        }
    }
}

// SAFETY: as for [`product`]; `length` is a multiple of the lanes.
#[inline(always)]
unsafe fn dot<V: Lanes, const M: usize, const N: usize>(p: &Dot<V::T>) {
    for tile in 0..p.tiles {
        let mut acc = [[V::splat(V::T::default()); M]; N];
        let mut from = [0; N];
        for n in 0..N {
            from[n] = *p.offsets.add(tile * N + n);
        }
        for outer in 0..p.runs[0] {
            for inner in 0..p.runs[1] {
                let a = p.a.add(outer * p.a_step[0] + inner * p.a_step[1]);
                let b = p.b.add(outer * p.b_step[0] + inner * p.b_step[1]);
                let mut j = 0;
                while j < p.length {
                    let mut x = [V::splat(V::T::default()); N];
                    for n in 0..N {
                        x[n] = V::load(b.add(from[n] + j));
                    }
                    for r in 0..M {
                        let w = V::load(a.add(r * p.a_row + j));
                        for n in 0..N {
                            acc[n][r] = acc[n][r].plus_product(w, x[n]);
                        }
                    }
                    j += V::N;
                }
            }
        }
        for n in 0..N {
            V::add_sums(&acc[n], p.sums.add((tile * N + n) * M));
        }
    }
}

type ProductKernel<T> = unsafe fn(&Product<T>);
type DotKernel<T> = unsafe fn(&Dot<T>);
type RowsKernel<T> = unsafe fn(&Rows<T>);
type SpreadKernel<T> = unsafe fn(&Spread<T>);

/// The kernels of one type for this machine.
pub struct Kernels<T> {
    pub lanes: usize,
    /// The most rows of a panel.
    pub rows: usize,
    /// The most vectors of a row.
    pub vectors: usize,
    pub copy_rows: RowsKernel<T>,
    pub spread: SpreadKernel<T>,
    /// By the rows and the vectors, each less one.
    products: [[ProductKernel<T>; 3]; 8],
    /// By the rows less one, for one offset and for three.
    dots: [[DotKernel<T>; 2]; 8],
}

impl<T> Kernels<T> {
    pub fn product(&self, rows: usize, vectors: usize) -> ProductKernel<T> {
        self.products[rows - 1][vectors - 1]
    }

    /// The kernel for one or three offsets.
    pub fn dot(&self, rows: usize, offsets: usize) -> DotKernel<T> {
        self.dots[rows - 1][offsets / 2]
    }

    /// The first row and the height of the panels that make `rows` rows.
    pub fn panels(&self, rows: usize) -> Vec<(usize, usize)> {
        let starts = (0..rows).step_by(self.rows);
        starts.map(|at| (at, self.rows.min(rows - at))).collect()
    }
}

macro_rules! kernels {
    ($name:ident, $set:ident, $t:ty, $v:ty, $rows:literal, $vectors:literal) => {
        mod $name {
            use super::*;
            crate::compiled! { $set:
                // SAFETY: as for the function it calls, where the instructions are.
                unsafe fn product<const M: usize, const N: usize>(p: &Product<$t>) {
                    super::product::<$v, M, N>(p);
                }
                // SAFETY: as above.
                unsafe fn dot<const M: usize, const N: usize>(p: &Dot<$t>) {
                    super::dot::<$v, M, N>(p);
                }
                // SAFETY: as above.
                unsafe fn copy_rows(p: &Rows<$t>) {
                    super::copy_rows::<$v>(p);
                }
                // SAFETY: as above.
                unsafe fn spread(p: &Spread<$t>) {
                    super::spread::<$v>(p);
                }
            }
            pub static KERNELS: Kernels<$t> = Kernels {
                lanes: <$v>::N,
                rows: $rows,
                vectors: $vectors,
                copy_rows,
                spread,
                products: [
                    [product::<1, 1>, product::<1, 2>, product::<1, 3>],
                    [product::<2, 1>, product::<2, 2>, product::<2, 3>],
                    [product::<3, 1>, product::<3, 2>, product::<3, 3>],
                    [product::<4, 1>, product::<4, 2>, product::<4, 3>],
                    [product::<5, 1>, product::<5, 2>, product::<5, 3>],
                    [product::<6, 1>, product::<6, 2>, product::<6, 3>],
                    [product::<7, 1>, product::<7, 2>, product::<7, 3>],
                    [product::<8, 1>, product::<8, 2>, product::<8, 3>],
                ],
                dots: [
                    [dot::<1, 1>, dot::<1, 3>],
                    [dot::<2, 1>, dot::<2, 3>],
                    [dot::<3, 1>, dot::<3, 3>],
                    [dot::<4, 1>, dot::<4, 3>],
                    [dot::<5, 1>, dot::<5, 3>],
                    [dot::<6, 1>, dot::<6, 3>],
                    [dot::<7, 1>, dot::<7, 3>],
                    [dot::<8, 1>, dot::<8, 3>],
                ],
            };
        }
    };
}

macro_rules! each_set {
    ($t:ty, $name:ident, $plain:ident, $avx2:ident, $avx512:ident,
     $plain_lanes:ty, $avx2_lanes:ident, $avx512_lanes:ident) => {
        kernels!($plain, portable, $t, $plain_lanes, 4, 2);
        #[cfg(target_arch = "x86_64")]
        kernels!($avx2, avx2, $t, x86::$avx2_lanes, 4, 3);
        #[cfg(target_arch = "x86_64")]
        kernels!($avx512, avx512, $t, x86::$avx512_lanes, 8, 3);

        pub(super) fn $name() -> &'static Kernels<$t> {
            per_isa!(match avx512 => &$avx512::KERNELS, avx2 => &$avx2::KERNELS,
                portable => &$plain::KERNELS)
        }
    };
}

each_set!(f32, float, float_plain, float_avx2, float_avx512, Plain<f32, 4>, F32x8, F32x16);
each_set!(f64, double, double_plain, double_avx2, double_avx512, Plain<f64, 2>, F64x4, F64x8);

kernels!(whole_plain, portable, i64, Plain<i64, 4>, 4, 2);

pub(super) fn whole() -> &'static Kernels<i64> {
    &whole_plain::KERNELS
}

//! The two inner loops of convolutions for each instruction set: a product of a packed panel with
//! rows read in place, and dot products of rows.

#[cfg(target_arch = "x86_64")]
use crate::cpu::gemm::Pairs;
use crate::cpu::gemm::{Fused, Step};
use crate::cpu::simd::{fetch, Simd, Vectors};
#[cfg(target_arch = "aarch64")]
use crate::cpu::simd::{F32x8, F64x4};
use crate::per_isa;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

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
pub const CHAIN: (usize, usize) = (24, 40);
const CHAINS: usize = 8;

/// The length of the chains that divide evenly the products of `taps` kernel elements each.
pub fn chain(depth: usize, taps: usize) -> usize {
    let most = match taps {
        1 => (depth / CHAINS).clamp(CHAIN.0, CHAIN.1),
        _ => CHAIN.1,
    };
    depth.div_ceil(depth.div_ceil(most).max(1))
}

/// `y[r][j] = bias[r] + sum over k of a[k][r] * b[offsets[k] + j]`.
pub struct Product<T> {
    /// How many times the columns that the kernel makes at once.
    pub tiles: usize,
    pub depth: usize,
    /// As [`chain`] says of the depth.
    pub chain: usize,
    /// Room for twice the results.
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

#[inline(always)]
unsafe fn spread<V: Simd>(p: &Spread<V::Elem>) {
    // SAFETY: `from` has the rows and columns that the fields name, with a vector behind, and `to`
    // room for them; the caller has the set.
    unsafe {
        for r in 0..p.rows {
            let (from, to) = (p.from.add(r * p.from_pitch), p.to.add(r * p.to_pitch));
            match p.step {
                1 => std::ptr::copy_nonoverlapping(from, to, p.columns),
                2 => {
                    for j in (0..p.columns).step_by(V::LANES) {
                        V::load(from.add(j))
                            .store_second(to.add(2 * j), V::LANES.min(p.columns - j));
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
}

#[inline(always)]
unsafe fn copy_rows<V: Simd>(p: &Rows<V::Elem>) {
    // SAFETY: only columns `lo` to `hi` of `from` are read, and rows of `to` have a vector behind;
    // the caller has the set.
    unsafe {
        let (mut from, mut to) = (p.from, p.to);
        if p.step == 1 && p.hi >= p.lo + V::LANES {
            // The last vector of a row overlaps the one before.
            let last = p.hi - V::LANES;
            let zeros = V::splat(V::Elem::default());
            for _ in 0..p.rows {
                let mut j = 0;
                while j < p.lo {
                    zeros.store(to.add(j));
                    j += V::LANES;
                }
                j = p.lo;
                while j < last {
                    V::load(from.wrapping_add(j)).store(to.add(j));
                    j += V::LANES;
                }
                V::load(from.wrapping_add(last)).store(to.add(last));
                j = p.hi;
                while j < p.columns {
                    zeros.store(to.add(j));
                    j += V::LANES;
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
                    p.lo.saturating_sub(j).min(V::LANES),
                    p.hi.saturating_sub(j).min(V::LANES),
                );
                let (lo, hi) = (lo.min(hi), hi);
                match p.step {
                    1 => V::copy_part(from.wrapping_add(j), lo, hi, to.add(j)),
                    2 => V::copy_second(from.wrapping_add(2 * j), lo, hi, to.add(j)),
                    step => {
                        V::splat(V::Elem::default()).store(to.add(j));
                        for i in lo..hi {
                            *to.add(j + i) = *from.wrapping_add((j + i) * step);
                        }
                    }
                }
                j += V::LANES;
            }
            from = from.wrapping_add(p.from_pitch);
            to = to.add(p.pitch);
        }
    }
}

#[inline(always)]
unsafe fn product<V: Simd, S: Step<V>, const M: usize, const N: usize>(p: &Product<V::Elem>) {
    // SAFETY: the fields name elements that may be read, or written in `y` and `sums`; the caller
    // has the set.
    unsafe {
        let size = M * N * V::LANES;
        let (mut a, mut offsets) = (p.a, p.offsets);
        let (mut left, mut chains) = (p.depth, 0);
        loop {
            let length = left.min(p.chain);
            left -= length;
            let follows = chains % CHAINS > 0;
            let closes = left == 0 || chains % CHAINS == CHAINS - 1;
            let joins = closes && chains >= CHAINS;
            // One chain of all tiles: its rows are read on and on, and their lines still there when
            // the next tile reads the rest of them.
            for tile in 0..p.tiles {
                let mut acc = [[V::splat(V::Elem::default()); N]; M];
                let from = p.b.add(tile * N * V::LANES);
                let mut a = a;
                for k in 0..length {
                    let b = from.add(*offsets.add(k));
                    let mut x = [V::splat(V::Elem::default()); N];
                    for n in 0..N {
                        x[n] = V::load(b.add(n * V::LANES));
                    }
                    // Two tiles ahead: lines of many channels, which no prefetcher foresees.
                    fetch(b.wrapping_add(2 * N * V::LANES));
                    S::step(a, &x, &mut acc);
                    a = a.add(M);
                }
                let (inner, outer) = (p.sums.add(tile * size), p.sums.add((p.tiles + tile) * size));
                if follows {
                    for r in 0..M {
                        for n in 0..N {
                            acc[r][n] = V::load(inner.add((r * N + n) * V::LANES)).add(acc[r][n]);
                        }
                    }
                }
                if joins {
                    for r in 0..M {
                        for n in 0..N {
                            acc[r][n] = V::load(outer.add((r * N + n) * V::LANES)).add(acc[r][n]);
                        }
                    }
                }
                if left > 0 {
                    let to = if closes { outer } else { inner };
                    for r in 0..M {
                        for n in 0..N {
                            acc[r][n].store(to.add((r * N + n) * V::LANES));
                        }
                    }
                    continue;
                }
                if !p.bias.is_null() {
                    for r in 0..M {
                        let bias = V::splat(*p.bias.add(r));
                        for n in 0..N {
                            acc[r][n] = acc[r][n].add(bias);
                        }
                    }
                }
                if p.cells.is_null() {
                    for r in 0..M {
                        for n in 0..N {
                            acc[r][n].store(p.y.add(r * p.pitch + (tile * N + n) * V::LANES));
                        }
                    }
                    continue;
                }
                // No loop: what is stored in parts is too long to be unrolled, and an index that is
                // not known would keep all sums in memory.
                macro_rules! column {
                    ($n:literal) => {
                        if $n < N {
                            let Cell { mask, first, at } = *p.cells.add(tile * N + $n);
                            let y = p.y.add(at as usize);
                            for r in 0..M {
                                acc[r][$n].store_some(y.add(r * p.pitch), mask, first);
                            }
                        }
                    };
                }
                column!(0);
                column!(1);
                column!(2);
            }
            if left == 0 {
                break;
            }
            (a, offsets) = (a.add(length * M), offsets.add(length));
            chains += 1;
        }
    }
}

#[inline(always)]
unsafe fn dot<V: Simd, const M: usize, const N: usize>(p: &Dot<V::Elem>) {
    // SAFETY: the fields name elements that may be read, in whole vectors, and sums for each row
    // and column; the caller has the set.
    unsafe {
        for tile in 0..p.tiles {
            let mut acc = [[V::splat(V::Elem::default()); M]; N];
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
                        let mut x = [V::splat(V::Elem::default()); N];
                        for n in 0..N {
                            x[n] = V::load(b.add(from[n] + j));
                        }
                        for r in 0..M {
                            let w = V::load(a.add(r * p.a_row + j));
                            for n in 0..N {
                                acc[n][r] = w.fma(x[n], acc[n][r]);
                            }
                        }
                        j += V::LANES;
                    }
                }
            }
            for n in 0..N {
                V::add_sums(&acc[n], p.sums.add((tile * N + n) * M));
            }
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
    /// The most rows of a panel, and of one of dot products.
    pub rows: usize,
    pub dot_rows: usize,
    /// The most vectors of a row.
    pub vectors: usize,
    pub copy_rows: RowsKernel<T>,
    pub spread: SpreadKernel<T>,
    /// By the rows and the vectors, each less one; past the most of them the last one is repeated.
    products: [[ProductKernel<T>; 3]; 8],
    /// By the rows less one, for one offset and for three.
    dots: [[DotKernel<T>; 2]; 8],
}

impl<T> Kernels<T> {
    pub fn product(&self, rows: usize, vectors: usize) -> ProductKernel<T> {
        assert!(rows <= self.rows && vectors <= self.vectors);
        self.products[rows - 1][vectors - 1]
    }

    /// The most results that a kernel makes at once.
    pub fn tile(&self) -> usize {
        self.rows * self.vectors * self.lanes
    }

    /// The kernel for one or three offsets.
    pub fn dot(&self, rows: usize, offsets: usize) -> DotKernel<T> {
        assert!(rows <= self.dot_rows);
        self.dots[rows - 1][offsets / 2]
    }
}

/// The first row and the height of the panels of at most `most` rows that make `rows` rows: as
/// alike as can be, since a low one has too few sums to hide how long each addition takes.
pub fn panels(rows: usize, most: usize) -> Vec<(usize, usize)> {
    let count = rows.div_ceil(most);
    let start = |i: usize| i * rows / count;
    (0..count)
        .map(|i| (start(i), start(i + 1) - start(i)))
        .collect()
}

const fn least(a: usize, b: usize) -> usize {
    if a < b {
        a
    } else {
        b
    }
}

/// Kernels by their rows. None is compiled for more than the set ever takes.
macro_rules! of_rows {
    ($M:ident in [$($m:literal)*], at most $rows:literal => $kernels:expr) => {
        [$({
            const $M: usize = least($m, $rows);
            $kernels
        }),*]
    };
}

macro_rules! kernels {
    ($name:ident, $set:ident, $t:ty, $v:ty, $rows:literal, $vectors:literal, $dots:literal) => {
        mod $name {
            use super::*;
            crate::compiled! { $set:
                unsafe fn product<const M: usize, const N: usize>(p: &Product<$t>) {
                    // SAFETY: the fields name elements in memory; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::product::<$v, Fused, M, N>(p);
                    }
                }
                unsafe fn dot<const M: usize, const N: usize>(p: &Dot<$t>) {
                    // SAFETY: the fields name elements in memory; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::dot::<$v, M, N>(p);
                    }
                }
                unsafe fn copy_rows(p: &Rows<$t>) {
                    // SAFETY: the fields name elements in memory; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::copy_rows::<$v>(p);
                    }
                }
                unsafe fn spread(p: &Spread<$t>) {
                    // SAFETY: the fields name elements in memory; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::spread::<$v>(p);
                    }
                }
            }
            pub static KERNELS: Kernels<$t> = Kernels {
                lanes: <$v>::LANES,
                rows: $rows,
                dot_rows: $dots,
                vectors: $vectors,
                copy_rows,
                spread,
                products: of_rows!(M in [1 2 3 4 5 6 7 8], at most $rows => [
                    product::<M, 1>,
                    product::<M, { least(2, $vectors) }>,
                    product::<M, { least(3, $vectors) }>,
                ]),
                dots: of_rows!(M in [1 2 3 4 5 6 7 8], at most $dots => [
                    dot::<M, 1>,
                    dot::<M, 3>,
                ]),
            };
        }
    };
}

macro_rules! each_set {
    ($t:ty, $name:ident, $plain:ident, $neon:ident, $avx2:ident, $avx512:ident,
     $plain_lanes:ty, $neon_lanes:ty, $avx2_lanes:ty, $avx512_lanes:ty) => {
        // What sums leave of the registers holds a vector for each column and one more. With all
        // sixteen of AVX2 in use (4 rows of 3) the compiler moves sums about.
        kernels!($plain, portable, $t, $plain_lanes, 4, 2, 4);
        #[cfg(target_arch = "aarch64")]
        kernels!($neon, neon, $t, $neon_lanes, 6, 2, 4);
        #[cfg(target_arch = "x86_64")]
        kernels!($avx2, avx2, $t, $avx2_lanes, 6, 2, 4);
        #[cfg(target_arch = "x86_64")]
        kernels!($avx512, avx512, $t, $avx512_lanes, 8, 3, 8);

        pub fn $name() -> &'static Kernels<$t> {
            per_isa!(match avx512 => &$avx512::KERNELS, avx2 => &$avx2::KERNELS,
                neon => &$neon::KERNELS, portable => &$plain::KERNELS)
        }
    };
}

each_set!(
    f32,
    float,
    float_plain,
    float_neon,
    float_avx2,
    float_avx512,
    <f32 as Vectors>::Portable,
    F32x8,
    __m256,
    __m512
);
each_set!(
    f64,
    double,
    double_plain,
    double_neon,
    double_avx2,
    double_avx512,
    <f64 as Vectors>::Portable,
    F64x4,
    __m256d,
    __m512d
);

/// As those of float32, but that each lane of an operand has a pair of bfloat16.
#[cfg(target_arch = "x86_64")]
mod pairs_avx512 {
    use super::*;
    crate::compiled! { avx512:
        #[target_feature(enable = "avx512bf16")]
        unsafe fn product<const M: usize, const N: usize>(p: &Product<f32>) {
            // SAFETY: the fields name elements in memory; who takes the kernel asked for the set.
            unsafe { super::product::<__m512, Pairs, M, N>(p) }
        }
    }
    pub static KERNELS: Kernels<f32> = Kernels {
        products: of_rows!(M in [1 2 3 4 5 6 7 8], at most 8 => [
            product::<M, 1>, product::<M, 2>, product::<M, 3>,
        ]),
        ..float_avx512::KERNELS
    };
}

/// The kernels for pairs of bfloat16, where the processor multiplies these.
pub fn pairs() -> Option<&'static Kernels<f32>> {
    #[cfg(target_arch = "x86_64")]
    if crate::machine::level() == crate::isa::Level::Avx512 && crate::isa::has_bf16() {
        return Some(&pairs_avx512::KERNELS);
    }
    None
}

kernels!(whole_plain, portable, i64, [i64; 4], 4, 2, 4);

pub fn whole() -> &'static Kernels<i64> {
    &whole_plain::KERNELS
}

//! Micro-kernels: a tile of C in registers, summed over the depth.

use crate::cpu::simd::{fetch, Simd};

/// Where a tile goes: C = alpha * sum + beta * D, for `width` columns.
///
/// C's columns are contiguous. D is not read where `beta` is zero; it may be C itself, and its
/// steps to the next column is one or zero.
#[derive(Clone, Copy)]
pub(super) struct Tile<E> {
    pub c: *mut E,
    pub c_rs: isize,
    pub width: usize,
    pub alpha: E,
    pub beta: E,
    pub d: *const E,
    pub d_rs: isize,
    pub d_cs: isize,
}

/// Operands of a tile: the address and the steps to the next row (of A) and to the next depth.
/// Columns of B are contiguous.
#[derive(Clone, Copy)]
pub(super) struct Strided<E> {
    pub a: *const E,
    pub a_rs: isize,
    pub a_ds: isize,
    pub b: *const E,
    pub b_ds: isize,
}

/// Sums of packed panels: `k` groups of M elements of A, and of N vectors of B.
pub(super) type Packed<E> = unsafe fn(k: usize, a: *const E, b: *const E, out: &Tile<E>);
/// Sums straight from the operands.
pub(super) type Direct<E> = unsafe fn(k: usize, x: &Strided<E>, out: &Tile<E>);

/// Writes a tile of N vectors of columns, the last one of which may be partly used.
#[inline(always)]
pub(super) unsafe fn finish<V: Simd, const M: usize, const N: usize>(
    sum: [[V; N]; M],
    out: &Tile<V::Elem>,
) {
    // SAFETY: the tile's M rows of `width` columns lie in C, and in D where `beta` is not zero; the
    // caller has the instructions of `V`.
    unsafe {
        let last = out.width - (N - 1) * V::LANES;
        let alpha = V::splat(out.alpha);
        let beta = V::splat(out.beta);
        let zero = V::splat(V::Elem::default());
        let plus = out.beta != V::Elem::default();
        // Loops without exits, so that they unroll and sums stay in registers.
        macro_rules! rows {
            (|$d:ident, $at:ident, $part:ident| $rest:expr) => {
                for i in 0..M {
                    let c = out.c.offset(i as isize * out.c_rs);
                    let $d = out.d.wrapping_offset(i as isize * out.d_rs);
                    for j in 0..N {
                        let $at = j * V::LANES;
                        let $part = j + 1 == N && last < V::LANES;
                        let y = alpha.fma(sum[i][j], $rest);
                        if $part {
                            y.store_first(c.add($at), last);
                        } else {
                            y.store(c.add($at));
                        }
                    }
                }
            };
        }
        if !plus {
            rows!(|_d, at, part| zero);
        } else if out.d_cs == 1 {
            rows!(|d, at, part| {
                let d = d.add(at);
                let d = if part {
                    V::load_first(d, last)
                } else {
                    V::load(d)
                };
                beta.fma(d, zero)
            });
        } else {
            rows!(|d, at, part| beta.fma(V::splat(*d), zero));
        }
    }
}

/// What a kernel does with packed elements.
trait Step<V: Simd> {
    /// Adds the products of a[i] and y[j] to each sum[i][j].
    ///
    /// # Safety
    /// `a` has M elements; the machine has the instructions of the vector.
    unsafe fn step<const M: usize, const N: usize>(
        a: *const V::Elem,
        y: &[V; N],
        sum: &mut [[V; N]; M],
    );
}

/// A fused multiplication and addition.
struct Fused;

impl<V: Simd> Step<V> for Fused {
    #[inline(always)]
    unsafe fn step<const M: usize, const N: usize>(
        a: *const V::Elem,
        y: &[V; N],
        sum: &mut [[V; N]; M],
    ) {
        // SAFETY: `a` has M elements; the caller has the instructions of the vector.
        unsafe { V::add_outer(a, y, sum) }
    }
}

#[inline(always)]
unsafe fn packed<V: Simd, S: Step<V>, const M: usize, const N: usize>(
    k: usize,
    mut a: *const V::Elem,
    mut b: *const V::Elem,
    out: &Tile<V::Elem>,
) {
    // SAFETY: `a` and `b` hold `k` groups of M elements and of N vectors, and the tile lies in C;
    // the caller has the instructions of `V`.
    unsafe {
        let mut sum = [[V::splat(V::Elem::default()); N]; M];
        for i in 0..M {
            let c = out.c.wrapping_offset(i as isize * out.c_rs);
            fetch(c);
            fetch(c.wrapping_add((out.width - 1) & !(V::LANES - 1)));
        }
        for _ in 0..k {
            let mut y = [sum[0][0]; N];
            for j in 0..N {
                y[j] = V::load(b.add(j * V::LANES));
            }
            S::step(a, &y, &mut sum);
            a = a.add(M);
            b = b.add(N * V::LANES);
        }
        finish::<V, M, N>(sum, out);
    }
}

#[inline(always)]
unsafe fn direct<V: Simd, const M: usize, const N: usize>(
    k: usize,
    x: &Strided<V::Elem>,
    out: &Tile<V::Elem>,
) {
    // SAFETY: A has M rows and B `width` columns of depth `k`, and the tile lies in C; the caller
    // has the instructions of `V`.
    unsafe {
        let mut sum = [[V::splat(V::Elem::default()); N]; M];
        let (mut a, mut b) = (x.a, x.b);
        let (rs, ds, bs) = (x.a_rs, x.a_ds, x.b_ds);
        let full = out.width == N * V::LANES;
        let last = out.width - (N - 1) * V::LANES;
        for _ in 0..k {
            let mut y = [sum[0][0]; N];
            for j in 0..N {
                let b = b.add(j * V::LANES);
                fetch(b.wrapping_add(4 * N * V::LANES));
                y[j] = if j + 1 < N || full {
                    V::load(b)
                } else {
                    V::load_first(b, last)
                };
            }
            for i in 0..M {
                let x = V::splat(*a.offset(i as isize * rs));
                for j in 0..N {
                    sum[i][j] = x.fma(y[j], sum[i][j]);
                }
            }
            a = a.wrapping_offset(ds);
            b = b.wrapping_offset(bs);
        }
        finish::<V, M, N>(sum, out);
    }
}

/// Tables of kernels for one vector type: `[rows - 1][vectors - 1]`.
macro_rules! tables {
    ($name:ident, $V:ty, $set:ident, $rows:literal, $wide:literal,
     [$($m:literal)*], [$($s:literal)*]) => {
        pub(super) mod $name {
            use super::{Direct, Packed, Simd, Strided, Tile};
            type E = <$V as Simd>::Elem;

            crate::compiled! { $set:
                unsafe fn packed<const M: usize, const N: usize>(
                    k: usize, a: *const E, b: *const E, out: &Tile<E>,
                ) {
                    // SAFETY: `a` and `b` hold `k` packed groups for the tile; who takes the kernel
                    // asked for the set.
                    unsafe { super::packed::<$V, super::Fused, M, N>(k, a, b, out) }
                }
                unsafe fn direct<const M: usize, const N: usize>(
                    k: usize, x: &Strided<E>, out: &Tile<E>,
                ) {
                    // SAFETY: the operands have depth `k` and the tile's rows and columns; who
                    // takes the kernel asked for the set.
                    unsafe { super::direct::<$V, M, N>(k, x, out) }
                }
            }
            pub const LANES: usize = <$V>::LANES;
            pub static PACKED: [[Packed<E>; 2]; $rows] =
                [$([packed::<$m, 1>, packed::<$m, 2>]),*];
            pub static DIRECT: [[Direct<E>; 2]; $rows] =
                [$([direct::<$m, 1>, direct::<$m, 2>]),*];
            /// Four vectors, for few rows.
            pub static WIDE: [Direct<E>; $wide] = [$(direct::<$s, 4>),*];
        }
    };
}
#[cfg(target_arch = "x86_64")]
tables!(f32x16, std::arch::x86_64::__m512, avx512, 14, 6,
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14], [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
tables!(f64x8, std::arch::x86_64::__m512d, avx512, 14, 6,
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14], [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
tables!(f32x8, std::arch::x86_64::__m256, avx2, 6, 3, [1 2 3 4 5 6], [1 2 3]);
#[cfg(target_arch = "x86_64")]
tables!(f64x4, std::arch::x86_64::__m256d, avx2, 6, 3, [1 2 3 4 5 6], [1 2 3]);
// 24 registers of sums, 4 of B and 2 of A, whose elements multiply from their lanes.
#[cfg(target_arch = "aarch64")]
tables!(f32x4x2, crate::cpu::simd::F32x8, neon, 6, 2, [1 2 3 4 5 6], [1 2]);
#[cfg(target_arch = "aarch64")]
tables!(f64x2x2, crate::cpu::simd::F64x4, neon, 6, 2, [1 2 3 4 5 6], [1 2]);

/// Pairs of bfloat16 in each lane, summed in float32, have packed kernels only.
#[cfg(target_arch = "x86_64")]
pub(super) mod pairs {
    use super::{Packed, Simd, Step, Tile};
    use std::arch::x86_64::*;

    /// The sum of two products for each lane.
    struct Pairs;

    impl Step<__m512> for Pairs {
        #[inline(always)]
        unsafe fn step<const M: usize, const N: usize>(
            a: *const f32,
            y: &[__m512; N],
            sum: &mut [[__m512; N]; M],
        ) {
            // SAFETY: `a` has M elements; both types are 64 bytes of a register; the kernel is taken
            // where the machine has the instruction.
            unsafe {
                let pairs = |x: __m512| std::mem::transmute::<__m512, __m512bh>(x);
                for i in 0..M {
                    let x = pairs(__m512::splat(*a.add(i)));
                    for j in 0..N {
                        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], x, pairs(y[j]));
                    }
                }
            }
        }
    }

    crate::compiled! { avx512:
        #[target_feature(enable = "avx512bf16")]
        unsafe fn packed<const M: usize, const N: usize>(
            k: usize, a: *const f32, b: *const f32, out: &Tile<f32>,
        ) {
            // SAFETY: `a` and `b` hold `k` packed groups for the tile; who takes the kernel asked
            // for the set.
            unsafe { super::packed::<__m512, Pairs, M, N>(k, a, b, out) }
        }
    }
    macro_rules! table {
        ($($m:literal)*) => { [$([packed::<$m, 1>, packed::<$m, 2>]),*] };
    }
    pub static PACKED: [[Packed<f32>; 2]; 14] = table!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

//! Micro-kernels: a tile of C in registers, summed over the depth.

use crate::simd::{fetch, Simd};

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

/// Sums like [`Direct`], of a panel of B; what the tile and the next one read is asked for.
pub(super) type Flow<E> = unsafe fn(k: usize, x: &Strided<E>, out: &Tile<E>, ahead: &Ahead);

/// What the next tile reads: a line of each row, `step` bytes apart.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Only kernels of x86 ask for it.
pub(super) struct Ahead {
    pub at: *const u8,
    pub step: isize,
}

/// The same address, which the compiler knows nothing of: else it makes a chain of additions of
/// rows that are a step apart, an instruction for each.
// The address alone goes in, and nothing is read there.
#[allow(clippy::pointers_in_nomem_asm_block)]
#[inline(always)]
fn opaque<T>(p: *const T) -> *const T {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut p = p;
        // SAFETY: no instruction.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) p, options(pure, nomem, nostack, preserves_flags))
        }
        p
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    p
}

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
        // Loops without exits, so that they unroll and sums stay in registers; and without questions
        // where all columns are used.
        macro_rules! rows {
            ($whole:literal, |$d:ident, $at:ident, $part:ident| $rest:expr) => {
                for i in 0..M {
                    let c = out.c.offset(i as isize * out.c_rs);
                    let $d = out.d.wrapping_offset(i as isize * out.d_rs);
                    for j in 0..N {
                        let $at = j * V::LANES;
                        let $part = !$whole && j + 1 == N;
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
        macro_rules! along {
            ($whole:literal) => {
                rows!($whole, |d, at, part| {
                    let d = d.add(at);
                    let d = if part {
                        V::load_first(d, last)
                    } else {
                        V::load(d)
                    };
                    beta.fma(d, zero)
                })
            };
        }
        match (plus, out.d_cs == 1, last == V::LANES) {
            (false, _, true) => rows!(true, |_d, at, part| zero),
            (false, _, false) => rows!(false, |_d, at, part| zero),
            (true, true, true) => along!(true),
            (true, true, false) => along!(false),
            (true, false, _) => rows!(false, |d, at, part| beta.fma(V::splat(*d), zero)),
        }
    }
}

/// What a kernel does with packed elements.
pub trait Step<V: Simd> {
    /// Adds the products of a[i] and y[j] to each sum[i][j].
    ///
    /// # Safety
    /// `a` has M elements; the machine has the instructions of the vector.
    unsafe fn step<const M: usize, const N: usize>(
        a: *const V::Elem,
        y: &[V; N],
        sum: &mut [[V; N]; M],
    );
    /// Adds the products of `x` and `y` to `sum`.
    ///
    /// # Safety
    /// The machine has the instructions of the vector.
    unsafe fn one(x: V, y: V, sum: V) -> V;
}

/// A fused multiplication and addition.
pub struct Fused;

impl<V: Simd> Step<V> for Fused {
    #[inline(always)]
    unsafe fn one(x: V, y: V, sum: V) -> V {
        // SAFETY: the caller has the instructions of the vector.
        unsafe { x.fma(y, sum) }
    }
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

/// The row `i` of a tile, four of which have one address each, and multiples of the step.
macro_rules! row {
    ($base:ident, $rs:expr, $i:ident) => {
        $base[$i / 4].wrapping_offset(($i % 4) as isize * $rs)
    };
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
        let (rs, ds, bs) = (x.a_rs, x.a_ds, x.b_ds);
        let mut b = x.b;
        let mut base = [x.a; 4];
        for g in 1..M.div_ceil(4) {
            base[g] = x.a.wrapping_offset(4 * g as isize * rs);
        }
        let full = out.width == N * V::LANES;
        let last = out.width - (N - 1) * V::LANES;
        for _ in 0..k {
            let mut y = [sum[0][0]; N];
            for j in 0..N {
                let b = b.add(j * V::LANES);
                y[j] = if j + 1 < N || full {
                    V::load(b)
                } else {
                    V::load_first(b, last)
                };
            }
            for i in 0..M {
                let x = V::splat(*row!(base, rs, i));
                for j in 0..N {
                    sum[i][j] = x.fma(y[j], sum[i][j]);
                }
            }
            for g in 0..M.div_ceil(4) {
                base[g] = opaque(base[g].wrapping_offset(ds));
            }
            b = b.wrapping_offset(bs);
        }
        finish::<V, M, N>(sum, out);
    }
}

/// A panel of B past rows of A, which are packed or have contiguous depth.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn flow<V: Simd, S: Step<V>, const M: usize, const N: usize, const PACKED: bool>(
    k: usize,
    x: &Strided<V::Elem>,
    out: &Tile<V::Elem>,
    ahead: &Ahead,
) {
    // SAFETY: A has M rows and B a panel of N vectors of depth `k`, and the tile lies in C; the
    // caller has the instructions of `V`.
    unsafe {
        let mut sum = [[V::splat(V::Elem::default()); N]; M];
        let (rs, mut b) = (x.a_rs, x.b);
        let mut base = [x.a; 4];
        if !PACKED {
            for g in 1..M.div_ceil(4) {
                base[g] = x.a.wrapping_offset(4 * g as isize * rs);
            }
        }
        macro_rules! steps {
            ($count:expr, [$($u:literal)*] $by:literal) => {
                for _ in 0..$count {
                    $({
                        let mut y = [sum[0][0]; N];
                        for j in 0..N {
                            y[j] = V::load(b.add(($u * N + j) * V::LANES));
                        }
                        for i in 0..M {
                            let x = if PACKED {
                                V::splat(*base[0].add($u * M + i))
                            } else {
                                V::splat(*row!(base, rs, i).add($u))
                            };
                            for j in 0..N {
                                sum[i][j] = S::one(x, y[j], sum[i][j]);
                            }
                        }
                    })*
                    b = b.add($by * N * V::LANES);
                    if PACKED {
                        base[0] = base[0].add($by * M);
                    } else {
                        for g in 0..M.div_ceil(4) {
                            base[g] = opaque(base[g].wrapping_add($by));
                        }
                    }
                }
            };
        }
        let each = (k / (4 * M)).min(2);
        let (mut c, mut next) = (out.c.cast_const(), ahead.at);
        // The count is hidden so that the steps are not repeated for each row.
        for _ in 0..opaque(M as *const u8) as usize {
            for at in (0..N * V::LANES).step_by(64 / size_of::<V::Elem>()) {
                // Nothing past the row is asked for.
                fetch(c.wrapping_add(at.min(out.width - 1)));
            }
            fetch(c.wrapping_add(out.width - 1));
            c = c.wrapping_offset(out.c_rs);
            fetch(next);
            next = next.wrapping_offset(ahead.step);
            steps!(each, [0 1 2 3] 4);
        }
        let rest = k - 4 * each * M;
        steps!(rest / 4, [0 1 2 3] 4);
        steps!(rest % 4, [0] 1);
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
tables!(f32x4x2, crate::simd::F32x8, neon, 6, 2, [1 2 3 4 5 6], [1 2]);
#[cfg(target_arch = "aarch64")]
tables!(f64x2x2, crate::simd::F64x4, neon, 6, 2, [1 2 3 4 5 6], [1 2]);

/// Tables of the kernels for panels that stream: `[rows - 1][vectors - 1]`.
#[cfg(target_arch = "x86_64")]
macro_rules! flows {
    ($name:ident, $V:ty, $Step:ty, $set:ident $(+ $more:literal)?, [$($m:literal)*], $n:tt) => {
        pub(super) mod $name {
            use super::{Ahead, Flow, Simd, Strided, Tile};
            type E = <$V as Simd>::Elem;

            crate::compiled! { $set:
                $(#[target_feature(enable = $more)])?
                unsafe fn flow<const M: usize, const N: usize, const PACKED: bool>(
                    k: usize, x: &Strided<E>, out: &Tile<E>, ahead: &Ahead,
                ) {
                    // SAFETY: the operands have depth `k` and the tile's rows and vectors; who
                    // takes the kernel asked for the set.
                    unsafe { super::flow::<$V, $Step, M, N, PACKED>(k, x, out, ahead) }
                }
            }
            pub static ROWS: &[&[Flow<E>]] = &[$(flows!(@row $m $n false)),*];
            pub static PACKED: &[&[Flow<E>]] = &[$(flows!(@row $m $n true)),*];
        }
    };
    (@row $m:literal [$($n:literal)*] $packed:literal) => { &[$(flow::<$m, $n, $packed>),*] };
}
#[cfg(target_arch = "x86_64")]
flows!(flow_f32x16, std::arch::x86_64::__m512, super::Fused, avx512, [1 2 3 4 5 6 7 8], [1 2 3]);
#[cfg(target_arch = "x86_64")]
flows!(flow_f64x8, std::arch::x86_64::__m512d, super::Fused, avx512, [1 2 3 4 5 6 7 8], [1 2 3]);
#[cfg(target_arch = "x86_64")]
flows!(flow_f32x8, std::arch::x86_64::__m256, super::Fused, avx2, [1 2 3 4 5 6], [1 2]);
#[cfg(target_arch = "x86_64")]
flows!(flow_f64x4, std::arch::x86_64::__m256d, super::Fused, avx2, [1 2 3 4 5 6], [1 2]);
#[cfg(target_arch = "x86_64")]
flows!(flow_pairs, std::arch::x86_64::__m512, super::pairs::Pairs, avx512 + "avx512bf16",
    [1 2 3 4 5 6 7 8], [1 2 3]);

/// Pairs of bfloat16 in each lane, summed in float32; A's rows are read in place by panels that
/// stream alone.
#[cfg(target_arch = "x86_64")]
pub mod pairs {
    use super::{Packed, Simd, Step, Tile};
    use std::arch::x86_64::*;

    /// The sum of two products for each lane.
    pub struct Pairs;

    impl Step<__m512> for Pairs {
        #[inline(always)]
        unsafe fn one(x: __m512, y: __m512, sum: __m512) -> __m512 {
            // SAFETY: both types are 64 bytes of a register; the kernel is taken where the machine
            // has the instruction.
            unsafe {
                let pairs = |x: __m512| std::mem::transmute::<__m512, __m512bh>(x);
                _mm512_dpbf16_ps(sum, pairs(x), pairs(y))
            }
        }
        #[inline(always)]
        unsafe fn step<const M: usize, const N: usize>(
            a: *const f32,
            y: &[__m512; N],
            sum: &mut [[__m512; N]; M],
        ) {
            // SAFETY: `a` has M elements; the kernel is taken where the machine has the instruction.
            unsafe {
                for i in 0..M {
                    let x = __m512::splat(*a.add(i));
                    for j in 0..N {
                        sum[i][j] = Self::one(x, y[j], sum[i][j]);
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

//! Matrix multiplication of any strides: C = alpha * A B + beta * C.
//!
//! float32 and float64 run in the `gemm` crate, on panels of C that our own pool hands out;
//! the half types are widened tile by tile and accumulate in float32; integers wrap.
//! Vectors and tiny matrices take paths of their own, without packing.

use super::pool::{num_threads, parallel_for};
use super::{level, Level};
use half::{bf16, f16};

/// Multiplications up to which plain loops beat packing.
const TINY: usize = 4096;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 18;
/// Elements of a matrix-vector product that a second thread is worth.
const VECTOR_GRAIN: usize = 1 << 15;
/// Rows, columns and depth of a widened or wrapping tile.
const TILE: (usize, usize, usize) = (128, 512, 256);

/// The arithmetic that products are summed in: wrapping for integers.
pub trait Acc: Copy + PartialEq + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// self * b + c.
    fn fma(self, b: Self, c: Self) -> Self;
}

/// An element type that matrices may have.
pub trait GemmElem: Copy + Send + Sync + 'static {
    type Acc: Acc;
    fn widen(self) -> Self::Acc;
    fn narrow(x: Self::Acc) -> Self;

    /// Multiplies where no special path applies.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[doc(hidden)]
    unsafe fn multiply(p: &Problem<Self>);
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Acc for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
        }
        impl GemmElem for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> Self { x }
            // SAFETY: as for [`gemm`].
            unsafe fn multiply(p: &Problem<Self>) { panels(p); }
        }
    )*};
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Acc for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { self.wrapping_mul(b).wrapping_add(c) }
        }
        impl GemmElem for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(x: $t) -> Self { x }
            // SAFETY: as for [`gemm`].
            unsafe fn multiply(p: &Problem<Self>) { tiles(p, wrapping_tile::<$t>); }
        }
    )*};
}
integers!(u8, i8, i16, i32, i64);

impl GemmElem for bf16 {
    type Acc = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        bf16::from_f32(x)
    }
    // SAFETY: as for [`gemm`].
    unsafe fn multiply(p: &Problem<Self>) {
        tiles(p, float_tile);
    }
}

impl GemmElem for f16 {
    type Acc = f32;
    /// Without branches, so that it becomes vector code.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = self.to_bits() as u32;
        // The product with 2^112 moves the exponent's bias, for subnormals too.
        let x = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
        let x = if bits & 0x7c00 == 0x7c00 {
            x.to_bits() | 0x7f80_0000
        } else {
            x.to_bits()
        };
        f32::from_bits(x | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Self {
        f16::from_f32(x)
    }
    // SAFETY: as for [`gemm`].
    unsafe fn multiply(p: &Problem<Self>) {
        tiles(p, float_tile);
    }
}

/// A matrix in memory: its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
struct Mat<P> {
    ptr: P,
    rs: isize,
    cs: isize,
}

impl<T: GemmElem> Mat<*const T> {
    // SAFETY: row `i` and column `j` lie inside the matrix.
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize) -> *const T {
        self.ptr.offset(i as isize * self.rs + j as isize * self.cs)
    }

    // SAFETY: row `i` and column `j` lie inside the matrix, which is readable.
    #[inline(always)]
    unsafe fn get(&self, i: usize, j: usize) -> T::Acc {
        (*self.at(i, j)).widen()
    }

    fn transposed(self) -> Self {
        Mat {
            ptr: self.ptr,
            rs: self.cs,
            cs: self.rs,
        }
    }
}

impl<T> Mat<*mut T> {
    // SAFETY: row `i` and column `j` lie inside the matrix.
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize) -> *mut T {
        self.ptr.offset(i as isize * self.rs + j as isize * self.cs)
    }
}

/// One multiplication, whole or a panel of it.
#[derive(Clone, Copy)]
pub struct Problem<T: GemmElem> {
    m: usize,
    n: usize,
    k: usize,
    alpha: T::Acc,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: T::Acc,
    c: Mat<*mut T>,
}

// SAFETY: threads get panels whose parts of C are disjoint; A and B are only read.
unsafe impl<T: GemmElem> Sync for Problem<T> {}

impl<T: GemmElem> Problem<T> {
    /// Writes alpha * x + beta * c; c is not read where beta is zero.
    // SAFETY: row `i` and column `j` lie inside C, and no other thread touches that element.
    #[inline(always)]
    unsafe fn put(&self, i: usize, j: usize, x: T::Acc) {
        let c = self.c.at(i, j);
        let rest = if self.beta == Acc::ZERO {
            T::Acc::ZERO
        } else {
            self.beta.fma((*c).widen(), T::Acc::ZERO)
        };
        *c = T::narrow(self.alpha.fma(x, rest));
    }

    /// The same problem with the roles of A and B exchanged: C' = B' A'.
    fn transposed(self) -> Self {
        let (a, b) = (self.b.transposed(), self.a.transposed());
        let c = Mat {
            ptr: self.c.ptr,
            rs: self.c.cs,
            cs: self.c.rs,
        };
        Problem {
            m: self.n,
            n: self.m,
            a,
            b,
            c,
            ..self
        }
    }

    /// The part that makes `m` rows from row `i` on.
    // SAFETY: `i + m` is at most the number of rows.
    unsafe fn rows(&self, i: usize, m: usize) -> Self {
        let a = Mat {
            ptr: self.a.at(i, 0),
            ..self.a
        };
        let c = Mat {
            ptr: self.c.at(i, 0),
            ..self.c
        };
        Problem { m, a, c, ..*self }
    }
}

/// Compiles a function for each instruction set and calls the best one.
macro_rules! leveled {
    ($(#[$doc:meta])* fn $name:ident<T: GemmElem>($($arg:ident: $t:ty),*) $body:block) => {
        $(#[$doc])*
        unsafe fn $name<T: GemmElem>($($arg: $t),*) {
            // SAFETY: as for the function around it.
            #[inline(always)]
            unsafe fn plain<T: GemmElem>($($arg: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                // SAFETY: as for the function around it, which has asked `level`.
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2<T: GemmElem>($($arg: $t),*) { plain($($arg),*) }
                // SAFETY: as for the function around it, which has asked `level`.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512<T: GemmElem>($($arg: $t),*) { plain($($arg),*) }
                match level() {
                    Level::Avx512 => return avx512($($arg),*),
                    Level::Avx2 => return avx2($($arg),*),
                    Level::Portable => {}
                }
            }
            plain($($arg),*)
        }
    };
}

/// C = alpha * A B + beta * C for an m x k matrix A and a k x n matrix B.
///
/// `rs` and `cs` are the steps, in elements, to the next row and column; any sign, zero for A and B.
/// Where `beta` is zero C is not read. Splits the work over the pool unless called inside it.
///
/// # Safety
/// Every element that the sizes and steps name lies in memory that may be read (A, B) or written
/// (C). Elements of C are distinct, and none lies in A or B.
pub unsafe fn gemm<T: GemmElem>(
    m: usize,
    n: usize,
    k: usize,
    alpha: T::Acc,
    a: *const T,
    a_rs: isize,
    a_cs: isize,
    b: *const T,
    b_rs: isize,
    b_cs: isize,
    beta: T::Acc,
    c: *mut T,
    c_rs: isize,
    c_cs: isize,
) {
    let a = Mat {
        ptr: a,
        rs: a_rs,
        cs: a_cs,
    };
    let b = Mat {
        ptr: b,
        rs: b_rs,
        cs: b_cs,
    };
    let p = Problem {
        m,
        n,
        k,
        alpha,
        a,
        b,
        beta,
        c: Mat {
            ptr: c,
            rs: c_rs,
            cs: c_cs,
        },
    };
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 || alpha == Acc::ZERO {
        // The sum of nothing, whatever A and B hold.
        let p = Problem {
            alpha: Acc::ZERO,
            ..p
        };
        for i in 0..m {
            for j in 0..n {
                p.put(i, j, Acc::ZERO);
            }
        }
    } else if n == 1 {
        vector(&p);
    } else if m == 1 {
        vector(&p.transposed());
    } else if m.saturating_mul(n).saturating_mul(k) <= TINY {
        // Vector loops want B and C contiguous along a row.
        let flip = b_cs != 1 && a_rs == 1;
        tiny(&if flip { p.transposed() } else { p });
    } else {
        T::multiply(&p);
    }
}

leveled! {
    fn tiny<T: GemmElem>(p: &Problem<T>) {
        const W: usize = 16;
        for j in (0..p.n).step_by(W) {
            let w = W.min(p.n - j);
            for i in 0..p.m {
                let mut acc = [T::Acc::ZERO; W];
                if w == W && p.b.cs == 1 {
                    for q in 0..p.k {
                        let (x, row) = (p.a.get(i, q), p.b.at(q, j));
                        for t in 0..W {
                            acc[t] = x.fma((*row.add(t)).widen(), acc[t]);
                        }
                    }
                } else {
                    for q in 0..p.k {
                        let x = p.a.get(i, q);
                        for t in 0..w {
                            acc[t] = x.fma(p.b.get(q, j + t), acc[t]);
                        }
                    }
                }
                for t in 0..w {
                    p.put(i, j + t, acc[t]);
                }
            }
        }
    }
}

/// The product with one column.
// SAFETY: as for [`gemm`]; `p` has one column and a depth that is not zero.
unsafe fn vector<T: GemmElem>(p: &Problem<T>) {
    // The column is read once for every row: widen it and lay it out once.
    let x: Vec<T::Acc> = (0..p.k).map(|q| p.b.get(q, 0)).collect();
    let grain = VECTOR_GRAIN.div_ceil(p.k);
    // Blocks of rows, so that the parts of one column of A are long.
    let grain = if p.a.rs == 1 {
        grain.next_multiple_of(64)
    } else {
        grain
    };
    parallel_for(p.m, grain, |rows| {
        let part = p.rows(rows.start, rows.len());
        if p.a.rs == 1 && p.a.cs != 1 {
            columns(&part, &x);
        } else {
            dots(&part, &x);
        }
    });
}

leveled! {
    /// One dot product for each row of A.
    fn dots<T: GemmElem>(p: &Problem<T>, x: &[T::Acc]) {
        const W: usize = 64;
        for i in 0..p.m {
            let row = p.a.at(i, 0);
            let mut acc = [T::Acc::ZERO; W];
            let mut q = 0;
            if p.a.cs == 1 {
                while q + W <= p.k {
                    for t in 0..W {
                        acc[t] = (*row.add(q + t)).widen().fma(*x.get_unchecked(q + t), acc[t]);
                    }
                    q += W;
                }
            }
            for t in q..p.k {
                acc[t % W] = p.a.get(i, t).fma(*x.get_unchecked(t), acc[t % W]);
            }
            let mut width = W;
            while width > 1 {
                width /= 2;
                for t in 0..width {
                    acc[t] = acc[t + width].fma(Acc::ONE, acc[t]);
                }
            }
            p.put(i, 0, acc[0]);
        }
    }
}

leveled! {
    /// A sum of the columns of A, which are contiguous, for 128 rows at a time.
    fn columns<T: GemmElem>(p: &Problem<T>, x: &[T::Acc]) {
        const W: usize = 128;
        for i in (0..p.m).step_by(W) {
            let w = W.min(p.m - i);
            let mut acc = [T::Acc::ZERO; W];
            for (q, &x) in x.iter().enumerate() {
                let column = p.a.at(i, q);
                if w == W {
                    for t in 0..W {
                        acc[t] = x.fma((*column.add(t)).widen(), acc[t]);
                    }
                } else {
                    for t in 0..w {
                        acc[t] = x.fma((*column.add(t)).widen(), acc[t]);
                    }
                }
            }
            for t in 0..w {
                p.put(i + t, 0, acc[t]);
            }
        }
    }
}

/// float32 and float64: the longer side of C is cut into panels, one or two for each thread.
// SAFETY: as for [`gemm`].
unsafe fn panels<T: GemmElem<Acc = T> + Acc>(p: &Problem<T>) {
    let whole = if p.n > p.m { p.transposed() } else { *p };
    let most = (p.m.saturating_mul(p.n).saturating_mul(p.k) / GRAIN).clamp(1, num_threads());
    // Two panels each let a thread that was held up be helped; small ones would pack too often.
    let pieces = if most > 1 && whole.m >= most * 512 {
        most * 2
    } else {
        most
    };
    let height = whole.m.div_ceil(pieces).next_multiple_of(32);
    parallel_for(whole.m.div_ceil(height), 1, |r| {
        for i in r {
            let p = whole.rows(i * height, height.min(whole.m - i * height));
            let (a, b, c) = (p.a, p.b, p.c);
            let read = p.beta != T::ZERO;
            // The crate calls `alpha` what scales C, and `beta` what scales the product.
            gemm::gemm(
                p.m,
                p.n,
                p.k,
                c.ptr,
                c.cs,
                c.rs,
                read,
                a.ptr,
                a.cs,
                a.rs,
                b.ptr,
                b.cs,
                b.rs,
                p.beta,
                p.alpha,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    });
}

/// acc += A B for contiguous tiles of the given rows, columns and depth.
type TileKernel<A> = unsafe fn((usize, usize, usize), a: *const A, b: *const A, acc: *mut A);

/// Brings tiles of A and B into contiguous memory of the accumulator's type.
// SAFETY: as for [`gemm`]; `kernel` keeps to the sizes it is given.
unsafe fn tiles<T: GemmElem>(p: &Problem<T>, kernel: TileKernel<T::Acc>) {
    let p = if p.n < p.m && p.c.rs == 1 {
        p.transposed()
    } else {
        *p
    };
    let (tm, tn, tk) = TILE;
    let (rows, columns) = (p.m.div_ceil(tm), p.n.div_ceil(tn));
    let grain = (GRAIN / 4).div_ceil(tm.min(p.m) * tn.min(p.n) * p.k);
    parallel_for(rows * columns, grain, |r| {
        let room = (tm.min(p.m), tn.min(p.n), tk.min(p.k));
        let mut a = vec![T::Acc::ZERO; room.0 * room.2];
        let mut b = vec![T::Acc::ZERO; room.2 * room.1];
        let mut acc = vec![T::Acc::ZERO; room.0 * room.1];
        for tile in r {
            let (i, j) = (tile / columns * tm, tile % columns * tn);
            let (m, n) = (tm.min(p.m - i), tn.min(p.n - j));
            acc.fill(T::Acc::ZERO);
            for q in (0..p.k).step_by(tk) {
                let k = tk.min(p.k - q);
                widen(
                    Mat {
                        ptr: p.a.at(i, q),
                        ..p.a
                    },
                    m,
                    k,
                    &mut a,
                );
                widen(
                    Mat {
                        ptr: p.b.at(q, j),
                        ..p.b
                    },
                    k,
                    n,
                    &mut b,
                );
                kernel((m, n, k), a.as_ptr(), b.as_ptr(), acc.as_mut_ptr());
            }
            for s in 0..m {
                for t in 0..n {
                    p.put(i + s, j + t, acc[s * n + t]);
                }
            }
        }
    });
}

leveled! {
    /// Copies an m x n matrix into rows of n.
    fn widen<T: GemmElem>(x: Mat<*const T>, m: usize, n: usize, y: &mut [T::Acc]) {
        if x.cs != 1 && x.rs == 1 {
            for j in 0..n {
                for i in 0..m {
                    *y.get_unchecked_mut(i * n + j) = (*x.at(0, j).add(i)).widen();
                }
            }
            return;
        }
        for i in 0..m {
            let row = x.at(i, 0);
            for (j, y) in y[i * n..(i + 1) * n].iter_mut().enumerate() {
                let at = if x.cs == 1 { row.add(j) } else { row.offset(j as isize * x.cs) };
                *y = (*at).widen();
            }
        }
    }
}

// SAFETY: `a`, `b` and `acc` hold m*k, k*n and m*n elements; `acc` overlaps neither.
unsafe fn float_tile(size: (usize, usize, usize), a: *const f32, b: *const f32, acc: *mut f32) {
    let (m, n, k) = size;
    let (n_, k_) = (n as isize, k as isize);
    let none = gemm::Parallelism::None;
    gemm::gemm(
        m, n, k, acc, 1, n_, true, a, 1, k_, b, 1, n_, 1.0, 1.0, false, false, false, none,
    );
}

leveled! {
    /// The integers' tile: four rows by 32 columns of sums are kept in registers.
    fn wrapping_tile<T: GemmElem>(
        size: (usize, usize, usize),
        a: *const T,
        b: *const T,
        acc: *mut T
    ) {
        const W: usize = 32;
        let (m, n, k) = size;
        for j in (0..n).step_by(W) {
            let w = W.min(n - j);
            for i in (0..m).step_by(4) {
                if w == W && i + 4 <= m {
                    let mut sum = [[T::Acc::ZERO; W]; 4];
                    for q in 0..k {
                        let row = b.add(q * n + j);
                        for s in 0..4 {
                            let x = (*a.add((i + s) * k + q)).widen();
                            for t in 0..W {
                                sum[s][t] = x.fma((*row.add(t)).widen(), sum[s][t]);
                            }
                        }
                    }
                    for s in 0..4 {
                        for t in 0..W {
                            let y = acc.add((i + s) * n + j + t);
                            *y = T::narrow(sum[s][t].fma(Acc::ONE, (*y).widen()));
                        }
                    }
                    continue;
                }
                for s in i..m.min(i + 4) {
                    for q in 0..k {
                        let x = (*a.add(s * k + q)).widen();
                        for t in j..j + w {
                            let y = acc.add(s * n + t);
                            *y = T::narrow(x.fma((*b.add(q * n + t)).widen(), (*y).widen()));
                        }
                    }
                }
            }
        }
    }
}

/// The sum of x[i] * y[i] over `n` elements.
///
/// # Safety
/// Both steps name elements that may be read.
pub unsafe fn dot<T: GemmElem>(n: usize, x: *const T, dx: isize, y: *const T, dy: isize) -> T {
    let mut c = T::narrow(Acc::ZERO);
    gemm(
        1,
        1,
        n,
        Acc::ONE,
        x,
        0,
        dx,
        y,
        dy,
        0,
        Acc::ZERO,
        &mut c,
        1,
        1,
    );
    c
}

/// y = alpha * A x + beta * y for an m x k matrix A.
///
/// # Safety
/// As for [`gemm`].
pub unsafe fn gemv<T: GemmElem>(
    m: usize,
    k: usize,
    alpha: T::Acc,
    a: *const T,
    a_rs: isize,
    a_cs: isize,
    x: *const T,
    dx: isize,
    beta: T::Acc,
    y: *mut T,
    dy: isize,
) {
    gemm(m, 1, k, alpha, a, a_rs, a_cs, x, dx, 0, beta, y, dy, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::pool::set_num_threads;

    /// Numbers from -8 to 7 in sixteenths, exact in every type but the integers.
    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut s = seed * 2 + 1;
        let mut next = || {
            s = s
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((s >> 56) & 15) as f64 - 8.0
        };
        (0..n).map(|_| next()).collect()
    }

    fn check<T: GemmElem + PartialEq + std::fmt::Debug>(
        (m, n, k): (usize, usize, usize),
        from: fn(f64) -> T,
        acc: fn(f64) -> T::Acc,
    ) {
        let (a, b) = (numbers(m * k * 2, 1), numbers(k * n * 2, 2));
        let c: Vec<f64> = numbers(m * n * 2, 3);
        // Rows first, columns first, and every second element.
        let steps = |r: usize, c: usize| [(c as isize, 1), (1, r as isize), (2 * c as isize, 2)];
        let typed = |x: &[f64]| x.iter().map(|&x| from(x)).collect::<Vec<T>>();
        let (at, bt) = (typed(&a), typed(&b));
        for (ar, ac) in steps(m, k) {
            for (br, bc) in steps(k, n) {
                for ((cr, cc), beta) in steps(m, n).into_iter().zip([0.0, 1.0, 2.0]) {
                    let mut ct = typed(&c);
                    // SAFETY: the buffers have twice the elements that the densest steps need.
                    unsafe {
                        gemm(
                            m,
                            n,
                            k,
                            acc(2.0),
                            at.as_ptr(),
                            ar,
                            ac,
                            bt.as_ptr(),
                            br,
                            bc,
                            acc(beta),
                            ct.as_mut_ptr(),
                            cr,
                            cc,
                        );
                    }
                    for i in 0..m {
                        for j in 0..n {
                            let sum: f64 = (0..k)
                                .map(|q| {
                                    a[(i as isize * ar + q as isize * ac) as usize]
                                        * b[(q as isize * br + j as isize * bc) as usize]
                                })
                                .sum();
                            let at = (i as isize * cr + j as isize * cc) as usize;
                            assert_eq!(ct[at], from(2.0 * sum + beta * c[at]), "{m} {n} {k}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn agrees_with_plain_loops() {
        set_num_threads(4);
        let sizes = [
            (1, 1, 1),
            (1, 7, 5),
            (9, 1, 130),
            (3, 4, 5),
            (16, 17, 15),
            (33, 70, 65),
            (150, 40, 270),
            (2, 530, 9),
            (300, 2, 64),
            (5, 3, 0),
        ];
        for s in sizes {
            check::<f32>(s, |x| x as f32, |x| x as f32);
            check::<f64>(s, |x| x, |x| x);
            check::<bf16>(s, bf16::from_f64, |x| x as f32);
            check::<f16>(s, f16::from_f64, |x| x as f32);
            check::<i64>(s, |x| x as i64, |x| x as i64);
            check::<i32>(s, |x| x as i32, |x| x as i32);
            // Wraps as the low bits of the exact sum do.
            check::<i8>(s, |x| x as i64 as i8, |x| x as i8);
            check::<u8>(s, |x| x as i64 as u8, |x| x as u8);
        }
    }

    #[test]
    fn beta_zero_overwrites_nan_and_empty_sums_are_zero() {
        let x = [1.0f32; 64];
        for (m, n, k) in [(8, 8, 8), (8, 1, 8), (1, 8, 8), (8, 8, 0)] {
            let mut c = [f32::NAN; 64];
            // SAFETY: all sizes stay within 64 elements.
            unsafe {
                gemm(
                    m,
                    n,
                    k,
                    1.0,
                    x.as_ptr(),
                    8,
                    1,
                    x.as_ptr(),
                    n as isize,
                    1,
                    0.0,
                    c.as_mut_ptr(),
                    n as isize,
                    1,
                );
            }
            assert!(c[..m * n].iter().all(|&y| y == k as f32));
        }
        // SAFETY: 64 elements each.
        assert_eq!(unsafe { dot(64, x.as_ptr(), 1, x.as_ptr(), 1) }, 64.0);
    }

    #[test]
    fn half_values_widen_exactly() {
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert!(x.widen() == x.to_f32() || x.is_nan() && x.widen().is_nan());
            assert!(y.widen() == y.to_f32() || y.is_nan() && y.widen().is_nan());
        }
    }
}

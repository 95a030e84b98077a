//! Products in plain loops, by the `gemm` crate, and of integers.

use super::{part, Acc, GemmElem, Mat, Pack, Problem};
use crate::alloc::Workspace;
use crate::pool::{look, num_threads, parallel_for};
use crate::{alloc, per_isa};

/// Multiplications up to which plain loops beat packing.
pub(super) const TINY: usize = 4096;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 18;
/// Elements of a matrix-vector product that a second thread is worth.
const VECTOR_GRAIN: usize = 1 << 15;
/// Rows, columns and depth of a widened or wrapping tile.
const TILE: (usize, usize, usize) = (128, 512, 256);
/// The depth that the crate `gemm` does not cut, whatever the sides of C: how it cuts more depends on them,
/// and they on the number of threads.
const WHOLE: usize = 256;

/// A few multiplications.
pub(super) unsafe fn tiny<T: GemmElem>(p: &Problem<T>) {
    // SAFETY: `p` names elements that may be read, or written in C.
    unsafe {
        // Vector loops want B and C contiguous along a row.
        if p.b.cs != 1 && p.a.rs == 1 {
            small(&p.transposed())
        } else {
            small(p)
        }
    }
}

/// The sum of nothing, whatever A and B hold.
pub(super) unsafe fn nothing<T: GemmElem>(p: &Problem<T>) {
    let p = Problem {
        alpha: Acc::ZERO,
        ..*p
    };
    let zeros = Workspace::full(T::Acc::ZERO, p.n);
    // SAFETY: rows and columns lie inside C, which is this thread's; each row reads the same zeros.
    unsafe { narrow(&p, zeros.as_ptr(), 0) };
}

/// Writes alpha * x + beta * D for W sums from row `i` and column `j` on.
#[inline(always)]
unsafe fn narrow_part<T: GemmElem, const W: usize>(
    p: &Problem<T>,
    (i, j): (usize, usize),
    x: *const T::Acc,
) {
    // SAFETY: `x` has W sums, and C and D as many columns from `j` on.
    unsafe {
        let mut sum = [T::Acc::ZERO; W];
        let mut y = [T::narrow(T::Acc::ZERO); W];
        if p.beta == T::Acc::ZERO {
            for l in 0..W {
                sum[l] = p.alpha.fma(*x.add(l), T::Acc::ZERO);
            }
        } else {
            for l in 0..W {
                sum[l] = p.scaled(i, j + l, *x.add(l));
            }
        }
        T::narrow_all(&sum, &mut y);
        if p.c.cs == 1 {
            std::ptr::copy_nonoverlapping(y.as_ptr(), p.c.at(i, j), W);
        } else {
            for l in 0..W {
                *p.c.at(i, j + l) = y[l];
            }
        }
    }
}

per_isa! {
    /// Writes alpha * x + beta * D for sums in rows of `step`.
    pub(super) unsafe fn narrow[T: GemmElem](p: &Problem<T>, x: *const T::Acc, step: usize) {
        // SAFETY: `x` has `p.m` rows of `p.n` sums, `step` apart, and C and D have as many.
        unsafe {
            for i in 0..p.m {
                let x = x.add(i * step);
                if p.beta == T::Acc::ZERO && p.c.cs == 1 {
                    T::narrow_row(p.alpha, x, p.c.at(i, 0), p.n);
                    continue;
                }
                let mut j = 0;
                while j + 64 <= p.n {
                    narrow_part::<T, 64>(p, (i, j), x.add(j));
                    j += 64;
                }
                while j + 16 <= p.n {
                    narrow_part::<T, 16>(p, (i, j), x.add(j));
                    j += 16;
                }
                for j in j..p.n {
                    p.put(i, j, *x.add(j));
                }
            }
        }
    }
}

per_isa! {
    /// y += x.
    pub(super) unsafe fn add[T: GemmElem](n: usize, x: *const T::Acc, y: *mut T::Acc) {
        // SAFETY: `x` and `y` have `n` elements.
        unsafe {
            for i in 0..n {
                *y.add(i) = (*y.add(i)).fma(Acc::ONE, *x.add(i));
            }
        }
    }
}

/// Multiplies into rows of a temporary matrix, for a C without contiguous rows or columns.
pub(super) unsafe fn through_rows<T: GemmElem>(p: &Problem<T>) {
    // SAFETY: `rows` is a matrix of C's size, and rows and columns stay within it.
    unsafe {
        let mut rows = alloc::full(T::narrow(T::Acc::ZERO), p.m * p.n);
        let c = Mat::new(rows.as_mut_ptr(), p.n as isize, 1);
        for i in 0..p.m {
            for j in 0..p.n {
                if p.beta != T::Acc::ZERO {
                    *c.at(i, j) = *p.d.at(i, j);
                }
            }
        }
        let d = Mat::new(c.ptr as *const T, c.rs, c.cs);
        super::product(&Problem { c, d, ..*p });
        for i in 0..p.m {
            for j in 0..p.n {
                *p.c.at(i, j) = *c.at(i, j);
            }
        }
    }
}

/// Operands that pack themselves, where there are no kernels for panels.
pub(super) unsafe fn unpacked<T: GemmElem>(
    a: &dyn Pack<T::Acc>,
    b: &dyn Pack<T::Acc>,
    p: &Problem<T>,
) where
    T::Acc: GemmElem<Acc = T::Acc>,
{
    // SAFETY: parts of 32 lanes and 256 depths lie inside the operands and fit the panel; the
    // matrices have the sizes that are named.
    unsafe {
        let (m, n, k) = (p.m, p.n, p.k);
        let zero = <T::Acc as Acc>::ZERO;
        let (mut x, mut y, mut z) = (
            alloc::full(zero, m * k),
            alloc::full(zero, k * n),
            alloc::full(zero, m * n),
        );
        let mut panel = vec![zero; 32 * 256];
        for (side, lanes, to) in [(a, m, &mut x), (b, n, &mut y)] {
            for l in (0..lanes).step_by(32) {
                let w = 32.min(lanes - l);
                for q in (0..k).step_by(256) {
                    let depth = q..k.min(q + 256);
                    side.pack(l..l + w, depth.clone(), w, panel.as_mut_ptr());
                    for (row, q) in panel.chunks(w).zip(depth) {
                        to[q * lanes + l..][..w].copy_from_slice(row);
                    }
                }
            }
        }
        super::product(&Problem {
            m,
            n,
            k,
            alpha: <T::Acc as Acc>::ONE,
            a: Mat::new(x.as_ptr(), 1, m as isize),
            b: Mat::new(y.as_ptr(), n as isize, 1),
            beta: zero,
            d: Mat::new(z.as_ptr(), n as isize, 1),
            c: Mat::new(z.as_mut_ptr(), n as isize, 1),
            reduced: false,
        });
        narrow(p, z.as_ptr(), n);
    }
}

per_isa! {
    pub(super) unsafe fn small[T: GemmElem](p: &Problem<T>) {
        // SAFETY: rows, columns and depths stay below `p`'s sizes, all of which name elements.
        unsafe {
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
}

/// The product with one column.
pub(super) unsafe fn vector<T: GemmElem>(p: &Problem<T>) {
    // SAFETY: rows are parts of `p`, which has one column, and `x` has its depth.
    unsafe {
        // The column is read once for every row: widen it and lay it out once.
        let x: Vec<T::Acc> = alloc::gathered((0..p.k).map(|q| p.b.get(q, 0)));
        let grain = VECTOR_GRAIN.div_ceil(p.k);
        // Blocks of rows, so that the parts of one column of A are long.
        let grain = if p.a.rs == 1 {
            grain.next_multiple_of(64)
        } else {
            grain
        };
        parallel_for(p.m, grain, |rows| {
            let part = p.block(rows.start, 0, rows.len(), 1);
            if p.a.rs == 1 && p.a.cs != 1 {
                columns(&part, &x);
            } else {
                dots(&part, &x);
            }
        });
    }
}

per_isa! {
    /// One dot product for each row of A.
    pub(super) unsafe fn dots[T: GemmElem](p: &Problem<T>, x: &[T::Acc]) {
        // SAFETY: rows and depths stay below `p`'s sizes, and `x` has `p.k` elements.
        unsafe {
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
}

per_isa! {
    /// A sum of the columns of A, which are contiguous, for 128 rows at a time.
    pub(super) unsafe fn columns[T: GemmElem](p: &Problem<T>, x: &[T::Acc]) {
        // SAFETY: rows stay below `p.m`, and `x` has no more than `p.k` elements.
        unsafe {
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
}

/// Copies D to C where it is another matrix, for the crate, which adds to C alone.
pub(super) unsafe fn with_c<T: GemmElem>(p: &Problem<T>) -> Problem<T> {
    // SAFETY: rows and columns lie inside C and D, which `beta` says to read.
    unsafe {
        let d = Mat::new(p.c.ptr as *const T, p.c.rs, p.c.cs);
        if p.beta != T::Acc::ZERO && (d.ptr, d.rs, d.cs) != (p.d.ptr, p.d.rs, p.d.cs) {
            for i in 0..p.m {
                for j in 0..p.n {
                    *p.c.at(i, j) = *p.d.at(i, j);
                }
            }
        }
        Problem { d, ..*p }
    }
}

/// float32 and float64: the longer side of C is cut into panels, one or two for each thread.
pub(super) unsafe fn panels<T: GemmElem<Acc = T> + Acc>(p: &Problem<T>) {
    // SAFETY: panels of rows lie inside C and are disjoint; sizes and steps are those of `p`.
    unsafe {
        let whole = if p.n > p.m { p.transposed() } else { *p };
        let whole = with_c(&whole);
        let most = (p.m.saturating_mul(p.n).saturating_mul(p.k) / GRAIN).clamp(1, num_threads());
        // Two panels each let a thread that was held up be helped; small ones would pack too often.
        let pieces = if most > 1 && whole.m >= most * 512 {
            most * 2
        } else {
            most
        };
        let height = whole.m.div_ceil(pieces).next_multiple_of(32);
        // About as high as each other: of a single row the crate makes sums in another order.
        let panels = whole.m.div_ceil(height);
        alloc::spare(p.m.saturating_mul(p.n).saturating_mul(p.k));
        parallel_for(panels, 1, |r| {
            for i in r {
                let rows = part(whole.m, panels, i);
                let p = whole.block(rows.start, 0, rows.len(), whole.n);
                let pieces = p.k.div_ceil(WHOLE);
                for q in 0..pieces {
                    let depth = part(p.k, pieces, q);
                    let (a, b, c) = (p.a.at(0, depth.start), p.b.at(depth.start, 0), p.c);
                    let scale = if q == 0 { p.beta } else { T::ONE };
                    // The crate calls `alpha` what scales C, and `beta` what scales the product.
                    gemm::gemm(
                        p.m,
                        p.n,
                        depth.len(),
                        c.ptr,
                        c.cs,
                        c.rs,
                        scale != T::ZERO,
                        a,
                        p.a.cs,
                        p.a.rs,
                        b,
                        p.b.cs,
                        p.b.rs,
                        scale,
                        p.alpha,
                        false,
                        false,
                        false,
                        gemm::Parallelism::None,
                    );
                }
            }
        });
    }
}

/// acc += A B for contiguous tiles of the given rows, columns and depth.
type TileKernel<A> = unsafe fn((usize, usize, usize), a: *const A, b: *const A, acc: *mut A);

/// Brings tiles of A and B into contiguous memory of the accumulator's type.
pub(super) unsafe fn tiles<T: GemmElem>(p: &Problem<T>, kernel: TileKernel<T::Acc>) {
    // SAFETY: tiles lie inside C and are disjoint, their buffers hold a tile of each, and `kernel`
    // keeps to the sizes it is given.
    unsafe {
        let p = if p.n < p.m && p.c.rs == 1 {
            p.transposed()
        } else {
            *p
        };
        let (tm, tn, tk) = TILE;
        let (rows, columns) = (p.m.div_ceil(tm), p.n.div_ceil(tn));
        alloc::spare(p.m.saturating_mul(p.n).saturating_mul(p.k));
        let grain = (GRAIN / 4).div_ceil(tm.min(p.m) * tn.min(p.n) * p.k);
        parallel_for(rows * columns, grain, |r| {
            let room = (tm.min(p.m), tn.min(p.n), tk.min(p.k));
            let mut a = Workspace::full(T::Acc::ZERO, room.0 * room.2);
            let mut b = Workspace::full(T::Acc::ZERO, room.2 * room.1);
            let mut acc = Workspace::full(T::Acc::ZERO, room.0 * room.1);
            let (a, b, acc) = (&mut a[..], &mut b[..], &mut acc[..]);
            for tile in r {
                look();
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
                        a,
                    );
                    widen(
                        Mat {
                            ptr: p.b.at(q, j),
                            ..p.b
                        },
                        k,
                        n,
                        b,
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
}

per_isa! {
    /// Copies an m x n matrix into rows of n.
    pub(super) unsafe fn widen[T: GemmElem](x: Mat<*const T>, m: usize, n: usize, y: &mut [T::Acc]) {
        // SAFETY: `x` has m rows of n elements, and `y` room for them.
        unsafe {
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
}

pub(super) unsafe fn float_tile(
    size: (usize, usize, usize),
    a: *const f32,
    b: *const f32,
    acc: *mut f32,
) {
    // SAFETY: `a`, `b` and `acc` hold m*k, k*n and m*n elements; `acc` overlaps neither.
    unsafe {
        let (m, n, k) = size;
        let (n_, k_) = (n as isize, k as isize);
        let none = gemm::Parallelism::None;
        gemm::gemm(
            m, n, k, acc, 1, n_, true, a, 1, k_, b, 1, n_, 1.0, 1.0, false, false, false, none,
        );
    }
}

/// Sums in whole cache lines: half of the loads would cross from one into the next where the
/// stack happens to lie 8 bytes after one.
#[repr(align(64))]
struct Lines<T, const W: usize>([[T; W]; 4]);

per_isa! {
    /// The integers' tile: four rows by 32 columns of sums are kept in the first cache.
    pub(super) unsafe fn wrapping_tile[T: GemmElem](
        size: (usize, usize, usize),
        a: *const T,
        b: *const T,
        acc: *mut T
    ) {
        // SAFETY: `a`, `b` and `acc` hold m*k, k*n and m*n elements; `acc` overlaps neither.
        unsafe {
            const W: usize = 32;
            let (m, n, k) = size;
            for j in (0..n).step_by(W) {
                let w = W.min(n - j);
                for i in (0..m).step_by(4) {
                    if w == W && i + 4 <= m {
                        let Lines(sum) = &mut Lines([[T::Acc::ZERO; W]; 4]);
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
}

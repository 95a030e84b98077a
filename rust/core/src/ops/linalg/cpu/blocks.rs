//! LU of large matrices, whose columns lie one after another: halves of the columns by recursion
//! (Toledo 1997, SIAM J. Matrix Anal. 18), so that most of the work is in products, which threads
//! share out, as they do the columns of triangular systems. Cuts depend on sizes alone.

use super::{full, gathered, params, plu, tri, Number, Room, SEQ};
use crate::cpu::gemm::gemm;
use crate::cpu::pool::{parallel_for, Ptr};
use faer::MatRef;

/// Columns from which on it is quicker than one thread.
pub const LEAST: usize = 192;
/// Columns that are factored at once.
const BASE: usize = 64;
/// Columns that one task takes.
pub const CHUNK: usize = 64;

/// A part of a matrix: its first element, rows, columns, and the step between these.
#[derive(Clone, Copy)]
struct Part<T> {
    at: Ptr<T>,
    m: usize,
    n: usize,
    step: usize,
}

impl<T> Part<T> {
    /// From row `i` and column `j` on.
    fn from(self, i: usize, j: usize) -> Part<T> {
        Part {
            at: Ptr(self.at.get().wrapping_add(j * self.step + i)),
            m: self.m - i,
            n: self.n - j,
            ..self
        }
    }

    /// The elements of column `j`.
    /// SAFETY: nobody else uses the column while the slice lives.
    unsafe fn column<'a>(self, j: usize) -> &'a mut [T] {
        // SAFETY: the part has this column.
        unsafe { self.at.part(j * self.step..j * self.step + self.m) }
    }
}

/// Calls `f` with ranges of columns, on several threads where there is work for them.
fn each_chunk(n: usize, f: impl Fn(usize, usize) + Sync) {
    parallel_for(n.div_ceil(CHUNK), 1, |range| {
        for first in range.map(|c| c * CHUNK) {
            f(first, n.min(first + CHUNK));
        }
    });
}

/// Exchanges rows of `right` as in the columns of `left`, and solves with their unit triangle for
/// the rows that these have.
/// SAFETY: both are parts of one matrix, apart, with the same rows, that nobody else uses.
unsafe fn follow<T: Number>(left: Part<T>, right: Part<T>, pivots: &[usize]) {
    let k = pivots.len();
    each_chunk(right.n, |first, end| {
        // SAFETY: columns of this chunk are its own, those on the left are only read.
        unsafe {
            for j in first..end {
                let column = right.column(j);
                for (i, &p) in pivots.iter().enumerate() {
                    column.swap(i, p);
                }
            }
            let step = left.step as isize;
            let l = MatRef::from_raw_parts(left.at.get().cast_const(), k, k, 1, step);
            let at = right.at.at(first * right.step);
            let b = faer::MatMut::from_raw_parts_mut(at, k, end - first, 1, step);
            tri::solve_unit_lower_triangular_in_place(l, b, SEQ);
        }
    });
}

/// Factors a part of no more columns than rows.
/// SAFETY: nobody else uses the part.
unsafe fn factor<T: Number>(a: Part<T>, pivots: &mut [usize], room: &mut Room<T>) {
    if a.n <= BASE {
        let (mut perm, mut inverse) = (full(0, a.m), full(0, a.m));
        let stack = room.get(plu::lu_in_place_scratch::<usize, T>(
            a.m,
            a.n,
            SEQ,
            params(),
        ));
        // SAFETY: the caller's part.
        let x = unsafe {
            let step = a.step as isize;
            faer::MatMut::from_raw_parts_mut(a.at.get(), a.m, a.n, 1, step)
        };
        plu::lu_in_place(x, &mut perm, &mut inverse, SEQ, stack, params());
        return exchanges(&perm, pivots);
    }
    let half = (a.n / 2).next_multiple_of(16);
    let (left, right) = (Part { n: half, ..a }, a.from(0, half));
    let (first, second) = pivots.split_at_mut(half);
    // SAFETY: parts of the caller's, apart where one is written.
    unsafe {
        factor(left, first, room);
        follow(left, right, first);
        let (below, rest) = (left.from(half, 0), right.from(half, 0));
        let step = a.step as isize;
        gemm(
            rest.m,
            rest.n,
            half,
            T::of_f64(-1.0),
            below.at.get(),
            1,
            step,
            right.at.get(),
            1,
            step,
            T::of_f64(1.0),
            rest.at.get(),
            1,
            step,
        );
        factor(rest, second, room);
        each_chunk(half, |first, end| {
            for j in first..end {
                // SAFETY: columns of this chunk are its own.
                let column = below.column(j);
                for (i, &p) in second.iter().enumerate() {
                    column.swap(i, p);
                }
            }
        });
    }
    second.iter_mut().for_each(|p| *p += half);
}

/// The row that is exchanged with each of the first ones, in turn, to make a permutation.
pub fn exchanges(perm: &[usize], pivots: &mut [usize]) {
    let mut order = gathered(0..perm.len());
    let mut place = order.clone();
    for (i, to) in pivots.iter_mut().enumerate() {
        let p = place[perm[i]];
        *to = p;
        order.swap(i, p);
        place[order[p]] = p;
    }
}

/// Factors `m` rows of `n` columns; `pivots` has as many as there are of the fewer.
pub fn lu<T: Number>(x: &mut [T], m: usize, n: usize, pivots: &mut [usize], room: &mut Room<T>) {
    let k = m.min(n);
    let all = Part {
        at: Ptr(x.as_mut_ptr()),
        m,
        n,
        step: m,
    };
    let left = Part { n: k, ..all };
    // SAFETY: all of `x`, which is this call's.
    unsafe {
        factor(left, pivots, room);
        if k < n {
            follow(left, all.from(0, k), pivots);
        }
    }
}

/// Writes the inverse of a matrix to `y`, from the factors in `lu` and the order of its rows: column
/// after column, as many at a time as tasks take, as U^-1 L^-1 P. What L^-1 has above is not computed.
pub fn inverse<T: Number>(lu: &[T], n: usize, order: &[usize], y: &mut [T]) {
    let (lu, to) = (Ptr(lu.as_ptr().cast_mut()), Ptr(y.as_mut_ptr()));
    each_chunk(n, |first, end| {
        let (k, step) = (end - first, n as isize);
        let mut x = full(T::default(), n * k);
        for j in 0..k {
            x[j * n + first + j] = T::of_f64(1.0);
        }
        // The part of the factors, which are only read, from this row and column on.
        let from = |i: usize| {
            let at = lu.get().wrapping_add(i * n + i).cast_const();
            // SAFETY: as many rows and columns are left from there on.
            unsafe { MatRef::from_raw_parts(at, n - i, n - i, 1, step) }
        };
        let mut below = |i: usize| {
            // SAFETY: columns of `x`, which is this task's, without their first rows.
            unsafe { faer::MatMut::from_raw_parts_mut(x[i..].as_mut_ptr(), n - i, k, 1, step) }
        };
        tri::solve_unit_lower_triangular_in_place(from(first), below(first), SEQ);
        tri::solve_upper_triangular_in_place(from(0), below(0), SEQ);
        for (column, &j) in x.chunks(n).zip(&order[first..end]) {
            // SAFETY: each column has one place, in `y`, which has `n` of them.
            unsafe { to.part(j * n..(j + 1) * n) }.copy_from_slice(column);
        }
    });
}

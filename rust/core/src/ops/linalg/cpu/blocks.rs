//! LU of large matrices, whose columns lie one after another: halves of the columns by recursion
//! (Toledo 1997, SIAM J. Matrix Anal. 18), so that most of the work is in products, which threads
//! share out, as they do the columns of triangular systems. Cuts depend on sizes alone.

use super::panel::{FEW, TALL, WIDTH};
use super::{full, gathered, Number};
use crate::cpu::gemm::gemm;
use crate::cpu::pool::{parallel_for, Ptr};

/// Columns from which on it is quicker than `faer`'s.
pub const LEAST: usize = 192;
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
}

/// Calls `f` with ranges of columns, on several threads where there is work for them.
fn each_chunk(n: usize, f: impl Fn(usize, usize) + Sync) {
    parallel_for(n.div_ceil(CHUNK), 1, |range| {
        for first in range.map(|c| c * CHUNK) {
            f(first, n.min(first + CHUNK));
        }
    });
}

/// Exchanges rows of a few columns at a time, which stay in the first cache.
/// SAFETY: nobody else uses columns `first` to `end`.
unsafe fn exchange<T>(a: Part<T>, first: usize, end: usize, moves: &[(usize, usize)]) {
    const COLUMNS: usize = 4;
    for j in (first..end).step_by(COLUMNS) {
        let x = a.at.get().wrapping_add(j * a.step);
        for &(i, p) in moves {
            for c in 0..COLUMNS.min(end - j) {
                // SAFETY: the part has these columns and rows.
                unsafe {
                    let x = x.add(c * a.step);
                    std::ptr::swap(x.add(i), x.add(p));
                }
            }
        }
    }
}

/// The rows of a part that do exchange.
fn moves(pivots: &[usize]) -> Vec<(usize, usize)> {
    let mut moves = gathered(pivots.iter().copied().enumerate());
    moves.retain(|&(i, p)| i != p);
    moves
}

/// C = C - A B of columns `step` from each other.
/// SAFETY: nobody else uses C, which is apart.
unsafe fn subtract<T: Number>(
    (m, n, k): (usize, usize, usize),
    a: *const T,
    b: *const T,
    c: *mut T,
    step: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        if n.max(k) <= FEW {
            return T::subtract((m, n, k), a, b, c, step);
        }
        let (minus, one, step) = (T::of_f64(-1.0), T::of_f64(1.0), step as isize);
        gemm(m, n, k, minus, a, 1, step, b, 1, step, one, c, 1, step);
    }
}

/// Solves L X = B by a unit triangle of `k` rows, halved until products are small.
/// SAFETY: nobody else uses the `n` columns of `b`.
unsafe fn solve<T: Number>(l: *const T, k: usize, b: *mut T, n: usize, step: usize) {
    // SAFETY: the caller's.
    unsafe {
        if k <= TALL {
            return T::solve((l, step), k, (b, step), n);
        }
        let half = (k / 2).next_multiple_of(TALL);
        solve(l, half, b, n, step);
        let below = b.add(half);
        subtract((k - half, n, half), l.add(half), b, below, step);
        solve(l.add(half * step + half), k - half, below, n, step);
    }
}

/// Solves U X = B by a triangle of `k` rows, halved as in [`solve`].
/// SAFETY: nobody else uses the `n` columns of `b`.
unsafe fn solve_upper<T: Number>(u: *const T, k: usize, b: *mut T, n: usize, step: usize) {
    // SAFETY: the caller's.
    unsafe {
        if k <= TALL {
            return T::solve_upper((u, step), k, (b, step), n);
        }
        let half = (k / 2).next_multiple_of(TALL);
        let (above, below) = (u.add(half * step), b.add(half));
        solve_upper(above.add(half), k - half, below, n, step);
        subtract((half, n, k - half), above, below, b, step);
        solve_upper(u, half, b, n, step);
    }
}

/// Exchanges rows of `right` as in the columns of `left`, and solves with their unit triangle for
/// the rows that these have.
/// SAFETY: both are parts of one matrix, apart, with the same rows, that nobody else uses.
unsafe fn follow<T: Number>(left: Part<T>, right: Part<T>, pivots: &[usize]) {
    let moves = moves(pivots);
    each_chunk(right.n, |first, end| {
        // SAFETY: columns of this chunk are its own, those on the left are only read.
        unsafe {
            exchange(right, first, end, &moves);
            let b = right.at.at(first * right.step);
            solve(left.at.get(), pivots.len(), b, end - first, left.step);
        }
    });
}

/// Factors a part of no more columns than rows.
/// SAFETY: nobody else uses the part.
unsafe fn factor<T: Number>(a: Part<T>, pivots: &mut [usize]) {
    if a.n <= WIDTH {
        // SAFETY: the caller's part.
        return unsafe { T::factor(a.at.get(), a.m, a.n, a.step, pivots) };
    }
    let half = (a.n / 2).next_multiple_of(WIDTH);
    let (left, right) = (Part { n: half, ..a }, a.from(0, half));
    let (first, second) = pivots.split_at_mut(half);
    // SAFETY: parts of the caller's, apart where one is written.
    unsafe {
        factor(left, first);
        follow(left, right, first);
        let (below, rest) = (left.from(half, 0), right.from(half, 0));
        let size = (rest.m, rest.n, half);
        let (l, u) = (below.at.get(), right.at.get());
        subtract(size, l, u, rest.at.get(), a.step);
        factor(rest, second);
        let moves = moves(second);
        // Columns of a chunk are its own.
        each_chunk(half, |first, end| exchange(below, first, end, &moves));
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
pub fn lu<T: Number>(x: &mut [T], m: usize, n: usize, pivots: &mut [usize]) {
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
        factor(left, pivots);
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
        let k = end - first;
        let mut x = full(T::default(), n * k);
        for j in 0..k {
            x[j * n + first + j] = T::of_f64(1.0);
        }
        let (at, b) = (first * n + first, x.as_mut_ptr());
        // SAFETY: the factors, which are only read, and `x`, which is this task's, have `n` rows.
        unsafe {
            solve(lu.at(at).cast_const(), n - first, b.add(first), k, n);
            solve_upper(lu.get().cast_const(), n, b, k, n);
        }
        for (column, &j) in x.chunks(n).zip(&order[first..end]) {
            // SAFETY: each column has one place, in `y`, which has `n` of them.
            unsafe { to.part(j * n..(j + 1) * n) }.copy_from_slice(column);
        }
    });
}

//! Factorisations of large matrices, real or complex, whose columns lie one after another: halves of the
//! columns by recursion (Toledo 1997, SIAM J. Matrix Anal. 18), so that most of the work is in products,
//! which threads share out, as they do the columns of triangular systems. Cuts depend on sizes alone.

use super::field::{Held, Operand, Place};
use super::gathered;
use super::panel::{self, FEW, TALL, WIDTH};
use crate::cpu::pool::parallel_for;

/// Columns from which on LU of real matrices is quicker than `faer`'s.
pub const LEAST: usize = 192;
/// Columns that one task takes.
pub const CHUNK: usize = 64;

/// A part of a matrix: its first element, rows, columns, and the step between these.
#[derive(Clone, Copy)]
pub struct Part<P> {
    pub at: P,
    pub m: usize,
    pub n: usize,
    pub step: usize,
}

impl<P: Place> Part<P> {
    /// From row `i` and column `j` on.
    pub fn from(self, i: usize, j: usize) -> Part<P> {
        Part {
            at: self.at.add(j * self.step + i),
            m: self.m - i,
            n: self.n - j,
            ..self
        }
    }
    fn operand(self) -> Operand<P> {
        Operand::columns(self.at, self.step)
    }
}

/// Calls `f` with ranges of columns, on several threads where there is work for them.
pub fn each_chunk(n: usize, f: impl Fn(usize, usize) + Sync) {
    parallel_for(n.div_ceil(CHUNK), 1, |range| {
        for first in range.map(|c| c * CHUNK) {
            f(first, n.min(first + CHUNK));
        }
    });
}

/// Exchanges rows of a few columns at a time, which stay in the first cache.
/// SAFETY: nobody else uses columns `first` to `end`.
unsafe fn exchange<P: Place>(a: Part<P>, first: usize, end: usize, moves: &[(usize, usize)]) {
    const COLUMNS: usize = 4;
    for j in (first..end).step_by(COLUMNS) {
        for &(i, p) in moves {
            for c in j..end.min(j + COLUMNS) {
                let x = a.at.add(c * a.step);
                // SAFETY: the part has these columns and rows.
                unsafe { panel::exchange(x.add(i), x.add(p)) };
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
unsafe fn subtract<P: Place>(size: (usize, usize, usize), a: P, b: P, c: P, step: usize) {
    let (_, n, k) = size;
    // SAFETY: nobody else uses C, which is apart.
    unsafe {
        if n.max(k) <= FEW {
            return panel::subtract(size, a, b, c, step);
        }
        let [a, b, c] = [a, b, c].map(|x| Operand::columns(x, step));
        P::product(size, -1.0, a, b, 1.0, c);
    }
}

/// As [`subtract`], with columns of B and C at another step than those of A.
/// SAFETY: nobody else uses C, which is apart.
unsafe fn subtract_apart<P: Place>(
    size: (usize, usize, usize),
    (a, a_step): (P, usize),
    b: P,
    c: P,
    step: usize,
) {
    let [b, c] = [b, c].map(|x| Operand::columns(x, step));
    // SAFETY: nobody else uses C, which is apart.
    unsafe { P::product(size, -1.0, Operand::columns(a, a_step), b, 1.0, c) };
}

/// Solves L X = B by a unit triangle of `k` rows, halved until products are small.
/// SAFETY: nobody else uses the `n` columns of `b`.
pub unsafe fn solve<P: Place>((l, step): (P, usize), k: usize, (b, b_step): (P, usize), n: usize) {
    // SAFETY: nobody else uses the `n` columns of `b`.
    unsafe {
        if k <= TALL {
            return panel::solve((l, step), k, (b, b_step), n);
        }
        let half = (k / 2).next_multiple_of(TALL);
        solve((l, step), half, (b, b_step), n);
        let below = b.add(half);
        subtract_apart((k - half, n, half), (l.add(half), step), b, below, b_step);
        let rest = (l.add(half * step + half), step);
        solve(rest, k - half, (below, b_step), n);
    }
}

/// Solves U X = B by a triangle of `k` rows, halved as in [`solve`].
/// SAFETY: nobody else uses the `n` columns of `b`.
pub unsafe fn solve_upper<P: Place>(
    (u, step): (P, usize),
    k: usize,
    (b, b_step): (P, usize),
    n: usize,
) {
    // SAFETY: nobody else uses the `n` columns of `b`.
    unsafe {
        if k <= TALL {
            return panel::solve_upper((u, step), k, (b, b_step), n);
        }
        let half = (k / 2).next_multiple_of(TALL);
        let (above, below) = (u.add(half * step), b.add(half));
        solve_upper((above.add(half), step), k - half, (below, b_step), n);
        subtract_apart((half, n, k - half), (above, step), below, b, b_step);
        solve_upper((u, step), half, (b, b_step), n);
    }
}

/// Exchanges rows of `right` as in the columns of `left`, and solves with their unit triangle for
/// the rows that these have.
/// SAFETY: both are parts of one matrix, apart, with the same rows, that nobody else uses.
unsafe fn follow<P: Place>(left: Part<P>, right: Part<P>, pivots: &[usize]) {
    let moves = moves(pivots);
    each_chunk(right.n, |first, end| {
        // SAFETY: columns of this chunk are its own, those on the left are only read.
        unsafe {
            exchange(right, first, end, &moves);
            let b = (right.at.add(first * right.step), right.step);
            solve((left.at, left.step), pivots.len(), b, end - first);
        }
    });
}

/// Factors a part of no more columns than rows.
/// SAFETY: nobody else uses the part.
unsafe fn factor<P: Place>(a: Part<P>, pivots: &mut [usize]) {
    if a.n <= WIDTH {
        // SAFETY: nobody else uses the part.
        return unsafe { panel::factor(a.at, a.m, a.n, a.step, pivots) };
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
        subtract(size, below.at, right.at, rest.at, a.step);
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

/// Factors a matrix; `pivots` has as many as there are of the fewer of rows and columns.
/// SAFETY: nobody else uses the matrix.
pub unsafe fn lu<P: Place>(all: Part<P>, pivots: &mut [usize]) {
    let k = all.m.min(all.n);
    let left = Part { n: k, ..all };
    // SAFETY: nobody else uses the matrix.
    unsafe {
        factor(left, pivots);
        if k < all.n {
            follow(left, all.from(0, k), pivots);
        }
    }
}

/// Overwrites the columns of `b` with the solutions for a matrix of which [`lu`] made `a`.
/// SAFETY: `b` has as many rows; nobody else uses them.
pub unsafe fn solve_all<P: Place>(a: Part<P>, pivots: &[usize], b: Part<P>) {
    let moves = moves(pivots);
    each_chunk(b.n, |first, end| {
        // SAFETY: columns of this chunk are its own.
        unsafe {
            exchange(b, first, end, &moves);
            let to = (b.at.add(first * b.step), b.step);
            solve((a.at, a.step), a.n, to, end - first);
            solve_upper((a.at, a.step), a.n, to, end - first);
        }
    });
}

/// Gives `write` the columns of the inverse of a matrix, whose factors and order of rows these are: as
/// many at a time as tasks take, as U^-1 L^-1 P. What L^-1 has above is not computed.
/// SAFETY: the matrix is square, and is not written meanwhile.
pub unsafe fn inverse<P: Place>(lu: Part<P>, order: &[usize], write: impl Fn(usize, P) + Sync) {
    use super::field::Entry;
    let n = lu.n;
    each_chunk(n, |first, end| {
        let k = end - first;
        let mut x = Held::<P>::zeros(n * k);
        let b = x.at();
        // SAFETY: the factors, which are only read, and `x`, which is this task's, have `n` rows.
        unsafe {
            for j in 0..k {
                b.add(j * n + first + j)
                    .put(P::Entry::of(crate::cpu::simd::Lane::UNIT));
            }
            let from = lu.from(first, first);
            solve((from.at, from.step), n - first, (b.add(first), n), k);
            solve_upper((lu.at, lu.step), n, (b, n), k);
        }
        for (i, &j) in order[first..end].iter().enumerate() {
            write(j, b.add(i * n));
        }
    });
}

/// Factors a part of a Hermitian matrix from a place on the diagonal on, with at least as many rows as
/// columns, as L L': what is below the diagonal. Gives the column whose minor is not positive.
/// SAFETY: nobody else uses the part.
pub unsafe fn cholesky<P: Place>(a: Part<P>) -> Option<usize> {
    if a.n <= WIDTH {
        // SAFETY: nobody else uses the part.
        return unsafe { panel::cholesky(a.at, a.m, a.n, a.step) };
    }
    let half = (a.n / 2).next_multiple_of(WIDTH);
    let (left, rest) = (Part { n: half, ..a }, a.from(half, half));
    // SAFETY: parts of the caller's, apart where one is written.
    unsafe {
        if let Some(found) = cholesky(left) {
            return Some(found);
        }
        let below = left.from(half, 0);
        each_chunk(rest.n, |first, end| {
            let (rows, to) = (below.from(first, 0), rest.from(first, first));
            let size = (rows.m, end - first, half);
            P::product(
                size,
                -1.0,
                rows.operand(),
                rows.operand().adjoint(),
                1.0,
                to.operand(),
            );
        });
        cholesky(rest).map(|found| half + found)
    }
}

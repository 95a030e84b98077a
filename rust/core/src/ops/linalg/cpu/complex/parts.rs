//! Complex matrices between tensors, where the parts of a number lie side by side in rows, and blocked
//! factorisations, where they lie apart in columns.

use super::super::blocks::Part;
use super::super::field::{Complex, Held, Place, Planes};
use super::super::Precision;

/// Rows and columns that are turned at once, which the first cache holds.
const SQUARE: usize = 16;

/// A matrix in columns of its own.
pub struct Columns<T: Precision> {
    held: Held<Planes<T>>,
    pub m: usize,
    pub n: usize,
}

impl<T: Precision> Columns<T> {
    /// Zeros.
    pub fn zeros(m: usize, n: usize) -> Self {
        Columns {
            held: Held::zeros(m * n),
            m,
            n,
        }
    }
    /// Of `m` rows of `n`; where `reversed` both from the last to the first.
    pub fn of(a: &[Complex<T>], m: usize, n: usize, reversed: bool) -> Self {
        let mut out = Columns::zeros(m, n);
        out.load(a, reversed, reversed);
        out
    }
    /// Takes rows of as many columns.
    pub fn load(&mut self, a: &[Complex<T>], rows_reversed: bool, columns_reversed: bool) {
        let (m, n) = (self.m, self.n);
        assert!(a.len() >= m * n, "there are all rows");
        let to = self.held.at();
        squares(m, n, |i, j| {
            let row = if rows_reversed { m - 1 - i } else { i };
            let column = if columns_reversed { n - 1 - j } else { j };
            // SAFETY: row `i` and column `j` lie inside the matrix, which is this call's.
            unsafe { to.add(j * m + i).put(a[row * n + column]) };
        });
    }
    /// Gives the first `n` columns as rows, from the last to the first where `reversed`.
    pub fn store(&self, y: &mut [Complex<T>], n: usize, reversed: bool) {
        let m = self.m;
        assert!(
            y.len() >= m * n && n <= self.n,
            "there is room for all rows"
        );
        let from = self.held.seen();
        squares(m, n, |i, j| {
            let row = if reversed { m - 1 - i } else { i };
            // SAFETY: row `i` and column `j` lie inside the matrix.
            y[row * n + j] = unsafe { from.add(j * m + i).get() };
        });
    }
    /// The whole, to be written.
    pub fn part(&mut self) -> Part<Planes<T>> {
        Part {
            at: self.held.at(),
            m: self.m,
            n: self.n,
            step: self.m,
        }
    }
    /// The whole, to be read.
    pub fn seen(&self) -> Part<Planes<T>> {
        Part {
            at: self.held.seen(),
            m: self.m,
            n: self.n,
            step: self.m,
        }
    }
    pub fn at(&self, i: usize, j: usize) -> Complex<T> {
        assert!(i < self.m && j < self.n, "the element is there");
        // SAFETY: just checked.
        unsafe { self.held.seen().add(j * self.m + i).get() }
    }
}

/// Calls `f` with rows and columns, square after square.
#[inline(always)]
fn squares(m: usize, n: usize, mut f: impl FnMut(usize, usize)) {
    for top in (0..m).step_by(SQUARE) {
        for left in (0..n).step_by(SQUARE) {
            for i in top..m.min(top + SQUARE) {
                for j in left..n.min(left + SQUARE) {
                    f(i, j);
                }
            }
        }
    }
}

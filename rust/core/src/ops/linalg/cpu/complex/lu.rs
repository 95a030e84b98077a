//! Systems of complex equations: P A = L U, triangles, and L L' of Hermitian matrices.

use super::super::blocks;
use super::super::field::{Complex, Entry, Place};
use super::super::Precision;
use super::parts::Columns;
use super::{one, zero};
use crate::alloc::{self, gathered};

/// The size up to which plain loops are quicker.
const SMALL: usize = 4;

/// Row `i` minus `f` times row `k`, from column `from` on.
fn subtract<T: Precision>(
    x: &mut [Complex<T>],
    n: usize,
    (i, k): (usize, usize),
    f: Complex<T>,
    from: usize,
) {
    let (a, b) = x.split_at_mut(i.max(k) * n);
    let low = &mut a[i.min(k) * n..][from..n];
    let high = &mut b[from..n];
    let (to, of) = if i < k { (low, &*high) } else { (high, &*low) };
    for (t, o) in to.iter_mut().zip(of) {
        *t = *t - f * *o;
    }
}

/// What a number needs to have an inverse.
fn invertible<T: Precision>(d: Complex<T>) -> bool {
    d.in_range() && d.size() >= T::TINY
}

/// P A = L U, and the row that was exchanged with each.
pub struct Lu<T: Precision> {
    x: Columns<T>,
    pub pivots: Vec<usize>,
    /// Whether no pivot lacks an inverse.
    sound: bool,
}

impl<T: Precision> Lu<T> {
    pub fn new(a: &[Complex<T>], m: usize, n: usize, pivot: bool) -> Lu<T> {
        let k = m.min(n);
        let mut out = Lu {
            x: Columns::of(a, m, n, false),
            pivots: alloc::full(0, k),
            sound: false,
        };
        if pivot && k > SMALL {
            // SAFETY: the columns are its own.
            unsafe { blocks::lu(out.x.part(), &mut out.pivots) };
            // A pivot without an inverse spoils what comes after it.
            out.sound = (0..k).all(|i| invertible(out.at(i, i)));
        }
        if !out.sound {
            let x = out.plain(a, pivot);
            out.x.load(&x, false, false);
            out.sound = (0..k).all(|i| invertible(out.at(i, i)));
        }
        out
    }

    /// The factors in rows, by plain loops.
    fn plain(&mut self, a: &[Complex<T>], pivot: bool) -> Vec<Complex<T>> {
        let (m, n) = (self.x.m, self.x.n);
        let mut x = gathered(a.iter().copied());
        for j in 0..m.min(n) {
            let at = |i: usize| x[i * n + j].size();
            let better = |p: usize, i: usize| if at(i) > at(p) { i } else { p };
            let p = if pivot { (j + 1..m).fold(j, better) } else { j };
            self.pivots[j] = p;
            if p != j {
                let (a, b) = x.split_at_mut(p * n);
                a[j * n..][..n].swap_with_slice(&mut b[..n]);
            }
            let d = x[j * n + j];
            if d == zero() {
                continue;
            }
            for i in j + 1..m {
                let f = x[i * n + j].over(d);
                x[i * n + j] = f;
                subtract(&mut x, n, (i, j), f, j + 1);
            }
        }
        x
    }

    pub fn at(&self, i: usize, j: usize) -> Complex<T> {
        self.x.at(i, j)
    }

    /// Writes both triangles in rows.
    pub fn rows(&self, y: &mut [Complex<T>]) {
        self.x.store(y, self.x.n, false);
    }

    /// 1 + the first i with U(i, i) = 0, or 0.
    pub fn info(&self) -> i32 {
        let found = (0..self.pivots.len()).find(|&i| self.at(i, i) == zero());
        found.map_or(0, |i| i as i32 + 1)
    }

    pub fn sign(&self) -> Complex<T> {
        let swaps = self.pivots.iter().enumerate().filter(|&(i, &p)| p != i);
        if swaps.count().is_multiple_of(2) {
            one()
        } else {
            -one()
        }
    }

    pub fn determinant(&self) -> Complex<T> {
        (0..self.x.n).fold(self.sign(), |d, i| d * self.at(i, i))
    }

    /// Overwrites the rows of `b` with the solution of A X = B, A square.
    pub fn solve(&self, b: &mut [Complex<T>], k: usize) {
        let n = self.x.n;
        if self.sound && n > SMALL {
            let mut x = Columns::of(b, n, k, false);
            // SAFETY: the columns are this call's, and there are as many rows.
            unsafe { blocks::solve_all(self.x.seen(), &self.pivots, x.part()) };
            return x.store(b, k, false);
        }
        for (i, &p) in self.pivots.iter().enumerate() {
            for j in 0..if p == i { 0 } else { k } {
                b.swap(i * k + j, p * k + j);
            }
        }
        let mut rows = alloc::full(zero(), n * n);
        self.rows(&mut rows);
        plain_triangular(&rows, n, b, k, false, true);
        plain_triangular(&rows, n, b, k, true, false);
    }

    /// Writes the inverse of a square matrix.
    pub fn inverse(&self, y: &mut [Complex<T>]) {
        let n = self.x.n;
        if !(self.sound && n > SMALL) {
            y.fill(zero());
            (0..n).for_each(|i| y[i * n + i] = one());
            return self.solve(y, n);
        }
        let mut x = Columns::zeros(n, n);
        let (to, order) = (
            x.part().at,
            super::super::super::order(self.pivots.iter().copied(), n),
        );
        // SAFETY: the factors are only read, and each column has one place in `x`.
        unsafe {
            blocks::inverse(self.x.seen(), &order, |j, from| {
                for (to, from) in [(to.re, from.re), (to.im, from.im)] {
                    to.part(j * n..(j + 1) * n).copy_from_slice(from.part(0..n));
                }
            });
        }
        x.store(y, n, false);
    }
}

/// Overwrites B with the solution of T X = B for a triangle of A.
pub fn triangular<T: Precision>(
    a: &[Complex<T>],
    n: usize,
    b: &mut [Complex<T>],
    k: usize,
    upper: bool,
    unit: bool,
) {
    if n <= SMALL || !(unit || (0..n).all(|i| invertible(a[i * n + i]))) {
        return plain_triangular(a, n, b, k, upper, unit);
    }
    // From the last row and column to the first one triangle is the other.
    let reversed = upper == unit;
    let left = Columns::of(a, n, n, reversed);
    let mut right = Columns::zeros(n, k);
    right.load(b, reversed, false);
    let (a, to) = (left.seen(), right.part());
    blocks::each_chunk(k, |first, end| {
        let b = (to.at.add(first * n), n);
        // SAFETY: columns of this chunk are its own, the triangle is only read.
        unsafe {
            match unit {
                true => blocks::solve((a.at, n), n, b, end - first),
                false => blocks::solve_upper((a.at, n), n, b, end - first),
            }
        }
    });
    right.store(b, k, reversed);
}

fn plain_triangular<T: Precision>(
    a: &[Complex<T>],
    n: usize,
    b: &mut [Complex<T>],
    k: usize,
    upper: bool,
    unit: bool,
) {
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        if !unit {
            let row = b[i * k..][..k].iter_mut();
            row.for_each(|v| *v = v.over(a[i * n + i]));
        }
        for r in if upper { 0..i } else { i + 1..n } {
            subtract(b, k, (r, i), a[r * n + i], 0);
        }
    }
}

/// The lower factor of a Hermitian matrix, of which the lower triangle is read; gives the order of the
/// first leading minor that is not positive, or 0.
pub fn cholesky<T: Precision>(a: &[Complex<T>], n: usize, l: &mut [Complex<T>]) -> i32 {
    if n > SMALL {
        let mut x = Columns::of(a, n, n, false);
        let part = x.part();
        for i in 0..n {
            // Of the diagonal the real parts count.
            // SAFETY: the element is on the diagonal.
            unsafe { part.from(i, i).at.im.put(T::default()) };
        }
        // SAFETY: the columns are this call's.
        if unsafe { blocks::cholesky(part) }.is_none() {
            x.store(l, n, false);
            (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(zero()));
            return 0;
        }
    }
    l.fill(zero());
    for j in 0..n {
        for i in j..n {
            let pairs = l[i * n..][..j].iter().zip(&l[j * n..][..j]);
            let v = pairs.fold(a[i * n + j], |v, (p, q)| v - *p * q.conj());
            if i > j {
                l[i * n + j] = v.over(l[j * n + j]);
            } else if v.re > T::default() {
                l[j * n + j] = Complex::of(v.re.root());
            } else {
                // NaN, too.
                return j as i32 + 1;
            }
        }
    }
    0
}

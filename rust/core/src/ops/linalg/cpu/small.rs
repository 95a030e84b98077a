//! Factorisations of matrices of at most 32 rows and columns. Rows are padded to a width known to
//! the compiler, so that an operation on a row is a few vector instructions. Each result is the
//! one of the loops in [`super::plain`], to the bit. Loops count, for the compiler to see the width.
#![allow(clippy::needless_range_loop)]

use super::plain;
use super::Precision;
use crate::per_isa;

/// The most rows and columns.
pub const MOST: usize = 32;

/// Rows of a matrix, with zeros where it has no elements.
struct Rows<T, const W: usize>([[T; W]; W]);

impl<T: Precision, const W: usize> Rows<T, W> {
    #[inline(always)]
    fn load(x: &[T], m: usize, n: usize) -> Self {
        let mut rows = [[T::default(); W]; W];
        if n == W {
            // Of a length that the compiler knows.
            for (row, x) in rows[..m].iter_mut().zip(x.chunks_exact(W)) {
                row.copy_from_slice(x);
            }
            return Rows(rows);
        }
        for (row, x) in rows[..m].iter_mut().zip(x.chunks_exact(n)) {
            row[..n].copy_from_slice(x);
        }
        Rows(rows)
    }

    #[inline(always)]
    fn store(&self, x: &mut [T], n: usize) {
        if n == W {
            for (row, x) in self.0.iter().zip(x.chunks_exact_mut(W)) {
                x.copy_from_slice(row);
            }
            return;
        }
        for (row, x) in self.0.iter().zip(x.chunks_exact_mut(n)) {
            x.copy_from_slice(&row[..n]);
        }
    }
}

/// `to` minus `f` times `of`.
#[inline(always)]
fn subtract<T: Precision, const W: usize>(to: &mut [T; W], f: T, of: &[T; W]) {
    for c in 0..W {
        to[c] = to[c] - f * of[c];
    }
}

/// `row` with zeros up to and with column `j`.
#[inline(always)]
fn after<T: Precision, const W: usize>(row: &[T; W], j: usize) -> [T; W] {
    let mut y = [T::default(); W];
    for c in 0..W {
        y[c] = if c > j { row[c] } else { T::default() };
    }
    y
}

/// Subtracts in the columns after `j` only: zeros there would not do for an infinite `f`.
#[inline(always)]
fn subtract_after<T: Precision, const W: usize>(to: &mut [T; W], f: T, of: &[T; W], j: usize) {
    if f.finite() {
        subtract(to, f, of);
    } else {
        for c in j + 1..W {
            to[c] = to[c] - f * of[c];
        }
    }
}

#[inline(always)]
fn lu_rows<T: Precision, const W: usize>(
    x: &mut [T],
    m: usize,
    n: usize,
    pivot: bool,
    pivots: &mut Vec<usize>,
) {
    let mut rows = Rows::<T, W>::load(x, m, n);
    let a = &mut rows.0;
    for j in 0..m.min(n) {
        let mut p = j;
        if pivot {
            let mut most = a[j][j].abs();
            for (i, row) in a[..m].iter().enumerate().skip(j + 1) {
                let size = row[j].abs();
                if size > most {
                    (p, most) = (i, size);
                }
            }
        }
        pivots.push(p);
        a.swap(j, p);
        let d = a[j][j];
        if d == T::default() {
            continue;
        }
        let of = after(&a[j], j);
        for row in &mut a[j + 1..m] {
            let f = row[j] / d;
            if f != T::default() {
                subtract_after(row, f, &of, j);
            }
            row[j] = f;
        }
    }
    rows.store(x, n);
}

#[inline(always)]
fn triangular_rows<T: Precision, const W: usize>(
    a: &[T],
    n: usize,
    b: &mut [T],
    k: usize,
    upper: bool,
    unit: bool,
) {
    let mut rows = Rows::<T, W>::load(b, n, k);
    let x = &mut rows.0;
    for s in 0..n {
        let i = if upper { n - 1 - s } else { s };
        if !unit {
            let d = a[i * n + i];
            for v in &mut x[i] {
                *v = *v / d;
            }
        }
        let of = x[i];
        for r in if upper { 0..i } else { i + 1..n } {
            subtract(&mut x[r], a[r * n + i], &of);
        }
    }
    rows.store(b, k);
}

#[inline(always)]
fn cholesky_rows<T: Precision, const W: usize>(a: &[T], n: usize, l: &mut [T]) -> i32 {
    let mut rows = Rows::<T, W>::load(a, n, n);
    let x = &mut rows.0;
    let mut info = 0;
    for j in 0..n {
        let v = x[j][j];
        let d = if v > T::default() {
            v.root()
        } else {
            // NaN, too.
            info = j as i32 + 1;
            break;
        };
        x[j][j] = d;
        let mut column = [T::default(); W];
        for i in j + 1..n {
            x[i][j] = x[i][j] / d;
            column[i] = x[i][j];
        }
        for i in j + 1..n {
            subtract_after(&mut x[i], column[i], &column, j);
        }
    }
    // Columns from a minor that fails on are left as zeros.
    let done = if info == 0 { n } else { info as usize - 1 };
    for i in 0..n {
        let k = (i + 1).min(done);
        l[i * n..i * n + k].copy_from_slice(&x[i][..k]);
    }
    info
}

/// Applies reflector `v`, zero above row `j`, to the columns of `y` that `dots` keeps.
#[inline(always)]
fn reflect<T: Precision, const W: usize>(
    y: &mut [[T; W]; W],
    m: usize,
    j: usize,
    v: &[T; W],
    tau: T,
    from: Option<usize>,
) {
    let mut dots = y[j];
    for i in j + 1..m {
        let (f, row) = (v[i], &y[i]);
        for c in 0..W {
            dots[c] = dots[c] + f * row[c];
        }
    }
    for d in &mut dots {
        *d = *d * tau;
    }
    if let Some(j) = from {
        dots = after(&dots, j);
    }
    let row = &mut y[j];
    for c in 0..W {
        row[c] = row[c] - dots[c];
    }
    for i in j + 1..m {
        subtract(&mut y[i], v[i], &dots);
    }
}

#[inline(always)]
fn qr_rows<T: Precision, const W: usize>(
    a: &[T],
    (m, n): (usize, usize),
    q: &mut [T],
    r: &mut [T],
    height: usize,
) {
    let zero = T::default();
    let mut rows = Rows::<T, W>::load(a, m, n);
    let x = &mut rows.0;
    let k = m.min(n);
    let mut reflectors = [[zero; W]; W];
    let mut tau = [zero; W];
    for j in 0..k {
        let v = &mut reflectors[j];
        for i in j..m {
            v[i] = x[i][j];
        }
        let Some((beta, t)) = plain::reflector(&mut v[j..m]) else {
            continue;
        };
        tau[j] = t;
        let v = *v;
        reflect(x, m, j, &v, t, Some(j));
        x[j][j] = beta;
    }
    for i in 0..k {
        r[i * n + i..(i + 1) * n].copy_from_slice(&x[i][i..n]);
    }
    let mut basis = [[zero; W]; W];
    for (i, row) in basis[..height].iter_mut().enumerate() {
        row[i] = T::of_f64(1.0);
    }
    for j in (0..k).rev() {
        if tau[j] != zero {
            reflect(&mut basis, m, j, &reflectors[j], tau[j], None);
        }
    }
    Rows(basis).store(&mut q[..m * height], height);
}

macro_rules! by_width {
    ($n:expr, $f:ident($($x:expr),*)) => {
        match $n {
            0..=4 => $f::<T, 4>($($x),*),
            5..=8 => $f::<T, 8>($($x),*),
            9..=16 => $f::<T, 16>($($x),*),
            _ => $f::<T, MOST>($($x),*),
        }
    };
}

per_isa! {
    /// As [`plain::lu`] of at least one row and column.
    ///
    /// # Safety
    /// `m` and `n` are at most [`MOST`].
    pub unsafe fn lu[T: Precision](x: &mut [T], m: usize, n: usize, pivot: bool, pivots: &mut Vec<usize>) {
        by_width!(m.max(n), lu_rows(x, m, n, pivot, pivots))
    }
}
per_isa! {
    /// As [`plain::triangular`] for at least one column.
    ///
    /// # Safety
    /// `n` and `k` are at most [`MOST`].
    pub unsafe fn triangular[T: Precision](
        a: &[T], n: usize, b: &mut [T], k: usize, upper: bool, unit: bool,
    ) {
        by_width!(n.max(k), triangular_rows(a, n, b, k, upper, unit))
    }
}
per_isa! {
    /// As [`plain::cholesky`].
    ///
    /// # Safety
    /// `n` is at most [`MOST`].
    pub unsafe fn cholesky[T: Precision](a: &[T], n: usize, l: &mut [T]) -> i32 {
        by_width!(n, cholesky_rows(a, n, l))
    }
}
per_isa! {
    /// R into rows of zeros, and the first `height` columns of Q.
    ///
    /// # Safety
    /// `m` and `n` are from 1 to [`MOST`].
    pub unsafe fn qr[T: Precision](
        a: &[T], size: (usize, usize), q: &mut [T], r: &mut [T], height: usize,
    ) {
        by_width!(size.0.max(size.1), qr_rows(a, size, q, r, height))
    }
}

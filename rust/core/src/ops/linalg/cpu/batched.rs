//! Systems of a few equations, sixteen at a time: an element of all their matrices is one vector. Each
//! result is the one of the loops in [`super::plain`], to the bit. Loops count, for the compiler to see
//! the width.
#![allow(clippy::needless_range_loop)]

use super::Precision;
use crate::per_isa;

/// The most rows and columns, of either side.
pub const MOST: usize = 8;
/// Systems at a time.
pub const LANES: usize = 16;

type Vector<T> = [T; LANES];
/// Elements (i, j) of up to [`LANES`] matrices; what other lanes hold does not matter.
type Matrices<T> = [[Vector<T>; MOST]];

fn none<T: Precision>() -> [[Vector<T>; MOST]; MOST] {
    [[[T::default(); LANES]; MOST]; MOST]
}

/// Matrices of `n` columns, one after another in `x`.
#[inline(always)]
fn load<T: Precision>(x: &[T], m: usize, n: usize, to: &mut Matrices<T>) {
    for (l, x) in x.chunks_exact(m * n).enumerate() {
        for i in 0..m {
            for j in 0..n {
                to[i][j][l] = x[i * n + j];
            }
        }
    }
}

#[inline(always)]
fn store<T: Precision>(from: &Matrices<T>, m: usize, n: usize, y: &mut [T]) {
    for (l, y) in y.chunks_exact_mut(m * n).enumerate() {
        for i in 0..m {
            for j in 0..n {
                y[i * n + j] = from[i][j][l];
            }
        }
    }
}

/// `y` minus the product, where the factor of a lane is not to be left out.
#[inline(always)]
fn subtract<T: Precision>(y: &mut Vector<T>, f: &Vector<T>, of: &Vector<T>, live: &[bool; LANES]) {
    for l in 0..LANES {
        let next = y[l] - f[l] * of[l];
        y[l] = if live[l] { next } else { y[l] };
    }
}

/// Exchanges the elements of two rows in the lanes of `here`.
#[inline(always)]
fn exchange<T: Precision>(x: &mut Matrices<T>, i: usize, j: usize, n: usize, here: &[bool; LANES]) {
    for c in 0..n {
        let (p, q) = (x[i][c], x[j][c]);
        for l in 0..LANES {
            (x[i][c][l], x[j][c][l]) = if here[l] { (q[l], p[l]) } else { (p[l], q[l]) };
        }
    }
}

/// P A = L U of `n` rows, with the rows of `k` right sides in the order of P; how often rows were exchanged.
#[inline(always)]
fn eliminate<T: Precision>(
    a: &mut Matrices<T>,
    b: &mut Matrices<T>,
    n: usize,
    k: usize,
) -> [u32; LANES] {
    let mut swaps = [0; LANES];
    for j in 0..n {
        let (mut most, mut pivot) = ([T::default(); LANES], [j as u32; LANES]);
        for l in 0..LANES {
            most[l] = a[j][j][l].abs();
        }
        for i in j + 1..n {
            for l in 0..LANES {
                let size = a[i][j][l].abs();
                let more = size > most[l];
                most[l] = if more { size } else { most[l] };
                pivot[l] = if more { i as u32 } else { pivot[l] };
            }
        }
        for i in j + 1..n {
            let here = pivot.map(|p| p == i as u32);
            if here.contains(&true) {
                exchange(a, i, j, n, &here);
                exchange(b, i, j, k, &here);
                for l in 0..LANES {
                    swaps[l] += here[l] as u32;
                }
            }
        }
        let of = a[j];
        for row in &mut a[j + 1..n] {
            let (mut f, mut live) = ([T::default(); LANES], [false; LANES]);
            for l in 0..LANES {
                let (own, d) = (row[j][l], of[j][l]);
                let factor = own / d;
                let some = d != T::default();
                live[l] = some && factor != T::default();
                f[l] = factor;
                row[j][l] = if some { factor } else { own };
            }
            for c in j + 1..n {
                subtract(&mut row[c], &f, &of[c], &live);
            }
        }
    }
    swaps
}

/// The `k` right sides become solutions.
#[inline(always)]
fn substitute<T: Precision>(a: &Matrices<T>, b: &mut Matrices<T>, n: usize, k: usize) {
    let all = [true; LANES];
    for i in 0..n {
        let of = b[i];
        for r in i + 1..n {
            for c in 0..k {
                subtract(&mut b[r][c], &a[r][i], &of[c], &all);
            }
        }
    }
    for i in (0..n).rev() {
        for c in 0..k {
            for l in 0..LANES {
                b[i][c][l] = b[i][c][l] / a[i][i][l];
            }
        }
        let of = b[i];
        for r in 0..i {
            for c in 0..k {
                subtract(&mut b[r][c], &a[r][i], &of[c], &all);
            }
        }
    }
}

per_isa! {
    /// Solves systems of `n` equations with `k` right sides each, those of the identity without `b`;
    /// `info` gets 1 + the first i with U(i, i) = 0, or 0.
    pub fn solve[T: Precision](
        a: &[T], b: Option<&[T]>, n: usize, k: usize, y: &mut [T], info: &mut [i32],
    ) {
        let (mut left, mut right) = (none(), none());
        let (each, count) = (LANES * n * n, LANES * n * k);
        let parts = a.chunks(each).zip(y.chunks_mut(count)).zip(info.chunks_mut(LANES));
        for (p, ((a, y), info)) in parts.enumerate() {
            load(a, n, n, &mut left);
            match b {
                Some(b) => load(&b[p * count..][..y.len()], n, k, &mut right),
                None => {
                    right = none();
                    (0..n).for_each(|i| right[i][i] = [T::of_f64(1.0); LANES]);
                }
            }
            eliminate(&mut left, &mut right, n, k);
            for (l, info) in info.iter_mut().enumerate() {
                let zero = |&i: &usize| left[i][i][l] == T::default();
                *info = (0..n).find(zero).map_or(0, |i| i as i32 + 1);
            }
            substitute(&left, &mut right, n, k);
            store(&right, n, k, y);
        }
    }
}

per_isa! {
    /// The determinants of matrices of `n` rows.
    pub fn determinants[T: Precision](a: &[T], n: usize, y: &mut [T]) {
        let mut left = none();
        for (a, y) in a.chunks(LANES * n * n).zip(y.chunks_mut(LANES)) {
            load(a, n, n, &mut left);
            let swaps = eliminate(&mut left, &mut [], n, 0);
            let mut d = swaps.map(|n| T::of_f64(if n % 2 == 0 { 1.0 } else { -1.0 }));
            for i in 0..n {
                for l in 0..LANES {
                    d[l] = d[l] * left[i][i][l];
                }
            }
            y.copy_from_slice(&d[..y.len()]);
        }
    }
}

//! Systems of a few equations, sixteen at a time: an element of all their matrices is one vector. Each
//! result is the one of the loops in [`super::plain`], to the bit. Loops count, for the compiler to see
//! the width.
#![allow(clippy::needless_range_loop)]

use super::Number;
use crate::per_isa;

/// The most rows and columns, of either side.
pub const MOST: usize = 8;
/// Systems at a time.
pub const LANES: usize = 16;

type Vector<T> = [T; LANES];
type Matrices<T> = [[Vector<T>; MOST]; MOST];

/// Up to [`LANES`] matrices of a batch, their right sides, and how often rows were exchanged.
struct Systems<T> {
    a: Matrices<T>,
    b: Matrices<T>,
    swaps: [u32; LANES],
}

/// Matrices of `n` columns, one after another in `x`.
#[inline(always)]
fn load<T: Number>(x: &[T], m: usize, n: usize) -> Matrices<T> {
    let mut out = [[[T::default(); LANES]; MOST]; MOST];
    for (l, x) in x.chunks_exact((m * n).max(1)).enumerate() {
        for i in 0..m {
            for j in 0..n {
                out[i][j][l] = x[i * n + j];
            }
        }
    }
    out
}

#[inline(always)]
fn store<T: Number>(from: &Matrices<T>, m: usize, n: usize, y: &mut [T]) {
    for (l, y) in y.chunks_exact_mut((m * n).max(1)).enumerate() {
        for i in 0..m {
            for j in 0..n {
                y[i * n + j] = from[i][j][l];
            }
        }
    }
}

/// `y` minus the product, where the factor of a lane is not to be left out.
#[inline(always)]
fn subtract<T: Number>(y: &mut Vector<T>, f: &Vector<T>, of: &Vector<T>, live: &[bool; LANES]) {
    for l in 0..LANES {
        let next = y[l] - f[l] * of[l];
        y[l] = if live[l] { next } else { y[l] };
    }
}

/// Exchanges the elements of two rows in the lanes of `here`.
#[inline(always)]
fn exchange<T: Number>(x: &mut Matrices<T>, i: usize, j: usize, n: usize, here: &[bool; LANES]) {
    for c in 0..n {
        let (p, q) = (x[i][c], x[j][c]);
        for l in 0..LANES {
            (x[i][c][l], x[j][c][l]) = if here[l] { (q[l], p[l]) } else { (p[l], q[l]) };
        }
    }
}

impl<T: Number> Systems<T> {
    /// P A = L U of `n` rows, with the rows of `k` right sides in the order of P.
    #[inline(always)]
    fn eliminate(&mut self, n: usize, k: usize) {
        for j in 0..n {
            let (mut most, mut pivot) = ([T::default(); LANES], [j as u32; LANES]);
            for l in 0..LANES {
                most[l] = self.a[j][j][l].abs();
            }
            for i in j + 1..n {
                for l in 0..LANES {
                    let size = self.a[i][j][l].abs();
                    let more = size > most[l];
                    most[l] = if more { size } else { most[l] };
                    pivot[l] = if more { i as u32 } else { pivot[l] };
                }
            }
            for i in j + 1..n {
                let here = pivot.map(|p| p == i as u32);
                if here.contains(&true) {
                    exchange(&mut self.a, i, j, n, &here);
                    exchange(&mut self.b, i, j, k, &here);
                    for l in 0..LANES {
                        self.swaps[l] += here[l] as u32;
                    }
                }
            }
            let of = self.a[j];
            for row in &mut self.a[j + 1..n] {
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
    }

    /// The `k` right sides become solutions.
    #[inline(always)]
    fn substitute(&mut self, n: usize, k: usize) {
        let all = [true; LANES];
        for i in 0..n {
            let of = self.b[i];
            for r in i + 1..n {
                let f = self.a[r][i];
                for c in 0..k {
                    subtract(&mut self.b[r][c], &f, &of[c], &all);
                }
            }
        }
        for i in (0..n).rev() {
            let d = self.a[i][i];
            for c in 0..k {
                for l in 0..LANES {
                    self.b[i][c][l] = self.b[i][c][l] / d[l];
                }
            }
            let of = self.b[i];
            for r in 0..i {
                let f = self.a[r][i];
                for c in 0..k {
                    subtract(&mut self.b[r][c], &f, &of[c], &all);
                }
            }
        }
    }

    /// Of each: 1 + the first i with U(i, i) = 0, or 0.
    #[inline(always)]
    fn info(&self, n: usize, info: &mut [i32]) {
        for (l, info) in info.iter_mut().enumerate() {
            let zero = |&i: &usize| self.a[i][i][l] == T::default();
            *info = (0..n).find(zero).map_or(0, |i| i as i32 + 1);
        }
    }
}

per_isa! {
    /// Solves systems of `n` equations with `k` right sides each, those of the identity without `b`.
    pub fn solve[T: Number](
        a: &[T], b: Option<&[T]>, n: usize, k: usize, y: &mut [T], info: &mut [i32],
    ) {
        let (each, count) = (LANES * n * n, LANES * n * k);
        let parts = a.chunks(each).zip(y.chunks_mut(count)).zip(info.chunks_mut(LANES));
        for (p, ((a, y), info)) in parts.enumerate() {
            let right = match b {
                Some(b) => load(&b[p * count..][..y.len()], n, k),
                None => {
                    let mut one = [[[T::default(); LANES]; MOST]; MOST];
                    (0..n).for_each(|i| one[i][i] = [T::of_f64(1.0); LANES]);
                    one
                }
            };
            let mut s = Systems { a: load(a, n, n), b: right, swaps: [0; LANES] };
            s.eliminate(n, k);
            s.info(n, info);
            s.substitute(n, k);
            store(&s.b, n, k, y);
        }
    }
}

per_isa! {
    /// The determinants of matrices of `n` rows.
    pub fn determinants[T: Number](a: &[T], n: usize, y: &mut [T]) {
        for (a, y) in a.chunks(LANES * n * n).zip(y.chunks_mut(LANES)) {
            let none = [[[T::default(); LANES]; MOST]; MOST];
            let mut s = Systems { a: load(a, n, n), b: none, swaps: [0; LANES] };
            s.eliminate(n, 0);
            let mut d = s.swaps.map(|n| T::of_f64(if n % 2 == 0 { 1.0 } else { -1.0 }));
            for i in 0..n {
                for l in 0..LANES {
                    d[l] = d[l] * s.a[i][i][l];
                }
            }
            y.copy_from_slice(&d[..y.len()]);
        }
    }
}

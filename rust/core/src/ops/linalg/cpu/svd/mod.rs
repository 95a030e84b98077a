//! Singular values and vectors.

mod bidiagonal;
mod reflectors;
mod sweeps;
mod values;

use super::householder::Reflected;
use super::lanes::LANES;
use super::{transpose, Precision};
use crate::alloc::{gathered, Workspace};
use crate::cpu::gemm::Mat;
use bidiagonal::Bidiagonal;

/// Rounding of what is computed in float64 for all types.
fn rounding<T: Precision>() -> f64 {
    T::EPS / 8.0
}

/// The matrix with at least as many rows as columns: itself or its transpose.
fn tall<T: Precision>(a: &[T], (m, n): (usize, usize)) -> (Workspace<T>, usize, usize) {
    if m >= n {
        return (Workspace::copied(a), m, n);
    }
    let mut x = Workspace::full(T::default(), m * n);
    transpose(a, m, n, &mut x);
    (x, n, m)
}

/// Makes the first rows of a tall matrix its triangle, and returns the reflectors that lead to it.
fn triangle<T: Precision>(x: &mut [T], m: usize, n: usize) -> Option<Reflected<T>> {
    (m > n).then(|| Reflected::new(x, m, n, n))
}

/// Singular values of `m` rows of `n`, in descending order; `false` where they do not converge.
pub fn values<T: Precision>(a: &[T], size: (usize, usize), s: &mut [T]) -> bool {
    if s.is_empty() {
        return true;
    }
    let (mut x, m, n) = tall(a, size);
    triangle(&mut x, m, n);
    let mut b = Bidiagonal::new(&x[..n * n], n);
    let done = values::values(&mut b.d, &b.e, rounding::<T>());
    for (s, &d) in s.iter_mut().zip(&b.d) {
        *s = T::of_f64(d);
    }
    done
}

/// Singular values and vectors of `m` rows of `n`: `u` has `p` columns, `vh` has `q` rows, all of
/// them where `whole`; `false` where they do not converge.
pub fn vectors<T: Precision>(
    a: &[T],
    size: (usize, usize),
    s: &mut [T],
    (u, vh): (&mut [T], &mut [T]),
    whole: bool,
) -> bool {
    let (mut x, m, n) = tall(a, size);
    let height = if whole { m } else { n };
    let factors = triangle(&mut x, m, n);
    let Some([left, right]) = square(&x[..n * n], n, s) else {
        return false;
    };
    let left = match factors {
        None => left,
        Some(factors) => {
            let mut q = Workspace::full(T::default(), m * height);
            factors.basis(&mut q, height);
            let mut all = Workspace::full(T::default(), height * m);
            let (step, n_step) = (height as isize, n as isize);
            let (a, b) = (
                Mat::new(left.as_ptr(), n_step, 1),
                Mat::new(q.as_ptr(), 1, step),
            );
            // SAFETY: left vectors of the triangle are `n` rows of `n`, and Q has `m` rows.
            unsafe { reflectors::multiply((n, m, n), 1.0, a, b, 0.0, (all.as_mut_ptr(), m)) };
            for j in n..height {
                for i in 0..m {
                    all[j * m + i] = q[i * height + j];
                }
            }
            all
        }
    };
    let (columns, rows, long, k) = match size.0 >= size.1 {
        true => (left, right, m, height),
        false => (right, left, n, n),
    };
    transpose(&columns, k, long, u);
    vh.copy_from_slice(&rows);
    true
}

/// Singular values of a square matrix; left and right vectors as rows.
fn square<T: Precision>(x: &[T], n: usize, s: &mut [T]) -> Option<[Workspace<T>; 2]> {
    if n == 0 {
        return Some([Workspace::copied(&[]), Workspace::copied(&[])]);
    }
    let b = Bidiagonal::new(x, n);
    let mut known: Vec<f64> = gathered(b.d.iter().copied());
    let done = values::values(&mut known, &b.e, rounding::<T>());
    let width = b.along.width;
    let (mut along, mut across) = (b.along.basis(), b.across.basis());
    for (s, &known) in s.iter_mut().zip(&known) {
        *s = T::of_f64(known);
    }
    let (mut d, mut e, unit) = (b.d, b.e, values::unit(known[0]));
    for x in [&mut d, &mut e, &mut known].into_iter().flatten() {
        *x /= unit;
    }
    if !done || !sweeps::diagonalise(&mut d, &mut e, &known, [&mut along, &mut across], width) {
        return None;
    }
    let mut order: Vec<usize> = gathered(0..n);
    order.sort_unstable_by(|&i, &j| d[j].abs().total_cmp(&d[i].abs()));
    // The lines of memory are rows of the matrix and columns of what was made bidiagonal.
    let [mut left, mut right] = [(); 2].map(|()| Workspace::full(T::default(), n * n));
    for (j, &i) in order.iter().enumerate() {
        normalise(&along[i * width..][..n], 1.0, &mut right[j * n..][..n]);
        normalise(&across[i * width..][..n], d[i], &mut left[j * n..][..n]);
    }
    Some([left, right])
}

/// A vector at the length of one, with a sign. Cosines and sines, being rounded, change lengths a
/// little, which adds up.
fn normalise<T: Precision>(x: &[T], sign: f64, y: &mut [T]) {
    let mut squares = [0.0; LANES];
    for x in x.chunks(LANES) {
        for (s, x) in squares.iter_mut().zip(x) {
            *s += x.to_f64() * x.to_f64();
        }
    }
    let by = T::of_f64(1f64.copysign(sign) / squares.iter().sum::<f64>().sqrt());
    for (y, &x) in y.iter_mut().zip(x) {
        *y = by * x;
    }
}

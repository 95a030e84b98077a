//! Whether a factorisation is one, told by its product with a vector of random signs: a pass over
//! the matrices, which an error of theirs does not survive.

use super::lanes::dot;
use super::Precision;
use crate::alloc::{full, gathered};

/// Signs that have nothing to do with any matrix.
pub fn signs(n: usize) -> Vec<f64> {
    gathered((0..n).map(|i| {
        let hash = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        1.0 - 2.0 * (hash >> 63) as f64
    }))
}

/// The product of rows and a vector.
pub fn times<T: Precision>(rows: &[T], x: &[f64]) -> Vec<f64> {
    gathered(rows.chunks_exact(x.len().max(1)).map(|row| dot(row, x)))
}

/// The product of the columns of rows of `n` and a vector.
pub fn turned_times<T: Precision>(rows: &[T], n: usize, x: &[f64]) -> Vec<f64> {
    let mut y = full(0.0, n);
    for (row, x) in rows.chunks_exact(n.max(1)).zip(x) {
        for (y, a) in y.iter_mut().zip(row) {
            *y += a.to_f64() * x;
        }
    }
    y
}

/// Whether two vectors differ by rounding only, or nothing can be told because `want` is not
/// finite. Measured, `faer` leaves up to 3 `n` eps of the largest factor; where it goes wrong, far
/// more.
pub fn agree<T: Precision>(got: &[f64], want: &[f64], size: f64, n: usize) -> bool {
    let pairs = got.iter().zip(want);
    let rest: f64 = pairs.map(|(x, y)| (x - y) * (x - y)).sum();
    rest.sqrt() <= (4 * n + 64) as f64 * T::EPS * size || !finite(want)
}

pub fn finite(x: &[f64]) -> bool {
    x.iter().all(|v| v.is_finite())
}

/// Whether rows of `n` are of length one, and at right angles.
pub fn orthonormal<T: Precision>(rows: &[T], n: usize) -> bool {
    let x = signs(rows.len() / n.max(1));
    let back = times(rows, &turned_times(rows, n, &x));
    agree::<T>(&back, &x, 1.0, n)
}

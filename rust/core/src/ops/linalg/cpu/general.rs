//! Eigenvalues and eigenvectors of any square matrix.

use super::schur::Schur;
use super::{columns_mut, params, Precision, Room, SEQ};
use crate::alloc::{full, gathered};
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors, EvdParams};
use faer::{MatRef, Spec};

/// Bytes of a matrix up to which double steps on it in the caches are quicker than blocks of them.
const CACHED: usize = 1 << 20;
/// The size up to which float32 is computed in float64, and what it must lie between above that: squares
/// and products of it stay numbers.
const WIDE: usize = 64;
const NEAR: std::ops::Range<f64> = 1e-12..1e12;

type Found = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Real and imaginary parts of the eigenvalues, and vectors one after another, by double steps on a
/// matrix of S.
fn cached<T: Precision, S: Precision>(a: &[T], n: usize, vectors: bool) -> Option<Found> {
    let s = Schur::<S>::new(a.iter().map(|x| x.to_f64()), n, vectors, T::EPS)?;
    let found = match vectors {
        true => gathered(s.vectors().iter().map(|x| x.to_f64())),
        false => Vec::new(),
    };
    Some((s.re, s.im, found))
}

/// The same by `faer`.
fn blocked<T: Precision>(a: &[T], n: usize, vectors: bool, room: &mut Room<T>) -> Option<Found> {
    let (mut re, mut im) = (full(T::default(), n), full(T::default(), n));
    let mut found = full(T::of_f64(1.0), if vectors { n * n } else { 0 });
    if n == 1 {
        re[0] = a[0];
    } else {
        let params: Spec<EvdParams, T> = params();
        let (none, which) = match vectors {
            true => (ComputeEigenvectors::No, ComputeEigenvectors::Yes),
            false => (ComputeEigenvectors::No, ComputeEigenvectors::No),
        };
        let stack = room.get(evd::evd_scratch::<T>(n, none, which, SEQ, params));
        let (s_re, s_im) = (
            DiagMut::from_slice_mut(&mut re),
            DiagMut::from_slice_mut(&mut im),
        );
        let to = vectors.then(|| columns_mut(&mut found, n, n));
        let a = MatRef::from_row_major_slice(a, n, n);
        evd::evd_real(a, s_re, s_im, None, to, SEQ, stack, params).ok()?;
    }
    let wide = |x: &[T]| gathered(x.iter().map(|x| x.to_f64()));
    Some((wide(&re), wide(&im), wide(&found)))
}

/// Eigenvalues into `w` and eigenvectors into the columns of `v`, as pairs of real numbers; `false`
/// where it did not converge. A vector has length 1 and its largest element is real.
pub fn eig<T: Precision>(
    a: &[T],
    n: usize,
    w: &mut [T],
    v: Option<&mut [T]>,
    room: &mut Room<T>,
) -> bool {
    if n == 0 {
        return true;
    }
    let vectors = v.is_some();
    let largest = || a.iter().fold(0.0, |m: f64, x| m.max(x.to_f64().abs()));
    let own = if n * n * size_of::<T>() > CACHED {
        None
    } else if n <= WIDE || !NEAR.contains(&largest()) {
        cached::<T, f64>(a, n, vectors)
    } else {
        cached::<T, T>(a, n, vectors)
    };
    let Some((re, im, vectors)) = own.or_else(|| blocked(a, n, vectors, room)) else {
        return false;
    };
    for (w, (&re, &im)) in w.chunks_exact_mut(2).zip(re.iter().zip(&im)) {
        w.copy_from_slice(&[T::of_f64(re), T::of_f64(im)]);
    }
    let Some(v) = v else { return true };
    let mut put = |j: usize, i: usize, re: f64, im: f64| {
        v[(i * n + j) * 2] = T::of_f64(re);
        v[(i * n + j) * 2 + 1] = T::of_f64(im);
    };
    let mut j = 0;
    while j < n {
        let column = |j: usize| vectors[j * n..(j + 1) * n].iter().copied();
        if im[j] == 0.0 || j + 1 == n {
            let length = column(j).map(|x| x * x).sum::<f64>().sqrt();
            for (i, x) in column(j).enumerate() {
                put(j, i, x / length, 0.0);
            }
            j += 1;
            continue;
        }
        // A pair of conjugates: the parts of the first.
        let squares = || column(j).zip(column(j + 1)).map(|(x, y)| x * x + y * y);
        let length = squares().sum::<f64>().sqrt();
        let largest = squares().fold(0.0, f64::max);
        let at = squares().position(|s| s == largest).unwrap_or(0);
        let (top_re, top_im) = (vectors[j * n + at], vectors[(j + 1) * n + at]);
        let size = top_re.hypot(top_im) * length;
        for (i, (x, y)) in column(j).zip(column(j + 1)).enumerate() {
            let re = (x * top_re + y * top_im) / size;
            let im = if i == at {
                0.0
            } else {
                (y * top_re - x * top_im) / size
            };
            put(j, i, re, im);
            put(j + 1, i, re, -im);
        }
        j += 2;
    }
    true
}

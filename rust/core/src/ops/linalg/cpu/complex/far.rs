//! Singular values of complex matrices, and eigenvalues of general ones, by `faer`, in double precision.

use super::super::field::Complex;
use super::super::{columns_mut, params, transpose, Number, Room, ITERATE, SEQ};
use crate::alloc::{full, gathered};
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors, EvdParams};
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors, SvdParams};
use faer::{c64, Auto, MatRef, Spec};

const ZERO: c64 = c64::new(0.0, 0.0);
const ONE: c64 = c64::new(1.0, 0.0);

/// Numbers in double precision.
pub fn widened<T: Number>(x: &[Complex<T>]) -> Vec<c64> {
    gathered(x.iter().map(|z| c64::new(z.re.to_f64(), z.im.to_f64())))
}

/// Numbers in their own precision.
pub fn narrowed<T: Number>(from: &[c64], to: &mut [Complex<T>]) {
    for (to, z) in to.iter_mut().zip(from) {
        (to.re, to.im) = (T::of_f64(z.re), T::of_f64(z.im));
    }
}

/// The size that LAPACK compares pivots by.
fn size(z: c64) -> f64 {
    z.re.abs() + z.im.abs()
}

/// A quotient whose squares stay in range.
fn quotient(x: c64, d: c64) -> c64 {
    let unit = size(d);
    match unit > 0.0 && unit.is_finite() {
        true => (x / unit) / (d / unit),
        false => x / d,
    }
}

/// The 2-norm, whose squares stay in range.
fn norm(x: &[c64]) -> f64 {
    let top = x.iter().fold(0.0, |top: f64, &z| top.max(size(z)));
    match top > 0.0 && top.is_finite() {
        true => top * x.iter().map(|z| (z / top).norm_sqr()).sum::<f64>().sqrt(),
        false => top,
    }
}

fn real_parts(from: &[c64], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, z)| *to = z.re);
}

type Pair<'a> = (&'a mut [c64], &'a mut [c64]);

/// Singular values, descending, and vectors: columns of `u`, conjugated rows of `vh`.
pub fn svd(
    a: &[c64],
    (m, n): (usize, usize),
    s: &mut [f64],
    vectors: Option<Pair>,
    full_size: bool,
    room: &mut Room<c64>,
) -> bool {
    let k = m.min(n);
    let (want, p, q) = match (&vectors, full_size) {
        (None, _) => (ComputeSvdVectors::No, 0, 0),
        (_, true) => (ComputeSvdVectors::Full, m, n),
        (_, false) => (ComputeSvdVectors::Thin, k, k),
    };
    let mut params: SvdParams = Auto::<c64>::auto();
    params.recursion_threshold = ITERATE;
    let params = Spec::new(params);
    let mut values = full(ZERO, k);
    let (mut left, mut right) = (full(ZERO, m * p), full(ZERO, n * q));
    let stack = room.get(faer_svd::svd_scratch::<c64>(m, n, want, want, SEQ, params));
    let (u, v) = (columns_mut(&mut left, m, p), columns_mut(&mut right, n, q));
    let (u, v) = (
        vectors.is_some().then_some(u),
        vectors.is_some().then_some(v),
    );
    let a = MatRef::from_row_major_slice(a, m, n);
    let to = DiagMut::from_slice_mut(&mut values);
    if faer_svd::svd(a, to, u, v, SEQ, stack, params).is_err() {
        return false;
    }
    real_parts(&values, s);
    if let Some((u, vh)) = vectors {
        transpose(&left, p, m, u);
        vh.iter_mut().zip(&right).for_each(|(to, z)| *to = z.conj());
    }
    true
}

/// Eigenvalues and, as columns of length 1 whose largest element is real, eigenvectors.
pub fn eig(
    a: &[c64],
    n: usize,
    w: &mut [c64],
    v: Option<&mut [c64]>,
    room: &mut Room<c64>,
) -> bool {
    let mut vectors = full(ONE, if v.is_some() { n * n } else { 0 });
    if n == 1 {
        w[0] = a[0];
    } else if n > 1 {
        let params: Spec<EvdParams, c64> = params();
        let which = match v {
            Some(_) => ComputeEigenvectors::Yes,
            None => ComputeEigenvectors::No,
        };
        let none = ComputeEigenvectors::No;
        let stack = room.get(evd::evd_scratch::<c64>(n, none, which, SEQ, params));
        let to = v.is_some().then(|| columns_mut(&mut vectors, n, n));
        let (a, s) = (
            MatRef::from_row_major_slice(a, n, n),
            DiagMut::from_slice_mut(w),
        );
        if evd::evd_cplx(a, s, None, to, SEQ, stack, params).is_err() {
            return false;
        }
    }
    let Some(v) = v else { return true };
    for (j, x) in vectors.chunks_exact(n.max(1)).enumerate() {
        let better = |p: usize, i: usize| if x[i].norm() > x[p].norm() { i } else { p };
        let largest = (0..n).fold(0, better);
        let unit = quotient(x[largest], x[largest].norm().into()) * norm(x);
        (0..n).for_each(|i| v[i * n + j] = quotient(x[i], unit));
        v[largest * n + j].im = 0.0;
    }
    true
}

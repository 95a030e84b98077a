//! Singular values of complex matrices, and eigenvalues of general ones, by `faer`.

use super::super::field::{Complex, Entry};
use super::super::{columns_mut, params, transpose, Precision, Room, ITERATE, SEQ};
use super::{one, zero};
use crate::alloc::full;
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors, EvdParams};
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors, SvdParams};
use faer::{Auto, MatRef, Spec};

/// The same number as `faer` has it.
pub type Far<T> = rustfft::num_complex::Complex<T>;

fn far<T>(x: &[Complex<T>]) -> &[Far<T>] {
    // SAFETY: both are a real and an imaginary part in this order (`repr(C)`).
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}

fn far_mut<T>(x: &mut [Complex<T>]) -> &mut [Far<T>] {
    // SAFETY: as in `far`; the memory is lent out once.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) }
}

/// The 2-norm, whose squares stay in range.
fn norm<T: Precision>(x: &[Complex<T>]) -> f64 {
    let top = x.iter().fold(0.0, |top: f64, z| top.max(z.size().to_f64()));
    match top > 0.0 && top.is_finite() {
        true => {
            top * x
                .iter()
                .map(|z| z.squared_by(1.0 / top))
                .sum::<f64>()
                .sqrt()
        }
        false => top,
    }
}

type Pair<'a, T> = (&'a mut [Complex<T>], &'a mut [Complex<T>]);

/// Singular values, descending, and vectors: columns of `u`, conjugated rows of `vh`.
pub fn svd<T: Precision>(
    a: &[Complex<T>],
    (m, n): (usize, usize),
    s: &mut [T],
    vectors: Option<Pair<T>>,
    full_size: bool,
    room: &mut Room<Far<T>>,
) -> bool {
    let k = m.min(n);
    let (want, p, q) = match (&vectors, full_size) {
        (None, _) => (ComputeSvdVectors::No, 0, 0),
        (_, true) => (ComputeSvdVectors::Full, m, n),
        (_, false) => (ComputeSvdVectors::Thin, k, k),
    };
    let mut params: SvdParams = Auto::<Far<T>>::auto();
    params.recursion_threshold = ITERATE;
    let params = Spec::new(params);
    let mut values = full(zero(), k);
    let (mut left, mut right) = (full(zero(), m * p), full(zero(), n * q));
    let stack = room.get(faer_svd::svd_scratch::<Far<T>>(
        m, n, want, want, SEQ, params,
    ));
    let (u, v) = (
        columns_mut(far_mut(&mut left), m, p),
        columns_mut(far_mut(&mut right), n, q),
    );
    let (u, v) = (
        vectors.is_some().then_some(u),
        vectors.is_some().then_some(v),
    );
    let a = MatRef::from_row_major_slice(far(a), m, n);
    let to = DiagMut::from_slice_mut(far_mut(&mut values));
    if faer_svd::svd(a, to, u, v, SEQ, stack, params).is_err() {
        return false;
    }
    s.iter_mut().zip(&values).for_each(|(to, z)| *to = z.re);
    if let Some((u, vh)) = vectors {
        transpose(&left, p, m, u);
        vh.iter_mut().zip(&right).for_each(|(to, z)| *to = z.conj());
    }
    true
}

/// Eigenvalues and, as columns of length 1 whose largest element is real, eigenvectors.
pub fn eig<T: Precision>(
    a: &[Complex<T>],
    n: usize,
    w: &mut [Complex<T>],
    v: Option<&mut [Complex<T>]>,
    room: &mut Room<Far<T>>,
) -> bool {
    let mut vectors = full(one(), if v.is_some() { n * n } else { 0 });
    if n == 1 {
        w[0] = a[0];
    } else if n > 1 {
        let params: Spec<EvdParams, Far<T>> = params();
        let which = match v {
            Some(_) => ComputeEigenvectors::Yes,
            None => ComputeEigenvectors::No,
        };
        let none = ComputeEigenvectors::No;
        let stack = room.get(evd::evd_scratch::<Far<T>>(n, none, which, SEQ, params));
        let to = v
            .is_some()
            .then(|| columns_mut(far_mut(&mut vectors), n, n));
        let (a, s) = (
            MatRef::from_row_major_slice(far(a), n, n),
            DiagMut::from_slice_mut(far_mut(w)),
        );
        if evd::evd_cplx(a, s, None, to, SEQ, stack, params).is_err() {
            return false;
        }
    }
    let Some(v) = v else { return true };
    for (j, x) in vectors.chunks_exact(n.max(1)).enumerate() {
        let length = norm(x);
        let square = |i: usize| x[i].squared_by(1.0 / length);
        let better = |p: usize, i: usize| if square(i) > square(p) { i } else { p };
        let top = x[(0..n).fold(0, better)];
        // Of the length of the vector, and of the direction of its largest element.
        let unit = top.scaled(T::of_f64(length / norm(&[top])));
        (0..n).for_each(|i| v[i * n + j] = x[i].over(unit));
        v[(0..n).fold(0, better) * n + j].im = T::default();
    }
    true
}

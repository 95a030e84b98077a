//! The computations on one matrix of complex numbers, in double precision: those of single precision are
//! widened to it. Blocks, eigenvalues and singular values are `faer`'s; reflectors are LAPACK's.

use super::{columns_mut, params, result, transpose, Kind, Room, ITERATE, SEQ, SMALL};
use crate::alloc::{self, full, gathered};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::tensor::Tensor;
use faer::diag::DiagMut;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{self, ComputeEigenvectors, EvdParams, SelfAdjointEvdParams};
use faer::linalg::lu::partial_pivoting::factor as plu;
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors, SvdParams};
use faer::linalg::triangular_solve as tri;
use faer::{c64, Auto, MatMut, MatRef, Spec};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ZERO: c64 = c64::new(0.0, 0.0);
const ONE: c64 = c64::new(1.0, 0.0);

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

/// Row `i` minus `f` times row `k`, from column `from` on.
fn subtract(x: &mut [c64], n: usize, (i, k): (usize, usize), f: c64, from: usize) {
    let (a, b) = x.split_at_mut(i.max(k) * n);
    let low = &mut a[i.min(k) * n..][from..n];
    let high = &mut b[from..n];
    let (to, of) = if i < k { (low, &*high) } else { (high, &*low) };
    for (t, o) in to.iter_mut().zip(of) {
        *t -= f * o;
    }
}

/// P A = L U in rows of `n`, and the row that was exchanged with each.
struct Lu {
    x: Vec<c64>,
    n: usize,
    pivots: Vec<usize>,
}

impl Lu {
    fn new(a: &[c64], m: usize, n: usize, pivot: bool, room: &mut Room<c64>) -> Lu {
        let blocked = pivot && m.min(n) > SMALL;
        blocked
            .then(|| Lu::blocked(a, m, n, room))
            .flatten()
            .unwrap_or_else(|| Lu::plain(a, m, n, pivot))
    }

    fn plain(a: &[c64], m: usize, n: usize, pivot: bool) -> Lu {
        let mut x = gathered(a.iter().copied());
        let mut pivots = alloc::room(m.min(n));
        for j in 0..m.min(n) {
            let at = |i: usize| size(x[i * n + j]);
            let better = |p: usize, i: usize| if at(i) > at(p) { i } else { p };
            let p = if pivot { (j + 1..m).fold(j, better) } else { j };
            pivots.push(p);
            if p != j {
                let (a, b) = x.split_at_mut(p * n);
                a[j * n..][..n].swap_with_slice(&mut b[..n]);
            }
            let d = x[j * n + j];
            if d == ZERO {
                continue;
            }
            for i in j + 1..m {
                let f = quotient(x[i * n + j], d);
                x[i * n + j] = f;
                subtract(&mut x, n, (i, j), f, j + 1);
            }
        }
        Lu { x, n, pivots }
    }

    /// `None` where a pivot without an inverse would spoil what comes after it.
    fn blocked(a: &[c64], m: usize, n: usize, room: &mut Room<c64>) -> Option<Lu> {
        let mut t = full(ZERO, m * n);
        transpose(a, m, n, &mut t);
        let (mut perm, mut inverse) = (full(0, m), full(0, m));
        let stack = room.get(plu::lu_in_place_scratch::<usize, c64>(m, n, SEQ, params()));
        let view = columns_mut(&mut t, m, n);
        plu::lu_in_place(view, &mut perm, &mut inverse, SEQ, stack, params());
        let sound = |d: c64| d.is_finite() && size(d) >= f64::MIN_POSITIVE;
        if !(0..m.min(n)).all(|i| sound(t[i * m + i])) {
            return None;
        }
        let mut x = full(ZERO, m * n);
        transpose(&t, n, m, &mut x);
        // As exchanges, one after another.
        let (mut order, mut place) = (gathered(0..m), gathered(0..m));
        let mut pivots = alloc::room(m.min(n));
        for i in 0..m.min(n) {
            let p = place[perm[i]];
            pivots.push(p);
            order.swap(i, p);
            place[order[p]] = p;
        }
        Some(Lu { x, n, pivots })
    }

    fn at(&self, i: usize, j: usize) -> c64 {
        self.x[i * self.n + j]
    }

    /// 1 + the first i with U(i, i) = 0, or 0.
    fn info(&self) -> i32 {
        let found = (0..self.pivots.len()).find(|&i| self.at(i, i) == ZERO);
        found.map_or(0, |i| i as i32 + 1)
    }

    fn sign(&self) -> c64 {
        let swaps = self.pivots.iter().enumerate().filter(|&(i, &p)| p != i);
        if swaps.count().is_multiple_of(2) {
            ONE
        } else {
            -ONE
        }
    }

    fn determinant(&self) -> c64 {
        (0..self.n).fold(self.sign(), |d, i| d * self.at(i, i))
    }

    /// Overwrites the rows of `b` with the solution of A X = B, A square.
    fn solve(&self, b: &mut [c64], k: usize) {
        for (i, &p) in self.pivots.iter().enumerate() {
            for j in 0..if p == i { 0 } else { k } {
                b.swap(i * k + j, p * k + j);
            }
        }
        triangular(&self.x, self.n, b, k, false, true);
        triangular(&self.x, self.n, b, k, true, false);
    }
}

/// Overwrites B with the solution of T X = B for a triangle of A.
fn triangular(a: &[c64], n: usize, b: &mut [c64], k: usize, upper: bool, unit: bool) {
    let sound = |i: usize| size(a[i * n + i]) >= f64::MIN_POSITIVE;
    if n > SMALL && (unit || (0..n).all(sound)) {
        let a = MatRef::from_row_major_slice(a, n, n);
        let b = MatMut::from_row_major_slice_mut(b, n, k);
        return match (upper, unit) {
            (false, false) => tri::solve_lower_triangular_in_place(a, b, SEQ),
            (false, true) => tri::solve_unit_lower_triangular_in_place(a, b, SEQ),
            (true, false) => tri::solve_upper_triangular_in_place(a, b, SEQ),
            (true, true) => tri::solve_unit_upper_triangular_in_place(a, b, SEQ),
        };
    }
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        if !unit {
            let row = b[i * k..][..k].iter_mut();
            row.for_each(|v| *v = quotient(*v, a[i * n + i]));
        }
        for r in if upper { 0..i } else { i + 1..n } {
            subtract(b, k, (r, i), a[r * n + i], 0);
        }
    }
}

/// The lower factor of a Hermitian matrix, of which the lower triangle is read; gives the order of the
/// first leading minor that is not positive, or 0.
fn cholesky(a: &[c64], n: usize, l: &mut [c64], room: &mut Room<c64>) -> i32 {
    if n > SMALL {
        let mut x = full(ZERO, n * n);
        transpose(a, n, n, &mut x);
        // Of the diagonal the real parts count.
        (0..n).for_each(|i| x[i * n + i].im = 0.0);
        let stack = room.get(llt::cholesky_in_place_scratch::<c64>(n, SEQ, params()));
        let view = columns_mut(&mut x, n, n);
        if llt::cholesky_in_place(view, Default::default(), SEQ, stack, params()).is_ok() {
            transpose(&x, n, n, l);
            (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(ZERO));
            return 0;
        }
    }
    l.fill(ZERO);
    for j in 0..n {
        for i in j..n {
            let pairs = l[i * n..][..j].iter().zip(&l[j * n..][..j]);
            let v = pairs.fold(a[i * n + j], |v, (p, q)| v - p * q.conj());
            if i > j {
                l[i * n + j] = v / l[j * n + j].re;
            } else if v.re > 0.0 {
                l[j * n + j] = v.re.sqrt().into();
            } else {
                // NaN, too.
                return j as i32 + 1;
            }
        }
    }
    0
}

/// The rows from `j` on of `x` minus `factor v` times `v' x`, in the columns from `from` on.
fn reflect(x: &mut [c64], n: usize, j: usize, v: &[c64], factor: c64, from: usize) {
    let mut dots = full(ZERO, n - from);
    for (row, v) in x.chunks_exact(n).skip(j).zip(v) {
        for (d, x) in dots.iter_mut().zip(&row[from..]) {
            *d += v.conj() * x;
        }
    }
    for (row, v) in x.chunks_exact_mut(n).skip(j).zip(v) {
        let f = factor * v;
        for (x, d) in row[from..].iter_mut().zip(&dots) {
            *x -= f * d;
        }
    }
}

/// R on and above the diagonal, reflectors below it, and their factors.
fn householder(x: &mut [c64], m: usize, n: usize) -> Vec<c64> {
    let mut tau = full(ZERO, m.min(n));
    let mut v = alloc::room(m);
    for j in 0..m.min(n) {
        v.clear();
        v.extend((j..m).map(|i| x[i * n + j]));
        let alpha = v[0];
        if norm(&v[1..]) == 0.0 && alpha.im == 0.0 {
            continue;
        }
        let beta = -norm(&v).copysign(alpha.re);
        tau[j] = c64::new((beta - alpha.re) / beta, -alpha.im / beta);
        let each = v[1..].iter_mut();
        each.for_each(|v| *v = quotient(*v, alpha - beta));
        v[0] = ONE;
        reflect(x, n, j, &v, tau[j].conj(), j + 1);
        x[j * n + j] = beta.into();
        (1..m - j).for_each(|i| x[(j + i) * n + j] = v[i]);
    }
    tau
}

fn qr(a: &[c64], (m, n): (usize, usize), q: &mut [c64], r: &mut [c64], full_size: bool) {
    let k = m.min(n);
    let height = if full_size { m } else { k };
    let mut x = gathered(a.iter().copied());
    let tau = householder(&mut x, m, n);
    r.fill(ZERO);
    q.fill(ZERO);
    for i in 0..k {
        r[i * n + i..(i + 1) * n].copy_from_slice(&x[i * n + i..(i + 1) * n]);
    }
    (0..height).for_each(|i| q[i * height + i] = ONE);
    let mut v = alloc::room(m);
    for j in (0..k).rev() {
        v.clear();
        v.push(ONE);
        v.extend((j + 1..m).map(|i| x[i * n + j]));
        reflect(q, height, j, &v, tau[j], j);
    }
}

/// Runs on `a` in the middle of the range of numbers, and brings what it gives back from there.
fn at_scale(a: &[c64], values: &mut [f64], run: impl FnOnce(&[c64], &mut [f64]) -> bool) -> bool {
    let top = a.iter().fold(0.0, |top: f64, &z| top.max(size(z)));
    if top == 0.0 || (1e-140..1e140).contains(&top) || !top.is_finite() {
        return run(a, values);
    }
    let unit = 2f64.powi((top.log2().floor() as i32).clamp(-1000, 1000));
    let done = run(&gathered(a.iter().map(|z| z / unit)), values);
    values.iter_mut().for_each(|v| *v *= unit);
    done
}

fn real_parts(from: &[c64], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, z)| *to = z.re);
}

/// Eigenvalues, ascending, and eigenvectors as columns, of a Hermitian matrix.
fn eigh(a: &[c64], n: usize, w: &mut [f64], v: Option<&mut [c64]>, room: &mut Room<c64>) -> bool {
    if n == 0 {
        return true;
    }
    let mut p: SelfAdjointEvdParams = Auto::<c64>::auto();
    p.recursion_threshold = ITERATE;
    let p = Spec::new(p);
    let which = match v {
        Some(_) => ComputeEigenvectors::Yes,
        None => ComputeEigenvectors::No,
    };
    // Of the diagonal the real parts count.
    let mut a = gathered(a.iter().copied());
    (0..n).for_each(|i| a[i * n + i].im = 0.0);
    let (mut found, mut vectors) = (full(ZERO, n), full(ZERO, n * n));
    let stack = room.get(evd::self_adjoint_evd_scratch::<c64>(n, which, SEQ, p));
    let to = v.is_some().then(|| columns_mut(&mut vectors, n, n));
    let (a, s) = (
        MatRef::from_row_major_slice(&a, n, n),
        DiagMut::from_slice_mut(&mut found),
    );
    if evd::self_adjoint_evd(a, s, to, SEQ, stack, p).is_err() {
        return false;
    }
    real_parts(&found, w);
    if let Some(v) = v {
        transpose(&vectors, n, n, v);
    }
    true
}

type Pair<'a> = (&'a mut [c64], &'a mut [c64]);

/// Singular values, descending, and vectors: columns of `u`, conjugated rows of `vh`.
fn svd(
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
fn eig(a: &[c64], n: usize, w: &mut [c64], v: Option<&mut [c64]>, room: &mut Room<c64>) -> bool {
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

/// The matrix of cofactors, which exists for singular A too.
fn cofactors(a: &[c64], n: usize, y: &mut [c64], room: &mut Room<c64>) -> bool {
    let mut s = full(0.0, n);
    let (mut u, mut vh) = (full(ZERO, n * n), full(ZERO, n * n));
    if !svd(a, (n, n), &mut s, Some((&mut u, &mut vh)), true, room) {
        return false;
    }
    let mut det = |x: &[c64]| Lu::new(x, n, n, true, room).determinant();
    let both = det(&u) * det(&vh);
    y.fill(ZERO);
    for k in 0..n {
        let others = (0..n).filter(|&j| j != k).fold(1.0, |p, j| p * s[j]);
        for i in 0..n {
            for j in 0..n {
                y[i * n + j] += both * others * (u[i * n + k] * vh[k * n + j]).conj();
            }
        }
    }
    true
}

/// The inputs and results of one element of a batch.
struct Case<'a> {
    m: usize,
    n: usize,
    a: &'a [c64],
    b: &'a [c64],
    y: [&'a mut [c64]; 3],
    reals: &'a mut [f64],
    ints: [&'a mut [i32]; 2],
}

/// One computation; `false` where it did not converge.
fn compute(kind: Kind, c: Case, room: &mut Room<c64>) -> bool {
    let (m, n) = (c.m, c.n);
    let ([y, y1, y2], [info, info1]) = (c.y, c.ints);
    match kind {
        Kind::Cholesky => info[0] = cholesky(c.a, n, y, room),
        Kind::Inverse | Kind::Solve => {
            let f = Lu::new(c.a, n, n, true, room);
            info[0] = f.info();
            if kind == Kind::Solve {
                y.copy_from_slice(c.b);
            } else {
                y.fill(ZERO);
                (0..n).for_each(|i| y[i * n + i] = ONE);
            }
            f.solve(y, y.len() / n.max(1));
        }
        Kind::Det => y[0] = Lu::new(c.a, n, n, true, room).determinant(),
        Kind::Slogdet => {
            let f = Lu::new(c.a, n, n, true, room);
            y[0] = f.sign();
            for d in (0..n).map(|i| f.at(i, i)) {
                y[0] *= if d == ZERO { ZERO } else { d / d.norm() };
                c.reals[0] += d.norm().ln();
            }
        }
        Kind::Cofactors => return cofactors(c.a, n, y, room),
        Kind::Triangular { upper, unit } => {
            y.copy_from_slice(c.b);
            triangular(c.a, n, y, y.len() / n.max(1), upper, unit);
        }
        Kind::Eigh => return at_scale(c.a, c.reals, |a, w| eigh(a, n, w, Some(y), room)),
        Kind::Eigenvalues => return at_scale(c.a, c.reals, |a, w| eigh(a, n, w, None, room)),
        Kind::Svd { full } => {
            let run = |a: &[c64], s: &mut [f64]| svd(a, (m, n), s, Some((y, y1)), full, room);
            return at_scale(c.a, c.reals, run);
        }
        Kind::SingularValues => {
            let run = |a: &[c64], s: &mut [f64]| svd(a, (m, n), s, None, false, room);
            return at_scale(c.a, c.reals, run);
        }
        Kind::Eig { vectors } => return eig(c.a, n, y, vectors.then_some(y1), room),
        Kind::Qr { full } => qr(c.a, (m, n), y, y1, full),
        Kind::Reflectors => {
            y.copy_from_slice(c.a);
            y1.copy_from_slice(&householder(y, m, n));
        }
        Kind::Lu { pivot } => {
            let (f, k) = (Lu::new(c.a, m, n, pivot, room), m.min(n));
            y.fill(ZERO);
            if pivot {
                let order = super::super::order(f.pivots.iter().copied(), m);
                (0..m).for_each(|i| y[order[i] * m + i] = ONE);
            }
            for (i, row) in y1.chunks_exact_mut(k.max(1)).enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    *to = match i.cmp(&j) {
                        Ordering::Greater => f.at(i, j),
                        Ordering::Equal => ONE,
                        Ordering::Less => ZERO,
                    };
                }
            }
            for (i, row) in y2.chunks_exact_mut(n.max(1)).enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    *to = if j >= i { f.at(i, j) } else { ZERO };
                }
            }
        }
        Kind::LuFactor { pivot } => {
            let f = Lu::new(c.a, m, n, pivot, room);
            y.copy_from_slice(&f.x);
            let each = info.iter_mut().zip(&f.pivots);
            each.for_each(|(to, &p)| *to = p as i32 + 1);
            info1[0] = f.info();
        }
        // What is called checks that there are none of these.
        Kind::LeastSquares { .. } | Kind::Ldl | Kind::LdlSolve => return false,
    }
    true
}

/// Runs a computation on every element of a batch; `false` where one did not converge. Inputs are
/// contiguous with the same batch, of complex128; results are contiguous, zeros at first.
pub fn run(kind: Kind, count: usize, x: &[Tensor], y: &[Tensor]) -> bool {
    let (m, n) = (super::super::rows(&x[0]), super::super::cols(&x[0]));
    let part = |t: &Tensor| t.numel() / count.max(1);
    let of = |category: u8| y.iter().filter(move |t| t.dtype().category() == category);
    let complex: Vec<_> = of(3).map(|t| (Ptr(t.ptr::<c64>()), part(t))).collect();
    let reals: Vec<_> = of(2).map(|t| (Ptr(t.ptr::<f64>()), part(t))).collect();
    let ints: Vec<_> = of(1).map(|t| (Ptr(t.ptr::<i32>()), part(t))).collect();
    let converged = AtomicBool::new(true);
    let work = m * n * n.max(1);
    parallel_for(count, (1 << 11) / work.max(1) + 1, |range| {
        let mut room = Room::new();
        alloc::spare(range.len().saturating_mul(work));
        for b in range {
            let input = |i: usize| -> &[c64] {
                let Some(t) = x.get(i).filter(|t| t.numel() > 0) else {
                    return &[];
                };
                let (p, len) = (t.ptr::<c64>(), part(t));
                // SAFETY: contiguous host memory of this type, of `count` matrices.
                unsafe { std::slice::from_raw_parts(p.add(b * len), len) }
            };
            // SAFETY: each element of the batch has its own part of every result.
            let case = unsafe {
                Case {
                    m,
                    n,
                    a: input(0),
                    b: input(1),
                    y: std::array::from_fn(|i| result(&complex, i, b..b + 1)),
                    reals: result(&reals, 0, b..b + 1),
                    ints: std::array::from_fn(|i| result(&ints, i, b..b + 1)),
                }
            };
            if !compute(kind, case, &mut room) {
                converged.store(false, Relaxed);
            }
        }
    });
    converged.into_inner()
}

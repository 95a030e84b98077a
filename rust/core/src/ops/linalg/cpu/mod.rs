//! The computations on one matrix. Most blocked algorithms are those of `faer`, one thread each: a
//! batch is what our pool splits, and LU of a large matrix (`blocks`). Matrices that caches hold, and symmetric ones with their
//! eigenvectors, have kernels of our own.
//!
//! Matrices come in rows, and `faer` works on columns: where a factorisation of the transpose
//! does as well, as for determinants and systems of equations, it saves a copy.

mod batched;
mod blocks;
pub mod complex;
mod conquer;
pub mod exponential;
mod field;
mod general;
mod hessenberg;
mod householder;
mod lanes;
mod lu;
mod panel;
pub mod plain;
pub mod probe;
mod schur;
pub mod small;
mod svd;
mod symmetric;
mod tridiagonal;
mod wide;

use super::Kind;
use crate::alloc::{self, full, gathered, Workspace};
use crate::cpu::elements::Compute;
use crate::cpu::gemm::GemmElem;
use crate::cpu::pool::{look, parallel_for, Ptr};
use crate::cpu::simd::Vectors;
use crate::cpu::transpose as turn;
use crate::error;
use crate::tensor::Tensor;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{self, ComputeEigenvectors, SelfAdjointEvdParams};
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors, SvdParams};
use faer::linalg::triangular_solve as tri;
use faer::traits::RealField;
use faer::{Auto, MatMut, MatRef, Par, Spec};
use householder::Reflected;
use lu::Lu;
use plain::SMALL;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tridiagonal::Tridiagonal;

/// A type that factorisations compute in.
pub trait Precision:
    Compute
    + Vectors
    + GemmElem<Acc = Self>
    + RealField
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const TINY: Self;
    const EPS: f64;
    fn abs(self) -> Self;
    fn root(self) -> Self;
    fn finite(self) -> bool;
}
macro_rules! numbers {
    ($($t:ident),*) => {$(
        impl Precision for $t {
            const TINY: Self = $t::MIN_POSITIVE;
            const EPS: f64 = $t::EPSILON as f64;
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}
numbers!(f32, f64);

const SEQ: Par = Par::Seq;

/// The size up to which bidiagonal matrices go to implicit QR, not to divide and conquer: measured.
const SVD_LEAF: usize = 32;
/// The size up to which our own reduction to three diagonals is quicker for eigenvalues alone.
const VALUES: usize = 640;
/// The size from which on divide and conquer is quicker than QL.
const VECTORS: usize = 64;
/// Sizes up to which our own singular vectors are quicker: beyond, there is more to rotate than
/// divide and conquer has to multiply.
const SVD: usize = 256;
const SVD_F32: usize = 640;
/// Multiplications of a matrix from which on the user is asked before each whether to go on.
const LONG: usize = 1 << 14;
/// Implicit QR for matrices of any size. Divide and conquer of `faer` 0.23 and 0.24 ends the search
/// for a root where the secular equation is flat to rounding, which for a matrix of low rank can be
/// far from the root. So its results are compared with the matrix, in their product with a vector
/// of random signs, and where they differ they are computed again. Values alone are as quick.
const ITERATE: usize = usize::MAX;

fn params<P: Auto<T>, T>() -> Spec<P, T> {
    Spec::new(<P as Auto<T>>::auto())
}

fn svd_params<T: Precision>(leaf: usize) -> Spec<SvdParams, T> {
    let mut p: SvdParams = Auto::<T>::auto();
    p.recursion_threshold = leaf;
    Spec::new(p)
}

/// Memory for an algorithm, used again for the next matrix, with its size and alignment, and that of
/// the last factors.
struct Room<T> {
    buffer: MemBuffer,
    size: usize,
    align: usize,
    x: Vec<T>,
    pivots: Vec<usize>,
}

impl<T> Room<T> {
    fn new() -> Self {
        Room {
            buffer: MemBuffer::new(StackReq::EMPTY),
            size: 0,
            align: 1,
            x: Vec::new(),
            pivots: Vec::new(),
        }
    }
    fn get(&mut self, need: StackReq) -> &mut MemStack {
        let (size, align) = (need.size_bytes(), need.align_bytes());
        if size > self.size || align > self.align {
            match MemBuffer::try_new(need) {
                Ok(buffer) => (self.buffer, self.size, self.align) = (buffer, size, align),
                Err(_) => error::unwind(alloc::out_of_memory(size)),
            }
        }
        MemStack::new(&mut self.buffer)
    }
}

/// The transpose of `m` rows of `n`, in squares that stay in the cache.
fn transpose<T: Copy>(x: &[T], m: usize, n: usize, y: &mut [T]) {
    const B: usize = 16;
    const LARGE: usize = 1 << 14;
    /// Columns that one task takes.
    const WIDTH: usize = 64;
    assert!(
        x.len() >= m * n && y.len() >= m * n,
        "there is room for the matrix"
    );
    if m * n >= LARGE && size_of::<T>() <= 8 {
        let (from, to) = (Ptr::read(x.as_ptr()), Ptr::new(y.as_mut_ptr()));
        return parallel_for(n.div_ceil(WIDTH), LARGE / (m * WIDTH) + 1, |range| {
            let (first, end) = (range.start * WIDTH, n.min(range.end * WIDTH));
            // SAFETY: columns from `first` on become rows, which are this task's own.
            unsafe {
                let (from, to) = (from.at(first), to.at(first * m));
                turn::kernel::<T>()(from, n as isize, to, m as isize, m, end - first);
            }
        });
    }
    for i in (0..m).step_by(B) {
        for j in (0..n).step_by(B) {
            for c in j..n.min(j + B) {
                let to = &mut y[c * m + i..c * m + m.min(i + B)];
                for (r, y) in to.iter_mut().enumerate() {
                    *y = x[(i + r) * n + c];
                }
            }
        }
    }
}

/// A view of memory whose columns lie one after another.
fn columns<T>(x: &[T], m: usize, n: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(x, m, n)
}
fn columns_mut<T>(x: &mut [T], m: usize, n: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(x, m, n)
}

/// Overwrites B with the solution of T X = B for a triangle of A.
fn triangular<T: Precision>(a: &[T], n: usize, b: &mut [T], k: usize, upper: bool, unit: bool) {
    let sound = |i: usize| a[i * n + i].abs() >= T::TINY;
    if n <= SMALL || n.max(k) <= small::MOST || !(unit || (0..n).all(sound)) {
        return plain::triangular(a, n, b, k, upper, unit);
    }
    let a = MatRef::from_row_major_slice(a, n, n);
    let b = MatMut::from_row_major_slice_mut(b, n, k);
    match (upper, unit) {
        (false, false) => tri::solve_lower_triangular_in_place(a, b, SEQ),
        (false, true) => tri::solve_unit_lower_triangular_in_place(a, b, SEQ),
        (true, false) => tri::solve_upper_triangular_in_place(a, b, SEQ),
        (true, true) => tri::solve_unit_upper_triangular_in_place(a, b, SEQ),
    }
}

fn cholesky<T: Precision>(a: &[T], n: usize, l: &mut [T], room: &mut Room<T>) -> i32 {
    if n > small::MOST {
        // Rows of the lower triangle become columns.
        let mut x = Workspace::full(T::default(), n * n);
        transpose(a, n, n, &mut x);
        let stack = room.get(llt::cholesky_in_place_scratch::<T>(n, SEQ, params()));
        let view = columns_mut(&mut x, n, n);
        if llt::cholesky_in_place(view, Default::default(), SEQ, stack, params()).is_ok() {
            transpose(&x, n, n, l);
            for i in 0..n {
                l[i * n + i + 1..(i + 1) * n].fill(T::default());
            }
            return 0;
        }
    }
    l.fill(T::default());
    plain::cholesky(a, n, l)
}

fn scale<T: Precision>(x: &mut [f64], by: &[T]) {
    for (x, by) in x.iter_mut().zip(by) {
        *x *= by.to_f64();
    }
}

/// Eigenvalues and, into rows, eigenvectors as columns; `false` where it did not converge.
/// Runs on `a` in the middle of the type's range, and brings the values back from there: squares of
/// what lies near its ends are infinite or zero. `read` are the elements that count.
fn at_scale<'a, T: Precision>(
    a: &'a [T],
    read: impl Iterator<Item = &'a T>,
    values: &mut [T],
    run: impl FnOnce(&[T], &mut [T]) -> bool,
) -> bool {
    let top = read.fold(0.0, |top: f64, v| top.max(v.to_f64().abs()));
    // As LAPACK's.
    let least = T::TINY.to_f64().sqrt() / T::EPS;
    if top == 0.0 || (least..=1.0 / least).contains(&top) || !top.is_finite() {
        return run(a, values);
    }
    let power = (top.log2().floor() as i32).clamp(-1000, 1000);
    let by = |x: T, power: i32| T::of_f64(x.to_f64() * 2f64.powi(power));
    let scaled: Vec<T> = gathered(a.iter().map(|&x| by(x, -power)));
    let done = run(&scaled, values);
    values.iter_mut().for_each(|v| *v = by(*v, power));
    done
}

/// The elements on and below the diagonal.
fn lower<T>(a: &[T], n: usize) -> impl Iterator<Item = &T> {
    (0..n).flat_map(move |i| &a[i * n..=i * n + i])
}

fn eigh<T: Precision>(
    a: &[T],
    n: usize,
    w: &mut [T],
    v: Option<&mut [T]>,
    room: &mut Room<T>,
) -> bool {
    if n == 0 {
        return true;
    }
    let Some(v) = v else {
        if n <= VALUES {
            return Tridiagonal::new(a, n).values(w);
        }
        // It reads the lower triangle.
        let view = MatRef::from_row_major_slice(a, n, n);
        let mut params: SelfAdjointEvdParams = Auto::<T>::auto();
        params.recursion_threshold = ITERATE;
        let params = Spec::new(params);
        let need = evd::self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::No, SEQ, params);
        let (to, stack) = (DiagMut::from_slice_mut(w), room.get(need));
        return evd::self_adjoint_evd(view, to, None, SEQ, stack, params).is_ok();
    };
    let t = Tridiagonal::new(a, n);
    match n <= VECTORS {
        true => t.vectors(w, v),
        false => t.conquered(w, v),
    }
}

/// Singular values and vectors of `m` rows of `n`: `u` has `p` columns, `vh` has `q` rows.
fn svd<T: Precision>(
    a: &[T],
    (m, n): (usize, usize),
    s: &mut [T],
    vectors: Option<(&mut [T], &mut [T])>,
    full_size: bool,
    room: &mut Room<T>,
) -> bool {
    let k = m.min(n);
    let Some((u, vh)) = vectors else {
        return svd::values(a, (m, n), s);
    };
    let most = if size_of::<T>() == 4 { SVD_F32 } else { SVD };
    if k <= most && svd::vectors(a, (m, n), s, (u, vh), full_size) {
        return true;
    }
    let (want, p, q) = match full_size {
        true => (ComputeSvdVectors::Full, m, n),
        false => (ComputeSvdVectors::Thin, k, k),
    };
    // The columns of the transpose are the rows that we have.
    let view = columns(a, n, m);
    let mut left = Workspace::full(T::default(), m * p);
    for leaf in [SVD_LEAF, ITERATE] {
        // What it leaves out of a complete basis is zero.
        vh.fill(T::default());
        left.fill(T::default());
        let params = svd_params(leaf);
        let stack = room.get(faer_svd::svd_scratch::<T>(n, m, want, want, SEQ, params));
        let to = (columns_mut(vh, n, q), columns_mut(&mut left, m, p));
        let values = DiagMut::from_slice_mut(s);
        if faer_svd::svd(view, values, Some(to.0), Some(to.1), SEQ, stack, params).is_err() {
            return false;
        }
        if k < leaf {
            break;
        }
        // A x and U S V' x.
        let x = probe::signs(n);
        let mut parts = probe::times(&vh[..k * n], &x);
        scale(&mut parts, s);
        let got = probe::turned_times(&left[..k * m], m, &parts);
        let (want, size) = (probe::times(a, &x), s[0].to_f64());
        if probe::agree::<T>(&got, &want, size, m.max(n))
            && probe::orthonormal(vh, n)
            && probe::orthonormal(&left, m)
        {
            break;
        }
    }
    transpose(&left, p, m, u);
    true
}

fn qr<T: Precision>(a: &[T], (m, n): (usize, usize), q: &mut [T], r: &mut [T], full_size: bool) {
    let k = m.min(n);
    let height = if full_size { m } else { k };
    r.fill(T::default());
    if k > 0 && m.max(n) <= small::MOST {
        // SAFETY: both sizes are from one to MOST.
        return unsafe { small::qr(a, (m, n), q, r, height) };
    }
    let mut x = Workspace::copied(a);
    let factors = Reflected::new(&mut x, m, n, n);
    r.copy_from_slice(&x[..r.len()]);
    factors.basis(q, height);
}

/// The X for which A X comes nearest to B; `false` where A may lack columns.
fn least_squares<T: Precision>(
    (a, b): (&[T], &[T]),
    (m, n): (usize, usize),
    x: &mut [T],
    rcond: f64,
) -> bool {
    let k = b.len() / m.max(1);
    let all = n + k;
    let mut both = Workspace::full(T::default(), m * all);
    for (i, row) in both.chunks_exact_mut(all).enumerate() {
        row[..n].copy_from_slice(&a[i * n..][..n]);
        row[n..].copy_from_slice(&b[i * k..][..k]);
    }
    Reflected::new(&mut both, m, all, n);
    if !householder::regular(&both, all, n, rcond) {
        return false;
    }
    let mut r = Workspace::full(T::default(), n * n);
    for i in 0..n {
        r[i * n..][..n].copy_from_slice(&both[i * all..][..n]);
        x[i * k..][..k].copy_from_slice(&both[i * all + n..][..k]);
    }
    triangular(&r, n, x, k, true, false);
    true
}

/// The matrix of cofactors, which exists for singular A too.
fn cofactors<T: Precision>(a: &[T], n: usize, y: &mut [T], room: &mut Room<T>) -> bool {
    let mut s = full(T::default(), n);
    let (mut u, mut vh) = (full(T::default(), n * n), full(T::default(), n * n));
    if !svd(a, (n, n), &mut s, Some((&mut u, &mut vh)), true, room) {
        return false;
    }
    let mut det = |x: &[T]| Lu::square(x, n, room).determinant();
    let sign = det(&u) * det(&vh);
    y.fill(T::default());
    for k in 0..n {
        let others = (0..n)
            .filter(|&j| j != k)
            .fold(T::of_f64(1.0), |p, j| p * s[j]);
        for i in 0..n {
            for j in 0..n {
                y[i * n + j] = y[i * n + j] + sign * others * u[i * n + k] * vh[k * n + j];
            }
        }
    }
    true
}

/// The inputs and results of one element of a batch.
struct Case<'a, T> {
    m: usize,
    n: usize,
    a: &'a [T],
    b: &'a [T],
    y: [&'a mut [T]; 3],
    ints: [&'a mut [i32]; 2],
}

/// One computation; `false` where it did not converge.
fn compute<T: Precision>(kind: Kind, c: Case<T>, room: &mut Room<T>) -> bool {
    let (m, n) = (c.m, c.n);
    let ([y, y1, y2], [info, info1]) = (c.y, c.ints);
    match kind {
        Kind::Cholesky => info[0] = cholesky(c.a, n, y, room),
        Kind::Inverse => {
            let f = Lu::square(c.a, n, room);
            let found = f.info(n);
            f.inverse(y, room);
            f.end(room);
            info[0] = Lu::info_of_rows(c.a, n, found, room);
        }
        Kind::Solve => {
            let f = Lu::square(c.a, n, room);
            let found = f.info(n);
            y.copy_from_slice(c.b);
            f.solve(y, c.b.len() / n.max(1), room);
            f.end(room);
            info[0] = Lu::info_of_rows(c.a, n, found, room);
        }
        Kind::Det => {
            let f = Lu::square(c.a, n, room);
            y[0] = f.determinant();
            f.end(room);
        }
        Kind::Slogdet => {
            let f = Lu::square(c.a, n, room);
            let (sign, log) = f.sign_and_log();
            (y[0], y1[0]) = (T::of_f64(sign), T::of_f64(log));
            f.end(room);
        }
        Kind::Cofactors => return cofactors(c.a, n, y, room),
        Kind::Triangular { upper, unit } => {
            y.copy_from_slice(c.b);
            triangular(c.a, n, y, c.b.len() / n.max(1), upper, unit);
        }
        Kind::Eigh => {
            let run = |a: &[T], w: &mut [T]| eigh(a, n, w, Some(y1), room);
            return at_scale(c.a, lower(c.a, n), y, run);
        }
        Kind::Eigenvalues => {
            let run = |a: &[T], w: &mut [T]| eigh(a, n, w, None, room);
            return at_scale(c.a, lower(c.a, n), y, run);
        }
        Kind::Svd { full } => {
            let run = |a: &[T], s: &mut [T]| svd(a, (m, n), s, Some((y, y2)), full, room);
            return at_scale(c.a, c.a.iter(), y1, run);
        }
        Kind::SingularValues => {
            let run = |a: &[T], s: &mut [T]| svd(a, (m, n), s, None, false, room);
            return at_scale(c.a, c.a.iter(), y, run);
        }
        Kind::Qr { full } => qr(c.a, (m, n), y, y1, full),
        Kind::LeastSquares { rcond } => {
            let done = least_squares((c.a, c.b), (m, n), y, f64::from_bits(rcond));
            info[0] = !done as i32;
        }
        Kind::Reflectors => {
            y.copy_from_slice(c.a);
            Reflected::new(y, m, n, n).pack(y, n, y1);
        }
        Kind::Ldl { .. } => {
            y.copy_from_slice(c.a);
            info1[0] = symmetric::ldl(y, n, info, false);
        }
        Kind::LdlSolve { .. } => {
            y.copy_from_slice(c.b);
            symmetric::solve(c.a, m, y, c.b.len() / m.max(1), false);
        }
        Kind::Eig { vectors } => {
            let to = vectors.then_some(y1);
            let run = |a: &[T], w: &mut [T]| general::eig(a, n, w, to, room);
            return at_scale(c.a, c.a.iter(), y, run);
        }
        Kind::Lu { pivot } => {
            let k = m.min(n);
            let f = Lu::new(c.a, m, n, true, pivot, room);
            y.fill(T::default());
            if pivot {
                for (i, &j) in super::order(f.pivots.iter().copied(), m).iter().enumerate() {
                    y[j * m + i] = T::of_f64(1.0);
                }
            }
            for i in 0..m {
                for j in 0..k {
                    y1[i * k + j] = match i.cmp(&j) {
                        std::cmp::Ordering::Greater => f.at(m, i, j),
                        std::cmp::Ordering::Equal => T::of_f64(1.0),
                        std::cmp::Ordering::Less => T::default(),
                    };
                }
            }
            for i in 0..k {
                for j in 0..n {
                    y2[i * n + j] = if j >= i { f.at(m, i, j) } else { T::default() };
                }
            }
        }
        Kind::LuFactor { pivot } => {
            let f = Lu::new(c.a, m, n, true, pivot, room);
            f.rows(m, y);
            for (to, &p) in info.iter_mut().zip(&f.pivots) {
                *to = p as i32 + 1;
            }
            info1[0] = f.info(m);
            f.end(room);
        }
    }
    true
}

/// Runs a computation on every element of a batch; `false` where one did not converge. Inputs are
/// contiguous with the same batch; results are contiguous.
pub fn run<T: Precision>(kind: Kind, count: usize, x: &[Tensor], y: &[Tensor]) -> bool {
    let (m, n) = (super::rows(&x[0]), super::cols(&x[0]));
    let real: Vec<_> = y.iter().filter(|t| t.dtype().is_float()).collect();
    let ints: Vec<_> = y.iter().filter(|t| !t.dtype().is_float()).collect();
    let part = |t: &Tensor| t.numel() / count.max(1);
    let real: Vec<_> = real
        .iter()
        .map(|t| (Ptr::new(t.ptr::<T>()), part(t)))
        .collect();
    let ints: Vec<_> = ints
        .iter()
        .map(|t| (Ptr::new(t.ptr::<i32>()), part(t)))
        .collect();
    let converged = AtomicBool::new(true);
    let work = m * n * n.max(1);
    let sides = x.get(1).map_or(n, |b| part(b) / n.max(1));
    if n.min(sides) > 0 && n.max(sides) <= batched::MOST && count > 1 && m == n {
        if let Some(run) = together::<T>(kind) {
            let grain = ((1 << 15) / work + 1).next_multiple_of(batched::LANES);
            parallel_for(count, grain, |range| {
                let input = |i: usize| -> &[T] {
                    let Some(t) = x.get(i) else { return &[] };
                    // SAFETY: contiguous host memory of this type, of `count` matrices.
                    let all = unsafe { t.slice::<T>() };
                    &all[range.start * part(t)..range.end * part(t)]
                };
                // SAFETY: each element of the batch has its own part of every result.
                unsafe {
                    let y = result(&real, 0, range.clone());
                    run(
                        [input(0), input(1)],
                        [n, sides],
                        y,
                        result(&ints, 0, range.clone()),
                    );
                }
            });
            return true;
        }
    }
    parallel_for(count, (1 << 13) / work.max(1) + 1, |range| {
        let mut room = Room::<T>::new();
        alloc::spare(range.len().saturating_mul(work));
        for b in range {
            if work >= LONG {
                look();
            }
            let input = |i: usize| -> &[T] {
                let Some(t) = x.get(i) else { return &[] };
                // SAFETY: contiguous host memory of this type, of `count` matrices.
                let all = unsafe { t.slice::<T>() };
                &all[b * part(t)..(b + 1) * part(t)]
            };
            // SAFETY: each element of the batch has its own part of every result.
            let case = unsafe {
                Case {
                    m,
                    n,
                    a: input(0),
                    b: input(1),
                    y: std::array::from_fn(|i| result(&real, i, b..b + 1)),
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

/// What computes systems of a few equations together: of the matrices and the right sides, `n` and how many
/// of these there are, to the result and what is said of each.
type Together<T> = fn([&[T]; 2], [usize; 2], &mut [T], &mut [i32]);

fn together<T: Precision>(kind: Kind) -> Option<Together<T>> {
    Some(match kind {
        Kind::Solve => |[a, b], [n, k], y, info| batched::solve(a, Some(b), n, k, y, info),
        Kind::Inverse => |[a, _], [n, _], y, info| batched::solve(a, None, n, n, y, info),
        Kind::Det => |[a, _], [n, _], y, _| batched::determinants(a, n, y),
        _ => return None,
    })
}

/// Parts of result `i`, empty where there is none.
// SAFETY: the result has such parts, and nobody else uses them.
unsafe fn result<'a, E>(all: &[(Ptr<E>, usize)], i: usize, parts: Range<usize>) -> &'a mut [E] {
    match all.get(i) {
        // SAFETY: parts of `len` elements lie in the result, and nobody else uses them.
        Some((p, len)) if *len > 0 => unsafe { p.part(parts.start * len..parts.end * len) },
        _ => &mut [],
    }
}

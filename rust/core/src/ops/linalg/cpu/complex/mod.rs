//! The computations on one matrix of complex numbers, in their own precision. Blocks are products of real
//! matrices; singular values, and eigenvalues of general matrices, are `faer`'s.

mod eigh;
mod far;
mod lu;
mod parts;
mod reflected;

use super::field::{Complex, Entry};
use super::householder::regular;
use super::{result, symmetric, Kind, Precision, Room, LONG};
use crate::alloc::{self, full, gathered};
use crate::cpu::pool::{look, parallel_for, Ptr};
use crate::cpu::simd::Lane;
use crate::dtype::Category;
use crate::tensor::Tensor;
use far::Far;
use lu::Lu;
use parts::Columns;
use reflected::Reflected;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn zero<T: Precision>() -> Complex<T> {
    Complex::default()
}
fn one<T: Precision>() -> Complex<T> {
    Complex::of(Lane::UNIT)
}

fn qr<T: Precision>(
    a: &[Complex<T>],
    (m, n): (usize, usize),
    q: &mut [Complex<T>],
    r: &mut [Complex<T>],
    full_size: bool,
) {
    let k = m.min(n);
    let height = if full_size { m } else { k };
    let mut x = Columns::of(a, m, n, false);
    // SAFETY: the columns are this call's.
    let factors = unsafe { Reflected::new(x.part(), n) };
    r.fill(zero());
    for i in 0..k {
        for j in i..n {
            r[i * n + j] = x.at(i, j);
        }
    }
    let mut basis = Columns::zeros(m, height);
    // SAFETY: the columns are this call's.
    unsafe { factors.basis(basis.part()) };
    basis.store(q, height, false);
}

/// The X for which A X comes nearest to B; `false` where A may lack columns.
fn least_squares<T: Precision>(
    (a, b): (&[Complex<T>], &[Complex<T>]),
    (m, n): (usize, usize),
    x: &mut [Complex<T>],
    rcond: f64,
) -> bool {
    let k = b.len() / m.max(1);
    let all = n + k;
    let mut rows = gathered((0..m * all).map(|at| match (at / all, at % all) {
        (i, j) if j < n => a[i * n + j],
        (i, j) => b[i * k + j - n],
    }));
    let mut both = Columns::of(&rows, m, all, false);
    // SAFETY: the columns are this call's.
    unsafe { Reflected::new(both.part(), n) };
    both.store(&mut rows, all, false);
    // As a real matrix of squares of two for each number, which is a triangle: its diagonal is real.
    let mut squares = full(T::default(), 4 * n * n);
    for i in 0..n {
        for j in i..n {
            let z = rows[i * all + j];
            let to = &mut squares[4 * n * i + 2 * j..];
            (to[0], to[2 * n + 1]) = (z.re, z.re);
            (to[1], to[2 * n]) = (-z.im, z.im);
        }
    }
    if !regular(&squares, 2 * n, 2 * n, rcond) {
        return false;
    }
    let mut r = full(zero(), n * n);
    for i in 0..n {
        r[i * n..][..n].copy_from_slice(&rows[i * all..][..n]);
        x[i * k..][..k].copy_from_slice(&rows[i * all + n..][..k]);
    }
    lu::triangular(&r, n, x, k, true, false);
    true
}

/// Runs on `a` in the middle of the range of numbers, and brings what it gives back from there.
fn at_scale<T: Precision, V: Entry<Part = T>>(
    a: &[Complex<T>],
    values: &mut [V],
    run: impl FnOnce(&[Complex<T>], &mut [V]) -> bool,
) -> bool {
    let top = a.iter().fold(0.0, |top: f64, z| top.max(z.size().to_f64()));
    // As LAPACK's.
    let least = T::TINY.to_f64().sqrt() / T::EPS;
    if top == 0.0 || (least..1.0 / least).contains(&top) || !top.is_finite() {
        return run(a, values);
    }
    let power = (top.log2().floor() as i32).clamp(-1000, 1000);
    // In two steps: one may be past the range.
    let steps = [power / 2, power - power / 2].map(|k| 2f64.powi(k));
    let scaled = gathered(a.iter().map(|z| {
        let down = |z: Complex<T>, by: f64| z.scaled(T::of_f64(1.0 / by));
        down(down(*z, steps[0]), steps[1])
    }));
    let done = run(&scaled, values);
    let up = |v: V, by: f64| v.scaled(T::of_f64(by));
    values
        .iter_mut()
        .for_each(|v| *v = up(up(*v, steps[0]), steps[1]));
    done
}

/// The matrix of cofactors, which exists for singular A too.
fn cofactors<T: Precision>(
    a: &[Complex<T>],
    n: usize,
    y: &mut [Complex<T>],
    room: &mut Room<Far<T>>,
) -> bool {
    let mut s = full(T::default(), n);
    let [mut u, mut vh] = [full(zero(), n * n), full(zero(), n * n)];
    if !far::svd(a, (n, n), &mut s, Some((&mut u, &mut vh)), true, room) {
        return false;
    }
    let det = |x: &[Complex<T>]| Lu::new(x, n, n, true).determinant();
    let both = det(&u) * det(&vh);
    y.fill(zero());
    for k in 0..n {
        let others = (0..n).filter(|&j| j != k).fold(T::UNIT, |p, j| p * s[j]);
        for i in 0..n {
            for j in 0..n {
                let all = both.scaled(others) * (u[i * n + k] * vh[k * n + j]).conj();
                y[i * n + j] = y[i * n + j] + all;
            }
        }
    }
    true
}

/// The inputs and results of one element of a batch.
struct Case<'a, T> {
    m: usize,
    n: usize,
    a: &'a [Complex<T>],
    b: &'a [Complex<T>],
    y: [&'a mut [Complex<T>]; 3],
    reals: &'a mut [T],
    ints: [&'a mut [i32]; 2],
}

/// One computation; `false` where it did not converge.
fn compute<T: Precision>(kind: Kind, c: Case<T>, room: &mut Room<Far<T>>) -> bool {
    let (m, n) = (c.m, c.n);
    let ([y, y1, y2], [info, info1]) = (c.y, c.ints);
    match kind {
        Kind::Cholesky => info[0] = lu::cholesky(c.a, n, y),
        Kind::Inverse => {
            let f = Lu::new(c.a, n, n, true);
            info[0] = f.info();
            f.inverse(y);
        }
        Kind::Solve => {
            let f = Lu::new(c.a, n, n, true);
            info[0] = f.info();
            y.copy_from_slice(c.b);
            f.solve(y, c.b.len() / n.max(1));
        }
        Kind::Det => y[0] = Lu::new(c.a, n, n, true).determinant(),
        Kind::Slogdet => {
            let f = Lu::new(c.a, n, n, true);
            let (mut sign, mut log) = (f.sign(), 0.0);
            for d in (0..n).map(|i| f.at(i, i)) {
                // Of double precision, whose range takes the squares of single ones.
                let size = d.re.to_f64().hypot(d.im.to_f64());
                let part = |x: T| T::of_f64(x.to_f64() / size);
                let unit = Complex {
                    re: part(d.re),
                    im: part(d.im),
                };
                sign = sign * if d == zero() { d } else { unit };
                log += size.ln();
            }
            (y[0], c.reals[0]) = (sign, T::of_f64(log));
        }
        Kind::Cofactors => return cofactors(c.a, n, y, room),
        Kind::Triangular { upper, unit } => {
            y.copy_from_slice(c.b);
            lu::triangular(c.a, n, y, c.b.len() / n.max(1), upper, unit);
        }
        Kind::Eigh => return at_scale(c.a, c.reals, |a, w| eigh::eigh(a, n, w, Some(y))),
        Kind::Eigenvalues => return at_scale(c.a, c.reals, |a, w| eigh::eigh(a, n, w, None)),
        Kind::Svd { full } => {
            let run = |a: &[_], s: &mut [T]| far::svd(a, (m, n), s, Some((y, y1)), full, room);
            return at_scale(c.a, c.reals, run);
        }
        Kind::SingularValues => {
            let run = |a: &[_], s: &mut [T]| far::svd(a, (m, n), s, None, false, room);
            return at_scale(c.a, c.reals, run);
        }
        Kind::Eig { vectors } => {
            let run = |a: &[_], w: &mut [_]| far::eig(a, n, w, vectors.then_some(y1), room);
            return at_scale(c.a, y, run);
        }
        Kind::LeastSquares { rcond } => {
            let done = least_squares((c.a, c.b), (m, n), y, f64::from_bits(rcond));
            info[0] = !done as i32;
        }
        Kind::Qr { full } => qr(c.a, (m, n), y, y1, full),
        Kind::Reflectors => {
            let mut x = Columns::of(c.a, m, n, false);
            // SAFETY: the columns are this call's.
            unsafe {
                let factors = Reflected::new(x.part(), n);
                factors.pack(x.part());
                y1.copy_from_slice(&factors.tau);
            }
            x.store(y, n, false);
        }
        Kind::Lu { pivot } => {
            let (f, k) = (Lu::new(c.a, m, n, pivot), m.min(n));
            y.fill(zero());
            if pivot {
                let order = super::super::order(f.pivots.iter().copied(), m);
                (0..m).for_each(|i| y[order[i] * m + i] = one());
            }
            for (i, row) in y1.chunks_exact_mut(k.max(1)).enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    *to = match i.cmp(&j) {
                        Ordering::Greater => f.at(i, j),
                        Ordering::Equal => one(),
                        Ordering::Less => zero(),
                    };
                }
            }
            for (i, row) in y2.chunks_exact_mut(n.max(1)).enumerate() {
                for (j, to) in row.iter_mut().enumerate() {
                    *to = if j >= i { f.at(i, j) } else { zero() };
                }
            }
        }
        Kind::LuFactor { pivot } => {
            let f = Lu::new(c.a, m, n, pivot);
            f.rows(y);
            let each = info.iter_mut().zip(&f.pivots);
            each.for_each(|(to, &p)| *to = p as i32 + 1);
            info1[0] = f.info();
        }
        Kind::Ldl { hermitian } => {
            y.copy_from_slice(c.a);
            info1[0] = symmetric::ldl(y, n, info, hermitian);
        }
        Kind::LdlSolve { hermitian } => {
            y.copy_from_slice(c.b);
            symmetric::solve(c.a, m, y, c.b.len() / m.max(1), hermitian);
        }
    }
    true
}

/// Runs a computation on every element of a batch; `false` where one did not converge. Inputs are
/// contiguous with the same batch, of complex numbers of T; results are contiguous.
pub fn run<T: Precision>(kind: Kind, count: usize, x: &[Tensor], y: &[Tensor]) -> bool {
    let (m, n) = (super::super::rows(&x[0]), super::super::cols(&x[0]));
    let part = |t: &Tensor| t.numel() / count.max(1);
    let of = |category: Category| y.iter().filter(move |t| t.dtype().category() == category);
    let complex: Vec<_> = of(Category::Complex)
        .map(|t| (Ptr::new(t.ptr::<Complex<T>>()), part(t)))
        .collect();
    let reals: Vec<_> = of(Category::Float)
        .map(|t| (Ptr::new(t.ptr::<T>()), part(t)))
        .collect();
    let ints: Vec<_> = of(Category::Integer)
        .map(|t| (Ptr::new(t.ptr::<i32>()), part(t)))
        .collect();
    let converged = AtomicBool::new(true);
    let work = m * n * n.max(1);
    parallel_for(count, (1 << 11) / work.max(1) + 1, |range| {
        let mut room = Room::new();
        alloc::spare(range.len().saturating_mul(work));
        for b in range {
            if work >= LONG {
                look();
            }
            let input = |i: usize| -> &[Complex<T>] {
                let Some(t) = x.get(i).filter(|t| t.numel() > 0) else {
                    return &[];
                };
                let (p, len) = (t.ptr::<Complex<T>>(), part(t));
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

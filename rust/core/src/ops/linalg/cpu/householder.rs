//! Q R by blocks of reflectors: a panel of columns is reduced in registers and the first cache, and
//! what is right of it by products.

use super::lanes::{get, put, width, Lanes, LANES};
use super::plain;
use super::Number;
use crate::alloc::full;
use crate::cpu::gemm::{product, Mat, Problem};
use crate::per_isa;

/// Columns of a panel, for matrices of so many columns.
fn block(n: usize) -> usize {
    match n {
        0..192 => 16,
        _ => 32,
    }
}

/// `block` reflectors: I - V T V', with V in rows, ones and zeros included.
struct Panel<T> {
    /// The row and column where it begins.
    at: usize,
    count: usize,
    v: Vec<T>,
    t: Vec<T>,
}

/// Reflectors that bring the first columns of a matrix to a triangle.
pub struct Reflected<T> {
    m: usize,
    block: usize,
    panels: Vec<Panel<T>>,
}

/// Rows of `n` that begin at `x`, as an operand.
fn rows<P>(x: P, n: usize) -> Mat<P> {
    Mat::new(x, n as isize, 1)
}
fn turned<P>(x: P, n: usize) -> Mat<P> {
    Mat::new(x, 1, n as isize)
}

/// C = alpha A B + beta C of `m` rows and `n` columns.
// SAFETY: the operands have elements for these sizes, those of C no other's.
unsafe fn multiply<T: Number>(
    (m, n, k): (usize, usize, usize),
    alpha: f64,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: f64,
    c: Mat<*mut T>,
) {
    let p = Problem {
        m,
        n,
        k,
        alpha: T::of_f64(alpha),
        a,
        b,
        beta: T::of_f64(beta),
        d: Mat::new(c.ptr.cast_const(), c.rs, c.cs),
        c,
        reduced: false,
    };
    // SAFETY: the caller gives operands for these sizes.
    unsafe { product(&p) }
}

impl<T: Number> Reflected<T> {
    /// Brings the first `n` columns of `x`, `m` rows of `all`, to a triangle; the columns after them
    /// are reflected, too. What is below the triangle is zero.
    pub fn new(x: &mut [T], m: usize, all: usize, n: usize) -> Self {
        // A few columns more are quicker in one panel than by products.
        let block = match all {
            0..=32 => width(all.max(1)),
            _ => block(n),
        };
        let mut out = Reflected {
            m,
            block,
            panels: Vec::new(),
        };
        for at in (0..m.min(n)).step_by(block) {
            let (high, count) = (m - at, block.min(m.min(n) - at));
            let wide = block.min(all - at);
            let mut part = full(T::default(), high * block);
            for (to, from) in part.chunks_exact_mut(block).zip(x[at * all..].chunks(all)) {
                to[..wide].copy_from_slice(&from[at..at + wide]);
            }
            let mut panel = Panel {
                at,
                count,
                v: full(T::default(), high * block),
                t: full(T::default(), block * block),
            };
            let mut tau = [T::default(); 32];
            // SAFETY: there are `high` rows of `block` elements, 8, 16, 24 or 32, in both, and at
            // least `count` rows.
            unsafe { reduce(&mut part, high, block, count, &mut panel.v, &mut tau) };
            for (from, to) in part.chunks_exact(block).zip(x[at * all..].chunks_mut(all)) {
                to[at..at + wide].copy_from_slice(&from[..wide]);
            }
            let v = rows(panel.v.as_ptr(), block);
            // SAFETY: V has `high` rows of `block`.
            unsafe { triangle(v, high, &tau[..count], &mut panel.t, block) };
            let right = at + wide;
            if right < all {
                // SAFETY: the rows from `at` on lie in `x`.
                unsafe {
                    let to = x.as_mut_ptr().add(at * all + right);
                    panel.apply(high, block, true, to, all, all - right);
                }
            }
            out.panels.push(panel);
        }
        out
    }

    /// The first `height` columns of Q into rows of `q`.
    pub fn basis(&self, q: &mut [T], height: usize) {
        q.fill(T::default());
        for (i, row) in q.chunks_exact_mut(height.max(1)).take(height).enumerate() {
            row[i] = T::of_f64(1.0);
        }
        for p in self.panels.iter().rev() {
            // SAFETY: `q` has `m` rows; columns before the panel are those of the identity.
            unsafe {
                let to = q.as_mut_ptr().add(p.at * height + p.at);
                p.apply(self.m - p.at, self.block, false, to, height, height - p.at);
            }
        }
    }
}

impl<T: Number> Panel<T> {
    /// Applies the reflectors, or their transpose, to `n` columns of rows of `step`.
    // SAFETY: `to` has `high` such rows, nobody else's.
    unsafe fn apply(
        &self,
        high: usize,
        block: usize,
        transposed: bool,
        to: *mut T,
        step: usize,
        n: usize,
    ) {
        let t = match transposed {
            true => turned(self.t.as_ptr(), block),
            false => rows(self.t.as_ptr(), block),
        };
        // SAFETY: V has `high` rows of `block`, and T `block`.
        unsafe {
            reflect_all(
                rows(self.v.as_ptr(), block),
                t,
                (high, self.count),
                to,
                step,
                n,
            )
        }
    }
}

/// The triangle T, rows of `step`, of reflectors that are the columns of V, of `high` rows: its
/// inverse has the products of reflectors above its diagonal.
///
/// # Safety
/// V has elements for these sizes, one column for each of `tau`.
pub unsafe fn triangle<T: Number>(
    v: Mat<*const T>,
    high: usize,
    tau: &[T],
    t: &mut [T],
    step: usize,
) {
    let (count, zero) = (tau.len(), T::default());
    let mut products = full(zero, count * count);
    // SAFETY: the caller gives V for these sizes.
    unsafe {
        let c = rows(products.as_mut_ptr(), count);
        multiply(
            (count, count, high),
            1.0,
            Mat::new(v.ptr, v.cs, v.rs),
            v,
            0.0,
            c,
        );
    }
    for j in 0..count {
        for i in 0..j {
            let mut sum = zero;
            for k in i..j {
                sum = sum + t[i * step + k] * products[k * count + j];
            }
            t[i * step + j] = -tau[j] * sum;
        }
        t[j * step + j] = tau[j];
    }
}

/// (I - V T V') X of `n` columns of rows of `step`; V has `high` rows and `count` columns.
///
/// # Safety
/// The operands have elements for these sizes; nobody else uses those rows of `x`.
pub unsafe fn reflect_all<T: Number>(
    v: Mat<*const T>,
    t: Mat<*const T>,
    (high, count): (usize, usize),
    x: *mut T,
    step: usize,
    n: usize,
) {
    let mut work = full(T::default(), 2 * count * n);
    let (first, second) = work.split_at_mut(count * n);
    let (first, second) = (first.as_mut_ptr(), second.as_mut_ptr());
    let from = rows(x.cast_const(), step);
    let flat = Mat::new(v.ptr, v.cs, v.rs);
    // SAFETY: the workspace has `count` rows of `n`, twice; the caller gives the others.
    unsafe {
        multiply((count, n, high), 1.0, flat, from, 0.0, rows(first, n));
        let done = rows(first.cast_const(), n);
        multiply((count, n, count), 1.0, t, done, 0.0, rows(second, n));
        let done = rows(second.cast_const(), n);
        multiply((high, n, count), -1.0, v, done, 1.0, rows(x, step));
    }
}

/// The reflectors of `count` columns of `m` rows of C vectors.
#[inline(always)]
unsafe fn columns<T: Number, const C: usize>(
    x: *mut T,
    m: usize,
    count: usize,
    v: *mut T,
    tau: &mut [T; 32],
) {
    let (zero, wide) = (T::default(), C * LANES);
    let mut column = full(zero, m);
    // SAFETY: `x` and `v` have `m` rows of `wide`, and there are at least `count` rows.
    unsafe {
        for j in 0..count {
            for i in j..m {
                column[i] = *x.add(i * wide + j);
            }
            let Some((beta, t)) = plain::reflector(&mut column[j..]) else {
                continue;
            };
            tau[j] = t;
            column[j] = T::of_f64(1.0);
            let mut dots = [[[zero; LANES]; C]; 2];
            for i in j..m {
                let (f, row) = (column[i], x.add(i * wide));
                *v.add(i * wide + j) = f;
                for c in 0..C {
                    let y: Lanes<T> = get(row.add(c * LANES));
                    for l in 0..LANES {
                        dots[i % 2][c][l] = dots[i % 2][c][l] + f * y[l];
                    }
                }
            }
            for c in 0..C {
                for l in 0..LANES {
                    let dot = t * (dots[0][c][l] + dots[1][c][l]);
                    // Columns before it are done.
                    dots[0][c][l] = if c * LANES + l >= j { dot } else { zero };
                }
            }
            for i in j..m {
                let (f, row) = (column[i], x.add(i * wide));
                for c in 0..C {
                    let y: Lanes<T> = get(row.add(c * LANES));
                    put(
                        row.add(c * LANES),
                        std::array::from_fn(|l| y[l] - f * dots[0][c][l]),
                    );
                }
                *row.add(j) = zero;
            }
            *x.add(j * wide + j) = beta;
        }
    }
}

per_isa! {
    /// Reduces `count` columns of `m` rows of `wide`; the reflectors go to columns of `v`, zeros at
    /// first.
    ///
    /// # Safety
    /// `wide` is a multiple of 8 up to 32; `x` and `v` have `m` rows of it, at least `count`.
    unsafe fn reduce[T: Number](
        x: &mut [T], m: usize, wide: usize, count: usize, v: &mut [T], tau: &mut [T; 32],
    ) {
        let (x, v) = (x.as_mut_ptr(), v.as_mut_ptr());
        // SAFETY: rows are as wide as the vectors.
        unsafe {
            match wide / LANES {
                1 => columns::<T, 1>(x, m, count, v, tau),
                2 => columns::<T, 2>(x, m, count, v, tau),
                3 => columns::<T, 3>(x, m, count, v, tau),
                _ => columns::<T, 4>(x, m, count, v, tau),
            }
        }
    }
}

/// A triangle above the diagonal is far enough from a singular one, by four steps of inverse
/// iteration: its condition times `rcond` is small.
pub fn regular<T: Number>(r: &[T], step: usize, n: usize, rcond: f64) -> bool {
    let at = |i: usize, j: usize| r[i * step + j].to_f64();
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let all: f64 = (0..n)
        .map(|i| (i..n).map(|j| at(i, j).powi(2)).sum::<f64>())
        .sum();
    let mut x = super::probe::signs(n);
    let (mut least, mut size) = (f64::INFINITY, length(&x));
    for _ in 0..4 {
        x.iter_mut().for_each(|x| *x /= size);
        // R' y = x, then R x = y.
        for i in 0..n {
            x[i] /= at(i, i);
            for j in i + 1..n {
                x[j] -= at(i, j) * x[i];
            }
        }
        for i in (0..n).rev() {
            let rest: f64 = (i + 1..n).map(|j| at(i, j) * x[j]).sum();
            x[i] = (x[i] - rest) / at(i, i);
        }
        size = length(&x);
        least = least.min(1.0 / size.sqrt());
    }
    // The norm is at most that of all elements. NaN is not regular.
    least > 8.0 * rcond * all.sqrt()
}

//! The product of reflectors, as the rows of a matrix: one after another where the matrix is small,
//! else in blocks by products.

use super::super::lanes::{reflect_rows, LANES};
use super::super::Precision;
use crate::alloc::{full, Workspace};
use crate::cpu::gemm::{product, Mat, Problem};
use crate::per_isa;

/// Reflectors that are applied together, and the size from which on they are.
const BLOCK: usize = 32;
const BLOCKED: usize = 64;

/// I - tau v v' for each row v, which begins with a one `offset` behind the diagonal.
pub struct Reflectors<T> {
    pub rows: Workspace<T>,
    pub tau: Vec<T>,
    pub width: usize,
    pub offset: usize,
}

impl<T: Precision> Reflectors<T> {
    /// The columns of their product, as rows.
    pub fn basis(&self) -> Workspace<T> {
        let (n, width, zero) = (self.tau.len(), self.width, T::default());
        let mut q = Workspace::full(zero, n * width);
        for i in 0..n {
            q[i * width + i] = T::of_f64(1.0);
        }
        let block = if n < BLOCKED { 1 } else { BLOCK };
        for at in (0..n).step_by(block).rev() {
            let count = block.min(n - at);
            if block > 1 {
                // SAFETY: there are `n` rows of `width` in both.
                unsafe { self.apply(at, count, &mut q) };
            } else if self.tau[at] != zero {
                let (v, first) = (&self.rows[at * width..][..width], at + self.offset);
                // SAFETY: there are `n` rows of `width` in both.
                unsafe { reflect(&mut q, (first, n, width), v, self.tau[at]) };
            }
        }
        q
    }

    /// The triangle that joins `count` reflectors from `at` on.
    fn joint(&self, at: usize, count: usize) -> Vec<T> {
        let (width, zero) = (self.width, T::default());
        let (mut products, mut t) = (full(zero, count * count), full(zero, count * count));
        let v = self.rows[at * width + at..].as_ptr();
        let step = width as isize;
        // SAFETY: the rows from `at` on have `width - at` elements from column `at` on.
        unsafe {
            let (a, b) = (Mat::new(v, step, 1), Mat::new(v, 1, step));
            multiply(
                (count, count, width - at),
                1.0,
                a,
                b,
                0.0,
                (products.as_mut_ptr(), count),
            );
        }
        for j in 0..count {
            let tau = self.tau[at + j];
            for i in 0..j {
                let row = &t[i * count..][i..j];
                let dot = row
                    .iter()
                    .zip(i..)
                    .fold(zero, |s, (&t, k)| s + t * products[k * count + j]);
                t[i * count + j] = -tau * dot;
            }
            t[j * count + j] = tau;
        }
        t
    }

    /// Applies `count` reflectors from `at` on to the rows of `q` after them.
    // SAFETY: `q` has as many rows of `width` as there are reflectors.
    unsafe fn apply(&self, at: usize, count: usize, q: &mut [T]) {
        let (n, width) = (self.tau.len(), self.width);
        let t = self.joint(at, count);
        let (m, step) = (n - at, width as isize);
        let mut work = Workspace::full(T::default(), 2 * m * count);
        let (first, second) = work.split_at_mut(m * count);
        let small = |x: *const T| Mat::new(x, count as isize, 1);
        let v = self.rows[at * width + at..].as_ptr();
        let to = q[at * width + at..].as_mut_ptr();
        // SAFETY: rows from `at` on have `width - at` elements from column `at` on.
        unsafe {
            let from = Mat::new(to.cast_const(), step, 1);
            let c = (first.as_mut_ptr(), count);
            multiply(
                (m, count, width - at),
                1.0,
                from,
                Mat::new(v, 1, step),
                0.0,
                c,
            );
            let transposed = Mat::new(t.as_ptr(), 1, count as isize);
            let c = (second.as_mut_ptr(), count);
            multiply(
                (m, count, count),
                1.0,
                small(first.as_ptr()),
                transposed,
                0.0,
                c,
            );
            let b = Mat::new(v, step, 1);
            multiply(
                (m, width - at, count),
                -1.0,
                small(second.as_ptr()),
                b,
                1.0,
                (to, width),
            );
        }
    }
}

/// C = alpha A B + beta C of `m` rows and `n` columns, C in rows of a step.
// SAFETY: the operands have elements for these sizes, those of C no other's.
pub unsafe fn multiply<T: Precision>(
    (m, n, k): (usize, usize, usize),
    alpha: f64,
    a: Mat<*const T>,
    b: Mat<*const T>,
    beta: f64,
    (c, step): (*mut T, usize),
) {
    let p = Problem {
        m,
        n,
        k,
        alpha: T::of_f64(alpha),
        a,
        b,
        beta: T::of_f64(beta),
        d: Mat::new(c.cast_const(), step as isize, 1),
        c: Mat::new(c, step as isize, 1),
        reduced: false,
    };
    // SAFETY: the caller gives operands for these sizes.
    unsafe { product(&p) }
}

per_isa! {
    /// Applies a reflector to the rows from `first` on.
    ///
    /// # Safety
    /// There are `n` rows of `width`, a multiple of [`LANES`], which is the length of `v`.
    unsafe fn reflect[T: Precision](
        q: &mut [T], size: (usize, usize, usize), v: &[T], tau: T,
    ) {
        let (first, n, width) = size;
        let (from, mut i) = (first / LANES * LANES, first);
        // SAFETY: rows up to `n`, and `v` is as wide.
        unsafe {
            let rows = q.as_mut_ptr();
            while i + 4 <= n {
                reflect_rows::<T, 4>(rows.add(i * width), (from, width), v.as_ptr(), tau);
                i += 4;
            }
            while i < n {
                reflect_rows::<T, 1>(rows.add(i * width), (from, width), v.as_ptr(), tau);
                i += 1;
            }
        }
    }
}

//! Q R by blocks of reflectors: a panel of columns is reduced in registers and the first cache, and
//! what is right of it by products.

use super::lanes::{dot, LANES};
use super::plain;
use super::Precision;
use crate::alloc::{Scratch, Workspace};
use crate::cpu::gemm::{product, Mat, Problem};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::{Simd, Vectors};
use crate::per_isa;
use std::ops::Range;

/// Columns that are reflected together, fewer beside the reduction of the next panel, and elements of V times
/// columns that a second thread is worth.
const WIDE: usize = 128;
const BESIDE: usize = 64;
const GRAIN: usize = 1 << 18;

/// The most columns of a panel.
const MOST: usize = 32;

/// Columns of a panel, for matrices of so many columns.
fn block(n: usize) -> usize {
    match n {
        0..192 => 16,
        _ => MOST,
    }
}

/// `block` reflectors: I - V T V', with the columns of V one after another, ones and zeros included.
struct Panel<T> {
    /// The row and column where it begins.
    at: usize,
    count: usize,
    v: Workspace<T>,
    t: Workspace<T>,
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
fn transpose_of<P>(x: P, n: usize) -> Mat<P> {
    Mat::new(x, 1, n as isize)
}

/// C = alpha A B + beta C of `m` rows and `n` columns.
// SAFETY: the operands have elements for these sizes, those of C no other's.
unsafe fn multiply<T: Precision>(
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

impl<T: Precision> Reflected<T> {
    /// Brings the first `n` columns of `x`, `m` rows of `all`, to a triangle; the columns after them
    /// are reflected, too. What is below the triangle is zero.
    pub fn new(x: &mut [T], m: usize, all: usize, n: usize) -> Self {
        // A few columns more are quicker in one panel than by products. Rows are whole vectors.
        let block = match all {
            0..=MOST => all.next_power_of_two().max(64 / size_of::<T>()),
            _ => block(n),
        };
        let mut out = Reflected {
            m,
            block,
            panels: Vec::new(),
        };
        let (count, to) = (m.min(n), Ptr::new(x.as_mut_ptr()));
        if count > 0 {
            // SAFETY: `x` has `m` rows of `all`.
            out.panels
                .push(unsafe { Panel::new(to, (m, all), 0, (block, count)) });
        }
        while let Some(panel) = out.panels.last().filter(|p| p.at + block < all) {
            let right = panel.at + block;
            let next = std::sync::Mutex::new(None);
            // The next panel is reduced while other columns are reflected.
            let first = if right < count {
                block.min(all - right)
            } else {
                0
            };
            let rest = all - right - first;
            // Parts that depend on the sizes alone, so that results do not depend on the number of
            // threads.
            let parts = rest.div_ceil(BESIDE);
            let tasks = parts + usize::from(first > 0);
            let grain = GRAIN.div_ceil(((m - panel.at) * block * (all - right) / tasks).max(1));
            parallel_for(tasks, grain, |r| {
                for i in r {
                    let i = i + usize::from(first == 0);
                    // SAFETY: `x` has `m` rows of `all`; each part has columns of its own.
                    unsafe {
                        if i == 0 {
                            panel.apply(block, true, to, all, right..right + first);
                            let found = Panel::new(to, (m, all), right, (block, count));
                            *next.lock().unwrap_or_else(|e| e.into_inner()) = Some(found);
                        } else {
                            let begin = |i| right + first + rest * i / parts;
                            panel.apply(block, true, to, all, begin(i - 1)..begin(i));
                        }
                    }
                }
            });
            match next.into_inner().unwrap_or_else(|e| e.into_inner()) {
                Some(next) => out.panels.push(next),
                None => break,
            }
        }
        out
    }

    /// The reflectors below the triangle, rows of `all`, and their factors.
    pub fn pack(&self, x: &mut [T], all: usize, tau: &mut [T]) {
        for p in &self.panels {
            let high = self.m - p.at;
            for j in 0..p.count {
                tau[p.at + j] = p.t[j * self.block + j];
                for i in j + 1..high {
                    x[(p.at + i) * all + p.at + j] = p.v[j * high + i];
                }
            }
        }
    }

    /// The first `height` columns of Q into rows of `q`.
    pub fn basis(&self, q: &mut [T], height: usize) {
        q.fill(T::default());
        for (i, row) in q.chunks_exact_mut(height.max(1)).take(height).enumerate() {
            row[i] = T::of_f64(1.0);
        }
        let to = Ptr::new(q.as_mut_ptr());
        for p in self.panels.iter().rev() {
            let n = height - p.at;
            let parts = n.div_ceil(WIDE).max(1);
            let grain = GRAIN.div_ceil(((self.m - p.at) * p.count * n / parts).max(1));
            parallel_for(parts, grain, |r| {
                for i in r {
                    let begin = |i| p.at + n * i / parts;
                    // SAFETY: `q` has `m` rows; columns before the panel are those of the identity, and
                    // parts have columns of their own.
                    unsafe { p.apply(self.block, false, to, height, begin(i)..begin(i + 1)) }
                }
            });
        }
    }
}

impl<T: Precision> Panel<T> {
    /// Reduces the columns from `at` on, `block` of them or as many as there are, of which those before
    /// `end` get reflectors. What is below the triangle becomes zero.
    // SAFETY: `x` has `m` rows of `all`; nobody else uses these columns.
    unsafe fn new(
        x: Ptr<T>,
        (m, all): (usize, usize),
        at: usize,
        (block, end): (usize, usize),
    ) -> Self {
        let (high, wide, count) = (m - at, block.min(all - at), block.min(end - at));
        let mut part = Workspace::full(T::default(), high * block);
        // SAFETY: the columns are the caller's.
        let row = |i: usize| unsafe { x.part((at + i) * all + at..(at + i) * all + at + wide) };
        for (i, to) in part.chunks_exact_mut(block).enumerate() {
            to[..wide].copy_from_slice(row(i));
        }
        let mut panel = Panel {
            at,
            count,
            v: Workspace::full(T::default(), high * block),
            t: Workspace::full(T::default(), block * block),
        };
        let mut tau = [T::default(); MOST];
        // SAFETY: there are `high` rows of `block` elements, a power of two, in both, and at least
        // `count` rows; V has `block` columns of `high`.
        unsafe {
            reduce(&mut part, high, block, count, &mut panel.v, &mut tau);
            let v = transpose_of(panel.v.as_ptr(), high);
            triangle(v, high, &tau[..count], &mut panel.t, block);
        }
        for (i, from) in part.chunks_exact(block).enumerate() {
            let (done, to) = (i.min(count), row(i));
            to[..done].fill(T::default());
            to[done..].copy_from_slice(&from[done..wide]);
        }
        panel
    }

    /// Applies the reflectors, or their transpose, to some columns of a matrix of rows of `all`.
    // SAFETY: `x` has the rows that the reflectors have; nobody else uses these columns.
    unsafe fn apply(
        &self,
        block: usize,
        transposed: bool,
        x: Ptr<T>,
        all: usize,
        columns: Range<usize>,
    ) {
        let t = match transposed {
            true => transpose_of(self.t.as_ptr(), block),
            false => rows(self.t.as_ptr(), block),
        };
        let high = self.v.len() / block;
        let v = transpose_of(self.v.as_ptr(), high);
        // SAFETY: V has `block` columns of `high`, and T rows of `block`; the columns are the caller's.
        unsafe {
            let to = x.at(self.at * all + columns.start);
            reflect_all(v, t, (high, self.count), to, all, columns.len());
        }
    }
}

/// The triangle T, rows of `step`, of reflectors that are the columns of V, of `high` rows: its
/// inverse has the products of reflectors above its diagonal.
///
/// # Safety
/// V has elements for these sizes, one column for each of `tau`.
pub unsafe fn triangle<T: Precision>(
    v: Mat<*const T>,
    high: usize,
    tau: &[T],
    t: &mut [T],
    step: usize,
) {
    let count = tau.len();
    let mut products = Workspace::full(T::default(), count * count);
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
    accumulate(&products, tau, t, step);
}

per_isa! {
    /// T, of products of `count` reflectors, at most [`MOST`], and their factors: column after column,
    /// each of those before it times the products.
    fn accumulate[T: Precision](products: &[T], tau: &[T], t: &mut [T], step: usize) {
        let count = tau.len();
        let mut columns = [[T::default(); MOST]; MOST];
        for j in 0..count {
            let mut sum = [T::default(); MOST];
            for k in 0..j {
                let by = -tau[j] * products[k * count + j];
                for (sum, &x) in sum.iter_mut().zip(&columns[k]) {
                    *sum = *sum + by * x;
                }
            }
            for i in 0..j {
                t[i * step + j] = sum[i];
                columns[j][i] = sum[i];
            }
            t[j * step + j] = tau[j];
            columns[j][j] = tau[j];
        }
    }
}

/// (I - V T V') X of `n` columns of rows of `step`; V has `high` rows and `count` columns.
///
/// # Safety
/// The operands have elements for these sizes; nobody else uses those rows of `x`.
pub unsafe fn reflect_all<T: Precision>(
    v: Mat<*const T>,
    t: Mat<*const T>,
    (high, count): (usize, usize),
    x: *mut T,
    step: usize,
    n: usize,
) {
    let work = [Scratch::new(count * n), Scratch::new(count * n)];
    let [first, second] = work.each_ref().map(Scratch::ptr);
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

/// What the pass over a panel that reflects its rows finds for the next column: the products with all
/// others below its own row, by a power of two, and the sum of its squares.
struct Ahead<T> {
    sums: [T; MOST],
    squares: f64,
    unit: f64,
}

impl<T: Precision> Ahead<T> {
    /// The column's new element in its own row, the reflector's factor, and what its other elements
    /// are multiplied by; `None` where squares, or products with columns of another size, may have
    /// left the range of numbers.
    #[inline(always)]
    fn reflector(&self, first: T) -> Option<(T, T, T)> {
        let alpha = first.to_f64();
        let norm = (self.squares + alpha * alpha).sqrt();
        let near = self.unit * norm;
        let sound = self.squares > 1e-280 && near > 1e-6 && near < 1e6;
        if !sound || norm * T::EPS < T::TINY.to_f64() {
            return None;
        }
        let beta = T::of_f64(-norm.copysign(alpha));
        Some((beta, (beta - first) / beta, T::of_f64(1.0) / (first - beta)))
    }
}

/// The power of two by which a number is near one.
#[inline(always)]
fn unit_of(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52 & 0x7ff).clamp(1023 - 100, 1023 + 100);
    f64::from_bits((2046 - exponent) << 52)
}

/// The reflectors of some of the `count` columns of a panel of `m` rows of `wide`: of the first half of
/// its last C vectors. One pass over the rows reflects them and sums up what the next column needs.
#[inline(always)]
unsafe fn columns<T: Precision, V: Simd<Elem = T>, const C: usize>(
    x: *mut T,
    (m, wide, count): (usize, usize, usize),
    v: *mut T,
    tau: &mut [T; MOST],
    ahead: &mut Option<Ahead<T>>,
) {
    let zero = T::default();
    let left = wide - C * V::LANES;
    let end = count.min(left + C.div_ceil(2) * V::LANES);
    // SAFETY: `x` has `m` rows of `wide`, `v` has `count` columns of `m`, and there are at least `count`
    // rows.
    unsafe {
        for j in left..end {
            let column = std::slice::from_raw_parts_mut(v.add(j * m), m);
            let own = x.add(j * wide);
            let found = ahead.take();
            let known = found.and_then(|a| Some((a.reflector(*own.add(j))?, a)));
            let mut dots = [V::splat(zero); C];
            let (beta, t) = if let Some(((beta, t, scale), a)) = known {
                column[j + 1..].iter_mut().for_each(|x| *x = *x * scale);
                let by = V::splat(scale * T::of_f64(1.0 / a.unit));
                for c in 0..C {
                    let at = left + c * V::LANES;
                    dots[c] = by.fma(V::load(a.sums.as_ptr().add(at)), V::load(own.add(at)));
                }
                (beta, t)
            } else {
                for i in j..m {
                    column[i] = *x.add(i * wide + j);
                }
                let Some((beta, t)) = plain::reflector(&mut column[j..]) else {
                    column[j..].fill(zero);
                    continue;
                };
                column[j] = T::of_f64(1.0);
                for i in j..m {
                    let by = V::splat(column[i]);
                    for c in 0..C {
                        let row = V::load(x.add(i * wide + left + c * V::LANES));
                        dots[c] = by.fma(row, dots[c]);
                    }
                }
                (beta, t)
            };
            tau[j] = t;
            column[j] = T::of_f64(1.0);
            // Columns before it are done.
            let mut all = [zero; MOST];
            for c in 0..C {
                dots[c].store(all.as_mut_ptr().add(left + c * V::LANES));
            }
            for (i, x) in all.iter_mut().enumerate() {
                *x = if i >= j { -t * *x } else { zero };
            }
            for c in 0..C {
                dots[c] = V::load(all.as_ptr().add(left + c * V::LANES));
            }
            let unit = unit_of(beta.to_f64());
            let next = if j + 1 < count { j + 1 } else { j };
            let after = std::slice::from_raw_parts_mut(v.add(next * m), m);
            let mut sums = [V::splat(zero); C];
            let mut squares = [0.0f64; 2];
            let f = T::of_f64(unit);
            for i in j..m {
                let (row, weight) = (x.add(i * wide + left), V::splat(column[i]));
                let mut y = dots;
                for c in 0..C {
                    y[c] = weight.fma(dots[c], V::load(row.add(c * V::LANES)));
                    y[c].store(row.add(c * V::LANES));
                }
                if i <= next || next == j {
                    continue;
                }
                let own = *x.add(i * wide + next);
                after[i] = own;
                squares[i % 2] += own.to_f64() * own.to_f64();
                let by = V::splat(f * own);
                for c in 0..C {
                    sums[c] = by.fma(y[c], sums[c]);
                }
            }
            *own.add(j) = beta;
            let mut all = [zero; MOST];
            for c in 0..C {
                sums[c].store(all.as_mut_ptr().add(left + c * V::LANES));
            }
            *ahead = Some(Ahead {
                sums: all,
                squares: squares[0] + squares[1],
                unit,
            });
        }
    }
}

per_isa! {
    /// Reduces `count` columns of `m` rows of `wide`; what is below the triangle is of no use. The
    /// reflectors go to the columns of `v`, zeros at first.
    ///
    /// # Safety
    /// `wide` is a power of two up to [`MOST`], and not less than the longest vector; `x` has `m` rows
    /// of it, at least `count`, and `v` as many columns of `m`.
    unsafe fn reduce[T: Precision; in V](
        x: &mut [T], m: usize, wide: usize, count: usize, v: &mut [T], tau: &mut [T; MOST],
    ) {
        let (x, v, size) = (x.as_mut_ptr(), v.as_mut_ptr(), (m, wide, count));
        let (mut ahead, mut vectors) = (None, wide / V::LANES);
        // SAFETY: rows are as wide as the vectors, of which there is a power of two.
        unsafe {
            while vectors > 0 {
                match vectors {
                    1 => columns::<T, V, 1>(x, size, v, tau, &mut ahead),
                    2 => columns::<T, V, 2>(x, size, v, tau, &mut ahead),
                    4 => columns::<T, V, 4>(x, size, v, tau, &mut ahead),
                    8 => columns::<T, V, 8>(x, size, v, tau, &mut ahead),
                    _ => columns::<T, V, 16>(x, size, v, tau, &mut ahead),
                }
                vectors /= 2;
            }
        }
    }
}

per_isa! {
    /// (R' R)^-1 x, for a triangle above the diagonal, with zeros below it, in `n` rows of `step`.
    fn solve_squared[T: Precision](r: &[T], step: usize, n: usize, x: &mut [f64]) {
        for i in 0..n {
            let (own, rest) = x[i..n].split_at_mut(1);
            own[0] /= r[i * step + i].to_f64();
            for (x, a) in rest.iter_mut().zip(&r[i * step + i + 1..i * step + n]) {
                *x -= a.to_f64() * own[0];
            }
        }
        for i in (0..n).rev() {
            // From where whole lanes begin: what is below the diagonal is zero.
            let from = i / LANES * LANES;
            let own = std::mem::take(&mut x[i]);
            let all = dot(&r[i * step + from..i * step + n], &x[from..n]);
            x[i] = (own - all) / r[i * step + i].to_f64();
        }
    }
}

per_isa! {
    /// R' R x, for rows as those of [`solve_squared`].
    fn squared[T: Precision](r: &[T], step: usize, n: usize, x: &mut [f64]) {
        let mut y = Workspace::full(0.0, n);
        for i in 0..n {
            // From where whole lanes begin: what is below the diagonal is zero.
            let from = i / LANES * LANES;
            let row = &r[i * step + from..i * step + n];
            let all = dot(row, &x[from..n]);
            for (y, a) in y[from..].iter_mut().zip(row) {
                *y += a.to_f64() * all;
            }
        }
        x[..n].copy_from_slice(&y);
    }
}

/// The square root of the largest eigenvalue of what `times` multiplies a vector of `n` with: at most
/// that, and mostly within some hundredths.
fn radius(n: usize, mut times: impl FnMut(&mut [f64])) -> f64 {
    let mut x = super::probe::signs(n);
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (mut size, mut found) = (length(&x), 0.0);
    for step in 0..STEPS {
        x.iter_mut().for_each(|x| *x /= size);
        times(&mut x);
        size = length(&x);
        let more = size.sqrt() / found;
        found = size.sqrt();
        if step > 2 && more < 1.01 {
            break;
        }
    }
    found
}

/// The most steps of [`radius`].
const STEPS: usize = 16;

/// A triangle above the diagonal is far enough from a singular one: its least singular value is above
/// `rcond` times the largest, by more than what both are known to, and by more than rounding.
pub fn regular<T: Precision>(r: &[T], step: usize, n: usize, rcond: f64) -> bool {
    let most = radius(n, |x| squared(r, step, n, x));
    let least = 1.0 / radius(n, |x| solve_squared(r, step, n, x));
    // NaN is not regular.
    least > (1.25 * rcond).max(rcond + 16.0 * T::EPS) * most
}

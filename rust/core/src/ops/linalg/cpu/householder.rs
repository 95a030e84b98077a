//! Q R by blocks of reflectors: a panel of columns is reduced in registers and the first cache, and
//! what is right of it by products.

use super::lanes::{dot, get, put, scale_add, width, Lanes, LANES};
use super::plain;
use super::Number;
use crate::alloc::full;
use crate::cpu::gemm::{product, Mat, Problem};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::per_isa;

/// Columns that are reflected together, and elements of V times columns that a second thread is worth.
const WIDE: usize = 128;
const GRAIN: usize = 1 << 18;

/// Columns of a panel, for matrices of so many columns.
fn block(n: usize) -> usize {
    match n {
        0..192 => 16,
        _ => 32,
    }
}

/// `block` reflectors: I - V T V', with the columns of V one after another, ones and zeros included.
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
            let back = part.chunks_exact(block).zip(x[at * all..].chunks_mut(all));
            for (i, (from, to)) in back.enumerate() {
                let done = i.min(count);
                to[at..at + done].fill(T::default());
                to[at + done..at + wide].copy_from_slice(&from[done..wide]);
            }
            let v = turned(panel.v.as_ptr(), high);
            // SAFETY: V has `block` columns of `high`.
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
        // Parts that depend on the sizes alone, so that results do not depend on the number of threads.
        let parts = n.div_ceil(WIDE).max(1);
        let grain = GRAIN.div_ceil((high * self.count * n / parts).max(1));
        let to = Ptr(to);
        parallel_for(parts, grain, |r| {
            let t = match transposed {
                true => turned(self.t.as_ptr(), block),
                false => rows(self.t.as_ptr(), block),
            };
            let v = turned(self.v.as_ptr(), high);
            for i in r {
                let (from, end) = (n * i / parts, n * (i + 1) / parts);
                // SAFETY: V has `block` columns of `high`, and T rows of `block`; parts have columns of
                // their own.
                unsafe { reflect_all(v, t, (high, self.count), to.at(from), step, end - from) }
            }
        });
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

/// What the pass over a panel that reflects its rows finds for the next column: the products with all
/// others below its own row, by a power of two, and the sum of its squares.
struct Ahead<T> {
    sums: [T; 32],
    squares: f64,
    unit: f64,
}

impl<T: Number> Ahead<T> {
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

/// The reflectors of some of the `count` columns of a panel of `m` rows of `wide`, which reach its last C
/// vectors. One pass over the rows reflects them and sums up what the next column needs.
#[inline(always)]
unsafe fn columns<T: Number, const C: usize>(
    x: *mut T,
    (m, wide, count): (usize, usize, usize),
    v: *mut T,
    tau: &mut [T; 32],
    ahead: &mut Option<Ahead<T>>,
) {
    let (zero, left) = (T::default(), wide - C * LANES);
    // SAFETY: `x` has `m` rows of `wide`, `v` has `count` columns of `m`, and there are at least `count`
    // rows.
    unsafe {
        for j in left..count.min(left + LANES) {
            let column = std::slice::from_raw_parts_mut(v.add(j * m), m);
            let own = x.add(j * wide);
            let found = ahead.take();
            let known = found.and_then(|a| Some((a.reflector(*own.add(j))?, a)));
            let mut dots = [[zero; LANES]; C];
            let (beta, t) = if let Some(((beta, t, scale), a)) = known {
                column[j + 1..].iter_mut().for_each(|x| *x = *x * scale);
                let by = scale * T::of_f64(1.0 / a.unit);
                for c in 0..C {
                    let (y, sums): (Lanes<T>, Lanes<T>) = (
                        get(own.add(left + c * LANES)),
                        get(a.sums.as_ptr().add(left + c * LANES)),
                    );
                    dots[c] = scale_add(y, by, sums);
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
                    for c in 0..C {
                        let y = get(x.add(i * wide + left + c * LANES));
                        dots[c] = scale_add(dots[c], column[i], y);
                    }
                }
                (beta, t)
            };
            tau[j] = t;
            column[j] = T::of_f64(1.0);
            // Columns before it are done.
            for c in 0..C {
                for l in 0..LANES {
                    let other = left + c * LANES + l >= j;
                    dots[c][l] = if other { t * dots[c][l] } else { zero };
                }
            }
            let unit = unit_of(beta.to_f64());
            let next = if j + 1 < count { j + 1 } else { j };
            let after = std::slice::from_raw_parts_mut(v.add(next * m), m);
            let mut sums = [[zero; LANES]; C];
            let mut squares = [0.0f64; 2];
            let f = T::of_f64(unit);
            for i in j..m {
                let (row, weight) = (x.add(i * wide + left), column[i]);
                let mut y = [[zero; LANES]; C];
                for c in 0..C {
                    y[c] = scale_add(get(row.add(c * LANES)), -weight, dots[c]);
                    put(row.add(c * LANES), y[c]);
                }
                if i <= next || next == j {
                    continue;
                }
                let own = *x.add(i * wide + next);
                after[i] = own;
                squares[i % 2] += own.to_f64() * own.to_f64();
                for c in 0..C {
                    sums[c] = scale_add(sums[c], f * own, y[c]);
                }
            }
            *own.add(j) = beta;
            let mut all = [zero; 32];
            for c in 0..C {
                all[left + c * LANES..][..LANES].copy_from_slice(&sums[c]);
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
    /// `wide` is a multiple of 8 up to 32; `x` has `m` rows of it, at least `count`, and `v` as many
    /// columns of `m`.
    unsafe fn reduce[T: Number](
        x: &mut [T], m: usize, wide: usize, count: usize, v: &mut [T], tau: &mut [T; 32],
    ) {
        let (x, v, size) = (x.as_mut_ptr(), v.as_mut_ptr(), (m, wide, count));
        let mut ahead = None;
        // SAFETY: rows are as wide as the vectors.
        unsafe {
            for vectors in (1..=wide / LANES).rev() {
                match vectors {
                    1 => columns::<T, 1>(x, size, v, tau, &mut ahead),
                    2 => columns::<T, 2>(x, size, v, tau, &mut ahead),
                    3 => columns::<T, 3>(x, size, v, tau, &mut ahead),
                    _ => columns::<T, 4>(x, size, v, tau, &mut ahead),
                }
            }
        }
    }
}

per_isa! {
    fn subtract[T: Number](x: &mut [f64], f: f64, a: &[T]) {
        for (x, a) in x.iter_mut().zip(a) {
            *x -= a.to_f64() * f;
        }
    }
}

/// A triangle above the diagonal is far enough from a singular one, by four steps of inverse
/// iteration: its condition times `rcond` is small.
pub fn regular<T: Number>(r: &[T], step: usize, n: usize, rcond: f64) -> bool {
    // Row `i` from its diagonal on.
    let row = |i: usize| &r[i * step + i..i * step + n];
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut all = full(0.0, n);
    for i in 0..n {
        for (sum, x) in all[i..].iter_mut().zip(row(i)) {
            *sum += x.to_f64() * x.to_f64();
        }
    }
    let all: f64 = all.iter().sum();
    let mut x = super::probe::signs(n);
    let (mut least, mut size) = (f64::INFINITY, length(&x));
    for _ in 0..4 {
        x.iter_mut().for_each(|x| *x /= size);
        // R' y = x, then R x = y.
        for i in 0..n {
            let (own, rest) = x[i..].split_at_mut(1);
            own[0] /= row(i)[0].to_f64();
            subtract(rest, own[0], &row(i)[1..]);
        }
        for i in (0..n).rev() {
            let rest = dot(&row(i)[1..], &x[i + 1..]);
            x[i] = (x[i] - rest) / row(i)[0].to_f64();
        }
        size = length(&x);
        least = least.min(1.0 / size.sqrt());
    }
    // The norm is at most that of all elements. NaN is not regular.
    least > 8.0 * rcond * all.sqrt()
}

//! Eigenvalues and eigenvectors of three diagonals by divide and conquer: halves, taken apart by a
//! matrix of rank one, are put together where the secular equation has its roots (Cuppen 1981,
//! Numerische Mathematik 36, 177-195). Vectors are those of the matrix that has exactly the roots
//! found, so that they are at right angles (Gu and Eisenstat 1995, SIAM Journal on Matrix Analysis
//! and Applications 16, 172-191). All but the vectors is of float64 for all types. Where the matrix
//! is cut depends on its size alone, and no result on the number of threads.

use super::lanes::{dot, sum, width, Lanes, LANES};
use super::tridiagonal::eigenvectors;
use super::Precision;
use crate::alloc::{full, gathered, room, Workspace};
use crate::cpu::gemm::{product, Mat, Problem};
use crate::cpu::pool::{look, parallel_chunks, parallel_for, Ptr};
use crate::per_isa;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The size up to which QL is quicker.
const LEAF: usize = 32;
/// Evaluations of the secular equation for one root; five are usual.
const STEPS: usize = 100;
/// Terms that a second thread is worth.
const GRAIN: usize = 1 << 13;

/// A part of the matrix: eigenvalues in any order, the first and last elements of their vectors, and
/// the vectors as rows, `step` apart.
struct Part<'a, T> {
    d: &'a mut [f64],
    first: &'a mut [f64],
    last: &'a mut [f64],
    v: *mut T,
    step: usize,
}

/// Brings the diagonal `d`, near one and with `e` beside it, to eigenvalues in any order, and gives
/// their vectors as rows; `None` where it does not converge.
pub fn conquer<T: Precision>(d: &mut [f64], e: &[f64]) -> Option<Workspace<T>> {
    let n = d.len();
    let mut count = n.div_ceil(LEAF).next_power_of_two();
    let bound = |count: usize, i: usize| n * i / count;
    for i in 1..count {
        let m = bound(count, i);
        d[m - 1] -= e[m - 1].abs();
        d[m] -= e[m - 1].abs();
    }
    let mut vectors = Workspace::full(T::default(), n * n);
    let (mut first, mut last) = (full(0.0, n), full(0.0, n));
    let v = Ptr::new(vectors.as_mut_ptr());
    let all = [d, &mut first[..], &mut last[..]].map(|x| Ptr::new(x.as_mut_ptr()));
    // SAFETY: whoever asks for a part is the only one that uses it.
    let part = |count: usize, i: usize| unsafe {
        let (from, to) = (bound(count, i), bound(count, i + 1));
        let [d, first, last] = all.map(|x| x.part(from..to));
        let v = v.at(from * n + from);
        Part {
            d,
            first,
            last,
            v,
            step: n,
        }
    };
    let done = AtomicBool::new(true);
    parallel_for(count, 1, |range| {
        for i in range {
            let from = bound(count, i);
            if !leaf(part(count, i), &e[from..bound(count, i + 1)]) {
                done.store(false, Relaxed);
            }
        }
    });
    while count > 1 && done.load(Relaxed) {
        count /= 2;
        parallel_for(count, 1, |range| {
            for i in range {
                let middle = bound(2 * count, 2 * i + 1);
                merge(part(count, i), middle - bound(count, i), e[middle - 1]);
            }
        });
    }
    done.into_inner().then_some(vectors)
}

/// A part without parts, by QL.
fn leaf<T: Precision>(p: Part<T>, e: &[f64]) -> bool {
    let n = p.d.len();
    let width = width(n);
    let mut q = Workspace::full(0.0, n * width);
    for i in 0..n {
        q[i * width + i] = 1.0;
    }
    let mut e: Vec<f64> = gathered(e.iter().copied());
    e[n - 1] = 0.0;
    let done = eigenvectors(p.d, &mut e, T::EPS / 2.0, &mut q, width);
    for (i, row) in q.chunks_exact(width).enumerate() {
        (p.first[i], p.last[i]) = (row[0], row[n - 1]);
        for (j, &x) in row[..n].iter().enumerate() {
            // SAFETY: the part has `n` rows of `n`.
            unsafe { *p.v.add(i * p.step + j) = T::of_f64(x) };
        }
    }
    done
}

/// Which half of a vector is not zero: the first, both or the second.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Reach {
    First,
    Both,
    Second,
}

/// Eigenvalues that stay, and those that the secular equation moves, in ascending order.
struct Sorted {
    stay: Vec<usize>,
    moved: Vec<usize>,
    reach: Vec<Reach>,
    z: Vec<f64>,
}

impl<T: Precision> Part<'_, T> {
    // SAFETY: nobody else uses the row.
    unsafe fn row<'a>(&self, i: usize) -> &'a mut [T] {
        // SAFETY: the part has so many rows.
        unsafe { std::slice::from_raw_parts_mut(self.v.add(i * self.step), self.d.len()) }
    }

    /// Eigenvalues of D + rho z z' that are those of D to rounding stay. Two that are equal to
    /// rounding are rotated until one of them does.
    fn deflate(&mut self, left: usize, rho: f64, z: Vec<f64>) -> Sorted {
        let n = z.len();
        let mut order: Vec<usize> = gathered(0..n);
        order.sort_by(|&i, &j| self.d[i].total_cmp(&self.d[j]));
        let top = |x: &[f64]| x.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let least = T::EPS * top(self.d).max(top(&z));
        let mut s = Sorted {
            stay: room(n),
            moved: room(n),
            reach: gathered((0..n).map(|i| {
                if i < left {
                    Reach::First
                } else {
                    Reach::Second
                }
            })),
            z,
        };
        let mut before: Option<usize> = None;
        for j in order {
            if rho * s.z[j].abs() <= least {
                s.stay.push(j);
                continue;
            }
            if let Some(i) = before.replace(j) {
                let size = s.z[i].hypot(s.z[j]);
                let (cos, sin) = (s.z[j] / size, -s.z[i] / size);
                if ((self.d[j] - self.d[i]) * cos * sin).abs() > least {
                    s.moved.push(i);
                    continue;
                }
                (s.z[i], s.z[j]) = (0.0, size);
                if s.reach[i] != s.reach[j] {
                    s.reach[j] = Reach::Both;
                }
                let turn = |x: &mut f64, y: &mut f64| {
                    (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
                };
                let (c, s_) = (T::of_f64(cos), T::of_f64(sin));
                // SAFETY: two rows of this part.
                let (x, y) = unsafe { (self.row(i), self.row(j)) };
                for (x, y) in x.iter_mut().zip(y) {
                    (*x, *y) = (c * *x + s_ * *y, c * *y - s_ * *x);
                }
                for ends in [&mut *self.first, &mut *self.last] {
                    let (mut x, mut y) = (ends[i], ends[j]);
                    turn(&mut x, &mut y);
                    (ends[i], ends[j]) = (x, y);
                }
                let (x, y) = (self.d[i], self.d[j]);
                self.d[i] = x * cos * cos + y * sin * sin;
                self.d[j] = x * sin * sin + y * cos * cos;
                s.stay.push(i);
            }
        }
        s.moved.extend(before);
        s
    }
}

/// Puts two parts together, the first of `left` rows, with `beside` at the corner.
fn merge<T: Precision>(mut p: Part<T>, left: usize, beside: f64) {
    let n = p.d.len();
    look();
    // Of length one.
    let part = std::f64::consts::FRAC_1_SQRT_2;
    let sign = part.copysign(beside);
    let z = gathered((0..n).map(|i| match i < left {
        true => p.last[i] * part,
        false => p.first[i] * sign,
    }));
    p.last[..left].fill(0.0);
    p.first[left..].fill(0.0);
    let rho = 2.0 * beside.abs();
    let s = p.deflate(left, rho, z);
    let k = s.moved.len();
    if k == 0 {
        return;
    }
    let picked = |x: &[f64]| gathered(s.moved.iter().map(|&i| x[i]));
    let (d, z) = (picked(p.d), picked(&s.z));
    let ends = [picked(p.first), picked(p.last)];
    let reach = |i: usize| s.reach[s.moved[i]];
    // Vectors that are zero in one half are of no use in the other.
    let mut order: Vec<usize> = room(k);
    for r in [Reach::First, Reach::Both, Reach::Second] {
        order.extend((0..k).filter(|&i| reach(i) == r));
    }
    let until = (0..k).filter(|&i| reach(i) != Reach::Second).count();
    let from = (0..k).filter(|&i| reach(i) == Reach::First).count();
    let mut found = Roots::new(&d, &z, rho, T::EPS);
    let mut basis = Workspace::full(T::default(), k * k);
    found.vectors(&d, &z, &order, &ends, &mut basis);
    // SAFETY: all rows are of this part, and those that stay are copied before others are written.
    unsafe {
        let rows = |list: &[usize], range: std::ops::Range<usize>| {
            let mut x = room(list.len() * range.len());
            for &i in list {
                x.extend_from_slice(&p.row(i)[range.clone()]);
            }
            x
        };
        let moved: Vec<usize> = gathered(order.iter().map(|&i| s.moved[i]));
        let upper = rows(&moved[..until], 0..left);
        let lower = rows(&moved[from..], left..n);
        let stay = rows(&s.stay, 0..n);
        for (i, row) in stay.chunks_exact(n).enumerate() {
            p.row(k + i).copy_from_slice(row);
        }
        let basis = Mat::new(basis.as_ptr(), k as isize, 1);
        let put = |at: usize, wide: usize, depth: usize, skip: usize, x: &[T]| {
            let c = Mat::new(p.v.add(at), p.step as isize, 1);
            product(&Problem {
                m: k,
                n: wide,
                k: depth,
                alpha: T::of_f64(1.0),
                a: Mat::new(basis.ptr.add(skip), k as isize, 1),
                b: Mat::new(x.as_ptr(), wide as isize, 1),
                beta: T::default(),
                d: Mat::new(c.ptr.cast_const(), c.rs, c.cs),
                c,
                reduced: false,
            });
        };
        put(0, left, until, 0, &upper);
        put(left, n - left, k - from, from, &lower);
    }
    let stay = |x: &[f64]| -> Vec<f64> { gathered(s.stay.iter().map(|&i| x[i])) };
    let [first, last] = found.ends;
    for (to, new) in [
        (&mut *p.d, found.values),
        (&mut *p.first, first),
        (&mut *p.last, last),
    ] {
        let old = stay(to);
        to[..k].copy_from_slice(&new);
        to[k..].copy_from_slice(&old);
    }
}

/// The eigenvalues of D + rho z z', with D minus each of them as rows, and what the first and last
/// elements of their vectors are.
struct Roots {
    values: Vec<f64>,
    /// Whole lanes of what is far away.
    step: usize,
    apart: Workspace<f64>,
    ends: [Vec<f64>; 2],
}

impl Roots {
    fn new(d: &[f64], z: &[f64], rho: f64, eps: f64) -> Self {
        let k = d.len();
        let mut values = full(0.0, k);
        let step = width(k);
        let mut apart = Workspace::full(f64::INFINITY, k * step);
        let mut squares = full(0.0, step);
        for (to, z) in squares.iter_mut().zip(z) {
            *to = rho * z * z;
        }
        let close = (eps / 16.0).max(4.0 * f64::EPSILON);
        let to = Ptr::new(values.as_mut_ptr());
        parallel_chunks(&mut apart, step, GRAIN / (8 * k) + 1, |j, rows| {
            for (j, row) in (j..).zip(rows.chunks_exact_mut(step)) {
                // SAFETY: each root has its own place.
                unsafe { *to.at(j) = root(j, d, &squares, row, close) };
            }
        });
        let ends = [full(0.0, k), full(0.0, k)];
        Roots {
            values,
            step,
            apart,
            ends,
        }
    }

    /// The vectors as rows of `basis`, their elements in this order.
    fn vectors<T: Precision>(
        &mut self,
        d: &[f64],
        z: &[f64],
        order: &[usize],
        ends: &[Vec<f64>; 2],
        basis: &mut [T],
    ) {
        let k = d.len();
        let mut weights = full(1.0, k);
        let (apart, step) = (&self.apart[..], self.step);
        parallel_chunks(&mut weights, 64, GRAIN / (64 * k) + 1, |at, w| {
            weigh(d, apart, step, at * 64, w);
            for (w, z) in w.iter_mut().zip(&z[at * 64..]) {
                *w = w.abs().sqrt().copysign(*z);
            }
        });
        let [first, last] = self.ends.each_mut().map(|x| Ptr::new(x.as_mut_ptr()));
        let rows = |j: usize, rows: &mut [T]| {
            let mut x = full(0.0, k);
            for (j, to) in (j..).zip(rows.chunks_exact_mut(k)) {
                let length = divided(&weights, &apart[j * step..][..k], &mut x);
                for (to, &i) in to.iter_mut().zip(order) {
                    *to = T::of_f64(x[i] / length);
                }
                // SAFETY: each vector has its own places.
                unsafe {
                    *first.at(j) = dot(&x, &ends[0]) / length;
                    *last.at(j) = dot(&x, &ends[1]) / length;
                }
            }
        };
        parallel_chunks(basis, k, GRAIN / (4 * k) + 1, rows);
    }
}

/// The smaller root of c x^2 - a x + b, or the only one that lies where it must.
fn smaller(a: f64, b: f64, c: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    match a > 0.0 {
        true => 2.0 * b / (a + root),
        false => (a - root) / (2.0 * c),
    }
}

/// Root `j` of 1 + sum z^2 / (d - x), which lies above `d[j]`, and `d` minus the root. It is kept as
/// its distance from the nearer `d`, and found by interpolation with a pole on each side, between
/// bounds that only come closer.
fn root(j: usize, d: &[f64], squares: &[f64], apart: &mut [f64], close: f64) -> f64 {
    let last = j + 1 == d.len();
    let gap = match last {
        true => squares.iter().sum(),
        false => d[j + 1] - d[j],
    };
    let at = |origin: f64, apart: &mut [f64]| {
        for (to, d) in apart.iter_mut().zip(d) {
            *to = d - origin;
        }
    };
    let (mut origin, mut x) = (d[j], 0.5 * gap);
    at(origin, apart);
    let (mut low, mut high) = (0.0, gap);
    // Where the poles are.
    let (mut left, mut right) = (0.0, gap);
    if !last {
        let [below, above] = terms(squares, apart, j, x);
        let w = 1.0 + below.0 + above.0;
        let (s, t) = (squares[j], squares[j + 1]);
        let rest = w + (s - t) / x;
        if w >= 0.0 {
            high = x;
            x = smaller(rest * gap + s + t, s * gap, rest);
        } else {
            (origin, left, right) = (d[j + 1], -gap, 0.0);
            at(origin, apart);
            (low, high) = (-x, 0.0);
            x = smaller(s + t - rest * gap, -t * gap, rest);
        }
        if !(x > low && x < high) {
            x = 0.5 * (low + high);
        }
    }
    for _ in 0..STEPS {
        let [(psi, slope), (phi, rise)] = terms(squares, apart, j, x);
        let w = 1.0 + psi + phi;
        if w.abs() <= close * (1.0 + psi.abs() + phi.abs()) {
            break;
        }
        if w < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let (a, b) = (left - x, right - x);
        let step = match last {
            true => a + a * a * slope / (1.0 + psi - a * slope),
            false => smaller(
                (a + b) * w - a * b * (slope + rise),
                a * b * w,
                w - a * slope - b * rise,
            ),
        };
        let mut next = x + step;
        if !(next > low && next < high) {
            next = 0.5 * (low + high);
        }
        if (next - x).abs() <= f64::EPSILON * x.abs() {
            break;
        }
        x = next;
    }
    apart.iter_mut().for_each(|a| *a -= x);
    origin + x
}

per_isa! {
    /// The sums of s / (d - x) up to element `j` and after it, and their slopes. Both lists are of
    /// whole [`Lanes`].
    fn terms[](squares: &[f64], d: &[f64], j: usize, x: f64) -> [(f64, f64); 2] {
        let mut sums = [[[0.0f64; LANES]; 2]; 2];
        let (squares, d) = (squares.as_chunks::<LANES>().0, d.as_chunks::<LANES>().0);
        let own = j / LANES;
        let add = |[sums, slopes]: &mut [Lanes<f64>; 2], s: &Lanes<f64>, d: &Lanes<f64>| {
            for l in 0..LANES {
                let inverse = 1.0 / (d[l] - x);
                let term = s[l] * inverse;
                sums[l] += term;
                slopes[l] += term * inverse;
            }
        };
        for (s, d) in squares[..own].iter().zip(&d[..own]) {
            add(&mut sums[0], s, d);
        }
        let below = std::array::from_fn(|l| if own * LANES + l <= j { squares[own][l] } else { 0.0 });
        let above = std::array::from_fn(|l| if own * LANES + l > j { squares[own][l] } else { 0.0 });
        add(&mut sums[0], &below, &d[own]);
        add(&mut sums[1], &above, &d[own]);
        for (s, d) in squares[own + 1..].iter().zip(&d[own + 1..]) {
            add(&mut sums[1], s, d);
        }
        sums.map(|[sums, slopes]| (sum(sums), sum(slopes)))
    }
}

per_isa! {
    /// Squares of the elements, from `from` on, of the vector that makes the roots exact.
    fn weigh[](d: &[f64], apart: &[f64], step: usize, from: usize, w: &mut [f64]) {
        for (j, row) in apart.chunks_exact(step).enumerate() {
            let own = j.clamp(from, from + w.len()) - from;
            let (row, near) = (&row[from..][..w.len()], &d[from..][..w.len()]);
            for i in 0..own {
                w[i] *= row[i] / (near[i] - d[j]);
            }
            let mut next = own;
            if (from..from + w.len()).contains(&j) {
                w[own] *= row[own];
                next += 1;
            }
            for i in next..w.len() {
                w[i] *= row[i] / (near[i] - d[j]);
            }
        }
    }
}

per_isa! {
    /// The quotients, and the root of the sum of their squares.
    fn divided[](x: &[f64], y: &[f64], to: &mut [f64]) -> f64 {
        let mut sums = [0.0f64; 8];
        let (x, y, mut to) = (x.chunks_exact(8), y.chunks_exact(8), to.chunks_exact_mut(8));
        let rest = x.remainder().iter().zip(y.remainder());
        for ((x, y), to) in x.zip(y).zip(to.by_ref()) {
            for l in 0..8 {
                to[l] = x[l] / y[l];
                sums[l] += to[l] * to[l];
            }
        }
        for ((s, to), (x, y)) in sums.iter_mut().zip(to.into_remainder()).zip(rest) {
            *to = x / y;
            *s += *to * *to;
        }
        sums.iter().sum::<f64>().sqrt()
    }
}

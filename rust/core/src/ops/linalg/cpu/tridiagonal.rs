//! Symmetric matrices brought to three diagonals by reflections, and the eigenvalues of those by
//! implicit QL. Rows are padded with zeros to whole vectors: reflectors are zero where they do not
//! reach, so that every loop over a row is of full vectors and changes nothing there.

use super::conquer::conquer;
use super::householder::{reflect_all, triangle};
use super::lanes::{get, put, reflect_rows, sum, Lanes, LANES};
use super::Precision;
use crate::alloc::{full, room, Workspace};
use crate::cpu::gemm::Mat;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::{Simd, Vectors, MOST};
use crate::per_isa;
use std::ops::Range;

/// The rows that a second thread is worth: fewer take less time than two threads take to meet.
const TALL: usize = 512;
/// Into how many parts so many rows go.
const PARTS: usize = 4;

/// A = Q T Q', with the reflectors that make Q.
pub struct Tridiagonal<T> {
    /// Row k holds reflector k from column k + 1 on.
    rows: Workspace<T>,
    width: usize,
    tau: Vec<T>,
    /// The diagonal of T, and what is beside it.
    d: Vec<f64>,
    e: Vec<f64>,
}

/// Rounding, relative: T and rotations are computed in float64 for all types.
fn rounding<T: Precision>() -> f64 {
    T::EPS / 2.0
}

impl<T: Precision> Tridiagonal<T> {
    /// Of the symmetric matrix whose lower triangle lies in the `n` rows of `a`.
    pub fn new(a: &[T], n: usize) -> Self {
        let width = n.next_multiple_of(MOST);
        let mut rows = Workspace::full(T::default(), n * width);
        for i in 0..n {
            rows[i * width..][..i + 1].copy_from_slice(&a[i * n..][..i + 1]);
            for j in 0..i {
                rows[j * width + i] = a[i * n + j];
            }
        }
        let mut t = Tridiagonal {
            rows,
            width,
            tau: full(T::default(), n),
            d: full(0.0, n),
            e: full(0.0, n),
        };
        // SAFETY: rows, factors and diagonals are of the sizes that `width` and `n` say.
        unsafe { reduce(&mut t.rows, n, width, &mut t.tau, &mut t.d, &mut t.e) };
        t
    }

    /// The eigenvalues in ascending order; `false` where they did not converge.
    pub fn values(mut self, w: &mut [T]) -> bool {
        let unit = scale(&mut self.d, &mut self.e);
        let done = eigenvalues::<T>(&mut self.d, &mut self.e);
        self.d.sort_unstable_by(f64::total_cmp);
        for (w, d) in w.iter_mut().zip(&self.d) {
            *w = T::of_f64(d * unit);
        }
        done
    }

    /// As [`vectors`](Self::vectors), by divide and conquer and products of blocks of reflectors.
    pub fn conquered(mut self, w: &mut [T], v: &mut [T]) -> bool {
        let (n, width) = (self.d.len(), self.width);
        let unit = scale(&mut self.d, &mut self.e);
        let Some(rows) = conquer::<T>(&mut self.d, &self.e) else {
            return false;
        };
        let mut order: Vec<usize> = crate::alloc::gathered(0..n);
        order.sort_unstable_by(|&i, &j| self.d[i].total_cmp(&self.d[j]));
        for (w, &from) in w.iter_mut().zip(&order) {
            *w = T::of_f64(self.d[from] * unit);
        }
        // In squares that stay in the cache.
        for (at, part) in (0..).step_by(16).zip(order.chunks(16)) {
            for start in (0..n).step_by(16) {
                for i in start..n.min(start + 16) {
                    for (to, &from) in v[i * n + at..].iter_mut().zip(part) {
                        *to = rows[from * n + i];
                    }
                }
            }
        }
        drop(rows);
        back(&mut self.rows, n, width, &self.tau, v);
        true
    }

    /// Eigenvalues in ascending order, eigenvectors into the columns of `v`; `false` where they did
    /// not converge.
    pub fn vectors(mut self, w: &mut [T], v: &mut [T]) -> bool {
        let (n, width) = (self.d.len(), self.width);
        let unit = scale(&mut self.d, &mut self.e);
        let mut q = Workspace::full(T::default(), n * width);
        // SAFETY: rows and factors are of the sizes that `width` and `n` say.
        unsafe { collect(&self.rows, n, width, &self.tau, &mut q) };
        let done = eigenvectors(&mut self.d, &mut self.e, rounding::<T>(), &mut q, width);
        let mut order: Vec<usize> = crate::alloc::gathered(0..n);
        order.sort_unstable_by(|&i, &j| self.d[i].total_cmp(&self.d[j]));
        for (j, &from) in order.iter().enumerate() {
            w[j] = T::of_f64(self.d[from] * unit);
            for (i, &x) in q[from * width..][..n].iter().enumerate() {
                v[i * n + j] = x;
            }
        }
        done
    }
}

/// Eigenvalues of what is to be found to the rounding of T in place of the diagonal; `false` where it does not converge.
pub fn eigenvalues<T: Precision>(d: &mut [f64], e: &mut [f64]) -> bool {
    ql::<false>(d, e, rounding::<T>(), |_| ())
}

/// Eigenvalues in place of the diagonal, and the rows of `q` rotated as vectors of the matrix are;
/// `false` where it does not converge.
pub fn eigenvectors<T: Precision>(
    d: &mut [f64],
    e: &mut [f64],
    eps: f64,
    q: &mut [T],
    width: usize,
) -> bool {
    // Elements beside the diagonal become positive.
    let mut sign = 1.0;
    for (row, e) in q.chunks_exact_mut(width).zip(&mut *e) {
        if sign < 0.0 {
            row.iter_mut().for_each(|x| *x = -*x);
        }
        sign *= 1f64.copysign(*e);
    }
    let mut turns = room(d.len());
    let step = |step: Step| match step {
        Step::Reverse(first, last) => {
            for k in 0..(last - first).div_ceil(2) {
                let (a, b) = q.split_at_mut((last - k) * width);
                a[(first + k) * width..][..width].swap_with_slice(&mut b[..width]);
            }
        }
        Step::Turn(last, squares) => {
            let rows = &mut q[(last - squares.len()) * width..(last + 1) * width];
            // SAFETY: there is a row more than turns.
            unsafe { turn_all(rows, width, squares, &mut turns) };
        }
    };
    ql::<true>(d, e, eps, step)
}

/// Brings both diagonals near one, where squares are harmless, and gives the unit.
pub fn scale(d: &mut [f64], e: &mut [f64]) -> f64 {
    let most = d.iter().chain(&*e).fold(0.0, |m: f64, x| m.max(x.abs()));
    if most == 0.0 || !most.is_finite() {
        return 1.0;
    }
    let unit = 2f64.powi(most.log2().floor().clamp(-1000.0, 1000.0) as i32);
    d.iter_mut().chain(e).for_each(|x| *x /= unit);
    unit
}

/// The first reflector of what follows the diagonal in a row: its first element and its factor.
#[inline(always)]
fn reflector<T: Precision>(x: &mut [T]) -> (f64, T) {
    match super::plain::reflector(x) {
        Some((beta, tau)) => {
            x[0] = T::of_f64(1.0);
            (beta.to_f64(), tau)
        }
        None => {
            let beta = x[0].to_f64();
            x.fill(T::default());
            (beta, T::default())
        }
    }
}

/// One vector of columns, from `c` on, of [`update`].
#[inline(always)]
unsafe fn update_vector<V: Simd, const R: usize, const BESIDE: bool>(
    (rows, width, c): (*mut V::Elem, usize, usize),
    [v, w, x]: [*const V::Elem; 3],
    [minus_v, minus_w, own]: &[[V; R]; 3],
    sums: &mut [V; R],
    y: *mut V::Elem,
) {
    // SAFETY: R rows of whole vectors begin at `rows`; the others are as wide.
    unsafe {
        let (v, w, x) = (V::load(v.add(c)), V::load(w.add(c)), V::load(x.add(c)));
        let mut below = V::load(y.add(c));
        for r in 0..R {
            let p = rows.add(r * width + c);
            let row = minus_w[r].fma(v, minus_v[r].fma(w, V::load(p)));
            row.store(p);
            sums[r] = row.fma(x, sums[r]);
            if BESIDE {
                below = row.fma(own[r], below);
            }
        }
        if BESIDE {
            below.store(y.add(c));
        }
    }
}

/// R rows from row `i` on, minus `v[i]` times `w` and `w[i]` times `v`, and what they and the columns
/// like them add to the product with `x`. Of the matrix there is what lies right of the diagonal, and
/// the squares on it that are as wide as a vector.
#[inline(always)]
unsafe fn update<T: Precision, V: Simd<Elem = T>, const R: usize>(
    rows: *mut T,
    width: usize,
    given: [*const T; 3],
    i: usize,
    y: *mut T,
) {
    // SAFETY: R rows of `width`, whole vectors, begin at `rows`, and the others are as wide.
    unsafe {
        let [v, w, x] = given;
        let mut sums = [V::splat(T::default()); R];
        let mut around = [sums; 3];
        for r in 0..R {
            around[0][r] = V::splat(-*v.add(i + r));
            around[1][r] = V::splat(-*w.add(i + r));
            around[2][r] = V::splat(*x.add(i + r));
        }
        let mut c = i / V::LANES * V::LANES;
        update_vector::<V, R, false>((rows, width, c), given, &around, &mut sums, y);
        c += V::LANES;
        while c < width {
            update_vector::<V, R, true>((rows, width, c), given, &around, &mut sums, y);
            c += V::LANES;
        }
        V::add_sums(&sums, y.add(i));
    }
}

per_isa! {
    /// [`update`] of the rows of a range, the first of which is at `rows`.
    ///
    /// # Safety
    /// Rows are of `width`, a multiple of [`MOST`], and the others are as wide.
    unsafe fn update_rows[T: Precision; in V](
        rows: *mut T, width: usize, given: [*const T; 3], range: Range<usize>, y: *mut T,
    ) {
        let (mut i, first) = (range.start, range.start);
        while i < range.end {
            // Rows whose squares on the diagonal are the same.
            let end = ((i / V::LANES + 1) * V::LANES).min(range.end);
            // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide.
            unsafe {
                while i + 4 <= end {
                    update::<T, V, 4>(rows.add((i - first) * width), width, given, i, y);
                    i += 4;
                }
                while i < end {
                    update::<T, V, 1>(rows.add((i - first) * width), width, given, i, y);
                    i += 1;
                }
            }
        }
    }
}

/// As [`update_rows`] of the rows from `first` to `end`, in parts as large as each other where there
/// are many; `parts` has room for the sums of each. The sums do not depend on the number of threads.
///
/// # Safety
/// As for [`update_rows`].
unsafe fn update_all<T: Precision>(
    (rows, width): (*mut T, usize),
    given: [*const T; 3],
    (first, end): (usize, usize),
    y: &mut [T],
    parts: &mut [T],
) {
    if end - first < TALL {
        y[first..].fill(T::default());
        // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide.
        return unsafe { update_rows(rows, width, given, first..end, y.as_mut_ptr()) };
    }
    // A row is as long as what is left.
    let bound = |i: usize| match i {
        0 => first,
        PARTS => end,
        _ => {
            let share = 1.0 - (1.0 - i as f64 / PARTS as f64).sqrt();
            first + (share * (end - first) as f64) as usize
        }
    };
    let (rows, sums, given) = (
        Ptr::new(rows),
        Ptr::new(parts.as_mut_ptr()),
        given.map(|x| Ptr::read(x)),
    );
    parallel_for(PARTS, 1, |range| {
        for i in range {
            // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide; each
            // part has rows and sums of its own.
            unsafe {
                let rows = rows.at((bound(i) - first) * width);
                let given = given.map(|x| x.get().cast_const());
                let y = sums.part(i * width..(i + 1) * width);
                y[bound(i)..].fill(T::default());
                update_rows(rows, width, given, bound(i)..bound(i + 1), y.as_mut_ptr());
            }
        }
    });
    y[first..].copy_from_slice(&parts[first..width]);
    for i in 1..PARTS {
        for (y, &x) in y[bound(i)..]
            .iter_mut()
            .zip(&parts[i * width..][bound(i)..width])
        {
            *y = *y + x;
        }
    }
}

per_isa! {
    /// Reflects from both sides. The update of one step is done by the pass over the matrix that
    /// multiplies it by the reflector of the next.
    ///
    /// # Safety
    /// There are `n` rows of `width`, a multiple of [`MOST`] from `n` on, zero from column `n` on;
    /// `tau`, `d` and `e` have `n` elements.
    unsafe fn reduce[T: Precision](
        a: &mut [T], n: usize, width: usize, tau: &mut [T], d: &mut [f64], e: &mut [f64],
    ) {
        let zero = T::default();
        let mut work = Workspace::full(zero, 4 * width);
        let mut parts = Workspace::full(zero, if n < TALL { 0 } else { PARTS * width });
        let (pair, next) = work.split_at_mut(2 * width);
        let (v, w) = pair.split_at_mut(width);
        let (x, y) = next.split_at_mut(width);
        for k in 0..n {
            let (head, tail) = a.split_at_mut((k + 1) * width);
            let row = &mut head[k * width..];
            let (vk, wk) = (v[k], w[k]);
            for ((a, &v), &w) in row.iter_mut().zip(&*v).zip(&*w) {
                *a = *a - (vk * w + wk * v);
            }
            d[k] = row[k].to_f64();
            if k + 1 == n {
                break;
            }
            let (beta, t) = reflector(&mut row[k + 1..n]);
            e[k] = beta;
            tau[k] = t;
            x[k] = zero;
            x[k + 1..n].copy_from_slice(&row[k + 1..n]);
            // SAFETY: rows from k + 1 to `n` lie in `tail`, and the vectors are as wide.
            unsafe {
                let rows = (tail.as_mut_ptr(), width);
                let given = [v.as_ptr(), w.as_ptr(), x.as_ptr()];
                update_all(rows, given, (k + 1, n), y, &mut parts);
            }
            // w = tau A x - (tau^2 x' A x / 2) x
            let from = (k + 1) / LANES * LANES;
            let mut dot = [zero; LANES];
            for (x, y) in x[from..].chunks_exact(LANES).zip(y[from..].chunks_exact(LANES)) {
                for l in 0..LANES {
                    dot[l] = dot[l] + x[l] * y[l];
                }
            }
            let half = T::of_f64(0.5) * t * t * sum(dot);
            for ((w, &y), &x) in w[from..].iter_mut().zip(&y[from..]).zip(&x[from..]) {
                *w = t * y - half * x;
            }
            w[k] = zero;
            y[k + 1] = zero;
            v.copy_from_slice(x);
        }
    }
}

per_isa! {
    /// The columns of Q as the rows of `q`, zeros at first.
    ///
    /// # Safety
    /// As for [`reduce`]; `q` is as large as `a`.
    pub unsafe fn collect[T: Precision](a: &[T], n: usize, width: usize, tau: &[T], q: &mut [T]) {
        for i in 0..n {
            q[i * width + i] = T::of_f64(1.0);
        }
        for k in (0..n.saturating_sub(1)).rev() {
            if tau[k] == T::default() {
                continue;
            }
            let from = (k + 1) / LANES * LANES;
            let mut v = Workspace::full(T::default(), width);
            v[k + 1..n].copy_from_slice(&a[k * width + k + 1..k * width + n]);
            let mut i = k + 1;
            // SAFETY: `q` has rows up to `n`, and `v` is as wide.
            unsafe {
                let rows = q.as_mut_ptr();
                while i + 4 <= n {
                    reflect_rows::<T, 4>(rows.add(i * width), (from, width), v.as_ptr(), tau[k]);
                    i += 4;
                }
                while i < n {
                    reflect_rows::<T, 1>(rows.add(i * width), (from, width), v.as_ptr(), tau[k]);
                    i += 1;
                }
            }
        }
    }
}

/// Columns of `x`, of `n` rows, reflected from the last reflector to the first, in blocks.
fn back<T: Precision>(a: &mut [T], n: usize, width: usize, tau: &[T], x: &mut [T]) {
    const BLOCK: usize = 32;
    let count = n.saturating_sub(1);
    let mut t = Workspace::full(T::default(), BLOCK * BLOCK);
    for from in (0..count).step_by(BLOCK).rev() {
        let block = BLOCK.min(count - from);
        for k in from..from + block {
            // What is left of a reflector is not its own.
            a[k * width + from + 1..k * width + k + 1].fill(T::default());
        }
        // Reflectors are zero above the row after the first of them.
        let (at, high) = (from + 1, n - from - 1);
        let v = Mat::new(a[from * width + at..].as_ptr(), 1, width as isize);
        // SAFETY: rows of `width` hold the reflectors, and `x` has `n` rows of `n`.
        unsafe {
            triangle(v, high, &tau[from..from + block], &mut t, BLOCK);
            let t = Mat::new(t.as_ptr(), BLOCK as isize, 1);
            reflect_all(v, t, (high, block), x.as_mut_ptr().add(at * n), n, n);
        }
    }
}

/// Sweeps until convergence, for each eigenvalue.
const SWEEPS: usize = 30;

/// Whether an element beside the diagonal, squared, is rounding.
#[inline(always)]
fn small(square: f64, d: &[f64], i: usize, eps: f64) -> bool {
    square <= eps * eps * (d[i] * d[i + 1]).abs() + f64::MIN_POSITIVE
}

/// What happens to the rows of eigenvectors.
enum Step<'a> {
    /// Those from the first to the last change their order.
    Reverse(usize, usize),
    /// Neighbours are rotated, from the last on: squares of cosines and sines, with their signs.
    Turn(usize, &'a [(f64, f64)]),
}

/// Eigenvalues in place of the diagonal, by the rational QL of Pal, Walker and Kahan (Parlett, The
/// Symmetric Eigenvalue Problem, section 8.15): `e`, not negative, is squared, and roots are taken
/// for rotations only, where no step waits for them. `false` where it does not converge.
fn ql<const TURNS: bool>(
    d: &mut [f64],
    e: &mut [f64],
    eps: f64,
    mut tell: impl FnMut(Step),
) -> bool {
    e.iter_mut().for_each(|e| *e *= *e);
    let (n, mut first) = (d.len(), 0);
    let mut turns = room(if TURNS { n } else { 0 });
    let mut left = SWEEPS * n;
    while first < n {
        let mut last = first;
        while last + 1 < n && !small(e[last], d, last, eps) {
            last += 1;
        }
        // Convergence is from the smaller end.
        if d[last].abs() < d[first].abs() {
            d[first..=last].reverse();
            e[first..last].reverse();
            tell(Step::Reverse(first, last));
        }
        let (mut l, mut negative) = (first, false);
        while l < last {
            let mut m = l;
            while m < last && !small(e[m], d, m, eps) {
                m += 1;
            }
            if m == l {
                (l, negative) = (l + 1, false);
                continue;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            let root = e[l].sqrt();
            let half = (d[l + 1] - d[l]) / (2.0 * root);
            let sigma = d[l] - root / (half + (half * half + 1.0).sqrt().copysign(half));
            let (mut c, mut s, mut gamma) = (1.0f64, 0.0, d[m] - sigma);
            let mut p = gamma * gamma;
            // The sign of the cosine.
            let mut sign = gamma;
            for i in (l..m).rev() {
                let b = e[i];
                let r = p + b;
                // What is beside the block stays as it is.
                if i + 1 < m {
                    e[i + 1] = s * r;
                }
                let (before, old) = (c, gamma);
                // The reciprocal of c is ready when gamma is.
                let inverse = r / p;
                (c, s) = (p / r, b / r);
                if TURNS {
                    turns.push((c.copysign(sign), s));
                }
                gamma = c * (d[i] - sigma) - s * old;
                d[i + 1] = old + (d[i] - gamma);
                if c != 0.0 {
                    p = gamma * gamma * inverse;
                    sign = 1f64.copysign(sign) * gamma;
                } else {
                    p = before * b;
                    sign = -1f64.copysign(sign) * 1f64.copysign(old);
                }
            }
            e[l] = s * p;
            d[l] = sigma + gamma;
            if TURNS {
                if let Some((_, s)) = turns.last_mut().filter(|_| negative) {
                    *s = -*s;
                }
                negative ^= sign < 0.0;
                tell(Step::Turn(m, &turns));
                turns.clear();
            }
        }
        first = last + 1;
    }
    true
}

/// Rotates pairs of neighbouring rows, from the last on, in C vectors of columns that stay in
/// registers from one pair to the next.
#[inline(always)]
unsafe fn turn<T: Precision, const C: usize>(at: *mut T, width: usize, turns: &[(T, T)]) {
    // SAFETY: there are rows up to that of the number of turns, with C vectors from `at` on.
    unsafe {
        let mut p = at.add(turns.len() * width);
        let mut y: [Lanes<T>; C] = std::array::from_fn(|i| get(p.add(i * LANES)));
        for &(c, s) in turns {
            let above = p.sub(width);
            for i in 0..C {
                let x = get(above.add(i * LANES));
                put(
                    p.add(i * LANES),
                    std::array::from_fn(|l| s * x[l] + c * y[i][l]),
                );
                y[i] = std::array::from_fn(|l| c * x[l] - s * y[i][l]);
            }
            p = above;
        }
        for i in 0..C {
            put(p.add(i * LANES), y[i]);
        }
    }
}

per_isa! {
    /// Rotates pairs of neighbouring rows, from the last on.
    ///
    /// # Safety
    /// `width` is a multiple of [`LANES`], and there is a row more than turns.
    unsafe fn turn_all[T: Precision](
        rows: &mut [T], width: usize, squares: &[(f64, f64)], turns: &mut Vec<(T, T)>,
    ) {
        let root = |x: f64| T::of_f64(x.abs().sqrt().copysign(x));
        turns.clear();
        turns.extend(squares.iter().map(|&(c, s)| (root(c), root(s))));
        let (at, mut c) = (rows.as_mut_ptr(), 0);
        // SAFETY: columns up to `width`, a multiple of LANES, and rows up to that of the turns.
        unsafe {
            while c + 4 * LANES <= width {
                turn::<T, 4>(at.add(c), width, turns);
                c += 4 * LANES;
            }
            while c < width {
                turn::<T, 1>(at.add(c), width, turns);
                c += LANES;
            }
        }
    }
}

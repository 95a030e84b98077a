//! Eigenvalues and eigenvectors of matrices that fit the caches: Hessenberg's form and Francis' double
//! steps. Rows are padded to whole vectors, and Q is kept as its columns, so
//! that all but three numbers of each row are reflected in vectors.

use super::hessenberg::hessenberg;
use super::lanes::{add, get, put, scale_add, sum, width, Lanes, LANES};
use super::{tridiagonal, Precision};
use crate::alloc::{full, Workspace};
use crate::cpu::gemm::gemm;
use crate::per_isa;

/// A = Q T Q', T with blocks of one or two on the diagonal; what is computed of single numbers is
/// in float64.
pub struct Schur<T> {
    n: usize,
    width: usize,
    t: Workspace<T>,
    /// The columns of Q, where vectors are wanted.
    q: Option<Workspace<T>>,
    /// What the numbers are known to, relative: below that they are rounding.
    eps: f64,
    pub re: Vec<f64>,
    pub im: Vec<f64>,
}

impl<T: Precision> Schur<T> {
    /// `None` where it does not converge.
    pub fn new(a: impl Iterator<Item = f64>, n: usize, vectors: bool, eps: f64) -> Option<Self> {
        let width = width(n);
        let mut t = Workspace::full(T::default(), n * width);
        let mut a = a;
        for row in t.chunks_exact_mut(width) {
            for (to, x) in row[..n].iter_mut().zip(&mut a) {
                *to = T::of_f64(x);
            }
        }
        let mut q = vectors.then(|| Workspace::full(T::default(), n * width));
        let mut reflectors = Workspace::full(T::default(), if vectors { n * width } else { 0 });
        let mut tau = full(T::default(), n);
        // SAFETY: all have `n` rows of `width`, or none, as reflectors where they are not wanted.
        unsafe {
            hessenberg(&mut t, n, width, &mut reflectors, &mut tau);
            if let Some(q) = &mut q {
                tridiagonal::collect(&reflectors, n, width, &tau, q);
            }
        }
        let mut s = Schur {
            n,
            width,
            t,
            q,
            eps,
            re: full(0.0, n),
            im: full(0.0, n),
        };
        s.iterate().then_some(s)
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.t[i * self.width + j].to_f64()
    }

    /// The first row of the block that ends with row `i`: what is left of it is rounding (Ahues and
    /// Tisseur 1997).
    fn start(&self, i: usize) -> usize {
        let h = |i: usize, j: usize| self.at(i, j).abs();
        let mut k = i;
        while k > 0 {
            let beside = h(k, k - 1);
            let mut near = h(k - 1, k - 1) + h(k, k);
            if near == 0.0 {
                near = if k >= 2 { h(k - 1, k - 2) } else { 0.0 };
                near += if k + 1 < self.n { h(k + 1, k) } else { 0.0 };
            }
            if beside <= T::TINY.to_f64() {
                break;
            }
            if beside <= self.eps * near {
                let above = h(k - 1, k);
                let (ab, ba) = (beside.max(above), beside.min(above));
                let gap = (self.at(k - 1, k - 1) - self.at(k, k)).abs();
                let (aa, bb) = (h(k, k).max(gap), h(k, k).min(gap));
                let s = aa + ab;
                if ba * (ab / s) <= self.eps * (bb * (aa / s)) + T::TINY.to_f64() {
                    break;
                }
            }
            k -= 1;
        }
        k
    }

    fn iterate(&mut self) -> bool {
        let (mut end, mut turns) = (self.n, 0);
        while end > 0 {
            let i = end - 1;
            let l = self.start(i);
            if l > 0 {
                self.t[l * self.width + l - 1] = T::default();
            }
            if l + 1 >= i {
                match l == i {
                    true => self.re[i] = self.at(i, i),
                    false => self.pair(l),
                }
                (end, turns) = (l, 0);
                continue;
            }
            turns += 1;
            if turns > 30 * self.n.max(10) {
                return false;
            }
            let shifts = self.shifts(l, i, turns);
            let (m, first) = self.bulge(l, i, shifts);
            let none = &mut [][..];
            let q = self.q.as_mut().map_or(none, |q| &mut q[..]);
            // SAFETY: T and Q have rows of `width` beyond row `i`, and l <= m <= i - 2.
            unsafe { sweep(&mut self.t, q, self.width, (l, m, i), first) };
        }
        true
    }

    /// The sum and the product of what the next step is shifted by, as two numbers and the product
    /// of their imaginary parts.
    fn shifts(&self, l: usize, i: usize, turns: usize) -> (f64, f64, f64) {
        let s = match turns % 20 {
            10 => Some((self.at(l + 1, l).abs() + self.at(l + 2, l + 1).abs(), l)),
            0 => Some((self.at(i, i - 1).abs() + self.at(i - 1, i - 2).abs(), i)),
            _ => None,
        };
        // Where it does not converge it is shifted by something else.
        let [a, b, c, d] = match s {
            Some((s, k)) => {
                let a = 0.75 * s + self.at(k, k);
                [a, -0.4375 * s, s, a]
            }
            None => {
                let (a, b) = (self.at(i - 1, i - 1), self.at(i - 1, i));
                [a, b, self.at(i, i - 1), self.at(i, i)]
            }
        };
        let s = a.abs() + b.abs() + c.abs() + d.abs();
        if s == 0.0 {
            return (0.0, 0.0, 0.0);
        }
        let [a, b, c, d] = [a / s, b / s, c / s, d / s];
        let middle = (a + d) / 2.0;
        let product = (a - middle) * (d - middle) - b * c;
        let root = product.abs().sqrt();
        if product >= 0.0 {
            return (middle * s, middle * s, root * s);
        }
        // The nearer of two real ones, twice.
        let (x, y) = (middle + root, middle - root);
        let near = if (x - d).abs() <= (y - d).abs() { x } else { y };
        (near * s, near * s, 0.0)
    }

    /// Where two small elements follow each other, so that a step may begin there, and the first
    /// column of its product.
    fn bulge(&self, l: usize, i: usize, (r1, r2, im): (f64, f64, f64)) -> (usize, [f64; 3]) {
        let mut m = i - 2;
        loop {
            let (a, b, c) = (self.at(m, m), self.at(m, m + 1), self.at(m + 1, m));
            let d = self.at(m + 1, m + 1);
            let s = (a - r2).abs() + im.abs() + c.abs();
            let c = c / s;
            let v = [
                c * b + (a - r1) * ((a - r2) / s) + im * (im / s),
                c * (a + d - r1 - r2),
                c * self.at(m + 2, m + 1),
            ];
            let s = v[0].abs() + v[1].abs() + v[2].abs();
            let v = v.map(|v| v / s);
            if m == l {
                return (m, v);
            }
            let around = self.at(m - 1, m - 1).abs() + a.abs() + d.abs();
            let left = self.at(m, m - 1).abs() * (v[1].abs() + v[2].abs());
            if left <= T::EPS * v[0].abs() * around {
                return (m, v);
            }
            m -= 1;
        }
    }

    /// Brings the block of rows `l` and `l + 1` to its normal form: a triangle, or equal elements on
    /// the diagonal and others of different signs.
    fn pair(&mut self, l: usize) {
        let (w, k) = (self.width, l + 1);
        let [a, b, c, d] = [self.at(l, l), self.at(l, k), self.at(k, l), self.at(k, k)];
        let (cos, sin) = normal(a, b, c, d);
        for j in l..self.n {
            let (x, y) = (self.at(l, j), self.at(k, j));
            self.t[l * w + j] = T::of_f64(cos * x + sin * y);
            self.t[k * w + j] = T::of_f64(cos * y - sin * x);
        }
        for i in 0..=k {
            let (x, y) = (self.at(i, l), self.at(i, k));
            self.t[i * w + l] = T::of_f64(cos * x + sin * y);
            self.t[i * w + k] = T::of_f64(cos * y - sin * x);
        }
        if let Some(q) = &mut self.q {
            let (cos, sin) = (T::of_f64(cos), T::of_f64(sin));
            let (x, y) = q[l * w..].split_at_mut(w);
            for (x, y) in x.iter_mut().zip(&mut y[..w]) {
                (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
            }
        }
        let [a, b, c, d] = [self.at(l, l), self.at(l, k), self.at(k, l), self.at(k, k)];
        if b * c < 0.0 && c.abs() > T::EPS * (b.abs() + (a - d).abs()) {
            let middle = (a + d) / 2.0;
            (self.t[l * w + l], self.t[k * w + k]) = (T::of_f64(middle), T::of_f64(middle));
            let im = b.abs().sqrt() * c.abs().sqrt();
            (self.re[l], self.re[k], self.im[l], self.im[k]) = (middle, middle, im, -im);
        } else {
            self.t[k * w + l] = T::default();
            (self.re[l], self.re[k]) = (a, d);
        }
    }

    /// The eigenvectors one after another, real and imaginary parts of the first of a pair.
    pub fn vectors(&self) -> Workspace<T> {
        let (n, w) = (self.n, self.width);
        let mut x = Workspace::full(T::default(), n * w);
        // SAFETY: T and X have `n` rows of `width`.
        unsafe { substitute(&self.t, n, w, &self.re, &self.im, &mut x) };
        let mut v = Workspace::full(T::default(), n * n);
        let Some(q) = &self.q else { return v };
        let (w, one) = (w as isize, T::of_f64(1.0));
        // SAFETY: X and Q have `n` rows of `width`, V has `n` of `n`.
        unsafe {
            let (x, q) = (x.as_ptr(), q.as_ptr());
            gemm(
                n,
                n,
                n,
                one,
                x,
                w,
                1,
                q,
                w,
                1,
                T::default(),
                v.as_mut_ptr(),
                n as isize,
                1,
            );
        }
        v
    }
}

/// The rotation to the normal form of a block of two.
fn normal(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
    if c == 0.0 {
        return (1.0, 0.0);
    }
    if b == 0.0 {
        return (0.0, 1.0);
    }
    let p = 0.5 * (a - d);
    if p == 0.0 && b.signum() != c.signum() {
        return (1.0, 0.0);
    }
    let (most, least) = (b.abs().max(c.abs()), b.abs().min(c.abs()));
    let least = least * b.signum() * c.signum();
    let scale = p.abs().max(most);
    let z = p / scale * p + most / scale * least;
    if z >= 4.0 * f64::EPSILON * scale {
        // Two real values.
        let z = p + (scale.sqrt() * z.sqrt()).copysign(p);
        let r = c.hypot(z);
        return (z / r, c / r);
    }
    // The diagonal is made equal.
    let sigma = b + c;
    let r = sigma.hypot(2.0 * p);
    let cos = (0.5 * (1.0 + sigma.abs() / r)).sqrt();
    let sin = -(p / (r * cos)) * 1f64.copysign(sigma);
    let (aa, bb) = (a * cos + b * sin, b * cos - a * sin);
    let (cc, dd) = (c * cos + d * sin, d * cos - c * sin);
    let (b, c) = (bb * cos + dd * sin, cc * cos - aa * sin);
    if c == 0.0 {
        return (cos, sin);
    }
    if b == 0.0 {
        return (-sin, cos);
    }
    if b.signum() != c.signum() {
        return (cos, sin);
    }
    // Two real values, nearly equal.
    let r = (b + c).abs().sqrt();
    let (c1, s1) = (b.abs().sqrt() / r, c.abs().sqrt() / r);
    (cos * c1 - sin * s1, cos * s1 + sin * c1)
}

/// A reflection of three neighbours (1, b, c): b, c and its factor.
type Step<T> = [T; 3];

/// Steps of a sweep whose columns above them are reflected together.
const LATE: usize = 8;

/// Three rows minus their reflection.
#[inline(always)]
unsafe fn rows<T: Precision>(
    p: *mut T,
    width: usize,
    (from, to): (usize, usize),
    [b, c, f]: Step<T>,
) {
    // SAFETY: three rows of `width` begin at `p`, and the range ends with a vector there.
    unsafe {
        for i in (from..to).step_by(LANES) {
            let at = |r: usize| p.add(r * width + i);
            let (x, y, z): (Lanes<T>, Lanes<T>, Lanes<T>) = (get(at(0)), get(at(1)), get(at(2)));
            let s: Lanes<T> = std::array::from_fn(|l| f * (x[l] + b * y[l] + c * z[l]));
            put(at(0), std::array::from_fn(|l| x[l] - s[l]));
            put(at(1), scale_add(y, -b, s));
            put(at(2), scale_add(z, -c, s));
        }
    }
}

/// Three numbers minus their reflection.
#[inline(always)]
fn three<T: Precision>(x: &mut [T; 3], [b, c, f]: Step<T>) {
    let s = f * (x[0] + b * x[1] + c * x[2]);
    *x = [x[0] - s, x[1] - b * s, x[2] - c * s];
}

/// The last two numbers of a block.
#[inline(always)]
fn two<T: Precision>(x: &mut T, y: &mut T, [b, _, f]: Step<T>) {
    let s = f * (*x + b * *y);
    (*x, *y) = (*x - s, *y - b * s);
}

/// Columns from `k` on of some rows, reflected by one step after another: eight rows at a time, each
/// column of them a vector.
#[inline(always)]
unsafe fn columns<T: Precision>(
    p: *mut T,
    width: usize,
    (top, end): (usize, usize),
    k: usize,
    steps: &[Step<T>],
) {
    let mut r = top;
    // SAFETY: the rows have two columns more than there are steps, from `k` on.
    unsafe {
        while steps.len() == LATE && r + LANES <= end {
            let x = p.add(r * width + k);
            let at = |r: usize, c: usize| x.add(r * width + c);
            let read: [Lanes<T>; LANES] = std::array::from_fn(|r| get(at(r, 0)));
            let mut t = [[T::default(); LANES]; LATE + 2];
            for c in 0..LATE {
                t[c] = std::array::from_fn(|r| read[r][c]);
            }
            for c in LATE..LATE + 2 {
                t[c] = std::array::from_fn(|r| *at(r, c));
            }
            for (j, &[b, c, f]) in steps.iter().enumerate() {
                let [x, y, z] = [t[j], t[j + 1], t[j + 2]];
                let s: Lanes<T> = std::array::from_fn(|l| f * (x[l] + b * y[l] + c * z[l]));
                t[j] = std::array::from_fn(|l| x[l] - s[l]);
                t[j + 1] = scale_add(y, -b, s);
                t[j + 2] = scale_add(z, -c, s);
            }
            for r in 0..LANES {
                put(at(r, 0), std::array::from_fn(|c| t[c][r]));
                (*at(r, LATE), *at(r, LATE + 1)) = (t[LATE][r], t[LATE + 1][r]);
            }
            r += LANES;
        }
        for r in r..end {
            for (j, &step) in steps.iter().enumerate() {
                three(&mut *p.add(r * width + k + j).cast(), step);
            }
        }
    }
}

per_isa! {
    /// A double step from row `m` on in the block from `l` to `i`; with Q, in all of T. Rows above the
    /// last few steps are not read by them: their columns follow together.
    ///
    /// # Safety
    /// T and Q have rows of `width`, a multiple of [`LANES`], up to `i`, or Q none; l <= m <= i - 2.
    unsafe fn sweep[T: Precision](
        t: &mut [T], q: &mut [T], width: usize, block: (usize, usize, usize), first: [f64; 3],
    ) {
        let (l, m, i) = block;
        let (top, right) = match q.is_empty() {
            true => (l, (i + 1).next_multiple_of(LANES)),
            false => (0, width),
        };
        let mut v = first;
        let (mut steps, mut late) = ([[T::default(); 3]; LATE], 0);
        for k in m..i {
            let is_pair = k + 1 == i;
            let left = |r: usize| t[r * width + k - 1].to_f64();
            if k > m {
                v = [left(k), left(k + 1), if is_pair { 0.0 } else { left(k + 2) }];
            }
            let before = if k > 0 { left(k) } else { 0.0 };
            let tail = v[1] * v[1] + v[2] * v[2];
            let (beta, f) = if tail == 0.0 {
                (v[0], 0.0)
            } else {
                let beta = -(v[0] * v[0] + tail).sqrt().copysign(v[0]);
                let scale = 1.0 / (v[0] - beta);
                (v[1], v[2]) = (v[1] * scale, v[2] * scale);
                (beta, (beta - v[0]) / beta)
            };
            let step = [v[1], v[2], f].map(T::of_f64);
            // SAFETY: rows k to k + 2 lie in T and Q; the last pair has no third.
            unsafe {
                let (p, from) = (t.as_mut_ptr(), k / LANES * LANES);
                if is_pair || late == LATE {
                    columns(p, width, (top, k - late), k - late, &steps[..late]);
                    late = 0;
                }
                if is_pair {
                    let (x, y) = t[k * width..].split_at_mut(width);
                    let pairs = x[from..right].iter_mut().zip(&mut y[from..right]);
                    pairs.for_each(|(x, y)| two(x, y, step));
                    for row in t[top * width..(i + 1) * width].chunks_exact_mut(width) {
                        let (x, y) = row.split_at_mut(i);
                        two(&mut x[k], &mut y[0], step);
                    }
                    if !q.is_empty() {
                        let (x, y) = q[k * width..].split_at_mut(width);
                        x.iter_mut().zip(y).for_each(|(x, y)| two(x, y, step));
                    }
                } else {
                    rows(p.add(k * width), width, (from, right), step);
                    for r in k - late..=(k + 3).min(i) {
                        three(&mut *p.add(r * width + k).cast(), step);
                    }
                    (steps[late], late) = (step, late + 1);
                    if !q.is_empty() {
                        rows(q.as_mut_ptr().add(k * width), width, (0, width), step);
                    }
                }
            }
            let mut below = |r: usize, x: f64| t[r * width + k - 1] = T::of_f64(x);
            if k > m {
                below(k, beta);
            } else if m > l {
                // What is beside it is small, and so is what the reflection leaves below.
                below(k, before * (1.0 - f));
            } else {
                continue;
            }
            below(k + 1, 0.0);
            if !is_pair {
                below(k + 2, 0.0);
            }
        }
    }
}

type Complex = (f64, f64);

fn times(x: Complex, y: Complex) -> Complex {
    (x.0 * y.0 - x.1 * y.1, x.0 * y.1 + x.1 * y.0)
}

fn minus(x: Complex, y: Complex) -> Complex {
    (x.0 - y.0, x.1 - y.1)
}

/// x / y, where a divisor below `least` is that.
fn over(x: Complex, y: Complex, least: f64) -> Complex {
    let size = y.0.abs().max(y.1.abs());
    if size < least {
        return (x.0 / least, x.1 / least);
    }
    let y = (y.0 / size, y.1 / size);
    let square = (y.0 * y.0 + y.1 * y.1) * size;
    (
        (x.0 * y.0 + x.1 * y.1) / square,
        (x.1 * y.0 - x.0 * y.1) / square,
    )
}

/// The solution of two equations, by elimination with the larger first element.
fn pair(a: [Complex; 4], b: [Complex; 2], least: f64) -> [Complex; 2] {
    let size = |x: Complex| x.0.abs() + x.1.abs();
    let [p, q, r, s] = a;
    let ([p, q, r, s], [b, c]) = match size(p) >= size(r) {
        true => ([p, q, r, s], b),
        false => ([r, s, p, q], [b[1], b[0]]),
    };
    let f = over(r, p, least);
    let y = over(minus(c, times(f, b)), minus(s, times(f, q)), least);
    [over(minus(b, times(q, y)), p, least), y]
}

per_isa! {
    /// The eigenvectors of T as rows of `x`, zeros at first, by back substitution.
    ///
    /// # Safety
    /// T and X have `n` rows of `width`, a multiple of [`LANES`].
    unsafe fn substitute[T: Precision](
        t: &[T], n: usize, width: usize, re: &[f64], im: &[f64], x: &mut [T],
    ) {
        let at = |i: usize, j: usize| t[i * width + j].to_f64();
        let norm = t.iter().fold(0.0, |m: f64, t| m.max(t.to_f64().abs()));
        let (eps, tiny) = (T::EPS, T::TINY.to_f64());
        let least = (eps * norm).max(tiny / eps);
        // A defective matrix would bring vectors beyond all numbers.
        let bound = tiny.powf(-0.5).min(1e100);
        let mut j = 0;
        while j < n {
            let double = im[j] != 0.0 && j + 1 < n;
            let value = (re[j], if double { im[j] } else { 0.0 });
            let (first, second) = x[j * width..].split_at_mut(width);
            let none = &mut [][..];
            let second = if double { &mut second[..width] } else { none };
            let mut end = j;
            if double {
                let (b, c) = (at(j, j + 1), at(j + 1, j));
                let (p, q) = match b.abs() >= c.abs() {
                    true => (1.0, im[j] / b),
                    false => (-im[j] / c, 1.0),
                };
                (first[j], second[j + 1]) = (T::of_f64(p), T::of_f64(q));
                end = j + 1;
            } else {
                first[j] = T::of_f64(1.0);
            }
            let mut r = j;
            while r > 0 {
                let block = if r > 1 && at(r - 1, r - 2) != 0.0 { 2 } else { 1 };
                r -= block;
                let mut sums = [(0.0, 0.0); 2];
                for (b, s) in sums[..block].iter_mut().enumerate() {
                    let row = &t[(r + b) * width..][..width];
                    let (from, to) = ((r + block) / LANES * LANES, (end + 1).next_multiple_of(LANES));
                    let (mut p, mut q) = ([T::default(); LANES], [T::default(); LANES]);
                    // SAFETY: rows are of `width`; X is zero where it is not found yet.
                    unsafe {
                        for c in (from..to).step_by(LANES) {
                            let row = get(row.as_ptr().add(c));
                            p = add(p, row, get(first.as_ptr().add(c)));
                            if double {
                                q = add(q, row, get(second.as_ptr().add(c)));
                            }
                        }
                    }
                    *s = (-sum(p).to_f64(), -sum(q).to_f64());
                }
                let shifted = |i: usize| minus((at(i, i), 0.0), value);
                let found = match block {
                    1 => [over(sums[0], shifted(r), least), (0.0, 0.0)],
                    _ => {
                        let (b, c) = ((at(r, r + 1), 0.0), (at(r + 1, r), 0.0));
                        pair([shifted(r), b, c, shifted(r + 1)], sums, least)
                    }
                };
                let mut most = 0.0f64;
                for (b, &(p, q)) in found[..block].iter().enumerate() {
                    first[r + b] = T::of_f64(p);
                    if double {
                        second[r + b] = T::of_f64(q);
                    }
                    most = most.max(p.abs()).max(q.abs());
                }
                if most > bound {
                    for x in first[r..=end].iter_mut().chain(second.iter_mut()) {
                        *x = T::of_f64(x.to_f64() / most);
                    }
                }
            }
            j = end + 1;
        }
    }
}

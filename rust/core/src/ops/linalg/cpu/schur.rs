//! Eigenvalues and eigenvectors of matrices that fit the caches: Hessenberg's form and Francis' double
//! steps, in float64 for all types. Rows are padded to whole vectors, and Q is kept as its columns, so
//! that all but three numbers of each row are reflected in vectors.

use super::hessenberg::hessenberg;
use super::lanes::{add, get, put, scale_add, sum, width, Lanes, LANES};
use super::tridiagonal;
use crate::alloc::full;
use crate::cpu::gemm::gemm;
use crate::per_isa;

/// A = Q T Q', T with blocks of one or two on the diagonal.
pub struct Schur {
    n: usize,
    width: usize,
    t: Vec<f64>,
    /// The columns of Q, where vectors are wanted.
    q: Option<Vec<f64>>,
    /// What the numbers are known to, relative: below that they are rounding.
    eps: f64,
    pub re: Vec<f64>,
    pub im: Vec<f64>,
}

impl Schur {
    /// `None` where it does not converge.
    pub fn new(a: impl Iterator<Item = f64>, n: usize, vectors: bool, eps: f64) -> Option<Self> {
        let width = width(n);
        let mut t = full(0.0, n * width);
        let mut a = a;
        for row in t.chunks_exact_mut(width) {
            for (to, x) in row[..n].iter_mut().zip(&mut a) {
                *to = x;
            }
        }
        let mut q = vectors.then(|| full(0.0, n * width));
        let mut reflectors = full(0.0, if vectors { n * width } else { 0 });
        let mut tau = full(0.0, n);
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
        self.t[i * self.width + j]
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
            if beside <= f64::MIN_POSITIVE {
                break;
            }
            if beside <= self.eps * near {
                let above = h(k - 1, k);
                let (ab, ba) = (beside.max(above), beside.min(above));
                let gap = (self.at(k - 1, k - 1) - self.at(k, k)).abs();
                let (aa, bb) = (h(k, k).max(gap), h(k, k).min(gap));
                let s = aa + ab;
                if ba * (ab / s) <= self.eps * (bb * (aa / s)) + f64::MIN_POSITIVE {
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
                self.t[l * self.width + l - 1] = 0.0;
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
            if left <= f64::EPSILON * v[0].abs() * around {
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
            let (x, y) = (self.t[l * w + j], self.t[k * w + j]);
            self.t[l * w + j] = cos * x + sin * y;
            self.t[k * w + j] = cos * y - sin * x;
        }
        for i in 0..=k {
            let (x, y) = (self.t[i * w + l], self.t[i * w + k]);
            self.t[i * w + l] = cos * x + sin * y;
            self.t[i * w + k] = cos * y - sin * x;
        }
        if let Some(q) = &mut self.q {
            let (x, y) = q[l * w..].split_at_mut(w);
            for (x, y) in x.iter_mut().zip(&mut y[..w]) {
                (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
            }
        }
        let [a, b, c, d] = [self.at(l, l), self.at(l, k), self.at(k, l), self.at(k, k)];
        if b * c < 0.0 && c.abs() > f64::EPSILON * (b.abs() + (a - d).abs()) {
            let middle = (a + d) / 2.0;
            (self.t[l * w + l], self.t[k * w + k]) = (middle, middle);
            let im = b.abs().sqrt() * c.abs().sqrt();
            (self.re[l], self.re[k], self.im[l], self.im[k]) = (middle, middle, im, -im);
        } else {
            self.t[k * w + l] = 0.0;
            (self.re[l], self.re[k]) = (a, d);
        }
    }

    /// The eigenvectors one after another, real and imaginary parts of the first of a pair.
    pub fn vectors(&self) -> Vec<f64> {
        let (n, w) = (self.n, self.width);
        let mut x = full(0.0, n * w);
        // SAFETY: T and X have `n` rows of `width`.
        unsafe { substitute(&self.t, n, w, &self.re, &self.im, &mut x) };
        let mut v = full(0.0, n * n);
        let Some(q) = &self.q else { return v };
        let (w, one) = (w as isize, 1.0);
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
                0.0,
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

/// Three rows minus their reflection.
#[inline(always)]
unsafe fn reflect(p: *mut f64, width: usize, (from, to): (usize, usize), v: [f64; 2], f: f64) {
    // SAFETY: three rows of `width` begin at `p`, and the range ends with a vector there.
    unsafe {
        for c in (from..to).step_by(LANES) {
            let at = |r: usize| p.add(r * width + c);
            let (x, y, z): (Lanes<f64>, Lanes<f64>, Lanes<f64>) =
                (get(at(0)), get(at(1)), get(at(2)));
            let s: Lanes<f64> = std::array::from_fn(|l| f * (x[l] + v[0] * y[l] + v[1] * z[l]));
            put(at(0), std::array::from_fn(|l| x[l] - s[l]));
            put(at(1), scale_add(y, -v[0], s));
            put(at(2), scale_add(z, -v[1], s));
        }
    }
}

per_isa! {
    /// A double step from row `m` on in the block from `l` to `i`; with Q, in all of T.
    ///
    /// # Safety
    /// T and Q have rows of `width`, a multiple of [`LANES`], up to `i`, or Q none; l <= m <= i - 2.
    unsafe fn sweep[](
        t: &mut [f64], q: &mut [f64], width: usize, block: (usize, usize, usize), first: [f64; 3],
    ) {
        let (l, m, i) = block;
        let (top, right) = match q.is_empty() {
            true => (l, (i + 1).next_multiple_of(LANES)),
            false => (0, width),
        };
        let mut v = first;
        for k in m..i {
            let two = k + 1 == i;
            if k > m {
                v = [t[k * width + k - 1], t[(k + 1) * width + k - 1], 0.0];
                if !two {
                    v[2] = t[(k + 2) * width + k - 1];
                }
            }
            let before = if k > 0 { t[k * width + k - 1] } else { 0.0 };
            let tail = v[1] * v[1] + v[2] * v[2];
            let (beta, f) = if tail == 0.0 {
                (v[0], 0.0)
            } else {
                let beta = -(v[0] * v[0] + tail).sqrt().copysign(v[0]);
                let scale = 1.0 / (v[0] - beta);
                (v[1], v[2]) = (v[1] * scale, v[2] * scale);
                (beta, (beta - v[0]) / beta)
            };
            let last = (k + 3).min(i);
            // SAFETY: rows k to k + 2 lie in T and Q; the last pair has no third.
            unsafe {
                let from = k / LANES * LANES;
                let p = t.as_mut_ptr();
                if two {
                    for c in from..right {
                        let (x, y) = (p.add(k * width + c), p.add((k + 1) * width + c));
                        let s = f * (*x + v[1] * *y);
                        (*x, *y) = (*x - s, *y - v[1] * s);
                    }
                } else {
                    reflect(p.add(k * width), width, (from, right), [v[1], v[2]], f);
                }
                for r in top..=last {
                    let x = p.add(r * width + k);
                    let (a, b) = (*x, *x.add(1));
                    if two {
                        let s = f * (a + v[1] * b);
                        (*x, *x.add(1)) = (a - s, b - v[1] * s);
                    } else {
                        let c = *x.add(2);
                        let s = f * (a + v[1] * b + v[2] * c);
                        (*x, *x.add(1), *x.add(2)) = (a - s, b - v[1] * s, c - v[2] * s);
                    }
                }
                if !q.is_empty() {
                    let p = q.as_mut_ptr().add(k * width);
                    if two {
                        for c in 0..width {
                            let (x, y) = (p.add(c), p.add(width + c));
                            let s = f * (*x + v[1] * *y);
                            (*x, *y) = (*x - s, *y - v[1] * s);
                        }
                    } else {
                        reflect(p, width, (0, width), [v[1], v[2]], f);
                    }
                }
            }
            if k > m {
                t[k * width + k - 1] = beta;
                t[(k + 1) * width + k - 1] = 0.0;
                if !two {
                    t[(k + 2) * width + k - 1] = 0.0;
                }
            } else if m > l {
                // What is beside it is small, and so is what the reflection leaves below.
                t[k * width + k - 1] = before * (1.0 - f);
                t[(k + 1) * width + k - 1] = 0.0;
                t[(k + 2) * width + k - 1] = 0.0;
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
    unsafe fn substitute[](
        t: &[f64], n: usize, width: usize, re: &[f64], im: &[f64], x: &mut [f64],
    ) {
        let at = |i: usize, j: usize| t[i * width + j];
        let norm = t.iter().fold(0.0, |m: f64, t| m.max(t.abs()));
        let least = (f64::EPSILON * norm).max(f64::MIN_POSITIVE / f64::EPSILON);
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
                (first[j], second[j + 1]) = match b.abs() >= c.abs() {
                    true => (1.0, im[j] / b),
                    false => (-im[j] / c, 1.0),
                };
                end = j + 1;
            } else {
                first[j] = 1.0;
            }
            let mut r = j;
            while r > 0 {
                let block = if r > 1 && at(r - 1, r - 2) != 0.0 { 2 } else { 1 };
                r -= block;
                let mut sums = [(0.0, 0.0); 2];
                for (b, s) in sums[..block].iter_mut().enumerate() {
                    let row = &t[(r + b) * width..][..width];
                    let (from, to) = ((r + block) / LANES * LANES, (end + 1).next_multiple_of(LANES));
                    let (mut p, mut q) = ([0.0; LANES], [0.0; LANES]);
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
                    *s = (-sum(p), -sum(q));
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
                    first[r + b] = p;
                    if double {
                        second[r + b] = q;
                    }
                    most = most.max(p.abs()).max(q.abs());
                }
                // A defective matrix would bring it beyond all numbers.
                if most > 1e100 {
                    for x in first[r..=end].iter_mut().chain(second.iter_mut()) {
                        *x /= most;
                    }
                }
            }
            j = end + 1;
        }
    }
}

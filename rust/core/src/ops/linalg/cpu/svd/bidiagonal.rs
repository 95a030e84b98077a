//! Square matrices brought to two diagonals by reflections from both sides: C = U B V', where the
//! columns of C are the lines of memory. A line is padded with zeros to whole vectors.

use super::super::lanes::{add, get, put, scale_add, sum, width, Lanes, LANES};
use super::super::{plain, Precision};
use super::reflectors::Reflectors;
use crate::alloc::{full, Workspace};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::per_isa;

/// Lines that are one task, and how many there must be to share them out. The parts of a sum are
/// those of the tasks, whoever does them.
const LINES: usize = 64;
const SHARED: usize = 256;

/// The two diagonals, and the reflectors that make U (`along` a line) and V (`across` lines).
pub struct Bidiagonal<T> {
    pub along: Reflectors<T>,
    pub across: Reflectors<T>,
    /// The diagonal of B, and what is right of it.
    pub d: Vec<f64>,
    pub e: Vec<f64>,
}

/// What a step leaves to the pass of the next: the matrix is to change by - u w' - z v'.
struct Change<'a, T> {
    u: &'a [T],
    z: &'a [T],
    w: &'a [T],
    v: &'a [T],
}

/// The reflector of a vector, and its first element afterwards.
#[inline(always)]
fn reflector<T: Precision>(x: &mut [T]) -> (f64, T) {
    match plain::reflector(x) {
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

impl<T: Precision> Bidiagonal<T> {
    /// Of the matrix whose columns are the `n` rows of `a`.
    pub fn new(a: &[T], n: usize) -> Self {
        let (width, zero) = (width(n), T::default());
        let mut lines = Workspace::full(zero, n * width);
        for (to, from) in lines.chunks_exact_mut(width).zip(a.chunks_exact(n)) {
            to[..n].copy_from_slice(from);
        }
        let mut across = Workspace::full(zero, n * width);
        let [mut tau, mut sigma] = [full(zero, n), full(zero, n)];
        let [mut d, mut e] = [full(0.0, n), full(0.0, n)];
        let line = || full(zero, width);
        let [mut u, mut z, mut w, mut x, mut r] = [line(), line(), line(), line(), line()];
        let mut sums = Workspace::full(zero, n.div_ceil(LINES) * width);
        for k in 0..n {
            let (head, tail) = lines.split_at_mut((k + 1) * width);
            let row = &mut head[k * width..];
            // Row k - 1 of `across` is the last reflector.
            let v = &across[k.saturating_sub(1) * width..][..width];
            for ((a, &u), &z) in row[k..n].iter_mut().zip(&u[k..]).zip(&z[k..]) {
                *a = *a - (w[k] * u + v[k] * z);
            }
            row[..k].fill(zero);
            (d[k], tau[k]) = reflector(&mut row[k..n]);
            if k + 1 == n {
                break;
            }
            let row = &*row;
            let change = Change {
                u: &u,
                z: &z,
                w: &w,
                v,
            };
            let each = if n - k >= SHARED { LINES } else { n };
            let tasks = (k + 1) / each..n.div_ceil(each);
            let [to_x, to_r, to_sums, rest] =
                [&mut x[..], &mut r, &mut sums, tail].map(|x| Ptr::new(x.as_mut_ptr()));
            let factor = tau[k];
            parallel_for(tasks.len(), 1, |range| {
                for t in range.start + tasks.start..range.end + tasks.start {
                    let lines = (t * each).max(k + 1)..((t + 1) * each).min(n);
                    // SAFETY: each task has a row of sums, lines after line k, and their places in
                    // the vectors across; lines are as wide as vectors.
                    unsafe {
                        let a = (lines.start - k - 1) * width..(lines.end - k - 1) * width;
                        let given = (to_x.part(lines.clone()), to_r.part(lines.clone()));
                        let sums = to_sums.part(t * width..(t + 1) * width);
                        pass(
                            rest.part(a),
                            &change,
                            row,
                            k,
                            lines.start,
                            factor,
                            given,
                            sums,
                        );
                    }
                }
            });
            let (sums, more) = sums[tasks.start * width..tasks.end * width].split_at_mut(width);
            for part in more.chunks_exact(width) {
                for (s, &p) in sums.iter_mut().zip(part) {
                    *s = *s + p;
                }
            }
            // The reflector across is r less beta in its first place, and so is its product.
            let first = r[k + 1];
            let v = &mut across[k * width..][..width];
            v[k + 1..n].copy_from_slice(&r[k + 1..n]);
            (e[k], sigma[k]) = reflector(&mut v[k + 1..n]);
            if sigma[k] != zero && e[k].abs() * T::EPS < T::TINY.to_f64() {
                // It has no reciprocal, and is nothing beside the largest element.
                v.fill(zero);
                (e[k], sigma[k]) = (0.0, zero);
            }
            if sigma[k] == zero {
                z.fill(zero);
            } else {
                let beta = T::of_f64(e[k]);
                let scale = T::of_f64(1.0) / (first - beta);
                let dot = product(&x[k + 1..n], &v[k + 1..n]);
                let [f, g] = [sigma[k] * scale, sigma[k] * factor * dot];
                let beside = &tail[..width];
                for i in k + 1..n {
                    z[i] = f * (sums[i] - beta * beside[i]) - g * row[i];
                }
            }
            z[..=k].fill(zero);
            u.copy_from_slice(row);
            u[k] = zero;
            for (w, &x) in w[k + 1..n].iter_mut().zip(&x[k + 1..n]) {
                *w = factor * x;
            }
        }
        Bidiagonal {
            along: Reflectors {
                rows: lines,
                tau,
                width,
                offset: 0,
            },
            across: Reflectors {
                rows: across,
                tau: sigma,
                width,
                offset: 1,
            },
            d,
            e,
        }
    }
}

/// The product of two vectors.
fn product<T: Precision>(x: &[T], y: &[T]) -> T {
    let zero = T::default();
    let (mut sums, (xs, ys)) = (
        [zero; LANES],
        (x.chunks_exact(LANES), y.chunks_exact(LANES)),
    );
    let rest = xs.remainder().iter().zip(ys.remainder());
    let rest = rest.fold(zero, |s, (&x, &y)| s + x * y);
    for (x, y) in xs.zip(ys) {
        for l in 0..LANES {
            sums[l] = sums[l] + x[l] * y[l];
        }
    }
    sum(sums) + rest
}

/// Changes R lines, multiplies them by the reflector `next` and adds them, times the row of the
/// matrix that the reflection gives, to `sums`; gives the products and that row.
#[inline(always)]
unsafe fn four<T: Precision, const R: usize>(
    a: *mut T,
    (from, width, k): (usize, usize, usize),
    (u, z, next): (*const T, *const T, *const T),
    (w, v): ([T; R], [T; R]),
    tau: T,
    sums: *mut T,
) -> ([T; R], [T; R]) {
    let mut dots = [[T::default(); LANES]; R];
    // SAFETY: R lines of `width` elements begin at `a`, and the vectors have as many.
    unsafe {
        let mut c = from;
        while c < width {
            let (uc, zc, nc): (Lanes<T>, Lanes<T>, Lanes<T>) =
                (get(u.add(c)), get(z.add(c)), get(next.add(c)));
            for r in 0..R {
                let p = a.add(r * width + c);
                let line = scale_add(scale_add(get(p), -w[r], uc), -v[r], zc);
                put(p, line);
                dots[r] = add(dots[r], line, nc);
            }
            c += LANES;
        }
        let x: [T; R] = std::array::from_fn(|r| sum(dots[r]));
        let f: [T; R] = std::array::from_fn(|r| *a.add(r * width + k) - tau * x[r]);
        c = from;
        while c < width {
            let mut s: Lanes<T> = get(sums.add(c));
            for r in 0..R {
                s = scale_add(s, f[r], get(a.add(r * width + c)));
            }
            put(sums.add(c), s);
            c += LANES;
        }
        (x, f)
    }
}

per_isa! {
    /// One pass over lines from `first` on, which does all that step `k` needs: Howell, Demmel,
    /// Fulton, Hammarling and Marmol 2008, ACM TOMS 34(3), article 14.
    ///
    /// # Safety
    /// All are as wide as `next`, a multiple of [`LANES`]; `to` has an element for each line.
    unsafe fn pass[T: Precision](
        a: &mut [T], change: &Change<'_, T>, next: &[T], k: usize, first: usize, tau: T,
        to: (&mut [T], &mut [T]), sums: &mut [T],
    ) {
        let (width, from, count) = (next.len(), k / LANES * LANES, to.0.len());
        let given = (change.u.as_ptr(), change.z.as_ptr(), next.as_ptr());
        let (a, of) = (a.as_mut_ptr(), (from, width, k));
        sums[from..].fill(T::default());
        let sums = sums.as_mut_ptr();
        let (w, v) = (&change.w[first..][..count], &change.v[first..][..count]);
        let mut i = 0;
        // SAFETY: there are `count` lines of `width`.
        unsafe {
            while i + 4 <= count {
                let by = (std::array::from_fn(|r| w[i + r]), std::array::from_fn(|r| v[i + r]));
                let (x, r) = four::<T, 4>(a.add(i * width), of, given, by, tau, sums);
                to.0[i..i + 4].copy_from_slice(&x);
                to.1[i..i + 4].copy_from_slice(&r);
                i += 4;
            }
            while i < count {
                let (x, r) = four::<T, 1>(a.add(i * width), of, given, ([w[i]], [v[i]]), tau, sums);
                (to.0[i], to.1[i]) = (x[0], r[0]);
                i += 1;
            }
        }
    }
}

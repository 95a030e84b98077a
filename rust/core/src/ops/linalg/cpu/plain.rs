//! Factorisations by plain loops: for matrices that are too small to be worth blocks, and for
//! those with zeros, NaN or infinities where blocks would not tell which pivot failed.

use super::small;
use super::Precision;

/// The size up to which plain loops are quicker.
pub const SMALL: usize = 16;

/// Row `i` minus `f` times row `k`, from column `from` on.
#[inline(always)]
fn subtract<T: Precision>(x: &mut [T], n: usize, i: usize, k: usize, f: T, from: usize) {
    let (a, b) = x.split_at_mut(i.max(k) * n);
    let lo = &mut a[i.min(k) * n + from..i.min(k) * n + n];
    let hi = &mut b[from..n];
    let (to, of) = if i < k { (lo, &*hi) } else { (hi, &*lo) };
    for (t, &o) in to.iter_mut().zip(of) {
        *t = *t - f * o;
    }
}

fn swap_rows<T: Copy>(x: &mut [T], n: usize, i: usize, k: usize) {
    if i != k {
        let (a, b) = x.split_at_mut(i.max(k) * n);
        a[i.min(k) * n..][..n].swap_with_slice(&mut b[..n]);
    }
}

/// Gaussian elimination of `m` rows of `n` in place: multipliers below the diagonal, U on and
/// above it, and in `pivots` the row that was exchanged with each.
pub fn lu<T: Precision>(x: &mut [T], m: usize, n: usize, pivot: bool, pivots: &mut Vec<usize>) {
    pivots.clear();
    if m.min(n) > 0 && m.max(n) <= small::MOST {
        // SAFETY: all sizes are at most MOST.
        return unsafe { small::lu(x, m, n, pivot, pivots) };
    }
    for j in 0..m.min(n) {
        let mut p = j;
        if pivot {
            for i in j + 1..m {
                if x[i * n + j].abs() > x[p * n + j].abs() {
                    p = i;
                }
            }
        }
        pivots.push(p);
        swap_rows(x, n, j, p);
        let d = x[j * n + j];
        if d == T::default() {
            continue;
        }
        for i in j + 1..m {
            let f = x[i * n + j] / d;
            x[i * n + j] = f;
            if f != T::default() {
                subtract(x, n, i, j, f, j + 1);
            }
        }
    }
}

/// Overwrites the `k` columns of B with the solution of T X = B for a triangle of A, whose
/// diagonal is taken as ones where `unit`.
pub fn triangular<T: Precision>(a: &[T], n: usize, b: &mut [T], k: usize, upper: bool, unit: bool) {
    if k > 0 && n.max(k) <= small::MOST {
        // SAFETY: all sizes are at most MOST.
        return unsafe { small::triangular(a, n, b, k, upper, unit) };
    }
    for s in 0..n {
        let i = if upper { n - 1 - s } else { s };
        if !unit {
            let d = a[i * n + i];
            for v in &mut b[i * k..(i + 1) * k] {
                *v = *v / d;
            }
        }
        for r in if upper { 0..i } else { i + 1..n } {
            subtract(b, k, r, i, a[r * n + i], 0);
        }
    }
}

/// Writes the lower Cholesky factor to `l`, zeros at first; gives the order of the first leading
/// minor that is not positive, or 0.
pub fn cholesky<T: Precision>(a: &[T], n: usize, l: &mut [T]) -> i32 {
    if n > 0 && n <= small::MOST {
        // SAFETY: all sizes are at most MOST.
        return unsafe { small::cholesky(a, n, l) };
    }
    for j in 0..n {
        for i in j..n {
            let mut v = a[i * n + j];
            for (&p, &q) in l[i * n..i * n + j].iter().zip(&l[j * n..j * n + j]) {
                v = v - p * q;
            }
            if i > j {
                l[i * n + j] = v / l[j * n + j];
            } else if v > T::default() {
                l[j * n + j] = v.root();
            } else {
                // NaN, too.
                return j as i32 + 1;
            }
        }
    }
    0
}

/// Makes of a column the reflector that leaves only its first element, not zero: that element
/// and the factor of the reflector. `None` where there is nothing to reflect.
#[inline(always)]
pub fn reflector<T: Precision>(x: &mut [T]) -> Option<(T, T)> {
    let alpha = x[0].to_f64();
    let tail = x[1..]
        .iter()
        .fold(0.0f64, |s, v| s + v.to_f64() * v.to_f64());
    let norm = (tail + alpha * alpha).sqrt();
    // Squares may leave the range of numbers, and so may the reciprocal of what is small.
    if !(tail > 1e-280 && norm < 1e150 && norm * T::EPS >= T::TINY.to_f64()) {
        return far_reflector(x);
    }
    let norm = T::of_f64(norm);
    let beta = if alpha.is_sign_negative() {
        norm
    } else {
        -norm
    };
    let tau = (beta - x[0]) / beta;
    let scale = T::of_f64(1.0) / (x[0] - beta);
    for v in &mut x[1..] {
        *v = *v * scale;
    }
    Some((beta, tau))
}

/// [`reflector`] of a column that is small, large or not finite.
#[cold]
fn far_reflector<T: Precision>(x: &mut [T]) -> Option<(T, T)> {
    let tail = x[1..].iter().map(|v| v.to_f64().abs());
    let most = tail.fold(0.0f64, |s, v| if v > s || v.is_nan() { v } else { s });
    if most == 0.0 {
        return None;
    }
    let most = x[0].to_f64().abs().max(most);
    // A power of two that makes squares harmless; the reflector does not depend on it.
    let unit = 2f64.powi(if most < 1.0 { 600 } else { -600 });
    let alpha = x[0].to_f64() * unit;
    let norm = x[1..]
        .iter()
        .map(|v| v.to_f64() * unit)
        .fold(alpha * alpha, |s, v| s + v * v)
        .sqrt();
    let beta = -norm.copysign(alpha);
    for v in &mut x[1..] {
        *v = T::of_f64(v.to_f64() * unit / (alpha - beta));
    }
    Some((T::of_f64(beta / unit), T::of_f64((beta - alpha) / beta)))
}

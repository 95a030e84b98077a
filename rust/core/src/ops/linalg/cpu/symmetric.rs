//! L D L' of symmetric matrices, or L D L* of Hermitian ones, that need not be definite, with blocks of one or
//! two in D: Bunch and Kaufman 1977, Mathematics of Computation 31, 163-179. Packed as LAPACK's `sytrf` and
//! `hetrf` have it.

use super::field::Entry;
use crate::cpu::elements::Element;
use crate::cpu::simd::Lane;

/// (1 + sqrt(17)) / 8: from what share of the largest element on a pivot may be.
const SHARE: f64 = 0.640_388_203_202_208;

/// The conjugate where the matrix is Hermitian, whose other triangle holds those.
fn conjugated<T: Entry>(x: T, hermitian: bool) -> T {
    match hermitian {
        true => x.conj(),
        false => x,
    }
}

/// An element of the diagonal, of which a Hermitian matrix has real ones.
fn own<T: Entry>(x: T, hermitian: bool) -> T {
    match hermitian {
        true => T::of(x.re()),
        false => x,
    }
}

/// Exchanges rows and columns `i` < `j` of the part below and right of `i`.
fn exchange<T: Entry>(a: &mut [T], n: usize, i: usize, j: usize, hermitian: bool) {
    let conjugated = |x| conjugated(x, hermitian);
    for k in j + 1..n {
        a.swap(k * n + i, k * n + j);
    }
    for k in i + 1..j {
        let (below, right) = (conjugated(a[k * n + i]), conjugated(a[j * n + k]));
        (a[k * n + i], a[j * n + k]) = (right, below);
    }
    a[j * n + i] = conjugated(a[j * n + i]);
    a.swap(i * n + i, j * n + j);
}

/// Which row becomes pivot `k`, and whether with `k` it makes a block of two; none where the column
/// is zero.
fn choose<T: Entry>(a: &[T], n: usize, k: usize, hermitian: bool) -> Option<(usize, bool)> {
    let size = |i: usize, j: usize| a[i * n + j].size().to_f64();
    let diagonal = |i: usize| own(a[i * n + i], hermitian).size().to_f64();
    let first = diagonal(k);
    let (mut at, mut most) = (k, 0.0);
    for i in k + 1..n {
        if size(i, k) > most {
            (at, most) = (i, size(i, k));
        }
    }
    if first.max(most) == 0.0 {
        return None;
    }
    if first >= SHARE * most {
        return Some((k, false));
    }
    let row = (k..at).map(|j| size(at, j));
    let others = row.chain((at + 1..n).map(|i| size(i, at)));
    let beside = others.fold(0.0, f64::max);
    if first * beside >= SHARE * most * most {
        return Some((k, false));
    }
    Some((at, diagonal(at) < SHARE * beside))
}

/// The row `[u, v]` whose product with the block of two at `k` in D is `[x, y]`, for any `x` and `y`.
fn divide<T: Entry>(a: &[T], n: usize, k: usize, hermitian: bool) -> impl Fn(T, T) -> (T, T) {
    let (first, off, last) = (a[k * n + k], a[(k + 1) * n + k], a[(k + 1) * n + k + 1]);
    let one = T::of(Lane::UNIT);
    // The magnitude of what is beside the diagonal, or for a symmetric matrix that number itself.
    let unit = match hermitian {
        true => T::of(T::Part::of_f64(off.squared().sqrt())),
        false => off,
    };
    let (d, e, turn) = (last.over(unit), first.over(unit), off.over(unit));
    let scale = one.over(d * e - one).over(unit);
    move |x, y| match hermitian {
        true => (
            scale * (d * x - turn * y),
            scale * (e * y - turn.conj() * x),
        ),
        false => (scale * (d * x - y), scale * (e * y - x)),
    }
}

/// Packs L and D of the lower triangle of `a` in place, with the exchanged rows, counted from 1 and
/// negative in blocks of two; returns 1 + the first zero block, or 0.
pub fn ldl<T: Entry>(a: &mut [T], n: usize, pivots: &mut [i32], hermitian: bool) -> i32 {
    let (mut info, mut k) = (0, 0);
    for i in 0..n {
        a[i * n + i] = own(a[i * n + i], hermitian);
        a[i * n + i + 1..(i + 1) * n].fill(T::default());
    }
    while k < n {
        let Some((row, pair)) = choose(a, n, k, hermitian) else {
            pivots[k] = k as i32 + 1;
            info = if info == 0 { k as i32 + 1 } else { info };
            k += 1;
            continue;
        };
        let last = k + pair as usize;
        if row != last {
            exchange(a, n, last, row, hermitian);
            if pair {
                a.swap(last * n + k, row * n + k);
            }
        }
        if pair {
            (pivots[k], pivots[last]) = (-(row as i32) - 1, -(row as i32) - 1);
            let divided = divide(a, n, k, hermitian);
            for j in last + 1..n {
                let (u, v) = divided(a[j * n + k], a[j * n + last]);
                let (p, q) = (conjugated(u, hermitian), conjugated(v, hermitian));
                for i in j..n {
                    let change = a[i * n + k] * p + a[i * n + last] * q;
                    a[i * n + j] = a[i * n + j] - change;
                }
                (a[j * n + k], a[j * n + last]) = (u, v);
                a[j * n + j] = own(a[j * n + j], hermitian);
            }
        } else {
            pivots[k] = row as i32 + 1;
            let d = a[k * n + k];
            for j in k + 1..n {
                let u = a[j * n + k].over(d);
                let p = conjugated(u, hermitian);
                for i in j..n {
                    a[i * n + j] = a[i * n + j] - a[i * n + k] * p;
                }
                a[j * n + k] = u;
                a[j * n + j] = own(a[j * n + j], hermitian);
            }
        }
        k = last + 1;
    }
    info
}

/// Overwrites the rows of `b` with the solution of A X = B; rows of `a` are those of [`ldl`] with the
/// pivot behind.
pub fn solve<T: Entry>(a: &[T], n: usize, b: &mut [T], width: usize, hermitian: bool) {
    let at = |i: usize, j: usize| a[i * (n + 1) + j];
    let pivot = |i: usize| at(i, n).re().to_f64();
    let row = |i: usize| pivot(i).abs() as usize - 1;
    let diagonal = |i: usize| own(at(i, i), hermitian);
    for c in 0..width {
        let mut x: Vec<T> = crate::alloc::gathered((0..n).map(|i| b[i * width + c]));
        let mut k = 0;
        while k < n {
            if pivot(k) > 0.0 {
                x.swap(k, row(k));
                for i in k + 1..n {
                    x[i] = x[i] - at(i, k) * x[k];
                }
                x[k] = x[k].over(diagonal(k));
                k += 1;
                continue;
            }
            let next = k + 1;
            x.swap(next, row(k));
            for i in k + 2..n {
                x[i] = x[i] - at(i, k) * x[k] - at(i, next) * x[next];
            }
            let off = at(next, k);
            let above = conjugated(off, hermitian);
            let (d, e) = (diagonal(next).over(off), diagonal(k).over(above));
            let (u, v) = (x[k].over(above), x[next].over(off));
            let scale = d * e - T::of(Lane::UNIT);
            (x[k], x[next]) = ((d * u - v).over(scale), (e * v - u).over(scale));
            k += 2;
        }
        while k > 0 {
            let last = k - 1;
            let first = if pivot(last) > 0.0 { last } else { last - 1 };
            for j in first..k {
                x[j] = (k..n).fold(x[j], |sum, i| sum - conjugated(at(i, j), hermitian) * x[i]);
            }
            x.swap(last, row(last));
            k = first;
        }
        for (i, x) in x.into_iter().enumerate() {
            b[i * width + c] = x;
        }
    }
}

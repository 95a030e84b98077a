//! L D L' of symmetric matrices that need not be definite, with blocks of one or two in D: Bunch and
//! Kaufman 1977, Mathematics of Computation 31, 163-179. Packed as LAPACK's `sytrf` has it.

use super::Number;

/// (1 + sqrt(17)) / 8: from what share of the largest element on a pivot may be.
const SHARE: f64 = 0.640_388_203_202_208;

/// Exchanges rows and columns `i` < `j` of the part below and right of `i`.
fn exchange<T: Number>(a: &mut [T], n: usize, i: usize, j: usize) {
    for k in j + 1..n {
        a.swap(k * n + i, k * n + j);
    }
    for k in i + 1..j {
        a.swap(k * n + i, j * n + k);
    }
    a.swap(i * n + i, j * n + j);
}

/// Which row becomes pivot `k`, and whether with `k` it makes a block of two; none where the column
/// is zero.
fn choose<T: Number>(a: &[T], n: usize, k: usize) -> Option<(usize, bool)> {
    let size = |i: usize, j: usize| a[i * n + j].to_f64().abs();
    let own = size(k, k);
    let (mut at, mut most) = (k, 0.0);
    for i in k + 1..n {
        if size(i, k) > most {
            (at, most) = (i, size(i, k));
        }
    }
    if own.max(most) == 0.0 {
        return None;
    }
    if own >= SHARE * most {
        return Some((k, false));
    }
    let row = (k..at).map(|j| size(at, j));
    let others = row.chain((at + 1..n).map(|i| size(i, at)));
    let beside = others.fold(0.0, f64::max);
    if own * beside >= SHARE * most * most {
        return Some((k, false));
    }
    Some((at, size(at, at) < SHARE * beside))
}

/// Packs L and D of the lower triangle of `a` in place, with the exchanged rows, counted from 1 and
/// negative in blocks of two; returns 1 + the first zero block, or 0.
pub fn ldl<T: Number>(a: &mut [T], n: usize, pivots: &mut [i32]) -> i32 {
    let (one, mut info, mut k) = (T::of_f64(1.0), 0, 0);
    for i in 0..n {
        a[i * n + i + 1..(i + 1) * n].fill(T::default());
    }
    while k < n {
        let Some((row, pair)) = choose(a, n, k) else {
            pivots[k] = k as i32 + 1;
            info = if info == 0 { k as i32 + 1 } else { info };
            k += 1;
            continue;
        };
        let last = k + pair as usize;
        if row != last {
            exchange(a, n, last, row);
            if pair {
                a.swap(last * n + k, row * n + k);
            }
        }
        if pair {
            (pivots[k], pivots[last]) = (-(row as i32) - 1, -(row as i32) - 1);
            let off = a[last * n + k];
            let (d, e) = (a[last * n + last] / off, a[k * n + k] / off);
            let scale = one / (d * e - one) / off;
            for j in last + 1..n {
                let (x, y) = (a[j * n + k], a[j * n + last]);
                let (u, v) = (scale * (d * x - y), scale * (e * y - x));
                for i in j..n {
                    let change = a[i * n + k] * u + a[i * n + last] * v;
                    a[i * n + j] = a[i * n + j] - change;
                }
                (a[j * n + k], a[j * n + last]) = (u, v);
            }
        } else {
            pivots[k] = row as i32 + 1;
            let d = a[k * n + k];
            for j in k + 1..n {
                let u = a[j * n + k] / d;
                for i in j..n {
                    a[i * n + j] = a[i * n + j] - a[i * n + k] * u;
                }
                a[j * n + k] = u;
            }
        }
        k = last + 1;
    }
    info
}

/// Overwrites the rows of `b` with the solution of A X = B; rows of `a` are those of [`ldl`] with the
/// pivot behind.
pub fn solve<T: Number>(a: &[T], n: usize, b: &mut [T], width: usize) {
    let at = |i: usize, j: usize| a[i * (n + 1) + j];
    let pivot = |i: usize| at(i, n).to_f64();
    let row = |i: usize| pivot(i).abs() as usize - 1;
    for c in 0..width {
        let mut x: Vec<T> = crate::alloc::gathered((0..n).map(|i| b[i * width + c]));
        let mut k = 0;
        while k < n {
            if pivot(k) > 0.0 {
                x.swap(k, row(k));
                for i in k + 1..n {
                    x[i] = x[i] - at(i, k) * x[k];
                }
                x[k] = x[k] / at(k, k);
                k += 1;
                continue;
            }
            let next = k + 1;
            x.swap(next, row(k));
            for i in k + 2..n {
                x[i] = x[i] - at(i, k) * x[k] - at(i, next) * x[next];
            }
            let off = at(next, k);
            let (d, e) = (at(next, next) / off, at(k, k) / off);
            let (u, v) = (x[k] / off, x[next] / off);
            let scale = d * e - T::of_f64(1.0);
            (x[k], x[next]) = ((d * u - v) / scale, (e * v - u) / scale);
            k += 2;
        }
        while k > 0 {
            let last = k - 1;
            let first = if pivot(last) > 0.0 { last } else { last - 1 };
            for j in first..k {
                x[j] = (k..n).fold(x[j], |sum, i| sum - at(i, j) * x[i]);
            }
            x.swap(last, row(last));
            k = first;
        }
        for (i, x) in x.into_iter().enumerate() {
            b[i * width + c] = x;
        }
    }
}

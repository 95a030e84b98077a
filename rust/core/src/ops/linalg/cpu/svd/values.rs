//! The singular values of a bidiagonal matrix to high relative accuracy: the differential quotient
//! and difference algorithm (Fernando and Parlett 1994, Numerische Mathematik 67, 191-229), with
//! Laguerre's shifts, which are below the smallest value whatever the matrix is (von Matt 1997,
//! SIAM J. Sci. Comput. 18, 1163-1186). They need derivatives of a pass, computed beside it.

use crate::alloc::full;

/// Passes until convergence, for each value.
const PASSES: usize = 60;
/// What lies below is zero beside a largest number near one: reciprocals and their squares stay
/// finite.
const NOTHING: f64 = 1e-140;

/// Squares of both diagonals of a matrix, less `sigma` in each eigenvalue of its product with the
/// transpose.
struct Quotients {
    q: Vec<f64>,
    e: Vec<f64>,
}

/// Sums of the reciprocals of the eigenvalues that are left, and of their squares.
#[derive(Clone, Copy, Default)]
struct Traces(f64, f64);

impl Traces {
    /// A bound from below of the least of `n` eigenvalues.
    fn bound(self, n: usize) -> f64 {
        let (Traces(s, squares), n) = (self, n as f64);
        let root = ((n - 1.0) * (n * squares - s * s)).max(0.0).sqrt();
        let bound = (1.0 - 1e-11) * n / (s + root);
        if bound.is_finite() {
            bound
        } else {
            0.0
        }
    }
}

impl Quotients {
    /// One pass with a shift from `first` to `last` into `to`: traces without the last two, without
    /// the last, and of all; none where the shift is too large.
    #[inline(always)]
    fn pass(&self, first: usize, last: usize, shift: f64, to: &mut Self) -> Option<[Traces; 3]> {
        let q = &self.q[first..=last];
        let e = &self.e[first..last];
        let to_q = &mut to.q[first..=last];
        let to_e = &mut to.e[first..last];
        let mut d = q[0] - shift;
        let mut least = d;
        // The first and second derivative of d by the shift.
        let (mut d1, mut d2) = (-1.0, 0.0);
        let mut traces = [Traces::default(); 3];
        for i in 0..e.len() {
            let sum = d + e[i];
            let inverse = 1.0 / sum;
            let t = q[i + 1] / sum;
            to_q[i] = sum;
            to_e[i] = e[i] * t;
            let a = d1 * inverse;
            let Traces(s, squares) = traces[2];
            traces = [
                traces[1],
                traces[2],
                Traces(s - a, squares + (a * a - d2 * inverse)),
            ];
            let slope = to_e[i] * inverse;
            d2 = slope * (d2 - 2.0 * a * d1);
            d1 = slope * d1 - 1.0;
            d = d * t - shift;
            // NaN is not less.
            least = if least < d { least } else { d };
        }
        *to_q.last_mut()? = d;
        let (inverse, Traces(s, squares)) = (1.0 / d, traces[2]);
        let a = d1 * inverse;
        let all = Traces(s - a, squares + (a * a - d2 * inverse));
        (least >= 0.0).then_some([traces[1], traces[2], all])
    }

    /// Whether element `i` beside the diagonal is rounding of the numbers beside it, or changes an
    /// eigenvalue, to which `sigma` will be added, by rounding.
    #[inline(always)]
    fn small(&self, i: usize, sigma: f64, eps: f64) -> bool {
        let (e, beside) = (self.e[i], self.q[i].min(self.q[i + 1]));
        let unit = eps * sigma;
        e <= eps * eps * beside + NOTHING || (e <= unit && e * beside <= unit * unit)
    }
}

/// The squared singular values of a matrix of two, from those of its elements.
fn pair(q: f64, e: f64, last: f64) -> [f64; 2] {
    let difference = q - last + e;
    let root = (difference * difference + 4.0 * last * e).sqrt();
    let large = 0.5 * (q + last + e + root);
    [large, if large > 0.0 { q * (last / large) } else { 0.0 }]
}

/// A power of two near a number, which makes squares harmless.
pub fn unit(most: f64) -> f64 {
    2f64.powi(most.log2().floor().clamp(-1000.0, 1000.0) as i32)
}

/// Singular values in place of the diagonal, in descending order; `false` where they do not
/// converge. `eps` is what is rounding, relative.
pub fn values(d: &mut [f64], e: &[f64], eps: f64) -> bool {
    let n = d.len();
    d.iter_mut().for_each(|d| *d = d.abs());
    let mut done = true;
    let mut first = 0;
    let [mut now, mut next] = [(); 2].map(|_| Quotients {
        q: full(0.0, n),
        e: full(0.0, n),
    });
    for last in 0..n {
        // What is beside no other number stays as it is, however small.
        let alone = last + 1 == n || e[last].abs() <= f64::EPSILON / 4.0 * d[last].min(d[last + 1]);
        if !alone {
            continue;
        }
        if first < last {
            let block = first..=last;
            let beside = e[first..last].iter().fold(0.0, |m: f64, e| m.max(e.abs()));
            let most = d[block.clone()].iter().fold(beside, |m, &d| m.max(d));
            let unit = unit(most);
            for i in block {
                now.q[i] = (d[i] / unit) * (d[i] / unit);
                now.e[i] = (e[i] / unit) * (e[i] / unit);
            }
            done &= block_values(&mut now, &mut next, (first, last), eps, |i, square| {
                d[i] = square.sqrt() * unit
            });
        }
        first = last + 1;
    }
    d.sort_unstable_by(|a, b| b.total_cmp(a));
    done
}

/// Tells the squared singular values of a block, each in some place of it.
fn block_values(
    now: &mut Quotients,
    next: &mut Quotients,
    (first, last): (usize, usize),
    eps: f64,
    mut tell: impl FnMut(usize, f64),
) -> bool {
    let mut left = PASSES * (last - first + 1);
    let mut blocks = vec![(first, last, 0.0)];
    while let Some((mut first, mut last, mut sigma)) = blocks.pop() {
        // Small values are found at the end.
        if now.q[first] < now.q[last] {
            now.q[first..=last].reverse();
            now.e[first..last].reverse();
        }
        let (mut shift, mut traces, mut failed) = (0.0, [Traces::default(); 3], false);
        while last > first + 1 {
            match (first..last).rev().find(|&i| now.small(i, sigma, eps)) {
                // What is left has the traces without the last.
                Some(i) if i + 1 == last => {
                    tell(last, sigma + now.q[last]);
                    last -= 1;
                    traces = [Traces::default(), traces[0], traces[1]];
                    shift = traces[2].bound(last - first + 1);
                    continue;
                }
                Some(i) => {
                    blocks.push((first, i, sigma));
                    (first, shift) = (i + 1, 0.0);
                    continue;
                }
                None => (),
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            match now.pass(first, last, shift, next) {
                Some(found) => {
                    sigma += shift;
                    now.q[first..=last].copy_from_slice(&next.q[first..=last]);
                    now.e[first..last].copy_from_slice(&next.e[first..last]);
                    traces = found;
                    (shift, failed) = (traces[2].bound(last - first + 1), false);
                }
                // By rounding only, where values are all alike.
                None if shift > 0.0 => {
                    shift *= if failed { 0.0 } else { 0.5 };
                    failed = true;
                }
                None => return false,
            }
        }
        if last == first {
            tell(last, sigma + now.q[last]);
        } else {
            let [large, small] = pair(now.q[first], now.e[first], now.q[last]);
            tell(first, sigma + large);
            tell(last, sigma + small);
        }
    }
    true
}

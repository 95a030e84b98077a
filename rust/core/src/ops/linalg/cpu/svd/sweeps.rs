//! Bidiagonal matrices made diagonal by sweeps of rotations (Golub and Kahan 1965, SIAM J. Numer.
//! Anal. B 2, 205-224), with the singular values, which are known, as shifts. Rotations of many
//! sweeps are applied at once to columns that the first cache holds.

use super::super::lanes::{get, put, Lanes, LANES};
use super::super::Precision;
use crate::alloc::{gathered, room, Workspace};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::per_isa;

/// Sweeps until convergence, for each value.
const SWEEPS: usize = 30;
/// Rotations that are applied at once, at least.
const ROTATIONS: usize = 1 << 13;
/// Vectors of columns that stay in registers from one rotation to the next.
const VECTORS: usize = 2;

/// Rotations of neighbouring rows, in the order of application: sweeps of a first row and a number.
struct Rotations<T> {
    sweeps: Vec<(usize, usize)>,
    /// Of the left factor and of the right one.
    pairs: [Vec<(T, T)>; 2],
}

/// The cosine and sine that turn (f, g) to (r, 0), and r.
#[inline(always)]
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    let square = f * f + g * g;
    let root = square.sqrt();
    let inverse = 1.0 / root;
    if square > 1e-290 {
        (f * inverse, g * inverse, root)
    } else {
        // Zeros beside numbers near one.
        (1.0, 0.0, f)
    }
}

/// The last shift: the value of the last two rows and columns that is nearest to the last element.
fn guess(d: &[f64], e: &[f64], last: usize) -> f64 {
    let before = if last > 1 { e[last - 2] } else { 0.0 };
    let (a, b) = (d[last - 1], d[last]);
    let top = a * a + before * before;
    let low = b * b + e[last - 1] * e[last - 1];
    let beside = a * e[last - 1];
    if beside == 0.0 {
        return b.abs();
    }
    let half = 0.5 * (top - low);
    let root = (half * half + beside * beside).sqrt();
    let square = low - beside * (beside / (half + root.copysign(half)));
    square.max(0.0).sqrt()
}

/// One sweep from `first` to `last` with a shift, from the first row on.
#[inline(always)]
fn sweep<T: Precision>(
    d: &mut [f64],
    e: &mut [f64],
    (first, last): (usize, usize),
    shift: f64,
    to: &mut Rotations<T>,
) {
    let [left, right] = &mut to.pairs;
    let mut x = d[first];
    let (mut f, mut g) = match shift {
        0.0 => (x, e[first]),
        _ => ((x.abs() - shift) * (1f64.copysign(x) + shift / x), e[first]),
    };
    let mut beside = e[first];
    for i in first..last {
        let (c, s, r) = rotation(f, g);
        if i > first {
            e[i - 1] = r;
        }
        right.push((T::of_f64(c), T::of_f64(s)));
        f = c * x + s * beside;
        beside = c * beside - s * x;
        g = s * d[i + 1];
        x = c * d[i + 1];
        let (c, s, r) = rotation(f, g);
        left.push((T::of_f64(c), T::of_f64(s)));
        d[i] = r;
        f = c * beside + s * x;
        x = c * x - s * beside;
        if i + 1 < last {
            g = s * e[i + 1];
            beside = c * e[i + 1];
        }
    }
    d[last] = x;
    e[last - 1] = f;
    to.sweeps.push((first, last - first));
}

/// Makes the diagonal that of singular values, some negative, and turns the rows of `left` and
/// `right`; `false` where it does not converge. `known` are the values, in descending order.
pub fn diagonalise<T: Precision>(
    d: &mut [f64],
    e: &mut [f64],
    known: &[f64],
    [left, right]: [&mut [T]; 2],
    width: usize,
) -> bool {
    let n = d.len();
    let most = known[0];
    let eps = (T::EPS / 4.0).max(2.0 * f64::EPSILON);
    let floor = most * (T::EPS / 8.0).max(f64::EPSILON / 2.0);
    let mut ready = Rotations {
        sweeps: room(n),
        pairs: [(); 2].map(|_| room(ROTATIONS + n)),
    };
    let mut rest: Vec<f64> = gathered(known.iter().copied());
    let mut budget = SWEEPS * n;
    let (mut last, mut tries) = (n - 1, 0);
    while last > 0 {
        let small = |i: usize| e[i].abs() <= floor.max(eps * d[i].abs().min(d[i + 1].abs()));
        let first = (0..last).rev().find(|&i| small(i)).map_or(0, |i| i + 1);
        if first == last {
            e[last - 1] = 0.0;
            // This value is no shift for others.
            let near = nearest(&rest, d[last].abs());
            rest.remove(near);
            (last, tries) = (last - 1, 0);
            continue;
        }
        if budget == 0 {
            return false;
        }
        budget -= 1;
        let mut shift = guess(d, e, last);
        if tries == 0 {
            shift = rest[nearest(&rest, shift)];
        }
        // Without a shift a zero on the diagonal leaves the others in one sweep.
        if shift <= floor || d[first].abs() <= floor {
            shift = 0.0;
        }
        tries += 1;
        sweep(d, e, (first, last), shift, &mut ready);
        if ready.pairs[0].len() >= ROTATIONS {
            ready.apply(left, right, width);
        }
    }
    ready.apply(left, right, width);
    true
}

/// The place of the number that is nearest to `x`, in descending ones.
fn nearest(all: &[f64], x: f64) -> usize {
    let at = all.partition_point(|&y| y > x);
    match at {
        0 => 0,
        _ if at == all.len() => at - 1,
        _ if all[at - 1] - x < x - all[at] => at - 1,
        _ => at,
    }
}

impl<T: Precision> Rotations<T> {
    /// Rotates the rows of both, and begins anew.
    fn apply(&mut self, left: &mut [T], right: &mut [T], width: usize) {
        const WIDE: usize = VECTORS * LANES;
        let rows = left.len() / width;
        let tasks = width.div_ceil(WIDE);
        let all = [(left, &self.pairs[0]), (right, &self.pairs[1])];
        let all = all.map(|(x, pairs)| (Ptr::new(x.as_mut_ptr()), pairs));
        let grain = (1 << 15) / (self.pairs[0].len() * WIDE + 1) + 1;
        parallel_for(2 * tasks, grain, |range| {
            let mut part = Workspace::full(T::default(), rows * WIDE);
            for t in range {
                let (to, pairs) = &all[t / tasks];
                let at = t % tasks * WIDE;
                // SAFETY: each task has columns of its own, of all rows.
                unsafe {
                    turn_columns(
                        to.at(at),
                        rows,
                        width,
                        WIDE.min(width - at),
                        &self.sweeps,
                        pairs,
                        &mut part,
                    )
                };
            }
        });
        self.sweeps.clear();
        self.pairs.iter_mut().for_each(Vec::clear);
    }
}

/// Rotates neighbouring rows of V vectors, from the first on.
#[inline(always)]
unsafe fn turn<T: Precision, const V: usize>(rows: *mut T, pairs: &[(T, T)]) {
    // SAFETY: there is a row more than rotations.
    unsafe {
        let mut p = rows;
        let mut x: [Lanes<T>; V] = row(p);
        for &by in pairs {
            let below = p.add(V * LANES);
            let (done, next) = rotated(by, x, row(below));
            put_row(p, done);
            (p, x) = (below, next);
        }
        put_row(p, x);
    }
}

/// Two sweeps that begin with the same row, the second one row behind the first: a row that both
/// turn is read and written once. The first has at least as many rotations, and one or more.
#[inline(always)]
unsafe fn turn_two<T: Precision, const V: usize>(rows: *mut T, one: &[(T, T)], two: &[(T, T)]) {
    // SAFETY: there is a row more than rotations of the first sweep.
    unsafe {
        let step = V * LANES;
        let mut p = rows;
        let (mut x, mut y) = rotated(one[0], row::<T, V>(p), row(p.add(step)));
        // `x` is a row for the second sweep, `y` the one below it for the first.
        let both = two.len().min(one.len() - 1);
        for (&first, &second) in one[1..].iter().zip(&two[..both]) {
            let (middle, below) = rotated(first, y, row(p.add(2 * step)));
            let (done, next) = rotated(second, x, middle);
            put_row(p, done);
            (p, x, y) = (p.add(step), next, below);
        }
        if both < two.len() {
            (x, y) = rotated(two[both], x, y);
        }
        put_row(p, x);
        put_row(p.add(step), y);
        turn::<T, V>(p.add(step), &one[1 + both..]);
    }
}

// SAFETY: V vectors lie at `p`.
#[inline(always)]
unsafe fn row<T: Precision, const V: usize>(p: *const T) -> [Lanes<T>; V] {
    // SAFETY: v vectors lie at `p`.
    std::array::from_fn(|i| unsafe { get(p.add(i * LANES)) })
}

// SAFETY: there is room for V vectors at `p`.
#[inline(always)]
unsafe fn put_row<T: Precision, const V: usize>(p: *mut T, x: [Lanes<T>; V]) {
    for (i, x) in x.into_iter().enumerate() {
        // SAFETY: there is room for V vectors at `p`.
        unsafe { put(p.add(i * LANES), x) };
    }
}

/// The upper and the lower row, rotated.
#[inline(always)]
fn rotated<T: Precision, const V: usize>(
    (c, s): (T, T),
    x: [Lanes<T>; V],
    y: [Lanes<T>; V],
) -> ([Lanes<T>; V], [Lanes<T>; V]) {
    let upper = |i: usize| std::array::from_fn(|l| c * x[i][l] + s * y[i][l]);
    let lower = |i: usize| std::array::from_fn(|l| c * y[i][l] - s * x[i][l]);
    (std::array::from_fn(upper), std::array::from_fn(lower))
}

per_isa! {
    /// Applies sweeps to some columns of all rows, in a room of their own.
    ///
    /// # Safety
    /// There are `rows` of `width` from `to` on with `wide` elements, a multiple of [`LANES`] up to
    /// VECTORS of them, and rotations for the sweeps.
    unsafe fn turn_columns[T: Precision](
        to: *mut T, rows: usize, width: usize, wide: usize, sweeps: &[(usize, usize)],
        pairs: &[(T, T)], part: &mut [T],
    ) {
        let own = part.as_mut_ptr();
        // SAFETY: see above.
        unsafe {
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(to.add(i * width), own.add(i * wide), wide);
            }
            let (mut i, mut rest) = (0, pairs);
            while i < sweeps.len() {
                let (first, count) = sweeps[i];
                let (one, after) = rest.split_at(count);
                let x = own.add(first * wide);
                match sweeps.get(i + 1) {
                    Some(&(f, c)) if f == first && c <= count => {
                        let (two, after) = after.split_at(c);
                        match wide / LANES {
                            1 => turn_two::<T, 1>(x, one, two),
                            _ => turn_two::<T, VECTORS>(x, one, two),
                        }
                        (i, rest) = (i + 2, after);
                    }
                    _ => {
                        match wide / LANES {
                            1 => turn::<T, 1>(x, one),
                            _ => turn::<T, VECTORS>(x, one),
                        }
                        (i, rest) = (i + 1, after);
                    }
                }
            }
            for i in 0..rows {
                std::ptr::copy_nonoverlapping(own.add(i * wide), to.add(i * width), wide);
            }
        }
    }
}

//! Hermitian matrices brought to three real diagonals by reflections, one pass over the matrix for each, as
//! [`super::super::tridiagonal`] has it for symmetric ones, with their eigenvalues and eigenvectors.

use super::super::conquer::conquer;
use super::super::field::{Complex, Entry, Held, Operand, Place, Planes};
use super::super::tridiagonal::{eigenvalues, scale};
use super::super::wide::Wide;
use super::super::{blocks, Precision};
use super::reflected::{reflect, reflector, triangle};
use crate::alloc::{full, gathered};
use crate::cpu::pool::parallel_for;
use crate::cpu::simd::{Simd, Vectors, MOST};
use crate::per_isa;
use std::ops::Range;

/// The rows that a second thread is worth, and into how many parts they go.
const TALL: usize = 256;
const PARTS: usize = 4;
/// Reflectors that are applied together.
const BLOCK: usize = 32;

/// A = Q T Q', with the reflectors that make Q.
struct Tridiagonal<P: Place> {
    /// Row k holds reflector k from column k + 1 on.
    rows: Held<P>,
    width: usize,
    tau: Vec<P::Entry>,
    /// The diagonal of T, and what is beside it.
    d: Vec<f64>,
    e: Vec<f64>,
}

/// Eigenvalues in ascending order and, as columns, eigenvectors, of the matrix whose lower triangle lies in
/// the rows of `a`; `false` where they did not converge.
pub fn eigh<T: Precision>(
    a: &[Complex<T>],
    n: usize,
    w: &mut [T],
    v: Option<&mut [Complex<T>]>,
) -> bool {
    let mut t = Tridiagonal::<Planes<T>>::new(a, n);
    let unit = scale(&mut t.d, &mut t.e);
    let Some(v) = v else {
        let done = eigenvalues::<T>(&mut t.d, &mut t.e);
        t.d.sort_unstable_by(f64::total_cmp);
        for (w, d) in w.iter_mut().zip(&t.d) {
            *w = T::of_f64(d * unit);
        }
        return done;
    };
    let Some(rows) = conquer::<T>(&mut t.d, &t.e) else {
        return false;
    };
    let mut order: Vec<usize> = gathered(0..n);
    order.sort_unstable_by(|&i, &j| t.d[i].total_cmp(&t.d[j]));
    let mut x = super::parts::Columns::<T>::zeros(n, n);
    let part = x.part();
    for (j, &from) in order.iter().enumerate() {
        w[j] = T::of_f64(t.d[from] * unit);
        // SAFETY: each column has one place.
        unsafe { part.at.re.part(j * n..(j + 1) * n) }.copy_from_slice(&rows[from * n..][..n]);
    }
    drop(rows);
    // SAFETY: `x` has `n` columns of `n`, its own.
    unsafe { t.back(part) };
    x.store(v, n, false);
    true
}

impl<T: Precision> Tridiagonal<Planes<T>> {
    fn new(a: &[Complex<T>], n: usize) -> Self {
        let width = n.next_multiple_of(MOST);
        let mut rows = Held::<Planes<T>>::zeros(n * width);
        let to = rows.at();
        for i in 0..n {
            for j in 0..=i {
                let mut x = a[i * n + j];
                if i == j {
                    x.im = T::default();
                }
                // SAFETY: there are `n` rows of `width`.
                unsafe {
                    to.add(i * width + j).put(x);
                    to.add(j * width + i).put(x.conj());
                }
            }
        }
        let mut t = Tridiagonal {
            rows,
            width,
            tau: full(Complex::default(), n),
            d: full(0.0, n),
            e: full(0.0, n),
        };
        // SAFETY: rows, factors and diagonals are of the sizes that `width` and `n` say.
        unsafe { reduce(to, n, width, &mut t.tau, &mut t.d, &mut t.e) };
        t
    }
}

impl<P: Place> Tridiagonal<P> {
    /// The columns of `x`, of `n` rows, reflected from the last reflector to the first, in blocks.
    /// SAFETY: nobody else uses the columns.
    unsafe fn back(&mut self, x: blocks::Part<P>) {
        let (n, width) = (self.d.len(), self.width);
        let rows = self.rows.at();
        let count = n.saturating_sub(1);
        for from in (0..count).step_by(BLOCK).rev() {
            let block = BLOCK.min(count - from);
            // Reflectors are zero above the row after the first of them.
            let (at, high) = (from + 1, n - from - 1);
            let v = rows.add(from * width + at);
            let mut t = Held::<P>::zeros(block * block);
            // SAFETY: rows of `width` hold the reflectors, and `x` has `n` rows.
            unsafe {
                for k in from..from + block {
                    // What is left of a reflector is not its own.
                    for i in from + 1..k + 1 {
                        rows.add(k * width + i).put(P::Entry::default());
                    }
                }
                let v = Operand {
                    at: v,
                    rs: 1,
                    cs: width,
                    conj: false,
                };
                let tau = &self.tau[from..from + block];
                triangle(v, high, tau, (t.at(), block));
                let t = Operand::columns(t.at(), block);
                blocks::each_chunk(x.n, |first, end| {
                    let to = x.from(at, first);
                    reflect(v, t, (high, block), to.at, to.step, end - first);
                });
            }
        }
    }
}

/// R rows from row `i` on, less `v[i]` times conj(w) and `w[i]` times conj(v), and what they and the
/// columns like them add to the product with `x`. Of the matrix there is what lies right of the diagonal,
/// and the squares on it that are as wide as a vector.
/// SAFETY: rows of `width`, whole vectors, begin at `rows`, and the others are as wide: the conjugates of
/// v, w and x.
#[inline(always)]
unsafe fn update<P: Place, V: Simd<Elem = P::Part>, const R: usize>(
    rows: P,
    width: usize,
    [v, w, x]: [P; 3],
    i: usize,
    y: P,
) {
    // SAFETY: rows of `width`, whole vectors, begin at `rows`, and the others are as wide: the
    // conjugates of v, w and x.
    unsafe {
        let mut sums = [P::Wide::<V>::zero(); R];
        let zero = P::Wide::<V>::by(P::Entry::default());
        let (mut minus_v, mut minus_w, mut own) = ([zero; R], [zero; R], sums);
        for r in 0..R {
            minus_v[r] = P::Wide::<V>::by(-v.add(i + r).get().conj());
            minus_w[r] = P::Wide::<V>::by(-w.add(i + r).get().conj());
            own[r] = P::Wide::<V>::splat(x.add(i + r).get().conj());
        }
        let first = i / V::LANES * V::LANES;
        let mut c = first;
        while c < width {
            let (vc, wc) = (P::Wide::<V>::load(v.add(c)), P::Wide::<V>::load(w.add(c)));
            let xc = P::Wide::<V>::load(x.add(c));
            let mut below = P::Wide::<V>::load(y.add(c));
            for r in 0..R {
                let to = rows.add(r * width + c);
                let row = P::Wide::<V>::load(to)
                    .plus(minus_v[r], wc)
                    .plus(minus_w[r], vc);
                row.store(to);
                sums[r] = sums[r].plus_conj(row, xc);
                if c > first {
                    below = below.plus_conj(row, own[r]);
                }
            }
            if c > first {
                below.store(y.add(c));
            }
            c += V::LANES;
        }
        for r in 0..R {
            let to = y.add(i + r);
            to.put(to.get() + sums[r].sum().conj());
        }
    }
}

per_isa! {
    /// [`update`] of the rows of a range, the first of which is at `rows`.
    ///
    /// # Safety
    /// Rows are of `width`, a multiple of [`MOST`], and the others are as wide.
    unsafe fn update_rows[T: Precision, P: Place<Part = T>; in V](
        rows: P, width: usize, given: [P; 3], range: Range<usize>, y: P,
    ) {
        let (mut i, first) = (range.start, range.start);
        while i < range.end {
            // Rows whose squares on the diagonal are the same.
            let end = ((i / V::LANES + 1) * V::LANES).min(range.end);
            // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide.
            unsafe {
                while i + 2 <= end {
                    update::<P, V, 2>(rows.add((i - first) * width), width, given, i, y);
                    i += 2;
                }
                while i < end {
                    update::<P, V, 1>(rows.add((i - first) * width), width, given, i, y);
                    i += 1;
                }
            }
        }
    }
}

/// As [`update_rows`] of the rows from `first` to `end`, in parts as large as each other where there are
/// many; `parts` has room for the sums of each. The sums do not depend on the number of threads.
///
/// # Safety
/// As for [`update_rows`].
unsafe fn update_all<P: Place>(
    (rows, width): (P, usize),
    given: [P; 3],
    (first, end): (usize, usize),
    y: P,
    parts: P,
) {
    let clear = |y: P, from: usize| {
        for j in from..width {
            // SAFETY: sums are as wide as rows.
            unsafe { y.add(j).put(P::Entry::default()) };
        }
    };
    if end - first < TALL {
        clear(y, first);
        // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide.
        return unsafe { update_rows(rows, width, given, first..end, y) };
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
    parallel_for(PARTS, 1, |range| {
        for i in range {
            // SAFETY: rows are of `width`, a multiple of [`MOST`], and the others are as wide; each
            // part has rows and sums of its own.
            unsafe {
                let rows = rows.add((bound(i) - first) * width);
                let y = parts.add(i * width);
                clear(y, bound(i));
                update_rows(rows, width, given, bound(i)..bound(i + 1), y);
            }
        }
    });
    for i in 0..PARTS {
        for j in bound(i)..width {
            // SAFETY: sums are as wide as rows.
            unsafe {
                let x = parts.add(i * width + j).get();
                let to = y.add(j);
                to.put(if i == 0 { x } else { to.get() + x });
            }
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
    unsafe fn reduce[T: Precision, P: Place<Part = T>; in V](
        a: P, n: usize, width: usize, tau: &mut [P::Entry], d: &mut [f64], e: &mut [f64],
    ) {
        let mut work = Held::<P>::zeros((4 + if n < TALL { 0 } else { PARTS }) * width);
        // The conjugates of v, w and the next reflector; the product with that.
        let [v, w, x, y, parts] = std::array::from_fn(|i| work.at().add(i * width));
        let half = P::Entry::of(T::of_f64(0.5));
        // SAFETY: rows and vectors are as wide as the caller says.
        unsafe {
            for k in 0..n {
                let row = a.add(k * width);
                let (vk, wk) = (v.add(k).get().conj(), w.add(k).get().conj());
                for j in k..n {
                    let to = row.add(j);
                    to.put(to.get() - (vk * w.add(j).get() + wk * v.add(j).get()));
                }
                d[k] = row.add(k).get().re().to_f64();
                if k + 1 == n {
                    break;
                }
                // The column below the diagonal.
                for j in k + 1..n {
                    let to = row.add(j);
                    to.put(to.get().conj());
                }
                let own = row.add(k + 1);
                let found = reflector::<P, V>(own, n - k - 1);
                e[k] = match found {
                    Some((beta, _)) => beta.to_f64(),
                    None => own.get().re().to_f64(),
                };
                let factor = found.map_or(P::Entry::default(), |found| found.1);
                for j in k + 1..n {
                    if found.is_none() {
                        row.add(j).put(P::Entry::default());
                    }
                    x.add(j).put(row.add(j).get().conj());
                }
                tau[k] = factor;
                x.add(k).put(P::Entry::default());
                update_all((row.add(width), width), [v, w, x], (k + 1, n), y, parts);
                // w = tau A x - (|tau|^2 x' A x / 2) x
                let dot = (k + 1..n).fold(P::Entry::default(), |sum, j| {
                    sum + x.add(j).get() * y.add(j).get()
                });
                let share = half * factor * factor.conj() * P::Entry::of(dot.re());
                for j in k + 1..n {
                    let own = x.add(j).get().conj();
                    w.add(j).put((factor * y.add(j).get() - share * own).conj());
                    v.add(j).put(x.add(j).get());
                }
                w.add(k).put(P::Entry::default());
                v.add(k).put(P::Entry::default());
            }
        }
    }
}

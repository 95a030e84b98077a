//! What factorisations by blocks have beside large products, in vectors along columns: panels of a few
//! columns, triangles, and products with few columns on both sides. Columns lie one after another,
//! `step` from each other.

use super::field::{Entry, Place};
use super::wide::Wide;
use super::Precision;
use crate::cpu::simd::{Simd, Vectors, MOST};
use crate::per_isa;

/// Columns that are factored one after another.
pub const WIDTH: usize = 16;
/// Rows of a triangle that are solved for at once.
pub const TALL: usize = 64;
/// Columns on both sides of a product with few.
pub const FEW: usize = 32;

/// The vectors of what lies at a place.
type Of<P, V> = <P as Place>::Wide<V>;

/// The first row from `from` on whose size is `top`.
#[inline(always)]
unsafe fn find<P: Place>(x: P, from: usize, m: usize, top: P::Part) -> Option<usize> {
    let mut i = from;
    // SAFETY: the column has `m` rows.
    unsafe {
        while i + MOST <= m {
            let mut some = false;
            for l in 0..MOST {
                some |= x.add(i + l).get().size() == top;
            }
            if some {
                break;
            }
            i += MOST;
        }
        (i..m).find(|&i| x.add(i).get().size() == top)
    }
}

/// `R` vectors of `v`, minus columns times numbers, of which `minus` are the negatives.
#[inline(always)]
unsafe fn reduce<P: Place, V: Simd<Elem = P::Part>, const R: usize>(
    mut v: [Of<P, V>; R],
    l: P,
    step: usize,
    minus: &[P::Entry],
) -> [Of<P, V>; R] {
    for (k, &u) in minus.iter().enumerate() {
        // SAFETY: the caller's columns have rows for R vectors.
        unsafe {
            let u = Of::<P, V>::by(u);
            for r in 0..R {
                let x = Of::<P, V>::load(l.add(k * step + r * V::LANES));
                v[r] = v[r].plus(u, x);
            }
        }
    }
    v
}

/// The rows of a column from `j` to `m`, minus the columns from `a` on times numbers, of which `minus`
/// are the negatives; the largest size of what is left.
/// SAFETY: nobody else uses the column; the machine has the instructions of V.
#[inline(always)]
unsafe fn reduce_column<P: Place, V: Simd<Elem = P::Part>>(
    x: P,
    (j, m): (usize, usize),
    a: P,
    step: usize,
    minus: &[P::Entry],
) -> P::Part {
    const ROWS: usize = 4;
    // SAFETY: nobody else uses the column; the machine has the instructions of V.
    unsafe {
        let mut top = V::splat(P::Part::default());
        let mut i = j;
        while i + ROWS * V::LANES <= m {
            let mut v = [Of::<P, V>::zero(); ROWS];
            for r in 0..ROWS {
                v[r] = Of::<P, V>::load(x.add(i + r * V::LANES));
            }
            v = reduce::<P, V, ROWS>(v, a.add(i), step, minus);
            for r in 0..ROWS {
                v[r].store(x.add(i + r * V::LANES));
                top = v[r].size().max(top);
            }
            i += ROWS * V::LANES;
        }
        while i + V::LANES <= m {
            let [v] = reduce::<P, V, 1>([Of::<P, V>::load(x.add(i))], a.add(i), step, minus);
            v.store(x.add(i));
            top = v.size().max(top);
            i += V::LANES;
        }
        if i < m {
            let mut v = Of::<P, V>::load_first(x.add(i), m - i);
            for (k, &u) in minus.iter().enumerate() {
                let x = Of::<P, V>::load_first(a.add(k * step + i), m - i);
                v = v.plus(Of::<P, V>::by(u), x);
            }
            v.store_first(x.add(i), m - i);
            top = v.size().max(top);
        }
        top.largest()
    }
}

/// The rows of a column from `i` to `m`, times a number.
/// SAFETY: as for [`reduce_column`].
#[inline(always)]
pub unsafe fn scale_column<P: Place, V: Simd<Elem = P::Part>>(
    x: P,
    (mut i, m): (usize, usize),
    by: P::Entry,
) {
    // SAFETY: nobody else uses the column; the machine has the instructions of V.
    unsafe {
        let by = Of::<P, V>::by(by);
        while i + V::LANES <= m {
            Of::<P, V>::load(x.add(i)).times(by).store(x.add(i));
            i += V::LANES;
        }
        if i < m {
            let v = Of::<P, V>::load_first(x.add(i), m - i);
            v.times(by).store_first(x.add(i), m - i);
        }
    }
}

per_isa! {
    /// Factors `m` rows of `n` columns, at most WIDTH: each column gets what those before it owe it, then
    /// its pivot.
    ///
    /// # Safety
    /// Nobody else uses the columns.
    pub unsafe fn factor[T: Precision, P: Place<Part = T>; in V](
        a: P, m: usize, n: usize, step: usize, pivots: &mut [usize],
    ) {
        // SAFETY: nobody else uses the columns.
        unsafe {
            for j in 0..n {
                let x = a.add(j * step);
                let mut minus = [P::Entry::default(); WIDTH];
                for k in 0..j {
                    let u = x.add(k).get();
                    for i in k + 1..j {
                        let to = x.add(i);
                        to.put(to.get() - a.add(k * step + i).get() * u);
                    }
                    minus[k] = -u;
                }
                let top = reduce_column::<P, V>(x, (j, m), a, step, &minus[..j]);
                let p = find::<P>(x, j, m, top).unwrap_or(j);
                pivots[j] = p;
                if p != j {
                    for c in 0..n {
                        let x = a.add(c * step);
                        exchange(x.add(j), x.add(p));
                    }
                }
                let pivot = x.add(j).get();
                let by = P::Entry::of(T::UNIT).over(pivot);
                if by.size() < T::TINY {
                    // The inverse is less precise than the quotients.
                    for i in j + 1..m {
                        x.add(i).put(x.add(i).get().over(pivot));
                    }
                    continue;
                }
                scale_column::<P, V>(x, (j + 1, m), by);
            }
        }
    }
}

/// Exchanges two numbers.
/// SAFETY: nobody else uses them.
#[inline(always)]
pub unsafe fn exchange<P: Place>(a: P, b: P) {
    // SAFETY: nobody else uses them.
    unsafe {
        let (x, y) = (a.get(), b.get());
        a.put(y);
        b.put(x);
    }
}

per_isa! {
    /// Factors `m` rows of `n` columns, at most WIDTH, as L L' of a Hermitian matrix, of which what is below
    /// the diagonal counts; gives the column whose minor is not positive.
    ///
    /// # Safety
    /// Nobody else uses the columns.
    pub unsafe fn cholesky[T: Precision, P: Place<Part = T>; in V](
        a: P, m: usize, n: usize, step: usize,
    ) -> Option<usize> {
        // SAFETY: nobody else uses the columns.
        unsafe {
            for j in 0..n {
                let x = a.add(j * step);
                let mut minus = [P::Entry::default(); WIDTH];
                for k in 0..j {
                    minus[k] = -a.add(k * step + j).get().conj();
                }
                reduce_column::<P, V>(x, (j, m), a, step, &minus[..j]);
                let d = x.add(j).get().re();
                // Neither is NaN.
                if !(d >= T::TINY && Precision::finite(d)) {
                    return Some(j);
                }
                let root = d.root();
                x.add(j).put(P::Entry::of(root));
                scale_column::<P, V>(x, (j + 1, m), P::Entry::of(T::UNIT / root));
            }
            None
        }
    }
}

per_isa! {
    /// Solves L X = B for the `k` rows of `n` columns of `b`, at most TALL, by the unit triangle below the
    /// diagonal of `l`. A vector is a row of as many columns as it has lanes.
    ///
    /// # Safety
    /// Nobody else uses the columns of `b`.
    pub unsafe fn solve[T: Precision, P: Place<Part = T>; in V](
        left: (P, usize), k: usize, right: (P, usize), n: usize,
    ) {
        let ((l, step), (b, b_step), lanes) = (left, right, V::LANES);
        // SAFETY: nobody else uses the columns of `b`.
        unsafe {
            let zero = Of::<P, V>::zero();
            let mut done = [zero; TALL];
            for j in (0..n).step_by(lanes) {
                let (b, wide) = (b.add(j * b_step), lanes.min(n - j));
                for i in (0..k).step_by(lanes) {
                    let high = lanes.min(k - i);
                    let mut x = square::<P, V>(b.add(i), b_step, (wide, high));
                    if high == lanes {
                        for group in 0..Of::<P, V>::GROUPS {
                            let each = lanes / Of::<P, V>::GROUPS;
                            for p in 0..i {
                                let minus = done[p].minus();
                                let l = l.add(p * step + i);
                                for r in group * each..(group + 1) * each {
                                    x[r] = x[r].plus_by(l.add(r), minus);
                                }
                            }
                        }
                        for p in 0..lanes {
                            let minus = x[p].minus();
                            let l = l.add((i + p) * step + i);
                            for r in p + 1..lanes {
                                x[r] = x[r].plus_by(l.add(r), minus);
                            }
                        }
                    } else {
                        for p in 0..i + high {
                            let minus = if p < i { done[p] } else { x[p - i] }.minus();
                            let l = l.add(p * step + i);
                            for r in (p + 1).saturating_sub(i)..high {
                                x[r] = x[r].plus_by(l.add(r), minus);
                            }
                        }
                    }
                    done[i..i + high].copy_from_slice(&x[..high]);
                    put_square::<P, V>(x, b.add(i), b_step, (wide, high));
                }
            }
        }
    }
}

per_isa! {
    /// Solves U X = B for the `k` rows of `n` columns of `b`, at most TALL, by the triangle above the
    /// diagonal of `u`, from the last row up.
    ///
    /// # Safety
    /// As for [`solve`].
    pub unsafe fn solve_upper[T: Precision, P: Place<Part = T>; in V](
        left: (P, usize), k: usize, right: (P, usize), n: usize,
    ) {
        let ((u, step), (b, b_step), lanes) = (left, right, V::LANES);
        // SAFETY: nobody else uses the columns of `b`.
        unsafe {
            let zero = Of::<P, V>::zero();
            let mut done = [zero; TALL];
            let mut by = [P::Entry::default(); TALL];
            for (p, by) in by[..k].iter_mut().enumerate() {
                *by = P::Entry::of(T::UNIT).over(u.add(p * step + p).get());
            }
            for j in (0..n).step_by(lanes) {
                let (b, wide) = (b.add(j * b_step), lanes.min(n - j));
                for i in (0..k).step_by(lanes).rev() {
                    let high = lanes.min(k - i);
                    let mut x = square::<P, V>(b.add(i), b_step, (wide, high));
                    if high == lanes {
                        for group in 0..Of::<P, V>::GROUPS {
                            let each = lanes / Of::<P, V>::GROUPS;
                            for p in i + lanes..k {
                                let minus = done[p].minus();
                                let u = u.add(p * step + i);
                                for r in group * each..(group + 1) * each {
                                    x[r] = x[r].plus_by(u.add(r), minus);
                                }
                            }
                        }
                        for p in (0..lanes).rev() {
                            x[p] = x[p].times(Of::<P, V>::by(by[i + p]));
                            let minus = x[p].minus();
                            let u = u.add((i + p) * step + i);
                            for r in 0..p {
                                x[r] = x[r].plus_by(u.add(r), minus);
                            }
                        }
                    } else {
                        // The last rows, below which are none.
                        for p in (0..high).rev() {
                            x[p] = x[p].times(Of::<P, V>::by(by[i + p]));
                            let minus = x[p].minus();
                            let u = u.add((i + p) * step + i);
                            for r in 0..p {
                                x[r] = x[r].plus_by(u.add(r), minus);
                            }
                        }
                    }
                    done[i..i + high].copy_from_slice(&x[..high]);
                    put_square::<P, V>(x, b.add(i), b_step, (wide, high));
                }
            }
        }
    }
}

/// Rows of `wide` columns as vectors, `high` of them.
/// SAFETY: the columns have these rows; the machine has the instructions of V.
#[inline(always)]
unsafe fn square<P: Place, V: Simd<Elem = P::Part>>(
    b: P,
    step: usize,
    (wide, high): (usize, usize),
) -> [Of<P, V>; MOST] {
    // SAFETY: the columns have these rows; the machine has the instructions of V.
    unsafe {
        let mut x = [Of::<P, V>::zero(); MOST];
        for c in 0..wide {
            x[c] = match high == V::LANES {
                true => Of::<P, V>::load(b.add(c * step)),
                false => Of::<P, V>::load_first(b.add(c * step), high),
            };
        }
        Of::<P, V>::transpose(&mut x);
        x
    }
}

/// What [`square`] read, back to its columns.
/// SAFETY: the columns have these rows, which nobody else uses; the machine has the instructions
/// of V.
#[inline(always)]
unsafe fn put_square<P: Place, V: Simd<Elem = P::Part>>(
    mut x: [Of<P, V>; MOST],
    b: P,
    step: usize,
    (wide, high): (usize, usize),
) {
    // SAFETY: the columns have these rows, which nobody else uses; the machine has the instructions
    // of V.
    unsafe {
        Of::<P, V>::transpose(&mut x);
        for c in 0..wide {
            match high == V::LANES {
                true => x[c].store(b.add(c * step)),
                false => x[c].store_first(b.add(c * step), high),
            }
        }
    }
}

per_isa! {
    /// C = C - L U, of `m` rows, with `k` and `n` at most FEW.
    ///
    /// # Safety
    /// Nobody else uses the columns of `c`.
    pub unsafe fn subtract[T: Precision, P: Place<Part = T>; in V](
        size: (usize, usize, usize), l: P, u: P, c: P, step: usize,
    ) {
        const COLUMNS: usize = 4;
        const ROWS: usize = 2;
        let (m, n, k) = size;
        // SAFETY: nobody else uses the columns of `c`.
        unsafe {
            let mut minus = [[P::Entry::default(); FEW]; COLUMNS];
            for j in (0..n).step_by(COLUMNS) {
                let wide = COLUMNS.min(n - j);
                for (c, minus) in minus[..wide].iter_mut().enumerate() {
                    for (p, minus) in minus[..k].iter_mut().enumerate() {
                        *minus = -u.add((j + c) * step + p).get();
                    }
                }
                let c = c.add(j * step);
                let mut i = 0;
                if wide == COLUMNS {
                    while i + ROWS * V::LANES <= m {
                        let mut x = [[Of::<P, V>::zero(); ROWS]; COLUMNS];
                        for j in 0..COLUMNS {
                            for r in 0..ROWS {
                                x[j][r] = Of::<P, V>::load(c.add(j * step + i + r * V::LANES));
                            }
                        }
                        for p in 0..k {
                            let l = l.add(p * step + i);
                            let both = [Of::<P, V>::load(l), Of::<P, V>::load(l.add(V::LANES))];
                            for j in 0..COLUMNS {
                                let u = Of::<P, V>::by(minus[j][p]);
                                for r in 0..ROWS {
                                    x[j][r] = x[j][r].plus(u, both[r]);
                                }
                            }
                        }
                        for j in 0..COLUMNS {
                            for r in 0..ROWS {
                                x[j][r].store(c.add(j * step + i + r * V::LANES));
                            }
                        }
                        i += ROWS * V::LANES;
                    }
                }
                while i < m {
                    let high = V::LANES.min(m - i);
                    for j in 0..wide {
                        let to = c.add(j * step + i);
                        let mut x = Of::<P, V>::load_first(to, high);
                        for p in 0..k {
                            let l = Of::<P, V>::load_first(l.add(p * step + i), high);
                            x = x.plus(Of::<P, V>::by(minus[j][p]), l);
                        }
                        x.store_first(to, high);
                    }
                    i += V::LANES;
                }
            }
        }
    }
}

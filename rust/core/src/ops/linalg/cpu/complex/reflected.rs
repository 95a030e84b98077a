//! Q R by blocks of reflectors (Schreiber and Van Loan 1989, SIAM J. Sci. Stat. Comput. 10): columns of a
//! block are reduced in halves by recursion (Elmroth and Gustavson 2000, IBM J. Res. Dev. 44), and what is
//! right of it by products.

use super::super::blocks::{each_chunk, Part};
use super::super::field::{Entry, Held, Operand, Place};
use super::super::wide::Wide;
use super::super::Precision;
use crate::cpu::elements::Element;
use crate::cpu::simd::{Simd, Vectors};
use crate::per_isa;

/// Columns of a block, and those that are reflected one after another.
const BLOCK: usize = 32;
const LEAF: usize = 8;

/// I - V T V': V has `high` rows, ones and zeros included.
struct Block<P: Place> {
    /// The row and column where it begins.
    at: usize,
    high: usize,
    count: usize,
    v: Held<P>,
    t: Held<P>,
}

/// Reflectors that bring columns of a matrix to a triangle.
pub struct Reflected<P: Place> {
    blocks: Vec<Block<P>>,
    pub tau: Vec<P::Entry>,
}

impl<P: Place> Reflected<P> {
    /// Brings the first `n` columns of a matrix to a triangle; those after them are reflected too. What is
    /// below the triangle is of no use.
    /// SAFETY: nobody else uses the matrix.
    pub unsafe fn new(a: Part<P>, n: usize) -> Self {
        let k = a.m.min(n);
        let mut out = Reflected {
            blocks: Vec::new(),
            tau: crate::alloc::full(P::Entry::default(), k),
        };
        for at in (0..k).step_by(BLOCK) {
            let (high, count) = (a.m - at, BLOCK.min(k - at));
            let mut block = Block {
                at,
                high,
                count,
                v: Held::zeros(high * count),
                t: Held::zeros(count * count),
            };
            let left = Part {
                n: count,
                ..a.from(at, at)
            };
            let (v, t) = (block.v.at(), block.t.at());
            // SAFETY: the block's columns are the caller's, V and T its own.
            unsafe { reduce(left, (v, high), (t, count), &mut out.tau[at..][..count]) };
            let rest = a.from(at, at + count);
            each_chunk(rest.n, |first, end| {
                // SAFETY: columns of this chunk are its own.
                unsafe { block.apply(true, rest.from(0, first).at, rest.step, end - first) }
            });
            out.blocks.push(block);
        }
        out
    }

    /// Writes what V has below ones to the rows below the diagonal.
    /// SAFETY: nobody else uses the matrix, which has as many rows as the one reduced.
    pub unsafe fn pack(&self, a: Part<P>) {
        for b in &self.blocks {
            for j in 0..b.count {
                for i in j + 1..b.high {
                    let to = a.from(b.at + i, b.at + j).at;
                    // SAFETY: V has `count` columns of `high`.
                    unsafe { to.put(b.v.seen().add(j * b.high + i).get()) };
                }
            }
        }
    }

    /// Writes the first columns of Q to a part of zeros.
    /// SAFETY: nobody else uses the part, which has as many rows as the matrix reduced.
    pub unsafe fn basis(&self, q: Part<P>) {
        // SAFETY: nobody else uses the part, which has as many rows as the matrix.
        unsafe {
            for i in 0..q.n {
                q.from(i, i)
                    .at
                    .put(P::Entry::of(crate::cpu::simd::Lane::UNIT));
            }
            for b in self.blocks.iter().rev() {
                // Columns before it are those of the identity still.
                let rest = q.from(b.at, b.at);
                each_chunk(rest.n, |first, end| {
                    b.apply(false, rest.from(0, first).at, rest.step, end - first);
                });
            }
        }
    }
}

impl<P: Place> Block<P> {
    /// Applies the reflectors, or their adjoint, to columns.
    /// SAFETY: nobody else uses the columns, which have as many rows.
    unsafe fn apply(&self, adjoint: bool, x: P, step: usize, n: usize) {
        let v = Operand::columns(self.v.seen(), self.high);
        let t = Operand::columns(self.t.seen(), self.count);
        let t = if adjoint { t.adjoint() } else { t };
        // SAFETY: nobody else uses the columns, which have as many rows.
        unsafe { reflect(v, t, (self.high, self.count), x, step, n) };
    }
}

/// (I - V T V') X of `n` columns; V has `high` rows and `count` columns.
/// SAFETY: the operands have elements for these sizes; nobody else uses those columns of `x`.
pub unsafe fn reflect<P: Place>(
    v: Operand<P>,
    t: Operand<P>,
    (high, count): (usize, usize),
    x: P,
    step: usize,
    n: usize,
) {
    let mut work = Held::<P>::zeros(2 * count * n);
    let first = Operand::columns(work.at(), count);
    let second = Operand::columns(work.at().add(count * n), count);
    let x = Operand::columns(x, step);
    // SAFETY: the operands have elements for these sizes; nobody else uses those columns of `x`;
    // the room has `count` rows of `n`, twice.
    unsafe {
        P::product((count, n, high), 1.0, v.adjoint(), x, 0.0, first);
        P::product((count, n, count), 1.0, t, first, 0.0, second);
        P::product((high, n, count), -1.0, v, second, 1.0, x);
    }
}

/// Reduces a part of no more columns than rows; V and T are zeros at first.
/// SAFETY: nobody else uses these; V has as many rows and columns, T as many columns of as many.
unsafe fn reduce<P: Place>(a: Part<P>, v: (P, usize), t: (P, usize), tau: &mut [P::Entry]) {
    let (m, n) = (a.m, a.n);
    // SAFETY: nobody else uses the parts; where one is written they lie apart.
    unsafe {
        if n <= LEAF {
            columns(a.at, (m, n), a.step, v, tau);
            return triangle(Operand::columns(v.0, v.1), m, tau, t);
        }
        let half = (n / 2).next_multiple_of(LEAF);
        let (left, right) = (Part { n: half, ..a }, a.from(0, half));
        let (first, second) = tau.split_at_mut(half);
        reduce(left, v, t, first);
        let [v1, t1] = [v, t].map(|(x, step)| Operand::columns(x, step));
        reflect(v1, t1.adjoint(), (m, half), right.at, a.step, right.n);
        let v2 = (v.0.add(half * v.1 + half), v.1);
        let t2 = (t.0.add(half * t.1 + half), t.1);
        reduce(right.from(half, 0), v2, t2, second);
        join(
            Operand::columns(v.0.add(half), v.1),
            Operand::columns(v2.0, v2.1),
            (m - half, half, n - half),
            (t.0, t.1),
        );
    }
}

/// What T has beside the triangles of two runs of reflectors, of which the second is zero above the rows
/// that are given: - T1 (V1' V2) T2.
/// SAFETY: V1 has `n1` columns, V2 `n2`, both of `m` rows; T has `n1 + n2` columns and rows.
unsafe fn join<P: Place>(
    v1: Operand<P>,
    v2: Operand<P>,
    (m, n1, n2): (usize, usize, usize),
    (t, step): (P, usize),
) {
    let mut work = Held::<P>::zeros(2 * n1 * n2);
    let dots = Operand::columns(work.at(), n1);
    let product_t = Operand::columns(work.at().add(n1 * n2), n1);
    let second = Operand::columns(t.add(n1 * step + n1), step);
    let to = Operand::columns(t.add(n1 * step), step);
    // SAFETY: v1 has `n1` columns, V2 `n2`, both of `m` rows; T has `n1 + n2` columns and rows.
    unsafe {
        P::product((n1, n2, m), 1.0, v1.adjoint(), v2, 0.0, dots);
        P::product((n1, n2, n2), 1.0, dots, second, 0.0, product_t);
        P::product(
            (n1, n2, n1),
            -1.0,
            Operand::columns(t, step),
            product_t,
            0.0,
            to,
        );
    }
}

/// T of a few reflectors, zeros at first: its inverse has the products of reflectors above its diagonal.
/// SAFETY: V has `high` rows and a column for each of `tau`; T as many columns of as many.
pub unsafe fn triangle<P: Place>(
    v: Operand<P>,
    high: usize,
    tau: &[P::Entry],
    (t, step): (P, usize),
) {
    let n = tau.len();
    let mut work = Held::<P>::zeros(n * n);
    let dots = work.at();
    // SAFETY: v has `high` rows and a column for each of `tau`; T as many columns of as many.
    unsafe {
        let to = Operand::columns(dots, n);
        P::product((n, n, high), 1.0, v.adjoint(), v, 0.0, to);
        for j in 0..n {
            for i in 0..j {
                let row = (i..j).map(|k| t.add(k * step + i).get() * dots.add(j * n + k).get());
                let dot = row.fold(P::Entry::default(), |sum, x| sum + x);
                t.add(j * step + i).put(-(tau[j] * dot));
            }
            t.add(j * step + j).put(tau[j]);
        }
    }
}

/// Sums of squares of a column.
/// SAFETY: the column has `n` rows.
#[inline(always)]
unsafe fn squares<P: Place>(x: P, n: usize) -> f64 {
    const LANES: usize = 8;
    // SAFETY: the column has `n` rows.
    let square = |i: usize| unsafe { x.add(i).get().squared() };
    let mut sums = [0.0; LANES];
    let whole = n / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        for l in 0..LANES {
            sums[l] += square(i + l);
        }
    }
    (whole..n).fold(sums.iter().sum(), |sum, i| sum + square(i))
}

/// Makes of a column the reflector that leaves only its first element, real, in its place: that element and
/// the factor.
/// SAFETY: nobody else uses the `n` rows of the column.
#[inline(always)]
pub unsafe fn reflector<P: Place, V: Simd<Elem = P::Part>>(
    x: P,
    n: usize,
) -> Option<(P::Part, P::Entry)> {
    // SAFETY: nobody else uses the `n` rows of the column.
    unsafe {
        let alpha = x.get();
        let tail = squares(x.add(1), n - 1);
        let norm = (tail + alpha.squared()).sqrt();
        // Squares may leave the range of numbers, and so may the reciprocal of what is small.
        let near = tail > 1e-280 && norm < 1e150;
        if !(near && norm * P::Part::EPS >= P::Part::TINY.to_f64()) {
            return far_reflector(x, n);
        }
        let beta = P::Part::of_f64(-norm.copysign(alpha.re().to_f64()));
        let one: P::Part = crate::cpu::simd::Lane::UNIT;
        let real = P::Entry::of(beta);
        let tau = (real - alpha).scaled(one / beta);
        let by = P::Entry::of(one).over(alpha - real);
        super::super::panel::scale_column::<P, V>(x, (1, n), by);
        x.put(P::Entry::of(one));
        Some((beta, tau))
    }
}

/// [`reflector`] of a column that is small, large or not finite.
#[cold]
unsafe fn far_reflector<P: Place>(x: P, n: usize) -> Option<(P::Part, P::Entry)> {
    // SAFETY: nobody else uses the `n` rows of the column.
    unsafe {
        let alpha = x.get();
        let sizes = (1..n).map(|i| x.add(i).get().size().to_f64());
        let top = sizes.fold(0.0f64, |s, v| if v > s || v.is_nan() { v } else { s });
        if top == 0.0 && alpha == P::Entry::of(alpha.re()) {
            return None;
        }
        let top = alpha.size().to_f64().max(top);
        // A power of two that makes squares harmless; the reflector does not depend on it.
        let unit = 2f64.powi(-(top.log2().floor().clamp(-1000.0, 1000.0) as i32));
        let norm = (0..n)
            .fold(0.0, |s, i| s + x.add(i).get().squared_by(unit))
            .sqrt()
            / unit;
        let beta = -norm.copysign(alpha.re().to_f64());
        let real = P::Entry::of(P::Part::of_f64(beta));
        let (gap, own) = (alpha - real, P::Entry::of(P::Part::of_f64(beta)));
        for i in 1..n {
            x.add(i).put(x.add(i).get().over(gap));
        }
        x.put(P::Entry::of(crate::cpu::simd::Lane::UNIT));
        Some((P::Part::of_f64(beta), (real - alpha).over(own)))
    }
}

per_isa! {
    /// Reduces `n` columns of `m` rows, one after another, to a triangle above the diagonal; the reflectors
    /// go to the columns of V, zeros at first.
    ///
    /// # Safety
    /// Nobody else uses the columns of both; there are no more columns than rows.
    unsafe fn columns[T: Precision, P: Place<Part = T>; in V](
        a: P, size: (usize, usize), step: usize, to: (P, usize), tau: &mut [P::Entry],
    ) {
        const TOGETHER: usize = 4;
        let ((m, n), (v, v_step)) = (size, to);
        // SAFETY: nobody else uses the columns of both; there are no more columns than rows.
        unsafe {
            for j in 0..n {
                let (x, v, high) = (a.add(j * step + j), v.add(j * v_step + j), m - j);
                for i in 0..high {
                    v.add(i).put(x.add(i).get());
                }
                let Some((beta, factor)) = reflector::<P, V>(v, high) else {
                    for i in 0..high {
                        v.add(i).put(P::Entry::default());
                    }
                    continue;
                };
                x.put(P::Entry::of(beta));
                tau[j] = factor;
                let mut c = j + 1;
                while c + TOGETHER <= n {
                    reflect_columns::<P, V, TOGETHER>(a.add(c * step + j), step, v, high, factor);
                    c += TOGETHER;
                }
                while c < n {
                    reflect_columns::<P, V, 1>(a.add(c * step + j), step, v, high, factor);
                    c += 1;
                }
            }
        }
    }
}

/// C columns less conj(tau) (v' x) v.
/// SAFETY: nobody else uses the columns; the machine has the instructions of V.
#[inline(always)]
unsafe fn reflect_columns<P: Place, V: Simd<Elem = P::Part>, const C: usize>(
    x: P,
    step: usize,
    v: P,
    high: usize,
    tau: P::Entry,
) {
    // SAFETY: nobody else uses the columns; the machine has the instructions of V.
    unsafe {
        let mut sums = [P::Wide::<V>::zero(); C];
        let whole = high / V::LANES * V::LANES;
        for i in (0..whole).step_by(V::LANES) {
            let by = P::Wide::<V>::load(v.add(i));
            for c in 0..C {
                sums[c] = sums[c].plus_conj(by, P::Wide::<V>::load(x.add(c * step + i)));
            }
        }
        let rest = high - whole;
        if rest > 0 {
            let by = P::Wide::<V>::load_first(v.add(whole), rest);
            for c in 0..C {
                let own = P::Wide::<V>::load_first(x.add(c * step + whole), rest);
                sums[c] = sums[c].plus_conj(by, own);
            }
        }
        let mut by = [P::Wide::<V>::by(P::Entry::default()); C];
        for c in 0..C {
            by[c] = P::Wide::<V>::by(-(tau.conj() * sums[c].sum()));
        }
        for i in (0..whole).step_by(V::LANES) {
            let own = P::Wide::<V>::load(v.add(i));
            for c in 0..C {
                let to = x.add(c * step + i);
                P::Wide::<V>::load(to).plus(by[c], own).store(to);
            }
        }
        if rest > 0 {
            let own = P::Wide::<V>::load_first(v.add(whole), rest);
            for c in 0..C {
                let to = x.add(c * step + whole);
                P::Wide::<V>::load_first(to, rest)
                    .plus(by[c], own)
                    .store_first(to, rest);
            }
        }
    }
}

//! Rows that are not finite under a mask, computed again from what they see alone: in a tile, zero times what is hidden
//! counts too, and is NaN where that is infinite or NaN.

use super::rows::is_finite;
use super::{Attention, Gradients, Planes};
use crate::dtype::DType;
use crate::ops::pointwise::Float;

/// A key that a query sees.
struct Term<T> {
    key: usize,
    weight: T,
    /// 0 where dropout drops it.
    factor: T,
}

/// Row `r` of the plane at `p`.
unsafe fn row<T: Float>(of: &Planes, p: *const u8, r: usize, width: usize) -> Vec<T> {
    let mut to = vec![T::default(); width];
    // SAFETY: the row lies inside the plane, and `to` has room for it.
    unsafe { of.load(p, r..r + 1, width, to.as_mut_ptr(), width) };
    to
}

fn inner<T: Float>(a: &[T], b: &[T]) -> T {
    let products = a.iter().zip(b).map(|(&a, &b)| a * b);
    products.fold(T::default(), |s, v| s + v)
}

fn add<T: Float>(to: &mut [T], times: T, x: &[T]) {
    to.iter_mut().zip(x).for_each(|(t, &x)| *t += times * x);
}

impl Attention<'_> {
    /// Whether any query may be kept from a key.
    pub fn hides(&self) -> bool {
        self.mask.is_some() || self.causal
    }

    /// What query `i`, `q` times the scale, sees; `top` and `inverse` are its row's statistics.
    unsafe fn terms<T: Float>(
        &self,
        (batch, head, i): (usize, usize, usize),
        q: &[T],
        (top, inverse): (T, T),
    ) -> Vec<Term<T>> {
        // SAFETY: batch, head and row lie inside the planes, whose rows have these widths.
        unsafe {
            let of_row = |p: &Planes| row::<T>(p, p.plane(batch, head), i, self.keys);
            let mask = self.mask.as_ref().map(|m| (m.dtype, of_row(m)));
            let factors = self.factor.as_ref().map(of_row);
            let plane = self.k.plane(batch, head / self.group);
            let mut terms = Vec::new();
            for key in 0..self.seen(i + 1) {
                let bias = match &mask {
                    Some((DType::Bool, m)) if m[key] == T::default() => continue,
                    Some((DType::Bool, _)) | None => T::default(),
                    Some((_, m)) if m[key] == T::lit(f64::NEG_INFINITY) => continue,
                    Some((_, m)) => m[key],
                };
                let score = inner(q, &row(&self.k, plane, key, self.width)) + bias;
                terms.push(Term {
                    key,
                    weight: (score - top).decay() * inverse,
                    factor: factors.as_ref().map_or(T::lit(1.0), |f| f[key]),
                });
            }
            terms
        }
    }

    /// The result of query `i`, as [`terms`](Self::terms) takes it.
    ///
    /// # Safety
    /// The planes have this row; the machine may be any.
    #[cold]
    pub unsafe fn seen_row<T: Float>(
        &self,
        at: (usize, usize, usize),
        q: &[T],
        stats: (T, T),
        to: &mut [T],
    ) {
        to.fill(T::default());
        // SAFETY: the planes have this row, and its keys and values.
        unsafe {
            let plane = self.v.plane(at.0, at.1 / self.group);
            for t in self.terms(at, q, stats) {
                let v = row(&self.v, plane, t.key, self.value_width);
                add(to, t.weight * t.factor, &v);
            }
        }
    }

    /// Writes again the gradients of a head of keys, and of the heads of queries that share it, where they are
    /// not finite.
    ///
    /// # Safety
    /// The planes have these heads, of which this thread alone writes.
    #[cold]
    pub unsafe fn seen_gradients<T: Float>(&self, to: &Gradients<T>, batch: usize, head: usize) {
        let (e, ev, scale) = (self.width, self.value_width, T::lit(self.scale));
        // SAFETY: the planes have these heads, of which this thread alone writes; rows are inside the planes.
        unsafe {
            let mend = |p: &Planes, plane: *mut u8, r: usize, new: &[T]| {
                if !is_finite(&row::<T>(p, plane, r, new.len())) {
                    p.store(plane, r, new.len(), new.as_ptr());
                }
            };
            let (k, v) = (self.k.plane(batch, head), self.v.plane(batch, head));
            let mut dk = vec![T::default(); self.keys * e];
            let mut dv = vec![T::default(); self.keys * ev];
            for own in head * self.group..(head + 1) * self.group {
                let (q, g) = (self.q.plane(batch, own), to.g.plane(batch, own));
                let dq = to.dq.plane(batch, own);
                for i in 0..self.queries {
                    let mut q: Vec<T> = row(&self.q, q, i, e);
                    q.iter_mut().for_each(|v| *v = *v * scale);
                    let g: Vec<T> = row(&to.g, g, i, ev);
                    let at = 2 * ((batch * self.heads + own) * self.queries + i);
                    let terms = self.terms((batch, own, i), &q, (to.stats[at], to.stats[at + 1]));
                    let of_weight = |t: &Term<T>| inner(&g, &row(&self.v, v, t.key, ev)) * t.factor;
                    let d: Vec<T> = terms.iter().map(of_weight).collect();
                    let of_weights = terms.iter().zip(&d).map(|(t, &d)| t.weight * d);
                    let dot = of_weights.fold(T::default(), |s, v| s + v);
                    let mut sum = vec![T::default(); e];
                    for (t, d) in terms.iter().zip(d) {
                        let d = t.weight * (d - dot);
                        add(&mut sum, d * scale, &row(&self.k, k, t.key, e));
                        add(&mut dk[t.key * e..][..e], d, &q);
                        add(&mut dv[t.key * ev..][..ev], t.weight * t.factor, &g);
                    }
                    mend(&to.dq, dq, i, &sum);
                }
            }
            let (to_k, to_v) = (to.dk.plane(batch, head), to.dv.plane(batch, head));
            for j in 0..self.keys {
                mend(&to.dk, to_k, j, &dk[j * e..][..e]);
                mend(&to.dv, to_v, j, &dv[j * ev..][..ev]);
            }
        }
    }
}

//! The gradients of attention, in tiles of the weights that are made again.

use super::product::{Product, PAD};
use super::rows::{each, inner, is_finite, transpose, weigh};
use super::{Attention, Planes, Room, GRAIN, KEYS, QUERIES};
use crate::alloc;
use crate::cpu::pool::{look, parallel_for, Ptr};
use crate::cpu::simd::Exp;
use crate::ops::pointwise::Float;
use crate::{compiled, per_isa};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the gradients are computed from and where they go.
pub struct Gradients<'a, T> {
    /// The gradient of the output and the output.
    pub g: Planes<'a>,
    pub y: Planes<'a>,
    /// What [`forward`] gave of each row.
    pub stats: &'a [T],
    pub dq: Planes<'a>,
    pub dk: Planes<'a>,
    pub dv: Planes<'a>,
}

/// Keys `from..to` of one head of keys, with the memory of its thread.
struct Head<'a, T> {
    batch: usize,
    head: usize,
    from: usize,
    to: usize,
    /// Sums of g * y for each query of all heads.
    dots: *const T,
    /// Where the queries' gradients go if other threads have keys of this head: one plane for
    /// each query head.
    partial: *mut T,
    /// Heads of keys whose gradients are not finite.
    odd: &'a [AtomicBool],
    q: *mut T,
    g: *mut T,
    keys: *mut T,
    keys_transposed: *mut T,
    values: *mut T,
    values_transposed: *mut T,
    weights: *mut T,
    scores: *mut T,
    buffer: *mut T,
    dq: *mut T,
    dk: *mut T,
    dv: *mut T,
}

#[inline(always)]
unsafe fn backward_head<T: Float, V: Exp<Elem = T>>(a: &Attention, g: &Gradients<T>, w: &Head<T>) {
    // SAFETY: planes hold what `a` says, and parts of the room the sizes of a tile and a block; the
    // caller has the instructions of `V`.
    unsafe {
        let (e, ev) = (a.width, a.value_width);
        let (ep, evp) = (e.next_multiple_of(PAD), ev.next_multiple_of(PAD));
        let (zero, scale) = (T::default(), T::lit(a.scale));
        let (k, v) = (a.k.plane(w.batch, w.head), a.v.plane(w.batch, w.head));
        let keys = w.to - w.from;
        // One block has all the weights of a row: the sum of their gradients is exact here, while
        // from the output it carries the output's rounding.
        let alone = a.keys <= KEYS;
        let mut finite = true;
        std::slice::from_raw_parts_mut(w.dk, keys * ep).fill(zero);
        std::slice::from_raw_parts_mut(w.dv, keys * evp).fill(zero);
        for head in w.head * a.group..(w.head + 1) * a.group {
            let (q, go) = (a.q.plane(w.batch, head), g.g.plane(w.batch, head));
            let mask = a.mask.map_or(q, |m| m.plane(w.batch, head));
            let factor = a.factor.map_or(q, |f| f.plane(w.batch, head));
            let stats = (w.batch * a.heads + head) * a.queries;
            std::slice::from_raw_parts_mut(w.dq, a.queries * ep).fill(zero);
            for k0 in (w.from..w.to).step_by(KEYS) {
                look();
                let n = KEYS.min(w.to - k0);
                a.k.load(k, k0..k0 + n, e, w.keys, ep);
                a.v.load(v, k0..k0 + n, ev, w.values, evp);
                transpose::<T, V>(n, e, w.keys, ep, w.keys_transposed);
                transpose::<T, V>(n, ev, w.values, evp, w.values_transposed);
                let (dk, dv) = (w.dk.add((k0 - w.from) * ep), w.dv.add((k0 - w.from) * evp));
                for i0 in (0..a.queries).step_by(QUERIES) {
                    let m = QUERIES.min(a.queries - i0);
                    if k0 >= a.seen(i0 + m) {
                        continue;
                    }
                    a.q.load(q, i0..i0 + m, e, w.q, ep);
                    each(std::slice::from_raw_parts_mut(w.q, m * ep), |v| {
                        *v = *v * scale
                    });
                    g.g.load(go, i0..i0 + m, ev, w.g, evp);
                    for (strip, n) in a.strips((i0, m), (k0, n)) {
                        let (np, at) = (n.next_multiple_of(PAD), strip.start);
                        // Columns past `n` hold what the last block left; nothing reads what they give.
                        let scores = Product {
                            m: strip.len(),
                            n: np,
                            k: e,
                            a: w.q.add(at * ep).cast_const(),
                            a_steps: (ep, 1),
                            b: w.keys_transposed.cast_const(),
                            ldb: KEYS,
                            c: w.weights.add(at * KEYS),
                            ldc: KEYS,
                            add: false,
                        };
                        scores.run::<V>();
                        Product {
                            k: ev,
                            a: w.g.add(at * evp).cast_const(),
                            a_steps: (evp, 1),
                            b: w.values_transposed.cast_const(),
                            c: w.scores.add(at * KEYS),
                            ..scores
                        }
                        .run::<V>();
                        for r in strip.clone() {
                            let i = i0 + r;
                            let p = std::slice::from_raw_parts_mut(w.weights.add(r * KEYS), np);
                            let d = std::slice::from_raw_parts_mut(w.scores.add(r * KEYS), np);
                            a.finish_row(p, n, (i, k0), mask, w.buffer);
                            let row = stats + i;
                            let (top, inverse) = (g.stats[2 * row], g.stats[2 * row + 1]);
                            weigh::<T, V>(p, top);
                            each(p, |v| *v = *v * inverse);
                            let mut dot = *w.dots.add(row);
                            if let Some(f) = &a.factor {
                                a.load_factors(f, factor, (i, k0), n, w.buffer);
                                let f = std::slice::from_raw_parts(w.buffer, n);
                                d.iter_mut().zip(f).for_each(|(d, &f)| *d = *d * f);
                                if alone {
                                    dot = inner(&p[..n], &d[..n]);
                                }
                                for ((d, p), &f) in d.iter_mut().zip(&mut *p).zip(f) {
                                    *d = *p * (*d - dot);
                                    *p = *p * f;
                                }
                            } else {
                                if alone {
                                    dot = inner(&p[..n], &d[..n]);
                                }
                                for (d, p) in d.chunks_exact_mut(PAD).zip(p.chunks_exact(PAD)) {
                                    d.iter_mut().zip(p).for_each(|(d, &p)| *d = p * (*d - dot));
                                }
                            }
                        }
                        Product {
                            m: strip.len(),
                            n: ep,
                            k: n,
                            a: w.scores.add(at * KEYS).cast_const(),
                            a_steps: (KEYS, 1),
                            b: w.keys.cast_const(),
                            ldb: ep,
                            c: w.dq.add((i0 + at) * ep),
                            ldc: ep,
                            add: true,
                        }
                        .run::<V>();
                    }
                    // Keys of a strip are seen by its queries and those after them.
                    for (strip, _) in a.strips((k0, n), (i0, m)).filter(|(s, _)| s.start < m) {
                        let crossed = strip.len() < n;
                        let first = if crossed { strip.start } else { 0 };
                        let transposed = Product {
                            m: strip.len(),
                            n: evp,
                            k: m - first,
                            a: w.weights.add(first * KEYS + strip.start).cast_const(),
                            a_steps: (1, KEYS),
                            b: w.g.add(first * evp).cast_const(),
                            ldb: evp,
                            c: dv.add(strip.start * evp),
                            ldc: evp,
                            add: true,
                        };
                        transposed.run::<V>();
                        Product {
                            n: ep,
                            a: w.scores.add(first * KEYS + strip.start).cast_const(),
                            b: w.q.add(first * ep).cast_const(),
                            ldb: ep,
                            c: dk.add(strip.start * ep),
                            ldc: ep,
                            ..transposed
                        }
                        .run::<V>();
                    }
                }
            }
            let dq = std::slice::from_raw_parts_mut(w.dq, a.queries * ep);
            each(dq, |v| *v = *v * scale);
            finite &= is_finite(dq);
            if w.partial.is_null() {
                let to = g.dq.plane(w.batch, head);
                for i in 0..a.queries {
                    g.dq.store(to, i, e, w.dq.add(i * ep).cast_const());
                }
            } else {
                let to = w.partial.add((head - w.head * a.group) * a.queries * ep);
                std::ptr::copy_nonoverlapping(w.dq, to, a.queries * ep);
            }
        }
        finite &= is_finite(std::slice::from_raw_parts(w.dk, keys * ep));
        finite &= is_finite(std::slice::from_raw_parts(w.dv, keys * evp));
        if !finite {
            let head = w.batch * (a.heads / a.group) + w.head;
            w.odd[head].store(true, Ordering::Relaxed);
        }
        let (dk, dv) = (g.dk.plane(w.batch, w.head), g.dv.plane(w.batch, w.head));
        for j in 0..keys {
            g.dk.store(dk, w.from + j, e, w.dk.add(j * ep).cast_const());
            g.dv.store(dv, w.from + j, ev, w.dv.add(j * evp).cast_const());
        }
    }
}

best!(backward_best, backward_head(a: &Attention, g: &Gradients<T>, w: &Head<T>));

/// The gradients of queries, keys and values.
///
/// # Safety
/// As for [`forward`].
pub unsafe fn backward<T: Float>(a: &Attention, g: &Gradients<T>) {
    // SAFETY: rows, heads and their parts exist and are written by one thread each; the room has
    // the sizes of a tile and a block.
    unsafe {
        let (e, ev) = (a.width, a.value_width);
        let (ep, evp) = (e.next_multiple_of(PAD), ev.next_multiple_of(PAD));
        let (heads, key_heads) = (a.batch * a.heads, a.batch * a.heads / a.group);
        let rows = heads * a.queries;
        let mut dots = alloc::full(T::default(), rows);
        let to = Ptr::new(dots.as_mut_ptr());
        parallel_for(rows, (1 << 14) / ev.max(1) + 1, |range| {
            let mut room = Room::<T>::new(2 * evp);
            let (x, y) = (room.take(evp), room.take(evp));
            for r in range {
                let (h, i) = (r / a.queries, r % a.queries);
                let (b, h) = (h / a.heads, h % a.heads);
                g.g.load(g.g.plane(b, h), i..i + 1, ev, x, evp);
                g.y.load(g.y.plane(b, h), i..i + 1, ev, y, evp);
                let dot = (0..ev).fold(0.0, |s, j| s + (*x.add(j)).to_f64() * (*y.add(j)).to_f64());
                *to.at(r) = T::of_f64(dot);
            }
        });
        let odd: Vec<AtomicBool> = (0..key_heads).map(|_| false.into()).collect();
        // Few heads are cut along their keys; the parts depend on sizes alone.
        let blocks = a.keys.div_ceil(KEYS);
        let splits = (16 / key_heads.max(1)).clamp(1, blocks.clamp(1, 8));
        let span = blocks.div_ceil(splits) * KEYS;
        let plane = a.queries * ep;
        let mut partial = vec![
            T::default();
            if splits > 1 {
                splits * heads * plane
            } else {
                0
            }
        ];
        let parts = Ptr::new(partial.as_mut_ptr());
        let work = a.group * a.queries * span.min(a.keys) * (ep + evp) * 2;
        parallel_for(key_heads * splits, GRAIN / work.max(1) + 1, |range| {
            let (tile, block) = (QUERIES.min(a.queries), KEYS.min(a.keys));
            let keys = span.min(a.keys);
            let mut room = Room::new(
                (tile + block + keys) * (ep + evp) + KEYS * (e + ev + 2 * tile + 1) + plane,
            );
            let mut w = Head {
                batch: 0,
                head: 0,
                from: 0,
                to: 0,
                dots: dots.as_ptr(),
                partial: std::ptr::null_mut(),
                odd: &odd,
                q: room.take(tile * ep),
                g: room.take(tile * evp),
                keys: room.take(block * ep),
                values: room.take(block * evp),
                keys_transposed: room.take(KEYS * e),
                values_transposed: room.take(KEYS * ev),
                weights: room.take(KEYS * tile),
                scores: room.take(KEYS * tile),
                buffer: room.take(KEYS),
                dq: room.take(plane),
                dk: room.take(keys * ep),
                dv: room.take(keys * evp),
            };
            for unit in range {
                let (h, s) = (unit / splits, unit % splits);
                let per = a.heads / a.group;
                (w.batch, w.head) = (h / per, h % per);
                (w.from, w.to) = ((s * span).min(a.keys), ((s + 1) * span).min(a.keys));
                if splits > 1 {
                    w.partial = parts.at((s * heads + h * a.group) * plane);
                }
                backward_best(a, g, &w);
            }
        });
        if splits > 1 && plane > 0 {
            add_parts(a, g, &partial, heads * plane);
        }
        if !a.hides() {
            return;
        }
        parallel_for(key_heads, 1, |range| {
            for h in range.filter(|&h| odd[h].load(Ordering::Relaxed)) {
                let per = a.heads / a.group;
                a.seen_gradients(g, h / per, h % per);
            }
        });
    }
}

/// Adds the parts of the queries' gradients, each of `size` elements for all heads.
unsafe fn add_parts<T: Float>(a: &Attention, g: &Gradients<T>, partial: &[T], size: usize) {
    let (e, ep) = (a.width, a.width.next_multiple_of(PAD));
    // SAFETY: rows are those of the plane, each written by one thread.
    unsafe {
        let rows = a.batch * a.heads * a.queries;
        parallel_for(rows, (1 << 13) / ep.max(1) + 1, |range| {
            let mut row = alloc::full(T::default(), ep);
            for r in range {
                row.fill(T::default());
                for part in partial.chunks_exact(size) {
                    let from = &part[r * ep..(r + 1) * ep];
                    row.iter_mut().zip(from).for_each(|(a, &b)| *a += b);
                }
                let (h, i) = (r / a.queries, r % a.queries);
                let to = g.dq.plane(h / a.heads, h % a.heads);
                g.dq.store(to, i, e, row.as_ptr());
            }
        });
    }
}

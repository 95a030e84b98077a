//! Attention in tiles: scores never leave the cache. Dao et al. 2022, arXiv:2205.14135.

pub mod flash;
pub mod product;
mod rows;
mod seen;

use crate::alloc;
use crate::cpu::convert::{load, store};
use crate::cpu::pool::{look, parallel_for, Ptr};
use crate::cpu::simd::{Exp, MOST};
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::tensor::Tensor;
use crate::{compiled, per_isa};
use product::{Product, PAD};
use rows::{each, is_finite, transpose, weigh};

/// Compiles a kernel for the vectors of each instruction set and calls the best one.
macro_rules! best {
    ($name:ident, $inner:ident($($arg:ident: $t:ty),*)) => {
        unsafe fn $name<T: Float>($($arg: $t),*) {
            compiled! { avx2:
                unsafe fn avx2<T: Float>($($arg: $t),*) {
                    // SAFETY: planes, sizes and room are as `a` says; the caller has AVX2.
                    unsafe { $inner::<T, T::Avx2>($($arg),*) }
                }
            }
            compiled! { avx512:
                unsafe fn avx512<T: Float>($($arg: $t),*) {
                    // SAFETY: planes, sizes and room are as `a` says; the caller has AVX-512.
                    unsafe { $inner::<T, T::Avx512>($($arg),*) }
                }
            }
            // SAFETY: planes, sizes and room are as `a` says; the best set is the machine's.
            unsafe {
                per_isa!(match avx512 => avx512::<T>($($arg),*), avx2 => avx2::<T>($($arg),*),
                    neon => $inner::<T, T::Neon>($($arg),*),
                    portable => $inner::<T, T::Portable>($($arg),*))
            }
        }
    };
}

// After the macro, which it needs.
mod backward;

pub use backward::{backward, Gradients};

/// Rows of queries and of keys in a tile of scores.
const QUERIES: usize = 64;
const KEYS: usize = 64;
/// Rows of a tile that the diagonal crosses which are computed up to the last key that they see. Tiles of
/// queries and of keys begin at its multiples, so that it crosses those alone that begin with the same number.
const STRIP: usize = 16;
const _: () = assert!(QUERIES == KEYS && KEYS.is_multiple_of(STRIP) && STRIP.is_multiple_of(PAD));
/// Rows of queries that share a packed block of keys.
const CHUNK: usize = 256;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 20;

/// Matrices in memory: the last two dimensions of a tensor, batches and heads before them.
#[derive(Clone, Copy)]
pub struct Planes<'a> {
    ptr: *mut u8,
    dtype: DType,
    /// Sizes and steps in bytes of the dimensions before the heads.
    lead: (&'a [usize], &'a [isize]),
    head: isize,
    row: isize,
    col: isize,
}

// SAFETY: threads read, or write disjoint rows.
unsafe impl Sync for Planes<'_> {}

impl<'a> Planes<'a> {
    /// The planes of `t`, seen as a tensor of `shape` with the given steps in elements.
    pub fn new(t: &Tensor, shape: &'a [usize], steps: &'a mut [isize]) -> Planes<'a> {
        let size = t.dtype().size() as isize;
        steps.iter_mut().for_each(|s| *s *= size);
        let n = shape.len();
        let (lead, last) = steps.split_at(n.saturating_sub(3));
        let [head, row, col] = match *last {
            [h, r, c] => [h, r, c],
            [r, c] => [0, r, c],
            _ => [0; 3],
        };
        Planes {
            ptr: t.bytes_ptr(),
            dtype: t.dtype(),
            lead: (&shape[..lead.len()], lead),
            head,
            row,
            col,
        }
    }

    unsafe fn plane(&self, mut batch: usize, head: usize) -> *mut u8 {
        // SAFETY: batch and head lie inside the tensor, and the other dimensions count from zero.
        unsafe {
            let mut at = head as isize * self.head;
            for (&n, &s) in self.lead.0.iter().zip(self.lead.1).rev() {
                at += (batch % n) as isize * s;
                batch /= n;
            }
            self.ptr.offset(at)
        }
    }

    #[inline(always)]
    unsafe fn load<T: Float>(
        &self,
        p: *const u8,
        rows: std::ops::Range<usize>,
        width: usize,
        to: *mut T,
        ld: usize,
    ) {
        // SAFETY: the rows lie inside the plane at `p`, and `to` has room for rows of `ld`
        // elements, `width` of them read.
        unsafe {
            let size = std::mem::size_of::<T>() as isize;
            let direct = self.dtype == T::DTYPE && self.col == size;
            for (i, r) in rows.enumerate() {
                let (from, to) = (p.offset(r as isize * self.row), to.add(i * ld));
                if direct && width.is_multiple_of(PAD) {
                    // In vectors: a call for each row would cost more than the row.
                    for j in (0..width).step_by(PAD) {
                        let block = from.cast::<T>().add(j).cast::<[T; PAD]>().read_unaligned();
                        to.add(j).cast::<[T; PAD]>().write_unaligned(block);
                    }
                } else {
                    load(self.dtype, from, self.col, width, to);
                }
                std::slice::from_raw_parts_mut(to.add(width), ld - width).fill(T::default());
            }
        }
    }

    /// Row `r` and the step to the next one, if rows are contiguous elements of `T`.
    #[inline(always)]
    unsafe fn in_place<T: Float>(&self, p: *const u8, r: usize) -> Option<(*const T, usize)> {
        let size = size_of::<T>() as isize;
        let contiguous = self.dtype == T::DTYPE && self.col == size && self.row >= 0;
        // SAFETY: row `r` lies inside the plane at `p`.
        contiguous.then(|| unsafe {
            let row = p.offset(r as isize * self.row).cast();
            (row, (self.row / size) as usize)
        })
    }

    unsafe fn store<T: Float>(&self, p: *mut u8, r: usize, width: usize, from: *const T) {
        // SAFETY: row `r` lies inside the plane at `p`, which this thread alone writes; `from` has
        // `width` elements.
        unsafe {
            let to = p.offset(r as isize * self.row);
            store(self.dtype, to, self.col, width, from);
        }
    }
}

/// What forward and backward share.
#[derive(Clone, Copy)]
pub struct Attention<'a> {
    pub batch: usize,
    /// Heads of queries, and how many of them share a head of keys.
    pub heads: usize,
    pub group: usize,
    pub queries: usize,
    pub keys: usize,
    /// The width of queries and keys, and that of values.
    pub width: usize,
    pub value_width: usize,
    pub scale: f64,
    pub causal: bool,
    pub q: Planes<'a>,
    pub k: Planes<'a>,
    pub v: Planes<'a>,
    /// Added to scores; a bool keeps them where it is true.
    pub mask: Option<Planes<'a>>,
    /// Factors of the weights: 0 where dropout drops.
    pub factor: Option<Planes<'a>>,
}

/// Memory of one thread, cut into pieces.
struct Room<T>(Vec<T>, usize);

impl<T: Float> Room<T> {
    fn new(n: usize) -> Self {
        Room(alloc::full(T::default(), n), 0)
    }
    fn take(&mut self, n: usize) -> *mut T {
        let at = self.1;
        self.1 += n;
        assert!(self.1 <= self.0.len());
        // SAFETY: the piece ends inside the room.
        unsafe { self.0.as_mut_ptr().add(at) }
    }
}

impl Attention<'_> {
    /// Keys that the rows below `end` see.
    fn seen(&self, end: usize) -> usize {
        if self.causal {
            self.keys.min(end)
        } else {
            self.keys
        }
    }

    /// The rows of a tile, `m` queries from `i` on by `n` keys from `k0` on, that are computed together, and
    /// how many of its keys they see.
    #[inline(always)]
    fn strips(
        &self,
        (i, m): (usize, usize),
        (k0, n): (usize, usize),
    ) -> impl Iterator<Item = (std::ops::Range<usize>, usize)> {
        let crossed = self.causal && i == k0;
        (0..m)
            .step_by(if crossed { STRIP } else { m })
            .map(move |r| {
                let end = if crossed { m.min(r + STRIP) } else { m };
                (r..end, if crossed { n.min(end) } else { n })
            })
    }

    /// Masks a row of `n` scores, of query `i` from key `k0` on; `pad` elements follow.
    #[inline(always)]
    unsafe fn finish_row<T: Float>(
        &self,
        row: &mut [T],
        n: usize,
        (i, k0): (usize, usize),
        mask: *const u8,
        buffer: *mut T,
    ) {
        // SAFETY: the mask's plane at `mask` has keys `k0..k0 + n` of query `i`, and `buffer` room
        // for `n`.
        unsafe {
            let low = T::lit(f64::NEG_INFINITY);
            if let Some(m) = &self.mask {
                let from = mask.offset(i as isize * m.row + k0 as isize * m.col);
                load(m.dtype, from, m.col, n, buffer);
                let values = std::slice::from_raw_parts(buffer, n);
                if m.dtype == DType::Bool {
                    for (v, &m) in row.iter_mut().zip(values) {
                        *v = if m == T::default() { low } else { *v };
                    }
                } else {
                    // What is hidden may be NaN.
                    for (v, &m) in row.iter_mut().zip(values) {
                        *v = if m == low { low } else { *v + m };
                    }
                }
            }
            let end = if self.causal {
                n.min((i + 1).saturating_sub(k0))
            } else {
                n
            };
            row[end..].fill(low);
        }
    }

    #[inline(always)]
    unsafe fn load_factors<T: Float>(
        &self,
        f: &Planes,
        plane: *const u8,
        (i, k0): (usize, usize),
        n: usize,
        buffer: *mut T,
    ) {
        // SAFETY: the factors' plane has keys `k0..k0 + n` of query `i`, and `buffer` room for `n`.
        unsafe {
            let from = plane.offset(i as isize * f.row + k0 as isize * f.col);
            load(f.dtype, from, f.col, n, buffer);
        }
    }
}

/// Queries `from..from + rows` of one head, with the memory of its thread.
struct Rows<T> {
    batch: usize,
    head: usize,
    from: usize,
    rows: usize,
    q: *mut T,
    out: *mut T,
    top: *mut T,
    total: *mut T,
    keys: *mut T,
    keys_transposed: *mut T,
    values: *mut T,
    scores: *mut T,
    buffer: *mut T,
}

#[inline(always)]
unsafe fn forward_rows<T: Float, V: Exp<Elem = T>>(
    a: &Attention,
    w: &Rows<T>,
    y: &Planes,
    stats: *mut T,
) {
    // SAFETY: planes hold what `a` says, and parts of the room the sizes of a chunk and a block;
    // the caller has the instructions of `V`.
    unsafe {
        let (e, ev, evp) = (a.width, a.value_width, a.value_width.next_multiple_of(PAD));
        let (q, k, v) = (
            a.q.plane(w.batch, w.head),
            a.k.plane(w.batch, w.head / a.group),
            a.v.plane(w.batch, w.head / a.group),
        );
        let mask = a.mask.map_or(q, |m| m.plane(w.batch, w.head));
        let factor = a.factor.map_or(q, |f| f.plane(w.batch, w.head));
        let (low, zero) = (T::lit(f64::NEG_INFINITY), T::default());
        a.q.load(q, w.from..w.from + w.rows, e, w.q, e);
        let scale = T::lit(a.scale);
        std::slice::from_raw_parts_mut(w.q, w.rows * e)
            .iter_mut()
            .for_each(|v| *v = *v * scale);
        for r in 0..w.rows {
            *w.top.add(r) = low;
            *w.total.add(r) = zero;
        }
        std::slice::from_raw_parts_mut(w.out, w.rows * evp).fill(zero);
        for k0 in (0..a.seen(w.from + w.rows)).step_by(KEYS) {
            look();
            let n = KEYS.min(a.keys - k0);
            let np = n.next_multiple_of(PAD);
            let (keys, ldk) = match a.k.in_place(k, k0) {
                Some(rows) => rows,
                None => {
                    a.k.load(k, k0..k0 + n, e, w.keys, e);
                    (w.keys.cast_const(), e)
                }
            };
            transpose::<T, V>(n, e, keys, ldk, w.keys_transposed);
            let (values, ldv) = match a.v.in_place(v, k0).filter(|_| ev == evp) {
                Some(rows) => rows,
                None => {
                    a.v.load(v, k0..k0 + n, ev, w.values, evp);
                    (w.values.cast_const(), evp)
                }
            };
            for i0 in (0..w.rows).step_by(QUERIES) {
                let m = QUERIES.min(w.rows - i0);
                if k0 >= a.seen(w.from + i0 + m) {
                    continue;
                }
                let out = w.out.add(i0 * evp);
                let (tops, totals) = (
                    std::slice::from_raw_parts_mut(w.top.add(i0), m),
                    std::slice::from_raw_parts_mut(w.total.add(i0), m),
                );
                let tile = ((w.from + i0, m), (k0, n));
                // What is done once a row is done for as many rows as a vector has lanes, or for all.
                let (bare, visible) = (a.mask.is_none(), a.seen(w.from + i0 + 1));
                let masked = !bare || n < np || visible < k0 + n;
                let mut peaks = [low; QUERIES];
                for (strip, n) in a.strips(tile.0, tile.1) {
                    let np = n.next_multiple_of(PAD);
                    Product {
                        m: strip.len(),
                        n: np,
                        k: e,
                        a: w.q.add((i0 + strip.start) * e).cast_const(),
                        a_steps: (e, 1),
                        b: w.keys_transposed.cast_const(),
                        ldb: KEYS,
                        c: w.scores.add(strip.start * KEYS),
                        ldc: KEYS,
                        add: false,
                    }
                    .run::<V>();
                    for r0 in strip.clone().step_by(V::LANES) {
                        let rows = r0..strip.end.min(r0 + V::LANES);
                        let mut tops = [V::splat(low); MOST];
                        for r in rows.clone() {
                            let row = std::slice::from_raw_parts_mut(w.scores.add(r * KEYS), np);
                            if masked {
                                a.finish_row(row, n, (w.from + i0 + r, k0), mask, w.buffer);
                            }
                            let mut top = tops[r - r0];
                            for block in row.chunks_exact(V::LANES) {
                                top = V::load(block.as_ptr()).max(top);
                            }
                            tops[r - r0] = top;
                        }
                        let top = rows::largest(&mut tops);
                        top.store_first(peaks.as_mut_ptr().add(r0), rows.len());
                    }
                }
                let mut shrink = [zero; QUERIES];
                for ((peak, old), shrink) in peaks.iter_mut().zip(&mut *tops).zip(&mut shrink) {
                    let new = if *peak > *old { *peak } else { *old };
                    // A row of minus infinities stays zero.
                    *peak = if new == low { zero } else { new };
                    *shrink = (*old - *peak).decay();
                    *old = new;
                }
                let mut sums = [zero; QUERIES];
                for (strip, n) in a.strips(tile.0, tile.1) {
                    let np = n.next_multiple_of(PAD);
                    for r0 in strip.clone().step_by(V::LANES) {
                        let rows = r0..strip.end.min(r0 + V::LANES);
                        let mut all = [V::splat(zero); MOST];
                        for r in rows.clone() {
                            let row = std::slice::from_raw_parts_mut(w.scores.add(r * KEYS), np);
                            all[r - r0] = weigh::<T, V>(row, peaks[r]);
                            if let Some(f) = &a.factor {
                                a.load_factors(f, factor, (w.from + i0 + r, k0), n, w.buffer);
                                let f = std::slice::from_raw_parts(w.buffer, n);
                                row.iter_mut().zip(f).for_each(|(v, &f)| *v = *v * f);
                            }
                            if shrink[r] != T::lit(1.0) {
                                let out = std::slice::from_raw_parts_mut(out.add(r * evp), evp);
                                let shrink = shrink[r];
                                each(out, |v| *v = *v * shrink);
                            }
                        }
                        let sum = rows::sums(&mut all);
                        sum.store_first(sums.as_mut_ptr().add(r0), rows.len());
                    }
                    Product {
                        m: strip.len(),
                        n: evp,
                        k: n,
                        a: w.scores.add(strip.start * KEYS).cast_const(),
                        a_steps: (KEYS, 1),
                        b: values,
                        ldb: ldv,
                        c: out.add(strip.start * evp),
                        ldc: evp,
                        add: true,
                    }
                    .run::<V>();
                }
                for ((total, &shrink), &sum) in totals.iter_mut().zip(&shrink).zip(&sums) {
                    *total = *total * shrink + sum;
                }
            }
        }
        let to = y.plane(w.batch, w.head);
        let stats = stats.add(((w.batch * a.heads + w.head) * a.queries + w.from) * 2);
        for r in 0..w.rows {
            let (top, total) = (*w.top.add(r), *w.total.add(r));
            let k = if total == zero {
                zero
            } else {
                T::lit(1.0) / total
            };
            let row = std::slice::from_raw_parts_mut(w.out.add(r * evp), evp);
            each(row, |v| *v = *v * k);
            let top = if top == low { zero } else { top };
            if a.hides() && !is_finite(row) {
                let at = (w.batch, w.head, w.from + r);
                let q = std::slice::from_raw_parts(w.q.add(r * e), e);
                a.seen_row(at, q, (top, k), &mut row[..ev]);
            }
            y.store(to, w.from + r, ev, row.as_ptr());
            // Apart they are exact where their sum, the log-sum-exp, would be rounded.
            *stats.add(2 * r) = top;
            *stats.add(2 * r + 1) = k;
        }
    }
}

best!(forward_best, forward_rows(a: &Attention, w: &Rows<T>, y: &Planes, stats: *mut T));

/// The output, and for each row of it the largest score and the reciprocal sum of exponentials.
///
/// # Safety
/// Planes and sizes name elements in memory; those of the outputs are this call's own.
pub unsafe fn forward<T: Float>(a: &Attention, y: &Planes, stats: &mut [T]) {
    let heads = a.batch * a.heads;
    // Results do not depend on the size of chunks.
    let chunk = if heads * a.queries.div_ceil(CHUNK) >= 16 {
        CHUNK
    } else {
        QUERIES
    };
    let chunks = a.queries.div_ceil(chunk);
    let (e, evp) = (a.width, a.value_width.next_multiple_of(PAD));
    let work = chunk.min(a.queries) * a.keys * (e + evp);
    let stats = Ptr::new(stats.as_mut_ptr());
    parallel_for(heads * chunks, GRAIN / work.max(1) + 1, |range| {
        let (rows, tile) = (chunk.min(a.queries), QUERIES.min(a.queries));
        let block = KEYS.min(a.keys);
        let mut room = Room::new(rows * (e + evp + 2) + block * (e + evp) + KEYS * (e + tile + 1));
        let mut w = Rows {
            batch: 0,
            head: 0,
            from: 0,
            rows: 0,
            q: room.take(rows * e),
            out: room.take(rows * evp),
            top: room.take(rows),
            total: room.take(rows),
            keys: room.take(block * e),
            values: room.take(block * evp),
            keys_transposed: room.take(KEYS * e),
            scores: room.take(KEYS * tile),
            buffer: room.take(KEYS),
        };
        for unit in range {
            let (h, c) = (unit / chunks, unit % chunks);
            (w.batch, w.head) = (h / a.heads, h % a.heads);
            w.from = c * chunk;
            w.rows = chunk.min(a.queries - w.from);
            // SAFETY: units are heads and chunks that exist, and the room has the sizes of the
            // largest.
            unsafe { forward_best(a, &w, y, stats.at(0)) };
        }
    });
}

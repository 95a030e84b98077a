//! Normalisation over rows (layer, group, instance, RMS) and over columns (batch).
//!
//! A tensor is seen as (n, groups, d, inner); there is one weight for each (group, d). Rows are
//! the (d, inner) planes; columns are what one (group, d) selects.

mod columns;
mod vectors;

use crate::alloc;
use crate::cpu::elements::Element;
use crate::cpu::pointwise::fusion::{Fused, Workers};
use crate::cpu::pool::Ptr;
use crate::cpu::rows::{self, Data};
use crate::cpu::simd::{Simd, Vectors};
use crate::ops::pointwise::Float;
use crate::per_isa;
pub use columns::{Columns, Line};
use std::ops::Range;
use vectors::{each, Affine, Asking, Moments, Normal, Plain, Products, Same, Slope, Squares};

/// Rows that are normalised together, and their elements.
const ROWS: usize = 8;
const TOGETHER: usize = 1 << 11;
/// Lines of the results of rows up to this are asked for before they are written, and are still in the
/// first cache then.
const ASKED: usize = 1 << 11;
/// Rows longer than this have their mean corrected in the second pass.
const LONG: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub n: usize,
    pub groups: usize,
    pub d: usize,
    pub inner: usize,
}

impl Sizes {
    pub fn row(&self) -> usize {
        self.d * self.inner
    }
    pub fn rows(&self) -> usize {
        self.n * self.groups
    }
    pub fn channels(&self) -> usize {
        self.groups * self.d
    }
}

/// Normalisation of rows; `centered` also subtracts the mean.
pub struct Rows<'a, T> {
    pub s: Sizes,
    pub eps: f64,
    /// Whether rows without variance become zeros although eps is 0.
    pub stills: bool,
    pub centered: bool,
    pub x: Data,
    pub weight: Option<&'a [T]>,
    pub bias: Option<&'a [T]>,
    pub y: Data,
    /// Mean, reciprocal deviation and variance of each row.
    pub stats: [Ptr<T>; 3],
}

impl<T: Float> Rows<'_, T> {
    /// # Safety
    /// Tensors and slices have the sizes that `s` names; the outputs are this call's own.
    pub unsafe fn run(&self) {
        let count = self.s.rows() * self.s.row();
        // SAFETY: used in this call alone.
        let fused = unsafe { Fused::new(Some(self.x.ptr()), self.y.ptr(), count) };
        let workers = || fused.begin();
        rows::share_with(self.s.rows(), self.s.row(), workers, |range, workers| {
            // SAFETY: rows lie inside the tensors; those of different ranges are disjoint.
            unsafe { normal_rows(self, range, workers) }
        });
    }
}

per_isa! {
    unsafe fn normal_rows[T: Float; in V](job: &Rows<T>, range: Range<usize>, workers: &mut Workers) {
        // SAFETY: rows lie inside the tensors and belong to this thread.
        unsafe {
            let (s, len) = (job.s, job.s.row());
            let (mut bx, mut by) = (Vec::<T>::new(), Vec::<T>::new());
            // Short rows are taken several at a time, each step for all of them: a row's next step
            // waits for its last one.
            let most = (TOGETHER / len.max(1)).clamp(1, ROWS);
            let mut first = range.start;
            while first < range.end {
                let count = most.min(range.end - first);
                let span = first * len..(first + count) * len;
                workers.prologue(span.start, span.len());
                let xs = job.x.read(span.clone(), &mut bx).as_ptr();
                let ys = job.y.place(span.clone(), &mut by).as_mut_ptr();
                let (mut means, mut spreads) = ([T::default(); ROWS], [0.0; ROWS]);
                if job.centered {
                    for (j, mean) in means[..count].iter_mut().enumerate() {
                        let [sum] = vectors::sums::<V, 1>(len, &Plain(xs.add(j * len)));
                        *mean = T::of_f64(sum / len as f64);
                    }
                }
                for (j, (mean, v)) in means.iter_mut().zip(&mut spreads).take(count).enumerate() {
                    let x = xs.add(j * len);
                    *v = if job.centered && len > LONG {
                        // The mean as rounded is not the mean: its error is taken out again.
                        let [off, square] = vectors::sums::<V, 2>(len, &Moments(x, *mean));
                        let shift = off / len as f64;
                        let v = square / len as f64 - shift * shift;
                        *mean = T::of_f64(mean.to_f64() + shift);
                        if v < 0.0 { 0.0 } else { v }
                    } else {
                        let squares = Squares(x, *mean);
                        let [square] = match len <= ASKED {
                            true => vectors::sums::<V, 1>(len, &Asking(squares, ys.add(j * len))),
                            false => vectors::sums::<V, 1>(len, &squares),
                        };
                        square / len as f64
                    };
                }
                let [mean_of, rstd_of, var_of] = &job.stats;
                for j in 0..count {
                    let (row, v) = (first + j, spreads[j]);
                    let inverse = match job.stills && v == 0.0 {
                        true => 0.0,
                        false => 1.0 / (v + job.eps).sqrt(),
                    };
                    let (mean, rstd) = (means[j], T::of_f64(inverse));
                    *mean_of.at(row) = mean;
                    *rstd_of.at(row) = rstd;
                    *var_of.at(row) = T::of_f64(v);
                    let normal = Normal { x: xs.add(j * len), mean, rstd };
                    let channel = row % s.groups * s.d;
                    let w = job.weight.map(|w| w[channel..channel + s.d].as_ptr());
                    let b = job.bias.map(|b| b[channel..channel + s.d].as_ptr());
                    scaled::<V>(normal, ys.add(j * len), (w, b), s);
                }
                job.y.keep(span.clone(), &by);
                workers.epilogue(span.start, span.len());
                first += count;
            }
        }
    }
}

/// Writes normal * weight + bias of a row.
// SAFETY: rows have as many elements as `s` says, weight and bias one for each `d`; the machine has
// the instructions of the vector.
#[inline(always)]
unsafe fn scaled<V: Simd>(
    normal: Normal<V::Elem>,
    y: *mut V::Elem,
    (w, b): (Option<*const V::Elem>, Option<*const V::Elem>),
    s: Sizes,
) where
    V::Elem: Float,
{
    let one = V::Elem::of_f64(1.0);
    // What may be added to any number, -0 too.
    let none = V::Elem::of_f64(-0.0);
    // SAFETY: rows have as many elements as `s` says, weight and bias one for each `d`; the machine
    // has the instructions of the vector.
    unsafe {
        if s.inner == 1 {
            let (same_w, same_b) = (Same(one), Same(none));
            return match (w, b) {
                (Some(w), Some(b)) => each::<V, _>(s.d, &Affine(normal, w, b, y)),
                (Some(w), None) => each::<V, _>(s.d, &Affine(normal, w, same_b, y)),
                (None, Some(b)) => each::<V, _>(s.d, &Affine(normal, same_w, b, y)),
                (None, None) => each::<V, _>(s.d, &Affine(normal, same_w, same_b, y)),
            };
        }
        for d in 0..s.d {
            let weight = Same(w.map_or(one, |w| *w.add(d)));
            let bias = Same(b.map_or(none, |b| *b.add(d)));
            let x = normal.x.add(d * s.inner);
            let y = y.add(d * s.inner);
            let normal = Normal { x, ..normal };
            each::<V, _>(s.inner, &Affine(normal, weight, bias, y));
        }
    }
}

/// Gradients of [`Rows`]: of the input, and of weight and bias where slices are given.
pub struct RowsBackward<'a, T> {
    pub s: Sizes,
    pub centered: bool,
    pub g: Data,
    pub x: Data,
    pub weight: Option<&'a [T]>,
    pub mean: &'a [T],
    pub rstd: &'a [T],
    pub dx: Data,
}

impl<T: Float> RowsBackward<'_, T> {
    /// # Safety
    /// As for [`Rows::run`].
    pub unsafe fn run(&self, dw: &mut [T], db: &mut [T]) {
        let (rows, channels) = (self.s.rows(), self.s.channels());
        // The number of parts depends on sizes alone, so sums do not depend on threads.
        let count = (rows * self.s.row() / (1 << 15))
            .clamp(1, 32)
            .min(rows.max(1));
        let per = rows.div_ceil(count);
        let wanted = !dw.is_empty() || !db.is_empty();
        let width = if wanted { channels * 2 } else { 0 };
        let mut partial = alloc::full(T::default(), count * width);
        let sums = Ptr::new(partial.as_mut_ptr());
        // SAFETY: used in this call alone.
        let fused = unsafe { Fused::new(Some(self.g.ptr()), self.dx.ptr(), rows * self.s.row()) };
        // Each part is worth a thread.
        let workers = || fused.begin();
        rows::share_with(count, usize::MAX, workers, |range, workers| {
            for part in range {
                // SAFETY: each part has its own sums and rows.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums.at(part * width), width);
                    let rows = (part * per).min(rows)..((part + 1) * per).min(rows);
                    rows_grad(self, rows, sums, workers);
                }
            }
        });
        for (j, out) in [dw, db].into_iter().enumerate() {
            for (c, out) in out.iter_mut().enumerate() {
                let sum: f64 = (0..count)
                    .map(|p| partial[p * width + j * channels + c].to_f64())
                    .sum();
                *out = T::of_f64(sum);
            }
        }
    }
}

per_isa! {
    unsafe fn rows_grad[T: Float; in V](
        job: &RowsBackward<T>,
        rows: Range<usize>,
        sums: &mut [T],
        workers: &mut Workers
    ) {
        // SAFETY: rows lie inside the tensors and belong to this thread; there is a weight and are
        // sums for each channel.
        unsafe {
            let (s, len) = (job.s, job.s.row());
            let (zero, one) = (T::default(), T::of_f64(1.0));
            let (mut bg, mut bx, mut bo) = (Vec::<T>::new(), Vec::<T>::new(), Vec::<T>::new());
            let wanted = !sums.is_empty();
            let (sw, sb) = sums.split_at_mut(sums.len() / 2);
            let most = (TOGETHER / len.max(1)).clamp(1, ROWS);
            let mut start = rows.start;
            while start < rows.end {
                let count = most.min(rows.end - start);
                let span = start * len..(start + count) * len;
                workers.prologue(span.start, span.len());
                let gs = job.g.read(span.clone(), &mut bg).as_ptr();
                let xs = job.x.read(span.clone(), &mut bx).as_ptr();
                let dxs = job.dx.place(span.clone(), &mut bo).as_mut_ptr();
                let row = |j: usize| {
                    let (mean, rstd) = (job.mean[start + j], job.rstd[start + j]);
                    let first = (start + j) % s.groups * s.d;
                    let w = job.weight.map(|w| &w[first..first + s.d]);
                    (Normal { x: xs.add(j * len), mean, rstd }, gs.add(j * len), first, w)
                };
                // Means over each row of g * weight and of g * weight * normal.
                let mut means = [[zero; 2]; ROWS];
                for (j, means) in means[..count].iter_mut().enumerate() {
                    let (normal, g, first, w) = row(j);
                    let [mut a, mut b] = [0.0; 2];
                    if s.inner > 1 {
                        for d in 0..s.d {
                            let at = d * s.inner;
                            let normal = Normal { x: normal.x.add(at), ..normal };
                            let terms = Products { g: g.add(at), normal, weight: Same(one), sums: None };
                            let [sg, sn] = vectors::sums::<V, 2>(s.inner, &terms);
                            let w = w.map_or(1.0, |w| w[d].to_f64());
                            a += sg * w;
                            b += sn * w;
                            if wanted {
                                sw[first + d] += T::of_f64(sn);
                                sb[first + d] += T::of_f64(sg);
                            }
                        }
                    } else {
                        let of = first..first + s.d;
                        let sums = wanted.then(|| {
                            [sw[of.clone()].as_mut_ptr(), sb[of].as_mut_ptr()]
                        });
                        [a, b] = match w.map(<[T]>::as_ptr) {
                            None => {
                                let weight = Same(one);
                                vectors::sums::<V, 2>(len, &Products { g, normal, weight, sums })
                            }
                            Some(weight) => {
                                vectors::sums::<V, 2>(len, &Products { g, normal, weight, sums })
                            }
                        };
                    }
                    let a = if job.centered { T::of_f64(a / len as f64) } else { zero };
                    *means = [a, T::of_f64(b / len as f64)];
                }
                for (j, &[a, b]) in means[..count].iter().enumerate() {
                    let (normal, g, _, w) = row(j);
                    let (k, a, b) = (normal.rstd, zero - a, zero - b);
                    let dx = dxs.add(j * len);
                    if s.inner > 1 {
                        for d in 0..s.d {
                            let at = d * s.inner;
                            let normal = Normal { x: normal.x.add(at), ..normal };
                            let weight = Same(w.map_or(one, |w| w[d]));
                            let (g, dx) = (g.add(at), dx.add(at));
                            each::<V, _>(s.inner, &Slope { g, normal, weight, k, a, b, dx });
                        }
                    } else if let Some(weight) = w.map(<[T]>::as_ptr) {
                        each::<V, _>(len, &Slope { g, normal, weight, k, a, b, dx });
                    } else {
                        let weight = Same(one);
                        each::<V, _>(len, &Slope { g, normal, weight, k, a, b, dx });
                    }
                }
                job.dx.keep(span.clone(), &bo);
                workers.epilogue(span.start, span.len());
                start += count;
            }
        }
    }
}

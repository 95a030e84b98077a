//! Normalisation over rows (layer, group, instance, RMS) and over columns (batch).
//!
//! A tensor is seen as (n, groups, d, inner); there is one weight for each (group, d). Rows are
//! the (d, inner) planes; columns are what one (group, d) selects.

use crate::alloc;
use crate::cpu::convert::{load, store};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::per_isa;
use crate::tensor::Tensor;
use std::ops::Range;

/// Sums are taken in this many lanes.
const LANES: usize = 32;
/// After so many steps lanes are joined in f64, whatever the length of the sum: the rounding errors
/// of equal terms add up.
const STEPS: usize = 64;
/// Rows that are normalised together, and their elements.
const ROWS: usize = 8;
const TOGETHER: usize = 1 << 11;
/// Rows longer than this have their mean corrected in the second pass.
const LONG: usize = 4096;

/// The sum of `f(0..n)`.
#[inline(always)]
pub fn total<T: Float>(n: usize, f: impl Fn(usize) -> T) -> f64 {
    let whole = n / LANES * LANES;
    let (mut i, mut sum) = (0, 0.0);
    while i < whole {
        let mut lanes = [T::default(); LANES];
        let end = whole.min(i + STEPS * LANES);
        while i < end {
            for (j, lane) in lanes.iter_mut().enumerate() {
                *lane += f(i + j);
            }
            i += LANES;
        }
        sum += join(&lanes);
    }
    (whole..n).fold(sum, |sum, j| sum + f(j).to_f64())
}

/// The sums of both parts of `f(0..n)`. Not one function with [`total`]: lanes in an array of
/// arrays stay in memory.
#[inline(always)]
fn totals<T: Float>(n: usize, f: impl Fn(usize) -> [T; 2]) -> [f64; 2] {
    let whole = n / LANES * LANES;
    let (mut i, mut sums) = (0, [0.0; 2]);
    while i < whole {
        let (mut a, mut b) = ([T::default(); LANES], [T::default(); LANES]);
        let end = whole.min(i + STEPS * LANES);
        while i < end {
            for j in 0..LANES {
                let [x, y] = f(i + j);
                a[j] += x;
                b[j] += y;
            }
            i += LANES;
        }
        sums = [sums[0] + join(&a), sums[1] + join(&b)];
    }
    (whole..n).fold(sums, |[a, b], j| {
        let [x, y] = f(j);
        [a + x.to_f64(), b + y.to_f64()]
    })
}

/// The sum of the lanes, as a tree.
#[inline(always)]
fn join<T: Float>(lanes: &[T; LANES]) -> f64 {
    let mut sums = [0.0; LANES];
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        *sum = lane.to_f64();
    }
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            sums[j] += sums[j + half];
        }
        half /= 2;
    }
    sums[0]
}

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

/// A contiguous tensor of any float type, read and written a row at a time.
#[derive(Clone, Copy)]
pub struct Data {
    ptr: *mut u8,
    dtype: DType,
}

// SAFETY: threads read, or write disjoint rows.
unsafe impl Sync for Data {}

impl Data {
    pub fn new(t: &Tensor) -> Data {
        Data {
            ptr: t.bytes_ptr(),
            dtype: t.dtype(),
        }
    }

    fn direct<T: Float>(&self) -> bool {
        self.dtype == T::DTYPE
    }

    /// Elements `range`, in `buffer` where they have to be converted.
    #[inline(always)]
    unsafe fn read<'a, T: Float>(&self, range: Range<usize>, buffer: &'a mut Vec<T>) -> &'a [T] {
        // SAFETY: the range lies inside the tensor, which nobody writes meanwhile; the buffer has
        // as many elements.
        unsafe {
            let n = range.len();
            if self.direct::<T>() {
                return std::slice::from_raw_parts(self.ptr.cast::<T>().add(range.start), n);
            }
            alloc::resize(buffer, n, T::default());
            let size = self.dtype.size();
            let from = self.ptr.add(range.start * size);
            load(self.dtype, from, size as isize, n, buffer.as_mut_ptr());
            buffer
        }
    }

    /// Lets `f` fill elements `range`, in `buffer` where they have to be converted.
    #[inline(always)]
    unsafe fn write<T: Float>(
        &self,
        range: Range<usize>,
        buffer: &mut Vec<T>,
        f: impl FnOnce(&mut [T]),
    ) {
        // SAFETY: the range lies inside the tensor and belongs to this thread; the buffer has as
        // many elements.
        unsafe {
            let (n, size) = (range.len(), self.dtype.size());
            let to = self.ptr.add(range.start * size);
            let out = match self.direct::<T>() {
                true => std::slice::from_raw_parts_mut(to.cast::<T>(), n),
                false => {
                    alloc::resize(buffer, n, T::default());
                    &mut buffer[..]
                }
            };
            // Called in one place: a function that is called from two is compiled on its own,
            // without the vector instructions of the caller.
            f(out);
            if !self.direct::<T>() {
                store(self.dtype, to, size as isize, n, buffer.as_ptr());
            }
        }
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
        let grain = (1 << 14) / self.s.row().max(1) + 1;
        parallel_for(self.s.rows(), grain, |range| {
            // SAFETY: rows lie inside the tensors; those of different ranges are disjoint.
            unsafe { normal_rows(self, range) }
        });
    }
}

per_isa! {
    unsafe fn normal_rows[T: Float](job: &Rows<T>, range: Range<usize>) {
        // SAFETY: rows lie inside the tensors and belong to this thread, and `i` stays below their
        // length.
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
                let x = job.x.read(span.clone(), &mut bx);
                let row = |j: usize| x.get_unchecked(j * len..(j + 1) * len);
                let (mut means, mut scales) = ([0.0; ROWS], [T::default(); ROWS]);
                for j in 0..count {
                    let x = row(j);
                    if job.centered {
                        means[j] = total(len, |i| *x.get_unchecked(i)) / len as f64;
                    }
                }
                let (mut centres, mut spreads) = ([T::default(); ROWS], [0.0; ROWS]);
                for j in 0..count {
                    let x = row(j);
                    let at = |i: usize| *x.get_unchecked(i);
                    let mt = T::of_f64(means[j]);
                    (centres[j], spreads[j]) = if job.centered && len > LONG {
                        // The mean as rounded is not the mean: its error is taken out again.
                        let [off, square] =
                            totals(len, |i| [at(i) - mt, (at(i) - mt) * (at(i) - mt)]);
                        let shift = off / len as f64;
                        let v = square / len as f64 - shift * shift;
                        (T::of_f64(mt.to_f64() + shift), if v < 0.0 { 0.0 } else { v })
                    } else {
                        (mt, total(len, |i| (at(i) - mt) * (at(i) - mt)) / len as f64)
                    };
                }
                let [mean, rstd, var] = &job.stats;
                for j in 0..count {
                    let v = spreads[j];
                    let inverse = match job.stills && v == 0.0 {
                        true => 0.0,
                        false => 1.0 / (v + job.eps).sqrt(),
                    };
                    scales[j] = T::of_f64(inverse);
                    *mean.at(first + j) = centres[j];
                    *rstd.at(first + j) = scales[j];
                    *var.at(first + j) = T::of_f64(v);
                }
                job.y.write(span, &mut by, |y| {
                    for j in 0..count {
                        let (x, y) = (row(j), &mut y[j * len..(j + 1) * len]);
                        let channel = (first + j) % s.groups * s.d;
                        let w = job.weight.map(|w| &w[channel..channel + s.d]);
                        let b = job.bias.map(|b| &b[channel..channel + s.d]);
                        scaled(x, y, (centres[j], scales[j]), (w, b), s);
                    }
                });
                first += count;
            }
        }
    }
}

/// Writes (x - mean) * scale * weight + bias of a row.
#[inline(always)]
fn scaled<T: Float>(
    x: &[T],
    y: &mut [T],
    (mt, k): (T, T),
    of: (Option<&[T]>, Option<&[T]>),
    s: Sizes,
) {
    let (w, b) = of;
    if s.inner == 1 {
        match (w, b) {
            (Some(w), Some(b)) => {
                for (((y, &x), &w), &b) in y.iter_mut().zip(x).zip(w).zip(b) {
                    *y = (x - mt) * k * w + b;
                }
            }
            (Some(w), None) => {
                for ((y, &x), &w) in y.iter_mut().zip(x).zip(w) {
                    *y = (x - mt) * k * w;
                }
            }
            (None, Some(b)) => {
                for ((y, &x), &b) in y.iter_mut().zip(x).zip(b) {
                    *y = (x - mt) * k + b;
                }
            }
            (None, None) => {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - mt) * k;
                }
            }
        }
        return;
    }
    for d in 0..s.d {
        let k = w.map_or(k, |w| k * w[d]);
        let b = b.map_or(T::default(), |b| b[d]);
        let span = d * s.inner..(d + 1) * s.inner;
        for (y, &x) in y[span.clone()].iter_mut().zip(&x[span]) {
            *y = (x - mt) * k + b;
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
        let sums = Ptr(partial.as_mut_ptr());
        parallel_for(count, 1, |range| {
            for part in range {
                // SAFETY: each part has its own sums and rows.
                unsafe {
                    let sums = std::slice::from_raw_parts_mut(sums.at(part * width), width);
                    let rows = (part * per).min(rows)..((part + 1) * per).min(rows);
                    rows_grad(self, rows, sums);
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
    unsafe fn rows_grad[T: Float](job: &RowsBackward<T>, rows: Range<usize>, sums: &mut [T]) {
        // SAFETY: row `r` lies inside the tensors and belongs to this thread, and `i` stays below
        // its length.
        unsafe {
            let (s, len) = (job.s, job.s.row());
            let zero = T::default();
            let (mut bg, mut bx, mut bo) = (Vec::<T>::new(), Vec::<T>::new(), Vec::<T>::new());
            let wanted = !sums.is_empty();
            let (sw, sb) = sums.split_at_mut(sums.len() / 2);
            let most = (TOGETHER / len.max(1)).clamp(1, ROWS);
            let mut start = rows.start;
            while start < rows.end {
                let count = most.min(rows.end - start);
                let span = start * len..(start + count) * len;
                let gs = job.g.read(span.clone(), &mut bg);
                let xs = job.x.read(span.clone(), &mut bx);
                let part = |j: usize| j * len..(j + 1) * len;
                let channels = |r: usize| {
                    let first = r % s.groups * s.d;
                    (first, job.weight.map(|w| &w[first..first + s.d]))
                };
                // Means over each row of g * weight and of g * weight * normal.
                let mut means = [[zero; 2]; ROWS];
                for j in 0..count {
                    let (g, x) = (gs.get_unchecked(part(j)), xs.get_unchecked(part(j)));
                    let (m, k) = (job.mean[start + j], job.rstd[start + j]);
                    let (first, w) = channels(start + j);
                    let [mut a, mut b] = [0.0; 2];
                    let pair = |i: usize| {
                        let g = *g.get_unchecked(i);
                        [g, g * ((*x.get_unchecked(i) - m) * k)]
                    };
                    if s.inner > 1 {
                        for d in 0..s.d {
                            let [sg, sn] = totals(s.inner, |i| pair(d * s.inner + i));
                            let w = w.map_or(1.0, |w| w[d].to_f64());
                            a += sg * w;
                            b += sn * w;
                            if wanted {
                                sw[first + d] += T::of_f64(sn);
                                sb[first + d] += T::of_f64(sg);
                            }
                        }
                    } else {
                        [a, b] = match w {
                            None => totals(len, pair),
                            Some(w) => totals(len, |i| {
                                let w = *w.get_unchecked(i);
                                pair(i).map(|v| v * w)
                            }),
                        };
                        if wanted {
                            let of = first..first + s.d;
                            let (sw, sb) = (&mut sw[of.clone()], &mut sb[of]);
                            for (((sw, sb), &g), &x) in sw.iter_mut().zip(sb).zip(g).zip(x) {
                                *sw += g * ((x - m) * k);
                                *sb += g;
                            }
                        }
                    }
                    let a = if job.centered { T::of_f64(a / len as f64) } else { zero };
                    means[j] = [a, T::of_f64(b / len as f64)];
                }
                job.dx.write(span, &mut bo, |dx| {
                    for j in 0..count {
                        let (g, x, dx) = (&gs[part(j)], &xs[part(j)], &mut dx[part(j)]);
                        let (m, k) = (job.mean[start + j], job.rstd[start + j]);
                        let w = channels(start + j).1;
                        let [a, b] = means[j];
                        if s.inner > 1 {
                            for d in 0..s.d {
                                let span = d * s.inner..(d + 1) * s.inner;
                                let w = w.map_or(T::of_f64(1.0), |w| w[d]);
                                let (g, x) = (&g[span.clone()], &x[span.clone()]);
                                for ((o, &g), &x) in dx[span].iter_mut().zip(g).zip(x) {
                                    *o = k * (g * w - a - (x - m) * k * b);
                                }
                            }
                        } else if let Some(w) = w {
                            for (((o, &g), &x), &w) in dx.iter_mut().zip(g).zip(x).zip(w) {
                                *o = k * (g * w - a - (x - m) * k * b);
                            }
                        } else {
                            for ((o, &g), &x) in dx.iter_mut().zip(g).zip(x) {
                                *o = k * (g - a - (x - m) * k * b);
                            }
                        }
                    }
                });
                start += count;
            }
        }
    }
}

/// Channels that lie next to each other and are summed together where planes are short.
const BLOCK: usize = 64;
/// Planes shorter than this are summed across, not along.
const SHORT: usize = 16;
/// So many channels keep all threads busy by themselves.
const MANY: usize = 8;

/// Normalisation of columns.
pub struct Columns<'a, T> {
    pub s: Sizes,
    pub x: Data,
    /// The gradient of the output, and the reciprocal deviations, for backward.
    pub g: Option<(Data, &'a [T])>,
    pub mean: Ptr<T>,
    /// Forward `y = (x - mean) * scale + shift`, backward `y = k (g - a - (x - mean) b)`.
    pub y: Data,
}

/// The factors of one channel: of `x` or `g`, of the constant, of `x - mean` in backward.
#[derive(Clone, Copy)]
pub struct Line<T> {
    pub k: T,
    pub a: T,
    pub b: T,
}

impl<T: Float> Columns<'_, T> {
    /// Takes the statistics of each channel, gives them to `line`, and writes `y` by its answer.
    ///
    /// Forward they are the mean and the sum of squared deviations; backward the sums of g and of
    /// g times the normalised input.
    ///
    /// # Safety
    /// As for [`Rows::run`].
    pub unsafe fn run(&self, line: impl Fn(usize, [f64; 2]) -> Line<T> + Sync) {
        let s = self.s;
        let (c, inner) = (s.channels(), s.inner);
        if inner < SHORT {
            let none = T::default();
            let empty = Line {
                k: none,
                a: none,
                b: none,
            };
            let mut lines = alloc::full(empty, c);
            let to = Ptr(lines.as_mut_ptr());
            let grain = (1 << 14) / (s.n * inner * BLOCK).max(1) + 1;
            parallel_for(c.div_ceil(BLOCK), grain, |range| {
                for b in range {
                    let channels = b * BLOCK..((b + 1) * BLOCK).min(c);
                    let mut sums = [[0.0; 2]; BLOCK];
                    // SAFETY: channels lie inside the tensors, and these are this range's.
                    unsafe {
                        short_sums(self, channels.clone(), &mut sums);
                        channels
                            .zip(sums)
                            .for_each(|(ch, v)| *to.at(ch) = line(ch, v));
                    }
                }
            });
            // SAFETY: there is a line for each channel; tensors have the sizes that `s` names.
            unsafe { self.write(&lines) };
            return;
        }
        let sums = |p: usize, buffers: &mut [Vec<T>; 3]| {
            let mut out = [0.0; 2];
            // SAFETY: planes below `s.n * c` lie inside the tensors.
            unsafe { plane_sums(self, p, buffers, &mut out) };
            out
        };
        let joined = |each: &mut dyn Iterator<Item = [f64; 2]>| {
            // Means and squared deviations of parts of equal size, or plain sums.
            let all: Vec<[f64; 2]> = each.collect();
            let mut total = all.iter().fold([0.0; 2], |t, v| [t[0] + v[0], t[1] + v[1]]);
            if self.g.is_none() {
                let mean = total[0] / all.len() as f64;
                let apart: f64 = all.iter().map(|v| (v[0] - mean) * (v[0] - mean)).sum();
                total = [mean, total[1] + apart * inner as f64];
            }
            total
        };
        if c >= MANY {
            // A channel's planes are still in cache when they are written.
            parallel_for(c, (1 << 14) / (s.n * inner).max(1) + 1, |range| {
                let mut buffers = [const { Vec::new() }; 3];
                for ch in range {
                    let all = joined(&mut (0..s.n).map(|n| sums(n * c + ch, &mut buffers)));
                    let line = line(ch, all);
                    for n in 0..s.n {
                        // SAFETY: the planes of this channel belong to this range alone.
                        unsafe { write_plane(self, n * c + ch, ch, line, &mut buffers) };
                    }
                }
            });
            return;
        }
        let mut each = alloc::full([0.0; 2], s.n * c);
        let to = Ptr(each.as_mut_ptr());
        parallel_for(s.n * c, (1 << 14) / inner + 1, |range| {
            let mut buffers = [const { Vec::new() }; 3];
            for p in range {
                // SAFETY: plane `p` belongs to this range alone.
                unsafe { *to.at(p) = sums(p, &mut buffers) };
            }
        });
        let lines: Vec<Line<T>> = (0..c)
            .map(|ch| line(ch, joined(&mut (0..s.n).map(|n| each[n * c + ch]))))
            .collect();
        // SAFETY: there is a line for each channel; tensors have the sizes that `s` names.
        unsafe { self.write(&lines) };
    }

    /// Writes `y` by the lines of all channels.
    ///
    /// # Safety
    /// As for [`Rows::run`].
    pub unsafe fn write(&self, lines: &[Line<T>]) {
        let (s, c) = (self.s, self.s.channels());
        if s.inner == 1 {
            parallel_for(s.n, (1 << 14) / c.max(1) + 1, |range| {
                // SAFETY: samples lie inside the tensors; those of different ranges are disjoint.
                unsafe { write_samples(self, range, lines) }
            });
            return;
        }
        parallel_for(s.n * c, (1 << 14) / s.inner.max(1) + 1, |range| {
            let mut buffers = [const { Vec::new() }; 3];
            for p in range {
                // SAFETY: plane `p` belongs to this range alone.
                unsafe { write_plane(self, p, p % c, lines[p % c], &mut buffers) };
            }
        });
    }
}

per_isa! {
    unsafe fn plane_sums[T: Float](
        job: &Columns<T>,
        p: usize,
        buffers: &mut [Vec<T>; 3],
        out: &mut [f64; 2]
    ) {
        // SAFETY: plane `p` lies inside the tensors, `ch` is its channel, and `i` stays below its
        // length.
        unsafe {
            let [bx, bg, _] = buffers;
            let n = job.s.inner;
            let x = job.x.read(p * n..(p + 1) * n, bx);
            let at = |i: usize| *x.get_unchecked(i);
            let Some((g, rstd)) = &job.g else {
                let mean = total(n, at) / n as f64;
                let m = T::of_f64(mean);
                // The mean as rounded is not the mean: its error is taken out again.
                let [off, square] = totals(n, |i| [at(i) - m, (at(i) - m) * (at(i) - m)]);
                let shift = off / n as f64;
                *out = [m.to_f64() + shift, square - off * shift];
                return;
            };
            let ch = p % job.s.channels();
            let (m, k) = (*job.mean.at(ch), rstd[ch]);
            let g = g.read(p * n..(p + 1) * n, bg);
            *out = totals(n, |i| {
                let g = *g.get_unchecked(i);
                [g, g * ((at(i) - m) * k)]
            });
        }
    }
}

per_isa! {
    unsafe fn write_plane[T: Float](
        job: &Columns<T>,
        p: usize,
        ch: usize,
        line: Line<T>,
        buffers: &mut [Vec<T>; 3]
    ) {
        // SAFETY: plane `p` lies inside the tensors and belongs to this thread, and `ch` is its
        // channel.
        unsafe {
            let [bx, bg, by] = buffers;
            let n = job.s.inner;
            let span = p * n..(p + 1) * n;
            let (m, Line { k, a, b }) = (*job.mean.at(ch), line);
            let x = job.x.read(span.clone(), bx);
            let Some((g, _)) = &job.g else {
                return job.y.write(span, by, |y| {
                    for (y, &x) in y.iter_mut().zip(x) {
                        *y = (x - m) * k + a;
                    }
                });
            };
            let g = g.read(span.clone(), bg);
            job.y.write(span, by, |y| {
                if a == T::default() && b == T::default() {
                    // Given statistics: what x holds does not matter.
                    for (y, &g) in y.iter_mut().zip(g) {
                        *y = k * g;
                    }
                    return;
                }
                for ((y, &g), &x) in y.iter_mut().zip(g).zip(x) {
                    *y = k * (g - a - (x - m) * b);
                }
            });
        }
    }
}

per_isa! {
    unsafe fn write_samples[T: Float](job: &Columns<T>, range: Range<usize>, lines: &[Line<T>]) {
        // SAFETY: samples lie inside the tensors and belong to this thread; there is a mean for
        // each channel.
        unsafe {
            let c = lines.len();
            let (mut bx, mut bg, mut by) = (Vec::<T>::new(), Vec::<T>::new(), Vec::<T>::new());
            let means = std::slice::from_raw_parts(job.mean.at(0).cast_const(), c);
            // One array for each factor, so that neighbours become vectors.
            let k: Vec<T> = alloc::gathered(lines.iter().map(|l| l.k));
            let a: Vec<T> = alloc::gathered(lines.iter().map(|l| l.a));
            let b: Vec<T> = alloc::gathered(lines.iter().map(|l| l.b));
            // Given statistics: what x holds does not matter.
            let zero = T::default();
            let fixed = lines.iter().all(|l| l.a == zero && l.b == zero);
            for n in range {
                let span = n * c..(n + 1) * c;
                let x = job.x.read(span.clone(), &mut bx);
                if let Some((g, _)) = &job.g {
                    let g = g.read(span.clone(), &mut bg);
                    job.y.write(span, &mut by, |y| {
                        if fixed {
                            for i in 0..c {
                                y[i] = k[i] * g[i];
                            }
                            return;
                        }
                        for i in 0..c {
                            y[i] = k[i] * (g[i] - a[i] - (x[i] - means[i]) * b[i]);
                        }
                    });
                } else {
                    job.y.write(span, &mut by, |y| {
                        for i in 0..c {
                            y[i] = (x[i] - means[i]) * k[i] + a[i];
                        }
                    });
                }
            }
        }
    }
}

per_isa! {
    unsafe fn short_sums[T: Float](
        job: &Columns<T>,
        channels: Range<usize>,
        out: &mut [[f64; 2]; BLOCK]
    ) {
        // SAFETY: the channels lie inside the tensors, and there is a mean for each.
        unsafe {
            let (s, c, inner) = (job.s, job.s.channels(), job.s.inner);
            let (mut bx, mut bg) = (Vec::<T>::new(), Vec::<T>::new());
            let width = channels.len() * inner;
            let count = (s.n * inner) as f64;
            let span = |n: usize| {
                let first = (n * c + channels.start) * inner;
                first..first + width
            };
            let (mut one, mut two) = (alloc::full(0.0f64, width), alloc::full(0.0f64, width));
            let fold = |all: &[f64], i: usize| -> f64 {
                all[i * inner..(i + 1) * inner].iter().sum()
            };
            if let Some((g, rstd)) = &job.g {
                let mean = |i: usize| *job.mean.at(channels.start + i / inner);
                let means: Vec<T> = (0..width).map(mean).collect();
                let k: Vec<T> = (0..width).map(|i| rstd[channels.start + i / inner]).collect();
                for n in 0..s.n {
                    let (x, g) = (job.x.read(span(n), &mut bx), g.read(span(n), &mut bg));
                    for i in 0..width {
                        one[i] += g[i].to_f64();
                        two[i] += (g[i] * ((x[i] - means[i]) * k[i])).to_f64();
                    }
                }
                for i in 0..channels.len() {
                    out[i] = [fold(&one, i), fold(&two, i)];
                }
                return;
            }
            for n in 0..s.n {
                let x = job.x.read(span(n), &mut bx);
                one.iter_mut().zip(x).for_each(|(o, &x)| *o += x.to_f64());
            }
            let means: Vec<f64> = (0..channels.len()).map(|i| fold(&one, i) / count).collect();
            let wide: Vec<f64> = (0..width).map(|i| means[i / inner]).collect();
            for n in 0..s.n {
                let x = job.x.read(span(n), &mut bx);
                for i in 0..width {
                    let v = x[i].to_f64() - wide[i];
                    two[i] += v * v;
                }
            }
            for i in 0..channels.len() {
                out[i] = [means[i], fold(&two, i)];
            }
        }
    }
}

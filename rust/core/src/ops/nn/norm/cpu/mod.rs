//! Normalisation over rows (layer, group, instance, RMS) and over columns (batch).
//!
//! A tensor is seen as (n, groups, d, inner); there is one weight for each (group, d). Rows are
//! the (d, inner) planes; columns are what one (group, d) selects.

mod vectors;

use crate::alloc;
use crate::cpu::convert::{load, store};
use crate::cpu::elements::Element;
use crate::cpu::pool::{num_threads, parallel_for, Ptr};
use crate::cpu::simd::{Simd, Vectors};
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::per_isa;
use crate::tensor::Tensor;
use std::ops::Range;
use vectors::{
    each, AddMoments, AddProducts, AddRow, Affine, Asking, Moments, Normal, Place, Plain, Products,
    Running, Same, Scaled, Slope, Slopes, Squares, BF16, F16,
};

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

    /// Where to write elements `range`: `buffer`, where they have to be converted.
    #[inline(always)]
    unsafe fn place<'a, T: Float>(
        &self,
        range: Range<usize>,
        buffer: &'a mut Vec<T>,
    ) -> &'a mut [T] {
        if self.direct::<T>() {
            let to = self.ptr.cast::<T>().wrapping_add(range.start);
            // SAFETY: the range lies inside the tensor and belongs to this thread.
            return unsafe { std::slice::from_raw_parts_mut(to, range.len()) };
        }
        alloc::resize(buffer, range.len(), T::default());
        buffer
    }

    /// Converts what has been written to [`Data::place`].
    #[inline(always)]
    unsafe fn keep<T: Float>(&self, range: Range<usize>, buffer: &[T]) {
        if !self.direct::<T>() {
            let size = self.dtype.size();
            // SAFETY: the range lies inside the tensor and belongs to this thread; the buffer has
            // as many elements.
            unsafe {
                let to = self.ptr.add(range.start * size);
                store(self.dtype, to, size as isize, range.len(), buffer.as_ptr());
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
    unsafe fn normal_rows[T: Float; in V](job: &Rows<T>, range: Range<usize>) {
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
                job.y.keep(span, &by);
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
    // SAFETY: the caller's.
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
    unsafe fn rows_grad[T: Float; in V](
        job: &RowsBackward<T>,
        rows: Range<usize>,
        sums: &mut [T]
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
                job.dx.keep(span, &bo);
                start += count;
            }
        }
    }
}

/// Channels that lie next to each other and are summed together where planes are short.
const BLOCK: usize = 64;
/// Planes shorter than this are summed across, not along.
const SHORT: usize = 16;
/// Elements of channels that are read again while they lie in a cache.
const CACHED: usize = 1 << 16;
/// Samples whose elements are added up before they meet the others' in f64.
const TERMS: usize = 16;
/// So many channels keep all threads busy by themselves.
const MANY: usize = 8;

/// Normalisation of columns. Its tensors have one type.
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
    fn check(&self) {
        let own = self.x.dtype;
        let alike = self.y.dtype == own && self.g.as_ref().is_none_or(|(g, _)| g.dtype == own);
        assert!(alike && (own == T::DTYPE || own.is_half()), "one type");
    }

    /// Takes the statistics of each channel, gives them to `line`, and writes `y` by its answer.
    ///
    /// Forward they are the mean and the sum of squared deviations; backward the sums of g and of
    /// g times the normalised input.
    ///
    /// # Safety
    /// As for [`Rows::run`].
    pub unsafe fn run(&self, line: impl Fn(usize, [f64; 2]) -> Line<T> + Sync) {
        self.check();
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
            // The more, the fewer samples are read in parts; as long as all threads have some.
            let block = c
                .div_ceil(num_threads())
                .next_multiple_of(BLOCK)
                .clamp(BLOCK, 4 * BLOCK);
            let grain = (1 << 14) / (s.n * inner * block).max(1) + 1;
            parallel_for(c.div_ceil(block), grain, |range| {
                for b in range {
                    let channels = b * block..((b + 1) * block).min(c);
                    let mut sums = alloc::full([0.0; 2], channels.len());
                    // SAFETY: channels lie inside the tensors, and these are this range's.
                    unsafe {
                        let part = channels.clone();
                        match self.x.dtype {
                            DType::F16 => short_sums::<T, F16>(self, part, &mut sums),
                            DType::BF16 => short_sums::<T, BF16>(self, part, &mut sums),
                            _ => short_sums::<T, *mut T>(self, part, &mut sums),
                        }
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
        // SAFETY: tensors have the sizes that `s` names, and elements of the type of `x`.
        unsafe {
            match self.x.dtype {
                DType::F16 => self.planes::<F16>(line),
                DType::BF16 => self.planes::<BF16>(line),
                _ => self.planes::<*mut T>(line),
            }
        }
    }

    /// [`Columns::run`] for planes that are not short.
    // SAFETY: as for `run`; X is a place of the tensors' type.
    unsafe fn planes<X: Place<T>>(&self, line: impl Fn(usize, [f64; 2]) -> Line<T> + Sync) {
        let s = self.s;
        let (c, inner) = (s.channels(), s.inner);
        if inner <= vectors::SHORT_ROW && c >= MANY {
            // Channels that lie next to each other, whose planes are still in cache when they are written.
            let some = (TOGETHER / inner).min(CACHED / (s.n * inner)).min(c / MANY);
            let some = some.max(1);
            let grain = (1 << 14) / (s.n * inner * some).max(1) + 1;
            parallel_for(c.div_ceil(some), grain, |range| {
                for b in range {
                    let channels = b * some..((b + 1) * some).min(c);
                    let mut sums = alloc::full([0.0; 2], channels.len());
                    // SAFETY: channels lie inside the tensors, and these are this range's.
                    unsafe {
                        channel_sums::<T, X>(self, channels.clone(), &mut sums);
                        let lines = channels.clone().zip(sums).map(|(ch, v)| line(ch, v));
                        let lines: Vec<_> = lines.collect();
                        for n in 0..s.n {
                            let planes = n * c + channels.start..n * c + channels.end;
                            write_planes::<T, X>(self, planes, &lines, channels.start);
                        }
                    }
                }
            });
            return;
        }
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
            let grain = (1 << 14) / (s.n * inner).max(1) + 1;
            parallel_for(c, grain, |range| {
                for ch in range {
                    let plane = |n: usize| n * c + ch..n * c + ch + 1;
                    let mut each = (0..s.n).map(|n| {
                        let mut out = [[0.0; 2]];
                        // SAFETY: planes below `s.n * c` lie inside the tensors.
                        unsafe { plane_sums::<T, X>(self, plane(n), &mut out) };
                        out[0]
                    });
                    let line = [line(ch, joined(&mut each))];
                    for n in 0..s.n {
                        // SAFETY: the planes of this channel belong to this range alone.
                        unsafe { write_planes::<T, X>(self, plane(n), &line, ch) };
                    }
                }
            });
            return;
        }
        let mut each = alloc::full([0.0; 2], s.n * c);
        let to = Ptr(each.as_mut_ptr());
        parallel_for(s.n * c, (1 << 14) / inner + 1, |range| {
            // SAFETY: these planes belong to this range alone.
            unsafe {
                let out = std::slice::from_raw_parts_mut(to.at(range.start), range.len());
                plane_sums::<T, X>(self, range, out);
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
        self.check();
        let (s, c) = (self.s, self.s.channels());
        if s.inner == 1 {
            parallel_for(s.n, (1 << 14) / c.max(1) + 1, |range| {
                // SAFETY: samples lie inside the tensors; those of different ranges are disjoint.
                unsafe {
                    match self.x.dtype {
                        DType::F16 => write_samples::<T, F16>(self, range, lines),
                        DType::BF16 => write_samples::<T, BF16>(self, range, lines),
                        _ => write_samples::<T, *mut T>(self, range, lines),
                    }
                }
            });
            return;
        }
        parallel_for(s.n * c, (1 << 14) / s.inner.max(1) + 1, |range| {
            // SAFETY: these planes belong to this range alone.
            unsafe {
                match self.x.dtype {
                    DType::F16 | DType::BF16 if s.inner < SHORT => self.write_short(range, lines),
                    DType::F16 => write_planes::<T, F16>(self, range, lines, 0),
                    DType::BF16 => write_planes::<T, BF16>(self, range, lines, 0),
                    _ => write_planes::<T, *mut T>(self, range, lines, 0),
                }
            }
        });
    }
}

impl<T: Float> Columns<'_, T> {
    /// Writes planes that are shorter than a vector, converted many at a time.
    // SAFETY: as for [`Columns::run`]; the planes belong to this thread.
    unsafe fn write_short(&self, planes: Range<usize>, lines: &[Line<T>]) {
        let (s, n) = (self.s, self.s.inner);
        let [mut bx, mut bg, mut by] = [const { Vec::<T>::new() }; 3];
        let most = (TOGETHER / n.max(1)).max(1);
        for first in planes.clone().step_by(most) {
            let part = first..(first + most).min(planes.end);
            let span = part.start * n..part.end * n;
            let moved = |at: *const T| Data {
                ptr: at.wrapping_sub(span.start).cast_mut().cast(),
                dtype: T::DTYPE,
            };
            // SAFETY: the planes lie inside the tensors; where they were converted to, they are found by the
            // same numbers.
            unsafe {
                let x = moved(self.x.read(span.clone(), &mut bx).as_ptr());
                let g = self.g.as_ref();
                let g = g.map(|(g, rstd)| (moved(g.read(span.clone(), &mut bg).as_ptr()), *rstd));
                let y = moved(self.y.place(span.clone(), &mut by).as_mut_ptr());
                let mean = Ptr(self.mean.at(0));
                let job = Columns { s, x, g, mean, y };
                write_planes::<T, *mut T>(&job, part, lines, 0);
                self.y.keep(span, &by);
            }
        }
    }
}

per_isa! {
    unsafe fn plane_sums[T: Float, X: Place<T>; in V](
        job: &Columns<T>,
        planes: Range<usize>,
        out: &mut [[f64; 2]]
    ) {
        // SAFETY: the planes lie inside the tensors, and there is a mean for each channel.
        unsafe {
            let (n, c) = (job.s.inner, job.s.channels());
            for (p, out) in planes.zip(out) {
                let x = X::of(job.x.ptr, p * n);
                if let Some((g, rstd)) = &job.g {
                    let ch = p % c;
                    let normal = Normal { x, mean: *job.mean.at(ch), rstd: rstd[ch] };
                    let (g, weight) = (X::of(g.ptr, p * n), Same(T::of_f64(1.0)));
                    *out = vectors::sums::<V, 2>(n, &Products { g, normal, weight, sums: None });
                    continue;
                }
                let [sum] = vectors::sums::<V, 1>(n, &Plain(x));
                let m = T::of_f64(sum / n as f64);
                // The mean as rounded is not the mean: its error is taken out again.
                let [off, square] = vectors::sums::<V, 2>(n, &Moments(x, m));
                let shift = off / n as f64;
                *out = [m.to_f64() + shift, square - off * shift];
            }
        }
    }
}

per_isa! {
    /// The statistics of channels over all samples, whose planes are short.
    unsafe fn channel_sums[T: Float, X: Place<T>; in V](
        job: &Columns<T>,
        channels: Range<usize>,
        out: &mut [[f64; 2]]
    ) {
        // SAFETY: the channels lie inside the tensors, and there is a mean for each.
        unsafe {
            let (s, c, n) = (job.s, job.s.channels(), job.s.inner);
            let width = channels.len();
            let at = |sample: usize, i: usize| (sample * c + channels.start + i) * n;
            let mut sums = alloc::full(Running::<T, 2>::new(), width);
            if let Some((g, rstd)) = &job.g {
                for sample in 0..s.n {
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let (ch, at) = (channels.start + i, at(sample, i));
                        let (mean, rstd) = (*job.mean.at(ch), rstd[ch]);
                        let normal = Normal { x: X::of(job.x.ptr, at), mean, rstd };
                        let (g, weight) = (X::of(g.ptr, at), Same(T::of_f64(1.0)));
                        sums.add::<V, _>(n, &Products { g, normal, weight, sums: None });
                    }
                }
                out.iter_mut().zip(&mut sums).for_each(|(o, s)| *o = s.total::<V>());
                return;
            }
            let mut means = alloc::full(Running::<T, 1>::new(), width);
            for sample in 0..s.n {
                for (i, mean) in means.iter_mut().enumerate() {
                    mean.add::<V, _>(n, &Plain(X::of(job.x.ptr, at(sample, i))));
                }
            }
            let count = (s.n * n) as f64;
            let means: Vec<T> = alloc::gathered(
                means.iter_mut().map(|m| T::of_f64(m.total::<V>()[0] / count))
            );
            for sample in 0..s.n {
                for (i, sums) in sums.iter_mut().enumerate() {
                    sums.add::<V, _>(n, &Moments(X::of(job.x.ptr, at(sample, i)), means[i]));
                }
            }
            for ((out, sums), m) in out.iter_mut().zip(&mut sums).zip(means) {
                // The mean as rounded is not the mean: its error is taken out again.
                let [off, square] = sums.total::<V>();
                let shift = off / count;
                *out = [m.to_f64() + shift, square - off * shift];
            }
        }
    }
}

per_isa! {
    // `lines` are those of the channels from `first` on.
    unsafe fn write_planes[T: Float, X: Place<T>; in V](
        job: &Columns<T>,
        planes: Range<usize>,
        lines: &[Line<T>],
        first: usize
    ) {
        // SAFETY: the planes lie inside the tensors and belong to this thread; there is a mean for
        // each channel.
        unsafe {
            let (n, zero, one) = (job.s.inner, T::default(), T::of_f64(1.0));
            for p in planes {
                let ch = p % job.s.channels();
                let Line { k, a, b } = lines[ch - first];
                let (x, y) = (X::of(job.x.ptr, p * n), X::of(job.y.ptr, p * n));
                let off = Normal { x, mean: *job.mean.at(ch), rstd: one };
                let Some((g, _)) = &job.g else {
                    let (weight, bias) = (Same(k), Same(a));
                    each::<V, _>(n, &Affine(off, weight, bias, y));
                    continue;
                };
                let g = X::of(g.ptr, p * n);
                if a == zero && b == zero {
                    // Given statistics: what x holds does not matter.
                    let g = Normal { x: g, mean: zero, rstd: one };
                    each::<V, _>(n, &Affine(g, Same(k), Same(T::of_f64(-0.0)), y));
                } else {
                    let (a, b, dx) = (zero - a, zero - b, y);
                    each::<V, _>(n, &Slope { g, normal: off, weight: Same(one), k, a, b, dx });
                }
            }
        }
    }
}

per_isa! {
    unsafe fn write_samples[T: Float, X: Place<T>; in V](
        job: &Columns<T>,
        range: Range<usize>,
        lines: &[Line<T>]
    ) {
        // SAFETY: samples lie inside the tensors and belong to this thread; there is a mean for
        // each channel.
        unsafe {
            let c = lines.len();
            let mean = job.mean.at(0).cast_const();
            // One array for each factor, so that neighbours become vectors.
            let k: Vec<T> = alloc::gathered(lines.iter().map(|l| l.k));
            let a: Vec<T> = alloc::gathered(lines.iter().map(|l| l.a));
            let b: Vec<T> = alloc::gathered(lines.iter().map(|l| l.b));
            let (k, a, b) = (k.as_ptr(), a.as_ptr(), b.as_ptr());
            // Given statistics: what x holds does not matter.
            let (zero, none) = (T::default(), T::of_f64(-0.0));
            let fixed = lines.iter().all(|l| l.a == zero && l.b == zero);
            for n in range {
                let (x, y) = (X::of(job.x.ptr, n * c), X::of(job.y.ptr, n * c));
                match &job.g {
                    None => each::<V, _>(c, &Scaled { x, mean, k, a, y }),
                    Some((g, _)) => {
                        let g = X::of(g.ptr, n * c);
                        match fixed {
                            true => {
                                let (mean, a) = (Same(zero), Same(none));
                                each::<V, _>(c, &Scaled { x: g, mean, k, a, y })
                            }
                            false => each::<V, _>(c, &Slopes { g, x, mean, k, a, b, y }),
                        }
                    }
                }
            }
        }
    }
}

per_isa! {
    unsafe fn short_sums[T: Float, X: Place<T>; in V](
        job: &Columns<T>,
        channels: Range<usize>,
        out: &mut [[f64; 2]]
    ) {
        // SAFETY: the channels lie inside the tensors, and there is a mean for each.
        unsafe {
            let (s, c, inner) = (job.s, job.s.channels(), job.s.inner);
            let width = channels.len() * inner;
            let count = (s.n * inner) as f64;
            let at = |n: usize| (n * c + channels.start) * inner;
            let (mut one, mut two) = (alloc::full(0.0f64, width), alloc::full(0.0f64, width));
            // Sums of some samples, which then meet the others in f64.
            let zero = T::default();
            let (mut some, mut more) = (alloc::full(zero, width), alloc::full(zero, width));
            let settle = |some: &mut [T], all: &mut [f64], n: usize| {
                if (n + 1).is_multiple_of(TERMS) || n + 1 == s.n {
                    for (all, some) in all.iter_mut().zip(some) {
                        *all += std::mem::take(some).to_f64();
                    }
                }
            };
            let fold = |all: &[f64], i: usize| -> f64 {
                all[i * inner..(i + 1) * inner].iter().sum()
            };
            let wide = |of: &dyn Fn(usize) -> T| -> Vec<T> {
                alloc::gathered((0..width).map(|i| of(i / inner)))
            };
            if let Some((g, rstd)) = &job.g {
                let means = wide(&|ch| *job.mean.at(channels.start + ch));
                let k = wide(&|ch| rstd[channels.start + ch]);
                for n in 0..s.n {
                    let products = AddProducts {
                        g: X::of(g.ptr, at(n)),
                        x: X::of(job.x.ptr, at(n)),
                        mean: means.as_ptr(),
                        k: k.as_ptr(),
                        to: [some.as_mut_ptr(), more.as_mut_ptr()],
                    };
                    each::<V, _>(width, &products);
                    settle(&mut some, &mut one, n);
                    settle(&mut more, &mut two, n);
                }
                for i in 0..channels.len() {
                    out[i] = [fold(&one, i), fold(&two, i)];
                }
                return;
            }
            for n in 0..s.n {
                each::<V, _>(width, &AddRow { x: X::of(job.x.ptr, at(n)), to: some.as_mut_ptr() });
                settle(&mut some, &mut one, n);
            }
            let mean = |i: usize| T::of_f64(fold(&one, i) / count);
            let means: Vec<T> = (0..channels.len()).map(mean).collect();
            let mean = wide(&|ch| means[ch]);
            one.fill(0.0);
            for n in 0..s.n {
                let moments = AddMoments {
                    x: X::of(job.x.ptr, at(n)),
                    mean: mean.as_ptr(),
                    to: [some.as_mut_ptr(), more.as_mut_ptr()],
                };
                each::<V, _>(width, &moments);
                settle(&mut some, &mut one, n);
                settle(&mut more, &mut two, n);
            }
            for i in 0..channels.len() {
                // The mean as rounded is not the mean: its error is taken out again.
                let (off, square) = (fold(&one, i), fold(&two, i));
                let shift = off / count;
                out[i] = [means[i].to_f64() + shift, square - off * shift];
            }
        }
    }
}

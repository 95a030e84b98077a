//! Normalisation over columns: the statistics of channels over all samples, and what they make of their
//! elements. Half types are widened and narrowed in registers.

use super::vectors::{
    self, each, AddMoments, AddProducts, AddRow, Affine, Moments, Normal, Place, Plain, Products,
    Running, Same, Scaled, Slope, Slopes, BF16, F16,
};
use super::{Sizes, TOGETHER};
use crate::alloc;
use crate::cpu::pointwise::fusion::Fused;
use crate::cpu::pool::{num_threads, Ptr};
use crate::cpu::rows::{share_with, Data};
use crate::cpu::simd::{Simd, Vectors};
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::per_isa;
use std::ops::Range;

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

/// Calls a function of `Columns` for places of the tensors' type.
macro_rules! by_type {
    ($job:expr, $name:ident::<$T:ident>($($arg:expr),*)) => {
        match $job.x.dtype() {
            DType::F16 => $name::<$T, F16>($job, $($arg),*),
            DType::BF16 => $name::<$T, BF16>($job, $($arg),*),
            _ => $name::<$T, *mut $T>($job, $($arg),*),
        }
    };
}

impl<T: Float> Columns<'_, T> {
    /// What is fused, on parts of what is read (backward the gradient) and of the result.
    fn fused(&self) -> Fused<'_> {
        let read = self.g.as_ref().map_or(&self.x, |(g, _)| g).ptr();
        let count = self.s.n * self.s.channels() * self.s.inner;
        // SAFETY: used in the kernel's call alone.
        unsafe { Fused::new(Some(read), self.y.ptr(), count) }
    }

    /// Elements of so many channels of sample `n` that lie next to each other.
    fn span(&self, n: usize, channels: &Range<usize>) -> (usize, usize) {
        let first = n * self.s.channels() + channels.start;
        (first * self.s.inner, channels.len() * self.s.inner)
    }

    fn check(&self) {
        let own = self.x.dtype();
        let alike = |d: &Data| d.dtype() == own;
        let alike = alike(&self.y) && self.g.as_ref().is_none_or(|(g, _)| alike(g));
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
        let fused = self.fused();
        if inner < SHORT {
            let none = T::default();
            let empty = Line {
                k: none,
                a: none,
                b: none,
            };
            let mut lines = alloc::full(empty, c);
            let to = Ptr::new(lines.as_mut_ptr());
            // The more, the fewer samples are read in parts; as long as all threads have some.
            let block = c
                .div_ceil(num_threads())
                .next_multiple_of(BLOCK)
                .clamp(BLOCK, 4 * BLOCK);
            let (blocks, cost) = (c.div_ceil(block), s.n * inner * block);
            let workers = || fused.begin();
            share_with(blocks, cost, workers, |range, workers| {
                for b in range {
                    let channels = b * block..((b + 1) * block).min(c);
                    for (at, len) in (0..s.n).map(|n| self.span(n, &channels)) {
                        // SAFETY: the elements are this range's.
                        unsafe { workers.prologue(at, len) };
                    }
                    let mut sums = alloc::full([0.0; 2], channels.len());
                    // SAFETY: channels lie inside the tensors, and these are this range's.
                    unsafe {
                        let part = channels.clone();
                        by_type!(self, short_sums::<T>(part, &mut sums));
                        channels
                            .zip(sums)
                            .for_each(|(ch, v)| *to.at(ch) = line(ch, v));
                    }
                }
            });
            // SAFETY: there is a line for each channel; tensors have the sizes that `s` names.
            unsafe { self.write_fused(&lines, &fused, false) };
            return;
        }
        // SAFETY: tensors have the sizes that `s` names, and elements of the type of `x`.
        unsafe { by_type!(self, planes::<T>(line, &fused)) }
    }

    /// Writes `y` by the lines of all channels.
    ///
    /// # Safety
    /// As for [`Rows::run`].
    pub unsafe fn write(&self, lines: &[Line<T>]) {
        // SAFETY: there is a line for each channel; tensors have the sizes that `s` names.
        unsafe { self.write_fused(lines, &self.fused(), true) };
    }

    /// With what is fused; `unread` says that nobody has read what was to be made first.
    // SAFETY: as for `write`.
    unsafe fn write_fused(&self, lines: &[Line<T>], fused: &Fused, unread: bool) {
        self.check();
        let (s, c) = (self.s, self.s.channels());
        // Samples, or planes, and so many at once that stay in a cache for what is fused.
        let (count, each) = match s.inner {
            1 => (s.n, c),
            inner => (s.n * c, inner),
        };
        let some = match fused.is_none() {
            true => count,
            false => (TOGETHER / each.max(1)).max(1),
        };
        let workers = || fused.begin();
        share_with(count, each, workers, |range, workers| {
            for first in range.clone().step_by(some) {
                let part = first..(first + some).min(range.end);
                let (at, len) = (part.start * each, part.len() * each);
                // SAFETY: these samples or planes lie inside the tensors, and belong to this range alone.
                unsafe {
                    if unread {
                        workers.prologue(at, len);
                    }
                    match self.x.dtype().is_half() && s.inner < SHORT {
                        _ if s.inner == 1 => by_type!(self, write_samples::<T>(part, lines)),
                        true => self.write_short(part, lines),
                        false => by_type!(self, write_planes::<T>(part, lines, 0)),
                    }
                    workers.epilogue(at, len);
                }
            }
        });
    }

    /// Writes planes that are shorter than a vector, converted many at a time.
    // SAFETY: as for [`Columns::run`]; the planes belong to this thread.
    unsafe fn write_short(&self, planes: Range<usize>, lines: &[Line<T>]) {
        let (s, n) = (self.s, self.s.inner);
        let [mut bx, mut bg, mut by] = [const { Vec::<T>::new() }; 3];
        let most = (TOGETHER / n.max(1)).max(1);
        for first in planes.clone().step_by(most) {
            let part = first..(first + most).min(planes.end);
            let span = part.start * n..part.end * n;
            let moved = |at: *const T| Data::moved(at, span.start);
            // SAFETY: the planes lie inside the tensors; where they were converted to, they are found by the
            // same numbers.
            unsafe {
                let x = moved(self.x.read(span.clone(), &mut bx).as_ptr());
                let g = self.g.as_ref();
                let g = g.map(|(g, rstd)| (moved(g.read(span.clone(), &mut bg).as_ptr()), *rstd));
                let y = moved(self.y.place(span.clone(), &mut by).as_mut_ptr());
                let mean = Ptr::new(self.mean.at(0));
                let job = Columns { s, x, g, mean, y };
                write_planes::<T, *mut T>(&job, part, lines, 0);
                self.y.keep(span, &by);
            }
        }
    }
}

/// [`Columns::run`] for planes that are not short.
// SAFETY: as for `run`; X is a place of the tensors' type.
unsafe fn planes<T: Float, X: Place<T>>(
    job: &Columns<T>,
    line: impl Fn(usize, [f64; 2]) -> Line<T> + Sync,
    fused: &Fused,
) {
    let s = job.s;
    let (c, inner) = (s.channels(), s.inner);
    if inner <= vectors::SHORT_ROW && c >= MANY {
        // Channels that lie next to each other, whose planes are still in cache when they are written.
        let some = (TOGETHER / inner).min(CACHED / (s.n * inner)).min(c / MANY);
        let some = some.max(1);
        let (blocks, cost) = (c.div_ceil(some), s.n * inner * some);
        let workers = || fused.begin();
        share_with(blocks, cost, workers, |range, workers| {
            for b in range {
                let channels = b * some..((b + 1) * some).min(c);
                let mut sums = alloc::full([0.0; 2], channels.len());
                // SAFETY: channels lie inside the tensors, and these are this range's.
                unsafe {
                    for (at, len) in (0..s.n).map(|n| job.span(n, &channels)) {
                        workers.prologue(at, len);
                    }
                    channel_sums::<T, X>(job, channels.clone(), &mut sums);
                    let lines = channels.clone().zip(sums).map(|(ch, v)| line(ch, v));
                    let lines: Vec<_> = lines.collect();
                    for n in 0..s.n {
                        let planes = n * c + channels.start..n * c + channels.end;
                        write_planes::<T, X>(job, planes, &lines, channels.start);
                        let (at, len) = job.span(n, &channels);
                        workers.epilogue(at, len);
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
        if job.g.is_none() {
            let mean = total[0] / all.len() as f64;
            let apart: f64 = all.iter().map(|v| (v[0] - mean) * (v[0] - mean)).sum();
            total = [mean, total[1] + apart * inner as f64];
        }
        total
    };
    if c >= MANY {
        // A channel's planes are still in cache when they are written.
        let workers = || fused.begin();
        share_with(c, s.n * inner, workers, |range, workers| {
            for ch in range {
                let plane = |n: usize| n * c + ch..n * c + ch + 1;
                let mut each = (0..s.n).map(|n| {
                    let mut out = [[0.0; 2]];
                    // SAFETY: planes below `s.n * c` lie inside the tensors.
                    unsafe {
                        workers.prologue(plane(n).start * inner, inner);
                        plane_sums::<T, X>(job, plane(n), &mut out)
                    };
                    out[0]
                });
                let line = [line(ch, joined(&mut each))];
                for n in 0..s.n {
                    // SAFETY: the planes of this channel belong to this range alone.
                    unsafe {
                        write_planes::<T, X>(job, plane(n), &line, ch);
                        workers.epilogue(plane(n).start * inner, inner);
                    }
                }
            }
        });
        return;
    }
    let mut each = alloc::full([0.0; 2], s.n * c);
    let to = Ptr::new(each.as_mut_ptr());
    let workers = || fused.begin();
    share_with(s.n * c, inner, workers, |range, workers| {
        // SAFETY: these planes belong to this range alone.
        unsafe {
            let out = std::slice::from_raw_parts_mut(to.at(range.start), range.len());
            for (p, out) in range.zip(out.chunks_mut(1)) {
                workers.prologue(p * inner, inner);
                plane_sums::<T, X>(job, p..p + 1, out);
            }
        }
    });
    let lines: Vec<Line<T>> = (0..c)
        .map(|ch| line(ch, joined(&mut (0..s.n).map(|n| each[n * c + ch]))))
        .collect();
    // SAFETY: there is a line for each channel; tensors have the sizes that `s` names.
    unsafe { job.write_fused(&lines, fused, false) };
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
                let x = X::of(job.x.ptr(), p * n);
                if let Some((g, rstd)) = &job.g {
                    let ch = p % c;
                    let normal = Normal { x, mean: *job.mean.at(ch), rstd: rstd[ch] };
                    let (g, weight) = (X::of(g.ptr(), p * n), Same(T::of_f64(1.0)));
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
                        let normal = Normal { x: X::of(job.x.ptr(), at), mean, rstd };
                        let (g, weight) = (X::of(g.ptr(), at), Same(T::of_f64(1.0)));
                        sums.add::<V, _>(n, &Products { g, normal, weight, sums: None });
                    }
                }
                out.iter_mut().zip(&mut sums).for_each(|(o, s)| *o = s.total::<V>());
                return;
            }
            let mut means = alloc::full(Running::<T, 1>::new(), width);
            for sample in 0..s.n {
                for (i, mean) in means.iter_mut().enumerate() {
                    mean.add::<V, _>(n, &Plain(X::of(job.x.ptr(), at(sample, i))));
                }
            }
            let count = (s.n * n) as f64;
            let means: Vec<T> = alloc::gathered(
                means.iter_mut().map(|m| T::of_f64(m.total::<V>()[0] / count))
            );
            for sample in 0..s.n {
                for (i, sums) in sums.iter_mut().enumerate() {
                    sums.add::<V, _>(n, &Moments(X::of(job.x.ptr(), at(sample, i)), means[i]));
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
                let (x, y) = (X::of(job.x.ptr(), p * n), X::of(job.y.ptr(), p * n));
                let off = Normal { x, mean: *job.mean.at(ch), rstd: one };
                let Some((g, _)) = &job.g else {
                    let (weight, bias) = (Same(k), Same(a));
                    each::<V, _>(n, &Affine(off, weight, bias, y));
                    continue;
                };
                let g = X::of(g.ptr(), p * n);
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
                let (x, y) = (X::of(job.x.ptr(), n * c), X::of(job.y.ptr(), n * c));
                match &job.g {
                    None => each::<V, _>(c, &Scaled { x, mean, k, a, y }),
                    Some((g, _)) => {
                        let g = X::of(g.ptr(), n * c);
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
                        g: X::of(g.ptr(), at(n)),
                        x: X::of(job.x.ptr(), at(n)),
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
                each::<V, _>(width, &AddRow { x: X::of(job.x.ptr(), at(n)), to: some.as_mut_ptr() });
                settle(&mut some, &mut one, n);
            }
            let mean = |i: usize| T::of_f64(fold(&one, i) / count);
            let means: Vec<T> = (0..channels.len()).map(mean).collect();
            let mean = wide(&|ch| means[ch]);
            one.fill(0.0);
            for n in 0..s.n {
                let moments = AddMoments {
                    x: X::of(job.x.ptr(), at(n)),
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

//! Rows shared out to threads: what softmax, norms, running results and segments have in common.
//!
//! [`share`] shares rows out by what they cost, and gives each thread what it works with. [`lines`] does so with the
//! lines along a dimension, several at a time, and [`map`] also converts them where a kernel computes in another
//! type than its [`Data`] have.

use crate::alloc::{self, Scratch};
use crate::convert::{load, store};
use crate::dtype::DType;
use crate::elements::Compute;
use crate::pool::{parallel_for, Ptr};
use crate::shape::Span;
use crate::strided::Strided;
use std::ops::Range;
use std::ptr::null_mut;

/// Elements that are worth a thread of their own.
const WORTH: usize = 1 << 14;

/// Calls `f` on ranges that together cover `0..n` once, on several threads where rows are worth it that cost as much
/// as `cost` elements each.
#[inline]
pub fn share(n: usize, cost: usize, f: impl Fn(Range<usize>) + Sync) {
    parallel_for(n, WORTH / cost.max(1) + 1, f);
}

/// [`share`], where each range has what `start` makes to work with.
#[inline]
pub fn share_with<S>(
    n: usize,
    cost: usize,
    start: impl Fn() -> S + Sync,
    f: impl Fn(Range<usize>, &mut S) + Sync,
) {
    share(n, cost, |range| f(range, &mut start()));
}

/// Lines of contiguous tensors that are taken together: one after the other where a line's elements do not lie apart,
/// else side by side.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// The first element of the first one.
    pub at: usize,
    /// Elements of each, and how far apart they lie.
    pub n: usize,
    pub stride: usize,
    /// How many they are.
    pub count: usize,
}

impl Lines {
    /// Parts that have no gaps: how many, their elements, and how far apart they lie.
    fn parts(&self) -> (usize, usize, usize) {
        match self.stride {
            1 => (1, self.n * self.count, 0),
            stride => (self.n, self.count, stride),
        }
    }

    /// Where they lie once [`Data::gather`] has brought them together.
    fn gathered(&self) -> Lines {
        Lines {
            at: 0,
            stride: if self.stride == 1 { 1 } else { self.count },
            ..*self
        }
    }
}

/// Calls `f` on all lines of a span: on up to `rows` at once where they follow each other, on up to `columns` where
/// they lie side by side. An element costs as much as `cost` of [`share`].
pub fn lines(of: Span, together: (usize, usize), cost: usize, f: impl Fn(Lines) + Sync) {
    lines_with(of, together, cost, || (), |l, ()| f(l));
}

/// [`lines`], as [`share_with`].
fn lines_with<S>(
    of: Span,
    (rows, columns): (usize, usize),
    cost: usize,
    start: impl Fn() -> S + Sync,
    f: impl Fn(Lines, &mut S) + Sync,
) {
    let (n, inner) = (of.length, of.inner);
    if of.outer * n * inner == 0 {
        return;
    }
    let (rows, columns) = match inner {
        1 => (rows, 1),
        _ => (1, columns.min(inner)),
    };
    let tiles = inner.div_ceil(columns);
    let units = of.outer.div_ceil(rows) * tiles;
    share_with(units, n * rows * columns * cost, start, |range, own| {
        for unit in range {
            // Most often there is one, and division is slow.
            let (o, tile) = match tiles {
                1 => (unit * rows, 0),
                _ => (unit / tiles, unit % tiles * columns),
            };
            let count = match inner {
                1 => rows.min(of.outer - o),
                _ => columns.min(inner - tile),
            };
            let group = Lines {
                at: o * n * inner + tile,
                n,
                stride: inner,
                count,
            };
            f(group, own);
        }
    });
}

/// A contiguous tensor: of the type that a kernel computes in, or of one that rows are converted from or to.
#[derive(Clone, Copy)]
pub struct Data {
    ptr: Ptr<u8>,
    dtype: DType,
}

impl Data {
    pub fn of(t: &impl Strided) -> Data {
        debug_assert!(t.is_contiguous());
        let (ptr, dtype) = (Ptr::new(t.bytes_ptr()), t.dtype());
        Data { ptr, dtype }
    }

    /// Elements in memory of a thread, which are found by their numbers in the tensor that they are `first..` of.
    pub fn moved<T: Compute>(at: *const T, first: usize) -> Data {
        let ptr = Ptr::new(at.wrapping_sub(first).cast_mut().cast());
        let dtype = T::DTYPE;
        Data { ptr, dtype }
    }

    #[inline(always)]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.get()
    }

    #[inline(always)]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether nothing is converted.
    #[inline(always)]
    fn is<T: Compute>(&self) -> bool {
        self.dtype == T::DTYPE
    }

    /// The address of an element.
    #[inline(always)]
    fn element(&self, i: usize) -> *mut u8 {
        self.ptr().wrapping_add(i * self.dtype.size())
    }

    /// Elements `range`, in `buffer` where they have to be converted.
    ///
    /// # Safety
    /// The range lies inside the tensor, and nobody writes to it meanwhile.
    #[inline(always)]
    pub unsafe fn read<'a, T: Compute>(
        &self,
        range: Range<usize>,
        buffer: &'a mut Vec<T>,
    ) -> &'a [T] {
        let (from, n) = (self.element(range.start), range.len());
        if self.is::<T>() {
            // SAFETY: the range lies inside the tensor, which nobody writes meanwhile.
            return unsafe { std::slice::from_raw_parts(from.cast(), n) };
        }
        alloc::resize(buffer, n, T::default());
        // SAFETY: the range lies inside the tensor; the buffer has as many elements.
        unsafe {
            load(
                self.dtype,
                from,
                self.dtype.size() as isize,
                n,
                buffer.as_mut_ptr(),
            )
        };
        buffer
    }

    /// Where to write elements `range`: `buffer`, where they have to be converted.
    ///
    /// # Safety
    /// The range lies inside the tensor and belongs to this thread.
    #[inline(always)]
    pub unsafe fn place<'a, T: Compute>(
        &self,
        range: Range<usize>,
        buffer: &'a mut Vec<T>,
    ) -> &'a mut [T] {
        if self.is::<T>() {
            let to = self.element(range.start).cast();
            // SAFETY: the range lies inside the tensor and belongs to this thread.
            return unsafe { std::slice::from_raw_parts_mut(to, range.len()) };
        }
        alloc::resize(buffer, range.len(), T::default());
        buffer
    }

    /// Converts what has been written to [`Data::place`].
    ///
    /// # Safety
    /// As for that.
    #[inline(always)]
    pub unsafe fn keep<T: Compute>(&self, range: Range<usize>, buffer: &[T]) {
        if !self.is::<T>() {
            let (to, step) = (self.element(range.start), self.dtype.size() as isize);
            // SAFETY: the range lies inside the tensor and belongs to this thread; the buffer has as many elements.
            unsafe { store(self.dtype, to, step, range.len(), buffer.as_ptr()) };
        }
    }

    /// Converts lines to `to`, where they have no gaps.
    // SAFETY: the lines lie inside the tensor, and `to` has room for them.
    unsafe fn gather<T: Compute>(&self, l: Lines, to: *mut T) {
        let (parts, n, step) = l.parts();
        for k in 0..parts {
            let from = self.element(l.at + k * step);
            // SAFETY: the lines lie inside the tensor, and `to` has room for them.
            unsafe {
                load(
                    self.dtype,
                    from,
                    self.dtype.size() as isize,
                    n,
                    to.add(k * n),
                )
            };
        }
    }

    /// Converts lines from where [`Data::gather`] would have brought them.
    // SAFETY: the lines lie inside the tensor and belong to this thread, and `from` has them.
    unsafe fn scatter<T: Compute>(&self, l: Lines, from: *const T) {
        let (parts, n, step) = l.parts();
        for k in 0..parts {
            let to = self.element(l.at + k * step);
            // SAFETY: the lines lie inside the tensor and belong to this thread, and `from` has them.
            unsafe {
                store(
                    self.dtype,
                    to,
                    self.dtype.size() as isize,
                    n,
                    from.add(k * n),
                )
            };
        }
    }
}

/// Operands of [`map`] at most.
const OPERANDS: usize = 3;

/// What [`map`] calls: it gets lines, and where the first one of each operand begins.
pub type Kernel<T> = unsafe fn(Lines, &[*mut T]);

/// [`lines`] of contiguous tensors of one shape, the last of which a kernel writes from the others.
///
/// # Safety
/// The tensors have as many elements as the span, and nobody else writes to them; the machine can run the kernel, which
/// uses the lines that it gets alone.
pub unsafe fn map<T: Compute>(
    all: &[Data],
    of: Span,
    (rows, columns): (usize, usize),
    cost: usize,
    kernel: Kernel<T>,
) {
    let (converted, last) = (all.iter().any(|d| !d.is::<T>()), all.len() - 1);
    // Elements of the most lines that are taken at once.
    let most = of.length
        * if of.inner == 1 {
            rows
        } else {
            columns.min(of.inner)
        };
    let room = || Scratch::<T>::new(if converted { all.len() * most } else { 0 });
    lines_with(of, (rows, columns), cost, room, |l, room| {
        let mut at = [null_mut(); OPERANDS];
        let at = &mut at[..all.len()];
        // SAFETY: the lines lie inside the tensors, and nobody else uses those of the last; there is room for the most
        // lines of each.
        unsafe {
            for (i, (d, at)) in all.iter().zip(&mut *at).enumerate() {
                *at = match converted {
                    true => room.ptr().add(i * most),
                    false => d.element(l.at).cast(),
                };
                if converted && i < last {
                    d.gather(l, *at);
                }
            }
            if !converted {
                return kernel(l, at);
            }
            kernel(l.gathered(), at);
            all[last].scatter(l, at[last]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::set_num_threads;
    use crate::strided::Owned;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Every element of every line is met once, and lines of a group are neighbours.
    #[test]
    fn lines_cover_a_span_once() {
        set_num_threads(4);
        for (outer, length, inner) in [(7, 5, 1), (1, 9, 1), (3, 4, 10), (2, 3, 200), (0, 3, 4)] {
            let of = Span {
                outer,
                length,
                inner,
            };
            let hits: Vec<AtomicUsize> = (0..outer * length * inner).map(|_| 0.into()).collect();
            lines(of, (4, 64), 1 << 12, |l| {
                assert!(l.count <= if inner == 1 { 4 } else { 64 });
                let apart = if l.stride == 1 { l.n } else { 1 };
                for (j, k) in (0..l.count).flat_map(|j| (0..l.n).map(move |k| (j, k))) {
                    hits[l.at + j * apart + k * l.stride].fetch_add(1, Relaxed);
                }
            });
            assert!(hits.iter().all(|h| h.load(Relaxed) == 1), "{of:?}");
        }
    }

    /// The last element of each line minus its first, at each of its elements.
    unsafe fn rise(l: Lines, at: &[*mut f32]) {
        let apart = if l.stride == 1 { l.n } else { 1 };
        for (j, k) in (0..l.count).flat_map(|j| (0..l.n).map(move |k| (j, k))) {
            let first = j * apart;
            // SAFETY: the elements are those of the lines.
            unsafe {
                let x = |k: usize| *at[0].add(first + k * l.stride);
                *at[1].add(first + k * l.stride) = x(l.n - 1) - x(0);
            }
        }
    }

    #[test]
    fn kernels_see_lines_in_the_type_that_they_compute_in() {
        for (outer, length, inner) in [(5, 6, 1), (2, 3, 150)] {
            let (n, shape) = (outer * length * inner, [outer, length, inner]);
            let whole: Vec<f32> = (0..n).map(|i| (i * i % 101) as f32).collect();
            let half: Vec<half::f16> = whole.iter().map(|&v| half::f16::from_f32(v)).collect();
            let wants = |i: usize| {
                let (o, j) = (i / inner / length, i % inner);
                whole[(o * length + length - 1) * inner + j] - whole[o * length * inner + j]
            };
            let of = Span {
                outer,
                length,
                inner,
            };
            let (x, y) = (
                Owned::new(&whole, &shape, DType::F32),
                Owned::new(&vec![0.0f32; n], &shape, DType::F32),
            );
            // SAFETY: both have as many elements as the span, and this test alone uses them.
            unsafe { map::<f32>(&[Data::of(&x), Data::of(&y)], of, (4, 64), 1, rise) };
            let (x, z) = (
                Owned::new(&half, &shape, DType::F16),
                Owned::new(&vec![half::f16::ZERO; n], &shape, DType::F16),
            );
            // SAFETY: both have as many elements as the span, and this test alone uses them.
            unsafe { map::<f32>(&[Data::of(&x), Data::of(&z)], of, (4, 64), 1, rise) };
            for i in 0..n {
                // SAFETY: there are `n` elements.
                let got = unsafe {
                    (
                        *y.ptr::<f32>().add(i),
                        (*z.ptr::<half::f16>().add(i)).to_f32(),
                    )
                };
                assert_eq!(got, (wants(i), wants(i)), "{i} of {of:?}");
            }
        }
    }
}

//! The loops of reading and writing by index.

use super::{offsets, with_cell, Bounds, Cell, Mode};
use crate::alloc;
use crate::cpu::copy;
use crate::cpu::indices::Indices;
use crate::cpu::pool::{num_threads, parallel_chunks, parallel_for, Ptr};
use crate::cpu::simd::fetch;
use crate::dtype::DType;
use crate::error::{Error, Kind, Result};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::{per_isa, with_element};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements moved below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 14;
/// Points whose offsets are worked out together.
const BLOCK: usize = 1024;

/// One of the indices: its values, and the dimension that they name places in.
struct Axis {
    values: Tensor,
    d: usize,
    n: usize,
    stride: usize,
}

/// Equally shaped indices of some dimensions of a layout.
pub struct Points {
    axes: SmallVec<[Axis; 4]>,
    bounds: Bounds,
    n: usize,
}

per_isa! {
    /// Adds to `out` (with `first`, writes) the offsets of indices; false where one does not fit.
    fn place[](values: Indices, n: usize, stride: usize, wraps: bool, first: bool, out: &mut [usize]) -> bool {
        let (n, wrap) = (n as i64, if wraps { n as i64 } else { 0 });
        let mut good = true;
        let mut one = |i: i64| {
            let i = if i < 0 { i.wrapping_add(wrap) } else { i };
            good &= (i as u64) < n as u64;
            (i as usize).wrapping_mul(stride)
        };
        let (eights, rest) = values.eights();
        let (to, last) = out.as_chunks_mut::<8>();
        for (to, eight) in to.iter_mut().zip(eights) {
            for (o, i) in to.iter_mut().zip(eight) {
                *o = one(i).wrapping_add(if first { 0 } else { *o });
            }
        }
        for (o, i) in last.iter_mut().zip(rest.iter()) {
            *o = one(i).wrapping_add(if first { 0 } else { *o });
        }
        good
    }
}

impl Points {
    pub fn new(layout: &Layout, dims: &[usize], idx: &[&Tensor], bounds: Bounds) -> Result<Points> {
        let axis = |(&d, t): (&usize, &&Tensor)| {
            Ok(Axis {
                values: t.prepared(DType::I64)?,
                d,
                // A 0-d tensor is indexed as if it had one element in one dimension.
                n: layout.shape.get(d).copied().unwrap_or(1),
                stride: layout.strides.get(d).copied().unwrap_or(0) as usize,
            })
        };
        Ok(Points {
            axes: dims.iter().zip(idx).map(axis).collect::<Result<_>>()?,
            bounds,
            n: idx[0].numel(),
        })
    }

    /// The offsets of points from `start` on; false where an index does not fit.
    fn fill(&self, start: usize, out: &mut [usize]) -> bool {
        let mut good = true;
        for (i, a) in self.axes.iter().enumerate() {
            let values = Indices::of(&a.values).part(start..start + out.len());
            good &= place(values, a.n, a.stride, self.bounds.wraps(), i == 0, out);
        }
        good
    }

    /// The error for the first index that does not fit.
    fn refusal(&self) -> Error {
        for (k, a) in self.axes.iter().enumerate() {
            let low = if self.bounds.wraps() {
                -(a.n as i64)
            } else {
                0
            };
            let mut values = Indices::of(&a.values).iter();
            if let Some(i) = values.find(|&i| i < low || i >= a.n as i64) {
                // PyTorch counts the dimensions that have indices.
                let d = if self.bounds.wraps() { k } else { a.d };
                return self.bounds.error(i, d, a.n);
            }
        }
        // Another thread wrote to the indices meanwhile.
        Error::new(Kind::Index, "index: an index changed while it was read")
    }

    /// The offset that each point adds within the layout.
    pub fn all(&self) -> Result<Vec<usize>> {
        let mut out = alloc::full(0usize, self.n);
        let bad = AtomicBool::new(false);
        parallel_chunks(&mut out, 1, 2 * GRAIN, |first, part| {
            if !self.fill(first, part) {
                bad.store(true, Ordering::Relaxed);
            }
        });
        if bad.into_inner() {
            return Err(self.refusal());
        }
        Ok(out)
    }
}

/// Moves `n` neighbouring elements.
#[inline(always)]
unsafe fn move_run(from: *const u8, to: *mut u8, n: usize, size: usize) {
    // SAFETY: `from` and `to` hold `n` aligned elements of `size` bytes and do not overlap.
    unsafe {
        match (n, size) {
            (1, 4) => to.cast::<u32>().write(from.cast::<u32>().read()),
            (1, 8) => to.cast::<u64>().write(from.cast::<u64>().read()),
            (1, 2) => to.cast::<u16>().write(from.cast::<u16>().read()),
            (1, 1) => to.write(from.read()),
            _ => copy::copy(from, to, n * size),
        }
    }
}

/// Moves elements at the given offsets to neighbouring places.
unsafe fn gather_run(from: *const u8, to: *mut u8, offsets: &[usize], size: usize) {
    unsafe fn typed<T: Copy>(from: *const T, to: *mut T, offsets: &[usize]) {
        // SAFETY: each offset is inside `from`, and `to` has room for one element for each.
        unsafe {
            for (i, &o) in offsets.iter().enumerate() {
                *to.add(i) = *from.add(o);
            }
        }
    }
    // SAFETY: elements have `size` bytes; offsets are inside `from`, and `to` has room for all.
    unsafe {
        match size {
            1 => typed::<u8>(from, to, offsets),
            2 => typed::<u16>(from.cast(), to.cast(), offsets),
            4 => typed::<u32>(from.cast(), to.cast(), offsets),
            8 => typed::<u64>(from.cast(), to.cast(), offsets),
            _ => typed::<[u64; 2]>(from.cast(), to.cast(), offsets),
        }
    }
}

/// `y` = `x` at the points, for each of `before` and all of `after`.
///
/// # Safety
/// The points belong to `x`, and `y` is contiguous, of the result's shape and not empty.
pub unsafe fn take(
    x: &Tensor,
    points: &Points,
    before: &[usize],
    after: &Layout,
    y: &Tensor,
) -> Result<()> {
    // SAFETY: offsets of points, of rows before and of elements after are inside `x`; parts of `y`
    // are disjoint.
    unsafe {
        let (from, to) = (Ptr::new(x.bytes_ptr()), Ptr::new(y.bytes_ptr()));
        let (size, n, inner) = (x.dtype().size(), points.n, after.numel());
        if inner == 1 && before.len() == 1 {
            let bad = AtomicBool::new(false);
            parallel_for(n, GRAIN, |range| {
                let mut at = [0; BLOCK];
                for start in range.clone().step_by(BLOCK) {
                    let at = &mut at[..BLOCK.min(range.end - start)];
                    if !points.fill(start, at) {
                        return bad.store(true, Ordering::Relaxed);
                    }
                    gather_run(from.at(before[0] * size), to.at(start * size), at, size);
                }
            });
            return match bad.into_inner() {
                true => Err(points.refusal()),
                false => Ok(()),
            };
        }
        let at = points.all()?;
        if inner == 1 {
            // Rows in blocks of points, so that one long row is shared out too.
            let blocks = n.div_ceil(BLOCK);
            parallel_for(before.len() * blocks, GRAIN / BLOCK.min(n) + 1, |range| {
                for u in range {
                    let (b, start) = (u / blocks, u % blocks * BLOCK);
                    let part = &at[start..n.min(start + BLOCK)];
                    let to = to.at((b * n + start) * size);
                    gather_run(from.at(before[b] * size), to, part, size);
                }
            });
            return Ok(());
        }
        let run = after.is_contiguous();
        let after = if run { vec![0] } else { offsets(after) };
        let copy = copy::runs(inner * size).filter(|_| run);
        parallel_for(before.len() * n, GRAIN / inner + 1, |range| {
            let place = |i: usize| from.at((before[i / n] + at[i % n]) * size).cast_const();
            let mut from = place(range.start);
            for i in range.clone() {
                let to = to.at(i * inner * size);
                let next = if i + 1 < range.end {
                    place(i + 1)
                } else {
                    from
                };
                match copy {
                    Some(copy) => copy(from, to, inner * size, next),
                    None if run => move_run(from, to, inner, size),
                    None => gather_run(from, to, &after, size),
                }
                from = next;
            }
        });
        Ok(())
    }
}

/// Offsets in row-major order: even steps where that is what they are.
enum Offsets {
    Step(usize),
    Table(Vec<usize>),
}

impl Offsets {
    fn of(layout: &Layout) -> Offsets {
        let mut dims = (0..layout.ndim()).rev().filter(|&d| layout.shape[d] != 1);
        let Some(last) = dims.next() else {
            return Offsets::Step(0);
        };
        let step = layout.strides[last];
        let mut next = step.wrapping_mul(layout.shape[last] as isize);
        for d in dims {
            if layout.strides[d] != next {
                return Offsets::Table(offsets(layout));
            }
            next = next.wrapping_mul(layout.shape[d] as isize);
        }
        Offsets::Step(step as usize)
    }
    #[inline(always)]
    fn get(&self, i: usize) -> usize {
        match self {
            Offsets::Step(s) => i.wrapping_mul(*s),
            Offsets::Table(t) => t[i],
        }
    }
}

/// Values combined into places of a tensor.
pub struct Put<'a> {
    pub mode: Mode,
    /// Offsets of the points.
    pub at: &'a [usize],
    pub before: &'a [usize],
    pub after: &'a Layout,
    pub value_before: &'a [usize],
    pub value_at: &'a Layout,
    pub value_after: &'a Layout,
}

impl Put<'_> {
    /// Combines `values` into `y`. Duplicate points act one after the other: threads share out
    /// what comes before the indexed dimensions, the places there, or what comes after.
    ///
    /// # Safety
    /// Offsets lie within the tensors, which do not overlap.
    pub unsafe fn run(&self, values: &Tensor, y: &Tensor) -> Result<()> {
        let (outer, inner, n) = (self.before.len(), self.after.numel(), self.at.len());
        let steps = (Offsets::of(self.after), Offsets::of(self.value_after));
        let value_at = Offsets::of(self.value_at);
        let (to, from) = (Ptr::new(y.bytes_ptr()), Ptr::new(values.bytes_ptr()));
        let part = |b: usize, own: Range<usize>, columns: Range<usize>| -> Result<()> {
            with_cell!(y.dtype(), T => {
                // SAFETY: offsets before, of points and after lie within the tensors.
                unsafe {
                    let to = to.get().cast::<T>().add(self.before[b]);
                    let from = from.get().cast::<T>().add(self.value_before[b]);
                    combine::<T>(to, from, self.at, own, &value_at, &steps, columns, self.mode);
                }
            });
            Ok(())
        };
        // Complex types are refused before threads start.
        with_element!(y.dtype(), T => std::mem::size_of::<T>());
        let all = 0..usize::MAX;
        if outer >= 2 * num_threads() || n * inner < 2 * GRAIN || inner < 64 {
            parallel_for(outer, GRAIN / (n * inner) + 1, |range| {
                for b in range {
                    let _ = part(b, all.clone(), 0..inner);
                }
            });
            return Ok(());
        }
        let shares = self.shares();
        for b in 0..outer {
            match &shares {
                Some(shares) => parallel_for(shares.len(), 1, |range| {
                    for own in &shares[range] {
                        let _ = part(b, own.clone(), 0..inner);
                    }
                }),
                None => parallel_for(inner, (GRAIN / n).max(64), |columns| {
                    let _ = part(b, all.clone(), columns);
                }),
            }
        }
        Ok(())
    }

    /// Ranges of offsets with about as many points each, where there are such and threads for them.
    /// Each is a pass over the points, so that more than two for a thread cost more than they gain.
    fn shares(&self) -> Option<Vec<Range<usize>>> {
        const MOST: usize = 8;
        let shares = (2 * num_threads()).min(MOST);
        let end = self.at.iter().max()? + 1;
        let each = end.div_ceil(shares);
        let mut counts = [0; MOST];
        for &o in self.at {
            counts[o / each] += 1;
        }
        let even = counts.iter().all(|&c| shares * c <= 2 * self.at.len());
        (even && num_threads() > 1).then(|| (0..shares).map(|i| i * each..(i + 1) * each).collect())
    }
}

/// Adds a row while the lines of the one at `next` come into the cache.
#[inline(always)]
unsafe fn add_row<T: Cell>(to: *mut T, from: *const T, n: usize, next: *const T) {
    const STEP: usize = 16;
    // SAFETY: both rows have `n` elements and do not overlap; any address may be asked for.
    unsafe {
        let mut i = 0;
        while i + STEP <= n {
            fetch(next.wrapping_add(i));
            if size_of::<T>() > 4 {
                fetch(next.wrapping_add(i + STEP / 2));
            }
            T::add_block(to.add(i), from.add(i));
            i += STEP;
        }
        for i in i..n {
            *to.add(i) = (*to.add(i)).combine(*from.add(i), Mode::Add);
        }
    }
}

per_isa! {
    unsafe fn combine[T: Cell](
        to: *mut T,
        from: *const T,
        at: &[usize],
        own: Range<usize>,
        value_at: &Offsets,
        steps: &(Offsets, Offsets),
        columns: Range<usize>,
        mode: Mode,
    ) {
        // SAFETY: offsets, those before and after them and places of values lie within the tensors;
        // threads have `own` or `columns` apart.
        unsafe {
            let unit = matches!(steps, (Offsets::Step(1), Offsets::Step(1)));
            // The next place, whose lines come while this one is written.
            let next = |j: usize, o: usize| {
                let next = at.get(j + 1).filter(|o| own.contains(o));
                to.wrapping_add(next.unwrap_or(&o) + columns.start)
            };
            // The mode as a constant where it matters.
            let one = |to: *mut T, from: *const T| match mode {
                Mode::Set => *to = *from,
                Mode::Add => *to = (*to).combine(*from, Mode::Add),
                mode => *to = (*to).combine(*from, mode),
            };
            if columns.len() == 1 {
                let (a, b) = (steps.0.get(columns.start), steps.1.get(columns.start));
                let (to, from) = (to.add(a), from.add(b));
                match (mode, value_at) {
                    (Mode::Add, &Offsets::Step(step)) => {
                        for (j, &o) in at.iter().enumerate() {
                            let to = to.add(o);
                            *to = (*to).add_one(*from.add(j * step));
                        }
                    }
                    _ => {
                        for (j, &o) in at.iter().enumerate() {
                            one(to.add(o), from.add(value_at.get(j)));
                        }
                    }
                }
            } else if unit && matches!(mode, Mode::Set) {
                let bytes = columns.len() * size_of::<T>();
                let run = copy::runs(bytes);
                for (j, &o) in at.iter().enumerate().filter(|(_, o)| own.contains(o)) {
                    let from = from.add(value_at.get(j) + columns.start).cast();
                    let to = to.add(o + columns.start).cast();
                    match run {
                        Some(run) => run(from, to, bytes, next(j, o).cast()),
                        None => copy::copy(from, to, bytes),
                    }
                }
            } else if matches!((mode, steps), (Mode::Set, (Offsets::Step(1), Offsets::Step(0)))) {
                for (j, &o) in at.iter().enumerate().filter(|(_, o)| own.contains(o)) {
                    let v = *from.add(value_at.get(j));
                    let to = to.add(o);
                    for c in columns.clone() {
                        to.add(c).write(v);
                    }
                }
            } else if unit && matches!(mode, Mode::Add) {
                for (j, &o) in at.iter().enumerate().filter(|(_, o)| own.contains(o)) {
                    let from = from.add(value_at.get(j) + columns.start);
                    add_row(to.add(o + columns.start), from, columns.len(), next(j, o));
                }
            } else {
                for (j, &o) in at.iter().enumerate().filter(|(_, o)| own.contains(o)) {
                    let (to, from) = (to.add(o), from.add(value_at.get(j)));
                    for c in columns.clone() {
                        one(to.add(steps.0.get(c)), from.add(steps.1.get(c)));
                    }
                }
            }
        }
    }
}

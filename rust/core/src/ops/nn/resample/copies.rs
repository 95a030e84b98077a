//! Maps whose every output is one input: padding, the nearest neighbour. Elements are moved as they
//! are, whatever their type; rows that are read twice in turn are made once.

use super::{Axis, Resample};
use crate::cpu::pool::parallel_chunks;
use crate::cpu::strided_copy::rows::run;
use crate::per_isa;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::ops::Range;

/// The fewest neighbours that are copied together.
const RUN: usize = 8;
/// Rows of which each run is written in turn.
const ROWS: usize = 16;

/// How a row is read.
enum Row<'a> {
    /// Each element this many times.
    Repeated(usize),
    /// Runs of neighbours, from an output on, and single elements between them.
    Runs(&'a Axis, Vec<(Range<usize>, bool)>),
}

impl<'a> Row<'a> {
    fn of(axis: &'a Axis) -> Row<'a> {
        let index = &axis.index[..];
        assert!(
            index.iter().all(|&i| i < axis.inputs),
            "places of the input"
        );
        for times in 1..=4 {
            let repeats = axis.inputs * times == index.len();
            if repeats && index.iter().enumerate().all(|(i, &j)| j == i / times) {
                return Row::Repeated(times);
            }
        }
        let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
        let mut at = 0;
        while at < index.len() {
            let mut end = at + 1;
            while end < index.len() && index[end] == index[end - 1] + 1 {
                end += 1;
            }
            let long = end - at >= RUN;
            match runs.last_mut() {
                Some((last, false)) if !long => last.end = end,
                _ => runs.push((at..end, long)),
            }
            at = end;
        }
        Row::Runs(axis, runs)
    }

    /// Elements in groups of `unit`, which move together.
    fn write_units<U: Copy>(index: &[usize], unit: usize, x: &[U], y: &mut [U]) {
        for (y, &j) in y.chunks_exact_mut(unit).zip(index) {
            y.copy_from_slice(&x[j * unit..][..unit]);
        }
    }

    /// Each element so many times.
    fn write_repeated<U: Copy>(times: usize, x: &[U], y: &mut [U]) {
        fn repeat<U: Copy, const N: usize>(x: &[U], y: &mut [U]) {
            for (y, &x) in y.as_chunks_mut::<N>().0.iter_mut().zip(x) {
                *y = [x; N];
            }
        }
        match times {
            1 => y.copy_from_slice(x),
            2 => repeat::<U, 2>(x, y),
            3 => repeat::<U, 3>(x, y),
            _ => repeat::<U, 4>(x, y),
        }
    }
}

per_isa! {
    /// Writes rows of runs and single elements, each from a row of `x`.
    unsafe fn write_runs[U: Copy](
        index: &[usize], runs: &[(Range<usize>, bool)], x: &[*const U], y: *mut U
    ) {
        // SAFETY: runs are ranges of the index, one place of a row of `y` each, which names elements
        // of the rows of `x`.
        unsafe {
            for (at, long) in runs {
                let first = *index.get_unchecked(at.start);
                if *long {
                    for (r, x) in x.iter().enumerate() {
                        run(x.add(first), y.add(r * index.len() + at.start), at.len());
                    }
                } else if at.len() < RUN {
                    for i in at.clone() {
                        let from = *index.get_unchecked(i);
                        for (r, x) in x.iter().enumerate() {
                            *y.add(r * index.len() + i) = *x.add(from);
                        }
                    }
                } else {
                    for (r, x) in x.iter().enumerate() {
                        for i in at.clone() {
                            *y.add(r * index.len() + i) = *x.add(*index.get_unchecked(i));
                        }
                    }
                }
            }
        }
    }
}

impl Axis {
    fn is_gather(&self) -> bool {
        let each = self.start.iter().enumerate().all(|(i, &at)| i == at);
        each && self.weight.is_empty()
    }
}

impl Resample {
    /// Whether each output is an input.
    pub(super) fn copies(&self) -> bool {
        let gather = self.axes.iter().all(Axis::is_gather);
        self.divisors.is_none() && gather && !self.axes.is_empty()
    }

    /// Copies what is to be copied from `x`, which is contiguous, to `y`.
    pub(super) fn copy(&self, x: &Tensor, y: &Tensor) {
        macro_rules! moved {
            ($($t:ty)*) => {
                match y.dtype().size() {
                    $(
                        // SAFETY: contiguous memory of elements of this size; the result is this
                        // call's own.
                        n if n == size_of::<$t>() => unsafe { self.rows::<$t>(x.slice(), y.slice_mut()) },
                    )*
                    _ => unreachable!("elements have one to sixteen bytes"),
                }
            };
        }
        if y.numel() > 0 {
            moved!(u8 u16 u32 u64 [u64; 2]);
        }
    }

    fn rows<U: Copy + Send + Sync>(&self, x: &[U], y: &mut [U]) {
        // Along a last dimension that stays, elements move together.
        let (moved, unit) = match self.axes.split_last() {
            Some((last, rest)) if !rest.is_empty() && last.is_identity() => (rest, last.inputs),
            _ => (&self.axes[..], 1),
        };
        let Some((last, outer)) = moved.split_last() else {
            return;
        };
        let (n, m) = (last.inputs * unit, last.outputs() * unit);
        let (row, grain) = (Row::of(last), (1 << 14) / m + 1);
        // The dimensions before, the last one first: how far it is from one input to the next, in
        // rows, and which are read. The first of these changes from row to row.
        let mut step = 1;
        let mut dims: SmallVec<[(usize, &[usize]); 3]> = SmallVec::new();
        for axis in outer.iter().rev() {
            dims.push((step, &axis.index));
            step *= axis.inputs;
        }
        let (near, far) = match dims.split_first() {
            Some((&(_, near), far)) => (near, far),
            None => (&[0][..], &[][..]),
        };
        // Row `r` of the outputs of other dimensions.
        let source = |mut r: usize| {
            let mut from = 0;
            for (step, index) in far {
                from += step * index[r % index.len()];
                r /= index.len();
            }
            // What is left counts planes.
            from + r * step
        };
        parallel_chunks(y, m, grain, |first, all| {
            let (mut at, mut other) = (first % near.len(), first / near.len());
            let mut base = source(other);
            let mut next = || {
                let from = base + near[at];
                at += 1;
                if at == near.len() {
                    (at, other) = (0, other + 1);
                    base = source(other);
                }
                &x[from * n..][..n]
            };
            let times = match &row {
                Row::Repeated(times) => *times,
                Row::Runs(axis, runs) if unit == 1 => {
                    for y in all.chunks_mut(ROWS * m) {
                        let mut from = [x.as_ptr(); ROWS];
                        let from = &mut from[..y.len() / m];
                        from.fill_with(|| next().as_ptr());
                        // SAFETY: runs are ranges of the index, whose numbers are below `inputs`,
                        // the length of a row of `x`; `y` has as many rows.
                        unsafe { write_runs(&axis.index, runs, from, y.as_mut_ptr()) };
                    }
                    return;
                }
                Row::Runs(..) => 0,
            };
            let mut before = None;
            for r in 0..all.len() / m {
                let x = next();
                if before == Some(x.as_ptr()) {
                    all.copy_within((r - 1) * m..r * m, r * m);
                } else if unit > 1 {
                    Row::write_units(&last.index, unit, x, &mut all[r * m..][..m]);
                } else {
                    Row::write_repeated(times, x, &mut all[r * m..][..m]);
                }
                before = Some(x.as_ptr());
            }
        });
    }
}

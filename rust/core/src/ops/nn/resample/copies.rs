//! Maps whose every output is one input: padding, the nearest neighbour. Elements are moved as they
//! are, whatever their type; rows that are read twice in turn are made once.

use super::{Axis, Resample};
use crate::cpu::pool::parallel_chunks;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::ops::Range;

/// The fewest neighbours that are copied together.
const RUN: usize = 8;

/// How a row is read.
enum Row<'a> {
    /// Each element this many times.
    Repeated(usize),
    /// Runs of neighbours, from an output on, and single elements between them.
    Runs(&'a [usize], Vec<(Range<usize>, bool)>),
}

impl<'a> Row<'a> {
    fn of(axis: &'a Axis) -> Row<'a> {
        let index = &axis.index[..];
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
        Row::Runs(index, runs)
    }

    /// Elements in groups of `unit`, which move together.
    fn write_units<U: Copy>(index: &[usize], unit: usize, x: &[U], y: &mut [U]) {
        for (y, &j) in y.chunks_exact_mut(unit).zip(index) {
            y.copy_from_slice(&x[j * unit..][..unit]);
        }
    }

    fn write<U: Copy>(&self, x: &[U], y: &mut [U]) {
        fn repeat<U: Copy, const N: usize>(x: &[U], y: &mut [U]) {
            for (y, &x) in y.as_chunks_mut::<N>().0.iter_mut().zip(x) {
                *y = [x; N];
            }
        }
        match self {
            Row::Repeated(1) => y.copy_from_slice(x),
            Row::Repeated(2) => repeat::<U, 2>(x, y),
            Row::Repeated(3) => repeat::<U, 3>(x, y),
            Row::Repeated(_) => repeat::<U, 4>(x, y),
            Row::Runs(index, runs) => {
                for (at, run) in runs {
                    if *run {
                        let from = index[at.start];
                        y[at.clone()].copy_from_slice(&x[from..from + at.len()]);
                        continue;
                    }
                    for (y, &j) in y[at.clone()].iter_mut().zip(&index[at.clone()]) {
                        *y = x[j];
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
        let source = |r: usize| {
            let (mut rest, mut at): (usize, SmallVec<[usize; 3]>) = (r, SmallVec::new());
            for axis in outer.iter().rev() {
                at.push(axis.index[rest % axis.outputs()]);
                rest /= axis.outputs();
            }
            // What is left counts planes.
            let planes = outer.iter().zip(at.iter().rev());
            planes.fold(rest, |all, (axis, at)| all * axis.inputs + at)
        };
        parallel_chunks(y, m, grain, |first, all| {
            let mut before = None;
            for r in 0..all.len() / m {
                let from = source(first + r);
                if before == Some(from) {
                    all.copy_within((r - 1) * m..r * m, r * m);
                } else if unit > 1 {
                    let (x, y) = (&x[from * n..][..n], &mut all[r * m..][..m]);
                    Row::write_units(&last.index, unit, x, y);
                } else {
                    row.write(&x[from * n..][..n], &mut all[r * m..][..m]);
                }
                before = Some(from);
            }
        });
    }
}

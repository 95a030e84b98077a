//! Means of windows along a long dimension, in runs of outputs that stay in the first cache, which threads
//! share out; where a short one lies behind it, then along that one, whole columns at a time. The adjoint is
//! such sums again, of windows of the outputs.

use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::number::Number;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::Bitwise;
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Keep, Mask, Metas, Op, TensorMeta, Traits};
use crate::tensor::Tensor;
use crate::{per_isa, with_compute};
use std::sync::Arc;

/// Outputs of a run at least, and the fewest of a line that runs are worth.
const RUN: usize = 2048;
const LONG: usize = 512;
/// Outputs, or terms of a long sum, that are added together.
const LANES: usize = 16;
/// Elements of a window from which on sums of blocks are fewer than those of windows.
const BLOCKED: usize = 16;

/// What a window's sum is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The elements inside.
    Inside,
    /// Those of the padding too.
    Padded,
    Number(Bitwise<f64>),
}

/// Windows over a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Windows {
    Even {
        kernel: usize,
        stride: usize,
        padding: usize,
        by: By,
    },
    /// Parts of nearly equal length.
    Parts,
}

/// The windows along a dimension, where `adjoint` the way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line {
    inputs: usize,
    outputs: usize,
    windows: Windows,
    adjoint: bool,
}

/// The means, or where the lines are `adjoint` their adjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Means {
    name: &'static str,
    line: Line,
    /// The windows along the last dimension, behind that of the lines.
    across: Option<Line>,
    /// Dimensions of one element behind that of the windows.
    behind: usize,
    /// Whether the gradient counts as one that depends on the input.
    steps: bool,
}

/// The means of windows over the last dimension that is not one of the `behind` ones, of one element each; `None`
/// where lines are short, or on a GPU.
pub fn means(
    name: &'static str,
    x: &Tensor,
    behind: usize,
    outputs: usize,
    windows: Windows,
) -> Option<Result<Tensor>> {
    let inputs = x.size(x.ndim() - 1 - behind);
    let long = (LONG..1 << 31).contains(&inputs.max(outputs));
    if x.device().is_gpu() || !long || inputs.min(outputs) == 0 {
        return None;
    }
    let line = Line {
        inputs,
        outputs,
        windows,
        adjoint: false,
    };
    let op = Means {
        name,
        line,
        across: None,
        behind,
        steps: true,
    };
    Some(dispatch::call1(op, &[x]))
}

/// The means of windows over the last two dimensions; `None` where the last one is not short, the other one is
/// not long, or on a GPU.
pub fn means_of_columns(
    name: &'static str,
    x: &Tensor,
    outputs: [usize; 2],
    windows: [Windows; 2],
) -> Option<Result<Tensor>> {
    let of = |i: usize| Line {
        inputs: x.size(x.ndim() - 2 + i),
        outputs: outputs[i],
        windows: windows[i],
        adjoint: false,
    };
    let (line, across) = (of(0), of(1));
    let long = (LONG..1 << 31).contains(&line.inputs.min(line.outputs));
    let short = (1..=LANES).contains(&across.inputs) && (1..=LANES).contains(&across.outputs);
    // Whole numbers are divided once.
    if x.device().is_gpu() || !x.dtype().is_float() || !long || !short {
        return None;
    }
    let op = Means {
        name,
        line,
        across: Some(across),
        behind: 0,
        steps: true,
    };
    Some(dispatch::call1(op, &[x]))
}

impl Derivative for Means {
    fn name(&self) -> &'static str {
        self.name
    }
    fn steps(&self) -> Mask {
        self.steps as Mask
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 1));
        };
        let op = Means {
            line: self.line.adjoint(),
            across: self.across.map(|line| line.adjoint()),
            steps: false,
            ..self.clone()
        };
        Ok(Grads::from_elem(Some(dispatch::call1(op, &[g])?), 1))
    }
}

impl Op for Means {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut shape = x[0].shape().clone();
        let at = self.dimension(shape.len());
        shape[at] = self.line.sizes().1;
        if let Some(across) = &self.across {
            shape[at + 1] = across.sizes().1;
        }
        crate::shape::numel(&shape)?;
        let y = TensorMeta::new(&shape, x[0].dtype(), x[0].device());
        Ok(Metas::from_elem(y, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let y = &y[0];
        let t = y.dtype().compute();
        if y.numel() == 0 {
            return Ok(());
        }
        let Some(across) = self.across else {
            let (x, out) = (x[0].prepared(t)?, y.draft(t)?);
            with_compute!(t, T => {
                // SAFETY: contiguous tensors of type T; the output is this call's own.
                unsafe { self.line.lines::<T>(x.slice(), out.slice_mut()) };
            });
            return y.write_from(&out);
        };
        // Columns as rows, and back.
        let columns = |t: &Tensor| Ok(t.alias(t.layout().transpose(-1, -2)?));
        let (x, y) = (columns(x[0])?.prepared(t)?, columns(y)?);
        let (width, n) = (across.sizes().0, self.line.sizes().1);
        let mut shape = x.shape().clone();
        *shape.last_mut().expect("two dimensions") = n;
        let sums = Tensor::empty(&shape, t, x.device())?;
        let out = Tensor::empty(y.shape(), t, y.device())?;
        with_compute!(t, T => {
            // SAFETY: contiguous tensors of type T; those written are this call's own.
            unsafe {
                self.line.lines::<T>(x.slice(), sums.slice_mut());
                across.columns::<T>(sums.slice(), width * n, n, out.slice_mut());
            }
        });
        y.write_from(&out)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::along(0..self.dimension(x[0].ndim()), x.len(), y.len())
    }

    fn traits(&self) -> Traits {
        Traits {
            linear: &[0],
            ..Traits::NONE
        }
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        4 * (x[0].numel() + y[0].numel())
    }
}

impl Means {
    /// The dimension of the lines, of so many.
    fn dimension(&self, of: usize) -> usize {
        of - 1 - self.behind - self.across.is_some() as usize
    }
}

impl Line {
    fn adjoint(self) -> Line {
        Line {
            adjoint: !self.adjoint,
            ..self
        }
    }

    /// Elements of a line that are read, and those that are written.
    fn sizes(&self) -> (usize, usize) {
        match self.adjoint {
            false => (self.inputs, self.outputs),
            true => (self.outputs, self.inputs),
        }
    }

    /// Where window `o` begins and ends inside the line, and what its sum is divided by.
    fn window(&self, o: usize) -> (usize, usize, f64) {
        let n = self.inputs;
        match self.windows {
            Windows::Parts => {
                let (start, end) = adaptive(n, self.outputs)(o);
                (start, end, (end - start) as f64)
            }
            Windows::Even {
                kernel,
                stride,
                padding,
                by,
            } => {
                let at = o * stride;
                let whole = (at + kernel).min(n + 2 * padding) - at;
                let start = at.saturating_sub(padding).min(n);
                let end = (at + kernel).saturating_sub(padding).clamp(start, n);
                let by = match by {
                    By::Inside => (end - start).max(1) as f64,
                    By::Padded => whole as f64,
                    By::Number(by) => by.0,
                };
                (start, end, by)
            }
        }
    }

    /// The windows that have input `j`: they follow each other.
    fn windows_of(&self, j: usize) -> (usize, usize) {
        let (n, m) = (self.inputs, self.outputs);
        match self.windows {
            Windows::Parts => (j * m / n, ((j + 1) * m - 1) / n + 1),
            Windows::Even {
                kernel,
                stride,
                padding,
                ..
            } => {
                let first = (j + padding + 1).saturating_sub(kernel).div_ceil(stride);
                let end = ((j + padding) / stride + 1).min(m);
                (first.min(end), end)
            }
        }
    }

    /// The most elements of a window.
    fn longest(&self) -> usize {
        match (self.windows, self.adjoint) {
            (Windows::Even { kernel, .. }, false) => kernel,
            (Windows::Even { kernel, stride, .. }, true) => kernel.div_ceil(stride),
            (Windows::Parts, _) => {
                let (from, to) = self.sizes();
                from.div_ceil(to) + 1
            }
        }
    }

    /// The windows over the rows, of `n` elements, of each of the planes of `x`.
    fn columns<T: Number>(&self, x: &[T], plane: usize, n: usize, y: &mut [T]) {
        let (planes, runs, rows) = (x.len() / plane, n.div_ceil(RUN), self.sizes().1);
        let to = Ptr::new(y.as_mut_ptr());
        parallel_for(planes * runs, (1 << 14) / (plane / runs) + 1, |range| {
            for at in range {
                let (p, first) = (at / runs, at % runs * RUN);
                let end = n.min(first + RUN);
                let x = |row: usize| &x[p * plane + row * n..][first..end];
                for o in 0..rows {
                    let start = (p * rows + o) * n;
                    // SAFETY: parts of rows are disjoint.
                    let y = unsafe { to.part(start + first..start + end) };
                    let (a, b) = match self.adjoint {
                        true => self.windows_of(o),
                        false => (self.window(o).0, self.window(o).1),
                    };
                    y.fill(T::default());
                    for row in a..b {
                        match self.adjoint {
                            true => add::<T, true>(x(row), T::of_f64(self.window(row).2), y),
                            false => add::<T, false>(x(row), T::default(), y),
                        }
                    }
                    if !self.adjoint {
                        divide(y, T::of_f64(self.window(o).2));
                    }
                }
            }
        });
    }

    fn lines<T: Number>(&self, x: &[T], y: &mut [T]) {
        let (from, to) = self.sizes();
        // What a run reads beside its own elements is at most half of them.
        let run = match self.windows {
            Windows::Even { kernel, stride, .. } if !self.adjoint => RUN.max(2 * kernel / stride),
            Windows::Even { .. } => RUN.max(2 * self.longest().min(to)),
            Windows::Parts => (8 * RUN * to / from).clamp(1, RUN),
        };
        let (runs, lines) = (to.div_ceil(run), y.len() / to);
        let work = 4 * run.min(to) * (from / to).max(1);
        let to_y = Ptr::new(y.as_mut_ptr());
        parallel_for(lines * runs, (1 << 14) / work.max(1) + 1, |range| {
            for at in range {
                let (line, first) = (at / runs, at % runs * run);
                let count = run.min(to - first);
                // SAFETY: runs are disjoint parts of the output.
                let y = unsafe { to_y.part(line * to + first..line * to + first + count) };
                some(self, &x[line * from..][..from], first, y);
            }
        });
    }
}

per_isa! {
    /// Adds a row, divided if asked for.
    fn add[T: Number; const DIVIDED: bool](x: &[T], by: T, y: &mut [T]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = y.plus(if DIVIDED { x.over(by) } else { x });
        }
    }
}

per_isa! {
    fn divide[T: Number](y: &mut [T], by: T) {
        for y in y {
            *y = y.over(by);
        }
    }
}

per_isa! {
    /// The sums of windows from `first` on.
    fn some[T: Number](op: &Line, x: &[T], first: usize, y: &mut [T]) {
        let last = first + y.len() - 1;
        if let (Windows::Even { kernel, stride, .. }, false) = (op.windows, op.adjoint) {
            let ((start, _, by), (a, b, other)) = (op.window(first), op.window(last));
            let inside = start + (y.len() - 1) * stride == a && b == a + kernel && by == other;
            if inside && stride <= 4 && kernel <= BLOCKED * stride {
                let by = T::of_f64(by);
                return match stride {
                    1 => even::<T, 1>(&x[start..b], kernel, by, y),
                    2 => even::<T, 2>(&x[start..b], kernel, by, y),
                    3 => even::<T, 3>(&x[start..b], kernel, by, y),
                    _ => even::<T, 4>(&x[start..b], kernel, by, y),
                };
            }
        }
        let mut spans = alloc::room(y.len());
        let mut total = 0;
        for i in first..=last {
            let (start, end) = match op.adjoint {
                true => op.windows_of(i),
                false => {
                    let (start, end, _) = op.window(i);
                    (start, end)
                }
            };
            spans.push((start, end));
            total += end - start;
        }
        let (low, high) = (spans[0].0, spans[spans.len() - 1].1.max(spans[0].0));
        let scaled: Vec<T>;
        let x = match op.adjoint {
            false => &x[low..high],
            true => {
                let each = (low..high).map(|o| x[o].over(T::of_f64(op.window(o).2)));
                scaled = alloc::gathered(each);
                &scaled[..]
            }
        };
        let longest = op.longest();
        if longest > BLOCKED && total > 4 * (x.len() + y.len()) {
            blocked(x, low, longest, &spans, y);
        } else {
            for (y, &(start, end)) in y.iter_mut().zip(&spans) {
                *y = sum(&x[start - low..end.max(start) - low]);
            }
        }
        if !op.adjoint {
            for (i, y) in (first..).zip(y.iter_mut()) {
                *y = y.over(T::of_f64(op.window(i).2));
            }
        }
    }
}

/// Means of windows `S` elements apart, all inside.
#[inline(always)]
fn even<T: Number, const S: usize>(x: &[T], k: usize, by: T, y: &mut [T]) {
    let whole = y.len() / LANES * LANES;
    for o in (0..whole).step_by(LANES) {
        let mut sums = [T::default(); LANES];
        for c in 0..k {
            let from = &x[o * S + c..][..(LANES - 1) * S + 1];
            for l in 0..LANES {
                sums[l] = sums[l].plus(from[l * S]);
            }
        }
        for l in 0..LANES {
            y[o + l] = sums[l].over(by);
        }
    }
    for o in whole..y.len() {
        let each = x[o * S..][..k].iter();
        y[o] = each.fold(T::default(), |sum, &x| sum.plus(x)).over(by);
    }
}

/// A sum, in several chains where it is long.
#[inline(always)]
fn sum<T: Number>(x: &[T]) -> T {
    let whole = if x.len() < 4 * LANES {
        0
    } else {
        x.len() / LANES * LANES
    };
    let mut sums = [T::default(); LANES];
    for x in x[..whole].chunks_exact(LANES) {
        for l in 0..LANES {
            sums[l] = sums[l].plus(x[l]);
        }
    }
    let start = match whole {
        0 => T::default(),
        _ => sums.iter().fold(T::default(), |sum, &x| sum.plus(x)),
    };
    x[whole..].iter().fold(start, |sum, &x| sum.plus(x))
}

/// Sums of windows of at most `k` elements, as the end of a block of `k` and the start of the next one, each
/// summed from its own elements (van Herk 1992, Pattern Recognition Letters 13, for maxima): nothing is
/// subtracted, and what is not finite stays in its windows.
#[inline(always)]
fn blocked<T: Number>(x: &[T], low: usize, k: usize, spans: &[(usize, usize)], y: &mut [T]) {
    let (mut starts, mut ends) = (
        alloc::full(T::default(), x.len()),
        alloc::full(T::default(), x.len()),
    );
    for at in (0..x.len()).step_by(k) {
        let end = x.len().min(at + k);
        let mut sum = T::default();
        for i in at..end {
            sum = sum.plus(x[i]);
            starts[i] = sum;
        }
        sum = T::default();
        for i in (at..end).rev() {
            sum = sum.plus(x[i]);
            ends[i] = sum;
        }
    }
    for (y, &(start, end)) in y.iter_mut().zip(spans) {
        if end <= start {
            *y = T::default();
            continue;
        }
        let (a, b) = (start - low, end - low);
        *y = if a % k == 0 && b - a <= k {
            starts[b - 1]
        } else if a / k != (b - 1) / k {
            ends[a].plus(starts[b - 1])
        } else if b % k == 0 {
            ends[a]
        } else {
            sum(&x[a..b])
        };
    }
}

/// Windows that divide `size` into `out` parts of nearly equal length.
pub(super) fn adaptive(size: usize, out: usize) -> impl Fn(usize) -> (usize, usize) {
    move |o| {
        if size.max(out) < 1 << 31 {
            return (o * size / out, ((o + 1) * size).div_ceil(out));
        }
        let (size, out, o) = (size as u128, out as u128, o as u128);
        (
            (o * size / out) as usize,
            ((o + 1) * size).div_ceil(out) as usize,
        )
    }
}

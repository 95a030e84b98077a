//! Linear maps along each spatial dimension: average pooling, interpolation, padding by
//! reflection and the like, patches. One op; its adjoint is itself with transposed maps.

mod along;
mod copies;
pub mod gpu;
mod parts;

use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::number::Number;
use crate::cpu::pool::parallel_chunks;
use crate::cpu::{self, Level};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Keep, Mask, Metas, Op, TensorMeta, Tensors, Traits};
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{compiled, per_isa, transfer, with_compute};
use gpu::{average, Divisor, Pool2d};
use smallvec::SmallVec;
use std::sync::Arc;

/// A sparse matrix: output `i` is the sum of `weight[j] * x[index[j]]` for `j` in
/// `start[i]..start[i + 1]`. No weights: all are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    inputs: usize,
    outputs: usize,
    start: Vec<usize>,
    index: Vec<usize>,
    weight: Bitwise<Vec<f64>>,
}

impl Axis {
    /// `f(i, push)` names the terms of output `i`.
    pub fn new(
        inputs: usize,
        outputs: usize,
        weighted: bool,
        mut f: impl FnMut(usize, &mut dyn FnMut(usize, f64)),
    ) -> Result<Axis> {
        let each = if weighted { 40 } else { 16 };
        alloc::check(outputs, each)?;
        let (mut start, mut index, mut weight) =
            (alloc::list(outputs + 1)?, alloc::list(outputs)?, Vec::new());
        start.push(0);
        let mut room = Ok(());
        for i in 0..outputs {
            f(i, &mut |j, w| {
                if index.len() == index.capacity() && room.is_ok() {
                    let more = index.len().max(16);
                    room = alloc::check(more, each).and_then(|()| alloc::grow(&mut index, more));
                }
                if room.is_ok() {
                    index.push(j);
                    if weighted {
                        weight.push(w);
                    }
                }
            });
            start.push(index.len());
            if room.is_err() {
                break;
            }
        }
        room?;
        Ok(Axis {
            inputs,
            outputs,
            start,
            index,
            weight: Bitwise(weight),
        })
    }

    /// Each output is one input.
    pub fn gather(inputs: usize, outputs: usize, f: impl Fn(usize) -> usize) -> Result<Axis> {
        alloc::check(outputs, 16)?;
        let (mut start, mut index) = (alloc::list(outputs + 1)?, alloc::list(outputs)?);
        start.extend(0..=outputs);
        index.extend((0..outputs).map(f));
        Ok(Axis {
            inputs,
            outputs,
            start,
            index,
            weight: Bitwise(Vec::new()),
        })
    }

    /// The sizes alone, for tensors without memory.
    pub fn of_sizes(inputs: usize, outputs: usize) -> Axis {
        Axis {
            inputs,
            outputs,
            start: Vec::new(),
            index: Vec::new(),
            weight: Bitwise(Vec::new()),
        }
    }

    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn is_identity(&self) -> bool {
        self.inputs == self.outputs()
            && self.weight.is_empty()
            && self.index.len() == self.inputs
            && self.index.iter().enumerate().all(|(i, &j)| i == j)
            && self.start.iter().enumerate().all(|(i, &j)| i == j)
    }

    /// The matrix for bytes, and how many binary digits its weights have: those that 16-bit
    /// integers hold, as in PyTorch, where products and sums are integers. Terms that read the same
    /// input are one.
    fn fixed(&self) -> Result<(Axis, i32)> {
        let mut axis = Axis::new(self.inputs, self.outputs(), true, |i, push| {
            let mut terms = SmallVec::<[(usize, f64); 4]>::new();
            for j in self.start[i]..self.start[i + 1] {
                let (at, w) = (self.index[j], self.weight.get(j).copied().unwrap_or(1.0));
                match terms.iter_mut().find(|t| t.0 == at) {
                    Some(t) => t.1 += w,
                    None => terms.push((at, w)),
                }
            }
            terms.iter().for_each(|&(j, w)| push(j, w));
        })?;
        let top = axis.weight.iter().copied().fold(0.0, f64::max);
        let fits = |digits: i32| 0.5 + top * 2f64.powi(digits) < 32768.0;
        let digits = (0..22).find(|&p| !fits(p + 1)).unwrap_or(22);
        let unit = 2f64.powi(digits);
        // `round` takes ties away from zero, as PyTorch does.
        axis.weight
            .0
            .iter_mut()
            .for_each(|w| *w = (*w * unit).round() / unit);
        Ok((axis, digits))
    }

    /// The transposed matrix.
    pub fn transposed(&self) -> Result<Axis> {
        if self.start.is_empty() {
            return Ok(Axis::of_sizes(self.outputs, self.inputs));
        }
        let mut terms = vec![Vec::new(); self.inputs];
        for i in 0..self.outputs() {
            for j in self.start[i]..self.start[i + 1] {
                terms[self.index[j]].push((i, self.weight.get(j).copied().unwrap_or(1.0)));
            }
        }
        Axis::new(
            self.outputs(),
            self.inputs,
            !self.weight.is_empty(),
            |i, push| terms[i].iter().for_each(|&(j, w)| push(j, w)),
        )
    }
}

/// Fails early where the result, `sizes` after the first `lead` dimensions of `x`, has no place.
pub fn check_sizes(x: &Tensor, lead: usize, sizes: &[usize]) -> Result<()> {
    let mut shape = Dims::from_slice(&x.shape()[..lead]);
    shape.extend_from_slice(sizes);
    let n = shape::numel(&shape)?;
    if !x.has_data() {
        return Ok(());
    }
    alloc::check(n, x.dtype().size())?;
    sizes.iter().try_for_each(|&n| alloc::check(n, 40))
}

/// The map over the last dimensions, one axis each. With divisors, elements of the side that
/// `adjoint` names are divided by the product of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resample {
    pub name: &'static str,
    pub axes: Arc<Vec<Axis>>,
    pub divisors: Option<Arc<Vec<Bitwise<Vec<f64>>>>>,
    pub adjoint: bool,
    /// Whether the gradient counts as one that depends on the input.
    pub steps: bool,
    /// The average pool that this is, or whose gradient, for the GPU.
    pub pool: Option<(Pool2d, Divisor)>,
}

impl Derivative for Resample {
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
        let axes = Arc::new(
            self.axes
                .iter()
                .map(Axis::transposed)
                .collect::<Result<_>>()?,
        );
        let op = Resample {
            axes,
            adjoint: !self.adjoint,
            steps: false,
            ..self.clone()
        };
        Ok(Grads::from_elem(Some(dispatch::call1(op, &[g])?), 1))
    }
}

impl Op for Resample {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let lead = x[0].ndim() - self.axes.len();
        let shape: Dims = x[0].shape()[..lead]
            .iter()
            .copied()
            .chain(self.axes.iter().map(Axis::outputs))
            .collect();
        crate::shape::numel(&shape)?;
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: x[0].device(),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let y = &y[0];
        if self.copies() {
            self.copy(&x[0].prepared(y.dtype())?, y);
            return Ok(());
        }
        if y.dtype().is_complex() {
            return self.pairs(x[0], y);
        }
        let weighted = self.axes.iter().any(|a| !a.weight.is_empty());
        let rounded = weighted && y.dtype().is_integral();
        let mut op = self.clone();
        let t = if rounded {
            let fixed = self
                .axes
                .iter()
                .map(Axis::fixed)
                .collect::<Result<Vec<_>>>()?;
            let digits = fixed.iter().map(|f| f.1).max().unwrap_or(0);
            op.axes = Arc::new(fixed.into_iter().map(|f| f.0).collect());
            // Where a sum of 8-bit numbers with such weights is exact.
            if digits <= 15 {
                DType::F32
            } else {
                DType::F64
            }
        } else {
            y.dtype().compute()
        };
        let moved = if rounded {
            None
        } else {
            op.with_long_dim_last()
        };
        let (x, to) = match &moved {
            Some((d, _)) => {
                let last = |t: &Tensor| Ok(t.alias(t.layout().transpose(*d, -1)?));
                (last(x[0])?, last(y)?)
            }
            None => (x[0].clone(), y.clone()),
        };
        let out = match moved {
            Some((_, moved)) => {
                op = moved;
                Tensor::empty(to.shape(), t, to.device())?
            }
            None => to.draft(t)?,
        };
        let x = x.prepared(t)?;
        if out.numel() > 0 {
            with_compute!(t, T => {
                // SAFETY: contiguous tensors of type T; the output is this call's own.
                unsafe { op.planes::<T>(x.slice(), out.slice_mut(), rounded) };
            });
        }
        to.write_from(&out)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::along(0..x[0].ndim() - self.axes.len(), x.len(), y.len())
    }

    fn traits(&self) -> Traits {
        Traits {
            linear: &[0],
            ..Traits::NONE
        }
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let floats = transfer::small_floats(x);
        let x = transfer::dense(gpu, x[0])?;
        let (Some((grid, divisor)), true) = (&self.pool, floats) else {
            return transfer::ran(along::run(gpu, self, &x, &y[0]));
        };
        transfer::ran(average(gpu, grid, *divisor, self.adjoint, &x, &y[0]))
    }

    /// Of what a kernel does not bind half of the outputs after the other.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::by_halves(self, x[0])
    }
}

impl Resample {
    /// Where the last dimension is short, a long one, from the end, and the map with that one last: vectors
    /// need long rows.
    fn with_long_dim_last(&self) -> Option<(i64, Resample)> {
        let last = self.axes.len() - 1;
        let long = |a: &Axis| a.inputs.min(a.outputs());
        let d = (0..last).max_by_key(|&d| long(&self.axes[d]))?;
        if self.axes[last].outputs() >= LANES || long(&self.axes[d]) < 4 * LANES {
            return None;
        }
        let mut axes = (*self.axes).clone();
        axes.swap(d, last);
        let divisors = self.divisors.as_ref().map(|all| {
            let mut all = (**all).clone();
            all.swap(d, last);
            Arc::new(all)
        });
        let moved = Resample {
            axes: Arc::new(axes),
            divisors,
            ..self.clone()
        };
        Some((d as i64 - last as i64 - 1, moved))
    }

    /// Complex numbers as pairs: one more dimension, which stays.
    fn pairs(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        let t = if y.dtype() == DType::C64 {
            DType::F32
        } else {
            DType::F64
        };
        let real = |t: &Tensor, dtype: DType| {
            let mut l = t.layout().clone();
            l.strides.iter_mut().for_each(|s| *s *= 2);
            l.offset *= 2;
            l.shape.push(2);
            l.strides.push(1);
            t.alias_as(l, dtype)
        };
        let mut axes = (*self.axes).clone();
        axes.push(Axis::gather(2, 2, |i| i)?);
        let divisors = self.divisors.as_ref().map(|d| {
            let mut d = (**d).clone();
            d.push(Bitwise(vec![1.0; 2]));
            Arc::new(d)
        });
        let op = Resample {
            axes: Arc::new(axes),
            divisors,
            ..self.clone()
        };
        op.cpu(&[&real(x, t)], &[real(y, t)])
    }

    /// The dimensions that change, in the order in which they are worked on.
    fn order(&self, from: &[usize], to: &[usize], rounded: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.axes.len())
            .filter(|&d| !self.axes[d].is_identity())
            .collect();
        order.sort_by(|&a, &b| {
            let ratio = |d: usize| to[d] as f64 / from[d].max(1) as f64;
            // Among equals rows first: they are fewer before the others grow.
            ratio(a).total_cmp(&ratio(b)).then(b.cmp(&a))
        });
        if rounded {
            order.sort_by(|a, b| b.cmp(a));
        }
        order
    }

    /// `rounded`: elements are bytes, and rounded after each dimension, the last one first.
    fn planes<T: Number>(&self, x: &[T], y: &mut [T], rounded: bool) {
        let from: Dims = self.axes.iter().map(|a| a.inputs).collect();
        let to: Dims = self.axes.iter().map(Axis::outputs).collect();
        let (small, large) = (from.iter().product::<usize>(), to.iter().product::<usize>());
        // Dimensions that shrink go first.
        let order = self.order(&from, &to, rounded);
        let weights: Vec<Vec<T>> = self
            .axes
            .iter()
            .map(|a| a.weight.iter().map(|&w| T::of_f64(w)).collect())
            .collect();
        let divisors = self.divisors.as_ref().map(|all| {
            let mut flat = vec![1.0];
            for d in all.iter() {
                flat = flat
                    .iter()
                    .flat_map(|a| d.iter().map(move |b| a * b))
                    .collect();
            }
            flat.into_iter().map(T::of_f64).collect::<Vec<T>>()
        });
        let near: Vec<Option<Near>> = self
            .axes
            .iter()
            .map(|a| {
                if T::DTYPE == DType::F32 {
                    Near::of(a)
                } else {
                    None
                }
            })
            .collect();
        let grain = (1 << 14) / (small + large).max(1) + 1;
        parallel_chunks(y, large, grain, |first, all| {
            let (mut a, mut b): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
            for (p, y) in (first..).zip(all.chunks_exact_mut(large)) {
                let x = &x[p * small..(p + 1) * small];
                let mut dims = from.clone();
                let mut first = true;
                if let (true, Some(div)) = (self.adjoint, &divisors) {
                    a.clear();
                    a.extend(x.iter().zip(div).map(|(&x, &d)| x.over(d)));
                    first = false;
                }
                for (step, &d) in order.iter().enumerate() {
                    let axis = &self.axes[d];
                    let outer = dims[..d].iter().product();
                    let inner = dims[d + 1..].iter().product();
                    dims[d] = to[d];
                    let source: &[T] = if first { x } else { &a };
                    first = false;
                    if step + 1 == order.len() {
                        pass(
                            axis,
                            &weights[d],
                            near[d].as_ref(),
                            (outer, inner),
                            source,
                            y,
                        );
                        if rounded {
                            y.iter_mut().for_each(to_byte);
                        }
                    } else {
                        b.clear();
                        crate::alloc::resize(&mut b, dims.iter().product(), T::default());
                        pass(
                            axis,
                            &weights[d],
                            near[d].as_ref(),
                            (outer, inner),
                            source,
                            &mut b,
                        );
                        if rounded {
                            b.iter_mut().for_each(to_byte);
                        }
                        std::mem::swap(&mut a, &mut b);
                    }
                }
                if order.is_empty() {
                    y.copy_from_slice(if first { x } else { &a });
                }
                if let (false, Some(div)) = (self.adjoint, &divisors) {
                    for (y, &d) in y.iter_mut().zip(div) {
                        *y = y.over(d);
                    }
                }
            }
        });
    }
}

/// To the nearest whole number from 0 to 255.
fn to_byte<T: Number>(v: &mut T) {
    *v = T::of_f64((v.to_f64() + 0.5).floor().clamp(0.0, 255.0));
}

/// Outputs that are looked up together.
const LANES: usize = 16;

/// An axis whose neighbouring outputs read neighbouring inputs, the same number each: where the
/// inputs of sixteen outputs begin, then for each output which of them it reads, and its weight.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Only AVX-512 looks up so many.
struct Near {
    terms: usize,
    base: Vec<usize>,
    at: Vec<[i32; LANES]>,
    weight: Vec<[f32; LANES]>,
}

impl Near {
    fn of(axis: &Axis) -> Option<Near> {
        let (n, m) = (axis.inputs, axis.outputs());
        let terms = axis.index.len() / m.max(1);
        let even = (0..m).all(|i| axis.start[i + 1] - axis.start[i] == terms);
        if !even || terms == 0 || terms > 4 || n < LANES || cpu::level() != Level::Avx512 {
            return None;
        }
        let (mut base, mut at, mut weight) = (Vec::new(), Vec::new(), Vec::new());
        for o in (0..m).step_by(LANES) {
            let width = LANES.min(m - o);
            let used = &axis.index[o * terms..(o + width) * terms];
            let low = (*used.iter().min()?).min(n - LANES);
            if used.iter().any(|&j| j - low >= LANES) {
                return None;
            }
            base.push(low);
            for t in 0..terms {
                let (mut a, mut w) = ([0; LANES], [0.0; LANES]);
                for i in 0..width {
                    a[i] = (used[i * terms + t] - low) as i32;
                    let place = (o + i) * terms + t;
                    w[i] = axis.weight.get(place).map_or(1.0, |&w| w as f32);
                }
                at.push(a);
                weight.push(w);
            }
        }
        Some(Near {
            terms,
            base,
            at,
            weight,
        })
    }

    compiled! { avx512:
        unsafe fn rows(&self, x: &[f32], n: usize, y: &mut [f32], m: usize) {
            // SAFETY: `near` is there where the machine has AVX-512; a vector from each base lies
            // in a row of `n`, and stores end at `m`.
            unsafe {
                use std::arch::x86_64::*;
                for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(m)) {
                    for (b, &base) in self.base.iter().enumerate() {
                        let from = _mm512_loadu_ps(x.as_ptr().add(base));
                        let mut sum = _mm512_setzero_ps();
                        for t in b * self.terms..(b + 1) * self.terms {
                            let at = _mm512_loadu_si512(self.at[t].as_ptr().cast());
                            let w = _mm512_loadu_ps(self.weight[t].as_ptr());
                            let term = _mm512_mul_ps(w, _mm512_permutexvar_ps(at, from));
                            sum = _mm512_add_ps(sum, term);
                        }
                        let left = LANES.min(m - b * LANES);
                        let mask = (u32::MAX >> (32 - left)) as u16;
                        _mm512_mask_storeu_ps(y.as_mut_ptr().add(b * LANES), mask, sum);
                    }
                }
            }
        }
    }
}

/// One axis of one plane: (outer, inputs, inner) to (outer, outputs, inner).
fn pass<T: Number>(
    axis: &Axis,
    w: &[T],
    near: Option<&Near>,
    (outer, inner): (usize, usize),
    x: &[T],
    y: &mut [T],
) {
    #[cfg(target_arch = "x86_64")]
    if let (Some(near), 1, DType::F32) = (near, inner, T::DTYPE) {
        let (n, m) = (axis.inputs, axis.outputs());
        // SAFETY: T is f32; `near` is there only where the machine has the instructions.
        unsafe {
            let x = std::slice::from_raw_parts(x.as_ptr().cast::<f32>(), outer * n);
            let y = std::slice::from_raw_parts_mut(y.as_mut_ptr().cast::<f32>(), outer * m);
            near.rows(x, n, y, m);
        }
        return;
    }
    let _ = near;
    walk(axis, w, outer, inner, x, y)
}

per_isa! {
    fn walk[T: Number](
        axis: &Axis,
        w: &[T],
        outer: usize,
        inner: usize,
        x: &[T],
        y: &mut [T]
    ) {
        let (n, m) = (axis.inputs, axis.outputs());
        for o in 0..outer {
            let x = &x[o * n * inner..(o + 1) * n * inner];
            let y = &mut y[o * m * inner..(o + 1) * m * inner];
            if inner == 1 {
                for (i, y) in y.iter_mut().enumerate() {
                    let span = axis.start[i]..axis.start[i + 1];
                    let mut sum = T::default();
                    if w.is_empty() {
                        for &j in &axis.index[span] {
                            sum = sum.plus(x[j]);
                        }
                    } else {
                        for (&j, &w) in axis.index[span.clone()].iter().zip(&w[span]) {
                            sum = sum.plus_product(w, x[j]);
                        }
                    }
                    *y = sum;
                }
                continue;
            }
            for (i, row) in y.chunks_exact_mut(inner.max(1)).enumerate() {
                let span = axis.start[i]..axis.start[i + 1];
                if let (2, &[v, w, ..]) = (span.len(), w.get(span.start..).unwrap_or(&[])) {
                    // Two terms in one go: linear interpolation.
                    let from = |at: usize| &x[axis.index[at] * inner..][..inner];
                    let terms = from(span.start).iter().zip(from(span.start + 1));
                    for (y, (&a, &b)) in row.iter_mut().zip(terms) {
                        *y = T::default().plus_product(v, a).plus_product(w, b);
                    }
                    continue;
                }
                if span.is_empty() {
                    row.fill(T::default());
                }
                for (k, at) in span.enumerate() {
                    let j = axis.index[at];
                    let x = &x[j * inner..(j + 1) * inner];
                    match (k, w.get(at)) {
                        (0, None) => row.copy_from_slice(x),
                        (0, Some(&w)) => {
                            row.iter_mut().zip(x).for_each(|(y, &x)| {
                                *y = T::default().plus_product(w, x);
                            });
                        }
                        (_, None) => row.iter_mut().zip(x).for_each(|(y, &x)| *y = y.plus(x)),
                        (_, Some(&w)) => {
                            row.iter_mut()
                                .zip(x)
                                .for_each(|(y, &x)| *y = y.plus_product(w, x));
                        }
                    }
                }
            }
        }
    }
}

impl Tensor {
    /// Applies one axis to each of the last dimensions.
    pub fn resample(&self, name: &'static str, axes: Vec<Axis>) -> Result<Tensor> {
        self.resampled(name, axes, None, false, None)
    }

    /// As [`Tensor::resample`], with a gradient that depends on the input.
    pub fn resample_step(&self, name: &'static str, axes: Vec<Axis>) -> Result<Tensor> {
        self.resampled(name, axes, None, true, None)
    }

    /// As [`Tensor::resample_step`], dividing by the product of each dimension's divisors.
    pub fn resample_over(
        &self,
        name: &'static str,
        axes: Vec<Axis>,
        divisors: Vec<Vec<f64>>,
        pool: Option<(Pool2d, Divisor)>,
    ) -> Result<Tensor> {
        self.resampled(name, axes, Some(divisors), true, pool)
    }

    fn resampled(
        &self,
        name: &'static str,
        axes: Vec<Axis>,
        divisors: Option<Vec<Vec<f64>>>,
        steps: bool,
        pool: Option<(Pool2d, Divisor)>,
    ) -> Result<Tensor> {
        let divisors = divisors.map(|all| Arc::new(all.into_iter().map(Bitwise).collect()));
        let mut op = Resample {
            name,
            axes: Arc::new(axes),
            divisors,
            adjoint: false,
            steps,
            pool,
        };
        let tracked = dispatch::recorded(&[self]);
        if op.axes.len() == 2 && op.copies() && !tracked && self.has_channels_last() {
            // The channels are one more dimension, which stays: no image is transposed over and back.
            let channels = self.size(1);
            let mut axes = (*op.axes).clone();
            axes.push(Axis::gather(channels, channels, |i| i)?);
            op.axes = Arc::new(axes);
            let y = dispatch::call1(op, &[&self.permute(&[0, 2, 3, 1])?])?;
            return y.permute(&[0, 3, 1, 2]);
        }
        dispatch::call1(op, &[self])
    }

    /// Whether these are images on the CPU whose channels lie next to each other.
    fn has_channels_last(&self) -> bool {
        let images = self.ndim() == 4 && self.device() == Device::Cpu;
        images && self.layout().suggests_channels_last()
    }
}

//! Cross entropy from scores, in one pass.

use super::gpu::{Entropies, Reduction};
use super::likelihood::{nll_gradient, picked_by_ops, Nll};
use super::{
    are_classes, check_classes, check_reduction, check_weight, class_weights, classes, finish,
    first, launchable, operands, positions, sum_classes, Extent, Float,
};
use crate::alloc;
use crate::autograd::{mode, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::pool::parallel_chunks;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    mask, Asked, Batching, Cut, Derivative, Grads, Mapped, Mask, Metas, Op, Part, Save, TensorMeta,
    Tensors, Traits,
};
use crate::ops::nn::loss::{reduced, MEAN, NONE, SUM};
use crate::ops::nn::softmax::logsumexp_on;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Exp;
use crate::ops::shape::join::cat;
use crate::shape::{DimSet, Dims};
use crate::tensor::Tensor;
use crate::{bail, ensure, per_isa, transfer};
use smallvec::SmallVec;

/// Sums are taken in this many lanes.
const LANES: usize = 32;

/// log of the sum of exponentials along the classes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LogSumExp;

impl LogSumExp {
    fn classes(&self, x: &Tensor) -> Result<DimSet> {
        DimSet::of(x.ndim(), |d| d == (x.ndim() > 1) as usize)
    }
}

impl Derivative for LogSumExp {
    fn name(&self) -> &'static str {
        "LogsumexpBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let p = apply(Exp, [&cx.input(0)?.sub(&cx.output(0)?)?])?;
        Ok(SmallVec::from_elem(Some(p.mul(g)?), 1))
    }
}

impl Op for LogSumExp {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        let axis = (x[0].ndim() > 1) as usize;
        meta.shape[axis] = 1;
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        with_real!(x[0].dtype(), T => {
            let x = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let sums = all_sums(unsafe { x.slice::<T>() }, e);
            let lse: Vec<T> = alloc::gathered(sums.iter().map(|&[top, log]| top + log));
            y[0].write_from(&Tensor::from_slice(&lse, y[0].shape(), T::DTYPE)?)
        })
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        logsumexp_on(gpu, x[0], self.classes(x[0])?, &y[0])
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let y = x[0].logsumexp_mask(self.classes(x[0])?, true)?;
        Ok(Some(Tensors::from_iter([y])))
    }
}

impl Batching for LogSumExp {
    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        self.decompose(x)
    }
}

per_isa! {
    /// The largest of the rows of `x`, which are `y.len()` wide, and the logarithm of the sum of the exponentials
    /// of what they are less than it.
    fn sum_rows[R: Float](x: &[R], y: &mut [R], peak: &mut [R]) {
        let d = y.len();
        if d == 1 {
            // NaN is passed over here and comes back through the sum.
            let mut lanes = [R::lit(f64::NEG_INFINITY); LANES];
            let (blocks, rest) = x.as_chunks::<LANES>();
            let larger = |l: &mut R, v: R| *l = if v > *l { v } else { *l };
            for block in blocks {
                lanes.iter_mut().zip(block).for_each(|(l, &v)| larger(l, v));
            }
            lanes.iter_mut().zip(rest).for_each(|(l, &v)| larger(l, v));
            let mut top = lanes[0];
            lanes.iter().for_each(|&v| larger(&mut top, v));
            let mut sums = [R::lit(0.0); LANES];
            for block in blocks {
                sums.iter_mut().zip(block).for_each(|(s, &v)| *s += (v - top).decay());
            }
            sums.iter_mut().zip(rest).for_each(|(s, &v)| *s += (v - top).decay());
            let total = sums.iter().fold(R::lit(0.0), |a, &b| a + b);
            (peak[0], y[0]) = (top, total.ln());
            return;
        }
        peak.fill(R::lit(f64::NEG_INFINITY));
        for row in x.chunks(d) {
            for (m, &v) in peak.iter_mut().zip(row) {
                *m = m.max(v);
            }
        }
        y.fill(R::lit(0.0));
        for row in x.chunks(d) {
            for ((s, &m), &v) in y.iter_mut().zip(&*peak).zip(row) {
                *s += (v - m).decay();
            }
        }
        y.iter_mut().for_each(|s| *s = s.ln());
    }
}

/// The log-sum-exp of each position in two parts, whose sum may have lost the second beside a large first: the
/// largest score, and the logarithm of the sum of exponentials of what all are less than it.
fn all_sums<T: Float>(x: &[T], e: Extent) -> Vec<[T; 2]> {
    let none = T::lit(f64::NEG_INFINITY);
    let mut sums = alloc::full([none, T::default()], e.n * e.d);
    let step = e.c * e.d;
    if step == 0 {
        return sums;
    }
    parallel_chunks(&mut sums, e.d, (1 << 13) / step + 1, |first, rows| {
        let (mut peak, mut log) = (alloc::full(none, e.d), alloc::full(none, e.d));
        for (y, x) in rows.chunks_mut(e.d).zip(x[first * step..].chunks(step)) {
            sum_rows(x, &mut log, &mut peak);
            let both = peak.iter().zip(&log);
            y.iter_mut()
                .zip(both)
                .for_each(|(y, (&top, &log))| *y = [top, log]);
        }
    });
    sums
}

/// Cross entropy with class indices, from scores to the loss in one pass over them. Inputs:
/// scores, target, weights if any. Results: the loss, the sum of weights, the log-sum-exps in two parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CrossEntropy {
    reduction: i64,
    ignore: i64,
    smoothing: Bitwise,
}

impl Derivative for CrossEntropy {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("cross_entropy_loss"))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2]).and_outputs([1, 2])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 3);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        let (x, target, weight) = (cx.input(0)?, cx.input(1)?, cx.optional_input(2)?);
        let total = cx.output(1)?;
        if mode::traced() {
            out[0] = Some(self.recorded(g, &x, &target, weight.as_ref(), &total)?);
            return Ok(out);
        }
        let lse = cx.output(2)?;
        let mut inputs: SmallVec<[&Tensor; 6]> =
            SmallVec::from_slice(&[g, &x, &target, &total, &lse]);
        inputs.extend(weight.as_ref());
        let d = dispatch::compute(&CrossEntropyGrad { of: self.clone() }, &inputs)?;
        out[0] = d.into_iter().next();
        Ok(out)
    }
}

impl CrossEntropy {
    pub(super) fn with_reduction(&self, reduction: i64) -> CrossEntropy {
        CrossEntropy {
            reduction,
            ..self.clone()
        }
    }
    pub(super) fn reduction(&self) -> i64 {
        self.reduction
    }
    pub(super) fn ignored(&self) -> i64 {
        self.ignore
    }

    /// As kernels take it.
    fn on_gpu(&self, scores: &Tensor) -> Entropies {
        Entropies {
            span: Extent::of(scores.shape()).span(),
            ignore: self.ignore,
            smoothing: self.smoothing.0,
            reduction: Reduction::of(self.reduction),
        }
    }

    /// The gradient as a graph: `b - softmax(x) sum(b)` for the gradient `b` of the
    /// log-probabilities.
    fn recorded(
        &self,
        g: &Tensor,
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        total: &Tensor,
    ) -> Result<Tensor> {
        let nll = Nll {
            reduction: self.reduction,
            ignore: self.ignore,
        };
        let mut b = nll_gradient(&nll, x.shape(), g, target, total, weight)?;
        let axis = (x.ndim() > 1) as usize;
        if self.smoothing.0 > 0.0 {
            let e = Extent::of(x.shape());
            let g = if self.reduction == MEAN {
                g.div(total)?
            } else {
                g.clone()
            };
            let skip = apply(Eq, [target, &Tensor::number(self.ignore.into())?])?;
            let zero = Tensor::constant(0.0, g.dtype())?;
            let mut shape = target.shape().clone();
            let g = where_(&skip, &zero, &g.expand_to(&shape)?)?;
            shape.insert(axis.min(shape.len()), 1);
            let mut each = g.reshape_to(&shape)?.expand_to(x.shape())?;
            if let Some(w) = weight {
                let mut shape = Dims::from_elem(1, x.ndim());
                shape[axis] = e.c;
                each = each.mul(&w.reshape_to(&shape)?)?;
            }
            let uniform = each.mul_scalar(-self.smoothing.0 / e.c as f64)?;
            b = b.mul_scalar(1.0 - self.smoothing.0)?.add(&uniform)?;
        }
        let p = apply(Exp, [&self.chances(x)?[0]])?;
        b.sub(&p.mul(&sum_classes(&b, true)?)?)
    }
}

impl CrossEntropy {
    /// The log-probabilities, and both parts of the log-sum-exps.
    fn chances(&self, scores: &Tensor) -> Result<[Tensor; 3]> {
        let classes = LogSumExp.classes(scores)?;
        // Without classes there is no largest score.
        let top = match scores.numel() {
            0 => dispatch::call1(LogSumExp, &[&scores.detach()])?,
            _ => scores.detach().amax_mask(classes, true)?,
        };
        let below = scores.sub(&top)?;
        let log = dispatch::call1(LogSumExp, &[&below])?;
        Ok([below.sub(&log)?, top, log])
    }

    /// Loss, sum of weights and log-sum-exps by ops, which take any type.
    fn by_ops(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (dtype, target) = (x[0].dtype(), x[1]);
        let scores = &x[0].to_dtype(dtype.compute())?;
        let [chances, top, log] = self.chances(scores)?;
        let mut inputs: SmallVec<[&Tensor; 3]> = x.into();
        inputs[0] = &chances;
        let nll = Nll {
            reduction: self.reduction,
            ignore: self.ignore,
        };
        let mut y = nll.by_ops(&inputs)?;
        if self.smoothing.0 > 0.0 {
            let c = Extent::of(scores.shape()).c;
            let mut shape = Dims::from_elem(1, scores.ndim());
            shape[(scores.ndim() > 1) as usize] = c;
            let terms = match x.get(2) {
                Some(w) => chances.mul(&w.reshape_to(&shape)?)?,
                None => chances.clone(),
            };
            let skip = apply(Eq, [target, &Tensor::number(self.ignore.into())?])?;
            let zero = Tensor::constant(0.0, scores.dtype())?;
            let each = where_(&skip, &zero, &sum_classes(&terms, false)?)?;
            let all = match self.reduction {
                NONE => each,
                MEAN => each.sum_all()?.div(&y[1])?,
                _ => each.sum_all()?,
            };
            let rest = y[0].mul_scalar(1.0 - self.smoothing.0)?;
            y[0] = rest.sub(&all.mul_scalar(self.smoothing.0 / c as f64)?)?;
        }
        for t in &mut y {
            *t = t.to_dtype(dtype)?;
        }
        let mut shape = target.shape().clone();
        shape.push(1);
        let both = [top, log].map(|t| t.detach().reshape_to(&shape));
        let [top, log] = both;
        y.push(cat(&[top?, log?], -1)?);
        Ok(y)
    }

    /// Whether the results of parts of the positions add up to the whole.
    fn adds(&self, x: &Meta) -> bool {
        self.reduction == NONE || self.reduction == SUM && !x.dtype().is_half()
    }
}

impl Op for CrossEntropy {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(are_classes(x[1], Extent::of(x[0].shape()).c, self.ignore))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let (dtype, device) = (x[0].dtype(), x[0].device());
        let shape = if self.reduction == NONE {
            x[1].shape().clone()
        } else {
            Dims::new()
        };
        let wide = if dtype.is_half() { DType::F32 } else { dtype };
        Ok(SmallVec::from_vec(vec![
            TensorMeta {
                shape,
                dtype,
                device,
            },
            TensorMeta {
                shape: Dims::new(),
                dtype,
                device,
            },
            TensorMeta {
                shape: x[1].shape().iter().copied().chain([2]).collect(),
                dtype: wide,
                device,
            },
        ]))
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1, 2]),
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        let target = classes(x[1], e.c, self.ignore)?;
        with_real!(x[0].dtype(), T => {
            let scores = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let s = unsafe { scores.slice::<T>() };
            let w = class_weights::<T>(x.get(2), e.c)?;
            let sums = all_sums(s, e);
            let smooth = T::of_f64(self.smoothing.0 / e.c.max(1) as f64);
            let rest = T::of_f64(1.0 - self.smoothing.0);
            let mut each = alloc::full(T::default(), if self.reduction == NONE { target.len() } else { 0 });
            let (mut loss, mut total) = (0.0f64, 0.0f64);
            for (i, t) in target.iter().enumerate() {
                let Some(t) = *t else { continue };
                let [top, log] = sums[i];
                let mut l = w[t] * ((top - s[e.at(i, t)]) + log);
                if self.smoothing.0 > 0.0 {
                    let sum = (0..e.c)
                        .fold(T::default(), |a, c| a + w[c] * ((top - s[e.at(i, c)]) + log));
                    l = rest * l + smooth * sum;
                }
                total += Element::to_f64(w[t]);
                if self.reduction == NONE {
                    each[i] = l;
                } else {
                    loss += Element::to_f64(l);
                }
            }
            finish(self.reduction, each, loss, total, y)?;
            y[2].write_from(&Tensor::from_slice(sums.as_flattened(), y[2].shape(), T::DTYPE)?)
        })
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        if !self.adds(x[0]) {
            return Vec::new();
        }
        let loss = |d| match self.reduction {
            NONE => Part::Along(d),
            _ => Part::Sum,
        };
        let results = |d| [loss(d), Part::Sum, Part::Along(d)];
        let inputs = |of, d| [Part::Along(of), Part::Along(d), Part::Whole].into_iter();
        let cut = |(of, d)| Cut::new(inputs(of, d).take(x.len()), results(d));
        positions(x[0].ndim()).map(cut).collect()
    }

    /// The mean as a sum over another, and sums in a type that parts can be added in.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if picked_by_ops(x[0], x[0].shape(), x[1]) {
            return self.by_ops(x).map(Some);
        }
        if self.adds(x[0]) || !launchable(x[0], x[1]) {
            return Ok(None);
        }
        let sums = CrossEntropy {
            reduction: SUM,
            ..*self
        };
        let dtype = x[0].dtype();
        let scores = x[0].to_dtype(dtype.compute())?;
        let mut x: SmallVec<[&Tensor; 3]> = x.into();
        x[0] = &scores;
        let mut y = dispatch::compute(&sums, &x)?;
        if self.reduction == MEAN {
            y[0] = y[0].div(&y[1])?;
        }
        for t in &mut y[..2] {
            *t = t.to_dtype(dtype)?;
        }
        Ok(Some(y))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[0], x[1]) {
            return Ok(false);
        }
        let (scores, target) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        let weight = x.get(2).map(|w| transfer::dense(gpu, w)).transpose()?;
        let out = [&y[0], &y[1], &y[2]];
        transfer::ran(
            self.on_gpu(x[0])
                .forward(gpu, &scores, &target, weight.as_ref(), out),
        )
    }
}

impl Batching for CrossEntropy {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x)
    }

    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        self.by_ops(x).map(Some)
    }
}

/// The gradient of [`CrossEntropy`], fused. Inputs: `g`, scores, target, sum of weights,
/// log-sum-exps in two parts, weights if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CrossEntropyGrad {
    pub(super) of: CrossEntropy,
}

impl Derivative for CrossEntropyGrad {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("cross_entropy_loss_backward"))
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "cross_entropy: the fused gradient is never recorded"
        )
    }
}

per_isa! {
    /// `k` times the softmax, by rows; `k` and both parts of the log-sum-exps are one row wide.
    fn softmax_rows[R: Float](x: &[R], top: &[R], log: &[R], k: &[R], y: &mut [R]) {
        let d = top.len();
        if d == 1 {
            let (top, log, k) = (top[0], log[0], k[0]);
            for (y, &v) in y.iter_mut().zip(x) {
                *y = k * ((v - top) - log).decay();
            }
            return;
        }
        for (row, x) in y.chunks_mut(d).zip(x.chunks(d)) {
            for (i, y) in row.iter_mut().enumerate() {
                *y = k[i] * ((x[i] - top[i]) - log[i]).decay();
            }
        }
    }
}

impl Op for CrossEntropyGrad {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(are_classes(
            x[2],
            Extent::of(x[1].shape()).c,
            self.of.ignore,
        ))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[1]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[1].shape());
        if x[1].numel() == 0 {
            return Ok(());
        }
        let target = classes(x[2], e.c, self.of.ignore)?;
        with_real!(x[1].dtype(), T => {
            let (g, scores) = (x[0].prepared(T::DTYPE)?, x[1].prepared(T::DTYPE)?);
            let lse = x[4].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let (g, s, lse) =
                unsafe { (g.slice::<T>(), scores.slice::<T>(), lse.slice::<T>()) };
            let w = class_weights::<T>(x.get(5), e.c)?;
            let scale = match self.of.reduction {
                MEAN => T::of_f64(1.0) / T::of_f64(x[3].item()?.f64()),
                _ => T::of_f64(1.0),
            };
            let smooth = T::of_f64(self.of.smoothing.0 / e.c as f64);
            let rest = T::of_f64(1.0 - self.of.smoothing.0);
            let weights = w.iter().fold(T::default(), |a, &b| a + b);
            let direct = y[0].dtype() == T::DTYPE;
            let out = match direct {
                true => y[0].clone(),
                false => Tensor::empty(y[0].shape(), T::DTYPE, y[0].device())?,
            };
            let step = e.c * e.d;
            // SAFETY: contiguous host memory of this type, which is this call's own.
            parallel_chunks(unsafe { out.slice_mut::<T>() }, step, (1 << 13) / step + 1, |first, y| {
                let [mut k, mut top, mut log] = [(); 3].map(|()| alloc::full(T::default(), e.d));
                for (n, y) in (first..).zip(y.chunks_mut(step)) {
                    let at = |d: usize| if g.len() == 1 { g[0] } else { g[n * e.d + d] } * scale;
                    for d in 0..e.d {
                        k[d] = match target[n * e.d + d] {
                            Some(t) => at(d) * (rest * w[t] + smooth * weights),
                            None => T::default(),
                        };
                    }
                    for (d, both) in lse[2 * n * e.d..][..2 * e.d].as_chunks::<2>().0.iter().enumerate() {
                        [top[d], log[d]] = *both;
                    }
                    softmax_rows(&s[n * step..(n + 1) * step], &top, &log, &k, y);
                    for d in 0..e.d {
                        let Some(t) = target[n * e.d + d] else {
                            // An ignored place has no gradient, whatever its scores.
                            (0..e.c).for_each(|c| y[c * e.d + d] = T::default());
                            continue;
                        };
                        y[t * e.d + d] -= at(d) * rest * w[t];
                        if self.of.smoothing.0 > 0.0 {
                            for c in 0..e.c {
                                y[c * e.d + d] -= at(d) * smooth * w[c];
                            }
                        }
                    }
                }
            });
            if direct { Ok(()) } else { y[0].write_from(&out) }
        })
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let g = |d| match x[0].numel() {
            1 => Part::Whole,
            _ => Part::Along(d),
        };
        let inputs = |of, d| {
            let own = [
                g(d),
                Part::Along(of),
                Part::Along(d),
                Part::Whole,
                Part::Along(d),
            ];
            own.into_iter().chain([Part::Whole]).take(x.len())
        };
        let cut = |(of, d)| Cut::new(inputs(of, d), [Part::Along(of)]);
        positions(x[1].ndim()).map(cut).collect()
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        match picked_by_ops(x[1], x[1].shape(), x[2]) {
            true => self.map_by_ops(x),
            false => Ok(None),
        }
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[1], x[2]) || !transfer::small_floats(&[x[0]]) {
            return Ok(false);
        }
        let on = |i: usize| transfer::dense(gpu, x[i]);
        let all = [on(0)?, on(1)?, on(2)?, on(3)?, on(4)?];
        let weight = x.get(5).map(|w| transfer::dense(gpu, w)).transpose()?;
        let op = self.of.on_gpu(x[1]);
        transfer::ran(op.backward(gpu, all.each_ref(), weight.as_ref(), &y[0]))
    }
}

impl Batching for CrossEntropyGrad {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x)
    }

    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let wide = |i: usize| x[i].to_dtype(x[1].dtype().compute());
        let weight = x.get(5).copied();
        let d = (self.of).recorded(&wide(0)?, &wide(1)?, x[2], weight, &wide(3)?)?;
        Ok(Some(Tensors::from_iter([d.to_dtype(x[1].dtype())?])))
    }
}

/// `cross_entropy_loss` with class indices or probabilities.
pub(super) fn cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
    smoothing: f64,
) -> Result<Tensor> {
    check_reduction(reduction)?;
    ensure!(
        (0.0..=1.0).contains(&smoothing),
        Runtime,
        "label_smoothing must be between 0.0 and 1.0. Got: {smoothing}"
    );
    if x.shape() != target.shape() || x.ndim() == 0 {
        check_classes("cross_entropy_loss", x, target, weight)?;
        let op = CrossEntropy {
            reduction,
            ignore,
            smoothing: Bitwise(smoothing),
        };
        return Ok(first(dispatch::call(op, &operands(x, target, weight))?));
    }
    ensure!(
        target.dtype().is_float(),
        Runtime,
        "Expected floating point type for target with class probabilities, got {}",
        target.dtype().scalar_name()
    );
    ensure!(
        ignore < 0,
        Runtime,
        "ignore_index is not supported for floating point target"
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"log_softmax_lastdim_kernel_impl\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    check_weight(weight, x)?;
    let e = Extent::of(x.shape());
    let mut t = target.clone();
    if smoothing > 0.0 {
        t = t
            .mul_scalar(1.0 - smoothing)?
            .add_scalar(smoothing / e.c as f64)?;
    }
    let mut terms = dispatch::call1(LogSumExp, &[x])?.sub(x)?.mul(&t)?;
    if let Some(w) = weight {
        let mut shape = Dims::from_elem(1, x.ndim());
        shape[(x.ndim() > 1) as usize] = e.c;
        terms = terms.mul(&w.reshape_to(&shape)?)?;
    }
    if reduction == NONE {
        return sum_classes(&terms, false);
    }
    let total = reduced(&terms, SUM)?;
    // So that a GPU's sum takes them as they are made.
    drop(terms);
    match reduction {
        MEAN => total.div_scalar((e.n * e.d) as f64),
        _ => Ok(total),
    }
}

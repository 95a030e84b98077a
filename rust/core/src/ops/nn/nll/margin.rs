//! The margin losses.

use super::margin_gpu::Margins;
use super::{check_reduction, class_weights, first, operands, write_scalar, Extent, Float};
use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::pool::{parallel_chunks, parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Asked, Cut, Derivative, Grads, Mask, Metas, Op, Part, Save, TensorMeta, Tensors};
use crate::ops::nn::loss::{MEAN, NONE, SUM};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::shape::{DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{ensure, per_isa, transfer};
use smallvec::{smallvec, SmallVec};

/// Scores below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 13;
/// Sums are taken in this many lanes.
const LANES: usize = 16;

/// The sum over the labels of a row, and over all classes that are none of them, of max(0, x[class] - x[label] +
/// margin), or of its square, times the label's weight / classes. Inputs: scores, labels, weights if any. Results: the
/// loss, and with many labels how often each class is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Margin {
    /// A row has as many labels as there are classes, up to the first -1, and not one.
    many: bool,
    square: bool,
    margin: Bitwise,
    reduction: i64,
}

/// The labels of rows, which are classes.
struct Labels {
    all: Vec<i64>,
    each: usize,
}

impl Labels {
    fn of(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        let row = &self.all[row * self.each..][..self.each];
        row.iter().take_while(|&&t| t >= 0).map(|&t| t as usize)
    }
}

impl Margin {
    fn title(&self) -> &'static str {
        match self.many {
            true => "multilabel_margin_loss",
            false => "multi_margin_loss",
        }
    }

    fn labels(&self, target: &Tensor, c: usize) -> Result<Labels> {
        let ids = target.prepared(DType::I64)?;
        // SAFETY: contiguous host memory of this type.
        let all = alloc::gathered(unsafe { ids.slice::<i64>() }.iter().copied());
        let each = if self.many { c } else { 1 };
        for row in all.chunks(each) {
            for &t in row.iter().take_while(|&&t| !self.many || t != -1) {
                ensure!(
                    t >= 0 && (t as usize) < c,
                    Runtime,
                    "{}: target out of range, got {t} for {c} classes",
                    self.title()
                );
            }
        }
        Ok(Labels { all, each })
    }

    /// The shape of the losses of rows.
    fn rows(&self, x: &Meta, target: &Meta) -> Dims {
        match self.many {
            true if x.ndim() == 2 => Dims::from_slice(&x.shape()[..1]),
            true => Dims::new(),
            false => target.shape().clone(),
        }
    }

    /// What a mean divides by.
    fn count(&self, shape: &[usize]) -> f64 {
        match self.reduction {
            MEAN => Extent::of(shape).n as f64,
            _ => 1.0,
        }
    }

    /// As kernels take it.
    fn on_gpu(&self, x: &Tensor, count: f64) -> Margins {
        let e = Extent::of(x.shape());
        Margins {
            rows: e.n,
            classes: e.c,
            many: self.many,
            square: self.square,
            margin: self.margin.0,
            scale: 1.0 / count,
        }
    }

    /// Whether the results of parts of the rows add up to the whole.
    fn adds(&self, x: &Meta) -> bool {
        self.reduction == NONE || self.reduction == SUM && !x.dtype().is_half()
    }
}

/// Weights in a type that kernels take beside scores of this one.
fn weights(gpu: &Gpu, w: Option<&&Tensor>, x: &Tensor) -> Result<Option<Tensor>> {
    w.map(|w| transfer::dense(gpu, &w.to_dtype(x.dtype().compute())?))
        .transpose()
}

/// What each label's slope or sum is multiplied with.
fn factors<T: Float>(weight: Option<&&Tensor>, c: usize) -> Result<Vec<T>> {
    let w = class_weights::<f64>(weight, c)?;
    Ok(alloc::gathered(w.iter().map(|w| T::of_f64(w / c as f64))))
}

per_isa! {
    /// The sum over these scores of what they are above a label's score less the margin, or of its square, each times
    /// the factor.
    fn sum_above[T: Float](x: &[T], score: T, margin: T, factor: T, square: bool) -> f64 {
        let zero = T::default();
        let each = |v: T| {
            let z = v - score + margin;
            // A NaN counts nothing.
            let z = if z > zero { z } else { zero };
            factor * if square { z * z } else { z }
        };
        let mut sums = [zero; LANES];
        let (blocks, rest) = x.as_chunks::<LANES>();
        for block in blocks {
            sums.iter_mut().zip(block).for_each(|(s, &v)| *s += each(v));
        }
        sums.iter_mut().zip(rest).for_each(|(s, &v)| *s += each(v));
        sums.iter().map(|&s| Element::to_f64(s)).sum()
    }
}

per_isa! {
    /// Adds the slopes of [`sum_above`] by these scores; returns their sum.
    fn add_slopes[T: Float](x: &[T], d: &mut [T], score: T, margin: T, g: T, square: bool) -> f64 {
        let (zero, two) = (T::default(), T::of_f64(2.0));
        let mut sums = [zero; LANES];
        for (x, d) in x.chunks(LANES).zip(d.chunks_mut(LANES)) {
            for ((s, &v), d) in sums.iter_mut().zip(x).zip(d) {
                let z = v - score + margin;
                let slope = if square { two * z * g } else { g };
                let slope = if z > zero { slope } else { zero };
                *d += slope;
                *s += slope;
            }
        }
        sums.iter().map(|&s| Element::to_f64(s)).sum()
    }
}

impl Derivative for Margin {
    fn name(&self) -> &'static str {
        match self.many {
            true => "MultilabelMarginLossBackward0",
            false => "MultiMarginLossBackward0",
        }
    }
    fn save(&self, _needs: Mask) -> Save {
        match self.many {
            true => Save::inputs([0, 1]).and_outputs([1]),
            false => Save::inputs([0, 1, 2]),
        }
    }
    fn steps(&self) -> Mask {
        !self.square as Mask
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = smallvec![None, None, None];
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        let (mut x, target) = (cx.input(0)?, cx.input(1)?);
        if !self.square {
            // No gradient comes back to it.
            x = x.detach();
        }
        let more = match self.many {
            true => Some(cx.output(1)?),
            false => cx.optional_input(2)?,
        };
        let count = Bitwise(self.count(x.shape()));
        let op = MarginGrad {
            of: self.clone(),
            count,
        };
        out[0] = Some(op.call(g, &x, &target, more.as_ref())?);
        Ok(out)
    }
}

impl Op for Margin {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = match self.reduction {
            NONE => self.rows(x[0], x[1]),
            _ => Dims::new(),
        };
        let device = x[0].device();
        let mut metas: Metas = smallvec![TensorMeta::new(&shape, x[0].dtype(), device)];
        if self.many {
            metas.push(TensorMeta::new(x[1].shape(), DType::I32, device));
        }
        Ok(metas)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let Extent { n, c, .. } = Extent::of(x[0].shape());
        let labels = self.labels(x[1], c)?;
        let times = y.get(1).map(|times| {
            // SAFETY: a fresh contiguous output of this type.
            let times = unsafe { times.slice_mut::<i32>() };
            times.fill(0);
            for i in 0..n {
                labels.of(i).for_each(|t| times[i * c + t] += 1);
            }
            &*times
        });
        with_real!(x[0].dtype(), T => {
            let scores = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let scores = unsafe { scores.slice::<T>() };
            let factor = factors::<T>(x.get(2), c)?;
            let margin = T::of_f64(self.margin.0);
            let mut each = alloc::full(0.0, n);
            parallel_chunks(&mut each, 1, GRAIN / c + 1, |first, each| {
                let mut rest = alloc::room::<T>(if self.many { c } else { 0 });
                for (i, sum) in (first..).zip(each) {
                    let row = &scores[i * c..(i + 1) * c];
                    if let Some(times) = times {
                        others(row, &times[i * c..(i + 1) * c], &mut rest);
                    }
                    for t in labels.of(i).filter(|&t| factor[t] != T::default()) {
                        let over = |x: &[T]| sum_above(x, row[t], margin, factor[t], self.square);
                        *sum += match self.many {
                            true => over(&rest),
                            false => over(&row[..t]) + over(&row[t + 1..]),
                        };
                    }
                }
            });
            if self.reduction == NONE {
                let each: Vec<T> = alloc::gathered(each.iter().map(|&v| T::of_f64(v)));
                return y[0].write_from(&Tensor::from_slice(&each, y[0].shape(), T::DTYPE)?);
            }
            write_scalar(&y[0], each.iter().sum::<f64>() / self.count(x[0].shape()))
        })
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        if !self.adds(x[0]) || x[0].ndim() < 2 || x[1].ndim() == 0 {
            return Vec::new();
        }
        let along = Part::Along(0);
        let loss = match self.reduction {
            NONE => along,
            _ => Part::Sum,
        };
        let inputs = [along, along, Part::Whole].into_iter().take(x.len());
        vec![Cut::new(
            inputs,
            [loss, along].into_iter().take(1 + self.many as usize),
        )]
    }

    /// The mean as a sum over the rows, and sums in a type that parts can be added in.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if self.adds(x[0]) {
            return Ok(None);
        }
        let dtype = x[0].dtype();
        let scores = x[0].to_dtype(dtype.compute())?;
        let mut inputs: SmallVec<[&Tensor; 3]> = x.into();
        inputs[0] = &scores;
        let sums = Margin {
            reduction: SUM,
            ..self.clone()
        };
        let mut y = dispatch::compute(&sums, &inputs)?;
        y[0] = y[0].div_scalar(self.count(x[0].shape()))?.to_dtype(dtype)?;
        Ok(Some(y))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let count = self.count(x[0].shape());
        if x[0].numel() == 0 {
            // The mean of nothing.
            y[0].write_scalar((0.0 / count).into())?;
            return Ok(true);
        }
        let (scores, target) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        let weight = weights(gpu, x.get(2), x[0])?;
        let summed = self.reduction != NONE;
        transfer::ran(self.on_gpu(x[0], count).forward(
            gpu,
            [&scores, &target],
            weight.as_ref(),
            summed,
            &y[0],
            y.get(1),
        ))
    }
}

/// The scores of a row that are no label's, by how often classes are.
fn others<T: Float>(row: &[T], times: &[i32], rest: &mut Vec<T>) {
    rest.clear();
    rest.extend(row.iter().zip(times).filter(|t| *t.1 == 0).map(|t| *t.0));
}

/// Brings what [`others`] left of a row back to its places.
fn put_others<T: Float>(from: &[T], times: &[i32], to: &mut [T]) {
    let places = to.iter_mut().zip(times).filter(|t| *t.1 == 0);
    places.zip(from).for_each(|((to, _), &from)| *to = from);
}

/// The gradient of [`Margin`]. Inputs: `g`, scores, labels; how often each class is one, or weights if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MarginGrad {
    of: Margin,
    /// What the loss was divided by.
    count: Bitwise,
}

impl MarginGrad {
    fn call(
        &self,
        g: &Tensor,
        x: &Tensor,
        target: &Tensor,
        more: Option<&Tensor>,
    ) -> Result<Tensor> {
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![g, x, target];
        inputs.extend(more);
        dispatch::call1(self.clone(), &inputs)
    }

    /// The gradient of `g`, in which it is linear, for the gradient `h` of the result.
    fn by_g(&self, h: &Tensor, cx: &Vjp) -> Result<Tensor> {
        let (g, x, target, more) = saved(cx)?;
        let each = MarginGrad {
            of: Margin {
                reduction: NONE,
                ..self.of.clone()
            },
            count: Bitwise(1.0),
        };
        let shape = self.of.rows(x.meta(), target.meta());
        let ones = Tensor::full(&shape, 1.0.into(), x.dtype(), x.device())?;
        let slopes = h.mul(&each.call(&ones, &x, &target, more.as_ref())?)?;
        match self.of.reduction {
            NONE => {
                let last = DimSet::last(x.ndim().min(1), x.ndim())?;
                slopes.sum_mask(last, false, None)?.reshape_to(g.shape())
            }
            _ => slopes.sum_all()?.div_scalar(self.count.0),
        }
    }

    /// The gradient of the scores: the slopes of a square grow with the distance from the label's score.
    fn by_x(&self, h: &Tensor, cx: &Vjp) -> Result<Tensor> {
        let (g, x, target, more) = saved(cx)?;
        let steps = MarginGrad {
            of: Margin {
                square: false,
                ..self.of.clone()
            },
            count: self.count,
        };
        let slopes = steps.call(&g, &x.detach(), &target, more.as_ref())?;
        let e = Extent::of(x.shape());
        let ids: Vec<i64> = (0..e.c as i64).collect();
        let ids = Tensor::from_slice(&ids, &[1, e.c], DType::I64)?.to_device(x.device())?;
        let own = apply(Eq, [&ids, &target.reshape_to(&[e.n, 1])?])?;
        let zero = Tensor::constant(0.0, x.dtype())?;
        let (rows, classes) = ([e.n, e.c], DimSet::one(1, 2)?);
        let h = h.reshape_to(&rows)?;
        let at_label = where_(&own, &h, &zero)?.sum_mask(classes, true, None)?;
        let moved = slopes
            .reshape_to(&rows)?
            .mul(&h.sub(&at_label)?)?
            .mul_scalar(2.0)?;
        let moved = where_(&own, &zero, &moved)?;
        let back = moved.sum_mask(classes, true, None)?.neg()?;
        where_(&own, &back, &moved)?.reshape_to(x.shape())
    }
}

/// What a gradient was made of.
fn saved(cx: &Vjp) -> Result<(Tensor, Tensor, Tensor, Option<Tensor>)> {
    let more = cx.optional_input(3)?;
    Ok((cx.input(0)?, cx.input(1)?, cx.input(2)?, more))
}

impl Derivative for MarginGrad {
    fn name(&self) -> &'static str {
        match self.of.many {
            true => "MultilabelMarginLossBackwardBackward0",
            false => "MultiMarginLossBackwardBackward0",
        }
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::backward(self.of.name()))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2, 3])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = smallvec![None, None, None, None];
        let Some(h) = &g[0] else { return Ok(out) };
        if cx.needs(0) {
            out[0] = Some(self.by_g(h, cx)?);
        }
        if cx.needs(1) {
            out[1] = Some(self.by_x(h, cx)?);
        }
        Ok(out)
    }
}

impl Op for MarginGrad {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(smallvec![TensorMeta::of(x[1])])
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let Extent { n, c, .. } = Extent::of(x[1].shape());
        let many = self.of.many;
        let labels = self.of.labels(x[2], c)?;
        let times = match many {
            true => Some(x[3].prepared(DType::I32)?),
            false => None,
        };
        // SAFETY: contiguous host memory of this type.
        let times = times.as_ref().map(|t| unsafe { t.slice::<i32>() });
        let weight = if many { None } else { x.get(3) };
        with_real!(x[1].dtype(), T => {
            let (g, scores) = (x[0].prepared(T::DTYPE)?, x[1].prepared(T::DTYPE)?);
            // SAFETY: contiguous host memory of this type.
            let (g, scores) = unsafe { (g.slice::<T>(), scores.slice::<T>()) };
            let factor = factors::<T>(weight, c)?;
            let (margin, square) = (T::of_f64(self.of.margin.0), self.of.square);
            let out = y[0].draft(T::DTYPE)?;
            let to = Ptr::new(out.ptr::<T>());
            let count = T::of_f64(self.count.0);
            parallel_for(n, GRAIN / c + 1, |range| {
                let width = if many { c } else { 0 };
                let (mut rest, mut slopes) = (alloc::room::<T>(width), alloc::room::<T>(width));
                for i in range {
                    let row = &scores[i * c..(i + 1) * c];
                    // SAFETY: the result is as large as the scores, and each row is one range's.
                    let d = unsafe { to.part(i * c..(i + 1) * c) };
                    d.fill(T::default());
                    let g = g[if g.len() == 1 { 0 } else { i }] / count;
                    let times = times.map(|t| &t[i * c..(i + 1) * c]);
                    if let Some(times) = times {
                        others(row, times, &mut rest);
                        slopes.clear();
                        slopes.resize(rest.len(), T::default());
                    }
                    for t in labels.of(i).filter(|&t| factor[t] != T::default()) {
                        let add = |x: &[T], d: &mut [T]| {
                            add_slopes(x, d, row[t], margin, g * factor[t], square)
                        };
                        let sum = match many {
                            true => add(&rest, &mut slopes),
                            false => {
                                let (front, back) = d.split_at_mut(t);
                                add(&row[..t], front) + add(&row[t + 1..], &mut back[1..])
                            }
                        };
                        d[t] -= T::of_f64(sum);
                    }
                    if let Some(times) = times {
                        put_others(&slopes, times, d);
                    }
                }
            });
            y[0].write_from(&out)
        })
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        if x[1].ndim() < 2 || x[2].ndim() == 0 {
            return Vec::new();
        }
        let along = Part::Along(0);
        let g = match x[0].numel() {
            1 => Part::Whole,
            _ => along,
        };
        let more = if self.of.many { along } else { Part::Whole };
        let inputs = [g, along, along, more].into_iter().take(x.len());
        vec![Cut::new(inputs, [along])]
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let g = match x[0].device().is_gpu() {
            true => x[0].detach(),
            false => transfer::dense(gpu, x[0])?,
        };
        let (scores, target) = (transfer::dense(gpu, x[1])?, transfer::dense(gpu, x[2])?);
        let (times, weight) = match self.of.many {
            true => (Some(transfer::dense(gpu, x[3])?), None),
            false => (None, weights(gpu, x.get(3), x[1])?),
        };
        transfer::ran(self.of.on_gpu(x[1], self.count.0).backward(
            gpu,
            [&g, &scores, &target],
            weight.as_ref(),
            times.as_ref(),
            &y[0],
        ))
    }
}

/// Checks that scores are samples by classes, or one sample, and how many labels there are.
fn check_scores(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        (x.ndim() == 2 && x.size(1) > 0) || (x.ndim() < 2 && x.numel() > 0),
        Runtime,
        "{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
        Show(x.shape())
    );
    // PyTorch's GPUs take half types, too.
    let narrow = x.device().is_gpu() && x.dtype().is_half();
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64) || narrow,
        NoKernel,
        "\"{name}_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(())
}

fn check_classes(name: &str, target: &Tensor) -> Result<()> {
    ensure!(
        target.dtype() == DType::I64,
        Runtime,
        "{name}: expected scalar type Long but found {} for the target",
        target.dtype().scalar_name()
    );
    Ok(())
}

pub(super) fn multi_margin(
    x: &Tensor,
    target: &Tensor,
    (p, margin): (f64, f64),
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    const NAME: &str = "multi_margin_loss";
    check_reduction(reduction)?;
    ensure!(
        p == 1.0 || p == 2.0,
        Runtime,
        "{NAME}: only p == 1 and p == 2 supported"
    );
    check_scores(NAME, x)?;
    let Extent { n, c, .. } = Extent::of(x.shape());
    ensure!(
        target.ndim() <= 1 && target.numel() == n,
        Runtime,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input \
         samples (batch size). Expected target size [{n}], but got {}. Input has shape {}.",
        Show(target.shape()),
        Show(x.shape())
    );
    crate::ops::constant(NAME, "weight", weight)?;
    if let Some(w) = weight {
        ensure!(
            w.ndim() <= 1 && w.numel() == c,
            Runtime,
            "inconsistent weight size, expected {c} but got {}",
            Show(w.shape())
        );
    }
    check_classes(NAME, target)?;
    let op = Margin {
        many: false,
        square: p == 2.0,
        margin: Bitwise(margin),
        reduction,
    };
    Ok(first(dispatch::call(op, &operands(x, target, weight))?))
}

pub(super) fn multilabel_margin(x: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    const NAME: &str = "multilabel_margin_loss";
    check_reduction(reduction)?;
    check_scores(NAME, x)?;
    let vectors = x.ndim() < 2 && target.ndim() < 2;
    ensure!(
        x.shape() == target.shape() || vectors && x.numel() == target.numel(),
        Runtime,
        "inconsistent target size: {} for input of size: {}",
        Show(target.shape()),
        Show(x.shape())
    );
    check_classes(NAME, target)?;
    let op = Margin {
        many: true,
        square: false,
        margin: Bitwise(1.0),
        reduction,
    };
    Ok(first(dispatch::call(op, &[x, target])?))
}

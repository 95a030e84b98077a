//! Negative log-likelihood of class indices.

use super::gpu::{self, Reduction};
use super::{are_classes, class_weights, classes, finish, launchable, positions, Extent};
use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::convert::loader;
use crate::cpu::elements::Element;
use crate::cpu::pool::parallel_chunks;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    mask, Asked, Batching, Cut, Derivative, Grads, Large, Mapped, Mask, Metas, Op, Part, Save,
    TensorMeta, Tensors, Traits,
};
use crate::ops::nn::loss::{MEAN, NONE, SUM};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Ne;
use crate::ops::pointwise::ternary::where_;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer;
use smallvec::SmallVec;
use std::sync::Arc;

/// Minus the score of the target class times its weight. Inputs: scores, target, weights if any.
/// Results: the loss and the sum of the weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nll {
    pub(super) reduction: i64,
    pub(super) ignore: i64,
}

impl Derivative for Nll {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("nll_loss_forward"))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1, 2]).and_outputs([1])
    }
    fn steps(&self) -> Mask {
        1
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 3);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        let (target, total) = (cx.input(1)?, cx.output(1)?);
        let weight = cx.optional_input(2)?;
        let shape = cx.input_meta(0)?.shape.clone();
        out[0] = Some(nll_gradient(
            self,
            &shape,
            g,
            &target,
            &total,
            weight.as_ref(),
        )?);
        Ok(out)
    }
}

pub(super) fn nll_gradient(
    op: &Nll,
    shape: &[usize],
    g: &Tensor,
    target: &Tensor,
    total: &Tensor,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let op = NllGrad {
        of: op.clone(),
        shape: Dims::from_slice(shape),
    };
    let mut x: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(&[g, target, total]);
    x.extend(weight);
    dispatch::call1(op, &x)
}

impl Nll {
    /// Whether the results of parts of the positions add up to the whole.
    fn adds(&self, x: &Meta) -> bool {
        self.reduction == NONE || self.reduction == SUM && !x.dtype().is_half()
    }
}

impl Op for Nll {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(are_classes(x[1], Extent::of(x[0].shape()).c, self.ignore))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = if self.reduction == NONE {
            x[1].shape().clone()
        } else {
            Dims::new()
        };
        let (dtype, device) = (x[0].dtype(), x[0].device());
        let total = TensorMeta {
            shape: Dims::new(),
            dtype,
            device,
        };
        Ok(SmallVec::from_vec(vec![
            TensorMeta {
                shape,
                dtype,
                device,
            },
            total,
        ]))
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1]),
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        let target = classes(x[1], e.c, self.ignore)?;
        with_real!(x[0].dtype(), T => {
            // Only the targets' scores are converted.
            let scores = x[0].prepared(x[0].dtype())?;
            let (from, size, load) = (scores.bytes_ptr(), scores.dtype().size(), loader::<T>(scores.dtype()));
            let direct = scores.dtype() == T::DTYPE;
            let score = |i: usize| {
                let mut v = T::default();
                // SAFETY: contiguous host memory of this type, in which targets have been checked to lie.
                unsafe {
                    match direct {
                        true => v = *from.cast::<T>().add(i),
                        false => load(from.add(i * size), 0, 1, &mut v),
                    }
                }
                v
            };
            let w = class_weights::<T>(x.get(2), e.c)?;
            let mut each = alloc::full(T::default(), if self.reduction == NONE { target.len() } else { 0 });
            let (mut loss, mut total) = (0.0f64, 0.0f64);
            let places = (0..e.n).flat_map(|n| (0..e.d).map(move |j| n * e.c * e.d + j));
            for (i, (t, place)) in target.iter().zip(places).enumerate() {
                let Some(t) = *t else { continue };
                let l = -(score(place + t * e.d) * w[t]);
                total += Element::to_f64(w[t]);
                if self.reduction == NONE {
                    each[i] = l;
                } else {
                    loss += Element::to_f64(l);
                }
            }
            finish(self.reduction, each, loss, total, y)
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
        let inputs = |of, d| [Part::Along(of), Part::Along(d), Part::Whole].into_iter();
        let cut = |(of, d)| Cut::new(inputs(of, d).take(x.len()), [loss(d), Part::Sum]);
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
        let sums = Nll {
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
        let e = Extent::of(x[0].shape());
        let weight = x.get(2).map(|w| transfer::dense(gpu, w)).transpose()?;
        let (scores, target) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        self.launch(gpu, e, &scores, &target, weight.as_ref(), y)
    }
}

impl Batching for Nll {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x)
    }

    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        self.by_ops(x).map(Some)
    }
}

/// Whether scores of this shape, and of the type and device of `like`, are such as the kernels do not
/// take: float64, or those of a position more than a binding holds.
pub(super) fn picked_by_ops(like: &Tensor, shape: &[usize], target: &Tensor) -> bool {
    let dtype = like.dtype();
    let is_long = !transfer::is_short(like.device(), Extent::of(shape).c, dtype.compute());
    (dtype == DType::F64 || is_long) && matches!(target.dtype(), DType::I64 | DType::I32)
}

/// Of each position the class, 0 where it is ignored, along a dimension of one element, and its weight
/// in this type, which is 0 there.
fn picked(
    shape: &[usize],
    target: &Tensor,
    weight: Option<&&Tensor>,
    ignore: i64,
    dtype: DType,
) -> Result<[Tensor; 2]> {
    let e = Extent::of(shape);
    let target = target.reshape_to(&[e.n, 1, e.d])?.to_dtype(DType::I64)?;
    let of = |v: i64| Tensor::constant(v, DType::I64);
    let live = apply(Ne, [&target, &of(ignore)?])?;
    let class = where_(&live, &target, &of(0)?)?;
    // Of all classes one without weights: a class that there is not is found here.
    let all = match weight {
        Some(w) => w.to_dtype(dtype)?,
        None => Tensor::full(&[e.c], 1.into(), dtype, target.device())?,
    };
    let each = all.index_select(0, &class.reshape(&[-1])?)?;
    let each = where_(
        &live,
        &each.reshape_to(class.shape())?,
        &Tensor::constant(0.0, dtype)?,
    )?;
    Ok([class, each])
}

/// Zero where a weight is, and is not infinity or NaN times it.
fn weighted(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let zero = Tensor::constant(0.0, weight.dtype())?;
    where_(&apply(Ne, [weight, &zero])?, &x.mul(weight)?, &zero)
}

impl Nll {
    /// Loss and sum of weights by ops, which take any type.
    pub(super) fn by_ops(&self, x: &[&Tensor]) -> Result<Tensors> {
        let dtype = x[0].dtype();
        let [class, weight] = picked(x[0].shape(), x[1], x.get(2), self.ignore, dtype.compute())?;
        let e = Extent::of(x[0].shape());
        let scores = x[0].reshape_to(&[e.n, e.c, e.d])?;
        let each = weighted(&scores.gather(1, &class)?, &weight)?.neg()?;
        let total = weight.sum_all()?;
        let loss = match self.reduction {
            NONE => each.reshape_to(x[1].shape())?,
            MEAN => each.sum_all()?.div(&total)?,
            _ => each.sum_all()?,
        };
        Ok(Tensors::from_iter([
            loss.to_dtype(dtype)?,
            total.to_dtype(dtype)?,
        ]))
    }

    /// Loss and sum of weights from log-probabilities, on the GPU.
    pub(super) fn launch(
        &self,
        gpu: &Gpu,
        e: Extent,
        scores: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        y: &[Tensor],
    ) -> Result<bool> {
        let each = match (self.reduction, &y[0]) {
            (NONE, y) if y.dtype() == DType::F32 && y.is_contiguous() && y.offset() == 0 => {
                y.clone()
            }
            _ => Tensor::empty(target.shape(), DType::F32, scores.device())?,
        };
        let weights = Tensor::empty(&[target.numel()], DType::F32, scores.device())?;
        let done = transfer::ran(
            gpu::nll(
                gpu,
                e.span(),
                scores,
                target,
                weight,
                self.ignore,
                [&each, &weights],
            )
            .and_then(|()| {
                let (how, n) = (Reduction::of(self.reduction), target.numel());
                gpu::sums(gpu, how, n, [&each, &weights], [&y[0], &y[1]])
            }),
        )?;
        if done && self.reduction == NONE && !each.shares_storage(&y[0]) {
            y[0].write_from(&each.reshape_to(y[0].shape())?)?;
        }
        Ok(done)
    }

    /// The gradient of the log-probabilities, on the GPU.
    pub(super) fn launch_backward(
        &self,
        gpu: &Gpu,
        e: Extent,
        g: &Tensor,
        target: &Tensor,
        total: &Tensor,
        weight: Option<&&Tensor>,
        d: &Tensor,
    ) -> Result<bool> {
        let (g, target) = (transfer::dense(gpu, g)?, transfer::dense(gpu, target)?);
        let weight = weight.map(|w| transfer::dense(gpu, w)).transpose()?;
        let total = match self.reduction {
            MEAN => Some(transfer::dense(gpu, &total.to_dtype(DType::F32)?)?),
            _ => None,
        };
        transfer::ran(gpu::nll_backward(
            gpu,
            e.span(),
            &g,
            &target,
            weight.as_ref(),
            self.ignore,
            total.as_ref(),
            d,
        ))
    }
}

/// The gradient of [`Nll`]. Inputs: `g`, target, sum of weights, weights if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NllGrad {
    pub(super) of: Nll,
    pub(super) shape: Dims,
}

impl Derivative for NllGrad {
    fn name(&self) -> &'static str {
        "NllLossBackwardBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1, 2, 3])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 4);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        // The gradient is linear in `g`: its adjoint is the loss itself.
        let (target, total) = (cx.input(1)?, cx.input(2)?);
        let weight = cx.optional_input(3)?;
        let reduction = if self.of.reduction == NONE {
            NONE
        } else {
            crate::ops::nn::loss::SUM
        };
        let mut x: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[g, &target]);
        x.extend(weight.as_ref());
        let y = dispatch::call(
            Nll {
                reduction,
                ..self.of
            },
            &x,
        )?
        .swap_remove(0);
        out[0] = Some(if self.of.reduction == MEAN {
            y.div(&total)?
        } else {
            y
        });
        Ok(out)
    }
}

impl Op for NllGrad {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(are_classes(x[1], Extent::of(&self.shape).c, self.of.ignore))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(&self.shape, x[0].dtype(), x[0].device());
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(&self.shape);
        let target = classes(x[1], e.c, self.of.ignore)?;
        with_real!(x[0].dtype(), T => {
            let g = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let g = unsafe { g.slice::<T>() };
            let w = class_weights::<T>(x.get(3), e.c)?;
            let scale = match self.of.reduction {
                MEAN => T::of_f64(1.0) / T::of_f64(x[2].item()?.f64()),
                _ => T::of_f64(1.0),
            };
            let out = y[0].draft(T::DTYPE)?;
            // SAFETY: contiguous memory of this type, this call's own.
            let d = unsafe { out.slice_mut::<T>() };
            let each = e.c * e.d;
            parallel_chunks(d, each.max(1), (1 << 15) / each.max(1) + 1, |first, d| {
                d.fill(T::default());
                for (n, d) in d.chunks_exact_mut(each.max(1)).enumerate() {
                    let start = (first + n) * e.d;
                    for (j, t) in target[start..start + e.d].iter().enumerate() {
                        if let Some(t) = *t {
                            let g = if g.len() == 1 { g[0] } else { g[start + j] };
                            d[t * e.d + j] = -(g * scale * w[t]);
                        }
                    }
                }
            });
            y[0].write_from(&out)
        })
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let g = |d| match x[0].numel() {
            1 => Part::Whole,
            _ => Part::Along(d),
        };
        let inputs = |d| [g(d), Part::Along(d), Part::Whole, Part::Whole].into_iter();
        let cut = |(of, d)| Cut::new(inputs(d).take(x.len()), [Part::Along(of)]);
        positions(y[0].ndim()).map(cut).collect()
    }

    fn large(&self) -> Option<&dyn Large> {
        Some(self)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        match picked_by_ops(x[0], &self.shape, x[1]) {
            true => self.map_by_ops(x),
            false => Ok(None),
        }
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[0], x[1]) {
            return Ok(false);
        }
        let e = Extent::of(&self.shape);
        self.of
            .launch_backward(gpu, e, x[0], x[1], x[2], x.get(3), &y[0])
    }
}

impl Large for NllGrad {
    fn part(&self, x: &[&Meta]) -> Option<Arc<dyn Op>> {
        let mut shape = self.shape.clone();
        for (of, d) in positions(shape.len()) {
            shape[of] = x[1].size(d);
        }
        let of = self.of.clone();
        Some(Arc::new(NllGrad { of, shape }))
    }
}

impl Batching for NllGrad {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x)
    }

    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let wide = x[0].dtype().compute();
        let [class, weight] = picked(&self.shape, x[1], x.get(3), self.of.ignore, wide)?;
        let e = Extent::of(&self.shape);
        let g = x[0].to_dtype(wide)?;
        let g = match g.numel() {
            1 => g.reshape_to(&[])?,
            _ => g.reshape_to(&[e.n, 1, e.d])?,
        };
        let g = match self.of.reduction {
            MEAN => g.div(&x[2].to_dtype(wide)?)?,
            _ => g,
        };
        let each = weighted(&g.neg()?, &weight)?.to_dtype(x[0].dtype())?;
        let zeros = Tensor::zeros(&[e.n, e.c, e.d], x[0].dtype(), x[0].device())?;
        let d = zeros.scatter(1, &class, &each)?.reshape_to(&self.shape)?;
        Ok(Some(Tensors::from_buf([d])))
    }
}

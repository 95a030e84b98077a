//! The operator of all normalisations and its gradient.

use super::cpu::{Columns, Line, Rows, RowsBackward, Sizes};
use super::gpu::{self, Groups};
use crate::autograd::jvp::plus;
use crate::autograd::{mode, Jvp, Tangents, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::pool::Ptr;
use crate::cpu::rows::Data;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    mask, Asked, Batching, Cut, Derivative, Fusion, Grads, Large, Mapped, Mask, Metas, Op, Part,
    Save, TensorMeta, Tensors, Traits,
};
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Rsqrt;
use crate::ops::pointwise::{apply, c, k, pointwise};
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::{bail, transfer, with_float};
use std::sync::Arc;

/// What is normalised together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Over {
    /// (d, inner) planes; `centered` subtracts the mean (all but RMS).
    Rows { centered: bool },
    /// Each channel over n and inner, by its own statistics.
    Columns,
    /// Each channel by given statistics: two more inputs, mean and variance.
    Given,
}

pointwise! {
    /// (x - m) / sqrt(v + eps).
    op Scaled { eps: f64 }[3] = "NativeBatchNormBackward0", FloatOnly;
    f |p, [x, m, v]| (x - m) * (v + k(p.eps)).rsqrt();
    df |p, [x, m, v], _, g|
        g * (v + k(p.eps)).rsqrt(),
        -g * (v + k(p.eps)).rsqrt(),
        {
            let r = (v + k(p.eps)).rsqrt();
            c::<R>(-0.5) * g * (x - m) * (r * r * r)
        };
}

/// `(x - mean) * rstd * weight + bias`; results are y and, where they are not given, mean, rstd and
/// variance in the type that is computed in. Inputs are x, then weight, bias and statistics where there are any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Norm {
    pub(super) name: &'static str,
    pub(super) over: Over,
    pub(super) n: usize,
    pub(super) groups: usize,
    pub(super) d: usize,
    pub(super) inner: usize,
    pub(super) eps: Bitwise,
    pub(super) weight: bool,
    pub(super) bias: bool,
}

impl Norm {
    /// Whether groups without variance become zeros although eps is 0: those of batch and instance
    /// norm do.
    fn stills(&self) -> bool {
        self.eps.0 == 0.0 && self.over != Over::Given && self.name == super::batch::NODE
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            n: self.n,
            groups: self.groups,
            d: self.d,
            inner: self.inner,
        }
    }
    fn shape(&self) -> [usize; 4] {
        [self.n, self.groups, self.d, self.inner]
    }
    fn channel_shape(&self) -> [usize; 4] {
        [1, self.groups, self.d, 1]
    }
    fn stat_shape(&self) -> [usize; 4] {
        match self.over {
            Over::Rows { .. } => [self.n, self.groups, 1, 1],
            _ => self.channel_shape(),
        }
    }
    /// The dimensions of [`Norm::shape`] that statistics are taken over.
    fn mask(&self) -> DimSet {
        match self.over {
            Over::Rows { .. } => [2, 3].into(),
            _ => [0, 3].into(),
        }
    }
    /// The groups of a GPU kernel.
    fn launched(&self) -> Groups {
        let channels = self.groups * self.d;
        match self.over {
            Over::Rows { .. } => Groups::group(self.n, channels, self.inner, self.groups),
            _ => Groups::batch(self.n, channels, self.inner),
        }
    }
    /// The mean over each group.
    fn mean_of(&self, x: &Tensor) -> Result<Tensor> {
        let count = (self.n * self.groups * self.d * self.inner) / self.stats().max(1);
        x.sum_mask(self.mask(), true, None)?
            .div_scalar(count as f64)
    }
    fn centered(&self) -> bool {
        self.over != Over::Rows { centered: false }
    }
    /// Weight and bias among the inputs.
    fn parameters<'a, T>(&self, x: &'a [T]) -> (Option<&'a T>, Option<&'a T>) {
        let weight = x.get(1).filter(|_| self.weight);
        (
            weight,
            x.get(1 + self.weight as usize).filter(|_| self.bias),
        )
    }
    fn stats(&self) -> usize {
        match self.over {
            Over::Rows { .. } => self.n.saturating_mul(self.groups),
            _ => self.groups.saturating_mul(self.d),
        }
    }

    /// The dimension of `x` along which groups can be parted, and how weights take part.
    fn cut(&self, x: &Meta) -> Option<(usize, Part)> {
        match self.over {
            Over::Rows { .. } => {
                let first = x.shape().iter().position(|&n| n > 1)?;
                let rows = x.shape()[..=first].iter().product();
                (self.n.is_multiple_of(rows)).then_some((first, Part::Whole))
            }
            Over::Columns => Some((1, Part::Along(0))),
            Over::Given => None,
        }
    }

    /// The same of a part of `x`, as [`Norm::cut`] cuts it.
    fn of_part(&self, x: &Meta) -> Norm {
        let mut part = self.clone();
        match self.over {
            Over::Columns => part.d = x.size(1) / self.groups,
            _ => part.n = x.numel() / (self.groups * self.d * self.inner).max(1),
        }
        part
    }

    /// Given mean and variance among what an input's number tells.
    fn given<T>(&self, of: impl Fn(usize) -> Result<T>) -> Result<[T; 2]> {
        let first = 1 + self.weight as usize + self.bias as usize;
        Ok([of(first)?, of(first + 1)?])
    }

    /// The factors that given variances make.
    fn rstd<T: Element>(&self, var: &[T]) -> Vec<T> {
        let of = |v: &T| T::of_f64(1.0 / (v.to_f64() + self.eps.0).sqrt());
        var.iter().map(of).collect()
    }

    /// `x`, of [`Norm::shape`], normalised by a given mean, or none, and variance, in its type.
    fn scaled(&self, x: &Tensor, mean: Option<&Tensor>, var: &Tensor) -> Result<Tensor> {
        let stat = |t: &Tensor| t.to_dtype(x.dtype())?.reshape_to(&self.stat_shape());
        let mean = match mean {
            Some(mean) => stat(mean)?,
            None => Tensor::constant(0.0, x.dtype())?,
        };
        apply(Scaled { eps: self.eps.0 }, [x, &mean, &stat(var)?])
    }

    /// The gradients as a graph, for second derivatives. Statistics are computed again, so that
    /// gradients flow through them.
    fn composite(&self, cx: &Vjp, g: &Tensor, x: &Tensor, w: Option<&Tensor>) -> Result<Grads> {
        let t = g.dtype().compute();
        let shaped = x.to_dtype(t)?.reshape_to(&self.shape())?;
        let g4 = g.to_dtype(t)?.reshape_to(&self.shape())?;
        let mean_of = |v: &Tensor| self.mean_of(v);
        let (center, rstd) = match self.over {
            Over::Given => {
                let stat = |i| cx.input(i)?.to_dtype(t)?.reshape_to(&self.channel_shape());
                let [mean, var] = self.given(stat)?;
                (
                    shaped.sub(&mean)?,
                    apply(Rsqrt, [&var.add_scalar(self.eps.0)?])?,
                )
            }
            over => {
                let center = match over {
                    Over::Rows { centered: false } => shaped.clone(),
                    _ => shaped.sub(&mean_of(&shaped)?)?,
                };
                let var = mean_of(&center.mul(&center)?)?;
                (center, apply(Rsqrt, [&var.add_scalar(self.eps.0)?])?)
            }
        };
        let normal = center.mul(&rstd)?;
        let mut out = Grads::from_elem(None, 5);
        let scaled = match w {
            Some(w) => g4.mul(&w.to_dtype(t)?.reshape_to(&self.channel_shape())?)?,
            None => g4.clone(),
        };
        if cx.needs(0) {
            let mut d = scaled.clone();
            if self.over != Over::Given {
                let along = normal.mul(&mean_of(&scaled.mul(&normal)?)?)?;
                d = d.sub(&along)?;
                if self.over != (Over::Rows { centered: false }) {
                    d = d.sub(&mean_of(&scaled)?)?;
                }
            }
            out[0] = Some(d.mul(&rstd)?.reshape_to(x.shape())?);
        }
        let flat = |v: Tensor| -> Result<Option<Tensor>> {
            let sums = v.sum_mask([0, 3].into(), true, None)?;
            Ok(Some(sums.reshape_to(&[self.groups * self.d])?))
        };
        if self.weight && cx.needs(1) {
            out[1] = flat(g4.mul(&normal)?)?;
        }
        let b = 1 + self.weight as usize;
        if self.bias && cx.needs(b) {
            out[b] = flat(g4)?;
        }
        Ok(out)
    }
}

impl Derivative for Norm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn save(&self, _needs: Mask) -> Save {
        let mut inputs = 1 | (self.weight as Mask) << 1;
        if self.over == Over::Given {
            inputs |= 3 << (1 + self.weight as Mask + self.bias as Mask);
            return Save { inputs, outputs: 0 };
        }
        Save {
            inputs,
            outputs: mask([1, 2]),
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 5));
        };
        let x = cx.input(0)?;
        let w = if self.weight {
            Some(cx.input(1)?)
        } else {
            None
        };
        let mut out = if mode::traced() {
            self.composite(cx, g, &x, w.as_ref())?
        } else {
            let [mean, spread] = match self.over {
                Over::Given => {
                    self.given(|i| cx.input(i)?.to_dtype(x.dtype().compute())?.contiguous())?
                }
                _ => [cx.output(1)?, cx.output(2)?],
            };
            let b = 1 + self.weight as usize;
            let wanted = (self.weight && cx.needs(1)) || (self.bias && cx.needs(b));
            let op = NormGrad {
                norm: self.clone(),
                affine: wanted,
            };
            let mut inputs = vec![g, &x, &mean, &spread];
            inputs.extend(w.as_ref());
            let mut d = dispatch::compute(&op, &inputs)?;
            let mut out = Grads::from_elem(None, 5);
            if wanted {
                let (db, dw) = (d.pop(), d.pop());
                if self.weight && cx.needs(1) {
                    out[1] = dw;
                }
                if self.bias && cx.needs(b) {
                    out[b] = db;
                }
            }
            out[0] = d.pop();
            out
        };
        // Weights of layer norm have the normalised shape.
        for (i, d) in out.iter_mut().enumerate().skip(1) {
            if let Some(t) = d {
                // A view would be copied where it arrives.
                let shape = &cx.input_meta(i)?.shape;
                if t.shape() != shape {
                    *d = Some(t.reshape_to(shape)?);
                }
            }
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (w, b) = (1, 1 + self.weight as usize);
        let first = 1 + self.weight as usize + self.bias as usize;
        if (first..cx.inputs()).any(|i| cx.tangent(i).is_some()) {
            return Ok(None);
        }
        let x = cx.input(0);
        let wide = x.dtype().compute();
        let shaped = |t: &Tensor| t.to_dtype(wide)?.reshape_to(&self.shape());
        let channel = |t: &Tensor| t.to_dtype(wide)?.reshape_to(&self.channel_shape());
        let mean_of = |v: &Tensor| self.mean_of(v);
        let mut center = shaped(x)?;
        let var = match self.over {
            Over::Given => {
                center = center.sub(&channel(cx.input(first))?)?;
                channel(cx.input(first + 1))?
            }
            over => {
                if over != (Over::Rows { centered: false }) {
                    center = center.sub(&mean_of(&center)?)?;
                }
                mean_of(&center.mul(&center)?)?
            }
        };
        let rstd = apply(Rsqrt, [&var.add_scalar(self.eps.0)?])?;
        let normal = center.mul(&rstd)?;
        let mut sum = None;
        if let Some(t) = cx.tangent(0) {
            let mut t = shaped(t)?;
            if self.over != Over::Given {
                let along = normal.mul(&mean_of(&t.mul(&normal)?)?)?;
                if self.over != (Over::Rows { centered: false }) {
                    t = t.sub(&mean_of(&t)?)?;
                }
                t = t.sub(&along)?;
            }
            let t = t.mul(&rstd)?;
            sum = Some(match self.weight {
                true => t.mul(&channel(cx.input(w))?)?,
                false => t,
            });
        }
        if let Some(t) = cx.tangent(w).filter(|_| self.weight) {
            sum = Some(plus(sum, normal.mul(&channel(t)?)?)?);
        }
        if let Some(t) = cx.tangent(b).filter(|_| self.bias) {
            sum = Some(plus(sum, channel(t)?)?);
        }
        let Some(t) = sum else { return Ok(None) };
        let mut out = Tangents::from_elem(None, 4);
        let t = t.expand_to(&self.shape())?.to_dtype(x.dtype())?;
        out[0] = Some(t.reshape_to(x.shape())?);
        Ok(Some(out))
    }
}

/// A parameter in the type that is computed in.
pub(super) fn values(t: Option<&&Tensor>, dtype: DType) -> Result<Option<Tensor>> {
    t.map(|t| t.prepared(dtype)).transpose()
}

impl Fusion for Norm {
    fn prologue_epilogue(&self) -> [bool; 2] {
        [true; 2]
    }
}

impl Op for Norm {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::of(x[0]);
        if self.over == Over::Given {
            return Ok(Metas::from_elem(meta, 1));
        }
        let stat = TensorMeta::new(&[self.stats()], meta.dtype.compute(), meta.device);
        Ok(Metas::from_iter([meta, stat.clone(), stat.clone(), stat]))
    }

    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1, 2, 3]),
            ..Traits::NONE
        }
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let t = x[0].dtype().compute();
        let a = x[0].prepared(x[0].dtype())?;
        let w = values(x[1..].first().filter(|_| self.weight), t)?;
        let b = values(x.get(1 + self.weight as usize).filter(|_| self.bias), t)?;
        let s = self.sizes();
        let (from, to) = (Data::of(&a), Data::of(&y[0]));
        with_float!(t, "norm", T => {
            // SAFETY: contiguous tensors of type T or of that of x; the outputs are this call's
            // own, and there is one statistic for each row or channel.
            unsafe {
                let (w, b) = (w.as_ref().map(|w| w.slice::<T>()), b.as_ref().map(|b| b.slice::<T>()));
                let affine = |c: usize, k: T| Line {
                    k: w.map_or(k, |w| w[c] * k),
                    a: b.map_or(T::default(), |b| b[c]),
                    b: T::default(),
                };
                if self.over == Over::Given {
                    let [mean, var] = self.given(|i| x[i].prepared(t))?;
                    let rstd = self.rstd(var.slice::<T>());
                    let lines: Vec<_> = rstd.iter().enumerate().map(|(c, &k)| affine(c, k)).collect();
                    Columns { s, x: from, g: None, mean: Ptr::new(mean.ptr::<T>()), y: to }.write(&lines);
                    return Ok(());
                }
                let stats = [1, 2, 3].map(|i| Ptr::new(y[i].ptr::<T>()));
                if let Over::Rows { centered } = self.over {
                    Rows { s, eps: self.eps.0, stills: self.stills(), centered, x: from, weight: w, bias: b, y: to, stats }
                        .run();
                    return Ok(());
                }
                let [mean, rstd, var] = &stats;
                let line = |c: usize, v: f64| {
                    let k = match self.stills() && v == 0.0 {
                        true => T::default(),
                        false => T::of_f64(1.0 / (v + self.eps.0).sqrt()),
                    };
                    *rstd.at(c) = k;
                    *var.at(c) = T::of_f64(v);
                    affine(c, k)
                };
                let job = Columns { s, x: from, g: None, mean: Ptr::new(mean.at(0)), y: to };
                let count = (s.n * s.inner) as f64;
                job.run(|c, [m, square]| {
                    *mean.at(c) = T::of_f64(m);
                    // As rounded, since it is what the gradients will be computed with.
                    line(c, Element::to_f64(T::of_f64(square / count)))
                });
            }
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let Some((d, weights)) = self.cut(x[0]) else {
            return Vec::new();
        };
        let weights = std::iter::repeat_n(weights, x.len() - 1);
        let own = std::iter::once(Part::Along(d));
        vec![Cut::new(
            own.clone().chain(weights),
            own.chain([Part::Along(0); 3]),
        )]
    }

    fn large(&self) -> Option<&dyn Large> {
        Some(self)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !transfer::small_floats(x) || self.stills() || self.over == Over::Given {
            return Ok(false);
        }
        let groups = self.launched();
        let on: Vec<Tensor> = x
            .iter()
            .map(|t| transfer::dense(gpu, t))
            .collect::<Result<_>>()?;
        let (weight, bias) = self.parameters(&on);
        transfer::ran(gpu::forward(
            gpu,
            &groups,
            self.centered(),
            self.eps.0,
            &on[0],
            weight,
            bias,
            &y[0],
            [&y[1], &y[2], &y[3]],
        ))
    }

    /// Given statistics, float64, groups without variance that become zeros, and groups that are more than
    /// a kernel binds: plain arithmetic.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let dtype = x[0].dtype().compute();
        let wide = x[0].to_dtype(dtype)?.reshape_to(&self.shape())?;
        let (weight, bias) = self.parameters(x);
        let channel = |t: &Tensor| t.to_dtype(dtype)?.reshape_to(&self.channel_shape());
        let affine = |mut y: Tensor| -> Result<Tensor> {
            if let Some(w) = weight {
                y = y.mul(&channel(w)?)?;
            }
            if let Some(b) = bias {
                y = y.add(&channel(b)?)?;
            }
            y.reshape_to(x[0].shape())?.to_dtype(x[0].dtype())
        };
        if self.over == Over::Given {
            let [mean, var] = self.given(|i| Ok(x[i]))?;
            let y = affine(self.scaled(&wide, Some(mean), var)?)?;
            return Ok(Some(Tensors::from_buf([y])));
        }
        let mean = match self.centered() {
            true => self.mean_of(&wide)?,
            false => Tensor::zeros(&self.stat_shape(), dtype, wide.device())?,
        };
        let center = wide.sub(&mean)?;
        let var = self.mean_of(&center.mul(&center)?)?;
        let mut rstd = apply(Rsqrt, [&var.add_scalar(self.eps.0)?])?;
        if self.stills() {
            let zero = Tensor::constant(0.0, dtype)?;
            rstd = where_(&apply(Eq, [&var, &zero])?, &zero, &rstd)?;
        }
        let y = affine(center.mul(&rstd)?)?;
        let mut out = Tensors::from_buf([y]);
        for t in [mean, rstd, var] {
            out.push(t.reshape_to(&[self.stats()])?);
        }
        Ok(Some(out))
    }
}

impl Large for Norm {
    fn part(&self, x: &[&Meta]) -> Option<Arc<dyn Op>> {
        Some(Arc::new(self.of_part(x[0])))
    }
}

impl Batching for Norm {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

/// The gradients of [`Norm`] in one go: inputs are g, x, mean, rstd (or the given variance) and weight; results are those
/// of x and, if `affine`, of weight and bias.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NormGrad {
    pub(super) norm: Norm,
    pub(super) affine: bool,
}

impl NormGrad {
    /// What was normalised, without weight and bias.
    pub(super) fn normal(&self, x: &[&Tensor]) -> Result<Tensor> {
        let norm = &self.norm;
        if norm.over == Over::Given {
            let wide = x[1].to_dtype(x[2].dtype())?.reshape_to(&norm.shape())?;
            return norm.scaled(&wide, Some(x[2]), x[3]);
        }
        let stat = |t: &Tensor| t.reshape_to(&norm.stat_shape());
        let center = x[1].reshape_to(&norm.shape())?.sub(&stat(x[2])?)?;
        center.mul(&stat(x[3])?)
    }

    /// The gradients of weight and bias: sums over each channel.
    fn channel_sums(&self, x: &[&Tensor]) -> Result<[Tensor; 2]> {
        let norm = &self.norm;
        let g = x[0].reshape_to(&norm.shape())?;
        let normal = self.normal(x)?;
        let sum = |t: &Tensor| {
            let (over, dtype) = ([0, 3].into(), x[1].dtype().compute());
            t.sum_mask(over, true, Some(dtype))?
                .reshape_to(&[norm.groups * norm.d])
        };
        Ok([sum(&g.mul(&normal)?)?, sum(&g)?])
    }
}

impl Derivative for NormGrad {
    fn name(&self) -> &'static str {
        self.norm.name
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::backward(self.norm.name))
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            self.norm.name
        )
    }
}

impl Fusion for NormGrad {
    fn prologue_epilogue(&self) -> [bool; 2] {
        [true; 2]
    }
}

impl Op for NormGrad {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let dx = TensorMeta::of(x[1]);
        let channels = self.norm.groups * self.norm.d;
        let param = TensorMeta::new(&[channels], dx.dtype.compute(), dx.device);
        Ok(if self.affine {
            Metas::from_iter([dx, param.clone(), param])
        } else {
            Metas::from_elem(dx, 1)
        })
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let t = x[1].dtype().compute();
        let own = x[1].dtype();
        let (g, a) = (x[0].prepared(own)?, x[1].prepared(own)?);
        let w = values(x.get(4), t)?;
        let s = self.norm.sizes();
        let (g, a, to) = (Data::of(&g), Data::of(&a), Data::of(&y[0]));
        with_float!(t, "norm", T => {
            // SAFETY: contiguous tensors of type T or of that of x; the outputs are this call's own.
            unsafe {
                let (mean, mut rstd) = (x[2].slice::<T>(), x[3].slice::<T>());
                let made = match self.norm.over {
                    Over::Given => self.norm.rstd(rstd),
                    _ => Vec::new(),
                };
                if self.norm.over == Over::Given {
                    rstd = &made;
                }
                let w = w.as_ref().map(|w| w.slice::<T>());
                if let Over::Rows { centered } = self.norm.over {
                    let (dw, db): (&mut [T], &mut [T]) = match self.affine {
                        true => (y[1].slice_mut::<T>(), y[2].slice_mut::<T>()),
                        false => (&mut [], &mut []),
                    };
                    RowsBackward { s, centered, g, x: a, weight: w, mean, rstd, dx: to }
                        .run(dw, db);
                    return Ok(());
                }
                let training = self.norm.over == Over::Columns;
                let job = Columns { s, x: a, g: Some((g, rstd)), mean: Ptr::new(x[2].ptr::<T>()), y: to };
                let count = (s.n * s.inner) as f64;
                let (dw, db) = match self.affine {
                    true => (Some(Ptr::new(y[1].ptr::<T>())), Some(Ptr::new(y[2].ptr::<T>()))),
                    false => (None, None),
                };
                let line = |c: usize, [sum, normal]: [f64; 2]| {
                    if let (Some(dw), Some(db)) = (&dw, &db) {
                        *dw.at(c) = T::of_f64(normal);
                        *db.at(c) = T::of_f64(sum);
                    }
                    // Given statistics are constants: only the factor is left.
                    let of = |v: f64| T::of_f64(if training { v / count } else { 0.0 });
                    Line {
                        k: w.map_or(rstd[c], |w| w[c] * rstd[c]),
                        a: of(sum),
                        b: of(normal * Element::to_f64(rstd[c])),
                    }
                };
                if training || self.affine {
                    job.run(line);
                } else {
                    let lines: Vec<Line<T>> = (0..s.channels()).map(|c| line(c, [0.0; 2])).collect();
                    job.write(&lines);
                }
            }
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let Some((d, weights)) = self.norm.cut(x[1]) else {
            return Vec::new();
        };
        let (own, stats) = (Part::Along(d), Part::Along(0));
        let sums = if weights == Part::Whole {
            Part::Sum
        } else {
            weights
        };
        let inputs = [own, own, stats, stats, weights];
        let results = [own, sums, sums];
        vec![Cut::new(
            inputs[..x.len()].iter().copied(),
            results[..y.len()].iter().copied(),
        )]
    }

    fn large(&self) -> Option<&dyn Large> {
        Some(self)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let norm = &self.norm;
        // By given statistics the input's gradient alone is arithmetic, which runs with what is around it.
        let given = norm.over == Over::Given;
        if !transfer::small_floats(x) || given && !self.affine {
            return Ok(false);
        }
        let on: Vec<Tensor> = x
            .iter()
            .map(|t| transfer::dense(gpu, t))
            .collect::<Result<_>>()?;
        transfer::ran(gpu::backward(
            gpu,
            &norm.launched(),
            norm.centered(),
            given.then_some(norm.eps.0),
            [&on[1], &on[0], &on[2], &on[3]],
            on.get(4),
            &y[0],
            self.affine.then(|| [&y[2], &y[1]]),
        ))
    }

    /// Where there is no kernel, as for given statistics, which are constants.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let norm = &self.norm;
        let dtype = x[1].dtype().compute();
        let mut d = x[0].to_dtype(dtype)?.reshape_to(&norm.shape())?;
        if let Some(w) = x.get(4) {
            d = d.mul(&w.to_dtype(dtype)?.reshape_to(&norm.channel_shape())?)?;
        }
        if norm.over == Over::Given {
            d = norm.scaled(&d, None, x[3])?;
        } else {
            let normal = self.normal(x)?;
            let along = normal.mul(&norm.mean_of(&d.mul(&normal)?)?)?;
            if norm.centered() {
                d = d.sub(&norm.mean_of(&d)?)?;
            }
            d = d.sub(&along)?.mul(&x[3].reshape_to(&norm.stat_shape())?)?;
        }
        let d = d.reshape_to(x[1].shape())?;
        let mut out = Tensors::from_buf([d.to_dtype(x[1].dtype())?]);
        if self.affine {
            out.extend(self.channel_sums(x)?);
        }
        Ok(Some(out))
    }
}

impl Large for NormGrad {
    fn part(&self, x: &[&Meta]) -> Option<Arc<dyn Op>> {
        Some(Arc::new(NormGrad {
            norm: self.norm.of_part(x[1]),
            ..*self
        }))
    }
}

impl Batching for NormGrad {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

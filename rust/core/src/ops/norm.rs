//! Normalisation: layer, group, instance, RMS (over rows) and batch (over columns).

mod kernel;

use crate::autograd::{mode, Vjp};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::kernels::norm::{self as launch, Groups};
use crate::gpu::Gpu;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::Rsqrt;
use crate::schema::Value;
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_float};
use kernel::Sizes;
pub use kernel::{total, Float};

/// What is normalised together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    /// (d, inner) planes; `centered` subtracts the mean (all but RMS).
    Rows { centered: bool },
    /// Each channel over n and inner, by its own statistics.
    Columns,
    /// Each channel by given statistics: two more inputs, mean and variance.
    Given,
}

/// `(x - mean) * rstd * weight + bias`; results are y and, in the type that is computed in, mean,
/// rstd and variance. Inputs are x, then weight, bias and statistics where there are any.
#[derive(Clone, Debug, PartialEq)]
struct Norm {
    name: &'static str,
    over: Over,
    n: usize,
    groups: usize,
    d: usize,
    inner: usize,
    eps: f64,
    weight: bool,
    bias: bool,
}

impl Norm {
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
    /// The dimensions of [`Norm::shape`] that statistics are taken over.
    fn mask(&self) -> [bool; 4] {
        match self.over {
            Over::Rows { .. } => [false, false, true, true],
            _ => [true, false, false, true],
        }
    }
    /// The groups of a GPU kernel, where there is one.
    fn launched(&self) -> Option<Groups> {
        let channels = self.groups * self.d;
        match self.over {
            Over::Rows { centered: true } => {
                Some(Groups::group(self.n, channels, self.inner, self.groups))
            }
            Over::Columns => Some(Groups::batch(self.n, channels, self.inner)),
            _ => None,
        }
    }
    fn stats(&self) -> usize {
        match self.over {
            Over::Rows { .. } => self.n.saturating_mul(self.groups),
            _ => self.groups.saturating_mul(self.d),
        }
    }

    /// The gradients as a graph, for second derivatives. Statistics are computed again, so that
    /// gradients flow through them.
    fn composite(&self, cx: &Vjp, g: &Tensor, x: &Tensor, w: Option<&Tensor>) -> Result<Grads> {
        let t = g.dtype().compute();
        let sum = |v: &Tensor, mask: &[bool; 4]| v.sum_mask(mask, true, Some(t));
        let shaped = x.to_dtype(t)?.reshape_to(&self.shape())?;
        let g4 = g.to_dtype(t)?.reshape_to(&self.shape())?;
        let mask = self.mask();
        let count = (self.n * self.groups * self.d * self.inner) / self.stats().max(1);
        let mean_of = |v: &Tensor| sum(v, &mask)?.div_scalar(count as f64);
        let (center, rstd) = match self.over {
            Over::Given => {
                let stat = |i: usize| {
                    cx.input(1 + self.weight as usize + self.bias as usize + i)?
                        .to_dtype(t)?
                        .reshape_to(&self.channel_shape())
                };
                (
                    shaped.sub(&stat(0)?)?,
                    apply(Rsqrt, [&stat(1)?.add_scalar(self.eps)?])?,
                )
            }
            over => {
                let center = match over {
                    Over::Rows { centered: false } => shaped.clone(),
                    _ => shaped.sub(&mean_of(&shaped)?)?,
                };
                let var = mean_of(&center.mul(&center)?)?;
                (center, apply(Rsqrt, [&var.add_scalar(self.eps)?])?)
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
            Ok(Some(
                sum(&v, &[true, false, false, true])?.reshape_to(&[self.groups * self.d])?,
            ))
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
        }
        Save {
            inputs,
            outputs: 0b110,
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
        let mut out = if mode::grad() {
            self.composite(cx, g, &x, w.as_ref())?
        } else {
            let (mean, rstd) = (cx.output(1)?, cx.output(2)?);
            let b = 1 + self.weight as usize;
            let wanted = (self.weight && cx.needs(1)) || (self.bias && cx.needs(b));
            let op = NormGrad {
                norm: self.clone(),
                affine: wanted,
            };
            let mut inputs = vec![g, &x, &mean, &rstd];
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
                let shape = cx.input_meta(i)?.shape.clone();
                *d = Some(t.reshape_to(&shape)?);
            }
        }
        Ok(out)
    }
}

/// A parameter in the type that is computed in.
fn values(t: Option<&&Tensor>, dtype: DType) -> Result<Option<Tensor>> {
    t.map(|t| t.prepared(dtype)).transpose()
}

/// The tensor itself, or one of the computing type to be copied into it.
fn target(y: &Tensor, t: DType) -> Result<Tensor> {
    if y.dtype() == t {
        Ok(y.clone())
    } else {
        Tensor::empty(y.shape(), t, y.device())
    }
}

fn finish(y: &Tensor, computed: &Tensor) -> Result<()> {
    if y.dtype() == computed.dtype() {
        Ok(())
    } else {
        y.write_from(computed)
    }
}

impl Op for Norm {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let meta = TensorMeta::of(x[0]);
        let stat = TensorMeta::new(&[self.stats()], meta.dtype.compute(), meta.device);
        Ok(Metas::from_iter([meta, stat.clone(), stat.clone(), stat]))
    }

    fn detached_outputs(&self) -> Mask {
        0b1110
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let t = x[0].dtype().compute();
        let a = x[0].prepared(t)?;
        let w = values(x[1..].first().filter(|_| self.weight), t)?;
        let b = values(x.get(1 + self.weight as usize).filter(|_| self.bias), t)?;
        let out = target(&y[0], t)?;
        let s = self.sizes();
        with_float!(t, "norm", T => {
            // SAFETY: contiguous tensors of type T; the outputs are this call's own.
            unsafe {
                let (a, out) = (a.slice::<T>(), out.slice_mut::<T>());
                let (w, b) = (w.as_ref().map(|w| w.slice::<T>()), b.as_ref().map(|b| b.slice::<T>()));
                let stats = [1, 2, 3].map(|i| y[i].slice_mut::<T>());
                if let Over::Rows { centered } = self.over {
                    kernel::rows(s, self.eps, centered, a, w, b, out, stats);
                } else {
                    let [mean, rstd, var] = stats;
                    if self.over == Over::Given {
                        let first = 1 + self.weight as usize + self.bias as usize;
                        mean.copy_from_slice(x[first].prepared(t)?.slice::<T>());
                        var.copy_from_slice(x[first + 1].prepared(t)?.slice::<T>());
                    } else {
                        kernel::column_stats(s, a, mean, var);
                    }
                    let (mut scale, mut shift) = (Vec::new(), Vec::new());
                    for c in 0..s.channels() {
                        use crate::cpu::elements::Element;
                        rstd[c] = T::of_f64(1.0 / (Element::to_f64(var[c]) + self.eps).sqrt());
                        scale.push(w.map_or(rstd[c], |w| w[c] * rstd[c]));
                        shift.push(b.map_or(T::default(), |b| b[c]));
                    }
                    kernel::columns(s, a, mean, &scale, &shift, out);
                }
            }
        });
        finish(&y[0], &out)
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !transfer::small_floats(x) {
            return Ok(false);
        }
        let gpu = Gpu::get()?;
        let on: Vec<Tensor> = x
            .iter()
            .map(|t| transfer::dense(t))
            .collect::<Result<_>>()?;
        let weight = on[1..].first().filter(|_| self.weight);
        let bias = on.get(1 + self.weight as usize).filter(|_| self.bias);
        let Some(groups) = self.launched() else {
            if self.over != Over::Given {
                return Ok(false);
            }
            // Statistics are given: plain arithmetic per channel.
            let first = 1 + self.weight as usize + self.bias as usize;
            y[1].write_from(&on[first])?;
            y[3].write_from(&on[first + 1])?;
            y[2].write_from(&apply(Rsqrt, [&y[3].add_scalar(self.eps)?])?)?;
            let channel = |t: &Tensor| t.reshape_to(&self.channel_shape());
            let mut v = on[0].reshape_to(&self.shape())?.sub(&channel(&y[1])?)?;
            let scale = match weight {
                Some(w) => channel(w)?.mul(&channel(&y[2])?)?,
                None => channel(&y[2])?,
            };
            v = v.mul(&scale)?;
            if let Some(b) = bias {
                v = v.add(&channel(b)?)?;
            }
            y[0].write_from(&v.reshape_to(y[0].shape())?)?;
            return Ok(true);
        };
        let (weight, bias) = (
            weight.map(transfer::whole).transpose()?,
            bias.map(transfer::whole).transpose()?,
        );
        let stats = [
            transfer::whole(&y[1])?,
            transfer::whole(&y[2])?,
            transfer::whole(&y[3])?,
        ];
        let (a, to) = (transfer::whole(&on[0])?, transfer::whole(&y[0])?);
        transfer::ran(launch::forward(
            gpu, &groups, self.eps, a, weight, bias, to, stats,
        ))
    }
}

/// The gradients of [`Norm`] in one go: inputs are g, x, mean, rstd and weight; results are those
/// of x and, if `affine`, of weight and bias.
#[derive(Clone, Debug)]
struct NormGrad {
    norm: Norm,
    affine: bool,
}

impl Derivative for NormGrad {
    fn name(&self) -> &'static str {
        self.norm.name
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            self.norm.name
        )
    }
}

impl Op for NormGrad {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
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
        let (g, a) = (x[0].prepared(t)?, x[1].prepared(t)?);
        let w = values(x.get(4), t)?;
        let dx = target(&y[0], t)?;
        let s = self.norm.sizes();
        with_float!(t, "norm", T => {
            // SAFETY: contiguous tensors of type T; the outputs are this call's own.
            unsafe {
                let (g, a, dx) = (g.slice::<T>(), a.slice::<T>(), dx.slice_mut::<T>());
                let (mean, rstd) = (x[2].slice::<T>(), x[3].slice::<T>());
                let w = w.as_ref().map(|w| w.slice::<T>());
                let (dw, db): (&mut [T], &mut [T]) = match self.affine {
                    true => (y[1].slice_mut::<T>(), y[2].slice_mut::<T>()),
                    false => (&mut [], &mut []),
                };
                if let Over::Rows { centered } = self.norm.over {
                    kernel::rows_backward(s, centered, g, a, w, mean, rstd, dx, dw, db);
                } else {
                    let training = self.norm.over == Over::Columns;
                    let (mut vw, mut vb) = (Vec::new(), Vec::new());
                    let (dw, db) = if self.affine {
                        (dw, db)
                    } else {
                        vw.resize(s.channels(), T::default());
                        vb.resize(s.channels(), T::default());
                        (&mut vw[..], &mut vb[..])
                    };
                    if training || self.affine {
                        kernel::column_grads(s, g, a, mean, rstd, dw, db);
                    }
                    let sums = training.then_some((&*dw, &*db));
                    kernel::column_input(s, g, a, mean, rstd, w, sums, dx);
                }
            }
        });
        finish(&y[0], &dx)
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !transfer::small_floats(x) {
            return Ok(false);
        }
        let (gpu, norm) = (Gpu::get()?, &self.norm);
        let on: Vec<Tensor> = x
            .iter()
            .map(|t| transfer::dense(t))
            .collect::<Result<_>>()?;
        let groups = norm.launched();
        let columns = norm.over == Over::Columns;
        if let Some(groups) = &groups {
            let sum = |i: usize| match columns && self.affine {
                true => Ok(y[i].clone()),
                false => Tensor::empty(&[groups.groups], DType::F32, Device::Wgpu),
            };
            let (sum_gx, sum_g) = (sum(1)?, sum(2)?);
            let stats = [transfer::whole(&on[2])?, transfer::whole(&on[3])?];
            let weight = on.get(4).map(transfer::whole).transpose()?;
            let done = transfer::ran(launch::backward(
                gpu,
                groups,
                transfer::whole(&on[1])?,
                transfer::whole(&on[0])?,
                stats,
                weight,
                transfer::whole(&y[0])?,
                [transfer::whole(&sum_g)?, transfer::whole(&sum_gx)?],
            ))?;
            if !done || columns || !self.affine {
                return Ok(done);
            }
        } else if norm.over != Over::Given {
            return Ok(false);
        }
        // What is left: sums over each channel, and the input's gradient by given statistics.
        let shape = norm.shape();
        let stat = match norm.over {
            Over::Given => norm.channel_shape(),
            _ => [norm.n, norm.groups, 1, 1],
        };
        let g = on[0].reshape_to(&shape)?;
        let rstd = on[3].reshape_to(&stat)?;
        if norm.over == Over::Given {
            let scale = match on.get(4) {
                Some(w) => rstd.mul(&w.reshape_to(&norm.channel_shape())?)?,
                None => rstd.clone(),
            };
            y[0].write_from(&g.mul(&scale)?.reshape_to(y[0].shape())?)?;
        }
        if self.affine {
            let normal = on[1]
                .reshape_to(&shape)?
                .sub(&on[2].reshape_to(&stat)?)?
                .mul(&rstd)?;
            let flat = |t: Tensor, to: &Tensor| -> Result<()> {
                let sum = t.sum_mask(&[true, false, false, true], true, Some(to.dtype()))?;
                to.write_from(&sum.reshape_to(to.shape())?)
            };
            flat(g.mul(&normal)?, &y[1])?;
            flat(g, &y[2])?;
        }
        Ok(true)
    }
}

/// Refuses integers, in PyTorch's words.
fn float_only(x: &Tensor, kernel: &str) -> Result<()> {
    ensure!(
        x.dtype().is_float(),
        NotImplemented,
        "\"{kernel}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(())
}

/// Parameters have the input's type, or f32 where the input has a half type.
fn check_types(x: &Tensor, params: &[Option<&Tensor>], text: &str) -> Result<()> {
    for p in params.iter().flatten() {
        let fits = p.dtype() == x.dtype() || (x.dtype().is_half() && p.dtype() == DType::F32);
        ensure!(
            fits,
            Runtime,
            "mixed dtype (CPU): {text}, got {} and {}",
            x.dtype(),
            p.dtype()
        );
    }
    Ok(())
}

fn run(op: Norm, x: &Tensor, rest: &[Option<&Tensor>]) -> Result<crate::op::Tensors> {
    let mut inputs = vec![x];
    inputs.extend(rest.iter().flatten());
    dispatch::call(op, &inputs)
}

/// (rows, elements per row) of an input whose last dimensions are `shape`.
fn split_rows(x: &Tensor, shape: &[i64], star: &str) -> Result<(usize, usize)> {
    ensure!(
        !shape.is_empty(),
        Runtime,
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one \
         element, but got normalized_shape = {}",
        Show(shape)
    );
    let lead = x.ndim().checked_sub(shape.len());
    let fits = lead.is_some_and(|l| {
        x.shape()[l..]
            .iter()
            .zip(shape)
            .all(|(&a, &b)| a as i64 == b)
    });
    let text = Show(shape).to_string();
    ensure!(
        fits,
        Runtime,
        "Given normalized_shape={text}, expected input with shape [*{star}{}, but got input of \
         size{}",
        &text[1..],
        Show(x.shape())
    );
    let lead = lead.unwrap_or(0);
    Ok((
        x.shape()[..lead].iter().product(),
        x.shape()[lead..].iter().product(),
    ))
}

fn check_like(p: Option<&Tensor>, shape: &[i64], name: &str) -> Result<()> {
    if let Some(p) = p {
        let fits =
            p.ndim() == shape.len() && p.shape().iter().zip(shape).all(|(&a, &b)| a as i64 == b);
        ensure!(
            fits,
            Runtime,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} \
             and normalized_shape = {}",
            Show(p.shape()),
            Show(shape)
        );
    }
    Ok(())
}

impl Tensor {
    /// `native_layer_norm`: y, mean and rstd.
    pub fn layer_norm(
        &self,
        shape: &[i64],
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<[Tensor; 3]> {
        let (n, d) = split_rows(self, shape, ", ")?;
        check_like(weight, shape, "weight")?;
        check_like(bias, shape, "bias")?;
        float_only(self, "LayerNormKernelImpl")?;
        check_types(
            self,
            &[weight, bias],
            "expect parameter to have scalar type of Float",
        )?;
        let op = Norm {
            name: "NativeLayerNormBackward0",
            over: Over::Rows { centered: true },
            n,
            groups: 1,
            d,
            inner: 1,
            eps,
            weight: weight.is_some(),
            bias: bias.is_some(),
        };
        let mut y = run(op, self, &[weight, bias])?;
        y.truncate(3);
        let mut lead = Dims::from_slice(&self.shape()[..self.ndim() - shape.len()]);
        lead.resize(self.ndim(), 1);
        let (rstd, mean) = (y.pop(), y.pop());
        match (y.pop(), mean, rstd) {
            (Some(y), Some(m), Some(r)) => Ok([y, m.reshape_to(&lead)?, r.reshape_to(&lead)?]),
            _ => bail!(Assertion, "layer_norm: an output is missing"),
        }
    }

    /// `rms_norm`; without `eps`, that of the type computed in.
    pub fn rms_norm(
        &self,
        shape: &[i64],
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<Tensor> {
        let (n, d) = split_rows(self, shape, "")?;
        check_like(weight, shape, "weight")?;
        float_only(self, "rms_norm")?;
        let least = match self.dtype() {
            DType::F64 => f64::EPSILON,
            _ => f32::EPSILON as f64,
        };
        let op = Norm {
            name: "FusedRmsNormBackward0",
            over: Over::Rows { centered: false },
            n,
            groups: 1,
            d,
            inner: 1,
            eps: eps.unwrap_or(least),
            weight: weight.is_some(),
            bias: false,
        };
        Ok(run(op, self, &[weight])?.swap_remove(0))
    }

    /// `native_group_norm` over `groups` groups of channels: y, mean, rstd and variance.
    fn group_norm_stats(
        &self,
        name: &'static str,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<crate::op::Tensors> {
        let (n, c) = (self.size(0), self.size(1));
        let op = Norm {
            name,
            over: Over::Rows { centered: true },
            n,
            groups,
            d: c / groups.max(1),
            inner: self.shape()[2..].iter().product(),
            eps,
            weight: weight.is_some(),
            bias: bias.is_some(),
        };
        run(op, self, &[weight, bias])
    }

    /// `group_norm`.
    pub fn group_norm(
        &self,
        groups: i64,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        ensure!(
            self.ndim() >= 2,
            Runtime,
            "Expected at least 2 dimensions for input tensor but received {}",
            self.ndim()
        );
        ensure!(
            groups > 0,
            Runtime,
            "Expected num groups to be greater than 0, got {groups}"
        );
        let c = self.size(1);
        ensure!(
            c as i64 % groups == 0,
            Runtime,
            "Expected number of channels in input to be divisible by num_groups, but got input of \
             shape {} and num_groups={groups}",
            Show(self.shape())
        );
        for (p, name) in [(weight, "weight"), (bias, "bias")] {
            if let Some(p) = p {
                ensure!(
                    p.ndim() == 1 && p.size(0) == c,
                    Runtime,
                    "Expected {name} to be a vector of size equal to the number of channels in \
                     input, but got {name} of shape {} and input of shape {}",
                    Show(p.shape()),
                    Show(self.shape())
                );
            }
        }
        float_only(self, "GroupNormKernelImpl")?;
        check_types(
            self,
            &[weight, bias],
            "expect parameter to have scalar type of Float",
        )?;
        let y = self.group_norm_stats(
            "NativeGroupNormBackward0",
            groups as usize,
            weight,
            bias,
            eps,
        )?;
        Ok(y[0].clone())
    }
}

/// `running = (1 - momentum) * running + momentum * value`, in place.
fn update(running: &Tensor, value: &Tensor, momentum: f64) -> Result<()> {
    mode::with_grad(false, || {
        let old = running.detach().mul_scalar(1.0 - momentum)?;
        let new = old.add(
            &value
                .detach()
                .to_dtype(running.dtype())?
                .mul_scalar(momentum)?,
        )?;
        running.copy_from(&new)
    })
}

/// Arguments of `batch_norm` and `instance_norm`.
struct Batch<'a> {
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    mean: Option<&'a Tensor>,
    var: Option<&'a Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
}

impl<'a> Batch<'a> {
    fn read(a: &'a crate::schema::Args) -> Result<Batch<'a>> {
        Ok(Batch {
            weight: a.opt_tensor(1),
            bias: a.opt_tensor(2),
            mean: a.opt_tensor(3),
            var: a.opt_tensor(4),
            training: a.bool(5)?,
            momentum: a.opt_float(6).unwrap_or(0.0),
            eps: a.float(7)?,
        })
    }

    fn check(&self, x: &Tensor) -> Result<()> {
        ensure!(
            x.ndim() >= 2,
            Runtime,
            "batch_norm: expected an input of at least 2 dimensions (N, C, ...), but got {}",
            Show(x.shape())
        );
        float_only(x, "batch_norm")?;
        let c = x.size(1);
        let params = [
            (self.mean, "running_mean"),
            (self.var, "running_var"),
            (self.weight, "weight"),
            (self.bias, "bias"),
        ];
        for (p, name) in params {
            if let Some(p) = p {
                ensure!(
                    p.numel() == c,
                    Runtime,
                    "{name} should contain {c} elements not {}",
                    p.numel()
                );
            }
        }
        check_types(
            x,
            &params.map(|p| p.0),
            "all inputs must share same datatype.",
        )
    }

    /// y, mean and rstd; statistics are updated where they are kept.
    fn run(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        if x.numel() == 0 {
            return self.run_empty(x);
        }
        self.check(x)?;
        let (n, d) = (x.size(0), x.size(1));
        let inner: usize = x.shape()[2..].iter().product();
        let over = if self.training {
            Over::Columns
        } else {
            Over::Given
        };
        let op = Norm {
            name: "NativeBatchNormBackward0",
            over,
            n,
            groups: 1,
            d,
            inner,
            eps: self.eps,
            weight: self.weight.is_some(),
            bias: self.bias.is_some(),
        };
        if !self.training {
            ensure!(
                self.mean.is_some(),
                Runtime,
                "running_mean must be defined in evaluation mode"
            );
            ensure!(
                self.var.is_some(),
                Runtime,
                "running_var must be defined in evaluation mode"
            );
            let (m, v) = (self.mean.map(Tensor::detach), self.var.map(Tensor::detach));
            let y = run(op, x, &[self.weight, self.bias, m.as_ref(), v.as_ref()])?;
            let none = || Tensor::empty(&[0], x.dtype(), x.device());
            return Ok([y[0].clone(), none()?, none()?]);
        }
        let y = run(op, x, &[self.weight, self.bias])?;
        self.keep(&y[1], &y[3], n * inner)?;
        Ok([y[0].clone(), y[1].clone(), y[2].clone()])
    }

    /// Without elements there is nothing to normalise; the graph stays.
    fn run_empty(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        float_only(x, "batch_norm")?;
        let mut y = x.copy_dense()?;
        if let Some(w) = self.weight.filter(|w| w.numel() > 0) {
            y = y.mul(&w.reshape(&[-1])?.select(0, 0)?)?;
        }
        if let Some(b) = self.bias.filter(|b| b.numel() > 0) {
            y = y.add(&b.reshape(&[-1])?.select(0, 0)?)?;
        }
        let none = || Tensor::empty(&[0], x.dtype(), x.device());
        Ok([y, none()?, none()?])
    }

    /// Updates running statistics with a mean and a variance over `count` elements.
    fn keep(&self, mean: &Tensor, var: &Tensor, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        if let Some(r) = self.mean {
            update(r, mean, self.momentum)?;
        }
        if let Some(r) = self.var {
            let unbiased = count as f64 / (count as f64 - 1.0);
            update(
                r,
                &mode::with_grad(false, || var.mul_scalar(unbiased))?,
                self.momentum,
            )?;
        }
        Ok(())
    }

    fn run_instances(&self, x: &Tensor) -> Result<Tensor> {
        ensure!(
            self.training || (self.mean.is_some() && self.var.is_some()),
            Runtime,
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        );
        if !self.training {
            return Ok(self.run(x)?[0].clone());
        }
        self.check(x)?;
        let (n, c) = (x.size(0), x.size(1));
        let y = x.group_norm_stats(
            "NativeBatchNormBackward0",
            c,
            self.weight,
            self.bias,
            self.eps,
        )?;
        if n > 0 && (self.mean.is_some() || self.var.is_some()) {
            let average = |t: &Tensor| {
                let t = t.detach().reshape_to(&[n, c])?;
                t.sum_mask(&[true, false], false, None)?
                    .div_scalar(n as f64)
            };
            let count = x.shape()[2..].iter().product();
            self.keep(&average(&y[1])?, &average(&y[3])?, count)?;
        }
        Ok(y[0].clone())
    }
}

crate::entries! {
    /// Normalises the last dimensions, those of `normalized_shape`, to mean 0 and variance 1.
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    FN, |a| {
        let [y, ..] =
            a.tensor(0)?.layer_norm(a.ints(1)?, a.opt_tensor(2), a.opt_tensor(3), a.float(4)?)?;
        Ok(y.into())
    };
    /// As `layer_norm`, with mean and reciprocal standard deviation.
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    FN, |a| {
        let x = a.tensor(0)?;
        let [y, m, r] = x.layer_norm(a.ints(1)?, a.opt_tensor(2), a.opt_tensor(3), a.float(4)?)?;
        let like = a.opt_tensor(2).map_or(x.dtype(), Tensor::dtype);
        Ok(Value::Tuple(vec![y, m.to_dtype(like)?, r.to_dtype(like)?]))
    };
    /// Divides the last dimensions by their root mean square. Zhang, Sennrich 2019, arXiv:1910.07467.
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    FN, |a| Ok(a.tensor(0)?.rms_norm(a.ints(1)?, a.opt_tensor(2), a.opt_float(3))?.into());
    /// Normalises groups of channels of each sample. Wu, He 2018, arXiv:1803.08494.
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    FN, |a| {
        let (w, b) = (a.opt_tensor(2), a.opt_tensor(3));
        Ok(a.tensor(0)?.group_norm(a.int(1)?, w, b, a.float(4)?)?.into())
    };
    /// As `group_norm`, with mean and reciprocal standard deviation of each group.
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    FN, |a| {
        let (x, groups) = (a.tensor(0)?, a.int(6)?);
        let (w, b, eps) = (a.opt_tensor(1), a.opt_tensor(2), a.float(7)?);
        let y = x.group_norm(groups, w, b, eps)?;
        // Gradients flow through these as well, so they are a graph of their own.
        let shape = [x.size(0), groups as usize];
        let rows = x.reshape(&[shape[0] as i64, groups, (x.numel() / (shape[0] * shape[1]).max(1)) as i64])?;
        let mean = |t: &Tensor| {
            let sum = t.sum_mask(&[false, false, true], true, Some(t.dtype()))?;
            sum.div_scalar(rows.size(2) as f64)
        };
        let m = mean(&rows)?;
        let center = rows.sub(&m)?;
        let r = apply(Rsqrt, [&mean(&center.mul(&center)?)?.add_scalar(eps)?])?;
        Ok(Value::Tuple(vec![y, m.reshape_to(&shape)?, r.reshape_to(&shape)?]))
    };
    /// Normalises each channel over the batch. Ioffe, Szegedy 2015, arXiv:1502.03167.
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    FN, |a| {
        let [y, ..] = Batch::read(a)?.run(a.tensor(0)?)?;
        Ok(y.into())
    };
    /// As `batch_norm`, with mean and reciprocal standard deviation of each channel.
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    FN, |a| {
        let x = a.tensor(0)?;
        let [y, m, r] = Batch::read(a)?.run(x)?;
        let like = a.opt_tensor(1).map_or(x.dtype(), Tensor::dtype);
        Ok(Value::Tuple(vec![y, m.to_dtype(like)?, r.to_dtype(like)?]))
    };
    /// Normalises each channel of each sample. Ulyanov et al. 2016, arXiv:1607.08022.
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    FN, |a| Ok(Batch::read(a)?.run_instances(a.tensor(0)?)?.into());
}

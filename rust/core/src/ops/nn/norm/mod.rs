//! Normalisation: layer, group, instance, RMS (over rows) and batch (over columns).

mod batch;
mod cpu;
mod fused;
mod gpu;
mod many;
mod unit;

use crate::arg;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::layout::{CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::Rsqrt;
use crate::schema::Value;
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use batch::Batch;
use fused::{Norm, Over};

/// Refuses integers, in PyTorch's words.
fn float_only(x: &Tensor, kernel: &str) -> Result<()> {
    ensure!(
        x.dtype().is_float(),
        NoKernel,
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

/// Mean and deviation are given out in the type of the parameters.
fn statistics_type(x: &Tensor, param: Option<&Tensor>) -> DType {
    param.map_or(x.dtype(), |t| t.dtype())
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
            eps: Bitwise(eps),
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
            eps: Bitwise(eps.unwrap_or(least)),
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
            eps: Bitwise(eps),
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
            Index,
            "group_norm: Expected at least 2 dimensions for input tensor but received {}",
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

/// The result of a batch in channels-last order where the batch lies so and not row by row as well.
fn in_order_of(x: &Tensor, y: Tensor) -> Result<Tensor> {
    let layout = x.layout();
    let packed = layout.is_packed(&CHANNELS_LAST) || layout.is_packed(&CHANNELS_LAST_3D);
    match !x.is_contiguous() && (packed || layout.suggests_channels_last()) {
        true => y.in_channels_last(),
        false => Ok(y),
    }
}

crate::entries! {
    /// Vectors along `dim` over their p-norms, which are taken as at least `eps`; p is 1, or 2 or more.
    "_unit(Tensor self, float eps=1e-12, int[1]? dim=None, float p=2.0) -> Tensor", FN,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(unit::unit(x, a.float(arg!(eps))?, a.mask(arg!(dim), x)?, a.float(arg!(p))?)?.into())
    };
    /// Normalises the last dimensions, those of `normalized_shape`, to mean 0 and variance 1.
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    FN, |a| {
        let [y, ..] =
            a.tensor(arg!(input))?.layer_norm(a.ints(arg!(normalized_shape))?, a.opt_tensor(arg!(weight)), a.opt_tensor(arg!(bias)), a.float(arg!(eps))?)?;
        Ok(y.into())
    };
    /// As `layer_norm`, with mean and reciprocal standard deviation.
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    FN, |a| {
        let x = a.tensor(arg!(input))?;
        let [y, m, r] = x.layer_norm(a.ints(arg!(normalized_shape))?, a.opt_tensor(arg!(weight)), a.opt_tensor(arg!(bias)), a.float(arg!(eps))?)?;
        let like = statistics_type(x, a.opt_tensor(arg!(weight)).or(a.opt_tensor(arg!(bias))));
        Ok(Value::Tuple(vec![y, m.to_dtype(like)?, r.to_dtype(like)?]))
    };
    /// Divides the last dimensions by their root mean square. Zhang, Sennrich 2019, arXiv:1910.07467.
    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    FN, |a| {
        let x = a.tensor(arg!(input))?;
        let y = x.rms_norm(a.ints(arg!(normalized_shape))?, a.opt_tensor(arg!(weight)), a.opt_float(arg!(eps)))?;
        Ok(match x.layout().suggests_channels_last() {
            true => in_order_of(x, y)?.into(),
            false => y.into(),
        })
    };
    /// Normalises groups of channels of each sample. Wu, He 2018, arXiv:1803.08494.
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    FN | FORMAT, |a| {
        let (w, b) = (a.opt_tensor(arg!(weight)), a.opt_tensor(arg!(bias)));
        Ok(a.tensor(arg!(input))?.group_norm(a.int(arg!(num_groups))?, w, b, a.float(arg!(eps))?)?.into())
    };
    /// As `group_norm`, with mean and reciprocal standard deviation of each group.
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    FN | FORMAT, |a| {
        let (x, groups) = (a.tensor(arg!(input))?, a.int(arg!(group))?);
        let (w, b, eps) = (a.opt_tensor(arg!(weight)), a.opt_tensor(arg!(bias)), a.float(arg!(eps))?);
        let named = [a.int(arg!(N))?, a.int(arg!(C))?, a.int(arg!(HxW))?];
        let sizes = crate::shape::sizes(&named)?;
        ensure!(
            crate::shape::numel(&sizes)? == x.numel(),
            Runtime,
            "native_group_norm: expected an input of N * C * HxW elements, got {} for {}",
            Show(x.shape()),
            Show(&named)
        );
        let y = x.reshape(&named)?.group_norm(groups, w, b, eps)?.reshape_to(x.shape())?;
        // Gradients flow through these as well, so they are a graph of their own.
        let shape = [sizes[0], groups as usize];
        let like = statistics_type(x, w.or(b));
        let rows = x.to_dtype(like)?.reshape(&[shape[0] as i64, groups, (x.numel() / (shape[0] * shape[1]).max(1)) as i64])?;
        let mean = |t: &Tensor| {
            let sum = t.sum_mask([2].into(), true, Some(t.dtype()))?;
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
        let x = a.tensor(arg!(input))?;
        let [y, ..] = Batch::read(a)?.run(x)?;
        Ok(in_order_of(x, y)?.into())
    };
    /// As `batch_norm`, with mean and reciprocal standard deviation of each channel.
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    FN, |a| {
        let x = a.tensor(arg!(input))?;
        let [y, m, r] = Batch::read(a)?.run(x)?;
        let y = in_order_of(x, y)?;
        let like = statistics_type(x, a.opt_tensor(arg!(weight)).or(a.opt_tensor(arg!(bias))));
        Ok(Value::Tuple(vec![y, m.to_dtype(like)?, r.to_dtype(like)?]))
    };
    /// Normalises each channel of each sample. Ulyanov et al. 2016, arXiv:1607.08022.
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    FN, |a| Ok(Batch::read(a)?.run_instances(a.tensor(arg!(input))?)?.into());
}

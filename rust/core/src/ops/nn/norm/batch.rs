//! Batch and instance norm with their running statistics.

use super::fused::{Norm, Over};
use super::{check_types, float_only, run};
use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::dispatch::{self, Overlap};
use crate::dtype::{Bitwise, DType};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta};
use crate::schema::{Args, Signature};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};

/// The node of batch and instance norm.
pub(super) const NODE: &str = "NativeBatchNormBackward0";

/// `running = (1 - momentum) * old + momentum * value`, where `old` is mostly `running`.
pub(super) fn update(running: &Tensor, old: &Tensor, value: &Tensor, momentum: f64) -> Result<()> {
    mode::with_grad(false, || {
        let old = old.detach().mul_scalar(1.0 - momentum)?;
        let new = old.add(
            &value
                .detach()
                .to_dtype(running.dtype())?
                .mul_scalar(momentum)?,
        )?;
        running.copy_from(&new)
    })
}

/// Says what to do where each slice has statistics of its own, and all share what keeps them.
fn apart(e: Error, running: &Tensor, value: &Tensor) -> Error {
    if running.stands() || !value.stands() || !e.text.starts_with("vmap: inplace") {
        return e;
    }
    Error::runtime(
        "Batch norm got a batched tensor as input while the running_mean or running_var, which will \
         be updated in place, were not batched.\nIf you are using a module and do not need eval mode, \
         please set `track_running_stats` to be False. Of a module that is made already, \
         torch.func.replace_all_batch_norm_modules_ takes the running statistics away; \
         torch.func.stack_module_state gives each slice its own",
    )
}

/// Both running statistics by one kernel of the GPU. Inputs are they and the new mean and variance of each
/// channel of so many samples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    momentum: Bitwise,
    unbiased: Bitwise,
    samples: usize,
}

/// Samples that one invocation may add up.
const MAX_SAMPLES: usize = 60_000;

/// The mean of statistics of `samples`, where there are several.
fn average(t: &Tensor, samples: usize) -> Result<Tensor> {
    if samples == 1 {
        return Ok(t.clone());
    }
    let t = t.detach().reshape_to(&[samples, t.numel() / samples])?;
    t.sum_mask([0].into(), false, None)?
        .div_scalar(samples as f64)
}

impl Running {
    /// Whether there is a kernel for these.
    fn fits(x: [&Tensor; 4]) -> bool {
        let plain = |t: &Tensor| t.dtype() == DType::F32 && t.is_contiguous();
        x[0].device().is_gpu()
            && x.iter().all(|t| plain(t) && t.device() == x[0].device())
            && !x[0].shares_storage(x[1])
    }
}

impl Derivative for Running {
    fn name(&self) -> &'static str {
        NODE
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(Assertion, "batch_norm: running statistics have no gradient")
    }
}

impl Op for Running {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(x[..2].iter().map(|t| TensorMeta::of(t)).collect())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (m, b) = (self.momentum.0, 1.0 - self.momentum.0);
        let mixed = |old: &Tensor, new: &Tensor| {
            let new = average(new, self.samples)?;
            old.mul_scalar(b)?.add(&new.mul_scalar(m)?)
        };
        y[0].write_from(&mixed(x[0], x[2])?)?;
        y[1].write_from(&mixed(x[1], &x[3].mul_scalar(self.unbiased.0)?)?)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let same = |i: usize| dispatch::overlap(x[i], &y[i]) == Overlap::Same;
        if !same(0) || !same(1) {
            return Ok(false);
        }
        let (old, new) = ([x[0], x[1]], [x[2], x[3]]);
        let factors = [self.momentum.0, self.unbiased.0];
        transfer::ran(super::gpu::running(gpu, factors, self.samples, old, new))
    }
}

/// Arguments of `batch_norm` and `instance_norm`.
pub(super) struct Batch<'a> {
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    mean: Option<&'a Tensor>,
    var: Option<&'a Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
}

impl<'a> Batch<'a> {
    pub(super) fn read<Sig: Signature>(a: &'a Args<Sig>) -> Result<Batch<'a>> {
        Ok(Batch {
            weight: a.opt_tensor(arg!(weight)),
            bias: a.opt_tensor(arg!(bias)),
            mean: a.opt_tensor(arg!(running_mean)),
            var: a.opt_tensor(arg!(running_var)),
            training: a.bool(arg!(training | use_input_stats))?,
            momentum: a.opt_float(arg!(momentum)).unwrap_or(0.0),
            eps: a.float(arg!(eps))?,
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
        crate::ops::constant("batch_norm", "running_mean", self.mean)?;
        crate::ops::constant("batch_norm", "running_var", self.var)?;
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
    pub(super) fn run(&self, x: &Tensor) -> Result<[Tensor; 3]> {
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
            name: NODE,
            over,
            n,
            groups: 1,
            d,
            inner,
            eps: Bitwise(self.eps),
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
        self.keep([&y[1], &y[3]], 1, n * inner, None)?;
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

    /// Updates running statistics with means and variances over `count` elements of each of `samples`. `old` is
    /// the running variance where writing the running mean may change it.
    fn keep(
        &self,
        [mean, var]: [&Tensor; 2],
        samples: usize,
        count: usize,
        old: Option<Tensor>,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        if let (Some(m), Some(v), None) = (self.mean, self.var, &old) {
            if samples <= MAX_SAMPLES && Running::fits([m, v, mean, var]) {
                let op = Running {
                    momentum: Bitwise(self.momentum),
                    unbiased: Bitwise(count as f64 / (count as f64 - 1.0)),
                    samples,
                };
                let both = [m.clone(), v.clone()];
                return dispatch::call_in_place(&op, &[m, v, mean, var], &both);
            }
        }
        if let Some(r) = self.mean {
            let mean = average(mean, samples)?;
            update(r, r, &mean, self.momentum).map_err(|e| apart(e, r, &mean))?;
        }
        if let Some(r) = self.var {
            let unbiased = count as f64 / (count as f64 - 1.0);
            let var = mode::with_grad(false, || average(var, samples)?.mul_scalar(unbiased))?;
            let old = old.as_ref().unwrap_or(r);
            update(r, old, &var, self.momentum).map_err(|e| apart(e, r, &var))?;
        }
        Ok(())
    }

    pub(super) fn run_instances(&self, x: &Tensor) -> Result<Tensor> {
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
        let y = x.group_norm_stats(NODE, c, self.weight, self.bias, self.eps)?;
        if n > 0 && (self.mean.is_some() || self.var.is_some()) {
            let count = x.shape()[2..].iter().product();
            let old = match (self.mean, self.var) {
                (Some(m), Some(v)) if m.shares_storage(v) => Some(v.detach().copy_dense()?),
                _ => None,
            };
            self.keep([&y[1], &y[3]], n, count, old)?;
        }
        Ok(y[0].clone())
    }
}

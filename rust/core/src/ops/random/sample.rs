//! Random numbers whose parameters are tensors: each element has a distribution of its own.

use super::{
    fill, gpu, in_memory_order, memory_order, need_float, reorder, slice, with_sample,
    with_sample_float, Distribution,
};
use crate::arg;
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{
    Derivative, Grads, Keep, Metas, Op, Replay, ReplayArgs, TensorMeta, Tensors, Traits,
};
use crate::ops::index::search::search;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Minimum;
use crate::ops::pointwise::compare::{Eq, Gt, Lt};
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::create::{fresh_like, zero_grads};
use crate::rng::{bad_weights, check_sum, Generator, Sample};
use crate::schema::{Args, Dest, MemoryFormat, Signature, Value};
use crate::shape::{self, DimSet};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;
use std::sync::Arc;

/// Ones with the probabilities of the second input.
#[derive(Clone, PartialEq, Eq, Hash)]
struct BernoulliEach(Arc<Generator>);

impl std::fmt::Debug for BernoulliEach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BernoulliEach")
    }
}

impl Derivative for BernoulliEach {
    fn name(&self) -> &'static str {
        "BernoulliBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut grads = zero_grads(g, 1)?;
        grads.push(grads[0].clone());
        Ok(grads)
    }
}

impl Op for BernoulliEach {
    fn traits(&self) -> Traits {
        Traits {
            draws: true,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let p = x[1];
        let wide = p.prepared(DType::F64)?;
        // SAFETY: prepared contiguous float64 memory, read only.
        let valid = unsafe { wide.slice::<f64>() }
            .iter()
            .all(|v| (0.0..=1.0).contains(v));
        check_probabilities(valid)?;
        let order = memory_order(y[0].layout());
        let p = p.alias(reorder(&p.layout().expand_to(y[0].shape()), &order));
        let p = p.prepared(p.dtype())?;
        in_memory_order(&y[0], |t| {
            if t.dtype() == DType::Bool {
                t.write_scalar(false.into())?;
            }
            with_sample_float!(p.dtype(), P => {
                // SAFETY: prepared contiguous memory, read only.
                let p = unsafe { p.slice::<P>() };
                with_sample!(t.dtype(), T => self.0.bernoulli_each(slice::<T>(t), p));
            });
            Ok(())
        })
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let p = x[1].to_device(gpu.device())?;
        let all = DimSet::all(p.ndim());
        // Of NaN neither holds.
        let fits = p.numel() == 0
            || p.amin_mask(all, false)?.item()?.f64() >= 0.0
                && p.amax_mask(all, false)?.item()?.f64() <= 1.0;
        check_probabilities(fits)?;
        let stream = self.0.philox();
        transfer::ran(super::gpu::bernoulli_each(gpu, stream, &p, &y[0]))
    }
}

fn check_probabilities(valid: bool) -> Result<()> {
    ensure!(
        valid,
        Runtime,
        "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false: all \
         probabilities must be in [0, 1]"
    );
    Ok(())
}

/// A node through which a gradient of zero reaches each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unmoved {
    name: &'static str,
    inputs: usize,
}

impl Derivative for Unmoved {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let zero = zero_grads(g, 1)?.swap_remove(0);
        Ok(SmallVec::from_elem(zero, self.inputs))
    }
}

/// `normal` with a tensor for the mean, the deviation or both.
fn normal<Sig: Signature>(
    a: &Args<Sig>,
    mean: Option<&Tensor>,
    std: Option<&Tensor>,
) -> Result<Value> {
    let scale = if std.is_none() {
        a.float(arg!(std))?
    } else {
        1.0
    };
    ensure!(
        scale >= 0.0,
        Runtime,
        "normal expects std >= 0.0, but found std {scale}"
    );
    let first = mean.or(std).expect("one of them is a tensor");
    let shape = match (mean, std) {
        (Some(m), Some(s)) => shape::broadcast(m.shape(), s.shape())?,
        _ => first.shape().clone(),
    };
    if let Some(s) = std {
        ensure!(
            !s.dtype().is_complex(),
            Runtime,
            "normal expects standard deviation to be non-complex"
        );
    }
    if let Some(s) = std.filter(|s| s.is_readable()) {
        let s = s.to_host()?.prepared(DType::F64)?;
        // SAFETY: prepared contiguous float64 memory, read only.
        let fine = unsafe { s.slice::<f64>() }.iter().all(|v| *v >= 0.0);
        ensure!(fine, Runtime, "normal expects all elements of std >= 0.0");
    }
    let (dtype, device) = (first.dtype(), first.device());
    let many = mean.into_iter().chain(std).find(|t| t.stands());
    let y = match many {
        Some(t) => t.blank(&shape, 0.into(), dtype, device)?,
        None => dispatch::fresh(&shape, dtype, device, false)?,
    };
    fill(
        &y,
        Distribution::Normal(0.0, scale),
        a.generator(arg!(generator), y.device()),
    )?;
    let y = crate::autograd::mode::with_grad(false, || -> Result<Tensor> {
        let y = match std {
            Some(s) => y.mul(s)?,
            None => y,
        };
        match mean {
            Some(m) => y.add(m),
            None => y.add_scalar(a.float(arg!(mean))?),
        }
    })?
    .to_dtype(first.dtype())?;
    let inputs: SmallVec<[&Tensor; 2]> = mean.into_iter().chain(std).collect();
    let op = Unmoved {
        name: "NormalBackward0",
        inputs: inputs.len(),
    };
    dispatch::record(op, &inputs, std::slice::from_ref(&y))?;
    Ok(y.into())
}

fn check_rates(fine: bool) -> Result<()> {
    ensure!(
        fine,
        Runtime,
        "invalid Poisson rate, expected rate to be non-negative"
    );
    Ok(())
}

/// Numbers of events of the rates in the input.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Poisson(Arc<Generator>);

impl std::fmt::Debug for Poisson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Poisson")
    }
}

impl Derivative for Poisson {
    fn name(&self) -> &'static str {
        "PoissonBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        zero_grads(g, 1)
    }
}

impl Op for Poisson {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn traits(&self) -> Traits {
        Traits {
            draws: true,
            ..Traits::NONE
        }
    }
    fn replay(&self) -> Option<&dyn Replay> {
        Some(self)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let zero = Tensor::zeros(&[], x[0].dtype(), x[0].device())?;
        check_rates(!apply(Lt, [x[0], &zero])?.any_true()?)?;
        let key = self.0.philox();
        transfer::ran(gpu::accepted(gpu, key, gpu::POISSON, x, 0.0, &y[0]))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        need_float(x[0].dtype(), "poisson_cpu")?;
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let rate = x[0].prepared(x[0].dtype())?;
        with_sample_float!(rate.dtype(), T => {
            // SAFETY: prepared contiguous memory, read only.
            let rate = unsafe { rate.slice::<T>() };
            check_rates(rate.iter().all(|r| Sample::to_f64(*r) >= 0.0))?;
            self.0.poisson(slice::<T>(&y[0]), rate);
        });
        Ok(())
    }
}

impl Replay for Poisson {
    fn args(&self, _x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self.0.philox().words().into())
    }
}

/// `n` indices for each row of weights, drawn with probabilities in proportion to them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Multinomial {
    n: usize,
    replacement: bool,
    generator: Arc<Generator>,
}

impl std::fmt::Debug for Multinomial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Multinomial({}, {})", self.n, self.replacement)
    }
}

impl Derivative for Multinomial {
    fn name(&self) -> &'static str {
        "MultinomialBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        // Indices carry no gradient.
        Ok(Grads::new())
    }
}

impl Op for Multinomial {
    fn traits(&self) -> Traits {
        Traits {
            draws: true,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        meta.dtype = DType::I64;
        if let Some(last) = meta.shape.last_mut() {
            *last = self.n;
        }
        Ok(SmallVec::from_elem(meta, 1))
    }
    /// On the GPU, where three numbers tell whether the weights are fine.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let w = x[0].to_dtype(x[0].dtype().compute())?;
        let (last, dim) = (w.ndim() - 1, DimSet::last(1, w.ndim())?);
        let least = |t: &Tensor| -> Result<f64> {
            Ok(t.amin_mask(DimSet::all(t.ndim()), false)?.item()?.f64())
        };
        let most = w.amax_mask(DimSet::all(w.ndim()), false)?.item()?.f64();
        let positive = least(&w)? >= 0.0;
        if !(positive && most.is_finite()) {
            return Err(bad_weights(self.replacement && self.n > 1, positive));
        }
        let steps = w.cumsum(last as i64)?;
        let total = steps.narrow(last as i64, w.size(last) as i64 - 1, 1)?;
        check_sum(least(&total)? > 0.0)?;
        let zero = Tensor::zeros(&[], w.dtype(), w.device())?;
        let live = apply(Gt, [&w, &zero])?;
        if !self.replacement || self.n == 1 {
            // A race of exponential clocks: the largest weight / clock wins.
            let clock = Tensor::empty(w.shape(), w.dtype(), w.device())?;
            fill(
                &clock,
                Distribution::Exponential(1.0),
                self.generator.clone(),
            )?;
            let out = Tensor::full(&[], Scalar::Float(-1.0), w.dtype(), w.device())?;
            let race = where_(&live, &w.div(&clock)?, &out)?;
            let first = race.topk(self.n as i64, last as i64, true)?.1;
            return Ok(Some(Tensors::from_iter([first])));
        }
        let mut shape = w.shape().clone();
        shape[last] = self.n;
        let draws = Tensor::empty(&shape, w.dtype(), w.device())?;
        fill(
            &draws,
            Distribution::Uniform(0.0, 1.0),
            self.generator.clone(),
        )?;
        // Above what it was drawn from, so that no category without weight is met.
        let at = search(&steps, &draws.mul(&total)?, true, DType::I64)?;
        // Nor may rounding let it fall behind the last that has one.
        let full = apply(Eq, [&steps, &total])?;
        let behind = full.sum_mask(dim, true, Some(DType::I64))?;
        let most = Tensor::full(&[], (w.size(last) as i64).into(), DType::I64, w.device())?;
        let top = most.sub(&behind)?;
        Ok(Some(Tensors::from_iter([apply(Minimum, [&at, &top])?])))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let weights = x[0].prepared(x[0].dtype())?;
        let categories = weights.size(weights.ndim() - 1).max(1);
        with_sample_float!(weights.dtype(), T => {
            // SAFETY: prepared contiguous memory, read only.
            let weights = unsafe { weights.slice::<T>() };
            let out = slice::<i64>(&y[0]);
            for (row, out) in weights.chunks(categories).zip(out.chunks_mut(self.n)) {
                self.generator.multinomial(row, out, self.replacement)?;
            }
        });
        Ok(())
    }
}

fn poisson<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    Ok(dispatch::call1(Poisson(a.generator(arg!(generator), x.device())), &[x])?.into())
}

fn multinomial<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, n) = (a.tensor(arg!(self))?, a.int(arg!(num_samples))?);
    let replacement = a.bool(arg!(replacement))?;
    ensure!(
        x.ndim() == 1 || x.ndim() == 2,
        Runtime,
        "prob_dist must be 1 or 2 dim"
    );
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "multinomial only supports floating-point dtypes for input, got: {}",
        x.dtype().scalar_name()
    );
    ensure!(n > 0, Runtime, "cannot sample n_sample <= 0 samples");
    let categories = x.size(x.ndim() - 1);
    ensure!(
        replacement || n as u64 <= categories as u64,
        Runtime,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    );
    ensure!(
        categories <= 1 << 24,
        Runtime,
        "number of categories cannot exceed 2^24"
    );
    let rows = if x.ndim() == 2 { x.size(0) } else { 1 };
    ensure!(
        categories > 0 || rows == 0,
        Runtime,
        "invalid multinomial distribution (with replacement={replacement}, no categories)"
    );
    let op = Multinomial {
        n: n as usize,
        replacement,
        generator: a.generator(arg!(generator), x.device()),
    };
    let y = dispatch::call1(op, &[&x.detach()])?;
    let Dest::Out(out) = a.dest else {
        return Ok(y.into());
    };
    ensure!(
        out[0].dtype() == DType::I64,
        Runtime,
        "multinomial expects Long tensor out, got: {}",
        out[0].dtype().scalar_name()
    );
    Ok(dispatch::deliver(&y, &out[0])?.into())
}

/// A new tensor in the place of `self` whose elements are drawn with its probabilities.
fn bernoulli(x: &Tensor, p: &Tensor, generator: Arc<Generator>) -> Result<Tensor> {
    need_float(p.dtype(), "bernoulli_tensor_cpu_p_")?;
    let y = fresh_like(x, x.dtype(), x.device(), MemoryFormat::Contiguous)?;
    let op = BernoulliEach(generator);
    dispatch::compute_into(&op, &[&y, p], std::slice::from_ref(&y))?;
    let op = Unmoved {
        name: "BernoulliBackward0",
        inputs: 1,
    };
    dispatch::record(op, &[x], std::slice::from_ref(&y))?;
    Ok(y)
}

crate::entries! {
    /// Normal numbers of the means and deviations given.
    "normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", FN | CASTS,
    |a| normal(a, Some(a.tensor(arg!(mean))?), Some(a.tensor(arg!(std))?));
    "normal(Tensor mean, float std=1.0, *, Generator? generator=None) -> Tensor", FN | CASTS,
    |a| normal(a, Some(a.tensor(arg!(mean))?), None);
    "normal(float mean, Tensor std, *, Generator? generator=None) -> Tensor", FN | CASTS,
    |a| normal(a, None, Some(a.tensor(arg!(std))?));
    /// Ones with the probabilities in `self`, else zeros.
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let x = a.tensor(arg!(self))?;
        let y = bernoulli(x, x, a.generator(arg!(generator), x.device()))?;
        let Dest::Out(out) = a.dest else {
            return Ok(y.into());
        };
        // Ones and zeros fit into any type.
        out[0].check_inplace(false)?;
        let y = y.detach().to_dtype(out[0].dtype())?;
        Ok(dispatch::deliver(&y, &out[0])?.into())
    };
    /// Ones with probability `p`, shaped and typed as `self`.
    "bernoulli(Tensor self, float p, *, Generator? generator=None) -> Tensor", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let y = fresh_like(x, x.dtype(), x.device(), MemoryFormat::Contiguous)?;
        fill(&y, Distribution::Bernoulli(a.float(arg!(p))?), a.generator(arg!(generator), x.device()))?;
        let op = Unmoved { name: "BernoulliBackward0", inputs: 1 };
        dispatch::record(op, &[x], std::slice::from_ref(&y))?;
        Ok(y.into())
    };
    /// Ones with probability `p`, else zeros.
    "bernoulli_(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let (x, p) = (a.tensor(arg!(self))?, a.tensor(arg!(p))?);
        need_float(p.dtype(), "bernoulli_tensor_cpu_p_")?;
        ensure!(
            shape::expandable(p.shape(), x.shape()),
            Runtime,
            "bernoulli_: probabilities of shape {} do not broadcast to {}",
            shape::Show(p.shape()),
            shape::Show(x.shape())
        );
        dispatch::call_into(BernoulliEach(a.generator(arg!(generator), x.device())), &[x, p], x, true)?;
        Ok(x.clone().into())
    };
    /// Draws indices with probabilities in proportion to each row.
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", FN | METHOD | OUT | DIRECT,
    multinomial;
    /// Numbers of events of the rates in `self`.
    "poisson(Tensor self, Generator? generator=None) -> Tensor", FN,
    poisson;
}

//! Gamma, Dirichlet and binomial numbers, and the gradients of the first two.

use super::{digits, gpu, implicit, need_float, slice, with_sample_float};
use crate::arg;
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{
    function_name, one, Derivative, Grads, Metas, Op, Replay, ReplayArgs, Save, TensorMeta, Traits,
};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::{Maximum, Minimum};
use crate::rng::{Generator, Sample};
use crate::schema::{Args, Signature, Value};
use crate::tensor::Tensor;
use crate::transfer::ran;
use crate::{bail, ensure, shape};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Family {
    /// Of the shapes in the input.
    Gamma,
    /// Rows of the weights in the input.
    Dirichlet,
    /// Of the counts and probabilities in the inputs.
    Binomial,
}

/// Numbers whose samplers draw until one is accepted.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Draws {
    family: Family,
    generator: Arc<Generator>,
}

impl std::fmt::Debug for Draws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Draws({:?})", self.family)
    }
}

/// The least number of a type that is not denormal, and the largest below 1.
fn bounds(dtype: DType) -> [f64; 2] {
    let least = match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => half::f16::MIN_POSITIVE.to_f64(),
        _ => f32::MIN_POSITIVE as f64,
    };
    [least, 1.0 - 0.5f64.powi(digits(dtype) as i32)]
}

impl Derivative for Draws {
    fn name(&self) -> &'static str {
        match self.family {
            Family::Gamma => "StandardGammaBackward0",
            Family::Dirichlet => "SampleDirichletBackward0",
            Family::Binomial => "BinomialBackward0",
        }
    }
    fn save(&self, _needs: u64) -> Save {
        match self.family {
            Family::Binomial => Save::NONE,
            _ => Save::inputs([0]).and_outputs([0]),
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        ensure!(
            self.family != Family::Binomial,
            NotImplemented,
            "derivative for aten::binomial is not implemented"
        );
        let Some(g) = &g[0] else {
            return Ok(SmallVec::from_elem(None, 1));
        };
        let (a, y) = (cx.input(0)?, cx.output(0)?);
        if self.family == Family::Gamma {
            return one(g.mul(&dispatch::call1(Slope::Gamma, &[&a, &y])?)?);
        }
        // What one number gains the others lose, in proportion.
        let total = a.sum_dim(-1, true)?;
        let slope = dispatch::call1(Slope::Dirichlet, &[&y, &a, &total])?;
        let shared = y.mul(g)?.sum_dim(-1, true)?;
        one(slope.mul(&g.sub(&shared)?)?)
    }
}

impl Op for Draws {
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
        let (key, [least, most]) = (self.generator.philox(), bounds(y[0].dtype()));
        let draw = |call, y: &Tensor| ran(gpu::accepted(gpu, key, call, x, least, y));
        match self.family {
            Family::Gamma => draw(gpu::GAMMA, &y[0]),
            Family::Binomial => draw(gpu::BINOMIAL, &y[0]),
            Family::Dirichlet => {
                // By logarithms: the numbers of small weights are all but zero.
                let dtype = y[0].dtype().compute();
                let logs = Tensor::empty(y[0].shape(), dtype, y[0].device())?;
                if !draw(gpu::LOG_GAMMA, &logs)? {
                    return Ok(false);
                }
                let number = |v: f64| Tensor::full(&[], v.into(), dtype, logs.device());
                let rows = apply(Maximum, [&logs.softmax(-1)?, &number(least)?])?;
                y[0].write_from(&apply(Minimum, [&rows, &number(most)?])?)?;
                Ok(true)
            }
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        match self.family {
            Family::Gamma => need_float(x[0].dtype(), "gamma_cpu")?,
            Family::Dirichlet => need_float(x[0].dtype(), "dirichlet")?,
            Family::Binomial => {
                for (x, name) in x.iter().zip(["count", "prob"]) {
                    ensure!(
                        x.dtype().is_float(),
                        Value,
                        "binomial only supports floating-point dtypes for {name}, got: {}",
                        x.dtype().scalar_name()
                    );
                }
                need_one_type(x)?;
                meta.shape = shape::broadcast(x[0].shape(), x[1].shape())?;
            }
        }
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, g) = (spread(x, &y[0])?, &self.generator);
        let dtype = y[0].dtype();
        let [least, most] = bounds(dtype);
        with_sample_float!(dtype, T => {
            // SAFETY: contiguous host memory of this type, read only.
            let read = |i: usize| unsafe { x[i].slice::<T>() };
            let out = slice::<T>(&y[0]);
            match self.family {
                Family::Gamma => g.gamma(out, read(0), least),
                Family::Dirichlet => {
                    let n = y[0].shape().last().map_or(1, |&n| n);
                    g.dirichlet(out, read(0), n, [least, most])
                }
                Family::Binomial => g.binomial(out, read(0), read(1)),
            }
        });
        Ok(())
    }
}

impl Replay for Draws {
    fn args(&self, _x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self.generator.philox().words().into())
    }
}

/// How numbers move with their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slope {
    /// Of shapes and numbers.
    Gamma,
    /// Of numbers, their weights and the sums of all weights of a row.
    Dirichlet,
}

impl Derivative for Slope {
    fn name(&self) -> &'static str {
        match self {
            Slope::Gamma => "StandardGammaGradBackward0",
            Slope::Dirichlet => "DirichletGradBackward0",
        }
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for '_{}' is not implemented.",
            function_name(self.name())
        )
    }
}

impl Op for Slope {
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let call = match self {
            Slope::Gamma => "slope_gamma(a, b)",
            Slope::Dirichlet => "slope_dirichlet(a, b, c)",
        };
        ran(gpu::slope(gpu, call, x, &y[0]))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let name = match self {
            Slope::Gamma => "_standard_gamma_grad_cpu",
            Slope::Dirichlet => "_dirichlet_grad_cpu",
        };
        need_float(x[0].dtype(), name)?;
        need_one_type(x)?;
        let mut meta = TensorMeta::of(x[0]);
        for other in &x[1..] {
            meta.shape = shape::broadcast(&meta.shape, other.shape())?;
        }
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let x = spread(x, &y[0])?;
        with_sample_float!(y[0].dtype(), T => {
            // SAFETY: contiguous host memory of this type, read only.
            let read = |i: usize| unsafe { x[i].slice::<T>() };
            let (a, b) = (read(0), read(1));
            for (i, y) in slice::<T>(&y[0]).iter_mut().enumerate() {
                let (a, b) = (Sample::to_f64(a[i]), Sample::to_f64(b[i]));
                *y = T::from_f64(match self {
                    Slope::Gamma => implicit::gamma(a, b),
                    Slope::Dirichlet => implicit::dirichlet(a, b, Sample::to_f64(read(2)[i])),
                });
            }
        });
        Ok(())
    }
}

fn need_one_type(x: &[&Meta]) -> Result<()> {
    for other in &x[1..] {
        ensure!(
            other.dtype() == x[0].dtype(),
            Runtime,
            "Found dtype {} but expected {} (all arguments must have one type)",
            other.dtype().scalar_name(),
            x[0].dtype().scalar_name()
        );
    }
    Ok(())
}

/// The inputs in contiguous memory, broadcast to the shape of `y`.
fn spread(x: &[&Tensor], y: &Tensor) -> Result<SmallVec<[Tensor; 3]>> {
    x.iter()
        .map(|t| t.alias(t.layout().expand_to(y.shape())).prepared(t.dtype()))
        .collect()
}

/// Draws for the parameters `x`; the generator is the argument behind them.
fn draw<Sig: Signature, const N: usize>(
    a: &Args<Sig>,
    family: Family,
    x: [&Tensor; N],
) -> Result<Value> {
    let generator = a.generator(arg!(generator), x[0].device());
    Ok(dispatch::call1(Draws { family, generator }, &x)?.into())
}

crate::entries! {
    /// Numbers of the gamma distributions of these shapes and scale 1.
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", FN,
    |a| draw(a, Family::Gamma, [a.tensor(arg!(self))?]);
    /// How gamma numbers move with their shapes.
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", FN,
    |a| Ok(dispatch::call1(Slope::Gamma, &[a.tensor(arg!(self))?, a.tensor(arg!(output))?])?.into());
    /// Rows of the Dirichlet distributions of these weights.
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", FN,
    |a| draw(a, Family::Dirichlet, [a.tensor(arg!(self))?]);
    /// How numbers of a Dirichlet row move with their weights, over 1 less the number.
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", FN,
    |a| {
        let x = [a.tensor(arg!(x))?, a.tensor(arg!(alpha))?, a.tensor(arg!(total))?];
        Ok(dispatch::call1(Slope::Dirichlet, &x)?.into())
    };
    /// Numbers of successes in `count` trials of probability `prob`.
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", FN,
    |a| draw(a, Family::Binomial, [a.tensor(arg!(count))?, a.tensor(arg!(prob))?]);
}

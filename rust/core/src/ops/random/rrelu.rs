//! A leaky rectifier with random slopes.

use super::{fill, Distribution};
use crate::arg;
use crate::autograd::mode;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::ops::pointwise::activation::{in_rows, LeakyRelu};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Mul;
use crate::ops::pointwise::compare::Le;
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::create::fresh_like;
use crate::rng::Generator;
use crate::schema::{Args, MemoryFormat, Signature, Value};
use crate::tensor::Tensor;
use std::sync::Arc;

/// Leaky with a random slope for each element below zero while training. Xu et al. 2015,
/// arXiv:1505.00853.
fn rrelu<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let (low, high) = (a.float(arg!(lower))?, a.float(arg!(upper))?);
    ensure!(
        low <= high,
        Runtime,
        "Lower bound should be less than or equal to the upper bound"
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"rrelu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    if !a.bool(arg!(training))? {
        let slope = (low + high) / 2.0;
        return Ok(apply(LeakyRelu { slope }, [x])?.into());
    }
    let wide = match x.dtype().is_half() {
        true => DType::F32,
        false => x.dtype(),
    };
    // Slices have no elements to look at, or numbers of their own.
    let memory = match mode::interpreted() {
        true => Some(fresh_like(x, wide, x.device(), MemoryFormat::Preserve)?),
        false => None,
    };
    let slopes = match memory.filter(Tensor::stands) {
        Some(y) => {
            fill(
                &y,
                Distribution::Uniform(low, high),
                a.generator(arg!(generator), x.device()),
            )?;
            let below = apply(Le, [&x.detach(), &Tensor::number(Scalar::Float(0.0))?])?;
            where_(&below, &y, &Tensor::number(Scalar::Float(1.0))?)?
        }
        // One number for each element that needs one, as PyTorch draws them.
        None if x.has_data() => {
            drawn_slopes(x, low, high, a.generator(arg!(generator), x.device()))?
        }
        None => Tensor::empty(x.shape(), DType::F64, x.device())?,
    };
    let slopes = slopes.to_dtype(wide)?;
    let y = apply(Mul, [x, &slopes.to_device(x.device())?])?;
    Ok(y.to_dtype(x.dtype())?.into())
}

/// A slope for each element: a random number for those that need one, 1 for others.
fn drawn_slopes(x: &Tensor, low: f64, high: f64, generator: Arc<Generator>) -> Result<Tensor> {
    let host = x.detach().to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type, not written meanwhile.
    let values = unsafe { host.slice::<f64>() };
    let mut drawn = vec![0f64; values.iter().filter(|&&v| v <= 0.0).count()];
    generator.uniform(&mut drawn, low, high);
    let mut drawn = drawn.into_iter();
    let slope = |&v: &f64| {
        if v <= 0.0 {
            drawn.next().unwrap_or(1.0)
        } else {
            1.0
        }
    };
    let slopes: Vec<f64> = values.iter().map(slope).collect();
    Tensor::from_slice(&slopes, x.shape(), DType::F64)
}

crate::entries! {
    /// Leaky with slopes drawn from [lower, upper] while training, their middle otherwise.
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    FN | INPLACE, |a| in_rows(a, rrelu(a)?);
}

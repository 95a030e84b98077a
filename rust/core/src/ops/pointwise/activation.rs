//! Activation functions.

use super::pointwise;
use super::ternary::ClampTensor;
use super::types::no_bool;
use super::unary::Abs;
use super::{apply, c, k, Cpu, Own};
use crate::arg;
use crate::cpu::pointwise::Kernel;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::Repeats;
use crate::schema::{Args, Dest, MemoryFormat, Signature, Value};
use crate::shape;
use crate::tensor::Tensor;
use crate::{bail, ensure};

const PI: f64 = std::f64::consts::PI;
/// Klambauer et al. 2017, arXiv:1706.02515.
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// log(1 + e^x) without overflow.
#[inline(always)]
fn softplus<R: super::Real>(x: R) -> R {
    x.max(c(0.0)) + (-x.abs()).exp().log1p()
}

/// Raises where what is below zero rises above it: in place, the side would be lost.
fn invertible(name: &str, slope: f64) -> Result<()> {
    ensure!(
        slope >= 0.0,
        Runtime,
        "In-place {name} backward calculation is triggered with a negative slope which is not \
         supported. This is caused by calling in-place forward function with a negative slope, \
         please call out-of-place version instead."
    );
    Ok(())
}

pointwise! {
    /// x * sigmoid(x). Elfwing et al. 2017, arXiv:1702.03118.
    op Silu[1] = "SiluBackward0", FloatOnly;
    f |_, [x]| x * x.sigmoid();
    df |_, [x], _, g| {
        let s = x.sigmoid();
        g * (s * (c::<R>(1.0) + x * (c::<R>(1.0) - s)))
    };
    complex Forward;
    cpu impl;

    /// max(x, 0); NaN stays.
    op Relu[1] = "ReluBackward0", Same;
    f |_, [x]| R::select(x.lt(c(0.0)), c(0.0), x);
    int |_, [x]| x.max(0);
    df |_, _, y, g| R::select(y.le(c(0.0)), c(0.0), g);
    check |_, t, _| if t == DType::Bool {
        bail!(Runtime, "Boolean inputs not supported for relu")
    } else {
        Ok(())
    };
    steps |_| true;
    facts { half_loops: true };

    /// x tanh(log(1 + e^x)). Misra 2019, arXiv:1908.08681.
    op Mish[1] = "MishBackward0", FloatOnly;
    f |_, [x]| x * softplus(x).tanh();
    df |_, [x], _, g| {
        let t = softplus(x).tanh();
        g * (t + x * x.sigmoid() * (c::<R>(1.0) - t * t))
    };

    /// x times the area under the standard normal density left of x. Hendrycks and Gimpel 2016,
    /// arXiv:1606.08415.
    op Gelu[1] = "GeluBackward0", FloatOnly;
    f |_, [x]| c::<R>(0.5) * x * (c::<R>(1.0) + (x * c(0.5f64.sqrt())).erf());
    df |_, [x], _, g| super::cpu::gelu::gradient(x, g);
    cpu impl;

    /// The same with a tanh for the area.
    op GeluTanh[1] = "GeluBackward0", FloatOnly;
    f |_, [x]| {
        let z = c::<R>((2.0 / PI).sqrt()) * (x + c::<R>(0.044715) * (x * x * x));
        c::<R>(0.5) * x * (c::<R>(1.0) + z.tanh())
    };
    df |_, [x], _, g| {
        let s = c::<R>((2.0 / PI).sqrt());
        let t = (s * (x + c::<R>(0.044715) * (x * x * x))).tanh();
        let slope = s * (c::<R>(1.0) + c::<R>(3.0 * 0.044715) * (x * x));
        g * (c::<R>(0.5) * (c::<R>(1.0) + t)
            + c::<R>(0.5) * x * (c::<R>(1.0) - t * t) * slope)
    };

    /// scale x above zero, scale alpha (e^(input_scale x) - 1) below.
    op Elu { alpha: f64, scale: f64, input_scale: f64 }[1] = "EluBackward0", FloatOnly;
    f |p, [x]| R::select(
        x.le(c(0.0)),
        k::<R>(p.alpha * p.scale) * (x * k(p.input_scale)).expm1(),
        x * k(p.scale));
    df |p, [x], _, g| R::select(
        x.gt(c(0.0)),
        g * k(p.scale),
        g * (k::<R>(p.alpha * p.scale * p.input_scale) * (x * k(p.input_scale)).exp()));
    overwritten |p| invertible("elu", p.alpha * p.scale);

    /// max(x, 0) + min(0, alpha (e^(x / alpha) - 1)). Barron 2017, arXiv:1704.07483.
    op Celu { alpha: f64 }[1] = "CeluBackward0", FloatOnly;
    f |p, [x]| R::select(x.le(c(0.0)), k::<R>(p.alpha) * (x * k(1.0 / p.alpha)).expm1(), x);
    df |p, [x], _, g| R::select(
        x.gt(c(0.0)), g, g * (x * k(1.0 / p.alpha)).exp());
    overwritten |p| invertible("elu", p.alpha);

    /// x within [low, high]; the gradient at the ends is 0.
    op Hardtanh { low: Scalar, high: Scalar }[1] = "HardtanhBackward0", Same;
    f |p, [x]| {
        let (low, high) = (k(p.low.f64()), k(p.high.f64()));
        R::select(x.lt(low), low, R::select(x.gt(high), high, x))
    };
    int |p, [x]| x.max(p.low.i64()).min(p.high.i64());
    df |p, [x], _, g| R::select(
        R::either(x.le(k(p.low.f64())), x.ge(k(p.high.f64()))), c(0.0), g);
    check |p, t, _| {
        ensure!(t != DType::Bool, Runtime, "Bool inputs not supported for hardtanh");
        ensure!(
            t != DType::U8 || (p.low.f64() >= 0.0 && p.high.f64() >= 0.0),
            Runtime,
            "cannot do hardtanh on an unsigned type with negative limits"
        );
        Ok(())
    };
    steps |_| true;
    facts { half_loops: true };

    /// x / 6 + 1 / 2 within [0, 1].
    op Hardsigmoid[1] = "HardsigmoidBackward0", FloatOnly;
    f |_, [x]| (x + c(3.0)).max(c(0.0)).min(c(6.0)) / c(6.0);
    df |_, [x], _, g| R::select(
        R::both(x.gt(c(-3.0)), x.lt(c(3.0))), g * c(1.0 / 6.0), c(0.0));
    steps |_| true;
    facts { half_loops: true };

    /// x hardsigmoid(x). Howard et al. 2019, arXiv:1905.02244.
    op Hardswish[1] = "HardswishBackward0", FloatOnly;
    f |_, [x]| x * (x + c(3.0)).max(c(0.0)).min(c(6.0)) / c(6.0);
    df |_, [x], _, g| {
        let middle = R::select(x.ge(c(3.0)), g, g * (x / c(3.0) + c(0.5)));
        R::select(x.le(c(-3.0)), c(0.0), middle)
    };
    facts { half_loops: true };

    /// x outside [-lambda, lambda], 0 within.
    op Hardshrink { lambda: f64 }[1] = "HardshrinkBackward0", FloatOnly;
    f |p, [x]| R::select(R::both(x.ge(k(-p.lambda)), x.le(k(p.lambda))), c(0.0), x);
    df |p, [x], _, g|
        R::select(R::both(x.ge(k(-p.lambda)), x.le(k(p.lambda))), c(0.0), g);
    steps |_| true;
    facts { half_loops: true };

    /// x moved by lambda toward 0, and 0 within lambda of it.
    op Softshrink { lambda: f64 }[1] = "SoftshrinkBackward0", FloatOnly;
    f |p, [x]| R::select(
        x.gt(k(p.lambda)), x - k(p.lambda),
        R::select(x.lt(k(-p.lambda)), x + k(p.lambda),
            // Not a product with 0, which shader compilers make 0 for NaN and numbers below 0.
            R::select(x.is_nan(), x, c::<R>(0.0).copysign(x))));
    df |p, [x], _, g|
        R::select(R::both(x.ge(k(-p.lambda)), x.le(k(p.lambda))), c(0.0), g);
    steps |_| true;
    facts { half_loops: true };

    /// log(1 + e^(beta x)) / beta; x where beta x is above the threshold.
    op Softplus { beta: f64, threshold: f64 }[1] = "SoftplusBackward0", FloatOnly;
    f |p, [x]| {
        let z = x * k(p.beta);
        R::select(z.gt(k(p.threshold)), x, softplus(z) / k(p.beta))
    };
    df |p, [x], _, g| {
        let z = x * k(p.beta);
        R::select(z.gt(k(p.threshold)), g, g * z.sigmoid())
    };

    /// x above zero, slope x below.
    op LeakyRelu { slope: f64 }[1] = "LeakyReluBackward0", FloatOnly;
    f |p, [x]| R::select(x.gt(c(0.0)), x, x * k(p.slope));
    df |p, [x], _, g| R::select(x.gt(c(0.0)), g, g * k(p.slope));
    overwritten |p| invertible("leaky_relu", p.slope);
    steps |_| true;
    facts { half_loops: true };

    /// x sigmoid(y).
    op Glu[2] = "GluBackward0", FloatOnly;
    f |_, [x, y]| x * y.sigmoid();
    df |_, [x, y], _, g| g * y.sigmoid(), {
        let s = y.sigmoid();
        g * (x * (s * (c::<R>(1.0) - s)))
    };

    /// x above zero, x y below.
    op Prelu[2] = "PreluKernelBackward0", FloatOnly;
    f |_, [x, y]| R::select(x.gt(c(0.0)), x, x * y);
    df |_, [x, y], _, g|
        R::select(x.gt(c(0.0)), g, g * y),
        R::select(x.gt(c(0.0)), c(0.0), g * x);
    steps |_| true;
    facts { half_loops: true };

    /// x above the threshold, the value elsewhere.
    op Threshold { threshold: Scalar, value: Scalar }[1] = "ThresholdBackward0", Same;
    f |p, [x]| R::select(x.le(k(p.threshold.f64())), k(p.value.f64()), x);
    int |p, [x]| if x <= p.threshold.i64() { p.value.i64() } else { x };
    df |p, [x], _, g| R::select(x.le(k(p.threshold.f64())), c(0.0), g);
    check |p, t, _| {
        no_bool("threshold", t)?;
        if t.is_complex() {
            return Ok(());
        }
        // What is compared only may be as large as the type that computes.
        let wide = if t.is_half() { DType::F32 } else { t };
        crate::dtype::check_range(p.threshold, wide)?;
        crate::dtype::check_range(p.value, t)
    };
    steps |_| true;
    facts { half_loops: true, repeats: Repeats::Changes };

    /// x / (1 + |x|). Turian et al. 2009, "Quadratic features and deep architectures for chunking".
    op Softsign[1] = "DivBackward0", FloatOnly;
    f |_, [x]| x / (x.abs() + c(1.0));
    df |_, [x], _, g| {
        let d = x.abs() + c(1.0);
        g / d / d
    };

    /// log(sigmoid(x)).
    op LogSigmoid[1] = "LogSigmoidBackward0", FloatOnly;
    f |_, [x]| x.min(c(0.0)) - (-x.abs()).exp().log1p();
    df |_, [x], _, g| g * (-x).sigmoid();
}

impl Cpu<1> for Silu {
    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::exp::own::<super::cpu::exp::Silu>(which)
    }

    #[inline(always)]
    fn own64(which: Own) -> Option<Kernel<f64>> {
        super::cpu::exp::own64::<super::cpu::exp::Silu>(which)
    }
}

impl Cpu<1> for Gelu {
    const HALF: bool = true;
    #[inline(always)]
    fn half(&self, [x]: [f32; 1]) -> f32 {
        super::cpu::gelu::half(x)
    }

    #[inline(always)]
    fn own(which: Own) -> Option<Kernel<f32>> {
        super::cpu::gelu::own(which)
    }

    fn own_bits(&self, t: DType) -> Option<Kernel<u16>> {
        super::cpu::gelu::own_bits(t)
    }
}

fn gelu<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = [a.tensor(arg!(self))?];
    match a.str(arg!(approximate))? {
        "none" => a.apply(Gelu, x),
        "tanh" => a.apply(GeluTanh, x),
        _ => bail!(Runtime, "approximate argument must be either none or tanh."),
    }
}

fn softshrink<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, lambda) = (a.tensor(arg!(self))?, a.float(arg!(lambd))?);
    // The largest finite numbers, to six digits.
    let (most, told) = match x.dtype() {
        DType::F64 => (f64::MAX, "1.79769e+308"),
        DType::F16 => (65504.0, "65504"),
        DType::BF16 => (f64::from(half::bf16::MAX), "3.38953e+38"),
        _ => (f64::from(f32::MAX), "3.40282e+38"),
    };
    ensure!(
        (0.0..=most).contains(&lambda),
        Runtime,
        "lambda must be in range [0, {told}] for input dtype {}, but found {lambda}",
        x.dtype().scalar_name()
    );
    a.apply(Softshrink { lambda }, [x])
}

fn celu<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let alpha = a.float(arg!(alpha))?;
    ensure!(
        alpha != 0.0,
        Runtime,
        "ZeroDivisionError: alpha cannot be 0 for CELU"
    );
    a.apply(Celu { alpha }, [a.tensor(arg!(self))?])
}

fn prelu<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, w) = (a.tensor(arg!(self))?, a.tensor(arg!(weight))?);
    ensure!(
        x.dtype() == w.dtype(),
        Runtime,
        "prelu: Type promoting not supported. Got {} and {}",
        x.dtype().scalar_name(),
        w.dtype().scalar_name()
    );
    ensure!(
        w.ndim() <= 1,
        Runtime,
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
        w.ndim()
    );
    if w.numel() == 1 {
        let w = if x.ndim() == 0 {
            w.reshape(&[])?
        } else {
            w.clone()
        };
        return Ok(apply(Prelu, [x, &w])?.into());
    }
    ensure!(x.ndim() > 0, Runtime, "Not allow zero-dim input tensor.");
    let channels = if x.ndim() > 1 { x.size(1) } else { 1 };
    ensure!(
        channels == w.numel(),
        Runtime,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and \
         channel size = {channels}.",
        w.numel()
    );
    let mut shape = vec![1i64; x.ndim()];
    shape[1] = channels as i64;
    Ok(apply(Prelu, [x, &w.reshape(&shape)?])?.into())
}

fn glu<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        x.ndim() > 0,
        Runtime,
        "glu does not support 0-dimensional tensors because halving size must be even"
    );
    let d = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    let n = x.size(d);
    ensure!(
        n % 2 == 0,
        Runtime,
        "Halving dimension must be even, but dimension {d} is size {n}"
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"glu_cpu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    // One node for both halves, whose gradients it puts together at once.
    let halves = x.split((n / 2) as i64, d as i64)?;
    match &halves[..] {
        [left, right] => Ok(apply(Glu, [left, right])?.into()),
        _ => Ok(x.copy_dense()?.into()),
    }
}

/// PyTorch has no such operator. Integers overflow where its do, and the modulus of a complex number is not
/// analytic: they take three kernels.
fn softsign<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    match x.dtype() {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 if !dispatch::by_name(&[x]) => {
            a.apply(Softsign, [x])
        }
        _ => Ok(x.div(&apply(Abs, [x])?.add_scalar(1i64)?)?.into()),
    }
}

/// A new result row by row, in whatever order the input lies, as PyTorch's.
pub(crate) fn in_rows(a: &Args, y: Value) -> Result<Value> {
    match (a.dest, y) {
        (Dest::New, Value::Tensor(t)) => Ok(t.in_format(MemoryFormat::Contiguous)?.into()),
        (_, y) => Ok(y),
    }
}

fn hardtanh<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (low, high) = (a.scalar(arg!(min_val))?, a.scalar(arg!(max_val))?);
    if let Some(nan) = [low, high].into_iter().find(|s| s.f64().is_nan()) {
        let nan = Tensor::number(nan)?;
        return a.apply(ClampTensor, [a.tensor(arg!(self))?, &nan, &nan]);
    }
    a.apply(Hardtanh { low, high }, [a.tensor(arg!(self))?])
}

fn threshold<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    a.apply(
        Threshold {
            threshold: a.scalar(arg!(threshold))?,
            value: a.scalar(arg!(value))?,
        },
        [a.tensor(arg!(self))?],
    )
}

/// Activations of `_C._nn` have all forms but methods.
const ACT: u32 = {
    use crate::schema::flag::*;
    NN | INPLACE | OUT | DIRECT
};

crate::entries! {
    /// max(x, 0), elementwise.
    "relu(Tensor self) -> Tensor", PW, |a| a.apply(Relu, [a.tensor(arg!(self))?]);
    /// min(max(x, 0), 6), elementwise.
    "relu6(Tensor self) -> Tensor", ACT,
    |a| a.apply(Hardtanh { low: Scalar::Int(0), high: Scalar::Int(6) }, [a.tensor(arg!(self))?]);
    /// x * sigmoid(x), elementwise.
    "silu(Tensor self) -> Tensor", ACT, |a| a.apply(Silu, [a.tensor(arg!(self))?]);
    /// x * tanh(log(1 + e^x)), elementwise.
    "mish(Tensor self) -> Tensor", ACT, |a| a.apply(Mish, [a.tensor(arg!(self))?]);
    /// x times the standard normal distribution function of x, exactly or by tanh.
    "gelu(Tensor self, *, str approximate='none') -> Tensor", ACT, gelu;
    /// scale * x above 0, scale * alpha * (e^(input_scale * x) - 1) below.
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", ACT,
    |a| a.apply(
        Elu { alpha: a.float(arg!(alpha))?, scale: a.float(arg!(scale))?, input_scale: a.float(arg!(input_scale))? },
        [a.tensor(arg!(self))?]);
    /// max(x, 0) + min(0, alpha * (e^(x / alpha) - 1)), elementwise.
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor", FN | INPLACE | DIRECT, celu;
    /// The self-normalising exponential unit.
    "selu(Tensor self) -> Tensor", FN | INPLACE | DIRECT,
    |a| a.apply(
        Elu { alpha: SELU_ALPHA, scale: SELU_SCALE, input_scale: 1.0 }, [a.tensor(arg!(self))?]);
    /// x within [min_val, max_val].
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", ACT, hardtanh;
    /// x / 6 + 1 / 2 within [0, 1].
    "hardsigmoid(Tensor self) -> Tensor", ACT, |a| a.apply(Hardsigmoid, [a.tensor(arg!(self))?]);
    /// x * hardsigmoid(x).
    "hardswish(Tensor self) -> Tensor", ACT, |a| a.apply(Hardswish, [a.tensor(arg!(self))?]);
    /// x outside [-lambd, lambd], 0 within.
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let x = a.tensor(arg!(self))?;
        // Elements are compared with the number that their type has for lambd.
        a.apply(Hardshrink { lambda: x.dtype().nearest(a.float(arg!(lambd))?) }, [x])
    };
    /// x moved by lambd toward 0, and 0 within lambd of it.
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", NN | OUT | DIRECT, softshrink;
    /// log(1 + e^(beta * x)) / beta; x where beta * x > threshold.
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", NN | OUT | DIRECT,
    |a| a.apply(Softplus { beta: a.float(arg!(beta))?, threshold: a.float(arg!(threshold))? }, [a.tensor(arg!(self))?]);
    /// x / (1 + |x|): `softsign`.
    "_softsign(Tensor self) -> Tensor", FN | DIRECT, softsign;
    /// x above 0, negative_slope * x below.
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", ACT,
    |a| a.apply(LeakyRelu { slope: a.float(arg!(negative_slope))? }, [a.tensor(arg!(self))?]);
    /// x above 0, weight * x below, with one weight or one for each channel.
    "prelu(Tensor self, Tensor weight) -> Tensor", FN | METHOD | LIKE, prelu;
    /// x above the threshold, value elsewhere.
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    FN | INPLACE | OUT | DIRECT, threshold;
    /// log(sigmoid(x)), elementwise.
    "log_sigmoid(Tensor self) -> Tensor", NN | OUT | DIRECT,
    |a| in_rows(a, a.apply(LogSigmoid, [a.tensor(arg!(self))?])?);
    /// The first half along dim times the sigmoid of the second.
    "glu(Tensor self, int dim=-1) -> Tensor", NN | OUT, glu;
}

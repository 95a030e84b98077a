//! Numbers rounded to a grid, as an integer type with a scale would keep them.

use super::{apply, c, k, pointwise, Real};
use crate::arg;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, At, Signature, Value};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;

pointwise! {
    /// The nearest of the numbers (q - zero) scale for integers q from low to high, ties to even q;
    /// the gradient passes as it is where q was not held. Jacob et al. 2018, arXiv:1712.05877.
    op FakeQuantize { scale: f64, inverse: f64, zero: f64, low: f64, high: f64 }[1] =
        "FakeQuantizePerTensorAffineCachemaskBackward0", FloatOnly;
    f |p, [x]| {
        let q = quantized(x, k(p.inverse), k(p.zero));
        (held(q, k(p.low), k(p.high)) - k(p.zero)) * k(p.scale)
    };
    df |p, [x], _, g| {
        let q = quantized(x, k(p.inverse), k(p.zero));
        R::select(within(q, k(p.low), k(p.high)), g, c(0.0))
    };

    /// The same with tensors of one element for scale and zero, which keep the digits that x lacks.
    op FakeQuantizeTensor { low: f64, high: f64 }[3] =
        "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0", FloatOnly;
    f |p, [x, scale, zero]| {
        let q = quantized(x, scale.recip(), zero);
        (held(q, k(p.low), k(p.high)) - zero) * scale
    };
    df |p, [x, scale, zero], _, g|
        R::select(
            within(quantized(x, scale.recip(), zero), k(p.low), k(p.high)), g, c(0.0)),
        c(0.0),
        c(0.0);
    facts { exact: 0b110 };

    /// The same with a scale and a zero for each channel. Zeros with a fraction are added before q
    /// is rounded.
    op FakeQuantizeChannels { low: f64, high: f64, whole: bool }[3] =
        "FakeQuantizePerChannelAffineCachemaskBackward0", FloatOnly;
    f |p, [x, scale, zero]| {
        let q = shifted(x, scale.recip(), zero, p.whole);
        (held(q, k(p.low), k(p.high)) - zero) * scale
    };
    df |p, [x, scale, zero], _, g|
        R::select(
            within(shifted(x, scale.recip(), zero, p.whole), k(p.low), k(p.high)), g, c(0.0)),
        c(0.0),
        c(0.0);
}

fn quantized<R: Real>(x: R, inverse: R, zero: R) -> R {
    (x * inverse).round() + zero
}

fn shifted<R: Real>(x: R, inverse: R, zero: R, whole: bool) -> R {
    match whole {
        true => quantized(x, inverse, zero),
        false => (x * inverse + zero).round(),
    }
}

/// q from low to high; NaN counts as low.
fn held<R: Real>(q: R, low: R, high: R) -> R {
    R::select(q.is_nan(), low, q).max(low).min(high)
}

fn within<R: Real>(q: R, low: R, high: R) -> R::Mask {
    let between = R::both(q.ge(low), q.le(high));
    R::both(between, R::not(q.is_nan()))
}

/// The limits of a grid of integers, and the tensor to be put on it.
fn grid<'a, Sig: Signature>(a: &'a Args<Sig>, name: &str) -> Result<(&'a Tensor, f64, f64)> {
    let (x, low, high) = (
        a.tensor(arg!(self))?,
        a.int(arg!(quant_min))?,
        a.int(arg!(quant_max))?,
    );
    ensure!(
        low <= high,
        Runtime,
        "{name}: `quant_min` should be less than or equal to `quant_max`, got {low} and {high}"
    );
    ensure!(
        x.dtype().is_float() && !x.dtype().is_rare(),
        NoKernel,
        "\"{name}_cpu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok((x, low as f64, high as f64))
}

fn per_tensor<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, low, high) = grid(a, PER_TENSOR)?;
    let (scale, zero) = (
        a.float(arg!(scale))? as f32,
        a.int(arg!(zero_point))? as f64,
    );
    ensure!(
        (low..=high).contains(&zero),
        Runtime,
        "{PER_TENSOR}: `zero_point` must be between `quant_min` and `quant_max`, got {zero} outside \
         [{low}, {high}]"
    );
    let op = FakeQuantize {
        scale: scale.into(),
        inverse: scale.recip().into(),
        zero,
        low,
        high,
    };
    Ok(apply(op, [x])?.into())
}

const PER_TENSOR: &str = "fake_quantize_per_tensor_affine";
const PER_CHANNEL: &str = "fake_quantize_per_channel_affine";

/// The limits alone are looked at: scale and zero point may be results that are not there yet.
fn per_tensor_of_tensors<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, low, high) = grid(a, PER_TENSOR)?;
    let one = |i: At, name: &str| {
        let t = a.tensor(i)?;
        crate::ops::constant(PER_TENSOR, name, Some(t))?;
        ensure!(
            t.numel() == 1,
            Runtime,
            "{PER_TENSOR}: a Tensor with {} elements cannot be converted to Scalar: `{name}` must \
             have one",
            t.numel()
        );
        t.detach().reshape(&[])
    };
    let (scale, mut zero) = (
        one(arg!(scale), "scale")?,
        one(arg!(zero_point), "zero_point")?,
    );
    if !zero.dtype().is_integral() {
        zero = zero.to_dtype(DType::I32)?;
    }
    let op = FakeQuantizeTensor { low, high };
    let y = apply(op, [x, &scale.to_dtype(DType::F32)?, &zero])?;
    // Of a tensor without dimensions scale decides the type.
    Ok(y.to_dtype(x.dtype())?.into())
}

fn per_channel<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (scale, zero, axis) = (
        a.tensor(arg!(scale))?,
        a.tensor(arg!(zero_point))?,
        a.int(arg!(axis))?,
    );
    let (float, whole) = (scale.dtype(), zero.dtype() == DType::I32);
    ensure!(
        matches!(float, DType::F32 | DType::BF16),
        Runtime,
        "Scale must be Float or BFloat16, found {}",
        float.scalar_name()
    );
    ensure!(
        whole || matches!(zero.dtype(), DType::F32 | DType::F16),
        Runtime,
        "Zero-point must be Int32, Float or Half, found {}",
        zero.dtype().scalar_name()
    );
    for (name, t) in [("scale", scale), ("zero point", zero)] {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "{PER_CHANNEL}: {name} should be a 1-D tensor, got shape {}",
            Show(t.shape())
        );
        crate::ops::constant(PER_CHANNEL, name, Some(t))?;
    }
    ensure!(
        scale.numel() == zero.numel(),
        Runtime,
        "{PER_CHANNEL}: scale and zero-point need to have the same dimensions, got {} and {}",
        Show(scale.shape()),
        Show(zero.shape())
    );
    let (x, low, high) = grid(a, PER_CHANNEL)?;
    let axis = usize::try_from(axis).ok().filter(|&d| d < x.ndim());
    let Some(axis) = axis else {
        crate::bail!(
            Runtime,
            "{PER_CHANNEL}: `axis` must be between 0 and number of dimensions of input, got {} for \
             shape {}",
            a.int(arg!(axis))?,
            Show(x.shape())
        )
    };
    ensure!(
        x.size(axis) == scale.numel(),
        Runtime,
        "{PER_CHANNEL}: dimensions of scale and zero-point are not consistent with input tensor, got \
         {} for dimension {axis} of {}",
        Show(scale.shape()),
        Show(x.shape())
    );
    if whole && zero.numel() > 0 && zero.is_readable() {
        let zeros = zero.prepared(DType::I64)?;
        // SAFETY: contiguous host memory of this type.
        let mut zeros = unsafe { zeros.slice::<i64>() }.iter();
        ensure!(
            zeros.all(|&z| (low..=high).contains(&(z as f64))),
            Runtime,
            "{PER_CHANNEL}: `zero_point` must be between `quant_min` and `quant_max`, which are {low} \
             and {high}"
        );
    }
    let mut shape = Dims::from_elem(1, x.ndim());
    shape[axis] = scale.numel();
    let along = |t: &Tensor| t.detach().to_dtype(DType::F32)?.reshape_to(&shape);
    let op = FakeQuantizeChannels { low, high, whole };
    let y = apply(op, [x, &along(scale)?, &along(zero)?])?;
    Ok(y.to(x.dtype(), x.device(), false, None)?.into())
}

crate::entries! {
    /// The nearest number of a grid of integers times a scale; its gradient is that of x within it.
    "fake_quantize_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
    FN, per_tensor_of_tensors;
    /// The nearest number of a grid of integers times a scale; its gradient is that of x within it.
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
    FN, per_tensor;
    /// The nearest number of a grid of integers times the scale of its channel; its gradient is that
    /// of x within it.
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
    FN, per_channel;
}

//! Functions of three tensors.

use super::compare::Ne;
use super::pointwise;
use super::types::no_bool;
use super::types::promoted;
use super::{apply, c, k};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Meta;
use crate::tensor::Tensor;
use crate::{bail, ensure};

fn same_types<const N: usize>(names: [&str; N], x: &[impl AsRef<Meta>]) -> Result<()> {
    let first = x[0].as_ref();
    ensure!(
        first.dtype().differentiable(),
        NoKernel,
        "\"lerp_cpu\" not implemented for '{}'",
        first.dtype().scalar_name()
    );
    for (name, t) in names.iter().zip(x[1..].iter().map(AsRef::as_ref)) {
        ensure!(
            t.dtype() == first.dtype() || t.is_wrapped(),
            Runtime,
            "expected dtype {} for `{name}` but got dtype {}",
            first.dtype().c_name(),
            t.dtype().c_name()
        );
    }
    Ok(())
}

pointwise! {
    /// x where the condition holds, y elsewhere; the condition comes last, so that the types of
    /// the values decide.
    op Where[3] = "WhereBackward0", Same;
    f |_, [x, y, m]| R::select(m.equal(c(0.0)), y, x);
    int |_, [x, y, m]| if m != 0 { x } else { y };
    df |_, [_x, _y, m], _, g|
        R::select(m.equal(c(0.0)), c(0.0), g),
        R::select(m.equal(c(0.0)), g, c(0.0)),
        c(0.0);
    complex Analytic;
    facts { unsigned: true };

    /// x + w (y - x), from the nearer end.
    op Lerp[3] = "LerpBackward1", FloatOnly;
    f |_, [x, y, w]| {
        let d = y - x;
        R::select(w.abs().lt(c(0.5)), x + w * d, y - d * (c::<R>(1.0) - w))
    };
    df |_, [x, y, w], _, g|
        g * (c::<R>(1.0) - w), g * w, g * (y - x);
    check |_, _, x| same_types(["end", "weight"], x);
    complex Analytic;
    facts { half_loops: true };

    /// The same with a number for w.
    op LerpNumber { w: f64 }[2] = "LerpBackward0", FloatOnly;
    f |p, [x, y]| {
        let (d, w) = (y - x, k::<R>(p.w));
        R::select(w.abs().lt(c(0.5)), x + w * d, y - d * (c::<R>(1.0) - w))
    };
    df |p, [_x, _y], _, g|
        g * k(1.0 - p.w), g * k(p.w);
    check |_, _, x| same_types(["end"], x);
    complex Analytic;
    facts { half_loops: true };

    /// x + value * y * z.
    op Addcmul { value: Scalar }[3] = "AddcmulBackward0", Same;
    f |p, [x, y, z]| x + k::<R>(p.value.f64()) * y * z;
    int |p, [x, y, z]| x.wrapping_add(p.value.i64().wrapping_mul(y).wrapping_mul(z));
    df |p, [_x, y, z], _, g|
        g,
        g * (z * k(p.value.f64())),
        g * (y * k(p.value.f64()));
    check |_, t, _| no_bool("addcmul", t);
    complex Analytic;
    facts { half_loops: true };

    /// x + value * y / z.
    op Addcdiv { value: Scalar }[3] = "AddcdivBackward0", Same;
    f |p, [x, y, z]| x + k::<R>(p.value.f64()) * (y / z);
    df |p, [_x, y, z], _, g|
        g,
        g * (k::<R>(p.value.f64()) / z),
        -g * (k::<R>(p.value.f64()) * y / (z * z));
    check |_, _, x| {
        if x[1..].iter().all(|t| t.as_ref().dtype().is_integral()) {
            bail!(
                Runtime,
                "Integer division with addcdiv is no longer supported, and in a future  release \
                 addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv \
                 behavior can be implemented as (input + value * torch.trunc(tensor1 / \
                 tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / \
                 tensor2) for float inputs."
            )
        }
        Ok(())
    };
    complex Analytic;
    facts { half_loops: true };

    /// x within [low, high], which are tensors; NaN stays. Where low > high, high.
    op ClampTensor[3] = "ClampBackward0", Same;
    f |_, [x, low, high]| x.max(low).min(high);
    int |_, [x, low, high]| x.max(low).min(high);
    df |_, [x, low, high], _, g|
        R::select(R::both(x.ge(low), x.le(high)), g, c(0.0)),
        R::select(R::both(x.lt(low), low.lt(high)), g, c(0.0)),
        R::select(R::either(x.gt(high), high.lt(low)), g, c(0.0));
}

/// `where(condition, x, y)`.
pub fn where_(m: &Tensor, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(
        m.dtype() == DType::Bool || m.dtype() == DType::U8,
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        m.dtype().scalar_name()
    );
    if m.dtype() == DType::U8 {
        let m = apply(Ne, [m, &Tensor::number(Scalar::Int(0))?])?;
        return where_(&m, x, y);
    }
    // The condition must not take part in promotion.
    if let Some(rare) = [x, y].iter().map(|t| t.dtype()).find(|t| t.is_rare()) {
        if rare.is_float8() {
            // Not all of them have a zero for what is false.
            let t = promoted(&dispatch::metas(&[x, y]))?;
            let [x, y] = [x, y].map(|v| v.to_dtype(DType::F32));
            return apply(Where, [&x?, &y?, m])?.to_dtype(t);
        }
        return apply(Where, [x, y, &m.to_dtype(rare)?]);
    }
    apply(Where, [x, y, m])
}

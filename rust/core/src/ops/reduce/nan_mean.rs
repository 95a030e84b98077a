//! The mean of the elements that are not NaN.

use super::{beside, nansum, reduced_shape};
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::reduce::{filled, reduce_from, Kind};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::present::present;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    mask, one, Asked, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors, Traits,
};
use crate::ops::pointwise::unary::{IsNan, LogicalNot};
use crate::ops::pointwise::{apply, c, pointwise};
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::transfer::{self, whole};
use crate::{bail, ensure, with_float};
use smallvec::smallvec;
use std::sync::Arc;

pointwise! {
    /// The share of x, one of n elements that are not NaN, in their mean's gradient g.
    op PresentShare[3] = "DivBackward0", FloatOnly;
    f |_, [x, g, n]| R::select(x.is_nan(), c(0.0), g / n);
    df |_, [x, g, n], _, h|
        c(0.0),
        R::select(x.is_nan(), c(0.0), h / n),
        R::select(x.is_nan(), c(0.0), -h * g / (n * n));
}

/// The mean of what is not NaN over the dimensions in `mask`, and how many those elements are, in the type that
/// `dtype` is computed in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NanMean {
    mask: DimSet,
    keepdim: bool,
    dtype: DType,
}

impl Derivative for NanMean {
    fn name(&self) -> &'static str {
        "DivBackward0"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("nanmean"))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let (x, n) = (cx.input(0)?, cx.output(1)?);
        let beside = |t: &Tensor| beside(t, x.shape(), self.mask, self.keepdim);
        one(apply(PresentShare, [&x, &beside(g)?, &beside(&n)?])?)
    }
}

impl Op for NanMean {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(NanMean {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        let of = |dtype| TensorMeta::new(&shape, dtype, x[0].device());
        Ok(smallvec![of(self.dtype), of(self.dtype.compute())])
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1]),
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let kinds = (Kind::Present, Kind::NanSum);
        with_float!(self.dtype, "nansum", T => filled::<T>(&y[1], |counts| {
            filled::<T>(&y[0], |means| {
                reduce_from::<T>(x[0], self.mask, kinds, |n| n, counts, means);
                for (mean, n) in means.iter_mut().zip(counts) {
                    *mean /= *n;
                }
            });
        }));
        Ok(())
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = x[0];
        // The shader computes in the wider type of both, the result's is ours.
        if x.numel() == 0 || x.dtype() == DType::F64 && self.dtype != DType::F64 {
            return Ok(false);
        }
        let (mean, counts) = (whole(&y[0])?, whole(&y[1])?);
        transfer::ran(present(gpu, whole(x)?, self.mask, mean, counts))
    }
    /// Of what is more than a binding.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].numel() == 0 {
            return Ok(None);
        }
        let wide = self.dtype.compute();
        let over = |x: &Tensor, kind| x.reduce(kind, self.mask, self.keepdim, wide, self.name());
        let counts = over(&present_elements(x[0])?, Kind::Sum)?;
        let mean = over(x[0], Kind::NanSum)?.div(&counts)?;
        Ok(Some(smallvec![mean.to_dtype(self.dtype)?, counts]))
    }
}

fn present_elements(x: &Tensor) -> Result<Tensor> {
    apply(LogicalNot, [&apply(IsNan, [x])?])
}

fn nanmean(x: &Tensor, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "nanmean(): expected input to have floating point or complex dtype but got {}",
        x.dtype().scalar_name()
    );
    if let Some(d) = dtype.filter(|d| !d.differentiable()) {
        bail!(
            Runtime,
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating \
             point or complex dtype. Got: {}",
            d.scalar_name()
        );
    }
    let to = dtype.unwrap_or(x.dtype());
    // What has no kernel raises below, as PyTorch's parts do.
    let plain = to.is_float() && !to.is_float8() && !x.dtype().is_float8();
    if plain && !dispatch::by_name(&[x]) {
        let op = NanMean {
            mask,
            keepdim,
            dtype: to,
        };
        return Ok(dispatch::call(op, &[x])?.swap_remove(0));
    }
    let count = present_elements(x)?.sum_mask(mask, keepdim, None)?;
    nansum(x, mask, keepdim, dtype)?.div(&count)
}

crate::entries! {
    /// The mean of the elements that are not NaN.
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | TYPED,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(nanmean(x, a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
}

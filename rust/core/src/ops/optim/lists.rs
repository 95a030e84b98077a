//! Lists of tensors as one: their norms, and products with one number, in a kernel for several tensors.

use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::ensure;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta, Traits};
use crate::ops::pointwise::apply_;
use crate::ops::pointwise::binary::Mul;
use crate::shape::{DimSet, Show};
use crate::tensor::Tensor;
use crate::transfer;
use crate::{bail, ops::shape::join::stack};
use smallvec::SmallVec;

/// The norm of each input, as one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Norms {
    /// 1, 2 or infinity.
    p: Bitwise,
}

impl Derivative for Norms {
    fn name(&self) -> &'static str {
        "_foreach_norm"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for '_foreach_norm' is not implemented."
        )
    }
}

impl Op for Norms {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(&[x.len()], x[0].dtype(), x[0].device());
        Ok(Metas::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_from(&each(x, *self.p)?)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(super::lists_gpu::norms(gpu, *self.p, x, &y[0]))
    }
}

fn each(x: &[&Tensor], p: f64) -> Result<Tensor> {
    let norm = |t: &&Tensor| t.vector_norm(p, DimSet::all(t.ndim()), false);
    stack(&x.iter().map(norm).collect::<Result<Vec<_>>>()?, 0)
}

/// Every input times the last one, which has one element; results lie in their memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scaled;

impl Derivative for Scaled {
    fn name(&self) -> &'static str {
        "_foreach_mul_"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for '_foreach_mul_' is not implemented."
        )
    }
}

impl Op for Scaled {
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            ..Traits::POINTWISE
        }
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(x[..x.len() - 1].iter().map(|t| TensorMeta::of(t)).collect())
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (factor, list) = x.split_last().expect("a factor behind the list");
        y.iter()
            .zip(list)
            .try_for_each(|(y, x)| y.write_from(&x.mul(factor)?.to_dtype(y.dtype())?))
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (factor, list) = x.split_last().expect("a factor behind the list");
        let own = |(x, y): (&&Tensor, &Tensor)| dispatch::overlap(x, y) == dispatch::Overlap::Same;
        if !list.iter().zip(y).all(own) {
            return Ok(false);
        }
        transfer::ran(super::lists_gpu::scale(gpu, list, factor))
    }
}

/// Whether one kernel takes a tensor beside others of this one's device.
fn fits(t: &Tensor, device: crate::device::Device) -> bool {
    t.device() == device
        && device.is_gpu()
        && t.dtype() == DType::F32
        && t.is_contiguous()
        && t.numel() > 0
        && t.numel() < 1 << 31
}

/// The norm of each tensor of a list, as one tensor of the first one's type; where gradients are
/// recorded they are those of the norms alone.
pub fn norms(list: &[Tensor], p: f64) -> Result<Tensor> {
    let refs: SmallVec<[&Tensor; 8]> = list.iter().collect();
    ensure!(
        !list.is_empty(),
        Runtime,
        "_foreach_norm: Tensor list must have at least one tensor."
    );
    let known = [1.0, 2.0, f64::INFINITY].contains(&p);
    let together = list.iter().all(|t| fits(t, list[0].device()));
    if !(known && together) || dispatch::needs(&refs) != 0 {
        return each(&refs, p);
    }
    dispatch::call1(Norms { p: Bitwise(p) }, &refs)
}

/// Multiplies every tensor of a list by one number, in place.
pub fn scale(list: &[Tensor], factor: &Tensor) -> Result<()> {
    ensure!(
        factor.numel() == 1,
        Runtime,
        "_foreach_mul_: scalar tensor expected to be 0 dim but it has {} dimensions and {} elements \
         (shape {}).",
        factor.ndim(),
        factor.numel(),
        Show(factor.shape())
    );
    let device = factor.device();
    let one = |t: &Tensor| apply_(Mul, [t, &factor.to_device(t.device())?]).map(|_| ());
    let plain = |t: &&Tensor| fits(t, device) && factor.dtype() == DType::F32;
    let refs: Vec<&Tensor> = list.iter().chain([factor]).collect();
    if super::meet::meet(&refs, |k| k < list.len()) {
        return list.iter().try_for_each(one);
    }
    let (fit, rest): (Vec<&Tensor>, Vec<&Tensor>) = list.iter().partition(plain);
    let several = super::gpu::at_once(device, 1)?.saturating_sub(1).max(1);
    for part in fit.chunks(several) {
        let x: Vec<&Tensor> = part.iter().copied().chain([factor]).collect();
        let y: Vec<Tensor> = part.iter().map(|&t| t.clone()).collect();
        dispatch::call_in_place(&Scaled, &x, &y)?;
    }
    rest.into_iter().try_for_each(one)
}

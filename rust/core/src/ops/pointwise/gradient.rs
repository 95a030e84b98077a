//! The gradient of a pointwise op in one kernel, where it is not recorded itself.

use super::cpu::{grad32, grad64};
use super::*;

/// The gradient of input `i`, fused into one kernel: inputs are `g`, `y` and the op's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PwGrad<P, const N: usize> {
    pub(super) op: P,
    pub(super) i: usize,
}

/// The gradient of input `i`, not recorded; `inputs` are `g`, a stand-in for `y`, and the op's.
pub fn fused_gradient<P: Pointwise<N>, const N: usize>(
    op: &P,
    i: usize,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let op = PwGrad { op: op.clone(), i };
    Ok(dispatch::compute(&op, inputs)?.swap_remove(0))
}

impl<P: Pointwise<N>, const N: usize> Derivative for PwGrad<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            P::NODE
        )
    }
}

impl<P, const N: usize> PwGrad<P, N> {
    /// Gradients of f64 inputs in a mixed-type op stay f64.
    fn wide(&self, x: &[&Tensor]) -> bool {
        x[2..]
            .iter()
            .any(|t| t.dtype() == DType::F64 && t.ndim() > 0)
    }
}

impl<P: Pointwise<N>, const N: usize> Op for PwGrad<P, N> {
    fn unsigned(&self) -> bool {
        true
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = common_shape(x)?;
        let meta = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: dispatch::device(x),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let inputs: SmallVec<[Option<&Tensor>; 5]> = x.iter().copied().map(Some).collect();
        let params = (&raw const self.op).cast::<()>();
        let double = y[0].dtype() == DType::F64 || self.wide(x);
        let grain = cost::gradient_grain(&self.op, self.i, double);
        // SAFETY: as for the forward kernels.
        unsafe {
            match double {
                true => run::<f64>(grad64::<P, N>(self.i), params, &inputs, &y[0], grain),
                false => run::<f32>(grad32::<P, N>(self.i), params, &inputs, &y[0], grain),
            }
        }
        Ok(())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = match self.wide(x) {
            true => Acc::F64,
            false => Acc::of(y[0].dtype())?,
        };
        gpu::launch(gpu, acc, x, &y[0], |a| {
            self.op.df(std::array::from_fn(|i| a[i + 2]), a[1], a[0])[self.i]
        })
    }

    fn quick(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let mut call = fast::Call::new(x);
        if !call.fits(x) {
            return None;
        }
        let y = match call.result(DType::F32) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        let params = (&raw const self.op).cast::<()>();
        // SAFETY: `params` points to the op that the kernel is instantiated for.
        unsafe { call.run(grad32::<P, N>(self.i), params, &y) };
        Some(Ok(y))
    }

    fn pointwise(&self) -> bool {
        true
    }
}

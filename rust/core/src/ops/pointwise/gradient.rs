//! The gradient of a pointwise op in one kernel, where it is not recorded itself.

use super::cpu::grad32;
use super::types::common_shape;
use super::{fast, gpu, output_layout, Formula, Pointwise, Pw};
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::bail;
use crate::cpu::pointwise::chain::{erased, Body, Loop};
use crate::cpu::pointwise::{run, MAX_INPUTS};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Asked, Derivative, Fast, Fusion, Grads, Metas, Op, Rare, TensorMeta, Traits};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The gradient of input `i`, fused into one kernel: inputs are `g`, `y` and the op's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PwGrad<P, const N: usize> {
    pub op: Pw<P, N>,
    pub i: usize,
}

/// The gradient of input `i`, not recorded; `inputs` are `g`, a stand-in for `y`, and the op's.
pub fn fused_gradient<P: Pointwise<N>, const N: usize>(
    op: &P,
    i: usize,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    Pw(op.clone()).fused_gradient(i, inputs)
}

impl<P: Pointwise<N>, const N: usize> Derivative for PwGrad<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::backward(P::NODE))
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            P::NODE
        )
    }
    /// Of the formula written with ops.
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        second(&self.op, self.i, cx)
    }
}

fn second(op: &dyn Formula, i: usize, cx: &Jvp) -> Result<Option<Tangents>> {
    let (inputs_read, output_read) = op.reads()[i];
    cx.by_ops(&|x| {
        let read = |j: usize| (inputs_read >> j & 1 == 1).then(|| x[j + 2].clone());
        let own: SmallVec<[Option<Tensor>; 4]> = (0..x.len() - 2).map(read).collect();
        let d = op.gradients(&own, output_read.then_some(x[1]), x[0], 1 << i)?[i].take();
        let d = match d {
            Some(d) => d.to_dtype(x[0].dtype())?,
            None => Tensor::zeros(x[0].shape(), x[0].dtype(), x[0].device())?,
        };
        let shape = common_shape(&dispatch::metas(x))?;
        Ok(SmallVec::from_elem(d.expand_to(&shape)?, 1))
    })
}

/// Gradients of f64 inputs in a mixed-type op stay f64.
fn is_wide<M: AsRef<Meta>>(x: &[M]) -> bool {
    x[2..]
        .iter()
        .map(AsRef::as_ref)
        .any(|t| t.dtype() == DType::F64 && t.ndim() > 0)
}

fn infer(x: &[&Meta]) -> Result<Metas> {
    let shape = common_shape(x)?;
    let meta = TensorMeta {
        shape,
        dtype: x[0].dtype(),
        device: dispatch::device(x),
    };
    Ok(SmallVec::from_elem(meta, 1))
}

fn cpu(op: &dyn Formula, i: usize, x: &[&Tensor], y: &Tensor) -> Result<()> {
    let inputs: SmallVec<[Option<&Tensor>; 6]> = x.iter().copied().map(Some).collect();
    let params = op.params();
    let double = y.dtype() == DType::F64 || is_wide(x);
    let grain = op.gradient_grain(i, double);
    // SAFETY: `params` is the op that the kernels are for; `dispatch` checked devices and shapes.
    unsafe {
        match double {
            true => run::<f64, _>(op.gradient_f64(i), params, &inputs, y, grain),
            false => run::<f32, _>(op.gradient_f32(i), params, &inputs, y, grain),
        }
    }
    Ok(())
}

fn each(op: &dyn Formula, i: usize, x: &[&Meta]) -> Option<Loop> {
    if x.iter().any(|t| t.dtype().is_complex()) {
        return None;
    }
    let double = x[0].dtype() == DType::F64 || is_wide(x);
    let (compute, kernel) = match double {
        true => (DType::F64, erased(op.gradient_f64(i))),
        false => (DType::F32, erased(op.gradient_f32(i))),
    };
    Some(Loop {
        compute,
        body: Body::Kernel(kernel, op.params()),
        numbers: [None; MAX_INPUTS],
        grain: op.gradient_grain(i, double),
    })
}

fn gpu(op: &dyn Formula, i: usize, gpu: &Gpu, x: &[&Tensor], y: &Tensor) -> Result<bool> {
    let acc = match is_wide(x) {
        true => Acc::F64,
        false => Acc::of(y.dtype())?,
    };
    gpu::launch(gpu, acc, x, y, &|x| op.shade_gradient(i, x))
}

impl<P: Pointwise<N>, const N: usize> Op for PwGrad<P, N> {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        infer(x)
    }
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        output_layout(x, &y.shape)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        cpu(&self.op, self.i, x, &y[0])
    }
    fn gpu(&self, to: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        gpu(&self.op, self.i, to, x, &y[0])
    }
    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
}

impl<P: Pointwise<N>, const N: usize> Fusion for PwGrad<P, N> {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        each(&self.op, self.i, x)
    }
}

impl<P: Pointwise<N>, const N: usize> Fast for PwGrad<P, N> {
    fn call(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let mut call = fast::Call::new(x);
        if !call.fits(x) {
            return None;
        }
        let y = match call.result(DType::F32) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        // SAFETY: the parameters are those of the op that the kernel is instantiated for.
        unsafe { call.run(grad32::<P, N>(self.i), self.op.params(), &y) };
        Some(Ok(y))
    }
}

//! Pointwise ops: one formula each, from which every kernel and derivative follows.

pub mod binary;
pub mod complex;
mod cost;
pub mod cpu;
mod declare;
#[cfg(test)]
mod dual;
pub mod expr;
mod fast;
pub mod formula;
pub mod gpu;
mod gradient;
mod integer;
pub mod methods;
pub mod real;
pub mod special;
pub mod ternary;
pub mod types;
pub mod unary;
pub mod written;

crate::ops::family! { activation arithmetic compare fake_quantize math }

use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::pointwise::chain::Loop;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::{packed_strides, Layout, CHANNELS_LAST};
use crate::meta::Meta;
use crate::op::{
    Derivative, Fast, Fusion, Grads, Mask, Metas, Op, Rare, Replay, ReplayArgs, Save, TensorMeta,
    Traits,
};
use crate::schema::{Args, Value};
use crate::tensor::Tensor;
pub use complex::Complex;
use cost::reads;
use cpu::kernel32;
pub(crate) use declare::pointwise;
pub use declare::{Cpu, Facts, Own, Parameter, Pointwise, Types};
pub use formula::Formula;
pub use gradient::fused_gradient;
pub use integer::Integer;
pub use real::{c, k, Float, Half, Polynomial, Real, Special, Special2};
use smallvec::SmallVec;
use std::hash::Hash;

/// A pointwise op as an op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pw<P, const N: usize>(pub P);

/// Computes and records a pointwise op.
pub fn apply<P: Pointwise<N>, const N: usize>(op: P, x: [&Tensor; N]) -> Result<Tensor> {
    dispatch::call1(Pw(op), &x)
}

/// As [`apply`] for a small call of the plainest kind; see [`dispatch::fast`].
pub fn apply_fast<P: Pointwise<N>, const N: usize>(
    op: P,
    x: &[&Tensor; N],
) -> Option<Result<Tensor>> {
    dispatch::fast(Pw(op), x)
}

/// As [`apply`], into `x[0]`.
pub fn apply_<P: Pointwise<N>, const N: usize>(op: P, x: [&Tensor; N]) -> Result<Tensor> {
    dispatch::call_into(Pw(op), &x, x[0], true)
}

impl Args<'_> {
    /// Computes a pointwise op to wherever the result goes.
    pub fn apply<P: Pointwise<N>, const N: usize>(&self, op: P, x: [&Tensor; N]) -> Result<Value> {
        self.call(Pw(op), &x)
    }
}

impl<P: Pointwise<N>, const N: usize> Derivative for Pw<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }

    fn save(&self, needs: Mask) -> Save {
        let mut save = Save::NONE;
        for (i, (inputs, output)) in reads(&self.0).into_iter().enumerate() {
            if needs >> i & 1 == 1 {
                save.inputs |= inputs;
                save.outputs |= output as Mask;
            }
        }
        save
    }

    fn overwritten(&self) -> Result<()> {
        self.0.overwritten()
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        formula::vjp(self, cx, g)
    }

    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        formula::jvp(self, cx)
    }
}

impl<P: Pointwise<N>, const N: usize> Op for Pw<P, N> {
    // `types` tells which it computes with.
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            opaque: P::FACTS.opaque != 0,
            casts: P::FACTS.casts || N != 1 || matches!(P::FACTS.types, Types::Float | Types::Bool),
            repeats: P::FACTS.repeats,
            detached: P::FACTS.detached as Mask,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        formula::infer(self, x)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        formula::cpu(self, x, y)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        formula::gpu(self, gpu, x, y)
    }

    fn replay(&self) -> Option<&dyn Replay> {
        Some(self)
    }

    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }

    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }

    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        output_layout(x, &y.shape)
    }
}

impl<P: Pointwise<N>, const N: usize> Replay for Pw<P, N> {
    fn args_are_inputs(&self) -> bool {
        true
    }

    fn args(&self, x: &[&Tensor]) -> Result<ReplayArgs> {
        formula::replay_args(self, x)
    }
}

impl<P: Pointwise<N>, const N: usize> Fusion for Pw<P, N> {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        formula::each(self, x)
    }
}

impl<P: Pointwise<N>, const N: usize> Fast for Pw<P, N> {
    fn call(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let dtype = match P::FACTS.types {
            Types::Same | Types::Float | Types::FloatOnly => DType::F32,
            Types::Bool => DType::Bool,
            Types::IntOnly => return None,
        };
        let mut call = fast::Call::new(x);
        if !call.fits(x) {
            return None;
        }
        if let Err(e) = self.0.check(DType::F32, x) {
            return Some(Err(e));
        }
        let y = match call.result(dtype) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        let params = (&raw const self.0).cast::<()>();
        // SAFETY: `params` points to the op that the kernel is instantiated for.
        unsafe { call.run(kernel32::<P, N>(), params, &y) };
        Some(Ok(y))
    }

    fn call_into(&self, x: &[&Tensor], y: &Tensor) -> Result<bool> {
        if !matches!(
            P::FACTS.types,
            Types::Same | Types::Float | Types::FloatOnly
        ) {
            return Ok(false);
        }
        let mut call = fast::Call::new(x);
        if !call.fits(x) || !call.may_write(x, y) {
            return Ok(false);
        }
        self.0.check(DType::F32, x)?;
        let params = (&raw const self.0).cast::<()>();
        // SAFETY: the parameters are the kernel's own, it takes as many operands as were looked at, and the
        // call may write to `y`.
        unsafe { call.run(kernel32::<P, N>(), params, y) };
        Ok(true)
    }
}

/// The memory order of a result, PyTorch's. Inputs of one shape that lie alike give it theirs; others
/// sort its dimensions by their strides, and the first input that has an opinion decides.
pub fn output_layout(x: &[&Meta], shape: &[usize]) -> Option<Layout> {
    if x.iter().all(|t| t.is_contiguous()) || shape.contains(&0) {
        return None;
    }
    if x.iter().all(|t| t.shape()[..] == *shape) {
        let first = x[0].layout();
        let mut layout = Layout::contiguous(shape);
        if x.iter().all(|t| t.layout().is_packed(&CHANNELS_LAST)) {
            layout.strides = packed_strides(shape, &CHANNELS_LAST);
            return Some(layout);
        }
        if x.iter().all(|t| t.strides() == &first.strides) && first.is_dense() {
            layout.strides = first.strides.clone();
            return Some(layout);
        }
    }
    let strides: SmallVec<[_; 4]> = x
        .iter()
        .map(|t| t.layout().expand_to(shape).strides)
        .collect();
    // 1 where dimension `a` must lie outside of `b`, -1 where inside, 0 where nobody cares.
    let compare = |a: usize, b: usize| {
        for s in &strides {
            match (s[a], s[b]) {
                (0, _) | (_, 0) => {}
                (p, q) if p < q => return -1,
                (p, q) if p > q => return 1,
                _ if shape[a] > shape[b] => return 1,
                _ => {}
            }
        }
        0
    };
    // Innermost first; stable insertion that passes over indifferent neighbours.
    let mut order: SmallVec<[usize; 5]> = (0..shape.len()).rev().collect();
    for i in 1..order.len() {
        let mut at = i;
        for j in (0..i).rev() {
            match compare(order[j], order[at]) {
                1 => {
                    order.swap(j, at);
                    at = j;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    let mut layout = Layout::contiguous(shape);
    layout.strides = packed_strides(shape, &order);
    Some(layout)
}

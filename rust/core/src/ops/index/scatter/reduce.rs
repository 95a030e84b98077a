//! `scatter_reduce`: elements combined by a reduction, and its gradients.

use super::{gather, padded, scatter, Scatter};
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Batching, Derivative, Grads, Mapped, Metas, Op, Save, Tensors, Traits};
use crate::ops::index::Mode;
use crate::ops::pointwise::{apply, binary, compare, ternary};
use crate::ops::shape::copy::copy_host;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// How `scatter_reduce` combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

impl Reduce {
    pub(super) fn parse(name: &str) -> Result<Reduce> {
        Ok(match name {
            "sum" => Reduce::Sum,
            "prod" => Reduce::Prod,
            "mean" => Reduce::Mean,
            "amax" => Reduce::Max,
            "amin" => Reduce::Min,
            _ => bail!(
                Runtime,
                "reduce argument must be either sum, prod, mean, amax or amin, got {name}"
            ),
        })
    }

    fn mode(self) -> Mode {
        match self {
            Reduce::Sum | Reduce::Mean => Mode::Add,
            Reduce::Prod => Mode::Mul,
            Reduce::Max => Mode::Max,
            Reduce::Min => Mode::Min,
        }
    }

    /// What leaves an element as it is.
    fn identity(self, dtype: DType) -> Scalar {
        let (low, high) = dtype.limits();
        match self {
            Reduce::Sum | Reduce::Mean => Scalar::Int(0),
            Reduce::Prod => Scalar::Int(1),
            Reduce::Max if dtype.is_float() => Scalar::Float(f64::NEG_INFINITY),
            Reduce::Min if dtype.is_float() => Scalar::Float(f64::INFINITY),
            Reduce::Max => Scalar::Int(low),
            Reduce::Min => Scalar::Int(high),
        }
    }
}

/// `scatter_reduce`: inputs are the tensor, the index and the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterReduce {
    pub dim: usize,
    pub how: Reduce,
    pub include_self: bool,
    pub name: &'static str,
}

fn full_like(x: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
    Tensor::full(x.shape(), value.into(), x.dtype(), x.device())
}

impl ScatterReduce {
    fn call(&self, x: &Tensor, idx: &Tensor, src: &Tensor) -> Result<Tensor> {
        dispatch::call1(self.clone(), &[x, idx, src])
    }

    /// How many elements each place of the result is made of, at least one.
    fn count(&self, x: &Tensor, idx: &Tensor) -> Result<Tensor> {
        let (dtype, itself) = (x.dtype().part(), self.include_self as i64);
        let start = Tensor::full(x.shape(), Scalar::Int(itself), dtype, x.device())?;
        let one = Tensor::full(&[], Scalar::Int(1), dtype, x.device())?;
        let count = scatter(&start, self.dim, idx, &one, Mode::Add)?;
        apply(binary::Maximum, [&count, &one])
    }

    /// The gradient of the source where products meet zeros.
    fn product(
        &self,
        x: &Tensor,
        idx: &Tensor,
        src: &Tensor,
        y: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        let zero = full_like(src, 0)?;
        let one = full_like(src, 1)?;
        let is_zero = apply(compare::Eq, [src, &zero])?;
        let zeros = scatter(
            &full_like(x, 0)?,
            self.dim,
            idx,
            &is_zero.to_dtype(x.dtype())?,
            Mode::Add,
        )?;
        let alone = apply(compare::Eq, [&gather(&zeros, self.dim, idx)?, &one])?;
        let alone = apply(compare::LogicalAnd, [&is_zero, &alone])?;
        let others = self.call(x, idx, &ternary::where_(&alone, &one, src)?)?;
        let at_zero = gather(&g.mul(&others)?, self.dim, idx)?;
        let plain =
            gather(&g.mul(y)?, self.dim, idx)?.div(&ternary::where_(&is_zero, &one, src)?)?;
        ternary::where_(&alone, &at_zero, &plain)
    }
}

impl Derivative for ScatterReduce {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: u64) -> Save {
        match self.how {
            Reduce::Sum => Save::inputs([1]),
            Reduce::Mean => Save::inputs([0, 1, 2]),
            _ => Save::inputs([0, 1, 2]).and_outputs([0]),
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (dim, idx) = (self.dim, cx.input(1)?);
        let (mut old, source) = match self.how {
            Reduce::Sum => (g.clone(), gather(g, dim, &idx)?),
            Reduce::Mean => {
                let each = g.div(&self.count(&cx.input(0)?.detach(), &idx)?)?;
                let source = gather(&each, dim, &idx)?;
                (each, source)
            }
            Reduce::Prod => {
                ensure!(
                    !g.dtype().is_complex(),
                    NotImplemented,
                    "scatter_reduce: the derivative of a product of complex numbers is not \
                     implemented"
                );
                let (x, src, y) = (cx.input(0)?, trimmed(cx.input(2)?, &idx)?, cx.output(0)?);
                let one = full_like(&x, 1)?;
                let is_zero = apply(compare::Eq, [&x, &full_like(&x, 0)?])?;
                let full = ternary::where_(&is_zero, &one, &x)?;
                let old = g.mul(&self.call(&full, &idx, &src)?)?.div(&full)?;
                (old, self.product(&x, &idx, &src, &y, g)?)
            }
            Reduce::Max | Reduce::Min => {
                let (x, src, y) = (cx.input(0)?, trimmed(cx.input(2)?, &idx)?, cx.output(0)?);
                let mine = apply(compare::Eq, [&x, &y])?.to_dtype(g.dtype())?;
                let theirs = apply(compare::Eq, [&src, &gather(&y, dim, &idx)?])?;
                let theirs = theirs.to_dtype(g.dtype())?;
                let count = scatter(&mine, dim, &idx, &theirs, Mode::Add)?;
                let one = full_like(&count, 1)?;
                let each = g.div(&apply(binary::Maximum, [&count, &one])?)?;
                (mine.mul(&each)?, theirs.mul(&gather(&each, dim, &idx)?)?)
            }
        };
        if !self.include_self {
            let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
            old = scatter(&old, dim, &idx, &zero, Mode::Set)?;
        }
        let mut out = Grads::new();
        out.push(cx.needs(0).then_some(old));
        out.push(None);
        out.push(match cx.needs(2) {
            true => Some(padded(source, &cx.input_meta(2)?.shape)?),
            false => None,
        });
        Ok(out)
    }
}

/// The part of a source that the index covers.
fn trimmed(mut src: Tensor, idx: &Tensor) -> Result<Tensor> {
    for d in 0..idx.ndim().min(src.ndim()) {
        if idx.size(d) < src.size(d) {
            src = src.slice_dim(d as i64, Some(0), Some(idx.size(d) as i64), 1)?;
        }
    }
    Ok(src)
}

impl Op for ScatterReduce {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            casts: false,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Scatter {
            dim: self.dim,
            mode: self.how.mode(),
        }
        .infer(x)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (old, idx, y) = (x[0], x[1], &y[0]);
        let counts = match self.how {
            Reduce::Mean => Some(crate::autograd::mode::with_grad(false, || {
                self.count(&full_like(&old.detach(), 0)?, idx)
            })?),
            _ => None,
        };
        // PyTorch's `index_reduce` rounds each step to a half type, its `scatter_reduce` all at once.
        let steps = self.name == "IndexReduceBackward0" && y.dtype().is_half();
        let apply_ = |mode: Mode, from: &Tensor, src: &Tensor| {
            let op = Scatter {
                dim: self.dim,
                mode,
            };
            match steps {
                true => op.one_by_one(&[from, idx, src], y),
                false => op.cpu(&[from, idx, src], std::slice::from_ref(y)),
            }
        };
        if self.include_self {
            apply_(self.how.mode(), old, x[2])?;
        } else {
            let start = Tensor::full(&[], self.how.identity(y.dtype()), y.dtype(), y.device())?;
            apply_(Mode::Set, old, &start)?;
            apply_(self.how.mode(), y, x[2])?;
        }
        if let Some(counts) = counts {
            let mean = crate::autograd::mode::with_grad(false, || {
                let sum = y.detach();
                match y.dtype().differentiable() {
                    true => sum.div(&counts),
                    false => floor_div(&sum, &counts),
                }
            })?;
            copy_host(&mean, y)?;
        }
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let (old, idx, src) = (x[0], x[1], x[2]);
        if old.dtype().is_complex() {
            return Ok(None);
        }
        let start = match self.include_self {
            true => old.clone(),
            false => {
                let none = self.how.identity(old.dtype());
                let none = Tensor::full(&[], none, old.dtype(), old.device())?;
                scatter(old, self.dim, idx, &none, Mode::Set)?
            }
        };
        let mut y = scatter(&start, self.dim, idx, src, self.how.mode())?;
        if self.how == Reduce::Mean {
            let counts = self.count(&full_like(old, 0)?, idx)?;
            y = match y.dtype().differentiable() {
                true => y.div(&counts)?,
                false => apply(binary::DivFloor, [&y, &counts])?,
            };
        }
        Ok(Some(SmallVec::from_elem(y, 1)))
    }
}

impl Batching for ScatterReduce {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.ndim(0) == 0 || x.ndim(1) == 0 {
            return Ok(None);
        }
        let (to, idx) = (x.with_slices(0)?, x.with_slices(1)?);
        let src = match (x.ndim(2), x.has(2)) {
            (0, false) => x.x[2].clone(),
            (0, true) => x.aligned(2, x.ndim(1))?.expand_to(idx.shape())?,
            _ => x.with_slices(2)?,
        };
        let many = ScatterReduce {
            dim: self.dim + 1,
            ..self.clone()
        };
        dispatch::call(many, &[&to, &idx, &src]).map(Some)
    }
}

/// Integer division towards minus infinity.
fn floor_div(x: &Tensor, by: &Tensor) -> Result<Tensor> {
    if !x.has_data() {
        return Ok(x.clone());
    }
    let (a, b) = (x.prepared(DType::I64)?, by.prepared(DType::I64)?);
    // SAFETY: contiguous host memory of this type, read only.
    let (a, b) = unsafe { (a.slice::<i64>(), b.slice::<i64>()) };
    let q: Vec<i64> = a
        .iter()
        .zip(b)
        .map(|(&a, &b)| a.wrapping_div(b) - ((a % b != 0) && ((a < 0) != (b < 0))) as i64)
        .collect();
    let q = Tensor::from_slice(&q, x.shape(), DType::I64)?;
    q.to_dtype(x.dtype())?.to_device(x.device())
}

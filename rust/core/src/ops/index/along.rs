//! One element for each index along a dimension, and its adjoint: what the gradients of selections
//! (`max`, `sort`, `topk`, `cummax`) are made of.

use super::scatter::gpu::{gather, scatter};
use super::scatter::{gather_along, lined, scatter_along};
use super::Mode;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::pool::parallel_chunks;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{lie_in, one, Cut, Derivative, Grads, Mask, Metas, Op, Part, Save, TensorMeta};
use crate::ops::shape::copy::copy_host;
use crate::tensor::Tensor;
use crate::transfer;
use smallvec::SmallVec;
use std::sync::Arc;

/// `y[.., j, ..] = x[.., index[.., j, ..], ..]`. Shapes agree but for `dim`; indices are valid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TakeAlong {
    pub dim: usize,
}

/// Zeros of size `size` along `dim`, to which each `g[.., j, ..]` is added at its index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PutAlong {
    pub dim: usize,
    pub size: usize,
}

impl Derivative for TakeAlong {
    fn name(&self) -> &'static str {
        "GatherBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        if let Some(g) = &g[0] {
            let size = cx.input_meta(0)?.shape.get(self.dim).copied().unwrap_or(1);
            out[0] = Some(g.put_along(self.dim, size, &cx.input(1)?)?);
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for TakeAlong {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(TakeAlong { dim: self.dim + 1 }))
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(
            x[1],
            0..x[0].shape().get(self.dim).copied().unwrap_or(1),
        ))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(x[1].shape(), x[0].dtype(), x[0].device());
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let index = x[1].prepared(DType::I64)?;
        gather_along(x[0], self.dim, &index, &y[0])
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let (of, all) = (x[1], [Part::Along(self.dim)]);
        let mut cuts = Cut::of_lines(x, self.dim, y);
        // An index may have less of the other dimensions.
        cuts.retain(|cut| matches!(cut.x[0], Part::Along(d) if of.size(d) == x[0].size(d)));
        if of.ndim() > 0 {
            cuts.push(Cut::new([Part::Whole, all[0]], all));
        }
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let [x, index, y] = [x[0], x[1], &y[0]].map(lined);
        transfer::ran(gather(gpu, &x, self.dim, &index, &y))
    }
}

impl Derivative for PutAlong {
    fn name(&self) -> &'static str {
        "ScatterAddBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        if let Some(g) = &g[0] {
            out[0] = Some(g.take_along(self.dim, &cx.input(1)?)?);
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for PutAlong {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(PutAlong {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        if let Some(n) = meta.shape.get_mut(self.dim) {
            *n = self.size;
        }
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (index, compute) = (x[1].prepared(DType::I64)?, x[0].dtype().compute());
        let add = |to: &Tensor| {
            // SAFETY: the bytes of a fresh tensor.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(to.bytes_ptr(), to.numel() * to.dtype().size())
            };
            parallel_chunks(bytes, 1, 1 << 18, |_, part| part.fill(0));
            scatter_along(to, self.dim, &index, &x[0].prepared(compute)?, Mode::Add)
        };
        if y[0].dtype() == compute {
            return add(&y[0]);
        }
        // Half types are added up in a wider one and round once.
        let wide = Tensor::empty(y[0].shape(), compute, y[0].device())?;
        add(&wide)?;
        copy_host(&wide, &y[0])
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        y[0].write_scalar(0.into())?;
        let [x, index, y] = [x[0], x[1], &y[0]].map(lined);
        transfer::ran(scatter(gpu, Mode::Add, &y, self.dim, &index, &x))
    }
}

impl Tensor {
    /// Elements at `index` along `dim`, of the index's shape.
    pub fn take_along(&self, dim: usize, index: &Tensor) -> Result<Tensor> {
        dispatch::call1(TakeAlong { dim }, &[self, index])
    }

    /// The adjoint of [`Tensor::take_along`] for an input of size `size` along `dim`.
    pub fn put_along(&self, dim: usize, size: usize, index: &Tensor) -> Result<Tensor> {
        dispatch::call1(PutAlong { dim, size }, &[self, index])
    }
}

/// The gradient of values that were picked at `index` along `dim` (dropped unless `keepdim`).
pub fn picked_gradient(
    cx: &Vjp,
    g: Option<&Tensor>,
    dim: usize,
    keepdim: bool,
    index: &Tensor,
) -> Result<Grads> {
    let Some(g) = g else {
        return Ok(SmallVec::from_elem(None, 1));
    };
    let shape = &cx.input_meta(0)?.shape;
    if shape.is_empty() {
        return one(g.clone());
    }
    let (g, index) = match keepdim {
        true => (g.clone(), index.clone()),
        false => {
            let mut kept = shape.clone();
            kept[dim] = 1;
            (g.reshape_to(&kept)?, index.reshape_to(&kept)?)
        }
    };
    one(g.put_along(dim, shape[dim], &index)?)
}

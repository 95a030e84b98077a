//! The adjoint of `as_strided`, for any pair of layouts over one storage.

use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::elements::Compute;
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dispatch::parts::by_parts;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Batching, Derivative, Grads, Mapped, Metas, Op, TensorMeta, Tensors, Traits};
use crate::ops::shape::copy::copy_host;
use crate::ops::shape::view::parts::each_offset;
use crate::tensor::Tensor;
use crate::transfer::dense;
use crate::with_compute;
use smallvec::SmallVec;

/// Adds the input, of `view`'s shape, into a buffer at `view`'s offsets, divides by how often
/// `shared` reaches each place, and reads the result through `base`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StridedAdjoint {
    view: Layout,
    base: Layout,
    shared: Option<Layout>,
}

impl Derivative for StridedAdjoint {
    fn name(&self) -> &'static str {
        "AsStridedBackward0Backward0"
    }
    /// Reading is the transpose of adding, so the derivative is this op with its ends exchanged.
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let op = StridedAdjoint {
            view: self.base.clone(),
            base: self.view.clone(),
            shared: self.shared.clone(),
        };
        Ok(SmallVec::from_elem(Some(dispatch::call1(op, &[g])?), 1))
    }
}

impl Op for StridedAdjoint {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(&self.base.shape, x[0].dtype(), x[0].device());
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].dtype().is_complex() {
            return by_parts(self, x, &[0], &y[0]);
        }
        let y = &y[0];
        let extent = self.view.extent()?.max(self.base.extent()?);
        let start = self.view.offset.min(self.base.offset).min(extent);
        let dtype = y.dtype().compute();
        with_compute!(dtype, T => {
            let x = x[0].prepared(dtype)?;
            // SAFETY: contiguous host memory of this type, read only.
            let values = unsafe { x.slice::<T>() };
            let read = accumulate(values, &self.view, &self.base, self.shared.as_ref(), start, extent);
            let read = Tensor::from_slice(&read, y.shape(), dtype)?;
            copy_host(&read, y)?;
        });
        Ok(())
    }

    fn traits(&self) -> Traits {
        Traits {
            linear: &[0],
            ..Traits::NONE
        }
    }

    /// As [`accumulate`]: parts of the view that do not overlap themselves, one after another.
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (g, y) = (dense(gpu, x[0])?, &y[0]);
        let extent = self.view.extent()?.max(self.base.extent()?);
        let start = self.view.offset.min(self.base.offset).min(extent);
        let from = |layout: &Layout| Layout {
            offset: layout.offset - start,
            ..layout.clone()
        };
        let room = Tensor::zeros(&[extent - start], y.dtype(), y.device())?;
        let mut parts = Vec::new();
        if y.dtype().is_complex() || !apart(&from(&self.view), g.layout(), &mut parts)? {
            return Ok(false);
        }
        for (to, part) in parts {
            let to = room.alias(to);
            to.write_from(&to.add(&g.alias(part))?)?;
        }
        let mut read = room.alias(from(&self.base));
        if let Some(shared) = &self.shared {
            let mut count = alloc::full(0.0f32, extent - start);
            each_offset(shared, |o| {
                if let Some(c) = count.get_mut(o - start) {
                    *c += 1.0;
                }
            });
            let count = Tensor::from_slice(&count, &[count.len()], DType::F32)?;
            let count = count.to(y.dtype(), y.device(), false, None)?;
            read = read.div(&count.alias(from(&self.base)))?;
        }
        y.write_from(&read).map(|()| true)
    }
}

impl Batching for StridedAdjoint {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let layouts = [Some(&self.view), Some(&self.base), self.shared.as_ref()];
        let mut step = 0;
        for layout in layouts.into_iter().flatten() {
            step = step.max(layout.extent()?);
        }
        let many = |l: &Layout| l.of_many(x.size, step as isize);
        let all = StridedAdjoint {
            view: many(&self.view),
            base: many(&self.base),
            shared: self.shared.as_ref().map(many),
        };
        x.call(all).map(Some)
    }
}

/// Parts that a GPU adds one after another.
const MOST_PARTS: usize = 4096;

/// Cuts a view, and what is added to it, into parts that show no element twice; `false` where they
/// are too many.
fn apart(view: &Layout, of: &Layout, parts: &mut Vec<(Layout, Layout)>) -> Result<bool> {
    if !view.overlaps_itself() {
        parts.push((view.clone(), of.clone()));
        return Ok(parts.len() <= MOST_PARTS);
    }
    let long = (0..view.shape.len()).filter(|&d| view.shape[d] > 1);
    let Some(d) = long.min_by_key(|&d| view.shape[d]) else {
        return Ok(false);
    };
    for i in 0..view.shape[d] as i64 {
        let cut = |layout: &Layout| layout.narrow(d as i64, i, 1);
        if !apart(&cut(view)?, &cut(of)?, parts)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn accumulate<T: Compute + Lane>(
    values: &[T],
    view: &Layout,
    base: &Layout,
    shared: Option<&Layout>,
    start: usize,
    extent: usize,
) -> Vec<T> {
    let mut buffer = alloc::full(T::default(), extent - start);
    let mut i = 0;
    each_offset(view, |o| {
        buffer[o - start] = buffer[o - start].plus(values[i]);
        i += 1;
    });
    if let Some(shared) = shared {
        let mut count = alloc::full(0u32, extent - start);
        each_offset(shared, |o| {
            if let Some(c) = count.get_mut(o - start) {
                *c += 1;
            }
        });
        for (b, &c) in buffer.iter_mut().zip(&count) {
            if c > 1 {
                *b = T::of_f64(b.to_f64() / c as f64);
            }
        }
    }
    let mut out = alloc::room(base.numel());
    each_offset(base, |o| out.push(buffer[o - start]));
    out
}

/// The adjoint of viewing a tensor of layout `base` through `view` (both over one storage): sums
/// `g` of the view's shape into a tensor of the base's shape. Where the base itself shows one
/// element several times, they share its gradient evenly.
pub fn strided_adjoint(g: &Tensor, view: &Layout, base: &Layout) -> Result<Tensor> {
    let shared = base.overlaps_itself().then(|| base.clone());
    dispatch::call1(
        StridedAdjoint {
            view: view.clone(),
            base: base.clone(),
            shared,
        },
        &[g],
    )
}

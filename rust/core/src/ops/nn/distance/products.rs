//! Vector and Kronecker products of plain tensors, in one pass.

use super::to_last;
use crate::autograd::jvp::along;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::host;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::pointwise::Float;
use crate::per_isa;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;

/// Results below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 15;

per_isa! {
    fn cross_rows[T: Float](x: &[T], y: &[T], out: &mut [T]) {
        for ((x, y), out) in x.chunks_exact(3).zip(y.chunks_exact(3)).zip(out.chunks_exact_mut(3)) {
            out[0] = x[1] * y[2] - x[2] * y[1];
            out[1] = x[2] * y[0] - x[0] * y[2];
            out[2] = x[0] * y[1] - x[1] * y[0];
        }
    }
}

/// The vector product of rows of three numbers, of one type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cross;

impl Derivative for Cross {
    fn name(&self) -> &'static str {
        "LinalgCrossBackward0"
    }
    fn save(&self, needs: Mask) -> Save {
        Save {
            inputs: (needs & 1) << 1 | (needs & 2) >> 1,
            outputs: 0,
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let product = |x: &Tensor, y: &Tensor| super::cross("linalg.cross", x, y, Some(-1));
        let mut grads = Grads::from_elem(None, 2);
        if cx.needs(0) {
            grads[0] = Some(product(&cx.input(1)?, g)?);
        }
        if cx.needs(1) {
            grads[1] = Some(product(g, &cx.input(0)?)?);
        }
        Ok(grads)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        match cx.product(self, &[0, 1])? {
            Some(t) => along(t),
            None => Ok(None),
        }
    }
}

impl Op for Cross {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        match x[0].dtype() {
            DType::F64 => crossed::<f64>(x, &y[0]),
            _ => crossed::<f32>(x, &y[0]),
        }
    }
}

fn crossed<T: Float>(x: &[&Tensor], out: &Tensor) -> Result<()> {
    let (x, y) = (x[0].prepared(T::DTYPE)?, x[1].prepared(T::DTYPE)?);
    // SAFETY: contiguous host memory of this type.
    let (x, y) = unsafe { (x.slice::<T>(), y.slice::<T>()) };
    let to = Ptr::new(out.ptr::<T>());
    parallel_for(x.len() / 3, GRAIN / 3, |rows| {
        let part = rows.start * 3..rows.end * 3;
        // SAFETY: the result is as large as either, and each range has its own part of it.
        cross_rows(&x[part.clone()], &y[part.clone()], unsafe { to.part(part) });
    });
    Ok(())
}

/// Whether both are floats of one type in host memory, and nobody looks at what is called on them.
fn plain(x: [&Tensor; 2]) -> bool {
    let dtype = x[0].dtype();
    let fits = |t: &Tensor| t.device() == Device::Cpu && t.is_readable() && t.dtype() == dtype;
    matches!(dtype, DType::F32 | DType::F64) && !dispatch::heeded(&x) && x.into_iter().all(fits)
}

/// The vector product along a dimension of tensors of one type and shape; `None` where another way must be taken.
pub(super) fn cross(x: &Tensor, y: &Tensor, dim: usize) -> Option<Result<Tensor>> {
    let last = dim + 1 == x.ndim();
    // Gradients of what is moved would lie as that does.
    let recorded = dispatch::recorded(&[x, y]);
    (plain([x, y]) && (last || !recorded)).then(|| {
        if last {
            return dispatch::call1(Cross, &[x, y]);
        }
        let (x, y) = (to_last(x, dim)?, to_last(y, dim)?);
        let z = dispatch::call1(Cross, &[&x, &y])?;
        z.movedim(&[-1], &[dim as i64])?.contiguous()
    })
}

/// Numbers that are multiplied at a time.
const PART: usize = 16;

per_isa! {
    /// All of `y`, whose length is a multiple of [`PART`], times each of `x`.
    fn outer_row[T: Float](x: &[T], y: &[T], out: &mut [T]) {
        for (&x, out) in x.iter().zip(out.chunks_exact_mut(y.len())) {
            for (y, out) in y.chunks_exact(PART).zip(out.chunks_exact_mut(PART)) {
                for i in 0..PART {
                    out[i] = x * y[i];
                }
            }
        }
    }
}

/// The Kronecker product of two matrices of which nobody keeps a history; `None` where another way must be
/// taken.
pub(super) fn kron(x: &Tensor, y: &Tensor) -> Option<Result<Tensor>> {
    let recorded = dispatch::recorded(&[x, y]);
    let matrix = |t: &Tensor| t.ndim() == 2 && t.numel() > 0;
    if recorded || !matrix(x) || !matrix(y) || !plain([x, y]) {
        return None;
    }
    y.size(1).is_multiple_of(PART).then(|| match x.dtype() {
        DType::F64 => outer_rows::<f64>(x, y),
        _ => outer_rows::<f32>(x, y),
    })
}

fn outer_rows<T: Float>(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (n, m) = (x.size(1), y.size(1));
    let (high, low) = (x.size(0), y.size(0));
    let out = Tensor::empty(&[high * low, n * m], T::DTYPE, x.device())?;
    let (x, y) = (x.prepared(T::DTYPE)?, y.prepared(T::DTYPE)?);
    // SAFETY: contiguous host memory of this type.
    let (x, y) = unsafe { (x.slice::<T>(), y.slice::<T>()) };
    let to = Ptr::new(out.ptr::<T>());
    host::unlocked(|| {
        parallel_for(high * low, GRAIN / (n * m) + 1, |rows| {
            for row in rows {
                let (i, k) = (row / low, row % low);
                // SAFETY: each row of the result is written by one range.
                let out = unsafe { to.part(row * n * m..(row + 1) * n * m) };
                outer_row(&x[i * n..(i + 1) * n], &y[k * m..(k + 1) * m], out);
            }
        });
    });
    Ok(out)
}

//! What masks select: `nonzero`, `masked_fill`, `masked_select`, `masked_scatter`.

use super::{Bounds, IndexPut, Mode, Ready};
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Acc;
use crate::op::{Derivative, Grads, Metas, Op, Save, TensorMeta};
use crate::ops::copy::copy_host;
use crate::ops::pointwise::wgsl::launch;
use crate::ops::pointwise::Real;
use crate::ops::view::parts::each_offset;
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{ensure, with_element};
use smallvec::SmallVec;

/// Positions in row-major order of the elements that are not zero.
fn positions(x: &Tensor) -> Result<Vec<usize>> {
    let x = x.to_host()?.prepared(x.dtype())?;
    let mut out = Vec::new();
    with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type, read only.
        for (i, v) in unsafe { x.slice::<T>() }.iter().enumerate() {
            if Element::to_f64(*v) != 0.0 {
                out.push(i);
            }
        }
    });
    Ok(out)
}

/// Coordinate `d` of each position in a tensor of this shape.
fn coordinate<'a>(at: &'a [usize], shape: &[usize], d: usize) -> impl Iterator<Item = i64> + 'a {
    let (n, step) = (
        shape[d].max(1),
        shape[d + 1..].iter().product::<usize>().max(1),
    );
    at.iter().map(move |&p| (p / step % n) as i64)
}

/// The coordinates of elements that are not zero, one tensor for each dimension.
pub fn nonzero_columns(x: &Tensor) -> Result<Vec<Tensor>> {
    let at = positions(x)?;
    (0..x.ndim())
        .map(|d| {
            let column: Vec<i64> = coordinate(&at, x.shape(), d).collect();
            Tensor::from_slice(&column, &[at.len()], DType::I64)?.to_device(x.device())
        })
        .collect()
}

/// `nonzero`: one row of coordinates for each element that is not zero. The rows of the result
/// are the fast dimension in memory, as in PyTorch.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    let (at, k) = (positions(x)?, x.ndim());
    let mut all = Vec::with_capacity(at.len() * k);
    for &p in &at {
        let mut rest = p;
        let first = all.len();
        all.resize(first + k, 0i64);
        for d in (0..k).rev() {
            all[first + d] = (rest % x.size(d)) as i64;
            rest /= x.size(d);
        }
    }
    Tensor::from_slice(&all, &[at.len(), k], DType::I64)?.to_device(x.device())
}

/// `x` where the mask is false, the value elsewhere: inputs are the tensor, mask, 0-d value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaskedFill;

impl Derivative for MaskedFill {
    fn name(&self) -> &'static str {
        "MaskedFillBackward0"
    }
    fn save(&self, _needs: u64) -> Save {
        Save::inputs(0b010)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let mask = cx.input(1)?;
        let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
        let mut out = Grads::new();
        out.push(match cx.needs(0) {
            true => Some(dispatch::call1(MaskedFill, &[g, &mask, &zero])?),
            false => None,
        });
        out.push(None);
        out.push(match cx.needs(2) {
            true => {
                let kept = masked_select(g, &mask)?;
                Some(kept.sum_mask(&[true], false, Some(g.dtype()))?)
            }
            false => None,
        });
        Ok(out)
    }
}

impl Op for MaskedFill {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        ensure!(
            x[1].dtype() == DType::Bool,
            Runtime,
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            x[1].dtype().c_name()
        );
        ensure!(
            x[2].ndim() == 0,
            Runtime,
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} \
             dimension(s).",
            x[2].ndim()
        );
        let shape = shape::broadcast(x[0].shape(), x[1].shape())?;
        Ok(SmallVec::from_elem(
            TensorMeta {
                shape,
                ..TensorMeta::of(x[0])
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (old, mask, y) = (x[0], x[1], &y[0]);
        if !(old.shares_storage(y) && old.layout() == y.layout()) {
            copy_host(old, y)?;
        }
        if y.numel() == 0 {
            return Ok(());
        }
        let value = x[2].prepared(y.dtype())?;
        let layout = mask.layout().expand_to(y.shape());
        let (m, mask_row) = (mask.bytes_ptr() as usize, row(&layout));
        let out_row = row(y.layout());
        let (lead, inner) = (out_row.0, out_row.1);
        let to = y.bytes_ptr() as usize;
        with_element!(y.dtype(), T => {
            // SAFETY: the value has one element of the result's type.
            let v = unsafe { *value.ptr::<T>() };
            let mut starts = Vec::with_capacity(lead.numel());
            each_offset(&lead, |o| starts.push(o));
            let mut masks = Vec::with_capacity(starts.len());
            each_offset(&mask_row.0, |o| masks.push(o));
            let (n, step) = inner;
            let mask_step = mask_row.1 .1;
            crate::cpu::pool::parallel_for(starts.len(), (1 << 15) / n.max(1) + 1, |range| {
                for i in range {
                    let (from, to) = (m + masks[i], to as *mut T);
                    for j in 0..n {
                        // SAFETY: both offsets lie within their layouts; rows are disjoint.
                        unsafe {
                            if *((from + j * mask_step) as *const u8) != 0 {
                                *to.add(starts[i] + j * step) = v;
                            }
                        }
                    }
                }
            });
        });
        Ok(())
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = Acc::of(y[0].dtype())?;
        launch(acc, x, &y[0], |a| {
            Real::select(a[1].equal(Real::lit(0.0)), a[0], a[2])
        })
    }

    fn pointwise(&self) -> bool {
        true
    }
}

/// A layout's leading dimensions (from offset 0 of its tensor), and size and step of the last one.
fn row(layout: &crate::layout::Layout) -> (crate::layout::Layout, (usize, usize)) {
    let mut lead = layout.clone();
    let n = lead.shape.pop().unwrap_or(1);
    let step = lead.strides.pop().unwrap_or(0) as usize;
    lead.offset = 0;
    (lead, (n, step))
}

/// `masked_fill_`.
pub fn masked_fill_(x: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    let value = value.to_device(x.device())?;
    dispatch::call_into(MaskedFill, &[x, mask, &value], x, true)?;
    Ok(())
}

/// `masked_select`: the elements where the mask is true, in row-major order.
pub fn masked_select(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    ensure!(
        mask.dtype() == DType::Bool,
        Runtime,
        "masked_select: expected BoolTensor for mask"
    );
    let shape = shape::broadcast(x.shape(), mask.shape())?;
    let at = positions(&mask.alias(mask.layout().expand_to(&shape)))?;
    let flat = x.expand_to(&shape)?.reshape(&[-1])?;
    let at: Vec<i64> = at.into_iter().map(|p| p as i64).collect();
    let at = Tensor::from_slice(&at, &[at.len()], DType::I64)?.to_device(x.device())?;
    let ready = Ready {
        dims: SmallVec::from_elem(0, 1),
        idx: vec![at],
    };
    flat.index_ready(ready, "MaskedSelectBackward0", Bounds::Wrap)
}

/// What `masked_scatter` writes and where: the op and its inputs beyond the tensor itself.
pub fn masked_scatter_parts(
    shape: &[usize],
    mask: &Tensor,
    source: &Tensor,
) -> Result<(IndexPut, Tensor, Vec<Tensor>)> {
    ensure!(
        matches!(mask.dtype(), DType::Bool),
        Runtime,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype().scalar_name()
    );
    let mask = mask.alias(mask.layout().expand_to(shape));
    // A 0-d tensor is indexed as one with a dimension of one element.
    let mask = if mask.ndim() == 0 {
        mask.reshape(&[1])?
    } else {
        mask
    };
    let columns = nonzero_columns(&mask)?;
    let n = columns[0].numel();
    ensure!(
        source.numel() >= n,
        Runtime,
        "Number of elements of source < number of ones in mask"
    );
    let values = source
        .reshape(&[-1])?
        .slice_dim(0, Some(0), Some(n as i64), 1)?;
    let op = IndexPut {
        dims: (0..mask.ndim()).collect(),
        mode: Mode::Set,
        bounds: Bounds::Wrap,
        name: "MaskedScatterBackward0",
    };
    Ok((op, values, columns))
}

/// The shape that a tensor and its mask broadcast to.
pub fn masked_shape(x: &Tensor, mask: &Tensor) -> Result<Dims> {
    shape::broadcast(x.shape(), mask.shape())
}

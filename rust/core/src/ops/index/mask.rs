//! Operators on masks: `nonzero`, `masked_fill`, `masked_select`, `masked_scatter`.

use super::{search, Bounds, IndexPut, Mode, Ready};
use crate::alloc;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::bits::Bits;
use crate::cpu::elements::Element;
use crate::cpu::pointwise::chain::{erased, Body, Loop};
use crate::cpu::pointwise::{Kernel, GRAIN, MAX_INPUTS};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};
use crate::meta::Meta;
use crate::op::{
    Batching, Derivative, Fusion, Grads, Mapped, Metas, Op, Rare, Repeats, Save, TensorMeta,
    Tensors, Traits,
};
use crate::ops::index::scatter;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::{DivFloor, Remainder};
use crate::ops::pointwise::gpu::launch;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::types::{fits, held};
use crate::ops::pointwise::Real;
use crate::ops::shape::copy::copy_host;
use crate::ops::shape::view::parts::each_offset;
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{ensure, per_isa, with_element};
use smallvec::SmallVec;

/// Whether a GPU finds where elements are true by itself.
fn counts_there(x: &Tensor) -> bool {
    x.device().is_gpu() && !x.dtype().is_complex() && (1..1 << 31).contains(&x.numel())
}

/// The bits of a tensor's elements in row-major order.
fn bits(x: &Tensor) -> Result<Bits> {
    let dtype = match x.dtype().is_complex() {
        true => DType::Bool,
        false => x.dtype(),
    };
    Bits::of(&x.to_host()?.prepared(dtype)?)
}

/// The coordinates of elements that are not zero, one tensor for each dimension.
pub fn nonzero_columns(x: &Tensor) -> Result<Vec<Tensor>> {
    columns_as("NonzeroNumpyBackward0", x)
}

/// [`nonzero_columns`] as a function of this name.
pub fn columns_as(name: &'static str, x: &Tensor) -> Result<Vec<Tensor>> {
    dispatch::function(name, (), &[x], |_, x| columns(x[0]))
}
/// Columns of `n` coordinates, where nobody knows how many there are.
pub fn unknown_columns(x: &Tensor, n: usize) -> Result<Vec<Tensor>> {
    let column = |_| Tensor::empty(&[n], DType::I64, x.device());
    (0..x.ndim()).map(column).collect()
}

/// The coordinates of places in row-major order along dimension `d`, int64.
fn coordinates(places: &Tensor, shape: &[usize], d: usize) -> Result<Tensor> {
    let number = |n: usize| Tensor::full(&[], (n as i64).into(), DType::I32, places.device());
    let rows = apply(
        DivFloor,
        [places, &number(shape[d + 1..].iter().product())?],
    )?;
    apply(Remainder, [&rows, &number(shape[d])?])?.to_dtype(DType::I64)
}

fn columns(x: &Tensor) -> Result<Vec<Tensor>> {
    if counts_there(x) {
        let places = search::places(x)?;
        return (0..x.ndim())
            .map(|d| coordinates(&places, x.shape(), d))
            .collect();
    }
    let bits = bits(x)?;
    let columns: Vec<Tensor> = (0..x.ndim())
        .map(|_| Tensor::empty(&[bits.count()], DType::I64, Device::Cpu))
        .collect::<Result<_>>()?;
    let outs: Vec<*mut i64> = columns.iter().map(Tensor::ptr::<i64>).collect();
    // SAFETY: each column has room for all.
    unsafe { bits.coordinates(x.shape(), &outs, 1) };
    columns.iter().map(|c| c.to_device(x.device())).collect()
}

/// `nonzero`: one row of coordinates for each element that is not zero.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    dispatch::function("NonzeroBackward0", (), &[x], |_, x| rows(x[0]))
}

fn rows(x: &Tensor) -> Result<Tensor> {
    if counts_there(x) && x.ndim() > 0 {
        return Ok(turned(&crate::ops::shape::join::stack(&columns(x)?, 0)?));
    }
    let (bits, k) = (bits(x)?, x.ndim());
    let n = bits.count();
    let y = Tensor::empty(&[k, n], DType::I64, Device::Cpu)?;
    let outs: Vec<*mut i64> = (0..k).map(|d| y.ptr::<i64>().wrapping_add(d * n)).collect();
    // SAFETY: the columns have room for all.
    unsafe { bits.coordinates(x.shape(), &outs, 1) };
    Ok(turned(&y.to_device(x.device())?))
}

/// The transpose, in the same memory: PyTorch's coordinates lie dimension by dimension.
fn turned(y: &Tensor) -> Tensor {
    let mut layout = y.layout().clone();
    layout.shape.reverse();
    layout.strides = [1, y.size(1) as isize].into_iter().collect();
    y.alias(layout)
}

/// The elements of `x` where the mask of the same shape is true, in row-major order; without
/// history.
pub fn compressed(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let (name, x) = ("MaskedSelectBackward0", x.detach());
    dispatch::function(name, (), &[&x, mask], |_, x| taken(x[0], x[1]))
}

fn taken(x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    if counts_there(mask) && x.device() == mask.device() {
        return x
            .detach()
            .reshape(&[-1])?
            .index_select(0, &search::places(mask)?);
    }
    let (x, bits) = (x.detach().contiguous()?, bits(mask)?);
    let y = Tensor::empty(&[bits.count()], x.dtype(), Device::Cpu)?;
    // SAFETY: `x` has an element for each bit, and the fresh result one for each bit that is set.
    unsafe { bits.compress(x.dtype().size(), x.bytes_ptr(), y.bytes_ptr()) };
    Ok(y)
}

/// Whether what is selected of `x` can be moved without a place in a graph.
pub fn is_plain(x: &Tensor) -> bool {
    x.device() == Device::Cpu && !dispatch::recorded(&[x]) && !x.stands()
}

/// `x` where the mask is false, the value elsewhere: inputs are the tensor, mask, 0-d value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaskedFill;

impl Derivative for MaskedFill {
    fn name(&self) -> &'static str {
        "MaskedFillBackward0"
    }
    fn save(&self, _needs: u64) -> Save {
        Save::inputs([1])
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
                Some(kept.sum_mask([0].into(), false, Some(g.dtype()))?)
            }
            false => None,
        });
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0, 2])
    }
}

impl Op for MaskedFill {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            rare: Rare::ALL,
            repeats: Repeats::Changes,
            ..Traits::POINTWISE
        }
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
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
        let same = old.shares_storage(y) && old.layout() == y.layout();
        // One pass where rows lie alike, else a copy is changed.
        let dense = old.dtype() == y.dtype()
            && old.shape() == y.shape()
            && old.is_contiguous()
            && y.is_contiguous();
        if !same && !dense {
            copy_host(old, y)?;
        }
        if y.numel() == 0 {
            return Ok(());
        }
        let old = if dense { old } else { y };
        let value = x[2].prepared(y.dtype())?;
        let layout = mask.layout().expand_to(y.shape());
        let m = Ptr::new(mask.bytes_ptr());
        with_element!(scatter::bits(y.dtype()), T => {
            let (from, to) = (Ptr::new(old.ptr::<T>()), Ptr::new(y.ptr::<T>()));
            // SAFETY: the value has one element of the result's size.
            let v = unsafe { *value.ptr::<T>() };
            if dense && layout.is_contiguous() {
                parallel_for(y.numel(), 1 << 15, |r| {
                    // SAFETY: all three have as many elements; ranges are disjoint.
                    unsafe {
                        let (from, to) = (from.at(r.start), to.at(r.start));
                        fill_run(from, m.at(r.start), to, r.len(), v);
                    }
                });
                return Ok(());
            }
            let (lead, (n, step)) = row(y.layout());
            let (mask_lead, (_, mask_step)) = row(&layout);
            let mut starts = alloc::room(lead.numel());
            each_offset(&lead, |o| starts.push(o));
            let mut masks = alloc::room(starts.len());
            each_offset(&mask_lead, |o| masks.push(o));
            parallel_for(starts.len(), (1 << 15) / n.max(1) + 1, |range| {
                for i in range {
                    // SAFETY: both offsets lie within their layouts, and `old` lies as `y` does;
                    // rows are disjoint.
                    unsafe {
                        let (from, to) = (from.at(starts[i]), to.at(starts[i]));
                        let m = m.at(masks[i]);
                        if step == 1 && mask_step == 1 {
                            fill_run(from, m, to, n, v);
                            continue;
                        }
                        for j in 0..n {
                            if *m.add(j * mask_step) != 0 {
                                *to.add(j * step) = v;
                            } else if dense {
                                *to.add(j * step) = *from.add(j * step);
                            }
                        }
                    }
                }
            });
        });
        Ok(())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = Acc::of(y[0].dtype())?;
        launch(gpu, acc, x, &y[0], &|a| {
            Real::select(a[1].equal(Real::lit(0.0)), a[0], a[2])
        })
    }

    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
}

impl Batching for MaskedFill {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let ndim = x.ndim(0).max(x.ndim(1));
        let (t, mask) = (x.aligned(0, ndim)?, x.aligned(1, ndim)?);
        let y = match x.has(2) {
            false => dispatch::call1(MaskedFill, &[&t, &mask, &x.x[2]])?,
            true => where_(&mask, &x.aligned(2, ndim)?.to_dtype(t.dtype())?, &t)?,
        };
        Ok(Some(Tensors::from_buf([y])))
    }
}

impl Fusion for MaskedFill {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        let dtype = x[0].dtype();
        // Others would lose bits of what is only moved.
        let kernel = match dtype {
            DType::F32 => erased(chosen::<f32>()),
            DType::F64 => erased(chosen::<f64>()),
            DType::I64 => erased(chosen::<i64>()),
            _ => return None,
        };
        let mut numbers = [None; MAX_INPUTS];
        numbers[2] = Some(dtype);
        Some(Loop {
            compute: dtype,
            body: Body::Kernel(kernel, std::ptr::null()),
            numbers,
            grain: GRAIN,
        })
    }
}

per_isa! {
    /// What the third operand has where the second is not zero, the first elsewhere.
    fn chosen[T: Element] -> Kernel<T> = (_p: *const (), x: *const *const T, y: *mut T, n: usize) {
        // SAFETY: the caller gives three operands of `n` elements and room for `n`.
        unsafe {
            let (from, mask, value) = (*x, *x.add(1), *x.add(2));
            for i in 0..n {
                let (a, b) = (*from.add(i), *value.add(i));
                *y.add(i) = if (*mask.add(i)).to_f32() != 0.0 { b } else { a };
            }
        }
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

per_isa! {
    unsafe fn fill_run[T: Element](from: *const T, mask: *const u8, to: *mut T, n: usize, v: T) {
        // SAFETY: the three have `n` elements; `from` is `to` or apart from it.
        unsafe {
            for i in 0..n {
                let x = *from.add(i);
                *to.add(i) = if *mask.add(i) != 0 { v } else { x };
            }
        }
    }
}

/// A 0-d value of another type as `x` can hold it.
pub fn fitting(x: &Tensor, value: &Tensor) -> Result<Tensor> {
    match value.requires_grad() {
        true => {
            fits(&value.detach(), x.dtype())?;
            value.to_dtype(x.dtype())
        }
        // Not detached: a recorder knows a number by itself.
        false => {
            fits(value, x.dtype())?;
            held(value, x.dtype())
        }
    }
}

/// `masked_fill_`.
pub fn masked_fill_(x: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    let value = value.apart_from(x)?.to_device(x.device())?;
    if x.dtype().is_complex() {
        return x.copy_from(&where_(mask, &value.to_dtype(x.dtype())?, x)?);
    }
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
    let mask = mask.alias(mask.layout().expand_to(&shape));
    if is_plain(x) && mask.device() == x.device() {
        return compressed(&x.detach().expand_to(&shape)?, &mask);
    }
    let at = nonzero_columns(&mask.reshape(&[-1])?)?.swap_remove(0);
    let flat = x.expand_to(&shape)?.reshape(&[-1])?;
    let at = at.to_device(x.device())?;
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
    let columns = match mask.has_data() {
        true => nonzero_columns(&mask)?,
        // As many as there may be.
        false => unknown_columns(&mask, source.numel())?,
    };
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
        repeats: Repeats::Refused,
        name: "MaskedScatterBackward0",
    };
    Ok((op, values, columns))
}

/// The shape that a tensor and its mask broadcast to.
pub fn masked_shape(x: &Tensor, mask: &Tensor) -> Result<Dims> {
    shape::broadcast(x.shape(), mask.shape())
}

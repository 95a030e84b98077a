//! Tensors from nothing: `empty`, `zeros`, `full` and their like.

use crate::arg;
use crate::autograd::{mode, Jvp, Tangents, Vjp};
use crate::cpu::non_temporal;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::{default_device, Device};
use crate::dispatch;
use crate::dtype::{check_range, default_dtype, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::{packed_strides, Layout, CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::meta::Meta;
use crate::op::{Derivative, Fast, Grads, Metas, Op, Rare, Repeats, TensorMeta, Traits};
use crate::schema::{Args, At, Dest, MemoryFormat, Signature, Value};
use crate::shape::{self, Dims, Show, Strides};
use crate::storage::Storage;
use crate::tensor::{byte_count, Tensor};
use crate::{bail, ensure, host, with_element};
use smallvec::SmallVec;
use std::sync::Arc;

/// The keyword arguments that every factory takes: `dtype`, `layout`, `device`, `pin_memory`,
/// `requires_grad`.
pub struct Options {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
    pub requires_grad: bool,
}

impl Options {
    /// Reads them. Host memory needs no pinning: `pin_memory` is accepted.
    pub fn read<Sig: Signature>(a: &Args<Sig>) -> Result<Options> {
        let at = arg!(requires_grad);
        let requires_grad = !a.is_none(at) && a.bool(at)?;
        Ok(Options {
            dtype: a.dtype(arg!(dtype)),
            device: a.device(arg!(device)),
            requires_grad,
        })
    }

    /// The type asked for, that of `out=`, or `default`.
    pub fn dtype_or(&self, a: &Args, default: impl FnOnce() -> DType) -> Result<DType> {
        match (a.dest, self.dtype) {
            (Dest::Out(out), Some(d)) => {
                ensure!(
                    out[0].dtype() == d,
                    Runtime,
                    "{}(): dtype {} does not match dtype of out parameter ({})",
                    a.schema.name,
                    d.scalar_name(),
                    out[0].dtype().scalar_name()
                );
                Ok(d)
            }
            (Dest::Out(out), None) => Ok(out[0].dtype()),
            (_, Some(d)) => Ok(d),
            (_, None) => Ok(default()),
        }
    }

    pub fn device_or(&self, a: &Args) -> Device {
        match a.dest {
            Dest::Out(out) => out[0].device(),
            _ => self.device.unwrap_or_else(default_device),
        }
    }

    /// Brings a new tensor to where it goes.
    pub fn give(&self, a: &Args, y: Tensor) -> Result<Value> {
        if let Dest::Out(out) = a.dest {
            out[0].check_inplace(false)?;
            return Ok(dispatch::deliver(&y, &out[0])?.into());
        }
        if self.requires_grad {
            y.require_grad()?;
        }
        Ok(Value::Tensor(y))
    }
}

/// Strides of a memory format for a shape. `Preserve` has none of its own.
pub fn format_strides(shape: &[usize], format: MemoryFormat) -> Result<Strides> {
    let (order, name): (&[usize], &str) = match format {
        MemoryFormat::ChannelsLast => (&CHANNELS_LAST, "channels_last"),
        MemoryFormat::ChannelsLast3d => (&CHANNELS_LAST_3D, "channels_last_3d"),
        MemoryFormat::Contiguous => return Ok(crate::layout::contiguous_strides(shape)),
        MemoryFormat::Preserve => bail!(Runtime, "unsupported memory format Preserve"),
    };
    let rank = order.len();
    ensure!(
        shape.len() == rank,
        Runtime,
        "required rank {rank} tensor to use {name} format, got sizes {}",
        Show(shape)
    );
    Ok(packed_strides(shape, order))
}

/// Strides without gaps that keep the order in which the dimensions of `layout` lie in memory.
pub fn dense_strides(layout: &Layout) -> Strides {
    if layout.is_dense() && !layout.shape.contains(&0) {
        return layout.strides.clone();
    }
    // Dimensions are moved inwards past larger strides; those of stride 0 or equal stay put.
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).rev().collect();
    let inner = |a: usize, b: usize| -> Option<bool> {
        let (x, y) = (layout.strides[a], layout.strides[b]);
        if x == 0 || y == 0 {
            None
        } else if x != y {
            Some(x < y)
        } else if layout.shape[a] > layout.shape[b] {
            Some(false)
        } else {
            None
        }
    };
    for i in 1..order.len() {
        let mut at = i;
        for j in (0..i).rev() {
            match inner(order[at], order[j]) {
                Some(true) => {
                    order.swap(at, j);
                    at = j;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    packed_strides(&layout.shape, &order)
}

/// One value everywhere. The gradient of what was there before is zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    pub value: Scalar,
    pub name: &'static str,
}

impl Derivative for Fill {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        zero_grads(g, 1)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        Ok(Some(Tangents::from_elem(None, cx.inputs())))
    }
}

impl Op for Fill {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            repeats: Repeats::Alike,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, _x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_scalar(self.value)
    }
    fn gpu(&self, _gpu: &Gpu, _x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        y[0].write_scalar(self.value).map(|()| true)
    }
    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }
}

impl Fast for Fill {
    fn call_into(&self, _x: &[&Tensor], y: &Tensor) -> Result<bool> {
        let small = super::copy::is_small(y);
        if small {
            y.write_scalar(self.value)?;
        }
        Ok(small)
    }
}

/// A new tensor of one value, one for each slice where the input is of slices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Blank {
    shape: Dims,
    value: Scalar,
    dtype: DType,
    device: Device,
    /// Whether it lies in memory as the input does.
    like: bool,
}

impl Derivative for Blank {
    fn name(&self) -> &'static str {
        "NewFullBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(Grads::from_elem(None, 1))
    }
}

impl Op for Blank {
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            detached: 1,
            ..Traits::NONE
        }
    }
    fn infer(&self, _x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(&self.shape, self.dtype, self.device);
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        (self.like && x[0].shape() == &y.shape).then(|| {
            let mut layout = Layout::contiguous(&y.shape);
            layout.strides = dense_strides(x[0].layout());
            layout
        })
    }
    fn of_many(&self, _x: &[&Meta], size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Blank {
            shape: shape::of_many(size, &self.shape),
            ..self.clone()
        }))
    }
    fn cpu(&self, _x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_scalar(self.value)
    }
    fn gpu(&self, _gpu: &Gpu, _x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        y[0].write_scalar(self.value).map(|()| true)
    }
}

/// Zeros of the gradient's shape for the first input, nothing for the other `n - 1`.
pub fn zero_grads(g: &[Option<Tensor>], n: usize) -> Result<Grads> {
    let mut out: Grads = SmallVec::from_elem(None, n);
    if let Some(g) = &g[0] {
        out[0] = Some(Tensor::zeros(g.shape(), g.dtype(), g.device())?);
    }
    Ok(out)
}

impl Tensor {
    /// A new tensor filled with one value, beside this one: with slices of its own where this has slices.
    pub fn blank(
        &self,
        shape: &[usize],
        value: Scalar,
        dtype: DType,
        device: Device,
    ) -> Result<Tensor> {
        if !self.stands() {
            return Tensor::full(shape, value, dtype, device);
        }
        self.blank_of_many(Blank {
            shape: Dims::from_slice(shape),
            value,
            dtype,
            device,
            like: false,
        })
    }

    /// A copy that may be written to with what is made of others: with slices where these have them.
    pub fn copy_beside<'a>(&self, others: impl IntoIterator<Item = &'a Tensor>) -> Result<Tensor> {
        let mut y = self.copy_dense()?;
        for other in others.into_iter().filter(|t| t.stands()) {
            let wide = other.blank(y.shape(), 0.into(), y.dtype(), y.device())?;
            wide.copy_from(&y)?;
            y = wide;
        }
        Ok(y)
    }

    #[cold]
    fn blank_of_many(&self, op: Blank) -> Result<Tensor> {
        mode::with_grad(false, || dispatch::call1(op, &[self]))
    }

    /// Filled with one value.
    pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
        let out = Tensor::empty(shape, dtype, device)?;
        out.write_scalar(value)?;
        Ok(out)
    }

    /// Uninitialised, with these strides.
    pub fn empty_strided(
        shape: &[usize],
        strides: &[isize],
        dtype: DType,
        device: Device,
    ) -> Result<Tensor> {
        let layout = Layout {
            shape: Dims::from_slice(shape),
            strides: strides.into(),
            offset: 0,
        };
        let bytes = layout.extent()?.checked_mul(dtype.size());
        let bytes = bytes.filter(|&b| b <= isize::MAX as usize).ok_or_else(|| {
            crate::error::Error::runtime(format!(
                "Storage size calculation overflowed with sizes={} and strides={}",
                Show(shape),
                Show(strides)
            ))
        })?;
        let storage = Storage::empty(bytes, device)?;
        storage.label(shape, dtype);
        Ok(Tensor::from_storage(storage, layout, dtype))
    }

    /// Uninitialised, of this tensor's shape; `Preserve` keeps the order of its dimensions.
    pub fn empty_like(&self, dtype: DType, device: Device, format: MemoryFormat) -> Result<Tensor> {
        if self.stands() {
            return self.blank_of_many(Blank {
                shape: self.shape().clone(),
                value: 0.into(),
                dtype,
                device,
                like: format == MemoryFormat::Preserve,
            });
        }
        byte_count(self.shape(), dtype)?;
        let strides = match format {
            MemoryFormat::Preserve => dense_strides(self.layout()),
            other => format_strides(self.shape(), other)?,
        };
        Tensor::empty_strided(self.shape(), &strides, dtype, device)
    }

    /// Writes one value everywhere, without touching history or version.
    pub fn write_scalar(&self, value: Scalar) -> Result<()> {
        if self.device() != Device::Cpu {
            return crate::transfer::fill(self, value);
        }
        if self.dtype().is_complex() {
            self.component(0).write_scalar(value)?;
            return self.component(1).write_scalar(Scalar::Float(0.0));
        }
        if self.dtype().is_rare() {
            let bits = Tensor::number(value)?.to_dtype(self.dtype())?.as_signed();
            return self.as_signed().write_scalar(bits.item()?);
        }
        if self.device() == Device::Cpu && self.layout().is_dense() {
            let n = self.numel();
            if n == 0 {
                return Ok(());
            }
            with_element!(self.dtype(), T => {
                use crate::cpu::elements::Element;
                let v = match value {
                    Scalar::Float(f) => T::of_f64(f),
                    Scalar::UInt(u) if T::DTYPE.is_float() => T::of_f64(u as f64),
                    other => T::of_i64(other.i64()),
                };
                let to = Ptr::new(self.ptr::<T>());
                let non_temporal = non_temporal::is_worth_filling(n * size_of::<T>());
                parallel_for(n, (1 << 18) / size_of::<T>(), |r| {
                    // SAFETY: dense host memory of `n` elements of this type; ranges of different
                    // threads are disjoint.
                    unsafe {
                        let to = to.at(r.start);
                        if non_temporal {
                            non_temporal::fill(v, to, r.len());
                            non_temporal::fence();
                        } else {
                            crate::cpu::copy::fill(v, to, r.len());
                        }
                    }
                });
            });
            return Ok(());
        }
        let number = Tensor::number(value)?.to_dtype(self.dtype())?;
        self.write_from(&number.to_device(self.device())?)
    }

    /// `fill_`, recorded.
    pub fn fill_(&self, value: Scalar, name: &'static str) -> Result<()> {
        check_range(value, self.dtype())?;
        dispatch::call_into(Fill { value, name }, &[self], self, true).map(|_| ())
    }
}

/// A new tensor of a shape, as `make` fills it.
fn shaped<Sig: Signature>(
    a: &Args<Sig>,
    make: impl FnOnce(&[usize], DType, Device) -> Result<Tensor>,
) -> Result<Value> {
    let o = Options::read(a)?;
    let shape = shape::sizes(a.ints(arg!(size))?)?;
    let dtype = o.dtype_or(a, default_dtype)?;
    o.give(a, make(&shape, dtype, o.device_or(a))?)
}

fn empty<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let format = a
        .memory_format(arg!(memory_format))
        .unwrap_or(MemoryFormat::Contiguous);
    shaped(a, |shape, dtype, device| {
        byte_count(shape, dtype)?;
        let strides = format_strides(shape, format)?;
        unwritten(Tensor::empty_strided(shape, &strides, dtype, device)?)
    })
}

/// A tensor of memory that nothing was written to, filled where determinism is asked for: with NaN,
/// or the largest value.
fn unwritten(y: Tensor) -> Result<Tensor> {
    if host::fills_memory() {
        y.fill_unwritten()?;
    }
    Ok(y)
}

impl Tensor {
    /// Writes NaN, or the largest value of a type without it.
    pub fn fill_unwritten(&self) -> Result<()> {
        match self.dtype() {
            t if t.is_complex() => self.as_real()?.fill_unwritten(),
            t if t.is_float() => self.write_scalar(Scalar::Float(f64::NAN)),
            DType::U64 => self.write_scalar(Scalar::UInt(u64::MAX)),
            t => self.write_scalar(Scalar::Int(t.limits().1)),
        }
    }
}

/// The type of a tensor filled with a number: that of `full`.
fn fill_dtype(value: Scalar) -> DType {
    if value.is_float() {
        default_dtype()
    } else {
        value.dtype()
    }
}

fn full<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let o = Options::read(a)?;
    let shape = shape::sizes(a.ints(arg!(size))?)?;
    let dtype = o.dtype_or(a, || match a.opt_scalar(arg!(fill_value)) {
        Some(value) => fill_dtype(value),
        None if a
            .number(arg!(fill_value))
            .is_ok_and(|n| n.dtype() == DType::U64) =>
        {
            DType::I64
        }
        None if default_dtype() == DType::F64 => DType::C128,
        None => DType::C64,
    })?;
    let y = Tensor::empty(&shape, dtype, o.device_or(a))?;
    write_number(a, arg!(fill_value), &y)?;
    o.give(a, y)
}

/// Writes the number in argument `i` everywhere.
fn write_number(a: &Args, i: At, y: &Tensor) -> Result<()> {
    if let Some(value) = a.opt_scalar(i) {
        check_range(value, y.dtype())?;
        return y.write_scalar(value);
    }
    let number = a.number(i)?;
    if number.dtype() == DType::U64 {
        let value = number.item()?;
        check_range(value, y.dtype())?;
        return y.write_scalar(value);
    }
    fits(&number, y)?;
    y.write_from(&number.to_device(y.device())?)
}

/// Refuses a number with an imaginary part where the type has none, and one beyond int64 where it
/// holds other integers.
pub fn fits(number: &Tensor, y: &Tensor) -> Result<()> {
    if number.dtype() == DType::U64 && y.dtype().is_integral() && y.dtype() != DType::U64 {
        return check_range(number.item()?, y.dtype());
    }
    let (re, im) = number.complex_item()?;
    ensure!(
        y.dtype().is_complex() || im == 0.0,
        Runtime,
        "value cannot be converted to type {} without overflow: {re}{im:+}j",
        y.dtype().c_name()
    );
    Ok(())
}

/// A tensor like the first argument.
pub fn like<Sig: Signature>(
    a: &Args<Sig>,
    make: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Value> {
    asked_like(a, |y| {
        if !y.stands() {
            return make(y);
        }
        let one = Tensor::empty(y.shape(), y.dtype(), y.device())?;
        make(&one)?;
        y.copy_from(&one)
    })
}

/// [`like`] where `make` asks interpreters for what it writes.
fn asked_like<Sig: Signature>(
    a: &Args<Sig>,
    make: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Value> {
    let (x, o) = (a.tensor(arg!(self))?, Options::read(a)?);
    let format = a
        .memory_format(arg!(memory_format))
        .unwrap_or(MemoryFormat::Preserve);
    let y = x.empty_like(
        o.dtype.unwrap_or(x.dtype()),
        o.device.unwrap_or(x.device()),
        format,
    )?;
    make(&y)?;
    o.give(a, y)
}

/// [`asked_like`] for random numbers: interpreters may have others for each slice.
pub fn drawn_like<Sig: Signature>(
    a: &Args<Sig>,
    make: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Value> {
    let (x, o) = (a.tensor(arg!(self))?, Options::read(a)?);
    let dtype = o.dtype.unwrap_or(x.dtype());
    let device = o.device.unwrap_or(x.device());
    let format = a
        .memory_format(arg!(memory_format))
        .unwrap_or(MemoryFormat::Preserve);
    let y = fresh_like(x, dtype, device, format)?;
    make(&y)?;
    o.give(a, y)
}

/// Memory for random numbers, shaped as `x`.
pub fn fresh_like(
    x: &Tensor,
    dtype: DType,
    device: Device,
    format: MemoryFormat,
) -> Result<Tensor> {
    if !x.stands() && mode::interpreted() {
        let y = dispatch::fresh(x.shape(), dtype, device, false)?;
        if y.stands() {
            return Ok(y);
        }
    }
    x.empty_like(dtype, device, format)
}

/// `new_*`: the type and device of the first argument unless others are named.
fn new<Sig: Signature>(
    a: &Args<Sig>,
    make: impl FnOnce(&[usize], DType, Device) -> Result<Tensor>,
) -> Result<Value> {
    let (x, o) = (a.tensor(arg!(self))?, Options::read(a)?);
    let shape = shape::sizes(a.ints(arg!(size))?)?;
    let dtype = o.dtype.unwrap_or(x.dtype());
    let y = make(&shape, dtype, o.device.unwrap_or(x.device()))?;
    if !x.stands() {
        return o.give(a, y);
    }
    let many = x.blank(&shape, 0.into(), dtype, y.device())?;
    many.copy_from(&y)?;
    o.give(a, many)
}

fn strided(size: &[i64], stride: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
    ensure!(
        size.len() == stride.len(),
        Runtime,
        "dimensionality of sizes ({}) must match dimensionality of strides ({})",
        size.len(),
        stride.len()
    );
    let shape = shape::sizes(size)?;
    ensure!(
        stride.iter().all(|&s| s >= 0),
        Runtime,
        "Storage size calculation overflowed with sizes={} and strides={}: strides must not be \
         negative",
        Show(size),
        Show(stride)
    );
    let strides: Strides = stride.iter().map(|&s| s as isize).collect();
    Tensor::empty_strided(&shape, &strides, dtype, device)
}

fn one(dtype: DType) -> Scalar {
    if dtype.is_float() {
        Scalar::Float(1.0)
    } else {
        Scalar::Int(1)
    }
}

/// The value that `fill` writes, from a number or a 0-d tensor, with its place in a graph.
fn fill_value(t: &Tensor) -> Result<()> {
    ensure!(
        t.ndim() == 0,
        Runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        t.ndim()
    );
    Ok(())
}

/// Writes `value` into `x`; the gradient of the value is the sum of the result's.
fn fill_into(x: &Tensor, value: &Tensor) -> Result<()> {
    fill_value(value)?;
    if value.stands() {
        return x.copy_from(value);
    }
    if value.dtype().is_complex() {
        if value.has_data() {
            fits(&value.detach(), x)?;
        }
        return match x.dtype().is_complex() {
            true => x.copy_from(value),
            false if value.has_data() => x.fill_(value.item()?, "FillBackward0"),
            false => x.fill_(Scalar::Int(0), "FillBackward0"),
        };
    }
    if value.has_data() && (value.is_wrapped() || !value.requires_grad()) {
        if value.is_wrapped() {
            check_range(value.item()?, x.dtype())?;
        }
        return x.fill_(value.item()?, "FillBackward0");
    }
    x.copy_from(value)
}

/// The elements on the main diagonal; with `wrap`, one row behind its end it begins again.
fn diagonals(x: &Tensor, wrap: bool) -> Result<Vec<Tensor>> {
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "fill_diagonal_: dimensions must larger than 1, got a tensor of shape {}",
        Show(x.shape())
    );
    let (rows, n) = (x.size(0), *x.shape().iter().min().unwrap_or(&0));
    ensure!(
        x.ndim() == 2 || x.shape().iter().all(|&d| d == rows),
        Runtime,
        "fill_diagonal_: all dimensions of input must be of equal length, got shape {}",
        Show(x.shape())
    );
    if n == 0 {
        return Ok(Vec::new());
    }
    let across: isize = x.strides().iter().sum();
    let line = |size: &[i64], strides: &[i64], row: usize| {
        let offset = x.offset() as isize + row as isize * x.strides()[0];
        x.as_strided(size, strides, Some(offset as i64))
    };
    if !wrap || x.ndim() > 2 {
        return Ok(vec![line(&[n as i64], &[across as i64], 0)?]);
    }
    let (cols, step) = (x.size(1), x.size(1) + 1);
    let blocks = rows / step;
    let strides = [step as i64 * x.strides()[0] as i64, across as i64];
    let rest = (rows % step).min(cols) as i64;
    Ok(vec![
        line(&[blocks as i64, cols as i64], &strides, 0)?,
        line(&[rest], &strides[1..], blocks * step * (rest > 0) as usize)?,
    ])
}

crate::entries! {
    /// Uninitialised elements.
    "empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | OUT | DIRECT,
    empty;
    /// Uninitialised elements under the strides given.
    "empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| {
        let o = Options::read(a)?;
        let dtype = o.dtype_or(a, default_dtype)?;
        o.give(a, unwritten(strided(a.ints(arg!(size))?, a.ints(arg!(stride))?, dtype, o.device_or(a))?)?)
    };
    /// Uninitialised elements; `physical_layout` orders the dimensions from the outermost.
    "empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| {
        let o = Options::read(a)?;
        let (shape, order) = (shape::sizes(a.ints(arg!(size))?)?, a.ints(arg!(physical_layout))?);
        ensure!(
            shape.len() == order.len(),
            Runtime,
            "Number of dimensions in size does not match the length of the physical_layout; i.e. \
             len(size) = {} is not equal to len(physical_layout) = {}",
            shape.len(),
            order.len()
        );
        let mut strides = Strides::from_elem(-1, shape.len());
        let mut step = 1isize;
        for (i, &d) in order.iter().enumerate().rev() {
            ensure!(
                d >= 0 && (d as usize) < shape.len(),
                Runtime,
                "Dimension out of range (expected to be between 0 and {}, but got {d} at index {i}).  \
                 NB: negative dims not currently supported; file an issue if you want it.",
                shape.len() as i64 - 1
            );
            ensure!(strides[d as usize] < 0, Runtime, "Duplicate dim not allowed in physical_layout");
            strides[d as usize] = step;
            step = step.saturating_mul(shape[d as usize].max(1) as isize);
        }
        let dtype = o.dtype_or(a, default_dtype)?;
        byte_count(&shape, dtype)?;
        o.give(a, unwritten(Tensor::empty_strided(&shape, &strides, dtype, o.device_or(a))?)?)
    };
    /// Zeros.
    "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| shaped(a, Tensor::zeros);
    /// Ones.
    "ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| shaped(a, |s, t, d| Tensor::full(s, one(t), t, d));
    /// One value everywhere; its kind gives the type.
    "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT | COMPLEX,
    full;
    /// A number as a 0-d tensor.
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | COMPLEX,
    |a| {
        let o = Options::read(a)?;
        let dtype = o.dtype_or(a, default_dtype)?;
        let y = Tensor::empty(&[], dtype, o.device_or(a))?;
        write_number(a, arg!(s), &y)?;
        o.give(a, y)
    };
    /// Uninitialised, shaped as `self`.
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN,
    |a| {
        like(a, |y| match host::fills_memory() {
            true => y.fill_unwritten(),
            false => Ok(()),
        })
    };
    /// Zeros, shaped as `self`.
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | OUT,
    |a| like(a, |y| y.write_scalar(Scalar::Int(0)));
    /// Ones, shaped as `self`.
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | OUT,
    |a| like(a, |y| y.write_scalar(one(y.dtype())));
    /// One value everywhere, shaped as `self`.
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | OUT | COMPLEX,
    |a| like(a, |y| write_number(a, arg!(fill_value), y));
    /// Uninitialised, with the type and device of `self`.
    "new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD,
    |a| new(a, |shape, dtype, device| unwritten(Tensor::empty(shape, dtype, device)?));
    /// Uninitialised under the strides given, with the type and device of `self`.
    "new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD,
    |a| {
        let (x, o) = (a.tensor(arg!(self))?, Options::read(a)?);
        let (dtype, device) = (o.dtype.unwrap_or(x.dtype()), o.device.unwrap_or(x.device()));
        o.give(a, unwritten(strided(a.ints(arg!(size))?, a.ints(arg!(stride))?, dtype, device)?)?)
    };
    /// Zeros with the type and device of `self`.
    "new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD,
    |a| new(a, Tensor::zeros);
    /// Ones with the type and device of `self`.
    "new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD,
    |a| new(a, |s, t, d| Tensor::full(s, one(t), t, d));
    /// One value everywhere, with the type and device of `self`.
    "new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD | COMPLEX,
    |a| {
        new(a, |s, t, d| {
            let y = Tensor::empty(s, t, d)?;
            write_number(a, arg!(fill_value), &y)?;
            Ok(y)
        })
    };
    /// One value everywhere, shaped and typed as `self`.
    "fill(Tensor self, Tensor|Scalar value) -> Tensor", FN,
    |a| {
        let (x, value) = (a.tensor(arg!(self))?, a.tensor(arg!(value))?);
        let y = x.preserved_copy(x.dtype(), x.device(), MemoryFormat::Preserve, "CloneBackward0")?;
        fill_into(&y, value)?;
        Ok(y.into())
    };
    /// Writes one value everywhere.
    "fill_(Tensor self, Tensor|Scalar value) -> Tensor", FN | METHOD,
    |a| {
        fill_into(a.tensor(arg!(self))?, a.tensor(arg!(value))?)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
    /// Writes one value on the main diagonal; with `wrap`, below a tall matrix's end it begins again.
    "fill_diagonal_(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", METHOD | COMPLEX,
    |a| {
        let x = a.tensor(arg!(self))?;
        for line in diagonals(x, a.bool(arg!(wrap))?)? {
            fill_into(&line, &a.number(arg!(fill_value))?)?;
        }
        Ok(x.clone().into())
    };
    /// Writes zeros.
    "zero_(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        let (value, name) = (Scalar::Int(0), "ZeroBackward0");
        dispatch::call_into(Fill { value, name }, &[a.tensor(arg!(self))?], a.tensor(arg!(self))?, true)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
}

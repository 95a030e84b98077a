//! Tensors from nothing: `empty`, `zeros`, `full` and their like.

mod fill;
mod options;
mod strides;

pub use fill::{asked_of_one, zero_grads, Fill};
pub use options::Options;
pub use strides::{dense_strides, format_strides};

use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{check_range, default_dtype, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, Rare, TensorMeta, Traits};
use crate::ops::pointwise::types::{fits, held};
use crate::schema::{Args, At, MemoryFormat, Signature, Value};
use crate::shape::{self, Dims, Show, Strides};
use crate::storage::Storage;
use crate::tensor::{byte_count, Tensor};
use crate::{ensure, host};
use fill::{asked_of, diagonals, fill_into};
use smallvec::SmallVec;
use std::sync::Arc;

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
            let both = other.beside(&y)?;
            // Adding it leaves every number as it is, zeros' signs included.
            let none = match y.dtype().is_float() {
                true => Scalar::Float(-0.0),
                false => 0.into(),
            };
            y = y.add(&both.blank(&[], none, y.dtype(), y.device())?)?;
        }
        Ok(y)
    }

    /// A number with slices where this tensor or another one has them.
    pub fn beside(&self, other: &Tensor) -> Result<Tensor> {
        let none = |t: &Tensor| t.blank(&[], false.into(), DType::Bool, t.device());
        mode::with_grad(false, || match other.stands() {
            true => none(self)?.add(&none(other)?),
            false => none(self),
        })
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
        check_range(value, asked_of(y))?;
        return y.write_scalar(value);
    }
    let number = a.number(i)?;
    fits(&number, asked_of(y))?;
    if number.dtype() == DType::U64 {
        return y.write_scalar(number.item()?);
    }
    y.write_from(&held(&number, y.dtype())?.to_device(y.device())?)
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

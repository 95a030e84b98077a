//! The public functions that copy and convert.

use crate::arg;
use crate::device::Device;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, MemoryFormat, Signature, Value};

fn cast<Sig: Signature>(a: &Args<Sig>, dtype: DType) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    Ok(x.to(
        dtype,
        x.device(),
        false,
        a.memory_format(arg!(memory_format)),
    )?
    .into())
}

crate::entries! {
    /// A copy with its own memory; gradients pass.
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let format = a.memory_format(arg!(memory_format)).unwrap_or(MemoryFormat::Preserve);
        Ok(x.preserved_copy(x.dtype(), x.device(), format, "CloneBackward0")?.into())
    };
    /// Itself when it lies in memory as the format demands, else a copy that does.
    "contiguous(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let format = a.memory_format(arg!(memory_format)).unwrap_or(MemoryFormat::Contiguous);
        if x.is_contiguous_as(format) {
            return Ok(x.clone().into());
        }
        ensure!(
            format != MemoryFormat::Preserve,
            Runtime,
            "preserve memory format is unsupported by the contiguous operator"
        );
        Ok(x.preserved_copy(x.dtype(), x.device(), format, "CloneBackward0")?.into())
    };
    /// The same numbers as another type, on another device or in another layout; itself where
    /// nothing changes.
    "to(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let dtype = a.dtype(arg!(dtype)).unwrap_or(x.dtype());
        Ok(x.to(dtype, x.device(), a.bool(arg!(copy))?, a.memory_format(arg!(memory_format)))?.into())
    };
    "to(Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let device = a.device(arg!(device)).unwrap_or(x.device());
        let dtype = a.dtype(arg!(dtype)).unwrap_or(x.dtype());
        Ok(x.to(dtype, device, a.bool(arg!(copy))?, a.memory_format(arg!(memory_format)))?.into())
    };
    "to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| {
        let (x, o) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
        Ok(x.to(o.dtype(), o.device(), a.bool(arg!(copy))?, a.memory_format(arg!(memory_format)))?.into())
    };
    /// The same numbers with the type and device of `other`.
    "type_as(Tensor self, Tensor other) -> Tensor", METHOD,
    |a| {
        let (x, o) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
        Ok(x.to(o.dtype(), o.device(), false, None)?.into())
    };
    /// In host memory.
    "cpu(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(x.to(x.dtype(), Device::Cpu, false, a.memory_format(arg!(memory_format)))?.into())
    };
    /// As float32.
    "float(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::F32);
    /// As float64.
    "double(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::F64);
    /// As float16.
    "half(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::F16);
    /// As bfloat16.
    "bfloat16(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::BF16);
    /// As int32.
    "int(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::I32);
    /// As int64.
    "long(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::I64);
    /// As int16.
    "short(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::I16);
    /// As int8.
    "char(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::I8);
    /// As uint8.
    "byte(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::U8);
    /// As bool.
    "bool(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::Bool);
    /// Writes the elements of `src`, converted, into `self`.
    "copy_(Tensor self, Tensor|Scalar src, bool non_blocking=False) -> Tensor", METHOD,
    |a| {
        a.tensor(arg!(self))?.copy_from(a.tensor(arg!(src))?)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
    /// As complex32.
    "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::C32);
    /// As complex64.
    "cfloat(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::C64);
    /// As complex128.
    "cdouble(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", METHOD,
    |a| cast(a, DType::C128);
}

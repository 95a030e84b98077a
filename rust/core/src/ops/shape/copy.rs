//! Copies: between types, layouts and devices, out of place and in place.

mod entries;
mod format;
mod host;

pub use entries::ENTRIES;
pub use host::copy_host;

use super::create::{dense_strides, format_strides};
use crate::autograd::jvp::along;
use crate::autograd::{inplace, mode, Jvp, Tangents, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::pointwise::chain::Loop;
use crate::device::Device;
use crate::dispatch::{self, Overlap};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Asked, Batching, Derivative, Fast, Fusion, Grads, Mapped, Metas, Op, Rare, TensorMeta, Tensors,
    Traits,
};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::BitwiseXor;
use crate::schema::{MemoryFormat, Value};
use crate::shape::{expandable, Show, Strides};
use crate::tensor::Tensor;
use crate::{ensure, transfer};
use host::{each, warn_of_parts_lost};
use smallvec::SmallVec;

/// A copy of this type on this device, laid out in this format; `x.clone()` and `x.to(...)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Copy {
    dtype: DType,
    device: Device,
    format: MemoryFormat,
    name: &'static str,
}

impl Copy {
    /// A contiguous copy that stays on its device.
    fn contiguous(x: &Meta, dtype: DType, name: &'static str) -> Copy {
        Copy {
            dtype,
            device: x.device(),
            format: MemoryFormat::Contiguous,
            name,
        }
    }

    fn strides(&self, x: &Meta) -> Result<Strides> {
        match self.format {
            MemoryFormat::Preserve => Ok(dense_strides(x.layout())),
            other => format_strides(x.shape(), other),
        }
    }
}

/// Copies, with conversion in host memory where the devices differ.
fn copy(x: &Tensor, y: &Tensor) -> Result<()> {
    match x.device() == y.device() || x.dtype() == y.dtype() {
        true => y.write_from(x),
        false => y.write_from(&x.prepared(y.dtype())?),
    }
}

impl Derivative for Copy {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        let (from, mut asked) = (x[0], Asked::named("clone"));
        let own = vec![from.clone().into()];
        if self.name == "ToCopyBackward0" {
            asked.name = "_to_copy".into();
            if self.dtype != from.dtype() {
                asked = asked.option("dtype", Value::DType(self.dtype));
            }
            if self.device != from.device() {
                asked = asked.option("device", Value::Device(self.device));
            }
        }
        let kept = self.strides(from)? == dense_strides(from.layout());
        Ok(match kept {
            true => asked.with(own),
            false => asked
                .with(own)
                .option("memory_format", Value::MemoryFormat(self.format)),
        })
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        // The engine casts to the input's type.
        Ok(SmallVec::from_elem(g[0].clone(), 1))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Copy {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        match self.device {
            Device::Cpu => x[0].device().check_data()?,
            Device::Wgpu(_) => {
                x[0].device().check_data()?;
                transfer::check_type(self.dtype)?;
            }
            Device::Meta => {}
        }
        // Others fit some shapes only.
        if !matches!(
            self.format,
            MemoryFormat::Contiguous | MemoryFormat::Preserve
        ) {
            self.strides(x[0])?;
        }
        let meta = TensorMeta {
            shape: x[0].shape().clone(),
            dtype: self.dtype,
            device: self.device,
        };
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        if self.format == MemoryFormat::Contiguous {
            return None;
        }
        let mut layout = Layout::contiguous(&y.shape);
        let strides = self.strides(x[0]).ok()?;
        (layout.strides != strides).then(|| {
            layout.strides = strides;
            layout
        })
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        copy(x[0], &y[0])
    }
    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(copy(x[0], &y[0]))
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
}

impl Batching for Copy {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let format = match self.format {
            MemoryFormat::Preserve => MemoryFormat::Preserve,
            _ => MemoryFormat::Contiguous,
        };
        let copy = Copy {
            format,
            ..self.clone()
        };
        dispatch::call(copy, &[&x.x[0]]).map(Some)
    }
}

impl Fusion for Copy {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        each(0, x[0].dtype(), self.dtype)
    }
}

/// What PyTorch says of a shape that does not broadcast to another.
fn unfit(to: &[usize], from: &[usize]) -> String {
    if from.len() > to.len() {
        return format!(
            "output with shape {} doesn't match the broadcast shape {}",
            Show(to),
            Show(from)
        );
    }
    let lead = to.len() - from.len();
    let bad = (0..from.len())
        .rev()
        .find(|&d| from[d] != 1 && from[d] != to[lead + d]);
    let d = bad.unwrap_or(0);
    format!(
        "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton \
         dimension {}",
        to.get(lead + d).copied().unwrap_or(1),
        from.get(d).copied().unwrap_or(1),
        lead + d
    )
}

/// `x.copy_(y)`: the gradient goes to the source; that of what was overwritten is zeros. Inputs are
/// destination and source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CopyInto;

impl Derivative for CopyInto {
    fn name(&self) -> &'static str {
        "CopyBackwards"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("copy"))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let overwritten = match &g[0] {
            Some(_) if cx.needs(0) => {
                let m = cx.input_meta(0)?;
                Some(Tensor::zeros(&m.shape, m.dtype, m.device)?)
            }
            _ => None,
        };
        let mut out = Grads::new();
        out.push(overwritten);
        out.push(g[0].clone());
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let Some(t) = cx.tangent(1) else {
            return Ok(Some(Tangents::from_elem(None, 1)));
        };
        let x = cx.input(0);
        along(t.to_dtype(x.dtype())?.expand_to(x.shape())?)
    }
}

/// Whether it is one block of host memory, and so short that nothing is gained by a second thread or
/// without the host's lock.
pub(super) fn is_small(x: &Tensor) -> bool {
    const BYTES: usize = 1 << 15;
    let short = x.numel() <= BYTES && x.numel() * x.dtype().size() <= BYTES;
    short && x.device() == Device::Cpu && x.is_contiguous() && !x.is_sparse()
}

impl Op for CopyInto {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        // A copy to itself is recorded, and nothing moves.
        match dispatch::overlap(x[1], &y[0]) {
            Overlap::Same => Ok(()),
            _ => copy_host(x[1], &y[0]),
        }
    }
    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        match dispatch::overlap(x[1], &y[0]) {
            Overlap::Same => Ok(true),
            _ => transfer::ran(y[0].write_from(x[1])),
        }
    }
    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
}

impl Fusion for CopyInto {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        each(1, x[1].dtype(), x[0].dtype())
    }
}

impl Fast for CopyInto {
    fn call_into(&self, x: &[&Tensor], y: &Tensor) -> Result<bool> {
        let x = x[1];
        let alike = x.dtype() == y.dtype() && x.shape() == y.shape();
        let bytes = y.numel() * y.dtype().size();
        if !alike || !is_small(x) || !is_small(y) || x.shares_storage(y) {
            return Ok(false);
        }
        // SAFETY: two blocks of host memory of so many bytes, apart from each other.
        unsafe { std::ptr::copy_nonoverlapping(x.bytes_ptr(), y.bytes_ptr(), bytes) };
        Ok(true)
    }
}

impl Tensor {
    /// A contiguous copy (`clone`).
    pub fn copy_dense(&self) -> Result<Tensor> {
        if self.is_sparse() {
            return self.copy_sparse();
        }
        let op = Copy::contiguous(self, self.dtype(), "CloneBackward0");
        dispatch::call1(op, &[self])
    }

    /// Itself when contiguous, else a contiguous copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() {
            Ok(self.clone())
        } else {
            self.copy_dense()
        }
    }

    /// Itself, or a copy where it lies in the memory of `other`.
    pub fn apart_from(&self, other: &Tensor) -> Result<Tensor> {
        match self.shares_storage(other) {
            true => self.copy_dense(),
            false => Ok(self.clone()),
        }
    }

    /// Elements of a rare type under the signed integers of their size, over the same memory and
    /// without history; itself where it holds others.
    pub fn as_signed(&self) -> Tensor {
        match self.dtype().is_rare() {
            true => self.alias_as(self.layout().clone(), self.dtype().signed()),
            false => self.clone(),
        }
    }

    /// Wide unsigned integers as signed ones of the same size and in the same order.
    pub fn in_signed_order(&self) -> Result<Tensor> {
        let signed = self.as_signed();
        let least = Tensor::number(Scalar::Int(signed.dtype().limits().0))?;
        apply(BitwiseXor, [&signed, &least])
    }

    /// What [`Tensor::in_signed_order`] was made from, of this unsigned type.
    pub fn unsigned_again(&self, dtype: DType) -> Result<Tensor> {
        let bits = self.in_signed_order()?;
        Ok(bits.alias_as(bits.layout().clone(), dtype))
    }

    /// Itself when of this type, else a converted copy.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        if self.is_sparse() {
            return self.with_values(|v| v.to_dtype(dtype));
        }
        dispatch::call1(Copy::contiguous(self, dtype, "ToCopyBackward0"), &[self])
    }

    /// Itself when on this device, else a copy there.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        if self.is_sparse() {
            return self.with_values(|v| v.to_device(device));
        }
        let op = Copy {
            device,
            ..Copy::contiguous(self, self.dtype(), "ToCopyBackward0")
        };
        dispatch::call1(op, &[self])
    }

    /// Contiguous, of this type, in host memory, without history: what host kernels read.
    pub fn prepared(&self, dtype: DType) -> Result<Tensor> {
        self.look();
        mode::with_grad(false, || {
            self.check_open()?;
            self.to_device(Device::Cpu)?.to_dtype(dtype)?.contiguous()
        })
    }

    /// A copy whose memory has the strides of `layout` (from offset 0).
    pub fn copy_with_layout(&self, layout: &Layout) -> Result<Tensor> {
        let mut l = layout.clone();
        l.offset = 0;
        if self.stands() {
            let room = self.blank(&[l.extent()?], 0.into(), self.dtype(), self.device())?;
            let out = room.as_strided_view(l)?;
            out.copy_from(self)?;
            return Ok(out);
        }
        let bytes = l.extent()? * self.dtype().size();
        let storage = crate::storage::Storage::zeroed(bytes, self.device())?;
        storage.label(&l.shape, self.dtype());
        let out = Tensor::from_storage(storage, l, self.dtype());
        out.copy_from(self)?;
        Ok(out)
    }

    /// A copy of this type on this device, laid out in this format; `Preserve` keeps the order of
    /// the dimensions in memory.
    pub fn preserved_copy(
        &self,
        dtype: DType,
        device: Device,
        format: MemoryFormat,
        name: &'static str,
    ) -> Result<Tensor> {
        let op = Copy {
            dtype,
            device,
            format,
            name,
        };
        dispatch::call1(op, &[self])
    }

    /// Writes the elements of `x`, which has this shape, without touching history or version. Unlike
    /// [`Tensor::write_from`], which is for kernels, a call of its own.
    pub fn assign(&self, x: &Tensor) -> Result<()> {
        let op = Copy {
            device: self.device(),
            ..Copy::contiguous(x, self.dtype(), "CopyBackwards")
        };
        dispatch::compute_into(&op, &[x], std::slice::from_ref(self))
    }

    /// `to`: itself where nothing changes and no copy is asked for.
    pub fn to(
        &self,
        dtype: DType,
        device: Device,
        copy: bool,
        format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        let format = format.unwrap_or(MemoryFormat::Preserve);
        warn_of_parts_lost(self.dtype(), dtype);
        if self.is_sparse() {
            let y = self.to_device(device)?.to_dtype(dtype)?;
            return if copy && y.same(self) {
                self.copy_sparse()
            } else {
                Ok(y)
            };
        }
        if !copy
            && dtype == self.dtype()
            && device == self.device()
            && match format {
                MemoryFormat::Preserve => true,
                MemoryFormat::Contiguous => self.is_contiguous(),
                // What already suggests the order is let be, and what lies so by chance is not.
                MemoryFormat::ChannelsLast => {
                    self.ndim() == 4 && self.layout().suggests_channels_last()
                }
                MemoryFormat::ChannelsLast3d => {
                    self.ndim() == 5 && self.layout().suggests_channels_last()
                }
            }
        {
            return Ok(self.clone());
        }
        self.preserved_copy(dtype, device, format, "ToCopyBackward0")
    }

    /// Writes elements without touching history or version, for kernels. Shapes are equal or broadcast.
    pub fn write_from(&self, x: &Tensor) -> Result<()> {
        if self.shares_storage(x) && self.layout() == x.layout() {
            return Ok(());
        }
        match (self.device(), x.device()) {
            (Device::Cpu, Device::Cpu) => copy_host(x, self),
            _ => crate::transfer::transfer(x, self),
        }
    }

    /// What a kernel that computes in `dtype` fills and [`write_from`](Self::write_from) then brings here:
    /// this contiguous result itself where it has the type.
    pub fn draft(&self, dtype: DType) -> Result<Tensor> {
        match self.dtype() == dtype {
            true => Ok(self.clone()),
            false => Tensor::empty(self.shape(), dtype, self.device()),
        }
    }

    /// `copy_`: writes `x` into this tensor, recorded.
    pub fn copy_from(&self, x: &Tensor) -> Result<()> {
        ensure!(
            expandable(x.shape(), self.shape()),
            Runtime,
            "{}",
            unfit(self.shape(), x.shape())
        );
        let moved = if x.device() == self.device() {
            warn_of_parts_lost(x.dtype(), self.dtype());
            None
        } else {
            // Converted on the host, for a GPU may not know its type.
            Some(x.to(self.dtype(), self.device(), false, None)?)
        };
        let x = moved.as_ref().unwrap_or(x);
        // Sources whose overlap is plain raise, as in PyTorch; unclear ones are read from a copy.
        let copy = match dispatch::overlap(x, self) {
            Overlap::None | Overlap::Same => None,
            Overlap::Unclear => Some(x.copy_dense()?),
            Overlap::Partial => return dispatch::check_apart(x, self),
        };
        let x = copy.as_ref().unwrap_or(x);
        dispatch::call_into(CopyInto, &[self, x], self, true)?;
        Ok(())
    }

    /// Whether any element is NaN; of slices, any of any slice.
    pub fn has_nan(&self) -> Result<bool> {
        if self.stands() {
            let under = dispatch::beneath(self)?;
            return Ok(under.is_readable() && under.has_nan()?);
        }
        if !self.dtype().is_float() || self.device() == Device::Meta {
            return Ok(false);
        }
        if self.is_sparse() {
            return self.sparse_parts()?.values.has_nan();
        }
        let small = self.dtype().is_float8();
        let x = self.to_host()?;
        let x = x.prepared(if small { DType::F32 } else { x.dtype() })?;
        Ok(crate::with_element!(x.dtype(), T => {
            // SAFETY: contiguous host memory of this type.
            unsafe { x.slice::<T>() }.iter().any(|&v| Element::to_f64(v).is_nan())
        }))
    }

    /// Refuses in-place changes that PyTorch refuses; for ops that write in their own way.
    pub fn check_inplace(&self, tracked: bool) -> Result<()> {
        inplace::check(self, tracked)
    }
}

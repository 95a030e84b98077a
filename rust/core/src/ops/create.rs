//! Tensors from nothing.

use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::with_element;

impl Tensor {
    /// Filled with one value.
    pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
        let out = Tensor::empty(shape, dtype, Device::Cpu)?;
        out.write_scalar(value)?;
        out.to_device(device)
    }

    /// Writes one value everywhere, without touching history or version.
    pub fn write_scalar(&self, value: Scalar) -> Result<()> {
        if self.is_contiguous() && self.device() == Device::Cpu {
            with_element!(self.dtype(), T => {
                use crate::cpu::elements::Element;
                let v = match value {
                    Scalar::Float(f) => T::of_f64(f),
                    other => T::of_i64(other.i64()),
                };
                // SAFETY: contiguous host memory of this type, written by this call alone.
                unsafe { self.slice_mut::<T>() }.fill(v);
            });
            return Ok(());
        }
        self.write_from(&Tensor::number(value)?.to_device(self.device())?)
    }
}

crate::entries! {}

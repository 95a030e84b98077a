//! The gradient of one element by itself, with which most backward passes begin.

use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::tensor::Tensor;
use parking_lot::Mutex;

/// Those on GPUs, to be handed out again while nobody else has them, and how many devices were opened
/// before each: a fill there is a kernel of its own.
static MADE: Mutex<Vec<(Tensor, u32)>> = Mutex::new(Vec::new());
const MOST: usize = 8;

/// A one, of a shape of one element.
pub fn one(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
    if !device.is_gpu() {
        return match dtype {
            DType::F32 if device == Device::Cpu => Tensor::from_slice(&[1f32], shape, dtype),
            _ => Tensor::full(shape, Scalar::Int(1), dtype, device),
        };
    }
    let life = Gpu::openings();
    let free = |(t, of): &&(Tensor, u32)| {
        let memory = t.storage();
        let same = (t.dtype(), t.device(), *of) == (dtype, device, life);
        same && memory.is_as_made()
    };
    if let Some((t, _)) = MADE.lock().iter().find(free) {
        return Ok(t.alias(Layout::contiguous(shape)));
    }
    let new = Tensor::full(shape, Scalar::Int(1), dtype, device)?;
    let mut made = MADE.lock();
    made.truncate(MOST - 1);
    made.insert(0, (new.alias(Layout::contiguous(shape)), life));
    Ok(new)
}

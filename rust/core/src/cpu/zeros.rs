//! Zeros: memory that was used before is cleared by all threads.

use super::non_temporal;
use super::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::{byte_count, Tensor};
use std::ptr::NonNull;

/// Bytes that a second thread is worth.
const GRAIN: usize = 1 << 18;

impl Tensor {
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        let bytes = byte_count(shape, dtype)?;
        let storage = match device {
            Device::Cpu => Storage::cleared(bytes, clear)?,
            _ => Storage::zeroed(bytes, device)?,
        };
        storage.inhabit(shape, dtype);
        let layout = Layout::contiguous(shape);
        Ok(Tensor::from_storage(storage, layout, dtype))
    }
}

/// Writes zeros to a block that nobody else has.
fn clear(block: NonNull<u8>, bytes: usize) {
    let (to, past) = (Ptr(block.as_ptr()), non_temporal::is_worth(bytes));
    parallel_for(bytes, GRAIN, |r| {
        // SAFETY: ranges of different threads are disjoint parts of the block, which begins and is
        // cut at multiples of 64 bytes.
        unsafe {
            let to = to.at(r.start);
            if past {
                non_temporal::fill(0u8, to, r.len());
                non_temporal::fence();
            } else {
                to.write_bytes(0, r.len());
            }
        }
    });
}

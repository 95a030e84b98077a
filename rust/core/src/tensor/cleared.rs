//! Zeros: memory that was used before is cleared by all threads.

use crate::cpu::non_temporal;
use crate::cpu::pool::{num_threads, parallel_for, Ptr};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::{byte_count, Tensor};
use std::ptr::NonNull;

/// Bytes that a second thread is worth.
const GRAIN: usize = 1 << 18;
/// Bytes of a line of the cache, at which a block begins.
const LINE: usize = 64;

impl Tensor {
    pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        let bytes = byte_count(shape, dtype)?;
        let storage = match device {
            Device::Cpu => Storage::cleared(bytes, clear)?,
            _ => Storage::zeroed(bytes, device)?,
        };
        storage.label(shape, dtype);
        let layout = Layout::contiguous(shape);
        Ok(Tensor::from_storage(storage, layout, dtype))
    }
}

/// Writes zeros to a block that nobody else has: as long a run to each thread as there is, since the
/// system's loop for zeros no cache holds is for long runs alone.
fn clear(block: NonNull<u8>, bytes: usize) {
    let (to, past) = (
        Ptr::new(block.as_ptr()),
        non_temporal::is_worth_filling(bytes),
    );
    let parts = num_threads().min(bytes / GRAIN).max(1);
    let cut = |i: usize| match i == parts {
        true => bytes,
        false => bytes / parts * i / LINE * LINE,
    };
    parallel_for(parts, 1, |r| {
        let (from, n) = (cut(r.start), cut(r.end) - cut(r.start));
        // SAFETY: ranges of different threads are disjoint parts of the block.
        unsafe {
            let to = to.at(from);
            if past {
                non_temporal::fill(0u8, to, n);
                non_temporal::fence();
            } else {
                to.write_bytes(0, n);
            }
        }
    });
}

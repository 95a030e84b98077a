//! What the engine asks of the GPU in terms of tensors.

use crate::bail;
use crate::error::Result;
use crate::tensor::Tensor;

/// Counts an op that had no kernel and ran on the host.
pub fn count_fallback(_op: &str) -> Result<()> {
    Ok(())
}

/// Copies between tensors of which at least one lives on the GPU.
pub fn transfer(_x: &Tensor, _y: &Tensor) -> Result<()> {
    bail!(Runtime, "wgpu: no device")
}

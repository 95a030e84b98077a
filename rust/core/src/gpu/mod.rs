use crate::error::Result;
use crate::tensor::Tensor;
pub fn count_fallback(_op: &str) -> Result<()> { Ok(()) }
pub fn transfer(_x: &Tensor, _y: &Tensor) -> Result<()> { crate::bail!(Runtime, "wgpu: no device") }

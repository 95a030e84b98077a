//! Bindings of kernels: buffers, or windows on them.

use super::buffer::{Raw, Window};
use super::{Buffer, Gpu};
use crate::dtype::DType;
use std::sync::Arc;

/// Memory that a kernel binds, and the type of its elements.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// `None` where it is not on the GPU: then there is nothing to launch.
    pub buffer: Option<&'a Buffer>,
    pub dtype: DType,
    /// The bytes that the kernel sees, in the place of all.
    pub window: Option<Window>,
}

impl<'a> From<&'a Buffer> for Operand<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Operand {
            buffer: Some(buffer),
            dtype: DType::I32,
            window: None,
        }
    }
}

/// A buffer as a kernel binds it.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub buffer: &'a Buffer,
    pub window: Option<Window>,
}

impl<'a> Bound<'a> {
    /// The wgpu buffer that it binds, and the bytes of that.
    pub fn found(&self) -> (&'a Arc<Raw>, Option<Window>) {
        self.buffer.found(self.window)
    }

    /// Whether no binding has all of its bytes.
    pub fn is_refused(&self, gpu: &Gpu) -> bool {
        self.size() > gpu.info().max_binding || self.window.is_some_and(|w| self.buffer.splits(w))
    }

    /// The bytes that a kernel sees.
    pub fn size(&self) -> u64 {
        self.window.map_or(self.buffer.capacity(), |w| w.size)
    }
}

//! What a tensor is without its memory: all that the shape and type of a result depend on.

use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::shape::{Dims, Strides};

/// Layout, type and device. A tensor lends its own ([`crate::tensor::Tensor`] dereferences to it), and a
/// call can be planned from metas of tensors that do not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meta {
    layout: Layout,
    dtype: DType,
    device: Device,
    /// Made from a Python number: takes part in promotion only by category.
    wrapped: bool,
    /// A list of coordinates and values stands for the elements.
    sparse: bool,
    /// Its object in the host language answers for it.
    answers: bool,
}

impl Meta {
    #[inline(always)]
    pub fn new(layout: Layout, dtype: DType, device: Device) -> Meta {
        Meta {
            layout,
            dtype,
            device,
            wrapped: false,
            sparse: false,
            answers: false,
        }
    }

    #[inline]
    pub fn with_wrapped(self, wrapped: bool) -> Meta {
        Meta { wrapped, ..self }
    }

    #[inline]
    pub fn with_sparse(self, sparse: bool) -> Meta {
        Meta { sparse, ..self }
    }

    #[inline]
    pub fn with_answers(self, answers: bool) -> Meta {
        Meta { answers, ..self }
    }

    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    #[inline]
    pub fn shape(&self) -> &Dims {
        &self.layout.shape
    }
    #[inline]
    pub fn strides(&self) -> &Strides {
        &self.layout.strides
    }
    #[inline]
    pub fn offset(&self) -> usize {
        self.layout.offset
    }
    #[inline]
    pub fn ndim(&self) -> usize {
        self.layout.shape.len()
    }
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }
    #[inline]
    pub fn is_wrapped(&self) -> bool {
        self.wrapped
    }
    /// Whether there is no memory to read: only ops for lists of coordinates take the tensor.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }
    /// Whether the class of its object in the host language computes what is asked of the tensor.
    #[inline]
    pub fn answers(&self) -> bool {
        self.answers
    }
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }
    /// The size of dimension `d`; 1 for the one dimension that a 0-d tensor is taken to have.
    #[inline]
    pub fn size(&self, d: usize) -> usize {
        self.layout.shape.get(d).copied().unwrap_or(1)
    }
    /// The stride of dimension `d`; 0 for a 0-d tensor's.
    #[inline]
    pub fn stride(&self, d: usize) -> isize {
        self.layout.strides.get(d).copied().unwrap_or(0)
    }
}

impl AsRef<Meta> for Meta {
    #[inline]
    fn as_ref(&self) -> &Meta {
        self
    }
}

//! Metadata of a tensor without its memory: all that the shape and type of a result depend on.

use crate::device::Device;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::shape::{Dims, Strides};

/// How the elements are kept (`torch.layout`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Each at its place in memory.
    Strided,
    /// Coordinates and their values.
    Coo,
    /// A matrix by rows or by columns: where each line begins, then the places in it.
    Csr,
    Csc,
    /// The same of blocks.
    Bsr,
    Bsc,
}

impl Form {
    pub const ALL: [Form; 6] = [
        Form::Strided,
        Form::Coo,
        Form::Csr,
        Form::Csc,
        Form::Bsr,
        Form::Bsc,
    ];

    /// What it is called in `torch`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Strided => "strided",
            Form::Coo => "sparse_coo",
            Form::Csr => "sparse_csr",
            Form::Csc => "sparse_csc",
            Form::Bsr => "sparse_bsr",
            Form::Bsc => "sparse_bsc",
        }
    }

    /// What errors call it.
    pub fn title(self) -> &'static str {
        match self {
            Form::Strided => "Strided",
            Form::Coo => "Sparse",
            Form::Csr => "SparseCsr",
            Form::Csc => "SparseCsc",
            Form::Bsr => "SparseBsr",
            Form::Bsc => "SparseBsc",
        }
    }

    #[inline]
    pub fn is_sparse(self) -> bool {
        self != Form::Strided
    }

    /// Whether lines of a matrix are told by where they begin (a compressed layout).
    #[inline]
    pub fn is_packed(self) -> bool {
        !matches!(self, Form::Strided | Form::Coo)
    }

    /// Whether those lines are rows.
    pub fn by_rows(self) -> bool {
        matches!(self, Form::Csr | Form::Bsr)
    }

    /// Whether entries are blocks.
    pub fn in_blocks(self) -> bool {
        matches!(self, Form::Bsr | Form::Bsc)
    }

    /// That of the transpose.
    pub fn transposed(self) -> Form {
        match self {
            Form::Csr => Form::Csc,
            Form::Csc => Form::Csr,
            Form::Bsr => Form::Bsc,
            Form::Bsc => Form::Bsr,
            other => other,
        }
    }
}

/// Layout, type and device. A tensor lends its own ([`crate::tensor::Tensor`] dereferences to it), and a
/// call can be planned from metas of tensors that do not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meta {
    layout: Layout,
    dtype: DType,
    device: Device,
    /// Made from a Python number: takes part in promotion only by category.
    wrapped: bool,
    /// How the elements are kept.
    form: Form,
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
            form: Form::Strided,
            answers: false,
        }
    }

    #[inline]
    pub fn with_wrapped(self, wrapped: bool) -> Meta {
        Meta { wrapped, ..self }
    }

    #[inline]
    pub fn with_form(self, form: Form) -> Meta {
        Meta { form, ..self }
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
        self.form.is_sparse()
    }
    #[inline]
    pub fn form(&self) -> Form {
        self.form
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

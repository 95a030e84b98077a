//! Strided memory on the GPU, as the drivers take it.

use super::launch::Operand;
use super::{Buffer, Gpu};
use crate::dtype::DType;
use crate::error::Result;
use smallvec::SmallVec;

/// A strided tensor in GPU memory. Offset and strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub buffer: &'a Buffer,
    pub offset: usize,
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub dtype: DType,
}

impl View<'_> {
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(self.strides).rev().all(|(&n, &s)| {
            let fits = n == 1 || s == step;
            step *= n as isize;
            fits
        })
    }
}

impl<'a> From<View<'a>> for Operand<'a> {
    fn from(v: View<'a>) -> Self {
        Operand {
            buffer: Some(v.buffer),
            dtype: v.dtype,
        }
    }
}

/// Owned memory with a contiguous shape, for intermediate results.
pub struct Scratch {
    pub buffer: Buffer,
    shape: SmallVec<[usize; 5]>,
    strides: SmallVec<[isize; 5]>,
    dtype: DType,
}

impl Scratch {
    pub fn new(gpu: &Gpu, shape: &[usize], dtype: DType) -> Result<Scratch> {
        let buffer = gpu.alloc(shape.iter().product::<usize>() * dtype.size())?;
        let mut strides = SmallVec::from_elem(1, shape.len());
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d] as isize;
        }
        Ok(Scratch {
            buffer,
            shape: SmallVec::from_slice(shape),
            strides,
            dtype,
        })
    }

    pub fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            offset: 0,
            shape: &self.shape,
            strides: &self.strides,
            dtype: self.dtype,
        }
    }
}

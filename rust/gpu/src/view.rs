//! Strided memory on the GPU, as the drivers take it.

use super::binding::Operand;
use super::buffer::Window;
use super::{Buffer, Gpu};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::reach;
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

impl<'a> View<'a> {
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

impl<'a> View<'a> {
    /// The bytes between its first and its last element, both included; none where it is empty.
    fn span(&self) -> (u64, u64) {
        let (low, high) = reach(self.offset, self.shape, self.strides);
        let size = self.dtype.size();
        ((low * size) as u64, (high * size) as u64)
    }

    /// What a kernel binds, and where the first element is in it: the whole buffer where a binding
    /// can be so large, and else a window on what the view reaches.
    pub(super) fn bound(&self, gpu: &Gpu) -> (Operand<'a>, u32) {
        let mut operand = Operand::from(*self);
        let mut offset = self.offset;
        if self.buffer.capacity() > gpu.info().max_binding {
            let window = self.window();
            operand.window = Some(window);
            offset -= window.start as usize / self.dtype.size();
        }
        (operand, offset as u32)
    }

    /// What it reaches, in whole words and from where a binding may begin.
    fn window(&self) -> Window {
        let (low, high) = self.span();
        let start = low / Window::ALIGN * Window::ALIGN;
        let size = (high - start).next_multiple_of(4);
        Window { start, size }
    }

    /// The dimension to cut where the view reaches over more bytes than a binding can have, or over more
    /// than one segment.
    pub(super) fn too_wide(&self, gpu: &Gpu) -> Option<usize> {
        self.cut(gpu).map(|(d, _)| d)
    }

    /// [`View::too_wide`], and how many indices along it come before the cut: whole bindings, or those that
    /// lie in front of a seam, so that there are as few parts as can be.
    pub(super) fn cut(&self, gpu: &Gpu) -> Option<(usize, usize)> {
        let most = gpu.info().max_binding;
        if self.buffer.capacity() <= most {
            return None;
        }
        let (low, high) = self.span();
        // With what is in front of it up to a multiple of the alignment.
        let fits = high - low + Window::ALIGN <= most;
        let splits = self.buffer.splits(self.window());
        if fits && !splits {
            return None;
        }
        let reach = |&d: &usize| (self.shape[d] - 1) * self.strides[d].unsigned_abs();
        let widest = (0..self.shape.len()).max_by_key(reach);
        let d = widest.filter(|&d| self.shape[d] > 1)?;
        let n = self.shape[d];
        let before = match self.buffer.step().filter(|_| splits) {
            Some(step) => {
                // The seam in the middle, and the indices that end before it.
                let (first, last) = (low / step, (high - 1) / step);
                let seam = (first + last).div_ceil(2) * step;
                let stride = (self.strides[d].unsigned_abs() * self.dtype.size()) as u64;
                let one = high - low - stride * (n as u64 - 1);
                let whole = match (seam - low).checked_sub(one) {
                    Some(room) => room / stride.max(1) + 1,
                    None => 0,
                };
                // In front those that lie over the seam.
                let over = (one.div_ceil(stride.max(1)) as usize).clamp(1, n / 2);
                let whole = if whole == 0 {
                    over
                } else {
                    (whole as usize).min(n)
                };
                match self.strides[d] < 0 {
                    true => n - whole,
                    false => whole,
                }
            }
            None => {
                let parts = (high - low + Window::ALIGN).div_ceil(most).max(2);
                (n as u64 * (parts / 2)).div_ceil(parts) as usize
            }
        };
        Some((d, before.clamp(1, n - 1)))
    }

    /// The elements from `from` on along a dimension, as many as `shape` has there.
    pub(super) fn part<'b>(&self, d: usize, from: usize, shape: &'b [usize]) -> View<'b>
    where
        'a: 'b,
    {
        let offset = self.offset as isize + from as isize * self.strides[d];
        View {
            offset: offset as usize,
            shape,
            ..*self
        }
    }
}

impl<'a> From<View<'a>> for Operand<'a> {
    fn from(v: View<'a>) -> Self {
        Operand {
            buffer: Some(v.buffer),
            dtype: v.dtype,
            window: None,
        }
    }
}

/// The lower and the upper half of a dimension: where each begins, and its shape.
pub(super) fn halves(shape: &[usize], d: usize) -> [(usize, SmallVec<[usize; 8]>); 2] {
    parts(shape, d, shape[d] / 2)
}

/// The first `n` of a dimension and the others, as [`halves`].
pub(super) fn parts(shape: &[usize], d: usize, n: usize) -> [(usize, SmallVec<[usize; 8]>); 2] {
    [(0, n), (n, shape[d] - n)].map(|(from, n)| {
        let mut part = SmallVec::from_slice(shape);
        part[d] = n;
        (from, part)
    })
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
        let fresh = Scratch {
            buffer,
            shape: SmallVec::new(),
            strides: SmallVec::new(),
            dtype,
        };
        Ok(fresh.reshaped(shape))
    }

    /// The same memory under another shape of as many elements.
    pub fn reshaped(mut self, shape: &[usize]) -> Scratch {
        self.shape = SmallVec::from_slice(shape);
        self.strides = SmallVec::from_elem(1, shape.len());
        for d in (1..shape.len()).rev() {
            self.strides[d - 1] = self.strides[d] * shape[d] as isize;
        }
        self
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

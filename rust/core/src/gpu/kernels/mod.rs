//! One launcher for each shader: plain data in, dispatches out. No launcher takes a tensor without
//! elements to the GPU.

mod geometry;

pub mod conv;
pub mod copy;
pub mod index;
pub mod loss;
pub mod matmul;
pub mod norm;
pub mod optim;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod scatter;
pub mod softmax;

#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod tests;

use super::{Acc, Buffer, Gpu, Kernel};
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

/// Words of a parameter block.
type Params = SmallVec<[u32; 96]>;

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

    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

/// Calls `f` with a contiguous view of the same elements: `x` itself or a copy.
pub fn contiguous<R>(gpu: &Gpu, x: View, f: impl FnOnce(View) -> Result<R>) -> Result<R> {
    if x.is_contiguous() {
        return f(x);
    }
    let copy = Scratch::new(gpu, x.shape, x.dtype)?;
    copy::copy(gpu, x, copy.view())?;
    f(copy.view())
}

/// How many invocations share a row of `length` elements, and how many rows a workgroup has.
fn lanes_rows(length: usize, most: usize) -> (u32, u32) {
    let lanes = length.next_power_of_two().min(most).max(1);
    (lanes as u32, (256 / lanes).max(1) as u32)
}

/// An error where this adapter cannot compute in `acc`.
fn require(gpu: &Gpu, acc: Acc, what: &str) -> Result<()> {
    let ok = match acc {
        Acc::F32 | Acc::I32 => true,
        Acc::I64 => gpu.info().int64,
        Acc::F64 => gpu.info().int64 && gpu.info().float64,
    };
    crate::ensure!(
        ok,
        NotImplemented,
        "wgpu: {what}: this adapter ({}) has no {}",
        gpu.info().name,
        acc.dtype()
    );
    Ok(())
}

/// Workgroup size of kernels with one invocation for each element.
const WG: usize = 256;

/// Records a kernel of `n` independent invocations.
fn launch(
    gpu: &Gpu,
    file: &'static str,
    acc: Acc,
    constants: &[(&'static str, u32)],
    writes: &[&Buffer],
    reads: &[&Buffer],
    params: &[u32],
    n: usize,
) -> Result<()> {
    let groups = gpu.grid(n.div_ceil(WG))?;
    launch_groups(gpu, file, acc, constants, writes, reads, params, groups)
}

/// Records a kernel over a grid of workgroups.
fn launch_groups(
    gpu: &Gpu,
    file: &'static str,
    acc: Acc,
    constants: &[(&'static str, u32)],
    writes: &[&Buffer],
    reads: &[&Buffer],
    params: &[u32],
    groups: [u32; 3],
) -> Result<()> {
    let kernel = Kernel {
        file,
        entry: "main",
        acc,
        constants,
        tail: [""; 2],
        writes: writes.len(),
        reads: reads.len(),
    };
    let buffers: SmallVec<[&Buffer; 8]> = writes.iter().chain(reads).copied().collect();
    gpu.dispatch(&kernel, &buffers, params, groups)
}

/// The integer type whose copies move the bits of `dtype`, and how many of it an element is.
fn bits(dtype: DType) -> (DType, usize) {
    match dtype.size() {
        1 => (DType::U8, 1),
        2 => (DType::I16, 1),
        size => (DType::I32, size / 4),
    }
}

/// An error unless the named tensors are contiguous.
fn require_contiguous(what: &str, views: &[View]) -> Result<()> {
    crate::ensure!(
        views.iter().all(|v| v.is_contiguous()),
        Runtime,
        "wgpu: {what}: tensors must be contiguous"
    );
    Ok(())
}

/// The constant that tells a shader how elements of `dtype` are stored.
const fn format(dtype: DType) -> u32 {
    dtype as u32
}

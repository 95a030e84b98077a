//! Means of 2-d windows and their gradients. One dimension is a height of one.

use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::check_contiguous;

params! {
    struct Average {
        n: u32,
        x_offset: u32,
        y_offset: u32,
        divisor: u32,
        in_size: [u32; 2],
        out_size: [u32; 2],
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        count_padding: u32,
    }
}
shader! { static AVG_POOL: Average = "avg_pool2d.wgsl", Acc::FLOAT }

/// Elements of a window: below software Vulkan's 65,535 loop iterations.
pub const MAX_VOLUME: usize = 30_000;

/// Geometry: pairs are (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool2d {
    pub input: [usize; 2],
    pub output: [usize; 2],
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

/// What an average is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Divisor {
    /// Elements of the window inside the input.
    Inside,
    /// Elements of the window, with the padding.
    Padded,
    /// A fixed number.
    Fixed(u32),
    /// Windows are those of adaptive pooling, divided by their size.
    Adaptive,
}

pub fn pair(v: [usize; 2]) -> [u32; 2] {
    v.map(|v| v as u32)
}

impl Pool2d {
    pub fn check(&self, tensors: &[&Tensor]) -> Result<()> {
        check_contiguous("pool2d", tensors)?;
        let reach =
            |a: usize| self.kernel[a].max(self.input[a].div_ceil(self.output[a].max(1)) + 1);
        ensure!(
            reach(0) * reach(1) < MAX_VOLUME,
            NoKernel,
            "wgpu: pool2d: a window of {:?}",
            self.kernel
        );
        Ok(())
    }
}

/// The mean of each window of `x` [planes, input]; or, `adjoint`, the gradient of the input for
/// gradients `x` of the means.
pub fn average(
    gpu: &Gpu,
    g: &Pool2d,
    divisor: Divisor,
    adjoint: bool,
    x: &Tensor,
    y: &Tensor,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    g.check(&[x, y])?;
    let p = Average {
        n: y.numel() as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        divisor: match divisor {
            Divisor::Fixed(n) => n,
            _ => 0,
        },
        in_size: pair(g.input),
        out_size: pair(g.output),
        kernel: pair(g.kernel),
        stride: pair(g.stride),
        padding: pair(g.padding),
        count_padding: (divisor == Divisor::Padded) as u32,
    };
    AVG_POOL
        .launch(Acc::F32)
        .set("BACKWARD", adjoint)
        .set("ADAPTIVE", divisor == Divisor::Adaptive)
        .writes("Y", y)
        .reads("X", x)
        .each(gpu, &p, y.offset(), y.numel())
}

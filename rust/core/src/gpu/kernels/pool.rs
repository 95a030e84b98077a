//! 2-d pooling. One dimension is a height of one.

use super::{format, launch, require_contiguous, Params, View};
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};

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

fn params(g: &Pool2d, n: usize, offsets: [usize; 3], divisor: Divisor) -> Params {
    let mut p: Params = smallvec::smallvec![n as u32];
    p.extend(offsets.map(|o| o as u32));
    for pair in [g.input, g.output, g.kernel, g.stride, g.padding, g.dilation] {
        p.extend(pair.map(|v| v as u32));
    }
    p.push(if let Divisor::Fixed(n) = divisor {
        n
    } else {
        0
    });
    p.push((divisor == Divisor::Padded) as u32);
    p
}

fn check(g: &Pool2d, views: &[View]) -> Result<()> {
    require_contiguous("pool2d", views)?;
    // Software Vulkan ends an invocation after 65,535 loop iterations.
    let window = (0..2).map(|a| g.kernel[a].max(g.input[a].div_ceil(g.output[a].max(1)) + 1));
    ensure!(
        window.product::<usize>() < 30_000,
        NotImplemented,
        "wgpu: pool2d: a window of {:?}",
        g.kernel
    );
    Ok(())
}

/// The largest element of each window of `x` [planes, input], and its index in the plane (int64); of
/// padding alone the least value and -1.
pub fn max(gpu: &Gpu, g: &Pool2d, x: View, y: View, index: View) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check(g, &[x, y, index])?;
    let mut p = params(
        g,
        y.numel(),
        [x.offset, y.offset, index.offset],
        Divisor::Inside,
    );
    let constants = [
        ("X", format(x.dtype)),
        ("Y", format(y.dtype)),
        ("I", format(index.dtype)),
    ];
    let acc = Acc::of(x.dtype)?;
    p.extend(match acc {
        Acc::F32 | Acc::F64 => acc.words(f64::NEG_INFINITY),
        _ => acc.int_words(x.dtype.limits().0),
    });
    super::require(gpu, acc, "max_pool2d")?;
    let written = [y.buffer, index.buffer];
    launch(
        gpu,
        "max_pool2d",
        acc,
        &constants,
        &written,
        &[x.buffer],
        &p,
        y.numel(),
    )
}

/// The gradient `d` of the input for gradient `g` of the largest elements at `index`.
pub fn max_backward(gpu: &Gpu, geometry: &Pool2d, g: View, index: View, d: View) -> Result<()> {
    if d.numel() == 0 {
        return Ok(());
    }
    check(geometry, &[g, index, d])?;
    let p = params(
        geometry,
        d.numel(),
        [g.offset, d.offset, index.offset],
        Divisor::Inside,
    );
    let constants = [
        ("X", format(g.dtype)),
        ("Y", format(d.dtype)),
        ("I", format(index.dtype)),
    ];
    let read = [g.buffer, index.buffer];
    launch(
        gpu,
        "max_pool2d_backward",
        Acc::F32,
        &constants,
        &[d.buffer],
        &read,
        &p,
        d.numel(),
    )
}

/// The mean of each window of `x` [planes, input].
pub fn avg(gpu: &Gpu, g: &Pool2d, divisor: Divisor, x: View, y: View) -> Result<()> {
    average(gpu, "avg_pool2d", g, divisor, x, y)
}

/// The gradient `d` of the input for gradient `g` of the means.
pub fn avg_backward(
    gpu: &Gpu,
    geometry: &Pool2d,
    divisor: Divisor,
    g: View,
    d: View,
) -> Result<()> {
    average(gpu, "avg_pool2d_backward", geometry, divisor, g, d)
}

fn average(
    gpu: &Gpu,
    file: &'static str,
    g: &Pool2d,
    divisor: Divisor,
    x: View,
    y: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check(g, &[x, y])?;
    let p = params(g, y.numel(), [x.offset, y.offset, 0], divisor);
    let constants = [
        ("X", format(x.dtype)),
        ("Y", format(y.dtype)),
        ("ADAPTIVE", (divisor == Divisor::Adaptive) as u32),
    ];
    launch(
        gpu,
        file,
        Acc::F32,
        &constants,
        &[y.buffer],
        &[x.buffer],
        &p,
        y.numel(),
    )
}

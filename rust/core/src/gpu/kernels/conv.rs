//! 2-d convolution and its gradients. One dimension is a height of one.

use super::reduce::{reduce, Combine, Map};
use super::{format, launch_groups, require_contiguous, Params, Scratch, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};

/// Geometry: pairs are (height, width).
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub groups: usize,
    pub input: [usize; 2],
    pub output: [usize; 2],
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

/// The same bounds as in the matrix product.
const MAX_DEPTH: usize = 16_384;
const ENOUGH: usize = 128;
const MIN_PART: usize = 256;

/// `y = conv(x, weight) + bias`; `x` [batch, in, input], `weight` [out, in / groups, kernel], `y`
/// [batch, out, output], all contiguous floats of at most 32 bits.
pub fn forward(
    gpu: &Gpu,
    c: &Conv2d,
    x: View,
    weight: View,
    bias: Option<View>,
    y: View,
) -> Result<()> {
    let taps = c.kernel[0] * c.kernel[1];
    let columns = c.batch * c.output[0] * c.output[1];
    let k = c.in_channels / c.groups * taps;
    product(
        gpu,
        c,
        0,
        [c.out_channels / c.groups, columns, k],
        weight,
        x,
        bias,
        y,
    )
}

/// The gradient `d` of the input for gradient `g` of the output; with a bias, this is transposed
/// convolution of `g`.
pub fn backward_input(
    gpu: &Gpu,
    c: &Conv2d,
    g: View,
    weight: View,
    bias: Option<View>,
    d: View,
) -> Result<()> {
    let taps = c.kernel[0] * c.kernel[1];
    let columns = c.batch * c.input[0] * c.input[1];
    let k = c.out_channels / c.groups * taps;
    product(
        gpu,
        c,
        1,
        [c.in_channels / c.groups, columns, k],
        weight,
        g,
        bias,
        d,
    )
}

/// The gradient `d` of the weight.
pub fn backward_weight(gpu: &Gpu, c: &Conv2d, x: View, g: View, d: View) -> Result<()> {
    let columns = c.in_channels / c.groups * c.kernel[0] * c.kernel[1];
    let k = c.batch * c.output[0] * c.output[1];
    product(
        gpu,
        c,
        2,
        [c.out_channels / c.groups, columns, k],
        g,
        x,
        None,
        d,
    )
}

fn product(
    gpu: &Gpu,
    c: &Conv2d,
    mode: u32,
    [m, n, k]: [usize; 3],
    a: View,
    b: View,
    bias: Option<View>,
    y: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    require_contiguous("conv2d", &[a, b, y])?;
    let wg = if m >= 64 && n >= 64 { 16 } else { 8 };
    let tile = 4 * wg;
    let tiles = m.div_ceil(tile) * n.div_ceil(tile) * c.groups;
    let wanted = if bias.is_some() {
        1
    } else {
        ENOUGH.div_ceil(tiles).min(k / MIN_PART)
    };
    let splits = wanted.max(k.div_ceil(MAX_DEPTH)).max(1);
    let part = k.div_ceil(splits).next_multiple_of(16).max(16);
    let splits = k.div_ceil(part).max(1);
    ensure!(
        splits == 1 || bias.is_none(),
        NotImplemented,
        "wgpu: conv2d: {k} products for each element with a bias"
    );
    ensure!(
        y.numel() * splits <= u32::MAX as usize,
        NotImplemented,
        "wgpu: conv2d: a result of {} elements",
        y.numel()
    );
    let partial = match splits {
        1 => None,
        _ => Some(Scratch::new(gpu, &[splits, y.numel()], DType::F32)?),
    };
    let into = partial.as_ref().map_or(y, |s| s.view());
    let mut p: Params = [
        m,
        n,
        k,
        c.groups,
        splits,
        part,
        m.div_ceil(tile),
        n.div_ceil(tile),
        a.offset,
        b.offset,
        bias.map_or(0, |v| v.offset),
        into.offset,
        y.numel(),
        c.in_channels / c.groups,
        c.out_channels / c.groups,
        0,
    ]
    .iter()
    .map(|&v| v as u32)
    .collect();
    for pair in [c.input, c.output, c.kernel, c.stride, c.padding, c.dilation] {
        p.extend(pair.map(|v| v as u32));
    }
    let constants = [
        ("A", format(a.dtype)),
        ("B", format(b.dtype)),
        ("C", format(bias.map_or(DType::F32, |v| v.dtype))),
        ("Y", format(into.dtype)),
        ("MODE", mode),
        ("HAS_BIAS", bias.is_some() as u32),
        ("WG", wg as u32),
        ("TILE", tile as u32),
        ("SHARED", 16 * tile as u32),
    ];
    let read = [a.buffer, b.buffer, bias.map_or(a.buffer, |v| v.buffer)];
    let grid = gpu.grid(tiles * splits)?;
    launch_groups(
        gpu,
        "conv2d",
        Acc::F32,
        &constants,
        &[into.buffer],
        &read,
        &p,
        grid,
    )?;
    match partial {
        None => Ok(()),
        Some(partial) => reduce(gpu, Combine::Sum, Map::Keep, 1.0, partial.view(), 1, y),
    }
}

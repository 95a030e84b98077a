//! 2-d convolution and its gradients. One dimension is a height of one.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::layout::Layout;
use crate::ops::linalg::matmul::gpu::matmul;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, whole};

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

/// Which of the three factors is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    ToInput,
    ToWeight,
}

impl Mode {
    const NUMBERS: Numbers = &[
        ("FORWARD", Mode::Forward as u32),
        ("TO_INPUT", Mode::ToInput as u32),
        ("TO_WEIGHT", Mode::ToWeight as u32),
    ];
}

params! {
    struct Params {
        m: u32,
        n: u32,
        k: u32,
        groups: u32,
        splits: u32,
        part: u32,
        tiles_m: u32,
        tiles_n: u32,
        a_offset: u32,
        b_offset: u32,
        c_offset: u32,
        y_offset: u32,
        y_split: u32,
        in_channels: u32,
        out_channels: u32,
        pad0: u32,
        in_size: [u32; 2],
        out_size: [u32; 2],
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        dilation: [u32; 2],
    }
}
shader! { static CONV: Params = "conv2d.wgsl", Acc::FLOAT, numbers Mode::NUMBERS, &[("DEPTH", DEPTH as u32)] }

/// The same bounds as in the matrix product.
const DEPTH: usize = 16;
const MAX_DEPTH: usize = 16_384;
const ENOUGH: usize = 128;
const MIN_PART: usize = 256;

/// `y = conv(x, weight) + bias`; `x` [batch, in, input], `weight` [out, in / groups, kernel], `y`
/// [batch, out, output], all contiguous floats of at most 32 bits.
pub fn forward(
    gpu: &Gpu,
    c: &Conv2d,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    let columns = c.batch * c.output[0] * c.output[1];
    let k = c.in_channels / c.groups * c.taps();
    let size = [c.out_channels / c.groups, columns, k];
    if let Some(places) = c.plain() {
        let shape = [c.batch, c.out_channels, c.in_channels];
        let weight = stack(weight, shape, [0, c.in_channels, 1]);
        return mixed(gpu, c, places, &weight, x, bias, y);
    }
    product(gpu, c, Mode::Forward, size, weight, x, bias, y)
}

/// The gradient `y` of the input for gradient `g` of the output; with a bias, this is transposed
/// convolution of `g`.
pub fn backward_input(
    gpu: &Gpu,
    c: &Conv2d,
    g: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    let columns = c.batch * c.input[0] * c.input[1];
    let k = c.out_channels / c.groups * c.taps();
    let size = [c.in_channels / c.groups, columns, k];
    if let Some(places) = c.plain() {
        let shape = [c.batch, c.in_channels, c.out_channels];
        let weight = stack(weight, shape, [0, 1, c.in_channels]);
        return mixed(gpu, c, places, &weight, g, bias, y);
    }
    product(gpu, c, Mode::ToInput, size, weight, g, bias, y)
}

/// The gradient `y` of the weight.
pub fn backward_weight(gpu: &Gpu, c: &Conv2d, x: &Tensor, g: &Tensor, y: &Tensor) -> Result<()> {
    let columns = c.in_channels / c.groups * c.taps();
    let k = c.batch * c.output[0] * c.output[1];
    let size = [c.out_channels / c.groups, columns, k];
    let (out, own) = (c.out_channels, c.in_channels);
    if let Some(n) = c.plain().filter(|_| c.batch * out * own < 1 << 26) {
        let g = stack(g, [c.batch, out, n], [out * n, n, 1]);
        let x = stack(x, [c.batch, n, own], [own * n, 1, n]);
        if c.batch == 1 {
            let y = stack(y, [1, out, own], [out * own, own, 1]);
            return matmul(gpu, &g, &x, None, 1.0, &y, None);
        }
        let each = Tensor::empty(&[c.batch, out, own], DType::F32, y.device())?;
        matmul(gpu, &g, &x, None, 1.0, &each, None)?;
        let to = stack(y, [1, out, own], [out * own, own, 1]);
        let (from, to) = (whole(&each)?, whole(&to)?);
        return reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to);
    }
    product(gpu, c, Mode::ToWeight, size, g, x, None, y)
}

impl Conv2d {
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The places of an image, where each result is made of one place alone.
    fn plain(&self) -> Option<usize> {
        let plain = self.kernel == [1, 1]
            && self.stride == [1, 1]
            && self.padding == [0, 0]
            && self.groups == 1;
        plain.then(|| self.output[0] * self.output[1])
    }
}

/// A contiguous tensor as a stack of matrices.
fn stack(t: &Tensor, shape: [usize; 3], strides: [usize; 3]) -> Tensor {
    t.alias(Layout {
        offset: t.offset(),
        shape: Dims::from_slice(&shape),
        strides: strides.iter().map(|&s| s as isize).collect(),
    })
}

/// Channels mixed place by place: a product of matrices for each sample.
fn mixed(
    gpu: &Gpu,
    c: &Conv2d,
    places: usize,
    weight: &Tensor,
    x: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    check_contiguous("conv2d", &[x, y])?;
    if y.numel() == 0 {
        return Ok(());
    }
    let (to, from) = (weight.size(1), weight.size(2));
    let of = |t: &Tensor, channels: usize| {
        let shape = [c.batch, channels, places];
        stack(t, shape, [channels * places, places, 1])
    };
    let bias = bias.map(|b| stack(b, [c.batch, to, places], [0, 1, 0]));
    let bias = bias.as_ref().map(|b| (b, 1.0));
    matmul(gpu, weight, &of(x, from), bias, 1.0, &of(y, to), None)
}

fn pair(v: [usize; 2]) -> [u32; 2] {
    v.map(|v| v as u32)
}

fn product(
    gpu: &Gpu,
    c: &Conv2d,
    mode: Mode,
    [m, n, k]: [usize; 3],
    a: &Tensor,
    b: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("conv2d", &[a, b, y])?;
    let wg = if m >= 64 && n >= 64 { 16 } else { 8 };
    let tile = 4 * wg;
    let tiles = m.div_ceil(tile) * n.div_ceil(tile) * c.groups;
    let wanted = if bias.is_some() {
        1
    } else {
        ENOUGH.div_ceil(tiles).min(k / MIN_PART)
    };
    let splits = wanted.max(k.div_ceil(MAX_DEPTH)).max(1);
    let part = k.div_ceil(splits).next_multiple_of(DEPTH).max(DEPTH);
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
        _ => Some(Tensor::empty(&[splits, y.numel()], DType::F32, y.device())?),
    };
    let into = partial.as_ref().unwrap_or(y);
    let p = Params {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        groups: c.groups as u32,
        splits: splits as u32,
        part: part as u32,
        tiles_m: m.div_ceil(tile) as u32,
        tiles_n: n.div_ceil(tile) as u32,
        a_offset: a.offset() as u32,
        b_offset: b.offset() as u32,
        c_offset: bias.map_or(0, |t| t.offset()) as u32,
        y_offset: into.offset() as u32,
        y_split: y.numel() as u32,
        in_channels: (c.in_channels / c.groups) as u32,
        out_channels: (c.out_channels / c.groups) as u32,
        pad0: 0,
        in_size: pair(c.input),
        out_size: pair(c.output),
        kernel: pair(c.kernel),
        stride: pair(c.stride),
        padding: pair(c.padding),
        dilation: pair(c.dilation),
    };
    let result = match partial {
        None => Some(whole(y)?),
        Some(_) => None,
    };
    CONV.launch(Acc::F32)
        .set("MODE", mode as u32)
        .set("HAS_BIAS", bias.is_some())
        .set("WG", wg as u32)
        .writes("Y", into)
        .reads("A", a)
        .reads("B", b)
        .reads("C", bias.unwrap_or(a))
        .gives(result)
        .groups(gpu, &p, tiles * splits)?;
    match partial {
        None => Ok(()),
        Some(sums) => reduce(
            gpu,
            Combine::Sum,
            Map::Keep,
            1.0,
            whole(&sums)?,
            [0].into(),
            whole(y)?,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::{close, gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn conv2d_gradients_are_the_adjoints_of_the_forward_pass() {
        let Some((_turn, gpu)) = gpu() else { return };
        let c = Conv2d {
            batch: 2,
            in_channels: 6,
            out_channels: 4,
            groups: 2,
            input: [9, 7],
            output: [5, 6],
            kernel: [3, 2],
            stride: [2, 1],
            padding: [1, 0],
            dilation: [1, 1],
        };
        let (nx, nw, ny) = (2 * 6 * 63, 4 * 3 * 6, 2 * 4 * 30);
        let (x, w, g) = (noise(nx, 1), noise(nw, 2), noise(ny, 3));
        let tx = put(&[2, 6, 9, 7], DType::F32, &x);
        let tw = put(&[4, 3, 3, 2], DType::F32, &w);
        let tg = put(&[2, 4, 5, 6], DType::F32, &g);
        let y = fresh(&[2, 4, 5, 6], DType::F32);
        let dx = fresh(&[2, 6, 9, 7], DType::F32);
        let dw = fresh(&[4, 3, 3, 2], DType::F32);
        forward(gpu, &c, &tx, &tw, None, &y).unwrap();
        backward_input(gpu, &c, &tg, &tw, None, &dx).unwrap();
        backward_weight(gpu, &c, &tx, &tg, &dw).unwrap();
        let mut want = vec![];
        for (b, o, i, j) in (0..2)
            .flat_map(|b| (0..4).map(move |o| (b, o)))
            .flat_map(|(b, o)| (0..30).map(move |e| (b, o, e / 6, e % 6)))
        {
            let mut sum = 0.0;
            for ch in 0..3 {
                for (p, q) in (0..6).map(|e| (e / 2, e % 2)) {
                    let (r, s) = ((2 * i + p) as isize - 1, j + q);
                    if (0..9).contains(&r) {
                        let at = ((b * 6 + o / 2 * 3 + ch) * 9 + r as usize) * 7 + s;
                        sum += x[at] as f64 * w[((o * 3 + ch) * 3 + p) * 2 + q] as f64;
                    }
                }
            }
            want.push(sum);
        }
        let got = get::<f32>(&y);
        close(&got, &want, 1e-5);
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum()
        };
        let both = dot(&got, &g);
        assert!((dot(&get(&dx), &x) - both).abs() < 1e-4 * both.abs().max(1.0));
        assert!((dot(&get(&dw), &w) - both).abs() < 1e-4 * both.abs().max(1.0));
    }

    #[test]
    fn conv2d_weight_gradient_longer_than_the_loop_limit_is_right() {
        let Some((_turn, gpu)) = gpu() else { return };
        // 1 x 1 kernels: the gradient is the sum of products over 40,000 positions.
        let n = 200;
        let c = Conv2d {
            batch: 1,
            in_channels: 1,
            out_channels: 1,
            groups: 1,
            input: [n, n],
            output: [n, n],
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
        };
        let (x, g) = (noise(n * n, 1), noise(n * n, 2));
        let shape = [1, 1, n, n];
        let (tx, tg) = (put(&shape, DType::F32, &x), put(&shape, DType::F32, &g));
        let d = fresh(&[1, 1, 1, 1], DType::F32);
        backward_weight(gpu, &c, &tx, &tg, &d).unwrap();
        let want: f64 = x.iter().zip(&g).map(|(&a, &b)| a as f64 * b as f64).sum();
        close(&get(&d), &[want], 1e-4);
    }
}

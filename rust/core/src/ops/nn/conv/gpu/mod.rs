//! Convolution over up to three dimensions and its gradients; a missing dimension is one of size 1.

mod product;

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::WORKGROUP;
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::tile;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::ops::linalg::matmul::gpu::matmul;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, whole};
use product::{Mode, Params, Product, Way};

/// Geometry: depth, height and width.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub groups: usize,
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
}

/// Rows of a group of channels up to which each element is an invocation's own, if it has few
/// products.
const FEW_ROWS: usize = 4;
const FEW_PRODUCTS: usize = 1024;

/// Columns of the weight's gradient that a workgroup has at most where it has one row, places up to
/// which it is small, the least that are worth a workgroup more, and the most of an invocation, in
/// whose loops each column may be an iteration (see `tile`).
const FEW_TAPS: usize = 9;
const FEW_PLACES: usize = 1024;
const MIN_PLACES: usize = 4096;
const MAX_PLACES: usize = 4096;
/// Workgroups that are enough.
const ENOUGH: usize = 128;

/// How the weight's gradient of groups with few rows and channels is shared out.
struct Shared {
    taps: usize,
    lanes: usize,
    /// The parts of the places, and the length of each.
    parts: (usize, usize),
}

impl Shared {
    /// By the shape alone: all of it changes the result.
    fn of(m: usize, n: usize, k: usize, groups: usize) -> Shared {
        let chunks = n.div_ceil(FEW_TAPS);
        let lanes = if k <= FEW_PLACES { 64 } else { WORKGROUP };
        let wanted = ENOUGH
            .div_ceil((m * chunks * groups).max(1))
            .min(k / MIN_PLACES);
        let splits = wanted.max(k.div_ceil(MAX_PLACES * lanes)).max(1);
        let part = k.div_ceil(splits).max(1);
        Shared {
            taps: n.div_ceil(chunks.max(1)),
            lanes,
            parts: (k.div_ceil(part).max(1), part),
        }
    }
}

/// `y = conv(x, weight) + bias`; `x` [batch, in, input], `weight` [out, in / groups, kernel], `y`
/// [batch, out, output], all contiguous floats of at most 32 bits.
pub fn forward(
    gpu: &Gpu,
    c: &Geometry,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    if let Some(places) = c.plain() {
        let shape = [c.batch, c.out_channels, c.in_channels];
        let weight = stack(weight, shape, [0, c.in_channels, 1]);
        return mixed(gpu, c, places, &weight, x, bias, y);
    }
    product(gpu, c, Mode::Forward, None, weight, x, bias, y)
}

/// The gradient `y` of the input for gradient `g` of the output; with a bias, this is transposed
/// convolution of `g`.
pub fn backward_input(
    gpu: &Gpu,
    c: &Geometry,
    g: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    if let Some(places) = c.plain() {
        let shape = [c.batch, c.in_channels, c.out_channels];
        let weight = stack(weight, shape, [0, 1, c.in_channels]);
        return mixed(gpu, c, places, &weight, g, bias, y);
    }
    product(gpu, c, Mode::ToInput, None, weight, g, bias, y)
}

/// The gradient `y` of the weight.
pub fn backward_weight(gpu: &Gpu, c: &Geometry, x: &Tensor, g: &Tensor, y: &Tensor) -> Result<()> {
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
    product(gpu, c, Mode::ToWeight, None, g, x, None, y)
}

impl Geometry {
    /// The places of an image, where each result is made of one place alone.
    fn plain(&self) -> Option<usize> {
        let plain = self.kernel == [1; 3]
            && self.stride == [1; 3]
            && self.padding == [0; 3]
            && self.input == self.output
            && self.groups == 1;
        plain.then(|| volume(self.output))
    }

    /// How far apart the taps are that reach a place of a transposed convolution, and the inverse
    /// of the dilation modulo that, both without the factor that it shares with the stride.
    fn period(&self, d: usize) -> (usize, usize) {
        let (mut factor, mut rest) = (self.stride[d], self.dilation[d]);
        while rest > 0 {
            (factor, rest) = (rest, factor % rest);
        }
        let (period, own) = (self.stride[d] / factor, self.dilation[d] / factor);
        let inverse = (0..period).find(|i| i * (own % period) % period == 1 % period);
        (period, inverse.unwrap_or(0))
    }

    /// Fails where a coordinate is no number of the shader's.
    fn check(&self) -> Result<()> {
        let most = |v: [usize; 3]| v.into_iter().max().unwrap_or(0);
        let padded = most(self.input).saturating_add(most(self.padding).saturating_mul(2));
        let reach = most(self.stride).max(most(self.dilation));
        ensure!(
            padded < 1 << 29 && reach < 1 << 29 && most(self.output) < 1 << 29,
            NoKernel,
            "wgpu: convolution: a padded size of {padded} with steps of {reach}"
        );
        ensure!(
            (0..3).all(|d| self.period(d).0 < 1 << 16),
            NoKernel,
            "wgpu: convolution: a stride of {}",
            most(self.stride)
        );
        Ok(())
    }
}

fn volume(v: [usize; 3]) -> usize {
    v.iter().product()
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
    c: &Geometry,
    places: usize,
    weight: &Tensor,
    x: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    check_contiguous("convolution", &[x, y])?;
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

fn four(v: [usize; 3], last: usize) -> [u32; 4] {
    [v[0], v[1], v[2], last].map(|v| v as u32)
}

/// Strides of a contiguous volume, and a last one.
fn strides(size: [usize; 3], last: usize) -> [u32; 4] {
    four([size[1] * size[2], size[2], 1], last)
}

/// The product; in a way that is chosen here if none is given.
fn product(
    gpu: &Gpu,
    c: &Geometry,
    mode: Mode,
    way: Option<Way>,
    a: &Tensor,
    b: &Tensor,
    bias: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("convolution", &[a, b, y])?;
    c.check()?;
    let (own, out) = (c.in_channels / c.groups, c.out_channels / c.groups);
    let (inside, outside, taps) = (volume(c.input), volume(c.output), volume(c.kernel));
    let periods: [(usize, usize); 3] = std::array::from_fn(|d| c.period(d));
    // Sizes of the largest class.
    let many: [usize; 3] = std::array::from_fn(|d| c.stride[d].min(c.input[d]));
    let most: [usize; 3] = std::array::from_fn(|d| c.input[d].div_ceil(c.stride[d]));
    let reached: [usize; 3] = std::array::from_fn(|d| c.kernel[d].div_ceil(periods[d].0));
    // Of x and of the output: sizes, channels of a group, elements of a channel.
    let (x, o) = ((c.input, own, inside), (c.output, out, outside));
    let (source, places, classes, [m, n, k], channels) = match mode {
        Mode::Forward => (x, o, 1, [out, c.batch * outside, own * taps], own),
        Mode::ToWeight => (x, o, 1, [out, own * taps, c.batch * outside], own),
        Mode::ToInput => {
            let size = [own, c.batch * volume(most), out * volume(reached)];
            (o, x, volume(many), size, out)
        }
    };
    let group = own * out * taps;
    // Strides of m and of a group of channels, of the channel that taps are numbered by.
    let (weight_row, weight_channel) = match mode {
        Mode::ToInput => (taps, own * taps),
        _ => (own * taps, taps),
    };
    let (weight, image) = ((weight_row, group), (places.2, places.1 * places.2));
    let ((a_row, a_group), (y_row, y_group)) = match mode {
        Mode::ToWeight => (image, weight),
        _ => (weight, image),
    };
    let stacks = c.groups * classes;
    let few = m <= FEW_ROWS && way.is_none();
    let shared =
        (few && mode == Mode::ToWeight && own <= FEW_ROWS).then(|| Shared::of(m, n, k, c.groups));
    let few = few && mode != Mode::ToWeight && k <= FEW_PRODUCTS;
    let (splits, part) = match &shared {
        Some(shared) => shared.parts,
        None if few => (1, k),
        None => tile::parts(m, n, k, stacks),
    };
    ensure!(
        y.numel() * splits <= u32::MAX as usize && stacks * m * n <= u32::MAX as usize,
        NoKernel,
        "wgpu: convolution: a result of {} elements",
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
        tiles_m: 0,
        tiles_n: 0,
        y_split: y.numel() as u32,
        bias: bias.map_or(0, |t| t.offset()) as u32,
        classes: classes as u32,
        batch: c.batch as u32,
        channels: channels as u32,
        a_offset: a.offset() as u32,
        a_group: a_group as u32,
        a_row: a_row as u32,
        b_offset: b.offset() as u32,
        b_group: (source.1 * source.2) as u32,
        y_offset: into.offset() as u32,
        y_group: y_group as u32,
        y_row: y_row as u32,
        pad0: 0,
        pad1: 0,
        pad2: 0,
        source: four(source.0, source.2),
        source_strides: strides(source.0, c.groups * source.1 * source.2),
        places: four(places.0, 0),
        place_strides: strides(places.0, c.groups * places.1 * places.2),
        kernel: four(c.kernel, 0),
        kernel_strides: strides(c.kernel, weight_channel),
        stride: four(c.stride, 1),
        padding: four(c.padding, 0),
        dilation: four(c.dilation, 1),
        period: four(periods.map(|p| p.0), 1),
        inverse: four(periods.map(|p| p.1), 0),
    };
    let product = Product {
        gpu,
        c,
        mode,
        p,
        stacks,
        channels: source.1,
        a,
        b,
        bias,
        into,
        splits,
    };
    match (&shared, way) {
        _ if few => product.few()?,
        (Some(shared), _) => product.shared_out(shared.taps, shared.lanes)?,
        (None, Some(way)) => product.make(way)?,
        (None, None) => product.make(product.way()?)?,
    }
    match partial {
        None => Ok(()),
        Some(sums) => {
            let (from, to) = (whole(&sums)?, whole(y)?);
            reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::cooperative::{Cooperative, Factors};
    use crate::gpu::testing::{close, gpu, noise};
    use crate::gpu::tile::Tile;
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn conv2d_gradients_are_the_adjoints_of_the_forward_pass() {
        let Some((_turn, gpu)) = gpu() else { return };
        let c = Geometry {
            batch: 2,
            in_channels: 6,
            out_channels: 4,
            groups: 2,
            input: [1, 9, 7],
            output: [1, 5, 6],
            kernel: [1, 3, 2],
            stride: [1, 2, 1],
            padding: [0, 1, 0],
            dilation: [1, 1, 1],
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
    fn every_tile_gives_the_same_bits() {
        let Some((_turn, gpu)) = gpu() else { return };
        let c = Geometry {
            batch: 2,
            in_channels: 6,
            out_channels: 70,
            groups: 1,
            input: [3, 9, 7],
            output: [2, 5, 4],
            kernel: [2, 3, 2],
            stride: [2, 2, 3],
            padding: [1, 1, 2],
            dilation: [2, 1, 1],
        };
        let (nx, nw, ny) = (2 * 6 * 189, 70 * 6 * 12, 2 * 70 * 40);
        let x = put(&[nx], DType::F32, &noise(nx, 1));
        let w = put(&[nw], DType::F32, &noise(nw, 2));
        let g = put(&[ny], DType::F32, &noise(ny, 3));
        for (mode, a, b, n) in [
            (Mode::Forward, &w, &x, ny),
            (Mode::ToInput, &w, &g, nx),
            (Mode::ToWeight, &g, &x, nw),
        ] {
            let takes = |t: &Tile| mode != Mode::ToWeight || *t != tile::FLAT;
            let found = tile::TILES.into_iter().filter(takes).map(|tile| {
                let y = fresh(&[n], DType::F32);
                product(gpu, &c, mode, Some(Way::Tile(tile)), a, b, None, &y).unwrap();
                get::<u32>(&y)
            });
            let found: Vec<_> = found.collect();
            assert!(found.iter().all(|f| *f == found[0]), "{mode:?}");
        }
    }

    /// Whatever the size of its subgroups is beside the one that a kernel expects.
    #[test]
    fn cooperative_matrices_give_what_tiles_give() {
        let Some((_turn, gpu)) = gpu() else { return };
        let c = Geometry {
            batch: 2,
            in_channels: 12,
            out_channels: 140,
            groups: 2,
            input: [3, 9, 7],
            output: [2, 5, 4],
            kernel: [2, 3, 2],
            stride: [2, 2, 3],
            padding: [1, 1, 2],
            dilation: [2, 1, 1],
        };
        let (nx, nw, ny) = (2 * 12 * 189, 140 * 6 * 12, 2 * 140 * 40);
        let subgroups = gpu.info().subgroups;
        let mut tried = 0;
        // Other types differ by what an element is made of alone.
        for (dtype, terms, most) in [(DType::F16, 1, 3), (DType::F32, 2, 1)] {
            let on = |n: usize, seed| {
                let t = Tensor::from_slice(&noise(n, seed), &[n], DType::F32).unwrap();
                t.prepared(dtype).unwrap().to_device(gpu.device()).unwrap()
            };
            let (x, w, g) = (on(nx, 1), on(nw, 2), on(ny, 3));
            for (mode, a, b, n) in [
                (Mode::Forward, &w, &x, ny),
                (Mode::ToInput, &w, &g, nx),
                (Mode::ToWeight, &g, &x, nw),
            ] {
                let made = |way| {
                    let y = fresh(&[n], DType::F32);
                    product(gpu, &c, mode, Some(way), a, b, None, &y).unwrap();
                    get::<f32>(&y)
                };
                let want = made(Way::Tile(tile::SMALL));
                let want: Vec<f64> = want.into_iter().map(|v| v as f64).collect();
                for size in [subgroups[0] / 2, subgroups[0], 2 * subgroups[1]] {
                    let mut info = gpu.info().clone();
                    info.subgroups = [size; 2];
                    let ways = Cooperative::ways(&info, Factors { dtype, terms });
                    for way in ways.into_iter().take(most) {
                        close(&made(Way::Cooperative(way)), &want, 1e-5);
                        tried += 1;
                    }
                }
            }
        }
        eprintln!("{tried} ways on {}", gpu.info().name);
    }

    #[test]
    fn conv2d_weight_gradient_longer_than_the_loop_limit_is_right() {
        let Some((_turn, gpu)) = gpu() else { return };
        // 1 x 1 kernels: the gradient is the sum of products over 40,000 positions.
        let n = 200;
        let c = Geometry {
            batch: 1,
            in_channels: 1,
            out_channels: 1,
            groups: 1,
            input: [1, n, n],
            output: [1, n, n],
            kernel: [1, 1, 1],
            stride: [1, 1, 1],
            padding: [0, 0, 0],
            dilation: [1, 1, 1],
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

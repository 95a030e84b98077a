//! Sampling at a grid on the GPU: what each point reads is found once, and read, or added to, there.

use super::grid::{Border, GridSample, How};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::dense;

params! {
    struct Block {
        n: u32,
        points: u32,
        grid_offset: u32,
        pad: u32,
        size: [u32; 4],
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
const NUMBERS: Numbers = &[
    ("LINEAR", How::Linear as u32),
    ("NEAREST", How::Nearest as u32),
    ("CUBIC", How::Cubic as u32),
    ("ZEROS", Border::Zeros as u32),
    ("EDGE", Border::Edge as u32),
    ("REFLECT", Border::Reflect as u32),
];
shader! { static GRID_TAPS: Block = "grid_taps.wgsl", FLOATS, numbers NUMBERS }

/// What points read of planes: [samples, 1, taps, points] each, slopes with the coordinates in front.
struct Taps {
    /// Samples, channels, elements of a plane, taps and points.
    sizes: [usize; 5],
    places: Tensor,
    weights: Tensor,
    slopes: Tensor,
}

impl Taps {
    fn of(gpu: &Gpu, op: &GridSample, x: &Tensor, grid: &Tensor, forward: bool) -> Result<Taps> {
        // Coordinates of half types are rounded at each step, and all else is float32.
        let (n, own, t) = (x.ndim() - 2, grid.dtype(), grid.dtype().compute());
        ensure!(
            x.numel().max(grid.numel() * 64) < 1 << 31,
            NoKernel,
            "wgpu: grid_sampler: {} points of {n} dimensions",
            grid.numel() / n
        );
        let grid = dense(gpu, &grid.to_dtype(t)?)?;
        let count = match op.how {
            How::Nearest => 1usize,
            How::Linear => 2,
            How::Cubic => 4,
        };
        let all = count.pow(n as u32);
        let samples = x.size(0);
        let points = grid.numel() / n / samples;
        let shape = [samples, 1, all, points];
        let make =
            |lead: usize, t| Tensor::empty(&[lead, samples, 1, all, points], t, gpu.device());
        let places = Tensor::empty(&shape, DType::I32, gpu.device())?;
        let weights = Tensor::empty(&shape, t, gpu.device())?;
        let slopes = make(n, t)?;
        let mut size = [1; 4];
        for (d, to) in size[..n].iter_mut().enumerate() {
            *to = x.size(x.ndim() - 1 - d) as u32;
        }
        let p = Block {
            n: (samples * points) as u32,
            points: points as u32,
            grid_offset: grid.offset() as u32,
            pad: 0,
            size,
        };
        let nowhere = forward && op.border == Border::Zeros && op.how != How::Nearest;
        GRID_TAPS
            .launch(Acc::of(t)?)
            .set("HOW", op.how as u32)
            .set("BORDER", op.border as u32)
            .set("CORNERS", op.corners)
            .set("COUNT", count as u32)
            .set("DIMS", n as u32)
            .set("NOWHERE", nowhere)
            .set("ROUND", own as u32)
            .writes_words(&places)
            .writes_words(&weights)
            .writes_words(&slopes)
            .reads_words(&grid)
            .threads(gpu, &p, samples * points)?;
        let plane = x.shape()[2..].iter().product();
        Ok(Taps {
            sizes: [samples, x.size(1), plane, all, points],
            places,
            weights,
            slopes,
        })
    }

    /// The places for each channel: [samples channels, taps points].
    fn index(&self) -> Result<Tensor> {
        let [s, c, _, t, p] = self.sizes;
        self.places
            .expand_to(&[s, c, t, p])?
            .reshape_to(&[s * c, t * p])
    }

    /// What is read: [samples, channels, taps, points].
    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let [s, c, plane, t, p] = self.sizes;
        let flat = x.reshape_to(&[s * c, plane])?;
        flat.gather(1, &self.index()?)?.reshape_to(&[s, c, t, p])
    }
}

pub fn sample(gpu: &Gpu, op: &GridSample, x: &[&Tensor], y: &Tensor) -> Result<()> {
    let taps = Taps::of(gpu, op, x[0], x[1], true)?;
    let wide = x[0].to_dtype(taps.weights.dtype())?;
    let sum = taps.read(&wide)?.mul(&taps.weights)?.sum_dim(2, false)?;
    y.write_from(&sum.reshape_to(y.shape())?)
}

/// The gradients of the input and of the grid for that of the samples.
pub fn gradients(gpu: &Gpu, op: &GridSample, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let grid = x[2];
    let taps = Taps::of(gpu, op, x[1], grid, false)?;
    let wide = taps.weights.dtype();
    let (g, x) = (&x[0].to_dtype(wide)?, &x[1].to_dtype(wide)?);
    let [s, c, plane, t, p] = taps.sizes;
    let g = g.reshape_to(&[s, c, 1, p])?;
    let parts = g.mul(&taps.weights)?.reshape_to(&[s * c, t * p])?;
    let zeros = Tensor::zeros(&[s * c, plane], x.dtype(), x.device())?;
    let dx = zeros.scatter_add(1, &taps.index()?.to_dtype(DType::I64)?, &parts)?;
    y[0].write_from(&dx.reshape_to(x.shape())?)?;
    let pulls = taps.read(x)?.mul(&g)?;
    // [coordinates, samples, channels, taps, points] to [samples, points, coordinates].
    let pulls = taps
        .slopes
        .mul(&pulls)?
        .sum_mask([2, 3].into(), false, None)?;
    let pulls = pulls.permute(&[1, 2, 0])?;
    y[1].write_from(&pulls.reshape_to(grid.shape())?)
}

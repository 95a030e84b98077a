//! Sampling at the points of a grid.

use super::sampling::Sampling;
use super::taps;
use crate::alloc;
use crate::autograd::{mode, Vjp};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Mask, Metas, Op, Part, Save, TensorMeta};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_float};
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Border {
    Zeros,
    Edge,
    Reflect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GridSample {
    pub how: How,
    pub border: Border,
    pub corners: bool,
}

impl GridSample {
    /// A coordinate brought inside `0..size`, and its derivative.
    #[inline(always)]
    pub(super) fn inside(&self, x: f64, size: usize) -> (f64, f64) {
        match self.border {
            Border::Zeros => (x, 1.0),
            Border::Edge => clipped(x, 1.0, size),
            Border::Reflect => {
                let (x, slope) = self.reflected(x, size);
                clipped(x, slope, size)
            }
        }
    }

    /// As [`inside`](Self::inside), of many coordinates whose derivatives are one.
    #[inline(always)]
    pub(super) fn all_inside(&self, x: &mut [f64], slope: &mut [f64], size: usize) {
        let both = || std::iter::zip(x, slope);
        match self.border {
            Border::Zeros => {}
            Border::Edge => both().for_each(|(x, slope)| (*x, *slope) = clipped(*x, 1.0, size)),
            Border::Reflect => both().for_each(|(x, slope)| {
                let (inner, turn) = self.reflected(*x, size);
                (*x, *slope) = clipped(inner, turn, size);
            }),
        }
    }

    /// A coordinate reflected at the borders as often as it takes.
    #[inline(always)]
    fn reflected(&self, x: f64, size: usize) -> (f64, f64) {
        let n = size as f64;
        let (low, high) = match self.corners {
            true => (0.0, n - 1.0),
            false => (-0.5, n - 0.5),
        };
        let span = high - low;
        if span <= 0.0 {
            return (0.0, 0.0);
        }
        let far = (x - low).abs();
        let sign = if x < low { -1.0 } else { 1.0 };
        let times = (far / span).floor();
        let rest = far - times * span;
        let odd = (times * 0.5).floor() * 2.0 != times;
        let x = if odd { span - rest + low } else { rest + low };
        (x, if odd { -sign } else { sign })
    }

    /// Where a coordinate of a half type lies between elements: rounded to it at each step, as PyTorch's is.
    pub(super) fn place_of_half(&self, coordinate: f64, size: usize, t: DType) -> f64 {
        let (scale, shift) = self.scale(size);
        t.nearest(t.nearest(t.nearest(coordinate + 1.0) * scale) - shift)
    }

    /// What a coordinate, counted from -1, is multiplied by, and what is taken off.
    #[inline(always)]
    pub(super) fn scale(&self, size: usize) -> (f64, f64) {
        match self.corners {
            true => ((size as f64 - 1.0) / 2.0, 0.0),
            false => (size as f64 / 2.0, 0.5),
        }
    }
}

/// A coordinate of an element, and its derivative. NaN becomes the first.
#[inline(always)]
fn clipped(x: f64, slope: f64, size: usize) -> (f64, f64) {
    let last = size as f64 - 1.0;
    if x >= last {
        (last, 0.0)
    } else if x > 0.0 {
        (x, slope)
    } else {
        (0.0, 0.0)
    }
}

/// Derivatives of [`cubic`] by `t`.
#[inline(always)]
pub(super) fn cubic_slope(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| (3.0 * (A + 2.0) * x - 2.0 * (A + 3.0)) * x;
    let far = |x: f64| (3.0 * A * x - 10.0 * A) * x + 8.0 * A;
    [far(t + 1.0), near(t), -near(1.0 - t), -far(2.0 - t)]
}

/// (depth, height, width) of the last dimensions from `first` on; depth 1 for images.
fn volume(shape: &[usize], first: usize, n: usize) -> [usize; 3] {
    std::array::from_fn(|d| (d + n).checked_sub(3).map_or(1, |i| shape[first + i]))
}

impl Derivative for GridSample {
    fn name(&self) -> &'static str {
        "GridSampler2DBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let op = GridSampleGrad(*self);
        let (x, grid) = (cx.input(0)?, cx.input(1)?);
        let inputs = [g, &x, &grid];
        let d = if mode::traced() {
            dispatch::call(op, &inputs)?
        } else {
            dispatch::compute(&op, &inputs)?
        };
        Ok((0..2).map(|i| cx.needs(i).then(|| d[i].clone())).collect())
    }
}

impl Op for GridSample {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let n = x[0].ndim() - 2;
        let shape: Dims = x[0].shape()[..2]
            .iter()
            .chain(&x[1].shape()[1..=n])
            .copied()
            .collect();
        crate::shape::numel(&shape)?;
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: x[0].device(),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let own = x[0].dtype();
        let t = own.compute();
        let (a, grid) = (x[0].prepared(t)?, x[1].prepared(t)?);
        let n = a.ndim() - 2;
        let out = y[0].draft(t)?;
        let size = volume(a.shape(), 2, n);
        let (channels, points) = (a.size(1), y[0].shape()[2..].iter().product::<usize>());
        with_float!(t, "grid_sampler", T => {
            // SAFETY: contiguous tensors of type T; the output is this call's own.
            let (x, grid, to) =
                unsafe { (a.slice::<T>(), grid.slice::<T>(), Ptr::new(out.ptr::<T>())) };
            let job = Sampling { of: *self, own, x, grid, size, channels, points };
            let grain = (1 << 13) / ((channels + 8) << n) + 1;
            parallel_for(grid.len() / n, grain, |range| {
                // SAFETY: the fields are the tensors' sizes; points of ranges are disjoint.
                unsafe { job.sample(n, range, to) };
            });
        });
        y[0].write_from(&out)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let mut cuts = Cut::along([0], x.len(), y.len());
        // By points, and by channels.
        let (whole, along) = (Part::Whole, Part::Along);
        cuts.push(Cut::new([whole, along(1)], [along(2)]));
        cuts.push(Cut::new([along(1), whole], [along(1)]));
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(taps::sample(gpu, self, x, &y[0]))
    }
}

/// Both gradients of [`GridSample`]: inputs are g, x and grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GridSampleGrad(GridSample);

impl Derivative for GridSampleGrad {
    fn name(&self) -> &'static str {
        "GridSampler2DBackwardBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "derivative for aten::grid_sampler_2d_backward is not implemented: grid_sampler can be \
             differentiated once"
        )
    }
}

impl Op for GridSampleGrad {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(Metas::from_iter([
            TensorMeta::of(x[1]),
            TensorMeta::of(x[2]),
        ]))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let own = x[1].dtype();
        let t = own.compute();
        let (g, a, grid) = (x[0].prepared(t)?, x[1].prepared(t)?, x[2].prepared(t)?);
        let n = a.ndim() - 2;
        let size = volume(a.shape(), 2, n);
        let (samples, channels) = (a.size(0), a.size(1));
        let points = g.shape()[2..].iter().product::<usize>();
        let (own_dx, own_dgrid) = (y[0].draft(t)?, y[1].draft(t)?);
        with_float!(t, "grid_sampler_backward", T => {
            // SAFETY: contiguous tensors of type T; the outputs are this call's own.
            let (g, x, grid) = unsafe { (g.slice::<T>(), a.slice::<T>(), grid.slice::<T>()) };
            let (dx, dgrid) = (Ptr::new(own_dx.ptr::<T>()), Ptr::new(own_dgrid.ptr::<T>()));
            let sample = channels * size.iter().product::<usize>();
            let job = Sampling { of: self.0, own, x, grid, size, channels, points };
            let work = points * (channels + 8) * (1 << n);
            parallel_for(samples, (1 << 13) / work.max(1) + 1, |range| {
                // SAFETY: the fields are the tensors' sizes; samples belong to one range each.
                unsafe {
                    dx.part(range.start * sample..range.end * sample).fill(T::default());
                    job.gradients(n, range.start * points..range.end * points, g, dx, dgrid);
                }
            });
        });
        y[0].write_from(&own_dx)?;
        y[1].write_from(&own_dgrid)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let mut cuts = Cut::along([0], x.len(), y.len());
        // Sums of halves would be rounded once more in half types.
        if !x[1].dtype().is_half() && !x[2].dtype().is_half() {
            let (whole, along, sum) = (Part::Whole, Part::Along, Part::Sum);
            cuts.push(Cut::new([along(2), whole, along(1)], [sum, along(1)]));
            cuts.push(Cut::new([along(1), along(1), whole], [along(1), sum]));
        }
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(taps::gradients(gpu, &self.0, x, y))
    }
}

pub fn sample(x: &Tensor, grid: &Tensor, how: i64, border: i64, corners: bool) -> Result<Tensor> {
    let n = x.ndim().saturating_sub(2);
    ensure!(
        (n == 2 || n == 3) && x.ndim() == grid.ndim(),
        Runtime,
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got \
         input with sizes {} and grid with sizes {}",
        Show(x.shape()),
        Show(grid.shape())
    );
    ensure!(
        x.size(0) == grid.size(0),
        Runtime,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes \
         {} and grid with sizes {}",
        Show(x.shape()),
        Show(grid.shape())
    );
    ensure!(
        grid.size(n + 1) == n,
        Runtime,
        "grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes \
         {}",
        Show(grid.shape())
    );
    for d in 2..x.ndim() {
        ensure!(
            x.size(d) > 0,
            Runtime,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has \
             sizes {} with dimension {d} being empty",
            Show(x.shape())
        );
    }
    let how = match how {
        0 => How::Linear,
        1 => How::Nearest,
        2 => How::Cubic,
        _ => bail!(Runtime, "grid_sampler(): unknown interpolation mode {how}"),
    };
    let border = match border {
        0 => Border::Zeros,
        1 => Border::Edge,
        2 => Border::Reflect,
        _ => bail!(Runtime, "grid_sampler(): unknown padding mode {border}"),
    };
    ensure!(
        how != How::Cubic || n == 2,
        Runtime,
        "grid_sampler(): bicubic interpolation only supports 4D input"
    );
    ensure!(
        x.dtype() == grid.dtype(),
        Runtime,
        "grid_sampler(): expected scalar type {} but found {}: input and grid must have one type",
        x.dtype().scalar_name(),
        grid.dtype().scalar_name()
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"grid_sampler_{n}d_cpu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    dispatch::call1(
        GridSample {
            how,
            border,
            corners,
        },
        &[x, grid],
    )
}

/// `affine_grid_generator`: theta (N, n, n + 1), size (N, C, ...) of n = 2 or 3 dimensions.
pub fn affine(theta: &Tensor, size: &[i64], corners: bool) -> Result<Tensor> {
    let n = size.len().saturating_sub(2);
    ensure!(
        n == 2 || n == 3,
        Runtime,
        "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, got size {}",
        Show(size)
    );
    let size = crate::shape::sizes(size)?;
    ensure!(
        theta.shape()[..] == [size[0], n, n + 1],
        Runtime,
        "Expected a batch of {n}D affine matrices of shape Nx{n}x{} for size {}, but got {}",
        n + 1,
        Show(&size),
        Show(theta.shape())
    );
    let points: usize = size[2..].iter().product();
    let mut base = alloc::room(points * (n + 1));
    for p in 0..points {
        let mut rest = p;
        let mut row: SmallVec<[f64; 4]> = SmallVec::from_elem(1.0, n + 1);
        // Width comes first in a point and last in the size.
        for d in 0..n {
            let k = size[n + 1 - d];
            let (i, k) = ((rest % k) as f64, k as f64);
            rest /= k as usize;
            row[d] = match (corners, k > 1.0) {
                (_, false) => 0.0,
                (true, true) => 2.0 * i / (k - 1.0) - 1.0,
                (false, true) => (2.0 * i + 1.0) / k - 1.0,
            };
        }
        base.extend(row);
    }
    let base = Tensor::from_slice(&base, &[points, n + 1], crate::dtype::DType::F64)?
        .to_dtype(theta.dtype())?
        .to_device(theta.device())?;
    let y = base.matmul(&theta.permute(&[0, 2, 1])?)?;
    let shape: Dims = std::iter::once(size[0])
        .chain(size[2..].iter().copied())
        .chain([n])
        .collect();
    y.reshape_to(&shape)
}

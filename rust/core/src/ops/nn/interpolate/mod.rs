//! Interpolation: nearest, linear and cubic along each dimension, and sampling at a grid.

mod grid;
mod sampling;
mod taps;

use crate::arg;
use crate::dtype::DType;
use crate::error::{unwind, Error, Result};
use crate::ops::nn::resample::{check_sizes, Axis};
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    LinearSmooth,
    CubicSmooth,
}

/// How far apart outputs lie in the input. Indices are computed in f32 except for f64 tensors.
fn step(size: usize, out: usize, corners: bool, scale: Option<f64>) -> f64 {
    if corners {
        return if out > 1 {
            (size as f64 - 1.0) / (out as f64 - 1.0)
        } else {
            0.0
        };
    }
    match scale {
        Some(s) if s > 0.0 => 1.0 / s,
        _ => size as f64 / out as f64,
    }
}

/// Weights of the four neighbours at distance `t` from the second: Keys 1981, a = -0.75.
#[inline(always)]
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// The kernels of smoothed resampling; the cubic one has a = -0.5.
fn smooth(mode: Mode, x: f64) -> f64 {
    let x = x.abs();
    match mode {
        Mode::CubicSmooth if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        Mode::CubicSmooth if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        Mode::LinearSmooth if x < 1.0 => 1.0 - x,
        Mode::CubicSmooth | Mode::LinearSmooth => 0.0,
        _ => unwind(Error::runtime(format!("{mode:?} smooths nothing"))),
    }
}

/// One dimension's map from `size` to `out` elements.
fn axis(
    mode: Mode,
    size: usize,
    out: usize,
    corners: bool,
    scale: Option<f64>,
    double: bool,
) -> Result<Axis> {
    let round = |v: f64| if double { v } else { v as f32 as f64 };
    let step = round(step(size, out, corners, scale));
    let source = |i: usize, clamp: bool| {
        if corners {
            return round(i as f64 * step);
        }
        let at = round(round((i as f64 + 0.5) * step) - 0.5);
        if clamp {
            at.max(0.0)
        } else {
            at
        }
    };
    match mode {
        Mode::Nearest => Axis::gather(size, out, |i| {
            (round(i as f64 * step) as usize).min(size - 1)
        }),
        Mode::NearestExact => Axis::gather(size, out, |i| {
            (round((i as f64 + 0.5) * step) as usize).min(size - 1)
        }),
        Mode::Linear => Axis::new(size, out, true, |i, push| {
            if size == out {
                return push(i, 1.0);
            }
            let at = source(i, true);
            let low = (at.floor() as usize).min(size - 1);
            let t = (at - low as f64).clamp(0.0, 1.0);
            push(low, 1.0 - t);
            push((low + 1).min(size - 1), t);
        }),
        Mode::Cubic => Axis::new(size, out, true, |i, push| {
            let at = source(i, false);
            let low = at.floor();
            for (k, w) in cubic(at - low).into_iter().enumerate() {
                let j = (low as i64 - 1 + k as i64).clamp(0, size as i64 - 1);
                push(j as usize, w);
            }
        }),
        Mode::LinearSmooth | Mode::CubicSmooth => Axis::new(size, out, true, |i, push| {
            let reach = if mode == Mode::LinearSmooth { 1.0 } else { 2.0 };
            let (wide, narrow) = if step >= 1.0 {
                (reach * step, 1.0 / step)
            } else {
                (reach, 1.0)
            };
            let center = round(step * (i as f64 + 0.5));
            let first = ((center - wide + 0.5) as i64).max(0);
            let end = ((center + wide + 0.5) as i64).min(size as i64);
            let at = |j: i64| smooth(mode, (j as f64 - center + 0.5) * narrow);
            let sum: f64 = (first..end).map(at).sum();
            for j in first..end {
                push(j as usize, if sum == 0.0 { 0.0 } else { at(j) / sum });
            }
        }),
    }
}

struct Call<'a> {
    name: &'a str,
    node: &'static str,
    mode: Mode,
    corners: bool,
}

impl Call<'_> {
    fn run(&self, x: &Tensor, size: &[i64], scales: &[Option<f64>]) -> Result<Tensor> {
        let n = scales.len();
        ensure!(
            size.len() == n,
            Runtime,
            "It is expected output_size equals to {n}, but got size {}",
            size.len()
        );
        ensure!(
            x.ndim() == n + 2,
            Runtime,
            "It is expected input_size equals to {}, but got size {}",
            n + 2,
            x.ndim()
        );
        ensure!(
            x.shape()[2..].iter().all(|&s| s > 0) && size.iter().all(|&s| s > 0 && s < 1 << 31),
            Runtime,
            "Input and output sizes should be greater than 0, but got input {} output {}",
            Show(&x.shape()[2..]),
            Show(size)
        );
        ensure!(
            x.size(1) > 0 || x.size(0) == 0,
            Runtime,
            "Non-empty {}D data tensor expected but got a tensor with sizes {}",
            n + 2,
            Show(x.shape())
        );
        let bytes = n == 2 || matches!(self.mode, Mode::Nearest | Mode::NearestExact);
        ensure!(
            x.dtype().is_float() || (bytes && x.dtype() == DType::U8),
            NoKernel,
            "\"{}\" not implemented for '{}'",
            self.name,
            x.dtype().scalar_name()
        );
        // Weights of bytes are taken exactly and then rounded to integers.
        let double = match self.mode {
            Mode::Nearest | Mode::NearestExact => x.dtype() == DType::F64,
            _ => matches!(x.dtype(), DType::F64 | DType::U8),
        };
        let out: SmallVec<[usize; 3]> = size.iter().map(|&s| s as usize).collect();
        check_sizes(x, 2, &out)?;
        let axes = (0..n)
            .map(|d| match x.has_data() {
                true => axis(
                    self.mode,
                    x.size(d + 2),
                    out[d],
                    self.corners,
                    scales[d],
                    double,
                ),
                false => Ok(Axis::of_sizes(x.size(d + 2), out[d])),
            })
            .collect::<Result<_>>()?;
        x.resample(self.node, axes)
    }
}

/// Reads `(self, output_size, [align_corners,] scales...)` and runs.
fn upsample<Sig: Signature>(
    name: &str,
    node: &'static str,
    mode: Mode,
    n: usize,
    a: &Args<Sig>,
) -> Result<Value> {
    let named = match n {
        1 => [arg!(scales?), None, None],
        2 => [arg!(scales_h?), arg!(scales_w?), None],
        _ => [arg!(scales_d?), arg!(scales_h?), arg!(scales_w?)],
    };
    let scales: SmallVec<[Option<f64>; 3]> = named[..n]
        .iter()
        .map(|at| at.and_then(|at| a.opt_float(at)))
        .collect();
    let call = Call {
        name,
        node,
        mode,
        corners: arg!(align_corners?).map_or(Ok(false), |at| a.bool(at))?,
    };
    Ok(call
        .run(a.tensor(arg!(self))?, a.ints(arg!(output_size))?, &scales)?
        .into())
}

/// Reads `(input, output_size?, [align_corners,] scale_factors?)`: exactly one of both lists.
fn upsample_vec<Sig: Signature>(
    name: &str,
    node: &'static str,
    mode: Mode,
    n: usize,
    a: &Args<Sig>,
) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let call = Call {
        name,
        node,
        mode,
        corners: arg!(align_corners?).map_or(Ok(false), |at| a.bool(at))?,
    };
    let none = SmallVec::<[Option<f64>; 3]>::from_elem(None, n);
    match (
        a.opt_ints(arg!(output_size)),
        a.opt_floats(arg!(scale_factors)),
    ) {
        (Some(size), None) => Ok(call.run(x, size, &none)?.into()),
        (None, Some(scales)) => {
            ensure!(
                scales.len() == n && x.ndim() == n + 2,
                Runtime,
                "{name}: expected {n} scale factors and an input of {} dimensions, got {} and {}",
                n + 2,
                scales.len(),
                x.ndim()
            );
            let size: SmallVec<[i64; 3]> = (0..n)
                .map(|d| (x.size(d + 2) as f64 * scales[d]) as i64)
                .collect();
            let scales: SmallVec<[Option<f64>; 3]> = scales.iter().map(|&s| Some(s)).collect();
            Ok(call.run(x, &size, &scales)?.into())
        }
        _ => bail!(
            Runtime,
            "Must specify exactly one of output_size and scale_factors"
        ),
    }
}

use Mode::*;

crate::entries! {
    /// Resizes by taking the nearest element.
    "upsample_nearest1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor", NN | OUT,
    |a| upsample("upsample_nearest1d", "UpsampleNearest1DBackward0", Nearest, 1, a);
    "upsample_nearest1d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN,
    |a| upsample_vec("upsample_nearest1d", "UpsampleNearest1DBackward0", Nearest, 1, a);
    /// Resizes by taking the nearest element.
    "upsample_nearest2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("upsample_nearest2d", "UpsampleNearest2DBackward0", Nearest, 2, a);
    "upsample_nearest2d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("upsample_nearest2d", "UpsampleNearest2DBackward0", Nearest, 2, a);
    /// Resizes by taking the nearest element.
    "upsample_nearest3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("upsample_nearest3d", "UpsampleNearest3DBackward0", Nearest, 3, a);
    "upsample_nearest3d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("upsample_nearest3d", "UpsampleNearest3DBackward0", Nearest, 3, a);
    /// Resizes by taking the element nearest to the centre of each output.
    "_upsample_nearest_exact1d(Tensor self, int[1] output_size, float? scales=None) -> Tensor", NN | OUT,
    |a| upsample("_upsample_nearest_exact1d", "UpsampleNearestExact1DBackward0", NearestExact, 1, a);
    "_upsample_nearest_exact1d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN,
    |a| upsample_vec("_upsample_nearest_exact1d", "UpsampleNearestExact1DBackward0", NearestExact, 1, a);
    /// Resizes by taking the element nearest to the centre of each output.
    "_upsample_nearest_exact2d(Tensor self, int[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("_upsample_nearest_exact2d", "UpsampleNearestExact2DBackward0", NearestExact, 2, a);
    "_upsample_nearest_exact2d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("_upsample_nearest_exact2d", "UpsampleNearestExact2DBackward0", NearestExact, 2, a);
    /// Resizes by taking the element nearest to the centre of each output.
    "_upsample_nearest_exact3d(Tensor self, int[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("_upsample_nearest_exact3d", "UpsampleNearestExact3DBackward0", NearestExact, 3, a);
    "_upsample_nearest_exact3d(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("_upsample_nearest_exact3d", "UpsampleNearestExact3DBackward0", NearestExact, 3, a);
    /// Resizes by linear interpolation.
    "upsample_linear1d(Tensor self, int[1] output_size, bool align_corners, float? scales=None) -> Tensor", NN | OUT,
    |a| upsample("upsample_linear1d", "UpsampleLinear1DBackward0", Linear, 1, a);
    "upsample_linear1d(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", NN,
    |a| upsample_vec("upsample_linear1d", "UpsampleLinear1DBackward0", Linear, 1, a);
    /// Resizes by linear interpolation along two dimensions.
    "upsample_bilinear2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("upsample_bilinear2d", "UpsampleBilinear2DBackward0", Linear, 2, a);
    "upsample_bilinear2d(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("upsample_bilinear2d", "UpsampleBilinear2DBackward0", Linear, 2, a);
    /// Resizes by linear interpolation along three dimensions.
    "upsample_trilinear3d(Tensor self, int[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("upsample_trilinear3d", "UpsampleTrilinear3DBackward0", Linear, 3, a);
    "upsample_trilinear3d(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("upsample_trilinear3d", "UpsampleTrilinear3DBackward0", Linear, 3, a);
    /// Resizes by cubic interpolation along two dimensions. Keys 1981.
    "upsample_bicubic2d(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("upsample_bicubic2d", "UpsampleBicubic2DBackward0", Cubic, 2, a);
    "upsample_bicubic2d(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor", NN | FORMAT,
    |a| upsample_vec("upsample_bicubic2d", "UpsampleBicubic2DBackward0", Cubic, 2, a);
    /// As `upsample_bilinear2d`, widening the kernel where the image shrinks.
    "_upsample_bilinear2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("_upsample_bilinear2d_aa", "UpsampleBilinear2DAaBackward0", LinearSmooth, 2, a);
    /// As `upsample_bicubic2d`, widening the kernel where the image shrinks.
    "_upsample_bicubic2d_aa(Tensor self, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor", NN | FORMAT | OUT,
    |a| upsample("_upsample_bicubic2d_aa", "UpsampleBicubic2DAaBackward0", CubicSmooth, 2, a);
    /// Samples `input` at the points of `grid`, whose coordinates run from -1 to 1.
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", FN,
    |a| Ok(grid::sample(a.tensor(arg!(input))?, a.tensor(arg!(grid))?, a.int(arg!(interpolation_mode))?, a.int(arg!(padding_mode))?, a.bool(arg!(align_corners))?)?.into());
    /// As `grid_sampler`, for images.
    "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", FN,
    |a| Ok(grid::sample(a.tensor(arg!(input))?, a.tensor(arg!(grid))?, a.int(arg!(interpolation_mode))?, a.int(arg!(padding_mode))?, a.bool(arg!(align_corners))?)?.into());
    /// As `grid_sampler`, for volumes.
    "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor", FN,
    |a| Ok(grid::sample(a.tensor(arg!(input))?, a.tensor(arg!(grid))?, a.int(arg!(interpolation_mode))?, a.int(arg!(padding_mode))?, a.bool(arg!(align_corners))?)?.into());
    /// The sampling grid of batches of affine matrices, for `grid_sampler`.
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor", FN,
    |a| Ok(grid::affine(a.tensor(arg!(theta))?, a.ints(arg!(size))?, a.bool(arg!(align_corners))?)?.into());
}

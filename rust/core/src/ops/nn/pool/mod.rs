//! Pooling: maxima with their indices, averages, and the way back by indices.

mod adaptive;
mod fractional;
mod gpu;
mod indices;
mod max;
mod means;
mod regular;
mod windows;

use crate::arg;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::layout::packed_strides;
use crate::ops::nn::resample::gpu::{Divisor, Pool2d};
use crate::ops::nn::resample::Axis;
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use adaptive::{adaptive_avg, adaptive_max};
use fractional::fractional;
use indices::max_unpool;
use max::max_pool;
use means::{means, means_of_columns, By};
use smallvec::SmallVec;

/// Sizes of windows as they are called.
struct Windows {
    kernel: SmallVec<[i64; 3]>,
    stride: SmallVec<[i64; 3]>,
    padding: SmallVec<[i64; 3]>,
    dilation: SmallVec<[i64; 3]>,
    ceil: bool,
}

fn per_dim(name: &str, what: &str, v: &[i64], n: usize) -> Result<SmallVec<[i64; 3]>> {
    match v.len() {
        1 => Ok(SmallVec::from_elem(v[0], n)),
        k if k == n => Ok(SmallVec::from_slice(v)),
        _ => bail!(
            Runtime,
            "{name}: {what} must either be a single int, or a tuple of {} ints, but got {}",
            ["zero", "one", "two", "three"][n],
            Show(v)
        ),
    }
}

fn joined(v: impl IntoIterator<Item = i64>) -> String {
    v.into_iter()
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join("x")
}

/// The windows of a GPU kernel, for at most two dimensions.
fn grid(x: &Tensor, out: &[usize], windows: [&[i64]; 4]) -> Option<Pool2d> {
    let n = out.len();
    let wide = |v: &[usize], rest: usize| match *v {
        [w] => [rest, w],
        [h, w] => [h, w],
        _ => [rest; 2],
    };
    let sizes = |v: &[i64], rest: usize| {
        let v: SmallVec<[usize; 3]> = v.iter().map(|&k| k as usize).collect();
        wide(&v, rest)
    };
    let [kernel, stride, padding, dilation] = windows;
    (n <= 2).then(|| Pool2d {
        input: wide(&x.shape()[x.ndim() - n..], 1),
        output: wide(out, 1),
        kernel: sizes(kernel, 1),
        stride: sizes(stride, 1),
        padding: sizes(padding, 0),
        dilation: sizes(dilation, 1),
    })
}

impl Windows {
    fn grid(&self, x: &Tensor, out: &[usize]) -> Option<Pool2d> {
        grid(
            x,
            out,
            [&self.kernel, &self.stride, &self.padding, &self.dilation],
        )
    }

    fn read(
        name: &str,
        n: usize,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil: bool,
    ) -> Result<Windows> {
        let kernel = per_dim(name, "kernel_size", kernel, n)?;
        let w = Windows {
            stride: match stride.is_empty() {
                true => kernel.clone(),
                false => per_dim(name, "stride", stride, n)?,
            },
            padding: per_dim(name, "padding", padding, n)?,
            dilation: per_dim(name, "dilation", dilation, n)?,
            kernel,
            ceil,
        };
        if name == "max_pool1d" {
            for (what, v) in [
                ("kernel_size", w.kernel[0]),
                ("stride", w.stride[0]),
                ("dilation", w.dilation[0]),
            ] {
                ensure!(
                    v > 0,
                    Runtime,
                    "max_pool1d() {what} must be greater than zero, but got {v}"
                );
            }
        }
        ensure!(
            !w.stride.contains(&0),
            Runtime,
            "{name}: stride should not be zero"
        );
        let positive = |v: &[i64]| v.iter().all(|&k| k > 0);
        ensure!(
            positive(&w.kernel),
            Runtime,
            "{name}: kernel size should be greater than zero, but got {}",
            Show(&w.kernel)
        );
        ensure!(
            positive(&w.stride),
            Runtime,
            "{name}: stride should be greater than zero, but got {}",
            Show(&w.stride)
        );
        ensure!(
            positive(&w.dilation),
            Runtime,
            "{name}: dilation should be greater than zero, but got {}",
            Show(&w.dilation)
        );
        ensure!(
            w.padding.iter().all(|&p| p >= 0),
            Runtime,
            "{name}: pad must be non-negative, but got pad: {}",
            w.padding[0]
        );
        for d in 0..n {
            let (k, l, p) = (w.kernel[d], w.dilation[d], w.padding[d]);
            let reach = (k - 1).checked_mul(l).and_then(|r| r.checked_add(1));
            ensure!(
                reach.is_some_and(|r| p <= r / 2),
                Runtime,
                "{name}: pad should be at most half of effective kernel size, but got pad={p}, \
                 kernel_size={k} and dilation={l}"
            );
        }
        Ok(w)
    }

    /// The number of windows along each pooled dimension.
    fn outputs(&self, name: &str, x: &Tensor) -> Result<SmallVec<[usize; 3]>> {
        let n = self.kernel.len();
        let lead = x.ndim() - n;
        let mut out = SmallVec::<[i64; 3]>::new();
        for d in 0..n {
            let (size, k, s) = (x.size(lead + d) as i64, self.kernel[d], self.stride[d]);
            let (p, l) = (self.padding[d], self.dilation[d]);
            // `read` checked the window's reach; the rest is bounded by it.
            let span = size as i128 + 2 * p as i128 - l as i128 * (k as i128 - 1) - 1;
            let more = if self.ceil { s as i128 - 1 } else { 0 };
            let mut o = (span + more).div_euclid(s as i128) + 1;
            // The last window must start inside the input or the padding before it.
            if self.ceil && (o - 1) * s as i128 >= size as i128 + p as i128 {
                o -= 1;
            }
            out.push(o.clamp(i64::MIN as i128, i64::MAX as i128) as i64);
        }
        let channels = x.size(lead.saturating_sub(1)) as i64;
        ensure!(
            name != "max_pool1d" || out[0] >= 1,
            Runtime,
            "max_pool1d() Invalid computed output size: {}",
            out[0]
        );
        ensure!(
            out.iter().all(|&o| o >= 1),
            Runtime,
            "{name}: Given input size: ({channels}x{}). Calculated output size: ({channels}x{}). \
             Output size is too small: Invalid computed output size",
            joined(x.shape()[lead..].iter().map(|&s| s as i64)),
            joined(out.iter().map(|&o| o.max(0)))
        );
        Ok(out.iter().map(|&o| o as usize).collect())
    }
}

/// Checks the input's dimensions: `n` spatial ones, channels, and perhaps a batch.
fn check_input(name: &str, x: &Tensor, n: usize) -> Result<()> {
    let known = x.ndim() == n + 1 || x.ndim() == n + 2;
    ensure!(
        known || n == 1,
        Runtime,
        "{name}: non-empty {}D or {}D (batch mode) tensor expected for input",
        n + 1,
        n + 2
    );
    let empty = known
        .then(|| x.shape()[x.ndim() - n - 1..].iter().position(|&s| s == 0))
        .flatten();
    if let (Some(d), 3) = (empty, n) {
        bail!(
            Runtime,
            "{name}{}(): Expected input's non-batch dimensions to have positive length, but input has \
             a shape of {} and non-batch dimension {d} has length zero!",
            if name == "max_pool3d" { "_with_indices_out_cpu_template" } else { "" },
            Show(x.shape())
        );
    }
    ensure!(
        known && empty.is_none(),
        Runtime,
        "{name}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, \
         but got:{}",
        n + 1,
        n + 2,
        Show(x.shape())
    );
    Ok(())
}

fn avg_pool<Sig: Signature>(
    name: &'static str,
    node: &'static str,
    n: usize,
    a: &Args<Sig>,
) -> Result<Tensor> {
    let x = a.tensor(arg!(self))?;
    let w = Windows::read(
        name,
        n,
        a.ints(arg!(kernel_size))?,
        a.ints(arg!(stride))?,
        a.ints(arg!(padding))?,
        &[1],
        a.bool(arg!(ceil_mode))?,
    )?;
    let (padded, fixed) = (
        a.bool(arg!(count_include_pad))?,
        arg!(divisor_override?).and_then(|at| a.opt_int(at)),
    );
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2 || n == 3,
        Runtime,
        "{name}: Expected {} to {} dimensions, but got {}-dimensional tensor for argument #1 'self'",
        n + 1,
        n + 2,
        x.ndim()
    );
    check_input(name, x, n)?;
    ensure!(
        fixed != Some(0),
        Runtime,
        "{name}: divisor must be not zero"
    );
    ensure!(
        x.dtype().is_float() || x.dtype() == DType::I64,
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out = w.outputs(name, x)?;
    // The dimension of the windows, if they lie along one: what is behind it has one element.
    let lead = x.ndim() - n;
    let along = (0..n)
        .rev()
        .find(|&d| x.size(lead + d) > 1)
        .unwrap_or(n - 1);
    let plain = |d: usize| (w.kernel[d], w.stride[d], w.padding[d]) == (1, 1, 0);
    let by = match fixed {
        Some(f) => By::Number(Bitwise(f as f64)),
        None if padded => By::Padded,
        None => By::Inside,
    };
    let even = |d: usize, by: By| means::Windows::Even {
        kernel: w.kernel[d] as usize,
        stride: w.stride[d] as usize,
        padding: w.padding[d] as usize,
        by,
    };
    if (0..n).all(|d| d == along || plain(d)) {
        if let Some(y) = means(node, x, n - 1 - along, out[along], even(along, by)) {
            return y;
        }
    }
    if n > 1 && (0..n - 2).all(plain) {
        let rest = match fixed {
            Some(_) => By::Number(Bitwise(1.0)),
            None => by,
        };
        let windows = [even(n - 2, by), even(n - 1, rest)];
        if let Some(y) = means_of_columns(node, x, [out[n - 2], out[n - 1]], windows) {
            return y;
        }
    }
    let (mut axes, mut divisors) = (Vec::new(), Vec::new());
    for d in 0..n {
        let size = x.size(x.ndim() - n + d) as i64;
        let (k, s, p) = (w.kernel[d], w.stride[d], w.padding[d]);
        let window = |o: usize| {
            let start = o as i64 * s - p;
            let end = (start + k).min(size + p);
            (start.max(0), end.min(size), end - start)
        };
        axes.push(Axis::new(size as usize, out[d], false, |o, push| {
            let (start, end, _) = window(o);
            (start..end).for_each(|i| push(i as usize, 1.0));
        })?);
        let count = |o: usize| {
            let (start, end, whole) = window(o);
            match fixed {
                Some(f) => {
                    if d == 0 {
                        f as f64
                    } else {
                        1.0
                    }
                }
                None => {
                    if padded {
                        whole as f64
                    } else {
                        (end - start).max(1) as f64
                    }
                }
            }
        };
        divisors.push((0..out[d]).map(count).collect());
    }
    let divisor = match fixed {
        Some(f) => u32::try_from(f).ok().map(Divisor::Fixed),
        None if padded => Some(Divisor::Padded),
        None => Some(Divisor::Inside),
    };
    let pool = w.grid(x, &out).zip(divisor);
    x.resample_over(node, axes, divisors, pool)
}

const MAX1: &str = "MaxPool1DWithIndicesBackward0";
const MAX2: &str = "MaxPool2DWithIndicesBackward0";
const MAX3: &str = "MaxPool3DWithIndicesBackward0";

/// The results for lines in the order of those for images of one row, which they are in PyTorch.
fn as_image<Sig: Signature>(a: &Args<Sig>, y: Value) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    if x.ndim() != 3 || !x.layout().unsqueeze(2)?.suggests_channels_last() {
        return Ok(y);
    }
    let one = |t: Tensor| {
        let strides = packed_strides(t.shape(), &[1, 2, 0]);
        t.with_strides(strides)
    };
    Ok(match y {
        Value::Tensor(t) => one(t)?.into(),
        Value::Tuple(ts) => Value::Tuple(ts.into_iter().map(one).collect::<Result<_>>()?),
        other => other,
    })
}

crate::entries! {
    /// The largest element of each window, padding aside.
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    FN, |a| max_pool("max_pool1d", MAX1, 1, false, a);
    /// As `max_pool1d`, with the index of each element in its row.
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    FN, |a| max_pool("max_pool1d", MAX1, 1, true, a);
    /// The largest element of each window of the last two dimensions.
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    FN | FORMAT, |a| max_pool("max_pool2d", MAX2, 2, false, a);
    /// As `max_pool2d`, with the index of each element in its plane.
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    NN | FORMAT | OUT, |a| max_pool("max_pool2d", MAX2, 2, true, a);
    /// The largest element of each window of the last three dimensions.
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
    FN | FORMAT, |a| max_pool("max_pool3d", MAX3, 3, false, a);
    /// As `max_pool3d`, with the index of each element in its volume.
    "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    NN | FORMAT | OUT, |a| max_pool("max_pool3d", MAX3, 3, true, a);
    /// The mean of each window; `count_include_pad` counts padding as zeros.
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    FN, |a| as_image(a, avg_pool("avg_pool1d", "AvgPool1DBackward0", 1, a)?.into());
    /// The mean of each window of the last two dimensions.
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    NN | FORMAT | OUT, |a| avg_pool("avg_pool2d", "AvgPool2DBackward0", 2, a).map(Into::into);
    /// The mean of each window of the last three dimensions.
    "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    NN | OUT, |a| avg_pool("avg_pool3d", "AvgPool3DBackward0", 3, a).map(Into::into);
    /// Means of nearly equal parts, as many as `output_size` says.
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    FN, |a| as_image(a, adaptive_avg("adaptive_avg_pool1d", "AdaptiveAvgPool1DBackward0", 1, a)?.into());
    /// As `adaptive_avg_pool1d`, over the last two dimensions.
    "adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    NN | FORMAT | OUT, |a| adaptive_avg("adaptive_avg_pool2d", "AdaptiveAvgPool2DBackward0", 2, a).map(Into::into);
    /// As `adaptive_avg_pool1d`, over the last three dimensions.
    "adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
    NN | OUT, |a| {
        let y = adaptive_avg("adaptive_avg_pool3d", "AdaptiveAvgPool3DBackward0", 3, a)?;
        // Only a mean over everything keeps the order, as PyTorch's.
        let whole = y.ndim() == 5 && y.shape()[2..] == [1, 1, 1];
        Ok(match whole && a.tensor(arg!(self))?.layout().suggests_channels_last() {
            true => y.in_channels_last()?.into(),
            false => y.into(),
        })
    };
    /// Largest elements of nearly equal parts, with their indices.
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    FN, |a| as_image(a, adaptive_max("adaptive_max_pool1d", "AdaptiveMaxPool1DBackward0", 1, a)?);
    /// As `adaptive_max_pool1d`, over the last two dimensions.
    "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
    NN | FORMAT | OUT, |a| adaptive_max("adaptive_max_pool2d", "AdaptiveMaxPool2DBackward0", 2, a);
    /// As `adaptive_max_pool1d`, over the last three dimensions.
    "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
    NN | OUT, |a| adaptive_max("adaptive_max_pool3d", "AdaptiveMaxPool3DBackward0", 3, a);
    /// Largest elements of windows at random positions, with their indices.
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    NN | OUT, |a| fractional(2, a);
    /// As `fractional_max_pool2d`, over the last three dimensions.
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    NN | OUT, |a| fractional(3, a);
    /// Puts each element where `indices` of a max pool say, in a plane of zeros.
    "max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
    NN | FORMAT | OUT, |a| max_unpool(2, a).map(Into::into);
    /// As `max_unpool2d`, over the last three dimensions.
    "max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    NN | OUT, |a| max_unpool(3, a).map(Into::into);
}

//! Max pools at random windows.

use super::indices::Gather;
use super::max::MaxPool;
use super::per_dim;
use super::regular::Indices;
use super::windows::Span;
use crate::alloc;
use crate::arg;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::schema::{Args, Signature, Value};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::sync::Arc;

/// Starts of windows of length `kernel` that a random number spreads over `size` elements.
/// Graham 2014, arXiv:1412.6071.
pub(super) fn fractional_starts(
    sample: f64,
    size: usize,
    out: usize,
    kernel: usize,
    double: bool,
) -> Vec<usize> {
    let round = |v: f64| if double { v } else { v as f32 as f64 };
    let last = size - kernel;
    let alpha = round(last as f64 / (out as f64 - 1.0));
    let base = round(sample * alpha).trunc();
    (0..out)
        .map(|i| {
            if i + 1 == out {
                return last;
            }
            let at = round(round(i as f64 + sample) * alpha).trunc() - base;
            (at.max(0.0) as usize).min(last)
        })
        .collect()
}

pub(super) fn fractional<Sig: Signature>(n: usize, a: &Args<Sig>) -> Result<Value> {
    let name = if n == 2 {
        "fractional_max_pool2d"
    } else {
        "fractional_max_pool3d"
    };
    let (x, samples) = (a.tensor(arg!(self))?, a.tensor(arg!(random_samples))?);
    let kernel = per_dim(name, "kernel_size", a.ints(arg!(kernel_size))?, n)?;
    let out = per_dim(name, "output_size", a.ints(arg!(output_size))?, n)?;
    ensure!(
        kernel.iter().all(|&k| k > 0) && out.iter().all(|&o| o >= 0),
        Runtime,
        "{name}(): kernel_size must be greater than zero and output_size not negative, but got {} \
         and {}",
        Show(&kernel),
        Show(&out)
    );
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "{name}(): Expected {}D or {}D tensor, but got: {}",
        n + 1,
        n + 2,
        Show(x.shape())
    );
    if let Some(d) = (x.ndim() - n - 1..x.ndim()).find(|&d| x.size(d) == 0) {
        bail!(
            Runtime,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but got {} \
             with dimension {d} being empty.",
            Show(x.shape())
        );
    }
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        samples.dtype() == x.dtype(),
        Runtime,
        "Expect _random_samples to have the same dtype as input, got {} and {}",
        samples.dtype(),
        x.dtype()
    );
    let lead = x.ndim() - n;
    let batch = if lead == 2 { x.size(0) } else { 1 };
    let channels = x.size(lead - 1);
    ensure!(
        samples.ndim() == 3
            && samples.size(0) >= batch
            && samples.size(1) == channels
            && samples.size(2) == n,
        Runtime,
        "Expect _random_samples to be of shape [{batch}, {channels}, {n}], got {}",
        Show(samples.shape())
    );
    for d in 0..n {
        ensure!(
            out[d]
                .checked_add(kernel[d] - 1)
                .is_some_and(|e| e <= x.size(lead + d) as i64),
            Runtime,
            "{name}(): pool size {} too large relative to input size {} at dimension {}",
            kernel[d],
            x.size(lead + d),
            lead + d
        );
    }
    let shape: Dims = x.shape()[..lead]
        .iter()
        .copied()
        .chain(out.iter().map(|&o| o as usize))
        .collect();
    let indices = match x.has_data() {
        true => {
            let at = largest(name, x, samples, &kernel, &out)?;
            Tensor::from_slice(&at, &shape, DType::I64)?.to_device(x.device())?
        }
        false => Tensor::empty(&shape, DType::I64, x.device())?,
    };
    let node = if n == 2 {
        "FractionalMaxPool2DBackward0"
    } else {
        "FractionalMaxPool3DBackward0"
    };
    let y = dispatch::call1(
        Gather {
            grid: None,
            name: node,
            n,
            add: true,
        },
        &[x, &indices],
    )?;
    Ok(Value::Tuple(vec![y, indices]))
}

/// Where the largest element of each window is.
fn largest(
    name: &'static str,
    x: &Tensor,
    samples: &Tensor,
    kernel: &[i64],
    out: &[i64],
) -> Result<Vec<i64>> {
    let n = kernel.len();
    let lead = x.ndim() - n;
    let batch = if lead == 2 { x.size(0) } else { 1 };
    let channels = x.size(lead - 1);
    let host = x.to_host()?.prepared(DType::F64)?;
    let draws = samples.to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous f64 tensors, read only.
    let (values, draws) = unsafe { (host.slice::<f64>(), draws.slice::<f64>()) };
    let mut sizes = [1; 3];
    for d in 0..n {
        sizes[3 - n + d] = x.size(lead + d);
    }
    let small: usize = out.iter().map(|&o| o as usize).product();
    let large: usize = sizes.iter().product();
    let mut indices = alloc::full(0i64, batch * channels * small);
    let mut best = alloc::full(0.0, small);
    let planes = if small > 0 { batch * channels } else { 0 };
    for p in 0..planes {
        let mut spans: [Vec<Span>; 3] = std::array::from_fn(|_| {
            vec![Span {
                start: 0,
                end: 1,
                step: 1,
            }]
        });
        for d in 0..n {
            // Planes name width first, volumes depth first.
            let draw = draws[p * n + if n == 2 { 1 - d } else { d }];
            let (k, o) = (kernel[d] as usize, out[d] as usize);
            let double = x.dtype() == DType::F64;
            spans[3 - n + d] = fractional_starts(draw, x.size(lead + d), o, k, double)
                .into_iter()
                .map(|start| Span {
                    start,
                    end: start + k,
                    step: 1,
                })
                .collect();
        }
        let pool = MaxPool {
            grid: None,
            regular: None,
            indices: Indices::Plane,
            name,
            n,
            spans: Arc::new(spans),
        };
        let at = &mut indices[p * small..(p + 1) * small];
        let plane = &values[p * large..(p + 1) * large];
        pool.planes(sizes, f64::NEG_INFINITY, plane, &mut best, at);
    }
    Ok(indices)
}

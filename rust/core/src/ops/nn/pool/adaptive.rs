//! Pools of a given output size.

use super::grid;
use super::max::MaxPool;
use super::means::{adaptive, means, means_of_columns, Windows};
use super::regular::Indices;
use super::windows::Span;
use crate::arg;
use crate::dispatch;
use crate::error::Result;
use crate::ops::nn::resample::gpu::Divisor;
use crate::ops::nn::resample::{check_sizes, Axis};
use crate::schema::{Args, Signature, Value};
use crate::shape::{DimSet, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::sync::Arc;

/// Output sizes of an adaptive pool, checked.
pub(super) fn adaptive_sizes(
    name: &str,
    x: &Tensor,
    n: usize,
    size: &[i64],
    mean: bool,
) -> Result<SmallVec<[usize; 3]>> {
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "{name}(): Expected {}D or {}D tensor, but got: {}; Expected {} to {} dimensions",
        n + 1,
        n + 2,
        Show(x.shape()),
        n + 1,
        n + 2
    );
    ensure!(
        n > 1 || size.len() == 1,
        Runtime,
        "{name}() argument 'output_size' should contain one int (got {})",
        size.len()
    );
    ensure!(
        size.len() == n || size.len() == 1,
        Runtime,
        "{name}{} must be {n}, got {}",
        if mean {
            ": output_size"
        } else {
            "(): internal error: output_size.size()"
        },
        Show(size)
    );
    if let (false, Some(&s)) = (mean, size.iter().find(|&&s| s < 0)) {
        let lead = x.shape()[..x.ndim() - n].iter().map(|&s| s as i64);
        // Lines are images of one row.
        let row = (n == 1).then_some(1);
        let shape: Vec<i64> = lead.chain(row).chain(size.iter().copied()).collect();
        bail!(
            Runtime,
            "Trying to create tensor with negative dimension {s}: {}",
            Show(&shape)
        );
    }
    ensure!(
        size.iter().all(|&s| s >= 0),
        Runtime,
        "{}: elements of output_size must be greater than or equal to 0 but received {}",
        // Lines are images of one row.
        if n == 1 { "adaptive_avg_pool2d" } else { name },
        match (n, size) {
            (1, [w]) => format!("{{1, {w}}}"),
            (2, [h, w]) => format!("{{{h}, {w}}}"),
            (3, [d, h, w]) => format!("{{{d}, {h},{w}}}"),
            _ => Show(size).to_string(),
        }
    );
    // The mean of all, where there is nothing, is NaN.
    let whole = mean && size.iter().all(|&s| s == 1);
    // A mean over planes of no channels has nothing to do where there are one or two dimensions.
    let channels = !mean || n == 3;
    for d in x.ndim() - n - channels as usize..x.ndim() {
        ensure!(
            x.size(d) > 0 || whole,
            Runtime,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input \
             has sizes {} with dimension {d} being empty",
            Show(x.shape())
        );
    }
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out: SmallVec<[usize; 3]> = (0..n)
        .map(|d| size[d.min(size.len() - 1)] as usize)
        .collect();
    check_sizes(x, x.ndim() - n, &out)?;
    Ok(out)
}

pub(super) fn adaptive_avg<Sig: Signature>(
    name: &str,
    node: &'static str,
    n: usize,
    a: &Args<Sig>,
) -> Result<Tensor> {
    let x = a.tensor(arg!(self))?;
    let out = adaptive_sizes(name, x, n, a.ints(arg!(output_size))?, true)?;
    let empty = x.shape()[x.ndim() - n..].contains(&0);
    let whole = !x.device().is_gpu() && x.numel() > 0;
    if empty || whole && out.iter().all(|&o| o == 1) {
        return x.mean_mask(DimSet::last(n, x.ndim())?, true, None);
    }
    if (0..n - 1).all(|d| x.size(x.ndim() - n + d) == out[d]) {
        if let Some(y) = means(node, x, 0, out[n - 1], Windows::Parts) {
            return y;
        }
    }
    if n > 1 && (0..n - 2).all(|d| x.size(x.ndim() - n + d) == out[d]) {
        let parts = [Windows::Parts; 2];
        if let Some(y) = means_of_columns(node, x, [out[n - 2], out[n - 1]], parts) {
            return y;
        }
    }
    let (mut axes, mut divisors) = (Vec::new(), Vec::new());
    for d in 0..n {
        let size = x.size(x.ndim() - n + d);
        let window = adaptive(size, out[d]);
        axes.push(match x.has_data() {
            true => Axis::new(size, out[d], false, |o, push| {
                let (start, end) = window(o);
                (start..end).for_each(|i| push(i, 1.0));
            })?,
            false => Axis::of_sizes(size, out[d]),
        });
        let count = |o| {
            let (start, end) = window(o);
            (end - start) as f64
        };
        divisors.push((0..out[d]).map(count).collect());
    }
    let ones: &[i64] = &[1, 1][..n.min(2)];
    let pool = grid(x, &out, [ones, ones, &[0, 0][..n.min(2)], ones]);
    let pool = pool.map(|g| (g, Divisor::Adaptive));
    x.resample_over(node, axes, divisors, pool)
}

pub(super) fn adaptive_max<Sig: Signature>(
    name: &str,
    node: &'static str,
    n: usize,
    a: &Args<Sig>,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let out = adaptive_sizes(name, x, n, a.ints(arg!(output_size))?, false)?;
    let mut spans: [Vec<Span>; 3] = std::array::from_fn(|_| {
        vec![Span {
            start: 0,
            end: 1,
            step: 1,
        }]
    });
    for d in 0..n {
        let window = adaptive(x.size(x.ndim() - n + d), out[d]);
        spans[3 - n + d] = (0..out[d])
            .map(|o| {
                let (start, end) = window(o);
                Span {
                    start,
                    end,
                    step: 1,
                }
            })
            .collect();
    }
    let y = dispatch::call(
        MaxPool {
            name: node,
            n,
            spans: Arc::new(spans),
            grid: None,
            regular: None,
            indices: Indices::Plane,
        },
        &[x],
    )?;
    Ok(Value::Tuple(y.into_vec()))
}

//! Batch, layer, group and instance normalisation: they differ in what a group of elements is.

use super::{format, launch_groups, require_contiguous, Params, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};

/// Which elements of a contiguous tensor make a group, and which weight belongs to which.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    pub groups: usize,
    pub length: usize,
    inner: usize,
    group_stride: usize,
    outer_stride: usize,
    w_groups: usize,
    w_stride: usize,
    w_inner: usize,
}

impl Groups {
    /// One group for each channel of [batch, channels, inner]; one weight for each channel.
    pub fn batch(batch: usize, channels: usize, inner: usize) -> Groups {
        Groups {
            groups: channels,
            length: batch * inner,
            inner,
            group_stride: inner,
            outer_stride: channels * inner,
            w_groups: channels,
            w_stride: 1,
            w_inner: batch * inner,
        }
    }

    /// One group for each row of [rows, length]; one weight for each element of a row.
    pub fn layer(rows: usize, length: usize) -> Groups {
        Groups {
            groups: rows,
            length,
            inner: length,
            group_stride: length,
            outer_stride: 0,
            w_groups: 1,
            w_stride: 0,
            w_inner: 1,
        }
    }

    /// `groups` of channels in each sample of [batch, channels, inner]; a weight for each channel.
    pub fn group(batch: usize, channels: usize, inner: usize, groups: usize) -> Groups {
        let length = channels / groups * inner;
        Groups {
            groups: batch * groups,
            length,
            inner: length,
            group_stride: length,
            outer_stride: 0,
            w_groups: groups,
            w_stride: channels / groups,
            w_inner: inner,
        }
    }

    fn params(&self, eps: f64, offsets: [usize; 7]) -> Result<Params> {
        // Three loops over a group's elements stay below 65,535 iterations of 256 invocations.
        ensure!(
            self.length < 5_000_000,
            NotImplemented,
            "wgpu: normalisation over {} elements",
            self.length
        );
        let sizes = [
            self.groups,
            self.length,
            self.inner,
            self.group_stride,
            self.outer_stride,
            self.w_groups,
            self.w_stride,
            self.w_inner.max(1),
        ];
        let mut p: Params = sizes.iter().map(|&v| v as u32).collect();
        p.push((eps as f32).to_bits());
        p.extend(offsets.map(|o| o as u32));
        Ok(p)
    }
}

fn check_stats(views: &[View]) -> Result<()> {
    ensure!(
        views.iter().all(|v| v.dtype == DType::F32),
        Runtime,
        "wgpu: normalisation: statistics must be float32"
    );
    require_contiguous("normalisation", views)
}

/// `y = (x - mean) * rstd * weight + bias`, and mean, `rstd = 1 / sqrt(var + eps)` and biased
/// variance of each group in float32.
pub fn forward(
    gpu: &Gpu,
    groups: &Groups,
    eps: f64,
    x: View,
    weight: Option<View>,
    bias: Option<View>,
    y: View,
    [mean, rstd, var]: [View; 3],
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    require_contiguous("normalisation", &[x, y])?;
    check_stats(&[mean, rstd, var])?;
    let (w, b) = (weight.unwrap_or(x), bias.unwrap_or(x));
    let offsets = [
        x.offset,
        y.offset,
        w.offset,
        b.offset,
        mean.offset,
        rstd.offset,
        var.offset,
    ];
    let p = groups.params(eps, offsets)?;
    let constants = [
        ("X", format(x.dtype)),
        ("Y", format(y.dtype)),
        ("W", format(w.dtype)),
        ("B", format(b.dtype)),
        ("HAS_WEIGHT", weight.is_some() as u32),
        ("HAS_BIAS", bias.is_some() as u32),
    ];
    let written = [y.buffer, mean.buffer, rstd.buffer, var.buffer];
    let read = [x.buffer, w.buffer, b.buffer];
    let grid = gpu.grid(groups.groups)?;
    launch_groups(gpu, "norm", Acc::F32, &constants, &written, &read, &p, grid)
}

/// The gradient `d` of the input for gradient `g`, and for each group the sums of `g` and of
/// `g * (x - mean) * rstd`: in batch norm the gradients of bias and weight.
pub fn backward(
    gpu: &Gpu,
    groups: &Groups,
    x: View,
    g: View,
    [mean, rstd]: [View; 2],
    weight: Option<View>,
    d: View,
    [sum_g, sum_gx]: [View; 2],
) -> Result<()> {
    if d.numel() == 0 {
        return Ok(());
    }
    require_contiguous("normalisation backward", &[x, g, d])?;
    check_stats(&[mean, rstd, sum_g, sum_gx])?;
    ensure!(
        sum_g.offset == sum_gx.offset,
        Runtime,
        "wgpu: normalisation backward: both sums must start at the same offset"
    );
    let w = weight.unwrap_or(x);
    let offsets = [
        x.offset,
        d.offset,
        w.offset,
        g.offset,
        mean.offset,
        rstd.offset,
        sum_g.offset,
    ];
    let p = groups.params(0.0, offsets)?;
    let constants = [
        ("X", format(x.dtype)),
        ("G", format(g.dtype)),
        ("Y", format(d.dtype)),
        ("W", format(w.dtype)),
        ("HAS_WEIGHT", weight.is_some() as u32),
    ];
    let written = [d.buffer, sum_g.buffer, sum_gx.buffer];
    let read = [x.buffer, g.buffer, mean.buffer, rstd.buffer, w.buffer];
    let grid = gpu.grid(groups.groups)?;
    launch_groups(
        gpu,
        "norm_backward",
        Acc::F32,
        &constants,
        &written,
        &read,
        &p,
        grid,
    )
}

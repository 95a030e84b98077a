//! Batch, layer, group and instance normalisation: they differ in what a group of elements is.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::check_contiguous;

params! {
    struct Forward {
        groups: u32,
        length: u32,
        inner: u32,
        group_stride: u32,
        outer_stride: u32,
        w_groups: u32,
        w_stride: u32,
        w_inner: u32,
        eps: f32,
        x_offset: u32,
        y_offset: u32,
        w_offset: u32,
        b_offset: u32,
        mean_offset: u32,
        rstd_offset: u32,
        var_offset: u32,
    }
}
params! {
    struct Backward {
        groups: u32,
        length: u32,
        inner: u32,
        group_stride: u32,
        outer_stride: u32,
        w_groups: u32,
        w_stride: u32,
        w_inner: u32,
        x_offset: u32,
        y_offset: u32,
        w_offset: u32,
        g_offset: u32,
        mean_offset: u32,
        rstd_offset: u32,
        sum_offset: u32,
    }
}
shader! { static NORM: Forward = "norm.wgsl", Acc::FLOAT }
shader! { static NORM_BACKWARD: Backward = "norm_backward.wgsl", Acc::FLOAT }

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

    fn check(&self) -> Result<()> {
        // Three loops over a group's elements stay below 65,535 iterations of 256 invocations.
        ensure!(
            self.length < 5_000_000,
            NotImplemented,
            "wgpu: normalisation over {} elements",
            self.length
        );
        Ok(())
    }
}

fn check_stats(stats: &[&Tensor]) -> Result<()> {
    ensure!(
        stats.iter().all(|t| t.dtype() == DType::F32),
        Runtime,
        "wgpu: normalisation: statistics must be float32"
    );
    check_contiguous("normalisation", stats)
}

/// `y = (x - mean) * rstd * weight + bias`, and mean, `rstd = 1 / sqrt(var + eps)` and biased
/// variance of each group in float32.
pub fn forward(
    gpu: &Gpu,
    s: &Groups,
    eps: f64,
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    y: &Tensor,
    [mean, rstd, var]: [&Tensor; 3],
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("normalisation", &[x, y])?;
    check_stats(&[mean, rstd, var])?;
    s.check()?;
    let (w, b) = (weight.unwrap_or(x), bias.unwrap_or(x));
    let p = Forward {
        groups: s.groups as u32,
        length: s.length as u32,
        inner: s.inner as u32,
        group_stride: s.group_stride as u32,
        outer_stride: s.outer_stride as u32,
        w_groups: s.w_groups as u32,
        w_stride: s.w_stride as u32,
        w_inner: s.w_inner.max(1) as u32,
        eps: eps as f32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        w_offset: w.offset() as u32,
        b_offset: b.offset() as u32,
        mean_offset: mean.offset() as u32,
        rstd_offset: rstd.offset() as u32,
        var_offset: var.offset() as u32,
    };
    NORM.launch(Acc::F32)
        .set("HAS_WEIGHT", weight.is_some())
        .set("HAS_BIAS", bias.is_some())
        .writes("Y", y)
        .writes_words(mean)
        .writes_words(rstd)
        .writes_words(var)
        .reads("X", x)
        .reads("W", w)
        .reads("B", b)
        .groups(gpu, &p, s.groups)
}

/// The gradient `y` of the input for gradient `g`, and for each group the sums of `g` and of
/// `g * (x - mean) * rstd`: in batch norm the gradients of bias and weight.
pub fn backward(
    gpu: &Gpu,
    s: &Groups,
    x: &Tensor,
    g: &Tensor,
    [mean, rstd]: [&Tensor; 2],
    weight: Option<&Tensor>,
    y: &Tensor,
    [sum_g, sum_gx]: [&Tensor; 2],
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("normalisation backward", &[x, g, y])?;
    check_stats(&[mean, rstd, sum_g, sum_gx])?;
    s.check()?;
    ensure!(
        sum_g.offset() == sum_gx.offset(),
        Runtime,
        "wgpu: normalisation backward: both sums must start at the same offset"
    );
    let w = weight.unwrap_or(x);
    let p = Backward {
        groups: s.groups as u32,
        length: s.length as u32,
        inner: s.inner as u32,
        group_stride: s.group_stride as u32,
        outer_stride: s.outer_stride as u32,
        w_groups: s.w_groups as u32,
        w_stride: s.w_stride as u32,
        w_inner: s.w_inner.max(1) as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        w_offset: w.offset() as u32,
        g_offset: g.offset() as u32,
        mean_offset: mean.offset() as u32,
        rstd_offset: rstd.offset() as u32,
        sum_offset: sum_g.offset() as u32,
    };
    NORM_BACKWARD
        .launch(Acc::F32)
        .set("HAS_WEIGHT", weight.is_some())
        .writes("Y", y)
        .writes_words(sum_g)
        .writes_words(sum_gx)
        .reads("X", x)
        .reads("G", g)
        .reads_words(mean)
        .reads_words(rstd)
        .reads("W", w)
        .groups(gpu, &p, s.groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::{close, gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn norm_batch_matches_the_host_in_half_precision() {
        let Some((_turn, gpu)) = gpu() else { return };
        let x: Vec<half::f16> = noise(60, 1).into_iter().map(half::f16::from_f32).collect();
        let tx = put(&[2, 3, 10], DType::F16, &x);
        let y = fresh(&[2, 3, 10], DType::F16);
        let stats = [(); 3].map(|_| fresh(&[3], DType::F32));
        let groups = Groups::batch(2, 3, 10);
        let out = [&stats[0], &stats[1], &stats[2]];
        forward(gpu, &groups, 1e-5, &tx, None, None, &y, out).unwrap();
        let at = |b: usize, c: usize, i: usize| x[(b * 3 + c) * 10 + i].to_f64();
        let got: Vec<f32> = get::<half::f16>(&y).iter().map(|v| v.to_f32()).collect();
        let mut want = vec![0.0; 60];
        for c in 0..3 {
            let all: Vec<f64> = (0..20).map(|e| at(e / 10, c, e % 10)).collect();
            let mean = all.iter().sum::<f64>() / 20.0;
            let var = all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 20.0;
            for e in 0..20 {
                want[(e / 10 * 3 + c) * 10 + e % 10] = (all[e] - mean) / (var + 1e-5).sqrt();
            }
        }
        close(&got, &want, 1e-3);
    }
}

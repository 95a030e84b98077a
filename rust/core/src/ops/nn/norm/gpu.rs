//! Batch, layer, group and instance normalisation: they differ in what a group of elements is.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::{Launch, Rows};
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, fill, whole};

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
        channels: u32,
        count: u32,
        parts: u32,
        part: u32,
        eps: f32,
    }
}
params! {
    struct Running {
        n: u32,
        samples: u32,
        momentum: f32,
        unbiased: f32,
        mean_offset: u32,
        var_offset: u32,
        new_mean_offset: u32,
        new_var_offset: u32,
    }
}
shader! { static NORM: Forward = "norm.wgsl", Acc::FLOAT }
shader! { static NORM_BACKWARD: Backward = "norm_backward.wgsl", Acc::FLOAT }
shader! { static RUNNING: Running = "norm_running.wgsl", Acc::FLOAT }

/// Channels whose sums one workgroup takes where they lie side by side, and the elements of one
/// beyond which they are taken in parts.
const COLUMNS: usize = 32;
const MAX_PART: usize = 4096;

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

    /// Whether a weight belongs to one group alone.
    fn own(&self) -> bool {
        self.w_groups == self.groups && self.w_stride == 1
    }

    fn channels(&self) -> usize {
        self.w_groups * self.w_stride
    }

    /// Sets how many invocations share a group of these tensors, and what they keep of it.
    fn rows<'a, P: bytemuck::NoUninit>(
        &self,
        gpu: &Gpu,
        launch: Launch<'a, P>,
        tensors: &[&Tensor],
        most: usize,
    ) -> Result<(Launch<'a, P>, Rows)> {
        let halves = |t: &&Tensor| t.dtype().size() == 2 && t.offset().is_multiple_of(2);
        let side_by_side = self.inner == self.length && self.length.is_multiple_of(2);
        let pairs = side_by_side && tensors.iter().all(halves);
        let rows = Rows::of(gpu, self.groups * self.length, self.length, pairs, most);
        // Three loops over a group's elements stay below 65,535 iterations of 256 invocations.
        ensure!(
            self.length < 5_000_000,
            NoKernel,
            "wgpu: normalisation over {} elements",
            self.length
        );
        let launch = launch
            .set("DENSE", self.inner == self.length)
            .set("EACH", self.w_groups == 1 && self.w_inner == 1);
        Ok((rows.set(launch), rows))
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
    centered: bool,
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
    let offset = |t: Option<&Tensor>| t.map_or(0, |t| t.offset() as u32);
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
        w_offset: offset(weight),
        b_offset: offset(bias),
        mean_offset: mean.offset() as u32,
        rstd_offset: rstd.offset() as u32,
        var_offset: var.offset() as u32,
    };
    let launch = NORM
        .launch(Acc::F32)
        .set("CENTERED", centered)
        .set("HAS_WEIGHT", weight.is_some())
        .set("HAS_BIAS", bias.is_some())
        .writes("Y", y)
        .writes_words(mean)
        .writes_words(rstd)
        .writes_words(var)
        .reads("X", x)
        .reads_if("W", weight)
        .reads_if("B", bias)
        .epilogue(whole(y)?);
    let (launch, rows) = s.rows(gpu, launch, &[x, y], 16)?;
    let reads = rows.reads(s.length, if centered { 3 } else { 2 });
    let launch = launch.prologue("x", whole(x)?, reads);
    launch.groups(gpu, &p, rows.groups(s.groups))
}

/// The gradient `y` of the input for gradient `g` and, where they are asked for, the gradients of
/// bias and weight, in float32. With `given`, the eps of given statistics, `rstd` is their variance.
pub fn backward(
    gpu: &Gpu,
    s: &Groups,
    centered: bool,
    given: Option<f64>,
    [x, g, mean, rstd]: [&Tensor; 4],
    weight: Option<&Tensor>,
    y: &Tensor,
    affine: Option<[&Tensor; 2]>,
) -> Result<()> {
    if y.numel() == 0 {
        // A sum of nothing.
        let mut sums = affine.into_iter().flatten();
        return sums.try_for_each(|t| fill(t, 0.into()));
    }
    check_contiguous("normalisation backward", &[x, g, y])?;
    check_stats(&[mean, rstd])?;
    let (channels, count) = (s.channels(), y.numel() / s.channels());
    let part = match s.own() {
        true => count,
        false => count.div_ceil(count.div_ceil(MAX_PART)),
    };
    let parts = count.div_ceil(part);
    let fresh = || Tensor::empty(&[parts, channels], DType::F32, x.device());
    let whole_sums = affine
        .filter(|_| parts == 1)
        .map(|sums| sums.map(Tensor::clone));
    let [sum_g, sum_gx] = match (whole_sums, affine.is_some() || s.own()) {
        (Some(sums), _) => sums,
        (None, true) => [fresh()?, fresh()?],
        (None, false) => [mean.clone(), rstd.clone()],
    };
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
        channels: channels as u32,
        count: count as u32,
        parts: parts as u32,
        part: part as u32,
        eps: given.unwrap_or(0.0) as f32,
    };
    // Side by side lie those of which each element is in another group or sample.
    let columns = match s.w_inner {
        1 => channels.next_power_of_two().min(COLUMNS),
        _ => 1,
    };
    let launch = NORM_BACKWARD
        .launch(Acc::F32)
        .set("CENTERED", centered)
        .set("OWN", s.own())
        .set("GIVEN", given.is_some())
        .set("COLUMNS", columns as u32)
        .set("HAS_WEIGHT", weight.is_some())
        .writes("Y", y)
        .writes_words(&sum_g)
        .writes_words(&sum_gx)
        .reads("X", x)
        .reads("G", g)
        .reads_words(mean)
        .reads_words(rstd)
        .reads("W", w)
        .epilogue(whole(y)?);
    let (launch, rows) = s.rows(gpu, launch, &[x, g, y], 8)?;
    let more = match affine.is_some() && !s.own() {
        true => channels.div_ceil(columns) * parts,
        false => 0,
    };
    launch.groups(gpu, &p, rows.groups(s.groups) + more)?;
    let Some(to) = affine.filter(|_| parts > 1) else {
        return Ok(());
    };
    for (from, to) in [&sum_g, &sum_gx].into_iter().zip(to) {
        let (from, to) = (whole(from)?, whole(to)?);
        reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to)?;
    }
    Ok(())
}

/// Mixes new means and variances of so many samples into running ones.
pub fn running(
    gpu: &Gpu,
    [momentum, unbiased]: [f64; 2],
    samples: usize,
    [mean, var]: [&Tensor; 2],
    [new_mean, new_var]: [&Tensor; 2],
) -> Result<()> {
    check_stats(&[mean, var, new_mean, new_var])?;
    let p = Running {
        n: mean.numel() as u32,
        samples: samples as u32,
        momentum: momentum as f32,
        unbiased: unbiased as f32,
        mean_offset: mean.offset() as u32,
        var_offset: var.offset() as u32,
        new_mean_offset: new_mean.offset() as u32,
        new_var_offset: new_var.offset() as u32,
    };
    RUNNING
        .launch(Acc::F32)
        .writes_words(mean)
        .writes_words(var)
        .reads_words(new_mean)
        .reads_words(new_var)
        .threads(gpu, &p, mean.numel())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::testing::{close, gpu, noise};
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
        forward(gpu, &groups, true, 1e-5, &tx, None, None, &y, out).unwrap();
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

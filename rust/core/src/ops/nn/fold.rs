//! Patches as columns and back, and the shuffles between channels and space.

use crate::arg;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::nn::resample::Axis;
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Windows over two dimensions.
struct Patches {
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
}

fn two(v: &[i64], what: &str) -> Result<[i64; 2]> {
    match v {
        [a] => Ok([*a, *a]),
        [a, b] => Ok([*a, *b]),
        _ => bail!(
            Runtime,
            "It is expected {what} equals to 2, but got size {}",
            v.len()
        ),
    }
}

impl Patches {
    fn read(kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Patches> {
        let p = Patches {
            kernel: two(kernel, "kernel_size")?,
            dilation: two(dilation, "dilation")?,
            padding: two(padding, "padding")?,
            stride: two(stride, "stride")?,
        };
        let positive = |v: [i64; 2], what: &str, short: &str| -> Result<()> {
            ensure!(
                v[0] > 0 && v[1] > 0,
                Runtime,
                "{what} should be greater than zero, but got {short}_height: {} {short}_width: {}",
                v[0],
                v[1]
            );
            Ok(())
        };
        positive(p.kernel, "kernel size", "kernel")?;
        positive(p.dilation, "dilation", "dilation")?;
        positive(p.stride, "stride", "stride")?;
        ensure!(
            p.padding[0] >= 0 && p.padding[1] >= 0,
            Runtime,
            "padding should be non-negative, but got pad_height: {} pad_width: {}",
            p.padding[0],
            p.padding[1]
        );
        Ok(p)
    }

    /// The number of windows along each dimension; less than one where none fits.
    fn counts(&self, size: [i64; 2]) -> Result<[i64; 2]> {
        let mut out = [0; 2];
        for d in 0..2 {
            let n = (|| {
                let reach = self.dilation[d].checked_mul(self.kernel[d] - 1)?;
                let span = size[d]
                    .checked_add(self.padding[d].checked_mul(2)?)?
                    .checked_sub(reach)?
                    .checked_sub(1)?;
                Some(span.div_euclid(self.stride[d]) + 1)
            })();
            match n.filter(|n| n.checked_mul(self.kernel[d]).is_some_and(|k| k < 1 << 31)) {
                Some(n) => out[d] = n,
                None => bail!(Runtime, "unfold: sizes overflow: windows along a dimension must have fewer than 2^31 elements"),
            }
        }
        Ok(out)
    }

    /// Along dimension `d`: element `k` of window `l` is output `k * windows + l`.
    fn axis(&self, d: usize, size: i64, windows: i64) -> Result<Axis> {
        let outputs = self.kernel[d].saturating_mul(windows) as usize;
        Axis::new(size as usize, outputs, false, |i, push| {
            let (k, l) = (i as i64 / windows, i as i64 % windows);
            let at = l * self.stride[d] - self.padding[d] + k * self.dilation[d];
            if (0..size).contains(&at) {
                push(at as usize, 1.0);
            }
        })
    }

    fn show(&self) -> String {
        let p = |v: [i64; 2]| format!("({}, {})", v[0], v[1]);
        format!(
            "kernel_size={}, dilation={}, padding={}, stride={}",
            p(self.kernel),
            p(self.dilation),
            p(self.padding),
            p(self.stride)
        )
    }
}

fn float_or_bool(x: &Tensor, kernel: &str) -> Result<()> {
    ensure!(
        x.dtype().is_float() || x.dtype() == DType::Bool,
        NoKernel,
        "\"{kernel}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    Ok(())
}

fn with_batch(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let batch: Dims = std::iter::once(1)
        .chain(x.shape().iter().copied())
        .collect();
    let y = f(&x.reshape_to(&batch)?)?;
    y.reshape_to(&y.shape()[1..])
}

fn im2col(x: &Tensor, p: &Patches) -> Result<Tensor> {
    ensure!(
        x.ndim() >= 3,
        Index,
        "unfold: Expected 3D or 4D (batch mode) tensor for input, but got: {}",
        Show(x.shape())
    );
    ensure!(
        (x.ndim() == 3 || x.ndim() == 4) && !x.shape()[x.ndim() - 3..].contains(&0),
        Runtime,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero \
         dimensions for input, but got: {}",
        Show(x.shape())
    );
    if x.ndim() == 3 {
        return with_batch(x, |x| im2col(x, p));
    }
    float_or_bool(x, "im2col_out_cpu")?;
    let size = [x.size(2) as i64, x.size(3) as i64];
    let [h, w] = p.counts(size)?;
    ensure!(
        h >= 1 && w >= 1,
        Runtime,
        "Given input with spatial size ({}, {}), {}, calculated shape of the array of sliding \
         blocks as ({h}, {w}), but its components must be at least one.",
        size[0],
        size[1],
        p.show()
    );
    let axes = vec![p.axis(0, size[0], h)?, p.axis(1, size[1], w)?];
    let y = x.resample("Im2ColBackward0", axes)?;
    let (n, c) = (x.size(0) as i64, x.size(1) as i64);
    let [kh, kw] = p.kernel;
    y.reshape(&[n, c, kh, h, kw, w])?
        .permute(&[0, 1, 2, 4, 3, 5])?
        .reshape(&[n, c * kh * kw, h * w])
}

fn col2im(x: &Tensor, output: &[i64], p: &Patches) -> Result<Tensor> {
    let size = two(output, "output_size")?;
    ensure!(
        size[0] > 0 && size[1] > 0,
        Runtime,
        "Expected output spatial size to be positive, but got: output_size=({}, {}).",
        size[0],
        size[1]
    );
    ensure!(
        (x.ndim() == 2 || x.ndim() == 3) && !x.shape()[x.ndim() - 2..].contains(&0),
        Runtime,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero \
         dimensions for input, but got: {}",
        Show(x.shape())
    );
    if x.ndim() == 2 {
        return with_batch(x, |x| col2im(x, output, p));
    }
    let [kh, kw] = p.kernel;
    let taps = kh.checked_mul(kw).unwrap_or(i64::MAX);
    let rows = x.size(1) as i64;
    ensure!(
        rows % taps == 0,
        Runtime,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but \
         got input.size(1)={rows} and kernel_size=({kh}, {kw})."
    );
    let [h, w] = p.counts(size)?;
    ensure!(
        h >= 1 && w >= 1,
        Runtime,
        "Given output_size=({}, {}), {}, calculated shape of the array of sliding blocks as \
         ({h}, {w}), which is too small (non-positive)",
        size[0],
        size[1],
        p.show()
    );
    ensure!(
        h.checked_mul(w) == Some(x.size(2) as i64),
        Runtime,
        "Given output_size=({}, {}), {}, expected size of input's dimension 2 to match the \
         calculated number of sliding blocks {h} * {w} = {}, but got input.size(2)={}.",
        size[0],
        size[1],
        p.show(),
        h.saturating_mul(w),
        x.size(2)
    );
    float_or_bool(x, "col2im_out_cpu")?;
    let (n, c) = (x.size(0) as i64, rows / taps);
    let y = x
        .reshape(&[n, c, kh, kw, h, w])?
        .permute(&[0, 1, 2, 4, 3, 5])?;
    let y = y.reshape(&[n, c, kh * h, kw * w])?;
    let axes = vec![
        p.axis(0, size[0], h)?.transposed()?,
        p.axis(1, size[1], w)?.transposed()?,
    ];
    y.resample("Col2ImBackward0", axes)
}

fn lead(x: &Tensor, name: &str) -> Result<Vec<i64>> {
    ensure!(
        x.ndim() >= 3,
        Runtime,
        "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        x.ndim()
    );
    Ok(x.shape()[..x.ndim() - 3]
        .iter()
        .map(|&d| d as i64)
        .collect())
}

/// Reshapes the last three dimensions to `parts`, permutes them and reshapes to `last`.
fn shuffle(x: &Tensor, lead: &[i64], parts: &[i64], order: &[i64], last: &[i64]) -> Result<Tensor> {
    let n = lead.len() as i64;
    let with = |v: &[i64]| -> SmallVec<[i64; 8]> { lead.iter().chain(v).copied().collect() };
    let dims: SmallVec<[i64; 8]> = (0..n).chain(order.iter().map(|&d| d + n)).collect();
    x.reshape(&with(parts))?
        .permute(&dims)?
        .reshape(&with(last))?
        .copy_dense()
}

fn pixel_shuffle(x: &Tensor, r: i64) -> Result<Tensor> {
    let lead = lead(x, "pixel_shuffle")?;
    ensure!(
        r > 0,
        Runtime,
        "pixel_shuffle expects a positive upscale_factor, but got {r}"
    );
    let k = lead.len();
    let [c, h, w] = [x.size(k) as i64, x.size(k + 1) as i64, x.size(k + 2) as i64];
    let Some(square) = r.checked_mul(r) else {
        bail!(
            Value,
            "pixel_shuffle: upscale factor is too large, (upscale_factor)^2 overflowed: \
             upscale_factor={r}"
        );
    };
    ensure!(
        c % square == 0,
        Runtime,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of \
         upscale_factor, but input.size(-3)={c} is not divisible by {square}"
    );
    let parts = [c / square, r, r, h, w];
    shuffle(
        x,
        &lead,
        &parts,
        &[0, 3, 1, 4, 2],
        &[c / square, h.saturating_mul(r), w.saturating_mul(r)],
    )
}

fn pixel_unshuffle(x: &Tensor, r: i64) -> Result<Tensor> {
    let lead = lead(x, "pixel_unshuffle")?;
    ensure!(
        r > 0,
        Runtime,
        "pixel_unshuffle expects a positive downscale_factor, but got {r}"
    );
    let k = lead.len();
    let [c, h, w] = [x.size(k) as i64, x.size(k + 1) as i64, x.size(k + 2) as i64];
    for (n, name, d) in [(h, "height", -2), (w, "width", -1)] {
        ensure!(
            n % r == 0,
            Runtime,
            "pixel_unshuffle expects {name} to be divisible by downscale_factor, but \
             input.size({d})={n} is not divisible by {r}"
        );
    }
    let last = [c.saturating_mul(r).saturating_mul(r), h / r, w / r];
    shuffle(x, &lead, &[c, h / r, r, w / r, r], &[0, 2, 4, 1, 3], &last)
}

fn channel_shuffle(x: &Tensor, groups: i64) -> Result<Tensor> {
    ensure!(
        x.ndim() > 2,
        Runtime,
        "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
        Show(x.shape())
    );
    let c = x.size(1) as i64;
    ensure!(
        groups > 0,
        Runtime,
        "Number of groups to divide channels in must be positive. Value of groups:{groups}"
    );
    ensure!(
        c % groups == 0,
        Runtime,
        "Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
    );
    let inner = x.shape()[2..].iter().product::<usize>() as i64;
    let y = x.reshape(&[x.size(0) as i64, groups, c / groups, inner])?;
    y.permute(&[0, 2, 1, 3])?
        .reshape_to(x.shape())?
        .copy_dense()
}

crate::entries! {
    /// The sliding blocks of images (N, C, H, W) as columns (N, C * block, L).
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    NN | OUT, |a| {
        let p = Patches::read(a.ints(arg!(kernel_size))?, a.ints(arg!(dilation))?, a.ints(arg!(padding))?, a.ints(arg!(stride))?)?;
        Ok(im2col(a.tensor(arg!(self))?, &p)?.into())
    };
    /// Sums sliding blocks (N, C * block, L) back into images (N, C, H, W).
    "col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    NN | OUT, |a| {
        let p = Patches::read(a.ints(arg!(kernel_size))?, a.ints(arg!(dilation))?, a.ints(arg!(padding))?, a.ints(arg!(stride))?)?;
        Ok(col2im(a.tensor(arg!(self))?, a.ints(arg!(output_size))?, &p)?.into())
    };
    /// Moves channels (C * r * r, H, W) into space (C, H * r, W * r). Shi et al. 2016, arXiv:1609.05158.
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", FN | FORMAT,
    |a| Ok(pixel_shuffle(a.tensor(arg!(self))?, a.int(arg!(upscale_factor))?)?.into());
    /// The inverse of `pixel_shuffle`.
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", FN | FORMAT,
    |a| Ok(pixel_unshuffle(a.tensor(arg!(self))?, a.int(arg!(downscale_factor))?)?.into());
    /// Interleaves the channels of `groups` groups. Zhang et al. 2018, arXiv:1707.01083.
    "channel_shuffle(Tensor self, int groups) -> Tensor", FN | FORMAT,
    |a| Ok(channel_shuffle(a.tensor(arg!(self))?, a.int(arg!(groups))?)?.into());
    /// Interleaves the channels of `groups` groups.
    "native_channel_shuffle(Tensor self, int groups) -> Tensor", FN | FORMAT,
    |a| Ok(channel_shuffle(a.tensor(arg!(self))?, a.int(arg!(groups))?)?.into());
}

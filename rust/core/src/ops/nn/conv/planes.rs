//! A convolution as one over a dimension less: what the kernel's planes read are channels side by side,
//! and the planes of the output a larger batch. Without dimensions it is a product of matrices.

use super::{Conv, Role, Sizes};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::Dims;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// `t` with other dimensions in front of those from `from` on.
fn with_lead(t: &Tensor, lead: &[usize], from: usize) -> Result<Tensor> {
    let shape: Dims = lead.iter().chain(&t.shape()[from..]).copied().collect();
    t.reshape_to(&shape)
}

/// [n, c, d, ..] with planes as the batch: [n d, c, ..].
fn batched(t: &Tensor) -> Result<Tensor> {
    let (n, c, d) = (t.size(0), t.size(1), t.size(2));
    with_lead(&t.transpose(1, 2)?, &[n * d, c], 3)
}

/// One number for each of the outputs' channels.
fn plus_bias(y: &Tensor, bias: Option<&&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else {
        return Ok(y.clone());
    };
    let mut shape = Dims::from_elem(1, y.ndim());
    shape[1] = bias.numel();
    y.add(&bias.reshape_to(&shape)?)
}

impl Conv {
    /// The same convolution of tensors without the first dimension.
    fn flat(&self) -> Conv {
        let rest = |v: &Sizes| -> Sizes { v[1..].iter().copied().collect() };
        Conv {
            role: self.role,
            groups: self.groups,
            stride: rest(&self.stride),
            padding: rest(&self.padding),
            dilation: rest(&self.dilation),
            input: rest(&self.input),
            kernel: rest(&self.kernel),
            output: rest(&self.output),
        }
    }

    /// [n, c, d, ..] to [n d', c k, ..]: for each plane of the output the `k` that it reads.
    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let (planes, k) = (self.output[0], self.kernel[0]);
        let (n, c) = (x.size(0), x.size(1));
        let mut pad: SmallVec<[i64; 6]> = SmallVec::from_elem(0, 2 * (x.ndim() - 3));
        pad.extend([self.padding[0] as i64; 2]);
        let x = x.pad_constant(&pad, Scalar::Int(0))?;
        let places: Vec<i64> = (0..planes * k)
            .map(|i| (i / k * self.stride[0] + i % k * self.dilation[0]) as i64)
            .collect();
        let places = Tensor::from_slice(&places, &[planes * k], DType::I64)?;
        let all = x.index_select(2, &places.to_device(x.device())?)?;
        let all = with_lead(&all, &[n, c, planes, k], 3)?.transpose(1, 2)?;
        with_lead(&all, &[n * planes, c * k], 4)
    }

    /// The adjoint of [`Conv::read`].
    fn sum_read(&self, z: &Tensor) -> Result<Tensor> {
        let (planes, k, pad) = (self.output[0], self.kernel[0], self.padding[0]);
        let (n, c) = (z.size(0) / planes, z.size(1) / k);
        let z = with_lead(z, &[n, planes, c, k], 2)?.transpose(1, 2)?;
        let lead = [n, c, self.input[0] + 2 * pad];
        let shape: Dims = lead.iter().chain(&z.shape()[4..]).copied().collect();
        let y = Tensor::zeros(&shape, z.dtype(), z.device())?;
        let reach = (planes - 1) * self.stride[0] + 1;
        for t in 0..k {
            let first = t * self.dilation[0];
            let to = y.slice_dim(
                2,
                Some(first as i64),
                Some((first + reach) as i64),
                self.stride[0] as i64,
            )?;
            to.write_from(&to.add(&z.select(3, t as i64)?)?)?;
        }
        y.narrow(2, pad as i64, self.input[0] as i64)
    }

    /// The result, by convolutions over a dimension less.
    pub(super) fn by_planes(&self, x: &[&Tensor]) -> Result<Tensor> {
        if self.kernel.is_empty() {
            return self.product(x);
        }
        let (flat, planes) = (self.flat(), self.output[0]);
        // [o, c, k, ..] to [o, c k, ..].
        let kernels = |w: &Tensor| with_lead(w, &[w.size(0), w.size(1) * w.size(2)], 3);
        match self.role {
            Role::Output => {
                let (a, b) = (self.read(x[0])?, kernels(x[1])?);
                let y = match x.get(2) {
                    Some(bias) => dispatch::call1(flat, &[&a, &b, bias])?,
                    None => dispatch::call1(flat, &[&a, &b])?,
                };
                with_lead(&y, &[x[0].size(0), planes, y.size(1)], 2)?.transpose(1, 2)
            }
            Role::Input => {
                let z = dispatch::call1(flat, &[&batched(x[0])?, &kernels(x[1])?])?;
                plus_bias(&self.sum_read(&z)?, x.get(2))
            }
            Role::Weight => {
                let y = dispatch::call1(flat, &[&self.read(x[0])?, &batched(x[1])?])?;
                let k = self.kernel[0];
                with_lead(&y, &[y.size(0), y.size(1) / k, k], 2)
            }
        }
    }

    /// Without dimensions: inputs and outputs are [n, channels], the weight is [o, c / groups].
    fn product(&self, x: &[&Tensor]) -> Result<Tensor> {
        let g = self.groups;
        // [n, g c] to [g, n, c], and back.
        let apart = |t: &Tensor| {
            let c = t.size(1) / g;
            t.reshape_to(&[t.size(0), g, c])?.transpose(0, 1)
        };
        let joined = |t: &Tensor| {
            let (n, c) = (t.size(1), t.size(2));
            t.transpose(0, 1)?.reshape_to(&[n, g * c])
        };
        let kernels = |w: &Tensor| w.reshape_to(&[g, w.size(0) / g, w.size(1)]);
        match self.role {
            Role::Output => {
                let w = kernels(x[1])?.transpose(1, 2)?;
                plus_bias(&joined(&apart(x[0])?.matmul(&w)?)?, x.get(2))
            }
            Role::Input => plus_bias(&joined(&apart(x[0])?.matmul(&kernels(x[1])?)?)?, x.get(2)),
            Role::Weight => {
                let y = apart(x[1])?.transpose(1, 2)?.matmul(&apart(x[0])?)?;
                y.reshape_to(&[x[1].size(1), x[0].size(1) / g])
            }
        }
    }
}

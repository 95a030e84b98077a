//! A convolution of what a GPU's kernel does not bind, by halves of the longest dimension: what a half of
//! the outputs reads overlaps the other's.

use super::{Conv, Role};
use crate::dispatch;
use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;
use crate::transfer::may_be_large;
use std::ops::Range;

impl Conv {
    /// The convolution for these outputs along a dimension, and the inputs that they are made of; or,
    /// `from_inputs`, for these inputs and the outputs that they are part of. `None` where that is nothing.
    fn some(&self, d: usize, of: &Range<usize>, from_inputs: bool) -> Option<(Conv, Range<usize>)> {
        let (step, pad) = (self.stride[d], self.padding[d]);
        let reach = self.dilation[d] * self.kernel[d].saturating_sub(1);
        let mut op = self.clone();
        let (input, output) = match from_inputs {
            false => {
                let low = (of.start * step).saturating_sub(pad);
                let end = ((of.end - 1) * step + reach + 1).saturating_sub(pad);
                (low..end.min(self.input[d]), of.clone())
            }
            true => {
                let low = (of.start + pad).saturating_sub(reach) / step;
                let end = (of.end - 1 + pad) / step + 1;
                (of.clone(), low..end.min(self.output[d]))
            }
        };
        if input.is_empty() || output.is_empty() {
            return None;
        }
        // Output 0 begins so many elements in front of input 0.
        op.padding[d] = (pad + input.start).checked_sub(output.start * step)?;
        (op.input[d], op.output[d]) = (input.len(), output.len());
        Some((op, if from_inputs { output } else { input }))
    }

    /// `None` where it is not for their size that a kernel does not take these.
    pub(super) fn by_halves(&self, x: &[&Tensor]) -> Result<Option<Tensor>> {
        let metas: Vec<_> = x.iter().map(|t| t.meta()).collect();
        let y = self.infer(&metas)?.swap_remove(0);
        let (dtype, device) = (y.dtype, y.device);
        let most = x[0].numel().max(x[1].numel()).max(y.shape.iter().product());
        let from_inputs = self.role == Role::Input;
        let sizes = if from_inputs {
            &self.input
        } else {
            &self.output
        };
        let Some(d) = (0..sizes.len()).max_by_key(|&d| sizes[d]) else {
            return Ok(None);
        };
        let n = sizes[d];
        if n < 2 || !may_be_large(device, most * dtype.compute().size()) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for of in [0..n / 2, n / 2..n] {
            match self.some(d, &of, from_inputs) {
                Some((op, read)) => parts.push((op, of, read)),
                None => return Ok(None),
            }
        }
        let part = |t: &Tensor, of: &Range<usize>| {
            t.narrow(d as i64 + 2, of.start as i64, of.len() as i64)
        };
        if self.role == Role::Weight {
            // Sums in the type that they are made in.
            let wide = |t: &Tensor| t.to_dtype(dtype.compute());
            let sum = |(op, of, read): &(Conv, Range<usize>, Range<usize>)| {
                let (x, g) = (wide(&part(x[0], read)?)?, wide(&part(x[1], of)?)?);
                dispatch::call1(op.clone(), &[&x, &g])
            };
            let all = sum(&parts[0])?.add(&sum(&parts[1])?)?;
            return all.to_dtype(dtype).map(Some);
        }
        let all = Tensor::empty(&y.shape, dtype, device)?;
        for (op, of, read) in parts {
            let own = part(x[0], &read)?;
            let mut inputs = x.to_vec();
            inputs[0] = &own;
            part(&all, &of)?.write_from(&dispatch::call1(op, &inputs)?)?;
        }
        Ok(Some(all))
    }
}

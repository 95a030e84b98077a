//! Padding with a constant; the other modes are maps along each dimension (see `resample`).

use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::Scalar;
use crate::ensure;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta};
use crate::shape::Dims;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// `pad` holds (before, after) pairs, the last dimension first; negative ones crop.
#[derive(Clone, Debug, PartialEq)]
struct ConstantPad {
    pad: SmallVec<[i64; 6]>,
    value: Scalar,
}

impl ConstantPad {
    /// (before, after) of dimension `d` of `n`.
    fn of(&self, d: usize, n: usize) -> (i64, i64) {
        match self.pad.get(2 * (n - 1 - d)..2 * (n - d)) {
            Some(p) => (p[0], p[1]),
            None => (0, 0),
        }
    }
}

impl Derivative for ConstantPad {
    fn name(&self) -> &'static str {
        "ConstantPadNdBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 1));
        };
        let back: SmallVec<[i64; 6]> = self.pad.iter().map(|&p| -p).collect();
        Ok(Grads::from_elem(
            Some(g.pad_constant(&back, Scalar::Int(0))?),
            1,
        ))
    }
}

impl Op for ConstantPad {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let n = x[0].ndim();
        let mut shape = Dims::new();
        for d in 0..n {
            let (before, after) = self.of(d, n);
            let size = (x[0].size(d) as i64)
                .checked_add(before)
                .and_then(|s| s.checked_add(after));
            ensure!(
                size.is_some_and(|s| s >= 0),
                Runtime,
                "constant_pad_nd: narrow(): length must be non-negative. The input size {}, plus \
                 negative padding {before} and {after} resulted in a negative output size, which \
                 is invalid. Check dimension {d} of your input.",
                x[0].size(d)
            );
            shape.push(size.unwrap_or(0) as usize);
        }
        crate::shape::numel(&shape)?;
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: x[0].device(),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], &y[0]);
        let n = x.ndim();
        y.write_scalar(self.value)?;
        let (mut from, mut to): (Layout, Layout) = (x.layout().clone(), y.layout().clone());
        for d in 0..n {
            let (before, after) = self.of(d, n);
            let size = x.size(d) as i64;
            // The part of the input that stays, as a range of the input and of the output.
            let (start, end) = ((-before).max(0), size - (-after).max(0));
            if end <= start {
                return Ok(());
            }
            from = from.slice(d as i64, Some(start), Some(end), 1)?;
            let at = start + before;
            to = to.slice(d as i64, Some(at), Some(at + end - start), 1)?;
        }
        super::copy::copy_host(&x.alias(from), &y.alias(to))
    }
}

impl Tensor {
    /// `constant_pad_nd`.
    pub fn pad_constant(&self, pad: &[i64], value: Scalar) -> Result<Tensor> {
        ensure!(
            pad.len() % 2 == 0,
            Runtime,
            "Length of pad must be even but instead it equals {}",
            pad.len()
        );
        ensure!(
            pad.len() <= 2 * self.ndim(),
            Runtime,
            "Length of pad should be no more than twice the number of dimensions of the input. \
             Pad length is {} while the input has {} dimensions.",
            pad.len(),
            self.ndim()
        );
        dispatch::call1(
            ConstantPad {
                pad: pad.into(),
                value,
            },
            &[self],
        )
    }
}

crate::entries! {
    /// Pads with a constant: `pad` holds (before, after) pairs, the last dimension first.
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", FN,
    |a| Ok(a.tensor(0)?.pad_constant(a.ints(1)?, a.scalar(2)?)?.into());
}

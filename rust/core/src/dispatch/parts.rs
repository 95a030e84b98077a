//! Ops that send the real and the imaginary parts of complex numbers separate ways.

use crate::error::Result;
use crate::op::Op;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Computes an op on the host that treats the real and the imaginary parts of its inputs `data` alike.
pub fn by_parts(op: &dyn Op, x: &[&Tensor], data: &[usize], y: &Tensor) -> Result<()> {
    each_part(x, data, y, |x, y| op.cpu(x, y).map(|()| true)).map(drop)
}

/// Calls `run` on the real and on the imaginary parts of inputs and result; `false` as soon as it is.
pub fn each_part(
    x: &[&Tensor],
    data: &[usize],
    y: &Tensor,
    run: impl Fn(&[&Tensor], &[Tensor]) -> Result<bool>,
) -> Result<bool> {
    let mut wide: SmallVec<[Tensor; 4]> = x.iter().map(|t| t.detach()).collect();
    for &i in data {
        wide[i] = wide[i].to(y.dtype(), y.device(), false, None)?;
    }
    for which in [0, 1] {
        let target = y.component(which);
        let mut parts = wide.clone();
        for &i in data {
            parts[i] = wide[i].component(which);
        }
        let parts: SmallVec<[&Tensor; 4]> = parts.iter().collect();
        let part = Tensor::empty(y.shape(), target.dtype(), y.device())?;
        if !run(&parts, std::slice::from_ref(&part))? {
            return Ok(false);
        }
        target.write_from(&part)?;
    }
    Ok(true)
}

//! On a GPU: an op's kernel, or what takes its place.

use super::parts::each_part;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Kind, Result};
use crate::gpu::{fault::working_for, Gpu};
use crate::host;
use crate::op::Op;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Computes on a GPU, by the op's kernel or what it is made of; `false` where no kernel computes in this
/// type, or the sizes are beyond one.
pub(super) fn launched(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
    let complex = |t: &Tensor| matches!(t.dtype(), DType::C64 | DType::C128);
    let apart = || match (op.traits().linear, y) {
        (linear @ [_, ..], [y]) if complex(y) => each_part(x, linear, y, |x, y| op.gpu(gpu, x, y)),
        _ => Ok(false),
    };
    let whole = || -> Result<_> { Ok(op.gpu(gpu, x, y)? || composed(op, x, y)?) };
    working_for(op.name(), || {
        Ok(implemented(whole())? || implemented(apart())?)
    })
}

/// [`launched`] with inputs made dense that have more dimensions than a kernel counts; `false` where none has.
pub(super) fn untangled(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
    let apart = |t: &Tensor| y.iter().all(|y| !t.shares_storage(y));
    let tangled = |t: &Tensor| t.ndim() > 8 && !t.is_contiguous() && apart(t);
    if !x.iter().any(|t| tangled(t)) {
        return Ok(false);
    }
    let dense = |t: &&Tensor| match tangled(t) {
        true => t.detach().contiguous(),
        false => Ok((*t).clone()),
    };
    let own: SmallVec<[Tensor; 4]> = x.iter().map(dense).collect::<Result<_>>()?;
    let x: SmallVec<[&Tensor; 4]> = own.iter().collect();
    launched(gpu, op, &x, y)
}

/// Whether there was a kernel.
pub(super) fn implemented(done: Result<bool>) -> Result<bool> {
    match done {
        Err(e) if e.kind == Kind::NoKernel => Ok(false),
        done => done,
    }
}

/// Computes `y` by the ops that the op is made of; `false` where it is made of none.
fn composed(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
    let Some(results) = op.decompose(x)? else {
        return Ok(false);
    };
    for (to, from) in y.iter().zip(&results) {
        debug_assert_eq!((to.shape(), to.dtype()), (from.shape(), from.dtype()));
        to.write_from(from)?;
    }
    Ok(true)
}

/// Whether an op has inputs, but none of them an element: its results are numbers that the host knows.
pub(super) fn made_of_nothing(x: &[&Tensor]) -> bool {
    !x.is_empty() && x.iter().all(|t| t.numel() == 0)
}

/// An op without a GPU kernel for these arguments runs on the host, with a warning that names it.
pub(super) fn fallback(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    crate::transfer::count_fallback(op.name(), x, y)?;
    received(hosted(op, x, y)?, y)
}

/// Brings results of the host to where they belong.
pub(super) fn received(from: SmallVec<[Tensor; 2]>, y: &[Tensor]) -> Result<()> {
    for (to, from) in y.iter().zip(&from) {
        to.write_from(from)?;
    }
    Ok(())
}

/// The results, computed on the host.
pub(super) fn hosted(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<SmallVec<[Tensor; 2]>> {
    let hosted: SmallVec<[Tensor; 4]> = x.iter().map(|t| t.to_host()).collect::<Result<_>>()?;
    let inputs: SmallVec<[&Tensor; 4]> = hosted.iter().collect();
    let outputs: SmallVec<[Tensor; 2]> = y
        .iter()
        .map(|t| Tensor::empty(t.shape(), t.dtype(), Device::Cpu))
        .collect::<Result<_>>()?;
    host::unlocked(|| op.cpu(&inputs, &outputs))?;
    Ok(outputs)
}

//! Results that go to tensors which are there: `out=`, in place, and kernels that run again.

use super::apply::{apply, Kind, Request};
use super::record::Pending;
use super::{check_devices, metas, refuse_sparse, run, tracked};
use crate::autograd::{inplace, mode};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::host;
use crate::layout::Layout;
use crate::op::{Op, Repeats, TensorMeta};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::words::WrongOut;
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::slice;

/// Computes into `out`. With `inplace`, `out` is `x[0]` and keeps its shape; otherwise (`out=`) it
/// takes the result's shape, and where that differs the tensor returned replaces it.
pub fn call_into<O: Op>(op: O, x: &[&Tensor], out: &Tensor, inplace: bool) -> Result<Tensor> {
    let (target, pending) = written(&op, x, out, inplace)?;
    if let Some(pending) = pending {
        pending.rebase(op, &target)?;
    }
    Ok(target)
}

/// What [`call_into`] returns, and its history in the making.
pub(super) fn written(
    op: &dyn Op,
    x: &[&Tensor],
    out: &Tensor,
    inplace: bool,
) -> Result<(Tensor, Option<Pending>)> {
    let (grad, interpreted) = mode::grad_and_interpreted();
    let mut needs = if grad { tracked(x) } else { 0 };
    if inplace {
        inplace::check(out, needs != 0)?;
    } else if grad && out.requires_grad() && !op.traits().opaque {
        refuse_out()?;
    }
    if needs == 0 && !interpreted && wrote_fast(op, x, out)? {
        out.bump_version();
        return Ok((out.clone(), None));
    }
    let traits = op.traits();
    let inputs = metas(x);
    check_devices(op, &inputs)?;
    // Of several things that are wrong, that elements share memory is told first.
    let first = |e: Error| match inplace && traits.repeats == Repeats::Refused {
        true => check_overlap(out).err().unwrap_or(e),
        false => e,
    };
    let meta = op.infer(&inputs).map_err(first)?.swap_remove(0);
    if needs != 0 && !inplace && !traits.opaque {
        // Results that carry no gradient may go anywhere.
        if meta.dtype.differentiable() && traits.detached & 1 == 0 {
            refuse_out()?;
        }
        needs = 0;
    }
    if !inplace && !traits.casts {
        check_type(out, &meta, 0)?;
    }
    let target = destination(out, &meta, inplace).map_err(first)?;
    if !inplace && traits.repeats == Repeats::Changes {
        // What changes is told from what was: only where that is an operand.
        check_overlap(&target)?;
    }
    let pending = match needs {
        0 => None,
        _ => Some(Pending::new(op, needs, x, out)?),
    };
    put(op, x, &target, &meta)?;
    target.bump_version();
    Ok((target, pending))
}

/// Computes into `y` by the way of small calls; `false` where the usual way must be taken.
#[inline]
fn wrote_fast(op: &dyn Op, x: &[&Tensor], y: &Tensor) -> Result<bool> {
    match op.fast() {
        Some(fast) => fast.call_into(x, y),
        None => Ok(false),
    }
}

/// Raises where `out=` is not of the result's type and the op does not cast. `place` is the result's.
pub fn check_type(out: &Tensor, meta: &TensorMeta, place: usize) -> Result<()> {
    let (want, got) = (meta.dtype, out.dtype());
    match want == got {
        true => Ok(()),
        false => wrong_out(
            format!(
                "Expected out tensor to have dtype {}, but got {} instead",
                want.c_name(),
                got.c_name()
            ),
            WrongOut { place, want, got },
        ),
    }
}

/// Raises for the type of `out=`, in these words where the function has none of its own.
#[cold]
fn wrong_out<T>(text: String, wrong: WrongOut) -> Result<T> {
    let mut e = Error::runtime(text);
    e.wrong_out = Some(wrong);
    Err(e)
}

/// The tensor that a result of this shape and type is written to.
pub fn destination(out: &Tensor, meta: &TensorMeta, inplace: bool) -> Result<Tensor> {
    if out.is_sparse() {
        refuse_sparse("out=", out)?;
    }
    let (want, got) = (meta.dtype, out.dtype());
    if !want.can_cast(got) {
        let text = format!(
            "result type {} can't be cast to the desired output type {}",
            want.scalar_name(),
            got.scalar_name()
        );
        let place = 0;
        return match inplace {
            true => Err(Error::runtime(text)),
            false => wrong_out(text, WrongOut { place, want, got }),
        };
    }
    ensure!(
        out.device() == meta.device,
        Runtime,
        "Expected out tensor to have device {}, but got {} instead: Attempting to copy from device \
         {} to device {}, but cross-device copies are not allowed!",
        meta.device,
        out.device(),
        meta.device,
        out.device()
    );
    if out.shape() == &meta.shape {
        return Ok(out.clone());
    }
    ensure!(
        !inplace,
        Runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        Show(out.shape()),
        Show(&meta.shape)
    );
    if out.numel() != 0 {
        host::warn(&format!(
            "An output with one or more elements was resized since it had shape {}, which does \
             not match the required output shape {}. This behavior is deprecated, and in a future \
             PyTorch release outputs will not be resized unless they have zero elements.",
            Show(out.shape()),
            Show(&meta.shape)
        ));
    }
    // The memory it lies in, if need be made larger: what else looks at it sees the result.
    let layout = Layout {
        offset: out.offset(),
        ..Layout::contiguous(&meta.shape)
    };
    let (storage, bytes) = (
        out.storage(),
        layout.extent()?.saturating_mul(out.dtype().size()),
    );
    let mut fits = bytes <= storage.bytes();
    if !fits {
        storage.check_growth()?;
    }
    if !fits && storage.is_resizable() && !storage.is_unique() {
        storage.resize(bytes)?;
        fits = true;
    }
    let with = match fits {
        true => Tensor::from_storage(storage.clone(), layout, out.dtype()),
        false => Tensor::empty(&meta.shape, out.dtype(), out.device())?,
    };
    Ok(out.replaced(&with))
}

/// Writes a result to `out=` and gives the tensor that it then is.
pub fn deliver(y: &Tensor, out: &Tensor) -> Result<Tensor> {
    let target = destination(out, &TensorMeta::of(y), false)?;
    check_overlap(&target)?;
    match overlap(y, &target) {
        Overlap::None | Overlap::Same => target.assign(y)?,
        _ => target.assign(&y.detach().copy_dense()?)?,
    }
    target.bump_version();
    Ok(target)
}

/// Raises for `out=` where a gradient would be lost.
pub fn refuse_out() -> Result<()> {
    bail!(
        Runtime,
        "functions with out=... arguments don't support automatic differentiation, but one of the \
         arguments requires grad."
    )
}

/// Raises where writing to `out` would write an element twice.
pub fn check_overlap(out: &Tensor) -> Result<()> {
    ensure!(
        !out.layout().overlaps_itself(),
        Runtime,
        "unsupported operation: more than one element of the written-to tensor refers to a single \
         memory location. Please clone() the tensor before performing the operation."
    );
    Ok(())
}

/// How the memory of an input lies to that of the output.
#[derive(PartialEq, Eq)]
pub enum Overlap {
    None,
    Same,
    /// Raises in PyTorch.
    Partial,
    /// Some elements may be shared; PyTorch does not look closer, we read from a copy.
    Unclear,
}

pub fn overlap(x: &Tensor, out: &Tensor) -> Overlap {
    if !x.shares_storage(out) || x.numel() == 0 || out.numel() == 0 {
        return Overlap::None;
    }
    if x.dtype() == out.dtype() && x.layout().same_places(out.layout()) {
        return Overlap::Same;
    }
    let range = |t: &Tensor| {
        let size = t.dtype().size();
        (
            t.offset() * size,
            t.layout().extent().unwrap_or(usize::MAX / 16) * size,
        )
    };
    let ((a, b), (c, d)) = (range(x), range(out));
    if b <= c || d <= a {
        Overlap::None
    } else if x.layout().is_dense() && out.layout().is_dense() {
        Overlap::Partial
    } else {
        Overlap::Unclear
    }
}

/// Computes into `y`, without recording; `y` is of the shapes that the op infers.
pub fn compute_into(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let inputs = metas(x);
    check_devices(op, &inputs)?;
    let results = op.infer(&inputs)?;
    match mode::interpreted() {
        false => write(op, x, y, &results),
        true => ask_into(op, x, y, &results),
    }
}

/// Runs a kernel again whose request was answered before: into results that are there, in the layouts
/// that it had, or, with `metas`, as [`compute_into`] with what the op infers.
pub fn perform(
    op: &dyn Op,
    x: &[&Tensor],
    y: &[Tensor],
    metas: Option<&[TensorMeta]>,
) -> Result<()> {
    if let [y] = y {
        if wrote_fast(op, x, y)? {
            return Ok(());
        }
    }
    match metas {
        None => run(op, x, y),
        Some(metas) => write(op, x, y, metas),
    }
}

/// Computes into tensors in place, which no graph may hold: an optimiser's step.
pub fn call_in_place(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    for t in y {
        inplace::check(t, mode::grad() && t.requires_grad())?;
    }
    compute_into(op, x, y)?;
    y.iter().for_each(Tensor::bump_version);
    Ok(())
}

/// Brings a result of this shape and type into `y`.
fn put(op: &dyn Op, x: &[&Tensor], y: &Tensor, meta: &TensorMeta) -> Result<()> {
    match mode::interpreted() {
        false => write_one(op, x, y, meta),
        true => ask_into(op, x, slice::from_ref(y), slice::from_ref(meta)),
    }
}

#[cold]
fn ask_into(op: &dyn Op, x: &[&Tensor], y: &[Tensor], metas: &[TensorMeta]) -> Result<()> {
    let kind = Kind::Into { op, y, metas };
    apply(&Request { x, kind }).map(|_| ())
}

/// Runs the kernel with `y` as its results. An op with several takes care of their layouts itself.
pub(super) fn write(op: &dyn Op, x: &[&Tensor], y: &[Tensor], metas: &[TensorMeta]) -> Result<()> {
    match (y, metas) {
        ([y], [meta]) => write_one(op, x, y, meta),
        _ => run(op, x, y),
    }
}

/// Runs the kernel with `out` as its result, through a temporary where the kernel asks for one.
fn write_one(op: &dyn Op, x: &[&Tensor], out: &Tensor, meta: &TensorMeta) -> Result<()> {
    if out.layout().overlaps_itself() {
        return write_repeated(op, x, out, meta);
    }
    let traits = op.traits();
    // Kernels of real numbers do not write complex ones.
    if !traits.pointwise || out.dtype().is_complex() != meta.dtype.is_complex() {
        let direct = out.is_contiguous()
            && out.dtype() == meta.dtype
            && !x.iter().enumerate().any(|(i, t)| {
                let own = i == 0 && traits.overwrites && out.device() == Device::Cpu;
                t.shares_storage(out) && !(own && overlap(t, out) == Overlap::Same)
            });
        if direct {
            return run(op, x, slice::from_ref(out));
        }
        let y = Tensor::empty(&meta.shape, meta.dtype, meta.device)?;
        run(op, x, slice::from_ref(&y))?;
        return out.write_from(&y);
    }
    let mut copies: SmallVec<[(usize, Tensor); 1]> = SmallVec::new();
    for (i, t) in x.iter().enumerate() {
        match overlap(t, out) {
            Overlap::None | Overlap::Same => {}
            Overlap::Partial => check_apart(t, out)?,
            Overlap::Unclear => copies.push((i, t.detach().copy_dense()?)),
        }
    }
    if copies.is_empty() {
        return run(op, x, slice::from_ref(out));
    }
    let mut inputs: SmallVec<[&Tensor; 4]> = x.into();
    for (i, t) in &copies {
        inputs[*i] = t;
    }
    run(op, &inputs, slice::from_ref(out))
}

/// As [`write_one`] where elements of `out` share memory.
#[cold]
fn write_repeated(op: &dyn Op, x: &[&Tensor], out: &Tensor, meta: &TensorMeta) -> Result<()> {
    let repeats = op.traits().repeats;
    let once = out.alias(out.layout().once());
    if repeats == Repeats::Alike && !once.layout().overlaps_itself() {
        return run(op, x, slice::from_ref(&once));
    }
    if repeats == Repeats::Refused {
        return check_overlap(out);
    }
    if out.device().is_gpu() {
        // Which element is written last is told on the host.
        crate::transfer::count_fallback(op.name(), x, slice::from_ref(out))?;
    }
    let y = Tensor::empty(&meta.shape, meta.dtype, meta.device)?;
    run(op, x, slice::from_ref(&y))?;
    mode::with_grad(false, || out.write_changes(&y.to_dtype(out.dtype())?))
}

/// Raises where an operand lies in memory that is about to be written to.
pub fn check_apart(x: &Tensor, out: &Tensor) -> Result<()> {
    ensure!(
        matches!(overlap(x, out), Overlap::None | Overlap::Unclear),
        Runtime,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer \
         to a single memory location. Please clone() the tensor before performing the operation."
    );
    Ok(())
}

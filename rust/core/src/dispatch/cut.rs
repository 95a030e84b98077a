//! Tensors larger than a GPU's kernel can bind. Kernels see windows on them; where what an op needs does
//! not fit in one, its work is cut in two, along what the op says, as often as it takes, unless the op
//! chooses its windows itself.

use super::launch::{fallback, implemented, launched};
use super::{metas, overlap, Overlap};
use crate::error::Result;
use crate::gpu::fault::working_for;
use crate::gpu::{was_refused, Gpu, Window};
use crate::op::{Cut, Op, Part};
use crate::tensor::Tensor;
use crate::transfer::{dense, windowed, SMALLER};
use smallvec::SmallVec;

/// Whether memory of one of the tensors may be larger than a binding.
#[inline]
pub(super) fn beyond(gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> bool {
    // What a buffer has is up to a fifth more than what was asked for.
    let most = gpu.info().max_binding as usize / 5 * 4;
    let large = |t: &Tensor| t.storage().bytes() > most;
    x.iter().any(|t| large(t)) || y.iter().any(large)
}

/// Runs an op whose tensors may be larger than a binding.
#[cold]
pub(super) fn run(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    if chose(gpu, op, x, y)? {
        return Ok(());
    }
    let most = gpu.info().max_binding as usize;
    if let Some(cut) = chosen(op, x, y, most) {
        return halves(gpu, op, &cut, x, y);
    }
    // Drivers of pointwise kernels and copies cut for themselves.
    let ways: &[bool] = if op.traits().pointwise {
        &[false, true]
    } else {
        &[true]
    };
    let mut refused = false;
    for &compact in ways {
        let done = seen(gpu, op, x, y, compact)?;
        refused |= was_refused();
        if done {
            return Ok(());
        }
    }
    match refused {
        true => smaller(gpu, op, x, y),
        false => fallback(op, x, y),
    }
}

/// Runs an op whose kernel was refused a tensor of its own making on smaller parts.
#[cold]
pub(super) fn smaller(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    if chose(gpu, op, x, y)? {
        return Ok(());
    }
    match chosen(op, x, y, gpu.info().max_binding as usize / SMALLER) {
        Some(cut) => halves(gpu, op, &cut, x, y),
        None => fallback(op, x, y),
    }
}

/// Runs an op on windows that it chooses; `false` where it chooses none.
fn chose(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
    let Some(large) = op.large() else {
        return Ok(false);
    };
    working_for(op.name(), || implemented(large.gpu_windows(gpu, x, y)))
}

/// The bytes that the elements of a tensor take, wherever they lie.
fn bytes(t: &Tensor) -> usize {
    let (low, high) = t.layout().reach();
    t.numel().min(high - low) * t.dtype().size()
}

/// The best cut that makes the largest tensor smaller that can be, of those with more bytes than `most`.
fn chosen(op: &dyn Op, x: &[&Tensor], y: &[Tensor], most: usize) -> Option<Cut> {
    // A window begins at a multiple of its alignment.
    let most = most.saturating_sub(Window::ALIGN as usize);
    let sizes = x.iter().copied().chain(y).map(bytes).enumerate();
    let mut large: SmallVec<[(usize, usize); 4]> = sizes.filter(|&(_, n)| n > most).collect();
    if large.is_empty() {
        return None;
    }
    large.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let mut cuts = op.cuts(&metas(x), &metas(y));
    cuts.retain(|cut| length(cut, x, y).is_some());
    let along = |cut: &Cut, i: usize| {
        let part = cut.x.iter().chain(&cut.y).nth(i);
        matches!(part, Some(Part::Along(_)))
    };
    let found = |&(i, _): &(usize, usize)| cuts.iter().find(|cut| along(cut, i));
    large.iter().find_map(found).cloned()
}

/// The length of the dimension that is cut, where all tensors can be.
fn length(cut: &Cut, x: &[&Tensor], y: &[Tensor]) -> Option<usize> {
    let parts = cut.x.iter().chain(&cut.y);
    let tensors = x.iter().copied().chain(y);
    let mut sizes: SmallVec<[usize; 8]> = SmallVec::new();
    for (part, t) in parts.zip(tensors) {
        if let Part::Along(d) = *part {
            sizes.push(*t.shape().get(d)?);
        }
    }
    let n = *sizes.iter().min()?;
    (n > 1 && sizes.iter().all(|s| s.is_multiple_of(n))).then_some(n)
}

/// The elements of a tensor that belong to `n` of `length` from `from` on.
fn piece(t: &Tensor, d: usize, length: usize, from: usize, n: usize) -> Result<Tensor> {
    let k = t.size(d) / length;
    let narrow = t
        .layout()
        .narrow(d as i64, (from * k) as i64, (n * k) as i64);
    Ok(t.alias(narrow?))
}

fn halves(gpu: &Gpu, op: &dyn Op, cut: &Cut, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let Some(length) = length(cut, x, y) else {
        return fallback(op, x, y);
    };
    let middle = length / 2;
    for (from, n) in [(0, middle), (middle, length - middle)] {
        let piece = |t: &Tensor, part: Part| match part {
            Part::Along(d) => piece(t, d, length, from, n),
            Part::Whole | Part::Sum => Ok(t.clone()),
        };
        let inputs: SmallVec<[Tensor; 4]> = x
            .iter()
            .zip(&cut.x)
            .map(|(t, &part)| piece(t, part))
            .collect::<Result<_>>()?;
        let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().collect();
        let places: SmallVec<[Tensor; 2]> = y
            .iter()
            .zip(&cut.y)
            .map(|(t, &part)| piece(t, part))
            .collect::<Result<_>>()?;
        let added = |i: usize| cut.y[i] == Part::Sum && from > 0;
        let results: SmallVec<[Tensor; 2]> = (places.iter().enumerate())
            .map(|(i, t)| {
                // Kernels write what comes beside the first result from the beginning of its memory.
                let small = i > 0 && bytes(&y[i]) <= gpu.info().max_binding as usize;
                let whole = t.is_contiguous() || !y[i].is_contiguous();
                let direct = op.traits().pointwise || whole && !small;
                match direct && !added(i) {
                    true => Ok(t.clone()),
                    false => Tensor::empty(t.shape(), t.dtype(), t.device()),
                }
            })
            .collect::<Result<_>>()?;
        let own = op.large().and_then(|l| l.part(&metas(&inputs)));
        run(gpu, own.as_deref().unwrap_or(op), &inputs, &results)?;
        for (i, (place, result)) in places.iter().zip(&results).enumerate() {
            if added(i) {
                place.write_from(&place.detach().add(result)?)?;
            } else if !place.shares_storage(result) {
                place.write_from(result)?;
            }
        }
    }
    Ok(())
}

/// Runs an op on windows, with `compact` also of what reaches too far for one; `false` where it has no
/// kernel for these.
fn seen(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor], compact: bool) -> Result<bool> {
    let most = gpu.info().max_binding as usize;
    let compact = |t: &Tensor| compact && bytes(t) <= most;
    let mut inputs: SmallVec<[Tensor; 4]> = SmallVec::new();
    for &t in x {
        inputs.push(match windowed(gpu, t) {
            Some(part) => part,
            // In two segments.
            None if t.is_contiguous() && t.device().is_gpu() && compact(t) => t.copy_dense()?,
            None if t.device().is_gpu() && compact(t) => dense(gpu, t)?,
            None => t.clone(),
        });
    }
    let mut results: SmallVec<[Tensor; 2]> = SmallVec::new();
    let mut copied: SmallVec<[usize; 2]> = SmallVec::new();
    for (i, t) in y.iter().enumerate() {
        let same = x.iter().position(|s| overlap(s, t) == Overlap::Same);
        results.push(match (windowed(gpu, t), same) {
            // What is written in place stays the memory of the input.
            (Some(_), Some(k)) => inputs[k].clone(),
            (Some(part), None) => part,
            (None, Some(k)) if compact(t) => {
                copied.push(i);
                inputs[k].clone()
            }
            (None, None) if compact(t) => {
                copied.push(i);
                Tensor::empty(t.shape(), t.dtype(), t.device())?
            }
            (None, _) => t.clone(),
        });
    }
    let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().collect();
    if !launched(gpu, op, &inputs, &results)? {
        return Ok(false);
    }
    copied
        .into_iter()
        .try_for_each(|i| y[i].write_from(&results[i]))?;
    Ok(true)
}

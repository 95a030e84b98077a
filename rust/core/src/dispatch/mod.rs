//! From a call to kernels and graph nodes: [`apply()`] is the one way in, [`record()`] attaches the
//! nodes, and [`run`] is the only place that matches on the device.

mod apply;
mod checks;
mod compare;
mod cut;
mod function;
mod kept;
pub mod parts;
mod profile;
mod record;

pub use apply::{
    apply, asking, beneath, by_name, by_slices, fresh, heeded, interpreted, interpreted_below,
    recorded as recorded_by, underlie, InForce, Interpreter, Kind as RequestKind, Record, Request,
    Run,
};
pub use checks::{Checks, Seen, Witness};
pub use compare::{before_comparing, compare, comparing, Compare};
pub use function::{function, function_of};
pub use kept::{call_kept, call_kept_into, views_kept};
pub use profile::{Event, Profile};
pub use record::{node, record};

use crate::autograd::node::Node;
use crate::autograd::op_node::OpNode;
use crate::autograd::{inplace, mode, saved};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Kind, Result};
use crate::gpu::{fault::working_for, was_refused, Gpu};
use crate::host;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Mask, Op, Repeats, TensorMeta, Tensors};
use crate::shape::Show;
use crate::shared::Shared;
use crate::tensor::{Creation, Tensor};
use crate::words::WrongOut;
use crate::{bail, ensure};
use parts::each_part;
use record::{attach, attach_node, Pending};
use smallvec::SmallVec;
use std::slice;

/// Computes an op and records it where an input needs a gradient.
pub fn call<O: Op>(op: O, x: &[&Tensor]) -> Result<Tensors> {
    called(&mut Some(op), x)
}

/// [`call`] for an op with one result.
pub fn call1<O: Op>(op: O, x: &[&Tensor]) -> Result<Tensor> {
    called1(&mut Some(op), x)
}

/// An op that moves into a node where one is made: calls are compiled once, not for each op.
trait Callee {
    fn op(&self) -> &dyn Op;
    fn node(&mut self) -> Shared<Node>;
}

impl<O: Op> Callee for Option<O> {
    fn op(&self) -> &dyn Op {
        self.as_ref().expect("an op that has no node yet")
    }
    fn node(&mut self) -> Shared<Node> {
        OpNode::bare(self.take().expect("an op that has no node yet"))
    }
}

fn called(callee: &mut dyn Callee, x: &[&Tensor]) -> Result<Tensors> {
    let needs = needs(x);
    let op = callee.op();
    let y = compute(op, x)?;
    if needs != 0 {
        let detached = op.traits().detached;
        attach_node(|| callee.node(), needs, x, &y, detached)?;
    }
    Ok(y)
}

fn called1(callee: &mut dyn Callee, x: &[&Tensor]) -> Result<Tensor> {
    Ok(called(callee, x)?.swap_remove(0))
}

/// The fast path for a small call of the plainest kind; `None` where [`call`] must do it. Runs
/// nothing of the host language, so that the inputs may be borrowed from its objects.
#[inline]
pub fn fast<O: Op>(op: O, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let (grad, interpreted) = mode::grad_and_interpreted();
    if interpreted {
        return None;
    }
    let needs = if grad { tracked(x) } else { 0 };
    if needs != 0 {
        // A view whose base was modified drops its old node, and what hooks on it hold.
        let outdated = x.iter().any(|t| inplace::is_outdated(t));
        if outdated || saved::has_hooks() || mode::anomaly().is_some() {
            return None;
        }
    }
    let y = op.fast()?.call(x)?;
    if needs == 0 || y.is_err() {
        return Some(y);
    }
    Some(y.and_then(|y| {
        let detached = op.traits().detached;
        attach(op, needs, x, slice::from_ref(&y), detached)?;
        Ok(y)
    }))
}

/// Computes without recording.
pub fn compute(op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
    if mode::interpreted() {
        let kind = RequestKind::Compute { op };
        return apply(&Request { x, kind });
    }
    computed(op, x)
}

/// [`compute`] past the interpreters.
fn computed(op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
    if let Some(y) = op.fast().and_then(|f| f.call(x)) {
        let mut out = Tensors::new();
        out.push(y?);
        return Ok(out);
    }
    let inputs = metas(x);
    check_devices(op, &inputs)?;
    // As `plan` says, without metas in between.
    let mut y = Tensors::new();
    for m in &op.infer(&inputs)? {
        y.push(match op.layout(&inputs, m) {
            None => Tensor::empty(&m.shape, m.dtype, m.device)?,
            Some(layout) => Tensor::of(Meta::new(layout, m.dtype, m.device))?,
        });
    }
    run(op, x, &y)?;
    Ok(y)
}

/// What the results of a call will be, without making them or looking at any memory.
pub fn plan(op: &dyn Op, x: &[&Meta]) -> Result<SmallVec<[Meta; 1]>> {
    check_devices(op, x)?;
    let meta = |m: TensorMeta| {
        let layout = op.layout(x, &m);
        let layout = layout.unwrap_or_else(|| Layout::contiguous(&m.shape));
        Meta::new(layout, m.dtype, m.device)
    };
    Ok(op.infer(x)?.into_iter().map(meta).collect())
}

/// What tensors are without their memory.
pub fn metas<T: AsRef<Meta>>(x: &[T]) -> SmallVec<[&Meta; 4]> {
    x.iter().map(T::as_ref).collect()
}

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
fn written(
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
    let kind = RequestKind::Into { op, y, metas };
    apply(&Request { x, kind }).map(|_| ())
}

/// Runs the kernel with `y` as its results. An op with several takes care of their layouts itself.
fn write(op: &dyn Op, x: &[&Tensor], y: &[Tensor], metas: &[TensorMeta]) -> Result<()> {
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

/// Computes `y` from `x` where they live.
fn run(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    for t in x.iter().copied().chain(y) {
        if t.dtype().is_rare() && !op.traits().rare.has(t.dtype()) {
            return refuse_type(op, t.dtype());
        }
        if t.is_sparse() {
            return refuse_sparse(op.name(), t);
        }
    }
    let device = y.first().map_or(Device::Cpu, |t| t.device());
    match device {
        Device::Cpu => {
            let done = if op.work(&metas(x), &metas(y)) >= host::WORTH_UNLOCKING {
                host::unlocked(|| op.cpu(x, y))
            } else {
                op.cpu(x, y)
            };
            done.map_err(|e| named(op, e))
        }
        Device::Wgpu(index) => {
            let gpu = Gpu::at(index)?;
            if y.iter().all(|t| t.numel() == 0) {
                let index = |t: &&Tensor| t.dtype().is_int() && t.numel() > 0;
                return match x.iter().any(index) {
                    // Nothing to compute, but an index may be out of range.
                    true => hosted(op, x, y).map(|_| ()),
                    false => Ok(()),
                };
            }
            // What is made of other ops leaves no history.
            mode::with_grad(false, || match cut::beyond(gpu, x, y) {
                true => cut::run(gpu, op, x, y),
                false if launched(gpu, op, x, y)? => Ok(()),
                // What kernels make of these may be too large for them.
                false if was_refused() => cut::smaller(gpu, op, x, y),
                false if untangled(gpu, op, x, y)? => Ok(()),
                false if made_of_nothing(x) => received(hosted(op, x, y)?, y),
                false => fallback(op, x, y),
            })?;
            for buffer in y.iter().filter_map(|t| t.storage().buffer()) {
                buffer.written_by(op.name());
            }
            Ok(())
        }
        // What there is to know of results without memory was inferred.
        Device::Meta => Ok(()),
    }
}

/// Computes on a GPU, by the op's kernel or what it is made of; `false` where no kernel computes in this
/// type, or the sizes are beyond one.
fn launched(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
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
fn untangled(gpu: &Gpu, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
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
fn implemented(done: Result<bool>) -> Result<bool> {
    match done {
        Err(e) if e.kind == Kind::NoKernel => Ok(false),
        done => done,
    }
}

/// Says which op has no kernel for a type, where the loop that was chosen by type could not.
#[cold]
fn named(op: &dyn Op, mut e: Error) -> Error {
    if std::mem::take(&mut e.unnamed) {
        let name = crate::op::function_name(op.name());
        e.text.insert_str(0, &format!("\"{name}\" "));
    }
    e
}

/// Kernels and views take tensors whose elements lie in memory; what takes lists of coordinates works
/// on the tensors that these are made of.
#[cold]
pub fn refuse_sparse(name: &str, x: &Meta) -> Result<()> {
    bail!(
        NotImplemented,
        "Could not run 'aten::{}' with arguments from the 'Sparse{}' backend: it takes dense \
         tensors, and got a sparse one of shape {}. Convert it with to_dense().",
        crate::op::function_name(name),
        x.device().kind().to_uppercase(),
        Show(x.shape())
    )
}

#[cold]
fn refuse_type(op: &dyn Op, dtype: DType) -> Result<()> {
    bail!(
        NoKernel,
        "\"{}\" not implemented for '{}'; convert the tensor with .to(dtype), such as .to(torch.{})",
        crate::op::function_name(op.name()),
        dtype.scalar_name(),
        dtype.usual()
    )
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
fn made_of_nothing(x: &[&Tensor]) -> bool {
    !x.is_empty() && x.iter().all(|t| t.numel() == 0)
}

/// An op without a GPU kernel for these arguments runs on the host, with a warning that names it.
fn fallback(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    crate::transfer::count_fallback(op.name(), x, y)?;
    received(hosted(op, x, y)?, y)
}

/// Brings results of the host to where they belong.
fn received(from: SmallVec<[Tensor; 2]>, y: &[Tensor]) -> Result<()> {
    for (to, from) in y.iter().zip(&from) {
        to.write_from(from)?;
    }
    Ok(())
}

/// The results, computed on the host.
fn hosted(op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<SmallVec<[Tensor; 2]>> {
    let hosted: SmallVec<[Tensor; 4]> = x.iter().map(|t| t.to_host()).collect::<Result<_>>()?;
    let inputs: SmallVec<[&Tensor; 4]> = hosted.iter().collect();
    let outputs: SmallVec<[Tensor; 2]> = y
        .iter()
        .map(|t| Tensor::empty(t.shape(), t.dtype(), Device::Cpu))
        .collect::<Result<_>>()?;
    host::unlocked(|| op.cpu(&inputs, &outputs))?;
    Ok(outputs)
}

/// All operands must live together; 0-d tensors on the CPU go along with any device.
fn check_devices(op: &dyn Op, x: &[&Meta]) -> Result<()> {
    let mut found: Option<Device> = None;
    for t in x {
        if t.is_sparse() {
            refuse_sparse(op.name(), t)?;
        }
        if t.ndim() == 0 && t.device() == Device::Cpu {
            continue;
        }
        match found {
            Some(d) if d != t.device() => bail!(
                Runtime,
                "Expected all tensors to be on the same device, but found at least two devices, \
                 {d} and {}! (in {}). Move them with .to(device).",
                t.device(),
                op.name()
            ),
            _ => found = Some(t.device()),
        }
    }
    Ok(())
}

/// The device that results live on.
pub fn device(x: &[impl AsRef<Meta>]) -> Device {
    let mut devices = x.iter().map(|t| t.as_ref().device());
    devices.find(|&d| d != Device::Cpu).unwrap_or(Device::Cpu)
}

/// Which inputs need a gradient, on this thread, now.
pub fn needs(x: &[&Tensor]) -> Mask {
    match mode::grad() {
        true => tracked(x),
        false => 0,
    }
}

/// Whether what is computed may be recorded, here or for what stands for an input: who chooses an op by that
/// asks so.
pub fn recorded(x: &[&Tensor]) -> bool {
    let recorded = mode::grad() && x.iter().any(|t| t.requires_grad() || t.stands());
    recorded || (mode::followed() && heeded(x))
}

#[inline]
fn tracked(x: &[&Tensor]) -> Mask {
    let mut mask = 0;
    for (i, t) in x.iter().enumerate().take(64) {
        mask |= (t.requires_grad() as Mask) << i;
    }
    // More than 64 inputs occur for `cat` and `stack` only, which save nothing: one bit stands
    // for all that follow.
    if x.len() > 64 && x[64..].iter().any(|t| t.requires_grad()) {
        mask |= 1 << 63;
    }
    mask
}

/// A view of `x` under `layout`; `op` says how gradients pass.
pub fn view<D: Derivative>(op: D, x: &Tensor, layout: Layout) -> Result<Tensor> {
    view_with(x, layout, || Ok(op))
}

/// [`view`] for an op that is made only where it is recorded.
pub fn view_with<D: Derivative>(
    x: &Tensor,
    layout: Layout,
    op: impl FnOnce() -> Result<D>,
) -> Result<Tensor> {
    view_under(x, layout, x.dtype(), op)
}

/// [`view_with`] that reads the memory as another type.
pub fn view_under<D: Derivative>(
    x: &Tensor,
    layout: Layout,
    dtype: DType,
    op: impl FnOnce() -> Result<D>,
) -> Result<Tensor> {
    if x.is_sparse() {
        return refuse_sparse(op()?.name(), x).map(|()| x.clone());
    }
    let creation = creation();
    let recorded = dtype.differentiable() && needs(&[x]) != 0;
    if !mode::interpreted() {
        let y = x.view_as(layout, dtype, creation);
        if recorded {
            attach(op()?, 1, &[x], slice::from_ref(&y), 0)?;
        }
        return Ok(y);
    }
    let op = op()?;
    let mut y = ask_views(&op, x, &[layout], dtype, creation)?;
    if recorded {
        attach(op, 1, &[x], &y, 0)?;
    }
    Ok(y.swap_remove(0))
}

/// Several views of `x` from one op, such as `unbind`.
pub fn views<D: Derivative>(op: D, x: &Tensor, layouts: Vec<Layout>) -> Result<Vec<Tensor>> {
    if x.is_sparse() {
        refuse_sparse(op.name(), x)?;
    }
    let creation = match creation() {
        Creation::Default => Creation::Multiple,
        other => other,
    };
    views_of(op, x, &layouts, x.dtype(), creation)
}

/// [`views`] of this type, made in this way.
fn views_of<D: Derivative>(
    op: D,
    x: &Tensor,
    layouts: &[Layout],
    dtype: DType,
    creation: Creation,
) -> Result<Vec<Tensor>> {
    let y: Vec<Tensor> = match mode::interpreted() {
        false => layouts
            .iter()
            .map(|l| x.view_as(l.clone(), dtype, creation))
            .collect(),
        true => ask_views(&op, x, layouts, dtype, creation)?,
    };
    if needs(&[x]) != 0 && dtype.differentiable() && !y.is_empty() {
        attach(op, 1, &[x], &y, 0)?;
    }
    Ok(y)
}

#[cold]
fn ask_views(
    op: &dyn Derivative,
    x: &Tensor,
    layouts: &[Layout],
    dtype: DType,
    creation: Creation,
) -> Result<Vec<Tensor>> {
    let kind = RequestKind::View {
        op,
        layouts,
        dtype,
        creation,
    };
    apply(&Request { x: &[x], kind }).map(Tensors::into_vec)
}

fn creation() -> Creation {
    if mode::inference() {
        Creation::Inference
    } else if mode::grad() {
        Creation::Default
    } else {
        Creation::NoGrad
    }
}

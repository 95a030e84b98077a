//! From a call to kernels and graph nodes: [`apply()`] is the one way in, [`record()`] attaches the
//! nodes, and [`run`] is the only place that matches on the device.

mod apply;
mod checks;
mod compare;
mod cut;
mod function;
mod kept;
mod launch;
pub mod parts;
mod profile;
mod record;
mod view;
mod write;

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
pub use view::{view, view_under, view_with, views};
pub use write::{
    call_in_place, call_into, check_apart, check_overlap, check_type, compute_into, deliver,
    destination, overlap, perform, refuse_out, Overlap,
};

use crate::autograd::node::Node;
use crate::autograd::op_node::OpNode;
use crate::autograd::{inplace, mode, saved};
use crate::bail;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{was_refused, Gpu};
use crate::host;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Mask, Op, TensorMeta, Tensors};
use crate::shape::Show;
use crate::shared::Shared;
use crate::tensor::Tensor;
use launch::{fallback, hosted, launched, made_of_nothing, received, untangled};
use record::{attach, attach_node};
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

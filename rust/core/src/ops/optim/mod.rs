//! One step of an optimiser over lists of tensors: one pass over memory, all threads.

crate::ops::family! { ; ENTRIES }
mod gpu;
mod lists;
mod lists_gpu;
mod meet;
mod steps;

use self::meet::meet;
use self::steps::{Adam, RmsProp, Sgd};
use super::pointwise::apply_;
use super::pointwise::binary::Add;
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch::{self, Overlap};
use crate::dtype::{Bitwise, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Metas, Op, Part, Replay, ReplayArgs, TensorMeta, Traits};
use crate::ops::pointwise::Float;
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

/// Elements that a thread updates at once.
const CHUNK: usize = 1 << 14;
/// Elements converted at once where the tensor's type is not the one computed in.
const BLOCK: usize = 256;

/// What happens to an element: `x` holds the parameter, its gradient and its state. All but the
/// gradient are written back.
trait Step: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    fn name(&self) -> &'static str;
    /// `time` counts the parameter's steps, where the method asks for their number.
    fn update<T: Float>(&self, time: f64, x: &mut [&mut [T]]);
    /// The same with fixed numbers for those of its own that are arguments of replays.
    fn without_args(&self) -> Self;
    /// As [`Replay::args`], for parameters that took so many steps.
    fn replay_args(&self, times: &[f64]) -> ReplayArgs;
    /// The same on the GPU for as many parameters as there are `times`, whose tensors are
    /// contiguous and stand in lists as those of [`Update`], by a kernel for `room` of them; false where
    /// there is no kernel.
    fn launch(&self, gpu: &Gpu, times: &[f64], room: usize, x: &[&Tensor]) -> Result<bool>;
}

/// One step of `n` parameters, as an op. Inputs are `lists` lists: the parameters, their gradients,
/// and their states; then the numbers of steps, where the method asks for them. Results are all
/// lists but the gradients, which may lie in the memory of their inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Update<S> {
    step: S,
    n: usize,
    /// How many parameters a GPU's kernel takes, so that one does for all parts of the lists.
    room: usize,
    lists: usize,
}

/// The number of the list of gradients.
const GRADS: usize = 1;

impl<S: Step> Update<S> {
    /// The numbers of the inputs that are written to.
    fn written(&self) -> impl Iterator<Item = usize> {
        (0..self.n).chain(2 * self.n..self.lists * self.n)
    }

    /// How many steps the parameter took, if that is asked for.
    fn time(&self, x: &[&Tensor], i: usize) -> Result<f64> {
        match x.get(self.lists * self.n + i) {
            Some(t) => Ok(t.item()?.f64()),
            None => Ok(0.0),
        }
    }

    fn times(&self, x: &[&Tensor]) -> Result<SmallVec<[f64; 8]>> {
        (0..self.n).map(|i| self.time(x, i)).collect()
    }

    /// The tensors of parameter `i`, list after list.
    fn of<'a>(&self, x: &[&'a Tensor], i: usize) -> SmallVec<[&'a Tensor; 5]> {
        (0..self.lists).map(|k| x[k * self.n + i]).collect()
    }

    /// Updates parameters of other orders of elements, such as channels-last, on a GPU.
    fn launch_in_rows(&self, gpu: &Gpu, times: &[f64], lists: &[&Tensor]) -> Result<bool> {
        if meet(lists, |k| k / self.n != GRADS) {
            return Ok(false);
        }
        let mut flat: Vec<Option<Tensor>> = vec![None; lists.len()];
        let mut back = Vec::new();
        for i in 0..self.n {
            for (k, row) in rows(&self.of(lists, i), &mut back)?.into_iter().enumerate() {
                flat[k * self.n + i] = Some(row);
            }
        }
        let flat: Vec<&Tensor> = flat.iter().flatten().collect();
        let done = self.step.launch(gpu, times, self.room, &flat)?;
        if done {
            for (t, copy) in back {
                t.write_from(&copy)?;
            }
        }
        Ok(done)
    }

    /// Updates parameters on the host, all at once: no two of them meet in memory. With `shared` a
    /// parameter's own tensors may: the later ones are copies then.
    fn update_together(
        &self,
        x: &[&Tensor],
        y: &[Tensor],
        parameters: Range<usize>,
        shared: bool,
    ) -> Result<()> {
        let mut slots: Vec<Slot> = Vec::with_capacity(parameters.len());
        let mut back: Vec<(&Tensor, Tensor)> = Vec::new();
        let mut copies: Vec<Tensor> = Vec::new();
        for i in parameters {
            let (own, mut apart) = (self.of(x, i), [true; 5]);
            if shared {
                // The gradient is read before anything is written, so it comes last.
                let order = (0..self.lists).filter(|&k| k != GRADS).chain([GRADS]);
                let mut before: SmallVec<[&Tensor; 5]> = SmallVec::new();
                for k in order {
                    before.push(own[k]);
                    apart[k] = before.len() == 1 || !meet(&before, |j| j + 1 < before.len());
                }
            }
            let mut slot = Slot {
                dtype: own[0].dtype(),
                n: own[0].numel(),
                time: self.time(x, i)?,
                tensors: SmallVec::new(),
            };
            for (k, &t) in own.iter().enumerate() {
                let to = (k != GRADS).then(|| &y[(k - (k > GRADS) as usize) * self.n + i]);
                let direct = apart[k]
                    && t.is_contiguous()
                    && t.dtype() == slot.dtype
                    && to.is_none_or(|y| dispatch::overlap(t, y) == Overlap::Same || slot.n == 0);
                if direct {
                    slot.tensors.push(Ptr::new(t.bytes_ptr()));
                    continue;
                }
                let copy = Tensor::empty(t.shape(), slot.dtype, Device::Cpu)?;
                copy.write_from(t)?;
                slot.tensors.push(Ptr::new(copy.bytes_ptr()));
                match to {
                    Some(y) => back.push((y, copy)),
                    None => copies.push(copy),
                }
            }
            slots.push(slot);
        }
        let chunks: Vec<(usize, usize)> = slots
            .iter()
            .enumerate()
            .flat_map(|(i, s)| (0..s.n).step_by(CHUNK).map(move |at| (i, at)))
            .collect();
        parallel_for(chunks.len(), 1, |range| {
            for &(i, at) in &chunks[range] {
                let slot = &slots[i];
                let n = CHUNK.min(slot.n - at);
                match slot.dtype {
                    DType::F32 => chunk::<f32, f32>(&self.step, slot, at, n),
                    DType::F64 => chunk::<f64, f64>(&self.step, slot, at, n),
                    DType::F16 => chunk::<half::f16, f32>(&self.step, slot, at, n),
                    _ => chunk::<half::bf16, f32>(&self.step, slot, at, n),
                }
            }
        });
        back.iter().try_for_each(|(y, new)| y.write_from(new))
    }
}

impl<S: Step> Derivative for Update<S> {
    fn name(&self) -> &'static str {
        self.step.name()
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for '{}' is not implemented.",
            self.step.name()
        )
    }
}

impl<S: Step> Op for Update<S> {
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            ..Traits::POINTWISE
        }
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let name = self.step.name();
        for (i, p) in x[..self.n].iter().enumerate() {
            ensure!(
                p.dtype().is_float(),
                NoKernel,
                "\"{name}\" not implemented for '{}'",
                p.dtype().scalar_name()
            );
            for k in 1..self.lists {
                let t = x[k * self.n + i];
                ensure!(
                    t.shape() == p.shape(),
                    Runtime,
                    "{name}: tensors of one parameter must have one shape, got {} and {}",
                    Show(p.shape()),
                    Show(t.shape())
                );
            }
        }
        Ok(self.written().map(|i| TensorMeta::of(x[i])).collect())
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        match meet(&x[..self.lists * self.n], |k| k / self.n != GRADS) {
            false => self.update_together(x, y, 0..self.n, false),
            true => (0..self.n).try_for_each(|i| self.update_together(x, y, i..i + 1, true)),
        }
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        if self.n > 1 {
            return Vec::new();
        }
        let part = |d| {
            move |t: &&Meta| match t.ndim() {
                0 => Part::Whole,
                _ => Part::Along(d),
            }
        };
        let cut = |d| Cut::new(x.iter().map(part(d)), y.iter().map(part(d)));
        (0..x[0].ndim()).map(cut).collect()
    }

    /// `false` where it must be computed on the host.
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let mut own = self.written().zip(y);
        let lists = &x[..self.lists * self.n];
        if !(0..self.n).all(|i| launchable(lists.iter().skip(i).step_by(self.n).copied()))
            || !own.all(|(i, y)| dispatch::overlap(x[i], y) == Overlap::Same)
        {
            return Ok(false);
        }
        let times = self.times(x)?;
        if !lists.iter().all(|t| t.is_contiguous()) {
            return self.launch_in_rows(gpu, &times, lists);
        }
        if !meet(lists, |k| k / self.n != GRADS) {
            return self.step.launch(gpu, &times, self.room, lists);
        }
        let tied = |i| {
            let mut states = self.of(x, i);
            states.remove(GRADS);
            meet(&states, |_| true)
        };
        if (0..self.n).any(tied) {
            return Ok(false);
        }
        for i in 0..self.n {
            let grad = x[GRADS * self.n + i];
            let copy = Tensor::empty(grad.shape(), grad.dtype(), grad.device())?;
            let mut own = self.of(x, i);
            if meet(&own, |k| k != GRADS) {
                copy.write_from(grad)?;
                own[GRADS] = &copy;
            }
            if !self.step.launch(gpu, &times[i..=i], self.room, &own)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn replay(&self) -> Option<&dyn Replay> {
        Some(self)
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[..self.n].iter().map(|p| p.numel()).sum()
    }
}

impl<S: Step> Replay for Update<S> {
    fn without_args(&self) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Update {
            step: self.step.without_args(),
            ..self.clone()
        }))
    }

    fn args(&self, x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self.step.replay_args(&self.times(x)?))
    }
}

/// The tensors of one parameter as their elements in the parameter's own order: the same memory where it has that
/// order, else copies, of which those that are written to go to `back`.
fn rows<'a>(
    own: &[&'a Tensor],
    back: &mut Vec<(&'a Tensor, Tensor)>,
) -> Result<SmallVec<[Tensor; 5]>> {
    let lead = own[0].layout();
    let order = match lead.is_dense() {
        true => Layout {
            offset: 0,
            ..lead.clone()
        },
        false => Layout::contiguous(&lead.shape),
    };
    let alike = |t: &Tensor| {
        let strides = t.layout().strides.iter().zip(&order.strides);
        t.layout().is_dense()
            && strides
                .zip(&order.shape)
                .all(|((a, b), &n)| n == 1 || a == b)
    };
    let line = Layout::contiguous(&[own[0].numel()]);
    let each = own.iter().enumerate().map(|(k, &t)| {
        if alike(t) {
            return Ok(t.alias(Layout {
                offset: t.offset(),
                ..line.clone()
            }));
        }
        let copy = Tensor::empty(&line.shape, t.dtype(), t.device())?;
        let shaped = copy.alias(order.clone());
        shaped.write_from(t)?;
        if k != GRADS {
            back.push((t, shaped));
        }
        Ok(copy)
    });
    each.collect()
}

/// Whether kernels take these tensors of one parameter, in some order of their elements.
fn launchable<'a>(x: impl Iterator<Item = &'a Tensor>) -> bool {
    x.enumerate().all(|(list, t)| match list {
        GRADS => transfer::small_floats(&[t]),
        _ => t.dtype() == DType::F32,
    })
}

/// One parameter in contiguous host memory.
struct Slot {
    dtype: DType,
    n: usize,
    time: f64,
    tensors: SmallVec<[Ptr<u8>; 5]>,
}

/// Updates every parameter; `lists[0]` are the parameters, `lists[1]` their gradients. `times` holds
/// the numbers of steps, if they matter.
fn run(step: &impl Step, lists: &[&[Tensor]], times: &[Tensor]) -> Result<()> {
    let update = |of: &[usize], room: usize| -> Result<()> {
        let op = Update {
            step: step.clone(),
            n: of.len(),
            room,
            lists: lists.len(),
        };
        let all = lists.iter().chain((!times.is_empty()).then_some(&times));
        let x: Vec<&Tensor> = all.flat_map(|l| of.iter().map(|&i| &l[i])).collect();
        let y: Vec<Tensor> = op.written().map(|i| x[i].clone()).collect();
        dispatch::call_in_place(&op, &x, &y)
    };
    let device = |i: usize| lists[0][i].device();
    let (host, gpu): (Vec<usize>, Vec<usize>) =
        (0..lists[0].len()).partition(|&i| device(i) == Device::Cpu);
    // One kernel takes as many parameters of one GPU as it binds buffers.
    let (fit, rest): (Vec<usize>, Vec<usize>) = gpu.into_iter().partition(|&i| {
        let of = || lists.iter().map(|l| &l[i]);
        launchable(of()) && of().all(transfer::is_bound_whole)
    });
    if !rest.is_empty()
        && !fit.is_empty()
        && meet(&lists.iter().copied().flatten().collect::<Vec<_>>(), |k| {
            k / lists[0].len() != GRADS
        })
    {
        return (0..lists[0].len()).try_for_each(|i| update(&[i], 1));
    }
    for of in fit.chunk_by(|&a, &b| device(a) == device(b)) {
        let kernels = of.len().div_ceil(gpu::at_once(device(of[0]), lists.len())?);
        let room = of.len().div_ceil(kernels);
        of.chunks(room).try_for_each(|part| update(part, room))?;
    }
    rest.iter().try_for_each(|&i| update(&[i], 1))?;
    match host.is_empty() {
        true => Ok(()),
        false => update(&host, host.len()),
    }
}

crate::per_isa! {
    fn update[P: Step, T: Float](step: &P, time: f64, x: &mut [&mut [T]]) {
        step.update(time, x)
    }
}

fn chunk<S: Element, T: Float>(step: &impl Step, slot: &Slot, at: usize, n: usize) {
    let time = slot.time;
    let ptrs = slot
        .tensors
        .iter()
        .map(|p| p.get().cast::<S>().wrapping_add(at));
    if S::DTYPE == T::DTYPE {
        // SAFETY: S and T are one type; elements `at..at + n` belong to this call alone, since tensors
        // that meet are not updated together.
        let mut x: SmallVec<[&mut [T]; 5]> = ptrs
            .map(|p| unsafe { std::slice::from_raw_parts_mut(p.cast::<T>(), n) })
            .collect();
        return update(step, time, &mut x);
    }
    let mut buffers = vec![[T::default(); BLOCK]; slot.tensors.len()];
    for first in (0..n).step_by(BLOCK) {
        let len = BLOCK.min(n - first);
        for (p, b) in ptrs.clone().zip(&mut buffers) {
            for (j, v) in b[..len].iter_mut().enumerate() {
                // SAFETY: the element lies in the tensor.
                *v = T::from_element(unsafe { *p.add(first + j) });
            }
        }
        let mut x: Vec<&mut [T]> = buffers.iter_mut().map(|b| &mut b[..len]).collect();
        update(step, time, &mut x);
        for (k, (p, b)) in ptrs.clone().zip(&buffers).enumerate() {
            if k == GRADS {
                continue;
            }
            for (j, v) in b[..len].iter().enumerate() {
                // SAFETY: elements `at..at + n` belong to this call alone.
                unsafe { *p.add(first + j) = v.to_element() };
            }
        }
    }
}

fn equal_lengths(name: &str, lists: &[&[Tensor]]) -> Result<()> {
    for l in lists {
        ensure!(
            l.len() == lists[0].len(),
            Runtime,
            "{name}: Tensor lists must have the same number of tensors, got {} and {}",
            lists[0].len(),
            l.len()
        );
    }
    Ok(())
}

/// -1 to maximise, divided by the scale of mixed precision; `None` where a gradient overflowed.
fn sign(maximize: bool, scale: Option<&Tensor>, overflow: Option<&Tensor>) -> Result<Option<f64>> {
    if let Some(found) = overflow {
        if found.item()?.truth() {
            return Ok(None);
        }
    }
    let scale = scale
        .map(Tensor::item)
        .transpose()?
        .map_or(1.0, Scalar::f64);
    Ok(Some(if maximize { -1.0 } else { 1.0 } / scale))
}

fn adam<Sig: Signature>(name: &'static str, decoupled: bool, a: &Args<Sig>) -> Result<Value> {
    let Some(sign) = sign(
        a.bool(arg!(maximize))?,
        a.opt_tensor(arg!(grad_scale)),
        a.opt_tensor(arg!(found_inf)),
    )?
    else {
        return Ok(Value::None);
    };
    let amsgrad = a.bool(arg!(amsgrad))?;
    let steps = a.tensors(arg!(state_steps))?;
    let mut lists = vec![
        a.tensors(arg!(self))?,
        a.tensors(arg!(grads))?,
        a.tensors(arg!(exp_avgs))?,
        a.tensors(arg!(exp_avg_sqs))?,
    ];
    if amsgrad {
        lists.push(a.tensors(arg!(max_exp_avg_sqs))?);
    }
    equal_lengths(name, &lists)?;
    equal_lengths(name, &[lists[0], steps])?;
    let step = Adam {
        lr: Bitwise(a.tensor(arg!(lr))?.item()?.f64()),
        beta1: Bitwise(a.float(arg!(beta1))?),
        beta2: Bitwise(a.float(arg!(beta2))?),
        decay: Bitwise(a.float(arg!(weight_decay))?),
        eps: Bitwise(a.float(arg!(eps))?),
        sign: Bitwise(sign),
        decoupled,
        name,
    };
    run(&step, &lists, steps)?;
    Ok(Value::None)
}

/// Adds one number to every tensor, in place.
fn add_to_each(list: &[Tensor], value: Scalar) -> Result<()> {
    let number = Tensor::number(value)?;
    for t in list {
        ensure!(
            !t.dtype().is_complex(),
            NotImplemented,
            "_foreach_add_: complex tensors are not supported yet"
        );
        apply_(
            Add {
                alpha: Scalar::Int(1),
            },
            [t, &number],
        )?;
    }
    Ok(())
}

crate::entries! {
    /// One step of stochastic gradient descent over lists of tensors, in place.
    "_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor|Scalar lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    FN, |a| {
        let Some(sign) = sign(a.bool(arg!(maximize))?, a.opt_tensor(arg!(grad_scale)), a.opt_tensor(arg!(found_inf)))? else {
            return Ok(Value::None);
        };
        let (momentum, mut lists) = (a.float(arg!(momentum))?, vec![a.tensors(arg!(self))?, a.tensors(arg!(grads))?]);
        if momentum != 0.0 {
            lists.push(a.tensors(arg!(momentum_buffer_list))?);
        }
        equal_lengths("_fused_sgd_", &lists)?;
        let step = Sgd {
            decay: Bitwise(a.float(arg!(weight_decay))?),
            momentum: Bitwise(momentum),
            lr: Bitwise(a.tensor(arg!(lr))?.item()?.f64()),
            dampening: Bitwise(a.float(arg!(dampening))?),
            nesterov: a.bool(arg!(nesterov))?,
            sign: Bitwise(sign),
            first: a.bool(arg!(is_first_step))?,
        };
        run(&step, &lists, &[])?;
        Ok(Value::None)
    };
    /// One step of Adam over lists of tensors, in place.
    "_fused_adam_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor|Scalar lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    FN, |a| adam("_fused_adam_", false, a);
    /// As `_fused_adam_`, with decay acting on the parameters.
    "_fused_adamw_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor|Scalar lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    FN, |a| adam("_fused_adamw_", true, a);
    /// One step of RMSprop over lists of tensors in host memory, in place.
    "_fused_rmsprop_(Tensor[] self, Tensor[] grads, Tensor[] square_avgs, Tensor[] grad_avgs, Tensor[] momentum_buffers, *, float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()",
    FN, |a| {
        let step = RmsProp {
            lr: Bitwise(a.float(arg!(lr))?),
            alpha: Bitwise(a.float(arg!(alpha))?),
            eps: Bitwise(a.float(arg!(eps))?),
            decay: Bitwise(a.float(arg!(weight_decay))?),
            momentum: Bitwise(a.float(arg!(momentum))?),
            centered: a.bool(arg!(centered))?,
            sign: Bitwise(if a.bool(arg!(maximize))? { -1.0 } else { 1.0 }),
        };
        let mut lists = vec![a.tensors(arg!(self))?, a.tensors(arg!(grads))?, a.tensors(arg!(square_avgs))?];
        if step.centered {
            lists.push(a.tensors(arg!(grad_avgs))?);
        }
        if *step.momentum > 0.0 {
            lists.push(a.tensors(arg!(momentum_buffers))?);
        }
        equal_lengths("_fused_rmsprop_", &lists)?;
        run(&step, &lists, &[])?;
        Ok(Value::None)
    };
    /// The norm of each tensor of the list, as one tensor.
    "_list_norms(Tensor[] self, float ord=2) -> Tensor", FN,
    |a| Ok(lists::norms(a.tensors(arg!(self))?, a.float(arg!(ord))?)?.into());
    /// Multiplies every tensor of the list by a number of one element, in place.
    "_list_scale_(Tensor[] self, Tensor factor) -> ()", FN,
    |a| {
        lists::scale(a.tensors(arg!(self))?, a.tensor(arg!(factor))?)?;
        Ok(Value::None)
    };
    /// Adds one number to every tensor of the list, in place.
    "_foreach_add_(Tensor[] self, Scalar scalar) -> ()", FN,
    |a| {
        add_to_each(a.tensors(arg!(self))?, a.scalar(arg!(scalar))?)?;
        Ok(Value::None)
    };
}

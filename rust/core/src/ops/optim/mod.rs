//! One step of an optimiser over lists of tensors: one pass over memory, all threads.

crate::ops::family! { ; ENTRIES }
mod gpu;
mod lists;
mod lists_gpu;

use super::pointwise::apply_;
use super::pointwise::binary::Add;
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::pool::parallel_for;
use crate::device::Device;
use crate::dispatch::{self, Overlap};
use crate::dtype::{Bitwise, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Metas, Op, Part, Rate, TensorMeta, Told};
use crate::ops::pointwise::Float;
use crate::schema::{Args, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::Hash;
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
    /// The same at another rate.
    fn rated(&self, rate: Rate) -> Self;
    /// Words that the kernels for parameters that took so many steps are told anew each time.
    fn told(&self, times: &[f64]) -> Told;
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
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let name = self.step.name();
        for (i, p) in x[..self.n].iter().enumerate() {
            ensure!(
                p.dtype().is_float(),
                NotImplemented,
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
        let mut slots: Vec<Slot> = Vec::with_capacity(self.n);
        let mut back: Vec<(&Tensor, Tensor)> = Vec::new();
        let mut copies: Vec<Tensor> = Vec::new();
        for (i, p) in x[..self.n].iter().enumerate() {
            let mut slot = Slot {
                dtype: p.dtype(),
                n: p.numel(),
                time: self.time(x, i)?,
                tensors: SmallVec::new(),
            };
            for k in 0..self.lists {
                let t = x[k * self.n + i];
                let to = (k != GRADS).then(|| &y[(k - (k > GRADS) as usize) * self.n + i]);
                let direct = t.is_contiguous()
                    && t.dtype() == p.dtype()
                    && to.is_none_or(|y| dispatch::overlap(t, y) == Overlap::Same || slot.n == 0);
                if direct {
                    slot.tensors.push(t.bytes_ptr() as usize);
                    continue;
                }
                let copy = Tensor::empty(t.shape(), p.dtype(), Device::Cpu)?;
                copy.write_from(t)?;
                slot.tensors.push(copy.bytes_ptr() as usize);
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
        self.step.launch(gpu, &self.times(x)?, self.room, lists)
    }

    fn pointwise(&self) -> bool {
        true
    }

    fn rated(&self, rate: Rate) -> Option<Arc<dyn Op>> {
        let step = self.step.rated(rate);
        Some(Arc::new(Update {
            step,
            ..self.clone()
        }))
    }

    fn tells(&self) -> bool {
        true
    }

    fn told(&self, x: &[&Tensor]) -> Result<Told> {
        Ok(self.step.told(&self.times(x)?))
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[..self.n].iter().map(|p| p.numel()).sum()
    }
}

/// Whether kernels take these tensors of one parameter.
fn launchable<'a>(x: impl Iterator<Item = &'a Tensor>) -> bool {
    x.enumerate().all(|(list, t)| {
        let type_fits = match list {
            GRADS => transfer::small_floats(&[t]),
            _ => t.dtype() == DType::F32,
        };
        type_fits && t.is_contiguous()
    })
}

/// One parameter in contiguous host memory.
struct Slot {
    dtype: DType,
    n: usize,
    time: f64,
    tensors: SmallVec<[usize; 5]>,
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
    let ptrs = slot.tensors.iter().map(|&p| (p as *mut S).wrapping_add(at));
    if S::DTYPE == T::DTYPE {
        // SAFETY: S and T are one type; elements `at..at + n` belong to this call alone.
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

/// Stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sgd {
    decay: Bitwise,
    momentum: Bitwise,
    lr: Bitwise,
    dampening: Bitwise,
    nesterov: bool,
    /// The gradient is multiplied by this: -1 to maximise, 1 / scale.
    sign: Bitwise,
    first: bool,
}

impl Step for Sgd {
    fn name(&self) -> &'static str {
        "_fused_sgd_"
    }

    fn rated(&self, rate: Rate) -> Self {
        Sgd {
            lr: Bitwise(rate.lr),
            momentum: rate.momentum.map_or(self.momentum, Bitwise),
            ..self.clone()
        }
    }

    fn told(&self, _: &[f64]) -> Told {
        [*self.lr, *self.momentum]
            .map(|v| (v as f32).to_bits())
            .into_iter()
            .collect()
    }

    #[inline(always)]
    fn update<T: Float>(&self, _: f64, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (decay, momentum, lr) = (c(*self.decay), c(*self.momentum), c(*self.lr));
        let (rest, sign) = (c(1.0 - *self.dampening), c(*self.sign));
        match x {
            [p, g] => {
                for (p, g) in p.iter_mut().zip(g.iter()) {
                    *p = *p - lr * (*g * sign + *p * decay);
                }
            }
            [p, g, b] => {
                for ((p, g), b) in p.iter_mut().zip(g.iter()).zip(b.iter_mut()) {
                    let d = *g * sign + *p * decay;
                    *b = if self.first {
                        d
                    } else {
                        *b * momentum + d * rest
                    };
                    *p = *p - lr * if self.nesterov { d + *b * momentum } else { *b };
                }
            }
            _ => {}
        }
    }

    fn launch(&self, gpu: &Gpu, times: &[f64], room: usize, x: &[&Tensor]) -> Result<bool> {
        if self.sign.abs() != 1.0 {
            return Ok(false);
        }
        transfer::ran(gpu::sgd(gpu, self, times.len(), room, x))
    }
}

/// Adam. Kingma, Ba 2014, arXiv:1412.6980.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Adam {
    lr: Bitwise,
    beta1: Bitwise,
    beta2: Bitwise,
    decay: Bitwise,
    eps: Bitwise,
    sign: Bitwise,
    /// Decay acts on the parameter, not on the gradient. Loshchilov, Hutter 2017, arXiv:1711.05101.
    decoupled: bool,
    name: &'static str,
}

impl Adam {
    /// 1 - beta^step of both averages.
    fn bias(&self, time: f64) -> (f64, f64) {
        (1.0 - self.beta1.powf(time), 1.0 - self.beta2.powf(time))
    }

    /// What a kernel needs of these: the rate by the first, the root of the second.
    fn sizes(&self, time: f64) -> [f32; 2] {
        let bias = self.bias(time);
        [(*self.lr / bias.0) as f32, bias.1.sqrt() as f32]
    }
}

impl Step for Adam {
    fn name(&self) -> &'static str {
        self.name
    }

    fn rated(&self, rate: Rate) -> Self {
        Adam {
            lr: Bitwise(rate.lr),
            beta1: rate.momentum.map_or(self.beta1, Bitwise),
            ..self.clone()
        }
    }

    fn told(&self, times: &[f64]) -> Told {
        let shared = [*self.lr as f32, (1.0 - *self.beta1) as f32];
        let own = times.iter().flat_map(|&time| self.sizes(time));
        shared.into_iter().chain(own).map(f32::to_bits).collect()
    }

    #[inline(always)]
    fn update<T: Float>(&self, time: f64, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (bias1, bias2) = self.bias(time);
        let (size, root2) = (c(*self.lr / bias1), c(bias2.sqrt()));
        let (w1, b1) = (c(1.0 - *self.beta1), c(*self.beta1));
        let (b2, w2, eps, sign) = (
            c(*self.beta2),
            c(1.0 - *self.beta2),
            c(*self.eps),
            c(*self.sign),
        );
        let (shrink, decay) = match self.decoupled {
            true => (c(1.0 - *self.lr * *self.decay), c(0.0)),
            false => (c(1.0), c(*self.decay)),
        };
        let small = 1.0 - *self.beta1 < 0.5;
        let one = |p: T, g: T, m: T, v: T| {
            let start = p * shrink;
            let d = g * sign + start * decay;
            let m = if small {
                m + w1 * (d - m)
            } else {
                d - (d - m) * b1
            };
            (start, m, v * b2 + w2 * d * d)
        };
        // All is read before anything is written: large tensors begin alike modulo pages, and Intel's
        // processors let a load wait for a store before it whose address has the same last bits.
        match x {
            [p, g, m, v] => {
                for (((p, g), m), v) in p
                    .iter_mut()
                    .zip(g.iter())
                    .zip(m.iter_mut())
                    .zip(v.iter_mut())
                {
                    let (start, mean, square) = one(*p, *g, *m, *v);
                    let new = start - size * mean / (square.sqrt() / root2 + eps);
                    (*p, *m, *v) = (new, mean, square);
                }
            }
            [p, g, m, v, top] => {
                for ((((p, g), m), v), top) in p
                    .iter_mut()
                    .zip(g.iter())
                    .zip(m.iter_mut())
                    .zip(v.iter_mut())
                    .zip(top.iter_mut())
                {
                    let (start, mean, square) = one(*p, *g, *m, *v);
                    let most = if square > *top { square } else { *top };
                    let new = start - size * mean / (most.sqrt() / root2 + eps);
                    (*p, *m, *v, *top) = (new, mean, square, most);
                }
            }
            _ => {}
        }
    }

    fn launch(&self, gpu: &Gpu, times: &[f64], room: usize, x: &[&Tensor]) -> Result<bool> {
        if self.sign.abs() != 1.0 {
            return Ok(false);
        }
        transfer::ran(gpu::adam(gpu, self, times, room, x))
    }
}

/// RMSprop. Tieleman, Hinton 2012, lecture 6.5 of "Neural networks for machine learning".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RmsProp {
    lr: Bitwise,
    alpha: Bitwise,
    eps: Bitwise,
    decay: Bitwise,
    momentum: Bitwise,
    centered: bool,
    sign: Bitwise,
}

impl Step for RmsProp {
    fn name(&self) -> &'static str {
        "_fused_rmsprop_"
    }

    fn rated(&self, rate: Rate) -> Self {
        RmsProp {
            lr: Bitwise(rate.lr),
            momentum: rate.momentum.map_or(self.momentum, Bitwise),
            ..self.clone()
        }
    }

    fn told(&self, _: &[f64]) -> Told {
        Told::new()
    }

    #[inline(always)]
    fn update<T: Float>(&self, _: f64, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (lr, a, rest, eps) = (
            c(*self.lr),
            c(*self.alpha),
            c(1.0 - *self.alpha),
            c(*self.eps),
        );
        let (decay, momentum, sign) = (c(*self.decay), c(*self.momentum), c(*self.sign));
        let [p, g, v, more @ ..] = x else { return };
        let n = p.len();
        let (g, v) = (&g[..n], &mut v[..n]);
        // The root of the running mean square, less the square of the running mean if centred.
        let root = |d: T, v: &mut T, mean: Option<&mut T>| {
            *v = *v * a + rest * d * d;
            mean.map_or(*v, |m| {
                *m = *m + rest * (d - *m);
                *v - *m * *m
            })
            .sqrt()
                + eps
        };
        match (more, self.centered) {
            ([], _) => {
                for i in 0..n {
                    let d = g[i] * sign + p[i] * decay;
                    p[i] = p[i] - lr * d / root(d, &mut v[i], None);
                }
            }
            ([mean], true) => {
                let mean = &mut mean[..n];
                for i in 0..n {
                    let d = g[i] * sign + p[i] * decay;
                    p[i] = p[i] - lr * d / root(d, &mut v[i], Some(&mut mean[i]));
                }
            }
            ([b], false) => {
                let b = &mut b[..n];
                for i in 0..n {
                    let d = g[i] * sign + p[i] * decay;
                    b[i] = b[i] * momentum + d / root(d, &mut v[i], None);
                    p[i] = p[i] - lr * b[i];
                }
            }
            ([mean, b, ..], _) => {
                let (mean, b) = (&mut mean[..n], &mut b[..n]);
                for i in 0..n {
                    let d = g[i] * sign + p[i] * decay;
                    b[i] = b[i] * momentum + d / root(d, &mut v[i], Some(&mut mean[i]));
                    p[i] = p[i] - lr * b[i];
                }
            }
        }
    }

    fn launch(&self, _: &Gpu, _: &[f64], _: usize, _: &[&Tensor]) -> Result<bool> {
        Ok(false)
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

fn adam(name: &'static str, decoupled: bool, a: &Args) -> Result<Value> {
    let Some(sign) = sign(a.bool(12)?, a.opt_tensor(13), a.opt_tensor(14))? else {
        return Ok(Value::None);
    };
    let amsgrad = a.bool(11)?;
    let steps = a.tensors(5)?;
    let mut lists = vec![a.tensors(0)?, a.tensors(1)?, a.tensors(2)?, a.tensors(3)?];
    if amsgrad {
        lists.push(a.tensors(4)?);
    }
    equal_lengths(name, &lists)?;
    equal_lengths(name, &[lists[0], steps])?;
    let step = Adam {
        lr: Bitwise(a.tensor(6)?.item()?.f64()),
        beta1: Bitwise(a.float(7)?),
        beta2: Bitwise(a.float(8)?),
        decay: Bitwise(a.float(9)?),
        eps: Bitwise(a.float(10)?),
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
        let Some(sign) = sign(a.bool(8)?, a.opt_tensor(10), a.opt_tensor(11))? else {
            return Ok(Value::None);
        };
        let (momentum, mut lists) = (a.float(4)?, vec![a.tensors(0)?, a.tensors(1)?]);
        if momentum != 0.0 {
            lists.push(a.tensors(2)?);
        }
        equal_lengths("_fused_sgd_", &lists)?;
        let step = Sgd {
            decay: Bitwise(a.float(3)?),
            momentum: Bitwise(momentum),
            lr: Bitwise(a.tensor(5)?.item()?.f64()),
            dampening: Bitwise(a.float(6)?),
            nesterov: a.bool(7)?,
            sign: Bitwise(sign),
            first: a.bool(9)?,
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
            lr: Bitwise(a.float(5)?),
            alpha: Bitwise(a.float(6)?),
            eps: Bitwise(a.float(7)?),
            decay: Bitwise(a.float(8)?),
            momentum: Bitwise(a.float(9)?),
            centered: a.bool(10)?,
            sign: Bitwise(if a.bool(11)? { -1.0 } else { 1.0 }),
        };
        let mut lists = vec![a.tensors(0)?, a.tensors(1)?, a.tensors(2)?];
        if step.centered {
            lists.push(a.tensors(3)?);
        }
        if *step.momentum > 0.0 {
            lists.push(a.tensors(4)?);
        }
        equal_lengths("_fused_rmsprop_", &lists)?;
        run(&step, &lists, &[])?;
        Ok(Value::None)
    };
    /// The norm of each tensor of the list, as one tensor.
    "_list_norms(Tensor[] self, float ord=2) -> Tensor", FN,
    |a| Ok(lists::norms(a.tensors(0)?, a.float(1)?)?.into());
    /// Multiplies every tensor of the list by a number of one element, in place.
    "_list_scale_(Tensor[] self, Tensor factor) -> ()", FN,
    |a| {
        lists::scale(a.tensors(0)?, a.tensor(1)?)?;
        Ok(Value::None)
    };
    /// Adds one number to every tensor of the list, in place.
    "_foreach_add_(Tensor[] self, Scalar scalar) -> ()", FN,
    |a| {
        add_to_each(a.tensors(0)?, a.scalar(1)?)?;
        Ok(Value::None)
    };
}

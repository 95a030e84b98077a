//! One step of an optimiser over lists of tensors: one pass over memory, all threads.

crate::ops::family! { ; ENTRIES }

use super::pointwise::apply_;
use super::pointwise::binary::Add;
use crate::autograd::mode;
use crate::cpu::elements::Element;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::kernels::{optim, View};
use crate::gpu::Gpu;
use crate::ops::pointwise::Float;
use crate::schema::{Args, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{ensure, transfer};

/// Elements that a thread updates at once.
const CHUNK: usize = 1 << 14;
/// Elements converted at once where the tensor's type is not the one computed in.
const BLOCK: usize = 256;

/// What happens to an element: `x` holds the parameter, its gradient and its state. All but the
/// gradient are written back.
trait Step: Sync {
    fn update<T: Float>(&self, tensor: usize, x: &mut [&mut [T]]);
    /// The same on the GPU, for contiguous tensors; false where there is no kernel.
    fn launch(&self, gpu: &Gpu, tensor: usize, x: &[View]) -> Result<bool>;
}

/// The tensors of one parameter, in contiguous host memory, and where they go afterwards.
struct Slot {
    /// Which parameter this is.
    index: usize,
    tensors: Vec<Tensor>,
    back: Vec<Tensor>,
}

/// Updates every parameter; `lists[0]` are the parameters, `lists[1]` their gradients.
fn run(name: &str, step: &impl Step, lists: &[&[Tensor]]) -> Result<()> {
    let mut slots = Vec::new();
    for (i, p) in lists[0].iter().enumerate() {
        ensure!(
            p.dtype().is_float(),
            NotImplemented,
            "\"{name}\" not implemented for '{}'",
            p.dtype().scalar_name()
        );
        if p.device() != Device::Cpu {
            if on_gpu(step, i, lists)? {
                continue;
            }
            transfer::count_fallback(name)?;
        }
        let mut slot = Slot {
            index: i,
            tensors: Vec::new(),
            back: Vec::new(),
        };
        for (k, list) in lists.iter().enumerate() {
            let t = &list[i];
            ensure!(
                t.shape() == p.shape(),
                Runtime,
                "{name}: tensors of one parameter must have one shape, got {} and {}",
                Show(p.shape()),
                Show(t.shape())
            );
            let direct = t.device() == Device::Cpu && t.is_contiguous() && t.dtype() == p.dtype();
            if k != 1 {
                t.check_inplace(mode::grad() && t.requires_grad())?;
            }
            if direct {
                slot.tensors.push(t.clone());
                slot.back.push(t.clone());
                continue;
            }
            let copy = Tensor::empty(t.shape(), p.dtype(), Device::Cpu)?;
            copy.write_from(t)?;
            slot.tensors.push(copy);
            slot.back.push(t.clone());
        }
        slots.push(slot);
    }
    let chunks: Vec<(usize, usize)> = slots
        .iter()
        .enumerate()
        .flat_map(|(i, s)| {
            (0..s.tensors[0].numel())
                .step_by(CHUNK)
                .map(move |at| (i, at))
        })
        .collect();
    crate::host::unlocked(|| {
        parallel_for(chunks.len(), 1, |range| {
            for &(i, at) in &chunks[range] {
                let (i, slot) = (slots[i].index, &slots[i].tensors);
                let n = CHUNK.min(slot[0].numel() - at);
                match slot[0].dtype() {
                    DType::F32 => chunk::<f32, f32>(step, i, slot, at, n),
                    DType::F64 => chunk::<f64, f64>(step, i, slot, at, n),
                    DType::F16 => chunk::<half::f16, f32>(step, i, slot, at, n),
                    _ => chunk::<half::bf16, f32>(step, i, slot, at, n),
                }
            }
        });
    });
    for slot in &slots {
        for (k, (new, old)) in slot.tensors.iter().zip(&slot.back).enumerate() {
            if k == 1 {
                continue;
            }
            if !new.same(old) {
                old.write_from(new)?;
            }
            old.bump_version();
        }
    }
    Ok(())
}

/// The step for parameter `i` where everything it needs is on the GPU.
fn on_gpu(step: &impl Step, i: usize, lists: &[&[Tensor]]) -> Result<bool> {
    let tensors: Vec<&Tensor> = lists.iter().map(|l| &l[i]).collect();
    let Device::Wgpu(index) = tensors[0].device() else {
        return Ok(false);
    };
    let fits = |t: &Tensor| {
        t.device() == tensors[0].device() && t.is_contiguous() && t.shape() == tensors[0].shape()
    };
    if !tensors.iter().all(|t| fits(t)) || !transfer::small_floats(&tensors) {
        return Ok(false);
    }
    let views = tensors.iter().map(|t| transfer::whole(t));
    let views = views.collect::<Result<Vec<_>>>()?;
    // All but the gradient are written.
    let written = || tensors[..1].iter().chain(&tensors[2..]);
    for t in written() {
        t.check_inplace(mode::grad() && t.requires_grad())?;
    }
    if !step.launch(Gpu::at(index)?, i, &views)? {
        return Ok(false);
    }
    written().for_each(|t| t.bump_version());
    Ok(true)
}

crate::per_isa! {
    fn update[P: Step, T: Float](step: &P, i: usize, x: &mut [&mut [T]]) {
        step.update(i, x)
    }
}

fn chunk<S: Element, T: Float>(step: &impl Step, i: usize, slot: &[Tensor], at: usize, n: usize) {
    let ptrs: Vec<Ptr<S>> = slot.iter().map(|t| Ptr(t.ptr::<S>())).collect();
    if S::DTYPE == T::DTYPE {
        // SAFETY: S and T are one type; elements `at..at + n` belong to this call alone.
        let mut x: Vec<&mut [T]> = ptrs
            .iter()
            .map(|p| unsafe { std::slice::from_raw_parts_mut(p.at(at).cast::<T>(), n) })
            .collect();
        return update(step, i, &mut x);
    }
    let mut buffers = vec![[T::default(); BLOCK]; slot.len()];
    for first in (at..at + n).step_by(BLOCK) {
        let len = BLOCK.min(at + n - first);
        for (p, b) in ptrs.iter().zip(&mut buffers) {
            for (j, v) in b[..len].iter_mut().enumerate() {
                // SAFETY: the element lies in the tensor.
                *v = T::from_element(unsafe { *p.at(first + j) });
            }
        }
        let mut x: Vec<&mut [T]> = buffers.iter_mut().map(|b| &mut b[..len]).collect();
        update(step, i, &mut x);
        for (k, (p, b)) in ptrs.iter().zip(&buffers).enumerate() {
            if k == 1 {
                continue;
            }
            for (j, v) in b[..len].iter().enumerate() {
                // SAFETY: elements `at..at + n` belong to this call alone.
                unsafe { *p.at(first + j) = v.to_element() };
            }
        }
    }
}

/// Stochastic gradient descent.
struct Sgd {
    decay: f64,
    momentum: f64,
    lr: f64,
    dampening: f64,
    nesterov: bool,
    /// The gradient is multiplied by this: -1 to maximise, 1 / scale.
    sign: f64,
    first: bool,
}

impl Step for Sgd {
    #[inline(always)]
    fn update<T: Float>(&self, _: usize, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (decay, momentum, lr) = (c(self.decay), c(self.momentum), c(self.lr));
        let (rest, sign) = (c(1.0 - self.dampening), c(self.sign));
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

    fn launch(&self, gpu: &Gpu, _: usize, x: &[View]) -> Result<bool> {
        if self.sign.abs() != 1.0 {
            return Ok(false);
        }
        let sgd = optim::Sgd {
            lr: self.lr,
            weight_decay: self.decay,
            momentum: self.momentum,
            dampening: self.dampening,
            nesterov: self.nesterov,
            maximize: self.sign < 0.0,
        };
        let momentum = x.get(2).map(|b| (*b, self.first));
        transfer::ran(optim::sgd(gpu, &sgd, x[0], x[1], momentum))
    }
}

/// Adam. Kingma, Ba 2014, arXiv:1412.6980.
struct Adam {
    lr: f64,
    beta1: f64,
    beta2: f64,
    decay: f64,
    eps: f64,
    sign: f64,
    /// Decay acts on the parameter, not on the gradient. Loshchilov, Hutter 2017, arXiv:1711.05101.
    decoupled: bool,
    /// 1 - beta^step of both averages, for each parameter.
    bias: Vec<(f64, f64)>,
}

impl Step for Adam {
    #[inline(always)]
    fn update<T: Float>(&self, i: usize, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (bias1, bias2) = self.bias[i];
        let (size, root2) = (c(self.lr / bias1), c(bias2.sqrt()));
        let (w1, b1) = (c(1.0 - self.beta1), c(self.beta1));
        let (b2, w2, eps, sign) = (
            c(self.beta2),
            c(1.0 - self.beta2),
            c(self.eps),
            c(self.sign),
        );
        let (shrink, decay) = match self.decoupled {
            true => (c(1.0 - self.lr * self.decay), c(0.0)),
            false => (c(1.0), c(self.decay)),
        };
        let small = 1.0 - self.beta1 < 0.5;
        let one = |p: &mut T, g: T, m: &mut T, v: &mut T| {
            let start = *p * shrink;
            let d = g * sign + start * decay;
            *m = if small {
                *m + w1 * (d - *m)
            } else {
                d - (d - *m) * b1
            };
            *v = *v * b2 + w2 * d * d;
            start
        };
        match x {
            [p, g, m, v] => {
                for (((p, g), m), v) in p
                    .iter_mut()
                    .zip(g.iter())
                    .zip(m.iter_mut())
                    .zip(v.iter_mut())
                {
                    let start = one(p, *g, m, v);
                    *p = start - size * *m / (v.sqrt() / root2 + eps);
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
                    let start = one(p, *g, m, v);
                    if *v > *top {
                        *top = *v;
                    }
                    *p = start - size * *m / (top.sqrt() / root2 + eps);
                }
            }
            _ => {}
        }
    }

    fn launch(&self, gpu: &Gpu, i: usize, x: &[View]) -> Result<bool> {
        if self.sign.abs() != 1.0 {
            return Ok(false);
        }
        let adam = optim::Adam {
            lr: self.lr,
            betas: (self.beta1, self.beta2),
            eps: self.eps,
            weight_decay: self.decay,
            decoupled: self.decoupled,
            maximize: self.sign < 0.0,
        };
        let moments = [x[2], x[3]];
        let top = x.get(4).copied();
        transfer::ran(optim::adam(
            gpu,
            &adam,
            self.bias[i],
            x[0],
            x[1],
            moments,
            top,
        ))
    }
}

/// RMSprop. Tieleman, Hinton 2012, lecture 6.5 of "Neural networks for machine learning".
struct RmsProp {
    lr: f64,
    alpha: f64,
    eps: f64,
    decay: f64,
    momentum: f64,
    centered: bool,
    sign: f64,
}

impl Step for RmsProp {
    #[inline(always)]
    fn update<T: Float>(&self, _: usize, x: &mut [&mut [T]]) {
        let c = T::of_f64;
        let (lr, a, rest, eps) = (c(self.lr), c(self.alpha), c(1.0 - self.alpha), c(self.eps));
        let (decay, momentum, sign) = (c(self.decay), c(self.momentum), c(self.sign));
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

    fn launch(&self, _: &Gpu, _: usize, _: &[View]) -> Result<bool> {
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

fn adam(name: &str, decoupled: bool, a: &Args) -> Result<Value> {
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
    let (beta1, beta2) = (a.float(7)?, a.float(8)?);
    let mut bias = Vec::new();
    for s in steps {
        let s = s.item()?.f64();
        bias.push((1.0 - beta1.powf(s), 1.0 - beta2.powf(s)));
    }
    let step = Adam {
        lr: a.tensor(6)?.item()?.f64(),
        beta1,
        beta2,
        decay: a.float(9)?,
        eps: a.float(10)?,
        sign,
        decoupled,
        bias,
    };
    run(name, &step, &lists)?;
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
            decay: a.float(3)?,
            momentum,
            lr: a.tensor(5)?.item()?.f64(),
            dampening: a.float(6)?,
            nesterov: a.bool(7)?,
            sign,
            first: a.bool(9)?,
        };
        run("_fused_sgd_", &step, &lists)?;
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
            lr: a.float(5)?,
            alpha: a.float(6)?,
            eps: a.float(7)?,
            decay: a.float(8)?,
            momentum: a.float(9)?,
            centered: a.bool(10)?,
            sign: if a.bool(11)? { -1.0 } else { 1.0 },
        };
        let mut lists = vec![a.tensors(0)?, a.tensors(1)?, a.tensors(2)?];
        if step.centered {
            lists.push(a.tensors(3)?);
        }
        if step.momentum > 0.0 {
            lists.push(a.tensors(4)?);
        }
        equal_lengths("_fused_rmsprop_", &lists)?;
        run("_fused_rmsprop_", &step, &lists)?;
        Ok(Value::None)
    };
    /// Adds one number to every tensor of the list, in place.
    "_foreach_add_(Tensor[] self, Scalar scalar) -> ()", FN,
    |a| {
        add_to_each(a.tensors(0)?, a.scalar(1)?)?;
        Ok(Value::None)
    };
}

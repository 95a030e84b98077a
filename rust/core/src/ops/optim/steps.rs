//! The update of one element by each optimizer.

use super::{gpu, Step};
use crate::dtype::Bitwise;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::op::ReplayArgs;
use crate::ops::pointwise::Float;
use crate::tensor::Tensor;
use crate::transfer;

/// Stochastic gradient descent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sgd {
    pub(super) decay: Bitwise,
    pub(super) momentum: Bitwise,
    pub(super) lr: Bitwise,
    pub(super) dampening: Bitwise,
    pub(super) nesterov: bool,
    /// The gradient is multiplied by this: -1 to maximise, 1 / scale.
    pub(super) sign: Bitwise,
    pub(super) first: bool,
}

impl Step for Sgd {
    fn name(&self) -> &'static str {
        "_fused_sgd_"
    }

    fn without_args(&self) -> Self {
        Sgd {
            lr: Bitwise(0.0),
            momentum: Bitwise(0.0),
            ..self.clone()
        }
    }

    fn replay_args(&self, _: &[f64]) -> ReplayArgs {
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
pub(super) struct Adam {
    pub(super) lr: Bitwise,
    pub(super) beta1: Bitwise,
    pub(super) beta2: Bitwise,
    pub(super) decay: Bitwise,
    pub(super) eps: Bitwise,
    pub(super) sign: Bitwise,
    /// Decay acts on the parameter, not on the gradient. Loshchilov, Hutter 2017, arXiv:1711.05101.
    pub(super) decoupled: bool,
    pub(super) name: &'static str,
}

impl Adam {
    /// 1 - beta^step of both averages.
    fn bias(&self, time: f64) -> (f64, f64) {
        (1.0 - self.beta1.powf(time), 1.0 - self.beta2.powf(time))
    }

    /// What a kernel needs of these: the rate by the first, the root of the second.
    pub(super) fn sizes(&self, time: f64) -> [f32; 2] {
        let bias = self.bias(time);
        [(*self.lr / bias.0) as f32, bias.1.sqrt() as f32]
    }
}

impl Step for Adam {
    fn name(&self) -> &'static str {
        self.name
    }

    fn without_args(&self) -> Self {
        Adam {
            lr: Bitwise(0.0),
            beta1: Bitwise(0.0),
            ..self.clone()
        }
    }

    fn replay_args(&self, times: &[f64]) -> ReplayArgs {
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
pub(super) struct RmsProp {
    pub(super) lr: Bitwise,
    pub(super) alpha: Bitwise,
    pub(super) eps: Bitwise,
    pub(super) decay: Bitwise,
    pub(super) momentum: Bitwise,
    pub(super) centered: bool,
    pub(super) sign: Bitwise,
}

impl Step for RmsProp {
    fn name(&self) -> &'static str {
        "_fused_rmsprop_"
    }

    fn without_args(&self) -> Self {
        self.clone()
    }

    fn replay_args(&self, _: &[f64]) -> ReplayArgs {
        ReplayArgs::new()
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

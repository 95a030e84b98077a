//! Losses of class scores: negative log-likelihood, cross entropy, and the margin losses.

use super::loss::{reduced, MEAN, NONE};
use super::pointwise::compare::{Eq, Gt};
use super::pointwise::ternary::where_;
use super::pointwise::unary::Exp;
use super::pointwise::{apply, Real};
use crate::autograd::{mode, Vjp};
use crate::cpu::elements::{Compute, Element};
use crate::cpu::pool::parallel_for;
use crate::cpu::{level, Level};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::kernels::loss as launch;
use crate::gpu::kernels::softmax::{softmax, softmax_backward, Span};
use crate::gpu::Gpu;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;

/// A float that kernels here compute in.
trait Float: Real + Compute {}
impl<T: Real + Compute> Float for T {}

/// Runs the body with `$T` bound to `f64` for float64 and to `f32` for the others.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F64 => {
                type $T = f64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}

/// Compiles a function of slices for each instruction set and calls the best one.
macro_rules! leveled {
    ($(#[$doc:meta])* fn $name:ident<$R:ident>($($arg:ident: $t:ty),*) $body:block) => {
        $(#[$doc])*
        fn $name<$R: Float>($($arg: $t),*) {
            #[inline(always)]
            fn plain<$R: Float>($($arg: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                // SAFETY: nothing but the instructions is asked for.
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2<$R: Float>($($arg: $t),*) { plain::<$R>($($arg),*) }
                // SAFETY: nothing but the instructions is asked for.
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512<$R: Float>($($arg: $t),*) { plain::<$R>($($arg),*) }
                match level() {
                    // SAFETY: the machine has the instructions.
                    Level::Avx512 => return unsafe { avx512::<$R>($($arg),*) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2::<$R>($($arg),*) },
                    Level::Portable => {}
                }
            }
            plain::<$R>($($arg),*)
        }
    };
}

/// Scores of `n` samples for `c` classes at `d` places: the class is the second dimension, or
/// the only one.
#[derive(Clone, Copy)]
struct Extent {
    n: usize,
    c: usize,
    d: usize,
}

impl Extent {
    fn of(shape: &[usize]) -> Extent {
        match shape {
            [c] => Extent { n: 1, c: *c, d: 1 },
            [n, c, rest @ ..] => Extent {
                n: *n,
                c: *c,
                d: rest.iter().product(),
            },
            [] => Extent { n: 1, c: 1, d: 1 },
        }
    }
    /// The dimension of classes, as GPU kernels take it.
    fn span(&self) -> Span {
        Span {
            outer: self.n,
            length: self.c,
            inner: self.d,
        }
    }
    /// Where in the scores class `t` of place `i` lies.
    fn at(&self, i: usize, t: usize) -> usize {
        (i / self.d * self.c + t) * self.d + i % self.d
    }
}

/// The shape without the dimension of classes.
fn places(shape: &[usize]) -> Dims {
    let axis = (shape.len() > 1) as usize;
    shape
        .iter()
        .enumerate()
        .filter(|&(i, _)| i != axis)
        .map(|(_, &d)| d)
        .collect()
}

fn check_target(t: i64, classes: usize) -> Result<usize> {
    match usize::try_from(t) {
        Ok(i) if i < classes => Ok(i),
        _ => Err(Error::index(format!("Target {t} is out of bounds."))),
    }
}

/// Class weights in the kernels' type; ones where there are none.
fn class_weights<T: Compute>(w: Option<&&Tensor>, classes: usize) -> Result<Vec<T>> {
    match w {
        None => Ok(vec![T::of_f64(1.0); classes]),
        Some(w) => {
            let w = w.prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            Ok(unsafe { w.slice::<T>() }.to_vec())
        }
    }
}

/// The class of each place, `None` where it is ignored.
fn classes(target: &Tensor, c: usize, ignore: i64) -> Result<Vec<Option<usize>>> {
    let target = target.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let t = unsafe { target.slice::<i64>() };
    t.iter()
        .map(|&t| {
            if t == ignore {
                Ok(None)
            } else {
                check_target(t, c).map(Some)
            }
        })
        .collect()
}

fn write_scalar(y: &Tensor, v: f64) -> Result<()> {
    y.write_scalar(Scalar::Float(v))
}

/// Minus the score of the target class times its weight. Inputs: scores, target, weights if any.
/// Results: the loss and the sum of the weights.
#[derive(Clone, Debug)]
struct Nll {
    reduction: i64,
    ignore: i64,
}

impl Derivative for Nll {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save {
            inputs: 0b110,
            outputs: 0b10,
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 3);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        let (target, total) = (cx.input(1)?, cx.output(1)?);
        let weight = cx.input(2).ok();
        let shape = cx.input_meta(0)?.shape.clone();
        out[0] = Some(nll_gradient(
            self,
            &shape,
            g,
            &target,
            &total,
            weight.as_ref(),
        )?);
        Ok(out)
    }
}

fn nll_gradient(
    op: &Nll,
    shape: &[usize],
    g: &Tensor,
    target: &Tensor,
    total: &Tensor,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let op = NllGrad {
        of: op.clone(),
        shape: Dims::from_slice(shape),
    };
    let mut x: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(&[g, target, total]);
    x.extend(weight);
    dispatch::call1(op, &x)
}

impl Op for Nll {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let shape = if self.reduction == NONE {
            x[1].shape().clone()
        } else {
            Dims::new()
        };
        let (dtype, device) = (x[0].dtype(), x[0].device());
        let total = TensorMeta {
            shape: Dims::new(),
            dtype,
            device,
        };
        Ok(SmallVec::from_vec(vec![
            TensorMeta {
                shape,
                dtype,
                device,
            },
            total,
        ]))
    }
    fn detached_outputs(&self) -> Mask {
        0b10
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        let target = classes(x[1], e.c, self.ignore)?;
        with_real!(x[0].dtype(), T => {
            let scores = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let s = unsafe { scores.slice::<T>() };
            let w = class_weights::<T>(x.get(2), e.c)?;
            let mut each = vec![T::default(); if self.reduction == NONE { target.len() } else { 0 }];
            let (mut loss, mut total) = (0.0f64, 0.0f64);
            for (i, t) in target.iter().enumerate() {
                let Some(t) = *t else { continue };
                let l = -(s[e.at(i, t)] * w[t]);
                total += Element::to_f64(w[t]);
                if self.reduction == NONE {
                    each[i] = l;
                } else {
                    loss += Element::to_f64(l);
                }
            }
            finish(self.reduction, each, loss, total, y)
        })
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[0], x[1]) {
            return Ok(false);
        }
        let e = Extent::of(x[0].shape());
        let weight = x.get(2).map(|w| transfer::dense(w)).transpose()?;
        let (scores, target) = (transfer::dense(x[0])?, transfer::dense(x[1])?);
        self.launch(e, &scores, &target, weight.as_ref(), y)
    }
}

/// Whether GPU kernels take these scores and targets.
fn launchable(scores: &Tensor, target: &Tensor) -> bool {
    transfer::small_floats(&[scores]) && matches!(target.dtype(), DType::I64 | DType::I32)
}

impl Nll {
    /// Loss and sum of weights from log-probabilities, on the GPU.
    fn launch(
        &self,
        e: Extent,
        scores: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        y: &[Tensor],
    ) -> Result<bool> {
        let device = scores.device();
        let each = Tensor::empty(&[target.numel()], DType::F32, device)?;
        let weights = Tensor::empty(&[target.numel()], DType::F32, device)?;
        let done = transfer::ran(launch::nll(
            Gpu::get()?,
            e.span(),
            transfer::whole(scores)?,
            transfer::whole(target)?,
            weight.map(transfer::whole).transpose()?,
            self.ignore,
            transfer::whole(&each)?,
            transfer::whole(&weights)?,
        ))?;
        if !done {
            return Ok(false);
        }
        let total = weights.sum_all()?;
        y[1].write_from(&total)?;
        y[0].write_from(&match self.reduction {
            NONE => each.reshape_to(y[0].shape())?,
            MEAN => each.sum_all()?.div(&total)?,
            _ => each.sum_all()?,
        })?;
        Ok(true)
    }

    /// The gradient of the log-probabilities, on the GPU.
    fn launch_backward(
        &self,
        e: Extent,
        g: &Tensor,
        target: &Tensor,
        total: &Tensor,
        weight: Option<&&Tensor>,
        d: &Tensor,
    ) -> Result<bool> {
        let (g, target) = (transfer::dense(g)?, transfer::dense(target)?);
        let weight = weight.map(|w| transfer::dense(w)).transpose()?;
        let total = match self.reduction {
            MEAN => Some(transfer::dense(&total.to_dtype(DType::F32)?)?),
            _ => None,
        };
        transfer::ran(launch::nll_backward(
            Gpu::get()?,
            e.span(),
            transfer::whole(&g)?,
            transfer::whole(&target)?,
            weight.as_ref().map(transfer::whole).transpose()?,
            self.ignore,
            total.as_ref().map(transfer::whole).transpose()?,
            transfer::whole(d)?,
        ))
    }
}

/// Writes a loss and the sum of its weights.
fn finish<T: Compute>(
    reduction: i64,
    each: Vec<T>,
    loss: f64,
    total: f64,
    y: &[Tensor],
) -> Result<()> {
    match reduction {
        NONE => y[0].write_from(&Tensor::from_slice(&each, y[0].shape(), T::DTYPE)?)?,
        MEAN => write_scalar(&y[0], loss / total)?,
        _ => write_scalar(&y[0], loss)?,
    }
    write_scalar(&y[1], total)
}

/// The gradient of [`Nll`]. Inputs: `g`, target, sum of weights, weights if any.
#[derive(Clone, Debug)]
struct NllGrad {
    of: Nll,
    shape: Dims,
}

impl Derivative for NllGrad {
    fn name(&self) -> &'static str {
        "NllLossBackwardBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs(0b1110)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 4);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        // The gradient is linear in `g`: its adjoint is the loss itself.
        let (target, total) = (cx.input(1)?, cx.input(2)?);
        let weight = cx.input(3).ok();
        let reduction = if self.of.reduction == NONE {
            NONE
        } else {
            super::loss::SUM
        };
        let mut x: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[g, &target]);
        x.extend(weight.as_ref());
        let y = dispatch::call(
            Nll {
                reduction,
                ..self.of
            },
            &x,
        )?
        .swap_remove(0);
        out[0] = Some(if self.of.reduction == MEAN {
            y.div(&total)?
        } else {
            y
        });
        Ok(out)
    }
}

impl Op for NllGrad {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let meta = TensorMeta::new(&self.shape, x[0].dtype(), x[0].device());
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(&self.shape);
        let target = classes(x[1], e.c, self.of.ignore)?;
        with_real!(x[0].dtype(), T => {
            let g = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let g = unsafe { g.slice::<T>() };
            let w = class_weights::<T>(x.get(3), e.c)?;
            let scale = match self.of.reduction {
                MEAN => T::of_f64(1.0) / T::of_f64(x[2].item()?.f64()),
                _ => T::of_f64(1.0),
            };
            let out = Tensor::zeros(&self.shape, T::DTYPE, x[0].device())?;
            // SAFETY: fresh contiguous memory of this type.
            let d = unsafe { out.slice_mut::<T>() };
            for (i, t) in target.iter().enumerate() {
                if let Some(t) = *t {
                    let g = if g.len() == 1 { g[0] } else { g[i] };
                    d[e.at(i, t)] = -(g * scale * w[t]);
                }
            }
            y[0].write_from(&out)
        })
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[0], x[1]) {
            return Ok(false);
        }
        let e = Extent::of(&self.shape);
        self.of
            .launch_backward(e, x[0], x[1], x[2], x.get(3), &y[0])
    }
}

/// log of the sum of exponentials along the classes.
#[derive(Clone, Debug)]
struct LogSumExp;

impl Derivative for LogSumExp {
    fn name(&self) -> &'static str {
        "LogsumexpBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save {
            inputs: 1,
            outputs: 1,
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let p = apply(Exp, [&cx.input(0)?.sub(&cx.output(0)?)?])?;
        Ok(SmallVec::from_elem(Some(p.mul(g)?), 1))
    }
}

impl Op for LogSumExp {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let mut meta = TensorMeta::of(x[0]);
        let axis = (x[0].ndim() > 1) as usize;
        meta.shape[axis] = 1;
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        with_real!(x[0].dtype(), T => {
            let x = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let lse = all_lse(unsafe { x.slice::<T>() }, e);
            y[0].write_from(&Tensor::from_slice(&lse, y[0].shape(), T::DTYPE)?)
        })
    }
}

leveled! {
    /// log-sum-exp over the rows of `x`, which are `y.len()` wide.
    fn lse_rows<R>(x: &[R], y: &mut [R], peak: &mut [R]) {
        let d = y.len();
        if d == 1 {
            let mut lanes = [R::lit(f64::NEG_INFINITY); 16];
            for block in x.chunks(16) {
                for (l, &v) in lanes.iter_mut().zip(block) {
                    *l = l.max(v);
                }
            }
            let top = lanes.iter().fold(lanes[0], |m, &v| m.max(v));
            let mut sums = [R::lit(0.0); 16];
            for block in x.chunks(16) {
                for (s, &v) in sums.iter_mut().zip(block) {
                    *s = *s + (v - top).exp();
                }
            }
            let total = sums.iter().fold(R::lit(0.0), |a, &b| a + b);
            y[0] = top + total.ln();
            return;
        }
        peak.fill(R::lit(f64::NEG_INFINITY));
        for row in x.chunks(d) {
            for (m, &v) in peak.iter_mut().zip(row) {
                *m = m.max(v);
            }
        }
        y.fill(R::lit(0.0));
        for row in x.chunks(d) {
            for ((s, &m), &v) in y.iter_mut().zip(&*peak).zip(row) {
                *s = *s + (v - m).exp();
            }
        }
        for (s, &m) in y.iter_mut().zip(&*peak) {
            *s = m + s.ln();
        }
    }
}

fn all_lse<T: Float>(x: &[T], e: Extent) -> Vec<T> {
    let mut lse = vec![T::lit(f64::NEG_INFINITY); e.n * e.d];
    let to = lse.as_mut_ptr() as usize;
    let step = e.c * e.d;
    if step == 0 {
        return lse;
    }
    parallel_for(e.n, (1 << 13) / step + 1, |range| {
        let mut peak = vec![T::lit(0.0); e.d];
        for n in range {
            // SAFETY: sample `n` has its own part of the result.
            let y = unsafe { std::slice::from_raw_parts_mut((to as *mut T).add(n * e.d), e.d) };
            lse_rows(&x[n * step..(n + 1) * step], y, &mut peak);
        }
    });
    lse
}

/// Cross entropy with class indices, from scores to the loss in one pass over them. Inputs:
/// scores, target, weights if any. Results: the loss, the sum of weights, the log-sum-exps.
#[derive(Clone, Debug)]
struct CrossEntropy {
    reduction: i64,
    ignore: i64,
    smoothing: f64,
}

impl Derivative for CrossEntropy {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save {
            inputs: 0b111,
            outputs: 0b110,
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 3);
        let Some(g) = &g[0] else { return Ok(out) };
        if !cx.needs(0) {
            return Ok(out);
        }
        let (x, target, weight) = (cx.input(0)?, cx.input(1)?, cx.input(2).ok());
        let total = cx.output(1)?;
        if mode::grad() {
            out[0] = Some(self.recorded(g, &x, &target, weight.as_ref(), &total)?);
            return Ok(out);
        }
        let lse = cx.output(2)?;
        let mut inputs: SmallVec<[&Tensor; 6]> =
            SmallVec::from_slice(&[g, &x, &target, &total, &lse]);
        inputs.extend(weight.as_ref());
        let d = dispatch::compute(&CrossEntropyGrad { of: self.clone() }, &inputs)?;
        out[0] = d.into_iter().next();
        Ok(out)
    }
}

impl CrossEntropy {
    fn nll(&self) -> Nll {
        Nll {
            reduction: self.reduction,
            ignore: self.ignore,
        }
    }

    /// The gradient as a graph: `b - softmax(x) sum(b)` for the gradient `b` of the
    /// log-probabilities.
    fn recorded(
        &self,
        g: &Tensor,
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        total: &Tensor,
    ) -> Result<Tensor> {
        let nll = Nll {
            reduction: self.reduction,
            ignore: self.ignore,
        };
        let mut b = nll_gradient(&nll, x.shape(), g, target, total, weight)?;
        let axis = (x.ndim() > 1) as usize;
        if self.smoothing > 0.0 {
            let e = Extent::of(x.shape());
            let g = if self.reduction == MEAN {
                g.div(total)?
            } else {
                g.clone()
            };
            let skip = apply(Eq, [target, &Tensor::number(self.ignore.into())?])?;
            let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
            let mut shape = target.shape().clone();
            let g = where_(&skip, &zero, &g.expand_to(&shape)?)?;
            shape.insert(axis.min(shape.len()), 1);
            let mut each = g.reshape_to(&shape)?.expand_to(x.shape())?;
            if let Some(w) = weight {
                let mut shape = Dims::from_elem(1, x.ndim());
                shape[axis] = e.c;
                each = each.mul(&w.reshape_to(&shape)?)?;
            }
            let uniform = each.mul_scalar(-self.smoothing / e.c as f64)?;
            b = b.mul_scalar(1.0 - self.smoothing)?.add(&uniform)?;
        }
        let p = apply(Exp, [&x.sub(&dispatch::call1(LogSumExp, &[x])?)?])?;
        b.sub(&p.mul(&sum_classes(&b, true)?)?)
    }
}

fn sum_classes(x: &Tensor, keepdim: bool) -> Result<Tensor> {
    let axis = (x.ndim() > 1) as usize;
    let mask: SmallVec<[bool; 5]> = (0..x.ndim()).map(|d| d == axis).collect();
    x.sum_mask(&mask, keepdim, None)
}

impl Op for CrossEntropy {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let (dtype, device) = (x[0].dtype(), x[0].device());
        let shape = if self.reduction == NONE {
            x[1].shape().clone()
        } else {
            Dims::new()
        };
        let wide = if dtype.is_half() { DType::F32 } else { dtype };
        Ok(SmallVec::from_vec(vec![
            TensorMeta {
                shape,
                dtype,
                device,
            },
            TensorMeta {
                shape: Dims::new(),
                dtype,
                device,
            },
            TensorMeta {
                shape: x[1].shape().clone(),
                dtype: wide,
                device,
            },
        ]))
    }
    fn detached_outputs(&self) -> Mask {
        0b110
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[0].shape());
        let target = classes(x[1], e.c, self.ignore)?;
        with_real!(x[0].dtype(), T => {
            let scores = x[0].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let s = unsafe { scores.slice::<T>() };
            let w = class_weights::<T>(x.get(2), e.c)?;
            let lse = all_lse(s, e);
            let smooth = T::of_f64(self.smoothing / e.c.max(1) as f64);
            let rest = T::of_f64(1.0 - self.smoothing);
            let mut each = vec![T::default(); if self.reduction == NONE { target.len() } else { 0 }];
            let (mut loss, mut total) = (0.0f64, 0.0f64);
            for (i, t) in target.iter().enumerate() {
                let Some(t) = *t else { continue };
                let mut l = w[t] * (lse[i] - s[e.at(i, t)]);
                if self.smoothing > 0.0 {
                    let sum = (0..e.c)
                        .fold(T::default(), |a, c| a + w[c] * (lse[i] - s[e.at(i, c)]));
                    l = rest * l + smooth * sum;
                }
                total += Element::to_f64(w[t]);
                if self.reduction == NONE {
                    each[i] = l;
                } else {
                    loss += Element::to_f64(l);
                }
            }
            finish(self.reduction, each, loss, total, y)?;
            y[2].write_from(&Tensor::from_slice(&lse, y[2].shape(), T::DTYPE)?)
        })
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[0], x[1]) || self.smoothing > 0.0 {
            return Ok(false);
        }
        let (e, scores, target) = (
            Extent::of(x[0].shape()),
            transfer::dense(x[0])?,
            transfer::dense(x[1])?,
        );
        let weight = x.get(2).map(|w| transfer::dense(w)).transpose()?;
        let logs = Tensor::empty(x[0].shape(), DType::F32, x[0].device())?;
        let (from, to) = (transfer::whole(&scores)?, transfer::whole(&logs)?);
        if !transfer::ran(softmax(Gpu::get()?, true, e.span(), from, to))? {
            return Ok(false);
        }
        // The sum of exponentials follows from any class.
        let axis = (x[0].ndim() > 1) as i64;
        let first = |t: &Tensor| t.layout().select(axis, 0).map(|l| t.alias(l));
        if x[0].numel() > 0 {
            y[2].write_from(&first(&scores)?.sub(&first(&logs)?)?)?;
        }
        self.nll().launch(e, &logs, &target, weight.as_ref(), y)
    }
}

/// The gradient of [`CrossEntropy`], fused. Inputs: `g`, scores, target, sum of weights,
/// log-sum-exps, weights if any.
#[derive(Clone, Debug)]
struct CrossEntropyGrad {
    of: CrossEntropy,
}

impl Derivative for CrossEntropyGrad {
    fn name(&self) -> &'static str {
        "NllLossBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "cross_entropy: the fused gradient is never recorded"
        )
    }
}

leveled! {
    /// `k` times the softmax, by rows; `k` and `lse` are one row wide.
    fn softmax_rows<R>(x: &[R], lse: &[R], k: &[R], y: &mut [R]) {
        let d = lse.len();
        if d == 1 {
            let (lse, k) = (lse[0], k[0]);
            for (y, &v) in y.iter_mut().zip(x) {
                *y = k * (v - lse).exp();
            }
            return;
        }
        for (row, x) in y.chunks_mut(d).zip(x.chunks(d)) {
            for (i, y) in row.iter_mut().enumerate() {
                *y = k[i] * (x[i] - lse[i]).exp();
            }
        }
    }
}

impl Op for CrossEntropyGrad {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[1]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let e = Extent::of(x[1].shape());
        if x[1].numel() == 0 {
            return Ok(());
        }
        let target = classes(x[2], e.c, self.of.ignore)?;
        with_real!(x[1].dtype(), T => {
            let (g, scores) = (x[0].prepared(T::DTYPE)?, x[1].prepared(T::DTYPE)?);
            let lse = x[4].prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            let (g, s, lse) =
                unsafe { (g.slice::<T>(), scores.slice::<T>(), lse.slice::<T>()) };
            let w = class_weights::<T>(x.get(5), e.c)?;
            let scale = match self.of.reduction {
                MEAN => T::of_f64(1.0) / T::of_f64(x[3].item()?.f64()),
                _ => T::of_f64(1.0),
            };
            let smooth = T::of_f64(self.of.smoothing / e.c as f64);
            let rest = T::of_f64(1.0 - self.of.smoothing);
            let weights = w.iter().fold(T::default(), |a, &b| a + b);
            let direct = y[0].dtype() == T::DTYPE;
            let out = match direct {
                true => y[0].clone(),
                false => Tensor::empty(y[0].shape(), T::DTYPE, y[0].device())?,
            };
            let (to, step) = (out.ptr::<T>() as usize, e.c * e.d);
            parallel_for(e.n, (1 << 13) / step + 1, |range| {
                let mut k = vec![T::default(); e.d];
                for n in range {
                    // SAFETY: sample `n` has its own part of the result.
                    let y = unsafe {
                        std::slice::from_raw_parts_mut((to as *mut T).add(n * step), step)
                    };
                    let at = |d: usize| if g.len() == 1 { g[0] } else { g[n * e.d + d] } * scale;
                    for d in 0..e.d {
                        k[d] = match target[n * e.d + d] {
                            Some(t) => at(d) * (rest * w[t] + smooth * weights),
                            None => T::default(),
                        };
                    }
                    let rows = n * e.d..(n + 1) * e.d;
                    softmax_rows(&s[n * step..(n + 1) * step], &lse[rows], &k, y);
                    for d in 0..e.d {
                        let Some(t) = target[n * e.d + d] else {
                            // An ignored place has no gradient, whatever its scores.
                            (0..e.c).for_each(|c| y[c * e.d + d] = T::default());
                            continue;
                        };
                        y[t * e.d + d] -= at(d) * rest * w[t];
                        if self.of.smoothing > 0.0 {
                            for c in 0..e.c {
                                y[c * e.d + d] -= at(d) * smooth * w[c];
                            }
                        }
                    }
                }
            });
            if direct { Ok(()) } else { y[0].write_from(&out) }
        })
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !launchable(x[1], x[2]) || self.of.smoothing > 0.0 {
            return Ok(false);
        }
        let (gpu, e) = (Gpu::get()?, Extent::of(x[1].shape()));
        let scores = transfer::dense(x[1])?;
        let logs = Tensor::empty(x[1].shape(), DType::F32, x[1].device())?;
        let d = Tensor::empty(x[1].shape(), DType::F32, x[1].device())?;
        let to = transfer::whole(&logs)?;
        let done = transfer::ran(softmax(gpu, true, e.span(), transfer::whole(&scores)?, to))?
            && self
                .of
                .nll()
                .launch_backward(e, x[0], x[2], x[3], x.get(5), &d)?;
        if !done {
            return Ok(false);
        }
        let (logs, d) = (transfer::whole(&logs)?, transfer::whole(&d)?);
        let y = transfer::whole(&y[0])?;
        transfer::ran(softmax_backward(gpu, true, e.span(), logs, d, y))
    }
}

fn check_weight(weight: Option<&Tensor>, x: &Tensor) -> Result<()> {
    let classes = Extent::of(x.shape()).c;
    if let Some(w) = weight {
        ensure!(
            w.ndim() == 1 && w.numel() == classes,
            Runtime,
            "weight tensor should be defined either for all {classes} classes or no classes but \
             got weight tensor of shape: {}",
            Show(w.shape())
        );
        ensure!(
            w.dtype() == x.dtype(),
            Runtime,
            "expected scalar type {} but found {}",
            x.dtype().scalar_name(),
            w.dtype().scalar_name()
        );
    }
    Ok(())
}

/// Checks scores and class indices of the negative log-likelihood.
fn check_classes(name: &str, x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    ensure!(
        x.ndim() >= 1,
        Value,
        "Expected 1 or more dimensions (got {}) for the input of {name}",
        x.ndim()
    );
    ensure!(
        x.ndim() == 1 || target.ndim() == 0 || x.size(0) == target.size(0),
        Value,
        "Expected input batch_size ({}) to match target batch_size ({}).",
        x.size(0),
        target.size(0)
    );
    ensure!(
        x.dtype().is_float(),
        NotImplemented,
        "\"{name}_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        matches!(target.dtype(), DType::I64 | DType::U8),
        Runtime,
        "expected scalar type Long but found {} ({name} takes class indices as targets)",
        target.dtype().scalar_name()
    );
    let want = places(x.shape());
    if x.ndim() <= 2 {
        ensure!(
            target.ndim() <= 1,
            Runtime,
            "{name}: 0D or 1D target tensor expected, multi-target not supported, got {}D",
            target.ndim()
        );
        let single = x.ndim() == 1 && target.numel() == 1;
        ensure!(
            single || target.shape() == &want,
            Runtime,
            "size mismatch (got input: {}, target: {})",
            Show(x.shape()),
            Show(target.shape())
        );
    } else {
        ensure!(
            x.ndim() != 4 || target.ndim() == 3,
            Runtime,
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: \
             {}",
            target.ndim()
        );
        ensure!(
            target.shape() == &want,
            Runtime,
            "Expected target size {}, got {}; size mismatch (got input: {}, target: {})",
            Show(&want),
            Show(target.shape()),
            Show(x.shape()),
            Show(target.shape())
        );
    }
    check_weight(weight, x)
}

fn check_reduction(reduction: i64) -> Result<()> {
    ensure!(
        (0..=2).contains(&reduction),
        Value,
        "{reduction} is not a valid value for reduction"
    );
    Ok(())
}

fn operands<'a>(x: &'a Tensor, t: &'a Tensor, w: Option<&'a Tensor>) -> SmallVec<[&'a Tensor; 3]> {
    let mut out: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[x, t]);
    out.extend(w);
    out
}

/// `nll_loss` with any number of dimensions.
pub fn nll_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
) -> Result<Tensor> {
    check_reduction(reduction)?;
    check_classes("nll_loss", x, target, weight)?;
    let y = dispatch::call(Nll { reduction, ignore }, &operands(x, target, weight))?;
    Ok(first(y))
}

fn first(mut y: Tensors) -> Tensor {
    y.swap_remove(0)
}

/// `cross_entropy_loss` with class indices or probabilities.
pub fn cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
    smoothing: f64,
) -> Result<Tensor> {
    check_reduction(reduction)?;
    ensure!(
        (0.0..=1.0).contains(&smoothing),
        Runtime,
        "label_smoothing must be between 0.0 and 1.0. Got: {smoothing}"
    );
    if x.shape() != target.shape() || x.ndim() == 0 {
        check_classes("cross_entropy_loss", x, target, weight)?;
        let op = CrossEntropy {
            reduction,
            ignore,
            smoothing,
        };
        return Ok(first(dispatch::call(op, &operands(x, target, weight))?));
    }
    ensure!(
        target.dtype().is_float(),
        Runtime,
        "Expected floating point type for target with class probabilities, got {}",
        target.dtype().scalar_name()
    );
    ensure!(
        ignore < 0,
        Runtime,
        "ignore_index is not supported for floating point target"
    );
    ensure!(
        x.dtype().is_float(),
        NotImplemented,
        "\"log_softmax_lastdim_kernel_impl\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    check_weight(weight, x)?;
    let e = Extent::of(x.shape());
    let mut t = target.clone();
    if smoothing > 0.0 {
        t = t
            .mul_scalar(1.0 - smoothing)?
            .add_scalar(smoothing / e.c as f64)?;
    }
    let mut terms = x.sub(&dispatch::call1(LogSumExp, &[x])?)?.mul(&t)?;
    if let Some(w) = weight {
        let mut shape = Dims::from_elem(1, x.ndim());
        shape[(x.ndim() > 1) as usize] = e.c;
        terms = terms.mul(&w.reshape_to(&shape)?)?;
    }
    if reduction == NONE {
        return sum_classes(&terms, false)?.neg();
    }
    let total = reduced(&terms, super::loss::SUM)?.neg()?;
    match reduction {
        MEAN => total.div_scalar((e.n * e.d) as f64),
        _ => Ok(total),
    }
}

/// max(z, 0) with no gradient where z is 0.
fn positive(z: &Tensor) -> Result<Tensor> {
    let zero = Tensor::zeros(&[], z.dtype(), z.device())?;
    where_(&apply(Gt, [z, &zero])?, z, &zero)
}

/// Scores as samples by classes.
fn as_rows(name: &str, x: &Tensor, target: &Tensor) -> Result<Tensor> {
    ensure!(
        (x.ndim() == 2 && x.size(1) > 0) || (x.ndim() < 2 && x.numel() > 0),
        Runtime,
        "{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
        Show(x.shape())
    );
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64),
        NotImplemented,
        "\"{name}_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        target.dtype() == DType::I64,
        Runtime,
        "{name}: expected scalar type Long but found {} for the target",
        target.dtype().scalar_name()
    );
    if x.ndim() == 2 {
        Ok(x.clone())
    } else {
        x.reshape(&[1, -1])
    }
}

fn mask(data: &[f64], shape: &[usize], like: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(data, shape, DType::F64)?
        .to_dtype(like.dtype())?
        .to_device(like.device())
}

fn multi_margin(
    x: &Tensor,
    target: &Tensor,
    (p, margin): (f64, f64),
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    const NAME: &str = "multi_margin_loss";
    check_reduction(reduction)?;
    ensure!(
        p == 1.0 || p == 2.0,
        Runtime,
        "{NAME}: only p == 1 and p == 2 supported"
    );
    let rows = as_rows(NAME, x, target)?;
    let (n, c) = (rows.size(0), rows.size(1));
    ensure!(
        target.ndim() <= 1 && target.numel() == n,
        Runtime,
        "inconsistent target size, expected {n} but got {}",
        Show(target.shape())
    );
    if let Some(w) = weight {
        ensure!(
            w.ndim() <= 1 && w.numel() == c,
            Runtime,
            "inconsistent weight size, expected {c} but got {}",
            Show(w.shape())
        );
    }
    let ids = target.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() };
    let w = class_weights::<f64>(weight.as_ref(), c)?;
    let (mut hot, mut factor) = (vec![0.0; n * c], vec![0.0; n * c]);
    for (i, &t) in ids.iter().enumerate() {
        ensure!(
            t >= 0 && (t as usize) < c,
            Runtime,
            "target out of range, got {t} for {c} classes"
        );
        hot[i * c + t as usize] = 1.0;
        for k in (0..c).filter(|&k| k != t as usize) {
            factor[i * c + k] = w[t as usize] / c as f64;
        }
    }
    let own = sum_classes(&rows.mul(&mask(&hot, &[n, c], x)?)?, true)?;
    let mut z = positive(&rows.sub(&own)?.add_scalar(margin)?)?;
    if p == 2.0 {
        z = z.mul(&z)?;
    }
    let loss = sum_classes(&z.mul(&mask(&factor, &[n, c], x)?)?, false)?;
    reduced(&loss.reshape_to(target.shape())?, reduction)
}

fn multilabel_margin(x: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    const NAME: &str = "multilabel_margin_loss";
    check_reduction(reduction)?;
    let rows = as_rows(NAME, x, target)?;
    ensure!(
        x.shape() == target.shape(),
        Runtime,
        "inconsistent target size: {} for input of size: {}",
        Show(target.shape()),
        Show(x.shape())
    );
    let (n, c) = (rows.size(0), rows.size(1));
    let ids = target.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() };
    let (mut times, mut others) = (vec![0.0; n * c], vec![1.0 / c as f64; n * c]);
    for i in 0..n {
        for &t in ids[i * c..(i + 1) * c].iter().take_while(|&&t| t != -1) {
            ensure!(
                t >= 0 && (t as usize) < c,
                Runtime,
                "{NAME}: target out of range, got {t} for {c} classes"
            );
            times[i * c + t as usize] += 1.0;
            others[i * c + t as usize] = 0.0;
        }
    }
    let column = |t: &Tensor| t.reshape_to(&[n, c, 1]);
    let row = |t: &Tensor| t.reshape_to(&[n, 1, c]);
    let z = positive(&row(&rows)?.sub(&column(&rows)?)?.add_scalar(1.0)?)?;
    let z = z.mul(&column(&mask(&times, &[n, c], x)?)?)?;
    let z = z
        .mul(&row(&mask(&others, &[n, c], x)?)?)?
        .reshape_to(&[n, c * c])?;
    let loss = sum_classes(&z, false)?;
    let loss = if x.ndim() == 2 {
        loss
    } else {
        loss.reshape(&[])?
    };
    reduced(&loss, reduction)
}

crate::entries! {
    /// The sum over other classes of max(0, margin - x[target] + x)^p / classes.
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    NN | OUT,
    |a| {
        let (x, t, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(4));
        Ok(multi_margin(x, t, (a.float(2)?, a.float(3)?), w, a.int(5)?)?.into())
    };
    /// Hinge loss between every target class and every other; targets end at the first -1.
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", NN | OUT,
    |a| Ok(multilabel_margin(a.tensor(0)?, a.tensor(1)?, a.int(2)?)?.into());
    /// Minus the log-probabilities `self` at the target classes.
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN,
    |a| {
        let (x, t, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2));
        Ok(nll_loss(x, t, w, a.int(3)?, a.int(4)?)?.into())
    };
    /// Minus the log-probabilities `self` at the target classes, for one place per sample.
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN | OUT,
    |a| {
        let x = a.tensor(0)?;
        ensure!(
            x.ndim() == 1 || x.ndim() == 2,
            Runtime,
            "nll_loss: input tensor should be 1D or 2D, got {}D",
            x.ndim()
        );
        Ok(nll_loss(x, a.tensor(1)?, a.opt_tensor(2), a.int(3)?, a.int(4)?)?.into())
    };
    /// Minus the log-probabilities `self` at the target classes of images.
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN | OUT,
    |a| {
        let x = a.tensor(0)?;
        ensure!(
            x.ndim() == 4,
            Runtime,
            "nll_loss2d: only batches of spatial inputs supported (4D tensors), but got input of \
             dimension: {}",
            x.ndim()
        );
        Ok(nll_loss(x, a.tensor(1)?, a.opt_tensor(2), a.int(3)?, a.int(4)?)?.into())
    };
    /// Minus the log-softmax of `self` at the target classes or under target probabilities.
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    NN,
    |a| {
        let (x, t, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2));
        Ok(cross_entropy(x, t, w, a.int(3)?, a.int(4)?, a.float(5)?)?.into())
    };
}

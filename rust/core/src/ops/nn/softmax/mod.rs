//! Softmax and its relatives along one dimension, and logsumexp.

pub(super) mod gpu;

use crate::arg;
use crate::autograd::jvp::along;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::reduce::{filled, reduce_from, Kind, Reducible};
use crate::cpu::rows::{map, Data, Kernel, Lines};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::centred::{centred, Centred};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{one, Asked, Cut, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::compare::IsInf;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Exp, Log};
use crate::ops::pointwise::{apply, Float};
use crate::ops::reduce::{reduced_shape, restored};
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, DimSet, Span};
use crate::tensor::Tensor;
use crate::{per_isa, transfer, with_float};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// e^x divided by its sum along `dim`, or the logarithm of that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Softmax {
    pub dim: usize,
    pub log: bool,
}

/// The gradient of [`Softmax`] from the gradient of its result and the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SoftmaxGrad {
    dim: usize,
    log: bool,
}

/// Rows up to this length are taken together, so many at once.
const SHORT: usize = 32;
const GROUP: usize = 16;

/// Columns that are walked together where the dimension is not innermost.
const TILE: usize = 128;
/// What an element costs, as [`map`] counts.
const COST: usize = 4;

/// The logarithm of a sum of exponentials, as the system's library has it.
#[inline(always)]
fn log<T: Float>(x: T) -> T {
    match T::DTYPE {
        DType::F64 => T::of_f64(x.to_f64().ln()),
        _ => T::of_f64((x.to_f64() as f32).ln() as f64),
    }
}

/// The larger; NaN if either is.
#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<T: Float>(a: T, b: T) -> T {
    if (b > a) | (b != b) {
        b
    } else {
        a
    }
}

/// Sixteen running results of `step`, joined.
#[inline(always)]
fn lanes<T: Copy>(n: usize, init: T, step: impl Fn(T, usize) -> T, join: impl Fn(T, T) -> T) -> T {
    const LANES: usize = 16;
    let mut acc = [init; LANES];
    let mut i = 0;
    while i + LANES <= n {
        for (l, a) in acc.iter_mut().enumerate() {
            *a = step(*a, i + l);
        }
        i += LANES;
    }
    for (l, a) in acc.iter_mut().enumerate().take(n - i) {
        *a = step(*a, i + l);
    }
    let mut total = acc[0];
    for &a in &acc[1..] {
        total = join(total, a);
    }
    total
}

/// One contiguous row.
#[inline(always)]
unsafe fn row<T: Float, const LOG: bool>(x: *const T, y: *mut T, n: usize) {
    // SAFETY: `x` and `y` hold `n` elements; `lanes` asks for those below `n`.
    unsafe {
        // Four quarters side by side, since each step waits for the last one; then what is left.
        let (quarter, least) = (n / 64 * 16, T::lit(f64::NEG_INFINITY));
        let both = |i: usize| larger(*x.add(i), *x.add(i + quarter));
        let four = |a, i| larger(a, larger(both(i), both(i + 2 * quarter)));
        let top = lanes(quarter, least, four, larger);
        let rest = |a, i| larger(a, *x.add(4 * quarter + i));
        let top = lanes(n - 4 * quarter, top, rest, larger);
        let zero = T::default();
        if LOG {
            let sum = lanes(n, zero, |a, i| a + (*x.add(i) - top).decay(), T::add);
            let log = log(sum);
            for i in 0..n {
                *y.add(i) = *x.add(i) - top - log;
            }
            return;
        }
        for i in 0..n {
            *y.add(i) = (*x.add(i) - top).decay();
        }
        let sum = lanes(n, zero, |a, i| a + *y.add(i), T::add);
        for i in 0..n {
            *y.add(i) = *y.add(i) / sum;
        }
    }
}

/// Up to [`GROUP`] short rows at once: one in each lane.
#[inline(always)]
unsafe fn short_rows<T: Float, const LOG: bool>(x: *const T, y: *mut T, n: usize, rows: usize) {
    // SAFETY: `x` and `y` hold `rows` rows, at most GROUP, of `n` elements, at most SHORT.
    unsafe {
        let mut v = [[T::lit(f64::NEG_INFINITY); GROUP]; SHORT];
        let mut top = [T::lit(f64::NEG_INFINITY); GROUP];
        let mut sum = [T::default(); GROUP];
        for (k, v) in v[..n].iter_mut().enumerate() {
            for (j, v) in v[..rows].iter_mut().enumerate() {
                *v = *x.add(j * n + k);
            }
            for j in 0..GROUP {
                top[j] = larger(top[j], v[j]);
            }
        }
        for v in &mut v[..n] {
            for j in 0..GROUP {
                v[j] = v[j] - top[j];
                let e = v[j].decay();
                sum[j] += e;
                v[j] = if LOG { v[j] } else { e };
            }
        }
        if LOG {
            sum[..rows].iter_mut().for_each(|s| *s = log(*s));
        }
        for (k, v) in v[..n].iter_mut().enumerate() {
            for j in 0..GROUP {
                v[j] = if LOG { v[j] - sum[j] } else { v[j] / sum[j] };
            }
            for (j, &v) in v[..rows].iter().enumerate() {
                *y.add(j * n + k) = v;
            }
        }
    }
}

/// `width` columns of `n` elements that lie `stride` apart.
#[inline(always)]
unsafe fn columns<T: Float, const LOG: bool>(
    x: *const T,
    y: *mut T,
    n: usize,
    stride: usize,
    width: usize,
) {
    // SAFETY: `width` is at most TILE, and `x` and `y` hold `width` columns of `n` elements,
    // `stride` apart.
    unsafe {
        let mut top = [T::lit(f64::NEG_INFINITY); TILE];
        let mut sum = [T::default(); TILE];
        for k in 0..n {
            for (j, t) in top[..width].iter_mut().enumerate() {
                *t = larger(*t, *x.add(k * stride + j));
            }
        }
        for k in 0..n {
            for j in 0..width {
                let e = (*x.add(k * stride + j) - top[j]).decay();
                sum[j] += e;
                if !LOG {
                    *y.add(k * stride + j) = e;
                }
            }
        }
        if LOG {
            for s in &mut sum[..width] {
                *s = log(*s);
            }
        }
        for k in 0..n {
            for j in 0..width {
                let at = k * stride + j;
                *y.add(at) = match LOG {
                    true => *x.add(at) - top[j] - sum[j],
                    false => *y.add(at) / sum[j],
                };
            }
        }
    }
}

/// The gradient in one row: `y (g - sum(g y))`, or `g - e^y sum(g)` for the logarithm.
#[inline(always)]
unsafe fn grad_row<T: Float, const LOG: bool>(g: *const T, y: *const T, d: *mut T, n: usize) {
    // SAFETY: `g`, `y` and `d` hold `n` elements; `lanes` asks for those below `n`.
    unsafe {
        let zero = T::default();
        if LOG {
            let sum = lanes(n, zero, |a, i| a + *g.add(i), T::add);
            for i in 0..n {
                *d.add(i) = *g.add(i) - (*y.add(i)).decay() * sum;
            }
        } else {
            let sum = lanes(n, zero, |a, i| a + *g.add(i) * *y.add(i), T::add);
            for i in 0..n {
                *d.add(i) = *y.add(i) * (*g.add(i) - sum);
            }
        }
    }
}

#[inline(always)]
unsafe fn grad_columns<T: Float, const LOG: bool>(
    g: *const T,
    y: *const T,
    d: *mut T,
    n: usize,
    stride: usize,
    width: usize,
) {
    // SAFETY: `width` is at most TILE, and `g`, `y` and `d` hold `width` columns of `n` elements,
    // `stride` apart.
    unsafe {
        let mut sum = [T::default(); TILE];
        for k in 0..n {
            for (j, s) in sum[..width].iter_mut().enumerate() {
                let at = k * stride + j;
                let v = if LOG {
                    *g.add(at)
                } else {
                    *g.add(at) * *y.add(at)
                };
                *s += v;
            }
        }
        for k in 0..n {
            for (j, &s) in sum[..width].iter().enumerate() {
                let at = k * stride + j;
                *d.add(at) = match LOG {
                    true => *g.add(at) - (*y.add(at)).decay() * s,
                    false => *y.add(at) * (*g.add(at) - s),
                };
            }
        }
    }
}

/// Lines of the input, or of the gradient and the result, and those that are written: `at` is where each begin.
// SAFETY: they do, and those that are written are this thread's.
#[inline(always)]
unsafe fn lines<T: Float, const LOG: bool, const GRAD: bool>(l: Lines, at: &[*mut T]) {
    let (x, y, out) = (at[0], at[at.len() - 2], at[at.len() - 1]);
    let (n, stride, count) = (l.n, l.stride, l.count);
    // SAFETY: the lines lie at these places, and no other thread writes them.
    unsafe {
        match (GRAD, stride == 1) {
            (false, true) if n <= SHORT => short_rows::<T, LOG>(x, out, n, count),
            (false, true) => row::<T, LOG>(x, out, n),
            (false, false) => columns::<T, LOG>(x, out, n, stride, count),
            (true, true) => {
                for first in (0..count).map(|r| r * n) {
                    grad_row::<T, LOG>(x.add(first), y.add(first), out.add(first), n);
                }
            }
            (true, false) => grad_columns::<T, LOG>(x, y, out, n, stride, count),
        }
    }
}

per_isa! {
    fn kernel[T: Float; const LOG: bool, const GRAD: bool] -> Kernel<T> = (l: Lines, at: &[*mut T]) {
        // SAFETY: a kernel's caller has the lines at these places, and those that are written are
        // this thread's.
        unsafe { lines::<T, LOG, GRAD>(l, at) }
    }
}

/// Runs a kernel over all lines along `dim` of one or two contiguous tensors, into the last one.
fn over_lines<T: Float>(kernel: Kernel<T>, all: &[&Tensor], dim: usize) {
    let of = Span::of(all[0].shape(), dim);
    let data: SmallVec<[Data; 3]> = all.iter().map(|t| Data::of(*t)).collect();
    // Short rows go together, as neighbouring columns do.
    let rows = if of.length <= SHORT { GROUP } else { 1 };
    // SAFETY: all have this shape, and the last one is fresh; the kernel is one of this machine's.
    unsafe { map(&data, of, (rows, TILE), COST, kernel) };
}

impl Derivative for Softmax {
    fn name(&self) -> &'static str {
        if self.log {
            "LogSoftmaxBackward0"
        } else {
            "SoftmaxBackward0"
        }
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        let name = if self.log { "_log_softmax" } else { "_softmax" };
        let (dim, half) = (Value::Int(self.dim as i64), Value::Bool(false));
        Ok(Asked::named(name).with([x[0].clone().into(), dim, half]))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let op = SoftmaxGrad {
            dim: self.dim,
            log: self.log,
        };
        one(dispatch::call1(op, &[g, &cx.output(0)?])?)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (t, y) = (cx.tangent_or_zeros(0)?, cx.output(0)?);
        if !self.log {
            // The Jacobian is its own transpose.
            let (dim, log) = (self.dim, false);
            return along(dispatch::call1(SoftmaxGrad { dim, log }, &[&t, y])?);
        }
        let mean = apply(Exp, [y])?.mul(&t)?.sum_dim(self.dim as i64, true)?;
        along(t.sub(&mean)?)
    }
}

impl Op for Softmax {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Softmax {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(smallvec![TensorMeta::of(x[0])])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let name = if self.log {
            "log_softmax_lastdim_kernel_impl"
        } else {
            "softmax_lastdim_kernel_impl"
        };
        with_float!(x[0].dtype(), name, T => {
            let x = x[0].prepared(x[0].dtype())?;
            let run = if self.log { kernel::<T, true, false>() } else { kernel::<T, false, false>() };
            over_lines(run, &[&x, &y[0]], self.dim);
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    /// Of lines that no binding has.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let x = x[0];
        if transfer::has_short_lines(x, self.dim) {
            return Ok(None);
        }
        let wide = x.to_dtype(x.dtype().compute())?;
        let line = DimSet::one(self.dim, x.ndim())?;
        let from_top = wide.sub(&wide.amax_mask(line, true)?)?;
        let powers = apply(Exp, [&from_top])?;
        let sum = powers.sum_dim(self.dim as i64, true)?;
        let y = match self.log {
            true => from_top.sub(&apply(Log, [&sum])?)?,
            false => powers.div(&sum)?,
        };
        Ok(Some(smallvec![y.to_dtype(x.dtype())?]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = transfer::dense(gpu, x[0])?;
        let span = Span::of(x.shape(), self.dim);
        transfer::ran(gpu::softmax(gpu, self.log, span, &x, &y[0]))
    }
}

impl Derivative for SoftmaxGrad {
    fn name(&self) -> &'static str {
        if self.log {
            "LogSoftmaxBackwardDataBackward0"
        } else {
            "SoftmaxBackwardDataBackward0"
        }
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named(format!(
            "_{}",
            Asked::of_node(self.name()).name
        )))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, h: &[Option<Tensor>]) -> Result<Grads> {
        let Some(h) = &h[0] else {
            return Ok(smallvec![None, None]);
        };
        let (g, y) = (cx.input(0)?, cx.input(1)?);
        let sum = |t: Tensor| t.sum_dim(self.dim as i64, true);
        if self.log {
            let p = apply(Exp, [&y])?;
            let hp = h.mul(&p)?;
            let dg = h.sub(&sum(hp.clone())?)?;
            let dy = hp.mul(&sum(g)?)?.neg()?;
            return Ok(smallvec![Some(dg), Some(dy)]);
        }
        let hy = sum(h.mul(&y)?)?;
        let dg = y.mul(&h.sub(&hy)?)?;
        let dy = h.mul(&g.sub(&sum(g.mul(&y)?)?)?)?.sub(&g.mul(&hy)?)?;
        Ok(smallvec![Some(dg), Some(dy)])
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.by_ops(&|x| {
            let sum = |t: &Tensor| t.sum_dim(self.dim as i64, true);
            let (g, y) = (x[0], x[1]);
            Ok(smallvec![match self.log {
                true => g.sub(&apply(Exp, [y])?.mul(&sum(g)?)?)?,
                false => y.mul(&g.sub(&sum(&g.mul(y)?)?)?)?,
            }])
        })
    }
}

impl Op for SoftmaxGrad {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(SoftmaxGrad {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(smallvec![TensorMeta::of(x[1])])
    }
    fn cpu(&self, x: &[&Tensor], d: &[Tensor]) -> Result<()> {
        with_float!(x[1].dtype(), "softmax_backward", T => {
            let (g, y) = (x[0].prepared(x[0].dtype())?, x[1].prepared(x[1].dtype())?);
            let run = if self.log { kernel::<T, true, true>() } else { kernel::<T, false, true>() };
            over_lines(run, &[&g, &y, &d[0]], self.dim);
        });
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    /// Of lines that no binding has.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if transfer::has_short_lines(x[1], self.dim) {
            return Ok(None);
        }
        let wide = x[1].dtype().compute();
        let (g, y) = (x[0].to_dtype(wide)?, x[1].to_dtype(wide)?);
        let sum = |t: &Tensor| t.sum_dim(self.dim as i64, true);
        let d = match self.log {
            true => g.sub(&apply(Exp, [&y])?.mul(&sum(&g)?)?)?,
            false => y.mul(&g.sub(&sum(&g.mul(&y)?)?)?)?,
        };
        Ok(Some(smallvec![d.to_dtype(x[1].dtype())?]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], d: &[Tensor]) -> Result<bool> {
        let (g, y) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        let span = Span::of(y.shape(), self.dim);
        transfer::ran(gpu::softmax_backward(gpu, self.log, span, &y, &g, &d[0]))
    }
}

/// The logarithm of the sum of exponentials over the dimensions in `mask`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Logsumexp {
    mask: DimSet,
    keepdim: bool,
}

impl Derivative for Logsumexp {
    fn name(&self) -> &'static str {
        "LogsumexpBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let x = cx.input(0)?;
        let y = restored(&cx.output(0)?, x.shape(), self.mask, self.keepdim)?;
        let g = restored(g, x.shape(), self.mask, self.keepdim)?;
        one(g.mul(&apply(Exp, [&x.sub(&y)?])?)?)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (t, x) = (cx.tangent_or_zeros(0)?, cx.input(0));
        let y = restored(cx.output(0)?, x.shape(), self.mask, self.keepdim)?;
        let part = apply(Exp, [&x.sub(&y)?])?.mul(&t)?;
        along(part.sum_mask(self.mask, self.keepdim, None)?)
    }
}

impl Op for Logsumexp {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Logsumexp {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        Ok(smallvec![TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device()
        }])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        fn run<T: Reducible + Float>(x: &Tensor, mask: DimSet, y: &mut [T]) {
            let mut top = vec![T::default(); y.len()];
            // An infinite maximum would give inf - inf.
            let finite = |t: T| {
                if t.to_f64().is_infinite() {
                    T::default()
                } else {
                    t
                }
            };
            reduce_from::<T>(x, mask, (Kind::Max, Kind::SumExpFrom), finite, &mut top, y);
            for (y, &t) in y.iter_mut().zip(&top) {
                *y = log(*y) + t;
            }
        }
        with_float!(x[0].dtype(), "logsumexp", T => {
            filled::<T>(&y[0], |y| run::<T>(x[0], self.mask, y));
        });
        Ok(())
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        logsumexp_on(gpu, x[0], self.mask, &y[0])
    }
    /// Of what is more than a binding.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].numel() == 0 {
            return Ok(None);
        }
        let (t, wide) = (x[0].dtype(), x[0].dtype().compute());
        let x = x[0].to_dtype(wide)?;
        let top = x.amax_mask(self.mask, true)?;
        // An infinite maximum would give inf - inf.
        let infinite = apply(IsInf, [&top])?;
        let top = where_(&infinite, &Tensor::number(0.0.into())?, &top)?;
        let each = apply(Exp, [&x.sub(&top)?])?;
        let sum = each.sum_mask(self.mask, true, Some(wide))?;
        let mut y = apply(Log, [&sum])?.add(&top)?;
        if !self.keepdim {
            y = y.reshape_to(&reduced_shape(x.shape(), self.mask, false))?;
        }
        Ok(Some(smallvec![y.to_dtype(t)?]))
    }
}

/// The logarithm `y` of the sum of exponentials over the dimensions in `mask`, by one kernel or two; `false` where
/// they do not take `x`.
pub fn logsumexp_on(gpu: &Gpu, x: &Tensor, mask: DimSet, y: &Tensor) -> Result<bool> {
    if x.numel() == 0 {
        return Ok(false);
    }
    let top = Tensor::empty(y.shape(), x.dtype().compute(), x.device())?;
    let (from, to, top) = (
        transfer::whole(x)?,
        transfer::whole(y)?,
        transfer::whole(&top)?,
    );
    transfer::ran(centred(gpu, Centred::LogSumExp, from, mask, to, top))
}

impl Tensor {
    /// `softmax` along `dim`.
    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        let dim = shape::dim(dim, self.ndim())?;
        dispatch::call1(Softmax { dim, log: false }, &[self])
    }

    /// `log_softmax` along `dim`.
    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        let dim = shape::dim(dim, self.ndim())?;
        dispatch::call1(Softmax { dim, log: true }, &[self])
    }

    /// `logsumexp` over the dimensions in `mask`.
    pub fn logsumexp_mask(&self, mask: DimSet, keepdim: bool) -> Result<Tensor> {
        let x = self.to_dtype(self.dtype().to_float())?;
        if x.dtype().is_complex() {
            let top = x.detach().real_part(0)?.amax_mask(mask, true)?;
            // An infinite maximum would give inf - inf.
            let infinite = apply(IsInf, [&top])?;
            let top = where_(&infinite, &Tensor::number(0.0.into())?, &top)?;
            let sum = apply(Exp, [&x.sub(&top)?])?.sum_mask(mask, true, None)?;
            let y = apply(Log, [&sum])?.add(&top)?;
            return y.reshape_to(&reduced_shape(x.shape(), mask, keepdim));
        }
        dispatch::call1(Logsumexp { mask, keepdim }, &[&x])
    }
}

fn typed<Sig: Signature>(a: &Args<Sig>, dtype: Option<DType>) -> Result<Tensor> {
    let x = a.tensor(arg!(self))?;
    x.to_dtype(dtype.unwrap_or(x.dtype()))
}

fn logsumexp<Sig: Signature>(a: &Args<Sig>) -> Result<Tensor> {
    let x = a.tensor(arg!(self))?;
    x.logsumexp_mask(a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?)
}

crate::entries! {
    /// e^x divided by its sum along `dim`; `dtype` converts the input first.
    "softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", FN | METHOD | OUT | SPECIAL,
    |a| Ok(typed(a, a.dtype(arg!(dtype)))?.softmax(a.int(arg!(dim))?)?.into());
    /// The logarithm of softmax, computed without leaving it.
    "log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | OUT | SPECIAL,
    |a| Ok(typed(a, a.dtype(arg!(dtype)))?.log_softmax(a.int(arg!(dim))?)?.into());
    /// Softmax without conversion, as decompositions call it.
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", FN | OUT,
    |a| {
        let to = a.bool(arg!(half_to_float))?.then_some(DType::F32);
        Ok(typed(a, to)?.softmax(a.int(arg!(dim))?)?.into())
    };
    /// Log-softmax without conversion, as decompositions call it.
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", FN | OUT,
    |a| {
        let to = a.bool(arg!(half_to_float))?.then_some(DType::F32);
        Ok(typed(a, to)?.log_softmax(a.int(arg!(dim))?)?.into())
    };
    /// The logarithm of the sum of exponentials along `dim`, stable for large values.
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    FN | METHOD | CASTS | SPECIAL,
    |a| Ok(logsumexp(a)?.into());
}

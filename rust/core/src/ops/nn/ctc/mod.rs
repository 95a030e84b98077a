//! Connectionist temporal classification: Graves et al. 2006, doi:10.1145/1143844.1143891.

mod gpu;
mod parts;

use super::loss::{reduced, MEAN};
use crate::alloc;
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::math::f64x as m;
use crate::cpu::pool::{parallel_chunks, parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{bail, ensure, per_isa, transfer};
use smallvec::SmallVec;

const NEVER: f64 = f64::NEG_INFINITY;

/// Labels and lengths of a batch, read once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Batch {
    labels: Vec<Vec<usize>>,
    times: Vec<usize>,
    blank: usize,
}

impl Batch {
    /// Sequences below which a second thread costs more than it gains: each place of each step
    /// takes a logarithm.
    fn grain(&self) -> usize {
        let places = |b: usize| self.times[b] * (2 * self.labels[b].len() + 1);
        let work = (0..self.times.len()).map(places).max().unwrap_or(0);
        512 / work.max(1) + 1
    }

    /// The label at place `s` of a sequence with blanks between all labels and around them.
    fn label(&self, b: usize, s: usize) -> usize {
        if s.is_multiple_of(2) {
            self.blank
        } else {
            self.labels[b][s / 2]
        }
    }

    /// Whether a path may go from place `s - 2` to `s`, skipping a blank.
    fn skips(&self, b: usize, s: usize) -> bool {
        s % 2 == 1 && s >= 3 && self.labels[b][s / 2] != self.labels[b][s / 2 - 1]
    }
}

/// The rounding of a type: sums over paths lose digits, and float32 is to lose those of PyTorch.
fn rounding(dtype: DType) -> fn(f64) -> f64 {
    match dtype {
        DType::F64 => |v| v,
        _ => |v| v as f32 as f64,
    }
}

/// The logarithm of the sum of two exponentials, of which the larger is one once it is taken out.
fn log_add(r: fn(f64) -> f64, a: f64, b: f64) -> f64 {
    let (top, low) = if a > b { (a, b) } else { (b, a) };
    if low == NEVER {
        return top;
    }
    r(r(r(1.0 + r(m::exp(r(low - top)))).ln()) + top)
}

/// Log-probabilities of one sequence: element (t, c).
struct Sequence<'a> {
    p: &'a [f64],
    step: usize,
    at: usize,
    /// Whether sums are those of float32.
    short: bool,
}

impl Sequence<'_> {
    fn get(&self, t: usize, c: usize) -> f64 {
        self.p[t * self.step + self.at + c]
    }
}

/// What one step sums at each place: what came there, to its neighbour, and to the one beyond that
/// where a path may skip.
struct Places {
    labels: Vec<usize>,
    /// Whether a path may go between this place and the second before it.
    skips: Vec<bool>,
}

impl Places {
    fn of(batch: &Batch, b: usize) -> Places {
        let width = 2 * batch.labels[b].len() + 1;
        Places {
            labels: alloc::gathered((0..width).map(|s| batch.label(b, s))),
            skips: alloc::gathered((0..width).map(|s| batch.skips(b, s))),
        }
    }
}

per_isa! {
    /// The logarithms of the sums of exponentials of `x`, its neighbours `y`, and `z` where `skips` says so,
    /// each plus `add`; with `SHORT`, each step in float32.
    fn log_sums[; const SHORT: bool](
        x: &[f64], y: &[f64], z: &[f64], skips: &[bool], add: &[f64], out: &mut [f64]
    ) {
        let r = |v: f64| if SHORT { v as f32 as f64 } else { v };
        let n = out.len();
        let (x, y, z) = (&x[..n], &y[..n], &z[..n]);
        let (skips, add) = (&skips[..n], &add[..n]);
        for s in 0..n {
            let (a, b) = (x[s], y[s]);
            let c = if skips[s] { z[s] } else { NEVER };
            // A NaN is passed over here, and makes the sum one.
            let top = if a > NEVER { a } else { NEVER };
            let top = if b > top { b } else { top };
            let top = if c > top { c } else { top };
            let from = if top == NEVER { 0.0 } else { top };
            let sum = r(r(m::exp(r(a - from))) + r(m::exp(r(b - from))));
            let sum = r(sum + r(m::exp(r(c - from))));
            out[s] = r(r(r(m::ln(sum)) + from) + add[s]);
        }
    }
}

per_isa! {
    /// The gradient of a step's log-probabilities: the probabilities less the sums over paths, as parts of all.
    fn slopes[; const SHORT: bool](lp: &[f64], sums: &[f64], loss: f64, g: f64, out: &mut [f64]) {
        let r = |v: f64| if SHORT { v as f32 as f64 } else { v };
        let n = out.len();
        let (lp, sums) = (&lp[..n], &sums[..n]);
        for k in 0..n {
            let part = r(m::exp(r(r(sums[k] + loss) - lp[k])));
            out[k] = (r(m::exp(lp[k])) - part) * g;
        }
    }
}

/// One step of a [`Sequence`] over places.
fn advance(x: &Sequence, from: [&[f64]; 3], skips: &[bool], add: &[f64], out: &mut [f64]) {
    let [a, b, c] = from;
    match x.short {
        true => log_sums::<true>(a, b, c, skips, add, out),
        false => log_sums::<false>(a, b, c, skips, add, out),
    }
}

/// Sums over all paths that reach each place at each time, from the front.
fn forward(batch: &Batch, b: usize, x: &Sequence) -> Vec<f64> {
    let places = Places::of(batch, b);
    let (times, width) = (batch.times[b], places.labels.len());
    let mut alpha = alloc::full(NEVER, times * width);
    if times == 0 {
        return alpha;
    }
    alpha[0] = x.get(0, batch.blank);
    if width > 1 {
        alpha[1] = x.get(0, places.labels[1]);
    }
    // The step before, behind two places that no path comes from.
    let mut old = alloc::full(NEVER, width + 2);
    let mut add = alloc::full(0.0, width);
    for t in 1..times {
        old[2..].copy_from_slice(&alpha[(t - 1) * width..t * width]);
        for (add, &label) in add.iter_mut().zip(&places.labels) {
            *add = x.get(t, label);
        }
        let from = [&old[2..], &old[1..], &old[..]];
        let new = &mut alpha[t * width..(t + 1) * width];
        advance(x, from, &places.skips, &add, new);
    }
    alpha
}

/// The same from the back.
fn backward(batch: &Batch, b: usize, x: &Sequence) -> Vec<f64> {
    let mut places = Places::of(batch, b);
    let (times, width) = (batch.times[b], places.labels.len());
    let mut beta = alloc::full(NEVER, times * width);
    if times == 0 {
        return beta;
    }
    let end = (times - 1) * width;
    beta[end + width - 1] = x.get(times - 1, batch.blank);
    if width > 1 {
        beta[end + width - 2] = x.get(times - 1, places.labels[width - 2]);
    }
    // Of each place, whether it is skipped to.
    places.skips.rotate_left(2.min(width));
    let last = width.saturating_sub(2);
    places.skips[last..].fill(false);
    let mut old = alloc::full(NEVER, width + 2);
    let mut add = alloc::full(0.0, width);
    for t in (0..times - 1).rev() {
        old[..width].copy_from_slice(&beta[(t + 1) * width..(t + 2) * width]);
        for (add, &label) in add.iter_mut().zip(&places.labels) {
            *add = x.get(t, label);
        }
        let from = [&old[..], &old[1..], &old[2..]];
        let new = &mut beta[t * width..(t + 1) * width];
        advance(x, from, &places.skips, &add, new);
    }
    beta
}

fn loss_of(batch: &Batch, b: usize, alpha: &[f64], r: fn(f64) -> f64) -> f64 {
    let (times, width) = (batch.times[b], 2 * batch.labels[b].len() + 1);
    if times == 0 {
        return if width == 1 { 0.0 } else { f64::INFINITY };
    }
    let end = &alpha[(times - 1) * width..];
    -if width > 1 {
        log_add(r, end[width - 1], end[width - 2])
    } else {
        end[0]
    }
}

/// The loss of each sequence; the input has times, sequences and classes as dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ctc {
    batch: Batch,
    zero_infinity: bool,
}

impl Derivative for Ctc {
    fn name(&self) -> &'static str {
        "CtcLossBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let d = dispatch::call1(CtcGrad { of: self.clone() }, &[g, &cx.input(0)?])?;
        Ok(SmallVec::from_elem(Some(d), 1))
    }
}

impl Op for Ctc {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = Dims::from_slice(&[self.batch.times.len()]);
        let meta = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device(),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (n, c, r) = (x[0].size(1), x[0].size(2), rounding(x[0].dtype()));
        let short = x[0].dtype() != DType::F64;
        let p = x[0].prepared(DType::F64)?;
        // SAFETY: contiguous host memory of this type.
        let p = unsafe { p.slice::<f64>() };
        let mut out = alloc::full(0.0f64, n);
        parallel_chunks(&mut out, 1, self.batch.grain(), |first, out| {
            for (b, out) in (first..).zip(out) {
                let x = Sequence {
                    p,
                    step: n * c,
                    at: b * c,
                    short,
                };
                *out = loss_of(&self.batch, b, &forward(&self.batch, b, &x), r);
            }
        });
        y[0].write_from(&Tensor::from_slice(&out, &[n], DType::F64)?)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::losses(self, x[0])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(self::gpu::losses(gpu, &self.batch, x[0], &y[0]))
    }
}

/// The gradient of [`Ctc`] for log-probabilities that come from a log-softmax. Inputs: `g`, and
/// the log-probabilities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CtcGrad {
    of: Ctc,
}

impl Derivative for CtcGrad {
    fn name(&self) -> &'static str {
        "CtcLossBackwardBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "derivative for aten::_ctc_loss_backward is not implemented"
        )
    }
}

impl Op for CtcGrad {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[1]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (batch, n, c) = (&self.of.batch, x[1].size(1), x[1].size(2));
        let (r, short) = (rounding(x[1].dtype()), x[1].dtype() != DType::F64);
        let (g, p) = (x[0].prepared(DType::F64)?, x[1].prepared(DType::F64)?);
        // SAFETY: contiguous host memory of this type.
        let (g, p) = unsafe { (g.slice::<f64>(), p.slice::<f64>()) };
        let out = Tensor::zeros(x[1].shape(), DType::F64, x[1].device())?;
        let to = Ptr::new(out.ptr::<f64>());
        parallel_for(n, batch.grain(), |range| {
            let mut sums = alloc::full(NEVER, c);
            for b in range {
                let x = Sequence {
                    p,
                    step: n * c,
                    at: b * c,
                    short,
                };
                let alpha = forward(batch, b, &x);
                let loss = loss_of(batch, b, &alpha, r);
                if self.of.zero_infinity && loss == f64::INFINITY {
                    continue;
                }
                let beta = backward(batch, b, &x);
                let width = 2 * batch.labels[b].len() + 1;
                for t in 0..batch.times[b] {
                    sums.fill(NEVER);
                    for s in 0..width {
                        let sum = &mut sums[batch.label(b, s)];
                        *sum = log_add(r, *sum, r(alpha[t * width + s] + beta[t * width + s]));
                    }
                    let lp = &p[(t * n + b) * c..][..c];
                    // SAFETY: sequence `b` has its own elements.
                    let d = unsafe { to.part((t * n + b) * c..(t * n + b + 1) * c) };
                    match short {
                        true => slopes::<true>(lp, &sums, loss, g[b], d),
                        false => slopes::<false>(lp, &sums, loss, g[b], d),
                    }
                }
            }
        });
        y[0].write_from(&out)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::gradient(self, x[0], x[1])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let of = &self.of;
        transfer::ran(self::gpu::gradient(
            gpu,
            &of.batch,
            of.zero_infinity,
            x[0],
            x[1],
            &y[0],
        ))
    }
}

/// `ctc_loss`.
fn ctc_loss(
    x: &Tensor,
    targets: &Tensor,
    times: &[i64],
    lengths: &[i64],
    blank: i64,
    reduction: i64,
    zero_infinity: bool,
) -> Result<Tensor> {
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64),
        NoKernel,
        "\"ctc_loss_cpu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        matches!(targets.dtype(), DType::I32 | DType::I64),
        Runtime,
        "ctc_loss: targets must be Int or Long, got {}",
        targets.dtype().scalar_name()
    );
    let single = x.ndim() == 2;
    ensure!(
        single || x.ndim() == 3,
        Runtime,
        "ctc_loss: log_probs must have 2 or 3 dimensions, got {}",
        x.ndim()
    );
    let x = if single {
        x.reshape_to(&[x.size(0), 1, x.size(1)])?
    } else {
        x.clone()
    };
    let (most, n, classes) = (x.size(0), x.size(1), x.size(2));
    ensure!(x.numel() > 0, Runtime, "log_probs tensor must not be empty");
    ensure!(
        blank >= 0 && (blank as usize) < classes,
        Runtime,
        "blank must be in label range, got {blank} for {classes} classes"
    );
    for (l, which) in [(times, "input_lengths"), (lengths, "target_lengths")] {
        ensure!(
            l.len() == n,
            Runtime,
            "{which} must be of size batch_size, got {} for a batch of {n}",
            l.len()
        );
        ensure!(
            l.iter().all(|&v| v >= 0),
            Runtime,
            "Expected {which} to have value at least 0, got {l:?}"
        );
    }
    if let Some(&t) = times.iter().find(|&&t| t as usize > most) {
        bail!(
            Runtime,
            "Expected input_lengths to have value at most {most}, but got value {t}"
        );
    }
    let ids = match targets.has_data() {
        true => integers(targets)?,
        // Any will do: no shape depends on them.
        false => alloc::full(0, targets.numel()),
    };
    let total = lengths
        .iter()
        .fold(0usize, |s, &l| s.saturating_add(l as usize));
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let flat = targets.ndim() == 1;
    if flat && !single {
        ensure!(
            total <= ids.len(),
            Runtime,
            "Expected tensor to have size {total} at dimension 0, but got size {} for argument \
             'targets' (while checking arguments for ctc_loss_cpu)",
            ids.len()
        );
    } else {
        ensure!(
            targets.ndim() == 2 || flat,
            Runtime,
            "ctc_loss: targets must have 1 or 2 dimensions, got {}",
            targets.ndim()
        );
        let width = if flat { ids.len() } else { targets.size(1) };
        ensure!(
            (flat || targets.size(0) == n) && width >= longest,
            Runtime,
            "Expected tensor to have size at least {longest} at dimension 1, but got size {width} \
             for argument 'targets' (while checking arguments for ctc_loss_cpu)"
        );
    }
    let mut labels = alloc::room(n);
    let mut start = 0;
    for (b, &l) in lengths.iter().enumerate() {
        let l = l as usize;
        let from = if flat { start } else { b * targets.size(1) };
        start += l;
        let mut row = alloc::room(l);
        for &id in &ids[from..from + l] {
            ensure!(
                id >= 0 && (id as usize) < classes,
                Runtime,
                "ctc_loss: targets must be labels from 0 to {}, got {id}",
                classes - 1
            );
            row.push(id as usize);
        }
        labels.push(row);
    }
    let times = times.iter().map(|&t| t as usize).collect();
    let batch = Batch {
        labels,
        times,
        blank: blank as usize,
    };
    let mut loss = dispatch::call1(
        Ctc {
            batch,
            zero_infinity,
        },
        &[&x],
    )?;
    if zero_infinity {
        let infinite = apply(Eq, [&loss, &Tensor::number(Scalar::Float(f64::INFINITY))?])?;
        let zero = Tensor::constant(0.0, loss.dtype())?;
        loss = where_(&infinite, &zero, &loss)?;
    }
    if reduction == MEAN {
        let scale: Vec<f64> = lengths.iter().map(|&l| l.max(1) as f64).collect();
        let scale = Tensor::from_slice(&scale, &[n], DType::F64)?.to_dtype(loss.dtype())?;
        let scale = scale.to_device(loss.device())?;
        return reduced(&loss.div(&scale)?, MEAN);
    }
    let loss = if single { loss.reshape(&[])? } else { loss };
    reduced(&loss, reduction)
}

fn lengths(t: &Tensor) -> Result<Vec<i64>> {
    ensure!(
        t.dtype().is_integral() && t.ndim() <= 1,
        Runtime,
        "ctc_loss: input_lengths and target_lengths must be integral vectors, got {} with {}D",
        t.dtype().scalar_name(),
        t.ndim()
    );
    integers(t)
}

/// The elements in host memory.
fn integers(t: &Tensor) -> Result<Vec<i64>> {
    let t = t.to_host()?.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(alloc::gathered(unsafe { t.slice::<i64>() }.iter().copied()))
}

crate::entries! {
    /// Minus the log-probability of each target sequence, over all alignments.
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor",
    FN,
    |a| {
        let (x, t) = (a.tensor(arg!(log_probs))?, a.tensor(arg!(targets))?);
        let (i, l) = (a.ints(arg!(input_lengths))?, a.ints(arg!(target_lengths))?);
        Ok(ctc_loss(x, t, i, l, a.int(arg!(blank))?, a.int(arg!(reduction))?, a.bool(arg!(zero_infinity))?)?.into())
    };
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor",
    FN,
    |a| {
        let (x, t) = (a.tensor(arg!(log_probs))?, a.tensor(arg!(targets))?);
        let (i, l) = (lengths(a.tensor(arg!(input_lengths))?)?, lengths(a.tensor(arg!(target_lengths))?)?);
        Ok(ctc_loss(x, t, &i, &l, a.int(arg!(blank))?, a.int(arg!(reduction))?, a.bool(arg!(zero_infinity))?)?.into())
    };
}

//! Pieces of the negative log likelihood.

use crate::dtype::DType;
use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::launch::{lanes_rows, Launch, WORKGROUP};
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::nn::loss::{MEAN, NONE};
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::check_contiguous;

params! {
    struct Forward {
        n: u32,
        classes: u32,
        inner: u32,
        ignore: u32,
        x_offset: u32,
        i_offset: u32,
        w_offset: u32,
        who: u32,
        dispatch: u32,
    }
}
params! {
    struct Backward {
        n: u32,
        classes: u32,
        inner: u32,
        ignore: u32,
        y_offset: u32,
        g_offset: u32,
        g_step: u32,
        i_offset: u32,
        w_offset: u32,
        divisor_offset: u32,
    }
}
params! {
    struct Entropy {
        rows: u32,
        classes: u32,
        inner: u32,
        ignore: u32,
        smoothing: f32,
        x_offset: u32,
        i_offset: u32,
        w_offset: u32,
        y_offset: u32,
        lse_offset: u32,
        infinity: u32,
        who: u32,
        dispatch: u32,
    }
}
params! {
    struct EntropyBackward {
        rows: u32,
        classes: u32,
        inner: u32,
        ignore: u32,
        smoothing: f32,
        y_offset: u32,
        g_offset: u32,
        g_step: u32,
        x_offset: u32,
        i_offset: u32,
        lse_offset: u32,
        w_offset: u32,
        divisor_offset: u32,
    }
}
shader! { static NLL: Forward = "nll.wgsl", Acc::FLOAT }
shader! { static NLL_BACKWARD: Backward = "nll_backward.wgsl", Acc::FLOAT }
shader! { static ENTROPY: Entropy = "cross_entropy.wgsl", Acc::FLOAT }
shader! { static ENTROPY_BACKWARD: EntropyBackward = "cross_entropy_backward.wgsl", Acc::FLOAT }

/// Scores of a position that one invocation may take: three loops over them stay below 65,535 trips.
const MAX_TRIPS: usize = 20_000;
/// Positions that one invocation may add up.
const MAX_SUMMED: usize = 60_000;

/// `loss = -weight[t] * x[.., t, ..]` and `total = weight[t]` for each target `t`; both are 0
/// where `t` is `ignore`. `x` holds log-probabilities; `span` is its class dimension. `loss` and
/// `total` are float32 at offset 0. All contiguous.
pub fn nll(
    gpu: &Gpu,
    span: Span,
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore: i64,
    [loss, total]: [&Tensor; 2],
) -> Result<()> {
    let n = target.numel();
    if n == 0 {
        return Ok(());
    }
    check_contiguous("nll_loss", &[x, target, loss, total])?;
    let w = weight.unwrap_or(x);
    check_size(Kind::Index, span.length)?;
    let fault = gpu.index_fault(Kind::Index)?;
    let [who, dispatch] = fault.words;
    let p = Forward {
        n: n as u32,
        classes: span.length as u32,
        inner: span.inner as u32,
        ignore: ignore as u32,
        x_offset: x.offset() as u32,
        i_offset: target.offset() as u32,
        w_offset: w.offset() as u32,
        who,
        dispatch,
    };
    NLL.launch(Acc::F32)
        .set("HAS_WEIGHT", weight.is_some())
        .writes_words(loss)
        .writes_words(total)
        .writes_words(fault.buffer)
        .reads("X", x)
        .reads("I", target)
        .reads("W", w)
        .threads(gpu, &p, n)
}

/// The gradient `y` of the log-probabilities. `g` has one element or one for each target;
/// `divisor` is the float32 sum of weights that a mean was divided by.
pub fn nll_backward(
    gpu: &Gpu,
    span: Span,
    g: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore: i64,
    divisor: Option<&Tensor>,
    y: &Tensor,
) -> Result<()> {
    let n = y.numel();
    if n == 0 {
        return Ok(());
    }
    check_contiguous("nll_loss backward", &[g, target, y])?;
    let w = weight.unwrap_or(g);
    let q = divisor.unwrap_or(g);
    let p = Backward {
        n: n as u32,
        classes: span.length as u32,
        inner: span.inner as u32,
        ignore: ignore as u32,
        y_offset: y.offset() as u32,
        g_offset: g.offset() as u32,
        g_step: (g.numel() > 1) as u32,
        i_offset: target.offset() as u32,
        w_offset: w.offset() as u32,
        divisor_offset: q.offset() as u32,
    };
    NLL_BACKWARD
        .launch(Acc::F32)
        .set("HAS_WEIGHT", weight.is_some())
        .set("HAS_DIVISOR", divisor.is_some())
        .writes("Y", y)
        .reads("G", g)
        .reads("I", target)
        .reads("W", w)
        .reads_words(q)
        .each(gpu, &p, y.offset(), n)
}

/// What a loss makes of the losses of positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    None,
    Mean,
    Sum,
}

/// The sum of `losses` of positions, or by [`Reduction::Mean`] their mean, and `total`, that of their weights:
/// both float32 at offset 0.
pub fn sums(
    gpu: &Gpu,
    reduction: Reduction,
    n: usize,
    [losses, weights]: [&Tensor; 2],
    [loss, total]: [&Tensor; 2],
) -> Result<()> {
    ensure!(
        n <= WORKGROUP * MAX_SUMMED,
        NoKernel,
        "wgpu: a sum of {n} losses"
    );
    let p = Entropy {
        rows: n as u32,
        y_offset: loss.offset() as u32,
        ..bytemuck::Zeroable::zeroed()
    };
    let each = reduction == Reduction::None;
    ENTROPY
        .launch(Acc::F32)
        .entry("sums")
        .set("MEAN", reduction == Reduction::Mean)
        .set("EACH", each)
        .set("LANES", WORKGROUP as u32)
        .set("WG", WORKGROUP as u32)
        .writes("Y", if each { losses } else { loss })
        .writes("T", total)
        .writes_words(losses)
        .writes_words(losses)
        .reads_words(weights)
        .reads_words(weights)
        .reads_words(weights)
        .groups(gpu, &p, 1)
}

/// A cross entropy over the classes, which are the middle of `span`.
#[derive(Clone, Copy)]
pub struct Entropies {
    pub span: Span,
    pub ignore: i64,
    pub smoothing: f64,
    pub reduction: Reduction,
}

impl Reduction {
    /// By PyTorch's number.
    pub fn of(number: i64) -> Reduction {
        match number {
            NONE => Reduction::None,
            MEAN => Reduction::Mean,
            _ => Reduction::Sum,
        }
    }
}

impl Entropies {
    /// Sets how many invocations share a position; and how many workgroups there are.
    fn rows<'a, P: bytemuck::NoUninit>(
        &self,
        launch: Launch<'a, P>,
    ) -> Result<(Launch<'a, P>, usize)> {
        let (lanes, rows) = lanes_rows(self.span.length, 256);
        ensure!(
            self.span.length <= lanes as usize * MAX_TRIPS
                && self.span.lines() <= WORKGROUP * MAX_SUMMED,
            NoKernel,
            "wgpu: cross_entropy of {} positions of {} classes",
            self.span.lines(),
            self.span.length
        );
        let launch = launch
            .set("SMOOTH", self.smoothing > 0.0)
            .set("LANES", lanes)
            .set("ROWS", rows)
            .set("WG", lanes * rows);
        Ok((launch, self.span.lines().div_ceil(rows as usize)))
    }

    /// The loss, the sum of weights, and for each position the log-sum-exp of the contiguous
    /// scores `x` in float32.
    pub fn forward(
        &self,
        gpu: &Gpu,
        x: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        [loss, total, lse]: [&Tensor; 3],
    ) -> Result<()> {
        check_contiguous("cross_entropy", &[x, target, loss, total, lse])?;
        let n = self.span.lines();
        if n > 0 {
            check_size(Kind::Index, self.span.length)?;
        }
        let fault = gpu.index_fault(Kind::Index)?;
        let w = weight.unwrap_or(x);
        let [weights, losses] = [(); 2].map(|()| Tensor::empty(&[n], DType::F32, x.device()));
        let (weights, losses) = (&weights?, &losses?);
        let each = self.reduction == Reduction::None;
        let y = if each { loss } else { losses };
        let [who, dispatch] = fault.words;
        let p = Entropy {
            rows: n as u32,
            classes: self.span.length as u32,
            inner: self.span.inner as u32,
            ignore: self.ignore as u32,
            smoothing: self.smoothing as f32,
            x_offset: x.offset() as u32,
            i_offset: target.offset() as u32,
            w_offset: w.offset() as u32,
            y_offset: y.offset() as u32,
            lse_offset: lse.offset() as u32,
            infinity: f32::INFINITY.to_bits(),
            who,
            dispatch,
        };
        let launch = ENTROPY
            .launch(Acc::F32)
            .set("HAS_WEIGHT", weight.is_some())
            .writes("Y", y)
            .writes_words(weights)
            .writes_words(lse)
            .writes_words(fault.buffer)
            .reads("X", x)
            .reads("I", target)
            .reads("W", w);
        let (launch, groups) = self.rows(launch)?;
        launch.groups(gpu, &p, groups)?;
        sums(gpu, self.reduction, n, [losses, weights], [loss, total])
    }

    /// The gradient `y` of the scores for `g`, which has one element or one for each position.
    pub fn backward(
        &self,
        gpu: &Gpu,
        [g, x, target, total, lse]: [&Tensor; 5],
        weight: Option<&Tensor>,
        y: &Tensor,
    ) -> Result<()> {
        check_contiguous("cross_entropy backward", &[g, x, target, lse, y])?;
        let w = weight.unwrap_or(x);
        let p = EntropyBackward {
            rows: self.span.lines() as u32,
            classes: self.span.length as u32,
            inner: self.span.inner as u32,
            ignore: self.ignore as u32,
            smoothing: self.smoothing as f32,
            y_offset: y.offset() as u32,
            g_offset: g.offset() as u32,
            g_step: (g.numel() > 1) as u32,
            x_offset: x.offset() as u32,
            i_offset: target.offset() as u32,
            lse_offset: lse.offset() as u32,
            w_offset: w.offset() as u32,
            divisor_offset: total.offset() as u32,
        };
        let launch = ENTROPY_BACKWARD
            .launch(Acc::F32)
            .set("HAS_WEIGHT", weight.is_some())
            .set("HAS_DIVISOR", self.reduction == Reduction::Mean)
            .writes("Y", y)
            .reads("G", g)
            .reads("X", x)
            .reads("I", target)
            .reads_words(lse)
            .reads("T", total)
            .reads("W", w);
        let halves = |t: &Tensor| t.dtype().size() == 2 && t.offset().is_multiple_of(2);
        let side_by_side = self.span.inner == 1 && self.span.length.is_multiple_of(2);
        let launch = launch.set("PAIRS", side_by_side && halves(x) && halves(y));
        let (launch, groups) = self.rows(launch)?;
        launch.groups(gpu, &p, groups)
    }
}

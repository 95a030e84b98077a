//! Pieces of the negative log likelihood.

use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::{params, shader, Acc, Gpu};
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
shader! { static NLL: Forward = "nll.wgsl", Acc::FLOAT }
shader! { static NLL_BACKWARD: Backward = "nll_backward.wgsl", Acc::FLOAT }

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
        .threads(gpu, &p, n)
}

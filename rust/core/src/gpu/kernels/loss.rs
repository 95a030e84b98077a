//! Pieces of the negative log likelihood.

use super::{format, launch, require_contiguous, Params, View};
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::{Acc, Gpu};
use crate::shape::Span;

/// `loss = -weight[t] * x[.., t, ..]` and `total = weight[t]` for each target `t`; both are 0
/// where `t` is `ignore`. `x` holds log-probabilities; `span` is its class dimension. `loss` and
/// `total` are float32 at offset 0. All contiguous.
pub fn nll(
    gpu: &Gpu,
    span: Span,
    x: View,
    target: View,
    weight: Option<View>,
    ignore: i64,
    loss: View,
    total: View,
) -> Result<()> {
    let n = target.numel();
    if n == 0 {
        return Ok(());
    }
    require_contiguous("nll_loss", &[x, target, loss, total])?;
    let w = weight.unwrap_or(x);
    check_size(Kind::Index, span.length)?;
    let fault = gpu.index_fault(Kind::Index)?;
    let p = [
        n as u32,
        span.length as u32,
        span.inner as u32,
        ignore as u32,
        x.offset as u32,
        target.offset as u32,
        w.offset as u32,
        fault.words[0],
        fault.words[1],
    ];
    let constants = [
        ("X", format(x.dtype)),
        ("T", format(target.dtype)),
        ("W", format(w.dtype)),
        ("HAS_WEIGHT", weight.is_some() as u32),
    ];
    let written = [loss.buffer, total.buffer, fault.buffer];
    let read = [x.buffer, target.buffer, w.buffer];
    launch(gpu, "nll", Acc::F32, &constants, &written, &read, &p, n)
}

/// The gradient `d` of the log-probabilities. `g` has one element or one for each target;
/// `divisor` is the float32 sum of weights that a mean was divided by.
pub fn nll_backward(
    gpu: &Gpu,
    span: Span,
    g: View,
    target: View,
    weight: Option<View>,
    ignore: i64,
    divisor: Option<View>,
    d: View,
) -> Result<()> {
    let n = d.numel();
    if n == 0 {
        return Ok(());
    }
    require_contiguous("nll_loss backward", &[g, target, d])?;
    let w = weight.unwrap_or(g);
    let q = divisor.unwrap_or(g);
    let p: Params = smallvec::smallvec![
        n as u32,
        span.length as u32,
        span.inner as u32,
        ignore as u32,
        d.offset as u32,
        g.offset as u32,
        (g.numel() > 1) as u32,
        target.offset as u32,
        w.offset as u32,
        q.offset as u32,
    ];
    let constants = [
        ("D", format(d.dtype)),
        ("G", format(g.dtype)),
        ("T", format(target.dtype)),
        ("W", format(w.dtype)),
        ("HAS_WEIGHT", weight.is_some() as u32),
        ("HAS_DIVISOR", divisor.is_some() as u32),
    ];
    let read = [g.buffer, target.buffer, w.buffer, q.buffer];
    launch(
        gpu,
        "nll_backward",
        Acc::F32,
        &constants,
        &[d.buffer],
        &read,
        &p,
        n,
    )
}

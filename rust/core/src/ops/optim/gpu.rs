//! Fused optimizer steps on contiguous float32 parameters, in place.

use super::{Adam, Sgd};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::check_contiguous;

params! {
    struct SgdParams {
        n: u32,
        x_offset: u32,
        m_offset: u32,
        g_offset: u32,
        lr: f32,
        weight_decay: f32,
        momentum: f32,
        dampening: f32,
    }
}
params! {
    struct AdamParams {
        n: u32,
        x_offset: u32,
        m_offset: u32,
        v_offset: u32,
        top_offset: u32,
        g_offset: u32,
        lr: f32,
        weight_decay: f32,
        one_minus_beta1: f32,
        beta2: f32,
        one_minus_beta2: f32,
        eps: f32,
        step: f32,
        root: f32,
    }
}
shader! { static SGD: SgdParams = "sgd.wgsl", Acc::FLOAT }
shader! { static ADAM: AdamParams = "adam.wgsl", Acc::FLOAT }

fn check(what: &str, written: &[&Tensor], g: &Tensor) -> Result<()> {
    ensure!(
        written.iter().all(|t| t.dtype() == DType::F32),
        NotImplemented,
        "wgpu: {what}: parameters and states must be float32"
    );
    check_contiguous(what, written)?;
    check_contiguous(what, &[g])
}

/// One step for parameter `x` with gradient `g` and, where there is one, its momentum.
pub(super) fn sgd(gpu: &Gpu, s: &Sgd, x: &Tensor, g: &Tensor, m: Option<&Tensor>) -> Result<()> {
    let state = m.unwrap_or(x);
    check("sgd", &[x, state], g)?;
    let p = SgdParams {
        n: x.numel() as u32,
        x_offset: x.offset() as u32,
        m_offset: state.offset() as u32,
        g_offset: g.offset() as u32,
        lr: *s.lr as f32,
        weight_decay: *s.decay as f32,
        momentum: *s.momentum as f32,
        dampening: *s.dampening as f32,
    };
    SGD.launch(Acc::F32)
        .set("HAS_MOMENTUM", m.is_some())
        .set("FIRST", m.is_some() && s.first)
        .set("NESTEROV", s.nesterov)
        .set("MAXIMIZE", *s.sign < 0.0)
        .writes_words(x)
        .writes_words(state)
        .reads("G", g)
        .threads(gpu, &p, x.numel())
}

/// One step for parameter `x` with gradient `g`, first and second moments `m` and `v`, and with
/// AMSGrad the largest second moment. `bias` is `1 - beta^step` of both.
pub(super) fn adam(
    gpu: &Gpu,
    s: &Adam,
    bias: (f64, f64),
    [x, g, m, v]: [&Tensor; 4],
    top: Option<&Tensor>,
) -> Result<()> {
    let largest = top.unwrap_or(v);
    check("adam", &[x, m, v, largest], g)?;
    let p = AdamParams {
        n: x.numel() as u32,
        x_offset: x.offset() as u32,
        m_offset: m.offset() as u32,
        v_offset: v.offset() as u32,
        top_offset: largest.offset() as u32,
        g_offset: g.offset() as u32,
        lr: *s.lr as f32,
        weight_decay: *s.decay as f32,
        one_minus_beta1: (1.0 - *s.beta1) as f32,
        beta2: *s.beta2 as f32,
        one_minus_beta2: (1.0 - *s.beta2) as f32,
        eps: *s.eps as f32,
        step: (*s.lr / bias.0) as f32,
        root: bias.1.sqrt() as f32,
    };
    ADAM.launch(Acc::F32)
        .set("DECOUPLED", s.decoupled)
        .set("AMSGRAD", top.is_some())
        .set("MAXIMIZE", *s.sign < 0.0)
        .writes_words(x)
        .writes_words(m)
        .writes_words(v)
        .writes_words(largest)
        .reads("G", g)
        .threads(gpu, &p, x.numel())
}

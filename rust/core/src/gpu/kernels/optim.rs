//! Fused optimizer steps on contiguous float32 parameters, in place.

use super::{format, launch, require_contiguous, Params, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu};

/// SGD's settings.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    pub lr: f64,
    pub weight_decay: f64,
    pub momentum: f64,
    pub dampening: f64,
    pub nesterov: bool,
    pub maximize: bool,
}

/// Adam's and AdamW's settings.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    pub lr: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub weight_decay: f64,
    /// AdamW: the decay acts on the parameter, not on the gradient.
    pub decoupled: bool,
    pub maximize: bool,
}

fn check(what: &str, views: &[View], g: View) -> Result<()> {
    ensure!(
        views.iter().all(|v| v.dtype == DType::F32),
        NotImplemented,
        "wgpu: {what}: parameters and states must be float32"
    );
    require_contiguous(what, views)?;
    require_contiguous(what, &[g])
}

fn bits(v: f64) -> u32 {
    (v as f32).to_bits()
}

/// One step for parameter `x` with gradient `g`. `momentum` is its buffer, and whether it has no
/// value yet.
pub fn sgd(gpu: &Gpu, s: &Sgd, x: View, g: View, momentum: Option<(View, bool)>) -> Result<()> {
    let n = x.numel();
    if n == 0 {
        return Ok(());
    }
    let (m, first) = momentum.unwrap_or((x, false));
    check("sgd", &[x, m], g)?;
    let p: Params = smallvec::smallvec![
        n as u32,
        x.offset as u32,
        m.offset as u32,
        g.offset as u32,
        bits(s.lr),
        bits(s.weight_decay),
        bits(s.momentum),
        bits(s.dampening),
    ];
    let constants = [
        ("G", format(g.dtype)),
        ("HAS_MOMENTUM", momentum.is_some() as u32),
        ("FIRST", first as u32),
        ("NESTEROV", s.nesterov as u32),
        ("MAXIMIZE", s.maximize as u32),
    ];
    launch(
        gpu,
        "sgd",
        Acc::F32,
        &constants,
        &[x.buffer, m.buffer],
        &[g.buffer],
        &p,
        n,
    )
}

/// One step for parameter `x` with gradient `g`, first and second moments `m` and `v`, and with
/// AMSGrad the largest second moment `top`. `bias` is `1 - beta^step` of both.
pub fn adam(
    gpu: &Gpu,
    s: &Adam,
    bias: (f64, f64),
    x: View,
    g: View,
    [m, v]: [View; 2],
    top: Option<View>,
) -> Result<()> {
    let n = x.numel();
    if n == 0 {
        return Ok(());
    }
    let t = top.unwrap_or(v);
    check("adam", &[x, m, v, t], g)?;
    let p: Params = smallvec::smallvec![
        n as u32,
        x.offset as u32,
        m.offset as u32,
        v.offset as u32,
        t.offset as u32,
        g.offset as u32,
        bits(s.lr),
        bits(s.weight_decay),
        bits(1.0 - s.betas.0),
        bits(s.betas.1),
        bits(1.0 - s.betas.1),
        bits(s.eps),
        bits(s.lr / bias.0),
        bits(bias.1.sqrt()),
    ];
    let constants = [
        ("G", format(g.dtype)),
        ("DECOUPLED", s.decoupled as u32),
        ("AMSGRAD", top.is_some() as u32),
        ("MAXIMIZE", s.maximize as u32),
    ];
    let written = [x.buffer, m.buffer, v.buffer, t.buffer];
    launch(
        gpu,
        "adam",
        Acc::F32,
        &constants,
        &written,
        &[g.buffer],
        &p,
        n,
    )
}

//! Fused optimizer steps on contiguous float32 parameters, in place: several of them in one dispatch.

use super::{Adam, Sgd, GRADS};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::launch::{Launch, WORKGROUP};
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu, Tail};
use crate::tensor::Tensor;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::fmt::Write;
use std::mem::offset_of;

/// Parameters of one dispatch at most.
pub(super) const SLOTS: usize = 8;
const NUMBERS: Numbers = &[("SLOTS", SLOTS as u32)];

/// Where a parameter's own numbers begin in its slot.
const OWN: usize = 24;

/// What a kernel knows of each parameter: the elements, the offsets of the gradient and of what is
/// written, and two numbers of its own.
type Slots = [[u32; 8]; SLOTS];

params! {
    struct SgdParams {
        lr: f32,
        weight_decay: f32,
        momentum: f32,
        dampening: f32,
        slot: Slots,
    }
}
params! {
    struct AdamParams {
        lr: f32,
        weight_decay: f32,
        one_minus_beta1: f32,
        beta2: f32,
        one_minus_beta2: f32,
        eps: f32,
        pad0: u32,
        pad1: u32,
        slot: Slots,
    }
}
shader! {
    static SGD: SgdParams = "sgd.wgsl", Acc::FLOAT, numbers NUMBERS; tail &text(&["x", "m"], &[DType::F32; 2])
}
shader! {
    static ADAM: AdamParams = "adam.wgsl", Acc::FLOAT, numbers NUMBERS;
    tail &text(&["x", "m", "v", "top"], &[DType::F32; 2])
}

/// How many parameters one dispatch takes whose tensors stand in this many lists.
pub(super) fn at_once(device: Device, lists: usize) -> Result<usize> {
    let Device::Wgpu(index) = device else {
        return Ok(1);
    };
    let most = Gpu::at(index)?
        .info()
        .limits
        .max_storage_buffers_per_shader_stage as usize
        / lists;
    Ok(most.clamp(1, SLOTS))
}

/// Workgroups take elements of the first parameter, then of the next.
pub(super) const MAIN: &str = "
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    var id = group.x + group.y * groups.x;
    for (var s = 0u; s < COUNT; s++) {
        let n = p.slot[s][0].x;
        let own = (n + WG - 1u) / WG;
        if (id < own) {
            let i = id * WG + local;
            if (i < n) { update(s, i); }
            return;
        }
        id -= own;
    }
}
";

/// The bindings of parameters whose gradients are of these formats, and the step of element `i` of
/// parameter `s`: `written` are the fields of the file's `State`.
fn text(written: &[&str], formats: &[DType]) -> String {
    let n = formats.len();
    let mut out = String::new();
    let mut binding = 0;
    let mut bind = |out: &mut String, access: &str, name: &str, k: usize| {
        binding += 1;
        let _ = writeln!(
            out,
            "@group(0) @binding({binding}) var<storage, {access}> {name}{k}: array<u32>;"
        );
    };
    for k in 0..n {
        written
            .iter()
            .for_each(|name| bind(&mut out, "read_write", name, k));
    }
    (0..n).for_each(|k| bind(&mut out, "read", "g", k));
    for (k, g) in formats.iter().enumerate() {
        let _ = writeln!(out, "const G{k}: u32 = {}u;", *g as u32);
    }
    out.push_str("fn update(s: u32, i: u32) {\n    var state: State;\n    switch s {\n");
    for k in 0..n {
        let place = |j: usize| format!("p.slot[{k}][{}][{}] + i", (j + 2) / 4, (j + 2) % 4);
        let _ = writeln!(out, "case {k}u: {{\nlet at = p.slot[{k}][0].y + i;");
        for (j, name) in written.iter().enumerate() {
            let at = place(j);
            let _ = writeln!(out, "state.{name} = bitcast<f32>({name}{k}[{at}]);");
        }
        let _ = writeln!(
            out,
            "stepped(&state, decode(G{k}, g{k}[word(G{k}, at)], 0u, at), {k}u);"
        );
        for (j, name) in written.iter().enumerate() {
            let at = place(j);
            let _ = writeln!(out, "{name}{k}[{at}] = bitcast<u32>(state.{name});");
        }
        out.push_str("}\n");
    }
    out.push_str("default: {}\n}\n}\n");
    out.push_str(MAIN);
    out
}

/// [`text`] of these fields, written once.
fn known(written: &'static [&'static str], formats: &[DType]) -> Tail<'static> {
    type Made = (&'static [&'static str], Vec<DType>, Tail<'static>);
    static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());
    let mut made = MADE.lock();
    let of = made.iter().find(|m| m.0 == written && m.1 == formats);
    of.map(|m| m.2).unwrap_or_else(|| {
        let text: &'static str = text(written, formats).leak();
        made.push((written, formats.to_vec(), text.into()));
        text.into()
    })
}

/// The parameter, of `n`, whose tensors a kernel's slot binds: in those that are left empty the first, of which
/// there they have no element.
fn bound(slot: usize, n: usize) -> usize {
    if slot < n {
        slot
    } else {
        0
    }
}

/// The formats of the gradients of `n` parameters in a kernel for `room`.
fn formats(n: usize, room: usize, x: &[&Tensor]) -> SmallVec<[DType; SLOTS]> {
    let grads = &x[GRADS * n..(GRADS + 1) * n];
    (0..room).map(|i| grads[bound(i, n)].dtype()).collect()
}

/// Records a step of `n` parameters, whose tensors `x` stand in lists: parameters, gradients, and
/// states, by a kernel for `room`; `more` are a parameter's own numbers.
fn record<'a, P: bytemuck::NoUninit>(
    gpu: &Gpu,
    launch: Launch<'a, P>,
    (n, room): (usize, usize),
    x: &[&'a Tensor],
    more: impl Fn(usize) -> [f32; 2],
    block: impl FnOnce(Slots) -> P,
) -> Result<()> {
    let of = |i: usize, list: usize| -> &'a Tensor { x[list * n + i] };
    let written: SmallVec<[usize; 4]> = (0..x.len() / n).filter(|&l| l != GRADS).collect();
    let mut slots = Slots::default();
    let mut groups = 0;
    for (i, slot) in slots.iter_mut().take(n).enumerate() {
        slot[0] = x[i].numel() as u32;
        slot[1] = of(i, GRADS).offset() as u32;
        for (j, &list) in written.iter().enumerate() {
            slot[2 + j] = of(i, list).offset() as u32;
        }
        (slot[6], slot[7]) = more(i).map(f32::to_bits).into();
        groups += x[i].numel().div_ceil(WORKGROUP);
    }
    let mut launch = launch.set("COUNT", room as u32);
    for i in 0..room {
        for &list in &written {
            launch = launch.writes_words(of(bound(i, n), list));
        }
    }
    for i in 0..room {
        launch = launch.reads_words(of(bound(i, n), GRADS));
    }
    launch.groups(gpu, &block(slots), groups)
}

/// One step of `n` parameters: they, their gradients and, where there are any, their momenta.
pub(super) fn sgd(gpu: &Gpu, s: &Sgd, n: usize, room: usize, x: &[&Tensor]) -> Result<()> {
    let moves = x.len() > 2 * n;
    let text = known(&["x", "m"][..x.len() / n - 1], &formats(n, room, x));
    let launch = SGD
        .launch(Acc::F32)
        .followed_by(text)
        .set("HAS_MOMENTUM", moves)
        .set("FIRST", moves && s.first)
        .set("NESTEROV", s.nesterov)
        .set("MAXIMIZE", *s.sign < 0.0);
    let block = |slot| SgdParams {
        lr: *s.lr as f32,
        weight_decay: *s.decay as f32,
        momentum: *s.momentum as f32,
        dampening: *s.dampening as f32,
        slot,
    };
    let launch = launch.told(gpu, offset_of!(SgdParams, lr), 0, 1).told(
        gpu,
        offset_of!(SgdParams, momentum),
        1,
        1,
    );
    record(gpu, launch, (n, room), x, |_| [0.0; 2], block)
}

/// One step of parameters: they, their gradients, first and second moments, and with AMSGrad the
/// largest second moments. `times` are the steps that each took.
pub(super) fn adam(gpu: &Gpu, s: &Adam, times: &[f64], room: usize, x: &[&Tensor]) -> Result<()> {
    let n = times.len();
    let text = known(
        &["x", "m", "v", "top"][..x.len() / n - 1],
        &formats(n, room, x),
    );
    let launch = ADAM
        .launch(Acc::F32)
        .followed_by(text)
        .set("DECOUPLED", s.decoupled)
        .set("AMSGRAD", x.len() > 4 * n)
        .set("MAXIMIZE", *s.sign < 0.0);
    let block = |slot| AdamParams {
        lr: *s.lr as f32,
        weight_decay: *s.decay as f32,
        one_minus_beta1: (1.0 - *s.beta1) as f32,
        beta2: *s.beta2 as f32,
        one_minus_beta2: (1.0 - *s.beta2) as f32,
        eps: *s.eps as f32,
        pad0: 0,
        pad1: 0,
        slot,
    };
    let mut launch = launch.told(gpu, offset_of!(AdamParams, lr), 0, 1).told(
        gpu,
        offset_of!(AdamParams, one_minus_beta1),
        1,
        1,
    );
    for i in 0..n {
        let own = offset_of!(AdamParams, slot) + size_of::<[u32; 8]>() * i + OWN;
        launch = launch.told(gpu, own, 2 + 2 * i, 2);
    }
    record(gpu, launch, (n, room), x, |i| s.sizes(times[i]), block)
}

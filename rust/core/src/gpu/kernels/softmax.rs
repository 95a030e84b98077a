//! Softmax and log-softmax, forward and backward.

use super::{format, lanes_rows, Params, View};
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu, Kernel};
use crate::shape::Span;

/// Elements of a row that one invocation may take: three loops over them stay below 65,535 trips.
const MAX_TRIPS: usize = 20_000;

fn launch(
    gpu: &Gpu,
    file: &'static str,
    log: bool,
    span: Span,
    views: &[View],
    names: &[&'static str],
    extra: &[u32],
) -> Result<()> {
    if views[0].numel() == 0 {
        return Ok(());
    }
    let (lanes, rows) = lanes_rows(span.length, 256);
    ensure!(
        span.length <= lanes as usize * MAX_TRIPS,
        NotImplemented,
        "wgpu: {file}: a row of {} elements",
        span.length
    );
    ensure!(
        views.iter().all(|v| v.is_contiguous()),
        Runtime,
        "wgpu: {file}: tensors must be contiguous"
    );
    let mut p: Params =
        smallvec::smallvec![span.lines() as u32, span.length as u32, span.inner as u32];
    p.extend_from_slice(extra);
    let mut constants: smallvec::SmallVec<[(&'static str, u32); 8]> = smallvec::smallvec![
        ("LOG", log as u32),
        ("LANES", lanes),
        ("ROWS", rows),
        ("WG", lanes * rows)
    ];
    constants.extend(
        names
            .iter()
            .zip(views)
            .map(|(&name, v)| (name, format(v.dtype))),
    );
    let kernel = Kernel {
        file,
        entry: "main",
        acc: Acc::F32,
        constants: &constants,
        tail: [""; 2],
        writes: 1,
        reads: views.len() - 1,
    };
    let buffers: smallvec::SmallVec<[_; 3]> = views.iter().map(|v| v.buffer).collect();
    gpu.dispatch(
        &kernel,
        &buffers,
        &p,
        gpu.grid(span.lines().div_ceil(rows as usize))?,
    )
}

/// `y = softmax(x)` or its logarithm over `span`; both contiguous floats of 16 or 32 bits.
pub fn softmax(gpu: &Gpu, log: bool, span: Span, x: View, y: View) -> Result<()> {
    let extra = [x.offset as u32, y.offset as u32, f32::INFINITY.to_bits()];
    launch(gpu, "softmax", log, span, &[y, x], &["Y", "X"], &extra)
}

/// The gradient `d` of the input from the result `y` and its gradient `g`; all contiguous.
pub fn softmax_backward(gpu: &Gpu, log: bool, span: Span, y: View, g: View, d: View) -> Result<()> {
    let extra = [d.offset as u32, y.offset as u32, g.offset as u32];
    launch(
        gpu,
        "softmax_backward",
        log,
        span,
        &[d, y, g],
        &["D", "X", "G"],
        &extra,
    )
}

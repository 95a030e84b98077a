//! Places among sorted elements on the GPU, and where a mask is true. Only how many there are is read.

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::scan::{Scan, Step};
use crate::gpu::{params, shader, Acc, Gpu, Scratch};
use crate::ops::index::gpu::{bindable, most_rows};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Ne;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{dense, owned, whole, windowed};
use crate::{bail, ensure};

params! {
    struct Block {
        n: u32,
        length: u32,
        width: u32,
        line_step: u32,
        s_offset: u32,
        v_offset: u32,
        y_offset: u32,
    }
}
shader! { static SEARCH: Block = "search.wgsl", Acc::ALL }

/// The GPU that holds a tensor.
fn home(x: &Tensor) -> Result<&'static Gpu> {
    match x.device() {
        Device::Wgpu(index) => Gpu::at(index),
        other => bail!(
            Assertion,
            "wgpu: expected a tensor on the GPU, got one on {other}"
        ),
    }
}

/// How many of the sorted edges, one line or one for each line of values, lie before each value.
pub fn search(edges: &Tensor, values: &Tensor, right: bool, dtype: DType) -> Result<Tensor> {
    let gpu = home(edges)?;
    let y = Tensor::empty(values.shape(), dtype, edges.device())?;
    if y.numel() == 0 {
        return Ok(y);
    }
    let length = edges.size(edges.ndim() - 1);
    if length == 0 {
        y.write_scalar(0.into())?;
        return Ok(y);
    }
    let acc = Acc::of(edges.dtype().promote(values.dtype()))?;
    let width = match edges.ndim() > 1 {
        true => values.size(values.ndim() - 1),
        false => values.numel(),
    };
    let lines = values.numel() / width;
    let given = |t: &Tensor, length| {
        let t = t.detach().to_dtype(acc.dtype())?;
        dense(gpu, &t)?.reshape_to(&[lines, length])
    };
    let (edges, values) = (given(edges, length)?, given(values, width)?);
    search_lines(gpu, &edges, &values, right, &y.reshape_to(&[lines, width])?)?;
    Ok(y)
}

/// [`search`] in each line for the values of that line, all of one type; parts of what is larger than a
/// binding.
fn search_lines(gpu: &Gpu, edges: &Tensor, values: &Tensor, right: bool, y: &Tensor) -> Result<()> {
    let room = (gpu.info().max_binding / 5 * 4) as usize;
    let is_large = |t: &Tensor| t.numel() * t.dtype().size() > room;
    let halves = |t: &Tensor, d: usize| -> Result<[Tensor; 2]> {
        let (n, half) = (t.size(d) as i64, t.size(d) as i64 / 2);
        Ok([
            t.narrow(d as i64, 0, half)?,
            t.narrow(d as i64, half, n - half)?,
        ])
    };
    if ![edges, values, y].into_iter().any(is_large) {
        return search_in(
            gpu,
            &bindable(gpu, edges)?,
            &bindable(gpu, values)?,
            right,
            y,
        );
    }
    let by_line = edges.size(0) > 1;
    if !by_line && is_large(edges) {
        // A value has as many before it as in both halves together.
        let [low, high] = halves(edges, 1)?;
        search_lines(gpu, &low, values, right, y)?;
        let more = Tensor::empty(y.shape(), y.dtype(), y.device())?;
        search_lines(gpu, &high, values, right, &more)?;
        return y.write_from(&y.add(&more)?);
    }
    let d = !by_line as usize;
    for ((k, values), y) in halves(values, d)?.iter().enumerate().zip(halves(y, d)?) {
        let own = match by_line {
            true => &halves(edges, 0)?[k],
            false => edges,
        };
        search_lines(gpu, own, values, right, &y)?;
    }
    Ok(())
}

/// [`search_lines`] of what a kernel can bind.
fn search_in(gpu: &Gpu, edges: &Tensor, values: &Tensor, right: bool, y: &Tensor) -> Result<()> {
    let (lines, length) = (edges.size(0), edges.size(1));
    let window = windowed(gpu, y);
    let out = match &window {
        Some(y) => y.clone(),
        None => Tensor::empty(y.shape(), y.dtype(), y.device())?,
    };
    ensure!(
        edges.numel().max(values.numel()) < 1 << 31,
        NoKernel,
        "wgpu: search: {} values",
        values.numel()
    );
    let p = Block {
        n: values.numel() as u32,
        length: length as u32,
        width: values.size(1) as u32,
        line_step: if lines > 1 { length as u32 } else { 0 },
        s_offset: edges.offset() as u32,
        v_offset: values.offset() as u32,
        y_offset: out.offset() as u32,
    };
    SEARCH
        .launch(Acc::of(edges.dtype())?)
        .set("RIGHT", right)
        .writes("Y", &out)
        .reads("S", edges)
        .reads("V", values)
        .threads(gpu, &p, values.numel())?;
    match window {
        Some(_) => Ok(()),
        None => y.write_from(&out),
    }
}

/// The integers from `first` on.
pub fn count_from(like: &Tensor, first: i64, n: usize) -> Result<Tensor> {
    let y = Tensor::empty(&[n], DType::I32, like.device())?;
    let body = "fn op() -> Acc { return scalar(0u) + Acc(position); }\n";
    let first = [Acc::I32.int_words(first)];
    pointwise(home(like)?, Acc::I32, body, &[], whole(&y)?, &first)?;
    Ok(y)
}

/// Running sums of the truth values of a line, and the last of them; parts of what is larger than a
/// binding.
pub fn running(truth: &Tensor) -> Result<(Tensor, usize)> {
    let gpu = home(truth)?;
    let (n, room) = (truth.numel(), most_rows(gpu, 0));
    if n <= room {
        return running_in(gpu, &bindable(gpu, truth)?);
    }
    let (sums, mut count) = (Tensor::empty(truth.shape(), DType::I32, truth.device())?, 0);
    for start in (0..n).step_by(room) {
        let piece = |t: &Tensor| t.narrow(0, start as i64, room.min(n - start) as i64);
        let (own, more) = running_in(gpu, &bindable(gpu, &piece(truth)?)?)?;
        piece(&sums)?.write_from(&own.add_scalar(count as i64)?)?;
        count += more;
    }
    Ok((sums, count))
}

/// [`running`] of what a kernel can bind.
fn running_in(gpu: &Gpu, truth: &Tensor) -> Result<(Tensor, usize)> {
    let x = dense(gpu, &truth.to_dtype(DType::I32)?)?;
    let y = Scratch::new(gpu, x.shape(), DType::I32)?;
    Scan {
        step: Step::Sum,
        reverse: false,
        lines: Span::of(x.shape(), 0),
        x: whole(&x)?,
        b: None,
        segments: None,
        blend: "",
    }
    .run(gpu, y.view(), None)?;
    let sums = owned(y);
    let last = sums.narrow(0, sums.numel() as i64 - 1, 1)?;
    let count = last.reshape_to(&[])?.item()?.i64() as usize;
    Ok((sums, count))
}

/// Where a flat tensor is not zero: int32, ascending.
pub fn places(x: &Tensor) -> Result<Tensor> {
    let x = x.detach().reshape(&[-1])?;
    if x.numel() == 0 {
        return Tensor::empty(&[0], DType::I32, x.device());
    }
    let zero = Tensor::zeros(&[], x.dtype(), x.device())?;
    let (sums, count) = running(&apply(Ne, [&x, &zero])?)?;
    search(&sums, &count_from(&x, 1, count)?, false, DType::I32)
}

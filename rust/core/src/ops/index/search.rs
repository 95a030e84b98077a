//! Places among sorted elements on the GPU, and where a mask is true. Only how many there are is read.

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::scan::{Scan, Step};
use crate::gpu::{params, shader, Acc, Gpu, Scratch};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Ne;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{dense, owned, whole};
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
    let given = |t: &Tensor| dense(gpu, &t.detach().to_dtype(acc.dtype())?);
    let (edges, values) = (given(edges)?, given(values)?);
    ensure!(
        edges.numel().max(values.numel()) < 1 << 31,
        NotImplemented,
        "wgpu: search: {} values",
        values.numel()
    );
    let lines = edges.ndim() > 1;
    let p = Block {
        n: values.numel() as u32,
        length: length as u32,
        width: match lines {
            true => values.size(values.ndim() - 1),
            false => values.numel(),
        } as u32,
        line_step: if lines { length as u32 } else { 0 },
        s_offset: edges.offset() as u32,
        v_offset: values.offset() as u32,
        y_offset: y.offset() as u32,
    };
    SEARCH
        .launch(acc)
        .set("RIGHT", right)
        .writes("Y", &y)
        .reads("S", &edges)
        .reads("V", &values)
        .threads(gpu, &p, values.numel())?;
    Ok(y)
}

/// The integers from `first` on.
pub fn count_from(like: &Tensor, first: i64, n: usize) -> Result<Tensor> {
    let y = Tensor::empty(&[n], DType::I32, like.device())?;
    let body = "fn op() -> Acc { return scalar(0u) + Acc(position); }\n";
    let first = [Acc::I32.int_words(first)];
    pointwise(home(like)?, Acc::I32, body, &[], whole(&y)?, &first)?;
    Ok(y)
}

/// Running sums of the truth values of a line, and the last of them.
pub fn running(truth: &Tensor) -> Result<(Tensor, usize)> {
    let gpu = home(truth)?;
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

//! Maxima of windows of any place and length, on the GPU.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::nn::resample::gpu::MAX_VOLUME;
use crate::tensor::Tensor;
use crate::transfer::check_contiguous;

/// Where a window reads along one dimension: `start, start + step, ..` below `end`; nowhere if it
/// steps over a short input, from padding to padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) step: usize,
}

params! {
    struct Block {
        n: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        in_size: [u32; 4],
        out_size: [u32; 4],
        least: [u32; 4],
    }
}
shader! { static MAX_WINDOWS: Block = "max_windows.wgsl", Acc::ALL }

/// The largest element of each window over planes of `n` dimensions, and where it is.
pub fn max(
    gpu: &Gpu,
    spans: &[Vec<Span>; 3],
    n: usize,
    x: &Tensor,
    y: &Tensor,
    index: &Tensor,
) -> Result<()> {
    check_contiguous("max_pool", &[x, y, index])?;
    let steps = |s: &Span| s.end.saturating_sub(s.start).div_ceil(s.step) + 1;
    let longest = spans
        .each_ref()
        .map(|all| all.iter().map(steps).max().unwrap_or(1));
    let large = x.numel().max(y.numel());
    ensure!(
        longest.iter().product::<usize>() < MAX_VOLUME && large < 1 << 31,
        NoKernel,
        "wgpu: max_pool: windows of {longest:?}"
    );
    let acc = Acc::of(x.dtype())?;
    let [l0, l1] = match acc {
        Acc::F32 | Acc::F64 => acc.words(f64::NEG_INFINITY),
        _ => acc.int_words(x.dtype().limits().0),
    };
    let mut in_size = [1; 4];
    for (to, &size) in in_size[3 - n..].iter_mut().zip(&x.shape()[x.ndim() - n..]) {
        *to = size as u32;
    }
    let [zs, ys, xs] = spans.each_ref().map(|all| all.len() as u32);
    let table: Vec<u32> = spans
        .iter()
        .flatten()
        .flat_map(|s| [s.start, s.end, s.step].map(|v| v as u32))
        .collect();
    let table = Tensor::from_slice(&table, &[table.len()], DType::I32)?.to_device(gpu.device())?;
    let p = Block {
        n: y.numel() as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        i_offset: index.offset() as u32,
        in_size,
        out_size: [zs, ys, xs, 1],
        least: [l0, l1, 0, 0],
    };
    MAX_WINDOWS
        .launch(acc)
        .writes("Y", y)
        .writes("I", index)
        .reads("X", x)
        .reads_words(&table)
        .each(gpu, &p, y.offset(), y.numel())
}

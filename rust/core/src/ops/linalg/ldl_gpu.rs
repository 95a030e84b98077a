//! L D L' on the GPU. What one dispatch must not take is cut into several.

use super::{batch_of, cols, rows};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::WORKGROUP;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;

params! {
    struct Block {
        count: u32,
        rows: u32,
        columns: u32,
        steps: u32,
        work_offset: u32,
        pivot_offset: u32,
        info_offset: u32,
        a_offset: u32,
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
shader! { static LDL: Block = "ldl.wgsl", FLOATS }

/// Loop iterations of an invocation: software Vulkan ends it after 65,535.
const MAX_TRIPS: usize = 60_000;

/// Runs an entry until every one of `n` rows had its turn, where a step takes `trips` iterations at most.
fn in_parts(
    gpu: &Gpu,
    entry: &'static str,
    [work, pivots, info, state, a]: [&Tensor; 5],
    columns: usize,
    trips: usize,
) -> Result<()> {
    let n = rows(work);
    let count: usize = batch_of(work).iter().product();
    ensure!(
        work.numel().max(a.numel()) < 1 << 31 && trips <= MAX_TRIPS,
        NoKernel,
        "wgpu: linalg: matrices of {n} by {n}"
    );
    let most = MAX_TRIPS / trips;
    let groups = match entry {
        "ldl" => count,
        _ => (count * columns).div_ceil(WORKGROUP),
    };
    let mut block = Block {
        count: count as u32,
        rows: n as u32,
        columns: columns as u32,
        steps: 0,
        work_offset: work.offset() as u32,
        pivot_offset: pivots.offset() as u32,
        info_offset: info.offset() as u32,
        a_offset: a.offset() as u32,
    };
    for first in (0..n).step_by(most) {
        block.steps = most.min(n - first) as u32;
        LDL.launch(Acc::of(work.dtype())?)
            .entry(entry)
            .writes_words(work)
            .writes_words(pivots)
            .writes_words(info)
            .writes_words(state)
            .reads_words(a)
            .groups(gpu, &block, groups)?;
    }
    Ok(())
}

/// Packs L and D of the lower triangles of `a`; the rows exchanged, and the first zero blocks.
pub fn factor(gpu: &Gpu, a: &Tensor, y: &[Tensor]) -> Result<()> {
    let (n, count) = (cols(a), y[2].numel());
    y[0].write_from(&a.tril(0)?)?;
    y[2].write_scalar(0.into())?;
    let state = Tensor::zeros(&[count], DType::I32, gpu.device())?;
    let spare = Tensor::empty(&[1], DType::I32, gpu.device())?;
    let trips = 30 + 5 * n.div_ceil(WORKGROUP) + (n * n).div_ceil(WORKGROUP);
    in_parts(gpu, "ldl", [&y[0], &y[1], &y[2], &state, &spare], 0, trips)
}

/// Overwrites `b` by the solution for factors with their pivots as a last column.
pub fn solve(gpu: &Gpu, packed: &Tensor, b: &Tensor) -> Result<()> {
    let (n, k) = (rows(b), cols(b));
    let spare = |n: usize| Tensor::empty(&[n], DType::I32, gpu.device());
    let (first, second) = (spare(1)?, spare(1)?);
    let state = Tensor::zeros(&[b.numel() / n], DType::I32, gpu.device())?;
    let tensors = [b, &first, &second, &state, packed];
    in_parts(gpu, "forward", tensors, k, n + 2)?;
    in_parts(gpu, "backward", tensors, k, 2 * n + 3)
}

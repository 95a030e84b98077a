//! Segments on the GPU, of floats of any size that the adapter computes in.

use super::{Combine, Extent, SegmentReduce, SegmentSpread};
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::{lanes_rows, Launch, WORKGROUP};
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, dense};

/// Elements of a segment that one invocation may take, and that a segment may have.
const MAX_TRIPS: usize = 60_000;
pub const LONGEST: usize = MAX_TRIPS * WORKGROUP;

params! {
    struct Block {
        // The words of what changes nothing, and of what every segment begins with.
        identity: [u32; 2],
        initial: [u32; 2],
        // The words of the mean of no elements.
        empty: [u32; 2],
        rows: u32,
        segments: u32,
        length: u32,
        inner: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        pad: u32,
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
const NUMBERS: Numbers = &[
    ("SUM", Combine::Sum as u32),
    ("MEAN", Combine::Mean as u32),
    ("MAX", Combine::Max as u32),
    ("MIN", Combine::Min as u32),
    ("PROD", Combine::Prod as u32),
];
shader! { static SEGMENT_REDUCE: Block = "segment_reduce.wgsl", FLOATS, numbers NUMBERS }

/// A dispatch over all that has to be told, with `rows` results.
fn launch<'a>(
    x: &'a Tensor,
    bounds: &'a Tensor,
    y: &'a Tensor,
    e: Extent,
    combine: Combine,
) -> Result<(Launch<'a, Block>, Block, Acc)> {
    check_contiguous("segment_reduce", &[x, bounds, y])?;
    let most = x.numel().max(y.numel()).max(bounds.numel());
    ensure!(
        most < 1 << 31,
        NoKernel,
        "wgpu: segment_reduce: {most} elements"
    );
    let acc = Acc::of(x.dtype())?;
    let block = Block {
        identity: acc.words(combine.identity()),
        initial: acc.words(combine.identity()),
        empty: acc.words(f64::NAN),
        rows: y.numel() as u32,
        segments: e.segments as u32,
        length: e.length as u32,
        inner: e.inner as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        i_offset: bounds.offset() as u32,
        pad: 0,
    };
    let launch = SEGMENT_REDUCE
        .launch(acc)
        .set("OP", combine as u32)
        .writes("Y", y)
        .reads("X", x)
        .reads("I", bounds);
    Ok((launch, block, acc))
}

pub fn reduce(
    gpu: &Gpu,
    op: &SegmentReduce,
    x: &Tensor,
    bounds: &Tensor,
    y: &Tensor,
) -> Result<()> {
    let e = Extent::of(x.shape(), bounds.shape());
    if y.numel() == 0 {
        return Ok(());
    }
    if x.numel() == 0 {
        // There is nothing to bind: one element that no segment has.
        let mut shape = x.shape().clone();
        shape[bounds.ndim() - 1] = 1;
        let nothing = Tensor::zeros(&shape, x.dtype(), x.device())?;
        return reduce(gpu, op, &nothing, bounds, y);
    }
    let (x, bounds) = (dense(gpu, x)?, dense(gpu, bounds)?);
    let (launch, mut block, acc) = launch(&x, &bounds, y, e, op.combine)?;
    if let Some(v) = op.initial {
        block.initial = acc.words(v.f64());
        block.empty = block.initial;
    }
    // One segment may be the longest that there can be; those of one length are quickest with as
    // many invocations as they have elements, where neighbours in memory are in one segment.
    let usual = if e.inner < 32 {
        e.length / e.segments
    } else {
        1
    };
    let needed = e.length.div_ceil(MAX_TRIPS);
    let (lanes, rows) = lanes_rows(usual.max(needed), WORKGROUP);
    ensure!(
        needed <= WORKGROUP,
        NoKernel,
        "wgpu: segment_reduce: a dimension of {} elements",
        e.length
    );
    let groups = y.numel().div_ceil(rows as usize);
    let launch = launch.set("LANES", lanes).set("ROWS", rows);
    launch.set("WG", lanes * rows).groups(gpu, &block, groups)
}

pub fn spread(
    gpu: &Gpu,
    op: &SegmentSpread,
    g: &Tensor,
    bounds: &Tensor,
    y: &Tensor,
) -> Result<()> {
    let e = Extent::of(y.shape(), bounds.shape());
    if y.numel() == 0 {
        return Ok(());
    }
    if g.numel() == 0 {
        return y.write_scalar(0.into());
    }
    let combine = match op.mean {
        true => Combine::Mean,
        false => Combine::Sum,
    };
    let (g, bounds) = (dense(gpu, g)?, dense(gpu, bounds)?);
    let (launch, block, _) = launch(&g, &bounds, y, e, combine)?;
    let launch = launch.entry("spread").set("WG", WORKGROUP as u32);
    launch.each(gpu, &block, y.offset(), y.numel())
}

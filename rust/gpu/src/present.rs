//! Means of the elements that are not NaN, and how many those are.

use super::launch::{lanes_rows, Launch};
use super::reduce::{in_rows, plan};
use super::{params, shader, Acc, Gpu, Scratch, View};
use crate::ensure;
use crate::error::Result;
use crate::shape::DimSet;

params! {
    struct Block {
        rows: u32,
        length: u32,
        splits: u32,
        part: u32,
        x_offset: u32,
        y_offset: u32,
        beside_offset: u32,
        pad: u32,
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
shader! { static PRESENT: Block = "present.wgsl", &[Acc::F32, Acc::F64] }

/// Binds what both kernels write.
fn writing<'a>(
    gpu: &Gpu,
    acc: Acc,
    mut p: Block,
    y: View<'a>,
    counts: View<'a>,
) -> (Launch<'a, Block>, Block) {
    let ((to, y_offset), (counts, beside_offset)) = (y.bound(gpu), counts.bound(gpu));
    (p.y_offset, p.beside_offset) = (y_offset, beside_offset);
    let launch = PRESENT.launch(acc).writes("Y", to).writes_words(counts);
    (launch, p)
}

/// The mean `y` of what is not NaN of `x` over `dims`, computed in the type of `counts`, which becomes how many
/// those are. `y` and `counts` are contiguous and hold the kept dimensions; `x` has elements.
pub fn present(gpu: &Gpu, x: View, dims: DimSet, y: View, counts: View) -> Result<()> {
    let acc = Acc::of(counts.dtype)?;
    gpu.require(acc, "reduction")?;
    let bound = [x, y, counts].iter().all(|v| v.too_wide(gpu).is_none());
    ensure!(
        bound,
        NoKernel,
        "wgpu: a mean of what is not NaN, of more than a binding"
    );
    if let Some(rows) = in_rows(gpu, x, dims)? {
        return present(gpu, rows.view(), [1].into(), y, counts);
    }
    let plan = plan(x, dims)?;
    let (from, x_offset) = x.bound(gpu);
    let p = Block {
        rows: plan.rows as u32,
        length: plan.length as u32,
        splits: plan.splits as u32,
        part: plan.part as u32,
        x_offset,
        y_offset: 0,
        beside_offset: 0,
        pad: 0,
        outer_size: plan.kept.words(),
        outer_stride: plan.kept.stride_words(0),
        inner_size: plan.reduced.words(),
        inner_stride: plan.reduced.stride_words(0),
    };
    let reads = plan.reads();
    if plan.splits == 1 {
        let (launch, p) = writing(gpu, acc, p, y, counts);
        let launch = plan.launch(launch).reads("X", from);
        let launch = launch.reads_if("", None::<View>);
        let launch = launch.prologue("x", x, (1, reads)).epilogue(y);
        return launch.groups(gpu, &p, plan.groups());
    }
    let own = || Scratch::new(gpu, &[plan.rows, plan.splits], acc.dtype());
    let (sums, parts) = (own()?, own()?);
    let (launch, first) = writing(gpu, acc, p, sums.view(), parts.view());
    let launch = plan.launch(launch).set("PART", true);
    launch
        .reads("X", from)
        .reads_if("", None::<View>)
        .prologue("x", x, (1, reads))
        .epilogue(sums.view())
        .groups(gpu, &first, plan.groups())?;
    let (launch, p) = writing(gpu, acc, p, y, counts);
    let (lanes, rows) = lanes_rows(plan.splits, 256);
    launch
        .entry("join")
        .set("LANES", lanes)
        .set("ROWS", rows)
        .set("WG", lanes * rows)
        .reads("X", sums.view())
        .reads_words(parts.view())
        .epilogue(y)
        .groups(gpu, &p, plan.rows.div_ceil(rows as usize))
}

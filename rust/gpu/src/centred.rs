//! Reductions of distances from a centre, which is a reduction too: variances, and logarithms of sums of
//! exponentials.

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
        free: [u32; 2],
        nothing: [u32; 2],
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
shader! { static CENTRED: Block = "centred.wgsl", &[Acc::F32, Acc::F64] }

/// What distances give.
#[derive(Clone, Copy, Debug)]
pub enum Centred {
    /// Squares of those from the mean over `free`, or the root of that.
    Variance { free: f64, root: bool },
    /// The logarithm of the sum of exponentials, by distances from the largest.
    LogSumExp,
}

impl Centred {
    /// What both kernels write.
    fn launch<'a>(
        self,
        gpu: &Gpu,
        acc: Acc,
        mut p: Block,
        y: View<'a>,
        centre: View<'a>,
    ) -> (Launch<'a, Block>, Block) {
        let ((to, y_offset), (centre, beside_offset)) = (y.bound(gpu), centre.bound(gpu));
        (p.y_offset, p.beside_offset) = (y_offset, beside_offset);
        let launch = CENTRED
            .launch(acc)
            .set("LOG", matches!(self, Centred::LogSumExp))
            .set("ROOT", matches!(self, Centred::Variance { root: true, .. }))
            .writes("Y", to)
            .writes_words(centre);
        (launch, p)
    }
}

/// `y` of `x` over `dims`, and the centre of each row in the type that is computed in. `y` and `centre` are
/// contiguous and hold the kept dimensions; `x` has elements.
pub fn centred(
    gpu: &Gpu,
    what: Centred,
    x: View,
    dims: DimSet,
    y: View,
    centre: View,
) -> Result<()> {
    let acc = Acc::of(x.dtype)?;
    let bound = [x, y, centre].iter().all(|v| v.too_wide(gpu).is_none());
    ensure!(
        bound,
        NoKernel,
        "wgpu: a centred reduction of more than a binding"
    );
    if let Some(rows) = in_rows(gpu, x, dims)? {
        return centred(gpu, what, rows.view(), [1].into(), y, centre);
    }
    let plan = plan(x, dims)?;
    let (free, nothing) = match what {
        Centred::Variance { free, .. } => (free, 0.0),
        Centred::LogSumExp => (1.0, f64::NEG_INFINITY),
    };
    let (x_bound, x_offset) = x.bound(gpu);
    let p = Block {
        rows: plan.rows as u32,
        length: plan.length as u32,
        splits: plan.splits as u32,
        part: plan.part as u32,
        x_offset,
        y_offset: 0,
        beside_offset: 0,
        pad: 0,
        free: acc.words(free),
        nothing: acc.words(nothing),
        outer_size: plan.kept.words(),
        outer_stride: plan.kept.stride_words(0),
        inner_size: plan.reduced.words(),
        inner_stride: plan.reduced.stride_words(0),
    };
    if plan.splits == 1 {
        let (launch, p) = what.launch(gpu, acc, p, y, centre);
        let launch = plan.launch(launch).reads("X", x_bound).reads_words(x_bound);
        return launch.groups(gpu, &p, plan.groups());
    }
    let own = |n| Scratch::new(gpu, &[plan.rows, plan.splits, n], acc.dtype());
    let (sums, centres) = (own(2)?, own(1)?);
    let (launch, first) = what.launch(gpu, acc, p, sums.view(), centres.view());
    let launch = plan.launch(launch).set("PART", true);
    let launch = launch.reads("X", x_bound).reads_words(x_bound);
    launch.groups(gpu, &first, plan.groups())?;
    let (launch, p) = what.launch(gpu, acc, p, y, centre);
    let (lanes, rows) = lanes_rows(plan.splits, 256);
    launch
        .entry("join")
        .set("LANES", lanes)
        .set("ROWS", rows)
        .set("WG", lanes * rows)
        .reads("X", sums.view())
        .reads_words(centres.view())
        .groups(gpu, &p, plan.rows.div_ceil(rows as usize))
}

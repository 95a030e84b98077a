//! Reductions over any dimensions.

use super::geometry::{coalesce, Dims};
use super::launch::{lanes_rows, Launch};
use super::shader::Numbers;
use super::view::halves;
use super::{copy, params, shader, Acc, Gpu, Scratch, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::shape::DimSet;
use smallvec::SmallVec;

params! {
    struct Block {
        rows: u32,
        length: u32,
        splits: u32,
        part: u32,
        x_offset: u32,
        y_offset: u32,
        scale: f32,
        pad: u32,
        identity: [u32; 4],
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
params! {
    struct ArgBlock {
        rows: u32,
        length: u32,
        splits: u32,
        part: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        pad: u32,
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
shader! {
    static REDUCE: Block = "reduce.wgsl", Acc::ALL, numbers Combine::NUMBERS, Map::NUMBERS
}
shader! { static ARG_REDUCE: ArgBlock = "arg_reduce.wgsl", Acc::ALL }

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
}

impl Combine {
    const NUMBERS: Numbers = &[
        ("SUM", Combine::Sum as u32),
        ("PROD", Combine::Prod as u32),
        ("MAX", Combine::Max as u32),
        ("MIN", Combine::Min as u32),
        ("ANY", Combine::Any as u32),
        ("ALL", Combine::All as u32),
    ];
}

/// What happens to each element first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    Keep,
    Square,
    Magnitude,
    Truth,
    /// Zero where it is NaN.
    Present,
}

impl Map {
    const NUMBERS: Numbers = &[
        ("KEEP", Map::Keep as u32),
        ("SQUARE", Map::Square as u32),
        ("MAGNITUDE", Map::Magnitude as u32),
        ("TRUTH", Map::Truth as u32),
        ("PRESENT", Map::Present as u32),
    ];
}

/// Elements that one invocation takes at most: far below the 65,535 loop iterations after which
/// software Vulkan ends an invocation.
const MAX_TRIPS: usize = 4096;
/// Invocations that a reduction should have before its rows are not split any further: as many as a large
/// card has at work at once.
const ENOUGH: usize = 262_144;

pub(super) struct Plan {
    pub kept: Dims<1>,
    pub reduced: Dims<1>,
    pub rows: usize,
    pub length: usize,
    pub splits: usize,
    pub part: usize,
    lanes: u32,
    group_rows: u32,
}

pub(super) fn plan(x: View, dims: DimSet) -> Result<Plan> {
    let mut kept = coalesce(x.shape, [x.strides], |d| !dims.has(d));
    let mut reduced = coalesce(x.shape, [x.strides], |d| dims.has(d));
    for part in [&mut kept, &mut reduced] {
        if part.sizes.is_empty() {
            part.sizes.push(1);
            part.strides[0].push(0);
        }
    }
    ensure!(
        kept.sizes.len() <= 8 && reduced.sizes.len() <= 8,
        NoKernel,
        "wgpu: reduction over {} separate dimensions",
        kept.sizes.len() + reduced.sizes.len()
    );
    let rows: usize = kept.sizes.iter().product();
    let length: usize = reduced.sizes.iter().product();
    let columns = reduced.strides[0][0] != 1 && kept.strides[0][0] == 1 && rows >= 32;
    let (lanes, group_rows) = lanes_rows(length, if columns { 1 } else { 256 });
    let threads = rows * lanes as usize;
    let wanted = ENOUGH
        .div_ceil(threads)
        .min(length.div_ceil(lanes as usize * 32));
    let needed = length.div_ceil(lanes as usize * MAX_TRIPS);
    let splits = wanted.max(needed).max(1);
    let part = length.div_ceil(splits);
    let splits = length.div_ceil(part);
    ensure!(
        rows * splits <= u32::MAX as usize && length <= u32::MAX as usize,
        NoKernel,
        "wgpu: reduction of {rows} rows of {length}"
    );
    Ok(Plan {
        kept,
        reduced,
        rows,
        length,
        splits,
        part,
        lanes,
        group_rows,
    })
}

impl Plan {
    /// Sets what all shaders know of a plan.
    pub fn launch<'a, P>(&self, launch: Launch<'a, P>) -> Launch<'a, P>
    where
        P: bytemuck::NoUninit,
    {
        launch
            .set("OUTER", self.kept.sizes.len() as u32)
            .set("INNER", self.reduced.sizes.len() as u32)
            .set("LANES", self.lanes)
            .set("ROWS", self.group_rows)
            .set("WG", self.lanes * self.group_rows)
    }

    /// Elements that one invocation reads.
    pub fn reads(&self) -> usize {
        self.part.div_ceil(self.lanes as usize)
    }

    pub fn groups(&self) -> usize {
        (self.rows * self.splits).div_ceil(self.group_rows as usize)
    }

    /// Whether a workgroup has both of two results of two bytes that share a word, which begin at `offset`.
    fn has_pairs(&self, y: DType, offset: u32) -> bool {
        let both = self.lanes == 1 || self.group_rows > 1;
        y.size() == 2 && self.splits == 1 && both && offset.is_multiple_of(2)
    }
}

fn identity(op: Combine, acc: Acc) -> [u32; 2] {
    match (op, acc) {
        (Combine::Sum | Combine::Any, _) => acc.words(0.0),
        (Combine::Prod | Combine::All, _) => acc.words(1.0),
        (Combine::Max, Acc::I32) => [i32::MIN as u32, 0],
        (Combine::Min, Acc::I32) => [i32::MAX as u32, 0],
        (Combine::Max, Acc::I64) => acc.int_words(i64::MIN),
        (Combine::Min, Acc::I64) => acc.int_words(i64::MAX),
        (Combine::Max, _) => acc.words(f64::NEG_INFINITY),
        (Combine::Min, _) => acc.words(f64::INFINITY),
    }
}

/// The type that a reduction computes in: sums and products of integers in int64.
fn acc_for(op: Combine, map: Map, x: DType, y: DType) -> Result<Acc> {
    let acc = match (Acc::of(x)?, Acc::of(y)?) {
        (Acc::F64, _) | (_, Acc::F64) => Acc::F64,
        (Acc::F32, _) => Acc::F32,
        (_, Acc::F32) => Acc::F32,
        (a, b) => {
            if a == Acc::I64 || b == Acc::I64 {
                Acc::I64
            } else {
                Acc::I32
            }
        }
    };
    let truth = map == Map::Truth && matches!(op, Combine::Any | Combine::All);
    Ok(if truth && acc == Acc::I64 && x != DType::I64 {
        Acc::I32
    } else {
        acc
    })
}

/// `y = combine over dims of map(x), times scale`. `dims` is the set of reduced dimensions as
/// bits; `y` is contiguous and holds the kept ones in order. A NaN makes `Max` and `Min` NaN.
/// Deterministic. `scale` counts in floating types only.
pub fn reduce(
    gpu: &Gpu,
    op: Combine,
    map: Map,
    scale: f64,
    x: View,
    dims: DimSet,
    y: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let acc = acc_for(op, map, x.dtype, y.dtype)?;
    gpu.require(acc, "reduction")?;
    if x.numel() == 0 {
        let of = Acc::of(y.dtype)?;
        // The mean of nothing: 0 times 1 / 0.
        let nothing = of.words(f64::NAN);
        return copy::fill(
            gpu,
            y,
            if scale.is_finite() {
                identity(op, of)
            } else {
                nothing
            },
        );
    }
    ensure!(
        y.is_contiguous(),
        Runtime,
        "wgpu: reduction: the result must be contiguous"
    );
    // What is done to the results of parts.
    let again = match map {
        Map::Truth => Map::Truth,
        _ => Map::Keep,
    };
    if let Some(d) = x.too_wide(gpu).or_else(|| crowded(x, dims)) {
        // What halves of sums give must fit, too.
        let sums = 2 * y.numel() * acc.dtype().size();
        let kept = (0..x.shape.len()).filter(|&d| !dims.has(d) && x.shape[d] > 1);
        let d = match dims.has(d) && sums as u64 > gpu.info().max_binding {
            true => kept.max_by_key(|&d| x.shape[d]).unwrap_or(d),
            false => d,
        };
        return in_halves(gpu, (op, map, again, scale), acc, x, d, dims, y);
    }
    let fits = (y.numel() * y.dtype.size()) as u64 <= gpu.info().max_binding;
    if fits && y.too_wide(gpu).is_some() {
        // In two segments.
        let own = Scratch::new(gpu, y.shape, y.dtype)?;
        reduce(gpu, op, map, scale, x, dims, own.view())?;
        return copy::copy(gpu, own.view(), y);
    }
    let plan = plan(x, dims)?;
    if plan.splits == 1 {
        return pass(gpu, op, map, scale, &plan, acc, x, y);
    }
    let partial = Scratch::new(gpu, &[plan.rows, plan.splits], acc.dtype())?;
    pass(gpu, op, map, 1.0, &plan, acc, x, partial.view())?;
    reduce(gpu, op, again, scale, partial.view(), [1].into(), y)?;
    gpu.hand_over(partial.buffer);
    Ok(())
}

/// The outermost dimension of those that are more than a kernel counts, kept or reduced.
fn crowded(x: View, dims: DimSet) -> Option<usize> {
    if x.shape.len() <= 8 {
        return None;
    }
    let many = |&reduced: &bool| {
        let merged = coalesce(x.shape, [x.strides], |d| dims.has(d) == reduced);
        merged.sizes.len() > 8
    };
    let which = [false, true].into_iter().find(many)?;
    (0..x.shape.len()).find(|&d| dims.has(d) == which && x.shape[d] > 1)
}

/// Rows of `x` in memory of their own, where its dimensions are more than a kernel counts.
pub(super) fn in_rows(gpu: &Gpu, x: View, dims: DimSet) -> Result<Option<Scratch>> {
    if crowded(x, dims).is_none() {
        return Ok(None);
    }
    let of = |reduced: bool| (0..x.shape.len()).filter(move |&d| dims.has(d) == reduced);
    let order: SmallVec<[usize; 16]> = of(false).chain(of(true)).collect();
    let shape: SmallVec<[usize; 16]> = order.iter().map(|&d| x.shape[d]).collect();
    let strides: SmallVec<[isize; 16]> = order.iter().map(|&d| x.strides[d]).collect();
    let length = of(true).map(|d| x.shape[d]).product();
    let own = Scratch::new(gpu, &shape, x.dtype)?;
    let (shape, strides) = (&shape[..], &strides[..]);
    copy::copy(
        gpu,
        View {
            shape,
            strides,
            ..x
        },
        own.view(),
    )?;
    Ok(Some(own.reshaped(&[x.numel() / length, length])))
}

/// [`reduce`] of a tensor that is larger than one binding, or of more dimensions than a kernel counts,
/// cut along dimension `d`.
fn in_halves(
    gpu: &Gpu,
    (op, map, again, scale): (Combine, Map, Map, f64),
    acc: Acc,
    x: View,
    d: usize,
    dims: DimSet,
    y: View,
) -> Result<()> {
    let parts = halves(x.shape, d);
    if dims.has(d) {
        let rows = y.numel();
        let partial = Scratch::new(gpu, &[2, rows], acc.dtype())?;
        for (i, (from, shape)) in parts.iter().enumerate() {
            let half = View {
                offset: i * rows,
                shape: &[rows],
                strides: &[1],
                ..partial.view()
            };
            reduce(gpu, op, map, 1.0, x.part(d, *from, shape), dims, half)?;
        }
        return reduce(gpu, op, again, scale, partial.view(), [0].into(), y);
    }
    // Results in order around the kept dimension that is cut, which they have as dimension 1.
    let kept = |range: std::ops::Range<usize>| -> usize {
        let sizes = range.filter(|&k| !dims.has(k)).map(|k| x.shape[k]);
        sizes.product()
    };
    let (outer, inner) = (kept(0..d), kept(d + 1..x.shape.len()));
    let strides = [x.shape[d] * inner, inner, 1].map(|s| s as isize);
    for (from, shape) in &parts {
        let sizes = [outer, shape[d], inner];
        let whole = Scratch::new(gpu, &sizes, y.dtype)?;
        let flat = View {
            shape: &[sizes.iter().product()],
            strides: &[1],
            ..whole.view()
        };
        reduce(gpu, op, map, scale, x.part(d, *from, shape), dims, flat)?;
        let place = View {
            offset: y.offset + from * inner,
            shape: &sizes,
            strides: &strides,
            ..y
        };
        copy::copy(gpu, whole.view(), place)?;
    }
    Ok(())
}

fn pass(
    gpu: &Gpu,
    op: Combine,
    map: Map,
    scale: f64,
    plan: &Plan,
    acc: Acc,
    x: View,
    y: View,
) -> Result<()> {
    let [i0, i1] = identity(op, acc);
    let ((to, y_offset), (from, x_offset)) = (y.bound(gpu), x.bound(gpu));
    let p = Block {
        rows: plan.rows as u32,
        length: plan.length as u32,
        splits: plan.splits as u32,
        part: plan.part as u32,
        x_offset,
        y_offset,
        scale: scale as f32,
        pad: 0,
        identity: [i0, i1, 0, 0],
        outer_size: plan.kept.words(),
        outer_stride: plan.kept.stride_words(0),
        inner_size: plan.reduced.words(),
        inner_stride: plan.reduced.stride_words(0),
    };
    let pairs = plan.has_pairs(y.dtype, y_offset);
    // Alone in its row, an invocation has both rows of a word.
    let rows = if pairs && plan.lanes == 1 { 2 } else { 1 };
    plan.launch(REDUCE.launch(acc))
        .set("OP", op as u32)
        .set("MAP", map as u32)
        .set("PAIRS", pairs)
        .writes("Y", to)
        .reads("X", from)
        .prologue("x", x, (1, rows * plan.reads()))
        .epilogue(y)
        .groups(gpu, &p, plan.groups().div_ceil(rows))
}

/// The largest (or smallest) element over `dims`, and its index in row-major order of them: the
/// first of several equal ones; NaN counts as the largest and the smallest. `y` and `index` are
/// contiguous and hold the kept dimensions; `index` is int64 or int32. `x` has elements.
pub fn arg_reduce(
    gpu: &Gpu,
    largest: bool,
    x: View,
    dims: DimSet,
    y: View,
    index: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    if let Some(rows) = in_rows(gpu, x, dims)? {
        return arg_reduce(gpu, largest, rows.view(), [1].into(), y, index);
    }
    let acc = Acc::of(x.dtype)?;
    let plan = plan(x, dims)?;
    if plan.splits == 1 {
        return arg_pass(gpu, largest, &plan, acc, x, None, y, index);
    }
    let values = Scratch::new(gpu, &[plan.rows, plan.splits], acc.dtype())?;
    let found = Scratch::new(gpu, &[plan.rows, plan.splits], DType::I32)?;
    arg_pass(
        gpu,
        largest,
        &plan,
        acc,
        x,
        None,
        values.view(),
        found.view(),
    )?;
    let second = Plan {
        splits: 1,
        part: plan.splits,
        ..self::plan(values.view(), [1].into())?
    };
    ensure!(
        second.length <= second.lanes as usize * MAX_TRIPS,
        NoKernel,
        "wgpu: arg reduction of {} elements",
        x.numel()
    );
    arg_pass(
        gpu,
        largest,
        &second,
        acc,
        values.view(),
        Some(found.view()),
        y,
        index,
    )
}

fn arg_pass(
    gpu: &Gpu,
    largest: bool,
    plan: &Plan,
    acc: Acc,
    x: View,
    candidates: Option<View>,
    y: View,
    index: View,
) -> Result<()> {
    let p = ArgBlock {
        rows: plan.rows as u32,
        length: plan.length as u32,
        splits: plan.splits as u32,
        part: plan.part as u32,
        x_offset: x.offset as u32,
        y_offset: y.offset as u32,
        i_offset: index.offset as u32,
        pad: 0,
        outer_size: plan.kept.words(),
        outer_stride: plan.kept.stride_words(0),
        inner_size: plan.reduced.words(),
        inner_stride: plan.reduced.stride_words(0),
    };
    plan.launch(ARG_REDUCE.launch(acc))
        .set("LARGEST", largest)
        .set("AGAIN", candidates.is_some())
        .writes("Y", y)
        .writes("I", index)
        .reads("X", x)
        .reads_words(candidates.unwrap_or(x))
        .groups(gpu, &p, plan.groups())
}

//! Reductions over any dimensions.

use super::geometry::{coalesce, Dims};
use super::{copy, format, lanes_rows, require, Params, Scratch, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu, Kernel};

/// How elements are combined; the number is the shader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Combine {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
}

/// What happens to each element first; the number is the shader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Map {
    Keep,
    Square,
    Magnitude,
    Truth,
    /// Zero where it is NaN.
    Present,
}

/// Elements that one invocation takes at most: far below the 65,535 loop iterations after which
/// software Vulkan ends an invocation.
const MAX_TRIPS: usize = 4096;
/// Invocations that a reduction should have before its rows are not split any further.
const ENOUGH: usize = 16_384;

struct Plan {
    kept: Dims<1>,
    reduced: Dims<1>,
    rows: usize,
    length: usize,
    splits: usize,
    part: usize,
    lanes: u32,
    group_rows: u32,
}

fn plan(x: View, dims: u64) -> Result<Plan> {
    let is_reduced = |d: usize| dims >> d & 1 == 1;
    let mut kept = coalesce(x.shape, [x.strides], |d| !is_reduced(d));
    let mut reduced = coalesce(x.shape, [x.strides], is_reduced);
    for part in [&mut kept, &mut reduced] {
        if part.sizes.is_empty() {
            part.sizes.push(1);
            part.strides[0].push(0);
        }
    }
    ensure!(
        kept.sizes.len() <= 8 && reduced.sizes.len() <= 8,
        NotImplemented,
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
        NotImplemented,
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
    fn constants(&self) -> [(&'static str, u32); 5] {
        [
            ("KEPT", self.kept.sizes.len() as u32),
            ("REDUCED", self.reduced.sizes.len() as u32),
            ("LANES", self.lanes),
            ("ROWS", self.group_rows),
            ("WG", self.lanes * self.group_rows),
        ]
    }

    fn geometry(&self, p: &mut Params) {
        for part in [&self.kept, &self.reduced] {
            let at = p.len();
            p.resize(at + 16, 0);
            for (d, (&n, &s)) in part.sizes.iter().zip(&part.strides[0]).enumerate() {
                p[at + d] = n as u32;
                p[at + 8 + d] = s as u32;
            }
        }
    }

    fn grid(&self, gpu: &Gpu) -> Result<[u32; 3]> {
        gpu.grid((self.rows * self.splits).div_ceil(self.group_rows as usize))
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
    dims: u64,
    y: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let acc = acc_for(op, map, x.dtype, y.dtype)?;
    require(gpu, acc, "reduction")?;
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
    let plan = plan(x, dims)?;
    if plan.splits == 1 {
        return pass(gpu, op, map, scale, &plan, acc, x, y);
    }
    let partial = Scratch::new(gpu, &[plan.rows, plan.splits], acc.dtype())?;
    pass(gpu, op, map, 1.0, &plan, acc, x, partial.view())?;
    let map = if map == Map::Truth {
        Map::Truth
    } else {
        Map::Keep
    };
    reduce(gpu, op, map, scale, partial.view(), 0b10, y)
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
    let mut p: Params = smallvec::smallvec![
        plan.rows as u32,
        plan.length as u32,
        plan.splits as u32,
        plan.part as u32,
        x.offset as u32,
        y.offset as u32,
        (scale as f32).to_bits(),
        0,
        i0,
        i1,
        0,
        0,
    ];
    plan.geometry(&mut p);
    let [a, b, c, d, e] = plan.constants();
    let constants = [
        ("X", format(x.dtype)),
        ("Y", format(y.dtype)),
        ("OP", op as u32),
        ("MAP", map as u32),
        a,
        b,
        c,
        d,
        e,
    ];
    let kernel = Kernel {
        file: "reduce",
        entry: "main",
        acc,
        constants: &constants,
        tail: [""; 2],
        writes: 1,
        reads: 1,
    };
    gpu.dispatch(&kernel, &[y.buffer, x.buffer], &p, plan.grid(gpu)?)
}

/// The largest (or smallest) element over `dims`, and its index in row-major order of them: the
/// first of several equal ones; NaN counts as the largest and the smallest. `y` and `index` are
/// contiguous and hold the kept dimensions; `index` is int64 or int32. `x` has elements.
pub fn arg_reduce(
    gpu: &Gpu,
    largest: bool,
    x: View,
    dims: u64,
    y: View,
    index: View,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let acc = Acc::of(x.dtype)?;
    require(gpu, acc, "reduction")?;
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
        ..self::plan(values.view(), 0b10)?
    };
    ensure!(
        second.length <= second.lanes as usize * MAX_TRIPS,
        NotImplemented,
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
    let mut p: Params = smallvec::smallvec![
        plan.rows as u32,
        plan.length as u32,
        plan.splits as u32,
        plan.part as u32,
        x.offset as u32,
        y.offset as u32,
        index.offset as u32,
        0,
    ];
    plan.geometry(&mut p);
    let [a, b, c, d, e] = plan.constants();
    let constants = [
        ("X", format(x.dtype)),
        ("Y", format(y.dtype)),
        ("I", format(index.dtype)),
        ("LARGEST", largest as u32),
        ("AGAIN", candidates.is_some() as u32),
        a,
        b,
        c,
        d,
        e,
    ];
    let kernel = Kernel {
        file: "arg_reduce",
        entry: "main",
        acc,
        constants: &constants,
        tail: [""; 2],
        writes: 2,
        reads: 2,
    };
    let candidates = candidates.map_or(x.buffer, |c| c.buffer);
    gpu.dispatch(
        &kernel,
        &[y.buffer, index.buffer, x.buffer, candidates],
        &p,
        plan.grid(gpu)?,
    )
}

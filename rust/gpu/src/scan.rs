//! Running results along lines, in parallel: sums, products, extremes, recurrences, each also over
//! segments of equal keys.

use super::launch::lanes_rows;
use super::shader::Numbers;
use super::{params, shader, Acc, Buffer, Gpu, Operand, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::shape::Span;

params! {
    struct Block {
        lines: u32,
        length: u32,
        inner: u32,
        splits: u32,
        part: u32,
        reverse: u32,
        x_offset: u32,
        y_offset: u32,
        b_offset: u32,
        i_offset: u32,
        key_outer: u32,
        key_step: u32,
        key_inner: u32,
        lone: u32,
    }
}

/// How an element is combined with what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Sum,
    Prod,
    /// The larger, of equal ones the later; NaN is the largest.
    Max,
    /// The smaller, of equal ones the later; NaN is the smallest.
    Min,
    /// The later.
    Last,
    /// By a function that is given as text, `fn blend(l: Acc, r: Acc) -> Acc`.
    Blend,
    /// `s[k] = x[k] + b[k] s[k-1]`.
    Own,
    /// `s[k] = x[k] + b[k-1] s[k-1]`.
    Before,
}

/// Which of the dispatches of a long line this is.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Whole,
    Parts,
    Totals,
    Apply,
}

const NUMBERS: Numbers = &[
    ("SUM", Step::Sum as u32),
    ("PROD", Step::Prod as u32),
    ("MAX", Step::Max as u32),
    ("MIN", Step::Min as u32),
    ("LAST", Step::Last as u32),
    ("BLEND", Step::Blend as u32),
    ("OWN", Step::Own as u32),
    ("BEFORE", Step::Before as u32),
    ("WHOLE", Stage::Whole as u32),
    ("PARTS", Stage::Parts as u32),
    ("TOTALS", Stage::Totals as u32),
    ("APPLY", Stage::Apply as u32),
];
const NO_BLEND: &str = "fn blend(l: Acc, r: Acc) -> Acc { return r; }\n";
shader! {
    static SCAN: Block = "scan.wgsl", Acc::ALL, numbers NUMBERS;
    tail NO_BLEND
}

/// Steps that one invocation takes at most: each has a few loops of its own, and software Vulkan
/// ends an invocation after 65,535 iterations.
const MAX_TRIPS: usize = 2048;
/// Invocations that a scan should have before its lines are not split any further.
const ENOUGH: usize = 262_144;
/// Neighbours of an invocation in a step.
const ITEMS: usize = 4;
/// Steps up to which a line is one part, and those of a part of a longer one.
const ALONE: usize = 8;
const SHARED: usize = 2;
/// Words of a total.
const TOTAL: usize = 6;

/// How a part of a line is walked: invocations of a row, rows of a workgroup, neighbours of an invocation.
struct Walk {
    lanes: usize,
    rows: usize,
    items: usize,
}

impl Walk {
    /// Of a part of this length, by at most so many invocations; one alone takes an element at a time.
    fn of(length: usize, most: usize) -> Walk {
        let items = if most > 1 { ITEMS } else { 1 };
        let (lanes, rows) = lanes_rows(length.div_ceil(items), most);
        Walk {
            lanes: lanes as usize,
            rows: rows as usize,
            items,
        }
    }

    /// Elements of a step.
    fn step(&self) -> usize {
        self.lanes * self.items
    }
}

/// Where a line begins anew: where its key differs from the one before.
#[derive(Clone, Copy)]
pub struct Segments<'a> {
    /// Words, and where keys have two, the higher ones.
    pub keys: &'a Buffer,
    pub high: Option<&'a Buffer>,
    /// By how much the place of a key grows with the outer dimension, along the line and with the
    /// inner one.
    pub steps: [usize; 3],
    /// Whether the largest key differs from itself, as NaN does.
    pub lone: bool,
}

/// A scan over contiguous tensors.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    pub step: Step,
    pub reverse: bool,
    pub lines: Span,
    pub x: View<'a>,
    /// The coefficients of a recurrence.
    pub b: Option<View<'a>>,
    pub segments: Option<Segments<'a>>,
    /// The text of [`Step::Blend`].
    pub blend: &'a str,
}

impl Scan<'_> {
    /// Writes the running results, computed in the type of `y`, and where each was found.
    pub fn run(&self, gpu: &Gpu, y: View, index: Option<View>) -> Result<()> {
        if y.numel() == 0 {
            return Ok(());
        }
        let acc = Acc::of(y.dtype)?;
        let tensors = [Some(self.x), self.b, Some(y), index];
        ensure!(
            tensors.iter().flatten().all(View::is_contiguous),
            Runtime,
            "wgpu: scan: tensors must be contiguous"
        );
        ensure!(
            acc.has_functions(self.blend),
            NoKernel,
            "wgpu: scan: no {} kernel",
            acc.dtype()
        );
        let Span { length, inner, .. } = self.lines;
        let lines = self.lines.lines();
        let walk = Walk::of(length, if inner >= 32 { 1 } else { 256 });
        // An invocation on its own is as quick with many steps.
        let (alone, shared) = if walk.lanes == 1 {
            (32, 32)
        } else {
            (ALONE, SHARED)
        };
        let steps = length.div_ceil(walk.step());
        let wanted = match steps <= alone {
            true => 1,
            false => ENOUGH
                .div_ceil(lines * walk.lanes)
                .min(steps.div_ceil(shared)),
        };
        let needed = steps.div_ceil(MAX_TRIPS);
        let part = length.div_ceil(wanted.max(needed).max(1));
        let splits = length.div_ceil(part);
        ensure!(
            lines * splits.max(length) <= u32::MAX as usize,
            NoKernel,
            "wgpu: scan: {lines} lines of {length}"
        );
        let words = if splits > 1 {
            TOTAL * lines * splits
        } else {
            1
        };
        let totals = gpu.alloc(4 * words)?;
        let mut p = Block {
            lines: lines as u32,
            length: length as u32,
            inner: inner as u32,
            splits: splits as u32,
            part: part as u32,
            reverse: self.reverse as u32,
            x_offset: self.x.offset as u32,
            y_offset: y.offset as u32,
            b_offset: self.b.map_or(0, |b| b.offset as u32),
            i_offset: index.map_or(0, |i| i.offset as u32),
            key_outer: 0,
            key_step: 0,
            key_inner: 0,
            lone: 0,
        };
        if let Some(s) = self.segments {
            [p.key_outer, p.key_step, p.key_inner] = s.steps.map(|n| n as u32);
            p.lone = s.lone as u32;
        }
        let one = |stage, p: &Block| self.stage(gpu, stage, acc, p, &totals, y, index);
        if splits == 1 {
            return one(Stage::Whole, &p);
        }
        one(Stage::Parts, &p)?;
        let among = Block {
            length: splits as u32,
            part: splits as u32,
            splits: 1,
            ..p
        };
        one(Stage::Totals, &among)?;
        one(Stage::Apply, &p)
    }

    fn stage(
        &self,
        gpu: &Gpu,
        stage: Stage,
        acc: Acc,
        p: &Block,
        totals: &Buffer,
        y: View,
        index: Option<View>,
    ) -> Result<()> {
        let most = match stage {
            Stage::Totals => 256,
            _ if p.inner >= 32 => 1,
            _ => 256,
        };
        let walk = Walk::of(p.part as usize, most);
        ensure!(
            p.part as usize <= walk.step() * MAX_TRIPS,
            NoKernel,
            "wgpu: scan: lines of {} parts",
            p.part
        );
        // A binding that may be written must not be a second one of the same memory.
        let unused = gpu.alloc(4)?;
        let spare: Operand = (&unused).into();
        let keys = self.segments.as_ref();
        let tail = match self.step {
            Step::Blend => [self.blend, ""],
            _ => ["", NO_BLEND],
        };
        SCAN.launch(acc)
            .tail(tail.map(Into::into))
            .set("OP", self.step as u32)
            .set("STAGE", stage as u32)
            .set("FOUND", index.is_some())
            .set("SEGMENTED", keys.is_some())
            .set("LONG_KEYS", keys.is_some_and(|k| k.high.is_some()))
            .set("LANES", walk.lanes as u32)
            .set("ITEMS", walk.items as u32)
            .set("ROWS", walk.rows as u32)
            .set("WG", (walk.lanes * walk.rows) as u32)
            .set("B", self.b.map_or(DType::F32, |b| b.dtype) as u32)
            .set("I", index.map_or(DType::I32, |i| i.dtype) as u32)
            .writes("Y", y)
            .writes_words(index.map_or(spare, Operand::from))
            .writes_words(totals)
            .reads("X", self.x)
            .reads_words(self.b.unwrap_or(self.x))
            .reads_words(keys.map_or(self.x.into(), |k| Operand::from(k.keys)))
            .reads_words(
                keys.and_then(|k| k.high)
                    .map_or(self.x.into(), Operand::from),
            )
            .groups(
                gpu,
                p,
                (p.lines as usize * p.splits as usize).div_ceil(walk.rows),
            )
    }
}

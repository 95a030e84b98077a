//! Margin losses and their gradients, each in one kernel.

use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::launch::{lanes_rows, WORKGROUP};
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::{params, shader, Acc, Gpu, Scratch};
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, whole};

params! {
    struct Forward {
        rows: u32,
        classes: u32,
        parts: u32,
        part: u32,
        x_offset: u32,
        i_offset: u32,
        w_offset: u32,
        y_offset: u32,
        counts_offset: u32,
        who: u32,
        dispatch: u32,
        pad: u32,
        margin: [u32; 2],
        share: [u32; 2],
        scale: [u32; 2],
    }
}
params! {
    struct Backward {
        rows: u32,
        classes: u32,
        parts: u32,
        part: u32,
        x_offset: u32,
        i_offset: u32,
        w_offset: u32,
        y_offset: u32,
        counts_offset: u32,
        g_offset: u32,
        g_step: u32,
        pad: u32,
        margin: [u32; 2],
        share: [u32; 2],
        scale: [u32; 2],
    }
}
shader! { static MARGIN: Forward = "margin.wgsl", &[Acc::F32, Acc::F64] }
shader! { static MARGIN_BACKWARD: Backward = "margin_backward.wgsl", &[Acc::F32, Acc::F64] }

/// Scores that an invocation may meet, far below the 65,535 trips after which software Vulkan ends one.
const MAX_TRIPS: usize = 16_384;
/// The most classes with one label for each row, and with as many, where an invocation has one class at least.
const MAX_CLASSES: [usize; 2] = [1 << 22, 60_000];
/// Scores that an invocation of an only workgroup meets at most, which take as long as another dispatch would. With
/// many labels they are met again and again, and so are near.
const ALONE: [usize; 2] = [32, 512];

/// A margin loss of `rows` of scores, or its gradient.
#[derive(Clone, Copy)]
pub struct Margins {
    pub rows: usize,
    pub classes: usize,
    pub many: bool,
    pub square: bool,
    pub margin: f64,
    /// Of sums, or of what their gradients are.
    pub scale: f64,
}

/// How the classes of a row are shared out.
struct Shares {
    lanes: u32,
    rows: u32,
    parts: usize,
    part: usize,
}

impl Margins {
    fn shares(&self) -> Result<Shares> {
        ensure!(
            self.classes <= MAX_CLASSES[self.many as usize] && self.rows <= u32::MAX as usize,
            NoKernel,
            "wgpu: a margin loss of {} classes",
            self.classes
        );
        let (lanes, rows) = lanes_rows(self.classes, WORKGROUP);
        let part = match self.many {
            true => lanes as usize * (MAX_TRIPS / self.classes).max(1),
            false => self.classes,
        };
        Ok(Shares {
            lanes,
            rows,
            parts: self.classes.div_ceil(part),
            part,
        })
    }

    /// Whether one workgroup is quick enough for all of it.
    fn is_little(&self, s: &Shares) -> bool {
        let met =
            self.classes.div_ceil(s.lanes as usize) * if self.many { self.classes } else { 1 };
        s.parts == 1 && self.rows.div_ceil(s.rows as usize) * met <= ALONE[self.many as usize]
    }

    /// The loss of each row in `y`, or with `summed` their sum, and with many labels how often each class is one.
    pub fn forward(
        &self,
        gpu: &Gpu,
        [x, target]: [&Tensor; 2],
        weight: Option<&Tensor>,
        summed: bool,
        y: &Tensor,
        times: Option<&Tensor>,
    ) -> Result<()> {
        check_contiguous("margin loss", &[x, target, y])?;
        let s = self.shares()?;
        let acc = Acc::of(x.dtype())?;
        let alone = summed && self.is_little(&s);
        let direct = alone || !summed && s.parts == 1;
        let partial = match direct {
            true => None,
            false => Some(Scratch::new(gpu, &[self.rows, s.parts], acc.dtype())?),
        };
        let to = match &partial {
            Some(partial) => partial.view(),
            None => whole(y)?,
        };
        let fault = gpu.index_fault(Kind::Runtime)?;
        let [who, dispatch] = fault.words;
        let w = weight.unwrap_or(x);
        let p = Forward {
            rows: self.rows as u32,
            classes: self.classes as u32,
            parts: s.parts as u32,
            part: s.part as u32,
            x_offset: x.offset() as u32,
            i_offset: target.offset() as u32,
            w_offset: w.offset() as u32,
            y_offset: to.offset as u32,
            counts_offset: times.map_or(0, |t| t.offset()) as u32,
            who,
            dispatch,
            pad: 0,
            margin: acc.words(self.margin),
            share: acc.words(1.0 / self.classes as f64),
            scale: acc.words(self.scale),
        };
        let wg = s.lanes * s.rows;
        let launch = MARGIN
            .launch(acc)
            .set("HAS_WEIGHT", weight.is_some())
            .set("MANY", self.many)
            .set("SQUARE", self.square)
            .set("ALONE", alone)
            .set("SHARE", s.lanes)
            .set("LANES", if alone { wg } else { s.lanes })
            .set("ROWS", s.rows)
            .set("WG", wg)
            .writes("Y", to);
        let launch = match times {
            Some(times) => launch.writes_words(times),
            None => launch.writes_words(to),
        };
        let groups = match alone {
            true => 1,
            false => (self.rows * s.parts).div_ceil(s.rows as usize),
        };
        launch
            .writes_words(fault.buffer)
            .reads("X", x)
            .reads("I", target)
            .reads("W", w)
            .groups(gpu, &p, groups)?;
        let Some(partial) = partial else {
            return Ok(());
        };
        let dims: DimSet = match summed {
            true => DimSet::all(2),
            false => [1].into(),
        };
        reduce(
            gpu,
            Combine::Sum,
            Map::Keep,
            1.0,
            partial.view(),
            dims,
            whole(y)?,
        )
    }

    /// The gradient `y` of the scores for `g`, which has one element or one for each row, at any stride.
    pub fn backward(
        &self,
        gpu: &Gpu,
        [g, x, target]: [&Tensor; 3],
        weight: Option<&Tensor>,
        times: Option<&Tensor>,
        y: &Tensor,
    ) -> Result<()> {
        check_contiguous("margin loss backward", &[x, target, y])?;
        let s = self.shares()?;
        let acc = Acc::of(x.dtype())?;
        let step = match g.numel() {
            1 => 0,
            _ => g.strides()[0],
        };
        let (w, named) = (weight.unwrap_or(x), times.unwrap_or(x));
        let p = Backward {
            rows: self.rows as u32,
            classes: self.classes as u32,
            parts: s.parts as u32,
            part: s.part as u32,
            x_offset: x.offset() as u32,
            i_offset: target.offset() as u32,
            w_offset: w.offset() as u32,
            y_offset: y.offset() as u32,
            counts_offset: named.offset() as u32,
            g_offset: g.offset() as u32,
            g_step: step as u32,
            pad: 0,
            margin: acc.words(self.margin),
            share: acc.words(1.0 / self.classes as f64),
            scale: acc.words(self.scale),
        };
        MARGIN_BACKWARD
            .launch(acc)
            .set("HAS_WEIGHT", weight.is_some())
            .set("MANY", self.many)
            .set("SQUARE", self.square)
            .set("LANES", s.lanes)
            .set("ROWS", s.rows)
            .set("WG", s.lanes * s.rows)
            .writes("Y", y)
            .reads("G", g)
            .reads("X", x)
            .reads("I", target)
            .reads_words(named)
            .reads("W", w)
            .epilogue(whole(y)?)
            .groups(gpu, &p, (self.rows * s.parts).div_ceil(s.rows as usize))
    }
}

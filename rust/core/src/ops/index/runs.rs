//! Writing to places of which many may be the same: the places are sorted, so that elements that
//! meet stand side by side, and each run of them is combined by a scan. The order of each sum is
//! decided by the sizes and places alone.

use super::Mode;
use crate::ensure;
use crate::error::Result;
use crate::gpu::geometry::Dims;
use crate::gpu::launch::bits;
use crate::gpu::order::{order, By};
use crate::gpu::scan::{Scan, Segments, Step};
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu, Scratch};
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{as_type, owned, whole};

params! {
    struct Block {
        n: u32,
        length: u32,
        inner: u32,
        size: u32,
        y_offset: u32,
        v_offset: u32,
        y_stride: u32,
        key_line: u32,
        scale: [u32; 4],
        dim_size: [u32; 8],
        strides: [[u32; 4]; 8],
    }
}
/// What happens to the elements that meet, as shaders know it.
pub const MODES: Numbers = &[
    ("SET", Mode::Set as u32),
    ("ADD", Mode::Add as u32),
    ("MULTIPLY", Mode::Mul as u32),
    ("MAX", Mode::Max as u32),
    ("MIN", Mode::Min as u32),
];
shader! { static PUT_RUNS: Block = "put_runs.wgsl", Acc::ALL, numbers MODES }

/// From so many places on, sorting them is quicker than comparing each with all.
pub const MANY: usize = 1025;

/// Where to write.
pub struct Places<'a> {
    /// A line of places for each line of the values, or one for all: int32 and contiguous.
    pub words: &'a Tensor,
    pub shared: bool,
    /// Larger ones, as unsigned numbers, are left out.
    pub size: usize,
    /// By how much the element written to moves with a place.
    pub stride: isize,
    /// The dimensions of `y` that lines run over.
    pub others: Dims<1>,
}

/// `y[line, place] = meet(old, scale v)` for each element of `v`, [outer, length, inner], of which a
/// line is [outer, inner]. What is only moved has the type of `y`.
pub fn put(
    gpu: &Gpu,
    meet: Mode,
    places: &Places,
    y: &Tensor,
    v: &Tensor,
    lines: Span,
    scale: [u32; 2],
) -> Result<()> {
    let length = lines.length;
    ensure!(
        places.others.sizes.len() <= 8 && places.size < u32::MAX as usize,
        NoKernel,
        "wgpu: put: {} separate dimensions",
        places.others.sizes.len()
    );
    let by = By::Words {
        most: places.size as u32,
    };
    let keyed = match places.shared {
        true => Span {
            outer: 1,
            length,
            inner: 1,
        },
        false => lines,
    };
    let sorted = order(gpu, whole(places.words)?, keyed, by)?;
    // The values in this order.
    let from = owned(sorted.positions);
    let v = v.reshape_to(&[lines.outer, length, lines.inner])?;
    let v = match places.shared {
        true => v.index_select(1, &from.reshape_to(&[length])?)?,
        false => {
            let from = from.reshape_to(&[lines.outer, lines.inner, length])?;
            v.take_along(1, &from.transpose(1, 2)?)?
        }
    };
    let (y_type, acc) = match (meet, bits(y.dtype())) {
        (Mode::Set, (dtype, 1)) => (dtype, Acc::I32),
        _ => (y.dtype(), Acc::of(y.dtype())?),
    };
    let steps = match places.shared {
        true => [0, 1, 0],
        false => [lines.inner * length, 1, length],
    };
    let step = match meet {
        Mode::Set => None,
        Mode::Add => Some(Step::Sum),
        Mode::Mul => Some(Step::Prod),
        Mode::Max => Some(Step::Max),
        Mode::Min => Some(Step::Min),
    };
    let runs = match step {
        None => v,
        Some(step) => {
            let out = Scratch::new(gpu, v.shape(), acc.dtype())?;
            let scan = Scan {
                step,
                reverse: false,
                lines,
                x: whole(&v)?,
                b: None,
                segments: Some(Segments {
                    keys: &sorted.keys,
                    high: None,
                    steps,
                    lone: false,
                }),
                blend: "",
            };
            scan.run(gpu, out.view(), None)?;
            owned(out)
        }
    };
    let p = Block {
        n: runs.numel() as u32,
        length: length as u32,
        inner: lines.inner as u32,
        size: places.size as u32,
        y_offset: y.offset() as u32,
        v_offset: runs.offset() as u32,
        y_stride: places.stride as u32,
        key_line: if places.shared { 0 } else { length as u32 },
        scale: [scale[0], scale[1], 0, 0],
        dim_size: places.others.words(),
        strides: places.others.stride_vectors(),
    };
    PUT_RUNS
        .launch(acc)
        .set("OP", meet as u32)
        .set("DIMS", places.others.sizes.len() as u32)
        .writes("Y", as_type(y, y_type))
        .reads(
            "V",
            as_type(
                &runs,
                if meet == Mode::Set {
                    y_type
                } else {
                    runs.dtype()
                },
            ),
        )
        .reads_words(&sorted.keys)
        .threads(gpu, &p, runs.numel())
}

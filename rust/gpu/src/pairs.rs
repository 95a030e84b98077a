//! Sums over rows of two or three tensors at once: cosines, and distances of one to two others.

use super::geometry::coalesce;
use super::launch::lanes_rows;
use super::{params, shader, Acc, Gpu, View};
use crate::ensure;
use crate::error::Result;

params! {
    struct Block {
        rows: u32,
        length: u32,
        y_offset: u32,
        pad: u32,
        least: [u32; 2],
        added: [u32; 2],
        offset: [u32; 4],
        step: [u32; 4],
        dim_size: [u32; 8],
        strides: [[u32; 4]; 8],
    }
}
shader! { static PAIRS: Block = "pairs.wgsl", &[Acc::F32, Acc::F64] }

/// The longest rows: each is one workgroup's.
pub const MAX_LENGTH: usize = 1 << 16;

/// What rows of a, b and c give.
#[derive(Clone, Copy, Debug)]
pub enum Pairs {
    /// The cosine of a and b, and their lengths: roots of squares and what is added. They divide as at least `least`.
    Cosine { least: f64, added: f64 },
    /// Lengths of a - b + added, a - c + added and, with `third`, b - c + added.
    Distances { added: f64, third: bool },
}

/// Rows along the last dimension of tensors of one shape. The first result is another one's, too, in a type of its
/// own; the others have the type that is computed in. All of them are contiguous, the others from their memory's
/// beginning.
pub fn pairs(gpu: &Gpu, what: Pairs, x: [View; 3], y: [View; 4]) -> Result<()> {
    let acc = Acc::of(y[1].dtype)?;
    let (&length, outer) = x[0].shape.split_last().unwrap_or((&1, &[]));
    let n = outer.len();
    let dims = coalesce(outer, x.map(|v| &v.strides[..n]), |_| true);
    let bound = x.iter().chain(&y).all(|v| v.too_wide(gpu).is_none());
    let known = y[1..].iter().all(|v| v.offset == 0);
    ensure!(
        bound && known && (1..=MAX_LENGTH).contains(&length) && dims.sizes.len() <= 8,
        NoKernel,
        "wgpu: rows of {length} elements in {} dimensions",
        n + 1
    );
    let rows: usize = outer.iter().product();
    let bound = x.map(|v| v.bound(gpu));
    let step = x.map(|v| v.strides.last().map_or(0, |&s| s as u32));
    let four = |[a, b, c]: [u32; 3]| [a, b, c, 0];
    let (least, added, third) = match what {
        Pairs::Cosine { least, added } => (least, added, false),
        Pairs::Distances { added, third } => (0.0, added, third),
    };
    let cosine = matches!(what, Pairs::Cosine { .. });
    let (to, y_offset) = y[0].bound(gpu);
    let p = Block {
        rows: rows as u32,
        length: length as u32,
        y_offset,
        pad: 0,
        least: acc.words(least),
        added: acc.words(added),
        offset: four(bound.map(|(_, offset)| offset)),
        step: four(step),
        dim_size: dims.words(),
        strides: dims.stride_vectors(),
    };
    let (lanes, group_rows) = lanes_rows(length, 256);
    let [(a, _), (b, _), (c, _)] = bound;
    PAIRS
        .launch(acc)
        .set("COSINE", cosine)
        .set("THIRD", third)
        .set("DIMS", dims.sizes.len() as u32)
        .set("LANES", lanes)
        .set("ROWS", group_rows)
        .set("WG", lanes * group_rows)
        .writes("Y", to)
        .writes_words(y[1])
        .writes_words(y[2])
        .writes_words(y[3])
        .reads("A", a)
        .reads("B", b)
        .reads_if("C", (!cosine).then_some(c))
        .epilogue(y[0])
        .groups(gpu, &p, rows.div_ceil(group_rows as usize))
}

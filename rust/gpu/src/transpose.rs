//! Copies between orders of elements, square by square.

use super::geometry::coalesce;
use super::geometry::WORKGROUP;
use super::{params, shader, Acc, Gpu, View};
use crate::error::Result;

params! {
    struct Block {
        across: u32,
        along: u32,
        columns: u32,
        squares: u32,
        count: u32,
        x_offset: u32,
        y_offset: u32,
        x_pitch: u32,
        y_pitch: u32,
        pad0: u32,
        pad1: u32,
        pad2: u32,
        size: [u32; 8],
        x_step: [u32; 8],
        y_step: [u32; 8],
    }
}
shader! { static TRANSPOSE: Block = "transpose.wgsl", Acc::WORDS }

/// Elements along rows of both below which a square has too little to move.
const SHORTEST: usize = 16;
/// Dimensions that the parameters have room for.
const MAX_DIMS: usize = 8;

/// Copies `x` to `y`, of the same shape and type, where it is large and their rows run across each other; false
/// where it is another copy, which a pointwise kernel makes as well.
pub(super) fn transposed(gpu: &Gpu, x: View, y: View) -> Result<bool> {
    let (size, n) = (y.dtype.size(), y.numel());
    let far =
        |v: &View| v.buffer.window().is_some() || v.buffer.capacity() > gpu.info().max_binding;
    if !gpu.is_wide(n * size / 4) || n > 1 << 31 || far(&x) || far(&y) || x.buffer.same(y.buffer) {
        return Ok(false);
    }
    let dims = coalesce(y.shape, [y.strides, x.strides], |_| true);
    let [ys, xs] = &dims.strides;
    let row = |steps: &[isize]| steps.iter().position(|&s| s == 1);
    let (Some(along), Some(across)) = (row(ys), row(xs)) else {
        return Ok(false);
    };
    // Whether every word holds elements of one row.
    let lanes = 4 / size.min(4);
    let whole = |v: &View, steps: &[isize], row: usize| {
        let even = |s: isize| s % lanes as isize == 0;
        let others = steps.iter().enumerate().filter(|(d, _)| *d != row);
        even(v.offset as isize) && others.into_iter().all(|(_, &s)| even(s))
    };
    let (nx, ny) = (dims.sizes[across], dims.sizes[along]);
    if along == across
        || nx.min(ny) < SHORTEST
        || dims.sizes.len() > MAX_DIMS + 2
        || !whole(&y, ys, along)
        || !ny.is_multiple_of(lanes)
    {
        return Ok(false);
    }
    let side = match size {
        1 | 2 => 64,
        16 => 16,
        _ => 32,
    };
    let columns = nx.div_ceil(side);
    let squares = columns * ny.div_ceil(side);
    let count = squares * (n / (nx * ny));
    let mut p = Block {
        across: nx as u32,
        along: ny as u32,
        columns: columns as u32,
        squares: squares as u32,
        count: count as u32,
        x_offset: x.offset as u32,
        y_offset: y.offset as u32,
        x_pitch: xs[along] as u32,
        y_pitch: ys[across] as u32,
        ..bytemuck::Zeroable::zeroed()
    };
    let others = (0..dims.sizes.len()).filter(|d| ![along, across].contains(d));
    for (k, d) in others.enumerate() {
        p.size[k] = dims.sizes[d] as u32;
        p.x_step[k] = xs[d] as u32;
        p.y_step[k] = ys[d] as u32;
    }
    TRANSPOSE
        .launch(Acc::I32)
        .set("LANES", lanes as u32)
        .set("PARTS", size.div_ceil(4) as u32)
        .set("SIDE", side as u32)
        .set("WHOLE", whole(&x, xs, across))
        .set("DIMS", dims.sizes.len() as u32 - 2)
        .set("WG", WORKGROUP as u32)
        .writes_words(y)
        .reads_words(x)
        .groups(gpu, &p, count)?;
    Ok(true)
}

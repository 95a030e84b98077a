//! Strides of memory formats, and those that keep an order of dimensions.

use crate::error::Result;
use crate::layout::{packed_strides, Layout, CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::schema::MemoryFormat;
use crate::shape::{Show, Strides};
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Strides of a memory format for a shape. `Preserve` has none of its own.
pub fn format_strides(shape: &[usize], format: MemoryFormat) -> Result<Strides> {
    let (order, name): (&[usize], &str) = match format {
        MemoryFormat::ChannelsLast => (&CHANNELS_LAST, "channels_last"),
        MemoryFormat::ChannelsLast3d => (&CHANNELS_LAST_3D, "channels_last_3d"),
        MemoryFormat::Contiguous => return Ok(crate::layout::contiguous_strides(shape)),
        MemoryFormat::Preserve => bail!(Runtime, "unsupported memory format Preserve"),
    };
    let rank = order.len();
    ensure!(
        shape.len() == rank,
        Runtime,
        "required rank {rank} tensor to use {name} format, got sizes {}",
        Show(shape)
    );
    Ok(packed_strides(shape, order))
}

/// Strides without gaps that keep the order in which the dimensions of `layout` lie in memory.
pub fn dense_strides(layout: &Layout) -> Strides {
    if layout.is_dense() && !layout.shape.contains(&0) {
        return layout.strides.clone();
    }
    // Dimensions are moved inwards past larger strides; those of stride 0 or equal stay put.
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).rev().collect();
    let inner = |a: usize, b: usize| -> Option<bool> {
        let (x, y) = (layout.strides[a], layout.strides[b]);
        if x == 0 || y == 0 {
            None
        } else if x != y {
            Some(x < y)
        } else if layout.shape[a] > layout.shape[b] {
            Some(false)
        } else {
            None
        }
    };
    for i in 1..order.len() {
        let mut at = i;
        for j in (0..i).rev() {
            match inner(order[at], order[j]) {
                Some(true) => {
                    order.swap(at, j);
                    at = j;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    packed_strides(&layout.shape, &order)
}

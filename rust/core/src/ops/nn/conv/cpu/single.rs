//! The gradient for a weight of one element for each pair of channels: a matrix product over all
//! images and positions.

use super::lanes::Rows;
use super::window::SLACK;
use super::Geometry;
use super::Loops;
use crate::alloc::Scratch;
use crate::cpu::gemm::gemm;
use crate::cpu::pool::{look, parallel_for, Ptr};
use std::ops::Range;

/// Elements of the weight from which on a product is worth its packing.
const LEAST: usize = 1 << 10;
/// Positions of an image from which on its rows are read where they lie.
const LONG: usize = 512;
/// Elements of channels that are laid out at a time.
const ROOM: usize = 1 << 22;
/// Elements whose copy a second thread is worth.
const GRAIN: usize = 1 << 15;

/// A tensor of channels: rows of positions, for each group, image and channel.
#[derive(Clone, Copy)]
struct Side<T> {
    at: *const T,
    /// Channels of a group.
    channels: usize,
    /// Steps between channels, images and positions.
    channel: usize,
    image: usize,
    position: usize,
}

/// `w[o, i] = sum of g[n, o, l] * x[n, i, stride * l]`. Returns false where another way must be taken:
/// for other kernels, and where nothing multiplies numbers of this type quickly.
///
/// # Safety
/// The addresses hold tensors of the geometry's sizes, none of them empty; nobody else touches `w`.
pub unsafe fn single<T: Loops>(geo: &Geometry, x: *const T, g: *const T, w: *mut T) -> bool {
    let few = geo.outputs * geo.inputs < LEAST;
    if geo.kernel != [1; 3] || geo.padding != [0; 3] || few || T::set().is_none() {
        return false;
    }
    let len = geo.output_len();
    let whole = geo.stride == [1; 3] && geo.input == geo.output;
    let side = |at, channels, plane| Side {
        at,
        channels,
        channel: plane,
        image: geo.groups * channels * plane,
        position: 1,
    };
    let sides = [
        side(g, geo.outputs, len),
        side(x, geo.inputs, geo.input_len()),
    ];
    // SAFETY: the sides are the tensors, of which images and positions are parts; what is laid out
    // has rows for all channels.
    unsafe {
        if whole && (len == 1 || len >= LONG || geo.batch == 1) {
            // Images of one position are rows of the product's depth.
            let (depth, images) = if len == 1 {
                (geo.batch, 1)
            } else {
                (len, geo.batch)
            };
            for n in 0..images {
                look();
                let sides = sides.map(|s| Side {
                    at: s.at.add(n * s.image),
                    position: if len == 1 { s.image } else { 1 },
                    ..s
                });
                multiply(geo, sides, depth, n > 0, w);
            }
            return true;
        }
        let channels = geo.groups * (geo.outputs + geo.inputs);
        let most = (ROOM / (channels * len)).clamp(1, geo.batch);
        let pitch = (most * len + SLACK) | 16;
        let room = Scratch::<T>::new(channels * pitch);
        for first in (0..geo.batch).step_by(most) {
            look();
            let images = first..geo.batch.min(first + most);
            let mut to = room.ptr();
            let sides = [(sides[0], None), (sides[1], Some(geo.stride))].map(|(s, stride)| {
                let laid = Side {
                    at: to.cast_const(),
                    channel: pitch,
                    ..s
                };
                lay(
                    geo,
                    &s,
                    stride.filter(|_| !whole),
                    images.clone(),
                    to,
                    pitch,
                );
                to = to.add(geo.groups * s.channels * pitch);
                laid
            });
            multiply(geo, sides, images.len() * len, first > 0, w);
        }
        true
    }
}

/// Adds the products of all groups to `w`; the first ones make it.
unsafe fn multiply<T: Loops>(
    geo: &Geometry,
    [g, x]: [Side<T>; 2],
    depth: usize,
    more: bool,
    w: *mut T,
) {
    let beta = if more { T::ONE } else { T::ZERO };
    let (g_at, x_at, w) = (Ptr::read(g.at), Ptr::read(x.at), Ptr::new(w));
    parallel_for(geo.groups, 1, |range| {
        for group in range {
            // SAFETY: both sides have `depth` positions of the group's channels, whose part of the
            // weight is this task's.
            unsafe {
                gemm::<T>(
                    geo.outputs,
                    geo.inputs,
                    depth,
                    T::ONE,
                    g_at.at(group * g.channels * g.channel),
                    g.channel as isize,
                    g.position as isize,
                    x_at.at(group * x.channels * x.channel),
                    x.position as isize,
                    x.channel as isize,
                    beta,
                    w.at(group * geo.outputs * geo.inputs),
                    geo.inputs as isize,
                    1,
                );
            }
        }
    });
}

/// Lays the positions of some images side by side, each channel in a row of `pitch`.
unsafe fn lay<T: Loops>(
    geo: &Geometry,
    from: &Side<T>,
    stride: Option<[isize; 3]>,
    images: Range<usize>,
    to: *mut T,
    pitch: usize,
) {
    let (kernels, len) = (T::kernels(), geo.output_len());
    let (at, to) = (Ptr::read(from.at), Ptr::new(to));
    let (channel, image) = (from.channel, from.image);
    let grain = GRAIN.div_ceil(images.len() * len);
    parallel_for(geo.groups * from.channels, grain, |range| {
        for c in range {
            // SAFETY: positions lie inside the channel of each image, and rows have a vector behind
            // what is copied to them.
            unsafe {
                let from = at.at(images.start * image + c * channel).cast_const();
                let row = Rows {
                    rows: images.len(),
                    columns: len,
                    lo: 0,
                    hi: len,
                    from,
                    step: 1,
                    from_pitch: image,
                    to: to.at(c * pitch),
                    pitch: len,
                };
                let Some([deep, down, across]) = stride else {
                    (kernels.copy_rows)(&row);
                    continue;
                };
                let [_, rows, columns] = geo.output;
                let [_, height, width] = geo.input;
                for i in 0..images.len() * geo.output[0] {
                    let (n, z) = (i / geo.output[0], i % geo.output[0]);
                    (kernels.copy_rows)(&Rows {
                        rows,
                        columns,
                        hi: columns,
                        from: from.add(n * image + z * deep as usize * height * width),
                        step: across as usize,
                        // Of an immense stride there is one row, and no pitch.
                        from_pitch: (down as usize).wrapping_mul(width),
                        to: row.to.add(i * rows * columns),
                        pitch: columns,
                        ..row
                    });
                }
            }
        }
    });
}

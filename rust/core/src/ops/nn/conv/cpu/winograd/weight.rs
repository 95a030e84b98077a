//! The gradient for the weight by the same transforms: 3x3 results of a 2x2 kernel, which is the
//! result's gradient, summed over all tiles before they are transformed back.

use super::image::Image;
use super::kernel::{Correlate, Tiles, POINTS, TAPS};
use super::{apart, Plan, GRAIN, SMALL, SMALLEST};
use crate::alloc::Scratch;
use crate::cpu::pool::{look, num_threads, parallel_for, Ptr};
use crate::ops::nn::conv::cpu::Geometry;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of the transformed tiles of both sides.
const ROOM: usize = 512 << 10;
/// Into how many sums the batch is divided at most, and elements of all these sums.
const PARTS: usize = 8;
const PARTIAL: usize = 1 << 22;

/// `w[o, i, k] = sum of g[n, o, l] * x[n, i, l + k]`. Returns false where another way must be
/// taken.
///
/// # Safety
/// The addresses hold tensors of the geometry's sizes; nobody else touches `w`.
pub unsafe fn weight(geo: &Geometry, x: *const f32, g: *const f32, w: *mut f32) -> bool {
    // SAFETY: pieces lie inside the tensors, points have room for the largest, and tasks have sums,
    // then rows of the weight, of their own.
    unsafe {
        let Some(plan) = Plan::new(geo) else {
            return false;
        };
        let Some(work) = plan.work() else {
            return false;
        };
        let (k, lanes) = (plan.kernels, plan.kernels.lanes);
        let [from, to] = plan.blocks();
        let columns = from * lanes;
        // Sums of a point, and of all of them for one group.
        let plane = apart(to * lanes * from, lanes);
        let total = POINTS * plane;
        if total > 2 * PARTIAL {
            return false;
        }
        let room = ROOM / (POINTS * size_of::<f32>() * lanes * (from + to));
        let cut = plan.cut(room, 1);
        let pieces = cut.len();
        // Sums of parts of the batch are added in order; their number depends on sizes alone.
        let parts = (PARTIAL / (plan.groups * total))
            .clamp(1, PARTS)
            .min(pieces);
        let parts = parts.min(work / (8 * GRAIN) + 1);
        let tasks = plan.groups * parts;
        // Fewer tasks than threads: several transform the same tiles for other result channels.
        let shares = (2 * num_threads()).div_ceil(tasks).min(to);
        let shares = if tasks < 2 * num_threads() { shares } else { 1 };
        let capacity = cut.most.tiles();
        let planes = [apart(from * capacity, lanes), apart(to * capacity, lanes)];
        let source = Image::new(k, [plan.source[1], plan.source[2]], plan.window(&cut));
        let size = [2 * cut.most.rows, 2 * cut.most.columns];
        let result = Image::new(k, [plan.result[1], plan.result[2]], size);
        let sums = Scratch::<f32>::new(parts * plan.groups * total);
        let (x, g, out, w) = (
            Ptr::read(x),
            Ptr::read(g),
            Ptr::new(sums.ptr()),
            Ptr::new(w),
        );
        let calm = AtomicBool::new(true);
        let grain = GRAIN / (work / (parts * shares)).max(1) + 1;
        parallel_for(tasks * shares, grain, |range| {
            let points = [
                Scratch::<f32>::new(POINTS * planes[0]),
                Scratch::<f32>::new(POINTS * planes[1]),
            ];
            let (mut window, mut gradient) = (source.window(), result.window());
            for task in range {
                let (share, rest) = (task % shares, task / shares);
                let (group, part) = (rest % plan.groups, rest / plan.groups);
                let out = out.at((part * plan.groups + group) * total);
                let blocks = share * to / shares..(share + 1) * to / shares;
                for point in 0..POINTS {
                    let out = out.add(point * plane + blocks.start * lanes * columns);
                    out.write_bytes(0, blocks.len() * lanes * columns);
                }
                for id in part * pieces / parts..(part + 1) * pieces / parts {
                    look();
                    if !calm.load(Relaxed) {
                        return;
                    }
                    let piece = cut.piece(id);
                    let mut fine = plan.transform(
                        &source,
                        &mut window,
                        x,
                        group,
                        &piece,
                        points[0].ptr(),
                        capacity * lanes,
                        planes[0],
                        SMALL,
                    );
                    let pixels = plan.result[1] * plan.result[2];
                    let channel = plan.result[0] * pixels;
                    for i in 0..piece.planes {
                        let id = piece.first + i;
                        let (n, z) = (id / plan.result[0], id % plan.result[0]);
                        for b in blocks.clone() {
                            let first = (n * plan.groups + group) * plan.outputs + b * lanes;
                            let seen = result.load(
                                g.at(first * channel + z * pixels),
                                channel,
                                lanes.min(plan.outputs - b * lanes),
                                &mut gradient,
                                [2 * piece.row as isize, 2 * piece.column as isize],
                                [2 * piece.rows, 2 * piece.columns],
                            );
                            fine &= seen.is_calm(SMALLEST);
                            let tile = b * capacity + i * piece.rows * piece.columns;
                            (k.gradient)(&Tiles {
                                window: gradient.ptr(),
                                pitch: result.pitch * lanes,
                                rows: piece.rows,
                                columns: piece.columns,
                                points: points[1].ptr().add(tile * lanes),
                                tile: lanes,
                                plane: planes[1],
                            });
                        }
                    }
                    if !fine {
                        calm.store(false, Relaxed);
                        return;
                    }
                    for point in 0..POINTS {
                        let (a, b) = (
                            points[1].ptr().add(point * planes[1]),
                            points[0].ptr().add(point * planes[0]),
                        );
                        for row in (blocks.start * lanes..blocks.end * lanes).step_by(k.rows) {
                            let a = a.add(row / lanes * capacity * lanes + row % lanes);
                            let y = out.add(point * plane + row * columns);
                            let mut column = 0;
                            while column < from {
                                let width = k.correlate.len().min(from - column);
                                (k.correlate[width - 1])(&Correlate {
                                    depth: piece.tiles(),
                                    a,
                                    b: b.add(column * capacity * lanes),
                                    b_block: capacity * lanes,
                                    y: y.add(column * lanes),
                                    y_pitch: columns,
                                });
                                column += width;
                            }
                        }
                    }
                }
            }
        });
        if !calm.into_inner() {
            return false;
        }
        let blocks = plan.inputs.div_ceil(lanes);
        let rows = plan.groups * plan.outputs;
        parallel_for(rows, GRAIN / (40 * (parts + 1) * from) + 1, |range| {
            for row in range {
                let (group, r) = (row / plan.outputs, row % plan.outputs);
                let u = out.at(group * total + r * columns);
                for c in 0..from {
                    let (slice, first) = (c / blocks, c % blocks * lanes);
                    let mut taps = [0f32; 16 * TAPS];
                    let u = u.add(c * lanes);
                    (k.taps)(u, plane, parts, plan.groups * total, taps.as_mut_ptr());
                    for i in 0..lanes.min(plan.inputs - first) {
                        let w =
                            w.at(((row * plan.inputs + first + i) * plan.slices + slice) * TAPS);
                        for t in 0..TAPS {
                            *w.add(t) = taps[t * lanes + i];
                        }
                    }
                }
            }
        });
        true
    }
}

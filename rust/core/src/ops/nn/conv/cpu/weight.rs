//! The gradient for the weight as dot products: a row of the result's gradient with a row of the
//! window at each kernel element's offset, both read in place.

use super::direct::forward_taps;
use super::lanes::{panels, Dot, Rows};
use super::window::{Window, SLACK};
use super::Geometry;
use super::Loops;
use crate::alloc::Scratch;
use crate::cpu::pool::{look, parallel_for, Ptr};

/// Bytes of a gradient row: a panel of four stays in an L1 cache of 32 KB beside the rows of the
/// window, a panel of eight in one of 48 KB.
const ROW: usize = 5 << 10;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 19;
/// Into how many sums the batch is divided at most, and elements of all these sums.
const PARTS: usize = 16;
const PARTIAL: usize = 1 << 21;

/// `w[o, i, k] = sum of g[n, o, l] * x[n, i, l + k]`. Returns false where another way must be
/// taken: some sum is not finite, so that a number beside the rows may have got in as 0 times
/// infinity, or windows would be far too large.
///
/// # Safety
/// The addresses hold tensors of the geometry's sizes, none of them empty; nobody else touches `w`.
pub unsafe fn weight<T: Loops>(geo: &Geometry, x: *const T, g: *const T, w: *mut T) -> bool {
    // SAFETY: tiles, channels and images lie inside the tensors, windows and rows hold all that a
    // tile reads, and tasks have sums of their own.
    unsafe {
        let kernels = T::kernels();
        let (taps, mut window) = forward_taps(geo);
        let (full, reach) = (geo.output, window.reach);
        if window.is_too_wide() {
            return false;
        }
        window.tile = [1; 3];
        // The tile: as long as a panel of rows stays in the cache.
        let room = ROW / size_of::<T>();
        let part = |n: usize, fit: usize| n.div_ceil(n.div_ceil(fit.clamp(1, n)));
        window.set_wide(
            part(full[2], room.saturating_sub(reach[2]).max(64)),
            full[2],
        );
        let mut images = 1;
        if window.tile[2] == full[2] {
            window.tile[1] = part(full[1], (room / window.pitch()).max(reach[1]));
            if window.tile[1] == full[1] {
                let plane = full[1] * window.pitch();
                window.tile[0] = part(full[0], (room / plane).max(reach[0]));
                if window.tile[0] == full[0] {
                    images = part(geo.batch, room / (plane * full[0]));
                }
            }
        }
        let tile = window.tile;
        let cuts: [usize; 3] = std::array::from_fn(|d| full[d].div_ceil(tile[d]));
        let cut_count: usize = cuts.iter().product();
        let blocks = geo.batch.div_ceil(images);
        let tiles = blocks * cut_count;

        // Sums of parts of the batch are added in order; their number depends on sizes alone.
        let columns = geo.inputs * taps.len();
        let total = geo.outputs * columns;
        let work = geo.outputs * columns * full.iter().product::<usize>() * geo.batch * geo.groups;
        let parts = (PARTIAL / (geo.groups * total)).clamp(1, PARTS).min(tiles);
        let parts = parts.min(PARTS.div_ceil(geo.groups)).min(work / GRAIN + 1);
        // Few parts: tasks take some of the channels.
        let shares = (work / GRAIN + 1)
            .min(PARTS)
            .div_ceil(parts * geo.groups)
            .clamp(1, geo.inputs);
        window.channels = geo.inputs.div_ceil(shares);
        let shares = geo.inputs.div_ceil(window.channels);
        let offsets = window.offsets(&taps);
        let panels = panels(geo.outputs, kernels.dot_rows);

        let lanes = kernels.lanes;
        let pitch = window.pitch();
        let length = ((tile[1] - 1) * pitch + tile[2]).next_multiple_of(lanes);
        let row = images * tile[0] * length;
        let sums = Scratch::full(T::default(), parts * geo.groups * total);
        let (x, g, out) = (Ptr::read(x), Ptr::read(g), Ptr::new(sums.ptr()));
        let (in_plane, out_plane): (usize, usize) =
            (geo.input.iter().product(), full.iter().product());
        let tasks = parts * geo.groups * shares;
        parallel_for(tasks, GRAIN / (work / tasks).max(1) + 1, |range| {
            let len = window.len();
            // Behind the rows is only ever what can be multiplied by zero.
            let windows = Scratch::full(T::default(), images * len + SLACK);
            // A row is copied with the zeros that keep it apart from the next, also the last one.
            let rows = Scratch::full(
                T::default(),
                kernels.dot_rows * row + window.reach[2] + SLACK,
            );
            for task in range {
                let (share, rest) = (task % shares, task / shares);
                let (group, part) = (rest % geo.groups, rest / geo.groups);
                let first = share * window.channels;
                let here = Window {
                    channels: window.channels.min(geo.inputs - first),
                    ..window.clone()
                };
                let out = out.at((part * geo.groups + group) * total);
                for id in part * tiles / parts..(part + 1) * tiles / parts {
                    look();
                    let (block, cut) = (id / cut_count, id % cut_count);
                    let at = [
                        cut / (cuts[1] * cuts[2]),
                        cut / cuts[2] % cuts[1],
                        cut % cuts[2],
                    ];
                    let start: [usize; 3] = std::array::from_fn(|d| at[d] * tile[d]);
                    let count: [usize; 3] =
                        std::array::from_fn(|d| tile[d].min(full[d] - start[d]));
                    let batch = block * images..((block + 1) * images).min(geo.batch);
                    let used = ((count[1] - 1) * pitch + count[2]).next_multiple_of(lanes);
                    for (i, n) in batch.clone().enumerate() {
                        let x = x.at(((n * geo.groups + group) * geo.inputs + first) * in_plane);
                        here.fill(kernels, x, windows.ptr().add(i * len), start, count);
                    }
                    for &(o, height) in &panels {
                        for r in 0..height {
                            for (i, n) in batch.clone().enumerate() {
                                let from = (n * geo.groups + group) * geo.outputs + o + r;
                                for z in 0..count[0] {
                                    let line = (start[0] + z) * full[1] + start[1];
                                    let to = rows.ptr().add(r * row + (i * tile[0] + z) * length);
                                    (kernels.copy_rows)(&Rows {
                                        rows: count[1],
                                        columns: pitch,
                                        lo: 0,
                                        hi: count[2],
                                        from: g.at(from * out_plane + line * full[2] + start[2]),
                                        step: 1,
                                        from_pitch: full[2],
                                        to,
                                        pitch,
                                    });
                                    let last = (count[1] - 1) * pitch + count[2];
                                    to.add(last).write_bytes(0, used - last);
                                }
                            }
                        }
                        let columns_here = here.channels * taps.len();
                        let threes = columns_here / 3;
                        for (column, many, tiles) in
                            [(0, 3, threes), (3 * threes, 1, columns_here - 3 * threes)]
                        {
                            kernels.dot(height, many)(&Dot {
                                tiles,
                                runs: [batch.len(), count[0]],
                                length: used,
                                a: rows.ptr(),
                                a_row: row,
                                a_step: [tile[0] * length, length],
                                b: windows.ptr(),
                                b_step: [len, window.slice()],
                                offsets: offsets.as_ptr().add(column),
                                sums: out.add(o * columns + (first * taps.len() + column) * height),
                            });
                        }
                    }
                }
            }
        });

        // Panels hold the sums of a column next to each other; the weight has those of a row so.
        let w = Ptr::new(w);
        let finite = std::sync::atomic::AtomicBool::new(true);
        let tasks = geo.groups * panels.len();
        parallel_for(
            tasks,
            (1 << 14) / (parts * total / panels.len()).max(1) + 1,
            |range| {
                let mut good = true;
                for task in range {
                    let (group, (o, height)) = (task / panels.len(), panels[task % panels.len()]);
                    let at = group * total + o * columns;
                    let sums = std::slice::from_raw_parts_mut(out.at(at), columns * height);
                    for part in 1..parts {
                        let more = out.at(part * geo.groups * total + at);
                        let more = std::slice::from_raw_parts(more, columns * height);
                        for (a, &b) in sums.iter_mut().zip(more) {
                            *a = a.plus(b);
                        }
                    }
                    good &= sums.iter().fold(true, |good, x| good & x.is_finite());
                    // A few columns at a time, which stay in cache for all rows.
                    for (block, sums) in sums.chunks(64 * height).enumerate() {
                        for r in 0..height {
                            let w = w.at(group * total + (o + r) * columns + block * 64);
                            for c in 0..sums.len() / height {
                                *w.add(c) = sums[c * height + r];
                            }
                        }
                    }
                }
                if !good {
                    finite.store(false, std::sync::atomic::Ordering::Relaxed);
                }
            },
        );
        finite.into_inner()
    }
}

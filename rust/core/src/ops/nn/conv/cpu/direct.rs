//! The convolution and its gradient for the input without a matrix of patches: every kernel
//! element reads the same window of the source at an offset, so the inner product needs only a
//! table of offsets. A stride of the source splits the window; a stride of the result (the
//! gradient of a strided convolution) makes one such product for each remainder.

use super::lanes::{chain, panels, Cell, Kernels, Product, Spread};
use super::window::{Tap, Window, LEAST, SLACK};
use super::Geometry;
use super::Loops;
use crate::alloc::Scratch;
use crate::cpu::pool::{look, num_threads, parallel_for, Ptr};

/// Bytes of windows that share the L2 cache with panels of weights and with results.
const WINDOW: usize = 384 << 10;
/// Bytes of sums that are made together.
const SUMS: usize = 8 << 10;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 19;

/// The results whose coordinates have one remainder modulo the step.
struct Target {
    first: [usize; 3],
    count: [usize; 3],
    taps: Vec<Tap>,
}

/// One side of a convolution, as sums over a source.
pub struct Direct<T: 'static> {
    kernels: &'static Kernels<T>,
    batch: usize,
    groups: usize,
    /// Result channels of a group.
    rows: usize,
    size: [usize; 3],
    step: [usize; 3],
    targets: Vec<Target>,
    window: Window,
    /// Steps in the weight: result channel, source channel.
    weight: [usize; 2],
}

fn product(n: [usize; 3]) -> usize {
    n[0] * n[1] * n[2]
}

/// Every triple below `n`, the last coordinate fastest.
fn triples(n: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..product(n)).map(move |i| [i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]])
}

/// The taps of a convolution over its input and the window that they read, not yet cut: the input
/// is split by the stride.
pub fn forward_taps(g: &Geometry) -> (Vec<Tap>, Window) {
    let (mut reach, mut parts) = ([0; 3], Vec::new());
    let split = g.stride.map(|s| s as usize);
    let taps = triples(g.kernel).enumerate().map(|(index, k)| {
        let at: [usize; 3] = std::array::from_fn(|d| k[d] * g.dilation[d] as usize);
        let remainder: [usize; 3] = std::array::from_fn(|d| at[d] % split[d]);
        let shift: [usize; 3] = std::array::from_fn(|d| at[d] / split[d]);
        reach = std::array::from_fn(|d| reach[d].max(shift[d]));
        let found = parts.iter().position(|p| *p == remainder);
        let part = found.unwrap_or_else(|| {
            parts.push(remainder);
            parts.len() - 1
        });
        Tap { index, part, shift }
    });
    let taps = taps.collect();
    let window = Window {
        channels: g.inputs,
        size: g.input,
        pad: g.padding,
        split,
        parts,
        reach,
        tile: g.output,
        shared: 0,
        in_place: false,
    };
    (taps, window)
}

impl<T: Loops> Direct<T> {
    pub fn forward(g: &Geometry) -> Self {
        let (taps, window) = forward_taps(g);
        Direct {
            kernels: T::kernels(),
            batch: g.batch,
            groups: g.groups,
            rows: g.outputs,
            size: g.output,
            step: [1; 3],
            targets: vec![Target {
                first: [0; 3],
                count: g.output,
                taps,
            }],
            window,
            weight: [g.inputs * product(g.kernel), product(g.kernel)],
        }
    }

    pub fn input(g: &Geometry) -> Self {
        // Input `stride * u + first` gets output `u + (first + padding - k * dilation) / stride`
        // where the stride divides it.
        let shift = |d: usize, first: usize, k: usize| -> Option<isize> {
            let at = first as isize + g.padding[d] - k as isize * g.dilation[d];
            (at.rem_euclid(g.stride[d]) == 0).then(|| at.div_euclid(g.stride[d]))
        };
        let step = g.stride.map(|s| s as usize);
        // A remainder that no input has makes no target.
        let firsts: [usize; 3] = std::array::from_fn(|d| step[d].min(g.input[d]));
        let (mut low, mut high) = ([0isize; 3], [0isize; 3]);
        for d in 0..3 {
            let all =
                (0..firsts[d]).flat_map(|f| (0..g.kernel[d]).filter_map(move |k| shift(d, f, k)));
            let all: Vec<isize> = all.collect();
            low[d] = all.iter().copied().min().unwrap_or(0);
            high[d] = all.iter().copied().max().unwrap_or(0);
        }
        let mut tile = [0; 3];
        let targets = triples(firsts)
            .map(|first| {
                let count = std::array::from_fn(|d| (g.input[d] - first[d]).div_ceil(step[d]));
                tile = std::array::from_fn(|d| tile[d].max(count[d]));
                let taps = triples(g.kernel).enumerate().filter_map(|(index, k)| {
                    let mut at = [0; 3];
                    for d in 0..3 {
                        at[d] = (shift(d, first[d], k[d])? - low[d]) as usize;
                    }
                    Some(Tap {
                        index,
                        part: 0,
                        shift: at,
                    })
                });
                Target {
                    first,
                    count,
                    taps: taps.collect(),
                }
            })
            .collect();
        Direct {
            kernels: T::kernels(),
            batch: g.batch,
            groups: g.groups,
            rows: g.inputs,
            size: g.input,
            step,
            targets,
            window: Window {
                channels: g.outputs,
                size: g.output,
                pad: low.map(|l| -l),
                split: [1; 3],
                parts: vec![[0; 3]],
                reach: std::array::from_fn(|d| (high[d] - low[d]) as usize),
                tile,
                shared: 0,
                in_place: false,
            },
            weight: [product(g.kernel), g.inputs * product(g.kernel)],
        }
    }

    /// The same by other kernels.
    pub fn with(self, kernels: &'static Kernels<T>) -> Self {
        Direct { kernels, ..self }
    }

    /// Multiplications for one image of one group.
    fn work(&self) -> usize {
        let of = |t: &Target| product(t.count).saturating_mul(t.taps.len());
        let sum: usize = self.targets.iter().map(of).sum();
        sum.saturating_mul(self.rows * self.window.channels)
    }

    /// Chooses the tile of a window; returns how many images one task takes.
    fn cut(&mut self) -> usize {
        let room = WINDOW / size_of::<T>();
        let full = self.window.tile;
        let work = self.work().saturating_mul(self.batch * self.groups);
        // So many tasks that threads end together.
        let tasks = (work / GRAIN).clamp(1, 4 * num_threads());
        let mut w = self.window.clone();
        w.tile = [1; 3];
        let unit = w.channels * w.parts.len();
        let lines = unit * (1 + w.reach[0]) * (1 + w.reach[1]);
        let fit = (room / lines.max(1)).saturating_sub(w.reach[2]).max(LEAST);
        if fit < full[2] {
            let parts = full[2].div_ceil(fit);
            let lanes = self.kernels.lanes * self.kernels.vectors;
            let wide = full[2].div_ceil(parts).next_multiple_of(lanes);
            w.set_wide(wide.min(full[2]), full[2]);
        } else {
            w.set_wide(full[2], full[2]);
            for d in [1, 0] {
                let row = w.len() / (w.tile[d] + w.reach[d]);
                let fit = (room / row.max(1)).saturating_sub(w.reach[d]);
                // Even where that is more than fits, most of a window is not its halo.
                let fit = fit.max(w.reach[d]).max(1);
                // Fewer tasks than wanted: cut finer, but not so fine that halos dominate.
                let others =
                    (self.batch * self.groups).max(1) * full[..d].iter().product::<usize>();
                let least = (4 * w.reach[d]).max(4);
                let wanted = full[d].div_ceil(tasks.div_ceil(others)).max(least);
                let fit = fit.min(wanted);
                w.tile[d] = full[d].div_ceil(full[d].div_ceil(fit.min(full[d])).max(1));
                if w.tile[d] < full[d] {
                    break;
                }
            }
        }
        // The last vector of a tile reads back over the one before, so it must have all lanes.
        let least = match full[1] % w.tile[1] {
            0 => w.tile[1],
            rest => rest,
        };
        // Planes a multiple of a page apart would share a few sets of the cache (conflict misses).
        let plane = product(w.size) * size_of::<T>();
        w.in_place = self.step == [1; 3]
            && w.is_source(full)
            && w.tile[2] == full[2]
            && (least - 1) * w.size[2] + full[2] >= self.kernels.lanes
            && (w.channels < 8 || !plane.is_multiple_of(4096));
        self.window = w;
        if self.window.tile != full {
            return 1;
        }
        let fit = room / self.window.len().max(1);
        let wanted = self.batch * self.groups / tasks;
        fit.min(wanted).clamp(1, self.batch.max(1))
    }

    /// Weights as panels: for each target, group, panel and depth the panel's rows.
    unsafe fn pack(&self, w: *const T, panels: &[(usize, usize)]) -> (Scratch<T>, Vec<usize>) {
        // SAFETY: `w` holds the weight; tasks have rows of a panel of their own, and `packed` has
        // room for all depths of them.
        unsafe {
            let mut starts = vec![0];
            for t in &self.targets {
                let size = self.groups * self.rows * self.window.channels * t.taps.len();
                starts.push(starts[starts.len() - 1] + size);
            }
            let packed = Scratch::<T>::new(starts[starts.len() - 1]);
            let (w, to) = (Ptr::read(w), Ptr::new(packed.ptr()));
            let tasks = self.groups * panels.len();
            let each = starts[starts.len() - 1] / tasks.max(1);
            parallel_for(tasks, (1 << 15) / each.max(1) + 1, |range| {
                for task in range {
                    let (group, (first, height)) =
                        (task / panels.len(), panels[task % panels.len()]);
                    let [row, channel] = self.weight;
                    // Groups follow each other in the dimension of the convolution's outputs.
                    let size = self.rows.max(1) * self.window.channels.max(1);
                    let w = w.at(group * size * row.min(channel) + first * row);
                    for (t, &start) in self.targets.iter().zip(&starts) {
                        let depth = self.window.channels * t.taps.len();
                        let mut to = to.at(start + (group * self.rows + first) * depth);
                        for c in 0..self.window.channels {
                            for tap in &t.taps {
                                let w = w.add(c * channel + tap.index);
                                for r in 0..height {
                                    *to.add(r) = *w.add(r * row);
                                }
                                to = to.add(height);
                            }
                        }
                    }
                }
            });
            (packed, starts)
        }
    }

    /// Computes the whole result. Returns false, and nothing else, where windows would be far
    /// larger than what they hold.
    ///
    /// # Safety
    /// The addresses hold tensors of the geometry's sizes, `bias` one number for each result
    /// channel or null; nobody else touches `y`.
    pub unsafe fn run(mut self, x: *const T, w: *const T, bias: *const T, y: *mut T) -> bool {
        // SAFETY: tiles, channels and images lie inside the tensors, the windows hold all that a
        // tile reads, and tasks have results of their own.
        unsafe {
            if self.batch * self.groups * self.rows * product(self.size) == 0 {
                return true;
            }
            if self.window.is_too_wide() {
                return false;
            }
            let images = self.cut();
            let panels = panels(self.rows, self.kernels.rows);
            let (packed, starts) = self.pack(w, &panels);
            let offsets: Vec<Vec<usize>> = (self.targets.iter())
                .map(|t| self.window.offsets(&t.taps))
                .collect();
            let full = self.targets[0].count;
            let tile = self.window.tile;
            let cuts: [usize; 3] = std::array::from_fn(|d| full[d].div_ceil(tile[d]));
            let blocks = self.batch.div_ceil(images);
            let tiles = self.groups * blocks * product(cuts);
            let work = self.work() / product(cuts) * images;
            // Too few tiles: several tasks fill the same window and make different channels of it.
            let wanted = (work.saturating_mul(tiles) / GRAIN).clamp(1, 4 * num_threads());
            let shares = if tiles < 2 * num_threads() {
                wanted.div_ceil(tiles).clamp(1, panels.len())
            } else {
                1
            };
            let (x, bias, y) = (Ptr::read(x), Ptr::read(bias), Ptr::new(y));
            let plane: usize = product(self.window.size);
            let channels = self.window.channels;
            let grain = GRAIN / (work / shares).max(1) + 1;
            parallel_for(tiles * shares, grain, |range| {
                let len = self.window.len();
                let in_place = self.window.in_place;
                let held = if in_place { 0 } else { images * len + SLACK };
                let windows = Scratch::full(T::default(), held);
                let image = if in_place { self.groups * len } else { len };
                let room = self.most_tiles() * self.kernels.tile();
                let spill = Scratch::<T>::new(3 * room);
                let mut cells = Cells::default();
                let mut filled = usize::MAX;
                for task in range {
                    look();
                    let (id, share) = (task / shares, task % shares);
                    let (rest, cut) = (id / product(cuts), id % product(cuts));
                    let (group, block) = (rest % self.groups, rest / self.groups);
                    let at = [
                        cut / (cuts[1] * cuts[2]),
                        cut / cuts[2] % cuts[1],
                        cut % cuts[2],
                    ];
                    let start: [usize; 3] = std::array::from_fn(|d| at[d] * tile[d]);
                    let count = std::array::from_fn(|d| tile[d].min(full[d] - start[d]));
                    let batch = block * images..((block + 1) * images).min(self.batch);
                    let source = (batch.start * self.groups + group) * channels * plane;
                    let begin = (start[0] * self.window.size[1] + start[1]) * self.window.size[2];
                    let window = if in_place {
                        x.at(source + begin)
                    } else {
                        windows.ptr()
                    };
                    if filled != id && !in_place {
                        for (i, n) in batch.clone().enumerate() {
                            let x = x.at((n * self.groups + group) * channels * plane);
                            self.window.fill(
                                self.kernels,
                                x,
                                windows.ptr().add(i * len),
                                start,
                                count,
                            );
                        }
                        filled = id;
                    }
                    let part = share * panels.len() / shares..(share + 1) * panels.len() / shares;
                    for (i, t) in self.targets.iter().enumerate() {
                        let sized = std::array::from_fn(|d| {
                            count[d].min(t.count[d].saturating_sub(start[d]))
                        });
                        if product(sized) == 0 {
                            continue;
                        }
                        cells.fit(&self, sized);
                        let depth = offsets[i].len();
                        for &(first, height) in &panels[part.clone()] {
                            let channel = group * self.rows + first;
                            let p = Product {
                                tiles: 1,
                                depth,
                                chain: chain(depth, t.taps.len()),
                                sums: spill.ptr().add(room),
                                a: packed.ptr().add(starts[i] + channel * depth),
                                b: std::ptr::null(),
                                offsets: offsets[i].as_ptr(),
                                bias: if bias.get().is_null() {
                                    std::ptr::null()
                                } else {
                                    bias.at(channel)
                                },
                                y: std::ptr::null_mut(),
                                pitch: product(self.size),
                                cells: std::ptr::null(),
                            };
                            for (j, n) in batch.clone().enumerate() {
                                let row = (n * self.groups + group) * self.rows + first;
                                for z in 0..sized[0] {
                                    let from = window.add(j * image + z * self.window.slice());
                                    let place: [usize; 3] = std::array::from_fn(|d| {
                                        let u = start[d] + if d == 0 { z } else { 0 };
                                        u * self.step[d] + t.first[d]
                                    });
                                    let place = (place[0] * self.size[1] + place[1]) * self.size[2]
                                        + place[2];
                                    let y = y.at(row * product(self.size) + place);
                                    self.plane(&p, height, from, y, &cells, spill.ptr());
                                }
                            }
                        }
                    }
                }
            });
            true
        }
    }

    /// A panel's rows over one plane of a tile.
    #[inline]
    unsafe fn plane(
        &self,
        p: &Product<T>,
        height: usize,
        from: *const T,
        y: *mut T,
        cells: &Cells,
        spill: *mut T,
    ) {
        // SAFETY: `from` is the plane's place in the window, `y` in the result; `spill` has room
        // for the vectors of a panel.
        unsafe {
            let (lanes, most) = (self.kernels.lanes, self.kernels.vectors);
            let mut q = 0;
            while q < cells.total {
                let left = cells.total - q;
                let left = if !self.window.in_place {
                    left.div_ceil(lanes)
                } else if left >= lanes {
                    left / lanes
                } else {
                    // Not behind the end of the source: some results are made twice.
                    q = cells.total - lanes;
                    1
                };
                let vectors = most.min(left);
                let tiles = (left / vectors).min(self.most_tiles());
                let kernel = self.kernels.product(height, vectors);
                let b = from.add(q);
                let columns = tiles * vectors * lanes;
                if cells.together {
                    // The cell of the last vector that reads back is behind the others.
                    let cells = cells.list.as_ptr().add(q.div_ceil(lanes));
                    kernel(&Product {
                        tiles,
                        b,
                        y,
                        cells,
                        ..*p
                    });
                } else {
                    kernel(&Product {
                        tiles,
                        b,
                        y: spill,
                        pitch: columns,
                        ..*p
                    });
                    self.spread(spill, q, columns, height, y, cells);
                }
                q += columns;
            }
        }
    }

    /// Tiles whose sums a kernel keeps beside what it reads, in the L1 cache.
    fn most_tiles(&self) -> usize {
        (SUMS / size_of::<T>() / self.kernels.tile()).max(1)
    }

    /// Brings `n` columns of results to their places, which are not next to each other.
    unsafe fn spread(
        &self,
        from: *const T,
        at: usize,
        n: usize,
        height: usize,
        y: *mut T,
        cells: &Cells,
    ) {
        // SAFETY: runs of cells lie inside the result from `y` on, and `from` has `n` columns of
        // `height` rows.
        unsafe {
            let step = self.step[2];
            let mut q = at;
            let end = (at + n).min(cells.total);
            while q < end {
                let (row, column) = (q / cells.pitch, q % cells.pitch);
                let run = (cells.pitch - column).min(end - q);
                if column < cells.width {
                    let run = run.min(cells.width - column);
                    (self.kernels.spread)(&Spread {
                        rows: height,
                        columns: run,
                        from: from.add(q - at),
                        from_pitch: n,
                        to: y.add(row * self.step[1] * self.size[2] + column * step),
                        to_pitch: product(self.size),
                        step,
                    });
                }
                q += run;
            }
        }
    }
}

/// Which of the positions along a window's rows are results.
#[derive(Default)]
struct Cells {
    rows: usize,
    width: usize,
    pitch: usize,
    /// Positions up to the last result.
    total: usize,
    /// Whether results are next to each other in memory.
    together: bool,
    list: Vec<Cell>,
}

impl Cells {
    fn fit<T: Loops>(&mut self, d: &Direct<T>, count: [usize; 3]) {
        let [_, rows, width] = count;
        if (self.rows, self.width) == (rows, width) {
            return;
        }
        let pitch = d.window.pitch();
        let lanes = d.kernels.lanes;
        *self = Cells {
            rows,
            width,
            pitch,
            total: (rows - 1) * pitch + width,
            together: d.step == [1; 3] && (rows == 1 || width == d.size[2]),
            list: std::mem::take(&mut self.list),
        };
        self.list.clear();
        if !self.together {
            return;
        }
        for v in 0..self.total.div_ceil(lanes) {
            let mut from = v * lanes;
            if d.window.in_place && from + lanes > self.total {
                from = self.total - lanes;
            }
            let (mut row, mut column) = (from / pitch, from % pitch);
            let at = (row * width + column.min(width)) as u32;
            let (mut mask, mut i) = (0u32, 0);
            while i < lanes && row < rows {
                let n = (pitch - column).min(lanes - i);
                let wanted = width.saturating_sub(column).min(n);
                mask |= ((1 << wanted) - 1) << i;
                (i, column) = (i + n, column + n);
                if column == pitch {
                    (row, column) = (row + 1, 0);
                }
            }
            let first = (1 << mask.count_ones()) - 1;
            let cell = Cell { mask, first, at };
            self.list.push(cell);
        }
    }
}

//! Winograd's convolution F(2x2, 3x3) for float32: 2x2 results of a 3x3 kernel from 16 products
//! instead of 36. Lavin and Gray 2015, arXiv:1509.09308.
//!
//! Sums and halves are all that the transforms add, so errors stay near those of the direct sum:
//! relative to the largest terms of a tile, which is 4x4 pixels where a result's own window is 3x3.
//! A source with numbers that are not finite, or so large beside the others that this would be
//! seen, is left to the direct way.

mod image;
mod kernel;
mod weight;

use super::Geometry;
use crate::alloc::Scratch;
use crate::cpu::pool::{look, num_threads, parallel_for, Ptr};
use image::{Image, Window};
use kernel::{kernels, Kernels, Multiply, Seen, Tiles, Weights, POINTS, TAPS};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
pub use weight::weight;

/// Bytes of the transformed tiles of a source, which share the L2 cache with weights and products.
const ROOM: usize = 288 << 10;
/// Tiles of a piece, at least and at most.
const TILES: (usize, usize) = (32, 128);
/// Vector operations that a second thread is worth.
const GRAIN: usize = 1 << 15;
/// Magnitudes within which no product or sum leaves the range of float32.
const LARGE: f32 = (1u64 << 50) as f32;
const SMALL: f32 = 1.0 / (1u64 << 40) as f32;
const SMALLEST: f32 = SMALL * SMALL;
/// How much larger than the mean of a source the largest number may be: its rounding errors come
/// to neighbours that the direct sum keeps apart.
const PEAK: f32 = 1024.0;

impl Seen {
    /// Whether transforms of such numbers are as good as the numbers.
    fn is_calm(&self, least: f32) -> bool {
        let fits = self.max == 0.0 || (least..=LARGE).contains(&self.max);
        self.sum.is_finite() && fits && self.max * self.count <= PEAK * self.sum
    }
}

/// A convolution of stride and dilation 1 along the last two dimensions, where its kernel is 3x3.
struct Plan {
    kernels: &'static Kernels,
    batch: usize,
    groups: usize,
    /// Channels of a group.
    inputs: usize,
    outputs: usize,
    source: [usize; 3],
    result: [usize; 3],
    padding: [isize; 3],
    /// Kernel size, stride and dilation of the first dimension: its slices are more channels.
    slices: usize,
    stride: isize,
    dilation: isize,
}

/// A few tiles: some rows and columns of them in one plane, or those of several planes.
struct Piece {
    first: usize,
    planes: usize,
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

impl Piece {
    fn tiles(&self) -> usize {
        self.planes * self.rows * self.columns
    }
}

/// How planes of tiles are cut into pieces.
struct Cut {
    planes: usize,
    tiles: [usize; 2],
    /// The most of a piece.
    most: Piece,
}

impl Cut {
    fn counts(&self) -> [usize; 3] {
        let most = &self.most;
        let rows = self.tiles[0].div_ceil(most.rows);
        let columns = self.tiles[1].div_ceil(most.columns);
        [self.planes.div_ceil(most.planes), rows, columns]
    }
    fn len(&self) -> usize {
        self.counts().iter().product()
    }
    fn piece(&self, id: usize) -> Piece {
        let ([_, rows, columns], most) = (self.counts(), &self.most);
        let first = id / (rows * columns) * most.planes;
        let row = id / columns % rows * most.rows;
        let column = id % columns * most.columns;
        Piece {
            first,
            planes: most.planes.min(self.planes - first),
            row,
            rows: most.rows.min(self.tiles[0] - row),
            column,
            columns: most.columns.min(self.tiles[1] - column),
        }
    }
}

impl Plan {
    fn new(g: &Geometry) -> Option<Plan> {
        let fits = g.kernel[1..] == [3, 3] && g.stride[1..] == [1, 1] && g.dilation[1..] == [1, 1];
        (fits && !g.is_empty()).then(|| Plan {
            kernels: kernels(),
            batch: g.batch,
            groups: g.groups,
            inputs: g.inputs,
            outputs: g.outputs,
            source: g.input,
            result: g.output,
            padding: g.padding,
            slices: g.kernel[0],
            stride: g.stride[0],
            dilation: g.dilation[0],
        })
    }

    /// The gradient for the input: a convolution with the kernel flipped.
    fn flipped(g: &Geometry) -> Option<Plan> {
        let plan = Plan::new(g)?;
        let reach = (plan.slices as isize - 1) * plan.dilation;
        let [z, y, x] = g.padding;
        (plan.stride == 1).then_some(Plan {
            inputs: g.outputs,
            outputs: g.inputs,
            source: g.output,
            result: g.input,
            padding: [reach - z, 2 - y, 2 - x],
            ..plan
        })
    }

    fn tiles(&self) -> [usize; 2] {
        [self.result[1].div_ceil(2), self.result[2].div_ceil(2)]
    }

    /// Vectors of source channels, slices among them, and of result channels.
    fn blocks(&self) -> [usize; 2] {
        let lanes = self.kernels.lanes;
        [
            self.slices * self.inputs.div_ceil(lanes),
            self.outputs.div_ceil(lanes),
        ]
    }

    /// Vector operations of one group, if they are fewer than those of the direct sum.
    fn work(&self) -> Option<usize> {
        let ([from, to], lanes) = (self.blocks(), self.kernels.lanes);
        let depth = self.slices * self.inputs;
        let [_, h, w] = self.result;
        let planes = self.batch * self.result[0];
        let [rows, columns] = self.tiles();
        let (tiles, pixels) = (planes * rows * columns, planes * h * w);
        let direct = pixels.saturating_mul(TAPS * depth * self.outputs / lanes) / 4 * 5;
        let products = tiles.saturating_mul(POINTS * depth * to) / 8 * 9;
        let transforms = tiles.saturating_mul(90 * from + 70 * to) + 110 * depth * to;
        let all = products.saturating_add(transforms);
        (direct >= GRAIN && all < direct / 8 * 7).then_some(all)
    }

    /// Pieces of at most `limit` tiles, where a row of `unit` tiles is the kernel's.
    fn cut(&self, limit: usize, unit: usize) -> Cut {
        let limit = limit.clamp(TILES.0, TILES.1);
        let tiles = self.tiles();
        let part = |n: usize, most: usize| n.div_ceil(n.div_ceil(most.max(1)));
        let columns = part(tiles[1], limit);
        // Whole kernels, and few pixels that two pieces need.
        let [from, to] = self.blocks();
        let depth = self.slices * self.inputs;
        let cost = |rows: usize| {
            let of = |rows: usize| {
                let products = (rows * columns).next_multiple_of(unit) * POINTS * depth * to;
                products + (2 * rows + 2) * (2 * columns + 2) * 12 * from
            };
            let last = tiles[0] % rows;
            tiles[0] / rows * of(rows) + if last > 0 { of(last) } else { 0 }
        };
        let rows = (1..=tiles[0].min((limit / columns).max(1))).min_by_key(|&rows| cost(rows));
        let rows = rows.unwrap_or(1);
        let planes = self.batch * self.result[0];
        let whole = rows == tiles[0] && columns == tiles[1];
        let many = if whole {
            (limit / (rows * columns)).clamp(1, planes)
        } else {
            1
        };
        let most = Piece {
            first: 0,
            planes: part(planes, many),
            row: 0,
            rows,
            column: 0,
            columns,
        };
        Cut {
            planes,
            tiles,
            most,
        }
    }

    /// Source pixels of a piece at most.
    fn window(&self, cut: &Cut) -> [usize; 2] {
        [2 * cut.most.rows + 2, 2 * cut.most.columns + 2]
    }

    /// Transforms the tiles of a piece: for each of the sixteen points, `plane` elements apart, and
    /// each block of channels, `block` apart, a vector for each tile. Returns false where the
    /// source does not allow it.
    #[allow(clippy::too_many_arguments)]
    unsafe fn transform(
        &self,
        image: &Image,
        window: &mut Window,
        x: Ptr<f32>,
        group: usize,
        piece: &Piece,
        to: *mut f32,
        block: usize,
        plane: usize,
        least: f32,
    ) -> bool {
        // SAFETY: slices and channels lie inside `x`, and `to` has a vector for each tile, block
        // and point.
        unsafe {
            let lanes = self.kernels.lanes;
            let pixels = self.source[1] * self.source[2];
            let channel = self.source[0] * pixels;
            let blocks = self.inputs.div_ceil(lanes);
            let tiles = piece.rows * piece.columns;
            let at = [2 * piece.row, 2 * piece.column];
            for i in 0..piece.planes {
                let id = piece.first + i;
                let (n, z) = (id / self.result[0], id % self.result[0]);
                for slice in 0..self.slices {
                    let z =
                        z as isize * self.stride + slice as isize * self.dilation - self.padding[0];
                    for b in 0..blocks {
                        let to = to.add((slice * blocks + b) * block + i * tiles * lanes);
                        if !(0..self.source[0] as isize).contains(&z) {
                            for point in 0..POINTS {
                                to.add(point * plane).write_bytes(0, tiles * lanes);
                            }
                            continue;
                        }
                        let first = (n * self.groups + group) * self.inputs + b * lanes;
                        let seen = image.load(
                            x.at(first * channel + z as usize * pixels),
                            channel,
                            lanes.min(self.inputs - b * lanes),
                            window,
                            [
                                at[0] as isize - self.padding[1],
                                at[1] as isize - self.padding[2],
                            ],
                            [2 * piece.rows + 2, 2 * piece.columns + 2],
                        );
                        if !seen.is_calm(least) {
                            return false;
                        }
                        (self.kernels.input)(&Tiles {
                            window: window.ptr(),
                            pitch: image.pitch * lanes,
                            rows: piece.rows,
                            columns: piece.columns,
                            points: to,
                            tile: lanes,
                            plane,
                        });
                    }
                }
            }
            true
        }
    }
}

/// The vectors of result channels that one kernel takes: the first, and how many.
fn spans(kernels: &Kernels, blocks: usize) -> Vec<(usize, usize)> {
    let count = blocks.div_ceil(kernels.multiply.len());
    let at = |i: usize| i * blocks / count;
    (0..count).map(|i| (at(i), at(i + 1) - at(i))).collect()
}

/// From one point to the next, where each has so many vectors: an odd number of cache lines, so
/// that the sixteen of a tile lie in different sets.
fn apart(vectors: usize, lanes: usize) -> usize {
    let line = 64 / size_of::<f32>();
    (vectors * lanes).div_ceil(line) / 2 * 2 * line + line
}

/// The convolution. Returns false where another way must be taken.
///
/// # Safety
/// The addresses hold tensors of the geometry's sizes, `bias` one number for each result channel
/// or null; nobody else touches `y`.
pub unsafe fn forward(
    g: &Geometry,
    x: *const f32,
    w: *const f32,
    bias: *const f32,
    y: *mut f32,
) -> bool {
    Plan::new(g).is_some_and(|plan| {
        let taps = plan.slices * TAPS;
        // SAFETY: the addresses hold tensors of the geometry's sizes, and `y` is this call's alone.
        unsafe { plan.run([plan.inputs * taps, taps], false, x, w, bias, y) }
    })
}

/// Whether [`forward`], or [`input`], computes it.
pub fn takes(g: &Geometry, input: bool) -> bool {
    match input {
        true => Plan::flipped(g).is_some(),
        false => Plan::new(g).is_some(),
    }
}

/// The gradient for the input.
///
/// # Safety
/// As for [`forward`], with the parts of input and output exchanged.
pub unsafe fn input(
    geo: &Geometry,
    g: *const f32,
    w: *const f32,
    bias: *const f32,
    x: *mut f32,
) -> bool {
    Plan::flipped(geo).is_some_and(|plan| {
        let taps = plan.slices * TAPS;
        // SAFETY: the addresses hold tensors of the geometry's sizes, and `x` is this call's alone.
        unsafe { plan.run([taps, plan.outputs * taps], true, g, w, bias, x) }
    })
}

impl Plan {
    /// Transforms the weights: for each group, point, span of result channels and source channel
    /// the span's vectors. `steps` are those of result and source channels in the weight.
    unsafe fn pack(
        &self,
        steps: [usize; 2],
        flipped: bool,
        w: *const f32,
        spans: &[(usize, usize)],
        plane: usize,
    ) -> Option<Scratch<f32>> {
        // SAFETY: `steps` stay inside the weight, `packed` holds all groups, points and spans, and
        // tasks have blocks of their own.
        unsafe {
            let (lanes, blocks) = (self.kernels.lanes, self.blocks()[1]);
            let packed = Scratch::<f32>::new(self.groups * POINTS * plane);
            let depth = self.slices * self.inputs;
            let (w, to) = (Ptr::read(w), Ptr::new(packed.ptr()));
            let calm = AtomicBool::new(true);
            let per_group = self.inputs * self.outputs * self.slices * TAPS;
            let each = 120 * depth;
            parallel_for(self.groups * blocks, GRAIN / each + 1, |range| {
                for task in range {
                    let (group, block) = (task / blocks, task % blocks);
                    let span = spans.iter().find(|s| block < s.0 + s.1);
                    let &(first, width) = span.expect("a span for each block");
                    let to =
                        to.at(group * POINTS * plane + (first * depth + block - first) * lanes);
                    let w = w.at(group * per_group + block * lanes * steps[0]);
                    let mut seen = Seen::NOTHING;
                    for slice in 0..self.slices {
                        let from = if flipped {
                            self.slices - 1 - slice
                        } else {
                            slice
                        };
                        for c in 0..self.inputs {
                            seen = seen.with((self.kernels.weights)(&Weights {
                                from: w.add(c * steps[1] + from * TAPS),
                                pitch: steps[0],
                                channels: lanes.min(self.outputs - block * lanes),
                                flip: flipped,
                                to: to.add((slice * self.inputs + c) * width * lanes),
                                plane,
                            }));
                        }
                    }
                    if !seen.is_calm(SMALL) {
                        calm.store(false, Relaxed);
                    }
                }
            });
            calm.into_inner().then_some(packed)
        }
    }

    unsafe fn run(
        &self,
        steps: [usize; 2],
        flipped: bool,
        x: *const f32,
        w: *const f32,
        bias: *const f32,
        y: *mut f32,
    ) -> bool {
        // SAFETY: pieces lie inside the tensors and have results of their own; points and products
        // have room for the largest.
        unsafe {
            let Some(work) = self.work() else {
                return false;
            };
            let (k, lanes) = (self.kernels, self.kernels.lanes);
            let [from, to] = self.blocks();
            let spans = spans(k, to);
            let weights = apart(self.slices * self.inputs * to, lanes);
            let Some(packed) = self.pack(steps, flipped, w, &spans, weights) else {
                return false;
            };
            let unit = k.multiply[spans[0].1 - 1].0;
            // So many tasks that threads end together.
            let all = self.batch * self.result[0] * self.tiles().iter().product::<usize>();
            let share = all * self.groups / (4 * num_threads());
            let room = ROOM / (POINTS * size_of::<f32>() * lanes * from);
            let cut = self.cut(room.min(share), unit);
            let widest = spans.iter().map(|s| s.1).max().unwrap_or(1);
            let capacity = cut.most.tiles() + k.multiply.iter().map(|m| m.0).max().unwrap_or(1);
            let planes = [
                apart(from * capacity, lanes),
                apart(widest * capacity, lanes),
            ];
            let (source, result) = (
                Image::new(k, [self.source[1], self.source[2]], self.window(&cut)),
                Image::new(
                    k,
                    [self.result[1], self.result[2]],
                    [2 * cut.most.rows, 2 * cut.most.columns],
                ),
            );
            let (x, bias, y) = (Ptr::read(x), Ptr::read(bias), Ptr::new(y));
            let calm = AtomicBool::new(true);
            let pieces = cut.len();
            let tasks = pieces * self.groups;
            parallel_for(tasks, GRAIN / (work / pieces).max(1) + 1, |range| {
                let points = Scratch::<f32>::new(POINTS * planes[0]);
                let products = Scratch::<f32>::new(POINTS * planes[1]);
                let (mut window, mut done) = (source.window(), result.window());
                let mut cleared = capacity;
                for task in range {
                    look();
                    if !calm.load(Relaxed) {
                        return;
                    }
                    let (piece, group) = (cut.piece(task / self.groups), task % self.groups);
                    let tiles = piece.tiles();
                    // What the last kernel reads behind the tiles only has to be numbers.
                    for i in (0..POINTS * from).filter(|_| tiles < cleared) {
                        let at = i / from * planes[0] + (i % from * capacity + tiles) * lanes;
                        points
                            .ptr()
                            .add(at)
                            .write_bytes(0, (cleared - tiles) * lanes);
                    }
                    cleared = cleared.min(tiles);
                    let fine = self.transform(
                        &source,
                        &mut window,
                        x,
                        group,
                        &piece,
                        points.ptr(),
                        capacity * lanes,
                        planes[0],
                        SMALLEST,
                    );
                    if !fine {
                        calm.store(false, Relaxed);
                        return;
                    }
                    for &(first, width) in &spans {
                        let (rows, multiply) = k.multiply[width - 1];
                        for point in 0..POINTS {
                            let b = (group * POINTS + point) * weights;
                            multiply(&Multiply {
                                tiles: tiles.div_ceil(rows),
                                slices: self.slices,
                                depth: self.inputs,
                                a: points.ptr().add(point * planes[0]),
                                a_block: capacity * lanes,
                                b: packed
                                    .ptr()
                                    .add(b + first * self.slices * self.inputs * lanes),
                                y: products.ptr().add(point * planes[1]),
                            });
                        }
                        for block in first..first + width {
                            let channel = group * self.outputs + block * lanes;
                            let channels = lanes.min(self.outputs - block * lanes);
                            let mut shift = [0f32; 16];
                            if !bias.get().is_null() {
                                for (i, s) in shift[..channels].iter_mut().enumerate() {
                                    *s = *bias.at(channel + i);
                                }
                            }
                            for i in 0..piece.planes {
                                let id = piece.first + i;
                                let (n, z) = (id / self.result[0], id % self.result[0]);
                                let tile = i * piece.rows * piece.columns * width + block - first;
                                let window = Tiles {
                                    window: done.ptr(),
                                    pitch: result.pitch * lanes,
                                    rows: piece.rows,
                                    columns: piece.columns,
                                    points: products.ptr().add(tile * lanes),
                                    tile: width * lanes,
                                    plane: planes[1],
                                };
                                (k.output)(&window, shift.as_ptr());
                                let pixels = self.result[1] * self.result[2];
                                let plane = self.result[0] * pixels;
                                let at = n * self.groups * self.outputs + channel;
                                result.store(
                                    y.at(at * plane + z * pixels),
                                    plane,
                                    channels,
                                    &mut done,
                                    [2 * piece.row, 2 * piece.column],
                                    [2 * piece.rows, 2 * piece.columns],
                                );
                            }
                        }
                    }
                }
            });
            calm.into_inner()
        }
    }
}

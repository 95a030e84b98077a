//! Attention by tiles on the GPU: no matrix of weights, nor of what dropout keeps.

use super::cpu::flash::{self, Flash};
use crate::device::Device;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::layout::Layout;
use crate::rng::default_generator;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer;

params! {
    struct Params {
        queries: u32,
        keys: u32,
        heads: u32,
        group: u32,
        width: u32,
        value_width: u32,
        planes: u32,
        tiles: u32,
        scale: f32,
        kept: f32,
        bound: u32,
        all: u32,
        random: [u32; 4],
        step: [[u32; 4]; 9],
        offset: [u32; 12],
    }
}
shader! { static ATTENTION: Params = "attention.wgsl", Acc::FLOAT }
shader! { static ATTENTION_BACKWARD: Params = "attention_backward.wgsl", Acc::FLOAT }

/// Places in the lists of strides and offsets.
const MASK: usize = 3;
const Y: usize = 4;
const G: usize = 5;
const GRADS: usize = 6;
const AHEAD: usize = 9;
/// Components that a kernel takes at most, and buffers that one binds.
const WIDEST: usize = 256;
const BUFFERS: u32 = 9;
/// Iterations of an invocation that software Vulkan allows, with some to spare.
const TRIPS: usize = 60_000;

/// Dropout of weights by a counter: the probability, and the numbers' key and stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dropped {
    p: Bitwise,
    random: [u32; 4],
    device: Device,
}

/// Where the numbers' key and stream lie in the parameters.
const RANDOM: usize = std::mem::offset_of!(Params, random);

impl Dropped {
    pub fn new(p: f64, device: Device) -> Dropped {
        Dropped {
            p: Bitwise(p),
            random: default_generator(device).philox().words(),
            device,
        }
    }

    pub fn key(&self) -> [u32; 4] {
        self.random
    }

    pub fn keyed(&self, key: Option<[u32; 4]>) -> Dropped {
        match key {
            None => Dropped::new(self.p.0, self.device),
            Some(random) => Dropped { random, ..*self },
        }
    }
}

/// How a workgroup's tile is shared: its own rows and those that pass by, and the rows and columns of its
/// invocations.
#[derive(Clone, Copy)]
struct Tile {
    own: usize,
    passing: usize,
    rows: usize,
    columns: usize,
}

const fn tile(own: usize, passing: usize, rows: usize, columns: usize) -> Tile {
    Tile {
        own,
        passing,
        rows,
        columns,
    }
}
/// The quickest first.
const FORWARD: [Tile; 4] = [
    tile(32, 32, 16, 8),
    tile(32, 16, 16, 4),
    tile(16, 16, 16, 4),
    tile(8, 16, 8, 4),
];
const BACKWARD: [Tile; 3] = [tile(32, 32, 16, 8), tile(16, 16, 16, 4), tile(8, 8, 8, 2)];

/// What a workgroup remembers of fours of components.
struct Words {
    pitch: usize,
    span: usize,
}

impl Tile {
    fn words(self, d: usize) -> Words {
        Words {
            pitch: d.div_ceil(4) | 1,
            span: self.passing / 4 + 1,
        }
    }

    /// Bytes of a workgroup's memory.
    fn forward(self, d: usize) -> usize {
        let Words { pitch, span } = self.words(d);
        16 * ((self.own + self.passing) * pitch + self.own * span) + 4 * self.own * self.columns + 4
    }

    fn backward(self, d: usize) -> usize {
        let Words { pitch, span } = self.words(d);
        let rows = 2 * (self.own + self.passing) * pitch + 2 * self.own * span;
        16 * (rows + self.own.max(self.passing)) + 4
    }

    /// Turns of loops for a tile that passes by, and for one's own rows; of a gradient where `sums` is 2, and
    /// with all loops where they stay `rolled`.
    fn trips(self, d: usize, sums: usize, rolled: bool) -> [usize; 2] {
        let threads = self.rows * self.columns;
        let fours = d.div_ceil(4);
        let loads = |rows: usize| 2 * (rows * fours).div_ceil(threads);
        if !rolled {
            let each = loads(self.passing) + sums * fours + self.passing / 4;
            return [each + 16, loads(self.own) + 4 * fours + 16];
        }
        let (m, n) = (self.own / self.rows, self.passing / self.columns);
        let c = fours.div_ceil(self.columns);
        let scores = sums * fours * (1 + m + n * (m + 1));
        let weights = m * (1 + self.columns + c + 6 * n);
        let parts = self.passing / 4 * (1 + 2 * m + 4 * (1 + c * (m + 1)));
        let each = 5 * loads(self.passing) + scores + m * n + weights + parts;
        [each, 5 * loads(self.own) + 4 * fours + 3 * m * c * 5]
    }

    /// The most iterations of an invocation that goes through so many rows.
    fn all_trips(self, d: usize, sums: usize, rolled: bool, rows: usize) -> usize {
        let [each, once] = self.trips(d, sums, rolled);
        rows.div_ceil(self.passing) * each + once
    }
}

/// The tiles forth and back that fit into the memory of a workgroup and are not larger than there are rows.
fn tiles(gpu: &Gpu, d: usize, longest: usize) -> Option<[Tile; 2]> {
    let memory = gpu.info().limits.max_compute_workgroup_storage_size as usize;
    let useful = longest.next_power_of_two().max(8);
    let fit = |all: &[Tile], bytes: fn(Tile, usize) -> usize| {
        let mut fitting = all.iter().filter(|t| bytes(**t, d) <= memory);
        fitting
            .clone()
            .find(|t| t.own <= useful)
            .or(fitting.next_back())
            .copied()
    };
    Some([
        fit(&FORWARD, Tile::forward)?,
        fit(&BACKWARD, Tile::backward)?,
    ])
}

/// Whether loops over parts of a tile stay loops, where copies of their bodies take long to compile
/// and the work is short: there they run half as long again.
fn rolled(gpu: &Gpu, tile: Tile, d: usize, sums: usize, rows: usize) -> bool {
    gpu.info().software && 4 * tile.all_trips(d, sums, true, rows) < TRIPS
}

/// Rows that an invocation goes through, of keys or, for a key, of all its heads' queries.
fn longest(q: &Tensor, k: &Tensor) -> usize {
    rows(k).max(rows(q) * (heads(q) / heads(k).max(1)))
}

/// Whether all have as many components as a tile has room for, which a kernel then knows where loops may be
/// written out.
fn is_whole_width(gpu: &Gpu, p: &Params, d: usize) -> bool {
    gpu.info().unrolls && d.is_multiple_of(4) && [p.width, p.value_width] == [d as u32; 2]
}

fn widest(q: &Tensor, v: &Tensor) -> usize {
    q.size(q.ndim() - 1).max(v.size(v.ndim() - 1))
}

fn rows(t: &Tensor) -> usize {
    t.size(t.ndim() - 2)
}

fn heads(t: &Tensor) -> usize {
    t.ndim().checked_sub(3).map_or(1, |d| t.size(d))
}

/// Whether a kernel can bind the operands, and the result.
pub fn is_whole(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> bool {
    let Device::Wgpu(index) = q.device() else {
        return true;
    };
    let width = q.size(q.ndim() - 1).max(1);
    let result = q.numel() / width * v.size(v.ndim() - 1) * q.dtype().size();
    let all = [Some(q), Some(k), Some(v), mask];
    result <= transfer::bindable_bytes(index)
        && all.iter().flatten().all(|t| transfer::is_bound_whole(t))
}

/// Whether kernels take these.
pub fn fits(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<bool> {
    let Device::Wgpu(index) = q.device() else {
        return Ok(false);
    };
    let gpu = Gpu::at(index)?;
    let d = widest(q, v);
    let all = [Some(q), Some(k), Some(v), mask];
    let plain = all.iter().flatten().all(|t| {
        t.device() == q.device() && t.numel() > 0 && t.layout().extent().is_ok_and(|n| n < 1 << 31)
    });
    let types = transfer::small_floats(&[q, k, v])
        && mask.is_none_or(|m| m.dtype() == DType::Bool || transfer::small_floats(&[m]));
    let Some([_, back]) = tiles(gpu, d, rows(q).max(rows(k))) else {
        return Ok(false);
    };
    let short = !gpu.info().software || back.all_trips(d, 2, false, longest(q, k)) < TRIPS;
    Ok(plain
        && types
        && short
        && q.ndim() <= 4
        && d <= WIDEST
        && gpu.info().limits.max_storage_buffers_per_shader_stage >= BUFFERS
        && flash::fits(q, k, v, mask))
}

/// Strides along batch, heads, rows and components.
fn steps(layout: &Layout) -> [u32; 4] {
    let s = &layout.strides;
    let n = s.len();
    let at = |back: usize| n.checked_sub(back).map_or(0, |d| s[d] as u32);
    [at(4), at(3), at(2), at(1)]
}

impl Flash {
    /// What both kernels know; `x` are the op's inputs.
    fn block(&self, x: &[&Tensor]) -> Params {
        let (q, k, v) = (x[0], x[1], x[2]);
        let keep = self.dropped.map_or(1.0, |d| 1.0 - d.p.0);
        let bound = (keep * 4_294_967_296.0).round() as u64;
        let mut p = Params {
            queries: rows(q) as u32,
            keys: rows(k) as u32,
            heads: heads(q) as u32,
            group: (heads(q) / heads(k)) as u32,
            width: q.size(q.ndim() - 1) as u32,
            value_width: v.size(v.ndim() - 1) as u32,
            planes: 0,
            tiles: 0,
            scale: self.scale.0 as f32,
            kept: if keep > 0.0 { (1.0 / keep) as f32 } else { 0.0 },
            bound: bound.min(u32::MAX as u64) as u32,
            all: (bound > u32::MAX as u64) as u32,
            random: self.dropped.map_or([0; 4], |d| d.random),
            step: [[0; 4]; 9],
            offset: [0; 12],
        };
        for (i, t) in x[..3].iter().enumerate() {
            p.put(i, t);
        }
        p.offset[AHEAD] = self.ahead as i32 as u32;
        if self.mask {
            let mut shape: Dims = Dims::from_slice(&q.shape()[..q.ndim() - 1]);
            shape.push(rows(k));
            p.step[MASK] = steps(&x[3].layout().expand_to(&shape));
            p.offset[MASK] = x[3].offset() as u32;
        }
        p
    }

    /// The result, and the statistics of its rows.
    pub(super) fn launch(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (q, k, v) = (x[0], x[1], x[2]);
        let mask = if self.mask { x[3] } else { q };
        let d = widest(q, v);
        let Some([t, _]) = tiles(gpu, d, rows(q).max(rows(k))) else {
            return Ok(false);
        };
        let mut p = self.block(x);
        p.put(Y, &y[0]);
        p.tiles = rows(q).div_ceil(t.own) as u32;
        p.planes = (q.numel() / (rows(q) * q.size(q.ndim() - 1))) as u32;
        transfer::ran(
            ATTENTION
                .launch(Acc::F32)
                .set("MASK", self.mask)
                .set("CAUSAL", self.causal)
                .set("DROPOUT", self.dropped.is_some())
                .set("PAIRS", transfer::lies_in_pairs(&y[0]))
                .set("D", d as u32)
                .set("TX", t.own as u32)
                .set("TZ", t.passing as u32)
                .set("ROWS", t.rows as u32)
                .set("COLUMNS", t.columns as u32)
                .set("WHOLE", is_whole_width(gpu, &p, d))
                .set("ROLLED", rolled(gpu, t, d, 1, rows(k)))
                .writes("Y", &y[0])
                .writes_words(&y[1])
                .reads("X", q)
                .reads_words(k)
                .reads_words(v)
                .reads("A", mask)
                .told(gpu, RANDOM, 0, 4)
                .groups(gpu, &p, (p.tiles * p.planes) as usize),
        )
    }

    /// The gradients of queries, keys and values from that of the result, the result and its
    /// statistics, which stand in front of the op's inputs.
    pub(super) fn launch_backward(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let ([g, out], of) = ([x[0], x[1]], &x[3..]);
        // A part of them begins where they do, for the kernel.
        let stats = &match x[2].offset() == 0 && x[2].is_contiguous() {
            true => x[2].clone(),
            false => x[2].copy_dense()?,
        };
        let (q, k, v) = (of[0], of[1], of[2]);
        if y.iter().any(|t| t.dtype() != DType::F32) {
            // Types that share words: by way of float32.
            let wide: Vec<Tensor> = y
                .iter()
                .map(|t| Tensor::empty(t.shape(), DType::F32, t.device()))
                .collect::<Result<_>>()?;
            let done = self.launch_backward(gpu, x, &wide)?;
            y.iter()
                .zip(&wide)
                .try_for_each(|(to, from)| to.write_from(from))?;
            return Ok(done);
        }
        let mask = if self.mask { of[3] } else { q };
        let d = widest(q, v);
        let Some([_, t]) = tiles(gpu, d, rows(q).max(rows(k))) else {
            return Ok(false);
        };
        let mut p = self.block(of);
        p.put(Y, out);
        p.put(G, g);
        for (i, t) in y.iter().enumerate() {
            p.put(GRADS + i, t);
        }
        let plane = |x: &Tensor| (x.numel() / (rows(x) * x.size(x.ndim() - 1))) as u32;
        let sums = &Tensor::empty(&[stats.numel() / 2], DType::F32, q.device())?;
        let [queries, keys] = [("queries", [&y[0], sums], q), ("keys", [&y[1], &y[2]], k)];
        for (entry, to, own) in [queries, keys] {
            p.tiles = rows(own).div_ceil(t.own) as u32;
            p.planes = plane(own);
            let done = ATTENTION_BACKWARD
                .launch(Acc::F32)
                .entry(entry)
                .set("MASK", self.mask)
                .set("CAUSAL", self.causal)
                .set("DROPOUT", self.dropped.is_some())
                .set("D", d as u32)
                .set("TX", t.own as u32)
                .set("TZ", t.passing as u32)
                .set("ROWS", t.rows as u32)
                .set("COLUMNS", t.columns as u32)
                .set("WHOLE", is_whole_width(gpu, &p, d))
                .set("ROLLED", rolled(gpu, t, d, 2, longest(q, k)))
                .writes_words(to[0])
                .writes_words(to[1])
                .reads("X", q)
                .reads_words(k)
                .reads_words(v)
                .reads("Y", if entry == "keys" { sums } else { out })
                .reads("G", g)
                .reads_words(stats)
                .reads("A", mask)
                .told(gpu, RANDOM, 0, 4)
                .groups(gpu, &p, (p.tiles * p.planes) as usize);
            if !transfer::ran(done)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Params {
    fn put(&mut self, i: usize, t: &Tensor) {
        self.step[i] = steps(t.layout());
        self.offset[i] = t.offset() as u32;
    }
}

/// Memory for the gradients of queries, keys and values, which lie to each other as these do: parts
/// of one tensor give parts of one gradient, which then needs no copy.
pub fn places(x: [&Tensor; 3]) -> Result<[Tensor; 3]> {
    let first = x.iter().map(|t| t.offset()).min().unwrap_or(0);
    let mut ends = [0; 3];
    for (end, t) in ends.iter_mut().zip(x) {
        *end = t.layout().extent()? - first;
    }
    let whole: usize = x.iter().map(|t| t.numel()).sum();
    // Without gaps and overlaps they fill what they span.
    let parts = x
        .iter()
        .all(|t| t.shares_storage(x[0]) && t.dtype() == DType::F32)
        && ends.iter().max() == Some(&whole)
        && x.iter().all(|t| !t.layout().overlaps_itself())
        && apart(x);
    if !parts {
        let like = |t: &Tensor| {
            let format = crate::schema::MemoryFormat::Preserve;
            t.empty_like(t.dtype(), t.device(), format)
        };
        return Ok([like(x[0])?, like(x[1])?, like(x[2])?]);
    }
    let all = Tensor::empty(&[whole], x[0].dtype(), x[0].device())?;
    Ok(x.map(|t| {
        let layout = t.layout().clone();
        let offset = layout.offset - first;
        all.alias(Layout { offset, ..layout })
    }))
}

/// Whether tensors of one storage lie side by side along a dimension: same strides, whose largest is
/// the sum of what each spans of it.
fn apart(x: [&Tensor; 3]) -> bool {
    let [a, b, c] = x;
    let same = a.strides() == b.strides() && a.strides() == c.strides();
    let same = same && a.shape() == b.shape() && a.shape() == c.shape();
    let mut at = [a.offset(), b.offset(), c.offset()];
    at.sort_unstable();
    let (one, two) = (at[1] - at[0], at[2] - at[1]);
    // The smaller strides stay inside a part, the larger ones step over all three.
    let whole = 3 * one;
    same && one == two
        && one > 0
        && a.shape().iter().zip(a.strides()).all(|(&n, &s)| {
            let s = s as usize;
            n == 1 || s >= whole && s.is_multiple_of(whole) || s < one
        })
        && {
            let inner: usize = a
                .shape()
                .iter()
                .zip(a.strides())
                .filter(|(_, &s)| (s as usize) < one)
                .map(|(&n, _)| n)
                .product();
            inner == one
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_whole() {
        for t in FORWARD.iter().chain(&BACKWARD) {
            assert_eq!(t.own % t.rows, 0);
            // Invocations write their weights by fours.
            assert_eq!(t.passing % (4 * t.columns), 0);
        }
        // What WebGPU promises everywhere takes heads of 64, and 48 KB those of 256.
        let smallest = [FORWARD[3].forward(64), BACKWARD[2].backward(64)];
        assert!(smallest.iter().all(|&bytes| bytes <= 16 << 10));
        let widest = [FORWARD[3].forward(WIDEST), BACKWARD[2].backward(WIDEST)];
        assert!(widest.iter().all(|&bytes| bytes <= 48 << 10));
    }
}

//! Products of matrices of which some are larger than a GPU's kernel can bind. Each is cut along one of its
//! dimensions into windows, and a kernel takes one window of each: w x w of them where a matrix has w. Where
//! that cuts what an element sums, kernels add to what the one before left.

use super::gpu::part_of;
use super::stacks::{kept_in, Stacks};
use crate::error::Result;
use crate::gpu::tile::MAX_DEPTH;
use crate::gpu::{Acc, Gpu, Window};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::{dense, ran, windowed};
use smallvec::{smallvec, SmallVec};

/// Sides of a product: its batch, rows, columns, and what is summed over.
const BATCH: usize = 0;
const ROWS: usize = 1;
const COLUMNS: usize = 2;
const DEPTH: usize = 3;

/// The sides that are the dimensions of A, of B and of the result.
const SIDES: [[usize; 3]; 3] = [
    [BATCH, ROWS, DEPTH],
    [BATCH, DEPTH, COLUMNS],
    [BATCH, ROWS, COLUMNS],
];

/// A way to see a matrix: along which of its dimensions it is cut, if along any.
#[derive(Clone, Copy)]
struct Sight {
    dim: Option<usize>,
    /// The most of that dimension that a kernel can bind.
    step: usize,
    /// Kernels that it takes to bring a window together, where its elements lie apart.
    copies: usize,
}

/// How a product is cut.
#[derive(Clone, Copy)]
struct Way {
    dims: [Option<usize>; 3],
    steps: [usize; 4],
}

/// Bytes from the first element to the last one, and those of all elements that are there once.
fn extents(t: &Tensor, size: usize) -> (usize, usize) {
    if t.numel() == 0 {
        return (0, 0);
    }
    let (low, high) = t.layout().reach();
    let once: usize = t.layout().once().shape.iter().product();
    ((high - low) * size, once * size)
}

fn narrow(t: &Tensor, d: usize, (from, n): (usize, usize)) -> Result<Tensor> {
    Ok(t.alias(t.layout().narrow(d as i64, from as i64, n as i64)?))
}

/// The ways to see a matrix whose elements take `size` bytes where they are copied.
fn sights(gpu: &Gpu, t: &Tensor, size: usize) -> SmallVec<[Sight; 4]> {
    let own = t.dtype().size();
    let step = t.storage().buffer().and_then(|b| b.step());
    let most = (gpu.info().max_binding.min(step.unwrap_or(u64::MAX))) as usize;
    let (span, once) = extents(t, own);
    let mut all = SmallVec::new();
    let slack = Window::ALIGN as usize;
    if size == own && span + slack <= most || once / own * size <= most {
        all.push(Sight {
            dim: None,
            step: usize::MAX,
            copies: if span <= most { 0 } else { span.div_ceil(most) },
        });
    }
    let layout = t.layout();
    for d in (0..3).filter(|&d| t.size(d) > 1 && layout.strides[d] != 0) {
        let stride = layout.strides[d].unsigned_abs() * own;
        let one = span - (t.size(d) - 1) * stride;
        // So many of them lie in a window that begins with the first.
        let reach = |room: usize| room.checked_sub(one).map_or(0, |rest| rest / stride + 1);
        let mut direct = reach(most);
        let aligned = |n: usize| (n * stride).is_multiple_of(slack);
        if !aligned(direct) || !(layout.offset * own).is_multiple_of(slack) {
            direct = reach(most.saturating_sub(slack));
        }
        let copied = most / (once / t.size(d) / own * size).max(1);
        let (step, copies) = match direct > 0 && size == own {
            // Where it is several buffers a window over a seam is a copy.
            true if step.is_some() => (direct.min(copied), 1),
            true => (direct, 0),
            false => {
                let reached = one + stride * (copied.clamp(1, t.size(d)) - 1);
                (copied, reached.div_ceil(most))
            }
        };
        if step > 0 {
            all.push(Sight {
                dim: Some(d),
                step,
                copies,
            });
        }
    }
    all
}

impl Way {
    /// The one with the fewest kernels.
    fn of(gpu: &Gpu, s: &Stacks) -> Result<Option<Way>> {
        let sizes = s.sizes();
        let kept = kept_in(s.y.dtype()).size();
        let acc = Acc::of(s.y.dtype())?.dtype().size();
        let most = gpu.info().max_binding as usize;
        let [a, b] = [&s.a, &s.b].map(|t| sights(gpu, t, t.dtype().size()));
        let mut best: Option<(usize, Way)> = None;
        for wide in [false, true] {
            // Whether sums are kept in a wider type, for their parts to be added.
            let size = if wide { kept } else { s.y.dtype().size() };
            for y in sights(gpu, &s.y, size) {
                for a in &a {
                    for b in &b {
                        let all = [*a, *b, y];
                        let way = Way::seen(all, sizes, most, acc);
                        let parts = way.parts(sizes);
                        if parts[DEPTH] > 1 && size != kept {
                            continue;
                        }
                        let cost = way.cost(all, parts);
                        if best.is_none_or(|(least, _)| cost < least) {
                            best = Some((cost, way));
                        }
                    }
                }
            }
        }
        Ok(best.map(|(_, way)| way))
    }

    fn seen(all: [Sight; 3], sizes: [usize; 4], most: usize, acc: usize) -> Way {
        let mut steps = sizes.map(|n| n.max(1));
        for (sight, sides) in all.iter().zip(SIDES) {
            if let Some(d) = sight.dim {
                steps[sides[d]] = steps[sides[d]].min(sight.step);
            }
        }
        // The parts of a sum that one kernel gives lie in one binding.
        let block = steps[BATCH] * steps[ROWS] * steps[COLUMNS] * acc;
        if steps[DEPTH] > MAX_DEPTH {
            steps[DEPTH] = steps[DEPTH].min(MAX_DEPTH * (most / block.max(1)).max(1));
        }
        let dims = all.map(|sight| sight.dim);
        Way { dims, steps }
    }

    fn parts(&self, sizes: [usize; 4]) -> [usize; 4] {
        [0, 1, 2, 3].map(|side| sizes[side].div_ceil(self.steps[side]).max(1))
    }

    /// Kernels that multiply, and that copy.
    fn cost(&self, all: [Sight; 3], parts: [usize; 4]) -> usize {
        let of = |(sight, sides): (&Sight, [usize; 3])| {
            let windows = sight.dim.map_or(1, |d| parts[sides[d]]);
            windows * sight.copies
        };
        let copies: usize = all.iter().zip(SIDES).map(of).sum();
        parts.iter().product::<usize>() + copies
    }

    /// The windows of a side.
    fn windows(&self, sizes: [usize; 4], side: usize) -> Vec<(usize, usize)> {
        let (n, step) = (sizes[side], self.steps[side]);
        let from = (0..n.max(1)).step_by(step);
        from.map(|from| (from, step.min(n - from))).collect()
    }

    /// The side that a matrix is cut along.
    fn side(&self, which: usize) -> Option<usize> {
        self.dims[which].map(|d| SIDES[which][d])
    }
}

/// A contiguous tensor in one dimension, which a seam cuts but once.
fn line(t: &Tensor) -> Tensor {
    t.alias(Layout {
        offset: t.offset(),
        ..Layout::contiguous(&[t.numel()])
    })
}

/// The elements of a tensor where one kernel can bind them: a window, or a copy.
fn seen(gpu: &Gpu, t: &Tensor) -> Result<Tensor> {
    if let Some(part) = windowed(gpu, t) {
        return Ok(part);
    }
    // What a dimension repeats is copied once.
    let once = t.alias(t.layout().once());
    let own = match once.is_contiguous() {
        true => line(&once).copy_dense()?.reshape_to(once.shape())?,
        false => dense(gpu, &once)?,
    };
    Ok(own.alias(own.layout().expand_to(t.shape())))
}

/// A factor, and those of its windows that are there.
struct Factor<'a> {
    t: &'a Tensor,
    which: usize,
    /// Whether they will be asked for again.
    keep: bool,
    /// Where windows begin along the side that it is cut along.
    there: SmallVec<[(usize, Tensor); 4]>,
}

impl Factor<'_> {
    fn at(&mut self, gpu: &Gpu, way: &Way, at: [(usize, usize); 4]) -> Result<Tensor> {
        let sides = SIDES[self.which];
        let cut = way.side(self.which);
        let first = cut.map_or(0, |side| at[side].0);
        let known = self.there.iter().find(|(from, _)| *from == first);
        let window = match known {
            Some((_, window)) => window.clone(),
            None => {
                let part = match way.dims[self.which] {
                    Some(d) => narrow(self.t, d, at[sides[d]])?,
                    None => self.t.clone(),
                };
                if !self.keep {
                    self.there.clear();
                }
                let window = seen(gpu, &part)?;
                self.there.push((first, window.clone()));
                window
            }
        };
        within(&window, way.dims[self.which], sides, at)
    }
}

/// What a window has of a block, along the dimensions that it is not cut along.
fn within(
    t: &Tensor,
    cut: Option<usize>,
    sides: [usize; 3],
    at: [(usize, usize); 4],
) -> Result<Tensor> {
    let others = (0..3).filter(|&d| Some(d) != cut);
    others
        .into_iter()
        .try_fold(t.clone(), |t, d| narrow(&t, d, at[sides[d]]))
}

impl Stacks {
    /// The lengths of the sides.
    fn sizes(&self) -> [usize; 4] {
        let y = &self.y;
        [y.size(0), y.size(1), y.size(2), self.a.size(2)]
    }

    /// By as many kernels as there are pairs of windows; `false` where they have none for these.
    pub fn windows(&self, gpu: &Gpu) -> Result<bool> {
        let batch = self.y.size(BATCH);
        if batch > 1 && self.is_large(gpu)? {
            for i in 0..batch {
                let one = |t: &Tensor| narrow(t, BATCH, (i, 1));
                let c = self.c.as_ref().map(|(c, beta)| Ok((one(c)?, *beta)));
                let own = Stacks {
                    a: one(&self.a)?,
                    b: one(&self.b)?,
                    c: c.transpose()?,
                    y: one(&self.y)?,
                    total: self.total.clone(),
                    ..*self
                };
                if !own.windows(gpu)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        match Way::of(gpu, self)? {
            Some(way) => ran(self.by(gpu, &way)),
            None => Ok(false),
        }
    }

    /// Whether one matrix of a stack is larger than a binding.
    fn is_large(&self, gpu: &Gpu) -> Result<bool> {
        for t in [&self.a, &self.b, &self.y] {
            let one = narrow(t, BATCH, (0, 1))?;
            let all = sights(gpu, &one, t.dtype().size());
            if t.layout().strides[BATCH] != 0 && all.iter().all(|s| s.dim.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn by(&self, gpu: &Gpu, way: &Way) -> Result<()> {
        let sizes = self.sizes();
        let lists = [BATCH, ROWS, COLUMNS, DEPTH].map(|side| way.windows(sizes, side));
        let kept = match lists[DEPTH].len() {
            1 => self.y.dtype(),
            _ => kept_in(self.y.dtype()),
        };
        let outer = way.side(2);
        let many = |side: usize| lists[side].len() > 1;
        // Whether what is cut along a side is gone through again, for each part of one outside of it.
        let again =
            |side: usize| outer != Some(side) && (outer.is_some_and(many) || (0..side).any(many));
        let factor = |which: usize, t| Factor {
            t,
            which,
            keep: way.side(which).is_none_or(again),
            there: smallvec![],
        };
        let (mut a, mut b) = (factor(0, &self.a), factor(1, &self.b));
        let all = [(0, 0)];
        for &own in outer.map_or(&all[..], |side| &lists[side]) {
            let place = match way.dims[2] {
                Some(d) => narrow(&self.y, d, own)?,
                None => self.y.clone(),
            };
            let direct = windowed(gpu, &place).filter(|_| kept == self.y.dtype());
            let window = match &direct {
                Some(window) => window.clone(),
                None => Tensor::empty(place.shape(), kept, place.device())?,
            };
            let list = |side: usize| match outer == Some(side) {
                true => std::slice::from_ref(&own),
                false => &lists[side][..],
            };
            for &batch in list(BATCH) {
                for &rows in list(ROWS) {
                    for &columns in list(COLUMNS) {
                        for &depth in list(DEPTH) {
                            let at = [batch, rows, columns, depth];
                            let y = within(&window, way.dims[2], SIDES[2], at)?;
                            let (a, b) = (a.at(gpu, way, at)?, b.at(gpu, way, at)?);
                            self.block(gpu, [&a, &b], at, &y)?;
                        }
                    }
                }
            }
            match direct.is_none() {
                true if place.is_contiguous() => line(&place).write_from(&line(&window))?,
                true => place.write_from(&window)?,
                false => {}
            }
        }
        Ok(())
    }

    /// What these parts of the factors give, added to what is there but for the first part of the depth.
    fn block(
        &self,
        gpu: &Gpu,
        factors: [&Tensor; 2],
        at: [(usize, usize); 4],
        y: &Tensor,
    ) -> Result<()> {
        let own = match (&self.c, at[DEPTH].0) {
            (Some((c, beta)), 0) => {
                let part = within(c, None, SIDES[2], at)?;
                Some((seen(gpu, &part)?, *beta))
            }
            (None, 0) => None,
            _ => Some((y.clone(), 1.0)),
        };
        let c = own.as_ref().map(|(c, beta)| (c, *beta));
        let of = [self.y.size(0), self.y.size(1), self.y.size(2)];
        part_of(gpu, of, factors, c, self.alpha, (y, None))
    }
}

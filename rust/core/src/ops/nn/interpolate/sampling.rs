//! The CPU kernels of [`GridSample`].

use super::cubic;
use super::grid::{cubic_slope, Border, GridSample, How};
use crate::alloc;
use crate::cpu::pool::Ptr;
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::per_isa;
use std::ops::Range;

/// Points whose places and weights are found before any channel is read; so many that a channel's lines
/// are read once for several of them.
const BLOCK: usize = 256;

/// Contiguous tensors: `x` of `channels` volumes for each sample, and `grid` of `points` for each.
pub(super) struct Sampling<'a, T> {
    pub(super) of: GridSample,
    /// The tensors' own type, of which T is the one that is computed in.
    pub(super) own: DType,
    pub(super) x: &'a [T],
    pub(super) grid: &'a [T],
    /// Depth, height and width of a volume.
    pub(super) size: [usize; 3],
    pub(super) channels: usize,
    pub(super) points: usize,
}

impl<T: Float> Sampling<'_, T> {
    fn plane(&self) -> usize {
        self.size.iter().product()
    }

    /// # Safety
    /// The fields are the tensors' sizes, and the values of points `range`, of `n` coordinates, belong
    /// to this thread.
    pub(super) unsafe fn sample(&self, n: usize, range: Range<usize>, to: Ptr<T>) {
        // SAFETY: the fields are the tensors' sizes, and the values of points `range`, of `n`
        // coordinates, belong to this thread.
        unsafe {
            match (n, self.of.how) {
                (2, How::Nearest) => sample::<T, 2, 1>(self, range, to),
                (2, How::Linear) => sample::<T, 2, 2>(self, range, to),
                (2, How::Cubic) => sample::<T, 2, 4>(self, range, to),
                (_, How::Nearest) => sample::<T, 3, 1>(self, range, to),
                _ => sample::<T, 3, 2>(self, range, to),
            }
        }
    }

    /// Adds to the gradient of `x`, and writes that of the grid.
    ///
    /// # Safety
    /// As for [`sample`](Self::sample), for whole samples; `g` is as what was sampled.
    pub(super) unsafe fn gradients(
        &self,
        n: usize,
        range: Range<usize>,
        g: &[T],
        dx: Ptr<T>,
        dgrid: Ptr<T>,
    ) {
        // SAFETY: the fields are the tensors' sizes, and the values of points `range`, of `n`
        // coordinates, belong to this thread.
        unsafe {
            match (n, self.of.how) {
                (2, How::Nearest) => gradients::<T, 2, 1>(self, range, g, dx, dgrid),
                (2, How::Linear) => gradients::<T, 2, 2>(self, range, g, dx, dgrid),
                (2, How::Cubic) => gradients::<T, 2, 4>(self, range, g, dx, dgrid),
                (_, How::Nearest) => gradients::<T, 3, 1>(self, range, g, dx, dgrid),
                _ => gradients::<T, 3, 2>(self, range, g, dx, dgrid),
            }
        }
    }
}

/// An element that a point reads, its weight, and that weight's derivatives by the coordinates.
struct Term<T> {
    at: usize,
    weight: T,
    slope: [T; 3],
}

/// A point some of whose elements lie beyond the volume, its number in the block, and those that do not.
struct Edge {
    k: usize,
    terms: Range<usize>,
    /// Whether it lies nowhere, and so between no elements.
    nowhere: bool,
}

/// Points of one sample, each of which reads K elements along each of N dimensions, width first.
struct Block<T, const N: usize, const K: usize> {
    /// The points all of whose elements are in the volume.
    inside: Vec<usize>,
    edges: Vec<Edge>,
    terms: Vec<Term<T>>,
    /// Where a point lies, then the first of the elements that it reads, along each dimension.
    low: [[f64; BLOCK]; N],
    /// The place in the volume of the first of all elements of a point inside.
    base: [usize; BLOCK],
    weight: [[[T; BLOCK]; K]; N],
    /// Derivatives of the weights by the grid's coordinate.
    slope: [[[T; BLOCK]; K]; N],
}

impl<T: Float, const N: usize, const K: usize> Block<T, N, K> {
    fn new() -> Self {
        let zero = [[[T::lit(0.0); BLOCK]; K]; N];
        Block {
            inside: alloc::room(BLOCK),
            edges: alloc::room(BLOCK),
            terms: Vec::new(),
            low: [[0.0; BLOCK]; N],
            base: [0; BLOCK],
            weight: zero,
            slope: zero,
        }
    }

    /// Finds what the points `range` of the grid read; derivatives of the weights too where `SLOPES`.
    #[inline(always)]
    fn fill<const SLOPES: bool>(&mut self, job: &Sampling<'_, T>, range: Range<usize>) {
        let (n, grid) = (range.len(), &job.grid[range.start * N..range.end * N]);
        for d in 0..N {
            self.along::<SLOPES>(job, d, grid);
        }
        let [depth, height, width] = job.size;
        let (sizes, strides) = ([width, height, depth], [1, width, width * height]);
        let (mut base, mut whole) = ([0.0; BLOCK], [true; BLOCK]);
        for d in 0..N {
            let (end, stride) = (sizes[d] as f64 - (K as f64 - 1.0), strides[d] as f64);
            for k in 0..BLOCK {
                let low = self.low[d][k];
                // Not where it is NaN.
                whole[k] &= (low >= 0.0) & (low < end);
                base[k] += low * stride;
            }
        }
        self.inside.clear();
        self.edges.clear();
        self.terms.clear();
        for k in 0..n {
            if whole[k] {
                self.base[k] = base[k] as usize;
                self.inside.push(k);
            } else {
                self.edge::<SLOPES>(job, k, &grid[k * N..(k + 1) * N], strides);
            }
        }
    }

    /// The first elements and the weights along one dimension. All loops but the first are over whole
    /// blocks, so that they become vectors.
    #[inline(always)]
    fn along<const SLOPES: bool>(&mut self, job: &Sampling<'_, T>, d: usize, grid: &[T]) {
        let size = job.size[2 - d];
        let (scale, shift) = job.of.scale(size);
        let (low, weight, slope) = (&mut self.low[d], &mut self.weight[d], &mut self.slope[d]);
        let points = low.iter_mut().zip(grid.chunks_exact(N));
        match job.own.is_half() {
            true => points.for_each(|(low, point)| {
                *low = job.of.place_of_half(point[d].to_f64(), size, job.own);
            }),
            false => points.for_each(|(low, point)| {
                *low = (point[d].to_f64() + 1.0) * scale - shift;
            }),
        }
        let mut turns = [1.0; BLOCK];
        if K < 4 {
            job.of.all_inside(low, &mut turns, size);
        }
        for k in 0..BLOCK {
            let x = low[k];
            match K {
                1 => low[k] = x.round_ties_even(),
                2 => {
                    let far = x - x.floor();
                    low[k] = x.floor();
                    (weight[0][k], weight[1][k]) = (T::of_f64(1.0 - far), T::of_f64(far));
                    if SLOPES {
                        let turn = T::of_f64(scale * turns[k]);
                        (slope[0][k], slope[1][k]) = (T::lit(0.0) - turn, turn);
                    }
                }
                _ => {
                    let far = x - x.floor();
                    low[k] = x.floor() - 1.0;
                    let (w, s) = (cubic(far), cubic_slope(far));
                    for j in 0..K {
                        weight[j][k] = T::of_f64(w[j]);
                        if SLOPES {
                            slope[j][k] = T::of_f64(s[j] * scale);
                        }
                    }
                }
            }
        }
    }

    /// Notes the elements in the volume of a point that has others too.
    #[inline(never)]
    fn edge<const SLOPES: bool>(
        &mut self,
        job: &Sampling<'_, T>,
        k: usize,
        point: &[T],
        strides: [usize; 3],
    ) {
        let start = self.terms.len();
        let zeros = job.of.border == Border::Zeros && K > 1;
        // Where elements along each dimension lie, if they lie in the volume.
        let mut along = [[None; K]; N];
        for d in 0..N {
            let size = job.size[2 - d];
            for (i, place) in along[d].iter_mut().enumerate() {
                let mut at = self.low[d][k] + i as f64;
                if K == 4 {
                    at = job.of.inside(at, size).0.round_ties_even();
                }
                let inside = at >= 0.0 && at < size as f64;
                *place = inside.then(|| at as usize * strides[d]);
            }
        }
        for j in 0..K.pow(N as u32) {
            let mut term = Term {
                at: 0,
                weight: T::lit(1.0),
                slope: [T::lit(1.0); 3],
            };
            let (mut rest, mut inside) = (j, true);
            for d in 0..N {
                let i = rest % K;
                rest /= K;
                inside &= along[d][i].is_some();
                term.at += along[d][i].unwrap_or(0);
                if K > 1 {
                    let (weight, slope) = (self.weight[d][i][k], self.slope[d][i][k]);
                    term.weight = term.weight * weight;
                    if SLOPES {
                        for (by, all) in term.slope.iter_mut().enumerate() {
                            *all = *all * if by == d { slope } else { weight };
                        }
                    }
                }
            }
            if inside {
                self.terms.push(term);
            }
        }
        self.edges.push(Edge {
            k,
            terms: start..self.terms.len(),
            nowhere: zeros && !point.iter().all(|v| v.to_f64().is_finite()),
        });
    }

    /// The elements from the least of them on, weighted and summed.
    ///
    /// # Safety
    /// Point `k` lies inside the volume of this size, and `x` is its least element.
    #[inline(always)]
    unsafe fn sum(&self, x: *const T, k: usize, [_, height, width]: [usize; 3]) -> T {
        // SAFETY: point `k` lies inside the volume of this size, and `x` is its least element.
        unsafe {
            if K == 1 {
                return *x;
            }
            let zero = T::lit(0.0);
            let mut sum = zero;
            for z in 0..if N == 3 { K } else { 1 } {
                let mut layer = zero;
                for v in 0..K {
                    let row = x.add((z * height + v) * width);
                    let mut line = zero;
                    for u in 0..K {
                        line += *row.add(u) * self.weight[0][u][k];
                    }
                    layer += line * self.weight[1][v][k];
                }
                sum += match N == 3 {
                    true => layer * self.weight[2][z][k],
                    false => layer,
                };
            }
            sum
        }
    }
}

/// Parts of `range` within one sample, of at most [`BLOCK`] points.
fn blocks(range: Range<usize>, points: usize) -> impl Iterator<Item = Range<usize>> {
    let mut p = range.start;
    std::iter::from_fn(move || {
        let end = range
            .end
            .min((p / points.max(1) + 1) * points)
            .min(p + BLOCK);
        let block = p..end;
        p = end;
        (!block.is_empty()).then_some(block)
    })
}

per_isa! {
    unsafe fn sample[T: Float; const N: usize, const K: usize](
        job: &Sampling<'_, T>, range: Range<usize>, to: Ptr<T>
    ) {
        let mut block = Block::<T, N, K>::new();
        for points in blocks(range, job.points) {
            let (sample, first) = (points.start / job.points, points.start % job.points);
            let n = points.len();
            block.fill::<false>(job, points);
            for c in sample * job.channels..(sample + 1) * job.channels {
                // SAFETY: what points inside and the terms of others read lies in the volume; the
                // values of these points belong to this thread.
                unsafe {
                    let x = job.x.as_ptr().add(c * job.plane());
                    let to = to.at(c * job.points + first);
                    let one = |k: usize| *to.add(k) = block.sum(x.add(block.base[k]), k, job.size);
                    match block.edges.is_empty() {
                        true => (0..n).for_each(one),
                        false => block.inside.iter().copied().for_each(one),
                    }
                    for edge in &block.edges {
                        let mut sum = T::lit(if edge.nowhere { f64::NAN } else { 0.0 });
                        for term in &block.terms[edge.terms.clone()] {
                            sum += *x.add(term.at) * term.weight;
                        }
                        *to.add(edge.k) = sum;
                    }
                }
            }
        }
    }
}

per_isa! {
    unsafe fn gradients[T: Float; const N: usize, const K: usize](
        job: &Sampling<'_, T>, range: Range<usize>, g: &[T], dx: Ptr<T>, dgrid: Ptr<T>
    ) {
        let [_, height, width] = job.size;
        let mut block = Block::<T, N, K>::new();
        for points in blocks(range, job.points) {
            let (sample, first) = (points.start / job.points, points.start % job.points);
            block.fill::<true>(job, points.clone());
            let mut slopes = [[T::lit(0.0); BLOCK]; N];
            for c in sample * job.channels..(sample + 1) * job.channels {
                // SAFETY: as in `sample`; this sample's elements belong to this thread.
                unsafe {
                    let (x, dx) = (job.x.as_ptr().add(c * job.plane()), dx.at(c * job.plane()));
                    let g = g.as_ptr().add(c * job.points + first);
                    for &k in &block.inside {
                        let (base, g) = (block.base[k], *g.add(k));
                        if K == 1 {
                            *dx.add(base) += g;
                            continue;
                        }
                        for z in 0..if N == 3 { K } else { 1 } {
                            let mut deep = [T::lit(1.0); 2];
                            if N == 3 {
                                deep = [block.weight[2][z][k], block.slope[2][z][k]];
                            }
                            for v in 0..K {
                                let row = base + (z * height + v) * width;
                                let high = [block.weight[1][v][k], block.slope[1][v][k]];
                                for u in 0..K {
                                    let wide = [block.weight[0][u][k], block.slope[0][u][k]];
                                    *dx.add(row + u) += g * (wide[0] * high[0] * deep[0]);
                                    let v = *x.add(row + u) * g;
                                    slopes[0][k] += v * (wide[1] * high[0] * deep[0]);
                                    slopes[1][k] += v * (wide[0] * high[1] * deep[0]);
                                    if N == 3 {
                                        slopes[2][k] += v * (wide[0] * high[0] * deep[1]);
                                    }
                                }
                            }
                        }
                    }
                    for edge in &block.edges {
                        let g = *g.add(edge.k);
                        for term in &block.terms[edge.terms.clone()] {
                            *dx.add(term.at) += g * term.weight;
                            if K > 1 {
                                let v = *x.add(term.at) * g;
                                for d in 0..N {
                                    slopes[d][edge.k] += v * term.slope[d];
                                }
                            }
                        }
                    }
                }
            }
            for (k, p) in points.enumerate() {
                for d in 0..N {
                    // SAFETY: these points' coordinates belong to this thread.
                    unsafe { *dgrid.at(p * N + d) = slopes[d][k] };
                }
            }
        }
    }
}

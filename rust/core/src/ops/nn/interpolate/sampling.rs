//! What [`GridSample`] reads, sums and adds on the host.

use super::grid::{Border, GridSample, How};
use crate::cpu::pool::Ptr;
use crate::dtype::DType;
use crate::ops::pointwise::Float;
use crate::per_isa;
use std::ops::Range;

/// Points whose places and weights are found before any channel is read; so many that a channel's lines
/// are read once for several of them.
const BLOCK: usize = 512;

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

    /// Whether points lie between two elements along each dimension, in the type they are computed in.
    fn between(&self) -> bool {
        self.of.how == How::Linear && !self.own.is_half()
    }

    /// # Safety
    /// The fields are the tensors' sizes, and the values of points `range`, of `n` coordinates, belong
    /// to this thread.
    pub(super) unsafe fn sample(&self, n: usize, range: Range<usize>, to: Ptr<T>) {
        // SAFETY: as the caller says.
        unsafe {
            match n {
                2 if self.between() => linear::<T, 2>(self, range, to),
                3 if self.between() => linear::<T, 3>(self, range, to),
                2 if self.of.how == How::Nearest => nearest::<T, 2>(self, range, to),
                3 if self.of.how == How::Nearest => nearest::<T, 3>(self, range, to),
                _ => range.for_each(|p| self.sample_one(n, p, to)),
            }
        }
    }

    /// # Safety
    /// As for [`sample`](Self::sample), for one point.
    unsafe fn sample_one(&self, n: usize, p: usize, to: Ptr<T>) {
        let (sample, at) = (p / self.points, p % self.points);
        let [_, height, width] = self.size;
        let point = &self.grid[p * n..(p + 1) * n];
        let taps = self.of.point(point, self.size, self.own);
        // Nowhere is between no two elements.
        let nowhere = self.of.border == Border::Zeros
            && self.of.how != How::Nearest
            && !point.iter().all(|v| v.to_f64().is_finite());
        for c in sample * self.channels..(sample + 1) * self.channels {
            let x = &self.x[c * self.plane()..][..self.plane()];
            let mut sum = if nowhere { f64::NAN } else { 0.0 };
            for z in &taps[0] {
                for v in &taps[1] {
                    let row = (z.at * height + v.at) * width;
                    for u in &taps[2] {
                        sum += x[row + u.at].to_f64() * (z.weight * v.weight * u.weight);
                    }
                }
            }
            // SAFETY: this point's values belong to this thread.
            unsafe { *to.at(c * self.points + at) = T::of_f64(sum) };
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
        // SAFETY: as the caller says.
        unsafe {
            match n {
                2 if self.between() => linear_gradients::<T, 2>(self, range, g, dx, dgrid),
                3 if self.between() => linear_gradients::<T, 3>(self, range, g, dx, dgrid),
                _ => range.for_each(|p| self.gradients_of_one(n, p, g, dx, dgrid)),
            }
        }
    }

    /// # Safety
    /// As for [`gradients`](Self::gradients), for one point.
    unsafe fn gradients_of_one(&self, n: usize, p: usize, g: &[T], dx: Ptr<T>, dgrid: Ptr<T>) {
        let (sample, at) = (p / self.points, p % self.points);
        let [_, height, width] = self.size;
        let point = &self.grid[p * n..(p + 1) * n];
        let taps = self.of.point(point, self.size, self.own);
        let mut slope = [0.0; 3];
        for c in sample * self.channels..(sample + 1) * self.channels {
            let base = c * self.plane();
            let g = g[c * self.points + at].to_f64();
            for z in &taps[0] {
                for v in &taps[1] {
                    for u in &taps[2] {
                        let i = base + (z.at * height + v.at) * width + u.at;
                        let x = self.x[i].to_f64() * g;
                        slope[0] += x * u.slope * v.weight * z.weight;
                        slope[1] += x * u.weight * v.slope * z.weight;
                        slope[2] += x * u.weight * v.weight * z.slope;
                        // SAFETY: this sample's elements belong to this thread.
                        unsafe { *dx.at(i) += T::of_f64(g * u.weight * v.weight * z.weight) };
                    }
                }
            }
        }
        for d in 0..n {
            // SAFETY: this point's coordinates belong to this thread.
            unsafe { *dgrid.at(p * n + d) = T::of_f64(slope[d]) };
        }
    }
}

/// The points of a block that lie between elements of the volume, and those that do not.
struct Block<T> {
    inside: usize,
    /// Their numbers, and the place in the volume of the least of the elements around them.
    at: [usize; BLOCK],
    base: [usize; BLOCK],
    /// How far they lie beyond it along width, height and depth, and how that goes with the grid.
    far: [[T; BLOCK]; 3],
    slope: [[T; BLOCK]; 3],
    edges: usize,
    edge: [usize; BLOCK],
}

impl<T: Float> Block<T> {
    #[inline(always)]
    fn of<const N: usize>(job: &Sampling<'_, T>, range: Range<usize>) -> Self {
        let zero = [[T::lit(0.0); BLOCK]; 3];
        let mut block = Block {
            inside: 0,
            at: [0; BLOCK],
            base: [0; BLOCK],
            far: zero,
            slope: zero,
            edges: 0,
            edge: [0; BLOCK],
        };
        let [_, height, width] = job.size;
        let strides = [1, width, width * height];
        for p in range {
            let k = block.inside;
            let (mut base, mut inside) = (0, true);
            for d in 0..N {
                let size = job.size[2 - d];
                let (n, (scale, shift)) = (size as f64, job.of.scale(size));
                let x = (job.grid[p * N + d].to_f64() + 1.0) * scale - shift;
                let (x, slope) = job.of.inside(x, size);
                let low = x.floor();
                // Not where it is NaN.
                inside &= low >= 0.0 && low + 1.0 < n;
                base += low as usize * strides[d];
                block.far[d][k] = T::of_f64(x - low);
                block.slope[d][k] = T::of_f64(scale * slope);
            }
            if inside {
                (block.at[k], block.base[k]) = (p % job.points, base);
                block.inside += 1;
            } else {
                block.edge[block.edges] = p;
                block.edges += 1;
            }
        }
        block
    }

    /// The weight of corner `j` of point `k`; along dimension `skip` its sign instead.
    #[inline(always)]
    fn weight<const N: usize>(&self, j: usize, k: usize, skip: usize) -> T {
        let mut w = T::lit(1.0);
        for d in (0..N).rev() {
            let far = self.far[d][k];
            let (near, at) = match d == skip {
                true => (T::lit(-1.0), T::lit(1.0)),
                false => (T::lit(1.0) - far, far),
            };
            w = w * if j >> d & 1 == 1 { at } else { near };
        }
        w
    }
}

/// Where the corners around a point lie behind the least.
#[inline(always)]
fn corners([_, height, width]: [usize; 3]) -> [usize; 8] {
    std::array::from_fn(|j| (j & 1) + (j >> 1 & 1) * width + (j >> 2) * width * height)
}

per_isa! {
    unsafe fn nearest[T: Float; const N: usize](
        job: &Sampling<'_, T>, range: Range<usize>, to: Ptr<T>
    ) {
        const NOWHERE: usize = usize::MAX;
        let (plane, points) = (job.plane(), job.points);
        let [_, height, width] = job.size;
        let strides = [1, width, width * height];
        let mut places = [NOWHERE; BLOCK];
        let mut p = range.start;
        while p < range.end {
            let sample = p / points;
            let end = range.end.min((sample + 1) * points).min(p + BLOCK);
            for (k, point) in job.grid[p * N..end * N].chunks_exact(N).enumerate() {
                let mut place = 0;
                for d in 0..N {
                    match job.of.nearest(point[d].to_f64(), job.size[2 - d], job.own) {
                        Some(at) if place != NOWHERE => place += at * strides[d],
                        _ => place = NOWHERE,
                    }
                }
                places[k] = place;
            }
            for c in sample * job.channels..(sample + 1) * job.channels {
                let x = &job.x[c * plane..][..plane];
                for (k, &place) in places[..end - p].iter().enumerate() {
                    let v = x.get(place).copied().unwrap_or(T::lit(0.0));
                    // SAFETY: the values of these points belong to this thread.
                    unsafe { *to.at(c * points + p % points + k) = v };
                }
            }
            p = end;
        }
    }
}

per_isa! {
    unsafe fn linear[T: Float; const N: usize](
        job: &Sampling<'_, T>, range: Range<usize>, to: Ptr<T>
    ) {
        let corners = corners(job.size);
        let (plane, points) = (job.plane(), job.points);
        let mut weights = [[T::lit(0.0); BLOCK]; 8];
        let mut p = range.start;
        while p < range.end {
            let sample = p / points;
            let end = range.end.min((sample + 1) * points).min(p + BLOCK);
            let block = Block::of::<N>(job, p..end);
            for j in 0..1 << N {
                for k in 0..BLOCK {
                    weights[j][k] = block.weight::<N>(j, k, N);
                }
            }
            for c in sample * job.channels..(sample + 1) * job.channels {
                // SAFETY: the corners of points inside lie in the volume; the values of these
                // points belong to this thread.
                unsafe {
                    let x = job.x.as_ptr().add(c * plane);
                    let to = to.at(c * points);
                    for k in 0..block.inside {
                        let x = x.add(block.base[k]);
                        let mut sum = T::lit(0.0);
                        for j in 0..1 << N {
                            sum += *x.add(corners[j]) * weights[j][k];
                        }
                        *to.add(block.at[k]) = sum;
                    }
                }
            }
            for &p in &block.edge[..block.edges] {
                // SAFETY: as for the others.
                unsafe { job.sample_one(N, p, to) };
            }
            p = end;
        }
    }
}

per_isa! {
    unsafe fn linear_gradients[T: Float; const N: usize](
        job: &Sampling<'_, T>, range: Range<usize>, g: &[T], dx: Ptr<T>, dgrid: Ptr<T>
    ) {
        let corners = corners(job.size);
        let (plane, points) = (job.plane(), job.points);
        let mut p = range.start;
        while p < range.end {
            let sample = p / points;
            let end = range.end.min((sample + 1) * points).min(p + BLOCK);
            let block = Block::of::<N>(job, p..end);
            let mut slopes = [[T::lit(0.0); BLOCK]; N];
            for c in sample * job.channels..(sample + 1) * job.channels {
                // SAFETY: the corners of points inside lie in the volume, and this sample's elements
                // belong to this thread.
                unsafe {
                    let (x, dx) = (job.x.as_ptr().add(c * plane), dx.at(c * plane));
                    let g = g.as_ptr().add(c * points);
                    for k in 0..block.inside {
                        let (x, dx) = (x.add(block.base[k]), dx.add(block.base[k]));
                        let g = *g.add(block.at[k]);
                        for j in 0..1 << N {
                            *dx.add(corners[j]) += g * block.weight::<N>(j, k, N);
                            let v = *x.add(corners[j]) * g;
                            for d in 0..N {
                                slopes[d][k] += v * block.weight::<N>(j, k, d);
                            }
                        }
                    }
                }
            }
            for k in 0..block.inside {
                for d in 0..N {
                    let point = sample * points + block.at[k];
                    // SAFETY: these points' coordinates belong to this thread.
                    unsafe { *dgrid.at(point * N + d) = slopes[d][k] * block.slope[d][k] };
                }
            }
            for &p in &block.edge[..block.edges] {
                // SAFETY: as for the others.
                unsafe { job.gradients_of_one(N, p, g, dx, dgrid) };
            }
            p = end;
        }
    }
}

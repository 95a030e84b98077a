//! The loops of Winograd's convolution, with channels in the lanes of vectors. A window is pixels of
//! one block of channels; a transformed tile is sixteen numbers per channel, each in a plane of its
//! own, so that a plane of tiles times a plane of weights is a matrix product.

#[cfg(target_arch = "aarch64")]
use crate::cpu::simd::F32x8;
use crate::cpu::simd::{fetch, Simd, Vectors, MOST};
use crate::per_isa;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Numbers of a transformed tile.
pub const POINTS: usize = 16;
/// Elements of a 3x3 kernel.
pub const TAPS: usize = 9;

/// What was seen of the numbers that were read.
#[derive(Clone, Copy)]
pub struct Seen {
    pub sum: f32,
    pub max: f32,
    /// How many were not zero.
    pub count: f32,
}

impl Seen {
    pub const NOTHING: Seen = Seen {
        sum: 0.0,
        max: 0.0,
        count: 0.0,
    };

    pub fn with(self, o: Seen) -> Seen {
        Seen {
            sum: self.sum + o.sum,
            max: self.max.max(o.max),
            count: self.count + o.count,
        }
    }
}

/// Two of each, so that no sum waits for the one before.
struct Watch<V> {
    sum: [V; 2],
    max: [V; 2],
    count: [V; 2],
}

impl<V: Simd<Elem = f32>> Watch<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let zero = [V::splat(0.0); 2];
            Watch {
                sum: zero,
                max: zero,
                count: zero,
            }
        }
    }
    #[inline(always)]
    unsafe fn see(&mut self, row: usize, x: V) {
        // SAFETY: the caller has the instructions of the vectors.
        unsafe {
            let (size, i) = (x.abs(), row % 2);
            self.sum[i] = self.sum[i].add(size);
            self.max[i] = self.max[i].max(size);
            self.count[i] = self.count[i].count(x);
        }
    }
    #[inline(always)]
    unsafe fn seen(&self) -> Seen {
        // SAFETY: a row of `all` has room for any vector; the caller has the instructions of the
        // vectors.
        unsafe {
            let mut all = [[0f32; MOST]; 3];
            self.sum[0].add(self.sum[1]).store(all[0].as_mut_ptr());
            self.max[0].max(self.max[1]).store(all[1].as_mut_ptr());
            self.count[0].add(self.count[1]).store(all[2].as_mut_ptr());
            let mut seen = Seen::NOTHING;
            for i in 0..V::LANES {
                seen.sum += all[0][i];
                seen.max = seen.max.max(all[1][i]);
                seen.count += all[2][i];
            }
            seen
        }
    }
}

/// Pixels of a block of channels, between planes and a window: runs of `n` pixels that are next to
/// each other in a plane; pixel `i` of a run has place `places[i]` in the window.
pub struct Pixels {
    pub plane: *mut f32,
    /// From one channel to the next.
    pub plane_pitch: usize,
    pub channels: usize,
    pub runs: usize,
    pub n: usize,
    pub run_pitch: usize,
    pub places: *const u32,
    pub window: *mut f32,
    /// From one run to the next.
    pub window_pitch: usize,
}

/// The first `n` elements: a whole vector of them is quicker without a mask.
#[inline(always)]
unsafe fn first_lanes<V: Simd>(p: *const V::Elem, n: usize) -> V {
    // SAFETY: `p` has `n` elements, at most a vector; the caller has its instructions.
    unsafe {
        match n == V::LANES {
            true => V::load(p),
            false => V::load_first(p, n),
        }
    }
}

/// Planes to a window.
#[inline(always)]
unsafe fn gather<V: Simd<Elem = f32>>(p: &Pixels) -> Seen {
    // SAFETY: channels, runs and places lie inside the planes and the window; the caller has the
    // instructions of `V`.
    unsafe {
        let mut watch = Watch::<V>::new();
        for run in 0..p.runs {
            let from = p.plane.add(run * p.run_pitch);
            let to = p.window.add(run * p.window_pitch);
            let mut i = 0;
            while i < p.n {
                let n = V::LANES.min(p.n - i);
                let mut x = [V::splat(0.0); MOST];
                for (r, x) in x[..V::LANES].iter_mut().enumerate() {
                    if r < p.channels {
                        let from = from.add(r * p.plane_pitch + i);
                        *x = first_lanes(from, n);
                        // The next block's planes are too short for the machine to foresee them.
                        fetch(from.wrapping_add(V::LANES * p.plane_pitch));
                        watch.see(r, *x);
                    }
                }
                V::transpose(x.as_mut_ptr());
                for (j, x) in x[..V::LANES].iter().enumerate() {
                    if j < n {
                        x.store(to.add(*p.places.add(i + j) as usize * V::LANES));
                    }
                }
                i += V::LANES;
            }
        }
        watch.seen()
    }
}

/// A window to planes.
#[inline(always)]
unsafe fn scatter<V: Simd<Elem = f32>>(p: &Pixels) {
    // SAFETY: channels, runs and places lie inside the planes and the window; the caller has the
    // instructions of `V`.
    unsafe {
        for run in 0..p.runs {
            let to = p.plane.add(run * p.run_pitch);
            let from = p.window.add(run * p.window_pitch);
            let mut i = 0;
            while i < p.n {
                let n = V::LANES.min(p.n - i);
                let mut x = [V::splat(0.0); MOST];
                for (j, x) in x[..V::LANES].iter_mut().enumerate() {
                    if j < n {
                        *x = V::load(from.add(*p.places.add(i + j) as usize * V::LANES));
                    }
                }
                V::transpose(x.as_mut_ptr());
                for (r, x) in x[..V::LANES].iter().enumerate() {
                    let to = to.add(r * p.plane_pitch + i);
                    if r < p.channels && n == V::LANES {
                        x.store(to);
                    } else if r < p.channels {
                        x.store_first(to, n);
                    }
                }
                i += V::LANES;
            }
        }
    }
}

/// Tiles of a window and their transforms: tile `i`, row by row, lies at `points + i * tile` and
/// each of its numbers `plane` farther than the one before.
pub struct Tiles {
    pub window: *mut f32,
    /// From one row of pixels to the next.
    pub pitch: usize,
    pub rows: usize,
    pub columns: usize,
    pub points: *mut f32,
    pub tile: usize,
    pub plane: usize,
}

/// `B^T d B` of 4x4 pixels every two pixels.
#[inline(always)]
unsafe fn input<V: Simd<Elem = f32>>(p: &Tiles) {
    // SAFETY: the window has 2 * rows + 2 rows of pixels, and points room for a vector each tile;
    // the caller has the instructions of `V`.
    unsafe {
        let mut to = p.points;
        for row in 0..p.rows {
            let window = p.window.add(2 * row * p.pitch);
            let column = |x: usize| {
                let d = |y: usize| V::load(window.add(y * p.pitch + x * V::LANES));
                let (a, b, c, d) = (d(0), d(1), d(2), d(3));
                [a.sub(c), b.add(c), c.sub(b), b.sub(d)]
            };
            let (mut a, mut b) = (column(0), column(1));
            for x in 0..p.columns {
                let (c, d) = (column(2 * x + 2), column(2 * x + 3));
                for i in 0..4 {
                    let to = to.add(4 * i * p.plane);
                    a[i].sub(c[i]).store(to);
                    b[i].add(c[i]).store(to.add(p.plane));
                    c[i].sub(b[i]).store(to.add(2 * p.plane));
                    b[i].sub(d[i]).store(to.add(3 * p.plane));
                }
                (a, b) = (c, d);
                to = to.add(p.tile);
            }
        }
    }
}

/// `A^T m A`: 2x2 pixels of each tile, plus the bias.
#[inline(always)]
unsafe fn output<V: Simd<Elem = f32>>(p: &Tiles, bias: *const f32) {
    // SAFETY: there is a vector for each tile and point, the window has 2 * rows rows, `bias` a
    // vector or is null; the caller has the set of `V`.
    unsafe {
        let mut from = p.points;
        let bias = if bias.is_null() {
            V::splat(0.0)
        } else {
            V::load(bias)
        };
        for row in 0..p.rows {
            let mut to = p.window.add(2 * row * p.pitch);
            for _ in 0..p.columns {
                let mut half = [[V::splat(0.0); 4]; 2];
                for j in 0..4 {
                    let m = |i: usize| V::load(from.add((4 * i + j) * p.plane));
                    let (a, b, c, d) = (m(0), m(1), m(2), m(3));
                    half[0][j] = a.add(b).add(c);
                    half[1][j] = b.sub(c).sub(d);
                }
                for (i, h) in half.iter().enumerate() {
                    let to = to.add(i * p.pitch);
                    h[0].add(h[1]).add(h[2]).add(bias).store(to);
                    let second = h[1].sub(h[2]).sub(h[3]);
                    second.add(bias).store(to.add(V::LANES));
                }
                to = to.add(2 * V::LANES);
                from = from.add(p.tile);
            }
        }
    }
}

/// `A g A^T` of 2x2 pixels, but for the sign of what has one coordinate 3.
#[inline(always)]
unsafe fn gradient<V: Simd<Elem = f32>>(p: &Tiles) {
    // SAFETY: the window has 2 * rows rows of pixels, and points room for a vector each tile; the
    // caller has the instructions of `V`.
    unsafe {
        let mut to = p.points;
        for row in 0..p.rows {
            let mut window = p.window.add(2 * row * p.pitch);
            for _ in 0..p.columns {
                let column = |x: usize| {
                    let (a, b) = (V::load(window.add(x)), V::load(window.add(p.pitch + x)));
                    [a, a.add(b), a.sub(b), b]
                };
                let (a, b) = (column(0), column(V::LANES));
                for i in 0..4 {
                    let to = to.add(4 * i * p.plane);
                    a[i].store(to);
                    a[i].add(b[i]).store(to.add(p.plane));
                    a[i].sub(b[i]).store(to.add(2 * p.plane));
                    b[i].store(to.add(3 * p.plane));
                }
                window = window.add(2 * V::LANES);
                to = to.add(p.tile);
            }
        }
    }
}

/// Weights of a block of result channels and one source channel.
pub struct Weights {
    pub from: *const f32,
    /// From one result channel to the next.
    pub pitch: usize,
    pub channels: usize,
    /// The kernel flipped.
    pub flip: bool,
    pub to: *mut f32,
    pub plane: usize,
}

/// `G w G^T`.
#[inline(always)]
unsafe fn weights<V: Simd<Elem = f32>>(p: &Weights) -> Seen {
    // SAFETY: each channel has TAPS numbers, `pitch` apart, and `to` a vector for each point; the
    // caller has the instructions of `V`.
    unsafe {
        let mut watch = Watch::<V>::new();
        let mut w = [V::splat(0.0); TAPS];
        let mut first = 0;
        while first < TAPS {
            let n = V::LANES.min(TAPS - first);
            let mut x = [V::splat(0.0); MOST];
            for (r, x) in x[..V::LANES].iter_mut().enumerate() {
                if r < p.channels {
                    *x = first_lanes(p.from.add(r * p.pitch + first), n);
                    watch.see(r, *x);
                }
            }
            V::transpose(x.as_mut_ptr());
            for (j, &x) in x[..V::LANES].iter().enumerate() {
                if j < n {
                    w[if p.flip {
                        TAPS - 1 - first - j
                    } else {
                        first + j
                    }] = x;
                }
            }
            first += V::LANES;
        }
        let half = V::splat(0.5);
        let four = |a: V, b: V, c: V| {
            let (ends, b) = (a.add(c).mul(half), b.mul(half));
            [a, ends.add(b), ends.sub(b), c]
        };
        let mut columns = [[V::splat(0.0); 4]; 3];
        for x in 0..3 {
            columns[x] = four(w[x], w[3 + x], w[6 + x]);
        }
        for i in 0..4 {
            let row = four(columns[0][i], columns[1][i], columns[2][i]);
            for (j, x) in row.iter().enumerate() {
                x.store(p.to.add((4 * i + j) * p.plane));
            }
        }
        watch.seen()
    }
}

/// `G^T u G` of the sums of `parts`, with the signs that [`gradient`] left out: nine vectors.
#[inline(always)]
unsafe fn taps<V: Simd<Elem = f32>>(
    u: *const f32,
    plane: usize,
    parts: usize,
    part: usize,
    to: *mut f32,
) {
    // SAFETY: `u` has a vector for each point of each part, and `to` room for TAPS vectors; the
    // caller has the instructions of `V`.
    unsafe {
        let half = V::splat(0.5);
        let three = |x: [V; 4]| {
            let (sum, difference) = (x[1].add(x[2]).mul(half), x[1].sub(x[2]).mul(half));
            [x[0].add(sum), difference, sum.sub(x[3])]
        };
        let mut columns = [[V::splat(0.0); 4]; 3];
        for j in 0..4 {
            let mut x = [V::splat(0.0); 4];
            for (i, x) in x.iter_mut().enumerate() {
                let u = u.add((4 * i + j) * plane);
                *x = V::load(u);
                for other in 1..parts {
                    *x = x.add(V::load(u.add(other * part)));
                }
            }
            let three = three(x);
            for i in 0..3 {
                columns[i][j] = three[i];
            }
        }
        for (i, &x) in columns.iter().enumerate() {
            for (j, x) in three(x).iter().enumerate() {
                x.store(to.add((3 * i + j) * V::LANES));
            }
        }
    }
}

/// Products that are added one after another at most. Fewer than in the direct sum: transforms make
/// these errors larger.
const CHAIN: usize = 32;

/// `y[i][j] = sum over k of a[i][k] * b[k][j]` in tiles of rows; `a` is vectors of `k`.
pub struct Multiply {
    pub tiles: usize,
    /// How often the channels come, and how many they are.
    pub slices: usize,
    pub depth: usize,
    pub a: *const f32,
    /// From one block of channels to the next.
    pub a_block: usize,
    pub b: *const f32,
    pub y: *mut f32,
}

#[inline(always)]
unsafe fn multiply<V: Simd<Elem = f32>, const R: usize, const W: usize>(p: &Multiply) {
    // SAFETY: A and B have `slices` times `depth` vectors for the tiles, and `y` room for their
    // products; the caller has the set of `V`.
    unsafe {
        for tile in 0..p.tiles {
            let mut acc = [[V::splat(0.0); W]; R];
            let (mut a, mut b) = (p.a.add(tile * R * V::LANES), p.b);
            let y = p.y.add(tile * R * W * V::LANES);
            let (mut chain, mut first) = (0, true);
            for _ in 0..p.slices {
                let mut left = p.depth;
                while left > 0 {
                    let n = left.min(V::LANES);
                    if chain + n > CHAIN {
                        for r in 0..R {
                            for w in 0..W {
                                let y = y.add((r * W + w) * V::LANES);
                                if !first {
                                    acc[r][w] = V::load(y).add(acc[r][w]);
                                }
                                acc[r][w].store(y);
                                acc[r][w] = V::splat(0.0);
                            }
                        }
                        (chain, first) = (0, false);
                    }
                    for k in 0..n {
                        let mut x = [V::splat(0.0); W];
                        for (w, x) in x.iter_mut().enumerate() {
                            *x = V::load(b.add(w * V::LANES));
                        }
                        b = b.add(W * V::LANES);
                        for r in 0..R {
                            let s = V::splat(*a.add(r * V::LANES + k));
                            for w in 0..W {
                                acc[r][w] = s.fma(x[w], acc[r][w]);
                            }
                        }
                    }
                    a = a.wrapping_add(p.a_block);
                    left -= n;
                    chain += n;
                }
            }
            for r in 0..R {
                for w in 0..W {
                    let y = y.add((r * W + w) * V::LANES);
                    if !first {
                        acc[r][w] = V::load(y).add(acc[r][w]);
                    }
                    acc[r][w].store(y);
                }
            }
        }
    }
}

/// `y[i][j] += sum over k of a[k][i] * b[k][j]`, for the rows of one kernel.
pub struct Correlate {
    pub depth: usize,
    pub a: *const f32,
    pub b: *const f32,
    /// From one vector of columns to the next.
    pub b_block: usize,
    pub y: *mut f32,
    pub y_pitch: usize,
}

#[inline(always)]
unsafe fn correlate<V: Simd<Elem = f32>, const R: usize, const W: usize>(p: &Correlate) {
    // SAFETY: A and B have vectors for `depth` tiles, and `y` R rows of W vectors; the caller has
    // the instructions of `V`.
    unsafe {
        let mut acc = [[V::splat(0.0); W]; R];
        for r in 0..R {
            for w in 0..W {
                acc[r][w] = V::load(p.y.add(r * p.y_pitch + w * V::LANES));
            }
        }
        for k in 0..p.depth {
            let mut x = [V::splat(0.0); W];
            for (w, x) in x.iter_mut().enumerate() {
                *x = V::load(p.b.add(w * p.b_block + k * V::LANES));
            }
            V::add_outer(p.a.add(k * V::LANES), &x, &mut acc);
        }
        for r in 0..R {
            for w in 0..W {
                acc[r][w].store(p.y.add(r * p.y_pitch + w * V::LANES));
            }
        }
    }
}

/// The kernels for this machine.
pub struct Kernels {
    pub lanes: usize,
    pub gather: unsafe fn(&Pixels) -> Seen,
    pub scatter: unsafe fn(&Pixels),
    pub input: unsafe fn(&Tiles),
    pub output: unsafe fn(&Tiles, *const f32),
    pub gradient: unsafe fn(&Tiles),
    pub weights: unsafe fn(&Weights) -> Seen,
    pub taps: unsafe fn(*const f32, usize, usize, usize, *mut f32),
    /// Rows of a tile and kernel, by the vectors of a row less one.
    pub multiply: &'static [(usize, unsafe fn(&Multiply))],
    /// Rows of each kernel of `correlate`; they divide the lanes.
    pub rows: usize,
    pub correlate: [unsafe fn(&Correlate); 2],
}

macro_rules! kernels {
    ($name:ident, $set:ident, $v:ty, [$(($r:literal, $w:literal)),*], $rows:literal) => {
        mod $name {
            use super::*;
            crate::compiled! { $set:
                unsafe fn gather(p: &Pixels) -> Seen {
                    // SAFETY: planes and window hold what `p` names; who takes the kernel asked for
                    // the set.
                    unsafe { super::gather::<$v>(p) }
                }
                unsafe fn scatter(p: &Pixels) {
                    // SAFETY: planes and window hold what `p` names; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::scatter::<$v>(p);
                    }
                }
                unsafe fn input(p: &Tiles) {
                    // SAFETY: window and points hold what `p` names; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::input::<$v>(p);
                    }
                }
                unsafe fn output(p: &Tiles, bias: *const f32) {
                    // SAFETY: window and points hold what `p` names, `bias` a vector or is null;
                    // who takes the kernel asked for the set.
                    unsafe {
                        super::output::<$v>(p, bias);
                    }
                }
                unsafe fn gradient(p: &Tiles) {
                    // SAFETY: window and points hold what `p` names; who takes the kernel asked for
                    // the set.
                    unsafe {
                        super::gradient::<$v>(p);
                    }
                }
                unsafe fn weights(p: &Weights) -> Seen {
                    // SAFETY: weights and points hold what `p` names; who takes the kernel asked
                    // for the set.
                    unsafe { super::weights::<$v>(p) }
                }
                unsafe fn taps(
                    u: *const f32, plane: usize, parts: usize, part: usize, to: *mut f32,
                ) {
                    // SAFETY: `u` holds all points of all parts, `to` TAPS vectors; who takes the
                    // kernel asked for the set.
                    unsafe {
                        super::taps::<$v>(u, plane, parts, part, to);
                    }
                }
                unsafe fn multiply<const R: usize, const W: usize>(p: &Multiply) {
                    // SAFETY: the operands hold what `p` names; who takes the kernel asked for the
                    // set.
                    unsafe {
                        super::multiply::<$v, R, W>(p);
                    }
                }
                unsafe fn correlate<const W: usize>(p: &Correlate) {
                    // SAFETY: the operands hold what `p` names; who takes the kernel asked for the
                    // set.
                    unsafe {
                        super::correlate::<$v, $rows, W>(p);
                    }
                }
            }
            pub static KERNELS: Kernels = Kernels {
                lanes: <$v as Simd>::LANES,
                gather,
                scatter,
                input,
                output,
                gradient,
                weights,
                taps,
                multiply: &[$(($r, multiply::<$r, $w>)),*],
                rows: $rows,
                correlate: [correlate::<1>, correlate::<2>],
            };
        }
    };
}

kernels!(
    plain,
    portable,
    <f32 as Vectors>::Portable,
    [(4, 1), (4, 2)],
    4
);
#[cfg(target_arch = "aarch64")]
kernels!(neon, neon, F32x8, [(8, 1), (6, 2)], 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx2, avx2, __m256, [(8, 1), (6, 2)], 4);
#[cfg(target_arch = "x86_64")]
kernels!(
    avx512,
    avx512,
    __m512,
    [(12, 1), (12, 2), (8, 3), (6, 4)],
    8
);

pub fn kernels() -> &'static Kernels {
    per_isa!(match avx512 => &avx512::KERNELS, avx2 => &avx2::KERNELS, neon => &neon::KERNELS,
        portable => &plain::KERNELS)
}

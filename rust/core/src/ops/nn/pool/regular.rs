//! Max pooling over evenly spaced windows, whole vectors of outputs at a time.

pub mod lines;

use crate::alloc;
use crate::cpu::convert::{load, store};
use crate::cpu::number::Number;
use crate::cpu::pool::parallel_for;
use crate::cpu::simd::Lane;
use crate::dtype::DType;
use crate::per_isa;

/// What a max pool tells of where it found its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indices {
    /// Their index in the plane.
    Plane,
    /// Their number within the window, in a byte: what the gradient needs.
    Numbers,
    None,
}

/// Outputs that are computed together.
const LANES: usize = 16;
/// Elements of input that a thread works on at once.
const BAND: usize = 1 << 14;

/// Windows along depth, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regular {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub padding: [usize; 3],
    pub dilation: [usize; 3],
}

impl Regular {
    /// Elements of a window.
    pub fn volume(&self) -> usize {
        self.kernel.iter().product()
    }

    /// How far a window's last element lies from its first.
    pub fn reach(&self, d: usize) -> usize {
        (self.kernel[d] - 1) * self.dilation[d]
    }

    /// Far strides and windows would deal rows out over more memory than the plane has.
    pub fn is_near(&self, d: usize) -> bool {
        self.stride[d] <= 64 && self.reach(d) <= 256
    }

    /// Where rows are short, the longest dimension and the windows with that one last, behind the others in their
    /// order: vectors need long rows.
    pub fn with_long_dim_last(&self) -> Option<(usize, Regular)> {
        let d = (self.output[1] >= self.output[0]) as usize;
        if self.behind(d)[0] >= LANES || self.output[d] < 4 * LANES {
            return None;
        }
        let order = if d == 0 { [1, 2, 0] } else { [0, 2, 1] };
        let of = |v: [usize; 3]| order.map(|d| v[d]);
        let moved = Regular {
            input: of(self.input),
            output: of(self.output),
            kernel: of(self.kernel),
            stride: of(self.stride),
            padding: of(self.padding),
            dilation: of(self.dilation),
        };
        Some((d, moved))
    }

    /// The windows in the order that [`Self::with_long_dim_last`] gives them where memory is the same in both, and theirs else.
    pub fn in_lines(&self) -> Regular {
        let same = |t: &(usize, Regular)| self.behind(t.0) == [1; 2];
        self.with_long_dim_last()
            .filter(same)
            .map_or(*self, |t| t.1)
    }

    /// How many elements of the input, and of the output, lie behind one of dimension `d`.
    pub fn behind(&self, d: usize) -> [usize; 2] {
        [self.input, self.output].map(|n| n[d + 1..].iter().product())
    }

    /// Whether windows lie along the last dimension alone.
    pub fn is_line(&self) -> bool {
        self.kernel[..2] == [1; 2] && self.padding[..2] == [0; 2]
    }

    /// The first and the end of the kernel's elements that lie inside for output `o`.
    #[inline(always)]
    pub fn inside(&self, d: usize, o: usize) -> (usize, usize) {
        let at = o * self.stride[d];
        let (p, l) = (self.padding[d], self.dilation[d]);
        let first = p.saturating_sub(at).div_ceil(l);
        let end = (self.input[d] + p).saturating_sub(at).div_ceil(l);
        (first.min(self.kernel[d] - 1), end.min(self.kernel[d]))
    }

    /// Whether every window has an element inside: padding with dilation may step over a short
    /// input.
    pub fn all_inside(&self) -> bool {
        (0..3).all(|d| {
            let (n, s, p) = (self.output[d], self.stride[d], self.padding[d]);
            let reach = self.reach(d);
            // Others have no padding.
            let left = p.div_ceil(s).min(n);
            let right = ((self.input[d] + p).saturating_sub(reach) / s).clamp(left, n);
            (0..left).chain(right..n).all(|o| {
                let (first, end) = self.inside(d, o);
                first < end && o * s + first * self.dilation[d] >= p
            })
        })
    }

    /// Where in the plane the first element of a window would lie.
    fn corner(&self, o: [usize; 3]) -> i64 {
        let at = |d: usize| (o[d] * self.stride[d]) as i64 - self.padding[d] as i64;
        let [_, h, w] = self.input.map(|n| n as i64);
        (at(0) * h + at(1)) * w + at(2)
    }

    /// How far each element of a window lies from its first.
    fn offsets(&self) -> Vec<i64> {
        let [kd, kh, kw] = self.kernel;
        let [_, h, w] = self.input;
        let [ld, lh, lw] = self.dilation;
        let mut out = alloc::room(self.volume());
        for z in 0..kd {
            for y in 0..kh {
                out.extend((0..kw).map(|x| ((z * ld * h + y * lh) * w + x * lw) as i64));
            }
        }
        out
    }

    /// The indices of the largest elements from their numbers within the windows.
    pub fn indices(&self, codes: &[u8], to: &mut [i64]) {
        let (offsets, [od, oh, ow]) = (self.offsets(), self.output);
        let rows = to.chunks_exact_mut(ow).zip(codes.chunks_exact(ow));
        for (r, (to, codes)) in rows.enumerate() {
            let corner = self.corner([r / oh % od, r % oh, 0]);
            for (i, (to, &c)) in to.iter_mut().zip(codes).enumerate() {
                *to = corner + (i * self.stride[2]) as i64 + offsets[c as usize];
            }
        }
    }
}

/// One max pool: contiguous tensors of `planes` planes.
pub struct Forward {
    pub of: Regular,
    pub planes: usize,
    pub x: *const u8,
    pub y: *mut u8,
    pub dtype: DType,
    /// Where indices, or numbers within windows, go.
    pub at: *mut u8,
    pub indices: Indices,
}

// SAFETY: threads write disjoint rows.
unsafe impl Sync for Forward {}

impl Forward {
    /// # Safety
    /// The tensors have the sizes and types that the fields name; outputs are this call's own.
    pub unsafe fn run<T: Number>(&self) {
        let of = &self.of;
        let [_, oh, _] = of.output;
        if of.is_line()
            && of.output[2] >= lines::LONG
            && self.dtype == T::DTYPE
            && self.indices != Indices::Plane
        {
            // SAFETY: the tensors have the sizes and types that the fields name; outputs are this
            // call's own.
            return unsafe { lines::run::<T>(self) };
        }
        // Bands of rows of outputs, so that what they read stays in cache.
        let row = of.input[2] * of.kernel[0] * of.stride[1].max(1);
        let band = (BAND / row.max(1)).clamp(1, oh);
        let bands = oh.div_ceil(band) * of.output[0];
        let work = band * row;
        if self.whole::<T>() {
            let rows = self.planes * of.output[0] * oh;
            return parallel_for(rows, (1 << 14) / row.max(1) + 1, |range| {
                // SAFETY: the fields are the tensors' sizes; rows of different ranges are disjoint.
                unsafe {
                    match (of.kernel, of.stride[2]) {
                        ([_, 2, 2], _) => rows_of::<T, 2, 2, 2>(self, range),
                        ([_, _, 2], _) => rows_of::<T, 0, 2, 2>(self, range),
                        (_, 2) => rows_of::<T, 0, 3, 2>(self, range),
                        _ => rows_of::<T, 0, 3, 3>(self, range),
                    }
                }
            });
        }
        parallel_for(self.planes * bands, (1 << 14) / work.max(1) + 1, |range| {
            // SAFETY: the fields are the tensors' sizes; bands of different ranges are disjoint.
            unsafe { bands_of::<T>(self, range, band) }
        });
    }
}

impl Forward {
    /// Whether windows are a few rows of two or three elements that can be read where they lie.
    fn whole<T: Number>(&self) -> bool {
        let of = &self.of;
        of.kernel[0] == 1
            && of.kernel[1] <= 3
            && matches!((of.kernel[2], of.stride[2]), (2 | 3, 2) | (3, 3))
            && of.padding == [0; 3]
            && of.dilation == [1; 3]
            && (1..3).all(|d| of.output[d] > 0 && of.inside(d, of.output[d] - 1).1 == of.kernel[d])
            && of.output[2] >= LANES / 2
            && self.dtype == T::DTYPE
            && self.indices != Indices::Plane
    }
}

per_isa! {
    unsafe fn rows_of[T: Number; const R: usize, const K: usize, const S: usize](job: &Forward, range: std::ops::Range<usize>) {
        // SAFETY: windows lie inside the input; the rows of outputs belong to this thread.
        unsafe {
            let of = &job.of;
            let ([id, ih, iw], [od, oh, ow]) = (of.input, of.output);
            for row in range {
                let (plane, z, y) = (row / (od * oh), row / oh % od, row % oh);
                let from = (plane * id + z * of.stride[0]) * ih + y * of.stride[1];
                let x = job.x.cast::<T>().add(from * iw);
                let to = job.y.cast::<T>().add(row * ow);
                let at = match job.indices {
                    Indices::None => std::ptr::null_mut(),
                    _ => job.at.add(row * ow),
                };
                let rows = (of.kernel[1], iw);
                if ow >= LANES {
                    row_of::<T, R, K, S, LANES>(x, rows, ow, to, at);
                } else {
                    row_of::<T, R, K, S, { LANES / 2 }>(x, rows, ow, to, at);
                }
            }
        }
    }
}

/// One row of outputs, at least `N`; the last vector overlaps the one before. Windows of `K` elements,
/// `S` apart, of so many rows of `x`, so far apart; of `R` rows unless `R` is 0.
#[inline(always)]
unsafe fn row_of<T: Number, const R: usize, const K: usize, const S: usize, const N: usize>(
    x: *const T,
    (rows, apart): (usize, usize),
    n: usize,
    y: *mut T,
    at: *mut u8,
) {
    // SAFETY: the rows have the windows of `n` outputs, `n` at least N; `y`, and `at` unless it is
    // null, have room for `n`.
    unsafe {
        for o in (0..n).step_by(N) {
            let o = o.min(n - N);
            let (mut top, mut number) = ([T::LEAST; N], [0i32; N]);
            for r in 0..if R > 0 { R } else { rows } {
                // The first line has the first `S` elements of each window, the next ones end with one more.
                for line in 0..=K - S {
                    let v = x.add(r * apart + S * o + line);
                    let v = v.cast::<[[T; S]; N]>().read_unaligned();
                    for p in if line == 0 { 0 } else { S - 1 }..S {
                        let now = (K * r + line + p) as i32;
                        for j in 0..N {
                            let win = wins(v[j][p], top[j]);
                            top[j] = if win { v[j][p] } else { top[j] };
                            number[j] = if win { now } else { number[j] };
                        }
                    }
                }
            }
            y.add(o).cast::<[T; N]>().write_unaligned(top);
            if !at.is_null() {
                let codes = number.map(|n| n as u8);
                at.add(o).cast::<[u8; N]>().write_unaligned(codes);
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::eq_op)]
pub fn wins<T: Number>(v: T, best: T) -> bool {
    (v > best) | (v != v)
}

/// Deals the first `S * phase` of `n` elements out to `S` lines of `phase`; least values behind the last.
#[inline(always)]
unsafe fn deal<T: Number, const S: usize>(from: *const T, n: usize, to: &mut [T]) {
    let phase = to.len() / S;
    let whole = phase.min(n / S);
    let at = to.as_mut_ptr();
    // SAFETY: `from` has `n` elements, and `to` S lines.
    unsafe {
        for i in 0..whole {
            for p in 0..S {
                *at.add(p * phase + i) = *from.add(S * i + p);
            }
        }
        for i in whole..phase {
            for p in 0..S {
                let inside = S * i + p < n;
                *at.add(p * phase + i) = if inside {
                    *from.add(S * i + p)
                } else {
                    T::LEAST
                };
            }
        }
    }
}

per_isa! {
    unsafe fn bands_of[T: Number](job: &Forward, range: std::ops::Range<usize>, band: usize) {
        // SAFETY: bands lie inside input and outputs, which belong to this thread; `dealt` and
        // `line` hold all that a band's windows see.
        unsafe {
            let of = &job.of;
            let ([_, ih, iw], [od, oh, ow]) = (of.input, of.output);
            let ([kd, kh, kw], [sd, sh, sw]) = (of.kernel, of.stride);
            let ([pd, ph, pw], [ld, lh, lw]) = (of.padding, of.dilation);
            let size = job.dtype.size();
            // A row of input is dealt out by its place modulo the stride, so that the elements of
            // neighbouring windows lie next to each other. Padding is the least value.
            let wide = ow.next_multiple_of(LANES);
            let phase = wide + (kw - 1) * lw / sw;
            let rows = (band - 1) * sh + (kh - 1) * lh + 1;
            let mut dealt = alloc::full(T::LEAST, kd * rows * sw * phase);
            let mut line = alloc::full(T::LEAST, (phase * sw).max(iw + pw));
            let mut best = alloc::full(T::LEAST, wide);
            let mut code = alloc::full(0i32, wide);
            let first: Vec<i32> = (0..wide)
                .map(|o| if o < ow { of.inside(2, o).0 as i32 } else { 0 })
                .collect();
            let offsets = of.offsets();
            let bands = oh.div_ceil(band);
            // A row that can be dealt out from where it lies.
            let plain = pw == 0 && job.dtype == T::DTYPE;
            for unit in range {
                let (plane, part) = (unit / (bands * od), unit % (bands * od));
                let (z, y0) = (part / bands, part % bands * band);
                let y1 = (y0 + band).min(oh);
                let (z0, z1) = of.inside(0, z);
                let top = (y0 * sh).saturating_sub(ph);
                let bottom = ((y1 - 1) * sh + (kh - 1) * lh + 1).saturating_sub(ph).min(ih);
                let source = job.x.add(plane * of.input.iter().product::<usize>() * size);
                for a in z0..z1 {
                    let depth = z * sd + a * ld - pd;
                    for r in top..bottom {
                        let from = source.add((depth * ih + r) * iw * size);
                        let (from, n) = match plain {
                            true => (from.cast::<T>(), iw),
                            false => {
                                let to = line.as_mut_ptr().add(pw);
                                load(job.dtype, from, size as isize, iw, to);
                                (line.as_ptr(), line.len())
                            }
                        };
                        let slot = a * rows + (r + ph - y0 * sh);
                        let to = &mut dealt[slot * sw * phase..][..sw * phase];
                        match sw {
                            1 => deal::<T, 1>(from, n, to),
                            2 => deal::<T, 2>(from, n, to),
                            3 => deal::<T, 3>(from, n, to),
                            4 => deal::<T, 4>(from, n, to),
                            _ => {
                                for (i, to) in to.iter_mut().enumerate() {
                                    let at = i % phase * sw + i / phase;
                                    *to = if at < n { *from.add(at) } else { T::LEAST };
                                }
                            }
                        }
                    }
                }
                for y in y0..y1 {
                    let (r0, r1) = of.inside(1, y);
                    for o in (0..wide).step_by(LANES) {
                        let mut top = [T::LEAST; LANES];
                        let mut number = [((z0 * kh + r0) * kw) as i32; LANES];
                        for j in 0..LANES {
                            number[j] += first[o + j];
                        }
                        for a in z0..z1 {
                            for r in r0..r1 {
                                let slot = a * rows + (y - y0) * sh + r * lh;
                                for c in 0..kw {
                                    let (p, q) = (c * lw % sw, c * lw / sw);
                                    let from = dealt.as_ptr().add((slot * sw + p) * phase + q + o);
                                    let now = ((a * kh + r) * kw + c) as i32;
                                    if job.indices == Indices::None {
                                        for j in 0..LANES {
                                            let v = *from.add(j);
                                            top[j] = if wins(v, top[j]) { v } else { top[j] };
                                        }
                                    } else {
                                        for j in 0..LANES {
                                            let v = *from.add(j);
                                            let win = wins(v, top[j]);
                                            top[j] = if win { v } else { top[j] };
                                            number[j] = if win { now } else { number[j] };
                                        }
                                    }
                                }
                            }
                        }
                        best[o..o + LANES].copy_from_slice(&top);
                        code[o..o + LANES].copy_from_slice(&number);
                    }
                    let row = (plane * od + z) * oh + y;
                    let to = job.y.add(row * ow * size);
                    store(job.dtype, to, size as isize, ow, best.as_ptr());
                    match job.indices {
                        Indices::None => {}
                        Indices::Numbers => {
                            let to = std::slice::from_raw_parts_mut(job.at.add(row * ow), ow);
                            to.iter_mut().zip(&code).for_each(|(to, &c)| *to = c as u8);
                        }
                        Indices::Plane => {
                            let corner = of.corner([z, y, 0]);
                            let at = job.at.cast::<i64>().add(row * ow);
                            let to = std::slice::from_raw_parts_mut(at, ow);
                            for (i, (to, &c)) in to.iter_mut().zip(&code).enumerate() {
                                *to = corner + (i * sw) as i64 + offsets[c as usize];
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The gradient of a max pool from numbers within windows.
pub struct Backward {
    pub of: Regular,
    pub planes: usize,
    pub g: *const u8,
    pub codes: *const u8,
    pub dx: *mut u8,
    pub dtype: DType,
}

// SAFETY: threads write disjoint planes.
unsafe impl Sync for Backward {}

impl Backward {
    /// # Safety
    /// As for [`Forward::run`].
    pub unsafe fn run<T: Number>(&self) {
        let large: usize = self.of.input.iter().product();
        parallel_for(self.planes, (1 << 14) / large.max(1) + 1, |range| {
            // SAFETY: the fields are the tensors' sizes; planes of different ranges are disjoint.
            unsafe { planes_grad::<T>(self, range) }
        });
    }

    /// Whether windows of `k` elements along the width cover each element at most once.
    fn apart(&self) -> bool {
        let of = &self.of;
        of.kernel[0] == 1
            && of.stride[0] == 1
            && of.padding == [0; 3]
            && of.dilation == [1; 3]
            && of.kernel[1..] == of.stride[1..]
            && (1..3).all(|d| of.output[d] * of.stride[d] <= of.input[d])
    }
}

per_isa! {
    unsafe fn planes_grad[T: Number](job: &Backward, range: std::ops::Range<usize>) {
        // SAFETY: planes lie inside the tensors and belong to this thread; a code names an element
        // of its window.
        unsafe {
            let of = &job.of;
            let (large, small): (usize, usize) =
                (of.input.iter().product(), of.output.iter().product());
            let ([_, ih, iw], [_, oh, ow]) = (of.input, of.output);
            let ([_, kh, kw], size) = (of.kernel, job.dtype.size());
            let direct = job.dtype == T::DTYPE;
            let (apart, offsets) = (job.apart(), of.offsets());
            let mut grads = alloc::full(T::default(), if direct { 0 } else { small });
            let mut wide = alloc::full(T::default(), if direct { 0 } else { large });
            for p in range {
                let (g, dx) = (job.g.add(p * small * size), job.dx.add(p * large * size));
                let (g, to) = if direct {
                    (g.cast::<T>(), dx.cast::<T>())
                } else {
                    load(job.dtype, g, size as isize, small, grads.as_mut_ptr());
                    (grads.as_ptr(), wide.as_mut_ptr())
                };
                let codes = std::slice::from_raw_parts(job.codes.add(p * small), small);
                let g = std::slice::from_raw_parts(g, small);
                let to = std::slice::from_raw_parts_mut(to, large);
                if apart {
                    // Every element is written once, with its gradient or zero.
                    for z in 0..of.input[0] {
                        for y in 0..ih {
                            let row = &mut to[(z * ih + y) * iw..][..iw];
                            let (o, a) = (y / kh, y % kh);
                            if o >= oh {
                                row.fill(T::default());
                                continue;
                            }
                            let at = (z * oh + o) * ow;
                            let (g, codes) = (&g[at..at + ow], &codes[at..at + ow]);
                            let (row, rest) = row.split_at_mut(ow * kw);
                            rest.fill(T::default());
                            match kw {
                                2 => spread::<T, 2>(row, g, codes, a),
                                3 => spread::<T, 3>(row, g, codes, a),
                                _ => {
                                    for (i, out) in row.chunks_exact_mut(kw).enumerate() {
                                        out.fill(T::default());
                                        let c = (codes[i] as usize).wrapping_sub(a * kw);
                                        if c < kw {
                                            out[c] = g[i];
                                        }
                                    }
                                }
                            }
                        }
                    }
                } else {
                    to.fill(T::default());
                    let rows = g.chunks_exact(ow).zip(codes.chunks_exact(ow));
                    for (r, (g, codes)) in rows.enumerate() {
                        let corner = of.corner([r / oh, r % oh, 0]);
                        for (i, (&g, &c)) in g.iter().zip(codes).enumerate() {
                            let at = corner + (i * of.stride[2]) as i64 + offsets[c as usize];
                            let to = to.get_unchecked_mut(at as usize);
                            *to = Lane::plus(*to, g);
                        }
                    }
                }
                if !direct {
                    store(job.dtype, dx, size as isize, large, wide.as_ptr());
                }
            }
        }
    }
}

/// Row `a` of windows `K` wide. In blocks that are read before any of them is written: what is
/// written might else lie where the rest is read from, and nothing becomes vectors.
#[inline(always)]
fn spread<T: Number, const K: usize>(row: &mut [T], g: &[T], codes: &[u8], a: usize) {
    const N: usize = 16;
    let window = |g: T, code: u8| -> [T; K] {
        std::array::from_fn(|c| {
            if code == (a * K + c) as u8 {
                g
            } else {
                T::default()
            }
        })
    };
    let (blocks, rest) = row.as_chunks_mut::<K>().0.as_chunks_mut::<N>();
    let ((g_blocks, g_rest), (code_blocks, code_rest)) =
        (g.as_chunks::<N>(), codes.as_chunks::<N>());
    for ((out, &g), &code) in blocks.iter_mut().zip(g_blocks).zip(code_blocks) {
        *out = std::array::from_fn(|i| window(g[i], code[i]));
    }
    for ((out, &g), &code) in rest.iter_mut().zip(g_rest).zip(code_rest) {
        *out = window(g, code);
    }
}

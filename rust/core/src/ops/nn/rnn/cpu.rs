//! One time step of a recurrent layer: the product with the recurrent weights and the gates in
//! one pass over blocks of hidden units, so that each block needs one fork and no more memory
//! than its gates.
//!
//! Weights are packed once for a whole sequence into panels of one vector pair's width. Sums
//! over `k` run in the order of `k` for every element, so results depend neither on the number of
//! threads nor on the size of the batch.

use super::composite::Cell;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::Simd;
#[cfg(target_arch = "aarch64")]
use crate::cpu::simd::{F32x8, F64x4};
use crate::ops::pointwise::Float;
use crate::{compiled, per_isa};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Rows of a tile whose products are kept before the gates read them.
const CHUNK: usize = 48;
/// The depth of a panel that stays in the first cache.
const DEPTH: usize = 256;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 17;

/// A type that recurrent layers compute in.
pub trait Recurrent: Float {
    /// Hidden units in a block.
    fn width() -> usize;
    /// # Safety
    /// All addresses of `s` are good for the sizes it names, and nobody else uses what the block
    /// writes.
    unsafe fn forward(s: &Forward<Self>, block: usize);
    /// # Safety
    /// As for [`Recurrent::forward`].
    unsafe fn backward(s: &Backward<Self>, block: usize);
}

macro_rules! real {
    ($t:ident, $zmm:ident $wide:literal, $ymm:ident $two:ident $middle:literal, $narrow:literal) => {
        impl Recurrent for $t {
            fn width() -> usize {
                per_isa!(match avx512 => $wide, avx2 => $middle, neon => $middle,
                    portable => $narrow)
            }
            unsafe fn forward(s: &Forward<Self>, block: usize) {
                compiled! { avx512:
                    unsafe fn avx512(s: &Forward<$t>, block: usize) {
                        // SAFETY: `s` names memory of its sizes; the caller has AVX-512.
                        unsafe { forward::<$t, $zmm, $wide, 12>(s, block) }
                    }
                }
                compiled! { avx2:
                    unsafe fn avx2(s: &Forward<$t>, block: usize) {
                        // SAFETY: `s` names memory of its sizes; the caller has AVX2.
                        unsafe { forward::<$t, $ymm, $middle, 6>(s, block) }
                    }
                }
                // SAFETY: `s` names memory of its sizes; the best set is the machine's.
                unsafe {
                    per_isa!(match avx512 => avx512(s, block), avx2 => avx2(s, block),
                        neon => forward::<$t, $two, $middle, 6>(s, block),
                        portable => forward::<$t, [$t; $narrow / 2], $narrow, 6>(s, block))
                }
            }
            unsafe fn backward(s: &Backward<Self>, block: usize) {
                compiled! { avx512:
                    unsafe fn avx512(s: &Backward<$t>, block: usize) {
                        // SAFETY: `s` names memory of its sizes; the caller has AVX-512.
                        unsafe { backward::<$t, $zmm, $wide, 12>(s, block) }
                    }
                }
                compiled! { avx2:
                    unsafe fn avx2(s: &Backward<$t>, block: usize) {
                        // SAFETY: `s` names memory of its sizes; the caller has AVX2.
                        unsafe { backward::<$t, $ymm, $middle, 6>(s, block) }
                    }
                }
                // SAFETY: `s` names memory of its sizes; the best set is the machine's.
                unsafe {
                    per_isa!(match avx512 => avx512(s, block), avx2 => avx2(s, block),
                        neon => backward::<$t, $two, $middle, 6>(s, block),
                        portable => backward::<$t, [$t; $narrow / 2], $narrow, 6>(s, block))
                }
            }
        }
    };
}
real!(f32, __m512 32, __m256 F32x8 16, 8);
real!(f64, __m512d 16, __m256d F64x4 8, 4);

/// Consecutive rows in memory.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    pub ptr: *mut T,
    pub stride: usize,
    pub n: usize,
}

impl<T> Rows<T> {
    pub const NONE: Self = Rows {
        ptr: std::ptr::null_mut(),
        stride: 0,
        n: 0,
    };
}

/// A state before the step: that of the sequences that go on, then that of those that begin.
pub type Before<T> = [Rows<T>; 2];

#[inline(always)]
unsafe fn row_of<T>(s: &Before<T>, r: usize) -> *mut T {
    // SAFETY: `r` is a row of either part.
    unsafe {
        if r < s[0].n {
            s[0].ptr.add(r * s[0].stride)
        } else {
            s[1].ptr.add((r - s[0].n) * s[1].stride)
        }
    }
}

/// A forward step.
pub struct Forward<T> {
    pub cell: Cell,
    /// Hidden units.
    pub width: usize,
    /// Sequences.
    pub n: usize,
    pub h: Before<T>,
    pub c: Before<T>,
    /// [block][gate][unit before][unit].
    pub weights: *const T,
    /// Of all gates; the share of the recurrent product of a GRU's candidate is apart.
    pub bias: *const T,
    pub bias_own: *const T,
    /// The input's share of the gates, rows of all gates; with `keep` it becomes the gates.
    pub gates: *mut T,
    pub keep: bool,
    /// With `keep`, the recurrent product of a GRU's candidate.
    pub own: *mut T,
    pub c_out: *mut T,
    pub h_out: *mut T,
}
// SAFETY: blocks write to disjoint columns, and read what no block of the step writes.
unsafe impl<T> Sync for Forward<T> {}

/// A backward step.
pub struct Backward<T> {
    pub cell: Cell,
    pub width: usize,
    pub n: usize,
    pub h: Before<T>,
    pub c: Before<T>,
    pub gates: *const T,
    /// The recurrent product of a GRU's candidate, or an LSTM's new cell state.
    pub own: *const T,
    pub h_out: *const T,
    /// The gradient of the output, or null.
    pub gy: *const T,
    /// Gradients of the gates of the step that came after; those that ended here have none.
    pub after: Rows<T>,
    /// [block][gate and unit after][unit].
    pub weights: *const T,
    /// The gradient of the last hidden state, or null.
    pub gh: *const T,
    /// The gradient of the cell state, or a GRU's direct way to the state before: a row for each
    /// sequence, read and written.
    pub state: *mut T,
    /// Gradients of the gates, and of the recurrent product where that is another (GRU), and
    /// the step from row to row.
    pub stride: usize,
    pub gates_g: *mut T,
    pub own_g: *mut T,
    /// Sums of both over all rows, added to.
    pub bias_g: *mut T,
    pub own_bias_g: *mut T,
}
// SAFETY: blocks write to disjoint columns, and read what no block of the step writes.
unsafe impl<T> Sync for Backward<T> {}

/// Runs all blocks of a forward step.
///
/// # Safety
/// As for [`Recurrent::forward`].
pub unsafe fn step<T: Recurrent>(s: &Forward<T>) {
    let work = s.n * s.cell.gates() * T::width() * s.width;
    let blocks = s.width.div_ceil(T::width());
    parallel_for(blocks, GRAIN / work.max(1) + 1, |range| {
        // SAFETY: blocks lie inside the width, and what `s` names has its sizes.
        unsafe { range.for_each(|b| T::forward(s, b)) }
    });
}

/// Runs all blocks of a backward step.
///
/// # Safety
/// As for [`Recurrent::forward`].
pub unsafe fn step_back<T: Recurrent>(s: &Backward<T>) {
    let work = s.n * s.cell.gates() * T::width() * s.width;
    let blocks = s.width.div_ceil(T::width());
    parallel_for(blocks, GRAIN / work.max(1) + 1, |range| {
        // SAFETY: blocks lie inside the width, and what `s` names has its sizes.
        unsafe { range.for_each(|b| T::backward(s, b)) }
    });
}

/// Elements of the packed weights of `gates` gates.
pub fn packed_len<T: Recurrent>(gates: usize, width: usize) -> usize {
    width.next_multiple_of(T::width()) * gates * width
}

/// Packs recurrent weights, `gates * width` rows of `width`, for forward steps.
///
/// # Safety
/// `w` holds the matrix, `to` [`packed_len`] elements.
pub unsafe fn pack<T: Recurrent>(gates: usize, width: usize, w: *const T, to: *mut T) {
    // SAFETY: `w` has `gates * width` rows of `width`, and panels have parts of `to` of their own.
    unsafe {
        let (v, w, to) = (T::width(), Ptr::read(w), Ptr::new(to));
        let panels = width.div_ceil(v) * gates;
        parallel_for(panels, (1 << 15) / (v * width).max(1) + 1, |range| {
            for p in range {
                let (first, gate) = (p / gates * v, p % gates);
                let to = to.at(p * v * width);
                for k in (0..width).step_by(16) {
                    let n = 16.min(width - k);
                    for j in 0..v {
                        if first + j < width {
                            let from = w.at((gate * width + first + j) * width + k);
                            for q in 0..n {
                                *to.add((k + q) * v + j) = *from.add(q);
                            }
                        } else {
                            for q in 0..n {
                                *to.add((k + q) * v + j) = T::ZERO;
                            }
                        }
                    }
                }
            }
        });
    }
}

/// Packs recurrent weights for backward steps.
///
/// # Safety
/// As for [`pack`].
pub unsafe fn pack_back<T: Recurrent>(gates: usize, width: usize, w: *const T, to: *mut T) {
    // SAFETY: `w` has `gates * width` rows of `width`, and blocks have parts of `to` of their own.
    unsafe {
        let (v, w, to) = (T::width(), Ptr::read(w), Ptr::new(to));
        let depth = gates * width;
        parallel_for(
            width.div_ceil(v),
            (1 << 15) / (v * depth).max(1) + 1,
            |range| {
                for b in range {
                    let used = v.min(width - b * v);
                    for k in 0..depth {
                        let (from, to) = (w.at(k * width + b * v), to.at((b * depth + k) * v));
                        for j in 0..used {
                            *to.add(j) = *from.add(j);
                        }
                        for j in used..v {
                            *to.add(j) = T::ZERO;
                        }
                    }
                }
            },
        );
    }
}

/// An array from a formula of the index. Not `array::from_fn`: a closure behind it would be compiled
/// for the plainest processor.
macro_rules! each {
    ($j:ident => $e:expr) => {{
        let mut out = [T::ZERO; W];
        for $j in 0..W {
            out[$j] = $e;
        }
        out
    }};
}

/// `w` elements, then zeros.
#[inline(always)]
unsafe fn get<T: Recurrent, const W: usize>(p: *const T, w: usize) -> [T; W] {
    // SAFETY: `p` has `w` elements, at most W.
    unsafe {
        if w == W {
            return *p.cast::<[T; W]>();
        }
        let mut out = [T::ZERO; W];
        for (j, v) in out.iter_mut().enumerate().take(w) {
            *v = *p.add(j);
        }
        out
    }
}

#[inline(always)]
unsafe fn put<T: Recurrent, const W: usize>(p: *mut T, w: usize, v: &[T; W]) {
    // SAFETY: `p` has room for `w` elements, at most W.
    unsafe {
        if w == W {
            *p.cast::<[T; W]>() = *v;
        } else {
            for (j, &v) in v.iter().enumerate().take(w) {
                *p.add(j) = v;
            }
        }
    }
}

#[inline(always)]
fn add<T: Recurrent, const W: usize>(a: &[T; W], b: &[T; W]) -> [T; W] {
    each!(j => a[j] + b[j])
}

/// R rows of A times a panel, added to what is there where `more`.
#[inline(always)]
unsafe fn tile<V: Simd, const W: usize, const R: usize>(
    k: usize,
    a: *const V::Elem,
    stride: usize,
    panel: *const V::Elem,
    to: *mut [V::Elem; W],
    more: bool,
) {
    // SAFETY: A has R rows of `k` elements, the panel `k` rows, and `to` R rows; the caller has the
    // instructions of `V`.
    unsafe {
        let mut acc = [[V::splat(V::Elem::default()); 2]; R];
        if more {
            for r in 0..R {
                let to = to.add(r).cast::<V::Elem>();
                acc[r] = [V::load(to), V::load(to.add(W / 2))];
            }
        }
        for q in 0..k {
            let row = panel.add(q * W);
            let (x, y) = (V::load(row), V::load(row.add(W / 2)));
            for r in 0..R {
                let v = V::splat(*a.add(r * stride + q));
                acc[r] = [v.fma(x, acc[r][0]), v.fma(y, acc[r][1])];
            }
        }
        for r in 0..R {
            let to = to.add(r).cast::<V::Elem>();
            acc[r][0].store(to);
            acc[r][1].store(to.add(W / 2));
        }
    }
}

/// `n` rows of A times a panel, in nearly equal tiles of at most M rows.
#[inline(always)]
unsafe fn product<T: Recurrent, V: Simd<Elem = T>, const W: usize, const M: usize>(
    k: usize,
    a: *const T,
    stride: usize,
    n: usize,
    panel: *const T,
    to: *mut [T; W],
) {
    // SAFETY: A has `n` rows of `k` elements, the panel `k` rows, and `to` `n` rows; the caller has
    // the instructions of `V`.
    unsafe {
        let tiles = n.div_ceil(M);
        for q in (0..k).step_by(DEPTH) {
            let (depth, more, panel) = (DEPTH.min(k - q), q > 0, panel.add(q * W));
            let mut r = 0;
            for t in 0..tiles {
                let rows = (n - r).div_ceil(tiles - t);
                let (a, to) = (a.add(r * stride + q), to.add(r));
                macro_rules! of {
                    ($($r:literal)*) => {
                        match rows {
                            $($r if $r <= M => {
                                tile::<V, W, $r>(depth, a, stride, panel, to, more)
                            })*
                            _ => {}
                        }
                    };
                }
                of!(1 2 3 4 5 6 7 8 9 10 11 12);
                r += rows;
            }
        }
    }
}

/// Rows `from..from + n` of a state times a panel.
#[inline(always)]
unsafe fn product_of<T: Recurrent, V: Simd<Elem = T>, const W: usize, const M: usize>(
    k: usize,
    s: &Before<T>,
    from: usize,
    n: usize,
    panel: *const T,
    to: *mut [T; W],
) {
    // SAFETY: the state has rows `from..from + n` of `k` elements, and `to` as many; the caller has
    // the instructions of `V`.
    unsafe {
        let first = s[0].n.saturating_sub(from).min(n);
        if first > 0 {
            product::<T, V, W, M>(k, row_of(s, from), s[0].stride, first, panel, to);
        }
        if n > first {
            let a = row_of(s, from + first);
            product::<T, V, W, M>(k, a, s[1].stride, n - first, panel, to.add(first));
        }
    }
}

#[inline(always)]
unsafe fn forward<T: Recurrent, V: Simd<Elem = T>, const W: usize, const M: usize>(
    s: &Forward<T>,
    block: usize,
) {
    // SAFETY: `s` names memory of its sizes, of which columns `at..at + w` are this block's; the
    // caller has the instructions of `V`.
    unsafe {
        let (h, gates) = (s.width, s.cell.gates());
        let at = block * W;
        let w = W.min(h - at);
        let weights = s.weights.add(at * gates * h);
        let mut room = [[[T::ZERO; W]; CHUNK]; 4];
        for from in (0..s.n).step_by(CHUNK) {
            let n = CHUNK.min(s.n - from);
            for g in 0..gates {
                let panel = weights.add(g * h * W);
                product_of::<T, V, W, M>(h, &s.h, from, n, panel, room[g].as_mut_ptr());
            }
            for i in 0..n {
                let r = from + i;
                let row = s.gates.add(r * gates * h + at);
                macro_rules! input {
                    ($g:expr) => {{
                        let x = get::<T, W>(row.add($g * h), w);
                        add(&x, &get(s.bias.add($g * h + at), w))
                    }};
                }
                macro_rules! sum {
                    ($g:expr) => {
                        add(&input!($g), &room[$g][i])
                    };
                }
                let out = s.h_out.add(r * h + at);
                match s.cell {
                    Cell::Lstm => {
                        let (a, b, c, d) = (sum!(0), sum!(1), sum!(2), sum!(3));
                        let a: [T; W] = each!(j => a[j].sigmoid());
                        let b: [T; W] = each!(j => b[j].sigmoid());
                        let c: [T; W] = each!(j => c[j].tanh());
                        let d: [T; W] = each!(j => d[j].sigmoid());
                        let old = get::<T, W>(row_of(&s.c, r).add(at), w);
                        let new: [T; W] = each!(j => b[j] * old[j] + a[j] * c[j]);
                        let y: [T; W] = each!(j => d[j] * new[j].tanh());
                        if s.keep {
                            put(row, w, &a);
                            put(row.add(h), w, &b);
                            put(row.add(2 * h), w, &c);
                            put(row.add(3 * h), w, &d);
                        }
                        put(s.c_out.add(r * h + at), w, &new);
                        put(out, w, &y);
                    }
                    Cell::Gru => {
                        let (a, b, x) = (sum!(0), sum!(1), input!(2));
                        let own = add(&room[2][i], &get(s.bias_own.add(at), w));
                        let a: [T; W] = each!(j => a[j].sigmoid());
                        let b: [T; W] = each!(j => b[j].sigmoid());
                        let x: [T; W] = each!(j => (x[j] + a[j] * own[j]).tanh());
                        let old = get::<T, W>(row_of(&s.h, r).add(at), w);
                        let y: [T; W] = each!(j => (old[j] - x[j]) * b[j] + x[j]);
                        if s.keep {
                            put(row, w, &a);
                            put(row.add(h), w, &b);
                            put(row.add(2 * h), w, &x);
                            put(s.own.add(r * h + at), w, &own);
                        }
                        put(out, w, &y);
                    }
                    Cell::Tanh => {
                        let a = sum!(0);
                        put::<T, W>(out, w, &each!(j => a[j].tanh()));
                    }
                    Cell::Relu => {
                        let a = sum!(0);
                        // NaN stays.
                        let y = each!(j => if a[j] < T::ZERO { T::ZERO } else { a[j] });
                        put::<T, W>(out, w, &y);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn backward<T: Recurrent, V: Simd<Elem = T>, const W: usize, const M: usize>(
    s: &Backward<T>,
    block: usize,
) {
    // SAFETY: `s` names memory of its sizes, of which columns `at..at + w` are this block's; the
    // caller has the instructions of `V`.
    unsafe {
        let (h, gates) = (s.width, s.cell.gates());
        let (at, depth) = (block * W, gates * h);
        let w = W.min(h - at);
        let panel = s.weights.add(at * depth);
        let mut room = [[T::ZERO; W]; CHUNK];
        let one = T::ONE;
        for from in (0..s.n).step_by(CHUNK) {
            let n = CHUNK.min(s.n - from);
            let on = s.after.n.saturating_sub(from).min(n);
            if on > 0 {
                let a = s.after.ptr.add(from * s.after.stride);
                product::<T, V, W, M>(depth, a, s.after.stride, on, panel, room.as_mut_ptr());
            }
            // Sums of one chunk at a time round less than one long sum.
            let mut sums = [[T::ZERO; W]; 4];
            for i in 0..n {
                let r = from + i;
                macro_rules! read {
                    ($p:expr) => {
                        get::<T, W>($p.add(r * h + at), w)
                    };
                }
                let state = s.state.add(r * h + at);
                let mut g = if i < on {
                    room[i]
                } else if s.gh.is_null() {
                    [T::ZERO; W]
                } else {
                    read!(s.gh)
                };
                if !s.gy.is_null() {
                    g = add(&g, &read!(s.gy));
                }
                let row = s.gates.add(r * depth + at);
                macro_rules! gate {
                    ($k:expr) => {
                        get::<T, W>(row.add($k * h), w)
                    };
                }
                let to = s.gates_g.add(r * s.stride + at);
                match s.cell {
                    Cell::Lstm => {
                        let (a, b, c, d) = (gate!(0), gate!(1), gate!(2), gate!(3));
                        let t = read!(s.own);
                        let t: [T; W] = each!(j => t[j].tanh());
                        let old = get::<T, W>(row_of(&s.c, r).add(at), w);
                        let gc = get::<T, W>(state, w);
                        let gc: [T; W] = each!(j => gc[j] + g[j] * d[j] * (one - t[j] * t[j]));
                        let out: [[T; W]; 4] = [
                            each!(j => gc[j] * c[j] * a[j] * (one - a[j])),
                            each!(j => gc[j] * old[j] * b[j] * (one - b[j])),
                            each!(j => gc[j] * a[j] * (one - c[j] * c[j])),
                            each!(j => g[j] * t[j] * d[j] * (one - d[j])),
                        ];
                        put::<T, W>(state, w, &each!(j => gc[j] * b[j]));
                        for k in 0..4 {
                            put(to.add(k * h), w, &out[k]);
                            sums[k] = add(&sums[k], &out[k]);
                        }
                    }
                    Cell::Gru => {
                        if i < on {
                            g = add(&g, &get(state, w));
                        }
                        let (a, b, x) = (gate!(0), gate!(1), gate!(2));
                        let own = read!(s.own);
                        let old = get::<T, W>(row_of(&s.h, r).add(at), w);
                        let gx: [T; W] = each!(j => g[j] * (one - b[j]) * (one - x[j] * x[j]));
                        let ga: [T; W] = each!(j => gx[j] * own[j] * a[j] * (one - a[j]));
                        let gb: [T; W] = each!(j => g[j] * (old[j] - x[j]) * b[j] * (one - b[j]));
                        let gown: [T; W] = each!(j => gx[j] * a[j]);
                        put::<T, W>(state, w, &each!(j => g[j] * b[j]));
                        let other = s.own_g.add(r * s.stride + at);
                        for p in [to, other] {
                            put(p, w, &ga);
                            put(p.add(h), w, &gb);
                        }
                        sums[0] = add(&sums[0], &ga);
                        sums[1] = add(&sums[1], &gb);
                        put(to.add(2 * h), w, &gx);
                        put(other.add(2 * h), w, &gown);
                        sums[2] = add(&sums[2], &gx);
                        sums[3] = add(&sums[3], &gown);
                    }
                    Cell::Tanh => {
                        let y = read!(s.h_out);
                        let v: [T; W] = each!(j => g[j] * (one - y[j] * y[j]));
                        put(to, w, &v);
                        sums[0] = add(&sums[0], &v);
                    }
                    Cell::Relu => {
                        let y = read!(s.h_out);
                        let v: [T; W] = each!(j => if y[j] <= T::ZERO { T::ZERO } else { g[j] });
                        put(to, w, &v);
                        sums[0] = add(&sums[0], &v);
                    }
                }
            }
            for k in 0..gates {
                let p = s.bias_g.add(k * h + at);
                put(p, w, &add(&get(p, w), &sums[k]));
            }
            if s.cell == Cell::Gru {
                for (k, from) in [0, 1, 3].into_iter().enumerate() {
                    let p = s.own_bias_g.add(k * h + at);
                    put(p, w, &add(&get(p, w), &sums[from]));
                }
            }
        }
    }
}

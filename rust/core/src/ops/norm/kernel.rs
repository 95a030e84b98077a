//! Normalisation over rows (layer, group, instance, RMS) and over columns (batch).
//!
//! A tensor is seen as (n, groups, d, inner); there is one weight for each (group, d). Rows are
//! the (d, inner) planes; columns are what one (group, d) selects.

use crate::cpu::elements::Compute;
use crate::cpu::pool::parallel_for;
use crate::ops::conv::Ptr;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A floating type that kernels compute in.
pub trait Float:
    Compute
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
{
}
impl Float for f32 {}
impl Float for f64 {}

/// The sum of `f(0..n)` in sixteen lanes.
#[inline(always)]
pub fn total<T: Float>(n: usize, f: impl Fn(usize) -> T) -> f64 {
    let mut lanes = [T::default(); 16];
    let whole = n / 16 * 16;
    let mut i = 0;
    while i < whole {
        for (j, lane) in lanes.iter_mut().enumerate() {
            *lane += f(i + j);
        }
        i += 16;
    }
    let mut sum = 0.0;
    for j in whole..n {
        sum += f(j).to_f64();
    }
    lanes.iter().fold(sum, |s, l| s + l.to_f64())
}

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub n: usize,
    pub groups: usize,
    pub d: usize,
    pub inner: usize,
}

impl Sizes {
    pub fn row(&self) -> usize {
        self.d * self.inner
    }
    pub fn rows(&self) -> usize {
        self.n * self.groups
    }
    pub fn channels(&self) -> usize {
        self.groups * self.d
    }
}

/// Calls `f` on parts of `0..n`, whose number depends on sizes alone.
fn parts(n: usize, work: usize) -> (usize, usize) {
    let count = (n * work / (1 << 15)).clamp(1, 32).min(n.max(1));
    (count, n.div_ceil(count))
}

/// Normalises each row; `centered` also subtracts the mean.
///
/// # Safety
/// The slices have the sizes that `s` names; empty weight or bias means none.
#[allow(clippy::too_many_arguments)]
pub fn rows<T: Float>(
    s: Sizes,
    eps: f64,
    centered: bool,
    x: &[T],
    weight: Option<&[T]>,
    bias: Option<&[T]>,
    y: &mut [T],
    stats: [&mut [T]; 3],
) {
    let len = s.row();
    let y = Ptr(y.as_mut_ptr());
    let [mean, rstd, var] = stats.map(|v| Ptr(v.as_mut_ptr()));
    parallel_for(s.rows(), (1 << 14) / len.max(1) + 1, |range| {
        for r in range {
            let x = &x[r * len..(r + 1) * len];
            // SAFETY: row `r` belongs to this range alone.
            let y = unsafe { std::slice::from_raw_parts_mut(y.at(r * len), len) };
            // SAFETY: indices stay below the row's length.
            let at = |i: usize| unsafe { *x.get_unchecked(i) };
            let m = if centered {
                total(len, at) / len as f64
            } else {
                0.0
            };
            let mt = T::of_f64(m);
            let v = total(len, |i| (at(i) - mt) * (at(i) - mt)) / len as f64;
            let inverse = 1.0 / (v + eps).sqrt();
            // SAFETY: one element for each row.
            unsafe {
                *mean.at(r) = mt;
                *rstd.at(r) = T::of_f64(inverse);
                *var.at(r) = T::of_f64(v);
            }
            let k = T::of_f64(inverse);
            let first = r % s.groups * s.d;
            if s.inner == 1 {
                let w = weight.map(|w| &w[first..first + s.d]);
                let b = bias.map(|b| &b[first..first + s.d]);
                match (w, b) {
                    (Some(w), Some(b)) => {
                        for (((y, &x), &w), &b) in y.iter_mut().zip(x).zip(w).zip(b) {
                            *y = (x - mt) * k * w + b;
                        }
                    }
                    (Some(w), None) => {
                        for ((y, &x), &w) in y.iter_mut().zip(x).zip(w) {
                            *y = (x - mt) * k * w;
                        }
                    }
                    (None, b) => {
                        for (i, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                            *y = (x - mt) * k + b.map_or(T::default(), |b| b[i]);
                        }
                    }
                }
                continue;
            }
            for d in 0..s.d {
                let k = weight.map_or(k, |w| k * w[first + d]);
                let b = bias.map_or(T::default(), |b| b[first + d]);
                let span = d * s.inner..(d + 1) * s.inner;
                for (y, &x) in y[span.clone()].iter_mut().zip(&x[span]) {
                    *y = (x - mt) * k + b;
                }
            }
        }
    });
}

/// Gradients of [`rows`]: of the input, and of weight and bias where slices are given.
#[allow(clippy::too_many_arguments)]
pub fn rows_backward<T: Float>(
    s: Sizes,
    centered: bool,
    g: &[T],
    x: &[T],
    weight: Option<&[T]>,
    mean: &[T],
    rstd: &[T],
    dx: &mut [T],
    dw: &mut [T],
    db: &mut [T],
) {
    let (len, channels) = (s.row(), s.channels());
    // Whole samples per part, so that each part sees every channel equally.
    let (count, per) = parts(s.n, s.groups * len);
    let wanted = !dw.is_empty() || !db.is_empty();
    let mut partial = vec![T::default(); if wanted { count * channels * 2 } else { 0 }];
    let (dxp, pp) = (Ptr(dx.as_mut_ptr()), Ptr(partial.as_mut_ptr()));
    parallel_for(count, 1, |range| {
        for part in range {
            let sums = if wanted {
                // SAFETY: each part has its own sums.
                unsafe { std::slice::from_raw_parts_mut(pp.at(part * channels * 2), channels * 2) }
            } else {
                &mut []
            };
            for r in part * per * s.groups..((part + 1) * per).min(s.n) * s.groups {
                let (g, x) = (&g[r * len..(r + 1) * len], &x[r * len..(r + 1) * len]);
                // SAFETY: row `r` belongs to this part alone.
                let dx = unsafe { std::slice::from_raw_parts_mut(dxp.at(r * len), len) };
                let (m, k) = (mean[r], rstd[r]);
                let first = r % s.groups * s.d;
                let w = weight.map(|w| &w[first..first + s.d]);
                // `dx` first holds g * weight.
                match w {
                    None => dx.copy_from_slice(g),
                    Some(w) if s.inner == 1 => {
                        for ((o, &g), &w) in dx.iter_mut().zip(g).zip(w) {
                            *o = g * w;
                        }
                    }
                    Some(w) => {
                        for (i, (o, &g)) in dx.iter_mut().zip(g).enumerate() {
                            *o = g * w[i / s.inner];
                        }
                    }
                }
                let gw: &[T] = dx;
                // SAFETY: indices stay below the row's length.
                let (a, b) = unsafe {
                    let one = |i: usize| *gw.get_unchecked(i);
                    let two = |i: usize| *gw.get_unchecked(i) * ((*x.get_unchecked(i) - m) * k);
                    (
                        if centered { total(len, one) } else { 0.0 },
                        total(len, two),
                    )
                };
                let (a, b) = (T::of_f64(a / len as f64), T::of_f64(b / len as f64));
                for (o, &x) in dx.iter_mut().zip(x) {
                    *o = k * (*o - a - (x - m) * k * b);
                }
                if !wanted {
                    continue;
                }
                let (sw, sb) = sums.split_at_mut(channels);
                let (sw, sb) = (&mut sw[first..first + s.d], &mut sb[first..first + s.d]);
                if s.inner == 1 {
                    for (((sw, sb), &g), &x) in sw.iter_mut().zip(sb).zip(g).zip(x) {
                        *sw += g * ((x - m) * k);
                        *sb += g;
                    }
                } else {
                    for d in 0..s.d {
                        let span = d * s.inner..(d + 1) * s.inner;
                        let (g, x) = (&g[span.clone()], &x[span]);
                        // SAFETY: indices stay below the span's length.
                        let (a, b) = unsafe {
                            (
                                total(s.inner, |i| {
                                    *g.get_unchecked(i) * ((*x.get_unchecked(i) - m) * k)
                                }),
                                total(s.inner, |i| *g.get_unchecked(i)),
                            )
                        };
                        sw[d] += T::of_f64(a);
                        sb[d] += T::of_f64(b);
                    }
                }
            }
        }
    });
    for (j, out) in [dw, db].into_iter().enumerate() {
        for (c, out) in out.iter_mut().enumerate() {
            let sum: f64 = (0..count)
                .map(|p| partial[(p * 2 + j) * channels + c].to_f64())
                .sum();
            *out = T::of_f64(sum);
        }
    }
}

/// Sums of `f(element of a column)`, two at a time, for channels `from..to`.
fn column_sums<T: Float>(
    s: Sizes,
    from: usize,
    to: usize,
    out: &mut [[f64; 2]],
    f: impl Fn(usize, usize) -> [T; 2],
) {
    out.fill([0.0; 2]);
    let c = s.channels();
    for n in 0..s.n {
        for (o, ch) in out.iter_mut().zip(from..to) {
            let base = (n * c + ch) * s.inner;
            if s.inner == 1 {
                let [a, b] = f(ch, base);
                o[0] += a.to_f64();
                o[1] += b.to_f64();
            } else {
                o[0] += total(s.inner, |i| f(ch, base + i)[0]);
                o[1] += total(s.inner, |i| f(ch, base + i)[1]);
            }
        }
    }
}

/// Channels that a thread works on together: neighbours where they lie next to each other.
fn channel_block(s: Sizes) -> usize {
    if s.inner >= 16 {
        1
    } else {
        64
    }
}

/// Mean and variance of each column.
pub fn column_stats<T: Float>(s: Sizes, x: &[T], mean: &mut [T], var: &mut [T]) {
    let (c, block) = (s.channels(), channel_block(s));
    let count = (s.n * s.inner) as f64;
    let (mean, var) = (Ptr(mean.as_mut_ptr()), Ptr(var.as_mut_ptr()));
    let grain = (1 << 14) / (s.n * s.inner * block).max(1) + 1;
    parallel_for(c.div_ceil(block), grain, |range| {
        let mut sums = vec![[0.0f64; 2]; block];
        let mut means = vec![T::default(); block];
        for b in range {
            let (from, to) = (b * block, ((b + 1) * block).min(c));
            let sums = &mut sums[..to - from];
            // SAFETY: `column_sums` asks for elements of `x` only.
            let at = |i: usize| unsafe { *x.get_unchecked(i) };
            column_sums(s, from, to, sums, |_, i| [at(i), T::default()]);
            for (m, v) in means.iter_mut().zip(sums.iter()) {
                *m = T::of_f64(v[0] / count);
            }
            column_sums(s, from, to, sums, |ch, i| {
                let v = at(i) - means[ch - from];
                [v * v, T::default()]
            });
            for ch in from..to {
                // SAFETY: one element for each channel, which belongs to this range alone.
                unsafe {
                    *mean.at(ch) = means[ch - from];
                    *var.at(ch) = T::of_f64(sums[ch - from][0] / count);
                }
            }
        }
    });
}

/// `y = (x - mean) * scale + shift`, one of each per column.
pub fn columns<T: Float>(s: Sizes, x: &[T], mean: &[T], scale: &[T], shift: &[T], y: &mut [T]) {
    let c = s.channels();
    let y = Ptr(y.as_mut_ptr());
    if s.inner == 1 {
        parallel_for(s.n, (1 << 14) / c.max(1) + 1, |range| {
            for n in range {
                // SAFETY: sample `n` belongs to this range alone.
                let y = unsafe { std::slice::from_raw_parts_mut(y.at(n * c), c) };
                let x = &x[n * c..(n + 1) * c];
                for i in 0..c {
                    y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
                }
            }
        });
        return;
    }
    parallel_for(s.n * c, (1 << 14) / s.inner.max(1) + 1, |range| {
        for p in range {
            let ch = p % c;
            // SAFETY: plane `p` belongs to this range alone.
            let y = unsafe { std::slice::from_raw_parts_mut(y.at(p * s.inner), s.inner) };
            let (m, k, b) = (mean[ch], scale[ch], shift[ch]);
            for (y, &x) in y.iter_mut().zip(&x[p * s.inner..(p + 1) * s.inner]) {
                *y = (x - m) * k + b;
            }
        }
    });
}

/// Sums of `g` and of `g * (x - mean) * rstd` over each column.
pub fn column_grads<T: Float>(
    s: Sizes,
    g: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    dw: &mut [T],
    db: &mut [T],
) {
    let (c, block) = (s.channels(), channel_block(s));
    let (dw, db) = (Ptr(dw.as_mut_ptr()), Ptr(db.as_mut_ptr()));
    let grain = (1 << 14) / (s.n * s.inner * block).max(1) + 1;
    parallel_for(c.div_ceil(block), grain, |range| {
        let mut sums = vec![[0.0f64; 2]; block];
        for b in range {
            let (from, to) = (b * block, ((b + 1) * block).min(c));
            let sums = &mut sums[..to - from];
            column_sums(s, from, to, sums, |ch, i| {
                // SAFETY: `column_sums` asks for elements of the tensor only.
                let (g, x) = unsafe { (*g.get_unchecked(i), *x.get_unchecked(i)) };
                [g, g * ((x - mean[ch]) * rstd[ch])]
            });
            for ch in from..to {
                // SAFETY: one element for each channel, which belongs to this range alone.
                unsafe {
                    *db.at(ch) = T::of_f64(sums[ch - from][0]);
                    *dw.at(ch) = T::of_f64(sums[ch - from][1]);
                }
            }
        }
    });
}

/// The gradient of the input for training: `k (g - a - (x - mean) rstd b)` with means `a`, `b`.
#[allow(clippy::too_many_arguments)]
pub fn column_input<T: Float>(
    s: Sizes,
    g: &[T],
    x: &[T],
    mean: &[T],
    rstd: &[T],
    weight: Option<&[T]>,
    sums: Option<(&[T], &[T])>,
    dx: &mut [T],
) {
    let (c, count) = (s.channels(), T::of_f64((s.n * s.inner) as f64));
    let dx = Ptr(dx.as_mut_ptr());
    parallel_for(s.n * c, (1 << 14) / s.inner.max(1) + 1, |range| {
        for p in range {
            let ch = p % c;
            let span = p * s.inner..(p + 1) * s.inner;
            // SAFETY: plane `p` belongs to this range alone.
            let dx = unsafe { std::slice::from_raw_parts_mut(dx.at(span.start), s.inner) };
            let k = weight.map_or(rstd[ch], |w| w[ch] * rstd[ch]);
            match sums {
                None => {
                    for (o, &g) in dx.iter_mut().zip(&g[span]) {
                        *o = g * k;
                    }
                }
                Some((dw, db)) => {
                    let (a, b, m) = (db[ch] / count, dw[ch] / count * rstd[ch], mean[ch]);
                    for ((o, &g), &x) in dx.iter_mut().zip(&g[span.clone()]).zip(&x[span]) {
                        *o = k * (g - a - (x - m) * b);
                    }
                }
            }
        }
    });
}

//! Max pooling of long lines: windows along the last dimension alone, in runs of outputs that stay in the
//! first cache, which threads share out.

use super::{wins, Forward, Indices};
use crate::alloc;
use crate::cpu::number::Number;
use crate::cpu::pool::parallel_for;
use crate::per_isa;
use std::ops::Range;

/// Outputs of a run, and the fewest of a line that runs are worth.
const RUN: usize = 2048;
pub const LONG: usize = 2 * RUN;
/// Outputs that are computed together.
const LANES: usize = 16;

/// Runs of all lines.
///
/// # Safety
/// As for [`Forward::run`]; windows have one row, and elements are of type T.
pub unsafe fn run<T: Number>(job: &Forward) {
    let n = job.of.output[2];
    let lines = job.planes * job.of.output[0] * job.of.output[1];
    let runs = n.div_ceil(RUN);
    let work = RUN * job.of.kernel[2].min(16);
    parallel_for(lines * runs, (1 << 14) / work + 1, |range| {
        // SAFETY: the fields are the tensors' sizes; runs are disjoint.
        unsafe { some_runs::<T>(job, range, runs) }
    });
}

/// Elements of a run from which on [`largest`] is quicker than one comparison after another.
pub const MANY: usize = 64;

per_isa! {
    /// Where the first largest element is, or the last NaN.
    pub fn largest[T: Number](x: &[T]) -> usize {
        let mut tops = [T::LEAST; LANES];
        let mut each = x.chunks_exact(LANES);
        for x in &mut each {
            for l in 0..LANES {
                tops[l] = best(tops[l], x[l]);
            }
        }
        let top = tops.iter().chain(each.remainder());
        let top = top.fold(T::LEAST, |top, &v| best(top, v));
        #[allow(clippy::eq_op)]
        let found = match top != top {
            true => x.iter().rposition(|v| v != v),
            false => x.iter().position(|&v| v == top),
        };
        found.unwrap_or(0)
    }
}

/// The best of two elements, the first in order first.
#[inline(always)]
fn best<T: Number>(a: T, b: T) -> T {
    if wins(b, a) {
        b
    } else {
        a
    }
}

per_isa! {
    unsafe fn some_runs[T: Number](job: &Forward, range: Range<usize>, runs: usize) {
        let of = &job.of;
        let (n, k, s, p, l) = (
            of.input[2], of.kernel[2], of.stride[2], of.padding[2], of.dilation[2],
        );
        let ([id, ih, _], [od, oh, ow]) = (of.input, of.output);
        let reach = (k - 1) * l;
        let whole = (RUN - 1) * s + reach + 1;
        // Maxima of two elements, of four and so on are fewer than those of each window.
        let doubled = job.indices == Indices::None && k >= LANES && k / s > 2 * k.ilog2() as usize;
        let mut room = alloc::full(T::LEAST, whole);
        // SAFETY: runs lie inside input and outputs; what they read lies in a line or in `room`.
        unsafe {
            for at in range {
                let (line, first) = (at / runs, at % runs * RUN);
                let count = RUN.min(ow - first);
                let (plane, z, y) = (line / (od * oh), line / oh % od, line % oh);
                let row = (plane * id + z * of.stride[0]) * ih + y * of.stride[1];
                let x = job.x.cast::<T>().add(row * n);
                let to = job.y.cast::<T>().add(line * ow + first);
                // The elements that the run reads, some of which may be padding.
                let (begin, length) = (first * s, (count - 1) * s + reach + 1);
                let inside = begin >= p && begin - p + length <= n;
                let from = match inside && !doubled {
                    true => x.add(begin - p),
                    false => {
                        let low = p.saturating_sub(begin).min(length);
                        let high = (n + p).saturating_sub(begin).clamp(low, length);
                        room[..low].fill(T::LEAST);
                        room[high..length].fill(T::LEAST);
                        let own = std::slice::from_raw_parts(x.add(begin + low - p), high - low);
                        room[low..high].copy_from_slice(own);
                        room.as_ptr()
                    }
                };
                if doubled {
                    let mut width = 1;
                    while 2 * width <= k {
                        combine(&mut room[..length], width * l);
                        width *= 2;
                    }
                    let rest = (k - width) * l;
                    let mut done = 0;
                    if s == 1 {
                        combine(&mut room[..length], rest);
                        std::ptr::copy_nonoverlapping(room.as_ptr(), to, count);
                        done = count;
                    }
                    for o in done..count {
                        *to.add(o) = best(room[o * s], room[o * s + rest]);
                    }
                    continue;
                }
                let codes = match job.indices {
                    Indices::None => std::ptr::null_mut(),
                    _ => job.at.add(line * ow + first),
                };
                let start = |o: usize| if inside { 0 } else { of.inside(2, first + o).0 as i32 };
                let mut done = 0;
                if codes.is_null() {
                    done = match s {
                        1 => tops::<T, 1>(from, (k, l), to, count),
                        2 => tops::<T, 2>(from, (k, l), to, count),
                        3 => tops::<T, 3>(from, (k, l), to, count),
                        4 => tops::<T, 4>(from, (k, l), to, count),
                        _ => 0,
                    };
                }
                let whole = count / LANES * LANES;
                for o in (done..whole).step_by(LANES) {
                    let (from, to) = (from.add(o * s), to.add(o));
                    let codes = if codes.is_null() { codes } else { codes.add(o) };
                    let start = std::array::from_fn(|j| if codes.is_null() { 0 } else { start(o + j) });
                    match s {
                        1 => lanes::<T, 1>(from, (k, l), start, to, codes),
                        2 => lanes::<T, 2>(from, (k, l), start, to, codes),
                        3 => lanes::<T, 3>(from, (k, l), start, to, codes),
                        4 => lanes::<T, 4>(from, (k, l), start, to, codes),
                        _ => (0..LANES).for_each(|j| {
                            one(from.add(j * s), (k, l), start[j], to.add(j), codes, j)
                        }),
                    }
                }
                for o in whole..count {
                    one(from.add(o * s), (k, l), start(o), to.add(o), codes, o);
                }
            }
        }
    }
}

/// Each element becomes the best of itself and the one so far on, up to the last that has one.
#[inline(always)]
fn combine<T: Number>(x: &mut [T], apart: usize) {
    let n = x.len().saturating_sub(apart);
    let to = x.as_mut_ptr();
    let whole = n / LANES * LANES;
    // SAFETY: `apart` elements follow the first `n`; both vectors are read before one is written.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            let a = to.add(i).cast::<[T; LANES]>().read_unaligned();
            let b = to.add(i + apart).cast::<[T; LANES]>().read_unaligned();
            let y: [T; LANES] = std::array::from_fn(|j| best(a[j], b[j]));
            to.add(i).cast::<[T; LANES]>().write_unaligned(y);
        }
        for i in whole..n {
            *to.add(i) = best(*to.add(i), *to.add(i + apart));
        }
    }
}

/// Sixteen elements that lie `S` apart.
// SAFETY: they lie behind `x`.
#[inline(always)]
unsafe fn every<T: Number, const S: usize>(x: *const T) -> [T; LANES] {
    // SAFETY: they lie behind `x`.
    unsafe {
        if S == 1 {
            return x.cast::<[T; LANES]>().read_unaligned();
        }
        let mut v = [T::LEAST; LANES];
        for j in 0..LANES {
            v[j] = *x.add(j * S);
        }
        v
    }
}

/// The largest elements of windows that begin `S` elements apart, [`LANES`] of them at a time; returns how many are
/// done.
// SAFETY: the elements of `count` windows lie behind `x`, and `y` has room for the results.
#[inline(always)]
unsafe fn tops<T: Number, const S: usize>(
    x: *const T,
    (k, l): (usize, usize),
    y: *mut T,
    count: usize,
) -> usize {
    let whole = count / LANES * LANES;
    // SAFETY: the elements of `count` windows lie behind `x`, and `y` has room for the results; Of
    // the last window no more is read than its element.
    unsafe {
        for o in (0..whole).step_by(LANES) {
            let from = x.add(o * S);
            // No element loses to the least value.
            let mut top = every::<T, S>(from);
            for c in 1..k {
                let v = every::<T, S>(from.add(c * l));
                for j in 0..LANES {
                    top[j] = best(top[j], v[j]);
                }
            }
            y.add(o).cast::<[T; LANES]>().write_unaligned(top);
        }
    }
    whole
}

/// Sixteen windows that begin `S` elements apart.
// SAFETY: their elements lie behind `x`; `y`, and `codes` unless it is null, have room for the results.
#[inline(always)]
unsafe fn lanes<T: Number, const S: usize>(
    x: *const T,
    (k, l): (usize, usize),
    start: [i32; LANES],
    y: *mut T,
    codes: *mut u8,
) {
    // SAFETY: their elements lie behind `x`; `y`, and `codes` unless it is null, have room for the
    // results; Of the last window no more is read than its element.
    unsafe {
        let (mut top, mut number) = ([T::LEAST; LANES], start);
        for c in 0..k {
            let from = x.add(c * l);
            let v = every::<T, S>(from);
            if codes.is_null() {
                for j in 0..LANES {
                    top[j] = best(top[j], v[j]);
                }
            } else {
                for j in 0..LANES {
                    let win = wins(v[j], top[j]);
                    top[j] = if win { v[j] } else { top[j] };
                    number[j] = if win { c as i32 } else { number[j] };
                }
            }
        }
        y.cast::<[T; LANES]>().write_unaligned(top);
        if !codes.is_null() {
            let all = number.map(|n| n as u8);
            codes.cast::<[u8; LANES]>().write_unaligned(all);
        }
    }
}

/// One window.
// SAFETY: as for [`lanes`]; the code goes to the place `at`.
#[inline(always)]
unsafe fn one<T: Number>(
    x: *const T,
    (k, l): (usize, usize),
    start: i32,
    y: *mut T,
    codes: *mut u8,
    at: usize,
) {
    // SAFETY: their elements lie behind `x`; `y`, and `codes` unless it is null, have room for the
    // results.
    unsafe {
        let (mut top, mut number) = (T::LEAST, start);
        for c in 0..k {
            let v = *x.add(c * l);
            if wins(v, top) {
                (top, number) = (v, c as i32);
            }
        }
        *y = top;
        if !codes.is_null() {
            *codes.add(at) = number as u8;
        }
    }
}

//! Moving elements between layouts without looking at them: rows where both sides are contiguous,
//! tiles turned in registers where one side is transposed.

use crate::cpu::non_temporal;
use crate::cpu::pool::parallel_for;
use crate::cpu::transpose::{self, Transpose};
use crate::layout::Layout;
use smallvec::SmallVec;

/// A dimension: its size, and the strides of source and destination.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    x: isize,
    y: isize,
}

/// The side of a tile.
const TILE: usize = 32;
/// Elements of a row of a tile that is turned in the cache.
const WIDTH: usize = 64;
/// Bytes of a part of a row.
const PIECE: usize = 1 << 16;
/// Bytes below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 17;

/// Copies elements of `size` bytes from `from` to `to`; `x` is already broadcast to `y`'s shape.
///
/// # Safety
/// Both layouts lie within host memory at the pointers (layout offsets are ignored), and no two
/// elements of `y` share memory.
pub unsafe fn transport(size: usize, from: *const u8, x: &Layout, to: *mut u8, y: &Layout) {
    let mut dims: SmallVec<[Dim; 6]> = (0..y.ndim())
        .filter(|&d| y.shape[d] != 1)
        .map(|d| Dim {
            n: y.shape[d],
            x: x.strides[d],
            y: y.strides[d],
        })
        .collect();
    if dims.iter().any(|d| d.n == 0) {
        return;
    }
    dims.sort_by_key(|d| std::cmp::Reverse(d.y));
    // Merge neighbours that are one run on both sides.
    let mut merged: SmallVec<[Dim; 6]> = SmallVec::new();
    for d in dims {
        match merged.last_mut() {
            Some(o) if o.x == d.x * d.n as isize && o.y == d.y * d.n as isize => {
                *o = Dim {
                    n: o.n * d.n,
                    x: d.x,
                    y: d.y,
                };
            }
            _ => merged.push(d),
        }
    }
    match size {
        1 => go::<u8>(from, to, merged),
        2 => go::<u16>(from, to, merged),
        4 => go::<u32>(from, to, merged),
        8 => go::<u64>(from, to, merged),
        _ => go::<[u64; 2]>(from, to, merged),
    }
}

/// # Safety
/// As [`transport`].
// SAFETY: offsets stay within the layouts, whose sizes bound every index.
unsafe fn go<T: Copy>(from: *const u8, to: *mut u8, mut dims: SmallVec<[Dim; 6]>) {
    let bytes = size_of::<T>() * dims.iter().map(|d| d.n).product::<usize>();
    let inner = dims.pop().unwrap_or(Dim { n: 1, x: 1, y: 1 });
    // The dimension along which the source runs, where that is another one.
    let across = (0..dims.len())
        .filter(|&i| dims[i].x != 0 && dims[i].x.abs() < inner.x.abs())
        .filter(|&i| dims[i].n >= 4 && inner.n >= 4)
        .min_by_key(|&i| dims[i].x.abs());
    let across = across.map(|i| dims.remove(i));
    let streamed = !std::ptr::eq(from, to) && non_temporal::is_large(bytes);
    let mover = Mover {
        turn: transpose::kernel::<T>(),
        inner,
        across,
        streamed,
    };
    // Long rows are split.
    let (n, part) = match across {
        Some(a) => (a.n, TILE),
        None => (inner.n, PIECE / size_of::<T>()),
    };
    let parts = n.div_ceil(part);
    let outer: usize = dims.iter().map(|d| d.n).product();
    let unit = bytes / (outer * parts);
    let (from, to) = (from as usize, to as usize);
    parallel_for(outer * parts, GRAIN / unit.max(1) + 1, |range| {
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
        let mut rest = range.start / parts;
        let (mut x, mut y) = (from as *const T, to as *mut T);
        for (i, d) in dims.iter().enumerate().rev() {
            at[i] = rest % d.n;
            rest /= d.n;
            x = x.offset(at[i] as isize * d.x);
            y = y.offset(at[i] as isize * d.y);
        }
        let mut which = range.start % parts;
        for _ in range {
            let start = which * part;
            mover.part(x, y, start, part.min(n - start));
            which += 1;
            if which < parts {
                continue;
            }
            which = 0;
            for (i, d) in dims.iter().enumerate().rev() {
                at[i] += 1;
                x = x.wrapping_offset(d.x);
                y = y.wrapping_offset(d.y);
                if at[i] < d.n {
                    break;
                }
                at[i] = 0;
                x = x.wrapping_offset(-(d.n as isize) * d.x);
                y = y.wrapping_offset(-(d.n as isize) * d.y);
            }
        }
        if streamed {
            non_temporal::fence();
        }
    });
}

/// The two innermost dimensions.
struct Mover<T> {
    turn: Transpose<T>,
    inner: Dim,
    across: Option<Dim>,
    streamed: bool,
}

impl<T: Copy> Mover<T> {
    /// Moves rows `start..start + n` across where there are such, else that part of the only row.
    // SAFETY: callers pass parts of the layouts that `transport` was given.
    unsafe fn part(&self, x: *const T, y: *mut T, start: usize, n: usize) {
        let (inner, first) = (self.inner, start as isize);
        let Some(across) = self.across else {
            let (x, y) = (x.offset(first * inner.x), y.offset(first * inner.y));
            if self.streamed && (inner.x, inner.y) == (1, 1) {
                return non_temporal::copy(x.cast(), y.cast(), n * size_of::<T>());
            }
            return row(x, y, Dim { n, ..inner });
        };
        let (x, y) = (x.offset(first * across.x), y.offset(first * across.y));
        if (across.x, inner.y) != (1, 1) {
            return tile(x, y, Dim { n, ..across }, inner);
        }
        if !self.streamed {
            return (self.turn)(x, inner.x, y, across.y, inner.n, n);
        }
        // Turned in the cache, and streamed from there in whole lines.
        let mut memory = [std::mem::MaybeUninit::<T>::uninit(); TILE * WIDTH];
        let buffer = memory.as_mut_ptr().cast::<T>();
        let mut i = 0;
        while i < inner.n {
            let rows = WIDTH.min(inner.n - i);
            debug_assert!(n <= TILE && rows <= WIDTH);
            let x = x.offset(i as isize * inner.x);
            (self.turn)(x, inner.x, buffer, WIDTH as isize, rows, n);
            for j in 0..n {
                let y = y.offset(j as isize * across.y).add(i);
                non_temporal::copy(
                    buffer.add(j * WIDTH).cast(),
                    y.cast(),
                    rows * size_of::<T>(),
                );
            }
            i += rows;
        }
    }
}

/// A few rows of one inner dimension.
// SAFETY: callers pass parts of the layouts that `transport` was given.
unsafe fn tile<T: Copy>(x: *const T, y: *mut T, rows: Dim, inner: Dim) {
    let mut start = 0;
    while start < inner.n {
        let n = TILE.min(inner.n - start);
        let part = Dim { n, ..inner };
        let (x, y) = (
            x.offset(start as isize * inner.x),
            y.offset(start as isize * inner.y),
        );
        for r in 0..rows.n as isize {
            row(x.offset(r * rows.x), y.offset(r * rows.y), part);
        }
        start += n;
    }
}

// SAFETY: as `tile`.
#[inline(always)]
unsafe fn row<T: Copy>(x: *const T, y: *mut T, d: Dim) {
    match (d.x, d.y) {
        (1, 1) => std::ptr::copy(x, y, d.n),
        (0, 1) => std::slice::from_raw_parts_mut(y, d.n).fill(*x),
        (-1, 1) => {
            for i in 0..d.n as isize {
                *y.offset(i) = *x.offset(-i);
            }
        }
        (s, 1) => {
            for i in 0..d.n as isize {
                *y.offset(i) = *x.offset(i * s);
            }
        }
        (s, t) => {
            for i in 0..d.n as isize {
                *y.offset(i * t) = *x.offset(i * s);
            }
        }
    }
}

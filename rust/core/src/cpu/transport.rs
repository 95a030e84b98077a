//! Moving elements between layouts without looking at them: rows where both sides are contiguous,
//! tiles where one side is transposed.

use super::pool::parallel_for;
use crate::layout::Layout;
use smallvec::SmallVec;

/// A dimension: its size, and the strides of source and destination.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    x: isize,
    y: isize,
}

/// The side of a tile: 32 rows of 32 elements of 8 bytes from either side fit in L1.
const TILE: usize = 32;
/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 15;

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
    let inner = dims.pop().unwrap_or(Dim { n: 1, x: 1, y: 1 });
    // The dimension along which the source runs, where that is another one.
    let across = (0..dims.len())
        .filter(|&i| dims[i].x != 0 && dims[i].x < inner.x && dims[i].n >= 4 && inner.n >= 4)
        .min_by_key(|&i| dims[i].x);
    let across = across
        .map(|i| dims.remove(i))
        .unwrap_or(Dim { n: 1, x: 0, y: 0 });
    let strips = across.n.div_ceil(TILE);
    let outer: usize = dims.iter().map(|d| d.n).product();
    let unit = inner.n * across.n.min(TILE);
    let (from, to) = (from as usize, to as usize);
    // One long row is split instead.
    if outer * strips == 1 && inner.x == 1 && inner.y == 1 {
        parallel_for(inner.n * across.n, GRAIN * 8, |r| {
            let (x, y) = ((from as *const T).add(r.start), (to as *mut T).add(r.start));
            std::ptr::copy(x, y, r.len());
        });
        return;
    }
    parallel_for(outer * strips, GRAIN / unit.max(1) + 1, |range| {
        let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
        let mut rest = range.start / strips;
        let (mut x, mut y) = (from as *const T, to as *mut T);
        for (i, d) in dims.iter().enumerate().rev() {
            at[i] = rest % d.n;
            rest /= d.n;
            x = x.offset(at[i] as isize * d.x);
            y = y.offset(at[i] as isize * d.y);
        }
        let mut strip = range.start % strips;
        for _ in range {
            let start = strip * TILE;
            let rows = TILE.min(across.n - start);
            tile(
                x.offset(start as isize * across.x),
                y.offset(start as isize * across.y),
                Dim { n: rows, ..across },
                inner,
            );
            strip += 1;
            if strip < strips {
                continue;
            }
            strip = 0;
            for (i, d) in dims.iter().enumerate().rev() {
                at[i] += 1;
                x = x.offset(d.x);
                y = y.offset(d.y);
                if at[i] < d.n {
                    break;
                }
                at[i] = 0;
                x = x.offset(-(d.n as isize) * d.x);
                y = y.offset(-(d.n as isize) * d.y);
            }
        }
    });
}

/// A few rows of one inner dimension.
// SAFETY: callers pass parts of the layouts that `transport` was given.
unsafe fn tile<T: Copy>(x: *const T, y: *mut T, rows: Dim, inner: Dim) {
    if rows.n == 1 {
        return row(x, y, inner);
    }
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

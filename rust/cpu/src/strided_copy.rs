//! Moving elements between layouts without looking at them: rows in blocks, and tiles transposed in
//! registers where one side is transposed.

pub mod rows;
#[cfg(test)]
mod tests;

use crate::layout::Layout;
use crate::non_temporal;
use crate::pool::{parallel_for, Ptr};
use crate::shape::{coalesce, Walk};
use crate::transpose::{self, Transpose};
use rows::Rows;
use smallvec::SmallVec;

/// A dimension with the steps of source and destination.
type Dim = Walk<2>;

/// The side of a tile.
const TILE: usize = 32;
/// Elements of a row of a tile that is transposed in the cache.
const WIDTH: usize = 64;
/// Bytes of a part of a row.
const PIECE: usize = 1 << 16;
/// Bytes of a row below which nothing is gained by storing it past the caches.
const LEAST: usize = 512;
/// Bytes below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 17;

/// Copies elements of `size` bytes from `from` to `to`; `x` is already broadcast to `y`'s shape.
///
/// # Safety
/// Both layouts lie within host memory at the pointers (layout offsets are ignored), and no two
/// elements of `y` share memory.
pub unsafe fn strided_copy(size: usize, from: *const u8, x: &Layout, to: *mut u8, y: &Layout) {
    let mut dims: SmallVec<[Dim; 5]> = (0..y.ndim())
        .filter(|&d| y.shape[d] != 1)
        .map(|d| Dim {
            n: y.shape[d],
            step: [x.strides[d], y.strides[d]],
        })
        .collect();
    if dims.iter().any(|d| d.n == 0) {
        return;
    }
    dims.sort_by_key(|d| std::cmp::Reverse(d.step[1]));
    let dims = coalesce(dims);
    // SAFETY: the dimensions are those of both layouts, and elements have `size` bytes.
    unsafe {
        match size {
            1 => go::<u8>(from, to, dims),
            2 => go::<u16>(from, to, dims),
            4 => go::<u32>(from, to, dims),
            8 => go::<u64>(from, to, dims),
            _ => go::<[u64; 2]>(from, to, dims),
        }
    }
}

unsafe fn go<T: Copy>(from: *const u8, to: *mut u8, mut dims: SmallVec<[Dim; 5]>) {
    // SAFETY: dimensions bound every index, so that offsets stay within both layouts; parts of `y`
    // are disjoint.
    unsafe {
        let bytes = size_of::<T>() * dims.iter().map(|d| d.n).product::<usize>();
        let inner = dims.pop().unwrap_or(Dim { n: 1, step: [1; 2] });
        // The dimension along which the source runs, where that is another one and blocks that are
        // transposed fit in.
        let side = if size_of::<T>() < 8 { 8 } else { 4 };
        let across = (0..dims.len())
            .filter(|&i| dims[i].step[0] != 0 && dims[i].step[0].abs() < inner.step[0].abs())
            .filter(|&i| dims[i].n >= side && inner.n >= side)
            .min_by_key(|&i| dims[i].step[0].abs());
        let across = across.map(|i| dims.remove(i));
        let row = inner.n * size_of::<T>();
        // Long rows are split, short ones go in blocks.
        let ((n, part), way) = match across {
            Some(a) => ((a.n, TILE), Way::Across(a, transpose::kernel::<T>())),
            None if row >= PIECE => ((inner.n, PIECE / size_of::<T>()), Way::Row),
            None => {
                let rows = dims.pop().unwrap_or(Dim { n: 1, step: [0; 2] });
                ((rows.n, (PIECE / row).max(1)), Way::Rows(rows))
            }
        };
        let non_temporal = !std::ptr::eq(from, to) && non_temporal::is_large(bytes);
        let mover = Mover {
            inner,
            way,
            rows: rows::kernel::<T>(),
            non_temporal,
        };
        let parts = n.div_ceil(part);
        let outer: usize = dims.iter().map(|d| d.n).product();
        let unit = bytes / (outer * parts);
        let (from, to) = (Ptr::read(from), Ptr::new(to));
        parallel_for(outer * parts, GRAIN / unit.max(1) + 1, |range| {
            let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
            let mut rest = range.start / parts;
            let (mut x, mut y) = (from.get().cast::<T>().cast_const(), to.get().cast::<T>());
            for (i, d) in dims.iter().enumerate().rev() {
                at[i] = rest % d.n;
                rest /= d.n;
                x = x.offset(at[i] as isize * d.step[0]);
                y = y.offset(at[i] as isize * d.step[1]);
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
                    x = x.wrapping_offset(d.step[0]);
                    y = y.wrapping_offset(d.step[1]);
                    if at[i] < d.n {
                        break;
                    }
                    at[i] = 0;
                    x = x.wrapping_offset(-(d.n as isize) * d.step[0]);
                    y = y.wrapping_offset(-(d.n as isize) * d.step[1]);
                }
            }
            if non_temporal {
                non_temporal::fence();
            }
        });
    }
}

/// What a block is made of beside the innermost dimension.
enum Way<T> {
    /// Parts of the only row.
    Row,
    /// Rows in the order of the destination.
    Rows(Dim),
    /// Rows along which the source runs.
    Across(Dim, Transpose<T>),
}

/// The two innermost dimensions.
struct Mover<T> {
    inner: Dim,
    way: Way<T>,
    rows: Rows<T>,
    non_temporal: bool,
}

impl<T: Copy> Mover<T> {
    /// Moves rows `start..start + n`, or that part of the only row.
    unsafe fn part(&self, x: *const T, y: *mut T, start: usize, n: usize) {
        // SAFETY: the rows lie within both layouts; the buffer has room for WIDTH of each of at
        // most TILE rows.
        unsafe {
            let at = |d: Dim| {
                let start = start as isize;
                (x.offset(start * d.step[0]), y.offset(start * d.step[1]))
            };
            let inner = self.inner;
            let (across, transpose) = match self.way {
                Way::Across(across, transpose) => (across, transpose),
                Way::Row => {
                    let (x, y) = at(inner);
                    let one = Dim { n: 1, step: [0; 2] };
                    return self.plain(x, y, one, Dim { n, ..inner });
                }
                Way::Rows(rows) => {
                    let (x, y) = at(rows);
                    return self.plain(x, y, Dim { n, ..rows }, inner);
                }
            };
            let (x, y) = at(across);
            if (across.step[0], inner.step[1]) != (1, 1) {
                return self.tile(x, y, Dim { n, ..across });
            }
            if !self.non_temporal {
                return transpose(x, inner.step[0], y, across.step[1], inner.n, n);
            }
            // Transposed in the cache, and stored from there past the caches in whole lines.
            let mut memory = [std::mem::MaybeUninit::<T>::uninit(); TILE * WIDTH];
            let buffer = memory.as_mut_ptr().cast::<T>();
            let mut i = 0;
            while i < inner.n {
                let rows = WIDTH.min(inner.n - i);
                debug_assert!(n <= TILE && rows <= WIDTH);
                let x = x.offset(i as isize * inner.step[0]);
                transpose(x, inner.step[0], buffer, WIDTH as isize, rows, n);
                for j in 0..n {
                    let y = y.offset(j as isize * across.step[1]).add(i);
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
    /// Rows as they are, past the caches where that is worth it.
    unsafe fn plain(&self, x: *const T, y: *mut T, rows: Dim, inner: Dim) {
        let bytes = inner.n * size_of::<T>();
        // SAFETY: both sides have these rows.
        unsafe {
            if !(self.non_temporal && inner.step == [1, 1] && bytes >= LEAST) {
                return (self.rows)(x, y, rows, inner);
            }
            for r in 0..rows.n as isize {
                let (x, y) = (x.offset(r * rows.step[0]), y.offset(r * rows.step[1]));
                non_temporal::copy(x.cast(), y.cast(), bytes);
            }
        }
    }

    /// A few rows of the inner dimension, in parts that stay in the cache.
    unsafe fn tile(&self, x: *const T, y: *mut T, rows: Dim) {
        let mut start = 0;
        while start < self.inner.n {
            let n = TILE.min(self.inner.n - start);
            let [s, t] = self.inner.step.map(|s| s * start as isize);
            // SAFETY: rows and their parts lie within both layouts.
            unsafe { (self.rows)(x.offset(s), y.offset(t), rows, Dim { n, ..self.inner }) };
            start += n;
        }
    }
}

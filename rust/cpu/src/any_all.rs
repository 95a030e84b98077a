//! `any` and `all` by the bits of elements, ended as soon as the answer is known.

use crate::per_isa;
use crate::pool::{parallel_for, Ptr};
use crate::reduce::{count, inner, offset, split, Extents};
use crate::shape::DimSet;
use crate::strided::Strided;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements looked at before the answer is asked for.
const BLOCK: usize = 2048;
/// Elements of one result that a thread takes.
const PIECE: usize = 1 << 16;
/// Columns per tile.
const TILE: usize = 512;

/// The bits of an element, of which zero has none but the sign.
trait Bits: Copy + Default + Send + Sync + 'static {
    fn is_true(self, float: bool) -> bool;
}
macro_rules! bits {
    ($($t:ty),*) => { $(impl Bits for $t {
        #[inline(always)]
        fn is_true(self, float: bool) -> bool {
            self & (if float { <$t>::MAX >> 1 } else { <$t>::MAX }) != 0
        }
    })* };
}
bits!(u8, u16, u32, u64);

per_isa! {
    /// Whether any of `n` elements is true, or (with `all`) false.
    unsafe fn found[U: Bits](x: *const U, n: usize, float: bool, all: bool) -> bool {
        // SAFETY: `x` has `n` elements, and `i` stays below `end`, which is at most `n`.
        unsafe {
            let mut start = 0;
            while start < n {
                let end = n.min(start + BLOCK);
                let mut hit = 0u8;
                for i in start..end {
                    hit |= ((*x.add(i)).is_true(float) != all) as u8;
                }
                if hit != 0 {
                    return true;
                }
                start = end;
            }
            false
        }
    }
}

per_isa! {
    unsafe fn columns[U: Bits](x: *const U, n: usize, float: bool, all: bool, acc: *mut u8) {
        // SAFETY: `x` and `acc` have `n` elements, and `i` stays below `n`.
        unsafe {
            for i in 0..n {
                *acc.add(i) |= ((*x.add(i)).is_true(float) != all) as u8;
            }
        }
    }
}

/// Whether any (or all) elements along the dimensions in `mask` are true, one byte for each kept
/// index. False where elements do not lie next to each other, or there are none.
pub fn reduce(x: &impl Strided, mask: DimSet, all: bool, out: &mut [u8]) -> bool {
    if x.numel() == 0 || x.dtype().is_complex() {
        return false;
    }
    let (kept, reduced) = split(x, mask);
    let (ptr, float) = (Ptr::new(x.bytes_ptr()), x.dtype().is_float());
    match x.dtype().size() {
        1 => typed::<u8>(ptr, float, all, &kept, &reduced, out),
        2 => typed::<u16>(ptr, float, all, &kept, &reduced, out),
        4 => typed::<u32>(ptr, float, all, &kept, &reduced, out),
        _ => typed::<u64>(ptr, float, all, &kept, &reduced, out),
    }
}

fn typed<U: Bits>(
    ptr: Ptr<u8>,
    float: bool,
    all: bool,
    kept: &Extents,
    reduced: &Extents,
    out: &mut [u8],
) -> bool {
    let size = size_of::<U>() as isize;
    let (length, results) = (count(reduced), out.len());
    let to = Ptr::new(out.as_mut_ptr());
    let (run, step) = inner(reduced, size);
    let near = kept.last().is_some_and(|k| k.step == [size]);
    if step == size && !(near && run < 16) {
        let row = |i: usize, start: usize, end: usize| {
            let mut at = start;
            while at < end {
                let n = (run - at % run).min(end - at);
                // SAFETY: indices lie within the input.
                let hit = unsafe {
                    let from = ptr.get().offset(offset(kept, i) + offset(reduced, at));
                    found(from.cast::<U>(), n, float, all)
                };
                if hit {
                    return true;
                }
                at += n;
            }
            false
        };
        if results < 64 && length > PIECE {
            let pieces = length.div_ceil(PIECE);
            for i in 0..results {
                let hit = AtomicBool::new(false);
                parallel_for(pieces, 1, |range| {
                    for p in range {
                        if hit.load(Ordering::Relaxed) {
                            return;
                        }
                        if row(i, p * PIECE, length.min((p + 1) * PIECE)) {
                            hit.store(true, Ordering::Relaxed);
                        }
                    }
                });
                // SAFETY: result `i` exists.
                unsafe { *to.get().add(i) = (hit.into_inner() != all) as u8 };
            }
            return true;
        }
        parallel_for(results, PIECE / length + 1, |range| {
            for i in range {
                // SAFETY: result `i` belongs to this range.
                unsafe { *to.get().add(i) = (row(i, 0, length) != all) as u8 };
            }
        });
        return true;
    }
    if !near {
        return false;
    }
    let (wide, outer) = (kept[kept.len() - 1].n, &kept[..kept.len() - 1]);
    let tiles = wide.div_ceil(TILE);
    parallel_for(
        count(outer) * tiles,
        PIECE / (TILE.min(wide) * length) + 1,
        |range| {
            for u in range {
                let (o, first) = (u / tiles, u % tiles * TILE);
                let width = TILE.min(wide - first);
                let mut acc = [0u8; TILE];
                // SAFETY: all indices lie within the input; the results of this unit are its own.
                unsafe {
                    let base = ptr.get().offset(offset(outer, o) + first as isize * size);
                    for r in 0..length {
                        let from = base.offset(offset(reduced, r)).cast::<U>();
                        columns(from, width, float, all, acc.as_mut_ptr());
                    }
                    for (j, &hit) in acc[..width].iter().enumerate() {
                        *to.get().add(o * wide + first + j) = ((hit != 0) != all) as u8;
                    }
                }
            }
        },
    );
    true
}

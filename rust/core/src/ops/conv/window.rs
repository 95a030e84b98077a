//! A tile of the source laid out so that each kernel element reads it at one fixed offset: padded,
//! and split by the remainder of the coordinates modulo the stride.

use super::Number;
use crate::alloc;
use std::ptr::NonNull;

/// A block of the caching allocator.
pub(super) struct Scratch<T> {
    block: NonNull<u8>,
    bytes: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T: Number> Scratch<T> {
    /// `n` elements with any content.
    pub fn new(n: usize) -> Self {
        let bytes = (n * size_of::<T>()).max(1);
        let Ok(block) = alloc::alloc(bytes) else {
            let layout = std::alloc::Layout::from_size_align(bytes, alloc::ALIGN);
            std::alloc::handle_alloc_error(layout.expect("a size that was multiplied"))
        };
        Scratch {
            block,
            bytes,
            kind: std::marker::PhantomData,
        }
    }

    pub fn zeros(n: usize) -> Self {
        let made = Self::new(n);
        // SAFETY: the block has this many bytes.
        unsafe { made.block.as_ptr().write_bytes(0, made.bytes) };
        made
    }

    pub fn ptr(&self) -> *mut T {
        self.block.as_ptr().cast()
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: the block came from `alloc` with these bytes.
        unsafe { alloc::free(self.block, self.bytes) };
    }
}

// SAFETY: plain memory that the scratch owns.
unsafe impl<T> Sync for Scratch<T> {}

/// An element of the kernel: `index` in its storage, which part of the split source it reads, and
/// how far from the result's own place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub index: usize,
    pub part: usize,
    pub shift: [usize; 3],
}

/// How tiles of a source become windows. Position `u` of part `r` is source `u * split + r - pad`.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub channels: usize,
    pub size: [usize; 3],
    pub pad: [isize; 3],
    pub split: [usize; 3],
    /// The largest shift of a tap.
    pub reach: [usize; 3],
    /// Results along each dimension that a window serves.
    pub tile: [usize; 3],
}

/// Elements that vectors may read behind the last one that counts.
pub(super) const SLACK: usize = 64;

impl Window {
    /// From one row to the next.
    pub fn pitch(&self) -> usize {
        self.tile[2] + self.reach[2]
    }
    /// From one slice of the first dimension to the next.
    pub fn slice(&self) -> usize {
        (self.tile[1] + self.reach[1]) * self.pitch()
    }
    fn part(&self) -> usize {
        (self.tile[0] + self.reach[0]) * self.slice()
    }
    pub fn channel(&self) -> usize {
        self.split.iter().product::<usize>() * self.part()
    }
    pub fn len(&self) -> usize {
        self.channels * self.channel()
    }

    /// Where each tap of each channel reads, relative to a result's place; in order of channels.
    pub fn offsets(&self, taps: &[Tap]) -> Vec<u32> {
        let mut offsets = Vec::with_capacity(self.channels * taps.len());
        for c in 0..self.channels {
            for t in taps {
                let [z, y, x] = t.shift;
                let at = c * self.channel() + t.part * self.part();
                offsets.push((at + z * self.slice() + y * self.pitch() + x) as u32);
            }
        }
        offsets
    }

    /// Fills the window of the `count` results from `start` on.
    // SAFETY: `x` holds the planes of the channels, `to` has room for `len` elements.
    pub unsafe fn fill<T: Number>(
        &self,
        x: *const T,
        to: *mut T,
        start: [usize; 3],
        count: [usize; 3],
    ) {
        let plane: usize = self.size.iter().product();
        let [sz, sy, sx] = self.split;
        let pitch = self.pitch();
        // Source coordinate of a window's position, if it is inside.
        let inside = |d: usize, at: usize, part: usize| -> Option<usize> {
            let i = ((start[d] + at) * self.split[d] + part) as isize - self.pad[d];
            (i >= 0 && i < self.size[d] as isize).then_some(i as usize)
        };
        let columns = count[2] + self.reach[2];
        for c in 0..self.channels {
            let x = x.add(c * plane);
            for part in 0..sz * sy * sx {
                let (pz, py, px) = (part / (sy * sx), part / sx % sy, part % sx);
                // Columns whose source is inside.
                let first = (start[2] * sx + px) as isize - self.pad[2];
                let lo = ((-first).max(0) as usize).div_ceil(sx).min(columns);
                let hi = (self.size[2] as isize - first).max(0) as usize;
                let hi = hi.div_ceil(sx).clamp(lo, columns);
                let to = to.add(c * self.channel() + part * self.part());
                for z in 0..count[0] + self.reach[0] {
                    let iz = inside(0, z, pz);
                    for y in 0..count[1] + self.reach[1] {
                        let row = to.add(z * self.slice() + y * pitch);
                        let (Some(iz), Some(iy)) = (iz, inside(1, y, py)) else {
                            row.write_bytes(0, columns);
                            continue;
                        };
                        row.write_bytes(0, lo);
                        row.add(hi).write_bytes(0, columns - hi);
                        let at = (iz * self.size[1] + iy) * self.size[2];
                        let from = x.offset(at as isize + first + (lo * sx) as isize);
                        copy_steps(from, sx, row.add(lo), hi - lo);
                    }
                }
            }
        }
    }
}

/// Copies `n` elements that lie `step` apart.
// SAFETY: they may be read, and `n` written.
#[inline(always)]
unsafe fn copy_steps<T: Copy>(from: *const T, step: usize, to: *mut T, n: usize) {
    match step {
        1 => std::ptr::copy_nonoverlapping(from, to, n),
        // A constant step becomes vector code.
        2 => {
            for i in 0..n {
                *to.add(i) = *from.add(2 * i);
            }
        }
        _ => {
            for i in 0..n {
                *to.add(i) = *from.add(step * i);
            }
        }
    }
}

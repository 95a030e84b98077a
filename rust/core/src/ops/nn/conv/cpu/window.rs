//! A tile of the source laid out so that each kernel element reads it at one fixed offset: padded,
//! and split by the remainder of the coordinates modulo the stride.

use super::lanes::{Kernels, Rows};
use crate::alloc;
use crate::cpu::number::Number;

/// An element of the kernel: `index` in its storage, which part of the split source it reads, and
/// how far from the result's own place.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    pub index: usize,
    pub part: usize,
    pub shift: [usize; 3],
}

/// How tiles of a source become windows. Position `u` of part `r` is source `u * split + r - pad`.
#[derive(Clone, Debug)]
pub struct Window {
    pub channels: usize,
    pub size: [usize; 3],
    pub pad: [isize; 3],
    pub split: [usize; 3],
    /// The remainders modulo the split that a tap reads.
    pub parts: Vec<[usize; 3]>,
    /// The largest shift of a tap.
    pub reach: [usize; 3],
    /// Results along each dimension that a window serves.
    pub tile: [usize; 3],
    /// Zeros before a row that serve as those behind the row before it.
    pub shared: usize,
    /// The source is read where it lies.
    pub in_place: bool,
}

/// Results along the last dimension that a tile has at least, where there are so many.
pub const LEAST: usize = 96;
/// Elements of the largest window of one line.
const WIDEST: usize = 1 << 25;
/// Elements that vectors may read behind the last one that counts.
pub const SLACK: usize = 64;
/// Zeros that rows may share, so that what is read and written behind the last one is the slack.
const MOST_SHARED: usize = 16;

impl Window {
    /// Whether a source is the window of `full` results: nothing is padded or split.
    pub fn is_source(&self, full: [usize; 3]) -> bool {
        let inside = |d: usize| full[d] + self.reach[d] <= self.size[d];
        self.pad == [0; 3] && self.split == [1; 3] && (0..3).all(inside)
    }
    /// Has tiles of `wide` results along the last dimension, of which there are `full`.
    pub fn set_wide(&mut self, wide: usize, full: usize) {
        self.tile[2] = wide;
        let end = (wide + self.reach[2]) as isize - self.pad[2] - self.size[2] as isize;
        let zeros = self.pad[2].min(end).max(0) as usize;
        self.shared = match wide == full && self.split[2] == 1 {
            true => zeros.min(self.reach[2]).min(MOST_SHARED),
            false => 0,
        };
    }
    /// From one row to the next.
    pub fn pitch(&self) -> usize {
        if self.in_place {
            return self.size[2];
        }
        self.tile[2] + self.reach[2] - self.shared
    }
    /// From one slice of the first dimension to the next.
    pub fn slice(&self) -> usize {
        if self.in_place {
            return self.size[1] * self.size[2];
        }
        (self.tile[1] + self.reach[1]) * self.pitch()
    }
    fn part(&self) -> usize {
        if self.in_place {
            return self.size[0] * self.slice();
        }
        (self.tile[0] + self.reach[0]) * self.slice()
    }
    pub fn channel(&self) -> usize {
        self.parts.len() * self.part()
    }
    /// Whether windows of even small tiles do not belong into memory: taps lie very far apart.
    pub fn is_too_wide(&self) -> bool {
        let [z, y, x] = self.reach.map(|r| r.saturating_add(LEAST));
        let planes = self.channels.saturating_mul(self.parts.len());
        let lines = planes
            .saturating_mul(z - LEAST + 1)
            .saturating_mul(y - LEAST + 1);
        lines.saturating_mul(x) > WIDEST
    }
    pub fn len(&self) -> usize {
        self.channels * self.channel()
    }

    /// Where each tap of each channel reads, relative to a result's place; in order of channels.
    pub fn offsets(&self, taps: &[Tap]) -> Vec<usize> {
        let mut offsets = alloc::room(self.channels * taps.len());
        for c in 0..self.channels {
            for t in taps {
                let [z, y, x] = t.shift;
                let at = c * self.channel() + t.part * self.part();
                offsets.push(at + z * self.slice() + y * self.pitch() + x);
            }
        }
        offsets
    }

    /// Fills the window of the `count` results from `start` on.
    pub unsafe fn fill<T: Number>(
        &self,
        kernels: &Kernels<T>,
        x: *const T,
        to: *mut T,
        start: [usize; 3],
        count: [usize; 3],
    ) {
        // SAFETY: `x` holds the planes of the channels, of which `lo` to `hi` lie inside; `to` has
        // room for `len` elements and the slack.
        unsafe {
            let plane: usize = self.size.iter().product();
            let [sz, sy, sx] = self.split;
            let pitch = self.pitch();
            // The positions of a part whose source is inside.
            let inside = |d: usize, part: usize| {
                let first = (start[d] * self.split[d] + part) as isize - self.pad[d];
                let n = count[d] + self.reach[d];
                let lo = ((-first).max(0) as usize).div_ceil(self.split[d]).min(n);
                let hi = (self.size[d] as isize - first).max(0) as usize;
                (first, lo, hi.div_ceil(self.split[d]).clamp(lo, n), n)
            };
            for c in 0..self.channels {
                for (part, at) in self.parts.iter().enumerate() {
                    let (z0, zlo, zhi, slices) = inside(0, at[0]);
                    let (y0, ylo, yhi, rows) = inside(1, at[1]);
                    let (x0, lo, hi, columns) = inside(2, at[2]);
                    let to = to.add(c * self.channel() + part * self.part());
                    for z in 0..slices {
                        let to = to.add(z * self.slice());
                        let (ylo, yhi) = if (zlo..zhi).contains(&z) {
                            (ylo, yhi)
                        } else {
                            (rows, rows)
                        };
                        to.write_bytes(0, ylo * pitch);
                        if ylo < yhi {
                            let at = z0 + (z * sz) as isize;
                            let at = at * self.size[1] as isize + y0 + (ylo * sy) as isize;
                            let at = (c * plane) as isize + at * self.size[2] as isize + x0;
                            (kernels.copy_rows)(&Rows {
                                rows: yhi - ylo,
                                columns,
                                lo,
                                hi,
                                from: x.wrapping_offset(at),
                                step: sx,
                                // Of an immense stride there is one row, and no pitch.
                                from_pitch: sy.wrapping_mul(self.size[2]),
                                to: to.add(ylo * pitch),
                                pitch,
                            });
                        }
                        to.add(yhi * pitch).write_bytes(0, (rows - yhi) * pitch);
                    }
                }
            }
        }
    }
}

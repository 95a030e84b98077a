//! A chain at work: its elements in parts, in the order and on the threads that somebody chooses.

use super::super::view::View;
use super::{Chain, Place};
use crate::alloc;
use crate::pool::parallel_for;
use crate::reduce::Blocks;
use smallvec::SmallVec;
use std::ops::Range;

/// A chain at work on tensors.
pub struct Parts<'a> {
    pub(super) chain: &'a Chain,
    /// Addresses of tensors, which threads may share: each says what it reads or writes.
    pub(super) views: Vec<View>,
}
// SAFETY: as for [`super::super::Plan`].
unsafe impl Send for Parts<'_> {}
// SAFETY: threads compute ranges that are disjoint, each from memory that is only read.
unsafe impl Sync for Parts<'_> {}

impl Parts<'_> {
    /// The buffers of a thread, with what is the same in all tiles.
    pub fn begin(&self) -> Worker<'_> {
        let (chain, views) = (self.chain, &self.views[..]);
        let mut room = alloc::room::<u8>(chain.room + 64);
        let start = room.as_mut_ptr();
        let start = start.wrapping_add(start.align_offset(64));
        let fixed = |place: &Place| match *place {
            Place::Memory(k, _) => views[k].ptr,
            Place::Buffer(offset)
            | Place::Cell { offset, .. }
            | Place::Periodic { offset, .. }
            | Place::Constant { offset } => start.wrapping_add(offset),
        };
        let base: SmallVec<[*mut u8; 32]> = chain.places.iter().map(fixed).collect();
        for f in &chain.fixed {
            let view = &views[f.from];
            // SAFETY: buffers have room for a tile, and a period more.
            unsafe {
                if f.period == 0 {
                    (f.load)(view.ptr, 0, chain.tile, base[f.y]);
                    continue;
                }
                let Place::Periodic { size, .. } = chain.places[f.y] else {
                    unreachable!("what repeats has such a place")
                };
                let mut done = 0;
                while done < chain.tile + f.period {
                    let n = f.period.min(chain.tile + f.period - done);
                    view.runs(0, n, |p, step, n, at| {
                        (f.load)(p, step, n, base[f.y].add((done + at) * size))
                    });
                    done += n;
                }
            }
        }
        Worker {
            chain,
            views,
            _room: room,
            at: base.clone(),
            base,
        }
    }

    /// Computes all elements.
    ///
    /// # Safety
    /// Nobody computes any of them.
    pub unsafe fn all(&self) {
        let (tile, count) = (self.chain.tile, self.chain.count);
        parallel_for(count.div_ceil(tile), self.chain.grain / tile + 1, |range| {
            let (start, end) = (range.start * tile, count.min(range.end * tile));
            // SAFETY: nobody else computes any of the elements, and ranges are disjoint.
            unsafe { self.begin().run(start, end - start) };
        });
    }
}

/// A thread's buffers for a chain.
pub struct Worker<'a> {
    chain: &'a Chain,
    views: &'a [View],
    /// What `base` and `at` point into.
    _room: Vec<u8>,
    base: SmallVec<[*mut u8; 32]>,
    at: SmallVec<[*mut u8; 32]>,
}

impl Worker<'_> {
    /// Elements `start..start + n`.
    ///
    /// # Safety
    /// They lie in the chain's tensors, and nobody else computes them.
    pub unsafe fn run(&mut self, start: usize, n: usize) {
        let mut done = 0;
        while done < n {
            let len = self.chain.tile.min(n - done);
            // SAFETY: the elements lie in the chain's tensors, and nobody else computes them.
            unsafe { self.step(start + done, done, len) };
            done += len;
        }
    }

    // SAFETY: as for `Chain::step`.
    #[inline(always)]
    unsafe fn step(&mut self, start: usize, within: usize, n: usize) {
        let (views, base) = (self.views, &self.base[..]);
        // SAFETY: the views are of the chain's tensors, and hold these elements; buffers hold a tile.
        unsafe { (self.chain).step(views, base, &mut self.at, start, within, n) }
    }

    // SAFETY: as for `Chain::run`; nobody else computes these cells.
    pub(super) unsafe fn cells(&mut self, ends: &[Box<dyn Blocks>], range: Range<usize>) {
        let chain = self.chain;
        let lines = chain.row.div_ceil(chain.cell);
        let mut c = range.start;
        while c < range.end {
            let (r, line) = (c / lines, c % lines);
            let start = r * chain.row + line * chain.cell;
            let mut n = chain.cell.min(chain.row - line * chain.cell);
            // Short rows go together.
            let together = match lines {
                1 => (chain.tile / n).clamp(1, range.end - c),
                _ => 1,
            };
            n *= together;
            let mut done = 0;
            while done < n {
                let len = chain.tile.min(n - done);
                // SAFETY: the tile is part of a cell of this thread's.
                unsafe { self.step(start + done, done, len) };
                done += len;
            }
            for ((place, fold), end) in chain.totals.iter().zip(ends) {
                let from = match chain.places[*place] {
                    Place::Memory(_, size) => self.base[*place].wrapping_add(start * size),
                    _ => self.base[*place],
                };
                let each = n / together;
                for i in 0..together {
                    let from = from.wrapping_add(i * each * fold.source.size());
                    // SAFETY: the cell's elements have just been computed; each block is one thread's.
                    unsafe { end.put(c + i, from, each) };
                }
            }
            c += together;
        }
    }
}

//! From a product to kernels: panels, blocks and threads.
//!
//! The depth is cut into blocks that depend on the sizes alone, and each element of C is summed in
//! the same order wherever its tile lies; so results do not depend on the number of threads.

use super::super::pointwise::fusion::Fused;
use super::kernel::{Strided, Tile};
use super::native::{Native, Set, DEPTH};
use super::pack::Panels;
use super::{part, whole_result, Acc, GemmElem, Mat, Pack, Problem};
use crate::alloc::Scratch;
use crate::pool::{look, num_threads, parallel_for, Ptr};
use std::ops::Range;

/// Rows, columns and depth that are packed at a time.
const BLOCK: (usize, usize, usize) = (1280, 1280, 1024);
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 18;
/// Elements whose packing a second thread is worth.
const PACK_GRAIN: usize = 1 << 14;

/// The pieces, of at most `depth`, that `k` is summed in, as [`blocked`] cuts it for vectors.
pub(super) fn pieces(k: usize, depth: usize) -> impl Iterator<Item = Range<usize>> {
    let blocks = k.div_ceil(BLOCK.2);
    (0..blocks).flat_map(move |b| {
        let block = part(k, blocks, b);
        let count = block.len().div_ceil(depth);
        (0..count).map(move |i| {
            let r = part(block.len(), count, i);
            block.start + r.start..block.start + r.end
        })
    })
}

impl<T: GemmElem> Problem<T> {
    /// The tile from row `i` and column `j` on: into C, or into `sums` where C is narrower than
    /// what is summed. Blocks of depth after the first add to what the first wrote.
    #[inline]
    pub(super) fn tile(&self, i: usize, j: usize, width: usize, first: bool) -> Tile<T::Acc> {
        let at = i as isize * self.c.rs + j as isize * self.c.cs;
        let c: *mut T::Acc = self.c.ptr.wrapping_offset(at).cast();
        if first {
            let d = self
                .d
                .ptr
                .wrapping_offset(i as isize * self.d.rs + j as isize * self.d.cs);
            Tile {
                c,
                c_rs: self.c.rs,
                width,
                alpha: self.alpha,
                beta: self.beta,
                d: d.cast(),
                d_rs: self.d.rs,
                d_cs: self.d.cs,
            }
        } else {
            Tile {
                c,
                c_rs: self.c.rs,
                width,
                alpha: self.alpha,
                beta: T::Acc::ONE,
                d: c,
                d_rs: self.c.rs,
                d_cs: 1,
            }
        }
    }
}

/// How the operands of a block are cut and packed.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Rows of the tallest tile, and columns of a panel.
    pub rows: usize,
    pub columns: usize,
    /// Depth that is summed before a tile of C is written.
    pub depth: usize,
    /// What rows, columns and depth are padded to multiples of where they are packed.
    pub units: (usize, usize, usize),
    /// The room of a packed element, in halves of an element.
    pub halves: usize,
}

impl Grid {
    /// The room of so many padded lanes and depths, in elements.
    fn room(&self, lanes: usize, depth: usize) -> usize {
        lanes * depth * self.halves / 2
    }
}

/// What packs operands and multiplies what it packed.
pub(super) trait Way<E>: Sync {
    fn grid(&self) -> Grid;
    /// Packs lanes of A or B, which lie within a tile or panel, and depths within a piece.
    ///
    /// # Safety
    /// The ranges lie inside the operand; `dst` has room for them, padded.
    unsafe fn pack(&self, side: Side, lanes: Range<usize>, depth: Range<usize>, dst: *mut E);
    /// Whether what was packed since the last call may be multiplied this way.
    fn fits(&self, depth: usize) -> bool {
        let _ = depth;
        true
    }
    /// Makes the thread ready for tiles, until `end`.
    ///
    /// # Safety
    /// The machine has the instruction set.
    unsafe fn begin(&self) {}
    /// # Safety
    /// `begin` came before on this thread.
    unsafe fn end(&self) {}
    /// # Safety
    /// `a` and `b` hold `k` groups that were packed this way, the tile lies inside C, and `begin`
    /// came before on this thread.
    unsafe fn tile(&self, rows: usize, k: usize, a: *const E, b: *const E, out: &Tile<E>);
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    A,
    B,
}

/// Panels of vectors.
pub(super) struct Vectors<'a, E: 'static> {
    pub set: &'static Set<E>,
    pub a: &'a dyn Pack<E>,
    pub b: &'a dyn Pack<E>,
}

impl<E: Acc> Way<E> for Vectors<'_, E> {
    fn grid(&self) -> Grid {
        Grid {
            rows: self.set.rows,
            columns: 2 * self.set.lanes,
            depth: self.set.depth,
            units: (1, self.set.lanes, 1),
            halves: 2,
        }
    }
    unsafe fn pack(&self, side: Side, lanes: Range<usize>, depth: Range<usize>, dst: *mut E) {
        // SAFETY: the ranges lie inside the operand, and `dst` has room for the lanes, which the
        // kernels' width bounds.
        unsafe {
            let w = lanes.len();
            match side {
                Side::A => self.a.pack(lanes, depth, w, dst),
                Side::B => {
                    let w = w.next_multiple_of(self.set.lanes);
                    self.b.pack(lanes, depth, w, dst)
                }
            }
        }
    }
    #[inline]
    unsafe fn tile(&self, rows: usize, k: usize, a: *const E, b: *const E, out: &Tile<E>) {
        // SAFETY: `a` and `b` hold `k` packed groups for a tile inside C; the set is one that the
        // machine has.
        unsafe {
            let kernel = self.set.packed[rows - 1][out.width.div_ceil(self.set.lanes) - 1];
            kernel(k, a, b, out);
        }
    }
}

/// Products of packed panels; blocks that do not fit the first way go the other.
///
/// `k` counts packed elements. C's columns are contiguous.
pub(super) unsafe fn blocked<T: GemmElem>(
    way: &dyn Way<T::Acc>,
    other: Option<&dyn Way<T::Acc>>,
    k: usize,
    p: &Problem<T>,
) {
    // SAFETY: the operands have m and n lanes of depth k, and blocks lie inside them; the rooms
    // hold the largest block, padded.
    unsafe {
        let p = &steady(p);
        let (m, n) = (p.m, p.n);
        let (blocks_m, blocks_n, blocks_k) = (
            m.div_ceil(BLOCK.0),
            n.div_ceil(BLOCK.1),
            k.div_ceil(BLOCK.2),
        );
        let room_m = m.div_ceil(blocks_m);
        let room_n = n.div_ceil(blocks_n).next_multiple_of(way.grid().columns);
        let room_k = k.div_ceil(blocks_k);
        let room = |lanes: [usize; 2], way: &dyn Way<T::Acc>| {
            let g = way.grid();
            let depth = room_k.next_multiple_of(g.units.2);
            [
                g.room(lanes[0].next_multiple_of(g.units.0), depth),
                g.room(lanes[1].next_multiple_of(g.units.1), depth),
            ]
        };
        let mut rooms = room([room_m, room_n], way);
        if let Some(other) = other {
            let more = room([room_m, room_n], other);
            rooms = [rooms[0].max(more[0]), rooms[1].max(more[1])];
        }
        let pa = Scratch::<T::Acc>::new(rooms[0]);
        let pb = Scratch::<T::Acc>::new(rooms[1]);
        let wide = Scratch::<T::Acc>::new(if T::NARROW { room_m * room_n } else { 0 });
        let taken = Fused::new(None, p.c.ptr.cast(), whole_result(p));
        for jb in (0..n).step_by(room_n) {
            let nb = room_n.min(n - jb);
            for ib in 0..blocks_m {
                let rows = part(m, blocks_m, ib);
                let mut block = p.block(rows.start, jb, rows.len(), nb);
                for kb in 0..blocks_k {
                    let depth = part(k, blocks_k, kb);
                    let count = depth.len();
                    let mut x = Block {
                        way,
                        grid: way.grid(),
                        depth,
                        rows: rows.clone(),
                        columns: jb..jb + nb,
                        a: Ptr::new(pa.ptr()),
                        b: Ptr::new(pb.ptr()),
                    };
                    x.pack();
                    if !way.fits(count) {
                        if let Some(other) = other {
                            (x.way, x.grid) = (other, other.grid());
                            x.pack();
                        }
                    }
                    let after = (kb + 1 == blocks_k).then_some((&taken, rows.start * n + jb, n));
                    x.multiply(&mut block, kb == 0, after, wide.ptr());
                }
            }
        }
    }
}

/// The part `i` of `n` things in `parts` parts that are cut between units.
fn cut(n: usize, unit: usize, parts: usize, i: usize) -> Range<usize> {
    let r = part(n.div_ceil(unit), parts, i);
    r.start * unit..n.min(r.end * unit)
}

/// A block of rows, columns and depth whose operands are packed together.
struct Block<'a, E: 'static> {
    way: &'a dyn Way<E>,
    grid: Grid,
    depth: Range<usize>,
    rows: Range<usize>,
    columns: Range<usize>,
    a: Ptr<E>,
    b: Ptr<E>,
}

impl<E: Acc> Block<'_, E> {
    /// Pieces of depth.
    fn pieces(&self) -> usize {
        self.depth.len().div_ceil(self.grid.depth)
    }
    fn piece(&self, i: usize) -> Range<usize> {
        cut(self.depth.len(), self.grid.units.2, self.pieces(), i)
    }
    /// The rows of a tile, and the columns of a panel.
    fn tile(&self, i: usize) -> Range<usize> {
        let m = self.rows.len();
        cut(m, self.grid.units.0, m.div_ceil(self.grid.rows), i)
    }
    fn panel(&self, j: usize) -> Range<usize> {
        let from = j * self.grid.columns;
        from..self.columns.len().min(from + self.grid.columns)
    }
    /// Where rows or columns from `lane` on and a piece of depth are packed.
    #[inline]
    unsafe fn at(&self, side: Side, lane: usize, piece: &Range<usize>) -> *mut E {
        // SAFETY: rooms are as large as all padded lanes and depths of a block, and this is a part
        // of them.
        unsafe {
            let (to, n, unit) = match side {
                Side::A => (&self.a, self.rows.len(), self.grid.units.0),
                Side::B => (&self.b, self.columns.len(), self.grid.units.1),
            };
            let (all, long) = (
                n.next_multiple_of(unit),
                piece.len().next_multiple_of(self.grid.units.2),
            );
            to.at(self.grid.room(all, piece.start) + self.grid.room(lane, long))
        }
    }

    unsafe fn pack(&self) {
        // SAFETY: pieces and lanes lie inside the block; each has a place of its own in the room.
        unsafe {
            let (m, n) = (self.rows.len(), self.columns.len());
            let (pieces, tiles) = (self.pieces(), m.div_ceil(self.grid.rows));
            let panels = n.div_ceil(self.grid.columns);
            let each = (m + n) * self.depth.len() / (pieces * (tiles + panels));
            parallel_for(
                pieces * (tiles + panels),
                PACK_GRAIN.div_ceil(each.max(1)),
                |r| {
                    for i in r {
                        let (piece, i) = (self.piece(i / (tiles + panels)), i % (tiles + panels));
                        let (side, lanes, first) = if i < tiles {
                            (Side::A, self.tile(i), self.rows.start)
                        } else {
                            (Side::B, self.panel(i - tiles), self.columns.start)
                        };
                        let to = self.at(side, lanes.start, &piece);
                        let depth = self.depth.start + piece.start..self.depth.start + piece.end;
                        let lanes = first + lanes.start..first + lanes.end;
                        self.way.pack(side, lanes, depth, to);
                    }
                },
            );
        }
    }

    /// The last block of depth comes with what follows, where C's block begins and how long its rows are.
    unsafe fn multiply<T: GemmElem<Acc = E>>(
        &self,
        p: &mut Problem<T>,
        first: bool,
        last: Option<(&Fused, usize, usize)>,
        wide: *mut E,
    ) {
        // SAFETY: tiles lie inside this block of C, whose operands are packed, and tasks have tiles
        // of their own; `wide` has room for all sums.
        unsafe {
            let (m, n) = (p.m, p.n);
            let (tiles, panels) = (m.div_ceil(self.grid.rows), n.div_ceil(self.grid.columns));
            // Blocks of C that stay in the second cache, and enough of them for all threads.
            let (mut down, mut across) = (tiles.div_ceil(9), panels.div_ceil(8));
            let work = m * n * self.depth.len();
            let most = (work / GRAIN).clamp(1, 4 * num_threads());
            while down * across < most && (down < tiles || across < panels) {
                if tiles * across >= panels * down && down < tiles {
                    down += 1;
                } else {
                    across += 1;
                }
            }
            let wide = Ptr::new(wide);
            let grain = GRAIN.div_ceil((work / (down * across)).max(1));
            let p = &*p;
            parallel_for(down * across, grain, |r| {
                self.way.begin();
                let mut after = last.map(|(taken, at, step)| (taken.begin(), at, step));
                for task in r {
                    look();
                    let (ti, tj) = (
                        part(tiles, down, task % down),
                        part(panels, across, task / down),
                    );
                    for q in 0..self.pieces() {
                        let piece = self.piece(q);
                        for j in tj.clone() {
                            let columns = self.panel(j);
                            let (from, w) = (columns.start, columns.len());
                            let b = self.at(Side::B, from, &piece);
                            for i in ti.clone() {
                                let r = self.tile(i);
                                let a = self.at(Side::A, r.start, &piece);
                                let first = first && q == 0;
                                let tile = if T::NARROW {
                                    sums(wide.at(r.start * n + from), n, w, first)
                                } else {
                                    p.tile(r.start, from, w, first)
                                };
                                self.way.tile(r.len(), piece.len(), a, b, &tile);
                            }
                        }
                    }
                    if let Some((workers, at, step)) = &mut after {
                        let i = self.tile(ti.start).start..self.tile(ti.end - 1).end;
                        let j = self.panel(tj.start).start..self.panel(tj.end - 1).end;
                        if T::NARROW {
                            let part = p.block(i.start, j.start, i.len(), j.len());
                            super::plain::narrow(&part, wide.at(i.start * n + j.start), n);
                        }
                        let at = *at + i.start * *step + j.start;
                        workers.epilogue_rows(at, i.len(), j.len(), *step);
                    }
                }
                self.way.end();
            });
        }
    }
}

/// A tile of plain sums.
pub(super) fn sums<E: Acc>(c: *mut E, columns: usize, width: usize, first: bool) -> Tile<E> {
    Tile {
        c,
        c_rs: columns as isize,
        width,
        alpha: E::ONE,
        beta: if first { E::ZERO } else { E::ONE },
        d: c,
        d_rs: columns as isize,
        d_cs: 1,
    }
}

/// Products of operands where they lie; columns of B that are not contiguous are packed by the
/// task that needs them.
pub(super) unsafe fn direct<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: tasks have tiles of C of their own; the room holds `depth` rows of `reach`, and no
    // tile is wider.
    unsafe {
        debug_assert!(!T::NARROW);
        let (m, n, k) = (p.m, p.n, p.k);
        let lanes = x.set.lanes;
        let packs = p.b.cs != 1 && n > 1;
        let reach = if packs { 2 * lanes } else { x.set.reach(m) };
        // Tasks share columns by whole vectors where they pack, and rows where they do not.
        let taken = Fused::new(None, p.c.ptr.cast(), whole_result(p));
        let vectors = n.div_ceil(lanes);
        let most = (m * n * k / GRAIN).clamp(1, num_threads());
        let across = if packs { most.min(vectors) } else { 1 };
        let down = (most / across).min(m.div_ceil(8));
        let across = if packs {
            across
        } else {
            (most / down).min(vectors)
        };
        let task = |task: usize| {
            let (rows, columns) = (
                part(m, down, task % down),
                part(vectors, across, task / down),
            );
            let end = n.min(columns.end * lanes);
            let depth = DEPTH.min(k);
            let room = Scratch::<T::Acc>::new(if packs { depth * reach } else { 0 });
            let tiles = rows.len().div_ceil(x.set.rows);
            for from in (columns.start * lanes..end).step_by(reach) {
                let w = (end - from).min(reach);
                let pieces = k.div_ceil(DEPTH);
                for q in 0..pieces {
                    let piece = part(k, pieces, q);
                    let (b, b_ds) = if packs {
                        let wide = w.next_multiple_of(lanes);
                        panel(x, p.b.transposed(), k).pack(
                            from..from + w,
                            piece.clone(),
                            wide,
                            room.ptr(),
                        );
                        (room.ptr() as *const T::Acc, wide as isize)
                    } else {
                        (p.b.at(piece.start, from).cast(), p.b.rs)
                    };
                    for i in 0..tiles {
                        let r = part(rows.len(), tiles, i);
                        let top = rows.start + r.start;
                        let a = p.a.at(top, piece.start).cast();
                        let s = Strided {
                            a,
                            a_rs: p.a.rs,
                            a_ds: p.a.cs,
                            b,
                            b_ds,
                        };
                        x.set
                            .tile(r.len(), piece.len(), &s, &p.tile(top, from, w, q == 0));
                    }
                }
            }
            if !taken.is_none() {
                let left = columns.start * lanes;
                let at = rows.start * n + left;
                taken.begin().epilogue_rows(at, rows.len(), end - left, n);
            }
        };
        if down * across == 1 {
            return task(0);
        }
        parallel_for(down * across, 1, |r| {
            r.for_each(|i| {
                look();
                task(i)
            })
        });
    }
}

/// The lanes of a matrix, its rows, as panels.
fn panel<T: GemmElem>(x: &Native<T>, a: Mat<*const T>, k: usize) -> Panels<T> {
    Panels {
        p: a.ptr,
        ls: a.rs,
        ds: a.cs,
        depth: k,
        each: x.each,
        fill: x.fill,
    }
}

/// Calls with panels of vectors of A and B.
pub(super) fn vectors<T: GemmElem>(
    x: &Native<T>,
    p: &Problem<T>,
    f: impl FnOnce(&Vectors<T::Acc>),
) {
    let (a, b) = (panel(x, p.a, p.k), panel(x, p.b.transposed(), p.k));
    f(&Vectors {
        set: x.set,
        a: &a,
        b: &b,
    })
}

/// With a D that kernels read: its columns are contiguous or all the same.
pub(super) unsafe fn steady<T: GemmElem>(p: &Problem<T>) -> Problem<T> {
    if T::NARROW || p.beta == T::Acc::ZERO || p.d.cs == 0 || p.d.cs == 1 {
        *p
    } else {
        // SAFETY: `p` names elements that may be read, or written in C.
        unsafe { super::plain::with_c(p) }
    }
}

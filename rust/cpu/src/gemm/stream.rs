//! Products where the first cache is not large: nothing that is packed is shared, and no thread waits
//! for another between packing and multiplying.
//!
//! A task has some rows and a block of columns of C. It packs its block of B, by whole rows, into
//! its second cache, from where panels stream through the first one past a tile of rows of A. These
//! are read where they lie if their depth is contiguous, else they are turned just before use. A tile
//! asks for its rows of C, and for what the next tile reads, one row at a time between steps of depth,
//! since only ten or so misses can be under way.
//!
//! Depth is cut as in [`blocked`](super::drive::blocked) and summed in the same order, so that the
//! results of both are the same bits.

use super::super::pointwise::fusion::Fused;
use super::drive::{pieces, sums};
#[cfg(target_arch = "x86_64")]
use super::kernel;
use super::kernel::{Ahead, Strided};
use super::native::{Native, Stream};
#[cfg(target_arch = "x86_64")]
use super::native::{DEPTH, PAIRS_DEPTH};
#[cfg(target_arch = "x86_64")]
use super::pack;
use super::pack::From;
use super::{part, whole_result, GemmElem, Problem};
use crate::alloc::Scratch;
use crate::machine::machine;
use crate::pool::{look, num_threads, parallel_for};
use crate::simd::fetch;
#[cfg(target_arch = "x86_64")]
use half::{bf16, f16};

/// Largest first cache for which this is the better way. Beside blocks it takes, for sizes of 64 to 2048, in the mean
/// 0.80 (float32), 0.86 (float64) and 0.90 (bfloat16) of the time on a Zen 5, and 0.68 to 0.88 on Sapphire Rapids,
/// whose first caches have 48 KB.
const SMALL: usize = 48 << 10;
/// Multiplications that a second thread is worth.
const GRAIN: usize = 1 << 18;
/// Rows that are worth packing a block of B again: for another thread, and for tasks that are easier to share.
const FEW: usize = 128;
const ROWS: usize = 512;
/// Tiles of A that are packed side by side where lines of memory run across its rows.
const GROUP: usize = 8;
/// Rows whose addresses differ by about a multiple of this lie in the same sets of the first cache.
const ALIAS: usize = 4096;

#[cfg(target_arch = "x86_64")]
macro_rules! streams {
    ($($name:ident: $T:ty, $flow:ident, $lanes:literal, $each:literal, $depth:ident,
       $turn:ident, $strips:ident, $lay:ident, $panel:ident;)*) => {$(
        pub(super) static $name: Stream<$T> = Stream {
            lanes: $lanes,
            each: $each,
            depth: $depth,
            rows: kernel::$flow::ROWS,
            packed: kernel::$flow::PACKED,
            turn: pack::$turn,
            strips: pack::$strips,
            lay: pack::$lay,
            panel: pack::$panel,
        };
    )*};
}
// Rows are turned eight at a time by AVX2 on either machine: that is a tile's height.
#[cfg(target_arch = "x86_64")]
streams! {
    F32_512: f32, flow_f32x16, 16, 1, DEPTH, turn_f32, strips_f32, lay_f32_512, columns_f32;
    F64_512: f64, flow_f64x8, 8, 1, DEPTH, turn_f64, strips_f64, lay_f64_512, columns_f64;
    F16_512: f16, flow_f32x16, 16, 1, DEPTH, turn_f16, strips_f16, lay_f16_512, columns_f16;
    BF16_512: bf16, flow_f32x16, 16, 1, DEPTH, turn_bf16, strips_bf16, lay_bf16_512, columns_bf16;
    PAIRS: bf16, flow_pairs, 16, 2, PAIRS_DEPTH, turn_pairs, strips_pairs, lay_pairs, columns_pairs;
    F32_256: f32, flow_f32x8, 8, 1, DEPTH, turn_f32, strips_f32, lay_f32_256, columns_f32;
    F64_256: f64, flow_f64x4, 4, 1, DEPTH, turn_f64, strips_f64, lay_f64_256, columns_f64;
    F16_256: f16, flow_f32x8, 8, 1, DEPTH, turn_f16, strips_f16, lay_f16_256, columns_f16;
    BF16_256: bf16, flow_f32x8, 8, 1, DEPTH, turn_bf16, strips_bf16, lay_bf16_256, columns_bf16;
}

/// How a product is cut: tiles of rows and panels of columns, and tasks that have parts of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub tiles: usize,
    pub panels: usize,
    pub down: usize,
    pub across: usize,
    /// The longest piece of depth.
    pub deep: usize,
}

impl Plan {
    pub fn new(
        (m, n, k): (usize, usize, usize),
        (height, wide): (usize, usize),
        size: usize,
        depth: usize,
    ) -> Self {
        let (tiles, panels) = (m.div_ceil(height), n.div_ceil(wide));
        let deep = pieces(k, depth).map(|d| d.len()).max().unwrap_or(1);
        let (room, panel) = (room(m), deep * wide * size);
        let mut across = panels.div_ceil((room / panel).max(1));
        let mut down = 1;
        let threads = (m.saturating_mul(n).saturating_mul(k) / GRAIN).clamp(1, num_threads());
        if threads > 1 && across >= 2 * threads && panels >= 2 * across.next_multiple_of(threads) {
            across = across.next_multiple_of(threads);
        } else if threads > 1 {
            // Between rows: a task reads all of its rows of A for each block of B, and turns them if they do
            // not lie well, which costs more than to pack B again.
            down = threads.min((m / FEW).max(1));
            across = across.max(threads.div_ceil(down)).min(panels);
            // More tasks than threads, where a task still has many rows for its block.
            down = down.max((2 * threads / across).min(m / ROWS)).min(tiles);
            // As many for each thread, where they are few.
            while down * across % threads > 0 && down * across < 4 * threads && across < panels {
                across += 1;
            }
        }
        debug_assert!(panels.div_ceil(across) * panel <= room.max(panel));
        Plan {
            tiles,
            panels,
            down,
            across,
            deep,
        }
    }
}

/// The bytes of a block of B: half of the second cache. On AMD, whose third cache gives panels as fast as they are
/// used, 2.5 times the second: each block less is one pass less over A (Zen 4, two threads, 1024 cubed, in one
/// block and in two: float32, 0.7 of the second cache, 95 and 90 % of the peak; float64, 1.4, 94 and 92; bfloat16
/// of depth 256, 186 and 173; float32 in four times the second cache 90, in four blocks 91). Few rows of A lie in a
/// cache, and use what is packed too rarely for that. Of a Zen 5, whose first cache has 48 KB, half of the second is
/// better by 4 to 6 % for bfloat16 of 1024 rows and by 8 to 15 for fewer, by 7 to 16 for float32 of 128 to 512 rows, and
/// worse by 1 to 5 for more.
pub(super) fn room(rows: usize) -> usize {
    let m = machine();
    if m.is_amd && m.l1 <= 32 << 10 && rows >= FEW {
        m.l2 / 2 * 5
    } else {
        m.l2 / 2
    }
}

/// Multiplies if this is the better way on this machine; returns whether. C's columns are
/// contiguous, and so are D's, or all the same.
pub(super) unsafe fn multiply<T: GemmElem>(x: &Native<T>, p: &Problem<T>) -> bool {
    match &x.stream {
        Some(s) if machine().l1 <= SMALL => {
            // SAFETY: `p` names elements that may be read, or written in C; the kernels are those
            // of this machine.
            unsafe { streamed(s, p) };
            true
        }
        _ => false,
    }
}

/// Packs a block of B: panels one after another.
unsafe fn pack_b<T: GemmElem>(s: &Stream<T>, width: usize, x: &From<T>, to: *mut T::Acc) {
    // SAFETY: lanes and depths of `x` may be read, and `to` has room for all of its vectors.
    unsafe {
        if x.ls == 1 {
            return (s.lay)(x, width, to);
        }
        for l in (0..x.lanes).step_by(width) {
            let lanes = (x.lanes - l).min(width);
            let x = From {
                p: x.p.offset(l as isize * x.ls),
                lanes,
                ..*x
            };
            let d = x.depth.div_ceil(s.each);
            (s.panel)(&x, lanes.next_multiple_of(s.lanes), to.add(l * d));
        }
    }
}

/// # Safety
/// As for [`multiply`].
pub(super) unsafe fn streamed<T: GemmElem>(s: &Stream<T>, p: &Problem<T>) {
    // Depths of packed elements from here on.
    let (m, n, k) = (p.m, p.n, p.k.div_ceil(s.each));
    let size = size_of::<T::Acc>();
    // Tiles of about the same height: a low one takes as long as one with eight chains of sums.
    let height = m.div_ceil(m.div_ceil(s.packed.len()));
    let wide = s.packed[0].len() * s.lanes;
    let plan = Plan::new((m, n, k), (height, wide), size, s.depth);
    let Plan {
        tiles,
        panels,
        down,
        across,
        deep,
    } = plan;
    // Rows in the same sets of the first cache would push each other out.
    let step = p.a.rs.unsigned_abs() * size_of::<T>() % ALIAS;
    let whole = size_of::<T>() * s.each == size
        && p.k.is_multiple_of(s.each)
        && p.a.rs % s.each as isize == 0
        && p.a.ptr.addr().is_multiple_of(size);
    let in_place = whole && p.a.cs == 1 && (64..=ALIAS - 64).contains(&step);
    let group = if p.a.rs == 1 && p.a.cs != 1 { GROUP } else { 1 };
    // A packed tile, and what its last store runs over.
    let tile_room = if in_place {
        0
    } else {
        (height * deep + 16).next_multiple_of(16)
    };
    let columns = panels.div_ceil(across) * wide;
    // SAFETY: used in this call alone.
    let taken = unsafe { Fused::new(None, p.c.ptr.cast(), whole_result(p)) };
    // Sums that are whole after one piece of depth are narrowed tile by tile.
    let at_once = deep == k;
    let room_c = match (T::NARROW, at_once) {
        (true, true) => height * columns,
        (true, false) => tiles.div_ceil(down) * height * columns,
        _ => 0,
    };
    let grain = GRAIN.div_ceil((m.saturating_mul(n).saturating_mul(k) / (down * across)).max(1));
    parallel_for(down * across, grain, |r| {
        let mut workers = taken.begin();
        let room = Scratch::<T::Acc>::new(group * tile_room + room_c + columns * deep);
        // SAFETY: the room has parts for A, sums and B, which are as long as the largest of what
        // is packed; tasks have tiles of C of their own.
        unsafe {
            let pa = room.ptr();
            let wide_sums = pa.add(group * tile_room);
            let pb = wide_sums.add(room_c);
            for task in r {
                let (ti, tj) = (
                    part(tiles, down, task % down),
                    part(panels, across, task / down),
                );
                let (left, right) = (tj.start * wide, n.min(tj.end * wide));
                let w = right - left;
                let (top, bottom) = (ti.start * height, m.min(ti.end * height));
                for depth in pieces(k, s.depth) {
                    look();
                    let (d, first) = (depth.len(), depth.start == 0);
                    let from = depth.start * s.each;
                    let elements = (depth.end * s.each).min(p.k) - from;
                    let x = From {
                        p: p.b.at(from, left),
                        ls: p.b.cs,
                        ds: p.b.rs,
                        lanes: w,
                        depth: elements,
                    };
                    pack_b(s, wide, &x, pb);
                    for low in ti.clone().step_by(group) {
                        let high = ti.end.min(low + group);
                        if !in_place {
                            let i = low * height;
                            let x = From {
                                p: p.a.at(i, from),
                                ls: p.a.rs,
                                ds: p.a.cs,
                                lanes: m - i,
                                depth: elements,
                            };
                            let width = height.min(m - i);
                            if group > 1 {
                                (s.strips)(&x, high - low, width, tile_room, pa);
                            } else {
                                (s.turn)(&x, width, pa);
                            }
                        }
                        for t in low..high {
                            let i = t * height;
                            let rows = height.min(m - i);
                            let (kernels, a) = if in_place {
                                (s.rows[rows - 1], p.a.at(i, from).cast())
                            } else {
                                (
                                    s.packed[rows - 1],
                                    pa.add((t - low) * tile_room).cast_const(),
                                )
                            };
                            let mut tile = if T::NARROW {
                                let row = if at_once { 0 } else { i - top };
                                sums(wide_sums.add(row * columns), columns, wide, first)
                            } else {
                                p.tile(i, left, wide, first)
                            };
                            // Each panel asks for the next lines of the next tile's rows.
                            let next = p.a.ptr.wrapping_offset(
                                (i + height) as isize * p.a.rs + from as isize * p.a.cs,
                            );
                            let lines = if p.a.cs == 1 && t + 1 < ti.end {
                                elements * size_of::<T>()
                            } else {
                                0
                            };
                            let rs = p.a.rs.wrapping_mul(size_of::<T>() as isize);
                            for at in (0..w).step_by(wide) {
                                tile.width = (w - at).min(wide);
                                let used = tile.width.div_ceil(s.lanes);
                                let line = at / wide * 64;
                                let ahead = if line < lines {
                                    Ahead {
                                        at: next.cast::<u8>().wrapping_add(line),
                                        step: rs,
                                    }
                                } else {
                                    Ahead {
                                        at: tile.c.cast(),
                                        step: 0,
                                    }
                                };
                                let x = Strided {
                                    a,
                                    a_rs: p.a.rs / s.each as isize,
                                    a_ds: 1,
                                    b: pb.add(at * d),
                                    b_ds: 0,
                                };
                                if T::NARROW && at_once {
                                    // The lines that narrowed sums go to.
                                    for r in i..i + rows {
                                        fetch(p.c.at(r, left + at));
                                        fetch(p.c.at(r, left + at + tile.width - 1));
                                    }
                                }
                                kernels[used - 1](d, &x, &tile, &ahead);
                                tile.c = tile.c.wrapping_add(wide);
                                tile.d = tile.d.wrapping_offset(wide as isize * tile.d_cs);
                            }
                            if T::NARROW && at_once {
                                let part = p.block(i, left, rows, w);
                                super::plain::narrow(&part, wide_sums, columns);
                            }
                            if depth.end == k && (!T::NARROW || at_once) {
                                workers.epilogue_rows(i * n + left, rows, w, n);
                            }
                        }
                    }
                }
                if T::NARROW && !at_once {
                    let part = p.block(top, left, bottom - top, w);
                    super::plain::narrow(&part, wide_sums, columns);
                    workers.epilogue_rows(top * n + left, bottom - top, w, n);
                }
            }
        }
    });
}

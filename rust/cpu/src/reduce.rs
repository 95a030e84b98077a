//! The loop driver of reductions: rows (the reduced dimensions are innermost in memory), columns
//! (the kept ones are), and anything between. How the work is split depends on the shape alone, so
//! results do not depend on the number of threads.

mod blocks;
mod rows;

use super::convert::{load, store};
use super::elements::Compute;
use super::fold::{Kernels, Lines, Rows, HELD, LANES};
pub use super::fold::{Kind, Reducible};
use super::pool::{parallel_blocks, parallel_for, Ptr};
use crate::alloc;
use crate::dtype::DType;
use crate::per_isa;
use crate::shape::{coalesce, DimSet, Walk};
use crate::strided::Strided;
pub use blocks::{divide, Blocks, Fold};
use rows::{by_groups, row_total, unit_totals, Tree, BLOCK};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// Elements that are widened at a time.
const BUFFER: usize = 1024;
/// Columns per tile.
const TILE: usize = 512;
/// Elements of one result from which on it is made of partial results.
const PIECE: usize = 1 << 16;
/// Rows that are added to one running result before it is added to others.
const RUN: usize = 64;
/// Many rows no longer than this are combined column by column.
const SHORT: usize = 8;
/// Bytes of an input from which on several rows are read at once: less lies in caches that one
/// stream keeps busy.
const STREAMED: usize = 1 << 24;
/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 15;
/// Bytes of an input that are read before the next call may turn: less than a second cache, and of
/// several streams so many that they are long.
const TURN: usize = 1 << 18;
const TURN_STREAMS: usize = 1 << 20;

/// The fewest dimensions, strides in bytes.
pub(super) type Extents = SmallVec<[Walk<1>; 5]>;

/// Where element `i` in row-major order lies.
pub(super) fn offset(dims: &[Walk<1>], mut i: usize) -> isize {
    let Some((first, rest)) = dims.split_first() else {
        return 0;
    };
    let mut at = 0;
    for d in rest.iter().rev() {
        at += (i % d.n) as isize * d.step[0];
        i /= d.n;
    }
    at + i as isize * first.step[0]
}

pub(super) fn count(dims: &[Walk<1>]) -> usize {
    dims.iter().fold(1, |n: usize, d| n.wrapping_mul(d.n))
}

/// The innermost dimension, or one element.
pub(super) fn inner(dims: &[Walk<1>], step: isize) -> (usize, isize) {
    dims.last().map_or((1, step), |d| (d.n, d.step[0]))
}

/// The kept dimensions, and the reduced ones in the order of memory, outermost first.
pub(super) fn split(x: &impl Strided, mask: DimSet) -> (Extents, Extents) {
    let size = x.dtype().size() as isize;
    let dim = |d: usize| Walk {
        n: x.size(d),
        step: [x.stride(d).wrapping_mul(size)],
    };
    let kept = coalesce((0..x.ndim()).filter(|&d| !mask.has(d)).map(dim));
    let mut over: Extents = (0..x.ndim()).filter(|&d| mask.has(d)).map(dim).collect();
    over.sort_by_key(|d| std::cmp::Reverse(d.step));
    (kept, coalesce(over))
}

/// An input split into kept and reduced dimensions.
struct Plan<T> {
    ptr: Ptr<u8>,
    dtype: DType,
    /// Kernels for elements where they lie, if they are next to each other, and for widened ones.
    near: Kernels<T>,
    wide: Kernels<T>,
    kept: Extents,
    /// In the order of memory, outermost first.
    reduced: Extents,
}

impl<T: Reducible> Plan<T> {
    /// The elements so many bytes on.
    // SAFETY: they lie in the tensor.
    #[inline(always)]
    unsafe fn at(&self, bytes: isize) -> *const u8 {
        // SAFETY: the caller's elements lie in the tensor.
        unsafe { self.ptr.get().offset(bytes) }
    }

    fn new(x: &impl Strided, mask: DimSet, kind: Kind) -> Plan<T> {
        let (kept, reduced) = split(x, mask);
        Plan {
            ptr: Ptr::new(x.bytes_ptr()),
            dtype: x.dtype(),
            near: T::kernels(kind, x.dtype()),
            wide: T::kernels(kind, T::DTYPE),
            kept,
            reduced,
        }
    }

    /// Whether to walk along kept columns rather than along reduced rows.
    fn by_columns(&self, results: usize, length: usize) -> bool {
        match (self.kept.last(), self.reduced.last()) {
            (Some(k), Some(r)) => k.step < r.step || (length <= SHORT && results >= 64),
            (Some(_), None) => true,
            _ => false,
        }
    }

    /// Whether the elements of a result follow each other in memory, as the kernels read them.
    fn is_one_run(&self) -> bool {
        let [Walk { step: [step], .. }] = self.reduced[..] else {
            return false;
        };
        self.is_direct(self.near.source, step)
    }

    /// How to read several rows as streams, where that is worth it.
    fn streams(&self, results: usize, length: usize) -> Option<Rows<T>> {
        let large = length >= 256 && results * length >= STREAMED / self.dtype.size();
        self.near.rows.filter(|_| large && self.is_one_run())
    }

    /// How to combine rows one after another, and the bytes between them, where there is a kernel.
    fn lines(&self, length: usize) -> Option<(Lines<T>, isize)> {
        let ([_] | []) = &self.kept[..] else {
            return None;
        };
        let fits = (LANES..=BLOCK).contains(&length) && self.is_one_run();
        let lines = self.near.lines.filter(|_| fits)?;
        Some((lines, inner(&self.kept, 0).1))
    }

    /// Units of so many elements that are worth `bytes`.
    fn units(&self, elements: usize, bytes: usize) -> usize {
        (bytes / elements.saturating_mul(self.dtype.size())).max(1)
    }

    fn is_direct(&self, source: DType, stride: isize) -> bool {
        self.dtype == source && stride == self.dtype.size() as isize
    }
}

/// Reduces the dimensions in `mask` into `out`, which holds one element for each kept index in
/// row-major order. `c` holds as many.
pub fn reduce<T: Reducible>(
    x: &impl Strided,
    mask: DimSet,
    kind: Kind,
    c: Option<&[T]>,
    out: &mut [T],
) {
    let plan = Plan::new(x, mask, kind);
    let length: usize = (0..x.ndim())
        .filter(|&d| mask.has(d))
        .fold(1, |n: usize, d| n.wrapping_mul(x.size(d)));
    if out.is_empty() {
        return;
    }
    if length == 0 {
        out.fill(plan.near.init);
        return;
    }
    if plan.by_columns(out.len(), length) {
        by_columns(&plan, length, c, out);
    } else {
        by_rows(&plan, length, c, out);
    }
}

/// Elements that [`whole`] takes.
pub const WHOLE: usize = BLOCK;

/// One result of `n` elements that follow each other in memory, with the bits that [`reduce`] gives.
///
/// # Safety
/// There are `n` elements at `x`, at least one and at most [`WHOLE`].
pub unsafe fn whole<T: Reducible>(x: *const T, n: usize, kind: Kind) -> T {
    // SAFETY: the kernel reads `n` elements of the type.
    unsafe { (T::kernels(kind, T::DTYPE).row)(x.cast(), n, T::default()) }
}

/// Whether few results are made of partial ones, so that threads share one result.
fn in_pieces(results: usize, length: usize) -> bool {
    results < 256 && length >= 2 * PIECE
}

fn by_rows<T: Reducible>(plan: &Plan<T>, length: usize, c: Option<&[T]>, out: &mut [T]) {
    let results = out.len();
    let k = &plan.wide;
    let to = Ptr::new(out.as_mut_ptr());
    let centre = |i: usize| c.map_or(T::default(), |c| c[i]);
    let pieces = if in_pieces(results, length) {
        length.div_ceil(PIECE)
    } else {
        1
    };
    if let (Some(groups), None) = (plan.grouped(results, length), c) {
        return by_groups(plan, groups, length, out);
    }
    let rows = plan.streams(results, length);
    if let (None, Some((lines, step))) = (&rows, plan.lines(length)) {
        let block = plan.units(length, TURN);
        return parallel_blocks(results, GRAIN / length + 1, block, |range| {
            // SAFETY: these are rows of the input, and their results this thread's; a kernel of lines
            // has no use for `c`.
            unsafe {
                let x = plan.at(range.start as isize * step);
                lines(x, step, length, range.len(), to.get().add(range.start));
            }
        });
    }
    // SAFETY: all uses are for kept indices.
    let result = |i: usize| unsafe { plan.at(offset(&plan.kept, i)) };
    let turn = if rows.is_some() { TURN_STREAMS } else { TURN };
    let block = plan.units(length / pieces, turn);
    if pieces == 1 {
        parallel_blocks(results, GRAIN / length + 1, block, |range| {
            let unit = |i: usize| (result(i), 0, length);
            // SAFETY: units are kept indices; results of the range belong to it.
            unsafe { unit_totals(plan, range, rows, unit, centre, to.get()) }
        });
        return;
    }
    let mut partial = alloc::full(k.init, results * pieces);
    let part = Ptr::new(partial.as_mut_ptr());
    parallel_blocks(results * pieces, 1, block, |range| {
        let unit = |u: usize| {
            let (i, p) = (u / pieces, u % pieces);
            (result(i), p * PIECE, ((p + 1) * PIECE).min(length))
        };
        // SAFETY: units are kept indices and results of the range belong to it; pieces lie within the reduced
        // dimensions.
        unsafe { unit_totals(plan, range, rows, unit, |u| centre(u / pieces), part.get()) }
    });
    for (i, y) in out.iter_mut().enumerate() {
        let mut tree = Tree::new(k.init);
        for &v in &partial[i * pieces..(i + 1) * pieces] {
            // SAFETY: merges two values of this frame.
            unsafe { tree.push(v, k) };
        }
        // SAFETY: merges values of this frame.
        *y = unsafe { tree.total(k) };
    }
}

/// Four running results per column: every [`RUN`] rows the first goes into the second and so on, which
/// bounds the rounding error like a tree's.
struct Cascade<T> {
    levels: [[MaybeUninit<T>; TILE]; 4],
    /// Levels that hold results.
    used: usize,
}

impl<T: Copy> Cascade<T> {
    /// One that [`Cascade::start`] makes ready where it lies: it is large.
    #[inline(always)]
    fn empty() -> Self {
        Cascade {
            levels: [[MaybeUninit::uninit(); TILE]; 4],
            used: 0,
        }
    }
    fn start(&mut self, width: usize, k: &Kernels<T>) {
        self.used = 1;
        self.levels[0][..width].fill(MaybeUninit::new(k.init));
    }
    fn first(&mut self) -> *mut T {
        self.levels[0].as_mut_ptr().cast()
    }
    // SAFETY: `k` holds kernels that the machine can run, and `width` is what `start` was given.
    unsafe fn carry(&mut self, rows: usize, width: usize, k: &Kernels<T>) {
        let mut span = RUN;
        for l in 0..3 {
            if !rows.is_multiple_of(span) {
                break;
            }
            let (low, high) = self.levels.split_at_mut(l + 1);
            if self.used == l + 1 {
                high[0][..width].copy_from_slice(&low[l][..width]);
                self.used += 1;
            } else {
                // SAFETY: two levels in use, of `width` values.
                unsafe { (k.merge)(high[0].as_mut_ptr().cast(), low[l].as_ptr().cast(), width) };
            }
            low[l][..width].fill(MaybeUninit::new(k.init));
            span *= RUN;
        }
    }
    // SAFETY: as for `carry`.
    unsafe fn total(&mut self, width: usize, k: &Kernels<T>) -> &mut [T] {
        for l in 1..self.used {
            let (low, high) = self.levels.split_at_mut(l);
            // SAFETY: two levels in use, of `width` values.
            unsafe { (k.merge)(low[0].as_mut_ptr().cast(), high[0].as_ptr().cast(), width) };
        }
        // SAFETY: `start` filled as many.
        unsafe { std::slice::from_raw_parts_mut(self.first(), width) }
    }
}

/// Combines groups of `width` results into the first.
// SAFETY: `k` holds kernels that the machine can run; there are whole groups.
unsafe fn merge_all<T>(values: &mut [T], width: usize, k: &Kernels<T>) {
    let mut groups = values.len() / width;
    while groups > 1 {
        let half = groups.div_ceil(2);
        let (low, high) = values.split_at_mut(half * width);
        // SAFETY: both halves hold that many results.
        unsafe { (k.merge)(low.as_mut_ptr(), high.as_ptr(), (groups - half) * width) };
        groups = half;
    }
}

fn by_columns<T: Reducible>(plan: &Plan<T>, length: usize, c: Option<&[T]>, out: &mut [T]) {
    let results = out.len();
    let k = &plan.wide;
    let (wide, step) = inner(&plan.kept, plan.dtype.size() as isize);
    let outer = &plan.kept[..plan.kept.len().saturating_sub(1)];
    let (run, run_step) = inner(&plan.reduced, 0);
    // Rows that follow each other in memory are taken together while they are short, but not so many
    // that the most of the work is to combine their results.
    let together = if wide <= TILE / 2 && run_step == wide as isize * step {
        let few = run.div_ceil(8).max(LANES / wide);
        // As many as registers hold, where that is whole rows.
        let most = match HELD / size_of::<T>() {
            held if wide.is_power_of_two() && wide <= held => held,
            _ => TILE,
        };
        (most / wide).min(few).min(run)
    } else {
        1
    };
    let tile = TILE.min(wide);
    let tiles = wide.div_ceil(tile);
    let units = count(outer) * tiles;
    let rows = (PIECE / tile).max(RUN);
    let pieces = if units < 64 && length >= 2 * rows {
        length.div_ceil(rows)
    } else {
        1
    };
    let rows = if pieces == 1 { length } else { rows };
    let mut partial = if pieces == 1 {
        Vec::new()
    } else {
        alloc::full(k.init, results * pieces)
    };
    let to = Ptr::new(if pieces == 1 {
        out.as_mut_ptr()
    } else {
        partial.as_mut_ptr()
    });
    let direct = plan.is_direct(plan.near.source, step)
        || (wide == 1 && plan.dtype == plan.near.source && together == 1);
    let columns = if direct { plan.near.columns } else { k.columns };
    let block = plan.units(tile * rows, TURN);
    let none = [T::default(); TILE];
    parallel_blocks(units * pieces, GRAIN / (tile * rows) + 1, block, |range| {
        let mut buffer = [MaybeUninit::<T>::uninit(); TILE];
        let mut own = [MaybeUninit::<T>::uninit(); TILE];
        let mut acc = Cascade::empty();
        for u in range {
            let (p, u) = (u / units, u % units);
            let (o, t) = (u / tiles, u % tiles);
            let first = t * tile;
            let width = tile.min(wide - first);
            let at = o * wide + first;
            let centres = match c {
                Some(c) => {
                    for (i, centre) in own[..together * width].iter_mut().enumerate() {
                        centre.write(c[at + i % width]);
                    }
                    own.as_ptr().cast()
                }
                None => none.as_ptr(),
            };
            acc.start(together * width, k);
            let (mut r, end) = (p * rows, ((p + 1) * rows).min(length));
            let mut done = 0;
            // SAFETY: all indices lie within the input; the results of this unit are its own.
            unsafe {
                let base = plan.at(offset(outer, o) + first as isize * step);
                while r < end {
                    let follow = (run - r % run).min(end - r);
                    let group = together.min(follow);
                    let from = base.offset(offset(&plan.reduced, r));
                    let n = group * width;
                    let (x, several) = if direct {
                        // Rows of one length up to the next carry.
                        (from, (follow / group).min(RUN - done % RUN))
                    } else {
                        load(plan.dtype, from, step, n, buffer.as_mut_ptr().cast::<T>());
                        (buffer.as_ptr().cast(), 1)
                    };
                    let next = group as isize * run_step;
                    columns(acc.first(), x, centres, n, several, next);
                    r += several * group;
                    done += several;
                    if done % RUN == 0 {
                        acc.carry(done, together * width, k);
                    }
                }
                let total = acc.total(together * width, k);
                merge_all(total, width, k);
                let to = to.get().add(p * results + at);
                std::ptr::copy_nonoverlapping(total.as_ptr(), to, width);
            }
        }
    });
    if pieces > 1 {
        // SAFETY: every piece has as many results.
        unsafe { merge_all(&mut partial, results, k) };
        out.copy_from_slice(&partial[..results]);
    }
}

/// For each result the first index along the reduced dimension (or, if all are reduced, in
/// row-major order of a contiguous `x`) of the element that equals `values`; NaN equals NaN.
pub fn find<T: Reducible>(x: &impl Strided, mask: DimSet, values: &[T], out: &mut [i64]) {
    let plan = Plan::<T>::new(x, mask, Kind::Max);
    let length: usize = (0..x.ndim())
        .filter(|&d| mask.has(d))
        .fold(1, |n: usize, d| n.wrapping_mul(x.size(d)));
    if out.is_empty() || length == 0 {
        return;
    }
    let to = Ptr::new(out.as_mut_ptr());
    let (wide, step) = inner(&plan.kept, 0);
    if !plan.by_columns(values.len(), length) {
        parallel_for(values.len(), GRAIN / length + 1, |range| {
            for i in range {
                // SAFETY: indices lie within the input; result `i` belongs to this range.
                unsafe {
                    let ptr = plan.at(offset(&plan.kept, i));
                    if let Some(at) = find_in_row(&plan, ptr, length, values[i]) {
                        *to.get().add(i) = at as i64;
                    }
                }
            }
        });
        return;
    }
    let outer = &plan.kept[..plan.kept.len().saturating_sub(1)];
    let direct = plan.is_direct(T::DTYPE, step);
    let tile = TILE.min(wide);
    let tiles = wide.div_ceil(tile);
    parallel_for(count(outer) * tiles, GRAIN / (tile * length) + 1, |range| {
        let mut buffer = [T::default(); TILE];
        for u in range {
            let (o, t) = (u / tiles, u % tiles);
            let first = t * tile;
            let width = tile.min(wide - first);
            let at = o * wide + first;
            let mut found = [-1i64; TILE];
            // SAFETY: all indices lie within the input; the results of this unit are its own.
            unsafe {
                let base = plan.at(offset(outer, o) + first as isize * step);
                let v = values.as_ptr().add(at);
                for r in 0..length {
                    let from = base.offset(offset(&plan.reduced, r));
                    let row = if direct {
                        from.cast::<T>()
                    } else {
                        load(plan.dtype, from, step, width, buffer.as_mut_ptr());
                        buffer.as_ptr()
                    };
                    mark(row, v, found.as_mut_ptr(), width, r as i64);
                }
                std::ptr::copy_nonoverlapping(found.as_ptr(), to.get().add(at), width);
            }
        }
    });
}

per_isa! {
    /// Notes row `r` for the columns whose element equals theirs of `v` and that have found none.
    unsafe fn mark[T: Reducible](x: *const T, v: *const T, found: *mut i64, n: usize, r: i64) {
        // SAFETY: `x`, `v` and `found` have `n` elements.
        unsafe {
            for j in 0..n {
                let (a, v, old) = (*x.add(j), *v.add(j), *found.add(j));
                let hit = (a == v) | (a.is_nan() & v.is_nan());
                *found.add(j) = if hit & (old < 0) { r } else { old };
            }
        }
    }
}

/// Elements among which one is looked for at once.
const SOUGHT: usize = 128;

per_isa! {
    /// The first of `n` elements that equals `v`, NaN being equal to NaN; `n` where none does.
    unsafe fn position[T: Reducible](x: *const T, n: usize, v: T) -> usize {
        // SAFETY: `x` has `n` elements.
        unsafe {
            let same = |a: T| (a == v) | (a.is_nan() & v.is_nan());
            let whole = n / SOUGHT * SOUGHT;
            for start in (0..whole).step_by(SOUGHT) {
                let mut hit = false;
                for i in 0..SOUGHT {
                    hit |= same(*x.add(start + i));
                }
                if hit {
                    // Another thread may have changed it meanwhile.
                    let found = (start..start + SOUGHT).find(|&i| same(*x.add(i)));
                    return found.unwrap_or(start);
                }
            }
            (whole..n).find(|&i| same(*x.add(i))).unwrap_or(n)
        }
    }
}

/// The first of the `length` elements reduced at `ptr` that equals `v`.
unsafe fn find_in_row<T: Reducible>(
    plan: &Plan<T>,
    ptr: *const u8,
    length: usize,
    v: T,
) -> Option<usize> {
    // SAFETY: `ptr` is where a result's elements begin, and there are `length`; the buffer has room
    // for BUFFER.
    unsafe {
        let (run, step) = inner(&plan.reduced, 0);
        let direct = plan.is_direct(T::DTYPE, step);
        let mut buffer = [MaybeUninit::<T>::uninit(); BUFFER];
        let mut at = 0;
        while at < length {
            let n = (run - at % run).min(if direct { usize::MAX } else { BUFFER });
            let from = ptr.offset(offset(&plan.reduced, at));
            let x = if direct {
                from.cast::<T>()
            } else {
                load(plan.dtype, from, step, n, buffer.as_mut_ptr().cast::<T>());
                buffer.as_ptr().cast::<T>()
            };
            let found = position(x, n, v);
            if found < n {
                return Some(at + found);
            }
            at += n;
        }
        None
    }
}

/// The largest (or smallest) elements along one dimension, and where the first such are.
pub fn extremes<T: Reducible>(
    x: &impl Strided,
    dim: DimSet,
    kind: Kind,
    values: &mut [T],
    at: &mut [i64],
) {
    let plan = Plan::<T>::new(x, dim, kind);
    let length: usize = (0..x.ndim())
        .filter(|&d| dim.has(d))
        .map(|d| x.size(d))
        .product();
    let results = values.len();
    if length == 0 || plan.by_columns(results, length) || in_pieces(results, length) {
        reduce::<T>(x, dim, kind, None, values);
        return find::<T>(x, dim, values, at);
    }
    let (to, at) = (Ptr::new(values.as_mut_ptr()), Ptr::new(at.as_mut_ptr()));
    parallel_for(results, GRAIN / length + 1, |range| {
        for i in range {
            // SAFETY: index `i` is a kept index; result `i` belongs to this range.
            unsafe {
                let ptr = plan.at(offset(&plan.kept, i));
                let v = row_total(&plan, ptr, 0, length, T::default());
                *to.get().add(i) = v;
                let found = find_in_row(&plan, ptr, length, v);
                *at.get().add(i) = found.unwrap_or(0) as i64;
            }
        }
    });
}

/// Reduces twice: by `first`, whose results become centres by `centre`, and by `second` with these.
/// Rows that fit in cache are read from memory once.
pub fn reduce_from<T: Reducible>(
    x: &impl Strided,
    mask: DimSet,
    (first, second): (Kind, Kind),
    centre: impl Fn(T) -> T + Sync,
    centres: &mut [T],
    out: &mut [T],
) {
    let plan = Plan::<T>::new(x, mask, first);
    let length: usize = (0..x.ndim())
        .filter(|&d| mask.has(d))
        .map(|d| x.size(d))
        .product();
    let results = out.len();
    let cached = length * x.dtype().size() <= 1 << 19 && (results >= 16 || length < PIECE);
    if length == 0 || results == 0 || !cached || plan.by_columns(results, length) {
        reduce::<T>(x, mask, first, None, centres);
        for c in centres.iter_mut() {
            *c = centre(*c);
        }
        return reduce::<T>(x, mask, second, Some(centres), out);
    }
    let again = Plan::<T>::new(x, mask, second);
    let (c, to) = (Ptr::new(centres.as_mut_ptr()), Ptr::new(out.as_mut_ptr()));
    parallel_for(results, GRAIN / length + 1, |range| {
        for i in range {
            // SAFETY: index `i` is a kept index; result `i` belongs to this range.
            unsafe {
                let ptr = plan.at(offset(&plan.kept, i));
                let from = centre(row_total(&plan, ptr, 0, length, T::default()));
                *c.get().add(i) = from;
                *to.get().add(i) = row_total(&again, ptr, 0, length, from);
            }
        }
    });
}

/// Calls `f` with room for the elements of the contiguous tensor `y`, computed in `T`, and stores
/// them in its own type.
pub fn filled<T: Compute>(y: &impl Strided, f: impl FnOnce(&mut [T])) {
    // SAFETY: a fresh contiguous output of this type.
    unsafe { filled_at(y.bytes_ptr(), y.dtype(), y.numel(), f) };
}

/// As [`filled`], of `n` elements of a type.
///
/// # Safety
/// There is room for them at `y`, which nobody else uses.
unsafe fn filled_at<T: Compute>(y: *mut u8, dtype: DType, n: usize, f: impl FnOnce(&mut [T])) {
    if n == 0 {
        return f(&mut []);
    }
    if dtype == T::DTYPE {
        // SAFETY: there is room for them at `y`, which nobody else uses.
        return f(unsafe { std::slice::from_raw_parts_mut(y.cast(), n) });
    }
    let mut values = vec![T::default(); n];
    f(&mut values);
    let (to, size) = (Ptr::new(y), dtype.size());
    let values = &values[..];
    parallel_for(values.len(), GRAIN, |r| {
        // SAFETY: `y` holds as many elements; ranges are disjoint.
        unsafe {
            let (to, from) = (to.at(r.start * size), values[r.start..].as_ptr());
            store(dtype, to, size as isize, r.len(), from);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::strided::Owned;

    fn check(x: &impl Strided, mask: DimSet) {
        let kept: Vec<usize> = (0..x.ndim()).filter(|&d| !mask.has(d)).collect();
        let n: usize = kept.iter().map(|&d| x.size(d)).product();
        let mut want = vec![0.0f64; n];
        let mut top = vec![f64::NEG_INFINITY; n];
        let mut at = vec![0usize; x.ndim()];
        for _ in 0..x.numel() {
            let place: isize = at
                .iter()
                .enumerate()
                .map(|(d, &i)| i as isize * x.stride(d))
                .sum();
            // SAFETY: the place lies within the tensor.
            let v = unsafe { *x.ptr::<f32>().offset(place) } as f64;
            let i = kept.iter().fold(0, |i, &d| i * x.size(d) + at[d]);
            want[i] += v;
            top[i] = top[i].max(v);
            for d in (0..x.ndim()).rev() {
                at[d] += 1;
                if at[d] < x.size(d) {
                    break;
                }
                at[d] = 0;
            }
        }
        let mut got = vec![0f32; n];
        reduce(x, mask, Kind::Sum, None, &mut got);
        for (g, w) in got.iter().zip(&want) {
            assert!(
                (*g as f64 - w).abs() <= 1e-5 * (1.0 + w.abs()),
                "{:?} {mask:?} {g} {w}",
                x.layout()
            );
        }
        reduce(x, mask, Kind::Max, None, &mut got);
        for (g, w) in got.iter().zip(&top) {
            assert_eq!(*g as f64, *w, "{:?} {mask:?}", x.layout());
        }
    }

    #[test]
    fn every_mask_of_every_layout_equals_the_plain_sum() {
        let shapes: [&[usize]; 7] = [
            &[3, 5, 7],
            &[2, 1100, 3],
            &[2100, 1, 2],
            &[4, 600],
            &[70000, 2],
            &[2, 70000],
            &[9],
        ];
        for shape in shapes {
            let n: usize = shape.iter().product();
            let data: Vec<f32> = (0..n)
                .map(|i| ((i * 7919) % 1000) as f32 / 1000.0)
                .collect();
            let x = Owned::new(&data, shape, DType::F32);
            let back: Vec<i64> = (0..shape.len() as i64).rev().collect();
            let t = x.alias(x.layout().permute(&back).expect("a permutation"));
            let s = x.alias(x.layout().slice(0, Some(1), None, 2).expect("a slice"));
            let same: Layout = x.layout().clone();
            for x in [x.alias(same), t, s] {
                for bits in 0..1 << shape.len() {
                    let mask = DimSet::of(shape.len(), |d| bits >> d & 1 == 1).expect("few");
                    check(&x, mask);
                }
            }
        }
    }

    #[test]
    fn ten_million_tenths_in_f32() {
        let x = Owned::new(&[0.1f32], &[1], DType::F32);
        let x = x.alias(x.layout().expand(&[10_000_000]).expect("an expansion"));
        let mut y = [0f32];
        reduce(&x, [0].into(), Kind::Sum, None, &mut y);
        assert!((y[0] - 1e6).abs() < 1.0, "{}", y[0]);
    }
}

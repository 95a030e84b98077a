//! Results whose elements follow each other in memory.

use super::super::convert::load;
use super::super::fold::{Group, Kernels, Reducible, Rows, GROUP, LANES, LEAST, MOST_ROWS};
use super::super::pool::{parallel_for, Ptr};
use super::{inner, merge_all, offset, Cascade, Plan, BUFFER, GRAIN, RUN};
use crate::shape::Walk;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of a row that one call combines.
pub(super) const BLOCK: usize = 4096;
/// Blocks that one call combines.
const BLOCKS: usize = 16;

/// Combines partial results two by two, so that rounding errors stay small.
#[derive(Clone, Copy)]
pub(super) struct Tree<T> {
    levels: [T; 64],
    n: usize,
}

impl<T: Copy> Tree<T> {
    pub fn new(init: T) -> Self {
        Tree {
            levels: [init; 64],
            n: 0,
        }
    }
    // SAFETY: `k` holds kernels that the machine can run.
    pub unsafe fn push(&mut self, v: T, k: &Kernels<T>) {
        // SAFETY: `k` holds kernels that the machine can run.
        unsafe { self.push_many(v, 0, k) };
    }
    /// Takes the result of 2^`at` that are as many after others, as if they came one by one.
    // SAFETY: `k` holds kernels that the machine can run.
    unsafe fn push_many(&mut self, mut v: T, mut at: usize, k: &Kernels<T>) {
        let count = 1 << at;
        while self.n >> at & 1 == 1 {
            let mut left = self.levels[at];
            // SAFETY: one value on each side, both of this frame.
            unsafe { (k.merge)(&mut left, &v, 1) };
            v = left;
            at += 1;
        }
        self.levels[at] = v;
        self.n += count;
    }
    // SAFETY: `k` holds kernels that the machine can run.
    pub unsafe fn total(&self, k: &Kernels<T>) -> T {
        let mut total = k.init;
        let mut first = true;
        for at in 0..64 {
            if self.n >> at & 1 == 1 {
                if first {
                    total = self.levels[at];
                    first = false;
                } else {
                    let mut left = self.levels[at];
                    // SAFETY: one value on each side, both of this frame.
                    unsafe { (k.merge)(&mut left, &total, 1) };
                    total = left;
                }
            }
        }
        total
    }
}

/// Combines neighbours until one is left, as [`Tree`] does, a level at a time.
// SAFETY: `k` holds kernels that the machine can run.
unsafe fn of_blocks<T: Copy>(mut left: [T; BLOCKS], k: &Kernels<T>) -> T {
    let mut n = BLOCKS;
    while n > 1 {
        n /= 2;
        let mut right = [k.init; BLOCKS / 2];
        for i in 0..n {
            right[i] = left[2 * i + 1];
            left[i] = left[2 * i];
        }
        // SAFETY: there are `n` results on each side.
        unsafe { (k.merge)(left.as_mut_ptr(), right.as_ptr(), n) };
    }
    left[0]
}

/// Combines elements `start..end` of the reduced dimensions at `ptr`.
pub(super) unsafe fn row_total<T: Reducible>(
    plan: &Plan<T>,
    ptr: *const u8,
    start: usize,
    end: usize,
    c: T,
) -> T {
    // SAFETY: `ptr` is where a result's elements begin, and there are at least `end`; the buffer
    // has room for BUFFER.
    unsafe {
        let k = &plan.near;
        let dims = &plan.reduced[..];
        let (inner, step) = inner(dims, 0);
        // Runs that are long enough are read where they lie.
        if plan.is_direct(k.source, step) && (dims.len() <= 1 || inner >= 256) {
            let size = step as usize;
            if dims.len() <= 1 && end - start <= BLOCK {
                return (k.row)(ptr.add(start * size), end - start, c);
            }
            let mut tree = Tree::new(k.init);
            let mut at = start;
            while at < end {
                let run = (inner - at % inner).min(end - at);
                let x = ptr.offset(offset(dims, at));
                let mut done = 0;
                while let (Some(lines), true) = (k.lines, done + BLOCK <= run) {
                    let mut totals = [k.init; BLOCKS];
                    let count = ((run - done) / BLOCK).min(BLOCKS);
                    let block = BLOCK * size;
                    let x = x.add(done * size);
                    lines(x, block as isize, BLOCK, count, totals.as_mut_ptr());
                    if count == BLOCKS && tree.n.is_multiple_of(BLOCKS) {
                        tree.push_many(of_blocks(totals, k), BLOCKS.ilog2() as usize, k);
                    } else {
                        totals[..count].iter().for_each(|&v| tree.push(v, k));
                    }
                    done += count * BLOCK;
                }
                while done < run {
                    let n = BLOCK.min(run - done);
                    tree.push((k.row)(x.add(done * size), n, c), k);
                    done += n;
                }
                at += run;
            }
            return tree.total(k);
        }
        if let Some(total) = run_totals(plan, ptr, start, end, c) {
            return total;
        }
        // What the kernels read; `load` widens to `T` only.
        let k = &plan.wide;
        let mut tree = Tree::new(k.init);
        let mut buffer = [MaybeUninit::<T>::uninit(); BUFFER];
        let mut fill = 0;
        let mut at = start;
        while at < end {
            // One run along the innermost dimension.
            let within = at % inner;
            let n = (inner - within).min(end - at).min(BUFFER - fill);
            let from = ptr.offset(offset(dims, at));
            load(
                plan.dtype,
                from,
                step,
                n,
                buffer.as_mut_ptr().cast::<T>().add(fill),
            );
            fill += n;
            at += n;
            if fill == BUFFER || at == end {
                tree.push((k.row)(buffer.as_ptr().cast(), fill, c), k);
                fill = 0;
            }
        }
        tree.total(k)
    }
}

/// [`row_total`] of runs that are worth combining element by element where they lie.
unsafe fn run_totals<T: Reducible>(
    plan: &Plan<T>,
    ptr: *const u8,
    start: usize,
    end: usize,
    c: T,
) -> Option<T> {
    const LONGEST: usize = 256;
    let [outer @ .., Walk { n, step: [step] }] = &plan.reduced[..] else {
        return None;
    };
    let (k, n) = (&plan.near, *n);
    let (rows, next) = inner(outer, 0);
    let whole = start.is_multiple_of(n) && end.is_multiple_of(n) && end - start >= 8 * n;
    if !whole || !(LEAST..LONGEST).contains(&n) || !plan.is_direct(k.source, *step) {
        return None;
    }
    let mut acc = Cascade::empty();
    acc.start(n, k);
    let centres = [c; LONGEST];
    let (mut at, mut done) = (start / n, 0);
    // SAFETY: rows up to `end / n` lie within the reduced dimensions; a cascade holds `n` results.
    unsafe {
        while at < end / n {
            let several = (rows - at % rows).min(end / n - at).min(RUN - done % RUN);
            let x = ptr.offset(offset(outer, at));
            (k.columns)(acc.first(), x, centres.as_ptr(), n, several, next);
            at += several;
            done += several;
            if done % RUN == 0 {
                acc.carry(done, n, k);
            }
        }
        let total = acc.total(n, k);
        merge_all(total, 1, k);
        Some(total[0])
    }
}

/// What to combine into one value: elements `start..end` of the reduced dimensions at `ptr`.
pub(super) type Unit = (*const u8, usize, usize);

/// [`row_total`] of units `range`, into `to` at their index.
pub(super) unsafe fn unit_totals<T: Reducible>(
    plan: &Plan<T>,
    range: Range<usize>,
    rows: Option<Rows<T>>,
    unit: impl Fn(usize) -> Unit,
    c: impl Fn(usize) -> T,
    to: *mut T,
) {
    // SAFETY: units lie in the input, and `to` has room for the range, which is this thread's
    // alone.
    unsafe {
        let one = |u: usize| {
            let (ptr, start, end) = unit(u);
            *to.add(u) = row_total(plan, ptr, start, end, c(u));
        };
        let mut from = range.start;
        if let Some(rows) = rows {
            // Far from each other, so that each is a stream of its own.
            let groups = range.len() / rows.count;
            for g in 0..groups {
                let (u, apart) = (range.start + g, groups);
                let mut x = [std::ptr::null(); MOST_ROWS];
                let (_, start, end) = unit(u);
                let n = end - start;
                let mut alike = n >= LANES;
                for r in 0..rows.count {
                    let (ptr, start, end) = unit(u + r * apart);
                    alike &= end - start == n;
                    x[r] = ptr.add(start * plan.dtype.size());
                }
                if alike {
                    let totals = row_totals(plan, rows, x, n);
                    for r in 0..rows.count {
                        *to.add(u + r * apart) = totals[r];
                    }
                } else {
                    (0..rows.count).for_each(|r| one(u + r * apart));
                }
            }
            from += groups * rows.count;
        }
        (from..range.end).for_each(one);
    }
}

/// [`row_total`] of several rows of `n` elements that follow each other in memory.
unsafe fn row_totals<T: Reducible>(
    plan: &Plan<T>,
    Rows { count, run }: Rows<T>,
    mut x: [*const u8; MOST_ROWS],
    n: usize,
) -> [T; MOST_ROWS] {
    // SAFETY: each row has `n` elements, at least LANES; blocks of them end at `n`.
    unsafe {
        let k = &plan.near;
        let mut totals = [k.init; MOST_ROWS];
        if n <= BLOCK {
            run(&x, n, &mut totals);
            return totals;
        }
        let mut trees = [Tree::new(k.init); MOST_ROWS];
        for at in (0..n).step_by(BLOCK) {
            let whole = n - at >= BLOCK;
            if whole {
                run(&x, BLOCK, &mut totals);
            }
            for r in 0..count {
                if !whole {
                    totals[r] = (k.row)(x[r], n - at, T::default());
                }
                trees[r].push(totals[r], k);
                x[r] = x[r].wrapping_add(BLOCK * plan.dtype.size());
            }
        }
        for r in 0..count {
            totals[r] = trees[r].total(k);
        }
        totals
    }
}

impl<T: Reducible> Plan<T> {
    /// How to combine rows in groups, and the bytes between rows, where that is worth it.
    pub(super) fn grouped(&self, results: usize, length: usize) -> Option<(Group<T>, isize)> {
        let ([_] | []) = &self.kept[..] else {
            return None;
        };
        let [Walk { step: [step], .. }] = self.reduced[..] else {
            return None;
        };
        let short = (LEAST..LANES).contains(&length) && results >= GROUP;
        let between = inner(&self.kept, 0).1;
        let whole = between % self.dtype.size() as isize == 0;
        let direct = short && whole && self.is_direct(self.near.source, step);
        self.near.group.filter(|_| direct).map(|g| (g, between))
    }
}

/// Rows of `length` elements that lie `step` bytes apart, in groups.
pub(super) fn by_groups<T: Reducible>(
    plan: &Plan<T>,
    (group, step): (Group<T>, isize),
    length: usize,
    out: &mut [T],
) {
    let k = &plan.near;
    let results = out.len();
    let to = Ptr::new(out.as_mut_ptr());
    parallel_for(
        results.div_ceil(GROUP),
        GRAIN / (length * GROUP) + 1,
        |range| {
            for g in range {
                let first = g * GROUP;
                // SAFETY: these are rows of the input, and their results this thread's.
                unsafe {
                    let x = plan.at(first as isize * step);
                    let to = to.get().add(first);
                    if first + GROUP <= results {
                        group(x, step, length, to);
                        continue;
                    }
                    for r in 0..results - first {
                        *to.add(r) = (k.row)(x.offset(r as isize * step), length, T::default());
                    }
                }
            }
        },
    );
}

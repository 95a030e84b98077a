//! Running sums of few long lines, in chains that need not wait for each other.

use crate::alloc;
use crate::cpu::number::Number;
use crate::cpu::pool::{num_threads, Ptr};
use crate::cpu::rows::share;
use crate::cpu::simd::Lane;
use crate::dtype::DType;
use crate::per_isa;
use crate::shape::Span;

/// Sums that are under way at the same time, and elements of each.
const CHAINS: usize = 8;
const LENGTH: usize = 64;
const BLOCK: usize = CHAINS * LENGTH;
/// Elements of a line from which on threads share it.
const SHARED: usize = 1 << 15;
/// What a block costs, as [`share`] counts.
const COST: usize = 2 * BLOCK;

/// Whether lines are summed up here.
pub fn is_long(shape: &[usize], dim: usize) -> bool {
    let of = Span::of(shape, dim);
    let few = if of.length < SHARED { 4 } else { 8 };
    of.inner == 1 && of.outer < few && of.length >= 2 * BLOCK
}

/// Element `i` of a line of `n` in the order of the sum.
#[inline(always)]
fn place<const REVERSE: bool>(n: usize, i: usize) -> usize {
    match REVERSE {
        true => n - 1 - i,
        false => i,
    }
}

type Wide<T> = <T as Number>::Wide;

/// The running sums of each chain of the block from `at` on, and their totals.
#[inline(always)]
unsafe fn chains<T: Number, const REVERSE: bool>(
    x: *const T,
    n: usize,
    at: usize,
) -> ([[Wide<T>; LENGTH]; CHAINS], [Wide<T>; CHAINS]) {
    let mut sums = [[Wide::<T>::default(); LENGTH]; CHAINS];
    let mut last = [Wide::<T>::default(); CHAINS];
    for k in 0..LENGTH {
        for (j, (last, sums)) in last.iter_mut().zip(&mut sums).enumerate() {
            // SAFETY: the line has the block.
            let v = unsafe { *x.add(place::<REVERSE>(n, at + j * LENGTH + k)) };
            *last = last.plus(v.wide());
            sums[k] = *last;
        }
    }
    (sums, last)
}

per_isa! {
    /// The sum of the block from `at` on, with the bits that [`write`] gives.
    unsafe fn total[T: Number; const REVERSE: bool](x: *const T, n: usize, at: usize) -> Wide<T> {
        // SAFETY: the line has the block.
        unsafe {
            if at + BLOCK <= n && T::DTYPE != DType::I64 {
                let last = chains::<T, REVERSE>(x, n, at).1;
                return last.into_iter().fold(Wide::<T>::default(), Lane::plus);
            }
            let wide = |i: usize| (*x.add(place::<REVERSE>(n, i))).wide();
            (at..n.min(at + BLOCK)).map(wide).fold(Wide::<T>::default(), Lane::plus)
        }
    }
}

per_isa! {
    /// Writes the running sums of the block from `at` on, which begin at `before`; the block's sum.
    unsafe fn write[T: Number; const REVERSE: bool](
        x: *const T,
        y: *mut T,
        n: usize,
        at: usize,
        before: Wide<T>,
    ) -> Wide<T> {
        let mut sum = Wide::<T>::default();
        // SAFETY: the line has the block, on both sides.
        unsafe {
            // The next sum of integers waits one cycle only.
            if at + BLOCK > n || T::DTYPE == DType::I64 {
                for i in at..n.min(at + BLOCK) {
                    let i = place::<REVERSE>(n, i);
                    sum = sum.plus((*x.add(i)).wide());
                    *y.add(i) = T::narrow_from(before.plus(sum));
                }
                return sum;
            }
            let (sums, last) = chains::<T, REVERSE>(x, n, at);
            for (j, (sums, last)) in sums.iter().zip(last).enumerate() {
                let before = before.plus(sum);
                for (k, &s) in sums.iter().enumerate() {
                    let i = place::<REVERSE>(n, at + j * LENGTH + k);
                    *y.add(i) = T::narrow_from(before.plus(s));
                }
                sum = sum.plus(last);
            }
        }
        sum
    }
}

/// Running sums of lines of `shape` along `dim`, the last one.
pub fn long<T: Number>(shape: &[usize], (dim, reverse): (usize, bool), x: Ptr<T>, y: Ptr<T>) {
    match reverse {
        true => lines::<T, true>(Span::of(shape, dim), x, y),
        false => lines::<T, false>(Span::of(shape, dim), x, y),
    }
}

fn lines<T: Number, const REVERSE: bool>(of: Span, x: Ptr<T>, y: Ptr<T>) {
    let (n, plus) = (of.length, Lane::plus);
    for at in (0..of.outer).map(|o| o * n) {
        let begin = |b: usize, before: Wide<T>| {
            // SAFETY: blocks lie within the line, and each is written once.
            unsafe { write::<T, REVERSE>(x.at(at), y.at(at), n, b * BLOCK, before) }
        };
        let (blocks, mut before) = (n.div_ceil(BLOCK), Wide::<T>::default());
        if n < SHARED || num_threads() == 1 {
            for b in 0..blocks {
                before = plus(before, begin(b, before));
            }
            continue;
        }
        // The sums of blocks first, then each block from the sum of those before.
        let mut sums = alloc::full(before, blocks);
        let to = Ptr::new(sums.as_mut_ptr());
        share(blocks, COST, |range| {
            for b in range {
                // SAFETY: blocks lie within the line, and each has its own sum.
                unsafe { *to.at(b) = total::<T, REVERSE>(x.at(at), n, b * BLOCK) };
            }
        });
        for sum in &mut sums {
            let own = std::mem::replace(sum, before);
            before = plus(before, own);
        }
        share(blocks, COST, |range| {
            for b in range {
                begin(b, sums[b]);
            }
        });
    }
}

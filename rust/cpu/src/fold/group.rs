//! Many short rows: sixteen at once are turned and combined across rows, one instruction for all in
//! the place of one for each.

use super::super::elements::Compute;
use super::super::transpose;
use super::{Fold, Widen, LANES};
use crate::per_isa;
use std::mem::MaybeUninit;

/// Rows of a group.
pub const GROUP: usize = 16;
/// The fewest elements of a row in a group; there are fewer than [`LANES`].
pub const LEAST: usize = 16;

/// A kernel for [`GROUP`] rows of `n` elements, which lie `step` bytes apart, with the results of
/// `row`, bit for bit.
pub type Group<T> = unsafe fn(x: *const u8, step: isize, n: usize, out: *mut T);

#[inline(always)]
unsafe fn group<S: Widen<T>, T: Compute, F: Fold<T>>(
    x: *const u8,
    step: isize,
    n: usize,
    out: *mut T,
) {
    // SAFETY: a row has `n` elements of `S`, from LEAST to LANES, and all of them are turned; there
    // is room for one result each.
    unsafe {
        let mut turned = [[MaybeUninit::<S>::uninit(); GROUP]; LANES];
        let to = turned.as_mut_ptr().cast::<S>();
        let turn = transpose::kernel::<S>();
        let (xs, ys) = (step / size_of::<S>() as isize, GROUP as isize);
        let x = x.cast::<S>();
        turn(x, xs, to, ys, GROUP, n - n % LEAST);
        if !n.is_multiple_of(LEAST) {
            // The last whole block: some of it a second time.
            let from = n - LEAST;
            turn(x.add(from), xs, to.add(from * GROUP), ys, GROUP, LEAST);
        }
        let mut acc = [F::init(); GROUP];
        // Indices: what iterators call is compiled for no instruction set.
        let mut at = 0;
        while at < n {
            let x = turned[at];
            let mut r = 0;
            while r < GROUP {
                acc[r] = F::step(acc[r], x[r].assume_init().widen(), T::default());
                r += 1;
            }
            at += 1;
        }
        out.cast::<[T; GROUP]>().write(acc);
    }
}

per_isa! {
    pub(super) fn best[S: Widen<T>, T: Compute, F: Fold<T>] -> Group<T>
        = (x: *const u8, step: isize, n: usize, out: *mut T) {
        // SAFETY: the caller of the kernel has such rows.
        unsafe { group::<S, T, F>(x, step, n, out) }
    }
}

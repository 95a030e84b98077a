//! Two operands of the result's type, one of which has a number for each row of the other: the loop
//! takes the number as it is, where the plan of any operands would fill a buffer with it.

use super::{cached, order, Cursor, Kernel};
use crate::non_temporal;
use crate::pool::{parallel_blocks, Ptr};
use crate::shape::{coalesce, Walk};
use crate::strided::Strided;
use smallvec::SmallVec;
use std::any::TypeId;

/// Bytes of a row below which the plan of any operands is as quick.
const SHORT: usize = 64;
/// Elements of the buffer for a number that is NaN.
const BLOCK: usize = 256;
/// Most rows of a call.
const ROWS: usize = 64;

/// What the loop of an op takes as its parameters where one input of two is a number for each row.
pub struct Numbered<R> {
    pub params: *const (),
    pub numbers: *const R,
    pub rows: usize,
    /// Bytes from a row of the other input to the next, and of the result.
    pub step: [isize; 2],
}

impl<R> Numbered<R> {
    /// One row.
    pub fn one(params: *const (), number: &R) -> Self {
        Numbered {
            params,
            numbers: number,
            rows: 1,
            step: [0; 2],
        }
    }
}

/// The loops of an op of two inputs over elements of one type.
pub struct Pair<E> {
    pub params: *const (),
    /// Of two runs.
    pub both: Kernel<E>,
    /// Of a run and numbers, which are the input of this place; they take a [`Numbered`].
    pub number: [Kernel<E>; 2],
    /// Whether the loops are wanted for rows of two runs too: a plan converts them first.
    pub runs: bool,
}

// SAFETY: loops and the address of parameters that they only read.
unsafe impl<E> Sync for Pair<E> {}

/// The dimensions of the result and the inputs, outermost first.
fn dims<E, S: Strided>(x: [&S; 2], y: &S) -> SmallVec<[Walk<3>; 5]> {
    let size = size_of::<E>() as isize;
    let layout = y.layout();
    coalesce(order(layout).into_iter().map(|d| {
        let mut step = [layout.strides[d] * size, 0, 0];
        for (step, t) in step[1..].iter_mut().zip(x) {
            // Inputs broadcast: dimensions are counted from the last.
            let at = (d + t.ndim()).checked_sub(layout.ndim());
            if let Some(d) = at.filter(|&d| t.size(d) != 1) {
                *step = t.strides()[d] * size;
            }
        }
        let n = layout.shape[d];
        Walk { n, step }
    }))
}

/// Applies the loops to every element of `y`, to which operands broadcast, as [`super::run`] does;
/// `false`, and nothing done, where neither operand has one number for each row. `wide` makes the
/// loop's number of an element. With NaN among them, which of two remains is for the loop of two runs to
/// say.
///
/// # Safety
/// The loops take these parameters; tensors have elements `E` in host memory, and `y` may be written.
pub unsafe fn spread<E: Copy + 'static, R: Copy + Default + PartialEq + 'static, S: Strided>(
    pair: &Pair<E>,
    wide: impl Fn(E) -> R + Sync,
    x: [&S; 2],
    y: &S,
    grain: usize,
) -> bool {
    let size = size_of::<E>() as isize;
    let (n, bytes) = (y.numel(), y.numel() * size_of::<E>());
    if bytes < SHORT || non_temporal::is_worth(bytes) {
        return false;
    }
    let dims = dims::<E, S>(x, y);
    let [.., line, inner] = &dims[..] else {
        return false;
    };
    let outer = &dims[..dims.len() - 1];
    // Which operand has the numbers; 2 where both have runs.
    let which = match inner.step {
        _ if inner.n * size_of::<E>() < SHORT => return false,
        s if s == [size, 0, size] => 0,
        s if s == [size, size, 0] => 1,
        s if s == [size; 3] && pair.runs => 2,
        _ => return false,
    };
    let first = [y, x[0], x[1]].map(|t| Ptr::new(t.bytes_ptr()));
    let block = match non_temporal::is_large(bytes) {
        true => n,
        false => (cached() / (2 * size_of::<E>())).next_multiple_of(1024),
    };
    parallel_blocks(n, grain, block, |range| {
        let at = first.map(|p| p.get());
        let mut cursor = Cursor::new(outer, at, range.start / inner.n);
        let mut col = range.start % inner.n;
        let mut left = range.len();
        while left > 0 {
            // Rows that lie along one dimension, or a part of one.
            let (n, rows) = match col == 0 && left >= inner.n {
                true => (inner.n, cursor.left(outer).min(left / inner.n).min(ROWS)),
                false => (left.min(inner.n - col), 1),
            };
            let at =
                std::array::from_fn(|i| cursor.at[i].wrapping_offset(inner.step[i] * col as isize));
            // SAFETY: columns `col..col + n` of these rows lie within the operands, and ranges of
            // different threads are disjoint.
            unsafe { pair.rows(which, &wide, at, line, rows, n) };
            left -= rows * n;
            col += n;
            if col == inner.n {
                col = 0;
                cursor.advance(outer, rows);
            }
        }
    });
    true
}

impl<E: Copy + 'static> Pair<E> {
    /// Computes `rows` rows of `n` elements along `line`; those of the result and the inputs begin at
    /// `at`.
    // SAFETY: the operands have these elements, and the loops their parameters.
    unsafe fn rows<R: Copy + Default + PartialEq + 'static>(
        &self,
        which: usize,
        wide: impl Fn(E) -> R,
        at: [*mut u8; 3],
        line: &Walk<3>,
        rows: usize,
        n: usize,
    ) {
        let row = |i: usize, r: usize| at[i].wrapping_offset(line.step[i] * r as isize).cast::<E>();
        let mut numbers = [R::default(); ROWS];
        let mut plain = which < 2;
        let mut from: *const R = numbers.as_ptr();
        if plain {
            let step = line.step[1 + which];
            if TypeId::of::<E>() == TypeId::of::<R>() && step == size_of::<E>() as isize {
                // Where they are.
                from = row(1 + which, 0).cast_const().cast();
            } else {
                for (r, number) in numbers[..rows].iter_mut().enumerate() {
                    // SAFETY: the operand has an element for each row.
                    *number = wide(unsafe { *row(1 + which, r) });
                }
            }
            // SAFETY: there is a number for each row, which nobody writes meanwhile: rows of the result
            // are written later, and their numbers read no more.
            let known = unsafe { std::slice::from_raw_parts(from, rows) };
            #[allow(clippy::eq_op)] // NaN is not
            let all = known.iter().fold(true, |all, v| all & (v == v));
            plain = all;
        }
        if plain {
            let held = Numbered {
                params: self.params,
                numbers: from,
                rows,
                step: [line.step[2 - which], line.step[0]],
            };
            let run: *const E = row(2 - which, 0);
            // SAFETY: the operands have these elements, and the loops their parameters.
            return unsafe { self.number[which]((&raw const held).cast(), &run, row(0, 0), n) };
        }
        for r in 0..rows {
            let (mut from, y) = ([row(1, r).cast_const(), row(2, r)], row(0, r));
            if which == 2 {
                // SAFETY: the operands have these elements, and the loops their parameters.
                unsafe { (self.both)(self.params, from.as_ptr(), y, n) };
                continue;
            }
            // SAFETY: the operands have these elements, and the loops their parameters; the buffer
            // has BLOCK elements.
            unsafe {
                let (buffer, run) = ([*from[which]; BLOCK], from[1 - which]);
                from[which] = buffer.as_ptr();
                for k in (0..n).step_by(BLOCK) {
                    from[1 - which] = run.add(k);
                    (self.both)(self.params, from.as_ptr(), y.add(k), BLOCK.min(n - k));
                }
            }
        }
    }
}

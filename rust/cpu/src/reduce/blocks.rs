//! Rows that are reduced block by block, as they come: with the bits of [`super::reduce`].

use super::rows::{Tree, BLOCK};
use super::{filled_at, in_pieces, Kernels, Kind, Reducible, PIECE, SHORT};
use crate::alloc;
use crate::dtype::DType;
use crate::pool::Ptr;
use crate::typed;

/// A reduction of elements that follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub kind: Kind,
    /// The elements' type, and that in which they are combined.
    pub source: DType,
    pub compute: DType,
    /// Whether to divide by the number of elements.
    pub mean: bool,
}

/// The results of the blocks of all rows: each row has so many of [`super::WHOLE`] elements, and what remains.
pub trait Blocks: Sync {
    /// Combines the `n` elements of block `i`.
    ///
    /// # Safety
    /// There are as many at `x`, and nobody else combines this block.
    unsafe fn put(&self, i: usize, x: *const u8, n: usize);
    /// Writes one result of this type for each of `n` rows.
    ///
    /// # Safety
    /// There is room for them at `y`, which nobody else uses.
    unsafe fn finish(&mut self, y: *mut u8, dtype: DType, n: usize);
}

struct Parts<T> {
    kernels: Kernels<T>,
    to: Ptr<T>,
    values: Vec<T>,
    rows: usize,
    length: usize,
    mean: bool,
}

impl Fold {
    /// Whether blocks are read in the elements' own type.
    pub fn is_direct(&self) -> bool {
        typed!(
            self.compute,
            T => T::kernels(self.kind, self.source).source == self.source,
            [F32 => f32, F64 => f64, I64 => i64],
            _ => false
        )
    }

    /// Whether so many rows of this length are combined row by row.
    pub fn takes(&self, rows: usize, length: usize) -> bool {
        self.is_direct() && (rows == 1 || length > SHORT)
    }

    /// Room for the results of the blocks of `rows` rows of `length` elements.
    pub fn blocks(&self, rows: usize, length: usize) -> Box<dyn Blocks> {
        typed!(
            self.compute,
            T => {
                let kernels = T::kernels(self.kind, self.source);
                let mut values = alloc::full(kernels.init, rows * length.div_ceil(BLOCK));
                let to = Ptr::new(values.as_mut_ptr());
                Box::new(Parts { kernels, to, values, rows, length, mean: self.mean })
            },
            [F32 => f32, F64 => f64, I64 => i64],
            _ => unreachable!("nothing else is direct")
        )
    }
}

impl<T: Reducible> Parts<T> {
    fn tree(&self, values: &[T]) -> T {
        let mut tree = Tree::new(self.kernels.init);
        for &v in values {
            // SAFETY: merges two values of this frame.
            unsafe { tree.push(v, &self.kernels) };
        }
        // SAFETY: merges values of this frame.
        unsafe { tree.total(&self.kernels) }
    }

    fn row(&self, values: &[T]) -> T {
        if !in_pieces(self.rows, self.length) {
            return self.tree(values);
        }
        let pieces: Vec<T> = (values.chunks(PIECE / BLOCK))
            .map(|piece| self.tree(piece))
            .collect();
        self.tree(&pieces)
    }
}

impl<T: Reducible> Blocks for Parts<T> {
    unsafe fn put(&self, i: usize, x: *const u8, n: usize) {
        // SAFETY: there are as many at `x`, and nobody else combines this block; there is a value
        // for each block.
        unsafe { *self.to.at(i) = (self.kernels.row)(x, n, T::default()) }
    }

    unsafe fn finish(&mut self, y: *mut u8, dtype: DType, n: usize) {
        let blocks = self.length.div_ceil(BLOCK);
        let fill = |out: &mut [T]| {
            for (out, values) in out.iter_mut().zip(self.values.chunks(blocks)) {
                *out = self.row(values);
            }
            if self.mean {
                divide(out, self.length);
            }
        };
        // SAFETY: there is room for them at `y`, which nobody else uses.
        unsafe { filled_at(y, dtype, n, fill) };
    }
}

/// Sums become means of `n` elements.
pub fn divide<T: Reducible>(y: &mut [T], n: usize) {
    for v in y {
        *v = T::of_f64(v.to_f64() / n as f64);
    }
}

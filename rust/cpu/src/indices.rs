//! Indices: numbers of a tensor that become addresses, checked.

use crate::alloc;
use crate::dtype::DType;
use crate::strided::Strided;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The numbers of a contiguous int64 tensor in host memory. Another thread may write to them at any
/// time, so each read is one load, and its value is what is checked and used: reading a number again
/// may give another one.
#[derive(Clone, Copy)]
pub struct Indices<'a>(&'a [AtomicI64]);

impl<'a> Indices<'a> {
    /// Panics for a tensor of another type or layout.
    pub fn of(t: &'a impl Strided) -> Indices<'a> {
        assert!(t.dtype() == DType::I64 && t.is_contiguous());
        if t.numel() == 0 {
            return Indices(&[]);
        }
        // SAFETY: the tensor has so many numbers of this size, aligned, and keeps them; an atomic
        // number may be written to while others hold it.
        Indices(unsafe { std::slice::from_raw_parts(t.ptr::<AtomicI64>(), t.numel()) })
    }

    #[inline(always)]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number at a place; panics where there is none.
    #[inline(always)]
    pub fn at(&self, place: usize) -> i64 {
        self.0[place].load(Relaxed)
    }

    #[inline(always)]
    pub fn get(&self, place: usize) -> Option<i64> {
        self.0.get(place).map(|i| i.load(Relaxed))
    }

    #[inline(always)]
    pub fn part(&self, range: Range<usize>) -> Indices<'a> {
        Indices(&self.0[range])
    }

    #[inline(always)]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + 'a {
        self.0.iter().map(|i| i.load(Relaxed))
    }

    /// Eight numbers at a time, and those that are left.
    #[inline(always)]
    pub fn eights(&self) -> (impl Iterator<Item = [i64; 8]> + 'a, Indices<'a>) {
        let (eights, rest) = self.0.as_chunks::<8>();
        // SAFETY: eight numbers of the tensor. The read is volatile, so that it is not made again, and
        // may be one of a vector.
        let read = |eight: &[AtomicI64; 8]| unsafe {
            std::ptr::from_ref(eight).cast::<[i64; 8]>().read_volatile()
        };
        (eights.iter().map(read), Indices(rest))
    }

    /// A copy that no other thread knows, for what reads numbers more than once.
    pub fn own(&self) -> Vec<i64> {
        alloc::gathered(self.iter())
    }
}

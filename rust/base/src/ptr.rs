//! Addresses that threads share.

use std::ops::Range;

/// The address of elements that several threads use.
///
/// It does nothing by itself: each access says which elements it uses and why it may. Whoever makes one sees to it that
/// the memory outlives the accesses, as a loop does that waits for its threads, and that an element which one thread
/// writes is used by no other meanwhile.
pub struct Ptr<T>(*mut T);

// SAFETY: the address alone does nothing; each use says what it reads or writes.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: a reference gives the address, which alone does nothing.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Clone for Ptr<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ptr<T> {}

impl<T> Ptr<T> {
    #[inline(always)]
    pub const fn new(at: *mut T) -> Self {
        Ptr(at)
    }
    /// Of elements that are read, unless the owner of the address lets others write.
    #[inline(always)]
    pub const fn read(at: *const T) -> Self {
        Ptr(at.cast_mut())
    }
    #[inline(always)]
    pub fn get(&self) -> *mut T {
        self.0
    }
    /// # Safety
    /// As for `pointer::add`.
    #[inline(always)]
    pub unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: element `i` lies in the memory of this address.
        unsafe { self.0.add(i) }
    }
    /// # Safety
    /// These elements lie in memory, and nobody else uses them while the slice lives.
    #[inline(always)]
    pub unsafe fn part<'a>(&self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: these elements lie in memory, and nobody else uses them while the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

//! Memory of a kernel from the caching allocator: a list of the system's may be new pages in every
//! call.

use super::{alloc, free};
use crate::error;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Room for elements with any content, aligned to 64 bytes.
pub struct Scratch<T> {
    at: NonNull<u8>,
    bytes: usize,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Room for `n` elements; where there is none, [unwinds](error::unwind) with the error.
    pub fn new(n: usize) -> Self {
        let bytes = n
            .checked_mul(size_of::<T>())
            .expect("sizes were checked with the operands");
        let at = alloc(bytes).unwrap_or_else(|e| error::unwind(e));
        Scratch {
            at,
            bytes,
            of: PhantomData,
        }
    }
    /// `n` times the same value.
    #[inline]
    pub fn full(value: T, n: usize) -> Self
    where
        T: Copy,
    {
        let room = Scratch::<T>::new(n);
        for i in 0..n {
            // SAFETY: there is room for `n` elements.
            unsafe { room.ptr().add(i).write(value) };
        }
        room
    }
    pub fn ptr(&self) -> *mut T {
        self.at.as_ptr().cast()
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with these bytes, and the owner goes.
        unsafe { free(self.at, self.bytes) }
    }
}

// SAFETY: plain memory that the scratch owns.
unsafe impl<T: Send> Send for Scratch<T> {}
// SAFETY: plain memory that the scratch owns; the address alone does nothing.
unsafe impl<T: Sync> Sync for Scratch<T> {}

/// Elements of a kernel's own.
pub struct Workspace<T>(Scratch<T>);

impl<T: Copy> Workspace<T> {
    /// `n` times the same value.
    #[inline]
    pub fn full(value: T, n: usize) -> Self {
        Workspace(Scratch::full(value, n))
    }
    pub fn copied(from: &[T]) -> Self {
        let room = Scratch::<T>::new(from.len());
        // SAFETY: there is room for all elements, in new memory.
        unsafe {
            room.ptr()
                .copy_from_nonoverlapping(from.as_ptr(), from.len())
        };
        Workspace(room)
    }
}

impl<T> Deref for Workspace<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: all elements were written; they are lent with their owner.
        unsafe { std::slice::from_raw_parts(self.0.ptr(), self.0.bytes / size_of::<T>()) }
    }
}
impl<T> DerefMut for Workspace<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: all elements were written; they are lent with their owner; the owner is borrowed
        // for writing.
        unsafe { std::slice::from_raw_parts_mut(self.0.ptr(), self.0.bytes / size_of::<T>()) }
    }
}

//! Memory of the library's own that grows with what callers chose: it is asked for before work
//! begins, and where there is none, the answer is an error and not the end of the process.

use super::{large_bytes, out_of_memory, physical_memory, CHECK_AVAILABLE};
use crate::error::{self, Result};
use crate::os::{available_memory, map, unmap};

/// Fails with `OutOfMemory` where `count` elements of `each` bytes cannot be had now. For sizes
/// that a caller chose, before work is done for them.
pub fn check(count: usize, each: usize) -> Result<()> {
    let bytes = count.saturating_mul(each);
    if bytes < CHECK_AVAILABLE {
        return Ok(());
    }
    if bytes > physical_memory() || bytes > available_memory() {
        return Err(out_of_memory(bytes));
    }
    // A limit of the process shows only when asked.
    let size = large_bytes(bytes);
    let block = map(size).ok_or_else(|| out_of_memory(bytes))?;
    unmap(block.as_ptr(), size);
    Ok(())
}

/// An empty list with room for `n` elements, where a caller chose `n`.
pub fn list<T>(n: usize) -> Result<Vec<T>> {
    check(n, size_of::<T>())?;
    let mut list = Vec::new();
    grow(&mut list, n)?;
    Ok(list)
}

/// Makes room for `more` elements.
pub fn grow<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve_exact(more)
        .map_err(|_| out_of_memory(more.saturating_mul(size_of::<T>())))
}

/// `n` times the same value, where a caller chose `n`.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut list = list(n)?;
    list.resize(n, value);
    Ok(list)
}

/// An empty list with room for `n` elements: the workspace of a kernel, deep below what could
/// return an error. Where there is no memory for it, [unwinds](error::unwind) with the error.
pub fn room<T>(n: usize) -> Vec<T> {
    list(n).unwrap_or_else(|e| error::unwind(e))
}

/// `n` times the same value, as a workspace: see [`room`].
pub fn full<T: Clone>(value: T, n: usize) -> Vec<T> {
    let mut list = room(n);
    list.resize(n, value);
    list
}

/// Makes room for `more` elements in a workspace: see [`room`].
pub fn reserve<T>(list: &mut Vec<T>, more: usize) {
    grow(list, more).unwrap_or_else(|e| error::unwind(e));
}

/// Brings a workspace to `n` elements: see [`room`].
pub fn resize<T: Clone>(list: &mut Vec<T>, n: usize, value: T) {
    reserve(list, n.saturating_sub(list.len()));
    list.resize(n, value);
}

/// Unwinds with an error where there is no room for the workspaces of a crate that would end the
/// process then: some copies of what fits its caches.
pub fn spare(work: usize) {
    // So much work takes far longer than the two calls to the system.
    const WORK: usize = 1 << 24;
    const BYTES: usize = 16 << 20;
    if work >= WORK {
        match map(BYTES) {
            Some(block) => unmap(block.as_ptr(), BYTES),
            None => error::unwind(out_of_memory(BYTES)),
        }
    }
}

/// The elements of an iterator that knows its length, as a workspace: see [`room`].
pub fn gathered<T>(from: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut list = room(from.len());
    list.extend(from);
    list
}

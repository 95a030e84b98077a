//! The slot for a tensor's place in a graph.

use crate::autograd::History;
use crate::shared::Shared;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A place that is filled once, by whoever comes first. `OnceLock` takes a call to be filled.
#[derive(Default)]
pub(super) struct Slot(AtomicPtr<c_void>);

const _: () = assert!(size_of::<Shared<History>>() == size_of::<AtomicPtr<c_void>>());

impl Slot {
    #[inline]
    pub fn get(&self) -> Option<&Shared<History>> {
        if self.0.load(Ordering::Acquire).is_null() {
            return None;
        }
        // SAFETY: not null, so it holds what `set` put there: a handle, which is one pointer.
        Some(unsafe { &*(&raw const self.0).cast::<Shared<History>>() })
    }

    /// Fills the slot; gives `history` back where it is filled already.
    #[inline]
    pub fn set(&self, history: Shared<History>) -> std::result::Result<(), Shared<History>> {
        // SAFETY: a handle is one pointer, which is not null; it goes back where it lost.
        unsafe {
            let new = std::mem::transmute::<Shared<History>, *mut c_void>(history);
            let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
            match self.0.compare_exchange(null, new, order, Ordering::Acquire) {
                Ok(_) => Ok(()),
                Err(_) => Err(std::mem::transmute::<*mut c_void, Shared<History>>(new)),
            }
        }
    }

    #[inline]
    pub fn get_or_make(&self) -> &Shared<History> {
        loop {
            if let Some(history) = self.get() {
                return history;
            }
            let _ = self.set(Shared::default());
        }
    }
}

impl Drop for Slot {
    #[inline]
    fn drop(&mut self) {
        if !self.0.get_mut().is_null() {
            // SAFETY: what is not null is a handle that `set` left, and nobody else has the slot.
            unsafe { (&raw mut self.0).cast::<Shared<History>>().drop_in_place() };
        }
    }
}

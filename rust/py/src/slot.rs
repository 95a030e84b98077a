//! The place in which a tensor, or a node of the graph, has its Python object. It holds no reference: the object clears
//! it before its memory goes. Where Python has no lock, a bit says that a thread is at it; what the thread puts there
//! takes the bit away.

use pyo3::ffi;
use pytensorlib_core::tensor::OWNED;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What was found.
pub enum Found {
    Nothing,
    /// A living object: a reference to it, which is the caller's.
    Living(*mut ffi::PyObject),
    /// An object that had been left to its tensor: its only reference, which is the caller's now.
    Left(*mut ffi::PyObject),
}

#[cfg(not(Py_GIL_DISABLED))]
const ORDER: Ordering = Ordering::Relaxed;
#[cfg(Py_GIL_DISABLED)]
const ORDER: Ordering = Ordering::Release;

/// What is in the slot, for this thread alone until it stores something.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
pub fn lock(slot: &AtomicPtr<c_void>) -> *mut ffi::PyObject {
    slot.load(Ordering::Relaxed).cast()
}

#[cfg(Py_GIL_DISABLED)]
pub fn lock(slot: &AtomicPtr<c_void>) -> *mut ffi::PyObject {
    const AT_IT: usize = 2;
    // Nothing is waited for by whoever is at it, so it is back soon, unless the system stopped it.
    for turn in 0usize.. {
        let before = slot.load(Ordering::Relaxed);
        if before.addr() & AT_IT == 0 {
            let taken = before.map_addr(|a| a | AT_IT);
            let (done, failed) = (Ordering::Acquire, Ordering::Relaxed);
            if slot.compare_exchange(before, taken, done, failed).is_ok() {
                return before.cast();
            }
        }
        match turn < 100 {
            true => std::hint::spin_loop(),
            false => std::thread::yield_now(),
        }
    }
    unreachable!("the loop has no end")
}

/// Puts an object there, or what [`lock`] gave back.
#[inline(always)]
pub fn store(slot: &AtomicPtr<c_void>, object: *mut ffi::PyObject) {
    slot.store(object.cast(), ORDER);
}

/// Puts an object there, whatever was there.
///
/// # Safety
/// The thread is attached; the object is alive and calls [`forget`] before its memory goes.
#[inline(always)]
pub unsafe fn put(slot: &AtomicPtr<c_void>, me: *mut ffi::PyObject) {
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: the object is alive, and nobody else has the slot until the store.
    unsafe {
        ffi::PyUnstable_EnableTryIncRef(me);
        lock(slot);
    }
    store(slot, me);
}

/// Clears the slot, if `me` is there.
#[inline]
pub fn forget(slot: &AtomicPtr<c_void>, me: *mut ffi::PyObject) {
    let now = lock(slot);
    if now == me {
        store(slot, std::ptr::null_mut());
    } else if cfg!(Py_GIL_DISABLED) {
        store(slot, now);
    }
}

/// What is in the slot.
///
/// # Safety
/// The thread is attached; what is in the slot was put there by [`put`].
#[inline(always)]
pub unsafe fn find(slot: &AtomicPtr<c_void>) -> Found {
    let old = lock(slot);
    if old.addr() & OWNED != 0 {
        let me = old.map_addr(|a| a & !OWNED);
        store(slot, me);
        return Found::Left(me);
    }
    // SAFETY: an object that is in the slot has its memory; one with no references left is dying.
    let living = !old.is_null() && unsafe { refer(old) };
    if cfg!(Py_GIL_DISABLED) {
        store(slot, old);
    }
    match living {
        true => Found::Living(old),
        false => Found::Nothing,
    }
}

/// As [`find`]; where nothing is found, `me` is put there.
///
/// # Safety
/// As for [`find`] and for [`put`].
pub unsafe fn find_or_put(slot: &AtomicPtr<c_void>, me: *mut ffi::PyObject) -> Found {
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: the object is alive.
    unsafe {
        ffi::PyUnstable_EnableTryIncRef(me)
    };
    let old = lock(slot);
    let owned = old.addr() & OWNED != 0;
    let old = old.map_addr(|a| a & !OWNED);
    // SAFETY: an object that is in the slot has its memory.
    if owned || !old.is_null() && unsafe { refer(old) } {
        store(slot, old);
        return match owned {
            true => Found::Left(old),
            false => Found::Living(old),
        };
    }
    store(slot, me);
    Found::Nothing
}

/// Takes a reference to an object that may be dying; false where it is.
// SAFETY: the caller is attached, and the object's memory is there.
#[inline(always)]
unsafe fn refer(object: *mut ffi::PyObject) -> bool {
    // SAFETY: see above.
    unsafe {
        #[cfg(Py_GIL_DISABLED)]
        return ffi::PyUnstable_TryIncRef(object) != 0;
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let living = ffi::Py_REFCNT(object) > 0;
            if living {
                ffi::Py_INCREF(object);
            }
            living
        }
    }
}

//! The base of `Tensor`, the Python class: an object around one of the core's.

use crate::slot;
#[cfg(Py_GIL_DISABLED)]
use parking_lot::lock_api::RawMutex as _;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pytensorlib_core::tensor::Tensor;
use std::cell::{Cell, UnsafeCell};

/// The base of `Tensor`: it has methods and attributes, and no objects of its own.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> issubclass(torch.Tensor, torch._C.TensorBase)
/// True
#[pyclass(
    name = "TensorBase",
    module = "pytensorlib._C",
    frozen,
    subclass,
    dict,
    weakref
)]
pub struct PyTensor {
    inner: UnsafeCell<Tensor>,
    me: Cell<*mut ffi::PyObject>,
    /// Held while `inner` is read or changed, for a few instructions in which nothing is waited for.
    #[cfg(Py_GIL_DISABLED)]
    lock: parking_lot::RawMutex,
}

// SAFETY: `inner` is touched only while the interpreter is held, or the lock where there is no such thing; `me` is
// set before anyone else has the object.
unsafe impl Sync for PyTensor {}
// SAFETY: an object may be dropped by another thread, which then has it alone.
unsafe impl Send for PyTensor {}

/// The tensor behind an object: where the interpreter is held nobody puts another there, elsewhere it takes a handle.
#[cfg(not(Py_GIL_DISABLED))]
pub type Peeked<'a> = &'a Tensor;
#[cfg(Py_GIL_DISABLED)]
pub type Peeked<'a> = Tensor;

impl PyTensor {
    #[inline(always)]
    pub fn new(t: Tensor) -> Self {
        PyTensor {
            inner: UnsafeCell::new(t),
            me: Cell::new(std::ptr::null_mut()),
            #[cfg(Py_GIL_DISABLED)]
            lock: parking_lot::RawMutex::INIT,
        }
    }

    /// The content of a new object, which is in its tensor's slot, or comes there at once.
    #[inline(always)]
    pub fn of(t: Tensor, me: *mut ffi::PyObject) -> Self {
        let new = PyTensor::new(t);
        new.me.set(me);
        new
    }

    /// Runs `f` on the tensor while no other thread touches it.
    ///
    /// # Safety
    /// `f` runs nothing of Python's, and nothing that was borrowed of the tensor is in use.
    #[inline(always)]
    pub unsafe fn with<R>(&self, f: impl FnOnce(&mut Tensor) -> R) -> R {
        #[cfg(Py_GIL_DISABLED)]
        self.lock.lock();
        // SAFETY: the interpreter is held, or the lock: nobody else is here.
        let y = f(unsafe { &mut *self.inner.get() });
        #[cfg(Py_GIL_DISABLED)]
        // SAFETY: taken above.
        unsafe {
            self.lock.unlock()
        };
        y
    }

    /// Where the tensor lies; all zeros until the object is filled.
    #[inline]
    pub fn place(&self) -> *mut Tensor {
        self.inner.get()
    }

    /// A handle to the tensor.
    #[inline]
    pub fn get(&self) -> Tensor {
        // SAFETY: nothing of Python's runs.
        unsafe { self.with(|t| t.clone()) }
    }

    /// A handle to a tensor that stands for one of Python's numbers.
    pub fn single(&self) -> PyResult<Tensor> {
        let t = self.get();
        match t.numel() {
            1 => Ok(t),
            _ => Err(PyValueError::new_err(
                "only one element tensors can be converted to Python scalars",
            )),
        }
    }

    /// The tensor, borrowed where it can be.
    ///
    /// # Safety
    /// As for [`crate::convert::peek`].
    #[inline]
    pub unsafe fn peek(&self) -> Peeked<'_> {
        #[cfg(Py_GIL_DISABLED)]
        return self.get();
        // SAFETY: nobody puts another tensor here while the reference lives.
        #[cfg(not(Py_GIL_DISABLED))]
        unsafe {
            &*self.inner.get()
        }
    }

    /// Puts another tensor behind this object (`x.data = y`, `x.resize_`).
    pub fn swap(&self, t: Tensor) {
        let me = self.me.get();
        // SAFETY: nothing of Python's runs, and no reference into the cell outlives a call. An object that has noted
        // itself forgets its tensor when it dies.
        let old = unsafe {
            self.with(|inner| {
                let old = std::mem::replace(inner, t);
                if !me.is_null() {
                    slot::forget(old.wrapper(), me);
                    slot::put(inner.wrapper(), me);
                }
                old
            })
        };
        drop(old);
    }

    /// Makes this object that of its tensor, if that has none.
    pub fn claim(&self, me: *mut ffi::PyObject) {
        let t = self.get();
        let old = slot::lock(t.wrapper());
        slot::store(t.wrapper(), old);
        if old.is_null() {
            self.adopt(me);
        }
    }

    /// Makes this object that of its tensor. Nobody else has the object yet.
    pub fn adopt(&self, me: *mut ffi::PyObject) {
        self.me.set(me);
        // SAFETY: the object forgets its tensor when it dies.
        unsafe { self.with(|t| slot::put(t.wrapper(), me)) };
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let me = self.me.get();
        slot::forget(self.inner.get_mut().wrapper(), me);
    }
}

/// The tensor behind a Python object, or a `TypeError`.
pub fn borrow(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match obj.cast::<PyTensor>() {
        Ok(t) => Ok(t.get().get()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected a Tensor, got {}",
            obj.get_type().name()?
        ))),
    }
}

const _: () = assert!(std::mem::size_of::<Tensor>() == std::mem::size_of::<*const ()>());

//! `Tensor`, the Python class: an object around one of the core's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pytensorlib_core::tensor::Tensor;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;

/// A multi-dimensional array of one element type, with automatic differentiation.
///
/// `tensor`, `zeros` and the like make one. The class itself takes data or sizes, as older code has
/// it, and gives the default dtype.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.Tensor([1, 2])
/// tensor([1., 2.])
#[pyclass(
    name = "Tensor",
    module = "pytensorlib",
    frozen,
    subclass,
    dict,
    weakref
)]
pub struct PyTensor {
    pub(crate) inner: UnsafeCell<Tensor>,
    me: Cell<*mut ffi::PyObject>,
}

// SAFETY: both cells are touched only while the interpreter is held.
unsafe impl Sync for PyTensor {}
// SAFETY: an object may be dropped by another thread, which then holds the interpreter.
unsafe impl Send for PyTensor {}

impl PyTensor {
    pub fn new(t: Tensor) -> Self {
        PyTensor {
            inner: UnsafeCell::new(t),
            me: Cell::new(std::ptr::null_mut()),
        }
    }

    /// The content of a new object.
    #[inline]
    pub fn of(t: Tensor, me: *mut ffi::PyObject) -> Self {
        t.wrapper().store(me.cast(), Ordering::Relaxed);
        PyTensor {
            inner: UnsafeCell::new(t),
            me: Cell::new(me),
        }
    }

    /// A handle to the tensor.
    #[inline]
    pub fn get(&self) -> Tensor {
        // SAFETY: the interpreter is held, so nobody swaps it meanwhile.
        unsafe { (*self.inner.get()).clone() }
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

    /// The tensor, borrowed.
    ///
    /// # Safety
    /// As for [`crate::convert::peek`].
    #[inline]
    pub unsafe fn peek(&self) -> &Tensor {
        // SAFETY: nobody puts another tensor here while the reference lives.
        unsafe { &*self.inner.get() }
    }

    /// Puts another tensor behind this object (`x.data = y`, `x.resize_`).
    pub fn swap(&self, t: Tensor) {
        let me = self.me.get();
        // SAFETY: the interpreter is held, and no reference into the cell outlives a call.
        let old = unsafe { std::mem::replace(&mut *self.inner.get(), t) };
        if !me.is_null() {
            forget(&old, me);
            // SAFETY: the interpreter is held, so that nobody swaps the tensor meanwhile.
            unsafe {
                (*self.inner.get())
                    .wrapper()
                    .store(me.cast(), Ordering::Relaxed)
            };
        }
        drop(old);
    }

    /// Makes this object that of its tensor, if that has none.
    pub fn claim(&self, me: *mut ffi::PyObject) {
        // SAFETY: the interpreter is held, so that nobody swaps the tensor meanwhile.
        let slot = unsafe { (*self.inner.get()).wrapper() };
        if slot.load(Ordering::Relaxed).is_null() {
            self.adopt(me);
        }
    }

    pub fn adopt(&self, me: *mut ffi::PyObject) {
        self.me.set(me);
        // SAFETY: the interpreter is held, so that nobody swaps the tensor meanwhile.
        unsafe {
            (*self.inner.get())
                .wrapper()
                .store(me.cast(), Ordering::Relaxed)
        };
    }
}

/// The tensor has no object any more, if `me` was it.
#[inline]
fn forget(t: &Tensor, me: *mut ffi::PyObject) {
    // The interpreter is held: nobody comes between.
    if t.wrapper().load(Ordering::Relaxed) == me.cast() {
        t.wrapper().store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Drop for PyTensor {
    fn drop(&mut self) {
        let me = self.me.get();
        forget(self.inner.get_mut(), me);
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

/// Carries a tensor through `__new__` of a subclass.
#[pyclass(frozen, name = "_Raw")]
pub struct Raw(pub Tensor);

const _: () = assert!(std::mem::size_of::<Tensor>() == std::mem::size_of::<*const ()>());

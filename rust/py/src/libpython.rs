//! What the extension uses of CPython that PyO3 does not declare. Each version of CPython must have it: CI compiles for
//! each, and `tests/house/test_libpython.py` finds the names in the interpreter that runs.
//!
//! Beside these functions it reads fields of objects that are CPython's own matter, by PyO3's declarations, so that
//! there is a wheel for each version: slots of `PyTypeObject`, what descriptors describe (`d_base`, `d_getset`,
//! `d_method`), and the items of tuples and lists.

use pyo3::ffi::{self, wrapperbase, PyObject, PyTypeObject};
use std::ffi::{c_int, c_void};

/// Declares functions as PyO3 does: on Windows they come from the interpreter's own DLL, without an import library.
macro_rules! libpython {
    ($($dll:literal)* => $items:tt) => {
        $(#[cfg_attr(all(windows, python_dll = $dll), link(name = $dll, kind = "raw-dylib"))])*
        extern "C" $items
    };
}

libpython! {
    "python310" "python311" "python312" "python313" "python314" "python314t" => {
        pub fn PyMethod_New(func: *mut PyObject, obj: *mut PyObject) -> *mut PyObject;
        /// A slot's method; `base` is the description of the slot.
        pub fn PyDescr_NewWrapper(
            class: *mut PyTypeObject,
            base: *mut wrapperbase,
            wrapped: *mut c_void,
        ) -> *mut PyObject;
        /// What the classes that an instance is of have under a name, which they lend; null without an error.
        #[cfg(not(Py_GIL_DISABLED))]
        pub fn _PyType_Lookup(class: *mut PyTypeObject, name: *mut PyObject) -> *mut PyObject;
        /// The same, as a new reference.
        #[cfg(Py_GIL_DISABLED)]
        pub fn _PyType_LookupRef(class: *mut PyTypeObject, name: *mut PyObject) -> *mut PyObject;
        /// As `PyObject_GenericGetAttr`; with `suppress`, null without an error where there is none.
        pub fn _PyObject_GenericGetAttrWithDict(
            obj: *mut PyObject,
            name: *mut PyObject,
            dict: *mut PyObject,
            suppress: c_int,
        ) -> *mut PyObject;
    }
}

/// What the classes that an instance is of have under a name, as a new reference; null without an error.
///
/// # Safety
/// The thread is attached; class and name are alive.
#[inline(always)]
pub unsafe fn of_type(class: *mut PyTypeObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller promises what the function asks for.
    unsafe {
        #[cfg(Py_GIL_DISABLED)]
        return _PyType_LookupRef(class, name);
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let found = _PyType_Lookup(class, name);
            ffi::Py_XINCREF(found);
            found
        }
    }
}

/// What a dict has under a key, as a new reference; null where there is none, with an error only where looking failed.
///
/// # Safety
/// The thread is attached; dict and key are alive.
#[inline(always)]
pub unsafe fn of_dict(dict: *mut PyObject, key: *mut PyObject) -> *mut PyObject {
    // SAFETY: the caller promises what the functions ask for.
    unsafe {
        #[cfg(Py_GIL_DISABLED)]
        {
            let mut found = std::ptr::null_mut();
            ffi::PyDict_GetItemRef(dict, key, &mut found);
            found
        }
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let found = ffi::PyDict_GetItemWithError(dict, key);
            ffi::Py_XINCREF(found);
            found
        }
    }
}

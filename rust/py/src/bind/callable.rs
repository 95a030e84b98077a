//! The Python objects of functions and methods, and how the interpreter calls them.

use super::{answered, Function};
use crate::docs;
use crate::error::guard;
use crate::object::type_slot;
use crate::overrides;
use crate::signature;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::{c_char, c_int, c_ulong, c_void};

/// The Python object. The interpreter calls `call` through the vectorcall protocol.
#[repr(C)]
pub(super) struct Callable {
    pub(super) base: ffi::PyObject,
    pub(super) vectorcall: ffi::vectorcallfunc,
    pub(super) function: &'static Function,
}

// SAFETY: the interpreter calls this attached, with a `Callable` and as many `args` as it says.
unsafe extern "C" fn call(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; it keeps the callable and its `n` arguments during the call.
    unsafe {
        let py = Python::assume_attached();
        let function = (*callable.cast::<Callable>()).function;
        let n = ffi::PyVectorcall_NARGS(nargsf) as usize;
        let keywords = Keywords {
            names: kwnames,
            values: args.wrapping_add(n),
        };
        let positional = match n {
            0 => &[],
            _ => std::slice::from_raw_parts(args, n),
        };
        let run = || {
            if overrides::active() {
                let name = &function.name;
                if let Some(result) = answered(py, callable, name, positional, keywords)? {
                    return Ok(result);
                }
            }
            function.call(py, callable, positional, keywords)
        };
        guard(py, &function.name, run)
    }
}

/// Keyword arguments as the interpreter hands them over: a tuple of names, or null, and values.
#[derive(Clone, Copy)]
pub(super) struct Keywords {
    pub(super) names: *mut ffi::PyObject,
    pub(super) values: *const *mut ffi::PyObject,
}

impl Keywords {
    pub(super) const NONE: Keywords = Keywords {
        names: std::ptr::null_mut(),
        values: std::ptr::null(),
    };

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_null()
    }

    /// Each name with its value.
    pub(super) fn iter<'py>(
        self,
        py: Python<'py>,
    ) -> impl Iterator<Item = (Bound<'py, PyString>, *mut ffi::PyObject)> {
        let n = match self.names.is_null() {
            true => 0,
            // SAFETY: the tuple outlives the call.
            false => unsafe { ffi::PyTuple_GET_SIZE(self.names) },
        };
        // SAFETY: `i` is below the length of the tuple of strings, which is also the number of
        // values; both outlive the call.
        (0..n).map(move |i| unsafe {
            let name = Bound::from_borrowed_ptr(py, ffi::PyTuple_GET_ITEM(self.names, i));
            (name.cast_into_unchecked(), *self.values.add(i as usize))
        })
    }
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn bind_method(
    func: *mut ffi::PyObject,
    obj: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; the caller gets a reference of its own.
    unsafe {
        if obj.is_null() || obj == ffi::Py_None() {
            ffi::Py_INCREF(func);
            return func;
        }
        crate::libpython::PyMethod_New(func, obj)
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn bind_nothing(
    func: *mut ffi::PyObject,
    _object: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; the caller gets a reference of its own.
    unsafe {
        ffi::Py_INCREF(func);
        func
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; this is the function of a type whose objects are `Callable`s.
    unsafe {
        let py = Python::assume_attached();
        let name = &(*obj.cast::<Callable>()).function.name;
        PyString::new(py, &format!("<built-in method {name}>")).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, &(*obj.cast::<Callable>()).function.name).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_qualname(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, &(*obj.cast::<Callable>()).function.qualified).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_doc(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        let f = (*obj.cast::<Callable>()).function;
        PyString::new(
            py,
            &docs::of_operator(&f.qualified, f.module, &f.forms(), f.inplace),
        )
        .into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_signature(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        let forms = (*obj.cast::<Callable>()).function.forms();
        PyString::new(py, &signature::text_signature(&forms)).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_module(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, (*obj.cast::<Callable>()).function.module).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this method.
    unsafe { get_qualname(obj, std::ptr::null_mut()) }
}

// SAFETY: the interpreter calls this attached, once, with a `Callable` nobody else holds.
unsafe extern "C" fn dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: nobody else has the object; each object holds a reference to its type.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if let Some(free) = (*ty).tp_free {
            free(obj.cast());
        }
        ffi::Py_DECREF(ty.cast());
    }
}

/// Makes a type of callables. Functions, as those of C, are the same as attributes of a class and of
/// its objects; methods are given the object. Nobody else makes objects of it: they would have no
/// function behind them.
pub(super) fn make_type(py: Python<'_>, method: bool) -> PyResult<*mut ffi::PyTypeObject> {
    const READONLY: c_int = 1;
    let member = |name: &'static std::ffi::CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: 19, // T_PYSSIZET
        offset: offset as ffi::Py_ssize_t,
        flags: READONLY,
        doc: std::ptr::null(),
    };
    let getter = |name: &'static std::ffi::CStr, get: ffi::getter| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: std::ptr::null(),
        closure: std::ptr::null_mut(),
    };
    // SAFETY: a table of zeros ends each list, as CPython asks.
    let members = Box::leak(Box::new([
        member(
            c"__vectorcalloffset__",
            std::mem::offset_of!(Callable, vectorcall),
        ),
        unsafe { std::mem::zeroed() },
    ]));
    // SAFETY: what is only zeros is the end of a list of getters.
    let getters = Box::leak(Box::new([
        getter(c"__name__", get_name),
        getter(c"__qualname__", get_qualname),
        getter(c"__doc__", get_doc),
        getter(c"__text_signature__", get_signature),
        getter(c"__module__", get_module),
        unsafe { std::mem::zeroed() },
    ]));
    // SAFETY: what is only zeros is the end of a list of methods.
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunction: reduce,
            },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: std::ptr::null(),
        },
        // SAFETY: an entry of zeros ends the list.
        unsafe { std::mem::zeroed() },
    ]));
    const METHOD_DESCRIPTOR: c_ulong = 1 << 17;
    const HAVE_VECTORCALL: c_ulong = 1 << 11;
    const DISALLOW_INSTANTIATION: c_ulong = 1 << 7;
    let bind: ffi::descrgetfunc = if method { bind_method } else { bind_nothing };
    let (name, descriptor) = match method {
        true => (c"pytensorlib._C.method_descriptor", METHOD_DESCRIPTOR),
        false => (c"pytensorlib._C.builtin", 0),
    };
    let mut slots = [
        type_slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
        type_slot(ffi::Py_tp_descr_get, bind as *mut c_void),
        type_slot(ffi::Py_tp_repr, repr as *mut c_void),
        type_slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        type_slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        type_slot(ffi::Py_tp_getset, getters.as_mut_ptr().cast()),
        type_slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        type_slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr().cast::<c_char>(),
        basicsize: std::mem::size_of::<Callable>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | descriptor | HAVE_VECTORCALL | DISALLOW_INSTANTIATION)
            as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete and its tables live for ever.
    let ty = unsafe { ffi::PyType_FromSpec(&mut spec) };
    if ty.is_null() {
        return Err(PyErr::fetch(py));
    }
    Ok(ty.cast())
}

pub(super) fn new_callable(
    py: Python<'_>,
    ty: *mut ffi::PyTypeObject,
    function: &'static Function,
) -> PyResult<Py<PyAny>> {
    // SAFETY: `ty` allocates objects of the size of `Callable`; its fields are set at once.
    unsafe {
        let alloc = (*ty).tp_alloc.expect("every type allocates");
        let obj = alloc(ty, 0);
        if obj.is_null() {
            return Err(PyErr::fetch(py));
        }
        let c = obj.cast::<Callable>();
        (&raw mut (*c).vectorcall).write(call);
        (&raw mut (*c).function).write(function);
        Ok(Bound::from_owned_ptr(py, obj).unbind())
    }
}

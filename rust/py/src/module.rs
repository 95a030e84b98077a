//! What `nn.Module` does in C: calling it and looking up its parameters, without a Python frame. It
//! is put into a class of Python's, so that modules are laid out like any other object.

use crate::error::guard;
use crate::libpython::{_PyObject_GenericGetAttrWithDict, of_dict, of_type, PyDescr_NewWrapper};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use std::cell::Cell;
use std::ffi::{c_void, CStr};

/// Interned strings and the base's own `__getattr__`.
struct Names {
    tables: [Py<PyString>; 3],
    hooked: Py<PyString>,
    forward: Py<PyString>,
    getattr: Py<PyString>,
    getattribute: Py<PyString>,
    base_getattr: Py<PyAny>,
    base_getattribute: Py<PyAny>,
    fast: ffi::getattrofunc,
}

static NAMES: PyOnceLock<Names> = PyOnceLock::new();

/// Calls of modules deeper than this are not told.
const DEPTH: usize = 32;

thread_local! {
    /// How many calls of modules are at work, and the modules, the outermost first. Each is kept while
    /// it is here, and has a place of its own: calls of one thread need not nest, as under greenlets.
    static AT_WORK: (Cell<usize>, [Cell<*mut ffi::PyObject>; DEPTH]) =
        const { (Cell::new(0), [const { Cell::new(std::ptr::null_mut()) }; DEPTH]) };
}

/// The classes of the modules at work on this thread: `Net > Sequential > Linear`.
pub fn at_work() -> String {
    AT_WORK.with(|(_, modules)| {
        let mut out = String::new();
        for module in modules.iter().map(Cell::get).filter(|m| !m.is_null()) {
            // SAFETY: the module is kept, and its class with it; the name is a text that the class owns.
            let name = unsafe { CStr::from_ptr((*ffi::Py_TYPE(module)).tp_name) };
            let name = name.to_string_lossy();
            out.push_str(if out.is_empty() { "" } else { " > " });
            out.push_str(name.rsplit('.').next().unwrap_or(""));
        }
        out
    })
}

/// Notes that a module's call begins; returns its place, if there is one.
// SAFETY: the caller is attached; the module is alive.
unsafe fn enter(module: *mut ffi::PyObject) -> Option<usize> {
    AT_WORK.with(|(count, modules)| {
        let depth = count.replace(count.get() + 1).min(DEPTH);
        let free = |&i: &usize| modules[i].get().is_null();
        let place = (depth..DEPTH).chain(0..depth).find(free)?;
        // SAFETY: the caller is attached; the module is alive.
        modules[place].set(unsafe { ffi::Py_NewRef(module) });
        Some(place)
    })
}

/// Notes that the call that got this place has ended.
// SAFETY: the caller is attached.
unsafe fn leave(place: Option<usize>) {
    let module = AT_WORK.with(|(count, modules)| {
        count.set(count.get() - 1);
        place.map(|i| modules[i].replace(std::ptr::null_mut()))
    });
    if let Some(module) = module {
        // SAFETY: the reference was the place's own.
        unsafe { ffi::Py_DECREF(module) };
    }
}

/// An entry of `_parameters`, `_buffers` or `_modules`, in that order; null where there is none,
/// with an error only where looking failed.
// SAFETY: the caller is attached; both objects are alive.
unsafe fn registered(
    names: &Names,
    obj: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; what is borrowed is kept while Python code may run.
    unsafe {
        let own = ffi::PyObject_GenericGetDict(obj, std::ptr::null_mut());
        if own.is_null() {
            return own;
        }
        let mut found = std::ptr::null_mut();
        for key in &names.tables {
            // What is looked up, and whom, may run Python code that takes the table away.
            let table = of_dict(own, key.as_ptr());
            if table.is_null() {
                if ffi::PyErr_Occurred().is_null() {
                    continue;
                }
                break;
            }
            let mut failed = false;
            if ffi::PyDict_CheckExact(table) != 0 {
                found = of_dict(table, name);
            } else {
                // Someone put a mapping of their own there.
                match ffi::PySequence_Contains(table, name) {
                    0 => {}
                    1 => found = ffi::PyObject_GetItem(table, name),
                    _ => failed = true,
                }
            }
            ffi::Py_DECREF(table);
            if failed {
                break;
            }
            if !found.is_null() || !ffi::PyErr_Occurred().is_null() {
                break;
            }
        }
        ffi::Py_DECREF(own);
        found
    }
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe fn missing(obj: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps both during the call.
    unsafe {
        let py = Python::assume_attached();
        guard(py, "__getattr__", || {
            let class = Bound::from_borrowed_ptr(py, obj).get_type();
            let name = Bound::from_borrowed_ptr(py, name);
            Err(PyAttributeError::new_err(format!(
                "'{}' object has no attribute '{}'",
                class.name()?,
                name.str()?
            )))
        })
    }
}

/// The slot of classes whose `__getattr__` is the base's: the usual places first.
// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn get_attribute(
    obj: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps both during the call.
    unsafe {
        let found = _PyObject_GenericGetAttrWithDict(obj, name, std::ptr::null_mut(), 1);
        if !found.is_null() || !ffi::PyErr_Occurred().is_null() {
            return found;
        }
        get_registered(obj, name)
    }
}

/// `__getattr__`.
// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn get_registered(
    obj: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps both during the call.
    unsafe {
        let Some(names) = NAMES.get(Python::assume_attached()) else {
            return missing(obj, name);
        };
        let found = registered(names, obj, name);
        if !found.is_null() || !ffi::PyErr_Occurred().is_null() {
            return found;
        }
        missing(obj, name)
    }
}

/// `__call__`: `forward`, or where the flag `_hooked` is up `_call_hooked`. An error that passes
/// is noted by `_name_path`.
// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn call(
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the module and its arguments during the call.
    unsafe {
        let py = Python::assume_attached();
        let Some(names) = NAMES.get(py) else {
            return missing(obj, args);
        };
        let hooked = ffi::PyObject_GetAttr(obj, names.hooked.as_ptr());
        if hooked.is_null() {
            return hooked;
        }
        let flag = match hooked == ffi::Py_False() {
            true => 0,
            false => ffi::PyObject_IsTrue(hooked),
        };
        ffi::Py_DECREF(hooked);
        let place = enter(obj);
        let result = match flag {
            0 => forward(names, obj, args, kwargs),
            1 => call_hooked(py, obj, args, kwargs),
            _ => std::ptr::null_mut(),
        };
        leave(place);
        if result.is_null() {
            note(py, obj);
        }
        result
    }
}

// SAFETY: the caller is attached; the module, a tuple and a dict (or null) are alive.
unsafe fn forward(
    names: &Names,
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; the function is kept while it runs, and the stack has room for `n`
    // arguments after the module.
    unsafe {
        let name = names.forward.as_ptr();
        let class = ffi::Py_TYPE(obj);
        // Looking at the instance may run Python code that takes it from the class.
        let function = of_type(class, name);
        let n = ffi::PyTuple_GET_SIZE(args) as usize;
        const MOST: usize = 6;
        // A plain function of the class that the instance does not hide needs no bound method.
        let plain = !function.is_null()
            && ffi::PyFunction_Check(function) != 0
            && kwargs.is_null()
            && n < MOST
            && (*class)
                .tp_getattro
                .is_some_and(|f| std::ptr::fn_addr_eq(f, names.fast))
            && !hides(obj, name);
        if plain {
            let mut stack = [std::ptr::null_mut(); MOST];
            stack[0] = obj;
            for (i, slot) in stack[1..=n].iter_mut().enumerate() {
                *slot = ffi::PyTuple_GET_ITEM(args, i as ffi::Py_ssize_t);
            }
            let null = std::ptr::null_mut();
            let result = ffi::PyObject_Vectorcall(function, stack.as_ptr(), n + 1, null);
            ffi::Py_DECREF(function);
            return result;
        }
        ffi::Py_XDECREF(function);
        let method = ffi::PyObject_GetAttr(obj, name);
        if method.is_null() {
            return method;
        }
        let result = ffi::PyObject_Call(method, args, kwargs);
        ffi::Py_DECREF(method);
        result
    }
}

/// Whether the instance has an attribute of its own by this name, or may have.
// SAFETY: the caller is attached; module and name are alive.
unsafe fn hides(obj: *mut ffi::PyObject, name: *mut ffi::PyObject) -> bool {
    // SAFETY: the interpreter is held, and keeps both during the call.
    unsafe {
        let own = ffi::PyObject_GenericGetDict(obj, std::ptr::null_mut());
        if own.is_null() {
            ffi::PyErr_Clear();
            return true;
        }
        let found = ffi::PyDict_Contains(own, name);
        ffi::Py_DECREF(own);
        if found < 0 {
            ffi::PyErr_Clear();
        }
        found != 0
    }
}

// SAFETY: the caller is attached; the module, a tuple and a dict (or null) are alive.
unsafe fn call_hooked(
    py: Python<'_>,
    obj: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the module and its arguments during the call.
    unsafe {
        guard(py, "__call__", || {
            let args = Bound::from_borrowed_ptr(py, args);
            let kwargs = match kwargs.is_null() {
                true => pyo3::types::PyDict::new(py).into_any(),
                false => Bound::from_borrowed_ptr(py, kwargs),
            };
            let module = Bound::from_borrowed_ptr(py, obj);
            Ok(module
                .call_method1("_call_hooked", (args, kwargs))?
                .unbind())
        })
    }
}

/// Lets the module add to the error in flight where it happened.
// SAFETY: the caller is attached, with an error set; the module is alive.
#[cold]
unsafe fn note(py: Python<'_>, obj: *mut ffi::PyObject) {
    // SAFETY: the interpreter is held, and keeps the module during the call.
    unsafe {
        let Some(error) = PyErr::take(py) else { return };
        if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
            let module = Bound::from_borrowed_ptr(py, obj);
            if let Err(e) = module.call_method1("_name_path", (error.value(py),)) {
                return e.restore(py);
            }
        }
        error.restore(py);
    }
}

/// Gives a class whose attribute lookup is the base's the fast slot. Assigning `__getattr__` to
/// a class later makes Python take the slot back.
#[pyfunction]
fn _fast_attributes(py: Python<'_>, class: &Bound<'_, PyType>) {
    let Some(names) = NAMES.get(py) else { return };
    // SAFETY: a live class of the interpreter we hold; the slot keeps to Python's meaning, for
    // both methods behind it are the ones that it stands for.
    unsafe {
        let ty = class.as_type_ptr();
        let has = |name: &Py<PyString>, method: &Py<PyAny>| {
            let found = of_type(ty, name.as_ptr());
            ffi::Py_XDECREF(found);
            found == method.as_ptr()
        };
        if has(&names.getattr, &names.base_getattr)
            && has(&names.getattribute, &names.base_getattribute)
        {
            (*ty).tp_getattro = Some(names.fast);
        }
    }
}

/// Gives a plain class of Python's the call and the attribute lookup above.
#[pyfunction]
fn _make_module_base<'py>(
    py: Python<'py>,
    class: Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyType>> {
    let ty = class.as_type_ptr();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"__getattr__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunction: get_registered,
        },
        ml_flags: ffi::METH_O,
        ml_doc: std::ptr::null(),
    }));
    // `type` has a method for the slot of calls, which describes that slot.
    let described = py.get_type::<PyType>().getattr("__dict__")?;
    let described = described.get_item("__call__")?;
    // SAFETY: a live class; the definition lives for ever; what describes a slot is a wrapper of
    // the interpreter's, checked here.
    let (getattr, calling) = unsafe {
        if ffi::Py_TYPE(described.as_ptr()) != &raw mut ffi::PyWrapperDescr_Type {
            return Err(PyTypeError::new_err("type.__call__ is no slot's method"));
        }
        let base = (*described.as_ptr().cast::<ffi::PyWrapperDescrObject>()).d_base;
        (
            Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(ty, definition))?,
            Bound::from_owned_ptr_or_err(py, PyDescr_NewWrapper(ty, base, call as *mut c_void))?,
        )
    };
    class.setattr("__getattr__", &getattr)?;
    class.setattr("__call__", calling)?;
    let intern = |s| PyString::intern(py, s).unbind();
    let object = py.get_type::<PyAny>().getattr("__dict__")?;
    let _ = NAMES.set(
        py,
        Names {
            tables: ["_parameters", "_buffers", "_modules"].map(intern),
            hooked: intern("_hooked"),
            forward: intern("forward"),
            getattr: intern("__getattr__"),
            getattribute: intern("__getattribute__"),
            base_getattr: getattr.unbind(),
            base_getattribute: object.get_item("__getattribute__")?.unbind(),
            fast: get_attribute,
        },
    );
    Ok(class)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_make_module_base, m)?)?;
    m.add_function(wrap_pyfunction!(_fast_attributes, m)?)?;
    Ok(())
}

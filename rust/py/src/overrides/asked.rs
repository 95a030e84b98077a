//! Attributes, methods and functions that are no operators ask `__torch_function__` once there is a
//! class or a mode to ask: then their definitions are replaced by others that ask first, so that nobody
//! pays before, and the objects by which programs know them stay the same.

use super::{active, answer, asks, Call};
use crate::error::caught;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The method by whose name PyTorch asks for an operator.
pub fn asked(operator: &str) -> &str {
    match operator {
        "__add__" | "__radd__" => "add",
        "__sub__" => "sub",
        "__mul__" | "__rmul__" => "mul",
        "__truediv__" | "__div__" => "div",
        "__rtruediv__" => "__rdiv__",
        "__pow__" => "pow",
        "__ipow__" => "pow_",
        "__mod__" => "remainder",
        "__matmul__" => "matmul",
        "__rand__" => "bitwise_and",
        "__ror__" => "bitwise_or",
        "__rxor__" => "bitwise_xor",
        "__lt__" => "lt",
        "__le__" => "le",
        "__ne__" => "ne",
        "__gt__" => "gt",
        "__ge__" => "ge",
        "__neg__" => "neg",
        "__pos__" => "positive",
        "__abs__" => "abs",
        "__iadd__" => "add_",
        "__isub__" => "sub_",
        "__imul__" => "mul_",
        "__itruediv__" | "__idiv__" => "div_",
        "__ifloordiv__" => "floor_divide_",
        "__imod__" => "remainder_",
        other => other,
    }
}

/// An attribute of the class as it was.
struct Attribute {
    /// The descriptor that is told: another one where an attribute has several names.
    descriptor: *mut ffi::PyObject,
    get: Option<ffi::getter>,
    set: Option<ffi::setter>,
    closure: *mut c_void,
}

/// What modes and the class of a tensor answer where an attribute is read or written; `None` where
/// nobody does.
fn of_attribute(
    py: Python<'_>,
    attribute: &Attribute,
    how: &str,
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: the descriptor lives for ever, the others during the call.
    let (descriptor, obj, value) = unsafe {
        (
            Bound::from_borrowed_ptr(py, attribute.descriptor),
            Bound::from_borrowed_ptr(py, obj),
            Bound::from_borrowed_ptr_or_opt(py, value),
        )
    };
    if !asks(&obj)? {
        return Ok(None);
    }
    let args = std::iter::once(obj).chain(value).collect::<Vec<_>>();
    answer(
        &descriptor.getattr(how)?,
        &PyTuple::new(py, args)?,
        Some(&PyDict::new(py)),
        Call::Member,
    )
}

// SAFETY: the interpreter calls this attached, with a live tensor and the attribute as `closure`.
unsafe extern "C" fn get(obj: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: see above; attributes live for ever.
    unsafe {
        let attribute = &*closure.cast::<Attribute>();
        if active() {
            let py = Python::assume_attached();
            let none = std::ptr::null_mut();
            match caught("__get__", || {
                of_attribute(py, attribute, "__get__", obj, none)
            }) {
                Ok(None) => {}
                Ok(Some(y)) => return y.into_ptr(),
                Err(e) => {
                    e.restore(py);
                    return std::ptr::null_mut();
                }
            }
        }
        attribute.get.expect("it is read")(obj, attribute.closure)
    }
}

// SAFETY: as `get`; `value` is null where the attribute is deleted.
unsafe extern "C" fn set(
    obj: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> c_int {
    // SAFETY: see above; attributes live for ever.
    unsafe {
        let attribute = &*closure.cast::<Attribute>();
        if active() {
            let py = Python::assume_attached();
            let how = if value.is_null() {
                "__delete__"
            } else {
                "__set__"
            };
            match caught(how, || of_attribute(py, attribute, how, obj, value)) {
                Ok(None) => {}
                Ok(Some(_)) => return 0,
                Err(e) => {
                    e.restore(py);
                    return -1;
                }
            }
        }
        attribute.set.expect("it is written")(obj, value, attribute.closure)
    }
}

/// A method or function as it was. Its place among all of them is all that a C function knows of it.
struct Routine {
    /// What is told.
    object: *mut ffi::PyObject,
    call: Call,
    meth: ffi::PyMethodDefPointer,
}

const ROUTINES: usize = 64;
static TABLE: [AtomicPtr<Routine>; ROUTINES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; ROUTINES];
static COUNT: Mutex<usize> = Mutex::new(0);

/// What modes and classes answer for a call of a routine.
///
/// # Safety
/// All objects are alive, as in a call by the interpreter.
unsafe fn of_routine(
    routine: &Routine,
    obj: *mut ffi::PyObject,
    args: &[*mut ffi::PyObject],
    names: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
) -> Result<Option<Py<PyAny>>, ()> {
    // SAFETY: all objects are alive, as in a call by the interpreter; routines live for ever.
    unsafe {
        let py = Python::assume_attached();
        let run = || {
            let function = Bound::from_borrowed_ptr(py, routine.object);
            let member = routine.call == Call::Member;
            if member && !asks(&Bound::from_borrowed_ptr(py, obj))? {
                return Ok(None);
            }
            let all: Vec<_> = match member {
                true => std::iter::once(&obj).chain(args).copied().collect(),
                false => args.to_vec(),
            };
            let (args, kwargs) = super::arguments(py, &all, names, values)?;
            answer(&function, &args, kwargs.as_ref(), routine.call)
        };
        caught("__torch_function__", run).map_err(|e| e.restore(py))
    }
}

/// The routine at a place.
///
/// # Safety
/// The place was given to a routine.
unsafe fn routine(place: usize) -> &'static Routine {
    // SAFETY: the place was given to a routine; routines live for ever.
    unsafe { &*TABLE[place].load(Ordering::Acquire) }
}

// SAFETY: the interpreter calls this attached, with live objects, for a function without arguments or
// with one.
unsafe extern "C" fn plain<const PLACE: usize>(
    obj: *mut ffi::PyObject,
    arg: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: see above; only the routine at this place is called so.
    unsafe {
        let routine = routine(PLACE);
        if active() {
            let one = [arg];
            let args = if arg.is_null() { &[][..] } else { &one[..] };
            let none = std::ptr::null_mut();
            match of_routine(routine, obj, args, none, std::ptr::null()) {
                Ok(None) => {}
                Ok(Some(y)) => return y.into_ptr(),
                Err(()) => return std::ptr::null_mut(),
            }
        }
        (routine.meth.PyCFunction)(obj, arg)
    }
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn fast<const PLACE: usize>(
    obj: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    n: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: see above; only the routine at this place is called so.
    unsafe {
        let routine = routine(PLACE);
        if active() {
            let given = match n {
                0 => &[],
                _ => std::slice::from_raw_parts(args, n as usize),
            };
            match of_routine(routine, obj, given, names, args.wrapping_add(n as usize)) {
                Ok(None) => {}
                Ok(Some(y)) => return y.into_ptr(),
                Err(()) => return std::ptr::null_mut(),
            }
        }
        (routine.meth.PyCFunctionFastWithKeywords)(obj, args, n, names)
    }
}

macro_rules! places {
    ($function:ident: $($tens:literal)*) => { [$(
        [$function::<{ 8 * $tens }>, $function::<{ 8 * $tens + 1 }>, $function::<{ 8 * $tens + 2 }>,
        $function::<{ 8 * $tens + 3 }>, $function::<{ 8 * $tens + 4 }>,
        $function::<{ 8 * $tens + 5 }>, $function::<{ 8 * $tens + 6 }>,
        $function::<{ 8 * $tens + 7 }>]
    ),*] };
}
static PLAIN: [[ffi::PyCFunction; 8]; ROUTINES / 8] = places!(plain: 0 1 2 3 4 5 6 7);
static FAST: [[ffi::PyCFunctionFastWithKeywords; 8]; ROUTINES / 8] = places!(fast: 0 1 2 3 4 5 6 7);

/// Lets a descriptor of the class of tensors, or a function of the extension, ask
/// first, as `told`; of one that `makes` tensors of data only modes are told.
#[pyfunction]
#[pyo3(signature = (object, told, makes=false))]
fn _ask_first(object: &Bound<'_, PyAny>, told: &Bound<'_, PyAny>, makes: bool) -> PyResult<()> {
    let ptr = object.as_ptr();
    // SAFETY: the type of an object says what it is; definitions that replace others live for ever, as
    // do the objects, of which a reference is kept. The interpreter is held: nobody reads meanwhile.
    unsafe {
        let class = ffi::Py_TYPE(ptr);
        if class == &raw mut ffi::PyGetSetDescr_Type {
            let descriptor = ptr.cast::<ffi::PyGetSetDescrObject>();
            let old = &*(*descriptor).d_getset;
            let attribute = Box::leak(Box::new(Attribute {
                descriptor: told.clone().into_ptr(),
                get: old.get,
                set: old.set,
                closure: old.closure,
            }));
            (*descriptor).d_getset = Box::leak(Box::new(ffi::PyGetSetDef {
                name: old.name,
                get: old.get.map(|_| get as ffi::getter),
                set: old.set.map(|_| set as ffi::setter),
                doc: old.doc,
                closure: (&raw mut *attribute).cast(),
            }));
            return Ok(());
        }
        let method = class == &raw mut ffi::PyMethodDescr_Type;
        let definition: *mut *mut ffi::PyMethodDef = if method {
            &raw mut (*ptr.cast::<ffi::PyMethodDescrObject>()).d_method
        } else if class == &raw mut ffi::PyCFunction_Type {
            &raw mut (*ptr.cast::<ffi::PyCFunctionObject>()).m_ml
        } else {
            return Err(PyRuntimeError::new_err(format!("cannot make {object} ask")));
        };
        let mut new = **definition;
        let mut count = COUNT.lock();
        let place = *count;
        if place == ROUTINES {
            return Err(PyRuntimeError::new_err(
                "more functions than there are places",
            ));
        }
        let routine = Box::new(Routine {
            object: told.clone().into_ptr(),
            call: match (method, makes) {
                (true, _) => Call::Member,
                (false, true) => Call::Maker,
                (false, false) => Call::Operator,
            },
            meth: new.ml_meth,
        });
        let (row, column) = (place / 8, place % 8);
        // Whether it is of a class or of none does not change how it is called.
        let placed = ffi::METH_STATIC | ffi::METH_CLASS | ffi::METH_COEXIST;
        new.ml_meth = match new.ml_flags & !placed {
            ffi::METH_NOARGS | ffi::METH_O => ffi::PyMethodDefPointer {
                PyCFunction: PLAIN[row][column],
            },
            f if f == ffi::METH_FASTCALL | ffi::METH_KEYWORDS => ffi::PyMethodDefPointer {
                PyCFunctionFastWithKeywords: FAST[row][column],
            },
            f => return Err(PyRuntimeError::new_err(format!("{object} has flags {f}"))),
        };
        TABLE[place].store(Box::leak(routine), Ordering::Release);
        *count += 1;
        *definition = Box::leak(Box::new(new));
    }
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_ask_first, m)?)
}

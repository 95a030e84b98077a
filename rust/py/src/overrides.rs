//! `__torch_function__`: classes that answer for functions of tensors themselves. Nobody pays for
//! it before such a class exists.

use crate::convert::is_tensor;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a subclass of `Tensor` answers for itself.
static EXISTS: AtomicBool = AtomicBool::new(false);

thread_local!(static OFF: Cell<bool> = const { Cell::new(false) });

/// Whether this thread asks no class.
pub fn is_off() -> bool {
    OFF.get()
}

/// Sets that for this thread.
pub fn set_off(off: bool) {
    OFF.set(off);
}

/// Whether arguments must be asked.
#[inline]
pub fn active() -> bool {
    EXISTS.load(Ordering::Relaxed) && !OFF.get()
}

/// `__torch_function__` of an object's class; `None` where it has none, or one that says nothing
/// of its own: plain tensors and parameters.
fn handler<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static NAME: PyOnceLock<Py<PyString>> = PyOnceLock::new();
    let py = obj.py();
    let class = obj.get_type();
    if class.is(py.get_type::<PyTensor>()) {
        return Ok(None);
    }
    let name = NAME.get_or_init(py, || PyString::intern(py, "__torch_function__").unbind());
    let Some(found) = class.getattr_opt(name.bind(py))? else {
        return Ok(None);
    };
    let off = py
        .import("pytensorlib._C")?
        .getattr("_disabled_torch_function_impl")?;
    Ok((!found.is_none() && !found.is(&off)).then_some(found))
}

/// The arguments whose classes answer, subclasses before their bases; lists are looked into.
fn overloaded<'py>(args: &[Bound<'py, PyAny>]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut consider = |obj: &Bound<'py, PyAny>| -> PyResult<()> {
        let class = obj.get_type();
        if found.iter().any(|f| f.get_type().is(&class)) || handler(obj)?.is_none() {
            return Ok(());
        }
        let mut at = found.len();
        for (i, f) in found.iter().enumerate() {
            if class.is_subclass(&f.get_type())? {
                at = i;
                break;
            }
        }
        found.insert(at, obj.clone());
        Ok(())
    };
    for arg in args {
        if is_tensor(arg) {
            consider(arg)?;
        } else if let Ok(list) = arg.cast::<PyList>() {
            list.iter().try_for_each(|o| consider(&o))?;
        } else if let Ok(tuple) = arg.cast::<PyTuple>() {
            tuple.iter().try_for_each(|o| consider(&o))?;
        } else {
            consider(arg)?;
        }
    }
    Ok(found)
}

/// Lets the classes of the arguments answer for `function`; `None` where none of them does.
pub fn answer(
    function: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<Py<PyAny>>> {
    if OFF.get() {
        return Ok(None);
    }
    let py = function.py();
    let mut all: Vec<Bound<'_, PyAny>> = args.iter().collect();
    if let Some(kwargs) = kwargs {
        all.extend(kwargs.values());
    }
    let found = overloaded(&all)?;
    if found.is_empty() {
        return Ok(None);
    }
    let types = PyTuple::new(py, found.iter().map(|f| f.get_type()))?;
    let empty = PyDict::new(py);
    let kwargs = kwargs.unwrap_or(&empty);
    for obj in &found {
        let Some(handler) = handler(obj)? else {
            continue;
        };
        let result = handler.call1((function, &types, args, kwargs))?;
        if !result.is(py.NotImplemented()) {
            return Ok(Some(result.unbind()));
        }
    }
    let name = function.getattr("__name__")?;
    Err(PyTypeError::new_err(format!(
        "no implementation found for 'torch.{name}' on types that implement __torch_function__: {}",
        types.as_any().cast::<PyTuple>()?.to_list().repr()?
    )))
}

/// As [`answer`], for the method or operator `name` of the class.
pub fn method(
    py: Python<'_>,
    name: &str,
    args: &[&Bound<'_, PyAny>],
) -> PyResult<Option<Py<PyAny>>> {
    if !args.iter().any(|a| is_tensor(a)) {
        return Ok(None);
    }
    let function = py.get_type::<PyTensor>().getattr(name)?;
    answer(&function, &PyTuple::new(py, args)?, None)
}

/// The arguments of a vectorcall as a tuple and a dictionary.
///
/// # Safety
/// All objects are alive; `names` is null or a tuple of strings, as many as `values` has.
pub unsafe fn arguments<'py>(
    py: Python<'py>,
    args: &[*mut ffi::PyObject],
    names: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    // SAFETY: the objects live during the call, and `values` has one for each name.
    unsafe {
        let object = |p: *mut ffi::PyObject| Bound::from_borrowed_ptr(py, p);
        let positional = PyTuple::new(py, args.iter().map(|&p| object(p)).collect::<Vec<_>>())?;
        if names.is_null() {
            return Ok((positional, None));
        }
        let kwargs = PyDict::new(py);
        for i in 0..ffi::PyTuple_GET_SIZE(names) {
            kwargs.set_item(
                object(ffi::PyTuple_GET_ITEM(names, i)),
                object(*values.add(i as usize)),
            )?;
        }
        Ok((positional, Some(kwargs)))
    }
}

/// From now on arguments are asked.
#[pyfunction]
fn _enable_torch_function() {
    EXISTS.store(true, Ordering::Relaxed);
}

/// Turns `__torch_function__` off (or on again) on this thread; returns whether it was off.
#[pyfunction]
fn _torch_function_off(off: bool) -> bool {
    OFF.replace(off)
}

/// The `__torch_function__` of classes that leave everything to the function.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<&Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let empty = PyTuple::empty(func.py());
    let before = OFF.replace(true);
    let result = func.call(args.unwrap_or(&empty), kwargs);
    OFF.set(before);
    result
}

/// The arguments whose classes answer for themselves.
#[pyfunction]
fn _overloaded_args<'py>(args: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match OFF.get() {
        true => Ok(Vec::new()),
        false => overloaded(&args),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_enable_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_torch_function_off, m)?)?;
    m.add_function(wrap_pyfunction!(_disabled_torch_function_impl, m)?)?;
    m.add_function(wrap_pyfunction!(_overloaded_args, m)?)?;
    Ok(())
}

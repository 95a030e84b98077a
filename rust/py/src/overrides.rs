//! `__torch_function__`: classes and modes that answer for functions of tensors themselves. Nobody
//! pays for it before such a class exists, or while no mode is on.

use crate::convert::is_tensor;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many reasons there are to ask: subclasses of `Tensor` that answer, modes of all threads.
static REASONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OFF: Cell<bool> = const { Cell::new(false) };
    /// The last one answers, without itself.
    static MODES: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

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
    REASONS.load(Ordering::Relaxed) != 0 && !OFF.get()
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
    let mode = MODES.with_borrow_mut(Vec::pop);
    if found.is_empty() && mode.is_none() {
        return Ok(None);
    }
    let types = PyTuple::new(py, found.iter().map(|f| f.get_type()))?;
    let empty = PyDict::new(py);
    let kwargs = kwargs.unwrap_or(&empty);
    if let Some(mode) = mode {
        if let Some(result) = mode_answer(mode, function, &types, args, kwargs)? {
            return Ok(Some(result));
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
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

/// The method by whose name PyTorch asks for an operator.
pub fn asked(operator: &str) -> &str {
    match operator {
        "__add__" | "__radd__" => "add",
        "__sub__" => "sub",
        "__mul__" | "__rmul__" => "mul",
        "__truediv__" => "div",
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
        "__itruediv__" => "div_",
        "__ifloordiv__" => "floor_divide_",
        "__imod__" => "remainder_",
        other => other,
    }
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
    let function = py.get_type::<PyTensor>().getattr(asked(name))?;
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
    REASONS.fetch_add(1, Ordering::Relaxed);
}

/// Lets an object answer for every function on this thread, by its `__torch_function__`.
#[pyfunction]
fn _push_torch_function_mode(mode: Py<PyAny>) {
    REASONS.fetch_add(1, Ordering::Relaxed);
    MODES.with_borrow_mut(|modes| modes.push(mode));
}

/// Takes the last mode away and returns it.
#[pyfunction]
fn _pop_torch_function_mode() -> PyResult<Py<PyAny>> {
    let mode = MODES.with_borrow_mut(Vec::pop);
    let mode = mode.ok_or_else(|| PyRuntimeError::new_err("there is no mode to take away"))?;
    REASONS.fetch_sub(1, Ordering::Relaxed);
    Ok(mode)
}

/// The modes of this thread, the one that is asked first at the end.
#[pyfunction]
fn _torch_function_modes(py: Python<'_>) -> Vec<Py<PyAny>> {
    MODES.with_borrow(|modes| modes.iter().map(|m| m.clone_ref(py)).collect())
}

/// Asks the last mode, which is away meanwhile.
fn mode_answer(
    mode: Py<PyAny>,
    function: &Bound<'_, PyAny>,
    types: &Bound<'_, PyTuple>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<Option<Py<PyAny>>> {
    /// Puts the mode back, also when the call unwinds.
    struct Away(Option<Py<PyAny>>);
    impl Drop for Away {
        fn drop(&mut self) {
            let mode = self.0.take();
            MODES.with_borrow_mut(|modes| modes.extend(mode));
        }
    }
    let py = function.py();
    let away = Away(Some(mode));
    let mode = away.0.as_ref().map(|m| m.bind(py));
    let Some(mode) = mode else { return Ok(None) };
    let result = mode.call_method1(
        intern!(py, "__torch_function__"),
        (function, types, args, kwargs),
    )?;
    Ok((!result.is(py.NotImplemented())).then(|| result.unbind()))
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
    m.add_function(wrap_pyfunction!(_push_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_torch_function_modes, m)?)?;
    m.add_function(wrap_pyfunction!(_disabled_torch_function_impl, m)?)?;
    m.add_function(wrap_pyfunction!(_overloaded_args, m)?)?;
    Ok(())
}

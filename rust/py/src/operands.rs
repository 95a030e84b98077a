//! The operands of operators written as methods.

use crate::cell::PyTensor;
use crate::convert::operand;
use crate::object::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// `a.name(b)` through the op table, `NotImplemented` where `b` is no operand.
pub fn named(a: &Bound<'_, PyTensor>, name: &str, b: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if operand(b)?.is_none() {
        return Ok(b.py().NotImplemented());
    }
    let b = lift(b)?;
    Ok(a.getattr(name)?.call1((b,))?.unbind())
}

/// NumPy arrays as tensors; everything else as it is.
pub fn lift<'py>(b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if b.cast::<PyTensor>().is_ok() || b.is_instance_of::<PyFloat>() || b.is_instance_of::<PyInt>()
    {
        return Ok(b.clone());
    }
    match operand(b)? {
        Some(t) => Ok(wrap(b.py(), t)?.into_bound(b.py())),
        None => Ok(b.clone()),
    }
}

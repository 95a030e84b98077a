//! The operands of operators written as methods.

use crate::cell::PyTensor;
use crate::convert::operand;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use pytensorlib_core::dtype::Scalar;
use pytensorlib_core::ops::pointwise::{apply, Pointwise};

/// `a op b`, `NotImplemented` where `b` is no operand.
pub fn binary<P: Pointwise<2>>(
    op: P,
    a: &PyTensor,
    b: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Py<PyAny>> {
    let py = b.py();
    let Some(b) = operand(b)? else {
        return Ok(py.NotImplemented());
    };
    let a = a.get();
    let y = if swapped {
        apply(op, [&b, &a])
    } else {
        apply(op, [&a, &b])
    };
    wrap(py, y.py()?)
}

/// The factor of a plain sum.
pub const ONE: Scalar = Scalar::Int(1);

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

/// `b.name(a)` in the same way.
pub fn named_swapped(
    a: &Bound<'_, PyTensor>,
    name: &str,
    b: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let Some(t) = operand(b)? else {
        return Ok(b.py().NotImplemented());
    };
    let b = wrap(b.py(), t)?;
    Ok(b.bind(a.py()).getattr(name)?.call1((a,))?.unbind())
}

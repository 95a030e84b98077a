//! Tensors as nested lists.

use crate::error::IntoPy;
use pyo3::ffi;
use pyo3::prelude::*;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::tensor::Tensor;

/// A tensor as nested lists of Python numbers.
pub fn to_list(py: Python<'_>, t: &Tensor) -> PyResult<Py<PyAny>> {
    let wide = match t.dtype() {
        DType::C32 => DType::C64,
        d @ (DType::Bool | DType::C64 | DType::C128 | DType::U64) => d,
        d if d.is_float() => DType::F64,
        _ => DType::I64,
    };
    let host = t.to_host().py()?.prepared(wide).py()?;
    let mut at = host.bytes_ptr().cast_const();
    let (shape, size) = (&host.shape()[..], wide.size());
    // SAFETY: each reader is given addresses of elements of its type, one after the other, in a
    // contiguous tensor; it returns a new reference.
    unsafe {
        match wide {
            DType::Bool => lists(py, shape, &mut at, size, |p| {
                ffi::PyBool_FromLong((*p != 0) as std::ffi::c_long)
            }),
            DType::F64 => lists(py, shape, &mut at, size, |p| {
                ffi::PyFloat_FromDouble(*p.cast::<f64>())
            }),
            DType::C64 => lists(py, shape, &mut at, size, |p| {
                let p = p.cast::<f32>();
                ffi::PyComplex_FromDoubles(*p as f64, *p.add(1) as f64)
            }),
            DType::C128 => lists(py, shape, &mut at, size, |p| {
                let p = p.cast::<f64>();
                ffi::PyComplex_FromDoubles(*p, *p.add(1))
            }),
            DType::U64 => lists(py, shape, &mut at, size, |p| {
                ffi::PyLong_FromUnsignedLongLong(*p.cast::<u64>())
            }),
            _ => lists(py, shape, &mut at, size, |p| {
                ffi::PyLong_FromLongLong(*p.cast::<i64>())
            }),
        }
        .map(Bound::unbind)
    }
}

/// Nested lists of what `make` reads at `at`, which moves on.
// SAFETY: callers pass the address of as many elements as the shape has, and a reader of them.
unsafe fn lists<'py>(
    py: Python<'py>,
    shape: &[usize],
    at: &mut *const u8,
    size: usize,
    make: impl Fn(*const u8) -> *mut ffi::PyObject + Copy,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: there are as many elements at `at`, which `make` reads; a new list takes each item over.
    unsafe {
        let Some((&n, rest)) = shape.split_first() else {
            let item = make(*at);
            *at = at.wrapping_add(size);
            return Bound::from_owned_ptr_or_err(py, item);
        };
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(n as isize))?;
        for i in 0..n {
            let item = if rest.is_empty() {
                let item = make(*at);
                *at = at.wrapping_add(size);
                if item.is_null() {
                    return Err(PyErr::fetch(py));
                }
                item
            } else {
                lists(py, rest, at, size, make)?.into_ptr()
            };
            ffi::PyList_SET_ITEM(list.as_ptr(), i as isize, item);
        }
        Ok(list)
    }
}

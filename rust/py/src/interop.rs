//! Data from and to the rest of Python: indexing, NumPy, DLPack, nested lists.

use crate::error::IntoPy;
use crate::tensor::{borrow, wrap, PyTensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pytensorlib_core::dtype::DType;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::storage::Storage;
use pytensorlib_core::tensor::Tensor;
use std::ptr::NonNull;

pub fn get_item(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = slf.get().get();
    wrap(slf.py(), t.select(0, key.extract()?).py()?)
}

pub fn set_item(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let t = slf.get().get().select(0, key.extract()?).py()?;
    t.copy_from(&borrow(value)?).py()
}

/// The code of NumPy's array interface for a dtype; bfloat16 has none.
fn typestr(d: DType) -> Option<&'static str> {
    Some(match d {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::BF16 => return None,
    })
}

/// A tensor over a NumPy array's memory.
pub fn from_numpy_tensor(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let info: Bound<'_, PyDict> = array.getattr("__array_interface__")?.cast_into()?;
    let get = |k: &str| -> PyResult<Bound<'_, PyAny>> {
        info.get_item(k)?
            .ok_or_else(|| PyTypeError::new_err(format!("from_numpy: no {k}")))
    };
    let code: String = get("typestr")?.extract()?;
    let all = pytensorlib_core::dtype::ALL;
    let Some(dtype) = all.into_iter().find(|&d| typestr(d) == Some(code.as_str())) else {
        if code.starts_with('>') {
            return Err(PyValueError::new_err(
                "given numpy array has byte order different from the native byte order. Conversion \
                 between byte orders is currently not supported.",
            ));
        }
        return Err(PyTypeError::new_err(format!(
            "can't convert np.ndarray of type {}. The only supported types are: float64, float32, \
             float16, int64, int32, int16, int8, uint8, and bool.",
            array.getattr("dtype")?
        )));
    };
    let (address, _readonly): (usize, bool) = get("data")?.extract()?;
    let shape: Vec<usize> = get("shape")?.extract()?;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let size = dtype.size() as isize;
    if strides.iter().zip(&shape).any(|(&s, &n)| s < 0 && n > 1) {
        return Err(PyValueError::new_err(
            "At least one stride in the given numpy array is negative, and tensors with negative \
             strides are not currently supported. (You can probably work around this by making a \
             copy of your array  with array.copy().)",
        ));
    }
    if strides
        .iter()
        .zip(&shape)
        .any(|(&s, &n)| s % size != 0 && n > 1)
    {
        return Err(PyValueError::new_err(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy \
             array to reallocate the memory.",
        ));
    }
    let layout = Layout {
        shape: shape.iter().copied().collect(),
        strides: strides.iter().map(|s| (s / size).max(0)).collect(),
        offset: 0,
    };
    let bytes = layout.extent().py()? * dtype.size();
    let ptr = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
    let owner: Py<PyAny> = array.clone().unbind();
    // SAFETY: the array keeps its memory while `owner` lives.
    let storage = unsafe { Storage::lent(ptr, bytes, Box::new(owner)) };
    Ok(Tensor::from_storage(storage, layout, dtype))
}

/// A tensor that shares memory with a NumPy array.
#[pyfunction]
fn from_numpy(py: Python<'_>, ndarray: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if !crate::convert::is_ndarray(ndarray) {
        return Err(PyTypeError::new_err(format!(
            "expected np.ndarray (got {})",
            ndarray.get_type().name()?
        )));
    }
    wrap(py, from_numpy_tensor(ndarray)?)
}

/// Keeps a tensor's memory for NumPy.
#[pyclass(frozen, name = "_ArrayOwner")]
struct ArrayOwner(Tensor);

#[pymethods]
impl ArrayOwner {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let t = &self.0;
        let d = PyDict::new(py);
        let size = t.dtype().size() as isize;
        d.set_item("version", 3)?;
        d.set_item("typestr", typestr(t.dtype()))?;
        d.set_item("shape", PyTuple::new(py, t.shape().iter())?)?;
        d.set_item(
            "strides",
            PyTuple::new(py, t.strides().iter().map(|s| s * size))?,
        )?;
        d.set_item("data", (t.bytes_ptr() as usize, false))?;
        Ok(d)
    }
}

/// A NumPy array over a CPU tensor's memory.
#[pyfunction]
fn _to_numpy<'py>(py: Python<'py>, t: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = borrow(t)?;
    if typestr(t.dtype()).is_none() {
        return Err(PyTypeError::new_err("Got unsupported ScalarType BFloat16"));
    }
    py.import("numpy")?
        .getattr("asarray")?
        .call1((Py::new(py, ArrayOwner(t))?,))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ArrayOwner>()?;
    m.add_function(wrap_pyfunction!(from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(_to_numpy, m)?)?;
    Ok(())
}

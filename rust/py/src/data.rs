//! Tensors from Python data: `tensor`, `as_tensor`, `asarray`.

mod nested;

use crate::cell::PyTensor;
use crate::dtype::PyDevice;
use crate::error::{caught, IntoPy};
use crate::numpy::{from_numpy_tensor, is_ndarray};
use crate::object::wrap;
use nested::{class, numbers, warn};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};
use pytensorlib_core::device::{default_device, Device};
use pytensorlib_core::dtype::{default_dtype, DType};
use pytensorlib_core::tensor::Tensor;

/// A new tensor with the numbers in `data`, of the type asked for or the one they suggest.
pub fn parse(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let walk = numbers(data, dtype)?;
    let dtype = dtype.or(walk.found).unwrap_or_else(default_dtype);
    walk.tensor(dtype)
}

/// The numbers in nested sequences as an index: bools and bytes are masks, all else counts.
pub fn index(data: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let walk = numbers(data, None)?;
    match walk.found {
        Some(d) if d.is_complex() => Err(PyTypeError::new_err(
            "'complex' object cannot be interpreted as an integer",
        )),
        Some(d @ (DType::Bool | DType::U8)) => walk.tensor(d),
        _ => walk.tensor(DType::I64),
    }
}

fn dtype_argument(obj: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<DType>> {
    let Some(obj) = obj.filter(|o| !o.is_none()) else {
        return Ok(None);
    };
    crate::dtype::parse(obj).map(Some).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{name}(): argument 'dtype' must be torch.dtype, not {}",
            class(obj)
        ))
    })
}

fn device_argument(obj: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<Device>> {
    let Some(obj) = obj.filter(|o| !o.is_none()) else {
        return Ok(None);
    };
    match PyDevice::read(obj)? {
        Some(d) => Ok(Some(d)),
        None => Err(PyTypeError::new_err(format!(
            "{name}(): argument 'device' must be torch.device, not {}",
            class(obj)
        ))),
    }
}

/// A new tensor with the numbers in `data`, which are always copied; a leaf of autograd. Without
/// a dtype, bools, integers, floats and complex numbers give bool, int64, the default dtype and
/// its complex counterpart, and NumPy arrays keep theirs.
///
/// Parameters
/// ----------
/// data : number, sequence, array or Tensor
///     Nested sequences have to be rectangular.
/// dtype : dtype, optional
///     See above.
/// device : device or str, optional
///     The default device if not given.
/// requires_grad : bool, default False
///     Whether autograd records what is done with the result.
/// pin_memory : bool, default False
///     Accepted without an effect.
///
/// Returns
/// -------
/// Tensor
///     Of the shape of `data`.
///
/// Raises
/// ------
/// ValueError
///     Sequences differ in length.
/// RuntimeError
///     An element is not a number.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.tensor([[1, 2], [3, 4]])
/// tensor([[1, 2],
///         [3, 4]])
/// >>> torch.tensor([1, 2.5])
/// tensor([1.0000, 2.5000])
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false, pin_memory=false))]
fn tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyResult<Py<PyAny>> {
    // Host memory needs no pinning here.
    let _ = pin_memory;
    let dtype = dtype_argument(dtype, "tensor")?;
    let device = device_argument(device, "tensor")?;
    let y = if let Ok(t) = data.cast::<PyTensor>() {
        warn(
            py,
            c"To copy construct from a tensor, it is recommended to use \
              sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), \
              rather than torch.tensor(sourceTensor).",
        )?;
        let t = t.get().get().detach();
        let (dtype, device) = (dtype.unwrap_or(t.dtype()), home(device, &t));
        caught("tensor", || t.to(dtype, device, true, None).py())?
    } else {
        let device = device.unwrap_or_else(default_device);
        let y = if is_ndarray(data) {
            let t = from_numpy_tensor(data)?;
            t.to(dtype.unwrap_or(t.dtype()), Device::Cpu, true, None)
                .py()?
        } else {
            match memory(data, dtype)? {
                Some(t) => t
                    .to(dtype.unwrap_or(t.dtype()), t.device(), true, None)
                    .py()?,
                None => parse(data, dtype)?,
            }
        };
        y.to_device(device).py()?.detach()
    };
    if requires_grad {
        y.require_grad().py()?;
    }
    wrap(py, y)
}

/// Where a tensor goes: to the device named, else the default one; where that is the CPU it stays.
fn home(device: Option<Device>, t: &Tensor) -> Device {
    device.unwrap_or_else(|| match default_device() {
        Device::Cpu => t.device(),
        other => other,
    })
}

/// What `as_tensor` makes of data, and whether its memory is shared.
fn adopt(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<(Tensor, bool)> {
    if let Ok(t) = data.cast::<PyTensor>() {
        return Ok((t.get().get(), true));
    }
    if is_ndarray(data) {
        return Ok((crate::numpy::from_numpy_warning(data)?, true));
    }
    if data.is_instance_of::<pyo3::types::PyCapsule>() {
        return Ok((crate::dlpack::from_capsule(data)?, true));
    }
    match memory(data, dtype)? {
        Some(t) => Ok((t, true)),
        None => Ok((parse(data, dtype)?, false)),
    }
}

/// A tensor over the memory of a storage, or of another library's array that shares it by DLPack.
fn memory(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Tensor>> {
    let plain = data.is_exact_instance_of::<PyList>()
        || data.is_exact_instance_of::<PyFloat>()
        || data.is_exact_instance_of::<PyInt>()
        || data.is_exact_instance_of::<PyTuple>();
    if plain {
        return Ok(None);
    }
    if let Some(t) = crate::storage::tensor_over(data, dtype)? {
        return Ok(Some(t));
    }
    if data.hasattr("__dlpack__")? && data.hasattr("__dlpack_device__")? {
        return crate::dlpack::import(data).map(Some);
    }
    Ok(None)
}

/// `data` as a tensor, without copying where it is one or a NumPy array of the dtype and device
/// asked for.
///
/// Parameters
/// ----------
/// data : number, sequence, array or Tensor
///     As for `tensor`.
/// dtype : dtype, optional
///     That of `data` if not given.
/// device : device or str, optional
///     That of `data` if not given.
///
/// Returns
/// -------
/// Tensor
///     It shares memory where nothing had to be converted.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> x = torch.zeros(2)
/// >>> torch.as_tensor(x) is x
/// True
/// >>> torch.as_tensor([1, 2], dtype=torch.float32)
/// tensor([1., 2.])
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
fn as_tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let dtype = dtype_argument(dtype, "as_tensor")?;
    let device = device_argument(device, "as_tensor")?;
    let (t, _) = adopt(data, dtype)?;
    let (dtype, device) = (dtype.unwrap_or(t.dtype()), home(device, &t));
    wrap(py, t.to(dtype, device, false, None).py()?)
}

/// `obj` as a tensor: shared where possible, as asked by `copy`. Objects with a buffer, such as
/// bytes, are read as elements of `dtype`.
///
/// Parameters
/// ----------
/// obj : object
///     A tensor, an array, an object with a buffer or DLPack, a number or a sequence.
/// dtype : dtype, optional
///     That of `obj` if not given.
/// device : device or str, optional
///     That of `obj` if not given.
/// copy : bool, optional
///     True always copies, False never does; if not given, only where it must.
/// requires_grad : bool, default False
///     Whether autograd records what is done with the result.
///
/// Returns
/// -------
/// Tensor
///     A tensor over the same memory or a copy.
///
/// Raises
/// ------
/// ValueError
///     `copy` is False and memory cannot be shared.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.asarray(bytearray([1, 2, 3]), dtype=torch.uint8)
/// tensor([1, 2, 3], dtype=torch.uint8)
#[pyfunction]
#[pyo3(signature = (obj, *, dtype=None, device=None, copy=None, requires_grad=false))]
fn asarray(
    py: Python<'_>,
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    requires_grad: bool,
) -> PyResult<Py<PyAny>> {
    let dtype = dtype_argument(dtype, "asarray")?;
    let device = device_argument(device, "asarray")?;
    // Arrays and NumPy's numbers have buffers too, and know more of themselves.
    // SAFETY: asks for the type's slots only.
    let buffer = unsafe { ffi::PyObject_CheckBuffer(obj.as_ptr()) } != 0
        && !is_ndarray(obj)
        && !crate::numpy::is_numpy_scalar(obj);
    let (t, shared) = if buffer {
        let t = crate::numpy::buffer_tensor(obj, dtype.unwrap_or_else(default_dtype), -1, 0)?;
        (t, true)
    } else {
        adopt(obj, dtype)?
    };
    let (to, on) = (dtype.unwrap_or(t.dtype()), home(device, &t));
    if copy == Some(false) {
        if !shared {
            return Err(PyValueError::new_err(
                "can't alias arbitrary sequence into a tensor.",
            ));
        }
        if to != t.dtype() {
            return Err(PyValueError::new_err(format!(
                "can't alias tensor with dtype '{}' into dtype '{}'.",
                t.dtype().scalar_name(),
                to.scalar_name()
            )));
        }
        if on != t.device() {
            return Err(PyValueError::new_err(format!(
                "can't alias tensor from device '{}' to '{on}'.",
                t.device()
            )));
        }
    }
    let mut y = t.to(to, on, copy == Some(true) && shared, None).py()?;
    if requires_grad && !y.requires_grad() {
        if y.same(&t) && obj.is_instance_of::<PyTensor>() {
            y = y.detach();
        }
        y.require_grad().py()?;
    } else if !requires_grad && y.requires_grad() {
        y = y.detach();
    }
    wrap(py, y)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(tensor, m)?)?;
    m.add_function(wrap_pyfunction!(as_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(asarray, m)?)?;
    Ok(())
}

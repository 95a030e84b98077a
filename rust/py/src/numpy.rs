//! Memory shared with NumPy, through the fields and functions of its C interface that have kept
//! their places since version 1.7. NumPy itself is imported when first needed.

use crate::cell::borrow;
use crate::error::IntoPy;
use crate::object::wrap;
use crate::object::Held;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use pytensorlib_core::autograd::mode;
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::storage::Storage;
use pytensorlib_core::tensor::Tensor;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// The start of NumPy's array object.
#[repr(C)]
struct Array {
    base: ffi::PyObject,
    data: *mut u8,
    nd: c_int,
    dimensions: *const isize,
    strides: *const isize,
    owner: *mut ffi::PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// The start of NumPy's dtype object.
#[repr(C)]
struct Descr {
    base: ffi::PyObject,
    typeobj: *mut ffi::PyTypeObject,
    kind: c_char,
    code: c_char,
    byteorder: c_char,
    flags: c_char,
    type_num: c_int,
}

const WRITEABLE: c_int = 0x400;
const ALIGNED: c_int = 0x100;

/// NumPy's number of a type. `long` has 32 bits on Windows, 64 elsewhere.
fn type_num(d: DType) -> Option<c_int> {
    Some(match d {
        DType::Bool => 0,
        DType::I8 => 1,
        DType::U8 => 2,
        DType::I16 => 3,
        DType::I32 => 5,
        DType::I64 => {
            if cfg!(windows) {
                9
            } else {
                7
            }
        }
        DType::F16 => 23,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::C64 => 14,
        DType::C128 => 15,
        DType::U16 => 4,
        DType::U32 if cfg!(windows) => 8,
        DType::U32 => 6,
        DType::U64 if cfg!(windows) => 10,
        DType::U64 => 8,
        _ => return None,
    })
}

fn dtype_of_num(n: c_int) -> Option<DType> {
    match n {
        7 if cfg!(windows) => return Some(DType::I32),
        9 => return Some(DType::I64),
        6 => return Some(DType::U32),
        10 => return Some(DType::U64),
        _ => {}
    }
    let all = pytensorlib_core::dtype::ALL;
    all.into_iter().find(|&d| type_num(d) == Some(n))
}

/// The dtype of a NumPy scalar, read from its dtype object.
pub fn dtype_of(descr: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let n: c_int = descr.getattr("num")?.extract()?;
    Ok(dtype_of_num(n).filter(|d| type_num(*d).is_some()))
}

fn unsupported(array: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let class = array.getattr("dtype")?.getattr("type")?;
    Ok(PyTypeError::new_err(format!(
        "can't convert np.ndarray of type {}.{}. The only supported types are: float64, float32, \
         float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, \
         and bool.",
        class.getattr("__module__")?,
        class.getattr("__name__")?
    )))
}

/// A tensor over an array's memory, which the tensor keeps alive.
pub fn from_numpy_tensor(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    debug_assert!(is_ndarray(array));
    // SAFETY: callers pass arrays; their fields stay as they are while this borrow lasts.
    let (a, descr) = unsafe {
        let a = &*array.as_ptr().cast::<Array>();
        (a, &*a.descr)
    };
    let Some(dtype) = dtype_of_num(descr.type_num) else {
        return Err(unsupported(array)?);
    };
    if descr.byteorder as u8
        == if cfg!(target_endian = "little") {
            b'>'
        } else {
            b'<'
        }
    {
        return Err(PyValueError::new_err(
            "given numpy array has byte order different from the native byte order. Conversion \
             between byte orders is currently not supported.",
        ));
    }
    let n = usize::try_from(a.nd).unwrap_or(0);
    let list = |p: *const isize| -> &[isize] {
        match n {
            0 => &[],
            // SAFETY: both lists have `nd` items.
            _ => unsafe { std::slice::from_raw_parts(p, n) },
        }
    };
    let (sizes, strides) = (list(a.dimensions), list(a.strides));
    let size = dtype.size() as isize;
    let any = |f: &dyn Fn(isize) -> bool| strides.iter().zip(sizes).any(|(&s, &n)| n > 1 && f(s));
    if any(&|s| s < 0) {
        return Err(PyValueError::new_err(
            "At least one stride in the given numpy array is negative, and tensors with negative \
             strides are not currently supported. (You can probably work around this by making a \
             copy of your array  with array.copy().)",
        ));
    }
    if any(&|s| s % size != 0) {
        return Err(PyValueError::new_err(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy \
             array to reallocate the memory.",
        ));
    }
    let layout = Layout {
        shape: sizes.iter().map(|&n| n as usize).collect(),
        strides: strides.iter().map(|s| (s / size).max(0)).collect(),
        offset: 0,
    };
    let bytes = layout.extent().py()?.saturating_mul(dtype.size());
    let address = a.data as usize;
    let ptr = NonNull::new(a.data).unwrap_or(NonNull::dangling());
    let owner = Held::new(array.clone().unbind());
    // SAFETY: the array keeps its memory while `owner` lives.
    let storage = unsafe { Storage::lent(ptr, bytes, Box::new(owner)) };
    let t = Tensor::from_storage(storage, layout, dtype);
    match address % dtype.size().min(8) {
        0 => Ok(t),
        _ => aligned(t),
    }
}

/// A copy of elements that lie at odd addresses, which kernels cannot read.
pub fn aligned(t: Tensor) -> PyResult<Tensor> {
    let y = Tensor::empty(t.shape(), t.dtype(), Device::Cpu).py()?;
    let bytes = |t: &Tensor, layout: &Layout| {
        let size = t.dtype().size();
        let mut l = layout.clone();
        l.strides
            .iter_mut()
            .for_each(|s| *s = s.saturating_mul(size as isize));
        l.shape.push(size);
        l.strides.push(1);
        l.offset = l.offset.saturating_mul(size);
        t.alias_as(l, DType::U8)
    };
    bytes(&y, y.layout())
        .write_from(&bytes(&t, t.layout()))
        .py()?;
    Ok(y)
}

/// [`from_numpy_tensor`], with a warning, once, for memory that is not to be written.
pub fn from_numpy_warning(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // SAFETY: callers pass arrays, which have their flags where `Array` says.
    let writeable = unsafe { (*array.as_ptr().cast::<Array>()).flags } & WRITEABLE != 0;
    if !writeable && !WARNED.swap(true, Ordering::Relaxed) {
        let text = c"The given NumPy array is not writable, and PyTorch does not support \
            non-writable tensors. This means writing to this tensor will result in undefined \
            behavior. You may want to copy the array to protect its data or make it writable \
            before converting it to a tensor. This type of warning will be suppressed for the rest \
            of this program.";
        let py = array.py();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
    }
    from_numpy_tensor(array)
}

/// A tensor that shares memory with a NumPy array: a change of one is seen in the other.
///
/// Parameters
/// ----------
/// ndarray : numpy.ndarray
///     Of a dtype that tensors have, with strides that are not negative.
///
/// Returns
/// -------
/// Tensor
///     Of the same shape, strides and dtype.
///
/// Raises
/// ------
/// TypeError
///     It is not an array, or tensors have no such dtype.
/// ValueError
///     A stride is negative.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> import numpy as np
/// >>> a = np.array([1, 2])
/// >>> x = torch.from_numpy(a)
/// >>> a[0] = 9
/// >>> x
/// tensor([9, 2])
#[pyfunction]
fn from_numpy(py: Python<'_>, ndarray: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if !is_ndarray(ndarray) {
        return Err(PyTypeError::new_err(format!(
            "expected np.ndarray (got {})",
            ndarray.get_type().fully_qualified_name()?
        )));
    }
    wrap(py, from_numpy_warning(ndarray)?)
}

/// A one-dimensional tensor over an object's buffer.
pub fn buffer_tensor(
    buffer: &Bound<'_, PyAny>,
    dtype: DType,
    count: i64,
    offset: i64,
) -> PyResult<Tensor> {
    let py = buffer.py();
    let memory = py
        .import("builtins")?
        .getattr("memoryview")?
        .call1((buffer,));
    let Ok(memory) = memory else {
        return Err(PyValueError::new_err(
            "object does not implement Python buffer protocol.",
        ));
    };
    let length: i64 = memory.getattr("nbytes")?.extract()?;
    let item = dtype.size() as i64;
    if length == 0 || count == 0 {
        return Err(PyValueError::new_err(format!(
            "both buffer length ({length}) and count ({count}) must not be 0"
        )));
    }
    if offset < 0 || offset >= length {
        return Err(PyValueError::new_err(format!(
            "offset ({offset} bytes) must be non-negative and no greater than buffer length \
             ({length} bytes) minus 1"
        )));
    }
    let rest = length - offset;
    let count = match count {
        n if n > 0 => n,
        _ if rest % item == 0 => rest / item,
        _ => {
            return Err(PyValueError::new_err(format!(
                "buffer length ({rest} bytes) after offset ({offset} bytes) must be a multiple of \
                 element size ({item})"
            )))
        }
    };
    if count.checked_mul(item).is_none_or(|n| n > rest) {
        return Err(PyValueError::new_err(format!(
            "requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must \
             not be greater than actual buffer length ({length} bytes)"
        )));
    }
    if memory.getattr("readonly")?.extract()? {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if !WARNED.swap(true, Ordering::Relaxed) {
            let text = c"The given buffer is not writable, and PyTorch does not support \
                non-writable tensors. This means you can write to the underlying (supposedly \
                non-writable) buffer using the tensor. You may want to copy the buffer to protect \
                its data or make it writable before converting it to a tensor.";
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
        }
    }
    let np = py.import("numpy")?;
    let flat = np
        .getattr("frombuffer")?
        .call1((memory, np.getattr("uint8")?))?;
    let flat = from_numpy_tensor(&flat)?;
    let size = flat.storage().bytes();
    let address = flat.bytes_ptr() as usize + offset as usize;
    let ptr = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
    // SAFETY: the storage of `flat` keeps the buffer; the part from `offset` on lies within it.
    let part = unsafe { Storage::lent(ptr, size - offset as usize, Box::new(flat)) };
    let t = Tensor::from_storage(part, Layout::contiguous(&[count as usize]), dtype);
    match address % dtype.size().min(8) {
        0 => Ok(t),
        _ => aligned(t),
    }
}

/// A 1-D tensor over the memory of an object with a buffer.
///
/// Parameters
/// ----------
/// buffer : object
///     Such as bytes, bytearray, memoryview or array.array.
/// dtype : dtype
///     The type to read elements as.
/// count : int, default -1
///     How many elements; all that fit if negative.
/// offset : int, default 0
///     How many bytes to skip.
/// requires_grad : bool, default False
///     Whether autograd records what is done with the result.
///
/// Returns
/// -------
/// Tensor
///     It shares memory with `buffer`.
///
/// Raises
/// ------
/// ValueError
///     The buffer is empty, or does not hold as many elements.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
/// tensor([1, 2], dtype=torch.int16)
#[pyfunction]
#[pyo3(signature = (buffer, *, dtype, count=-1, offset=0, requires_grad=false))]
fn frombuffer(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    count: i64,
    offset: i64,
    requires_grad: bool,
) -> PyResult<Py<PyAny>> {
    let Some(dtype) = crate::dtype::parse(dtype) else {
        return Err(PyTypeError::new_err(
            "frombuffer(): argument 'dtype' must be torch.dtype",
        ));
    };
    let t = buffer_tensor(buffer, dtype, count, offset)?;
    if requires_grad {
        t.require_grad().py()?;
    }
    wrap(py, t)
}

/// Keeps a tensor's memory for an array.
#[pyclass(frozen, name = "_ArrayOwner")]
struct ArrayOwner(#[allow(dead_code)] Tensor);

/// The table of NumPy's C functions.
fn functions(py: Python<'_>) -> PyResult<*const *mut c_void> {
    static TABLE: PyOnceLock<usize> = PyOnceLock::new();
    let table = TABLE.get_or_try_init(py, || -> PyResult<usize> {
        let module = py
            .import("numpy._core._multiarray_umath")
            .or_else(|_| py.import("numpy.core._multiarray_umath"))?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: NumPy's capsule has no name and lives as long as its module.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        Ok(table as usize)
    })?;
    Ok(*table as *const *mut c_void)
}

type NewArray = unsafe extern "C" fn(
    subtype: *mut c_void,
    nd: c_int,
    dims: *const isize,
    type_num: c_int,
    strides: *const isize,
    data: *mut c_void,
    itemsize: c_int,
    flags: c_int,
    obj: *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBase = unsafe extern "C" fn(array: *mut ffi::PyObject, base: *mut ffi::PyObject) -> c_int;

/// An array over a CPU tensor's memory. With `force`, a tensor that has a history or lives
/// elsewhere is detached and copied first.
#[pyfunction]
#[pyo3(signature = (t, force=false))]
fn _to_numpy<'py>(t: &Bound<'py, PyAny>, force: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = t.py();
    let mut t = borrow(t)?;
    if force {
        t = t.detach().to_host().py()?;
    }
    if t.device() != Device::Cpu {
        return Err(PyTypeError::new_err(format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to \
             host memory first.",
            t.device()
        )));
    }
    if t.is_sparse() {
        return Err(PyTypeError::new_err(format!(
            "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.",
            t.form().title()
        )));
    }
    if t.requires_grad() && mode::grad() {
        return Err(PyRuntimeError::new_err(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        ));
    }
    t.check_open().py()?;
    t.look();
    t.storage().fix();
    let Some(number) = type_num(t.dtype()) else {
        return Err(PyTypeError::new_err(format!(
            "Got unsupported ScalarType {}",
            t.dtype().scalar_name()
        )));
    };
    let size = t.dtype().size() as isize;
    let dims: smallvec::SmallVec<[isize; 5]> = t.shape().iter().map(|&n| n as isize).collect();
    let strides: smallvec::SmallVec<[isize; 5]> =
        t.strides().iter().map(|s| s.saturating_mul(size)).collect();
    if dims.len() > 32 {
        return Err(PyValueError::new_err(format!(
            "numpy(): arrays have at most 32 dimensions, got {}",
            dims.len()
        )));
    }
    let owner = Py::new(py, ArrayOwner(t.clone()))?;
    let table = functions(py)?;
    // SAFETY: places 2, 93 and 282 of the table hold the array type, `PyArray_New` and
    // `PyArray_SetBaseObject`; the memory outlives the array through its base object, whose
    // reference the last call takes over.
    unsafe {
        let new: NewArray = std::mem::transmute(*table.add(93));
        let set_base: SetBase = std::mem::transmute(*table.add(282));
        let array = new(
            *table.add(2),
            dims.len() as c_int,
            dims.as_ptr(),
            number,
            strides.as_ptr(),
            t.bytes_ptr().cast(),
            0,
            WRITEABLE | ALIGNED,
            std::ptr::null_mut(),
        );
        if array.is_null() {
            return Err(PyErr::fetch(py));
        }
        let array = Bound::from_owned_ptr(py, array);
        if set_base(array.as_ptr(), owner.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ArrayOwner>()?;
    m.add_function(wrap_pyfunction!(from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(frombuffer, m)?)?;
    m.add_function(wrap_pyfunction!(_to_numpy, m)?)?;
    Ok(())
}

fn numpy_type(
    py: Python<'_>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> Option<*mut ffi::PyTypeObject> {
    if let Some(known) = cell.get(py) {
        return Some(known.bind(py).as_type_ptr());
    }
    // Nothing is of NumPy's types before it was imported.
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let modules = MODULES.get_or_try_init(py, || -> PyResult<_> {
        Ok(py
            .import("sys")?
            .getattr("modules")?
            .cast_into::<PyDict>()?
            .unbind())
    });
    modules
        .ok()?
        .bind(py)
        .get_item(intern!(py, "numpy"))
        .ok()??;
    cell.import(py, "numpy", name).ok().map(|t| t.as_type_ptr())
}

pub fn is_numpy_scalar(obj: &Bound<'_, PyAny>) -> bool {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    // SAFETY: both are valid type objects.
    numpy_type(obj.py(), &GENERIC, "generic")
        .is_some_and(|t| unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(obj.as_ptr()), t) } != 0)
}

pub fn is_ndarray(obj: &Bound<'_, PyAny>) -> bool {
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    // SAFETY: both are valid type objects.
    numpy_type(obj.py(), &ARRAY, "ndarray")
        .is_some_and(|t| unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(obj.as_ptr()), t) } != 0)
}

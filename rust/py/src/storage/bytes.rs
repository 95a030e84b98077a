//! Bytes of the host and of files as tensors and storages, and tensors as bytes.

use super::PyStorage;
use crate::cell::{borrow, PyTensor};
use crate::dtype::PyDType;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pytensorlib_core::alloc::FileMap;
use pytensorlib_core::cpu::files;
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::os;
#[cfg(windows)]
use pytensorlib_core::os::Backing;
use pytensorlib_core::storage::Storage;
use pytensorlib_core::tensor::Tensor;
use std::ffi::c_int;

/// A tensor over bytes of the host, after a check that it stays within them.
#[pyfunction]
pub(super) fn _from_bytes(
    py: Python<'_>,
    data: &Bound<'_, PyTensor>,
    dtype: &Bound<'_, PyDType>,
    offset: i64,
    size: Vec<i64>,
    stride: Vec<i64>,
) -> PyResult<Py<PyAny>> {
    let (data, dtype) = (data.get().get(), dtype.get().0);
    let item = dtype.size();
    let place = match data.numel() {
        0 => 0,
        _ => data.storage().address() + data.offset(),
    };
    let host = data.device() == Device::Cpu && data.dtype() == DType::U8 && data.is_contiguous();
    if !host || !place.is_multiple_of(item) || !data.offset().is_multiple_of(item) {
        return Err(PyRuntimeError::new_err(format!(
            "a tensor of {dtype} needs bytes of the host at a multiple of {item}, got {place}"
        )));
    }
    let before = data.offset() / item;
    if offset < 0 || stride.iter().any(|&n| n < 0) {
        return Err(PyRuntimeError::new_err(
            "invalid storage offset or stride: must not be negative",
        ));
    }
    let from = offset.saturating_add(before as i64);
    let capacity = before + data.numel() / item;
    let layout = Layout::as_strided(&size, &stride, from, capacity, item).py()?;
    wrap(
        py,
        Tensor::from_storage(data.storage().clone(), layout, dtype),
    )
}

/// The bytes of a tensor in host memory as a buffer, which keeps them.
#[pyclass(frozen)]
pub(super) struct HostBytes(Tensor);

#[pymethods]
impl HostBytes {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Self(t) = slf.get();
        let (at, bytes) = (t.bytes_ptr().cast(), t.numel() * t.dtype().size());
        // SAFETY: the view is the interpreter's to fill; it holds this object, and that the bytes.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), at, bytes as isize, 0, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// A contiguous CPU tensor's memory as bytes; unlike an array, it needs no NumPy.
#[pyfunction]
pub(super) fn _host_bytes(t: &Bound<'_, PyAny>) -> PyResult<HostBytes> {
    let t = borrow(t)?;
    if t.device() != Device::Cpu || t.is_sparse() || !t.is_contiguous() {
        return Err(PyTypeError::new_err(format!(
            "a buffer is made of a contiguous tensor in host memory, got {t:?}"
        )));
    }
    t.check_open().py()?;
    t.look();
    t.storage().pin();
    Ok(HostBytes(t))
}

/// `n` bytes of a file from `offset` on as a tensor, and their CRC-32.
#[pyfunction]
pub(super) fn _read_bytes(
    py: Python<'_>,
    handle: isize,
    offset: u64,
    n: usize,
) -> PyResult<(Py<PyAny>, u32)> {
    let file = file_of(handle)?;
    let data = Tensor::empty(&[n], DType::U8, Device::Cpu).py()?;
    // SAFETY: nobody else has the fresh memory.
    let sum = py.detach(|| unsafe { files::read_at(&file, offset, data.slice_mut::<u8>()) })?;
    Ok((wrap(py, data)?, sum))
}

/// A file of its own behind a descriptor of the caller's; on Windows behind a handle.
pub(super) fn file_of(handle: isize) -> PyResult<std::fs::File> {
    // SAFETY: the caller's is open during the call.
    Ok(unsafe { os::file_of(handle) }?)
}

/// The first `n` bytes of a file as a storage, which writes to it where it is `shared`.
#[pyfunction]
pub(super) fn _map_file(handle: isize, n: usize, shared: bool) -> PyResult<PyStorage> {
    let map = FileMap::new(&file_of(handle)?, n, shared)?;
    Ok(PyStorage(Storage::mapped(map)))
}

/// The first `n` bytes of a section as a storage; its handle is the storage's from here on.
#[cfg(windows)]
#[pyfunction]
pub(super) fn _map_section(handle: isize, name: String, n: usize) -> PyResult<PyStorage> {
    // SAFETY: the caller got the handle for this.
    let backing = unsafe { Backing::of_handle(handle, name) };
    Ok(PyStorage(Storage::mapped(FileMap::of(backing, n, true)?)))
}

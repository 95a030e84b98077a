//! `UntypedStorage`, the bytes that tensors share.

mod bytes;
mod tensors;

use crate::cell::PyTensor;
use crate::dtype::PyDevice;
use crate::error::IntoPy;
use crate::object::wrap;
#[cfg(unix)]
use bytes::file_of;
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PySlice, PyString};
use pytensorlib_core::alloc::FileMap;
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::layout::Layout;
#[cfg(windows)]
use pytensorlib_core::os::Backing;
use pytensorlib_core::shape;
use pytensorlib_core::storage::{Storage, WeakStorage};
use pytensorlib_core::tensor::Tensor;
use std::ptr::NonNull;
use tensors::storage_in;
pub use tensors::tensor_over;

/// The bytes that a tensor shares with its views.
///
/// Parameters
/// ----------
/// size : int or sequence of int, optional
///     How many bytes, all zero; or the bytes themselves.
/// device : device or str, optional
///     ``"cpu"``, the default, ``"wgpu"``, or ``"meta"``, where there is only a size.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.arange(3, dtype=torch.int16).untyped_storage().tolist()
/// [0, 0, 1, 0, 2, 0]
#[pyclass(
    name = "UntypedStorage",
    module = "pytensorlib",
    frozen,
    subclass,
    dict,
    weakref
)]
pub struct PyStorage(pub Storage);

impl PyStorage {
    /// All of it as bytes. Writing to them is below what graphs notice, as in PyTorch.
    fn flat(&self) -> Tensor {
        let layout = Layout::contiguous(&[self.0.bytes()]);
        Tensor::from_storage(self.0.clone(), layout, DType::U8).data()
    }

    fn place(&self) -> usize {
        match self.0.bytes() {
            0 => 0,
            _ => self.0.address(),
        }
    }

    fn check_data(&self) -> PyResult<()> {
        match self.0.device() {
            Device::Meta => Err(PyNotImplementedError::new_err(
                "Not available for 'meta' device type",
            )),
            _ => Ok(()),
        }
    }

    /// The place of a key: a byte, or those of a slice.
    fn part(&self, key: &Bound<'_, PyAny>) -> PyResult<Part> {
        let n = self.0.bytes() as isize;
        if let Ok(slice) = key.cast::<PySlice>() {
            let found = slice.indices(n)?;
            if found.step != 1 {
                return Err(PyRuntimeError::new_err(format!(
                    "Trying to slice with a step of {}, but only a step of 1 is supported",
                    found.step
                )));
            }
            let start = found.start as usize;
            return Ok(Part::Bytes(start, found.slicelength));
        }
        let whole = !key.is_instance_of::<PyBool>();
        let Some(i) = whole.then(|| key.extract::<isize>().ok()).flatten() else {
            return Err(PyTypeError::new_err(format!(
                "can't index a torch.UntypedStorage with {}",
                key.get_type().name()?
            )));
        };
        if i < -n || i >= n {
            return Err(PyIndexError::new_err(format!(
                "index {i} out of range for storage of size {n}"
            )));
        }
        Ok(Part::Byte(i.rem_euclid(n) as usize))
    }
}

/// What a key of a storage names.
enum Part {
    Byte(usize),
    /// Where they start, and how many there are.
    Bytes(usize, usize),
}

/// The lowest byte of an integer.
fn byte(value: &Bound<'_, PyAny>) -> PyResult<Option<u8>> {
    if !value.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    Ok(Some(value.call_method1("__and__", (0xff,))?.extract()?))
}

/// The bytes of a sequence of integers.
fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let name = data.get_type().name()?;
    let is_text = data.is_instance_of::<PyString>();
    // SAFETY: asks for the type's slots only.
    let sequence = unsafe { ffi::PySequence_Check(data.as_ptr()) } != 0;
    if data.is_instance_of::<PyTensor>() || !(sequence || storage_in(data)?.is_some()) {
        return Err(PyRuntimeError::new_err(format!(
            "torch.UntypedStorage(): Expected a sequence type, but got {name}"
        )));
    }
    let mut found = Vec::new();
    for item in data.try_iter()? {
        let item = item?;
        let Some(value) = byte(&item)?.filter(|_| !is_text) else {
            return Err(PyRuntimeError::new_err(format!(
                "torch.UntypedStorage(): tried to construct a storage from a sequence ({name}), but \
                 one of the items was of type {} instead of int",
                item.get_type().name()?
            )));
        };
        found.push(value);
    }
    Ok(found)
}

#[pymethods]
impl PyStorage {
    #[new]
    #[pyo3(signature = (size=None, *, device=None))]
    fn new(size: Option<&Bound<'_, PyAny>>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = match device.filter(|d| !d.is_none()) {
            None => Device::Cpu,
            Some(d) => PyDevice::expect(d)?,
        };
        let Some(size) = size else {
            return Ok(PyStorage(Storage::empty(0, device).py()?));
        };
        let number = !size.is_instance_of::<PyBool>() && size.hasattr("__index__")?;
        if number && !size.is_instance_of::<PyTensor>() {
            let shape = shape::sizes(&[size.extract::<i64>()?]).py()?;
            return Ok(PyStorage(Storage::zeroed(shape[0], device).py()?));
        }
        let bytes = bytes_of(size)?;
        let t = Tensor::from_slice(&bytes, &[bytes.len()], DType::U8).py()?;
        let t = t.to_device(device).py()?;
        Ok(PyStorage(t.storage().clone()))
    }
    /// The address of the first byte.
    ///
    /// Returns
    /// -------
    /// int
    ///     0 for a storage without bytes.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(4)
    /// >>> x[1:].untyped_storage().data_ptr() == x.data_ptr()
    /// True
    fn data_ptr(&self) -> usize {
        self.place()
    }
    /// The number of bytes.
    ///
    /// Returns
    /// -------
    /// int
    ///     As ``len(storage)``.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().nbytes()
    /// 12
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }
    /// The number of bytes; another name of `nbytes`.
    ///
    /// Returns
    /// -------
    /// int
    ///     As ``len(storage)``.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().size()
    /// 12
    fn size(&self) -> usize {
        self.0.bytes()
    }
    /// The size of an element: one byte.
    ///
    /// Returns
    /// -------
    /// int
    ///     1.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().element_size()
    /// 1
    fn element_size(&self) -> usize {
        1
    }
    fn __len__(&self) -> usize {
        self.0.bytes()
    }
    /// A number that all handles on the same memory share.
    #[getter]
    fn _cdata(&self) -> usize {
        self.0.id()
    }
    /// Where the bytes are.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().device
    /// device(type='cpu')
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.0.device())
    }
    /// Whether it is on a GPU that answers as "cuda" (`torch.wgpu.answer_as`).
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().is_cuda
    /// False
    #[getter]
    fn is_cuda(&self) -> bool {
        self.0.device().kind() == "cuda"
    }
    /// Tell whether other processes can see the memory.
    ///
    /// Returns
    /// -------
    /// bool
    ///     After `share_memory_`, and for a shared map of a file.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().is_shared()
    /// False
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
    /// Moves the bytes to a file, which is as long, so that processes that map it see them.
    #[cfg(unix)]
    fn _share(&self, handle: isize) -> PyResult<()> {
        let map = FileMap::new(&file_of(handle)?, self.0.bytes(), true)?;
        self.0.move_to(map).py()
    }
    /// Moves the bytes to memory that processes share.
    #[cfg(windows)]
    fn _share(&self) -> PyResult<()> {
        let n = self.0.bytes();
        let map = FileMap::of(Backing::of_memory(n)?, n, true)?;
        self.0.move_to(map).py()
    }
    /// The descriptor of the file, or the handle of the section, that the bytes are in.
    fn _map_handle(&self) -> Option<isize> {
        Some(self.0.map()?.backing()?.handle())
    }
    /// What tells the section from others.
    #[cfg(windows)]
    fn _map_name(&self) -> Option<&str> {
        Some(self.0.map()?.backing()?.name())
    }
    /// Always False: host memory needs no pinning.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(3).untyped_storage().is_pinned()
    /// False
    fn is_pinned(&self) -> bool {
        false
    }
    /// The storage itself.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     This one.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> s = torch.zeros(3).untyped_storage()
    /// >>> s.untyped() is s
    /// True
    fn untyped(slf: Py<Self>) -> Py<Self> {
        slf
    }
    /// A handle that does not keep the memory.
    fn _weak(&self) -> PyWeakStorage {
        PyWeakStorage(self.0.downgrade())
    }
    /// All of it as a tensor of bytes, which shares it.
    fn _as_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        wrap(py, self.flat())
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyStorage>()
            .is_ok_and(|o| o.get().0.same(&self.0))
    }
    fn __hash__(&self) -> usize {
        self.0.id() >> 4
    }
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.check_data()?;
        let part = match self.part(key)? {
            Part::Byte(i) => {
                let element = self.flat().select(0, i as i64).py()?;
                return crate::convert::number_object(py, element.item().py()?);
            }
            Part::Bytes(start, n) => self.flat().narrow(0, start as i64, n as i64).py()?,
        };
        let host = part.device() == Device::Cpu;
        let dense = host && part.is_contiguous() && part.numel() > 0;
        let start = dense.then(|| part.ptr::<u8>()).and_then(NonNull::new);
        let Some(start) = start else {
            let part = part.copy_dense().py()?;
            return Ok(Py::new(py, PyStorage(part.storage().clone()))?.into_any());
        };
        // The part lies in the memory of the whole, which stays where it is from now on.
        self.0.pin();
        let whole = Box::new(self.0.clone());
        // SAFETY: the tensor was checked to lie within the storage, which lives as long.
        let lent = unsafe { Storage::lent(start, part.numel(), whole) };
        Ok(Py::new(py, PyStorage(lent))?.into_any())
    }
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(value) = byte(value)? else {
            return Err(PyRuntimeError::new_err(format!(
                "can only set storage content with a int types, but got {} instead",
                value.get_type().name()?
            )));
        };
        let (start, n) = match self.part(key)? {
            Part::Byte(i) => (i, 1),
            Part::Bytes(start, n) => (start, n),
        };
        let part = self.flat().narrow(0, start as i64, n as i64).py()?;
        part.fill_(i64::from(value).into(), "FillBackward0").py()?;
        Ok(())
    }
    /// The bytes as integers.
    ///
    /// Returns
    /// -------
    /// list of int
    ///     From 0 to 255.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.UntypedStorage([1, 2]).tolist()
    /// [1, 2]
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.check_data()?;
        crate::lists::to_list(py, &self.flat())
    }
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tolist(py)?.bind(py).call_method0("__iter__")
    }
    /// Set every byte.
    ///
    /// Parameters
    /// ----------
    /// value : int
    ///     From 0 to 255.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     This one.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.UntypedStorage(3).fill_(7).tolist()
    /// [7, 7, 7]
    fn fill_<'py>(slf: Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let Some(value) = byte(value)? else {
            return Err(PyRuntimeError::new_err(format!(
                "fill_ expects int, but got {}",
                value.get_type().name()?
            )));
        };
        let value = i64::from(value).into();
        slf.get().flat().fill_(value, "FillBackward0").py()?;
        Ok(slf)
    }
    /// Copy the bytes of another storage of the same size.
    ///
    /// Parameters
    /// ----------
    /// source : UntypedStorage
    ///     What to copy.
    /// non_blocking : bool, default False
    ///     Without an effect.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     This one.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.UntypedStorage(2).copy_(torch.UntypedStorage([1, 2])).tolist()
    /// [1, 2]
    #[pyo3(signature = (source, non_blocking=None))]
    fn copy_<'py>(
        slf: Bound<'py, Self>,
        source: &Bound<'py, PyAny>,
        non_blocking: Option<bool>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let Some((source, _)) = storage_in(source)? else {
            return Err(PyTypeError::new_err(format!(
                "copy_(): argument 'src' (position 1) must be torch.Storage, not {}",
                source.get_type().name()?
            )));
        };
        let (source, own) = (PyStorage(source), slf.get());
        if source.0.bytes() != own.0.bytes() {
            return Err(PyRuntimeError::new_err(format!(
                "size does not match, self was {} bytes but src was {} bytes",
                own.0.bytes(),
                source.0.bytes()
            )));
        }
        if own.0.device() != Device::Meta {
            check_copied(&source)?;
        }
        own.flat().copy_from(&source.flat()).py()?;
        Ok(slf)
    }
    /// A copy in new memory.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     Of the same size.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.UntypedStorage([1, 2]).clone().tolist()
    /// [1, 2]
    #[pyo3(name = "clone")]
    fn copied(&self) -> PyResult<PyStorage> {
        Ok(PyStorage(self.flat().copy_dense().py()?.storage().clone()))
    }
    /// The bytes in host memory: the storage itself if they are there already, else a copy.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     On the CPU.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> s = torch.UntypedStorage(2)
    /// >>> s.cpu() is s
    /// True
    fn cpu(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().0.device() == Device::Cpu {
            return Ok(slf);
        }
        check_copied(slf.get())?;
        let host = slf.get().flat().to_host().py()?;
        Bound::new(slf.py(), PyStorage(host.storage().clone()))
    }
    /// Change the size, keeping what fits; what is new is not initialised. A tensor that no longer
    /// fits raises when it is used.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     How many bytes there are afterwards.
    ///
    /// Returns
    /// -------
    /// UntypedStorage
    ///     This one.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The memory is shared with another library, or is that of the GPU.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.tensor([1, 2], dtype=torch.uint8)
    /// >>> x.untyped_storage().resize_(1).tolist()
    /// [1]
    #[pyo3(signature = (size, /))]
    fn resize_<'py>(slf: Bound<'py, Self>, size: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        if size.is_instance_of::<PyBool>() || !size.hasattr("__index__")? {
            return Err(PyRuntimeError::new_err(format!(
                "resize_ expects an int, but got {}",
                size.get_type().name()?
            )));
        }
        let Ok(size) = size.extract::<i64>() else {
            return Err(PyValueError::new_err("Overflow when unpacking long long"));
        };
        let Ok(size) = usize::try_from(size) else {
            return Err(PyRuntimeError::new_err(format!(
                "resize_: the size of a storage must not be negative, got {size}"
            )));
        };
        slf.get().0.resize(size).py()?;
        Ok(slf)
    }
    /// Tell whether `resize_` can change the size.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether no other library knows the memory, and it is the host's.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(3)
    /// >>> x.untyped_storage().resizable()
    /// True
    /// >>> _ = x.numpy()
    /// >>> x.untyped_storage().resizable()
    /// False
    fn resizable(&self) -> bool {
        self.0.is_resizable()
    }
    fn __copy__(&self) -> PyResult<PyStorage> {
        self.copied()
    }
    /// Copies that belong together share memory as their originals do.
    fn __deepcopy__<'py>(
        slf: &Bound<'py, Self>,
        memo: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let shared = match memo.get_item("torch")? {
            Some(d) => d.cast_into::<PyDict>()?,
            None => {
                let d = PyDict::new(py);
                memo.set_item("torch", &d)?;
                d
            }
        };
        let key = slf.get().0.id();
        if let Some((_, copy)) = shared
            .get_item(key)?
            .map(|e| e.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>())
            .transpose()?
        {
            return Ok(copy);
        }
        let copy = Bound::new(py, slf.get().copied()?)?.into_any();
        // The original stays alive with the memo, so that nothing else can take its key.
        shared.set_item(key, (slf, &copy))?;
        Ok(copy)
    }
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let t = self.flat().to_host().py()?;
        // SAFETY: contiguous bytes, read only.
        Ok(PyBytes::new(py, unsafe { t.slice::<u8>() }))
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyList>,))> {
        let bytes = slf.get().__bytes__(slf.py())?;
        let list = PyList::new(slf.py(), bytes.as_bytes())?;
        Ok((slf.get_type().into_any(), (list,)))
    }
    fn __repr__(&self) -> String {
        let n = self.0.bytes();
        let mut text = String::new();
        if self.0.device() == Device::Meta {
            text.push_str("...\n");
        } else if let Ok(t) = self.flat().to_host() {
            // SAFETY: contiguous bytes, read only.
            let bytes = unsafe { t.slice::<u8>() };
            for b in bytes.iter().take(1000) {
                text.push_str(&format!(" {b}\n"));
            }
            if n > 1000 {
                text.push_str(" ...\n");
            }
        }
        let device = self.0.device();
        format!("{text}[torch.storage.UntypedStorage(device={device}) of size {n}]")
    }
}

/// A storage that is kept by others; while this is there, no other gets its number.
#[pyclass(name = "_WeakStorage", module = "pytensorlib", frozen)]
struct PyWeakStorage(WeakStorage);

#[pymethods]
impl PyWeakStorage {
    /// The storage, or None once nobody keeps its memory.
    fn __call__(&self) -> Option<PyStorage> {
        self.0.upgrade().map(PyStorage)
    }
}

fn check_copied(source: &PyStorage) -> PyResult<()> {
    match source.0.device() {
        Device::Meta => Err(PyNotImplementedError::new_err(
            "Cannot copy out of meta tensor; no data!",
        )),
        _ => Ok(()),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyStorage>()?;
    m.add_function(wrap_pyfunction!(tensors::_is_alias_of, m)?)?;
    m.add_function(wrap_pyfunction!(tensors::_untyped_storage, m)?)?;
    m.add_function(wrap_pyfunction!(tensors::_set_, m)?)?;
    m.add_function(wrap_pyfunction!(tensors::_resize_, m)?)?;
    m.add_function(wrap_pyfunction!(bytes::_from_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(bytes::_host_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(bytes::_read_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(bytes::_map_file, m)?)?;
    #[cfg(windows)]
    m.add_function(wrap_pyfunction!(bytes::_map_section, m)?)?;
    Ok(())
}

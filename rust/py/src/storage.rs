//! `UntypedStorage`, and the methods that put a tensor on other memory: `set_`, `resize_`.

use crate::cell::{borrow, PyTensor};
use crate::dtype::{PyDType, PyDevice};
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::exceptions::{
    PyIndexError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PySlice, PyString};
use pytensorlib_core::alloc::FileMap;
use pytensorlib_core::cpu::files;
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::host;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::ops::shape::create::format_strides;
use pytensorlib_core::os;
#[cfg(windows)]
use pytensorlib_core::os::Backing;
use pytensorlib_core::schema::MemoryFormat;
use pytensorlib_core::shape;
use pytensorlib_core::storage::{Storage, WeakStorage};
use pytensorlib_core::tensor::Tensor;
use std::ffi::c_int;
use std::ptr::NonNull;

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

/// What a typed storage says that its elements are: a type, or the name of one without tensors.
pub enum Elements {
    Untyped,
    Of(DType),
    Other(String),
}

impl Elements {
    /// Refuses memory whose elements are of another type; `expected` is how the message calls that.
    fn check(&self, wanted: DType, expected: &str, told: (&str, &str)) -> PyResult<()> {
        let got = match self {
            Elements::Untyped => return Ok(()),
            Elements::Of(d) if *d == wanted => return Ok(()),
            Elements::Of(d) => d.scalar_name(),
            Elements::Other(name) => name,
        };
        Err(PyRuntimeError::new_err(format!(
            "Expected a Storage of type {expected} or an UntypedStorage, but got {}{got}{}",
            told.0, told.1
        )))
    }
}

/// The memory of a storage object, or of one that has it, with the type of its elements.
pub fn storage_in(obj: &Bound<'_, PyAny>) -> PyResult<Option<(Storage, Elements)>> {
    if let Ok(s) = obj.cast::<PyStorage>() {
        return Ok(Some((s.get().0.clone(), Elements::Untyped)));
    }
    let inner = obj.getattr_opt("_untyped_storage")?;
    let Some(s) = inner.as_ref().and_then(|i| i.cast::<PyStorage>().ok()) else {
        return Ok(None);
    };
    let dtype = obj.getattr("dtype")?;
    let elements = match dtype.cast::<PyDType>() {
        Ok(d) => Elements::Of(d.get().0),
        Err(_) => {
            let name = dtype.str()?.to_string();
            Elements::Other(name.trim_start_matches("torch.").to_string())
        }
    };
    Ok(Some((s.get().0.clone(), elements)))
}

/// A tensor over a storage object, whose elements are of the type asked for, or of its own.
pub fn tensor_over(obj: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Option<Tensor>> {
    let Some((storage, elements)) = storage_in(obj)? else {
        return Ok(None);
    };
    let dtype = match (wanted, &elements) {
        (Some(d), _) => d,
        (None, Elements::Of(d)) => *d,
        (None, _) => DType::U8,
    };
    if let Some(wanted) = wanted {
        elements.check(wanted, wanted.scalar_name(), ("", ""))?;
    }
    let layout = Layout::contiguous(&[storage.bytes() / dtype.size()]);
    Ok(Some(Tensor::from_storage(storage, layout, dtype)))
}

/// The memory of a tensor.
#[pyfunction]
fn _untyped_storage(t: &Bound<'_, PyAny>) -> PyResult<PyStorage> {
    let t = borrow(t)?;
    t.check_held().py_of("untyped_storage")?;
    t.storage().count_no_more();
    Ok(PyStorage(t.storage().clone()))
}

/// Puts another tensor behind an object; its place in the graph stays.
fn replace(obj: &Bound<'_, PyTensor>, new: &Tensor) {
    let t = obj.get().get();
    t.bump_version();
    obj.get().swap(t.replaced(new));
}

/// `set_`: puts the tensor on other memory.
#[pyfunction]
#[pyo3(signature = (t, source=None, storage_offset=0, size=None, stride=None))]
fn _set_(
    t: &Bound<'_, PyTensor>,
    source: Option<&Bound<'_, PyAny>>,
    storage_offset: i64,
    size: Option<Vec<i64>>,
    stride: Option<Vec<i64>>,
) -> PyResult<()> {
    let old = t.get().get();
    old.check_held().py()?;
    old.check_inplace(false).py()?;
    let Some(source) = source.filter(|s| !s.is_none()) else {
        let new = Tensor::empty(&[0], old.dtype(), old.device()).py()?;
        replace(t, &new);
        return Ok(());
    };
    if let (Ok(other), None) = (source.cast::<PyTensor>(), &size) {
        let other = other.get().get();
        other.check_held().py()?;
        if other.dtype() != old.dtype() {
            return Err(PyRuntimeError::new_err(format!(
                "Could not set tensor of type {} to a tensor of type {}",
                other.dtype().c_name(),
                old.dtype().c_name()
            )));
        }
        replace(t, &other.detach());
        return Ok(());
    }
    let storage = match source.cast::<PyTensor>() {
        Ok(other) => {
            let other = other.get().get();
            other.check_held().py()?;
            other.storage().clone()
        }
        Err(_) => match storage_in(source)? {
            Some((storage, elements)) => {
                let told = ("type ", " for argument 1 'storage'");
                elements.check(old.dtype(), old.dtype().c_name(), told)?;
                storage
            }
            None => {
                return Err(PyTypeError::new_err(format!(
                    "set_(): argument 'source' must be a Tensor or a torch.Storage, not {}",
                    source.get_type().name()?
                )))
            }
        },
    };
    if storage.device() != old.device() {
        return Err(PyRuntimeError::new_err(format!(
            "Attempted to set the storage of a tensor on device \"{}\" to a storage on different \
             device \"{}\". This is no longer allowed; the devices must match.",
            old.device(),
            storage.device()
        )));
    }
    let capacity = storage.bytes() / old.dtype().size();
    let size = size.unwrap_or_else(|| vec![capacity as i64]);
    let stride = match stride.filter(|s| !s.is_empty() || size.is_empty()) {
        Some(s) => s,
        None => {
            let shape = shape::sizes(&size).py()?;
            let strides = pytensorlib_core::layout::contiguous_strides(&shape);
            strides.iter().map(|&s| s as i64).collect()
        }
    };
    let item = old.dtype().size();
    let most = isize::MAX as usize / item;
    let layout = Layout::as_strided(&size, &stride, storage_offset, most, item).py()?;
    let bytes = layout.extent().py()?.saturating_mul(item);
    if bytes > storage.bytes() {
        storage.check_growth().py()?;
        storage.resize(bytes).py()?;
    }
    replace(t, &Tensor::from_storage(storage, layout, old.dtype()));
    Ok(())
}

/// `resize_`: another shape; memory grows where it has to, keeping what it holds.
#[pyfunction]
#[pyo3(signature = (t, size, memory_format=None))]
fn _resize_(
    t: &Bound<'_, PyTensor>,
    size: Vec<i64>,
    memory_format: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let old = t.get().get();
    old.check_held().py_of("resize_")?;
    if old.requires_grad() {
        return Err(PyRuntimeError::new_err(
            "cannot resize variables that require grad",
        ));
    }
    let format = match memory_format.filter(|f| !f.is_none()) {
        Some(f) => f.cast::<crate::dtype::PyMemoryFormat>()?.get().0,
        None => MemoryFormat::Contiguous,
    };
    let shape = shape::sizes(&size).py()?;
    let strides = format_strides(&shape, format).py()?;
    let layout = Layout {
        shape,
        strides,
        offset: old.offset(),
    };
    let same = layout.shape == *old.shape() && memory_format.is_none();
    if same || layout == *old.layout() {
        return Ok(());
    }
    let bytes = layout.extent().py()?.checked_mul(old.dtype().size());
    let Some(bytes) = bytes.filter(|&b| b <= isize::MAX as usize) else {
        return Err(PyRuntimeError::new_err(format!(
            "Storage size calculation overflowed with sizes={size:?}"
        )));
    };
    let alone = old.storage().is_unique();
    let mut storage = old.storage().clone();
    let kept = storage.bytes();
    if bytes > storage.bytes() {
        if storage.check_growth().is_err() {
            return Err(PyRuntimeError::new_err(
                "Trying to resize storage that is not resizable",
            ));
        }
        // Other tensors over the memory see it grow; where there are none, the old goes at once.
        if storage.is_resizable() && !alone {
            storage.resize(bytes).py()?;
        } else {
            let bigger = PyStorage(Storage::empty(bytes, old.device()).py()?);
            if kept > 0 {
                let part = bigger.flat().alias(Layout::contiguous(&[kept]));
                part.write_from(&PyStorage(storage).flat()).py()?;
            }
            storage = bigger.0;
        }
        if host::fills_memory() {
            let item = old.dtype().size();
            let offset = kept.div_ceil(item);
            let layout = Layout {
                offset,
                ..Layout::contiguous(&[(bytes / item).saturating_sub(offset)])
            };
            let grown = Tensor::from_storage(storage.clone(), layout, old.dtype());
            grown.fill_unwritten().py()?;
        }
    }
    replace(t, &Tensor::from_storage(storage, layout, old.dtype()));
    Ok(())
}

/// A tensor over bytes of the host, after a check that it stays within them.
#[pyfunction]
fn _from_bytes(
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
struct HostBytes(Tensor);

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
fn _host_bytes(t: &Bound<'_, PyAny>) -> PyResult<HostBytes> {
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
fn _read_bytes(py: Python<'_>, handle: isize, offset: u64, n: usize) -> PyResult<(Py<PyAny>, u32)> {
    let file = file_of(handle)?;
    let data = Tensor::empty(&[n], DType::U8, Device::Cpu).py()?;
    // SAFETY: nobody else has the fresh memory.
    let sum = py.detach(|| unsafe { files::read_at(&file, offset, data.slice_mut::<u8>()) })?;
    Ok((wrap(py, data)?, sum))
}

/// A file of its own behind a descriptor of the caller's; on Windows behind a handle.
fn file_of(handle: isize) -> PyResult<std::fs::File> {
    // SAFETY: the caller's is open during the call.
    Ok(unsafe { os::file_of(handle) }?)
}

/// The first `n` bytes of a file as a storage, which writes to it where it is `shared`.
#[pyfunction]
fn _map_file(handle: isize, n: usize, shared: bool) -> PyResult<PyStorage> {
    let map = FileMap::new(&file_of(handle)?, n, shared)?;
    Ok(PyStorage(Storage::mapped(map)))
}

/// The first `n` bytes of a section as a storage; its handle is the storage's from here on.
#[cfg(windows)]
#[pyfunction]
fn _map_section(handle: isize, name: String, n: usize) -> PyResult<PyStorage> {
    // SAFETY: the caller got the handle for this.
    let backing = unsafe { Backing::of_handle(handle, name) };
    Ok(PyStorage(Storage::mapped(FileMap::of(backing, n, true)?)))
}

/// Whether two tensors lie in one storage.
#[pyfunction]
fn _is_alias_of(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(borrow(a)?.shares_storage(&borrow(b)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyStorage>()?;
    m.add_function(wrap_pyfunction!(_is_alias_of, m)?)?;
    m.add_function(wrap_pyfunction!(_untyped_storage, m)?)?;
    m.add_function(wrap_pyfunction!(_set_, m)?)?;
    m.add_function(wrap_pyfunction!(_resize_, m)?)?;
    m.add_function(wrap_pyfunction!(_from_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(_host_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(_read_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(_map_file, m)?)?;
    #[cfg(windows)]
    m.add_function(wrap_pyfunction!(_map_section, m)?)?;
    Ok(())
}

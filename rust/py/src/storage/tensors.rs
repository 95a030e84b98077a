//! Tensors and the memory that they lie on: `untyped_storage`, `set_`, `resize_`.

use super::PyStorage;
use crate::cell::{borrow, PyTensor};
use crate::dtype::PyDType;
use crate::error::IntoPy;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::host;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::ops::shape::create::format_strides;
use pytensorlib_core::schema::MemoryFormat;
use pytensorlib_core::shape;
use pytensorlib_core::storage::Storage;
use pytensorlib_core::tensor::Tensor;

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
pub(super) fn _untyped_storage(t: &Bound<'_, PyAny>) -> PyResult<PyStorage> {
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
pub(super) fn _set_(
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
pub(super) fn _resize_(
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

/// Whether two tensors lie in one storage.
#[pyfunction]
pub(super) fn _is_alias_of(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(borrow(a)?.shares_storage(&borrow(b)?))
}

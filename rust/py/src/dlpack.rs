//! DLPack in both directions: memory shared with other array libraries. Both the versioned and the
//! older capsules are made and read. The structures are those of dlpack.h, version 1.

use crate::cell::borrow;
use crate::dtype::PyDevice;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::exceptions::{
    PyAssertionError, PyBufferError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyDict, PyInt};
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::layout::{contiguous_strides, Layout};
use pytensorlib_core::storage::Storage;
use pytensorlib_core::tensor::Tensor;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::NonNull;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Legacy {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
const FLAG_COPIED: u64 = 2;

/// The two kinds of managed tensors.
trait Managed: Sized + 'static {
    const NAME: &'static CStr;
    const USED: &'static CStr;
    fn make(tensor: DlTensor, copied: bool) -> Self;
    fn tensor(&self) -> &DlTensor;
    fn free(this: *mut Self);
}

impl Managed for Legacy {
    const NAME: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
    fn make(tensor: DlTensor, _copied: bool) -> Self {
        Legacy {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(release::<Legacy>),
        }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn free(this: *mut Self) {
        // SAFETY: the producer's own function for its own structure, called once.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Managed for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
    fn make(tensor: DlTensor, copied: bool) -> Self {
        Versioned {
            major: 1,
            minor: 0,
            context: std::ptr::null_mut(),
            deleter: Some(release::<Versioned>),
            flags: if copied { FLAG_COPIED } else { 0 },
            tensor,
        }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn free(this: *mut Self) {
        // SAFETY: the producer's own function for its own structure, called once.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

/// What we hand out: the structure first, so that its address is the export's.
#[repr(C)]
struct Export<M> {
    managed: M,
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
    _tensor: Tensor,
}

// SAFETY: called once, by whoever consumed the structure, with the address that was handed out.
unsafe extern "C" fn release<M>(managed: *mut M) {
    // SAFETY: the structure is the first field of a box that `export` leaked.
    unsafe {
        drop(Box::from_raw(managed.cast::<Export<M>>()));
    }
}

/// A capsule that nobody consumed frees what it holds.
// SAFETY: Python calls it with the capsule that it was made for.
unsafe extern "C" fn destroy<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter is held; what the capsule holds under this name is an `M`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) != 0 {
            M::free(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast());
        }
    }
}

fn code(d: DType) -> u8 {
    match d {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::C32 | DType::C64 | DType::C128 => 5,
        DType::Bool => 6,
        DType::F8E4M3FN => 10,
        DType::F8E4M3FNUZ => 11,
        DType::F8E5M2 => 12,
        DType::F8E5M2FNUZ => 13,
        DType::F8E8M0FNU => 14,
    }
}

fn export<M: Managed>(py: Python<'_>, t: Tensor, copied: bool) -> PyResult<Py<PyAny>> {
    t.look();
    let mut shape: Box<[i64]> = t.shape().iter().map(|&n| n as i64).collect();
    let mut strides: Box<[i64]> = t.strides().iter().map(|&s| s as i64).collect();
    let tensor = DlTensor {
        data: t.bytes_ptr().cast(),
        device_type: CPU,
        device_id: 0,
        ndim: t.ndim() as i32,
        code: code(t.dtype()),
        bits: (t.dtype().size() * 8) as u8,
        lanes: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = M::make(tensor, copied);
    let whole = Box::new(Export {
        managed,
        _shape: shape,
        _strides: strides,
        _tensor: t,
    });
    let raw: *mut Export<M> = Box::into_raw(whole);
    // SAFETY: the capsule owns the box from here on, through its destructor.
    unsafe {
        let capsule = ffi::PyCapsule_New(raw.cast(), M::NAME.as_ptr(), Some(destroy::<M>));
        if capsule.is_null() {
            release::<M>(raw.cast());
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, capsule).unbind())
    }
}

/// A capsule over a tensor's memory: versioned where `max_version` allows it.
#[pyfunction]
#[pyo3(signature = (t, *, stream=None, max_version=None, dl_device=None, copy=None))]
fn _to_dlpack(
    t: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    max_version: Option<(u32, u32)>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = t.py();
    let t = borrow(t)?;
    if t.requires_grad() {
        return Err(PyBufferError::new_err(
            "Can't export tensors that require gradient, use tensor.detach()",
        ));
    }
    if t.is_sparse() {
        return Err(PyBufferError::new_err(
            "Can't export tensors with layout other than torch.strided",
        ));
    }
    if let Some(stream) = stream.filter(|s| !s.is_none()) {
        if !stream.is_exact_instance_of::<PyInt>() {
            return Err(PyTypeError::new_err("stream must be ``int`` or ``none``"));
        }
        if !stream.eq(-1)? {
            return Err(PyAssertionError::new_err("stream should be None on cpu."));
        }
    }
    if t.device() != Device::Cpu && dl_device.is_none_or(|d| d.0 != CPU) {
        return Err(PyBufferError::new_err(format!(
            "__dlpack__: only tensors on the CPU can be shared, got one on {}; use .cpu() first",
            t.device()
        )));
    }
    if let Some((kind, _)) = dl_device.filter(|d| d.0 != CPU) {
        return Err(PyBufferError::new_err(format!(
            "Unsupported device_type: {kind}: a tensor of the CPU is shared with the CPU alone"
        )));
    }
    let copied = copy == Some(true) || t.device() != Device::Cpu;
    if t.device() != Device::Cpu && copy == Some(false) {
        return Err(PyBufferError::new_err(
            "__dlpack__: sharing across devices needs a copy",
        ));
    }
    let t = match copied {
        true => t.to(t.dtype(), Device::Cpu, true, None).py()?,
        false => t,
    };
    t.check_open().py()?;
    t.storage().pin();
    if max_version.is_some_and(|v| v.0 >= 1) {
        export::<Versioned>(py, t, copied)
    } else {
        export::<Legacy>(py, t, copied)
    }
}

/// Memory of another library, given back when the last tensor over it goes.
struct Owner<M: Managed>(*mut M);

// SAFETY: DLPack lets a deleter be called from any thread; nothing else is done with the pointer.
unsafe impl<M: Managed> Send for Owner<M> {}
// SAFETY: references to an owner do nothing; only dropping it uses the pointer.
unsafe impl<M: Managed> Sync for Owner<M> {}

impl<M: Managed> Drop for Owner<M> {
    fn drop(&mut self) {
        M::free(self.0);
    }
}

/// Takes what a capsule holds.
fn consume<M: Managed>(capsule: *mut ffi::PyObject, py: Python<'_>) -> PyResult<Tensor> {
    // SAFETY: the capsule was found valid under this name, so the pointer is a live `M`.
    let managed = unsafe {
        let p = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
        if p.is_null() {
            return Err(PyErr::fetch(py));
        }
        p
    };
    // SAFETY: the pointer is a live `M`, see where it was read; its arrays have `ndim` items.
    let d = unsafe { (*managed).tensor() };
    if d.device_type != CPU && d.device_type != CUDA_HOST {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: only memory of the CPU can be shared, got device type {}",
            d.device_type
        )));
    }
    let all = pytensorlib_core::dtype::ALL.into_iter();
    let dtype = all
        .filter(|t| code(*t) == d.code && t.size() * 8 == d.bits as usize)
        .find(|_| d.lanes == 1);
    let Some(dtype) = dtype else {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: unsupported element type: code {}, {} bits, {} lanes",
            d.code, d.bits, d.lanes
        )));
    };
    let n = usize::try_from(d.ndim).unwrap_or(0);
    let list = |p: *mut i64| -> &[i64] {
        match n {
            0 => &[],
            // SAFETY: the lists of sizes and of strides have `ndim` items, and live as long as the structure.
            _ => unsafe { std::slice::from_raw_parts(p, n) },
        }
    };
    if d.ndim < 0 || (n > 0 && d.shape.is_null()) {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: a tensor of {} dimensions needs as many sizes, got none",
            d.ndim
        )));
    }
    let sizes = list(d.shape);
    let shape = pytensorlib_core::shape::sizes(sizes).py()?;
    let strides = if d.strides.is_null() {
        contiguous_strides(&shape)
    } else {
        let strides = list(d.strides);
        if strides.iter().zip(sizes).any(|(&s, &n)| s < 0 && n > 1) {
            return Err(PyBufferError::new_err(format!(
                "from_dlpack: negative strides are not supported, got {strides:?}; make a \
                 contiguous copy first"
            )));
        }
        strides.iter().map(|&s| (s as isize).max(0)).collect()
    };
    let layout = Layout {
        shape,
        strides,
        offset: 0,
    };
    let bytes = layout.extent().py()?.saturating_mul(dtype.size());
    let address = (d.data as usize).wrapping_add(d.byte_offset as usize);
    if bytes > isize::MAX as usize || (bytes > 0 && d.data.is_null()) {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: there cannot be {bytes} bytes at address {:#x}",
            d.data as usize
        )));
    }
    let ptr = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
    // SAFETY: renaming marks the capsule as consumed: what it held is ours to free.
    unsafe {
        if ffi::PyCapsule_SetName(capsule, M::USED.as_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    crate::object::note_held();
    // SAFETY: the producer keeps the memory until its deleter runs, when the owner is dropped.
    let storage = unsafe { Storage::lent(ptr, bytes, Box::new(Owner(managed))) };
    let t = Tensor::from_storage(storage, layout, dtype);
    match address % dtype.size().min(8) {
        0 => Ok(t),
        _ => crate::numpy::aligned(t),
    }
}

pub fn from_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    // Of several threads one takes what it holds.
    with_critical_section(capsule, || taken(capsule))
}

fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let p = capsule.as_ptr();
    // SAFETY: asks for the capsule's name only.
    let named = |name: *const c_char| unsafe { ffi::PyCapsule_IsValid(p, name) } != 0;
    if named(Versioned::NAME.as_ptr()) {
        // SAFETY: valid under the versioned name; the version comes first in every version.
        let major = unsafe {
            (*ffi::PyCapsule_GetPointer(p, Versioned::NAME.as_ptr()).cast::<Versioned>()).major
        };
        if major > 1 {
            return Err(PyBufferError::new_err(format!(
                "from_dlpack: DLPack version {major} is newer than ours (1)"
            )));
        }
        return consume::<Versioned>(p, capsule.py());
    }
    if named(Legacy::NAME.as_ptr()) {
        return consume::<Legacy>(p, capsule.py());
    }
    Err(PyRuntimeError::new_err(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only \
         once, so you might have already constructed a tensor from it once.",
    ))
}

/// A tensor over the memory of an object with `__dlpack__`.
pub fn import(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if obj.is_instance_of::<PyCapsule>() {
        return from_capsule(obj);
    }
    from_capsule(&ask(obj, None)?)
}

/// Calls `__dlpack__`, in the older way where the producer knows no other.
fn ask<'py>(obj: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    if !obj.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err(format!(
            "from_dlpack: expected an object with __dlpack__ or a DLPack capsule, got {}",
            obj.get_type().name()?
        )));
    }
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    if copy.is_some() {
        options.set_item("copy", copy)?;
    }
    match obj.call_method("__dlpack__", (), Some(&options)) {
        Err(e) if e.is_instance_of::<PyTypeError>(py) && copy.is_none() => {
            obj.call_method0("__dlpack__")
        }
        other => other,
    }
}

/// A tensor that shares memory with an object of another library, by the DLPack protocol.
///
/// Parameters
/// ----------
/// ext_tensor : object
///     Has the method ``__dlpack__``, or is such a capsule.
/// device : device or str, optional
///     Only the device of `ext_tensor`.
/// copy : bool, optional
///     True copies, False never does; if not given, only where it must.
///
/// Returns
/// -------
/// Tensor
///     Over the memory of `ext_tensor`.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> import numpy as np
/// >>> torch.from_dlpack(np.arange(3.0))
/// tensor([0., 1., 2.], dtype=torch.float64)
#[pyfunction]
#[pyo3(signature = (ext_tensor, *, device=None, copy=None))]
fn from_dlpack(
    ext_tensor: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let capsule = ext_tensor.is_instance_of::<PyCapsule>();
    let t = match capsule {
        true => from_capsule(ext_tensor)?,
        false => from_capsule(&ask(ext_tensor, copy.filter(|&c| !c))?)?,
    };
    let device = match device.filter(|d| !d.is_none()) {
        None => t.device(),
        Some(d) => PyDevice::expect(d)?,
    };
    if copy == Some(false) && device != t.device() {
        return Err(PyValueError::new_err(format!(
            "from_dlpack: cannot move DLPack tensor from device {} to {device} without copying; \
             leave copy=False out",
            t.device()
        )));
    }
    wrap(
        ext_tensor.py(),
        t.to(t.dtype(), device, copy == Some(true), None).py()?,
    )
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_to_dlpack, m)?)?;
    m.add_function(wrap_pyfunction!(from_dlpack, m)?)?;
    Ok(())
}

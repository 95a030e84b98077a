//! The whole process: threads, the default device, memory; and bytes of files.

use crate::convert::operand;
use crate::dtype::{dtype_object, PyDType, PyDevice};
use crate::error::IntoPy;
use crate::numpy::is_ndarray;
use crate::object::wrap;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pytensorlib_core::cpu::{files, gemm, pool};
use pytensorlib_core::dtype::Promotion;
use pytensorlib_core::graph::change_settings;
use pytensorlib_core::tensor::Tensor;
use pytensorlib_core::{alloc, device, dispatch, host, machine};
use std::sync::Arc;

/// The number of threads that kernels on the CPU use.
///
/// Returns
/// -------
/// int
///     At least 1.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.get_num_threads() >= 1
/// True
#[pyfunction]
fn get_num_threads() -> usize {
    pool::num_threads()
}

/// Set the number of threads that kernels on the CPU use. Results do not depend on it.
///
/// Parameters
/// ----------
/// num : int
///     Above 0.
///
/// Raises
/// ------
/// RuntimeError
///     `num` is not positive.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.set_num_threads(torch.get_num_threads())
#[pyfunction]
#[pyo3(name = "set_num_threads")]
fn put_num_threads(num: i64) -> PyResult<()> {
    if num <= 0 {
        return Err(PyRuntimeError::new_err(format!(
            "set_num_threads expects a positive integer, got {num}"
        )));
    }
    change_settings().py()?;
    pool::set_num_threads(usize::try_from(num).unwrap_or(1).min(1024));
    Ok(())
}

/// Sets how many bfloat16 terms stand for a float32 number where machines multiply faster so.
#[pyfunction]
fn _set_float32_matmul_terms(terms: usize) -> PyResult<()> {
    change_settings().py()?;
    gemm::set_precision(terms);
    Ok(())
}

/// The result of `call()`, in which results that are not as planned raise.
#[pyfunction]
fn _checked<'py>(call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    dispatch::interpreted(Arc::new(dispatch::Checks), || call.call0())
}

/// Warns the first time that it is called with this text.
#[pyfunction]
fn _warn_once(text: &str) {
    host::warn_once(text);
}

/// Sets whether warnings that come once come each time.
#[pyfunction]
fn _set_warn_always(on: bool) {
    host::set_warn_always(on);
}

/// Says what ops do whose result PyTorch leaves open (0 nothing, 1 warn, 2 raise), and whether new
/// memory is filled then.
#[pyfunction]
fn _set_determinism(level: u8, fills: bool) -> PyResult<()> {
    change_settings().py()?;
    host::set_determinism(level, fills);
    Ok(())
}

/// Says what happens where the host waits for what a GPU computed, and returns what did: 0 nothing, 1 a warning,
/// 2 an error, 3 an error of what is being captured.
#[pyfunction]
fn _set_waiting(level: u8) -> u8 {
    host::set_waiting(level)
}

/// Says whether kernels may be chosen by time where their bits differ.
#[pyfunction]
fn _set_kernel_choice(free: bool) {
    host::set_choice(free);
}

/// The result of `call()`, the names of the ops that it asked for, the tensors that these made or
/// wrote to, and those that they read which none had made.
#[pyfunction]
fn _witnessed<'py>(call: &Bound<'py, PyAny>) -> PyResult<Witnessed<'py>> {
    let witness = Arc::new(dispatch::Witness::default());
    let result = dispatch::interpreted(witness.clone(), || call.call0())?;
    let seen = witness.seen();
    let wrapped = |all: Vec<Tensor>| -> PyResult<Objects> {
        all.into_iter().map(|t| wrap(call.py(), t)).collect()
    };
    Ok((result, seen.names, wrapped(seen.made)?, wrapped(seen.read)?))
}

type Objects = Vec<Py<PyAny>>;
type Witnessed<'py> = (Bound<'py, PyAny>, Vec<&'static str>, Objects, Objects);

/// The device of tensors that name none.
///
/// Returns
/// -------
/// device
///     ``cpu`` unless `set_default_device` was called.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.get_default_device()
/// device(type='cpu')
#[pyfunction]
fn get_default_device() -> PyDevice {
    PyDevice::of(device::default_device())
}

/// Set the device of tensors that name none, for this thread.
///
/// Parameters
/// ----------
/// device : device, str or None
///     None is the CPU.
///
/// Raises
/// ------
/// RuntimeError
///     There is no such device.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.set_default_device("cpu")
#[pyfunction]
fn set_default_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let to = match device {
        None => device::Device::Cpu,
        Some(d) => PyDevice::expect(d)?,
    };
    device::set_default_device(to);
    Ok(())
}

/// Fills each new block of host memory with a byte, or no longer, for tests.
#[pyfunction]
fn _fill_new_memory(byte: Option<u8>) {
    alloc::fill_new(byte);
}

/// Bytes that the allocator holds of the system, those of them that are free, and how often it asked.
#[pyfunction]
fn _memory_stats() -> (usize, usize, usize) {
    let now = alloc::stats();
    (now.reserved, now.cached, now.system_calls)
}

/// Gives the free blocks of the allocator back to the system.
#[pyfunction]
fn _empty_cache() {
    alloc::empty_cache();
}

/// What kernels are chosen by; sizes in bytes.
#[pyfunction]
fn _machine(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let m = machine::machine();
    let d = PyDict::new(py);
    d.set_item("level", m.level.name())?;
    d.set_item("amx", format!("{:?}", m.amx).to_lowercase())?;
    d.set_item("is_amd", m.is_amd)?;
    for (name, size) in [
        ("l1", m.l1),
        ("l2", m.l2),
        ("last", m.last),
        ("large", m.large),
    ] {
        d.set_item(name, size)?;
    }
    Ok(d)
}

/// Which floating-point exceptions this thread has seen since the last call, as bits of MXCSR; tests
/// ask, since a denormal number is an exception. Always 0 where there is no such register.
#[pyfunction]
fn _float_exceptions() -> u32 {
    machine::float_exceptions()
}

/// The bytes of a contiguous buffer.
fn bytes_of(buffer: &PyBuffer<u8>) -> PyResult<(*mut u8, usize)> {
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer must be contiguous"));
    }
    Ok((buffer.buf_ptr().cast(), buffer.len_bytes()))
}

/// The CRC-32 of a buffer of bytes that follow others of CRC-32 `before`.
#[pyfunction]
#[pyo3(signature = (data, before=0))]
fn _crc32(py: Python<'_>, data: PyBuffer<u8>, before: u32) -> PyResult<u32> {
    let (start, n) = bytes_of(&data)?;
    if n == 0 {
        return Ok(before);
    }
    // SAFETY: the buffer is held until the end of the call.
    let bytes = unsafe { std::slice::from_raw_parts(start, n) };
    Ok(py.detach(|| files::crc32(before, bytes)))
}

/// Copies a buffer to the start of another; the CRC-32 of the copy, after bytes of CRC-32 `before`.
#[pyfunction]
fn _copy_summed(
    py: Python<'_>,
    source: PyBuffer<u8>,
    target: PyBuffer<u8>,
    before: u32,
) -> PyResult<u32> {
    let ((from, n), (to, room)) = (bytes_of(&source)?, bytes_of(&target)?);
    if target.readonly() || room < n || n == 0 {
        return Err(PyBufferError::new_err(
            "the buffer must be writable and large enough",
        ));
    }
    let (from, to) = (from as usize, to as usize);
    if from < to + n && to < from + n {
        return Err(PyBufferError::new_err("the buffers overlap"));
    }
    // SAFETY: both buffers are held until the end of the call, have room and do not overlap.
    Ok(py.detach(|| unsafe { files::copy_summed(before, from as *const u8, to as *mut u8, n) }))
}

/// The dtype in which two operands are computed. Numbers, and tensors without dimensions, only
/// count where their kind (bool, integer, floating point, complex) is higher.
///
/// Parameters
/// ----------
/// tensor1, tensor2 : Tensor or number
///     The operands.
///
/// Returns
/// -------
/// dtype
///     The common dtype.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.result_type(torch.tensor([1], dtype=torch.int8), 1000) == torch.int8
/// True
#[pyfunction]
fn result_type(
    py: Python<'_>,
    tensor1: &Bound<'_, PyAny>,
    tensor2: &Bound<'_, PyAny>,
) -> PyResult<Py<PyDType>> {
    let mut found = Promotion::default();
    for (i, o) in [tensor1, tensor2].into_iter().enumerate() {
        match operand(o)? {
            Some(t) if !is_ndarray(o) => {
                found.add(t.dtype(), t.ndim(), t.is_wrapped());
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "result_type(): argument 'tensor{}' (position {}) must be Tensor or Number, \
                     not {}",
                    i + 1,
                    i + 1,
                    o.get_type().name()?
                )))
            }
        }
    }
    Ok(dtype_object(py, found.result().py()?).clone_ref(py))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(result_type, m)?)?;
    m.add_function(wrap_pyfunction!(_checked, m)?)?;
    m.add_function(wrap_pyfunction!(_witnessed, m)?)?;
    m.add_function(wrap_pyfunction!(_set_float32_matmul_terms, m)?)?;
    m.add_function(wrap_pyfunction!(_set_determinism, m)?)?;
    m.add_function(wrap_pyfunction!(_set_warn_always, m)?)?;
    m.add_function(wrap_pyfunction!(_warn_once, m)?)?;
    m.add_function(wrap_pyfunction!(_set_kernel_choice, m)?)?;
    m.add_function(wrap_pyfunction!(_set_waiting, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(put_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(_fill_new_memory, m)?)?;
    m.add_function(wrap_pyfunction!(_empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(_machine, m)?)?;
    m.add_function(wrap_pyfunction!(_float_exceptions, m)?)?;
    m.add_function(wrap_pyfunction!(_crc32, m)?)?;
    m.add_function(wrap_pyfunction!(_copy_summed, m)?)?;
    Ok(())
}

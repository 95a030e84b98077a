//! Switches of the whole process: threads and the default device.

use crate::dtype::PyDevice;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pytensorlib_core::cpu::pool;
use pytensorlib_core::device;

/// The number of threads that kernels on the CPU use.
#[pyfunction]
fn get_num_threads() -> usize {
    pool::num_threads()
}

/// Sets the number of threads that kernels on the CPU use.
#[pyfunction]
#[pyo3(name = "set_num_threads")]
fn put_num_threads(num: i64) -> PyResult<()> {
    if num <= 0 {
        return Err(PyRuntimeError::new_err(format!(
            "set_num_threads expects a positive integer, got {num}"
        )));
    }
    pool::set_num_threads(usize::try_from(num).unwrap_or(1).min(1024));
    Ok(())
}

/// The device of tensors that name none.
#[pyfunction]
fn get_default_device() -> PyDevice {
    PyDevice::of(device::default_device())
}

/// Sets the device of tensors that name none; `None` is the CPU.
#[pyfunction]
fn set_default_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let to = match device {
        None => device::Device::Cpu,
        Some(d) => match d.cast::<PyDevice>() {
            Ok(d) => d.get().device,
            Err(_) => PyDevice::parse(&d.extract::<String>()?)?.device,
        },
    };
    device::set_default_device(to);
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(put_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_device, m)?)?;
    Ok(())
}

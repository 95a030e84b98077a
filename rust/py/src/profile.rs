//! Profiles: `_Profile` notes what the thread asks for between `start` and `stop`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pytensorlib_core::device::Device;
use pytensorlib_core::dispatch::{Event, InForce, Interpreter, Profile};
use pytensorlib_core::op::TensorMeta;
use std::sync::Arc;

/// An interpreter of the core's that notes each request with its times, shapes and types.
#[pyclass(name = "_Profile", module = "pytensorlib._C", frozen)]
struct PyProfile(Arc<Profile>);

impl PyProfile {
    fn interpreter(&self) -> Arc<dyn Interpreter> {
        self.0.clone()
    }
}

#[pymethods]
impl PyProfile {
    #[new]
    fn new() -> PyProfile {
        PyProfile(Arc::new(Profile::default()))
    }
    /// Begins to note what this thread asks for.
    fn start(&self) {
        InForce::here().above(self.interpreter()).put();
    }
    /// Ends it.
    fn stop(&self) {
        InForce::here().without(&self.interpreter()).put();
    }
    /// Nanoseconds since the profile was made.
    fn now(&self) -> u64 {
        self.0.now()
    }
    /// What was noted since the last call: name, start, end, inputs, outputs and whether these are
    /// new memory. A tensor is its shape, its dtype by name, and whether it is
    /// on a GPU.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for e in self.0.take() {
            list.append(told(py, &e)?)?;
        }
        Ok(list)
    }
}

fn told<'py>(py: Python<'py>, e: &Event) -> PyResult<Bound<'py, PyTuple>> {
    let tensors = |all: &[TensorMeta]| -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for m in all {
            list.append((
                PyTuple::new(py, &m.shape)?,
                m.dtype.name(),
                m.device != Device::Cpu,
            ))?;
        }
        Ok(list)
    };
    (
        e.name,
        e.start,
        e.end,
        tensors(&e.x)?,
        tensors(&e.y)?,
        e.fresh,
    )
        .into_pyobject(py)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyProfile>()
}

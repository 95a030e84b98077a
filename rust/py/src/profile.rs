//! Interpreters between `start` and `stop`: `_Profile` notes what the thread asks for, `_Compare`
//! holds the GPU to the host.

use crate::cell::borrow;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pytensorlib_core::device::Device;
use pytensorlib_core::dispatch::{self, Compare, Event, InForce, Interpreter, Profile};
use pytensorlib_core::op::TensorMeta;
use pytensorlib_core::tensor::Tensor;
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
    #[pyo3(signature = (stacks=false))]
    fn new(stacks: bool) -> PyProfile {
        PyProfile(Arc::new(Profile::new(stacks)))
    }
    /// Begins to note what this thread asks for and, where it is told to, when GPUs work.
    #[pyo3(signature = (gpus=false))]
    fn start(&self, gpus: bool) {
        if gpus {
            self.0.watch();
        }
        InForce::here().above(self.interpreter()).put();
    }
    /// Ends it, and gives what GPUs did meanwhile where that was noted: the number of the GPU, the kernel, the graph nodes
    /// and requests that it worked for, workgroups and bytes bound, and when it was recorded,
    /// began and ended.
    #[allow(clippy::type_complexity)]
    #[pyo3(signature = (gpus=false))]
    fn stop(
        &self,
        py: Python<'_>,
        gpus: bool,
    ) -> PyResult<
        Vec<(
            u8,
            String,
            Vec<(&'static str, u64)>,
            u64,
            u64,
            (f64, f64, f64),
        )>,
    > {
        InForce::here().without(&self.interpreter()).put();
        if !gpus {
            return Ok(vec![]);
        }
        let works = py.detach(|| self.0.unwatch()).py()?;
        let told = works.into_iter().map(|(gpu, w)| {
            let times = (w.recorded, w.begin, w.end);
            let clients = w.clients.iter().map(|c| (c.op, c.request)).collect();
            (gpu, w.kernel, clients, w.groups, w.bytes, times)
        });
        Ok(told.collect())
    }
    /// Nanoseconds since the profile was made.
    fn now(&self) -> u64 {
        self.0.now()
    }
    /// What was noted since the last call: name, start, end, inputs, outputs, whether these are new
    /// memory, the number of the request, the modules and the Python calls at work. A tensor is its shape, its dtype by name, and whether it is
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
        e.request,
        &e.modules,
        &e.stack,
    )
        .into_pyobject(py)
}

/// An interpreter of the core's that holds the GPU to the host.
#[pyclass(name = "_Compare", module = "pytensorlib._C", frozen)]
struct PyCompare(Arc<Compare>);

#[pymethods]
impl PyCompare {
    #[new]
    #[pyo3(signature = (tolerance=None))]
    fn new(tolerance: Option<f64>) -> PyCompare {
        PyCompare(Arc::new(Compare::new(tolerance)))
    }
    fn start(&self) {
        let compare: Arc<dyn Interpreter> = self.0.clone();
        InForce::here().above(compare).put();
    }
    fn stop(&self) {
        let compare: Arc<dyn Interpreter> = self.0.clone();
        InForce::here().without(&compare).put();
    }
    /// How many requests were compared.
    #[getter]
    fn compared(&self) -> u64 {
        self.0.compared()
    }
}

/// Whether what this thread asks a GPU for is compared with the host.
#[pyfunction]
fn _is_comparing() -> bool {
    dispatch::comparing()
}

/// Copies on the host of tensors.
#[pyfunction]
fn _copied_to_compare<'py>(
    py: Python<'py>,
    x: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let x: Vec<Tensor> = x.iter().map(borrow).collect::<PyResult<_>>()?;
    let x: Vec<&Tensor> = x.iter().collect();
    let list = PyList::empty(py);
    for copy in dispatch::before_comparing(&x).py()? {
        list.append(wrap(py, copy)?)?;
    }
    Ok(list)
}

/// The modules at work on this thread, by their classes.
#[pyfunction]
fn _modules_at_work() -> String {
    crate::module::at_work()
}

/// Raises where a function gave something else on a GPU than on the host.
#[pyfunction]
fn _compare(
    name: &str,
    modules: &str,
    x: Vec<Bound<'_, PyAny>>,
    got: Vec<Bound<'_, PyAny>>,
    want: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let all = |of: &[Bound<'_, PyAny>]| of.iter().map(borrow).collect::<PyResult<Vec<Tensor>>>();
    dispatch::compare(name, modules, &all(&x)?, &all(&got)?, &all(&want)?).py()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_is_comparing, m)?)?;
    m.add_function(wrap_pyfunction!(_copied_to_compare, m)?)?;
    m.add_function(wrap_pyfunction!(_modules_at_work, m)?)?;
    m.add_function(wrap_pyfunction!(_compare, m)?)?;
    m.add_class::<PyCompare>()?;
    m.add_class::<PyProfile>()
}

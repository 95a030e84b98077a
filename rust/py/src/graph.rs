//! Calls that are recorded and run again, for `torch.graph`, and that are matched, for `torch.compile`.

use crate::convert::tensor;
use crate::error::IntoPy;
use crate::object::wrap;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::PyClass;
use pytensorlib_core::autograd::saved;
use pytensorlib_core::dispatch::heeded;
use pytensorlib_core::graph::{set_tiny, Ending, Matched, Recorder, Runs, Trace};
use pytensorlib_core::tensor::Tensor;
use std::sync::Arc;

fn tensors(list: &Bound<'_, PyList>) -> Vec<Tensor> {
    list.iter().filter_map(|o| tensor(&o)).collect()
}

/// Either what was asked for or a sentence that says why not.
#[derive(IntoPyObject)]
enum Answer<'py, T: PyClass> {
    Found(Bound<'py, T>),
    Not(String),
}

/// Notes what one call asks for.
#[pyclass(name = "_Recorder", module = "pytensorlib._C", frozen)]
struct PyRecorder(Arc<Recorder>);

#[pymethods]
impl PyRecorder {
    #[new]
    fn new(inputs: &Bound<'_, PyList>, before: Option<&PyTrace>) -> PyRecorder {
        let before = before.map(|b| b.0.lock());
        let before = before.as_ref().and_then(|b| b.as_deref());
        PyRecorder(Arc::new(Recorder::new(&tensors(inputs), before)))
    }
    fn start(&self) {
        Recorder::start(&self.0);
    }
    fn stop(&self) {
        Recorder::stop(&self.0);
    }
    /// Records the way back from results that have a graph.
    fn walk_back(&self, outputs: &Bound<'_, PyList>) -> PyResult<()> {
        self.0.walk_back(&tensors(outputs)).py()
    }
    /// The record of a call with these results, or why it cannot be run again.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyList>,
    ) -> PyResult<Answer<'py, PyTrace>> {
        Ok(match self.0.finish(&tensors(outputs)).py()? {
            Ending::Refused(why) => Answer::Not(why),
            Ending::Done(trace) => Answer::Found(Bound::new(py, PyTrace(Mutex::new(Some(trace))))?),
        })
    }
}

/// What one call asked for.
#[pyclass(name = "_Trace", module = "pytensorlib._C", frozen)]
struct PyTrace(Mutex<Option<Box<Trace>>>);

#[pymethods]
impl PyTrace {
    /// The program of this call, which ends the record, or how it differs from the call before.
    fn program<'py>(&self, py: Python<'py>, before: &PyTrace) -> PyResult<Answer<'py, PyProgram>> {
        let gone = || PyRuntimeError::new_err("the record has become a program");
        let now = self.0.lock();
        let before = before.0.lock();
        let (trace, old) = (
            now.as_ref().ok_or_else(gone)?,
            before.as_ref().ok_or_else(gone)?,
        );
        if let Some(what) = trace.differs(old).py()? {
            return Ok(Answer::Not(what));
        }
        let old = before.as_ref().ok_or_else(gone)?;
        let mut now = now;
        let trace = now.take().ok_or_else(gone)?;
        let runs = Runs::new(trace.program(old)).py()?;
        Ok(Answer::Found(Bound::new(py, PyProgram(runs))?))
    }
}

/// A recorded call that can be run again.
#[pyclass(name = "_Program", module = "pytensorlib._C", frozen)]
struct PyProgram(Arc<Runs>);

#[pymethods]
impl PyProgram {
    /// Why a call with these tensors is not the recorded one.
    fn misfit(&self, inputs: &Bound<'_, PyList>) -> Option<&'static str> {
        self.0.program().misfit(&tensors(inputs))
    }
    /// The results of the program for these tensors; `None` where they do not fit it, or where it is at
    /// work.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyList>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(outputs) = self.0.call(&tensors(inputs)).py()? else {
            return Ok(None);
        };
        let list = PyList::empty(py);
        for t in outputs {
            list.append(wrap(py, t)?)?;
        }
        Ok(Some(list))
    }
    /// The number of kernels, of those on the way back too.
    #[getter]
    fn steps(&self) -> usize {
        self.0.program().steps().len()
    }
    /// Whether results have a graph.
    #[getter]
    fn differentiable(&self) -> bool {
        self.0.program().is_differentiable()
    }
    /// Whether it draws random numbers.
    #[getter]
    fn draws(&self) -> bool {
        self.0.program().draws()
    }
    /// Whether memory that it works on is gone with its GPU.
    #[getter]
    fn lost(&self) -> bool {
        self.0.is_lost()
    }
    /// The number of dispatches of a GPU that are kept, to be recorded again without asking the ops.
    #[getter]
    fn kept(&self) -> usize {
        self.0.kept()
    }
    /// Chains of pointwise kernels beside others, and those that ran in the others' tiles the last time.
    #[getter]
    fn beside(&self) -> [usize; 2] {
        self.0.program().beside()
    }
    /// Bytes of memory that kernels make, each by itself, and bytes that are held for them.
    #[getter]
    fn bytes(&self) -> (usize, usize) {
        (self.0.program().made(), self.0.held())
    }
}

/// A function whose calls are matched with those before.
#[pyclass(name = "_Matched", module = "pytensorlib._C", frozen)]
struct PyMatched(Arc<Matched>);

#[pymethods]
impl PyMatched {
    #[new]
    fn new() -> PyMatched {
        PyMatched(Matched::new())
    }
    /// Calls a function; what it asks for is put off while it is what calls before asked for.
    #[pyo3(signature = (function, args, kwargs))]
    fn call(
        &self,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (result, done) = self.0.call(|| function.call(args, kwargs));
        let result = result?.unbind();
        done.py().map(|()| result)
    }
    /// Sets the elements up to which work is done at once, for tests.
    #[staticmethod]
    fn set_tiny(elements: usize) {
        set_tiny(elements);
    }
    /// Forgets all calls.
    fn forget(&self) {
        self.0.forget();
    }
    /// Requests that were matched, others, programs, and how often one ran: of calls, and of the backward
    /// passes that followed them.
    #[getter]
    fn counts(&self) -> [(u64, u64, usize, u64); 2] {
        let counts = self.0.counts();
        counts.map(|c| (c.matched, c.others, c.programs, c.runs))
    }
}

/// Whether interpreters are in force on this thread that look at all tensors.
#[pyfunction]
fn _is_interpreted() -> bool {
    heeded(&[])
}

/// Whether what this thread saves for backward goes through hooks.
#[pyfunction]
fn _has_saved_tensor_hooks() -> bool {
    saved::has_hooks()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRecorder>()?;
    m.add_class::<PyTrace>()?;
    m.add_class::<PyProgram>()?;
    m.add_class::<PyMatched>()?;
    m.add_function(wrap_pyfunction!(_has_saved_tensor_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_is_interpreted, m)?)
}

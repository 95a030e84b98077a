//! `vmap`: `_Batch` is an interpreter between `start` and `stop`.

use crate::cell::borrow;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pytensorlib_core::batch::{self, Batch, Batched, Loops, Randomness};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function at work on slices of its arguments.
#[pyclass(name = "_Batch", module = "pytensorlib._C", frozen)]
struct PyBatch(Arc<Batch>);

#[pymethods]
impl PyBatch {
    #[new]
    fn new(size: usize, randomness: &str) -> PyResult<PyBatch> {
        let randomness = match randomness {
            "error" => Randomness::Error,
            "same" => Randomness::Same,
            "different" => Randomness::Different,
            other => {
                return Err(PyValueError::new_err(format!(
                    "randomness: expected 'error', 'same' or 'different', got {other:?}"
                )))
            }
        };
        Ok(PyBatch(Batch::new(size, randomness)))
    }
    /// Begins to interpret what this thread asks for.
    fn start(&self) {
        Batch::start(&self.0);
    }
    fn stop(&self) {
        Batch::stop(&self.0);
    }
    /// What a tensor is to the function, whose slices lie along `dim`; asked before `start`.
    fn enter(&self, py: Python<'_>, x: &Bound<'_, PyAny>, dim: usize) -> PyResult<Py<PyAny>> {
        wrap(py, self.0.enter(&borrow(x)?, dim).py()?)
    }
    /// What the function returned, with its slices along `dim`; asked after `stop`.
    fn leave(&self, py: Python<'_>, x: &Bound<'_, PyAny>, dim: usize) -> PyResult<Py<PyAny>> {
        wrap(py, self.0.leave(&borrow(x)?, dim).py()?)
    }
    /// What a tensor of the function is outside of it, and the dimension of its slices if it has them.
    fn outside(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
    ) -> PyResult<(Py<PyAny>, Option<usize>)> {
        let (t, dim) = self.0.outside(&borrow(x)?).py()?;
        Ok((wrap(py, t)?, dim))
    }
    /// Whether a tensor is another one for each slice.
    fn has(&self, x: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.has(&borrow(x)?))
    }
}

/// What a tensor inside of `vmap` is a slice of, and the dimension; `None` of others.
#[pyfunction]
fn _slices_of(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Option<(Py<PyAny>, usize)>> {
    let x = borrow(x)?;
    let Some((whole, dim)) = Batched::of(&x).map(Batched::given) else {
        return Ok(None);
    };
    Ok(Some((wrap(py, whole.clone())?, dim)))
}

/// Whether something that a gradient is asked for takes part in what `vmap` maps on this thread.
#[pyfunction]
fn _vmap_tracks() -> bool {
    batch::tracks()
}

/// The same tensor without a history: a leaf of what is differentiated here.
#[pyfunction]
fn _leaf_of(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = borrow(x)?;
    let y = match batch::leaf(&t) {
        Some(y) => y,
        // Tangents go on, and only they: others are told of it.
        None if t.dual().is_some() => t.detach(),
        None => t.detached().py_of("detach")?,
    };
    wrap(py, y)
}

/// The same tensor without a history of its own. What it is a slice of keeps its history.
#[pyfunction]
fn _detach(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = borrow(x)?;
    let y = match t.held::<Batched>() {
        Some(_) => t.detach(),
        None if t.dual().is_some() => t.detach(),
        None => t.detached().py_of("detach")?,
    };
    wrap(py, y)
}

/// How often ops ran once for each slice, by their names.
#[pyfunction]
fn _vmap_loops() -> BTreeMap<String, u64> {
    batch::loops()
}

/// Says what happens where an op runs once for each slice, nothing (0), a warning (1) or an error (2), and
/// gives what did.
#[pyfunction]
fn _set_vmap_loops(how: u8) -> u8 {
    let how = match how {
        0 => Loops::Quiet,
        1 => Loops::Warned,
        _ => Loops::Refused,
    };
    batch::set_loops(how) as u8
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_slices_of, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_tracks, m)?)?;
    m.add_function(wrap_pyfunction!(_detach, m)?)?;
    m.add_function(wrap_pyfunction!(_leaf_of, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_loops, m)?)?;
    m.add_function(wrap_pyfunction!(_set_vmap_loops, m)?)?;
    m.add_class::<PyBatch>()
}

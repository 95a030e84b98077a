//! Forward mode: `_Forward` is a level that follows tangents between `start` and `stop`.

use crate::cell::borrow;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::prelude::*;
use pytensorlib_core::autograd::mode;
use pytensorlib_core::forward::{Forward, Linear};
use pytensorlib_core::tensor::Tensor;
use std::sync::Arc;

/// A level of forward mode.
#[pyclass(name = "_Forward", module = "pytensorlib._C", frozen)]
struct PyForward(Arc<Forward>);

#[pymethods]
impl PyForward {
    #[new]
    fn new() -> PyForward {
        PyForward(Forward::new())
    }
    /// Begins to follow what this thread computes.
    fn start(&self) {
        Forward::start(&self.0);
    }
    fn stop(&self) {
        Forward::stop(&self.0);
    }
    /// A tensor like `x` that carries a tangent, or may get one; asked before `start`.
    #[pyo3(signature = (x, tangent=None))]
    fn enter(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        tangent: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let tangent = tangent.map(borrow).transpose()?;
        wrap(py, self.0.enter(&borrow(x)?, tangent.as_ref()).py()?)
    }
    /// Gives a tensor a tangent, or another one.
    #[pyo3(signature = (x, tangent=None))]
    fn give(&self, x: &Bound<'_, PyAny>, tangent: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let tangent = tangent.map(borrow).transpose()?;
        self.0.give(&borrow(x)?, tangent.as_ref()).py()
    }
    /// What a tensor is below this level, and its tangent if it has one.
    fn leave(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
    ) -> PyResult<(Py<PyAny>, Option<Py<PyAny>>)> {
        let (primal, tangent) = self.0.leave(&borrow(x)?).py()?;
        let tangent = tangent.map(|t| wrap(py, t)).transpose()?;
        Ok((wrap(py, primal)?, tangent))
    }
    /// Whether it is a tensor of this level.
    fn has(&self, x: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.has(&borrow(x)?))
    }
    /// Whether tensors that others than `inside` have got a tangent by being written to.
    fn captured(&self, inside: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
        let inside = inside.iter().map(|x| borrow(x));
        Ok(self.0.captured(&inside.collect::<PyResult<Vec<_>>>()?))
    }
}

/// A program of what forward mode computes of tangents that are yet to come.
#[pyclass(name = "_Linear", module = "pytensorlib._C", frozen)]
struct PyLinear(Arc<Linear>);

#[pymethods]
impl PyLinear {
    #[new]
    fn new() -> PyLinear {
        PyLinear(Linear::new())
    }
    /// Begins to write down what this thread asks for.
    fn start(&self) {
        Linear::start(&self.0);
    }
    fn stop(&self) {
        Linear::stop(&self.0);
    }
    /// The tangent of `x`, the next input; all are asked for before `start`.
    fn input(&self, py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        wrap(py, self.0.input(&borrow(x)?).py()?)
    }
    /// Ends the program, which gives these results, zeros for `None`; the `others` may be written to.
    fn finish(
        &self,
        results: Vec<Option<Bound<'_, PyAny>>>,
        others: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let one = |t: &Option<Bound<'_, PyAny>>| t.as_ref().map(borrow).transpose();
        let results: Vec<Option<Tensor>> = results.iter().map(one).collect::<PyResult<_>>()?;
        let others: Vec<Tensor> = others.iter().map(borrow).collect::<PyResult<_>>()?;
        self.0.finish(&results, &others).py()
    }
    /// The results for tangents, `None` for zeros.
    fn __call__(
        &self,
        py: Python<'_>,
        tangents: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Option<Py<PyAny>>>> {
        let tangents: Vec<Tensor> = tangents.iter().map(borrow).collect::<PyResult<_>>()?;
        let found = self.0.run(&tangents).py()?;
        let one = |t: Option<Tensor>| t.map(|t| wrap(py, t)).transpose();
        found.into_iter().map(one).collect()
    }
}

/// Whether tangents are computed on this thread.
#[pyfunction]
fn _is_forward_enabled() -> bool {
    mode::forward()
}

/// Says whether tangents are computed on this thread, and gives what was.
#[pyfunction]
fn _set_forward_enabled(on: bool) -> bool {
    mode::set_forward(on)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_is_forward_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_forward_enabled, m)?)?;
    m.add_class::<PyForward>()?;
    m.add_class::<PyLinear>()
}

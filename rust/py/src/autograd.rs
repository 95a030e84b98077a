//! The engine from Python: backward, graph nodes, hooks, modes.

use crate::cell::{borrow, PyTensor};
use crate::error::IntoPy;
use crate::function::PyNode;
use crate::hooks::{HookHandle, PyHook, PyNodeHook, PyPostHook, PySavedHooks};
use crate::node::PyGraphNode;
use crate::object::wrap;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use pytensorlib_core::autograd::{engine, mode, one, saved, Edge, Request};
use pytensorlib_core::graph::backward;
use pytensorlib_core::host;
use pytensorlib_core::shared::Shared;
use pytensorlib_core::tensor::Tensor;
use std::sync::Arc;

/// `t.backward()` from one floating element; `false`, with nothing done, where this is not that.
#[pyfunction]
fn _backward_from(t: &Bound<'_, PyAny>, keep_graph: bool) -> PyResult<bool> {
    let Some(t) = crate::convert::tensor(t) else {
        return Ok(false);
    };
    // Who answers calls in Python is asked for the gradient that enters.
    if t.numel() != 1 || !t.dtype().is_float() || crate::dispatch::active() {
        return Ok(false);
    }
    let Some(edge) = t.edge().py()? else {
        return Ok(false);
    };
    let roots = [(edge, one(t.shape(), t.dtype(), t.device()).py()?)];
    drop(t);
    let request = Request {
        roots: &roots,
        inputs: &[],
        accumulate: true,
        keep_graph,
        create_graph: false,
    };
    backward(&request).py()?;
    Ok(true)
}

/// Runs the graph; see `pytensorlib.autograd.backward`.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable,
    accumulate_grad))]
fn _run_backward(
    py: Python<'_>,
    tensors: Vec<Bound<'_, PyAny>>,
    grad_tensors: Vec<Bound<'_, PyAny>>,
    keep_graph: bool,
    create_graph: bool,
    inputs: Vec<Bound<'_, PyAny>>,
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> PyResult<Py<PyTuple>> {
    if create_graph && accumulate_grad {
        host::warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the \
             parameter and its gradient which can cause a memory leak. We recommend using \
             autograd.grad when creating the graph to avoid this. If you have to use this function, \
             make sure to reset the .grad fields of your parameters to None after use to break the \
             cycle and avoid the leak.",
        );
    }
    let edge_of = |obj: &Bound<'_, PyAny>| -> PyResult<Option<(Edge, Option<Tensor>)>> {
        if let Ok(t) = obj.cast::<PyTensor>() {
            let t = t.get().get();
            return Ok(t.edge().py()?.map(|e| (e, Some(t))));
        }
        // A `GradientEdge(node, output_nr)`.
        let Some(node) = obj.getattr_opt("node")? else {
            return Err(PyRuntimeError::new_err(format!(
                "all inputs have to be Tensors or GradientEdges, but got {}",
                obj.get_type().name()?
            )));
        };
        let nr: usize = obj.getattr("output_nr")?.extract()?;
        Ok(Some((
            Edge {
                node: node.cast::<PyGraphNode>()?.get().node().clone(),
                nr,
            },
            None,
        )))
    };
    let mut roots = Vec::new();
    for (i, (t, g)) in tensors.iter().zip(&grad_tensors).enumerate() {
        let Some((edge, tensor)) = edge_of(t)? else {
            return Err(PyRuntimeError::new_err(format!(
                "element {i} of tensors does not require grad and does not have a grad_fn"
            )));
        };
        if g.is_none() {
            let Some(t) = tensor else { continue };
            if t.numel() != 1 {
                return Err(PyRuntimeError::new_err(
                    "grad can be implicitly created only for scalar outputs",
                ));
            }
            roots.push((edge, one(t.shape(), t.dtype(), t.device()).py()?));
        } else {
            roots.push((edge, borrow(g)?));
        }
    }
    let mut edges = Vec::new();
    let mut places = Vec::new();
    for t in &inputs {
        let Some((edge, tensor)) = edge_of(t)? else {
            // A view taken without recording: nothing leads to it.
            if t.cast::<PyTensor>()
                .is_ok_and(|t| t.get().get().requires_grad())
            {
                places.push(None);
                continue;
            }
            return Err(PyRuntimeError::new_err(
                "One of the differentiated Tensors does not require grad",
            ));
        };
        if let Some(t) = tensor.filter(|_| accumulate_grad) {
            t.retain_grad().py()?;
        }
        places.push(Some(edges.len()));
        edges.push(edge);
    }
    let request = Request {
        roots: &roots,
        inputs: &edges,
        accumulate: accumulate_grad,
        keep_graph,
        create_graph,
    };
    // An empty list would mean all leaves.
    let found = match edges.is_empty() && !inputs.is_empty() {
        true => Vec::new(),
        false => backward(&request).py()?,
    };
    let results = places.into_iter().map(|p| p.and_then(|p| found[p].clone()));
    let results: Vec<Option<Tensor>> = results.collect();
    if accumulate_grad {
        return Ok(PyTuple::empty(py).unbind());
    }
    if !allow_unreachable && results.iter().any(Option::is_none) {
        return Err(PyRuntimeError::new_err(
            "One of the differentiated Tensors appears to not have been used in the graph. Set \
             allow_unused=True if this is the desired behavior.",
        ));
    }
    let grads = results
        .into_iter()
        .map(|g| g.map(|g| wrap(py, g)).transpose())
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, grads)?.unbind())
}

/// Tells the collector of Python objects that only this tensor keeps alive.
pub fn traverse(t: &Tensor, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if t.handles() > 1 {
        return Ok(());
    }
    let Some(meta) = t.autograd() else {
        return Ok(());
    };
    // The slot and this visit; anything else that holds the place in the graph owns it too.
    if Shared::handles(meta) > 1 {
        return Ok(());
    }
    let Some(s) = meta.state.try_lock() else {
        return Ok(());
    };
    if s.in_graph() {
        return Ok(());
    }
    for (_, hook) in &s.hooks {
        if let Some(h) = hook.as_any().downcast_ref::<PyHook>() {
            visit.call(&*h.0)?;
        }
    }
    for (_, hook) in &s.post_accumulate {
        if let Some(h) = hook.as_any().downcast_ref::<PyPostHook>() {
            visit.call(&*h.hook)?;
        }
    }
    let mut edge = s.edge.as_ref();
    for _ in 0..16 {
        let Some(e) = edge else { break };
        if Shared::handles(&e.node) > 1 {
            break;
        }
        if let Some(node) = e.node.func.as_any().downcast_ref::<PyNode>() {
            visit.call(&*node.ctx)?;
        }
        if let Some(hooks) = e.node.hooks_if_any().and_then(|h| h.try_lock()) {
            for (_, (_, hook)) in &hooks.tensor {
                if let Some(h) = hook.as_any().downcast_ref::<PyHook>() {
                    visit.call(&*h.0)?;
                }
            }
            for (_, hook) in hooks.pre.iter().chain(&hooks.post) {
                if let Some(h) = hook.as_any().downcast_ref::<PyNodeHook>() {
                    visit.call(&*h.0)?;
                }
            }
        }
        edge = match &e.node.edges[..] {
            [Some(next)] => Some(next),
            _ => None,
        };
    }
    Ok(())
}

/// Breaks the cycles that [`traverse`] showed.
pub fn clear(t: &Tensor) {
    let Some(meta) = t.autograd() else { return };
    let (edge, hooks, post) = meta.change(|s| {
        (
            s.edge.take(),
            std::mem::take(&mut s.hooks),
            std::mem::take(&mut s.post_accumulate),
        )
    });
    if let Some(h) = edge.as_ref().and_then(|e| e.node.hooks_if_any()) {
        let old = std::mem::take(&mut *h.lock());
        drop(old);
    }
    drop((edge, hooks, post));
}

/// A context in which the thread's modes are others. Its methods run no Python, so that an
/// interrupt comes before or after both, never between setting a mode and the `with` block.
#[pyclass(name = "_Mode", module = "pytensorlib._C", subclass)]
struct Modes {
    grad: Option<bool>,
    inference: Option<bool>,
    before: (bool, bool),
}

#[pymethods]
impl Modes {
    #[new]
    #[pyo3(signature = (grad=None, inference=None))]
    fn __new__(grad: Option<bool>, inference: Option<bool>) -> Modes {
        Modes {
            grad,
            inference,
            before: (mode::grad(), mode::inference()),
        }
    }
    /// Notes the modes in force and sets its own.
    fn __enter__(&mut self) {
        self.before = (mode::grad(), mode::inference());
        self.set();
    }
    #[pyo3(signature = (*_exc))]
    fn __exit__(&self, _exc: &Bound<'_, PyTuple>) {
        self.restore();
    }
    /// Sets its modes without noting those in force.
    fn set(&self) {
        if let Some(on) = self.grad {
            mode::set_grad(on);
        }
        if let Some(on) = self.inference {
            mode::set_inference(on);
        }
    }
    /// Sets what was in force when it was made or entered.
    fn restore(&self) {
        mode::set_grad(self.before.0);
        if self.inference.is_some() {
            mode::set_inference(self.before.1);
        }
    }
}

/// Whether autograd records operations at the moment.
///
/// Returns
/// -------
/// bool
///     False inside of `no_grad` and `inference_mode`.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> with torch.no_grad():
/// ...     print(torch.is_grad_enabled())
/// False
#[pyfunction]
fn is_grad_enabled() -> bool {
    mode::grad()
}
#[pyfunction]
fn _set_grad_enabled(on: bool) {
    mode::set_grad(on);
}
/// Whether inference mode is on.
///
/// Returns
/// -------
/// bool
///     True inside of `inference_mode`.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> with torch.inference_mode():
/// ...     print(torch.is_inference_mode_enabled())
/// True
#[pyfunction]
fn is_inference_mode_enabled() -> bool {
    mode::inference()
}
#[pyfunction]
fn _set_inference_mode(on: bool) {
    mode::set_inference(on);
}
#[pyfunction]
#[pyo3(signature = (on, check_nan=true))]
fn _set_anomaly_enabled(on: bool, check_nan: bool) {
    mode::set_anomaly(on, check_nan);
}
#[pyfunction]
fn _is_anomaly_enabled() -> bool {
    mode::anomaly().is_some()
}
#[pyfunction]
fn _is_anomaly_check_nan_enabled() -> bool {
    mode::checks_nan()
}
#[pyfunction]
fn _current_graph_task_id() -> i64 {
    engine::current_task().map_or(-1, |id| id as i64)
}
#[pyfunction]
fn _will_engine_execute_node(node: &PyGraphNode) -> bool {
    engine::will_run(node.node())
}

#[pyfunction]
fn _push_saved_tensors_default_hooks(pack: Py<PyAny>, unpack: Py<PyAny>) -> PyResult<()> {
    saved::push_hooks(Arc::new(PySavedHooks { pack, unpack })).py()
}
#[pyfunction]
fn _pop_saved_tensors_default_hooks() {
    saved::pop_hooks();
}
#[pyfunction]
fn _saved_tensors_hooks_disable(text: String) -> PyResult<()> {
    saved::disable_hooks(Some(text)).py().map(|_| ())
}
#[pyfunction]
fn _saved_tensors_hooks_enable() -> PyResult<()> {
    saved::disable_hooks(None).py().map(|_| ())
}
#[pyfunction]
fn _saved_tensors_hooks_get_disabled_error_message() -> Option<String> {
    saved::disabled_text()
}
#[pyfunction]
fn _increment_version(t: &Bound<'_, PyAny>) -> PyResult<()> {
    borrow(t)?.bump_version();
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<HookHandle>()?;
    m.add_class::<Modes>()?;
    m.add_function(wrap_pyfunction!(_will_engine_execute_node, m)?)?;
    m.add_function(wrap_pyfunction!(_push_saved_tensors_default_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_saved_tensors_default_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_disable, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_tensors_hooks_enable, m)?)?;
    m.add_function(wrap_pyfunction!(
        _saved_tensors_hooks_get_disabled_error_message,
        m
    )?)?;
    m.add_function(wrap_pyfunction!(_backward_from, m)?)?;
    m.add_function(wrap_pyfunction!(_run_backward, m)?)?;
    m.add_function(wrap_pyfunction!(is_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_set_inference_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_set_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_is_anomaly_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_is_anomaly_check_nan_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(_current_graph_task_id, m)?)?;
    m.add_function(wrap_pyfunction!(_increment_version, m)?)?;
    Ok(())
}

//! Python's callables on gradients and on what is saved for backward.

use crate::cell::{borrow, PyTensor};
use crate::error::{from_py, IntoPy};
use crate::object::wrap;
use crate::object::Held;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pytensorlib_core::autograd::hooks::{check_kind, Place};
use pytensorlib_core::autograd::node::{NodeHook, SavedHooks};
use pytensorlib_core::autograd::Hook;
use pytensorlib_core::error::Result as CoreResult;
use pytensorlib_core::op::Grads;
use pytensorlib_core::tensor::Tensor;
use std::any::Any;
use std::sync::Arc;

/// A Python callable on one gradient.
pub struct PyHook(pub Held);

impl Hook for PyHook {
    fn call(&self, g: &Tensor) -> CoreResult<Option<Tensor>> {
        Python::attach(|py| {
            let out = self.0.call1(py, (wrap(py, g.clone())?,))?;
            if out.is_none(py) {
                return Ok(None);
            }
            match out.bind(py).cast::<PyTensor>() {
                Ok(t) => Ok(Some(t.get().get())),
                Err(_) => Err(misfit("Variable", out.bind(py))?),
            }
        })
        .map_err(from_py)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The error for what a hook must not return.
fn misfit(wanted: &str, got: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "expected {wanted}, but hook returned '{}'",
        got.get_type().name()?
    )))
}

/// A Python callable on a leaf whose gradient was accumulated.
pub struct PyPostHook {
    pub hook: Held,
    pub leaf: Py<PyAny>,
}

impl Hook for PyPostHook {
    fn call(&self, _g: &Tensor) -> CoreResult<Option<Tensor>> {
        Python::attach(|py| {
            let leaf = self.leaf.call0(py)?;
            if leaf.is_none(py) {
                return Ok(None);
            }
            let out = self.hook.call1(py, (&leaf,))?;
            if out.is_none(py) || out.is(&leaf) {
                return Ok(None);
            }
            Err(match out.bind(py).cast::<PyTensor>() {
                Ok(_) => {
                    PyRuntimeError::new_err("Tensor post accumulate grad hooks should return None.")
                }
                Err(_) => misfit("Variable", out.bind(py))?,
            })
        })
        .map_err(from_py)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What registering a hook returns. Leaving a ``with`` block over it takes the hook away too.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> x = torch.ones(2, requires_grad=True)
/// >>> with x.register_hook(lambda grad: 10 * grad):
/// ...     x.sum().backward()
/// ...
/// >>> x.sum().backward()
/// >>> x.grad
/// tensor([11., 11.])
#[pyclass(name = "RemovableHandle", module = "pytensorlib._C", frozen, weakref)]
pub struct HookHandle {
    /// The number of the hook.
    #[pyo3(get)]
    id: u64,
    place: Place,
}

impl HookHandle {
    pub fn new(id: u64, place: Place) -> HookHandle {
        HookHandle { id, place }
    }
}

#[pymethods]
impl HookHandle {
    /// Take the hook away. Doing so twice has no effect.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> handle = torch.ones(2, requires_grad=True).register_hook(print)
    /// >>> handle.remove()
    fn remove(&self) {
        self.place.remove_hook(self.id);
    }
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_exc))]
    fn __exit__(&self, _exc: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

/// Adds a hook to a tensor.
pub fn register_hook(t: &Tensor, hook: Py<PyAny>, post: bool) -> PyResult<HookHandle> {
    if !post {
        let (id, place) = t.register_hook(Arc::new(PyHook(Held::new(hook)))).py()?;
        return Ok(HookHandle { id, place });
    }
    Python::attach(|py| {
        // A weak reference: the leaf must not keep itself alive.
        let object = wrap(py, t.clone())?;
        let leaf = py
            .import("weakref")?
            .getattr("ref")?
            .call1((object,))?
            .unbind();
        let (id, place) = t
            .register_post_accumulate(Arc::new(PyPostHook {
                hook: Held::new(hook),
                leaf,
            }))
            .py()?;
        Ok(HookHandle { id, place })
    })
}

/// A Python callable on the gradients around a node.
pub struct PyNodeHook(pub Held);

fn tuple<'py>(py: Python<'py>, grads: &Grads) -> PyResult<Bound<'py, PyTuple>> {
    let items = grads
        .iter()
        .map(|g| g.as_ref().map(|g| wrap(py, g.clone())).transpose())
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, items)
}

impl NodeHook for PyNodeHook {
    fn call(&self, outputs: Option<&Grads>, inputs: &Grads) -> CoreResult<Option<Grads>> {
        Python::attach(|py| {
            let out = match outputs {
                Some(o) => self.0.call1(py, (tuple(py, o)?, tuple(py, inputs)?))?,
                None => self.0.call1(py, (tuple(py, inputs)?,))?,
            };
            if out.is_none(py) {
                return Ok(None);
            }
            let items: Vec<Bound<'_, PyAny>> = match out.bind(py).cast::<PyTuple>() {
                Ok(items) => items.iter().collect(),
                Err(_) => return Err(misfit("tuple", out.bind(py))?),
            };
            let before = outputs.unwrap_or(inputs);
            if items.len() != before.len() {
                let hook = self.0.bind(py);
                let name = hook
                    .getattr("__name__")
                    .or_else(|_| hook.repr().map(Bound::into_any))?;
                return Err(PyRuntimeError::new_err(format!(
                    "hook '{name}' has returned an incorrect number of values (got {}, but \
                     expected {})",
                    items.len(),
                    before.len()
                )));
            }
            let mut grads = Grads::new();
            for (new, old) in items.iter().zip(before) {
                let new = match new.is_none() {
                    true => None,
                    false => Some(borrow(new).or_else(|_| Err(misfit("Variable", new)?))?),
                };
                if let (Some(new), Some(old)) = (&new, old) {
                    check_kind(old, new).py()?;
                }
                grads.push(new);
            }
            Ok(Some(grads))
        })
        .map_err(from_py)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Python callables around what is saved for backward.
pub struct PySavedHooks {
    pub pack: Py<PyAny>,
    pub unpack: Py<PyAny>,
}

impl SavedHooks for PySavedHooks {
    fn pack(&self, t: &Tensor) -> CoreResult<Box<dyn Any + Send + Sync>> {
        Python::attach(|py| {
            let packed = self.pack.call1(py, (wrap(py, t.clone())?,))?;
            Ok(Box::new(Held::new(packed)) as Box<dyn Any + Send + Sync>)
        })
        .map_err(from_py)
    }
    fn unpack(&self, packed: &(dyn Any + Send + Sync)) -> CoreResult<Tensor> {
        Python::attach(|py| {
            let Some(packed) = packed.downcast_ref::<Held>() else {
                return Err(PyRuntimeError::new_err("saved tensors hooks: lost value"));
            };
            let t = self.unpack.call1(py, (&**packed,))?;
            match t.bind(py).cast::<PyTensor>() {
                Ok(t) => Ok(t.get().get()),
                Err(_) => Err(PyTypeError::new_err(format!(
                    "Output of saved tensor unpack_hook expected to be a Tensor but got result of \
                     type {}",
                    t.bind(py).get_type().name()?
                ))),
            }
        })
        .map_err(from_py)
    }
}

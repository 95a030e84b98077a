//! Steps of the graph as Python objects. Each name of a node has a class of its own.

use crate::error::IntoPy;
use crate::function::PyNode;
use crate::hooks::{HookHandle, PyNodeHook, PySavedHooks};
use crate::object::wrap;
use crate::object::Held;
use crate::slot::{self, Found};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use pytensorlib_core::autograd::hooks::{next_hook_id, Place};
use pytensorlib_core::autograd::node::{Hooks, NodeHook, NodeHooks};
use pytensorlib_core::autograd::{Node, Saved};
use pytensorlib_core::op::function_name;
use pytensorlib_core::ops::table;
use pytensorlib_core::schema::{Schema, Type};
use pytensorlib_core::shared::Shared;
use std::any::Any;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

/// A step of the graph that `backward` walks, as `Tensor.grad_fn` gives it. Its class is
/// named after the operation. What was saved for the gradient is found as ``_saved_<name>``.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> y = torch.ones(2, requires_grad=True).exp()
/// >>> type(y.grad_fn).__name__
/// 'ExpBackward0'
/// >>> y.grad_fn._saved_result
/// tensor([2.7183, 2.7183], grad_fn=<ExpBackward0>)
#[pyclass(
    name = "Node",
    module = "pytensorlib.autograd.graph",
    frozen,
    weakref,
    subclass
)]
pub struct PyGraphNode {
    node: Shared<Node>,
    /// This object, once it is in the node's slot.
    me: AtomicPtr<ffi::PyObject>,
}

/// Carries a node through `__new__` of a class of nodes.
#[pyclass(frozen, name = "_RawNode")]
struct Raw(Shared<Node>);

/// The class of the nodes of a name.
fn class_of<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let classes = CLASSES
        .get_or_init(py, || PyDict::new(py).unbind())
        .bind(py);
    if let Some(class) = classes.get_item(name)? {
        return Ok(class);
    }
    let body = PyDict::new(py);
    body.set_item("__module__", "builtins")?;
    body.set_item("__slots__", PyTuple::empty(py))?;
    let bases = (py.get_type::<PyGraphNode>(),);
    let class = py.get_type::<PyType>().call1((name, bases, body))?;
    classes.set_item(name, &class)?;
    Ok(class)
}

/// The Python object of a node: the one it has, or a new one.
pub fn node_object(py: Python<'_>, node: Shared<Node>) -> PyResult<Py<PyAny>> {
    let found = |found| match found {
        // SAFETY: what is found is the caller's.
        Found::Living(me) => Some(unsafe { Bound::from_owned_ptr(py, me).unbind() }),
        // Nodes have nothing left to them.
        Found::Left(_) | Found::Nothing => None,
    };
    // SAFETY: the slot is cleared when its object dies.
    if let Some(object) = found(unsafe { slot::find(&node.wrapper) }) {
        return Ok(object);
    }
    let class = class_of(py, &node.func.name())?;
    let object = class.call1((Py::new(py, Raw(node.clone()))?,))?;
    let me = &object.cast::<PyGraphNode>()?.get().me;
    me.store(object.as_ptr(), Ordering::Relaxed);
    // SAFETY: the object forgets its node when it dies. Another thread may have made one meanwhile.
    let other = unsafe { slot::find_or_put(&node.wrapper, object.as_ptr()) };
    Ok(found(other).unwrap_or(object.unbind()))
}

impl Drop for PyGraphNode {
    fn drop(&mut self) {
        slot::forget(&self.node.wrapper, *self.me.get_mut());
    }
}

/// The signature of the function that makes nodes of this name, if there is one.
fn schema_of(node: &str) -> Option<&'static Schema> {
    let name = function_name(node);
    let found = table().iter().find(|op| op.schema.name == name);
    found.map(|op| &op.schema)
}

impl PyGraphNode {
    pub fn node(&self) -> &Shared<Node> {
        &self.node
    }

    fn handle(
        &self,
        hook: Py<PyAny>,
        list: fn(&mut NodeHooks) -> &mut Hooks<Arc<dyn NodeHook>>,
    ) -> HookHandle {
        let id = next_hook_id();
        let hook = Arc::new(PyNodeHook(Held::new(hook)));
        list(&mut self.node.hooks().lock()).push((id, hook));
        HookHandle::new(id, Place::Node(Shared::downgrade(&self.node)))
    }

    /// What is saved under the names of the function's arguments and results: the name, whether it
    /// is a result, its number, and the tensor.
    fn saved(&self) -> PyResult<Vec<(String, bool, usize, Option<Saved>)>> {
        let (inputs, outputs) = self.node.func.saved().py()?;
        let schema = schema_of(&self.node.func.name());
        let tensors = |s: &'static Schema| {
            let is_tensor = |ty| matches!(ty, Type::Tensor | Type::Operand);
            s.params.iter().filter(move |p| is_tensor(p.ty))
        };
        let mut arguments = schema.into_iter().flat_map(tensors).map(|p| p.name);
        let mut list = Vec::new();
        for (i, item) in inputs.into_iter().enumerate() {
            let name = match arguments.next() {
                Some(name) => name.to_owned(),
                None if i == 0 => "self".to_owned(),
                None => format!("input{i}"),
            };
            list.push((name, false, i, item));
        }
        let many = outputs.len() > 1;
        for (i, item) in outputs.into_iter().enumerate() {
            let named = schema.and_then(|s| *s.returns.get(i)?);
            let name = match named {
                Some(name) if many => name.to_owned(),
                _ if many => format!("result{i}"),
                _ => "result".to_owned(),
            };
            list.push((name, true, i, item));
        }
        Ok(list)
    }
}

#[pymethods]
impl PyGraphNode {
    #[new]
    fn __new__(raw: &Bound<'_, Raw>) -> Self {
        PyGraphNode {
            node: raw.get().0.clone(),
            me: AtomicPtr::default(),
        }
    }
    /// The name of the operation.
    ///
    /// Returns
    /// -------
    /// str
    ///     Such as ``"MulBackward0"``.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> (2 * torch.ones(2, requires_grad=True)).grad_fn.name()
    /// 'MulBackward0'
    fn name(&self) -> String {
        self.node.func.name()
    }
    /// Where the gradients of the inputs go: for each input its node, or None, and which result
    /// of that node it is.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> y = x.exp() + 1
    /// >>> [(node.name(), nr) for node, nr in y.grad_fn.next_functions if node]
    /// [('ExpBackward0', 0)]
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let shown = self.node.shown_edges().map(|i| match &self.node.edges[i] {
            Some(e) => Ok((Some(node_object(py, e.node.clone())?), e.nr)),
            None => Ok((None, 0)),
        });
        let items = shown.collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, items)
    }
    #[getter]
    fn _sequence_nr(&self) -> u64 {
        self.node.seq
    }
    /// Call a function after the node ran in `backward`; what it returns, if not None, replaces
    /// the gradients of the inputs.
    ///
    /// Parameters
    /// ----------
    /// hook : callable
    ///     ``hook(grad_inputs, grad_outputs)``, both tuples.
    ///
    /// Returns
    /// -------
    /// handle
    ///     Its method ``remove()`` takes the hook away.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> y = torch.ones(2, requires_grad=True).exp().sum()
    /// >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: print(outputs))
    /// >>> y.backward()
    /// (tensor(1.),)
    fn register_hook(&self, hook: Py<PyAny>) -> HookHandle {
        self.handle(hook, |h| &mut h.post)
    }
    /// Call a function before the node runs in `backward`; what it returns, if not None, replaces
    /// the gradients of the results.
    ///
    /// Parameters
    /// ----------
    /// hook : callable
    ///     ``hook(grad_outputs)``, a tuple.
    ///
    /// Returns
    /// -------
    /// handle
    ///     Its method ``remove()`` takes the hook away.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> y = torch.ones(2, requires_grad=True).exp().sum()
    /// >>> handle = y.grad_fn.register_prehook(lambda outputs: print(outputs))
    /// >>> y.backward()
    /// (tensor(1.),)
    fn register_prehook(&self, hook: Py<PyAny>) -> HookHandle {
        self.handle(hook, |h| &mut h.pre)
    }
    /// A dict that stays with the node, for notes of one's own.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> y = torch.ones(2, requires_grad=True).exp()
    /// >>> y.grad_fn.metadata["note"] = 1
    /// >>> y.grad_fn.metadata
    /// {'note': 1}
    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fresh = Arc::new(Held::new(PyDict::new(py).into_any().unbind()));
        let notes: Arc<dyn Any + Send + Sync> = {
            let mut hooks = self.node.hooks().lock();
            hooks.notes.get_or_insert(fresh.clone()).clone()
        };
        match notes.downcast_ref::<Held>() {
            Some(held) => Ok((**held).clone_ref(py)),
            None => Err(PyRuntimeError::new_err("metadata: kept by another host")),
        }
    }
    /// The class that ``isinstance`` sees too: that of a custom `Function`'s `ctx`, where the node is one's.
    #[getter(__class__)]
    fn class<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyType> {
        let node = slf.get().node.func.as_any().downcast_ref::<PyNode>();
        node.map_or_else(|| slf.get_type(), |node| node.ctx.bind(slf.py()).get_type())
    }
    /// The `ctx` of a custom `Function`, else `None`.
    #[getter]
    fn _ctx(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let node = self.node.func.as_any().downcast_ref::<PyNode>()?;
        Some(node.ctx.clone_ref(py))
    }
    /// The attributes that depend on the node: `variable` of an accumulating one, what is saved as
    /// `_saved_<name>` and `_raw_saved_<name>`, and those of a custom `Function`'s `ctx`.
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let func = &self.node.func;
        if name == "variable" && func.leaf().is_some() {
            let leaf = func.variable().map(|t| wrap(py, t)).transpose()?;
            return Ok(leaf.unwrap_or_else(|| py.None()));
        }
        let raw = name.strip_prefix("_raw_saved_");
        if let Some(wanted) = raw.or_else(|| name.strip_prefix("_saved_")) {
            let found = self.saved()?.into_iter().find(|s| s.0 == wanted);
            if let Some((_, output, i, saved)) = found {
                return match (raw, saved) {
                    (Some(_), _) => {
                        let node = self.node.clone();
                        Ok(Py::new(py, PySavedTensor { node, output, i })?.into_any())
                    }
                    (None, Some(saved)) => wrap(py, saved.unpack_attached().py()?),
                    (None, None) => Ok(py.None()),
                };
            }
        }
        if let Some(node) = func.as_any().downcast_ref::<PyNode>() {
            return node.ctx.getattr(py, name);
        }
        Err(PyAttributeError::new_err(format!(
            "'{}' object has no attribute '{name}'",
            func.name()
        )))
    }
    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let object = py.import("builtins")?.getattr("object")?;
        let names = object
            .call_method1("__dir__", (slf,))?
            .cast_into::<PyList>()?;
        if slf.get().node.func.leaf().is_some() {
            names.append("variable")?;
        }
        for (name, ..) in slf.get().saved().unwrap_or_default() {
            names.append(format!("_saved_{name}"))?;
            names.append(format!("_raw_saved_{name}"))?;
        }
        Ok(names)
    }
    fn __repr__(&self) -> String {
        format!(
            "<{} object at {:p}>",
            self.node.func.name(),
            Shared::as_ptr(&self.node).cast::<u8>()
        )
    }
    fn __hash__(&self) -> usize {
        Shared::as_ptr(&self.node).cast::<u8>() as usize >> 4
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyGraphNode>()
            .is_ok_and(|o| Shared::same(&o.get().node, &self.node))
    }
}

/// A tensor that a node saved, as ``grad_fn._raw_saved_<name>`` gives it.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> y = torch.ones(2, requires_grad=True).exp()
/// >>> type(y.grad_fn._raw_saved_result).__name__
/// 'SavedTensor'
#[pyclass(frozen, name = "SavedTensor", module = "pytensorlib._C")]
struct PySavedTensor {
    node: Shared<Node>,
    output: bool,
    i: usize,
}

#[pymethods]
impl PySavedTensor {
    /// Keep something else in the tensor's place: what `pack_hook` makes of it, until
    /// `unpack_hook` makes the tensor of that again.
    ///
    /// Parameters
    /// ----------
    /// pack_hook : callable
    ///     ``pack_hook(tensor)``, called at once.
    /// unpack_hook : callable
    ///     ``unpack_hook(packed)``, called when the gradient needs the tensor.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     There are hooks already, or the saved value is None.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> y = x * x
    /// >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), torch.tensor)
    /// >>> y.sum().backward()
    /// >>> x.grad
    /// tensor([2., 2.])
    fn register_hooks(
        &self,
        py: Python<'_>,
        pack_hook: Py<PyAny>,
        unpack_hook: Py<PyAny>,
    ) -> PyResult<()> {
        for (name, hook) in [("pack_hook", &pack_hook), ("unpack_hook", &unpack_hook)] {
            if !hook.bind(py).is_callable() {
                return Err(PyTypeError::new_err(format!(
                    "register_hooks(): incompatible function arguments: {name} must be callable, not {}",
                    hook.bind(py).get_type().name()?
                )));
            }
        }
        let (inputs, outputs) = self.node.func.saved().py()?;
        let list = if self.output { outputs } else { inputs };
        match list.get(self.i).and_then(Option::as_ref) {
            None => Err(PyRuntimeError::new_err(
                "Calling register_hooks on a saved tensor with value None is forbidden",
            )),
            Some(saved) if !saved.is_plain() => Err(PyRuntimeError::new_err(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: \
                 only one pair of hooks is allowed at a time.",
            )),
            Some(_) => {
                let hooks = Arc::new(PySavedHooks {
                    pack: pack_hook,
                    unpack: unpack_hook,
                });
                self.node.func.pack_saved(self.output, self.i, hooks).py()
            }
        }
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGraphNode>()?;
    m.add_class::<Raw>()?;
    m.add_class::<PySavedTensor>()?;
    Ok(())
}

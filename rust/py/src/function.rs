//! Custom `autograd.Function`s: forward runs in Python with recording off; its node calls back.

use crate::cell::{borrow, PyTensor};
use crate::error::{from_py, IntoPy};
use crate::object::wrap;
use crate::object::Held;
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pytensorlib_core::autograd::node::Edges;
use pytensorlib_core::autograd::{inplace, mode, Backward, Edge, Node, Saved};
use pytensorlib_core::error::Result as CoreResult;
use pytensorlib_core::op::{Grads, TensorMeta};
use pytensorlib_core::tensor::{Creation, Tensor};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// The graph node of one call of a Function.
pub struct PyNode {
    pub ctx: Held,
    cls: Py<PyType>,
    name: String,
    /// For each argument of forward, whether it was a tensor.
    is_tensor: Vec<bool>,
    /// For each output, whether zeros stand for a gradient that nothing gave.
    materialize: Vec<bool>,
    saved: Arc<Mutex<SavedList>>,
}

#[derive(Default)]
struct SavedList {
    items: Vec<Option<Saved>>,
    released: bool,
}

/// What `ctx.saved_tensors` reads.
#[pyclass(frozen, name = "_SavedTensors")]
struct PySaved(Arc<Mutex<SavedList>>);

#[pymethods]
impl PySaved {
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let items = {
            let s = self.0.lock();
            if s.released {
                return Err(PyRuntimeError::new_err(
                    "Trying to backward through the graph a second time (or directly access saved \
                     tensors after they have already been freed). Saved intermediate values of \
                     the graph are freed when you call .backward() or autograd.grad(). Specify \
                     retain_graph=True if you need to backward through the graph a second time or \
                     if you need to access saved tensors after calling backward.",
                ));
            }
            s.items.clone()
        };
        let mut out = Vec::new();
        for item in items {
            out.push(match item {
                Some(s) => Some(wrap(py, s.unpack_attached().py()?)?),
                None => None,
            });
        }
        PyTuple::new(py, out)
    }
}

impl Backward for PyNode {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn backward(&self, node: &Node, g: Grads) -> CoreResult<Grads> {
        Python::attach(|py| self.run(py, node, g)).map_err(from_py)
    }

    fn release(&self) {
        let mut s = self.saved.lock();
        if s.items.iter().any(Option::is_some) {
            s.released = true;
        }
        let old = std::mem::take(&mut s.items);
        drop(s);
        drop(old);
    }

    fn wants_undefined(&self) -> bool {
        true
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PyNode {
    fn run(&self, py: Python<'_>, node: &Node, g: Grads) -> PyResult<Grads> {
        let mut args: Vec<Py<PyAny>> = vec![self.ctx.clone_ref(py)];
        for (i, m) in node.outputs.iter().enumerate() {
            args.push(match g.get(i).and_then(Option::as_ref) {
                Some(g) => wrap(py, g.clone())?,
                None if self.materialize[i] => {
                    wrap(py, Tensor::zeros(&m.shape, m.dtype, m.device).py()?)?
                }
                None => py.None(),
            });
        }
        let out = self
            .cls
            .bind(py)
            .call_method1("backward", PyTuple::new(py, args)?)?;
        let items: Vec<Bound<'_, PyAny>> = match out.cast::<PyTuple>() {
            Ok(t) => t.iter().collect(),
            Err(_) => match out.cast::<pyo3::types::PyList>() {
                Ok(l) => l.iter().collect(),
                Err(_) => vec![out],
            },
        };
        let n = self.is_tensor.len();
        if items.len() > n && items[n..].iter().any(|x| !x.is_none()) || items.len() < n {
            return Err(PyRuntimeError::new_err(format!(
                "function {} returned an incorrect number of gradients (expected {n}, got {})",
                self.name,
                items.len()
            )));
        }
        let mut grads = Grads::new();
        for (i, (item, &is_tensor)) in items.iter().zip(&self.is_tensor).enumerate() {
            if !is_tensor {
                if !item.is_none() {
                    return Err(PyRuntimeError::new_err(format!(
                        "function {} returned a gradient different from None at position {}, but \
                         the corresponding forward input was not a Variable",
                        self.name,
                        i + 1
                    )));
                }
                continue;
            }
            grads.push(if item.is_none() {
                None
            } else {
                match item.cast::<PyTensor>() {
                    Ok(t) => Some(t.get().get()),
                    Err(_) => {
                        return Err(PyRuntimeError::new_err(format!(
                            "expected Variable or None (got {}) as gradient {i} of {}",
                            item.get_type().name()?,
                            self.name
                        )))
                    }
                }
            });
        }
        Ok(grads)
    }
}

fn tensors_of(obj: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    if obj.is_none() {
        return Ok(Vec::new());
    }
    obj.try_iter()?.map(|x| borrow(&x?)).collect()
}

/// `Function.apply`.
#[pyfunction]
#[pyo3(signature = (cls, *args, **kwargs))]
fn _function_apply(
    py: Python<'_>,
    cls: &Bound<'_, PyType>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let ctx = cls.getattr("_backward_cls")?.call0()?;
    let inputs: Vec<Option<Tensor>> = args
        .iter()
        .map(|a| a.cast::<PyTensor>().ok().map(|t| t.get().get()))
        .collect();
    let recording = mode::grad();
    let needs: Vec<bool> = inputs
        .iter()
        .map(|t| t.as_ref().is_some_and(Tensor::requires_grad))
        .collect();
    ctx.setattr("needs_input_grad", PyTuple::new(py, &needs)?)?;
    // Before forward may modify them in place.
    let mut edges = Edges::new();
    if recording {
        for t in inputs.iter().flatten() {
            edges.push(t.edge().py()?);
        }
    }
    let module = py.import("pytensorlib.autograd.function")?;
    let default = module.getattr("_default_setup_context")?;
    let result = mode::with_grad(false, || -> PyResult<Bound<'_, PyAny>> {
        if cls.getattr("setup_context")?.is(&default) {
            let mut all: Vec<Bound<'_, PyAny>> = vec![ctx.clone()];
            all.extend(args.iter());
            cls.getattr("forward")?.call(PyTuple::new(py, all)?, kwargs)
        } else {
            let out = cls.getattr("forward")?.call(args, kwargs)?;
            cls.getattr("setup_context")?.call1((&ctx, args, &out))?;
            Ok(out)
        }
    })?;
    let single = result.cast::<PyTuple>().is_err();
    let outputs: Vec<Bound<'_, PyAny>> = if single {
        vec![result.clone()]
    } else {
        result.cast::<PyTuple>()?.iter().collect()
    };
    let dirty = tensors_of(&ctx.getattr("dirty_tensors")?)?;
    let constant = tensors_of(&ctx.getattr("non_differentiable")?)?;
    let is_in = |list: &[Tensor], t: &Tensor| list.iter().any(|x| x.same(t));
    let tracked = recording && needs.iter().any(|&n| n);
    for t in &dirty {
        if !inputs.iter().flatten().any(|x| x.same(t)) {
            if !tracked {
                // Such as a view of an input: there is no history to go on from.
                t.bump_version();
                continue;
            }
            return Err(PyRuntimeError::new_err(
                "mark_dirty: a tensor marked as modified in place must be an input of forward",
            ));
        }
        t.bump_version();
        if tracked {
            t.check_inplace(true).py()?;
        }
    }
    let returned = |t: &Tensor| {
        let same = |o: &Bound<'_, PyAny>| o.cast::<PyTensor>().is_ok_and(|o| o.get().get().same(t));
        outputs.iter().any(same)
    };
    if !dirty.iter().all(returned) {
        return Err(PyRuntimeError::new_err(
            "Some elements marked as dirty during the forward method were not returned as output. The \
             inputs that are modified inplace must all be outputs of the Function.",
        ));
    }
    let mut wrapped: Vec<Py<PyAny>> = Vec::new();
    let mut tensors: Vec<Option<Tensor>> = Vec::new();
    for o in &outputs {
        let Ok(t) = o.cast::<PyTensor>() else {
            wrapped.push(o.clone().unbind());
            tensors.push(None);
            continue;
        };
        let t = t.get().get();
        let returned = inputs.iter().flatten().any(|x| x.same(&t));
        let t = if returned && !is_in(&dirty, &t) {
            // An input handed back as it is: a new tensor, so that the input keeps its history.
            t.view_as(t.layout().clone(), t.dtype(), Creation::Custom)
        } else {
            t
        };
        wrapped.push(wrap(py, t.clone())?);
        tensors.push(Some(t));
    }
    // What may be written to would go round the Function's own derivative.
    let carries = |t: &&Tensor| t.dtype().differentiable() && !is_in(&constant, t);
    let creation = match tracked && tensors.iter().flatten().filter(carries).count() > 1 {
        true => Creation::Multiple,
        false => Creation::Custom,
    };
    for view in tensors.iter().flatten().filter_map(Tensor::view_of) {
        view.set_creation(creation);
    }
    let saved = Arc::new(Mutex::new(SavedList::default()));
    let to_save = ctx.getattr("to_save")?;
    let keep: Vec<Option<Tensor>> = if to_save.is_none() {
        Vec::new()
    } else {
        to_save
            .try_iter()?
            .map(|x| {
                let x = x?;
                if x.is_none() {
                    Ok(None)
                } else {
                    borrow(&x).map(Some)
                }
            })
            .collect::<PyResult<_>>()?
    };
    if tracked {
        let name: String = cls
            .getattr("_backward_cls")?
            .getattr("__name__")?
            .extract()?;
        let metas: SmallVec<[TensorMeta; 1]> = tensors
            .iter()
            .map(|t| match t {
                Some(t) => TensorMeta::of(t),
                None => TensorMeta::new(
                    &[0],
                    pytensorlib_core::dtype::DType::I64,
                    pytensorlib_core::device::Device::Cpu,
                ),
            })
            .collect();
        let func = PyNode {
            ctx: Held::new(ctx.clone().unbind()),
            cls: cls.clone().unbind(),
            name,
            is_tensor: inputs.iter().map(Option::is_some).collect(),
            // Results that are no tensors have none.
            materialize: match ctx.getattr("materialize_grads")?.extract()? {
                true => tensors.iter().map(Option::is_some).collect(),
                false => vec![false; tensors.len()],
            },
            saved: saved.clone(),
        };
        let node = Node::new(edges, metas, func);
        // Saved inputs are read in their old place in the graph, outputs in their new one.
        let output_nr = |t: &Tensor| {
            outputs
                .iter()
                .position(|o| o.cast::<PyTensor>().is_ok_and(|o| o.get().get().same(t)))
        };
        let mut items = Vec::new();
        for t in &keep {
            items.push(match t {
                None => None,
                Some(t) => Some(match output_nr(t) {
                    Some(nr) if !inputs.iter().flatten().any(|x| x.same(t)) || is_in(&dirty, t) => {
                        Saved::output(t, &node, nr).py()?
                    }
                    _ => Saved::input(t).py()?,
                }),
            });
        }
        saved.lock().items = items;
        for (nr, t) in tensors.iter().enumerate() {
            let Some(t) = t else { continue };
            let original = outputs[nr].cast::<PyTensor>().ok().map(|o| o.get().get());
            let is_constant =
                !t.dtype().differentiable() || original.is_some_and(|o| is_in(&constant, &o));
            if is_constant {
                continue;
            }
            if is_in(&dirty, t) {
                inplace::rebase(t, node.clone(), nr).py()?;
            } else {
                t.set_edge(Edge {
                    node: node.clone(),
                    nr,
                });
            }
        }
    } else {
        let items = keep
            .iter()
            .map(|t| t.as_ref().map(|t| Saved::input_with(t, &None)).transpose());
        saved.lock().items = items.collect::<CoreResult<_>>().py()?;
    }
    ctx.setattr("_saved", Py::new(py, PySaved(saved))?)?;
    ctx.setattr("to_save", py.None())?;
    ctx.setattr("dirty_tensors", py.None())?;
    ctx.setattr("non_differentiable", py.None())?;
    if single {
        return Ok(wrapped.swap_remove(0));
    }
    Ok(PyTuple::new(py, wrapped)?.into_any().unbind())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySaved>()?;
    m.add_function(wrap_pyfunction!(_function_apply, m)?)?;
    Ok(())
}

//! `__torch_dispatch__`: modes and classes of tensors that answer, in Python and below gradients,
//! what the core asks for. Nobody pays for it before there is one.

use crate::cell::{borrow, PyTensor};
use crate::convert::{scalar_object, tensor};
use crate::dtype::{dtype_object, layout_object, PyDevice, PyMemoryFormat};
use crate::error::{caught, from_py, to_py, IntoPy};
use crate::generator::PyGenerator;
use crate::object::{make_of, wrap};
use pyo3::exceptions::{PyRecursionError, PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyDict, PyList, PyString, PyTuple, PyType};
use pytensorlib_core::autograd::mode;
use pytensorlib_core::dispatch::{
    apply, asking, call_kept, call_kept_into, compute_into, interpreted, metas, underlie, InForce,
    Interpreter, Request, RequestKind as Kind,
};
use pytensorlib_core::dtype::Scalar;
use pytensorlib_core::error::Result;
use pytensorlib_core::layout::Layout;
use pytensorlib_core::op::{Asked, Op as Kernel, Tensors};
use pytensorlib_core::ops::Op;
use pytensorlib_core::schema::Value;
use pytensorlib_core::tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// How many reasons there are to look closer: modes of all threads, and whether a tensor answers.
static REASONS: AtomicUsize = AtomicUsize::new(0);
/// Whether a class defines `__torch_dispatch__`.
static DEFINED: AtomicBool = AtomicBool::new(false);

/// Whether something in Python may answer on this thread.
#[inline]
pub fn active() -> bool {
    REASONS.load(Ordering::Relaxed) != 0 && mode::interpreted()
}

/// A call of a public function, by which what it asks for first is known.
pub struct Public {
    pub name: &'static str,
    pub op: &'static Op,
    pub values: Vec<Value>,
    pub out: Option<Py<PyAny>>,
}

thread_local! {
    static CALL: RefCell<Option<Public>> = const { RefCell::new(None) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a public function.
pub fn within<R>(public: Public, run: impl FnOnce() -> R) -> R {
    struct Over;
    impl Drop for Over {
        fn drop(&mut self) {
            drop(CALL.take());
        }
    }
    CALL.set(Some(public));
    let _over = Over;
    run()
}

fn tensors(v: &Value) -> Vec<&Tensor> {
    match v {
        Value::Tensor(t) => vec![t],
        Value::Tensors(ts) => ts.iter().collect(),
        Value::OptionalTensors(ts) => ts.iter().flatten().collect(),
        _ => Vec::new(),
    }
}

/// An argument as PyTorch's dispatcher passes it: lists are lists.
fn object<'py>(py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
    let one = |t: &Tensor| -> PyResult<Bound<'py, PyAny>> {
        match t.is_wrapped() && t.ndim() == 0 {
            true => scalar_object(py, t),
            false => Ok(wrap(py, t.clone())?.into_bound(py)),
        }
    };
    Ok(match v {
        Value::None => py.None().into_bound(py),
        Value::Tensor(t) => one(t)?,
        Value::Tensors(ts) | Value::Tuple(ts) => {
            let all = ts.iter().map(one).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, all)?.into_any()
        }
        Value::OptionalTensors(ts) => {
            let none = || Ok(py.None().into_bound(py));
            let all = ts.iter().map(|t| t.as_ref().map_or_else(none, one));
            PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(i) => i.into_pyobject(py)?.into_any(),
        Value::Float(x) => x.into_pyobject(py)?.into_any(),
        Value::Complex(re, im) => PyComplex::from_doubles(py, *re, *im).into_any(),
        Value::Ints(v) => PyList::new(py, v.iter())?.into_any(),
        Value::Floats(v) => PyList::new(py, v)?.into_any(),
        Value::Bools(v) => PyList::new(py, v)?.into_any(),
        Value::Str(s) => PyString::new(py, s).into_any(),
        Value::DType(d) => dtype_object(py, *d).bind(py).clone().into_any(),
        Value::Device(d) => Bound::new(py, PyDevice::of(*d))?.into_any(),
        Value::Layout(form) => layout_object(py, *form).bind(py).clone().into_any(),
        Value::MemoryFormat(f) => Bound::new(py, PyMemoryFormat(*f))?.into_any(),
        Value::Generator(g) => Bound::new(py, PyGenerator(g.clone()))?.into_any(),
    })
}

impl Public {
    /// Whether this is the function that `asked` names, and the request is for its arguments alone.
    fn fits(&self, asked: &Asked, request: &Request) -> bool {
        let name = self.name.strip_suffix('_');
        let written = name.is_some() || self.out.is_some();
        let alike = match request.kind {
            Kind::Into { y, .. } => written && y.len() == self.op.schema.returns.len(),
            Kind::View { .. } => !written,
            Kind::Compute { op } => {
                let n = op.infer(&metas(request.x)).map_or(0, |m| m.len());
                !written && (n == 0 || n == self.op.schema.returns.len())
            }
        };
        let known: Vec<&Tensor> = self.values.iter().flat_map(tensors).collect();
        let given = |t: &&Tensor| t.is_wrapped() || known.iter().any(|k| k.same(t));
        let written = match request.kind {
            Kind::Into { y, .. } => y,
            _ => &[],
        };
        let taken = |k: &&Tensor| {
            let mut all = request.x.iter().copied().chain(written);
            k.is_wrapped() || all.any(|t| t.same(k))
        };
        alike
            && asked.name == name.unwrap_or(self.name)
            && request.x.iter().all(given)
            && known.iter().all(taken)
    }

    /// The arguments: by position without the last ones that are left to the function, and by name.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let params = &self.op.schema.params;
        let usual = |i: usize| match (&params[i].default, &self.values[i]) {
            // PyTorch's operators take the mean where its functions take none.
            (Some(Value::Int(0)), _) if params[i].name == "reduction" => false,
            (Some(d), v) => format!("{d:?}") == format!("{v:?}") && tensors(v).is_empty(),
            (None, v) => params[i].keyword_only && matches!(v, Value::None),
        };
        let places = params.iter().take_while(|p| !p.keyword_only).count();
        let given = (0..places).rev().find(|&i| !usual(i)).map_or(0, |i| i + 1);
        let args = self.values[..given].iter().map(|v| object(py, v));
        let mut args = args.collect::<PyResult<Vec<_>>>()?;
        // The operator takes the condition first, the method the tensor.
        if self.name == "where" && params[0].name == "self" {
            args.swap(0, 1);
        }
        let kwargs = PyDict::new(py);
        for i in (places..params.len()).filter(|&i| !usual(i)) {
            kwargs.set_item(params[i].name, object(py, &self.values[i])?)?;
        }
        if let Some(out) = &self.out {
            kwargs.set_item("out", out)?;
        }
        Ok((PyTuple::new(py, args)?, kwargs))
    }
}

/// A call of an operator in Python.
struct Call<'py> {
    func: Bound<'py, PyAny>,
    args: Bound<'py, PyTuple>,
    kwargs: Bound<'py, PyDict>,
}

/// The operator of this name, in the form for the arguments. Where it is not `whole` without its
/// parameters, it is one that computes `op`.
fn operator<'py>(
    py: Python<'py>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    op: Option<Arc<dyn Kernel>>,
    whole: bool,
) -> PyResult<Bound<'py, PyAny>> {
    static FIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = FIND.import(py, "pytensorlib._ops.dispatch", "_operator")?;
    let op = op.map(|op| Bound::new(py, Computation(op))).transpose()?;
    find.call1((name, args, kwargs, op, whole))
}

impl<'py> Call<'py> {
    fn of(py: Python<'py>, request: &Request) -> PyResult<Call<'py>> {
        let public = CALL.take();
        let (asked, op) = match request.kind {
            Kind::Compute { op } | Kind::Into { op, .. } => {
                (op.asked(request.x, &[]).py()?, Some(op))
            }
            Kind::View { op, layouts, .. } => {
                let asked = op.asked(request.x, layouts).py()?;
                // Of many slices at once it has no arguments of its own.
                let bare = asked.args.is_none() && asked.name == "expand";
                let whole = |l: &Layout| {
                    let sizes = l.shape.iter().map(|&n| n as i64).collect();
                    Asked::named("expand").with([request.x[0].clone().into(), Value::Ints(sizes)])
                };
                match layouts {
                    [layout] if bare => (whole(layout), None),
                    _ => (asked, None),
                }
            }
        };
        if let Some(public) = public.filter(|p| p.fits(&asked, request)) {
            let (args, kwargs) = public.arguments(py)?;
            let func = operator(py, public.name, &args, &kwargs, None, true)?;
            return Ok(Call { func, args, kwargs });
        }
        let kwargs = PyDict::new(py);
        for (name, value) in &asked.options {
            kwargs.set_item(*name, object(py, value)?)?;
        }
        let own = || request.x.iter().map(|&t| t.clone().into()).collect();
        let whole = asked.args.is_some();
        let values: Vec<Value> = asked.args.unwrap_or_else(own);
        // What an operator takes alone is a tensor, a number too.
        let alone = request.x.len() == 1;
        let args = values.iter().map(|v| match v {
            Value::Tensor(t) if alone => Ok(wrap(py, t.clone())?.into_bound(py)),
            v => object(py, v),
        });
        let args = PyTuple::new(py, args.collect::<PyResult<Vec<_>>>()?)?;
        let mut name = asked.name;
        if let Kind::Into { y, .. } = request.kind {
            match (request.x, y) {
                ([x, ..], [y]) if x.same(y) => name.push('_'),
                (_, [y]) => kwargs.set_item("out", wrap(py, y.clone())?)?,
                _ => {
                    let all = y.iter().map(|y| wrap(py, y.clone()));
                    let all = PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)?;
                    kwargs.set_item("out", all)?;
                }
            }
        }
        let func = operator(py, &name, &args, &kwargs, op.map(|op| op.keep()), whole)?;
        Ok(Call { func, args, kwargs })
    }

    /// The classes of the arguments that answer, subclasses before their bases, each with an object.
    fn classes(&self) -> PyResult<Vec<Bound<'py, PyType>>> {
        let mut found: Vec<Bound<'py, PyType>> = Vec::new();
        let mut look = |o: &Bound<'py, PyAny>| -> PyResult<()> {
            let is = |o: &Bound<'py, PyAny>| tensor(o).is_some_and(|t| t.answers());
            if is(o) && !found.iter().any(|f| f.is(o.get_type())) {
                let class = o.get_type();
                let mut at = found.len();
                for (i, f) in found.iter().enumerate().rev() {
                    if class.is_subclass(f)? {
                        at = i;
                    }
                }
                found.insert(at, class);
            }
            Ok(())
        };
        for arg in self.args.iter().chain(self.kwargs.values()) {
            if let Ok(items) = arg.cast::<PyList>() {
                items.iter().try_for_each(|o| look(&o))?;
            } else if let Ok(items) = arg.cast::<PyTuple>() {
                items.iter().try_for_each(|o| look(&o))?;
            } else {
                look(&arg)?;
            }
        }
        Ok(found)
    }

    /// What the first of these classes answers that does.
    fn by_classes(&self, found: &[Bound<'py, PyType>]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.func.py();
        let types = PyTuple::new(py, found)?;
        for class in found {
            let handler = class.getattr(intern!(py, "__torch_dispatch__"))?;
            let y = handler.call1((&self.func, &types, &self.args, &self.kwargs))?;
            if !y.is(py.NotImplemented()) {
                return Ok(Some(y));
            }
        }
        Ok(None)
    }

    /// What the mode in force, or else the classes of the arguments, answer.
    fn answer(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.func.py();
        let found = self.classes()?;
        let types = PyTuple::new(py, &found)?;
        let ask = |mode: &Mode| {
            let handler = mode.handler(py)?;
            let y = handler.call1((&self.func, &types, &self.args, &self.kwargs))?;
            PyResult::Ok((!y.is(py.NotImplemented())).then_some(y))
        };
        let _deeper = Deeper::enter().map_err(to_py)?;
        mode::with_grad(false, || match asking(ask).transpose()?.flatten() {
            Some(y) => Ok(Some(y)),
            None => self.by_classes(&found),
        })
    }

    /// What an answer in Python is to the core.
    fn results(&self, y: &Bound<'py, PyAny>, request: &Request) -> PyResult<Tensors> {
        let want = match request.kind {
            Kind::Into { .. } => return Ok(Tensors::new()),
            Kind::View { layouts, .. } => layouts.len(),
            Kind::Compute { op } => op.infer(&metas(request.x)).map_or(0, |m| m.len()),
        };
        let wrong = |what: String| {
            PyTypeError::new_err(format!(
                "__torch_dispatch__ of {}: expected {} as the result, got {what}",
                self.func,
                match want {
                    0 | 1 => "a tensor".into(),
                    n => format!("{n} tensors"),
                }
            ))
        };
        let mut found = Tensors::new();
        if let Some(t) = tensor(y) {
            found.push(t);
        } else if y.is_instance_of::<PyTuple>() || y.is_instance_of::<PyList>() {
            for item in y.try_iter()? {
                let item = item?;
                let t = tensor(&item);
                found.push(t.ok_or_else(|| wrong(format!("a {}", item.get_type())))?);
            }
        } else {
            return Err(wrong(format!("a {}", y.get_type())));
        }
        // Of an empty dimension `unbind` makes no views.
        let none = matches!(request.kind, Kind::View { layouts, .. } if layouts.is_empty());
        if found.is_empty() != none || want != 0 && found.len() != want {
            return Err(wrong(format!("{} of them", found.len())));
        }
        // What has a place in a graph, or is an argument itself, cannot get another.
        for (i, t) in found.iter_mut().enumerate() {
            match request.kind {
                Kind::View {
                    layouts,
                    dtype,
                    creation,
                    ..
                } if !t.answers() && t.shares_storage(request.x[0]) => {
                    *t = request.x[0].view_as(layouts[i].clone(), dtype, creation);
                }
                _ if t.requires_grad() || request.x.iter().any(|x| x.same(t)) => {
                    *t = t.detach();
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// A `TorchDispatchMode` in force.
struct Mode {
    object: Py<PyAny>,
    me: Weak<Mode>,
}

impl Mode {
    fn handler<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.object
            .bind(py)
            .getattr(intern!(py, "__torch_dispatch__"))
    }

    fn ask(&self, py: Python<'_>, request: &Request) -> PyResult<Option<Tensors>> {
        // What making the arguments asks for (a matrix transposed), the mode sees as well.
        let call = match self.me.upgrade() {
            Some(me) => interpreted(me, || Call::of(py, request))?,
            None => return Ok(None),
        };
        let types = PyTuple::new(py, call.classes()?)?;
        let y = self
            .handler(py)?
            .call1((&call.func, types, &call.args, &call.kwargs))?;
        match y.is(py.NotImplemented()) {
            true => Ok(None),
            false => call.results(&y, request).map(Some),
        }
    }
}

/// Answers within answers, which take more stack than Python counts for them.
struct Deeper;

impl Deeper {
    const MOST: usize = 150;

    fn enter() -> Result<Deeper> {
        let depth = DEPTH.get();
        if depth >= Deeper::MOST {
            return Err(from_py(PyRecursionError::new_err(format!(
                "maximum recursion depth exceeded: __torch_dispatch__ asks for what it is asked, {} \
                 times; compute on the tensors inside",
                Deeper::MOST
            ))));
        }
        DEPTH.set(depth + 1);
        Ok(Deeper)
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Asks Python below gradients. Whoever asked counts a change of what is written to, and nobody else.
fn asked<R>(request: &Request, ask: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R> {
    let written: &[Tensor] = match request.kind {
        Kind::Into { y, .. } => y,
        _ => &[],
    };
    let before: Vec<u32> = written.iter().map(Tensor::version).collect();
    let _deeper = Deeper::enter()?;
    let answer = mode::with_grad(false, || Python::attach(ask)).map_err(from_py);
    for (t, version) in written.iter().zip(before) {
        t.set_version(version);
    }
    answer
}

impl Interpreter for Mode {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        match asked(request, |py| self.ask(py, request))? {
            Some(y) => Ok(y),
            None => apply(request),
        }
    }

    fn names(&self) -> bool {
        true
    }
}

/// The classes of tensors: below all else, and in force also while one is asked.
struct Classes;

fn classes() -> &'static Arc<dyn Interpreter> {
    static CLASSES: OnceLock<Arc<dyn Interpreter>> = OnceLock::new();
    CLASSES.get_or_init(|| Arc::new(Classes))
}

impl Classes {
    fn ask(py: Python<'_>, request: &Request) -> PyResult<Tensors> {
        let call = Call::of(py, request)?;
        let found = call.classes()?;
        let types = PyTuple::new(py, &found)?;
        if let Some(y) = call.by_classes(&found)? {
            return call.results(&y, request);
        }
        if found.is_empty() {
            // What an argument was made of on the way is plain.
            let y = call.func.call(&call.args, Some(&call.kwargs))?;
            return call.results(&y, request);
        }
        Err(PyTypeError::new_err(format!(
            "Multiple dispatch failed for '{}'; all __torch_dispatch__ handlers returned \
             NotImplemented: {}",
            call.func,
            types.to_list().repr()?
        )))
    }
}

impl Interpreter for Classes {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let written: &[Tensor] = match request.kind {
            Kind::Into { y, .. } => y,
            _ => &[],
        };
        let all = request.x.iter().copied().chain(written);
        if !all.into_iter().any(|t| t.answers()) {
            drop(CALL.take());
            return apply(request);
        }
        interpreted(classes().clone(), || {
            asked(request, |py| Classes::ask(py, request))
        })
    }

    fn heeds(&self, x: &[&Tensor]) -> bool {
        x.iter().any(|t| t.answers())
    }

    fn names(&self) -> bool {
        true
    }
}

/// A tensor as an object of a subclass, without running the subclass's own `__new__`.
pub fn wrap_as(cls: &Bound<'_, PyType>, t: Tensor) -> PyResult<Py<PyAny>> {
    let py = cls.py();
    let answers = answers(cls)?;
    let t = match answers == t.answers() {
        true => t,
        false => t.answering(answers),
    };
    let object = make_of(cls, t)?;
    object
        .bind(py)
        .cast::<PyTensor>()?
        .get()
        .adopt(object.as_ptr());
    Ok(object)
}

/// Whether a class of tensors answers for its objects, which then are asked on this thread.
pub fn answers(class: &Bound<'_, PyType>) -> PyResult<bool> {
    if !DEFINED.load(Ordering::Relaxed) || !defines(class)? {
        return Ok(false);
    }
    static FIRST: AtomicBool = AtomicBool::new(true);
    if FIRST.swap(false, Ordering::Relaxed) {
        REASONS.fetch_add(1, Ordering::Relaxed);
    }
    look_here();
    Ok(true)
}

/// From now on this thread asks the classes of tensors.
#[cold]
pub fn look_here() {
    underlie(classes());
}

fn defines(class: &Bound<'_, PyType>) -> PyResult<bool> {
    static OFF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let Some(found) = class.getattr_opt(intern!(py, "__torch_dispatch__"))? else {
        return Ok(false);
    };
    let off = OFF.import(py, "pytensorlib._C", "_disabled_torch_dispatch_impl")?;
    Ok(!found.is_none() && !found.is(off))
}

/// A tensor without a place in the graph, whose object is like that of `t`.
pub fn twin(t: &Tensor) -> Option<Tensor> {
    fn make(py: Python<'_>, t: &Tensor) -> PyResult<Tensor> {
        let old = wrap(py, t.clone())?.into_bound(py);
        let new = wrap_as(&old.get_type(), t.alias(t.layout().clone()))?.into_bound(py);
        let attributes = old.getattr(intern!(py, "__dict__"))?;
        new.getattr(intern!(py, "__dict__"))?
            .call_method1(intern!(py, "update"), (attributes,))?;
        borrow(&new)
    }
    Python::attach(|py| make(py, t).ok())
}

/// The number that the class of an argument says that a function of tensors is.
pub fn number(name: &str, x: &[&Tensor]) -> Result<Scalar> {
    fn ask(py: Python<'_>, name: &str, x: &[&Tensor]) -> PyResult<Scalar> {
        let args = x.iter().map(|&t| wrap(py, t.clone()));
        let args = PyTuple::new(py, args.collect::<PyResult<Vec<_>>>()?)?;
        let kwargs = PyDict::new(py);
        let func = operator(py, name, &args, &kwargs, None, true)?;
        let Some(y) = (Call { func, args, kwargs }).answer()? else {
            return Err(PyRuntimeError::new_err(format!(
                "'aten.{name}.default' of a tensor without memory, for which nobody answers"
            )));
        };
        let wrong = || format!("__torch_dispatch__ of aten.{name}: expected a number, got {y}");
        crate::convert::scalar(&y)?.ok_or_else(|| PyTypeError::new_err(wrong()))
    }
    Python::attach(|py| ask(py, name, x)).map_err(from_py)
}

/// What the mode in force, or a class, makes of a call that makes a tensor without reading one.
pub fn made(py: Python<'_>, public: &Public) -> PyResult<Option<Py<PyAny>>> {
    let like = public.name.ends_with("_like") || public.name.starts_with("new_");
    if public.out.is_some() || !like && public.values.iter().any(|v| !tensors(v).is_empty()) {
        return Ok(None);
    }
    let (args, kwargs) = public.arguments(py)?;
    // Asked for above: what is made stands in no graph yet.
    let tracked = kwargs.get_item("requires_grad")?.is_some();
    if tracked {
        kwargs.del_item("requires_grad")?;
    }
    let func = operator(py, public.name, &args, &kwargs, None, true)?;
    let Some(y) = (Call { func, args, kwargs }).answer()? else {
        return Ok(None);
    };
    if tracked {
        borrow(&y)?.require_grad().py()?;
    }
    Ok(Some(y.unbind()))
}

/// An op with its parameters, which computes on tensors.
#[pyclass(name = "_Computation", module = "pytensorlib._C", frozen)]
struct Computation(Arc<dyn Kernel>);

#[pymethods]
impl Computation {
    /// Computes on as many tensors and numbers as the op takes, and records it where grad mode is on;
    /// into `out` where that is given.
    #[pyo3(signature = (args, out=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: Vec<Bound<'py, PyAny>>,
        out: Option<Vec<Bound<'py, PyAny>>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let read = |o: &Bound<'py, PyAny>| {
            let t = crate::convert::operand(o)?;
            t.ok_or_else(|| {
                PyTypeError::new_err(format!("expected a tensor, got {}", o.get_type()))
            })
        };
        let x: Vec<Tensor> = args.iter().map(read).collect::<PyResult<_>>()?;
        let x: Vec<&Tensor> = x.iter().collect();
        let name = self.0.name();
        if let Some(out) = out {
            let y: Vec<Tensor> = out.iter().map(borrow).collect::<PyResult<_>>()?;
            caught(name, || match &y[..] {
                [y] => {
                    let inplace = x.first().is_some_and(|x| x.same(y));
                    call_kept_into(&self.0, &x, y, inplace).map(|_| ()).py()
                }
                y => compute_into(&*self.0, &x, y).py(),
            })?;
            return Ok(PyTuple::new(py, out)?.into_any());
        }
        let y = caught(name, || call_kept(self.0.clone(), &x).py())?;
        let y = y.into_iter().map(|t| wrap(py, t));
        Ok(PyTuple::new(py, y.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A mode in force, by which it is taken away again.
#[pyclass(name = "_DispatchMode", module = "pytensorlib._C", frozen)]
struct Entered(Arc<Mode>);

/// Lets a mode answer what this thread asks for from now on.
#[pyfunction]
fn _push_dispatch_mode(mode: Py<PyAny>) -> Entered {
    REASONS.fetch_add(1, Ordering::Relaxed);
    let mode = Arc::new_cyclic(|me| Mode {
        object: mode,
        me: me.clone(),
    });
    InForce::here().above(mode.clone()).put();
    Entered(mode)
}

/// Takes a mode away.
#[pyfunction]
fn _pop_dispatch_mode(entered: &Bound<'_, Entered>) {
    REASONS.fetch_sub(1, Ordering::Relaxed);
    let mode: Arc<dyn Interpreter> = entered.get().0.clone();
    InForce::here().without(&mode).put();
}

/// The modes in force on this thread, the one that is asked first at the end.
#[pyfunction]
fn _dispatch_modes(py: Python<'_>) -> Vec<Py<PyAny>> {
    let here = InForce::here();
    here.each::<Mode>()
        .map(|m| m.object.clone_ref(py))
        .collect()
}

/// What the mode in force, or the classes of the arguments, answer for an operator that a program
/// defined: a tuple of it, or None where nobody does.
#[pyfunction]
fn _ask_dispatch<'py>(
    func: Bound<'py, PyAny>,
    args: Bound<'py, PyTuple>,
    kwargs: Bound<'py, PyDict>,
) -> PyResult<Option<(Py<PyAny>,)>> {
    if !active() {
        return Ok(None);
    }
    let y = (Call { func, args, kwargs }).answer()?;
    Ok(y.map(|y| (y.unbind(),)))
}

/// Whether a mode or a class of tensors may answer on this thread.
#[pyfunction]
fn _is_dispatched() -> bool {
    active()
}

/// What was in force on a thread.
#[pyclass(name = "_InForce", module = "pytensorlib._C", frozen)]
struct Before(std::sync::Mutex<Option<InForce>>);

/// Takes all modes of this thread away until what this returns is put back.
#[pyfunction]
fn _leave_dispatch_modes() -> Before {
    let before = Before(std::sync::Mutex::new(Some(InForce::here())));
    InForce::here().without_each::<Mode>().put();
    before
}

/// Puts back what [`_leave_dispatch_modes`] took away.
#[pyfunction]
fn _restore_dispatch_modes(before: &Bound<'_, Before>) -> PyResult<()> {
    let found = before.get().0.lock().ok().and_then(|mut b| b.take());
    let found = found.ok_or_else(|| PyRuntimeError::new_err("the modes were put back already"))?;
    found.put();
    Ok(())
}

/// From now on classes of tensors may answer.
#[pyfunction]
fn _enable_torch_dispatch() {
    DEFINED.store(true, Ordering::Relaxed);
}

/// The `__torch_dispatch__` of classes that leave everything to the operator.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_dispatch_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<&Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    func.call(args.unwrap_or(&PyTuple::empty(func.py())), kwargs)
}

/// An object of a class that answers for it, which has no memory.
#[pyfunction]
fn _wrapper_tensor(
    class: &Bound<'_, PyType>,
    size: Vec<usize>,
    strides: Option<Vec<isize>>,
    offset: usize,
    dtype: &Bound<'_, PyAny>,
    device: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    if !defines(class)? {
        return Err(PyRuntimeError::new_err(format!(
            "_make_wrapper_subclass: {} must define __torch_dispatch__ to be a wrapper of tensors",
            class.name()?
        )));
    }
    let mut layout = pytensorlib_core::layout::Layout::contiguous(&size);
    if let Some(strides) = strides {
        if strides.len() != size.len() {
            return Err(PyRuntimeError::new_err(format!(
                "_make_wrapper_subclass: expected a stride for each of {} dimensions, got {}",
                size.len(),
                strides.len()
            )));
        }
        layout.strides = strides.into_iter().collect();
    }
    layout.offset = offset;
    let dtype = crate::dtype::parse(dtype).ok_or_else(|| {
        PyTypeError::new_err("_make_wrapper_subclass: dtype must be a torch.dtype")
    })?;
    let t = Tensor::answered(layout, dtype, PyDevice::expect(device)?).map_err(to_py)?;
    wrap_as(class, t)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Computation>()?;
    m.add_class::<Entered>()?;
    m.add_class::<Before>()?;
    m.add_function(wrap_pyfunction!(_push_dispatch_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_dispatch_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_ask_dispatch, m)?)?;
    m.add_function(wrap_pyfunction!(_is_dispatched, m)?)?;
    m.add_function(wrap_pyfunction!(_dispatch_modes, m)?)?;
    m.add_function(wrap_pyfunction!(_leave_dispatch_modes, m)?)?;
    m.add_function(wrap_pyfunction!(_restore_dispatch_modes, m)?)?;
    m.add_function(wrap_pyfunction!(_enable_torch_dispatch, m)?)?;
    m.add_function(wrap_pyfunction!(_disabled_torch_dispatch_impl, m)?)?;
    m.add_function(wrap_pyfunction!(_wrapper_tensor, m)?)
}

//! `__torch_function__`: classes and modes that answer for functions of tensors themselves. Nobody
//! pays for it before such a class exists, or while no mode is on.

mod asked;

pub use asked::asked;

use crate::convert::is_tensor;
use crate::object::class;
use pyo3::exceptions::{PyDeprecationWarning, PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many reasons there are to ask: subclasses of `Tensor` that answer, modes of all threads.
static REASONS: AtomicUsize = AtomicUsize::new(0);

/// Who is asked on a thread.
#[derive(Clone, Copy, PartialEq)]
pub enum Rest {
    /// Modes, then classes.
    Nobody,
    Classes,
    All,
}

/// What was called.
#[derive(Clone, Copy, PartialEq)]
pub enum Call {
    /// A function of the operator table.
    Operator,
    /// Any other function: the classes that are told are also those that leave all to it.
    Function,
    /// An attribute or a method of a tensor that is none of the table.
    Member,
    /// A function that makes a tensor of data: only modes are told.
    Maker,
}

/// An object that answers for all functions of a thread.
struct Mode {
    object: Py<PyAny>,
    /// Whether it is asked for operators alone: a part of the package, no mode of the program.
    inner: bool,
}

thread_local! {
    static REST: Cell<Rest> = const { Cell::new(Rest::Nobody) };
    /// The last one answers, without itself.
    static MODES: RefCell<Vec<Mode>> = const { RefCell::new(Vec::new()) };
}

/// Who is not asked on this thread.
pub fn rest() -> Rest {
    REST.get()
}

/// Sets that for this thread.
pub fn set_rest(rest: Rest) {
    REST.set(rest);
}

/// Whether arguments must be asked.
#[inline]
pub fn active() -> bool {
    REASONS.load(Ordering::Relaxed) != 0 && REST.get() != Rest::All
}

/// Whether an object is told of its attributes and methods, or a mode is.
fn asks(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(active() && (listening(Call::Member) || own_handler(obj)?.is_some()))
}

/// Whether a mode is told of such calls.
fn listening(call: Call) -> bool {
    MODES.with_borrow(|modes| modes.iter().any(|m| m.tells(call)))
}

impl Mode {
    fn tells(&self, call: Call) -> bool {
        call == Call::Operator || !self.inner
    }
}

/// Whether a class says nothing of the protocol, which most arguments are of.
fn silent(class: &Bound<'_, PyType>) -> bool {
    let py = class.py();
    class.is(py.get_type::<PyInt>())
        || class.is(py.get_type::<PyFloat>())
        || class.is(py.get_type::<PyBool>())
        || class.is(py.get_type::<PyString>())
        || class.is(py.None().bind(py).get_type())
}

/// `__torch_function__` of an object's class, unless it leaves everything to the function.
fn handler<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static NAME: PyOnceLock<Py<PyString>> = PyOnceLock::new();
    static LEAVES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = obj.py();
    let class = obj.get_type();
    if silent(&class) {
        return Ok(None);
    }
    let name = NAME.get_or_init(py, || PyString::intern(py, "__torch_function__").unbind());
    let Some(found) = class.getattr_opt(name.bind(py))? else {
        return Ok(None);
    };
    let leaves = LEAVES.get_or_try_init(py, || {
        let extension = py.import("pytensorlib._C")?;
        let found = extension.getattr("_disabled_torch_function_impl")?;
        PyResult::Ok(found.unbind())
    })?;
    Ok((!found.is_none() && !found.is(leaves)).then_some(found))
}

/// As [`handler`], but `None` also for plain tensors, which answer as the function does.
fn own_handler<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match obj.get_type().is(class(obj.py())) {
        true => Ok(None),
        false => handler(obj),
    }
}

/// The arguments whose classes answer, one of each class, subclasses before their bases; lists are
/// looked into. With `plain`, tensors of no subclass are among them.
fn overloaded<'py>(args: &[Bound<'py, PyAny>], plain: bool) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut found: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut consider = |obj: &Bound<'py, PyAny>| -> PyResult<()> {
        let class = obj.get_type();
        let of = if plain { handler } else { own_handler };
        if silent(&class) || found.iter().any(|f| f.get_type().is(&class)) || of(obj)?.is_none() {
            return Ok(());
        }
        let mut at = found.len();
        for (i, f) in found.iter().enumerate() {
            if class.is_subclass(&f.get_type())? {
                at = i;
                break;
            }
        }
        found.insert(at, obj.clone());
        Ok(())
    };
    for arg in args {
        if is_tensor(arg) {
            consider(arg)?;
        } else if let Ok(list) = arg.cast::<PyList>() {
            list.iter().try_for_each(|o| consider(&o))?;
        } else if let Ok(tuple) = arg.cast::<PyTuple>() {
            tuple.iter().try_for_each(|o| consider(&o))?;
        } else {
            consider(arg)?;
        }
    }
    Ok(found)
}

/// Whether a class among them is none of those that answer as functions do.
fn speaks(found: &[Bound<'_, PyAny>]) -> bool {
    let plain = |o: &Bound<'_, PyAny>| o.get_type().is(class(o.py()));
    found.iter().any(|o| !plain(o))
}

/// Lets modes and the classes of the arguments answer for `function`; `None` where none does.
pub fn answer(
    function: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    call: Call,
) -> PyResult<Option<Py<PyAny>>> {
    if REST.get() == Rest::All {
        return Ok(None);
    }
    let mut all: Vec<Bound<'_, PyAny>> = args.iter().collect();
    if call == Call::Member || call == Call::Maker {
        all.truncate((call == Call::Member) as usize);
    } else if let Some(kwargs) = kwargs {
        all.extend(kwargs.values());
    }
    answer_of(function, &all, args, kwargs, call)
}

/// As [`answer`], asking the classes of `relevant` alone.
fn answer_of<'py>(
    function: &Bound<'py, PyAny>,
    relevant: &[Bound<'py, PyAny>],
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    call: Call,
) -> PyResult<Option<Py<PyAny>>> {
    let py = function.py();
    let mode = Away::take(call);
    if mode.is_none() && REST.get() != Rest::Nobody {
        return Ok(None);
    }
    let found = match (REST.get(), call) {
        (Rest::Nobody, Call::Member) => relevant.to_vec(),
        (Rest::Nobody, _) => overloaded(relevant, call == Call::Function)?,
        _ => Vec::new(),
    };
    if mode.is_none() && !speaks(&found) {
        return Ok(None);
    }
    let types = PyTuple::new(py, found.iter().map(|f| f.get_type()))?;
    let named = kwargs.filter(|k| call == Call::Function || !k.is_empty());
    let ask = |asked: Bound<'py, PyAny>| match named {
        Some(kwargs) => asked.call1((function, &types, args, kwargs)),
        None => asked.call1((function, &types, args)),
    };
    let name = intern!(py, "__torch_function__");
    if let Some(object) = mode.as_ref().and_then(|m| m.mode.as_ref()) {
        let own = object.object.bind(py);
        let asked = own.getattr(name)?;
        if belongs_to(&asked, own.get_type().as_any())? {
            return Err(PyRuntimeError::new_err(
                "Defining your mode's `__torch_function__` as a classmethod is not supported, \
                 please make it a plain method",
            ));
        }
        let result = ask(asked)?;
        if !result.is(py.NotImplemented()) {
            return Ok(Some(result.unbind()));
        }
    }
    for obj in &found {
        if handler(obj)?.is_none() {
            continue;
        }
        // As the object has it: an old class may say it by a method.
        let asked = obj.getattr(name)?;
        if belongs_to(&asked, obj)? {
            let kind = match call {
                Call::Function => py.get_type::<PyDeprecationWarning>(),
                _ => py.get_type::<PyUserWarning>(),
            };
            let text = c"Defining your `__torch_function__` as a plain method is deprecated and \
                will be an error in future, please define it as a classmethod.";
            PyErr::warn(py, &kind, text, 1)?;
        }
        let result = ask(asked)?;
        if !result.is(py.NotImplemented()) {
            return Ok(Some(result.unbind()));
        }
    }
    let name = full_name(function)?;
    if call == Call::Function {
        let mut text = format!(
            "no implementation found for '{name}' on types that implement __torch_function__: {}",
            types.as_any().cast::<PyTuple>()?.to_list().repr()?
        );
        if let Some(mode) = mode.as_ref().and_then(|m| m.mode.as_ref()) {
            let mode = mode.object.bind(py).repr()?;
            text.push_str(&format!(" nor in mode {mode}"));
        }
        return Err(PyTypeError::new_err(text));
    }
    let mut text = format!(
        "Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned \
         NotImplemented:\n"
    );
    if let Some(mode) = mode.as_ref().and_then(|m| m.mode.as_ref()) {
        text.push_str(&format!(
            "\n  - mode object {}",
            mode.object.bind(py).repr()?
        ));
    }
    for class in types.iter() {
        text.push_str(&format!("\n  - tensor subclass {}", class.repr()?));
    }
    Err(PyTypeError::new_err(text))
}

/// Whether a method is bound to an object.
fn belongs_to(method: &Bound<'_, PyAny>, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let own = method.getattr_opt(intern!(method.py(), "__self__"))?;
    Ok(own.is_some_and(|o| o.is(object)))
}

/// The name by which programs know a function, as `torch.Tensor.add`.
fn full_name(function: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = function.py();
    let name: String = function.getattr("__name__")?.extract()?;
    if let Some(descriptor) = function.getattr_opt("__self__")? {
        if let Some(of) = descriptor.getattr_opt("__objclass__")? {
            let owner: String = of.getattr("__name__")?.extract()?;
            let (owner, attribute) = (public(&owner), descriptor.getattr("__name__")?);
            return Ok(format!("torch.{owner}.{attribute}.{name}"));
        }
    }
    let own = function.getattr_opt("__qualname__")?;
    let qualified = match own.as_ref().and_then(|q| q.extract::<String>().ok()) {
        Some(q) => q,
        None => name,
    };
    let module = match function.getattr_opt(intern!(py, "__module__"))? {
        Some(m) => m.extract::<String>().unwrap_or_default(),
        None => String::new(),
    };
    Ok(match module.split_once('.') {
        Some((_, rest)) if !rest.starts_with("_C") => format!("torch.{rest}.{qualified}"),
        _ => format!("torch.{}", public(&qualified)),
    })
}

/// A name of what the base of tensors has, as one of the class.
fn public(name: &str) -> Cow<'_, str> {
    match name.strip_prefix("TensorBase") {
        Some(rest) => format!("Tensor{rest}").into(),
        None => name.into(),
    }
}

/// A mode that is away while it answers; it comes back to its place, also when the call unwinds.
struct Away {
    mode: Option<Mode>,
    place: usize,
}

impl Away {
    /// Takes the last mode that is told of such calls.
    fn take(call: Call) -> Option<Away> {
        MODES.with_borrow_mut(|modes| {
            let place = modes.iter().rposition(|m| m.tells(call))?;
            Some(Away {
                mode: Some(modes.remove(place)),
                place,
            })
        })
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if let Some(mode) = self.mode.take() {
            MODES.with_borrow_mut(|modes| modes.insert(self.place.min(modes.len()), mode));
        }
    }
}

/// As [`answer`], for the method or operator `name` of the class.
pub fn method(
    py: Python<'_>,
    name: &str,
    args: &[&Bound<'_, PyAny>],
) -> PyResult<Option<Py<PyAny>>> {
    if !args.iter().any(|a| is_tensor(a)) {
        return Ok(None);
    }
    let function = class(py).getattr(asked(name))?;
    answer(&function, &PyTuple::new(py, args)?, None, Call::Operator)
}

/// The arguments of a vectorcall as a tuple and a dictionary.
///
/// # Safety
/// All objects are alive; `names` is null or a tuple of strings, as many as `values` has.
pub unsafe fn arguments<'py>(
    py: Python<'py>,
    args: &[*mut ffi::PyObject],
    names: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    // SAFETY: the objects live during the call, and `values` has one for each name.
    unsafe {
        let object = |p: *mut ffi::PyObject| Bound::from_borrowed_ptr(py, p);
        let positional = PyTuple::new(py, args.iter().map(|&p| object(p)).collect::<Vec<_>>())?;
        if names.is_null() {
            return Ok((positional, None));
        }
        let kwargs = PyDict::new(py);
        for i in 0..ffi::PyTuple_GET_SIZE(names) {
            kwargs.set_item(
                object(ffi::PyTuple_GET_ITEM(names, i)),
                object(*values.add(i as usize)),
            )?;
        }
        Ok((positional, Some(kwargs)))
    }
}

/// Lets attributes, methods and functions that are no operators ask too.
fn install(py: Python<'_>) -> PyResult<()> {
    py.import("pytensorlib._tensor.functions")?
        .call_method0("install")?;
    Ok(())
}

/// From now on arguments are asked.
#[pyfunction]
fn _enable_torch_function(py: Python<'_>) -> PyResult<()> {
    REASONS.fetch_add(1, Ordering::Relaxed);
    install(py)
}

/// Lets an object answer for every function on this thread, by its `__torch_function__`; with
/// `inner`, for operators alone.
#[pyfunction]
#[pyo3(signature = (mode, inner=false))]
fn _push_torch_function_mode(mode: Bound<'_, PyAny>, inner: bool) -> PyResult<()> {
    if !inner {
        install(mode.py())?;
    }
    REASONS.fetch_add(1, Ordering::Relaxed);
    let object = mode.unbind();
    MODES.with_borrow_mut(|modes| modes.push(Mode { object, inner }));
    Ok(())
}

/// Takes the last mode away and returns it, with whether it is an inner one.
#[pyfunction]
fn _take_torch_function_mode() -> PyResult<(Py<PyAny>, bool)> {
    let mode = MODES.with_borrow_mut(Vec::pop);
    let mode = mode.ok_or_else(|| PyRuntimeError::new_err("there is no mode to take away"))?;
    REASONS.fetch_sub(1, Ordering::Relaxed);
    Ok((mode.object, mode.inner))
}

/// Takes the last mode away and returns it.
#[pyfunction]
fn _pop_torch_function_mode() -> PyResult<Py<PyAny>> {
    Ok(_take_torch_function_mode()?.0)
}

/// The modes of this thread, the one that is asked first at the end; with `inner`, also those for
/// operators alone.
#[pyfunction]
#[pyo3(signature = (inner=false))]
fn _torch_function_modes(py: Python<'_>, inner: bool) -> Vec<Py<PyAny>> {
    MODES.with_borrow(|modes| {
        let shown = modes.iter().filter(|m| inner || !m.inner);
        shown.map(|m| m.object.clone_ref(py)).collect()
    })
}

/// Sets who is not asked on this thread, nobody (0), classes (1) or also modes (2); returns what it
/// was.
#[pyfunction]
fn _rest_torch_function(rest: u8) -> u8 {
    let rest = match rest {
        0 => Rest::Nobody,
        1 => Rest::Classes,
        _ => Rest::All,
    };
    REST.replace(rest) as u8
}

/// The `__torch_function__` of classes that leave everything to the function.
#[pyfunction]
#[pyo3(signature = (func, types, args=None, kwargs=None))]
fn _disabled_torch_function_impl<'py>(
    func: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
    args: Option<&Bound<'py, PyTuple>>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = types;
    let empty = PyTuple::empty(func.py());
    let before = REST.get();
    if before == Rest::Nobody {
        REST.set(Rest::Classes);
    }
    let result = func.call(args.unwrap_or(&empty), kwargs);
    REST.set(before);
    result
}

/// Lets modes and the classes of `relevant` answer for a function of Python's; `NotImplemented` where
/// none of them does.
#[pyfunction]
fn _answered_of<'py>(
    function: &Bound<'py, PyAny>,
    relevant: Vec<Bound<'py, PyAny>>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Py<PyAny>> {
    let py = function.py();
    let answer = match REST.get() {
        Rest::All => None,
        _ => answer_of(function, &relevant, args, Some(kwargs), Call::Function)?,
    };
    Ok(answer.unwrap_or_else(|| py.NotImplemented()))
}

/// The arguments whose classes answer for themselves.
#[pyfunction]
fn _overloaded_args<'py>(args: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match REST.get() {
        Rest::Nobody => overloaded(&args, false),
        _ => Ok(Vec::new()),
    }
}

/// Whether a mode or the class of an argument of a call answers.
#[pyfunction]
fn _asks(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<bool> {
    if !active() {
        return Ok(false);
    }
    if listening(Call::Function) {
        return Ok(true);
    }
    if REST.get() != Rest::Nobody {
        return Ok(false);
    }
    let mut all: Vec<Bound<'_, PyAny>> = args.iter().collect();
    all.extend(kwargs.values());
    Ok(!overloaded(&all, false)?.is_empty())
}

/// Whether a mode or the class of an argument answers.
#[pyfunction]
fn _has_torch_function(args: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
    Ok(match REST.get() {
        Rest::All => false,
        _ if listening(Call::Function) => true,
        Rest::Classes => false,
        Rest::Nobody => !overloaded(&args, false)?.is_empty(),
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_enable_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_rest_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_push_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_pop_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_take_torch_function_mode, m)?)?;
    m.add_function(wrap_pyfunction!(_torch_function_modes, m)?)?;
    m.add_function(wrap_pyfunction!(_disabled_torch_function_impl, m)?)?;
    m.add_function(wrap_pyfunction!(_overloaded_args, m)?)?;
    m.add_function(wrap_pyfunction!(_has_torch_function, m)?)?;
    m.add_function(wrap_pyfunction!(_answered_of, m)?)?;
    m.add_function(wrap_pyfunction!(_asks, m)?)?;
    asked::register(m)
}

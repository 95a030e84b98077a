//! The op table as Python callables. One type serves functions and methods: it reads arguments by
//! the parsed signature, so there is no code per op.

mod each;
mod misfit;

use crate::cell::PyTensor;
use crate::convert::{argument, exact_ints, named_result, result, tensor};
use crate::dispatch;
use crate::docs;
use crate::error::guard;
use crate::error::IntoPy;
use crate::overrides;
use crate::signature::{self, Form};
use misfit::Misfit;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pytensorlib_core::ops::{table, Op};
use pytensorlib_core::schema::{flag, Dest, Param, Type, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

/// A public name: its overloads in the order in which they are tried.
struct Function {
    name: String,
    /// The name within its module: that of methods begins with their class.
    qualified: String,
    module: &'static str,
    /// Whether Python asks the other operand where this one does not know what to do.
    operator: bool,
    overloads: Vec<Overload>,
    /// What it does where an argument is sparse.
    sparse: Vec<Overload>,
    /// How many of the overloads have their arguments in the order of the signature.
    signatures: usize,
    inplace: bool,
}

struct Overload {
    op: &'static Op,
    /// Interned names of the parameters, compared by address first.
    names: Vec<Py<PyString>>,
    method: bool,
    out: bool,
    /// How many parameters have a place.
    places: usize,
    /// Whether the last of them is a list, which may be written as separate arguments.
    rest: bool,
    /// Whether the result may take the place of `self` (`t_`).
    renews: bool,
    /// The parameter at each place, in a form of old; empty where it is the signature's order.
    order: Vec<usize>,
}

/// The Python object. The interpreter calls `call` through the vectorcall protocol.
#[repr(C)]
struct Callable {
    base: ffi::PyObject,
    vectorcall: ffi::vectorcallfunc,
    function: &'static Function,
}

type Values = SmallVec<[Value; 6]>;

// SAFETY: the interpreter calls this attached, with a `Callable` and as many `args` as it says.
unsafe extern "C" fn call(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; it keeps the callable and its `n` arguments during the call.
    unsafe {
        let py = Python::assume_attached();
        let function = (*callable.cast::<Callable>()).function;
        let n = ffi::PyVectorcall_NARGS(nargsf) as usize;
        let keywords = Keywords {
            names: kwnames,
            values: args.wrapping_add(n),
        };
        let positional = match n {
            0 => &[],
            _ => std::slice::from_raw_parts(args, n),
        };
        let run = || {
            if overrides::active() {
                let name = &function.name;
                if let Some(result) = answered(py, callable, name, positional, keywords)? {
                    return Ok(result);
                }
            }
            function.call(py, callable, positional, keywords)
        };
        guard(py, &function.name, run)
    }
}

/// What the classes of the arguments answer for a function, where one does.
fn answered(
    py: Python<'_>,
    callable: *mut ffi::PyObject,
    name: &str,
    args: &[*mut ffi::PyObject],
    keywords: Keywords,
) -> PyResult<Option<Py<PyAny>>> {
    // SAFETY: function and arguments are borrowed from the caller for the whole call.
    let (mut function, (args, kwargs)) = unsafe {
        (
            Bound::from_borrowed_ptr(py, callable),
            overrides::arguments(py, args, keywords.names, keywords.values)?,
        )
    };
    let asked = overrides::asked(name);
    if asked != name {
        function = py.get_type::<PyTensor>().getattr(asked)?;
    }
    overrides::answer(&function, &args, kwargs.as_ref(), overrides::Call::Operator)
}

/// Keyword arguments as the interpreter hands them over: a tuple of names, or null, and values.
#[derive(Clone, Copy)]
struct Keywords {
    names: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
}

impl Keywords {
    const NONE: Keywords = Keywords {
        names: std::ptr::null_mut(),
        values: std::ptr::null(),
    };

    fn is_empty(&self) -> bool {
        self.names.is_null()
    }

    /// Each name with its value.
    fn iter<'py>(
        self,
        py: Python<'py>,
    ) -> impl Iterator<Item = (Bound<'py, PyString>, *mut ffi::PyObject)> {
        let n = match self.names.is_null() {
            true => 0,
            // SAFETY: the tuple outlives the call.
            false => unsafe { ffi::PyTuple_GET_SIZE(self.names) },
        };
        // SAFETY: `i` is below the length of the tuple of strings, which is also the number of
        // values; both outlive the call.
        (0..n).map(move |i| unsafe {
            let name = Bound::from_borrowed_ptr(py, ffi::PyTuple_GET_ITEM(self.names, i));
            (name.cast_into_unchecked(), *self.values.add(i as usize))
        })
    }
}

impl Function {
    fn call(
        &'static self,
        py: Python<'_>,
        callable: *mut ffi::PyObject,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Py<PyAny>> {
        let mut misfits: SmallVec<[Misfit; 4]> = SmallVec::new();
        for overload in &self.overloads {
            let mut values = Values::new();
            match overload.read(py, args, keywords, &mut values) {
                Ok(out) if overload.refuses(&values, out.as_ref()) => {
                    return self.call_sparse(py, args, keywords)
                }
                Ok(out) => {
                    if !overload.order.is_empty() {
                        self.warn_of_old_order(py, overload)?;
                    }
                    return self.run(py, overload, &mut values, out, args, keywords);
                }
                Err(_) if !overload.order.is_empty() => {}
                Err(Misfit::Raised(e)) if self.signatures == 1 => return Err(e),
                Err(misfit) => misfits.push(misfit),
            }
        }
        // What is no tensor may stand for one.
        if !callable.is_null() {
            if let Some(result) = answered(py, callable, &self.name, args, keywords)? {
                return Ok(result);
            }
        }
        if self.operator {
            return Ok(py.NotImplemented());
        }
        // An argument of the right type whose value is at fault tells more than the types do.
        let raised = misfits.iter().find_map(Misfit::raised);
        if let Some(e) = raised.filter(|e| !e.is_instance_of::<PyTypeError>(py)) {
            return Err(e.clone_ref(py));
        }
        Err(self.no_match(py, args, keywords, &misfits))
    }

    /// Warns where the arguments came in an order of old.
    #[cold]
    fn warn_of_old_order(&self, py: Python<'_>, overload: &Overload) -> PyResult<()> {
        let now = self.overloads.iter().find(|o| o.order.is_empty());
        let old = overload.form().lines(&self.name);
        let lines = now.unwrap_or(overload).form().lines(&self.name);
        let text = format!(
            "This overload of {} is deprecated:\n\t{}\nConsider using one of the following signatures \
             instead:\n\t{}",
            self.name,
            old.last().map_or("", String::as_str),
            lines.last().map_or("", String::as_str)
        );
        let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
        PyErr::warn(py, &category, &std::ffi::CString::new(text)?, 1)
    }

    /// Calls what takes sparse arguments; those that it got fit a function of dense ones.
    #[cold]
    fn call_sparse(
        &'static self,
        py: Python<'_>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Py<PyAny>> {
        for overload in &self.sparse {
            let mut values = Values::new();
            if let Ok(out) = overload.read(py, args, keywords, &mut values) {
                return self.run(py, overload, &mut values, out, args, keywords);
            }
        }
        Err(PyNotImplementedError::new_err(format!(
            "Could not run 'aten::{}' with arguments from the 'SparseCPU' backend: it takes dense \
             tensors (layout torch.strided), and got a sparse one (such as of layout torch.sparse_coo); \
             convert it with to_dense()",
            self.name
        )))
    }

    fn run(
        &'static self,
        py: Python<'_>,
        overload: &Overload,
        values: &mut Values,
        out: Option<Bound<'_, PyAny>>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Py<PyAny>> {
        match dispatch::active() {
            true => self.watched(py, overload, values, out, args, keywords),
            false => self.compute(py, overload, values, out, args, keywords),
        }
    }

    /// Computes what modes in Python may see: what is asked for on the way is known by this call.
    #[cold]
    fn watched(
        &'static self,
        py: Python<'_>,
        overload: &Overload,
        values: &mut Values,
        out: Option<Bound<'_, PyAny>>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Py<PyAny>> {
        let public = dispatch::Public {
            name: &self.name,
            op: overload.op,
            values: values.to_vec(),
            out: out.as_ref().map(|o| o.clone().unbind()),
        };
        if let Some(made) = dispatch::made(py, &public)? {
            return Ok(made);
        }
        dispatch::within(public, || {
            self.compute(py, overload, values, out, args, keywords)
        })
    }

    #[inline(always)]
    fn compute(
        &'static self,
        py: Python<'_>,
        overload: &Overload,
        values: &mut Values,
        out: Option<Bound<'_, PyAny>>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Py<PyAny>> {
        let (entry, schema) = (overload.op.entry, &overload.op.schema);
        if self.inplace {
            entry
                .invoke(schema, values, &Dest::InPlace)
                .py_of(&self.name)?;
            let place = overload.order.iter().position(|&i| i == 0).unwrap_or(0);
            let named = || keywords.iter(py).find(|(k, _)| overload.find(k) == Some(0));
            let target = args.get(place).copied().or_else(|| Some(named()?.1));
            // SAFETY: `read` found `self` at this place or by its name; the caller keeps it alive.
            return Ok(unsafe { Bound::from_borrowed_ptr(py, target.expect("self")) }.unbind());
        }
        let Some(out) = out else {
            let value = entry.invoke(schema, values, &Dest::New).py_of(&self.name)?;
            // Methods that return `self` itself keep its identity and class. Those that change its
            // layout (`x.t_()`) give another tensor, which takes its place behind the object.
            let renewed = overload.renews;
            if let (Value::Tensor(y), Some(Value::Tensor(x))) = (&value, values.first()) {
                if (y.same(x) || renewed) && !args.is_empty() {
                    // SAFETY: the interpreter keeps a call's arguments alive until it returns.
                    let first = unsafe { Bound::from_borrowed_ptr(py, args[0]) };
                    if let Ok(object) = first.cast::<PyTensor>() {
                        if object.get().get().same(y) {
                            return Ok(first.unbind());
                        }
                        if renewed && object.get().get().same(x) {
                            object.get().swap(y.clone());
                            return Ok(first.unbind());
                        }
                    }
                }
            }
            return result(py, overload.op, value);
        };
        let objects = self.outs(overload, &out, args, keywords)?;
        let dest = Dest::Out(objects.iter().map(|o| o.get().get()).collect());
        let written = entry.invoke(schema, values, &dest).py_of(&self.name)?;
        let tensors = match written {
            Value::Tensor(t) => vec![t],
            Value::Tensors(t) | Value::Tuple(t) => t,
            _ => Vec::new(),
        };
        for (object, t) in objects.iter().zip(tensors) {
            if !object.get().get().same(&t) {
                object.get().swap(t);
            }
        }
        if objects.len() == 1 && out.cast::<PyTensor>().is_ok() {
            return Ok(out.unbind());
        }
        if entry.schema.ends_with("-> Tensor[]") {
            return Ok(py.None());
        }
        if schema.returns.iter().flatten().count() == objects.len() {
            return named_result(py, overload.op, PyTuple::new(py, objects)?);
        }
        Ok(out.unbind())
    }

    /// The tensors that `out=` was given: one for one result, a tuple for several.
    fn outs<'py>(
        &self,
        overload: &Overload,
        out: &Bound<'py, PyAny>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
    ) -> PyResult<Vec<Bound<'py, PyTensor>>> {
        let one = overload.op.entry.schema.ends_with("-> Tensor");
        if let (true, Ok(t)) = (one, out.cast::<PyTensor>()) {
            return Ok(vec![t.clone()]);
        }
        let n = overload.op.schema.returns.len();
        let listed = out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>();
        match out.extract::<Vec<Bound<'_, PyTensor>>>() {
            Ok(list) if !one && listed && (n == 1 || n == list.len()) => Ok(list),
            Ok(list) if !one && listed => Err(PyTypeError::new_err(format!(
                "expected tuple of {n} elements but got {}",
                list.len()
            ))),
            _ => {
                let what = if one { "Tensor" } else { "tuple of Tensors" };
                let got = misfit::class_name(out);
                let text = format!("argument 'out' must be {what}, not {got}");
                Err(self.mistake(out.py(), args, keywords, &[(overload, text)]))
            }
        }
    }

    /// The function's name in PyTorch's errors about arguments: `linalg_inv` for `linalg.inv`.
    fn told(&self) -> String {
        let family = match self.module.rsplit_once("._").map(|(_, m)| m) {
            Some(m @ ("linalg" | "special" | "fft")) => format!("{m}_"),
            _ => String::new(),
        };
        family + &self.name
    }

    fn no_match(
        &self,
        py: Python<'_>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
        misfits: &[Misfit],
    ) -> PyErr {
        let several = misfit::SEVERAL.binary_search(&&*self.told()).is_ok();
        let fits: SmallVec<[&Misfit; 4]> = std::iter::zip(&self.overloads, misfits)
            .filter(|(o, _)| o.fits_number(args.len() + keywords.iter(py).count()))
            .map(|(_, m)| m)
            .collect();
        let only = match (misfits, &fits[..]) {
            ([only], _) => Some(only),
            (_, [only]) => Some(*only),
            _ => None,
        };
        match only.filter(|_| !several) {
            Some(only) => {
                let colon = if only.is_of_call() { "" } else { ":" };
                let text = format!("{}(){colon} {}", self.told(), only.text(py));
                PyTypeError::new_err(text)
            }
            _ => {
                let all = std::iter::zip(&self.overloads, misfits);
                let all: Vec<_> = all.map(|(o, m)| (o, m.text(py))).collect();
                self.mistake(py, args, keywords, &all)
            }
        }
    }

    /// Says what a call got and what each signature that there is makes of it.
    fn mistake(
        &self,
        py: Python<'_>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
        reasons: &[(&Overload, String)],
    ) -> PyErr {
        let told = self.told();
        if let ([(_, why)], Err(_)) = (reasons, misfit::SEVERAL.binary_search(&told.as_str())) {
            return PyTypeError::new_err(format!("{told}(): {why}"));
        }
        let class = |p: *mut ffi::PyObject| {
            // SAFETY: arguments are borrowed from the caller for the whole call.
            misfit::class_name(&unsafe { Bound::from_borrowed_ptr(py, p) })
        };
        let own = self.overloads[0].method as usize;
        let mut got: Vec<String> = args.iter().skip(own).map(|&p| class(p)).collect();
        got.extend(keywords.iter(py).map(|(k, p)| format!("{k}={}", class(p))));
        let mut text = format!(
            "{told}() received an invalid combination of arguments - got ({}), but expected one of:",
            got.join(", ")
        );
        for (o, why) in reasons {
            let lines = o.form().lines(&self.name);
            let line = lines.last().map_or("", String::as_str);
            text.push_str(&format!("\n * {line}\n      didn't match because: {why}"));
        }
        PyTypeError::new_err(text)
    }

    /// The overloads as their signatures have them.
    fn forms(&self) -> Vec<Form> {
        let own = self.overloads[..self.signatures].iter();
        own.map(Overload::form).collect()
    }
}

/// The classes of callables: of functions and of methods.
static CLASSES: [AtomicPtr<ffi::PyTypeObject>; 2] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];
static METHODS: OnceLock<BTreeMap<&'static str, &'static Function>> = OnceLock::new();

/// A method of the class that the extension calls itself, looked up once.
pub struct Method {
    name: &'static str,
    function: OnceLock<Option<&'static Function>>,
}

impl Method {
    pub const fn new(name: &'static str) -> Method {
        Method {
            name,
            function: OnceLock::new(),
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Calls the method with `self` as the first argument. The arguments must outlive the call.
    pub fn call(&self, py: Python<'_>, args: &[*mut ffi::PyObject]) -> PyResult<Py<PyAny>> {
        let found = self
            .function
            .get_or_init(|| METHODS.get().and_then(|m| m.get(self.name).copied()));
        match found {
            Some(f) => f.call(py, std::ptr::null_mut(), args, Keywords::NONE),
            None => Err(PyRuntimeError::new_err(format!("no method {}", self.name))),
        }
    }
}

/// NumPy's spellings that PyTorch accepts.
fn alias(name: &str) -> &str {
    match name {
        "input" | "x" | "a" | "x1" => "self",
        "axis" | "axes" => "dim",
        "keepdims" => "keepdim",
        "x2" => "other",
        other => other,
    }
}

impl Overload {
    fn form(&self) -> Form {
        Form {
            op: self.op,
            method: self.method,
            out: self.out && !self.method,
        }
    }

    /// Whether an argument is sparse, which the function does not take.
    #[inline]
    fn refuses(&self, values: &[Value], out: Option<&Bound<'_, PyAny>>) -> bool {
        let sparse = |t: &Bound<'_, PyAny>| {
            t.cast::<crate::cell::PyTensor>()
                .is_ok_and(|t| t.get().get().is_sparse())
        };
        (values.iter().any(Value::is_sparse) || out.is_some_and(sparse))
            && self.op.entry.flags & flag::SPARSE == 0
    }

    /// How many arguments by position it cannot do without.
    fn needed_places(&self) -> usize {
        let places = self.op.schema.params.iter().take(self.places);
        places.filter(|p| default_of(p).is_none()).count()
    }

    /// Whether it takes that many arguments, if they are the right ones.
    fn fits_number(&self, given: usize) -> bool {
        let params = &self.op.schema.params;
        let needed = params.iter().filter(|p| default_of(p).is_none()).count();
        let most = match self.rest {
            true => usize::MAX,
            false => params.len() + self.out as usize,
        };
        (needed..=most).contains(&given)
    }

    /// What a parameter got that it does not take.
    fn misfit<'py>(&self, p: &'static Param, i: usize, got: &Bound<'py, PyAny>) -> Misfit<'py> {
        let place = (i + 1).saturating_sub(self.method as usize);
        Misfit::Type(p, place, got.clone())
    }

    /// Reads arguments into `values` by the signature; gives what `out=` was given.
    fn read<'py>(
        &self,
        py: Python<'py>,
        args: &[*mut ffi::PyObject],
        keywords: Keywords,
        values: &mut Values,
    ) -> Result<Option<Bound<'py, PyAny>>, Misfit<'py>> {
        let params = &self.op.schema.params;
        // SAFETY: arguments are borrowed from the caller for the whole call.
        let borrowed = |p: *mut ffi::PyObject| unsafe { Bound::from_borrowed_ptr(py, p) };
        let mut varargs = None;
        let mut given = args.len();
        for i in self.places.saturating_sub(self.rest as usize)..args.len() {
            if i >= self.places || self.takes_rest(py, i, self.places, args) {
                // `x.view(2, 3)`: the last list takes all remaining ints.
                let last = i.min(self.places.wrapping_sub(1));
                if !self.rest || i != last {
                    let own = self.method as usize;
                    return Err(Misfit::TooMany {
                        least: self.needed_places().saturating_sub(own),
                        takes: self.places.saturating_sub(own),
                        given: args.len().saturating_sub(own),
                    });
                }
                varargs = Some(last);
                given = last;
                break;
            }
        }
        if keywords.is_empty() && self.order.is_empty() {
            for (i, p) in params.iter().enumerate() {
                if i < given {
                    values.push(self.convert(p, i, &borrowed(args[i]))?);
                } else if varargs == Some(i) {
                    values.push(self.convert_rest(py, p, i, &args[i..])?);
                } else {
                    let left = || params[i..].iter().collect();
                    values.push(default_of(p).ok_or_else(|| missing(left()))?);
                }
            }
            return Ok(None);
        }
        let mut slots: SmallVec<[*mut ffi::PyObject; 8]> =
            SmallVec::from_elem(std::ptr::null_mut(), params.len());
        match self.order.is_empty() {
            true => slots[..given].copy_from_slice(&args[..given]),
            false => std::iter::zip(&self.order, args).for_each(|(&i, &a)| slots[i] = a),
        }
        let mut out = None;
        for (key, value) in keywords.iter(py) {
            match self.find(&key) {
                Some(i) if slots[i].is_null() && varargs != Some(i) => slots[i] = value,
                Some(i) => return Err(Misfit::Twice(&params[i])),
                None => {
                    let value = borrowed(value);
                    match key.to_str() {
                        Ok("out") if self.out => {
                            if !value.is_none() {
                                out = Some(value);
                            }
                        }
                        _ => return Err(Misfit::Unexpected(key)),
                    }
                }
            }
        }
        for (i, p) in params.iter().enumerate() {
            if varargs == Some(i) {
                values.push(self.convert_rest(py, p, i, &args[i..])?);
            } else if slots[i].is_null() {
                let left = || {
                    let slots = std::iter::zip(params, &slots).skip(i);
                    slots.filter(|(_, s)| s.is_null()).map(|(p, _)| p).collect()
                };
                values.push(default_of(p).ok_or_else(|| missing(left()))?);
            } else {
                values.push(self.convert(p, i, &borrowed(slots[i]))?);
            }
        }
        Ok(out)
    }

    /// A list written as separate arguments.
    fn convert_rest<'py>(
        &self,
        py: Python<'py>,
        p: &'static Param,
        i: usize,
        args: &[*mut ffi::PyObject],
    ) -> Result<Value, Misfit<'py>> {
        if let (Type::Ints(None), Some(ints)) = (p.ty, exact_ints(py, args)) {
            return Ok(Value::Ints(ints));
        }
        let list = args
            .iter()
            // SAFETY: arguments are borrowed from the caller for the whole call.
            .map(|&a| unsafe { Bound::from_borrowed_ptr(py, a) })
            .collect::<Vec<_>>();
        let tuple = PyTuple::new(py, &list).map_err(Misfit::Raised)?;
        match argument(p.ty, i, &tuple) {
            Ok(Some(v)) => Ok(v),
            Ok(None) => Err(match &list[..] {
                [only] => self.misfit(p, i, only),
                _ => self.misfit(p, i, &tuple),
            }),
            Err(e) => Err(Misfit::Raised(e)),
        }
    }

    /// Whether position `i` is a list of ints or tensors written as separate arguments.
    fn takes_rest(
        &self,
        py: Python<'_>,
        i: usize,
        places: usize,
        args: &[*mut ffi::PyObject],
    ) -> bool {
        let ty = self.op.schema.params[i].ty;
        if i + 1 == places && ty == Type::Tensors {
            // SAFETY: the interpreter keeps a call's arguments alive until it returns.
            let first = unsafe { Bound::from_borrowed_ptr(py, args[i]) };
            return first.cast::<PyTensor>().is_ok();
        }
        if i + 1 != places || !matches!(ty, Type::Ints(None)) {
            return i + 1 == places
                && args.len() > places
                && matches!(self.op.schema.params[i].ty, Type::Ints(Some(_)));
        }
        // SAFETY: the interpreter keeps a call's arguments alive until it returns.
        let obj = unsafe { Bound::from_borrowed_ptr(py, args[i]) };
        args.len() > places
            || !(obj.is_instance_of::<PyTuple>() || obj.is_instance_of::<pyo3::types::PyList>())
    }

    fn find(&self, key: &Bound<'_, PyString>) -> Option<usize> {
        if let Some(i) = self.names.iter().position(|n| n.as_ptr() == key.as_ptr()) {
            return Some(i);
        }
        let key = key.to_str().ok()?;
        let params = &self.op.schema.params;
        params
            .iter()
            .position(|p| p.name == key)
            .or_else(|| params.iter().position(|p| p.name == alias(key)))
    }

    #[inline(always)]
    fn convert<'py>(
        &self,
        p: &'static Param,
        i: usize,
        obj: &Bound<'py, PyAny>,
    ) -> Result<Value, Misfit<'py>> {
        if let (Type::Tensor | Type::Operand, Some(t)) = (p.ty, tensor(obj)) {
            return Ok(Value::Tensor(t));
        }
        self.convert_other(p, i, obj)
    }

    /// What is not a tensor that stands for itself.
    #[inline(never)]
    fn convert_other<'py>(
        &self,
        p: &'static Param,
        i: usize,
        obj: &Bound<'py, PyAny>,
    ) -> Result<Value, Misfit<'py>> {
        if p.nullable && obj.is_none() {
            return Ok(Value::None);
        }
        match argument(p.ty, i, obj) {
            Ok(Some(Value::Complex(..))) if self.op.entry.flags & flag::COMPLEX == 0 => {
                Err(self.misfit(p, i, obj))
            }
            // An integer beyond 64 bits with a sign.
            Ok(Some(Value::Tensor(t)))
                if p.ty == Type::Scalar
                    && p.nullable
                    && self.op.entry.flags & flag::COMPLEX == 0 =>
            {
                let value = t.item().py().map_err(Misfit::Raised)?;
                Err(Misfit::Raised(PyRuntimeError::new_err(format!(
                    "Overflow when unpacking long long: {value} does not fit 64 bits"
                ))))
            }
            Ok(Some(v)) => Ok(v),
            Ok(None) => Err(self.misfit(p, i, obj)),
            Err(e) => Err(Misfit::Raised(e)),
        }
    }
}

/// The value of a parameter that the caller left out, where it may be.
fn default_of(p: &'static Param) -> Option<Value> {
    match &p.default {
        Some(d) => Some(d.clone()),
        None => (p.nullable && p.keyword_only).then_some(Value::None),
    }
}

/// Parameters that the caller left out, of which some may not be.
#[cold]
fn missing(left_out: Vec<&'static Param>) -> Misfit<'static> {
    let needed = left_out.into_iter().filter(|p| default_of(p).is_none());
    Misfit::Missing(needed.collect())
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn bind_method(
    func: *mut ffi::PyObject,
    obj: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; the caller gets a reference of its own.
    unsafe {
        if obj.is_null() || obj == ffi::Py_None() {
            ffi::Py_INCREF(func);
            return func;
        }
        crate::libpython::PyMethod_New(func, obj)
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn bind_nothing(
    func: *mut ffi::PyObject,
    _object: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; the caller gets a reference of its own.
    unsafe {
        ffi::Py_INCREF(func);
        func
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; this is the function of a type whose objects are `Callable`s.
    unsafe {
        let py = Python::assume_attached();
        let name = &(*obj.cast::<Callable>()).function.name;
        PyString::new(py, &format!("<built-in method {name}>")).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_name(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, &(*obj.cast::<Callable>()).function.name).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_qualname(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, &(*obj.cast::<Callable>()).function.qualified).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_doc(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        let f = (*obj.cast::<Callable>()).function;
        PyString::new(
            py,
            &docs::of_operator(&f.qualified, f.module, &f.forms(), f.inplace),
        )
        .into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_signature(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        let forms = (*obj.cast::<Callable>()).function.forms();
        PyString::new(py, &signature::text_signature(&forms)).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn get_module(obj: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this attribute.
    unsafe {
        let py = Python::assume_attached();
        PyString::new(py, (*obj.cast::<Callable>()).function.module).into_ptr()
    }
}

// SAFETY: the interpreter calls this attached, with a `Callable`.
unsafe extern "C" fn reduce(obj: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held; only `Callable`s have this method.
    unsafe { get_qualname(obj, std::ptr::null_mut()) }
}

// SAFETY: the interpreter calls this attached, once, with a `Callable` nobody else holds.
unsafe extern "C" fn dealloc(obj: *mut ffi::PyObject) {
    // SAFETY: nobody else has the object; each object holds a reference to its type.
    unsafe {
        let ty = ffi::Py_TYPE(obj);
        if let Some(free) = (*ty).tp_free {
            free(obj.cast());
        }
        ffi::Py_DECREF(ty.cast());
    }
}

/// Makes a type of callables. Functions, as those of C, are the same as attributes of a class and of
/// its objects; methods are given the object. Nobody else makes objects of it: they would have no
/// function behind them.
fn make_type(py: Python<'_>, method: bool) -> PyResult<*mut ffi::PyTypeObject> {
    const READONLY: c_int = 1;
    let member = |name: &'static std::ffi::CStr, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: 19, // T_PYSSIZET
        offset: offset as ffi::Py_ssize_t,
        flags: READONLY,
        doc: std::ptr::null(),
    };
    let getter = |name: &'static std::ffi::CStr, get: ffi::getter| ffi::PyGetSetDef {
        name: name.as_ptr(),
        get: Some(get),
        set: None,
        doc: std::ptr::null(),
        closure: std::ptr::null_mut(),
    };
    // SAFETY: a table of zeros ends each list, as CPython asks.
    let members = Box::leak(Box::new([
        member(
            c"__vectorcalloffset__",
            std::mem::offset_of!(Callable, vectorcall),
        ),
        unsafe { std::mem::zeroed() },
    ]));
    // SAFETY: what is only zeros is the end of a list of getters.
    let getters = Box::leak(Box::new([
        getter(c"__name__", get_name),
        getter(c"__qualname__", get_qualname),
        getter(c"__doc__", get_doc),
        getter(c"__text_signature__", get_signature),
        getter(c"__module__", get_module),
        unsafe { std::mem::zeroed() },
    ]));
    // SAFETY: what is only zeros is the end of a list of methods.
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer {
                PyCFunction: reduce,
            },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: std::ptr::null(),
        },
        // SAFETY: an entry of zeros ends the list.
        unsafe { std::mem::zeroed() },
    ]));
    const METHOD_DESCRIPTOR: c_ulong = 1 << 17;
    const HAVE_VECTORCALL: c_ulong = 1 << 11;
    const DISALLOW_INSTANTIATION: c_ulong = 1 << 7;
    let bind: ffi::descrgetfunc = if method { bind_method } else { bind_nothing };
    let (name, descriptor) = match method {
        true => (c"pytensorlib._C.method_descriptor", METHOD_DESCRIPTOR),
        false => (c"pytensorlib._C.builtin", 0),
    };
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
        slot(ffi::Py_tp_descr_get, bind as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getters.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(0, std::ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr().cast::<c_char>(),
        basicsize: std::mem::size_of::<Callable>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | descriptor | HAVE_VECTORCALL | DISALLOW_INSTANTIATION)
            as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete and its tables live for ever.
    let ty = unsafe { ffi::PyType_FromSpec(&mut spec) };
    if ty.is_null() {
        return Err(PyErr::fetch(py));
    }
    Ok(ty.cast())
}

fn new_callable(
    py: Python<'_>,
    ty: *mut ffi::PyTypeObject,
    function: &'static Function,
) -> PyResult<Py<PyAny>> {
    // SAFETY: `ty` allocates objects of the size of `Callable`; its fields are set at once.
    unsafe {
        let alloc = (*ty).tp_alloc.expect("every type allocates");
        let obj = alloc(ty, 0);
        if obj.is_null() {
            return Err(PyErr::fetch(py));
        }
        let c = obj.cast::<Callable>();
        (&raw mut (*c).vectorcall).write(call);
        (&raw mut (*c).function).write(function);
        Ok(Bound::from_owned_ptr(py, obj).unbind())
    }
}

/// Names in one place (a module or the class) to their overloads.
type Names = BTreeMap<String, Vec<&'static Op>>;

fn collect(wanted: u32, suffix: &str) -> Names {
    let mut names = Names::new();
    for op in table() {
        if op.entry.flags & wanted == wanted {
            names
                .entry(format!("{}{suffix}", op.schema.name))
                .or_default()
                .push(op);
        }
    }
    names
}

/// The orders in which [`flag::SCALES`] also takes its arguments: the factor of `self` before it (a
/// method's after), the last factor after it, or not at all where there are two.
fn older(op: &Op, method: bool) -> Vec<Vec<usize>> {
    if op.entry.flags & flag::SCALES != flag::SCALES {
        return Vec::new();
    }
    let (factors, terms): (Vec<usize>, Vec<usize>) =
        (0..op.schema.params.len()).partition(|&i| op.schema.params[i].keyword_only);
    let order = |head: &[usize]| [head, &terms[1..]].concat();
    match (&factors[..], method) {
        (&[b, a], true) => vec![order(&[0, b, a]), order(&[0, b])],
        (&[b, a], false) => vec![order(&[b, 0, a]), order(&[b, 0])],
        (&[a], _) => vec![order(&[0, a])],
        _ => Vec::new(),
    }
}

/// Whether a list may be written as separate arguments: tensors where none is a list, too, integers
/// where nothing else comes by position but `self`.
fn written_out(op: &Op, method: bool) -> bool {
    let mut places = op.schema.params.iter().filter(|p| !p.keyword_only);
    let (count, last) = (places.clone().count(), places.next_back());
    last.is_some_and(|p| match p.ty {
        Type::Tensors => p.default.is_some(),
        Type::Ints(_) => count == 1 + method as usize,
        _ => false,
    })
}

fn functions(
    py: Python<'_>,
    names: Names,
    inplace: bool,
    module: &'static str,
    class: &str,
) -> Vec<&'static Function> {
    let overload = |op: &'static Op, order: Vec<usize>| Overload {
        places: match order.len() {
            0 => op.schema.params.iter().filter(|p| !p.keyword_only).count(),
            n => n,
        },
        rest: written_out(op, !class.is_empty()),
        renews: op.schema.name.ends_with('_') && !op.schema.name.ends_with("__"),
        op,
        names: op
            .schema
            .params
            .iter()
            .map(|p| PyString::intern(py, p.name).unbind())
            .collect(),
        method: !class.is_empty(),
        out: op.entry.flags & flag::OUT != 0 && !inplace,
        order,
    };
    let also = |op: &&'static Op| op.entry.flags & flag::ALSO == flag::ALSO;
    names
        .into_iter()
        .map(|(name, ops)| (name, ops.into_iter().partition::<Vec<_>, _>(also)))
        .filter(|(_, (_, ops))| !ops.is_empty())
        .map(|(name, (sparse, ops))| {
            let signatures = ops.len();
            let older = ops.iter().flat_map(|&op| {
                older(op, !class.is_empty())
                    .into_iter()
                    .map(move |o| (op, o))
            });
            let overloads = ops
                .iter()
                .map(|&op| (op, Vec::new()))
                .chain(older)
                .map(|(op, order)| overload(op, order))
                .collect();
            &*Box::leak(Box::new(Function {
                qualified: format!("{class}{name}"),
                operator: name.starts_with("__") && name.ends_with("__"),
                module,
                name,
                overloads,
                sparse: sparse
                    .into_iter()
                    .map(|op| overload(op, Vec::new()))
                    .collect(),
                signatures,
                inplace,
            }))
        })
        .collect()
}

/// A row of [`_schemas`]: signature, place, whether it is a method, has `x_` and `out=`, text.
type Row = (&'static str, &'static str, bool, bool, bool, &'static str);

/// Every op at every place where it is found; `Tensor` names methods that are no functions.
#[pyfunction]
fn _schemas() -> Vec<Row> {
    const PLACES: [(u32, &str); 5] = [
        (flag::FN, "torch"),
        (flag::NN, "nn"),
        (flag::LINALG, "linalg"),
        (flag::SPECIAL, "special"),
        (flag::FFT, "fft"),
    ];
    let mut rows = Vec::new();
    for op in table() {
        let f = op.entry.flags;
        let has = |bit| f & bit != 0;
        if f & flag::ALSO == flag::ALSO {
            continue;
        }
        let mut places: Vec<&str> = PLACES.iter().filter(|p| has(p.0)).map(|p| p.1).collect();
        if places.is_empty() {
            places.push("Tensor");
        }
        for place in places {
            rows.push((
                op.entry.schema,
                place,
                has(flag::METHOD),
                has(flag::INPLACE),
                has(flag::OUT),
                op.entry.doc.trim(),
            ));
        }
    }
    rows
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let types = [make_type(py, false)?, make_type(py, true)?];
    for (class, ty) in CLASSES.iter().zip(types) {
        class.store(ty, Ordering::Relaxed);
    }
    each::register(m)?;
    let class = py.get_type::<PyTensor>();
    const ROOT: &str = "pytensorlib";
    let add = |target: &Bound<'_, PyAny>, functions: Vec<&'static Function>| -> PyResult<()> {
        let ty = types[target.is(&class) as usize];
        for f in functions {
            target.setattr(f.name.as_str(), new_callable(py, ty, f)?)?;
        }
        Ok(())
    };
    let of = |target: &Bound<'_, PyAny>, bit: u32, module, class: &str| -> PyResult<()> {
        let inplace = collect(bit | flag::INPLACE, "_");
        add(target, functions(py, inplace, true, module, class))
    };
    add(
        m.as_any(),
        functions(py, collect(flag::FN, ""), false, ROOT, ""),
    )?;
    of(m.as_any(), flag::FN, ROOT, "")?;
    let methods = functions(py, collect(flag::METHOD, ""), false, ROOT, "Tensor.");
    let named = methods.iter().map(|f| (f.name.as_str(), *f)).collect();
    let _ = METHODS.set(named);
    add(class.as_any(), methods)?;
    of(class.as_any(), flag::METHOD, ROOT, "Tensor.")?;
    for (bit, module) in [
        (flag::NN, "pytensorlib._C._nn"),
        (flag::LINALG, "pytensorlib._C._linalg"),
        (flag::SPECIAL, "pytensorlib._C._special"),
        (flag::FFT, "pytensorlib._C._fft"),
    ] {
        let sub = PyModule::new(py, &module["pytensorlib._C.".len()..])?;
        add(
            sub.as_any(),
            functions(py, collect(bit, ""), false, module, ""),
        )?;
        of(sub.as_any(), bit, module, "")?;
        m.add_submodule(&sub)?;
        let modules: Bound<'_, PyDict> = py.import("sys")?.getattr("modules")?.cast_into()?;
        modules.set_item(module, &sub)?;
    }
    m.add_function(wrap_pyfunction!(_schemas, m)?)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let public: Vec<String> = m
        .dir()?
        .iter()
        .map(|n| n.extract::<String>())
        .collect::<PyResult<Vec<_>>>()?
        .into_iter()
        .filter(|n| !n.starts_with('_'))
        .collect();
    m.setattr("__all__", public)?;
    Ok(())
}

//! The op table as Python callables. One type serves functions and methods: it reads arguments by
//! the parsed signature, so there is no code per op.

mod callable;
mod each;
mod misfit;
mod overload;
mod table;

use crate::cell::PyTensor;
use crate::convert::{named_result, result};
use crate::dispatch;
use crate::error::IntoPy;
use crate::object::class;
use crate::overrides;
use crate::signature::Form;
use callable::{make_type, new_callable, Keywords};
use misfit::Misfit;
use overload::Overload;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pytensorlib_core::schema::{flag, Dest, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;
use table::{collect, functions};

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

type Values = SmallVec<[Value; 6]>;

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
        function = class(py).getattr(asked)?;
    }
    overrides::answer(&function, &args, kwargs.as_ref(), overrides::Call::Operator)
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    let types = [make_type(py, false)?, make_type(py, true)?];
    for (class, ty) in CLASSES.iter().zip(types) {
        class.store(ty, Ordering::Relaxed);
    }
    each::register(m)?;
    let class = class(py);
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
    m.add_function(wrap_pyfunction!(table::_schemas, m)?)?;
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

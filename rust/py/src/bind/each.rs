//! One function at every place of lists, without Python in between (`_foreach_*`).

use super::callable::{Callable, Keywords};
use super::overload::Overload;
use super::{Function, Values};
use crate::convert::{peek, result};
use crate::dispatch;
use crate::error::{caught, IntoPy};
use crate::overrides;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pytensorlib_core::dtype::Scalar;
use pytensorlib_core::schema::Dest;
use smallvec::SmallVec;

/// An argument: a list, or what stands for a list of it.
enum Given<'py> {
    Each(Vec<Bound<'py, PyAny>>),
    Same(Bound<'py, PyAny>),
}

impl<'py> Given<'py> {
    fn of(object: Bound<'py, PyAny>) -> Given<'py> {
        if let Ok(list) = object.cast::<PyList>() {
            return Given::Each(list.iter().collect());
        }
        match object.cast::<PyTuple>() {
            Ok(list) => Given::Each(list.iter().collect()),
            Err(_) => Given::Same(object),
        }
    }

    fn at(&self, i: usize) -> *mut ffi::PyObject {
        match self {
            Given::Each(list) => list[i].as_ptr(),
            Given::Same(object) => object.as_ptr(),
        }
    }
}

/// The arguments at place `i`.
fn place(given: &[Given], i: usize) -> SmallVec<[*mut ffi::PyObject; 4]> {
    given.iter().map(|g| g.at(i)).collect()
}

impl Function {
    /// The overload for the arguments at the first place, and what it reads there.
    fn chosen(
        &'static self,
        py: Python<'_>,
        given: &[Given],
    ) -> Option<(&'static Overload, Values)> {
        let first = place(given, 0);
        self.overloads.iter().find_map(|overload| {
            let mut values = Values::new();
            let read = overload.read(py, &first, Keywords::NONE, &mut values);
            let plain = overload.order.is_empty() && !overload.rest;
            (matches!(read, Ok(None)) && plain).then_some((overload, values))
        })
    }

    /// Computes at every place, and gives the results unless they are written to the first list.
    fn each<'py>(
        &'static self,
        py: Python<'py>,
        given: &[Given<'py>],
        n: usize,
        writes: bool,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let mut results = Vec::with_capacity(if writes { 0 } else { n });
        let chosen = self.chosen(py, given);
        let dest = match self.inplace {
            true => Dest::InPlace,
            false => Dest::New,
        };
        for i in 0..n {
            let mut values = Values::new();
            // Arguments are read as those at the first place were.
            let alike = chosen.as_ref().and_then(|(overload, first)| {
                for (j, p) in overload.op.schema.params.iter().enumerate() {
                    values.push(match given.get(j) {
                        Some(Given::Each(list)) => overload.convert(p, j, &list[i]).ok()?,
                        _ => first[j].clone(),
                    });
                }
                (!overload.refuses(&values, None)).then_some(overload)
            });
            let Some(overload) = alike else {
                let y = self.call(py, std::ptr::null_mut(), &place(given, i), Keywords::NONE)?;
                results.extend((!writes).then_some(y));
                continue;
            };
            let op = overload.op;
            let y = op.entry.invoke(&op.schema, &mut values, &dest);
            let y = y.py_of(&self.name)?;
            if !writes {
                results.push(result(py, op, y)?);
            }
        }
        Ok(results)
    }
}

/// The function behind a callable of the extension.
fn function_of(callable: &Bound<'_, PyAny>) -> Option<&'static Function> {
    // SAFETY: objects of these classes are `Callable`s, whose functions live for ever.
    unsafe {
        let kind = ffi::Py_TYPE(callable.as_ptr());
        let own = super::CLASSES
            .iter()
            .any(|class| class.load(std::sync::atomic::Ordering::Relaxed) == kind);
        own.then(|| (*callable.as_ptr().cast::<Callable>()).function)
    }
}

/// Calls a function with the arguments at each place of lists, of which the first is one and the others
/// are as long; what is no list stands for one. Returns the results, or None where they are in the
/// first list; `NotImplemented` where each call must be Python's.
#[pyfunction]
fn _each<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    writes: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let found = function_of(function).filter(|_| !overrides::active() && !dispatch::active());
    let given: Vec<Given> = args.iter().map(Given::of).collect();
    let (Some(function), Some(Given::Each(first))) = (found, given.first()) else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let n = first.len();
    let short = |g: &Given| matches!(g, Given::Each(list) if list.len() != n);
    if n == 0 || given.iter().any(short) {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let results = caught(&function.name, || function.each(py, &given, n, writes))?;
    match writes {
        true => Ok(py.None().into_bound(py)),
        false => Ok(PyList::new(py, results)?.into_any()),
    }
}

/// Sets tensors to zero; `False` where that must be done one by one.
#[pyfunction]
fn _each_zero(tensors: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Given::Each(all) = Given::of(tensors.clone()) else {
        return Ok(false);
    };
    // SAFETY: only whether it is sparse is asked, and nothing of Python's runs meanwhile.
    let plain = |o: &Bound<'_, PyAny>| unsafe { peek(o).is_some_and(|t| !t.is_sparse()) };
    if overrides::active() || dispatch::active() || !all.iter().all(plain) {
        return Ok(false);
    }
    caught("zero_", || {
        for o in &all {
            if let Some(t) = crate::convert::tensor(o) {
                t.fill_(Scalar::Int(0), "ZeroBackward0").py_of("zero_")?;
            }
        }
        Ok(true)
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_each, m)?)?;
    m.add_function(wrap_pyfunction!(_each_zero, m)?)
}

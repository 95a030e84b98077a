//! The per-parameter loop of optimizers, without a Python frame for each.

use crate::convert::tensor;
use crate::object::wrap;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// The gradients of `params` and the entries `names` of their state, a list of each, for an op
/// over lists. `None` where one is missing, where types or devices differ or are not floating, or where
/// a gradient lies in its parameter's memory: such a group takes the general way.
#[pyfunction]
fn _fused_lists<'py>(
    params: &Bound<'py, PyAny>,
    state: &Bound<'py, PyDict>,
    names: &Bound<'py, PyTuple>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = params.py();
    let Ok(params) = params.cast::<PyList>() else {
        return Ok(None);
    };
    let mut lists: Vec<Vec<Bound<'py, PyAny>>> = Vec::with_capacity(1 + names.len());
    lists.resize_with(1 + names.len(), || Vec::with_capacity(params.len()));
    let mut kind = None;
    for p in params.iter() {
        let Some(t) = tensor(&p) else { return Ok(None) };
        let Some(g) = t.grad() else { return Ok(None) };
        let same = *kind.get_or_insert((t.dtype(), t.device())) == (t.dtype(), t.device());
        let other = g.dtype() != t.dtype() || g.is_sparse() || g.shares_storage(&t);
        if !same || !t.dtype().is_float() || other {
            return Ok(None);
        }
        lists[0].push(wrap(py, g)?.into_bound(py));
        if names.is_empty() {
            continue;
        }
        let Some(own) = state.get_item(&p)? else {
            return Ok(None);
        };
        let Ok(own) = own.cast_into::<PyDict>() else {
            return Ok(None);
        };
        for (list, name) in lists[1..].iter_mut().zip(names.iter_borrowed()) {
            match own.get_item(name)? {
                Some(entry) if crate::convert::is_tensor(&entry) => list.push(entry),
                _ => return Ok(None),
            }
        }
    }
    if lists[0].is_empty() {
        return Ok(None);
    }
    let lists = lists.into_iter().map(|l| PyList::new(py, l));
    PyTuple::new(py, lists.collect::<PyResult<Vec<_>>>()?).map(Some)
}

/// Sets `.grad` of every tensor in `params` to `None`.
#[pyfunction]
fn _drop_grads(params: &Bound<'_, PyAny>) -> PyResult<()> {
    for p in params.try_iter()? {
        if let Some(t) = tensor(&p?) {
            t.set_grad(None);
        }
    }
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_fused_lists, m)?)?;
    m.add_function(wrap_pyfunction!(_drop_grads, m)?)?;
    Ok(())
}

//! One signature of a function: whether a call's arguments fit it, and what they are.

use super::callable::Keywords;
use super::misfit::Misfit;
use super::Values;
use crate::cell::PyTensor;
use crate::convert::{argument, exact_ints, tensor};
use crate::error::IntoPy;
use crate::signature::Form;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pytensorlib_core::ops::Op;
use pytensorlib_core::schema::{flag, Param, Type, Value};
use smallvec::SmallVec;

pub(super) struct Overload {
    pub(super) op: &'static Op,
    /// Interned names of the parameters, compared by address first.
    pub(super) names: Vec<Py<PyString>>,
    pub(super) method: bool,
    pub(super) out: bool,
    /// How many parameters have a place.
    pub(super) places: usize,
    /// Whether the last of them is a list, which may be written as separate arguments.
    pub(super) rest: bool,
    /// Whether the result may take the place of `self` (`t_`).
    pub(super) renews: bool,
    /// The parameter at each place, in a form of old; empty where it is the signature's order.
    pub(super) order: Vec<usize>,
}

impl Overload {
    pub(super) fn form(&self) -> Form {
        Form {
            op: self.op,
            method: self.method,
            out: self.out && !self.method,
        }
    }

    /// Whether an argument is sparse, which the function does not take.
    #[inline]
    pub(super) fn refuses(&self, values: &[Value], out: Option<&Bound<'_, PyAny>>) -> bool {
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
    pub(super) fn fits_number(&self, given: usize) -> bool {
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
    pub(super) fn read<'py>(
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

    pub(super) fn find(&self, key: &Bound<'_, PyString>) -> Option<usize> {
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
    pub(super) fn convert<'py>(
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

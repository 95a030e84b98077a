//! Why an overload does not fit the arguments of a call. The next one may: words are made only where none does.

use crate::signature;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pytensorlib_core::schema::Param;

/// Why an overload does not fit.
pub(super) enum Misfit<'py> {
    /// A parameter, its place among those that the caller writes, and what it got.
    Type(&'static Param, usize, Bound<'py, PyAny>),
    TooMany {
        takes: usize,
        given: usize,
    },
    /// Given by place and by name.
    Twice(&'static Param),
    /// A name that no parameter has.
    Unexpected(Bound<'py, PyString>),
    Missing(&'static Param),
    /// What reading an argument raised.
    Raised(PyErr),
}

impl Misfit<'_> {
    pub fn raised(&self) -> Option<&PyErr> {
        match self {
            Misfit::Raised(e) => Some(e),
            _ => None,
        }
    }

    /// The reason in words.
    #[cold]
    pub fn text(&self, py: Python<'_>) -> String {
        match self {
            Misfit::Type(p, place, got) => signature::mismatch(p, *place, got),
            Misfit::TooMany { takes, given } => signature::too_many(*takes, *given),
            Misfit::Twice(p) => {
                let name = signature::public_name(p);
                format!("got multiple values for argument '{name}'")
            }
            Misfit::Unexpected(name) => format!("got an unexpected keyword argument '{name}'"),
            Misfit::Missing(p) => {
                let name = signature::public_name(p);
                format!("missing 1 required positional argument: '{name}'")
            }
            Misfit::Raised(e) => e.value(py).to_string(),
        }
    }
}

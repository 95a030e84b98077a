//! Why an overload does not fit the arguments of a call. The next one may: words are made only where none does.

use crate::signature;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pytensorlib_core::schema::Param;

/// The name of an argument's class.
pub(super) fn class_name(obj: &Bound<'_, PyAny>) -> String {
    obj.get_type().name().map_or("?".into(), |n| n.to_string())
}

/// Functions that have several signatures in PyTorch, and fewer here: what does not fit one of them is
/// told of all. In order.
pub(super) const SEVERAL: &[&str] = &[
    "addmm",
    "all",
    "any",
    "baddbmm",
    "bernoulli_",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_min",
    "conv1d",
    "conv2d",
    "conv3d",
    "copysign",
    "eq",
    "fill",
    "float_power",
    "fmod",
    "ge",
    "gt",
    "histogram",
    "index_fill",
    "isin",
    "le",
    "lerp",
    "linalg_matrix_norm",
    "linalg_matrix_rank",
    "linalg_pinv",
    "linspace",
    "logspace",
    "lt",
    "masked_fill",
    "nanquantile",
    "narrow",
    "ne",
    "pow",
    "quantile",
    "randint_like",
    "remainder",
    "rsub",
    "scatter",
    "searchsorted",
    "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v",
    "special_chebyshev_polynomial_w",
    "special_hermite_polynomial_h",
    "special_hermite_polynomial_he",
    "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
    "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w",
    "special_xlog1py",
    "special_zeta",
    "std_mean",
    "tensor_split",
    "var_mean",
    "xlogy",
];

/// Why an overload does not fit.
pub(super) enum Misfit<'py> {
    /// A parameter, its place among those that the caller writes, and what it got.
    Type(&'static Param, usize, Bound<'py, PyAny>),
    TooMany {
        least: usize,
        takes: usize,
        given: usize,
    },
    /// Given by place and by name.
    Twice(&'static Param),
    /// A name that no parameter has.
    Unexpected(Bound<'py, PyString>),
    Missing(Vec<&'static Param>),
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

    /// Whether it is about the call and not about one argument: PyTorch then puts no colon before it.
    pub fn is_of_call(&self) -> bool {
        !matches!(self, Misfit::Type(..) | Misfit::Raised(_))
    }

    /// The reason in words.
    #[cold]
    pub fn text(&self, py: Python<'_>) -> String {
        match self {
            Misfit::Type(p, place, got) => signature::mismatch(p, *place, got),
            Misfit::TooMany {
                least,
                takes,
                given,
            } => signature::too_many(*least, *takes, *given),
            Misfit::Twice(p) => {
                let name = signature::public_name(p);
                format!("got multiple values for argument '{name}'")
            }
            Misfit::Unexpected(name) => format!("got an unexpected keyword argument '{name}'"),
            Misfit::Missing(all) => {
                let name = |p: &&'static Param| format!("\"{}\"", signature::public_name(p));
                let names: Vec<String> = all.iter().map(name).collect();
                format!(
                    "missing {} required positional argument{}: {}",
                    names.len(),
                    if names.len() == 1 { "s" } else { "" }, // as PyTorch has it
                    names.join(", ")
                )
            }
            Misfit::Raised(e) => e.value(py).to_string(),
        }
    }
}

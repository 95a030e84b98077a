//! Python's operators on tensors, filled straight into the slots of the class: PyO3's wrapper
//! costs 50 ns a call.

use crate::bind;
use crate::cell::PyTensor;
use crate::convert::{number, number_object, operand, peek};
use crate::dispatch;
use crate::error::guard;
use crate::error::IntoPy;
use crate::object::{type_slot, wrap};
use crate::operands::lift;
use crate::overrides;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat};
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::Scalar;
use pytensorlib_core::error::Result;
use pytensorlib_core::ops::pointwise::{apply, apply_fast, binary as op, compare};
use pytensorlib_core::tensor::Tensor;
use std::ffi::{c_int, c_void, CStr};

const ONE: Scalar = Scalar::Int(1);

/// A small call on tensors that stay borrowed from their objects: counting handles would cost as
/// much as the op. `None` where the call must go the usual way.
/// Where the op `commutes` a number comes second, as `next_functions` of the node shows.
// SAFETY: `f` runs nothing of Python's.
#[inline(always)]
// Without Python's lock they are handles.
#[allow(clippy::needless_borrow)]
unsafe fn fast_call(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    commutes: bool,
    f: impl FnOnce(&[&Tensor; 2]) -> Option<Result<Tensor>>,
) -> Option<Result<Tensor>> {
    // SAFETY: nothing of Python's runs in `f`, so nobody puts other tensors behind the objects.
    unsafe {
        match (peek(a), peek(b)) {
            (Some(x), Some(y)) => f(&[&x, &y]),
            (Some(x), None) => f(&[&x, &number(b)?]),
            (None, Some(y)) if commutes => f(&[&y, &number(a)?]),
            (None, Some(y)) => f(&[&number(a)?, &y]),
            (None, None) => None,
        }
    }
}

/// What the classes of the operands answer for an operator, where one does; `names` are those of
/// its methods for the left and for the right operand.
#[cold]
fn answered(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    names: [&str; 2],
) -> PyResult<Option<Py<PyAny>>> {
    match crate::convert::is_tensor(a) {
        true => answered_by(names[0], a, b),
        false => answered_by(names[1], b, a),
    }
}

/// As [`answered`], for the method `name` of the first operand.
#[cold]
fn answered_by(
    name: &str,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> PyResult<Option<Py<PyAny>>> {
    match overrides::method(a.py(), name, &[a, b]) {
        // The other operand is asked next, as where no class answers.
        Err(e) if e.is_instance_of::<PyTypeError>(a.py()) => Ok(Some(a.py().NotImplemented())),
        answer => answer,
    }
}

/// What becomes of operands that fit no operator: what is no tensor may stand for one.
#[cold]
fn unfit(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, names: [&str; 2]) -> PyResult<Py<PyAny>> {
    let answer = answered(a, b, names)?;
    Ok(answer.unwrap_or_else(|| a.py().NotImplemented()))
}

/// Operators that are one pointwise op.
macro_rules! pointwise_slots {
    ($($name:ident $public:literal $left:literal $right:literal $commutes:literal $op:expr;)*) => {
        // SAFETY: the interpreter calls these attached, with live objects.
        $(unsafe extern "C" fn $name(
            a: *mut ffi::PyObject,
            b: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
// SAFETY: the interpreter is held, and keeps the operands during the call.
unsafe {
            let py = Python::assume_attached();
            guard(py, $public, || {
                let a = Bound::from_borrowed_ptr(py, a);
                let b = Bound::from_borrowed_ptr(py, b);
                if overrides::active() {
                    if let Some(y) = answered(&a, &b, [$left, $right])? {
                        return Ok(y);
                    }
                }
                if let Some(y) = fast_call(&a, &b, $commutes, |x| apply_fast($op, x)) {
                    return wrap(py, y.py_of($public)?);
                }
                let (Some(x), Some(y)) = (operand(&a)?, operand(&b)?) else {
                    return unfit(&a, &b, [$left, $right]);
                };
                if x.is_sparse() || y.is_sparse() || dispatch::active() {
                    static METHOD: bind::Method = bind::Method::new($public);
                    return match $commutes && x.is_wrapped() && !y.is_wrapped() {
                        true => called(&METHOD, &b, &a),
                        false => called(&METHOD, &a, &b),
                    };
                }
                let x = match $commutes && x.is_wrapped() && !y.is_wrapped() {
                    true => [&y, &x],
                    false => [&x, &y],
                };
                wrap(py, apply($op, x).py_of($public)?)
            })
        }
})*
    };
}
pointwise_slots! {
    add "add" "__add__" "__radd__" true op::Add { alpha: ONE };
    subtract "sub" "__sub__" "__rsub__" false op::Sub { alpha: ONE };
    multiply "mul" "__mul__" "__rmul__" true op::Mul;
    divide "div" "__truediv__" "__rtruediv__" false op::Div;
}

/// Operators that are a method of either operand.
macro_rules! method_slots {
    ($($slot:ident $name:literal $left:literal $right:literal;)*) => {
        // SAFETY: the interpreter calls these attached, with live objects.
        $(unsafe extern "C" fn $slot(
            a: *mut ffi::PyObject,
            b: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
// SAFETY: the interpreter is held, and keeps the operands during the call.
unsafe {
            static METHOD: bind::Method = bind::Method::new($name);
            binary_method(&METHOD, a, b, [$left, $right])
        }
})*
    };
}
method_slots! {
    floor_divide "floor_divide" "__floordiv__" "__rfloordiv__";
    remainder "remainder" "__mod__" "__rmod__";
    and "bitwise_and" "__and__" "__rand__";
    or "bitwise_or" "__or__" "__ror__";
    xor "bitwise_xor" "__xor__" "__rxor__";
    shift_left "bitwise_left_shift" "__lshift__" "__rlshift__";
    shift_right "bitwise_right_shift" "__rshift__" "__rrshift__";
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe fn binary_method(
    method: &'static bind::Method,
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    names: [&str; 2],
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the operands during the call.
    unsafe {
        let py = Python::assume_attached();
        guard(py, method.name(), || {
            let a = Bound::from_borrowed_ptr(py, a);
            let b = Bound::from_borrowed_ptr(py, b);
            if overrides::active() {
                if let Some(y) = answered(&a, &b, names)? {
                    return Ok(y);
                }
            }
            match called(method, &a, &b)? {
                y if y.is(py.NotImplemented()) => unfit(&a, &b, names),
                y => Ok(y),
            }
        })
    }
}

/// The method of the first operand, or of what it stands for.
fn called(
    method: &'static bind::Method,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let (Some(a), Some(b)) = (lifted(a, true)?, lifted(b, false)?) else {
        return Ok(a.py().NotImplemented());
    };
    method.call(a.py(), &[a.as_ptr(), b.as_ptr()])
}

/// An operand as an argument: a tensor or a number as it is, an array as a tensor. A number that
/// must be a tensor becomes one.
fn lifted<'py>(o: &Bound<'py, PyAny>, tensor: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
    if crate::convert::is_tensor(o) || (!tensor && o.is_exact_instance_of::<PyFloat>()) {
        return Ok(Some(o.clone()));
    }
    match operand(o)? {
        None => Ok(None),
        Some(t) if tensor => Ok(Some(wrap(o.py(), t)?.into_bound(o.py()))),
        Some(_) => lift(o).map(Some),
    }
}

// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn matmul(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the operands during the call.
    unsafe {
        static METHOD: bind::Method = bind::Method::new("matmul");
        let py = Python::assume_attached();
        let names = ["__matmul__", "__rmatmul__"];
        let pair = [a, b].map(|o| Bound::from_borrowed_ptr(py, o));
        let fits =
            |o: &Bound<'_, PyAny>| crate::convert::is_tensor(o) || crate::numpy::is_ndarray(o);
        match pair.iter().all(fits) {
            true => binary_method(&METHOD, a, b, names),
            false => guard(py, "matmul", || unfit(&pair[0], &pair[1], names)),
        }
    }
}

macro_rules! compared {
    ($how:ident, $call:ident, $x:expr) => {
        match $how {
            ffi::Py_LT => $call(compare::Lt, $x),
            ffi::Py_LE => $call(compare::Le, $x),
            ffi::Py_EQ => $call(compare::Eq, $x),
            ffi::Py_NE => $call(compare::Ne, $x),
            ffi::Py_GT => $call(compare::Gt, $x),
            _ => $call(compare::Ge, $x),
        }
    };
}

/// The methods behind comparisons, in the order of the interpreter's numbers for them.
static COMPARED: [bind::Method; 6] = [
    bind::Method::new("lt"),
    bind::Method::new("le"),
    bind::Method::new("eq"),
    bind::Method::new("ne"),
    bind::Method::new("gt"),
    bind::Method::new("ge"),
];

// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn compare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    how: c_int,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the operands during the call.
    unsafe {
        let py = Python::assume_attached();
        let public = match how {
            ffi::Py_LT => "lt",
            ffi::Py_LE => "le",
            ffi::Py_EQ => "eq",
            ffi::Py_NE => "ne",
            ffi::Py_GT => "gt",
            _ => "ge",
        };
        guard(py, public, || {
            let a = Bound::from_borrowed_ptr(py, a);
            let b = Bound::from_borrowed_ptr(py, b);
            if overrides::active() {
                if let Some(y) = answered_by(&format!("__{public}__"), &a, &b)? {
                    return Ok(y);
                }
            }
            if let Some(y) = fast_call(&a, &b, false, |x| compared!(how, apply_fast, x)) {
                return wrap(py, y.py_of(public)?);
            }
            if dispatch::active() {
                return called(&COMPARED[how as usize], &a, &b);
            }
            let (Some(x), Some(y)) = (operand(&a)?, operand(&b)?) else {
                let answer = answered_by(&format!("__{public}__"), &a, &b)?;
                return Ok(answer.unwrap_or_else(|| py.NotImplemented()));
            };
            let y = compared!(how, apply, [&x, &y]);
            wrap(py, y.py_of(public)?)
        })
    }
}

/// What `help` says of `item`, after its signature.
const ITEM: &CStr = c"item($self)
--

The only element, as a Python number.

Returns
-------
bool, int, float or complex
    According to the dtype.

Raises
------
RuntimeError
    There are none or several elements.

Examples
--------
>>> import pytensorlib as torch
>>> torch.tensor([2.5]).item()
2.5";

// SAFETY: the interpreter calls this attached, with a live tensor.
unsafe extern "C" fn item(t: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps the tensor during the call.
    unsafe {
        let py = Python::assume_attached();
        guard(py, "item", || {
            let object = Bound::from_borrowed_ptr(py, t);
            let cell = object.cast_unchecked::<PyTensor>().get();
            // Nothing of Python's runs while it is borrowed.
            let t = cell.peek();
            if t.dtype().is_complex() && t.numel() == 1 {
                let (re, im) = cell.get().complex_item().py()?;
                return Ok(PyComplex::from_doubles(py, re, im).into_any().unbind());
            }
            if t.device() != Device::Cpu {
                return number_object(py, cell.get().item().py()?);
            }
            number_object(py, t.item().py()?)
        })
    }
}

/// `other / self`, by the name that PyTorch tells.
// SAFETY: the interpreter calls this attached, with live objects.
unsafe extern "C" fn divided(
    t: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter is held, and keeps both operands during the call.
    unsafe { divide(other, t) }
}

fn method(name: &'static CStr, call: ffi::PyCFunction, flags: c_int) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
        ml_flags: flags,
        ml_doc: std::ptr::null(),
    }
}

/// Slots and methods of the class that the functions above fill.
pub fn slots() -> Vec<ffi::PyType_Slot> {
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_doc: ITEM.as_ptr(),
            ..method(c"item", item, ffi::METH_NOARGS)
        },
        method(c"__rdiv__", divided, ffi::METH_O),
        // SAFETY: an entry of zeros ends the list.
        unsafe { std::mem::zeroed() },
    ]));
    vec![
        type_slot(ffi::Py_nb_add, add as *mut c_void),
        type_slot(ffi::Py_nb_subtract, subtract as *mut c_void),
        type_slot(ffi::Py_nb_multiply, multiply as *mut c_void),
        type_slot(ffi::Py_nb_true_divide, divide as *mut c_void),
        type_slot(ffi::Py_nb_floor_divide, floor_divide as *mut c_void),
        type_slot(ffi::Py_nb_remainder, remainder as *mut c_void),
        type_slot(ffi::Py_nb_and, and as *mut c_void),
        type_slot(ffi::Py_nb_or, or as *mut c_void),
        type_slot(ffi::Py_nb_xor, xor as *mut c_void),
        type_slot(ffi::Py_nb_lshift, shift_left as *mut c_void),
        type_slot(ffi::Py_nb_rshift, shift_right as *mut c_void),
        type_slot(ffi::Py_nb_matrix_multiply, matmul as *mut c_void),
        type_slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        type_slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
    ]
}

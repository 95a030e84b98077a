//! Python objects to arguments and results to Python objects.

use crate::cell::{Peeked, PyTensor};
use crate::dtype::{layout_object, PyDevice, PyLayout, PyMemoryFormat};
use crate::error::IntoPy;
use crate::generator::PyGenerator;
use crate::numpy::{is_ndarray, is_numpy_scalar};
use crate::object::wrap;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyComplex, PyComplexMethods, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType,
};
use pytensorlib_core::dtype::Scalar;
use pytensorlib_core::ops::Op;
use pytensorlib_core::schema::{flag, Type, Value};
use pytensorlib_core::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

static SIZE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `torch.Size` of some sizes.
pub fn size_tuple(py: Python<'_>, shape: &[usize]) -> PyResult<Py<PyAny>> {
    let size = SIZE
        .import(py, "pytensorlib._tensor.size", "Size")?
        .as_type_ptr();
    // SAFETY: `Size` is a subclass of tuple without fields of its own; every item is set once.
    unsafe {
        let alloc = (*size).tp_alloc.expect("a tuple type allocates");
        let tuple = alloc(size, shape.len() as ffi::Py_ssize_t);
        if tuple.is_null() {
            return Err(PyErr::fetch(py));
        }
        for (i, &n) in shape.iter().enumerate() {
            ffi::PyTuple_SET_ITEM(tuple, i as ffi::Py_ssize_t, ffi::PyLong_FromSize_t(n));
        }
        Ok(Bound::from_owned_ptr(py, tuple).unbind())
    }
}

/// A Python or NumPy number.
pub fn scalar(obj: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Some(i) = exact_int(obj.as_ptr()) {
        return Ok(Some(Scalar::Int(i)));
    }
    if let Ok(f) = obj.cast::<PyFloat>() {
        return Ok(Some(Scalar::Float(f.value())));
    }
    if let Ok(b) = obj.cast::<PyBool>() {
        return Ok(Some(Scalar::Bool(b.is_true())));
    }
    if obj.is_instance_of::<PyInt>() {
        return match obj.extract::<i64>() {
            Ok(i) => Ok(Some(Scalar::Int(i))),
            // Integers beyond 64 bits: as PyTorch's unpacking.
            Err(_) => Err(PyOverflowError::new_err(
                "int too big to convert: the number does not fit 64 bits",
            )),
        };
    }
    if is_numpy_scalar(obj) {
        return scalar(&obj.call_method0("item")?);
    }
    Ok(None)
}

/// A Python or NumPy number as a float: integers of any size that a float holds.
fn float(obj: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    match scalar(obj) {
        Err(_) if obj.is_instance_of::<PyInt>() => obj.extract().map(Some),
        number => Ok(number?.map(Scalar::f64)),
    }
}

/// What makes this thread ask the classes of tensors.
static LOOK: OnceLock<fn()> = OnceLock::new();
static TENSOR: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// The tensor behind an object, quickest for objects of the class itself.
#[inline]
pub fn tensor(obj: &Bound<'_, PyAny>) -> Option<Tensor> {
    // SAFETY: an object of exactly this class is a `PyTensor`.
    unsafe {
        if ffi::Py_TYPE(obj.as_ptr()) == TENSOR.load(Ordering::Relaxed) {
            return Some(obj.cast_unchecked::<PyTensor>().get().get());
        }
    }
    // SAFETY: `is_tensor` found an object of the class or of a subclass.
    let t = is_tensor(obj).then(|| unsafe { obj.cast_unchecked::<PyTensor>().get().get() })?;
    if t.answers() {
        LOOK.get().expect("set when the module was made")();
    }
    Some(t)
}

/// The tensor behind an object, borrowed; `None` also where its class answers for it, which goes the
/// usual way.
///
/// # Safety
/// Nothing of Python's runs while the reference lives, for it could put another tensor behind the
/// object.
#[inline]
pub unsafe fn peek<'a>(obj: &'a Bound<'_, PyAny>) -> Option<Peeked<'a>> {
    // SAFETY: the object is a tensor, and nothing of Python's runs while the reference lives.
    unsafe {
        let own = ffi::Py_TYPE(obj.as_ptr()) == TENSOR.load(Ordering::Relaxed);
        if !own && !is_tensor(obj) {
            return None;
        }
        let t = obj.cast_unchecked::<PyTensor>().get().peek();
        (own || !t.answers()).then_some(t)
    }
}

/// The Python number that a 0-d operand stands for.
pub fn scalar_object<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if t.dtype().is_complex() {
        let (re, im) = t.complex_item().py()?;
        return Ok(PyComplex::from_doubles(py, re, im).into_any());
    }
    Ok(match t.item().py()? {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any(),
        Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
        Scalar::UInt(u) => u.into_pyobject(py)?.into_any(),
        Scalar::Float(f) => f.into_pyobject(py)?.into_any(),
    })
}

/// A number that is exactly a `float` or an `int`, as a 0-d operand.
#[inline]
pub fn number(obj: &Bound<'_, PyAny>) -> Option<Tensor> {
    // SAFETY: the object is alive and the interpreter held.
    let value = match unsafe { ffi::PyFloat_CheckExact(obj.as_ptr()) } {
        0 => Scalar::Int(exact_int(obj.as_ptr())?),
        // SAFETY: the object is a `float`.
        _ => Scalar::Float(unsafe { ffi::PyFloat_AS_DOUBLE(obj.as_ptr()) }),
    };
    Tensor::number(value).ok()
}

/// Whether an object is a tensor.
#[inline]
pub fn is_tensor(obj: &Bound<'_, PyAny>) -> bool {
    // SAFETY: both are valid type objects.
    unsafe {
        let (class, own) = (TENSOR.load(Ordering::Relaxed), ffi::Py_TYPE(obj.as_ptr()));
        own == class || ffi::PyType_IsSubtype(own, class) != 0
    }
}

/// Notes the class of tensors for [`tensor`].
pub fn set_look(look: fn()) {
    let _ = LOOK.set(look);
}

pub fn set_tensor_class(class: *mut ffi::PyTypeObject) {
    TENSOR.store(class, Ordering::Relaxed);
}

/// A tensor, a number as a 0-d tensor, or a NumPy array as a tensor; `None` for anything else.
pub fn operand(obj: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if let Some(t) = tensor(obj) {
        return Ok(Some(t));
    }
    if let Some((re, im)) = complex(obj) {
        return Tensor::complex_number(re, im).py().map(Some);
    }
    match scalar(obj) {
        Ok(Some(s)) => return Ok(Some(Tensor::number(s).py()?)),
        Ok(None) => {}
        Err(e) => return beyond(obj).map_or(Err(e), |t| Ok(Some(t))),
    }
    if is_ndarray(obj) {
        return Ok(Some(crate::numpy::from_numpy_tensor(obj)?));
    }
    Ok(None)
}

/// An integer between 2^63 and 2^64 as a 0-d operand.
fn beyond(obj: &Bound<'_, PyAny>) -> Option<Tensor> {
    let value = obj.extract::<u64>().ok()?;
    Tensor::number(Scalar::unsigned(value)).ok()
}

/// The parts of a complex number of Python's or NumPy's.
pub fn complex(obj: &Bound<'_, PyAny>) -> Option<(f64, f64)> {
    if let Ok(z) = obj.cast::<PyComplex>() {
        return Some((z.real(), z.imag()));
    }
    // NumPy's complex128 is one of Python's; complex64 is not.
    if !is_numpy_scalar(obj) {
        return None;
    }
    let item = obj.call_method0("item").ok()?;
    let z = item.cast::<PyComplex>().ok()?;
    Some((z.real(), z.imag()))
}

/// An `int` of exactly that class within 64 bits.
#[inline]
fn exact_int(obj: *mut ffi::PyObject) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the caller's object is alive and the interpreter held; no `int` raises here.
    unsafe {
        if ffi::PyLong_CheckExact(obj) == 0 {
            return None;
        }
        let value = ffi::PyLong_AsLongLongAndOverflow(obj, &mut overflow);
        (overflow == 0).then_some(value)
    }
}

/// A list of plain ints; `None` where one is something else.
pub fn exact_ints(_: Python<'_>, items: &[*mut ffi::PyObject]) -> Option<SmallVec<[i64; 5]>> {
    items.iter().map(|&o| exact_int(o)).collect()
}

/// The items of a tuple, or of a list where no other thread can change it.
fn items<'a>(obj: &'a Bound<'_, PyAny>) -> Option<&'a [*mut ffi::PyObject]> {
    let p = obj.as_ptr();
    // SAFETY: both keep their items in an array, which stays while nothing runs Python code.
    unsafe {
        if ffi::PyTuple_CheckExact(p) != 0 {
            let first = (&raw const (*p.cast::<ffi::PyTupleObject>()).ob_item).cast();
            return Some(std::slice::from_raw_parts(
                first,
                ffi::PyTuple_GET_SIZE(p) as usize,
            ));
        }
        #[cfg(not(Py_GIL_DISABLED))]
        if ffi::PyList_CheckExact(p) != 0 && ffi::PyList_GET_SIZE(p) > 0 {
            let first = (*p.cast::<ffi::PyListObject>()).ob_item.cast_const();
            return Some(std::slice::from_raw_parts(
                first,
                ffi::PyList_GET_SIZE(p) as usize,
            ));
        }
    }
    None
}

fn int(obj: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if let Some(i) = exact_int(obj.as_ptr()) {
        return Ok(Some(i));
    }
    if obj.is_instance_of::<PyInt>() && !obj.is_instance_of::<PyBool>() {
        return obj.extract::<i64>().map(Some).map_err(|_| {
            PyValueError::new_err(
                "Overflow when unpacking long long: the integer does not fit 64 bits",
            )
        });
    }
    if let Ok(t) = obj.cast::<PyTensor>() {
        let t = t.get().get();
        if t.numel() == 1 && t.dtype().is_int() {
            return Ok(Some(t.item().py()?.i64_at_most()));
        }
        return Ok(None);
    }
    // NumPy's integers, its arrays without dimensions, and whatever else stands for an integer.
    // SAFETY: asks for the type's slots only.
    if unsafe { ffi::PyIndex_Check(obj.as_ptr()) } != 0 && !obj.is_instance_of::<PyBool>() {
        let number = || obj.call_method0("__index__")?.extract();
        return Ok(number().ok());
    }
    Ok(None)
}

/// What is wrong with an item, as an error of the list.
fn of_list(at: usize, error: &PyErr) -> PyErr {
    PyTypeError::new_err(format!(
        "failed to unpack the object at pos {} with error \"{error}\"",
        at + 1
    ))
}

fn sequence<'py>(obj: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(t) = obj.cast::<PyTuple>() {
        return Some(t.iter().collect());
    }
    obj.cast::<PyList>().ok().map(|l| l.iter().collect())
}

/// Reads an argument of a type; `None` where the object is not of it.
pub fn argument(ty: Type, place: usize, obj: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    Ok(match ty {
        Type::Tensor => tensor(obj).map(Value::Tensor),
        Type::Operand => operand(obj)?.map(Value::Tensor),
        Type::Scalar => match complex_or_real(obj)? {
            Some(v) => Some(v),
            None => match obj.cast::<PyTensor>() {
                Ok(t) if t.get().get().ndim() == 0 => Some(of_scalar(t.get().get().item().py()?)),
                _ => None,
            },
        },
        Type::Int => int(obj)?.map(Value::Int),
        Type::Float => match float(obj)? {
            Some(f) => Some(Value::Float(f)),
            None => match obj.cast::<PyTensor>() {
                Ok(t) if t.get().get().ndim() == 0 => {
                    Some(Value::Float(t.get().get().item().py()?.f64()))
                }
                _ => None,
            },
        },
        Type::Bool => match scalar(obj)? {
            Some(Scalar::Bool(b)) => Some(Value::Bool(b)),
            _ => None,
        },
        Type::Str => match obj.cast::<PyString>() {
            Ok(s) => Some(Value::Str(s.to_str()?.into())),
            Err(_) => None,
        },
        Type::DType => crate::dtype::parse(obj).map(Value::DType),
        Type::Device => PyDevice::read(obj)?.map(Value::Device),
        Type::Layout => obj
            .cast::<PyLayout>()
            .ok()
            .map(|l| Value::Layout(l.get().0)),
        Type::MemoryFormat => obj
            .cast::<PyMemoryFormat>()
            .ok()
            .map(|f| Value::MemoryFormat(f.get().0)),
        Type::Generator => obj
            .cast::<PyGenerator>()
            .ok()
            .map(|g| Value::Generator(g.get().0.clone())),
        Type::Ints(length) => {
            let plain = match items(obj) {
                Some(list) if list.len() > 1 || length.is_none() => exact_ints(obj.py(), list),
                _ => None,
            };
            if let Some(ints) = plain {
                Some(Value::Ints(ints))
            } else if let Some(items) = sequence(obj) {
                let mut out: SmallVec<[i64; 5]> = SmallVec::new();
                for (at, item) in items.iter().enumerate() {
                    match int(item).map_err(|e| of_list(at, &e))? {
                        Some(i) => out.push(i),
                        // The first item says what the list holds; behind it, a bool counts.
                        None if at > 0 && item.is_instance_of::<PyBool>() => {
                            out.push(item.is_truthy()? as i64);
                        }
                        None => return Ok(None),
                    }
                }
                if let (Some(n), 1) = (length, out.len()) {
                    out = SmallVec::from_elem(out[0], n.max(1));
                }
                Some(Value::Ints(out))
            } else {
                match (length, int(obj)?) {
                    (Some(n), Some(i)) => Some(Value::Ints(SmallVec::from_elem(i, n.max(1)))),
                    _ => None,
                }
            }
        }
        Type::Floats => match sequence(obj) {
            Some(items) => {
                let mut out = Vec::with_capacity(items.len());
                for item in &items {
                    match float(item)? {
                        Some(f) => out.push(f),
                        None => return Ok(None),
                    }
                }
                Some(Value::Floats(out))
            }
            None => None,
        },
        Type::Bools => match sequence(obj) {
            Some(items) => {
                let mut out = Vec::with_capacity(items.len());
                for item in &items {
                    match item.cast::<PyBool>() {
                        Ok(b) => out.push(b.is_true()),
                        Err(_) => return Ok(None),
                    }
                }
                Some(Value::Bools(out))
            }
            None => None,
        },
        Type::Tensors => match sequence(obj) {
            Some(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    match tensor(item) {
                        Some(t) => out.push(t),
                        None => {
                            return Err(PyTypeError::new_err(format!(
                                "expected Tensor as element {i} in argument {place}, but got {}",
                                item.get_type().name()?
                            )))
                        }
                    }
                }
                Some(Value::Tensors(out))
            }
            None => None,
        },
        Type::OptionalTensors => match sequence(obj) {
            Some(items) => {
                let mut out = Vec::with_capacity(items.len());
                for item in &items {
                    match item.cast::<PyTensor>() {
                        Ok(t) => out.push(Some(t.get().get())),
                        Err(_) if item.is_none() => out.push(None),
                        Err(_) => return Ok(None),
                    }
                }
                Some(Value::OptionalTensors(out))
            }
            None => None,
        },
    })
}

/// A number of Python's or NumPy's, or a complex tensor without dimensions.
fn complex_or_real(obj: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Some((re, im)) = complex(obj) {
        return Ok(Some(Value::Complex(re, im)));
    }
    match tensor(obj) {
        Some(t) if t.ndim() == 0 && t.dtype().is_complex() => {
            let (re, im) = t.complex_item().py()?;
            Ok(Some(Value::Complex(re, im)))
        }
        Some(_) => Ok(None),
        None => match scalar(obj) {
            Err(e) => beyond(obj).map_or(Err(e), |t| Ok(Some(Value::Tensor(t)))),
            number => Ok(number?.map(of_scalar)),
        },
    }
}

fn of_scalar(s: Scalar) -> Value {
    match s {
        Scalar::Bool(b) => Value::Bool(b),
        Scalar::Int(i) => Value::Int(i),
        Scalar::UInt(_) => match Tensor::number(s) {
            Ok(t) => Value::Tensor(t),
            Err(_) => Value::None,
        },
        Scalar::Float(f) => Value::Float(f),
    }
}

/// The class of an op's results, a named tuple; that of `linalg.qr` is `linalg_qr`.
fn class_of_results<'py>(py: Python<'py>, op: &'static Op) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let classes = CLASSES.get_or_init(py, || PyDict::new(py).unbind());
    let (classes, key) = (classes.bind(py), std::ptr::from_ref(op) as usize);
    if let Some(class) = classes.get_item(key)? {
        return Ok(class);
    }
    let names: Vec<_> = op.schema.returns.iter().flatten().copied().collect();
    let space = match op.entry.flags & flag::LINALG {
        0 => "",
        _ => "linalg_",
    };
    let class = format!("{space}{}", op.schema.name);
    let make = py.import("pytensorlib._ops.results")?.getattr("make")?;
    let class = make.call1((class, names))?;
    classes.set_item(key, &class)?;
    Ok(class)
}

/// Results as the named tuple of an op.
pub fn named_result(
    py: Python<'_>,
    op: &'static Op,
    results: Bound<'_, PyTuple>,
) -> PyResult<Py<PyAny>> {
    Ok(class_of_results(py, op)?.call1((results,))?.unbind())
}

/// A result. Several named results become a named tuple.
pub fn result(py: Python<'_>, op: &'static Op, value: Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::None => py.None(),
        Value::Tensor(t) => wrap(py, t)?,
        Value::Tensors(ts) | Value::Tuple(ts) => {
            let items = ts
                .into_iter()
                .map(|t| wrap(py, t))
                .collect::<PyResult<Vec<_>>>()?;
            let tuple = PyTuple::new(py, items)?;
            let returns = &op.schema.returns;
            if returns.len() > 1 && returns.iter().all(Option::is_some) {
                return named_result(py, op, tuple);
            }
            tuple.into_any().unbind()
        }
        Value::OptionalTensors(ts) => {
            let items = ts
                .into_iter()
                .map(|t| t.map_or_else(|| Ok(py.None()), |t| wrap(py, t)))
                .collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any().unbind()
        }
        Value::Bool(b) => PyBool::new(py, b).to_owned().into_any().unbind(),
        Value::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Value::Float(f) => f.into_pyobject(py)?.into_any().unbind(),
        Value::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any().unbind(),
        Value::Ints(v) => PyTuple::new(py, v.iter())?.into_any().unbind(),
        Value::Floats(v) => PyTuple::new(py, v.iter())?.into_any().unbind(),
        Value::Bools(v) => PyTuple::new(py, v.iter())?.into_any().unbind(),
        Value::Str(s) => PyString::new(py, &s).into_any().unbind(),
        Value::DType(d) => crate::dtype::dtype_object(py, d).clone_ref(py).into_any(),
        Value::Device(d) => Py::new(py, PyDevice::of(d))?.into_any(),
        Value::Layout(form) => layout_object(py, form).clone_ref(py).into_any(),
        Value::MemoryFormat(f) => Py::new(py, PyMemoryFormat(f))?.into_any(),
        Value::Generator(g) => Py::new(py, PyGenerator(g))?.into_any(),
    })
}

/// A Python number.
pub fn number_object(py: Python<'_>, s: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match s {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any().unbind(),
        Scalar::Int(i) => i.into_pyobject(py)?.into_any().unbind(),
        Scalar::UInt(u) => u.into_pyobject(py)?.into_any().unbind(),
        Scalar::Float(f) => f.into_pyobject(py)?.into_any().unbind(),
    })
}

//! `x[key]` and `x[key] = value`: Python's index notation in terms of views and index tensors.

use crate::cell::PyTensor;
use crate::convert::{argument, scalar};
use crate::error::IntoPy;
use crate::numpy::from_numpy_tensor;
use crate::numpy::{is_ndarray, is_numpy_scalar};
use crate::object::wrap;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyComplexMethods, PyEllipsis, PyFloat, PyInt, PyList, PySequence, PySlice,
    PyString, PyTuple,
};
use pytensorlib_core::batch::Batched;
use pytensorlib_core::dispatch;
use pytensorlib_core::dtype::{DType, Scalar};
use pytensorlib_core::ops::pointwise::types::{fits, held};
use pytensorlib_core::ops::shape::create::asked_of_one;
use pytensorlib_core::schema::{Type, Value};
use pytensorlib_core::tensor::Tensor;
use smallvec::SmallVec;

type Items<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// An index in bounds of a dimension: `x[i]`. Errors count dimensions as PyTorch's: by places in the key.
fn select(x: &Tensor, d: usize, i: i64, place: usize) -> PyResult<Tensor> {
    if x.ndim() == 0 {
        return Err(PyIndexError::new_err(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` \
             in C++ to convert a 0-dim tensor to a number",
        ));
    }
    let n = x.size(d) as i64;
    if i < -n || i >= n {
        return Err(PyIndexError::new_err(format!(
            "index {i} is out of bounds for dimension {place} with size {n}"
        )));
    }
    x.select(d as i64, i).py()
}

/// One bound of a slice: an integer, `None`, or what has `__index__`.
fn bound(obj: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if obj.is_none() {
        return Ok(None);
    }
    if let Ok(t) = obj.cast::<PyTensor>() {
        let t = t.get().get();
        if t.dtype().is_integral() && t.numel() == 1 {
            return Ok(Some(t.item().py()?.i64_at_most()));
        }
    }
    let clamp = |i: &Bound<'_, PyAny>| -> PyResult<i64> {
        match i.extract::<i64>() {
            Ok(i) => Ok(i),
            // Beyond 64 bits every bound means the end.
            Err(_) if i.lt(0)? => Ok(i64::MIN),
            Err(_) => Ok(i64::MAX),
        }
    };
    if obj.is_instance_of::<PyInt>() {
        return clamp(obj).map(Some);
    }
    if obj.hasattr("__index__")? {
        return clamp(&obj.call_method0("__index__")?).map(Some);
    }
    Err(PyTypeError::new_err(
        "slice indices must be integers or None or have an __index__ method",
    ))
}

fn slice(x: &Tensor, d: usize, s: &Bound<'_, PySlice>) -> PyResult<Tensor> {
    let get = |name: &str| bound(&s.getattr(name)?);
    // SAFETY: a slice object holds its three members while it lives.
    let plain = unsafe {
        let raw = s.as_ptr().cast::<ffi::PySliceObject>();
        let none = ffi::Py_None();
        (*raw).start == none && (*raw).stop == none && (*raw).step == none
    };
    if x.ndim() == 0 {
        return Err(PyIndexError::new_err(
            "slice() cannot be applied to a 0-dim tensor.",
        ));
    }
    if plain && x.is_sparse() {
        return Ok(x.clone());
    }
    let (start, stop, step) = match plain {
        true => (None, None, 1),
        false => (get("start")?, get("stop")?, get("step")?.unwrap_or(1)),
    };
    if step <= 0 {
        return Err(PyValueError::new_err("step must be greater than zero"));
    }
    x.slice_dim(d as i64, start, stop, step).py()
}

fn is_sequence(obj: &Bound<'_, PyAny>) -> bool {
    obj.cast::<PySequence>().is_ok() || is_ndarray(obj)
}

/// Whether a list stands for a tuple, as early NumPy had it: a short one that holds a sequence, a
/// slice, a tensor, `...` or `None`.
fn stands_for_tuple(list: &Bound<'_, PyList>) -> bool {
    list.len() < 32
        && list.iter().any(|o| {
            o.cast::<PyTensor>().is_ok()
                || is_sequence(&o)
                || o.is_instance_of::<PySlice>()
                || o.is_instance_of::<PyEllipsis>()
                || o.is_none()
        })
}

/// The parts of a key.
fn items<'py>(key: &Bound<'py, PyAny>) -> Items<'py> {
    if let Ok(t) = key.cast::<PyTuple>() {
        return t.iter().collect();
    }
    if let Ok(l) = key.cast::<PyList>() {
        if stands_for_tuple(l) {
            return l.iter().collect();
        }
    }
    Items::from_iter([key.clone()])
}

/// A list or array of numbers as an index tensor; `None` where it is neither.
fn as_index(obj: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if is_ndarray(obj) {
        let t = from_numpy_tensor(
            &obj.py()
                .import("numpy")?
                .call_method1("ascontiguousarray", (obj,))?,
        )?;
        let shape: Vec<usize> = obj.getattr("shape")?.extract()?;
        return t.reshape_to(&shape).py().map(Some);
    }
    if obj.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    if !is_sequence(obj) {
        return Ok(None);
    }
    crate::data::index(obj).map(Some)
}

/// A view of `x` with what slices, integers, `None` and `...` do to it, and the index tensors
/// that remain, by dimension.
fn apply(x: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<(Tensor, Vec<Option<Tensor>>)> {
    let items = items(key);
    let mut lists: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    let mut used = 0;
    for o in &items {
        let list = if o.is_instance_of::<PyInt>() || o.is_instance_of::<PySlice>() {
            None
        } else if let Ok(t) = o.cast::<PyTensor>() {
            Some(t.get().get())
        } else {
            as_index(o)?
        };
        used += match &list {
            Some(t) if matches!(t.dtype(), DType::Bool | DType::U8) => t.ndim(),
            Some(_) => 1,
            None if o.is_none() || o.is_instance_of::<PyEllipsis>() => 0,
            None if o.is_instance_of::<PyBool>() => 0,
            None => 1,
        };
        lists.push(list);
    }
    if used > x.ndim() {
        return Err(PyIndexError::new_err(format!(
            "too many indices for tensor of dimension {}",
            x.ndim()
        )));
    }
    if lists.iter().flatten().any(|t| t.dtype() == DType::U8) {
        let text = c"indexing with dtype torch.uint8 is now deprecated, please use a dtype \
            torch.bool instead.";
        let py = key.py();
        PyErr::warn(
            py,
            &py.get_type::<pyo3::exceptions::PyUserWarning>(),
            text,
            1,
        )?;
    }
    let mut y = x.clone();
    let mut d = 0;
    let mut tensors = Tensors::default();
    for (place, (o, list)) in items.iter().zip(lists).enumerate() {
        if let Some(t) = list {
            let integral = t.dtype().is_integral();
            let number = integral && !matches!(t.dtype(), DType::Bool | DType::U8);
            if number && t.ndim() == 0 && Batched::of(&t).is_some() {
                // Another number for each slice.
                tensors.put(d, t, 1);
                d += 1;
            } else if number && t.ndim() == 0 {
                y = at(&y, d, t.item().py()?.i64_at_most(), place)?;
            } else if t.ndim() == 0 && integral {
                y = y.unsqueeze(d as i64).py()?;
                tensors.put(d, truth(t.item().py()?.truth())?, 1);
                d += 1;
            } else {
                // A mask takes up as many dimensions as it has.
                let takes = match t.dtype() {
                    DType::Bool | DType::U8 => t.ndim(),
                    _ => 1,
                };
                tensors.put(d, t, takes);
                d += takes;
            }
        } else if let Ok(b) = o.cast::<PyBool>() {
            y = y.unsqueeze(d as i64).py()?;
            tensors.put(d, truth(b.is_true())?, 1);
            d += 1;
        } else if o.is_instance_of::<PyInt>() {
            y = at(&y, d, int(o)?, place)?;
        } else if let Ok(s) = o.cast::<PySlice>() {
            y = slice(&y, d, s)?;
            d += 1;
        } else if o.is_instance_of::<PyEllipsis>() {
            d += x.ndim() - used;
        } else if o.is_none() {
            y = y.unsqueeze(d as i64).py()?;
            d += 1;
        } else {
            match argument(Type::Int, 0, o)? {
                Some(Value::Int(i)) => y = at(&y, d, i, place)?,
                _ if o.hasattr("__index__")? => {
                    y = at(&y, d, int(&o.call_method0("__index__")?)?, place)?
                }
                _ => {
                    return Err(PyIndexError::new_err(format!(
                        "only integers, slices (`:`), ellipsis (`...`), None and long or byte \
                         Variables are valid indices (got {})",
                        o.get_type().name()?
                    )))
                }
            }
        }
    }
    Ok((y, tensors.list))
}

/// An index that has passed the count of dimensions.
fn at(y: &Tensor, d: usize, i: i64, place: usize) -> PyResult<Tensor> {
    if d >= y.ndim() && y.ndim() > 0 {
        return Err(PyIndexError::new_err(format!(
            "too many indices for tensor of dimension {}",
            y.ndim()
        )));
    }
    select(y, d, i, place)
}

fn int(o: &Bound<'_, PyAny>) -> PyResult<i64> {
    o.extract::<i64>().map_err(|_| {
        PyIndexError::new_err("index does not fit 64 bits: Overflow when unpacking long long")
    })
}

/// Index tensors by dimension; a mask stands once for all dimensions that it takes up.
#[derive(Default)]
struct Tensors {
    list: Vec<Option<Tensor>>,
    covered: usize,
}

impl Tensors {
    fn put(&mut self, d: usize, t: Tensor, takes: usize) {
        for _ in self.covered..d {
            self.list.push(None);
        }
        self.list.push(Some(t));
        self.covered = d + takes;
    }
}

/// The index tensor that `True` (all) or `False` (none) stands for in a dimension of size 1.
fn truth(on: bool) -> PyResult<Tensor> {
    let zeros: &[i64] = if on { &[0] } else { &[] };
    Tensor::from_slice(zeros, &[zeros.len()], DType::I64).py()
}

/// The result for keys that need no list of parts; `None` for the others.
fn simple(x: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
        return select(x, 0, int(key)?, 0).map(Some);
    }
    if let Ok(s) = key.cast::<PySlice>() {
        return slice(x, 0, s).map(Some);
    }
    if key.is_none() {
        return x.unsqueeze(0).py().map(Some);
    }
    if key.is_instance_of::<PyEllipsis>() {
        return x.alias_view().py().map(Some);
    }
    Ok(None)
}

/// `x[key]`.
pub fn get_item(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let answered = || crate::overrides::method(slf.py(), "__getitem__", &[slf.as_any(), key]);
    if crate::overrides::active() {
        if let Some(y) = answered()? {
            return Ok(y);
        }
    }
    // What is no index may stand for one.
    read(slf, key).or_else(|e| answered()?.ok_or(e))
}

fn read(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let x = slf.get().get();
    if x.answers() {
        crate::dispatch::look_here();
    }
    if let Some(y) = simple(&x, key)? {
        return wrap(slf.py(), y);
    }
    let (y, tensors) = apply(&x, key)?;
    let y = match tensors.is_empty() {
        true if y.same(&x) => x.alias_view(),
        true => Ok(y),
        false => y.index(&tensors),
    };
    wrap(slf.py(), y.py()?)
}

/// A number of Python's, or a NumPy one that is one of these or counts.
fn number(obj: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if let Ok(z) = obj.cast::<PyComplex>() {
        return Tensor::complex_number(z.real(), z.imag()).py().map(Some);
    }
    let of_python = obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyInt>();
    if !of_python && !is_numpy_scalar(obj) {
        return Ok(None);
    }
    let beyond = |_| {
        PyValueError::new_err("Overflow when unpacking long long: the number does not fit 64 bits")
    };
    match scalar(obj).map_err(beyond)? {
        Some(s) if of_python || matches!(s, Scalar::Int(_)) => Tensor::number(s).py().map(Some),
        _ => Ok(None),
    }
}

/// What is assigned: a tensor, or a number as one.
fn value(x: &Tensor, obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(t) = obj.cast::<PyTensor>() {
        return Ok(t.get().get());
    }
    if let Some(number) = number(obj)? {
        fits(&number, asked_of_one(x.dtype())).py()?;
        return held(&number, x.dtype()).py();
    }
    let class = obj.get_type();
    let module: String = class.getattr("__module__")?.extract()?;
    let name = class.name()?.to_string();
    let name = if module == "builtins" {
        name
    } else {
        format!("{module}.{name}")
    };
    Err(PyTypeError::new_err(format!(
        "can't assign a {name} to a torch.{}Tensor",
        x.dtype().scalar_name()
    )))
}

/// `to[...] = from`, with leading dimensions of size 1 dropped from `from` where it has too many.
fn assign(to: &Tensor, from: &Tensor) -> PyResult<()> {
    let from = trimmed(from, to.ndim())?;
    if from.shape() == to.shape() {
        return to.copy_from(&from).py();
    }
    to.copy_from(&from.expand_to(to.shape()).py()?).py()
}

fn trimmed(from: &Tensor, ndim: usize) -> PyResult<Tensor> {
    let extra = from.ndim().saturating_sub(ndim);
    let ones = from
        .shape()
        .iter()
        .take(extra)
        .take_while(|&&n| n == 1)
        .count();
    if ones == 0 {
        return Ok(from.clone());
    }
    from.reshape_to(&from.shape()[ones..]).py()
}

/// `x[key] = value`.
pub fn set_item(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    obj: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let answered = || {
        let args = [slf.as_any(), key, obj];
        crate::overrides::method(slf.py(), "__setitem__", &args).map(|y| y.map(drop))
    };
    if crate::overrides::active() && answered()?.is_some() {
        return Ok(());
    }
    write(slf, key, obj).or_else(|e| answered()?.ok_or(e))
}

fn write(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    obj: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let x = slf.get().get();
    if x.answers() {
        crate::dispatch::look_here();
    }
    if x.is_sparse() {
        return Err(PyTypeError::new_err(
            "Cannot assign to a sparse tensor; make another of its indices() and values()",
        ));
    }
    let from = value(&x, obj)?;
    if let Some(y) = simple(&x, key)? {
        return assign(&y, &from);
    }
    let (y, tensors) = apply(&x, key)?;
    if tensors.is_empty() {
        return assign(&y, &from);
    }
    // A number takes the type of the tensor.
    let from = match from.is_wrapped() && from.dtype() != y.dtype() {
        true => from.to_dtype(y.dtype()).py()?,
        false => from,
    };
    let from = trimmed(&from, from_dims(&y, &tensors))?;
    // As `index_put_`: what is read must not lie where it writes; a mask is read before.
    let positions = tensors
        .iter()
        .flatten()
        .filter(|t| t.dtype() != DType::Bool);
    for t in positions.chain([&from]).filter(|t| t.ndim() > 0) {
        dispatch::check_apart(t, &y).py()?;
    }
    y.index_put_(&tensors, &from, false).py()
}

/// The number of dimensions that indexing gives.
fn from_dims(y: &Tensor, tensors: &[Option<Tensor>]) -> usize {
    let mut lost = 0;
    let mut gained = 0;
    for t in tensors.iter().flatten() {
        match t.dtype() {
            DType::Bool | DType::U8 => {
                lost += t.ndim();
                gained = gained.max(1);
            }
            _ => {
                lost += 1;
                gained = gained.max(t.ndim());
            }
        }
    }
    y.ndim().saturating_sub(lost) + gained
}

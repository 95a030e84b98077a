//! The numbers in nested sequences, in one pass, and the shape and type that they suggest.

use crate::cell::PyTensor;
use crate::error::IntoPy;
use crate::numpy::{from_numpy_tensor, is_ndarray};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyComplexMethods, PyFloat, PyInt, PyList, PySequence,
    PyString, PyTuple,
};
use pytensorlib_core::alloc;
use pytensorlib_core::cpu::elements::{Bool, Element};
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::{default_dtype, DType};
use pytensorlib_core::tensor::Tensor;
use std::sync::atomic::{AtomicBool, Ordering};

/// A number as it was found.
#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Int(i64),
    /// An integer beyond those of i64.
    UInt(u64),
    Float(f64),
    Complex(f64, f64),
}

/// What a walk over nested sequences finds.
pub(super) struct Walk {
    shape: Vec<usize>,
    /// The type asked for, if any: integers beyond 64 bits are right for floating types.
    wanted: Option<DType>,
    pub(super) found: Option<DType>,
    numbers: Vec<Number>,
}

/// Deeper nesting than any tensor has is a list that holds itself.
const DEEPEST: usize = 64;

pub(super) fn warn(py: Python<'_>, text: &'static std::ffi::CStr) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)
}

pub(super) fn class(obj: &Bound<'_, PyAny>) -> String {
    obj.get_type().name().map_or("?".into(), |n| n.to_string())
}

/// The items of a list or tuple, or of anything else that Python takes for a sequence.
fn items<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if let Ok(list) = obj.cast::<PyList>() {
        let mut items = alloc::list(list.len()).py()?;
        items.extend(list.iter());
        return Ok(Some(items));
    }
    if let Ok(tuple) = obj.cast::<PyTuple>() {
        let mut items = alloc::list(tuple.len()).py()?;
        items.extend(tuple.iter());
        return Ok(Some(items));
    }
    if obj.is_instance_of::<PyTensor>()
        || obj.is_instance_of::<PyString>()
        || obj.is_instance_of::<PyBytes>()
        || obj.is_instance_of::<pyo3::types::PyDict>()
    {
        return Ok(None);
    }
    // SAFETY: asks for the type's slots only.
    if unsafe { ffi::PySequence_Check(obj.as_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: the object was found to be a sequence.
    let sequence = unsafe { obj.cast_unchecked::<PySequence>() };
    let n = sequence.len()?;
    (0..n)
        .map(|i| sequence.get_item(i))
        .collect::<PyResult<Vec<_>>>()
        .map(Some)
}

impl Walk {
    fn note(&mut self, dtype: DType) {
        self.found = Some(match self.found {
            Some(d) if d == dtype => return,
            Some(d) => d.promote(dtype),
            None => dtype,
        });
    }

    /// A scalar of Python or NumPy, or a tensor of one element; `false` for anything else.
    #[inline]
    fn scalar(&mut self, obj: &Bound<'_, PyAny>) -> PyResult<bool> {
        // SAFETY: exact types are compared, whose values are read through CPython's own functions.
        unsafe {
            let ty = ffi::Py_TYPE(obj.as_ptr());
            if ty == &raw mut ffi::PyFloat_Type {
                self.note(default_dtype());
                self.numbers
                    .push(Number::Float(ffi::PyFloat_AS_DOUBLE(obj.as_ptr())));
                return Ok(true);
            }
            if ty == &raw mut ffi::PyLong_Type {
                let mut overflow = 0;
                let v = ffi::PyLong_AsLongLongAndOverflow(obj.as_ptr(), &mut overflow);
                if overflow == 0 {
                    self.note(DType::I64);
                    self.numbers.push(Number::Int(v));
                    return Ok(true);
                }
            }
        }
        if let Ok(b) = obj.cast::<PyBool>() {
            self.note(DType::Bool);
            self.numbers.push(Number::Bool(b.is_true()));
            return Ok(true);
        }
        if let Some((_, dtype)) = numpy_scalar(obj)? {
            self.note(dtype);
            let value = obj.call_method0("item")?;
            self.numbers.push(match dtype {
                DType::Bool => Number::Bool(value.extract()?),
                d if d.is_float() => Number::Float(value.extract()?),
                d if d.is_complex() => complex(&value)?,
                _ => integer(&value)?,
            });
            return Ok(true);
        }
        if let Ok(f) = obj.cast::<PyFloat>() {
            self.note(default_dtype());
            self.numbers.push(Number::Float(f.value()));
            return Ok(true);
        }
        if obj.is_instance_of::<PyInt>() {
            match obj.extract::<i64>() {
                Ok(v) => self.numbers.push(Number::Int(v)),
                Err(_) if self.wanted == Some(DType::U64) => {
                    let beyond = |_| PyOverflowError::new_err("int too big to convert");
                    self.numbers.push(integer(obj).map_err(beyond)?);
                }
                Err(_) if self.wanted == Some(DType::Bool) => {
                    self.numbers.push(Number::Bool(true));
                }
                Err(_) if self.wanted.is_some_and(|d| !d.is_integral()) => {
                    self.numbers.push(Number::Float(obj.extract()?));
                }
                Err(_) => return Err(PyValueError::new_err("Overflow when unpacking long long")),
            }
            self.note(DType::I64);
            return Ok(true);
        }
        if is_ndarray(obj) && obj.getattr("ndim")?.extract::<usize>()? == 0 {
            let t = from_numpy_tensor(obj)?;
            self.note(t.dtype());
            self.take(&t)?;
            return Ok(true);
        }
        if let Ok(t) = obj.cast::<PyTensor>() {
            let t = t.get().get();
            if t.numel() != 1 {
                return Err(PyValueError::new_err(
                    "only one element tensors can be converted to Python scalars",
                ));
            }
            if t.requires_grad() {
                warn(
                    obj.py(),
                    c"Converting a tensor with requires_grad=True to a scalar may lead to \
                      unexpected behavior.\nConsider using tensor.detach() first.",
                )?;
            }
            self.note(t.dtype());
            self.take(&t)?;
            return Ok(true);
        }
        if obj.is_instance_of::<PyComplex>() {
            self.note(default_dtype().complex());
            self.numbers.push(complex(obj)?);
            return Ok(true);
        }
        Ok(false)
    }

    /// The elements of a tensor, in order.
    fn take(&mut self, t: &Tensor) -> PyResult<()> {
        let dtype = t.dtype();
        let host = t.to_host().py()?;
        if dtype.is_complex() {
            let parts = [0, 1].map(|k| host.component(k).prepared(DType::F64));
            let [re, im] = parts;
            let (re, im) = (re.py()?, im.py()?);
            // SAFETY: prepared contiguous float64 memory, read only.
            let pairs = unsafe { re.slice::<f64>().iter().zip(im.slice::<f64>()) };
            self.numbers
                .extend(pairs.map(|(&a, &b)| Number::Complex(a, b)));
            return Ok(());
        }
        let wide = match dtype {
            DType::U64 => dtype,
            d if d.is_float() => DType::F64,
            _ => DType::I64,
        };
        let wide = host.prepared(wide).py()?;
        // SAFETY: prepared contiguous host memory of these types, read only.
        unsafe {
            match dtype {
                DType::Bool => {
                    let bits = wide.slice::<i64>().iter().map(|&v| Number::Bool(v != 0));
                    self.numbers.extend(bits);
                }
                DType::U64 => {
                    let all = wide.slice::<u64>().iter();
                    self.numbers.extend(all.map(|&v| unsigned(v)));
                }
                d if d.is_float() => {
                    self.numbers
                        .extend(wide.slice::<f64>().iter().map(|&v| Number::Float(v)));
                }
                _ => self
                    .numbers
                    .extend(wide.slice::<i64>().iter().map(|&v| Number::Int(v))),
            }
        }
        Ok(())
    }

    /// The shape, from the first item at each depth.
    fn measure(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut at = data.clone();
        loop {
            if is_ndarray(&at) {
                let sizes: Vec<usize> = at.getattr("shape")?.extract()?;
                self.shape.extend(sizes);
                return Ok(());
            }
            let first = if let Ok(list) = at.cast::<PyList>() {
                self.shape.push(list.len());
                (!list.is_empty()).then(|| list.get_item(0)).transpose()?
            } else {
                let Some(items) = items(&at)? else {
                    return Ok(());
                };
                self.shape.push(items.len());
                items.into_iter().next()
            };
            if self.shape.len() > DEEPEST {
                return Err(PyValueError::new_err(format!(
                    "too many dimensions '{}': data is nested deeper than {DEEPEST} levels",
                    class(data)
                )));
            }
            match first {
                Some(first) => at = first,
                None => return Ok(()),
            }
        }
    }

    fn ragged(&self, d: usize, got: usize) -> PyErr {
        PyValueError::new_err(format!(
            "expected sequence of length {} at dim {d} (got {got})",
            self.shape[d]
        ))
    }

    /// Why an object cannot be an element.
    fn misfit(&self, obj: &Bound<'_, PyAny>) -> PyResult<PyErr> {
        let name = class(obj);
        let text = obj.is_instance_of::<PyString>();
        // A string is a list of strings; as the first item it would be one without end.
        if text && self.numbers.is_empty() {
            return Ok(PyValueError::new_err("too many dimensions 'str'"));
        }
        if self.wanted.is_none() && (text || obj.is_instance_of::<PyBytes>()) {
            let told = format!("new(): invalid data type '{name}'");
            return Ok(PyTypeError::new_err(told));
        }
        if self.wanted.is_none() && items(obj)?.is_none() {
            let told = format!("Could not infer dtype of {name}");
            return Ok(PyRuntimeError::new_err(told));
        }
        Ok(PyTypeError::new_err(match self.wanted.or(self.found) {
            Some(d) if d.differentiable() => format!("must be real number, not {name}"),
            _ => format!("'{name}' object cannot be interpreted as an integer"),
        }))
    }

    fn walk(&mut self, obj: &Bound<'_, PyAny>, d: usize) -> PyResult<()> {
        if d == self.shape.len() {
            if self.scalar(obj)? {
                return Ok(());
            }
            return Err(self.misfit(obj)?);
        }
        if is_ndarray(obj) {
            let sizes: Vec<usize> = obj.getattr("shape")?.extract()?;
            for (i, &n) in sizes.iter().enumerate() {
                match self.shape.get(d + i) {
                    Some(&want) if want == n => {}
                    Some(_) => return Err(self.ragged(d + i, n)),
                    None => break,
                }
            }
            if sizes.len() != self.shape.len() - d {
                return Err(PyTypeError::new_err("not a sequence"));
            }
            let t = from_numpy_tensor(obj)?;
            self.note(t.dtype());
            return self.take(&t);
        }
        if let Ok(list) = obj.cast::<PyList>() {
            if list.len() != self.shape[d] {
                return Err(self.ragged(d, list.len()));
            }
            if d + 1 == self.shape.len() {
                // By half at least, so that many short rows are not copied each time.
                let numbers = &mut self.numbers;
                if numbers.capacity() - numbers.len() < list.len() {
                    alloc::grow(numbers, list.len().max(numbers.len() / 2)).py()?;
                }
            }
            let mut i = 0;
            // The list may change under us while an item's own code runs.
            while i < list.len() {
                let item = list.get_item(i)?;
                self.walk(&item, d + 1)?;
                i += 1;
            }
            if i != self.shape[d] {
                return Err(self.ragged(d, i));
            }
            return Ok(());
        }
        let Some(items) = items(obj)? else {
            return Err(PyTypeError::new_err("not a sequence"));
        };
        if items.len() != self.shape[d] {
            return Err(self.ragged(d, items.len()));
        }
        items.iter().try_for_each(|item| self.walk(item, d + 1))
    }

    /// The numbers as elements of a type.
    fn fill<T: Element>(&self, y: &Tensor, dtype: DType) -> PyResult<()> {
        // Negative numbers wrap in unsigned types, as far as they have a positive counterpart.
        let (low, high) = match dtype {
            DType::U8 => (-255, 255),
            DType::I8 => (i8::MIN as i64, i8::MAX as i64),
            DType::I16 => (i16::MIN as i64, i16::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            DType::U16 => (-65535, 65535),
            DType::U32 => (-(u32::MAX as i64), u32::MAX as i64),
            DType::U64 => (0, i64::MAX),
            _ => (i64::MIN, i64::MAX),
        };
        let overflow = |v: &dyn std::fmt::Display| {
            PyRuntimeError::new_err(format!(
                "value cannot be converted to type {dtype} without overflow: {v}"
            ))
        };
        // SAFETY: a fresh contiguous tensor of this type and of as many elements as numbers.
        let out = unsafe { y.slice_mut::<T>() };
        for (o, n) in out.iter_mut().zip(&self.numbers) {
            *o = match *n {
                Number::Float(v) => {
                    if dtype.is_int() {
                        let high = match dtype {
                            // The next below 2^64.
                            DType::U64 => 18_446_744_073_709_549_568.0,
                            _ => high as f64,
                        };
                        let low = if dtype.is_signed() { low } else { 0 };
                        let inside = v >= low as f64
                            && v <= high
                            && (dtype != DType::I64 || v < 9_223_372_036_854_775_808.0);
                        if !inside {
                            return Err(overflow(&v));
                        }
                    }
                    T::of_f64(v)
                }
                Number::Int(v) => {
                    if dtype.is_int() && (v < low || v > high) {
                        return Err(overflow(&v));
                    }
                    if dtype == DType::F64 {
                        T::of_f64(v as f64)
                    } else {
                        T::of_i64(v)
                    }
                }
                Number::UInt(u) if dtype.is_int() && dtype != DType::U64 => {
                    return Err(overflow(&u));
                }
                Number::UInt(u) if dtype.is_float() => T::of_f64(u as f64),
                Number::UInt(u) => T::of_i64(u as i64),
                Number::Bool(b) => T::of_i64(b as i64),
                Number::Complex(re, im) if dtype == DType::Bool => {
                    T::of_i64((re != 0.0 || im != 0.0) as i64)
                }
                Number::Complex(..) => {
                    return Err(PyTypeError::new_err(match dtype.is_float() {
                        true => "must be real number, not complex",
                        false => "'complex' object cannot be interpreted as an integer",
                    }))
                }
            };
        }
        Ok(())
    }

    /// The numbers as a new tensor.
    pub(super) fn tensor(&self, dtype: DType) -> PyResult<Tensor> {
        let y = Tensor::empty(&self.shape, dtype, Device::Cpu).py()?;
        if y.numel() != self.numbers.len() {
            return Err(PyValueError::new_err(
                "tensor(): data changed while it was read",
            ));
        }
        match dtype {
            DType::Bool => self.fill::<Bool>(&y, dtype)?,
            DType::U8 => self.fill::<u8>(&y, dtype)?,
            DType::I8 => self.fill::<i8>(&y, dtype)?,
            DType::I16 => self.fill::<i16>(&y, dtype)?,
            DType::I32 => self.fill::<i32>(&y, dtype)?,
            DType::I64 => self.fill::<i64>(&y, dtype)?,
            DType::U16 => self.fill::<u16>(&y, dtype)?,
            DType::U32 => self.fill::<u32>(&y, dtype)?,
            DType::U64 => self.fill::<u64>(&y, dtype)?,
            DType::F16 => self.fill::<half::f16>(&y, dtype)?,
            DType::BF16 => self.fill::<half::bf16>(&y, dtype)?,
            DType::F32 => self.fill::<f32>(&y, dtype)?,
            DType::F64 => self.fill::<f64>(&y, dtype)?,
            DType::F8E4M3FN
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::F8E8M0FNU => y.write_from(&self.tensor(DType::F64)?).py()?,
            DType::C32 | DType::C64 | DType::C128 => {
                let pairs = self.numbers.iter().map(|n| match *n {
                    Number::Bool(b) => (b as u8 as f64, 0.0),
                    Number::Int(i) => (i as f64, 0.0),
                    Number::UInt(u) => (u as f64, 0.0),
                    Number::Float(f) => (f, 0.0),
                    Number::Complex(re, im) => (re, im),
                });
                let (re, im): (Vec<f64>, Vec<f64>) = pairs.unzip();
                for (k, part) in [re, im].iter().enumerate() {
                    let part = Tensor::from_slice(part, &self.shape, DType::F64).py()?;
                    y.component(k).write_from(&part).py()?;
                }
            }
        }
        Ok(y)
    }
}

/// A NumPy scalar (not a plain Python number) with its dtype.
fn numpy_scalar<'a, 'py>(
    obj: &'a Bound<'py, PyAny>,
) -> PyResult<Option<(&'a Bound<'py, PyAny>, DType)>> {
    if !crate::numpy::is_numpy_scalar(obj) {
        return Ok(None);
    }
    match crate::numpy::dtype_of(&obj.getattr("dtype")?)? {
        Some(d) => Ok(Some((obj, d))),
        _ => Err(PyTypeError::new_err(format!(
            "can't convert np.ndarray of type {}",
            obj.getattr("dtype")?
        ))),
    }
}

fn unsigned(v: u64) -> Number {
    i64::try_from(v).map_or(Number::UInt(v), Number::Int)
}

/// An integer of Python's.
fn integer(obj: &Bound<'_, PyAny>) -> PyResult<Number> {
    match obj.extract() {
        Ok(v) => Ok(Number::Int(v)),
        Err(_) => match obj.extract() {
            Ok(v) => Ok(Number::UInt(v)),
            Err(_) => Err(PyValueError::new_err("Overflow when unpacking long long")),
        },
    }
}

fn complex(obj: &Bound<'_, PyAny>) -> PyResult<Number> {
    let c = obj.cast::<PyComplex>()?;
    Ok(Number::Complex(c.real(), c.imag()))
}

/// Says once that a list of arrays is read number by number.
fn warn_of_arrays(data: &Bound<'_, PyAny>) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let first = match data.cast::<PyList>() {
        Ok(list) if !list.is_empty() => list.get_item(0)?,
        _ => return Ok(()),
    };
    if is_ndarray(&first) && !WARNED.swap(true, Ordering::Relaxed) {
        warn(
            data.py(),
            c"Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider \
              converting the list to a single numpy.ndarray with numpy.array() before converting \
              to a tensor.",
        )?;
    }
    Ok(())
}

/// The numbers in `data`; `wanted` is the type asked for, if any.
pub(super) fn numbers(data: &Bound<'_, PyAny>, wanted: Option<DType>) -> PyResult<Walk> {
    if data.is_instance_of::<PyString>() || data.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "new(): invalid data type '{}'",
            class(data)
        )));
    }
    let mut walk = Walk {
        shape: Vec::new(),
        wanted,
        found: None,
        numbers: Vec::new(),
    };
    if let Ok(bytes) = data.cast::<PyByteArray>() {
        walk.note(DType::I64);
        walk.shape.push(bytes.len());
        walk.numbers
            .extend(bytes.to_vec().into_iter().map(|b| Number::Int(b as i64)));
    } else {
        warn_of_arrays(data)?;
        walk.measure(data)?;
        walk.walk(data, 0)?;
    }
    Ok(walk)
}

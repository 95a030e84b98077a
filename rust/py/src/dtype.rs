//! `dtype`, `device`, `layout` and `memory_format` objects.

use crate::error::IntoPy;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString};
use pytensorlib_core::device::{self, Device};
use pytensorlib_core::dtype::{self, DType};
use pytensorlib_core::meta::Form;
use pytensorlib_core::schema::MemoryFormat;

/// A type of elements. There is one object for each: float32, float64, float16, bfloat16,
/// complex64, complex128, int8, int16, int32, int64, uint8, uint16, uint32, uint64 and bool,
/// with the other names float, double, half, cfloat, cdouble, short, int and long. Tensors of
/// float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu and complex32 (chalf)
/// are stored, moved and converted; few operators compute with them.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.float is torch.float32
/// True
#[pyclass(
    name = "dtype",
    module = "pytensorlib",
    frozen,
    eq,
    hash,
    skip_from_py_object
)]
#[derive(PartialEq, Eq, Hash, Clone)]
pub struct PyDType(pub DType);

static DTYPES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The one object for a dtype.
pub fn dtype_object(py: Python<'_>, d: DType) -> &Py<PyDType> {
    let all = DTYPES.get_or_init(py, || {
        let new = |&d| Py::new(py, PyDType(d)).expect("memory for a dozen objects");
        dtype::ALL.iter().map(new).collect()
    });
    &all[d as usize]
}

#[pymethods]
impl PyDType {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.0.name())
    }
    fn __reduce__(&self) -> String {
        self.0.name().to_string()
    }
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
    /// Whether it is float16, bfloat16, float32, float64 or one of float8.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.float16.is_floating_point, torch.int8.is_floating_point
    /// (True, False)
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }
    /// Whether it is complex32, complex64 or complex128.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.complex64.is_complex
    /// True
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }
    /// Whether it has negative numbers.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.int8.is_signed, torch.uint8.is_signed
    /// (True, False)
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed()
    }
    /// The size of an element in bytes.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.complex128.itemsize
    /// 16
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }
    /// The public name without module: `float32`.
    #[getter]
    fn _name(&self) -> &'static str {
        self.0.name()
    }
    /// The complex dtype that goes with this one.
    ///
    /// Returns
    /// -------
    /// dtype
    ///     complex128 for float64, complex32 for float16, else complex64; itself where complex.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     It is a dtype of integers, bool or float8.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.float64.to_complex()
    /// torch.complex128
    fn to_complex(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        let d = match self.0 {
            d if d.differentiable() && !d.is_float8() => d.complex(),
            d => {
                return Err(PyRuntimeError::new_err(format!(
                    "to_complex(): there is no complex dtype for {}",
                    d.scalar_name()
                )))
            }
        };
        Ok(dtype_object(py, d).clone_ref(py))
    }
    /// The dtype of the parts of a complex one.
    ///
    /// Returns
    /// -------
    /// dtype
    ///     Itself for a dtype that is not complex.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.complex64.to_real()
    /// torch.float32
    fn to_real(&self, py: Python<'_>) -> Py<PyDType> {
        dtype_object(py, self.0.part()).clone_ref(py)
    }
}

/// Where tensors are: ``device("cpu")``, ``device("wgpu")``, or ``device("meta")``, where they have a
/// shape and a dtype but no elements. Devices that exist elsewhere
/// have names here too, which scripts compare and files hold, but no tensor can be there.
///
/// Parameters
/// ----------
/// type : str or device
///     The kind, with or without an index: ``"wgpu"`` or ``"wgpu:0"``.
/// index : int, optional
///     Which of several.
///
/// Raises
/// ------
/// RuntimeError
///     There is no such kind, or an index is given twice.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.device("cpu")
/// device(type='cpu')
/// >>> torch.device("cpu") == torch.zeros(1).device
/// True
#[pyclass(
    name = "device",
    module = "pytensorlib",
    frozen,
    eq,
    hash,
    skip_from_py_object
)]
#[derive(PartialEq, Eq, Hash, Clone)]
pub struct PyDevice {
    kind: &'static str,
    index: Option<u8>,
}

/// Types of devices that PyTorch knows, with ours.
const KINDS: [&str; 20] = [
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
    "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "wgpu",
];

impl PyDevice {
    pub fn of(device: Device) -> Self {
        PyDevice {
            kind: device.kind(),
            index: match device {
                Device::Cpu | Device::Meta => None,
                Device::Wgpu(index) => Some(index),
            },
        }
    }

    fn parse(text: &str) -> PyResult<Self> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text, None),
        };
        if text.is_empty() {
            return Err(PyRuntimeError::new_err("Device string must not be empty"));
        }
        let Some(mut kind) = KINDS.into_iter().find(|&k| k == kind) else {
            return Err(PyRuntimeError::new_err(format!(
                "Expected one of {} device type at start of device string: {text}; {}",
                KINDS.join(", "),
                device::near(kind)
            )));
        };
        if device::names_gpu(kind) {
            kind = device::tell_gpu_name();
        }
        let index = match index.map(|i| (i, i.parse::<u8>())) {
            None => None,
            Some((i, Ok(n))) if i == n.to_string() => Some(n),
            _ => {
                return Err(PyRuntimeError::new_err(format!(
                    "Invalid device string: '{text}'"
                )))
            }
        };
        if kind == "cpu" && index.is_some_and(|i| i > 0) {
            return Err(PyRuntimeError::new_err(format!(
                "CPU device index must be -1 or zero, got {}",
                index.unwrap_or(0)
            )));
        }
        Ok(PyDevice { kind, index })
    }

    /// The device of ours that this names; an error where it names another.
    pub fn device(&self) -> PyResult<Device> {
        Device::parse(&self.__str__()).map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }

    /// The GPU of a number, as PyTorch's accelerator has one, where GPUs answer as one of PyTorch's devices.
    fn numbered(obj: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let name = device::gpu_name();
        let number = obj.is_instance_of::<PyInt>() && !obj.is_instance_of::<PyBool>();
        if !number || name == device::GPU_NAMES[0] {
            return Ok(None);
        }
        let index = obj.extract::<i64>()?;
        if index < 0 {
            return Err(PyRuntimeError::new_err("Device index must not be negative"));
        }
        PyDevice::parse(&format!("{name}:{index}")).map(Some)
    }

    /// The device that an object names: a device, a string, or the number of a GPU. `None` for anything else.
    pub fn read(obj: &Bound<'_, PyAny>) -> PyResult<Option<Device>> {
        if let Ok(d) = obj.cast::<PyDevice>() {
            return d.get().device().map(Some);
        }
        match obj.cast::<PyString>() {
            Ok(s) => PyDevice::parse(s.to_str()?)?.device().map(Some),
            Err(_) => match PyDevice::numbered(obj)? {
                Some(d) => d.device().map(Some),
                None => Ok(None),
            },
        }
    }

    /// As [`PyDevice::read`], where nothing else will do.
    pub fn expect(obj: &Bound<'_, PyAny>) -> PyResult<Device> {
        match PyDevice::read(obj)? {
            Some(d) => Ok(d),
            None => Err(PyTypeError::new_err(format!(
                "argument 'device' must be torch.device, not {}",
                obj.get_type().name()?
            ))),
        }
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: &Bound<'_, PyAny>, index: Option<i64>) -> PyResult<Self> {
        if let Ok(d) = r#type.cast::<PyDevice>() {
            return Ok(d.get().clone());
        }
        let Ok(text) = r#type.cast::<PyString>() else {
            if let (Some(d), None) = (PyDevice::numbered(r#type)?, index) {
                return Ok(d);
            }
            return Err(PyTypeError::new_err(format!(
                "device(): argument 'type' must be str, not {}{}",
                r#type.get_type().name()?,
                match r#type.is_instance_of::<PyInt>() {
                    true => ": GPUs are torch.device(\"wgpu\", number)",
                    false => "",
                }
            )));
        };
        let text = text.to_str()?;
        match index {
            Some(_) if text.contains(':') => Err(PyRuntimeError::new_err(format!(
                "type (string) must not include an index because index was passed explicitly: \
                 {text}"
            ))),
            Some(i) if i < 0 => Err(PyRuntimeError::new_err("Device index must not be negative")),
            Some(i) => PyDevice::parse(&format!("{text}:{i}")),
            None => PyDevice::parse(text),
        }
    }
    /// The kind of device.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.device("cpu").type
    /// 'cpu'
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind
    }
    /// Whether it is a GPU, whatever that is called.
    #[getter]
    fn _is_gpu(&self) -> bool {
        device::names_gpu(self.kind)
    }
    /// Which of several devices of its kind; None where it was not said.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.device("cuda:1").index
    /// 1
    #[getter]
    fn index(&self) -> Option<u8> {
        self.index
    }
    fn __str__(&self) -> String {
        match self.index {
            Some(i) => format!("{}:{i}", self.kind),
            None => self.kind.to_string(),
        }
    }
    fn __repr__(&self) -> String {
        match self.index {
            Some(i) => format!("device(type='{}', index={i})", self.kind),
            None => format!("device(type='{}')", self.kind),
        }
    }
    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((slf.get_type().into_any().unbind(), (slf.get().__str__(),)))
    }
}

/// How elements are stored: `torch.strided`, each at its place in memory; `torch.sparse_coo`, as a list
/// of coordinates and values; `torch.sparse_csr` and `torch.sparse_csc`, a matrix by its rows or columns;
/// `torch.sparse_bsr` and `torch.sparse_bsc`, the same of blocks.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.zeros(2).layout
/// torch.strided
#[pyclass(
    name = "layout",
    module = "pytensorlib",
    frozen,
    eq,
    hash,
    skip_from_py_object
)]
#[derive(PartialEq, Eq, Hash, Clone)]
pub struct PyLayout(pub Form);

/// The one object for each layout.
pub fn layout_object(py: Python<'_>, form: Form) -> &Py<PyLayout> {
    static LAYOUTS: [PyOnceLock<Py<PyLayout>>; 6] = [const { PyOnceLock::new() }; 6];
    let make = || Py::new(py, PyLayout(form)).expect("memory for an object");
    LAYOUTS[form as usize].get_or_init(py, make)
}

#[pymethods]
impl PyLayout {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.__reduce__())
    }
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }
}

/// The order in which the dimensions lie in memory: `torch.contiguous_format` is row-major,
/// `torch.channels_last` (4-D) and `torch.channels_last_3d` (5-D) have the channels
/// innermost, and `torch.preserve_format` keeps the order of an input.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> x = torch.zeros(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)
/// >>> x.stride()
/// (12, 1, 6, 3)
#[pyclass(
    name = "memory_format",
    module = "pytensorlib",
    frozen,
    eq,
    hash,
    skip_from_py_object
)]
#[derive(PartialEq, Eq, Clone)]
pub struct PyMemoryFormat(pub MemoryFormat);

impl std::hash::Hash for PyMemoryFormat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0 as u8).hash(state)
    }
}

impl PyMemoryFormat {
    fn name(&self) -> &'static str {
        match self.0 {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }
}

#[pymethods]
impl PyMemoryFormat {
    fn __repr__(&self) -> String {
        format!("torch.{}", self.name())
    }
    fn __reduce__(&self) -> &'static str {
        self.name()
    }
}

/// The dtype of floating-point tensors that name none.
///
/// Returns
/// -------
/// dtype
///     float32 unless `set_default_dtype` was called.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.get_default_dtype() == torch.float32
/// True
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> Py<PyDType> {
    dtype_object(py, dtype::default_dtype()).clone_ref(py)
}

/// Set the dtype of floating-point tensors that name none; complex ones follow.
///
/// Parameters
/// ----------
/// d : dtype
///     A floating-point dtype.
///
/// Raises
/// ------
/// TypeError
///     `d` is not a floating-point dtype.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.set_default_dtype(torch.float64)
/// >>> torch.tensor(1.0).dtype.itemsize
/// 8
/// >>> torch.set_default_dtype(torch.float32)
#[pyfunction]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    let d = d
        .cast::<PyDType>()
        .map_err(|_| PyTypeError::new_err("set_default_dtype(): argument must be torch.dtype"))?;
    if !d.get().0.is_float() || d.get().0.is_float8() {
        return Err(PyTypeError::new_err(format!(
            "set_default_dtype(): only floating-point types are supported as the default type, \
             got {}",
            d.get().0
        )));
    }
    dtype::set_default_dtype(d.get().0);
    Ok(())
}

/// The dtype in which two dtypes are combined: the wider of a kind, floating point before
/// integers, complex before floating point.
///
/// Parameters
/// ----------
/// type1, type2 : dtype
///     Any two.
///
/// Returns
/// -------
/// dtype
///     The common dtype.
///
/// Raises
/// ------
/// RuntimeError
///     There is none: uint16, uint32 and uint64 do not mix with signed integers, nor float8 with
///     anything.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.promote_types(torch.int64, torch.float16) == torch.float16
/// True
#[pyfunction]
fn promote_types(py: Python<'_>, type1: &PyDType, type2: &PyDType) -> PyResult<Py<PyDType>> {
    Ok(dtype_object(py, type1.0.common(type2.0).py()?).clone_ref(py))
}

/// Whether a result of one dtype may be written to another: never to a lower kind (complex,
/// floating point, integer, bool).
///
/// Parameters
/// ----------
/// from_ : dtype
///     What is written.
/// to : dtype
///     Where to.
///
/// Returns
/// -------
/// bool
///     True within one kind whatever the widths are.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
/// (True, False)
#[pyfunction]
fn can_cast(from_: &PyDType, to: &PyDType) -> bool {
    from_.0.can_cast(to.0)
}

/// A dtype object, or one of the Python types that stand for one.
pub fn parse(obj: &Bound<'_, PyAny>) -> Option<DType> {
    if let Ok(d) = obj.cast::<PyDType>() {
        return Some(d.get().0);
    }
    let py = obj.py();
    if obj.is(py.get_type::<PyFloat>()) {
        Some(DType::F64)
    } else if obj.is(py.get_type::<PyInt>()) {
        Some(DType::I64)
    } else if obj.is(py.get_type::<PyBool>()) {
        Some(DType::Bool)
    } else if obj.is(py.get_type::<PyComplex>()) {
        Some(DType::C128)
    } else {
        None
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add_class::<PyDType>()?;
    m.add_class::<PyDevice>()?;
    m.add_class::<PyLayout>()?;
    m.add_class::<PyMemoryFormat>()?;
    for d in dtype::ALL {
        m.add(d.name(), dtype_object(py, d).clone_ref(py))?;
    }
    for form in Form::ALL {
        m.add(form.name(), layout_object(py, form).clone_ref(py))?;
    }
    for f in [
        MemoryFormat::Contiguous,
        MemoryFormat::Preserve,
        MemoryFormat::ChannelsLast,
        MemoryFormat::ChannelsLast3d,
    ] {
        let f = PyMemoryFormat(f);
        m.add(f.name(), Py::new(py, f)?)?;
    }
    m.add_function(wrap_pyfunction!(get_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(promote_types, m)?)?;
    m.add_function(wrap_pyfunction!(can_cast, m)?)?;
    Ok(())
}

//! `Tensor`, the Python class. Methods that are ops are attached by `bind`; those written in Python
//! by `pytensorlib/_tensor/__init__.py`.

use crate::cell::{borrow, PyTensor};
use crate::convert::{number_object, operand, size_tuple};
use crate::dispatch::wrap_as;
use crate::dtype::{dtype_object, layout_object, PyDType, PyDevice, PyLayout};
use crate::error::{caught, guard, IntoPy};
use crate::hooks::HookHandle;
use crate::object::{class, install, make_of, type_slot, wrap};
use crate::operands::{lift, named};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use pytensorlib_core::batch::Batched;
use pytensorlib_core::dtype::{DType, Scalar};
use pytensorlib_core::host;
use pytensorlib_core::meta::Form;
use pytensorlib_core::ops::pointwise::{apply, unary};
use pytensorlib_core::tensor::Tensor;

#[pymethods]
impl PyTensor {
    /// A tensor sharing `data`'s memory as an object of class `cls`.
    #[staticmethod]
    #[pyo3(signature = (cls, data, require_grad=false))]
    fn _make_subclass(
        cls: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        require_grad: bool,
    ) -> PyResult<Py<PyAny>> {
        let t = borrow(data)?.detach();
        if require_grad {
            t.require_grad().py()?;
        }
        wrap_as(cls, t)
    }

    /// The same tensor, history included, as an object of a subclass.
    ///
    /// Parameters
    /// ----------
    /// cls : type
    ///     A subclass of `Tensor`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     An object of class `cls` over the same memory.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> class Image(torch.Tensor):
    /// ...     pass
    /// ...
    /// >>> type(torch.zeros(2).as_subclass(Image)).__name__
    /// 'Image'
    fn as_subclass(&self, cls: &Bound<'_, PyType>) -> PyResult<Py<PyAny>> {
        let t = self.get();
        wrap_as(cls, t.replaced(&t))
    }

    /// The size of each dimension, as `size()` gives it.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).shape
    /// torch.Size([2, 3])
    #[getter]
    fn shape(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        size_tuple(slf.py(), slf.get().get().shape())
    }
    /// The size of each dimension, or of one.
    ///
    /// Parameters
    /// ----------
    /// dim : int, optional
    ///     The dimension.
    ///
    /// Returns
    /// -------
    /// torch.Size or int
    ///     A tuple of all sizes, or the size of `dim`.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     `dim` is out of range.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(2, 3)
    /// >>> x.size(), x.size(-1)
    /// (torch.Size([2, 3]), 3)
    #[pyo3(signature = (dim=None))]
    fn size(slf: &Bound<'_, Self>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        let t = slf.get().get();
        match dim {
            None => size_tuple(slf.py(), t.shape()),
            Some(d) => {
                if t.ndim() == 0 {
                    pytensorlib_core::shape::dim(d, 0).py()?;
                    return Err(pyo3::exceptions::PyIndexError::new_err(
                        "Dimension specified as 0 but tensor has no dimensions",
                    ));
                }
                let d = pytensorlib_core::shape::dim(d, t.ndim()).py()?;
                Ok(t.size(d).into_pyobject(slf.py())?.into_any().unbind())
            }
        }
    }
    /// How many elements of memory a step along each dimension, or along one, takes.
    ///
    /// Parameters
    /// ----------
    /// dim : int, optional
    ///     The dimension.
    ///
    /// Returns
    /// -------
    /// tuple of int, or int
    ///     All strides, or that of `dim`.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     `dim` is out of range.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(2, 3)
    /// >>> x.stride(), x.t().stride()
    /// ((3, 1), (1, 3))
    #[pyo3(signature = (dim=None))]
    fn stride(slf: &Bound<'_, Self>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        let t = slf.get().get();
        if t.is_sparse() && dim.is_none() {
            let none = vec![0; t.ndim()];
            return Ok(PyTuple::new(slf.py(), none)?.into_any().unbind());
        }
        let py = slf.py();
        match dim {
            None => Ok(PyTuple::new(py, t.strides().iter())?.into_any().unbind()),
            Some(d) => {
                let d = pytensorlib_core::shape::dim(d, t.ndim()).py()?;
                let step = if t.is_sparse() { 0 } else { t.stride(d) };
                Ok(step.into_pyobject(py)?.into_any().unbind())
            }
        }
    }
    /// The number of dimensions.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).ndim
    /// 2
    #[getter]
    fn ndim(&self) -> usize {
        self.get().ndim()
    }
    /// The number of dimensions.
    ///
    /// Returns
    /// -------
    /// int
    ///     As `ndim`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).dim()
    /// 2
    fn dim(&self) -> usize {
        self.get().ndim()
    }
    /// The number of dimensions; another name of `dim`.
    ///
    /// Returns
    /// -------
    /// int
    ///     As `ndim`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).ndimension()
    /// 2
    fn ndimension(&self) -> usize {
        self.get().ndim()
    }
    /// The number of elements.
    ///
    /// Returns
    /// -------
    /// int
    ///     The product of all sizes.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).numel()
    /// 6
    fn numel(&self) -> usize {
        self.get().numel()
    }
    /// The number of elements; another name of `numel`.
    ///
    /// Returns
    /// -------
    /// int
    ///     The product of all sizes.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).nelement()
    /// 6
    fn nelement(&self) -> usize {
        self.get().numel()
    }
    /// The size of an element in bytes.
    ///
    /// Returns
    /// -------
    /// int
    ///     As `itemsize`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, dtype=torch.float64).element_size()
    /// 8
    fn element_size(&self) -> usize {
        self.get().dtype().size()
    }
    /// The size of an element in bytes.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, dtype=torch.float64).itemsize
    /// 8
    #[getter]
    fn itemsize(&self) -> usize {
        self.get().dtype().size()
    }
    /// The size of all elements in bytes; elements that share memory count each time.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).nbytes
    /// 24
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        let t = self.get();
        if t.is_sparse() {
            return Err(PyRuntimeError::new_err(
                "nbytes is not defined for sparse tensors: add those of _indices() and _values(), \
                 or multiply numel() by element_size() for the dense tensor",
            ));
        }
        Ok(t.numel() * t.dtype().size())
    }
    /// The type of the elements.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1, 2]).dtype.itemsize
    /// 8
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyDType> {
        dtype_object(py, self.get().dtype()).clone_ref(py)
    }
    /// Where the elements are: ``cpu``, ``wgpu``, or ``meta``, where there are none.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).device
    /// device(type='cpu')
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice::of(self.get().device())
    }
    /// How the elements are stored: `torch.strided`, or a sparse layout such as `torch.sparse_coo`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).layout == torch.strided
    /// True
    #[getter]
    fn layout(&self, py: Python<'_>) -> Py<PyLayout> {
        layout_object(py, self.get().form()).clone_ref(py)
    }
    /// Whether the elements are in host memory.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_cpu
    /// True
    #[getter]
    fn is_cpu(&self) -> bool {
        self.get().device() == pytensorlib_core::device::Device::Cpu
    }
    /// Whether it is on a GPU that answers as "cuda" (`torch.wgpu.answer_as`).
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_cuda
    /// False
    #[getter]
    fn is_cuda(&self) -> bool {
        self._on("cuda")
    }
    /// Whether it is on a GPU.
    #[getter]
    fn _is_gpu(&self) -> bool {
        self.get().device().is_gpu()
    }
    /// Whether it is on a kind of device.
    fn _on(&self, kind: &str) -> bool {
        self.get().device().kind() == kind
    }
    /// Whether the elements are a list of coordinates and values.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_sparse, torch.zeros(2).to_sparse().is_sparse
    /// (False, True)
    #[getter]
    fn is_sparse(&self) -> bool {
        self.get().form() == Form::Coo
    }
    /// Whether the elements are those of a sparse matrix by rows.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.eye(2).is_sparse_csr, torch.eye(2).to_sparse_csr().is_sparse_csr
    /// (False, True)
    #[getter]
    fn is_sparse_csr(&self) -> bool {
        self.get().form() == Form::Csr
    }
    /// Whether the layout is a sparse one.
    #[getter]
    fn _is_any_sparse(&self) -> bool {
        self.get().is_sparse()
    }
    /// Always False: there are no quantized types.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_quantized
    /// False
    #[getter]
    fn is_quantized(&self) -> bool {
        false
    }
    /// Whether it has a shape, strides and a dtype, but no memory.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_meta, torch.zeros(2, device="meta").is_meta
    /// (False, True)
    #[getter]
    fn is_meta(&self) -> bool {
        self.get().device() == pytensorlib_core::device::Device::Meta
    }
    /// Whether the dtype is float16, bfloat16, float32 or float64.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False for integers, bools and complex numbers.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).is_floating_point(), torch.tensor([1]).is_floating_point()
    /// (True, False)
    fn is_floating_point(&self) -> bool {
        self.get().dtype().is_float()
    }
    /// Whether the dtype is complex64 or complex128.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False for all others.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1j]).is_complex()
    /// True
    fn is_complex(&self) -> bool {
        self.get().dtype().is_complex()
    }
    /// Whether the dtype has negative numbers.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False for unsigned integers and bools.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1]).is_signed(), torch.tensor([True]).is_signed()
    /// (True, False)
    fn is_signed(&self) -> bool {
        self.get().dtype().is_signed()
    }
    /// Whether the tensor was made in inference mode, so that it can never take part in a graph.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True inside of `inference_mode`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> with torch.inference_mode():
    /// ...     x = torch.zeros(2)
    /// ...
    /// >>> x.is_inference()
    /// True
    fn is_inference(&self) -> bool {
        self.get().is_inference()
    }
    /// Where the first element is in the storage.
    ///
    /// Returns
    /// -------
    /// int
    ///     Counted in elements.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.arange(5)[2:].storage_offset()
    /// 2
    fn storage_offset(&self) -> usize {
        self.get().offset()
    }
    /// The address of the first element.
    ///
    /// Returns
    /// -------
    /// int
    ///     0 for a tensor without elements.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.arange(5)
    /// >>> x[2:].data_ptr() - x.data_ptr()
    /// 16
    fn data_ptr(&self) -> PyResult<usize> {
        let t = self.get();
        if t.is_sparse() {
            return Err(PyRuntimeError::new_err(
                "Cannot access data pointer of Tensor that doesn't have storage: a sparse tensor \
                 has those of _indices() and _values()",
            ));
        }
        if Batched::of(&t).is_some() {
            t.check_held().py()?;
        }
        Ok(if t.numel() == 0 || t.storage().bytes() == 0 {
            0
        } else {
            t.storage().address() + t.offset() * t.dtype().size()
        })
    }
    /// Bytes of the whole storage, which views share.
    #[getter]
    fn _storage_nbytes(&self) -> usize {
        self.get().storage().bytes()
    }
    /// The address of the storage, the same for all tensors that share it.
    #[getter]
    fn _storage_ptr(&self) -> usize {
        self.get().storage().address()
    }
    #[getter]
    fn _version(&self) -> PyResult<u32> {
        match self.get().is_inference() {
            true => Err(PyRuntimeError::new_err(
                "Inference tensors do not track version counter.",
            )),
            false => Ok(self.get().version()),
        }
    }
    /// Whether the elements lie in memory without gaps, in row-major order or in that of a
    /// memory format.
    ///
    /// Parameters
    /// ----------
    /// memory_format : memory_format, optional
    ///     `torch.contiguous_format` if not given.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True also for tensors without elements.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(2, 3)
    /// >>> x.is_contiguous(), x.t().is_contiguous()
    /// (True, False)
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(&self, memory_format: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        use pytensorlib_core::schema::MemoryFormat as M;
        let t = self.get();
        if t.is_sparse() {
            return Ok(false);
        }
        let format = match memory_format {
            Some(f) => f.cast::<crate::dtype::PyMemoryFormat>()?.get().0,
            None => M::Contiguous,
        };
        Ok(t.is_contiguous_as(format))
    }
    /// The elements as Python numbers in nested lists.
    ///
    /// Returns
    /// -------
    /// list or number
    ///     A number for a tensor without dimensions.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    /// [[1, 2], [3, 4]]
    fn tolist(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::lists::to_list(slf.py(), &slf.get().get())
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        if let Some(y) = answered(slf, "__len__", &[])? {
            let n: i64 = y.extract(slf.py())?;
            let text = "__len__() should return >= 0";
            return usize::try_from(n).map_err(|_| PyValueError::new_err(text));
        }
        let t = slf.get().get();
        if t.ndim() == 0 {
            return Err(PyTypeError::new_err("len() of a 0-d tensor"));
        }
        Ok(t.size(0))
    }
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        if let Some(y) = answered(slf, "__bool__", &[])? {
            return y.extract(slf.py());
        }
        let t = slf.get().get();
        if t.stands() && !t.answers() {
            return Err(PyRuntimeError::new_err(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control \
                 flow. We don't support that yet, please file an issue at \
                 https://github.com/pytorch/pytorch/issues . Write it with torch.where.",
            ));
        }
        match t.numel() {
            1 if t.dtype().is_complex() => Ok(t.complex_item().py()? != (0.0, 0.0)),
            1 => Ok(t.item().py()?.truth()),
            0 => Err(PyRuntimeError::new_err(
                "Boolean value of Tensor with no values is ambiguous",
            )),
            _ => Err(PyRuntimeError::new_err(
                "Boolean value of Tensor with more than one value is ambiguous",
            )),
        }
    }
    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        if let Some(y) = answered(slf, "__float__", &[])? {
            return y.extract(slf.py());
        }
        warn_of_scalar(&slf.get().get());
        Ok(slf.get().single()?.item().py()?.f64())
    }
    fn __int__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = answered(slf, "__int__", &[])? {
            return Ok(y);
        }
        let py = slf.py();
        match slf.get().single()?.item().py()? {
            Scalar::Float(f) => Ok(f.into_pyobject(py)?.call_method0("__int__")?.unbind()),
            Scalar::UInt(u) => Ok(u.into_pyobject(py)?.into_any().unbind()),
            s => Ok(s.i64().into_pyobject(py)?.into_any().unbind()),
        }
    }
    fn __index__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = answered(slf, "__index__", &[])? {
            return Ok(y);
        }
        let (py, t) = (slf.py(), slf.get().get());
        if !t.dtype().is_integral() || t.numel() != 1 {
            return Err(PyTypeError::new_err(
                "only integer tensors of a single element can be converted to an index",
            ));
        }
        match t.item().py()? {
            s @ Scalar::UInt(_) => number_object(py, s),
            s => number_object(py, Scalar::Int(s.i64())),
        }
    }
    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyComplex>> {
        warn_of_scalar(&self.get());
        let (re, im) = self.single()?.complex_item().py()?;
        Ok(pyo3::types::PyComplex::from_doubles(py, re, im))
    }
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        caught("__getitem__", || crate::index::get_item(slf, key))
    }
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        caught("__setitem__", || crate::index::set_item(slf, key, value))
    }
    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "Tensor does not support deleting items",
        ))
    }
    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        caught("neg", || match answered(slf, "__neg__", &[])? {
            Some(y) => Ok(y),
            None if slf.get().get().is_sparse() => Ok(slf.call_method0("neg")?.unbind()),
            None => wrap(
                slf.py(),
                apply(unary::Neg, [&slf.get().get()]).py_of("neg")?,
            ),
        })
    }
    fn __pos__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = answered(slf, "__pos__", &[])? {
            return Ok(y);
        }
        match slf.get().get().dtype() {
            DType::Bool => Err(PyRuntimeError::new_err(
                "The `+` operator, on a bool tensor is not supported.",
            )),
            _ => Ok(slf.clone().into_any().unbind()),
        }
    }
    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        caught("abs", || match answered(slf, "__abs__", &[])? {
            Some(y) => Ok(y),
            None if slf.get().get().is_sparse() => Ok(slf.call_method0("abs")?.unbind()),
            None => wrap(
                slf.py(),
                apply(unary::Abs, [&slf.get().get()]).py_of("abs")?,
            ),
        })
    }
    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = answered(slf, "__invert__", &[])? {
            return Ok(y);
        }
        if !slf.get().get().dtype().is_integral() {
            return Err(PyTypeError::new_err(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
            ));
        }
        Ok(slf.call_method0("bitwise_not")?.unbind())
    }
    fn __pow__(
        slf: &Bound<'_, Self>,
        o: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some_and(|m| !m.is_none()) {
            return Ok(slf.py().NotImplemented());
        }
        match answered(slf, "__pow__", &[o]) {
            Err(e) if e.is_instance_of::<PyTypeError>(slf.py()) => {
                return Ok(slf.py().NotImplemented())
            }
            answer => {
                if let Some(y) = answer? {
                    return Ok(y);
                }
            }
        }
        match named(slf, "pow", o)? {
            // What is no tensor may stand for one.
            y if y.is(slf.py().NotImplemented()) => {
                Ok(answered_now(slf, "__pow__", &[o])?.unwrap_or(y))
            }
            y => Ok(y),
        }
    }
    fn __rpow__(
        slf: &Bound<'_, Self>,
        o: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = modulo;
        if let Some(y) = answered(slf, "__rpow__", &[o])? {
            return Ok(y);
        }
        if operand(o)?.is_none() {
            return Ok(slf.py().NotImplemented());
        }
        let f = slf.py().import("pytensorlib._C")?.getattr("pow")?;
        Ok(f.call1((lift(o)?, slf))?.unbind())
    }

    /// Whether autograd records what is done with this tensor. It can be set on leaves only, and
    /// to True only where the dtype is floating point or complex.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(2, requires_grad=True)
    /// >>> x.requires_grad, (2 * x).requires_grad
    /// (True, True)
    #[getter]
    fn requires_grad(&self) -> bool {
        self.get().requires_grad()
    }
    #[deleter(requires_grad)]
    fn del_requires_grad(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("requires_grad must be a bool"))
    }
    #[setter(requires_grad)]
    fn put_requires_grad(&self, on: bool) -> PyResult<()> {
        self.get().set_requires_grad(on).py()
    }
    /// Say whether autograd records what is done with this tensor.
    ///
    /// Parameters
    /// ----------
    /// requires_grad : bool, default True
    ///     Whether it does.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The tensor itself.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The dtype is neither floating point nor complex, or the tensor is not a leaf and the
    ///     answer no.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2).requires_grad_()
    /// tensor([0., 0.], requires_grad=True)
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(slf: Bound<'_, Self>, requires_grad: bool) -> PyResult<Bound<'_, Self>> {
        let t = slf.get().get();
        if requires_grad && !t.dtype().differentiable() {
            return Err(PyRuntimeError::new_err(format!(
                "only Tensors of floating point dtype can require gradients, and complex ones; got {}",
                t.dtype()
            )));
        }
        t.set_requires_grad(requires_grad).py()?;
        Ok(slf)
    }
    /// Whether no recorded operation made this tensor: gradients are collected in `grad` of
    /// leaves that require one.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.zeros(2, requires_grad=True)
    /// >>> x.is_leaf, (2 * x).is_leaf
    /// (True, False)
    #[getter]
    fn is_leaf(&self) -> PyResult<bool> {
        self.get().is_leaf().py()
    }
    /// Whether this tensor is not a leaf and keeps its gradient all the same; see `retain_grad`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> y = 2 * torch.ones(2, requires_grad=True)
    /// >>> y.retain_grad()
    /// >>> y.retains_grad
    /// True
    #[getter]
    fn retains_grad(&self) -> PyResult<bool> {
        let t = self.get();
        let on = t.autograd().is_some_and(|m| m.state.lock().retains_grad);
        Ok(on && !t.is_leaf().py()?)
    }
    /// Keep the gradient in `grad` although this tensor is not a leaf. It has no effect on a leaf.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The tensor requires no gradient.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> y = 2 * x
    /// >>> y.retain_grad()
    /// >>> y.sum().backward()
    /// >>> y.grad
    /// tensor([1., 1.])
    fn retain_grad(&self) -> PyResult<()> {
        self.get().retain_grad().py()
    }
    /// Which result of the operation `grad_fn` this tensor is.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> values, indices = torch.ones(2, requires_grad=True).max(0)
    /// >>> values.output_nr
    /// 0
    #[getter]
    fn output_nr(&self) -> PyResult<u32> {
        Ok(self.get().grad_fn().py()?.map_or(0, |e| e.nr as u32))
    }
    /// The graph node of the operation that made this tensor; None for leaves.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> (2 * torch.ones(2, requires_grad=True)).grad_fn.name()
    /// 'MulBackward0'
    #[getter]
    fn grad_fn(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.get().grad_fn().py()? {
            Some(edge) => crate::node::node_object(py, edge.node).map(Some),
            None => Ok(None),
        }
    }
    /// The gradient that `backward` has added up here; None before. Set it to None to start anew.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> (3 * x).sum().backward()
    /// >>> x.grad
    /// tensor([3., 3.])
    #[getter]
    fn grad(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let t = self.get();
        if t.grad().is_none() && !t.is_plain_leaf() {
            let retains = t.autograd().is_some_and(|m| m.state.lock().retains_grad);
            if !retains && t.requires_grad() {
                let text = c"The .grad attribute of a Tensor that is not a leaf Tensor is being \
                    accessed. Its .grad attribute won't be populated during autograd.backward(). \
                    If you indeed want the .grad field to be populated for a non-leaf Tensor, use \
                    .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, \
                    make sure you access the leaf Tensor instead.";
                let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
                PyErr::warn(py, &category, text, 1)?;
            }
        }
        t.grad().map(|g| wrap(py, g)).transpose()
    }
    #[setter(grad)]
    fn put_grad(&self, g: &Bound<'_, PyAny>) -> PyResult<()> {
        let t = self.get();
        if g.is_none() {
            t.set_grad(None);
            return Ok(());
        }
        let Ok(g) = g.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "assigned grad expected to be a Tensor or None but got grad of type {}",
                g.get_type().name()?
            )));
        };
        let g = g.get().get();
        if g.same(&t) {
            return Err(PyRuntimeError::new_err(
                "can't assign Variable as its own grad",
            ));
        }
        if g.dtype() != t.dtype() || g.device() != t.device() {
            return Err(PyRuntimeError::new_err(format!(
                "assigned grad has data of a different type: expected {} on {}, got {} on {}",
                t.dtype(),
                t.device(),
                g.dtype(),
                g.device()
            )));
        }
        if g.shape() != t.shape() {
            return Err(PyRuntimeError::new_err(format!(
                "assigned grad has data of a different size: expected {:?}, got {:?}",
                &t.shape()[..],
                &g.shape()[..]
            )));
        }
        t.set_grad(Some(g));
        Ok(())
    }
    /// `.grad` without a warning.
    #[getter(_grad)]
    fn grad_as_is(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.get().grad().map(|g| wrap(py, g)).transpose()
    }
    #[setter(_grad)]
    fn put_grad_as_is(&self, g: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put_grad(g)
    }
    #[deleter(grad)]
    fn del_grad(&self) {
        self.get().set_grad(None);
    }
    /// The same memory outside of autograd: writes to it are not seen by it, unlike those to
    /// `detach`. What is assigned replaces the content of this tensor.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> x.data[0] = 5
    /// >>> x
    /// tensor([5., 1.], requires_grad=True)
    #[getter]
    fn data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let t = self.get();
        if Batched::of(&t).is_some() {
            return Err(PyRuntimeError::new_err(
                "accessing `data` under vmap transform is not allowed",
            ));
        }
        if t.answers() {
            return wrap(py, t.detached().py_of("data")?);
        }
        wrap(py, t.data())
    }
    #[deleter(data)]
    fn del_data(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err(
            "Deleting tensor data is not allowed. Delete tensor instead!",
        ))
    }
    #[setter(data)]
    fn put_data(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(other) = other.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err("Variable data has to be a tensor"));
        };
        let (t, new) = (self.get(), other.get().get());
        if Batched::of(&t).or(Batched::of(&new)).is_some() {
            return Err(PyRuntimeError::new_err(
                "mutating directly with `.data` under vmap transform is not allowed. Use copy_() \
                 under no_grad()",
            ));
        }
        if t.has_data() != new.has_data() {
            return Err(PyRuntimeError::new_err(format!(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have \
                 incompatible tensor type: one is on {}, the other on {}",
                t.device(),
                new.device()
            )));
        }
        if !new.dtype().differentiable() && t.requires_grad() {
            return Err(PyRuntimeError::new_err(
                "data set to a tensor that requires gradients must be floating point or complex \
                 dtype",
            ));
        }
        self.swap(t.replaced(&new));
        Ok(())
    }
    /// The dimensions in reverse order, as a view; meant for matrices.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(2, 3).T.shape
    /// torch.Size([3, 2])
    #[getter(T)]
    fn reversed(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match read(slf, "T")? {
            Some(y) => Ok(y),
            None => wrap(slf.py(), slf.get().get().transposed_property("T").py()?),
        }
    }
    /// The last two dimensions exchanged, as a view.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(4, 2, 3).mT.shape
    /// torch.Size([4, 3, 2])
    #[getter(mT)]
    fn matrices_transposed(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match read(slf, "mT")? {
            Some(y) => Ok(y),
            None => wrap(slf.py(), slf.get().get().transposed_property("mT").py()?),
        }
    }
    /// The conjugate transpose of a matrix.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([[1 + 1j, 2]]).H
    /// tensor([[1.-1.j],
    ///         [2.-0.j]])
    #[getter(H)]
    fn adjoint_matrix(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match read(slf, "H")? {
            Some(y) => Ok(y),
            None => wrap(slf.py(), slf.get().get().transposed_property("H").py()?),
        }
    }
    /// The conjugate transposes of the matrices of the last two dimensions.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.zeros(4, 2, 3).mH.shape
    /// torch.Size([4, 3, 2])
    #[getter(mH)]
    fn adjoint_matrices(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        match read(slf, "mH")? {
            Some(y) => Ok(y),
            None => wrap(slf.py(), slf.get().get().transposed_property("mH").py()?),
        }
    }
    /// The real part, a view of a complex tensor; a real tensor itself. It can be assigned.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1 + 2j]).real
    /// tensor([1.])
    #[getter]
    fn real(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = read(&slf, "real")? {
            return Ok(y);
        }
        let t = slf.get().get();
        match t.dtype().is_complex() {
            true => wrap(slf.py(), t.real_part(0).py()?),
            false => Ok(slf.into_any().unbind()),
        }
    }
    #[setter(real)]
    fn put_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.getattr("real")?.call_method1("copy_", (value,))?;
        Ok(())
    }
    /// The imaginary part of a complex tensor, as a view. It can be assigned.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1 + 2j]).imag
    /// tensor([2.])
    #[getter]
    fn imag(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        if let Some(y) = read(slf, "imag")? {
            return Ok(y);
        }
        let (py, t) = (slf.py(), slf.get().get());
        if !t.dtype().is_complex() {
            return Err(PyRuntimeError::new_err(format!(
                "imag is not implemented for tensors with non-complex dtypes, got {}",
                t.dtype()
            )));
        }
        wrap(py, t.real_part(1).py()?)
    }
    #[setter(imag)]
    fn put_imag(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.getattr("imag")?.call_method1("copy_", (value,))?;
        Ok(())
    }
    /// Always False: conjugates are computed at once.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1j]).conj().is_conj()
    /// False
    fn is_conj(&self) -> bool {
        false
    }
    /// Always False: negatives are computed at once.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.tensor([1j]).conj().imag.is_neg()
    /// False
    fn is_neg(&self) -> bool {
        false
    }
    #[getter]
    fn _base(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let t = self.get();
        t.view_of().map(|v| wrap(py, v.base.clone())).transpose()
    }
    fn _is_view(&self) -> bool {
        self.get().view_of().is_some()
    }
    /// The same memory and version counter, without history: no gradient flows back through the
    /// result.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A view that requires no gradient.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> (2 * x).detach()
    /// tensor([2., 2.])
    fn detach(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, t) = (slf.py(), slf.get().get());
        // A detached tensor is a view in PyTorch, so that in-place rules apply to it.
        wrap(py, t.detached().py_of("detach")?)
    }
    /// Cut this tensor off from the operations that made it, so that it is a leaf without a
    /// gradient.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The tensor itself.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The tensor is a view.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> y = 2 * torch.ones(2, requires_grad=True)
    /// >>> y.detach_()
    /// tensor([2., 2.])
    fn detach_(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let t = slf.get().get();
        if t.view_of().is_some() {
            return Err(PyRuntimeError::new_err(
                "Can't detach views in-place. Use detach() instead.",
            ));
        }
        t.detach_in_place();
        Ok(slf)
    }
    /// Exchanges what is behind this object and another.
    fn _exchange(&self, other: &Bound<'_, Self>) {
        let (a, b) = (self.get(), other.get().get());
        self.swap(b);
        other.get().swap(a);
    }
    /// Puts `other` behind this object: the in-place form of layout changes.
    fn _replace<'py>(
        slf: Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let t = borrow(other)?;
        slf.get().swap(t);
        Ok(slf)
    }
    /// Call a function with every gradient of this tensor; what it returns, if not None,
    /// replaces the gradient.
    ///
    /// Parameters
    /// ----------
    /// hook : callable
    ///     ``hook(grad)``; it must not change `grad` in place.
    ///
    /// Returns
    /// -------
    /// handle
    ///     Its method ``remove()`` takes the hook away.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The tensor requires no gradient.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> handle = x.register_hook(lambda grad: 10 * grad)
    /// >>> x.sum().backward()
    /// >>> x.grad
    /// tensor([10., 10.])
    fn register_hook(&self, hook: Py<PyAny>) -> PyResult<HookHandle> {
        crate::hooks::register_hook(&self.get(), hook, false)
    }
    /// Call a function after each addition to `grad` of this leaf, for example to step an
    /// optimizer at once.
    ///
    /// Parameters
    /// ----------
    /// hook : callable
    ///     ``hook(tensor)``; what it returns is ignored.
    ///
    /// Returns
    /// -------
    /// handle
    ///     Its method ``remove()`` takes the hook away.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The tensor is not a leaf or requires no gradient.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> x = torch.ones(2, requires_grad=True)
    /// >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    /// >>> x.sum().backward()
    /// tensor([1., 1.])
    fn register_post_accumulate_grad_hook(&self, hook: Py<PyAny>) -> PyResult<HookHandle> {
        crate::hooks::register_hook(&self.get(), hook, true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Python tracks an object before it is filled, and may collect while it makes the
        // object's dict: the memory is all zeros then.
        // SAFETY: a tensor is one pointer, which is not null once it is there.
        if unsafe { self.place().cast::<*const ()>().read() }.is_null() {
            return Ok(());
        }
        // SAFETY: while the collector runs no other thread is attached, or none runs.
        let t = unsafe { &*self.place() };
        crate::autograd::traverse(t, &visit)
    }
    fn __clear__(&self) {
        crate::autograd::clear(&self.get());
    }
}

/// What modes and classes answer for an operator, where one does.
#[inline]
fn answered(
    slf: &Bound<'_, PyTensor>,
    name: &str,
    others: &[&Bound<'_, PyAny>],
) -> PyResult<Option<Py<PyAny>>> {
    match crate::overrides::active() {
        true => answered_now(slf, name, others),
        false => Ok(None),
    }
}

/// As [`answered`], for an attribute that is an operator.
fn read(slf: &Bound<'_, PyTensor>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    if !crate::overrides::active() {
        return Ok(None);
    }
    let getter = class(slf.py()).getattr(name)?.getattr("__get__")?;
    let args = PyTuple::new(slf.py(), [slf])?;
    crate::overrides::answer(&getter, &args, None, crate::overrides::Call::Operator)
}

#[cold]
fn answered_now(
    slf: &Bound<'_, PyTensor>,
    name: &str,
    others: &[&Bound<'_, PyAny>],
) -> PyResult<Option<Py<PyAny>>> {
    let all = [&[slf.as_any()], others].concat();
    crate::overrides::method(slf.py(), name, &all)
}

/// Says once that a number has no history where the tensor has one.
fn warn_of_scalar(t: &Tensor) {
    if t.requires_grad() {
        host::warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected \
             behavior.\nConsider using tensor.detach() first.",
        );
    }
}

/// Whether an object is a tensor.
///
/// Parameters
/// ----------
/// obj : object
///     Anything.
///
/// Returns
/// -------
/// bool
///     True also for objects of subclasses.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> torch.is_tensor(torch.zeros(2)), torch.is_tensor([1.0])
/// (True, False)
#[pyfunction]
fn is_tensor(obj: &Bound<'_, PyAny>) -> bool {
    obj.cast::<PyTensor>().is_ok()
}

/// An object of the class, or of one below it, from data or sizes.
fn constructed(
    class: &Bound<'_, PyType>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let constructor = class.py().import("pytensorlib._tensor")?;
    // Nobody is asked how an object is made.
    let before = crate::overrides::rest();
    crate::overrides::set_rest(crate::overrides::Rest::All);
    let made = constructor.call_method("_constructed", args, kwargs);
    crate::overrides::set_rest(before);
    let object = make_of(class, borrow(&made?)?)?;
    let cell = object.bind(class.py()).cast::<PyTensor>()?;
    cell.get().claim(object.as_ptr());
    Ok(object)
}

// SAFETY: the interpreter calls this attached, for the class or one below it.
unsafe extern "C" fn new(
    class: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the caller lends a class, a tuple, and a dictionary or null.
    unsafe {
        let py = Python::assume_attached();
        guard(py, "Tensor", || {
            let class = Bound::from_borrowed_ptr(py, class.cast());
            let args = Bound::from_borrowed_ptr(py, args);
            let kwargs = Bound::from_borrowed_ptr_or_opt(py, kwargs);
            let kwargs = kwargs.as_ref().map(|k| k.cast_unchecked::<PyDict>());
            constructed(class.cast_unchecked(), args.cast_unchecked(), kwargs)
        })
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let sample = Tensor::zeros(&[], DType::F32, pytensorlib_core::device::Device::Cpu).py()?;
    let mut slots = crate::operators::slots();
    slots.push(type_slot(ffi::Py_tp_new, new as *mut std::ffi::c_void));
    install(m.py(), sample, slots)?;
    let class = class(m.py());
    crate::convert::set_tensor_class(class.as_type_ptr());
    m.add_class::<PyTensor>()?;
    m.add("Tensor", class)?;
    m.add_function(wrap_pyfunction!(is_tensor, m)?)?;
    Ok(())
}

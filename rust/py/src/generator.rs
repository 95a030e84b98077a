//! Random number generators.

use crate::cell::borrow;
use crate::dtype::PyDevice;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use pytensorlib_core::device::Device;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::gpu::Gpu;
use pytensorlib_core::rng::{self, Generator};
use pytensorlib_core::tensor::Tensor;
use std::sync::Arc;

/// A stream of random numbers: the same seed gives the same numbers, those of PyTorch on the
/// CPU (mt19937). Functions that draw take one as `generator`.
///
/// Parameters
/// ----------
/// device : device or str, optional
///     What the generator says of itself; tensors of any device draw from it.
///
/// References
/// ----------
/// Matsumoto and Nishimura 1998, "Mersenne twister".
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> g = torch.Generator().manual_seed(0)
/// >>> torch.rand(2, generator=g)
/// tensor([0.4963, 0.7682])
#[pyclass(name = "Generator", module = "pytensorlib", frozen, subclass)]
pub struct PyGenerator(pub Arc<Generator>);

/// Python's seeds may be negative: they are taken modulo 2^64.
fn seed_of(seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    let seed = seed.call_method0("__index__").map_err(|_| {
        let class = seed.get_type();
        PyRuntimeError::new_err(format!("manual_seed expected a long, but got {class}"))
    })?;
    if let Ok(s) = seed.extract::<i64>() {
        return Ok(s as u64);
    }
    seed.extract::<u64>().map_err(|_| {
        PyValueError::new_err(format!(
            "manual_seed: Overflow when unpacking long long: expected a value within \
             [-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], got {seed}"
        ))
    })
}

#[pymethods]
impl PyGenerator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let device = match device {
            None => Device::Cpu,
            Some(device) => PyDevice::read(device)?.ok_or_else(|| {
                let class = device.get_type();
                PyTypeError::new_err(match class.name() {
                    Ok(name) => format!(
                        "Generator(): argument 'device' (position 1) must be torch.device, not {name}"
                    ),
                    Err(e) => e.to_string(),
                })
            })?,
        };
        if let Device::Wgpu(index) = device {
            Gpu::at(index).py()?;
        }
        Ok(PyGenerator(Arc::new(Generator::on(
            device,
            rng::DEFAULT_SEED,
        ))))
    }
    /// Start anew with a seed.
    ///
    /// Parameters
    /// ----------
    /// seed : int
    ///     Any integer of 64 bits; negative ones are counted from above.
    ///
    /// Returns
    /// -------
    /// Generator
    ///     The generator itself.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `seed` has more than 64 bits.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.Generator().manual_seed(3).initial_seed()
    /// 3
    fn manual_seed<'py>(
        slf: Bound<'py, Self>,
        seed: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        slf.get().0.manual_seed(seed_of(seed)?);
        Ok(slf)
    }
    /// Start anew with a seed that the system gives.
    ///
    /// Returns
    /// -------
    /// int
    ///     The seed.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> g = torch.Generator()
    /// >>> g.seed() == g.initial_seed()
    /// True
    fn seed(&self) -> u64 {
        self.0.seed()
    }
    /// The seed that the generator was last started with.
    ///
    /// Returns
    /// -------
    /// int
    ///     67280421310721 for one that never was.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.Generator().initial_seed()
    /// 67280421310721
    fn initial_seed(&self) -> u64 {
        self.0.initial_seed()
    }
    /// All that the next numbers depend on.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     uint8, for `set_state`.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> g = torch.Generator()
    /// >>> state = g.get_state()
    /// >>> x = torch.rand(2, generator=g)
    /// >>> _ = g.set_state(state)
    /// >>> torch.equal(torch.rand(2, generator=g), x)
    /// True
    fn get_state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let state = self.0.get_state();
        wrap(
            py,
            Tensor::from_slice(&state, &[state.len()], DType::U8).py()?,
        )
    }
    /// Go back to a state.
    ///
    /// Parameters
    /// ----------
    /// new_state : Tensor
    ///     What `get_state` gave.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     It is not of uint8.
    /// RuntimeError
    ///     It is not a state.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> g, twin = torch.Generator(), torch.Generator().manual_seed(1)
    /// >>> _ = twin.set_state(g.get_state())
    /// >>> twin.initial_seed() == g.initial_seed()
    /// True
    fn set_state<'py>(
        slf: Bound<'py, Self>,
        new_state: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let t = borrow(new_state)?;
        if t.dtype() != DType::U8 {
            return Err(pyo3::exceptions::PyTypeError::new_err(
                "RNG state must be a torch.ByteTensor",
            ));
        }
        let t = t.prepared(DType::U8).py()?;
        // SAFETY: prepared contiguous bytes, read only here.
        slf.get().0.set_state(unsafe { t.slice::<u8>() }).py()?;
        Ok(slf)
    }
    /// A generator that goes on from where this one is.
    ///
    /// Returns
    /// -------
    /// Generator
    ///     It is independent of this one.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> g = torch.Generator()
    /// >>> twin = g.clone_state()
    /// >>> torch.equal(torch.rand(2, generator=g), torch.rand(2, generator=twin))
    /// True
    fn clone_state(&self) -> PyResult<Self> {
        let twin = Arc::new(Generator::on(self.0.device(), 0));
        twin.set_state(&self.0.get_state()).py()?;
        Ok(PyGenerator(twin))
    }
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>, Bound<'py, PyAny>)> {
        let state = pyo3::types::PyBytes::new(slf.py(), &slf.get().0.get_state());
        let place = match slf.get().0.device() {
            Device::Cpu => PyTuple::empty(slf.py()),
            other => PyTuple::new(slf.py(), [other.to_string()])?,
        };
        Ok((slf.get_type().into_any(), place, state.into_any()))
    }
    fn __setstate__(&self, state: &[u8]) -> PyResult<()> {
        self.0.set_state(state).py()
    }
    /// The device that it was asked for.
    ///
    /// Examples
    /// --------
    /// >>> import pytensorlib as torch
    /// >>> torch.Generator().device
    /// device(type='cpu')
    #[getter]
    fn device(&self) -> crate::dtype::PyDevice {
        PyDevice::of(self.0.device())
    }
}

/// Seed the default generators of all devices, which give the same numbers for the same seed.
///
/// Parameters
/// ----------
/// seed : int
///     Any integer of 64 bits; negative ones are counted from above.
///
/// Returns
/// -------
/// Generator
///     The default generator of the CPU.
///
/// Examples
/// --------
/// >>> import pytensorlib as torch
/// >>> g = torch.manual_seed(0)
/// >>> torch.rand(1)
/// tensor([0.4963])
#[pyfunction]
fn manual_seed(seed: &Bound<'_, PyAny>) -> PyResult<PyGenerator> {
    let seed = seed.py().get_type::<PyInt>().call1((seed,))?;
    rng::manual_seed(seed_of(&seed)?);
    Ok(PyGenerator(rng::default_generator(Device::Cpu)))
}

/// Seeds the default generators of all GPUs.
#[pyfunction]
fn _seed_gpus(seed: u64) {
    rng::seed_gpus(seed);
}

/// The default generator of a GPU.
#[pyfunction]
fn _generator_of(index: u8) -> PyGenerator {
    PyGenerator(rng::default_generator(Device::Wgpu(index)))
}

/// The default generators of the GPUs in use.
#[pyfunction]
fn _generators_in_use() -> Vec<PyGenerator> {
    let numbers = Gpu::opened().map(Gpu::number);
    numbers.map(_generator_of).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyGenerator>()?;
    m.add_function(wrap_pyfunction!(manual_seed, m)?)?;
    m.add_function(wrap_pyfunction!(_seed_gpus, m)?)?;
    m.add_function(wrap_pyfunction!(_generator_of, m)?)?;
    m.add_function(wrap_pyfunction!(_generators_in_use, m)?)?;
    m.add(
        "default_generator",
        Py::new(m.py(), PyGenerator(rng::default_generator(Device::Cpu)))?,
    )?;
    Ok(())
}

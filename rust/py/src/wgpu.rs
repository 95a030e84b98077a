//! The GPU from Python: what it is, its memory, and ops that it has no kernel for.

use crate::cell::borrow;
use crate::error::IntoPy;
use crate::object::wrap;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pytensorlib_core::device;
use pytensorlib_core::gpu::{pipeline_cache, Event, Gpu};
use pytensorlib_core::graph::change_settings;
use pytensorlib_core::ops::pointwise::written::written;
use pytensorlib_core::tensor::Tensor;
use pytensorlib_core::transfer::{self, Fallback};

#[pyfunction]
fn _wgpu_available() -> bool {
    Gpu::at(0).is_ok()
}

#[pyfunction]
fn _wgpu_count() -> usize {
    Gpu::count()
}

/// What GPUs are called.
#[pyfunction]
fn _gpu_name() -> &'static str {
    device::gpu_name()
}

/// Lets GPUs be called `wgpu`, `cuda`, `mps` or `xpu`, before anyone was told another name.
#[pyfunction]
fn _answer_as(name: &str) -> PyResult<()> {
    device::set_gpu_name(name).py()
}

/// The GPU that is meant where none is named, on this thread.
#[pyfunction]
fn _wgpu_current() -> u8 {
    device::current_gpu()
}

#[pyfunction]
fn _wgpu_set_current(index: u8) {
    device::set_current_gpu(index);
}

/// The adapter: `name`, `backend`, `driver`, what it can do, and its limits.
#[pyfunction]
fn _wgpu_info(py: Python<'_>, index: u8) -> PyResult<Bound<'_, PyDict>> {
    let info = Gpu::at(index).py()?.info();
    let d = PyDict::new(py);
    d.set_item("name", &info.name)?;
    d.set_item("backend", &info.backend)?;
    d.set_item("driver", &info.driver)?;
    d.set_item("software", info.software)?;
    d.set_item("int64", info.int64)?;
    d.set_item("float64", info.float64)?;
    d.set_item("memory", info.memory)?;
    d.set_item("features", info.feature_names())?;
    let limits = PyDict::new(py);
    for (name, value) in info.limit_values() {
        limits.set_item(name, value)?;
    }
    d.set_item("limits", limits)?;
    let kind = |t| format!("{t:?}").to_lowercase();
    let products = info.cooperative.iter();
    let products = products.map(|p| {
        (
            p.m_size,
            p.n_size,
            p.k_size,
            kind(p.ab_type),
            kind(p.cr_type),
        )
    });
    d.set_item("cooperative_matrices", products.collect::<Vec<_>>())?;
    Ok(d)
}

/// Waits for everything submitted.
#[pyfunction]
fn _wgpu_synchronize(py: Python<'_>, index: u8) -> PyResult<()> {
    let gpu = Gpu::at(index).py()?;
    py.detach(|| gpu.synchronize()).py()
}

/// Bytes in use and reserved, now and at most, and counts of dispatches and submissions.
#[pyfunction]
fn _wgpu_memory_stats(py: Python<'_>, index: u8) -> PyResult<Bound<'_, PyDict>> {
    let gpu = Gpu::at(index).py()?;
    let (m, s) = (gpu.memory(), gpu.stats());
    let d = PyDict::new(py);
    d.set_item("allocated", m.allocated)?;
    d.set_item("reserved", m.reserved)?;
    d.set_item("peak_allocated", m.peak_allocated)?;
    d.set_item("peak_reserved", m.peak_reserved)?;
    d.set_item("live", m.live)?;
    d.set_item("peak_live", m.peak_live)?;
    d.set_item("retries", m.retries)?;
    d.set_item("refused", m.refused)?;
    d.set_item("dispatches", s.dispatches)?;
    d.set_item("submissions", s.submissions)?;
    d.set_item("waits", s.waits)?;
    d.set_item("pipelines", s.pipelines)?;
    d.set_item("kept_pipelines", s.kept_pipelines)?;
    d.set_item("shader_bytes", s.shader_bytes)?;
    d.set_item("bind_groups", s.bind_groups)?;
    d.set_item("allocations", m.allocations)?;
    d.set_item("cap", gpu.memory_cap())?;
    let since = PyDict::new(py);
    since.set_item("allocated", m.since.allocated)?;
    since.set_item("freed", m.since.freed)?;
    since.set_item("buffers", m.since.buffers)?;
    since.set_item("buffers_freed", m.since.buffers_freed)?;
    since.set_item("reserved", m.since.reserved)?;
    since.set_item("reserved_freed", m.since.reserved_freed)?;
    d.set_item("since", since)?;
    Ok(d)
}

/// Lets the peaks that the statistics tell begin anew.
#[pyfunction]
fn _wgpu_reset_peaks(index: u8) -> PyResult<()> {
    Gpu::at(index).py()?.reset_peaks();
    Ok(())
}

/// Lets the sums that the statistics tell begin anew.
#[pyfunction]
fn _wgpu_reset_sums(index: u8) -> PyResult<()> {
    Gpu::at(index).py()?.reset_sums();
    Ok(())
}

/// A place in the stream of a GPU: an event that was recorded.
#[pyclass(name = "_Event", module = "pytensorlib._C", frozen)]
struct PyEvent(Event);

#[pymethods]
impl PyEvent {
    /// Submits what is recorded, and records an event where the stream ends now.
    #[new]
    fn new(py: Python<'_>, index: u8, timed: bool) -> PyResult<PyEvent> {
        let gpu = Gpu::at(index).py()?;
        py.detach(|| gpu.record_event(timed)).py().map(PyEvent)
    }
    /// The number of the GPU.
    #[getter]
    fn index(&self) -> u8 {
        self.0.index()
    }
    /// Whether the GPU has come so far.
    fn has_passed(&self) -> PyResult<bool> {
        self.0.has_passed().py()
    }
    /// Waits until the GPU has come so far.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.wait()).py()
    }
    /// Milliseconds from this event to a later one.
    fn milliseconds_to(&self, py: Python<'_>, end: &PyEvent) -> PyResult<f64> {
        py.detach(|| self.0.milliseconds_to(&end.0)).py()
    }
}

/// Gives unused memory back to the driver.
#[pyfunction]
fn _wgpu_empty_cache(index: u8) -> PyResult<()> {
    Gpu::at(index).py()?.trim();
    Ok(())
}

/// Says whether pointwise kernels wait for others to run as one; returns what was before.
#[pyfunction]
fn _wgpu_set_fuse(index: u8, on: bool) -> PyResult<bool> {
    change_settings().py()?;
    Gpu::at(index).py()?.set_fuse(on).py()
}

/// Says from how many words on invocations make several; returns what was before.
#[pyfunction]
fn _wgpu_set_wide(index: u8, words: usize) -> PyResult<usize> {
    change_settings().py()?;
    Gpu::at(index).py()?.set_wide(words).py()
}

/// Limits the memory taken from the driver, in bytes.
#[pyfunction]
#[pyo3(signature = (index, bytes=None))]
fn _wgpu_set_memory_cap(index: u8, bytes: Option<u64>) -> PyResult<()> {
    Gpu::at(index).py()?.set_memory_cap(bytes);
    Ok(())
}

/// Loses the device on purpose, as a driver may, for tests.
#[pyfunction]
fn _wgpu_lose(index: u8) -> PyResult<()> {
    Gpu::at(index).py()?.lose();
    Ok(())
}

/// The end of the process: keeps what later ones can use.
#[pyfunction]
fn _wgpu_close() {
    Gpu::opened().for_each(Gpu::save);
}

/// How often each op ran on the CPU because it has no GPU kernel.
#[pyfunction]
fn _wgpu_fallbacks() -> Vec<(String, u64)> {
    transfer::fallbacks()
}

/// What happens to an op without a GPU kernel: "warn", "error" or "silent"; None is what the
/// environment says. False where it is none of them.
#[pyfunction]
#[pyo3(signature = (how=None))]
fn _wgpu_set_fallback(how: Option<&str>) -> PyResult<bool> {
    let chosen = how.map(Fallback::parse);
    if chosen == Some(None) {
        return Ok(false);
    }
    change_settings().py()?;
    transfer::set_fallback(chosen.flatten());
    Ok(true)
}

/// What all live buffers are for: of the `n` largest bytes, shape and dtype (or None), graph node and modules; of the
/// other large ones, and of the small ones, how many and their bytes.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn _wgpu_living(
    index: u8,
    n: usize,
) -> PyResult<(
    Vec<(
        u64,
        Option<(Vec<usize>, &'static str)>,
        &'static str,
        String,
    )>,
    [(u64, u64); 2],
)> {
    let living = Gpu::at(index).py()?.living(n);
    let told = living.largest.into_iter().map(|t| {
        let tensor = t
            .tensor
            .map(|(shape, dtype)| (shape.to_vec(), dtype.name()));
        (t.bytes, tensor, t.op, t.modules)
    });
    let together = [living.others, living.small].map(|of| (of.count, of.bytes));
    Ok((told.collect(), together))
}

/// Bytes and float operations in a second, measured; None where the adapter has no timestamps.
#[pyfunction]
fn _wgpu_peaks(py: Python<'_>, index: u8) -> PyResult<Option<(f64, f64)>> {
    let gpu = Gpu::at(index).py()?;
    let peaks = py.detach(|| gpu.peaks()).py()?;
    Ok(peaks.map(|p| (p.bytes, p.operations)))
}

/// Where what later processes can use is kept, and a name for files about this adapter.
#[pyfunction]
fn _wgpu_kept(index: u8) -> PyResult<(Option<std::path::PathBuf>, String)> {
    let info = Gpu::at(index).py()?.info();
    Ok((pipeline_cache::folder(), pipeline_cache::name(info)))
}

/// What WGSL of others computes of each element of these tensors, which have one shape and type.
#[pyfunction]
fn _wgpu_elementwise(py: Python<'_>, body: &str, x: Vec<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
    let x: Vec<Tensor> = x.iter().map(borrow).collect::<PyResult<_>>()?;
    let x: Vec<&Tensor> = x.iter().collect();
    wrap(py, written(body, &x).py()?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_wgpu_available, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_count, m)?)?;
    m.add_function(wrap_pyfunction!(_gpu_name, m)?)?;
    m.add_function(wrap_pyfunction!(_answer_as, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_current, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_set_current, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_info, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_synchronize, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_reset_peaks, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_reset_sums, m)?)?;
    m.add_class::<PyEvent>()?;
    m.add_function(wrap_pyfunction!(_wgpu_empty_cache, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_set_fuse, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_set_wide, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_set_memory_cap, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_lose, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_close, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_fallbacks, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_set_fallback, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_living, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_peaks, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_kept, m)?)?;
    m.add_function(wrap_pyfunction!(_wgpu_elementwise, m)?)?;
    Ok(())
}

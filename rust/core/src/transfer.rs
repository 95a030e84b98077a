//! Tensors between host and GPU, and what happens to ops that have no GPU kernel.

use crate::autograd::mode;
use crate::device::Device;
use crate::dispatch::device;
use crate::dtype::{DType, Scalar};
use crate::error::{Kind, Result};
use crate::gpu::{copy, Acc, Gpu, Operand, Scratch, View, Window};
use crate::host;
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

static COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
static CHOSEN: Mutex<Option<Fallback>> = Mutex::new(None);

/// What happens to an op without a GPU kernel, which runs on the host but for the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// With one warning for each op.
    Warn,
    Error,
    Silent,
}

impl Fallback {
    pub fn parse(text: &str) -> Option<Fallback> {
        Some(match text {
            "warn" => Fallback::Warn,
            "error" => Fallback::Error,
            "silent" => Fallback::Silent,
            _ => return None,
        })
    }
}

/// What the environment says.
fn asked_for() -> Fallback {
    static ASKED: OnceLock<Fallback> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let Ok(text) = std::env::var("PYTENSORLIB_WGPU_FALLBACK") else {
            return Fallback::Warn;
        };
        Fallback::parse(&text).unwrap_or_else(|| {
            host::warn(&format!(
                "PYTENSORLIB_WGPU_FALLBACK is \"warn\", \"error\" or \"silent\", and not {text:?}, \
                 which counts as \"warn\""
            ));
            Fallback::Warn
        })
    })
}

/// Says what happens to an op without a GPU kernel; `None` is what the environment says.
pub fn set_fallback(how: Option<Fallback>) {
    *CHOSEN.lock() = how;
}

/// How often each op ran on the host for want of a kernel.
pub fn fallbacks() -> Vec<(String, u64)> {
    COUNTS.lock().iter().map(|(k, v)| (k.clone(), *v)).collect()
}

/// Counts an op that has no kernel; warns the first time, or raises, as [`set_fallback`] says.
pub fn count_fallback(node: &str, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let mut all = x.iter().copied().chain(y);
    let why = match all.any(lacks_type) {
        true => " (its adapter has no float64)",
        false => "",
    };
    let name = crate::op::function_name(node);
    let chosen = *CHOSEN.lock();
    let how = chosen.unwrap_or_else(asked_for);
    if how == Fallback::Error {
        bail!(
            NoKernel,
            "wgpu: {name} has no GPU kernel for these arguments{why}; allow it to run on the CPU with \
             pytensorlib.wgpu.set_fallback(\"warn\")"
        );
    }
    let first = {
        let mut counts = COUNTS.lock();
        let n = counts.entry(name.clone()).or_insert(0);
        *n += 1;
        *n == 1
    };
    if first && how == Fallback::Warn {
        host::warn(&format!(
            "wgpu: {name} has no GPU kernel for these arguments{why} and runs on the CPU, which copies \
             its operands there and back"
        ));
    }
    Ok(())
}

/// Whether a tensor's GPU cannot compute in its type.
fn lacks_type(t: &Tensor) -> bool {
    lacks(t, t.dtype())
}

fn lacks(t: &Tensor, dtype: DType) -> bool {
    let double = matches!(dtype, DType::F64 | DType::C128);
    double && t.device().is_gpu() && gpu_of(t).is_ok_and(|gpu| !gpu.info().float64)
}

/// Whether a function of these tensors that computes in `dtype` has to run on the host; if their GPU
/// cannot compute in it, that is counted as for an op without a kernel.
pub fn runs_on_host(name: &str, x: &[&Tensor], dtype: DType) -> Result<bool> {
    if x.iter().any(|t| lacks(t, dtype)) {
        count_fallback(name, x, &[])?;
        return Ok(true);
    }
    Ok(!x.iter().all(|t| t.device().is_gpu()))
}

/// What an op's `gpu` answers: whether the launcher had a kernel for these arguments.
pub fn ran(launched: Result<()>) -> Result<bool> {
    match launched {
        Ok(()) => Ok(true),
        Err(e) if e.kind == Kind::NoKernel => Ok(false),
        Err(e) => Err(e),
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Self {
        as_type(t, t.dtype())
    }
}

/// A tensor whose elements count as those of another type.
pub fn as_type(t: &Tensor, dtype: DType) -> Operand<'_> {
    Operand {
        buffer: t.storage().buffer(),
        dtype,
        window: None,
    }
}

/// An error unless all of them lie in row-major order without gaps, as a shader takes them.
pub fn check_contiguous(what: &str, tensors: &[&Tensor]) -> Result<()> {
    ensure!(
        tensors.iter().all(|t| t.is_contiguous()),
        Runtime,
        "wgpu: {what}: tensors must be contiguous"
    );
    Ok(())
}

/// A GPU tensor for a driver, under its own layout or another over the same memory.
pub fn view<'a>(t: &'a Tensor, layout: &'a Layout) -> Result<View<'a>> {
    let Some(buffer) = t.storage().buffer() else {
        bail!(Assertion, "wgpu: a kernel got a tensor in host memory");
    };
    Ok(View {
        buffer,
        offset: layout.offset,
        shape: &layout.shape,
        strides: &layout.strides,
        dtype: t.dtype(),
    })
}

/// The GPU that holds a tensor.
fn gpu_of(t: &Tensor) -> Result<&'static Gpu> {
    match t.device() {
        Device::Wgpu(index) => Gpu::at(index),
        _ => bail!(Assertion, "wgpu: expected a tensor on the GPU"),
    }
}

/// A contiguous tensor on the GPU with the elements of `t`, without history.
pub fn dense(gpu: &Gpu, t: &Tensor) -> Result<Tensor> {
    mode::with_grad(false, || t.to_device(gpu.device())?.contiguous())
}

/// A GPU tensor for a driver.
pub fn whole(t: &Tensor) -> Result<View<'_>> {
    view(t, t.layout())
}

/// Whether elements of two bytes share words with those beside them in their rows alone.
pub fn lies_in_pairs(t: &Tensor) -> bool {
    let layout = t.layout();
    let Some((&width, rows)) = layout.shape.split_last() else {
        return false;
    };
    let places = layout.strides[..rows.len()].iter().copied();
    t.dtype().size() == 2
        && width.is_multiple_of(2)
        && layout.strides[rows.len()] == 1
        && t.offset().is_multiple_of(2)
        && places.into_iter().all(|s| s % 2 == 0)
}

/// Whether a kernel can bind all of a tensor's memory, as it always can on the CPU.
pub fn is_bound_whole(t: &Tensor) -> bool {
    let Device::Wgpu(index) = t.device() else {
        return true;
    };
    t.storage().bytes() <= bindable_bytes(index)
}

/// Whether a kernel can bind a line along a dimension, as it always can on the CPU.
pub fn has_short_lines(x: &Tensor, dim: usize) -> bool {
    has_short_lines_of(x, dim, x.dtype().compute())
}

/// [`has_short_lines`] of this type beside it.
pub fn has_short_lines_of(x: &Tensor, dim: usize, dtype: DType) -> bool {
    is_short(x.device(), x.shape().get(dim).copied().unwrap_or(1), dtype)
}

/// Whether a kernel can bind a line of so many elements, as it always can on the CPU.
pub fn is_short(device: Device, line: usize, dtype: DType) -> bool {
    match device {
        Device::Wgpu(index) => line * dtype.size() <= bindable_bytes(index),
        _ => true,
    }
}

/// A kernel that is refused a tensor of its own making gets parts so many times smaller at most.
pub const SMALLER: usize = 32;

/// Whether it may be for their size that a kernel does not take tensors of so many bytes, or what it makes
/// of them.
pub fn may_be_large(device: Device, bytes: usize) -> bool {
    match device {
        Device::Wgpu(index) => bytes > bindable_bytes(index) / SMALLER,
        _ => false,
    }
}

/// The bytes that a kernel can bind whatever the pool adds to them, up to a fifth.
pub fn bindable_bytes(index: u8) -> usize {
    Gpu::at(index).map_or(0, |gpu| gpu.info().max_binding as usize) / 5 * 4
}

/// The same elements in memory that a kernel can bind, a window on their own; `None` where they
/// reach too far, or over more than one segment.
pub fn windowed(gpu: &Gpu, t: &Tensor) -> Option<Tensor> {
    let buffer = t.storage().buffer()?;
    if buffer.capacity() <= gpu.info().max_binding {
        return Some(t.clone());
    }
    let size = t.dtype().size();
    let (low, high) = match t.numel() {
        0 => (0, 1),
        _ => t.layout().reach(),
    };
    let start = (low * size) as u64 / Window::ALIGN * Window::ALIGN;
    let window = Window {
        start,
        size: ((high * size) as u64 - start).next_multiple_of(4),
    };
    if window.size > gpu.info().max_binding || buffer.splits(window) {
        return None;
    }
    let storage = t.storage().window(window)?;
    let layout = Layout {
        offset: t.offset().min(high) - start as usize / size,
        ..t.layout().clone()
    };
    Some(Tensor::from_storage(storage, layout, t.dtype()))
}

/// The tensor that a driver's result is.
pub fn owned(made: Scratch) -> Tensor {
    let (layout, dtype) = (Layout::contiguous(made.view().shape), made.view().dtype);
    let bytes = made.view().numel() * dtype.size();
    let storage = Storage::on_gpu(made.buffer, bytes);
    storage.label(&layout.shape, dtype);
    Tensor::from_storage(storage, layout, dtype)
}

/// Whether every tensor has a floating type of at most 32 bits, which all shaders take.
pub fn small_floats(x: &[&Tensor]) -> bool {
    let small = |d: DType| d.is_float() && d != DType::F64;
    x.iter().all(|t| small(t.dtype()))
}

/// Writes one value everywhere in a tensor on the GPU, or nowhere on meta.
pub fn fill(y: &Tensor, value: Scalar) -> Result<()> {
    if y.numel() == 0 || y.device() == Device::Meta {
        return Ok(());
    }
    if y.dtype().is_complex() {
        return transfer(&Tensor::full(&[], value, y.dtype(), Device::Cpu)?, y);
    }
    let acc = Acc::of(y.dtype())?;
    let words = match value {
        Scalar::Float(v) => acc.words(v),
        other => acc.int_words(other.i64()),
    };
    copy::fill(gpu_of(y)?, whole(y)?, words)
}

/// Raises for a type that the GPU does not store.
pub fn check_type(dtype: DType) -> Result<()> {
    ensure!(
        !dtype.is_rare(),
        NoKernel,
        "wgpu: {dtype} tensors live on the CPU only; convert the tensor with .to(dtype) first"
    );
    Ok(())
}

/// Copies `x`, converted and broadcast, into `y`; at least one of them is not in host memory. What
/// is on meta takes anything and gives nothing.
pub fn transfer(x: &Tensor, y: &Tensor) -> Result<()> {
    if y.device() == Device::Meta {
        return Ok(());
    }
    x.device().check_data()?;
    check_type(x.dtype())?;
    check_type(y.dtype())?;
    if y.numel() == 0 {
        return Ok(());
    }
    match (x.device(), y.device()) {
        (Device::Wgpu(from), Device::Wgpu(to)) => {
            let complex = x.dtype().is_complex() || y.dtype().is_complex();
            if from == to && complex && x.dtype() != y.dtype() && by_parts(x, y)? {
                return Ok(());
            }
            // No GPU knows the memory of another.
            if from != to || complex && x.dtype() != y.dtype() {
                return transfer(&x.to_host()?, y);
            }
            let from = x.layout().expand_to(y.shape());
            copy::copy(gpu_of(y)?, view(x, &from)?, whole(y)?)
        }
        (Device::Cpu, _) => {
            let wide = x.alias(x.layout().expand_to(y.shape()));
            let dense = wide.prepared(y.dtype())?;
            if !y.is_contiguous() {
                let staged = Tensor::empty(y.shape(), y.dtype(), y.device())?;
                transfer(&dense, &staged)?;
                return transfer(&staged, y);
            }
            let size = y.dtype().size();
            // SAFETY: a prepared tensor is contiguous; its bytes are only read here.
            let bytes =
                unsafe { std::slice::from_raw_parts(dense.bytes_ptr(), dense.numel() * size) };
            gpu_of(y)?.write(buffer(y)?, y.offset() * size, bytes)
        }
        _ => {
            if !x.is_contiguous() {
                let dense = Tensor::empty(x.shape(), x.dtype(), x.device())?;
                transfer(x, &dense)?;
                return transfer(&dense, y);
            }
            let direct = y.is_contiguous() && y.dtype() == x.dtype() && y.shape() == x.shape();
            if !direct {
                let host = Tensor::empty(x.shape(), x.dtype(), Device::Cpu)?;
                transfer(x, &host)?;
                return y.write_from(&host);
            }
            let size = x.dtype().size();
            // SAFETY: `y` is contiguous host memory that this call alone writes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(y.bytes_ptr(), y.numel() * size) };
            host::waits_for_gpu()?;
            host::unlocked(|| gpu_of(x)?.read(buffer(x)?, x.offset() * size, bytes))
        }
    }
}

/// Copies from or to complex numbers of another type, on one GPU; false where it has no kernel for these types.
fn by_parts(x: &Tensor, y: &Tensor) -> Result<bool> {
    let parts = |t: &Tensor| match t.dtype().is_complex() {
        true => [Some(t.component(0)), Some(t.component(1))],
        false => [Some(t.clone()), None],
    };
    // What has either part is true.
    if y.dtype() == DType::Bool {
        return Ok(false);
    }
    for part in parts(x).into_iter().zip(parts(y)) {
        let done = match part {
            (Some(x), Some(y)) => transfer(&x, &y),
            (None, Some(y)) => fill(&y, 0.0.into()),
            (_, None) => Ok(()),
        };
        if !ran(done)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn buffer(t: &Tensor) -> Result<&crate::gpu::Buffer> {
    match t.storage().buffer() {
        Some(b) => Ok(b),
        None => bail!(Assertion, "wgpu: expected a tensor on the GPU"),
    }
}

/// Moves operands that may stay behind (0-d tensors on the CPU) to the device of the others.
pub fn gathered(x: &[&Tensor]) -> Result<Vec<Tensor>> {
    let to = device(x);
    ensure!(
        to != Device::Cpu,
        Assertion,
        "wgpu: no operand is on the GPU"
    );
    x.iter()
        .map(|t| {
            if t.device() == to {
                return Ok((*t).clone());
            }
            let moved = Tensor::empty(t.shape(), t.dtype(), to)?;
            transfer(t, &moved)?;
            Ok(moved.with_wrapped(t.is_wrapped()))
        })
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn there() -> Device {
        Device::Wgpu(0)
    }

    /// A contiguous tensor on the GPU, with undefined elements.
    pub fn fresh(shape: &[usize], dtype: DType) -> Tensor {
        Tensor::empty(shape, dtype, there()).unwrap()
    }

    /// A contiguous tensor on the GPU from host elements.
    pub fn put<T: Copy>(shape: &[usize], dtype: DType, data: &[T]) -> Tensor {
        let host = Tensor::from_slice(data, shape, dtype).unwrap();
        host.to_device(there()).unwrap()
    }

    /// The elements of a contiguous tensor on the GPU.
    pub fn get<T: Copy>(t: &Tensor) -> Vec<T> {
        let host = t.to_host().unwrap();
        // SAFETY: the host's copy is contiguous, and the callers name its type.
        unsafe { host.slice::<T>().to_vec() }
    }
}

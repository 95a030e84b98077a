//! The kinds of devices.

use crate::error::Result;
use crate::machine::read;
use crate::{bail, ensure};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What programs may call a GPU: its own name, and those of PyTorch's devices that it can answer to.
/// Its own one always works.
pub const GPU_NAMES: [&str; 4] = ["wgpu", "cuda", "mps", "xpu"];
static NAME: AtomicUsize = AtomicUsize::new(0);
/// Whether a GPU was named to anyone: from then on its name stays.
static TOLD: AtomicBool = AtomicBool::new(false);

/// What a GPU is called.
pub fn gpu_name() -> &'static str {
    GPU_NAMES[NAME.load(Ordering::Relaxed)]
}

/// What a GPU is called at the start of an error, as PyTorch writes it there.
pub fn gpu_title() -> String {
    match gpu_name() {
        own if own == GPU_NAMES[0] => own.to_string(),
        other => other.to_uppercase(),
    }
}

/// Whether a kind of device means a GPU.
pub fn names_gpu(kind: &str) -> bool {
    kind == GPU_NAMES[0] || kind == gpu_name()
}

/// The name of a GPU, for someone who keeps it.
pub fn tell_gpu_name() -> &'static str {
    if !TOLD.load(Ordering::Relaxed) {
        TOLD.store(true, Ordering::Relaxed);
    }
    gpu_name()
}

/// Lets GPUs be called what the environment says.
pub fn check() -> Result<()> {
    let known = |t: &str| GPU_NAMES.iter().position(|&n| n == t);
    let must = GPU_NAMES.join(", ");
    let must = format!("one of {must}");
    if let Some(index) = read("PYTENSORLIB_GPU_AS", &must, known)? {
        NAME.store(index, Ordering::Relaxed);
    }
    Ok(())
}

/// Lets GPUs be called one of [`GPU_NAMES`], while nobody was told another name.
pub fn set_gpu_name(name: &str) -> Result<()> {
    let Some(index) = GPU_NAMES.iter().position(|&n| n == name) else {
        bail!(
            Value,
            "a GPU can answer as one of {}, got '{name}'",
            GPU_NAMES.join(", ")
        );
    };
    ensure!(
        index == NAME.load(Ordering::Relaxed) || !TOLD.load(Ordering::Relaxed),
        Runtime,
        "a GPU cannot answer as '{name}' any more: a device was made that is called '{}'. Set the \
         environment variable PYTENSORLIB_GPU_AS={name}, or call wgpu.answer_as before anything \
         is made",
        gpu_name()
    );
    NAME.store(index, Ordering::Relaxed);
    Ok(())
}

/// Why there is no device of a kind that PyTorch has, and what to do.
fn absent(kind: &str) -> String {
    let gpu = gpu_name();
    let api = match kind {
        "cuda" | "hip" => "CUDA",
        "mps" => "MPS",
        "xpu" => "XPU",
        "vulkan" => "device of that name",
        _ => return format!("tensors live on 'cpu', '{gpu}' or 'meta' here"),
    };
    // ROCm's PyTorch calls its GPUs "cuda", and scripts for Vulkan's can take any name.
    let name = if matches!(kind, "mps" | "xpu") {
        kind
    } else {
        "cuda"
    };
    let off = match kind {
        "hip" | "vulkan" => String::new(),
        _ => format!(" (torch.{kind}.is_available() is False)"),
    };
    let told = format!("there is no {api} here{off}; GPUs of every vendor are device '{gpu}'");
    if name == gpu {
        return told;
    }
    format!(
        "{told}, and answer as '{name}' in `python -m pytensorlib --gpu-as {name} script.py`, or \
         under the environment variable PYTENSORLIB_GPU_AS={name}"
    )
}

/// What devices there are, for someone who asked for one of another name.
pub fn near(kind: &str) -> String {
    let gpu = gpu_name();
    // Most who are wrong mean a GPU, "metal" too.
    let meant = match kind.to_lowercase().as_str() {
        "meta" => "meta",
        text if text.starts_with("cp") || text == "cup" => "cpu",
        _ => gpu,
    };
    format!("here: cpu, {gpu}, meta; did you mean '{meant}'?")
}

/// Where a storage lives. A closed set: only [`crate::dispatch::run`] matches on it to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    /// An adapter through wgpu, by its number: the best one is 0.
    Wgpu(u8),
    /// Nowhere: shapes, strides and types without memory. Calls are planned and nothing runs.
    Meta,
}

impl Device {
    /// Parses `cpu`, `wgpu` (the [current](current_gpu) one) and `wgpu:1`, or with another [name](gpu_name) of a
    /// GPU. Whether there is such an adapter shows when memory is taken from it.
    pub fn parse(text: &str) -> Result<Device> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text, None),
        };
        if names_gpu(kind) {
            match index.map(str::parse) {
                None => return Ok(Device::Wgpu(current_gpu())),
                Some(Ok(index)) => return Ok(Device::Wgpu(index)),
                Some(Err(_)) => {}
            }
        }
        match text {
            "cpu" | "cpu:0" => Ok(Device::Cpu),
            "meta" => Ok(Device::Meta),
            _ if text.starts_with("meta:") => Ok(Device::Meta),
            _ => bail!(Runtime, "device {text}: {}", absent(kind)),
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Wgpu(_) => tell_gpu_name(),
            Device::Meta => "meta",
        }
    }

    pub fn is_gpu(self) -> bool {
        matches!(self, Device::Wgpu(_))
    }

    /// Where the elements of a tensor that goes there are made: in host memory, if anywhere.
    pub fn maker(self) -> Device {
        match self {
            Device::Meta => Device::Meta,
            _ => Device::Cpu,
        }
    }

    /// Whether tensors there have elements that can be read: an error on meta.
    pub fn check_data(self) -> Result<()> {
        ensure!(
            self != Device::Meta,
            NotImplemented,
            "Cannot copy out of meta tensor; no data! It has a shape, strides and a dtype, but no \
             elements that could be read"
        );
        Ok(())
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Cpu | Device::Meta => f.write_str(self.kind()),
            Device::Wgpu(index) => write!(f, "{}:{index}", self.kind()),
        }
    }
}

thread_local!(static CURRENT: Cell<u8> = const { Cell::new(0) });

/// The GPU that is meant where no number is said, on this thread.
pub fn current_gpu() -> u8 {
    CURRENT.get()
}

pub fn set_current_gpu(index: u8) {
    CURRENT.set(index);
}

thread_local!(static DEFAULT: Cell<Device> = const { Cell::new(Device::Cpu) });

/// Where factories put tensors that name no device, on this thread (`set_default_device`).
pub fn default_device() -> Device {
    DEFAULT.get()
}

pub fn set_default_device(device: Device) {
    DEFAULT.set(device);
}

//! The two kinds of devices.

use crate::bail;
use crate::error::Result;
use std::sync::atomic::{AtomicU16, Ordering};

/// Where a storage lives. A closed set: only [`crate::dispatch::run`] matches on it to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    /// An adapter through wgpu, by its number: the best one is 0.
    Wgpu(u8),
}

impl Device {
    /// Parses `cpu`, `wgpu` (the first one) and `wgpu:1`. Whether there is such an adapter shows
    /// when memory is taken from it.
    pub fn parse(text: &str) -> Result<Device> {
        if let Some(Ok(index)) = text.strip_prefix("wgpu:").map(str::parse) {
            return Ok(Device::Wgpu(index));
        }
        match text {
            "cpu" | "cpu:0" => Ok(Device::Cpu),
            "wgpu" => Ok(Device::Wgpu(0)),
            _ if text.starts_with("cuda") => bail!(
                Runtime,
                "device {text}: there is no CUDA here (torch.cuda.is_available() is False); GPUs \
                 of every vendor are device 'wgpu'"
            ),
            _ => bail!(
                Runtime,
                "device {text}: tensors live on 'cpu' or 'wgpu' here"
            ),
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Wgpu(_) => "wgpu",
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Wgpu(index) => write!(f, "wgpu:{index}"),
        }
    }
}

/// Zero for the CPU, else one more than the adapter's number.
static DEFAULT: AtomicU16 = AtomicU16::new(0);

/// Where factories put tensors that name no device (`set_default_device`).
pub fn default_device() -> Device {
    match DEFAULT.load(Ordering::Relaxed) {
        0 => Device::Cpu,
        n => Device::Wgpu((n - 1) as u8),
    }
}

pub fn set_default_device(device: Device) {
    let n = match device {
        Device::Cpu => 0,
        Device::Wgpu(index) => index as u16 + 1,
    };
    DEFAULT.store(n, Ordering::Relaxed);
}

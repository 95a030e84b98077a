//! The two devices.

use crate::bail;
use crate::error::Result;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a storage lives. A closed set: only [`crate::dispatch::run`] matches on it to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    /// The default adapter through wgpu.
    Wgpu,
}

impl Device {
    /// Parses `cpu`, `wgpu` and `wgpu:0`.
    pub fn parse(text: &str) -> Result<Device> {
        match text {
            "cpu" | "cpu:0" => Ok(Device::Cpu),
            "wgpu" | "wgpu:0" => Ok(Device::Wgpu),
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
            Device::Wgpu => "wgpu",
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Wgpu => "wgpu:0",
        })
    }
}

static DEFAULT_WGPU: AtomicBool = AtomicBool::new(false);

/// Where factories put tensors that name no device (`set_default_device`).
pub fn default_device() -> Device {
    if DEFAULT_WGPU.load(Ordering::Relaxed) {
        Device::Wgpu
    } else {
        Device::Cpu
    }
}

pub fn set_default_device(device: Device) {
    DEFAULT_WGPU.store(device == Device::Wgpu, Ordering::Relaxed);
}

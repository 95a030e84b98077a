//! The kinds of devices.

use crate::error::Result;
use crate::{bail, ensure};
use std::cell::Cell;

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
    /// Parses `cpu`, `wgpu` (the [current](current_gpu) one) and `wgpu:1`. Whether there is such an adapter shows
    /// when memory is taken from it.
    pub fn parse(text: &str) -> Result<Device> {
        if let Some(Ok(index)) = text.strip_prefix("wgpu:").map(str::parse) {
            return Ok(Device::Wgpu(index));
        }
        match text {
            "cpu" | "cpu:0" => Ok(Device::Cpu),
            "wgpu" => Ok(Device::Wgpu(current_gpu())),
            "meta" => Ok(Device::Meta),
            _ if text.starts_with("meta:") => Ok(Device::Meta),
            _ if text.starts_with("cuda") => bail!(
                Runtime,
                "device {text}: there is no CUDA here (torch.cuda.is_available() is False); GPUs \
                 of every vendor are device 'wgpu'"
            ),
            _ => bail!(
                Runtime,
                "device {text}: tensors live on 'cpu', 'wgpu' or 'meta' here"
            ),
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Wgpu(_) => "wgpu",
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
            Device::Wgpu(index) => write!(f, "wgpu:{index}"),
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

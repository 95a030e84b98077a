//! The two devices.

use crate::bail;
use crate::error::Result;

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
            _ => bail!(
                Runtime,
                "Expected one of cpu, wgpu device type at start of device string: {text}"
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

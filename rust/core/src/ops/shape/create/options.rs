//! The keyword arguments of factories.

use crate::arg;
use crate::device::{default_device, Device};
use crate::dispatch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, Dest, Signature, Value};
use crate::tensor::Tensor;

/// The keyword arguments that every factory takes: `dtype`, `layout`, `device`, `pin_memory`,
/// `requires_grad`.
pub struct Options {
    pub dtype: Option<DType>,
    pub device: Option<Device>,
    pub requires_grad: bool,
}

impl Options {
    /// Reads them. Host memory needs no pinning: `pin_memory` is accepted.
    pub fn read<Sig: Signature>(a: &Args<Sig>) -> Result<Options> {
        let at = arg!(requires_grad);
        let requires_grad = !a.is_none(at) && a.bool(at)?;
        Ok(Options {
            dtype: a.dtype(arg!(dtype)),
            device: a.device(arg!(device)),
            requires_grad,
        })
    }

    /// The type asked for, that of `out=`, or `default`.
    pub fn dtype_or(&self, a: &Args, default: impl FnOnce() -> DType) -> Result<DType> {
        match (a.dest, self.dtype) {
            (Dest::Out(out), Some(d)) => {
                ensure!(
                    out[0].dtype() == d,
                    Runtime,
                    "{}(): dtype {} does not match dtype of out parameter ({})",
                    a.schema.name,
                    d.scalar_name(),
                    out[0].dtype().scalar_name()
                );
                Ok(d)
            }
            (Dest::Out(out), None) => Ok(out[0].dtype()),
            (_, Some(d)) => Ok(d),
            (_, None) => Ok(default()),
        }
    }

    pub fn device_or(&self, a: &Args) -> Device {
        match a.dest {
            Dest::Out(out) => out[0].device(),
            _ => self.device.unwrap_or_else(default_device),
        }
    }

    /// Brings a new tensor to where it goes.
    pub fn give(&self, a: &Args, y: Tensor) -> Result<Value> {
        if let Dest::Out(out) = a.dest {
            out[0].check_inplace(false)?;
            return Ok(dispatch::deliver(&y, &out[0])?.into());
        }
        if self.requires_grad {
            y.require_grad()?;
        }
        Ok(Value::Tensor(y))
    }
}

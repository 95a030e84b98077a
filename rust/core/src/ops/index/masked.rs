//! Elements under a mask, written to: `masked_fill`, `masked_scatter`.

use super::mask::{self, MaskedFill};
use super::put;
use crate::arg;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::op::TensorMeta;
use crate::ops::pointwise::ternary::where_;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape::Show;

pub(super) fn masked_fill<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, mask, value) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(mask))?,
        a.tensor(arg!(value))?,
    );
    if !value.is_wrapped() {
        ensure!(
            value.ndim() == 0,
            Runtime,
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} \
             dimension(s).",
            value.ndim()
        );
    }
    // A value on the GPU is not waited for.
    let value = &match value.dtype() != x.dtype() && value.device() == Device::Cpu {
        true => mask::fitting(x, value)?,
        false => value.clone(),
    };
    if x.dtype().is_complex() {
        ensure!(
            mask.dtype() == DType::Bool,
            Runtime,
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().c_name()
        );
        let y = where_(mask, &value.to_dtype(x.dtype())?, x)?;
        return match a.dest {
            Dest::InPlace => {
                dispatch::destination(x, &TensorMeta::of(&y), true)?;
                x.copy_from(&y)?;
                Ok(x.clone().into())
            }
            _ => Ok(y.into()),
        };
    }
    if let Dest::InPlace = a.dest {
        if let Ok(shape) = mask::masked_shape(x, mask) {
            ensure!(
                shape == *x.shape(),
                Runtime,
                "output with shape {} doesn't match the broadcast shape {}",
                Show(x.shape()),
                Show(&shape)
            );
        }
    }
    a.call(MaskedFill, &[x, mask, &value.apart_from(x)?])
}

pub(super) fn masked_scatter<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, m, source) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(mask))?,
        a.tensor(arg!(source))?,
    );
    ensure!(
        x.dtype() == source.dtype(),
        Runtime,
        "masked_scatter: expected self and source to have same dtypes but got{} and {}",
        x.dtype().scalar_name(),
        source.dtype().scalar_name()
    );
    let shape = mask::masked_shape(x, m)?;
    let inplace = matches!(a.dest, Dest::InPlace);
    ensure!(
        !inplace || shape == *x.shape(),
        Runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        Show(x.shape()),
        Show(&shape)
    );
    let (op, values, columns) = mask::masked_scatter_parts(&shape, m, source)?;
    let x = if inplace {
        x.clone()
    } else {
        x.expand_to(&shape)?
    };
    put(a, op, &x, &values, &columns)
}

//! Types and shapes of what several inputs give, and the types that an op refuses.

use crate::dtype::{check_range, DType, Promotion, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::meta::Meta;
use crate::shape::{self, Dims};
use crate::tensor::Tensor;

/// The type to which the inputs are promoted.
pub fn promoted(x: &[&Meta]) -> Result<DType> {
    let first = x[0];
    if x.len() == 1 || (x.len() == 2 && first.dtype() == x[1].dtype() && !first.is_wrapped()) {
        return Ok(first.dtype());
    }
    let mut p = Promotion::default();
    for t in x {
        p.add(t.dtype(), t.ndim(), t.is_wrapped());
    }
    p.result()
}

/// The shape to which the inputs broadcast.
pub fn common_shape(x: &[&Meta]) -> Result<Dims> {
    let mut shape = Dims::from_slice(x[0].shape());
    for t in &x[1..] {
        if t.shape() != &shape {
            shape = shape::broadcast(&shape, t.shape())?;
        }
    }
    Ok(shape)
}

/// Raises for bool, in PyTorch's words.
pub fn no_bool(name: &str, t: DType) -> Result<()> {
    ensure!(
        t != DType::Bool,
        NoKernel,
        "\"{name}_cpu\" not implemented for 'Bool'"
    );
    Ok(())
}

/// Raises for complex numbers, which have no order.
pub fn no_complex(name: &str, t: DType) -> Result<()> {
    refuse_complex(name, "not implemented", t)
}

/// Raises for complex numbers, in the words that PyTorch has for it here.
pub fn refuse_complex(name: &str, why: &str, t: DType) -> Result<()> {
    ensure!(
        !t.is_complex(),
        Runtime,
        "{name} {why} for complex tensors."
    );
    Ok(())
}

/// Refuses a number that a type cannot hold: one beyond its range, or with an imaginary part where
/// the type has none. Of every number bool holds whether it is zero.
pub fn fits(number: &Tensor, dtype: DType) -> Result<()> {
    if dtype == DType::Bool {
        return Ok(());
    }
    if !number.dtype().is_complex() {
        return check_range(number.item()?, dtype);
    }
    let (re, im) = number.complex_item()?;
    ensure!(
        dtype.is_complex() || im == 0.0,
        Runtime,
        "value cannot be converted to type {} without overflow: {re}{im:+}j",
        dtype.number_name()
    );
    check_range(re.into(), dtype)?;
    match dtype.is_complex() {
        true => check_range(im.into(), dtype),
        false => Ok(()),
    }
}

/// A number that [`fits`] a type, without an imaginary part where the type has none.
pub fn held(number: &Tensor, dtype: DType) -> Result<Tensor> {
    if !number.dtype().is_complex() || dtype.is_complex() {
        return Ok(number.clone());
    }
    let (re, im) = number.complex_item()?;
    Tensor::number(match dtype {
        DType::Bool => (re != 0.0 || im != 0.0).into(),
        _ => Scalar::Float(re),
    })
}

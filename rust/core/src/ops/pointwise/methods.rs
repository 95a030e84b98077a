//! Arithmetic on tensors for the rest of the core.

use super::binary::*;
use super::unary::*;
use super::{apply, apply_};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::tensor::Tensor;

const ONE: Scalar = Scalar::Int(1);

impl Tensor {
    pub fn add(&self, o: &Tensor) -> Result<Tensor> {
        if self.is_sparse() || o.is_sparse() {
            return self.add_sparse(o, ONE);
        }
        apply(Add { alpha: ONE }, [self, o])
    }
    /// `self += o` in place.
    pub fn add_into(&self, o: &Tensor) -> Result<()> {
        if o.is_sparse() {
            return self.add_sparse_into(o, ONE);
        }
        apply_(Add { alpha: ONE }, [self, o]).map(|_| ())
    }
    pub fn sub(&self, o: &Tensor) -> Result<Tensor> {
        apply(Sub { alpha: ONE }, [self, o])
    }
    pub fn mul(&self, o: &Tensor) -> Result<Tensor> {
        apply(Mul, [self, o])
    }
    pub fn div(&self, o: &Tensor) -> Result<Tensor> {
        apply(Div, [self, o])
    }
    pub fn neg(&self) -> Result<Tensor> {
        apply(Neg, [self])
    }
    pub fn add_scalar(&self, v: impl Into<Scalar>) -> Result<Tensor> {
        self.add(&Tensor::number(v.into())?)
    }
    pub fn mul_scalar(&self, v: impl Into<Scalar>) -> Result<Tensor> {
        self.mul(&Tensor::number(v.into())?)
    }
    pub fn div_scalar(&self, v: impl Into<Scalar>) -> Result<Tensor> {
        self.div(&Tensor::number(v.into())?)
    }
}

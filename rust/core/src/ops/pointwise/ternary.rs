//! Functions of three tensors.

use super::{apply, c};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::pointwise;
use crate::tensor::Tensor;

pointwise! {
    /// x where the condition holds, y elsewhere; the condition comes last, so that the types of
    /// the values decide.
    op Where[3] = "WhereBackward0", Same;
    f |_, [x, y, m]| R::select(m.equal(c(0.0)), y, x);
    int |_, [x, y, m]| if m != 0 { x } else { y };
    df |_, [_x, _y, m], _, g|
        [4, false] R::select(m.equal(c(0.0)), c(0.0), g),
        [4, false] R::select(m.equal(c(0.0)), g, c(0.0)),
        [0, false] c(0.0);
}

/// `where(condition, x, y)`.
pub fn where_(m: &Tensor, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(
        m.dtype() == DType::Bool || m.dtype() == DType::U8,
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        m.dtype().scalar_name()
    );
    apply(Where, [x, y, m])
}

//! The public functions of pointwise ops.

use super::binary::*;
use super::unary::*;

crate::entries! {
    /// self + alpha * other.
    "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", PW,
    |a| a.apply(Add { alpha: a.scalar(2)? }, [a.tensor(0)?, a.tensor(1)?]);
    /// self - alpha * other.
    "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", PW,
    |a| a.apply(Sub { alpha: a.scalar(2)? }, [a.tensor(0)?, a.tensor(1)?]);
    /// self * other.
    "mul(Tensor self, Tensor|Scalar other) -> Tensor", PW,
    |a| a.apply(Mul, [a.tensor(0)?, a.tensor(1)?]);
    /// e to the power of each element.
    "exp(Tensor self) -> Tensor", PW, |a| a.apply(Exp, [a.tensor(0)?]);
    /// x * sigmoid(x), elementwise.
    "silu(Tensor self) -> Tensor", NN | OUT | DIRECT, |a| a.apply(Silu, [a.tensor(0)?]);
}

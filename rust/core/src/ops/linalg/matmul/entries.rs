//! The public forms.

use super::check::*;
use super::forms::{addr, inner, multi_dot, outer};
use super::MatMul;
use crate::arg;
use crate::dispatch;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::pointwise::arithmetic::scaled;
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure};

impl Tensor {
    /// `matmul`: the product of vectors, matrices or batches of matrices.
    pub fn matmul(&self, o: &Tensor) -> Result<Tensor> {
        dispatch::call1(matmul_op(self, o)?, &[self, o])
    }

    /// `mm`.
    pub fn mm(&self, o: &Tensor) -> Result<Tensor> {
        check_mm(self, o)?;
        dispatch::call1(MatMul::new("MmBackward0").like(self, o), &[self, o])
    }

    /// `bmm`.
    pub fn bmm(&self, o: &Tensor) -> Result<Tensor> {
        check_bmm("bmm", self, o)?;
        dispatch::call1(MatMul::new("BmmBackward0"), &[self, o])
    }

    /// `dot`.
    pub fn dot(&self, o: &Tensor) -> Result<Tensor> {
        check_dot(self, o)?;
        dispatch::call1(MatMul::new("DotBackward0"), &[self, o])
    }

    /// `linear`: `self w' + bias`.
    pub fn linear(&self, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        if w.ndim() == 1 {
            if let Some(c) = bias {
                bail!(
                    Runtime,
                    "linear: mat2 must be a matrix, got 1-D tensor for the weight with a bias of \
                     shape {}",
                    Show(c.shape())
                );
            }
            return self.matmul(w);
        }
        ensure!(
            w.ndim() == 2,
            Runtime,
            "linear: t() expects a tensor with <= 2 dimensions, but the weight is {}D",
            w.ndim()
        );
        if let Some(c) = bias.filter(|c| c.dtype() != w.dtype() && !c.dtype().is_complex()) {
            // PyTorch adds the bias to a product of its own here, and so takes other types.
            if self.ndim() > 2 && !self.is_contiguous() {
                return self.linear(w, None)?.add(&c.to_dtype(w.dtype())?);
            }
        }
        let op = linear_op(self, w, bias)?;
        match bias {
            Some(c) => dispatch::call1(op, &[c, self, w]),
            None => dispatch::call1(op, &[self, w]),
        }
    }

    /// `addmm`.
    pub fn addmm(&self, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
        check_addmm(self, a, b)?;
        dispatch::call1(
            MatMul::plus("AddmmBackward0", beta, alpha).like(a, b),
            &[self, a, b],
        )
    }
}

crate::entries! {
    /// The product of two matrices.
    "mm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(mat2))?);
        check_mm(x, y)?;
        a.call(MatMul::new("MmBackward0").like(x, y), &[x, y])
    };
    /// The products of two batches of matrices.
    "bmm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(mat2))?);
        check_bmm("bmm", x, y)?;
        a.call(MatMul::new("BmmBackward0"), &[x, y])
    };
    /// The product of vectors, matrices or batches of matrices, which broadcast.
    "matmul(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.call(matmul_op(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?, &[a.tensor(arg!(self))?, a.tensor(arg!(other))?]);
    /// The product of vectors, matrices or batches of matrices, which broadcast.
    "matmul(Tensor input, Tensor other) -> Tensor", LINALG | OUT | DIRECT,
    |a| a.call(matmul_op(a.tensor(arg!(input))?, a.tensor(arg!(other))?)?, &[a.tensor(arg!(input))?, a.tensor(arg!(other))?]);
    /// The product of a matrix and a vector.
    "mv(Tensor self, Tensor vec) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(vec))?);
        check_ranks("mv", [x, y], [2, 1])?;
        ensure!(
            x.ndim() == 2 && y.ndim() == 1,
            Runtime,
            "mv: vector + matrix @ vector expected, got 1, {}, {}",
            x.ndim(),
            y.ndim()
        );
        check_mv(None, x, y, x.size(0))?;
        a.call(MatMul::new("MvBackward0").like(x, y), &[x, y])
    };
    /// The sum of the products of two vectors' elements.
    "dot(Tensor self, Tensor tensor) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        check_dot(a.tensor(arg!(self))?, a.tensor(arg!(tensor))?)?;
        a.call(MatMul::new("DotBackward0"), &[a.tensor(arg!(self))?, a.tensor(arg!(tensor))?])
    };
    /// The sum of the products of two vectors' elements.
    "vdot(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        check_dot(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?;
        a.call(MatMul::new("VdotBackward0"), &[&a.tensor(arg!(self))?.conj()?, a.tensor(arg!(other))?])
    };
    /// Sums of products over the last dimension of both.
    "inner(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT,
    |a| Ok(inner(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?.into());
    /// The product of each element of one vector with each of the other.
    "outer(Tensor self, Tensor vec2) -> Tensor", FN | METHOD | CASTS | WHOLE,
    |a| Ok(outer("outer", a.tensor(arg!(self))?, a.tensor(arg!(vec2))?)?.into());
    /// As `outer`.
    "ger(Tensor self, Tensor vec2) -> Tensor", FN | METHOD | CASTS | WHOLE,
    |a| Ok(outer("outer", a.tensor(arg!(self))?, a.tensor(arg!(vec2))?)?.into());
    /// beta * self + alpha * (mat1 @ mat2). With beta 0, self is not read.
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | SCALES | WHOLE,
    |a| {
        let (c, x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(mat1))?, a.tensor(arg!(mat2))?);
        check_addmm(c, x, y)?;
        let ((c, beta), (x, alpha)) = (scaled(a, arg!(self), arg!(beta))?, scaled(a, arg!(mat1), arg!(alpha))?);
        a.call(MatMul::plus("AddmmBackward0", beta, alpha).like(&x, y), &[&c, &x, y])
    };
    /// beta * self + alpha * (mat @ vec). With beta 0, self is not read.
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | SCALES | WHOLE,
    |a| {
        let (c, x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(mat))?, a.tensor(arg!(vec))?);
        ensure!(
            x.ndim() == 2 && y.ndim() == 1 && c.ndim() <= 1,
            Runtime,
            "addmv: vector + matrix @ vector expected, got {}, {}, {}",
            c.ndim(),
            x.ndim(),
            y.ndim()
        );
        check_mv(Some(c), x, y, x.size(0))?;
        let ((c, beta), (x, alpha)) = (scaled(a, arg!(self), arg!(beta))?, scaled(a, arg!(mat), arg!(alpha))?);
        a.call(MatMul::plus("AddmvBackward0", beta, alpha).like(&x, y), &[&c, &x, y])
    };
    /// beta * self + alpha * (batch1 @ batch2). With beta 0, self is not read.
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | SCALES | WHOLE,
    |a| {
        let (c, x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(batch1))?, a.tensor(arg!(batch2))?);
        ensure!(
            c.dtype() == x.dtype() && c.dtype() == y.dtype(),
            Runtime,
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
            c.dtype().c_name(),
            x.dtype().c_name(),
            y.dtype().c_name()
        );
        check_bmm("baddbmm", x, y)?;
        expands(c, &[x.size(0), x.size(1), y.size(2)])?;
        let ((c, beta), (x, alpha)) = (scaled(a, arg!(self), arg!(beta))?, scaled(a, arg!(batch1), arg!(alpha))?);
        a.call(MatMul::plus("BaddbmmBackward0", beta, alpha), &[&c, &x, y])
    };
    /// beta * self + alpha * the sum of (batch1 @ batch2) over the batch.
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | SCALES | WHOLE,
    |a| {
        let (c, x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(batch1))?, a.tensor(arg!(batch2))?);
        ensure!(
            x.ndim() != 3 || y.ndim() != 3 || x.size(0) == y.size(0),
            Runtime,
            "addbmm: batch1 and batch2 must have same number of batches, got {} and {}",
            x.size(0),
            y.size(0)
        );
        same_as_self(c, x)?;
        same_factors(x, y)?;
        check_bmm("addbmm", x, y)?;
        expands(c, &[x.size(1), y.size(2)])?;
        let ((c, beta), (x, alpha)) = (scaled(a, arg!(self), arg!(beta))?, scaled(a, arg!(batch1), arg!(alpha))?);
        let op = MatMul::plus("AddbmmBackward0", beta, alpha);
        a.call(MatMul { sum: true, ..op }, &[&c, &x, y])
    };
    /// beta * self + alpha * outer(vec1, vec2). With beta 0, self is not read.
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | CASTS | SCALES | WHOLE,
    |a| {
        let ((c, beta), (x, alpha)) = (scaled(a, arg!(self), arg!(beta))?, scaled(a, arg!(vec1), arg!(alpha))?);
        Ok(addr(&c, &x, a.tensor(arg!(vec2))?, beta, alpha)?.into())
    };
    /// input @ weight' + bias.
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", NN | OUT,
    |a| Ok(a.tensor(arg!(input))?.linear(a.tensor(arg!(weight))?, a.opt_tensor(arg!(bias)))?.into());
    /// The product of a chain of matrices, in the order with the fewest multiplications.
    "multi_dot(Tensor[] tensors) -> Tensor", LINALG | OUT,
    |a| Ok(multi_dot(a.tensors(arg!(tensors))?)?.into());
    /// The product of a chain of matrices; deprecated in favour of `linalg.multi_dot`.
    "chain_matmul(Tensor[] matrices=[]) -> Tensor", FN | OUT,
    |a| {
        crate::host::warn_once(
            "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use \
             torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather \
             than multiple parameters.",
        );
        let chain = a.tensors(arg!(matrices))?;
        ensure!(!chain.is_empty(), Runtime, "chain_matmul(): Expected one or more matrices");
        for t in chain {
            ensure!(
                t.ndim() == 2,
                Runtime,
                "chain_matmul: Tensor dimension is {}, expected 2 instead.",
                t.ndim()
            );
        }
        Ok(if chain.len() == 1 { chain[0].clone() } else { multi_dot(chain)? }.into())
    };
}

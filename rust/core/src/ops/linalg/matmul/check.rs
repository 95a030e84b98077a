//! Checks the operands of products, with their errors.

use super::{MatMul, Stack, ONE};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{self, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

pub(super) fn unsupported(what: &str, dtype: DType) -> Result<()> {
    bail!(
        NoKernel,
        "\"{what}\" not implemented for '{}'",
        dtype.scalar_name()
    )
}

pub(super) fn numeric(what: &str, dtype: DType) -> Result<()> {
    if dtype == DType::Bool {
        unsupported(what, dtype)?;
    }
    Ok(())
}

pub(super) fn same_type(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype().c_name(),
        b.dtype().c_name()
    );
    numeric("addmm_impl_cpu_", a.dtype())
}

/// [`same_type`] in the words of a product that is added to something.
pub(super) fn same_factors(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "mat1 and mat2 must have the same dtype, but got {} and {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    numeric("addmm_impl_cpu_", a.dtype())
}

pub(super) fn fits(rows: usize, k: usize, l: usize, cols: usize) -> Result<()> {
    ensure!(
        k == l,
        Runtime,
        "mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {l}x{cols})"
    );
    Ok(())
}

pub(super) fn check_mm(a: &Tensor, b: &Tensor) -> Result<()> {
    check_ranks("mm", [a, b], [2, 2])?;
    ensure!(
        a.ndim() == 2,
        Runtime,
        "mm: self must be a matrix, got {}-D",
        a.ndim()
    );
    ensure!(
        b.ndim() == 2,
        Runtime,
        "mm: mat2 must be a matrix, got {}-D",
        b.ndim()
    );
    fits(a.size(0), a.size(1), b.size(0), b.size(1))?;
    same_type(a, b)
}

/// Raises for factors of slices in PyTorch's words where they have not so many dimensions.
pub(super) fn check_ranks(name: &str, x: [&Tensor; 2], want: [usize; 2]) -> Result<()> {
    let got = x.map(|t| t.ndim());
    ensure!(
        got == want || !x.iter().any(|t| t.stands()),
        Runtime,
        "Got wrong shapes for {name}: Shape mismatch: Got incorrect dims for {name}(a, b). a has dim \
         {} and b has dim {} but expected them to have dim {} and dim {}",
        got[0],
        got[1],
        want[0],
        want[1]
    );
    Ok(())
}

pub(super) fn check_bmm(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    check_ranks(name, [a, b], [3, 3])?;
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 3,
            Runtime,
            "{name}: batch{i} must be a 3D tensor, got {}D",
            t.ndim()
        );
    }
    ensure!(
        a.size(0) == b.size(0) && a.size(2) == b.size(1),
        Runtime,
        "{name}: Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but \
         got: [{}, {}].",
        a.size(0),
        a.size(2),
        b.size(0),
        b.size(1)
    );
    same_scalar(name, a, b)
}

pub(super) fn same_scalar(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "{name}: expected scalar type {} but found {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    numeric(name, a.dtype())
}

pub(super) fn check_dot(a: &Tensor, b: &Tensor) -> Result<()> {
    check_ranks("dot", [a, b], [1, 1])?;
    ensure!(
        a.ndim() == 1 && b.ndim() == 1,
        Runtime,
        "dot: 1D tensors expected, but got {}D and {}D tensors",
        a.ndim(),
        b.ndim()
    );
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "dot : expected both vectors to have same dtype, but found {} and {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let (m, n) = (a.size(0), b.size(0));
    ensure!(
        m == n,
        Runtime,
        "inconsistent tensor size, expected tensor [{m}] and src [{n}] to have the same number of \
         elements, but got {m} and {n} elements respectively"
    );
    numeric("dot", a.dtype())
}

/// `mat` is a matrix, or a batch of matrices with as many rows in all as `rows`.
pub(super) fn check_mv(c: Option<&Tensor>, mat: &Tensor, vec: &Tensor, rows: usize) -> Result<()> {
    let k = mat.size(mat.ndim().saturating_sub(1));
    let c_size = c.map_or(rows, |t| t.numel());
    ensure!(
        k == vec.size(0) && (c_size == rows || c_size == 1),
        Runtime,
        "size mismatch, got input ({c_size}), mat ({rows}x{k}), vec ({})",
        vec.size(0)
    );
    let t = c.unwrap_or(vec).dtype();
    ensure!(
        t == mat.dtype() && t == vec.dtype(),
        Runtime,
        "addmv input tensors must have the same dtype, but got {}, {}, and {}",
        t.scalar_name(),
        mat.dtype().scalar_name(),
        vec.dtype().scalar_name()
    );
    numeric("addmv_impl_cpu", t)
}

/// Checks the operands of `matmul` and names the op that multiplies them.
pub(super) fn matmul_op(a: &Tensor, b: &Tensor) -> Result<MatMul> {
    let (p, q) = (a.ndim(), b.ndim());
    ensure!(
        p > 0 && q > 0,
        Runtime,
        "both arguments to matmul need to be at least 1D, but they are {p}D and {q}D"
    );
    let name = match (p, q) {
        (1, 1) => {
            check_dot(a, b)?;
            "DotBackward0"
        }
        (_, 1) => {
            check_mv(None, a, b, a.shape()[..p - 1].iter().product())?;
            "MvBackward0"
        }
        (_, 2) => {
            fits(
                a.shape()[..p - 1].iter().product(),
                a.size(p - 1),
                b.size(0),
                b.size(1),
            )?;
            same_type(a, b)?;
            "MmBackward0"
        }
        _ => {
            let (x, y) = (Stack::new(a, false, true), Stack::new(b, false, false));
            let batch = shape::broadcast(x.batch, y.batch)?;
            let count: usize = batch.iter().product();
            ensure!(
                x.cols == y.rows,
                Runtime,
                "Expected size for first two dimensions of batch2 tensor to be: [{count}, {}] but \
                 got: [{count}, {}]. (matmul of {} and {})",
                x.cols,
                y.rows,
                Show(a.shape()),
                Show(b.shape())
            );
            same_scalar("bmm", a, b)?;
            "BmmBackward0"
        }
    };
    Ok(MatMul::new(name).like(a, b))
}

/// Checks the operands of `addmm`.
pub(super) fn check_addmm(c: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 2,
            Runtime,
            "mat{i} must be a matrix, got {}-D tensor",
            t.ndim()
        );
    }
    fits(a.size(0), a.size(1), b.size(0), b.size(1))?;
    same_as_self(c, b)?;
    same_factors(a, b)?;
    expands(c, &[a.size(0), b.size(1)])
}

pub(super) fn same_as_self(c: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        c.dtype() == b.dtype(),
        Runtime,
        "self and mat2 must have the same dtype, but got {} and {}",
        c.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    Ok(())
}

pub(super) fn expands(c: &Tensor, shape: &[usize]) -> Result<()> {
    if !shape::expandable(c.shape(), shape) {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        c.layout().expand(&size)?;
    }
    Ok(())
}

/// Checks the operands of `linear` with a weight matrix.
pub(super) fn linear_op(x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<MatMul> {
    let n = x.ndim();
    ensure!(
        n > 0,
        Runtime,
        "both arguments to linear need to be at least 1D, got a 0D input"
    );
    let rows = x.shape()[..n - 1].iter().product();
    fits(rows, x.size(n - 1), w.size(1), w.size(0))?;
    if let Some(c) = bias {
        same_as_self(c, w)?;
        expands(c, &[rows, w.size(0)])?;
        ensure!(
            c.ndim() < 2 || n == 2,
            Runtime,
            "linear: the bias must have at most one dimension, got shape {}",
            Show(c.shape())
        );
    }
    match bias {
        Some(_) => same_factors(x, w)?,
        None => same_type(x, w)?,
    }
    let op = match bias {
        Some(_) => MatMul::plus("AddmmBackward0", ONE, ONE),
        None => MatMul::new("MmBackward0"),
    };
    Ok(MatMul { tb: true, ..op })
}

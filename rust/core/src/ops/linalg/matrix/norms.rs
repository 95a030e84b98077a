//! Norms of vectors and matrices.

use crate::arg;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::linalg::matmul::swapped;
use crate::ops::linalg::vector_norm::{norm_last, shorten};
use crate::ops::linalg::*;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Gt;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Abs;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, DimSet, Dims};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// The norm over several dimensions as one vector.
fn vector_norm(x: &Tensor, p: f64, dims: &[usize], keepdim: bool) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return vector_norm(&apply(Abs, [x])?, p, dims, keepdim);
    }
    let n = x.ndim();
    let kept: SmallVec<[usize; 5]> = (0..n).filter(|d| !dims.contains(d)).collect();
    let order: SmallVec<[i64; 5]> = kept.iter().chain(dims).map(|&d| d as i64).collect();
    let count: usize = dims.iter().map(|&d| x.size(d)).product();
    let mut shape: Dims = kept.iter().map(|&d| x.size(d)).collect();
    shape.push(count);
    ensure!(
        count > 0 || (p >= 0.0 && p.is_finite()),
        Runtime,
        "linalg.vector_norm cannot compute the {p} norm on an empty dimension because the \
         operation does not have an identity"
    );
    let y = norm_last(&x.permute(&order)?.reshape_to(&shape)?, p)?;
    let out: Dims = (0..n)
        .filter(|d| keepdim || !dims.contains(d))
        .map(|d| if dims.contains(&d) { 1 } else { x.size(d) })
        .collect();
    y.reshape_to(&out)
}

/// Slices across `dim` whose norm is larger than `most`, scaled down to it.
pub fn renorm(x: &Tensor, p: f64, dim: i64, most: f64) -> Result<Tensor> {
    ensure!(
        p > 0.0,
        Runtime,
        "renorm: non-positive-norm not supported, got p = {p}"
    );
    ensure!(
        most >= 0.0,
        Runtime,
        "renorm: expected maxnorm to be >= 0 but got {most}"
    );
    ensure!(
        x.ndim() > 1,
        Runtime,
        "renorm: input needs at least 2 dimensions, got {} dimensions",
        x.ndim()
    );
    ensure!(
        x.dtype().differentiable(),
        Runtime,
        "renorm: Expected a floating point or complex tensor as input. Got {}",
        x.dtype().scalar_name()
    );
    let dim = shape::dim(dim, x.ndim())?;
    if dim == 0 {
        if let Some(y) = shorten(x, p, most) {
            return y;
        }
    }
    let others: SmallVec<[usize; 5]> = (0..x.ndim()).filter(|&d| d != dim).collect();
    let wide = match x.dtype().is_half() {
        true => x.to_dtype(DType::F32)?,
        false => x.clone(),
    };
    // A norm takes the moduli of real numbers itself.
    let norm = match wide.dtype().is_complex() {
        true => vector_norm(&apply(Abs, [&wide])?, p, &others, true)?,
        false => vector_norm(&wide, p, &others, true)?,
    };
    let most = Tensor::full(&[], Scalar::Float(most), norm.dtype(), norm.device())?;
    // As PyTorch's, so that nothing is divided by zero.
    let scaled = most.div(&norm.add_scalar(1e-7)?)?;
    let one = Tensor::full(&[], Scalar::Int(1), norm.dtype(), norm.device())?;
    let factor = where_(&apply(Gt, [&norm, &most])?, &scaled, &one)?;
    wide.mul(&factor)?.to_dtype(x.dtype())
}

/// A matrix norm's name.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Fro,
    Nuclear,
    P(f64),
}

pub fn singular_values(x: &Tensor) -> Result<Tensor> {
    values_or_nan("linalg.svd", x)
}

pub fn sum_last(x: &Tensor) -> Result<Tensor> {
    x.sum_mask(DimSet::last(1, x.ndim())?, true, None)
}

/// The sum of the singular values.
pub fn nuclear_norm(
    name: &str,
    x: &Tensor,
    dims: &[i64],
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    matrix_norm(name, x, Order::Nuclear, dims, keepdim, dtype)
}

/// The largest of numbers along the last dimension for a positive order, the least for a negative one. Of no
/// numbers the largest is 0, for none is below it.
fn extreme(name: &str, x: &Tensor, order: f64) -> Result<Tensor> {
    ensure!(
        order > 0.0 || x.size(x.ndim() - 1) > 0,
        Index,
        "{name}: amin(): Expected reduction dim to have non-zero size for a norm of order {order}, got a matrix \
         without elements."
    );
    norm_last(x, f64::INFINITY.copysign(order))
}

/// The functions that others call, and whose names PyTorch's errors tell.
pub const MATRIX: &str = "linalg.matrix_norm";
const VECTOR: &str = "linalg.vector_norm";

pub fn matrix_norm(
    name: &str,
    x: &Tensor,
    order: Order,
    dims: &[i64],
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let x = cast(name, x, dtype)?;
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "{name}: The input tensor A must have at least 2 dimensions."
    );
    ensure!(
        dims.len() == 2,
        Runtime,
        "{name}: dim must be a 2-tuple. Got {}",
        dims.iter()
            .map(i64::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    );
    let n = x.ndim();
    let (r, c) = (shape::dim(dims[0], n)?, shape::dim(dims[1], n)?);
    ensure!(
        r != c,
        Runtime,
        "{name}: dims must be different. Got ({}, {})",
        dims[0],
        dims[1]
    );
    if order == Order::Fro {
        return vector_norm(&x, 2.0, &[r, c], keepdim);
    }
    let perm: SmallVec<[i64; 5]> = (0..n)
        .filter(|&d| d != r && d != c)
        .chain([r, c])
        .map(|d| d as i64)
        .collect();
    let m = x.permute(&perm)?;
    // One value per matrix, in a last dimension of size 1.
    let y = match order {
        Order::Nuclear => {
            check_wide(name, &x)?;
            sum_last(&singular_values(&m)?)?
        }
        Order::P(p) if p.abs() == 2.0 => {
            check_wide(name, &x)?;
            extreme(name, &singular_values(&m)?, p)?
        }
        Order::P(p) if p.abs() == 1.0 || p.is_infinite() => {
            let a = apply(Abs, [&if p.is_infinite() { m } else { swapped(&m)? }])?;
            let sums = sum_last(&a)?;
            extreme(name, &sums.reshape_to(&sums.shape()[..sums.ndim() - 1])?, p)?
        }
        Order::P(p) => bail!(Runtime, "linalg.matrix_norm: Order {p} not supported."),
        Order::Fro => m,
    };
    let out: Dims = (0..n)
        .filter(|d| keepdim || (*d != r && *d != c))
        .map(|d| if d == r || d == c { 1 } else { x.size(d) })
        .collect();
    y.reshape_to(&out)
}

/// Singular values come in float32 and float64, and of complex numbers made of them.
fn check_wide(name: &str, x: &Tensor) -> Result<()> {
    match x.dtype().is_complex() {
        true => Ok(()),
        false => check_float(name, x),
    }
}

fn cast(name: &str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    ensure!(
        x.dtype().differentiable(),
        Runtime,
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        x.dtype().scalar_name()
    );
    let Some(t) = dtype else { return Ok(x.clone()) };
    ensure!(
        t.differentiable(),
        Runtime,
        "{name}: dtype should be floating point or complex, but got {}",
        t.scalar_name()
    );
    ensure!(
        t.is_complex() == x.dtype().is_complex(),
        Runtime,
        "{name}: dtype should be {0} for {0} inputs, but got {1}",
        match x.dtype().is_complex() {
            true => "complex",
            false => "real",
        },
        t.scalar_name()
    );
    ensure!(
        x.dtype().promote(t) == t,
        Runtime,
        "{name}: the dtype of the input ({}) should be convertible without narrowing to the \
         specified dtype ({})",
        x.dtype().scalar_name(),
        t.scalar_name()
    );
    x.to_dtype(t)
}

pub fn named(name: &str, text: &str) -> Result<Order> {
    match text {
        "fro" => Ok(Order::Fro),
        "nuc" => Ok(Order::Nuclear),
        other if name == "linalg.cond" => {
            bail!(Runtime, "{name} got an invalid norm type: {other}")
        }
        other => bail!(Runtime, "linalg.matrix_norm: Order {other} not supported."),
    }
}

/// `linalg.norm` with a numeric order or none.
pub fn norm(
    x: &Tensor,
    order: Option<f64>,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    const NAME: &str = "linalg.norm";
    if let Some(d) = dims {
        ensure!(
            d.len() <= 2 || order.is_none(),
            Runtime,
            "{NAME}: If dim is specified, it must be of length 1 or 2. Got {d:?}"
        );
        ensure!(
            d.len() == 1 || d.len() == 2,
            Runtime,
            "{NAME}: If dim is specified, it must be of length 1 or 2. Got {d:?}"
        );
    } else if order.is_some() {
        ensure!(
            x.ndim() == 1 || x.ndim() == 2,
            Runtime,
            "{NAME}: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
            x.ndim()
        );
    }
    let vector = match (order, dims) {
        (None, _) => true,
        (_, Some(d)) => d.len() == 1,
        (_, None) => x.ndim() == 1,
    };
    if !vector {
        let dims = dims.unwrap_or(&[-2, -1]);
        return matrix_norm(
            MATRIX,
            x,
            Order::P(order.unwrap_or(2.0)),
            dims,
            keepdim,
            dtype,
        );
    }
    let x = cast(VECTOR, x, dtype)?;
    let dims: SmallVec<[usize; 5]> = match dims {
        Some(d) => shape::dims(d, x.ndim())?,
        None => (0..x.ndim()).collect(),
    };
    let dims: SmallVec<[usize; 5]> = dims.into_iter().filter(|&d| d < x.ndim()).collect();
    vector_norm(&x, order.unwrap_or(2.0), &dims, keepdim)
}

/// `torch.norm`, which `linalg.norm` is not quite.
fn classic_norm<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let p = match a.value(arg!(p)) {
        Value::Str(s) if &**s == "fro" => 2.0,
        Value::Str(s) if &**s == "nuc" => {
            let x = a.tensor(arg!(self))?;
            let dims = a.opt_ints(arg!(dim));
            ensure!(
                dims.is_some() || x.ndim() <= 2,
                Runtime,
                "norm: dim must be a 2-tuple for p='nuc', but it is left out for {} dimensions",
                x.ndim()
            );
            let dims = dims.unwrap_or(&[-2, -1]);
            return Ok(nuclear_norm(
                MATRIX,
                x,
                dims,
                a.bool(arg!(keepdim))?,
                a.dtype(arg!(dtype)),
            )?
            .into());
        }
        Value::Str(s) => bail!(
            Runtime,
            "linalg.matrix_norm: Order {s} not supported. p is a number, 'fro' or 'nuc'"
        ),
        _ => a.opt_scalar(arg!(p)).map_or(2.0, Scalar::f64),
    };
    let x = a.tensor(arg!(self))?;
    let x = cast(VECTOR, x, a.dtype(arg!(dtype)))?;
    Ok(
        x.vector_norm(p, a.mask(arg!(dim), &x)?, a.bool(arg!(keepdim))?)?
            .into(),
    )
}

/// The norm of each slice across `dim`; that of all elements for -1.
fn norm_except_dim(x: &Tensor, p: i64, dim: i64) -> Result<Tensor> {
    ensure!(
        x.dtype().differentiable(),
        Runtime,
        "norm_except_dim(): input dtype should be either floating point or complex. Got {} instead.",
        x.dtype().scalar_name()
    );
    if dim == -1 {
        return x.vector_norm(p as f64, DimSet::all(x.ndim()), false);
    }
    ensure!(
        x.ndim() > 0,
        Index,
        "Dimension specified as {dim} but tensor has no dimensions"
    );
    let kept = shape::dim(dim, x.ndim())?;
    let others = DimSet::of(x.ndim(), |d| d != kept)?;
    x.vector_norm(p as f64, others, true)
}

crate::entries! {
    /// The norm of each slice across one dimension.
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", FN,
    |a| Ok(norm_except_dim(a.tensor(arg!(v))?, a.int(arg!(pow))?, a.int(arg!(dim))?)?.into());
    /// The p-norm of the elements along `dim`; 'fro' is the 2-norm.
    "norm(Tensor self, Scalar? p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | OUT, classic_norm;
    /// The Frobenius or nuclear norm.
    "norm(Tensor self, str p='fro', int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | OUT, classic_norm;
    /// The sum of the singular values.
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", FN | OUT,
    |a| Ok(nuclear_norm("nuclear_norm", a.tensor(arg!(self))?, &[-2, -1], a.bool(arg!(keepdim))?, None)?.into());
    /// The sum of the singular values of the matrices in two dimensions.
    "nuclear_norm(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", FN | OUT,
    |a| Ok(nuclear_norm("nuclear_norm", a.tensor(arg!(self))?, a.ints(arg!(dim))?, a.bool(arg!(keepdim))?, None)?.into());
}

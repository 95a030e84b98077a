//! Powers of numbers side by side, and the exponential of a matrix.

use super::matmul::swapped;
use super::{check_sides, cols, eye, join};
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{one, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Gt;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Exp};
use crate::ops::reduce::scan::Cumprod;
use crate::ops::shape::join::cat;
use crate::shape::{DimSet, Dims};
use crate::tensor::Tensor;
use crate::{alloc, ensure};
use smallvec::smallvec;

/// The first `n` powers of each number, from the 0th on, as rows.
fn powers(x: &Tensor, n: usize) -> Result<Tensor> {
    let dtype = x.dtype().to_sum();
    let x = x.to_dtype(dtype)?;
    let shape = |n: usize| -> Dims { x.shape().iter().copied().chain([n]).collect() };
    let ones = Tensor::full(&shape(n.min(1)), Scalar::Int(1), dtype, x.device())?;
    if n < 2 {
        return Ok(ones);
    }
    let wide = x.unsqueeze(-1)?.expand_to(&shape(n - 1))?;
    let op = Cumprod {
        dim: x.ndim(),
        reverse: false,
        dtype,
    };
    cat(&[ones, dispatch::call1(op, &[&wide])?], -1)
}

fn vander(x: &Tensor, n: Option<i64>, increasing: bool) -> Result<Tensor> {
    ensure!(
        x.ndim() == 1,
        Runtime,
        "x must be a one-dimensional tensor, got {} dimensions",
        x.ndim()
    );
    let n = n.unwrap_or(x.size(0) as i64);
    ensure!(n >= 0, Runtime, "N must be non-negative, got {n}");
    let y = powers(x, n as usize)?;
    match increasing {
        true => Ok(y),
        false => y.flip(&[1]),
    }
}

fn linalg_vander(x: &Tensor, n: Option<i64>) -> Result<Tensor> {
    let dtype = x.dtype();
    ensure!(
        dtype != DType::Bool && !dtype.is_half(),
        Runtime,
        "linalg.vander supports floating point, complex, and integer tensors, but got {}",
        dtype.scalar_name()
    );
    let n = n.unwrap_or(x.shape().last().map_or(1, |&n| n as i64));
    ensure!(n > 1, Runtime, "N must be greater than 1, got {n}");
    match x.ndim() {
        0 => powers(&x.reshape_to(&[1])?, n as usize),
        _ => powers(x, n as usize),
    }
}

/// The exponential of each matrix of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MatrixExp;

impl Derivative for MatrixExp {
    fn name(&self) -> &'static str {
        "LinalgMatrixExpBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0])
    }
    /// The exponential of [A' G; 0 A'] has the gradient in its upper right block: Mathias 1996.
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let a = swapped(&cx.input(0)?)?.conj()?;
        let n = cols(&a) as i64;
        let zero = Tensor::zeros(a.shape(), a.dtype(), a.device())?;
        let upper = cat(&[a.clone(), g.to_dtype(a.dtype())?], -1)?;
        let both = cat(&[upper, cat(&[zero, a], -1)?], -2)?;
        let y = dispatch::call1(MatrixExp, &[&both])?;
        one(y.narrow(-2, 0, n)?.narrow(-1, n, n)?)
    }
}

impl Op for MatrixExp {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(smallvec![TensorMeta::of(x[0])])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (a, dtype) = (x[0].detach(), x[0].dtype());
        if a.numel() == 0 {
            return Ok(());
        }
        let wide = match dtype.is_complex() {
            true => DType::C128,
            false => DType::F64,
        };
        y[0].write_from(&exponential(&a.to_dtype(wide)?, dtype == wide)?.to_dtype(dtype)?)
    }
    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[0].numel().saturating_mul(10 * cols(x[0]))
    }
}

/// Scaled by a power of two, then Taylor's polynomial of degree 20, or 16 where the result is
/// narrower, then squared as often; in float64, since squares multiply what is rounded. The first
/// term that is left out is 2e-17 for norms up to 1.4, and 3e-12 up to 1.5: after all the
/// squares that a result in range can have, far below float32's rounding.
fn exponential(a: &Tensor, exact: bool) -> Result<Tensor> {
    let (n, shape) = (cols(a), a.shape());
    if n == 1 {
        return apply(Exp, [a]);
    }
    let (most, degree) = if exact { (1.4f64, 20) } else { (1.5, 16) };
    let a = a.reshape_to(&join(&[a.numel() / (n * n)], &[n, n]))?;
    let last = |t: &Tensor| DimSet::last(1, t.ndim());
    let sums = apply(Abs, [&swapped(&a)?])?;
    let sums = sums.sum_mask(last(&sums)?, false, None)?;
    let norms = sums.amax_mask(last(&sums)?, false)?.prepared(DType::F64)?;
    // SAFETY: prepared contiguous float64 memory, read only.
    let norms = unsafe { norms.slice::<f64>() };
    // What is not finite stays so, whatever it is scaled by.
    let halvings = |v: &f64| match v.is_finite() && *v > most {
        true => (v / most).log2().ceil(),
        false => 0.0,
    };
    let times: Vec<f64> = alloc::gathered(norms.iter().map(halvings));
    let each = |v: &[f64]| Tensor::from_slice(v, &[v.len(), 1, 1], DType::F64);
    let parts: Vec<f64> = alloc::gathered(times.iter().map(|t| (-t).exp2()));
    let mut y = taylor(&a.mul(&each(&parts)?)?, n, degree)?;
    let counts = each(&times)?;
    let most = times.iter().copied().fold(0.0, f64::max) as usize;
    for i in 0..most {
        let more = apply(Gt, [&counts, &Tensor::number(Scalar::Float(i as f64))?])?;
        y = where_(&more, &y.matmul(&y)?, &y)?;
    }
    y.reshape_to(shape)
}

/// The sum of A^k / k! up to a multiple of four, as a polynomial of A^4.
fn taylor(a: &Tensor, n: usize, degree: usize) -> Result<Tensor> {
    let square = a.matmul(a)?;
    let powers = [eye(a, n)?, a.clone(), square.clone(), square.matmul(a)?];
    let fourth = square.matmul(&square)?;
    let mut factors = [1.0f64; 21];
    for k in 1..=degree {
        factors[k] = factors[k - 1] / k as f64;
    }
    let block = |k: usize| -> Result<Tensor> {
        let mut sum = powers[0].mul_scalar(factors[k])?;
        for (p, &f) in powers[1..].iter().zip(&factors[k + 1..]) {
            sum = sum.add(&p.mul_scalar(f)?)?;
        }
        Ok(sum)
    };
    let mut y = fourth
        .mul_scalar(factors[degree])?
        .add(&block(degree - 4)?)?;
    for k in (0..degree - 4).step_by(4).rev() {
        y = y.matmul(&fourth)?.add(&block(k)?)?;
    }
    Ok(y)
}

fn matrix_exp(x: &Tensor) -> Result<Tensor> {
    const NAME: &str = "linalg.matrix_exp";
    check_sides(NAME, x)?;
    ensure!(
        x.dtype().differentiable(),
        Runtime,
        "{NAME}: Expected a floating point or complex tensor as input. Got {}",
        x.dtype().scalar_name()
    );
    dispatch::call1(MatrixExp, &[x])
}

crate::entries! {
    /// Powers of each number along a new dimension, from the 0th on.
    "vander(Tensor x, *, int? N=None) -> Tensor", LINALG,
    |a| Ok(linalg_vander(a.tensor(0)?, a.opt_int(1))?.into());
    /// Powers of each number as a row, from the highest down.
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", FN,
    |a| Ok(vander(a.tensor(0)?, a.opt_int(1), a.bool(2)?)?.into());
    /// The sum of A^k / k! over all k.
    "matrix_exp(Tensor input) -> Tensor", LINALG, |a| Ok(matrix_exp(a.tensor(0)?)?.into());
    "matrix_exp(Tensor self) -> Tensor", FN | METHOD, |a| Ok(matrix_exp(a.tensor(0)?)?.into());
}

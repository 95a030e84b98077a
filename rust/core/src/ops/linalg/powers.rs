//! Powers of numbers side by side, and the exponential of a matrix.

use super::cpu::exponential::exponential;
use super::cpu::Precision;
use super::matmul::swapped;
use super::{check_sides, cols};
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::Exp;
use crate::ops::reduce::scan::Cumprod;
use crate::ops::shape::join::cat;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::transfer;
use smallvec::smallvec;
use std::sync::Arc;

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
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(smallvec![TensorMeta::of(x[0])])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (a, dtype) = (x[0].detach(), x[0].dtype());
        let n = cols(&a);
        if a.numel() == 0 {
            return Ok(());
        }
        let wide = match (dtype, dtype.is_complex()) {
            (DType::F32 | DType::C64, _) if n >= NARROW => dtype,
            (_, true) => DType::C128,
            _ => DType::F64,
        };
        if n == 1 {
            let result = apply(Exp, [&a.to_dtype(wide)?])?;
            return y[0].write_from(&result.to_dtype(dtype)?);
        }
        let given = a.prepared(wide)?;
        let result = Tensor::empty(a.shape(), wide, a.device())?;
        match wide {
            DType::F32 | DType::C64 => each::<f32>(&given, &result)?,
            _ => each::<f64>(&given, &result)?,
        }
        y[0].write_from(&result.to_dtype(dtype)?)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let done = match x[0].numel() {
            0 => return Ok(false),
            _ => super::exponential::exponential(gpu, x[0], &y[0]),
        };
        transfer::ran(done)
    }
    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[0].numel().saturating_mul(10 * cols(x[0]))
    }
}

/// Matrices of float32 of this size on stay that; products of smaller ones cost little, and are of
/// float64.
pub const NARROW: usize = 64;

/// The exponentials of contiguous matrices, of real numbers or of pairs.
fn each<T: Precision>(x: &Tensor, y: &Tensor) -> Result<()> {
    let (n, complex) = (cols(x), x.dtype().is_complex());
    let real = |t: &Tensor| {
        if complex {
            t.as_real()
        } else {
            Ok(t.clone())
        }
    };
    let (x, y) = (real(x)?, real(y)?);
    let size = if complex { 2 * n * n } else { n * n };
    // SAFETY: contiguous memory of this type, and nobody writes to it.
    let (all, to) = (unsafe { x.slice::<T>() }, Ptr::new(y.ptr::<T>()));
    parallel_for(all.len() / size, 8192usize / (size * n) + 1, |range| {
        for i in range {
            let part = i * size..(i + 1) * size;
            // SAFETY: each matrix has its own part of the result.
            let y = unsafe { to.part(part.clone()) };
            exponential(&all[part], n, complex, y);
        }
    });
    Ok(())
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
    |a| Ok(linalg_vander(a.tensor(arg!(x))?, a.opt_int(arg!(N)))?.into());
    /// Powers of each number as a row, from the highest down.
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", FN,
    |a| Ok(vander(a.tensor(arg!(x))?, a.opt_int(arg!(N)), a.bool(arg!(increasing))?)?.into());
    /// The sum of A^k / k! over all k.
    "matrix_exp(Tensor input) -> Tensor", LINALG, |a| Ok(matrix_exp(a.tensor(arg!(input))?)?.into());
    "matrix_exp(Tensor self) -> Tensor", FN | METHOD, |a| Ok(matrix_exp(a.tensor(arg!(self))?)?.into());
}

//! Least squares: by reflections where the columns are surely independent, else by singular values,
//! of all best solutions the shortest.

use super::matrix::{pinv, pinv_gradient};
use super::*;
use crate::arg;
use crate::dtype::Scalar;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Gt;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Reciprocal};
use crate::schema::{Args, Signature, Value};
use crate::shape::{DimSet, Show};

const NAME: &str = "linalg.lstsq";

/// How gradients pass through the solution, which is that of the pseudo-inverse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lstsq {
    rcond: Scalar,
}

impl Derivative for Lstsq {
    fn name(&self) -> &'static str {
        "LinalgLstsqBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        let Some(g) = &g[0] else { return Ok(out) };
        let (a, b) = (cx.input(0)?, cx.input(1)?);
        let rcond = Tensor::full(&[], self.rcond, a.dtype().part(), a.device())?;
        let y = pinv(NAME, &a, None, Some(rcond), false)?;
        if cx.needs(0) {
            out[0] = Some(pinv_gradient(&a, &y, &g.matmul(&adjoint(&b)?)?)?);
        }
        if cx.needs(1) {
            out[1] = Some(adjoint(&y)?.matmul(g)?);
        }
        Ok(out)
    }
}

/// The solution of A X = B for matrices whose columns are independent by far, and how many there are.
fn direct(a: &Tensor, b: &Tensor, rcond: f64) -> Result<Option<[Tensor; 2]>> {
    let complex = a.dtype().is_complex() && a.device().is_gpu();
    if !a.is_readable() || complex || rows(a) < cols(a) || cols(b) == 0 {
        return Ok(None);
    }
    let kind = Kind::LeastSquares {
        rcond: rcond.to_bits(),
    };
    let mut y = Factor(kind).run(&[&a.detached()?, &b.detached()?])?;
    let (info, solution) = (y.swap_remove(1), y.swap_remove(0));
    if info.any_true()? {
        return Ok(None);
    }
    let op = Lstsq {
        rcond: Scalar::Float(rcond),
    };
    dispatch::record(op, &[a, b], std::slice::from_ref(&solution))?;
    let count = Scalar::Int(cols(a) as i64);
    let rank = Tensor::full(batch_of(a), count, DType::I64, a.device())?;
    Ok(Some([solution, rank]))
}

/// A solution of A X = B, how many singular values it uses, and all of them.
fn solve(a: &Tensor, b: &Tensor, rcond: f64) -> Result<[Tensor; 3]> {
    let (x, y) = (a.detached()?, b.detached()?);
    let [u, s, vh] = svd(NAME, &x, false)?;
    let top = s.slice_dim(-1, Some(0), Some(1), 1)?;
    let large = apply(Gt, [&s, &top.mul_scalar(rcond)?])?;
    let zero = Tensor::zeros(&[], s.dtype(), s.device())?;
    let inverse = where_(&large, &apply(Reciprocal, [&s])?, &zero)?;
    let parts = adjoint(&u)?.matmul(&y)?.mul(&column(&inverse)?)?;
    let solution = in_columns(&adjoint(&vh)?.matmul(&parts)?)?;
    let rank = large.sum_mask(DimSet::last(1, s.ndim())?, false, None)?;
    let op = Lstsq {
        rcond: Scalar::Float(rcond),
    };
    dispatch::record(op, &[a, b], std::slice::from_ref(&solution))?;
    Ok([solution, rank, s])
}

fn lstsq<Sig: Signature>(args: &Args<Sig>) -> Result<Value> {
    let (a, b) = (args.tensor(arg!(input))?, args.tensor(arg!(b))?);
    let driver = args.opt_str(arg!(driver)).unwrap_or("gelsy");
    ensure!(
        a.ndim() >= 2,
        Runtime,
        "{NAME}: input must have at least 2 dimensions."
    );
    ensure!(
        b.ndim() >= 1,
        Runtime,
        "{NAME}: other must have at least 1 dimension."
    );
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "{NAME}: Expected input and other to have the same dtype, but got input's dtype {} and \
         other's dtype {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    check_float(NAME, a)?;
    ensure!(
        matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss"),
        Runtime,
        "{NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got '{driver}'"
    );
    let vector = b.ndim() == 1 || b.shape()[..] == a.shape()[..a.ndim() - 1];
    ensure!(
        vector || b.ndim() == a.ndim(),
        Runtime,
        "{NAME}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) \
         <= 1, got {} and {}",
        Show(a.shape()),
        Show(b.shape())
    );
    let b = &if vector { column(b)? } else { b.clone() };
    ensure!(
        rows(a) == rows(b),
        Runtime,
        "torch.{NAME}: input.size(-2) should match other.size({}), got {} and {}",
        if vector { -1 } else { -2 },
        Show(a.shape()),
        Show(b.shape())
    );
    let batch = shape::broadcast(batch_of(a), batch_of(b))?;
    let (m, n, k) = (rows(a), cols(a), cols(b));
    let none = |dtype| Tensor::zeros(&[0], dtype, a.device());
    let eps = match a.dtype().part() {
        DType::F64 => f64::EPSILON,
        _ => f32::EPSILON as f64,
    };
    let full = driver == "gels";
    let rcond = match (full, args.opt_float(arg!(rcond))) {
        // Numbers below rounding of the largest are none.
        (true, _) => eps,
        (false, Some(given)) if given >= 0.0 => given,
        (false, _) => eps * m.max(n) as f64,
    };
    // The others give singular values.
    let quick = match driver {
        "gels" | "gelsy" if m.min(n) > 0 => direct(a, b, rcond)?,
        _ => None,
    };
    let [mut solution, rank, values] = match m.min(n) == 0 {
        true => [
            swapped(&Tensor::zeros(
                &join(&batch, &[k, n]),
                a.dtype(),
                a.device(),
            )?)?,
            Tensor::zeros(batch_of(a), DType::I64, a.device())?,
            Tensor::zeros(&join(batch_of(a), &[0]), a.dtype().part(), a.device())?,
        ],
        false => match quick {
            Some([solution, rank]) => [solution, rank, none(a.dtype())?],
            None => solve(a, b, rcond)?,
        },
    };
    let short = Tensor::number(Scalar::Int(m.min(n) as i64))?;
    let deficient = rank.is_readable() && apply(Gt, [&short, &rank])?.any_true()?;
    ensure!(
        !(full && deficient),
        LinAlg,
        "{NAME}: The least squares solution could not be computed because the input matrix does not \
         have full rank, which driver='gels' asks for; the other drivers do without"
    );
    let exact = driver != "gelsy" && m > n && !deficient;
    let residuals = match exact {
        true => {
            let d = a.matmul(&solution)?.sub(b)?;
            let d = match d.dtype().is_complex() {
                true => apply(Abs, [&d])?,
                false => d,
            };
            d.mul(&d)?.sum_dim(-2, false)?
        }
        // An empty result that depends on A and B, so that it has a gradient.
        false => {
            let none = solution.reshape(&[-1])?.slice_dim(0, Some(0), Some(0), 1)?;
            match none.dtype().is_complex() {
                true => none.real_part(0)?.copy_dense()?,
                false => none.copy_dense()?,
            }
        }
    };
    if vector {
        solution = solution.reshape_to(&solution.shape()[..solution.ndim() - 1])?;
    }
    let rank = if full { none(DType::I64)? } else { rank };
    let values = match driver {
        "gelsd" | "gelss" => values,
        _ => none(a.dtype().part())?,
    };
    Ok(Value::Tuple(vec![solution, residuals, rank, values]))
}

crate::entries! {
    /// The X for which A X comes nearest to B, with what is left over, the rank and singular values.
    "lstsq(Tensor input, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    LINALG | OUT, lstsq;
}

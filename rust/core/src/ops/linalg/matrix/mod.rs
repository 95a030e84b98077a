//! The public functions of linear algebra, and norms, inverses and ranks made from factorisations.

pub mod norms;

use super::matmul::{adjoint, swapped};
use crate::arg;
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::host;
use crate::op::{Derivative, Grads, Mask, Save};
use crate::ops::linalg::vector_norm::norm_last;
use crate::ops::linalg::*;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Maximum;
use crate::ops::pointwise::compare::{Gt, LogicalOr};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, IsNan, Log, Reciprocal};
use crate::schema::{Args, At, Value};
use crate::shape::{DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
pub use norms::nuclear_norm;
use norms::{matrix_norm, named, norm, renorm, singular_values, Order, MATRIX};
use smallvec::SmallVec;

fn factor(kind: Kind, x: &[&Tensor]) -> Result<crate::op::Tensors> {
    dispatch::call(Factor(kind), x)
}

fn number(v: f64) -> Result<Tensor> {
    Tensor::number(Scalar::Float(v))
}

/// The threshold below which singular values count as zero.
fn threshold(
    x: &Tensor,
    top: &Tensor,
    atol: Option<Tensor>,
    rtol: Option<Tensor>,
) -> Result<Tensor> {
    let eps = if x.dtype().part() == DType::F64 {
        f64::EPSILON
    } else {
        f32::EPSILON as f64
    };
    let default = eps * rows(x).max(cols(x)) as f64;
    // A number given as a tolerance may be a tensor of the host.
    let column = |t: Tensor| {
        let shape: Dims = t.shape().iter().copied().chain([1]).collect();
        t.to_device(top.device())?.reshape_to(&shape)
    };
    let rtol = match (&atol, rtol) {
        (_, Some(r)) => column(r)?,
        (None, None) => number(default)?,
        (Some(a), None) => {
            // An absolute tolerance alone replaces the relative one, where it is positive.
            let positive = apply(Gt, [a, &number(0.0)?])?;
            let zero = Tensor::full(&[], Scalar::Float(0.0), top.dtype(), top.device())?;
            let usual = Tensor::full(&[], Scalar::Float(default), top.dtype(), top.device())?;
            column(where_(&positive, &zero, &usual)?)?
        }
    };
    let relative = rtol.mul(top)?;
    match atol {
        Some(a) => apply(Maximum, [&column(a)?.to_dtype(top.dtype())?, &relative]),
        None => Ok(relative),
    }
}

/// Magnitudes of the spectrum and how to rebuild the matrix: U, values, V'.
fn spectrum(name: &str, x: &Tensor, hermitian: bool) -> Result<[Tensor; 3]> {
    if hermitian {
        let [w, v] = eigh(name, x, "L")?;
        return Ok([v.clone(), w, adjoint(&v)?]);
    }
    svd(name, x, false)
}

fn largest(s: &Tensor) -> Result<Tensor> {
    norm_last(s, f64::INFINITY)
}

pub fn pinv(
    name: &str,
    x: &Tensor,
    atol: Option<Tensor>,
    rtol: Option<Tensor>,
    hermitian: bool,
) -> Result<Tensor> {
    check_matrix(name, x)?;
    if x.numel() == 0 {
        return adjoint(x)?.copy_dense();
    }
    let source = x;
    let x = &x.detach();
    let [u, s, vh] = spectrum(name, x, hermitian)?;
    let size = apply(Abs, [&s])?;
    let limit = threshold(x, &largest(&s.detach())?, atol, rtol)?;
    let zero = Tensor::full(&[], Scalar::Float(0.0), s.dtype(), s.device())?;
    let one = Tensor::full(&[], Scalar::Float(1.0), s.dtype(), s.device())?;
    let large = apply(Gt, [&size, &limit])?;
    let inverse = apply(Reciprocal, [&where_(&large, &s, &one)?])?;
    let inverse = where_(&large, &inverse, &zero)?;
    let y = adjoint(&vh)?.mul(&row(&inverse)?)?.matmul(&adjoint(&u)?)?;
    dispatch::record(Pinv, &[source], std::slice::from_ref(&y))?;
    Ok(y)
}

/// The gradient of A from that of its pseudo-inverse Y.
pub fn pinv_gradient(a: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor> {
    let (gt, yt) = (adjoint(g)?, adjoint(y)?);
    if rows(a) <= cols(a) {
        let k = gt.matmul(y)?;
        let kyt = k.matmul(&yt)?;
        let rest = yt.matmul(y)?.matmul(&gt.sub(&k.matmul(a)?)?)?;
        kyt.sub(&adjoint(&y.matmul(&k)?)?)?
            .sub(&a.matmul(y)?.matmul(&kyt)?)?
            .add(&rest)
    } else {
        let k = y.matmul(&gt)?;
        let ytk = yt.matmul(&k)?;
        let rest = gt.sub(&a.matmul(&k)?)?.matmul(y)?.matmul(&yt)?;
        ytk.sub(&adjoint(&k.matmul(y)?)?)?
            .sub(&ytk.matmul(y)?.matmul(a)?)?
            .add(&rest)
    }
}

/// How gradients pass through the pseudo-inverse: Golub and Pereyra 1973.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pinv;

impl Derivative for Pinv {
    fn name(&self) -> &'static str {
        "LinalgPinvBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let d = pinv_gradient(&cx.input(0)?, &cx.output(0)?, g)?;
        Ok(SmallVec::from_elem(Some(d), 1))
    }
}

fn matrix_rank(
    x: &Tensor,
    atol: Option<Tensor>,
    rtol: Option<Tensor>,
    hermitian: bool,
) -> Result<Tensor> {
    const NAME: &str = "linalg.matrix_rank";
    check_matrix(NAME, x)?;
    let x = x.detach();
    let batch = &x.shape()[..x.ndim() - 2];
    if x.numel() == 0 {
        return Tensor::zeros(batch, DType::I64, x.device());
    }
    let [_, s, _] = spectrum(NAME, &x, hermitian)?;
    let limit = threshold(&x, &largest(&s)?, atol, rtol)?;
    let large = apply(Gt, [&apply(Abs, [&s])?, &limit])?;
    large.sum_mask(DimSet::last(1, large.ndim())?, false, Some(DType::I64))
}

fn cond(x: &Tensor, order: Order) -> Result<Tensor> {
    const NAME: &str = "linalg.cond";
    check_matrix(NAME, x)?;
    let of = |m: &Tensor, o| matrix_norm(NAME, m, o, &[-2, -1], false, None);
    match order {
        Order::P(p) if x.numel() == 0 => {
            ensure!(
                [1.0, 2.0, f64::INFINITY].contains(&p.abs()),
                Runtime,
                "{NAME} got an invalid norm type: {p}"
            );
            let batch = &x.shape()[..x.ndim() - 2];
            Tensor::zeros(batch, x.dtype().part(), x.device())
        }
        Order::P(p) if p.abs() == 2.0 => {
            let s = singular_values(x)?;
            let one = |p: f64| -> Result<Tensor> {
                let v = norm_last(&s, p)?;
                v.reshape_to(&v.shape()[..v.ndim() - 1])
            };
            let (top, low) = (one(f64::INFINITY)?, one(f64::NEG_INFINITY)?);
            if p > 0.0 {
                top.div(&low)
            } else {
                low.div(&top)
            }
        }
        Order::Nuclear => {
            check_square(NAME, x)?;
            let s = singular_values(x)?;
            let last = DimSet::last(1, s.ndim())?;
            let sum = |t: &Tensor| t.sum_mask(last, false, None);
            sum(&s)?.mul(&sum(&apply(Reciprocal, [&s])?)?)
        }
        order => {
            check_square(NAME, x)?;
            let (inverse, info) = inv_ex(NAME, x)?;
            let y = of(x, order)?.mul(&of(&inverse, order)?)?;
            // A singular matrix is infinitely ill-conditioned, and so is one whose inverse cannot be told.
            let singular = apply(Gt, [&info, &Tensor::number(Scalar::Int(0))?])?;
            let unknown = apply(IsNan, [&y.detach()])?;
            let inf = Tensor::full(&[], Scalar::Float(f64::INFINITY), y.dtype(), y.device())?;
            where_(&apply(LogicalOr, [&singular, &unknown])?, &inf, &y)
        }
    }
}

fn det(name: &str, x: &Tensor) -> Result<Tensor> {
    check_square(name, x)?;
    Ok(factor(Kind::Det, &[x])?.swap_remove(0))
}

fn slogdet(name: &str, x: &Tensor) -> Result<Vec<Tensor>> {
    check_square(name, x)?;
    Ok(factor(Kind::Slogdet, &[x])?.into_vec())
}

pub fn inverse(name: &str, x: &Tensor) -> Result<Tensor> {
    let (y, info) = inv_ex(name, x)?;
    check_inverse(name, &info)?;
    Ok(y)
}

fn cholesky(name: &str, x: &Tensor, upper: bool) -> Result<Tensor> {
    let (y, info) = cholesky_ex(name, x, upper)?;
    check_cholesky(name, &info)?;
    Ok(y)
}

/// The solution of A X = B for A = L L', without history.
fn cholesky_system(b: &Tensor, l: &Tensor, upper: bool) -> Result<Tensor> {
    const NAME: &str = "cholesky_solve";
    let t = adjoint(l)?;
    let (lower, high) = if upper { (&t, l) } else { (l, &t) };
    let y = triangular_system(NAME, lower, b, false, true, false)?;
    triangular_system(NAME, high, &y, true, true, false)
}

fn cholesky_solve(b: &Tensor, l: &Tensor, upper: bool) -> Result<Tensor> {
    let y = cholesky_system(&b.detach(), &l.detach(), upper)?;
    dispatch::record(CholeskySolve { upper }, &[b, l], std::slice::from_ref(&y))?;
    Ok(y)
}

/// How gradients pass through `cholesky_solve`: L's as of a factor of a symmetric matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CholeskySolve {
    upper: bool,
}

impl Derivative for CholeskySolve {
    fn name(&self) -> &'static str {
        "CholeskySolveBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (l, y) = (cx.input(1)?, cx.output(0)?);
        let gb = cholesky_solve(g, &l, self.upper)?;
        let common = gb.matmul(&adjoint(&y)?)?;
        let common = common.add(&adjoint(&common)?)?;
        let gl = if self.upper {
            l.matmul(&common)?
        } else {
            common.matmul(&l)?
        };
        Ok(SmallVec::from_vec(vec![Some(gb), Some(gl.neg()?)]))
    }
}

/// The inverse of L L', with the gradient of L as of a factor of a symmetric matrix.
fn cholesky_inverse(l: &Tensor, upper: bool) -> Result<Tensor> {
    check_square("cholesky_inverse", l)?;
    check_diagonal(l)?;
    let y = cholesky_system(&eye(l, cols(l))?, &l.detach(), upper)?;
    dispatch::record(CholeskyInverse { upper }, &[l], std::slice::from_ref(&y))?;
    Ok(y)
}

/// Raises where a number on the diagonal of a factor is zero.
fn check_diagonal(l: &Tensor) -> Result<()> {
    if !l.is_readable() {
        return Ok(());
    }
    let size = apply(Abs, [&l.detach().diagonal(0, -2, -1)?])?;
    let size = size.to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type, read only.
    let zero = unsafe { size.slice::<f64>() }
        .iter()
        .position(|&v| v == 0.0);
    if let Some(at) = zero {
        let batch = match l.ndim() {
            2 => String::new(),
            _ => format!("(Batch element {}): ", at / cols(l)),
        };
        bail!(
            LinAlg,
            "cholesky_inverse: {batch}The diagonal element {} is zero, the inversion could not be \
             completed because the input matrix is singular.",
            at % cols(l) + 1
        );
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CholeskyInverse {
    upper: bool,
}

impl Derivative for CholeskyInverse {
    fn name(&self) -> &'static str {
        "CholeskyInverseBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (l, y) = (cx.input(0)?, cx.output(0)?);
        let common = y.matmul(&g.add(&adjoint(g)?)?.matmul(&y)?)?;
        let gl = if self.upper {
            l.matmul(&common)?
        } else {
            common.matmul(&l)?
        };
        Ok(SmallVec::from_elem(Some(gl.neg()?), 1))
    }
}

fn optional(a: &Args, i: At) -> Result<Option<Tensor>> {
    match (a.opt_tensor(i), a.opt_float(i)) {
        (Some(t), _) => Ok(Some(t.clone())),
        (None, Some(v)) => Ok(Some(Tensor::full(
            &[],
            Scalar::Float(v),
            a.first()?.dtype().part(),
            a.first()?.device(),
        )?)),
        _ => Ok(None),
    }
}

fn lu_solve(
    name: &str,
    lu: &Tensor,
    pivots: &Tensor,
    b: &Tensor,
    left: bool,
    adjoint: bool,
) -> Result<Tensor> {
    check_square(name, lu)?;
    ensure!(
        pivots.dtype() == DType::I32,
        Runtime,
        "{name}: pivots should be a Tensor of scalar type torch.int32, got {}",
        pivots.dtype().scalar_name()
    );
    ensure!(
        pivots.ndim() > 0 && pivots.size(pivots.ndim() - 1) == rows(lu),
        Runtime,
        "{name}: Number of pivots per batch should be same as the dimension of the matrix, got {} \
         for {}",
        Show(pivots.shape()),
        Show(lu.shape())
    );
    let p = permutation(pivots, rows(lu), lu.dtype())?;
    // The adjoint is the transpose of the conjugate.
    let lu = &if adjoint { lu.conj()? } else { lu.clone() };
    // X A = B is A' X' = B'.
    let b = if left { b.clone() } else { swapped(b)? };
    let y = if adjoint == left {
        let t = swapped(lu)?;
        let y = triangular_system(name, &t, &b, false, true, false)?;
        in_columns(&p.matmul(&triangular_system(name, &t, &y, true, true, true)?)?)?
    } else {
        let y = triangular_system(name, lu, &swapped(&p)?.matmul(&b)?, false, true, true)?;
        triangular_system(name, lu, &y, true, true, false)?
    };
    if left {
        Ok(y)
    } else {
        swapped(&y)
    }
}

fn tuple(t: impl IntoIterator<Item = Tensor>) -> Result<Value> {
    Ok(Value::Tuple(t.into_iter().collect()))
}

/// P, L and U from factors packed by `lu_factor`.
fn lu_unpack(lu: &Tensor, pivots: &Tensor, data: bool, want: bool) -> Result<Vec<Tensor>> {
    const NAME: &str = "lu_unpack";
    check_matrix(NAME, lu)?;
    let (m, n) = (rows(lu), cols(lu));
    let k = m.min(n);
    let none = || Tensor::zeros(&[0], lu.dtype(), lu.device());
    ensure!(
        !want || pivots.dtype() == DType::I32,
        Runtime,
        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. \
         Note: this function is intended to be used with the output produced by \
         torch.linalg.lu_factor"
    );
    let p = if want {
        ensure!(
            pivots.shape().last() == Some(&k),
            Runtime,
            "{NAME}: LU_pivots must have one entry for each of the {k} columns that were \
             eliminated, got shape {} for LU_data of {}",
            Show(pivots.shape()),
            Show(lu.shape())
        );
        permutation(pivots, m, lu.dtype())?
    } else {
        none()?
    };
    if !data {
        return Ok(vec![p, none()?, none()?]);
    }
    let part = |d: i64| lu.slice_dim(d, Some(0), Some(k as i64), 1);
    let l = triangle(&part(-1)?, false, true)?;
    let unit = factor_eye(lu, m, k)?;
    Ok(vec![p, l.add(&unit)?, triangle(&part(-2)?, true, false)?])
}

/// There is one way to compute singular values, which a driver cannot choose.
fn default_driver(name: &str, driver: Option<&str>) -> Result<()> {
    match driver {
        None => Ok(()),
        Some(d) => bail!(
            Runtime,
            "{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER \
             backend, got '{d}'"
        ),
    }
}

crate::entries! {
    /// Slices across `dim` whose `p`-norm is larger than `maxnorm`, scaled down to it.
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", ALL | WHOLE,
    |a| Ok(renorm(a.tensor(arg!(self))?, a.float(arg!(p))?, a.int(arg!(dim))?, a.float(arg!(maxnorm))?)?.into());
    /// P, L and U of a packed factorisation.
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    FN | OUT,
    |a| tuple(lu_unpack(a.tensor(arg!(LU_data))?, a.tensor(arg!(LU_pivots))?, a.bool(arg!(unpack_data))?, a.bool(arg!(unpack_pivots))?)?);
    /// The diagonal of each matrix, as a view.
    "diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", LINALG,
    |a| {
        let (o, d, e) = (a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?);
        Ok(a.tensor(arg!(A))?.part("DiagonalBackward0", |l| l.diagonal(o, d, e))?.into())
    };
    /// The lower (or upper) triangle L of A = L L'.
    "cholesky(Tensor input, *, bool upper=False) -> Tensor", LINALG | OUT,
    |a| Ok(cholesky("linalg.cholesky", a.tensor(arg!(input))?, a.bool(arg!(upper))?)?.into());
    "cholesky_ex(Tensor input, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    LINALG | OUT,
    |a| {
        let (l, info) = cholesky_ex("linalg.cholesky", a.tensor(arg!(input))?, a.bool(arg!(upper))?)?;
        if a.bool(arg!(check_errors))? {
            check_cholesky("linalg.cholesky_ex", &info)?;
        }
        tuple([l, info])
    };
    "cholesky(Tensor self, bool upper=False) -> Tensor", FN | METHOD | CASTS,
    |a| {
        host::warn_once(
            "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in \
             a future PyTorch release.",
        );
        Ok(cholesky("cholesky", a.tensor(arg!(self))?, a.bool(arg!(upper))?)?.into())
    };
    /// The solution of A X = self for A = L L'.
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", FN | METHOD | OUT,
    |a| Ok(cholesky_solve(a.tensor(arg!(self))?, a.tensor(arg!(input2))?, a.bool(arg!(upper))?)?.into());
    /// The inverse of L L'.
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", FN | METHOD | CASTS,
    |a| {
        Ok(cholesky_inverse(a.tensor(arg!(self))?, a.bool(arg!(upper))?)?.into())
    };
    /// The determinant.
    "det(Tensor A) -> Tensor", LINALG | OUT, |a| Ok(det("linalg.det", a.tensor(arg!(A))?)?.into());
    "det(Tensor self) -> Tensor", FN | METHOD, |a| Ok(det("linalg.det", a.tensor(arg!(self))?)?.into());
    /// The sign of the determinant and the logarithm of its absolute value.
    "slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", LINALG | OUT,
    |a| tuple(slogdet("linalg.slogdet", a.tensor(arg!(A))?)?);
    "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", FN | METHOD | OUT,
    |a| tuple(slogdet("linalg.slogdet", a.tensor(arg!(self))?)?);
    /// The logarithm of the determinant; NaN where it is negative.
    "logdet(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        let y = slogdet("logdet", a.tensor(arg!(self))?)?;
        Ok(apply(Log, [&y[0]])?.add(&y[1])?.into())
    };
    /// The inverse.
    "inv(Tensor A) -> Tensor", LINALG | OUT, |a| Ok(inverse("linalg.inv", a.tensor(arg!(A))?)?.into());
    "inverse(Tensor self) -> Tensor", FN | METHOD | OUT,
    |a| Ok(inverse("linalg.inv", a.tensor(arg!(self))?)?.into());
    "inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", LINALG | OUT,
    |a| {
        let (y, info) = inv_ex("linalg.inv", a.tensor(arg!(A))?)?;
        if a.bool(arg!(check_errors))? {
            check_inverse("linalg.inv_ex", &info)?;
        }
        tuple([y, info])
    };
    /// The solution of A X = B, or of X A = B.
    "solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", LINALG | OUT,
    |a| {
        let (x, info) = solve_ex("linalg.solve", a.tensor(arg!(A))?, a.tensor(arg!(B))?, a.bool(arg!(left))?)?;
        check_solve("linalg.solve", &info)?;
        Ok(x.into())
    };
    "solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    LINALG | OUT,
    |a| {
        let (x, info) = solve_ex("linalg.solve", a.tensor(arg!(A))?, a.tensor(arg!(B))?, a.bool(arg!(left))?)?;
        if a.bool(arg!(check_errors))? {
            check_solve("linalg.solve_ex", &info)?;
        }
        tuple([x, info])
    };
    /// The solution of A X = B for a triangle of A.
    "solve_triangular(Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    LINALG | OUT | WHOLE,
    |a| {
        let (x, b) = (a.tensor(arg!(input))?, a.tensor(arg!(B))?);
        let (upper, left, unit) = (a.bool(arg!(upper))?, a.bool(arg!(left))?, a.bool(arg!(unitriangular))?);
        Ok(triangular_system("linalg.solve_triangular", x, b, upper, left, unit)?.into())
    };
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    FN | METHOD | OUT,
    |a| {
        host::warn_once(
            "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular\
             and will be removed in a future PyTorch release.",
        );
        let (b, x) = (a.tensor(arg!(self))?, a.tensor(arg!(A))?);
        let (upper, transpose, unit) = (a.bool(arg!(upper))?, a.bool(arg!(transpose))?, a.bool(arg!(unitriangular))?);
        check_square("triangular_solve", x)?;
        let m = if transpose { swapped(x)? } else { x.clone() };
        let y = triangular_system("triangular_solve", &m, b, upper != transpose, true, unit)?;
        let batch = y.shape()[..y.ndim() - 2].iter().copied();
        let shape: Dims = batch.chain([rows(x), cols(x)]).collect();
        tuple([y, swapped(&swapped(&x.expand_to(&shape)?)?.copy_dense()?)?])
    };
    /// Q with orthogonal columns and the triangle R with A = Q R.
    "qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", LINALG | OUT,
    |a| tuple(qr("linalg.qr", a.tensor(arg!(A))?, a.str(arg!(mode))?)?);
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", FN | METHOD | OUT,
    |a| {
        host::warn_once(
            "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future \
             PyTorch release.",
        );
        tuple(qr("linalg.qr", a.tensor(arg!(self))?, if a.bool(arg!(some))? { "reduced" } else { "complete" })?)
    };
    /// A = U diag(S) Vh.
    "svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    LINALG | OUT,
    |a| {
        default_driver("linalg.svd", a.opt_str(arg!(driver)))?;
        tuple(svd("linalg.svd", a.tensor(arg!(A))?, a.bool(arg!(full_matrices))?)?)
    };
    /// A = U diag(S) V'.
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    FN | METHOD | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        let [u, s, vh] = svd("linalg.svd", x, !a.bool(arg!(some))? && a.bool(arg!(compute_uv))?)?;
        if !a.bool(arg!(compute_uv))? {
            let side = |n: usize| -> Result<Tensor> {
                let batch = &x.shape()[..x.ndim() - 2];
                let shape: Dims = batch.iter().copied().chain([n, n]).collect();
                Tensor::zeros(&shape, x.dtype(), x.device())
            };
            return tuple([side(rows(x))?, s, side(cols(x))?]);
        }
        tuple([u, s, adjoint(&vh)?])
    };
    /// Singular values, descending.
    "svdvals(Tensor A, *, str? driver=None) -> Tensor", LINALG | OUT,
    |a| {
        default_driver("linalg.svdvals", a.opt_str(arg!(driver)))?;
        Ok(svdvals("linalg.svdvals", a.tensor(arg!(A))?)?.into())
    };
    /// Eigenvalues, ascending, and eigenvectors of a symmetric matrix.
    "eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", LINALG | OUT,
    |a| tuple(eigh("linalg.eigh", a.tensor(arg!(A))?, a.str(arg!(UPLO))?)?);
    /// Eigenvalues of a symmetric matrix, ascending.
    "eigvalsh(Tensor A, str UPLO='L') -> Tensor", LINALG | OUT,
    |a| Ok(eigvalsh("linalg.eigvalsh", a.tensor(arg!(A))?, a.str(arg!(UPLO))?)?.into());
    /// The Moore-Penrose inverse.
    "pinv(Tensor input, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, bool hermitian=False) -> Tensor",
    LINALG | CASTS,
    |a| {
        let (x, atol, rtol) = (a.tensor(arg!(input))?, optional(a, arg!(atol))?, optional(a, arg!(rtol))?);
        Ok(pinv("linalg.pinv", x, atol, rtol, a.bool(arg!(hermitian))?)?.into())
    };
    "pinv(Tensor input, Tensor|Scalar rcond, bool hermitian=False) -> Tensor", LINALG | CASTS,
    |a| Ok(pinv("linalg.pinv", a.tensor(arg!(input))?, None, optional(a, arg!(rcond))?, a.bool(arg!(hermitian))?)?.into());
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor", FN | METHOD,
    |a| Ok(pinv("linalg.pinv", a.tensor(arg!(self))?, None, optional(a, arg!(rcond))?, false)?.into());
    /// The number of singular values above a threshold.
    "matrix_rank(Tensor input, *, Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None, bool hermitian=False) -> Tensor",
    LINALG | CASTS,
    |a| {
        let (x, atol, rtol) = (a.tensor(arg!(input))?, optional(a, arg!(atol))?, optional(a, arg!(rtol))?);
        Ok(matrix_rank(x, atol, rtol, a.bool(arg!(hermitian))?)?.into())
    };
    "matrix_rank(Tensor input, Tensor|Scalar tol, bool hermitian=False) -> Tensor", LINALG | CASTS,
    |a| {
        let zero = Tensor::full(&[], Scalar::Float(0.0), a.tensor(arg!(input))?.dtype().part(), a.tensor(arg!(input))?.device())?;
        Ok(matrix_rank(a.tensor(arg!(input))?, optional(a, arg!(tol))?, Some(zero), a.bool(arg!(hermitian))?)?.into())
    };
    /// The ratio of a matrix norm of A to that of its inverse's reciprocal.
    "cond(Tensor input, Scalar? p=None) -> Tensor", LINALG | CASTS,
    |a| Ok(cond(a.tensor(arg!(input))?, Order::P(a.opt_float(arg!(p)).unwrap_or(2.0)))?.into());
    "cond(Tensor input, str p) -> Tensor", LINALG | CASTS,
    |a| Ok(cond(a.tensor(arg!(input))?, named("linalg.cond", a.str(arg!(p))?)?)?.into());
    /// A norm of each matrix.
    "matrix_norm(Tensor input, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    LINALG | OUT,
    |a| {
        let order = Order::P(a.float(arg!(ord))?);
        let y = matrix_norm("linalg.matrix_norm", a.tensor(arg!(input))?, order, a.ints(arg!(dim))?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?;
        Ok(y.into())
    };
    "matrix_norm(Tensor input, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    LINALG | OUT,
    |a| {
        const NAME: &str = "linalg.matrix_norm";
        let order = named(NAME, a.str(arg!(ord))?)?;
        Ok(matrix_norm(NAME, a.tensor(arg!(input))?, order, a.ints(arg!(dim))?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// A vector or matrix norm, by the number of dimensions.
    "norm(Tensor input, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    LINALG | OUT,
    |a| Ok(norm(a.tensor(arg!(input))?, a.opt_float(arg!(ord)), a.opt_ints(arg!(dim)), a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into());
    "norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    LINALG | OUT,
    |a| {
        const NAME: &str = "linalg.norm";
        let (x, order) = (a.tensor(arg!(input))?, named(NAME, a.str(arg!(ord))?)?);
        let dims = match a.opt_ints(arg!(dim)) {
            Some(d) => d,
            None => {
                ensure!(
                    x.ndim() == 1 || x.ndim() == 2,
                    Runtime,
                    "{NAME}: If dim is not specified but ord is, the input must be 1D or 2D. Got \
                     {}D.",
                    x.ndim()
                );
                &[-2, -1]
            }
        };
        Ok(matrix_norm(MATRIX, x, order, dims, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// A product of n factors A; the inverse's for negative n.
    "matrix_power(Tensor input, int n) -> Tensor", LINALG | OUT,
    |a| Ok(matrix_power("linalg.matrix_power", a.tensor(arg!(input))?, a.int(arg!(n))?)?.into());
    "matrix_power(Tensor self, int n) -> Tensor", FN | METHOD | OUT,
    |a| Ok(matrix_power("linalg.matrix_power", a.tensor(arg!(self))?, a.int(arg!(n))?)?.into());
    /// A = P L U.
    "lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", LINALG | OUT,
    |a| {
        check_matrix("linalg.lu", a.tensor(arg!(A))?)?;
        let mut y = factor(Kind::Lu { pivot: a.bool(arg!(pivot))? }, &[a.tensor(arg!(A))?])?.into_vec();
        if !a.bool(arg!(pivot))? {
            y[0] = Tensor::zeros(&[0], y[1].dtype(), y[1].device())?;
        }
        tuple(y)
    };
    /// L and U in one matrix, and the exchanged rows, counted from 1.
    "lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", LINALG | OUT,
    |a| {
        check_matrix("linalg.lu_factor", a.tensor(arg!(A))?)?;
        let y = factor(Kind::LuFactor { pivot: a.bool(arg!(pivot))? }, &[a.tensor(arg!(A))?])?.into_vec();
        if let Some((i, at)) = failure(&y[2])? {
            bail!(
                Runtime,
                "linalg.lu_factor: {at}U[{i},{i}] is zero and using it on lu_solve would result in \
                 a division by zero. If you still want to perform the factorization, consider \
                 calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
            );
        }
        tuple(y.into_iter().take(2))
    };
    "lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    LINALG | OUT,
    |a| {
        check_matrix("linalg.lu_factor_ex", a.tensor(arg!(A))?)?;
        tuple(factor(Kind::LuFactor { pivot: a.bool(arg!(pivot))? }, &[a.tensor(arg!(A))?])?)
    };
    /// The solution of A X = B from A's factors.
    "lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    LINALG | OUT,
    |a| {
        let (lu, p, b) = (a.tensor(arg!(LU))?, a.tensor(arg!(pivots))?, a.tensor(arg!(B))?);
        Ok(lu_solve("linalg.lu_solve", lu, p, b, a.bool(arg!(left))?, a.bool(arg!(adjoint))?)?.into())
    };
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", FN | METHOD | OUT,
    |a| {
        host::warn_once(
            "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve\
             and will be removed in a future PyTorch release.",
        );
        Ok(lu_solve("lu_solve", a.tensor(arg!(LU_data))?, a.tensor(arg!(LU_pivots))?, a.tensor(arg!(self))?, true, false)?.into())
    };
}

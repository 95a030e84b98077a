//! Products of Householder's reflectors, which `geqrf` leaves of a matrix.

use super::*;
use crate::arg;
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;

/// Q C (with `transpose` Q' C) for the product Q of the reflectors below the diagonal of `a`. As
/// Q = I - V (I + D S)^-1 D V' with the factors D and the strict upper triangle S of V' V: Schreiber
/// and Van Loan 1989, with factors that may be 0.
pub(super) fn reflected(a: &Tensor, tau: &Tensor, c: &Tensor, transpose: bool) -> Result<Tensor> {
    let (m, k) = (rows(a), tau.size(tau.ndim() - 1));
    let v = a.slice_dim(-1, Some(0), Some(k as i64), 1)?;
    let v = v.tril(-1)?.add(&factor_eye(a, m, k)?)?;
    let (vt, d) = (adjoint(&v)?, column(tau)?);
    let inner = vt.matmul(&v)?.triu(1)?.mul(&d)?;
    let (inner, x) = (inner.add(&eye(a, k)?)?, vt.matmul(c)?);
    let x = match transpose {
        false => solve_triangular(&inner, &x.mul(&d)?, true, true)?,
        true => solve_triangular(&adjoint(&inner)?, &x, false, true)?.mul(&d.conj()?)?,
    };
    c.sub(&v.matmul(&x)?)
}

/// What a matrix of reflectors and their factors must be.
fn check(name: &str, a: &Tensor, tau: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        Runtime,
        "{name}: input must have at least 2 dimensions."
    );
    check_float(name, a)?;
    ensure!(
        tau.dtype() == a.dtype(),
        Runtime,
        "{name}: tau dtype {} does not match input dtype {}",
        tau.dtype().scalar_name(),
        a.dtype().scalar_name()
    );
    ensure!(
        tau.ndim() + 1 == a.ndim(),
        Runtime,
        "{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} \
         and input.ndim is equal to {}",
        tau.ndim(),
        a.ndim()
    );
    ensure!(
        batch_of(a) == &tau.shape()[..tau.ndim() - 1],
        Runtime,
        "{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {} for {}",
        Show(tau.shape()),
        Show(a.shape())
    );
    ensure!(
        cols(a) >= tau.size(tau.ndim() - 1),
        Runtime,
        "{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], got {} for {}",
        Show(tau.shape()),
        Show(a.shape())
    );
    Ok(())
}

fn householder_product(name: &str, a: &Tensor, tau: &Tensor) -> Result<Tensor> {
    check(name, a, tau)?;
    ensure!(
        rows(a) >= cols(a),
        Runtime,
        "{name}: input.shape[-2] must be greater than or equal to input.shape[-1], got {}",
        Show(a.shape())
    );
    let unit = factor_eye(a, rows(a), cols(a))?.expand_to(a.shape())?;
    in_columns(&reflected(a, tau, &unit, false)?)
}

fn ormqr<Sig: Signature>(a: &Args<Sig>) -> Result<Tensor> {
    const NAME: &str = "torch.ormqr";
    let (x, tau, c) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(input2))?,
        a.tensor(arg!(input3))?,
    );
    let (left, transpose) = (a.bool(arg!(left))?, a.bool(arg!(transpose))?);
    if x.ndim() >= 2 && c.ndim() >= 2 && tau.ndim() > 0 {
        let least = match left {
            true => rows(c).min(cols(x)),
            false => cols(c).min(cols(x)),
        };
        ensure!(
            tau.size(tau.ndim() - 1) == least || tau.size(tau.ndim() - 1) < cols(x),
            Runtime,
            "{NAME}: tau.shape[-1] must be equal to min(other.shape[{}], input.shape[-1]), got {} \
             and {least}",
            if left { -2 } else { -1 },
            tau.size(tau.ndim() - 1)
        );
    }
    check(NAME, x, tau)?;
    ensure!(
        c.dtype() == x.dtype(),
        Runtime,
        "{NAME}: Expected input and other to have the same dtype, but input has dtype {} and other \
         has dtype {}",
        x.dtype().scalar_name(),
        c.dtype().scalar_name()
    );
    ensure!(
        c.ndim() == x.ndim() && batch_of(c) == batch_of(x),
        Runtime,
        "{NAME}: Expected other to have the batch dimensions of input, but got {} and {}",
        Show(c.shape()),
        Show(x.shape())
    );
    let (size, which) = if left { (rows(c), -2) } else { (cols(c), -1) };
    ensure!(
        size == rows(x),
        Runtime,
        "{NAME}: other.shape[{which}] must be equal to input.shape[-2], got {size} and {}",
        rows(x)
    );
    ensure!(
        tau.size(tau.ndim() - 1) <= rows(x),
        Runtime,
        "{NAME}: other.shape[{which}] must be greater than or equal to tau.shape[-1], got {size} and {}",
        tau.size(tau.ndim() - 1)
    );
    in_columns(&match left {
        true => reflected(x, tau, c, transpose)?,
        // C Q = (Q' C')'.
        false => adjoint(&reflected(x, tau, &adjoint(c)?, !transpose)?)?,
    })
}

fn geqrf(x: &Tensor) -> Result<Value> {
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "geqrf: input must have at least 2 dimensions, got {}",
        x.ndim()
    );
    check_float("geqrf", x)?;
    Ok(Value::Tuple(Factor(Kind::Reflectors).run(&[x])?.into_vec()))
}

crate::entries! {
    /// The first columns of a product of Householder's reflectors.
    "householder_product(Tensor input, Tensor tau) -> Tensor", LINALG | OUT,
    |a| Ok(householder_product("linalg.householder_product", a.tensor(arg!(input))?, a.tensor(arg!(tau))?)?.into());
    /// The first columns of a product of Householder's reflectors.
    "orgqr(Tensor self, Tensor input2) -> Tensor", FN | METHOD | OUT,
    |a| Ok(householder_product("orgqr", a.tensor(arg!(self))?, a.tensor(arg!(input2))?)?.into());
    /// A matrix times a product of Householder's reflectors.
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    FN | METHOD | OUT, |a| Ok(ormqr(a)?.into());
    /// R of A = Q R above the reflectors whose product is Q, and their factors.
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)", FN | METHOD | OUT, |a| geqrf(a.tensor(arg!(self))?);
}

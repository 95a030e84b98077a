//! Symmetric and Hermitian matrices that need not be definite, as L D L' and L D L*.

use super::*;
use crate::arg;
use crate::ops::shape::join::cat;
use crate::schema::Value;
use crate::shape::Show;

fn ldl_factor(name: &str, a: &Tensor, hermitian: bool, check: bool) -> Result<Vec<Tensor>> {
    check_square(name, a)?;
    let y = Factor(Kind::Ldl { hermitian }).run(&[a])?.into_vec();
    if let (true, Some((i, at))) = (check, failure(&y[2])?) {
        bail!(
            LinAlg,
            "{name}: {at}D[{i},{i}] is zero and using it on ldl_solve would result in a division by \
             zero"
        );
    }
    Ok(y)
}

/// Pivots are rows from 1 on, and negative ones come in pairs.
fn check_pivots(pivots: &Tensor) -> Result<()> {
    if !pivots.is_readable() {
        return Ok(());
    }
    let n = pivots.size(pivots.ndim() - 1);
    let host = pivots.detach().prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    for row in unsafe { host.slice::<i64>() }.chunks(n.max(1)) {
        let mut k = 0;
        while k < n {
            let pair = row[k] < 0;
            let sound = (1..=n as u64).contains(&row[k].unsigned_abs())
                && (!pair || row.get(k + 1).is_some_and(|&p| p == row[k]));
            ensure!(
                sound,
                Runtime,
                "linalg.ldl_solve: pivots must be those of ldl_factor, from 1 to {n} and negative \
                 in pairs, got {}",
                Show(row)
            );
            k += 1 + pair as usize;
        }
    }
    Ok(())
}

fn ldl_solve(ld: &Tensor, pivots: &Tensor, b: &Tensor, hermitian: bool) -> Result<Tensor> {
    const NAME: &str = "linalg.ldl_solve";
    check_square(NAME, ld)?;
    ensure!(
        b.ndim() >= 2,
        Runtime,
        "{NAME}: Expected B to have at least 2 dimensions, but it has {}",
        b.ndim()
    );
    ensure!(
        b.dtype() == ld.dtype(),
        Runtime,
        "{NAME}: Expected b and A to have the same dtype, but found b of type {} and A of type {} \
         instead.",
        b.dtype().scalar_name(),
        ld.dtype().scalar_name()
    );
    ensure!(
        pivots.shape()[..] == ld.shape()[..ld.ndim() - 1],
        Runtime,
        "{NAME}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape \
         {} and LD with {}",
        Show(pivots.shape()),
        Show(ld.shape())
    );
    ensure!(
        pivots.dtype().is_int(),
        Runtime,
        "{NAME}: Expected pivots to be integers. Got {}",
        pivots.dtype().scalar_name()
    );
    let n = cols(ld);
    ensure!(
        rows(b) == n,
        Runtime,
        "{NAME}: Incompatible matrix sizes: each A matrix is {n} by {n} but each b matrix is {} by \
         {}",
        rows(b),
        cols(b)
    );
    check_pivots(pivots)?;
    let packed = cat(&[ld.clone(), column(&pivots.to_dtype(ld.dtype())?)?], -1)?;
    Factor(Kind::LdlSolve { hermitian }).first(&[&packed, b])
}

crate::entries! {
    /// L and D of a symmetric A = L D L', or a Hermitian A = L D L*, in one matrix, and the exchanged rows.
    "ldl_factor(Tensor input, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", LINALG | OUT,
    |a| {
        let mut y = ldl_factor("linalg.ldl_factor", a.tensor(arg!(input))?, a.bool(arg!(hermitian))?, true)?;
        y.truncate(2);
        Ok(Value::Tuple(y))
    };
    "ldl_factor_ex(Tensor input, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
    LINALG | OUT,
    |a| Ok(Value::Tuple(ldl_factor("linalg.ldl_factor_ex", a.tensor(arg!(input))?, a.bool(arg!(hermitian))?, a.bool(arg!(check_errors))?)?));
    /// The solution of A X = B from A's factors L and D.
    "ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", LINALG | OUT,
    |a| Ok(ldl_solve(a.tensor(arg!(LD))?, a.tensor(arg!(pivots))?, a.tensor(arg!(B))?, a.bool(arg!(hermitian))?)?.into());
}

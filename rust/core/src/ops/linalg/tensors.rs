//! Tensors as matrices: their inverse and systems of equations.

use super::matrix::inverse;
use super::{check_solve, solve_ex};
use crate::arg;
use crate::ensure;
use crate::error::Result;
use crate::shape::Dims;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The inverse for `tensordot` of a tensor as a matrix: its first `ind` dimensions are rows.
fn tensorinv(x: &Tensor, ind: i64) -> Result<Tensor> {
    ensure!(
        ind > 0,
        Runtime,
        "linalg.tensorinv: Expected a strictly positive integer for 'ind', got {ind}"
    );
    let k = ind as usize;
    ensure!(
        k <= x.ndim(),
        Runtime,
        "linalg.tensorinv: Expected 'ind' to be at most the number of dimensions, {}, got {ind}",
        x.ndim()
    );
    let (p, q) = x.shape().split_at(k);
    let (m, n) = (p.iter().product::<usize>(), q.iter().product::<usize>());
    ensure!(
        m == n,
        Runtime,
        "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == \
         prod(self.shape[:ind]), but got {n} != {m}"
    );
    let shape: Dims = q.iter().chain(p).copied().collect();
    inverse("linalg.tensorinv", &x.reshape_to(&[m, n])?)?.reshape_to(&shape)
}

/// The solution of `tensordot(A, X, X.ndim) = B`; `dims` of A are moved to its end before.
fn tensorsolve(a: &Tensor, b: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    let a = match dims {
        Some(dims) => {
            let n = a.ndim() as i64;
            let ends: SmallVec<[i64; 5]> = (n - dims.len() as i64..n).collect();
            a.movedim(dims, &ends)?
        }
        None => a.clone(),
    };
    let (p, q) = a.shape().split_at(b.ndim().min(a.ndim()));
    let (m, n) = (p.iter().product::<usize>(), q.iter().product::<usize>());
    ensure!(
        m == n && m == b.numel(),
        Runtime,
        "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) \
         == prod(self.shape[:other.ndim]), but got {n} != {}",
        if m == n { b.numel() } else { m }
    );
    let shape = Dims::from_slice(q);
    let matrix = a.reshape_to(&[m, n])?;
    const NAME: &str = "linalg.solve";
    let (x, info) = solve_ex(NAME, &matrix, &b.reshape_to(&[m])?, true)?;
    check_solve(NAME, &info)?;
    x.reshape_to(&shape)
}

crate::entries! {
    /// The inverse of a tensor taken as a matrix from its last dimensions to its first.
    "tensorinv(Tensor input, int ind=2) -> Tensor", LINALG | CASTS,
    |a| Ok(tensorinv(a.tensor(arg!(input))?, a.int(arg!(ind))?)?.into());
    /// The solution X of A X = B, where A X sums over all dimensions of X.
    "tensorsolve(Tensor input, Tensor other, int[]? dims=None) -> Tensor", LINALG | CASTS,
    |a| Ok(tensorsolve(a.tensor(arg!(input))?, a.tensor(arg!(other))?, a.opt_ints(arg!(dims)))?.into());
}

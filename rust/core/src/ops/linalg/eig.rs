//! Eigenvalues of matrices that need not be symmetric: complex numbers.

use super::{check_square, is_finite, Factor, Kind};
use crate::arg;
use crate::dispatch;
use crate::ensure;
use crate::error::Result;
use crate::schema::Value;
use crate::tensor::Tensor;

/// Numbers that are pairs where the matrix is real.
fn complex(t: &Tensor) -> Result<Tensor> {
    match t.dtype().is_complex() {
        true => Ok(t.clone()),
        false => t.as_complex(),
    }
}

/// Raises in the one text that PyTorch has for `eig` and `eigvals`.
fn check_eigenvalues(a: &Tensor) -> Result<()> {
    ensure!(
        is_finite(a)?,
        Runtime,
        "torch.linalg.eig: input tensor should not contain infs or NaNs."
    );
    Ok(())
}

fn eig(name: &str, a: &Tensor) -> Result<[Tensor; 2]> {
    check_square(name, a)?;
    check_eigenvalues(a)?;
    let y = Factor(Kind::Eig { vectors: true }).run(&[a])?;
    Ok([complex(&y[0])?, complex(&y[1])?])
}

fn eigvals(a: &Tensor) -> Result<Tensor> {
    const NAME: &str = "linalg.eigvals";
    if dispatch::recorded(&[a]) {
        return Ok(eig(NAME, a)?[0].clone());
    }
    check_square(NAME, a)?;
    check_eigenvalues(a)?;
    complex(&Factor(Kind::Eig { vectors: false }).first(&[a])?)
}

crate::entries! {
    /// Eigenvalues and eigenvectors of a square matrix, as complex numbers.
    "eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)", LINALG | OUT,
    |a| Ok(Value::Tuple(eig("linalg.eig", a.tensor(arg!(A))?)?.into()));
    /// Eigenvalues of a square matrix, as complex numbers.
    "eigvals(Tensor A) -> Tensor", LINALG | OUT, |a| Ok(eigvals(a.tensor(arg!(A))?)?.into());
}

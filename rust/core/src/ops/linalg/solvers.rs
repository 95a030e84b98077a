//! Systems of equations, eigenvalues and singular values as they are called: checks, errors and
//! named results.

use super::*;
use crate::cpu::elements::Element;
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::join::cat;
use crate::shape::{DimSet, Show};

/// The first nonzero entry of `info` and where in the batch it is.
pub fn failure(info: &Tensor) -> Result<Option<(i64, String)>> {
    if !info.is_readable() {
        return Ok(None);
    }
    let host = info.to_host()?.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let found = unsafe { host.slice::<i64>() }
        .iter()
        .enumerate()
        .find(|(_, &v)| v != 0);
    Ok(found.map(|(b, &v)| {
        (
            v,
            if info.ndim() > 0 {
                format!("(Batch element {b}): ")
            } else {
                String::new()
            },
        )
    }))
}

pub fn check_cholesky(name: &str, info: &Tensor) -> Result<()> {
    if let Some((i, at)) = failure(info)? {
        bail!(
            LinAlg,
            "{name}: {at}The factorization could not be completed because the input is not \
             positive-definite (the leading minor of order {i} is not positive-definite)."
        );
    }
    Ok(())
}

pub fn check_inverse(name: &str, info: &Tensor) -> Result<()> {
    if let Some((i, at)) = failure(info)? {
        bail!(
            LinAlg,
            "{name}: {at}The diagonal element {i} is zero, the inversion could not be completed \
             because the input matrix is singular."
        );
    }
    Ok(())
}

pub fn check_solve(name: &str, info: &Tensor) -> Result<()> {
    if let Some((_, at)) = failure(info)? {
        bail!(
            LinAlg,
            "{name}: {at}The solver failed because the input matrix is singular."
        );
    }
    Ok(())
}

/// `linalg.cholesky_ex`.
pub fn cholesky_ex(name: &str, a: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    check_square(name, a)?;
    let lower = if upper { adjoint(a)? } else { a.clone() };
    let mut y = Factor(Kind::Cholesky).run(&[&lower])?;
    let info = y.swap_remove(1);
    let l = y.swap_remove(0);
    let y = if upper { in_columns(&adjoint(&l)?)? } else { l };
    Ok((y, info))
}

/// `linalg.inv_ex`.
pub fn inv_ex(name: &str, a: &Tensor) -> Result<(Tensor, Tensor)> {
    check_square(name, a)?;
    let mut y = Factor(Kind::Inverse).run(&[a])?;
    let info = y.swap_remove(1);
    Ok((y.swap_remove(0), info))
}

/// What is known of each matrix, of the results of matrices that were used more than once.
fn of_batch(info: &Tensor, batch: &[usize]) -> Result<Tensor> {
    if info.numel() == 0 {
        return Tensor::zeros(batch, info.dtype(), info.device());
    }
    let mut info = info.clone();
    while info.ndim() > batch.len() {
        info = info.select(0, 0)?;
    }
    for (d, &n) in batch.iter().enumerate() {
        info = info.slice_dim(d as i64, Some(0), Some(n as i64), 1)?;
    }
    Ok(info)
}

/// `linalg.solve_ex`.
pub fn solve_ex(name: &str, a: &Tensor, b: &Tensor, left: bool) -> Result<(Tensor, Tensor)> {
    check_square(name, a)?;
    check_float(name, b)?;
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} \
         instead",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let n = cols(a);
    let vector =
        b.ndim() == 1 || (a.ndim() - 1 == b.ndim() && b.shape()[..] == a.shape()[..a.ndim() - 1]);
    ensure!(
        b.ndim() >= 1,
        Runtime,
        "{name}: B must have at least 1 dimension, got a 0D tensor"
    );
    ensure!(
        left || !vector,
        Runtime,
        "{name}: Vector broadcasting of the left hand side is not supported for left=False. In \
         this case linalg.solve is equivalent to B / A.squeeze(-1)"
    );
    let b = if vector { column(b)? } else { b.clone() };
    let fits = if left { rows(&b) == n } else { cols(&b) == n };
    ensure!(
        fits,
        Runtime,
        "{name}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {}x{})",
        if left { "AX = B" } else { "XA = B" },
        rows(&b),
        cols(&b)
    );
    let run = |a: &Tensor, b: &Tensor| -> Result<(Tensor, Tensor)> {
        let mut y = Factor(Kind::Solve).run(&[a, b])?;
        let info = y.swap_remove(1);
        Ok((y.swap_remove(0), info))
    };
    let (x, info) = if left {
        run(a, &b)?
    } else {
        let (x, info) = run(&swapped(a)?, &swapped(&b)?)?;
        (swapped(&x)?, info)
    };
    let x = match vector {
        true => x.reshape_to(&x.shape()[..x.ndim() - 1])?,
        false => x,
    };
    // PyTorch lays out several vectors as one matrix.
    let x = if vector && x.ndim() > 1 {
        in_columns(&x)?
    } else {
        x
    };
    Ok((x, of_batch(&info, &a.shape()[..a.ndim() - 2])?))
}

/// `linalg.solve_triangular`.
pub fn triangular_system(
    name: &str,
    a: &Tensor,
    b: &Tensor,
    upper: bool,
    left: bool,
    unit: bool,
) -> Result<Tensor> {
    check_square(name, a)?;
    check_matrix(name, b)?;
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} \
         instead",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let n = cols(a);
    ensure!(
        if left { rows(b) == n } else { cols(b) == n },
        Runtime,
        "{name}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {}x{})",
        if left { "AX = B" } else { "XA = B" },
        rows(b),
        cols(b)
    );
    if left {
        return solve_triangular(a, b, upper, unit);
    }
    in_columns(&swapped(&solve_triangular(
        &swapped(a)?,
        &swapped(b)?,
        !upper,
        unit,
    )?)?)
}

/// Whether a matrix that has data has no infinity and no NaN.
pub fn is_finite(a: &Tensor) -> Result<bool> {
    if !a.is_readable() {
        return Ok(true);
    }
    let a = match a.dtype().is_complex() {
        true => &a.detach().as_real()?,
        false => a,
    };
    let x = a.detach().prepared(a.dtype())?;
    Ok(crate::with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type.
        let x = unsafe { x.slice::<T>() };
        // Without a way out in the middle it is vector code.
        x.iter().fold(true, |ok, &v| ok & Element::to_f64(v).is_finite())
    }))
}

pub fn check_finite(name: &str, a: &Tensor) -> Result<()> {
    ensure!(is_finite(a)?, LinAlg, "{name}: {NOT_FINITE}");
    Ok(())
}

const NOT_FINITE: &str =
    "The algorithm failed to converge because the input matrix contained non-finite values.";

/// The matrices that a decomposition by singular values takes, and which of them have an infinity, with a
/// dimension for the values: they become zeros, and NaN is what comes of them, as LAPACK has it. NaN itself raises.
fn without_infinite(name: &str, a: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    if is_finite(a)? {
        return Ok((a.clone(), None));
    }
    let parts = match a.dtype().is_complex() {
        true => &a.detach().as_real()?,
        false => a,
    };
    let x = parts.detach().to_host()?.prepared(parts.dtype())?;
    let batch = batch_of(a);
    let each = x.numel() / batch.iter().product::<usize>();
    let infinite: Vec<u8> = crate::with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type.
        let x = unsafe { x.slice::<T>() };
        let mut found = alloc::list(x.len() / each)?;
        for (b, x) in x.chunks_exact(each).enumerate() {
            let nan = x.iter().any(|&v| Element::to_f64(v).is_nan());
            if nan && batch.is_empty() {
                bail!(LinAlg, "{name}: {NOT_FINITE}");
            }
            ensure!(!nan, LinAlg, "{name}: (Batch element {b}): {NOT_FINITE}");
            found.push(!x.iter().all(|&v| Element::to_f64(v).is_finite()) as u8);
        }
        found
    });
    let mask = Tensor::from_slice(&infinite, &join(batch, &[1]), DType::U8)?;
    let mask = mask.to_dtype(DType::Bool)?.to_device(a.device())?;
    let zero = Tensor::full(&[], Scalar::Int(0), a.dtype(), a.device())?;
    Ok((where_(&column(&mask)?, &zero, a)?, Some(mask)))
}

/// Singular values for norms and condition numbers, which are NaN for a matrix with an infinity.
pub fn values_or_nan(name: &str, a: &Tensor) -> Result<Tensor> {
    check_matrix(name, a)?;
    let (a, mask) = without_infinite(name, a)?;
    let s = svdvals(name, &a)?;
    let Some(mask) = mask else {
        return Ok(s);
    };
    let nan = Tensor::full(&[], Scalar::Float(f64::NAN), s.dtype(), s.device())?;
    where_(&mask, &nan, &s)
}

/// Named results of `linalg.svd` and its kin.
pub fn svd(name: &str, a: &Tensor, full: bool) -> Result<[Tensor; 3]> {
    check_matrix(name, a)?;
    check_finite(name, a)?;
    let y = Factor(Kind::Svd { full }).run(&[a])?;
    Ok([y[0].clone(), y[1].clone(), y[2].clone()])
}

/// Eigenvalues and eigenvectors from one triangle of a symmetric matrix.
pub fn eigh(name: &str, a: &Tensor, uplo: &str) -> Result<[Tensor; 2]> {
    let lower = check_eigh(name, a, uplo)?;
    let op = Factor(Kind::Eigh);
    let y = dispatch::compute(&op, &[&half(a, lower)?])?;
    dispatch::record(op, &[a], &y)?;
    Ok([y[0].clone(), y[1].clone()])
}

/// Whether the lower triangle is meant.
fn check_eigh(name: &str, a: &Tensor, uplo: &str) -> Result<bool> {
    check_square(name, a)?;
    let lower = match uplo {
        "L" | "l" => true,
        "U" | "u" => false,
        other => bail!(
            Runtime,
            "{name}: Expected UPLO argument to be 'L' or 'U', but got {other}"
        ),
    };
    check_finite(name, a)?;
    Ok(lower)
}

/// A matrix with the wanted triangle below the diagonal, where the kernel reads; the gradient goes
/// to the whole matrix, as PyTorch's does.
fn half(a: &Tensor, lower: bool) -> Result<Tensor> {
    if lower {
        Ok(a.detach())
    } else {
        adjoint(&a.detach())
    }
}

/// `linalg.eigvalsh`.
pub fn eigvalsh(name: &str, a: &Tensor, uplo: &str) -> Result<Tensor> {
    if dispatch::recorded(&[a]) {
        return Ok(eigh(name, a, uplo)?[0].clone());
    }
    let lower = check_eigh(name, a, uplo)?;
    Factor(Kind::Eigenvalues).first(&[&half(a, lower)?])
}

/// The matrix of real numbers that multiplies real and imaginary parts as `a` does. Each of its
/// singular values is there twice.
pub fn real_form(a: &Tensor) -> Result<Tensor> {
    let (re, im) = (a.real_part(0)?, a.real_part(1)?);
    let upper = cat(&[re.clone(), im.neg()?], -1)?;
    cat(&[upper, cat(&[im, re], -1)?], -2)
}

/// `linalg.svdvals`.
pub fn svdvals(name: &str, a: &Tensor) -> Result<Tensor> {
    // Of double precision its own reduction is quicker than that of a real matrix of twice the size.
    let own = a.dtype() == DType::C128 && a.device() == Device::Cpu && !dispatch::recorded(&[a]);
    if a.dtype().is_complex() && !own {
        ensure!(
            a.ndim() >= 2,
            Runtime,
            "{name}: The input tensor A must have at least 2 dimensions."
        );
        let twice = svdvals(name, &real_form(a)?)?;
        let batch = &a.shape()[..a.ndim() - 2];
        let pairs = twice.reshape_to(&join(batch, &[rows(a).min(cols(a)), 2]))?;
        // The mean, so that both have the same share in the gradient.
        return pairs.mean_mask(DimSet::last(1, pairs.ndim())?, false, None);
    }
    if dispatch::recorded(&[a]) {
        return Ok(svd(name, a, false)?[1].clone());
    }
    check_matrix(name, a)?;
    check_finite(name, a)?;
    Factor(Kind::SingularValues).first(&[a])
}

pub fn qr(name: &str, a: &Tensor, mode: &str) -> Result<[Tensor; 2]> {
    check_matrix(name, a)?;
    let full = match mode {
        "reduced" | "r" => false,
        "complete" => true,
        other => bail!(
            Runtime,
            "{name} received unrecognized mode '{other}' but expected one of 'reduced' (default), \
             'r', or 'complete'"
        ),
    };
    let y = Factor(Kind::Qr { full }).run(&[a])?;
    if mode == "r" {
        let none = Tensor::zeros(&[0], a.dtype(), a.device())?;
        return Ok([none, y[1].clone()]);
    }
    Ok([y[0].clone(), y[1].clone()])
}

/// `linalg.matrix_power`.
pub fn matrix_power(name: &str, a: &Tensor, n: i64) -> Result<Tensor> {
    // Products are of every type, inverses of floating ones.
    check_sides(name, a)?;
    if n == 0 {
        let y = a.copy_dense()?;
        y.copy_from(&eye(a, cols(a))?)?;
        return Ok(y);
    }
    let mut base = a.clone();
    if n < 0 {
        let (inverse, info) = inv_ex("linalg.inv", a)?;
        check_inverse("linalg.inv", &info)?;
        base = inverse;
    }
    let (mut e, mut out) = (n.unsigned_abs(), None::<Tensor>);
    while e > 0 {
        if e & 1 == 1 {
            out = Some(match out {
                Some(o) => o.matmul(&base)?,
                None => base.clone(),
            });
        }
        e >>= 1;
        if e > 0 {
            base = base.matmul(&base)?;
        }
    }
    match out {
        Some(o) if n == 1 => o.copy_dense(),
        Some(o) => Ok(o),
        None => bail!(Assertion, "{name}: no factor of {}", Show(a.shape())),
    }
}

//! Gradients of decompositions.

use super::{cols, column, constant, diag, eye, row, rows, solve_triangular, triangle};
use super::{real_form, solve_matrix};
use crate::autograd::Vjp;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::linalg::matmul::adjoint;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Gt;
use crate::ops::pointwise::unary::{Abs, Reciprocal};
use crate::ops::shape::join::cat;
use crate::tensor::Tensor;
use crate::{bail, ensure};

/// `x / gap` off the diagonal, 0 on it.
pub fn off_diagonal(x: &Tensor, gap: &Tensor) -> Result<Tensor> {
    let n = cols(x);
    let one = eye(x, n)?;
    let rest = constant(x, n, n, |i, j| (i != j) as u8 as f64)?;
    x.mul(&rest)?.div(&gap.add(&one)?)
}

pub fn has_zero(t: &Tensor) -> Result<bool> {
    if !t.is_readable() {
        return Ok(false);
    }
    let t = t.detach().to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(unsafe { t.slice::<f64>() }.contains(&0.0))
}

/// The diagonals of matrices.
fn diagonal(t: &Tensor) -> Result<Tensor> {
    t.part("DiagonalBackward0", |l| l.diagonal(0, -2, -1))
}

/// Refuses a loss that changes with the phases of complex vectors, by which no decomposition is bound:
/// `slopes` are its slopes as each vector is stretched, in the real part, and turned, in the imaginary one.
fn refuse_phases(name: &str, slopes: &Tensor) -> Result<()> {
    let turned = apply(Abs, [&slopes.detach().real_part(1)?])?;
    let limit = Tensor::number(Scalar::Float(1e-2))?;
    if !turned.is_readable() || !apply(Gt, [&turned, &limit])?.any_true()? {
        return Ok(());
    }
    let (vectors, so) = match name {
        "svd" => ("singular vectors", "phase term, making it ill-defined"),
        _ => ("eigenvectors", "quantity, so it is ill-defined"),
    };
    bail!(
        Runtime,
        "{name}_backward: The {vectors} in the complex case are specified up to multiplication by \
         e^{{i phi}}. The specified loss function depends on this {so}. Make it depend on what no phase \
         changes, such as absolute values or products of a vector with its own conjugate"
    )
}

/// A = V diag(L) V^H.
pub fn eigh(cx: &Vjp, g: &[Option<Tensor>]) -> Result<Tensor> {
    let (l, v) = (cx.output(0)?, cx.output(1)?);
    let vh = adjoint(&v)?;
    let mut inner = diag(&cx.grad_or_zeros(g, 0)?)?;
    if let Some(gv) = &g[1] {
        let t = vh.matmul(gv)?;
        if t.dtype().is_complex() {
            refuse_phases("linalg_eigh", &diagonal(&t)?)?;
        }
        inner = inner.add(&off_diagonal(&t, &row(&l)?.sub(&column(&l)?)?)?)?;
    }
    v.matmul(&inner.to_dtype(v.dtype())?)?.matmul(&vh)
}

/// A = P L U. Of a matrix that is not square the first columns, or rows, make the square one, and the
/// others are a triangular system of it.
pub fn lu(l: &Tensor, u: &Tensor, gl: &Tensor, gu: &Tensor, p: &Tensor) -> Result<Tensor> {
    let (m, k, n) = (rows(l) as i64, cols(l) as i64, cols(u) as i64);
    let part = |t: &Tensor, d, a, b| t.slice_dim(d, Some(a), Some(b), 1);
    let (square_l, square_u) = (part(l, -2, 0, k)?, part(u, -1, 0, k)?);
    let mut low = adjoint(&square_l)?.matmul(&part(gl, -2, 0, k)?)?;
    let mut high = part(gu, -1, 0, k)?.matmul(&adjoint(&square_u)?)?;
    let (more_u, more_l) = (part(gu, -1, k, n)?, part(gl, -2, k, m)?);
    if n > k {
        low = low.sub(&more_u.matmul(&adjoint(&part(u, -1, k, n)?)?)?)?;
    }
    if m > k {
        high = high.sub(&adjoint(&part(l, -2, k, m)?)?.matmul(&more_l)?)?;
    }
    let inner = triangle(&low, false, true)?.add(&triangle(&high, true, false)?)?;
    // L^-T X and X U^-T
    let from_left = |x: &Tensor| solve_triangular(&adjoint(&square_l)?, x, true, true);
    let from_right = |x: &Tensor| adjoint(&solve_triangular(&square_u, &adjoint(x)?, true, false)?);
    let mut d = from_right(&from_left(&inner)?)?;
    if n > k {
        d = crate::ops::shape::join::cat(&[d, from_left(&more_u)?], -1)?;
    }
    if m > k {
        d = crate::ops::shape::join::cat(&[d, from_right(&more_l)?], -2)?;
    }
    // Without exchanges there is no P.
    match p.numel() < l.numel() {
        true => Ok(d),
        false => p.matmul(&d),
    }
}

pub fn qr(cx: &Vjp, g: &[Option<Tensor>], full: bool) -> Result<Tensor> {
    let (q, r) = (cx.output(0)?, cx.output(1)?);
    ensure!(
        !full || rows(&q) <= cols(&r),
        Runtime,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols, \
         got {} by {}",
        rows(&q),
        cols(&r)
    );
    let (gq, gr) = (cx.grad_or_zeros(g, 0)?, cx.grad_or_zeros(g, 1)?);
    let (k, n) = (rows(&r) as i64, cols(&r) as i64);
    if k == n {
        return qr_square(&q, &r, &gq, &gr);
    }
    // More columns than rows: A = [X Y] and R = [U V] with X = Q U and Y = Q V.
    let part = |t: &Tensor, a, b| t.slice_dim(-1, Some(a), Some(b), 1);
    let (v, gv) = (part(&r, k, n)?, part(&gr, k, n)?);
    let gq = gq.add(&q.matmul(&v.matmul(&adjoint(&gv)?)?)?)?;
    let left = qr_square(&q, &part(&r, 0, k)?, &gq, &part(&gr, 0, k)?)?;
    crate::ops::shape::join::cat(&[left, q.matmul(&gv)?], -1)
}

/// The gradient of a decomposition with a square R.
fn qr_square(q: &Tensor, r: &Tensor, gq: &Tensor, gr: &Tensor) -> Result<Tensor> {
    let m = gr.matmul(&adjoint(r)?)?.sub(&adjoint(q)?.matmul(gq)?)?;
    let upper = triangle(&m, true, false)?;
    let n = cols(&m);
    let once = constant(&m, n, n, |i, j| if i == j { 0.5 } else { 1.0 })?;
    let inner = upper.add(&adjoint(&upper)?)?.mul(&once)?;
    let inner = gq.add(&q.matmul(&inner)?)?;
    // inner R^-T
    adjoint(&solve_triangular(r, &adjoint(&inner)?, true, false)?)
}

pub fn svd(cx: &Vjp, g: &[Option<Tensor>], full: bool) -> Result<Tensor> {
    let (mut u, s, mut vh) = (cx.output(0)?, cx.output(1)?, cx.output(2)?);
    let k = s.size(s.ndim() - 1);
    let (m, n) = (rows(&u), cols(&vh));
    let (mut gu, mut gvh) = (g[0].clone(), g[2].clone());
    if full && (gu.is_some() || gvh.is_some()) {
        ensure!(
            m == n,
            Runtime,
            "svd_backward: Setting compute_uv to false in torch.svd doesn't compute singular \
             matrices; full_matrices=True has a gradient for square matrices only, got {m} by {n}"
        );
    }
    let first = |t: &Tensor, d: i64| t.slice_dim(d, Some(0), Some(k as i64), 1);
    u = first(&u, -1)?;
    vh = first(&vh, -2)?;
    gu = gu.map(|t| first(&t, -1)).transpose()?;
    gvh = gvh.map(|t| first(&t, -2)).transpose()?;
    let mut inner = diag(&cx.grad_or_zeros(g, 1)?)?;
    let squares = s.mul(&s)?;
    let gap = || row(&squares)?.sub(&column(&squares)?);
    let skew = |t: &Tensor| t.sub(&adjoint(t)?);
    let v = adjoint(&vh)?;
    let from_u = gu.as_ref().map(|gu| adjoint(&u)?.matmul(gu)).transpose()?;
    let from_v = gvh.as_ref().map(|gvh| vh.matmul(&adjoint(gvh)?));
    let from_v = from_v.transpose()?;
    if u.dtype().is_complex() {
        // A phase that a column of U and one of V share changes nothing.
        let mut slopes = [&from_u, &from_v].into_iter().flatten().map(diagonal);
        if let Some(first) = slopes.next().transpose()? {
            let both = slopes.next().transpose()?.map(|second| first.add(&second));
            refuse_phases("svd", &both.transpose()?.unwrap_or(first))?;
        }
    }
    if let Some(t) = &from_u {
        let turned = skew(t)?;
        let t = off_diagonal(&turned, &gap()?)?;
        inner = inner.add(&t.mul(&row(&s)?)?)?;
        if u.dtype().is_complex() {
            // Phases of the columns, which U and V share.
            let own = diagonal(&turned)?;
            inner = inner.add(&diag(&own.div(&s.mul_scalar(2.0)?)?)?)?;
        }
    }
    if let Some(t) = &from_v {
        let t = off_diagonal(&skew(t)?, &gap()?)?;
        inner = inner.add(&column(&s)?.mul(&t)?)?;
    }
    let mut d = u.matmul(&inner.to_dtype(u.dtype())?)?.matmul(&vh)?;
    let inverse = apply(Reciprocal, [&s])?;
    if let (Some(gu), true) = (&gu, m > k) {
        let rest = gu.sub(&u.matmul(&adjoint(&u)?.matmul(gu)?)?)?;
        d = d.add(&rest.mul(&row(&inverse)?)?.matmul(&vh)?)?;
    }
    if let (Some(gvh), true) = (&gvh, n > k) {
        let rest = gvh.sub(&gvh.matmul(&v)?.matmul(&vh)?)?;
        d = d.add(&u.matmul(&column(&inverse)?.mul(&rest)?)?)?;
    }
    Ok(d)
}

/// A = V diag(L) V^-1 with columns of V of length 1. Giles 2008, "An extended collection of matrix
/// derivative results", with the derivative of the length; of a real matrix the real part.
pub fn eig(cx: &Vjp, g: &[Option<Tensor>]) -> Result<Tensor> {
    let real = !cx.output(0)?.dtype().is_complex();
    let complex = |t: &Tensor| match real {
        true => t.contiguous()?.as_complex(),
        false => Ok(t.clone()),
    };
    let (l, v) = (complex(&cx.output(0)?)?, complex(&cx.output(1)?)?);
    let vh = adjoint(&v)?;
    let mut inner = diag(&complex(&cx.grad_or_zeros(g, 0)?)?)?;
    if let Some(gv) = &g[1] {
        let t = vh.matmul(&complex(gv)?)?;
        let own = diagonal(&t)?;
        refuse_phases("linalg_eig", &own)?;
        let t = t.sub(&vh.matmul(&v.mul(&row(&own.real_part(0)?)?)?)?)?;
        let gap = row(&l)?.sub(&column(&l)?)?.conj()?;
        inner = inner.add(&off_diagonal(&t, &gap)?)?;
    }
    let right = inner.matmul(&vh)?;
    if !real {
        return solve_matrix(&vh, &right);
    }
    // V^-H inner V^H, by real numbers.
    let parts = cat(&[right.real_part(0)?, right.real_part(1)?], -2)?;
    let x = solve_matrix(&real_form(&vh)?, &parts)?;
    x.slice_dim(-2, Some(0), Some(cols(&v) as i64), 1)
}

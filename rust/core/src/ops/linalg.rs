//! Linear algebra: solvers and factorisations, batched, with gradients written over tensors.

use super::decompose::{self, Matrix};
use super::matmul::swapped;
use super::pointwise::apply;
use super::pointwise::unary::Reciprocal;
use crate::autograd::Vjp;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// A floating tensor of at least two dimensions that solvers take.
pub fn check_matrix(name: &str, a: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        Runtime,
        "{name}: The input tensor A must have at least 2 dimensions."
    );
    check_float(name, a)
}

pub fn check_float(name: &str, a: &Tensor) -> Result<()> {
    ensure!(
        a.dtype().is_float(),
        Runtime,
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        a.dtype().scalar_name()
    );
    ensure!(
        !a.dtype().is_half(),
        Runtime,
        "{name}: Low precision dtypes not supported. Got {}",
        a.dtype().scalar_name()
    );
    Ok(())
}

pub fn check_square(name: &str, a: &Tensor) -> Result<()> {
    check_matrix(name, a)?;
    let (m, n) = (rows(a), cols(a));
    ensure!(
        m == n,
        Runtime,
        "{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    Ok(())
}

pub fn rows(t: &Tensor) -> usize {
    t.size(t.ndim() - 2)
}
pub fn cols(t: &Tensor) -> usize {
    t.size(t.ndim() - 1)
}
fn batch_of(t: &Tensor) -> &[usize] {
    &t.shape()[..t.ndim() - 2]
}

/// The shape `batch + tail`.
fn join(batch: &[usize], tail: &[usize]) -> Dims {
    batch.iter().chain(tail).copied().collect()
}

/// Which computation a [`Factor`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A -> L, info.
    Cholesky,
    /// A -> A^-1, info.
    Inverse,
    /// A, B -> A^-1 B, info.
    Solve,
    /// A -> det A.
    Det,
    /// A -> sign, log |det A|.
    Slogdet,
    /// A -> the matrix of cofactors, for singular A, too.
    Cofactors,
    /// A, B -> the solution of A X = B for a triangle of A.
    Triangular { upper: bool, unit: bool },
    /// A -> eigenvalues, eigenvectors of the symmetric A.
    Eigh,
    /// A -> U, S, V'.
    Svd { full: bool },
    /// A -> Q, R.
    Qr { full: bool },
    /// A -> P, L, U.
    Lu { pivot: bool },
    /// A -> packed L and U, pivots from 1 on, info.
    LuFactor { pivot: bool },
}

/// A computation on each matrix of a batch.
#[derive(Clone, Debug)]
pub struct Factor(pub Kind);

impl Factor {
    fn run(&self, x: &[&Tensor]) -> Result<Tensors> {
        dispatch::call(self.clone(), x)
    }
    fn first(&self, x: &[&Tensor]) -> Result<Tensor> {
        Ok(self.run(x)?.swap_remove(0))
    }
}

/// A constant matrix with the elements that `f` gives.
fn constant(like: &Tensor, m: usize, n: usize, f: impl Fn(usize, usize) -> f64) -> Result<Tensor> {
    let data: Vec<f64> = (0..m * n).map(|i| f(i / n, i % n)).collect();
    Tensor::from_slice(&data, &[m, n], DType::F64)?
        .to_dtype(like.dtype())?
        .to_device(like.device())
}

/// The identity.
pub fn eye(like: &Tensor, n: usize) -> Result<Tensor> {
    constant(like, n, n, |i, j| (i == j) as u8 as f64)
}

/// Ones on the diagonal of an `m` x `n` matrix.
pub fn factor_eye(like: &Tensor, m: usize, n: usize) -> Result<Tensor> {
    constant(like, m, n, |i, j| (i == j) as u8 as f64)
}

/// The part of `t` on and below the diagonal (or above), without the diagonal where `strict`.
pub fn triangle(t: &Tensor, upper: bool, strict: bool) -> Result<Tensor> {
    let mask = constant(t, rows(t), cols(t), |i, j| {
        let inside = if upper { i < j } else { i > j };
        (inside || (i == j && !strict)) as u8 as f64
    })?;
    t.mul(&mask)
}

/// A vector as a column.
pub fn column(t: &Tensor) -> Result<Tensor> {
    t.reshape_to(&join(t.shape(), &[1]))
}
/// A vector as a row.
pub fn row(t: &Tensor) -> Result<Tensor> {
    let mut shape = t.shape().clone();
    shape.insert(t.ndim() - 1, 1);
    t.reshape_to(&shape)
}
/// The diagonal matrix of a vector.
pub fn diag(t: &Tensor) -> Result<Tensor> {
    column(t)?.mul(&eye(t, t.size(t.ndim() - 1))?)
}

/// The solution of A X = B for a triangle of A.
pub fn solve_triangular(a: &Tensor, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
    Factor(Kind::Triangular { upper, unit }).first(&[a, b])
}

/// A^-1 B, without a check for singular A.
pub fn solve_matrix(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Factor(Kind::Solve).first(&[a, b])
}

impl Derivative for Factor {
    fn name(&self) -> &'static str {
        match self.0 {
            Kind::Cholesky => "LinalgCholeskyExBackward0",
            Kind::Inverse => "LinalgInvExBackward0",
            Kind::Solve => "LinalgSolveExBackward0",
            Kind::Det => "LinalgDetBackward0",
            Kind::Slogdet => "LinalgSlogdetBackward0",
            Kind::Cofactors => "CofactorsBackward0",
            Kind::Triangular { .. } => "LinalgSolveTriangularBackward0",
            Kind::Eigh => "LinalgEighBackward0",
            Kind::Svd { .. } => "LinalgSvdBackward0",
            Kind::Qr { .. } => "LinalgQrBackward0",
            Kind::Lu { .. } => "LinalgLuBackward0",
            Kind::LuFactor { .. } => "LinalgLuFactorExBackward0",
        }
    }

    fn save(&self, _needs: Mask) -> Save {
        match self.0 {
            Kind::Cholesky | Kind::Inverse => Save::outputs(1),
            Kind::Solve | Kind::Triangular { .. } => Save {
                inputs: 1,
                outputs: 1,
            },
            Kind::Det => Save {
                inputs: 1,
                outputs: 1,
            },
            Kind::Slogdet | Kind::Cofactors => Save::inputs(1),
            Kind::Eigh | Kind::Qr { .. } => Save::outputs(0b11),
            Kind::Svd { .. } | Kind::Lu { .. } => Save::outputs(0b111),
            Kind::LuFactor { .. } => Save::outputs(0b11),
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::new();
        if g.iter().all(Option::is_none) {
            return Ok(out);
        }
        let of = |i: usize| cx.grad_or_zeros(g, i);
        match self.0 {
            Kind::Cholesky => {
                let l = cx.output(0)?;
                let n = cols(&l);
                let half = constant(&l, n, n, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                })?;
                let phi = swapped(&l)?.matmul(&of(0)?)?.mul(&half)?;
                // L^-T phi L^-1, made symmetric.
                let lt = swapped(&l)?;
                let left = solve_triangular(&lt, &phi, true, false)?;
                let both = swapped(&solve_triangular(&lt, &swapped(&left)?, true, false)?)?;
                out.push(Some(both.add(&swapped(&both)?)?.mul_scalar(0.5)?));
            }
            Kind::Inverse => {
                let t = swapped(&cx.output(0)?)?;
                out.push(Some(t.matmul(&of(0)?)?.matmul(&t)?.neg()?));
            }
            Kind::Solve => {
                let (a, x) = (cx.input(0)?, cx.output(0)?);
                let gb = solve_matrix(&swapped(&a)?, &of(0)?)?;
                let ga = gb.matmul(&swapped(&x)?)?.neg()?;
                out.extend([Some(ga), Some(gb)]);
            }
            Kind::Triangular { upper, unit } => {
                let (a, x) = (cx.input(0)?, cx.output(0)?);
                let gb = solve_triangular(&swapped(&a)?, &of(0)?, !upper, unit)?;
                let ga = triangle(&gb.matmul(&swapped(&x)?)?.neg()?, upper, unit)?;
                out.extend([Some(ga), Some(gb)]);
            }
            Kind::Det => {
                let (a, d) = (cx.input(0)?, cx.output(0)?);
                let zero = has_zero(&d)?;
                let wide = |t: &Tensor| t.reshape_to(&join(t.shape(), &[1, 1]));
                let cofactors = if zero {
                    Factor(Kind::Cofactors).first(&[&a])?
                } else {
                    let n = cols(&a);
                    wide(&d)?.mul(&solve_matrix(&swapped(&a)?, &eye(&a, n)?)?)?
                };
                out.push(Some(wide(&of(0)?)?.mul(&cofactors)?));
            }
            Kind::Slogdet => {
                let a = cx.input(0)?;
                let inverse = solve_matrix(&swapped(&a)?, &eye(&a, cols(&a))?)?;
                let g = of(1)?;
                out.push(Some(
                    g.reshape_to(&join(g.shape(), &[1, 1]))?.mul(&inverse)?,
                ));
            }
            Kind::Cofactors => bail!(
                NotImplemented,
                "linalg.det: the second derivative at a singular matrix is not implemented"
            ),
            Kind::Eigh => {
                let (w, v) = (cx.output(0)?, cx.output(1)?);
                let vt = swapped(&v)?;
                let mut inner = diag(&of(0)?)?;
                if let Some(gv) = &g[1] {
                    let gap = row(&w)?.sub(&column(&w)?)?;
                    inner = inner.add(&off_diagonal(&vt.matmul(gv)?, &gap)?)?;
                }
                out.push(Some(v.matmul(&inner)?.matmul(&vt)?));
            }
            Kind::Svd { full } => out.push(Some(svd_gradient(cx, g, full)?)),
            Kind::Qr { full } => out.push(Some(qr_gradient(cx, g, full)?)),
            Kind::Lu { .. } => {
                let (p, l, u) = (cx.output(0)?, cx.output(1)?, cx.output(2)?);
                out.push(Some(lu_gradient(&l, &u, &of(1)?, &of(2)?, Some(&p))?));
            }
            Kind::LuFactor { .. } => {
                let (lu, pivots) = (cx.output(0)?, cx.output(1)?);
                ensure!(
                    rows(&lu) == cols(&lu),
                    NotImplemented,
                    "linalg.lu_factor: the gradient is implemented for square matrices only"
                );
                let l = triangle(&lu, false, true)?.add(&eye(&lu, cols(&lu))?)?;
                let u = triangle(&lu, true, false)?;
                let p = permutation(&pivots, rows(&lu), lu.dtype())?;
                let g = of(0)?;
                out.push(Some(lu_gradient(&l, &u, &g, &g, Some(&p))?));
            }
        }
        Ok(out)
    }
}

/// `x / gap` off the diagonal, 0 on it.
fn off_diagonal(x: &Tensor, gap: &Tensor) -> Result<Tensor> {
    let n = cols(x);
    let one = eye(x, n)?;
    let rest = constant(x, n, n, |i, j| (i != j) as u8 as f64)?;
    x.mul(&rest)?.div(&gap.add(&one)?)
}

fn has_zero(t: &Tensor) -> Result<bool> {
    let t = t.detach().to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(unsafe { t.slice::<f64>() }.contains(&0.0))
}

/// A = P L U for square A.
fn lu_gradient(
    l: &Tensor,
    u: &Tensor,
    gl: &Tensor,
    gu: &Tensor,
    p: Option<&Tensor>,
) -> Result<Tensor> {
    ensure!(
        rows(l) == cols(l) && rows(u) == cols(u),
        NotImplemented,
        "linalg.lu: the gradient is implemented for square matrices only"
    );
    let inner = triangle(&swapped(l)?.matmul(gl)?, false, true)?.add(&triangle(
        &gu.matmul(&swapped(u)?)?,
        true,
        false,
    )?)?;
    // L^-T inner U^-T
    let left = solve_triangular(&swapped(l)?, &inner, true, true)?;
    let both = swapped(&solve_triangular(u, &swapped(&left)?, true, false)?)?;
    match p {
        Some(p) => p.matmul(&both),
        None => Ok(both),
    }
}

fn qr_gradient(cx: &Vjp, g: &[Option<Tensor>], full: bool) -> Result<Tensor> {
    let (q, r) = (cx.output(0)?, cx.output(1)?);
    ensure!(
        !full || rows(&q) == cols(&r),
        Runtime,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
    );
    let (gq, gr) = (cx.grad_or_zeros(g, 0)?, cx.grad_or_zeros(g, 1)?);
    let (k, n) = (rows(&r) as i64, cols(&r) as i64);
    if k == n {
        return qr_square(&q, &r, &gq, &gr);
    }
    // More columns than rows: A = [X Y] and R = [U V] with X = Q U and Y = Q V.
    let part = |t: &Tensor, a, b| t.slice_dim(-1, Some(a), Some(b), 1);
    let (v, gv) = (part(&r, k, n)?, part(&gr, k, n)?);
    let gq = gq.add(&q.matmul(&v.matmul(&swapped(&gv)?)?)?)?;
    let left = qr_square(&q, &part(&r, 0, k)?, &gq, &part(&gr, 0, k)?)?;
    super::join::cat(&[left, q.matmul(&gv)?], -1)
}

/// The gradient of a decomposition with a square R.
fn qr_square(q: &Tensor, r: &Tensor, gq: &Tensor, gr: &Tensor) -> Result<Tensor> {
    let m = gr.matmul(&swapped(r)?)?.sub(&swapped(q)?.matmul(gq)?)?;
    let upper = triangle(&m, true, false)?;
    let strict = triangle(&m, true, true)?;
    let inner = gq.add(&q.matmul(&upper.add(&swapped(&strict)?)?)?)?;
    // inner R^-T
    swapped(&solve_triangular(r, &swapped(&inner)?, true, false)?)
}

fn svd_gradient(cx: &Vjp, g: &[Option<Tensor>], full: bool) -> Result<Tensor> {
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
    let skew = |t: Tensor| t.sub(&swapped(&t)?);
    let v = swapped(&vh)?;
    if let Some(gu) = &gu {
        let t = off_diagonal(&skew(swapped(&u)?.matmul(gu)?)?, &gap()?)?;
        inner = inner.add(&t.mul(&row(&s)?)?)?;
    }
    if let Some(gvh) = &gvh {
        let t = off_diagonal(&skew(vh.matmul(&swapped(gvh)?)?)?, &gap()?)?;
        inner = inner.add(&column(&s)?.mul(&t)?)?;
    }
    let mut d = u.matmul(&inner)?.matmul(&vh)?;
    let inverse = apply(Reciprocal, [&s])?;
    if let (Some(gu), true) = (&gu, m > k) {
        let rest = gu.sub(&u.matmul(&swapped(&u)?.matmul(gu)?)?)?;
        d = d.add(&rest.mul(&row(&inverse)?)?.matmul(&vh)?)?;
    }
    if let (Some(gvh), true) = (&gvh, n > k) {
        let rest = gvh.sub(&gvh.matmul(&v)?.matmul(&vh)?)?;
        d = d.add(&u.matmul(&column(&inverse)?.mul(&rest)?)?)?;
    }
    Ok(d)
}

impl Op for Factor {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let a = x[0];
        let (m, n) = (rows(a), cols(a));
        let (k, dtype, device) = (m.min(n), a.dtype(), a.device());
        let batch = match x.get(1) {
            Some(b) => shape::broadcast(batch_of(a), batch_of(b))?,
            None => Dims::from_slice(batch_of(a)),
        };
        let real = |tail: &[usize]| TensorMeta {
            shape: join(&batch, tail),
            dtype,
            device,
        };
        let ints = |tail: &[usize]| TensorMeta {
            dtype: DType::I32,
            ..real(tail)
        };
        Ok(SmallVec::from_vec(match self.0 {
            Kind::Cholesky | Kind::Inverse => vec![real(&[n, n]), ints(&[])],
            Kind::Solve => vec![real(&[n, cols(x[1])]), ints(&[])],
            Kind::Triangular { .. } => vec![real(&[n, cols(x[1])])],
            Kind::Det => vec![real(&[])],
            Kind::Slogdet => vec![real(&[]), real(&[])],
            Kind::Cofactors => vec![real(&[n, n])],
            Kind::Eigh => vec![real(&[n]), real(&[n, n])],
            Kind::Svd { full: true } => vec![real(&[m, m]), real(&[k]), real(&[n, n])],
            Kind::Svd { full: false } => vec![real(&[m, k]), real(&[k]), real(&[k, n])],
            Kind::Qr { full: true } => vec![real(&[m, m]), real(&[m, n])],
            Kind::Qr { full: false } => vec![real(&[m, k]), real(&[k, n])],
            Kind::Lu { pivot } => {
                vec![
                    real(&[if pivot { m } else { 0 }, if pivot { m } else { 0 }]),
                    real(&[m, k]),
                    real(&[k, n]),
                ]
            }
            Kind::LuFactor { .. } => vec![real(&[m, n]), ints(&[k]), ints(&[])],
        }))
    }

    fn detached_outputs(&self) -> Mask {
        match self.0 {
            Kind::Lu { .. } => 1,
            _ => 0,
        }
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let batch: Dims = match x.get(1) {
            Some(b) => shape::broadcast(batch_of(x[0]), batch_of(b))?,
            None => Dims::from_slice(batch_of(x[0])),
        };
        let count: usize = batch.iter().product();
        let mut inputs = Vec::new();
        for t in x {
            let (m, n) = (rows(t), cols(t));
            let wide = t
                .detach()
                .expand_to(&join(&batch, &[m, n]))?
                .prepared(DType::F64)?;
            inputs.push((wide, m, n));
        }
        let outputs: Vec<Tensor> = y
            .iter()
            .map(|t| Tensor::zeros(t.shape(), DType::F64, t.device()))
            .collect::<Result<_>>()?;
        let to: Vec<(usize, usize)> = outputs
            .iter()
            .map(|t| (t.ptr::<f64>() as usize, t.numel() / count.max(1)))
            .collect();
        let work = inputs[0].1 * inputs[0].2 * inputs[0].2.max(1);
        parallel_for(count, (1 << 14) / work.max(1) + 1, |range| {
            for b in range {
                let read = |i: usize| {
                    let (t, m, n) = &inputs[i];
                    // SAFETY: contiguous host memory of this type, of `count` matrices.
                    let x = unsafe { t.slice::<f64>() };
                    Matrix {
                        m: *m,
                        n: *n,
                        x: x[b * m * n..(b + 1) * m * n].to_vec(),
                    }
                };
                let second = (inputs.len() > 1).then(|| read(1));
                let results = compute(self.0, read(0), second);
                for ((at, size), r) in to.iter().zip(results) {
                    // SAFETY: each element of the batch has its own part of every result.
                    let y = unsafe {
                        std::slice::from_raw_parts_mut((*at as *mut f64).add(b * size), *size)
                    };
                    y.copy_from_slice(&r[..*size]);
                }
            }
        });
        for (to, from) in y.iter().zip(&outputs) {
            to.write_from(from)?;
        }
        Ok(())
    }

    fn work(&self, x: &[&Tensor], _y: &[Tensor]) -> usize {
        x[0].numel().saturating_mul(cols(x[0]))
    }
}

/// One computation; results in the order of the outputs.
fn compute(kind: Kind, a: Matrix, b: Option<Matrix>) -> Vec<Vec<f64>> {
    let n = a.n;
    match kind {
        Kind::Cholesky => {
            let (l, info) = decompose::cholesky(&a);
            vec![l.x, vec![info as f64]]
        }
        Kind::Inverse => {
            let f = decompose::lu(a, true);
            let mut x = Matrix::eye(n, n);
            if f.info == 0 {
                f.solve(&mut x);
            }
            vec![x.x, vec![f.info as f64]]
        }
        Kind::Solve => {
            let f = decompose::lu(a, true);
            let mut x = b.unwrap_or_else(|| Matrix::eye(n, n));
            f.solve(&mut x);
            vec![x.x, vec![f.info as f64]]
        }
        Kind::Det => vec![vec![decompose::lu(a, true).det()]],
        Kind::Slogdet => {
            let (sign, log) = decompose::lu(a, true).sign_and_log();
            vec![vec![sign], vec![log]]
        }
        Kind::Cofactors => {
            let (u, s, vh) = decompose::svd(&a, false);
            let sign = decompose::lu(u.clone(), true).det() * decompose::lu(vh.clone(), true).det();
            let mut out = Matrix::zeros(n, n);
            for k in 0..n {
                let others: f64 = (0..n).filter(|&j| j != k).map(|j| s[j]).product();
                for i in 0..n {
                    for j in 0..n {
                        let v = sign * others * u.at(i, k) * vh.at(k, j);
                        out.set(i, j, out.at(i, j) + v);
                    }
                }
            }
            vec![out.x]
        }
        Kind::Triangular { upper, unit } => {
            let mut x = b.unwrap_or_else(|| Matrix::eye(n, n));
            decompose::triangular(&a, &mut x, upper, unit);
            vec![x.x]
        }
        Kind::Eigh => {
            let (w, v) = decompose::eigh(a);
            vec![w, v.x]
        }
        Kind::Svd { full } => {
            let (u, s, vh) = decompose::svd(&a, full);
            vec![u.x, s, vh.x]
        }
        Kind::Qr { full } => {
            let (m, k) = (a.m, a.m.min(n));
            let mut f = a;
            let tau = decompose::householder(&mut f);
            let height = if full { m } else { k };
            let q = decompose::reflected(&f, &tau, height);
            let mut r = Matrix::zeros(height, n);
            for i in 0..k {
                for j in i..n {
                    r.set(i, j, f.at(i, j));
                }
            }
            vec![q.x, r.x]
        }
        Kind::Lu { pivot } => {
            let (m, k) = (a.m, a.m.min(n));
            let f = decompose::lu(a, pivot);
            let mut p = Matrix::zeros(m, m);
            for (i, &j) in order(f.pivots.iter().copied(), m).iter().enumerate() {
                p.set(j, i, 1.0);
            }
            let mut l = Matrix::eye(m, k);
            let mut u = Matrix::zeros(k, n);
            for i in 0..m {
                for j in 0..n {
                    if j < i && j < k {
                        l.set(i, j, f.lu.at(i, j));
                    } else if j >= i && i < k {
                        u.set(i, j, f.lu.at(i, j));
                    }
                }
            }
            vec![p.x, l.x, u.x]
        }
        Kind::LuFactor { pivot } => {
            let f = decompose::lu(a, pivot);
            let pivots = f.pivots.iter().map(|&p| (p + 1) as f64).collect();
            vec![f.lu.x, pivots, vec![f.info as f64]]
        }
    }
}

/// Which row of A each row of L U is.
fn order(pivots: impl Iterator<Item = usize>, m: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..m).collect();
    for (i, p) in pivots.enumerate() {
        if i < m && p < m {
            order.swap(i, p);
        }
    }
    order
}

/// The permutation matrix P of A = P L U for pivots from 1 on.
pub fn permutation(pivots: &Tensor, m: usize, dtype: DType) -> Result<Tensor> {
    ensure!(
        pivots.ndim() >= 1,
        Runtime,
        "lu_unpack: LU_pivots must have at least 1 dimension, got a 0D tensor"
    );
    let n = pivots.ndim();
    let (batch, k) = (&pivots.shape()[..n - 1], pivots.size(n - 1));
    let ids = pivots.detach().to_host()?.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() };
    let count: usize = batch.iter().product();
    let mut p = vec![0.0f64; count * m * m];
    for b in 0..count {
        let row = &ids[b * k..(b + 1) * k];
        ensure!(
            row.iter().all(|&i| i >= 1 && i as usize <= m),
            Runtime,
            "lu_unpack: LU_pivots must be between 1 and {m}, got {row:?}"
        );
        for (i, &j) in order(row.iter().map(|&i| i as usize - 1), m)
            .iter()
            .enumerate()
        {
            p[(b * m + j) * m + i] = 1.0;
        }
    }
    Tensor::from_slice(&p, &join(batch, &[m, m]), DType::F64)?
        .to_dtype(dtype)?
        .to_device(pivots.device())
}

/// The first nonzero entry of `info` and where in the batch it is.
pub fn failure(info: &Tensor) -> Result<Option<(i64, String)>> {
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
    let lower = if upper { swapped(a)? } else { a.clone() };
    let mut y = Factor(Kind::Cholesky).run(&[&lower])?;
    let info = y.swap_remove(1);
    let l = y.swap_remove(0);
    Ok((if upper { swapped(&l)? } else { l }, info))
}

/// `linalg.inv_ex`.
pub fn inv_ex(name: &str, a: &Tensor) -> Result<(Tensor, Tensor)> {
    check_square(name, a)?;
    let mut y = Factor(Kind::Inverse).run(&[a])?;
    let info = y.swap_remove(1);
    Ok((y.swap_remove(0), info))
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
    let x = if vector {
        x.reshape_to(&x.shape()[..x.ndim() - 1])?
    } else {
        x
    };
    Ok((x, info))
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
    swapped(&solve_triangular(&swapped(a)?, &swapped(b)?, !upper, unit)?)
}

/// Named results of `linalg.svd` and its kin.
pub fn svd(name: &str, a: &Tensor, full: bool) -> Result<[Tensor; 3]> {
    check_matrix(name, a)?;
    ensure!(
        !a.has_nan()?,
        LinAlg,
        "{name}: The algorithm failed to converge because the input matrix contained non-finite \
         values."
    );
    let y = Factor(Kind::Svd { full }).run(&[a])?;
    Ok([y[0].clone(), y[1].clone(), y[2].clone()])
}

/// Eigenvalues and eigenvectors from one triangle of a symmetric matrix.
pub fn eigh(name: &str, a: &Tensor, uplo: &str) -> Result<[Tensor; 2]> {
    check_square(name, a)?;
    let lower = match uplo {
        "L" | "l" => true,
        "U" | "u" => false,
        other => bail!(
            Runtime,
            "{name}: Expected UPLO argument to be 'L' or 'U', but got {other}"
        ),
    };
    ensure!(
        !a.has_nan()?,
        LinAlg,
        "{name}: The algorithm failed to converge because the input matrix contained non-finite \
         values."
    );
    // The kernel reads both triangles; the gradient goes to the whole matrix, as PyTorch's does.
    let op = Factor(Kind::Eigh);
    let half = {
        let x = a.detach();
        let strict = triangle(&x, !lower, true)?;
        let kept = triangle(&x, !lower, false)?;
        kept.add(&swapped(&strict)?)?
    };
    let y = dispatch::compute(&op, &[&half])?;
    dispatch::record(op, &[a], &y)?;
    Ok([y[0].clone(), y[1].clone()])
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
    check_square(name, a)?;
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

crate::entries! {}

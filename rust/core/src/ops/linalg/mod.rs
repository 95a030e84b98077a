//! Linear algebra: solvers and factorisations, batched, with gradients written over tensors.

mod cpu;
mod exponential;
mod gpu;
mod gradient;
mod halves;
mod ldl_gpu;
mod orthogonal;
mod solvers;
pub mod vector_norm;

crate::ops::family! { einsum fft matmul matrix eig ldl lstsq powers reflectors tensors; matrix::norms::ENTRIES }

pub use solvers::*;

use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::{Kind as ErrorKind, Result};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Batching, Cut, Derivative, Grads, Mapped, Mask, Metas, Op, Save, TensorMeta, Tensors, Traits,
};
use crate::shape::{self, Dims};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use matmul::{adjoint, swapped};
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
        a.dtype().differentiable(),
        Runtime,
        "{name}: Expected a floating point or complex tensor as input. Got {}",
        a.dtype().scalar_name()
    );
    ensure!(
        matches!(a.dtype().part(), DType::F32 | DType::F64),
        NoKernel,
        "{name}: Low precision dtypes not supported. Got {}",
        a.dtype().scalar_name()
    );
    Ok(())
}

pub fn check_square(name: &str, a: &Tensor) -> Result<()> {
    check_matrix(name, a)?;
    check_sides(name, a)
}

/// Two dimensions at least, the last two of one size.
pub fn check_sides(name: &str, a: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        Runtime,
        "{name}: The input tensor A must have at least 2 dimensions."
    );
    let (m, n) = (rows(a), cols(a));
    ensure!(
        m == n,
        Runtime,
        "{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    Ok(())
}

pub fn rows(t: &Meta) -> usize {
    t.size(t.ndim() - 2)
}
pub fn cols(t: &Meta) -> usize {
    t.size(t.ndim() - 1)
}
fn batch_of(t: &Meta) -> &[usize] {
    &t.shape()[..t.ndim() - 2]
}

/// The shape `batch + tail`.
fn join(batch: &[usize], tail: &[usize]) -> Dims {
    batch.iter().chain(tail).copied().collect()
}

/// Which computation a [`Factor`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A -> eigenvalues of the symmetric A, without a gradient.
    Eigenvalues,
    /// A -> U, S, V'.
    Svd { full: bool },
    /// A -> S, without a gradient.
    SingularValues,
    /// A -> eigenvalues and, where asked for, eigenvectors, as pairs of real numbers.
    Eig { vectors: bool },
    /// A, B -> the X for which A X comes nearest to B, and whether A may be near singular for
    /// singular values below `rcond` (its bits) of the largest.
    LeastSquares { rcond: u64 },
    /// A -> R above reflectors, the factors of the reflectors.
    Reflectors,
    /// A -> packed L and D, pivots from 1 on, info.
    Ldl { hermitian: bool },
    /// L and D packed with the pivots as a last column, B -> the solution of A X = B.
    LdlSolve { hermitian: bool },
    /// A -> Q, R.
    Qr { full: bool },
    /// A -> P, L, U.
    Lu { pivot: bool },
    /// A -> packed L and U, pivots from 1 on, info.
    LuFactor { pivot: bool },
}

/// A computation on each matrix of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    fn filled<T: Default + Copy>(m: usize, n: usize, f: impl Fn(usize, usize) -> T) -> Vec<T> {
        let mut data = alloc::full(T::default(), m * n);
        for (i, row) in data.chunks_exact_mut(n.max(1)).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, x)| *x = f(i, j));
        }
        data
    }
    let t = match like.dtype() {
        DType::F32 => {
            Tensor::from_slice(&filled(m, n, |i, j| f(i, j) as f32), &[m, n], DType::F32)?
        }
        to => Tensor::from_slice(&filled(m, n, f), &[m, n], DType::F64)?.to_dtype(to)?,
    };
    t.to_device(like.device())
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
    match upper {
        true => t.triu(strict as i64),
        false => t.tril(-(strict as i64)),
    }
}

/// The same matrices with columns that lie one after another, as LAPACK leaves them.
pub fn in_columns(t: &Tensor) -> Result<Tensor> {
    let rows = swapped(t)?;
    // Without elements, or with one row, strides show nothing but are told.
    match rows.layout().strides == Layout::contiguous(rows.shape()).strides {
        true => Ok(t.clone()),
        false => swapped(&rows.copy_dense()?),
    }
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
            Kind::Eigh | Kind::Eigenvalues => "LinalgEighBackward0",
            Kind::Svd { .. } | Kind::SingularValues => "LinalgSvdBackward0",
            Kind::Eig { .. } => "LinalgEigBackward0",
            Kind::LeastSquares { .. } => "LinalgLstsqBackward0",
            Kind::Reflectors => "GeqrfBackward0",
            Kind::Ldl { .. } => "LinalgLdlFactorExBackward0",
            Kind::LdlSolve { .. } => "LinalgLdlSolveBackward0",
            Kind::Qr { .. } => "LinalgQrBackward0",
            Kind::Lu { .. } => "LinalgLuBackward0",
            Kind::LuFactor { .. } => "LinalgLuFactorExBackward0",
        }
    }

    fn save(&self, _needs: Mask) -> Save {
        match self.0 {
            Kind::Cholesky | Kind::Inverse => Save::outputs([0]),
            Kind::Solve | Kind::Triangular { .. } => Save::inputs([0]).and_outputs([0]),
            Kind::Det => Save::inputs([0]).and_outputs([0]),
            Kind::Slogdet => Save::inputs([0]).and_outputs([0]),
            Kind::Cofactors => Save::inputs([0]),
            Kind::Eigenvalues | Kind::SingularValues => Save::NONE,
            Kind::LeastSquares { .. } | Kind::Reflectors | Kind::Ldl { .. } => Save::NONE,
            Kind::LdlSolve { .. } => Save::inputs([0]),
            Kind::Eig { vectors: false } => Save::NONE,
            Kind::Eig { vectors: true } | Kind::Eigh | Kind::Qr { .. } => Save::outputs([0, 1]),
            Kind::Svd { .. } | Kind::Lu { .. } => Save::outputs([0, 1, 2]),
            Kind::LuFactor { .. } => Save::outputs([0, 1]),
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::new();
        if g.iter().all(Option::is_none) {
            return Ok(out);
        }
        let of = |i: usize| cx.grad_or_zeros(g, i);
        let complex = g.iter().flatten().any(|g| g.dtype().is_complex());
        match self.0 {
            Kind::Cholesky => {
                let l = cx.output(0)?;
                let n = cols(&l);
                let half = constant(&l, n, n, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                })?;
                let lt = adjoint(&l)?;
                let mut phi = lt.matmul(&of(0)?)?;
                phi = match complex {
                    false => phi.mul(&half)?,
                    // The diagonal keeps its imaginary part, as PyTorch's does.
                    true => triangle(&phi, false, true)?
                        .add(&adjoint(&triangle(&phi, false, false)?)?)?,
                };
                // L^-T phi L^-1, made symmetric.
                let left = solve_triangular(&lt, &phi, true, false)?;
                let both = adjoint(&solve_triangular(&lt, &adjoint(&left)?, true, false)?)?;
                let sum = if complex {
                    both
                } else {
                    both.add(&adjoint(&both)?)?
                };
                out.push(Some(sum.mul_scalar(0.5)?));
            }
            Kind::Inverse => {
                let t = adjoint(&cx.output(0)?)?;
                out.push(Some(t.matmul(&of(0)?)?.matmul(&t)?.neg()?));
            }
            Kind::Solve => {
                let (a, x) = (cx.input(0)?, cx.output(0)?);
                let gb = solve_matrix(&adjoint(&a)?, &of(0)?)?;
                let ga = gb.matmul(&adjoint(&x)?)?.neg()?;
                out.extend([Some(ga), Some(gb)]);
            }
            Kind::Triangular { upper, unit } => {
                let (a, x) = (cx.input(0)?, cx.output(0)?);
                let gb = solve_triangular(&adjoint(&a)?, &of(0)?, !upper, unit)?;
                let ga = triangle(&gb.matmul(&adjoint(&x)?)?.neg()?, upper, unit)?;
                out.extend([Some(ga), Some(gb)]);
            }
            Kind::Det => {
                let (a, d) = (cx.input(0)?, cx.output(0)?);
                let zero = gradient::has_zero(&d)?;
                let wide = |t: &Tensor| t.reshape_to(&join(t.shape(), &[1, 1]));
                let cofactors = if zero {
                    Factor(Kind::Cofactors).first(&[&a])?.conj()?
                } else {
                    let n = cols(&a);
                    wide(&d.conj()?)?.mul(&solve_matrix(&adjoint(&a)?, &eye(&a, n)?)?)?
                };
                out.push(Some(wide(&of(0)?)?.mul(&cofactors)?));
            }
            Kind::Slogdet => {
                let a = cx.input(0)?;
                let inverse = solve_matrix(&adjoint(&a)?, &eye(&a, cols(&a))?)?;
                let mut h = of(1)?;
                if let (true, Some(g)) = (a.dtype().is_complex(), &g[0]) {
                    let turn = g.conj()?.mul(&cx.output(0)?)?.real_part(1)?.neg()?;
                    h = Tensor::of_parts(&h, &turn)?;
                }
                let h = h.reshape_to(&join(h.shape(), &[1, 1]))?;
                out.push(Some(h.mul(&inverse)?));
            }
            Kind::Cofactors => bail!(
                NotImplemented,
                "linalg.det: the second derivative at a singular matrix is not implemented"
            ),
            Kind::Reflectors | Kind::Ldl { .. } => bail!(
                NotImplemented,
                "the derivative for '{}' is not implemented",
                crate::op::function_name(self.name())
            ),
            Kind::LdlSolve { hermitian } => {
                ensure!(
                    !cx.needs(0),
                    NotImplemented,
                    "linalg.ldl_solve: the derivative for 'LD' is not implemented: linalg.solve has \
                     one for A"
                );
                let (packed, g) = (cx.input(0)?, of(0)?);
                // The adjoint of A is A, or for a symmetric A its conjugate.
                let gb = match complex && !hermitian {
                    true => self.first(&[&packed, &g.conj()?])?.conj()?,
                    false => self.first(&[&packed, &g])?,
                };
                out.extend([None, Some(gb)]);
            }
            Kind::Eig { vectors: true } => out.push(Some(gradient::eig(cx, g)?)),
            Kind::Eigenvalues | Kind::SingularValues | Kind::Eig { .. } => bail!(
                NotImplemented,
                "{}: values without vectors have no gradient",
                self.name()
            ),
            Kind::LeastSquares { .. } => bail!(
                NotImplemented,
                "{}: the call has the gradient, not its solver",
                self.name()
            ),
            Kind::Eigh => out.push(Some(gradient::eigh(cx, g)?)),
            Kind::Svd { full } => out.push(Some(gradient::svd(cx, g, full)?)),
            Kind::Qr { full } => out.push(Some(gradient::qr(cx, g, full)?)),
            Kind::Lu { .. } => {
                let (p, l, u) = (cx.output(0)?, cx.output(1)?, cx.output(2)?);
                out.push(Some(gradient::lu(&l, &u, &of(1)?, &of(2)?, &p)?));
            }
            Kind::LuFactor { .. } => {
                let (lu, pivots, g) = (cx.output(0)?, cx.output(1)?, of(0)?);
                let k = rows(&lu).min(cols(&lu));
                let first = |t: &Tensor, d| t.slice_dim(d, Some(0), Some(k as i64), 1);
                let unit = factor_eye(&lu, rows(&lu), k)?;
                let l = triangle(&first(&lu, -1)?, false, true)?.add(&unit)?;
                let u = triangle(&first(&lu, -2)?, true, false)?;
                let p = permutation(&pivots, rows(&lu), lu.dtype())?;
                let (gl, gu) = (first(&g, -1)?, first(&g, -2)?);
                out.push(Some(gradient::lu(&l, &u, &gl, &gu, &p)?));
            }
        }
        Ok(out)
    }
}

impl Op for Factor {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let a = x[0];
        let (m, n) = (rows(a), cols(a));
        let (k, dtype, device) = (m.min(n), a.dtype(), a.device());
        let batch = match x.get(1) {
            Some(b) => shape::broadcast(batch_of(a), batch_of(b))?,
            None => Dims::from_slice(batch_of(a)),
        };
        let own = |tail: &[usize]| TensorMeta {
            shape: join(&batch, tail),
            dtype,
            device,
        };
        let real = |tail: &[usize]| TensorMeta {
            dtype: dtype.part(),
            ..own(tail)
        };
        let ints = |tail: &[usize]| TensorMeta {
            dtype: DType::I32,
            ..own(tail)
        };
        Ok(SmallVec::from_vec(match self.0 {
            Kind::Cholesky | Kind::Inverse => vec![own(&[n, n]), ints(&[])],
            Kind::Solve => vec![own(&[n, cols(x[1])]), ints(&[])],
            Kind::Triangular { .. } => vec![own(&[n, cols(x[1])])],
            Kind::Det => vec![own(&[])],
            Kind::Slogdet => vec![own(&[]), real(&[])],
            Kind::Cofactors => vec![own(&[n, n])],
            Kind::Eigh => vec![real(&[n]), own(&[n, n])],
            Kind::Eigenvalues => vec![real(&[n])],
            Kind::SingularValues => vec![real(&[k])],
            Kind::Eig { vectors: true } if dtype.is_complex() => vec![own(&[n]), own(&[n, n])],
            Kind::Eig { .. } if dtype.is_complex() => vec![own(&[n])],
            Kind::Eig { vectors: true } => vec![own(&[n, 2]), own(&[n, n, 2])],
            Kind::Eig { vectors: false } => vec![own(&[n, 2])],
            Kind::LeastSquares { .. } => vec![own(&[n, cols(x[1])]), ints(&[])],
            Kind::Reflectors => vec![own(&[m, n]), own(&[k])],
            Kind::Ldl { .. } => vec![own(&[n, n]), ints(&[n]), ints(&[])],
            Kind::LdlSolve { .. } => vec![own(&[m, cols(x[1])])],
            Kind::Svd { full: true } => vec![own(&[m, m]), real(&[k]), own(&[n, n])],
            Kind::Svd { full: false } => vec![own(&[m, k]), real(&[k]), own(&[k, n])],
            Kind::Qr { full: true } => vec![own(&[m, m]), own(&[m, n])],
            Kind::Qr { full: false } => vec![own(&[m, k]), own(&[k, n])],
            Kind::Lu { pivot } => {
                vec![
                    own(&[if pivot { m } else { 0 }, if pivot { m } else { 0 }]),
                    own(&[m, k]),
                    own(&[k, n]),
                ]
            }
            Kind::LuFactor { .. } => vec![own(&[m, n]), ints(&[k]), ints(&[])],
        }))
    }

    fn traits(&self) -> Traits {
        Traits {
            detached: matches!(self.0, Kind::Lu { .. }) as Mask,
            ..Traits::NONE
        }
    }

    /// Columns one after another, as LAPACK leaves them.
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        let pair = match self.0 {
            Kind::Det | Kind::Slogdet | Kind::Cofactors | Kind::Lu { .. } => return None,
            Kind::Eig { .. } if !y.dtype.is_complex() => 1,
            _ => 0,
        };
        let lead = x.iter().map(|t| t.ndim()).max()? - 2;
        if y.shape.len() != lead + 2 + pair {
            return None;
        }
        let mut layout = Layout::contiguous(&y.shape);
        let step = 1 << pair;
        layout.strides[lead] = step;
        layout.strides[lead + 1] = step * y.shape[lead].max(1) as isize;
        Some(layout)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        by_rows(y, |y| self.on_cpu(x, y))
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let batch = |t: &Meta| t.ndim() - 2;
        if x.iter()
            .any(|t| t.shape()[..batch(t)] != x[0].shape()[..batch(x[0])])
        {
            return Vec::new();
        }
        Cut::along(0..batch(x[0]), x.len(), y.len())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        match by_rows(y, |y| self.on_gpu(gpu, x, y)) {
            Err(e) if e.kind == ErrorKind::NoKernel => Ok(false),
            done => done,
        }
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[0].numel().saturating_mul(cols(x[0]))
    }
}

/// Lets kernels write to rows, and copies from there to results that lie otherwise.
fn by_rows<R>(y: &[Tensor], run: impl FnOnce(&[Tensor]) -> Result<R>) -> Result<R> {
    let in_rows = |y: &Tensor| match y.is_contiguous() {
        true => Ok(y.clone()),
        false => Tensor::empty(y.shape(), y.dtype(), y.device()),
    };
    let rows = y.iter().map(in_rows).collect::<Result<Tensors>>()?;
    let done = run(&rows)?;
    for (y, rows) in y.iter().zip(&rows).filter(|(y, rows)| !y.same(rows)) {
        y.write_from(rows)?;
    }
    Ok(done)
}

impl Factor {
    fn on_cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let batch: Dims = match x.get(1) {
            Some(b) => shape::broadcast(batch_of(x[0]), batch_of(b))?,
            None => Dims::from_slice(batch_of(x[0])),
        };
        let dtype = x[0].dtype();
        let inputs: Vec<Tensor> = x
            .iter()
            .map(|t| {
                t.detach()
                    .expand_to(&join(&batch, &[rows(t), cols(t)]))?
                    .prepared(dtype)
            })
            .collect::<Result<_>>()?;
        let count = batch.iter().product();
        let converged = match dtype {
            DType::C64 => cpu::complex::run::<f32>(self.0, count, &inputs, y),
            DType::C128 => cpu::complex::run::<f64>(self.0, count, &inputs, y),
            DType::F64 => cpu::run::<f64>(self.0, count, &inputs, y),
            _ => cpu::run::<f32>(self.0, count, &inputs, y),
        };
        ensure!(
            converged,
            LinAlg,
            "{}: The algorithm failed to converge.",
            crate::op::function_name(self.name())
        );
        Ok(())
    }
}

impl Batching for Factor {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        // Batches broadcast, that of slices as the first of their dimensions.
        let ndim = (0..x.x.len()).map(|i| x.ndim(i)).max().unwrap_or(0);
        let all = (0..x.x.len()).map(|i| x.aligned(i, ndim));
        let all: SmallVec<[Tensor; 2]> = all.collect::<Result<_>>()?;
        let all: SmallVec<[&Tensor; 2]> = all.iter().collect();
        dispatch::call(self.clone(), &all).map(Some)
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
    let name = "LuUnpackBackward0";
    ensure!(
        pivots.ndim() >= 1,
        Runtime,
        "lu_unpack: LU_pivots must have at least 1 dimension, got a 0D tensor"
    );
    let shape = join(&pivots.shape()[..pivots.ndim() - 1], &[m, m]);
    let meta = || TensorMeta::new(&shape, dtype, pivots.device());
    let plan = |_: &_| Ok(Metas::from_elem(meta(), 1));
    dispatch::function_of(name, (m, dtype), &[pivots], plan, |&(m, dtype), x| {
        permuted(x[0], m, dtype)
    })
}

fn permuted(pivots: &Tensor, m: usize, dtype: DType) -> Result<Tensor> {
    let n = pivots.ndim();
    let (batch, k) = (&pivots.shape()[..n - 1], pivots.size(n - 1));
    let ids = pivots.detach().to_host()?.prepared(DType::I64)?;
    let ids = Indices::of(&ids).own();
    let count: usize = batch.iter().product();
    let p = Tensor::zeros(&join(batch, &[m, m]), dtype, Device::Cpu)?;
    let size = dtype.size();
    let one = Tensor::full(&[], Scalar::Int(1), dtype, Device::Cpu)?;
    let (from, to) = (one.bytes_ptr(), p.bytes_ptr());
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
            let at = ((b * m + j) * m + i) * size;
            // SAFETY: `p` has `count` matrices of `m` rows and columns, and `one` an element.
            unsafe { std::ptr::copy_nonoverlapping(from, to.add(at), size) };
        }
    }
    p.to_device(pivots.device())
}

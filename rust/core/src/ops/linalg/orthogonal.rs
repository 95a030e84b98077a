//! Orthogonal factors on the GPU: QR by Householder's reflections, singular values and eigenvalues of
//! symmetric matrices by Jacobi's rotations. What one dispatch must not take is cut into several.

use super::{adjoint, batch_of, cols, halves, join, reflectors, rows};
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::WORKGROUP;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Eq, LogicalOr, Lt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Sqrt};
use crate::ops::shape::join::cat;
use crate::shape::{DimSet, Dims};
use crate::tensor::Tensor;
use crate::transfer::{dense, is_short};

params! {
    struct Block {
        count: u32,
        rows: u32,
        columns: u32,
        width: u32,
        first: u32,
        end: u32,
        least: [u32; 2],
    }
}
const NUMBERS: &[Acc] = &[Acc::F32, Acc::F64, Acc::C64, Acc::C128];
shader! { static ORTHOGONAL: Block = "orthogonal.wgsl", NUMBERS }

/// Loop iterations of an invocation: software Vulkan ends it after 65,535.
const MAX_TRIPS: usize = 50_000;
/// Rows or columns that kernels take fewer of.
pub const LONGEST: usize = MAX_TRIPS / 4;
/// Sweeps after which rotations have converged long since.
const SWEEPS: usize = 16;
/// Invocations that go through one matrix, a pair of rows each.
const LANES: usize = 64;

/// Dispatches over matrices of one size.
struct Job<'a> {
    gpu: &'a Gpu,
    work: &'a Tensor,
    more: &'a Tensor,
    factors: &'a Tensor,
    block: Block,
}

impl<'a> Job<'a> {
    fn new(gpu: &'a Gpu, [work, more, factors]: [&'a Tensor; 3]) -> Result<Job<'a>> {
        let (m, n) = (rows(work), cols(work));
        ensure!(
            work.numel().max(more.numel()) < 1 << 31 && m.max(n) < LONGEST,
            NoKernel,
            "wgpu: linalg: matrices of {m} by {n}"
        );
        let real = work.dtype().part();
        let least = match real {
            DType::F64 => f64::EPSILON,
            _ => f32::EPSILON as f64,
        };
        let block = Block {
            count: (work.numel() / (m * n)) as u32,
            rows: m as u32,
            columns: n as u32,
            width: more.size(more.ndim() - 1) as u32,
            first: 0,
            end: 0,
            least: Acc::of(real)?.words(least),
        };
        Ok(Job {
            gpu,
            work,
            more,
            factors,
            block,
        })
    }

    fn run(
        &self,
        entry: &'static str,
        lanes: usize,
        groups: usize,
        steps: [usize; 2],
    ) -> Result<()> {
        let [first, end] = steps.map(|n| n as u32);
        let block = Block {
            first,
            end,
            ..self.block
        };
        ORTHOGONAL
            .launch(Acc::of_any(self.work.dtype())?)
            .entry(entry)
            .set("WG", lanes as u32)
            .writes_words(self.work)
            .writes_words(self.more)
            .writes_words(self.factors)
            .groups(self.gpu, &block, groups)
    }

    /// Steps 0 to `n`, of `trips` iterations each, a workgroup for a matrix.
    fn steps(&self, entry: &'static str, lanes: usize, n: usize, trips: usize) -> Result<()> {
        let several = (MAX_TRIPS / trips.max(1)).max(1);
        for first in (0..n).step_by(several) {
            let steps = [first, (first + several).min(n)];
            self.run(entry, lanes, self.block.count as usize, steps)?;
        }
        Ok(())
    }
}

/// Ones on the diagonal of each matrix.
pub fn identity(like: &Tensor, m: usize, n: usize) -> Result<Tensor> {
    let shape = join(batch_of(like), &[m, n]);
    let y = Tensor::zeros(&shape, like.dtype(), like.device())?;
    let d = y.ndim() as i64;
    y.diagonal(0, d - 2, d - 1)?.write_scalar(1.into())?;
    Ok(y)
}

/// Whether kernels take matrices of these sizes.
fn takes(all: &[&Tensor]) -> bool {
    let long = |t: &&Tensor| rows(t).max(cols(t)) >= LONGEST;
    halves::are_small(all) && !all.iter().any(long)
}

/// R above the reflectors of each matrix, and their factors.
pub fn reflectors(gpu: &Gpu, a: &Tensor) -> Result<[Tensor; 2]> {
    if !takes(&[a]) {
        let [work, factors] = halves::reflectors(&a.reshape_to(&[rows(a), cols(a)])?)?;
        let shape = join(batch_of(a), &[factors.numel()]);
        return Ok([work.reshape_to(a.shape())?, factors.reshape_to(&shape)?]);
    }
    let (work, m, n) = (dense(gpu, a)?.copy_dense()?, rows(a), cols(a));
    let factors = Tensor::empty(&join(batch_of(a), &[m.min(n)]), a.dtype(), a.device())?;
    let spare = Tensor::empty(&[1, 1], DType::I32, a.device())?;
    let trips = 3 * m.div_ceil(WORKGROUP) + 40 + (2 * m + 1) * n.div_ceil(WORKGROUP);
    let job = Job::new(gpu, [&work, &spare, &factors])?;
    job.steps("householder", WORKGROUP, m.min(n), trips)?;
    Ok([work, factors])
}

/// Q of `height` columns from what [`reflectors`] gives.
fn reflected(gpu: &Gpu, [work, factors]: &[Tensor; 2], height: usize) -> Result<Tensor> {
    let m = rows(work);
    let q = identity(work, m, height)?;
    if !takes(&[work, &q]) {
        return reflectors::reflected(work, factors, &q, false);
    }
    let trips = (2 * m + 1) * height.div_ceil(WORKGROUP);
    let job = Job::new(gpu, [work, &q, factors])?;
    job.steps("reflected", WORKGROUP, m.min(cols(work)), trips)?;
    Ok(q)
}

/// Q and R.
pub fn qr(gpu: &Gpu, a: &Tensor, full: bool) -> Result<[Tensor; 2]> {
    let (m, k) = (rows(a), rows(a).min(cols(a)));
    let height = if full { m } else { k };
    let parts = reflectors(gpu, a)?;
    let r = parts[0]
        .narrow(a.ndim() as i64 - 2, 0, height as i64)?
        .triu(0)?;
    Ok([reflected(gpu, &parts, height)?, r])
}

/// Rows of `g` rotated until they are orthogonal, and the same turns of an identity's rows.
fn rotated(gpu: &Gpu, g: &Tensor) -> Result<[Tensor; 2]> {
    let square = rows(g) * rows(g);
    if !takes(&[g])
        || !is_short(
            g.device(),
            g.numel() / (rows(g) * cols(g)) * square,
            g.dtype(),
        )
    {
        return rotated_by_blocks(gpu, g);
    }
    rotated_in(gpu, g, SWEEPS)
}

/// [`rotated`] of one matrix by blocks of rows, of which a kernel takes two at a time: sweeps over all pairs, whose
/// rows turn twice. Where rank is missing that takes some 15 of them for four blocks, more than for single rows.
fn rotated_by_blocks(gpu: &Gpu, g: &Tensor) -> Result<[Tensor; 2]> {
    let (n, m) = (rows(g), cols(g));
    let room = (gpu.info().max_binding as usize / 5 * 4) / (g.dtype().size() * m.max(n));
    let width = (room / 2).min(n.div_ceil(2)).min(LONGEST / 4);
    ensure!(
        width > 0 && m < LONGEST,
        NoKernel,
        "wgpu: linalg: matrices of {m} by {n}"
    );
    let blocks = |t: &Tensor| -> Result<Vec<Tensor>> {
        let t = t.reshape_to(&[rows(t), cols(t)])?;
        let starts = (0..n).step_by(width);
        starts
            .map(|i| t.narrow(0, i as i64, width.min(n - i) as i64)?.copy_dense())
            .collect()
    };
    let (mut work, mut v) = (blocks(g)?, blocks(&identity(g, n, n)?)?);
    let count = work.len();
    for _ in 0..2 * SWEEPS {
        let mut moved = Tensor::zeros(&[], DType::Bool, g.device())?;
        for (i, j) in (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j))) {
            let both = |t: &[Tensor]| cat(&[t[i].clone(), t[j].clone()], 0);
            let [rows_of, turns] = rotated_in(gpu, &both(&work)?, 2)?;
            let along = turns.matmul(&both(&v)?)?;
            let still = identity(&turns, rows(&turns), rows(&turns))?;
            let other = apply(Ne, [&turns, &still])?.amax_mask(DimSet::last(2, 2)?, false)?;
            moved = apply(LogicalOr, [&moved, &other])?;
            let (first, second) = (rows(&work[i]) as i64, rows(&work[j]) as i64);
            for (all, made) in [(&mut work, rows_of), (&mut v, along)] {
                all[i] = made.narrow(0, 0, first)?.copy_dense()?;
                all[j] = made.narrow(0, first, second)?.copy_dense()?;
            }
        }
        if !moved.item()?.truth() {
            break;
        }
    }
    let whole = |t: &[Tensor], width| cat(t, 0)?.reshape_to(&join(batch_of(g), &[n, width]));
    Ok([whole(&work, m)?, whole(&v, n)?])
}

/// [`rotated`] by so many sweeps at most, of matrices that a kernel takes.
fn rotated_in(gpu: &Gpu, g: &Tensor, sweeps: usize) -> Result<[Tensor; 2]> {
    let (n, m) = (rows(g), cols(g));
    let (work, v) = (g.copy_dense()?, identity(g, n, n)?);
    let flag = Tensor::zeros(&[1], DType::I32, g.device())?;
    let job = Job::new(gpu, [&work, &v, &flag])?;
    let rounds = n.next_multiple_of(2) - 1;
    let trips = (2 * m + n + 1) * n.div_ceil(2).div_ceil(LANES);
    if rounds * trips <= MAX_TRIPS {
        // One turn more than a sweep costs less than to ask whether it is needed.
        for _ in 0..sweeps {
            job.run("sweep", LANES, job.block.count as usize, [0, rounds])?;
        }
        return Ok([work, v]);
    }
    let groups = job.block.count as usize * n.div_ceil(2);
    for _ in 0..sweeps {
        flag.write_scalar(0.into())?;
        for round in 0..rounds {
            job.run("turn", LANES, groups, [round, round + 1])?;
        }
        if flag.narrow(0, 0, 1)?.reshape_to(&[])?.item()?.i64() == 0 {
            break;
        }
    }
    Ok([work, v])
}

/// The largest magnitude in each matrix, one where that is zero, as [.., 1, 1].
fn scale_of(a: &Tensor) -> Result<Tensor> {
    let top = apply(Abs, [a])?.amax_mask(DimSet::last(2, a.ndim())?, true)?;
    let zero = Tensor::zeros(&[], top.dtype(), a.device())?;
    let one = Tensor::full(&[], Scalar::Int(1), top.dtype(), a.device())?;
    where_(&apply(Eq, [&top, &zero])?, &one, &top)
}

/// Rows at `order`, [.., n], of [.., n, width].
fn ordered(x: &Tensor, order: &Tensor) -> Result<Tensor> {
    let mut shape = order.shape().clone();
    shape.push(1);
    let index = order.reshape_to(&shape)?.expand_to(x.shape())?;
    x.take_along(x.ndim() - 2, &index)
}

/// The real parts.
fn real(t: &Tensor) -> Result<Tensor> {
    match t.dtype().is_complex() {
        true => t.real_part(0),
        false => Ok(t.clone()),
    }
}

/// U, S and V' of each matrix, or S alone.
pub fn svd(gpu: &Gpu, a: &Tensor, full: bool, vectors: bool) -> Result<Vec<Tensor>> {
    let d = a.ndim() as i64;
    if rows(a) < cols(a) {
        let mut y = svd(gpu, &a.transpose(d - 2, d - 1)?, full, vectors)?;
        if vectors {
            y.reverse();
            y[0] = y[0].transpose(d - 2, d - 1)?;
            y[2] = y[2].transpose(d - 2, d - 1)?;
        }
        return Ok(y);
    }
    if !takes(&[a]) && rows(a) > cols(a) {
        // Those of the triangle are fewer, and rotated by Q.
        let (n, m) = (cols(a) as i64, rows(a) as i64);
        let [q, r] = qr(gpu, a, full)?;
        let mut y = svd(gpu, &r.narrow(d - 2, 0, n)?, false, vectors)?;
        if vectors {
            let own = q.narrow(d - 1, 0, n)?.matmul(&y[0])?;
            y[0] = match full {
                true => cat(&[own, q.narrow(d - 1, n, m - n)?], d - 1)?,
                false => own,
            };
        }
        return Ok(y);
    }
    let (size, complex) = (scale_of(a)?, a.dtype().is_complex());
    let g = dense(gpu, &a.div(&size)?.transpose(d - 2, d - 1)?)?;
    let [g, v] = rotated(gpu, &g)?;
    let sizes = if complex {
        apply(Abs, [&g])?
    } else {
        g.clone()
    };
    let squares = (sizes.mul(&sizes)?).sum_mask(DimSet::last(1, g.ndim())?, false, None)?;
    let (s, order) = apply(Sqrt, [&squares])?.sort(-1, true)?;
    let scaled = s.mul(&size.reshape_to(&join(batch_of(a), &[1]))?)?;
    if !vectors {
        return Ok(vec![scaled]);
    }
    let (g, v) = (ordered(&g, &order)?, ordered(&v, &order)?);
    let mut column: Dims = s.shape().clone();
    column.push(1);
    let s = s.reshape_to(&column)?;
    let zero = Tensor::zeros(&[], s.dtype(), a.device())?;
    let none = apply(Eq, [&s, &zero])?;
    let u = g.div(&s)?;
    let u = where_(&none, &zero.to_dtype(u.dtype())?, &u)?.transpose(d - 2, d - 1)?;
    // What lies beside the rows of full rank is made orthogonal too.
    let [q, r] = qr(gpu, &u, full)?;
    let diagonal = real(&r.diagonal(0, d - 2, d - 1)?)?;
    let one = Tensor::full(&[], Scalar::Int(1), s.dtype(), a.device())?;
    let sign = where_(&apply(Lt, [&diagonal, &zero])?, &one.neg()?, &one)?;
    let n = cols(a) as i64;
    let own = q.narrow(d - 1, 0, n)?;
    let sign = sign.reshape_to(&join(batch_of(a), &[1, n as usize]))?;
    own.write_from(&own.detach().mul(&sign)?)?;
    Ok(vec![q, scaled, v.conj()?])
}

/// Eigenvalues, ascending, and eigenvectors, in columns, of symmetric or Hermitian matrices of which the triangle
/// below the diagonal counts. Complex eigenvectors begin with a real number.
pub fn eigh(gpu: &Gpu, a: &Tensor) -> Result<[Tensor; 2]> {
    let d = a.ndim() as i64;
    let low = dense(gpu, a)?.tril(0)?;
    let a = low.add(&adjoint(&low.tril(-1)?)?)?;
    let complex = a.dtype().is_complex();
    if complex {
        let own = a.diagonal(0, d - 2, d - 1)?;
        own.write_from(&real(&own)?.to_dtype(a.dtype())?)?;
    }
    let size = scale_of(&a)?;
    let a = a.div(&size)?;
    // Without a negative eigenvalue, singular vectors are eigenvectors.
    let bound = apply(Abs, [&a])?
        .sum_mask(DimSet::last(1, a.ndim())?, true, None)?
        .amax_mask(DimSet::last(2, a.ndim())?, true)?;
    let shifted = a.add(&identity(&a, rows(&a), rows(&a))?.mul(&bound)?)?;
    let [_, v] = rotated(gpu, &dense(gpu, &shifted)?)?;
    // Rayleigh's quotients know nothing of the shift.
    let values = real(&v.matmul(&a)?.mul(&v.conj()?)?)?;
    let values = values.sum_mask(DimSet::last(1, v.ndim())?, false, None)?;
    let (values, order) = values.sort(-1, false)?;
    let values = values.mul(&size.reshape_to(&join(batch_of(&a), &[1]))?)?;
    let vectors = adjoint(&ordered(&v, &order)?)?;
    if !complex {
        return Ok([values, vectors]);
    }
    let first = vectors.narrow(d - 2, 0, 1)?;
    let size = apply(Abs, [&first])?;
    let none = apply(Eq, [&size, &Tensor::zeros(&[], size.dtype(), a.device())?])?;
    let one = Tensor::full(&[], Scalar::Int(1), a.dtype(), a.device())?;
    let turn = where_(&none, &one, &first.conj()?.div(&size)?)?;
    Ok([values, vectors.mul(&turn)?])
}

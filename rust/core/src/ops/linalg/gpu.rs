//! Factorisations of small matrices on the GPU, and what is computed with their factors.

use super::matmul::swapped;
use super::{batch_of, cols, halves, join, ldl_gpu, orthogonal, rows, Factor, Kind};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Lt, Ne};
use crate::ops::pointwise::unary::{Abs, Log, LogicalNot, Sgn, Sign};
use crate::ops::reduce::complex_product;
use crate::shape::{self, DimSet, Dims};
use crate::tensor::Tensor;
use crate::transfer::dense;

params! {
    struct Block {
        count: u32,
        rows: u32,
        columns: u32,
        work_offset: u32,
        pivot_offset: u32,
        info_offset: u32,
        a_offset: u32,
        exchange: u32,
        first: u32,
        end: u32,
    }
}
const NUMBERS: &[Acc] = &[Acc::F32, Acc::F64, Acc::C64, Acc::C128];
shader! { static FACTOR: Block = "factor.wgsl", NUMBERS }

/// Invocations that take a column each, and those that work on a matrix.
const LANES: usize = 64;
const MANY: usize = 256;
/// Loop iterations of an invocation: software Vulkan ends it after 65,535.
const MAX_TRIPS: usize = 60_000;

/// Whether a kernel binds these matrices, and goes through a step of its work on them.
fn takes(entry: &'static str, all: &[&Tensor]) -> bool {
    let [m, n] = [rows(all[0]), cols(all[0])];
    let trips = match entry {
        "cholesky" => n + (n + MANY).div_ceil(2).pow(2) / MANY + 1,
        "lu" => 10 + 2 * m.div_ceil(MANY) + (m * n).div_ceil(MANY),
        _ => m + 1,
    };
    trips <= MAX_TRIPS && halves::are_small(all)
}

/// A matrix of a batch of one.
fn alone(t: &Tensor) -> Result<Tensor> {
    t.reshape_to(&[rows(t), cols(t)])
}

/// A dispatch over matrices, and what they bind; `of` is `work` where there is no other matrix.
struct Job<'a> {
    entry: &'static str,
    work: &'a Tensor,
    pivots: &'a Tensor,
    info: &'a Tensor,
    of: &'a Tensor,
    /// Upper, unit.
    triangle: [bool; 2],
    exchange: bool,
}

impl Job<'_> {
    fn run(&self, gpu: &Gpu) -> Result<()> {
        let (m, n) = (rows(self.work), cols(self.work));
        let count = self.work.numel() / (m * n);
        ensure!(
            self.work.numel() < 1 << 31,
            NoKernel,
            "wgpu: linalg: {} elements",
            self.work.numel()
        );
        let mut p = Block {
            count: count as u32,
            rows: m as u32,
            columns: n as u32,
            work_offset: self.work.offset() as u32,
            pivot_offset: self.pivots.offset() as u32,
            info_offset: self.info.offset() as u32,
            a_offset: self.of.offset() as u32,
            exchange: self.exchange as u32,
            first: 0,
            end: 0,
        };
        let by_column = matches!(self.entry, "solve" | "permute");
        let lanes = if by_column { LANES } else { MANY };
        let steps = if by_column { m } else { m.min(n) };
        // What a step takes at most.
        let trips = |step: usize| match self.entry {
            "permute" => 1,
            "solve" => 1 + if self.triangle[0] { step } else { step + 1 },
            "cholesky" => step + (n - step).div_ceil(lanes) * (step + 1) + 1,
            _ => 10 + 2 * m.div_ceil(lanes) + ((m - step) * (n - step)).div_ceil(lanes),
        };
        let groups = match by_column {
            true => (count * n).div_ceil(lanes),
            false => count,
        };
        let [upper, unit] = self.triangle;
        let mut first = 0;
        while first < steps {
            let (mut end, mut sum) = (first, 0);
            ensure!(
                trips(first) <= MAX_TRIPS,
                NoKernel,
                "wgpu: linalg: matrices of {m} by {n}"
            );
            while end < steps && (end == first || sum + trips(end) <= MAX_TRIPS) {
                sum += trips(end);
                end += 1;
            }
            [p.first, p.end] = [first, end].map(|n| n as u32);
            FACTOR
                .launch(Acc::of_any(self.work.dtype())?)
                .entry(self.entry)
                .set("UPPER", upper)
                .set("UNIT", unit)
                .set("WG", lanes as u32)
                .writes_words(self.work)
                .writes_words(self.pivots)
                .writes_words(self.info)
                .reads_words(self.of)
                .groups(gpu, &p, groups)?;
            first = end;
        }
        Ok(())
    }
}

/// A matrix's factors, the exchanged rows, and the first pivot that is zero.
fn factors(gpu: &Gpu, a: &Tensor, exchange: bool) -> Result<[Tensor; 3]> {
    let batch = Dims::from_slice(batch_of(a));
    let k = rows(a).min(cols(a));
    if !takes("lu", &[a]) {
        let [lu, pivots, info] = halves::lu(&alone(a)?, exchange)?;
        return Ok([
            lu.reshape_to(a.shape())?,
            pivots.reshape_to(&join(&batch, &[k]))?,
            info.reshape_to(&batch)?,
        ]);
    }
    let lu = a.copy_dense()?;
    let ints = |tail: &[usize]| Tensor::empty(&join(&batch, tail), DType::I32, gpu.device());
    let (pivots, info, spare) = (ints(&[k])?, ints(&[])?, ints(&[])?);
    Job {
        entry: "lu",
        work: &lu,
        pivots: &pivots,
        info: &info,
        of: &spare,
        triangle: [false; 2],
        exchange,
    }
    .run(gpu)?;
    Ok([lu, pivots, info])
}

/// Overwrites `b` by the solution for a triangle, upper or of unit diagonal.
fn substitute(gpu: &Gpu, a: &Tensor, b: &Tensor, triangle: [bool; 2]) -> Result<()> {
    if !takes("solve", &[a, b]) {
        let [upper, unit] = triangle;
        let x = halves::triangular(&alone(a)?, &alone(b)?, upper, unit)?;
        return b.write_from(&x.reshape_to(b.shape())?);
    }
    by_columns(gpu, "solve", Some(a), b, None, triangle)
}

/// Overwrites `b` by the solution for both factors and their pivots.
fn solve(gpu: &Gpu, a: &Tensor, b: &Tensor, pivots: &Tensor) -> Result<()> {
    match takes("permute", &[b]) {
        true => by_columns(gpu, "permute", None, b, Some(pivots), [false; 2])?,
        false => {
            let ordered = halves::exchanged(&alone(b)?, &pivots.reshape_to(&[rows(b)])?)?;
            b.write_from(&ordered.reshape_to(b.shape())?)?;
        }
    }
    substitute(gpu, a, b, [false, true])?;
    substitute(gpu, a, b, [true, false])
}

fn by_columns(
    gpu: &Gpu,
    entry: &'static str,
    a: Option<&Tensor>,
    b: &Tensor,
    pivots: Option<&Tensor>,
    triangle: [bool; 2],
) -> Result<()> {
    let spare = |n: usize| Tensor::empty(&[n], DType::I32, gpu.device());
    let (first, second, third) = (spare(1)?, spare(1)?, spare(1)?);
    Job {
        entry,
        work: b,
        pivots: pivots.unwrap_or(&first),
        info: &second,
        of: a.unwrap_or(&third),
        triangle,
        exchange: false,
    }
    .run(gpu)
}

/// The sign of the permutation that exchanging rows makes.
fn parity(pivots: &Tensor, dtype: DType) -> Result<Tensor> {
    let n = pivots.size(pivots.ndim() - 1);
    let still: Vec<i32> = (1..=n as i32).collect();
    let still = Tensor::from_slice(&still, &[n], DType::I32)?.to_device(pivots.device())?;
    let moved = apply(Ne, [pivots, &still])?.to_dtype(dtype)?;
    // Of each exchange -1.
    let two = Tensor::full(&[], Scalar::Int(-2), dtype, pivots.device())?;
    let signs = moved.mul(&two)?.add_scalar(1.0)?;
    signs.reduce(
        crate::cpu::reduce::Kind::Prod,
        DimSet::last(1, signs.ndim())?,
        false,
        dtype,
        "ProdBackward1",
    )
}

fn deliver(y: &[Tensor], made: &[Tensor]) -> Result<()> {
    let mut both = y.iter().zip(made);
    both.try_for_each(|(to, from)| to.write_from(from))
}

/// The X for which A X comes nearest to B, and whether singular values of A may be below `rcond` of the
/// largest: these are at most R's Frobenius norm, and at least 1 over that of its inverse.
fn least_squares(gpu: &Gpu, a: &Tensor, b: &Tensor, y: &[Tensor], rcond: f64) -> Result<()> {
    let [q, r] = orthogonal::qr(gpu, a, false)?;
    y[0].write_from(&swapped(&q)?.matmul(b)?)?;
    substitute(gpu, &r, &y[0], [true, false])?;
    let inverse = orthogonal::identity(&r, cols(&r), cols(&r))?;
    substitute(gpu, &r, &inverse, [true, false])?;
    let norm = |t: &Tensor| t.vector_norm(2.0, DimSet::last(2, t.ndim())?, false);
    let ratio = norm(&r)?.mul(&norm(&inverse)?)?.mul_scalar(rcond)?;
    let one = Tensor::full(&[], Scalar::Int(1), a.dtype(), a.device())?;
    // NaN is not below.
    let sure = apply(Lt, [&ratio, &one])?;
    y[1].write_from(&apply(LogicalNot, [&sure])?.to_dtype(DType::I32)?)
}

impl Factor {
    /// Whether kernels take matrices of these sizes, as many as there are.
    fn takes_all(&self, x: &[&Tensor], y: &[Tensor]) -> bool {
        let all: Vec<&Tensor> = x.iter().copied().chain(y).collect();
        let [m, n] = [rows(x[0]), cols(x[0])];
        halves::are_small(&all) && m.max(n) < orthogonal::LONGEST && m * n < MAX_TRIPS * MANY / 2
    }

    /// Both halves of a batch, one after the other.
    fn by_halves(&self, batch: &[usize], x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let count: usize = batch.iter().product();
        let mut inputs = Vec::with_capacity(x.len());
        for t in x {
            let tail = [rows(t), cols(t)];
            let wide = t.expand_to(&join(batch, &tail))?;
            inputs.push(wide.reshape_to(&join(&[count], &tail))?);
        }
        for (from, n) in [(0, count / 2), (count / 2, count - count / 2)] {
            let part = |t: &Tensor| t.narrow(0, from as i64, n as i64);
            let own: Vec<Tensor> = inputs.iter().map(part).collect::<Result<_>>()?;
            let own: Vec<&Tensor> = own.iter().collect();
            for (to, made) in y.iter().zip(&dispatch::compute(self, &own)?) {
                let all = join(&[count], &to.shape()[batch.len()..]);
                part(&to.reshape_to(&all)?)?.write_from(made)?;
            }
        }
        Ok(true)
    }

    /// Writes the results where there is a kernel; `false` where there is none.
    pub(super) fn on_gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if x.iter().any(|t| t.numel() == 0) || y.iter().any(|t| t.numel() == 0) {
            return Ok(false);
        }
        let batch = match x.get(1) {
            Some(b) => shape::broadcast(batch_of(x[0]), batch_of(b))?,
            None => Dims::from_slice(batch_of(x[0])),
        };
        let whole = |t: &Tensor| dense(gpu, &t.expand_to(&join(&batch, &[rows(t), cols(t)]))?);
        let a = whole(x[0])?;
        let complex = a.dtype().is_complex();
        if batch.iter().product::<usize>() > 1 && !self.takes_all(x, y) {
            return self.by_halves(&batch, x, y);
        }
        match self.0 {
            Kind::Cholesky if !takes("cholesky", &[&a]) => {
                let [l, info] = halves::cholesky(&alone(&a)?)?;
                y[0].write_from(&l.reshape_to(y[0].shape())?)?;
                y[1].write_from(&info.reshape_to(y[1].shape())?)?;
            }
            Kind::Cholesky => {
                y[0].write_scalar(0.into())?;
                let spare = Tensor::empty(&[1], DType::I32, gpu.device())?;
                Job {
                    entry: "cholesky",
                    work: &y[0],
                    pivots: &spare,
                    info: &y[1],
                    of: &a,
                    triangle: [false; 2],
                    exchange: false,
                }
                .run(gpu)?;
            }
            Kind::LuFactor { pivot } => {
                for (to, from) in y.iter().zip(&factors(gpu, &a, pivot)?) {
                    to.write_from(from)?;
                }
            }
            Kind::Inverse | Kind::Solve => {
                let [lu, pivots, info] = factors(gpu, &a, true)?;
                match x.get(1) {
                    Some(b) => y[0].write_from(&whole(b)?)?,
                    None => {
                        y[0].write_scalar(0.into())?;
                        let n = y[0].ndim() as i64;
                        y[0].diagonal(0, n - 2, n - 1)?.write_scalar(1.into())?;
                    }
                }
                solve(gpu, &lu, &y[0], &pivots)?;
                y[1].write_from(&info)?;
            }
            Kind::Triangular { upper, unit } => {
                y[0].write_from(&whole(x[1])?)?;
                substitute(gpu, &a, &y[0], [upper, unit])?;
            }
            Kind::Det | Kind::Slogdet => {
                let [lu, pivots, _] = factors(gpu, &a, true)?;
                let n = lu.ndim() as i64;
                let diagonal = lu.diagonal(0, n - 2, n - 1)?;
                let last = DimSet::last(1, diagonal.ndim())?;
                let product = |t: &Tensor| match complex {
                    true => complex_product(t, last, false),
                    false => {
                        let kind = crate::cpu::reduce::Kind::Prod;
                        t.reduce(kind, last, false, t.dtype(), "ProdBackward1")
                    }
                };
                let sign = parity(&pivots, a.dtype().part())?.to_dtype(a.dtype())?;
                if self.0 == Kind::Det {
                    y[0].write_from(&product(&diagonal)?.mul(&sign)?)?;
                } else {
                    let signs = match complex {
                        true => apply(Sgn, [&diagonal])?,
                        false => apply(Sign, [&diagonal])?,
                    };
                    y[0].write_from(&product(&signs)?.mul(&sign)?)?;
                    let logs = apply(Log, [&apply(Abs, [&diagonal])?])?;
                    y[1].write_from(&logs.sum_mask(last, false, None)?)?;
                }
            }
            // These compute with real numbers.
            Kind::LeastSquares { .. } | Kind::Ldl { .. } | Kind::LdlSolve { .. } if complex => {
                return Ok(false)
            }
            Kind::Qr { full } => deliver(y, &orthogonal::qr(gpu, &a, full)?)?,
            Kind::Reflectors => deliver(y, &orthogonal::reflectors(gpu, &a)?)?,
            Kind::Svd { full } => deliver(y, &orthogonal::svd(gpu, &a, full, true)?)?,
            Kind::SingularValues => deliver(y, &orthogonal::svd(gpu, &a, false, false)?)?,
            Kind::Eigh => deliver(y, &orthogonal::eigh(gpu, &a)?)?,
            Kind::Eigenvalues => deliver(y, &orthogonal::eigh(gpu, &a)?[..1])?,
            Kind::Lu { pivot: true } => {
                let [lu, pivots, _] = factors(gpu, &a, true)?;
                let (d, k) = (lu.ndim() as i64, rows(&lu).min(cols(&lu)) as i64);
                y[0].write_from(&super::permuted(&pivots, rows(&lu), lu.dtype())?)?;
                let lower = lu.narrow(d - 1, 0, k)?.tril(-1)?;
                y[1].write_from(&lower)?;
                y[1].diagonal(0, d - 2, d - 1)?.write_scalar(1.into())?;
                y[2].write_from(&lu.narrow(d - 2, 0, k)?.triu(0)?)?;
            }
            Kind::LeastSquares { rcond } => {
                least_squares(gpu, &a, &whole(x[1])?, y, f64::from_bits(rcond))?;
            }
            Kind::Ldl { .. } => ldl_gpu::factor(gpu, &a, y)?,
            Kind::LdlSolve { .. } => {
                y[0].write_from(&whole(x[1])?)?;
                ldl_gpu::solve(gpu, &a, &y[0])?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

//! A product as a GPU's kernel takes it: three stacks of matrices, each of which one stride walks.

use super::plan::{Plan, Stack};
use super::{gpu, matrix, MatMul};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::shape::{self, Dims, Strides};
use crate::tensor::Tensor;
use crate::transfer;
use smallvec::SmallVec;

/// `y = alpha * a b + beta * c` for `a` [B, M, K], `b` [B, K, N], `c` and `y` [B, M, N].
pub(super) struct Stacks {
    pub a: Tensor,
    pub b: Tensor,
    pub c: Option<(Tensor, f64)>,
    pub alpha: f64,
    pub y: Tensor,
    /// Whether the sum over the batch is asked for, in the place of `y`, which is then only a shape.
    pub sums: bool,
    /// Where that sum goes.
    pub total: Tensor,
}

impl Stacks {
    /// By one kernel, or two.
    pub fn product(&self, gpu: &Gpu) -> Result<()> {
        let (a, b, alpha) = (&self.a, &self.b, self.alpha);
        if self.sums {
            let shape = self.y.shape();
            let each = Tensor::empty(shape, self.y.dtype(), self.y.device())?;
            gpu::matmul(gpu, a, b, None, alpha, &each, None)?;
            let (from, to) = (transfer::whole(&each)?, transfer::whole(&self.total)?);
            return reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to);
        }
        let c = self.c.as_ref().map(|(c, beta)| (c, *beta));
        gpu::matmul(gpu, a, b, c, alpha, &self.y, None)
    }
}

impl MatMul {
    /// Of real numbers; none where the kernel does not take these.
    pub(super) fn stacks(&self, gpu: &Gpu, x: &[&Tensor], y: &Tensor) -> Result<Option<Stacks>> {
        // The kernel takes its factors as float64.
        let inexact =
            |s| matches!(s, Scalar::Int(v) if v.unsigned_abs() > 1 << f64::MANTISSA_DIGITS);
        if inexact(self.alpha) || inexact(self.beta) {
            return Ok(None);
        }
        let (a, b) = self.operands(x);
        let (p, q) = (Stack::new(a, self.ta, true), Stack::new(b, self.tb, false));
        let batch = shape::broadcast(p.batch, q.batch)?;
        let plan = Plan::new(&p, &q, &batch, self.sum, &[]);
        let Some((n, step_a, step_b, step_y)) = plan.single() else {
            // Batches that no single stride walks: spread out and dense they have one.
            let spread = |t: &Tensor| match t.ndim() {
                0 | 1 => transfer::dense(gpu, t),
                _ => transfer::dense(gpu, &spread(t, &batch)),
            };
            let (a, b) = (spread(a)?, spread(b)?);
            return self.stacks(gpu, &self.with(x, &a, &b), y);
        };
        let sums = self.sum && n != 1;
        if sums && self.plus {
            let (op, a, b) = self.in_depth(gpu, x)?;
            return op.stacks(gpu, &op.with(x, &a, &b), y);
        }
        let stack = |t: &Tensor, shape: [usize; 3], strides: [isize; 3]| {
            t.alias(Layout {
                offset: t.offset(),
                shape: Dims::from_slice(&shape),
                strides: Strides::from_slice(&strides),
            })
        };
        let (m, k, l) = (plan.m, plan.k, plan.n);
        let beta = self.beta.f64();
        let c = match self.plus && beta != 0.0 {
            true => {
                let wide = x[0].to_device(y.device())?;
                let wide = wide.alias(wide.layout().expand_to(y.shape()));
                let wide = match wide.layout().reshape(&[n, m, l]) {
                    Some(layout) => wide.alias(layout),
                    None => transfer::dense(gpu, &wide)?.reshape_to(&[n, m, l])?,
                };
                Some((wide, beta))
            }
            false => None,
        };
        Ok(Some(Stacks {
            a: stack(a, [n, m, k], [step_a, plan.a.0, plan.a.1]),
            b: stack(b, [n, k, l], [step_b, plan.b.0, plan.b.1]),
            c,
            alpha: self.alpha.f64(),
            y: stack(y, [n, m, l], [step_y, plan.y.0, plan.y.1]),
            sums,
            total: y.clone(),
        }))
    }

    /// The inputs with other factors.
    pub(super) fn with<'a>(
        &self,
        x: &[&'a Tensor],
        a: &'a Tensor,
        b: &'a Tensor,
    ) -> SmallVec<[&'a Tensor; 3]> {
        let added = self.plus.then(|| x[0]);
        added.into_iter().chain([a, b]).collect()
    }

    /// The sum over a batch as one product, whose depth is that of all matrices: one behind the other.
    pub(super) fn in_depth(&self, gpu: &Gpu, x: &[&Tensor]) -> Result<(MatMul, Tensor, Tensor)> {
        let (a, b) = self.operands(x);
        let (ta, tb) = (self.ta && a.ndim() > 1, self.tb && b.ndim() > 1);
        let (a, b) = (matrix(a, true)?, matrix(b, false)?);
        let batch = shape::broadcast(&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2])?;
        let deep = |t: &Tensor, transposed: bool| -> Result<Tensor> {
            let t = spread(t, &batch);
            let t = match transposed {
                true => t.alias(t.layout().transpose(-2, -1)?),
                false => t,
            };
            let depth = t.numel() / t.size(t.ndim() - 1).max(1);
            transfer::dense(gpu, &t)?.reshape_to(&[depth, t.size(t.ndim() - 1)])
        };
        let op = MatMul {
            ta: true,
            tb: false,
            sum: false,
            ..self.clone()
        };
        Ok((op, deep(&a, !ta)?, deep(&b, tb)?))
    }
}

/// The matrices of `t` for each place of a batch that its own broadcasts to.
fn spread(t: &Tensor, batch: &[usize]) -> Tensor {
    let mut shape = Dims::from_slice(batch);
    shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
    t.alias(t.layout().expand_to(&shape))
}

/// Whether sums of elements of this type are kept in another one until they are whole.
pub(super) fn kept_in(dtype: DType) -> DType {
    match dtype.is_half() {
        true => DType::F32,
        false => dtype,
    }
}

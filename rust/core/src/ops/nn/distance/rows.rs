//! Cosines and distances of rows, which a GPU has in one kernel.

use crate::autograd::{mode, Vjp};
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::pairs::{pairs, Pairs, MAX_LENGTH};
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{
    mask, Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta, Tensors, Traits,
};
use crate::ops::nn::loss::at_least;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{LogicalNot, Sqrt};
use crate::ops::reduce::beside;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::transfer::{ran, whole};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// Whether these are rows of one shape and type on a GPU, not too long for its kernel.
pub fn fit(x: &[&Tensor]) -> bool {
    let short = |t: &Tensor| t.shape().last().is_some_and(|&n| n <= MAX_LENGTH);
    let alike = |t: &&Tensor| {
        let same = t.shape() == x[0].shape() && t.dtype() == x[0].dtype();
        same && t.device() == x[0].device()
    };
    let float = x[0].dtype().is_float() && x[0].device().is_gpu();
    float && short(x[0]) && x[0].numel() > 0 && x.iter().all(alike)
}

fn last(x: &Tensor) -> Result<DimSet> {
    DimSet::last(1, x.ndim())
}

/// g / n, and 0 where n is 0.
fn share(g: &Tensor, n: &Tensor) -> Result<Tensor> {
    let nothing = Tensor::constant(0.0, n.dtype())?;
    where_(&apply(LogicalNot, [n])?, &nothing, &g.div(n)?)
}

/// One result of the type of `x` for each row, and others of the type that is computed in.
fn metas(x: &Meta, others: usize) -> Metas {
    let shape = &x.shape()[..x.ndim().saturating_sub(1)];
    let other = TensorMeta::new(shape, x.dtype().compute(), x.device());
    let mut all = Metas::from_elem(other, 1 + others);
    all[0].dtype = x.dtype();
    all
}

fn written(found: Tensors, y: &[Tensor]) -> Result<()> {
    (found.iter().zip(y)).try_for_each(|(found, y)| y.write_from(found))
}

/// The cosine of the angle between rows, and their lengths: roots of sums of squares and `added`, which divide as at
/// least `least`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cosine {
    pub least: Bitwise,
    pub added: Bitwise,
}

impl Cosine {
    pub fn of(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        Ok(dispatch::call(self.clone(), &[x, y])?.swap_remove(0))
    }

    /// What a length divides as; the bound does not stop the gradient.
    fn divisor(&self, n: &Tensor) -> Result<Tensor> {
        if self.least.0 == 0.0 {
            return Ok(n.clone());
        }
        let bound = mode::with_grad(false, || at_least(n, self.least.0))?;
        match mode::traced() {
            true => n.add(&mode::with_grad(false, || bound.sub(n))?),
            false => Ok(bound),
        }
    }

    /// The cosine and both lengths by other ops.
    fn composed(&self, x: &Tensor, y: &Tensor) -> Result<[Tensor; 3]> {
        let last = last(x)?;
        let sum = |p: &Tensor| p.sum_mask(last, false, None);
        let length = |t: &Tensor| match self.added.0 == 0.0 {
            true => t.vector_norm(2.0, last, false),
            false => apply(Sqrt, [&sum(&t.mul(t)?)?.add_scalar(self.added.0)?]),
        };
        let (n, m) = (length(x)?, length(y)?);
        // One of them made a unit vector: products of both as they are might overflow.
        let unit = x.div(&self.divisor(&n)?.unsqueeze(-1)?)?;
        let c = sum(&unit.mul(y)?)?.div(&self.divisor(&m)?)?;
        Ok([c, n, m])
    }

    fn results(&self, x: &[&Tensor]) -> Result<Tensors> {
        let wide = x[0].dtype().compute();
        let [c, n, m] = mode::with_grad(false, || {
            self.composed(&x[0].to_dtype(wide)?, &x[1].to_dtype(wide)?)
        })?;
        Ok(smallvec![c.to_dtype(x[0].dtype())?, c, n, m])
    }
}

impl Derivative for Cosine {
    fn name(&self) -> &'static str {
        "DivBackward0"
    }
    /// The cosine as nobody else has it.
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1]).and_outputs([1, 2, 3])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = smallvec![None, None];
        let Some(g) = &g[0] else { return Ok(out) };
        let (own, wide) = (g.dtype(), g.dtype().compute());
        let (x, y) = (cx.input(0)?.to_dtype(wide)?, cx.input(1)?.to_dtype(wide)?);
        let [c, n, m] = match mode::traced() {
            // Computed again, so that gradients flow through them.
            true => self.composed(&x, &y)?,
            false => [cx.output(1)?, cx.output(2)?, cx.output(3)?],
        };
        let last = last(&x)?;
        let beside = |t: &Tensor| beside(t, x.shape(), last, false);
        let g = beside(&g.to_dtype(wide)?)?;
        let (c, n, m) = (beside(&c)?, beside(&n)?, beside(&m)?);
        let (by_x, by_y) = (self.divisor(&n)?, self.divisor(&m)?);
        let across = g.div(&by_x)?.div(&by_y)?;
        let along = g.mul(&c)?;
        let slope = |x: &Tensor, y: &Tensor, by: &Tensor, n: &Tensor| {
            let d = y.mul(&across)?.sub(&x.mul(&share(&along.div(by)?, n)?)?)?;
            d.to_dtype(own)
        };
        if cx.needs(0) {
            out[0] = Some(slope(&x, &y, &by_x, &n)?);
        }
        if cx.needs(1) {
            out[1] = Some(slope(&y, &x, &by_y, &m)?);
        }
        Ok(out)
    }
}

impl Op for Cosine {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(metas(x[0], 3))
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1, 2, 3]),
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        written(self.results(x)?, y)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let what = Pairs::Cosine {
            least: self.least.0,
            added: self.added.0,
        };
        run(gpu, what, [x[0], x[1], x[1]], y)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        self.results(x).map(Some)
    }
}

fn run(gpu: &Gpu, what: Pairs, [a, b, c]: [&Tensor; 3], y: &[Tensor]) -> Result<bool> {
    let x = [whole(a)?, whole(b)?, whole(c)?];
    let y = [whole(&y[0])?, whole(&y[1])?, whole(&y[2])?, whole(&y[3])?];
    ran(pairs(gpu, what, x, y))
}

/// Lengths of the rows of a - p + added and a - n + added and, with `swap`, p - n + added, of float32 or float64:
/// the first one, the first one for the gradient, the second and the third.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Distances {
    added: Bitwise,
    swap: bool,
}

/// Pairs of inputs, and the result that is their distance.
const PAIRED: [(usize, usize, usize); 3] = [(0, 1, 0), (0, 2, 2), (1, 2, 3)];

impl Distances {
    fn apart(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        x.sub(y)?.add_scalar(self.added.0)
    }

    fn distance(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        self.apart(x, y)?.vector_norm(2.0, last(x)?, false)
    }

    fn results(&self, x: &[&Tensor]) -> Result<Tensors> {
        mode::with_grad(false, || {
            let near = self.distance(x[0], x[1])?;
            let far = self.distance(x[0], x[2])?;
            let third = match self.swap {
                true => self.distance(x[1], x[2])?,
                false => Tensor::zeros(near.shape(), near.dtype(), near.device())?,
            };
            Ok(smallvec![near.clone(), near, far, third])
        })
    }
}

impl Derivative for Distances {
    fn name(&self) -> &'static str {
        "LinalgVectorNormBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2]).and_outputs([1, 2, 3])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let x = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
        let last = last(&x[0])?;
        let mut out: Grads = smallvec![None, None, None];
        let mut add = |i: usize, d: Tensor| -> Result<()> {
            out[i] = Some(match out[i].take() {
                Some(sum) => sum.add(&d)?,
                None => d,
            });
            Ok(())
        };
        for (i, j, at) in PAIRED {
            let Some(g) = &g[at] else { continue };
            if !cx.needs(i) && !cx.needs(j) {
                continue;
            }
            let d = match mode::traced() {
                true => self.distance(&x[i], &x[j])?,
                false => cx.output(at.max(1))?,
            };
            let beside = |t: &Tensor| beside(t, x[0].shape(), last, false);
            let part = share(&beside(g)?, &beside(&d)?)?;
            let slope = self.apart(&x[i], &x[j])?.mul(&part)?;
            if cx.needs(j) {
                add(j, slope.neg()?)?;
            }
            if cx.needs(i) {
                add(i, slope)?;
            }
        }
        Ok(out)
    }
}

impl Op for Distances {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(metas(x[0], 3))
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1]) | (!self.swap as Mask) << 3,
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        written(self.results(x)?, y)
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let what = Pairs::Distances {
            added: self.added.0,
            third: self.swap,
        };
        run(gpu, what, [x[0], x[1], x[2]], y)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        self.results(x).map(Some)
    }
}

/// The distances of the first to the second and to the third, and of these two where they are asked for, where a GPU
/// has them in one kernel.
pub fn distances(x: [&Tensor; 3], added: f64, swap: bool) -> Result<Option<SmallVec<[Tensor; 3]>>> {
    if !fit(&x) || !matches!(x[0].dtype(), DType::F32 | DType::F64) {
        return Ok(None);
    }
    let op = Distances {
        added: Bitwise(added),
        swap,
    };
    let mut found = dispatch::call(op, &x)?;
    found.remove(1);
    found.truncate(2 + swap as usize);
    Ok(Some(found.into_iter().collect()))
}

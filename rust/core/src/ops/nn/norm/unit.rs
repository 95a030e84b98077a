//! Vectors over their lengths.

use crate::alloc;
use crate::autograd::{mode, Vjp};
use crate::cpu::fold::{Kind, Reducible};
use crate::cpu::pool::Ptr;
use crate::cpu::rows::share_with;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{mask, one, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors, Traits};
use crate::ops::nn::loss::at_least;
use crate::ops::pointwise::binary::{Div as Quotient, Pow};
use crate::ops::pointwise::compare::{Ge, LogicalAnd};
use crate::ops::pointwise::expr::sgn;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Abs;
use crate::ops::pointwise::{apply, c, k, pointwise, Float, Pw, Real};
use crate::ops::reduce::reduced_shape;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::{ensure, host, per_isa};
use smallvec::smallvec;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Whether a length divides, and has a slope: it is not below eps, and not 0.
#[inline(always)]
fn counts<R: Real>(n: R, eps: f64) -> R::Mask {
    R::not(R::either(n.lt(k(eps)), n.equal(c(0.0))))
}

/// One over the length, or over eps.
#[inline(always)]
fn factor<R: Real>(n: R, eps: f64) -> R {
    c::<R>(1.0) / R::select(n.lt(k(eps)), k(eps), n)
}

pointwise! {
    /// The gradient of x from the gradient g of x over its length n, and the sum s of g x.
    op UnitSlope { eps: f64 }[4] = "DivBackward0", FloatOnly;
    f |p, [g, x, s, n]| {
        let r = factor(n, p.eps);
        (g - R::select(counts(n, p.eps), x * (s * r * r), c(0.0))) * r
    };
    df |p, [g, x, s, n], _, h|
        h * factor(n, p.eps),
        {
            let r = factor(n, p.eps);
            R::select(counts(n, p.eps), -h * (s * r * r) * r, c(0.0))
        },
        {
            let r = factor(n, p.eps);
            R::select(counts(n, p.eps), -h * x * r * r * r, c(0.0))
        },
        {
            let r = factor(n, p.eps);
            let slope = (c::<R>(3.0) * x * (s * r * r) - g) * (r * r);
            R::select(counts(n, p.eps), h * slope, c(0.0))
        };

    /// As [`UnitSlope`] of a 1-norm.
    op SumSlope { eps: f64 }[4] = "DivBackward0", FloatOnly;
    f |p, [g, x, s, n]| {
        let r = factor(n, p.eps);
        (g - R::select(counts(n, p.eps), x.sign() * (s * r), c(0.0))) * r
    };
    df |p, [g, x, s, n], _, h|
        h * factor(n, p.eps),
        c(0.0),
        {
            let r = factor(n, p.eps);
            R::select(counts(n, p.eps), -h * x.sign() * r * r, c(0.0))
        },
        {
            let r = factor(n, p.eps);
            let slope = (c::<R>(2.0) * x.sign() * (s * r) - g) * (r * r);
            R::select(counts(n, p.eps), h * slope, c(0.0))
        };

    /// As [`UnitSlope`] of a p-norm.
    op PowerSlope { eps: f64, p: f64 }[4] = "DivBackward0", FloatOnly;
    f |p, [g, x, s, n]| {
        let r = factor(n, p.eps);
        let u = x.sign() * (x.abs() * r).pow(k(p.p - 1.0));
        (g - R::select(counts(n, p.eps), u * (s * r), c(0.0))) * r
    };
    df |p, [g, x, s, n], _, h|
        h * factor(n, p.eps),
        {
            let r = factor(n, p.eps);
            let bent = k::<R>(p.p - 1.0) * (x.abs() * r).pow(k(p.p - 2.0));
            R::select(counts(n, p.eps), -h * (s * r * r) * bent * r, c(0.0))
        },
        {
            let r = factor(n, p.eps);
            let u = x.sign() * (x.abs() * r).pow(k(p.p - 1.0));
            R::select(counts(n, p.eps), -h * u * r * r, c(0.0))
        },
        {
            let r = factor(n, p.eps);
            let u = x.sign() * (x.abs() * r).pow(k(p.p - 1.0));
            let slope = (k::<R>(p.p + 1.0) * u * (s * r) - g) * (r * r);
            R::select(counts(n, p.eps), h * slope, c(0.0))
        };
}

/// Vectors along the dimensions in `mask` over their p-norms, which are taken as at least `eps`, and the norms. The
/// power is 1, or 2 or more: others bend too much at zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unit {
    mask: DimSet,
    eps: Bitwise,
    p: Bitwise,
}

impl Unit {
    fn lengths(&self, x: &Tensor) -> Result<[Tensor; 2]> {
        let n = x.vector_norm(self.p.0, self.mask, true)?;
        let least = at_least(&n, self.eps.0)?;
        Ok([n, least])
    }

    /// The gradient as a graph; the length is computed again, so that gradients flow through it.
    fn composite(&self, g: &Tensor, x: &Tensor) -> Result<Tensor> {
        let [n, least] = self.lengths(x)?;
        let y = x.div(&least)?;
        let s = g.mul(&y)?.sum_mask(self.mask, true, None)?;
        let long = apply(Ge, [&n, &Tensor::number(Scalar::Float(self.eps.0))?])?;
        let counts = apply(LogicalAnd, [&long, &n])?;
        let s = where_(&counts, &s, &Tensor::constant(0.0, s.dtype())?)?;
        let slope = match self.p.0 {
            1.0 => sgn(x)?,
            2.0 => y,
            p => {
                let power = Tensor::number(Scalar::Float(p - 1.0))?;
                sgn(x)?.mul(&apply(Pow, [&apply(Abs, [&y])?, &power])?)?
            }
        };
        g.sub(&slope.mul(&s)?)?.div(&least)
    }

    /// The gradient of `x`, whose vectors have these norms, from `g` and the sums of g x.
    fn slope(&self, g: &Tensor, x: &Tensor, s: &Tensor, n: &Tensor) -> Result<Tensor> {
        let (eps, all) = (self.eps.0, [g, x, s, n]);
        match self.p.0 {
            1.0 => apply(SumSlope { eps }, all),
            2.0 => apply(UnitSlope { eps }, all),
            p => apply(PowerSlope { eps, p }, all),
        }
    }
}

impl Derivative for Unit {
    fn name(&self) -> &'static str {
        "DivBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let x = cx.input(0)?;
        if mode::traced() {
            return one(self.composite(g, &x)?);
        }
        let wide = x.dtype().compute();
        let products = g.to_dtype(wide)?.mul(&x)?;
        let s = products.sum_mask(self.mask, true, Some(wide))?;
        drop(products);
        one(self.slope(g, &x, &s, &cx.output(1)?)?.to_dtype(x.dtype())?)
    }
}

impl Op for Unit {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Unit {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, true);
        let lengths = TensorMeta::new(&shape, x[0].dtype(), x[0].device());
        Ok(smallvec![TensorMeta::of(x[0]), lengths])
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1]),
            ..Traits::NONE
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, eps) = (x[0], self.eps.0);
        match (x.dtype(), self.fits(x)?) {
            (DType::F32, Some(width)) => rows::<f32>(x, width, eps, &y[0], Some(&y[1])),
            (DType::F64, Some(width)) => rows::<f64>(x, width, eps, &y[0], Some(&y[1])),
            _ => mode::with_grad(false, || {
                let [n, least] = self.lengths(x)?;
                y[1].write_from(&n)?;
                dispatch::compute_into(&Pw(Quotient), &[x, &least], &y[..1])
            }),
        }
    }
    /// The length where it stays: what follows is computed where that is written.
    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        x[0].vector_norm_into(self.p.0, self.mask, &y[1])?;
        let least = at_least(&y[1], self.eps.0)?;
        dispatch::compute_into(&Pw(Quotient), &[x[0], &least], &y[..1])?;
        Ok(true)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let [n, least] = self.lengths(x[0])?;
        Ok(Some(smallvec![x[0].div(&least)?, n]))
    }
}

/// Lengths of rows that the kernel of a row takes in one call, and is worth one for.
const WIDTHS: RangeInclusive<usize> = 16..=4096;
/// Elements whose rows are read a second time before they leave the first cache.
const BLOCK: usize = 1 << 12;

per_isa! {
    fn over[T: Float](x: &[T], width: usize, lengths: &[T], out: &mut [T]) {
        let rows = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((x, out), &d) in rows.zip(lengths) {
            for (&x, out) in x.iter().zip(out) {
                *out = x / d;
            }
        }
    }
}

/// Writes rows over their lengths, and the lengths where they are asked for.
fn rows<T: Reducible + Float>(
    x: &Tensor,
    width: usize,
    eps: f64,
    y: &Tensor,
    norms: Option<&Tensor>,
) -> Result<()> {
    let x = x.prepared(T::DTYPE)?;
    // SAFETY: contiguous host memory of this type.
    let x = unsafe { x.slice::<T>() };
    let to = Ptr::new(y.ptr::<T>());
    let norms = norms.map(|n| Ptr::new(n.ptr::<T>()));
    let row = T::kernels(Kind::SumSquares, T::DTYPE).row;
    let least = T::of_f64(eps);
    host::unlocked(|| {
        let step = BLOCK / width;
        let lengths = || alloc::full(T::default(), step);
        share_with(x.len() / width, width / 2, lengths, |range, lengths| {
            for start in range.clone().step_by(step) {
                let n = step.min(range.end - start);
                let part = start * width..(start + n) * width;
                let x = &x[part.clone()];
                for ((i, d), x) in (start..).zip(lengths.iter_mut()).zip(x.chunks_exact(width)) {
                    // SAFETY: the row has so many elements; the kernel is one of this machine's.
                    let squares = unsafe { row(x.as_ptr().cast(), width, T::default()) };
                    let length = T::of_f64(squares.to_f64().sqrt());
                    if let Some(norms) = &norms {
                        // SAFETY: there is a length for each row, and each row is one range's.
                        unsafe { *norms.at(i) = length };
                    }
                    *d = match length >= least || Real::is_nan(length) {
                        true => length,
                        false => least,
                    };
                }
                // SAFETY: the result is as large as `x`, and each row is one range's.
                over(x, width, &lengths[..n], unsafe { to.part(part) });
            }
        });
    });
    Ok(())
}

impl Unit {
    /// The length of rows that [`rows`] takes.
    fn fits(&self, x: &Tensor) -> Result<Option<usize>> {
        let width = x.shape().last().copied().unwrap_or(1);
        let last = x.ndim() > 0 && self.mask == DimSet::last(1, x.ndim())?;
        let plain = self.p.0 == 2.0 && last && x.is_contiguous();
        Ok((plain && WIDTHS.contains(&width)).then_some(width))
    }
}

/// Vectors along the dimensions in `mask` over their p-norms, which are taken as at least `eps`.
pub(super) fn unit(x: &Tensor, eps: f64, mask: DimSet, p: f64) -> Result<Tensor> {
    ensure!(
        p == 1.0 || (2.0..f64::INFINITY).contains(&p),
        Value,
        "_unit: p must be 1, or 2 or more and finite, got {p}"
    );
    let host = x.device() == Device::Cpu;
    let op = Unit {
        mask,
        eps: Bitwise(eps),
        p: Bitwise(p),
    };
    let plain = x.dtype().is_float() && x.numel() > 0 && x.ndim() > 0 && x.is_contiguous();
    let differentiable = dispatch::recorded(&[x]);
    // What records kernels of the CPU makes chains of arithmetic, but gradients are the node's.
    let parts = host && dispatch::heeded(&[x]) && !differentiable;
    if !plain || parts || dispatch::by_name(&[x]) {
        return x.div(&op.lengths(x)?[1]);
    }
    if host && x.is_readable() && !differentiable {
        let fresh = || Tensor::empty(x.shape(), x.dtype(), x.device());
        match (x.dtype(), op.fits(x)?) {
            (DType::F32, Some(width)) => {
                let y = fresh()?;
                return rows::<f32>(x, width, eps, &y, None).map(|()| y);
            }
            (DType::F64, Some(width)) => {
                let y = fresh()?;
                return rows::<f64>(x, width, eps, &y, None).map(|()| y);
            }
            _ => {}
        }
    }
    Ok(dispatch::call(op, &[x])?.swap_remove(0))
}

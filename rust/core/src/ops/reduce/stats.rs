//! Variance, norms, counts and histograms.

use super::{all_dims, beside, reduced_count, reduced_shape, restored, spread, spreads};
use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::reduce::{filled, reduce, reduce_from, Kind};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::centred::{centred, Centred};
use crate::gpu::Gpu;
use crate::host;
use crate::meta::Meta;
use crate::op::{one, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors, Traits};
use crate::ops::pointwise::binary::{Maximum, Pow};
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::expr::sgn;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Clamp, LogicalNot, Sqrt};
use crate::ops::pointwise::{apply, k, pointwise};
use crate::schema::{Args, Signature, Value};
use crate::shape::{DimSet, Show};
use crate::tensor::Tensor;
use crate::transfer::{self, whole};
use crate::{ensure, with_float};
use smallvec::smallvec;
use std::sync::Arc;

pointwise! {
    /// The slope of a variance at x, from the mean m: g scale (x - m).
    op VarianceSlope { scale: f64 }[3] = "VarBackwardBackward0", FloatOnly;
    f |p, [x, m, g]| g * k(p.scale) * (x - m);
    df |p, [x, m, g], _, h| h * (g * k(p.scale)), -h * (g * k(p.scale)), h * (k::<R>(p.scale) * (x - m));
}

/// Variance (or its root) and mean over the dimensions in `mask`. `correction` is a float's bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Variance {
    mask: DimSet,
    keepdim: bool,
    correction: u64,
    root: bool,
    /// Whether the mean is a result too.
    with_mean: bool,
}

impl Variance {
    /// What the sum of `n` squares is divided by. Of nothing there is no variance, whatever the
    /// correction.
    fn freedom(&self, n: f64) -> f64 {
        match n == 0.0 {
            true => 0.0,
            false => (n - f64::from_bits(self.correction)).max(0.0),
        }
    }

    /// Of complex numbers: the variance of the real parts and that of the imaginary parts.
    fn by_parts(&self, x: &Tensor) -> Result<Tensors> {
        let of = |which| {
            let op = Variance {
                root: false,
                ..self.clone()
            };
            dispatch::compute(&op, &[&x.component(which)])
        };
        let (re, im) = (of(0)?, of(1)?);
        mode::with_grad(false, || {
            let var = re[0].add(&im[0])?;
            let var = match self.root {
                true => apply(Sqrt, [&var])?,
                false => var,
            };
            Ok(smallvec![var, Tensor::of_parts(&re[1], &im[1])?])
        })
    }
}

impl Derivative for Variance {
    fn name(&self) -> &'static str {
        match (self.root, self.with_mean) {
            (true, false) => "StdBackward0",
            (true, true) => "StdMeanBackward0",
            (false, false) => "VarBackward0",
            (false, true) => "VarMeanBackward0",
        }
    }
    /// The mean too, where nobody else may write to it.
    fn save(&self, _needs: Mask) -> Save {
        Save {
            inputs: 1,
            outputs: self.root as Mask | (!self.with_mean as Mask) << 1,
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let x = cx.input(0)?;
        let n = reduced_count(x.shape(), self.mask) as f64;
        let mut out = None;
        if let Some(g) = &g[0] {
            let beside = |t: &Tensor| beside(t, x.shape(), self.mask, self.keepdim);
            let mut g = beside(g)?;
            if self.root {
                let y = beside(&cx.output(0)?)?;
                let zero = Tensor::constant(0.0, y.dtype())?;
                let halved = g.div(&y.mul_scalar(2.0)?)?;
                g = where_(&apply(Eq, [&y, &zero])?, &zero, &halved)?;
            }
            let scale = 2.0 / (n - f64::from_bits(self.correction));
            // As a graph the mean is one of x.
            let mean = match self.with_mean || mode::traced() {
                true => x.mean_mask(self.mask, true, None)?,
                false => restored(&cx.output(1)?, x.shape(), self.mask, self.keepdim)?,
            };
            out = Some(match x.dtype().is_complex() {
                true => x.sub(&mean)?.mul(&g.mul_scalar(scale)?)?,
                false => apply(VarianceSlope { scale }, [&x, &mean, &g])?,
            });
        }
        if let Some(g) = g.get(1).and_then(Option::as_ref) {
            let spread = |g: &Tensor| spread(g, x.shape(), self.mask, self.keepdim);
            let d = match spreads(g, x.shape()) {
                true => spread(g)?.div_scalar(n)?,
                false => spread(&g.div_scalar(n)?)?,
            };
            out = Some(match out {
                Some(o) => o.add(&d)?,
                None => d,
            });
        }
        Ok(smallvec![out])
    }
}

impl Op for Variance {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Variance {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        let mean = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device(),
        };
        let mut var = mean.clone();
        if var.dtype.is_complex() {
            var.dtype = var.dtype.part();
        }
        Ok(smallvec![var, mean])
    }
    fn traits(&self) -> Traits {
        Traits {
            detached: (!self.with_mean as Mask) << 1,
            ..Traits::NONE
        }
    }
    /// Two passes: the mean, then the squares of the distances from it. Once more in f64 where
    /// squares or sums left the range of f32.
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let x = x[0];
        if x.dtype().is_complex() {
            let found = self.by_parts(x)?;
            return (y.iter().zip(&found)).try_for_each(|(y, from)| y.write_from(from));
        }
        let mut left = false;
        let n = reduced_count(x.shape(), self.mask) as f64;
        let free = self.freedom(n);
        with_float!(x.dtype(), "std_var", T => {
            filled::<T>(&y[1], |mean| {
                filled::<T>(&y[0], |var| {
                    let kinds = (Kind::Sum, Kind::SumSquaredFrom);
                    reduce_from::<T>(x, self.mask, kinds, |sum| T::of_f64(sum.to_f64() / n), mean, var);
                    for (v, m) in var.iter_mut().zip(mean) {
                        let (r, m) = (v.to_f64() / free, m.to_f64().abs());
                        left |= !r.is_finite()
                            || r != 0.0 && r < 1e-30
                            || r == 0.0 && m != 0.0 && m < 1e-18;
                        *v = T::of_f64(if self.root { r.sqrt() } else { r });
                    }
                });
            });
        });
        if left && x.dtype() != DType::F64 && free > 0.0 && n > 0.0 {
            let wide = |t: &Tensor| Tensor::empty(t.shape(), DType::F64, t.device());
            let exact = [wide(&y[0])?, wide(&y[1])?];
            self.cpu(&[&x.to_dtype(DType::F64)?], &exact)?;
            y.iter()
                .zip(&exact)
                .try_for_each(|(y, e)| y.write_from(e))?;
        }
        Ok(())
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = x[0];
        if x.numel() == 0 || x.dtype().is_complex() {
            return Ok(false);
        }
        let what = Centred::Variance {
            free: self.freedom(reduced_count(x.shape(), self.mask) as f64),
            root: self.root,
        };
        let wide = x.dtype().compute();
        let mean = match y[1].dtype() == wide {
            true => y[1].clone(),
            false => Tensor::empty(y[1].shape(), wide, x.device())?,
        };
        let (from, to, centre) = (whole(x)?, whole(&y[0])?, whole(&mean)?);
        let done = transfer::ran(centred(gpu, what, from, self.mask, to, centre))?;
        if done && y[1].dtype() != wide {
            y[1].write_from(&mean)?;
        }
        Ok(done)
    }
    /// Of what is more than a binding.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].numel() == 0 {
            return Ok(None);
        }
        if x[0].dtype().is_complex() {
            return self.by_parts(x[0]).map(Some);
        }
        let (t, x) = (x[0].dtype(), x[0].to_dtype(x[0].dtype().compute())?);
        let n = reduced_count(x.shape(), self.mask) as f64;
        let free = self.freedom(n);
        let mean = x.mean_mask(self.mask, true, None)?;
        let from = x.sub(&mean)?;
        let squares = from.reduce(
            Kind::SumSquares,
            self.mask,
            self.keepdim,
            x.dtype(),
            "VarBackward0",
        )?;
        let mut var = squares.div_scalar(free)?;
        if self.root {
            var = apply(Sqrt, [&var])?;
        }
        let mean = mean.reshape_to(var.shape())?;
        Ok(Some(smallvec![var.to_dtype(t)?, mean.to_dtype(t)?]))
    }
}

/// `var`, or with `root` `std`, and the mean.
fn variance(
    name: &str,
    root: bool,
    x: &Tensor,
    mask: DimSet,
    correction: f64,
    keepdim: bool,
) -> Result<Vec<Tensor>> {
    ensure!(
        x.dtype().is_float() || x.dtype().is_complex(),
        Runtime,
        "{} only support floating point and complex dtypes. Got {}",
        if name.ends_with("_mean") {
            name
        } else {
            "std and var"
        },
        x.dtype().scalar_name()
    );
    let n = reduced_count(x.shape(), mask) as f64;
    if n - correction <= 0.0 {
        host::warn(&format!(
            "{name}(): degrees of freedom is <= 0. Correction should be strictly less than the \
             reduction factor (input numel divided by output numel)."
        ));
    }
    let op = Variance {
        mask,
        keepdim,
        correction: correction.to_bits(),
        root,
        with_mean: name.ends_with("_mean"),
    };
    Ok(dispatch::call(op, &[x])?.into_vec())
}

impl Tensor {
    /// Variance and mean over the dimensions in `mask`.
    pub fn var_mean_mask(
        &self,
        mask: DimSet,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, Tensor)> {
        let mut both = variance("var_mean", false, self, mask, correction, keepdim)?;
        let mean = both.swap_remove(1);
        Ok((both.swap_remove(0), mean))
    }
}

/// Reads the three overloads: all, dims with `unbiased`, dims with `correction`.
fn spread_of<Sig: Signature>(root: bool, mean: bool, a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let mask = match arg!(dim?) {
        Some(i) => a.mask(i, x)?,
        None => all_dims(x),
    };
    let correction = match (arg!(unbiased?), arg!(correction?)) {
        (Some(i), _) => a.bool(i)? as u8 as f64,
        (_, Some(i)) => a.opt_scalar(i).map_or(1.0, Scalar::f64),
        _ => 1.0,
    };
    let keepdim = arg!(keepdim?).map_or(Ok(false), |i| a.bool(i))?;
    let mut both = variance(a.schema.name, root, x, mask, correction, keepdim)?;
    if mean {
        return Ok(Value::Tuple(both));
    }
    Ok(both.swap_remove(0).into())
}

fn var<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    spread_of(false, false, a)
}
fn std<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    spread_of(true, false, a)
}
fn var_mean<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    spread_of(false, true, a)
}
fn std_mean<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    spread_of(true, true, a)
}

/// The p-norm of the elements over the dimensions in `mask`; `p` is a float's bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VectorNorm {
    p: u64,
    mask: DimSet,
    keepdim: bool,
}

impl VectorNorm {
    fn of(x: &Tensor, p: f64, mask: DimSet, keepdim: bool) -> VectorNorm {
        // One element is its own norm, also where its power leaves the type's range.
        let p = match p != 0.0 && reduced_count(x.shape(), mask) == 1 {
            true => 1.0_f64,
            false => p,
        };
        VectorNorm {
            p: p.to_bits(),
            mask,
            keepdim,
        }
    }
}

fn power(x: &Tensor, e: f64) -> Result<Tensor> {
    apply(Pow, [x, &Tensor::number(Scalar::Float(e))?])
}

/// `x`, and 0 where `zero` is 0.
fn zero_where_zero(zero: &Tensor, x: &Tensor) -> Result<Tensor> {
    let nothing = Tensor::constant(0.0, x.dtype())?;
    where_(&apply(LogicalNot, [zero])?, &nothing, x)
}

impl Derivative for VectorNorm {
    fn name(&self) -> &'static str {
        "LinalgVectorNormBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0])
    }
    /// At zero the subgradient 0 is taken.
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let p = f64::from_bits(self.p);
        if p == 0.0 {
            return Ok(smallvec![None]);
        }
        let x = cx.input(0)?;
        let g = beside(g, x.shape(), self.mask, self.keepdim)?;
        let y = beside(&cx.output(0)?, x.shape(), self.mask, self.keepdim)?;
        let sign = sgn;
        let size = |x: &Tensor| apply(Abs, [x]);
        one(if p == 1.0 {
            sign(&x)?.mul(&g)?
        } else if p == 2.0 {
            x.mul(&zero_where_zero(&y, &g.div(&y)?)?)?
        } else if p.is_infinite() {
            // A NaN is no extreme, and nothing has a share in it.
            let hits = || apply(Eq, [&size(&x)?, &y]);
            let count = |m: &Tensor| m.sum_mask(self.mask, true, Some(g.dtype()));
            // A GPU's sum takes hits that nobody else has as they are made.
            let (n, m) = match x.device().is_gpu() {
                true => (count(&hits()?)?, hits()?),
                false => {
                    let m = hits()?;
                    (count(&m)?, m)
                }
            };
            let nothing = Tensor::constant(0.0, g.dtype())?;
            where_(&m, &sign(&x)?.mul(&g.div(&n)?)?, &nothing)?
        } else if p < 1.0 {
            let part = zero_where_zero(&x, &sign(&x)?.mul(&power(&size(&x)?, p - 1.0)?)?)?;
            part.mul(&g.mul(&power(&y, 1.0 - p)?)?)?
        } else {
            let part = match p < 2.0 {
                true => sign(&x)?.mul(&power(&size(&x)?, p - 1.0)?)?,
                false => x.mul(&power(&size(&x)?, p - 2.0)?)?,
            };
            part.mul(&zero_where_zero(&y, &g.div(&power(&y, p - 1.0)?)?)?)?
        })
    }
}

impl Op for VectorNorm {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(VectorNorm {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        Ok(smallvec![TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device()
        }])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, p) = (x[0], f64::from_bits(self.p));
        let kind = match p {
            1.0 => Kind::SumAbs,
            2.0 => Kind::SumSquares,
            f64::INFINITY => Kind::MaxAbs,
            f64::NEG_INFINITY => Kind::MinAbs,
            _ => Kind::Sum,
        };
        let raised;
        let x = match kind {
            Kind::Sum => {
                // Powers in the compute type, so that half types round once.
                raised = mode::with_grad(false, || {
                    let wide = x.to_dtype(x.dtype().compute())?;
                    match p {
                        0.0 => apply(LogicalNot, [&apply(LogicalNot, [&wide])?]),
                        _ => power(&apply(Abs, [&wide])?, p),
                    }
                })?;
                &raised
            }
            _ => x,
        };
        with_float!(y[0].dtype(), "linalg_vector_norm", T => filled::<T>(&y[0], |y| {
            reduce::<T>(x, self.mask, kind, None, y);
            for v in y {
                *v = match kind {
                    Kind::SumSquares => T::of_f64(v.to_f64().sqrt()),
                    Kind::Sum if p != 0.0 => T::of_f64(v.to_f64().powf(1.0 / p)),
                    _ => *v,
                };
            }
        }));
        Ok(())
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        if x[0].numel() == 0 {
            return Ok(None);
        }
        let (p, wide) = (f64::from_bits(self.p), x[0].dtype().compute());
        let over = |x: &Tensor, kind| x.reduce(kind, self.mask, self.keepdim, wide, self.name());
        let y = match p {
            1.0 => over(x[0], Kind::SumAbs)?,
            2.0 => apply(Sqrt, [&over(x[0], Kind::SumSquares)?])?,
            f64::INFINITY => over(x[0], Kind::MaxAbs)?,
            f64::NEG_INFINITY => over(x[0], Kind::MinAbs)?,
            0.0 => over(
                &apply(LogicalNot, [&apply(LogicalNot, [x[0]])?])?,
                Kind::Sum,
            )?,
            _ => {
                let raised = power(&apply(Abs, [&x[0].to_dtype(wide)?])?, p)?;
                power(&over(&raised, Kind::Sum)?, 1.0 / p)?
            }
        };
        Ok(Some(smallvec![y.to_dtype(x[0].dtype())?]))
    }
}

impl Tensor {
    /// `linalg.vector_norm` over the dimensions in `mask`.
    pub fn vector_norm(&self, p: f64, mask: DimSet, keepdim: bool) -> Result<Tensor> {
        if self.dtype().is_complex() {
            return apply(Abs, [self])?.vector_norm(p, mask, keepdim);
        }
        ensure!(
            self.dtype().is_float(),
            Runtime,
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            self.dtype().scalar_name()
        );
        ensure!(
            reduced_count(self.shape(), mask) > 0 || (p >= 0.0 && p.is_finite()),
            Runtime,
            "linalg.vector_norm cannot compute the {p} norm on an empty tensor because the \
             operation does not have an identity, got shape {}",
            Show(self.shape())
        );
        dispatch::call1(VectorNorm::of(self, p, mask, keepdim), &[self])
    }

    /// [`Tensor::vector_norm`] of real numbers, whose dimensions stay, into memory that is there.
    pub fn vector_norm_into(&self, p: f64, mask: DimSet, y: &Tensor) -> Result<()> {
        let op = VectorNorm::of(self, p, mask, true);
        dispatch::compute_into(&op, &[self], std::slice::from_ref(y))
    }
}

fn converted(x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
    ensure!(
        x.dtype().differentiable(),
        Runtime,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        x.dtype().scalar_name()
    );
    let Some(dtype) = dtype else {
        return Ok(x.clone());
    };
    ensure!(
        dtype.is_complex() == x.dtype().is_complex()
            && dtype.differentiable()
            && x.dtype().promote(dtype) == dtype,
        Runtime,
        "linalg.vector_norm: the dtype of the input ({}) should be convertible without narrowing \
         to the specified dtype ({})",
        x.dtype().scalar_name(),
        dtype.scalar_name()
    );
    x.to_dtype(dtype)
}

/// The covariance of the rows of `x`, whose columns are observations. Frequency weights are counts,
/// reliability weights are relative; their product weighs each observation.
fn covariance(
    name: &str,
    x: &Tensor,
    correction: i64,
    fweights: Option<&Tensor>,
    aweights: Option<&Tensor>,
) -> Result<Tensor> {
    ensure!(
        x.ndim() <= 2,
        Runtime,
        "{name}(): expected input to have two or fewer dimensions but got an input with {} \
         dimensions",
        x.ndim()
    );
    ensure!(
        x.dtype() != DType::Bool,
        Runtime,
        "{name}(): bool dtype is not supported for input"
    );
    let x = match x.ndim() {
        2 => x.clone(),
        _ => x.reshape(&[1, -1])?,
    };
    let n = x.size(1);
    let counts = observation_weights(fweights, "fweights", "integral", n)?;
    let relative = observation_weights(aweights, "aweights", "floating point", n)?;
    let x = x.to_dtype(x.dtype().to_float())?;
    let weights = match (&counts, &relative) {
        (Some(f), Some(r)) => Some(f.mul(r)?),
        (f, r) => f.clone().or(r.clone()),
    };
    let total = match &weights {
        Some(w) => w.sum_all()?,
        None => Tensor::number(Scalar::Int(n as i64))?,
    };
    let weighted = |x: &Tensor| match &weights {
        Some(w) => x.mul(w),
        None => Ok(x.clone()),
    };
    let mean = weighted(&x)?.sum_dim(1, true)?.div(&total)?;
    // What the sum of products is divided by; numpy.cov gives the rule for weights.
    let lost = match (&weights, &relative) {
        (Some(w), Some(r)) => w.mul(r)?.sum_all()?.div(&total)?.mul_scalar(correction)?,
        _ => Tensor::number(Scalar::Int(correction))?,
    };
    let divisor = total.sub(&lost)?;
    if divisor.has_data() && divisor.item()?.f64() <= 0.0 {
        host::warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
    }
    let divisor = apply(Maximum, [&divisor, &Tensor::number(Scalar::Int(0))?])?;
    let deviation = x.sub(&mean)?;
    let product = deviation.matmul(&weighted(&deviation)?.t()?.conj()?)?;
    product.div(&divisor)?.squeeze(None)
}

/// Covariances over the products of the standard deviations, kept to where rounding may leave.
fn correlation(x: &Tensor) -> Result<Tensor> {
    let c = covariance("corrcoef", x, 1, None, None)?;
    if c.ndim() == 0 {
        return c.div(&c);
    }
    let d = c.diagonal(0, 0, 1)?;
    let d = if d.dtype().is_complex() {
        d.real_part(0)?
    } else {
        d
    };
    let deviation = apply(Sqrt, [&d])?;
    let y = c
        .div(&deviation.unsqueeze(1)?)?
        .div(&deviation.unsqueeze(0)?)?;
    let (low, high) = (Some(Scalar::Int(-1)), Some(Scalar::Int(1)));
    let kept = |t: &Tensor| apply(Clamp { low, high }, [t]);
    match y.dtype().is_complex() {
        true => Tensor::of_parts(&kept(&y.real_part(0)?)?, &kept(&y.real_part(1)?)?),
        false => kept(&y),
    }
}

/// One weight for each of `n` observations.
fn observation_weights(
    w: Option<&Tensor>,
    name: &str,
    kind: &str,
    n: usize,
) -> Result<Option<Tensor>> {
    let Some(w) = w else { return Ok(None) };
    ensure!(
        w.ndim() <= 1,
        Runtime,
        "cov(): expected {name} to have one or fewer dimensions but got {name} with {} dimensions",
        w.ndim()
    );
    ensure!(
        if kind == "integral" {
            w.dtype().is_int()
        } else {
            w.dtype().is_float()
        },
        Runtime,
        "cov(): expected {name} to have {kind} dtype but got {name} with {} dtype",
        w.dtype().scalar_name()
    );
    ensure!(
        w.numel() == n,
        Runtime,
        "cov(): expected {name} to have the same numel as there are observations in the input but \
         got {} != {n}",
        w.numel()
    );
    if w.has_data() {
        let w = w.to_host()?.prepared(DType::F64)?;
        // SAFETY: prepared contiguous float64 in host memory, read only here.
        let negative = unsafe { w.slice::<f64>() }.iter().any(|&v| v < 0.0);
        ensure!(!negative, Runtime, "cov(): {name} cannot be negative");
    }
    Ok(Some(w.clone()))
}

crate::entries! {
    /// The covariance matrix of variables in rows and observations in columns, divided by
    /// N - correction. `fweights` repeats observations, `aweights` weighs them.
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    FN | METHOD,
    |a| {
        let y = covariance("cov", a.tensor(arg!(self))?, a.int(arg!(correction))?, a.opt_tensor(arg!(fweights)), a.opt_tensor(arg!(aweights)))?;
        Ok(y.into())
    };
    /// The correlation coefficients of variables in rows and observations in columns.
    "corrcoef(Tensor self) -> Tensor", FN | METHOD, |a| Ok(correlation(a.tensor(arg!(self))?)?.into());
    /// The variance of all elements; `unbiased` divides by N - 1.
    "var(Tensor self, bool unbiased=True) -> Tensor", FN | METHOD, var;
    /// The variance along `dim`; `unbiased` divides by N - 1.
    "var(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    FN | METHOD | CASTS, var;
    /// The variance along `dim`, divided by N - correction.
    "var(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    FN | METHOD | CASTS, var;
    /// The standard deviation of all elements; `unbiased` divides by N - 1.
    "std(Tensor self, bool unbiased=True) -> Tensor", FN | METHOD, std;
    /// The standard deviation along `dim`; `unbiased` divides by N - 1.
    "std(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    FN | METHOD | CASTS, std;
    /// The standard deviation along `dim`, divided by N - correction.
    "std(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    FN | METHOD | CASTS, std;
    /// Variance and mean of all elements.
    "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", FN, var_mean;
    /// Variance and mean along `dim`.
    "var_mean(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    FN, var_mean;
    /// Variance and mean along `dim`, the variance divided by N - correction.
    "var_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    FN, var_mean;
    /// Standard deviation and mean of all elements.
    "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", FN, std_mean;
    /// Standard deviation and mean along `dim`.
    "std_mean(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
    FN, std_mean;
    /// Standard deviation and mean along `dim`, the variance divided by N - correction.
    "std_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
    FN, std_mean;
    /// The p-norm of the elements along `dim`; 0 counts, infinities take the extremes.
    "vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    LINALG | OUT,
    |a| {
        let x = converted(a.tensor(arg!(self))?, a.dtype(arg!(dtype)))?;
        Ok(x.vector_norm(a.scalar(arg!(ord))?.f64(), a.mask(arg!(dim), &x)?, a.bool(arg!(keepdim))?)?.into())
    };
    /// The Frobenius norm along `dim`.
    "frobenius_norm(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", FN | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        let dims = a.ints(arg!(dim))?.len();
        ensure!(
            dims <= 2,
            Runtime,
            "frobenius_norm: Expected at most 2 dimensions, but got {dims} dimensions instead."
        );
        let x = &converted(x, None)?;
        Ok(x.vector_norm(2.0, a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?)?.into())
    };
    /// The p-norm of the difference of two tensors.
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", FN | METHOD,
    |a| {
        let d = a.tensor(arg!(self))?.sub(a.tensor(arg!(other))?)?;
        Ok(d.vector_norm(a.scalar(arg!(p))?.f64(), all_dims(&d), false)?.into())
    };
}

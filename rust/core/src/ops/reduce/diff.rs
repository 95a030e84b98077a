//! Differences of neighbours, slopes, and integrals by the trapezoidal rule.

use super::scan::Cumsum;
use crate::arg;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::unary::LogicalNot;
use crate::ops::shape::join::cat;
use crate::schema::{Args, Signature, Value};
use crate::shape;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Tensors one after the other along `dim`, of equal type.
fn joined(first: &Tensor, parts: &[&Tensor], dim: usize) -> Result<Tensor> {
    let mut dtype = first.dtype();
    for p in parts {
        dtype = dtype.promote(p.dtype());
        ensure!(
            p.ndim() == first.ndim(),
            Runtime,
            "diff expects prepend or append to be the same dimension as input"
        );
        let other = |&d: &usize| d != dim && p.size(d) != first.size(d);
        if let Some(d) = (0..p.ndim()).find(other) {
            bail!(
                Runtime,
                "diff expects the shape of tensor to prepend or append to match that of input except \
                 along the differencing dimension; input.size({d}) = {}, but got tensor.size({d}) = {}",
                first.size(d),
                p.size(d)
            );
        }
    }
    let parts: Vec<Tensor> = parts
        .iter()
        .map(|p| p.to_dtype(dtype))
        .collect::<Result<_>>()?;
    cat(&parts, dim as i64)
}

fn diff(
    x: &Tensor,
    n: i64,
    dim: i64,
    prepend: Option<&Tensor>,
    append: Option<&Tensor>,
) -> Result<Tensor> {
    ensure!(
        x.ndim() > 0,
        Runtime,
        "diff expects input to be at least one-dimensional"
    );
    ensure!(n >= 0, Runtime, "order must be non-negative but got {n}");
    let d = shape::dim(dim, x.ndim())?;
    let mut y = match (prepend, append) {
        (None, None) => x.clone(),
        _ => {
            let parts: SmallVec<[&Tensor; 3]> =
                [prepend, Some(x), append].into_iter().flatten().collect();
            ensure!(
                parts.iter().all(|p| p.ndim() == x.ndim()),
                Runtime,
                "diff expects prepend or append to be the same dimension as input"
            );
            joined(x, &parts, d)?
        }
    };
    if n == 0 {
        return x.copy_dense();
    }
    for _ in 0..n.min(y.size(d) as i64) {
        let size = y.size(d) as i64;
        let right = y.slice_dim(d as i64, Some(1), None, 1)?;
        let left = y.slice_dim(d as i64, Some(0), Some((size - 1).max(0)), 1)?;
        y = match y.dtype() {
            DType::Bool => apply(LogicalNot, [&apply(Eq, [&right, &left])?])?,
            _ => right.sub(&left)?,
        };
    }
    Ok(y)
}

/// How far apart the elements along one dimension are.
enum Steps {
    Even(Tensor),
    /// At these coordinates.
    At(Tensor),
}

/// `gradient`: slopes along each dimension, from neighbours on both sides, of second order inside.
fn gradient<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, order) = (a.tensor(arg!(self))?, a.int(arg!(edge_order))?);
    ensure!(
        order == 1 || order == 2,
        Runtime,
        "torch.gradient only supports edge_order=1 and edge_order=2. Got {order}"
    );
    ensure!(
        x.dtype() != DType::U8,
        Runtime,
        "torch.gradient does not support uint8 input."
    );
    let all: SmallVec<[i64; 5]>;
    let given = a.opt_ints(arg!(dim));
    let dims = match given {
        Some(dims) => dims,
        None => {
            all = (0..x.ndim() as i64).collect();
            &all
        }
    };
    let mut found: SmallVec<[usize; 5]> = SmallVec::new();
    for &d in dims {
        let d = shape::dim(d, x.ndim())?;
        ensure!(
            !found.contains(&d),
            Runtime,
            "dim {d} appears multiple times in the list of dims"
        );
        ensure!(
            x.size(d) > order as usize,
            Runtime,
            "torch.gradient expected each dimension size to be at least edge_order+1, got {} for \
             dimension {d}",
            x.size(d)
        );
        found.push(d);
    }
    let steps = spacings(a, given.is_some(), &found)?;
    let slopes = |(&d, steps): (&usize, &Steps)| match steps {
        Steps::Even(h) => slope_of_even(x, d, h, order),
        Steps::At(c) => slope_at(x, d, c, order),
    };
    let y = found
        .iter()
        .zip(&steps)
        .map(slopes)
        .collect::<Result<_>>()?;
    Ok(Value::Tensors(y))
}

/// What `spacing` says of each dimension.
fn spacings<Sig: Signature>(a: &Args<Sig>, chosen: bool, dims: &[usize]) -> Result<Vec<Steps>> {
    let fits = |n: usize| {
        ensure!(
            n == dims.len() || !chosen,
            Runtime,
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim \
             arguments to have the same length, but got a spacing argument of length {n} and a dim \
             argument of length {}.",
            dims.len()
        );
        ensure!(
            n == dims.len(),
            Runtime,
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal \
             to 'self.dim() = {}', since dim argument was not given, but got a list of length {n}",
            dims.len()
        );
        Ok(())
    };
    if let Some(steps) = a.opt_floats(arg!(spacing)) {
        fits(steps.len())?;
        let steps = steps
            .iter()
            .map(|&h| Tensor::number(h.into()).map(Steps::Even));
        return steps.collect();
    }
    let Ok(points) = a.tensors(arg!(spacing)) else {
        let h = match *a.value(arg!(spacing)) {
            Value::None => Tensor::number(1.into())?,
            _ => a.number(arg!(spacing))?,
        };
        return Ok(dims.iter().map(|_| Steps::Even(h.clone())).collect());
    };
    fits(points.len())?;
    let device = a.tensor(arg!(self))?.device();
    if let Some(c) = points.iter().find(|c| c.device() != device) {
        bail!(
            Runtime,
            "torch.gradient expected each tensor to be on the same device, but got devices {device} \
             and {}!",
            c.device()
        );
    }
    let one = |(c, &d): (&Tensor, &usize)| {
        ensure!(
            c.ndim() == 1,
            Runtime,
            "torch.gradient expected each element of spacing to have one dimension, but got an \
             element with {} dimensions!",
            c.ndim()
        );
        let n = a.tensor(arg!(self))?.size(d);
        ensure!(
            c.numel() == n,
            Runtime,
            "torch.gradient expected a coordinate for each of the {n} elements along dimension \
             {d}, got {}",
            c.numel()
        );
        Ok(Steps::At(c.clone()))
    };
    points.iter().zip(dims).map(one).collect()
}

/// Elements `from..n - to` along a dimension.
fn part(x: &Tensor, d: usize, from: usize, to: usize) -> Result<Tensor> {
    x.narrow(d as i64, from as i64, (x.size(d) - from - to) as i64)
}

fn slope_of_even(x: &Tensor, d: usize, h: &Tensor, order: i64) -> Result<Tensor> {
    let n = x.size(d);
    let at = |i: usize| part(x, d, i, n - i - 1);
    let inner = part(x, d, 2, 0)?.sub(&part(x, d, 0, 2)?)?;
    let inner = inner.div(h)?.mul_scalar(0.5)?;
    let (first, last) = if order == 1 {
        (at(1)?.sub(&at(0)?)?, at(n - 1)?.sub(&at(n - 2)?)?)
    } else {
        let side = |x: Tensor, y: Tensor, z: Tensor, sign: f64| {
            x.mul_scalar(-1.5 * sign)?
                .add(&y.mul_scalar(2.0 * sign)?)?
                .add(&z.mul_scalar(-0.5 * sign)?)
        };
        (
            side(at(0)?, at(1)?, at(2)?, 1.0)?,
            side(at(n - 1)?, at(n - 2)?, at(n - 3)?, -1.0)?,
        )
    };
    cat(&[first.div(h)?, inner, last.div(h)?], d as i64)
}

/// Slopes of the parabola through three neighbours.
fn slope_at(x: &Tensor, d: usize, c: &Tensor, order: i64) -> Result<Tensor> {
    let n = x.size(d);
    let mut to: SmallVec<[i64; 5]> = SmallVec::from_elem(1, x.ndim());
    to[d] = -1;
    let h = part(c, 0, 1, 0)?.sub(&part(c, 0, 0, 1)?)?.reshape(&to)?;
    let at = |i: usize| part(x, d, i, n - i - 1);
    let step = |i: usize| part(&h, d, i, n - i - 2);
    // Each term: an element times a quotient of steps.
    let term = |x: &Tensor, above: &Tensor, below: &Tensor| x.mul(&above.div(below)?);
    let inner = {
        let (g, h) = (part(&h, d, 0, 1)?, part(&h, d, 1, 0)?);
        let both = g.add(&h)?;
        let y = term(&part(x, d, 0, 2)?, &h.neg()?, &g.mul(&both)?)?;
        let y = y.add(&term(&part(x, d, 1, 1)?, &h.sub(&g)?, &g.mul(&h)?)?)?;
        y.add(&term(&part(x, d, 2, 0)?, &g, &h.mul(&both)?)?)?
    };
    // The end where `x` is outside, `z` inside; `g` is the outer step.
    let end = |x: Tensor, y: Tensor, z: Tensor, g: Tensor, h: Tensor| -> Result<Tensor> {
        let both = g.add(&h)?;
        let s = term(&x, &g.add(&both)?, &g.mul(&both)?)?.neg()?;
        let s = s.add(&term(&y, &both, &g.mul(&h)?)?)?;
        s.sub(&term(&z, &g, &h.mul(&both)?)?)
    };
    let (first, last) = if order == 1 {
        (
            at(1)?.sub(&at(0)?)?.div(&step(0)?)?,
            at(n - 1)?.sub(&at(n - 2)?)?.div(&step(n - 2)?)?,
        )
    } else {
        (
            end(at(0)?, at(1)?, at(2)?, step(0)?, step(1)?)?,
            end(
                at(n - 1)?,
                at(n - 2)?,
                at(n - 3)?,
                step(n - 2)?,
                step(n - 3)?,
            )?
            .neg()?,
        )
    };
    cat(&[first, inner, last], d as i64)
}

/// Distances between sample points, shaped to go with neighbours of `y` along `dim`.
fn spacing(y: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let d = dim as i64;
    let step = |x: &Tensor, d: i64| -> Result<Tensor> {
        let n = x.size(d as usize) as i64;
        let right = x.slice_dim(d, Some(1), None, 1)?;
        right.sub(&x.slice_dim(d, Some(0), Some((n - 1).max(0)), 1)?)
    };
    if x.ndim() == 1 {
        ensure!(
            x.size(0) == y.size(dim),
            Runtime,
            "trapezoid: There must be one `x` value for each sample point, got {} for {}",
            x.size(0),
            y.size(dim)
        );
        let mut to: SmallVec<[i64; 5]> = SmallVec::from_elem(1, y.ndim());
        to[dim] = -1;
        if x.size(0) == 1 {
            to[dim] = 0;
        }
        return step(x, 0)?.reshape(&to);
    }
    if x.ndim() < y.ndim() {
        let mut to: SmallVec<[usize; 5]> = SmallVec::from_elem(1, y.ndim() - x.ndim());
        to.extend_from_slice(x.shape());
        return step(&x.reshape_to(&to)?, d);
    }
    step(x, d)
}

/// Sums of neighbours along `dim`.
fn pairs(y: &Tensor, dim: usize) -> Result<Tensor> {
    let (d, n) = (dim as i64, y.size(dim) as i64);
    y.slice_dim(d, Some(0), Some((n - 1).max(0)), 1)?
        .add(&y.slice_dim(d, Some(1), None, 1)?)
}

fn trapezoid<Sig: Signature>(a: &Args<Sig>, cumulative: bool) -> Result<Value> {
    let y = a.tensor(arg!(y))?;
    let by_points = arg!(x?).is_some();
    let dim = shape::dim(a.int(arg!(dim))?, y.ndim())?;
    let name = a.schema.name;
    ensure!(
        y.ndim() > 0,
        Index,
        "{name}: expected at least one dimension, got a 0-d tensor"
    );
    if y.size(dim) == 0 && !cumulative {
        let mut kept = y.shape().clone();
        kept.remove(dim);
        return Ok(Tensor::zeros(&kept, y.dtype(), y.device())?.into());
    }
    let x = arg!(x?).map(|at| a.tensor(at)).transpose()?;
    ensure!(
        y.dtype() != DType::Bool && x.is_none_or(|x| x.dtype() != DType::Bool),
        Runtime,
        "{name}: received a bool input for {}, but bool is not supported",
        if by_points { "`x` or `y`" } else { "`y`" }
    );
    // What is added before it is summed wraps around in narrow integers, as PyTorch's does.
    let Some(x) = x else {
        let dx = arg!(dx?).map_or(Ok(1.into()), |at| a.scalar(at))?;
        if cumulative {
            let sum = running(&pairs(y, dim)?, dim)?;
            return Ok(sum.mul(&Tensor::number(dx)?.div_scalar(2.0)?)?.into());
        }
        let (d, n) = (dim as i64, y.size(dim) as i64);
        let ends = y.select(d, 0)?.add(&y.select(d, n - 1)?)?.mul_scalar(0.5)?;
        return Ok(y.sum_dim(d, false)?.sub(&ends)?.mul_scalar(dx)?.into());
    };
    let areas = pairs(y, dim)?.mul(&spacing(y, x, dim)?)?;
    let sum = if cumulative {
        running(&areas, dim)?
    } else {
        areas.sum_dim(dim as i64, false)?
    };
    Ok(sum.div_scalar(2.0)?.into())
}

/// Running sums along `dim`.
fn running(x: &Tensor, dim: usize) -> Result<Tensor> {
    let op = Cumsum {
        dim,
        reverse: false,
        dtype: x.dtype().to_sum(),
    };
    dispatch::call1(op, &[x])
}

crate::entries! {
    /// Differences of neighbours along `dim`, taken `n` times.
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    FN | METHOD | CASTS | SEPARATE,
    |a| {
        let y = diff(a.tensor(arg!(self))?, a.int(arg!(n))?, a.int(arg!(dim))?, a.opt_tensor(arg!(prepend)), a.opt_tensor(arg!(append)))?;
        Ok(y.into())
    };
    /// Slopes along each dimension, from neighbours.
    "gradient(Tensor self, *, Scalar? spacing=None, int[1]? dim=None, int edge_order=1) -> Tensor[]",
    FN | COMPLEX, gradient;
    /// Slopes along each dimension, from neighbours at the coordinates given.
    "gradient(Tensor self, *, Tensor[] spacing, int[1]? dim=None, int edge_order=1) -> Tensor[]",
    FN, gradient;
    /// Slopes along each dimension, from neighbours at even distances.
    "gradient(Tensor self, *, float[] spacing, int[1]? dim=None, int edge_order=1) -> Tensor[]",
    FN, gradient;
    /// The integral along `dim` by the trapezoidal rule with sample points `x`.
    "trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor", FN, |a| trapezoid(a, false);
    /// The integral along `dim` by the trapezoidal rule with spacing `dx`.
    "trapezoid(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", FN, |a| trapezoid(a, false);
    /// `trapezoid` under its older name.
    "trapz(Tensor y, Tensor x, *, int dim=-1) -> Tensor", FN, |a| trapezoid(a, false);
    /// `trapezoid` under its older name.
    "trapz(Tensor y, *, float dx=1, int dim=-1) -> Tensor", FN, |a| trapezoid(a, false);
    /// Running integrals along `dim` by the trapezoidal rule with sample points `x`.
    "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor", FN,
    |a| trapezoid(a, true);
    /// Running integrals along `dim` by the trapezoidal rule with spacing `dx`.
    "cumulative_trapezoid(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", FN,
    |a| trapezoid(a, true);
}

//! Largest and smallest elements, and where they are.

use super::{all_dims, reduced_count, reduced_shape, restored, Reduce};
use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::cpu::reduce::{extremes, filled, Kind};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::reduce::arg_reduce;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::index::along::picked_gradient;
use crate::ops::pointwise::compare::{Eq, Gt, LogicalAnd, LogicalOr, Lt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::{apply, c, pointwise, Real};
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, DimSet};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_compute};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// 1 where x is the extreme y, a NaN only with `nan`.
#[inline(always)]
fn hit<R: Real>(nan: bool, x: R, y: R) -> R {
    let same = x.equal(y);
    R::of(match nan {
        true => R::either(same, R::both(x.is_nan(), y.is_nan())),
        false => same,
    })
}

pointwise! {
    /// Whether x is the extreme y.
    op Hit { nan: bool }[2] = "EqBackward0", Bool;
    f |p, [x, y]| hit(p.nan, x, y);
    df |_, _, _, _g| c(0.0), c(0.0);

    /// The share of x, one of n elements that are the extreme y, in its gradient g.
    op Share { nan: bool }[4] = "DivBackward0", FloatOnly;
    f |p, [x, y, g, n]| hit(p.nan, x, y) * (g / n);
    df |p, [x, y, g, n], _, h|
        c(0.0),
        c(0.0),
        h * (hit(p.nan, x, y) / n),
        -h * (hit(p.nan, x, y) * g / (n * n));

    /// 1 where x is the least element, and `PACKED` where it is the largest: sums of up to so many tell both counts.
    op Hits[3] = "EqBackward0", FloatOnly;
    f |_, [x, low, high]| hit(false, x, low) + c::<R>(PACKED) * hit(false, x, high);
    df |_, _, _, _g| c(0.0), c(0.0), c(0.0);

    /// The share of x in the gradients of the least and the largest element, of which there are as many as n tells.
    op Shares[6] = "AminmaxBackward0", FloatOnly;
    f |_, [x, low, high, g, f, n]| {
        let [of_low, of_high] = counts(n);
        hit(false, x, low) * (g / of_low) + hit(false, x, high) * (f / of_high)
    };
    df |_, [x, low, high, _g, _f, n], _, h|
        c(0.0),
        c(0.0),
        c(0.0),
        h * (hit(false, x, low) / counts(n)[0]),
        h * (hit(false, x, high) / counts(n)[1]),
        c(0.0); // Counts do not change with the elements.
}

/// Two counts below this are one float32, exactly.
const PACKED: f64 = 4096.0;

/// The counts that a sum of [`Hits`] tells.
#[inline(always)]
fn counts<R: Real>(n: R) -> [R; 2] {
    let high = (n * c(1.0 / PACKED)).floor();
    [n - high * c(PACKED), high]
}

/// The gradient of a chosen value `y`: elements equal to it share `g`. With `nan`, NaN is equal to NaN.
pub fn shared_gradient(
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
    mask: DimSet,
    nan: bool,
) -> Result<Tensor> {
    let (x, y) = (x.detach(), y.detach());
    // Nobody has the hits once they are counted, so that a GPU's sum takes them as they are made.
    let n = apply(Hit { nan }, [&x, &y])?.sum_mask(mask, true, Some(g.dtype()))?;
    apply(Share { nan }, [&x, &y, g, &n])
}

/// The extreme element along a dimension and the index of the first such; NaN counts as extreme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extreme {
    largest: bool,
    dim: usize,
    keepdim: bool,
}

impl Extreme {
    fn mask(&self, x: &Meta) -> Result<DimSet> {
        DimSet::one(self.dim, x.ndim())
    }
}

impl Derivative for Extreme {
    fn name(&self) -> &'static str {
        if self.largest {
            "MaxBackward0"
        } else {
            "MinBackward0"
        }
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        picked_gradient(cx, g[0].as_ref(), self.dim, self.keepdim, &cx.output(1)?)
    }
}

impl Op for Extreme {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Extreme {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask(x[0])?, self.keepdim);
        let values = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device(),
        };
        let indices = TensorMeta {
            dtype: DType::I64,
            ..values.clone()
        };
        Ok(smallvec![values, indices])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let x = x[0];
        let mask = self.mask(x)?;
        let kind = if self.largest { Kind::Max } else { Kind::Min };
        // SAFETY: a fresh contiguous output of this type.
        let indices = unsafe { y[1].slice_mut::<i64>() };
        indices.fill(0);
        with_compute!(x.dtype(), T => filled::<T>(&y[0], |values| {
            extremes::<T>(x, mask, kind, values, indices);
        }));
        Ok(())
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    /// Of a line that no kernel binds the more extreme of what its halves have, of equal ones the first.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let x = x[0];
        if transfer::has_short_lines(x, self.dim) {
            return Ok(None);
        }
        let (n, d) = (x.size(self.dim) as i64, self.dim as i64);
        let run = |from, n| dispatch::call(self.clone(), &[&x.narrow(d, from, n)?]);
        let (front, mut rest) = (run(0, n / 2)?, run(n / 2, n - n / 2)?);
        rest[1] = rest[1].add_scalar(n / 2)?;
        let (a, b) = (&front[0], &rest[0]);
        let beyond = match self.largest {
            true => apply(Gt, [b, a])?,
            false => apply(Lt, [b, a])?,
        };
        // The first NaN is as extreme as can be.
        let nan = apply(LogicalAnd, [&apply(Ne, [b, b])?, &apply(Eq, [a, a])?])?;
        let later = apply(LogicalOr, [&beyond, &nan])?;
        let pick = |i: usize| where_(&later, &rest[i], &front[i]);
        Ok(Some(smallvec![pick(0)?, pick(1)?]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let dims = self.mask(x[0])?;
        let (values, indices) = (transfer::whole(&y[0])?, transfer::whole(&y[1])?);
        let x = transfer::whole(x[0])?;
        transfer::ran(arg_reduce(gpu, self.largest, x, dims, values, indices))
    }
}

fn extreme(name: &str, largest: bool, x: &Tensor, dim: i64, keepdim: bool) -> Result<Vec<Tensor>> {
    let dim = shape::dim(dim, x.ndim())?;
    ensure!(
        !x.dtype().is_complex(),
        Runtime,
        "{name}(): does not support complex input"
    );
    ensure!(
        x.size(dim) > 0,
        Index,
        "{name}(): Expected reduction dim {dim} to have non-zero size, got shape {}.",
        shape::Show(x.shape())
    );
    Ok(dispatch::call(
        Extreme {
            largest,
            dim,
            keepdim,
        },
        &[x],
    )?
    .into_vec())
}

/// `argmax` and `argmin`.
fn position<Sig: Signature>(name: &str, largest: bool, a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?.detach();
    let keepdim = a.bool(arg!(keepdim))?;
    ensure!(
        x.dtype() != DType::Bool && !x.dtype().is_complex(),
        Runtime,
        "{name}(): does not support {} input",
        if x.dtype() == DType::Bool {
            "bool"
        } else {
            "complex"
        }
    );
    let Some(dim) = a.opt_int(arg!(dim)) else {
        ensure!(
            x.numel() > 0,
            Index,
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify \
             the reduction dim with the 'dim' argument."
        );
        let flat = x.contiguous()?.reshape(&[-1])?;
        let at = extreme(name, largest, &flat, 0, false)?.swap_remove(1);
        let kept: SmallVec<[usize; 5]> = match keepdim {
            true => SmallVec::from_elem(1, x.ndim()),
            false => SmallVec::new(),
        };
        return Ok(at.reshape_to(&kept)?.into());
    };
    Ok(extreme(name, largest, &x, dim, keepdim)?
        .swap_remove(1)
        .into())
}

/// A reduction to an extreme without its index.
struct Extremum {
    name: &'static str,
    node: &'static str,
    largest: bool,
    nan_gradient: bool,
}

impl Extremum {
    fn of(&self, dtype: DType, mask: DimSet, keepdim: bool) -> Reduce {
        Reduce {
            kind: if self.largest { Kind::Max } else { Kind::Min },
            mask,
            keepdim,
            dtype,
            mean: false,
            nan_gradient: self.nan_gradient,
            name: self.node,
        }
    }
}

const MAX: Extremum = Extremum {
    name: "max",
    node: "MaxBackward1",
    largest: true,
    nan_gradient: true,
};
const MIN: Extremum = Extremum {
    name: "min",
    node: "MinBackward1",
    largest: false,
    ..MAX
};
const AMAX: Extremum = Extremum {
    name: "amax",
    node: "AmaxBackward0",
    largest: true,
    nan_gradient: false,
};
const AMIN: Extremum = Extremum {
    name: "amin",
    node: "AminBackward0",
    largest: false,
    ..AMAX
};
const AMINMAX: [Extremum; 2] = [
    Extremum {
        name: "aminmax",
        node: "AminmaxBackward0",
        ..AMIN
    },
    Extremum {
        name: "aminmax",
        node: "AminmaxBackward0",
        ..AMAX
    },
];

/// `amax`, `amin` and the forms of `max`, `min`, `aminmax` without indices; `named`: whether the
/// dimensions were.
fn value(what: &Extremum, x: &Tensor, mask: DimSet, named: bool, keepdim: bool) -> Result<Tensor> {
    let name = what.name;
    if x.numel() == 0 {
        ensure!(
            named || name != "aminmax",
            Runtime,
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no \
             identity."
        );
        ensure!(
            named,
            Runtime,
            "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify \
             the reduction dim with the 'dim' argument."
        );
        if let Some(d) = (0..x.ndim()).find(|&d| mask.has(d) && x.size(d) == 0) {
            bail!(
                Index,
                "{name}{}: Expected reduction dim {d} to have non-zero size.",
                if name == "aminmax" { "" } else { "()" }
            );
        }
    }
    dispatch::call1(what.of(x.dtype(), mask, keepdim), &[x])
}

/// The least and the largest elements along the dimensions in `mask`: on a GPU, where their gradient is two kernels
/// then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extremes {
    mask: DimSet,
    keepdim: bool,
}

impl Extremes {
    fn each(&self, x: &Meta) -> [Reduce; 2] {
        AMINMAX.map(|what| what.of(x.dtype(), self.mask, self.keepdim))
    }
}

impl Derivative for Extremes {
    fn name(&self) -> &'static str {
        "AminmaxBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0]).and_outputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let x = cx.input(0)?;
        let beside = |t: &Tensor| restored(t, x.shape(), self.mask, self.keepdim);
        let y = [beside(&cx.output(0)?)?, beside(&cx.output(1)?)?];
        let [low, high] = [&g[0], &g[1]].map(|g| g.as_ref().map(beside).transpose());
        let g = [low?, high?];
        let little = reduced_count(x.shape(), self.mask) < PACKED as usize;
        let exact = little && !x.dtype().is_half() && !mode::traced();
        if let ([Some(g), Some(f)], true) = (&g, exact) {
            let all = [&x, &y[0], &y[1]];
            let n = apply(Hits, all)?.sum_mask(self.mask, true, None)?;
            return one(apply(Shares, [&x, &y[0], &y[1], g, f, &n])?);
        }
        let mut d: Option<Tensor> = None;
        for (g, y) in g.iter().zip(&y) {
            let Some(g) = g else { continue };
            let part = shared_gradient(g, &x, y, self.mask, false)?;
            d = Some(match d {
                Some(d) => d.add(&part)?,
                None => part,
            });
        }
        Ok(smallvec![d])
    }
}

impl Op for Extremes {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Extremes {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        let meta = TensorMeta::new(&shape, x[0].dtype(), x[0].device());
        Ok(Metas::from_elem(meta, 2))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let [low, high] = self.each(x[0]);
        low.cpu(x, &y[..1])?;
        high.cpu(x, &y[1..])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let [low, high] = self.each(x[0]);
        Ok(low.gpu(gpu, x, &y[..1])? && high.gpu(gpu, x, &y[1..])?)
    }
}

fn aminmax<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, keepdim) = (a.tensor(arg!(self))?, a.bool(arg!(keepdim))?);
    let dim = a.opt_int(arg!(dim));
    let mask = shape::reduced(dim.as_ref().map(std::slice::from_ref), x.ndim())?;
    if x.device().is_gpu() && x.dtype().is_float() && x.numel() > 0 {
        let both = dispatch::call(Extremes { mask, keepdim }, &[x])?;
        return Ok(Value::Tuple(both.into_vec()));
    }
    let each = AMINMAX
        .iter()
        .map(|what| value(what, x, mask, dim.is_some(), keepdim));
    Ok(Value::Tuple(each.collect::<Result<_>>()?))
}

fn by_dims<Sig: Signature>(what: &Extremum, a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let named = a.opt_ints(arg!(dim)).is_some_and(|d| !d.is_empty());
    Ok(value(
        what,
        x,
        a.mask(arg!(dim), x)?,
        named,
        a.bool(arg!(keepdim))?,
    )?
    .into())
}

impl Tensor {
    /// Where the first largest element along a dimension is, which stays.
    pub fn place_of_max(&self, dim: usize) -> Result<Tensor> {
        Ok(extreme("argmax", true, self, dim as i64, true)?.swap_remove(1))
    }

    /// `amax` over the dimensions in `mask`.
    pub fn amax_mask(&self, mask: DimSet, keepdim: bool) -> Result<Tensor> {
        value(&AMAX, self, mask, true, keepdim)
    }

    /// `amin` over the dimensions in `mask`.
    pub fn amin_mask(&self, mask: DimSet, keepdim: bool) -> Result<Tensor> {
        value(&AMIN, self, mask, true, keepdim)
    }
}

crate::entries! {
    /// The largest element; NaN if any is. Equal ones share the gradient.
    "max(Tensor self) -> Tensor", FN | METHOD | CASTS,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(value(&MAX, x, all_dims(x), false, false)?.into())
    };
    /// The largest element along `dim` and the index of the first such.
    "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | SEPARATE,
    |a| Ok(Value::Tuple(extreme("max", true, a.tensor(arg!(self))?, a.int(arg!(dim))?, a.bool(arg!(keepdim))?)?));
    /// The smallest element; NaN if any is. Equal ones share the gradient.
    "min(Tensor self) -> Tensor", FN | METHOD | CASTS,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(value(&MIN, x, all_dims(x), false, false)?.into())
    };
    /// The smallest element along `dim` and the index of the first such.
    "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | SEPARATE,
    |a| Ok(Value::Tuple(extreme("min", false, a.tensor(arg!(self))?, a.int(arg!(dim))?, a.bool(arg!(keepdim))?)?));
    /// The largest elements over several dimensions.
    "amax(Tensor self, int[1]? dim=[], bool keepdim=False) -> Tensor", FN | METHOD | OUT,
    |a| by_dims(&AMAX, a);
    /// The smallest elements over several dimensions.
    "amin(Tensor self, int[1]? dim=[], bool keepdim=False) -> Tensor", FN | METHOD | OUT,
    |a| by_dims(&AMIN, a);
    /// Both the smallest and the largest element.
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    FN | METHOD | OUT | SEPARATE,
    aminmax;
    /// The index of the first largest element, of all or along `dim`.
    "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", FN | METHOD | OUT,
    |a| position("argmax", true, a);
    /// The index of the first smallest element, of all or along `dim`.
    "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", FN | METHOD | OUT,
    |a| position("argmin", false, a);
}

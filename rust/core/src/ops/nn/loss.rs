//! Losses of two tensors of one shape, and the reductions that all losses share.

use super::distance::{pairwise, rows};
use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::cpu::reduce::Kind;
use crate::dispatch;
use crate::dtype::{Bitwise, DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Batching, Derivative, Grads, Mapped, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::binary::Minimum;
use crate::ops::pointwise::compare::{Eq, Le};
use crate::ops::pointwise::pointwise;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Clamp, Exp, Log, Sqrt};
use crate::ops::pointwise::{apply, c, expr, fused_gradient, k, output_layout, Pointwise, Pw};
use crate::ops::reduce::spreads;
use crate::shape::{self, DimSet, Show};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// `none`, `mean` or `sum`, as PyTorch numbers them.
pub const NONE: i64 = 0;
pub const MEAN: i64 = 1;
pub const SUM: i64 = 2;

/// Applies a reduction to a loss per element.
pub fn reduced(x: &Tensor, reduction: i64) -> Result<Tensor> {
    let all = DimSet::all(x.ndim());
    match reduction {
        NONE => Ok(x.clone()),
        MEAN => x.mean_mask(all, false, None),
        SUM => x.sum_mask(all, false, None),
        other => crate::bail!(Value, "{other} is not a valid value for reduction"),
    }
}

/// max(x, low), with the whole gradient for x where they are equal.
pub fn at_least(x: &Tensor, low: f64) -> Result<Tensor> {
    let low = Some(Scalar::Float(low));
    apply(Clamp { low, high: None }, [x])
}

fn is_value(x: &Tensor, v: f64) -> Result<Tensor> {
    apply(Eq, [x, &Tensor::number(Scalar::Float(v))?])
}

pointwise! {
    /// (x - t)^2.
    op Mse[2] = "MseLossBackward0", FloatOnly;
    f |_, [x, t]| { let d = x - t; d * d };
    df |_, [x, t], _, g| g * (c::<R>(2.0) * (x - t)),
        g * (c::<R>(2.0) * (t - x));

    /// Quadratic below `beta`, then linear.
    op SmoothL1 { beta: f64 }[2] = "SmoothL1LossBackward0", FloatOnly;
    f |p, [x, t]| {
        let d = (x - t).abs();
        R::select(d.lt(k(p.beta)), c::<R>(0.5) * d * d / k(p.beta), d - k::<R>(0.5 * p.beta))
    };
    df |p, [x, t], _, g|
        g * {
            let d = x - t;
            R::select(d.abs().ge(k(p.beta)), d.sign(), d / k(p.beta))
        },
        -g * {
            let d = x - t;
            R::select(d.abs().ge(k(p.beta)), d.sign(), d / k(p.beta))
        };

    /// Quadratic below `delta`, then linear with slope `delta`.
    op Huber { delta: f64 }[2] = "HuberLossBackward0", FloatOnly;
    f |p, [x, t]| {
        let d = (x - t).abs();
        let far = k::<R>(p.delta) * (d - k::<R>(0.5 * p.delta));
        R::select(d.lt(k(p.delta)), c::<R>(0.5) * d * d, far)
    };
    df |p, [x, t], _, g|
        g * {
            let d = x - t;
            R::select(d.abs().ge(k(p.delta)), d.sign() * k(p.delta), d)
        },
        -g * {
            let d = x - t;
            R::select(d.abs().ge(k(p.delta)), d.sign() * k(p.delta), d)
        };

    /// -(t log x + (1 - t) log(1 - x)), logarithms taken as at least -100.
    op Bce[2] = "BinaryCrossEntropyBackward0", FloatOnly;
    f |_, [x, t]| {
        let (p, q) = (x.ln().max(c(-100.0)), (-x).log1p().max(c(-100.0)));
        (t - c(1.0)) * q - t * p
    };
    df |_, [x, t], _, g|
        g * ((x - t) / ((c::<R>(1.0) - x) * x).max(c(1e-12))),
        g * ((-x).log1p() - x.ln());

    /// Binary cross entropy of sigmoid(x), where the positive class weighs `w`.
    op BceLogits[3] = "BinaryCrossEntropyWithLogitsBackward0", Same;
    f |_, [x, t, w]| {
        let l = (-x.abs()).exp().log1p() + (-x).max(c(0.0));
        (c::<R>(1.0) - t) * x + (c::<R>(1.0) + (w - c(1.0)) * t) * l
    };
    df |_, [x, t, w], _, g|
        g * (c::<R>(1.0) - t
            - (c::<R>(1.0) + (w - c(1.0)) * t) * (-x).sigmoid()),
        g * ((w - c(1.0))
            * ((-x.abs()).exp().log1p() + (-x).max(c(0.0))) - x),
        g * (t * ((-x.abs()).exp().log1p() + (-x).max(c(0.0))));

    /// t (log t - x), 0 where t is 0.
    op Kl[2] = "KlDivBackward0", Same;
    f |_, [x, t]| R::select(t.equal(c(0.0)), -t * x, t * t.ln() - t * x);
    df |_, [x, t], _, g| -g * t,
        g * (t.ln() + c(1.0) - x);

    /// e^t (t - x).
    op KlLog[2] = "KlDivBackward0", Same;
    f |_, [x, t]| t.exp() * (t - x);
    df |_, [x, t], _, g| -g * t.exp(),
        g * (t.exp() * (t - x + c(1.0)));

    /// (log v + (x - t)^2 / v) / 2 + `more`.
    op GaussianNll { more: f64 }[3] = "GaussianNllLossBackward0", Float;
    f |p, [x, t, v]| {
        let d = x - t;
        c::<R>(0.5) * (v.ln() + d * d / v) + k(p.more)
    };
    df |_, [x, t, v], _, g|
        g * ((x - t) / v),
        g * ((t - x) / v),
        {
            let q = (x - t) / v;
            c::<R>(0.5) * g * (c::<R>(1.0) / v - q * q)
        };

    /// 1 - x where the target t is 1, max(0, x - margin) where it is -1.
    op CosineTerm { margin: f64 }[2] = "CosineEmbeddingLossBackward0", FloatOnly;
    f |p, [x, t]| {
        let far = (x - k(p.margin)).max(c(0.0));
        let other = R::select(t.equal(c(-1.0)), far, c(0.0));
        R::select(t.equal(c(1.0)), c::<R>(1.0) - x, other)
    };
    df |p, [x, t], _, g|
        {
            let far = R::both(t.equal(c(-1.0)), (x - k(p.margin)).ge(c(0.0)));
            R::select(t.equal(c(1.0)), -g, R::select(far, g, c(0.0)))
        },
        c(0.0);

    /// max(0, near - far + margin).
    op TripletTerm { margin: f64 }[2] = "TripletMarginLossBackward0", FloatOnly;
    f |p, [near, far]| (near - far + k(p.margin)).max(c(0.0));
    df |p, [near, far], _, g|
        R::select((near - far + k(p.margin)).ge(c(0.0)), g, c(0.0)),
        R::select((near - far + k(p.margin)).ge(c(0.0)), -g, c(0.0));

    /// 1 where x and t are from 0 to 1, else 0.
    op Chances[2] = "LogicalAndBackward0", FloatOnly;
    f |_, [x, t]| {
        let inside = |v: R| R::both(v.ge(c(0.0)), v.le(c(1.0)));
        R::of(R::both(inside(x), inside(t)))
    };
    df |_, _, _, _g| c(0.0), c(0.0);

    /// log(1 + exp(-t x)).
    op SoftMargin[2] = "SoftMarginLossBackward0", FloatOnly;
    f |_, [x, t]| (-(t * x)).exp().log1p();
    df |_, [x, t], _, g| -g * (t * (-(t * x)).sigmoid()),
        -g * (x * (-(t * x)).sigmoid());
}

/// A loss per element and its reduction in one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reduced<P, const N: usize> {
    op: P,
    reduction: i64,
}

impl<P: Pointwise<N>, const N: usize> Derivative for Reduced<P, N> {
    fn name(&self) -> &'static str {
        P::NODE
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs(std::array::from_fn::<_, N, _>(|i| i))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, N);
        let Some(g) = &g[0] else { return Ok(out) };
        let mut x: [Option<Tensor>; N] = [const { None }; N];
        let mut shape = crate::shape::Dims::new();
        for (i, slot) in x.iter_mut().enumerate() {
            let t = cx.input(i)?;
            shape = crate::shape::broadcast(&shape, t.shape())?;
            *slot = Some(t);
        }
        let n = shape.iter().product::<usize>() as f64;
        let g = match self.reduction {
            MEAN if spreads(g, &shape) => g.expand_to(&shape)?.div_scalar(n)?,
            MEAN => g.div_scalar(n)?,
            _ => g.clone(),
        };
        if mode::traced() {
            let g = g.expand_to(&shape)?;
            let grads = expr::gradients(&self.op, &x, None, &g, cx.needed())?;
            out.iter_mut().zip(grads).for_each(|(o, d)| *o = d);
            return Ok(out);
        }
        let y = Tensor::zeros(&[], g.dtype(), crate::device::Device::Cpu)?;
        let mut inputs: SmallVec<[&Tensor; 5]> = SmallVec::new();
        inputs.extend([&g, &y]);
        inputs.extend(x.iter().flatten());
        for i in 0..N {
            if cx.needs(i) {
                out[i] = Some(fused_gradient(&self.op, i, &inputs)?);
            }
        }
        Ok(out)
    }
}

impl<P: Pointwise<N>, const N: usize> Op for Reduced<P, N> {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut metas = Pw(self.op.clone()).infer(x)?;
        if self.reduction != NONE {
            metas[0].shape.clear();
        }
        Ok(metas)
    }

    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        match self.reduction {
            NONE => output_layout(x, &y.shape),
            _ => None,
        }
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let each = Pw(self.op.clone());
        if self.reduction == NONE {
            return each.cpu(x, y);
        }
        let meta: TensorMeta = each.infer(&dispatch::metas(x))?.swap_remove(0);
        let terms = Tensor::empty(&meta.shape, meta.dtype, meta.device)?;
        each.cpu(x, std::slice::from_ref(&terms))?;
        let wide = if meta.dtype == DType::F64 {
            DType::F64
        } else {
            DType::F32
        };
        let all = DimSet::all(terms.ndim());
        let total = terms.sum_mask(all, false, Some(wide))?.item()?.f64();
        let count = if self.reduction == MEAN {
            terms.numel() as f64
        } else {
            1.0
        };
        y[0].write_scalar(Scalar::Float(total / count))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        match self.reduction {
            NONE => Pw(self.op.clone()).gpu(gpu, x, y),
            _ => Ok(false),
        }
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let each = Pw(self.op.clone());
        if self.reduction == NONE {
            return Ok(None);
        }
        let meta: TensorMeta = each.infer(&dispatch::metas(x))?.swap_remove(0);
        // Halves are rounded once, after the sum.
        let wide = if meta.dtype.is_half() {
            DType::F32
        } else {
            meta.dtype
        };
        let terms = Tensor::empty(&meta.shape, wide, meta.device)?;
        if terms.numel() == 0 {
            return Ok(None);
        }
        dispatch::compute_into(&each, x, std::slice::from_ref(&terms))?;
        let mut y = terms.sum_all()?;
        if self.reduction == MEAN {
            y = y.div_scalar(terms.numel() as f64)?;
        }
        Ok(Some(Tensors::from_buf([y.to_dtype(meta.dtype)?])))
    }
}

impl<P: Pointwise<N>, const N: usize> Batching for Reduced<P, N> {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let ndim = (0..N).map(|i| x.ndim(i)).max().unwrap_or(0);
        let all = (0..N).map(|i| x.aligned(i, ndim));
        let all: SmallVec<[Tensor; 4]> = all.collect::<Result<_>>()?;
        let all: SmallVec<[&Tensor; 4]> = all.iter().collect();
        let each = dispatch::call1(Pw(self.op.clone()), &all)?;
        let over = DimSet::of(each.ndim(), |d| d > 0)?;
        Ok(Some(Tensors::from_buf([match self.reduction {
            NONE => each,
            MEAN => each.mean_mask(over, false, None)?,
            _ => each.sum_mask(over, false, Some(each.dtype()))?,
        }])))
    }
}

/// Computes a loss of one formula and reduces it.
fn formula<P: Pointwise<N>, const N: usize>(
    op: P,
    x: [&Tensor; N],
    reduction: i64,
) -> Result<Tensor> {
    ensure!(
        (NONE..=SUM).contains(&reduction),
        Value,
        "{reduction} is not a valid value for reduction"
    );
    dispatch::call1(Reduced { op, reduction }, &x)
}

/// As [`formula`] with a result of the input's type, whatever that of the target.
fn formula_like<P: Pointwise<2>>(op: P, x: &Tensor, t: &Tensor, reduction: i64) -> Result<Tensor> {
    ensure!(
        x.dtype().is_float() || !t.dtype().is_float(),
        Runtime,
        "result type {} can't be cast to the desired output type {}",
        t.dtype().scalar_name(),
        x.dtype().scalar_name()
    );
    formula(op, [x, t], reduction)?.to_dtype(x.dtype())
}

/// Whether all elements of both are between 0 and 1, in one question to a GPU.
fn are_chances(x: &Tensor, t: &Tensor) -> Result<bool> {
    let both = apply(Chances, [&x.detach(), &t.detach()])?;
    let dims = DimSet::all(both.ndim());
    let all = both.reduce(Kind::Min, dims, false, both.dtype(), "AllBackward0")?;
    // So that a GPU's reduction takes them as they are made.
    drop(both);
    Ok(all.item()?.truth())
}

fn unit_intervals(x: &Tensor, t: &Tensor) -> Result<()> {
    let readable = x.is_readable() && t.is_readable();
    if readable && x.device().is_gpu() && x.device() == t.device() && are_chances(x, t)? {
        return Ok(());
    }
    unit_interval(x, "input")?;
    unit_interval(t, "target")
}

fn unit_interval(t: &Tensor, which: &str) -> Result<()> {
    if !t.is_readable() || t.numel() == 0 {
        return Ok(());
    }
    let (t, all) = (t.detach(), DimSet::all(t.ndim()));
    for end in [t.amin_mask(all, false)?, t.amax_mask(all, false)?] {
        let v = end.item()?.f64();
        ensure!(
            (0.0..=1.0).contains(&v),
            Runtime,
            "binary_cross_entropy: all elements of {which} should be between 0 and 1, got {v}"
        );
    }
    Ok(())
}

fn weighted(loss: Tensor, weight: Option<&Tensor>, reduction: i64) -> Result<Tensor> {
    match weight {
        Some(w) => reduced(&loss.mul(w)?, reduction),
        None => reduced(&loss, reduction),
    }
}

fn binary_cross_entropy(
    x: &Tensor,
    t: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    ensure!(
        x.shape() == t.shape(),
        Runtime,
        "binary_cross_entropy: input and target must have one shape, got {} and {}",
        Show(x.shape()),
        Show(t.shape())
    );
    ensure!(
        x.dtype() == t.dtype(),
        Runtime,
        "Found dtype {} but expected {} (binary_cross_entropy takes input and target of one type)",
        t.dtype().scalar_name(),
        x.dtype().scalar_name()
    );
    unit_intervals(x, t)?;
    match weight {
        None => formula(Bce, [x, t], reduction),
        Some(_) => weighted(formula(Bce, [x, t], NONE)?, weight, reduction),
    }
}

fn bce_with_logits(
    x: &Tensor,
    t: &Tensor,
    weight: Option<&Tensor>,
    positive: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let one = Tensor::constant(1.0, x.dtype())?;
    let w = positive.unwrap_or(&one);
    match weight {
        None => formula(BceLogits, [x, t, w], reduction),
        Some(_) => weighted(formula(BceLogits, [x, t, w], NONE)?, weight, reduction),
    }
}

fn poisson(
    x: &Tensor,
    t: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: i64,
) -> Result<Tensor> {
    let mut loss = if log_input {
        apply(Exp, [x])?.sub(&t.mul(x)?)?
    } else {
        x.sub(&t.mul(&apply(Log, [&x.add_scalar(eps)?])?)?)?
    };
    if full {
        // Stirling's formula for log t!, where t > 1.
        let log = apply(Log, [t])?;
        let half = apply(Log, [&t.mul_scalar(std::f64::consts::TAU)?])?.mul_scalar(0.5)?;
        let term = t.mul(&log)?.sub(t)?.add(&half)?;
        let small = apply(Le, [t, &Tensor::number(1.0.into())?])?;
        let zero = Tensor::constant(0.0, term.dtype())?;
        loss = loss.add(&where_(&small, &zero, &term)?)?;
    }
    reduced(&loss, reduction)
}

fn hinge_embedding(x: &Tensor, t: &Tensor, margin: f64, reduction: i64) -> Result<Tensor> {
    let zero = Tensor::constant(0.0, x.dtype())?;
    // Integers stay integers.
    let margin = match x.dtype().is_float() {
        true => Scalar::Float(margin),
        false => Scalar::Int(margin as i64),
    };
    let apart = at_least(&x.neg()?.add_scalar(margin)?, 0.0)?;
    let first = where_(&is_value(t, 1.0)?, &zero, &apart)?;
    let second = where_(&is_value(t, -1.0)?, &zero, x)?;
    reduced(&first.add(&second)?, reduction)
}

fn margin_ranking(
    x: &Tensor,
    z: &Tensor,
    t: &Tensor,
    margin: f64,
    reduction: i64,
) -> Result<Tensor> {
    let loss = t.neg()?.mul(&x.sub(z)?)?.add_scalar(margin)?;
    reduced(&at_least(&loss, 0.0)?, reduction)
}

fn cosine_embedding(
    x: &Tensor,
    z: &Tensor,
    t: &Tensor,
    margin: f64,
    reduction: i64,
) -> Result<Tensor> {
    ensure!(
        t.ndim() <= 1,
        Runtime,
        "cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported, got \
         {}D",
        t.ndim()
    );
    ensure!(
        (t.ndim() == 1 && x.ndim() == 2 && z.ndim() == 2)
            || (t.ndim() == 0 && x.ndim() == 1 && z.ndim() == 1),
        Runtime,
        "cosine_embedding_loss: {}D target tensor expects {}D input tensors, but found inputs \
         with sizes {} and {}.",
        t.ndim(),
        t.ndim() + 1,
        Show(x.shape()),
        Show(z.shape())
    );
    const EPS: f64 = 1e-12;
    let d = x.ndim() as i64 - 1;
    let sum = |a: &Tensor, b: &Tensor| -> Result<Tensor> {
        let p = a.mul(b)?;
        let mask = crate::shape::reduced(Some(&[d]), p.ndim())?;
        p.sum_mask(mask, false, None)
    };
    let cos = match rows::fit(&[x, z]) {
        true => rows::Cosine {
            least: Bitwise(0.0),
            added: Bitwise(EPS),
        }
        .of(x, z)?,
        false => {
            let (xx, zz) = (sum(x, x)?.add_scalar(EPS)?, sum(z, z)?.add_scalar(EPS)?);
            sum(x, z)?.div(&apply(Sqrt, [&xx.mul(&zz)?])?)?
        }
    };
    formula_like(CosineTerm { margin }, &cos, t, reduction)
}

fn triplet(
    x: [&Tensor; 3],
    margin: f64,
    (p, eps): (f64, f64),
    swap: bool,
    reduction: i64,
) -> Result<Tensor> {
    let [a, pos, neg] = x;
    ensure!(
        a.ndim() == pos.ndim() && a.ndim() == neg.ndim(),
        Runtime,
        "The anchor, positive, and negative tensors are expected to have the same number of \
         dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs",
        a.ndim(),
        pos.ndim(),
        neg.ndim()
    );
    let one_kernel = match p == 2.0 {
        true => rows::distances(x, eps, swap)?,
        false => None,
    };
    let found = match one_kernel {
        Some(found) => found,
        None => {
            let distance = |x: &Tensor, y: &Tensor| pairwise(x, y, p, eps, false);
            let pairs = [(a, pos), (a, neg), (pos, neg)];
            let pairs = pairs.iter().take(2 + swap as usize);
            pairs.map(|&(x, y)| distance(x, y)).collect::<Result<_>>()?
        }
    };
    let (near, mut far) = (&found[0], found[1].clone());
    if swap {
        far = apply(Minimum, [&far, &found[2]])?;
    }
    formula(TripletTerm { margin }, [near, &far], reduction)
}

crate::entries! {
    /// (input - target)^2, reduced.
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", NN | OUT,
    |a| Ok(formula(Mse, [a.tensor(arg!(self))?, a.tensor(arg!(target))?], a.int(arg!(reduction))?)?.into());
    /// |input - target|, reduced.
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", NN,
    |a| {
        let d = a.tensor(arg!(self))?.sub(a.tensor(arg!(target))?)?;
        Ok(reduced(&apply(Abs, [&d])?, a.int(arg!(reduction))?)?.into())
    };
    /// Quadratic below `beta`, then linear.
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    NN | OUT,
    |a| {
        let beta = a.float(arg!(beta))?;
        ensure!(
            beta >= 0.0,
            Runtime,
            "smooth_l1_loss does not support negative values for beta, got {beta}"
        );
        let (x, t) = (a.tensor(arg!(self))?, a.tensor(arg!(target))?);
        if beta == 0.0 {
            return Ok(reduced(&apply(Abs, [&x.sub(t)?])?, a.int(arg!(reduction))?)?.into());
        }
        Ok(formula(SmoothL1 { beta }, [x, t], a.int(arg!(reduction))?)?.into())
    };
    /// Quadratic below `delta`, then linear with slope `delta`.
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    NN | OUT,
    |a| {
        let delta = a.float(arg!(delta))?;
        ensure!(
            delta > 0.0,
            Runtime,
            "huber_loss does not support non-positive values for delta. Got {delta}"
        );
        Ok(formula_like(Huber { delta }, a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.int(arg!(reduction))?)?.into())
    };
    /// -(t log x + (1 - t) log(1 - x)) for probabilities x, logarithms taken as at least -100.
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    NN | OUT,
    |a| {
        let w = a.opt_tensor(arg!(weight));
        Ok(binary_cross_entropy(a.tensor(arg!(self))?, a.tensor(arg!(target))?, w, a.int(arg!(reduction))?)?.into())
    };
    /// Binary cross entropy of sigmoid(self), computed without overflow.
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=0) -> Tensor",
    FN,
    |a| {
        let (w, p) = (a.opt_tensor(arg!(weight)), a.opt_tensor(arg!(pos_weight)));
        Ok(bce_with_logits(a.tensor(arg!(self))?, a.tensor(arg!(target))?, w, p, a.int(arg!(reduction))?)?.into())
    };
    /// target (log target - self) for log-probabilities.
    "kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor", FN,
    |a| {
        let x = [a.tensor(arg!(self))?, a.tensor(arg!(target))?];
        ensure!(
            x[0].dtype().is_float() && x[1].dtype().is_float(),
            Runtime,
            "kl_div: Integral inputs not supported. Got {} and {}",
            x[0].dtype().scalar_name(),
            x[1].dtype().scalar_name()
        );
        Ok(match a.bool(arg!(log_target))? {
            true => formula(KlLog, x, a.int(arg!(reduction))?)?,
            false => formula(Kl, x, a.int(arg!(reduction))?)?,
        }
        .into())
    };
    /// (log(var) + (input - target)^2 / var) / 2, with `full` and log(2 pi) / 2, reduced.
    "_gaussian_nll(Tensor input, Tensor target, Tensor var, bool full, int reduction) -> Tensor", FN,
    |a| {
        let more = match a.bool(arg!(full))? {
            true => 0.5 * std::f64::consts::TAU.ln(),
            false => 0.0,
        };
        let x = [a.tensor(arg!(input))?, a.tensor(arg!(target))?, a.tensor(arg!(var))?];
        Ok(formula(GaussianNll { more }, x, a.int(arg!(reduction))?)?.into())
    };
    /// Binary cross entropy of sigmoid(self), reduced.
    "_multilabel_soft_margin(Tensor self, Tensor target, int reduction) -> Tensor", FN,
    |a| {
        let x = a.tensor(arg!(self))?;
        let one = Tensor::constant(1.0, x.dtype())?;
        Ok(formula(BceLogits, [x, a.tensor(arg!(target))?, &one], a.int(arg!(reduction))?)?.into())
    };
    /// exp(x) - t x, or x - t log(x + eps), reduced.
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    FN,
    |a| {
        let (x, t) = (a.tensor(arg!(input))?, a.tensor(arg!(target))?);
        Ok(poisson(x, t, a.bool(arg!(log_input))?, a.bool(arg!(full))?, a.float(arg!(eps))?, a.int(arg!(reduction))?)?.into())
    };
    /// log(1 + exp(-target * self)), reduced.
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", NN | OUT,
    |a| {
        let (x, t) = (a.tensor(arg!(self))?, a.tensor(arg!(target))?);
        let both = shape::broadcast(x.shape(), t.shape())?;
        ensure!(
            &both == x.shape(),
            Runtime,
            "soft_margin_loss: output with shape {} doesn't match the broadcast shape {}",
            Show(x.shape()),
            Show(&both)
        );
        Ok(formula_like(SoftMargin, x, t, a.int(arg!(reduction))?)?.into())
    };
    /// x where the target is 1, max(0, margin - x) where it is -1.
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor",
    FN,
    |a| Ok(hinge_embedding(a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.float(arg!(margin))?, a.int(arg!(reduction))?)?.into());
    /// max(0, -target (input1 - input2) + margin).
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    FN,
    |a| {
        let (x, z, t) = (a.tensor(arg!(input1))?, a.tensor(arg!(input2))?, a.tensor(arg!(target))?);
        Ok(margin_ranking(x, z, t, a.float(arg!(margin))?, a.int(arg!(reduction))?)?.into())
    };
    /// 1 - cos where the target is 1, max(0, cos - margin) where it is -1.
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    FN,
    |a| {
        let (x, z, t) = (a.tensor(arg!(input1))?, a.tensor(arg!(input2))?, a.tensor(arg!(target))?);
        Ok(cosine_embedding(x, z, t, a.float(arg!(margin))?, a.int(arg!(reduction))?)?.into())
    };
    /// max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm distance.
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, int reduction=0) -> Tensor",
    FN,
    |a| {
        let x = [a.tensor(arg!(anchor))?, a.tensor(arg!(positive))?, a.tensor(arg!(negative))?];
        let norm = (a.float(arg!(p))?, a.float(arg!(eps))?);
        Ok(triplet(x, a.float(arg!(margin))?, norm, a.bool(arg!(swap))?, a.int(arg!(reduction))?)?.into())
    };
}

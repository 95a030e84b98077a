//! Losses of class scores: negative log-likelihood, cross entropy, and the margin losses.

use super::loss::{MEAN, NONE};
use crate::alloc;
use crate::arg;
use crate::cpu::elements::Compute;
use crate::cpu::indices::Indices;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::op::{all_are, Tensors};
use crate::ops::pointwise::Float;
use crate::shape::{DimSet, Dims, Show, Span};
use crate::tensor::Tensor;
use crate::{ensure, transfer};
use entropy::cross_entropy;
use likelihood::Nll;
use margin::{multi_margin, multilabel_margin};
use smallvec::SmallVec;

/// Runs the body with `$T` bound to `f64` for float64 and to `f32` for the others.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        crate::typed!($dtype, $T => $body, [F64 => f64], _ => {
            type $T = f32;
            $body
        })
    };
}

mod entropy;
mod gpu;
mod likelihood;
mod many;
mod margin;
mod margin_gpu;

/// Scores of `n` samples for `c` classes at `d` places: the class is the second dimension, or
/// the only one.
#[derive(Clone, Copy)]
struct Extent {
    n: usize,
    c: usize,
    d: usize,
}

impl Extent {
    fn of(shape: &[usize]) -> Extent {
        match shape {
            [c] => Extent { n: 1, c: *c, d: 1 },
            [n, c, rest @ ..] => Extent {
                n: *n,
                c: *c,
                d: rest.iter().product(),
            },
            [] => Extent { n: 1, c: 1, d: 1 },
        }
    }
    /// The dimension of classes, as GPU kernels take it.
    fn span(&self) -> Span {
        Span {
            outer: self.n,
            length: self.c,
            inner: self.d,
        }
    }
    /// Where in the scores class `t` of place `i` lies.
    fn at(&self, i: usize, t: usize) -> usize {
        (i / self.d * self.c + t) * self.d + i % self.d
    }
}

/// The shape without the dimension of classes.
fn places(shape: &[usize]) -> Dims {
    let axis = (shape.len() > 1) as usize;
    shape
        .iter()
        .enumerate()
        .filter(|&(i, _)| i != axis)
        .map(|(_, &d)| d)
        .collect()
}

fn check_target(t: i64, classes: usize) -> Result<usize> {
    match usize::try_from(t) {
        Ok(i) if i < classes => Ok(i),
        _ => Err(Error::index(format!("Target {t} is out of bounds."))),
    }
}

/// Class weights in the kernels' type; ones where there are none.
fn class_weights<T: Compute>(w: Option<&&Tensor>, classes: usize) -> Result<Vec<T>> {
    match w {
        None => Ok(alloc::full(T::of_f64(1.0), classes)),
        Some(w) => {
            let w = w.prepared(T::DTYPE)?;
            // SAFETY: contiguous host memory of this type.
            Ok(alloc::gathered(unsafe { w.slice::<T>() }.iter().copied()))
        }
    }
}

/// The class of each place, `None` where it is ignored.
fn classes(target: &Tensor, c: usize, ignore: i64) -> Result<Vec<Option<usize>>> {
    let target = target.prepared(DType::I64)?;
    Indices::of(&target)
        .iter()
        .map(|t| {
            if t == ignore {
                Ok(None)
            } else {
                check_target(t, c).map(Some)
            }
        })
        .collect()
}

/// Whether targets are classes, or ignored, as far as the host knows.
fn are_classes(target: &Tensor, c: usize, ignore: i64) -> bool {
    all_are(target, |t| t == ignore || check_target(t, c).is_ok())
}

fn write_scalar(y: &Tensor, v: f64) -> Result<()> {
    y.write_scalar(Scalar::Float(v))
}

/// The dimensions of positions in scores of `n` dimensions, and in their targets.
fn positions(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n.max(1) - 1).map(|d| (d + (d > 0) as usize, d))
}

/// Whether GPU kernels take these scores and targets.
fn launchable(scores: &Tensor, target: &Tensor) -> bool {
    transfer::small_floats(&[scores]) && matches!(target.dtype(), DType::I64 | DType::I32)
}

/// Writes a loss and the sum of its weights.
fn finish<T: Compute>(
    reduction: i64,
    each: Vec<T>,
    loss: f64,
    total: f64,
    y: &[Tensor],
) -> Result<()> {
    match reduction {
        NONE => y[0].write_from(&Tensor::from_slice(&each, y[0].shape(), T::DTYPE)?)?,
        MEAN => write_scalar(&y[0], loss / total)?,
        _ => write_scalar(&y[0], loss)?,
    }
    write_scalar(&y[1], total)
}

fn sum_classes(x: &Tensor, keepdim: bool) -> Result<Tensor> {
    let axis = (x.ndim() > 1) as usize;
    x.sum_mask(DimSet::one(axis, x.ndim())?, keepdim, None)
}

fn check_weight(weight: Option<&Tensor>, x: &Tensor) -> Result<()> {
    let classes = Extent::of(x.shape()).c;
    if let Some(w) = weight {
        ensure!(
            w.ndim() == 1 && w.numel() == classes,
            Runtime,
            "weight tensor should be defined either for all {classes} classes or no classes but \
             got weight tensor of shape: {}",
            Show(w.shape())
        );
        ensure!(
            w.dtype() == x.dtype(),
            Runtime,
            "expected scalar type {} but found {}",
            x.dtype().scalar_name(),
            w.dtype().scalar_name()
        );
    }
    Ok(())
}

/// Checks scores and class indices of the negative log-likelihood.
fn check_classes(name: &str, x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    crate::ops::constant(name, "weight", weight)?;
    ensure!(
        x.ndim() >= 1,
        Value,
        "Expected 1 or more dimensions (got {}) for the input of {name}",
        x.ndim()
    );
    ensure!(
        x.ndim() == 1 || target.ndim() == 0 || x.size(0) == target.size(0),
        Value,
        "Expected input batch_size ({}) to match target batch_size ({}).",
        x.size(0),
        target.size(0)
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"{name}_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        matches!(target.dtype(), DType::I64 | DType::U8),
        Runtime,
        "expected target dtype to be Long or Byte, but got {} ({name} takes class indices as targets, \
         expected scalar type Long)",
        target.dtype().scalar_name()
    );
    let want = places(x.shape());
    if x.ndim() <= 2 {
        ensure!(
            target.ndim() <= 1,
            Runtime,
            "{name}: 0D or 1D target tensor expected, multi-target not supported, got {}D",
            target.ndim()
        );
        let single = x.ndim() == 1 && target.numel() == 1;
        ensure!(
            x.ndim() != 1 || target.ndim() != 1 || single,
            Value,
            "{name}: For 1D input, 1D target must have size 1, but got target size: {}",
            target.numel()
        );
        ensure!(
            single || target.shape() == &want,
            Runtime,
            "size mismatch (got input: {}, target: {})",
            Show(x.shape()),
            Show(target.shape())
        );
    } else {
        ensure!(
            x.ndim() != 4 || target.ndim() == 3,
            Runtime,
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: \
             {}",
            target.ndim()
        );
        ensure!(
            target.shape() == &want,
            Runtime,
            "Expected target size {}, got {}; size mismatch (got input: {}, target: {})",
            Show(&want),
            Show(target.shape()),
            Show(x.shape()),
            Show(target.shape())
        );
    }
    check_weight(weight, x)
}

fn check_reduction(reduction: i64) -> Result<()> {
    ensure!(
        (0..=2).contains(&reduction),
        Value,
        "{reduction} is not a valid value for reduction"
    );
    Ok(())
}

fn operands<'a>(x: &'a Tensor, t: &'a Tensor, w: Option<&'a Tensor>) -> SmallVec<[&'a Tensor; 3]> {
    let mut out: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[x, t]);
    out.extend(w);
    out
}

/// `nll_loss` with any number of dimensions.
pub fn nll_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
) -> Result<Tensor> {
    check_reduction(reduction)?;
    check_classes("nll_loss", x, target, weight)?;
    let y = dispatch::call(Nll { reduction, ignore }, &operands(x, target, weight))?;
    Ok(first(y))
}

/// Refuses another number of targets than of samples. PyTorch has another class for it where the
/// number of dimensions is open.
fn check_batch(name: &str, x: &Tensor, target: &Tensor) -> Result<()> {
    ensure!(
        x.ndim() == 1 || target.ndim() == 0 || x.size(0) == target.size(0),
        Runtime,
        "{name}: size mismatch (got input: {}, target: {})",
        Show(x.shape()),
        Show(target.shape())
    );
    Ok(())
}

fn first(mut y: Tensors) -> Tensor {
    y.swap_remove(0)
}

crate::entries! {
    /// The sum over other classes of max(0, margin - x[target] + x)^p / classes.
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    NN | OUT,
    |a| {
        let (x, t, w) = (a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.opt_tensor(arg!(weight)));
        Ok(multi_margin(x, t, (a.float(arg!(p))?, a.float(arg!(margin))?), w, a.int(arg!(reduction))?)?.into())
    };
    /// Hinge loss between every target class and every other; targets end at the first -1.
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", NN | OUT,
    |a| Ok(multilabel_margin(a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.int(arg!(reduction))?)?.into());
    /// Minus the log-probabilities `self` at the target classes.
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN,
    |a| {
        let (x, t, w) = (a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.opt_tensor(arg!(weight)));
        Ok(nll_loss(x, t, w, a.int(arg!(reduction))?, a.int(arg!(ignore_index))?)?.into())
    };
    /// Minus the log-probabilities `self` at the target classes, for one place per sample.
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        ensure!(
            x.ndim() == 1 || x.ndim() == 2,
            Runtime,
            "nll_loss: input tensor should be 1D or 2D, got {}D",
            x.ndim()
        );
        check_batch("nll_loss", x, a.tensor(arg!(target))?)?;
        Ok(nll_loss(x, a.tensor(arg!(target))?, a.opt_tensor(arg!(weight)), a.int(arg!(reduction))?, a.int(arg!(ignore_index))?)?.into())
    };
    /// Minus the log-probabilities `self` at the target classes of images.
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) -> Tensor",
    NN | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        ensure!(
            x.ndim() == 4,
            Runtime,
            "nll_loss2d: only batches of spatial inputs supported (4D tensors), but got input of \
             dimension: {}",
            x.ndim()
        );
        check_batch("nll_loss2d", x, a.tensor(arg!(target))?)?;
        Ok(nll_loss(x, a.tensor(arg!(target))?, a.opt_tensor(arg!(weight)), a.int(arg!(reduction))?, a.int(arg!(ignore_index))?)?.into())
    };
    /// Minus the log-softmax of `self` at the target classes or under target probabilities.
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    NN,
    |a| {
        let (x, t, w) = (a.tensor(arg!(self))?, a.tensor(arg!(target))?, a.opt_tensor(arg!(weight)));
        Ok(cross_entropy(x, t, w, a.int(arg!(reduction))?, a.int(arg!(ignore_index))?, a.float(arg!(label_smoothing))?)?.into())
    };
}

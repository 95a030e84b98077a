//! The margin losses.

use super::{check_reduction, class_weights, sum_classes};
use crate::alloc;
use crate::dispatch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::op::{Metas, TensorMeta};
use crate::ops::nn::loss::reduced;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Gt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::shape::Show;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// max(z, 0) with no gradient where z is 0.
pub(super) fn positive(z: &Tensor) -> Result<Tensor> {
    let zero = Tensor::constant(0.0, z.dtype())?;
    where_(&apply(Gt, [z, &zero])?, z, &zero)
}

/// z * weight, and 0 where the weight is 0, whatever z is.
fn weighed(z: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let zero = Tensor::constant(0.0, z.dtype())?;
    where_(&apply(Ne, [weight, &zero])?, &z.mul(weight)?, &zero)
}

/// Scores as samples by classes.
pub(super) fn as_rows(name: &str, x: &Tensor, target: &Tensor) -> Result<Tensor> {
    ensure!(
        (x.ndim() == 2 && x.size(1) > 0) || (x.ndim() < 2 && x.numel() > 0),
        Runtime,
        "{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}",
        Show(x.shape())
    );
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64),
        NotImplemented,
        "\"{name}_out_frame\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        target.dtype() == DType::I64,
        Runtime,
        "{name}: expected scalar type Long but found {} for the target",
        target.dtype().scalar_name()
    );
    if x.ndim() == 2 {
        Ok(x.clone())
    } else {
        x.reshape(&[1, -1])
    }
}

fn mask(data: &[f64], shape: &[usize], dtype: DType, like: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(data, shape, DType::F64)?
        .to_dtype(dtype)?
        .to_device(like.device())
}

pub(super) fn multi_margin(
    x: &Tensor,
    target: &Tensor,
    (p, margin): (f64, f64),
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    const NAME: &str = "multi_margin_loss";
    check_reduction(reduction)?;
    ensure!(
        p == 1.0 || p == 2.0,
        Runtime,
        "{NAME}: only p == 1 and p == 2 supported"
    );
    let rows = as_rows(NAME, x, target)?;
    let (n, c) = (rows.size(0), rows.size(1));
    ensure!(
        target.ndim() <= 1 && target.numel() == n,
        Runtime,
        "inconsistent target size, expected {n} but got {}",
        Show(target.shape())
    );
    crate::ops::constant(NAME, "weight", weight)?;
    if let Some(w) = weight {
        ensure!(
            w.ndim() <= 1 && w.numel() == c,
            Runtime,
            "inconsistent weight size, expected {c} but got {}",
            Show(w.shape())
        );
    }
    let from: SmallVec<[&Tensor; 2]> = std::iter::once(target).chain(weight).collect();
    let (name, given) = ("MultiMarginFactorsBackward0", (c, x.dtype()));
    let plan = |_: &_| Ok(Metas::from_elem(TensorMeta::of(&rows), 1));
    let factor = dispatch::function_of(name, given, &from, plan, |&(c, dtype), x| {
        factors(x[0], x.get(1).copied(), c, dtype)
    })?;
    let own = rows.gather(1, &target.to_dtype(DType::I64)?.reshape_to(&[n, 1])?)?;
    let mut z = positive(&rows.sub(&own)?.add_scalar(margin)?)?;
    if p == 2.0 {
        z = z.mul(&z)?;
    }
    let loss = sum_classes(&weighed(&z, &factor)?, false)?;
    reduced(&loss.reshape_to(target.shape())?, reduction)
}

/// What each class of each row counts; nothing for the target's own.
fn factors(target: &Tensor, weight: Option<&Tensor>, c: usize, dtype: DType) -> Result<Tensor> {
    let ids = target.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() };
    let w = class_weights::<f64>(weight.as_ref(), c)?;
    let mut factor = alloc::full(0.0, ids.len() * c);
    for (i, &t) in ids.iter().enumerate() {
        ensure!(
            t >= 0 && (t as usize) < c,
            Runtime,
            "target out of range, got {t} for {c} classes"
        );
        for k in (0..c).filter(|&k| k != t as usize) {
            factor[i * c + k] = w[t as usize] / c as f64;
        }
    }
    mask(&factor, &[ids.len(), c], dtype, target)
}

pub(super) fn multilabel_margin(x: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    const NAME: &str = "multilabel_margin_loss";
    check_reduction(reduction)?;
    let rows = as_rows(NAME, x, target)?;
    let vectors = x.ndim() < 2 && target.ndim() < 2;
    ensure!(
        x.shape() == target.shape() || vectors && x.numel() == target.numel(),
        Runtime,
        "inconsistent target size: {} for input of size: {}",
        Show(target.shape()),
        Show(x.shape())
    );
    let (n, c) = (rows.size(0), rows.size(1));
    let (name, given) = ("MultilabelMarginFactorsBackward0", (n, c, x.dtype()));
    let plan = |_: &_| Ok(Metas::from_elem(TensorMeta::of(&rows), 2));
    let from = [target];
    let [times, others] = dispatch::function_of(name, given, &from, plan, |&(n, c, dtype), x| {
        occurrences(x[0], n, c, dtype)
    })?;
    let column = |t: &Tensor| t.reshape_to(&[n, c, 1]);
    let row = |t: &Tensor| t.reshape_to(&[n, 1, c]);
    let z = positive(&row(&rows)?.sub(&column(&rows)?)?.add_scalar(1.0)?)?;
    let z = weighed(&z, &column(&times)?)?;
    let z = weighed(&z, &row(&others)?)?.reshape_to(&[n, c * c])?;
    let loss = sum_classes(&z, false)?;
    let loss = if x.ndim() == 2 {
        loss
    } else {
        loss.reshape(&[])?
    };
    reduced(&loss, reduction)
}

/// How often the target names each class, and what each other class counts.
fn occurrences(target: &Tensor, n: usize, c: usize, dtype: DType) -> Result<[Tensor; 2]> {
    const NAME: &str = "multilabel_margin_loss";
    let ids = target.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() };
    let (mut times, mut others) = (alloc::full(0.0, n * c), alloc::full(1.0 / c as f64, n * c));
    for i in 0..n {
        for &t in ids[i * c..(i + 1) * c].iter().take_while(|&&t| t != -1) {
            ensure!(
                t >= 0 && (t as usize) < c,
                Runtime,
                "{NAME}: target out of range, got {t} for {c} classes"
            );
            times[i * c + t as usize] += 1.0;
            others[i * c + t as usize] = 0.0;
        }
    }
    Ok([
        mask(&times, &[n, c], dtype, target)?,
        mask(&others, &[n, c], dtype, target)?,
    ])
}

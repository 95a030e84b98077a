//! Quantiles: neighbours in order, and a weight between them.

use crate::alloc;
use crate::arg;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Lt;
use crate::ops::pointwise::ternary::where_;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// `quantile` and `nanquantile`: neighbours in order, and a weight between them.
fn quantile(
    x: &Tensor,
    q: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    mode: &str,
    ignore_nan: bool,
) -> Result<Tensor> {
    ensure!(
        x.numel() > 0,
        Runtime,
        "quantile() input tensor must be non-empty"
    );
    ensure!(
        q.ndim() <= 1,
        Runtime,
        "quantile() q must be a scalar or 1D tensor, got shape {}",
        Show(q.shape())
    );
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64),
        Runtime,
        "quantile() input tensor must be either float or double dtype, got {}",
        x.dtype().scalar_name()
    );
    ensure!(
        q.dtype() == x.dtype(),
        Runtime,
        "quantile() q tensor must be same dtype as the input tensor, got {} for {}",
        q.dtype().scalar_name(),
        x.dtype().scalar_name()
    );
    if !["linear", "lower", "higher", "midpoint", "nearest"].contains(&mode) {
        bail!(
            Runtime,
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, \
             but got {mode}"
        );
    }
    // On meta any will do: no shape depends on them.
    let qs = match q.has_data() {
        true => floats(q)?,
        false => alloc::full(0.0, q.numel()),
    };
    ensure!(
        qs.iter().all(|&q| (0.0..=1.0).contains(&q)),
        Runtime,
        "quantile() q values must be in the range [0, 1], got {qs:?}"
    );
    // The shape of the result, and the lines as rows.
    let (rows, mut kept): (Tensor, SmallVec<[usize; 5]>) = match dim {
        None => {
            let kept = if keepdim {
                SmallVec::from_elem(1, x.ndim())
            } else {
                SmallVec::new()
            };
            (x.reshape(&[1, -1])?, kept)
        }
        Some(d) => {
            let d = shape::dim(d, x.ndim())?;
            let mut kept: SmallVec<[usize; 5]> = x.shape().iter().copied().collect();
            if x.ndim() == 0 {
                (x.reshape(&[1, 1])?, kept)
            } else {
                let mut order: SmallVec<[i64; 5]> = (0..x.ndim() as i64).collect();
                order.remove(d);
                order.push(d as i64);
                let n = x.size(d) as i64;
                if keepdim {
                    kept[d] = 1;
                } else {
                    kept.remove(d);
                }
                (x.permute(&order)?.reshape(&[-1, n])?, kept)
            }
        }
    };
    let (lines, n) = (rows.size(0), rows.size(1));
    let (sorted, _) = rows.sort(1, false)?;
    let values = match sorted.has_data() {
        true => floats(&sorted)?,
        false => Vec::new(),
    };
    let (mut low, mut high, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for line in 0..lines {
        let values = values.get(line * n..(line + 1) * n).unwrap_or_default();
        let nan = values.iter().filter(|v| v.is_nan()).count();
        // What the quantile is multiplied by; a line spoiled by NaN gives its last element.
        let (scale, spoiled) = match (nan, ignore_nan) {
            (0, _) => (n - 1, false),
            (_, false) => (n - 1, true),
            (_, true) => ((n - nan).saturating_sub(1), false),
        };
        for &q in &qs {
            // In the type of the elements: the product of float32's 0.8 and 25 is 20 there, and not in float64.
            let rank = match (spoiled, x.dtype()) {
                (true, _) => scale as f64,
                (_, DType::F32) => f64::from(q as f32 * scale as f32),
                _ => q * scale as f64,
            };
            let rank = match mode {
                "lower" => rank.floor(),
                "higher" => rank.ceil(),
                "nearest" => rank.round_ties_even(),
                _ => rank,
            };
            low.push(rank.floor() as i64);
            high.push(rank.ceil() as i64);
            last.push(scale as f64);
        }
    }
    let shape = [lines, qs.len()];
    let at = |v: &[i64]| {
        let index = Tensor::from_slice(v, &shape, DType::I64)?;
        sorted.take_along(1, &index.to_device(x.device())?)
    };
    let floors = low;
    let (low, high) = (at(&floors)?, at(&high)?);
    let y = match mode {
        "linear" => {
            // The weight depends on q, which may need a gradient.
            let made = |v: &[f64]| {
                let t = Tensor::from_slice(v, &shape, DType::F64)?;
                t.to_dtype(x.dtype())?.to_device(x.device())
            };
            let floor: Vec<f64> = floors.iter().map(|&i| i as f64).collect();
            let weight = q.mul(&made(&last)?)?.sub(&made(&floor)?)?;
            between(&low, &high, &weight)?
        }
        "midpoint" => {
            let half = Scalar::Float(0.5);
            between(
                &low,
                &high,
                &Tensor::full(&[], half, x.dtype(), x.device())?,
            )?
        }
        _ => low,
    };
    if q.ndim() == 0 {
        return y.reshape_to(&kept);
    }
    kept.insert(0, qs.len());
    y.permute(&[1, 0])?.reshape_to(&kept)
}

/// The elements in host memory.
fn floats(x: &Tensor) -> Result<Vec<f64>> {
    let host = x.detach().prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(alloc::gathered(
        unsafe { host.slice::<f64>() }.iter().copied(),
    ))
}

/// The point between two numbers; from the upper half on it is reckoned from the high end.
fn between(low: &Tensor, high: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let gap = high.sub(low)?;
    let half = Tensor::number(Scalar::Float(0.5))?;
    let near = apply(Lt, [weight, &half])?;
    let rest = weight.neg()?.add_scalar(1.0)?;
    where_(
        &near,
        &low.add(&gap.mul(weight)?)?,
        &high.sub(&gap.mul(&rest)?)?,
    )
}

pub fn quantile_of<Sig: Signature>(a: &Args<Sig>, ignore_nan: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let q = match a.opt_tensor(arg!(q)) {
        Some(q) => q.clone(),
        None => {
            let q = a.scalar(arg!(q))?.f64();
            ensure!(
                (0.0..=1.0).contains(&q),
                Runtime,
                "quantile() q must be in the range [0, 1] but got {q}"
            );
            Tensor::full(&[], Scalar::Float(q), x.dtype(), x.device())?
        }
    };
    let mode = a.str(arg!(interpolation))?.to_string();
    Ok(quantile(
        x,
        &q,
        a.opt_int(arg!(dim)),
        a.bool(arg!(keepdim))?,
        &mode,
        ignore_nan,
    )?
    .into())
}

//! The exponential of matrices on the GPU, by the polynomial and the squarings that the host has. The
//! host reads norms, which say how often each matrix is halved.

use super::cpu::exponential::{halvings, reach, SUMS, TOP};
use super::{cols, eye};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Gt;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::{Abs, Exp};
use crate::ops::shape::join::cat;
use crate::shape::DimSet;
use crate::tensor::Tensor;

/// The largest sum of a row's absolute values, of each matrix.
fn norms(x: &Tensor) -> Result<Vec<f64>> {
    let sums = apply(Abs, [x])?.sum_dim(-1, false)?;
    let most = sums.amax_mask(DimSet::last(1, 2)?, false)?;
    let host = most.to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(unsafe { host.slice::<f64>() }.to_vec())
}

/// A number for each matrix.
fn each(like: &Tensor, of: impl Iterator<Item = f64>) -> Result<Tensor> {
    let of: Vec<f64> = of.collect();
    Tensor::from_slice(&of, &[of.len(), 1, 1], DType::F64)?
        .to_dtype(like.dtype())?
        .to_device(like.device())
}

/// Each matrix times a power of two.
fn halved(x: &Tensor, times: &[i32]) -> Result<Tensor> {
    // In two steps: the power of two may be less than the least number.
    let part = |t: i32| times.iter().map(move |&n| 2f64.powi(-((n + t) / 2)));
    x.mul(&each(x, part(0))?)?.mul(&each(x, part(1))?)
}

/// Of square matrices in a row.
fn exponentials(x: &Tensor) -> Result<Tensor> {
    if cols(x) == 1 {
        return apply(Exp, [x]);
    }
    let size = norms(x)?;
    let before = |&s: &f64| match s.is_finite() && s > TOP {
        true => (s / TOP).log2().ceil() as i32,
        false => 0,
    };
    let mut times: Vec<i32> = size.iter().map(before).collect();
    let a = halved(x, &times)?;
    let a2 = a.matmul(&a)?;
    let a3 = a2.matmul(&a)?;
    let a6 = a3.matmul(&a3)?;
    let reach = match x.dtype() {
        DType::F64 => reach::<f64>().1,
        _ => reach::<f32>().1,
    };
    let known = [norms(&a)?, norms(&a2)?, norms(&a3)?, norms(&a6)?];
    let more: Vec<i32> = (0..size.len())
        .map(|i| match size[i].is_finite() {
            true => halvings([0, 1, 2, 3].map(|k| known[k][i]), reach),
            false => 0,
        })
        .collect();
    times.iter_mut().zip(&more).for_each(|(t, m)| *t += m);
    let (one, two) = (halved(&a, &more)?, more.iter().map(|m| 2 * m));
    let powers = [
        one,
        halved(&a2, &two.collect::<Vec<_>>())?,
        halved(&a3, &more.iter().map(|m| 3 * m).collect::<Vec<_>>())?,
        halved(&a6, &more.iter().map(|m| 6 * m).collect::<Vec<_>>())?,
    ];
    let identity = eye(x, cols(x))?;
    let sum = |f: &[f64; 5]| -> Result<Tensor> {
        let mut y = identity.mul_scalar(f[0])?;
        for (f, power) in f[1..].iter().zip(&powers) {
            if *f != 0.0 {
                y = y.add(&power.mul_scalar(*f)?)?;
            }
        }
        Ok(y)
    };
    let [p, q, r, t, u] = [0, 1, 2, 3, 4].map(|i| sum(&SUMS[i]));
    let t = t?.add(&p?.matmul(&u?)?)?;
    let mut y = q?.add(&r?.add(&t)?.matmul(&t)?)?;
    for k in 0..times.iter().copied().max().unwrap_or(0) {
        let goes_on = each(x, times.iter().map(|&n| (n > k) as u8 as f64))?;
        let zero = Tensor::zeros(&[], x.dtype(), x.device())?;
        y = where_(&apply(Gt, [&goes_on, &zero])?, &y.matmul(&y)?, &y)?;
    }
    if size.iter().all(|s| s.is_finite()) {
        return Ok(y);
    }
    // All of a matrix is NaN where an element is not finite.
    let spoiled = size
        .iter()
        .map(|s| if s.is_finite() { 0.0 } else { f64::NAN });
    y.add(&each(x, spoiled)?)
}

/// Writes the exponential of each matrix, in float64 where that is there and costs little.
pub fn exponential(gpu: &Gpu, x: &Tensor, y: &Tensor) -> Result<()> {
    let (n, dtype) = (cols(x) as i64, x.dtype());
    let double = matches!(dtype, DType::F64 | DType::C128);
    let wide = double || gpu.info().float64 && cols(x) < super::powers::NARROW;
    let wide = if wide { DType::F64 } else { DType::F32 };
    let a = x.detach();
    // X + i Y is [X -Y; Y X].
    let real = match dtype.is_complex() {
        false => a,
        true => {
            let (re, im) = (a.real_part(0)?, a.real_part(1)?);
            let upper = cat(&[re.clone(), im.neg()?], -1)?;
            cat(&[upper, cat(&[im, re], -1)?], -2)?
        }
    };
    let side = cols(&real);
    let flat = real.reshape(&[-1, side as i64, side as i64])?;
    let result = exponentials(&flat.to_dtype(wide)?)?;
    let result = match dtype.is_complex() {
        false => result.to_dtype(dtype)?,
        true => {
            let part = if double { DType::F64 } else { DType::F32 };
            let left = result.narrow(-1, 0, n)?.to_dtype(part)?;
            let parts = [left.narrow(-2, 0, n)?, left.narrow(-2, n, n)?];
            let parts = [parts[0].unsqueeze(-1)?, parts[1].unsqueeze(-1)?];
            cat(&parts, -1)?.as_complex()?
        }
    };
    y.write_from(&result.reshape_to(y.shape())?)
}

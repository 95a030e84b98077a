//! Factors of one matrix that no kernel can bind, or takes too long for, made of those of its halves: left and right
//! ones, of which the right one is what the left one leaves of it. Elmroth and Gustavson 2000, doi:10.1147/rd.444.0605.

use super::reflectors::reflected;
use super::{adjoint, cols, rows, solve_triangular, Factor, Kind};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{Eq, Lt, Ne};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::Abs;
use crate::ops::shape::join::cat;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::transfer::is_short;

/// Whether no kernel can bind these elements.
pub fn is_large(t: &Tensor) -> bool {
    !is_short(t.device(), t.numel(), t.dtype())
}

/// Whether a kernel can bind all of them.
pub fn are_small(all: &[&Tensor]) -> bool {
    !all.iter().any(|t| is_large(t))
}

/// The first `n` rows, or columns.
fn first(t: &Tensor, dim: i64, n: usize) -> Result<Tensor> {
    t.narrow(dim, 0, n as i64)
}

/// Those behind the first `n`.
fn rest(t: &Tensor, dim: i64, n: usize) -> Result<Tensor> {
    t.narrow(dim, n as i64, (t.size(dim as usize) - n) as i64)
}

fn above(a: Tensor, b: Tensor) -> Result<Tensor> {
    cat(&[a, b], 0)
}
fn beside(a: Tensor, b: Tensor) -> Result<Tensor> {
    cat(&[a, b], 1)
}

fn zero(like: &Tensor) -> Result<Tensor> {
    Tensor::zeros(&[], like.dtype(), like.device())
}

/// Rows in the order to which exchanges bring them.
pub fn exchanged(t: &Tensor, pivots: &Tensor) -> Result<Tensor> {
    let ids = pivots.to_host()?.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type.
    let ids = unsafe { ids.slice::<i64>() }
        .iter()
        .map(|&i| i as usize - 1);
    let order: Vec<i64> = (super::order(ids, rows(t)).into_iter())
        .map(|i| i as i64)
        .collect();
    let order = Tensor::from_slice(&order, &[order.len()], DType::I64)?;
    t.index_select(0, &order.to_device(t.device())?)
}

/// The first step that failed, of two halves.
fn failed(a: &Tensor, b: &Tensor, before: usize) -> Result<Tensor> {
    let none = zero(a)?;
    let later = b.add_scalar(before as i64)?;
    let later = where_(&apply(Ne, [b, &none])?, &later, &none)?;
    where_(&apply(Ne, [a, &none])?, a, &later)
}

/// Packed L and U, pivots from 1 on, info.
pub fn lu(a: &Tensor, pivot: bool) -> Result<[Tensor; 3]> {
    let half = rows(a).min(cols(a)) / 2;
    if half == 0 {
        return column(a, pivot);
    }
    let factor = |a: &Tensor| -> Result<[Tensor; 3]> {
        let mut y = dispatch::compute(&Factor(Kind::LuFactor { pivot }), &[a])?;
        let (info, pivots) = (y.swap_remove(2), y.swap_remove(1));
        Ok([y.swap_remove(0), pivots, info])
    };
    let moved = |t: Tensor, pivots: &Tensor| match pivot {
        true => exchanged(&t, pivots),
        false => Ok(t),
    };
    let [left, pivots, info] = factor(&first(a, 1, half)?)?;
    let right = moved(rest(a, 1, half)?, &pivots)?;
    let (top, low) = (first(&left, 0, half)?, rest(&left, 0, half)?);
    let upper = solve_triangular(&top, &first(&right, 0, half)?, false, true)?;
    let own = rest(&right, 0, half)?.sub(&low.matmul(&upper)?)?;
    let [own, more, later] = factor(&own)?;
    let lower = beside(moved(low, &more)?, own)?;
    Ok([
        above(beside(top, upper)?, lower)?,
        cat(&[pivots, more.add_scalar(half as i64)?], 0)?,
        failed(&info, &later, half)?,
    ])
}

/// [`lu`] of one column, or one row.
fn column(a: &Tensor, pivot: bool) -> Result<[Tensor; 3]> {
    let y = a.copy_dense()?;
    let own = first(&y, 1, 1)?;
    let at = match pivot && rows(a) > 1 {
        true => apply(Abs, [&own])?
            .place_of_max(0)?
            .reshape_to(&[])?
            .item()?
            .i64(),
        false => 0,
    };
    if at != 0 {
        let top = first(&own, 0, 1)?.copy_dense()?;
        first(&own, 0, 1)?.write_from(&own.narrow(0, at, 1)?.copy_dense()?)?;
        own.narrow(0, at, 1)?.write_from(&top)?;
    }
    let top = first(&own, 0, 1)?.copy_dense()?;
    let lost = apply(Eq, [&top, &zero(&top)?])?;
    if rows(a) > 1 {
        let low = rest(&own, 0, 1)?;
        low.write_from(&where_(&lost, &low, &low.div(&top)?)?)?;
    }
    let pivots = Tensor::full(&[1], Scalar::Int(at + 1), DType::I32, a.device())?;
    Ok([y, pivots, lost.to_dtype(DType::I32)?.reshape_to(&[])?])
}

/// The solution of A X = B for a triangle of A.
pub fn triangular(a: &Tensor, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
    let (n, width) = (rows(b), cols(b));
    let solve = |a: &Tensor, b: &Tensor| solve_triangular(a, b, upper, unit);
    if is_large(b) && !is_large(a) && width > 1 {
        let half = width / 2;
        return beside(
            solve(a, &first(b, 1, half)?)?,
            solve(a, &rest(b, 1, half)?)?,
        );
    }
    let half = n / 2;
    if half == 0 {
        return if unit { b.copy_dense() } else { b.div(a) };
    }
    let part = |i: usize, j: usize| -> Result<Tensor> {
        let rows = if i == 0 {
            first(a, 0, half)?
        } else {
            rest(a, 0, half)?
        };
        if j == 0 {
            first(&rows, 1, half)
        } else {
            rest(&rows, 1, half)
        }
    };
    let (top, low) = (first(b, 0, half)?, rest(b, 0, half)?);
    if upper {
        let low = solve(&part(1, 1)?, &low)?;
        let top = solve(&part(0, 0)?, &top.sub(&part(0, 1)?.matmul(&low)?)?)?;
        return above(top, low);
    }
    let top = solve(&part(0, 0)?, &top)?;
    let low = solve(&part(1, 1)?, &low.sub(&part(1, 0)?.matmul(&top)?)?)?;
    above(top, low)
}

/// L, info; of more than one row.
pub fn cholesky(a: &Tensor) -> Result<[Tensor; 2]> {
    let half = rows(a) / 2;
    let factor = |a: &Tensor| -> Result<[Tensor; 2]> {
        let mut y = dispatch::compute(&Factor(Kind::Cholesky), &[a])?;
        let info = y.swap_remove(1);
        Ok([y.swap_remove(0), info])
    };
    let low = rest(a, 0, half)?;
    let [top, info] = factor(&first(&first(a, 0, half)?, 1, half)?)?;
    let lower = solve_triangular(&top, &adjoint(&first(&low, 1, half)?)?, false, false)?;
    let lower = adjoint(&lower)?;
    let own = rest(&low, 1, half)?.sub(&lower.matmul(&adjoint(&lower)?)?)?;
    let [own, later] = factor(&own)?;
    let none = Tensor::zeros(&[half, rows(a) - half], a.dtype(), a.device())?;
    let l = above(beside(top, none)?, beside(lower, own)?)?;
    Ok([l, failed(&info, &later, half)?])
}

/// R above reflectors, and their factors.
pub fn reflectors(a: &Tensor) -> Result<[Tensor; 2]> {
    let half = rows(a).min(cols(a)) / 2;
    if half == 0 {
        return reflector(a);
    }
    let factor = |a: &Tensor| -> Result<[Tensor; 2]> {
        let mut y = dispatch::compute(&Factor(Kind::Reflectors), &[a])?;
        let factors = y.swap_remove(1);
        Ok([y.swap_remove(0), factors])
    };
    let [left, factors] = factor(&first(a, 1, half)?)?;
    let right = reflected(&left, &factors, &rest(a, 1, half)?, true)?;
    let [own, more] = factor(&rest(&right, 0, half)?)?;
    let right = above(first(&right, 0, half)?, own)?;
    Ok([beside(left, right)?, cat(&[factors, more], 0)?])
}

/// [`reflectors`] of one column, or one row.
fn reflector(a: &Tensor) -> Result<[Tensor; 2]> {
    if cols(a) > 1 {
        let [own, factor] = reflector(&first(a, 1, 1)?)?;
        let right = reflected(&own, &factor, &rest(a, 1, 1)?, true)?;
        return Ok([beside(own, right)?, factor]);
    }
    let complex = a.dtype().is_complex();
    let part = |t: &Tensor, k: i64| {
        if complex {
            t.real_part(k)
        } else {
            Ok(t.clone())
        }
    };
    let sizes = apply(Abs, [a])?;
    let largest = |t: &Tensor| t.amax_mask(DimSet::last(2, 2)?, true);
    let (size, none) = (largest(&sizes)?, zero(&sizes)?);
    let one = Tensor::number(Scalar::Int(1))?;
    let size = where_(&apply(Eq, [&size, &none])?, &one, &size)?;
    let own = a.div(&size)?;
    let (top, low) = (first(&own, 0, 1)?, rest(&own, 0, 1)?);
    let norm = own.vector_norm(2.0, DimSet::last(2, 2)?, true)?;
    let beta = where_(&apply(Lt, [&part(&top, 0)?, &none])?, &norm, &norm.neg()?)?;
    let mut off = match rows(a) > 1 {
        true => largest(&rest(&sizes, 0, 1)?)?,
        false => none.clone(),
    };
    if complex {
        off = off.add(&apply(Abs, [&part(&top, 1)?])?)?;
    }
    // What lies on the axis stays there.
    let still = apply(Eq, [&off, &none])?;
    let nothing = zero(a)?;
    let factor = where_(&still, &nothing, &beta.sub(&top)?.div(&beta)?)?;
    let low = where_(&still, &nothing, &low.div(&top.sub(&beta)?)?)?;
    let top = where_(
        &still,
        &first(a, 0, 1)?,
        &beta.mul(&size)?.to_dtype(a.dtype())?,
    )?;
    Ok([above(top, low)?, factor.reshape_to(&[1])?])
}

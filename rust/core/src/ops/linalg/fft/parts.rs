//! Transforms of a line that a GPU's kernel does not bind: as a matrix, first along the columns, then along the
//! rows, with roots between; one whose length is prime is a convolution of another length.

use super::gpu::{acc_of, chirp, convolved, low_bits, roots};
use super::{Fft, Half};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::{Op, Tensors};
use crate::ops::index::search::count_from;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::DivFloor;
use crate::tensor::Tensor;
use crate::transfer::may_be_large;
use smallvec::smallvec;

/// Lines that are shorter have nothing to be cut.
const LEAST: usize = 64;

/// A complex transform along a dimension.
fn complex(x: &Tensor, dim: usize, forward: bool, scale: Scalar) -> Result<Tensor> {
    let n = x.size(dim);
    let op = Fft {
        dim,
        n,
        out: n,
        forward,
        scale,
        real_input: false,
        real_output: false,
        half: Half::None,
    };
    dispatch::call1(op, &[x])
}

/// These complex numbers, or their conjugates, where the others are.
fn table(words: &[u32], like: &Tensor, forward: bool) -> Result<Tensor> {
    let all = match like.dtype() {
        DType::C128 => {
            let (all, _) = words.as_chunks::<4>();
            Tensor::from_slice(all, &[all.len()], DType::C128)?
        }
        _ => {
            let (all, _) = words.as_chunks::<2>();
            Tensor::from_slice(all, &[all.len()], DType::C64)?
        }
    };
    let all = all.to_device(like.device())?;
    match forward {
        true => Ok(all),
        false => all.conj(),
    }
}

/// `exp(-+ 2 pi i j k / n)` for `j` below `rows` and `k` below `columns`, whose product is `n`: products of
/// two roots, by the lower and the higher half of the bits of `j k`.
fn between(like: &Tensor, rows: usize, columns: usize, forward: bool) -> Result<Tensor> {
    let n = rows * columns;
    let low = 1 << low_bits(n);
    let roots = table(&roots(acc_of(like.dtype()), 1, n), like, forward)?;
    let (lower, higher) = (
        roots.narrow(0, 1, low as i64)?,
        roots.narrow(0, 1 + low as i64, n.div_ceil(low) as i64)?,
    );
    let of = |count, shape: [usize; 2]| count_from(like, 0, count)?.reshape_to(&shape);
    let power = of(rows, [rows, 1])?.mul(&of(columns, [1, columns])?)?;
    let power = power.reshape_to(&[n])?;
    let high = apply(
        DivFloor,
        [&power, &Tensor::number(Scalar::Int(low as i64))?],
    )?;
    let rest = power.sub(&high.mul_scalar(low as i64)?)?;
    let root = lower
        .index_select(0, &rest)?
        .mul(&higher.index_select(0, &high)?)?;
    root.reshape_to(&[rows, columns])
}

/// The transform of a line of complex numbers.
fn line(x: &Tensor, forward: bool, scale: Scalar) -> Result<Tensor> {
    let n = x.numel();
    let one = Scalar::Float(1.0);
    if let Some(rows) = (2..=n.isqrt()).rev().find(|&d| n.is_multiple_of(d)) {
        let columns = n / rows;
        let y = complex(&x.reshape_to(&[rows, columns])?, 0, forward, one)?;
        let y = y.mul(&between(x, rows, columns, forward)?)?;
        let y = complex(&y, 1, forward, scale)?;
        return y.transpose(0, 1)?.reshape_to(&[n]);
    }
    // As in the kernel: j k = (j^2 + k^2 - (j - k)^2) / 2.
    let m = convolved(n);
    let factors = table(&chirp(acc_of(x.dtype()), n, m), x, forward)?;
    let own = factors.narrow(0, 0, n as i64)?;
    let y = padded(&x.mul(&own)?, m)?;
    let y = complex(&y, 0, true, one)?.mul(&factors.narrow(0, n as i64, m as i64)?)?;
    let y = complex(&y, 0, false, scale)?;
    y.narrow(0, 0, n as i64)?.mul(&own)
}

/// The first `n` elements, zeros where there are none.
fn padded(x: &Tensor, n: usize) -> Result<Tensor> {
    let kept = n.min(x.numel()) as i64;
    let part = x.narrow(0, 0, kept)?;
    if kept as usize == n {
        return Ok(part);
    }
    let y = Tensor::zeros(&[n], x.dtype(), x.device())?;
    y.narrow(0, 0, kept)?.write_from(&part)?;
    Ok(y)
}

/// What lies between the first element and the middle of `n`, twice.
fn doubled(x: &Tensor, n: usize) -> Result<Tensor> {
    let y = x.copy_dense()?;
    let end = n.div_ceil(2).min(x.numel());
    if end > 1 {
        let part = y.narrow(0, 1, end as i64 - 1)?;
        part.write_from(&part.mul_scalar(2.0)?)?;
    }
    Ok(y)
}

/// `None` where it is not for their size that a kernel does not take these.
pub(super) fn by_parts(op: &Fft, x: &Tensor) -> Result<Option<Tensors>> {
    let (n, length) = (op.n, x.size(op.dim));
    let acc = acc_of(x.dtype());
    let takes = matches!(x.dtype().part(), DType::F32 | DType::F64) && n >= LEAST;
    // Of several lines each can be taken by itself.
    let one = x.numel() == length && length > 0;
    if !takes || !one || !may_be_large(x.device(), n * acc.dtype().size()) {
        return Ok(None);
    }
    let count = |side| if op.half == side { n / 2 + 1 } else { n };
    let mut y = padded(&x.reshape_to(&[length])?, length.min(count(Half::Input)))?;
    if !y.dtype().is_complex() {
        y = Tensor::of_parts(&y, &Tensor::zeros(&[], y.dtype(), y.device())?)?;
    }
    if op.half == Half::Input {
        y = doubled(&y, n)?;
    }
    y = line(&padded(&y, n)?, op.forward, op.scale)?;
    y = padded(&y, op.out.min(count(Half::Output)))?;
    if op.half == Half::Output {
        y = doubled(&y, n)?;
    }
    y = padded(&y, op.out)?;
    if op.real_output {
        y = y.real_part(0)?;
    }
    let shape = op.infer(&[x.meta()])?.swap_remove(0).shape;
    Ok(Some(smallvec![y.reshape_to(&shape)?]))
}

//! Sequences and index patterns: `arange`, `linspace`, `eye`, triangles of indices.

use super::create::Options;
use crate::alloc;
use crate::arg;
use crate::cpu::elements::{Compute, Element};
use crate::cpu::pool::parallel_chunks;
use crate::device::Device;
use crate::dtype::{check_range, default_dtype, DType, Scalar};
use crate::error::Result;
use crate::schema::{Args, Dest, Signature, Value};
use crate::tensor::Tensor;
use crate::{bail, ensure, with_element};
use std::f64::consts::PI;

/// A one-dimensional tensor of `n` elements, element `i` made by `f.at(i)`.
fn sequence<F: Rule>(n: usize, dtype: DType, device: Device, f: F) -> Result<Tensor> {
    let y = Tensor::empty(&[n], dtype, device.maker())?;
    if device == Device::Meta {
        return Ok(y);
    }
    with_element!(dtype, T => {
        // SAFETY: a fresh contiguous tensor of this type.
        parallel_chunks(unsafe { y.slice_mut::<T>() }, 1, 1 << 14, |first, y| fill(f, first, y));
    });
    y.to_device(device)
}

crate::per_isa! {
    fn fill[T: Element, F: Rule](f: F, first: usize, y: &mut [T]) {
        for (i, y) in y.iter_mut().enumerate() {
            *y = f.at(first + i).to_element();
        }
    }
}

/// What gives element `i` of a sequence.
trait Rule: Copy + Sync {
    type V: Compute;
    fn at(&self, i: usize) -> Self::V;
}
impl<V: Compute, F: Fn(usize) -> V + Copy + Sync> Rule for F {
    type V = V;
    #[inline(always)]
    fn at(&self, i: usize) -> V {
        self(i)
    }
}

fn refuse_bool(name: &str, dtype: DType) -> Result<()> {
    ensure!(
        dtype != DType::Bool && !dtype.is_complex(),
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

/// Brings numbers in a row to where they go: an `out=` of as many elements keeps its shape.
fn give_line(o: &Options, a: &Args, y: Tensor) -> Result<Value> {
    match a.dest {
        Dest::Out(out) if out[0].numel() == y.numel() => o.give(a, y.reshape_to(out[0].shape())?),
        _ => o.give(a, y),
    }
}

/// `arange` of a wide unsigned type: counted in int64, whose numbers must fit.
fn unsigned_range(o: &Options, a: &Args, dtype: DType, ends: [Scalar; 3]) -> Result<Value> {
    let [start, end, step] = ends;
    let (low, high) = dtype.limits();
    let inside = |v: Scalar| v.f64() >= low as f64 && v.f64() <= high as f64 + 1.0;
    ensure!(
        inside(start) && inside(end),
        Runtime,
        "arange: {start} to {end} is out of range for {dtype}, which holds {low} to {high}"
    );
    let (start, end, step) = (start.i64(), end.f64().ceil() as i64, step.i64());
    ensure!(
        (step > 0 && end >= start) || (step < 0 && end <= start),
        Runtime,
        "upper bound and lower bound inconsistent with step sign"
    );
    let (s, e, st) = (start as i128, end as i128, step as i128);
    let Ok(n) = usize::try_from((e - s + st - st.signum()) / st) else {
        bail!(Runtime, "invalid size, possible overflow?");
    };
    let at = move |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
    let y = sequence(n, DType::I64, crate::device::Device::Cpu, at)?.to_dtype(dtype)?;
    give_line(o, a, y.to_device(o.device_or(a))?)
}

fn arange<Sig: Signature>(
    a: &Args<Sig>,
    start: Scalar,
    end: Scalar,
    step: Scalar,
) -> Result<Value> {
    let o = Options::read(a)?;
    let floats = start.is_float() || end.is_float() || step.is_float();
    let dtype = o.dtype_or(a, || if floats { default_dtype() } else { DType::I64 })?;
    refuse_bool("arange_cpu", dtype)?;
    if dtype.is_wide_unsigned() {
        return unsigned_range(&o, a, dtype, [start, end, step]);
    }
    ensure!(step.f64() != 0.0, Runtime, "step must be nonzero");
    ensure!(
        start.f64().is_finite() && end.f64().is_finite(),
        Runtime,
        "unsupported range: {start} -> {end}"
    );
    let inconsistent = "upper bound and lower bound inconsistent with step sign";
    if dtype.is_integral() {
        // Integer types count in integers, after cutting fractions off.
        let span = (end.f64() - start.f64(), step.f64());
        let (start, end, step) = (start.i64(), end.i64(), step.i64());
        ensure!(step != 0, Value, "step must be nonzero");
        let (s, e, st) = (start as i128, end as i128, step as i128);
        ensure!(
            match floats {
                true => span.0 == 0.0 || (span.0 > 0.0) == (span.1 > 0.0),
                false => (st > 0 && e >= s) || (st < 0 && e <= s),
            },
            Runtime,
            "{inconsistent}"
        );
        let n = match dtype {
            DType::I64 => ((e - s + st - st.signum()) / st).max(0),
            // Narrower types are counted before fractions are cut off.
            _ => (span.0 / span.1).ceil() as i128,
        };
        let Ok(n) = usize::try_from(n) else {
            bail!(Runtime, "invalid size, possible overflow?");
        };
        let at = move |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
        return give_line(&o, a, sequence(n, dtype, o.device_or(a), at)?);
    }
    let (start, end, step) = (start.f64(), end.f64(), step.f64());
    ensure!(
        (step > 0.0 && end >= start) || (step < 0.0 && end <= start),
        Runtime,
        "{inconsistent}"
    );
    let n = ((end - start) / step).ceil();
    ensure!(
        (0.0..9.223_372_036_854_775e18).contains(&n),
        Runtime,
        "invalid size, possible overflow?"
    );
    let at = move |i: usize| start + step * i as f64;
    give_line(&o, a, sequence(n as usize, dtype, o.device_or(a), at)?)
}

/// `range`: as `arange`, with `end` where a step meets it, and of the default type.
fn range<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    crate::host::warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is \
         inconsistent with Python's range builtin. Instead, use torch.arange, which produces values \
         in [start, end).",
    );
    let o = Options::read(a)?;
    let (start, end, step) = (
        a.scalar(arg!(start))?,
        a.scalar(arg!(end))?,
        a.scalar(arg!(step))?,
    );
    let dtype = o.dtype_or(a, default_dtype)?;
    refuse_bool("range_cpu", dtype)?;
    ensure!(
        !dtype.is_wide_unsigned(),
        NoKernel,
        "\"range_cpu\" not implemented for '{}'",
        dtype.scalar_name()
    );
    // Integer types count in integers, after cutting fractions off.
    let cut = |v: Scalar| {
        if dtype.is_integral() {
            v.i64() as f64
        } else {
            v.f64()
        }
    };
    let (from, to, by) = (cut(start), cut(end), cut(step));
    ensure!(by != 0.0, Runtime, "step must be nonzero");
    ensure!(
        from.is_finite() && to.is_finite(),
        Runtime,
        "unsupported range: {start} -> {end}"
    );
    ensure!(
        (by > 0.0 && to >= from) || (by < 0.0 && to <= from),
        Runtime,
        "upper bound and lower bound inconsistent with step sign"
    );
    let n = (to - from) / by + 1.0;
    ensure!(
        n < 9.223_372_036_854_775e18,
        Runtime,
        "invalid size, possible overflow?"
    );
    let (n, device) = (n as usize, o.device_or(a));
    if dtype.is_integral() {
        let (start, step) = (start.i64(), step.i64());
        let at = move |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
        return give_line(&o, a, sequence(n, dtype, device, at)?);
    }
    let at = move |i: usize| from + by * i as f64;
    give_line(&o, a, sequence(n, dtype, device, at)?)
}

/// The first and the last number, each a number or a tensor of one.
fn ends<'a, Sig: Signature>(a: &'a Args<Sig>) -> Result<(&'a Tensor, &'a Tensor)> {
    let (start, end) = (a.tensor(arg!(start))?, a.tensor(arg!(end))?);
    let told = [("start", start), ("end", end)].into_iter();
    let told = told.filter(|(_, t)| !t.is_wrapped());
    let told: Vec<String> = told
        .map(|(name, t)| format!("{name} with {} dimension(s)", t.ndim()))
        .collect();
    ensure!(
        start.ndim() == 0 && end.ndim() == 0,
        Runtime,
        "{} only supports 0-dimensional start and end tensors, but got {}.",
        a.schema.name,
        told.join(" and ")
    );
    Ok((start, end))
}

/// `base` to the power of a complex number.
fn complex_power(base: f64, (re, im): (f64, f64)) -> [f64; 2] {
    // The imaginary part of the logarithm of a negative number.
    let turn = if base < 0.0 { PI } else { 0.0 };
    let log = base.abs().ln();
    let size = match im * turn == 0.0 {
        true => base.abs().powf(re),
        false => (re * log - im * turn).exp(),
    };
    let angle = re * turn + if im == 0.0 { 0.0 } else { im * log };
    match angle == 0.0 {
        true => [size, 0.0],
        false => [size * angle.cos(), size * angle.sin()],
    }
}

/// [`spaced`] along a line of the complex plane.
fn spaced_complex(
    ends: [(f64, f64); 2],
    n: usize,
    base: Option<f64>,
    dtype: DType,
    device: Device,
) -> Result<Tensor> {
    let y = Tensor::empty(&[n], dtype, device.maker())?;
    if device == Device::Meta {
        return Ok(y);
    }
    let [start, end] = ends;
    let (re, im) = (between(start.0, end.0, n), between(start.1, end.1, n));
    for which in 0..2 {
        let part = move |i: usize| match base {
            Some(b) => complex_power(b, (re(i), im(i)))[which],
            None if which == 0 => re(i),
            None => im(i),
        };
        let line = sequence(n, dtype.part(), Device::Cpu, part)?;
        y.component(which).write_from(&line)?;
    }
    y.to_device(device)
}

/// The numbers from `start` to `end` in `n` even steps: from both ends towards the middle, so that both
/// are exact.
fn between(start: f64, end: f64, n: usize) -> impl Fn(usize) -> f64 + Copy + Sync {
    let last = n.saturating_sub(1);
    let step = if last == 0 {
        0.0
    } else {
        (end - start) / last as f64
    };
    move |i| match i < n / 2 || last == 0 {
        true => start + step * i as f64,
        false => end - step * (last - i) as f64,
    }
}

/// Evenly spaced numbers, and `base` to their power where there is one.
fn spaced<Sig: Signature>(a: &Args<Sig>, base: Option<f64>) -> Result<Value> {
    let o = Options::read(a)?;
    let (start, end) = ends(a)?;
    let steps = a.int(arg!(steps))?;
    ensure!(steps >= 0, Runtime, "number of steps must be non-negative");
    let n = steps as usize;
    let complex = start.dtype().is_complex() || end.dtype().is_complex();
    let dtype = o.dtype_or(a, || match complex {
        true => default_dtype().complex(),
        false => default_dtype(),
    })?;
    ensure!(
        !complex || dtype.is_complex(),
        Runtime,
        "torch.{}(): inferred dtype {} can't be safely cast to passed dtype {}",
        a.schema.name,
        default_dtype().complex().scalar_name(),
        dtype.scalar_name()
    );
    if dtype.is_complex() {
        let ends = [start.complex_item()?, end.complex_item()?];
        let y = spaced_complex(ends, n, base, dtype, o.device_or(a))?;
        return give_line(&o, a, y);
    }
    refuse_bool(
        if base.is_some() {
            "logspace_cpu"
        } else {
            "linspace_cpu"
        },
        dtype,
    )?;
    let integer = dtype.is_integral();
    if integer && n > 1 {
        check_range(start.item()?, dtype)?;
        check_range(end.item()?, dtype)?;
    }
    // Integer types cut the ends off before they are divided, but not one power alone.
    let cut = |v: f64| match integer && (n != 1 || base.is_none()) {
        true => v.trunc(),
        false => v,
    };
    let v = between(cut(start.item()?.f64()), cut(end.item()?.f64()), n);
    let at = move |i: usize| base.map_or(v(i), |b| b.powf(v(i)));
    give_line(&o, a, sequence(n, dtype, o.device_or(a), at)?)
}

fn eye<Sig: Signature>(a: &Args<Sig>, n: i64, m: i64) -> Result<Value> {
    let o = Options::read(a)?;
    ensure!(n >= 0, Runtime, "n must be greater or equal to 0, got {n}");
    ensure!(m >= 0, Runtime, "m must be greater or equal to 0, got {m}");
    let dtype = o.dtype_or(a, default_dtype)?;
    let (n, m) = (n as usize, m as usize);
    let device = o.device_or(a);
    let y = Tensor::zeros(&[n, m], dtype, device.maker())?;
    let one = Tensor::number(Scalar::Int(1))?;
    y.alias(y.layout().diagonal(0, 0, 1)?).write_from(&one)?;
    o.give(a, y.to_device(device)?)
}

/// Row and column indices of the elements of a triangle, row by row.
/// Counts the elements of a matrix on and below a diagonal.
fn below(rows: i64, cols: i64, offset: i128) -> i128 {
    let (rows, cols) = (rows as i128, cols as i128);
    let first = (-offset).clamp(0, rows);
    let full = (cols - offset - 1).clamp(first, rows);
    let growing = match full > first {
        true => (full - first) * (first + full + 2 * offset + 1) / 2,
        false => 0,
    };
    growing + (rows - full) * cols
}

fn triangle<Sig: Signature>(a: &Args<Sig>, lower: bool) -> Result<Value> {
    let o = Options::read(a)?;
    let (rows, cols, offset) = (a.int(arg!(row))?, a.int(arg!(col))?, a.int(arg!(offset))?);
    ensure!(rows >= 0, Runtime, "row must be non-negative, got{rows}");
    ensure!(cols >= 0, Runtime, "col must be non-negative, got{cols}");
    let dtype = o.dtype.unwrap_or(DType::I64);
    ensure!(
        matches!(dtype, DType::I32 | DType::I64),
        NoKernel,
        "\"{}\" not implemented for '{}'",
        a.schema.name,
        dtype.scalar_name()
    );
    let span = |i: i64| {
        let edge = i.saturating_add(offset);
        if lower {
            0..edge.saturating_add(1).clamp(0, cols)
        } else {
            edge.clamp(0, cols)..cols
        }
    };
    let all = rows as i128 * cols as i128;
    let count = match lower {
        true => below(rows, cols, offset as i128),
        false => all - below(rows, cols, offset as i128 - 1),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    alloc::check(count, 3 * size_of::<i64>())?;
    let (mut is, mut js) = (alloc::list(2 * count)?, alloc::list(count)?);
    let first = if lower {
        offset.saturating_neg().max(0)
    } else {
        0
    };
    let last = if count == 0 { 0 } else { rows };
    for i in first..last {
        let row = span(i);
        if !lower && row.is_empty() {
            break;
        }
        is.extend(row.clone().map(|_| i));
        js.extend(row);
    }
    is.extend_from_slice(&js);
    let y = Tensor::from_slice(&is, &[2, count], DType::I64)?.to_dtype(dtype)?;
    o.give(a, y.to_device(o.device_or(a))?)
}

crate::entries! {
    /// `0, 1, ...` below `end`.
    "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| arange(a, Scalar::Int(0), a.scalar(arg!(end))?, Scalar::Int(1));
    /// `start`, `start + step`, ... short of `end`.
    "arange(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| arange(a, a.scalar(arg!(start))?, a.scalar(arg!(end))?, a.scalar(arg!(step))?);
    /// `start`, `start + step`, ... up to `end` where a step meets it. Deprecated: use `arange`.
    "range(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    range;
    /// `steps` evenly spaced numbers from `start` to `end`, both included.
    "linspace(Tensor|Scalar start, Tensor|Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| spaced(a, None);
    /// `base` to the power of `steps` evenly spaced numbers from `start` to `end`.
    "logspace(Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| spaced(a, Some(a.float(arg!(base))?));
    /// Ones on the diagonal, zeros elsewhere.
    "eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| eye(a, a.int(arg!(n))?, a.int(arg!(n))?);
    "eye(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| eye(a, a.int(arg!(n))?, a.int(arg!(m))?);
    /// Row and column indices of the lower triangle.
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| triangle(a, true);
    /// Row and column indices of the upper triangle.
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| triangle(a, false);
}

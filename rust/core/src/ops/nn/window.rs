//! Window functions of signal processing.

use crate::arg;
use crate::device::Device;
use crate::dtype::{default_dtype, DType};
use crate::ensure;
use crate::error::Result;
use crate::ops::shape::create::Options;
use crate::schema::{Args, Signature, Value};
use crate::tensor::Tensor;
use std::f64::consts::PI;

/// A window of `n` points whose value at `i` of `m` intervals is `f(i, m)`. A periodic window is a
/// symmetric one that is longer by a point which it leaves out.
fn window<Sig: Signature>(
    a: &Args<Sig>,
    periodic: bool,
    f: impl Fn(f64, f64) -> f64,
) -> Result<Value> {
    let (name, n) = (a.schema.name, a.int(arg!(window_length))?);
    let o = Options::read(a)?;
    let dtype = o.dtype.unwrap_or_else(default_dtype);
    ensure!(
        dtype.is_float(),
        Runtime,
        "{name} expects floating point dtypes, got: {}",
        dtype.scalar_name()
    );
    ensure!(
        n >= 0,
        Runtime,
        "{name} requires non-negative window_length, got window_length={n}"
    );
    let n = crate::shape::sizes(&[n])?[0];
    crate::tensor::byte_count(&[n], DType::F64)?;
    let m = if periodic { n } else { n.saturating_sub(1) };
    let wide = Tensor::empty(&[n], DType::F64, Device::Cpu)?;
    // SAFETY: a fresh contiguous float64 tensor.
    for (i, y) in unsafe { wide.slice_mut::<f64>() }.iter_mut().enumerate() {
        *y = if n == 1 { 1.0 } else { f(i as f64, m as f64) };
    }
    o.give(a, wide.to_dtype(dtype)?.to_device(o.device_or(a))?)
}

/// A sum of cosines, `c[0] - c[1] cos(t) + c[2] cos(2 t)`.
fn cosines(c: [f64; 3]) -> impl Fn(f64, f64) -> f64 {
    move |i, m| {
        let t = 2.0 * PI * i / m;
        c[0] - c[1] * t.cos() + c[2] * (2.0 * t).cos()
    }
}

/// The modified Bessel function of the first kind and order 0, by its power series: all terms are
/// positive, so nothing cancels.
fn bessel_i0(x: f64) -> f64 {
    let q = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 1.0);
    let mut k = 1.0;
    while term > sum * 1e-17 && k < 2000.0 {
        term *= q / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

fn kaiser(beta: f64) -> impl Fn(f64, f64) -> f64 {
    move |i, m| {
        let r = 2.0 * i / m - 1.0;
        bessel_i0(beta * (1.0 - r * r).max(0.0).sqrt()) / bessel_i0(beta)
    }
}

const HANN: [f64; 3] = [0.5, 0.5, 0.0];
const BLACKMAN: [f64; 3] = [0.42, 0.5, 0.08];

crate::entries! {
    /// The Hann window, sin squared.
    "hann_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| window(a, a.bool(arg!(periodic))?, cosines(HANN));
    /// The Hamming window, alpha - beta cos.
    "hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| window(a, a.bool(arg!(periodic))?, cosines([a.float(arg!(alpha))?, a.float(arg!(beta))?, 0.0]));
    /// The Blackman window.
    "blackman_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| window(a, a.bool(arg!(periodic))?, cosines(BLACKMAN));
    /// The Bartlett window, a triangle.
    "bartlett_window(int window_length, bool periodic=True, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| window(a, a.bool(arg!(periodic))?, |i, m| 1.0 - (2.0 * i / m - 1.0).abs());
    /// The Kaiser window.
    "kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN,
    |a| window(a, a.bool(arg!(periodic))?, kaiser(a.float(arg!(beta))?));
}

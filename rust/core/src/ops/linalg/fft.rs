//! Discrete Fourier transforms along one dimension after another: on the CPU by the `rustfft` crate or,
//! of 2^k values with AVX-512, by passes of our own, on the GPU by a shader of our own.

mod gpu;
mod lines;
mod long;
mod parts;
#[cfg(target_arch = "x86_64")]
mod passes;
#[cfg(target_arch = "x86_64")]
mod stockham;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::dispatch;
use crate::dtype::{default_dtype, DType, Scalar};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Metas, Op, TensorMeta, Tensors};
use crate::ops::shape::join::rearrange::roll;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Span};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use lines::Plans;
use rustfft::num_complex::Complex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::Mutex;

/// Of what the first half stands for all: the other half is its mirror image, conjugated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Half {
    None,
    Input,
    Output,
}

/// `y[j] = scale * sum over k < n of x[k] exp(-+ 2 pi i j k / n)` along a dimension, for the first
/// `out` values of `j`; elements of `x` that are missing are zeros. With a real output, the real part.
///
/// With [`Half::Input`] what lies between the first element and the middle counts twice: the real
/// part of such a sum is the transform of the whole. [`Half::Output`] is its adjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fft {
    dim: usize,
    n: usize,
    out: usize,
    forward: bool,
    scale: Scalar,
    real_input: bool,
    real_output: bool,
    half: Half,
}

impl Derivative for Fft {
    fn name(&self) -> &'static str {
        match (self.real_input, self.real_output) {
            (_, true) => "FftC2RBackward0",
            (true, false) => "FftR2CBackward0",
            (false, false) => "FftC2CBackward0",
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let x = cx.input_meta(0)?;
        let adjoint = Fft {
            out: x.shape[self.dim],
            forward: !self.forward,
            real_input: self.real_output,
            real_output: self.real_input,
            half: match self.half {
                Half::None => Half::None,
                Half::Input => Half::Output,
                Half::Output => Half::Input,
            },
            ..self.clone()
        };
        one(dispatch::call1(adjoint, &[g])?)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Fft {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Fft {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut y = TensorMeta::of(x[0]);
        y.shape[self.dim] = self.out;
        let double = matches!(y.dtype, DType::F64 | DType::C128);
        y.dtype = match (self.real_output, double) {
            (true, false) => DType::F32,
            (true, true) => DType::F64,
            (false, false) => DType::C64,
            (false, true) => DType::C128,
        };
        Ok(SmallVec::from_elem(y, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0].prepared(x[0].dtype())?, &y[0]);
        let span = Span::of(x.shape(), self.dim);
        macro_rules! run {
            ($t:ty, $x:ty, $y:ty, $plans:ident) => {{
                static PLANS: Plans<$t> = Plans(Mutex::new(None));
                // SAFETY: contiguous host memory of these types; nobody else uses the result.
                let (x, y) = unsafe { (x.slice::<$x>(), y.slice_mut::<$y>()) };
                self.lines(&PLANS, span, x, y);
            }};
        }
        match (x.dtype(), self.real_output) {
            (DType::F32, false) => run!(f32, f32, Complex<f32>, PLANS),
            (DType::F32, true) => run!(f32, f32, f32, PLANS),
            (DType::C64, false) => run!(f32, Complex<f32>, Complex<f32>, PLANS),
            (DType::C64, true) => run!(f32, Complex<f32>, f32, PLANS),
            (DType::F64, false) => run!(f64, f64, Complex<f64>, PLANS),
            (DType::F64, true) => run!(f64, f64, f64, PLANS),
            (DType::C128, false) => run!(f64, Complex<f64>, Complex<f64>, PLANS),
            (DType::C128, true) => run!(f64, Complex<f64>, f64, PLANS),
            (other, _) => bail!(Runtime, "Unsupported dtype {}", other.scalar_name()),
        }
        Ok(())
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(gpu::run(gpu, self, x[0], &y[0]))
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::by_parts(self, x[0])
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }
}

/// From and to which numbers a transform goes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Complex,
    /// Real numbers to the first half of their transform.
    FromReal,
    /// The first half of a transform to real numbers.
    ToReal,
}

/// The factor of one dimension.
fn scale(norm: Option<&str>, n: usize, forward: bool) -> Result<Scalar> {
    Ok(Scalar::Float(match (norm.unwrap_or("backward"), forward) {
        ("backward", true) | ("forward", false) => 1.0,
        ("backward", false) | ("forward", true) => 1.0 / n as f64,
        ("ortho", _) => 1.0 / (n as f64).sqrt(),
        (other, _) => bail!(
            Runtime,
            "Invalid normalization mode: \"{other}\"; it must be forward, backward or ortho"
        ),
    }))
}

/// Transforms along `dims`, whose lengths are `sizes` where they are given; of the last one half
/// stands for all where `kind` says so.
fn transform(
    name: &str,
    x: &Tensor,
    (kind, forward): (Kind, bool),
    dims: &[usize],
    sizes: &[Option<i64>],
    norm: Option<&str>,
) -> Result<Tensor> {
    ensure!(
        kind != Kind::FromReal || !x.dtype().is_complex(),
        Runtime,
        "{name} expects a {} input tensor, but got {}",
        if name == "rfftn" {
            "real-valued"
        } else {
            "real"
        },
        x.dtype().scalar_name()
    );
    let kept = x.dtype();
    let float = if kept.is_integral() {
        default_dtype()
    } else {
        kept
    };
    let dtype = match float {
        DType::F32 | DType::C64 => (DType::F32, DType::C64),
        DType::F64 | DType::C128 => (DType::F64, DType::C128),
        other => bail!(
            Runtime,
            "Unsupported dtype {}: {name} takes float32, float64, complex64 and complex128",
            other.scalar_name()
        ),
    };
    let mut y = x.to_dtype(if kept.is_complex() { dtype.1 } else { dtype.0 })?;
    let last = dims.len().wrapping_sub(1);
    // What one transform leaves out no other has to transform.
    for (&dim, size) in dims.iter().zip(sizes).filter(|_| dims.len() > 1) {
        match size {
            Some(n) if (1..y.size(dim) as i64).contains(n) => y = y.narrow(dim as i64, 0, *n)?,
            _ => {}
        }
    }
    let mut order: SmallVec<[usize; 4]> = (0..dims.len()).collect();
    if kind == Kind::FromReal {
        order.rotate_right(1); // The last dimension first: the others are complex then.
    }
    for i in order {
        let (dim, half) = (dims[i], kind != Kind::Complex && i == last);
        let size = y.shape().get(dim).copied().unwrap_or(1) as i64;
        let own = match half && kind == Kind::ToReal {
            true => 2 * (size - 1),
            false => size,
        };
        let n = sizes[i].unwrap_or(own);
        ensure!(
            n >= 1,
            Runtime,
            "Invalid number of data points ({n}) specified"
        );
        let n = n as usize;
        let op = Fft {
            dim,
            n,
            out: if half && kind == Kind::FromReal {
                n / 2 + 1
            } else {
                n
            },
            forward,
            scale: scale(norm, n, forward)?,
            real_input: !y.dtype().is_complex(),
            real_output: half && kind == Kind::ToReal,
            half: match (half, kind) {
                (true, Kind::ToReal) => Half::Input,
                _ => Half::None,
            },
        };
        y = dispatch::call1(op, &[&y])?;
    }
    Ok(y)
}

/// Refuses to name dimensions of a tensor without any.
fn there(x: &Tensor, dims: &[i64]) -> Result<()> {
    match dims.first() {
        Some(d) if x.ndim() == 0 => Err(Error::index(format!(
            "Dimension specified as {d} but tensor has no dimensions"
        ))),
        _ => Ok(()),
    }
}

/// `fft` and its kin along one dimension: input, n, dim, norm.
fn along<Sig: Signature>(name: &str, a: &Args<Sig>, what: (Kind, bool)) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let dim = a.int(arg!(dim))?;
    there(x, &[dim])?;
    let dim = shape::dim(dim, x.ndim())?;
    Ok(transform(
        name,
        x,
        what,
        &[dim],
        &[a.opt_int(arg!(n))],
        a.opt_str(arg!(norm)),
    )?
    .into())
}

/// `fftn` and its kin along several: input, s, dim, norm.
fn over<Sig: Signature>(name: &str, a: &Args<Sig>, what: (Kind, bool)) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let (s, dims) = (a.opt_ints(arg!(s)), a.opt_ints(arg!(dim)));
    if let (Some(s), Some(dims)) = (s, dims) {
        ensure!(
            s.len() == dims.len(),
            Runtime,
            "When given, dim and shape arguments must have the same length, got {} and {}",
            dims.len(),
            s.len()
        );
    }
    there(x, dims.unwrap_or_default())?;
    let dims: SmallVec<[usize; 5]> = match (dims, s) {
        (Some(dims), _) => shape::dims(dims, x.ndim()).map_err(|e| match e.kind {
            ErrorKind::Runtime => Error::runtime("FFT dims must be unique"),
            _ => e,
        })?,
        (None, Some(s)) => {
            ensure!(
                s.len() <= x.ndim(),
                Runtime,
                "Got shape with {} values but input tensor only has {} dimensions.",
                s.len(),
                x.ndim()
            );
            (x.ndim() - s.len()..x.ndim()).collect()
        }
        (None, None) => (0..x.ndim()).collect(),
    };
    ensure!(
        what.0 == Kind::Complex || !dims.is_empty(),
        Runtime,
        "{name} must transform at least one axis"
    );
    let size = |i: usize| s.map(|s| s[i]).filter(|&n| n != -1);
    let sizes: SmallVec<[Option<i64>; 5]> = (0..dims.len()).map(size).collect();
    Ok(transform(name, x, what, &dims, &sizes, a.opt_str(arg!(norm)))?.into())
}

/// Rolls each dimension by half of its length, rounded up where `back`.
fn shift<Sig: Signature>(a: &Args<Sig>, back: bool) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let all: Vec<i64> = (0..x.ndim() as i64).collect();
    let dims = a.opt_ints(arg!(dim)).unwrap_or(&all);
    there(x, dims)?;
    let mut by = Vec::with_capacity(dims.len());
    for &d in dims {
        let n = x
            .shape()
            .get(shape::dim(d, x.ndim())?)
            .copied()
            .unwrap_or(1);
        by.push(((n + back as usize) / 2) as i64);
    }
    match dims.is_empty() {
        true => Ok(x.clone().into()),
        false => Ok(roll(x, &by, dims)?.into()),
    }
}

const C: Kind = Kind::Complex;
const R: Kind = Kind::FromReal;
const H: Kind = Kind::ToReal;

crate::entries! {
    /// The discrete Fourier transform along a dimension.
    "fft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("fft", a, (C, true));
    /// The inverse of `fft`.
    "ifft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("ifft", a, (C, false));
    /// The first half of the transform of real numbers.
    "rfft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("rfft", a, (R, true));
    /// The inverse of `rfft`.
    "irfft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("irfft", a, (H, false));
    /// The transform of a signal whose first half is given, the other being its conjugate.
    "hfft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("hfft", a, (H, true));
    /// The inverse of `hfft`.
    "ihfft(Tensor input, int? n=None, int dim=-1, str? norm=None) -> Tensor", FFT | CASTS,
    |a| along("ihfft", a, (R, false));
    /// `fft` along two dimensions.
    "fft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("fft2", a, (C, true));
    /// The inverse of `fft2`.
    "ifft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("ifft2", a, (C, false));
    /// `rfft` along the last of two dimensions, `fft` along the other.
    "rfft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("rfft2", a, (R, true));
    /// The inverse of `rfft2`.
    "irfft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("irfft2", a, (H, false));
    /// `hfft` along the last of two dimensions, `fft` along the other.
    "hfft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("hfft2", a, (H, true));
    /// The inverse of `hfft2`.
    "ihfft2(Tensor input, int[1]? s=None, int[1]? dim=[-2, -1], str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("ihfft2", a, (R, false));
    /// `fft` along several dimensions.
    "fftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("fftn", a, (C, true));
    /// The inverse of `fftn`.
    "ifftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("ifftn", a, (C, false));
    /// `rfft` along the last of several dimensions, `fft` along the others.
    "rfftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("rfftn", a, (R, true));
    /// The inverse of `rfftn`.
    "irfftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("irfftn", a, (H, false));
    /// `hfft` along the last of several dimensions, `fft` along the others.
    "hfftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("hfftn", a, (H, true));
    /// The inverse of `hfftn`.
    "ihfftn(Tensor input, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", FFT | CASTS,
    |a| over("ihfftn", a, (R, false));
    /// Moves the zero frequency to the middle.
    "fftshift(Tensor input, int[1]? dim=None) -> Tensor", FFT, |a| shift(a, false);
    /// The inverse of `fftshift`.
    "ifftshift(Tensor input, int[1]? dim=None) -> Tensor", FFT, |a| shift(a, true);
}

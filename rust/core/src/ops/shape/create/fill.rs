//! One value everywhere: `fill_`, and what a type can hold.

use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::non_temporal;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{check_range, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Derivative, Fast, Grads, Metas, Op, Rare, Repeats, TensorMeta, Traits};
use crate::ops::pointwise::types::{fits, held};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{ensure, with_element};
use smallvec::SmallVec;

/// One value everywhere. The gradient of what was there before is zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    pub value: Scalar,
    pub name: &'static str,
}

impl Derivative for Fill {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        zero_grads(g, 1)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        Ok(Some(Tangents::from_elem(None, cx.inputs())))
    }
}

impl Op for Fill {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            repeats: Repeats::Alike,
            ..Traits::POINTWISE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, _x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_scalar(self.value)
    }
    fn gpu(&self, _gpu: &Gpu, _x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        y[0].write_scalar(self.value).map(|()| true)
    }
    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }
}

impl Fast for Fill {
    fn call_into(&self, _x: &[&Tensor], y: &Tensor) -> Result<bool> {
        let small = crate::ops::shape::copy::is_small(y);
        if small {
            y.write_scalar(self.value)?;
        }
        Ok(small)
    }
}

/// Zeros of the gradient's shape for the first input, nothing for the other `n - 1`.
pub fn zero_grads(g: &[Option<Tensor>], n: usize) -> Result<Grads> {
    let mut out: Grads = SmallVec::from_elem(None, n);
    if let Some(g) = &g[0] {
        out[0] = Some(Tensor::zeros(g.shape(), g.dtype(), g.device())?);
    }
    Ok(out)
}

impl Tensor {
    /// Writes one value everywhere, without touching history or version.
    pub fn write_scalar(&self, value: Scalar) -> Result<()> {
        if self.device() != Device::Cpu {
            return crate::transfer::fill(self, value);
        }
        if self.dtype().is_complex() {
            self.component(0).write_scalar(value)?;
            return self.component(1).write_scalar(Scalar::Float(0.0));
        }
        if self.dtype().is_rare() {
            let bits = Tensor::number(value)?.to_dtype(self.dtype())?.as_signed();
            return self.as_signed().write_scalar(bits.item()?);
        }
        if self.device() == Device::Cpu && self.layout().is_dense() {
            let n = self.numel();
            if n == 0 {
                return Ok(());
            }
            with_element!(self.dtype(), T => {
                use crate::cpu::elements::Element;
                let v = match value {
                    Scalar::Float(f) => T::of_f64(f),
                    Scalar::UInt(u) if T::DTYPE.is_float() => T::of_f64(u as f64),
                    other => T::of_i64(other.i64()),
                };
                let to = Ptr::new(self.ptr::<T>());
                let non_temporal = non_temporal::is_worth_filling(n * size_of::<T>());
                parallel_for(n, (1 << 18) / size_of::<T>(), |r| {
                    // SAFETY: dense host memory of `n` elements of this type; ranges of different
                    // threads are disjoint.
                    unsafe {
                        let to = to.at(r.start);
                        if non_temporal {
                            non_temporal::fill(v, to, r.len());
                            non_temporal::fence();
                        } else {
                            crate::cpu::copy::fill(v, to, r.len());
                        }
                    }
                });
            });
            return Ok(());
        }
        let number = Tensor::number(value)?.to_dtype(self.dtype())?;
        self.write_from(&number.to_device(self.device())?)
    }

    /// `fill_`, recorded.
    pub fn fill_(&self, value: Scalar, name: &'static str) -> Result<()> {
        check_range(value, self.dtype())?;
        dispatch::call_into(Fill { value, name }, &[self], self, true).map(|_| ())
    }

    /// Writes NaN, or the largest value of a type without it.
    pub fn fill_unwritten(&self) -> Result<()> {
        match self.dtype() {
            t if t.is_complex() => self.as_real()?.fill_unwritten(),
            t if t.is_float() => self.write_scalar(Scalar::Float(f64::NAN)),
            DType::U64 => self.write_scalar(Scalar::UInt(u64::MAX)),
            t => self.write_scalar(Scalar::Int(t.limits().1)),
        }
    }
}

/// The type that a number written to one element has to fit: what lies beyond a short floating type
/// becomes an infinity there, or the largest number, as in PyTorch.
pub fn asked_of_one(dtype: DType) -> DType {
    match dtype.is_half() || dtype.is_float8() {
        true => DType::F64,
        false => dtype,
    }
}

/// The type that a number which fills `y` has to fit.
pub(super) fn asked_of(y: &Tensor) -> DType {
    match y.numel() == 1 && y.device() == Device::Cpu {
        true => asked_of_one(y.dtype()),
        false => y.dtype(),
    }
}

/// The value that `fill` writes, from a number or a 0-d tensor, with its place in a graph.
fn fill_value(t: &Tensor) -> Result<()> {
    ensure!(
        t.ndim() == 0,
        Runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        t.ndim()
    );
    Ok(())
}

/// Writes `value` into `x`; the gradient of the value is the sum of the result's.
pub(super) fn fill_into(x: &Tensor, value: &Tensor) -> Result<()> {
    fill_value(value)?;
    // A tensor is copied, whatever its type; a number has to fit.
    if value.stands() || !value.has_data() || value.requires_grad() {
        return x.copy_from(value);
    }
    let value = match value.is_wrapped() {
        true => {
            fits(value, asked_of(x))?;
            held(value, x.dtype())?
        }
        false => value.clone(),
    };
    match x.dtype().is_complex() && value.dtype().is_complex() {
        true => x.copy_from(&value),
        false => {
            let fitting =
                value.dtype() == x.dtype() || value.is_wrapped() && asked_of(x) == x.dtype();
            let value = if fitting {
                value
            } else {
                value.to_dtype(x.dtype())?
            };
            x.fill_(value.item()?, "FillBackward0")
        }
    }
}

/// The elements on the main diagonal; with `wrap`, one row behind its end it begins again.
pub(super) fn diagonals(x: &Tensor, wrap: bool) -> Result<Vec<Tensor>> {
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "fill_diagonal_: dimensions must larger than 1, got a tensor of shape {}",
        Show(x.shape())
    );
    let (rows, n) = (x.size(0), *x.shape().iter().min().unwrap_or(&0));
    ensure!(
        x.ndim() == 2 || x.shape().iter().all(|&d| d == rows),
        Runtime,
        "fill_diagonal_: all dimensions of input must be of equal length, got shape {}",
        Show(x.shape())
    );
    if n == 0 {
        return Ok(Vec::new());
    }
    let across: isize = x.strides().iter().sum();
    let line = |size: &[i64], strides: &[i64], row: usize| {
        let offset = x.offset() as isize + row as isize * x.strides()[0];
        x.as_strided(size, strides, Some(offset as i64))
    };
    if !wrap || x.ndim() > 2 {
        return Ok(vec![line(&[n as i64], &[across as i64], 0)?]);
    }
    let (cols, step) = (x.size(1), x.size(1) + 1);
    let blocks = rows / step;
    let strides = [step as i64 * x.strides()[0] as i64, across as i64];
    let rest = (rows % step).min(cols) as i64;
    Ok(vec![
        line(&[blocks as i64, cols as i64], &strides, 0)?,
        line(&[rest], &strides[1..], blocks * step * (rest > 0) as usize)?,
    ])
}

//! A convolution on the host: its sizes, and which of the ways takes it.

use super::cpu::{self, direct::Direct, Geometry};
use super::{transposed, Conv, Role, Sizes};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::with_compute;

/// Elements that are widened at once where the type is not the one computed in.
const WIDENED: usize = 1 << 20;

impl Conv {
    /// Computes `y` of the inputs, in whichever type.
    pub(super) fn on_host(&self, x: &[&Tensor], y: &Tensor) -> Result<()> {
        let t = y.dtype().compute();
        let bias = x.get(2).map(|b| b.prepared(t)).transpose()?;
        if let Some((op, a, b)) = self.commuted(x[0], x[1])? {
            let mut shape = y.shape().clone();
            shape.swap(0, 1);
            let mut out = Tensor::empty(&shape, t, y.device())?;
            op.compute(&a, &b, None, &out, t)?;
            if let Some(bias) = bias {
                let mut column = Dims::from_elem(1, y.ndim());
                column[0] = bias.numel();
                out = out.add(&bias.detach().reshape_to(&column)?)?;
            }
            return y.write_from(&out.alias(out.layout().transpose(0, 1)?));
        }
        let pointwise = self.kernel.iter().all(|&k| k == 1);
        if y.dtype() == t || self.role == Role::Weight || !pointwise {
            return self.compute(x[0], x[1], bias.as_ref(), y, t);
        }
        // Memory bounds these: widened images and results stay in the cache if they are few.
        let batch = x[0].size(0);
        let image = (x[0].numel() + y.numel()) / batch.max(1);
        let each = (WIDENED / image.max(1)).clamp(1, batch.max(1));
        for first in (0..batch).step_by(each) {
            let n = each.min(batch - first) as i64;
            let part = |t: &Tensor| -> Result<Tensor> {
                Ok(t.alias(t.layout().narrow(0, first as i64, n)?))
            };
            self.compute(&part(x[0])?, x[1], bias.as_ref(), &part(y)?, t)?;
        }
        Ok(())
    }

    /// The same gradient for the input with the kernel as what is convolved: the two are alike, and
    /// of the longer one most elements would be read with zeros around the shorter one.
    fn commuted(&self, y: &Tensor, w: &Tensor) -> Result<Option<(Conv, Tensor, Tensor)>> {
        let count = |v: &Sizes| v.iter().product::<usize>();
        let (kernel, source) = (count(&self.kernel), count(&self.output));
        if self.role != Role::Input || self.groups != 1 || kernel < 64 || kernel / 4 < source {
            return Ok(None);
        }
        let op = Conv {
            stride: self.dilation.clone(),
            dilation: self.stride.clone(),
            kernel: self.output.clone(),
            output: self.kernel.clone(),
            ..self.clone()
        };
        Ok(Some((op, transposed(w)?, transposed(y)?)))
    }

    fn geometry(&self, a: &Tensor, b: &Tensor, y: &Tensor) -> Geometry {
        let (batch, outputs, inputs) = match self.role {
            Role::Output => (a.size(0), b.size(0), a.size(1)),
            Role::Input => (a.size(0), b.size(0), y.size(1)),
            Role::Weight => (a.size(0), b.size(1), a.size(1)),
        };
        let wide = |v: &Sizes, rest: usize| -> [usize; 3] {
            std::array::from_fn(|d| (d + v.len()).checked_sub(3).map_or(rest, |i| v[i]))
        };
        let signed = |v: &Sizes, rest: usize| wide(v, rest).map(|n| n as isize);
        Geometry {
            batch,
            groups: self.groups,
            inputs: inputs / self.groups,
            outputs: outputs / self.groups,
            input: wide(&self.input, 1),
            kernel: wide(&self.kernel, 1),
            output: wide(&self.output, 1),
            stride: signed(&self.stride, 1),
            padding: signed(&self.padding, 0),
            dilation: signed(&self.dilation, 1),
        }
    }

    /// The convolution of tensors of any type by way of `t`, the type of `bias`.
    fn compute(
        &self,
        a: &Tensor,
        b: &Tensor,
        bias: Option<&Tensor>,
        y: &Tensor,
        t: DType,
    ) -> Result<()> {
        let halves = [a, b, y].iter().all(|x| x.dtype() == DType::BF16);
        if halves && self.role != Role::Weight {
            let (a, b) = (a.prepared(DType::BF16)?, b.prepared(DType::BF16)?);
            let out = Tensor::empty(y.shape(), t, y.device())?;
            let start = bias.map_or(std::ptr::null(), |b| b.ptr::<f32>() as *const f32);
            let (g, input) = (self.geometry(&a, &b, y), self.role == Role::Input);
            // SAFETY: all tensors are contiguous, of these types, and have the sizes of `g`.
            if unsafe { cpu::pairs::run(&g, input, a.ptr(), b.ptr(), start, out.ptr()) } {
                return y.write_from(&out);
            }
        }
        self.widened(&a.prepared(t)?, &b.prepared(t)?, bias, y)
    }

    /// The convolution of tensors of the type that it computes in; `y` may have another one.
    fn widened(&self, a: &Tensor, b: &Tensor, bias: Option<&Tensor>, y: &Tensor) -> Result<()> {
        let t = a.dtype();
        let out = if y.dtype() == t {
            y.clone()
        } else {
            Tensor::empty(y.shape(), t, y.device())?
        };
        let geometry = self.geometry(a, b, y);
        if t == DType::F32 {
            let bias = bias.map_or(std::ptr::null(), |b| b.ptr::<f32>() as *const f32);
            // SAFETY: all tensors are contiguous, of type f32, and have the sizes of `geometry`.
            let done = unsafe {
                let (a, b, y) = (a.ptr::<f32>(), b.ptr::<f32>(), out.ptr::<f32>());
                match self.role {
                    Role::Output => cpu::winograd::forward(&geometry, a, b, bias, y),
                    Role::Input => cpu::winograd::input(&geometry, a, b, bias, y),
                    Role::Weight => cpu::winograd::weight(&geometry, a, b, y),
                }
            };
            if done {
                return if y.dtype() == t {
                    Ok(())
                } else {
                    y.write_from(&out)
                };
            }
        }
        with_compute!(t, T => {
            let start = bias.map_or(std::ptr::null(), |b| b.ptr::<T>() as *const T);
            // SAFETY: all tensors are contiguous, of type T, and have the sizes of `geometry`.
            unsafe {
                let (a, b, y) = (a.ptr::<T>(), b.ptr::<T>(), out.ptr::<T>());
                let done = match self.role {
                    Role::Output => Direct::forward(&geometry).run(a, b, start, y),
                    Role::Input => Direct::input(&geometry).run(a, b, start, y),
                    Role::Weight => {
                        !geometry.is_empty()
                            && (cpu::single::single(&geometry, a, b, y)
                                || cpu::weight::weight(&geometry, a, b, y))
                    }
                };
                match self.role {
                    _ if done => {}
                    Role::Output => geometry.forward(a, b, start, y),
                    Role::Input => geometry.input(a, b, start, y),
                    Role::Weight => geometry.weight(a, b, y),
                }
            }
        });
        if y.dtype() != t {
            y.write_from(&out)?;
        }
        Ok(())
    }
}

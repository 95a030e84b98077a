//! The largest element of each window.

mod parts;

use super::gpu;
use super::indices::{Gather, Scatter, NOWHERE};
use super::regular::{lines, wins, Backward, Forward, Indices, Regular};
use super::windows::Span;
use super::{check_input, windows, Windows};
use crate::arg;
use crate::autograd::{mode, Jvp, Tangents, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::number::Number;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Asked, Cut, Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::nn::resample::gpu::Pool2d;
use crate::schema::{Args, Signature, Value};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{ensure, transfer, with_compute};
use smallvec::SmallVec;
use std::sync::Arc;

/// The largest element of each window and its index in the plane; NaN wins. A window of padding
/// alone has the type's least value and the index [`NOWHERE`]. `spans` holds the windows along each
/// of three dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MaxPool {
    pub(super) name: &'static str,
    /// How many of the last dimensions are pooled.
    pub(super) n: usize,
    pub(super) spans: Arc<[Vec<Span>; 3]>,
    /// The windows where they are evenly spaced and have at most two dimensions.
    pub(super) grid: Option<Pool2d>,
    /// The windows where they are evenly spaced, for the host.
    pub(super) regular: Option<Regular>,
    pub(super) indices: Indices,
}

/// The gradient of a [`MaxPool`] whose indices are numbers: inputs are g and those.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MaxPoolGrad {
    name: &'static str,
    n: usize,
    of: Regular,
}

impl MaxPoolGrad {
    fn plane(&self) -> Dims {
        Dims::from_slice(&self.of.input[3 - self.n..])
    }
}

impl Derivative for MaxPoolGrad {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::backward(self.name))
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        crate::bail!(
            Assertion,
            "{}: the fused gradient is never recorded",
            self.name
        )
    }
}

/// Where in its plane the element is that a number within its window means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Places {
    of: Regular,
}

impl Derivative for Places {
    fn name(&self) -> &'static str {
        "MaxPoolIndicesBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(Grads::from_elem(None, 1))
    }
}

impl Op for Places {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::new(x[0].shape(), DType::I64, x[0].device());
        Ok(Metas::from_elem(meta, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let codes = x[0].prepared(DType::U8)?;
        // SAFETY: contiguous tensors of these types; the second is this call's own.
        unsafe { (self.of.in_lines()).indices(codes.slice(), y[0].slice_mut()) };
        Ok(())
    }
}

impl Op for MaxPoolGrad {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let lead = x[0].ndim() - self.n;
        let mut shape = Dims::from_slice(&x[0].shape()[..lead]);
        shape.extend_from_slice(&self.plane());
        Ok(Metas::from_elem(
            TensorMeta::new(&shape, x[0].dtype(), x[0].device()),
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (g, codes) = (x[0].prepared(x[0].dtype())?, x[1].prepared(DType::U8)?);
        let large: usize = self.of.input.iter().product();
        if y[0].numel() == 0 {
            return Ok(());
        }
        let job = Backward {
            of: self.of.in_lines(),
            planes: y[0].numel() / large,
            g: g.bytes_ptr(),
            codes: codes.bytes_ptr(),
            dx: y[0].bytes_ptr(),
            dtype: y[0].dtype(),
        };
        with_compute!(y[0].dtype(), T => {
            // SAFETY: contiguous tensors of these types; the output is this call's own, and the
            // numbers are those that the forward pass gave.
            unsafe { job.run::<T>() };
        });
        Ok(())
    }
}

impl Derivative for MaxPool {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([1])
    }
    fn steps(&self) -> Mask {
        1
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 1));
        };
        let mut indices = cx.output(1)?;
        if let (Indices::Numbers, Some(of)) = (self.indices, self.regular) {
            if !mode::traced() {
                let (name, n) = (self.name, self.n);
                let d = dispatch::compute(&MaxPoolGrad { name, n, of }, &[g, &indices])?;
                return Ok(d.into_iter().map(Some).collect());
            }
            indices = dispatch::call1(Places { of }, &[&indices])?;
        }
        let shape = &cx.input_meta(0)?.shape;
        let plane = Dims::from_slice(&shape[shape.len() - self.n..]);
        let op = Scatter {
            name: self.name,
            plane,
            add: true,
            grid: self.grid,
        };
        Ok(Grads::from_elem(
            Some(dispatch::call1(op, &[g, &indices])?),
            1,
        ))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (Some(t), Some(mut places)) = (cx.tangent(0), cx.outputs()?.get(1).cloned()) else {
            return Ok(None);
        };
        if let (Indices::Numbers, Some(of)) = (self.indices, self.regular) {
            places = dispatch::call1(Places { of }, &[&places])?;
        }
        let op = Gather {
            name: self.name,
            n: self.n,
            add: true,
            grid: self.grid,
        };
        Ok(Some(Tangents::from_vec(vec![
            Some(dispatch::call1(op, &[t, &places])?),
            None,
        ])))
    }
}

impl Op for MaxPool {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let lead = x[0].ndim() - self.n;
        let mut shape = Dims::from_slice(&x[0].shape()[..lead]);
        match &self.regular {
            Some(of) => shape.extend_from_slice(&of.output[3 - self.n..]),
            None => shape.extend(self.spans[3 - self.n..].iter().map(Vec::len)),
        }
        crate::shape::numel(&shape)?;
        let y = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device(),
        };
        let dtype = match self.indices {
            Indices::Plane => DType::I64,
            Indices::Numbers => DType::U8,
            Indices::None => return Ok(Metas::from_elem(y, 1)),
        };
        let indices = TensorMeta { dtype, ..y.clone() };
        Ok(Metas::from_iter([y, indices]))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if let Some(of) = self.regular {
            return self.regular(of, x[0], y);
        }
        let x = x[0].prepared(x[0].dtype().compute())?;
        let out = y[0].draft(x.dtype())?;
        if out.numel() == 0 {
            return Ok(());
        }
        let mut sizes = [1; 3];
        for d in 0..self.n {
            sizes[3 - self.n + d] = x.size(x.ndim() - self.n + d);
        }
        let least = y[0].dtype().limits().0;
        with_compute!(x.dtype(), T => {
            let least = if T::DTYPE.is_float() { T::LEAST } else { T::of_i64(least) };
            // SAFETY: contiguous tensors of these types; outputs are this call's own.
            unsafe { self.planes(sizes, least, x.slice(), out.slice_mut(), y[1].slice_mut()) };
        });
        y[0].write_from(&out)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::along(0..x[0].ndim() - self.n, x.len(), y.len())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = transfer::dense(gpu, x[0])?;
        let Some(grid) = &self.grid else {
            return transfer::ran(windows::max(gpu, &self.spans, self.n, &x, &y[0], &y[1]));
        };
        transfer::ran(gpu::max(gpu, grid, &x, &y[0], &y[1]))
    }

    /// Of what a kernel does not bind half of the windows after the other.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::by_halves(self, x[0])
    }
}

impl MaxPool {
    fn regular(&self, of: Regular, x: &Tensor, y: &[Tensor]) -> Result<()> {
        let x = x.prepared(x.dtype())?;
        let small: usize = of.output.iter().product();
        if y[0].numel() == 0 {
            return Ok(());
        }
        let planes = y[0].numel() / small;
        // Of windows along one dimension numbers are the same in either order.
        let several = of.kernel.iter().filter(|&&k| k > 1).count() > 1;
        let numbered = self.indices == Indices::Numbers && !several;
        let fits =
            |(d, _): &_| of.behind(*d) != [1; 2] && (numbered || self.indices == Indices::None);
        if let Some((d, moved)) = of.with_long_dim_last().filter(fits) {
            // Columns as rows, and back.
            let columns = |t: &Tensor, size: [usize; 3], behind: usize| {
                let lead = planes * size[..d].iter().product::<usize>();
                t.alias(Layout {
                    shape: Dims::from_slice(&[lead, behind, size[d]]),
                    strides: SmallVec::from_slice(&[
                        (size[d] * behind) as isize,
                        1,
                        behind as isize,
                    ]),
                    offset: t.offset(),
                })
            };
            let [inside, outside] = of.behind(d);
            let x = columns(&x, of.input, inside).prepared(x.dtype())?;
            let mut rows = Tensors::new();
            for y in y {
                rows.push(Tensor::empty(y.shape(), y.dtype(), y.device())?);
            }
            self.planes_of(moved, planes, &x, &rows)?;
            for (to, from) in y.iter().zip(&rows) {
                let to = columns(to, of.output, outside);
                to.write_from(&from.alias(Layout::contiguous(to.shape())))?;
            }
            return Ok(());
        }
        self.planes_of(of.in_lines(), planes, &x, y)
    }

    /// The pool of contiguous planes.
    fn planes_of(&self, of: Regular, planes: usize, x: &Tensor, y: &[Tensor]) -> Result<()> {
        let job = Forward {
            of,
            planes,
            x: x.bytes_ptr(),
            y: y[0].bytes_ptr(),
            dtype: x.dtype(),
            at: y.get(1).map_or(std::ptr::null_mut(), Tensor::bytes_ptr),
            indices: self.indices,
        };
        with_compute!(x.dtype(), T => {
            // SAFETY: contiguous tensors of the sizes that `of` names; outputs are this call's
            // own.
            unsafe { job.run::<T>() };
        });
        Ok(())
    }

    pub(super) fn planes<T: Number>(
        &self,
        [d, h, w]: [usize; 3],
        least: T,
        x: &[T],
        y: &mut [T],
        at: &mut [i64],
    ) {
        let [zs, ys, xs] = &*self.spans;
        let (small, large) = (zs.len() * ys.len() * xs.len(), d * h * w);
        let planes = y.len() / small;
        let (y, at) = (Ptr::new(y.as_mut_ptr()), Ptr::new(at.as_mut_ptr()));
        parallel_for(planes, (1 << 13) / large.max(1) + 1, |range| {
            for p in range {
                let x = &x[p * large..(p + 1) * large];
                let mut o = p * small;
                for z in zs {
                    for v in ys {
                        for u in xs {
                            let inside = [z, v, u].iter().all(|s| s.start < s.end);
                            let first = (z.start * h + v.start) * w + u.start;
                            let (mut place, mut best) = match inside {
                                true => (first as i64, x[first]),
                                false => (NOWHERE, least),
                            };
                            let mut a = z.start;
                            while a < z.end {
                                let mut b = v.start;
                                while b < v.end {
                                    let row = (a * h + b) * w;
                                    let mut c = row + u.start;
                                    if u.step == 1 && u.end - u.start >= lines::MANY {
                                        c += lines::largest(&x[c..row + u.end]);
                                        if wins(x[c], best) {
                                            (best, place) = (x[c], c as i64);
                                        }
                                        c = row + u.end;
                                    }
                                    while c < row + u.end {
                                        let value = x[c];
                                        #[allow(clippy::eq_op)]
                                        if value > best || value != value {
                                            best = value;
                                            place = c as i64;
                                        }
                                        c += u.step;
                                    }
                                    b += v.step;
                                }
                                a += z.step;
                            }
                            // SAFETY: plane `p` belongs to this range alone.
                            unsafe {
                                *y.at(o) = best;
                                *at.at(o) = place;
                            }
                            o += 1;
                        }
                    }
                }
            }
        });
    }
}

/// Runs a max pool; `indices` asks for them as well.
pub(super) fn max_pool<Sig: Signature>(
    name: &'static str,
    node: &'static str,
    n: usize,
    indices: bool,
    a: &Args<Sig>,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let w = Windows::read(
        name,
        n,
        a.ints(arg!(kernel_size))?,
        a.ints(arg!(stride))?,
        a.ints(arg!(padding))?,
        a.ints(arg!(dilation))?,
        a.bool(arg!(ceil_mode))?,
    )?;
    check_input(name, x, n)?;
    ensure!(
        x.dtype() != DType::Bool && !x.dtype().is_complex(),
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out = w.outputs(name, x)?;
    let (regular, given) = (regular(x, &w, &out), indices);
    let recorded = dispatch::recorded(&[x]);
    let compact = regular.is_some_and(|r| r.volume() <= 256 && (0..3).all(|d| r.is_near(d)));
    let indices = match (indices, x.device().is_gpu()) {
        (false, false) if regular.is_some() && !recorded => Indices::None,
        (false, false) if compact => Indices::Numbers,
        _ => Indices::Plane,
    };
    let op = MaxPool {
        name: node,
        n,
        // The host has no need of these where windows are regular.
        spans: Arc::new(match regular.is_some() && indices != Indices::Plane {
            true => Default::default(),
            false => spans(x, &w, &out),
        }),
        grid: w.grid(x, &out),
        regular,
        indices,
    };
    let mut y = dispatch::call(op, &[x])?;
    Ok(match given {
        true => Value::Tuple(y.into_vec()),
        false => y.swap_remove(0).into(),
    })
}

/// Where the windows read along each dimension.
fn spans(x: &Tensor, w: &Windows, out: &[usize]) -> [Vec<Span>; 3] {
    let n = out.len();
    let mut spans: [Vec<Span>; 3] = std::array::from_fn(|_| {
        vec![Span {
            start: 0,
            end: 1,
            step: 1,
        }]
    });
    for d in 0..n {
        let size = x.size(x.ndim() - n + d) as i64;
        let (k, s, p, l) = (w.kernel[d], w.stride[d], w.padding[d], w.dilation[d]);
        spans[3 - n + d] = (0..out[d] as i64)
            .map(|o| {
                let from = o * s - p;
                let end = (from + (k - 1) * l + 1).min(size);
                // The first element at or after 0.
                let start = if from < 0 { from.rem_euclid(l) } else { from };
                Span {
                    start: start as usize,
                    end: end.max(0) as usize,
                    step: l as usize,
                }
            })
            .collect();
    }
    spans
}

/// The windows with all sizes, where nothing overflows.
fn regular(x: &Tensor, w: &Windows, out: &[usize]) -> Option<Regular> {
    let n = out.len();
    let all = |v: &[i64], rest: usize| -> Option<[usize; 3]> {
        let mut to = [rest; 3];
        for (to, &v) in to[3 - n..].iter_mut().zip(v) {
            *to = usize::try_from(v).ok().filter(|&v| v < 1 << 20)?;
        }
        Some(to)
    };
    let (mut input, mut output) = ([1; 3], [1; 3]);
    input[3 - n..].copy_from_slice(&x.shape()[x.ndim() - n..]);
    output[3 - n..].copy_from_slice(out);
    let of = Regular {
        input,
        output,
        kernel: all(&w.kernel, 1)?,
        stride: all(&w.stride, 1)?,
        padding: all(&w.padding, 0)?,
        dilation: all(&w.dilation, 1)?,
    };
    // As it is computed.
    let run = of.with_long_dim_last().map_or(of, |t| t.1);
    let line = run.is_line() && run.output[2] >= lines::LONG && run.reach(2) <= 1 << 14;
    let small = (0..3).all(|d| of.input[d] < 1 << 24 && (of.is_near(d) || line));
    (small && of.volume() <= 4096 && of.all_inside()).then_some(of)
}

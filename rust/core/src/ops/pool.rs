//! Pooling: maxima with their places, averages, and the way back by places.

use crate::autograd::Vjp;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::kernels::pool::{self as launch, Divisor, Pool2d};
use crate::gpu::Gpu;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::conv::{Number, Ptr};
use crate::ops::resample::{check_sizes, Axis};
use crate::schema::{Args, Value};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_compute, with_element};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a window reads along one dimension: `start, start + step, ..` below `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    start: usize,
    end: usize,
    step: usize,
}

/// The largest element of each window and its index in the plane; NaN wins. `spans` holds the
/// windows along each of three dimensions.
#[derive(Clone, Debug, PartialEq)]
struct MaxPool {
    name: &'static str,
    /// How many of the last dimensions are pooled.
    n: usize,
    spans: Arc<[Vec<Span>; 3]>,
    /// The windows where they are evenly spaced and have at most two dimensions.
    grid: Option<Pool2d>,
}

impl Derivative for MaxPool {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs(0b10)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 1));
        };
        let shape = &cx.input_meta(0)?.shape;
        let plane = Dims::from_slice(&shape[shape.len() - self.n..]);
        let op = Scatter {
            name: self.name,
            plane,
            add: true,
            grid: self.grid,
        };
        Ok(Grads::from_elem(
            Some(dispatch::call1(op, &[g, &cx.output(1)?])?),
            1,
        ))
    }
}

impl Op for MaxPool {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let lead = x[0].ndim() - self.n;
        let shape: Dims = x[0].shape()[..lead]
            .iter()
            .copied()
            .chain(self.spans[3 - self.n..].iter().map(Vec::len))
            .collect();
        crate::shape::numel(&shape)?;
        let y = TensorMeta {
            shape,
            dtype: x[0].dtype(),
            device: x[0].device(),
        };
        let places = TensorMeta {
            dtype: DType::I64,
            ..y.clone()
        };
        Ok(Metas::from_iter([y, places]))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let x = x[0].prepared(x[0].dtype().compute())?;
        let out = match y[0].dtype() == x.dtype() {
            true => y[0].clone(),
            false => Tensor::empty(y[0].shape(), x.dtype(), x.device())?,
        };
        if out.numel() == 0 {
            return Ok(());
        }
        let mut sizes = [1; 3];
        for d in 0..self.n {
            sizes[3 - self.n + d] = x.size(x.ndim() - self.n + d);
        }
        with_compute!(x.dtype(), T => {
            // SAFETY: contiguous tensors of these types; outputs are this call's own.
            unsafe { self.planes::<T>(sizes, x.slice(), out.slice_mut(), y[1].slice_mut()) };
        });
        if y[0].dtype() != out.dtype() {
            y[0].write_from(&out)?;
        }
        Ok(())
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let Some(grid) = &self.grid else {
            return Ok(false);
        };
        let (gpu, x) = (Gpu::get()?, transfer::dense(x[0])?);
        let (value, place) = (transfer::whole(&y[0])?, transfer::whole(&y[1])?);
        transfer::ran(launch::max(gpu, grid, transfer::whole(&x)?, value, place))
    }
}

impl MaxPool {
    fn planes<T: Number>(&self, [d, h, w]: [usize; 3], x: &[T], y: &mut [T], at: &mut [i64]) {
        let [zs, ys, xs] = &*self.spans;
        let (small, large) = (zs.len() * ys.len() * xs.len(), d * h * w);
        let planes = y.len() / small;
        let (y, at) = (Ptr(y.as_mut_ptr()), Ptr(at.as_mut_ptr()));
        parallel_for(planes, (1 << 13) / large.max(1) + 1, |range| {
            for p in range {
                let x = &x[p * large..(p + 1) * large];
                let mut o = p * small;
                for z in zs {
                    for v in ys {
                        for u in xs {
                            let mut place = (z.start * h + v.start) * w + u.start;
                            let mut best = x[place];
                            let mut a = z.start;
                            while a < z.end {
                                let mut b = v.start;
                                while b < v.end {
                                    let row = (a * h + b) * w;
                                    let mut c = row + u.start;
                                    while c < row + u.end {
                                        let value = x[c];
                                        #[allow(clippy::eq_op)]
                                        if value > best || value != value {
                                            best = value;
                                            place = c;
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
                                *at.at(o) = place as i64;
                            }
                            o += 1;
                        }
                    }
                }
            }
        });
    }
}

/// Puts the elements of each plane of `x` where the second input says, in planes of zeros.
#[derive(Clone, Debug, PartialEq)]
struct Scatter {
    name: &'static str,
    plane: Dims,
    /// Elements that meet are summed; else the last one stays.
    add: bool,
    /// The windows of the max pool whose gradient this is.
    grid: Option<Pool2d>,
}

/// The adjoint: reads each plane of `x` where the second input says.
#[derive(Clone, Debug, PartialEq)]
struct Gather {
    name: &'static str,
    n: usize,
    add: bool,
    grid: Option<Pool2d>,
}

impl Derivative for Scatter {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs(0b10)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let op = Gather {
            name: self.name,
            n: self.plane.len(),
            add: self.add,
            grid: self.grid,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(op, &[g, &cx.input(1)?])?),
            None,
        ]))
    }
}

impl Derivative for Gather {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs(0b10)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let shape = &cx.input_meta(0)?.shape;
        let plane = Dims::from_slice(&shape[shape.len() - self.n..]);
        let op = Scatter {
            name: self.name,
            plane,
            add: self.add,
            grid: self.grid,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(op, &[g, &cx.input(1)?])?),
            None,
        ]))
    }
}

/// Checks that every index lies within a plane of `len` elements.
fn check_places(at: &[i64], len: usize, plane: &[usize]) -> Result<()> {
    if let Some(bad) = at.iter().find(|&&i| i < 0 || i >= len as i64) {
        let sizes = plane
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join("x");
        bail!(
            Runtime,
            "Found an invalid max index: {bad} (output volumes are of size {sizes})"
        );
    }
    Ok(())
}

impl Op for Scatter {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let lead = x[0].ndim() - self.plane.len();
        let shape: Dims = x[0].shape()[..lead]
            .iter()
            .chain(&self.plane)
            .copied()
            .collect();
        crate::shape::numel(&shape)?;
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: x[0].device(),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, at, y) = (x[0], x[1].prepared(DType::I64)?, &y[0]);
        let lead = x.ndim() - self.plane.len();
        let small: usize = x.shape()[lead..].iter().product();
        let large: usize = self.plane.iter().product();
        // SAFETY: a contiguous i64 tensor, read only.
        let at = unsafe { at.slice::<i64>() };
        check_places(at, large, &self.plane)?;
        let t = y.dtype().compute();
        let x = x.prepared(t)?;
        let out = Tensor::zeros(y.shape(), t, y.device())?;
        with_compute!(t, T => {
            // SAFETY: contiguous tensors of type T; the output is this call's own.
            let (x, out) = unsafe { (x.slice::<T>(), Ptr(out.ptr::<T>())) };
            let planes = x.len() / small.max(1);
            parallel_for(planes, (1 << 14) / (small + large).max(1) + 1, |range| {
                for i in range.start * small..range.end * small {
                    // SAFETY: indices were checked; planes belong to this range alone.
                    unsafe {
                        let to = out.at(i / small * large + at[i] as usize);
                        *to = if self.add { Number::plus(*to, x[i]) } else { x[i] };
                    }
                }
            });
        });
        y.write_from(&out)
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (Some(grid), true) = (&self.grid, transfer::small_floats(&x[..1])) else {
            return Ok(false);
        };
        let (gpu, g, at) = (Gpu::get()?, transfer::dense(x[0])?, transfer::dense(x[1])?);
        let (g, at) = (transfer::whole(&g)?, transfer::whole(&at)?);
        transfer::ran(launch::max_backward(
            gpu,
            grid,
            g,
            at,
            transfer::whole(&y[0])?,
        ))
    }
}

impl Op for Gather {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let meta = TensorMeta::of(x[1]);
        Ok(Metas::from_elem(
            TensorMeta {
                dtype: x[0].dtype(),
                ..meta
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, at, y) = (
            x[0].prepared(x[0].dtype())?,
            x[1].prepared(DType::I64)?,
            &y[0],
        );
        let lead = x.ndim() - self.n;
        let plane = &x.shape()[lead..];
        let large: usize = plane.iter().product();
        let small: usize = y.shape()[lead..].iter().product();
        // SAFETY: a contiguous i64 tensor, read only.
        let at = unsafe { at.slice::<i64>() };
        check_places(at, large, plane)?;
        with_element!(y.dtype(), T => {
            // SAFETY: contiguous tensors of type T; the output is this call's own.
            let (x, y) = unsafe { (x.slice::<T>(), y.slice_mut::<T>()) };
            for (i, y) in y.iter_mut().enumerate() {
                *y = x[i / small * large + at[i] as usize];
            }
        });
        Ok(())
    }
}

/// Sizes of windows as they are called.
struct Windows {
    kernel: SmallVec<[i64; 3]>,
    stride: SmallVec<[i64; 3]>,
    padding: SmallVec<[i64; 3]>,
    dilation: SmallVec<[i64; 3]>,
    ceil: bool,
}

fn per_dim(name: &str, what: &str, v: &[i64], n: usize) -> Result<SmallVec<[i64; 3]>> {
    match v.len() {
        1 => Ok(SmallVec::from_elem(v[0], n)),
        k if k == n => Ok(SmallVec::from_slice(v)),
        _ => bail!(
            Runtime,
            "{name}: {what} must either be a single int, or a tuple of {} ints, but got {}",
            ["zero", "one", "two", "three"][n],
            Show(v)
        ),
    }
}

fn joined(v: impl IntoIterator<Item = i64>) -> String {
    v.into_iter()
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join("x")
}

/// The windows of a GPU kernel, for at most two dimensions.
fn grid(x: &Tensor, out: &[usize], windows: [&[i64]; 4]) -> Option<Pool2d> {
    let n = out.len();
    let wide = |v: &[usize], rest: usize| match *v {
        [w] => [rest, w],
        [h, w] => [h, w],
        _ => [rest; 2],
    };
    let sizes = |v: &[i64], rest: usize| {
        let v: SmallVec<[usize; 3]> = v.iter().map(|&k| k as usize).collect();
        wide(&v, rest)
    };
    let [kernel, stride, padding, dilation] = windows;
    (n <= 2).then(|| Pool2d {
        input: wide(&x.shape()[x.ndim() - n..], 1),
        output: wide(out, 1),
        kernel: sizes(kernel, 1),
        stride: sizes(stride, 1),
        padding: sizes(padding, 0),
        dilation: sizes(dilation, 1),
    })
}

impl Windows {
    fn grid(&self, x: &Tensor, out: &[usize]) -> Option<Pool2d> {
        grid(
            x,
            out,
            [&self.kernel, &self.stride, &self.padding, &self.dilation],
        )
    }

    fn read(
        name: &str,
        n: usize,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil: bool,
    ) -> Result<Windows> {
        let kernel = per_dim(name, "kernel_size", kernel, n)?;
        let w = Windows {
            stride: match stride.is_empty() {
                true => kernel.clone(),
                false => per_dim(name, "stride", stride, n)?,
            },
            padding: per_dim(name, "padding", padding, n)?,
            dilation: per_dim(name, "dilation", dilation, n)?,
            kernel,
            ceil,
        };
        ensure!(
            !w.stride.contains(&0),
            Runtime,
            "{name}: stride should not be zero"
        );
        let positive = |v: &[i64]| v.iter().all(|&k| k > 0);
        ensure!(
            positive(&w.kernel),
            Runtime,
            "{name}: kernel size should be greater than zero, but got {}",
            Show(&w.kernel)
        );
        ensure!(
            positive(&w.stride),
            Runtime,
            "{name}: stride should be greater than zero, but got {}",
            Show(&w.stride)
        );
        ensure!(
            positive(&w.dilation),
            Runtime,
            "{name}: dilation should be greater than zero, but got {}",
            Show(&w.dilation)
        );
        ensure!(
            w.padding.iter().all(|&p| p >= 0),
            Runtime,
            "{name}: pad must be non-negative, but got pad: {}",
            Show(&w.padding)
        );
        for d in 0..n {
            let (k, l, p) = (w.kernel[d], w.dilation[d], w.padding[d]);
            let reach = (k - 1).checked_mul(l).and_then(|r| r.checked_add(1));
            ensure!(
                reach.is_some_and(|r| p <= r / 2),
                Runtime,
                "{name}: pad should be at most half of effective kernel size, but got pad={p}, \
                 kernel_size={k} and dilation={l}"
            );
        }
        Ok(w)
    }

    /// The number of windows along each pooled dimension.
    fn outputs(&self, name: &str, x: &Tensor) -> Result<SmallVec<[usize; 3]>> {
        let n = self.kernel.len();
        let lead = x.ndim() - n;
        let mut out = SmallVec::<[i64; 3]>::new();
        for d in 0..n {
            let (size, k, s) = (x.size(lead + d) as i64, self.kernel[d], self.stride[d]);
            let (p, l) = (self.padding[d], self.dilation[d]);
            // `read` checked the window's reach; the rest is bounded by it.
            let span = size as i128 + 2 * p as i128 - l as i128 * (k as i128 - 1) - 1;
            let more = if self.ceil { s as i128 - 1 } else { 0 };
            let mut o = (span + more).div_euclid(s as i128) + 1;
            // The last window must start inside the input or the padding before it.
            if self.ceil && (o - 1) * s as i128 >= size as i128 + p as i128 {
                o -= 1;
            }
            out.push(o.clamp(i64::MIN as i128, i64::MAX as i128) as i64);
        }
        let channels = x.size(lead.saturating_sub(1)) as i64;
        ensure!(
            out.iter().all(|&o| o >= 1),
            Runtime,
            "{name}: Given input size: ({channels}x{}). Calculated output size: ({channels}x{}). \
             Output size is too small: Invalid computed output size",
            joined(x.shape()[lead..].iter().map(|&s| s as i64)),
            joined(out.iter().map(|&o| o.max(0)))
        );
        Ok(out.iter().map(|&o| o as usize).collect())
    }
}

/// Checks the input's dimensions: `n` spatial ones, channels, and perhaps a batch.
fn check_input(name: &str, x: &Tensor, n: usize) -> Result<()> {
    let valid =
        (x.ndim() == n + 1 || x.ndim() == n + 2) && !x.shape()[x.ndim() - n - 1..].contains(&0);
    ensure!(
        valid,
        Runtime,
        "{name}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, \
         but got:{}; non-empty {}D or {}D (batch mode) tensor expected for input",
        n + 1,
        n + 2,
        Show(x.shape()),
        n + 1,
        n + 2
    );
    Ok(())
}

fn max_pool(name: &'static str, node: &'static str, n: usize, a: &Args) -> Result<[Tensor; 2]> {
    let x = a.tensor(0)?;
    let w = Windows::read(
        name,
        n,
        a.ints(1)?,
        a.ints(2)?,
        a.ints(3)?,
        a.ints(4)?,
        a.bool(5)?,
    )?;
    check_input(name, x, n)?;
    ensure!(
        x.dtype() != DType::Bool && !x.dtype().is_complex(),
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out = w.outputs(name, x)?;
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
                let start = start.min(size - 1);
                Span {
                    start: start as usize,
                    end: end.max(0) as usize,
                    step: l as usize,
                }
            })
            .collect();
    }
    let y = dispatch::call(
        MaxPool {
            name: node,
            n,
            spans: Arc::new(spans),
            grid: w.grid(x, &out),
        },
        &[x],
    )?;
    Ok([y[0].clone(), y[1].clone()])
}

fn avg_pool(name: &'static str, node: &'static str, n: usize, a: &Args) -> Result<Tensor> {
    let x = a.tensor(0)?;
    let w = Windows::read(
        name,
        n,
        a.ints(1)?,
        a.ints(2)?,
        a.ints(3)?,
        &[1],
        a.bool(4)?,
    )?;
    let (padded, fixed) = (a.bool(5)?, if n == 1 { None } else { a.opt_int(6) });
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "{name}: Expected {} to {} dimensions, but got {}-dimensional tensor for argument #1 'self'",
        n + 1,
        n + 2,
        x.ndim()
    );
    check_input(name, x, n)?;
    ensure!(
        fixed != Some(0),
        Runtime,
        "{name}: divisor must be not zero"
    );
    ensure!(
        x.dtype().is_float() || x.dtype() == DType::I64,
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out = w.outputs(name, x)?;
    let (mut axes, mut divisors) = (Vec::new(), Vec::new());
    for d in 0..n {
        let size = x.size(x.ndim() - n + d) as i64;
        let (k, s, p) = (w.kernel[d], w.stride[d], w.padding[d]);
        let window = |o: usize| {
            let start = o as i64 * s - p;
            let end = (start + k).min(size + p);
            (start.max(0), end.min(size), end - start)
        };
        axes.push(Axis::new(size as usize, out[d], false, |o, push| {
            let (start, end, _) = window(o);
            (start..end).for_each(|i| push(i as usize, 1.0));
        })?);
        let count = |o: usize| {
            let (start, end, whole) = window(o);
            match fixed {
                Some(f) => {
                    if d == 0 {
                        f as f64
                    } else {
                        1.0
                    }
                }
                None => {
                    if padded {
                        whole as f64
                    } else {
                        (end - start).max(1) as f64
                    }
                }
            }
        };
        divisors.push((0..out[d]).map(count).collect());
    }
    let divisor = match fixed {
        Some(f) => u32::try_from(f).ok().map(Divisor::Fixed),
        None if padded => Some(Divisor::Padded),
        None => Some(Divisor::Inside),
    };
    let pool = w.grid(x, &out).zip(divisor);
    x.resample_over(node, axes, Some(divisors), pool)
}

/// Windows that divide `size` into `out` parts of nearly equal length.
fn adaptive(size: usize, out: usize) -> impl Fn(usize) -> (usize, usize) {
    move |o| {
        let (size, out, o) = (size as u128, out as u128, o as u128);
        (
            (o * size / out) as usize,
            ((o + 1) * size).div_ceil(out) as usize,
        )
    }
}

/// Output sizes of an adaptive pool, checked.
fn adaptive_sizes(name: &str, x: &Tensor, n: usize, size: &[i64]) -> Result<SmallVec<[usize; 3]>> {
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "{name}(): Expected {}D or {}D tensor, but got: {}; Expected {} to {} dimensions",
        n + 1,
        n + 2,
        Show(x.shape()),
        n + 1,
        n + 2
    );
    ensure!(
        size.len() == n || size.len() == 1,
        Runtime,
        "{name}: output_size must be {n}, got {}",
        Show(size)
    );
    ensure!(
        size.iter().all(|&s| s >= 0),
        Runtime,
        "{name}: elements of output_size must be greater than or equal to 0 but received {}",
        Show(size)
    );
    for d in x.ndim() - n..x.ndim() {
        ensure!(
            x.size(d) > 0,
            Runtime,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input \
             has sizes {} with dimension {d} being empty",
            Show(x.shape())
        );
    }
    ensure!(
        x.dtype().is_float(),
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let out: SmallVec<[usize; 3]> = (0..n)
        .map(|d| size[d.min(size.len() - 1)] as usize)
        .collect();
    check_sizes(x, x.ndim() - n, &out)?;
    Ok(out)
}

fn adaptive_avg(name: &str, node: &'static str, n: usize, a: &Args) -> Result<Tensor> {
    let x = a.tensor(0)?;
    let out = adaptive_sizes(name, x, n, a.ints(1)?)?;
    let (mut axes, mut divisors) = (Vec::new(), Vec::new());
    for d in 0..n {
        let size = x.size(x.ndim() - n + d);
        let window = adaptive(size, out[d]);
        axes.push(Axis::new(size, out[d], false, |o, push| {
            let (start, end) = window(o);
            (start..end).for_each(|i| push(i, 1.0));
        })?);
        let count = |o| {
            let (start, end) = window(o);
            (end - start) as f64
        };
        divisors.push((0..out[d]).map(count).collect());
    }
    let ones: &[i64] = &[1, 1][..n.min(2)];
    let pool = grid(x, &out, [ones, ones, &[0, 0][..n.min(2)], ones]);
    let pool = pool.map(|g| (g, Divisor::Adaptive));
    x.resample_over(node, axes, Some(divisors), pool)
}

fn adaptive_max(name: &str, node: &'static str, n: usize, a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    let out = adaptive_sizes(name, x, n, a.ints(1)?)?;
    let mut spans: [Vec<Span>; 3] = std::array::from_fn(|_| {
        vec![Span {
            start: 0,
            end: 1,
            step: 1,
        }]
    });
    for d in 0..n {
        let window = adaptive(x.size(x.ndim() - n + d), out[d]);
        spans[3 - n + d] = (0..out[d])
            .map(|o| {
                let (start, end) = window(o);
                Span {
                    start,
                    end,
                    step: 1,
                }
            })
            .collect();
    }
    let y = dispatch::call(
        MaxPool {
            name: node,
            n,
            spans: Arc::new(spans),
            grid: None,
        },
        &[x],
    )?;
    Ok(Value::Tuple(y.into_vec()))
}

/// Starts of windows of length `kernel` that a random number spreads over `size` elements.
/// Graham 2014, arXiv:1412.6071.
fn fractional_starts(
    sample: f64,
    size: usize,
    out: usize,
    kernel: usize,
    double: bool,
) -> Vec<usize> {
    let round = |v: f64| if double { v } else { v as f32 as f64 };
    let last = size - kernel;
    let alpha = round(last as f64 / (out as f64 - 1.0));
    let base = round(sample * alpha).trunc();
    (0..out)
        .map(|i| {
            if i + 1 == out {
                return last;
            }
            let at = round(round(i as f64 + sample) * alpha).trunc() - base;
            (at.max(0.0) as usize).min(last)
        })
        .collect()
}

fn fractional(n: usize, a: &Args) -> Result<Value> {
    let name = if n == 2 {
        "fractional_max_pool2d"
    } else {
        "fractional_max_pool3d"
    };
    let (x, samples) = (a.tensor(0)?, a.tensor(3)?);
    let kernel = per_dim(name, "kernel_size", a.ints(1)?, n)?;
    let out = per_dim(name, "output_size", a.ints(2)?, n)?;
    ensure!(
        kernel.iter().all(|&k| k > 0) && out.iter().all(|&o| o > 0),
        Runtime,
        "{name}(): kernel_size and output_size must be greater than zero, but got {} and {}",
        Show(&kernel),
        Show(&out)
    );
    ensure!(
        (x.ndim() == n + 1 || x.ndim() == n + 2) && !x.shape()[x.ndim() - n - 1..].contains(&0),
        Runtime,
        "{name}(): Expected {}D or {}D tensor with non-zero size for non-batch dimensions, but \
         got: {}",
        n + 1,
        n + 2,
        Show(x.shape())
    );
    ensure!(
        x.dtype().is_float(),
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        samples.dtype() == x.dtype(),
        Runtime,
        "Expect _random_samples to have the same dtype as input, got {} and {}",
        samples.dtype(),
        x.dtype()
    );
    let lead = x.ndim() - n;
    let batch = if lead == 2 { x.size(0) } else { 1 };
    let channels = x.size(lead - 1);
    ensure!(
        samples.ndim() == 3
            && samples.size(0) >= batch
            && samples.size(1) == channels
            && samples.size(2) == n,
        Runtime,
        "Expect _random_samples to be of shape [{batch}, {channels}, {n}], got {}",
        Show(samples.shape())
    );
    for d in 0..n {
        ensure!(
            out[d]
                .checked_add(kernel[d] - 1)
                .is_some_and(|e| e <= x.size(lead + d) as i64),
            Runtime,
            "{name}(): pool size {} too large relative to input size {} at dimension {}",
            kernel[d],
            x.size(lead + d),
            lead + d
        );
    }
    let host = x.to_host()?.prepared(DType::F64)?;
    let draws = samples.to_host()?.prepared(DType::F64)?;
    // SAFETY: contiguous f64 tensors, read only.
    let (values, draws) = unsafe { (host.slice::<f64>(), draws.slice::<f64>()) };
    let mut sizes = [1; 3];
    for d in 0..n {
        sizes[3 - n + d] = x.size(lead + d);
    }
    let small: usize = out.iter().map(|&o| o as usize).product();
    let large: usize = sizes.iter().product();
    let mut places = vec![0i64; batch * channels * small];
    let mut best = vec![0.0; small];
    for p in 0..batch * channels {
        let mut spans: [Vec<Span>; 3] = std::array::from_fn(|_| {
            vec![Span {
                start: 0,
                end: 1,
                step: 1,
            }]
        });
        for d in 0..n {
            // Planes name width first, volumes depth first.
            let draw = draws[p * n + if n == 2 { 1 - d } else { d }];
            let (k, o) = (kernel[d] as usize, out[d] as usize);
            let double = x.dtype() == DType::F64;
            spans[3 - n + d] = fractional_starts(draw, x.size(lead + d), o, k, double)
                .into_iter()
                .map(|start| Span {
                    start,
                    end: start + k,
                    step: 1,
                })
                .collect();
        }
        let pool = MaxPool {
            grid: None,
            name,
            n,
            spans: Arc::new(spans),
        };
        let at = &mut places[p * small..(p + 1) * small];
        pool.planes(sizes, &values[p * large..(p + 1) * large], &mut best, at);
    }
    let shape: Dims = x.shape()[..lead]
        .iter()
        .copied()
        .chain(out.iter().map(|&o| o as usize))
        .collect();
    let places = Tensor::from_slice(&places, &shape, DType::I64)?.to_device(x.device())?;
    let node = if n == 2 {
        "FractionalMaxPool2DBackward0"
    } else {
        "FractionalMaxPool3DBackward0"
    };
    let y = dispatch::call1(
        Gather {
            grid: None,
            name: node,
            n,
            add: true,
        },
        &[x, &places],
    )?;
    Ok(Value::Tuple(vec![y, places]))
}

fn max_unpool(n: usize, a: &Args) -> Result<Tensor> {
    let (x, at, size) = (a.tensor(0)?, a.tensor(1)?, a.ints(2)?);
    let node = if n == 2 {
        "MaxUnpool2DBackward0"
    } else {
        "MaxUnpool3DBackward0"
    };
    ensure!(
        at.dtype() == DType::I64,
        Runtime,
        "elements in indices should be type int64 but got: {}",
        at.dtype().scalar_name()
    );
    ensure!(
        size.len() == n,
        Runtime,
        "There should be exactly {n} elements in output_size, but got {} elements.",
        size.len()
    );
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "Input to max_unpooling{n}d should be a {}d or {}d Tensor, but got {} dimensions",
        n + 1,
        n + 2,
        x.ndim()
    );
    ensure!(
        x.shape() == at.shape(),
        Runtime,
        "Expected shape of indices to be same as that of the input tensor ({}) but got indices \
         tensor with shape: {}",
        Show(x.shape()),
        Show(at.shape())
    );
    let plane = crate::shape::sizes(size)?;
    dispatch::call1(
        Scatter {
            name: node,
            plane,
            add: false,
            grid: None,
        },
        &[x, at],
    )
}

fn pair(v: [Tensor; 2]) -> Result<Value> {
    Ok(Value::Tuple(v.into()))
}

const MAX1: &str = "MaxPool1DWithIndicesBackward0";
const MAX2: &str = "MaxPool2DWithIndicesBackward0";
const MAX3: &str = "MaxPool3DWithIndicesBackward0";

crate::entries! {
    /// The largest element of each window, padding aside.
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    FN, |a| Ok(max_pool("max_pool1d", MAX1, 1, a)?[0].clone().into());
    /// As `max_pool1d`, with the index of each element in its row.
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    FN, |a| pair(max_pool("max_pool1d", MAX1, 1, a)?);
    /// The largest element of each window of the last two dimensions.
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    FN, |a| Ok(max_pool("max_pool2d", MAX2, 2, a)?[0].clone().into());
    /// As `max_pool2d`, with the index of each element in its plane.
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    NN, |a| pair(max_pool("max_pool2d", MAX2, 2, a)?);
    /// The largest element of each window of the last three dimensions.
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
    FN, |a| Ok(max_pool("max_pool3d", MAX3, 3, a)?[0].clone().into());
    /// As `max_pool3d`, with the index of each element in its volume.
    "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    NN, |a| pair(max_pool("max_pool3d", MAX3, 3, a)?);
    /// The mean of each window; `count_include_pad` counts padding as zeros.
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    FN, |a| avg_pool("avg_pool1d", "AvgPool1DBackward0", 1, a).map(Into::into);
    /// The mean of each window of the last two dimensions.
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    NN, |a| avg_pool("avg_pool2d", "AvgPool2DBackward0", 2, a).map(Into::into);
    /// The mean of each window of the last three dimensions.
    "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    NN, |a| avg_pool("avg_pool3d", "AvgPool3DBackward0", 3, a).map(Into::into);
    /// Means of nearly equal parts, as many as `output_size` says.
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    FN, |a| adaptive_avg("adaptive_avg_pool1d", "AdaptiveAvgPool1DBackward0", 1, a).map(Into::into);
    /// As `adaptive_avg_pool1d`, over the last two dimensions.
    "adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    NN, |a| adaptive_avg("adaptive_avg_pool2d", "AdaptiveAvgPool2DBackward0", 2, a).map(Into::into);
    /// As `adaptive_avg_pool1d`, over the last three dimensions.
    "adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
    NN, |a| adaptive_avg("adaptive_avg_pool3d", "AdaptiveAvgPool3DBackward0", 3, a).map(Into::into);
    /// Largest elements of nearly equal parts, with their indices.
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    FN, |a| adaptive_max("adaptive_max_pool1d", "AdaptiveMaxPool1DBackward0", 1, a);
    /// As `adaptive_max_pool1d`, over the last two dimensions.
    "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
    NN, |a| adaptive_max("adaptive_max_pool2d", "AdaptiveMaxPool2DBackward0", 2, a);
    /// As `adaptive_max_pool1d`, over the last three dimensions.
    "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
    NN, |a| adaptive_max("adaptive_max_pool3d", "AdaptiveMaxPool3DBackward0", 3, a);
    /// Largest elements of windows at random places, with their indices.
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    NN, |a| fractional(2, a);
    /// As `fractional_max_pool2d`, over the last three dimensions.
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    NN, |a| fractional(3, a);
    /// Puts each element where `indices` of a max pool say, in a plane of zeros.
    "max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
    NN, |a| max_unpool(2, a).map(Into::into);
    /// As `max_unpool2d`, over the last three dimensions.
    "max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    NN, |a| max_unpool(3, a).map(Into::into);
}

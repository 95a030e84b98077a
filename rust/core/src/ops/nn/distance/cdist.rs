//! Distances between all pairs of rows, without a tensor of their differences.
//!
//! Euclidean distances of many rows come from one matrix product, by PyTorch's rule; the others
//! from a pass over pairs that keeps a block of distances in registers.

use super::without_last;
use crate::alloc::{full, gathered};
use crate::autograd::{mode, Vjp};
use crate::cpu::gemm::gemm;
use crate::cpu::pool::{look, parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType, Scalar};
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta};
use crate::ops::linalg::matmul::swapped;
use crate::ops::linalg::vector_norm::norm_last;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::{apply, Float};
use crate::per_isa;
use crate::shape::{self, DimSet, Dims};
use crate::tensor::Tensor;
use std::sync::Arc;

/// Distances that a pass keeps in registers.
const BLOCK: usize = 64;
/// Multiplications, or as costly steps, that a second thread is worth.
const GRAIN: usize = 1 << 15;

/// Batches of x (m rows) and y (n rows): an m x n matrix of distances. With `pairs`, of one
/// tensor: the distance of each row to each later one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Distances {
    p: Bitwise,
    product: bool,
    pairs: bool,
}

/// Whether the norm has no powers but squares.
fn is_plain(p: f64) -> bool {
    [0.0, 1.0, 2.0].contains(&p) || p.is_infinite()
}

/// Rows of x against the columns of y', `n` of them.
struct Pass<'a, T> {
    p: f64,
    width: usize,
    n: usize,
    x: &'a [T],
    y: &'a [T],
}

per_isa! {
    /// The distances of row `i` to rows `from..n`.
    unsafe fn forward[T: Float](s: &Pass<T>, i: usize, from: usize, to: *mut T) {
        // SAFETY: rows of `s.y` hold one number for each of `s.n`, and `to` has room for those from
        // `from` on.
        unsafe {
            let x = &s.x[i * s.width..(i + 1) * s.width];
            let zero = T::default();
            let p = T::of_f64(s.p);
            for j in (from..s.n).step_by(BLOCK) {
                // The last block begins before where it might if that makes it whole, and costs little.
                let w = BLOCK.min(s.n - j);
                let whole = w == BLOCK || s.n >= BLOCK && is_plain(s.p);
                let start = if whole { j.min(s.n - BLOCK) } else { j };
                let mut acc = [zero; BLOCK];
                macro_rules! sum {
                    (|$a:ident, $d:ident| $e:expr) => {
                        for (k, &v) in x.iter().enumerate() {
                            let row = s.y.as_ptr().add(k * s.n + start);
                            if whole {
                                for t in 0..BLOCK {
                                    let ($a, $d) = (acc[t], (v - *row.add(t)).abs());
                                    acc[t] = $e;
                                }
                            } else {
                                for t in 0..w {
                                    let ($a, $d) = (acc[t], (v - *row.add(t)).abs());
                                    acc[t] = $e;
                                }
                            }
                        }
                    };
                }
                if s.p == 0.0 {
                    let one = T::of_f64(1.0);
                    sum!(|a, d| a + if d == zero { zero } else { one });
                } else if s.p == 1.0 {
                    sum!(|a, d| a + d);
                } else if s.p == 2.0 {
                    sum!(|a, d| a + d * d);
                    for v in &mut acc {
                        *v = v.sqrt();
                    }
                } else if s.p.is_infinite() {
                    // A NaN on either side wins.
                    sum!(|a, d| if a < d || d.is_nan() { d } else { a });
                } else {
                    sum!(|a, d| a + d.pow(p));
                    let inverse = T::of_f64(1.0 / s.p);
                    for v in &mut acc {
                        *v = v.pow(inverse);
                    }
                }
                let acc = acc.as_ptr().add(j - start);
                std::ptr::copy_nonoverlapping(acc, to.add(j - from), w);
            }
        }
    }
}

per_isa! {
    /// sqrt(max(x + y - 2 x y, 0)), the product being in `d`.
    unsafe fn finish[T: Float](x: T, y: &[T], d: *mut T) {
        // SAFETY: `d` has as many elements as `y`.
        unsafe {
            let (zero, two) = (T::default(), T::of_f64(2.0));
            for (j, &y) in y.iter().enumerate() {
                let v = x + y - two * *d.add(j);
                *d.add(j) = if v < zero { zero } else { v }.sqrt();
            }
        }
    }
}

/// Gradients of x: rows of x against rows of y, with strides of the distances and their gradients.
struct Back<'a, T> {
    p: f64,
    width: usize,
    n: usize,
    x: &'a [T],
    y: &'a [T],
    d: &'a [T],
    g: &'a [T],
    strides: (usize, usize),
    out: Ptr<T>,
}

per_isa! {
    /// The gradient of row `i`.
    unsafe fn backward[T: Float](s: &Back<T>, i: usize) {
        // SAFETY: `x`, `y` and `out` have `w` elements, and nobody else writes row `i`.
        unsafe {
            let (zero, w) = (T::default(), s.width);
            let one = T::of_f64(1.0);
            let x = &s.x[i * w..(i + 1) * w];
            let out = s.out.part(i * w..(i + 1) * w);
            out.fill(zero);
            for j in 0..s.n {
                let at = i * s.strides.0 + j * s.strides.1;
                let (dist, g) = (s.d[at], s.g[at]);
                let y = &s.y[j * w..(j + 1) * w];
                macro_rules! each {
                    (|$d:ident, $s:ident| $e:expr) => {
                        for k in 0..w {
                            let $d = *x.get_unchecked(k) - *y.get_unchecked(k);
                            let $s = if $d > zero {
                                one
                            } else if $d < zero {
                                zero - one
                            } else {
                                zero
                            };
                            let to = out.get_unchecked_mut(k);
                            *to += $e;
                        }
                    };
                }
                if s.p == 1.0 {
                    each!(|d, sign| sign * g);
                } else if s.p.is_infinite() {
                    each!(|d, sign| if d.abs() == dist { sign * g } else { zero });
                } else if s.p == 0.0 || dist == zero {
                    // At the origin the norm has no gradient; 0 is a subgradient.
                } else if s.p == 2.0 {
                    let f = g / dist;
                    each!(|d, _sign| d * f);
                } else {
                    let e = T::of_f64(s.p - 1.0);
                    let f = g / dist.pow(e);
                    each!(|d, sign| if d == zero {
                        zero
                    } else {
                        sign * d.abs().pow(e) * f
                    });
                }
            }
        }
    }
}

/// The transpose of `n` rows of `width`.
fn transposed<T: Float>(x: &[T], n: usize, width: usize) -> Vec<T> {
    let mut y = full(T::default(), n * width);
    for i in (0..n).step_by(16) {
        for k in 0..width {
            for r in i..n.min(i + 16) {
                y[k * n + r] = x[r * width + k];
            }
        }
    }
    y
}

impl Distances {
    /// The cost of one element of a difference, in multiplications.
    fn cost(&self) -> usize {
        if is_plain(self.p.0) {
            1
        } else {
            40
        }
    }

    /// One matrix of distances.
    // SAFETY: `out` has room for m rows of n, or for the pairs, and is this call's.
    unsafe fn matrix<T: Float>(&self, x: &[T], y: &[T], size: [usize; 3], out: *mut T) {
        let [m, n, width] = size;
        let to = Ptr::new(out);
        if self.product {
            let squares = |x: &[T]| -> Vec<T> {
                gathered(x.chunks(width).map(|row| {
                    let p = row.as_ptr();
                    // SAFETY: a row has `width` elements.
                    unsafe { crate::cpu::gemm::dot(width, p, 1, p, 1) }
                }))
            };
            let (sx, sy) = (squares(x), squares(y));
            let (w, one) = (width as isize, T::of_f64(1.0));
            let zero = T::default();
            let (a, b) = (x.as_ptr(), y.as_ptr());
            // SAFETY: x and y have m and n rows of `width`, and `out` has room for m rows of n.
            unsafe { gemm(m, n, width, one, a, w, 1, b, 1, w, zero, out, n as isize, 1) };
            parallel_for(m, GRAIN / n.max(1) + 1, |rows| {
                for i in rows {
                    // SAFETY: row `i` has n elements, as many as `sy`, and is this range's.
                    unsafe { finish(sx[i], &sy, to.at(i * n)) };
                }
            });
            return;
        }
        let y = transposed(y, n, width);
        let s = Pass {
            p: self.p.0,
            width,
            n,
            x,
            y: &y,
        };
        let work = (n * width).saturating_mul(self.cost());
        parallel_for(m, GRAIN * 4 / work.max(1) + 1, |rows| {
            for i in rows {
                if work >= GRAIN {
                    look();
                }
                // SAFETY: row `i` of results, of which pairs have those after `i`, is this range's.
                unsafe {
                    if self.pairs {
                        forward(&s, i, i + 1, to.at(i * (2 * n - i - 1) / 2));
                    } else {
                        forward(&s, i, 0, to.at(i * n));
                    }
                }
            }
        });
    }

    fn run<T: Float>(&self, x: &[&Tensor], y: &Tensor) -> Result<()> {
        let a = x[0].prepared(T::DTYPE)?;
        let b = match x.get(1) {
            Some(b) => b.prepared(T::DTYPE)?,
            None => a.clone(),
        };
        let size = sizes(&a, &b);
        let [m, n, width] = size;
        let count = batches(&a);
        let out = Ptr::new(y.ptr::<T>());
        let each = if self.pairs { y.numel() } else { m * n };
        // SAFETY: contiguous tensors of this type; each batch has its own part of the result.
        let (a, b) = unsafe { (a.slice::<T>(), b.slice::<T>()) };
        parallel_for(count, GRAIN / (m * n * width).max(1) + 1, |batches| {
            for i in batches {
                let (a, b) = (&a[i * m * width..], &b[i * n * width..]);
                // SAFETY: each batch has a part of `m * n` results, or one row of pairs, to itself.
                unsafe {
                    let (a, b) = (&a[..m * width], &b[..n * width]);
                    self.matrix(a, b, size, out.at(i * each));
                }
            }
        });
        Ok(())
    }

    /// Gradients where none of theirs is asked for.
    fn gradients<T: Float>(&self, cx: &Vjp, g: &Tensor) -> Result<Grads> {
        let x = cx.input(0)?;
        let y = match self.pairs {
            true => x.clone(),
            false => cx.input(1)?,
        };
        let needs: &[usize] = if self.pairs { &[0] } else { &[0, 1] };
        let needs: Vec<usize> = needs.iter().copied().filter(|&i| cx.needs(i)).collect();
        let given = (self.clone(), needs.clone());
        let (name, from) = ("CdistBackwardBackward0", [&x, &y, &cx.output(0)?, g]);
        let plan = |(_, needs): &(Self, Vec<usize>)| {
            let meta = |&i: &usize| TensorMeta::new(from[i].shape(), T::DTYPE, x.device());
            Ok(needs.iter().map(meta).collect())
        };
        let found: Vec<Tensor> =
            dispatch::function_of(name, given, &from, plan, |(op, needs), x| {
                op.slopes::<T>(needs, [x[0], x[1], x[2], x[3]])
            })?;
        let mut out = Grads::from_elem(None, if self.pairs { 1 } else { 2 });
        for (i, d) in needs.into_iter().zip(found) {
            out[i] = Some(d);
        }
        Ok(out)
    }

    fn slopes<T: Float>(&self, needs: &[usize], x: [&Tensor; 4]) -> Result<Vec<Tensor>> {
        let [x, y, d, g] = x.map(|t| t.prepared(T::DTYPE));
        let (x, y, mut d, mut g) = (x?, y?, d?, g?);
        let [m, n, width] = sizes(&x, &y);
        if self.pairs {
            (d, g) = (square::<T>(&d, n)?, square::<T>(&g, n)?);
        }
        let count = batches(&x);
        let mut out = Vec::new();
        for &side in needs {
            let (x, y, m, n, strides) = match side {
                0 => (&x, &y, m, n, (n, 1)),
                _ => (&y, &x, n, m, (1, n)),
            };
            let to = Tensor::empty(x.shape(), T::DTYPE, Device::Cpu)?;
            let work = (n * width).saturating_mul(self.cost());
            let place = Ptr::new(to.ptr::<T>());
            crate::host::unlocked(|| {
                parallel_for(count * m, GRAIN / work.max(1) + 1, |rows| {
                    for r in rows {
                        if work >= GRAIN {
                            look();
                        }
                        let (b, i) = (r / m, r % m);
                        // SAFETY: contiguous tensors of this type; each row is written once.
                        unsafe {
                            let s = Back {
                                p: self.p.0,
                                width,
                                n,
                                x: &x.slice::<T>()[b * m * width..],
                                y: &y.slice::<T>()[b * n * width..],
                                d: &d.slice::<T>()[b * m * n..],
                                g: &g.slice::<T>()[b * m * n..],
                                strides,
                                out: Ptr::new(place.at(b * m * width)),
                            };
                            backward(&s, i);
                        }
                    }
                });
            });
            out.push(to);
        }
        Ok(out)
    }

    /// The gradient of Euclidean distances by matrix products: PyTorch's formula.
    fn euclidean(&self, cx: &Vjp, g: &Tensor) -> Result<Grads> {
        let (x, y, d) = (cx.input(0)?, cx.input(1)?, cx.output(0)?);
        let zero = Tensor::constant(0.0, d.dtype())?;
        let none = apply(Eq, [&d, &Tensor::number(Scalar::Float(0.0))?])?;
        let ratio = where_(&none, &zero, &g.div(&d)?)?;
        let side = |x: &Tensor, y: &Tensor, ratio: &Tensor| -> Result<Tensor> {
            let sum = ratio.sum_mask(DimSet::last(1, ratio.ndim())?, true, None)?;
            x.mul(&sum)?.sub(&ratio.matmul(y)?)
        };
        let mut out = Grads::from_elem(None, 2);
        if cx.needs(0) {
            out[0] = Some(side(&x, &y, &ratio)?);
        }
        if cx.needs(1) {
            out[1] = Some(side(&y, &x, &swapped(&ratio)?)?);
        }
        Ok(out)
    }

    /// Gradients as a graph, from the norm of a tensor of differences.
    fn recorded(&self, cx: &Vjp, g: &Tensor) -> Result<Grads> {
        let x = cx.input(0)?.mul_scalar(1.0)?;
        let mut inputs = vec![x];
        let y = if self.pairs {
            super::pairs(&inputs[0], self.p.0)?
        } else {
            inputs.push(cx.input(1)?.mul_scalar(1.0)?);
            composite(&inputs[0], &inputs[1], self.p.0)?
        };
        let mut out = Grads::from_elem(None, inputs.len());
        let Some(root) = y.edge()? else {
            return Ok(out);
        };
        let (mut wanted, mut edges) = (Vec::new(), Vec::new());
        for (i, x) in inputs.iter().enumerate() {
            if let (true, Some(e)) = (cx.needs(i), x.edge()?) {
                wanted.push(i);
                edges.push(e);
            }
        }
        let found = crate::autograd::backward(&crate::autograd::Request {
            roots: &[(root, g.clone())],
            inputs: &edges,
            accumulate: false,
            keep_graph: true,
            create_graph: true,
        })?;
        for (i, g) in wanted.into_iter().zip(found) {
            out[i] = g;
        }
        Ok(out)
    }
}

/// Rows of x, rows of y, and their length.
fn sizes(x: &Meta, y: &Meta) -> [usize; 3] {
    let d = x.ndim();
    [x.size(d - 2), y.size(d - 2), x.size(d - 1)]
}

/// The matrices of rows of a batch, which may be empty.
fn batches(x: &Tensor) -> usize {
    x.shape()[..x.ndim() - 2].iter().product()
}

/// The symmetric matrix, with zeros on the diagonal, of what lies above the diagonal.
fn square<T: Float>(t: &Tensor, n: usize) -> Result<Tensor> {
    let y = Tensor::zeros(&[n, n], T::DTYPE, Device::Cpu)?;
    // SAFETY: contiguous tensors of this type; the result is ours.
    let (x, to) = unsafe { (t.slice::<T>(), y.slice_mut::<T>()) };
    let mut values = x.iter();
    for i in 0..n {
        for (j, &v) in (i + 1..n).zip(&mut values) {
            to[i * n + j] = v;
            to[j * n + i] = v;
        }
    }
    Ok(y)
}

impl Derivative for Distances {
    fn name(&self) -> &'static str {
        if self.pairs {
            "PdistBackward0"
        } else {
            "CdistBackward0"
        }
    }

    fn save(&self, _needs: Mask) -> Save {
        Save {
            inputs: if self.pairs { 1 } else { 3 },
            outputs: 1,
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        if self.product {
            self.euclidean(cx, g)
        } else if mode::traced() {
            self.recorded(cx, g)
        } else if cx.output_meta(0).dtype == DType::F32 {
            self.gradients::<f32>(cx, g)
        } else {
            self.gradients::<f64>(cx, g)
        }
    }
}

impl Op for Distances {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        // Pairs are those of one matrix.
        (!self.pairs).then(|| self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let a = x[0];
        let d = a.ndim();
        let [m, n, _] = sizes(a, x.last().unwrap_or(&a));
        let mut shape = Dims::from_slice(&a.shape()[..d - 2]);
        if self.pairs {
            shape.push(n * n.saturating_sub(1) / 2);
        } else {
            shape.extend([m, n]);
        }
        let meta = TensorMeta::new(&shape, a.dtype(), a.device());
        Ok(Metas::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].numel() == 0 {
            return Ok(());
        }
        if y[0].dtype() == DType::F32 {
            self.run::<f32>(x, &y[0])
        } else {
            self.run::<f64>(x, &y[0])
        }
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        y[0].numel().saturating_mul(x[0].size(x[0].ndim() - 1))
    }
}

/// Whether the kernels take it.
fn fits(x: &Tensor) -> bool {
    matches!(x.dtype(), DType::F32 | DType::F64)
        && x.device() == Device::Cpu
        && x.size(x.ndim() - 1) > 0
}

/// Distances of all pairs, their arguments being checked. `product` says whether Euclidean ones
/// may come from a matrix product; by default where there are more than 25 rows.
pub fn cdist(x: &Tensor, y: &Tensor, p: f64, product: Option<bool>) -> Result<Tensor> {
    if !fits(x) || x.dtype() != y.dtype() || y.device() != Device::Cpu {
        return composite(x, y, p);
    }
    let (m, n) = (x.size(x.ndim() - 2), y.size(y.ndim() - 2));
    let op = Distances {
        p: Bitwise(p),
        product: p == 2.0 && product.unwrap_or(m > 25 || n > 25),
        pairs: false,
    };
    let rows = |t: &Tensor| t.ndim() - 2;
    let batch = shape::broadcast(&x.shape()[..rows(x)], &y.shape()[..rows(y)])?;
    let wide = |t: &Tensor| {
        let tail = &t.shape()[rows(t)..];
        let shape: Dims = batch.iter().chain(tail).copied().collect();
        t.expand_to(&shape)
    };
    dispatch::call1(op, &[&wide(x)?, &wide(y)?])
}

/// [`super::pairs`] as one op where there is a kernel for it.
pub fn pdist(x: &Tensor, p: f64) -> Result<Tensor> {
    if !fits(x) {
        return super::pairs(x, p);
    }
    let op = Distances {
        p: Bitwise(p),
        product: false,
        pairs: true,
    };
    dispatch::call1(op, &[x])
}

/// Distances from a tensor of differences.
fn composite(x: &Tensor, y: &Tensor, p: f64) -> Result<Tensor> {
    let wide = |t: &Tensor, at: usize| {
        let mut shape = t.shape().clone();
        shape.insert(at, 1);
        t.reshape_to(&shape)
    };
    let (x, y) = (wide(x, x.ndim() - 1)?, wide(y, y.ndim() - 2)?);
    let d = x.sub(&y)?;
    if d.size(d.ndim() - 1) == 0 {
        let zeros = Tensor::zeros(&d.shape()[..d.ndim() - 1], d.dtype(), d.device())?;
        // Still a part of the graph, with a gradient of nothing.
        return zeros.add(&d.sum_mask(DimSet::last(1, d.ndim())?, false, None)?);
    }
    without_last(&norm_last(&d, p)?)
}

//! Running results along a dimension.

/// What running results along `dim` have of [`Op`]: the same of many tensors, no doubt that they succeed, and lines
/// that threads share out.
macro_rules! along_lines {
    () => {
        fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
            let mut op = self.clone();
            op.dim += 1;
            Some(Arc::new(op))
        }
        fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
            Ok(true)
        }
        fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
            Cut::of_lines(x, self.dim, y)
        }
    };
}

mod extreme;
mod logcumsumexp;
mod product;
mod sum;
mod sums;
mod walk;

use crate::arg;
use crate::cpu::elements::Compute;
use crate::cpu::pool::Ptr;
use crate::cpu::reduce::filled;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::scan::{Scan, Step};
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Metas, Op, TensorMeta, Tensors};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::Conj;
use crate::ops::shape::join::cat;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Span};
use crate::tensor::Tensor;
use crate::{bail, transfer};
use extreme::CumulativeExtreme;
pub use product::{Cumprod, Recurrence};
use smallvec::{smallvec, SmallVec};
pub use sum::Cumsum;
use walk::walk;

/// Runs a scan along `dim` of the GPU's tensors.
fn launch(
    gpu: &Gpu,
    (step, blend): (Step, &str),
    (dim, reverse): (usize, bool),
    x: &[&Tensor],
    y: &[Tensor],
) -> Result<bool> {
    let given = x.iter().map(|t| transfer::dense(gpu, t));
    let given: SmallVec<[Tensor; 2]> = given.collect::<Result<_>>()?;
    let scan = Scan {
        step,
        reverse,
        lines: Span::of(y[0].shape(), dim),
        x: transfer::whole(&given[0])?,
        b: given.get(1).map(transfer::whole).transpose()?,
        segments: None,
        blend,
    };
    let index = y.get(1).map(transfer::whole).transpose()?;
    transfer::ran(scan.run(gpu, transfer::whole(&y[0])?, index))
}

/// Both halves of lines that no kernel binds, as where they begin and how long they are; `None` of others.
fn halves(x: &Tensor, (dim, reverse): (usize, bool), widest: DType) -> Option<[(i64, i64); 2]> {
    if transfer::has_short_lines_of(x, dim, widest) {
        return None;
    }
    let n = x.size(dim) as i64;
    let (low, high) = ((0, n / 2), (n / 2, n - n / 2));
    Some(if reverse { [high, low] } else { [low, high] })
}

/// A scan of lines that no binding has, by their halves: what the one in front ends with is joined to all
/// of the other. `None` where a kernel can bind a line.
fn by_halves<O: Op + Clone>(
    op: &O,
    (dim, reverse): (usize, bool),
    x: &Tensor,
    dtype: DType,
    join: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Option<Tensors>> {
    let Some([first, second]) = halves(x, (dim, reverse), x.dtype().compute()) else {
        return Ok(None);
    };
    let part = |t: &Tensor, (from, n)| t.narrow(dim as i64, from, n);
    let y = Tensor::empty(x.shape(), dtype, x.device())?;
    let front = dispatch::call1(op.clone(), &[&part(x, first)?])?;
    let end = if reverse { 0 } else { first.1 - 1 };
    let so_far = part(&front, (end, 1))?;
    part(&y, first)?.write_from(&front)?;
    drop(front);
    let rest = dispatch::call1(op.clone(), &[&part(x, second)?])?;
    part(&y, second)?.write_from(&join(&so_far, &rest)?)?;
    Ok(Some(smallvec![y]))
}

fn same_meta(x: &Meta, dtype: DType) -> Result<Metas> {
    Ok(smallvec![TensorMeta::new(x.shape(), dtype, x.device())])
}

/// Running results in `T` along a dimension, or against it: `f(elements of x, state)` gives the next one.
fn running<T: Compute, A: Copy + Send + Sync, const N: usize>(
    x: [&Tensor; N],
    y: &Tensor,
    along: (usize, bool),
    init: A,
    f: impl Fn([T; N], &mut A) -> T + Sync + Copy,
) -> Result<()> {
    let x = x.into_iter().map(|t| t.prepared(T::DTYPE));
    let x: SmallVec<[Tensor; 2]> = x.collect::<Result<_>>()?;
    let from = std::array::from_fn(|i| Ptr::new(x[i].ptr::<T>()));
    filled::<T>(y, |out| {
        visit(from, Ptr::new(out.as_mut_ptr()), y.shape(), along, init, f)
    });
    Ok(())
}

fn visit<T: Copy, A: Copy + Send + Sync, const N: usize>(
    x: [Ptr<T>; N],
    y: Ptr<T>,
    shape: &[usize],
    along: (usize, bool),
    init: A,
    f: impl Fn([T; N], &mut A) -> T + Sync + Copy,
) {
    walk(shape, along, init, move |e, _, s| {
        // SAFETY: all have this shape, and each element is visited once.
        unsafe { *y.at(e) = f(x.map(|x| *x.at(e)), s) };
    });
}

/// Real and imaginary part.
type Pair = [f64; 2];

fn times(a: Pair, b: Pair) -> Pair {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// As [`running`] of complex numbers.
fn running_complex<const N: usize, A: Copy + Send + Sync>(
    x: [&Tensor; N],
    y: &Tensor,
    along: (usize, bool),
    init: A,
    f: impl Fn([Pair; N], &mut A) -> Pair + Sync + Copy,
) -> Result<()> {
    let wide = |t: &Tensor| t.to_dtype(DType::C128)?.prepared(DType::C128);
    let x: SmallVec<[Tensor; 2]> = x.into_iter().map(wide).collect::<Result<_>>()?;
    let out = Tensor::empty(y.shape(), DType::C128, y.device())?;
    let to = Ptr::new(out.bytes_ptr().cast::<Pair>());
    visit(
        std::array::from_fn(|i| Ptr::new(x[i].bytes_ptr().cast())),
        to,
        y.shape(),
        along,
        init,
        f,
    );
    y.write_from(&out)
}

fn conjugate(x: &Tensor) -> Result<Tensor> {
    match x.dtype().is_complex() {
        true => apply(Conj, [x]),
        false => Ok(x.clone()),
    }
}

impl Tensor {
    /// `cummax`, without the indices.
    pub fn running_max(&self, dim: usize) -> Result<Tensor> {
        let op = CumulativeExtreme { dim, largest: true };
        Ok(dispatch::call(op, &[self])?.swap_remove(0))
    }

    /// `cumsum` in this tensor's own type.
    pub fn cumsum(&self, dim: i64) -> Result<Tensor> {
        let dim = shape::dim(dim, self.ndim())?;
        dispatch::call1(
            Cumsum {
                dim,
                reverse: false,
                dtype: self.dtype(),
            },
            &[self],
        )
    }

    /// One step later along `dim` (with `earlier`, one step earlier); `fill` comes in at the end.
    pub fn shifted(&self, dim: usize, earlier: bool, fill: Scalar) -> Result<Tensor> {
        if self.ndim() == 0 || self.size(dim) < 2 {
            return Tensor::full(self.shape(), fill, self.dtype(), self.device());
        }
        let (d, n) = (dim as i64, self.size(dim) as i64);
        let mut shape = self.shape().clone();
        shape[dim] = 1;
        let edge = Tensor::full(&shape, fill, self.dtype(), self.device())?;
        match earlier {
            true => cat(&[self.slice_dim(d, Some(1), None, 1)?, edge], d),
            false => cat(&[edge, self.slice_dim(d, Some(0), Some(n - 1), 1)?], d),
        }
    }
}

fn cumulative_extreme<Sig: Signature>(a: &Args<Sig>, largest: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    Ok(Value::Tuple(
        dispatch::call(CumulativeExtreme { dim, largest }, &[x])?.into_vec(),
    ))
}

/// `cumsum` and `cumprod`: the dimension and the result's type.
fn scan_arguments<Sig: Signature>(a: &Args<Sig>) -> Result<(usize, DType)> {
    let x = a.tensor(arg!(self))?;
    let dtype = a.dtype(arg!(dtype)).unwrap_or(x.dtype().to_sum());
    if dtype == DType::Bool || dtype.is_wide_unsigned() {
        bail!(
            NoKernel,
            "\"{}_out_cpu\" not implemented for '{}'",
            a.schema.name,
            dtype.scalar_name()
        );
    }
    Ok((shape::dim(a.int(arg!(dim))?, x.ndim())?, dtype))
}

crate::entries! {
    /// Running sums along `dim`; integers and bool in int64.
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", ALL | TYPED | WHOLE,
    |a| {
        let (dim, dtype) = scan_arguments(a)?;
        Ok(dispatch::call1(Cumsum { dim, reverse: false, dtype }, &[a.tensor(arg!(self))?])?.into())
    };
    /// Running products along `dim`; integers and bool in int64.
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", ALL | TYPED | WHOLE,
    |a| {
        let (dim, dtype) = scan_arguments(a)?;
        Ok(dispatch::call1(Cumprod { dim, reverse: false, dtype }, &[a.tensor(arg!(self))?])?.into())
    };
    /// Running maxima along `dim` and their indices; of equal ones the last.
    "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", FN | METHOD | OUT,
    |a| cumulative_extreme(a, true);
    /// Running minima along `dim` and their indices; of equal ones the last.
    "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", FN | METHOD | OUT,
    |a| cumulative_extreme(a, false);
    /// Logarithms of running sums of exponentials along `dim`.
    "logcumsumexp(Tensor self, int dim) -> Tensor", FN | METHOD | OUT | WHOLE,
    |a| {
        Ok(a.tensor(arg!(self))?.logcumsumexp(a.int(arg!(dim))?)?.into())
    };
}

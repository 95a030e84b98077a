//! Reductions over segments of a dimension, each of a length of its own.

mod cpu;
mod gpu;
mod parts;
#[cfg(test)]
mod tests;

use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Mask, Metas, Op, Part, Save, TensorMeta, Tensors};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Maximum;
use crate::ops::pointwise::compare::{Eq, Gt, LogicalAnd, LogicalOr};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::IsNan;
use crate::ops::shape::join::cat;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;

/// How the elements of a segment become one.
#[derive(Clone, Copy, Debug, PartialEq, std::cmp::Eq, Hash)]
pub enum Combine {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
}

impl Combine {
    /// What changes nothing: the result of a segment without elements, but of a mean.
    fn identity(self) -> f64 {
        match self {
            Combine::Sum | Combine::Mean => 0.0,
            Combine::Max => f64::NEG_INFINITY,
            Combine::Min => f64::INFINITY,
            Combine::Prod => 1.0,
        }
    }
}

/// One value for each segment. The inputs are the elements, `[batch.., length, inner..]`, and where
/// segments begin, `[batch.., segments + 1]`: each ends where the next begins.
#[derive(Clone, Debug, PartialEq, std::cmp::Eq, Hash)]
struct SegmentReduce {
    combine: Combine,
    /// One more element of every segment, which a mean does not count; alone it is the mean.
    initial: Option<Scalar>,
}

/// The adjoint of a sum, or of a mean: each element of a segment gets its value, or its share of it;
/// what lies in no segment gets nothing.
#[derive(Clone, Debug, PartialEq, std::cmp::Eq, Hash)]
struct SegmentSpread {
    length: usize,
    mean: bool,
}

/// Sizes of the elements and of their segments.
#[derive(Clone, Copy, Debug)]
struct Extent {
    outer: usize,
    segments: usize,
    length: usize,
    inner: usize,
}

impl Extent {
    /// Of the elements' shape and that of the bounds.
    fn of(x: &[usize], bounds: &[usize]) -> Extent {
        let axis = bounds.len() - 1;
        Extent {
            outer: x[..axis].iter().product(),
            segments: bounds[axis] - 1,
            length: x[axis],
            inner: x[axis + 1..].iter().product(),
        }
    }
}

/// `shape` with another size along the dimension of the segments.
fn resized(x: &Meta, bounds: &Meta, size: usize) -> Metas {
    let mut shape = Dims::from_slice(x.shape());
    shape[bounds.ndim() - 1] = size;
    SmallVec::from_elem(TensorMeta::new(&shape, x.dtype(), x.device()), 1)
}

/// Rows have segments of their own; what lies inside of them shares these.
fn cuts(x: &Meta, bounds: &Meta) -> Vec<Cut> {
    let axis = bounds.ndim() - 1;
    let cut = |d| match d < axis {
        true => Cut::new([Part::Along(d); 2], [Part::Along(d)]),
        false => Cut::new([Part::Along(d), Part::Whole], [Part::Along(d)]),
    };
    (0..x.ndim()).filter(|&d| d != axis).map(cut).collect()
}

fn reduce(
    combine: Combine,
    initial: Option<Scalar>,
    x: &Tensor,
    bounds: &Tensor,
) -> Result<Tensor> {
    dispatch::call1(SegmentReduce { combine, initial }, &[x, bounds])
}

impl SegmentReduce {
    /// The share of each element in the gradient of a chosen value.
    fn chosen(
        &self,
        g: &Tensor,
        cx: &Vjp,
        spread: &dyn Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (x, y) = (cx.input(0)?.detach(), spread(&cx.output(0)?.detach())?);
        let nan = apply(LogicalAnd, [&apply(IsNan, [&x])?, &apply(IsNan, [&y])?])?;
        let equal = apply(LogicalOr, [&apply(Eq, [&x, &y])?, &nan])?;
        let ones = equal.to_dtype(x.dtype().compute())?;
        let count = reduce(Combine::Sum, None, &ones, &cx.input(1)?)?;
        let share = g.div(&apply(
            Maximum,
            [&count, &Tensor::number(Scalar::Float(1.0))?],
        )?)?;
        let share = spread(&share.to_dtype(g.dtype())?)?;
        where_(&equal, &share, &Tensor::zeros(&[], g.dtype(), g.device())?)
    }

    /// The product of the other elements of each one's segment.
    fn others(&self, cx: &Vjp, spread: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let (x, y) = (cx.input(0)?, spread(&cx.output(0)?)?);
        let zero = Tensor::zeros(&[], x.dtype(), x.device())?;
        let lost = apply(LogicalOr, [&apply(Eq, [&x, &zero])?, &apply(IsNan, [&x])?])?;
        if !lost.has_data() || !lost.any_true()? {
            return y.div(&x);
        }
        // What one zero, or NaN, hides is the product without it; two hide each other, too.
        let one = Tensor::full(&[], Scalar::Float(1.0), x.dtype(), x.device())?;
        let rest = where_(&lost, &one, &x)?;
        let bounds = cx.input(1)?;
        let ones = lost.to_dtype(x.dtype().compute())?;
        let count = spread(&reduce(Combine::Sum, None, &ones, &bounds)?)?;
        let several = apply(Gt, [&count, &Tensor::number(Scalar::Float(1.5))?])?;
        ensure!(
            !mode::traced() || !apply(LogicalAnd, [&several, &lost])?.any_true()?,
            NotImplemented,
            "segment_reduce: the second derivative of a product with several zeros is not \
             implemented"
        );
        let hidden = spread(&reduce(Combine::Prod, self.initial, &rest, &bounds)?)?;
        where_(&lost, &where_(&several, &y, &hidden)?, &y.div(&rest)?)
    }
}

impl Derivative for SegmentReduce {
    fn name(&self) -> &'static str {
        "SegmentReduceBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        match self.combine {
            Combine::Sum | Combine::Mean => Save::inputs([1]),
            _ => Save::inputs([0, 1]).and_outputs([0]),
        }
    }
    fn steps(&self) -> Mask {
        matches!(self.combine, Combine::Max | Combine::Min) as Mask
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        let Some(g) = &g[0] else { return Ok(out) };
        let bounds = cx.input(1)?;
        let op = SegmentSpread {
            length: cx.input_meta(0)?.shape[bounds.ndim() - 1],
            mean: self.combine == Combine::Mean,
        };
        let spread = |t: &Tensor| dispatch::call1(op.clone(), &[t, &bounds]);
        out[0] = Some(match self.combine {
            Combine::Sum | Combine::Mean => spread(g)?,
            Combine::Max | Combine::Min => self.chosen(g, cx, &spread)?,
            Combine::Prod => spread(g)?.mul(&self.others(cx, &spread)?)?,
        });
        Ok(out)
    }
}

impl Op for SegmentReduce {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(resized(x[0], x[1], x[1].size(x[1].ndim() - 1) - 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        cpu::reduce(self, x[0], x[1], &y[0])
    }
    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        cuts(x[0], x[1])
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::reduce(self, x[0], x[1])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(gpu::reduce(gpu, self, x[0], x[1], &y[0]))
    }
}

impl Derivative for SegmentSpread {
    fn name(&self) -> &'static str {
        "SegmentReduceBackwardBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        if let Some(g) = &g[0] {
            // The mean of no elements is that of nothing here.
            let (combine, initial) = match self.mean {
                true => (Combine::Mean, Some(Scalar::Float(0.0))),
                false => (Combine::Sum, None),
            };
            out[0] = Some(reduce(combine, initial, g, &cx.input(1)?)?);
        }
        Ok(out)
    }
}

impl Op for SegmentSpread {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(resized(x[0], x[1], self.length))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        cpu::spread(self, x[0], x[1], &y[0])
    }
    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        cuts(x[0], x[1])
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::spread(self, x[0], x[1])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(gpu::spread(gpu, self, x[0], x[1], &y[0]))
    }
}

/// Where segments begin, in int64 and ascending within each row, from their lengths or offsets.
fn bounds(x: &Tensor, given: &Tensor, what: &str, axis: usize, all: bool) -> Result<Tensor> {
    ensure!(
        matches!(given.dtype(), DType::I32 | DType::I64),
        NoKernel,
        "\"segment_reduce\" not implemented for '{}': {what} must be int32 or int64",
        given.dtype().scalar_name()
    );
    ensure!(
        given.ndim() == axis + 1,
        Runtime,
        "segment_reduce(): Expected axis to be the last dimension of {what} but got {axis} for \
         {what} of {} dimensions.",
        given.ndim()
    );
    ensure!(
        given.shape()[..axis] == x.shape()[..axis],
        Runtime,
        "segment_reduce(): {what} must have the sizes of data before axis {axis}, got {} and {}",
        Show(given.shape()),
        Show(x.shape())
    );
    let length = x.size(axis) as i64;
    if !given.has_data() {
        let mut shape = given.shape().clone();
        shape[axis] += (what != "offsets") as usize;
        return Tensor::empty(&shape, DType::I64, given.device());
    }
    let given = given
        .detach()
        .to_device(Device::Cpu)?
        .to_dtype(DType::I64)?;
    if what == "offsets" {
        ensure!(
            given.size(axis) > 0,
            Runtime,
            "segment_reduce(): offsets must have an element more along axis than there are \
             segments, got {}",
            Show(given.shape())
        );
        let given = given.contiguous()?;
        // SAFETY: contiguous host memory of this type.
        let rows = unsafe { given.slice::<i64>() };
        for row in rows.chunks(given.size(axis)) {
            ensure!(
                row.is_sorted() && row[0] >= 0 && row[row.len() - 1] <= length,
                Runtime,
                "segment_reduce(): Expected segment_length >= 0 and offsets within [0, {length}], \
                 got {}",
                Show(row)
            );
        }
        return given.to_device(x.device());
    }
    let host = given.contiguous()?;
    // SAFETY: contiguous host memory of int64, which it was converted to.
    let rows = unsafe { host.slice::<i64>() };
    ensure!(
        rows.iter().all(|&n| n >= 0),
        Runtime,
        "segment_reduce(): lengths contains negative value!"
    );
    for row in rows.chunks(given.size(axis).max(1)) {
        let sum = row.iter().fold(0i64, |sum, &n| sum.saturating_add(n));
        ensure!(
            sum == length || !all && sum < length,
            Runtime,
            "segment_reduce(): Expected all rows of lengths along axis to sum to \
             data.size(lengths.dim()-1) when !unsafe: {length} elements, got a row of {sum}"
        );
    }
    ensure!(
        given.size(axis) > 0 || length == 0 || !all,
        Runtime,
        "segment_reduce(): Expected all rows of lengths along axis to sum to \
         data.size(lengths.dim()-1) when !unsafe: {length} elements, got no segments"
    );
    let mut first = given.shape().clone();
    first[axis] = 1;
    let zero = Tensor::zeros(&first, DType::I64, Device::Cpu)?;
    cat(&[zero, given.cumsum(axis as i64)?], axis as i64)?.to_device(x.device())
}

fn segment_reduce<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(data))?;
    let combine = match a.str(arg!(reduce))? {
        "sum" => Combine::Sum,
        "mean" => Combine::Mean,
        "max" | "amax" => Combine::Max,
        "min" | "amin" => Combine::Min,
        "prod" => Combine::Prod,
        other => bail!(
            Runtime,
            "segment_reduce(): reduce argument must be either sum, prod, mean, max or min, got \
             {other}"
        ),
    };
    ensure!(
        a.is_none(arg!(indices)),
        Runtime,
        "segment_reduce(): indices based reduction is not supported yet."
    );
    let (given, what) = match (a.opt_tensor(arg!(offsets)), a.opt_tensor(arg!(lengths))) {
        (Some(offsets), _) => (offsets, "offsets"),
        (None, Some(lengths)) => (lengths, "lengths"),
        (None, None) => bail!(
            Runtime,
            "segment_reduce(): Either lengths or offsets must be defined."
        ),
    };
    ensure!(
        x.ndim() >= given.ndim() && x.ndim() > 0,
        Runtime,
        "segment_reduce(): Expected data.dim() >= {what}.dim(), got {} and {} dimensions",
        x.ndim(),
        given.ndim()
    );
    ensure!(
        x.dtype().is_float(),
        NoKernel,
        "\"segment_reduce\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let axis = shape::dim(a.int(arg!(axis))?, x.ndim())?;
    let bounds = bounds(x, given, what, axis, !a.bool(arg!(unsafe))?)?;
    // An element like the others, so of their type.
    let initial = a.opt_scalar(arg!(initial));
    let initial = initial.map(|v| Scalar::Float(x.dtype().nearest(v.f64())));
    Ok(reduce(combine, initial, x, &bounds)?.into())
}

crate::entries! {
    /// Reduces segments along axis, one after the other, given by their lengths or offsets.
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    FN, segment_reduce;
}

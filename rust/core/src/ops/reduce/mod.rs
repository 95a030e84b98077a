//! Reductions over dimensions to one value each.

crate::ops::family! { diff extrema histogram nan_mean scan segment_reduce stats; ENTRIES }

use super::pointwise::unary::{IsNan, LogicalNot};
use super::pointwise::{apply, ternary::where_};
use crate::arg;
use crate::autograd::{mode, Vjp};
use crate::cpu::any_all;
use crate::cpu::reduce::{divide, filled, reduce, whole as total, Fold, Kind, WHOLE};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::reduce::{reduce as launch, Combine, Map};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::one;
use crate::op::{Asked, Derivative, Fast, Fusion, Grads, Metas, Op, Rare, TensorMeta, Traits};
use crate::schema::{Args, At, Dest, Signature, Value};
use crate::shape::{reduced, DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_compute};
pub use extrema::shared_gradient;
use scan::Cumprod;
use smallvec::SmallVec;
use std::sync::Arc;

/// One value for all elements along the dimensions in `mask`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    pub kind: Kind,
    pub mask: DimSet,
    pub keepdim: bool,
    /// The result's type, in whose compute type elements are combined.
    pub dtype: DType,
    /// Whether to divide by the number of elements.
    pub mean: bool,
    /// Whether a NaN that is the extreme gets the gradient: that of `max()`, not that of `amax()`.
    pub nan_gradient: bool,
    pub name: &'static str,
}

/// The shape after reducing the dimensions in `mask`.
pub fn reduced_shape(shape: &[usize], mask: DimSet, keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (d, &n) in shape.iter().enumerate() {
        if !mask.has(d) {
            out.push(n);
        } else if keepdim {
            out.push(1);
        }
    }
    out
}

/// The number of elements that go into each result.
pub fn reduced_count(shape: &[usize], mask: DimSet) -> usize {
    shape
        .iter()
        .enumerate()
        .filter(|&(d, _)| mask.has(d))
        .fold(1, |count: usize, (_, &n)| count.wrapping_mul(n))
}

/// Puts back dimensions of size one where `mask` says they were reduced.
pub fn restored(g: &Tensor, shape: &[usize], mask: DimSet, keepdim: bool) -> Result<Tensor> {
    if keepdim {
        return Ok(g.clone());
    }
    g.reshape_to(&reduced_shape(shape, mask, true))
}

/// Puts dimensions of size one where `mask` says they were reduced, and expands to `shape`.
pub fn spread(g: &Tensor, shape: &[usize], mask: DimSet, keepdim: bool) -> Result<Tensor> {
    if !mode::traced() && !dispatch::heeded(&[g]) {
        // Without a graph to build, or anyone to see it, one view does.
        let like = reduced_shape(shape, mask, true);
        if let Some(layout) = g.layout().reshape(&like) {
            return Ok(g.alias(layout.expand_to(shape)));
        }
    }
    restored(g, shape, mask, keepdim)?.expand_to(shape)
}

/// Elements up to which a GPU spreads what a reduction left before it computes with that.
const SPREAD: usize = 1 << 20;

/// Whether numbers of a reduction are spread to `shape` before anything is computed with them: then that and what
/// follows are one kernel of a GPU. Over more elements one kernel is nothing, and memory for all of them is much.
pub fn spreads(g: &Tensor, shape: &[usize]) -> bool {
    let n: usize = shape.iter().product();
    g.device().is_gpu() && !mode::traced() && n <= SPREAD
}

/// A gradient or result of a reduction, to be computed with beside what was reduced: [`restored`], or [`spread`].
pub fn beside(g: &Tensor, shape: &[usize], mask: DimSet, keepdim: bool) -> Result<Tensor> {
    match spreads(g, shape) {
        true => spread(g, shape, mask, keepdim),
        false => restored(g, shape, mask, keepdim),
    }
}

/// Gradients of the product of all elements along `mask`, right where elements are zero.
fn product_gradient(op: &Reduce, cx: &Vjp, g: &Tensor) -> Result<Tensor> {
    if op.mask.is_empty() {
        return Ok(g.clone());
    }
    let x = cx.input(0)?;
    if x.ndim() == 0 {
        return Ok(g.clone());
    }
    let x = x.to_dtype(op.dtype)?;
    let shape = x.shape().clone();
    let g = spread(g, &shape, op.mask, op.keepdim)?;
    if x.is_readable() && x.detach().all_true()? {
        let y = spread(&cx.output(0)?, &shape, op.mask, op.keepdim)?;
        return g.mul(&y.div(&x)?);
    }
    // The product of the others: of all before times of all after.
    let over: SmallVec<[i64; 5]> = (0..x.ndim())
        .filter(|&d| op.mask.has(d))
        .map(|d| d as i64)
        .collect();
    let others = match over[..] {
        [d] => others_product(&x, d)?,
        _ => others_product(&x.reshape(&[-1])?, 0)?.reshape_to(&shape)?,
    };
    g.mul(&others)
}

fn others_product(x: &Tensor, d: i64) -> Result<Tensor> {
    let one = Scalar::Int(1);
    let dtype = x.dtype();
    let dim = crate::shape::dim(d, x.ndim())?;
    let before = dispatch::call1(
        Cumprod {
            dim,
            reverse: false,
            dtype,
        },
        &[x],
    )?;
    let after = dispatch::call1(
        Cumprod {
            dim,
            reverse: true,
            dtype,
        },
        &[x],
    )?;
    before
        .shifted(dim, false, one)?
        .mul(&after.shifted(dim, true, one)?)
}

impl Derivative for Reduce {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        let asked = Asked::of_node(self.name);
        if !matches!(asked.name.as_str(), "sum" | "mean" | "amax" | "amin") {
            return Ok(asked);
        }
        // No dimensions mean all of them there.
        if x[0].ndim() > 0 && !(0..x[0].ndim()).any(|d| self.mask.has(d)) {
            return Ok(asked);
        }
        let dims = (0..x[0].ndim()).filter(|&d| self.mask.has(d));
        let mut args = vec![x[0].clone().into()];
        if self.mask != DimSet::all(x[0].ndim()) || self.keepdim {
            args.push(Value::Ints(dims.map(|d| d as i64).collect()));
            args.extend(self.keepdim.then_some(Value::Bool(true)));
        }
        let own = x[0].dtype();
        let usual = if own.is_float() || own.is_complex() {
            own
        } else {
            DType::I64
        };
        Ok(match self.dtype == usual {
            true => asked.with(args),
            false => asked.with(args).option("dtype", Value::DType(self.dtype)),
        })
    }
    fn save(&self, _needs: crate::op::Mask) -> crate::op::Save {
        let (inputs, outputs) = match self.kind {
            Kind::Sum => (0, 0),
            Kind::NanSum => (1, 0),
            _ => (1, 1),
        };
        crate::op::Save { inputs, outputs }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(SmallVec::from_elem(None, 1));
        };
        let shape = cx.input_meta(0)?.shape.clone();
        match self.kind {
            Kind::Sum => {
                if !self.mean {
                    return one(spread(g, &shape, self.mask, self.keepdim)?);
                }
                let n = reduced_count(&shape, self.mask) as f64;
                one(match spreads(g, &shape) {
                    true => spread(g, &shape, self.mask, self.keepdim)?.div_scalar(n)?,
                    false => spread(&g.div_scalar(n)?, &shape, self.mask, self.keepdim)?,
                })
            }
            Kind::NanSum => {
                let m = apply(IsNan, [&cx.input(0)?])?;
                let g = spread(g, &shape, self.mask, self.keepdim)?;
                one(where_(&m, &Tensor::constant(0.0, g.dtype())?, &g)?)
            }
            Kind::Prod => one(product_gradient(self, cx, g)?),
            Kind::Max | Kind::Min => {
                let x = cx.input(0)?;
                let y = restored(&cx.output(0)?, &shape, self.mask, self.keepdim)?;
                let g = restored(g, &shape, self.mask, self.keepdim)?;
                one(shared_gradient(&g, &x, &y, self.mask, self.nan_gradient)?)
            }
            _ => bail!(Assertion, "{}: the result has no gradient", self.name),
        }
    }
}

impl Op for Reduce {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Reduce {
            mask: self.mask.of_many(),
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        let rare = matches!(self.kind, Kind::Sum | Kind::Prod | Kind::Any | Kind::All);
        Traits {
            rare: match rare && !self.dtype.is_rare() {
                true => Rare::ALL,
                false => Rare::NONE,
            },
            linear: match self.kind {
                Kind::Sum => &[0],
                _ => &[],
            },
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), self.mask, self.keepdim);
        let meta = TensorMeta {
            shape,
            dtype: self.dtype,
            device: x[0].device(),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], &y[0]);
        if x.dtype().is_rare() {
            let as_is = if matches!(self.kind, Kind::Any | Kind::All) {
                DType::Bool
            } else {
                self.dtype
            };
            let x = x.detach().to_dtype(as_is)?;
            return self.cpu(&[&x], std::slice::from_ref(y));
        }
        if y.dtype().is_complex() && self.kind == Kind::Sum {
            return self.sum_parts(&x.to_dtype(y.dtype())?, y);
        }
        if matches!(self.kind, Kind::Any | Kind::All) && y.dtype().size() == 1 {
            // SAFETY: a fresh contiguous output of single bytes.
            let out = unsafe { y.slice_mut::<u8>() };
            if any_all::reduce(x, self.mask, self.kind == Kind::All, out) {
                return Ok(());
            }
        }
        if x.dtype().is_complex() && matches!(self.kind, Kind::Any | Kind::All) {
            return self.cpu(
                &[&x.detach().to_dtype(DType::Bool)?],
                std::slice::from_ref(y),
            );
        }
        // The kernels below read real numbers.
        let real;
        let x = match x.dtype().is_complex() && !matches!(self.kind, Kind::Any | Kind::All) {
            true => {
                real = x.to_dtype(self.dtype)?;
                &real
            }
            false => x,
        };
        // Truth depends on the input's own type: 0.5 is true.
        let compute = match self.kind {
            Kind::Any | Kind::All => x.dtype().compute(),
            _ => self.dtype,
        };
        let n = reduced_count(x.shape(), self.mask);
        with_compute!(compute, T => filled::<T>(y, |out| {
            reduce::<T>(x, self.mask, self.kind, None, out);
            if self.mean {
                divide(out, n);
            }
        }));
        Ok(())
    }

    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }

    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (x, y) = (x[0], &y[0]);
        let (combine, map) = match self.kind {
            Kind::Sum => (Combine::Sum, Map::Keep),
            Kind::Prod => (Combine::Prod, Map::Keep),
            Kind::Max => (Combine::Max, Map::Keep),
            Kind::Min => (Combine::Min, Map::Keep),
            Kind::Any => (Combine::Any, Map::Truth),
            Kind::All => (Combine::All, Map::Truth),
            Kind::SumSquares => (Combine::Sum, Map::Square),
            Kind::NanSum => (Combine::Sum, Map::Present),
            Kind::SumAbs => (Combine::Sum, Map::Magnitude),
            Kind::MaxAbs => (Combine::Max, Map::Magnitude),
            Kind::MinAbs => (Combine::Min, Map::Magnitude),
            _ => return Ok(false),
        };
        // The shader combines in the wider type of both, we in the result's.
        if map != Map::Truth && x.dtype().is_float() && !y.dtype().is_float() {
            return Ok(false);
        }
        let n = reduced_count(x.shape(), self.mask);
        // Its scale is a float32.
        let exact = self.mean && y.dtype() == DType::F64;
        let scale = if self.mean && !exact {
            1.0 / n as f64
        } else {
            1.0
        };
        let (from, to) = (transfer::whole(x)?, transfer::whole(y)?);
        let done = transfer::ran(launch(gpu, combine, map, scale, from, self.mask, to))?;
        if done && exact {
            y.write_from(&y.detach().div_scalar(n as f64)?)?;
        }
        Ok(done)
    }
}

impl Fusion for Reduce {
    fn reduction(&self, x: &Meta) -> Option<(Fold, DimSet)> {
        let (source, truth) = (x.dtype(), matches!(self.kind, Kind::Any | Kind::All));
        let real = !source.is_complex() && !self.dtype.is_complex();
        let fold = Fold {
            kind: self.kind,
            source,
            compute: self.dtype.compute(),
            mean: self.mean,
        };
        (real && !truth && !source.is_rare()).then_some((fold, self.mask))
    }
}

impl Fast for Reduce {
    fn call(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        let (x, n) = (x[0], x[0].numel());
        let plain = (x.dtype(), self.dtype, x.device()) == (DType::F32, DType::F32, Device::Cpu);
        if !plain || !(1..=WHOLE).contains(&n) || self.mask != all_dims(x) || !x.is_contiguous() {
            return None;
        }
        let shape = reduced_shape(x.shape(), self.mask, self.keepdim);
        Some(Tensor::empty(&shape, DType::F32, Device::Cpu).inspect(|y| {
            // SAFETY: so many elements of the type in host memory, and a new tensor of one.
            unsafe {
                let out = y.slice_mut::<f32>();
                out[0] = total(x.ptr::<f32>(), n, self.kind);
                if self.mean {
                    divide(out, n);
                }
            }
        }))
    }
}

impl Reduce {
    /// A complex sum is the sums of the real and the imaginary parts, which are columns that are kept.
    fn sum_parts(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        let op = Reduce {
            dtype: y.dtype().part(),
            ..self.clone()
        };
        op.cpu(&[&x.detach().components()], &[y.components()])
    }
}

/// Every dimension.
pub fn all_dims(x: &Tensor) -> DimSet {
    DimSet::all(x.ndim())
}

/// The dimensions in `mask` as one; used to name a reduction of everything.
fn whole(x: &Tensor, mask: DimSet, keepdim: bool) -> bool {
    !keepdim && mask == all_dims(x)
}

impl Tensor {
    /// A reduction in this tensor's own type.
    pub fn reduce(
        &self,
        kind: Kind,
        mask: DimSet,
        keepdim: bool,
        dtype: DType,
        name: &'static str,
    ) -> Result<Tensor> {
        dispatch::call1(
            Reduce {
                kind,
                mask,
                keepdim,
                dtype,
                mean: false,
                nan_gradient: false,
                name,
            },
            &[self],
        )
    }

    /// `sum` over the dimensions in `mask`.
    pub fn sum_mask(&self, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.unwrap_or(self.dtype().to_sum());
        let name = if whole(self, mask, keepdim) {
            "SumBackward0"
        } else {
            "SumBackward1"
        };
        if dtype == DType::Bool {
            return self.reduce(Kind::Any, mask, keepdim, dtype, name);
        }
        self.reduce(Kind::Sum, mask, keepdim, dtype, name)
    }

    /// `sum` of all elements.
    pub fn sum_all(&self) -> Result<Tensor> {
        self.sum_mask(all_dims(self), false, None)
    }

    /// `sum` along one dimension.
    pub fn sum_dim(&self, dim: i64, keepdim: bool) -> Result<Tensor> {
        self.sum_mask(reduced(Some(&[dim]), self.ndim())?, keepdim, None)
    }

    /// `mean` over the dimensions in `mask`.
    pub fn mean_mask(&self, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let what = if dtype.is_some() { "Optional" } else { "Input" };
        let dtype = dtype.unwrap_or(self.dtype());
        ensure!(
            dtype.differentiable(),
            Runtime,
            "mean(): could not infer output dtype. {what} dtype must be either a floating point \
             or complex dtype. Got: {}",
            dtype.scalar_name()
        );
        let name = if whole(self, mask, keepdim) {
            "MeanBackward0"
        } else {
            "MeanBackward1"
        };
        dispatch::call1(
            Reduce {
                kind: Kind::Sum,
                mask,
                keepdim,
                dtype,
                mean: true,
                nan_gradient: false,
                name,
            },
            &[self],
        )
    }

    /// `mean` of all elements.
    pub fn mean_all(&self) -> Result<Tensor> {
        self.mean_mask(all_dims(self), false, None)
    }

    /// Whether every element is true.
    pub fn all_true(&self) -> Result<bool> {
        let y = self.reduce(
            Kind::All,
            all_dims(self),
            false,
            DType::Bool,
            "AllBackward0",
        )?;
        Ok(y.item()?.truth())
    }

    /// Whether any element is true.
    pub fn any_true(&self) -> Result<bool> {
        let y = self.reduce(
            Kind::Any,
            all_dims(self),
            false,
            DType::Bool,
            "AnyBackward0",
        )?;
        Ok(y.item()?.truth())
    }

    /// Sums broadcast dimensions away (`sum_to_size`).
    pub fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape()[..] == *shape {
            return Ok(self.clone());
        }
        let lead = self.ndim() - shape.len();
        let mask = DimSet::of(self.ndim(), |d| {
            d < lead || (shape[d - lead] == 1 && self.size(d) != 1)
        })?;
        // Where only leading dimensions go, the sum is the result's own memory, not a view of it.
        let leads = lead > 0 && mask == DimSet::of(self.ndim(), |d| d < lead)?;
        let y = self.sum_mask(mask, !leads, Some(self.dtype()))?;
        match leads || lead == 0 {
            true => Ok(y),
            false => y.reshape_to(shape),
        }
    }
}

/// Complex numbers are multiplied in pairs, until one is left.
pub fn complex_product(x: &Tensor, mask: DimSet, keepdim: bool) -> Result<Tensor> {
    let (mut order, mut over) = (SmallVec::<[i64; 5]>::new(), SmallVec::<[i64; 5]>::new());
    for d in 0..x.ndim() {
        match mask.has(d) {
            true => over.push(d as i64),
            false => order.push(d as i64),
        }
    }
    order.extend(over);
    let out = reduced_shape(x.shape(), mask, keepdim);
    let mut n = reduced_count(x.shape(), mask);
    if n == 0 {
        return Tensor::full(&out, Scalar::Int(1), x.dtype(), x.device());
    }
    let mut shape = reduced_shape(x.shape(), mask, false);
    shape.push(n);
    let mut y = x.permute(&order)?.reshape_to(&shape)?;
    while n > 1 {
        let half = n as i64 / 2;
        let part = |from: i64, to: i64| y.slice_dim(-1, Some(from), Some(to), 1);
        let pairs = part(0, half)?.mul(&part(half, 2 * half)?)?;
        y = match n % 2 {
            0 => pairs,
            _ => crate::ops::shape::join::cat(&[pairs, part(2 * half, n as i64)?], -1)?,
        };
        n = n.div_ceil(2);
    }
    y.select(-1, 0)?.reshape_to(&out)
}

fn product(x: &Tensor, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(x.dtype().to_sum());
    if dtype.is_complex() {
        return complex_product(&x.to_dtype(dtype)?, mask, keepdim);
    }
    let name = if whole(x, mask, keepdim) {
        "ProdBackward0"
    } else {
        "ProdBackward1"
    };
    let kind = if dtype == DType::Bool {
        Kind::All
    } else {
        Kind::Prod
    };
    x.reduce(kind, mask, keepdim, dtype, name)
}

fn nansum(x: &Tensor, mask: DimSet, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    ensure!(
        !x.dtype().is_complex(),
        Runtime,
        "nansum does not support complex inputs"
    );
    if !x.dtype().is_float() {
        return x.sum_mask(mask, keepdim, dtype);
    }
    let dtype = dtype.unwrap_or(x.dtype());
    ensure!(
        !dtype.is_complex(),
        NoKernel,
        "\"nansum\" not implemented for '{}'",
        dtype.scalar_name()
    );
    if !dtype.is_float() {
        // Integers have no NaN: it is zero before they are made.
        let zero = Tensor::constant(0.0, x.dtype())?;
        let x = where_(&apply(IsNan, [x])?, &zero, x)?;
        return x.to_dtype(dtype)?.sum_mask(mask, keepdim, Some(dtype));
    }
    x.reduce(Kind::NanSum, mask, keepdim, dtype, "NansumBackward0")
}

/// `all` and `any`: bool, except that bytes stay bytes; `out=` may be of either type.
fn any_all<Sig: Signature>(
    a: &Args<Sig>,
    kind: Kind,
    mask: DimSet,
    keepdim: bool,
) -> Result<Value> {
    let mut x = a.tensor(arg!(self))?.detach();
    let dtype = match (a.dest, x.dtype()) {
        (Dest::Out(out), _) if matches!(out[0].dtype(), DType::Bool | DType::U8) => out[0].dtype(),
        (_, DType::U8) => DType::U8,
        _ => DType::Bool,
    };
    if dtype == DType::U8 && x.dtype() != DType::U8 {
        // As bytes, fractions would be zero.
        x = x.to_dtype(DType::Bool)?;
    }
    let op = Reduce {
        kind,
        mask,
        keepdim,
        dtype,
        mean: false,
        nan_gradient: false,
        name: match kind {
            Kind::All => "AllBackward0",
            _ => "AnyBackward0",
        },
    };
    a.call(op, &[&x])
}

/// The dimensions of `all` and `any`, for which an empty list means none.
fn named<Sig: Signature>(a: &Args<Sig>, x: &Tensor) -> Result<DimSet> {
    match a.opt_ints(arg!(dim)) {
        Some([]) => Ok(DimSet::NONE),
        _ => a.mask(arg!(dim), x),
    }
}

fn count_nonzero(x: &Tensor, mask: DimSet) -> Result<Tensor> {
    let x = x.detach();
    let present = apply(LogicalNot, [&apply(LogicalNot, [&x])?])?;
    present.sum_mask(mask, false, None)
}

fn sum_to_size(x: &Tensor, size: &[i64]) -> Result<Tensor> {
    let shape = crate::shape::sizes(size)?;
    ensure!(
        crate::shape::expandable(&shape, x.shape()),
        Runtime,
        "sum_to_size: size {{{}}} is not expandable to size {{{}}}.",
        Show(size),
        Show(x.shape())
    );
    // A sum of integers is int64; a size of no dimensions is always a sum.
    if x.dtype().is_integral() && (shape.is_empty() || x.shape() != &shape) {
        return x.to_dtype(DType::I64)?.sum_to(&shape);
    }
    if shape.is_empty() {
        return x.sum_all();
    }
    x.sum_to(&shape)
}

impl Args<'_> {
    /// The dimensions named by argument `i`: none or an empty list means all.
    pub fn mask(&self, i: At, x: &Tensor) -> Result<DimSet> {
        reduced(self.opt_ints(i), x.ndim())
    }
}

/// `all` or `any` of a tensor that must be of bools.
fn only_true<Sig: Signature>(a: &Args<Sig>, kind: Kind) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        x.dtype() == DType::Bool,
        Runtime,
        "the tensor must be of bools, got {}",
        x.dtype()
    );
    any_all(a, kind, all_dims(x), false)
}

crate::entries! {
    /// Sums all elements; integers and bool in int64.
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", FN | METHOD | TYPED,
    |a| Ok(a.tensor(arg!(self))?.sum_mask(all_dims(a.tensor(arg!(self))?), false, a.dtype(arg!(dtype)))?.into());
    /// Sums the elements along `dim`.
    "sum(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | TYPED,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(x.sum_mask(a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// Sums elements, taking NaN as zero.
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | TYPED,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(nansum(x, a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// The mean of all elements, which must be floating.
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", FN | METHOD | TYPED,
    |a| Ok(a.tensor(arg!(self))?.mean_mask(all_dims(a.tensor(arg!(self))?), false, a.dtype(arg!(dtype)))?.into());
    /// The mean along `dim`.
    "mean(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | TYPED,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(x.mean_mask(a.mask(arg!(dim), x)?, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// Multiplies all elements; integers and bool in int64.
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", FN | METHOD,
    |a| Ok(product(a.tensor(arg!(self))?, all_dims(a.tensor(arg!(self))?), false, a.dtype(arg!(dtype)))?.into());
    /// Multiplies the elements along `dim`.
    "prod(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | TYPED,
    |a| {
        let x = a.tensor(arg!(self))?;
        let mask = reduced(Some(&[a.int(arg!(dim))?]), x.ndim())?;
        Ok(product(x, mask, a.bool(arg!(keepdim))?, a.dtype(arg!(dtype)))?.into())
    };
    /// Whether all elements are nonzero.
    "all(Tensor self) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| any_all(a, Kind::All, all_dims(a.tensor(arg!(self))?), false);
    /// Whether all elements along `dim` are nonzero.
    "all(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    FN | METHOD | OUT | DIRECT,
    |a| any_all(a, Kind::All, named(a, a.tensor(arg!(self))?)?, a.bool(arg!(keepdim))?);
    /// Whether all elements are True.
    "_is_all_true(Tensor self) -> Tensor", FN | METHOD,
    |a| only_true(a, Kind::All);
    /// Whether any element is True.
    "_is_any_true(Tensor self) -> Tensor", FN | METHOD,
    |a| only_true(a, Kind::Any);
    /// Whether any element is nonzero.
    "any(Tensor self) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| any_all(a, Kind::Any, all_dims(a.tensor(arg!(self))?), false);
    /// Whether any element along `dim` is nonzero.
    "any(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    FN | METHOD | OUT | DIRECT,
    |a| any_all(a, Kind::Any, named(a, a.tensor(arg!(self))?)?, a.bool(arg!(keepdim))?);
    /// How many elements are nonzero.
    "count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", FN | METHOD | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        Ok(count_nonzero(x, a.mask(arg!(dim), x)?)?.into())
    };
    /// Sums to a size that expands to the tensor's: the adjoint of `expand`.
    "sum_to_size(Tensor self, int[] size) -> Tensor", METHOD,
    |a| Ok(sum_to_size(a.tensor(arg!(self))?, a.ints(arg!(size))?)?.into());
}

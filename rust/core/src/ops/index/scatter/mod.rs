//! Reading and writing along one dimension: `gather`, `scatter` and their reductions.

mod cpu;
pub(super) mod gpu;
mod reduce;

use super::Mode;
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::indices::Indices;
use crate::dispatch;
use crate::dispatch::parts::by_parts;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    lie_in, Batching, Cut, Derivative, Grads, Mapped, Metas, Op, Part, Rare, Save, TensorMeta,
    Tensors, Traits,
};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Remainder;
use crate::ops::pointwise::types::{fits, held};
use crate::ops::shape::copy::copy_host;
use crate::ops::shape::view::parts::assemble;
use crate::schema::{Args, At, Dest, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
pub use cpu::{gather as gather_along, scatter as scatter_along};
use reduce::{Reduce, ScatterReduce};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements of the first input at the positions that the second names along `dim`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    pub dim: usize,
}

/// Checks an index tensor against the tensor that it names places in.
fn check_index(name: &str, x: &Meta, dim: usize, idx: &Meta) -> Result<()> {
    if idx.numel() == 0 {
        return Ok(());
    }
    ensure!(
        matches!(idx.dtype(), DType::I64 | DType::I32),
        Runtime,
        "{name}(): Expected dtype int32/int64 for index, but got {}",
        idx.dtype()
    );
    ensure!(
        idx.ndim().max(1) == x.ndim().max(1),
        Runtime,
        "Index tensor must have the same number of dimensions as {} tensor: {name} got index {} \
         for {}",
        if name == "gather" { "input" } else { "self" },
        Show(idx.shape()),
        Show(x.shape())
    );
    ensure!(
        (0..x.ndim()).all(|d| d == dim || idx.size(d) <= x.size(d)),
        Runtime,
        "Size does not match at dimension {} expected index {} to be no larger than self {} apart \
         from dimension {dim}",
        (0..x.ndim())
            .find(|&d| d != dim && idx.size(d) > x.size(d))
            .unwrap_or(0),
        Show(idx.shape()),
        Show(x.shape())
    );
    Ok(())
}

impl Derivative for Gather {
    fn name(&self) -> &'static str {
        "GatherBackward0"
    }
    fn save(&self, _needs: u64) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let m = cx.input_meta(0)?;
        let zeros = Tensor::zeros(&m.shape, g.dtype(), m.device)?;
        let op = Scatter {
            dim: self.dim,
            mode: Mode::Add,
        };
        Ok(SmallVec::from_elem(
            Some(dispatch::call1(op, &[&zeros, &cx.input(1)?, g])?),
            1,
        ))
    }
}

impl Op for Gather {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Gather { dim: self.dim + 1 }))
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(
            x[1],
            0..x[0].shape().get(self.dim).copied().unwrap_or(1),
        ))
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            linear: &[0],
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        check_index("gather", x[0], self.dim, x[1])?;
        let meta = TensorMeta {
            shape: x[1].shape().clone(),
            ..TensorMeta::of(x[0])
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].dtype() == DType::C128 {
            return by_parts(self, x, &[0], &y[0]);
        }
        let index = x[1].prepared(DType::I64)?;
        cpu::gather(x[0], self.dim, &index, &y[0])
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        let (of, all) = (x[1], [Part::Along(self.dim)]);
        let mut cuts = Cut::of_lines(x, self.dim, y);
        // An index may have less of the other dimensions.
        cuts.retain(|cut| matches!(cut.x[0], Part::Along(d) if of.size(d) == x[0].size(d)));
        if of.ndim() > 0 {
            cuts.push(Cut::new([Part::Whole, all[0]], all));
        }
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let [x, index, y] = [x[0], x[1], &y[0]].map(lined);
        transfer::ran(gpu::gather(gpu, &x, self.dim, &index, &y))
    }
}

/// A 0-d tensor as one of a single element.
pub fn lined(t: &Tensor) -> Tensor {
    match t.ndim() {
        0 => t.alias(Layout {
            offset: t.offset(),
            ..Layout::contiguous(&[1])
        }),
        _ => t.clone(),
    }
}

/// A type of the same size, for kernels that only move elements; none is as large as `C128`.
pub fn bits(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::I16,
        4 => DType::I32,
        8 => DType::I64,
        _ => dtype,
    }
}

/// The first input with elements of the third combined into the places that the second names
/// along `dim`. A 0-d third input stands for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    pub dim: usize,
    pub mode: Mode,
}

/// `g`, of the index's shape, as a gradient of the larger source, or of one element for all.
fn padded(g: Tensor, shape: &[usize]) -> Result<Tensor> {
    if g.shape()[..] == *shape {
        return Ok(g);
    }
    if shape.is_empty() {
        return g.sum_all();
    }
    let g = if g.ndim() == 0 { g.reshape(&[1])? } else { g };
    let part = Layout {
        shape: g.shape().clone(),
        ..Layout::contiguous(shape)
    };
    assemble(shape, &[part], &[&g])
}

impl Derivative for Scatter {
    fn name(&self) -> &'static str {
        if self.mode == Mode::Add {
            "ScatterAddBackward0"
        } else {
            "ScatterBackward0"
        }
    }
    fn save(&self, _needs: u64) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let idx = cx.input(1)?;
        let mut out = Grads::new();
        out.push(match (cx.needs(0), self.mode) {
            (false, _) => None,
            (true, Mode::Add) => Some(g.clone()),
            (true, _) => {
                let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
                let op = Scatter {
                    dim: self.dim,
                    mode: Mode::Set,
                };
                Some(dispatch::call1(op, &[g, &idx, &zero])?)
            }
        });
        out.push(None);
        out.push(match cx.needs(2) {
            true => {
                let g = dispatch::call1(Gather { dim: self.dim }, &[g, &idx])?;
                Some(padded(g, &cx.input_meta(2)?.shape)?)
            }
            false => None,
        });
        Ok(out)
    }
}

impl Scatter {
    /// Combines elements in their order in the type of `y`, rounded after each of them.
    fn one_by_one(&self, x: &[&Tensor], y: &Tensor) -> Result<()> {
        let (old, idx, src) = (x[0], x[1].prepared(DType::I64)?, x[2]);
        if !(old.shares_storage(y) && old.layout() == y.layout()) {
            copy_host(old, y)?;
        }
        let src = match src.dtype() == y.dtype() {
            true => src.clone(),
            false => src.prepared(y.dtype())?,
        };
        match (y.dtype().is_complex(), self.mode) {
            (false, mode) => cpu::scatter(y, self.dim, &idx, &src, mode),
            (true, Mode::Mul) => cpu::multiply_complex(y, self.dim, &idx, &src),
            (true, _) => bail!(
                NotImplemented,
                "scatter_reduce: complex numbers have no order, got {}",
                y.dtype().scalar_name()
            ),
        }
    }
}

impl Op for Scatter {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            casts: false,
            linear: match self.mode {
                Mode::Set | Mode::Add => &[0, 2],
                _ => &[],
            },
            ..Traits::POINTWISE
        }
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(
            x[1],
            0..x[0].shape().get(self.dim).copied().unwrap_or(1),
        ))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let (idx, src) = (x[1], x[2]);
        check_index("scatter", x[0], self.dim, idx)?;
        let one = src.ndim() == 0;
        if !one && idx.numel() > 0 {
            ensure!(
                idx.ndim().max(1) == src.ndim(),
                Runtime,
                "Index tensor must have the same number of dimensions as src tensor, got {} and {}",
                Show(idx.shape()),
                Show(src.shape())
            );
            ensure!(
                (0..idx.ndim()).all(|d| idx.size(d) <= src.size(d)),
                Runtime,
                "Expected index {} to be no larger than self {} apart from dimension {} and to be \
                 no larger size than src {}",
                Show(idx.shape()),
                Show(x[0].shape()),
                self.dim,
                Show(src.shape())
            );
        }
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].dtype().is_complex() && matches!(self.mode, Mode::Set | Mode::Add) {
            return by_parts(self, x, &[0, 2], &y[0]);
        }
        let half = matches!(y[0].dtype(), DType::F16 | DType::BF16);
        if half && matches!(self.mode, Mode::Add | Mode::Mul) {
            // Rounded once: in half types sums would stop at a few hundred.
            let wide = x[0].prepared(DType::F32)?;
            let (idx, src) = (x[1].prepared(DType::I64)?, x[2].prepared(DType::F32)?);
            cpu::scatter(&wide, self.dim, &idx, &src, self.mode)?;
            return y[0].write_from(&wide);
        }
        self.one_by_one(x, &y[0])
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let (of, src) = (x[1], x[2]);
        let alike = |&d: &usize| {
            let mut sizes = x[..3 - (src.ndim() == 0) as usize]
                .iter()
                .map(|t| t.size(d));
            d != self.dim && sizes.all(|n| n == of.size(d))
        };
        let cut = |d: usize| {
            let values = if src.ndim() == 0 {
                Part::Whole
            } else {
                Part::Along(d)
            };
            Cut::new([Part::Along(d), Part::Along(d), values], [Part::Along(d)])
        };
        (0..of.ndim()).filter(alike).map(cut).collect()
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (old, index, y) = (x[0], x[1], &y[0]);
        let src = x[2].to(y.dtype(), y.device(), false, None)?;
        let part = match src.ndim() {
            0 => src.layout().expand_to(index.shape()),
            _ => Layout {
                shape: index.shape().clone(),
                ..src.layout().clone()
            },
        };
        if !(old.shares_storage(y) && old.layout() == y.layout()) {
            y.write_from(old)?;
        }
        let [y, index, src] = [y, index, &src.alias(part)].map(lined);
        transfer::ran(gpu::scatter(gpu, self.mode, &y, self.dim, &index, &src))
    }
}

impl Batching for Scatter {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        if x.ndim(0) == 0 || x.ndim(1) == 0 {
            return Ok(None);
        }
        let (to, idx) = (x.with_slices(0)?, x.with_slices(1)?);
        let src = match (x.ndim(2), x.has(2)) {
            (0, false) => x.x[2].clone(),
            (0, true) => x.aligned(2, x.ndim(1))?.expand_to(idx.shape())?,
            _ => x.with_slices(2)?,
        };
        let many = Scatter {
            dim: self.dim + 1,
            mode: self.mode,
        };
        dispatch::call(many, &[&to, &idx, &src]).map(Some)
    }
}

fn scatter(x: &Tensor, dim: usize, idx: &Tensor, src: &Tensor, mode: Mode) -> Result<Tensor> {
    dispatch::call1(Scatter { dim, mode }, &[x, idx, src])
}

fn gather(x: &Tensor, dim: usize, idx: &Tensor) -> Result<Tensor> {
    dispatch::call1(Gather { dim }, &[x, idx])
}

/// An argument that shares memory with the tensor written to, as a copy.
fn apart(a: &Args, x: &Tensor, src: &Tensor) -> Result<Tensor> {
    match a.dest {
        Dest::InPlace if src.shares_storage(x) => src.copy_dense(),
        _ => Ok(src.clone()),
    }
}

fn same_type(name: &str, x: &Tensor, src: &Tensor) -> Result<()> {
    ensure!(
        x.dtype() == src.dtype(),
        Runtime,
        "{name}(): Expected self.dtype to be equal to src.dtype, got {} and {}",
        x.dtype().scalar_name(),
        src.dtype().scalar_name()
    );
    Ok(())
}

/// A source tensor, which is never taken for a number: a 0-d one has one element.
fn source(a: &Args, x: &Tensor, i: At) -> Result<Tensor> {
    let src = apart(a, x, a.tensor(i)?)?;
    if src.ndim() == 0 {
        src.reshape(&[1])
    } else {
        Ok(src)
    }
}

fn scatter_mode<Sig: Signature>(a: &Args<Sig>) -> Result<Mode> {
    match a.opt_str(arg!(reduce)) {
        None => Ok(Mode::Set),
        Some("add") => Ok(Mode::Add),
        Some("multiply") => Ok(Mode::Mul),
        Some(_) => bail!(Runtime, "reduce argument must be either add or multiply."),
    }
}

/// A number for places of the first argument.
fn value<Sig: Signature>(a: &Args<Sig>, i: At) -> Result<Tensor> {
    let (number, x) = (a.number(i)?, a.tensor(arg!(self))?);
    fits(&number, x.dtype())?;
    held(&number, x.dtype())?.to_dtype(x.dtype())
}

fn run_scatter<Sig: Signature>(a: &Args<Sig>, mode: Mode, src: &Tensor) -> Result<Value> {
    let (x, idx) = (a.tensor(arg!(self))?, a.tensor(arg!(index))?);
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    let idx = apart(a, x, idx)?;
    if mode == Mode::Mul {
        let src = if src.ndim() == 0 {
            src.to_device(x.device())?.expand_to(idx.shape())?
        } else {
            src.clone()
        };
        let name = "ScatterReduceBackward0";
        let op = ScatterReduce {
            dim,
            how: Reduce::Prod,
            include_self: true,
            name,
        };
        return a.call(op, &[x, &idx, &src]);
    }
    a.call(Scatter { dim, mode }, &[x, &idx, src])
}

fn reduce<Sig: Signature>(
    a: &Args<Sig>,
    idx: &Tensor,
    how: &str,
    what: &'static str,
    name: &'static str,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    let how = Reduce::parse(how)?;
    let src = source(a, x, arg!(src | source))?;
    same_type(what, x, &src)?;
    let op = ScatterReduce {
        dim,
        how,
        include_self: a.bool(arg!(include_self))?,
        name,
    };
    a.call(op, &[x, idx, &src])
}

fn index_reduce<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, index, src) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(index))?,
        a.tensor(arg!(source))?,
    );
    ensure!(
        x.dtype() == src.dtype(),
        Runtime,
        "index_reduce_(): self ({}) and source ({}) must have the same scalar type",
        x.dtype().scalar_name(),
        src.dtype().scalar_name()
    );
    ensure!(
        !x.dtype().is_complex(),
        NoKernel,
        "\"index_func_\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    let how = a.str(arg!(reduce))?;
    ensure!(
        matches!(how, "prod" | "mean" | "amax" | "amin"),
        Runtime,
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {how}."
    );
    ensure!(
        index.ndim() <= 1,
        Index,
        "index_reduce(): Index is supposed to be a vector, but got dim: {}",
        index.ndim()
    );
    ensure!(
        matches!(index.dtype(), DType::I64 | DType::I32),
        Runtime,
        "index_reduce_(): Expected dtype int32/int64 for index but got: {}",
        index.dtype().scalar_name()
    );
    ensure!(
        index.numel() == src.size(dim) && src.ndim().max(1) == x.ndim().max(1),
        Runtime,
        "index_reduce(): Number of indices ({}) should be equal to source.size(dim): ({}), for \
         dim: {dim}",
        index.numel(),
        src.size(dim)
    );
    ensure!(
        (0..x.ndim()).all(|d| d == dim || x.size(d) == src.size(d)),
        Runtime,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got \
         self.shape = {} source.shape = {}",
        Show(x.shape()),
        Show(src.shape())
    );
    let mut column = Dims::from_elem(1, src.ndim().max(1));
    column[dim] = index.numel();
    let mut full = src.shape().clone();
    if full.is_empty() {
        full.push(1);
    }
    let near = index.is_readable() && !x.device().is_gpu();
    if near || src.numel() == 0 {
        check_positions(index, dim, x.shape().get(dim).copied().unwrap_or(1))?;
    }
    let idx = index.reshape_to(&column)?.expand_to(&full)?;
    reduce(a, &idx, how, "index_reduce", "IndexReduceBackward0")
}

/// Refuses positions out of range, also where nothing lies at any.
fn check_positions(index: &Tensor, dim: usize, size: usize) -> Result<()> {
    let host = index.detach().to_host()?.prepared(DType::I64)?;
    let outside = |&i: &i64| i < 0 || i as usize >= size;
    let found = Indices::of(&host).iter().find(outside);
    match found {
        None => Ok(()),
        Some(i) => bail!(
            Index,
            "index_reduce(): index {i} is out of bounds for dimension {dim} with size {size}"
        ),
    }
}

fn take_along(x: &Tensor, idx: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    ensure!(
        idx.dtype() == DType::I64,
        Runtime,
        "torch.take_along_dim(): dtype of indices should be Long but got {}",
        idx.dtype().scalar_name()
    );
    let Some(dim) = dim else {
        return gather(&x.reshape(&[-1])?, 0, &idx.reshape(&[-1])?);
    };
    ensure!(
        x.ndim() == idx.ndim(),
        Runtime,
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but \
         got {} dimensions for input, and {} dimensions for indices",
        x.ndim(),
        idx.ndim()
    );
    let d = shape::dim(dim, x.ndim())?;
    let (mut a, mut b) = (x.shape().clone(), idx.shape().clone());
    if x.ndim() > 0 {
        a[d] = idx.size(d);
        b[d] = x.size(d);
    }
    let wide = shape::broadcast(&a, idx.shape())?;
    let idx = &wrapped(idx, x.shape().get(d).copied().unwrap_or(1))?;
    let from = shape::broadcast(x.shape(), &b)?;
    gather(&x.expand_to(&from)?, d, &idx.expand_to(&wide)?)
}

/// Positions that count on past both ends of `size` elements.
fn wrapped(idx: &Tensor, size: usize) -> Result<Tensor> {
    let size = Tensor::number(Scalar::Int(size.max(1) as i64))?;
    apply(Remainder, [idx, &size])
}

impl Tensor {
    /// `gather`.
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        gather(self, shape::dim(dim, self.ndim())?, index)
    }
    /// `scatter` of a tensor.
    pub fn scatter(&self, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        scatter(self, shape::dim(dim, self.ndim())?, index, src, Mode::Set)
    }
    /// `scatter_add`.
    pub fn scatter_add(&self, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        scatter(self, shape::dim(dim, self.ndim())?, index, src, Mode::Add)
    }
}

crate::entries! {
    /// Writes `src`, or one value, to the positions that `index` names along a dimension.
    "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", ALL | DIRECT | APART,
    |a| {
        let x = a.tensor(arg!(self))?;
        let src = source(a, x, arg!(src))?;
        same_type("scatter", x, &src)?;
        run_scatter(a, Mode::Set, &src)
    };
    "scatter(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    ALL | DIRECT | APART | COMPLEX,
    |a| run_scatter(a, Mode::Set, &value(a, arg!(value))?);
    "scatter(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    ALL | DIRECT | APART,
    |a| {
        let x = a.tensor(arg!(self))?;
        crate::host::warn_once(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed \
             in a future PyTorch release. Use torch.scatter_reduce instead for more reduction \
             options.",
        );
        let src = source(a, x, arg!(src))?;
        same_type("scatter", x, &src)?;
        run_scatter(a, scatter_mode(a)?, &src)
    };
    "scatter(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    ALL | DIRECT | APART | COMPLEX,
    |a| run_scatter(a, scatter_mode(a)?, &value(a, arg!(value))?);
    /// Adds `src` to the positions that `index` names along a dimension.
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", ALL | DIRECT | APART,
    |a| {
        let x = a.tensor(arg!(self))?;
        let src = source(a, x, arg!(src))?;
        same_type("scatter", x, &src)?;
        run_scatter(a, Mode::Add, &src)
    };
    /// Reduces `src` into the positions that `index` names along a dimension by `sum`, `prod`,
    /// `mean`, `amax` or `amin`.
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, \
     bool include_self=True) -> Tensor", ALL | DIRECT | APART,
    |a| {
        let idx = apart(a, a.tensor(arg!(self))?, a.tensor(arg!(index))?)?;
        reduce(a, &idx, a.str(arg!(reduce))?, "scatter", "ScatterReduceBackward0")
    };
    /// Reduces slices of `source` into those that `index` names.
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, \
     bool include_self=True) -> Tensor", ALL | DIRECT | APART, index_reduce;
    /// `gather` with broadcasting; without `dim` of the flattened tensors.
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(take_along(a.tensor(arg!(self))?, a.tensor(arg!(indices))?, a.opt_int(arg!(dim)))?.into());
}

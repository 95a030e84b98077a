//! Reading and writing along one dimension: `gather`, `scatter` and their reductions.

use super::copy::copy_host;
use super::index::{Cell, Mode};
use super::pointwise::{apply, binary, compare, ternary};
use super::view::parts::{assemble, each_offset};
use crate::autograd::Vjp;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::kernels::scatter::{self as launch, Meet};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Metas, Op, Save, TensorMeta};
use crate::schema::{Args, Dest, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_element};
use smallvec::SmallVec;

/// Elements of the first input at the positions that the second names along `dim`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    pub dim: usize,
}

/// Checks an index tensor against the tensor that it names places in.
fn check_index(name: &str, x: &Tensor, dim: usize, idx: &Tensor) -> Result<()> {
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
        "Index tensor must have the same number of dimensions as input tensor: {name} got index \
         {} for {}",
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

/// The index tensor's values, all within a dimension of size `n`.
fn checked(idx: &Tensor, dim: usize, n: usize) -> Result<Tensor> {
    let t = idx.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type, read only.
    match unsafe { t.slice::<i64>() }
        .iter()
        .find(|&&i| i < 0 || i >= n as i64)
    {
        Some(i) => Err(Error::runtime(format!(
            "index {i} is out of bounds for dimension {dim} with size {n}"
        ))),
        None => Ok(t),
    }
}

/// How rows of the index tensor lie in another tensor: the start of each row, the step along the
/// last dimension, and the stride of `dim`, which counts as zero in the others where `skip`.
struct Rows {
    starts: Vec<usize>,
    step: usize,
    stride: usize,
}

fn rows(layout: &Layout, index: &[usize], dim: usize, skip: bool) -> Rows {
    let stride = |d: usize| layout.strides.get(d).copied().unwrap_or(0);
    let placed = |d: usize| if skip && d == dim { 0 } else { stride(d) };
    let k = index.len();
    let lead = Layout {
        shape: Dims::from_slice(&index[..k.saturating_sub(1)]),
        strides: (0..k.saturating_sub(1)).map(placed).collect(),
        offset: 0,
    };
    let mut starts = Vec::with_capacity(lead.numel());
    each_offset(&lead, |o| starts.push(o));
    let step = if k == 0 { 0 } else { placed(k - 1) as usize };
    Rows {
        starts,
        step,
        stride: stride(dim) as usize,
    }
}

impl Derivative for Gather {
    fn name(&self) -> &'static str {
        "GatherBackward0"
    }
    fn save(&self, _needs: u64) -> Save {
        Save::inputs(0b10)
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
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        check_index("gather", x[0], self.dim, x[1])?;
        let meta = TensorMeta {
            shape: x[1].shape().clone(),
            ..TensorMeta::of(x[0])
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], (x[1], &y[0]));
        let (idx, y) = (checked(y.0, self.dim, x.size(self.dim))?, y.1);
        if y.numel() == 0 {
            return Ok(());
        }
        // SAFETY: contiguous host memory of this type, read only.
        let idx = unsafe { idx.slice::<i64>() };
        let r = rows(x.layout(), y.shape(), self.dim, true);
        let n = y.shape().last().copied().unwrap_or(1);
        let (from, to) = (x.bytes_ptr() as usize, y.bytes_ptr() as usize);
        with_element!(bits(x.dtype()), T => {
            parallel_for(r.starts.len(), (1 << 14) / n + 1, |range| {
                for i in range {
                    let from = (from as *const T).wrapping_add(r.starts[i]);
                    let to = (to as *mut T).wrapping_add(i * n);
                    for (j, &at) in idx[i * n..][..n].iter().enumerate() {
                        // SAFETY: indices were checked; each row is written once.
                        unsafe { *to.add(j) = *from.add(j * r.step + at as usize * r.stride) };
                    }
                }
            });
        });
        Ok(())
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if x[0].ndim() == 0 || x[1].ndim() == 0 {
            return Ok(false);
        }
        let (from, at) = (transfer::whole(x[0])?, transfer::whole(x[1])?);
        let to = transfer::whole(&y[0])?;
        transfer::ran(launch::gather(Gpu::get()?, from, self.dim, at, to))
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

/// `g`, of the index's shape, as a gradient of the larger source.
fn padded(g: Tensor, shape: &[usize]) -> Result<Tensor> {
    if g.shape()[..] == *shape || g.ndim() != shape.len() {
        return Ok(g);
    }
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
        Save::inputs(0b010)
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

impl Op for Scatter {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let (idx, src) = (x[1], x[2]);
        check_index("scatter", x[0], self.dim, idx)?;
        let one = src.ndim() == 0;
        if !one && idx.numel() > 0 {
            ensure!(
                idx.ndim().max(1) == src.ndim()
                    && (0..idx.ndim()).all(|d| idx.size(d) <= src.size(d)),
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
        let (old, index, src, y) = (x[0], x[1], x[2], &y[0]);
        let idx = checked(index, self.dim, y.size(self.dim))?;
        if !(old.shares_storage(y) && old.layout() == y.layout()) {
            copy_host(old, y)?;
        }
        if idx.numel() == 0 {
            return Ok(());
        }
        // SAFETY: contiguous host memory of this type, read only.
        let idx = unsafe { idx.slice::<i64>() };
        let src = if src.dtype() == y.dtype() {
            src.clone()
        } else {
            src.prepared(y.dtype())?
        };
        let r = rows(y.layout(), index.shape(), self.dim, true);
        let from = match src.ndim() {
            0 => rows(
                &src.layout().expand_to(index.shape()),
                index.shape(),
                self.dim,
                false,
            ),
            _ => rows(src.layout(), index.shape(), self.dim, false),
        };
        let n = index.shape().last().copied().unwrap_or(1);
        // Along the last dimension rows are independent; else duplicates may lie in any rows.
        let grain = if self.dim + 1 >= index.ndim() {
            (1 << 14) / n + 1
        } else {
            usize::MAX
        };
        let (to, source, mode) = (y.bytes_ptr() as usize, src.bytes_ptr() as usize, self.mode);
        with_element!(y.dtype(), T => {
            parallel_for(r.starts.len(), grain, |range| {
                for i in range {
                    let to = (to as *mut T).wrapping_add(r.starts[i]);
                    let source = (source as *const T).wrapping_add(from.starts[i]);
                    for (j, &at) in idx[i * n..][..n].iter().enumerate() {
                        // SAFETY: indices were checked against both tensors.
                        unsafe {
                            let to = to.add(j * r.step + at as usize * r.stride);
                            *to = (*to).combine(*source.add(j * from.step), mode);
                        }
                    }
                }
            });
        });
        Ok(())
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (old, index, y) = (x[0], x[1], &y[0]);
        if y.ndim() == 0 || index.ndim() == 0 || y.dtype() == DType::Bool {
            return Ok(false);
        }
        let meet = match self.mode {
            Mode::Set => Meet::Set,
            Mode::Add => Meet::Add,
            Mode::Mul => Meet::Multiply,
            Mode::Max => Meet::Max,
            Mode::Min => Meet::Min,
        };
        let src = x[2].to_device(y.device())?.to_dtype(y.dtype())?;
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
        let (to, at) = (transfer::whole(y)?, transfer::whole(index)?);
        let from = transfer::view(&src, &part)?;
        transfer::ran(launch::scatter(Gpu::get()?, meet, to, self.dim, at, from))
    }

    fn pointwise(&self) -> bool {
        true
    }
}

/// How `scatter_reduce` combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

impl Reduce {
    fn parse(name: &str) -> Result<Reduce> {
        Ok(match name {
            "sum" => Reduce::Sum,
            "prod" => Reduce::Prod,
            "mean" => Reduce::Mean,
            "amax" => Reduce::Max,
            "amin" => Reduce::Min,
            _ => bail!(
                Runtime,
                "reduce argument must be either sum, prod, mean, amax or amin, got {name}"
            ),
        })
    }

    fn mode(self) -> Mode {
        match self {
            Reduce::Sum | Reduce::Mean => Mode::Add,
            Reduce::Prod => Mode::Mul,
            Reduce::Max => Mode::Max,
            Reduce::Min => Mode::Min,
        }
    }

    /// What leaves an element as it is.
    fn identity(self, dtype: DType) -> Scalar {
        let (low, high) = match dtype {
            DType::Bool => (0, 1),
            DType::U8 => (0, u8::MAX as i64),
            DType::I8 => (i8::MIN as i64, i8::MAX as i64),
            DType::I16 => (i16::MIN as i64, i16::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            _ => (i64::MIN, i64::MAX),
        };
        match self {
            Reduce::Sum | Reduce::Mean => Scalar::Int(0),
            Reduce::Prod => Scalar::Int(1),
            Reduce::Max if dtype.is_float() => Scalar::Float(f64::NEG_INFINITY),
            Reduce::Min if dtype.is_float() => Scalar::Float(f64::INFINITY),
            Reduce::Max => Scalar::Int(low),
            Reduce::Min => Scalar::Int(high),
        }
    }
}

/// `scatter_reduce`: inputs are the tensor, the index and the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterReduce {
    pub dim: usize,
    pub how: Reduce,
    pub include_self: bool,
    pub name: &'static str,
}

fn scatter(x: &Tensor, dim: usize, idx: &Tensor, src: &Tensor, mode: Mode) -> Result<Tensor> {
    dispatch::call1(Scatter { dim, mode }, &[x, idx, src])
}

fn gather(x: &Tensor, dim: usize, idx: &Tensor) -> Result<Tensor> {
    dispatch::call1(Gather { dim }, &[x, idx])
}

fn full_like(x: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
    Tensor::full(x.shape(), value.into(), x.dtype(), x.device())
}

impl ScatterReduce {
    fn call(&self, x: &Tensor, idx: &Tensor, src: &Tensor) -> Result<Tensor> {
        dispatch::call1(self.clone(), &[x, idx, src])
    }

    /// How many elements each place of the result is made of, at least one.
    fn count(&self, x: &Tensor, idx: &Tensor) -> Result<Tensor> {
        let start = full_like(x, if self.include_self { 1 } else { 0 })?;
        let one = Tensor::full(&[], Scalar::Int(1), x.dtype(), x.device())?;
        let count = scatter(&start, self.dim, idx, &one, Mode::Add)?;
        apply(binary::Maximum, [&count, &one])
    }

    /// The gradient of the source where products meet zeros.
    fn product(
        &self,
        x: &Tensor,
        idx: &Tensor,
        src: &Tensor,
        y: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        let zero = full_like(src, 0)?;
        let one = full_like(src, 1)?;
        let is_zero = apply(compare::Eq, [src, &zero])?;
        let zeros = scatter(
            &full_like(x, 0)?,
            self.dim,
            idx,
            &is_zero.to_dtype(x.dtype())?,
            Mode::Add,
        )?;
        let alone = apply(compare::Eq, [&gather(&zeros, self.dim, idx)?, &one])?;
        let alone = apply(compare::LogicalAnd, [&is_zero, &alone])?;
        let others = self.call(x, idx, &ternary::where_(&alone, &one, src)?)?;
        let at_zero = gather(&g.mul(&others)?, self.dim, idx)?;
        let plain =
            gather(&g.mul(y)?, self.dim, idx)?.div(&ternary::where_(&is_zero, &one, src)?)?;
        ternary::where_(&alone, &at_zero, &plain)
    }
}

impl Derivative for ScatterReduce {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: u64) -> Save {
        match self.how {
            Reduce::Sum => Save::inputs(0b010),
            Reduce::Mean => Save::inputs(0b111),
            _ => Save {
                inputs: 0b111,
                outputs: 1,
            },
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (dim, idx) = (self.dim, cx.input(1)?);
        let (mut old, source) = match self.how {
            Reduce::Sum => (g.clone(), gather(g, dim, &idx)?),
            Reduce::Mean => {
                let each = g.div(&self.count(&cx.input(0)?.detach(), &idx)?)?;
                let source = gather(&each, dim, &idx)?;
                (each, source)
            }
            Reduce::Prod => {
                let (x, src, y) = (cx.input(0)?, trimmed(cx.input(2)?, &idx)?, cx.output(0)?);
                let one = full_like(&x, 1)?;
                let is_zero = apply(compare::Eq, [&x, &full_like(&x, 0)?])?;
                let full = ternary::where_(&is_zero, &one, &x)?;
                let old = g.mul(&self.call(&full, &idx, &src)?)?.div(&full)?;
                (old, self.product(&x, &idx, &src, &y, g)?)
            }
            Reduce::Max | Reduce::Min => {
                let (x, src, y) = (cx.input(0)?, trimmed(cx.input(2)?, &idx)?, cx.output(0)?);
                let mine = apply(compare::Eq, [&x, &y])?.to_dtype(g.dtype())?;
                let theirs = apply(compare::Eq, [&src, &gather(&y, dim, &idx)?])?;
                let theirs = theirs.to_dtype(g.dtype())?;
                let count = scatter(&mine, dim, &idx, &theirs, Mode::Add)?;
                let one = full_like(&count, 1)?;
                let each = g.div(&apply(binary::Maximum, [&count, &one])?)?;
                (mine.mul(&each)?, theirs.mul(&gather(&each, dim, &idx)?)?)
            }
        };
        if !self.include_self {
            let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
            old = scatter(&old, dim, &idx, &zero, Mode::Set)?;
        }
        let mut out = Grads::new();
        out.push(cx.needs(0).then_some(old));
        out.push(None);
        out.push(match cx.needs(2) {
            true => Some(padded(source, &cx.input_meta(2)?.shape)?),
            false => None,
        });
        Ok(out)
    }
}

/// The part of a source that the index covers.
fn trimmed(mut src: Tensor, idx: &Tensor) -> Result<Tensor> {
    for d in 0..idx.ndim().min(src.ndim()) {
        if idx.size(d) < src.size(d) {
            src = src.slice_dim(d as i64, Some(0), Some(idx.size(d) as i64), 1)?;
        }
    }
    Ok(src)
}

impl Op for ScatterReduce {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        Scatter {
            dim: self.dim,
            mode: self.how.mode(),
        }
        .infer(x)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (old, idx, y) = (x[0], x[1], &y[0]);
        let counts = match self.how {
            Reduce::Mean => Some(crate::autograd::mode::with_grad(false, || {
                self.count(&full_like(&old.detach(), 0)?, idx)
            })?),
            _ => None,
        };
        let apply_ = |mode: Mode, from: &Tensor, src: &Tensor| {
            Scatter {
                dim: self.dim,
                mode,
            }
            .cpu(&[from, idx, src], std::slice::from_ref(y))
        };
        if self.include_self {
            apply_(self.how.mode(), old, x[2])?;
        } else {
            let start = Tensor::full(&[], self.how.identity(y.dtype()), y.dtype(), y.device())?;
            apply_(Mode::Set, old, &start)?;
            apply_(self.how.mode(), y, x[2])?;
        }
        if let Some(counts) = counts {
            let mean = crate::autograd::mode::with_grad(false, || {
                let sum = y.detach();
                match y.dtype().is_float() {
                    true => sum.div(&counts),
                    false => floor_div(&sum, &counts),
                }
            })?;
            copy_host(&mean, y)?;
        }
        Ok(())
    }

    fn pointwise(&self) -> bool {
        true
    }
}

/// Integer division towards minus infinity.
fn floor_div(x: &Tensor, by: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.prepared(DType::I64)?, by.prepared(DType::I64)?);
    // SAFETY: contiguous host memory of this type, read only.
    let (a, b) = unsafe { (a.slice::<i64>(), b.slice::<i64>()) };
    let q: Vec<i64> = a
        .iter()
        .zip(b)
        .map(|(&a, &b)| a.wrapping_div(b) - ((a % b != 0) && ((a < 0) != (b < 0))) as i64)
        .collect();
    Tensor::from_slice(&q, x.shape(), DType::I64)?.to_dtype(x.dtype())
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
fn source(a: &Args, x: &Tensor, i: usize) -> Result<Tensor> {
    let src = apart(a, x, a.tensor(i)?)?;
    if src.ndim() == 0 {
        src.reshape(&[1])
    } else {
        Ok(src)
    }
}

fn scatter_mode(a: &Args, reduce: usize) -> Result<Mode> {
    match a.opt_str(reduce) {
        None => Ok(Mode::Set),
        Some("add") => Ok(Mode::Add),
        Some("multiply") => Ok(Mode::Mul),
        Some(_) => bail!(Runtime, "reduce argument must be either add or multiply."),
    }
}

fn run_scatter(a: &Args, mode: Mode, src: &Tensor) -> Result<Value> {
    let (x, idx) = (a.tensor(0)?, a.tensor(2)?);
    let dim = shape::dim(a.int(1)?, x.ndim())?;
    let idx = apart(a, x, idx)?;
    if mode == Mode::Mul {
        let src = if src.ndim() == 0 {
            src.expand_to(idx.shape())?
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

fn reduce(a: &Args, idx: &Tensor, how: &str, name: &'static str) -> Result<Value> {
    let x = a.tensor(0)?;
    let dim = shape::dim(a.int(1)?, x.ndim())?;
    let how = Reduce::parse(how)?;
    let src = source(a, x, 3)?;
    same_type(
        if name.starts_with('I') {
            "index_reduce"
        } else {
            "scatter"
        },
        x,
        &src,
    )?;
    let op = ScatterReduce {
        dim,
        how,
        include_self: a.bool(5)?,
        name,
    };
    a.call(op, &[x, idx, &src])
}

fn index_reduce(a: &Args) -> Result<Value> {
    let (x, index, src) = (a.tensor(0)?, a.tensor(2)?, a.tensor(3)?);
    let dim = shape::dim(a.int(1)?, x.ndim())?;
    let how = a.str(4)?;
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
    let idx = index.reshape_to(&column)?.expand_to(&full)?;
    reduce(a, &idx, how, "IndexReduceBackward0")
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
    let from = shape::broadcast(x.shape(), &b)?;
    gather(&x.expand_to(&from)?, d, &idx.expand_to(&wide)?)
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
    /// Elements at the positions that `index` names along a dimension.
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    FN | METHOD | OUT,
    |a| Ok(a.tensor(0)?.gather(a.int(1)?, a.tensor(2)?)?.into());
    /// Writes `src`, or one value, to the positions that `index` names along a dimension.
    "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", ALL | DIRECT,
    |a| {
        let x = a.tensor(0)?;
        let src = source(a, x, 3)?;
        same_type("scatter", x, &src)?;
        run_scatter(a, Mode::Set, &src)
    };
    "scatter(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", ALL | DIRECT,
    |a| run_scatter(a, Mode::Set, &Tensor::number(a.scalar(3)?)?);
    "scatter(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    ALL | DIRECT,
    |a| {
        let x = a.tensor(0)?;
        let src = source(a, x, 3)?;
        same_type("scatter", x, &src)?;
        run_scatter(a, scatter_mode(a, 4)?, &src)
    };
    "scatter(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    ALL | DIRECT,
    |a| {
        let dtype = a.tensor(0)?.dtype();
        let value = Tensor::number(a.scalar(3)?)?.to_dtype(dtype)?;
        run_scatter(a, scatter_mode(a, 4)?, &value)
    };
    /// Adds `src` to the positions that `index` names along a dimension.
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", ALL | DIRECT,
    |a| {
        let x = a.tensor(0)?;
        let src = source(a, x, 3)?;
        same_type("scatter", x, &src)?;
        run_scatter(a, Mode::Add, &src)
    };
    /// Reduces `src` into the positions that `index` names along a dimension by `sum`, `prod`,
    /// `mean`, `amax` or `amin`.
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, \
     bool include_self=True) -> Tensor", ALL | DIRECT,
    |a| {
        let idx = apart(a, a.tensor(0)?, a.tensor(2)?)?;
        reduce(a, &idx, a.str(4)?, "ScatterReduceBackward0")
    };
    /// Reduces slices of `source` into those that `index` names.
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, \
     bool include_self=True) -> Tensor", ALL | DIRECT, index_reduce;
    /// `gather` with broadcasting; without `dim` of the flattened tensors.
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", FN | METHOD | OUT,
    |a| Ok(take_along(a.tensor(0)?, a.tensor(1)?, a.opt_int(2))?.into());
}

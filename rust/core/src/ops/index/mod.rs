//! Reading and writing by index tensors.

pub mod along;
mod cell;
mod cpu;
pub mod entries;
mod flat;
pub mod gpu;
mod many;
pub mod mask;
mod masked;
mod ready;
mod repeat;
pub mod runs;
pub mod search;
mod slices;

crate::ops::family! { scatter; entries::ENTRIES }

use crate::alloc;
use crate::meta::Meta;
use cpu::Points;

pub(crate) use cell::{with_cell, Cell};
pub use ready::{ready, Ready};

use crate::autograd::{Jvp, Tangents, Vjp};
use crate::dispatch;
use crate::dispatch::parts::by_parts;
use crate::dtype::DType;
use crate::error::{Error, Kind, Result};
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::op::{
    all_are, Batching, Cut, Derivative, Grads, Mapped, Metas, Op, Part, Rare, Repeats, Save,
    TensorMeta, Tensors, Traits,
};
use crate::ops::shape::copy::copy_host;
use crate::ops::shape::view::parts::each_offset;
use crate::schema::{Args, Dest, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;

/// What to do with an element and the one that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Set,
    Add,
    Mul,
    Max,
    Min,
}

/// Which indices are allowed, and what is said about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// Negative ones count from the end.
    Wrap,
    /// The same, on a flattened tensor.
    Take,
    Select,
    Add,
    /// `Add` in a tensor of several dimensions, which raises another class.
    AddSlices,
    /// Rows put together from parts, whose sums of half types are rounded once.
    Rows,
    Copy,
}

impl Bounds {
    pub fn wraps(self) -> bool {
        matches!(self, Bounds::Wrap | Bounds::Take)
    }
    /// Whether indices of dimensions are in bounds, as far as the host knows.
    #[inline(never)]
    fn hold(self, of: &Layout, dims: &[usize], indices: &[&Tensor]) -> bool {
        let holds = |(&d, index): (&usize, &&Tensor)| {
            // A tensor without dimensions counts as one of size 1.
            let n = of.shape.get(d).map_or(1, |&n| n as i64);
            let first = if self.wraps() { -n } else { 0 };
            all_are(index, |i| (first..n).contains(&i))
        };
        dims.iter().zip(indices).all(holds)
    }
    pub fn error(self, i: i64, d: usize, n: usize) -> Error {
        match self {
            Bounds::Wrap if n == 0 => Error::index(format!(
                "index is out of bounds for dimension with size 0: index {i} for dimension {d}"
            )),
            Bounds::Wrap => Error::index(format!(
                "index {i} is out of bounds for dimension {d} with size {n}"
            )),
            Bounds::Take => Error::index(format!(
                "out of range: tried to access index {i} on a tensor of {n} elements."
            )),
            Bounds::Select => Error::index(format!(
                "index out of range in self: index {i} for dimension {d} with size {n}"
            )),
            Bounds::Add => Error::index(format!(
                "index {i} is out of bounds for dimension {d} with size {n} (index out of range \
                 in self)"
            )),
            Bounds::AddSlices | Bounds::Rows => out_of_bounds(Kind::Runtime, i, d, n),
            Bounds::Copy => Error::index(format!(
                "index_copy_(): index {i} is out of bounds for dimension {d} with size {n}"
            )),
        }
    }
}

/// The class of error for an index that does not fit, as PyTorch names it.
pub fn out_of_bounds(kind: Kind, i: i64, d: usize, n: usize) -> Error {
    Error::new(
        kind,
        format!("index {i} is out of bounds for dimension {d} with size {n}"),
    )
}

/// How an indexed tensor divides: dimensions before the indexed ones, those, and the rest. Where
/// the indexed dimensions are not neighbours, all others count as coming after.
struct Split {
    before: Layout,
    after: Layout,
    /// Where the dimensions of the indices go in the result.
    at: usize,
}

impl Split {
    /// The dimensions around the indexed ones, as GPU kernels take them.
    fn around(&self) -> gpu::Around<'_> {
        gpu::Around {
            outer: (&self.before.shape, &self.before.strides),
            inner: (&self.after.shape, &self.after.strides),
        }
    }
}

fn part_of(layout: &Layout, dims: impl Iterator<Item = usize> + Clone) -> Layout {
    Layout {
        shape: dims.clone().map(|d| layout.shape[d]).collect(),
        strides: dims.map(|d| layout.strides[d]).collect(),
        offset: 0,
    }
}

fn divide(layout: &Layout, dims: &[usize]) -> Split {
    let adjacent = dims.windows(2).all(|w| w[1] == w[0] + 1);
    let at = if adjacent {
        dims.first().copied().unwrap_or(0)
    } else {
        0
    };
    let rest = |d: &usize| !dims.contains(d);
    Split {
        before: part_of(layout, 0..at),
        after: part_of(layout, (at..layout.ndim()).filter(rest)),
        at,
    }
}

/// The cuts along dimensions that are not indexed, of which each has a place in the result.
fn around(
    layout: &Layout,
    dims: &[usize],
    index: usize,
    cut: impl Fn(usize, usize) -> Cut,
) -> Vec<Cut> {
    let at = divide(layout, dims).at;
    let rest = (0..layout.ndim()).filter(|d| !dims.contains(d));
    let place = |(k, d): (usize, usize)| cut(d, if k < at { k } else { k + index });
    rest.enumerate().map(place).collect()
}

/// The shape of `x[idx]`.
fn result_shape(layout: &Layout, dims: &[usize], index: &[usize]) -> Dims {
    let s = divide(layout, dims);
    let mut out = s.before.shape;
    out.extend_from_slice(index);
    out.extend_from_slice(&s.after.shape);
    out
}

fn offsets(layout: &Layout) -> Vec<usize> {
    let mut out = alloc::room(layout.numel());
    each_offset(layout, |o| out.push(o));
    out
}

/// `x[idx]`: inputs are the tensor and one index tensor for each of `dims`, all of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    pub dims: SmallVec<[usize; 4]>,
    pub bounds: Bounds,
    pub name: &'static str,
}

/// The mask of inputs from the `first` on.
fn rest(first: u32) -> Save {
    Save {
        inputs: u64::MAX << first,
        outputs: 0,
    }
}

impl Derivative for Index {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: u64) -> Save {
        rest(1)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let m = cx.input_meta(0)?;
        let zeros = Tensor::zeros(&m.shape, g.dtype(), m.device)?;
        let idx = saved(cx, 1, self.dims.len())?;
        let op = IndexPut {
            dims: self.dims.clone(),
            mode: Mode::Add,
            bounds: self.bounds,
            repeats: Repeats::Changes,
            name: "IndexPutBackward0",
        };
        Ok(SmallVec::from_elem(Some(op.call(&zeros, g, &idx)?), 1))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

fn saved(cx: &Vjp, first: usize, count: usize) -> Result<Vec<Tensor>> {
    (first..first + count).map(|i| cx.input(i)).collect()
}

impl Op for Index {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(self.bounds.hold(x[0].layout(), &self.dims, &x[1..]))
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = result_shape(x[0].layout(), &self.dims, x[1].shape());
        shape::numel(&shape)?;
        Ok(SmallVec::from_elem(
            TensorMeta {
                shape,
                ..TensorMeta::of(x[0])
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, idx, y) = (x[0], &x[1..], &y[0]);
        let s = divide(x.layout(), &self.dims);
        let points = Points::new(x.layout(), &self.dims, idx, self.bounds)?;
        if y.numel() == 0 {
            return points.all().map(drop);
        }
        let before = offsets(&s.before);
        // SAFETY: `points` are checked against the layout; the result is contiguous.
        unsafe { cpu::take(x, &points, &before, &s.after, y) }
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let index = x[1].ndim();
        let mut cuts = around(x[0].layout(), &self.dims, index, |d, to| {
            let idx = std::iter::repeat_n(Part::Whole, x.len() - 1);
            Cut::new(
                std::iter::once(Part::Along(d)).chain(idx),
                [Part::Along(to)],
            )
        });
        let at = divide(x[0].layout(), &self.dims).at;
        cuts.extend((0..index).map(|k| {
            let idx = std::iter::repeat_n(Part::Along(k), x.len() - 1);
            Cut::new(
                std::iter::once(Part::Whole).chain(idx),
                [Part::Along(at + k)],
            )
        }));
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let s = divide(x[0].layout(), &self.dims);
        transfer::ran(
            launched(gpu, x[0].layout(), &self.dims, &x[1..], self.bounds)
                .and_then(|offsets| gpu::take(gpu, x[0], s.around(), &offsets, &y[0])),
        )
    }
}

impl Batching for Index {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

/// [`Points`] on the GPU, where an index out of range is reported at the next read.
fn launched(
    gpu: &Gpu,
    layout: &Layout,
    dims: &[usize],
    idx: &[&Tensor],
    bounds: Bounds,
) -> Result<gpu::Offsets> {
    let on: SmallVec<[Tensor; 4]> = idx
        .iter()
        .map(|t| transfer::dense(gpu, t))
        .collect::<Result<_>>()?;
    let axes: SmallVec<[gpu::Axis; 4]> = dims
        .iter()
        .zip(&on)
        .map(|(&d, index)| gpu::Axis {
            index,
            size: layout.shape.get(d).copied().unwrap_or(1),
            stride: layout.strides.get(d).copied().unwrap_or(0),
        })
        .collect();
    gpu::offsets(gpu, &axes, None, bounds.wraps())
}

/// `x` with `values` combined into `x[idx]`: inputs are the tensor, the values (broadcast to the
/// result of indexing) and the indices. Duplicate indices act one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexPut {
    pub dims: SmallVec<[usize; 4]>,
    pub mode: Mode,
    pub bounds: Bounds,
    pub repeats: Repeats,
    pub name: &'static str,
}

impl IndexPut {
    fn inputs<'a>(
        x: &'a Tensor,
        values: &'a Tensor,
        idx: &'a [Tensor],
    ) -> SmallVec<[&'a Tensor; 6]> {
        let mut all: SmallVec<[&Tensor; 6]> = SmallVec::new();
        all.push(x);
        all.push(values);
        all.extend(idx);
        all
    }

    pub fn call(self, x: &Tensor, values: &Tensor, idx: &[Tensor]) -> Result<Tensor> {
        dispatch::call1(self, &Self::inputs(x, values, idx))
    }
}

impl Derivative for IndexPut {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: u64) -> Save {
        rest(2)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let idx = saved(cx, 2, self.dims.len())?;
        let mut out = Grads::new();
        out.push(match (cx.needs(0), self.mode) {
            (false, _) => None,
            (true, Mode::Add) => Some(g.clone()),
            (true, Mode::Set) => {
                let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
                Some(self.clone().call(g, &zero, &idx)?)
            }
            (true, _) => bail!(
                NotImplemented,
                "{}: combining by {:?} has its derivative in index_reduce",
                self.name,
                self.mode
            ),
        });
        out.push(match cx.needs(1) {
            true => {
                let op = Index {
                    dims: self.dims.clone(),
                    bounds: self.bounds,
                    name: "IndexBackward0",
                };
                let mut all: SmallVec<[&Tensor; 6]> = SmallVec::from_elem(g, 1);
                all.extend(&idx);
                Some(dispatch::call1(op, &all)?)
            }
            false => None,
        });
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        match self.mode {
            Mode::Set | Mode::Add => cx.linear(&[0, 1]),
            _ => bail!(
                NotImplemented,
                "Trying to use forward AD with {} that does not support it because it has not been \
                 implemented yet",
                crate::op::function_name(self.name)
            ),
        }
    }
}

/// Raises where values do not fit the places that indices of a shape give.
fn check_values(x: &Layout, dims: &[usize], index: &[usize], values: &[usize]) -> Result<()> {
    let shape = result_shape(x, dims, index);
    ensure!(
        shape::expandable(values, &shape),
        Runtime,
        "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
        Show(values),
        Show(&shape)
    );
    Ok(())
}

impl Op for IndexPut {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            casts: false,
            repeats: self.repeats,
            rare: match self.mode {
                Mode::Set => Rare::ALL,
                _ => Rare::COMPLEX,
            },
            linear: &[0, 1],
            ..Traits::POINTWISE
        }
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(self.bounds.hold(x[0].layout(), &self.dims, &x[2..]))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        check_values(x[0].layout(), &self.dims, x[2].shape(), x[1].shape())?;
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].dtype().is_complex() {
            return by_parts(self, x, &[0, 1], &y[0]);
        }
        let (old, values, idx, y) = (x[0], x[1], &x[2..], &y[0]);
        let sums = self.bounds == Bounds::Rows && self.mode == Mode::Add;
        if sums && y.dtype().is_half() {
            let op = IndexPut {
                bounds: Bounds::AddSlices,
                ..self.clone()
            };
            let [wide, values] = [old, values].map(|t| t.prepared(DType::F32));
            let (wide, values) = (wide?, values?);
            let mut all: SmallVec<[&Tensor; 6]> = SmallVec::from_slice(&[&wide, &values]);
            all.extend_from_slice(idx);
            op.cpu(&all, std::slice::from_ref(&wide))?;
            return y.write_from(&wide);
        }
        let at = Points::new(y.layout(), &self.dims, idx, self.bounds)?.all()?;
        if !(old.shares_storage(y) && old.layout() == y.layout()) {
            copy_host(old, y)?;
        }
        let s = divide(y.layout(), &self.dims);
        let shape = result_shape(y.layout(), &self.dims, idx[0].shape());
        if shape.contains(&0) {
            return Ok(());
        }
        let values = match values.dtype() == y.dtype() {
            true => values.clone(),
            false => values.prepared(y.dtype())?,
        };
        // Only moved, rare types go as the signed integers of their size.
        let (values, y) = (values.as_signed(), &y.as_signed());
        let from = values.layout().expand_to(&shape);
        let k = idx[0].ndim();
        let put = cpu::Put {
            mode: self.mode,
            at: &at,
            before: &offsets(&s.before),
            after: &s.after,
            value_before: &offsets(&part_of(&from, 0..s.at)),
            value_at: &part_of(&from, s.at..s.at + k),
            value_after: &part_of(&from, s.at + k..shape.len()),
        };
        // SAFETY: the offsets lie within both layouts.
        unsafe { put.run(&values, y) }
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let (index, values) = (x[2].ndim(), x[1]);
        let n = result_shape(x[0].layout(), &self.dims, x[2].shape()).len();
        around(x[0].layout(), &self.dims, index, |d, to| {
            let of = (to + values.ndim()).checked_sub(n);
            let of = of.filter(|&d| values.size(d) > 1);
            let idx = std::iter::repeat_n(Part::Whole, x.len() - 2);
            let parts = [Part::Along(d), of.map_or(Part::Whole, Part::Along)];
            Cut::new(parts.into_iter().chain(idx), [Part::Along(d)])
        })
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (old, values, idx, y) = (x[0], x[1], &x[2..], &y[0]);
        if !matches!(self.mode, Mode::Set | Mode::Add) {
            return Ok(false);
        }
        let shape = result_shape(y.layout(), &self.dims, idx[0].shape());
        let wide = values.to(y.dtype(), y.device(), false, None)?.detach();
        let v = transfer::dense(gpu, &wide.alias(wide.layout().expand_to(&shape)))?;
        let s = divide(y.layout(), &self.dims);
        let offsets = launched(gpu, y.layout(), &self.dims, idx, self.bounds);
        transfer::ran(offsets.and_then(|offsets| {
            if !(old.shares_storage(y) && old.layout() == y.layout()) {
                y.write_from(old)?;
            }
            gpu::put(gpu, y, s.around(), &offsets, &v, (self.mode, 1.0))
        }))
    }
}

impl Batching for IndexPut {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

/// Runs an op that writes to its first input, in place or on a copy.
fn put(a: &Args, op: IndexPut, x: &Tensor, values: &Tensor, idx: &[Tensor]) -> Result<Value> {
    let shared = matches!(a.dest, Dest::InPlace) && values.shares_storage(x);
    let copy = if shared {
        Some(values.copy_dense()?)
    } else {
        None
    };
    let values = copy.as_ref().unwrap_or(values);
    let mut all: SmallVec<[&Tensor; 6]> = SmallVec::new();
    all.push(x);
    all.push(values);
    all.extend(idx);
    a.call(op, &all)
}

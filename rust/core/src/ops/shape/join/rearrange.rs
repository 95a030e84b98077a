//! Elements in another order: `flip`, `roll`, `repeat`; and the triangles of matrices.

use crate::alloc;
use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::strided_copy::strided_copy;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::{Acc, Gpu};
use crate::layout::{packed_strides, Layout, CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::meta::Meta;
use crate::op::{
    Batching, Derivative, Grads, Keep, Mapped, Metas, Op, Rare, Repeats, TensorMeta, Tensors,
    Traits,
};
use crate::ops::shape::copy::copy_host;
use crate::ops::shape::create::dense_strides;
use crate::ops::shape::view::parts::each_offset;
use crate::shape::{self, DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{ensure, transfer};
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

type Ints = SmallVec<[i64; 5]>;

/// Where each dimension's elements come from: the other way round, or moved by some places
/// beyond the end to the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reorder {
    pub flip: DimSet,
    pub shift: Ints,
    pub name: &'static str,
}

/// `n` neighbours in the result from `to` on; the first comes from `from`.
struct Run {
    from: usize,
    to: usize,
    n: usize,
}

impl Reorder {
    fn flipped(x: &Tensor, dims: &[i64]) -> Result<Reorder> {
        let dims = shape::dims(dims, x.ndim())?;
        Ok(Reorder {
            flip: DimSet::of(x.ndim(), |d| dims.contains(&d))?,
            shift: SmallVec::from_elem(0, x.ndim()),
            name: "FlipBackward0",
        })
    }

    /// How the indices of the result are found in the input, in runs.
    fn runs(&self, d: usize, n: usize) -> SmallVec<[Run; 2]> {
        let run = |from, to, n| Run { from, to, n };
        let shift = self.shift[d].rem_euclid(n.max(1) as i64) as usize;
        if self.flip.has(d) {
            smallvec![run(n - 1, 0, n)]
        } else if shift == 0 {
            smallvec![run(0, 0, n)]
        } else {
            smallvec![run(n - shift, 0, shift), run(0, shift, n - shift)]
        }
    }

    /// The index in the input for each index of the result.
    fn source(&self, d: usize, n: usize) -> Vec<usize> {
        let shift = self.shift[d].rem_euclid(n.max(1) as i64) as usize;
        (0..n)
            .map(|i| {
                if self.flip.has(d) {
                    n - 1 - i
                } else {
                    (i + n - shift) % n
                }
            })
            .collect()
    }
}

impl Derivative for Reorder {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let shift = self.shift.iter().map(|s| s.wrapping_neg()).collect();
        let op = Reorder {
            flip: self.flip,
            shift,
            name: self.name,
        };
        Ok(SmallVec::from_elem(Some(dispatch::call1(op, &[g])?), 1))
    }
}

impl Op for Reorder {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        let mut shift = self.shift.clone();
        shift.insert(0, 0);
        Some(Arc::new(Reorder {
            flip: self.flip.of_many(),
            shift,
            name: self.name,
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    /// What is flipped keeps its order, as PyTorch's; what is rolled is a `cat` of two parts there.
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        let from = x[0].layout();
        let flipped = self.flip != DimSet::NONE;
        let moved = self.shift.iter().any(|&s| s != 0);
        if from.is_plain() || !(flipped || moved && from.suggests_channels_last()) {
            return None;
        }
        let mut layout = Layout::contiguous(&y.shape);
        layout.strides = match (flipped, y.shape.len()) {
            (true, _) => dense_strides(from),
            (false, 4) => packed_strides(&y.shape, &CHANNELS_LAST),
            (false, _) => packed_strides(&y.shape, &CHANNELS_LAST_3D),
        };
        Some(layout)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], &y[0]);
        let k = x.ndim();
        if y.numel() == 0 {
            return Ok(());
        }
        if k == 0 {
            return copy_host(x, y);
        }
        // Along each dimension one run or two that keep together; boxes of them move as one.
        let runs: SmallVec<[SmallVec<[Run; 2]>; 5]> =
            (0..k).map(|d| self.runs(d, x.size(d))).collect();
        let size = x.dtype().size();
        let boxes = runs.iter().map(|r| r.len()).product();
        let (mut from, mut to) = (x.layout().clone(), y.layout().clone());
        for mut which in 0..boxes {
            let (mut at, mut start) = (0, 0);
            for (d, runs) in runs.iter().enumerate() {
                let run = &runs[which % runs.len()];
                which /= runs.len();
                at += run.from as isize * x.strides()[d];
                start += run.to as isize * y.strides()[d];
                (from.shape[d], to.shape[d]) = (run.n, run.n);
                from.strides[d] = x.strides()[d] * if self.flip.has(d) { -1 } else { 1 };
            }
            let source = x.bytes_ptr().wrapping_offset(at * size as isize);
            let target = y.bytes_ptr().wrapping_offset(start * size as isize);
            // SAFETY: each box lies within both tensors, and boxes of the result share nothing.
            unsafe { strided_copy(size, source, &from, target, &to) };
        }
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let mut from = x[0].clone();
        for d in (0..from.ndim()).filter(|&d| self.flip.has(d) || self.shift[d] != 0) {
            let at: Vec<i64> = self
                .source(d, from.size(d))
                .iter()
                .map(|&i| i as i64)
                .collect();
            let at = Tensor::from_slice(&at, &[at.len()], DType::I64)?;
            from = from.index_select(d as i64, &at.to_device(from.device())?)?;
        }
        Ok(Some(Tensors::from_buf([from])))
    }
}

/// The input, as a block, many times over. `times` has an entry for each dimension of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    pub times: SmallVec<[usize; 5]>,
}

impl Derivative for Repeat {
    fn name(&self) -> &'static str {
        "RepeatBackward0"
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let m = cx.input_meta(0)?;
        if self.times.contains(&0) {
            let zeros = Tensor::zeros(&m.shape, g.dtype(), m.device)?;
            return Ok(SmallVec::from_elem(Some(zeros), 1));
        }
        let lead = self.times.len() - m.shape.len();
        let (mut split, mut summed) = (Dims::new(), Dims::new());
        for (d, &t) in self.times.iter().enumerate() {
            if t != 1 {
                summed.push(split.len());
                split.push(t);
            }
            if d >= lead {
                split.push(m.shape[d - lead]);
            }
        }
        let mask = DimSet::of(split.len(), |d| summed.contains(&d))?;
        let g = g
            .reshape_to(&split)?
            .sum_mask(mask, false, Some(g.dtype()))?;
        Ok(SmallVec::from_elem(Some(g), 1))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Repeat {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let lead = self.times.len() - x[0].ndim();
        let mut shape = Dims::new();
        for (d, &t) in self.times.iter().enumerate() {
            let n = if d >= lead { x[0].size(d - lead) } else { 1 };
            ensure!(
                t.checked_mul(n).is_some(),
                Runtime,
                "repeat: size {n} times {t} overflows"
            );
            shape.push(t * n);
        }
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
        let (x, y) = (x[0], &y[0]);
        if y.numel() == 0 {
            return Ok(());
        }
        let (from, to) = self.spread(x, y);
        copy_host(&from, &to)
    }

    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (from, to) = self.spread(x[0], &y[0]);
        transfer::ran(to.write_from(&from))
    }
}

impl Batching for Repeat {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let mut times = self.times.clone();
        times.insert(0, 1);
        let input = x.aligned(0, self.times.len())?;
        dispatch::call(Repeat { times }, &[&input]).map(Some)
    }
}

impl Repeat {
    /// Input and result as views with a dimension for each count and each size.
    fn spread(&self, x: &Tensor, y: &Tensor) -> (Tensor, Tensor) {
        let lead = self.times.len() - x.ndim();
        let mut from = Layout {
            shape: Dims::new(),
            strides: SmallVec::new(),
            offset: x.offset(),
        };
        for (d, &t) in self.times.iter().enumerate() {
            from.shape.push(t);
            from.strides.push(0);
            if d >= lead {
                from.shape.push(x.size(d - lead));
                from.strides.push(x.stride(d - lead));
            }
        }
        let mut to = Layout::contiguous(&from.shape);
        to.offset = y.offset();
        (x.alias(from), y.alias(to))
    }
}

const UPPER: &str = "fn op(x: Acc) -> Acc {
    let row = (position / scalar_word(0u)) % scalar_word(2u);
    let edge = i32(position % scalar_word(0u)) - i32(row);
    return select(Acc(0), x, edge >= bitcast<i32>(scalar_word(4u)));
}
";
const LOWER: &str = "fn op(x: Acc) -> Acc {
    let row = (position / scalar_word(0u)) % scalar_word(2u);
    let edge = i32(position % scalar_word(0u)) - i32(row);
    return select(Acc(0), x, edge <= bitcast<i32>(scalar_word(4u)));
}
";

/// One triangle of each matrix, zeros in the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    pub upper: bool,
    pub diagonal: i64,
}

impl Derivative for Triangle {
    fn name(&self) -> &'static str {
        if self.upper {
            "TriuBackward0"
        } else {
            "TrilBackward0"
        }
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        Ok(SmallVec::from_elem(
            Some(dispatch::call1(self.clone(), &[g])?),
            1,
        ))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Triangle {
    fn traits(&self) -> Traits {
        Traits {
            elementwise: false,
            casts: false,
            repeats: Repeats::Changes,
            linear: &[0],
            ..Traits::POINTWISE
        }
    }
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        ensure!(
            x[0].ndim() >= 2,
            Runtime,
            "{}: input tensor must have at least 2 dimensions",
            if self.upper { "triu" } else { "tril" }
        );
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], &y[0]);
        if !(x.shares_storage(y) && x.layout() == y.layout()) {
            copy_host(x, y)?;
        }
        if y.numel() == 0 {
            return Ok(());
        }
        let k = y.ndim();
        let (rows, n) = (y.size(k - 2), y.size(k - 1));
        let step = y.strides()[k - 1] as usize;
        let mut lead = y.layout().clone();
        lead.shape.pop();
        lead.strides.pop();
        lead.offset = 0;
        let mut starts = alloc::room(lead.numel());
        each_offset(&lead, |o| starts.push(o));
        let (to, size) = (Ptr::new(y.bytes_ptr()), y.dtype().size());
        parallel_for(starts.len(), (1 << 14) / n + 1, |range| {
            for i in range {
                let row = (i % rows) as i64;
                // The first column beyond the lower triangle, or of the upper one.
                let edge = |more: i64| {
                    row.saturating_add(self.diagonal)
                        .saturating_add(more)
                        .clamp(0, n as i64) as usize
                };
                let zeros = if self.upper { 0..edge(0) } else { edge(1)..n };
                // SAFETY: columns of a row of the result, which belongs to this range.
                unsafe {
                    let place = |j: usize| to.at((starts[i] + j * step) * size);
                    if step == 1 {
                        place(zeros.start).write_bytes(0, zeros.len() * size);
                    } else {
                        for j in zeros {
                            place(j).write_bytes(0, size);
                        }
                    }
                }
            }
        });
        Ok(())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = Acc::of(y[0].dtype())?;
        let body = match self.upper {
            true => UPPER,
            false => LOWER,
        };
        let k = y[0].ndim();
        let diagonal = self.diagonal.clamp(i32::MIN as i64, i32::MAX as i64) as u32;
        let sizes = [y[0].size(k - 1), y[0].size(k - 2)].map(|n| [n as u32, 0]);
        let scalars = [sizes[0], sizes[1], [diagonal, 0]];
        let (x, y) = (transfer::whole(x[0])?, transfer::whole(&y[0])?);
        transfer::ran(pointwise(gpu, acc, body, &[x], y, &scalars))
    }
}

fn flip(x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    dispatch::call1(Reorder::flipped(x, dims)?, &[x])
}

pub fn roll(x: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
    ensure!(!shifts.is_empty(), Runtime, "`shifts` required");
    ensure!(
        x.ndim() > 0 || dims.is_empty(),
        Index,
        "roll: Dimension specified as {} but tensor has no dimensions",
        dims[0]
    );
    if dims.is_empty() && shifts.len() == 1 {
        return roll(&x.reshape(&[-1])?, shifts, &[0])?.reshape_to(x.shape());
    }
    ensure!(
        shifts.len() == dims.len(),
        Runtime,
        "shifts and dimensions must align. shifts: {}, dims:{}",
        shifts.len(),
        dims.len()
    );
    let mut shift: Ints = SmallVec::from_elem(0, x.ndim());
    for (&s, &d) in shifts.iter().zip(dims) {
        let d = shape::dim(d, x.ndim())?;
        if d < x.ndim() {
            // Both below the size, so that the sum cannot overflow.
            let n = x.size(d).max(1) as i64;
            shift[d] = (shift[d] + s.rem_euclid(n)) % n;
        }
    }
    let flip = DimSet::NONE;
    dispatch::call1(
        Reorder {
            flip,
            shift,
            name: "RollBackward0",
        },
        &[x],
    )
}

fn rot90(x: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
    ensure!(
        dims.len() == 2,
        Runtime,
        "expected total rotation dims == 2, but got dims = {}",
        dims.len()
    );
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "expected total dims >= 2, but got total dims = {}",
        x.ndim()
    );
    for &d in dims {
        crate::shape::dim(d, x.ndim())?;
    }
    ensure!(
        dims[0] != dims[1] && dims[0].abs_diff(dims[1]) != x.ndim() as u64,
        Runtime,
        "expected rotation dims to be different, but got dim0 = {} and dim1 = {}",
        dims[0],
        dims[1]
    );
    match k.rem_euclid(4) {
        1 => flip(x, &dims[1..])?.transpose(dims[0], dims[1]),
        2 => flip(x, dims),
        3 => flip(x, &dims[..1])?.transpose(dims[0], dims[1]),
        _ => x.copy_dense(),
    }
}

fn repeat(x: &Tensor, times: &[i64]) -> Result<Tensor> {
    ensure!(
        times.len() >= x.ndim(),
        Runtime,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
    );
    ensure!(
        times.iter().all(|&t| t >= 0),
        Runtime,
        "Trying to create tensor with negative dimension: repeat {} of {}",
        Show(times),
        Show(x.shape())
    );
    let lead = times.len() - x.ndim();
    let fits = |d: usize| (x.size(d) as i64).checked_mul(times[lead + d]).is_some();
    ensure!(
        (0..x.ndim()).all(fits),
        Runtime,
        "repeat: sizes overflow a 64-bit integer: {} of {}",
        Show(times),
        Show(x.shape())
    );
    dispatch::call1(
        Repeat {
            times: times.iter().map(|&t| t as usize).collect(),
        },
        &[x],
    )
}

fn tile(x: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let mut times: Ints = SmallVec::from_elem(1, x.ndim().saturating_sub(dims.len()));
    times.extend_from_slice(dims);
    repeat(x, &times)
}

impl Tensor {
    /// `flip`.
    pub fn flip(&self, dims: &[i64]) -> Result<Tensor> {
        flip(self, dims)
    }
    /// `repeat`.
    pub fn repeat(&self, times: &[i64]) -> Result<Tensor> {
        repeat(self, times)
    }
    /// `tril`.
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        dispatch::call1(
            Triangle {
                upper: false,
                diagonal,
            },
            &[self],
        )
    }
    /// `triu`.
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        dispatch::call1(
            Triangle {
                upper: true,
                diagonal,
            },
            &[self],
        )
    }
}

crate::entries! {
    /// The other way round along dimensions.
    "flip(Tensor self, int[] dims) -> Tensor", FN | METHOD,
    |a| Ok(flip(a.tensor(arg!(self))?, a.ints(arg!(dims))?)?.into());
    /// The other way round along columns.
    "fliplr(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        ensure!(a.tensor(arg!(self))?.ndim() >= 2, Runtime, "Input must be >= 2-d.");
        Ok(flip(a.tensor(arg!(self))?, &[1])?.into())
    };
    /// The other way round along rows.
    "flipud(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        ensure!(a.tensor(arg!(self))?.ndim() >= 1, Runtime, "Input must be >= 1-d.");
        Ok(flip(a.tensor(arg!(self))?, &[0])?.into())
    };
    /// Moved along dimensions; what leaves at one end comes back at the other.
    "roll(Tensor self, int[1] shifts, int[1]? dims=[]) -> Tensor", FN | METHOD,
    |a| Ok(roll(a.tensor(arg!(self))?, a.ints(arg!(shifts))?, a.opt_ints(arg!(dims)).unwrap_or(&[]))?.into());
    /// Rotated by `k` quarter turns in the plane of two dimensions.
    "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", FN | METHOD,
    |a| Ok(rot90(a.tensor(arg!(self))?, a.int(arg!(k))?, a.ints(arg!(dims))?)?.into());
    /// The tensor many times over along each dimension.
    "repeat(Tensor self, int[] repeats) -> Tensor", METHOD,
    |a| Ok(repeat(a.tensor(arg!(self))?, a.ints(arg!(repeats))?)?.into());
    /// `repeat`, with counts for the last dimensions only if there are fewer.
    "tile(Tensor self, int[] dims) -> Tensor", FN | METHOD,
    |a| Ok(tile(a.tensor(arg!(self))?, a.ints(arg!(dims))?)?.into());
    /// The lower triangles of matrices, zeros above.
    "tril(Tensor self, int diagonal=0) -> Tensor", ALL | DIRECT,
    |a| a.call(Triangle { upper: false, diagonal: a.int(arg!(diagonal))? }, &[a.tensor(arg!(self))?]);
    /// The upper triangles of matrices, zeros below.
    "triu(Tensor self, int diagonal=0) -> Tensor", ALL | DIRECT,
    |a| a.call(Triangle { upper: true, diagonal: a.int(arg!(diagonal))? }, &[a.tensor(arg!(self))?]);
    /// The sum of a matrix's diagonal.
    "trace(Tensor self) -> Tensor", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        ensure!(
            x.ndim() == 2,
            Runtime,
            "trace: expected a matrix, but got tensor with dim {}",
            x.ndim()
        );
        Ok(x.diagonal(0, 0, 1)?.sum_mask([0].into(), false, None)?.into())
    };
}

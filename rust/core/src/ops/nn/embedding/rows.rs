//! Rows of a table by number, and sums of rows, which their gradient is.

use super::gpu as kernels;
use crate::alloc;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::convert::{load, store};
use crate::cpu::copy;
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::number::Number;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{
    lie_in, Batching, Cut, Derivative, Grads, Mapped, Mask, Metas, Op, Part, Rare, Save,
    TensorMeta, Tensors, Traits,
};
use crate::ops::index::gpu::{index_add, index_select};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Maximum;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::ops::shape::many::{merged, parted, steps};
use crate::ops::sparse::coo::of_rows;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_compute};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of the first input, by the numbers in the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rows {
    pub name: &'static str,
    /// A row without a gradient.
    pub padding: Option<i64>,
    /// Whether gradients are divided by how often their row occurs.
    pub scaled: bool,
    /// Whether the table's gradient is sparse.
    pub sparse: bool,
}

/// The adjoint: sums rows of the first input into a table of `count` rows. `padding` and `scaled`
/// as for [`Rows`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumRows {
    pub name: &'static str,
    pub count: usize,
    pub padding: Option<i64>,
    pub scaled: bool,
}

/// The adjoint of [`SumRows`]: as [`Rows`], with what it leaves out and divides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spread(pub Rows);

/// The end of a list.
const NONE: usize = usize::MAX;

pub(super) fn in_range(mut at: impl Iterator<Item = i64>, rows: usize) -> Result<()> {
    match at.find(|&i| i as u64 >= rows as u64) {
        Some(bad) => bail!(
            Index,
            "index out of range in self: embedding got {bad}, the table has {rows} rows"
        ),
        None => Ok(()),
    }
}

pub(super) fn counts(at: &[i64], rows: usize) -> Vec<u32> {
    let mut n = alloc::full(0, rows);
    // Another thread may have changed a number since it was checked.
    for &i in at {
        if let Some(n) = n.get_mut(i as usize) {
            *n += 1;
        }
    }
    n
}

/// Numbers of rows of `count` in each of many tables, as they are where these lie below each other.
fn moved_on(idx: &Tensor, count: usize) -> Result<Tensor> {
    let mut shape: SmallVec<[i64; 5]> = SmallVec::from_elem(1, idx.ndim());
    shape[0] = idx.size(0) as i64;
    let first = steps(idx.size(0), count, idx.device())?.reshape(&shape)?;
    idx.to_dtype(DType::I64)?.add(&first)
}

/// Whether numbers are that of one row, for what has `ndim` dimensions.
fn is_row(idx: &Tensor, row: i64, ndim: usize) -> Result<Tensor> {
    let is = apply(Eq, [idx, &Tensor::number(row.into())?])?;
    let mut shape = crate::shape::signed(is.shape());
    shape.resize(ndim, 1);
    is.reshape(&shape)
}

impl Derivative for Rows {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        if self.sparse {
            ensure!(
                !self.scaled,
                Runtime,
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            );
            let shape = &cx.input_meta(0)?.shape;
            let rows = of_rows(shape, &cx.input(1)?, g, self.padding)?;
            return Ok(Grads::from_iter([Some(rows), None]));
        }
        let op = SumRows {
            name: self.name,
            count: cx.input_meta(0)?.shape[0],
            padding: self.padding,
            scaled: self.scaled,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(op, &[g, &cx.input(1)?])?),
            None,
        ]))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Rows {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(x[1], 0..x[0].size(0)))
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape: Dims = x[1]
            .shape()
            .iter()
            .chain(&x[0].shape()[1..])
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
        let (table, at) = (x[0].prepared(x[0].dtype())?, x[1].prepared(DType::I64)?);
        let at = Indices::of(&at);
        in_range(at.iter(), table.size(0))?;
        let bytes = table.shape()[1..].iter().product::<usize>() * table.dtype().size();
        let (from, to) = (Ptr::new(table.bytes_ptr()), Ptr::new(y[0].bytes_ptr()));
        let (rows, changed) = (table.size(0), AtomicBool::new(false));
        let run = copy::runs(bytes);
        parallel_for(at.len(), (1 << 15) / bytes.max(1) + 1, |range| {
            let mut row = at.at(range.start) as usize;
            for i in range.clone() {
                if row >= rows {
                    return changed.store(true, Ordering::Relaxed);
                }
                let next = if i + 1 < range.end {
                    at.at(i + 1) as usize
                } else {
                    row
                };
                // SAFETY: the table has the row; row `i` of the output belongs to this range.
                unsafe {
                    let (from, to) = (from.at(row * bytes), to.at(i * bytes));
                    let ahead = table.bytes_ptr().wrapping_add(next.wrapping_mul(bytes));
                    match run {
                        Some(run) => run(from, to, bytes, ahead),
                        None => copy::copy(from, to, bytes),
                    }
                }
                row = next;
            }
        });
        ensure!(
            !changed.into_inner(),
            Index,
            "embedding: an index changed while it was read"
        );
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let cut = |d| Cut::new([Part::Whole, Part::Along(d)], [Part::Along(d)]);
        (0..x[1].ndim()).map(cut).collect()
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let at = transfer::dense(gpu, x[1])?;
        let bound = x[0].storage().bytes() as u64 <= gpu.info().max_binding;
        if bound && kernels::fits(x[0], &at) && y[0].is_contiguous() {
            return transfer::ran(kernels::rows(gpu, x[0], &at, &y[0]));
        }
        transfer::ran(index_select(gpu, x[0], 0, &at, &y[0]))
    }
}

impl Batching for Rows {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let (table, idx) = (&x.x[0], &x.x[1]);
        if !x.has(0) {
            return dispatch::call(self.clone(), &[table, idx]).map(Some);
        }
        // The tables below each other, with the numbers of rows moved on.
        let plain = Rows {
            padding: None,
            ..self.clone()
        };
        let idx = x.with_slices(1)?;
        let moved = moved_on(&idx, table.size(1))?;
        let y = dispatch::call1(plain, &[&merged(table, 0)?, &moved])?;
        Ok(Some(Tensors::from_buf([match self.padding {
            None => y,
            Some(row) => {
                let padded = is_row(&idx, row, y.ndim())?;
                where_(&padded, &y.detached()?, &y)?
            }
        }])))
    }
}

impl Derivative for SumRows {
    fn name(&self) -> &'static str {
        "EmbeddingDenseBackwardBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let rows = Rows {
            name: self.name,
            padding: self.padding,
            scaled: self.scaled,
            sparse: false,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(Spread(rows), &[g, &cx.input(1)?])?),
            None,
        ]))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for SumRows {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(x[1], 0..self.count))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let rest = &x[0].shape()[x[1].ndim()..];
        let shape: Dims = std::iter::once(self.count)
            .chain(rest.iter().copied())
            .collect();
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
        let (own, t) = (y[0].dtype(), y[0].dtype().compute());
        let (g, at) = (x[0].prepared(x[0].dtype())?, x[1].prepared(DType::I64)?);
        let at = &Indices::of(&at).own()[..];
        in_range(at.iter().copied(), self.count)?;
        let n = if self.scaled {
            counts(at, self.count)
        } else {
            Vec::new()
        };
        // The numbers of each row as a list in their order, so that a row is written once.
        let mut first = crate::alloc::filled(NONE, self.count)?;
        let mut next = crate::alloc::filled(NONE, at.len())?;
        for (i, &row) in at.iter().enumerate().rev() {
            if self.padding != Some(row) {
                next[i] = std::mem::replace(&mut first[row as usize], i);
            }
        }
        let width: usize = y[0].shape()[1..].iter().product();
        let (from, size) = (Ptr::new(g.bytes_ptr()), g.dtype().size());
        let (to, bytes) = (Ptr::new(y[0].bytes_ptr()), width * own.size());
        with_compute!(t, T => {
            parallel_for(self.count, (1 << 16) / bytes.max(1) + 1, |rows| {
                let mut sum = alloc::full(T::default(), width);
                let mut term = alloc::full(T::default(), width);
                // SAFETY: `g` has a row for each number, of this type; rows of the output belong
                // to this range alone.
                unsafe {
                    let read = |i: usize, to: &mut [T]| {
                        load(g.dtype(), from.at(i * width * size), size as isize, width, to.as_mut_ptr());
                    };
                    let mut row = rows.start;
                    while row < rows.end {
                        let empty = first[row..rows.end].iter().take_while(|&&i| i == NONE).count();
                        to.at(row * bytes).write_bytes(0, empty * bytes);
                        row += empty;
                        if row == rows.end {
                            break;
                        }
                        let count = n.get(row).map(|&n| <T as Element>::of_i64(n as i64));
                        let mut i = first[row];
                        sum.fill(T::default());
                        while i != NONE {
                            read(i, &mut term);
                            let terms = sum.iter_mut().zip(&term);
                            match count {
                                None => terms.for_each(|(a, &b)| *a = a.plus(b)),
                                Some(n) => terms.for_each(|(a, &b)| *a = a.plus(b.over(n))),
                            }
                            i = next[i];
                        }
                        store(own, to.at(row * bytes), own.size() as isize, width, sum.as_ptr());
                        row += 1;
                    }
                }
            });
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        if self.scaled || x[0].dtype().is_half() {
            return Vec::new();
        }
        let cut = |d| Cut::new([Part::Along(d), Part::Along(d)], [Part::Sum]);
        (0..x[1].ndim()).map(cut).collect()
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (g, at) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        let bound = y[0].storage().bytes() as u64 <= gpu.info().max_binding;
        if bound && !self.scaled && kernels::sums_fit(&g, &at, &y[0]) {
            return transfer::ran(kernels::sums(gpu, &g, &at, self.padding, &y[0]));
        }
        transfer::fill(&y[0], 0.into())?;
        let flat = [at.numel()];
        let at = at.reshape_to(&flat)?;
        let skip = self.padding;
        let done = transfer::ran(index_add(gpu, &y[0], 0, &at, &g, 1.0, skip))?;
        if done && self.scaled {
            // All that a row is made of is divided by how often it is there.
            let rows = [y[0].size(0), 1];
            let one = Tensor::full(&rows, 1.into(), DType::F32, y[0].device())?;
            let counts = Tensor::zeros(&rows, DType::F32, y[0].device())?;
            let ones = one
                .narrow(0, 0, 1)?
                .expand_to(&[flat[0], 1])?
                .contiguous()?;
            index_add(gpu, &counts, 0, &at, &ones, 1.0, skip)?;
            let counts = apply(Maximum, [&counts, &one])?.to_dtype(y[0].dtype())?;
            y[0].write_from(&y[0].detach().div(&counts)?)?;
        }
        Ok(done)
    }
}

impl Batching for SumRows {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let (mut g, idx) = (x.with_slices(0)?, x.with_slices(1)?);
        if let Some(row) = self.padding {
            let nothing = Tensor::constant(0.0, g.dtype())?;
            g = where_(&is_row(&idx, row, g.ndim())?, &nothing, &g)?;
        }
        let all = SumRows {
            count: self.count * x.size,
            padding: None,
            ..self.clone()
        };
        let y = dispatch::call1(all, &[&g, &moved_on(&idx, self.count)?])?;
        Ok(Some(Tensors::from_buf([parted(&y, 0, x.size)?])))
    }
}

impl Derivative for Spread {
    fn name(&self) -> &'static str {
        "EmbeddingDenseBackwardBackward0"
    }
    fn save(&self, needs: Mask) -> Save {
        self.0.save(needs)
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        self.0.vjp(cx, g)
    }
}

impl Op for Spread {
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        Ok(lie_in(x[1], 0..x[0].size(0)))
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        self.0.infer(x)
    }

    /// Rows, some of them as nothing and others divided.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let (
            Rows {
                name,
                padding,
                scaled,
                ..
            },
            at,
        ) = (&self.0, x[1]);
        let plain = |padding| Rows {
            name,
            padding,
            scaled: false,
            sparse: false,
        };
        let mut y = dispatch::call1(plain(None), x)?;
        let column: Dims = at
            .shape()
            .iter()
            .copied()
            .chain(vec![1; y.ndim() - at.ndim()])
            .collect();
        if *scaled {
            let one = Tensor::full(&column, 1.into(), y.dtype(), y.device())?;
            let count = SumRows {
                name,
                count: x[0].size(0),
                padding: None,
                scaled: false,
            };
            let counts = dispatch::call1(count, &[&one, at])?;
            y = y.div(&dispatch::call1(plain(None), &[&counts, at])?)?;
        }
        if let Some(row) = padding {
            let row = Tensor::full(&[], (*row).into(), at.dtype(), at.device())?;
            let hidden = apply(Eq, [at, &row])?.reshape_to(&column)?;
            let zero = Tensor::zeros(&[], y.dtype(), y.device())?;
            y = where_(&hidden, &zero, &y)?;
        }
        Ok(Some(Tensors::from_iter([y])))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.0.cpu(x, y)?;
        if self.0.padding.is_none() && !self.0.scaled {
            return Ok(());
        }
        let at = x[1].prepared(DType::I64)?;
        let at = &Indices::of(&at).own()[..];
        let n = counts(at, x[0].size(0));
        let width = x[0].shape()[1..].iter().product::<usize>();
        crate::with_element!(y[0].dtype(), T => {
            // SAFETY: a contiguous tensor of type T of this call's own.
            let y = unsafe { y[0].slice_mut::<T>() };
            for (row, &i) in y.chunks_mut(width.max(1)).zip(at) {
                let k = match (self.0.padding == Some(i), self.0.scaled) {
                    (true, _) => 0.0,
                    (_, true) => 1.0 / n.get(i as usize).copied().unwrap_or(1) as f64,
                    _ => continue,
                };
                row.iter_mut().for_each(|v| *v = <T as Element>::of_f64(Element::to_f64(*v) * k));
            }
        });
        Ok(())
    }
}

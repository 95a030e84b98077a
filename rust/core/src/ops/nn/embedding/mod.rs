//! Rows of a table by number, their gradient, and bags of rows.

mod bags;
mod gpu;

use crate::alloc;
use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::convert::{load, store};
use crate::cpu::copy;
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::number::Number;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::Lane;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
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
use crate::schema::{Args, Signature, Value};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_compute};
use bags::Bags;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of the first input, by the numbers in the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rows {
    name: &'static str,
    /// A row without a gradient.
    padding: Option<i64>,
    /// Whether gradients are divided by how often their row occurs.
    scaled: bool,
    /// Whether the table's gradient is sparse.
    sparse: bool,
}

/// The adjoint: sums rows of the first input into a table of `count` rows. `padding` and `scaled`
/// as for [`Rows`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SumRows {
    name: &'static str,
    count: usize,
    padding: Option<i64>,
    scaled: bool,
}

/// The adjoint of [`SumRows`]: as [`Rows`], with what it leaves out and divides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spread(Rows);

/// The end of a list.
const NONE: usize = usize::MAX;

fn in_range(mut at: impl Iterator<Item = i64>, rows: usize) -> Result<()> {
    match at.find(|&i| i as u64 >= rows as u64) {
        Some(bad) => bail!(
            Index,
            "index out of range in self: embedding got {bad}, the table has {rows} rows"
        ),
        None => Ok(()),
    }
}

fn counts(at: &[i64], rows: usize) -> Vec<u32> {
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
        if bound && self::gpu::fits(x[0], &at) && y[0].is_contiguous() {
            return transfer::ran(self::gpu::rows(gpu, x[0], &at, &y[0]));
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
        if bound && !self.scaled && self::gpu::sums_fit(&g, &at, &y[0]) {
            return transfer::ran(self::gpu::sums(gpu, &g, &at, self.padding, &y[0]));
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

fn check_numbers(at: &Tensor, name: &str) -> Result<()> {
    ensure!(
        matches!(at.dtype(), DType::I64 | DType::I32),
        Runtime,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: \
         Long, Int; but got {} instead (while checking arguments for {name})",
        crate::autograd::saved::type_name(at)
    );
    Ok(())
}

impl Tensor {
    /// `embedding`: rows of this table.
    fn embedding(
        &self,
        at: &Tensor,
        padding: Option<i64>,
        scaled: bool,
        sparse: bool,
    ) -> Result<Tensor> {
        ensure!(
            self.ndim() == 2,
            Runtime,
            "'weight' must be 2-D, but got {}",
            Show(self.shape())
        );
        check_numbers(at, "embedding")?;
        let name = "EmbeddingBackward0";
        dispatch::call1(
            Rows {
                name,
                padding,
                scaled,
                sparse,
            },
            &[self, at],
        )
    }
}

/// Shortens the rows in `at` that are longer than `max_norm`, in place.
fn renorm(table: &Tensor, at: &Tensor, max_norm: f64, p: f64) -> Result<()> {
    check_numbers(at, "embedding_renorm_")?;
    ensure!(
        table.ndim() == 2,
        Runtime,
        "embedding_renorm_: expected a table of 2 dimensions, but got {}",
        Show(table.shape())
    );
    table.check_inplace(false)?;
    let given = (Bitwise(max_norm), Bitwise(p));
    let name = "EmbeddingRenormBackward0";
    let same = |_: &_| Ok(Metas::from_elem(TensorMeta::of(table), 1));
    let from = [&table.detach(), at];
    let renewed = dispatch::function_of(name, given, &from, same, |&(most, p), x| {
        shortened(x[0], x[1], *most, *p)
    })?;
    crate::autograd::mode::with_grad(false, || table.copy_from(&renewed))
}

fn shortened(table: &Tensor, at: &Tensor, max_norm: f64, p: f64) -> Result<Tensor> {
    let at = at.prepared(DType::I64)?;
    let mut rows = Indices::of(&at).own();
    in_range(rows.iter().copied(), table.size(0))?;
    rows.sort_unstable();
    rows.dedup();
    let copy = Tensor::empty(table.shape(), table.dtype(), Device::Cpu)?;
    copy.write_from(table)?;
    let width = table.size(1);
    crate::with_element!(copy.dtype(), T => {
        // SAFETY: a contiguous tensor of type T of this call's own.
        let values = unsafe { copy.slice_mut::<T>() };
        for &i in &rows {
            let row = &mut values[i as usize * width..][..width];
            let sizes = row.iter().map(|v| Element::to_f64(*v).abs());
            let norm = if p == f64::INFINITY {
                sizes.fold(0.0, f64::max)
            } else {
                sizes.map(|v| v.powf(p)).sum::<f64>().powf(1.0 / p)
            };
            if norm > max_norm {
                let k = max_norm / (norm + 1e-7);
                row.iter_mut().for_each(|v| *v = <T as Element>::of_f64(Element::to_f64(*v) * k));
            }
        }
    });
    Ok(copy)
}

fn embedding_bag<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (w, at, offsets) = (
        a.tensor(arg!(weight))?,
        a.tensor(arg!(indices))?,
        a.tensor(arg!(offsets))?,
    );
    let (scaled, mode) = (a.bool(arg!(scale_grad_by_freq))?, a.int(arg!(mode))?);
    let (each, last) = (
        a.opt_tensor(arg!(per_sample_weights)),
        a.bool(arg!(include_last_offset))?,
    );
    ensure!(
        w.dtype().is_float(),
        Runtime,
        "embedding_bag: expected 'weight' to have a floating point type, but got {}",
        crate::autograd::saved::type_name(w)
    );
    // Narrow integers are read as what they promote to beside the other ones.
    let numbers = at.dtype().promote(offsets.dtype());
    ensure!(
        matches!(numbers, DType::I64 | DType::I32),
        Runtime,
        "embedding_bag: expected 'indices' and 'offsets' of Long or Int, or to promote to one of \
         them, but got {} and {}",
        crate::autograd::saved::type_name(at),
        crate::autograd::saved::type_name(offsets)
    );
    ensure!(
        w.ndim() == 2 && at.ndim() == 1 && offsets.ndim() == 1,
        Runtime,
        "embedding_bag: expected weight of 2 dimensions, indices and offsets of 1, but got {}, {} \
         and {}",
        Show(w.shape()),
        Show(at.shape()),
        Show(offsets.shape())
    );
    ensure!(
        (0..=2).contains(&mode),
        Value,
        "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}"
    );
    ensure!(
        each.is_none() || mode == 0,
        Runtime,
        "embedding_bag: per_sample_weights only supported with mode='sum'"
    );
    if let Some(e) = each {
        ensure!(
            e.shape() == at.shape() && e.dtype() == w.dtype(),
            Runtime,
            "expected per_sample_weights of shape {} and type {}, but got {} and {}: shape must be \
             the same as the input's, type the same as the weight's",
            Show(at.shape()),
            w.dtype(),
            Show(e.shape()),
            e.dtype()
        );
    }
    let rows = w.size(0) as i64;
    let padding = match a.opt_int(arg!(padding_idx)) {
        None => None,
        Some(p) => {
            ensure!(
                -rows <= p && p < rows,
                Runtime,
                "padding_idx must be within the number of embeddings, -{rows} through {}, but got \
                 {p}",
                rows - 1
            );
            Some(p.rem_euclid(rows))
        }
    };
    let (at, starts) = (integers(at)?, integers(offsets)?);
    let starts = Indices::of(&starts).own();
    // SAFETY: a contiguous i64 tensor; the numbers are checked again where they become addresses.
    let numbers = unsafe { at.slice::<i64>() };
    // The sign of each difference, which vectors have.
    if numbers
        .iter()
        .fold(0, |any, &i| any | i | (rows - 1).wrapping_sub(i))
        < 0
    {
        let outside = |i: i64| i as u64 >= rows as u64;
        let bad = numbers.iter().find(|&&i| outside(i)).unwrap_or(&rows);
        bail!(
            Runtime,
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings, but found idx to be {bad} \
             with {rows} embeddings"
        );
    }
    let total = numbers.len() as i64;
    ensure!(
        starts.first().is_none_or(|&s| s == 0),
        Runtime,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from \
         position 0. However, got {}",
        starts[0]
    );
    ensure!(
        starts.windows(2).all(|w| w[0] <= w[1]) && starts.last().is_none_or(|&s| s <= total),
        Runtime,
        "offsets[-1] can not be greater than input's length({total}), and offsets must not \
         decrease"
    );
    ensure!(
        !last || !starts.is_empty(),
        Runtime,
        "include_last_offset: number of offsets should be at least 1"
    );
    let bags = starts.len() - last as usize;
    // Which bag each number belongs to; those behind the last bag and of the padding row to none.
    let all_bags = Tensor::empty(&[numbers.len()], DType::I64, Device::Cpu)?;
    // SAFETY: a contiguous i64 tensor of this call's own.
    let bag_of_each = unsafe { all_bags.slice_mut::<i64>() };
    let mut sizes = alloc::full(0i64, bags);
    for (bag, &start) in starts.iter().enumerate() {
        let end = *starts.get(bag + 1).unwrap_or(&total);
        bag_of_each[start as usize..end as usize].fill(bag as i64);
        if let Some(size) = sizes.get_mut(bag) {
            *size = end - start;
        }
    }
    let long = |v: &[i64], shape: &[usize]| -> Result<Tensor> {
        Tensor::from_slice(v, shape, DType::I64)?.to_device(w.device())
    };
    let offset2bag = all_bags.to_device(w.device())?;
    let end = if last { starts[bags] } else { total };
    let whole = bags > 0 && end == total && padding.is_none_or(|row| !numbers.contains(&row));
    let (mut kept, mut bag_of) = (Vec::new(), Vec::new());
    if !whole {
        let stays = |i: &i64| *i < end && bags > 0 && padding != Some(numbers[*i as usize]);
        alloc::reserve(&mut kept, numbers.len());
        kept.extend((0..total).filter(stays));
        bag_of = alloc::gathered(kept.iter().map(|&i| bag_of_each[i as usize]));
        sizes.fill(0);
        bag_of.iter().for_each(|&bag| sizes[bag as usize] += 1);
    }
    let chosen: Vec<i64> = match whole {
        true => Vec::new(),
        false => alloc::gathered(kept.iter().map(|&i| numbers[i as usize])),
    };
    let bag_size = long(&sizes, &[bags])?;
    let width = w.size(1);
    if mode == 2 {
        let (chosen, bag_of) = match whole {
            true => (at.clone(), &*bag_of_each),
            false => (
                Tensor::from_slice(&chosen, &[kept.len()], DType::I64)?,
                &*bag_of,
            ),
        };
        let (best, y) = bag_max(w, Indices::of(&chosen), bag_of, bags)?;
        let best = long(&best, &[bags, width])?;
        return Ok(Value::Tuple(vec![y, offset2bag, bag_size, best]));
    }
    let (chosen, bag_of) = match whole {
        true => (at.to_device(w.device())?, offset2bag.clone()),
        false => (long(&chosen, &[kept.len()])?, long(&bag_of, &[kept.len()])?),
    };
    let op = Bags {
        count: bags,
        mean: mode == 1,
        scaled,
        sparse: a.bool(arg!(sparse))?,
        weighted: each.is_some(),
    };
    let y = match each {
        None => dispatch::call1(op, &[w, &chosen, &bag_of])?,
        Some(each) if whole => dispatch::call1(op, &[w, &chosen, &bag_of, each])?,
        Some(each) => {
            let kept = long(&kept, &[kept.len()])?;
            let each = dispatch::call1(op.rows(), &[&each.reshape(&[-1, 1])?, &kept])?;
            dispatch::call1(op, &[w, &chosen, &bag_of, &each.reshape(&[-1])?])?
        }
    };
    // Without maxima there are no rows of theirs: zeros for sums, the sizes for means.
    let best = match mode {
        0 => Tensor::zeros(&[bags], DType::I64, w.device())?,
        _ => bag_size.copy_dense()?,
    };
    Ok(Value::Tuple(vec![y, offset2bag, bag_size, best]))
}

/// The elements in host memory; on meta zeros, for no shape depends on them.
fn integers(t: &Tensor) -> Result<Tensor> {
    match t.has_data() {
        true => t.to_host()?.prepared(DType::I64),
        false => Tensor::zeros(t.shape(), DType::I64, Device::Cpu),
    }
}

/// The largest element of each column of each bag, and the row that it is from.
fn bag_max(
    w: &Tensor,
    numbers: Indices,
    bag_of: &[i64],
    bags: usize,
) -> Result<(Vec<i64>, Tensor)> {
    let (rows, width) = (w.size(0), w.size(1));
    let mut best = match w.has_data() {
        true => bags::largest(&w.to_host()?, numbers, bag_of, bags)?,
        false => alloc::full(-1i64, bags * width),
    };
    let mut flat = w.reshape(&[-1])?;
    // Empty bags read one zero behind the table.
    if best.iter().any(|&row| row < 0) {
        flat = flat.pad_constant(&[0, 1], crate::dtype::Scalar::Int(0))?;
    }
    let places = best.iter().enumerate().map(|(i, &row)| match row < 0 {
        true => (rows * width) as i64,
        false => row * width as i64 + (i % width) as i64,
    });
    let at: Vec<i64> = alloc::gathered(places);
    let at = Tensor::from_slice(&at, &[bags * width], DType::I64)?.to_device(w.device())?;
    let name = "EmbeddingBagBackward0";
    let y = dispatch::call1(
        Rows {
            name,
            padding: None,
            scaled: false,
            sparse: false,
        },
        &[&flat.reshape(&[-1, 1])?, &at],
    )?;
    best.iter_mut().for_each(|b| *b = (*b).max(0));
    Ok((best, y.reshape_to(&[bags, width])?))
}

crate::entries! {
    /// Rows of `weight` by their numbers; `padding_idx` names one without a gradient. With `sparse` the
    /// gradient of `weight` is a sparse tensor.
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    FN, |a| {
        let padding = Some(a.int(arg!(padding_idx))?).filter(|&p| p >= 0);
        Ok(a.tensor(arg!(weight))?.embedding(a.tensor(arg!(indices))?, padding, a.bool(arg!(scale_grad_by_freq))?, a.bool(arg!(sparse))?)?.into())
    };
    /// Shortens the rows that `indices` names to `max_norm`, in place.
    "embedding_renorm_(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    FN, |a| {
        renorm(a.tensor(arg!(self))?, a.tensor(arg!(indices))?, a.float(arg!(max_norm))?, a.float(arg!(norm_type))?)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
    /// Sums, means or maxima of bags of rows; with the bag of each number, sizes and maxima. With `sparse`
    /// the gradient of `weight` is a sparse tensor.
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)",
    FN, |a| {
        embedding_bag(a)
    };
}

//! Sums and means of bags of rows, read where they lie.

use super::rows::{counts, Rows, Spread, SumRows};
use crate::autograd::Vjp;
use crate::cpu::convert::{load, store};
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::pool::parallel_for;
use crate::cpu::simd::fetch;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::machine::machine;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::pointwise::Float;
use crate::ops::sparse::coo::of_rows;
use crate::tensor::Tensor;
use crate::{alloc, ensure, per_isa, with_float};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

const NAME: &str = "EmbeddingBagBackward0";

/// The sum of each bag's rows of the first input; the second has their numbers, the third the bag of
/// each number, in rising order, and a fourth may have factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bags {
    pub(super) count: usize,
    pub(super) mean: bool,
    /// Whether gradients are divided by how often their row occurs.
    pub(super) scaled: bool,
    /// Whether the table's gradient is sparse.
    pub(super) sparse: bool,
    /// Whether there are factors.
    pub(super) weighted: bool,
}

impl Bags {
    /// Rows by their numbers, of any tensor.
    pub(super) fn rows(&self) -> Rows {
        Rows {
            name: NAME,
            padding: None,
            scaled: false,
            sparse: false,
        }
    }

    /// The gradient of a table of so many rows: bags of the rows of `g`, one for each row of the table.
    fn of_table(
        &self,
        rows: usize,
        g: &Tensor,
        at: &Tensor,
        bag_of: &Tensor,
        factors: Option<Tensor>,
    ) -> Result<Tensor> {
        let g = match self.mean {
            true => self.divided(g, bag_of)?,
            false => g.clone(),
        };
        let (at, order) = at.sort(0, false)?;
        let bag_of = bag_of.index_select(0, &order)?;
        let op = Bags {
            count: rows,
            mean: false,
            ..*self
        };
        match factors {
            None => dispatch::call1(op, &[&g, &bag_of, &at]),
            Some(each) => {
                let each = each.index_select(0, &order)?;
                dispatch::call1(op, &[&g, &bag_of, &at, &each])
            }
        }
    }

    /// The rows of `g`, one for each bag, by how many numbers it has.
    fn divided(&self, g: &Tensor, bag_of: &Tensor) -> Result<Tensor> {
        let bag_of = bag_of.prepared(DType::I64)?;
        // SAFETY: a contiguous i64 tensor, read only.
        let counts = counts(unsafe { bag_of.slice() }, self.count);
        let counts: Vec<f64> = alloc::gathered(counts.iter().map(|&n| n.max(1) as f64));
        let wide = g.dtype().compute();
        let counts = Tensor::from_slice(&counts, &[self.count, 1], DType::F64)?.to_dtype(wide)?;
        g.to_dtype(wide)?.div(&counts)?.to_dtype(g.dtype())
    }

    fn sum(&self, count: usize, scaled: bool) -> SumRows {
        SumRows {
            name: NAME,
            count,
            padding: None,
            scaled,
        }
    }
}

impl Derivative for Bags {
    fn name(&self) -> &'static str {
        NAME
    }
    fn save(&self, needs: Mask) -> Save {
        match self.weighted {
            false => Save::inputs([1, 2]),
            true if needs & 0b1000 == 0 => Save::inputs([1, 2, 3]),
            true => Save::inputs([0, 1, 2, 3]),
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut grads = Grads::from_elem(None, cx.inputs());
        let Some(g) = &g[0] else {
            return Ok(grads);
        };
        let (at, bag_of) = (cx.input(1)?, cx.input(2)?);
        let host = g.device() == Device::Cpu && !self.sparse && !self.scaled;
        if host && !(self.weighted && cx.needs(3)) {
            if cx.needs(0) {
                let factors = self.weighted.then(|| cx.input(3)).transpose()?;
                let rows = cx.input_meta(0)?.shape[0];
                grads[0] = Some(self.of_table(rows, g, &at, &bag_of, factors)?);
            }
            return Ok(grads);
        }
        let mut each = match self.mean {
            false => dispatch::call1(self.rows(), &[g, &bag_of])?,
            true => {
                let scaled = true;
                dispatch::call1(
                    Spread(Rows {
                        scaled,
                        ..self.rows()
                    }),
                    &[g, &bag_of],
                )?
            }
        };
        if self.weighted && cx.needs(3) {
            let rows = dispatch::call1(self.rows(), &[&cx.input(0)?, &at])?;
            grads[3] = Some(each.mul(&rows)?.sum_dim(1, false)?);
        }
        if cx.needs(0) {
            if self.weighted {
                each = each.mul(&cx.input(3)?.reshape(&[-1, 1])?)?;
            }
            let shape = &cx.input_meta(0)?.shape;
            grads[0] = Some(match self.sparse {
                true => {
                    ensure!(
                        !self.scaled,
                        Runtime,
                        "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
                    );
                    of_rows(shape, &at, &each, None)?
                }
                false => dispatch::call1(self.sum(shape[0], self.scaled), &[&each, &at])?,
            });
        }
        Ok(grads)
    }
}

impl Op for Bags {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let shape = [self.count, x[0].shape()[1]];
        Ok(Metas::from_elem(
            TensorMeta::new(&shape, x[0].dtype(), x[0].device()),
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let dtype = x[0].dtype();
        let (table, at) = (x[0].prepared(dtype)?, x[1].prepared(DType::I64)?);
        let bag_of = x[2].prepared(DType::I64)?;
        let factors = match x.get(3) {
            Some(each) => Some(each.prepared(dtype.compute())?),
            None => None,
        };
        let changed = AtomicBool::new(false);
        with_float!(dtype.compute(), "embedding_bag", T => {
            // SAFETY: contiguous tensors of these types, read only.
            let job = unsafe {
                Job::<T> {
                    table: table.bytes_ptr(),
                    rows: table.size(0),
                    dtype,
                    width: table.size(1),
                    numbers: Indices::of(&at),
                    bag_of: bag_of.slice(),
                    factors: factors.as_ref().map(|each| each.slice()),
                    far: is_far(&table),
                    mean: self.mean,
                    to: y[0].bytes_ptr(),
                    changed: &changed,
                }
            };
            let each = at.numel() / self.count.max(1) + 1;
            parallel_for(self.count, (1 << 15) / (each * job.width + 1) + 1, |bags| {
                // SAFETY: rows of the output belong to this range alone.
                unsafe {
                    match (job.width * size_of::<T>() >= WIDE, dtype == T::DTYPE) {
                        (true, true) => sums::<T, { WIDE / size_of::<T>() }, true>(&job, bags),
                        (true, _) => sums::<T, { WIDE / size_of::<T>() }, false>(&job, bags),
                        _ => sums::<T, { NARROW / size_of::<T>() }, false>(&job, bags),
                    }
                }
            });
        });
        check(changed)
    }

    /// The rows, and their sums.
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let mut rows = dispatch::call1(self.rows(), &x[..2])?;
        if let Some(each) = x.get(3) {
            rows = rows.mul(&each.reshape(&[-1, 1])?)?;
        }
        let y = dispatch::call1(self.sum(self.count, self.mean), &[&rows, x[2]])?;
        Ok(Some(Tensors::from_iter([y])))
    }
}

struct Job<'a, T> {
    table: *const u8,
    rows: usize,
    /// Of the table and the result.
    dtype: DType,
    width: usize,
    numbers: Indices<'a>,
    bag_of: &'a [i64],
    factors: Option<&'a [T]>,
    /// Whether rows are asked of memory before they are read.
    far: bool,
    mean: bool,
    to: *mut u8,
    changed: &'a AtomicBool,
}

// SAFETY: threads read the operands and write disjoint rows.
unsafe impl<T: Sync> Sync for Job<'_, T> {}

/// Bytes of a bag's columns that are kept in registers while its rows are read, and of those of narrow
/// tables.
const WIDE: usize = 256;
const NARROW: usize = 64;
/// How many rows ahead are asked of memory.
const AHEAD: usize = 12;

impl<T: Float> Job<'_, T> {
    /// The numbers from `i` on that belong to `bag`, most likely as many as `guess`.
    fn numbers_of(&self, bag: usize, i: usize, guess: usize) -> Range<usize> {
        let (bags, bag) = (&self.bag_of[i..], bag as i64);
        // Bags rise: where the last place is of this one, so are those before.
        if guess > 0 && bags.get(guess - 1) == Some(&bag) && bags.get(guess) != Some(&bag) {
            return i..i + guess;
        }
        i..i + bags.iter().take_while(|&&b| b == bag).count()
    }

    /// Columns from `c` on of the row that number `i` names, as they lie or in `room`; none if the table
    /// has no such row.
    ///
    /// # Safety
    /// The table has `n` columns from `c` on.
    #[inline(always)]
    unsafe fn columns<const N: usize, const PLAIN: bool>(
        &self,
        i: usize,
        c: usize,
        n: usize,
        room: &mut [T; N],
    ) -> Option<*const T> {
        let size = if PLAIN {
            size_of::<T>()
        } else {
            self.dtype.size()
        };
        let at = self.numbers.at(i) as usize;
        let next = self.numbers.get(i + AHEAD).filter(|_| self.far);
        if let Some(next) = next {
            let next = (next as usize).wrapping_mul(self.width).wrapping_add(c);
            let next = self.table.wrapping_add(next.wrapping_mul(size));
            (0..n * size)
                .step_by(64)
                .for_each(|i| fetch(next.wrapping_add(i)));
        }
        if at >= self.rows {
            self.changed.store(true, Ordering::Relaxed);
            return None;
        }
        // SAFETY: the table has the row, and the row the columns.
        unsafe {
            let from = self.table.add((at * self.width + c) * size);
            if PLAIN || self.dtype == T::DTYPE {
                return Some(from.cast::<T>());
            }
            load(self.dtype, from, size as isize, n, room.as_mut_ptr());
            Some(room.as_ptr())
        }
    }

    /// The sum of `n` columns from `c` on over these numbers; `PLAIN` where the table has this type.
    ///
    /// # Safety
    /// As for [`columns`](Self::columns).
    #[inline(always)]
    unsafe fn sum<const N: usize, const PLAIN: bool>(
        &self,
        numbers: Range<usize>,
        c: usize,
        n: usize,
    ) -> Option<[T; N]> {
        let zero = T::lit(0.0);
        let (mut sum, mut room) = ([zero; N], [zero; N]);
        for i in numbers {
            // SAFETY: the table has `n` columns from `c` on; `n` elements lie there.
            let terms = unsafe { self.columns::<N, PLAIN>(i, c, n, &mut room)? };
            // SAFETY: `columns` gave the address of `n` elements.
            let terms = unsafe { std::slice::from_raw_parts(terms, n) };
            match self.factors {
                Some(k) => (0..n).for_each(|j| sum[j] += terms[j] * k[i]),
                None => (0..n).for_each(|j| sum[j] += terms[j]),
            }
        }
        Some(sum)
    }

    /// Where the largest of each of `n` columns from `c` on is, of these numbers; the last NaN wins.
    ///
    /// # Safety
    /// As for [`columns`](Self::columns); there is a number.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    unsafe fn largest<const N: usize>(
        &self,
        numbers: Range<usize>,
        c: usize,
        n: usize,
    ) -> Option<[u32; N]> {
        let (mut best, mut room) = ([T::lit(f64::NEG_INFINITY); N], [T::lit(0.0); N]);
        let mut place = [0u32; N];
        for (k, i) in numbers.enumerate() {
            // SAFETY: the table has `n` columns from `c` on; `n` elements lie there.
            let terms = unsafe { self.columns::<N, false>(i, c, n, &mut room)? };
            // SAFETY: `columns` gave the address of `n` elements.
            let terms = unsafe { std::slice::from_raw_parts(terms, n) };
            for j in 0..n {
                let v = terms[j];
                let wins = (v > best[j]) | (v != v);
                best[j] = if wins { v } else { best[j] };
                place[j] = if wins { k as u32 } else { place[j] };
            }
        }
        Some(place)
    }
}

/// Whether a table does not stay in the second cache.
fn is_far(table: &Tensor) -> bool {
    table.numel() * table.dtype().size() > machine().l2 / 2
}

/// Blocks of `n` of `width` columns, each whole but where there is less than one; the last may overlap
/// the one before.
fn blocks(width: usize, n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width).step_by(n).map(move |c| match width < n {
        true => (0, width),
        false => (c.min(width - n), n),
    })
}

per_isa! {
    unsafe fn sums[T: Float; const N: usize, const PLAIN: bool](job: &Job<'_, T>, bags: Range<usize>) {
        let (width, size) = (job.width, job.dtype.size());
        let i = job.bag_of.partition_point(|&bag| bag < bags.start as i64);
        let mut numbers = i..i;
        for bag in bags {
            numbers = job.numbers_of(bag, numbers.end, numbers.len());
            let n = <T as Element>::of_i64(numbers.len().max(1) as i64);
            for (c, columns) in blocks(width, N) {
                // SAFETY: the table has the columns; row `bag` of the output belongs to this thread.
                unsafe {
                    let sum = match columns == N {
                        true => job.sum::<N, PLAIN>(numbers.clone(), c, N),
                        false => job.sum::<N, PLAIN>(numbers.clone(), c, columns),
                    };
                    let Some(mut sum) = sum else { return };
                    if job.mean {
                        sum.iter_mut().for_each(|s| *s = *s / n);
                    }
                    let to = job.to.add((bag * width + c) * size);
                    store(job.dtype, to, size as isize, columns, sum.as_ptr());
                }
            }
        }
    }
}

per_isa! {
    unsafe fn maxima[T: Float; const N: usize](job: &Job<'_, T>, bags: Range<usize>) {
        let i = job.bag_of.partition_point(|&bag| bag < bags.start as i64);
        let mut numbers = i..i;
        for bag in bags {
            numbers = job.numbers_of(bag, numbers.end, numbers.len());
            if numbers.is_empty() {
                continue;
            }
            for (c, columns) in blocks(job.width, N) {
                // SAFETY: the table has the columns; row `bag` of the output belongs to this thread.
                unsafe {
                    let places = match columns == N {
                        true => job.largest::<N>(numbers.clone(), c, N),
                        false => job.largest::<N>(numbers.clone(), c, columns),
                    };
                    let Some(places) = places else { return };
                    let to = job.to.cast::<i64>().add(bag * job.width + c);
                    for (j, &k) in places[..columns].iter().enumerate() {
                        *to.add(j) = job.numbers.at(numbers.start + k as usize);
                    }
                }
            }
        }
    }
}

/// The row that the largest element of each column of each bag is from, -1 where a bag is empty; numbers
/// and bags as those of [`Bags`].
pub(super) fn largest(
    table: &Tensor,
    numbers: Indices,
    bag_of: &[i64],
    count: usize,
) -> Result<Vec<i64>> {
    let (table, width) = (table.prepared(table.dtype())?, table.size(1));
    let mut best = alloc::full(-1i64, count * width);
    let changed = AtomicBool::new(false);
    let dtype = table.dtype();
    with_float!(dtype.compute(), "embedding_bag", T => {
        let job = Job::<T> {
            table: table.bytes_ptr(),
            rows: table.size(0),
            dtype,
            width,
            numbers,
            bag_of,
            factors: None,
            far: is_far(&table),
            mean: false,
            to: best.as_mut_ptr().cast(),
            changed: &changed,
        };
        let each = numbers.len() / count.max(1) + 1;
        parallel_for(count, (1 << 15) / (each * width + 1) + 1, |bags| {
            // SAFETY: a contiguous table of this type; rows of the result belong to this range alone.
            unsafe { maxima::<T, { NARROW / size_of::<T>() }>(&job, bags) }
        });
    });
    check(changed)?;
    Ok(best)
}

fn check(changed: AtomicBool) -> Result<()> {
    ensure!(
        !changed.into_inner(),
        Index,
        "embedding_bag: an index changed while it was read"
    );
    Ok(())
}

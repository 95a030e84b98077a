//! Sums and means of bags of rows, read where they lie.

use super::{Rows, Spread, SumRows};
use crate::autograd::Vjp;
use crate::cpu::convert::{load, store};
use crate::cpu::elements::Element;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
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
                    numbers: at.slice(),
                    bag_of: bag_of.slice(),
                    factors: factors.as_ref().map(|each| each.slice()),
                    mean: self.mean,
                    to: y[0].bytes_ptr(),
                    changed: &changed,
                }
            };
            let each = at.numel() / self.count.max(1) + 1;
            parallel_for(self.count, (1 << 15) / (each * job.width + 1) + 1, |bags| {
                // SAFETY: rows of the output belong to this range alone.
                unsafe { sums(&job, bags) }
            });
        });
        ensure!(
            !changed.into_inner(),
            Index,
            "embedding_bag: an index changed while it was read"
        );
        Ok(())
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
    numbers: &'a [i64],
    bag_of: &'a [i64],
    factors: Option<&'a [T]>,
    mean: bool,
    to: *mut u8,
    changed: &'a AtomicBool,
}

// SAFETY: threads read the operands and write disjoint rows.
unsafe impl<T: Sync> Sync for Job<'_, T> {}

per_isa! {
    unsafe fn sums[T: Float](job: &Job<'_, T>, bags: Range<usize>) {
        let (width, size) = (job.width, job.dtype.size());
        let mut i = job.bag_of.partition_point(|&bag| bag < bags.start as i64);
        let mut sum = alloc::full(T::lit(0.0), width);
        let mut row = alloc::full(T::lit(0.0), width);
        for bag in bags {
            sum.fill(T::lit(0.0));
            let first = i;
            while i < job.numbers.len() && job.bag_of[i] == bag as i64 {
                // Another thread may write to the numbers: each is read once.
                let at = job.numbers[i] as usize;
                if at >= job.rows {
                    return job.changed.store(true, Ordering::Relaxed);
                }
                // SAFETY: the table has the row.
                let from = unsafe { job.table.add(at * width * size) };
                let terms = match job.dtype == T::DTYPE {
                    // SAFETY: a row of this type, which lies as tensors' elements do.
                    true => unsafe { std::slice::from_raw_parts(from.cast::<T>(), width) },
                    false => {
                        // SAFETY: a row of this type, and room for as much.
                        unsafe { load(job.dtype, from, size as isize, width, row.as_mut_ptr()) };
                        &row[..]
                    }
                };
                match job.factors {
                    None => sum.iter_mut().zip(terms).for_each(|(s, &v)| *s += v),
                    Some(k) => {
                        let k = k[i];
                        sum.iter_mut().zip(terms).for_each(|(s, &v)| *s += v * k);
                    }
                }
                i += 1;
            }
            if job.mean && i > first {
                let n = <T as Element>::of_i64((i - first) as i64);
                sum.iter_mut().for_each(|s| *s = *s / n);
            }
            // SAFETY: row `bag` of the output belongs to this thread.
            unsafe {
                let to = job.to.add(bag * width * size);
                store(job.dtype, to, size as isize, width, sum.as_ptr());
            }
        }
    }
}

//! Binary search in sorted sequences: `searchsorted` and `bucketize`.

use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::pool::parallel_chunks;
use crate::cpu::reduce::Reducible;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Promotion};
use crate::error::Result;
use crate::host;
use crate::op::{Metas, TensorMeta};
use crate::ops::index::search::search as gpu_search;
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{ensure, per_isa, transfer, with_compute};
use smallvec::SmallVec;
use std::sync::Once;

/// Whether edge `e` lies before the place of `v`; written so that NaN edges lie before everything.
#[inline(always)]
#[allow(clippy::neg_cmp_op_on_partial_ord, clippy::nonminimal_bool)]
fn comes_before<T: PartialOrd>(e: T, v: T, right: bool) -> bool {
    if right {
        !(e > v)
    } else {
        !(e >= v)
    }
}

per_isa! {
    /// The place of each value among sorted edges: several searches at a time, each without a
    /// branch.
    fn places[T: Reducible](edges: &[T], values: &[T], right: bool, out: &mut [i64]) {
        const SIDE: usize = 16;
        if edges.is_empty() {
            return out.fill(0);
        }
        // SAFETY: `edges` are not empty. The side is a constant.
        #[inline(always)]
        #[allow(clippy::needless_range_loop)]
        unsafe fn some<T: Reducible, const RIGHT: bool>(edges: &[T], v: &[T; SIDE]) -> [usize; SIDE] {
            let mut at = [0usize; SIDE];
            let mut n = edges.len();
            while n > 1 {
                let half = n / 2;
                for l in 0..SIDE {
                    // `at + n` is at most the number of edges.
                    // SAFETY: half is at least one and less than `n`.
                    let e = unsafe { *edges.get_unchecked(at[l] + half - 1) };
                    // By a mask: a choice would be compiled to a branch.
                    at[l] += half & (comes_before(e, v[l], RIGHT) as usize).wrapping_neg();
                }
                n -= half;
            }
            for l in 0..SIDE {
                // SAFETY: `n` is one now, so that `at` is less than the number of edges.
                let e = unsafe { *edges.get_unchecked(at[l]) };
                at[l] += comes_before(e, v[l], RIGHT) as usize;
            }
            at
        }
        let mut start = 0;
        while start < values.len() {
            let n = SIDE.min(values.len() - start);
            let mut v = [values[start]; SIDE];
            v[..n].copy_from_slice(&values[start..start + n]);
            // SAFETY: there is an edge.
            let at = unsafe {
                if right { some::<T, true>(edges, &v) } else { some::<T, false>(edges, &v) }
            };
            for (out, &at) in out[start..start + n].iter_mut().zip(&at) {
                *out = at as i64;
            }
            start += n;
        }
    }
}

/// `searchsorted` and `bucketize`.
pub fn search(
    name: &'static str,
    sequence: &Tensor,
    values: &Tensor,
    small: bool,
    right: bool,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let x: SmallVec<[&Tensor; 3]> = [sequence, values].into_iter().chain(sorter).collect();
    let dtype = if small { DType::I32 } else { DType::I64 };
    let meta = || TensorMeta::new(values.shape(), dtype, dispatch::device(&x));
    dispatch::function_of(
        name,
        (name, small, right),
        &x,
        |_| Ok(Metas::from_elem(meta(), 1)),
        |&(name, small, right), x| found(name, x[0], x[1], small, right, x.get(2).copied()),
    )
}

/// Warns, once each, of arguments that are copied to be searched.
fn warn_of_copies(sequence: &Tensor, values: &Tensor, sorter: Option<&Tensor>) {
    static TOLD: [Once; 3] = [const { Once::new() }; 3];
    let given = [Some(values), Some(sequence), sorter];
    for (i, what) in ["input value", "boundary", "sorter"]
        .into_iter()
        .enumerate()
    {
        if given[i].is_some_and(|t| !t.is_contiguous()) {
            TOLD[i].call_once(|| {
                host::warn(&format!(
                    "torch.searchsorted(): {what} tensor is non-contiguous, this will lower the \
                     performance due to extra data copy when converting non-contiguous tensor to \
                     contiguous, please use contiguous {what} tensor if possible. This message \
                     will only appear once per program."
                ))
            });
        }
    }
}

fn found(
    name: &str,
    sequence: &Tensor,
    values: &Tensor,
    small: bool,
    right: bool,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    ensure!(
        sequence.ndim() > 0,
        Runtime,
        "{name}(): boundaries tensor should have positive dimension, but got 0 dimension"
    );
    let flat = sequence.ndim() == 1;
    ensure!(
        flat || (sequence.ndim() == values.ndim()
            && sequence.shape()[..sequence.ndim() - 1] == values.shape()[..values.ndim() - 1]),
        Runtime,
        "{name}(): boundaries tensor should be 1 dimension or the first N-1 dimensions of \
         boundaries tensor and input value tensor must match, but we got boundaries tensor {} and \
         input value tensor {}",
        Show(sequence.shape()),
        Show(values.shape())
    );
    if let Some(s) = sorter {
        ensure!(
            s.shape() == sequence.shape() && s.dtype() == DType::I64,
            Runtime,
            "{name}(): boundary and sorter must have the same size and sorter must be int64, but \
             got boundary tensor {} and got sorter tensor {}",
            Show(sequence.shape()),
            Show(s.shape())
        );
    }
    warn_of_copies(sequence, values, sorter);
    let n = sequence.size(sequence.ndim() - 1);
    let mut p = Promotion::default();
    p.add(sequence.dtype(), 1, false);
    p.add(values.dtype(), values.ndim(), values.is_wrapped());
    let common = p.result()?;
    ensure!(
        !common.is_complex(),
        NotImplemented,
        "{name}(): complex numbers have no order, got {}",
        common.scalar_name()
    );
    if !transfer::runs_on_host(name, &[sequence], common)? {
        let line = sequence.detach().to_dtype(common)?;
        let line = match sorter {
            Some(s) => line.take_along(sequence.ndim() - 1, s)?,
            None => line,
        };
        let values = values.to(common, sequence.device(), false, None)?;
        return gpu_search(
            &line,
            &values,
            right,
            if small { DType::I32 } else { DType::I64 },
        );
    }
    let sorter = match sorter {
        Some(s) => Some(s.prepared(DType::I64)?),
        None => None,
    };
    let order = sorter.as_ref().map(|s| Indices::of(s).own());
    let order = order.as_deref();
    ensure!(
        order.is_none_or(|o| o.iter().all(|&i| i >= 0 && (i as usize) < n)),
        Runtime,
        "{name}(): sorter index out of range: indices must lie in [0, {n})"
    );
    let y = Tensor::empty(values.shape(), DType::I64, Device::Cpu)?;
    let width = if flat {
        values.numel()
    } else {
        values.size(values.ndim() - 1)
    };
    with_compute!(common, T => {
        let (s, v) = (sequence.detach().prepared(T::DTYPE)?, values.detach().prepared(T::DTYPE)?);
        // SAFETY: contiguous host memory of this type.
        let (edges, v) = unsafe { (s.slice::<T>(), v.slice::<T>()) };
        // SAFETY: a fresh contiguous tensor of this type.
        let y = unsafe { y.slice_mut::<i64>() };
        // NaN among the edges makes the result depend on the order of comparisons.
        let plain = flat && order.is_none() && !edges.iter().any(|e| e.is_nan());
        parallel_chunks(y, 1, 1 << 12, |first, out| {
            let range = first..first + out.len();
            if plain {
                return places(edges, &v[range], right, out);
            }
            for (i, out) in range.zip(out) {
                let start = if flat { 0 } else { i / width * n };
                let at = |k: usize| edges[start + order.map_or(k, |o| o[start + k] as usize)];
                let (mut low, mut high) = (0, n);
                while low < high {
                    let mid = low + (high - low) / 2;
                    if comes_before(at(mid), v[i], right) {
                        low = mid + 1;
                    } else {
                        high = mid;
                    }
                }
                *out = low as i64;
            }
        });
    });
    let y = if small { y.to_dtype(DType::I32)? } else { y };
    y.to_device(sequence.device())
}

//! Distinct elements by counting, where they are integers of a small range, and by sorting.

use crate::alloc;
use crate::cpu::pool::{parallel_chunks, parallel_for, Ptr};
use crate::cpu::radix::{bounds_of, tally, Key, Ordinal, Sorter};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::{ensure, with_element};

/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 15;

fn indices(n: usize) -> Result<Tensor> {
    Tensor::empty(&[n], DType::I64, Device::Cpu)
}

/// Marks in a word.
const BITS: usize = u64::BITS as usize;

/// Distinct elements in order, for each element its place among them, and how often each occurs;
/// what is not asked for is empty.
pub fn unique(x: &Tensor, inverse: bool, counts: bool) -> Result<[Tensor; 3]> {
    let home = x.device();
    let x = x.detach().prepared(x.dtype())?;
    let n = x.numel();
    ensure!(
        n <= u32::MAX as usize,
        Runtime,
        "unique: too many elements, got {n}"
    );
    let back = match inverse {
        true => Tensor::empty(x.shape(), DType::I64, Device::Cpu)?,
        false => indices(0)?,
    };
    let (values, counted) = with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of these types.
        unsafe {
            let from = x.slice::<T>();
            let back = inverse.then(|| back.slice_mut::<i64>());
            let range = bounds_of(from);
            match range {
                None => (Tensor::empty(&[0], x.dtype(), Device::Cpu)?, indices(0)?),
                Some((low, high)) if !x.dtype().is_float() && is_small(high.wide() - low.wide(), n) => {
                    by_counting(from, low, high, back, counts)?
                }
                _ => by_sorting(from, back, counts)?,
            }
        }
    });
    Ok([
        values.to_device(home)?,
        back.to_device(home)?,
        counted.to_device(home)?,
    ])
}

/// Whether a table for each value of a range is quicker than sorting.
fn is_small(range: u64, n: usize) -> bool {
    range < 1 << 22 && range <= 4 * n as u64 + 64
}

fn by_counting<T: Ordinal>(
    x: &[T],
    low: T::Key,
    high: T::Key,
    back: Option<&mut [i64]>,
    counts: bool,
) -> Result<(Tensor, Tensor)> {
    let low = low.wide();
    let size = (high.wide() - low) as usize + 1;
    let mut table = tally(x, low, size);
    let found = table.iter().filter(|&&c| c > 0).count();
    let values = Tensor::empty(&[found], T::DTYPE, Device::Cpu)?;
    let counted = indices(if counts { found } else { 0 })?;
    // SAFETY: fresh contiguous tensors of these types.
    let (to, often) = unsafe { (values.slice_mut::<T>(), counted.slice_mut::<i64>()) };
    let mut at = 0;
    for (k, c) in table.iter_mut().enumerate() {
        if *c == 0 {
            continue;
        }
        // Integers have one element for each key.
        if let Some(v) = T::of_key(T::Key::of_wide(low + k as u64)) {
            to[at] = v;
        }
        if counts {
            often[at] = *c as i64;
        }
        *c = at as u32;
        at += 1;
    }
    if let Some(back) = back {
        parallel_chunks(back, 1, GRAIN, |first, back| {
            for (place, v) in back.iter_mut().zip(&x[first..]) {
                // Another thread may have changed it: any group will do then.
                let key = v.key().wide().wrapping_sub(low) as usize;
                *place = table.get(key).copied().unwrap_or(0) as i64;
            }
        });
    }
    Ok((values, counted))
}

/// Groups of equal neighbours in order; each NaN is one of its own.
fn by_sorting<T: Ordinal>(
    x: &[T],
    back: Option<&mut [i64]>,
    counts: bool,
) -> Result<(Tensor, Tensor)> {
    let n = x.len();
    let mut sorter = Sorter::new(n)?;
    // SAFETY: the slice has `n > 0` elements.
    let line = unsafe { sorter.sort(x.as_ptr(), n, false) };
    let begins = |i: usize| {
        let k = line.key(i);
        i == 0 || k != line.key(i - 1) || (T::DTYPE.is_float() && k == T::Key::MAX)
    };
    // Parts look first where groups begin, and write by that: another thread may change the elements.
    let parts = n.div_ceil(GRAIN);
    let mut marks = alloc::full(0u64, n.div_ceil(BITS));
    parallel_chunks(&mut marks, 1, GRAIN / BITS, |first, marks| {
        for (w, mark) in (first..).zip(marks) {
            for i in w * BITS..n.min((w + 1) * BITS) {
                *mark |= (begins(i) as u64) << (i % BITS);
            }
        }
    });
    let mut starts = alloc::full(0usize, parts + 1);
    for (p, marks) in marks.chunks(GRAIN / BITS).enumerate() {
        let found: u32 = marks.iter().map(|m| m.count_ones()).sum();
        starts[p + 1] = starts[p] + found as usize;
    }
    let found = starts[parts];
    let values = Tensor::empty(&[found], T::DTYPE, Device::Cpu)?;
    let first = indices(if counts { found } else { 0 })?;
    let (to, at) = (Ptr::new(values.ptr::<T>()), Ptr::new(first.ptr::<i64>()));
    let back = back.map(|b| Ptr::new(b.as_mut_ptr()));
    parallel_for(parts, 1, |range| {
        for p in range {
            let mut group = starts[p];
            for i in p * GRAIN..n.min((p + 1) * GRAIN) {
                // SAFETY: groups that begin in this part, and the elements in it, are its own.
                unsafe {
                    if marks[i / BITS] >> (i % BITS) & 1 != 0 {
                        *to.at(group) = line.value(i);
                        if counts {
                            *at.at(group) = i as i64;
                        }
                        group += 1;
                    }
                    if let Some(back) = back {
                        *back.at(line.index(i)) = group as i64 - 1;
                    }
                }
            }
        }
    });
    if counts {
        // SAFETY: a fresh contiguous tensor of this type.
        let at = unsafe { first.slice_mut::<i64>() };
        for g in 0..found {
            at[g] = at.get(g + 1).copied().unwrap_or(n as i64) - at[g];
        }
    }
    Ok((values, first))
}

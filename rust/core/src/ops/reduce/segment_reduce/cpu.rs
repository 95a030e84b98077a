//! Segments on the host. Sums and products are made in float64 and round once.

use super::{Combine, Extent, SegmentReduce, SegmentSpread};
use crate::alloc;
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::pool::Ptr;
use crate::cpu::rows::{share, share_with};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Where segment `s` begins and ends; within the elements, whatever the bounds say.
fn segment(bounds: &[i64], s: usize, length: usize) -> (usize, usize) {
    let end = bounds[s + 1].clamp(0, length as i64);
    (bounds[s].clamp(0, end) as usize, end as usize)
}

pub fn reduce(op: &SegmentReduce, x: &Tensor, bounds: &Tensor, y: &Tensor) -> Result<()> {
    let e = Extent::of(x.shape(), bounds.shape());
    let (x, bounds) = (x.prepared(x.dtype())?, bounds.prepared(DType::I64)?);
    let bounds = &Indices::of(&bounds).own()[..];
    let first = op.initial.map_or(op.combine.identity(), |v| v.f64());
    crate::typed!(
        x.dtype(),
        T => {
            // SAFETY: contiguous host memory of this type; nobody else uses the fresh result.
            let (x, y) = unsafe { (x.slice::<T>(), y.slice_mut::<T>()) };
            match op.combine {
                Combine::Sum => run(e, x, bounds, y, first, |a, v| a + v, |a, _| a),
                Combine::Prod => run(e, x, bounds, y, first, |a, v| a * v, |a, _| a),
                Combine::Max => {
                    let larger = |a: f64, v: f64| if a >= v || a.is_nan() { a } else { v };
                    run(e, x, bounds, y, first, larger, |a, _| a)
                }
                Combine::Min => {
                    let smaller = |a: f64, v: f64| if a <= v || a.is_nan() { a } else { v };
                    run(e, x, bounds, y, first, smaller, |a, _| a)
                }
                Combine::Mean => {
                    let given = op.initial.is_some();
                    let mean = move |a, n| if n == 0 && given { a } else { a / n as f64 };
                    run(e, x, bounds, y, first, |a, v| a + v, mean)
                }
            }
        },
        [F16 => half::f16, BF16 => half::bf16, F32 => f32, F64 => f64],
        other => crate::bail!(
            NoKernel,
            "\"segment_reduce\" not implemented for '{}'",
            other.scalar_name()
        )
    );
    Ok(())
}

/// Combines each segment, beginning with `first`; `last` sees the result and how many elements it
/// has.
fn run<T: Element>(
    e: Extent,
    x: &[T],
    bounds: &[i64],
    y: &mut [T],
    first: f64,
    combine: impl Fn(f64, f64) -> f64 + Sync,
    last: impl Fn(f64, usize) -> f64 + Sync,
) {
    let each = (e.length / e.segments.max(1) + 1) * e.inner;
    let to = Ptr::new(y.as_mut_ptr());
    let row = || alloc::full(first, e.inner);
    share_with(e.outer * e.segments, each, row, |jobs, row| {
        for job in jobs {
            let (o, s) = (job / e.segments, job % e.segments);
            let (from, end) = segment(&bounds[o * (e.segments + 1)..], s, e.length);
            row.fill(first);
            let begin = (o * e.length + from) * e.inner;
            let elements = &x[begin..begin + (end - from) * e.inner];
            for part in elements.chunks(e.inner.max(1)) {
                for (a, v) in row.iter_mut().zip(part) {
                    *a = combine(*a, v.to_f64());
                }
            }
            // SAFETY: each job has its own row of the result.
            let part = unsafe { to.part(job * e.inner..(job + 1) * e.inner) };
            for (y, &a) in part.iter_mut().zip(row.iter()) {
                *y = T::of_f64(last(a, end - from));
            }
        }
    });
}

pub fn spread(op: &SegmentSpread, g: &Tensor, bounds: &Tensor, y: &Tensor) -> Result<()> {
    let e = Extent::of(y.shape(), bounds.shape());
    let (g, bounds) = (g.prepared(g.dtype())?, bounds.prepared(DType::I64)?);
    let bounds = &Indices::of(&bounds).own()[..];
    crate::typed!(
        g.dtype(),
        T => {
            // SAFETY: contiguous host memory of this type; nobody else uses the fresh result.
            let (g, y) = unsafe { (g.slice::<T>(), y.slice_mut::<T>()) };
            give(e, op.mean, g, bounds, y)
        },
        [F16 => half::f16, BF16 => half::bf16, F32 => f32, F64 => f64],
        other => crate::bail!(
            NoKernel,
            "\"segment_reduce_backward\" not implemented for '{}'",
            other.scalar_name()
        )
    );
    Ok(())
}

fn give<T: Element>(e: Extent, mean: bool, g: &[T], bounds: &[i64], y: &mut [T]) {
    let to = Ptr::new(y.as_mut_ptr());
    share(e.outer * e.length, e.inner, |places| {
        for place in places {
            let (o, at) = (place / e.length, place % e.length);
            let bounds = &bounds[o * (e.segments + 1)..(o + 1) * (e.segments + 1)];
            let begun = bounds.partition_point(|&b| b <= at as i64);
            // SAFETY: each place has its own row of the result.
            let part = unsafe { to.part(place * e.inner..(place + 1) * e.inner) };
            if begun == 0 || begun > e.segments {
                part.fill(T::of_f64(0.0));
                continue;
            }
            let row = (o * e.segments + begun - 1) * e.inner;
            let g = &g[row..row + e.inner];
            if !mean {
                part.copy_from_slice(g);
                continue;
            }
            let n = (bounds[begun] - bounds[begun - 1]) as f64;
            for (y, g) in part.iter_mut().zip(g) {
                *y = T::of_f64(g.to_f64() / n);
            }
        }
    });
}

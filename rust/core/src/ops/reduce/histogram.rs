//! Counts of values and of intervals.

use crate::alloc;
use crate::arg;
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::pool::{num_threads, parallel_chunks};
use crate::cpu::radix::{bounds_of, tally, Key, Ordinal};
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::op::{Metas, TensorMeta};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Minimum;
use crate::ops::pointwise::compare::{Ge, Le, LogicalAnd};
use crate::ops::pointwise::ternary::where_;
use crate::ops::underived;
use crate::schema::{Args, Signature, Value};
use crate::shape::{DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, per_isa, with_element, with_float};
use smallvec::SmallVec;

/// Host values of numbers.
fn floats(x: &Tensor) -> Result<Vec<f64>> {
    let x = x.prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    Ok(alloc::gathered(unsafe { x.slice::<f64>() }.iter().copied()))
}

fn bincount(x: &Tensor, weights: Option<&Tensor>, minimum: i64) -> Result<Tensor> {
    let name = "BincountBackward0";
    let from: SmallVec<[&Tensor; 2]> = std::iter::once(x).chain(weights).collect();
    let y = dispatch::function(name, minimum, &from, |&minimum, x| {
        occurrences(x[0], x.get(1).copied(), minimum)
    })?;
    if let Some(w) = weights.filter(|_| x.numel() > 0) {
        underived(name, &[w], std::slice::from_ref(&y))?;
    }
    Ok(y)
}

fn occurrences(x: &Tensor, weights: Option<&Tensor>, minimum: i64) -> Result<Tensor> {
    ensure!(
        minimum >= 0,
        Runtime,
        "minlength should be >= 0, got {minimum}"
    );
    ensure!(
        x.dtype().is_int(),
        NoKernel,
        "\"bincount_cpu\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    ensure!(
        x.ndim() == 1,
        Runtime,
        "bincount only supports 1-d non-negative integral inputs, got shape {} of {}",
        Show(x.shape()),
        x.dtype().scalar_name()
    );
    let home = x.device();
    // Without elements there is nothing to weigh, and the counts are integers.
    let weights = weights.filter(|_| x.numel() > 0);
    if home.is_gpu() && x.numel() > 0 {
        return occurrences_there(x, weights, minimum);
    }
    let x = x.detach().prepared(x.dtype())?;
    let host = crate::device::Device::Cpu;
    let range = with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of this type.
        let values = unsafe { x.slice::<T>() };
        let zero = T::of_i64(0).key().wide();
        bounds_of(values).map(|(low, high)| (low.wide() >= zero, high.wide().wrapping_sub(zero)))
    });
    ensure!(
        range.is_none_or(|(natural, _)| natural),
        Runtime,
        "bincount only supports 1-d non-negative integral inputs, got a negative one"
    );
    let top = range.map_or(0, |(_, top)| (top as usize).saturating_add(1));
    let bins = top.max(minimum as usize);
    let Some(w) = weights else {
        let y = Tensor::zeros(&[bins], DType::I64, host)?;
        // SAFETY: a fresh contiguous tensor of this type.
        let counts = unsafe { y.slice_mut::<i64>() };
        with_element!(x.dtype(), T => {
            // SAFETY: contiguous host memory of this type.
            let values = unsafe { x.slice::<T>() };
            if top <= 4 * values.len() && values.len() <= u32::MAX as usize {
                let few = tally(values, T::of_i64(0).key().wide(), top);
                for (c, n) in counts.iter_mut().zip(few) {
                    *c = n as i64;
                }
            } else {
                for v in values {
                    // Another thread may have changed it since the largest was found.
                    if let Some(n) = counts.get_mut(v.to_i64() as usize) {
                        *n += 1;
                    }
                }
            }
        });
        return y.to_device(home);
    };
    ensure!(
        w.shape() == x.shape(),
        Runtime,
        "weights should be 1-d and have the same length as input, got {} for {}",
        Show(w.shape()),
        Show(x.shape())
    );
    let mut sums = alloc::filled(0.0, bins)?;
    let (at, w64) = (x.prepared(DType::I64)?, w.prepared(DType::F64)?);
    // SAFETY: contiguous host memory of this type.
    let w64 = unsafe { w64.slice::<f64>() };
    for (v, &w) in Indices::of(&at).iter().zip(w64) {
        if let Some(sum) = sums.get_mut(v as usize) {
            *sum += w;
        }
    }
    let y = Tensor::from_slice(&sums, &[bins], DType::F64)?;
    let dtype = match w.dtype() {
        DType::F32 => DType::F32,
        _ => DType::F64,
    };
    y.to_dtype(dtype)?.to_device(home)
}

/// [`occurrences`] on the GPU, which reads how many bins there are.
fn occurrences_there(x: &Tensor, weights: Option<&Tensor>, minimum: i64) -> Result<Tensor> {
    let (x, all) = (x.detach().to_dtype(DType::I64)?, DimSet::all(1));
    let low = x.amin_mask(all, false)?.item()?.i64();
    ensure!(
        low >= 0,
        Runtime,
        "bincount only supports 1-d non-negative integral inputs, got a negative one"
    );
    let bins = x
        .amax_mask(all, false)?
        .item()?
        .i64()
        .saturating_add(1)
        .max(minimum);
    let bins = [usize::try_from(bins).unwrap_or(usize::MAX)];
    let ones = Tensor::full(&[1], 1.into(), DType::I32, x.device())?;
    let Some(w) = weights else {
        let zeros = Tensor::zeros(&bins, DType::I32, x.device())?;
        let counts = zeros.scatter_add(0, &x, &ones.expand_to(x.shape())?)?;
        return counts.to_dtype(DType::I64);
    };
    ensure!(
        w.shape() == x.shape(),
        Runtime,
        "weights should be 1-d and have the same length as input, got {} for {}",
        Show(w.shape()),
        Show(x.shape())
    );
    let dtype = match w.dtype() {
        DType::F32 => DType::F32,
        _ => DType::F64,
    };
    let zeros = Tensor::zeros(&bins, dtype, x.device())?;
    zeros.scatter_add(0, &x, &w.detach().to_dtype(dtype)?)
}

/// [`tallied`] on the GPU: values outside count in a bin of their own, which is left out.
fn tallied_there(x: &Tensor, bins: i64, low: f64, high: f64) -> Result<Tensor> {
    let flat = x.detach().to_dtype(x.dtype().compute())?.reshape(&[-1])?;
    let (mut ends, all) = ([low, high], DimSet::all(1));
    if low == high && flat.numel() > 0 {
        let end = |t: Tensor| t.item().map(|v| v.f64());
        ends = [
            end(flat.amin_mask(all, false)?)?,
            end(flat.amax_mask(all, false)?)?,
        ];
    }
    let (low, high) = match low == high {
        true => data_range("histc", &ends, 0.0, 0.0)?,
        false => data_range("histc", &[], low, high)?,
    };
    let number = |v: f64, t| Tensor::full(&[], v.into(), t, x.device());
    let t = flat.dtype();
    let (near, far, count) = (number(low, t)?, number(high, t)?, number(bins as f64, t)?);
    let at = flat.sub(&near)?.mul(&count)?.div(&far.sub(&near)?)?;
    let inside = apply(
        LogicalAnd,
        [&apply(Ge, [&flat, &near])?, &apply(Le, [&flat, &far])?],
    )?;
    let last = number(bins as f64 - 1.0, DType::I32)?;
    let at = apply(Minimum, [&at.to_dtype(DType::I32)?, &last])?;
    let at = where_(&inside, &at, &number(bins as f64, DType::I32)?)?;
    let ones = Tensor::full(&[1], 1.into(), DType::I32, x.device())?.expand_to(flat.shape())?;
    let counts = Tensor::zeros(&[bins as usize + 1], DType::I32, x.device())?;
    let counts = counts.scatter_add(0, &at.to_dtype(DType::I64)?, &ones)?;
    counts.narrow(0, 0, bins)?.to_dtype(x.dtype())
}

/// Edges that divide `low..=high` evenly.
fn even_edges(low: f64, high: f64, bins: usize) -> Result<Vec<f64>> {
    let step = (high - low) / bins as f64;
    let mut edges = alloc::list(bins.saturating_add(1))?;
    edges.extend((0..=bins).map(|i| {
        if i < bins.div_ceil(2) {
            low + step * i as f64
        } else {
            high - step * (bins - i) as f64
        }
    }));
    Ok(edges)
}

/// The range of finite values, widened where it is a point.
fn data_range(name: &str, values: &[f64], low: f64, high: f64) -> Result<(f64, f64)> {
    let (mut low, mut high) = (low, high);
    if low == high && !values.is_empty() {
        low = values.iter().copied().fold(f64::INFINITY, f64::min);
        high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.iter().any(|v| v.is_nan()) {
            (low, high) = (f64::NAN, f64::NAN);
        }
    }
    ensure!(
        low.is_finite() && high.is_finite(),
        Runtime,
        "{name}: range of [{low}, {high}] is not finite"
    );
    ensure!(
        low <= high,
        Runtime,
        "{name}: max must be larger than min, got [{low}, {high}]"
    );
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    Ok((low, high))
}

fn histc(x: &Tensor, bins: i64, low: f64, high: f64) -> Result<Tensor> {
    let given = (bins, Bitwise(low), Bitwise(high));
    ensure!(bins > 0, Runtime, "histc: bins must be > 0, got {bins}");
    let meta = || TensorMeta::new(&[bins as usize], x.dtype(), x.device());
    let plan = |_: &_| Ok(Metas::from_elem(meta(), 1));
    dispatch::function_of(
        "HistcBackward0",
        given,
        &[x],
        plan,
        |&(bins, low, high), x| tallied(x[0], bins, *low, *high),
    )
}

fn tallied(x: &Tensor, bins: i64, low: f64, high: f64) -> Result<Tensor> {
    if !x.dtype().is_float() {
        bail!(
            NoKernel,
            "\"histogram_cpu\" not implemented for '{}'",
            x.dtype().scalar_name()
        );
    }
    alloc::check(bins as usize, size_of::<f64>())?;
    if x.device().is_gpu() && x.numel() > 0 && bins < 1 << 24 {
        return tallied_there(x, bins, low, high);
    }
    let counts = with_float!(x.dtype(), "histogram_cpu", T => {
        let x = x.prepared(T::DTYPE)?;
        // SAFETY: contiguous host memory of this type.
        let values = unsafe { x.slice::<T>() };
        let (low, high) = match low == high {
            true => data_range("histc", &floats(&x)?, low, high)?,
            false => data_range("histc", &[], low, high)?,
        };
        let bins = bins as usize;
        count(values, bins, |x, at| bins_of(x, low, high, bins, at))
    });
    let y = Tensor::from_slice(&counts, &[bins as usize], DType::F64)?;
    y.to_dtype(x.dtype())?.to_device(x.device())
}

/// How many values lie in each of `bins`; `find` gives the bin of each value, -1 for those in none.
fn count<T: Sync>(x: &[T], bins: usize, find: impl Fn(&[T], &mut [i64]) + Sync) -> Vec<f64> {
    if bins == 0 {
        return Vec::new();
    }
    // Each part of the values needs counts of its own.
    let parts = (x.len() >> 14)
        .min(x.len() / bins.saturating_mul(4))
        .clamp(1, num_threads());
    let each = x.len().div_ceil(parts);
    let mut counts = alloc::full(0u64, parts * bins);
    parallel_chunks(&mut counts, bins, 1, |first, all| {
        for (p, counts) in (first..).zip(all.chunks_exact_mut(bins)) {
            let part = &x[(p * each).min(x.len())..((p + 1) * each).min(x.len())];
            let mut at = [0i64; 256];
            for values in part.chunks(at.len()) {
                find(values, &mut at);
                for &b in at[..values.len()].iter().filter(|&&b| b >= 0) {
                    counts[b as usize] += 1;
                }
            }
        }
    });
    (0..bins)
        .map(|b| (0..parts).map(|p| counts[p * bins + b]).sum::<u64>() as f64)
        .collect()
}

per_isa! {
    /// The bin of each value, -1 for those in none: in float32 for types up to it, so that a value
    /// on an edge is as much above it as the edge itself.
    fn bins_of[T: Element](x: &[T], low: f64, high: f64, bins: usize, at: &mut [i64]) {
        let last = bins as i64 - 1;
        let (near, far, count) = (low as f32, high as f32, bins as f32);
        for (x, at) in x.iter().zip(at) {
            let v = x.to_f64();
            let (b, inside) = if size_of::<T>() <= 4 {
                let v = v as f32;
                let b = (v - near) * count / (far - near);
                (b as i64, (v >= near) & (v <= far))
            } else {
                let b = (v - low) * bins as f64 / (high - low);
                (b as i64, (v >= low) & (v <= high))
            };
            let b = if b > last { last } else { b };
            *at = if inside { b } else { -1 };
        }
    }
}

/// The bin of a value among ascending edges; the last bin is closed.
fn bin_of(edges: &[f64], v: f64) -> Option<usize> {
    let (first, last) = (*edges.first()?, *edges.last()?);
    if !(v >= first && v <= last) || edges.len() < 2 {
        return None;
    }
    let bins = edges.len() - 1;
    // Where it is among even edges.
    let near = ((v - first) * (bins as f64 / (last - first))) as usize;
    if near < bins && edges[near] <= v && v < edges[near + 1] {
        return Some(near);
    }
    let at = edges.partition_point(|&e| e <= v);
    Some(at.saturating_sub(1).min(bins - 1))
}

/// The counts, and the edges again.
fn histogram(
    x: &Tensor,
    edges: &Tensor,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Vec<Tensor>> {
    // Edges that were made on the host go where the numbers are.
    let edges = &edges.to_device(x.device())?;
    let from: SmallVec<[&Tensor; 3]> = [x, edges].into_iter().chain(weight).collect();
    dispatch::function("HistogramBackward0", density, &from, |&density, x| {
        sums_between(x[0], floats(x[1])?, x.get(2).copied(), density)
    })
}

fn sums_between(
    x: &Tensor,
    edges: Vec<f64>,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Vec<Tensor>> {
    let values = floats(x)?;
    let weights = match weight {
        Some(w) => {
            ensure!(
                w.shape() == x.shape() && w.dtype() == x.dtype(),
                Runtime,
                "torch.histogram: if weight tensor is provided it should have the same shape and \
                 dtype as the input tensor, got {} of {} for {} of {}",
                Show(w.shape()),
                w.dtype().scalar_name(),
                Show(x.shape()),
                x.dtype().scalar_name()
            );
            Some(floats(w)?)
        }
        None => None,
    };
    let bins = edges.len() - 1;
    let mut sums = match weights {
        // In order, so that sums do not depend on the number of threads.
        Some(w) => {
            let mut sums = alloc::filled(0.0, bins)?;
            for (&v, w) in values.iter().zip(w) {
                if let Some(b) = bin_of(&edges, v) {
                    sums[b] += w;
                }
            }
            sums
        }
        None => count(&values, bins, |x, at| {
            for (&v, at) in x.iter().zip(at) {
                *at = bin_of(&edges, v).map_or(-1, |b| b as i64);
            }
        }),
    };
    if density {
        let total: f64 = sums.iter().sum();
        for (b, s) in sums.iter_mut().enumerate() {
            *s /= total * (edges[b + 1] - edges[b]);
        }
    }
    let made = |v: &[f64]| {
        let t = Tensor::from_slice(v, &[v.len()], DType::F64)?;
        t.to_dtype(x.dtype())?.to_device(x.device())
    };
    Ok(vec![made(&sums)?, made(&edges)?])
}

/// What `histogram` gives depends on all that it is given.
fn counted(from: &[Option<&Tensor>], y: Vec<Tensor>) -> Result<Value> {
    let from: Vec<&Tensor> = from.iter().copied().flatten().collect();
    underived("HistogramBackward0", &from, &y)?;
    Ok(Value::Tuple(y))
}

/// Edges of even bins, from the least value to the largest where no range is given.
fn edges_of_range(x: &Tensor, bins: usize, range: Option<(f64, f64)>) -> Result<Tensor> {
    let (low, high) = match range {
        Some(range) => range,
        None if x.numel() == 0 => (0.0, 1.0),
        None => {
            let keep_nan = |a: f64, v: f64, beats: bool| if v.is_nan() || beats { v } else { a };
            let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
            floats(x)?.into_iter().fold((low, high), |(low, high), v| {
                (keep_nan(low, v, v < low), keep_nan(high, v, v > high))
            })
        }
    };
    ensure!(
        low.is_finite() && high.is_finite(),
        Runtime,
        "torch.histogram: range of [{low}, {high}] is not finite"
    );
    ensure!(
        low <= high,
        Runtime,
        "torch.histogram: min should not exceed max, but got min {low} max {high}"
    );
    // A point is in the middle.
    let (low, high) = match low == high {
        true => (low - 0.5, high + 0.5),
        false => (low, high),
    };
    alloc::check(bins, 3 * size_of::<f64>())?;
    let edges = even_edges(low, high, bins)?;
    Tensor::from_slice(&edges, &[edges.len()], DType::F64)?.to_dtype(x.dtype())
}

/// The same, as a request.
fn even(x: &Tensor, bins: usize, range: Option<(f64, f64)>) -> Result<Tensor> {
    let given = (bins, range.map(|(a, b)| (Bitwise(a), Bitwise(b))));
    dispatch::function("HistogramBinsBackward0", given, &[x], |&(n, range), x| {
        edges_of_range(x[0], n, range.map(|(a, b)| (*a, *b)))
    })
}

fn histogram_of_bins<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?.detach();
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        bail!(
            NoKernel,
            "\"histogram_cpu\" not implemented for '{}'",
            x.dtype().scalar_name()
        );
    }
    let bins = a.int(arg!(bins))?;
    ensure!(
        bins > 0,
        Runtime,
        "torch.histogram(): bins must be > 0, got {bins} for dimension 0"
    );
    let range = match a.value(arg!(range)) {
        Value::Floats(v) => {
            ensure!(
                v.len() == 2,
                Runtime,
                "torch.histogram(): range should have 2 elements, but got {}",
                v.len()
            );
            Some((v[0], v[1]))
        }
        _ => None,
    };
    let edges = even(&x, bins as usize, range)?;
    let y = histogram(
        &x,
        &edges,
        a.opt_tensor(arg!(weight)),
        a.bool(arg!(density))?,
    )?;
    counted(
        &[Some(a.tensor(arg!(self))?), a.opt_tensor(arg!(weight))],
        y,
    )
}

/// Counts, or sums of weights, of points of n coordinates in boxes between n lists of edges.
fn boxes(x: &Tensor, edges: &[Tensor], weight: Option<&Tensor>, density: bool) -> Result<Tensor> {
    let from: SmallVec<[&Tensor; 4]> = [x].into_iter().chain(edges).chain(weight).collect();
    dispatch::function("HistogramddBackward0", density, &from, |&density, x| {
        let n = x[0].size(x[0].ndim() - 1);
        sums_in_boxes(x[0], &x[1..=n], x.get(n + 1).copied(), density)
    })
}

fn sums_in_boxes(
    x: &Tensor,
    edges: &[&Tensor],
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Tensor> {
    let points = floats(x)?;
    let weights = weight.map(floats).transpose()?;
    let edges: Vec<Vec<f64>> = edges.iter().map(|e| floats(e)).collect::<Result<_>>()?;
    let shape: Dims = edges.iter().map(|e| e.len() - 1).collect();
    let size = crate::shape::numel(&shape)?;
    alloc::check(size, size_of::<f64>())?;
    let mut sums = alloc::filled(0.0, size)?;
    // Without coordinates there is no point.
    for (i, point) in points.chunks_exact(edges.len().max(1)).enumerate() {
        let mut at = Some(0);
        for (&v, edges) in point.iter().zip(&edges) {
            at = at
                .zip(bin_of(edges, v))
                .map(|(at, b)| at * (edges.len() - 1) + b);
        }
        if let Some(at) = at {
            sums[at] += weights.as_ref().map_or(1.0, |w| w[i]);
        }
    }
    if density {
        let total: f64 = sums.iter().sum();
        for (i, s) in sums.iter_mut().enumerate() {
            let (mut rest, mut volume) = (i, 1.0);
            for edges in edges.iter().rev() {
                let b = rest % (edges.len() - 1);
                rest /= edges.len() - 1;
                volume *= edges[b + 1] - edges[b];
            }
            *s /= total * volume;
        }
    }
    Tensor::from_slice(&sums, &shape, DType::F64)?
        .to_dtype(x.dtype())?
        .to_device(x.device())
}

/// `histogramdd`: the sums and then the edges, given or even ones.
fn histogramdd<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    const NAME: &str = "torch.histogramdd";
    let x = a.tensor(arg!(self))?.detach();
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "{NAME}: input tensor should have at least 2 dimensions, got shape {}",
        Show(x.shape())
    );
    let n = x.size(x.ndim() - 1);
    let weight = a.opt_tensor(arg!(weight));
    let given = match a.opt_ints(arg!(bins)) {
        Some(bins) => bins.len(),
        None => a.tensors(arg!(bins))?.len(),
    };
    ensure!(
        given == n,
        Runtime,
        "histogramdd: The size of bins must be equal to the innermost dimension of the input. Got \
         {given} for {n}"
    );
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        bail!(
            NoKernel,
            "\"histogramdd\" not implemented for '{}'",
            x.dtype().scalar_name()
        );
    }
    if let Some(w) = weight {
        ensure!(
            w.shape()[..] == x.shape()[..x.ndim() - 1] && w.dtype() == x.dtype(),
            Runtime,
            "{NAME}: if weight tensor is provided it should have the same dtype and shape as the \
             input tensor excluding its innermost dimension, but got input with shape {} of {} and \
             weight with shape {} of {}",
            Show(x.shape()),
            x.dtype().scalar_name(),
            Show(w.shape()),
            w.dtype().scalar_name()
        );
    }
    let edges = match a.opt_ints(arg!(bins)) {
        Some(bins) => edges_of_bins(&x, bins, a.opt_floats(arg!(range)))?,
        None => a.tensors(arg!(bins))?.to_vec(),
    };
    for (d, e) in edges.iter().enumerate() {
        ensure!(
            e.ndim() == 1 && e.dtype() == x.dtype(),
            Runtime,
            "{NAME}: bins tensor should have one dimension and the input's dtype, got shape {} of \
             {} for dimension {d}",
            Show(e.shape()),
            e.dtype().scalar_name()
        );
        ensure!(
            e.numel() > 1,
            Runtime,
            "{NAME}: bins tensor should have at least 2 elements, but got {} elements in the bins \
             tensor for dimension {d}",
            e.numel()
        );
    }
    let y = boxes(&x, &edges, weight, a.bool(arg!(density))?)?;
    let given = a.tensors(arg!(bins)).unwrap_or_default();
    let from: SmallVec<[&Tensor; 4]> = std::iter::once(a.tensor(arg!(self))?)
        .chain(weight)
        .chain(given)
        .collect();
    // Edges that are given are nobody's results.
    let computed = if given.is_empty() { n + 1 } else { 1 };
    let y: Vec<Tensor> = std::iter::once(y).chain(edges).collect();
    underived("HistogramddBackward0", &from, &y[..computed])?;
    Ok(Value::Tensors(y))
}

fn edges_of_bins(x: &Tensor, bins: &[i64], range: Option<&[f64]>) -> Result<Vec<Tensor>> {
    let n = bins.len();
    ensure!(
        range.is_none_or(|r| r.len() == 2 * n),
        Runtime,
        "torch.histogramdd: for a {n}-dimensional histogram range should have {} elements, but got \
         {}",
        2 * n,
        range.map_or(0, <[f64]>::len)
    );
    let one = |(d, &bins): (usize, &i64)| {
        ensure!(
            bins > 0,
            Runtime,
            "torch.histogramdd(): bins must be > 0, but got {bins} for dimension {d}"
        );
        let range = range.map(|r| (r[2 * d], r[2 * d + 1]));
        even(&x.select(-1, d as i64)?, bins as usize, range)?.to_device(x.device())
    };
    bins.iter().enumerate().map(one).collect()
}

crate::entries! {
    /// How often each non-negative integer occurs, or the sum of its weights.
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", FN | METHOD,
    |a| Ok(bincount(a.tensor(arg!(self))?, a.opt_tensor(arg!(weights)), a.int(arg!(minlength))?)?.into());
    /// How many elements fall into each of `bins` equal intervals.
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", FN | METHOD | OUT,
    |a| {
        let (low, high) = (a.scalar(arg!(min))?.f64(), a.scalar(arg!(max))?.f64());
        Ok(histc(&a.tensor(arg!(self))?.detach(), a.int(arg!(bins))?, low, high)?.into())
    };
    /// Counts, or sums of weights, in equal intervals, and the edges.
    "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    FN | METHOD | OUT, histogram_of_bins;
    /// Counts, or sums of weights, between the given edges.
    "histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    FN | METHOD | OUT,
    |a| {
        let x = a.tensor(arg!(self))?.detach();
        let bins = a.tensor(arg!(bins))?;
        ensure!(
            bins.ndim() == 1 && bins.numel() > 0 && bins.dtype() == x.dtype(),
            Runtime,
            "torch.histogram(): bins tensor should be 1-d, not empty and of the input's dtype, \
             got shape {} of {}",
            Show(bins.shape()),
            bins.dtype().scalar_name()
        );
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            bail!(NoKernel, "\"histogram_cpu\" not implemented for '{}'", x.dtype().scalar_name());
        }
        let y = histogram(&x, bins, a.opt_tensor(arg!(weight)), a.bool(arg!(density))?)?;
        counted(&[Some(a.tensor(arg!(self))?), Some(bins), a.opt_tensor(arg!(weight))], y)
    };
    /// Sums in boxes, and the edges: `histogramdd`.
    "_histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
    FN, histogramdd;
    "_histogramdd(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
    FN, histogramdd;
}

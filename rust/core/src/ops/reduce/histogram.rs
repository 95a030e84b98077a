//! Counts of values and of intervals.

use crate::alloc;
use crate::cpu::elements::Element;
use crate::cpu::pool::{num_threads, parallel_chunks};
use crate::cpu::radix::{bounds_of, tally, Key, Ordinal};
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::ops::underived;
use crate::schema::{Args, Value};
use crate::shape::Show;
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
        NotImplemented,
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
                    counts[v.to_i64() as usize] += 1;
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
    // SAFETY: contiguous host memory of these types.
    let (at, w64) = unsafe { (at.slice::<i64>(), w64.slice::<f64>()) };
    for (&v, &w) in at.iter().zip(w64) {
        sums[v as usize] += w;
    }
    let y = Tensor::from_slice(&sums, &[bins], DType::F64)?;
    let dtype = match w.dtype() {
        DType::F32 => DType::F32,
        _ => DType::F64,
    };
    y.to_dtype(dtype)?.to_device(home)
}

/// Edges that divide `low..=high` evenly.
fn even_edges(low: f64, high: f64, bins: usize) -> Result<Vec<f64>> {
    let step = (high - low) / bins as f64;
    let mut edges = alloc::list(bins.saturating_add(1))?;
    edges.extend((0..=bins).map(|i| {
        if i < bins / 2 {
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
    dispatch::function("HistcBackward0", given, &[x], |&(bins, low, high), x| {
        tallied(x[0], bins, *low, *high)
    })
}

fn tallied(x: &Tensor, bins: i64, low: f64, high: f64) -> Result<Tensor> {
    ensure!(bins > 0, Runtime, "histc: bins must be > 0, got {bins}");
    if !x.dtype().is_float() {
        bail!(
            NotImplemented,
            "\"histogram_cpu\" not implemented for '{}'",
            x.dtype().scalar_name()
        );
    }
    alloc::check(bins as usize, size_of::<f64>())?;
    let counts = with_float!(x.dtype(), "histogram_cpu", T => {
        let x = x.prepared(T::DTYPE)?;
        // SAFETY: contiguous host memory of this type.
        let values = unsafe { x.slice::<T>() };
        let (low, high) = match low == high {
            true => data_range("histc", &floats(&x)?, low, high)?,
            false => data_range("histc", &[], low, high)?,
        };
        count_even(values, low, high, bins as usize)
    });
    let y = Tensor::from_slice(&counts, &[bins as usize], DType::F64)?;
    y.to_dtype(x.dtype())?.to_device(x.device())
}

/// How many values lie in each of `bins` even parts of `low..=high`.
fn count_even<T: Element>(x: &[T], low: f64, high: f64, bins: usize) -> Vec<f64> {
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
                bins_of(values, low, high, bins, &mut at);
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
    /// The bin of each value, -1 for those in none.
    fn bins_of[T: Element](x: &[T], low: f64, high: f64, bins: usize, at: &mut [i64]) {
        let last = bins as i64 - 1;
        for (x, at) in x.iter().zip(at) {
            let v = x.to_f64();
            let b = ((v - low) / (high - low) * bins as f64) as i64;
            let b = if b > last { last } else { b };
            *at = if (v >= low) & (v <= high) { b } else { -1 };
        }
    }
}

/// The bin of each value among ascending edges; the last bin is closed.
fn bin_of(edges: &[f64], v: f64) -> Option<usize> {
    let (first, last) = (*edges.first()?, *edges.last()?);
    if !(v >= first && v <= last) || edges.len() < 2 {
        return None;
    }
    let at = edges.partition_point(|&e| e <= v);
    Some(at.saturating_sub(1).min(edges.len() - 2))
}

/// The counts, and the edges again.
fn histogram(
    x: &Tensor,
    edges: &Tensor,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<Vec<Tensor>> {
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
    let mut sums = alloc::filled(0.0, bins)?;
    for (i, v) in values.into_iter().enumerate() {
        if let Some(b) = bin_of(&edges, v) {
            sums[b] += weights.as_ref().map_or(1.0, |w| w[i]);
        }
    }
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

/// Edges of even bins, of a range that may be that of the data.
fn edges_of_range(x: &Tensor, bins: usize, range: (f64, f64)) -> Result<Tensor> {
    let (low, high) = match (x.numel(), range.0 == range.1) {
        (0, true) => (0.0, 1.0),
        _ => data_range("torch.histogram", &floats(x)?, range.0, range.1)?,
    };
    let (low, high) = match range.0 == range.1 && x.numel() > 0 {
        // PyTorch widens a point by one half on each side here, and by one in histc.
        true if high - low == 2.0 && point(x)? => (low + 0.5, high - 0.5),
        _ => (low, high),
    };
    alloc::check(bins, 3 * size_of::<f64>())?;
    let edges = even_edges(low, high, bins)?;
    Tensor::from_slice(&edges, &[edges.len()], DType::F64)
}

fn histogram_of_bins(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?.detach();
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        bail!(
            NotImplemented,
            "\"histogram_cpu\" not implemented for '{}'",
            x.dtype().scalar_name()
        );
    }
    let bins = a.int(1)?;
    ensure!(
        bins > 0,
        Runtime,
        "torch.histogram(): bins must be > 0, got {bins} for dimension 0"
    );
    let range = match &a.values[2] {
        Value::Floats(v) => {
            ensure!(
                v.len() == 2,
                Runtime,
                "torch.histogram(): range should have 2 elements, but got {}",
                v.len()
            );
            (v[0], v[1])
        }
        _ => (0.0, 0.0),
    };
    let given = (bins as usize, Bitwise(range.0), Bitwise(range.1));
    let edges = dispatch::function("HistogramBinsBackward0", given, &[&x], |&(n, a, b), x| {
        edges_of_range(x[0], n, (*a, *b))
    })?;
    let y = histogram(&x, &edges, a.opt_tensor(3), a.bool(4)?)?;
    counted(&[Some(a.tensor(0)?), a.opt_tensor(3)], y)
}

/// Whether all elements are equal.
fn point(x: &Tensor) -> Result<bool> {
    let v = floats(x)?;
    Ok(v.iter().all(|a| *a == v[0]))
}

crate::entries! {
    /// How often each non-negative integer occurs, or the sum of its weights.
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", FN | METHOD,
    |a| Ok(bincount(a.tensor(0)?, a.opt_tensor(1), a.int(2)?)?.into());
    /// How many elements fall into each of `bins` equal intervals.
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", FN | METHOD | OUT,
    |a| {
        let (low, high) = (a.scalar(2)?.f64(), a.scalar(3)?.f64());
        Ok(histc(&a.tensor(0)?.detach(), a.int(1)?, low, high)?.into())
    };
    /// Counts, or sums of weights, in equal intervals, and the edges.
    "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    FN | METHOD | OUT, histogram_of_bins;
    /// Counts, or sums of weights, between the given edges.
    "histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    FN | METHOD | OUT,
    |a| {
        let x = a.tensor(0)?.detach();
        let bins = a.tensor(1)?;
        ensure!(
            bins.ndim() == 1 && bins.numel() > 0 && bins.dtype() == x.dtype(),
            Runtime,
            "torch.histogram(): bins tensor should be 1-d, not empty and of the input's dtype, \
             got shape {} of {}",
            Show(bins.shape()),
            bins.dtype().scalar_name()
        );
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            bail!(NotImplemented, "\"histogram_cpu\" not implemented for '{}'", x.dtype().scalar_name());
        }
        let y = histogram(&x, bins, a.opt_tensor(2), a.bool(3)?)?;
        counted(&[Some(a.tensor(0)?), Some(bins), a.opt_tensor(2)], y)
    };
}

//! Sorting and what follows from order: topk, kthvalue, median, mode, quantile.

use super::along::{around, picked_gradient};
use super::pointwise::apply;
use super::pointwise::compare::Lt;
use super::pointwise::ternary::where_;
use super::reduce::{one, shared_gradient};
use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::order::{keys, select, sort_keys, Keyed};
use crate::cpu::pool::parallel_for;
use crate::cpu::radix::{Lines, Ordinal, Sorter};
use crate::cpu::top::{self, is_few, Candidates};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta};
use crate::schema::{Args, Value};
use crate::shape::{self, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, with_element};
use smallvec::{smallvec, SmallVec};

/// What is taken of each line once its order is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Which {
    /// Everything, ascending or descending, equal elements in their old order.
    All { descending: bool },
    /// The `k` largest or smallest, in order.
    Top { k: usize, largest: bool },
    /// The element that would be at this place.
    Place { k: usize },
    /// The lower middle element; NaN if any is, unless they are ignored.
    Median { ignore_nan: bool },
    /// The most frequent element, the smallest of several, at its last index.
    Mode,
}

/// Elements chosen by order along a dimension, and their indices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ordered {
    dim: usize,
    which: Which,
    keepdim: bool,
    name: &'static str,
}

impl Ordered {
    /// The median of a flat tensor, whose gradient equal elements share.
    fn is_whole_median(&self) -> bool {
        matches!(self.which, Which::Median { .. }) && self.name.ends_with("Backward0")
    }

    /// How many elements are taken of a line of `n`.
    fn taken(&self, n: usize) -> usize {
        match self.which {
            Which::All { .. } => n,
            Which::Top { k, .. } => k,
            _ => 1,
        }
    }
    fn drops(&self) -> bool {
        !matches!(self.which, Which::All { .. } | Which::Top { .. }) && !self.keepdim
    }

    /// Writes the indices taken of a line, whose keys are given, to `out`.
    fn choose(&self, line: &mut [Keyed], nan: usize, out: &mut [u32]) {
        let n = line.len();
        match self.which {
            Which::All { .. } | Which::Top { .. } => {
                let k = out.len();
                select(line, k);
                sort_keys(&mut line[..k]);
                for (o, k) in out.iter_mut().zip(&line[..k]) {
                    *o = k.index;
                }
            }
            Which::Place { k } => {
                quick_select(line, k);
                out[0] = line[k].index;
            }
            Which::Median { ignore_nan } => {
                // NaN sorts last; the first of them is what spoils a median.
                let k = match (nan, ignore_nan) {
                    (0, _) => (n - 1) / 2,
                    (_, false) => n - nan,
                    (_, true) => (n - nan).saturating_sub(1) / 2,
                };
                line.select_nth_unstable(k);
                out[0] = line[k].index;
            }
            Which::Mode => {
                sort_keys(line);
                let (mut best, mut at, mut start) = (0, 0, 0);
                for i in 1..=n {
                    if i == n || line[i].key != line[start].key {
                        if i - start > best {
                            (best, at) = (i - start, i - 1);
                        }
                        start = i;
                    }
                }
                out[0] = line[at].index;
            }
        }
    }
}

/// Brings the element of place `k` there by keys alone, partitioning by the median of three in the
/// order in which PyTorch does, so that of equal elements the same one is taken.
fn quick_select(line: &mut [Keyed], k: usize) {
    let (mut low, mut high) = (0, line.len() - 1);
    while high > low {
        if high == low + 1 {
            if line[low].key > line[high].key {
                line.swap(low, high);
            }
            return;
        }
        line.swap((low + high) / 2, low + 1);
        for (a, b) in [(low + 1, high), (low, high), (low + 1, low)] {
            if line[a].key > line[b].key {
                line.swap(a, b);
            }
        }
        let pivot = line[low].key;
        let (mut i, mut j) = (low + 1, high);
        loop {
            i += 1;
            while pivot > line[i].key {
                i += 1;
            }
            j -= 1;
            while line[j].key > pivot {
                j -= 1;
            }
            if j < i {
                break;
            }
            line.swap(i, j);
        }
        line.swap(low, j);
        if j <= k {
            low = i;
        }
        if j >= k {
            high = j.saturating_sub(1);
        }
    }
}

impl Derivative for Ordered {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        match self.is_whole_median() {
            true => Save {
                inputs: 1,
                outputs: 1,
            },
            false => Save::outputs(2),
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if self.is_whole_median() {
            let Some(g) = &g[0] else {
                return Ok(smallvec![None]);
            };
            let (x, y) = (cx.input(0)?, cx.output(0)?);
            return one(shared_gradient(g, &x, &y, &[true])?);
        }
        picked_gradient(cx, g[0].as_ref(), self.dim, !self.drops(), &cx.output(1)?)
    }
}

impl Op for Ordered {
    fn unsigned(&self) -> bool {
        matches!(self.which, Which::All { .. })
    }
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let mut values = TensorMeta::of(x[0]);
        if !values.shape.is_empty() {
            if self.drops() {
                values.shape.remove(self.dim);
            } else {
                values.shape[self.dim] = self.taken(values.shape[self.dim]);
            }
        }
        let indices = TensorMeta {
            dtype: DType::I64,
            ..values.clone()
        };
        Ok(smallvec![values, indices])
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if x[0].dtype().is_wide_unsigned() {
            let values = y[0].as_signed();
            self.cpu(&[&x[0].in_signed_order()?], &[values.clone(), y[1].clone()])?;
            return values.write_from(&values.in_signed_order()?);
        }
        let x = x[0].prepared(x[0].dtype())?;
        let (outer, n, inner) = around(x.shape(), self.dim);
        let m = self.taken(n);
        if y[0].numel() == 0 {
            return Ok(());
        }
        fits(self.name, n)?;
        let descending = match self.which {
            Which::Top { largest, .. } => largest,
            _ => false,
        };
        let lines = Lines { outer, n, inner };
        let to = (Some(y[0].bytes_ptr()), y[1].ptr::<i64>());
        match self.which {
            // SAFETY: `x` is contiguous, the results have an element for each of its own.
            Which::All { descending } => return unsafe { sort_lines(&x, lines, descending, to) },
            Which::Top { k, largest } if is_few(k, n) => {
                // SAFETY: as above, with `k` elements for each line.
                return unsafe { top_lines(&x, lines, k, largest, &y[0], &y[1]) };
            }
            _ => {}
        }
        let size = x.dtype().size();
        let (from, dtype) = (x.bytes_ptr() as usize, x.dtype());
        let (values, indices) = (y[0].bytes_ptr() as usize, y[1].bytes_ptr() as usize);
        parallel_for(outer * inner, (1 << 11) / n.max(1) + 1, |range| {
            let mut line = alloc::room(n);
            let mut chosen = alloc::full(0u32, m);
            for l in range {
                let (o, i) = (l / inner, l % inner);
                let start = from + (o * n * inner + i) * size;
                // SAFETY: the line lies within `x`.
                let nan =
                    unsafe { keys(dtype, start as *const u8, inner, n, descending, &mut line) };
                self.choose(&mut line, nan, &mut chosen);
                for (j, &k) in chosen.iter().enumerate() {
                    let to = (o * m + j) * inner + i;
                    let at = start + k as usize * inner * size;
                    // SAFETY: this line's elements of the outputs are written here alone.
                    unsafe {
                        (indices as *mut i64).add(to).write(k as i64);
                        std::ptr::copy_nonoverlapping(
                            at as *const u8,
                            (values as *mut u8).add(to * size),
                            size,
                        );
                    }
                }
            }
        });
        Ok(())
    }
}

/// Sorts lines of a contiguous tensor: the values, where asked for, and the indices.
// SAFETY: the results have as many elements as `x`.
unsafe fn sort_lines(
    x: &Tensor,
    lines: Lines,
    descending: bool,
    (values, indices): (Option<*mut u8>, *mut i64),
) -> Result<()> {
    let (n, inner) = (lines.n, lines.inner);
    let (values, indices) = (values.map(|v| v as usize), indices as usize);
    with_element!(x.dtype(), T => {
        let put = |sorter: &mut Sorter, line: *const T, first: usize| {
            // SAFETY: the line has `n` elements; its places in the results are its own.
            unsafe {
                let y = sorter.sort(line, n, descending);
                let start = if inner == 1 { first } else { first / inner * n * inner + first % inner };
                parallel_for(n, 1 << 15, |range| {
                    let indices = (indices as *mut i64).add(start);
                    for i in range.clone() {
                        indices.add(i * inner).write(y.index(i) as i64);
                    }
                    if let Some(values) = values {
                        let values = (values as *mut T).add(start);
                        for i in range {
                            values.add(i * inner).write(y.value(i));
                        }
                    }
                });
            }
        };
        lines.each(x.ptr::<T>().cast_const(), || Sorter::new(n), put)
    })
}

/// The `k` first elements of lines of a contiguous tensor, and their indices.
// SAFETY: the results have `k` elements for each line.
unsafe fn top_lines(
    x: &Tensor,
    lines: Lines,
    k: usize,
    largest: bool,
    values: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    let (n, inner) = (lines.n, lines.inner);
    let (values, indices) = (values.bytes_ptr() as usize, indices.ptr::<i64>() as usize);
    with_element!(x.dtype(), T => {
        let put = |room: &mut Candidates<<T as Ordinal>::Key>, line: *const T, first: usize| {
            let start = match inner {
                1 => first / n * k,
                _ => first / inner * k * inner + first % inner,
            };
            // SAFETY: the line has `n` elements; its places in the results are its own.
            unsafe {
                for (i, c) in top::first(line, n, k, largest, room).iter().enumerate() {
                    let at = start + i * inner;
                    (indices as *mut i64).add(at).write(c.index as i64);
                    (values as *mut T).add(at).write(*line.add(c.index as usize));
                }
            }
        };
        lines.each(x.ptr::<T>().cast_const(), || Ok(Candidates::default()), put)
    })
}

/// The indices that sort along a dimension, without the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Argsort {
    dim: usize,
    descending: bool,
}

impl Derivative for Argsort {
    fn name(&self) -> &'static str {
        "ArgsortBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(smallvec![None])
    }
}

impl Op for Argsort {
    fn unsigned(&self) -> bool {
        true
    }
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        Ok(smallvec![TensorMeta {
            dtype: DType::I64,
            ..TensorMeta::of(x[0])
        }])
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[0].numel() == 0 {
            return Ok(());
        }
        if x[0].dtype().is_wide_unsigned() {
            return self.cpu(&[&x[0].in_signed_order()?], y);
        }
        let x = x[0].prepared(x[0].dtype())?;
        let (outer, n, inner) = around(x.shape(), self.dim);
        fits(self.name(), n)?;
        let lines = Lines { outer, n, inner };
        // SAFETY: `x` is contiguous, the result has an element for each of its own.
        unsafe { sort_lines(&x, lines, self.descending, (None, y[0].ptr::<i64>())) }
    }
}

/// Raises where indices of a line do not fit 32 bits.
fn fits(name: &str, n: usize) -> Result<()> {
    ensure!(
        n <= u32::MAX as usize,
        Runtime,
        "{name}: lines of {n} are too long"
    );
    Ok(())
}

fn argsort(a: &Args, dim: usize, descending: usize) -> Result<Value> {
    let x = a.tensor(0)?.detach();
    let op = Argsort {
        dim: shape::dim(a.int(dim)?, x.ndim())?,
        descending: a.bool(descending)?,
    };
    ensure!(
        !x.dtype().is_complex(),
        NotImplemented,
        "SortBackward0: complex numbers have no order"
    );
    Ok(dispatch::call1(op, &[&x])?.into())
}

fn ordered(
    x: &Tensor,
    dim: usize,
    which: Which,
    keepdim: bool,
    name: &'static str,
) -> Result<Vec<Tensor>> {
    ensure!(
        !x.dtype().is_complex(),
        NotImplemented,
        "{name}: complex numbers have no order"
    );
    Ok(dispatch::call(
        Ordered {
            dim,
            which,
            keepdim,
            name,
        },
        &[x],
    )?
    .into_vec())
}

impl Tensor {
    /// Values in order along `dim`, and where they were. Stable; NaN counts as largest.
    pub fn sort(&self, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
        let dim = shape::dim(dim, self.ndim())?;
        let mut y = ordered(self, dim, Which::All { descending }, true, "SortBackward0")?;
        let indices = y.swap_remove(1);
        Ok((y.swap_remove(0), indices))
    }

    /// The `k` largest or smallest along `dim` in order, and where they were.
    pub fn topk(&self, k: i64, dim: i64, largest: bool) -> Result<(Tensor, Tensor)> {
        let dim = shape::dim(dim, self.ndim())?;
        ensure!(
            k >= 0 && k as usize <= self.size(dim),
            Runtime,
            "topk: selected index k out of range, got {k} for dimension {dim} of shape {}",
            Show(self.shape())
        );
        let which = Which::Top {
            // A 0-d tensor stays one whatever is asked of it.
            k: if self.ndim() == 0 { 1 } else { k as usize },
            largest,
        };
        let mut y = ordered(self, dim, which, true, "TopkBackward0")?;
        let indices = y.swap_remove(1);
        Ok((y.swap_remove(0), indices))
    }
}

/// One element along a dimension that must not be empty.
fn one_of(a: &Args, d: i64, which: Which, keepdim: bool, node: &'static str) -> Result<Value> {
    let x = a.tensor(0)?;
    let dim = shape::dim(d, x.ndim())?;
    ensure!(
        x.size(dim) > 0,
        Index,
        "{}(): Expected reduction dim {dim} to have non-zero size, got shape {}.",
        a.schema.name,
        Show(x.shape())
    );
    Ok(Value::Tuple(ordered(x, dim, which, keepdim, node)?))
}

/// The median of all elements.
fn median(a: &Args, ignore_nan: bool) -> Result<Value> {
    let x = a.tensor(0)?;
    let node = if ignore_nan {
        "NanmedianBackward0"
    } else {
        "MedianBackward0"
    };
    if x.numel() == 0 {
        // NaN where the type has it, and the smallest integer else.
        let nan = Scalar::Float(f64::NAN);
        return Ok(Tensor::full(&[], nan, x.dtype(), x.device())?.into());
    }
    let flat = x.reshape(&[-1])?;
    Ok(
        ordered(&flat, 0, Which::Median { ignore_nan }, false, node)?
            .swap_remove(0)
            .into(),
    )
}

fn kthvalue(a: &Args) -> Result<Value> {
    let (x, k) = (a.tensor(0)?, a.int(1)?);
    let dim = shape::dim(a.int(2)?, x.ndim())?;
    ensure!(
        k >= 1 && k as usize <= x.size(dim),
        Runtime,
        "kthvalue(): selected number k out of range for dimension {dim}, got {k} for shape {}",
        Show(x.shape())
    );
    one_of(
        a,
        a.int(2)?,
        Which::Place { k: k as usize - 1 },
        a.bool(3)?,
        "KthvalueBackward0",
    )
}

/// `quantile` and `nanquantile`: neighbours in order, and a weight between them.
fn quantile(
    x: &Tensor,
    q: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    mode: &str,
    ignore_nan: bool,
) -> Result<Tensor> {
    ensure!(
        x.numel() > 0,
        Runtime,
        "quantile() input tensor must be non-empty"
    );
    ensure!(
        q.ndim() <= 1,
        Runtime,
        "quantile() q must be a scalar or 1D tensor, got shape {}",
        Show(q.shape())
    );
    ensure!(
        matches!(x.dtype(), DType::F32 | DType::F64),
        Runtime,
        "quantile() input tensor must be either float or double dtype, got {}",
        x.dtype().scalar_name()
    );
    ensure!(
        q.dtype() == x.dtype(),
        Runtime,
        "quantile() q tensor must be same dtype as the input tensor, got {} for {}",
        q.dtype().scalar_name(),
        x.dtype().scalar_name()
    );
    if !["linear", "lower", "higher", "midpoint", "nearest"].contains(&mode) {
        bail!(
            Runtime,
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, \
             but got {mode}"
        );
    }
    let host = q.detach().prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    let qs = unsafe { host.slice::<f64>() }.to_vec();
    ensure!(
        qs.iter().all(|&q| (0.0..=1.0).contains(&q)),
        Runtime,
        "quantile() q values must be in the range [0, 1], got {qs:?}"
    );
    // The shape of the result, and the lines as rows.
    let (rows, mut kept): (Tensor, SmallVec<[usize; 5]>) = match dim {
        None => {
            let kept = if keepdim {
                SmallVec::from_elem(1, x.ndim())
            } else {
                SmallVec::new()
            };
            (x.reshape(&[1, -1])?, kept)
        }
        Some(d) => {
            let d = shape::dim(d, x.ndim())?;
            let mut kept: SmallVec<[usize; 5]> = x.shape().iter().copied().collect();
            if x.ndim() == 0 {
                (x.reshape(&[1, 1])?, kept)
            } else {
                let mut order: SmallVec<[i64; 5]> = (0..x.ndim() as i64).collect();
                order.remove(d);
                order.push(d as i64);
                let n = x.size(d) as i64;
                if keepdim {
                    kept[d] = 1;
                } else {
                    kept.remove(d);
                }
                (x.permute(&order)?.reshape(&[-1, n])?, kept)
            }
        }
    };
    let (lines, n) = (rows.size(0), rows.size(1));
    let (sorted, _) = rows.sort(1, false)?;
    let host = sorted.detach().prepared(DType::F64)?;
    // SAFETY: contiguous host memory of this type.
    let values = unsafe { host.slice::<f64>() };
    let (mut low, mut high, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for line in 0..lines {
        let nan = values[line * n..(line + 1) * n]
            .iter()
            .filter(|v| v.is_nan())
            .count();
        // What the quantile is multiplied by; a line spoiled by NaN gives its last element.
        let (scale, spoiled) = match (nan, ignore_nan) {
            (0, _) => (n - 1, false),
            (_, false) => (n - 1, true),
            (_, true) => ((n - nan).saturating_sub(1), false),
        };
        for &q in &qs {
            let rank = if spoiled {
                scale as f64
            } else {
                q * scale as f64
            };
            let rank = match mode {
                "lower" => rank.floor(),
                "higher" => rank.ceil(),
                "nearest" => rank.round_ties_even(),
                _ => rank,
            };
            low.push(rank.floor() as i64);
            high.push(rank.ceil() as i64);
            last.push(scale as f64);
        }
    }
    let shape = [lines, qs.len()];
    let at = |v: &[i64]| {
        let index = Tensor::from_slice(v, &shape, DType::I64)?;
        sorted.take_along(1, &index.to_device(x.device())?)
    };
    let floors = low;
    let (low, high) = (at(&floors)?, at(&high)?);
    let y = match mode {
        "linear" => {
            // The weight depends on q, which may need a gradient.
            let made = |v: &[f64]| {
                let t = Tensor::from_slice(v, &shape, DType::F64)?;
                t.to_dtype(x.dtype())?.to_device(x.device())
            };
            let floor: Vec<f64> = floors.iter().map(|&i| i as f64).collect();
            let weight = q.mul(&made(&last)?)?.sub(&made(&floor)?)?;
            between(&low, &high, &weight)?
        }
        "midpoint" => {
            let half = Scalar::Float(0.5);
            between(
                &low,
                &high,
                &Tensor::full(&[], half, x.dtype(), x.device())?,
            )?
        }
        _ => low,
    };
    if q.ndim() == 0 {
        return y.reshape_to(&kept);
    }
    kept.insert(0, qs.len());
    y.permute(&[1, 0])?.reshape_to(&kept)
}

/// The point between two numbers; from the upper half on it is reckoned from the high end.
fn between(low: &Tensor, high: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let gap = high.sub(low)?;
    let half = Tensor::number(Scalar::Float(0.5))?;
    let near = apply(Lt, [weight, &half])?;
    let rest = weight.neg()?.add_scalar(1.0)?;
    where_(
        &near,
        &low.add(&gap.mul(weight)?)?,
        &high.sub(&gap.mul(&rest)?)?,
    )
}

fn quantile_of(a: &Args, ignore_nan: bool) -> Result<Value> {
    let x = a.tensor(0)?;
    let q = match a.opt_tensor(1) {
        Some(q) => q.clone(),
        None => {
            let q = a.scalar(1)?.f64();
            ensure!(
                (0.0..=1.0).contains(&q),
                Runtime,
                "quantile() q must be in the range [0, 1] but got {q}"
            );
            Tensor::full(&[], Scalar::Float(q), x.dtype(), x.device())?
        }
    };
    let mode = a.str(4)?.to_string();
    Ok(quantile(x, &q, a.opt_int(2), a.bool(3)?, &mode, ignore_nan)?.into())
}

fn sorted(a: &Args, dim: usize, descending: usize) -> Result<(Tensor, Tensor)> {
    a.tensor(0)?.sort(a.int(dim)?, a.bool(descending)?)
}

crate::entries! {
    /// Values in ascending (or descending) order along `dim`, and where they were.
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| { let (v, i) = sorted(a, 1, 2)?; Ok(Value::Tuple(vec![v, i])) };
    /// The same with `stable` first, as PyTorch's other overload has it.
    "sort(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| { let (v, i) = sorted(a, 2, 3)?; Ok(Value::Tuple(vec![v, i])) };
    /// The indices that sort along `dim`.
    "argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
    FN | METHOD, |a| argsort(a, 1, 2);
    /// The same with `stable` first, as PyTorch's other overload has it.
    "argsort(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    FN | METHOD, |a| argsort(a, 2, 3);
    /// Values in ascending order along the first dimension.
    "msort(Tensor self) -> Tensor", FN | METHOD | OUT,
    |a| Ok(a.tensor(0)?.sort(0, false)?.0.into());
    /// The `k` largest (or smallest) elements along `dim`, in order, and where they are.
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| {
        let (v, i) = a.tensor(0)?.topk(a.int(1)?, a.int(2)?, a.bool(3)?)?;
        Ok(Value::Tuple(vec![v, i]))
    };
    /// The k-th smallest element along `dim` (from 1) and where it is.
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT, kthvalue;
    /// The lower median of all elements; NaN if any is.
    "median(Tensor self) -> Tensor", FN | METHOD, |a| median(a, false);
    /// The lower median along `dim` and where it is; NaN if any is.
    "median(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| one_of(a, a.int(1)?, Which::Median { ignore_nan: false }, a.bool(2)?, "MedianBackward1");
    /// The lower median of the elements that are not NaN.
    "nanmedian(Tensor self) -> Tensor", FN | METHOD, |a| median(a, true);
    /// The lower median along `dim` of the elements that are not NaN, and where it is.
    "nanmedian(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| one_of(a, a.int(1)?, Which::Median { ignore_nan: true }, a.bool(2)?, "NanmedianBackward1");
    /// The most frequent element along `dim` (the smallest of several) and its last index.
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| one_of(a, a.int(1)?, Which::Mode, a.bool(2)?, "ModeBackward0");
    /// Quantiles of all elements or along `dim`; NaN if any element is.
    "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    FN | METHOD | OUT, |a| quantile_of(a, false);
    /// A quantile of all elements or along `dim`; NaN if any element is.
    "quantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    FN | METHOD | OUT, |a| quantile_of(a, false);
    /// Quantiles of the elements that are not NaN.
    "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    FN | METHOD | OUT, |a| quantile_of(a, true);
    /// A quantile of the elements that are not NaN.
    "nanquantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    FN | METHOD | OUT, |a| quantile_of(a, true);
}

//! Sorting and what follows from order: topk, kthvalue, median, mode, quantile.

mod gpu;
mod halves;
mod long;
mod quantile;

crate::ops::family! { unique; ENTRIES }

use super::reduce::shared_gradient;
use crate::alloc;
use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::nth::LONG;
use crate::cpu::order::{keys, select, sort_keys, Keyed};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::radix::{Lines, Ordinal, Sorter};
use crate::cpu::topk::{self, is_few, Candidates};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::one;
use crate::op::{
    function_name, Cut, Derivative, Grads, Mask, Metas, Op, Rare, Save, TensorMeta, Tensors, Traits,
};
use crate::ops::index::along::picked_gradient;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Show, Span};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer, with_element};
use quantile::quantile_of;
use smallvec::smallvec;
use std::sync::Arc;

/// What is taken of each line once its order is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Which {
    /// Everything, ascending or descending, equal elements in their old order.
    All { descending: bool },
    /// The `k` largest or smallest, in order.
    TopK { k: usize, largest: bool },
    /// The element that would be at this place.
    Place { k: usize },
    /// The lower middle element; NaN if any is, unless they are ignored. Of a whole tensor, equal
    /// elements share its gradient.
    Median { ignore_nan: bool, whole: bool },
    /// The most frequent element, the smallest of several, at its last index; NaN is not even
    /// equal to NaN.
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
    fn is_whole_median(&self) -> bool {
        matches!(self.which, Which::Median { whole: true, .. })
    }

    /// How many elements are taken of a line of `n`.
    fn taken(&self, n: usize) -> usize {
        match self.which {
            Which::All { .. } => n,
            Which::TopK { k, .. } => k,
            Which::Place { .. } | Which::Median { .. } | Which::Mode => 1,
        }
    }
    fn drops(&self) -> bool {
        !matches!(self.which, Which::All { .. } | Which::TopK { .. }) && !self.keepdim
    }

    /// Writes the indices taken of a line, whose keys are given, to `out`.
    fn choose(&self, line: &mut [Keyed], nan: usize, out: &mut [u32]) {
        let n = line.len();
        match self.which {
            Which::All { .. } | Which::TopK { .. } => {
                let k = out.len();
                select(line, k);
                sort_keys(&mut line[..k]);
                for (o, k) in out.iter_mut().zip(&line[..k]) {
                    *o = k.index;
                }
            }
            Which::Place { k } => {
                quickselect(line, k, |l| l.key);
                out[0] = line[k].index;
            }
            Which::Median { ignore_nan, .. } => {
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
                // NaN sorts last, and is equal to nothing: each would count once.
                let n = n - nan;
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
fn quickselect<E: Copy, K: Ord>(line: &mut [E], k: usize, key: impl Fn(&E) -> K) {
    let (mut low, mut high) = (0, line.len() - 1);
    while high > low {
        if high == low + 1 {
            if key(&line[low]) > key(&line[high]) {
                line.swap(low, high);
            }
            return;
        }
        line.swap((low + high) / 2, low + 1);
        for (a, b) in [(low + 1, high), (low, high), (low + 1, low)] {
            if key(&line[a]) > key(&line[b]) {
                line.swap(a, b);
            }
        }
        let pivot = key(&line[low]);
        let (mut i, mut j) = (low + 1, high);
        loop {
            i += 1;
            while pivot > key(&line[i]) {
                i += 1;
            }
            j -= 1;
            while key(&line[j]) > pivot {
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
            true => Save::inputs([0]).and_outputs([0]),
            false => Save::outputs([1]),
        }
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if self.is_whole_median() {
            let Some(g) = &g[0] else {
                return Ok(smallvec![None]);
            };
            let (x, y) = (cx.input(0)?, cx.output(0)?);
            return one(shared_gradient(g, &x, &y, [0].into(), true)?);
        }
        picked_gradient(cx, g[0].as_ref(), self.dim, !self.drops(), &cx.output(1)?)
    }
}

impl Op for Ordered {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Ordered {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: match self.which {
                Which::All { .. } => Rare::UNSIGNED,
                _ => Rare::NONE,
            },
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
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
        let Span {
            outer,
            length: n,
            inner,
        } = Span::of(x.shape(), self.dim);
        let m = self.taken(n);
        if y[0].numel() == 0 {
            return Ok(());
        }
        fits(self.name, n)?;
        let descending = match self.which {
            Which::TopK { largest, .. } => largest,
            _ => false,
        };
        let lines = Lines { outer, n, inner };
        let to = (y[0].bytes_ptr(), y[1].ptr::<i64>());
        match self.which {
            Which::All { descending } => {
                // SAFETY: `x` is contiguous, the results have an element for each of its own.
                return unsafe { sort_lines(&x, lines, descending, (Some(to.0), to.1)) };
            }
            Which::TopK { k, largest } if is_few(k, n) => {
                // SAFETY: `x` is contiguous, the results have `k` elements for each line.
                return unsafe { topk_lines(&x, lines, k, largest, &y[0], &y[1]) };
            }
            // SAFETY: `x` is contiguous, the results have `m` elements for each line.
            which if n >= LONG => return unsafe { long::lines(&x, lines, which, m, to) },
            _ => {}
        }
        let size = x.dtype().size();
        let (from, dtype) = (Ptr::new(x.bytes_ptr()), x.dtype());
        let (values, indices) = (Ptr::new(y[0].bytes_ptr()), Ptr::new(y[1].ptr::<i64>()));
        parallel_for(outer * inner, (1 << 11) / n.max(1) + 1, |range| {
            let mut line = alloc::room(n);
            let mut chosen = alloc::full(0u32, m);
            for l in range {
                let (o, i) = (l / inner, l % inner);
                // SAFETY: the line lies within `x`.
                let (start, nan) = unsafe {
                    let start = from.at((o * n * inner + i) * size);
                    (start, keys(dtype, start, inner, n, descending, &mut line))
                };
                self.choose(&mut line, nan, &mut chosen);
                for (j, &k) in chosen.iter().enumerate() {
                    let to = (o * m + j) * inner + i;
                    // SAFETY: this line's elements of the outputs are written here alone.
                    unsafe {
                        let from = start.add(k as usize * inner * size);
                        indices.at(to).write(k as i64);
                        std::ptr::copy_nonoverlapping(from, values.at(to * size), size);
                    }
                }
            }
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        halves::taken(x[0], self.dim, self.which, self.keepdim)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if x[0].ndim() == 0 {
            y[0].write_from(x[0])?;
            return y[1].write_scalar(Scalar::Int(0)).map(|()| true);
        }
        let done = transfer::ran(gpu::indices(gpu, self.which, x[0], self.dim, &y[1]))?;
        if done {
            let mut kept = x[0].shape().clone();
            kept[self.dim] = self.taken(kept[self.dim]);
            let taken = x[0].take_along(self.dim, &y[1].reshape_to(&kept)?)?;
            y[0].write_from(&taken.reshape_to(y[0].shape())?)?;
        }
        Ok(done)
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
    let (values, indices) = (values.map(Ptr::new), Ptr::new(indices));
    with_element!(x.dtype(), T => {
        let put = |sorter: &mut Sorter, line: *const T, first: usize| {
            // SAFETY: the line has `n` elements; its places in the results are its own.
            unsafe {
                let y = sorter.sort(line, n, descending);
                let start = if inner == 1 { first } else { first / inner * n * inner + first % inner };
                parallel_for(n, 1 << 15, |range| {
                    let indices = indices.at(start);
                    for i in range.clone() {
                        indices.add(i * inner).write(y.index(i) as i64);
                    }
                    if let Some(values) = values {
                        let values = values.get().cast::<T>().add(start);
                        for i in range {
                            values.add(i * inner).write(y.value(i));
                        }
                    }
                });
            }
        };
        // SAFETY: `x` is contiguous, of this type, and has these lines.
        unsafe { lines.each(x.ptr::<T>().cast_const(), || Sorter::new(n), put) }
    })
}

/// The `k` first elements of lines of a contiguous tensor, and their indices.
// SAFETY: the results have `k` elements for each line.
unsafe fn topk_lines(
    x: &Tensor,
    lines: Lines,
    k: usize,
    largest: bool,
    values: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    let (n, inner) = (lines.n, lines.inner);
    let (values, indices) = (Ptr::new(values.bytes_ptr()), Ptr::new(indices.ptr::<i64>()));
    with_element!(x.dtype(), T => {
        let put = |room: &mut Candidates<<T as Ordinal>::Key>, line: *const T, first: usize| {
            let start = match inner {
                1 => first / n * k,
                _ => first / inner * k * inner + first % inner,
            };
            // SAFETY: the line has `n` elements; its places in the results are its own.
            unsafe {
                for (i, c) in topk::first(line, n, k, largest, room).iter().enumerate() {
                    let at = start + i * inner;
                    indices.at(at).write(c.index as i64);
                    values.get().cast::<T>().add(at).write(*line.add(c.index as usize));
                }
            }
        };
        // SAFETY: `x` is contiguous, of this type, and has these lines.
        unsafe { lines.each(x.ptr::<T>().cast_const(), || Ok(Candidates::default()), put) }
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
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Argsort {
            dim: self.dim + 1,
            ..self.clone()
        }))
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::UNSIGNED,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
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
        let Span {
            outer,
            length: n,
            inner,
        } = Span::of(x.shape(), self.dim);
        fits(self.name(), n)?;
        let lines = Lines { outer, n, inner };
        // SAFETY: `x` is contiguous, the result has an element for each of its own.
        unsafe { sort_lines(&x, lines, self.descending, (None, y[0].ptr::<i64>())) }
    }
    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::of_lines(x, self.dim, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let sorted = halves::sorted(x[0], self.dim, self.descending)?;
        Ok(sorted.map(|[_, at]| smallvec![at]))
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let descending = self.descending;
        transfer::ran(gpu::indices(
            gpu,
            Which::All { descending },
            x[0],
            self.dim,
            &y[0],
        ))
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

/// Raises for types whose elements are not ordered: those that sort raise another class than
/// those that select.
fn has_order(node: &str, x: &Tensor) -> Result<()> {
    if !x.dtype().is_complex() {
        return Ok(());
    }
    let (name, what) = (function_name(node), x.dtype().scalar_name());
    match &name[..] {
        "sort" | "argsort" => bail!(Runtime, " Sort does not support complex dtypes on CPU"),
        "topk" => bail!(Runtime, " topk does not support complex dtypes on CPU"),
        "median" | "nanmedian" => bail!(NoKernel, "\"median_cpu\" not implemented for '{what}'"),
        _ => bail!(NoKernel, "\"{name}_cpu\" not implemented for '{what}'"),
    }
}

fn argsort<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?.detach();
    let op = Argsort {
        dim: shape::dim(a.int(arg!(dim))?, x.ndim())?,
        descending: a.bool(arg!(descending))?,
    };
    has_order("ArgsortBackward0", &x)?;
    Ok(dispatch::call1(op, &[&x])?.into())
}

fn ordered(
    x: &Tensor,
    dim: usize,
    which: Which,
    keepdim: bool,
    name: &'static str,
) -> Result<Vec<Tensor>> {
    has_order(name, x)?;
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
        let which = Which::TopK {
            // A 0-d tensor stays one whatever is asked of it.
            k: if self.ndim() == 0 { 1 } else { k as usize },
            largest,
        };
        let mut y = ordered(self, dim, which, true, "TopkBackward0")?;
        let indices = y.swap_remove(1);
        Ok((y.swap_remove(0), indices))
    }
}

/// Raises where a dimension has no elements.
fn not_empty(name: &str, x: &Tensor, dim: usize) -> Result<()> {
    ensure!(
        x.size(dim) > 0,
        Index,
        "{name}(): Expected reduction dim {dim} to have non-zero size, got shape {}.",
        Show(x.shape())
    );
    Ok(())
}

/// One element along a dimension that must not be empty.
fn one_of<Sig: Signature>(
    a: &Args<Sig>,
    d: i64,
    which: Which,
    keepdim: bool,
    node: &'static str,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let dim = shape::dim(d, x.ndim())?;
    not_empty(a.schema.name, x, dim)?;
    Ok(Value::Tuple(ordered(x, dim, which, keepdim, node)?))
}

/// The median of all elements.
fn median<Sig: Signature>(a: &Args<Sig>, ignore_nan: bool) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
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
    let which = Which::Median {
        ignore_nan,
        whole: true,
    };
    Ok(ordered(&flat, 0, which, false, node)?.swap_remove(0).into())
}

fn kthvalue<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, k) = (a.tensor(arg!(self))?, a.int(arg!(k))?);
    let dim = shape::dim(a.int(arg!(dim))?, x.ndim())?;
    not_empty(a.schema.name, x, dim)?;
    ensure!(
        x.ndim() == 0 || x.size(dim) > 0,
        Index,
        "kthvalue(): Expected reduction dim {dim} to have non-zero size."
    );
    ensure!(
        k >= 1 && k as usize <= x.size(dim),
        Runtime,
        "kthvalue(): selected number k out of range for dimension {dim}, got {k} for shape {}",
        Show(x.shape())
    );
    one_of(
        a,
        a.int(arg!(dim))?,
        Which::Place { k: k as usize - 1 },
        a.bool(arg!(keepdim))?,
        "KthvalueBackward0",
    )
}

fn sorted<Sig: Signature>(a: &Args<Sig>) -> Result<(Tensor, Tensor)> {
    a.tensor(arg!(self))?
        .sort(a.int(arg!(dim))?, a.bool(arg!(descending))?)
}

crate::entries! {
    /// Values in ascending (or descending) order along `dim`, and where they were.
    "sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | LIKE | WHOLE,
    |a| { let (v, i) = sorted(a)?; Ok(Value::Tuple(vec![v, i])) };
    /// The same with `stable` first, as PyTorch's other overload has it.
    "sort(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | LIKE | WHOLE,
    |a| { let (v, i) = sorted(a)?; Ok(Value::Tuple(vec![v, i])) };
    /// The indices that sort along `dim`.
    "argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
    FN | METHOD | LIKE, |a| argsort(a);
    /// The same with `stable` first, as PyTorch's other overload has it.
    "argsort(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    FN | METHOD | LIKE, |a| argsort(a);
    /// Values in ascending order along the first dimension.
    "msort(Tensor self) -> Tensor", FN | METHOD | OUT | LIKE | WHOLE,
    |a| Ok(a.tensor(arg!(self))?.sort(0, false)?.0.into());
    /// The `k` largest (or smallest) elements along `dim`, in order, and where they are.
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | SEPARATE,
    |a| {
        let (v, i) = a.tensor(arg!(self))?.topk(a.int(arg!(k))?, a.int(arg!(dim))?, a.bool(arg!(largest))?)?;
        Ok(Value::Tuple(vec![v, i]))
    };
    /// The k-th smallest element along `dim` (from 1) and where it is.
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | SEPARATE, kthvalue;
    /// The lower median of all elements; NaN if any is.
    "median(Tensor self) -> Tensor", FN | METHOD, |a| median(a, false);
    /// The lower median along `dim` and where it is; NaN if any is.
    "median(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| one_of(a, a.int(arg!(dim))?, Which::Median { ignore_nan: false, whole: false }, a.bool(arg!(keepdim))?, "MedianBackward1");
    /// The lower median of the elements that are not NaN.
    "nanmedian(Tensor self) -> Tensor", FN | METHOD, |a| median(a, true);
    /// The lower median along `dim` of the elements that are not NaN, and where it is.
    "nanmedian(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT,
    |a| one_of(a, a.int(arg!(dim))?, Which::Median { ignore_nan: true, whole: false }, a.bool(arg!(keepdim))?, "NanmedianBackward1");
    /// The most frequent element along `dim` (the smallest of several) and its last index.
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    FN | METHOD | OUT | SEPARATE,
    |a| one_of(a, a.int(arg!(dim))?, Which::Mode, a.bool(arg!(keepdim))?, "ModeBackward0");
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

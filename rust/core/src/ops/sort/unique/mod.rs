//! Distinct values, membership, and places in sorted sequences.

mod gpu;
mod search;
pub mod sort;

use crate::alloc;
use crate::arg;
use crate::cpu::elements::Element;
use crate::cpu::order::{keys, Keyed};
use crate::cpu::pool::parallel_chunks;
use crate::cpu::radix::{Key, Ordinal};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Promotion};
use crate::error::Result;
use crate::op::{Metas, TensorMeta};
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{ensure, transfer, with_element};
use search::search;

/// Rows of a matrix of keys, and which of them begin a group of equal ones.
struct Groups {
    /// Rows in the order of the groups.
    order: Vec<usize>,
    /// For each place in `order`, the group it belongs to.
    group: Vec<usize>,
    count: usize,
}

impl Groups {
    /// Groups neighbours in `order` that are `same`.
    fn of(order: Vec<usize>, same: impl Fn(usize, usize) -> bool) -> Groups {
        let mut group = alloc::room(order.len());
        let mut count = 0;
        for (i, &row) in order.iter().enumerate() {
            if i == 0 || !same(order[i - 1], row) {
                count += 1;
            }
            group.push(count - 1);
        }
        Groups {
            order,
            group,
            count,
        }
    }

    /// The first row of each group.
    fn firsts(&self) -> Vec<i64> {
        let mut out: Vec<i64> = alloc::room(self.count);
        for (i, &g) in self.group.iter().enumerate() {
            if g == out.len() {
                out.push(self.order[i] as i64);
            }
        }
        out
    }

    fn inverse(&self) -> Vec<i64> {
        let mut out = alloc::full(0, self.order.len());
        for (&row, &g) in self.order.iter().zip(&self.group) {
            out[row] = g as i64;
        }
        out
    }

    fn counts(&self) -> Vec<i64> {
        let mut out = alloc::full(0, self.count);
        for &g in &self.group {
            out[g] += 1;
        }
        out
    }
}

/// The keys of all elements in row-major order; NaN differs from everything.
fn all_keys(x: &Tensor) -> Result<(Vec<Keyed>, u64)> {
    let x = x.detach().prepared(x.dtype())?;
    ensure!(
        x.numel() <= u32::MAX as usize,
        Runtime,
        "unique: too many elements, got {}",
        x.numel()
    );
    let mut line = Vec::new();
    // SAFETY: contiguous host memory of this type.
    unsafe { keys(x.dtype(), x.bytes_ptr(), 1, x.numel(), false, &mut line) };
    let nan = if x.dtype() == DType::F64 {
        u64::MAX
    } else {
        u32::MAX as u64
    };
    Ok((line, nan))
}

/// Slices of a tensor along a dimension as rows.
struct Slices {
    rows: Tensor,
    /// The dimension, and the shape with it in front.
    dim: usize,
    shape: Dims,
}

impl Slices {
    fn new(x: &Tensor, d: i64) -> Result<Slices> {
        ensure!(
            x.ndim() > 0,
            Index,
            "unique: Dimension specified as {d} but tensor has no dimensions"
        );
        let dim = shape::dim(d, x.ndim())?;
        let n = x.size(dim);
        let empty = x.shape().iter().filter(|&&s| s == 0).count();
        ensure!(
            empty == (n == 0) as usize,
            Runtime,
            "unique: sizes of zero beside dimension {dim} are not possible, got shape {}",
            Show(x.shape())
        );
        let others = (0..x.ndim()).filter(|&i| i != dim);
        let width: usize = others.clone().map(|i| x.size(i)).product();
        ensure!(
            n == 0 || width > 0,
            Runtime,
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied, \
             got shape {}",
            Show(x.shape())
        );
        let mut to_front: Vec<i64> = others.map(|i| i as i64).collect();
        to_front.insert(0, dim as i64);
        let front = x.permute(&to_front)?.contiguous()?;
        Ok(Slices {
            rows: front.reshape(&[n as i64, width as i64])?,
            dim,
            shape: front.shape().clone(),
        })
    }

    /// These rows as slices.
    fn of(&self, rows: &Tensor) -> Result<Tensor> {
        let mut shape = self.shape.clone();
        shape[0] = rows.size(0);
        let mut back: Vec<i64> = (1..shape.len() as i64).collect();
        back.insert(self.dim, 0);
        rows.reshape_to(&shape)?.permute(&back)?.contiguous()
    }
}

/// NaN differs from everything.
#[inline(always)]
fn differ<T: Element>(a: T, b: T) -> bool {
    match T::DTYPE.is_float() {
        true => a.to_f64() != b.to_f64(),
        false => a.to_i64() != b.to_i64(),
    }
}

/// The first of each run of equal elements, the run of each element, and how long each is.
fn runs(x: &Tensor, inverse: bool, counts: bool) -> Result<[Tensor; 3]> {
    let (x, n) = (x.detach().prepared(x.dtype())?, x.numel());
    let back = match inverse {
        true => Tensor::empty(x.shape(), DType::I64, Device::Cpu)?,
        false => as_indices(&[], &[0], Device::Cpu)?,
    };
    let mut ends = alloc::full(0i64, if counts { n } else { 0 });
    let mut count = 0;
    let values = with_element!(x.dtype(), T => {
        // SAFETY: contiguous host memory of these types; the second is this call's own.
        let (v, back) = unsafe { (x.slice::<T>(), back.slice_mut::<i64>()) };
        let mut first: Vec<T> = alloc::gathered(v.iter().copied());
        for i in 0..n {
            // Written in any case, and kept where the run ends: there is nothing to guess.
            first[count] = v[i];
            if inverse {
                back[i] = count as i64;
            }
            if counts {
                ends[count] = i as i64 + 1;
            }
            count += (i + 1 == n || differ(v[i], v[i + 1])) as usize;
        }
        Tensor::from_slice(&first[..count], &[count], x.dtype())?
    });
    ends.truncate(count);
    let mut start = 0;
    for end in &mut ends {
        (*end, start) = (*end - start, *end);
    }
    Ok([values, back, as_indices(&ends, &[ends.len()], Device::Cpu)?])
}

/// Distinct slices along `dim`, or those that differ from the one before.
fn distinct(x: &Tensor, d: i64, sorted: bool) -> Result<(Tensor, Groups)> {
    let is_float = x.dtype().is_float();
    let slices = Slices::new(x, d)?;
    let rows = &slices.rows;
    let (n, width) = (rows.size(0), rows.size(1));
    let (line, nan) = all_keys(rows)?;
    let row = |i: usize| line[i * width..(i + 1) * width].iter().map(|k| k.key);
    let mut order: Vec<usize> = alloc::gathered(0..n);
    if sorted {
        order.sort_by(|&a, &b| row(a).cmp(row(b)));
    }
    let same = |a: usize, b: usize| {
        row(a)
            .zip(row(b))
            .all(|(x, y)| x == y && !(is_float && x == nan))
    };
    let groups = Groups::of(order, same);
    let firsts = groups.firsts();
    let picked = Tensor::from_slice(&firsts, &[firsts.len(), 1], DType::I64)?
        .expand(&[firsts.len() as i64, width as i64])?;
    let taken = rows.take_along(0, &picked.to_device(rows.device())?)?;
    Ok((slices.of(&taken)?, groups))
}

fn as_indices(v: &[i64], shape: &[usize], device: Device) -> Result<Tensor> {
    Tensor::from_slice(v, shape, DType::I64)?.to_device(device)
}

/// Values, inverse and counts; those not asked for are empty. The values are part of the graph,
/// without a derivative: which of equal elements they are is open.
fn unique(
    x: &Tensor,
    dim: Option<i64>,
    sorted: bool,
    inverse: bool,
    counts: bool,
) -> Result<[Tensor; 3]> {
    let name = match (sorted, dim) {
        (false, _) => "Unique_ConsecutiveBackward0",
        (true, None) => "_Unique2Backward0",
        (true, Some(_)) => "Unique_DimBackward0",
    };
    let given = (dim, sorted, inverse, counts);
    let out = dispatch::function(name, given, &[&x.detach()], |&(dim, sorted, i, c), x| {
        found(x[0], dim, sorted, i, c)
    })?;
    crate::ops::underived(name, &[x], std::slice::from_ref(&out[0]))?;
    Ok(out)
}

fn found(
    x: &Tensor,
    dim: Option<i64>,
    sorted: bool,
    inverse: bool,
    counts: bool,
) -> Result<[Tensor; 3]> {
    ensure!(
        !x.dtype().is_complex(),
        NotImplemented,
        "unique: complex tensors are not supported yet"
    );
    if x.dtype().is_wide_unsigned() {
        let [y, i, c] = found(&x.in_signed_order()?, dim, sorted, inverse, counts)?;
        return Ok([y.unsigned_again(x.dtype())?, i, c]);
    }
    if dim.is_none() && x.device().is_gpu() && x.ndim() > 0 {
        return gpu::unique(x, sorted, inverse, counts);
    }
    if let (Some(d), true) = (dim, x.device().is_gpu() && x.numel() > 0) {
        let slices = Slices::new(x, d)?;
        let [y, i, c] = gpu::unique_rows(&slices.rows, sorted, inverse, counts)?;
        return Ok([slices.of(&y)?, i, c]);
    }
    let Some(d) = dim else {
        if sorted {
            return sort::unique(x, inverse, counts);
        }
        let [y, i, c] = runs(&x.to_host()?, inverse, counts)?;
        let to = |t: Tensor| t.to_device(x.device());
        return Ok([to(y)?, to(i)?, to(c)?]);
    };
    let (values, groups) = distinct(x, d, sorted)?;
    let back = match inverse {
        true => {
            let v = groups.inverse();
            as_indices(&v, &[v.len()], x.device())?
        }
        false => as_indices(&[], &[0], x.device())?,
    };
    let counted = match counts {
        true => {
            let v = groups.counts();
            as_indices(&v, &[v.len()], x.device())?
        }
        false => as_indices(&[], &[0], x.device())?,
    };
    Ok([values, back, counted])
}

/// The values alone, or a tuple of what was asked for.
fn asked([y, i, c]: [Tensor; 3], inverse: bool, counts: bool) -> Value {
    match (inverse, counts) {
        (false, false) => y.into(),
        (true, false) => Value::Tuple(vec![y, i]),
        (false, true) => Value::Tuple(vec![y, c]),
        (true, true) => Value::Tuple(vec![y, i, c]),
    }
}

/// Whether each element is among `tests`.
fn isin(x: &Tensor, tests: &Tensor, invert: bool) -> Result<Tensor> {
    let (from, meta) = ([x, tests], || {
        TensorMeta::new(x.shape(), DType::Bool, x.device())
    });
    let plan = |_: &_| Ok(Metas::from_elem(meta(), 1));
    dispatch::function_of("IsinBackward0", invert, &from, plan, |&invert, x| {
        among(x[0], x[1], invert)
    })
}

fn among(x: &Tensor, tests: &Tensor, invert: bool) -> Result<Tensor> {
    let mut p = Promotion::default();
    p.add(x.dtype(), x.ndim(), x.is_wrapped());
    p.add(tests.dtype(), tests.ndim(), tests.is_wrapped());
    let common = p.result()?;
    ensure!(
        !common.is_complex(),
        Runtime,
        "Unsupported input type encountered for isin(): {}",
        common.scalar_name()
    );
    if !transfer::runs_on_host("isin", &[x, tests], common)? {
        return gpu::among(&x.to_dtype(common)?, &tests.to_dtype(common)?, invert);
    }
    let (known, asked) = (tests.prepared(common)?, x.prepared(common)?);
    let y = Tensor::empty(x.shape(), DType::Bool, Device::Cpu)?;
    with_element!(common, T => {
        // SAFETY: contiguous host memory of these types.
        let (known, asked) = unsafe { (known.slice::<T>(), asked.slice::<T>()) };
        let mut keys: Vec<<T as Ordinal>::Key> = alloc::gathered(known.iter().map(|v| v.key()));
        keys.sort_unstable();
        keys.dedup();
        // NaN is not even among NaN.
        let nan = |k| common.is_float() && k == <<T as Ordinal>::Key as Key>::MAX;
        // SAFETY: a fresh contiguous tensor of bools.
        parallel_chunks(unsafe { y.slice_mut::<u8>() }, 1, 1 << 12, |first, found| {
            for (found, v) in found.iter_mut().zip(&asked[first..]) {
                let known = !nan(v.key()) && keys.binary_search(&v.key()).is_ok();
                *found = (known != invert) as u8;
            }
        });
    });
    y.to_device(x.device())
}

fn side<Sig: Signature>(a: &Args<Sig>) -> Result<bool> {
    let right = a.bool(arg!(right))?;
    let Some(text) = a.opt_str(arg!(side)) else {
        return Ok(right);
    };
    ensure!(
        text == "left" || text == "right",
        Runtime,
        "searchsorted(): side can only be 'left' or 'right' but got {text}"
    );
    ensure!(
        !(text == "left" && right),
        Runtime,
        "searchsorted(): side and right can't be set to opposites, got side of left while right \
         was True"
    );
    Ok(text == "right")
}

crate::entries! {
    /// Distinct elements, or slices along `dim`, sorted; on request where each went and how often.
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor",
    FN | METHOD,
    |a| {
        let (i, c) = (a.bool(arg!(return_inverse))?, a.bool(arg!(return_counts))?);
        Ok(asked(unique(a.tensor(arg!(self))?, a.opt_int(arg!(dim)), true, i, c)?, i, c))
    };
    /// Elements, or slices along `dim`, that differ from the one before.
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor",
    FN | METHOD,
    |a| {
        let (i, c) = (a.bool(arg!(return_inverse))?, a.bool(arg!(return_counts))?);
        Ok(asked(unique(a.tensor(arg!(self))?, a.opt_int(arg!(dim)), false, i, c)?, i, c))
    };
    /// Distinct elements, always with inverse and counts.
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    FN,
    |a| Ok(Value::Tuple(unique(a.tensor(arg!(self))?, None, true, a.bool(arg!(return_inverse))?, a.bool(arg!(return_counts))?)?.into()));
    /// Distinct slices along `dim`, always with inverse and counts.
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    FN,
    |a| {
        let all = unique(a.tensor(arg!(self))?, a.opt_int(arg!(dim)), true, a.bool(arg!(return_inverse))?, a.bool(arg!(return_counts))?)?;
        Ok(Value::Tuple(all.into()))
    };
    /// Where each value would go in the sorted sequences, to keep them sorted.
    "searchsorted(Tensor sorted_sequence, Tensor|Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    FN | OUT,
    |a| {
        let right = side(a)?;
        let y = search(
            "searchsorted", a.tensor(arg!(sorted_sequence))?, a.tensor(arg!(self))?, a.bool(arg!(out_int32))?, right, a.opt_tensor(arg!(sorter)))?;
        Ok(y.into())
    };
    /// Which of the intervals between sorted boundaries each value lies in.
    "bucketize(Tensor|Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    FN | OUT,
    |a| {
        let edges = a.tensor(arg!(boundaries))?;
        ensure!(
            edges.ndim() == 1,
            Runtime,
            "boundaries tensor must be 1 dimension, but got dim({})",
            edges.ndim()
        );
        Ok(search("bucketize", edges, a.tensor(arg!(self))?, a.bool(arg!(out_int32))?, a.bool(arg!(right))?, None)?.into())
    };
    /// Whether each element is one of the test elements.
    "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    FN | OUT,
    |a| Ok(isin(a.tensor(arg!(elements))?, a.tensor(arg!(test_elements))?, a.bool(arg!(invert))?)?.into());
}

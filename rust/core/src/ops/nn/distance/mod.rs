//! Distances between vectors, and forms that take two tensors of vectors.

mod cdist;
mod products;
pub mod rows;

use super::loss::at_least;
use crate::arg;
use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::ops::linalg::vector_norm::norm_last;
use crate::ops::shape::join::cat;
use crate::shape::{self, DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// `t` without its last dimension, of size 1.
fn without_last(t: &Tensor) -> Result<Tensor> {
    t.reshape_to(&t.shape()[..t.ndim() - 1])
}

/// `pairwise_distance`: the p-norm of `x - y + eps` over the last dimension.
pub fn pairwise(x: &Tensor, y: &Tensor, p: f64, eps: f64, keepdim: bool) -> Result<Tensor> {
    let d = x.sub(y)?.add_scalar(eps)?;
    let d = if d.ndim() == 0 { d.reshape(&[1])? } else { d };
    let n = norm_last(&d, p)?;
    if keepdim {
        Ok(n)
    } else {
        without_last(&n)
    }
}

/// Moves dimension `d` to the end.
fn to_last(t: &Tensor, d: usize) -> Result<Tensor> {
    let n = t.ndim();
    let order: SmallVec<[i64; 5]> = (0..n)
        .filter(|&i| i != d)
        .chain([d])
        .map(|i| i as i64)
        .collect();
    t.permute(&order)
}

/// `cosine_similarity` along `dim`; norms are taken as at least `eps`.
pub fn cosine(x: &Tensor, y: &Tensor, dim: i64, eps: f64) -> Result<Tensor> {
    let dtype = x.dtype().promote(y.dtype());
    ensure!(
        dtype.is_float(),
        Runtime,
        "cosine_similarity: expected common dtype to be floating point, yet common dtype is {}",
        dtype.scalar_name()
    );
    let shape = shape::broadcast(x.shape(), y.shape())?;
    let d = shape::dim(dim, shape.len())?;
    let wide = |t: &Tensor| -> Result<Tensor> {
        let t = t.to_dtype(dtype)?.expand_to(&shape)?;
        match shape.is_empty() {
            true => t.reshape(&[1]),
            false => to_last(&t, d),
        }
    };
    let length = |t: &Tensor| -> Result<Tensor> {
        let n = norm_last(t, 2.0)?;
        // The bound does not stop the gradient.
        let lift = mode::with_grad(false, || at_least(&n, eps)?.sub(&n))?;
        n.add(&lift)
    };
    let (x, y) = (wide(x)?, wide(y)?);
    if rows::fit(&[&x, &y]) {
        let cosine = rows::Cosine {
            least: Bitwise(eps),
            added: Bitwise(0.0),
        };
        return cosine.of(&x, &y);
    }
    // One of them made a unit vector: products of both as they are might overflow.
    let p = x.div(&length(&x)?)?.mul(&y)?;
    let along = p.sum_mask(DimSet::last(1, p.ndim())?, false, None)?;
    along.div(&without_last(&length(&y)?)?)
}

/// `cdist`: distances of every row of `x` to every row of `y`, in batches.
fn all_distances(x: &Tensor, y: &Tensor, p: f64, how: &str) -> Result<Tensor> {
    let product = match how {
        "use_mm_for_euclid_dist_if_necessary" => None,
        "use_mm_for_euclid_dist" => Some(true),
        "donot_use_mm_for_euclid_dist" => Some(false),
        other => bail!(Value, "{other} is not a valid value for compute_mode"),
    };
    for (t, i) in [(x, 1), (y, 2)] {
        ensure!(
            t.ndim() >= 2,
            Runtime,
            "cdist only supports at least 2D tensors, X{i} got: {}D",
            t.ndim()
        );
        ensure!(
            t.dtype().is_float(),
            Runtime,
            "cdist only supports floating-point dtypes, X{i} got: {}",
            t.dtype().scalar_name()
        );
    }
    ensure!(
        x.size(x.ndim() - 1) == y.size(y.ndim() - 1),
        Runtime,
        "X1 and X2 must have the same number of columns. X1: {} X2: {}",
        x.size(x.ndim() - 1),
        y.size(y.ndim() - 1)
    );
    ensure!(
        p >= 0.0,
        Runtime,
        "cdist only supports non-negative p values, got {p}"
    );
    cdist::cdist(x, y, p, product)
}

/// `pdist`: the distance of each row to each later one.
fn pdist(x: &Tensor, p: f64) -> Result<Tensor> {
    ensure!(
        x.ndim() == 2,
        Runtime,
        "pdist only supports 2D tensors, got: {}D",
        x.ndim()
    );
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "pdist only supports floating-point dtypes, got {}",
        x.dtype().scalar_name()
    );
    ensure!(
        p >= 0.0,
        Runtime,
        "pdist only supports non-negative p values, got {p}"
    );
    cdist::pdist(x, p)
}

/// Distances of pairs from a tensor of differences.
fn pairs(x: &Tensor, p: f64) -> Result<Tensor> {
    let n = x.size(0) as i64;
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let rows = |ids: Vec<i64>| -> Result<Tensor> {
        let ids = Tensor::from_slice(&ids, &[ids.len()], DType::I64)?.to_device(x.device())?;
        x.index_select(0, &ids)
    };
    let d = rows(pairs().map(|p| p.0).collect())?.sub(&rows(pairs().map(|p| p.1).collect())?)?;
    if d.size(1) == 0 {
        return d.sum_mask(DimSet::last(1, d.ndim())?, false, None);
    }
    without_last(&norm_last(&d, p)?)
}

/// `bilinear`: x W y + b for every pair of last dimensions.
fn bilinear(x: &Tensor, y: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    ensure!(
        x.ndim() == y.ndim(),
        Runtime,
        "bilinear(): input dimensions do not match: got {} and {}",
        x.ndim(),
        y.ndim()
    );
    ensure!(
        w.ndim() == 3,
        Runtime,
        "bilinear(): weight must be 3D, got {}D",
        w.ndim()
    );
    ensure!(
        x.ndim() >= 1,
        Runtime,
        "bilinear(): inputs must have a dimension"
    );
    let n = x.ndim() - 1;
    for d in 0..n {
        ensure!(
            x.size(d) == y.size(d),
            Runtime,
            "bilinear(): input batch dimensions do not match at dim {d}: got {} and {}",
            x.size(d),
            y.size(d)
        );
    }
    for (t, which, d) in [(x, "input1", 1), (y, "input2", 2)] {
        ensure!(
            t.size(n) == w.size(d),
            Runtime,
            "bilinear(): {which} size does not match weight size: got {} but expected {}",
            t.size(n),
            w.size(d)
        );
    }
    if let Some(b) = bias {
        ensure!(
            b.shape().as_slice() == [w.size(0)],
            Runtime,
            "bilinear(): bias size does not match weight size: got {} but expected [{}], one for \
             each result",
            Show(b.shape()),
            w.size(0)
        );
    }
    let rows: usize = x.shape()[..n].iter().product();
    let (o, i, j) = (w.size(0), w.size(1), w.size(2));
    let flat = w.permute(&[1, 0, 2])?.reshape_to(&[i, o * j])?;
    let left = x
        .reshape_to(&[rows, i])?
        .mm(&flat)?
        .reshape_to(&[rows, o, j])?;
    let out = left.bmm(&y.reshape_to(&[rows, j, 1])?)?;
    let mut shape = Dims::from_slice(&x.shape()[..n]);
    shape.push(o);
    let out = out.reshape_to(&shape)?;
    match bias {
        Some(b) => out.add(b),
        None => Ok(out),
    }
}

/// Rows shorter than this are not worth a call of a kernel.
const SHORT: usize = 64;

/// `kron`: each element of `x` times all of `y`.
fn kron(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if let Some(y) = products::kron(x, y) {
        return y;
    }
    let n = x.ndim().max(y.ndim());
    let (mut a, mut b, mut out) = (Dims::new(), Dims::new(), Dims::new());
    for d in 0..n {
        let p = (d + x.ndim()).checked_sub(n).map_or(1, |i| x.size(i));
        let q = (d + y.ndim()).checked_sub(n).map_or(1, |i| y.size(i));
        a.extend([p, 1]);
        b.extend([1, q]);
        out.push(p * q);
    }
    let (mut x, mut y) = (x.reshape_to(&a)?, y.reshape_to(&b)?);
    let (rows, run) = (a.len().saturating_sub(2), b.last().copied().unwrap_or(1));
    let plain = |t: &Tensor| t.device() == Device::Cpu && t.is_contiguous();
    if plain(&x) && plain(&y) && run < SHORT && rows > 0 {
        // Rows of both written out make long ones of short ones, for a part of the price.
        let row = [a[rows], run];
        for (t, dims) in [(&mut x, &mut a), (&mut y, &mut b)] {
            dims.truncate(rows);
            let whole: Dims = dims.iter().copied().chain(row).collect();
            let flat: Dims = dims.iter().copied().chain([row[0] * row[1]]).collect();
            *t = t.expand_to(&whole)?.reshape_to(&flat)?;
        }
    }
    x.mul(&y)?.reshape_to(&out)
}

/// `tensordot` over the dimensions named for each side.
pub fn tensordot(x: &Tensor, y: &Tensor, dx: &[i64], dy: &[i64]) -> Result<Tensor> {
    ensure!(
        dx.len() == dy.len(),
        Runtime,
        "tensordot: both dimension lists should have same length, got {} and {}",
        dx.len(),
        dy.len()
    );
    ensure!(
        x.dtype() == y.dtype(),
        Runtime,
        "tensordot: both inputs should have same dtype, got {} and {}",
        x.dtype(),
        y.dtype()
    );
    let (dx, dy) = (shape::dims(dx, x.ndim())?, shape::dims(dy, y.ndim())?);
    let (mut x, mut y) = (x.clone(), y.clone());
    let mut depth = 1;
    for (&i, &j) in dx.iter().zip(&dy) {
        let (p, q) = (x.size(i), y.size(j));
        // A dimension of size 1 against a longer one: the longer is summed first.
        if q == 1 && p != 1 {
            x = x.sum_mask(DimSet::one(i, x.ndim())?, true, Some(x.dtype()))?;
        } else if p == 1 && q != 1 {
            y = y.sum_mask(DimSet::one(j, y.ndim())?, true, Some(y.dtype()))?;
        } else {
            ensure!(
                p == q,
                Runtime,
                "contracted dimensions need to match, but first has size {p} in dim {i} and \
                 second has size {q} in dim {j} (tensordot of {} and {})",
                Show(x.shape()),
                Show(y.shape())
            );
            depth *= p;
        }
    }
    let free = |t: &Tensor, ds: &[usize]| -> SmallVec<[usize; 5]> {
        (0..t.ndim()).filter(|d| !ds.contains(d)).collect()
    };
    let (fx, fy) = (free(&x, &dx), free(&y, &dy));
    let count = |t: &Tensor, ds: &[usize]| ds.iter().map(|&d| t.size(d)).product::<usize>();
    let order = |a: &[usize], b: &[usize]| -> SmallVec<[i64; 5]> {
        a.iter().chain(b).map(|&d| d as i64).collect()
    };
    let (rows, cols) = (count(&x, &fx), count(&y, &fy));
    let a = x.permute(&order(&fx, &dx))?.reshape_to(&[rows, depth])?;
    let b = y.permute(&order(&dy, &fy))?.reshape_to(&[depth, cols])?;
    let out: Dims = fx
        .iter()
        .map(|&d| x.size(d))
        .chain(fy.iter().map(|&d| y.size(d)))
        .collect();
    a.mm(&b)?.reshape_to(&out)
}

/// The vector product along a dimension of size 3.
fn cross(name: &str, x: &Tensor, y: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    ensure!(
        x.ndim() == y.ndim(),
        Runtime,
        "{name}: inputs must have the same number of dimensions. Got {} and {}.",
        x.ndim(),
        y.ndim()
    );
    let shape = shape::broadcast(x.shape(), y.shape())?;
    let d = match dim {
        Some(d) => shape::dim(d, shape.len())?,
        None => match x.shape().iter().position(|&n| n == 3) {
            Some(d) => d,
            None => bail!(Runtime, "{name}: no dimension of size 3 in input"),
        },
    };
    ensure!(
        x.ndim() > 0 && x.size(d) == 3 && y.size(d) == 3,
        Runtime,
        "{name}: inputs dimension {} must have length 3. Got {} and {}",
        dim.unwrap_or(d as i64),
        x.size(d),
        y.size(d)
    );
    let dtype = x.dtype().promote(y.dtype());
    ensure!(
        dtype != DType::Bool,
        NoKernel,
        "\"cross\" not implemented for '{}'",
        dtype.scalar_name()
    );
    let (x, y) = (
        x.to_dtype(dtype)?.expand_to(&shape)?,
        y.to_dtype(dtype)?.expand_to(&shape)?,
    );
    if let Some(z) = products::cross(&x, &y, d) {
        return z;
    }
    // Components (1, 2, 0) and (2, 0, 1), each as one strided view of the tensor laid twice.
    let twice = |t: &Tensor| cat(&[t.clone(), t.narrow(d as i64, 0, 2)?], d as i64);
    let (x, y) = (twice(&x)?, twice(&y)?);
    let rolled = |t: &Tensor, by: i64| t.narrow(d as i64, by, 3);
    rolled(&x, 1)?
        .mul(&rolled(&y, 2)?)?
        .sub(&rolled(&x, 2)?.mul(&rolled(&y, 1)?)?)
}

/// `linalg.vecdot`.
fn vecdot(x: &Tensor, y: &Tensor, dim: i64) -> Result<Tensor> {
    let p = x.conj()?.mul(y)?;
    let mask = shape::reduced(Some(&[dim]), p.ndim())?;
    p.sum_mask(mask, false, Some(p.dtype()))
}

crate::entries! {
    /// The p-norm of x1 - x2 + eps over the last dimension.
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor",
    FN,
    |a| {
        let (x, y) = (a.tensor(arg!(x1))?, a.tensor(arg!(x2))?);
        Ok(pairwise(x, y, a.float(arg!(p))?, a.float(arg!(eps))?, a.bool(arg!(keepdim))?)?.into())
    };
    /// The cosine of the angle between vectors along `dim`.
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", FN,
    |a| Ok(cosine(a.tensor(arg!(x1))?, a.tensor(arg!(x2))?, a.int(arg!(dim))?, a.float(arg!(eps))?)?.into());
    /// The distance of every row of x1 to every row of x2 in the p-norm.
    "cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode=None) -> Tensor", FN,
    |a| {
        let how = a.opt_str(arg!(compute_mode)).unwrap_or("use_mm_for_euclid_dist_if_necessary");
        Ok(all_distances(a.tensor(arg!(x1))?, a.tensor(arg!(x2))?, a.float(arg!(p))?, how)?.into())
    };
    /// The distance of each row to each later one in the p-norm.
    "pdist(Tensor self, float p=2.0) -> Tensor", FN,
    |a| Ok(pdist(a.tensor(arg!(self))?, a.float(arg!(p))?)?.into());
    /// input1 W input2 + bias over the last dimensions.
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", FN,
    |a| Ok(bilinear(a.tensor(arg!(input1))?, a.tensor(arg!(input2))?, a.tensor(arg!(weight))?, a.opt_tensor(arg!(bias)))?.into());
    /// The Kronecker product.
    "kron(Tensor self, Tensor other) -> Tensor", FN | METHOD | CASTS | WHOLE,
    |a| Ok(kron(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?.into());
    /// Sums of products over dimensions named for each side.
    "_tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", FN | OUT,
    |a| Ok(tensordot(a.tensor(arg!(self))?, a.tensor(arg!(other))?, a.ints(arg!(dims_self))?, a.ints(arg!(dims_other))?)?.into());
    /// The vector product along `dim`, by default the first dimension of size 3.
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| {
        if a.opt_int(arg!(dim)).is_none() {
            crate::host::warn_once(
                "Using torch.cross without specifying the dim arg is deprecated.\nPlease either \
                 pass the dim explicitly or simply use torch.linalg.cross.",
            );
        }
        Ok(cross("cross", a.tensor(arg!(self))?, a.tensor(arg!(other))?, a.opt_int(arg!(dim)))?.into())
    };
    /// The vector product along `dim`.
    "cross(Tensor input, Tensor other, *, int dim=-1) -> Tensor", LINALG | OUT | SEPARATE,
    |a| Ok(cross("linalg.cross", a.tensor(arg!(input))?, a.tensor(arg!(other))?, Some(a.int(arg!(dim))?))?.into());
    /// The sum of products along `dim`.
    "vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", LINALG | OUT,
    |a| Ok(vecdot(a.tensor(arg!(x))?, a.tensor(arg!(y))?, a.int(arg!(dim))?)?.into());
}

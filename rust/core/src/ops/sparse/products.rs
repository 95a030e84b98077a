//! Products of matrices, vectors and batches of which one or both are sparse.

use super::arithmetic::give;
use super::coo::{make, Parts};
use super::matrix::Product;
use super::places;
use crate::alloc;
use crate::arg;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::meta::Form;
use crate::ops::pointwise::arithmetic::scaled;
use crate::ops::shape::join::{cat, stack};
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure};

/// Refuses what is no pair of matrices that can be multiplied.
fn check(name: &str, x: &Tensor, y: &Tensor) -> Result<()> {
    let lists = [x, y].map(|t| t.form());
    ensure!(
        lists != [Form::Coo, Form::Strided]
            || y.ndim() != 2
            || x.ndim() != 2
            || x.size(1) == y.size(0),
        Runtime,
        "addmm: Argument #3 (dense): Expected dim 0 size {}, got {}; mat1 and mat2 shapes cannot \
         be multiplied ({}x{} and {}x{})",
        x.size(1),
        y.size(0),
        x.size(0),
        x.size(1),
        y.size(0),
        y.size(1)
    );
    ensure!(
        x.ndim() == 2 && y.ndim() == 2,
        Runtime,
        "{name}: expected two matrices, got shapes {} and {}",
        Show(x.shape()),
        Show(y.shape())
    );
    ensure!(
        x.size(1) == y.size(0),
        Runtime,
        "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
        x.size(0),
        x.size(1),
        y.size(0),
        y.size(1)
    );
    alike(name, x, y)
}

fn alike(name: &str, x: &Tensor, y: &Tensor) -> Result<()> {
    ensure!(
        x.dtype() == y.dtype() || !(x.is_sparse() && y.is_sparse()),
        Runtime,
        "mat1 dtype {} does not match mat2 dtype {}",
        x.dtype().scalar_name(),
        y.dtype().scalar_name()
    );
    ensure!(
        x.dtype() == y.dtype(),
        Runtime,
        "expected scalar type {} but found {}: {name}: expected m1 and m2 to have the same dtype, but got: {} != {}",
        x.dtype().scalar_name(),
        y.dtype().scalar_name(),
        x.dtype().c_name(),
        y.dtype().c_name()
    );
    ensure!(
        x.device() == y.device(),
        Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, {} and {}! \
         (in {name}). Move them with .to(device).",
        x.device(),
        y.device()
    );
    for t in [x, y] {
        if t.is_sparse() {
            let lead = t.lead()?;
            ensure!(
                lead == t.ndim(),
                Runtime,
                "{name}: expected coordinates in all dimensions, got a sparse tensor of shape {} \
                 with {lead} sparse dimensions",
                Show(t.shape())
            );
        }
    }
    Ok(())
}

/// The product of two matrices, sparse where both are.
pub fn mm(name: &str, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    check(name, x, y)?;
    match (x.is_sparse(), y.is_sparse()) {
        (true, true) => sparse_product(x, y),
        (true, false) => {
            let (parts, op) = (
                x.entries()?,
                Product {
                    rows: x.size(0),
                    transposed: false,
                },
            );
            op.call(&parts.indices, &parts.values, y)
        }
        (false, _) => {
            let (parts, op) = (
                y.entries()?,
                Product {
                    rows: y.size(1),
                    transposed: true,
                },
            );
            op.call(&parts.indices, &parts.values, &x.t()?)?.t()
        }
    }
}

/// Each entry of `x` meets those of `y` in the row that its column names.
fn sparse_product(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.ordered_entries()?, y.ordered_entries()?);
    let (first, second) = (places::numbers(&a.indices)?, places::numbers(&b.indices)?);
    // SAFETY: contiguous host memory of this type.
    let (first, second) = unsafe { (first.slice::<i64>(), second.slice::<i64>()) };
    let (rows, columns) = first.split_at(a.entries());
    let (inner, across) = second.split_at(b.entries());
    let mut pairs: [Vec<i64>; 4] = Default::default();
    let mut meet = 0;
    let range = |column: i64| {
        let start = inner.partition_point(|&row| row < column);
        start..start + inner[start..].partition_point(|&row| row == column)
    };
    for &column in columns {
        meet += range(column).len();
    }
    for list in &mut pairs {
        alloc::reserve(list, meet);
    }
    for (e, (&row, &column)) in rows.iter().zip(columns).enumerate() {
        for f in range(column) {
            for (list, v) in pairs.iter_mut().zip([row, across[f], e as i64, f as i64]) {
                list.push(v);
            }
        }
    }
    let vector = |list: &[i64]| Tensor::from_slice(list, &[meet], DType::I64);
    let [row, column, e, f] = pairs;
    let indices = stack(&[vector(&row)?, vector(&column)?], 0)?;
    let (e, f) = (
        vector(&e)?.to_device(x.device())?,
        vector(&f)?.to_device(x.device())?,
    );
    let values = a.values.index_select(0, &e)?;
    let values = values.mul(&b.values.index_select(0, &f)?)?;
    let parts = Parts {
        indices: indices.to_device(x.device())?,
        values,
        coalesced: false,
    };
    let z = make(&[x.size(0), y.size(1)], parts)?.coalesced()?;
    match x.form().is_packed() || y.form().is_packed() {
        true => z.in_form(Form::Csr, None, 0),
        false => Ok(z),
    }
}

fn mv(name: &str, x: &Tensor, v: &Tensor) -> Result<Tensor> {
    ensure!(
        x.ndim() == 2 && v.ndim() == 1 && !v.is_sparse(),
        Runtime,
        "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {}Tensor Dim: {}; \
         expected a sparse matrix and a dense vector of shapes {} and {}",
        x.ndim(),
        v.ndim(),
        Show(x.shape()),
        Show(v.shape())
    );
    ensure!(
        x.size(1) == v.size(0),
        Runtime,
        "mv: expected self.size(-1) == vec.size(-1), got {} and {}",
        x.size(1),
        v.size(0)
    );
    mm(name, x, &v.unsqueeze(1)?)?.squeeze(Some(&[1]))
}

/// The products of a batch of sparse matrices and one of dense ones: one matrix that has them along its
/// diagonal.
fn bmm(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ensure!(
        !y.is_sparse(),
        Runtime,
        "bmm_sparse: Tensor 'mat2' must be dense, got one of layout {}",
        y.form().name()
    );
    ensure!(
        x.is_sparse() && x.ndim() == 3 && y.ndim() == 3,
        Runtime,
        "bmm: expected a batch of sparse matrices and one of dense ones, got {x:?} and {y:?}"
    );
    let [count, rows, columns] = [x.size(0), x.size(1), x.size(2)];
    for (own, other, d, e) in [(count, y.size(0), 0, 0), (columns, y.size(1), 2, 1)] {
        ensure!(
            own == other,
            Runtime,
            "bmm_sparse: 'self.size({d})' and 'mat2.size({e})' must match, got {own} and {other}"
        );
    }
    alike("bmm", x, y)?;
    let (parts, width) = (x.entries()?, y.size(2));
    let row = |which: i64| parts.indices.select(0, which);
    let side = |which: i64, size: usize| row(0)?.mul_scalar(size as i64)?.add(&row(which)?);
    let indices = stack(&[side(1, rows)?, side(2, columns)?], 0)?;
    let op = Product {
        rows: count * rows,
        transposed: false,
    };
    let y = op.call(
        &indices,
        &parts.values,
        &y.reshape_to(&[count * columns, width])?,
    )?;
    y.reshape_to(&[count, rows, width])
}

fn matmul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    match (x.ndim(), y.ndim()) {
        (2, 2) => mm("matmul", x, y),
        (2, 1) => mv("matmul", x, y),
        (1, 2) if !x.is_sparse() => mm("matmul", &x.unsqueeze(0)?, y)?.squeeze(Some(&[0])),
        (n, 2) if n > 2 && !x.is_sparse() => {
            let mut shape = x.shape().clone();
            let rows = shape[..n - 1].iter().product();
            let flat = x.reshape_to(&[rows, shape[n - 1]])?;
            shape[n - 1] = y.size(1);
            mm("matmul", &flat, y)?.reshape_to(&shape)
        }
        (3, 3) => bmm(x, y),
        _ => bail!(
            Runtime,
            "matmul: expected matrices, a matrix and a vector, or batches of matrices where one is \
             sparse, got shapes {} and {}",
            Show(x.shape()),
            Show(y.shape())
        ),
    }
}

/// `beta * c + alpha * x`, where the two are dense or sparse alike.
fn plus(c: &Tensor, x: Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let times = |t: &Tensor, s: Scalar| match (s.f64() == 1.0, t.is_sparse()) {
        (true, _) => Ok(t.clone()),
        (_, true) => t.with_values(|v| v.mul_scalar(s)),
        _ => t.mul_scalar(s),
    };
    let x = times(&x, alpha)?;
    match beta.f64() == 0.0 {
        true => Ok(x),
        false => times(c, beta)?.add(&x),
    }
}

fn addmm<Sig: Signature>(name: &str, a: &Args<Sig>) -> Result<Value> {
    let (c, beta) = scaled(a, arg!(self), arg!(beta))?;
    let (y, alpha) = scaled(a, arg!(mat2), arg!(alpha))?;
    let y = mm(name, a.tensor(arg!(mat1))?, &y)?;
    ensure!(
        !c.is_sparse() || y.is_sparse(),
        Runtime,
        "{name}: expected a dense tensor to be added to a dense product, got a sparse one of shape {}",
        Show(c.shape())
    );
    let c = match c.is_sparse() || c.shape() == y.shape() {
        true => c.clone(),
        false => c.expand_to(y.shape())?,
    };
    give(a, plus(&c, y, beta, alpha)?)
}

/// `beta * c + alpha * (x @ v)`, of a sparse matrix and a dense vector.
fn addmv<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (c, beta) = scaled(a, arg!(self), arg!(beta))?;
    let (v, alpha) = scaled(a, arg!(vec), arg!(alpha))?;
    ensure!(
        !c.is_sparse(),
        Runtime,
        "addmv: expected a dense vector to be added to, got a sparse one of shape {}",
        Show(c.shape())
    );
    let y = mv("addmv", a.tensor(arg!(mat))?, &v)?;
    give(a, plus(&c.expand_to(y.shape())?, y, beta, alpha)?)
}

/// The product with the transpose of a weight that may be sparse, and a bias.
fn linear<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let y = matmul(a.tensor(arg!(input))?, &a.tensor(arg!(weight))?.t()?)?;
    give(
        a,
        match a.opt_tensor(arg!(bias)) {
            Some(bias) => y.add(bias)?,
            None => y,
        },
    )
}

fn spmm<Sig: Signature>(name: &str, a: &Args<Sig>) -> Result<Value> {
    let (x, y) = (a.tensor(arg!(self))?, a.tensor(arg!(mat2))?);
    ensure!(
        x.is_sparse() || y.is_sparse(),
        Runtime,
        "{name}: expected a sparse matrix, got dense ones of shapes {} and {}; use mm",
        Show(x.shape()),
        Show(y.shape())
    );
    give(a, mm(name, x, y)?)
}

fn sspaddmm<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (c, x) = (a.tensor(arg!(self))?, a.tensor(arg!(mat1))?);
    ensure!(
        c.is_sparse() && x.is_sparse(),
        Runtime,
        "sspaddmm: expected a sparse tensor and a sparse matrix, got {c:?} and {x:?}"
    );
    let y = mm("sspaddmm", x, a.tensor(arg!(mat2))?)?;
    let y = if y.is_sparse() { y } else { y.to_sparse(2)? };
    give(
        a,
        plus(c, y, a.scalar(arg!(beta))?, a.scalar(arg!(alpha))?)?,
    )
}

/// The product as a sparse tensor of whole rows: those that have entries.
fn hspmm(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    check("hspmm", x, y)?;
    ensure!(
        x.is_sparse() && !y.is_sparse(),
        Runtime,
        "hspmm: expected a sparse and a dense matrix, got {x:?} and {y:?}"
    );
    let parts = x.ordered_entries()?;
    let row = parts.indices.narrow(0, 0, 1)?;
    let (indices, at) = places::distinct(&row, x.shape())?;
    let (rows, home) = (indices.size(1), x.device());
    let column = parts.indices.narrow(0, 1, 1)?;
    let places = [at.to_device(home)?.unsqueeze(0)?, column];
    let places = cat(&places, 0)?;
    let op = Product {
        rows,
        transposed: false,
    };
    let parts = Parts {
        values: op.call(&places, &parts.values, y)?,
        indices: indices.to_device(home)?,
        coalesced: true,
    };
    make(&[x.size(0), y.size(1)], parts)
}

crate::entries! {
    "mm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| give(a, mm("mm", a.tensor(arg!(self))?, a.tensor(arg!(mat2))?)?);
    "bmm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| give(a, bmm(a.tensor(arg!(self))?, a.tensor(arg!(mat2))?)?);
    "mv(Tensor self, Tensor vec) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| give(a, mv("mv", a.tensor(arg!(self))?, a.tensor(arg!(vec))?)?);
    "matmul(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | ALSO,
    |a| give(a, matmul(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?);
    "matmul(Tensor input, Tensor other) -> Tensor", LINALG | OUT | ALSO,
    |a| give(a, matmul(a.tensor(arg!(input))?, a.tensor(arg!(other))?)?);
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | ALSO | COMPLEX, |a| addmm("addmm", a);
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | ALSO | COMPLEX, addmv;
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", NN | OUT | ALSO, linear;
    /// The product of two matrices, of which one or both are sparse.
    "spmm(Tensor self, Tensor mat2) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| spmm("spmm", a);
    /// The product of two matrices, of which one or both are sparse.
    "dsmm(Tensor self, Tensor mat2) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| spmm("dsmm", a);
    /// The product of a sparse and a dense matrix as a sparse tensor of those rows that have entries.
    "hsmm(Tensor self, Tensor mat2) -> Tensor", FN | OUT | SPARSE | DIRECT,
    |a| give(a, hspmm(a.tensor(arg!(self))?, a.tensor(arg!(mat2))?)?);
    /// beta * self + alpha * (mat1 @ mat2), of which `mat1` is sparse.
    "saddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    FN | OUT | SPARSE | DIRECT, |a| addmm("saddmm", a);
    /// beta * self + alpha * (mat1 @ mat2) as a sparse tensor, where `self` and `mat1` are sparse.
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    FN | METHOD | OUT | SPARSE | DIRECT, sspaddmm;
    /// The product of a sparse and a dense matrix as a sparse tensor of those rows that have entries.
    "hspmm(Tensor mat1, Tensor mat2) -> Tensor", FN | OUT | SPARSE | DIRECT,
    |a| give(a, hspmm(a.tensor(arg!(mat1))?, a.tensor(arg!(mat2))?)?);
    /// The product of a sparse and another matrix as a sparse tensor.
    "smm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | SPARSE | DIRECT,
    |a| {
        let y = mm("smm", a.tensor(arg!(self))?, a.tensor(arg!(mat2))?)?;
        give(a, if y.is_sparse() { y } else { y.to_sparse(2)? })
    };
}

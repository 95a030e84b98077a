//! Products made of others: outer and inner products, and chains.

use super::check::{expands, numeric};
use super::{matrix, MatMul};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::ternary::Addcmul;
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;

/// `outer`: the product of each element of one vector with each of the other.
pub(super) fn outer(name: &str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    for (t, which) in [(a, "self"), (b, "vec2")] {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "{name}: Expected 1-D argument {which}, but got {}-D",
            t.ndim()
        );
    }
    a.reshape(&[-1, 1])?.mul(b)
}

pub(super) fn addr(
    c: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "addr: Expected 1-D argument vec{i}, but got {}-D",
            t.ndim()
        );
    }
    let dtype = c.dtype().promote(a.dtype()).promote(b.dtype());
    for (s, which) in [(beta, "beta"), (alpha, "alpha")] {
        ensure!(
            !(dtype.is_integral() && s.is_float()),
            Runtime,
            "For integral input tensors, argument {which} must not be a floating point number."
        );
        ensure!(
            dtype == DType::Bool || !matches!(s, Scalar::Bool(_)),
            Runtime,
            "Boolean {which} only supported for Boolean results."
        );
    }
    // Of truth values a factor is one, too.
    let [beta, alpha] = [beta, alpha].map(|s| match dtype {
        DType::Bool => Scalar::Bool(s.f64() != 0.0),
        _ => s,
    });
    let shape = [a.size(0), b.size(0)];
    expands(c, &shape)?;
    let scaled = |t: Tensor, s: Scalar| {
        if s.f64() == 1.0 {
            Ok(t)
        } else {
            t.mul_scalar(s)
        }
    };
    if beta.f64() == 1.0 && dtype != DType::Bool && [c, a, b].iter().all(|t| t.dtype() == dtype) {
        // In one pass.
        return apply(Addcmul { value: alpha }, [c, &a.reshape(&[-1, 1])?, b]);
    }
    let product = scaled(outer("addr", &a.to_dtype(dtype)?, b)?, alpha)?;
    if beta.f64() == 0.0 {
        return Ok(product);
    }
    scaled(c.to_dtype(dtype)?, beta)?.add(&product)
}

pub(super) fn inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return a.mul(b);
    }
    let (k, l) = (a.size(a.ndim() - 1), b.size(b.ndim() - 1));
    ensure!(
        k == l,
        Runtime,
        "inner() the last dimension must match on both input tensors but got shapes {} and {}",
        Show(a.shape()),
        Show(b.shape())
    );
    if a.ndim() == 1 && b.ndim() == 1 {
        return a.dot(b);
    }
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "inner: both inputs should have same dtype"
    );
    numeric("addmm_impl_cpu_", a.dtype())?;
    let (p, q) = (&a.shape()[..a.ndim() - 1], &b.shape()[..b.ndim() - 1]);
    let rows = |s: &[usize]| s.iter().product::<usize>();
    let op = MatMul {
        tb: true,
        ..MatMul::new("MmBackward0")
    };
    let y = dispatch::call1(
        op,
        &[&a.reshape_to(&[rows(p), k])?, &b.reshape_to(&[rows(q), k])?],
    )?;
    let shape: Dims = p.iter().chain(q).copied().collect();
    y.reshape_to(&shape)
}

/// `linalg.multi_dot`: the product of a chain in the order with the fewest multiplications.
pub fn multi_dot(chain: &[Tensor]) -> Result<Tensor> {
    let n = chain.len();
    ensure!(
        n >= 2,
        Runtime,
        "multi_dot(): expected at least 2 tensors but got {n}"
    );
    let mut mats = Vec::with_capacity(n);
    for (i, t) in chain.iter().enumerate() {
        let end = i == 0 || i + 1 == n;
        if end {
            ensure!(
                t.ndim() == 1 || t.ndim() == 2,
                Runtime,
                "multi_dot(): the {} tensor must be 1D or 2D but got {}D",
                if i == 0 { "first" } else { "last" },
                t.ndim()
            );
        } else {
            ensure!(
                t.ndim() == 2,
                Runtime,
                "multi_dot(): tensor {i} must be 2D but got {}D",
                t.ndim()
            );
        }
        ensure!(
            t.dtype() == chain[0].dtype(),
            Runtime,
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor \
             {i} {}",
            chain[0].dtype().c_name(),
            t.dtype().c_name()
        );
        mats.push(matrix(t, i == 0)?);
    }
    for i in 1..n {
        ensure!(
            mats[i - 1].size(1) == mats[i].size(0),
            Runtime,
            "multi_dot(): tensors {} and {i} with shapes {} and {} cannot be multiplied",
            i - 1,
            Show(chain[i - 1].shape()),
            Show(chain[i].shape())
        );
    }
    // Cormen et al., Introduction to Algorithms, section 15.2.
    let size = |i: usize| if i == 0 { mats[0].size(0) } else { mats[i - 1].size(1) } as f64;
    let mut cost = vec![vec![0.0f64; n]; n];
    let mut cut = vec![vec![0usize; n]; n];
    for len in 1..n {
        for i in 0..n - len {
            let j = i + len;
            cost[i][j] = f64::INFINITY;
            for s in i..j {
                let c = cost[i][s] + cost[s + 1][j] + size(i) * size(s + 1) * size(j + 1);
                if c < cost[i][j] {
                    (cost[i][j], cut[i][j]) = (c, s);
                }
            }
        }
    }
    fn product(mats: &[Tensor], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
        if i == j {
            return Ok(mats[i].clone());
        }
        let s = cut[i][j];
        product(mats, cut, i, s)?.mm(&product(mats, cut, s + 1, j)?)
    }
    let y = product(&mats, &cut, 0, n - 1)?;
    let mut shape = Dims::new();
    if chain[0].ndim() == 2 {
        shape.push(y.size(0));
    }
    if chain[n - 1].ndim() == 2 {
        shape.push(y.size(1));
    }
    if shape == *y.shape() {
        Ok(y)
    } else {
        y.reshape_to(&shape)
    }
}

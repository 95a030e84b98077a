//! Attention: softmax(q k^T / sqrt(d) + mask) v.

mod cpu;
mod gpu;
mod hidden;
mod parts;

use super::softmax::Softmax;
use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::elements::Element;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::linalg::matmul::swapped;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::{IsNegInf, LogicalOr};
use crate::ops::pointwise::ternary::where_;
use crate::ops::pointwise::unary::LogicalNot;
use crate::shape::{self, broadcast, DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{ensure, with_element};
use hidden::{scores, weighted};
use smallvec::SmallVec;
use std::sync::Arc;

/// Softmax over the last dimension; a row of minus infinities gives zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SafeSoftmax;

/// The op without that exception.
fn plain(x: &Tensor) -> Softmax {
    Softmax {
        dim: x.ndim().saturating_sub(1),
        log: false,
    }
}

impl Derivative for SafeSoftmax {
    fn name(&self) -> &'static str {
        "SafeSoftmaxBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([0])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        plain(&cx.output(0)?).vjp(cx, g)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        plain(cx.output(0)?).jvp(cx)
    }
}

impl Op for SafeSoftmax {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(Metas::from_elem(TensorMeta::of(x[0]), 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        plain(x[0]).cpu(x, y)?;
        let n = y[0].shape().last().copied().unwrap_or(1).max(1);
        let mut scores = None;
        with_element!(y[0].dtype(), T => {
            // SAFETY: a contiguous tensor of this type of this call's own.
            let rows = unsafe { y[0].slice_mut::<T>() }.chunks_mut(n).enumerate();
            for (r, row) in rows.filter(|(_, row)| Element::to_f32(row[0]).is_nan()) {
                if scores.is_none() {
                    scores = Some(x[0].prepared(DType::F64)?);
                }
                let Some(scores) = &scores else { continue };
                // SAFETY: a contiguous f64 tensor, read only.
                let from = &unsafe { scores.slice::<f64>() }[r * n..(r + 1) * n];
                if from.iter().all(|&v| v == f64::NEG_INFINITY) {
                    row.fill(<T as Element>::of_f64(0.0));
                }
            }
        });
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let x = x[0];
        if x.ndim() == 0 {
            return Ok(None);
        }
        let top = x.amax_mask(DimSet::last(1, x.ndim())?, true)?;
        let empty = apply(IsNegInf, [&top])?;
        let p = x.softmax(-1)?;
        let p = where_(&empty, &Tensor::number(0.0.into())?, &p)?;
        Ok(Some(Tensors::from_buf([p])))
    }
}

/// A mask that is added, in the type of the scores.
fn of_type(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    match mask.dtype() {
        DType::Bool => Ok(mask.clone()),
        _ => mask.to_dtype(dtype),
    }
}

/// What of the scores, of this shape, a mask hides: where a bool is false, or minus infinity would be added. What a causal
/// one does lies above the diagonal.
fn hides(mask: Option<&Tensor>, causal: bool, shape: &[usize], like: &Tensor) -> Result<Tensor> {
    let n = shape.len();
    let mut all = match mask {
        None => None,
        Some(m) if m.dtype() == DType::Bool => Some(apply(LogicalNot, [m])?),
        Some(m) => Some(apply(IsNegInf, [m])?),
    };
    if causal {
        let one = Tensor::number(true.into())?.to_device(like.device())?;
        let above = one.expand_to(&shape[n - 2..])?.triu(1)?;
        all = Some(match all {
            None => above,
            Some(m) => apply(LogicalOr, [&m, &above])?,
        });
    }
    let none = || Tensor::number(false.into())?.to_device(like.device());
    all.map_or_else(none, Ok)?.expand_to(shape)
}

/// Repeats each head, so that there are as many as `heads`.
fn repeat_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    let d = x.ndim() - 3;
    let own = x.size(d);
    if own == heads {
        return Ok(x.clone());
    }
    let mut parts = Dims::from_slice(x.shape());
    parts.insert(d + 1, 1);
    let mut wide = parts.clone();
    wide[d + 1] = heads / own;
    let mut last = Dims::from_slice(x.shape());
    last[d] = heads;
    x.reshape_to(&parts)?.expand_to(&wide)?.reshape_to(&last)
}

struct Call<'a> {
    mask: Option<&'a Tensor>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
    grouped: bool,
}

impl Call<'_> {
    fn run(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        ensure!(
            q.ndim() >= 2 && k.ndim() >= 2 && v.ndim() >= 2,
            Runtime,
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: \
             {} key.dim: {} and value.dim: {} instead.",
            q.ndim(),
            k.ndim(),
            v.ndim()
        );
        ensure!(
            q.dtype() == k.dtype() && q.dtype() == v.dtype(),
            Runtime,
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} \
             key.dtype: {} and value.dtype: {} instead.",
            q.dtype().c_name(),
            k.dtype().c_name(),
            v.dtype().c_name()
        );
        ensure!(
            !q.dtype().is_integral(),
            Runtime,
            "scaled_dot_product_attention: expected scalar type Float but found {}",
            q.dtype().scalar_name()
        );
        ensure!(
            q.dtype().is_float(),
            NoKernel,
            "\"scaled_dot_product_attention\" not implemented for '{}'",
            q.dtype().scalar_name()
        );
        ensure!(
            !(self.causal && self.mask.is_some()),
            Runtime,
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when \
             is_causal=True"
        );
        ensure!(
            (0.0..=1.0).contains(&self.dropout),
            Runtime,
            "scaled_dot_product_attention: dropout probability has to be between 0 and 1, but got \
             {}",
            self.dropout
        );
        if let Some(m) = self.mask {
            ensure!(
                m.dtype() == DType::Bool || m.dtype() == q.dtype() || m.dtype() == DType::F32,
                Runtime,
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got \
                 attn_mask.dtype: {} and  query.dtype: {} instead.",
                m.dtype().c_name(),
                q.dtype().c_name()
            );
        }
        let (mut k, mut v) = (k.clone(), v.clone());
        if self.grouped {
            for t in [q, &k, &v] {
                shape::dim(-3, t.ndim())?;
            }
            let heads = |t: &Tensor| t.size(t.ndim() - 3);
            let h = heads(q);
            ensure!(
                heads(&k) > 0 && heads(&v) > 0 && h % heads(&k) == 0 && h % heads(&v) == 0,
                Runtime,
                "Number of heads in key and value must divide the number of heads in query, got \
                 query {}, key {} and value {}",
                Show(q.shape()),
                Show(k.shape()),
                Show(v.shape())
            );
            if heads(&k) != heads(&v) {
                (k, v) = (repeat_heads(&k, h)?, repeat_heads(&v, h)?);
            }
        }
        let width = q.size(q.ndim() - 1);
        let scale = self.scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt());
        let recorded = self.mask.is_some_and(|m| dispatch::recorded(&[m]));
        if !recorded {
            let (q, k, v) = self.aligned(q, &k, &v)?;
            let fits = match q.device().is_gpu() {
                true => {
                    // What is dropped is counted from the first query: no part can be computed alone.
                    let cut = self.dropout > 0.0 && !gpu::is_whole(&q, &k, &v, self.mask);
                    !cut && gpu::fits(&q, &k, &v, self.mask)?
                }
                false => cpu::flash::fits(&q, &k, &v, self.mask),
            };
            if fits {
                return self.fused(&q, &k, &v, scale);
            }
        }
        if self.grouped {
            let h = q.size(q.ndim() - 3);
            (k, v) = (repeat_heads(&k, h)?, repeat_heads(&v, h)?);
        }
        // Half of the scale on each side keeps products of half types in range.
        let root = scale.abs().sqrt();
        let q = q.mul_scalar(root * scale.signum())?;
        let k = k.mul_scalar(root)?;
        let size = |t: &Tensor, back: usize| t.size(t.ndim() - back);
        let (rows, columns) = (size(&q, 2), size(&k, 2));
        // Products of others raise.
        let fits = size(&q, 1) == size(&k, 1) && columns == size(&v, 2);
        if !fits || self.mask.is_none() && !self.causal {
            return self.weights(&q.matmul(&swapped(&k)?)?)?.matmul(&v);
        }
        let mask = self.mask.map(|m| of_type(m, q.dtype())).transpose()?;
        let mut shape = Dims::new();
        if let Some(m) = &mask {
            shape.extend_from_slice(m.shape());
        }
        for t in [&q, &k, &v] {
            let mut own = Dims::from_slice(&t.shape()[..t.ndim() - 2]);
            own.extend([rows, columns]);
            shape = broadcast(&shape, &own)?;
        }
        let n = shape.len() - 2;
        ensure!(
            shape[n + 1] == columns,
            Runtime,
            "scaled_dot_product_attention: attn_mask must have as many columns as there are keys, {columns}, but has {}",
            shape[n + 1]
        );
        let wide = |t: &Tensor, rows: usize| {
            let mut own = Dims::from_slice(&shape[..n]);
            own.extend([rows, size(t, 1)]);
            t.expand_to(&own)
        };
        let hidden = hides(mask.as_ref(), self.causal, &shape, &q)?;
        let (q, k, v) = (wide(&q, shape[n])?, wide(&k, columns)?, wide(&v, columns)?);
        let mut scores = scores(&q, &k, Some(&hidden), f64::NEG_INFINITY)?;
        if let Some(mask) = mask.filter(|m| m.dtype() != DType::Bool) {
            scores = scores.add(&mask)?;
        }
        weighted(&self.weights(&scores)?, &v, Some(&hidden))
    }

    /// What the values weigh.
    fn weights(&self, scores: &Tensor) -> Result<Tensor> {
        let weights = dispatch::call1(SafeSoftmax, &[scores])?;
        match self.dropout > 0.0 {
            true => weights.dropout(self.dropout, true),
            false => Ok(weights),
        }
    }

    /// The three with the same leading dimensions.
    fn aligned(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
        // The heads of a group stay fewer.
        let own = if self.grouped { 3 } else { 2 };
        let lead = |t: &Tensor| Dims::from_slice(&t.shape()[..t.ndim() - own]);
        let all = [q, k, v];
        if all.iter().all(|t| lead(t) == lead(q)) {
            return Ok((q.clone(), k.clone(), v.clone()));
        }
        let shape = broadcast(&broadcast(&lead(q), &lead(k))?, &lead(v))?;
        let wide = |t: &Tensor| {
            let mut shape = shape.clone();
            shape.extend_from_slice(&t.shape()[t.ndim() - own..]);
            t.expand_to(&shape)
        };
        Ok((wide(q)?, wide(k)?, wide(v)?))
    }

    fn fused(&self, q: &Tensor, k: &Tensor, v: &Tensor, scale: f64) -> Result<Tensor> {
        let counted = q.device().is_gpu();
        let factor = if self.dropout > 0.0 && !counted {
            let mut shape = q.shape().clone();
            if let Some(last) = shape.last_mut() {
                *last = k.size(k.ndim() - 2);
            }
            let ones = Tensor::zeros(&shape, q.dtype(), q.device())?.add_scalar(1.0)?;
            Some(ones.dropout(self.dropout, true)?)
        } else {
            None
        };
        let op = cpu::flash::Flash {
            scale: Bitwise(scale),
            causal: self.causal,
            ahead: 0,
            mask: self.mask.is_some(),
            factor: factor.is_some(),
            dropped: (self.dropout > 0.0 && counted)
                .then(|| gpu::Dropped::new(self.dropout, q.device())),
        };
        let mut x: SmallVec<[&Tensor; 5]> = SmallVec::from_slice(&[q, k, v]);
        x.extend(self.mask);
        x.extend(&factor);
        Ok(dispatch::call(op, &x)?.swap_remove(0))
    }
}

crate::entries! {
    /// softmax(q k^T * scale + mask) v. Vaswani et al. 2017, arXiv:1706.03762.
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    NN, |a| {
        let call = Call {
            mask: a.opt_tensor(arg!(attn_mask)),
            dropout: a.float(arg!(dropout_p))?,
            causal: a.bool(arg!(is_causal))?,
            scale: a.opt_float(arg!(scale)),
            grouped: a.bool(arg!(enable_gqa))?,
        };
        Ok(call.run(a.tensor(arg!(query))?, a.tensor(arg!(key))?, a.tensor(arg!(value))?)?.into())
    };
}

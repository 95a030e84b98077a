//! `gather`, whose gradient may be sparse.

use super::coo::{make, Parts};
use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Derivative, Grads, Mask, Save};
use crate::ops::shape::join::cat;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// How the gradient reaches the elements that were read, without zeros for the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SparseGather {
    dim: usize,
}

impl Derivative for SparseGather {
    fn name(&self) -> &'static str {
        "GatherBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out: Grads = SmallVec::from_elem(None, 2);
        if let Some(g) = &g[0] {
            let shape = &cx.input_meta(0)?.shape;
            let index = cx.input(1)?;
            let parts = Parts {
                indices: places(&index, self.dim, shape.len())?,
                values: g.reshape(&[-1])?,
                coalesced: false,
            };
            out[0] = Some(make(shape, parts)?);
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let Some(t) = cx.tangent(0) else {
            return Ok(None);
        };
        let y = t.gather(self.dim as i64, cx.input(1))?;
        Ok(Some(Tangents::from_elem(Some(y), 1)))
    }
}

/// The coordinates in `ndim` dimensions of what an index names along `dim`, one column each.
fn places(index: &Tensor, dim: usize, ndim: usize) -> Result<Tensor> {
    let n = index.numel();
    if ndim == 0 {
        return Tensor::empty(&[0, n], DType::I64, index.device());
    }
    let index = index.detach().to_dtype(DType::I64)?;
    let rows = (0..ndim).map(|d| {
        let along = match d == dim {
            true => index.clone(),
            false => {
                let steps: Vec<i64> = (0..index.size(d) as i64).collect();
                let steps = Tensor::from_slice(&steps, &[steps.len()], DType::I64)?;
                let mut size = vec![1; ndim];
                size[d] = index.size(d);
                steps
                    .to_device(index.device())?
                    .reshape_to(&size)?
                    .expand_to(index.shape())?
            }
        };
        along.reshape_to(&[1, n])
    });
    cat(&rows.collect::<Result<Vec<_>>>()?, 0)
}

fn gather<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, index) = (a.tensor(arg!(self))?, a.tensor(arg!(index))?);
    let d = a.int(arg!(dim))?;
    let sparse = a.bool(arg!(sparse_grad))? && matches!(a.dest, Dest::New);
    // Under `vmap` the gradients of slices have no common coordinates.
    if !sparse || !dispatch::recorded(&[x]) || x.stands() || index.stands() {
        return Ok(x.gather(d, index)?.into());
    }
    let dim = shape::dim(d, x.ndim())?;
    let y = x.detach().gather(d, index)?;
    dispatch::record(SparseGather { dim }, &[x, index], std::slice::from_ref(&y))?;
    Ok(y.into())
}

crate::entries! {
    /// Elements at the positions that `index` names along a dimension. With `sparse_grad` the gradient is
    /// a sparse tensor.
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    FN | METHOD | OUT | SEPARATE, gather;
}

//! Rows of a table by number, their gradient, and bags of rows.

mod bags;
mod embedding_bag;
mod gpu;
mod renorm;
mod rows;

use crate::arg;
use crate::dispatch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::shape::Show;
use crate::tensor::Tensor;
use embedding_bag::embedding_bag;
use renorm::renorm;
use rows::Rows;

fn check_numbers(at: &Tensor, name: &str) -> Result<()> {
    ensure!(
        matches!(at.dtype(), DType::I64 | DType::I32),
        Runtime,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: \
         Long, Int; but got {} instead (while checking arguments for {name})",
        crate::autograd::saved::type_name(at)
    );
    Ok(())
}

impl Tensor {
    /// `embedding`: rows of this table.
    fn embedding(
        &self,
        at: &Tensor,
        padding: Option<i64>,
        scaled: bool,
        sparse: bool,
    ) -> Result<Tensor> {
        ensure!(
            self.ndim() == 2,
            Runtime,
            "'weight' must be 2-D, but got {}",
            Show(self.shape())
        );
        check_numbers(at, "embedding")?;
        let name = "EmbeddingBackward0";
        dispatch::call1(
            Rows {
                name,
                padding,
                scaled,
                sparse,
            },
            &[self, at],
        )
    }
}

crate::entries! {
    /// Rows of `weight` by their numbers; `padding_idx` names one without a gradient. With `sparse` the
    /// gradient of `weight` is a sparse tensor.
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    FN, |a| {
        let padding = Some(a.int(arg!(padding_idx))?).filter(|&p| p >= 0);
        Ok(a.tensor(arg!(weight))?.embedding(a.tensor(arg!(indices))?, padding, a.bool(arg!(scale_grad_by_freq))?, a.bool(arg!(sparse))?)?.into())
    };
    /// Shortens the rows that `indices` names to `max_norm`, in place.
    "embedding_renorm_(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    FN, |a| {
        renorm(a.tensor(arg!(self))?, a.tensor(arg!(indices))?, a.float(arg!(max_norm))?, a.float(arg!(norm_type))?)?;
        Ok(a.tensor(arg!(self))?.clone().into())
    };
    /// Sums, means or maxima of bags of rows; with the bag of each number, sizes and maxima. With `sparse`
    /// the gradient of `weight` is a sparse tensor.
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)",
    FN, |a| {
        embedding_bag(a)
    };
}

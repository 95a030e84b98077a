//! Views as copies with memory of their own: `view_copy` and its kin.

use super::entries::retyped;
use crate::bail;
use crate::error::Result;
use crate::schema::Value;
use crate::tensor::Tensor;

fn copied(parts: Vec<Tensor>) -> Result<Value> {
    let copies = parts.iter().map(Tensor::copy_dense);
    Ok(Value::Tensors(copies.collect::<Result<_>>()?))
}

crate::entries! {
    /// A copy of all elements.
    "alias_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.copy_dense()?.into());
    /// A copy of all elements: what is detached is not the copy.
    "detach_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.copy_dense()?.into());
    /// `as_strided` in new memory.
    "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    FN | OUT,
    |a| {
        let view = a.tensor(0)?.as_strided(a.ints(1)?, a.ints(2)?, a.opt_int(3))?;
        Ok(view.copy_dense()?.into())
    };
    /// `diagonal` in new memory.
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.diagonal(a.int(1)?, a.int(2)?, a.int(3)?)?.copy_dense()?.into());
    /// `expand` in new memory.
    "expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.expand(a.ints(1)?)?.copy_dense()?.into());
    /// `permute` in new memory.
    "permute_copy(Tensor self, int[] dims) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.permute(a.ints(1)?)?.copy_dense()?.into());
    /// `select` in new memory.
    "select_copy(Tensor self, int dim, int index) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.select(a.int(1)?, a.int(2)?)?.copy_dense()?.into());
    /// A slice of one dimension in new memory.
    "slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    FN | OUT,
    |a| {
        let view = a.tensor(0)?.slice_dim(a.int(1)?, a.opt_int(2), a.opt_int(3), a.int(4)?)?;
        Ok(view.copy_dense()?.into())
    };
    /// `split` in new memory.
    "split_copy(Tensor self, int split_size, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(0)?.split(a.int(1)?, a.int(2)?)?);
    /// `split_with_sizes` in new memory.
    "split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(0)?.split_sizes(a.ints(1)?, a.int(2)?)?);
    /// `squeeze` in new memory.
    "squeeze_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.squeeze(None)?.copy_dense()?.into());
    /// `squeeze` in new memory.
    "squeeze_copy(Tensor self, int[1] dim) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.squeeze(Some(a.ints(1)?))?.copy_dense()?.into());
    /// `t` in new memory.
    "t_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.t()?.copy_dense()?.into());
    /// `transpose` in new memory.
    "transpose_copy(Tensor self, int dim0, int dim1) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.transpose(a.int(1)?, a.int(2)?)?.copy_dense()?.into());
    /// `unbind` in new memory.
    "unbind_copy(Tensor self, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(0)?.unbind(a.int(1)?)?);
    /// `unfold` in new memory.
    "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.unfold_dim(a.int(1)?, a.int(2)?, a.int(3)?)?.copy_dense()?.into());
    /// `unsqueeze` in new memory.
    "unsqueeze_copy(Tensor self, int dim) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.unsqueeze(a.int(1)?)?.copy_dense()?.into());
    /// `view` in new memory.
    "view_copy(Tensor self, int[] size) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(0)?.reshape(a.ints(1)?)?.copy_dense()?.into());
    /// `view` in new memory.
    "view_copy(Tensor self, ScalarType dtype) -> Tensor", FN | OUT,
    |a| match a.dtype(1) {
        Some(dtype) => Ok(retyped(a.tensor(0)?, dtype)?.copy_dense()?.into()),
        None => bail!(Type, "view_copy(): dtype must not be None"),
    };
}

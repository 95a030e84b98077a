//! Views as copies with memory of their own: `view_copy` and its kin.

use super::entries::retyped;
use crate::arg;
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
    |a| Ok(a.tensor(arg!(self))?.copy_dense()?.into());
    /// A copy of all elements: what is detached is not the copy.
    "detach_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.copy_dense()?.into());
    /// `as_strided` in new memory.
    "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    FN | OUT,
    |a| {
        let view = a.tensor(arg!(self))?.as_strided(a.ints(arg!(size))?, a.ints(arg!(stride))?, a.opt_int(arg!(storage_offset)))?;
        Ok(view.copy_dense()?.into())
    };
    /// `diagonal` in new memory.
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.diagonal(a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?)?.copy_dense()?.into());
    /// `expand` in new memory.
    "expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.expand(a.ints(arg!(size))?)?.copy_dense()?.into());
    /// `permute` in new memory.
    "permute_copy(Tensor self, int[] dims) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.permute(a.ints(arg!(dims))?)?.copy_dense()?.into());
    /// `select` in new memory.
    "select_copy(Tensor self, int dim, int index) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.select(a.int(arg!(dim))?, a.int(arg!(index))?)?.copy_dense()?.into());
    /// A slice of one dimension in new memory.
    "slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    FN | OUT,
    |a| {
        let view = a.tensor(arg!(self))?.slice_dim(a.int(arg!(dim))?, a.opt_int(arg!(start)), a.opt_int(arg!(end)), a.int(arg!(step))?)?;
        Ok(view.copy_dense()?.into())
    };
    /// `split` in new memory.
    "split_copy(Tensor self, int split_size, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(arg!(self))?.split(a.int(arg!(split_size))?, a.int(arg!(dim))?)?);
    /// `split_with_sizes` in new memory.
    "split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(arg!(self))?.split_sizes(a.ints(arg!(split_sizes))?, a.int(arg!(dim))?)?);
    /// `squeeze` in new memory.
    "squeeze_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.squeeze(None)?.copy_dense()?.into());
    /// `squeeze` in new memory.
    "squeeze_copy(Tensor self, int[1] dim) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.squeeze(Some(a.ints(arg!(dim))?))?.copy_dense()?.into());
    /// `t` in new memory.
    "t_copy(Tensor self) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.t()?.copy_dense()?.into());
    /// `transpose` in new memory.
    "transpose_copy(Tensor self, int dim0, int dim1) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.transpose(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?.copy_dense()?.into());
    /// `unbind` in new memory.
    "unbind_copy(Tensor self, int dim=0) -> Tensor[]", FN | OUT,
    |a| copied(a.tensor(arg!(self))?.unbind(a.int(arg!(dim))?)?);
    /// `unfold` in new memory.
    "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.unfold_dim(a.int(arg!(dimension))?, a.int(arg!(size))?, a.int(arg!(step))?)?.copy_dense()?.into());
    /// `unsqueeze` in new memory.
    "unsqueeze_copy(Tensor self, int dim) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.unsqueeze(a.int(arg!(dim))?)?.copy_dense()?.into());
    /// `view` in new memory.
    "view_copy(Tensor self, int[] size) -> Tensor", FN | OUT,
    |a| Ok(a.tensor(arg!(self))?.reshape(a.ints(arg!(size))?)?.copy_dense()?.into());
    /// `view` in new memory.
    "view_copy(Tensor self, ScalarType dtype) -> Tensor", FN | OUT,
    |a| match a.dtype(arg!(dtype)) {
        Some(dtype) => Ok(retyped(a.tensor(arg!(self))?, dtype)?.copy_dense()?.into()),
        None => bail!(Type, "view_copy(): dtype must not be None"),
    };
}

//! The public functions of indexing.

use super::flat::{put_into, take, unravel};
use super::mask;
use super::masked::{masked_fill, masked_scatter};
use super::repeat::{interleave, interleave_each, one_hot, repeat_positions};
use super::slices::{index_add, index_copy, index_fill};
use crate::arg;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::Result;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape;
use crate::tensor::Tensor;

fn index_put<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, values, accumulate) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(values))?,
        a.bool(arg!(accumulate))?,
    );
    let target = match a.dest {
        Dest::InPlace => {
            dispatch::check_apart(values, x)?;
            x.clone()
        }
        _ => {
            let others = a.opt_tensors(arg!(indices))?.iter().flatten();
            x.copy_beside(others.chain([values]))?
        }
    };
    target.index_put_(a.opt_tensors(arg!(indices))?, values, accumulate)?;
    Ok(target.into())
}

crate::entries! {
    /// The elements that index tensors and masks, one for each dimension, select.
    "index(Tensor self, Tensor?[] indices) -> Tensor", 0,
    |a| Ok(a.tensor(arg!(self))?.index(a.opt_tensors(arg!(indices))?)?.into());
    /// Writes `values` where `indices` say; adds them where `accumulate`.
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    FN | METHOD | INPLACE | DIRECT | APART | LIKE, index_put;
    /// The slices of a dimension that `index` names.
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(a.tensor(arg!(self))?.index_select(a.int(arg!(dim))?, a.tensor(arg!(index))?)?.into());
    /// Adds the slices of `source`, times `alpha`, to those that `index` names.
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    ALL | DIRECT | APART | COMPLEX, index_add;
    /// Copies the slices of `source` to those that `index` names.
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    ALL | DIRECT | APART, index_copy;
    /// Fills the slices that `index` names with one value.
    "index_fill(Tensor self, int dim, Tensor index, Tensor|Scalar value) -> Tensor",
    ALL | DIRECT | APART | LIKE, index_fill;
    /// Elements of the flattened tensor.
    "take(Tensor self, Tensor index) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(take(a.tensor(arg!(self))?, a.tensor(arg!(index))?)?.into());
    /// Writes `source` to places of the flattened tensor.
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    FN | METHOD | INPLACE | DIRECT | APART, put_into;
    /// The value where the mask is true, `self` elsewhere.
    "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    FN | METHOD | INPLACE | DIRECT, masked_fill;
    /// The elements where the mask is true, as a vector.
    "masked_select(Tensor self, Tensor mask) -> Tensor", FN | METHOD | OUT | SEPARATE,
    |a| Ok(mask::masked_select(a.tensor(arg!(self))?, a.tensor(arg!(mask))?)?.into());
    /// Elements of `source`, in order, where the mask is true, `self` elsewhere.
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    FN | METHOD | INPLACE | DIRECT, masked_scatter;
    /// The coordinates of elements that are not zero: rows, or with `as_tuple` one tensor for each
    /// dimension.
    "nonzero(Tensor self, *, bool as_tuple=False) -> Tensor", FN | METHOD | OUT,
    |a| {
        let x = a.tensor(arg!(self))?;
        if !a.bool(arg!(as_tuple))? {
            return Ok(mask::nonzero(x)?.into());
        }
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tuple(mask::nonzero_columns(&x)?))
    };
    /// The first `size` rows of `nonzero`, filled up with `fill_value`.
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", FN | METHOD | OUT,
    |a| {
        let (x, size) = (a.tensor(arg!(self))?, a.int(arg!(size))?);
        ensure!(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer");
        let fill = Scalar::Int(a.int(arg!(fill_value))?);
        let shape = shape::sizes(&[size, x.ndim() as i64])?;
        let y = Tensor::full(&shape, fill, DType::I64, x.device())?;
        if !x.has_data() {
            return Ok(y.into());
        }
        if x.stands() {
            // Rows of each slice, whose number elements tell.
            x.check_open()?;
        }
        let found = mask::nonzero(x)?;
        let n = (size).min(found.size(0) as i64);
        y.narrow(0, 0, n)?.copy_from(&found.narrow(0, 0, n)?)?;
        Ok(y.into())
    };
    /// The same as `nonzero(as_tuple=True)`.
    "nonzero_numpy(Tensor self) -> Tensor[]", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tensors(mask::nonzero_columns(&x)?))
    };
    /// The coordinates of elements that are not zero, one row each.
    "argwhere(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(mask::nonzero(a.tensor(arg!(self))?)?.into());
    /// The coordinates where the condition holds, one tensor for each dimension.
    "where(Tensor condition) -> Tensor[]", FN,
    |a| {
        let x = a.tensor(arg!(condition))?;
        let x = if x.ndim() == 0 { x.detach().reshape(&[1])? } else { x.clone() };
        Ok(Value::Tuple(mask::columns_as("WhereBackward0", &x)?))
    };
    /// Coordinates in a tensor of a shape of positions in its flattened form.
    "unravel_index(Tensor indices, int[1] shape) -> Tensor[]", FN, unravel;
    /// A one in the place of each class value, zeros elsewhere; `num_classes` -1 takes the largest.
    "one_hot(Tensor self, int num_classes=-1) -> Tensor", FN | NN,
    |a| Ok(one_hot(a.tensor(arg!(self))?, a.int(arg!(num_classes))?)?.into());
    /// Each index as often as its entry says.
    "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor", FN,
    |a| Ok(repeat_positions(a.tensor(arg!(repeats))?, a.opt_int(arg!(output_size)))?.into());
    /// Repeats each element or slice.
    "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) \
     -> Tensor", FN | METHOD,
    |a| {
        Ok(interleave_each(a.tensor(arg!(self))?, a.int(arg!(repeats))?, a.opt_int(arg!(dim)), a.opt_int(arg!(output_size)))?.into())
    };
    "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) \
     -> Tensor", FN | METHOD,
    |a| Ok(interleave(a.tensor(arg!(self))?, a.tensor(arg!(repeats))?, a.opt_int(arg!(dim)), a.opt_int(arg!(output_size)))?.into());
}

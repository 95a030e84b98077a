//! The public functions of views.

use super::parts::Patch;
use super::{squeezed, swapped, transposed, View};
use crate::arg;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{contiguous_strides, Layout};
use crate::schema::Value;
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// `view(dtype)`: the same bytes as another type; the last dimension takes up the difference.
pub fn retyped(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let (have, want) = (x.dtype().size(), dtype.size());
    let mut l = x.layout().clone();
    if have != want {
        ensure!(
            x.ndim() > 0,
            Runtime,
            "self.dim() cannot be 0 to view {} as {} (different element sizes)",
            x.dtype().scalar_name(),
            dtype.scalar_name()
        );
        let last = x.ndim() - 1;
        ensure!(
            l.strides[last] == 1,
            Runtime,
            "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
            x.dtype().scalar_name(),
            dtype.scalar_name(),
            l.strides[last]
        );
        if have > want {
            let k = have / want;
            l.shape[last] *= k;
            l.offset *= k;
            for s in &mut l.strides[..last] {
                *s *= k as isize;
            }
        } else {
            let k = want / have;
            ensure!(
                l.shape[last].is_multiple_of(k),
                Runtime,
                "self.size(-1) must be divisible by {k} to view {} as {} (different element \
                 sizes), but got {}",
                x.dtype().scalar_name(),
                dtype.scalar_name(),
                l.shape[last]
            );
            ensure!(
                l.offset.is_multiple_of(k),
                Runtime,
                "self.storage_offset() must be divisible by {k} to view {} as {} (different \
                 element sizes), but got {}",
                x.dtype().scalar_name(),
                dtype.scalar_name(),
                l.offset
            );
            l.shape[last] /= k;
            l.offset /= k;
            for d in 0..last {
                ensure!(
                    l.strides[d] % k as isize == 0,
                    Runtime,
                    "self.stride({d}) must be divisible by {k} to view {} as {} (different \
                     element sizes), but got {}",
                    x.dtype().scalar_name(),
                    dtype.scalar_name(),
                    l.strides[d]
                );
                l.strides[d] /= k as isize;
            }
        }
        shape::numel(&l.shape)?;
    }
    Ok(x.alias_as(l, dtype))
}

fn broadcast_all(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut shape = Dims::new();
    for t in tensors {
        shape = shape::broadcast(&shape, t.shape())?;
    }
    // One that has the shape is itself, and no view.
    let spread = |t: &Tensor| match t.shape()[..] == shape[..] {
        true => Ok(t.clone()),
        false => t.expand_to(&shape),
    };
    tensors.iter().map(spread).collect()
}

fn diag_embed(x: &Tensor, offset: i64, a: i64, b: i64) -> Result<Tensor> {
    ensure!(
        x.ndim() > 0,
        Index,
        "Dimension out of range (expected to be in range of [-1, 0], but got {b}): diag_embed \
         needs at least one dimension"
    );
    let n = x.ndim() + 1;
    let (d1, d2) = (shape::dim(a, n)?, shape::dim(b, n)?);
    ensure!(
        d1 != d2,
        Runtime,
        "diagonal dimensions cannot be identical {a}, {b}"
    );
    let size = offset
        .unsigned_abs()
        .checked_add(x.size(x.ndim() - 1) as u64)
        .filter(|&s| s < 1 << 40)
        .map(|s| s as usize);
    let Some(size) = size else {
        bail!(Runtime, "diag_embed: offset {offset} is too large");
    };
    let mut rest = x.shape()[..x.ndim() - 1].iter();
    let shape: Dims = (0..n)
        .map(|d| {
            if d == d1 || d == d2 {
                size
            } else {
                rest.next().copied().unwrap_or(1)
            }
        })
        .collect();
    shape::numel(&shape)?;
    let part = Layout::contiguous(&shape).diagonal(offset, d1 as i64, d2 as i64)?;
    let op = super::parts::Assemble {
        name: "DiagEmbedBackward0",
        shape,
        parts: SmallVec::from_elem(part, 1),
        dtype: x.dtype(),
    };
    dispatch::call1(op, &[x])
}

fn diag(x: &Tensor, offset: i64) -> Result<Tensor> {
    match x.ndim() {
        1 => diag_embed(x, offset, 0, 1),
        2 => x.diagonal(offset, 0, 1)?.copy_dense(),
        n => bail!(Runtime, "diag(): Supports 1D or 2D tensors. Got {n}D"),
    }
}

fn as_strided_scatter(
    x: &Tensor,
    src: &Tensor,
    size: &[i64],
    stride: &[i64],
    offset: Option<i64>,
) -> Result<Tensor> {
    let capacity = x.capacity();
    let start = x.offset() as i64;
    let view = Layout::as_strided(
        size,
        stride,
        offset.unwrap_or(start),
        capacity,
        x.dtype().size(),
    )?;
    ensure!(
        src.shape() == &view.shape,
        Runtime,
        "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
        Show(src.shape()),
        Show(&view.shape)
    );
    ensure!(
        !view.overlaps_itself(),
        Runtime,
        "as_strided_scatter: the region that size {} and stride {} describe overlaps itself",
        Show(size),
        Show(stride)
    );
    let extent = view.extent()?;
    let own = contiguous_strides(x.shape());
    if view.numel() == 0 {
        return x.patched("AsStridedScatterBackward0", src, |_| {
            Ok(Layout::contiguous(&view.shape))
        });
    }
    ensure!(
        *x.strides() == own && view.offset >= x.offset() && extent <= x.offset() + x.numel(),
        NotImplemented,
        "as_strided_scatter: self must be contiguous and hold the region, got strides {} for \
         shape {}",
        Show(x.strides()),
        Show(x.shape())
    );
    let part = Layout {
        offset: view.offset - x.offset(),
        ..view
    };
    let src = src.to_dtype(x.dtype())?;
    dispatch::call1(
        Patch {
            name: "AsStridedScatterBackward0",
            part,
        },
        &[x, &src],
    )
}

/// How many parts, or where to cut: the last argument of `hsplit` and its like.
enum Cut<'a> {
    Sections(i64),
    Places(&'a [i64]),
}

fn cut(name: &str, x: &Tensor, least: usize, dim: i64, how: Cut) -> Result<Vec<Tensor>> {
    ensure!(
        x.ndim() >= least,
        Runtime,
        "torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {} \
         dimensions!",
        x.ndim()
    );
    match how {
        Cut::Places(p) => x.split_at(p, dim),
        Cut::Sections(n) => {
            let size = x.size(dim as usize) as i64;
            ensure!(
                n > 0 && size % n == 0,
                Runtime,
                "torch.{name} attempted to split along dimension {dim}, but the size of the \
                 dimension {size} is not divisible by the split_size {n}!"
            );
            x.split_into(n, dim)
        }
    }
}

fn places(t: &Tensor, x: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
    ensure!(
        t.dtype() == DType::I64,
        Runtime,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
        t.dtype().scalar_name()
    );
    ensure!(
        t.ndim() <= 1,
        Runtime,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or \
         one-dimensional tensor, but got a tensor with {} dims",
        t.ndim()
    );
    if t.ndim() == 0 {
        return x.split_into(t.item()?.i64(), dim);
    }
    let t = t.to_host()?.prepared(DType::I64)?;
    // SAFETY: contiguous host memory of this type, read only.
    x.split_at(unsafe { t.slice::<i64>() }, dim)
}

fn matrix(x: &Tensor, name: &str) -> Result<Tensor> {
    if x.ndim() == 0 {
        return if name == "mT" {
            crate::host::warn_once(
                "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these \
                 cases.",
            );
            Ok(x.clone())
        } else {
            x.conj()
        };
    }
    ensure!(
        x.ndim() == 2 || name != "H",
        Runtime,
        "tensor.{name} is only supported on matrices (2-D tensors). Got {}-D tensor.",
        x.ndim()
    );
    ensure!(
        x.ndim() >= 2,
        Runtime,
        "tensor.{name} is only supported on matrices or batches of matrices. Got {}-D tensor.",
        x.ndim()
    );
    let y = x.transpose(-2, -1)?;
    if name == "mT" {
        return Ok(y);
    }
    y.conj()
}

impl Tensor {
    /// The properties `T`, `mT`, `H` and `mH`.
    pub fn transposed_property(&self, name: &str) -> Result<Tensor> {
        match name {
            "T" => {
                match self.ndim() {
                    2 => {}
                    0 => crate::host::warn_once(
                        "Tensor.T is deprecated on 0-D tensors. This function is the identity in \
                         these cases.",
                    ),
                    _ => crate::host::warn_once(
                        "The use of `x.T` on tensors of dimension other than 2 to reverse their \
                         shape is deprecated and it will throw an error in a future release. \
                         Consider `x.mT` to transpose batches of matrices or \
                         `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions \
                         of a tensor.",
                    ),
                }
                let dims: SmallVec<[i64; 5]> = (0..self.ndim() as i64).rev().collect();
                self.permute(&dims)
            }
            "H" if self.ndim() == 0 => self.conj(),
            name => matrix(self, name),
        }
    }
}

crate::entries! {
    /// The same elements under another shape, without copying; raises where that is impossible.
    "view(Tensor self, int[] size) -> Tensor", METHOD,
    |a| Ok(a.tensor(arg!(self))?.view(a.ints(arg!(size))?)?.into());
    /// The same bytes read as another type.
    "view(Tensor self, ScalarType dtype) -> Tensor", METHOD,
    |a| match a.dtype(arg!(dtype)) {
        Some(dtype) => Ok(retyped(a.tensor(arg!(self))?, dtype)?.into()),
        None => bail!(Type, "view(): dtype must not be None"),
    };
    /// A view under the shape of `other`.
    "view_as(Tensor self, Tensor other) -> Tensor", METHOD,
    |a| {
        let size: Vec<i64> = a.tensor(arg!(other))?.shape().iter().map(|&n| n as i64).collect();
        Ok(a.tensor(arg!(self))?.view(&size)?.into())
    };
    /// The same elements under another shape: a view where possible, else a copy.
    "reshape(Tensor self, int[] shape) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.reshape(a.ints(arg!(shape))?)?.into());
    /// `reshape` to the shape of `other`.
    "reshape_as(Tensor self, Tensor other) -> Tensor", METHOD,
    |a| Ok(a.tensor(arg!(self))?.reshape_to(a.tensor(arg!(other))?.shape())?.into());
    /// All elements as a vector.
    "ravel(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.contiguous()?.view(&[-1])?.into());
    /// Dimensions `start_dim` to `end_dim` as one.
    "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.flatten(a.int(arg!(start_dim))?, a.int(arg!(end_dim))?)?.into());
    /// One dimension as several.
    "unflatten(Tensor self, int dim, int[] sizes) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.unflatten(a.int(arg!(dim))?, a.ints(arg!(sizes))?)?.into());
    /// Dimensions in another order.
    "permute(Tensor self, int[] dims) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.permute(a.ints(arg!(dims))?)?.into());
    /// Two dimensions exchanged.
    "transpose(Tensor self, int dim0, int dim1) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.transpose(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?.into());
    /// `transpose` in place.
    "transpose_(Tensor self, int dim0, int dim1) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let (op, layout) = swapped(x, a.int(arg!(dim0))?, a.int(arg!(dim1))?, "TransposeBackward0")?;
        Ok(x.relayout(op, layout)?.into())
    };
    /// Two dimensions exchanged.
    "swapdims(Tensor self, int dim0, int dim1) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.transpose(a.int(arg!(dim0))?, a.int(arg!(dim1))?)?.into());
    /// `swapdims` in place.
    "swapdims_(Tensor self, int dim0, int dim1) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let (op, layout) = swapped(x, a.int(arg!(dim0))?, a.int(arg!(dim1))?, "TransposeBackward0")?;
        Ok(x.relayout(op, layout)?.into())
    };
    /// Two dimensions exchanged.
    "swapaxes(Tensor self, int axis0, int axis1) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.transpose(a.int(arg!(axis0))?, a.int(arg!(axis1))?)?.into());
    /// `swapaxes` in place.
    "swapaxes_(Tensor self, int axis0, int axis1) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let (op, layout) = swapped(x, a.int(arg!(axis0))?, a.int(arg!(axis1))?, "TransposeBackward0")?;
        Ok(x.relayout(op, layout)?.into())
    };
    /// A matrix transposed; vectors and numbers as they are.
    "t(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.t()?.into());
    /// `t` in place.
    "t_(Tensor self) -> Tensor", METHOD,
    |a| {
        let (op, layout) = transposed(a.tensor(arg!(self))?)?;
        Ok(a.tensor(arg!(self))?.relayout(op, layout)?.into())
    };
    /// The last two dimensions exchanged; complex tensors would be conjugated.
    "adjoint(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.transposed_property("mH")?.into());
    /// Dimensions moved to other places, the rest in order.
    "movedim(Tensor self, int[1] source, int[1] destination) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.movedim(a.ints(arg!(source))?, a.ints(arg!(destination))?)?.into());
    /// Dimensions moved to other places, the rest in order.
    "moveaxis(Tensor self, int[1] source, int[1] destination) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.movedim(a.ints(arg!(source))?, a.ints(arg!(destination))?)?.into());
    /// Broadcasts dimensions of size 1 without copying.
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", METHOD,
    |a| Ok(a.tensor(arg!(self))?.expand(a.ints(arg!(size))?)?.into());
    /// Broadcast to the shape of `other`.
    "expand_as(Tensor self, Tensor other) -> Tensor", METHOD,
    |a| Ok(a.tensor(arg!(self))?.expand_to(a.tensor(arg!(other))?.shape())?.into());
    /// Broadcast to a shape.
    "broadcast_to(Tensor self, int[] size) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.expand(a.ints(arg!(size))?)?.into());
    /// Tensors broadcast to their common shape.
    "broadcast_tensors(Tensor[] tensors=[]) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(broadcast_all(a.tensors(arg!(tensors))?)?));
    /// The slice at one index of a dimension.
    "select(Tensor self, int dim, int index) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.select(a.int(arg!(dim))?, a.int(arg!(index))?)?.into());
    /// `length` slices of a dimension from `start` on.
    "narrow(Tensor self, int dim, int start, int length) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.narrow(a.int(arg!(dim))?, a.int(arg!(start))?, a.int(arg!(length))?)?.into());
    "narrow(Tensor self, int dim, Tensor start, int length) -> Tensor", FN | METHOD,
    |a| {
        // A number that cannot be read is none.
        a.tensor(arg!(start))?.device().check_data()?;
        bail!(Runtime, "start must be an 0-dim integral Tensor.")
    };
    /// A copy of `length` slices of a dimension from `start` on.
    "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", FN | METHOD | OUT,
    |a| {
        let (x, d, start, length) = (a.tensor(arg!(self))?, a.int(arg!(dim))?, a.int(arg!(start))?, a.int(arg!(length))?);
        let n = x.size(shape::dim(d, x.ndim())?);
        ensure!(
            length >= 0,
            Runtime,
            "start ({start}) + length ({length}) exceeds dimension size ({n})."
        );
        Ok(x.narrow(d, start, length)?.copy_dense()?.into())
    };
    /// Windows of `size` along a dimension, `step` apart, as a new last dimension.
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor", METHOD,
    |a| Ok(a.tensor(arg!(self))?.unfold_dim(a.int(arg!(dimension))?, a.int(arg!(size))?, a.int(arg!(step))?)?.into());
    /// The elements where two coordinates differ by `offset`, as a new last dimension.
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.diagonal(a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?)?.into());
    "diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", LINALG,
    |a| Ok(a.tensor(arg!(A))?.diagonal(a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?)?.into());
    /// Vectors on the diagonals of new matrices that are zero elsewhere.
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", FN | METHOD,
    |a| Ok(diag_embed(a.tensor(arg!(self))?, a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?)?.into());
    /// A matrix with a vector on its diagonal, or a copy of a matrix's diagonal.
    "diag(Tensor self, int diagonal=0) -> Tensor", FN | METHOD | OUT,
    |a| Ok(diag(a.tensor(arg!(self))?, a.int(arg!(diagonal))?)?.into());
    /// A matrix with all elements on its diagonal.
    "diagflat(Tensor self, int offset=0) -> Tensor", FN | METHOD,
    |a| Ok(diag(&a.tensor(arg!(self))?.reshape(&[-1])?, a.int(arg!(offset))?)?.into());
    /// Any layout over the same memory, checked against its size.
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.as_strided(a.ints(arg!(size))?, a.ints(arg!(stride))?, a.opt_int(arg!(storage_offset)))?.into());
    /// `as_strided` in place.
    "as_strided_(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let capacity = x.capacity();
        let offset = a.opt_int(arg!(storage_offset)).unwrap_or(x.offset() as i64);
        let view = Layout::as_strided(a.ints(arg!(size))?, a.ints(arg!(stride))?, offset, capacity, x.dtype().size())?;
        let op = super::AsStrided { base: x.layout().clone(), view: view.clone() };
        Ok(x.relayout(op, view)?.into())
    };
    /// Without dimensions of size 1: all, or those named.
    "squeeze(Tensor self) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.squeeze(None)?.into());
    "squeeze(Tensor self, int[1] dim) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.squeeze(Some(a.ints(arg!(dim))?))?.into());
    /// `squeeze` in place.
    "squeeze_(Tensor self) -> Tensor", METHOD,
    |a| {
        let (op, layout) = squeezed(a.tensor(arg!(self))?, None, "SqueezeBackward0")?;
        Ok(a.tensor(arg!(self))?.relayout(op, layout)?.into())
    };
    /// `squeeze` in place.
    "squeeze_(Tensor self, int[1] dim) -> Tensor", METHOD,
    |a| {
        let (op, layout) = squeezed(a.tensor(arg!(self))?, Some(a.ints(arg!(dim))?), "SqueezeBackward1")?;
        Ok(a.tensor(arg!(self))?.relayout(op, layout)?.into())
    };
    /// A new dimension of size 1.
    "unsqueeze(Tensor self, int dim) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(arg!(self))?.unsqueeze(a.int(arg!(dim))?)?.into());
    /// `unsqueeze` in place.
    "unsqueeze_(Tensor self, int dim) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let layout = x.layout().unsqueeze(a.int(arg!(dim))?)?;
        Ok(x.relayout(View { name: "UnsqueezeBackward0" }, layout)?.into())
    };
    /// Slices along a dimension as separate tensors.
    "unbind(Tensor self, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.unbind(a.int(arg!(dim))?)?));
    /// Parts of one size, or of the sizes given.
    "split(Tensor self, int split_size, int dim=0) -> Tensor[]", METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split(a.int(arg!(split_size))?, a.int(arg!(dim))?)?));
    "split(Tensor self, int[] split_size, int dim=0) -> Tensor[]", METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split_sizes(a.ints(arg!(split_size))?, a.int(arg!(dim))?)?));
    /// Parts of one size, or of the sizes given.
    "split(Tensor tensor, int split_size_or_sections, int dim=0) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(a.tensor(arg!(tensor))?.split(a.int(arg!(split_size_or_sections))?, a.int(arg!(dim))?)?));
    "split(Tensor tensor, int[] split_size_or_sections, int dim=0) -> Tensor[]", FN,
    |a| Ok(Value::Tensors(a.tensor(arg!(tensor))?.split_sizes(a.ints(arg!(split_size_or_sections))?, a.int(arg!(dim))?)?));
    /// Parts of the sizes given.
    "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split_sizes(a.ints(arg!(split_sizes))?, a.int(arg!(dim))?)?));
    /// Parts of one size.
    "unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split(a.int(arg!(split_size))?, a.int(arg!(dim))?)?));
    /// Parts of the sizes given.
    "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split_sizes(a.ints(arg!(split_sizes))?, a.int(arg!(dim))?)?));
    /// At most `chunks` parts of equal size.
    "chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.chunk(a.int(arg!(chunks))?, a.int(arg!(dim))?)?));
    /// At most `chunks` parts of equal size.
    "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.chunk(a.int(arg!(chunks))?, a.int(arg!(dim))?)?));
    /// Parts between places, or a number of parts whose sizes differ by at most one.
    "tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    FN | METHOD,
    |a| Ok(Value::Tensors(places(a.tensor(arg!(tensor_indices_or_sections))?, a.tensor(arg!(self))?, a.int(arg!(dim))?)?));
    "tensor_split(Tensor self, int sections, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split_into(a.int(arg!(sections))?, a.int(arg!(dim))?)?));
    "tensor_split(Tensor self, int[] indices, int dim=0) -> Tensor[]", FN | METHOD,
    |a| Ok(Value::Tensors(a.tensor(arg!(self))?.split_at(a.ints(arg!(indices))?, a.int(arg!(dim))?)?));
    /// `tensor_split` along columns.
    "hsplit(Tensor self, int sections) -> Tensor[]", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let how = Cut::Sections(a.int(arg!(sections))?);
        let dim = (x.ndim() > 1) as i64;
        Ok(Value::Tensors(cut("hsplit", x, 1, dim, how)?))
    };
    "hsplit(Tensor self, int[] indices) -> Tensor[]", FN | METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let how = Cut::Places(a.ints(arg!(indices))?);
        let dim = (x.ndim() > 1) as i64;
        Ok(Value::Tensors(cut("hsplit", x, 1, dim, how)?))
    };
    /// `tensor_split` along rows.
    "vsplit(Tensor self, int sections) -> Tensor[]", FN | METHOD,
    |a| {
        let how = Cut::Sections(a.int(arg!(sections))?);
        Ok(Value::Tensors(cut("vsplit", a.tensor(arg!(self))?, 2, 0, how)?))
    };
    "vsplit(Tensor self, int[] indices) -> Tensor[]", FN | METHOD,
    |a| {
        let how = Cut::Places(a.ints(arg!(indices))?);
        Ok(Value::Tensors(cut("vsplit", a.tensor(arg!(self))?, 2, 0, how)?))
    };
    /// `tensor_split` along the third dimension.
    "dsplit(Tensor self, int sections) -> Tensor[]", FN | METHOD,
    |a| {
        let how = Cut::Sections(a.int(arg!(sections))?);
        Ok(Value::Tensors(cut("dsplit", a.tensor(arg!(self))?, 3, 2, how)?))
    };
    "dsplit(Tensor self, int[] indices) -> Tensor[]", FN | METHOD,
    |a| {
        let how = Cut::Places(a.ints(arg!(indices))?);
        Ok(Value::Tensors(cut("dsplit", a.tensor(arg!(self))?, 3, 2, how)?))
    };
    /// Another tensor over the same elements.
    "alias(Tensor self) -> Tensor", 0,
    |a| Ok(a.tensor(arg!(self))?.alias_view()?.into());
    /// The same elements without history.
    "detach(Tensor self) -> Tensor", FN,
    |a| Ok(a.tensor(arg!(self))?.detached()?.into());
    /// A copy of `self` with `src` at one index of a dimension.
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", FN | METHOD,
    |a| {
        let (dim, index) = (a.int(arg!(dim))?, a.int(arg!(index))?);
        let f = |l: &Layout| l.select(dim, index);
        let x = a.tensor(arg!(self))?;
        Ok(x.patched("SelectScatterBackward0", a.tensor(arg!(src))?, f)?.in_places_of(x)?.into())
    };
    /// A copy of `self` with `src` as a slice of a dimension.
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) \
     -> Tensor", FN | METHOD,
    |a| {
        let (dim, start, end, step) = (a.int(arg!(dim))?, a.opt_int(arg!(start)), a.opt_int(arg!(end)), a.int(arg!(step))?);
        let f = |l: &Layout| l.slice(dim, start, end, step);
        let x = a.tensor(arg!(self))?;
        Ok(x.patched("SliceScatterBackward0", a.tensor(arg!(src))?, f)?.in_places_of(x)?.into())
    };
    /// A copy of `self` with `src` as a diagonal.
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    FN | METHOD,
    |a| {
        let (offset, x, y) = (a.int(arg!(offset))?, a.int(arg!(dim1))?, a.int(arg!(dim2))?);
        let f = |l: &Layout| l.diagonal(offset, x, y);
        let x = a.tensor(arg!(self))?;
        Ok(x.patched("DiagonalScatterBackward0", a.tensor(arg!(src))?, f)?.in_places_of(x)?.into())
    };
    /// A copy of `self` with `src` as the region that sizes and strides describe.
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, \
     int? storage_offset=None) -> Tensor", FN | METHOD,
    |a| Ok(as_strided_scatter(
        a.tensor(arg!(self))?, a.tensor(arg!(src))?, a.ints(arg!(size))?, a.ints(arg!(stride))?, a.opt_int(arg!(storage_offset)))?.into());
}

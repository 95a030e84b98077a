"""Facts of shapes, strides and element types that PyTorch's reference functions share."""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .. import _C
from .._absent.modules import tell_missing
from .._absent.table import EAGER

__all__ = [
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "canonicalize_dim",
    "canonicalize_dims",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_to_type",
    "elementwise_dtypes",
    "get_computation_dtype",
    "get_higher_dtype",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_contiguous",
    "is_float_dtype",
    "is_integer_dtype",
    "is_low_precision_dtype",
    "make_channels_last_strides_for",
    "make_contiguous_strides_for",
    "number_type",
    "prod",
    "reduction_dims",
    "suggest_memory_format",
    "type_to_dtype",
]

DeviceLikeType = str | pt.device | int
ShapeType = pt.Size | list[int] | tuple[int, ...]
StrideType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
TensorLike = pt.Tensor
TensorLikeType = pt.Tensor
Number = (bool, int, float, complex)
NumberType = bool | int | float | complex
IntLike, FloatLike, BoolLike = (int,), (float,), (bool,)

_COMPLEX = {
    _C.float16: _C.complex32,
    _C.bfloat16: _C.complex64,
    _C.float32: _C.complex64,
    _C.float64: _C.complex128,
}
_REAL = {_C.complex32: _C.float16, _C.complex64: _C.float32, _C.complex128: _C.float64}
# What sums and products of it are computed in.
_COMPUTED = {_C.float16: _C.float32, _C.bfloat16: _C.float32, _C.complex32: _C.complex64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):  # noqa: N801  (PyTorch's name)
    """How the result of an elementwise function gets its type.

    Examples
    --------
    >>> from pytensorlib._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND
    >>> ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT.value
    (0,)
    """

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def corresponding_complex_dtype(dtype: Any) -> Any:
    """Return the complex type whose parts have this type.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import corresponding_complex_dtype
    >>> corresponding_complex_dtype(torch.float32)
    torch.complex64
    """
    return _COMPLEX[dtype]


def corresponding_real_dtype(dtype: Any) -> Any:
    """Return the type of a complex type's parts.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import corresponding_real_dtype
    >>> corresponding_real_dtype(torch.complex64)
    torch.float32
    """
    return _REAL[dtype]


def get_computation_dtype(dtype: Any) -> Any:
    """Return the type that an operator computes in, for a type of tensors.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import get_computation_dtype
    >>> get_computation_dtype(torch.float16)
    torch.float32
    """
    return _COMPUTED.get(dtype, dtype)


def is_boolean_dtype(dtype: Any) -> bool:
    """Return whether this is bool."""
    return dtype is _C.bool


def is_float_dtype(dtype: Any) -> bool:
    """Return whether this is a type of real floating-point numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: Any) -> bool:
    """Return whether this is a type of complex numbers."""
    return dtype.is_complex


def is_integer_dtype(dtype: Any) -> bool:
    """Return whether this is a type of integers; bool is none."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is _C.bool)


def is_low_precision_dtype(dtype: Any) -> bool:
    """Return whether this is computed in a wider type."""
    return dtype in _COMPUTED


def dtype_to_type(dtype: Any) -> type:
    """Return Python's type of numbers for a type of elements.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import dtype_to_type
    >>> dtype_to_type(torch.float16)
    <class 'float'>
    """
    if not isinstance(dtype, pt.dtype):
        raise ValueError("Invalid dtype!")
    if dtype is _C.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> Any:
    """Return the type of elements for Python's type of numbers.

    Examples
    --------
    >>> from pytensorlib._prims_common import type_to_dtype
    >>> type_to_dtype(int)
    torch.int64
    """
    if typ is float:
        return pt.get_default_dtype()
    if typ is complex:
        return corresponding_complex_dtype(pt.get_default_dtype())
    return {bool: _C.bool, int: _C.int64}[typ]


def number_type(x: Any) -> type:
    """Return the type of a number."""
    return type(x)


def get_higher_dtype(a: Any, b: Any) -> Any:
    """Return the type that both can be converted to; None means the other."""
    kinds = [x.dtype if isinstance(x, pt.Tensor) else x for x in (a, b)]
    kinds = [type_to_dtype(x) if isinstance(x, type) else x for x in kinds if x is not None]
    return functools.reduce(pt.promote_types, kinds) if kinds else None


def elementwise_dtypes(*_args: Any, type_promotion_kind: Any) -> tuple[Any, Any]:
    """Return the types that an elementwise function computes in, and gives.

    Parameters
    ----------
    *_args : Tensor, number or None
        What it is called with.
    type_promotion_kind : ELEMENTWISE_TYPE_PROMOTION_KIND
        How its result gets its type.

    Returns
    -------
    tuple of dtype
        For its computation; for its result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
    >>> kind = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT
    >>> elementwise_dtypes(torch.ones(1, dtype=torch.int32), 2, type_promotion_kind=kind)
    (torch.float32, torch.float32)
    """
    kind, kinds = type_promotion_kind, ELEMENTWISE_TYPE_PROMOTION_KIND
    args = [x for x in _args if x is not None]
    if not args:
        raise RuntimeError("elementwise_dtypes: expected a tensor or a number, got none")
    result = args[0].dtype if isinstance(args[0], pt.Tensor) else None
    if result is None or len(args) > 1:
        zero: Any = 0.0 if result is None else args[0]
        whole = args if result is not None else [_scalar(args[0]), *args]
        result = (
            functools.reduce(
                lambda a, b: pt.empty_like(a, dtype=pt.result_type(a, b)), whole[1:], whole[0]
            ).dtype
            if len(whole) > 1
            else pt.result_type(whole[0], zero)
        )
    integer = not (result.is_floating_point or result.is_complex)
    if kind is kinds.NO_OPMATH:
        return result, result
    if kind is kinds.BOOL_TO_LONG:
        return (
            (_C.int64, _C.int64) if result is _C.bool else (get_computation_dtype(result), result)
        )
    if kind in (kinds.INT_TO_FLOAT, kinds.COMPLEX_TO_FLOAT) and integer:
        result = pt.get_default_dtype() if kind is kinds.INT_TO_FLOAT else result
    computed = get_computation_dtype(result)
    if kind is kinds.COMPLEX_TO_FLOAT and result.is_complex:
        return computed, corresponding_real_dtype(result)
    return computed, _C.bool if kind is kinds.ALWAYS_BOOL else result


def _scalar(x: Any) -> Any:
    return x if isinstance(x, pt.Tensor) else pt.tensor(x)


def prod(xs: Sequence[int]) -> int:
    """Return the product of numbers."""
    return functools.reduce(operator.mul, xs, 1)


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Return a dimension counted from the front.

    Examples
    --------
    >>> from pytensorlib._prims_common import canonicalize_dim
    >>> canonicalize_dim(3, -1)
    2
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got "
            f"{idx})"
        )
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Return dimensions counted from the front.

    Examples
    --------
    >>> from pytensorlib._prims_common import canonicalize_dims
    >>> canonicalize_dims(3, (-1, 0))
    (2, 0)
    """
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, idx, wrap_scalar) for idx in indices)


def reduction_dims(shape: Sequence[int], dims: Any) -> tuple[int, ...]:
    """Return the dimensions that a reduction means: all, where none is given."""
    if dims is None:
        return tuple(range(len(shape)))
    dims = tuple(canonicalize_dim(len(shape), d) for d in dims)
    if len(set(dims)) != len(dims):
        raise RuntimeError("duplicate value in the list of dims")
    return dims


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Return the strides of contiguous memory.

    Examples
    --------
    >>> from pytensorlib._prims_common import make_contiguous_strides_for
    >>> make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    found = tuple(reversed(strides))
    if row_major or len(shape) < 2:
        return found
    return (*found[:-2], 1, max(shape[-2], 1))


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of memory in which the channels of each position are neighbours.

    Examples
    --------
    >>> from pytensorlib._prims_common import make_channels_last_strides_for
    >>> make_channels_last_strides_for((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    if len(shape) not in (3, 4, 5):
        raise RuntimeError("no channels last format strides exist in {len(shape)} dimensions")
    n, c, *space = shape
    own = make_contiguous_strides_for((n, *space, c))
    return (own[0], own[-1], *own[1:-1])


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Return whether two shapes are one."""
    return tuple(a) == tuple(b)


def compare_tensor_meta(
    a: Any, b: Any, check_sizes: bool = True, check_strides: bool = False, **kwargs: Any
) -> None:
    """Raise unless two tensors have one shape, type and device, and strides where that is asked."""
    what = [("shapes", a.shape, b.shape)] if check_sizes else []
    what += [("dtypes", a.dtype, b.dtype), ("devices", a.device, b.device)]
    if check_strides:
        what.append(("strides", a.stride(), b.stride()))
    for name, one, other in what:
        if one != other:
            raise AssertionError(f"Tensors with {name} {one} and {other} are not equal!")


def is_contiguous(a: Any) -> bool:
    """Return whether a tensor's elements lie one after the other."""
    return a.is_contiguous()


def suggest_memory_format(x: Any) -> Any:
    """Return the memory format that a tensor's strides have.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._prims_common import suggest_memory_format
    >>> suggest_memory_format(torch.ones(1, 2))
    torch.contiguous_format
    """
    forms = {4: pt.channels_last, 5: pt.channels_last_3d}
    form = forms.get(x.dim())
    if form is not None and not x.is_contiguous() and x.is_contiguous(memory_format=form):
        return form
    return pt.contiguous_format


def is_contiguous_or_false(a: Any) -> bool:
    """Return whether a tensor's elements lie one after the other."""
    return a.is_contiguous()


def alert_not_deterministic(caller: str) -> None:
    """Raise, or warn, where results are to repeat and a function's may not."""
    if pt.are_deterministic_algorithms_enabled():
        text = f"{caller} does not have a deterministic implementation"
        if not pt.is_deterministic_algorithms_warn_only_enabled():
            raise RuntimeError(text)
        import warnings

        warnings.warn(text, stacklevel=2)


tell_missing(globals(), EAGER)

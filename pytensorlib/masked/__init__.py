"""Reductions and normalisations of the elements that a mask takes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C, linalg
from .._tensor.limits import iinfo

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None

_PARAMETERS = {
    "input": "Tensor\n    Of any shape.",
    "other": "Tensor\n    Of a shape that broadcasts with that of `input`.",
    "dim": "int\n    The dimension that is gone through.",
    "ord": "float\n    The order of the norm; inf and -inf are the largest and the least modulus.",
    "unbiased": "bool, optional\n    False is a correction of 0.",
    "correction": "float, optional\n    What is taken off the number of elements, 1 by default.",
    "eps": "float, default 1e-12\n    The least that is divided by.",
    "keepdim": "bool, default False\n    Whether these dimensions stay, with size 1.",
    "dtype": "dtype, optional\n    Of the result.",
    "mask": "Tensor, optional\n    True where an element counts; it broadcasts to `input`.",
    "input_mask": "Tensor, optional\n    True where an element of `input` counts.",
    "other_mask": "Tensor, optional\n    True where an element of `other` counts.",
}
_ALL_DIMENSIONS = "int or sequence of int, optional\n    What is gone through; all without."
_RESULT = """

Returns
-------
Tensor
    Where the mask takes nothing it is what the operation gives of nothing.

Raises
------
IndexError
    The mask has more dimensions than the input, or a dimension is out of range.

Examples"""


def _documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put what the functions share between a docstring's summary and its example."""
    summary, _, example = (inspect.getdoc(function) or "").partition("\n\nExamples")
    parts = [summary, "", "Parameters", "----------"]
    for name, parameter in inspect.signature(function).parameters.items():
        text = _PARAMETERS[name]
        if name == "dim" and parameter.default is None:
            text = _ALL_DIMENSIONS
        parts.append(f"{name} : {text}")
    function.__doc__ = "\n".join(parts) + _RESULT + example
    return function


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return dimensions in ascending order, all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    n, found = max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -n <= d < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})"
            )
        if d % n in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % n)
    return tuple(sorted(found))


def _whole(input: Any, mask: Any) -> Any:
    """Return a mask of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input): mask has shape {tuple(mask.shape)}, input {tuple(input.shape)}"
        )
    return mask.to(_C.bool).expand(input.shape)


def _input_mask(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a mask of the input's shape; all of it where none is given."""
    mask = kwargs.get("mask")
    return _C.ones(input.shape, dtype=_C.bool) if mask is None else _whole(input, mask)


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return where a function has a result: where the mask takes an element of its line."""
    mask = _input_mask(input, *args, **kwargs)
    name = getattr(op, "__name__", "")
    if name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize"):
        return mask
    dim = args[0] if args else kwargs.get("dim")
    if name == "norm" and args:
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
    keepdim = bool(kwargs.get("keepdim", False))
    dims = _dims(dim, mask.ndim)
    for d in reversed(dims):
        mask = mask.any(d, keepdim=keepdim)
    return mask


def _filled(input: Any, mask: Any, value: float) -> Any:
    """Return the input with a value where the mask takes nothing."""
    return input if mask is None else input.masked_fill(~_whole(input, mask), value)


def _least(dtype: Any) -> Any:
    """Return what no number of a type lies below."""
    if dtype == _C.bool:
        return False
    return -math.inf if dtype.is_floating_point or dtype.is_complex else iinfo(dtype).min


def _largest(dtype: Any) -> Any:
    """Return what no number of a type lies above."""
    if dtype == _C.bool:
        return True
    return math.inf if dtype.is_floating_point or dtype.is_complex else iinfo(dtype).max


def _sum_dtype(input: Any, dtype: Any) -> Any:
    """Return the type of a sum: integers are summed in int64."""
    if dtype is not None or input.is_floating_point() or input.is_complex():
        return dtype or input.dtype
    return _C.int64


def _count(input: Any, mask: Any) -> Any:
    """Return ones where elements count."""
    if mask is None:
        return _C.ones(input.shape, dtype=_C.int64, device=input.device)
    return _whole(input, mask).to(_C.int64)


@_documented
def sum(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return sums of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.masked.sum(x, 1, mask=torch.tensor([[True, False], [True, True]]))
    tensor([1., 7.])
    """
    dims = _dims(dim, input.ndim)
    return _C.sum(_filled(input, mask, 0), dims, bool(keepdim), dtype=_sum_dtype(input, dtype))


@_documented
def prod(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return products of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.prod(torch.tensor([2.0, 3.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(8.)
    """
    y = _filled(input, mask, 1).to(_sum_dtype(input, dtype))
    for d in reversed(_dims(dim, input.ndim)):
        y = y.prod(dim=d, keepdim=bool(keepdim))
    return y


@_documented
def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return running sums of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.cumsum(torch.tensor([1.0, 2.0, 3.0]), 0, mask=mask)
    tensor([1., 1., 4.])
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    return _C.cumsum(_filled(input, mask, 0), d, dtype=dtype or input.dtype)


@_documented
def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return running products of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.cumprod(torch.tensor([1.0, 2.0, 3.0]), 0, mask=mask)
    tensor([1., 1., 3.])
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    return _C.cumprod(_filled(input, mask, 1), d, dtype=dtype or input.dtype)


@_documented
def amax(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the largest of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.amax(torch.tensor([2, 3, 1]), mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    y = _C.amax(_filled(input, mask, _least(input.dtype)), _dims(dim, input.ndim), bool(keepdim))
    return y.to(dtype or input.dtype)


@_documented
def amin(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the least of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.amin(torch.tensor([2, 3, 1]), mask=torch.tensor([True, True, False]))
    tensor(2)
    """
    y = _C.amin(_filled(input, mask, _largest(input.dtype)), _dims(dim, input.ndim), bool(keepdim))
    return y.to(dtype or input.dtype)


@_documented
def argmax(
    input: Any,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return where the largest of the elements that a mask takes is, in the input's dtype.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.argmax(torch.tensor([2, 3, 1]), mask=torch.tensor([True, False, True]))
    tensor(0)
    """
    y = _C.argmax(_filled(input, mask, _least(input.dtype)), dim, bool(keepdim))
    return y.to(dtype or input.dtype)


@_documented
def argmin(
    input: Any,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return where the least of the elements that a mask takes is, in the input's dtype.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.argmin(torch.tensor([2, 3, 1]), mask=torch.tensor([True, True, False]))
    tensor(0)
    """
    y = _C.argmin(_filled(input, mask, _largest(input.dtype)), dim, bool(keepdim))
    return y.to(dtype or input.dtype)


@_documented
def mean(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return means of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.mean(torch.tensor([1.0, 2.0, 6.0]), mask=torch.tensor([True, True, False]))
    tensor(1.5000)
    """
    kind = dtype or input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Optional' if dtype else 'Input'} dtype "
            f"must be either a floating point or complex dtype. Got: {kind}"
        )
    dims = _dims(dim, input.ndim)
    count = _count(input, mask).sum(dims, bool(keepdim))
    return sum(input, dims, keepdim=keepdim, dtype=kind, mask=mask) / count


@_documented
def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return medians of the elements that a mask takes: the lower one of two.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.median(torch.tensor([1.0, 9.0, 2.0]), mask=torch.tensor([True, False, True]))
    tensor(1.)
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    floating = input.is_floating_point()
    wide = input if floating else input.to(_C.float32)
    y = _C.nanmedian(_filled(wide, mask, math.nan), d, bool(keepdim)).values
    if floating:
        return y
    if y.isnan().any():
        raise ValueError(
            "masked median expected no fully masked out rows if dtype is not floating point"
        )
    return y.to(dtype or input.dtype)


@_documented
def norm(
    input: Any,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return norms of the elements that a mask takes, as vectors.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    x = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return linalg.vector_norm(x, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def _spread(input: Any, dim: Dims, correction: float, keepdim: bool, dtype: Any, mask: Any) -> Any:
    """Return variances of the elements that a mask takes."""
    kind = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else _C.float32)
    wide = kind if kind.is_floating_point or kind.is_complex else _C.float32
    dims = _dims(dim, input.ndim)
    count = _count(input, mask).sum(dims, True)
    x = input - sum(input, dims, keepdim=True, dtype=kind, mask=mask) / count
    total = sum(x * x.conj(), dims, keepdim=keepdim, dtype=wide, mask=mask)
    count = count.reshape(total.shape)
    if correction != 0:
        count = (count.to(total.real.dtype if wide.is_complex else wide) - correction).clamp(min=0)
    return (total / count).to(kind)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    """Return what is taken off a number of elements."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of correction and unbiased may be given")
    if correction is not None:
        return correction
    return 1.0 if unbiased is None else float(unbiased)


@_documented
def var(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return variances of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.var(torch.tensor([1.0, 9.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    return _spread(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)


@_documented
def std(
    input: Any,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return standard deviations of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.masked.std(torch.tensor([1.0, 9.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(1.4142)
    """
    return _spread(input, dim, _correction(unbiased, correction), keepdim, dtype, mask).sqrt()


@_documented
def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmax of the elements that a mask takes; 0 for others.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.softmax(torch.tensor([1.0, 5.0, 1.0]), 0, mask=mask)
    tensor([0.5000, 0.0000, 0.5000])
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    return _C.softmax(_filled(input, mask, -math.inf), d, dtype=dtype)


@_documented
def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of the softmax of the elements that a mask takes; -inf for others.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.log_softmax(torch.tensor([1.0, 5.0, 1.0]), 0, mask=mask)
    tensor([-0.6931,    -inf, -0.6931])
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    return _C.log_softmax(_filled(input, mask, -math.inf), d, dtype=dtype)


@_documented
def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the softmax of the negatives of the elements that a mask takes; 0 for others.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.softmin(torch.tensor([1.0, 5.0, 1.0]), 0, mask=mask)
    tensor([0.5000, 0.0000, 0.5000])
    """
    (d,) = _dims(dim, input.ndim) or (0,)
    return _C.softmax(-_filled(input, mask, math.inf), d, dtype=dtype)


@_documented
def normalize(
    input: Any,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the elements that a mask takes over their norm; 0 for others.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.normalize(torch.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=mask)
    tensor([0.6000, 0.0000, 0.8000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / size.clamp(min=eps)


@_documented
def logaddexp(
    input: Any,
    other: Any,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Any:
    """Return the logarithm of a sum of exponentials, of the elements that masks take.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x, y = torch.tensor([0.0, 1.0]), torch.tensor([0.0, 2.0])
    >>> torch.masked.logaddexp(x, y, other_mask=torch.tensor([True, False]))
    tensor([0.6931, 1.0000])
    """
    x, y = _filled(input, input_mask, -math.inf), _filled(other, other_mask, -math.inf)
    return _C.logaddexp(x, y).to(dtype or input.dtype)


@_documented
def logsumexp(
    input: Any, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """Return logarithms of the sums of exponentials of the elements that a mask takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.logsumexp(torch.tensor([0.0, 5.0, 0.0]), 0, mask=mask)
    tensor(0.6931)
    """
    x = _filled(input, mask, _least(input.dtype))
    return _C.logsumexp(x, _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)

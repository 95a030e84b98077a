"""Helpers of the distributions: broadcasting, probabilities and logits, lazy properties."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: Final[float] = 0.57721566490153286060
Number = (int, float, bool)


def _like_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return the values as tensors of one shape.

    Numbers become tensors of the type and device of the first tensor, or of the default type.

    Parameters
    ----------
    *values : float or Tensor
        Shapes that broadcast.

    Returns
    -------
    tuple of Tensor
        Views of the tensors.

    Raises
    ------
    ValueError
        One is neither a number nor a tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import broadcast_all
    >>> broadcast_all(1.0, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(_like_tensor(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    kind: dict[str, Any] = {"dtype": pt.get_default_dtype()}
    if first is not None:
        kind = {"dtype": first.dtype, "device": first.device}
    tensors = [v if _like_tensor(v) else pt.tensor(v, **kind) for v in values]
    return tuple(pt.broadcast_tensors(*tensors))


class _Formula(property):
    # Without words of its own it has those of what it overrides.
    def __set_name__(self, owner: type, name: str) -> None:
        if self.__doc__ is None:
            self.__doc__ = getattr(getattr(super(owner, owner), name, None), "__doc__", None)


def formula(get: Callable[[Any], Any], doc: str | None = None) -> Tensor:
    """Return a property that is computed from the instance."""
    made: Any = _Formula(get)
    made.__doc__ = doc
    return made


def same_as(path: str, doc: str | None = None) -> Tensor:
    """Return a property that is another attribute, or one of a part's."""
    get = operator.attrgetter(path)

    def value(d: Any) -> Any:
        return get(d)

    return formula(value, doc)


def _broadcastable(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(len({1, i, j}) < 3 for i, j in zip(reversed(a), reversed(b)))


def _standard_normal(shape: Sequence[int], dtype: pt.dtype, device: Any) -> Tensor:
    return pt.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Return the sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of log-odds, or of unnormalized log-probabilities.

    Parameters
    ----------
    logits : Tensor
        Log-odds if binary; else each row of the last dimension belongs together.
    is_binary : bool
        Which of the two.

    Returns
    -------
    Tensor
        A sigmoid, or a softmax.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import logits_to_probs
    >>> logits_to_probs(torch.zeros(2)), logits_to_probs(torch.zeros(1), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor([0.5000]))
    """
    return pt.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities at least the type's `eps` away from 0 and 1.

    Parameters
    ----------
    probs : Tensor
        Numbers from 0 to 1.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import clamp_probs
    >>> clamp_probs(torch.tensor([0.0, 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = pt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return log-odds, or log-probabilities, of probabilities.

    Parameters
    ----------
    probs : Tensor
        Numbers from 0 to 1; the ends are moved inside by `clamp_probs`.
    is_binary : bool
        Whether to return log-odds.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import probs_to_logits
    >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    inside = clamp_probs(probs)
    logs = pt.log(inside)
    return logs - pt.log1p(-inside) if is_binary else logs


class lazy_property:
    """A property that is computed when first asked for, and kept as a plain attribute.

    Parameters
    ----------
    wrapped : callable
        Computes it from the instance, with gradients.

    Examples
    --------
    >>> from pytensorlib.distributions.utils import lazy_property
    >>> class A:
    ...     @lazy_property
    ...     def x(self):
    ...         print("computed")
    ...         return 3
    >>> a = A()
    >>> a.x + a.x
    computed
    6
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _LazyOfClass(self.wrapped)
        with pt.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOfClass(lazy_property, property):
    """The lazy property as the class shows it: a property, for tools that read documentation."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _lower(n: int, diag: int, device: Any) -> Tensor:
    """Return where an n x n matrix is on or below a diagonal."""
    row = pt.arange(n, device=device)
    return row < row.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangles of matrices, row by row.

    Parameters
    ----------
    mat : Tensor
        Of shape (..., n, n).
    diag : int
        The last diagonal that counts; 0 is the main one, those below are negative.

    Returns
    -------
    Tensor
        Of shape (..., number of elements).

    Raises
    ------
    ValueError
        There is no such diagonal.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return lower triangular matrices of the rows of `vec`; undoes `tril_matrix_to_vec`.

    Parameters
    ----------
    vec : Tensor
        Of shape (..., number of elements).
    diag : int
        The last diagonal that is filled.

    Returns
    -------
    Tensor
        Of shape (..., n, n), zero elsewhere.

    Raises
    ------
    ValueError
        No matrix has so many elements there.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(torch.tensor([1, 3, 4]))
    tensor([[1, 0],
            [3, 4]])
    """
    # n (n + 1) / 2 elements on and below the main diagonal, n more or fewer for each other one.
    b = 1 + 2 * diag
    n = (math.sqrt(b**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) - b) / 2
    if abs(round(n) - n) > 1e-9:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + pt.Size((size, size)))
    mat[..., _lower(size, diag, vec.device)] = vec
    return mat

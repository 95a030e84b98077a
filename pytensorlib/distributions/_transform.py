"""The base class of transforms, and compositions of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .utils import (
    _sum_rightmost,
    lazy_property,
    same_as,
)

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """The base of all transforms: `t(x)`, `t.inv(y)` and `t.log_abs_det_jacobian(x, y)`.

    A transform of one's own has `_call` and, if it can be undone, `_inverse`.

    Parameters
    ----------
    cache_size : int
        With 1 the last pair of x and y is kept, so that the inverse of a result costs nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import ExpTransform
    >>> t = ExpTransform()
    >>> t(torch.zeros(2)), t.inv(torch.ones(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in {0, 1}:
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size:
            self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions belong together, before and after."""
        before, after = self.domain.event_dim, self.codomain.event_dim
        if before != after:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return before

    @property
    def inv(self) -> Transform:
        """The inverse, whose inverse is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where the transform rises, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with a cache of this size."""
        return self if self._cache_size == cache_size else self._cached(cache_size)

    def _cached(self, cache_size: int) -> Transform:
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, x: Tensor) -> Tensor:
        return self._other(0, x, self._call)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._other(1, y, self._inverse)

    def _other(self, side: int, given: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the other half of a pair, the kept one's where `given` is of it."""
        if not self._cache_size:
            return compute(given)
        if given is not self._cached_x_y[side]:
            made = compute(given)
            self._cached_x_y = (made, given) if side else (given, made)
        return self._cached_x_y[1 - side]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        """Return log |dy/dx| of an input and its output."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of what an input of this shape becomes."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of what becomes an output of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """Another transform turned around; its cache is the other's."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    bijective: Any = same_as("_inv.bijective")
    sign: Any = same_as("_inv.sign")
    inv: Any = same_as("_inv")

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def _with_caches(parts: Any, cache_size: int) -> Any:
    return [part.with_cache(cache_size) for part in parts] if cache_size else parts


def _need_dims(shape: Sequence[int], least: int) -> None:
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")


def _widened(constraint: Any, event_dim: int) -> Any:
    """Return the constraint for at least `event_dim` dimensions at once."""
    more = event_dim - constraint.event_dim
    if more < 0:
        raise AssertionError(f"event_dim {event_dim} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Several transforms, one after another.

    Parameters
    ----------
    parts : list of Transform
        The first is done first.
    cache_size : int
        That of each part.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(torch.zeros(1))
    tensor([3.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = _with_caches(parts, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            into = part.domain.event_dim
            event_dim = max(event_dim + into - part.codomain.event_dim, into)
        return _widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            out = part.codomain.event_dim
            event_dim = max(event_dim + out - part.domain.event_dim, out)
        return _widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        """Whether every part is."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return functools.reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def _cached(self, cache_size: int) -> Transform:
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        if not self.parts:
            return pt.zeros_like(x)
        xs = [x]
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, xs, xs[1:]):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Another transform with more of the last dimensions taken together.

    Only `log_abs_det_jacobian` differs: it sums over them.

    Parameters
    ----------
    base_transform : Transform
        What is done.
    reinterpreted_batch_ndims : int
        How many more dimensions belong together.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(torch.ones(3), torch.ones(3))
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _cached(self, cache_size: int) -> Transform:
        n = self.reinterpreted_batch_ndims
        return IndependentTransform(self.base_transform, n, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective: Any = same_as("base_transform.bijective")
    sign: Any = same_as("base_transform.sign")

    def _call(self, x: Tensor) -> Tensor:
        _need_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _need_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


def _reshaped(shape: Any, old: pt.Size, new: pt.Size) -> Any:
    """Return `shape` with `new` in the place of `old` at its end."""
    _need_dims(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class ReshapeTransform(Transform):
    """Another shape of the last dimensions.

    Parameters
    ----------
    in_shape : Size
        The last dimensions before.
    out_shape : Size
        The last dimensions after, of as many elements.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import ReshapeTransform
    >>> ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        self.in_shape = pt.Size(in_shape)
        self.out_shape = pt.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _cached(self, cache_size: int) -> Transform:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)

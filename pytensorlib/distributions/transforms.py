"""Invertible transforms with the logarithm of their volume change."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from .distribution import Distribution
from .utils import (
    Number,
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    same_as,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
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


class _Alike(Transform):
    """A transform without parameters: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class _Rising(_Alike):
    """One that rises over all numbers."""

    bijective, sign = True, 1
    domain = constraints.real


class ExpTransform(_Rising):
    """y = exp(x).

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import ExpTransform
    >>> ExpTransform()(torch.zeros(1))
    tensor([1.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive numbers.

    Parameters
    ----------
    exponent : float or Tensor
        Not zero.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import PowerTransform
    >>> PowerTransform(2.0)(torch.tensor([3.0]))
    tensor([9.])
    """

    bijective = True
    domain, codomain = constraints.positive, constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _cached(self, cache_size: int) -> Transform:
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Any:
        """1 where the transform rises, -1 where it falls."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, PowerTransform)
        return same and bool(self.exponent.eq(other.exponent).all())  # type: ignore[attr-defined]

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return pt.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _inside(y: Tensor) -> Tensor:
    """Return numbers of [0, 1] moved into (0, 1)."""
    finfo = pt.finfo(y.dtype)
    return y.clamp(min=finfo.tiny, max=1.0 - finfo.eps)


class SigmoidTransform(_Rising):
    """y = 1 / (1 + exp(-x)).

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import SigmoidTransform
    >>> SigmoidTransform()(torch.zeros(1))
    tensor([0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _inside(pt.sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Rising):
    """y = log(1 + exp(x)); above 20 it is x.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import SoftplusTransform
    >>> SoftplusTransform()(torch.zeros(1))
    tensor([0.6931])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Rising):
    """y = tanh(x); exact also where a sigmoid, scaled and shifted, is not.

    Parameters
    ----------
    cache_size : int
        0 or 1: with 1 the inverse of a result is what it came from, also where tanh is 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import TanhTransform
    >>> TanhTransform()(torch.zeros(1))
    tensor([0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return pt.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        # log(1 - tanh(x)^2) without the cancellation.
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Alike):
    """y = |x|; its inverse gives the positive of the two.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import AbsTransform
    >>> AbsTransform()(torch.tensor([-2.0]))
    tensor([2.])
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _same(a: Any, b: Any) -> bool:
    """Return whether two parameters are equal throughout."""
    if isinstance(a, Number) and isinstance(b, Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """y = loc + scale * x.

    Parameters
    ----------
    loc : float or Tensor
        What is added.
    scale : float or Tensor
        What is multiplied by, not zero.
    event_dim : int
        How many of the last dimensions belong together.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import AffineTransform
    >>> AffineTransform(1.0, 2.0)(torch.ones(1))
    tensor([3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        super().__init__(cache_size)

    event_dim: Any = same_as("_event_dim")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _widened(constraints.real, self.event_dim)

    codomain = domain

    def _cached(self, cache_size: int) -> Transform:
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return _same(self.loc, other.loc) and _same(self.scale, other.scale)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        shape: Any = x.shape
        scale = self.scale
        if isinstance(scale, Number):
            result = pt.full_like(x, math.log(abs(scale)))
        else:
            result = pt.abs(scale).log()
        if self.event_dim:
            result = _sum_rightmost(result, self.event_dim)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        own = [getattr(x, "shape", ()) for x in (self.loc, self.scale)]
        return pt.broadcast_shapes(shape, *own)

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """Turns vectors of D (D - 1) / 2 numbers into Cholesky factors of D x D correlation matrices.

    Each number becomes a partial correlation by tanh; those of a row are broken off a stick, so
    that the row's length is 1.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.corr_cholesky

    def _call(self, x: Tensor) -> Tensor:
        eps = pt.finfo(x.dtype).eps
        r = vec_to_tril_matrix(pt.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + pt.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - pt.cumsum(y * y, dim=-1)
        before = tril_matrix_to_vec(F.pad(left[..., :-1], [1, 0], value=1), diag=-1)
        t = tril_matrix_to_vec(y, diag=-1) / before.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        sticks = 0.5 * left.log().sum(-1)
        return sticks - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Alike):
    """y = softmax(x); its inverse gives one of many, the logarithms.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import SoftmaxTransform
    >>> SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Alike):
    """Turns vectors of K - 1 numbers into K numbers whose sum is 1, each broken off what is left.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import StickBreakingTransform
    >>> StickBreakingTransform()(torch.zeros(1))
    tensor([0.5000, 0.5000])
    """

    bijective = True
    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _pieces(x: Tensor) -> Tensor:
        """Return how many pieces are left before each break, as logarithms."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _inside(pt.sigmoid(x - self._pieces(x)))
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        # Rounding may leave less than nothing.
        left = (1 - broken.cumsum(-1)).clamp(min=pt.finfo(y.dtype).tiny)
        return broken.log() - left.log() + self._pieces(broken)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        x = x - self._pieces(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _need_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Alike):
    """Turns square matrices into lower triangular ones with a positive diagonal, by exp.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alike):
    """Turns square matrices into positive definite ones, by their factor.

    Parameters
    ----------
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(pt.linalg.cholesky(y))


class _Sequence(Transform):
    """Transforms for parts of a tensor along one dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.dim, self.transforms = dim, list(_with_caches(tseq, cache_size))

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _set_of(self, sets: list[Any]) -> Any:
        raise NotImplementedError

    @constraints.dependent_property
    def domain(self) -> Any:
        return self._set_of([t.domain for t in self.transforms])

    @constraints.dependent_property
    def codomain(self) -> Any:
        return self._set_of([t.codomain for t in self.transforms])

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y))])

    def _need_length(self, x: Tensor, length: int, name: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {x.dim()} dimensions"
            )
        if x.size(self.dim) != length:
            raise AssertionError(
                f"x.size({self.dim}) = {x.size(self.dim)} must equal {name} {length}"
            )


class CatTransform(_Sequence):
    """Transforms for parts of a tensor, as `torch.cat` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One for each part.
    dim : int
        The dimension along which they lie.
    lengths : sequence of int, optional
        How long each is, 1 by default.
    cache_size : int
        That of each transform.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        """The most dimensions that belong together for one of them."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of all parts."""
        return sum(self.lengths)

    def _cached(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._need_length(x, self.length, "length")
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pt.cat(parts, dim=self.dim)

    def _set_of(self, sets: list[Any]) -> Any:
        return constraints.cat(sets, self.dim, self.lengths)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y)):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        # Joined where the dimension is still there, added where it belongs to the event.
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return pt.cat(terms, dim=dim) if dim < 0 else sum(terms)


class StackTransform(_Sequence):
    """Transforms for the slices of a tensor, as `torch.stack` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One for each slice.
    dim : int
        The dimension along which they lie.
    cache_size : int
        That of each transform.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions.transforms import *
    >>> StackTransform([ExpTransform(), identity_transform])(torch.zeros(2))
    tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _cached(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        self._need_length(x, len(self.transforms), "len(transforms)")
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pt.stack(parts, dim=self.dim)

    def _set_of(self, sets: list[Any]) -> Any:
        return constraints.stack(sets, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        parts = zip(self.transforms, self._parts(x), self._parts(y))
        terms = [t.log_abs_det_jacobian(before, after) for t, before, after in parts]
        return self._join(terms)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution, which makes its samples uniform.

    Parameters
    ----------
    distribution : Distribution
        One with `cdf` and `icdf`.
    cache_size : int
        0 or 1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Normal
    >>> from pytensorlib.distributions.transforms import CumulativeDistributionTransform
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.zeros(1))
    tensor([0.5000])
    """

    bijective, sign = True, 1
    codomain = constraints.unit_interval
    domain: Any = same_as("distribution.support")

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        self.distribution = distribution
        super().__init__(cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return self.distribution.log_prob(x)

    def _cached(self, cache_size: int) -> Transform:
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

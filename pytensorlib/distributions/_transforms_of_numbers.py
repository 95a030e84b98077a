"""Transforms of each number by itself."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from ..nn import functional as F
from . import constraints
from ._transform import Transform, _widened
from .utils import (
    Number,
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    same_as,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


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


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid moved into (0, 1)."""
    return _inside(pt.sigmoid(x))


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
        return _clipped_sigmoid(x)

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

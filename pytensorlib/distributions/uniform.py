"""The uniform distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import formula

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Parameters
    ----------
    low : float or Tensor
        The least number.
    high : float or Tensor
        The end.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Uniform
    >>> Uniform(0.0, torch.tensor([1.0, 4.0])).entropy()
    tensor([0.0000, 1.3863])
    """

    has_rsample = True
    _parts = ("low", "high")
    low: Tensor
    high: Tensor

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    mean = formula(lambda d: (d.high + d.low) / 2)
    mode = formula(lambda d: math.nan * d.high)
    stddev = formula(lambda d: (d.high - d.low) / 12**0.5)
    variance = formula(lambda d: (d.high - d.low).pow(2) / 12)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rand = pt.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + rand * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low.le(value) & self.high.gt(value)).type_as(self.low)
        return pt.log(inside) - pt.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return pt.log(self.high - self.low)

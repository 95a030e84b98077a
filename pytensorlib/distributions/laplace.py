"""The Laplace distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import formula, same_as

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution: an exponential one on both sides of its mean.

    Parameters
    ----------
    loc : float or Tensor
        The mean.
    scale : float or Tensor
        The mean distance from it.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Laplace
    >>> Laplace(0.0, 1.0).log_prob(torch.tensor(2.0))
    tensor(-2.6931)
    """

    support = constraints.real
    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = same_as("loc")
    mode = same_as("loc")
    variance = formula(lambda d: 2 * d.scale.pow(2))
    stddev = formula(lambda d: 2**0.5 * d.scale)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        eps = pt.finfo(self.loc.dtype).eps
        u = self.loc.new(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * pt.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -pt.log(2 * self.scale) - pt.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * pt.expm1(-x.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        x = value - 0.5
        return self.loc - self.scale * x.sign() * pt.log1p(-2 * x.abs())

    def entropy(self) -> Tensor:
        return 1 + pt.log(2 * self.scale)

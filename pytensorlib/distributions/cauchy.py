"""The Cauchy distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import formula, same_as

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution: the ratio of two normal numbers of mean 0, scaled and shifted.

    Parameters
    ----------
    loc : float or Tensor
        The median.
    scale : float or Tensor
        Half the width at half the height.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """

    support = constraints.real
    has_rsample = True
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = formula(lambda d: d._filled(math.nan, d.loc))
    mode = same_as("loc")
    variance = formula(lambda d: d._filled(math.inf, d.loc))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return pt.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return pt.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()

"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import formula, same_as

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The half-normal distribution: the size of a normal number of mean 0.

    Parameters
    ----------
    scale : float or Tensor
        The scale of the whole distribution.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import HalfNormal
    >>> HalfNormal(1.0).cdf(torch.tensor(1.0))
    tensor(0.6827)
    """

    support = constraints.nonnegative
    has_rsample = True
    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale = same_as("base_dist.scale", "The scale of the whole distribution.")
    mode = formula(lambda d: pt.zeros_like(d.scale))
    mean = formula(lambda d: d.scale * math.sqrt(2 / math.pi))
    variance = formula(lambda d: d.scale.pow(2) * (1 - 2 / math.pi))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return pt.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import _standard_normal, formula, same_as

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The normal distribution.

    Parameters
    ----------
    loc : float or Tensor
        The mean.
    scale : float or Tensor
        The standard deviation.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Normal
    >>> Normal(0.0, 2.0).log_prob(torch.tensor(1.0))
    tensor(-1.7371)
    """

    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = same_as("loc")
    mode = same_as("loc")
    stddev = same_as("scale")
    variance = formula(lambda d: d.stddev.pow(2))

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with pt.no_grad():
            return pt.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        squares = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -squares - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + pt.erf(z))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * pt.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + pt.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        variance = self.scale.pow(2)
        return self.loc / variance, -0.5 * variance.reciprocal()

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x.pow(2) / y + 0.5 * pt.log(-math.pi / y)

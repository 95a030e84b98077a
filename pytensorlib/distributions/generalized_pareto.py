"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .distribution import Distribution
from .utils import same_as

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution: what lies above a high threshold.

    Parameters
    ----------
    loc : float or Tensor
        The threshold.
    scale : float or Tensor
        The scale.
    concentration : float or Tensor
        The shape: 0 is an exponential tail, more a heavier one, less one with an end.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).cdf(torch.tensor(2.0))
    tensor(0.7500)
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, pt.where(self.concentration < 0, end, math.inf))

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        shape = pt.where(valid, self.concentration, 0.5)
        return pt.where(valid, self.loc + self.scale / (1 - shape), math.nan)

    mode = same_as("loc")

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        shape = pt.where(valid, self.concentration, 0.25)
        result = self.scale**2 / ((1 - shape) ** 2 * (1 - 2 * shape))
        return pt.where(valid, result, math.nan)

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(pt.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _shape_or_one(self) -> tuple[Tensor, Tensor]:
        """Return where the shape is 0, and the shape with 1 there."""
        zero = pt.isclose(self.concentration, pt.zeros_like(self.concentration))
        return zero, pt.where(zero, 1.0, self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, shape = self._shape_or_one()
        power = 1 / shape + pt.ones_like(z)
        curved = pt.where(power == 0, power, power * pt.log1p(shape * z))
        return -self.scale.log() - pt.where(zero, z, curved)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of samples above `value`."""
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, shape = self._shape_or_one()
        return pt.where(zero, -z, -pt.log1p(shape * z) / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of samples up to `value`."""
        return pt.log1p(-pt.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return pt.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, shape = self._shape_or_one()
        logs = pt.log1p(-value)
        curved = self.loc + self.scale / shape * pt.expm1(-shape * logs)
        return pt.where(zero, self.loc - self.scale * logs, curved)

    def entropy(self) -> Tensor:
        return (pt.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

"""The exponential distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import formula

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution: the time to the next of events that keep no memory.

    Parameters
    ----------
    rate : float or Tensor
        How many events there are in a unit of time.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Exponential
    >>> Exponential(2.0).mean
    tensor(0.5000)
    """

    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {"rate": constraints.positive}
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = formula(lambda d: d.rate.reciprocal())
    mode = formula(lambda d: pt.zeros_like(d.rate))
    stddev = formula(lambda d: d.rate.reciprocal())
    variance = formula(lambda d: d.rate.pow(-2))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        return self.rate.new(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 1 - pt.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -pt.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - pt.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return -pt.log(-x)

"""The Poisson distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, formula, same_as

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution: the number of events in a unit of time.

    Parameters
    ----------
    rate : float or Tensor
        The mean.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Poisson
    >>> Poisson(4.0).log_prob(torch.tensor(3.0))
    tensor(-1.6329)
    """

    support = constraints.nonnegative_integer
    arg_constraints = {"rate": constraints.nonnegative}
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = same_as("rate")
    mode = formula(lambda d: d.rate.floor())
    variance = same_as("rate")

    def sample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        with pt.no_grad():
            return pt.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (pt.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return pt.exp(x)

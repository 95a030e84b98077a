"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import formula

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return pt._C._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution: the sum of `concentration` exponential numbers.

    Samples carry gradients to both parameters (Figurnov et al. 2018, arXiv:1805.08498).

    Parameters
    ----------
    concentration : float or Tensor
        The shape, often called alpha.
    rate : float or Tensor
        The inverse of the scale, often called beta.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributions import Gamma
    >>> Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = formula(lambda d: d.concentration / d.rate)
    mode = formula(lambda d: ((d.concentration - 1) / d.rate).clamp(min=0))
    variance = formula(lambda d: d.concentration / d.rate.pow(2))

    def rsample(self, sample_shape: Sequence[int] = pt.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # What rounds to zero has no logarithm; the gradient is that of the number as it was.
        value.detach().clamp_(min=pt.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Tensor:
        value = pt.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        return (
            pt.xlogy(self.concentration, self.rate)
            + pt.xlogy(self.concentration - 1, value)
            - self.rate * value
            - pt.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return pt.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - pt.log(self.rate)
            + pt.lgamma(self.concentration)
            + (1.0 - self.concentration) * pt.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return pt.lgamma(x + 1) + (x + 1) * pt.log(-y.reciprocal())

"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import formula, same_as

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: 1 over a gamma number.

    Parameters
    ----------
    concentration : float or Tensor
        The shape, often called alpha.
    rate : float or Tensor
        The gamma number's rate, often called beta.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> from pytensorlib.distributions import InverseGamma
    >>> InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    support = constraints.positive
    has_rsample = True
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        step = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, step, validate_args=validate_args)

    concentration = same_as("base_dist.concentration", "The shape.")
    rate = same_as("base_dist.rate", "The gamma number's rate.")

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return pt.where(a > 1, self.rate / (a - 1), pt.inf)

    mode = formula(lambda d: d.rate / (d.concentration + 1))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        finite = self.rate.square() / ((a - 1).square() * (a - 2))
        return pt.where(a > 2, finite, pt.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()

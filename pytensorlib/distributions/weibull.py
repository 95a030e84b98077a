"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt
from pytensorlib import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant, formula

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: a power of an exponential number.

    Parameters
    ----------
    scale : float or Tensor
        What the number is multiplied by, often called lambda.
    concentration : float or Tensor
        The inverse of the power, often called k.
    validate_args : bool, optional
        Whether to check parameters and values.

    Examples
    --------
    >>> from pytensorlib.distributions import Weibull
    >>> Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    support = constraints.positive
    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    _parts = ("base_dist", "concentration_reciprocal")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(pt.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal = self.concentration.reciprocal()
        power = PowerTransform(exponent=self.concentration_reciprocal)
        return [power, AffineTransform(loc=0, scale=self.scale)]

    mean = formula(lambda d: d.scale * pt.exp(pt.lgamma(1 + d.concentration_reciprocal)))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        power = self.concentration_reciprocal
        squares = pt.exp(pt.lgamma(1 + 2 * power))
        return self.scale.pow(2) * (squares - pt.exp(2 * pt.lgamma(1 + power)))

    def entropy(self) -> Tensor:
        power = self.concentration_reciprocal
        return euler_constant * (1 - power) + pt.log(self.scale * power) + 1
